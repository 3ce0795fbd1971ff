//! Rotation, errors of writing, and files that others move.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::mirror::testing::pcapng_reader::{Block, packets, read};
use crate::mirror::tests::{facts, random};
use crate::units::Bytes;

const SECOND: u64 = 1_000_000_000;
/// Bytes of a packet of `push` that states no loss.
const PACKET: u64 = 116;

fn preamble() -> Vec<u8> {
    let mut bytes = Vec::new();
    pcapng::section(&mut bytes, &facts(), 128);
    bytes
}

fn config(path: &Path, size: u64, files: u8) -> FileConfig {
    FileConfig { path: path.to_owned(), size: Bytes(size), files }
}

fn push<S: Store>(file: &mut PcapFile<S>, at: u64, now: u64) {
    let packet = Packet { port: (at % 4) as u8, at, bytes: &[at as u8; 60], len: 60, comment: "comment" };
    file.push(&packet, Nanos(now));
}

/// Times of the packets of a file, which must be whole.
fn times(path: &Path) -> Vec<u64> {
    packets(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn older(path: &Path, age: u8) -> PathBuf {
    PathBuf::from(format!("{}.{age}", path.display()))
}

#[test]
fn files_are_rotated_by_size_and_the_oldest_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drops.pcapng");
    let size = preamble().len() as u64 + 400;
    let mut file = PcapFile::new(config(&path, size, 3), preamble());
    for at in 0..14 {
        push(&mut file, at, 1);
        file.flush(Nanos(1));
    }
    assert_eq!((file.take_counts().copies, file.error()), (14, None));
    assert_eq!(
        [&path, &older(&path, 1), &older(&path, 2)].map(|path| times(path)),
        [vec![12, 13], vec![9, 10, 11], vec![6, 7, 8]]
    );
    assert!(fs::metadata(older(&path, 1)).unwrap().len() <= size);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777 & !0o640, 0);
}

#[test]
fn a_packet_larger_than_the_size_has_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let mut file = PcapFile::new(config(&path, 1, 2), preamble());
    for at in 0..3 {
        push(&mut file, at, 1);
    }
    file.flush(Nanos(1));
    assert_eq!((times(&path), times(&older(&path, 1))), (vec![2], vec![1]));
}

#[test]
fn files_of_an_earlier_run_are_kept_unless_they_have_no_packet() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let other = [&preamble()[..], &[0; 20]].concat();
    fs::write(&path, &other).unwrap();
    for run in 0..3 {
        let mut file = PcapFile::new(config(&path, 1 << 20, 4), preamble());
        file.flush(Nanos(1));
        assert_eq!(times(&path), [0; 0], "run {run}");
    }
    assert_eq!(fs::read(older(&path, 1)).unwrap(), other);
    assert!(!older(&path, 2).exists());
    let mut file = PcapFile::new(config(&path, 1 << 20, 4), preamble());
    push(&mut file, 7, 1);
    file.flush(Nanos(1));
    drop(file);
    PcapFile::new(config(&path, 1 << 20, 4), preamble()).flush(Nanos(1));
    assert_eq!((times(&path), times(&older(&path, 1))), (vec![], vec![7]));
    assert_eq!(fs::read(older(&path, 2)).unwrap(), other);
}

#[test]
fn a_batch_is_written_by_the_flush_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let mut file = PcapFile::new(config(&path, 1 << 20, 1), preamble());
    for at in 0..100 {
        push(&mut file, at, 1);
    }
    assert_eq!(times(&path), [0; 0]);
    file.flush(Nanos(1));
    assert_eq!(times(&path), (0..100).collect::<Vec<_>>());
    // Without a flush for long, the batch stays bounded.
    for at in 100..3000 {
        push(&mut file, at, 1);
    }
    assert!(times(&path).len() > 2000 && file.batch.len() < BATCH, "{}", file.batch.len());
}

#[test]
fn a_removed_directory_is_reported_and_the_file_returns_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, path) = (directory.path().join("in"), directory.path().join("in/f"));
    fs::create_dir(&inside).unwrap();
    let mut file = PcapFile::new(config(&path, 1 << 20, 2), preamble());
    push(&mut file, 1, 1);
    file.flush(Nanos(1));
    fs::remove_dir_all(&inside).unwrap();
    // The packets between the removal and the next look reach the removed file.
    push(&mut file, 2, SECOND + 1);
    file.flush(Nanos(SECOND + 1));
    let error = file.error().unwrap().to_owned();
    assert_eq!(error, format!("`{}`: its directory is missing; create `{}`", path.display(), inside.display()));
    push(&mut file, 3, SECOND + 2);
    assert_eq!(file.take_counts(), Counts { copies: 1, bytes: PACKET, lost: 2 });
    fs::create_dir(&inside).unwrap();
    file.flush(Nanos(2 * SECOND));
    assert!(!path.exists(), "a second has not passed");
    push(&mut file, 6, 2 * SECOND + 1);
    file.flush(Nanos(2 * SECOND + 1));
    assert_eq!((times(&path), file.error()), (vec![6], None));
    let Ok(blocks) = read(&fs::read(&path).unwrap()) else { panic!("unreadable") };
    assert!(matches!(blocks.last(), Some(Block::Packet { lost: 1, port: 2, .. })), "it states the loss of its port");
}

