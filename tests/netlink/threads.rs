//! The watcher's thread: overruns, consumers that are late, and its end.

use std::time::{Duration, Instant};

use holdfast::netlink::{Change, Limits, Namespace, Options, Watcher};

use crate::rig::{Rig, machine_is_ready};
use crate::rules::without_dumps;

/// A file of routes for `ip -batch`.
fn batch(verb: &str, count: u32) -> tempfile::NamedTempFile {
    let lines: String = (0..count)
        .map(|number| format!("route {verb} 10.{}.{}.0/24 via 10.0.1.2\n", 64 + number / 256, number % 256))
        .collect();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), lines).expect("a writable file");
    file
}

#[test]
fn overrun_is_repaired_by_a_dump() {
    if !machine_is_ready() {
        return;
    }
    let options = Options { receive_buffer: 8 * 1024, gap: Duration::from_millis(1), ..Options::default() };
    let mut rig = Rig::new(1, options);
    // A watcher that gets the CPU for each message loses none, so it may take several rounds.
    let rounds = ["add", "del"].into_iter().cycle().take(20).enumerate();
    for (round, verb) in rounds {
        if round >= 2 && rig.counters.overruns > 0 {
            break;
        }
        let file = batch(verb, 4000);
        rig.ip(&format!("-batch {}", file.path().display()));
        rig.agree();
        rig.wait("synchronism", |rig| rig.is_synced);
    }
    assert!(rig.counters.overruns > 0, "{:?}", rig.counters);
    assert!(rig.counters.dumps > 1, "{:?}", rig.counters);
}

#[test]
fn changes_merge_while_the_consumer_is_late() {
    if !machine_is_ready() {
        return;
    }
    let options = Options { batch: 100, queue: 1, ..without_dumps() };
    let mut rig = Rig::new(1, options);
    rig.changes = 0;
    for verb in ["add", "del", "add"] {
        let file = batch(verb, 2000);
        rig.ip(&format!("-batch {}", file.path().display()));
    }
    rig.agree();
    assert_eq!((rig.counters.dumps, rig.counters.overruns), (1, 0));
    // Unmerged these would be 6,000. The consumer may get some of the first that are removed and added again.
    assert!((2000..4000).contains(&rig.changes), "{}", rig.changes);
}

#[test]
fn full_table_is_announced() {
    if !machine_is_ready() {
        return;
    }
    let rig = Rig::new(1, without_dumps());
    let file = batch("add", 200);
    rig.ip(&format!("-batch {}", file.path().display()));
    let limits = Limits { routes: 100, ..Limits::default() };
    let namespace = Namespace::open(&rig.name).expect("a namespace");
    let (_watcher, mut receiver) =
        Watcher::start(&namespace, Options { limits, ..Options::default() }).expect("a watcher");
    let batch = receiver.blocking_recv().expect("a batch");
    assert_eq!(batch.sizes.routes, 100);
    assert!(batch.counters.refused > 0);
    assert!(batch.changes.iter().any(|change| matches!(change, Change::Full { limit: 100, .. })), "{batch:?}");
}

#[test]
fn thread_ends_with_the_watcher_even_if_the_consumer_is_stuck() {
    if !machine_is_ready() {
        return;
    }
    let options = Options { batch: 1, queue: 1, ..Options::default() };
    let rig = Rig::new(2, without_dumps());
    let namespace = Namespace::open(&rig.name).expect("a namespace");
    let (watcher, receiver) = Watcher::start(&namespace, options).expect("a watcher");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(receiver.len(), 1, "a full queue");
    let start = Instant::now();
    drop(watcher);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    drop(receiver);
}

#[test]
fn idle_watcher_uses_no_cpu() {
    if !machine_is_ready() {
        return;
    }
    let rig = Rig::new(1, without_dumps());
    let before = cpu_ticks();
    std::thread::sleep(Duration::from_millis(1500));
    let after = cpu_ticks();
    // Without nextest, tests that run beside this one have watchers in the same process.
    if let ([before], [after]) = (before.as_slice(), after.as_slice()) {
        assert!(after - before <= 2, "{} ticks of 10 ms", after - before);
    }
    drop(rig);
}

/// CPU times of the watchers' threads of this process, in ticks of 10 ms.
fn cpu_ticks() -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let ticks = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, remaining) = stat.split_once(") ")?;
        let fields: Vec<&str> = remaining.split(' ').collect();
        let time = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
        name.ends_with("(hf-netlink").then_some(time)
    });
    ticks.collect()
}

#[test]
fn unknown_namespace_is_an_error_that_names_it() {
    let error = Namespace::open("holdfast-none").unwrap_err().to_string();
    assert!(error.starts_with("network namespace holdfast-none: "), "{error}");
    assert!(Namespace::open("../etc").is_err());
}
