//! A router whose addresses, neighbours and routes are those of a network namespace (`routing.linux`).
//!
//! The commands of docs/linux.md are run here.

use std::fs;
use std::net::Ipv6Addr;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::capture::Capture;
use crate::frames;
use crate::interface;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{PATIENCE, sum};
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::Rig;

/// The configuration under test, with the namespace to be added.
const TAP_ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/tap-router.yaml");

/// LLDP frames in each direction.
const LLDP_FRAMES: usize = 5;

/// Time in which forwarding follows the kernel.
const SOON: Duration = Duration::from_secs(1);

/// The switch with its hosts, and the namespace that it makes.
pub struct Lab {
    pub rig: Rig,
    pub inside: Namespace,
    pub config: String,
    _directory: TempDir,
}

impl Lab {
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(|text| text)
    }

    /// Starts with a configuration that `edit` has changed.
    #[track_caller]
    fn start_with(edit: impl FnOnce(String) -> String) -> Self {
        let name = format!("{}-linux", unique_prefix());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("router.yaml");
        let text = fs::read_to_string(TAP_ROUTER).expect("the configuration");
        let text = text.replace("routing:\n", &format!("routing:\n  linux: {{namespace: {name}}}\n"));
        fs::write(&file, edit(text)).expect("a file");
        let config = file.to_str().expect("a path").to_owned();
        let lab =
            Self { rig: Rig::start(&config, 4), inside: Namespace::promised(name), config, _directory: directory };
        lab.give_addresses();
        lab
    }

    /// Gives the hosts behind routed ports their networks, and all hosts their gateways.
    pub fn give_addresses(&self) {
        for (number, host) in self.rig.hosts.iter().enumerate() {
            let run = |words: &str| drop(host.inside.try_run(&words.split(' ').collect::<Vec<_>>()));
            let (dev, network) = (&host.interface, [0, 0, 2, 3][number]);
            if network > 0 {
                run(&format!("ip address flush dev {dev} scope global"));
                run(&format!("ip address add 10.48.{network}.2/24 dev {dev}"));
                run(&format!("ip address add fd48:{network}::2/64 dev {dev} nodad"));
            }
            let (v4, v6) = [("10.48.0.254", "fd48::fe"), ("10.48.2.1", "fd48:2::1"), ("10.48.3.1", "fd48:3::1")]
                [number.saturating_sub(1)];
            run(&format!("ip route replace default via {v4}"));
            run(&format!("ip -6 route replace default via {v6}"));
        }
    }

    /// Returns the output of one ping from `host` with `options`, which may fail.
    pub fn ping(&self, host: usize, options: &str) -> String {
        let words: Vec<&str> = ["ping", "-n", "-c", "1", "-W", "0.3"].into_iter().chain(options.split(' ')).collect();
        self.rig.hosts[host].inside.try_run(&words).unwrap_or_else(|error| error)
    }

    /// Runs `ip` with `words` in the namespace of the switch.
    #[track_caller]
    pub fn ip(&self, words: &str) -> String {
        self.inside.run(&["ip"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
    }

    /// Waits until a ping of `address` by host 0 has `words` in its output, and asserts that it was soon.
    #[track_caller]
    fn follows(&self, address: &str, words: &str) {
        let start = Instant::now();
        // A ping without an answer takes its time itself.
        let (taken, said) = wait_for(&format!("{words} from {address}"), PATIENCE, || {
            let taken = start.elapsed();
            Some((taken, self.ping(0, address))).filter(|(_, said)| said.contains(words))
        });
        if taken > SOON {
            quiet::too_busy(format!("{taken:?} to {said}"));
        }
    }
}

#[test]
fn linux_answers_for_the_router_and_its_routes_are_followed() {
    quiet::attempt(quiet::ALLOWED, linux_answers);
}

fn linux_answers() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    for address in ["10.48.0.254", "fd48::fe", "10.48.2.1", "fd48:3::1", "10.48.2.2", "fd48:3::2"] {
        lab.rig.hosts[0].reach(address, 3);
    }
    let neighbours = lab.ip("neighbour show dev vlan10");
    assert!(neighbours.contains("10.48.0.1 lladdr"), "{neighbours}");
    lab.follows("-t 1 10.48.2.2", "From 10.48.0.254 icmp_seq=1 Time to live exceeded");
    routes_are_followed(&lab);
    networks_are_those_of_the_kernels_routes(&lab);
    loopback_is_an_own_address(&lab);
    tcp_reaches_linux(&lab);
    reload_changes_addresses_of_taps(&mut lab);
    interfaces_are_shut_and_opened_by_linux(&lab);
    let name = lab.inside.run(&["ip", "netns", "identify"]);
    assert!(crate::namespace::list().iter().any(|listed| name.trim() == listed), "{name}");
    let namespace = || fs::metadata(format!("/run/netns/{}", name.trim())).expect("a namespace").ino();
    let before = namespace();
    lab.rig.stop();
    lab.rig.start_switch(&lab.config);
    lab.rig.wait_for_answer();
    assert_eq!(namespace(), before, "routing daemons inside find the new taps");
}

