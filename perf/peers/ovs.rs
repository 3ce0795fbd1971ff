//! Open vSwitch with DPDK: its two daemons in a directory of their own, independent of an installed instance.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::counts::CountsFile;
use super::lab::{Lab, Memory};
use super::plan::{ENDLESS, HOPS, PORTS, PREFIXES, Point, hop_mac, router_mac};
use super::process::{self, Running};

const SWITCH: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const DATABASE: &str = "/usr/sbin/ovsdb-server";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const START_TIME: Duration = Duration::from_secs(5);

/// The database and the switch; the switch ends first.
pub struct Daemons {
    pub switch: Running,
    _database: Running,
}

/// The files that must be installed.
pub fn files() -> Vec<PathBuf> {
    [SWITCH, DATABASE, SCHEMA, "/usr/bin/ovs-vsctl", "/usr/bin/ovs-ofctl", "/usr/bin/ovsdb-tool"]
        .map(PathBuf::from)
        .to_vec()
}

impl Daemons {
    /// Starts both daemons, with one bridge of all ports.
    pub fn start(lab: &Lab, point: &Point, counts: &CountsFile) -> Result<Self> {
        let directory = lab.file("ovs");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).context("cannot make a directory for Open vSwitch")?;
        let database = start_database(lab, &directory)?;
        let socket = format!("unix:{}", directory.join("db.sock").display());
        configure(lab, point, counts, &directory, &socket)?;
        let mut switch = command(SWITCH, &directory);
        let (key, path) = lab.library_path();
        switch.env(key, path).arg(&socket).arg("--no-chdir");
        switch.arg(format!("--unixctl={}", directory.join("switch.ctl").display()));
        // The program may use both CPUs: it binds its polling thread itself, and its other threads sleep.
        let mut switch = Running::start("OVS-DPDK", &switch, &lab.cpus(), &lab.file("ovs-vswitchd.log"))?;
        if point.routed {
            route(&directory, &mut switch)?;
        }
        Ok(Self { switch, _database: database })
    }
}

/// A program of Open vSwitch that looks for its files only in `directory`.
fn command(program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    for key in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
        command.env(key, directory);
    }
    command
}

fn start_database(lab: &Lab, directory: &Path) -> Result<Running> {
    let file = directory.join("conf.db");
    process::run(command("ovsdb-tool", directory).arg("create").arg(&file).arg(SCHEMA))?;
    let socket = directory.join("db.sock");
    let mut server = command(DATABASE, directory);
    server.arg(&file).arg(format!("--remote=punix:{}", socket.display()));
    server.arg(format!("--unixctl={}", directory.join("db.ctl").display()));
    let mut running = Running::start("ovsdb-server", &server, &lab.control.to_string(), &lab.file("ovsdb-server.log"))?;
    let end = Instant::now() + START_TIME;
    while !socket.exists() && Instant::now() < end {
        running.check()?;
        process::nap(Duration::from_millis(10))?;
    }
    Ok(running)
}

/// Configures Open vSwitch with its defaults, except for tables as large as the traffic needs, so that no entry is
/// evicted.
fn configure(lab: &Lab, point: &Point, counts: &CountsFile, directory: &Path, socket: &str) -> Result<()> {
    let vsctl = || {
        let mut vsctl = command("ovs-vsctl", directory);
        vsctl.args([&format!("--db={socket}"), "--no-wait", "--timeout=10"]);
        vsctl
    };
    let mut eal: Vec<String> = Lab::generator_args().iter().map(|&arg| arg.to_owned()).collect();
    eal.push("--no-pci".to_owned());
    eal.extend(lab.memory_args().iter().map(|&arg| arg.to_owned()));
    if lab.memory == Memory::Ordinary {
        // Otherwise Open vSwitch adds `--in-memory`, which conflicts with ordinary pages.
        eal.push("--legacy-mem".to_owned());
    }
    eal.extend(lab.devices(point, ENDLESS, counts).iter().map(|device| format!("--vdev={device}")));
    process::run(vsctl().arg("init"))?;
    let mut settings = vec![
        "other_config:dpdk-init=true".to_owned(),
        format!("other_config:dpdk-extra={}", eal.join(" ")),
        format!("other_config:dpdk-lcore-mask={:#x}", 1_u64 << lab.control),
        format!("other_config:pmd-cpu-mask={:#x}", 1_u64 << lab.core),
        "other_config:flow-limit=1000000".to_owned(),
        // Each round of the revalidator threads raises the limit by 1,000 flows. This is the shortest round; the
        // default is half a second.
        "other_config:max-revalidator=100".to_owned(),
    ];
    if matches!(lab.memory, Memory::Huge { .. }) {
        settings.push("other_config:dpdk-socket-mem=1024".to_owned());
    }
    process::run(vsctl().args(["set", "Open_vSwitch", "."]).args(settings))?;
    let mut bridge = vsctl();
    // A bridge in secure mode has no flows of its own.
    let mode = if point.routed { "fail-mode=secure" } else { "fail-mode=standalone" };
    bridge.args(["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", mode]);
    bridge.arg("other_config:mac-table-size=1000000");
    for port in 0..PORTS {
        bridge.args(["--", "add-port", "br0", &format!("p{port}"), "--", "set", "Interface", &format!("p{port}")]);
        bridge.arg(format!("ofport_request={}", port + 1));
        bridge.args(["type=dpdk", &format!("options:dpdk-devargs=net_hfgen{port}")]);
    }
    process::run(&mut bridge)?;
    Ok(())
}

/// Makes the bridge a router: one flow for each prefix.
fn route(directory: &Path, switch: &mut Running) -> Result<()> {
    let mut flows = String::new();
    for (port, prefix) in (0..PORTS).flat_map(|port| (0..PREFIXES).map(move |prefix| (port, prefix))) {
        let (own, hop) = (router_mac(port), hop_mac(port, prefix % HOPS));
        let _ = writeln!(
            flows,
            "ip,nw_dst=10.{port}.{prefix}.0/24,actions=mod_dl_src:{own},mod_dl_dst:{hop},dec_ttl,output:{}",
            port + 1
        );
    }
    let file = directory.join("flows");
    fs::write(&file, flows).context("cannot write flows")?;
    let socket = directory.join("br0.mgmt");
    let end = Instant::now() + START_TIME;
    while !socket.exists() && Instant::now() < end {
        switch.check()?;
        process::nap(Duration::from_millis(10))?;
    }
    let bridge = format!("unix:{}", socket.display());
    process::run(command("ovs-ofctl", directory).args(["add-flows", &bridge]).arg(&file))?;
    Ok(())
}
