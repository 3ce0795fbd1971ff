//! A switch on taps, with silent hosts that send only the frames of the test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::frame::Frame;
use crate::frames::{self, pfc};
use crate::namespace::{Namespace, unique_prefix};
use crate::process::Process;
use crate::program::{Config, PATIENCE, run_arguments};
use crate::ready::machine_is_ready;
use crate::rig::{Host, Rig};
use crate::seen::Seen;

/// A lossless class with 10 cells of reserve, 16 shared cells and 24 of headroom. The 27th cell causes XOFF, the 51st
/// is lost. XON follows once at most 8 of the 16 shared cells are in use.
pub const SMALL: &str =
    "{lossless: true, reserve: 2080B, limit: 3328B, xon_offset: 1664B, xon_floor: 208B, headroom: 4992B}";

/// A lossless class that accepts all frames of a test and has headroom for one frame of the usual MTU.
pub const ROOMY: &str = "lossless: true, limit: 4MB, xon_offset: 0B, headroom: 1664B";

/// Time between two readings of the metrics. A reading takes about as long.
const LOOK: Duration = Duration::from_millis(5);

/// Frames per second that a host sends. A tap can queue each burst, so the rate only leaves CPU time for other work.
const PER_SECOND: u32 = 50_000;

/// Refreshes per second of a pause that a host sustains. The longest pause lasts 335 ms at 100M and 3.4 s at 10M.
const REFRESHES: u32 = 20;

/// Polls of all lcores after which the gauges are as recent as the counters. Each lcore publishes gauges every 64
/// polls.
const PUBLISHED: u64 = 256;

/// Frames that a tap queues for the switch: more than any test sends at once.
const TAP_QUEUE: u32 = 10_000;

/// `MAX_LEASE` is the most cells of a pool that an lcore leases without using them (crates/lossless/src/mmu/pool.rs).
/// `KEPT_PART` divides the free cells: an lcore may hold an eighth of them, as two leases of a sixteenth.
const MAX_LEASE: u64 = 256;
const KEPT_PART: u64 = 8;

/// Returns the number of lcores of the switches in these tests.
pub fn lcores() -> u64 {
    let arguments = run_arguments();
    let number = arguments.iter().position(|word| word == "--lcores").and_then(|at| arguments.get(at + 1));
    number.map_or(1, |number| number.parse().unwrap_or_else(|error| panic!("--lcores {number}: {error}")))
}

/// Keeps hosts from sending IPv6 on their own. Succeeds where the kernel has no IPv6.
const HUSH: &str = "echo 1 2>/dev/null > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true";

/// A switch, and a host behind each port.
pub struct Bed {
    rig: Rig,
    ports: Vec<String>,
    /// Data frames that the host of each port has sent so far.
    sent: BTreeMap<String, u64>,
    _config: Config,
}

/// A host that keeps classes paused until this value is released or dropped.
pub struct Hold {
    process: (Process, tempfile::TempDir),
    port: String,
    classes: Vec<u8>,
}

impl Bed {
    /// Starts a switch with a static address for each host, or returns `None` if this machine cannot. `ports` holds the
    /// name and the other settings of each port. `settings` are the other keys of the configuration. Ports are taps,
    /// except that the last ones may have another `device:`; those have no host here.
    #[track_caller]
    pub fn start(ports: &[(&str, &str)], settings: &str) -> Option<Self> {
        Self::start_in(&[1], ports, settings)
    }

