//! The exporter with copies, and the programs that read what it writes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use holdfast::mirror::{Exporter, Inject, MirrorConfig, SflowConfig, Target};
use holdfast::plan::exception::Buffered;
use holdfast::plan::mirror::{CopyCause, CopyFrame, GroupState, MirrorSession, MirrorSpec, QueueState, SessionSet};
use holdfast::plan::{Counters, DropReason};
use holdfast::units::{Cells, Nanos};

/// 2026-11-27 12:00:00.123456789 UTC in nanoseconds.
pub const TIME: u64 = 1_795_780_800_123_456_789;

/// No port takes frames.
pub struct NoPorts;

impl Inject for NoPorts {
    fn inject(&mut self, _: u8, _: &[u8]) -> bool {
        false
    }
}

/// The exporter of the embedded switch, called `tor1`, with sessions of 128 bytes to `targets`.
pub struct Rig {
    pub exporter: Exporter,
    pub counters: Arc<Counters>,
}

impl Rig {
    pub fn new(targets: Vec<Target>, sflow: Option<SflowConfig>) -> Self {
        let switch = holdfast::config::embedded().switch;
        let counters = Arc::new(Counters::of(&switch));
        let mut exporter = Exporter::new(&switch, "tor1", counters.clone());
        let sessions = targets.iter().map(|_| MirrorSession::default()).collect();
        let spec = MirrorSpec { sessions, id: 1, ..MirrorSpec::default() };
        exporter.configure(&MirrorConfig { targets, sflow }, &spec, Nanos(0));
        Self { exporter, counters }
    }

    /// Waits until the writers of files have written all.
    pub fn write_all(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        self.exporter.flush(Nanos(2));
        while !self.exporter.is_idle() {
            assert!(Instant::now() < end, "a file is not written");
            std::thread::sleep(Duration::from_millis(1));
            self.exporter.flush(Nanos(2));
        }
    }

    pub fn take(&mut self, copy: &CopyFrame, at: u64) {
        self.exporter.take(copy, at, Nanos(1), &mut NoPorts);
    }
}

/// A frame of UDP from port 1000 to `port` with VLAN 7 and priority 3, and 1,400 bytes of payload.
pub fn frame(port: u16) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .vlan(etherparse::VlanHeader::Single(etherparse::SingleVlanHeader {
            pcp: 3.try_into().unwrap(),
            drop_eligible_indicator: false,
            vlan_id: 7.try_into().unwrap(),
            ether_type: etherparse::EtherType::IPV4,
        }))
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1000, port);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[0x5a; 1400]).unwrap();
    frame
}

/// A copy of the first bytes of `frame(port)`, for session `session`, which met `cause` on its way from `p3` to `p1`.
pub fn copy(session: usize, cause: CopyCause, port: u16) -> CopyFrame {
    let frame = frame(port);
    let mut copy = CopyFrame::with_room(128);
    copy.bytes.extend_from_slice(&frame[..128]);
    copy.len = frame.len() as u16;
    (copy.cause, copy.spec_id) = (cause, 1);
    let mut sessions = SessionSet::default();
    sessions.insert(session);
    copy.sessions = sessions;
    (copy.ingress, copy.egress, copy.vlan, copy.class) = (2, Some(0), Some(7), Some(3));
    if cause != CopyCause::Sampled {
        let (held, shared, limit) = (Cells(120), Cells(108), Cells(118));
        let (pool_free, headroom_left) = (Cells(40), Cells(5));
        copy.group = Some(GroupState { group: 3, held, shared, limit, pool_free, headroom_left });
        copy.queue = Some(QueueState { queue: 3, depth: Some(Cells(96)), limit: Some(Cells(90)) });
    } else {
        copy.egress = None;
    }
    copy
}

pub const DROPPED: CopyCause = CopyCause::Dropped(DropReason::QueueThreshold);

/// The program `name`. If it is missing, prints that and returns `None`; with `CI=true` it panics if `is_packaged`.
pub fn program(name: &str, is_packaged: bool) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        let ci = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
        assert!(!ci || !is_packaged, "`{name}` is missing; `make test` installs it");
        eprintln!("skipped: `{name}` is not installed");
    }
    found
}

/// The output of a program that must succeed.
#[track_caller]
pub fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
