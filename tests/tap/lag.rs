//! A host with two links of a group: Open vSwitch speaks LACP with the switch. It is a program of others, and needs no
//! bonding driver. Its packet path runs in user space (`datapath_type=netdev`).

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::capture::Capture;
use crate::metrics::Exposition;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, mortal, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, run_arguments};
use crate::ready::machine_is_ready;
use crate::rig::METRICS;

/// Members of the group, their interfaces at the switch and at the bonded host.
const MEMBERS: [(&str, &str, &str); 2] = [("a", "m0", "e0"), ("b", "m1", "e1")];
/// The port of the other host.
const ALONE: &str = "lpc";

/// Flows, each with a socket of its own, and the time between two datagrams of one.
const FLOWS: u16 = 16;
const PERIOD: Duration = Duration::from_millis(10);
const FIRST_PORT: u16 = 20_000;
const BONDED: &str = "10.77.0.1";
const OTHER: &str = "10.77.0.2";
/// DSCP 26 and ECT(0): class 3 of `preset: roce`, which is lossless.
const TOS: u8 = 26 << 2 | 2;
/// The time in which traffic moves to another member.
const MOVES: Duration = Duration::from_secs(1);

fn config(lacp: &str) -> String {
    let port = |(number, (name, interface)): (usize, (&str, &str))| {
        format!("  - {{name: {name}, device: 'net_af_packet{number},iface={interface}', speed: 1G}}\n")
    };
    let members = MEMBERS.map(|(name, interface, _)| (name, interface));
    let ports: String = members.into_iter().chain([("c", ALONE)]).enumerate().map(port).collect();
    format!("preset: roce\nports:\n{ports}lags: [{{name: bond0, ports: [a, b]{lacp}}}]\nlcores: {{poll_gap: 1ms}}\n")
}

/// Open vSwitch in a namespace, with its database.
struct Ovs {
    directory: TempDir,
    _database: Process,
    _daemon: Process,
}