fn routes_are_followed(lab: &Lab) {
    lab.rig.hosts[2].inside.run(&["ip", "address", "add", "10.88.0.1/32", "dev", "lo"]);
    lab.follows("10.88.0.1", "Net Unreachable");
    lab.ip("route add 10.88.0.0/16 via 10.48.2.2");
    lab.follows("10.88.0.1", "1 received");
    lab.ip("route add blackhole 10.88.0.0/24");
    lab.follows("10.88.0.1", "0 received");
    lab.ip("route del blackhole 10.88.0.0/24");
    lab.follows("10.88.0.1", "1 received");
    lab.ip("route del 10.88.0.0/16");
    lab.follows("10.88.0.1", "Net Unreachable");
    // A host without a route back answers nothing, so the way there is seen by its neighbour entry only.
    lab.ip("-6 route add fd88::/32 via fd48:3::2");
    lab.rig.hosts[3].inside.run(&["ip", "address", "add", "fd88::1/128", "dev", "lo"]);
    lab.follows("fd88::1", "1 received");
}

/// Host 3 is behind hf3.
fn networks_are_those_of_the_kernels_routes(lab: &Lab) {
    let host = &lab.rig.hosts[3];
    host.inside.run(&["ip", "address", "add", "10.78.0.2/32", "dev", &host.interface]);
    lab.ip("address add 10.78.0.1 peer 10.78.0.2/32 dev hf3");
    lab.follows("10.78.0.1", "1 received");
    lab.follows("10.78.0.2", "1 received");
    host.inside.run(&["ip", "address", "add", "10.79.0.2/24", "dev", &host.interface]);
    lab.ip("address add 10.79.0.1/24 dev hf3 noprefixroute");
    lab.follows("10.79.0.1", "1 received");
    lab.follows("10.79.0.2", "Net Unreachable");
    lab.ip("route add 10.79.0.0/24 dev hf3 proto kernel");
    lab.follows("10.79.0.2", "1 received");
    host.inside.run(&["ip", "address", "add", "10.80.0.2/32", "dev", &host.interface]);
    lab.ip("route add 10.80.0.0/24 dev hf3");
    lab.follows("10.80.0.2", "1 received");
    lab.ip("route del 10.80.0.0/24 dev hf3");
    lab.follows("10.80.0.2", "Net Unreachable");
}

fn loopback_is_an_own_address(lab: &Lab) {
    lab.ip("address add 10.255.0.1/32 dev lo");
    lab.follows("10.255.0.1", "1 received");
    lab.ip("address del 10.255.0.1/32 dev lo");
    lab.follows("10.255.0.1", "Net Unreachable");
}

/// A killed switch leaves its namespace. The next one uses it, and has only the routes that are there.
#[test]
fn killed_switch_finds_its_namespace_again() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    lab.rig.hosts[2].inside.run(&["ip", "address", "add", "10.88.0.1/32", "dev", "lo"]);
    lab.ip("route add 10.88.0.0/16 via 10.48.2.2");
    lab.follows("10.88.0.1", "1 received");
    lab.rig.end("KILL");
    assert!(!lab.ip("-br link").contains("vlan10"), "taps go with their switch");
    let config = lab.config.clone();
    lab.rig.start_switch(&config);
    lab.rig.script_up();
    lab.give_addresses();
    lab.rig.hosts[0].reach("10.48.2.1", 3);
    lab.rig.hosts[0].reach("10.48.2.2", 3);
    lab.follows("10.88.0.1", "Net Unreachable");
    lab.ip("route add 10.88.0.0/16 via 10.48.2.2");
    lab.follows("10.88.0.1", "1 received");
    lab.rig.stop();
    assert!(lab.ip("-br link").contains("lo"), "a namespace that was there stays");
}