    /// Starts a switch like `start`, with static addresses of the hosts in each of `vlans`.
    #[track_caller]
    pub fn start_in(vlans: &[u16], ports: &[(&str, &str)], settings: &str) -> Option<Self> {
        if !machine_is_ready() {
            return None;
        }
        let (mut list, mut stations, mut hosts) = (String::new(), String::new(), 0);
        for (number, (name, settings)) in ports.iter().enumerate() {
            list += &format!("  - {{name: {name}, {settings}");
            if !settings.contains("device: ") {
                list += &format!(", device: \"net_tap{number},iface=hf{number}\"");
                for vlan in vlans {
                    stations +=
                        &format!("    - {{vlan: {vlan}, mac: \"02:00:00:00:00:{number:02x}\", port: {name}}}\n");
                }
                hosts += 1;
            }
            list += "}\n";
        }
        // A late lcore must not pause senders here, and every frame is one of the test; other tests cover the XOFF of a
        // backlog, and LLDP.
        let apart = "lcores: {backlog_xoff: off}\nlldp: off";
        let config = Config::new(&format!("{apart}\nports:\n{list}fdb:\n  static:\n{stations}{settings}"));
        let mut rig = Rig::without_switch(hosts);
        let prefix = unique_prefix();
        let spaces: Vec<String> = (0..hosts).map(|number| format!("{prefix}-{number}")).collect();
        run(rig.inside_command("sh", &["-c", HUSH]));
        for (host, space) in rig.hosts.iter_mut().zip(&spaces) {
            host.inside = Namespace::new(space.clone());
            host.inside.run(&["sh", "-c", HUSH]);
        }
        rig.start_switch(&config.path());
        let ports = ports.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut bed = Self { rig, ports, sent: BTreeMap::new(), _config: config };
        bed.plug(&spaces);
        Some(bed)
    }

    /// Moves each tap into the namespace of its host, and waits until the switch sees all links up.
    #[track_caller]
    fn plug(&mut self, spaces: &[String]) {
        // A tap that is visible earlier may disappear once more while DPDK creates it.
        self.rig.wait_for_answer();
        for (host, space) in self.rig.hosts.iter().zip(spaces) {
            let interface = &host.interface;
            let order = format!(
                "ip link set dev {interface} netns {space} &&
                 ip -n {space} link set dev {interface} txqueuelen {TAP_QUEUE} up"
            );
            let ended = Process::spawn(self.rig.inside_command("sh", &["-c", &order])).wait(PATIENCE);
            assert!(ended.status.success(), "{ended:?}");
        }
        let all = self.ports.len() as u64;
        self.wait("links", |seen| seen.count("port_link_up", &[]), |&up| up == all);
    }

    /// Returns the cells by which a limit of a pool of `pool` cells may apply early on several lcores. That is the
    /// amount that the other lcores may have leased without using it (docs/buffer.md). It is zero with one lcore.
    pub fn slack(&self, pool: u64) -> u64 {
        (lcores() - 1) * MAX_LEASE.min(pool / KEPT_PART)
    }

    /// Sends the switch a signal.
    pub fn signal(&mut self, signal: &str) {
        self.rig.switch().signal(signal);
    }

    /// Returns the host behind `port`.
    pub fn host(&self, port: &str) -> &Host {
        let number = self.ports.iter().position(|name| name == port);
        &self.rig.hosts[number.unwrap_or_else(|| panic!("no port {port}"))]
    }

    /// Returns the address of the host behind `port`.
    pub fn address(&self, port: &str) -> [u8; 6] {
        let number = self.ports.iter().position(|name| name == port).unwrap_or_else(|| panic!("no port {port}"));
        [2, 0, 0, 0, 0, number as u8]
    }

    /// Reads the metrics of the switch.
    #[track_caller]
    pub fn look(&self) -> Seen {
        Seen(self.rig.metrics())
    }

    /// Waits until `right` holds for the result of `of`, then returns metrics whose gauges are as recent as the
    /// counters.
    #[track_caller]
    pub fn wait<T: Debug>(&self, what: &str, of: impl Fn(&Seen) -> T, right: impl Fn(&T) -> bool) -> Seen {
        let seen = self.wait_until(what, of, right);
        let polls = |seen: &Seen| seen.count("polls_total", &[]);
        let enough = polls(&seen) + PUBLISHED;
        self.wait_until("polls", polls, |&polls| polls >= enough);
        self.look()
    }

