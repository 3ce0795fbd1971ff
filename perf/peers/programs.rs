//! The programs that are compared: their commands, and their work per packet.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::counts::CountsFile;
use super::lab::{Lab, Memory};
use super::ovs::{self, Daemons};
use super::plan::{BATCHES, ENDLESS, HOPS, PORTS, PREFIXES, Point, hop_mac, router_mac};
use super::process::Running;
use super::vpp;

/// One of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    /// The work per packet, in words.
    pub does: &'static str,
    /// Whether the program forwards by addresses, as an incast needs. The others forward between fixed pairs of ports.
    pub looks_at_addresses: bool,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Testpmd(&'static str),
    L2fwd,
    L3fwd,
    OpenVswitch,
    Vpp,
    Holdfast(Tuning),
}

/// The configuration of Holdfast for its generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tuning {
    /// One burst of each port per poll, and backlog is ignored: for a generator that always has more frames.
    Peers,
    /// The defaults of a configuration, with frames in [`BATCHES`].
    Operator,
}

/// All programs, in the order of the table.
pub const PROGRAMS: [Program; 8] = [
    Program {
        name: "testpmd io",
        does: "nothing: hands each burst of a port to its neighbour, so this is the generator alone",
        looks_at_addresses: false,
        kind: Kind::Testpmd("io"),
    },
    Program {
        name: "testpmd macswap",
        does: "swaps the two MAC addresses; fixed pairs of ports",
        looks_at_addresses: false,
        kind: Kind::Testpmd("macswap"),
    },
    Program {
        name: "l2fwd",
        does: "writes both MAC addresses, buffers up to 32 frames a port; fixed pairs of ports, no look-up",
        looks_at_addresses: false,
        kind: Kind::L2fwd,
    },
    Program {
        name: "l3fwd",
        does: "longest-prefix look-up of the IPv4 destination in 1,024 routes, writes both MAC addresses, decrements the \
               TTL; no learning, no classes, no queues",
        looks_at_addresses: true,
        kind: Kind::L3fwd,
    },
    Program {
        name: "OVS-DPDK",
        does: "parses to L4, looks up an exact-match cache and then its megaflows, for a learning bridge (NORMAL) \
               or 1,024 flows of a router; learns in the slow path; no classes, no queues",
        looks_at_addresses: true,
        kind: Kind::OpenVswitch,
    },
    Program {
        name: "VPP",
        does: "a graph of nodes over vectors of up to 256 frames: learns and looks up MAC addresses in a bridge domain, \
               or longest-prefix look-up, TTL and checksum of a router; no classes, no queues",
        looks_at_addresses: true,
        kind: Kind::Vpp,
    },
    Program {
        name: "Holdfast",
        does: "parses to L4, learns and looks up MAC addresses or routes, classifies by DSCP, admits to a shared buffer \
               (Dynamic Threshold, PFC), eight queues a port with strict and DWRR, pacing, ECN, counters by class",
        looks_at_addresses: true,
        kind: Kind::Holdfast(Tuning::Peers),
    },
    Program {
        name: "Holdfast operator",
        does: "the same with the poll gap (20 us) and the backlog rule that a configuration gets by default; 200G \
               ports that have 48 frames for each poll, where those of the others always have more",
        looks_at_addresses: true,
        kind: Kind::Holdfast(Tuning::Operator),
    },
];

/// A running program.
pub enum Started {
    Single(Running),
    OpenVswitch(Daemons),
}

impl Started {
    /// Returns an error if the program has ended.
    pub fn check(&mut self) -> Result<()> {
        match self {
            Self::Single(running) => running.check(),
            Self::OpenVswitch(daemons) => daemons.switch.check(),
        }
    }

    /// An error about the program, with the last lines of its log.
    pub fn complaint(&self, what: &str) -> anyhow::Error {
        match self {
            Self::Single(running) => running.complaint(what),
            Self::OpenVswitch(daemons) => daemons.switch.complaint(what),
        }
    }
}