/// LLDP belongs to a link: frames of a neighbour reach the tap of its port, and those of the tap leave by the port,
/// each bit for bit. No other host or tap sees any.
#[test]
fn lldp_passes_between_a_routed_port_and_its_tap_only() {
    if !machine_is_ready() {
        return;
    }
    // Agents of the switch at the other ports would be seen too.
    let mut lab = Lab::start_with(|text| format!("{text}\nlldp: off\n"));
    let host = &lab.rig.hosts[2];
    let from_host = frames::lldp(&host.mac(), "eth0");
    let from_linux = frames::lldp(interface::look(&lab.inside, "hf2")["address"].as_str().expect("an address"), "hf2");
    let filter = "ether proto 0x88cc";
    let on_link = [Capture::start(host, filter), Capture::on(&lab.inside, "hf2", filter)];
    let elsewhere = [
        Capture::start(&lab.rig.hosts[0], filter),
        Capture::start(&lab.rig.hosts[3], filter),
        Capture::on(&lab.inside, "vlan10", filter),
        Capture::on(&lab.inside, "hf3", filter),
    ];
    frames::send(host, &vec![from_host.clone(); LLDP_FRAMES], 50);
    frames::send_at(&lab.inside, "hf2", &vec![from_linux.clone(); LLDP_FRAMES], 50);
    for capture in on_link {
        let seen = capture.stop().bytes("lldp");
        for frame in [&from_host, &from_linux] {
            let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(seen.iter().filter(|seen| **seen == hex).count(), LLDP_FRAMES, "{hex} of {seen:#?}");
        }
    }
    for capture in elsewhere {
        assert_eq!(capture.stop().bytes("lldp"), [""; 0]);
    }
    let punted = lab.rig.metrics().sum("holdfast_punted_frames_total", &[("cause", "lldp")]);
    assert_eq!(punted, LLDP_FRAMES as f64);
    lab.rig.stop();
}

fn reload_changes_addresses_of_taps(lab: &mut Lab) {
    let text = fs::read_to_string(&lab.config).expect("the configuration");
    lab.ip("address add 10.48.31.1/24 dev hf3");
    lab.follows("10.48.31.1", "1 received");
    fs::write(&lab.config, text.replace("10.48.3.1/24", "10.48.3.1/24, 10.48.30.1/24")).expect("a file");
    lab.rig.switch().signal("HUP");
    lab.follows("10.48.30.1", "1 received");
    lab.follows("10.48.31.1", "1 received");
    fs::write(&lab.config, text).expect("a file");
    lab.rig.switch().signal("HUP");
    lab.follows("10.48.30.1", "0 received");
    assert!(!lab.ip("address show dev hf3").contains("10.48.30.1"), "the tap has lost it");
}

