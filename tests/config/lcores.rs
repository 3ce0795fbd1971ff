//! Lcores, receive backlog, watchdogs, PFC modes, and command-line overrides of them.

use holdfast::config::{HostsLcore, Overrides};
use holdfast::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use holdfast::units::Nanos;

use super::*;

fn port(keys: &str) -> String {
    format!("preset: roce\nports: [{{name: p1, device: net_tap0, {keys}}}]\n")
}

fn lcores_of(config: &Config) -> Vec<u8> {
    config.switch.ports.iter().map(|port| port.lcore).collect()
}

/// Four ports, the last of which chooses its lcore.
fn four(lcores: &str) -> String {
    let ports: String = (0..3).map(|n| format!("  - {{name: p{n}, device: net_tap{n}, speed: 10G}}\n")).collect();
    format!("ports:\n{ports}  - {{name: p3, device: net_tap3, speed: 10G, lcore: 0}}\nlcores: {lcores}\n")
}

#[test]
fn ports_are_spread_over_the_lcores_in_turn() {
    let config = accept(&four("{dataplane: [4, 5, 6]}"));
    assert_eq!((config.switch.lcores, lcores_of(&config)), (3, vec![0, 1, 2, 0]));
    assert_eq!(config.lcores.dataplane, [4, 5, 6]);
    let config = accept(&four("{count: 2}"));
    assert_eq!((config.switch.lcores, lcores_of(&config)), (2, vec![0, 1, 0, 0]));
    assert!(config.lcores.dataplane.is_empty());
    let config = accept(&four("{dataplane: 7}"));
    assert_eq!((config.switch.lcores, lcores_of(&config)), (1, vec![0; 4]));
    assert_eq!(config.lcores.dataplane, [7]);
}

#[test]
fn ports_have_a_transmit_queue_for_each_lcore_or_one() {
    let text = |lcores: u8, keys: &str| {
        format!(
            "preset: roce\nlcores: {{count: {lcores}}}\nports:\n- {{name: p1, device: ring, speed: 10G{keys}}}\n\
             - {{name: p2, device: \"0000:3b:00.0\", speed: 10G}}\n- {{name: p3, device: net_tap3, speed: 10G}}\n\
             hosts:\n- {{name: h1, port: p1}}\n"
        )
    };
    let tx_queues = |config: &Config| config.switch.ports.iter().map(|port| port.tx_queues).collect::<Vec<u8>>();
    let joint = |config: &Config| config.switch.joint_ports().iter().collect::<Vec<usize>>();
    let config = accept(&text(3, ""));
    assert_eq!((tx_queues(&config), joint(&config)), (vec![3, 3, 1], vec![0, 1]));
    let config = accept(&text(3, ", tx_queues: 1"));
    assert_eq!((tx_queues(&config), joint(&config)), (vec![1, 3, 1], vec![1]));
    let config = accept(&text(1, ", tx_queues: 8"));
    assert_eq!((tx_queues(&config), joint(&config)), (vec![1; 3], vec![]), "one lcore needs one queue");
    let config = accept(&format!("{}classes: {{0: {{queue_reserve: 10kB}}}}\n", text(3, "")));
    assert!(joint(&config).is_empty(), "a queue with a reserve has one owner");
    refuse(
        &text(3, ", tx_queues: 2"),
        "x.yaml:4:51: ports[0].tx_queues: `2` queues are too few for 3 lcores: either each lcore has its own, or the \
         port's lcore sends for all; write `3` or `1`",
    );
    refuse(
        "lcores: {count: 3}\nports: [{name: p1, device: \"vhost:/run/a\", speed: 10G, queues: 2, tx_queues: 3}]\n",
        "x.yaml:2:78: ports[0].tx_queues: a guest that receives by 3 queues also sends by them, and the switch polls 2; \
         write `queues: 3` too",
    );
    refuse(
        &port("speed: 10G, tx_queues: 2"),
        "x.yaml:2:61: ports[0].tx_queues: only NICs by PCI address, vhost and `device: ring` have several transmit \
         queues; write `tx_queues: 1`",
    );
}

