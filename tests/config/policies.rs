//! Headroom policies, guarantees and limits, and the results derived from them.

use holdfast::config::EcnOrder;
use holdfast::mmu::Threshold;
use holdfast::qos::CongestionPointSpec;
use holdfast::sets::ClassSet;
use holdfast::units::Bytes;

use super::*;

fn buffer(buffer: &str) -> String {
    format!("preset: roce\n{PORTS}buffer: {buffer}\n")
}

/// Eta in cells at 10G, 3m, MTU 1500: `holdfast headroom --speed 10G --cable 3m`.
const ETA: u32 = 685;

#[test]
fn headroom_policies_reserve_their_exact_totals() {
    let headroom = |text: &str| {
        let config = accept(&buffer(text));
        check_sums(&config);
        let port = &config.switch.ports[0].buffer;
        assert_eq!(port.groups[3].headroom, Cells(ETA), "a cap, or how early");
        (config.switch.buffer.policy, config.switch.buffer.headroom.0, port.insurance.0)
    };
    assert_eq!(headroom("{}"), (HeadroomPolicy::Independent, 2 * ETA, 0));
    assert_eq!(headroom("{headroom: independent}"), (HeadroomPolicy::Independent, 2 * ETA, 0));
    assert_eq!(headroom("{headroom: shared-pool}"), (HeadroomPolicy::SharedPool, ETA, 0));
    let shared = |keys| headroom(&format!("{{headroom: {{policy: shared-pool, {keys}}}}}"));
    assert_eq!(shared("ratio: 1.25"), (HeadroomPolicy::SharedPool, 1096, 0));
    assert_eq!(shared("size: 208kB"), (HeadroomPolicy::SharedPool, 1000, 0));
    assert_eq!(headroom("{headroom: {policy: dynamic}}"), (HeadroomPolicy::Dynamic, 2 * ETA, ETA));
    // With two lossless classes, the policy dynamic still has one eta a port.
    let two = format!("{}classes: {{4: {{lossless: true}}}}\n", buffer("{headroom: dynamic}"));
    assert_eq!(accept(&two).switch.buffer.headroom.0, 2 * ETA);
    // Without a lossless class there is no headroom.
    let lossy = accept(&format!("{PORTS}buffer: {{headroom: {{policy: shared-pool, size: 1MiB}}}}\n"));
    assert_eq!(lossy.switch.buffer.headroom.0, 0);
}

#[test]
fn invalid_headroom_policy_is_refused() {
    refuse(
        &buffer("{headroom: shared}"),
        "x.yaml:5:20: buffer.headroom: `shared` is not one of the choices; write `independent`, `shared-pool` or `dynamic`",
    );
    refuse(
        &buffer("{headroom: {ratio: 2}}"),
        "x.yaml:5:20: buffer.headroom: `policy` is missing; write e.g. `policy: shared-pool`",
    );
    refuse(
        &buffer("{headroom: {policy: dynamic, ratio: 2}}"),
        "x.yaml:5:45: buffer.headroom.ratio: has no effect with `policy: dynamic`; remove it or write `policy: shared-pool`",
    );
    refuse(
        &buffer("{headroom: {policy: shared-pool, ratio: 2, size: 1MiB}}"),
        "x.yaml:5:58: buffer.headroom.size: `ratio` and `size` exclude each other; keep one of the two",
    );
    refuse(
        &buffer("{headroom: {policy: shared-pool, ratio: 0.5}}"),
        "x.yaml:5:49: buffer.headroom.ratio: `0.5` is not a ratio; write a number from 1 to 64, e.g. 2 or 2.5",
    );
}

#[test]
fn headroom_pool_below_one_eta_is_refused() {
    refuse(
        &buffer("{headroom: {policy: shared-pool, ratio: 4}}"),
        "x.yaml:5:49: buffer.headroom.ratio: at a ratio of 4 the headroom pool has 69.67KiB, less than the 139.14KiB that one group of port p2 may need; write `ratio: 2` or less",
    );
    refuse(
        &buffer("{headroom: {policy: shared-pool, size: 64KiB}}"),
        "x.yaml:5:48: buffer.headroom.size: the headroom pool has 64.18KiB, less than the 139.14KiB that one group of port p2 may need; write `size: 140KiB` or more",
    );
}

#[test]
fn dynamic_headroom_above_the_group_limit_is_refused() {
    refuse(
        &buffer("{size: 640KiB, headroom: dynamic}"),
        "x.yaml:5:9: buffer: with dynamic headroom class 3 goes XOFF 139.14KiB below its limit at port p2, and the limit is 65.81KiB with an empty buffer: the first frame would cause XOFF; raise `alpha`, enlarge the buffer, or write `headroom: shared-pool`",
    );
    refuse(
        &format!("{}classes: {{3: {{limit: 100kB}}}}\n", buffer("{headroom: dynamic}")),
        "x.yaml:6:14: classes.3: with dynamic headroom class 3 goes XOFF 139.14KiB below its limit at port p2, and the limit is 97.5KiB with an empty buffer: the first frame would cause XOFF; raise `limit`, enlarge the buffer, or write `headroom: shared-pool`",
    );
}

