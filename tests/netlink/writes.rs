//! Changes by [`KernelWriter`], seen by `ip` and by the mirror.

use holdfast::netlink::{Address, KernelWriter, Namespace};
use holdfast::wire::MacAddr;
use rustix::io::Errno;

use crate::rig::{Rig, machine_is_ready};
use crate::rules::without_dumps;

#[test]
fn links_and_addresses_are_set() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(1, without_dumps());
    let mut writer = KernelWriter::open(&Namespace::open(&rig.name).expect("a namespace")).expect("a writer");
    let index = writer.link_index("v1").expect("a link");
    let mac = MacAddr([2, 0, 0, 0, 0, 0x11]);
    writer.set_up(index, false).expect("it is ours");
    writer.set_mac(index, mac).expect("it is down");
    writer.set_mtu(index, 9000).expect("veth allows it");
    let [ipv4, ipv6] = ["192.0.2.1/31", "2001:db8::1/64"].map(|text| text.parse().expect("an address"));
    writer.add_address(index, ipv4).expect("it is free");
    writer.add_address(index, ipv4).expect("again");
    writer.set_up(index, true).expect("it is ours");
    writer.add_address(index, ipv6).expect("it is free");
    writer.remove_address(index, "10.0.1.1/24".parse().expect("an address")).expect("it was there");
    rig.agree();
    let link = &rig.view.links[&index];
    assert_eq!((link.mac, link.mtu, link.is_up), (Some(mac), 9000, true));
    let own = |address| Address { index, address, peer: None };
    assert!(rig.view.addresses.contains(&own(ipv4)) && rig.view.addresses.contains(&own(ipv6)));
    assert!(!rig.view.addresses.contains(&own("10.0.1.1/24".parse().expect("an address"))));
}

#[test]
fn kernel_resolves_a_neighbour_on_request() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(1, without_dumps());
    // The peer answers from another namespace: a host's own addresses are never asked for by ARP.
    let far = crate::namespace::Namespace::new(format!("{}-far", rig.name));
    rig.ip(&format!("link set p1 netns {}-far", rig.name));
    far.run(&["ip", "link", "set", "p1", "up"]);
    far.run(&["ip", "address", "add", "10.0.1.2/24", "dev", "p1"]);
    let mut writer = KernelWriter::open(&Namespace::open(&rig.name).expect("a namespace")).expect("a writer");
    let index = writer.link_index("v1").expect("a link");
    rig.wait("carrier", |rig| rig.view.links[&index].is_up);
    let peer = "10.0.1.2".parse().expect("an address");
    writer.resolve(index, peer).expect("the link is up");
    rig.wait("neighbour", |rig| rig.view.neighbours.contains_key(&(index, peer)));
    rig.agree();
}

#[test]
fn refusal_names_request_and_reason() {
    if !machine_is_ready() {
        return;
    }
    let rig = Rig::new(1, without_dumps());
    let mut writer = KernelWriter::open(&Namespace::open(&rig.name).expect("a namespace")).expect("a writer");
    let error = writer.set_mtu(9999, 1500).unwrap_err();
    assert_eq!(error.code(), Some(Errno::NODEV.raw_os_error()));
    let text = error.to_string();
    let place = format!("netlink in network namespace {}: the kernel refuses to set the MTU of link 9999", rig.name);
    assert!(text.starts_with(&place), "{text}");
    let index = writer.link_index("v1").expect("a link");
    let error = writer.set_mtu(index, 1).unwrap_err().to_string();
    assert!(error.contains("to set the MTU of link") && error.contains("less than"), "the kernel's words: {error}");
    assert!(writer.link_index("nothing").is_err());
}
