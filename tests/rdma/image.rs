//! The files that guests start from: Debian's kernel, and busybox with RDMA programs. tests/guests makes them once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
/// Directory of the files, which are kept for the next test.
const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/guests");
/// User-space driver of soft-RoCE, and the file that names it.
pub const RXE: &str = "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so";
pub const RXE_NAME: &str = "/etc/libibverbs.d/rxe.driver";

pub const PROGRAMS: [&str; 7] = ["ib_send_bw", "ib_write_bw", "rdma", "iperf3", "ip", "tc", "ethtool"];

const MODULES: [&str; 10] = [
    "virtio_pci",
    "virtio_console",
    "virtio_net",
    "crc32_generic",
    "rdma_rxe",
    "sch_mqprio",
    "sch_ingress",
    "cls_u32",
    "act_skbedit",
    "bonding",
];

/// The files that a guest starts from.
pub struct Image {
    /// The kernel.
    pub kernel: PathBuf,
    /// The file system.
    pub files: PathBuf,
}

impl Image {
    /// Makes the files, unless they exist and are newer than their sources.
    #[track_caller]
    pub fn make() -> Self {
        let kept = Path::new(KEPT);
        std::fs::create_dir_all(kept).expect("a directory for guests");
        // Another test may make files of its own at the same time.
        let lock = File::create(kept.join("lock")).expect("a lock");
        lock.lock().expect("a lock");
        let kernel = kept.join("kernel");
        script("kernel", &[kernel.display().to_string()]);
        let files = kept.join("rdma.cpio");
        let init = format!("{SOURCES}/rdma/init");
        let sources = [init.clone(), format!("{SOURCES}/guests/initramfs"), format!("{SOURCES}/rdma/image.rs")];
        let time = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        let is_older = |made, source: &String| time(Path::new(source)).is_some_and(|changed| changed < made);
        if !time(&files).is_some_and(|made| sources.iter().all(|source| is_older(made, source))) {
            let mut words = Vec::new();
            let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
            option("--kernel", kernel.display().to_string());
            option("--out", files.display().to_string());
            option("--init", init);
            MODULES.iter().for_each(|module| option("--module", (*module).to_owned()));
            PROGRAMS.iter().for_each(|program| option("--program", (*program).to_owned()));
            option("--library", RXE.to_owned());
            option("--file", format!("{RXE_NAME}={RXE_NAME}"));
            script("initramfs", &words);
        }
        Self { kernel: kernel.join("vmlinux"), files }
    }
}

#[track_caller]
fn script(name: &str, arguments: &[String]) {
    let output =
        Command::new(format!("{SOURCES}/guests/{name}")).args(arguments).output().expect("a script that starts");
    assert!(output.status.success(), "tests/guests/{name}: {}", String::from_utf8_lossy(&output.stderr));
}
