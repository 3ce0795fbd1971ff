//! The upgrade of a running switch: what its peers see while one program ends and another takes the same ports. The
//! ports are on veth pairs, whose links stay up, as those of cables to a NIC that keeps its link.
//!
//! The figures of docs/upgrade.md are printed here. `HOLDFAST_TEST_OLD` names the program before the upgrade. By
//! default that is the program under test too.

use std::time::Duration;

use crate::capture::Capture;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, report, run_arguments};
use crate::ready::machine_is_ready;
use crate::rig::METRICS;

const CONFIG: &str = "\
preset: roce
ports:
  - {name: a, device: 'net_af_packet0,iface=ufa', speed: 1G}
  - {name: b, device: 'net_af_packet1,iface=ufb', speed: 1G}
lcores: {poll_gap: 1ms}
";

/// Interval of pings in seconds.
const PING: f64 = 0.01;

/// Longest time without an answer that a busy machine may cause. docs/upgrade.md has measured times.
const LONGEST: f64 = 20.0;

/// A namespace for the switch, and hosts at the other ends of its interfaces.
struct Bench {
    switch: Namespace,
    hosts: [Namespace; 2],
    config: Config,
    prefix: String,
}

impl Bench {
    /// Creates the namespaces.
    fn new() -> Self {
        let prefix = unique_prefix();
        let switch = Namespace::new(format!("{prefix}-switch"));
        let hosts = ["a", "b"].map(|name| Namespace::new(format!("{prefix}-{name}")));
        Self { switch, hosts, config: Config::new(CONFIG), prefix }
    }

    /// Creates the interfaces of the switch and of the hosts.
    fn link(&self) {
        let prefix = &self.prefix;
        for (number, (host, name)) in self.hosts.iter().zip(["a", "b"]).enumerate() {
            let (interface, space) = (format!("uf{name}"), format!("{prefix}-{name}"));
            self.switch
                .run(&["ip", "link", "add", &interface, "type", "veth", "peer", "name", "eth0", "netns", &space]);
            self.switch.run(&["ip", "link", "set", "dev", &interface, "addrgenmode", "none", "up"]);
            host.run(&["ip", "link", "set", "dev", "eth0", "addrgenmode", "none", "up"]);
            host.run(&["ip", "address", "add", &format!("10.49.1.{}/24", number + 1), "dev", "eth0"]);
        }
    }

    /// Starts a switch.
    fn start(&self, program: &str, more: &[&str]) -> Process {
        let mut command = self.switch.command(program);
        command.args(["run", &self.config.path(), "--json"]).args(run_arguments()).args(more);
        Process::spawn(command)
    }

    /// Waits until the switch is ready.
    #[track_caller]
    fn wait(&self, process: &mut Process) {
        wait_for("running switch", PATIENCE, || {
            assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
            self.switch.get(METRICS, "/readyz")
        });
    }
}

/// Ends a switch in order.
#[track_caller]
fn stop(process: Process) {
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_ne!(report(&ended)["verdict"]["outcome"], "broken", "{ended:?}");
}

/// Times in seconds of the replies that ping(8) printed.
fn replies(printed: &str) -> Vec<f64> {
    let lines = printed.lines().filter(|line| line.contains(" bytes from "));
    lines.filter_map(|line| line.strip_prefix('[')?.split_once(']')?.0.parse().ok()).collect()
}

#[test]
fn upgrade_keeps_links_up_and_peers_lose_only_the_frames_of_one_gap() {
    if !machine_is_ready() {
        return;
    }
    let bench = Bench::new();
    bench.link();
    let old = std::env::var("HOLDFAST_TEST_OLD").unwrap_or_else(|_| HOLDFAST.to_owned());
    let mut before = bench.start(&old, &[]);
    bench.wait(&mut before);

    let mut ping = bench.hosts[0].command("ping");
    ping.args(["-n", "-D", "-i", &PING.to_string(), "10.49.1.2"]);
    let ping = Process::spawn(ping);
    let more = |than: usize| wait_for("replies", PATIENCE, || (replies(&ping.stdout()).len() > than).then_some(()));
    more(50);
    let links = bench.hosts.each_ref().map(|host| {
        let mut monitor = host.command("ip");
        monitor.args(["monitor", "link", "dev", "eth0"]);
        Process::spawn(monitor)
    });
    let capture = Capture::on(&bench.hosts[0], "eth0", "ether proto 0x88cc");
    let seen = replies(&ping.stdout()).len();
    stop(before);
    let mut after = bench.start(HOLDFAST, &[]);
    bench.wait(&mut after);
    more(seen + 100);

    // LLDP told the peer of the end, and of the new start.
    let lives = |trace: &crate::capture::Trace| trace.fields("lldp", &["lldp.time_to_live"]).concat();
    let lives = lives(&capture.stop());
    let end = lives.iter().position(|life| life == "0").unwrap_or_else(|| panic!("no TTL of 0: {lives:?}"));
    assert!(lives[end + 1..].iter().any(|life| life != "0"), "{lives:?}");
    for link in links {
        assert!(!link.stdout().contains("DOWN") && !link.stdout().contains("NO-CARRIER"), "{}", link.stdout());
    }
    ping.signal("INT");
    let printed = ping.wait(PATIENCE).stdout;
    assert!(!printed.contains("DUP!"), "{printed}");
    let times = replies(&printed);
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    let lost = printed.lines().find(|line| line.contains(" packet loss")).unwrap_or_default();
    println!("longest gap {longest:.3} s at one ping every {PING} s; {lost}");
    assert!(longest < LONGEST, "{longest} s");
    stop(after);
}

#[test]
fn interfaces_that_appear_after_the_start_are_waited_for() {
    if !machine_is_ready() {
        return;
    }
    let bench = Bench::new();
    let mut process = bench.start(HOLDFAST, &["--wait-for-interfaces", "60s"]);
    wait_for("note", PATIENCE, || process.stderr().contains("waiting for the interfaces ufa, ufb").then_some(()));
    bench.link();
    bench.wait(&mut process);
    let said = bench.hosts[0].run(&["ping", "-n", "-q", "-c", "5", "-i", "0.05", "-W", "5", "10.49.1.2"]);
    assert!(said.contains(" 5 received"), "{said}");
    stop(process);
}

#[test]
fn wait_for_interfaces_ends_with_an_order_or_with_an_error() {
    if !machine_is_ready() {
        return;
    }
    let bench = Bench::new();
    let process = bench.start(HOLDFAST, &["--wait-for-interfaces", "60s"]);
    wait_for("note", PATIENCE, || process.stderr().contains("waiting for the interfaces").then_some(()));
    process.signal("TERM");
    let ended = process.wait(Duration::from_secs(10));
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), ""), "{ended:?}");

    let ended = bench.start(HOLDFAST, &["--wait-for-interfaces", "200ms"]).wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("`ufa`, which is not a network interface here"), "{ended:?}");
}