#[test]
fn invalid_lcore_settings_are_refused() {
    refuse_beside_ports(
        "lcores: {dataplane: 1, count: 2}\n",
        "x.yaml:4:31: lcores.count: `count` and `dataplane` exclude each other; keep one of the two",
    );
    refuse_beside_ports(
        "lcores: {count: 17, backlog_xoff: yes}\n",
        "\
x.yaml:4:17: lcores.count: `17` is not a count of lcores; write a whole number from 1 to 16
x.yaml:4:35: lcores.backlog_xoff: `yes` is not one of the choices; write `on` or `off`; did you mean `on`?",
    );
    refuse_beside_ports(
        "lcores: {dataplane: []}\n",
        "x.yaml:4:21: lcores.dataplane: 0 dataplane CPUs are out of range; write from 1 to 16",
    );
    refuse_beside_ports(
        "lcores: {dataplane: [1, x]}\n",
        "x.yaml:4:25: lcores.dataplane[1]: `x` is not a CPU; write a whole number from 0 to 1023",
    );
    refuse(
        &port("speed: 10G, lcore: 1"),
        "x.yaml:2:57: ports[0].lcore: there is one lcore, numbered from 0; write a number below 1, or `lcores: {count: \
         2}`",
    );
    refuse(
        &format!("{}lcores: {{count: 2}}\n", port("speed: 10G, lcore: 2")),
        "x.yaml:2:57: ports[0].lcore: there are 2 lcores, numbered from 0; write a number below 2, or `lcores: {count: \
         3}`",
    );
}

#[test]
fn shared_cpus_and_lcores_without_ports_are_warned_of() {
    warn(
        &format!("{PORTS}lcores: {{dataplane: [1, 1]}}\n"),
        "x.yaml:4:25: lcores.dataplane[1]: two lcores share CPU 1, so polls are late; write another CPU",
    );
    warn(
        &format!("{PORTS}lcores: {{control: 2, dataplane: [1, 2]}}\n"),
        "x.yaml:4:19: lcores.control: the control thread takes time from a dataplane lcore on the same CPU; write \
         another CPU",
    );
    warn(
        &format!("{PORTS}lcores: {{count: 4}}\n"),
        "x.yaml:4:9: lcores: lcores 2, 3 have no port and poll nothing; write fewer lcores, or assign ports with \
         `lcore`",
    );
    warn(
        &format!("{PORTS}lcores: {{count: 3}}\n"),
        "x.yaml:4:9: lcores: lcore 2 has no port and polls nothing; write fewer lcores, or assign ports with `lcore`",
    );
}

#[test]
fn backlog_mark_defaults_to_32_frames_on_lossless_ports() {
    let mark = |text: &str| accept(text).switch.ports[0].backlog_mark;
    assert_eq!(mark(&port("speed: 10G")), Some(32));
    assert_eq!(mark(&port("speed: 10G, backlog_mark: 100")), Some(100));
    assert_eq!(mark(&port("speed: 10G, backlog_mark: off")), None);
    assert_eq!(mark(&port("speed: 10G, pfc: off")), None);
    assert_eq!(mark(PORTS), None, "nothing lossless");
    let off = "lcores: {backlog_xoff: off}\n";
    assert_eq!(mark(&format!("{}{off}", port("speed: 10G"))), None);
    assert_eq!(mark(&format!("{}{off}", port("speed: 10G, backlog_mark: 64"))), Some(64), "the port's word counts");
    assert!(config::embedded().switch.ports.iter().all(|port| port.backlog_mark == Some(32)));
}

