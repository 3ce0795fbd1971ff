//! Tests on a real DPDK, without hugepages or privileges.
//!
//! EAL starts once per process. Under nextest each test has its own process. Under `cargo test` the tests share one
//! EAL, which is then never shut down. A test that needs its own process runs this test program again.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::OnceLock;

use dpdk_sys::libc;

use super::*;
use crate::io::{Burst, Packet, Ports};
use crate::sets::{BURST, ClassSet};

/// Environment variable set in a test that runs as its own process.
const CHILD: &str = "HOLDFAST_DPDK_TEST_CHILD";

pub(super) fn eal() -> &'static Eal {
    static EAL: OnceLock<Eal> = OnceLock::new();
    EAL.get_or_init(|| {
        let cpu = allowed_cpus()[0];
        // The worker shares the main lcore's CPU, as on a machine with one.
        Eal::init(&EalOptions { main_cpu: cpu, worker_cpus: vec![cpu], ..EalOptions::default() }).unwrap()
    })
}

pub(super) fn pool(name: &str, count: u32) -> Mempool {
    Mempool::create(eal(), name, count, 2048 + 128, 32, None).unwrap()
}

/// Creates a link with both ends started, and returns it with their queues.
fn link(name: &str, size: u32, pool: &Mempool) -> (RingLink, PortQueues, PortQueues) {
    let mut link = RingLink::new(eal(), name, size, &PortConfig::default(), pool).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    let (switch, host) = (link.switch.queues().unwrap(), link.host.queues().unwrap());
    (link, switch, host)
}

fn frame(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

/// Runs this test again as its own process. Returns true in that process.
pub(super) fn in_child(test: &str, as_nobody: bool) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    if as_nobody {
        command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "sh",
        ]);
        command.env_remove("XDG_RUNTIME_DIR").env("HOME", "/nonexistent");
    }
    // The user of the test may have no access to the program's path, so it is passed as an open file.
    let file = std::fs::File::open(program).unwrap();
    command.args(["-c", "exec /proc/self/fd/0 \"$@\"", "sh", "--exact", test, "--nocapture", "--test-threads=1"]);
    let output = command.stdin(file).current_dir("/").env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{} {text}", output.status);
    assert!(!text.contains("EAL:") && !text.contains("Usage:"), "DPDK wrote to the terminal: {text}");
    false
}

#[test]
fn frames_cross_a_link_both_ways_as_they_are() {
    let data = pool("cross", 1023);
    let (link, mut switch, mut host) = link("cross", 64, &data);
    for length in [1, 14, 60, 64, 1500, 2048] {
        for (seed, from_switch) in [(1, true), (2, false)] {
            let sent = frame(length, seed);
            let (from, to) = if from_switch { (&mut switch, &mut host) } else { (&mut host, &mut switch) };
            let mut burst = Burst::new();
            burst.push(data.alloc_with(&sent).unwrap());
            assert!(burst[0].begins_where_expected());
            from.tx(&mut burst);
            assert!(burst.is_empty());
            assert_eq!(to.rx(BURST, &mut burst), 0);
            assert_eq!(burst.len(), 1);
            assert_eq!(burst[0].bytes(), sent);
            assert_eq!(burst[0].len(), length);
            Mbuf::free_all(&mut burst);
        }
    }
    assert_eq!(data.in_use(), 0);
    assert_eq!(link.switch.stats().unwrap().opackets, 6);
    assert_eq!(link.switch.stats().unwrap().ipackets, 6);
    link.switch.reset_stats().unwrap();
    assert_eq!(link.switch.stats().unwrap(), PortStats::default());
    assert!(link.host.link().unwrap().up);
    assert_eq!(link.host.driver(), "net_ring");
    assert_eq!(link.host.mac().unwrap(), [0; 6]);
    assert_eq!(link.host.mtu().unwrap(), 1500);
}

#[test]
fn a_full_link_leaves_the_rest_with_the_sender_in_order() {
    let data = pool("full", 1023);
    let (_link, mut switch, mut host) = link("full", 80, &data);
    let mut sent = 0_u8;
    let mut left = Burst::new();
    for _ in 0..2 {
        left.extend((0..BURST - left.len()).map(|_| {
            sent += 1;
            data.alloc_with(&[sent; 60]).unwrap()
        }));
        switch.tx(&mut left);
    }
    assert_eq!(left.len(), 2 * BURST - 80, "the link holds exactly what it was made for");
    assert_eq!(left[0].bytes()[0], 81);
    let mut got = Burst::new();
    for expected in 1..=2 * BURST as u8 {
        if got.is_empty() {
            host.rx(BURST, &mut got);
            switch.tx(&mut left);
        }
        let first = got.remove(0);
        assert_eq!(first.bytes(), [expected; 60]);
        first.free();
    }
    assert!(left.is_empty() && got.is_empty());
    assert_eq!(data.in_use(), 0);
}