#[test]
fn a_file_that_is_moved_or_emptied_is_begun_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let mut file = PcapFile::new(config(&path, 1 << 20, 2), preamble());
    let step = |file: &mut PcapFile, at: u64| {
        push(file, at, at * 2 * SECOND);
        file.flush(Nanos(at * 2 * SECOND));
    };
    step(&mut file, 1);
    fs::rename(&path, directory.path().join("taken")).unwrap();
    step(&mut file, 2);
    assert_eq!((times(&directory.path().join("taken")), times(&path)), (vec![1], vec![2]));
    fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    step(&mut file, 3);
    assert_eq!(times(&path), [3]);
}

#[test]
fn links_directories_and_devices_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let target = directory.path().join("target");
    let refusal = |path: &Path| {
        let mut file = PcapFile::new(config(path, 1 << 20, 2), preamble());
        push(&mut file, 1, 1);
        file.flush(Nanos(1));
        assert_eq!(file.take_counts(), Counts { lost: 1, ..Counts::default() });
        file.error().expect("an error").to_owned()
    };
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(
        refusal(&path).ends_with("` is a symbolic link; write another path in the configuration, or remove the link")
    );
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(refusal(directory.path()).ends_with("` is a directory; write another path in the configuration"));
    let device = "`/dev/full` is not a regular file; write another path in the configuration";
    assert_eq!(refusal(Path::new("/dev/full")), device);
    assert!(refusal(&directory.path().join("no/f")).contains("its directory is missing; create"));
}

#[test]
fn directory_that_takes_no_files_is_not_told_as_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let expected =
        format!("`{}`: no file can be created in `{}`; write another path", path.display(), directory.path().display());
    assert_eq!(disk::explain(&io::ErrorKind::NotFound.into(), &path), expected);
}

/// Writes a packet with a new writer of `path`. Returns the writer and its error.
fn write_once(path: &Path, files: u8) -> (PcapFile, Option<String>) {
    let mut file = PcapFile::new(config(path, 1 << 20, files), preamble());
    push(&mut file, 1, 1);
    file.flush(Nanos(1));
    let error = file.error().map(str::to_owned);
    assert_eq!(file.take_counts().lost, u64::from(error.is_some()), "{error:?}");
    (file, error)
}

#[test]
fn files_of_others_are_neither_written_nor_displaced_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("syslog");
    let new = PathBuf::from(format!("{}.new", path.display()));
    let foreign = |path: &Path| format!("`{}` is not a pcapng file; write another path, or move it", path.display());
    for (other, files) in [(&path, 1), (&path, 3), (&new, 3), (&older(&path, 1), 3), (&older(&path, 2), 3)] {
        // Packets in every file before it, so that a rotation would reach it.
        for age in (0..3).map(|age| if age == 0 { path.clone() } else { older(&path, age) }) {
            fs::write(age, [&preamble()[..], &[0; 20]].concat()).unwrap();
        }
        fs::write(other, "a line").unwrap();
        let before = |path: &Path| fs::read(path).unwrap();
        let all = [path.clone(), older(&path, 1), older(&path, 2)];
        let contents = all.each_ref().map(|path| before(path));
        let (mut file, error) = write_once(&path, files);
        assert_eq!(error, Some(foreign(other)));
        assert_eq!(all.each_ref().map(|path| before(path)), contents);
        // A second after it was moved, the file is written.
        fs::rename(other, directory.path().join("moved")).unwrap();
        push(&mut file, 2, SECOND + 1);
        file.flush(Nanos(SECOND + 1));
        assert_eq!((file.error(), times(&path)), (None, vec![2]));
        assert_eq!(fs::read(directory.path().join("moved")).unwrap(), b"a line");
    }
    // One that a switch left when it ended at that point.
    for left in [&[][..], &preamble()[..7]] {
        fs::write(&new, left).unwrap();
        assert_eq!((write_once(&path, 1).1, new.exists()), (None, false));
    }
    // An empty file of the path is replaced, and displaces none.
    assert_eq!(write_once(&path, 3).1, None);
    fs::write(&path, "").unwrap();
    assert_eq!((write_once(&path, 3).1, times(&path)), (None, vec![1]));
    assert!(older(&path, 1).exists() && !older(&path, 2).exists());
}