#[test]
fn invalid_backlog_mark_is_refused() {
    refuse(
        &port("speed: 10G, backlog_mark: 0"),
        "x.yaml:2:64: ports[0].backlog_mark: `0` is not a count of frames; write a whole number from 1 to 16383",
    );
    refuse(
        &port("speed: 10G, rx_descriptors: 128, backlog_mark: 128"),
        "x.yaml:2:85: ports[0].backlog_mark: `128` is not below the 128 frames of the receive ring, so it has no effect; write e.g. 32",
    );
}

#[test]
fn receive_ring_too_short_beyond_backlog_mark_is_warned_of() {
    let arrive = |arrivals: u32, rate: &str, cable: &str, gap: &str| {
        format!(
            "x.yaml:2:9: ports[0].rx_descriptors: when the backlog of port p1 reaches 32 frames, its peer gets XOFF, and up to {arrivals} of 64 B arrive until it stops ({rate}, cable {cable}, mtu 1500, poll gap {gap}): a receive ring of 1024 can overflow"
        )
    };
    // 3*1546 + 94 (cable) + 80*64 + 84 + 819 + 62500 (poll gap) + 31250 (transmit ring) = 104,505 B, in frames of 84 B.
    warn(
        &port("speed: 25G"),
        &format!("{}; write `rx_descriptors: 2048`, or lower `lcores.poll_gap`", arrive(1245, "25G", "3m", "20us")),
    );
    // The 491,183 B of docs/headroom.md without the frames left in the ring.
    warn(
        &port("speed: 100G, cable: 300m"),
        &format!("{}; write `rx_descriptors: 8192`, or lower `lcores.poll_gap`", arrive(5277, "100G", "300m", "20us")),
    );
    warn(
        &format!("{}lcores: {{poll_gap: 155us}}\nbuffer: {{size: 1GiB}}\n", port("speed: 100G")),
        &format!(
            "{}; lower `lcores.poll_gap`, because no ring can be that long",
            arrive(24_925, "100G", "3m", "155us")
        ),
    );
    for enough in ["speed: 10G", "speed: 25G, rx_descriptors: 2048", "speed: 25G, backlog_mark: off"] {
        assert_eq!(accept(&port(enough)).warnings, [] as [&str; 0], "{enough}");
    }
}

const MS: u64 = 1_000_000;

fn watchdog(detection: u64, restoration: u64, action: WatchdogAction) -> Option<WatchdogSpec> {
    Some(WatchdogSpec { detection: Nanos(detection * MS), restoration: Nanos(restoration * MS), action })
}

#[test]
fn watchdog_comes_from_the_preset_and_ports_override_it() {
    let of = |text: &str| accept(text).switch.ports[0].live.watchdog;
    assert_eq!(of(PORTS), None);
    assert_eq!(of(&port("speed: 10G")), watchdog(200, 200, WatchdogAction::Drop));
    assert_eq!(of(&format!("{}watchdog: off\n", port("speed: 10G"))), None);
    assert_eq!(of(&format!("{PORTS}watchdog: {{action: alert}}\n")), watchdog(200, 200, WatchdogAction::Alert));
    let own = port("speed: 10G, watchdog: {restoration: 1s}");
    assert_eq!(of(&own), watchdog(200, 1000, WatchdogAction::Drop));
    let both = format!("{own}watchdog: {{detection: 300ms, action: forward}}\n");
    assert_eq!(of(&both), watchdog(300, 1000, WatchdogAction::Forward));
    assert_eq!(of(&port("speed: 10G, watchdog: off")), None);
    assert_eq!(of(&port("speed: 10G, pfc: off")), None);
}

#[test]
fn default_watchdog_detection_exceeds_the_longest_pause() {
    let config = accept(&port("speed: 100M"));
    assert!(config.warnings.is_empty());
    assert_eq!(config.switch.ports[0].live.watchdog, watchdog(340, 200, WatchdogAction::Drop));
}