impl Ovs {
    #[track_caller]
    fn start(inside: &Namespace) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name).display().to_string();
        let spawn = |program: &str, arguments: &[String]| {
            let mut command = inside.command(program);
            command.args(arguments).env("OVS_RUNDIR", directory.path()).env("OVS_DBDIR", directory.path());
            Process::spawn(command)
        };
        let created =
            mortal("ovsdb-tool").args(["create", &at("db"), "/usr/share/openvswitch/vswitch.ovsschema"]).output();
        assert!(created.as_ref().is_ok_and(|output| output.status.success()), "{created:?}");
        let remote = format!("--remote=punix:{}", at("db.sock"));
        let database = spawn("ovsdb-server", &[at("db"), remote, format!("--unixctl={}", at("db.ctl"))]);
        let socket = PathBuf::from(at("db.sock"));
        wait_for("database of Open vSwitch", PATIENCE, || socket.exists().then_some(()));
        let daemon = spawn("ovs-vswitchd", &[format!("unix:{}", at("db.sock")), format!("--unixctl={}", at("vs.ctl"))]);
        let ovs = Self { directory, _database: database, _daemon: daemon };
        ovs.set("--no-wait init");
        ovs.set("add-br br0 -- set bridge br0 datapath_type=netdev");
        ovs
    }

    #[track_caller]
    fn set(&self, words: &str) {
        let socket = format!("--db=unix:{}", self.directory.path().join("db.sock").display());
        let output = mortal("ovs-vsctl").arg("--timeout=60").arg(socket).args(words.split(' ')).output();
        assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{words}: {output:?}");
    }

    /// Its report on LACP.
    fn lacp(&self) -> String {
        let socket = self.directory.path().join("vs.ctl");
        let output = mortal("ovs-appctl").arg("-t").arg(socket).args(["lacp/show", "bond0"]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    /// Number of its members that are in use.
    fn active(&self) -> usize {
        self.lacp().matches(": current attached").count()
    }
}

/// The switch, the bonded host and the other one.
struct Lab {
    switch: Namespace,
    bonded: Namespace,
    other: Namespace,
    ovs: Ovs,
    process: Process,
    socket: PathBuf,
    _config: Config,
    _directory: TempDir,
}

impl Lab {
    #[track_caller]
    fn start(lacp: &str, of_ovs: &str) -> Self {
        let prefix = unique_prefix();
        let [switch, bonded, other] =
            ["switch", "bonded", "other"].map(|name| Namespace::new(format!("{prefix}-{name}")));
        let link = |own: &str, host: &Namespace, name: &str, far: &str| {
            let netns = format!("{prefix}-{name}");
            switch.run(&["ip", "link", "add", own, "type", "veth", "peer", "name", far, "netns", &netns]);
            switch.run(&["ip", "link", "set", "dev", own, "addrgenmode", "none", "up"]);
            host.run(&["ip", "link", "set", "dev", far, "addrgenmode", "none", "up"]);
        };
        MEMBERS.iter().for_each(|(_, own, far)| link(own, &bonded, "bonded", far));
        // Linux would answer ARP for the address of the bridge at each link.
        MEMBERS.iter().for_each(|(_, _, far)| drop(bonded.run(&["ip", "link", "set", "dev", far, "arp", "off"])));
        link(ALONE, &other, "other", "eth0");
        let ovs = Ovs::start(&bonded);
        ovs.set(&format!("add-bond br0 bond0 e0 e1 bond_mode=balance-tcp {of_ovs}"));
        bonded.run(&["ip", "address", "add", &format!("{BONDED}/24"), "dev", "br0"]);
        bonded.run(&["ip", "link", "set", "dev", "br0", "up"]);
        other.run(&["ip", "address", "add", &format!("{OTHER}/24"), "dev", "eth0"]);
        // A veth leaves checksums to a device that is not there, and the switch forwards frames as they are.
        other.run(&["ethtool", "-K", "eth0", "tx", "off"]);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (config, socket) = (Config::new(&config(lacp)), directory.path().join("api.sock"));
        let mut command = switch.command(HOLDFAST);
        command.args(["run", &config.path(), "--json"]).args(run_arguments()).env("HOLDFAST_SOCKET", &socket);
        let process = Process::spawn(command);
        Self { switch, bonded, other, ovs, process, socket, _config: config, _directory: directory }
    }

    fn try_metrics(&self) -> Option<Exposition> {
        Some(Exposition::parse(&self.switch.get(METRICS, "/metrics")?))
    }

    fn metrics(&self) -> Exposition {
        self.try_metrics().unwrap_or_else(|| panic!("no metrics: {}", self.process.stderr()))
    }

    /// Waits until this many members are active at both ends.
    #[track_caller]
    fn wait_for_members(&self, count: usize) {
        wait_for("active members", PATIENCE, || {
            let of_switch = self.try_metrics()?.sum("holdfast_lag_member_active", &[("lag", "bond0")]) as usize;
            (of_switch == count && self.ovs.active() == count).then_some(())
        });
    }

    fn set_link(&self, member: usize, state: &str) {
        self.bonded.run(&["ip", "link", "set", "dev", MEMBERS[member].2, state]);
    }

    fn show(&self) -> String {
        self.switch.run(&[HOLDFAST, "show", "lags", "--socket", self.socket.to_str().expect("a path")])
    }

    #[track_caller]
    fn says(&self, line: &str) {
        wait_for(line, PATIENCE, || self.process.stderr().contains(line).then_some(()));
    }

    /// Waits until the hosts reach each other.
    #[track_caller]
    fn meet(&self) {
        let ping = ["ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "5", BONDED];
        let is_met = (0..5).any(|_| self.other.try_run(&ping).is_ok());
        assert!(is_met, "{}\n{}\n{}", self.show(), self.ovs.lacp(), self.process.stderr());
    }

    #[track_caller]
    fn stop(self) {
        self.process.signal("TERM");
        let ended = self.process.wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
}

/// A flow as the receiver saw it.
#[derive(Debug, Default, Clone)]
struct Seen {
    highest: u64,
    count: u64,
    /// Datagrams that came after a later one.
    late: u64,
    last: Option<Instant>,
    /// Longest time between two datagrams.
    gap: Duration,
}

/// Flows by their source port.
type Flows = BTreeMap<u16, Seen>;

/// Datagrams in order from the other host to the bonded one.
struct Traffic {
    is_over: Arc<AtomicBool>,
    flows: Arc<Mutex<Flows>>,
    threads: [JoinHandle<()>; 2],
}

impl Traffic {
    #[track_caller]
    fn start(lab: &Lab) -> Self {
        let (is_over, flows) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Flows::new())));
        let receiver = lab.bonded.udp(&format!("{BONDED}:7000"));
        receiver.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 16 << 20).expect("a large buffer");
        let sockets: Vec<UdpSocket> =
            (0..FLOWS).map(|flow| lab.other.udp(&format!("{OTHER}:{}", FIRST_PORT + flow))).collect();
        sockets.iter().for_each(|socket| rustix::net::sockopt::set_ip_tos(socket, TOS).expect("a TOS"));
        let over = is_over.clone();
        let sender = std::thread::spawn(move || {
            for number in 1_u64.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                for socket in &sockets {
                    // A full queue of the sender is no loss of the switch: the number is then missing.
                    let _ = socket.send_to(&number.to_be_bytes(), (BONDED, 7000));
                }
                sleep(PERIOD);
            }
        });
        let (over, seen) = (is_over.clone(), flows.clone());
        let receiver = std::thread::spawn(move || receive(&receiver, &over, &seen));
        Self { is_over, flows, threads: [sender, receiver] }
    }

    /// Waits until each flow has so many further datagrams. Measures gaps from then on.
    #[track_caller]
    fn wait_for_all(&self, further: u64) {
        let before = self.flows.lock().expect("flows").clone();
        wait_for("datagrams of all flows", PATIENCE, || {
            let flows = self.flows.lock().expect("flows");
            let has_come =
                |(port, seen): (&u16, &Seen)| seen.count >= further + before.get(port).map_or(0, |before| before.count);
            (flows.len() == usize::from(FLOWS) && flows.iter().all(has_come)).then_some(())
        });
    }

    /// Forgets the gaps until now.
    fn reset_gaps(&self) {
        self.flows.lock().expect("flows").values_mut().for_each(|seen| seen.gap = Duration::ZERO);
    }

    fn stop(self) -> Flows {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        self.flows.lock().expect("flows").clone()
    }
}

