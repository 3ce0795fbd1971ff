//! EAL starts and ends; lcores, the clock and waiting.

use super::*;

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
fn eal_init_refuses_invalid_options() {
    let init = |options: EalOptions| Eal::init(&options).err().unwrap();
    let cpu = init(EalOptions { worker_cpus: vec![8000], ..EalOptions::default() });
    assert!(cpu.to_string().starts_with("CPU 8000 is not among the CPUs this process may use"), "{cpu}");
    let first = allowed_cpus()[0];
    let many = init(EalOptions { worker_cpus: vec![first; 128], ..EalOptions::default() });
    assert!(matches!(many, Error::TooManyLcores { wanted: 129, limit: 128 }));
    let huge = init(EalOptions { memory: Memory::Huge { mib: Some(1 << 30) }, ..EalOptions::default() });
    assert!(matches!(huge, Error::NoHugepages { .. }), "{huge}");
    // Also with arguments of its driver.
    for nic in ["ff:1f.7", "0000:ff:1f.7,rxq_num=1"] {
        let pci = init(EalOptions { pci: vec![nic.into()], ..EalOptions::default() });
        assert_eq!(pci, Error::PciAbsent { address: "0000:ff:1f.7".into() });
    }
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
    if !in_child("dpdk::tests::start::a_bad_device_at_the_start_is_an_error", false) {
        return;
    }
    let vdevs = vec!["net_null0".into(), "net_null1,sizes=1".into()];
    let error = Eal::init(&EalOptions { vdevs, ..EalOptions::default() }).err().unwrap();
    assert!(matches!(&error, Error::DeviceRefused { devargs, .. } if devargs == "net_null1,sizes=1"), "{error}");
}

#[test]
fn an_unknown_driver_at_the_start_is_an_error() {
    if !in_child("dpdk::tests::start::an_unknown_driver_at_the_start_is_an_error", false) {
        return;
    }
    let vdevs = vec!["net_nosuch0,a=b".into()];
    let error = Eal::init(&EalOptions { vdevs, ..EalOptions::default() }).err().unwrap();
    assert!(matches!(&error, Error::UnknownDriver { device } if device.starts_with("net_nosuch0")), "{error}");
}

#[test]
fn lcores_come_from_the_options_alone() {
    if !in_child("dpdk::tests::start::lcores_come_from_the_options_alone", false) {
        return;
    }
    let cpu = allowed_cpus()[0];
    let extra = vec!["--lcores".into(), format!("0@{cpu},7@{cpu}")];
    let error = Eal::init(&EalOptions { worker_cpus: vec![cpu], extra, ..EalOptions::default() }).err().unwrap();
    assert!(error.to_string().contains("lcores"), "{error}");
}

#[test]
fn a_bad_argument_at_the_start_is_an_error() {
    if !in_child("dpdk::tests::start::a_bad_argument_at_the_start_is_an_error", false) {
        return;
    }
    let extra = vec!["--no-such-option".into()];
    let error = Eal::init(&EalOptions { extra, ..EalOptions::default() }).err().unwrap();
    assert!(error.to_string().contains("--no-such-option"), "{error}");
    assert_eq!(Eal::init(&EalOptions::default()).err(), Some(Error::AlreadyStarted));
}

#[test]
fn mbuf_may_outlive_its_mempool_and_the_eal() {
    if !in_child("dpdk::tests::start::mbuf_may_outlive_its_mempool_and_the_eal", false) {
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
fn eal_pools_and_ports_may_be_dropped_in_any_order() {
    if !in_child("dpdk::tests::start::eal_pools_and_ports_may_be_dropped_in_any_order", false) {
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
fn unprivileged_user_may_plug_rings_and_null_devices_but_no_tap() {
    // SAFETY: geteuid only returns a number.
    let root = unsafe { dpdk_sys::libc::geteuid() } == 0;
    if !in_child("dpdk::tests::start::unprivileged_user_may_plug_rings_and_null_devices_but_no_tap", root) {
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