#[test]
fn file_of_an_earlier_run_is_replaced_if_only_one_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    drop(write_once(&path, 1));
    PcapFile::new(config(&path, 1 << 20, 1), preamble()).flush(Nanos(1));
    assert_eq!((times(&path), fs::read_dir(directory.path()).unwrap().count()), (vec![], 1));
}

#[test]
fn files_that_another_writer_holds_are_refused_until_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let held =
        |path: &Path| Some(format!("`{}`: another switch or mirror writes it; write another path", path.display()));
    let (first, _) = write_once(&path, 3);
    assert_eq!(write_once(&path, 3).1, held(&path));
    assert_eq!(write_once(&path, 1).1, held(&path));
    // The first one's file is an older one of the other: it may be neither renamed nor removed.
    fs::rename(&path, older(&path, 1)).unwrap();
    fs::write(&path, [&preamble()[..], &[0; 20]].concat()).unwrap();
    assert_eq!(write_once(&path, 3).1, held(&older(&path, 1)));
    let (second, error) = write_once(&path, 1);
    assert_eq!((error, times(&older(&path, 1))), (None, vec![1]));
    drop((first, second));
    assert_eq!(write_once(&path, 3).1, None);
    assert_eq!([0, 1, 2].map(|age| if age == 0 { times(&path) } else { times(&older(&path, age)) }), [[1], [1], [1]]);
}

#[test]
fn rotation_stops_at_the_first_gap() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let mut file = PcapFile::new(config(&path, 1, 4), preamble());
    let step = |file: &mut PcapFile, at: u64| {
        push(file, at, at * 2 * SECOND);
        file.flush(Nanos(at * 2 * SECOND));
    };
    (0..4).for_each(|at| step(&mut file, at));
    let kept = || [1, 2, 3].map(|age| older(&path, age)).map(|path| path.exists().then(|| times(&path)[0]));
    assert_eq!((times(&path), kept()), (vec![3], [Some(2), Some(1), Some(0)]));
    fs::rename(&path, directory.path().join("taken")).unwrap();
    step(&mut file, 4);
    assert_eq!((times(&path), kept()), (vec![4], [Some(2), Some(1), Some(0)]), "the oldest stays");
    fs::remove_file(older(&path, 2)).unwrap();
    step(&mut file, 5);
    assert_eq!((times(&path), kept()), (vec![5], [Some(4), Some(2), Some(0)]), "files before the gap move");
    step(&mut file, 6);
    assert_eq!((times(&path), kept()), (vec![6], [Some(5), Some(4), Some(2)]));
}

#[test]
fn files_beyond_a_smaller_number_are_removed_if_they_are_pcapng_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let fill = || {
        (1..6).chain([99]).for_each(|age| fs::write(older(&path, age), preamble()).unwrap());
        fs::write(older(&path, 4), "a line").unwrap();
        fs::write(older(&path, 98), "").unwrap();
    };
    let ages = || (1..=u8::MAX).filter(|age| older(&path, *age).exists()).collect::<Vec<_>>();
    fill();
    let mut file = PcapFile::new(config(&path, 1 << 20, 100), preamble());
    file.flush(Nanos(1));
    assert_eq!(ages(), [1, 2, 3, 4, 5, 98, 99]);
    file.configure(config(&path, 1 << 20, 3), preamble(), Nanos(2));
    assert_eq!(ages(), [1, 2, 4, 98]);
    drop(file);
    // A restart with a smaller number.
    fill();
    PcapFile::new(config(&path, 1 << 20, 2), preamble()).flush(Nanos(1));
    assert_eq!(ages(), [1, 4, 98]);
}

#[test]
fn errors_have_the_remedies_of_the_page() {
    let path = Path::new("/var/log/holdfast/drops.pcapng");
    let page = include_str!("../../../../../docs/mirror.md");
    let explain = |kind: io::ErrorKind| disk::explain(&kind.into(), path);
    assert!(page.contains(&format!("\nlosses: {}\n", explain(io::ErrorKind::StorageFull))), "the page's example");
    for (kind, remedy) in [
        (io::ErrorKind::ReadOnlyFilesystem, "under systemd only /var/log/holdfast can be written; write a path there"),
        (io::ErrorKind::PermissionDenied, "give that user the right to write in `/var/log/holdfast`"),
        (io::ErrorKind::Other, "other error; check the file system of `/var/log/holdfast`"),
    ] {
        assert!(explain(kind).starts_with("`/var/log/holdfast/drops.pcapng`: "));
        assert!(explain(kind).ends_with(remedy), "{}", explain(kind));
    }
}

/// A place with limited space, whose calls fail on order.
#[derive(Debug, Default)]
struct Fake {
    files: Vec<Vec<u8>>,
    room: usize,
    fails_cut: bool,
}

