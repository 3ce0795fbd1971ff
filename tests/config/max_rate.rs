//! Maximum rates of queues.

use holdfast::qos::MaxRate;
use holdfast::units::{BitRate, Bytes};

use super::*;

/// The maximum rates of both ports in Mb/s, with their bursts, of the queues that have any.
fn maxima(text: &str) -> [Vec<(usize, u64, u64)>; 2] {
    let config = accept(text);
    [0, 1].map(|port: usize| {
        let maxima = config.switch.ports[port].live.max_rates.iter().enumerate();
        let parts = |(queue, maximum): (usize, &Option<MaxRate>)| {
            maximum.map(|MaxRate { rate: BitRate(rate), burst: Bytes(burst) }| (queue, rate / 1_000_000, burst))
        };
        maxima.filter_map(parts).collect()
    })
}

fn ports(one: &str, two: &str) -> String {
    format!("ports:\n  - {{name: p1, device: net_tap0, {one}}}\n  - {{name: p2, device: net_tap1, {two}}}\n")
}

#[test]
fn ports_have_the_maximum_rates_of_the_switch_or_their_own() {
    // 10 us of 2 Gb/s, and twice a quantum of 512 bytes and a frame of 1522.
    let usual = 2_500 + 2 * (512 + 1522);
    let of_class = "classes: {5: {max_rate: 2G}}\n";
    let both = vec![(5, 2_000, usual)];
    assert_eq!(maxima(&format!("{PORTS}{of_class}")), [both.clone(), both.clone()]);
    let strict = maxima(&format!("{PORTS}classes: {{5: {{max_rate: {{rate: 2G}}, scheduler: strict}}}}\n"));
    assert_eq!(strict[0], [(5, 2_000, 2_500 + 2 * 1522)]);
    let own = ports("speed: 10G, max_rate: {5: off, 3: {rate: 1500M, burst: 20kB}}", "speed: 10G");
    assert_eq!(maxima(&format!("{own}{of_class}")), [vec![(3, 1_500, 20_000)], both.clone()]);
    // A port that is no faster needs no maximum.
    let slow = ports("speed: 1G", "speed: 10G");
    assert_eq!(maxima(&format!("{slow}{of_class}")), [vec![], both.clone()]);
    let equal = ports("speed: 1G, max_rate: {5: 1G}", "speed: 10G");
    assert_eq!(maxima(&equal)[0].len(), 1);
}

#[test]
fn impossible_maximum_rates_are_refused() {
    for (written, error) in [
        ("0", "`0` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s"),
        ("999k", "`999k` is not a maximum rate; write from 1M to 800G, or `off`"),
        ("801G", "`801G` is not a maximum rate; write from 1M to 800G, or `off`"),
        ("11G", "11G is more than the speed of every port; write at most 10G, or `off`"),
        ("{burst: 1kB}", "`rate` is missing; write e.g. `rate: 5G`"),
    ] {
        let text = format!("classes: {{5: {{max_rate: {written}}}}}\n");
        refuse_beside_ports(&text, &format!("x.yaml:4:25: classes.5.max_rate: {error}"));
    }
    refuse_beside_ports(
        "classes: {5: {max_rate: {rate: 1G, burst: 65MiB}}}\n",
        "x.yaml:4:43: classes.5.max_rate.burst: `65MiB` is out of range; write a size from 100B to 64MiB",
    );
    refuse(
        &ports("speed: 10G", "speed: 1G, max_rate: {5: 2G}"),
        "x.yaml:3:59: ports[1].max_rate.5: 2G is more than the 1G of this port; write at most 1G, or `off`",
    );
    refuse(
        &ports("speed: 10G, max_rate: 2G", "speed: 1G"),
        "x.yaml:2:56: ports[0].max_rate: `2G` is not a mapping; write e.g. `{3: 5G}`",
    );
}

#[test]
fn maximum_rate_of_a_class_without_its_own_queue_is_warned_of() {
    let own = ports("speed: 10G, max_rate: {5: 2G}", "speed: 10G");
    warn(
        &format!("{own}maps: {{tc_to_queue: {{5: 4}}}}\n"),
        "x.yaml:2:60: ports[0].max_rate.5: class 5 is in queue 4: this has no effect; write it for class 4",
    );
}

#[test]
fn port_with_a_maximum_rate_has_one_lcore_that_sends() {
    let rings = |keys: &str| {
        let port = |number: u8, keys: &str| format!("{{name: p{number}, device: ring, speed: 10G{keys}}}");
        let hosts = "hosts: [{name: h1, port: p1}, {name: h2, port: p2}]\n";
        accept(&format!("lcores: {{count: 2}}\nports: [{}, {}]\n{hosts}", port(1, keys), port(2, ""))).switch
    };
    assert_eq!(rings("").joint_ports().len(), 2);
    let limited = rings(", max_rate: {5: 2G}");
    assert_eq!(limited.joint_ports().iter().collect::<Vec<_>>(), [1]);
    assert!(limited.may_be_joint(0) && limited.ports[0].is_limited());
}

#[test]
fn burst_that_cannot_reach_its_rate_produces_a_warning() {
    // 10 us of 2 Gb/s, a quantum of 512 bytes, a frame of 1522 and 24 bytes around it.
    let least = 2_500 + 512 + 1522 + 24;
    let of_class = |burst: u64| format!("{PORTS}classes: {{5: {{max_rate: {{rate: 2G, burst: {burst}B}}}}}}\n");
    assert_eq!(accept(&of_class(least)).warnings, [""; 0]);
    warn(
        &of_class(least - 1),
        "x.yaml:4:43: classes.5.max_rate.burst: with a burst of 4.45KiB the queue may stay below 2G, since it loses the \
         rest of what it earns within 10us between two polls and while it waits for its turn; write `burst: 4558B` or \
         more, or `max_rate: 2G` alone",
    );
    // Shorter gaps and a strict queue need less.
    let strict = |burst: u64| {
        let class = format!("5: {{scheduler: strict, max_rate: {{rate: 2G, burst: {burst}B}}}}");
        format!("{PORTS}lcores: {{poll_gap: 2us}}\nclasses: {{{class}}}\n")
    };
    assert_eq!([500 + 1546, 500 + 1545].map(|burst| accept(&strict(burst)).warnings.len()), [0, 1]);
    let own = ports("speed: 10G, max_rate: {3: {rate: 1G, burst: 1kB}}", "speed: 10G");
    let warnings = accept(&own).warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("ports[0].max_rate.3.burst: with a burst"), "{warnings:?}");
    // A port that is no faster than the rate has no such limit.
    let slow = ports("speed: 1G", "speed: 2G") + "classes: {5: {max_rate: {rate: 2G, burst: 100B}}}\n";
    assert_eq!(accept(&slow).warnings, [""; 0]);
}