    /// Waits until `right` holds for the result of `of`. Returns the last instant at which it did not hold, and the
    /// first at which it did.
    #[track_caller]
    pub fn time<T: Debug>(
        &self,
        what: &str,
        of: impl Fn(&Seen) -> T,
        right: impl Fn(&T) -> bool,
    ) -> (Instant, Instant) {
        let (begin, mut not_yet) = (Instant::now(), Instant::now());
        loop {
            let start = Instant::now();
            let seen = self.look();
            let found = of(&seen);
            if right(&found) {
                return (not_yet, Instant::now());
            }
            not_yet = start;
            assert!(begin.elapsed() < PATIENCE, "no {what} within {PATIENCE:?}: it is {found:?}");
            sleep(LOOK);
        }
    }

    #[track_caller]
    fn wait_until<T: Debug>(&self, what: &str, of: impl Fn(&Seen) -> T, right: impl Fn(&T) -> bool) -> Seen {
        let end = Instant::now() + PATIENCE;
        loop {
            let seen = self.look();
            let found = of(&seen);
            if right(&found) {
                return seen;
            }
            assert!(
                Instant::now() < end,
                "no {what} within {PATIENCE:?}: it is {found:?}; dropped: {:?}",
                seen.all_drops()
            );
            sleep(LOOK);
        }
    }

    /// Sends `count` frames from the host behind `from` to the one behind `to`. Returns the metrics once the switch has
    /// all.
    #[track_caller]
    pub fn send(&mut self, from: &str, to: &str, frame: Frame, count: usize) -> Seen {
        let bytes = frame.bytes(self.address(from), self.address(to));
        self.send_bytes(from, &vec![bytes; count])
    }

    /// Sends these data frames from the host behind `from`. Returns the metrics once the switch has received all.
    #[track_caller]
    pub fn send_bytes(&mut self, from: &str, data: &[Vec<u8>]) -> Seen {
        frames::send(self.host(from), data, PER_SECOND);
        let sent = self.sent.entry(from.to_owned()).or_default();
        *sent += data.len() as u64;
        let sent = *sent;
        let received = |seen: &Seen| seen.count("port_received_frames_total", &[("port", from)]);
        self.wait(&format!("{sent} frames from {from}"), received, |&received| received >= sent)
    }

    /// Sends MAC control frames from the host behind `port`. Returns the metrics once the switch has received all.
    #[track_caller]
    pub fn control(&self, port: &str, control: &[Vec<u8>]) -> Seen {
        let labels = [("port", port)];
        let received = |seen: &Seen| {
            seen.count("pfc_received_frames_total", &labels) + seen.count("pause_received_frames_total", &labels)
        };
        let wanted = received(&self.look()) + control.len() as u64;
        frames::send(self.host(port), control, PER_SECOND);
        self.wait("control frames", received, |&received| received >= wanted)
    }

    /// Pauses `classes` at `port`: its host sends XOFF and refreshes it.
    #[track_caller]
    pub fn hold(&self, port: &str, classes: &[u8]) -> Hold {
        let xoff = pfc(&self.text_address(port), &classes.iter().map(|&class| (class, 0xffff)).collect::<Vec<_>>());
        let process = self.keep_sending(port, &[xoff], REFRESHES);
        let held = |seen: &Seen| classes.iter().map(|&class| seen.is_paused(port, class)).collect::<Vec<_>>();
        self.wait("pause", held, |held| !held.contains(&false));
        Hold { process, port: port.to_owned(), classes: classes.to_vec() }
    }

    /// Sends these frames from the host behind `port` over and over at this rate, until the returned value is dropped.
    #[track_caller]
    pub fn keep_sending(&self, port: &str, frames: &[Vec<u8>], per_second: u32) -> (Process, tempfile::TempDir) {
        let host = self.host(port);
        frames::replay(&host.inside, &host.interface, frames, per_second, &["--loop=0"])
    }