#[test]
fn rx_appends_up_to_the_room() {
    let data = pool("room", 255);
    let (_link, mut switch, mut host) = link("room", 64, &data);
    let mut burst: Burst<Mbuf> = (0..BURST).map(|_| data.alloc_with(&[7; 60]).unwrap()).collect();
    switch.tx(&mut burst);
    burst.extend((0..BURST - 3).map(|_| data.alloc_with(&[8; 60]).unwrap()));
    host.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST);
    assert_eq!(burst[BURST - 4].bytes()[0], 8);
    assert_eq!(burst[BURST - 3].bytes()[0], 7);
    host.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST, "no room, nothing taken");
    Mbuf::free_all(&mut burst);
    host.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST - 3);
    Mbuf::free_all(&mut burst);
    assert_eq!(data.in_use(), 0);
}

#[test]
fn frames_in_a_link_are_freed_when_its_last_queue_is_dropped() {
    let data = pool("left", 1023);
    // More links, one after the other, than DPDK has ports.
    for _ in 0..40 {
        let (link, mut switch, mut host) = link("left", 64, &data);
        let mut burst: Burst<Mbuf> = (0..20).map(|_| data.alloc_with(&[1; 60]).unwrap()).collect();
        switch.tx(&mut burst);
        burst.extend((0..20).map(|_| data.alloc_with(&[2; 60]).unwrap()));
        host.tx(&mut burst);
        assert_eq!(data.in_use(), 40);
        drop((switch, link));
        assert_eq!(data.in_use(), 40, "the host's queue still holds the link");
        drop(host);
        assert_eq!(data.in_use(), 0);
    }
}

#[test]
fn a_frame_grows_into_the_headroom_and_no_further() {
    let data = pool("push", 63);
    let mut packet = data.alloc_with(&frame(60, 3)).unwrap();
    assert!(packet.push_front(4));
    assert_eq!(packet.len(), 64);
    packet.bytes_mut()[..4].copy_from_slice(&[9; 4]);
    assert_eq!(packet.bytes()[4..], frame(60, 3));
    assert!(packet.push_front(HEADROOM - 4));
    assert!(!packet.push_front(1), "the headroom is used up");
    assert!(!packet.push_front(usize::MAX));
    assert_eq!(packet.len(), 60 + HEADROOM);
    assert!(packet.pull_front(HEADROOM));
    assert_eq!(packet.bytes(), frame(60, 3));
    assert!(!packet.pull_front(61));
    assert!(!packet.pull_front(usize::MAX));
    assert!(!packet.pull_front(65_536 + 1));
    assert!(packet.pull_front(60));
    assert!(packet.is_empty());
    assert!(!packet.set_frame(&[0; 2049]), "longer than the buffer");
    assert!(!packet.set_frame(&[0; 70_000]));
    assert!(packet.set_frame(&frame(2048, 4)));
    assert_eq!(packet.bytes(), frame(2048, 4));
    packet.free();
    assert_eq!(data.in_use(), 0);
    assert!(data.alloc_with(&[0; 2049]).is_none());
    assert_eq!(data.in_use(), 0);
}

#[test]
fn control_frames_have_buffers_when_data_has_none() {
    let (data, control) = (pool("io_data", 63), pool("io_control", 63));
    let (_link, switch, _host) = link("io", 64, &data);
    let mut io = EthIo::new(vec![None, Some(switch)], data.clone(), control.clone());
    assert_eq!(
        (io.len(), io.is_empty(), io.backlog(0, ClassSet::ALL), io.backlog(1, ClassSet::ALL)),
        (2, false, None, Some(0))
    );
    let mut all: Vec<Mbuf> = std::iter::from_fn(|| data.alloc_with(&frame(100, 5))).collect();
    assert_eq!((all.len(), data.available()), (63, 0));
    assert!(io.copy(&all[0]).is_none());
    let made = io.make(&frame(60, 6)).unwrap();
    assert_eq!(made.bytes(), frame(60, 6));
    let mut burst = Burst::new();
    burst.push(made);
    burst.push(all.pop().unwrap());
    io.free(&mut burst);
    let copy = io.copy(&all[0]).unwrap();
    assert_eq!(copy.bytes(), all[0].bytes());
    copy.free();
    all.into_iter().for_each(Mbuf::free);
    assert_eq!((data.in_use(), control.in_use(), io.refused()), (0, 0, 0));
    assert_eq!(io.into_queues().len(), 1);
}

