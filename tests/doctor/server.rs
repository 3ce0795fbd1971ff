//! A server made of files, and the findings of the doctor on it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use holdfast::config;
use holdfast::doctor::{Facts, Finding, Level, Needs, Peer, findings, probe};

/// All capabilities, as root has them.
pub const ALL: &str = "000001ffffffffff";
/// No capabilities.
pub const NONE: &str = "0000000000000000";

/// A switch on two NICs of NUMA node 1, each polled by a CPU of that node.
pub const NICS: &str = "\
preset: roce
ports:
  - {name: a, device: \"0000:3b:00.0\", speed: 10G, pfc_proven: true}
  - {name: b, device: \"3b:00.1\", speed: 10G, pfc_proven: true}
lcores: {control: 0, dataplane: [6, 7]}
";

/// A server with two NUMA nodes of four CPUs, the last two of each isolated, and 64 pages of 2 MiB on each node. Two
/// ixgbe NICs on node 1 are bound to vfio-pci. The user is root.
pub struct Server {
    root: tempfile::TempDir,
}

impl Server {
    pub fn new() -> Self {
        let server = Self { root: tempfile::tempdir().expect("a temporary directory") };
        server.cpus();
        for node in 0..2 {
            server.pages(node, 1024, 1024);
        }
        for (function, group) in [(0, "40"), (1, "41")] {
            server.nic(&format!("0000:3b:00.{function}"), "0x8086", "0x10fb", Some("vfio-pci"), "1", group);
            server.file(&format!("dev/vfio/{group}"), "");
            fs::create_dir_all(server.path(&format!("sys/kernel/iommu_groups/{group}"))).expect("our own directory");
        }
        server.file("dev/net/tun", "");
        server.process(0, ALL, "unlimited");
        server.file("proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable:   48000000 kB\n");
        server.file("proc/self/mounts", "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0\n");
        for driver in ["net_ring", "net_tap", "net_af_packet", "net_ixgbe", "net_i40e", "net_ice", "net_mlx5"] {
            server.file(&Self::driver(driver), "");
        }
        server
    }

    fn cpus(&self) {
        let system = "sys/devices/system/cpu";
        self.file(&format!("{system}/online"), "0-7\n");
        self.file(&format!("{system}/isolated"), "2-3,6-7\n");
        self.file(&format!("{system}/nohz_full"), "2-3,6-7\n");
        for cpu in 0..8 {
            self.file(&format!("{system}/cpu{cpu}/cpufreq/scaling_governor"), "performance\n");
            self.file(&format!("{system}/cpu{cpu}/topology/thread_siblings_list"), &format!("{cpu}\n"));
        }
        self.file("sys/devices/system/node/node0/cpulist", "0-3\n");
        self.file("sys/devices/system/node/node1/cpulist", "4-7\n");
        self.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
        self.file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc waitpkg\n");
    }

    /// The file of a driver of DPDK 24.11, whose ABI has number 25.
    pub fn driver(name: &str) -> String {
        format!("usr/lib/x86_64-linux-gnu/dpdk/pmds-25.0/librte_{name}.so.25.0")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("our own directory");
        fs::write(path, text).expect("our own file");
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("our own file");
    }

    pub fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).expect("our own file");
    }

    pub fn pages(&self, node: u16, total: u64, free: u64) {
        let place = format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB");
        self.file(&format!("{place}/nr_hugepages"), &format!("{total}\n"));
        self.file(&format!("{place}/free_hugepages"), &format!("{free}\n"));
    }

    /// Adds a NIC, or replaces the one at `address`.
    pub fn nic(&self, address: &str, vendor: &str, device: &str, driver: Option<&str>, node: &str, group: &str) {
        let place = format!("sys/bus/pci/devices/{address}");
        let _ = fs::remove_dir_all(self.path(&place));
        for (file, text) in [("class", "0x020000"), ("vendor", vendor), ("device", device), ("numa_node", node)] {
            self.file(&format!("{place}/{file}"), &format!("{text}\n"));
        }
        let link = |name: &str, target: String| symlink(target, self.path(&format!("{place}/{name}"))).expect("a link");
        link("iommu_group", format!("../../../kernel/iommu_groups/{group}"));
        if let Some(driver) = driver {
            link("driver", format!("../../../bus/pci/drivers/{driver}"));
        }
    }

    /// Sets the user of the process and its capabilities, as granted by a systemd unit.
    pub fn process(&self, uid: u32, capabilities: &str, memlock: &str) {
        self.process_of_file(uid, capabilities, capabilities, memlock);
    }

    /// Sets the user of the process and its capabilities. All except the ambient ones come from the program's file.
    pub fn process_of_file(&self, uid: u32, capabilities: &str, ambient: &str, memlock: &str) {
        let ids = format!("{uid}\t{uid}\t{uid}\t{uid}");
        let masks = format!("CapPrm:\t{capabilities}\nCapEff:\t{capabilities}\nCapAmb:\t{ambient}\n");
        let status = format!("Name:\tholdfast\nUid:\t{ids}\nGid:\t{ids}\nGroups:\t\n{masks}Cpus_allowed_list:\t0-7\n");
        self.file("proc/self/status", &status);
        self.file("proc/self/limits", &format!("Max locked memory         {memlock}   {memlock}   bytes\n"));
    }

    /// Returns the findings for this configuration, which takes `mib` MiB.
    pub fn examine(&self, configuration: &str, mib: Option<u32>) -> Vec<Finding> {
        let config = config::parse("x.yaml", configuration).unwrap_or_else(|errors| panic!("{errors}"));
        findings(&probe(self.root()), Some(&Needs::new(&config, mib)))
    }

    /// Returns the findings for a switch by `configuration` beside a running one with these peers.
    pub fn examine_with(&self, configuration: &str, peers: Vec<Peer>) -> Vec<Finding> {
        let config = config::parse("x.yaml", configuration).unwrap_or_else(|errors| panic!("{errors}"));
        findings(&Facts { peers, has_switch: true, ..probe(self.root()) }, Some(&Needs::new(&config, None)))
    }

    /// Returns the findings without a configuration.
    pub fn look(&self) -> Vec<Finding> {
        findings(&probe(self.root()), None)
    }

    /// Returns level and place of each finding that is not ok. A build without DPDK does not count.
    pub fn faults(&self, configuration: &str, mib: Option<u32>) -> Vec<(Level, String)> {
        faults(&self.examine(configuration, mib))
    }
}

/// Returns level and place of each finding that is not ok, without those about DPDK.
pub fn faults(findings: &[Finding]) -> Vec<(Level, String)> {
    let wrong = findings.iter().filter(|finding| finding.level != Level::Ok && finding.place != "dpdk");
    wrong.map(|finding| (finding.level, finding.place.clone())).collect()
}

/// Returns the only finding of this level at `place`, as text with its remedy.
#[track_caller]
pub fn at(findings: &[Finding], level: Level, place: &str) -> String {
    let mut found = findings.iter().filter(|finding| (finding.level, &*finding.place) == (level, place));
    let Some(one) = found.next() else { panic!("nothing {} at {place}: {findings:#?}", level.label()) };
    assert_eq!(found.next(), None, "one finding");
    format!("{} > {}", one.what, one.remedy.clone().unwrap_or_default())
}
