//! Named network namespaces, which `ip netns` shows too: each is a file below /run/netns.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::statfs;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_bind_recursive, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Directory of the namespaces that `ip netns add` makes.
pub const NAMED: &str = "/run/netns";

/// `NSFS_MAGIC`: type of the file system of namespaces.
const NSFS: i64 = 0x6e73_6673;

/// Makes the namespace `name` if there is none. The calling thread enters no namespace.
///
/// Nothing removes it: programs inside, such as routing daemons, would go on in a namespace that has no name, and the
/// next start of the switch would make another one beside them.
///
/// # Errors
/// If there is none, and without CAP_SYS_ADMIN.
pub fn make_namespace(name: &str) -> io::Result<()> {
    let path = Path::new(NAMED).join(name);
    if is_namespace(&path) {
        return Ok(());
    }
    share_directory()?;
    let created = OpenOptions::new().read(true).write(true).create_new(true).mode(0o444).open(&path);
    match created {
        Ok(_) => {}
        // An ordinary file is the remainder of a process that was killed before it had made the namespace.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_namespace(&path) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let target = path.clone();
    let make = move || -> io::Result<()> {
        // SAFETY: file descriptors stay shared; only the network of this thread changes, and the thread ends.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        mount_bind("/proc/thread-self/ns/net", &target)?;
        Ok(())
    };
    let made = std::thread::Builder::new().name("hf-namespace".to_owned()).spawn(make)?.join();
    match made.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}

fn is_namespace(path: &Path) -> bool {
    statfs(path).is_ok_and(|stat| stat.f_type == NSFS)
}

/// Makes the directory a shared mount as `ip netns add` does: namespaces that one mount namespace makes are visible and
/// removable in the others.
fn share_directory() -> io::Result<()> {
    fs::create_dir_all(NAMED)?;
    let share = || mount_change(NAMED, MountPropagationFlags::SHARED | MountPropagationFlags::REC);
    if share().is_err() {
        // It is no mount yet.
        mount_bind_recursive(NAMED, NAMED)?;
        share()?;
    }
    Ok(())
}