#[test]
fn chained_and_shared_buffers_are_refused() {
    let data = pool("refuse", 255);
    let (_link, mut switch, mut host) = link("refuse", 64, &data);
    let mut burst: Burst<Mbuf> = (0..6_u8).map(|i| data.alloc_with(&[i; 60]).unwrap()).collect();
    let chained = data.alloc_with(&[9; 60]).unwrap();
    burst[1].chain_for_test(chained);
    burst[5].share_for_test();
    let shared = burst[5].alias_for_test();
    switch.tx(&mut burst);
    assert_eq!(host.rx(BURST, &mut burst), 2);
    assert_eq!(burst.iter().map(|packet| packet.bytes()[0]).collect::<Vec<_>>(), [0, 2, 3, 4]);
    Mbuf::free_all(&mut burst);
    assert_eq!(data.in_use(), 1, "the second reference");
    shared.free();
    assert_eq!(data.in_use(), 0);
}

#[test]
fn link_with_several_queues_keeps_their_frames_apart() {
    let data = pool("queues", 1023);
    let config = PortConfig { rx_queues: 3, ..PortConfig::default() };
    let mut link = RingLink::new(eal(), "queues", 8, &config, &data).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    let (mut switch, mut host) = (link.switch.queues().unwrap(), link.host.queues().unwrap());
    for (queue, frames) in [(0, 2_u8), (2, 9)] {
        let mut burst: Burst<Mbuf> = (0..frames).map(|i| data.alloc_with(&[queue as u8, i]).unwrap()).collect();
        host.tx_queue(queue, &mut burst);
        assert_eq!(burst.len(), usize::from(frames.saturating_sub(8)), "a full queue refuses the rest");
        Mbuf::free_all(&mut burst);
    }
    let waiting = |queues: &PortQueues| [0, 1, 2].map(|queue| queues.backlog(ClassSet::only(queue)));
    assert_eq!(waiting(&switch), [Some(2), Some(0), Some(8)]);
    assert_eq!(switch.backlog(ClassSet::ALL), Some(10));
    let mut burst = Burst::new();
    assert_eq!(switch.rx_queue(2, 5, &mut burst), 0);
    switch.rx(BURST, &mut burst);
    assert_eq!(burst.iter().map(|packet| packet.bytes()[0]).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 0, 0, 2, 2, 2]);
    assert_eq!(waiting(&switch), [Some(0); 3], "all queues in turn");
    host.rx(BURST, &mut burst);
    Mbuf::free_all(&mut burst);
    drop((switch, host));
    drop(link);
    assert_eq!(data.in_use(), 0, "frames in the rings are freed");
    let many = PortConfig { rx_queues: 5000, ..PortConfig::default() };
    let refused = EthPort::plug(eal(), "net_null_many", &many, &data).err();
    assert!(
        matches!(&refused, Some(Error::Invalid { what, .. }) if what.ends_with("5000 receive queues")),
        "{refused:?}"
    );
}

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
    assert!(find_port_is_gone("net_null_mtu"));

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

fn find_port_is_gone(name: &str) -> bool {
    super::port::find(name).is_none()
}

#[test]
fn lcores_run_return_and_panic() {
    let lcore = eal().workers()[0];
    // Only one test uses the worker.
    let thread = eal().launch(lcore, || std::thread::current().id()).unwrap().join().unwrap();
    assert_ne!(thread, std::thread::current().id());
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let worker = eal().launch(lcore, move || receive.recv().is_ok()).unwrap();
    assert!(!worker.is_finished());
    assert_eq!(worker.lcore(), lcore);
    assert!(matches!(eal().launch(lcore, || ()).err(), Some(Error::LcoreBusy { .. })));
    send.send(()).unwrap();
    assert!(worker.join().unwrap());
    let panicked = eal().launch(lcore, || panic!("of the test")).unwrap().join();
    assert_eq!(panicked, Err(Error::LcorePanicked { lcore: 1, message: "of the test".into() }));
    drop(eal().launch(lcore, || ()).unwrap());
    assert_eq!(eal().launch(lcore, || 5).unwrap().join(), Ok(5));
    let unknown = Lcore { id: 99, cpu: 0 };
    assert!(eal().launch(unknown, || ()).is_err());
}

