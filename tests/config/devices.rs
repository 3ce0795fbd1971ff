//! Virtual devices: arguments unknown to their drivers, impossible interface names, and unsupported MTUs.

use super::*;
use holdfast::config::model::SocketAccess;
use holdfast::pfc::PfcMode;

/// Returns a configuration with one port. Its peer is trusted if the device needs that.
fn port(device: &str, keys: &str) -> String {
    format!("ports:\n  - {{name: p1, speed: 10G, device: '{device}'{keys}{}}}\n", trust(device))
}

fn trust(device: &str) -> &'static str {
    let is_kernel = device.contains("path=/dev/vhost");
    if device.starts_with("net_memif") || device.starts_with("virtio_user") && !is_kernel {
        ", trust_peer: true"
    } else {
        ""
    }
}

#[test]
fn device_that_follows_its_peer_without_a_check_is_refused_without_the_word_for_it() {
    let text = |device: &str, keys: &str| format!("ports:\n  - {{name: p1, speed: 10G, device: '{device}'{keys}}}\n");
    for (device, name) in [
        ("net_memif0", "net_memif0"),
        ("net_memif7,role=client,id=1", "net_memif7"),
        ("net_virtio_user0,path=/run/a.sock", "net_virtio_user0"),
        ("virtio_user1,path=/run/a.sock,server=1", "virtio_user1"),
        ("virtio_user1", "virtio_user1"),
    ] {
        let why = format!(
            "the driver of `{name}` follows the descriptors of its peer without a check, so wrong ones end the switch; \
             write `trust_peer: true` if this peer is as trusted as the switch, or use `vhost:`, which checks them"
        );
        refuse(&text(device, ""), &format!("x.yaml:2:36: ports[0].device: {why}"));
        let column = 36 + device.len() + 2 + ", trust_peer: ".len();
        refuse(&text(device, ", trust_peer: false"), &format!("x.yaml:2:{column}: ports[0].trust_peer: {why}"));
        accept(&text(device, ", trust_peer: true"));
    }
}