impl Program {
    /// Checks that the program is installed.
    ///
    /// # Errors
    /// The missing file, and how to get it.
    pub fn find(&self, lab: &Lab) -> Result<()> {
        let (files, remedy) = match self.kind {
            Kind::Vpp => return vpp::find().map(drop),
            Kind::Testpmd(_) => (vec![testpmd()], "apt-get install dpdk-dev"),
            Kind::L2fwd => (vec![lab.directory.join("l2fwd")], "perf/generator/build.sh"),
            Kind::L3fwd => (vec![lab.directory.join("l3fwd")], "perf/generator/build.sh"),
            Kind::OpenVswitch => (ovs::files(), "apt-get install openvswitch-switch-dpdk"),
            Kind::Holdfast(_) => (vec![holdfast()], "cargo build --release"),
        };
        match files.iter().find(|file| !file.exists()) {
            None => Ok(()),
            Some(file) => {
                bail!("{} is missing ({}); `{remedy}` or `make perf` puts it there", self.name, file.display())
            }
        }
    }

    /// Whether a comparison without the program is complete: no package of Debian has it.
    pub fn is_optional(&self) -> bool {
        self.kind == Kind::Vpp
    }

    /// The name in tables.
    pub fn title(&self) -> &'static str {
        match self.kind {
            Kind::Holdfast(Tuning::Operator) => "Holdfast, an operator's defaults",
            _ => self.name,
        }
    }

    /// Whether the program can be measured at `point`.
    pub fn can(&self, point: &Point) -> bool {
        self.looks_at_addresses || !point.is_congested()
    }

    /// Whether the program tells senders to pause.
    pub fn pauses(&self) -> bool {
        matches!(self.kind, Kind::Holdfast(_))
    }

    /// Whether the first frame of every flow takes a slow path, which may need many seconds for all flows.
    pub fn is_slow_to_warm(&self) -> bool {
        self.kind == Kind::OpenVswitch
    }

    /// Starts the program.
    pub fn start(&self, lab: &Lab, point: &Point, counts: &CountsFile) -> Result<Started> {
        let command = match self.kind {
            Kind::Testpmd(mode) => testpmd_command(lab, point, counts, mode),
            Kind::L2fwd => l2fwd_command(lab, point, counts),
            Kind::L3fwd => l3fwd_command(lab, point, counts)?,
            Kind::Holdfast(tuning) => holdfast_command(lab, point, counts, tuning)?,
            Kind::Vpp => vpp::command(lab, point, counts)?,
            Kind::OpenVswitch => return Ok(Started::OpenVswitch(Daemons::start(lab, point, counts)?)),
        };
        let log = lab.file(&format!("{}.log", self.name.replace(' ', "-")));
        Ok(Started::Single(Running::start(self.name, &command, &lab.cpus(), &log)?))
    }
}

fn testpmd() -> PathBuf {
    PathBuf::from("/usr/bin/dpdk-testpmd")
}

fn holdfast() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_holdfast"))
}

/// The command of a DPDK program with EAL's arguments; `lcores` is the value of `-l`.
fn dpdk(program: &Path, lab: &Lab, lcores: &str, point: &Point, counts: &CountsFile) -> Command {
    let mut command = Command::new(program);
    let (key, path) = lab.library_path();
    command.env(key, path).args(["-l", lcores, "--no-pci", "--no-telemetry"]).args(lab.memory_args());
    command.args(Lab::generator_args());
    for device in lab.devices(point, ENDLESS, counts) {
        command.arg("--vdev").arg(device);
    }
    command.arg("--");
    command
}

fn testpmd_command(lab: &Lab, point: &Point, counts: &CountsFile, mode: &str) -> Command {
    let lcores = format!("{},{}", lab.control, lab.core);
    let mut command = dpdk(&testpmd(), lab, &lcores, point, counts);
    // The main lcore of testpmd waits for a key; the other forwards.
    let buffers = PORTS as u32 * (point.posted + 1024) + 4096;
    command.args(["--nb-cores=1", "--auto-start", &format!("--forward-mode={mode}")]);
    command.arg(format!("--total-num-mbufs={buffers}"));
    command
}

fn l2fwd_command(lab: &Lab, point: &Point, counts: &CountsFile) -> Command {
    let mut command = dpdk(&lab.directory.join("l2fwd"), lab, &lab.core.to_string(), point, counts);
    // All ports on one lcore, and no statistics on the screen.
    command.args(["-p", "f", "-q", &PORTS.to_string(), "-T", "0", "-P"]);
    command
}