#[test]
fn the_clock_runs_at_its_rate() {
    let off_by = || {
        let (start, instant) = (now(), std::time::Instant::now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, real) = (now().since(start), instant.elapsed());
        (ticks as f64 / hz(eal()) as f64 / real.as_secs_f64() - 1.0).abs()
    };
    // A preemption between the two readings spoils one try, but hardly all of them.
    let best = (0..10).map(|_| off_by()).fold(f64::INFINITY, f64::min);
    assert!(best < 0.05, "off by {best}");
}

#[test]
fn eal_init_refuses_invalid_options() {
    let init = |options: EalOptions| Eal::init(&options).err().unwrap();
    let cpu = init(EalOptions { worker_cpus: vec![8000], ..EalOptions::default() });
    assert!(cpu.to_string().starts_with("CPU 8000 is not among the CPUs this process may use"), "{cpu}");
    let first = allowed_cpus()[0];
    let many = init(EalOptions { worker_cpus: vec![first; 128], ..EalOptions::default() });
    assert!(matches!(many, Error::TooManyLcores { wanted: 129, limit: 128 }));
    let huge = init(EalOptions { memory: Memory::Huge { mib: Some(1 << 30) }, ..EalOptions::default() });
    assert!(matches!(huge, Error::NoHugepages { .. }), "{huge}");
    let pci = init(EalOptions { pci: vec!["ff:1f.7".into()], ..EalOptions::default() });
    assert_eq!(pci, Error::PciAbsent { address: "0000:ff:1f.7".into() });
    let help = init(EalOptions { extra: vec!["--help".into()], ..EalOptions::default() });
    assert!(matches!(help, Error::Invalid { .. }));
    for argument in ["-v", "--vers", "--proc-type=secondary"] {
        let refused = init(EalOptions { extra: vec![argument.into()], ..EalOptions::default() });
        assert!(matches!(refused, Error::Invalid { .. }), "{argument}");
    }
    let twice =
        init(EalOptions { vdevs: vec!["net_null0".into(), "net_null0,size=64".into()], ..EalOptions::default() });
    assert_eq!(twice, Error::DeviceExists { device: "net_null0".into() });
    let much = init(EalOptions { memory: Memory::NoHuge { mib: u32::MAX }, ..EalOptions::default() });
    assert!(much.to_string().contains("MiB are free"), "{much}");
    let zero = init(EalOptions { extra: vec!["a\0b".into()], ..EalOptions::default() });
    assert!(matches!(zero, Error::Invalid { .. }));
    let little = init(EalOptions { memory: Memory::NoHuge { mib: 1 }, ..EalOptions::default() });
    assert!(matches!(little, Error::Invalid { .. }));
}

#[test]
fn a_bad_device_at_the_start_is_an_error() {
    if !in_child("dpdk::tests::a_bad_device_at_the_start_is_an_error", false) {
        return;
    }
    let vdevs = vec!["net_null0".into(), "net_null1,sizes=1".into()];
    let error = Eal::init(&EalOptions { vdevs, ..EalOptions::default() }).err().unwrap();
    assert!(matches!(&error, Error::DeviceRefused { devargs, .. } if devargs == "net_null1,sizes=1"), "{error}");
}

#[test]
fn an_unknown_driver_at_the_start_is_an_error() {
    if !in_child("dpdk::tests::an_unknown_driver_at_the_start_is_an_error", false) {
        return;
    }
    let vdevs = vec!["net_nosuch0,a=b".into()];
    let error = Eal::init(&EalOptions { vdevs, ..EalOptions::default() }).err().unwrap();
    assert!(matches!(&error, Error::UnknownDriver { device } if device.starts_with("net_nosuch0")), "{error}");
}

#[test]
fn lcores_come_from_the_options_alone() {
    if !in_child("dpdk::tests::lcores_come_from_the_options_alone", false) {
        return;
    }
    let cpu = allowed_cpus()[0];
    let extra = vec!["--lcores".into(), format!("0@{cpu},7@{cpu}")];
    let error = Eal::init(&EalOptions { worker_cpus: vec![cpu], extra, ..EalOptions::default() }).err().unwrap();
    assert!(error.to_string().contains("lcores"), "{error}");
}