#[test]
fn trust_in_a_peer_is_refused_where_the_driver_checks_it() {
    for device in ["net_tap0", "vhost:/run/a.sock", "net_vhost0,iface=/run/a.sock", "virtio_user0,path=/dev/vhost-net"]
    {
        let column = 36 + device.len() + 2 + ", trust_peer: ".len();
        refuse(
            &format!("ports:\n  - {{name: p1, speed: 10G, device: '{device}', trust_peer: true}}\n"),
            &format!(
                "x.yaml:2:{column}: ports[0].trust_peer: only net_memif and net_virtio_user follow a peer without a check; \
                 remove it"
            ),
        );
    }
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

#[test]
fn queues_default_to_one_for_each_priority_with_pfc_by_queue() {
    let queues = |device: &str, keys: &str| {
        let keys = format!("{keys}{}", trust(device));
        accept(&format!("preset: roce\nports: [{{name: p1, device: \"{device}\", speed: 10G{keys}}}]\n")).devices[0]
            .queues
    };
    assert_eq!(queues("net_vhost0,iface=/run/a.sock", ""), 1);
    assert_eq!(queues("net_vhost0,iface=/run/a.sock", ", pfc: queue"), 8);
    assert_eq!(queues("net_vhost0,iface=/run/a.sock", ", pfc: queue, queues: 2"), 2);
    assert_eq!(queues("net_vhost0,iface=/run/a.sock,queues=4", ", pfc: queue"), 4);
    assert_eq!(queues("net_memif0", ", pfc: queue"), 1);
}

#[test]
fn queues_of_a_nic_without_lossless_frames_get_a_warning() {
    let text = |keys: &str| {
        format!("preset: roce\nports: [{{name: p1, device: \"0000:3b:00.0\", speed: 10G, queues: 3{keys}}}]\n")
    };
    assert_eq!(accept(&text("")).devices[0].queues, 3);
    let idle = "no frame here is lossless, so nothing is steered to its receive queues; write `queues: 1`";
    let warnings = |keys: &str| accept(&text(keys)).warnings.concat();
    assert!(!warnings("").contains(idle), "{}", warnings(""));
    let lossy = accept(&text("").replace("preset: roce\n", "")).warnings.concat();
    assert!(warnings(", pfc: off").contains(idle) && lossy.contains(idle), "{lossy}");
    refuse(
        &text(", pfc: queue"),
        "x.yaml:2:72: ports[0].pfc: `queue` stops no sender at `0000:3b:00.0`: its receive \
        queue overflows while it is not polled; write `pfc: software`, or use `device: ring`, vhost or net_memif",
    );
}

#[test]
fn queues_that_a_device_does_not_have_are_refused() {
    let text = |device: &str, keys: &str| {
        format!("preset: roce\nports:\n- name: p1\n  device: \"{device}\"\n  speed: 10G\n{keys}\n")
    };
    refuse(
        &text("net_tap0", "  queues: 2"),
        "x.yaml:6:11: ports[0].queues: only NICs by PCI address, vhost and `device: ring` have several receive \
         queues; write `queues: 1`",
    );
    refuse(
        &text("net_vhost0,iface=/run/a.sock,queues=4", "  queues: 2"),
        "x.yaml:6:11: ports[0].queues: `2` differs from `queues=4` of the device; leave one of them out",
    );
    refuse(
        &text("net_tap0,a\\nb", ""),
        "x.yaml:4:11: ports[0].device: `a\\nb` is not an argument of `net_tap0`; it takes iface, remote, mac, persist",
    );
    for queues in ["0", "9", "x"] {
        refuse(
            &text(&format!("net_vhost0,iface=/run/a.sock,queues={queues}"), ""),
            &format!(
                "x.yaml:4:11: ports[0].device: `queues={queues}` is not a number of queues that a port can have; write 1 to 8"
            ),
        );
    }
    refuse(
        &text("net_tap0", "  pfc: queue"),
        "x.yaml:6:8: ports[0].pfc: `queue` stops no sender at `net_tap0`: its receive queue overflows while it is not \
         polled; write `pfc: software`, or use `device: ring`, vhost or net_memif",
    );
    let one = accept(&text("net_memif0", "  pfc: queue\n  queues: 1\n  trust_peer: true"));
    assert!(one.warnings[0].contains("with one receive queue, XOFF of a lossless class stops all classes"));
}

/// Returns a configuration with one port at a socket.
fn socket(device: &str, keys: &str) -> String {
    format!("preset: roce\nports:\n- name: vm1\n  device: \"{device}\"\n  speed: 10G\n{keys}\n")
}

#[test]
fn vhost_socket_has_pfc_by_queue_and_access_for_its_owner_alone() {
    let config = accept(&socket("vhost:/run/holdfast/vm1.sock", ""));
    let (device, port) = (&config.devices[0], &config.switch.ports[0]);
    assert_eq!((device.kind.to_string().as_str(), device.queues), ("vhost:/run/holdfast/vm1.sock", 8));
    assert_eq!((port.pfc, port.rx_queues), (PfcMode::Queue, 8));
    assert_eq!(device.socket, SocketAccess { owner: None, group: None, mode: 0o600 });
    let access =
        |keys: &str| accept(&socket("vhost:/run/a", &format!("  socket: {{{keys}}}"))).devices[0].socket.clone();
    assert_eq!((access("group: kvm").group, access("group: kvm").mode), (Some("kvm".to_owned()), 0o660));
    assert_eq!(
        (access("owner: qemu, mode: \"0666\"").owner, access("mode: \"0666\"").mode),
        (Some("qemu".to_owned()), 0o666)
    );
    let frames = accept(&socket("vhost:/run/a", "  pfc: software")).switch.ports[0].clone();
    assert_eq!((frames.pfc, frames.rx_queues), (PfcMode::Symmetric, 1));
}

#[test]
fn vhost_socket_that_cannot_be_is_refused() {
    for (device, message) in [
        ("vhost:vm1.sock", "names no absolute path of a socket; write e.g. \"vhost:/run/holdfast/vm1.sock\""),
        ("vhost:/run/a,b", "has a comma in its path; choose another path"),
    ] {
        refuse(&socket(device, ""), &format!("x.yaml:4:11: ports[0].device: `{device}` {message}"));
    }
    let long = format!("vhost:/{}", "a".repeat(107));
    refuse(
        &socket(&long, ""),
        "x.yaml:4:11: ports[0].device: 108 bytes are too many for the path of a socket; write at most 107",
    );
    refuse(
        &socket("net_tap0", "  socket: {group: kvm}"),
        "x.yaml:6:11: ports[0].socket: only a port with `device: vhost:PATH` has a socket; remove it",
    );
    refuse(
        &socket("vhost:/run/a", "  socket: {mode: rw}"),
        "x.yaml:6:18: ports[0].socket.mode: `rw` is not a mode in octal; write e.g. \"0660\"",
    );
}
