//! The sockets that memif servers listen on: what a killed one leaves behind, and what else may be in the way.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use super::Error;
use super::check::{argument, device_name};

/// Where DPDK's driver listens if the device does not say.
const DEFAULT_SOCKET: &str = "/run/memif.sock";

/// The file that a memif server makes to listen on. By default the address is an abstract one, which ends with its process.
fn server_socket(devargs: &str) -> Option<&Path> {
    let is_server = ["server", "master"].contains(&argument(devargs, "role").unwrap_or_default());
    let is_file = argument(devargs, "socket-abstract") == Some("no");
    let is_memif = device_name(devargs).starts_with("net_memif");
    (is_memif && is_server && is_file).then(|| Path::new(argument(devargs, "socket").unwrap_or(DEFAULT_SOCKET)))
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Whether nobody has the socket any more. One that lives refuses whoever connects by another type than its own with another
/// error, so that it is not refused by both; memif's own is of a third type.
fn is_dead(path: &Path) -> bool {
    let refused = |outcome: io::Result<()>| outcome.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    is_socket(path)
        && refused(UnixStream::connect(path).map(drop))
        && refused(UnixDatagram::unbound().and_then(|socket| socket.connect(path)))
}

/// Removes the socket of a memif server that is dead: its driver would find the address in use. Whatever else is there stays,
/// and so does the socket of whoever lives.
pub(super) fn remove_dead_socket(devargs: &str) {
    if let Some(path) = server_socket(devargs).filter(|path| is_dead(path)) {
        // If it cannot be, the driver says that the address is in use.
        let _ = fs::remove_file(path);
    }
}

/// What was in the way of a memif server's socket, if the driver's log says that it was that.
pub(super) fn socket_error(devargs: &str, log: &str) -> Option<Error> {
    let path = server_socket(devargs)?;
    let what = |of| format!("the socket {} of `{}`{of}", path.display(), device_name(devargs));
    let invalid = |of, remedy: &str| Some(Error::Invalid { what: what(of), remedy: remedy.to_owned() });
    if log.contains("Invalid socket directory") {
        return invalid(
            " in a directory that is not there or not ours",
            "make the directory, and let this user write in it",
        );
    }
    if !log.contains("Address already in use") {
        return None;
    }
    if !is_socket(path) {
        return invalid(" where a file of another kind is", "move that away, or name another path with `socket=`");
    }
    if is_dead(path) {
        return invalid(" where a dead one is that this user may not remove", "remove the file");
    }
    Some(Error::InUse {
        what: what(""),
        remedy: "another switch listens there; stop it, or name another with `socket=`",
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    fn devargs(role: &str, path: &Path) -> String {
        format!("net_memif0,role={role},socket={},socket-abstract=no", path.display())
    }

    #[test]
    fn only_a_dead_servers_socket_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memif.sock");
        drop(UnixListener::bind(&path).unwrap());
        for other in [devargs("client", &path), devargs("server", &path).replace("=no", "=yes")] {
            remove_dead_socket(&other);
            assert!(path.exists(), "{other}");
        }
        remove_dead_socket(&devargs("server", &path));
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        remove_dead_socket(&devargs("server", &path));
        assert!(path.exists());
    }

    #[test]
    fn one_that_lives_stays_whatever_its_type() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memif.sock");
        let stays = || {
            remove_dead_socket(&devargs("server", &path));
            assert!(path.exists());
            fs::remove_file(&path).unwrap();
        };
        let datagrams = UnixDatagram::bind(&path).unwrap();
        stays();
        let listener = UnixListener::bind(&path).unwrap();
        stays();
        drop((datagrams, listener));
    }
}
