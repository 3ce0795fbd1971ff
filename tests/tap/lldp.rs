//! LLDP with Linux hosts: lldpd and lldpad at the other end of a port. Both are programs of others.
//!
//! A tap has no DCB, so that neither of them states PFC by itself. lldpd sends any TLV that it is told to.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::capture::Capture;
use crate::frames;
use crate::process::{Process, wait_for};
use crate::program::{HOLDFAST, PATIENCE};
use crate::ready::machine_is_ready;
use crate::rig::{Host, Rig, TAP_TOR};

/// LLDP frames of any destination.
const FILTER: &str = "ether proto 0x88cc";

/// lldpd at a host's interface.
struct Lldpd<'a> {
    host: &'a Host,
    socket: PathBuf,
    _process: Process,
    _directory: TempDir,
}

impl<'a> Lldpd<'a> {
    /// Starts lldpd, which then runs in the foreground, without its helpers' root directory.
    #[track_caller]
    fn start(host: &'a Host) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("lldpd.sock");
        let mut command = host.inside.command("lldpd");
        command.args(["-d", "-I", &host.interface, "-S", "Linux with mlnx_qos", "-u"]).arg(&socket);
        let lldpd = Self { host, socket, _process: Process::spawn(command), _directory: directory };
        wait_for("lldpd", PATIENCE, || lldpd.try_run("show configuration").ok());
        lldpd
    }

    fn try_run(&self, words: &str) -> Result<String, String> {
        let words = ["lldpcli", "-u", self.socket.to_str().expect("a path")].into_iter().chain(words.split(' '));
        self.host.inside.try_run(&words.collect::<Vec<_>>())
    }

    #[track_caller]
    fn run(&self, words: &str) -> String {
        self.try_run(words).unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    /// States PFC for one priority: capability 8, not willing (802.1Q D.2.11).
    #[track_caller]
    fn state_pfc(&self, how: &str, priority: u8) {
        self.run(&format!("configure lldp custom-tlv {how}oui 00,80,C2 subtype 11 oui-info 08,{:02x}", 1 << priority));
    }

    /// The names of the neighbours.
    #[track_caller]
    fn neighbours(&self) -> Vec<String> {
        let text = self.run("-f json0 show neighbors");
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let interfaces = json["lldp"][0]["interface"].as_array().cloned().unwrap_or_default();
        let name = |interface: &Value| interface["chassis"][0]["name"][0]["value"].as_str().map(str::to_owned);
        interfaces.iter().filter_map(name).collect()
    }
}

/// A switch with two hosts, its configuration and the socket of its API.
struct Lab {
    rig: Rig,
    config: PathBuf,
    socket: PathBuf,
    _directory: TempDir,
}

impl Lab {
    #[track_caller]
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (config, socket) = (directory.path().join("tor.yaml"), directory.path().join("api.sock"));
        write(&config, "lldp: {name: tor7, interval: 1s}");
        let mut rig = Rig::without_switch(4);
        rig.start_switch_with(config.to_str().expect("a path"), &[("HOLDFAST_SOCKET", &socket)]);
        rig.script_up();
        Self { rig, config, socket, _directory: directory }
    }

    /// Output of `holdfast show lldp`.
    #[track_caller]
    fn show(&self, options: &[&str]) -> String {
        self.show_of("lldp", options)
    }

    /// Output of `holdfast show` for a part of the state.
    #[track_caller]
    fn show_of(&self, part: &str, options: &[&str]) -> String {
        let socket = self.socket.to_str().expect("a path");
        let words: Vec<&str> = [HOLDFAST, "show", part, "--socket", socket].iter().chain(options).copied().collect();
        self.rig.inside_run(&words)
    }

    /// Waits until `holdfast show lldp` has `words`.
    #[track_caller]
    fn shows(&self, words: &str) -> String {
        wait_for(words, PATIENCE, || Some(self.show(&[])).filter(|text| text.contains(words)))
    }

    fn differences(&self, kind: &str) -> f64 {
        self.rig.metrics().sum("holdfast_lldp_differences", &[("kind", kind), ("port", "hf0")])
    }
}

/// Writes the configuration of the rig with another line.
fn write(path: &Path, line: &str) {
    let text = std::fs::read_to_string(TAP_TOR).expect("the configuration");
    std::fs::write(path, format!("{text}\n{line}\n")).expect("a file");
}