#[test]
fn ports_have_reserves_of_their_own_or_the_default() {
    let config = accept(
        "\
ports:
  - {name: p1, device: net_tap0, speed: 10G, reserve: {lossless: 2080B}}
  - {name: p2, device: net_tap1, speed: 10G}
buffer: {port_reserve: {lossless: 208B, lossy: 209B}}
",
    );
    check_sums(&config);
    let reserves: Vec<_> = config.switch.ports.iter().map(|port| port.buffer.reserve).collect();
    assert_eq!(reserves, [[Cells(2), Cells(10)], [Cells(2), Cells(1)]], "lossy, lossless");
    assert_eq!(config.switch.buffer.reserves, Cells(15));
}

#[test]
fn invalid_port_reserves_are_refused() {
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 10G, reserve: 20kB}]\nbuffer: {port_reserve: 1kB}\n",
        "\
x.yaml:1:59: ports[0].reserve: `20kB` is not a mapping of reserves; write e.g. `{lossless: 20kB, lossy: 10kB}`
x.yaml:2:24: buffer.port_reserve: `1kB` is not a mapping of reserves; write e.g. `{lossless: 20kB, lossy: 10kB}`",
    );
    refuse_beside_ports(
        "buffer: {port_reserve: {lossles: 20kB}}\n",
        "x.yaml:4:25: buffer.port_reserve: unknown key `lossles`; did you mean `lossless`?",
    );
    refuse_beside_ports(
        "buffer: {port_reserve: {lossy: 8MiB}}\n",
        "x.yaml:4:9: buffer: reserves 16MiB exceed the buffer of 12MiB by 4MiB (20166 cells of 208 B); write `size: 16385KiB` or more, or reduce them",
    );
}

#[test]
fn queues_have_limits_and_reserves() {
    let config = accept(&format!("{PORTS}classes: {{0: {{queue_limit: 2080B, queue_reserve: 209B}}}}\n"));
    let queue = &config.switch.queues[0];
    assert_eq!(queue.limit.map(|limit| limit.threshold), Some(Threshold::Static(Cells(10))));
    assert_eq!(queue.reserve, Cells(2));
    assert_eq!(config.switch.queues[1].reserve, Cells(0));
    refuse_beside_ports(
        "classes: {0: {queue_alpha: 1, queue_limit: 1MiB}}\n",
        "x.yaml:4:44: classes.0.queue_limit: `queue_alpha` and `queue_limit` exclude each other; keep one of the two",
    );
    refuse_beside_ports(
        "classes: {0: {lossless: true, queue_limit: 1MiB, queue_reserve: 1kB}}\n",
        "\
x.yaml:4:44: classes.0.queue_limit: has no effect in a lossless class; remove it or write `lossless: false`
x.yaml:4:65: classes.0.queue_reserve: has no effect in a lossless class; remove it or write `lossless: false`",
    );
    refuse_beside_ports(
        "classes: {0: {queue_reserve: 1MiB}, 1: {queue_reserve: 1MiB}}\n",
        "x.yaml:4:56: classes.1.queue_reserve: queue reserves of 2MiB at each of 2 ports add up to 4MiB, more than the 2.99MiB of the lossy pool that holds them; write less, or enlarge `buffer.lossy`",
    );
}

#[test]
fn ecn_and_xoff_order_is_computed_for_every_kind_of_limit() {
    let order = |text: &str| accept(text).summary.ecn;
    // 1/4 of the pool of 44,307 cells, divided by 2 ports and 1 + 1/4: 44307*208 / 4 / 2 / 1.25.
    let pool = u64::from(accept(&buffer("{}")).switch.buffer.lossless_shared.0) * 208;
    let expected = EcnOrder { class: 3, kmin: Bytes(100_000), xoff: Bytes(pool / 10) };
    assert_eq!(order(&buffer("{}")), [expected]);
    assert!(expected.is_before());
    // With dynamic headroom XOFF comes an eta earlier: (pool/4 - eta) / 2 / 1.25.
    let dynamic = EcnOrder { xoff: Bytes((pool - 4 * u64::from(ETA) * 208) / 10), ..expected };
    assert_eq!(order(&buffer("{headroom: dynamic}")), [dynamic]);
    // A static limit, in whole cells, divided by 2 ports.
    let limit = format!("{}classes: {{3: {{limit: 1MB}}}}\n", buffer("{}"));
    assert_eq!(order(&limit), [EcnOrder { xoff: Bytes(1_000_000 / 208 * 208 / 2), ..expected }]);
    warn(
        &format!("{}classes: {{3: {{limit: 150kB}}}}\n", buffer("{}")),
        "x.yaml:6:14: classes.3: ECN of class 3 starts to mark at 97.65KiB (kmin), but with 2 ports it is sure to mark before XOFF only below 73.22KiB; lower kmin, raise limit or enlarge the buffer",
    );
    warn(
        &buffer("{headroom: dynamic, size: 2MiB}"),
        "x.yaml:5:9: buffer: ECN of class 3 starts to mark at 97.65KiB (kmin), but with 2 ports it is sure to mark before XOFF only below 76.33KiB; lower kmin, raise alpha or enlarge the buffer",
    );
}

