//! Named network namespaces, which `ip netns` shows too: each is a file below /run/netns.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Directory of the namespaces that `ip netns add` makes.
pub const NAMED: &str = "/run/netns";

/// `NSFS_MAGIC`: type of the file system of namespaces.
const NSFS: i64 = 0x6e73_6673;

/// A namespace in which a switch runs. If the switch made it, it is removed with this value. Programs inside keep it
/// alive without its name.
///
/// After a kill the namespace remains, and the next start uses it again.
#[derive(Debug)]
pub struct NamedNamespace {
    path: PathBuf,
    is_made_here: bool,
}

impl NamedNamespace {
    /// Joins the namespace `name`, or makes it if there is none. The calling thread enters no namespace.
    ///
    /// # Errors
    /// If there is none, and without CAP_SYS_ADMIN.
    pub fn join_or_make(name: &str) -> io::Result<Self> {
        let path = Path::new(NAMED).join(name);
        if is_namespace(&path) {
            return Ok(Self { path, is_made_here: false });
        }
        share_directory()?;
        let created = OpenOptions::new().read(true).write(true).create_new(true).mode(0o444).open(&path);
        match created {
            Ok(_) => {}
            // An ordinary file is the remainder of a process that was killed before it had made the namespace.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_namespace(&path) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(Self { path, is_made_here: false });
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
            Ok(()) => Ok(Self { path, is_made_here: true }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Whether this process has made the namespace, and so removes it.
    #[must_use]
    pub fn is_made_here(&self) -> bool {
        self.is_made_here
    }
}

impl Drop for NamedNamespace {
    fn drop(&mut self) {
        if self.is_made_here && unmount(&self.path, UnmountFlags::DETACH).is_ok() {
            // Without a mount the file is empty and harmless.
            let _ = fs::remove_file(&self.path);
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
