//! Ports of af_packet on the loopback of a network namespace.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use dpdk_sys::libc;

use super::*;

/// Runs `test` with a packet socket on the loopback of a network namespace of its own. Skips it unless this is root.
fn on_own_loopback(test: impl FnOnce(OwnedFd) + Send) {
    eal();
    let run = || {
        // SAFETY: takes a number, and moves this thread alone.
        let is_alone = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
        let mut up = Command::new("ip");
        up.args(["link", "set", "dev", "lo", "up"]);
        if !is_alone || !up.status().is_ok_and(|status| status.success()) {
            return eprintln!("skipped: only root makes network namespaces, by `ip`");
        }
        // SAFETY: takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, (libc::ETH_P_ALL as u16).to_be().into()) };
        assert!(socket >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: a descriptor made just now, which has no other owner.
        test(unsafe { OwnedFd::from_raw_fd(socket) });
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("the test passes"));
}

/// The number of the group of an af_packet port is that of another program's group in this namespace.
#[test]
fn af_packet_port_names_the_cause_if_its_fanout_group_is_taken() {
    on_own_loopback(plug_beside_a_group);
}

fn plug_beside_a_group(socket: OwnedFd) {
    let lo = interface::index("lo").expect("loopback");
    let group = (std::process::id() ^ lo) & 0xffff | libc::PACKET_FANOUT_LB << 16;
    // SAFETY: the socket is open, and the option is a local number of the given size.
    let status = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, (&raw const group).cast(), 4)
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    let data = pool("fanout", 1023);
    let error = EthPort::plug(eal(), "net_af_packet_hf9,iface=lo", &PortConfig::default(), &data)
        .err()
        .expect("a group of another kind")
        .to_string();
    assert!(error.contains("fanout group") && error.contains("another process number"), "{error}");
    drop(socket);
    EthPort::plug(eal(), "net_af_packet_hf9,iface=lo", &PortConfig::default(), &data)
        .expect("a port without the other program");
}

#[test]
fn frames_of_an_af_packet_port_keep_the_tpid_of_their_outermost_tag() {
    on_own_loopback(send_and_receive_tags);
}

fn send_and_receive_tags(socket: OwnedFd) {
    let lo = interface::index("lo").expect("loopback");
    let data = pool("tpid", 4095);
    let mut port = EthPort::plug(eal(), "net_af_packet_hf8,iface=lo", &PortConfig::default(), &data).expect("a port");
    port.start().expect("a start");
    let mut queues = port.queues().expect("its queues");
    let frame = |number: u8, tags: &[[u8; 4]]| -> Vec<u8> {
        let addresses = [2, 0x48, 0x46, 0xfe, 0, number, 2, 0x48, 0x46, 0xfe, 1, number];
        [&addresses[..], &tags.concat(), &[0x88, 0xb5], &[number; 46]].concat()
    };
    let (service, customer) = ([0x88, 0xa8, 0x60, 10], [0x81, 0, 0x40, 77]);
    let kinds: [&[[u8; 4]]; 6] =
        [&[], &[service], &[customer], &[service, customer], &[customer, service], &[[0x91, 0, 0, 5], customer]];
    let frames: Vec<Vec<u8>> = (0..60).map(|number| frame(number, kinds[usize::from(number) % 6])).collect();
    // SAFETY: an address is a struct of numbers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    (address.sll_family, address.sll_ifindex, address.sll_halen) = (libc::AF_PACKET as u16, lo.cast_signed(), 6);
    for frame in &frames {
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the socket is open; the frame and the address are read, with their sizes.
        let sent = unsafe {
            libc::sendto(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, (&raw const address).cast(), size)
        };
        assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
    }
    // The port sees each frame twice: when loopback sends it, and when it receives it without its tag.
    let mut seen = vec![0; frames.len()];
    let start = std::time::Instant::now();
    while seen.iter().any(|&copies| copies < 2) {
        assert!(start.elapsed().as_secs() < 20, "{seen:?}");
        let mut burst = Burst::new();
        queues.rx(BURST, &mut burst);
        for packet in &burst {
            let bytes = packet.bytes();
            if let [2, 0x48, 0x46, 0xfe, 0, number, ..] = *bytes {
                assert_eq!(bytes, frames[usize::from(number)], "{number}");
                seen[usize::from(number)] += 1;
            }
        }
        Mbuf::free_all(&mut burst);
    }
    drop((queues, port));
    assert_eq!(data.in_use(), 0);
}