#[test]
fn watchdog_detection_within_the_longest_pause_is_warned_of() {
    warn(
        &format!("preset: roce\n{}watchdog: {{detection: 300ms}}\n", PORTS.replace("10G", "10M")),
        "x.yaml:5:23: watchdog.detection: `300ms` is not longer than the longest single pause at the 10M of port p1 (3.35s), which would count as a storm; write 3360ms or more",
    );
    warn(
        &port("speed: 100M, watchdog: {detection: 50ms}"),
        "x.yaml:2:73: ports[0].watchdog.detection: `50ms` is not longer than the longest single pause at the 100M of port p1 (335.53ms), which would count as a storm; write 340ms or more",
    );
}

#[test]
fn invalid_watchdog_settings_are_refused() {
    refuse_beside_ports(
        "watchdog: on\n",
        "x.yaml:4:11: watchdog: `on` is not a watchdog; write `{detection: 200ms, restoration: 200ms, action: drop}` or `off`",
    );
    refuse_beside_ports(
        "watchdog: {detection: 1ms, restoration: 2min, action: kill}\n",
        "\
x.yaml:4:23: watchdog.detection: `1ms` is out of range; write from 10ms to 60s
x.yaml:4:41: watchdog.restoration: `2min` is out of range; write from 10ms to 60s
x.yaml:4:55: watchdog.action: `kill` is not one of the choices; write `drop`, `forward` or `alert`",
    );
}

#[test]
fn watchdog_on_port_without_pfc_is_warned_of() {
    assert_eq!(
        accept(&port("speed: 10G, pfc: off, watchdog: {action: alert}")).warnings,
        [
            "x.yaml:2:9: ports[0]: PFC is off, so class 3 is not lossless here",
            "x.yaml:2:70: ports[0].watchdog: PFC is off at this port, so there is nothing to watch; remove it or write `pfc: software`",
        ]
    );
}

#[test]
fn pfc_has_modes_with_and_without_frames() {
    let mode = |word: &str| accept(&port(&format!("speed: 10G, pfc: {word}"))).switch.ports[0].pfc;
    assert_eq!(["software", "asymmetric", "off"].map(mode), [PfcMode::Symmetric, PfcMode::Asymmetric, PfcMode::Off]);
    refuse(
        &port("speed: 10G, pfc: hardware"),
        "x.yaml:2:55: ports[0].pfc: `hardware` is not one of the choices; write `software`, `asymmetric`, `nic`, `queue` or `off`",
    );
}

/// A port by PCI address with `pfc: nic`, the further `keys`, and further `sections`.
fn nic(keys: &str, sections: &str) -> String {
    format!("preset: roce\nports: [{{name: p1, device: \"0000:3b:00.0\", speed: 10G, pfc: nic{keys}}}]\n{sections}")
}

#[test]
fn pfc_of_a_nic_has_one_queue_and_headroom_for_its_other_rings() {
    let config = accept(&nic("", "lcores: {count: 2}\n"));
    let (port, device) = (&config.switch.ports[0], &config.devices[0]);
    assert_eq!((port.pfc, device.queues, device.tx_queues), (PfcMode::Nic, 1, 1));
    let software = accept(&nic("", "").replace("nic}", "software}"));
    let headroom = |config: &Config| config.switch.ports[0].buffer.groups[3].headroom;
    // Seven frames of 1546 B on the wire, at 84 B a cell.
    let more = headroom(&accept(&nic("", ""))).0 - headroom(&software).0;
    assert!((128..=129).contains(&more), "{more}");
}

