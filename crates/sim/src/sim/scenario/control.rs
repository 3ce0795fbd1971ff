//! Reads `cc:` of a flow: its congestion control.

use std::ops::RangeInclusive;

use super::dcqcn;
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item};
use crate::sim::control::ControlSpec;
use crate::sim::control::dcqcn::DcqcnSpec;
use crate::sim::control::dcqcn_nic::DcqcnNicSpec;
use crate::sim::control::dctcp::DctcpSpec;
use crate::sim::control::hpcc::HpccSpec;
use crate::sim::control::power::PowerSpec;
use crate::sim::control::qcn::QcnSpec;
use crate::sim::control::swift::SwiftSpec;
use crate::sim::control::timely::TimelySpec;
use crate::units::{BitRate, Bytes, Nanos};

/// Names of the algorithms, as [`ControlSpec::name`] returns them.
const NAMES: &[&str] = &["dcqcn", "dcqcn-nic", "dctcp", "timely", "swift", "theta-powertcp", "hpcc", "powertcp", "qcn"];
const SHORTEST: Nanos = Nanos(100);
const LONGEST: Nanos = Nanos(1_000_000_000);
const SLOWEST: BitRate = BitRate(1_000);
const FASTEST: BitRate = BitRate(800_000_000_000);
const MOST_STEPS: u64 = 1000;

/// Reads an algorithm: its name, or a mapping of its name to its parameters. `off` gives `None` inside.
pub fn read(item: &Item<'_>) -> Option<Option<ControlSpec>> {
    if item.is("off") || item.is("false") {
        return Some(None);
    }
    for &name in NAMES {
        if item.is(name) {
            return Some(Some(default_of(name)));
        }
        if item.is_map() && item.has(name) {
            let fields = item.fields(NAMES)?;
            if NAMES.iter().filter(|name| item.has(name)).count() > 1 {
                return item.refuse("a flow has one congestion control; keep one of them");
            }
            let parameters = fields.get(name)?;
            return read_parameters(name, &parameters).map(Some);
        }
    }
    let names = NAMES.join("`, `");
    item.refuse(format!(
        "`{}` is not a congestion control; write `off`, `{names}`, or one with parameters, e.g. `{{dctcp: {{g: 1/16}}}}`",
        item.shown()
    ))
}

fn default_of(name: &str) -> ControlSpec {
    match name {
        "dcqcn-nic" => ControlSpec::DcqcnNic(DcqcnNicSpec::default()),
        "dctcp" => ControlSpec::Dctcp(DctcpSpec::default()),
        "timely" => ControlSpec::Timely(TimelySpec::default()),
        "swift" => ControlSpec::Swift(SwiftSpec::default()),
        "theta-powertcp" => ControlSpec::Theta(PowerSpec::default()),
        "hpcc" => ControlSpec::Hpcc(HpccSpec::default()),
        "powertcp" => ControlSpec::Power(PowerSpec::default()),
        "qcn" => ControlSpec::Qcn(QcnSpec::default()),
        _ => ControlSpec::Dcqcn(DcqcnSpec::default()),
    }
}

fn read_parameters(name: &str, item: &Item<'_>) -> Option<ControlSpec> {
    match name {
        "dcqcn-nic" => read_dcqcn_nic(item).map(ControlSpec::DcqcnNic),
        "dctcp" => read_dctcp(item).map(ControlSpec::Dctcp),
        "timely" => read_timely(item).map(ControlSpec::Timely),
        "swift" => read_swift(item).map(ControlSpec::Swift),
        "theta-powertcp" => read_power(item).map(ControlSpec::Theta),
        "hpcc" => read_hpcc(item).map(ControlSpec::Hpcc),
        "powertcp" => read_power(item).map(ControlSpec::Power),
        "qcn" => read_qcn(item).map(ControlSpec::Qcn),
        _ => dcqcn::read(item).map(ControlSpec::Dcqcn),
    }
}

fn read_dcqcn_nic(item: &Item<'_>) -> Option<DcqcnNicSpec> {
    const KEYS: &[&str] = &[
        "cnp_interval",
        "alpha_timer",
        "decrease_timer",
        "increase_timer",
        "g",
        "fast_recovery",
        "clamp_target",
        "additive",
        "hyper",
        "least",
    ];
    let (fields, default) = (item.fields(KEYS)?, DcqcnNicSpec::default());
    Some(DcqcnNicSpec {
        cnp_interval: time(&fields, "cnp_interval", default.cnp_interval),
        alpha_timer: time(&fields, "alpha_timer", default.alpha_timer),
        decrease_timer: time(&fields, "decrease_timer", default.decrease_timer),
        increase_timer: time(&fields, "increase_timer", default.increase_timer),
        gain: decimal(&fields, "g", 1e-6..=1.0, default.gain),
        fast_recovery: steps(&fields, "fast_recovery", default.fast_recovery),
        clamps_target: fields.get("clamp_target").and_then(|item| item.flag()).unwrap_or(default.clamps_target),
        additive: rate(&fields, "additive", default.additive),
        hyper: rate(&fields, "hyper", default.hyper),
        least: rate(&fields, "least", default.least),
    })
}

fn read_dctcp(item: &Item<'_>) -> Option<DctcpSpec> {
    let (fields, default) = (item.fields(&["g", "least_frames", "largest_window"])?, DctcpSpec::default());
    Some(DctcpSpec {
        gain: decimal(&fields, "g", 1e-6..=1.0, default.gain),
        least_frames: steps(&fields, "least_frames", default.least_frames),
        largest_window: bounds::get(&fields, "largest_window", Bytes(1)..=Bytes(1 << 30)),
        ..default
    })
}

