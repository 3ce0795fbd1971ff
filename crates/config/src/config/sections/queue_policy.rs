//! `buffer.queue_policy`: how the limits of lossy queues follow the use of their pool.

use std::ops::RangeInclusive;

use super::draft::{Class, Limit, Port};
use crate::config::checks::bounds;
use crate::config::keys::Key;
use crate::config::yaml::read::Item;
use crate::headroom::largest_frame;
use crate::mmu::AbmSpec;
use crate::sets::CLASSES;
use crate::units::{Bytes, Nanos};

pub const KEYS: &[Key] = &[
    Key::new("policy", "required", "`dt` `abm`", "limits of lossy queues"),
    Key::new(
        "interval",
        "`25us`",
        "`1us` to `100ms`",
        "time between two measurements. Less than eight frames at the slowest port cause a warning",
    ),
    Key::new("congested", "`20KiB`", "`64B` to `64MiB`", "depth from which a queue counts as congested"),
];
const POLICIES: [(&str, bool); 2] = [("dt", false), ("abm", true)];
const CONGESTED: RangeInclusive<Bytes> = Bytes(64)..=Bytes(64 << 20);

/// Frames of the MTU that an interval should hold: with fewer, a drain rate is a guess.
const LEAST_FRAMES: u64 = 8;

/// Reads `queue_policy`; `None`: Dynamic Threshold alone.
pub fn read(item: Option<Item<'_>>) -> Option<(Item<'_>, AbmSpec)> {
    let item = item?;
    if !item.is_map() {
        let is_abm = item.choice(&POLICIES)?;
        return is_abm.then_some((item, AbmSpec::USUAL));
    }
    let fields = item.fields(KEYS)?;
    let is_abm = fields.required("policy", "policy: abm")?.choice(&POLICIES)?;
    let interval: Option<Nanos> = fields.get("interval").and_then(|item| item.read(bounds::abm_interval));
    let congested = fields.get("congested").and_then(|item| item.read(|text| bounds::size(text, CONGESTED)));
    if !is_abm {
        for key in &KEYS[1..] {
            if let Some(item) = fields.get(key.name) {
                item.fail("has no effect with `policy: dt`; remove it or write `policy: abm`");
            }
        }
        return None;
    }
    let usual = AbmSpec::USUAL;
    let spec =
        AbmSpec { interval: interval.unwrap_or(usual.interval), congested: congested.unwrap_or(usual.congested) };
    Some((item, spec))
}

