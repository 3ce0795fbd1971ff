//! Assigns functions to stages of the pipeline.

use crate::chain::Frame;

/// A stage of a packet's path, as docs/architecture.md names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Named(&'static str),
    /// A file of the switch without a rule.
    Unknown(String),
    /// Before or after the measurement.
    Setup,
    /// A library, or the kernel.
    Outside,
}

impl Stage {
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Unknown(file) => file,
            Self::Setup => "setup",
            Self::Outside => "libraries and kernel",
        }
    }
}

/// The benchmark itself.
const BENCHMARK: &str = "perf/pipeline.rs";

/// Rules: a file or directory of the switch, its functions, and their stage. The first match wins; an empty list
/// matches any function.
const RULES: &[(&str, &[&str], &str)] = &[
    ("crates/wire/src/wire/parse.rs", &[], "parse"),
    ("crates/wire/src/wire/usual.rs", &[], "parse"),
    ("crates/wire/src/wire/usual_vector.rs", &[], "parse"),
    ("crates/wire/src/wire/plain.rs", &[], "parse"),
    ("crates/wire/src/wire/plain_kind.rs", &[], "parse"),
    ("crates/wire/src/wire/plain_vector.rs", &[], "parse"),
    ("crates/dataplane/src/dataplane/frame/lens.rs", &[], "parse"),
    ("crates/dataplane/src/dataplane/frame/meta.rs", &[], "parse"),
    ("crates/dataplane/src/dataplane/ingress/parse.rs", &["retagged_at"], "rewrite"),
    ("crates/dataplane/src/dataplane/ingress/parse.rs", &[], "parse"),
    ("crates/wire/src/wire/mac_control.rs", &[], "control"),
    ("crates/dataplane/src/dataplane/ingress/control.rs", &[], "control"),
    ("crates/dataplane/src/dataplane/ingress/mod.rs", &["control"], "control"),
    ("crates/dataplane/src/dataplane/frame/class_bits.rs", &[], "classify"),
    ("crates/dataplane/src/dataplane/ingress/port_classifier.rs", &[], "classify"),
    ("crates/lossless/src/qos/classify.rs", &[], "classify"),
    ("crates/wire/src/forward/vlan.rs", &[], "vlan"),
    ("crates/wire/src/wire/vlan_tag.rs", &[], "vlan"),
    ("crates/dataplane/src/dataplane/ingress/rewrite.rs", &["retag"], "vlan"),
    ("crates/dataplane/src/dataplane/ingress/rewrite.rs", &[], "rewrite"),
    // Sweeps depend on time, of which each packet takes more under callgrind.
    ("crates/wire/src/forward/fdb/mod.rs", &["sweep"], "sweep"),
    ("crates/wire/src/forward/fdb/mod.rs", &[], "fdb"),
    ("crates/wire/src/forward/flow_cache.rs", &[], "flow cache"),
    ("crates/dataplane/src/dataplane/ingress/forwarder.rs", &["learn", "send_update", "apply_fdb_updates"], "fdb"),
    ("crates/dataplane/src/dataplane/ingress/forwarder.rs", &[], "forward"),
    ("crates/dataplane/src/dataplane/ingress/known.rs", &[], "forward"),
    ("crates/dataplane/src/dataplane/ingress/mod.rs", &[], "receive"),
    ("crates/dataplane/src/dataplane/ingress/rounds.rs", &[], "receive"),
    ("crates/lossless/src/mmu/tally.rs", &[], "release, tally"),
    ("crates/dataplane/src/dataplane/egress/mod.rs", &["release", "release_some"], "release, tally"),
    ("crates/dataplane/src/dataplane/egress/chosen.rs", &[], "release, tally"),
    ("crates/dataplane/src/dataplane/buffer/mod.rs", &["collect_releases", "uncharge"], "release, tally"),
    ("crates/lossless/src/mmu/queue/mod.rs", &[], "queue"),
    ("crates/lossless/src/mmu/queue/", &[], "queue"),
    ("crates/lossless/src/mmu/", &[], "ledger"),
    ("crates/dataplane/src/dataplane/egress/queue.rs", &[], "queue"),
    ("crates/dataplane/src/dataplane/egress/slots.rs", &[], "queue"),
    ("crates/dataplane/src/dataplane/frame/lanes.rs", &[], "queue"),
    ("crates/dataplane/src/dataplane/egress/enqueue.rs", &["accept"], "hand-off"),
    ("crates/dataplane/src/dataplane/egress/enqueue.rs", &[], "queue"),
    ("crates/dataplane/src/dataplane/ingress/dispatch.rs", &["hand_over_burst", "push_to_lcore"], "hand-off"),
    ("crates/dataplane/src/dataplane/ingress/dispatch.rs", &[], "admit"),
    ("crates/dataplane/src/dataplane/buffer/mod.rs", &[], "admit"),
    ("crates/dataplane/src/dataplane/handoff/accept.rs", &[], "hand-off"),
    ("crates/dataplane/src/dataplane/handoff/mesh.rs", &[], "hand-off"),
    ("crates/plan/src/plan/ring.rs", &[], "hand-off"),
    ("crates/lossless/src/qos/scheduler.rs", &[], "scheduler"),
    ("crates/lossless/src/qos/shaper.rs", &[], "shaper"),
    ("crates/dataplane/src/dataplane/egress/joint/pacing.rs", &[], "shaper"),
    ("crates/lossless/src/qos/wred.rs", &[], "wred, ecn"),
    ("crates/wire/src/wire/ecn.rs", &[], "wred, ecn"),
    ("crates/dataplane/src/dataplane/egress/mod.rs", &[], "transmit"),
    ("crates/dataplane/src/dataplane/egress/choose.rs", &[], "transmit"),
    ("crates/dataplane/src/dataplane/frame/run.rs", &[], "transmit"),
    ("crates/dataplane/src/dataplane/egress/transmit.rs", &[], "transmit"),
    ("crates/plan/src/plan/counters.rs", &[], "counters"),
    ("crates/dataplane/src/dataplane/telemetry/mod.rs", &["publish_ports", "publish_lcore", "count_drop"], "counters"),
    ("crates/lossless/src/pfc/", &[], "pfc"),
    ("crates/dataplane/src/dataplane/ingress/backlog.rs", &[], "pfc"),
    ("crates/dataplane/src/dataplane/buffer/pauses.rs", &[], "pfc"),
    ("crates/dataplane/src/dataplane/egress/links.rs", &["send_pfc"], "pfc"),
    ("crates/dataplane/src/dataplane/ingress/process.rs", &["obey"], "control"),
    ("crates/dataplane/src/dataplane/ingress/process.rs", &[], "poll"),
    ("crates/dataplane/src/dataplane/poll.rs", &["send_pfc", "send_pfc_frame", "resume_peers", "update_pfc"], "pfc"),
    ("crates/dataplane/src/dataplane/poll.rs", &[], "poll"),
    ("crates/dataplane/src/dataplane/telemetry/mod.rs", &[], "poll"),
    ("crates/dataplane/src/dataplane/pipeline.rs", &[], "poll"),
    ("crates/dataplane/src/dataplane/port.rs", &[], "poll"),
    ("crates/dpdk/src/dpdk/clock.rs", &[], "poll"),
];