impl Store for Fake {
    fn begin(&mut self, preamble: &[u8], _: u8) -> io::Result<()> {
        self.files.push(Vec::new());
        if let (_, Err(error)) = self.append(preamble) {
            self.files.pop();
            return Err(error);
        }
        Ok(())
    }

    fn trim(&mut self, _: u8) {}

    fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let count = bytes.len().min(self.room);
        self.files.last_mut().unwrap().extend_from_slice(&bytes[..count]);
        self.room -= count;
        (count, if count < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) })
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        if self.fails_cut {
            return Err(io::ErrorKind::Other.into());
        }
        let file = self.files.last_mut().unwrap();
        self.room += file.len() - len as usize;
        file.truncate(len as usize);
        Ok(())
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.room as u64 >= bytes
    }

    fn is_in_place(&self, _: u64) -> bool {
        true
    }
}

#[test]
fn a_full_disk_costs_packets_but_never_parts_of_them() {
    for room in 0..700 {
        let store = Fake { room: preamble().len() + room, ..Fake::default() };
        let mut file = PcapFile::with_store(config(Path::new("/d/f"), 1 << 20, 2), preamble(), store);
        for at in 0..5 {
            push(&mut file, at, 1);
        }
        file.flush(Nanos(1));
        let counts = file.take_counts();
        assert_eq!((counts.copies, counts.lost), ((room as u64 / PACKET).min(5), 5 - (room as u64 / PACKET).min(5)));
        assert_eq!(packets(&file.store.files[0]), (0..counts.copies).collect::<Vec<_>>());
        let wanted = "`/d/f`: no space is left in `/d`; make room, or write a smaller `size` or fewer `files`";
        assert_eq!(file.error(), (counts.lost > 0).then_some(wanted));
        file.store.room = 1000;
        push(&mut file, 9, SECOND / 2);
        file.flush(Nanos(SECOND / 2));
        push(&mut file, 10, SECOND + 1);
        file.flush(Nanos(SECOND + 1));
        assert_eq!((file.error(), file.store.files.len()), (None, 1));
        assert_eq!(packets(&file.store.files[0]).last(), Some(&10));
    }
}

#[test]
fn error_of_a_full_disk_ends_with_room_although_no_copy_comes() {
    let store = Fake { room: preamble().len(), ..Fake::default() };
    let mut file = PcapFile::with_store(config(Path::new("f"), 1 << 20, 2), preamble(), store);
    push(&mut file, 1, 1);
    file.flush(Nanos(1));
    assert!(file.error().is_some());
    file.flush(Nanos(2 * SECOND));
    assert!(file.error().is_some(), "the disk is still full");
    file.store.room = BATCH;
    file.flush(Nanos(4 * SECOND));
    assert_eq!((file.error(), packets(&file.store.files[0])), (None, vec![]));
}

#[test]
fn room_of_a_disk_is_that_of_its_file_system() {
    let directory = tempfile::tempdir().unwrap();
    let mut disk = Disk::new(directory.path().join("f"));
    assert!(!disk.has_room(0), "there is no file");
    disk.begin(&preamble(), 2).unwrap();
    assert_eq!([disk.has_room(1), disk.has_room(u64::MAX)], [true, false]);
}

#[test]
fn a_file_that_cannot_be_cut_is_left_for_another() {
    let store = Fake { room: preamble().len() + 200, fails_cut: true, ..Fake::default() };
    let mut file = PcapFile::with_store(config(Path::new("f"), 1 << 20, 2), preamble(), store);
    push(&mut file, 1, 1);
    push(&mut file, 2, 1);
    file.flush(Nanos(1));
    file.store.room = 10_000;
    push(&mut file, 3, SECOND + 1);
    file.flush(Nanos(SECOND + 1));
    assert_eq!((packets(&file.store.files[1]), file.error()), (vec![3], None));
}

#[test]
fn copies_are_written_or_lost_whatever_fails() {
    let mut rng = random(7);
    for _ in 0..300 {
        let mut file = PcapFile::with_store(config(Path::new("f"), 2000, 2), preamble(), Fake::default());
        let (mut pushed, mut now) = (0, 1);
        for _ in 0..60 {
            match rng() % 8 {
                0 => file.store.room = (rng() % 3000) as usize,
                1 => file.store.fails_cut = rng().is_multiple_of(3),
                2 => now += rng() % (2 * SECOND),
                3 => file.flush(Nanos(now)),
                _ => {
                    push(&mut file, pushed, now);
                    pushed += 1;
                }
            }
        }
        (file.store.room, now) = (100_000, now + SECOND);
        file.flush(Nanos(now));
        // A flush in the second after an error leaves the batch empty, so that this one has written the rest.
        let counts = file.take_counts();
        assert_eq!(counts.copies + counts.lost, pushed);
    }
}
