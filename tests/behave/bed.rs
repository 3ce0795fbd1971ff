//! A switch on taps, and silent hosts that send what a test says.

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

/// A lossless class with 10 cells of reserve, 16 of shared and 24 of headroom: XOFF comes with the 27th cell, loss with
/// the 51st. XON once at most 8 of the 16 are in use.
pub const SMALL: &str =
    "{lossless: true, reserve: 2080B, limit: 3328B, xon_offset: 1664B, xon_floor: 208B, headroom: 4992B}";

/// A lossless class that takes all that a test sends, and has headroom for a frame of the usual MTU.
pub const ROOMY: &str = "lossless: true, limit: 4MB, xon_offset: 0B, headroom: 1664B";

/// Time between two looks at the metrics, each of which takes as long.
const LOOK: Duration = Duration::from_millis(5);

/// Frames a second. Each burst fits what a tap queues, so this only leaves the switch time for other things.
const PER_SECOND: u32 = 50_000;

/// Refreshes a second of a pause that a host keeps up: the longest one lasts 335 ms at 100M and 3.4 s at 10M.
const REFRESHES: u32 = 20;

/// Polls after which gauges have followed counters on all lcores: each publishes them every 64 of its own.
const PUBLISHED: u64 = 256;

/// Frames that a tap holds for the switch: more than any test sends at once.
const TAP_QUEUE: u32 = 10_000;

/// Most cells that an lcore keeps leased of a pool without using them (`MAX_LEASE` in src/mmu/pool.rs), and the part of
/// what is free that it may keep: two leases of a sixteenth.
const MAX_LEASE: u64 = 256;
const KEPT_PART: u64 = 8;

/// How many lcores the switches of these tests have.
pub fn lcores() -> u64 {
    let arguments = run_arguments();
    let number = arguments.iter().position(|word| word == "--lcores").and_then(|at| arguments.get(at + 1));
    number.map_or(1, |number| number.parse().unwrap_or_else(|error| panic!("--lcores {number}: {error}")))
}

/// Keeps hosts from talking IPv6 by themselves. There may be no IPv6 to switch off.
const HUSH: &str = "echo 1 2>/dev/null > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true";

/// A switch, and a host behind each port.
pub struct Bed {
    rig: Rig,
    ports: Vec<String>,
    /// Data frames sent by each port's host so far.
    sent: BTreeMap<String, u64>,
    _config: Config,
}

/// A host that keeps classes paused until this is released or dropped.
pub struct Hold {
    process: (Process, tempfile::TempDir),
    port: String,
    classes: Vec<u8>,
}

impl Bed {
    /// Starts a switch with these ports (`name`, and what else `ports:` has of it), a static address for each host, and
    /// `rest` of the configuration. Ports are taps, but for the last ones, which may be of another `device:` and have no
    /// host here. `None` if this machine cannot.
    #[track_caller]
    pub fn start(ports: &[(&str, &str)], rest: &str) -> Option<Self> {
        Self::start_in(&[1], ports, rest)
    }

