//! Ports that a reload adds, changes and removes while the hosts of the others send all they can.

use serde_json::Value;

use crate::process::wait_for;
use crate::rig::{PATIENCE, Switch, sum};

/// A device without a peer, and without frames.
const DEVICE: &str = "device: \"net_null0,no-rx=1\"";

/// The embedded incast on `lcores` lcores, with a port of these keys before the others.
fn with(lcores: u8, keys: &str) -> String {
    let incast = include_str!("../../conf/incast.yaml");
    let ports = format!("ports:\n  - {{name: spare, {keys}}}\n");
    let text = incast.replacen("ports:\n", &ports, 1);
    assert_ne!(text, incast);
    format!("api: {{writes: true}}\nlcores: {{count: {lcores}}}\n{text}")
}

fn spare(switch: &Switch) -> Value {
    let ports = switch.get("ports")["ports"].as_array().expect("ports").clone();
    ports.into_iter().find(|port| port["port"] == "spare").expect("the port")
}

fn headroom(switch: &Switch) -> u64 {
    let groups = switch.get("groups")["groups"].as_array().expect("groups").clone();
    let group = groups.into_iter().find(|group| group["port"] == "spare" && group["group"] == 3);
    group.expect("the group")["headroom_size_bytes"].as_u64().expect("a size")
}

fn reload(switch: &Switch, text: &str, status: u16) -> Value {
    switch.configure(text);
    let (got, body) = switch.ask("POST /v1/reload");
    assert_eq!(got, status, "{body}");
    serde_json::from_str::<Value>(&body).expect("JSON")["reload"].clone()
}

fn add_change_and_remove(lcores: u8) {
    let absent = with(lcores, "device: none, speed: 25G");
    let switch = Switch::configured(&absent);
    let port = spare(&switch);
    assert_eq!((&port["state"], &port["device"], headroom(&switch)), (&"absent".into(), &"none".into(), 0));
    assert!(
        switch.printed(&["show", "ports"]).lines().any(|line| line.starts_with("spare") && line.contains(" absent "))
    );
    for (keys, mtu) in [
        (format!("{DEVICE}, speed: 25G"), 1500),
        (format!("{DEVICE}, speed: 10G, pfc: off"), 1500),
        (format!("{DEVICE}, speed: 25G, mtu: 1280"), 1280),
    ] {
        let done = reload(&switch, &with(lcores, &keys), 200);
        assert_eq!(done["outcome"], "applied", "{done}");
        let port = wait_for("the port in use", PATIENCE, || Some(spare(&switch)).filter(|port| port["state"] == "up"));
        assert_eq!((port["mtu_bytes"].as_u64(), port["device"].as_str()), (Some(mtu), Some("net_null0,no-rx=1")));
        assert!(headroom(&switch) > 0);
    }
    let done = reload(&switch, &absent, 200);
    assert!(done["warnings"].to_string().contains("spare: taken out and put in again"), "{done}");
    let port = spare(&switch);
    assert_eq!((&port["state"], headroom(&switch)), (&"absent".into(), 0));
    wait_for("a port without a link", PATIENCE, || (spare(&switch)["link_up"] == false).then_some(()));
    assert_eq!(sum(&switch.get("ports")["ports"], "lossless_dropped_frames"), 0);
    switch.end();
}

#[test]
fn port_is_added_changed_and_removed_under_full_load_without_loss() {
    add_change_and_remove(1);
}

#[test]
fn port_is_added_changed_and_removed_beside_joint_ports_of_two_lcores() {
    add_change_and_remove(2);
}

#[test]
fn port_that_cannot_change_or_whose_device_fails_stays_as_it_was() {
    let absent = with(1, "device: none, speed: 25G");
    let switch = Switch::configured(&absent);
    let refused = reload(&switch, &with(1, "device: \"net_af_packet7,iface=not-here\", speed: 25G"), 409);
    assert_eq!((&refused["outcome"], &spare(&switch)["state"]), (&"busy".into(), &"absent".into()), "{refused}");
    assert!(refused["errors"].to_string().contains("not-here"), "{refused}");
    for (text, error) in [
        (
            absent.replacen("name: p1, device: ring, speed: 10G", "name: p1, device: ring, speed: 25G", 1),
            "p1: speed: 10G -> 25G: needs a restart, because the virtual host of a `ring` stays as it is",
        ),
        (
            absent.replacen("name: p1, device: ring,", "name: p1, device: ring, mtu: 9000,", 1),
            "p1: mtu: 1500 -> 9000: needs a restart, because the virtual host of a `ring` stays as it is",
        ),
        (with(1, &format!("{DEVICE}, speed: 25G, mtu: 9000")), "packet buffers"),
    ] {
        let refused = reload(&switch, &text, 409);
        assert_eq!(refused["outcome"], "needs_restart", "{refused}");
        assert!(refused["errors"].to_string().contains(error), "{refused}");
    }
    assert_eq!(reload(&switch, &absent, 200)["outcome"], "unchanged");
    switch.end();
}

