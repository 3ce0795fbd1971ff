//! The thread with rings whose lcores are the test.

use std::sync::OnceLock;

use super::*;
use crate::config::embedded;
use crate::mirror::testing::hanging::{open_hanging, set_hanging, wait};
use crate::mirror::testing::pcapng_reader::{Block, packets, read};
use crate::mirror::{Destination, FileConfig, Target};
use crate::plan::mirror::{MirrorSession, SessionSet};
use crate::units::Bytes;

/// Microseconds since the first call.
fn clock() -> Ticks {
    static START: OnceLock<Instant> = OnceLock::new();
    Ticks(START.get_or_init(Instant::now).elapsed().as_micros() as u64)
}

fn config(to: Destination, id: u32) -> Config {
    let mut config = embedded();
    config.mirror.targets = vec![Target { name: "all".to_owned(), to }];
    config.switch.mirror.sessions = [MirrorSession::default()].into_iter().collect();
    config.switch.mirror.id = id;
    config
}

fn start(prepared: Prepared, switch: &SwitchSpec) -> MirrorThread {
    let control = Arc::new(LcoreControl::new(usize::from(switch.lcores)));
    prepared.start(&control, &Arc::new(Counters::of(switch)), clock, 1_000_000).unwrap()
}

fn punt(port: &mut ExceptionPort<CopyFrame>, id: u32) -> bool {
    port.punt(&[7; 60], 0, |copy| {
        (copy.len, copy.at, copy.spec_id, copy.sessions) = (60, clock(), id, SessionSet(1));
    })
}

#[test]
fn copies_become_packets_with_the_time_of_day() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let file = FileConfig { path: path.clone(), size: Bytes(1 << 20), files: 2 };
    let config = config(Destination::File(file), 1);
    let (prepared, mut ends) = prepare(&config, "tor1", "Holdfast");
    let board = prepared.board();
    let thread = start(prepared, &config.switch);
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut sent = 0;
    wait("buffers", || {
        while sent < 2000 && punt(&mut ends[0], 1) {
            sent += 1;
        }
        sent == 2000
    });
    wait("a buffer", || punt(&mut ends[0], 2));
    thread.end();
    let view = board.view();
    assert_eq!((view.sessions[0].copies, view.stale, view.sessions[0].lost), (2000, 1, 0));
    let times = packets(&std::fs::read(&path).unwrap());
    let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert_eq!(times.len(), 2000);
    // A microsecond is the unit of the clock; the comparison of the clocks takes some.
    assert!(times.iter().all(|time| (before - 1_000_000..after + 1_000_000).contains(time)), "{before} {after}");
    assert!(times.is_sorted());
}

#[test]
fn a_thread_without_sessions_follows_a_reload() {
    let switch = embedded().switch;
    let (prepared, mut ends) = prepare(&embedded(), "tor1", "Holdfast");
    let board = prepared.board();
    let thread = start(prepared, &switch);
    wait("a first look", || board.view().sessions.is_empty());
    let config = config(Destination::Port { port: 1, has_trailer: true }, 5);
    thread.handle().configure("tor2", &config.mirror, &config.switch);
    wait("a session", || board.view().sessions.len() == 1);
    assert!(punt(&mut ends[0], 5));
    let owner = usize::from(switch.ports[1].lcore);
    wait("an injected frame", || ends[owner].waiting() == 1);
    let frame = ends[owner].take().unwrap();
    assert_eq!((frame.to, frame.vlan, &frame.bytes[..60]), (InjectTo::Link(1), 0, &[7; 60][..]));
    assert!(frame.bytes[60..].starts_with(b"holdfast tor2: "), "the name of the reload: {frame:?}");
    ends[owner].give_back(frame);
    thread.end();
}

fn has_packet(bytes: &[u8]) -> bool {
    read(bytes).is_ok_and(|blocks| matches!(blocks.last(), Some(Block::Packet { .. })))
}

#[test]
fn a_disk_that_hangs_keeps_neither_the_reload_nor_the_stop() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let to = FileConfig { path: path.clone(), size: Bytes(1 << 20), files: 2 };
    let before = config(Destination::File(to), 1);
    let (prepared, mut ends) = prepare(&before, "tor1", "Holdfast");
    let board = prepared.board();
    let control = Arc::new(LcoreControl::new(usize::from(before.switch.lcores)));
    let exporter = Exporter::new(&before.switch, "tor1", Arc::new(Counters::of(&before.switch)));
    let exporter = exporter.with_files(open_hanging);
    set_hanging(&path, true);
    let thread = prepared.start_with(exporter, &control, clock, 1_000_000).unwrap();
    assert!(punt(&mut ends[0], 1));
    // The copy waits for the writer by then; one that the thread had not taken would be stale after the reload.
    wait("the error of the file", || board.view().sessions.iter().any(|session| session.error.is_some()));
    let (events, _) = board.take_events();
    assert!(
        events.iter().any(|event| event.session == "all" && event.text().contains("has not finished a write")),
        "{events:?}"
    );
    let after = config(Destination::Port { port: 1, has_trailer: false }, 2);
    thread.handle().configure("tor1", &after.mirror, &after.switch);
    wait("the session of the reload", || board.view().sessions.iter().any(|session| session.to.starts_with("port")));
    assert!(punt(&mut ends[0], 2));
    let owner = usize::from(before.switch.ports[1].lcore);
    wait("an injected frame", || ends[owner].waiting() == 1);
    // The disk is still hanging when this returns.
    thread.end();
    assert!(!path.exists());
    set_hanging(&path, false);
    wait("the copy of before", || std::fs::read(&path).is_ok_and(|bytes| has_packet(&bytes)));
}
