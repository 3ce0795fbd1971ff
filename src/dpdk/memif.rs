//! What a memif server that was killed leaves behind.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::check::{argument, device_name};

/// Where DPDK's driver listens if the device does not say.
const DEFAULT_SOCKET: &str = "/run/memif.sock";

/// Removes the socket of a memif server that is dead: its driver would find the address in use. Whatever else is there stays,
/// and so does the socket of whoever lives: of another type than a stream's, it refuses to be connected to by its type.
pub(super) fn remove_dead_socket(devargs: &str) {
    let is_server = ["server", "master"].contains(&argument(devargs, "role").unwrap_or_default());
    // By default the address is an abstract one, which ends with its process.
    let is_file = argument(devargs, "socket-abstract") == Some("no");
    if !device_name(devargs).starts_with("net_memif") || !is_server || !is_file {
        return;
    }
    let path = Path::new(argument(devargs, "socket").unwrap_or(DEFAULT_SOCKET));
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        // If it cannot be, the driver says that the address is in use.
        let _ = fs::remove_file(path);
    }
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
        // Of another type, as memif's own is.
        let live = UnixDatagram::bind(&path).unwrap();
        remove_dead_socket(&devargs("server", &path));
        assert!(path.exists());
        drop(live);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        remove_dead_socket(&devargs("server", &path));
        assert!(path.exists());
    }
}
