//! Virtual devices: arguments unknown to their drivers, impossible interface names, and unsupported MTUs.

use super::*;

fn port(device: &str, keys: &str) -> String {
    format!("ports:\n  - {{name: p1, speed: 10G, device: '{device}'{keys}}}\n")
}

#[test]
fn unknown_device_argument_is_refused_with_nearest_known_one() {
    for (device, what) in [
        ("net_tap0,ifase=hf0", "`ifase` is not an argument of `net_tap0`; did you mean `iface`?"),
        (
            "net_af_packet0,iface=e,framecount=4096",
            "`framecount` is not an argument of `net_af_packet0`; did you mean `framecnt`?",
        ),
        ("net_null0,sizes=64", "`sizes` is not an argument of `net_null0`; did you mean `size`?"),
        ("eth_null0,burst=64", "`burst` is not an argument of `eth_null0`; it takes size, copy, no-rx"),
        ("net_ring0,nodeactions=a", "`nodeactions` is not an argument of `net_ring0`; did you mean `nodeaction`?"),
        ("net_memif0,roll=server", "`roll` is not an argument of `net_memif0`; did you mean `role`?"),
        ("net_pcap0,rx_pkap=a.pcap", "`rx_pkap` is not an argument of `net_pcap0`; did you mean `rx_pcap`?"),
        ("net_vhost0,iface=/tmp/s,queue=1", "`queue` is not an argument of `net_vhost0`; did you mean `queues`?"),
        ("virtio_user0,pathh=/tmp/s", "`pathh` is not an argument of `virtio_user0`; did you mean `path`?"),
        ("net_tap0,", "`` is not an argument of `net_tap0`; it takes iface, remote, mac, persist"),
    ] {
        refuse(&port(device, ""), &format!("x.yaml:2:36: ports[0].device: {what}"));
    }
}

#[test]
fn arguments_that_the_drivers_know_are_accepted() {
    for device in [
        "net_tap0,iface=hf0,remote=eth0,mac=fixed,persist",
        "net_af_packet0,iface=eth0,qpairs=1,blocksz=4096,framesz=2048,framecnt=512,qdisc_bypass=0",
        "net_memif0,id=0,role=server,bsize=2048,rsize=10,socket=/tmp/a.sock,socket-abstract=no,zero-copy=no,secret=x",
        "net_null0,size=64,copy=0,no-rx=1",
        "net_pcap0,rx_pcap=a.pcap,tx_pcap=b.pcap,infinite_rx=0",
        // The path of a socket is no interface name.
        "net_vhost0,iface=/run/a-path-of-more-than-fifteen-bytes.sock,queues=1,client=1,tso=0",
        "virtio_user0,path=/dev/vhost-net,queues=1,queue_size=256,iface=hf0",
        // A driver whose arguments this program does not know.
        "net_bonding0,mode=1,slave=0000:3b:00.0",
    ] {
        accept(&port(device, ""));
    }
}

#[test]
fn an_interface_that_linux_cannot_have_is_refused() {
    let long = "`iface=sixteen-letters-` is not a network interface: the name has 16 bytes; write 1 to 15";
    for (device, what) in [
        ("net_tap0,iface=sixteen-letters-", long),
        ("net_af_packet0,iface=sixteen-letters-", long),
        ("net_tap0,iface=", "`iface=` is not a network interface: the name has 0 bytes; write 1 to 15"),
        ("net_tap0,iface=a/b", "`iface=a/b` is not a network interface; write a name without spaces, `/` and `:`"),
        (
            "net_af_packet0",
            "`net_af_packet0` has no interface; write one that exists, e.g. `net_af_packet0,iface=eth0`",
        ),
    ] {
        refuse(&port(device, ""), &format!("x.yaml:2:36: ports[0].device: {what}"));
    }
    accept(&port("net_tap0,iface=fifteen-letters", ""));
}

#[test]
fn an_mtu_beyond_the_device_is_refused_where_it_is_written() {
    refuse(
        &port("net_tap0", ", mtu: 1505"),
        "x.yaml:2:53: ports[0].mtu: `1505` is too large for `net_tap0`: its driver takes frames of at most 1522 B; write at most 1504, or use net_af_packet, which takes jumbo frames",
    );
    refuse(
        &port("net_memif0", ", mtu: 9000"),
        "x.yaml:2:55: ports[0].mtu: `9000` is too large for `net_memif0`: its driver takes frames of at most 1518 B; write at most 1500, or use net_af_packet, which takes jumbo frames",
    );
    refuse(
        &port("net_af_packet0,iface=e,framesz=4096", ", mtu: 9000"),
        "x.yaml:2:80: ports[0].mtu: `9000` is too large for `net_af_packet0` with `framesz=4096`; write at most 4008, or leave `framesz` and `blocksz` to Holdfast",
    );
    refuse(
        &port("net_af_xdp0,iface=e", ", mtu: 9000"),
        "x.yaml:2:64: ports[0].mtu: `9000` is too large for `net_af_xdp0`: its driver takes frames of at most 3578 B; write at most 3560, or use net_af_packet, which takes jumbo frames",
    );
    for (device, mtu) in [
        ("net_tap0", 1504),
        ("net_af_xdp0,iface=e", 3560),
        ("virtio_user0,path=/dev/vhost-net", 9600),
        ("net_memif0", 1500),
        ("net_af_packet0,iface=e", 9600),
        ("net_af_packet0,iface=e,framesz=4096", 4008),
        ("net_null0", 9600),
    ] {
        assert_eq!(accept(&port(device, &format!(", mtu: {mtu}"))).switch.ports[0].mtu, mtu, "{device}");
    }
}

#[test]
fn default_mtu_beyond_the_device_is_refused_at_the_device() {
    refuse(
        &port("net_af_packet0,iface=e,framesz=1024", ""),
        "x.yaml:2:36: ports[0].device: the `mtu` of 1500 is too large for `net_af_packet0` with `framesz=1024`; write `mtu: 936` or less, or leave `framesz` and `blocksz` to Holdfast",
    );
    assert_eq!(accept(&port("net_af_packet0,iface=e,framesz=1024", ", mtu: 936")).switch.ports[0].mtu, 936);
}

#[test]
fn af_packet_ring_that_the_kernel_rejects_is_refused() {
    for (arguments, what) in [
        (
            "framesz=2000",
            "`blocksz=4096` is not a multiple of both 4096 and `framesz` (2000); write e.g. `blocksz=512000`",
        ),
        ("framesz=2050", "`framesz=2050` is not possible; write a multiple of 16 up to 32768"),
        (
            "blocksz=5000",
            "`blocksz=5000` is not a multiple of both 4096 and `framesz` (2048); write e.g. `blocksz=4096`",
        ),
        ("framecnt=511", "`framecnt=511` is not a multiple of the 2 frames of a block; write e.g. `framecnt=512`"),
        ("framecnt=many", "`framecnt=many` is not a number; write a whole number (sizes in bytes)"),
    ] {
        let text = port(&format!("net_af_packet0,iface=e,{arguments}"), "");
        refuse(&text, &format!("x.yaml:2:36: ports[0].device: {what}"));
    }
}
