//! The exporter with ports in memory, files and a collector; and what the tests of this room share.

mod writers;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::mirror::facts::{PortFacts, SwitchFacts};
use crate::mirror::testing::hanging;
use crate::plan::counters::Counters;
use crate::plan::mirror::{CopyCause, CopyFrame, GroupState, MirrorSession, MirrorSpec, QueueState, SessionSet};
use crate::plan::{DropReason, SwitchSpec};
use crate::sets::{ClassSet, PortSet};
use crate::units::{BitRate, Bytes, Cells, Nanos, Ticks};

/// Four ports of 25 Gbit/s, `p0` to `p3`, with a lossless class 3.
pub fn facts() -> SwitchFacts {
    let port = |index: usize| PortFacts {
        name: format!("p{index}"),
        rate: BitRate(25_000_000_000),
        mtu: 1500,
        lossless: ClassSet::only(3),
        has_pfc: index == 3,
    };
    SwitchFacts { system: "tor1".to_owned(), program: "Holdfast", ports: (0..4).map(port).collect(), cell: Bytes(208) }
}

/// A copy with all state.
pub fn full_copy() -> CopyFrame {
    CopyFrame {
        bytes: (0..64).collect(),
        len: 1500,
        cause: CopyCause::Dropped(DropReason::QueueThreshold),
        sessions: SessionSet(1),
        spec_id: 1,
        at: Ticks(0),
        ingress: 3,
        egress: Some(0),
        vlan: Some(7),
        class: Some(3),
        group: Some(GroupState {
            group: 3,
            held: Cells(120),
            shared: Cells(108),
            limit: Cells(118),
            pool_free: Cells(40),
            headroom_left: Cells(5),
        }),
        queue: Some(QueueState { queue: 3, depth: Some(Cells(96)), limit: Some(Cells(90)) }),
    }
}

fn any_group() -> impl Strategy<Value = GroupState> {
    let cells = || any::<u32>().prop_map(Cells);
    let sizes = (cells(), cells(), cells(), cells(), cells());
    (any::<u8>(), sizes).prop_map(|(group, (held, shared, limit, pool_free, headroom_left))| GroupState {
        group,
        held,
        shared,
        limit,
        pool_free,
        headroom_left,
    })
}

fn any_queue() -> impl Strategy<Value = QueueState> {
    let cells = || prop::option::of(any::<u32>().prop_map(Cells));
    (any::<u8>(), cells(), cells()).prop_map(|(queue, depth, limit)| QueueState { queue, depth, limit })
}

fn any_cause() -> impl Strategy<Value = CopyCause> {
    let dropped = (0..DropReason::COUNT).prop_map(|index| CopyCause::Dropped(DropReason::TABLE[index].0));
    prop_oneof![3 => dropped, 1 => Just(CopyCause::Marked), 1 => Just(CopyCause::Sampled)]
}

/// Any copy, whether the switch could make it or not, except that it is no longer than its frame.
pub fn any_copy() -> impl Strategy<Value = CopyFrame> {
    let bytes = prop::collection::vec(any::<u8>(), 0..1600);
    let place = (any::<u8>(), prop::option::of(any::<u8>()));
    let class = (prop::option::of(any::<u16>()), prop::option::of(any::<u8>()));
    let state = (prop::option::of(any_group()), prop::option::of(any_queue()));
    (bytes, any::<u16>(), any_cause(), place, class, state).prop_map(|(bytes, beyond, cause, place, class, state)| {
        let len = (bytes.len() as u16).saturating_add(beyond);
        let ((ingress, egress), (vlan, class), (group, queue)) = (place, class, state);
        CopyFrame { bytes, len, cause, ingress, egress, vlan, class, group, queue, ..full_copy() }
    })
}

/// A generator of numbers (splitmix64).
pub fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Ports that keep their frames, and have room for `room`.
struct Wires {
    frames: Vec<(u8, Vec<u8>)>,
    room: usize,
}

impl Inject for Wires {
    fn inject(&mut self, port: u8, bytes: &[u8]) -> bool {
        if self.frames.len() == self.room {
            return false;
        }
        self.frames.push((port, bytes.to_vec()));
        true
    }
}

fn wires() -> Wires {
    Wires { frames: Vec::new(), room: usize::MAX }
}

fn switch() -> SwitchSpec {
    crate::config::embedded().switch
}

fn exporter() -> Exporter {
    let switch = switch();
    Exporter::new(&switch, "tor1", Arc::new(Counters::of(&switch)))
}

/// The configuration of `targets`, and sessions of `bytes` bytes with the number `id`.
fn sessions(targets: &[(&str, Destination)], bytes: u16, id: u32) -> (MirrorConfig, MirrorSpec) {
    let target = |(name, to): &(&str, Destination)| Target { name: (*name).to_owned(), to: to.clone() };
    let sessions = targets.iter().map(|_| MirrorSession { dropped: true, bytes, ..MirrorSession::default() });
    let spec = MirrorSpec { sessions: sessions.collect(), id, ..MirrorSpec::default() };
    (MirrorConfig { targets: targets.iter().map(target).collect(), sflow: None }, spec)
}