/// The stage of an address: that of its innermost function that has a stage.
pub fn of(chain: &[Frame]) -> Stage {
    let is_benchmark = chain.iter().any(|frame| frame.file == BENCHMARK);
    if chain.iter().any(is_setup) || is_benchmark && !is_measured(chain) {
        return Stage::Setup;
    }
    if !chain.iter().any(|frame| frame.file == BENCHMARK || is_own(&frame.file)) {
        return Stage::Outside;
    }
    chain.iter().find_map(named).unwrap_or(Stage::Outside)
}

/// Whether a function runs before or after the measurement. All stations are learned before, so none is inserted later.
fn is_setup(frame: &Frame) -> bool {
    let functions: &[&str] = match &*frame.file {
        BENCHMARK => &["new"],
        "crates/dataplane/src/dataplane/pipeline.rs" => &["learn", "fleet"],
        "crates/dataplane/src/dataplane/lifecycle.rs" => &["shutdown"],
        "crates/dataplane/src/dataplane/handoff/mesh.rs"
        | "crates/dataplane/src/dataplane/ingress/forwarder.rs"
        | "crates/dataplane/src/dataplane/buffer/mod.rs" => &["fleet"],
        "crates/wire/src/forward/fdb/mod.rs" => &["insert", "try_new"],
        _ => &[],
    };
    functions.contains(&&*frame.function) || frame.file.starts_with("crates/config/src/config/")
}

/// Whether a chain with functions of the benchmark belongs to the measurement of the whole pipeline. Either the switch
/// called it, or it was not inlined and its part of the run includes the switch.
fn is_measured(chain: &[Frame]) -> bool {
    let is_called = chain.iter().any(|frame| frame.file.starts_with("crates/dataplane/src/dataplane/"));
    is_called || chain.last().is_some_and(|last| ["rx", "tx", "free", "post"].contains(&&*last.function))
}

fn named(frame: &Frame) -> Option<Stage> {
    if frame.file == BENCHMARK {
        return Some(Stage::Named("generator"));
    }
    let is_rule = |(file, functions, _): &&(&str, &[&str], &str)| {
        let is_file = if file.ends_with('/') { frame.file.starts_with(file) } else { frame.file == *file };
        is_file && (functions.is_empty() || functions.contains(&&*frame.function))
    };
    let rule = RULES.iter().find(is_rule).map(|&(_, _, stage)| Stage::Named(stage));
    // Helpers that read an mbuf, hold a burst or write a number belong to their caller.
    let is_tool = [
        "crates/base/src/sets.rs",
        "crates/dpdk/src/dpdk/",
        "crates/base/src/io/mod.rs",
        "crates/base/src/units/mod.rs",
        "crates/lossless/src/qos/mod.rs",
        "crates/dataplane/src/dataplane/frame/desc.rs",
        "crates/base/src/sync.rs",
        "crates/base/src/mutant.rs",
        "crates/base/src/prefetch.rs",
        "crates/wire/src/wire/addr.rs",
        "crates/plan/src/plan/spec.rs",
    ];
    let is_tool = is_tool.iter().any(|tool| frame.file.starts_with(tool));
    rule.or_else(|| (is_own(&frame.file) && !is_tool).then(|| Stage::Unknown(frame.file.clone())))
}

/// Index of the generator's function that writes one packet, if the chain has it and belongs to the measurement.
pub fn once_a_packet(chain: &[Frame]) -> Option<usize> {
    let at = chain.iter().position(|frame| frame.file == BENCHMARK && frame.function == "post_one")?;
    is_measured(chain).then_some(at)
}

/// Whether a file is a source of Holdfast.
fn is_own(file: &str) -> bool {
    ["src/", "crates/"].iter().any(|root| file.starts_with(root))
}
