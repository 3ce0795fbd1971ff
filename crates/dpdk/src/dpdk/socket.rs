//! The sockets of server ports (memif servers, vhost, virtio-user servers). A killed process leaves its socket behind,
//! and another process or file may occupy the path.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use super::Error;
use super::check::{argument, device_name};
use super::driver::Driver;

/// Default path of the socket of DPDK's memif driver.
pub(super) const DEFAULT_SOCKET: &str = "/run/memif.sock";

/// Returns the path of the socket file that the port creates. By default a memif server listens at an abstract address
/// instead, which vanishes with its process.
fn server_socket(devargs: &str) -> Option<&Path> {
    let has = |key, value| argument(devargs, key) == Some(value);
    match Driver::of_device(device_name(devargs)) {
        Driver::Memif => {
            let is_server = has("role", "server") || has("role", "master");
            let is_file = has("socket-abstract", "no");
            (is_server && is_file).then(|| Path::new(argument(devargs, "socket").unwrap_or(DEFAULT_SOCKET)))
        }
        Driver::Vhost => argument(devargs, "iface").map(Path::new).filter(|_| !has("client", "1")),
        Driver::VirtioUser => argument(devargs, "path").map(Path::new).filter(|_| has("server", "1")),
        _ => None,
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Whether no process owns the socket any more. A live socket refuses a connection of another type than its own with
/// another error. The check begins with datagrams, because a live vhost port would take a connection of its own type
/// (stream) for a guest.
fn is_dead(path: &Path) -> bool {
    let refused = |outcome: io::Result<()>| outcome.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    is_socket(path)
        && refused(UnixDatagram::unbound().and_then(|socket| socket.connect(path)))
        && refused(UnixStream::connect(path).map(drop))
}

fn is_memif(devargs: &str) -> bool {
    Driver::of_device(device_name(devargs)) == Driver::Memif
}

/// Removes the dead socket of a port before the port is created, because its driver would find the address in use. Live
/// sockets and all other files stay.
///
/// # Errors
///
/// Returns an error if a file occupies the path of a vhost or virtio-user port. The memif driver reports this itself.
/// The vhost driver removes the file of the port that it could not start, and guests could no longer connect to the
/// live port.
pub(super) fn make_room(devargs: &str) -> Result<(), Error> {
    let Some(path) = server_socket(devargs) else { return Ok(()) };
    if is_dead(path) {
        // If the removal fails, the file is reported below.
        let _ = fs::remove_file(path);
    }
    if is_memif(devargs) || fs::symlink_metadata(path).is_err() { Ok(()) } else { Err(occupied(devargs, path)) }
}

/// Returns the error for a server socket that its driver could not create, if the driver's log has a cause in the path.
pub(super) fn socket_error(devargs: &str, log: &str) -> Option<Error> {
    let path = server_socket(devargs)?;
    if log.contains("Invalid socket directory") {
        return Some(Error::Invalid {
            what: name(devargs, path) + " in a directory that does not exist or that this user may not write to",
            remedy: "create the directory, and let this user write to it".to_owned(),
        });
    }
    log.contains("Address already in use").then(|| occupied(devargs, path))
}

fn name(devargs: &str, path: &Path) -> String {
    format!("the socket {} of `{}`", path.display(), device_name(devargs))
}

/// Returns the error for the file that occupies `path`.
fn occupied(devargs: &str, path: &Path) -> Error {
    let (listens, moves) = if is_memif(devargs) {
        (
            "stop the other switch that listens there, or name another path with `socket=`",
            "move that file away, or name another path with `socket=`",
        )
    } else {
        ("stop the other process that listens there, or name another path", "move that file away, or name another path")
    };
    let invalid = |of, remedy: &str| Error::Invalid { what: name(devargs, path) + of, remedy: remedy.to_owned() };
    if !is_socket(path) {
        invalid(" at the path of a file of another kind", moves)
    } else if is_dead(path) {
        invalid(" at the path of a dead socket that this user may not remove", "remove the file")
    } else {
        Error::InUse { what: name(devargs, path), remedy: listens }
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
    fn make_room_removes_only_stale_server_sockets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memif.sock");
        drop(UnixListener::bind(&path).unwrap());
        let at = path.display();
        for other in [
            devargs("client", &path),
            devargs("server", &path).replace("=no", "=yes"),
            format!("net_vhost0,iface={at},client=1"),
            format!("net_virtio_user0,path={at}"),
            format!("net_null0,iface={at}"),
        ] {
            make_room(&other).unwrap();
            assert!(path.exists(), "{other}");
        }
        let vhost = format!("net_vhost0,iface={at},client=0");
        for server in [devargs("server", &path), vhost, format!("virtio_user0,path={at},server=1")] {
            make_room(&server).unwrap();
            assert!(!path.exists(), "{server}");
            drop(UnixListener::bind(&path).unwrap());
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        make_room(&devargs("server", &path)).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_live_stream_socket_gets_no_connection_from_the_check() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vhost.sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(!is_dead(&path));
        assert_eq!(listener.accept().map(drop).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    }

    #[test]
    fn a_vhost_port_is_refused_where_a_process_listens_or_another_file_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vhost.sock");
        let devargs = format!("net_vhost0,iface={}", path.display());
        let refusal = || make_room(&devargs).unwrap_err().to_string();
        let listener = UnixListener::bind(&path).unwrap();
        assert!(refusal().contains("vhost.sock of `net_vhost0` is in use; stop the other process"), "{}", refusal());
        assert!(path.exists());
        drop(listener);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(refusal().contains("at the path of a file of another kind"), "{}", refusal());
        assert!(path.exists());
    }

    #[test]
    fn a_live_memif_socket_stays_whatever_its_type() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memif.sock");
        let stays = || {
            make_room(&devargs("server", &path)).unwrap();
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