#[test]
fn pfc_of_a_nic_is_refused_where_the_nic_could_not_obey() {
    refuse(
        &port("speed: 10G, pfc: nic"),
        "x.yaml:2:55: ports[0].pfc: `net_tap0` is no NIC that could obey PFC by itself; write `pfc: software`",
    );
    let queues = "x.yaml:2:61: ports[0].pfc: a NIC that obeys PFC by itself has a queue for each priority; remove \
                  `queues` and `tx_queues`";
    refuse(&nic(", queues: 2", ""), queues);
    refuse(&nic(", tx_queues: 2", "lcores: {count: 2}\n"), queues);
    refuse(
        &nic(", watchdog: {action: forward}", ""),
        "x.yaml:2:61: ports[0].pfc: the watchdog cannot send frames that the NIC holds; write `action: drop` or `alert`, \
         or `pfc: software`",
    );
    refuse(
        &nic("", "faults: allowed\n"),
        "x.yaml:2:61: ports[0].pfc: faults cannot reach the queues of the priorities; write `faults: off` or \
         `pfc: software`",
    );
    refuse(
        &nic("", "maps: {pfc_to_queue: {7: 3}}\n"),
        "x.yaml:2:61: ports[0].pfc: a NIC that obeys PFC by itself stops the queue of the priority's number; let \
         lossless classes have one number in `tc_to_group`, `tc_to_queue` and `pfc_to_queue`, or write `pfc: software`",
    );
    let all: String = (0..8).map(|class| format!("  {class}: {{lossless: true}}\n")).collect();
    refuse(
        &nic("", &format!("classes:\n{all}buffer: {{size: 64MiB}}\n")),
        "x.yaml:2:61: ports[0].pfc: PFC frames need the queue of a lossy class, and all are lossless; write \
         `pfc: software`",
    );
}

/// Time that the peer has to stop at XOFF. The software of a peer behind a device that is no NIC may be late to run.
#[test]
fn reaction_of_the_peer_follows_cable_response_and_device() {
    let of = |keys: &str| accept(&port(&format!("speed: 10G, {keys}"))).switch.ports[0].reaction.0;
    let usual = of("cable: 5m");
    assert_eq!(of("cable: 105m") - usual, 1_000, "5 ns a metre, both ways");
    assert_eq!(of("cable: 5m, peer_response: 503072ns") - usual, 500_000, "beyond 60 quanta of 51.2 ns");
    let text = |device: &str| format!("preset: roce\nports: [{{name: p1, device: \"{device}\", speed: 10G}}]\n");
    let [nic, tap] = ["0000:3b:00.0", "net_tap0"].map(|device| accept(&text(device)).switch.ports[0].reaction.0);
    assert_eq!(tap - nic, 10_000_000);
}

#[test]
fn pfc_proven_is_accepted_for_devices_and_refused_for_virtual_hosts() {
    let trusted = |keys: &str| accept(&port(keys)).devices[0].pfc_proven;
    assert_eq!(["speed: 10G", "speed: 10G, pfc_proven: true"].map(trusted), [false, true]);
    let text = "preset: roce\nports: [{name: p1, device: ring, speed: 10G, pfc_proven: true}]\nhosts: [{name: h1, port: p1}]\n";
    refuse(text, "x.yaml:2:58: ports[0].pfc_proven: a port with a virtual host needs no proof of PFC; remove it");
    let warnings = accept(&port("speed: 10G, pfc: off, pfc_proven: true")).warnings;
    assert!(warnings[1].ends_with("nothing to prove; remove it or write `pfc: software`"), "{warnings:?}");
}