/// 10.99.0.0/16 has next hops behind hf2 and hf3. Hosts 0 and 1 are in the VLAN of vlan10.
fn interfaces_are_shut_and_opened_by_linux(lab: &Lab) {
    let hosts = &lab.rig.hosts;
    for host in &hosts[2..] {
        host.inside.run(&["ip", "address", "add", "10.99.0.1/32", "dev", "lo"]);
    }
    let usable = || {
        let metrics = lab.rig.metrics();
        let up = |interface| metrics.sum("holdfast_interface_up", &[("interface", interface)]);
        let hop = |address| metrics.sum("holdfast_next_hop_usable", &[("address", address)]);
        ([up("hf2"), up("vlan10")], [hop("10.48.2.2"), hop("10.48.3.2")])
    };
    lab.follows("10.99.0.1", "1 received");
    wait_for("both next hops", PATIENCE, || (usable() == ([1.0; 2], [1.0; 2])).then_some(()));
    lab.ip("link set hf2 down");
    for gone in ["10.48.2.2", "10.48.2.1"] {
        lab.follows(gone, "Net Unreachable");
    }
    lab.follows("10.99.0.1", "1 received");
    for to in ["10.48.2.1", "10.48.3.2"] {
        assert!(lab.ping(2, to).contains("0 received"), "the interface takes no packets");
    }
    wait_for("the next hop that is left", PATIENCE, || (usable() == ([0.0, 1.0], [0.0, 1.0])).then_some(()));
    assert_eq!(lab.rig.metrics().sum("holdfast_port_link_up", &[("port", "hf2")]), 1.0, "the port stays up");
    lab.ip("link set vlan10 down");
    wait_for("no answer of the gateway", PATIENCE, || lab.ping(0, "10.48.0.254").contains("0 received").then_some(()));
    hosts[0].reach("10.48.0.2", 3);
    lab.ip("link set vlan10 up");
    lab.ip("link set hf2 up");
    for back in ["10.48.0.254", "fd48::fe", "10.48.2.1", "fd48:2::1", "10.48.2.2", "fd48:2::2", "10.99.0.1"] {
        lab.follows(back, "1 received");
    }
    wait_for("both next hops again", PATIENCE, || (usable() == ([1.0; 2], [1.0; 2])).then_some(()));
}

/// Linux accepts a TCP connection at an address of the switch.
fn tcp_reaches_linux(lab: &Lab) {
    let mut server = lab.inside.command("iperf3");
    server.args(["-s", "-1", "--forceflush"]);
    let server = Process::spawn(server);
    wait_for("iperf3 server", PATIENCE, || server.stdout().contains("Server listening").then_some(()));
    let said = lab.rig.hosts[2].inside.run(&["iperf3", "-J", "-n", "50K", "-c", "10.48.0.254"]);
    assert!(said.contains("\"sum_received\""), "{said}");
    server.wait(PATIENCE);
}

/// Virtual hosts on the lcore of the flood: two senders of class 3 to a slower receiver, so that PFC has to work.
const INCAST: &str = "
hosts:
  - {name: v1, port: v1, mac: \"02:48:46:0c:00:01\", ip: 10.48.9.1,
     flows: [{to: v3, kind: roce, rate: 50M}]}
  - {name: v2, port: v2, mac: \"02:48:46:0c:00:02\", ip: 10.48.9.2,
     flows: [{to: v3, kind: roce, rate: 50M}]}
  - {name: v3, port: v3, mac: \"02:48:46:0c:00:03\", ip: 10.48.9.3}
";
const INCAST_PORTS: &str = "ports:
  - {name: v1, device: ring, speed: 100M, vlan: 9}
  - {name: v2, device: ring, speed: 100M, vlan: 9}
  - {name: v3, device: ring, speed: 20M, vlan: 9}
";

/// A flood of echo requests to the switch is policed. Packets through it pass, and an incast beside it is paused all
/// the same and loses nothing.
#[test]
fn flood_of_the_switch_harms_neither_forwarding_nor_pfc() {
    quiet::attempt(quiet::ALLOWED, flood);
}

fn flood() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start_with(|text| text.replace("ports:\n", INCAST_PORTS) + INCAST);
    lab.rig.hosts[1].reach("10.48.3.2", 3);
    let flood = |words: &[&str]| {
        let mut command: Command = lab.rig.hosts[0].inside.command("ping");
        command.args(words);
        Process::spawn(command)
    };
    let paused = |lab: &Lab| lab.rig.metrics().sum("holdfast_pfc_sent_frames_total", &[]);
    let before = paused(&lab);
    let floods =
        [flood(&["-q", "-f", "-w", "4", "-l", "64", "10.48.0.254"]), flood(&["-q", "-f", "-w", "4", "fd48::fe"])];
    lab.rig.hosts[1].reach("10.48.3.2", 40);
    for flood in floods {
        flood.wait(PATIENCE);
    }
    assert!(paused(&lab) > before, "PFC works during the flood");
    let policed = lab.rig.metrics().sum("holdfast_punt_policed_frames_total", &[("cause", "icmp")]);
    let delivered = lab.rig.metrics().sum("holdfast_linux_delivered_frames_total", &[]);
    eprintln!("{policed} echo requests were policed, {delivered} frames reached Linux");
    assert!(delivered > 100.0, "{delivered}");
    if policed == 0.0 {
        quiet::too_busy("the flood was slower than the policer".to_owned());
    }
    let report = lab.rig.stop();
    assert_eq!(sum(&report, "dropped_frames", true), 0, "class 3: {}", report["verdict"]);
}