fn l3fwd_command(lab: &Lab, point: &Point, counts: &CountsFile) -> Result<Command> {
    let core = lab.core;
    let (routes, routes6) = (lab.file("routes"), lab.file("routes6"));
    let mut text = String::new();
    for port in 0..PORTS {
        for subnet in 0..PREFIXES {
            let _ = writeln!(text, "R10.{port}.{subnet}.0/24 {port}");
        }
    }
    fs::write(&routes, text).context("cannot write routes")?;
    // l3fwd requires a file of IPv6 routes.
    fs::write(&routes6, "R2001:0db8:0000:0000:0000:0000:0000:0000/32 0\n").context("cannot write routes")?;
    let queues: Vec<String> = (0..PORTS).map(|port| format!("({port},0,{core})")).collect();
    let mut command = dpdk(&lab.directory.join("l3fwd"), lab, &core.to_string(), point, counts);
    command.args(["-p", "f", "-P", "--config", &queues.join(",")]);
    // The queue size determines the size of l3fwd's pool.
    command.args(["--rx-queue-size", &point.posted.to_string()]);
    command.arg(format!("--rule_ipv4={}", routes.display())).arg(format!("--rule_ipv6={}", routes6.display()));
    Ok(command)
}

fn holdfast_command(lab: &Lab, point: &Point, counts: &CountsFile, tuning: Tuning) -> Result<Command> {
    let config = lab.file("holdfast.yaml");
    fs::write(&config, holdfast_config(lab, point, counts, tuning)).context("cannot write a configuration")?;
    let mut command = Command::new(holdfast());
    let (key, path) = lab.library_path();
    command.env(key, path).env("HOLDFAST_SOCKET", "off").arg("run").arg(config);
    Ok(command)
}

/// A configuration with all features except virtual hosts. [`Tuning::Peers`] differs from an operator's configuration
/// in two keys. A generator that always has more frames must not cause pauses by its backlog. A core that takes one
/// burst at a time polls more often than once in 20 us.
fn holdfast_config(lab: &Lab, point: &Point, counts: &CountsFile, tuning: Tuning) -> String {
    let (feed, lcores) = match tuning {
        Tuning::Peers => (ENDLESS, ", poll_gap: 1ns, backlog_xoff: off"),
        Tuning::Operator => (BATCHES, ""),
    };
    let mut text = "preset: roce\nports:\n".to_owned();
    for (port, device) in lab.devices(point, feed, counts).iter().enumerate() {
        let speed = point.drain_mb(port).unwrap_or(feed.speed_mb);
        let _ = writeln!(
            text,
            "  - {{name: p{port}, device: \"{device}\", speed: {speed}M, rx_descriptors: {}}}",
            point.posted.min(16_384)
        );
    }
    let memory = match lab.memory {
        Memory::Huge { .. } => "huge",
        Memory::Ordinary => "nohuge",
    };
    let [load, library] = Lab::generator_args();
    let capacity = (2 * PORTS as u32 * point.flows).max(16_384);
    let _ = writeln!(
        text,
        "{}fdb: {{capacity: {capacity}}}\n\
         lcores: {{control: {}, dataplane: {}{lcores}}}\n\
         eal: {{memory: {memory}, args: [\"{load}\", \"{library}\"]}}\n\
         metrics: off",
        if point.routed { routing() } else { String::new() },
        lab.control,
        lab.core
    );
    text
}

/// The section of a router with the prefixes and next hops of [`Point::routed`]. The forwarding table has room for
/// little more, since hugepages are few.
fn routing() -> String {
    let mut text = "routing:\n  fib: {ipv4: 4096, ipv6: 1024}\n  interfaces:\n".to_owned();
    for port in 0..PORTS {
        let mac = router_mac(port);
        let _ = writeln!(text, "    - {{port: p{port}, addresses: [10.255.{port}.1/24], mac: \"{mac}\"}}");
    }
    let hops =
        || (0..PORTS).flat_map(|port| (0..HOPS).map(move |hop| (port, hop, format!("10.255.{port}.{}", hop + 2))));
    text.push_str("  neighbours:\n");
    for (port, hop, address) in hops() {
        let mac = hop_mac(port, hop);
        let _ = writeln!(text, "    - {{port: p{port}, address: {address}, mac: \"{mac}\"}}");
    }
    text.push_str("  routes:\n");
    for (port, hop, address) in hops() {
        for prefix in (hop..PREFIXES).step_by(HOPS) {
            let _ = writeln!(text, "    - {{to: 10.{port}.{prefix}.0/24, via: [{address}]}}");
        }
    }
    text
}
