//! Configurations that are accepted with a warning, word for word.

use super::*;

#[test]
fn port_without_pfc_is_warned_of() {
    warn(
        "preset: roce\nports: [{name: p1, device: net_tap0, speed: 10G, pfc: off}]\n",
        "x.yaml:2:9: ports[0]: PFC is off, so class 3 is not lossless here",
    );
}

#[test]
fn headroom_below_the_formula_is_warned_of() {
    warn(
        &format!("preset: roce\n{PORTS}classes: {{3: {{headroom: 20kB}}}}\n"),
        "x.yaml:5:25: classes.3.headroom: `20kB` is below the 139.14KiB that port p2 needs (10G, cable 3m, mtu 1500, poll gap 20us): class 3 may lose frames there; write `auto`",
    );
}

#[test]
fn pause_that_may_expire_before_its_refresh_is_warned_of() {
    let text = "preset: roce
buffer: {size: 256MiB}
ports: [{name: p1, device: net_tap0, speed: 400G, rx_descriptors: 16384, backlog_mark: off}]
lcores: {poll_gap: 60us}
";
    warn(
        text,
        "x.yaml:3:9: ports[0]: at 400G a pause lasts 83.88us and is refreshed after half of that, which may be too late: the peer may resume before the refresh arrives, and no headroom is enough (poll gap 60us); write `lcores.poll_gap: 30753ns` or less, and keep polls within it",
    );
    assert_eq!(accept(&text.replace("60us", "30753ns")).warnings, Vec::<String>::new());
    assert_eq!(accept(&text.replace("60us", "30754ns")).warnings.len(), 1);
    // PFC that is off cannot be late. With a slow peer, no poll gap is short enough.
    let off = accept(&text.replace("backlog_mark", "pfc: off, backlog_mark")).warnings;
    assert!(off.iter().all(|warning| !warning.contains("a pause lasts")), "{off:?}");
    let slow = accept(&text.replace("backlog_mark", "peer_response: 60us, backlog_mark")).warnings;
    assert!(
        slow[0].ends_with("no poll gap is short enough for the peer's response; write a lower `speed`"),
        "{slow:?}"
    );
}

#[test]
fn xon_offset_below_one_frame_with_shared_pool_is_warned_of() {
    let with = |policy: &str, offset: &str| {
        format!("preset: roce\n{PORTS}buffer: {{headroom: {policy}}}\nclasses: {{3: {{xon_offset: {offset}}}}}\n")
    };
    warn(
        &with("shared-pool", "0B"),
        "x.yaml:6:27: classes.3.xon_offset: 0B is less than one frame of port p2 (mtu 1500: 1.62KiB): when the shared headroom pool is empty, class 3 pauses and resumes for single frames, and loses more of them; write `xon_offset: 16640B` or more",
    );
    for (policy, offset) in [("shared-pool", "1664B"), ("independent", "0B"), ("dynamic", "0B")] {
        assert_eq!(accept(&with(policy, offset)).warnings, Vec::<String>::new(), "{policy} {offset}");
    }
}

#[test]
fn ecn_that_may_mark_after_xoff_is_warned_of() {
    warn(
        &format!("preset: roce\n{PORTS}buffer: {{size: 1MiB}}\n"),
        "x.yaml:5:9: buffer: ECN of class 3 starts to mark at 97.65KiB (kmin), but with 2 ports it is sure to mark before XOFF only below 55.2KiB; lower kmin, raise alpha or enlarge the buffer",
    );
}

#[test]
fn pcp_mapped_to_lossless_class_of_other_priority_is_warned_of() {
    warn(
        &format!("preset: roce\n{PORTS}maps: {{pcp: {{4: 3}}}}\n"),
        "x.yaml:5:13: maps.pcp: PCP 4 is in lossless class 3, but PFC for that class pauses priority 3, not 4; map only PCP 3 to it",
    );
}

#[test]
fn flow_in_vlan_not_carried_by_its_port_is_warned_of() {
    warn(
        &format!("{RINGS}hosts: [{{name: h1, port: p1, flows: [{{to: h2, vlan: 9}}]}}, {{name: h2, port: p2}}]\n"),
        "x.yaml:2:38: hosts[0].flows[0]: port p1 drops frames of VLAN 9, because it does not carry them; write a \
         `vlan` that it carries",
    );
}
