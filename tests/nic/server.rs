//! A server with Debian 12, systemd and GRUB, as a virtual machine of QEMU. Its disk is made by tests/guests/debian.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::boot::kernel_words;
use crate::process::{Process, mortal, wait_for};

/// Directory of this repository.
const SOURCES: &str = env!("CARGO_MANIFEST_DIR");
/// Directory of the disk, which is kept for the next test.
const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/guests");
/// Longest time for the server to start, and for a command such as the installation of a package.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Devices: an IOMMU, and two NICs at the ends of one cable.
const DEVICES: &str = "-device intel-iommu,intremap=on,caching-mode=on \
     -netdev hubport,id=n0,hubid=1 -device e1000e,netdev=n0,mac=02:00:00:00:01:00,addr=10 \
     -netdev hubport,id=n1,hubid=1 -device e1000e,netdev=n1,mac=02:00:00:00:01:01,addr=11";

/// A running server, which ends with this value. Its disk is a copy that ends too.
pub struct Server {
    qemu: Process,
    agent: Agent,
    directory: tempfile::TempDir,
    began: Instant,
}

impl Server {
    /// Starts a server with the package at `/root/holdfast.deb`, and waits until it takes commands.
    #[track_caller]
    pub fn start() -> Self {
        let began = Instant::now();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let package = package(directory.path());
        let disk = disk(&package);
        let mut command = mortal("qemu-system-x86_64");
        command.args(arguments(&disk, &package, directory.path()));
        let mut qemu = Process::spawn(command);
        let stream = wait_for("socket of QEMU", PATIENCE, || {
            assert!(qemu.is_running(), "QEMU ended: {}", qemu.stderr());
            UnixStream::connect(directory.path().join("agent")).ok()
        });
        let agent = Agent::connect(stream, PATIENCE)
            .unwrap_or_else(|error| panic!("{error} {} {}", qemu.stderr(), console(directory.path())));
        let mut server = Self { qemu, agent, directory, began };
        let length = fs::metadata(&package).expect("the package").len();
        server.run(&format!("head -c {length} /dev/vdb >/root/holdfast.deb"));
        // The next boot knows the frequency of the machine that runs this test.
        let words = format!("{} mitigations=off", kernel_words());
        server.run(&format!(
            "mkdir -p /etc/default/grub.d\necho 'GRUB_CMDLINE_LINUX=\"{words}\"' >/etc/default/grub.d/a-guest.cfg"
        ));
        server.said("starts");
        server
    }

    /// Restarts the server as its administrator would, and waits until it takes commands again.
    #[track_caller]
    pub fn reboot(&mut self) {
        let before = self.run("cat /proc/sys/kernel/random/boot_id");
        // The answer goes out before the agent ends.
        self.run("nohup sh -c 'sleep 1; systemctl reboot' >/dev/null 2>&1 &");
        self.agent.wait_ready().unwrap_or_else(|error| panic!("{error} {}", console(self.directory.path())));
        assert_ne!(self.run("cat /proc/sys/kernel/random/boot_id"), before);
        self.said("is back");
    }

    /// Runs a script that must succeed. Returns its output.
    #[track_caller]
    pub fn run(&mut self, script: &str) -> String {
        let (status, output) = self.try_run(script);
        if status != 0 {
            let (_, journal) = self.try_run("journalctl --no-pager -b -u holdfast | tail -n 40");
            panic!("{script}: {status}: {output}{journal}");
        }
        output
    }

    /// Runs a script of bash. Returns its status and its output.
    #[track_caller]
    pub fn try_run(&mut self, script: &str) -> (i32, String) {
        self.agent.run(script).unwrap_or_else(|error| {
            panic!("{script}: {error} {} {}", self.qemu.stderr(), console(self.directory.path()))
        })
    }

    /// Repeats a script until it succeeds, for at most ten minutes. Returns its output.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, script: &str) -> String {
        let repeated = format!("f() {{ {script}\n}}\nuntil f; do [ $SECONDS -lt 600 ] || exit 1; sleep 0.5; done");
        let (status, output) = self.try_run(&repeated);
        assert_eq!(status, 0, "no {what}: {script}: {output}");
        output
    }

    /// Prints the time of a step.
    pub fn said(&self, step: &str) {
        eprintln!("{:5.0} s: the server {step}", self.began.elapsed().as_secs_f32());
    }
}

/// Builds the package of this test's program.
#[track_caller]
fn package(directory: &Path) -> PathBuf {
    let arguments = [env!("CARGO_BIN_EXE_holdfast"), &directory.display().to_string()];
    script("packaging/build-deb", &arguments).trim().into()
}

/// Makes the disk, unless there is one.
#[track_caller]
fn disk(package: &Path) -> PathBuf {
    let kept = Path::new(KEPT).join("debian");
    fs::create_dir_all(&kept).expect("a directory for guests");
    script("tests/guests/debian", &[&kept.display().to_string(), &package.display().to_string()]);
    kept.join("debian.img")
}

#[track_caller]
fn script(path: &str, arguments: &[&str]) -> String {
    let output = Command::new(format!("{SOURCES}/{path}")).args(arguments).output().expect("a script that starts");
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Arguments of QEMU. Changes of the disk go to a file that QEMU has deleted.
fn arguments(disk: &Path, package: &Path, directory: &Path) -> Vec<String> {
    let accelerator = std::env::var("HOLDFAST_GUEST_ACCEL").unwrap_or_else(|_| "tcg".to_owned());
    let irqchip = if accelerator == "kvm" { ",kernel-irqchip=split" } else { "" };
    let (disk, package, directory) = (disk.display(), package.display(), directory.display());
    let words = format!(
        "-nodefaults -no-user-config -display none -vga none -smp 2 -m 1792 -cpu max -machine q35,accel={accelerator}{irqchip} \
         -device virtio-serial-pci,addr=5 -device virtserialport,chardev=agent,name=agent \
         -chardev socket,id=agent,path={directory}/agent,server=on,wait=off -serial file:{directory}/console \
         -drive file={disk},format=raw,if=none,id=disk,snapshot=on -device virtio-blk-pci,drive=disk,addr=6,bootindex=0 \
         -drive file={package},format=raw,if=none,id=deb,readonly=on -device virtio-blk-pci,drive=deb,addr=7 {DEVICES}"
    );
    words.split_whitespace().map(str::to_owned).collect()
}

/// The end of what the server has printed.
fn console(directory: &Path) -> String {
    let text = fs::read(directory.join("console")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
