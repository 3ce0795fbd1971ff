//! Daemons of Linux in the namespace of the router (`routing.linux`): a DHCP relay, FRR with OSPF, VRRP.
//!
//! The commands of docs/linux.md are run here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use crate::linux::Lab;
use crate::namespace::{Namespace, is_orphan};
use crate::process::{Process, wait_for};
use crate::ready::{machine_has, machine_is_ready};

/// Longest time for a protocol to come up, even on a machine that runs other work.
const LONG: Duration = Duration::from_secs(120);
/// The script that starts and ends FRR.
const FRRINIT: &str = "/usr/lib/frr/frrinit.sh";

fn example(path: &str) -> String {
    let path = format!("{}/conf/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether a program exists. If not, the test is skipped, or fails with `CI=true`.
fn has(program: &str, package: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    machine_has(found.is_ok_and(|found| found.status.success()), || {
        format!("there is no `{program}`; install {package}")
    })
}

/// Starts a program in a namespace.
fn start(inside: &Namespace, words: &str) -> Process {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut command = inside.command(words[0]);
    command.args(&words[1..]);
    Process::spawn(command)
}

#[test]
fn host_gets_its_address_across_the_relay_also_from_a_switch_that_restarted() {
    if !machine_is_ready() || !has("dnsmasq", "dnsmasq-base") || !has("busybox", "busybox-static") {
        return;
    }
    let mut lab = Lab::start();
    let unit = example("systemd/dhcp-relay.service");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/sbin/")).expect("a command");
    let relay = start(&lab.inside, command);
    lease(&lab);
    // The taps of the next switch are new, and the relay is the one from before.
    lab.rig.end("KILL");
    let config = lab.config.clone();
    lab.rig.start_switch(&config);
    lab.rig.script_up();
    lab.give_addresses();
    lease(&lab);
    relay.signal("TERM");
    relay.wait(LONG);
    lab.rig.stop();
}

/// Host 0 gets an address from a server at host 2, and reaches it.
#[track_caller]
fn lease(lab: &Lab) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let server = start(
        &lab.rig.hosts[2].inside,
        &format!(
            "dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --pid-file= --dhcp-authoritative --no-ping --log-facility=- \
             --dhcp-leasefile={} --dhcp-range=10.48.0.100,10.48.0.120,255.255.255.0,1h",
            path("leases")
        ),
    );
    let client = &lab.rig.hosts[0];
    client.inside.run(&["ip", "address", "flush", "dev", &client.interface, "scope", "global"]);
    // udhcpc calls it at other events too, when there is no address yet.
    let script = "#!/bin/sh\n[ \"$1\" != bound ] || ip address add \"$ip/$mask\" dev \"$interface\"\n";
    fs::write(path("bound"), script).expect("an own directory");
    fs::set_permissions(path("bound"), Permissions::from_mode(0o755)).expect("an own file");
    let ask = ["busybox", "udhcpc", "-i", &client.interface, "-n", "-q", "-t", "3", "-T", "2", "-s", &path("bound")];
    wait_for("a lease", LONG, || client.inside.try_run(&ask).ok());
    let address = client.inside.run(&["ip", "-4", "-br", "address", "show", "dev", &client.interface]);
    assert!(address.contains(" 10.48.0.1"), "{address}; the server said {}", server.stderr());
    let lease = fs::read_to_string(path("leases")).expect("a file");
    assert!(lease.contains(&client.mac()), "{lease}");
    client.inside.run(&["ip", "route", "replace", "default", "via", "10.48.0.254"]);
    client.reach("10.48.2.2", 3);
    server.signal("TERM");
    server.wait(LONG);
}

/// FRR in a namespace, by the way of docs/linux.md: with its own pathspace, watched by watchfrr.
struct Frr {
    name: String,
}

impl Frr {
    /// Starts FRR in `namespace`, in a pathspace of that name.
    #[track_caller]
    fn start(namespace: &Namespace, daemons: &str, config: &str) -> Self {
        stop_orphans();
        let frr = Self { name: namespace.name().to_owned() };
        let directory = frr.directory();
        fs::create_dir_all(&directory).expect("/etc/frr can be written");
        for (file, text) in [("daemons", daemons), ("frr.conf", config), ("vtysh.conf", "")] {
            fs::write(directory.join(file), text).expect("an own directory");
        }
        let owned = Command::new("chown").args(["-R", "frr:frr"]).arg(&directory).output().expect("there is `chown`");
        assert!(owned.status.success(), "{owned:?}");
        let ended = Process::spawn(frr.command("start")).wait(LONG);
        assert!(ended.status.success(), "{ended:?}");
        frr
    }

    fn directory(&self) -> PathBuf {
        PathBuf::from("/etc/frr").join(&self.name)
    }

    fn command(&self, order: &str) -> Command {
        let mut command = Command::new(FRRINIT);
        command.args([order, &self.name]);
        command
    }

    /// The output of a command of vtysh; empty if it fails.
    fn show(&self, command: &str) -> String {
        let output = Command::new("vtysh").args(["-N", &self.name, "-c", command]).output().expect("there is `vtysh`");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        let _ = Process::spawn(self.command("stop")).wait(LONG);
        let _ = fs::remove_dir_all(self.directory());
        let _ = fs::remove_dir_all(format!("/run/frr/{}", self.name));
    }
}

/// Ends the daemons of tests that were killed: watchfrr would restart them for ever.
pub fn stop_orphans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let pathspaces = fs::read_dir("/etc/frr").into_iter().flatten().flatten();
        let names = pathspaces.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| is_orphan(name)).for_each(|name| drop(Frr { name }));
    });
}