fn overridden(overrides: Overrides, text: &str) -> Config {
    let config = overrides.parse("x.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    check_sums(&config);
    config
}

#[test]
fn command_line_overrides_pfc_mode() {
    let modes = |pfc| {
        let text = "preset: roce\nports:\n  - {name: p1, device: net_tap0, speed: 10G, pfc: off}\n  - {name: p2, device: net_tap1, speed: 10G, pfc: asymmetric}\n";
        let config = overridden(Overrides { pfc: Some(pfc), ..Overrides::default() }, text);
        let modes: Vec<PfcMode> = config.switch.ports.iter().map(|port| port.pfc).collect();
        (modes, config.warnings.len())
    };
    assert_eq!(modes(PfcMode::Symmetric), (vec![PfcMode::Symmetric, PfcMode::Asymmetric], 0));
    assert_eq!(modes(PfcMode::Asymmetric), (vec![PfcMode::Asymmetric; 2], 0));
    assert_eq!(modes(PfcMode::Off), (vec![PfcMode::Off; 2], 1), "what the file says of p1 is still said");
    // With PFC turned on, the port must satisfy the rules for PFC.
    let on = Overrides { pfc: Some(PfcMode::Symmetric), ..Overrides::default() };
    assert!(on.parse("x.yaml", &port("speed: 10G, pfc: off, trust: port")).is_err());
}

#[test]
fn command_line_overrides_headroom_policy_and_lcores() {
    let headroom = |policy| Overrides { headroom: Some(policy), ..Overrides::default() };
    let config = headroom(HeadroomPolicy::Dynamic).embedded().unwrap();
    check_sums(&config);
    assert_eq!(config.switch.buffer.headroom, Cells(5 * 686));
    let pool = format!("preset: roce\n{PORTS}buffer: {{headroom: {{policy: shared-pool, ratio: 1}}}}\n");
    assert_eq!(
        overridden(headroom(HeadroomPolicy::SharedPool), &pool).switch.buffer.headroom,
        Cells(1370),
        "its ratio"
    );
    let small =
        headroom(HeadroomPolicy::Dynamic).parse("x.yaml", &format!("preset: roce\n{PORTS}buffer: {{size: 640KiB}}\n"));
    assert!(small.is_err(), "what does not fit by that policy is refused");

    let lcores = |count, text: &str| overridden(Overrides { lcores: Some(count), ..Overrides::default() }, text);
    let config = lcores(2, &four("{dataplane: [4, 5, 6]}"));
    assert_eq!((config.switch.lcores, lcores_of(&config)), (2, vec![0, 1, 0, 1]), "spread anew");
    assert_eq!(config.lcores.dataplane, [4, 5], "as many of the CPUs");
    let config = lcores(4, &four("{dataplane: [4, 5, 6]}"));
    assert_eq!((lcores_of(&config), config.lcores.dataplane), (vec![0, 1, 2, 3], vec![]), "too few CPUs: chosen");
}

#[test]
fn virtual_hosts_run_beside_the_switch_or_on_an_lcore_of_their_own() {
    let hosts = |lcores: &str| accept(&four(lcores)).lcores.hosts;
    assert_eq!(hosts("{count: 1}"), HostsLcore::WithSwitch);
    assert_eq!(hosts("{hosts: with-switch}"), HostsLcore::WithSwitch);
    assert_eq!(hosts("{hosts: own}"), HostsLcore::Own(None));
    assert_eq!(hosts("{dataplane: 1, hosts: 0}"), HostsLcore::Own(Some(0)));
    refuse_beside_ports(
        "lcores: {hosts: elsewhere}\n",
        "x.yaml:4:17: lcores.hosts: `elsewhere` is not `with-switch`, `own` or a CPU; write a whole number from 0 to 1023",
    );
}

#[test]
fn stuck_after_of_a_port_overrides_the_switch_default() {
    let of = |text: &str| accept(text).switch.ports[0].live.stuck_after;
    let ms = |ms: u64| Some(Nanos(ms * 1_000_000));
    assert_eq!(of(PORTS), ms(500), "with or without a preset");
    assert_eq!(of(&format!("{PORTS}stuck_after: 2s\n")), ms(2000));
    assert_eq!(of(&format!("{PORTS}stuck_after: off\n")), None);
    let own = port("speed: 10G, pfc: off, stuck_after: 1s");
    assert_eq!(of(&format!("{own}stuck_after: off\n")), ms(1000));
    assert_eq!(of(&port("speed: 10G, stuck_after: off")), None);
    refuse_beside_ports(
        "stuck_after: 99ms\n",
        "x.yaml:4:14: stuck_after: `99ms` is out of range; write from 100ms to 60s, or `off`",
    );
}
