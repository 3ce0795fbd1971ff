//! Ports of virtual devices, and errors of devices and pools.

use super::*;

#[test]
fn a_null_port_makes_and_swallows_frames() {
    let data = pool("null", 1023);
    let mut port = EthPort::plug(eal(), "net_null_a,size=64", &PortConfig::default(), &data).unwrap();
    let again = EthPort::plug(eal(), "net_null_a", &PortConfig::default(), &data);
    assert_eq!(again.err(), Some(Error::DeviceExists { device: "net_null_a".into() }));
    let again = EthPort::open(eal(), "net_null_a", &PortConfig::default(), &data);
    assert!(matches!(again.err(), Some(Error::InUse { .. })));
    assert!(matches!(port.queues().err(), Some(Error::Invalid { .. })), "not started");
    port.start().unwrap();
    let mut queue = port.queues().unwrap();
    assert!(matches!(port.queues().err(), Some(Error::InUse { .. })));
    assert!(matches!(port.stop().err(), Some(Error::InUse { .. })));
    let mut burst = Burst::new();
    queue.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST);
    assert_eq!(burst[0].len(), 64);
    queue.tx(&mut burst);
    assert!(burst.is_empty());
    assert_eq!(port.driver(), "net_null");
    assert_eq!((port.stats().unwrap().ipackets, port.stats().unwrap().opackets), (BURST as u64, BURST as u64));
    drop(queue);
    port.stop().unwrap();
    assert_eq!(data.in_use(), 0);
    port.start().unwrap();
    drop(port.queues().unwrap());
    port.close().unwrap();
    drop(EthPort::plug(eal(), "net_null_a", &PortConfig::default(), &data).unwrap());
}

#[test]
fn port_with_an_alias_of_its_driver_is_known_by_the_driver() {
    let pool = pool("alias", 1023);
    let port = EthPort::plug(eal(), "eth_null9,no-rx=1", &PortConfig::default(), &pool).unwrap();
    assert_eq!((port.driver().as_str(), port.sees_receive_loss()), ("net_null", true));
}

#[test]
fn virtual_devices_say_that_they_have_no_flow_control() {
    let data = pool("flow control", 63);
    let null = EthPort::plug(eal(), "net_null_flow", &PortConfig::default(), &data).unwrap();
    assert_eq!(null.flow_control().err(), Some(-dpdk_sys::libc::ENOTSUP));
    let link = RingLink::new(eal(), "flow", 64, &PortConfig::default(), &data).unwrap();
    assert_eq!(link.switch.flow_control().err(), Some(-dpdk_sys::libc::ENOTSUP));
}

#[test]
fn errors_name_cause_and_remedy() {
    let data = pool("errors", 63);
    let plug = |devargs| EthPort::plug(eal(), devargs, &PortConfig::default(), &data).err().unwrap();
    let unknown = plug("net_nosuch0");
    assert_eq!(unknown, Error::UnknownDriver { device: "net_nosuch0".into() });
    assert!(unknown.to_string().contains("the name of a driver and a number"));
    let refused = plug("net_null0,sizes=64");
    assert!(matches!(refused, Error::DeviceRefused { .. }), "{refused}");
    assert!(refused.to_string().starts_with("the driver refused `net_null0,sizes=64`"), "{refused}");
    assert!(matches!(plug(""), Error::Invalid { .. }));
    assert!(matches!(plug("net null0"), Error::Invalid { .. }));
    assert!(matches!(plug("net_af_packet0"), Error::Invalid { .. } | Error::NoPermission { .. }));
    let open = |name| EthPort::open(eal(), name, &PortConfig::default(), &data).err().unwrap();
    assert!(matches!(open("net_nosuch0"), Error::NoSuchPort { .. }));
    let mtu = PortConfig { mtu: 9000, ..PortConfig::default() };
    let mtu = EthPort::plug(eal(), "net_null_mtu", &mtu, &data).err().unwrap();
    assert!(mtu.to_string().contains("have 2176 bytes and must have 9154"), "{mtu}");
    assert!(port::find("net_null_mtu").is_none());

    let create = |name, count, room| Mempool::create(eal(), name, count, room, 32, None).err().unwrap();
    assert!(create("errors", 63, 2176).to_string().contains("give each pool its own name"));
    assert!(matches!(create("", 63, 2176), Error::Invalid { .. }));
    assert!(matches!(create("a name that is much too long", 63, 2176), Error::Invalid { .. }));
    assert!(matches!(create("small", 63, 100), Error::Invalid { .. }));
    let huge = create("huge", 10_000_000, 2176);
    assert!(matches!(huge, Error::NoMemory { mib, .. } if mib > 20_000), "{huge}");

    let size = RingLink::new(eal(), "size", 0, &PortConfig::default(), &data).err().unwrap();
    assert!(matches!(size, Error::Invalid { .. }));
    let name = RingLink::new(eal(), "a,b", 64, &PortConfig::default(), &data).err().unwrap();
    assert!(matches!(name, Error::Invalid { .. }));
    assert_eq!(Eal::init(&EalOptions::default()).err(), Some(Error::AlreadyStarted));
}