fn read_timely(item: &Item<'_>) -> Option<TimelySpec> {
    const KEYS: &[&str] =
        &["alpha", "beta", "additive", "low", "high", "least_rtt", "hyper_after", "least", "segment", "initial"];
    let (fields, default) = (item.fields(KEYS)?, TimelySpec::default());
    let spec = TimelySpec {
        weight: decimal(&fields, "alpha", 1e-6..=1.0, default.weight),
        beta: decimal(&fields, "beta", 1e-6..=1.0, default.beta),
        additive: rate(&fields, "additive", default.additive),
        low: time(&fields, "low", default.low),
        high: time(&fields, "high", default.high),
        least_rtt: time(&fields, "least_rtt", default.least_rtt),
        hyper_after: steps(&fields, "hyper_after", default.hyper_after),
        least: rate(&fields, "least", default.least),
        segment: bounds::get(&fields, "segment", Bytes(1)..=Bytes(1 << 30)),
        initial: bounds::get(&fields, "initial", SLOWEST..=FASTEST),
        ..default
    };
    if spec.low > spec.high {
        return item.refuse(format!("`low` of {} is above `high` of {}; write a shorter `low`", spec.low, spec.high));
    }
    Some(spec)
}

fn read_swift(item: &Item<'_>) -> Option<SwiftSpec> {
    const KEYS: &[&str] = &[
        "base_target",
        "per_hop",
        "scaling",
        "additive_frames",
        "beta",
        "largest_decrease",
        "least_frames",
        "reset_after",
    ];
    let (fields, default) = (item.fields(KEYS)?, SwiftSpec::default());
    let from_zero = |key, default| bounds::get(&fields, key, Nanos(0)..=LONGEST).unwrap_or(default);
    Some(SwiftSpec {
        base_target: bounds::get(&fields, "base_target", SHORTEST..=LONGEST),
        per_hop: from_zero("per_hop", default.per_hop),
        scaling: from_zero("scaling", default.scaling),
        additive_frames: decimal(&fields, "additive_frames", 1e-3..=1000.0, default.additive_frames),
        beta: decimal(&fields, "beta", 1e-6..=1.0, default.beta),
        largest_decrease: decimal(&fields, "largest_decrease", 1e-6..=0.99, default.largest_decrease),
        least_frames: decimal(&fields, "least_frames", 1e-4..=1000.0, default.least_frames),
        reset_after: steps(&fields, "reset_after", default.reset_after),
        ..default
    })
}

fn read_hpcc(item: &Item<'_>) -> Option<HpccSpec> {
    let (fields, default) = (item.fields(&["eta", "max_stage", "additive", "flows"])?, HpccSpec::default());
    Some(HpccSpec {
        target: decimal(&fields, "eta", 0.1..=1.0, default.target),
        most_stages: fields
            .get("max_stage")
            .and_then(|item| item.number("a count of stages", 0..=MOST_STEPS))
            .unwrap_or(default.most_stages),
        additive: bounds::get(&fields, "additive", Bytes(1)..=Bytes(1 << 20)),
        flows: decimal(&fields, "flows", 1.0..=1e6, default.flows),
    })
}

fn read_power(item: &Item<'_>) -> Option<PowerSpec> {
    let (fields, default) = (item.fields(&["gamma", "flows"])?, PowerSpec::default());
    Some(PowerSpec {
        gamma: decimal(&fields, "gamma", 1e-3..=1.0, default.gamma),
        flows: decimal(&fields, "flows", 1.0..=1e6, default.flows),
    })
}

fn read_qcn(item: &Item<'_>) -> Option<QcnSpec> {
    const KEYS: &[&str] =
        &["gd", "largest_decrease", "byte_counter", "increase_timer", "fast_recovery", "additive", "hyper", "least"];
    let (fields, default) = (item.fields(KEYS)?, QcnSpec::default());
    Some(QcnSpec {
        gain: decimal(&fields, "gd", 1e-6..=1.0, default.gain),
        largest_decrease: decimal(&fields, "largest_decrease", 1e-6..=0.99, default.largest_decrease),
        byte_counter: bounds::get(&fields, "byte_counter", Bytes(1_000)..=Bytes(1 << 34))
            .unwrap_or(default.byte_counter),
        increase_timer: time(&fields, "increase_timer", default.increase_timer),
        fast_recovery: steps(&fields, "fast_recovery", default.fast_recovery),
        additive: rate(&fields, "additive", default.additive),
        hyper: rate(&fields, "hyper", default.hyper),
        least: rate(&fields, "least", default.least),
    })
}

fn time(fields: &Fields<'_>, key: &str, default: Nanos) -> Nanos {
    bounds::get(fields, key, SHORTEST..=LONGEST).unwrap_or(default)
}

fn rate(fields: &Fields<'_>, key: &str, default: BitRate) -> BitRate {
    bounds::get(fields, key, SLOWEST..=FASTEST).unwrap_or(default)
}

fn steps(fields: &Fields<'_>, key: &str, default: u32) -> u32 {
    fields.get(key).and_then(|item| item.number("a count", 1..=MOST_STEPS)).unwrap_or(default)
}

/// Reads a decimal number or a fraction, like `0.8` or `1/256`.
fn decimal(fields: &Fields<'_>, key: &str, range: RangeInclusive<f64>, default: f64) -> f64 {
    let Some(item) = fields.get(key) else { return default };
    let text = item.shown();
    let (over, under) = text.split_once('/').unwrap_or((&text, "1"));
    let value = over.trim().parse::<f64>().ok().zip(under.trim().parse::<f64>().ok()).map(|(over, under)| over / under);
    match value.filter(|value| range.contains(value)) {
        Some(value) => value,
        None => {
            let (least, most) = range.into_inner();
            item.fail(format!("`{text}` is not a number from {least} to {most}; write e.g. `{default}`"));
            default
        }
    }
}