fn receive(socket: &UdpSocket, is_over: &AtomicBool, flows: &Mutex<Flows>) {
    let mut buffer = [0; 64];
    loop {
        let Ok((len, from)) = socket.recv_from(&mut buffer) else {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            continue;
        };
        let number = u64::from_be_bytes(buffer[..len].try_into().expect("eight bytes"));
        let (mut flows, now) = (flows.lock().expect("flows"), Instant::now());
        let seen = flows.entry(from.port()).or_default();
        seen.gap = seen.gap.max(seen.last.map_or(Duration::ZERO, |last| now - last));
        (seen.last, seen.count) = (Some(now), seen.count + 1);
        if number <= seen.highest {
            seen.late += 1;
        }
        seen.highest = seen.highest.max(number);
    }
}

#[test]
fn host_loses_a_link_and_gets_it_back_without_reordering() {
    if !machine_is_ready() {
        return;
    }
    let lab = Lab::start("", "lacp=active other_config:lacp-time=fast");
    lab.wait_for_members(2);
    lab.says(" lacp: bond0: carries frames");
    // A member counts as active while it opens.
    wait_for("two rows that are active", PATIENCE, || {
        let text = lab.show();
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(" active ")).collect();
        (rows.len() == 2 && rows[0].starts_with("bond0  active, fast  up")).then_some(())
    });
    lab.meet();
    let sent_by =
        |lab: &Lab, port| lab.metrics().sum("holdfast_port_sent_frames_total", &[("port", port), ("queue", "3")]);
    let traffic = Traffic::start(&lab);
    // Open vSwitch takes a while for the first frames of a flow.
    traffic.wait_for_all(50);
    assert!(MEMBERS.iter().all(|(port, ..)| sent_by(&lab, port) > 0.0), "both members carry flows");
    traffic.reset_gaps();
    lab.set_link(0, "down");
    lab.wait_for_members(1);
    lab.says(" lacp: bond0 a: is not active: it has no link");
    traffic.wait_for_all(50);
    let back = sent_by(&lab, "a");
    lab.set_link(0, "up");
    lab.wait_for_members(2);
    wait_for("flows at the member that is back", PATIENCE, || (sent_by(&lab, "a") >= back + 50.0).then_some(()));
    traffic.wait_for_all(50);
    let flows = traffic.stop();
    let late: u64 = flows.values().map(|seen| seen.late).sum();
    assert_eq!(late, 0, "{flows:?}");
    // The longest silence of a flow, beyond that of the flow which this machine held least.
    let gaps = flows.values().map(|seen| seen.gap);
    let (least, most) = (gaps.clone().min().unwrap_or_default(), gaps.max().unwrap_or_default());
    assert!(most <= least + MOVES, "{least:?} to {most:?}");
    let metrics = lab.metrics();
    // Frames that waited at the link that went down, and no others.
    let dropped = |labels: &[(&str, &str)]| metrics.sum("holdfast_port_dropped_frames_total", labels);
    let at_link = dropped(&[("tc", "3"), ("reason", "egress_down"), ("port", "a")]);
    assert_eq!(dropped(&[("tc", "3")]), at_link);
    assert_eq!(metrics.sum("holdfast_lag_early_openings_total", &[]), 0.0);
    assert_eq!(metrics.sum("holdfast_lag_member_downs_total", &[("port", "a")]), 1.0);
    lab.stop();
}