#[test]
fn a_bad_argument_at_the_start_is_an_error() {
    if !in_child("dpdk::tests::a_bad_argument_at_the_start_is_an_error", false) {
        return;
    }
    let extra = vec!["--no-such-option".into()];
    let error = Eal::init(&EalOptions { extra, ..EalOptions::default() }).err().unwrap();
    assert!(error.to_string().contains("--no-such-option"), "{error}");
    assert_eq!(Eal::init(&EalOptions::default()).err(), Some(Error::AlreadyStarted));
}

#[test]
fn a_buffer_outlives_its_pool_and_dpdk() {
    if !in_child("dpdk::tests::a_buffer_outlives_its_pool_and_dpdk", false) {
        return;
    }
    let options =
        EalOptions { file_prefix: Some(format!("holdfast-test-{}", std::process::id())), ..EalOptions::default() };
    let eal = Eal::init(&options).unwrap();
    assert!(!std::path::Path::new("/run/dpdk").join(options.file_prefix.unwrap()).exists(), "no file is left");
    let create = |name| Mempool::create(&eal, name, 63, 2176, 0, None).unwrap();
    let kept = create("kept").alloc_with(&frame(60, 1)).unwrap();
    // A pool without an owner is freed when its last buffer is back, at the latest with the EAL.
    create("returned").alloc_with(&frame(60, 2)).unwrap().free();
    drop(eal);
    assert_eq!(kept.bytes(), frame(60, 1));
    kept.free();
}

#[test]
fn everything_ends_in_any_order() {
    if !in_child("dpdk::tests::everything_ends_in_any_order", false) {
        return;
    }
    let cpu = allowed_cpus()[0];
    let eal = Eal::init(&EalOptions { worker_cpus: vec![cpu], ..EalOptions::default() }).unwrap();
    let data = Mempool::create(&eal, "data", 255, 2176, 32, None).unwrap();
    let mut link = RingLink::new(&eal, "order", 64, &PortConfig::default(), &data).unwrap();
    link.switch.start().unwrap();
    let mut queue = link.switch.queues().unwrap();
    let mut burst: Burst<Mbuf> = (0..9).map(|_| data.alloc_with(&[1; 60]).unwrap()).collect();
    let worker = eal.launch(eal.workers()[0], move || {
        queue.tx(&mut burst);
        queue
    });
    drop((data, link, eal));
    drop(worker.unwrap().join().unwrap());
    // The last share was dropped with the queue, and DPDK was shut down.
}

#[test]
fn nobody_may_run_it() {
    // SAFETY: geteuid only returns a number.
    let root = unsafe { dpdk_sys::libc::geteuid() } == 0;
    if !in_child("dpdk::tests::nobody_may_run_it", root) {
        return;
    }
    if root {
        return;
    }
    let eal = Eal::init(&EalOptions::default()).unwrap();
    let data = Mempool::create(&eal, "data", 255, 2176, 32, None).unwrap();
    let _link = RingLink::new(&eal, "user", 64, &PortConfig::default(), &data).unwrap();
    let _null = EthPort::plug(&eal, "net_null0", &PortConfig::default(), &data).unwrap();
    let tap = EthPort::plug(&eal, "net_tap0", &PortConfig::default(), &data).err().unwrap();
    assert!(matches!(tap, Error::NoPermission { .. } | Error::NoTun { .. }), "{tap}");
}

#[test]
fn a_wait_ends_no_earlier_than_asked() {
    let length = hz(eal()) / 5_000;
    for mut waiter in [Waiter::Pause, Waiter::sleep(eal())] {
        let until = crate::units::Ticks(now().0 + length);
        waiter.wait(None, until);
        // The kernel's timer has whole nanoseconds.
        assert!(now().0 + hz(eal()) / 1_000_000 >= until.0, "{waiter:?}");
        waiter.wait(None, crate::units::Ticks(0));
    }
}

#[test]
fn a_link_in_the_process_cannot_be_monitored() {
    let pool = pool("monitored", 1023);
    let (_link, switch, host) = link("monitored", 64, &pool);
    assert!(!switch.monitor(now()) && !host.monitor(now()));
}

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
    let lo = super::interface::index("lo").expect("loopback");
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
    let lo = super::interface::index("lo").expect("loopback");
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