fn port(port: u8, has_trailer: bool) -> Destination {
    Destination::Port { port, has_trailer }
}

fn file(path: &Path) -> Destination {
    Destination::File(FileConfig { path: path.to_owned(), size: Bytes(1 << 20), files: 2 })
}

fn take(exporter: &mut Exporter, sessions: u16, id: u32, wires: &mut Wires) {
    let copy = CopyFrame { sessions: SessionSet(sessions), spec_id: id, ingress: 0, egress: Some(1), ..full_copy() };
    exporter.take(&copy, 5, Nanos(1), wires);
}

/// Waits until the writers of files have done all, and takes their counts.
#[track_caller]
fn settle(exporter: &mut Exporter, now: u64) {
    hanging::wait("the writers", || {
        exporter.flush(Nanos(now));
        exporter.is_idle()
    });
    exporter.flush(Nanos(now));
}

#[test]
fn ports_send_the_copied_bytes_padded_and_with_their_trailer() {
    let (mut exporter, mut wires) = (exporter(), wires());
    let (config, spec) = sessions(&[("a", port(1, false)), ("b", port(0, true))], 40, 1);
    exporter.configure(&config, &spec, Nanos(0));
    take(&mut exporter, 0b11, 1, &mut wires);
    let wanted: Vec<u8> = (0..40).chain([0; 20]).collect();
    assert_eq!(wires.frames[0], (1, wanted.clone()));
    let (port, frame) = &wires.frames[1];
    assert_eq!((*port, &frame[..60]), (0, &wanted[..]));
    assert!(frame[60..].starts_with(b"holdfast tor1: dropped queue_threshold: "), "{frame:?}");
    take(&mut exporter, 0b01, 1, &mut wires);
    assert_eq!((wires.frames.len(), wires.frames[2].0), (3, 1), "only the sessions of the copy");
}

#[test]
fn a_frame_and_its_trailer_fit_the_port() {
    let (mut exporter, mut wires) = (exporter(), wires());
    let (config, spec) = sessions(&[("a", port(1, true))], u16::MAX, 1);
    exporter.configure(&config, &spec, Nanos(0));
    let copy = CopyFrame { bytes: vec![1; 9022], len: 9022, ingress: 0, ..full_copy() };
    exporter.take(&copy, 5, Nanos(1), &mut wires);
    let frame = &wires.frames[0].1;
    assert_eq!(frame.len(), usize::from(switch().ports[1].mtu) + 18);
    assert!(frame.ends_with(b"queue 3: 96 of 90 cells"));
}

#[test]
fn copies_beyond_the_buffers_of_an_lcore_are_lost() {
    let (mut exporter, mut wires) = (exporter(), Wires { frames: Vec::new(), room: 2 });
    let (config, spec) = sessions(&[("a", port(1, false))], 128, 1);
    exporter.configure(&config, &spec, Nanos(0));
    for _ in 0..5 {
        take(&mut exporter, 1, 1, &mut wires);
    }
    let view = &exporter.view().sessions[0];
    assert_eq!((view.to.as_str(), view.copies, view.bytes, view.lost), ("port p2", 2, 128, 3));
    let error = "port p2: its lcore has no buffer for further copies; write a lower `rate` of the session";
    assert_eq!(view.error.as_deref(), Some(error));
    wires.frames.clear();
    take(&mut exporter, 1, 1, &mut wires);
    assert_eq!(exporter.view().sessions[0].error, None);
    exporter.tick(PortSet::only(0), Nanos(1));
    take(&mut exporter, 1, 1, &mut wires);
    let view = &exporter.view().sessions[0];
    assert_eq!((view.copies, view.lost, wires.frames.len()), (3, 4, 1));
    assert_eq!(view.error.as_deref(), Some("port p2: has no link; check its cable and its monitor"));
}

#[test]
fn a_reload_keeps_files_and_counts_and_discards_copies_of_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let (mut exporter, mut wires) = (exporter(), wires());
    let (config, spec) = sessions(&[("a", port(1, false)), ("f", file(&path))], 128, 1);
    exporter.configure(&config, &spec, Nanos(0));
    take(&mut exporter, 0b11, 1, &mut wires);
    let (config, spec) = sessions(&[("f", file(&path)), ("g", port(1, false))], 128, 2);
    exporter.configure(&config, &spec, Nanos(2));
    take(&mut exporter, 0b11, 1, &mut wires);
    take(&mut exporter, 0b01, 2, &mut wires);
    settle(&mut exporter, 3);
    let view = exporter.view();
    assert_eq!((view.stale, wires.frames.len()), (1, 1));
    assert_eq!(view.sessions.iter().map(|session| session.copies).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(crate::mirror::testing::pcapng_reader::packets(&std::fs::read(&path).unwrap()), [5, 5]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "the file stayed open");
    // Other lengths of copies need another section.
    let (config, spec) = sessions(&[("f", file(&path))], 64, 3);
    exporter.configure(&config, &spec, Nanos(4));
    settle(&mut exporter, 4);
    assert_eq!(crate::mirror::testing::pcapng_reader::packets(&std::fs::read(&path).unwrap()), [0; 0]);
    assert_eq!((exporter.view().sessions[0].copies, exporter.is_active()), (2, true));
    exporter.configure(&MirrorConfig::default(), &MirrorSpec::default(), Nanos(5));
    assert_eq!((exporter.view().sessions.len(), exporter.is_active()), (0, false));
}