#[test]
fn passive_group_waits_for_its_peer_and_a_static_peer_is_told_with_its_remedy() {
    if !machine_is_ready() {
        return;
    }
    let lab = Lab::start(", lacp: passive, rate: slow, min_links: 2", "lacp=off");
    let advice = "bond0 a: the peer sends no LACP and perhaps waits too; write `lacp: active` here";
    wait_for(advice, PATIENCE, || {
        let text = lab.switch.try_run(&[HOLDFAST, "show", "lags", "--socket", lab.socket.to_str()?]).ok()?;
        (text.contains(advice) && text.contains("carries no frames, has 0 active members and needs 2")).then_some(())
    });
    lab.ovs.set("set port bond0 lacp=active other_config:lacp-time=fast");
    lab.wait_for_members(2);
    lab.meet();
    // One link is too few.
    lab.set_link(1, "down");
    lab.says(" lacp: bond0: carries no frames: it has 0 active members and needs 2");
    lab.stop();
}

#[test]
fn peer_is_told_before_the_switch_ends_and_finds_no_frame_malformed() {
    if !machine_is_ready() {
        return;
    }
    let lab = Lab::start("", "lacp=active other_config:lacp-time=fast");
    lab.wait_for_members(2);
    let capture = Capture::on(&lab.bonded, "e1", "ether proto 0x8809");
    let link = crate::interface::look(&lab.bonded, MEMBERS[1].2);
    let of_ovs = link["address"].as_str().expect("an address");
    // A data unit a second by both ends.
    sleep(Duration::from_secs(3));
    let Lab { process, .. } = &lab;
    process.signal("TERM");
    wait_for("end of the group", PATIENCE, || (lab.ovs.active() == 0).then_some(()));
    let trace = capture.stop();
    assert_eq!(trace.fields("_ws.malformed", &["frame.number"]), [[""; 0]; 0]);
    let own = format!("lacp && eth.src != {of_ovs}");
    let bits = ["lacp.actor.state.synchronization", "lacp.actor.state.distributing", "lacp.actor.state.timeout"];
    let rows = trace.fields(&own, &bits);
    assert!(rows.len() >= 3, "{rows:?}");
    assert_eq!(rows[0], ["1", "1", "1"], "in use, with the short timeout");
    assert_eq!(rows.last().map(|row| &row[..2]), Some(&["0".to_owned(), "0".to_owned()][..]), "the last one leaves");
}