#[test]
fn lldpd_and_the_switch_know_each_other_and_a_difference_is_told_with_its_command() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    let elsewhere = Capture::start(&lab.rig.hosts[1], FILTER);
    // Frames of the control plane are in queue 6. The counters of LLDP are published later.
    let labels = [("port", "hf1"), ("queue", "6")];
    let sent = |lab: &Lab| lab.rig.metrics().sum("holdfast_port_sent_frames_total", &labels);
    let sent_before = sent(&lab);
    let host = &lab.rig.hosts[0];
    let (mac, interface) = (host.mac(), host.interface.clone());
    let lldpd = Lldpd::start(host);
    wait_for("neighbour of lldpd", PATIENCE, || (lldpd.neighbours() == ["tor7"]).then_some(()));
    lab.shows("pfc_absent");
    assert_eq!((lab.differences("pfc_absent"), lab.differences("pfc_priorities")), (1.0, 0.0));

    lldpd.state_pfc("", 4);
    let text = lab.shows("pfc_priorities");
    for line in [
        "the peer has PFC for priorities 4, this port for 3",
        &format!("run there: mlnx_qos -i {interface} --pfc 0,0,0,1,0,0,0,0"),
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!((lab.differences("pfc_absent"), lab.differences("pfc_priorities")), (0.0, 1.0));
    let json: Value = serde_json::from_str(&lab.show(&["--json", "--port", "hf0"])).expect("JSON");
    let port = &json["lldp"][0];
    assert_eq!((&port["port"], &port["neighbours"][0]["mac"]), (&"hf0".into(), &mac.into()), "{json:#}");
    assert_eq!(port["neighbours"][0]["pfc_priorities"], serde_json::json!([4]));

    lldpd.state_pfc("replace ", 3);
    wait_for("agreement", PATIENCE, || (lab.differences("pfc_priorities") == 0.0).then_some(()));
    // Lines of a kind are a second apart.
    for line in ["differs: the peer has PFC for priorities 4, this port for 3; run there: mlnx_qos", "agrees again"] {
        wait_for(line, PATIENCE, || {
            let told = lab.show_of("events", &[]);
            told.lines().any(|said| said.contains(" lldp: hf0: neighbour ") && said.contains(line)).then_some(())
        });
    }

    // No bridge relays LLDP: the other host has seen its own port only.
    wait_for("frame to another host", PATIENCE, || (sent(&lab) > sent_before).then_some(()));
    let trace = elsewhere.stop();
    assert_eq!(trace.fields("lldp && _ws.malformed", &["frame.number"]), [[""; 0]; 0], "tshark reads all of it");
    let seen = trace.fields("lldp", &["lldp.port.id", "lldp.tlv.system.name"]);
    assert!(!seen.is_empty() && seen.iter().all(|frame| frame[0] == "hf1"), "{seen:?}");

    // A switch that ends says so by a life of zero. Its tap goes with it, so that lldpd cannot tell.
    drop(lldpd);
    let last = Capture::start_to_outlive(&lab.rig.hosts[0], FILTER);
    lab.rig.stop();
    let lives = last.stop().fields("lldp", &["lldp.time_to_live"]);
    assert_eq!(lives.last().map(|frame| frame[0].as_str()), Some("0"), "{lives:?}");
}

#[test]
fn reload_turns_lldp_off_and_on_and_a_flood_is_bounded() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    let host = &lab.rig.hosts[0];
    let sent = |lab: &Lab| lab.rig.metrics().sum("holdfast_lldp_sent_frames_total", &[("port", "hf0")]);
    wait_for("frames", PATIENCE, || (sent(&lab) > 0.0).then_some(()));
    let flood: Vec<Vec<u8>> = (0..200).map(|n| frames::lldp(&host.mac(), &format!("eth{n}"))).collect();
    frames::send(host, &flood, 2_000);
    let text = lab.shows("more than eight neighbours");
    assert_eq!(text.lines().filter(|line| line.contains("pfc_absent")).count(), 8, "{text}");
    let metrics = lab.rig.metrics();
    assert!(metrics.sum("holdfast_punt_policed_frames_total", &[("cause", "lldp")]) > 0.0);

    write(&lab.config, "lldp: off");
    lab.rig.switch().signal("HUP");
    lab.shows("no port speaks LLDP");
    write(&lab.config, "lldp: {name: tor8, interval: 1s}");
    lab.rig.switch().signal("HUP");
    let lldpd = Lldpd::start(&lab.rig.hosts[0]);
    wait_for("new name", PATIENCE, || (lldpd.neighbours() == ["tor8"]).then_some(()));
    drop(lldpd);
    lab.rig.stop();
}

/// lldpad reads the TLVs of data center bridging, which lldpd does not.
#[test]
fn lldpad_reads_what_a_port_states() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    let host = &lab.rig.hosts[2];
    // lldpad has fixed places for its files, so it gets its own.
    let script = format!(
        "set -e; mount -t tmpfs none /dev/shm; mount -t tmpfs none /run; mount -t tmpfs none /tmp
         lldpad -f /tmp/lldpad.conf & lldpad=$!; trap 'kill $lldpad' EXIT
         for _ in $(seq 100); do lldptool -L -i {0} adminStatus=rxtx && break; sleep 0.1; done
         for _ in $(seq 100); do lldptool -t -n -i {0} | grep -q tor7 && break; sleep 0.1; done
         lldptool -t -n -i {0}",
        host.interface
    );
    let said = host.inside.run(&["unshare", "-m", "sh", "-c", &script]);
    for line in [
        "PFC enabled: 3 ",
        "TSA_MAP: 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets ",
        "Prio 3 \t Sel 3 \t P-ID\t UDP or DCCP Port: 4791",
        "Ifname: hf2",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    lab.rig.stop();
}
