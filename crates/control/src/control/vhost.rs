//! Ports at whose socket a virtual machine connects.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open as open_path};
use rustix::process::umask;

use super::RunError;
use crate::config::model::SocketAccess;
use crate::dpdk::{Eal, EthPort, Mempool, PortConfig};
use crate::linux::{group_number, user_number};

/// A port whose socket only the users in `access` may connect to.
pub(super) struct VhostPort<'a> {
    pub index: usize,
    pub name: &'a str,
    /// Its socket.
    pub path: &'a Path,
    pub access: &'a SocketAccess,
}

/// Opens `port`.
pub(super) fn open(eal: &Eal, port: &VhostPort<'_>, config: &PortConfig, pool: &Mempool) -> Result<EthPort, RunError> {
    let &VhostPort { index, name, path, access } = port;
    let account = |key, wanted: &Option<String>, find: fn(&str) -> Option<u32>| match wanted {
        None => Ok(None),
        Some(wanted) => find(wanted).map(Some).ok_or_else(|| RunError::NoAccount {
            port: name.to_owned(),
            key,
            account: wanted.clone(),
        }),
    };
    let owner = account("owner", &access.owner, user_number)?;
    let group = account("group", &access.group, group_number)?;
    // `linear-buffer`: a frame is in one buffer, or is dropped.
    let queues = config.rx_queues.max(config.tx_queues);
    let devargs = format!("net_vhost_hf{index},iface={},queues={queues},linear-buffer=1", path.display());
    // The driver creates the socket, and no other user may connect before its rights are set.
    let before = umask(Mode::from_raw_mode(0o177));
    let opened = EthPort::plug(eal, &devargs, config, pool);
    umask(before);
    let port = opened.map_err(RunError::at_port(name))?;
    restrict(path, owner, group, access.mode).map_err(|error| RunError::SocketAccess {
        port: name.to_owned(),
        path: path.to_owned(),
        error,
    })?;
    Ok(port)
}

/// Sets the rights of the socket at `path`, and of no other file that has taken its place.
fn restrict(path: &Path, owner: Option<u32>, group: Option<u32>, mode: u32) -> io::Result<()> {
    let file = File::from(open_path(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
    if !file.metadata()?.file_type().is_socket() {
        return Err(io::Error::from(ErrorKind::NotFound));
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    if owner.is_some() || group.is_some() {
        chown(&path, owner, group)?;
    }
    fs::set_permissions(&path, Permissions::from_mode(mode))
}