#[test]
fn lossless_class_count_that_fits_the_buffer_is_exact() {
    let fit = |text: &str| accept(&buffer(text)).summary.lossless_fit;
    assert_eq!(fit("{}"), 8);
    // Each class takes 2 * (685 + 16) cells, and the reserve of class 6 at both ports takes 16. The lossless pool has
    // 3/4 of the rest and must hold another 16: 1402*n + 16 + 22 <= total.
    assert_eq!(fit("{size: 870KiB}"), 3, "4283 cells");
    // The plan has 1438 cells: 48 of reserves, 1370 of headroom, 8 lossy and 12 shared. The 12 are fewer than 16, a
    // frame of each port.
    assert_eq!(fit("{size: 299104, lossy: 1664}"), 0, "the plan fits, but hardly");
    // Half the headroom: 685 * n + 32 * n.
    assert_eq!(fit("{size: 900KiB, headroom: shared-pool}"), 6);
    // One eta a port: 1370 + 32 * n. The limit of an empty buffer must exceed an eta.
    assert_eq!(fit("{size: 2MiB, headroom: dynamic}"), 8);
}

#[test]
fn congestion_points_are_set_by_class_and_refused_in_a_router() {
    let keys = "{3: {lossless: true, qcn: on}, 0: {qcn: {set_point: 60kB, weight: 1, sample: 1MB}}, 1: {qcn: off}}";
    let points = accept(&format!("{PORTS}classes: {keys}\n")).switch.congestion_points;
    let own = CongestionPointSpec { set_point: Bytes(60_000), weight: 1, sample: Bytes(1_000_000) };
    assert_eq!((points[3], points[0], points[1]), (Some(CongestionPointSpec::default()), Some(own), None));
    // `true` and an empty mapping are `on`, `false` is `off`.
    for (written, point) in
        [("true", Some(CongestionPointSpec::default())), ("{}", Some(CongestionPointSpec::default())), ("false", None)]
    {
        let read = accept(&format!("{PORTS}classes: {{0: {{qcn: {written}}}}}\n")).switch;
        assert_eq!(read.congestion_points[0], point, "{written}");
    }
    // A PFC frame may wait for messages.
    let headroom = |class: &str| {
        let read = accept(&format!("{PORTS}classes: {{3: {{lossless: true, qcn: {class}}}}}\n"));
        read.switch.ports[0].buffer.groups[3].headroom
    };
    assert!(headroom("on") > headroom("off"), "{:?} and {:?}", headroom("on"), headroom("off"));
    // Both ports at a quarter of the free pool each leave two thirds of it free.
    let of = |point: u64| format!("{}classes: {{3: {{qcn: {{set_point: {point}B}}}}}}\n", buffer("{}"));
    let read = accept(&of(60_000));
    let most = u64::from(read.switch.buffer.lossless_shared.0) * 208 / 3;
    let is_idle = |point: u64| accept(&of(point)).warnings.iter().any(|warning| warning.contains("set point"));
    assert_eq!([most - 1, most].map(is_idle), [false, true]);
    refuse_beside_ports(
        "classes: {3: {qcn: maybe}}\n",
        "x.yaml:4:20: classes.3.qcn: `maybe` is not a congestion point; write `on`, `off` or e.g. \
         `{set_point: 26kB, weight: 2, sample: 150kB}`",
    );
    refuse_beside_ports(
        "classes: {3: {qcn: {set_point: 10B}}}\n",
        "x.yaml:4:32: classes.3.qcn.set_point: `10B` is out of range; write a size from 1000B to 64MiB",
    );
    refuse_beside_ports(
        "classes: {3: {qcn: on}}\nrouting: {interfaces: [{vlan: 1, addresses: [10.0.0.1/24]}]}\n",
        "x.yaml:4:20: classes.3.qcn: QCN works within a layer 2 network: a routed frame does not show its source; \
         remove it, or `routing`",
    );
}

#[test]
fn telemetry_is_set_by_class_and_other_words_are_refused() {
    let config =
        accept(&format!("{PORTS}classes: {{3: {{lossless: true, telemetry: hpcc}}, 0: {{telemetry: off}}}}\n"));
    assert_eq!(config.switch.telemetry_queues, ClassSet::only(3));
    refuse_beside_ports(
        "classes: {3: {telemetry: maybe}}\n",
        "x.yaml:4:26: classes.3.telemetry: `maybe` is not one of the choices; write `hpcc` or `off`",
    );
}
