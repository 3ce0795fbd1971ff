//! A NIC that a reload takes out of a running switch and puts in again, with another MTU.

use crate::bench::{Bench, PORTS};
use crate::incast;
use crate::nic::{Access, Nic};
use crate::row::nothing_is_lost;

/// The last NIC leaves, so that the kernel may have it, and comes back.
#[track_caller]
pub fn nic_leaves_and_comes_back(nic: Nic, access: Access) {
    let mut bench = Bench::start(nic, access);
    bench.start_switch();
    let last = PORTS - 1;
    let device = format!("\"{}\"", nic.address(last));
    bench.reload(last, &format!("s/device: {device}/device: none/"));
    let port = bench.ports().remove(last);
    assert_eq!(port["state"], "absent", "{port}");
    bench.rebind_one(last);
    bench.reload(last, &format!("s/device: none, speed: 10M, mtu: [0-9]*/device: {device}, speed: 10M, mtu: 1500/"));
    bench.wait_for_ports("link of the NIC that came back", |port| port["link_up"] == true);
    assert_eq!(bench.ports()[last]["mtu_bytes"], 1500);
    incast::short_incast(&mut bench);
    nothing_is_lost(&bench.stop_switch());
}
