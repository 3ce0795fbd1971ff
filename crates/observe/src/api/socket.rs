//! The path of the API's socket, and how a switch takes it without replacing the socket of another switch.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::config::{MAX_SOCKET_PATH as MAX_PATH, Socket};

/// The environment variable with the socket, for `run`, `show` and all other commands.
pub const VARIABLE: &str = "HOLDFAST_SOCKET";

/// File name of the socket in a directory of run-time files.
const NAME: &str = "holdfast.sock";

/// Directory for a switch of root, which systemd creates for `RuntimeDirectory=holdfast`.
const ROOT_DIRECTORY: &str = "/run/holdfast";

/// Tries to lock a directory while another holdfast holds the lock to take its own socket.
const TRIES: u32 = 50;
const TRY_TIME: Duration = Duration::from_millis(20);

/// The path at which a switch listens; `None` if the API is off.
///
/// # Errors
/// If there is no default path for this user.
pub fn to_serve(socket: &Socket) -> Result<Option<PathBuf>, SocketError> {
    match socket {
        Socket::Off => Ok(None),
        Socket::At(path) => Ok(Some(path.clone())),
        Socket::Usual => user_path().or_else(|| is_root().then(root_path)).map(Some).ok_or(SocketError::NoPlace),
    }
}

/// The paths that a client tries, in this order. Other users may connect to a switch of root if the socket's mode
/// lets them.
#[must_use]
pub fn to_ask(socket: &Socket) -> Vec<PathBuf> {
    match socket {
        Socket::Off => Vec::new(),
        Socket::At(path) => vec![path.clone()],
        Socket::Usual => user_path().into_iter().chain([root_path()]).collect(),
    }
}

fn user_path() -> Option<PathBuf> {
    let directory = std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty())?;
    Some(Path::new(&directory).join(NAME)).filter(|path| path.is_absolute())
}

fn root_path() -> PathBuf {
    Path::new(ROOT_DIRECTORY).join(NAME)
}

fn is_root() -> bool {
    own_user() == Some(0)
}