#[test]
fn a_reload_may_rename_the_session_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (mut exporter, mut wires) = (exporter(), wires());
    for (id, name) in [(1, "a"), (2, "b")] {
        let (config, spec) = sessions(&[(name, file(&directory.path().join("f")))], 128, id);
        exporter.configure(&config, &spec, Nanos(0));
        take(&mut exporter, 1, id, &mut wires);
        settle(&mut exporter, 1);
        let view = &exporter.view().sessions[0];
        assert_eq!((view.copies, view.lost, view.error.as_ref()), (1, 0, None));
    }
}

#[test]
fn another_name_of_the_system_begins_files_that_state_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let (mut exporter, mut wires) = (exporter(), wires());
    let (config, spec) = sessions(&[("f", file(&path))], 128, 1);
    let states = |path: &Path, text: &str| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    exporter.configure(&config, &spec, Nanos(0));
    take(&mut exporter, 1, 1, &mut wires);
    exporter.set_facts(SwitchFacts { system: "tor2".to_owned(), ..facts() });
    exporter.configure(&config, &spec, Nanos(1));
    take(&mut exporter, 1, 1, &mut wires);
    settle(&mut exporter, 2);
    assert!(states(&directory.path().join("f.1"), "holdfast tor1: ") && !states(&path, "tor1"));
    assert!(states(&path, "p1 of tor2") && states(&path, "holdfast tor2: "));
    assert_eq!((exporter.view().sessions[0].copies, exporter.view().sessions[0].lost), (2, 0));
}

#[test]
fn a_file_that_cannot_be_written_costs_the_other_sessions_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut exporter, mut wires) = (exporter(), wires());
    let targets = [("f", file(&directory.path().join("no/f"))), ("a", port(1, false))];
    let (config, spec) = sessions(&targets, 128, 1);
    exporter.configure(&config, &spec, Nanos(0));
    take(&mut exporter, 0b11, 1, &mut wires);
    settle(&mut exporter, 1);
    let view = exporter.view();
    assert_eq!((view.sessions[0].lost, view.sessions[1].copies, wires.frames.len()), (1, 1, 1));
    assert!(view.sessions[0].error.as_ref().unwrap().contains("its directory is missing"), "{view:?}");
}

#[test]
fn collectors_get_samples_at_each_flush_and_errors_are_counted() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let (mut exporter, mut wires) = (exporter(), wires());
    let (mut config, spec) = sessions(&[("drops", Destination::Sflow)], 128, 1);
    let [no_port, other] = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| address.parse().unwrap());
    let collectors = vec![socket.local_addr().unwrap(), no_port, other];
    config.sflow = Some(SflowConfig { collectors, ..SflowConfig::default() });
    exporter.configure(&config, &spec, Nanos(0));
    exporter.tick(PortSet::ALL, Nanos(0));
    take(&mut exporter, 1, 1, &mut wires);
    exporter.flush(Nanos(1));
    let mut buffer = [0; 2000];
    let len = socket.recv(&mut buffer).unwrap();
    assert!(len <= 1400 && buffer[..8] == [0, 0, 0, 5, 0, 0, 0, 1]);
    let view = exporter.view();
    let sflow = view.sflow.unwrap();
    assert_eq!((sflow.collectors[0].datagrams, sflow.collectors[0].error.clone()), (sflow.datagrams, None));
    assert_eq!((sflow.send_errors, sflow.collectors[1].errors), (2 * sflow.datagrams, sflow.datagrams));
    let [one, two] = [1, 2].map(|collector: usize| sflow.collectors[collector].error.as_ref().unwrap());
    assert!(one.starts_with("127.0.0.1:0: ") && two.starts_with("127.0.0.2:0: "), "{one}, {two}");
    let both = format!("{one}; {two}");
    assert_eq!((sflow.error(), &view.sessions[0].error), (Some(both), &None), "each is shown once");
    assert_eq!(view.sessions[0].copies, 1);
}

proptest! {
    #[test]
    fn any_copy_is_exported_to_a_port(copy in any_copy(), bytes: u16) {
        let (mut exporter, mut wires) = (exporter(), wires());
        let (config, spec) = sessions(&[("a", port(1, true)), ("b", port(63, false))], bytes, 1);
        exporter.configure(&config, &spec, Nanos(0));
        exporter.take(&CopyFrame { sessions: SessionSet(0b11), ..copy }, 0, Nanos(1), &mut wires);
        let longest = usize::from(switch().ports[1].mtu) + 18;
        prop_assert!((60..=longest).contains(&wires.frames[0].1.len()));
    }
}