/// Checks that ABM limits a queue, and warns of an interval of few frames.
pub fn check(policy: Option<&(Item<'_>, AbmSpec)>, ports: &[Port<'_>], classes: &[Class<'_>; CLASSES]) {
    let Some((item, spec)) = policy else { return };
    if !classes.iter().any(|class| is_limited(class)) {
        item.fail(
            "`abm` limits lossy classes with a `queue_alpha`, and there is none; remove this, or write e.g. \
             `1: {lossless: false, queue_alpha: 1}` in `classes`",
        );
    }
    let Some(slowest) = ports.iter().min_by_key(|port| port.rate) else { return };
    let frame = largest_frame(slowest.mtu);
    if slowest.rate.bytes_in(spec.interval).0 < LEAST_FRAMES * frame.0 {
        let (name, rate, interval) = (&slowest.name, slowest.rate, spec.interval);
        let least = (u128::from(LEAST_FRAMES * frame.0) * 8_000_000).div_ceil(slowest.rate.0.max(1).into());
        item.warn(format!(
            "port {name} sends fewer than {LEAST_FRAMES} frames in {interval} at {rate}: drain rates are coarse there; \
             write `interval: {least}us` or more"
        ));
    }
}

/// Whether ABM limits the queue of `class`.
pub fn is_limited(class: &Class<'_>) -> bool {
    !class.settings.lossless && matches!(class.settings.queue_limit, Limit::Alpha(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, parse};
    use crate::mmu::Threshold;

    const PORTS: &str = "ports: [{name: a, device: ring, speed: 10G}, {name: b, device: ring, speed: 10G}]\n\
                         hosts: [{name: ha, port: a}, {name: hb, port: b}]\n";

    fn read(keys: &str) -> Config {
        parse("x.yaml", &format!("{PORTS}{keys}\n")).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn refused(keys: &str) -> String {
        parse("x.yaml", &format!("{PORTS}{keys}\n")).expect_err("it is refused").to_string()
    }

    #[test]
    fn abm_limits_lossy_queues_with_alpha() {
        let of = |keys: &str| {
            let switch = read(keys).switch;
            (switch.abm, switch.queues.map(|queue| queue.limit.is_some_and(|limit| limit.abm)))
        };
        for off in ["", "buffer: {queue_policy: dt}", "buffer: {queue_policy: {policy: dt}}"] {
            assert_eq!(of(off), (None, [false; CLASSES]), "{off}");
        }
        let (spec, mut queues) =
            of("buffer: {queue_policy: abm}\nclasses: {2: {queue_limit: 9kB}, 3: {lossless: true}}");
        assert_eq!(spec, Some(AbmSpec { interval: Nanos(25_000), congested: Bytes(20_480) }));
        assert_eq!((queues[2], queues[3]), (false, false), "a static limit, and a lossless class");
        (queues[2], queues[3]) = (true, true);
        assert_eq!(queues, [true; CLASSES]);
        let (spec, _) = of("buffer: {queue_policy: {policy: abm, interval: 100us, congested: 50kB}}");
        assert_eq!(spec, Some(AbmSpec { interval: Nanos(100_000), congested: Bytes(50_000) }));
        let limit = read("buffer: {queue_policy: abm}\nclasses: {1: {queue_alpha: 1/2}}").switch.queues[1].limit;
        let Some(Threshold::Dynamic(alpha)) = limit.map(|limit| limit.threshold) else { panic!("{limit:?}") };
        assert_eq!(alpha.exponent(), -1);
    }

    #[test]
    fn invalid_queue_policy_is_refused_with_place_and_remedy() {
        insta::assert_snapshot!(refused("buffer: {queue_policy: fab}"), @"x.yaml:3:24: buffer.queue_policy: `fab` is not one of the choices; write `dt` or `abm`");
        insta::assert_snapshot!(refused("buffer: {queue_policy: {interval: 25us}}"), @"x.yaml:3:24: buffer.queue_policy: `policy` is missing; write e.g. `policy: abm`");
        insta::assert_snapshot!(refused("buffer: {queue_policy: {policy: dt, interval: 25us}}"), @"x.yaml:3:47: buffer.queue_policy.interval: has no effect with `policy: dt`; remove it or write `policy: abm`");
        insta::assert_snapshot!(refused("buffer: {queue_policy: {policy: abm, interval: 10ns}}"), @"x.yaml:3:48: buffer.queue_policy.interval: `10ns` is not an interval of ABM; write from 1us to 100ms");
        insta::assert_snapshot!(refused("buffer: {queue_policy: {policy: abm, congested: 1B}}"), @"x.yaml:3:49: buffer.queue_policy.congested: `1B` is out of range; write a size from 64B to 64MiB");
        insta::assert_snapshot!(refused("buffer: {queue_policy: abm}\nclasses: {1: {queue_alpha: 16}}"), @"x.yaml:4:28: classes.1.queue_alpha: `16` is not an alpha; write a power of two from 1/128 to 8, e.g. 1/8, 1/2, 1 or 4");
        let classes: Vec<String> = (0..8).map(|class| format!("{class}: {{lossless: true}}")).collect();
        let lossless = format!("buffer: {{queue_policy: abm, size: 64MiB}}\nclasses: {{{}}}", classes.join(", "));
        insta::assert_snapshot!(refused(&lossless), @"x.yaml:3:24: buffer.queue_policy: `abm` limits lossy classes with a `queue_alpha`, and there is none; remove this, or write e.g. `1: {lossless: false, queue_alpha: 1}` in `classes`");
    }

    #[test]
    fn interval_of_few_frames_produces_a_warning() {
        let warnings = |keys: &str| -> Vec<String> {
            read(keys).warnings.iter().map(ToString::to_string).filter(|text| text.contains("drain rates")).collect()
        };
        assert_eq!(warnings("buffer: {queue_policy: abm}"), [""; 0]);
        insta::assert_snapshot!(warnings("buffer: {queue_policy: {policy: abm, interval: 5us}}").join("\n"), @"x.yaml:3:24: buffer.queue_policy: port a sends fewer than 8 frames in 5us at 10G: drain rates are coarse there; write `interval: 10us` or more");
    }

    /// A drain rate is measured by one lcore.
    #[test]
    fn port_is_not_joint_with_abm() {
        let joint = |keys: &str| read(&format!("lcores: {{count: 2}}\n{keys}")).switch.joint_ports().len();
        assert_eq!((joint(""), joint("buffer: {queue_policy: abm}")), (2, 0));
    }
}
