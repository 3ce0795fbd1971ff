//! A virtual machine of QEMU with Debian's kernel, busybox, holdfast and DPDK's drivers. Needs neither root nor KVM.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::boot::kernel_words;
use crate::nic::Nic;
use crate::process::{Process, mortal, wait_for};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
/// Directory of the guests' kernel and file system. Both are kept for the next test.
const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/guests");
const LIBRARIES: [&str; 6] = ["mempool_ring", "net_ring", "net_tap", "net_e1000", "net_vmxnet3", "net_virtio"];
const MODULES: [&str; 15] = [
    "virtio_pci",
    "virtio_console",
    "vfio_iommu_type1",
    "vfio_pci",
    "uio_pci_generic",
    "e1000",
    "e1000e",
    "igb",
    "vmxnet3",
    "virtio_net",
    "tun",
    "sch_multiq",
    "sch_ingress",
    "cls_flower",
    "act_skbedit",
];

/// Path of this program in a guest, for a test that runs there.
pub const TESTS: &str = "/bin/nic-tests";

/// Longest time for a guest to start, or for one of its commands, on a busy machine without KVM.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How a guest differs from others.
pub struct Machine {
    /// Its NICs, all of one model.
    pub nic: Nic,
    /// Number of NICs.
    pub nics: usize,
    /// Whether it has an IOMMU.
    pub iommu: bool,
    /// Further words on the kernel's command line.
    pub words: String,
    /// Further arguments of QEMU.
    pub more: Vec<String>,
}

/// A running guest, which ends with this value.
pub struct Guest {
    qemu: Process,
    agent: Agent,
    monitor: BufReader<UnixStream>,
    directory: tempfile::TempDir,
}

impl Guest {
    /// Starts a guest and waits until it takes commands.
    #[track_caller]
    pub fn start(machine: &Machine) -> Self {
        let image = image();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (qemu, data) = qemu(machine.nic);
        let mut command = mortal(&qemu);
        command.args(data).args(arguments(machine, &image, directory.path()));
        let mut qemu = Process::spawn(command);
        let mut connect = |name: &str| {
            let stream = wait_for("socket of QEMU", PATIENCE, || {
                assert!(qemu.is_running(), "QEMU ended: {}", qemu.stderr());
                UnixStream::connect(directory.path().join(name)).ok()
            });
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            stream
        };
        let (agent, monitor) = (connect("agent"), BufReader::new(connect("monitor")));
        let agent = Agent::connect(agent, PATIENCE)
            .unwrap_or_else(|error| panic!("{error} {} {}", qemu.stderr(), console(directory.path())));
        let mut guest = Self { qemu, agent, monitor, directory };
        guest.monitor_says("QMP");
        guest.monitor("{\"execute\": \"qmp_capabilities\"}");
        guest
    }

    /// Path of the guest's end of the wire of NIC `number`, and of the other end.
    pub fn wire(&self, number: usize) -> (PathBuf, PathBuf) {
        wire(self.directory.path(), number)
    }

    /// Runs a shell script in the guest. Returns its status and its output.
    #[track_caller]
    pub fn try_run(&mut self, script: &str) -> (i32, String) {
        self.agent.run(script).unwrap_or_else(|error| {
            std::thread::sleep(Duration::from_millis(200));
            panic!("{script}: {error} {} {}", self.qemu.stderr(), self.console())
        })
    }

    /// Runs a shell script that must succeed. Returns its output.
    #[track_caller]
    pub fn run(&mut self, script: &str) -> String {
        let (status, output) = self.try_run(script);
        assert_eq!(status, 0, "{script}: {output}");
        output
    }

    /// Takes the link of NIC `number` down or up.
    #[track_caller]
    pub fn set_link(&mut self, number: usize, up: bool) {
        self.monitor(&format!(
            "{{\"execute\": \"set_link\", \"arguments\": {{\"name\": \"n{number}\", \"up\": {up}}}}}"
        ));
    }

    #[track_caller]
    fn monitor(&mut self, order: &str) {
        self.monitor.get_mut().write_all(format!("{order}\n").as_bytes()).expect("a monitor that reads");
        self.monitor_says("return");
    }

    /// Reads the monitor's lines up to an object with this key; events lie between.
    #[track_caller]
    fn monitor_says(&mut self, key: &str) {
        loop {
            let mut line = String::new();
            self.monitor.read_line(&mut line).expect("a monitor that answers");
            let object: serde_json::Value = serde_json::from_str(&line).expect("an object");
            assert!(object.get("error").is_none(), "{line}");
            if object.get(key).is_some() {
                return;
            }
        }
    }

    fn console(&self) -> String {
        console(self.directory.path())
    }
}