/// The neighbour of the switch: a router behind hf2 with a network that only OSPF tells of.
const NEIGHBOUR: &str = "
frr defaults datacenter
interface hf2
 ip ospf area 0
 ip ospf network point-to-point
 ipv6 ospf6 area 0
 ipv6 ospf6 network point-to-point
exit
interface lo
 ip address 10.88.0.1/32
 ip ospf area 0
 ipv6 address fd88::1/128
 ipv6 ospf6 area 0
exit
router ospf
 ospf router-id 10.255.0.2
exit
router ospf6
 ospf6 router-id 10.255.0.2
exit
";

/// The configuration `config` with hellos each second instead of every ten: a neighbour is found by the second one.
fn with_quick_hellos(config: &str) -> String {
    let network = " ipv6 ospf6 network point-to-point\n";
    assert!(config.contains(network), "{config}");
    let timers = ["ip ospf", "ipv6 ospf6"].map(|of| format!(" {of} hello-interval 1\n {of} dead-interval 4\n"));
    config.replace(network, &format!("{network}{}", timers.concat()))
}

#[test]
fn ospf_neighbour_becomes_full_and_its_routes_forward() {
    if !machine_is_ready() || !has(FRRINIT, "frr") {
        return;
    }
    let mut lab = Lab::start();
    let daemons = example("frr/daemons").replace("#ospf", "ospf");
    let neighbour = Frr::start(&lab.rig.hosts[2].inside, &daemons, &with_quick_hellos(NEIGHBOUR));
    let frr = Frr::start(&lab.inside, &daemons, &with_quick_hellos(&example("frr/ospf.conf")));
    wait_for("a neighbour of OSPF", LONG, || frr.show("show ip ospf neighbor").contains("Full/").then_some(()));
    wait_for("a neighbour of OSPFv3", LONG, || frr.show("show ipv6 ospf6 neighbor").contains("Full/").then_some(()));
    for (family, network) in [("-4", "10.88.0.1"), ("-6", "fd88::1")] {
        wait_for(&format!("a route to {network}"), LONG, || {
            lab.ip(&format!("{family} route show {network} proto ospf")).contains("hf2").then_some(())
        });
        wait_for(&format!("an answer of {network}"), LONG, || {
            lab.ping(0, network).contains("1 received").then_some(())
        });
    }
    // The ways back are routes of the neighbour: the network of VLAN 10 was announced.
    let inside = &lab.rig.hosts[2].inside;
    wait_for("the way back", LONG, || {
        let said = inside.run(&["ip", "route", "show", "10.48.0.0/24", "proto", "ospf"]);
        said.contains("hf2").then_some(())
    });
    drop((frr, neighbour));
    lab.rig.stop();
}

/// The virtual router of host 1 and the switch.
fn keepalived(state: &str, interface: &str, priority: u8) -> String {
    format!(
        "vrrp_instance gateway {{
  state {state}
  interface {interface}
  virtual_router_id 51
  priority {priority}
  advert_int 1
  virtual_ipaddress {{ 10.48.0.250/24 }}
}}
"
    )
}

/// Two routers have a virtual address. Host 0 reaches it at the switch, and at the other one when the switch's
/// keepalived has ended.
#[test]
fn virtual_address_of_keepalived_moves_between_the_switch_and_another_router() {
    if !machine_is_ready() || !has("keepalived", "keepalived") {
        return;
    }
    let mut lab = Lab::start();
    let directory = tempfile::tempdir().expect("a directory");
    let run = |inside: &Namespace, name: &str, text: String| {
        let file = |end: &str| directory.path().join(format!("{name}.{end}")).display().to_string();
        fs::write(file("conf"), text).expect("an own directory");
        let words = format!("keepalived -n -l -f {} -p {} -r {}", file("conf"), file("pid"), file("vrrp"));
        start(inside, &words)
    };
    let backup = run(&lab.rig.hosts[1].inside, "host", keepalived("BACKUP", "hf1", 50));
    let master = run(&lab.inside, "switch", keepalived("MASTER", "vlan10", 200));
    let address = |inside: &Namespace, dev: &str| inside.run(&["ip", "-br", "address", "show", "dev", dev]);
    let is_at_switch = || address(&lab.inside, "vlan10").contains("10.48.0.250");
    let is_at_host = || address(&lab.rig.hosts[1].inside, "hf1").contains("10.48.0.250");
    // The backup withdraws when it hears the master, so frames of VRRP pass.
    wait_for("the master", LONG, || (is_at_switch() && !is_at_host()).then_some(()));
    wait_for("an answer of the switch", LONG, || lab.ping(0, "10.48.0.250").contains("1 received").then_some(()));
    assert!(is_at_switch() && !is_at_host(), "{}{}", master.stderr(), backup.stderr());
    let entry = |lab: &Lab| lab.rig.hosts[0].inside.run(&["ip", "neighbour", "show", "10.48.0.250"]);
    let first = entry(&lab);
    master.signal("TERM");
    master.wait(LONG);
    wait_for("the backup", LONG, || is_at_host().then_some(()));
    wait_for("an answer of the backup", LONG, || lab.ping(0, "10.48.0.250").contains("1 received").then_some(()));
    let second = entry(&lab);
    assert!(second.contains(&lab.rig.hosts[1].mac()) && !first.contains(&lab.rig.hosts[1].mac()), "{first}{second}");
    backup.signal("TERM");
    backup.wait(LONG);
    lab.rig.stop();
}
