//! A port with `device: vhost:PATH`. The guest is another switch with virtio-user, which uses vhost-user as a virtual
//! machine does. Its port obeys no PFC.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::launch::{finish, run, start};
use crate::process::{Process, wait_for};
use crate::program::{Config, PATIENCE, report, sum};
use crate::scraping::scrape;

/// The switch. Its port to the receiver is 20 times slower than the guest's.
const SWITCH: &str = r#"
preset: roce
ports:
  - {name: vm, device: "vhost:SOCKET", speed: 1G}
  - {name: out, device: ring, speed: 50M}
fdb: {static: [{mac: "02:48:46:00:01:00", port: out}]}
hosts: [{name: receiver, port: out, mac: "02:48:46:00:01:00"}]
"#;

/// The guest: a program that sends RoCE through its virtual NIC.
const GUEST: &str = r#"
preset: roce
metrics: off
ports:
  - {name: app, device: ring, speed: 1G, pfc: queue}
  - {name: eth, device: "net_virtio_user0,path=SOCKET", speed: 1G, pfc: off, mac: "02:48:46:0c:00:00"}
fdb: {static: [{mac: "02:48:46:00:01:00", port: eth}]}
hosts:
  - name: sender
    port: app
    mac: "02:48:46:0c:00:01"
    flows: [{to: {mac: "02:48:46:00:01:00", ip: 10.48.0.98}, kind: roce, rate: 1G}]
"#;

fn config(text: &str, socket: &Path) -> Config {
    Config::new(&text.replace("SOCKET", &socket.display().to_string()))
}

#[test]
fn guest_without_pfc_is_stopped_by_its_queue_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("vm.sock");
    let (switch, guest) = (config(SWITCH, &socket), config(GUEST, &socket));
    let (switch, address) = start(&[&switch.path(), "--json"]);
    assert_eq!(socket.metadata().expect("the socket").permissions().mode() & 0o777, 0o600);
    let guest = Process::spawn(run(&[&guest.path(), "--json"]));
    let seen = wait_for("congestion", PATIENCE, || {
        let seen = scrape(address);
        let stops = seen.sum("holdfast_pfc_queue_stops_total", &[("port", "vm"), ("priority", "3")]);
        let sent = seen.sum("holdfast_port_sent_frames_total", &[("port", "out"), ("queue", "3")]);
        (stops >= 3.0 && sent > 5000.0).then_some(seen)
    });
    // The guest sends by one queue.
    assert_eq!(seen.sum("holdfast_receive_queue_carries", &[("port", "vm"), ("queue", "0"), ("group", "3")]), 1.0);
    assert_eq!(seen.sum("holdfast_receive_queue_carries", &[("port", "vm"), ("queue", "1")]), 0.0);

    guest.signal("TERM");
    let guest = report(&guest.wait(PATIENCE));
    switch.signal("TERM");
    let switch = report(&switch.wait(PATIENCE));
    assert_eq!(switch["verdict"]["outcome"], "kept", "{}", switch["verdict"]);
    for report in [&switch, &guest] {
        assert_eq!(sum(report, "pfc_sent_xoff", false), 0, "no PFC frame");
    }
    assert_eq!(sum(&switch, "dropped_frames", true), 0);
    let errors = &guest["ports"][1]["send_errors"];
    assert_eq!(errors, 0, "frames that the switch did not take stayed in the guest");
}

#[test]
fn socket_has_the_configured_group_and_an_unknown_one_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("vm.sock");
    // The only group that an unprivileged user can give a file is one of its own.
    let group = directory.path().metadata().expect("the directory").gid().to_string();
    let text = |group: &str| SWITCH.replace("SOCKET\"", &format!("SOCKET\", socket: {{group: {group}}}"));
    let (process, _) = start(&[&config(&text(&group), &socket).path(), "--json"]);
    let file = socket.metadata().expect("the socket");
    assert_eq!((file.permissions().mode() & 0o777, file.gid().to_string()), (0o660, group));
    process.signal("TERM");
    assert_eq!(process.wait(PATIENCE).status.code(), Some(0));

    let ended = finish(run(&[&config(&text("no-such-group"), &socket).path(), "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(1));
    let expected =
        "error: port `vm`: this machine has no group `no-such-group` for the socket; write another, or its number\n";
    assert!(ended.stderr.ends_with(expected), "{}", ended.stderr);
}
