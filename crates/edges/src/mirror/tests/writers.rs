//! Writers of files beside each other, with a disk that hangs.

use super::*;
use crate::mirror::testing::hanging::{open_hanging, set_hanging, wait};

const SECOND: u64 = 1_000_000_000;

/// A session of a hanging file `f`, of a file `g`, of port 1 and of sFlow, whose collector is `socket`.
struct Rig {
    exporter: Exporter,
    wires: Wires,
    socket: UdpSocket,
    directory: tempfile::TempDir,
    hanging: PathBuf,
    id: u32,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let exporter = exporter().with_files(open_hanging);
        let hanging = directory.path().join("f");
        Self { exporter, wires: wires(), socket, directory, hanging, id: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces the sessions.
    fn configure(&mut self, targets: &[(&str, Destination)], now: u64) {
        self.id += 1;
        let (mut config, spec) = sessions(targets, 128, self.id);
        let collectors = vec![self.socket.local_addr().unwrap()];
        config.sflow = Some(SflowConfig { collectors, ..SflowConfig::default() });
        self.exporter.configure(&config, &spec, Nanos(now));
    }

    /// Gives every session a copy.
    fn take(&mut self, now: u64) {
        let copy = CopyFrame { sessions: SessionSet(0xff), spec_id: self.id, ingress: 0, ..full_copy() };
        self.exporter.take(&copy, now, Nanos(now), &mut self.wires);
        self.exporter.flush(Nanos(now));
    }

    /// Waits until the session `name` has written `copies`.
    #[track_caller]
    fn wait_for(&mut self, name: &str, copies: u64, now: u64) {
        wait(&format!("{copies} copies of {name}"), || {
            self.exporter.flush(Nanos(now));
            self.session(name).copies >= copies
        });
        assert_eq!(self.session(name).copies, copies);
    }

    fn session(&self, name: &str) -> SessionView {
        self.exporter.view().session(name).unwrap().clone()
    }

    fn settle(&mut self, now: u64) {
        settle(&mut self.exporter, now);
    }
}

fn times(path: &Path) -> Vec<u64> {
    crate::mirror::testing::pcapng_reader::packets(&std::fs::read(path).unwrap())
}

#[test]
fn a_disk_that_hangs_holds_up_its_own_file_only_and_recovers() {
    let mut rig = Rig::new();
    let other = rig.path("g");
    let targets = [("f", file(&rig.hanging)), ("g", file(&other)), ("p", port(1, false)), ("s", Destination::Sflow)];
    rig.configure(&targets, 0);
    rig.settle(0);
    set_hanging(&rig.hanging, true);
    for at in 1..=5 {
        rig.take(at);
        rig.wait_for("g", at, at);
        let len = rig.socket.recv(&mut [0; 2000]).unwrap();
        assert!(len > 0);
    }
    assert_eq!(rig.wires.frames.len(), 5);
    assert_eq!((rig.session("p").copies, rig.session("s").copies), (5, 5));
    let hanging = rig.session("f");
    assert_eq!((hanging.copies, hanging.lost, hanging.error), (0, 0, None), "queued is not written");
    rig.exporter.flush(Nanos(6 * SECOND + SECOND / 2));
    let wanted = format!(
        "`{}`: has not finished a write for 6s; check whether the disk or network mount of `{}` hangs",
        rig.hanging.display(),
        rig.directory.path().display()
    );
    assert_eq!(rig.session("f").error.as_ref(), Some(&wanted));
    let shown = wanted.replace(&*rig.hanging.to_string_lossy(), "/var/log/holdfast/drops.pcapng");
    let shown = shown.replace(&*rig.directory.path().to_string_lossy(), "/var/log/holdfast").replace("6s", "12s");
    assert!(include_str!("../../../../../docs/mirror.md").contains(&format!("\nlosses: {shown}\n")), "{shown}");
    assert_eq!(rig.session("g").error, None);
    set_hanging(&rig.hanging, false);
    rig.wait_for("f", 5, 8 * SECOND);
    assert_eq!(times(&rig.hanging), [1, 2, 3, 4, 5]);
    rig.settle(8 * SECOND);
    assert_eq!((rig.session("f").lost, rig.session("f").error), (0, None));
}

#[test]
fn copies_beyond_the_queue_of_a_hanging_disk_are_lost_and_stated() {
    let mut rig = Rig::new();
    rig.configure(&[("f", file(&rig.hanging))], 0);
    rig.settle(0);
    set_hanging(&rig.hanging, true);
    let mut taken = 0;
    while rig.session("f").lost < 10 {
        taken += 1;
        assert!(taken < 1_000_000, "the queue is bounded");
        rig.take(taken);
    }
    let error = rig.session("f").error.unwrap();
    assert!(
        error.ends_with("its disk is too slow for the copies; write a lower `rate` or fewer `bytes` of the session")
    );
    set_hanging(&rig.hanging, false);
    rig.wait_for("f", taken - 10, taken);
    rig.take(taken + 1);
    rig.settle(taken + 5 * SECOND);
    assert_eq!((rig.session("f").lost, rig.session("f").error), (10, None));
    // The size of a file is 1 MiB: the newest one begins after the loss or shortly before it.
    let bytes = std::fs::read(&rig.hanging).unwrap();
    let Ok(blocks) = crate::mirror::testing::pcapng_reader::read(&bytes) else { panic!("unreadable") };
    assert!(
        matches!(blocks.last(), Some(crate::mirror::testing::pcapng_reader::Block::Packet { lost: 10, .. })),
        "it states the loss"
    );
}

#[test]
fn an_open_that_hangs_holds_up_its_own_file_only() {
    let mut rig = Rig::new();
    set_hanging(&rig.hanging, true);
    rig.configure(&[("f", file(&rig.hanging)), ("g", file(&rig.path("g")))], 0);
    rig.take(1);
    rig.wait_for("g", 1, 1);
    rig.exporter.flush(Nanos(4 * SECOND + SECOND / 2));
    assert!(rig.session("f").error.unwrap().contains("has not finished a write for 4s"));
    set_hanging(&rig.hanging, false);
    rig.wait_for("f", 1, 5 * SECOND);
}

#[test]
fn a_path_gets_no_second_writer_while_the_first_hangs() {
    let mut rig = Rig::new();
    rig.configure(&[("f", file(&rig.hanging))], 0);
    rig.settle(0);
    set_hanging(&rig.hanging, true);
    rig.take(1);
    // The path returns in a session with another name; another session has one of its older files.
    rig.configure(&[("s", Destination::Sflow)], 2);
    rig.configure(&[("h", file(&rig.hanging)), ("i", file(&rig.path("f.1"))), ("g", file(&rig.path("g")))], 3);
    rig.take(4);
    rig.wait_for("g", 1, 4);
    rig.exporter.flush(Nanos(5 * SECOND));
    for name in ["h", "i"] {
        let error = rig.session(name).error.unwrap();
        assert!(error.contains("waits for 4s for the last write of a file of the sessions before; check whether"));
    }
    assert!(!rig.path("f.1").exists() && times(&rig.hanging).is_empty());
    // Without `f.1`, which the new file of `f` would displace.
    rig.configure(&[("h", file(&rig.hanging)), ("g", file(&rig.path("g")))], 6 * SECOND);
    set_hanging(&rig.hanging, false);
    rig.wait_for("h", 1, 7 * SECOND);
    assert_eq!((times(&rig.path("f.1")), times(&rig.hanging)), (vec![1], vec![4]), "the first one has written all");
    rig.settle(7 * SECOND);
    assert_eq!((rig.session("h").lost, rig.session("h").error), (0, None));
}

#[test]
fn reloads_beside_a_hanging_disk_start_no_more_than_sixteen_threads() {
    let mut rig = Rig::new();
    let paths: Vec<PathBuf> = (0..40).map(|number| rig.path(&format!("f{number}"))).collect();
    for (number, path) in paths.iter().enumerate() {
        set_hanging(path, true);
        rig.configure(&[("f", file(path))], number as u64);
        rig.take(number as u64);
    }
    // The present session waits for a thread; those between had none, and their copies are lost.
    assert_eq!(rig.exporter.unfinished().len(), 17);
    paths.iter().for_each(|path| set_hanging(path, false));
    rig.wait_for("f", 1, 50);
    rig.settle(50);
    assert_eq!(paths.iter().filter(|path| path.exists()).count(), 17);
}

#[test]
fn closed_files_have_all_copies_and_release_their_locks() {
    let mut rig = Rig::new();
    rig.configure(&[("f", file(&rig.hanging))], 0);
    (1..=100).for_each(|at| rig.take(at));
    rig.exporter.close_files();
    wait("the end of the writer", || {
        rig.exporter.flush(Nanos(100));
        rig.exporter.unfinished().is_empty()
    });
    rig.exporter.flush(Nanos(100));
    assert_eq!((rig.session("f").copies, times(&rig.hanging).len()), (100, 100));
    rig.configure(&[("again", file(&rig.hanging))], 101);
    rig.settle(101);
    assert_eq!(rig.session("again").error, None);
}

#[test]
fn files_share_a_path_if_one_is_a_newer_or_older_one_of_the_other() {
    let config = |path: &str| FileConfig { path: path.into(), size: Bytes(1), files: 2 };
    let paths = ["/d/f", "/d/f.1", "/d/f.99", "/d/f.100", "/d/f.new", "/d/f.1.new", "/d/g", "/e/f", "/d/f1", "/d//f"];
    for (one, other) in paths.iter().flat_map(|one| paths.map(|other| (config(one), config(other)))) {
        let shared = one.paths().any(|path| other.paths().any(|other| path == other));
        assert_eq!(one.shares_path(&other), shared, "{one:?} {other:?}");
    }
}