/// Frames of a flood, each of another sender, and their rate.
const SENDERS: u32 = 4_000;
const SENDERS_PER_SECOND: u32 = 800;
/// New hosts of another port during the flood.
const NEW_HOSTS: u32 = 8;

/// The kernel has one table of neighbours for each family. A host with thousands of sender addresses leaves room there,
/// so that Linux answers new hosts of another port.
#[test]
fn senders_of_one_port_leave_room_in_the_neighbours_of_linux() {
    quiet::attempt(quiet::ALLOWED, many_senders);
}

fn many_senders() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    let (source, own) = (lab.rig.hosts[0].mac(), interface::look(&lab.inside, "vlan10"));
    let own = own["address"].as_str().expect("an address");
    let target: Ipv6Addr = "fd48::fe".parse().expect("an address");
    // Random addresses are on the network of the interface, those of IPv4 elsewhere: ARP does not care.
    let random = |number: u32, kind: u16| Ipv6Addr::new(0xfd48, 0, 0, 0, kind, 7, (number >> 16) as u16, number as u16);
    let arp = |number: u32| {
        let [_, _, high, low] = number.to_be_bytes();
        frames::arp_request(&source, [172, 20, high, low], [10, 48, 0, 254])
    };
    let ask = |number| frames::solicitation(&source, random(number, 1), target);
    let ping = |number| frames::echo_v6(own, &source, random(number, 2), target);
    lab.resist("-4", "10.48.0.254", (1..=SENDERS).map(arp).collect());
    lab.resist("-6", "fd48::fe", (1..=SENDERS).map(ask).collect());
    lab.resist("-6", "fd48::fe", (1..=SENDERS).map(ping).collect());
    lab.rig.stop();
}

impl Lab {
    /// Sends a flood from host 0. Meanwhile new hosts behind the port of host 1 ping the switch at `own`.
    #[track_caller]
    fn resist(&self, family: &str, own: &str, flood: Vec<Vec<u8>>) {
        let path = format!("/proc/sys/net/ipv{}/neigh/default/gc_thresh3", &family[1..]);
        let limit: usize = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024);
        let [flooder, host] = [&self.rig.hosts[0], &self.rig.hosts[1]];
        let withheld = |port| self.rig.metrics().sum("holdfast_linux_withheld_frames_total", &[("port", port)]);
        let before = withheld("hf0");
        let (process, _file) =
            frames::replay(&flooder.inside, &flooder.interface, &flood, SENDERS_PER_SECOND, &["--loop=2"]);
        let known = || self.ip(&format!("{family} neighbour show dev vlan10")).lines().count();
        std::thread::sleep(Duration::from_secs(3));
        let (mut most, mut answered) = (0, 0);
        for number in 0..NEW_HOSTS {
            let (address, length) = match family {
                "-4" => (format!("10.48.0.{}", 100 + number), 24),
                _ => (format!("fd48::{}:{number}", flood[0].len()), 64),
            };
            let words = format!("ip address add {address}/{length} dev {}", host.interface);
            let words = if family == "-6" { format!("{words} nodad") } else { words };
            host.inside.run(&words.split(' ').collect::<Vec<_>>());
            let ping = ["ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "2", "-I", &address, own];
            answered += u32::from(host.inside.try_run(&ping).is_ok());
            most = most.max(known());
        }
        let ended = process.wait(PATIENCE);
        assert!(ended.status.success(), "{ended:?}");
        eprintln!(
            "{family}: {most} neighbours of at most {limit} during the flood, {answered} of {NEW_HOSTS} answered"
        );
        assert!(most < limit * 3 / 4, "one port fills the table of Linux: {most} of {limit}");
        assert!(withheld("hf0") > before && withheld("hf1") == 0.0, "{} {}", withheld("hf0"), withheld("hf1"));
        if answered < NEW_HOSTS {
            quiet::too_busy(format!("{answered} of {NEW_HOSTS} new hosts were answered"));
        }
    }
}