    /// Ends the pause that `hold` began: stops the refreshes and sends XON.
    #[track_caller]
    pub fn release(&self, hold: Hold) {
        let Hold { process, port, classes } = hold;
        drop(process);
        let xon = pfc(&self.text_address(&port), &classes.iter().map(|&class| (class, 0)).collect::<Vec<_>>());
        self.control(&port, &[xon]);
    }

    /// Returns the address of the host behind `port` as text.
    pub fn text_address(&self, port: &str) -> String {
        self.address(port).map(|byte| format!("{byte:02x}")).join(":")
    }

    /// Waits until `port` has sent `frames` frames in total from `queue`, and asserts that it sent no more.
    #[track_caller]
    pub fn wait_sent(&self, port: &str, queue: u8, frames: u64) -> Seen {
        let seen = self.wait(&format!("{frames} sent"), |seen| seen.sent(port, queue), |&sent| sent >= frames);
        assert_eq!(seen.sent(port, queue), frames, "sent by {port}");
        seen
    }

    /// Waits until the port has sent `times` more XOFF for `priority`. The switch refreshes XOFF for as long as it must
    /// last.
    #[track_caller]
    pub fn wait_refreshed(&self, port: &str, priority: u8, times: u64) -> Seen {
        let before = self.look().told(port, priority).0;
        self.wait("refreshes of XOFF", |seen| seen.told(port, priority), |told| told.0 >= before + times)
    }

    /// Returns the frames that the host behind `port` has sent, as its kernel counts them.
    #[track_caller]
    pub fn gave(&self, port: &str) -> u64 {
        packets(&self.host(port).link(), "tx")
    }

    /// Returns the frames that the host behind `port` has received, without the XON that announces each new link.
    #[track_caller]
    pub fn got(&self, port: &str) -> u64 {
        let got = packets(&self.host(port).link(), "rx");
        let seen = self.look();
        let [sent, links] =
            ["pfc_sent_frames_total", "port_link_ups_total"].map(|name| seen.count(name, &[("port", port)]));
        got - sent.min(links)
    }

    /// Stops the switch once its buffer is empty. Asserts that the taps lost nothing, and that both sides of each tap
    /// account for every frame.
    #[track_caller]
    pub fn finish(mut self) -> Value {
        let seen = self.wait("empty buffer", |seen| seen.count("held_frames", &[]), |&held| held == 0);
        for pool in ["lossless", "lossy"] {
            assert_eq!(seen.pool(pool).0, 0, "cells left in the {pool} pool");
        }
        for (port, host) in self.ports.iter().zip(&self.rig.hosts) {
            let (link, port) = (host.link(), [("port", port.as_str())]);
            for (what, count) in host.losses() {
                // A host also counts received frames that it has no use for as drops. The packet counts below show that
                // all of them arrived.
                assert!(what.contains(" rx ") || count == 0, "{what}: {count}");
            }
            let sum = |names: &[&str]| names.iter().map(|name| seen.count(name, &port)).sum::<u64>();
            let to = ["port_received_frames_total", "pfc_received_frames_total", "pause_received_frames_total"];
            assert_eq!(packets(&link, "tx"), sum(&to), "frames into {port:?}");
            assert_eq!(
                packets(&link, "rx"),
                sum(&["port_sent_frames_total", "pfc_sent_frames_total"]),
                "out of {port:?}"
            );
            assert_eq!(seen.count("device_receive_missed_frames_total", &port), 0);
        }
        self.rig.stop()
    }

    /// Stops the switch while it holds frames and returns its report.
    #[track_caller]
    pub fn stop(mut self) -> Value {
        self.rig.stop()
    }
}

#[track_caller]
fn packets(link: &Value, side: &str) -> u64 {
    link["stats64"][side]["packets"].as_u64().unwrap_or_else(|| panic!("no count of packets: {link}"))
}

#[track_caller]
fn run(command: std::process::Command) {
    let ended = Process::spawn(command).wait(PATIENCE);
    assert!(ended.status.success(), "{ended:?}");
}