/// The number of the user of this process.
pub(super) fn own_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// The reason why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No directory for run-time files.
    #[error("the API's socket has no default path: XDG_RUNTIME_DIR is not set; name one with --socket PATH")]
    NoPlace,
    /// Another switch listens there.
    #[error(
        "another switch listens at {}; give this one a socket of its own with --socket PATH, or none with --socket off",
        .0.display()
    )]
    Taken(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket; remove it, or choose another path with --socket PATH", .0.display())]
    NotASocket(PathBuf),
    /// The path does not fit a socket's address.
    #[error(
        "{} is longer than the {MAX_PATH} bytes allowed for a socket's path; choose a shorter one with --socket PATH",
        .0.display()
    )]
    TooLong(PathBuf),
    /// The path names no file.
    #[error(
        "`{}` is not the path of a socket; write e.g. --socket /run/holdfast/holdfast.sock, or --socket off",
        .0.display()
    )]
    NoFile(PathBuf),
    /// The group does not exist.
    #[error("there is no group `{0}` in /etc/group; write another group in `api`, or its number")]
    NoGroup(String),
    /// The directory of the path does not exist.
    #[error(
        "the API cannot listen at {}: there is no directory {}; create it (mkdir -p), choose another path with \
         --socket PATH, or none with --socket off",
        .path.display(), .directory.display()
    )]
    NoDirectory {
        /// The socket.
        path: PathBuf,
        /// The missing directory.
        directory: PathBuf,
    },
    /// Another holdfast locks the directory to take a socket there, and does not release it.
    #[error(
        "the API cannot listen at {}: another holdfast has locked {} for {}s; end that process (fuser -v names it), or \
         choose another path with --socket PATH",
        .path.display(), .directory.display(), (TRY_TIME * TRIES).as_secs()
    )]
    Locked {
        /// The socket.
        path: PathBuf,
        /// The locked directory.
        directory: PathBuf,
    },
    /// An operation of the system failed.
    #[error(
        "the API cannot listen at {}: {what}: {}; choose another path with --socket PATH, or none with --socket off",
        .path.display(), .error.kind()
    )]
    System {
        /// The socket.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

/// The users that the mode of a socket lets connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<'a> {
    /// The user of the switch: mode 0600.
    User,
    /// The members of a group too: mode 0660.
    Group(&'a str),
    /// All users, whose requests are judged one by one: mode 0666.
    All,
}

/// A socket on which this process listens; its file is removed on drop.
#[derive(Debug)]
pub struct Bound {
    path: PathBuf,
    listener: UnixListener,
    file: (u64, u64),
}

impl Bound {
    /// Listens at `path` for the users that `access` names. The file of a dead switch is replaced; the socket of
    /// a live one is not.
    ///
    /// # Errors
    /// The reason why it cannot listen, with a remedy.
    pub fn new(path: &Path, access: Access<'_>) -> Result<Self, SocketError> {
        if path.as_os_str().len() > MAX_PATH {
            return Err(SocketError::TooLong(path.to_owned()));
        }
        let directory = path.parent().filter(|_| path.file_name().is_some());
        let directory = directory.ok_or_else(|| SocketError::NoFile(path.to_owned()))?;
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let failed = |what| move |error| SocketError::System { path: path.to_owned(), what, error };
        if directory == Path::new(ROOT_DIRECTORY) && !directory.exists() {
            let made =
                fs::create_dir(directory).and_then(|()| fs::set_permissions(directory, Permissions::from_mode(0o755)));
            made.map_err(failed("its directory cannot be created"))?;
        }
        let (group, mode) = match access {
            Access::User => (None, 0o600),
            Access::Group(group) => (Some(group_number(group)?), 0o660),
            Access::All => (None, 0o666),
        };
        // Without the lock, two switches that start at once both see a dead one's file, and the later removes the
        // earlier's new socket.
        let _alone = lock(directory).map_err(|error| {
            let (path, directory) = (path.to_owned(), directory.to_owned());
            match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => SocketError::NoDirectory { path, directory },
                ErrorKind::ResourceBusy => SocketError::Locked { path, directory },
                _ => SocketError::System { path, what: "its directory cannot be opened", error },
            }
        })?;
        remove_dead(path)?;
        let listener = UnixListener::bind(path).map_err(failed("it cannot be bound"))?;
        let file = fs::symlink_metadata(path).map_err(failed("its file was removed"))?;
        let bound = Self { path: path.to_owned(), listener, file: (file.dev(), file.ino()) };
        bound.restrict(group, mode).map_err(failed("its mode cannot be set"))?;
        Ok(bound)
    }

    /// Sets mode and group of the socket, and closes connections that were made before.
    fn restrict(&self, group: Option<u32>, mode: u32) -> io::Result<()> {
        // Skipped if the file has the group already: a service may be denied the system call.
        if group.is_some_and(|group| fs::symlink_metadata(&self.path).is_ok_and(|file| file.gid() != group)) {
            chown(&self.path, None, group)?;
        }
        fs::set_permissions(&self.path, Permissions::from_mode(mode))?;
        self.listener.set_nonblocking(true)?;
        loop {
            match self.listener.accept() {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// A directory of the path that others than its user and group may not enter.
    #[must_use]
    pub fn closed_directory(&self) -> Option<PathBuf> {
        let is_closed = |path: &&Path| fs::metadata(path).is_ok_and(|file| file.mode() & 0o1 == 0);
        let path = fs::canonicalize(&self.path).ok()?;
        path.ancestors().skip(1).find(is_closed).map(Path::to_owned)
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The listener, which does not block.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // Another process may have removed this file and created its own at the same path.
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Locks `directory` against other holdfasts until the result is dropped.
fn lock(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    if !file.metadata()?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(TRY_TIME),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

/// Removes the socket at `path` if no process listens there.
fn remove_dead(path: &Path) -> Result<(), SocketError> {
    let Ok(file) = fs::symlink_metadata(path) else { return Ok(()) };
    if !file.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    match connect_now(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let failed = |error| SocketError::System {
                path: path.to_owned(),
                what: "the socket of a dead switch cannot be removed",
                error,
            };
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // A switch that does not answer may still be alive.
        _ => Err(SocketError::Taken(path.to_owned())),
    }
}

/// Connects within a second: a live switch with a full queue would make it wait.
fn connect_now(path: &Path) -> io::Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = path.to_owned();
    // Runs in a thread, since the standard library has no non-blocking connect. The thread ends with the queue or the
    // program.
    std::thread::spawn(move || sender.send(UnixStream::connect(path).map(drop)));
    receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// The number of `group`, which is a name or a number.
fn group_number(group: &str) -> Result<u32, SocketError> {
    crate::linux::group_number(group).ok_or_else(|| SocketError::NoGroup(group.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn socket_has_mode_0600_refuses_a_second_owner_and_is_removed_on_drop() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let bound = Bound::new(&path, Access::User).unwrap();
        assert_eq!((mode(&path), bound.path()), (0o600, path.as_path()));
        let taken = Bound::new(&path, Access::User).unwrap_err();
        assert!(matches!(taken, SocketError::Taken(_)), "{taken}");
        assert!(path.exists(), "a refused start leaves the socket unchanged");
        drop(bound);
        assert!(!path.exists());
    }

    #[test]
    fn socket_with_group_has_mode_0660_and_unknown_group_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        // An unprivileged process can give a file only to one of its own groups.
        let gid = fs::metadata(directory.path()).unwrap().gid();
        let bound = Bound::new(&path, Access::Group(&gid.to_string())).unwrap();
        assert_eq!((mode(&path), fs::metadata(&path).unwrap().gid()), (0o660, gid));
        drop(bound);
        assert_eq!(group_number("root").unwrap(), 0);
        let unknown = Bound::new(&path, Access::Group("no such group")).unwrap_err();
        assert!(matches!(unknown, SocketError::NoGroup(_)) && !path.exists(), "{unknown}");
    }

    #[test]
    fn stale_socket_is_replaced_and_other_files_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "the kernel leaves the file");
        let bound = Bound::new(&path, Access::User).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "text").unwrap();
        drop(bound);
        assert_eq!(fs::read_to_string(&path).unwrap(), "text", "no longer our socket");
        let refused = Bound::new(&path, Access::User).unwrap_err();
        assert!(matches!(refused, SocketError::NotASocket(_)), "{refused}");
    }

    #[test]
    fn socket_path_too_long_or_without_directory_is_refused() {
        let long = PathBuf::from("/tmp").join("x".repeat(MAX_PATH));
        assert!(matches!(Bound::new(&long, Access::User), Err(SocketError::TooLong(_))));
        assert!(matches!(Bound::new(Path::new("/"), Access::User), Err(SocketError::NoFile(_))));
        let nowhere = Bound::new(Path::new("/nonexistent/s"), Access::User).unwrap_err().to_string();
        assert!(
            nowhere
                .contains("/nonexistent/s: there is no directory /nonexistent; create it (mkdir -p), choose another"),
            "{nowhere}"
        );
        let file = Bound::new(Path::new("/etc/passwd/s"), Access::User).unwrap_err().to_string();
        assert!(file.contains("there is no directory /etc/passwd; "), "{file}");
    }

    #[test]
    fn a_directory_that_stays_locked_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let _locked = lock(directory.path()).unwrap();
        let busy = Bound::new(&directory.path().join("s"), Access::User).unwrap_err().to_string();
        let expected = format!("another holdfast has locked {} for 1s; ", directory.path().display());
        assert!(busy.contains(&expected) && busy.contains("--socket PATH"), "{busy}");
    }

    #[test]
    fn one_of_many_concurrent_binds_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let bound: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Bound::new(&path, Access::User).ok())).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(bound.len(), 1);
        assert!(UnixStream::connect(&path).is_ok(), "and it answers");
    }
}