    /// As `start`, with the hosts known in these VLANs.
    #[track_caller]
    pub fn start_in(vlans: &[u16], ports: &[(&str, &str)], rest: &str) -> Option<Self> {
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
        // A core that is late must not be what stops a sender here: how it would is the subject of other tests.
        let lcores = "lcores: {backlog_xoff: off}";
        let config = Config::new(&format!("{lcores}\nports:\n{list}fdb:\n  static:\n{stations}{rest}"));
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

    /// Gives each host its tap, and waits until the switch sees all links.
    #[track_caller]
    fn plug(&mut self, spaces: &[String]) {
        // A tap that is seen earlier may go once more while DPDK makes it.
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

    /// Cells by which a limit of a pool of so many may come early on several lcores: what each of the others may have
    /// leased of it without using it (docs/buffer.md). With one lcore nothing.
    pub fn slack(&self, pool: u64) -> u64 {
        (lcores() - 1) * MAX_LEASE.min(pool / KEPT_PART)
    }

    /// Sends the switch a signal.
    pub fn signal(&mut self, signal: &str) {
        self.rig.switch().signal(signal);
    }

    /// The host behind `port`.
    pub fn host(&self, port: &str) -> &Host {
        let number = self.ports.iter().position(|name| name == port);
        &self.rig.hosts[number.unwrap_or_else(|| panic!("no port {port}"))]
    }

    /// The address of the host behind `port`.
    pub fn address(&self, port: &str) -> [u8; 6] {
        let number = self.ports.iter().position(|name| name == port).unwrap_or_else(|| panic!("no port {port}"));
        [2, 0, 0, 0, 0, number as u8]
    }

    /// What the switch says now.
    #[track_caller]
    pub fn look(&self) -> Seen {
        Seen(self.rig.metrics())
    }

    /// Waits until `right` is true of what `of` finds; then what the switch says when gauges have followed counters.
    #[track_caller]
    pub fn wait<T: Debug>(&self, what: &str, of: impl Fn(&Seen) -> T, right: impl Fn(&T) -> bool) -> Seen {
        let seen = self.wait_until(what, of, right);
        let polls = |seen: &Seen| seen.count("polls_total", &[]);
        let enough = polls(&seen) + PUBLISHED;
        self.wait_until("polls", polls, |&polls| polls >= enough);
        self.look()
    }

    /// Waits until `right` is true of what `of` finds; an instant at which it was not yet, the last one known, and
    /// one at which it was.
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

    /// The host behind `from` sends `count` such frames to the one behind `to`; what the switch says once it has all.
    #[track_caller]
    pub fn send(&mut self, from: &str, to: &str, frame: Frame, count: usize) -> Seen {
        let bytes = frame.bytes(self.address(from), self.address(to));
        self.send_bytes(from, &vec![bytes; count])
    }

    /// The host behind `from` sends these data frames; what the switch says once it has all.
    #[track_caller]
    pub fn send_bytes(&mut self, from: &str, data: &[Vec<u8>]) -> Seen {
        frames::send(self.host(from), data, PER_SECOND);
        let sent = self.sent.entry(from.to_owned()).or_default();
        *sent += data.len() as u64;
        let sent = *sent;
        let received = |seen: &Seen| seen.count("port_received_frames_total", &[("port", from)]);
        self.wait(&format!("{sent} frames from {from}"), received, |&received| received >= sent)
    }

    /// The host behind `port` sends MAC control frames; what the switch says once it has all.
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

    /// The host behind `port` says XOFF for `classes` and keeps saying it.
    #[track_caller]
    pub fn hold(&self, port: &str, classes: &[u8]) -> Hold {
        let xoff = pfc(&self.text_address(port), &classes.iter().map(|&class| (class, 0xffff)).collect::<Vec<_>>());
        let process = self.keep_sending(port, &[xoff], REFRESHES);
        let held = |seen: &Seen| classes.iter().map(|&class| seen.is_paused(port, class)).collect::<Vec<_>>();
        self.wait("pause", held, |held| !held.contains(&false));
        Hold { process, port: port.to_owned(), classes: classes.to_vec() }
    }

    /// The host behind `port` sends these frames, so many a second, over and over until the value is dropped.
    #[track_caller]
    pub fn keep_sending(&self, port: &str, frames: &[Vec<u8>], per_second: u32) -> (Process, tempfile::TempDir) {
        frames::replay(self.host(port), frames, per_second, &["--loop=0"])
    }

    /// Ends what `hold` began, by XON.
    #[track_caller]
    pub fn release(&self, hold: Hold) {
        let Hold { process, port, classes } = hold;
        drop(process);
        let xon = pfc(&self.text_address(&port), &classes.iter().map(|&class| (class, 0)).collect::<Vec<_>>());
        self.control(&port, &[xon]);
    }

    /// The same as text.
    pub fn text_address(&self, port: &str) -> String {
        self.address(port).map(|byte| format!("{byte:02x}")).join(":")
    }

    /// Waits until `port` has sent `frames` in all from `queue`, and no more.
    #[track_caller]
    pub fn wait_sent(&self, port: &str, queue: u8, frames: u64) -> Seen {
        let seen = self.wait(&format!("{frames} sent"), |seen| seen.sent(port, queue), |&sent| sent >= frames);
        assert_eq!(seen.sent(port, queue), frames, "sent by {port}");
        seen
    }

    /// Waits until XOFF for `priority` was told `times` times more: it is refreshed for as long as it must last.
    #[track_caller]
    pub fn wait_refreshed(&self, port: &str, priority: u8, times: u64) -> Seen {
        let before = self.look().told(port, priority).0;
        self.wait("refreshes of XOFF", |seen| seen.told(port, priority), |told| told.0 >= before + times)
    }

    /// Frames that the host behind `port` sent, as its kernel counts them.
    #[track_caller]
    pub fn gave(&self, port: &str) -> u64 {
        packets(&self.host(port).link(), "tx")
    }

    /// Frames that it got, but for the XON that every link begins with.
    #[track_caller]
    pub fn got(&self, port: &str) -> u64 {
        let got = packets(&self.host(port).link(), "rx");
        let greetings = self.look().count("pfc_sent_frames_total", &[("port", port)]).min(1);
        got - greetings
    }

    /// Ends the switch, once nothing waits in it: nothing was lost on the taps, and every frame is accounted for on
    /// both sides of each.
    #[track_caller]
    pub fn finish(mut self) -> Value {
        let seen = self.wait("empty buffer", |seen| seen.count("held_frames", &[]), |&held| held == 0);
        for pool in ["lossless", "lossy"] {
            assert_eq!(seen.pool(pool).0, 0, "cells left in the {pool} pool");
        }
        for (port, host) in self.ports.iter().zip(&self.rig.hosts) {
            let (link, port) = (host.link(), [("port", port.as_str())]);
            for (what, count) in host.losses() {
                // What a host gets and has no use for counts as dropped there too; below, what it got is all there.
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

    /// Ends the switch with frames in it; its report.
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