/// The end of what the kernel of the guest in `directory` has printed.
fn console(directory: &Path) -> String {
    let text = std::fs::read(directory.join("console")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn wire(directory: &Path, number: usize) -> (PathBuf, PathBuf) {
    (directory.join(format!("n{number}.guest")), directory.join(format!("n{number}.host")))
}

/// QEMU with that model of NIC, and the arguments that name its firmware.
#[track_caller]
fn qemu(nic: Nic) -> (String, Vec<String>) {
    if nic != Nic::Igb {
        return ("qemu-system-x86_64".to_owned(), Vec::new());
    }
    let newer = format!("{KEPT}/qemu");
    script("qemu", &[&newer]);
    let data = ["qemu", "seabios"].map(|name| ["-L".to_owned(), format!("{newer}/usr/share/{name}")]);
    (format!("{newer}/usr/bin/qemu-system-x86_64"), data.concat())
}

/// Arguments of QEMU.
fn arguments(machine: &Machine, image: &Image, directory: &Path) -> Vec<String> {
    let at = |name: &str| directory.join(name).display().to_string();
    // KVM that opens may still hang a guest (nested virtualisation), so that it is used on request only.
    let accelerator = std::env::var("HOLDFAST_GUEST_ACCEL").unwrap_or_else(|_| "tcg".to_owned());
    // The interrupt controller of KVM is split, since the IOMMU's remapping needs it.
    let irqchip = if accelerator == "kvm" { ",kernel-irqchip=split" } else { "" };
    let q35 = format!("q35,accel={accelerator}{irqchip}");
    // One for the control thread and the kernel.
    let cpus = 1 + machine.nic.lcores().len();
    let append = format!("{} {}", kernel_words(), machine.words);
    let mut all: Vec<String> = [
        "-nodefaults -no-user-config -no-reboot -display none -vga none -smp",
        &cpus.to_string(),
        "-m 768 -cpu max -machine",
        &q35,
        "-device virtio-serial-pci,addr=5 -device virtserialport,chardev=agent",
    ]
    .iter()
    .flat_map(|words| words.split(' '))
    .map(str::to_owned)
    .collect();
    let mut pair = |name: &str, value: String| all.extend([name.to_owned(), value]);
    if machine.iommu {
        pair("-device", "intel-iommu,intremap=on,caching-mode=on".to_owned());
    }
    pair("-kernel", image.kernel.display().to_string());
    pair("-initrd", image.files.display().to_string());
    pair("-append", append);
    pair("-serial", format!("file:{}", at("console")));
    pair("-chardev", format!("socket,id=agent,path={},server=on,wait=off", at("agent")));
    pair("-qmp", format!("unix:{},server=on,wait=off", at("monitor")));
    for number in 0..machine.nics {
        let (guest, host) = wire(directory, number);
        let ends = format!("local.path={},remote.path={}", guest.display(), host.display());
        pair("-netdev", format!("dgram,id=n{number},local.type=unix,remote.type=unix,{ends}"));
        let (model, options) = (machine.nic.model(), machine.nic.options());
        let slot = 0x10 + number;
        let place = if machine.nic == Nic::Igb {
            pair("-device", format!("pcie-root-port,id=r{number},chassis={number},addr={slot:x}"));
            format!("bus=r{number}")
        } else {
            format!("addr={slot:x}")
        };
        pair("-device", format!("{model},netdev=n{number},mac={},{place}{options}", mac(number)));
    }
    all.extend(machine.more.iter().cloned());
    all
}

/// Address of the guest's NIC `number`.
pub fn mac(number: usize) -> String {
    format!("02:00:00:00:01:{number:02x}")
}

/// The files that a guest starts from.
struct Image {
    kernel: PathBuf,
    files: PathBuf,
}

/// Makes the files unless they are there already and newer than the programs in them.
#[track_caller]
fn image() -> Image {
    let kept = Path::new(KEPT);
    std::fs::create_dir_all(kept).expect("a directory for guests");
    // Each test may be a process of its own.
    let lock = File::create(kept.join("lock")).expect("a lock");
    lock.lock().expect("a lock");
    let kernel = kept.join("kernel");
    script("kernel", &[&kernel.display().to_string()]);
    let files = kept.join("nic.cpio");
    let holdfast = env!("CARGO_BIN_EXE_holdfast");
    let init = format!("{SOURCES}/nic/init");
    let tests = std::env::current_exe().expect("this program").display().to_string();
    let parts = [holdfast, &tests, &init, &format!("{SOURCES}/guests/initramfs"), &format!("{SOURCES}/nic/guest.rs")];
    let changed = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    if !changed(&files)
        .is_some_and(|made| parts.iter().all(|part| changed(Path::new(part)).is_some_and(|at| at < made)))
    {
        let mut words = vec!["--kernel".to_owned(), kernel.display().to_string()];
        let mut pair = |name: &str, value: String| words.extend([name.to_owned(), value]);
        pair("--out", files.display().to_string());
        pair("--init", init);
        pair("--program", format!("{holdfast}=/bin/holdfast"));
        pair("--program", format!("{tests}={TESTS}"));
        MODULES.iter().for_each(|module| pair("--module", (*module).to_owned()));
        let drivers = drivers();
        LIBRARIES.iter().for_each(|name| pair("--library", format!("{drivers}/librte_{name}.so")));
        script("initramfs", &words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    Image { kernel: kernel.join("vmlinux"), files }
}

/// Directory of DPDK's drivers, whose name ends with the number of the ABI.
#[track_caller]
fn drivers() -> String {
    let output = Command::new("pkg-config").args(["--variable=libdir", "libdpdk"]).output().expect("pkg-config");
    let dpdk = format!("{}/dpdk", String::from_utf8_lossy(&output.stdout).trim());
    let names = std::fs::read_dir(&dpdk).unwrap_or_else(|error| panic!("{dpdk}: {error}")).flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let newest = names.filter(|name| name.starts_with("pmds-")).max();
    format!("{dpdk}/{}", newest.unwrap_or_else(|| panic!("{dpdk} has no drivers")))
}

#[track_caller]
fn script(name: &str, arguments: &[&str]) {
    let began = Instant::now();
    let output =
        Command::new(format!("{SOURCES}/guests/{name}")).args(arguments).output().expect("a script that starts");
    assert!(output.status.success(), "tests/guests/{name}: {}", String::from_utf8_lossy(&output.stderr));
    if began.elapsed() > Duration::from_secs(1) {
        eprintln!("tests/guests/{name} took {:.1} s", began.elapsed().as_secs_f32());
    }
}
