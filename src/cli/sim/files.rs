//! Output files of a run: a file gets its name only when it is complete.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cli::Failure;

/// Incomplete files. The lock is held while one is created, renamed or removed, so that a signal handler sees
/// consistent files.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all incomplete files. While the guard lives, no file can be created or completed.
pub fn abandon() -> MutexGuard<'static, Vec<PathBuf>> {
    let mut parts = parts();
    parts.drain(..).for_each(|part| drop(fs::remove_file(part)));
    parts
}

/// Creates a directory and its parents.
pub fn make_dir(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| failed("directory", path, &error))
}

/// Writes a file with this content; an existing file is replaced.
pub fn write(path: &Path, content: &str) -> Result<(), Failure> {
    let write = || {
        let mut output = Output::open(path)?;
        output.write_all(content.as_bytes())?;
        output.finish()
    };
    write().map_err(|error| failed("file", path, &error))
}

/// A file that is being written. Until [`Output::finish`] its name is `NAME.part`, `NAME.part2` and so on, and an
/// existing file `NAME` stays unchanged. If it is dropped unfinished, the part is removed.
pub struct Output {
    file: File,
    /// The path of the part and its final path. `None` for a file that is written directly.
    part: Option<(PathBuf, PathBuf)>,
}

impl Output {
    pub fn open(path: &Path) -> io::Result<Self> {
        if is_straight(path) {
            return Ok(Self { file: File::create(path)?, part: None });
        }
        // A symbolic link stays, and its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let permissions = match File::options().write(true).open(&target) {
            Ok(file) => Some(file.metadata()?.permissions()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut parts = parts();
        let (file, part) = create_part(&target)?;
        parts.push(part.clone());
        drop(parts);
        let output = Self { file, part: Some((part, target)) };
        if let Some(permissions) = permissions {
            output.file.set_permissions(permissions)?;
        }
        Ok(output)
    }

    /// Completes the file: it gets its final name.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some((part, target)) = &self.part {
            let mut parts = parts();
            fs::rename(part, target)?;
            parts.retain(|other| other != part);
            drop(parts);
            self.part = None;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = self.part.take() {
            let mut parts = parts();
            parts.retain(|other| *other != part);
            // An error cannot be reported here.
            let _ = fs::remove_file(part);
        }
    }
}

/// Creates a new part for `target`. A file with the name of a part may belong to another program, or to a run that was
/// killed.
fn create_part(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut part = part_of(target);
    let mut number = 1;
    loop {
        match File::create_new(&part) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, part)),
        }
        number += 1;
        let mut name = part_of(target).into_os_string();
        name.push(number.to_string());
        part = name.into();
    }
}

/// Whether `path` is written directly, without a part: a pipe, a device, or a file descriptor (`/dev/stdout`), to which
/// others may write too.
pub fn is_straight(path: &Path) -> bool {
    let is_numbered = |path: &Path| path.starts_with("/proc");
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
        || fs::read_link(path).is_ok_and(|to| is_numbered(&to))
        || dir_of(path).canonicalize().is_ok_and(|dir| is_numbered(&dir))
}

/// The directory that contains the file.
pub fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path `NAME.part` in the same directory: files can be renamed only within a file system.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// Reduces `name` to letters, digits, dots and dashes, for use in a path.
pub fn plain(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Reduces the names as [`plain`] does, in their order, and makes them unique.
pub fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut name = |(number, name): (usize, &str)| {
        let own = plain(name);
        let own = if own.chars().any(|c| c.is_ascii_alphanumeric()) { own } else { (number + 1).to_string() };
        let others = (2..).map(|more| format!("{own}-{more}"));
        let mut candidates = std::iter::once(own.clone()).chain(others);
        candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or(own)
    };
    names.enumerate().map(&mut name).collect()
}

/// The failure that `path` could not be written because of `error`.
pub fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::Run(format!("{what} {} cannot be written: {}", path.display(), reason(error)))
}

/// Describes an error of the operating system without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn variant_name_becomes_a_plain_file_name() {
        assert_eq!(plain("alpha 1/8, no pfc"), "alpha-1-8-no-pfc");
        assert_eq!(plain("../x"), "..-x");
    }

    #[test]
    fn no_two_variants_write_the_same_file() {
        let names = unique(["x 1/8", "x-1-8", "\u{3b1}", "\u{3b2}", "..", "x-1-8-2"].into_iter());
        assert_eq!(names, ["x-1-8", "x-1-8-2", "3", "4", "5", "x-1-8-2-2"]);
    }

    /// One test for all cases: the list of incomplete files is global.
    #[test]
    fn output_file_replaces_its_target_only_when_finished() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.csv");
        write(&path, "old\n").unwrap();
        let begin = || {
            let mut output = Output::open(&path).unwrap();
            output.write_all(b"new\n").unwrap();
            assert_eq!(names(dir.path()), ["s.csv", "s.csv.part"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
            output
        };
        drop(begin());
        assert_eq!((names(dir.path()), fs::read_to_string(&path).unwrap()), (vec!["s.csv".into()], "old\n".into()));
        let output = begin();
        drop(abandon());
        assert_eq!(names(dir.path()), ["s.csv"], "after a signal");
        assert!(output.finish().is_err());
        begin().finish().unwrap();
        assert_eq!((names(dir.path()), fs::read_to_string(&path).unwrap()), (vec!["s.csv".into()], "new\n".into()));
        for other in ["s.csv.part", "s.csv.part2"] {
            fs::write(dir.path().join(other), "another's").unwrap();
        }
        write(&path, "newer\n").unwrap();
        for other in ["s.csv.part", "s.csv.part2"] {
            assert_eq!(fs::read_to_string(dir.path().join(other)).unwrap(), "another's");
            fs::remove_file(dir.path().join(other)).unwrap();
        }
        assert_eq!((names(dir.path()), fs::read_to_string(&path).unwrap()), (vec!["s.csv".into()], "newer\n".into()));
        assert!(parts().is_empty());
    }

    #[test]
    fn write_keeps_symlink_and_permissions_of_its_target() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn device_or_open_descriptor_is_written_in_place() {
        for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/null", "/"] {
            assert!(is_straight(Path::new(path)), "{path}");
        }
        assert!(!is_straight(Path::new("none.csv")) && !is_straight(Path::new("Cargo.toml")));
        write(Path::new("/dev/null"), "x").unwrap();
    }
}