/// A routed port and the members of a group get other devices.
#[test]
fn routed_port_and_members_of_a_group_change_under_full_load_without_loss() {
    let text = |numbers: [u8; 3], speed: &str| {
        let port = |name: &str, number: u8, speed: &str| {
            format!("  - {{name: {name}, device: \"net_null{number},no-rx=1\", speed: {speed}}}\n")
        };
        let [spare, one, two] = numbers;
        let ports = port("spare", spare, speed) + &port("one", one, "25G") + &port("two", two, "25G");
        let incast = include_str!("../../conf/incast.yaml").replacen("ports:\n", &format!("ports:\n{ports}"), 1);
        let others = "lags: [{name: bond, ports: [one, two], lacp: off}]\nrouting:\n  interfaces: [{port: spare, \
                      addresses: [10.7.0.1/24]}]\n";
        format!("api: {{writes: true}}\nbuffer: {{size: 16MiB}}\n{incast}{others}")
    };
    let switch = Switch::configured(&text([0, 1, 2], "25G"));
    let state = |name: &str| {
        let ports = switch.get("ports")["ports"].as_array().expect("ports").clone();
        let port = ports.into_iter().find(|port| port["port"] == name).expect("the port");
        (port["state"].as_str() == Some("up")).then(|| port["device"].as_str().expect("a device").to_owned())
    };
    let interface = || switch.get("interfaces")["interfaces"]["entries"][0].clone();
    let mac = interface()["mac"].clone();
    for (numbers, speed, changed) in
        [([3, 1, 2], "25G", "spare"), ([3, 1, 2], "10G", "spare"), ([3, 4, 2], "10G", "one"), ([3, 4, 5], "10G", "two")]
    {
        let done = reload(&switch, &text(numbers, speed), 200);
        assert_eq!(done["outcome"], "applied", "{done}");
        assert!(done["warnings"].to_string().contains(&format!("{changed}: taken out and put in again")), "{done}");
        for (name, number) in ["spare", "one", "two"].into_iter().zip(numbers) {
            wait_for("the port in use", PATIENCE, || {
                (state(name)? == format!("net_null{number},no-rx=1")).then_some(())
            });
        }
        assert_eq!(interface()["mac"], mac, "the router keeps its address");
    }
    assert_eq!(reload(&switch, &text([3, 4, 5], "10G"), 200)["outcome"], "unchanged");
    let longer = text([3, 4, 5], "10G").replacen("no-rx=1\", speed: 10G", "no-rx=1\", mtu: 1280, speed: 10G", 1);
    assert_eq!(reload(&switch, &longer, 409)["outcome"], "needs_restart");
    assert_eq!(sum(&switch.get("ports")["ports"], "lossless_dropped_frames"), 0);
    switch.end();
}

/// Nothing confirms that the port goes, so that it comes back with its device.
#[test]
fn unconfirmed_removal_of_a_port_is_taken_back() {
    let present = with(1, &format!("{DEVICE}, speed: 25G"));
    let switch = Switch::configured(&present);
    wait_for("the port in use", PATIENCE, || (spare(&switch)["state"] == "up").then_some(()));
    switch.configure(&with(1, "device: none, speed: 25G"));
    let told = switch.holdfast(&["reload", "--confirm", "2s"]);
    assert!(told.status.success(), "{told:?}");
    assert_eq!(spare(&switch)["state"], "absent");
    wait_for("the port back", PATIENCE, || (spare(&switch)["state"] == "up").then_some(()));
    assert!(headroom(&switch) > 0);
    assert_eq!(sum(&switch.get("ports")["ports"], "lossless_dropped_frames"), 0);
    switch.end();
}
