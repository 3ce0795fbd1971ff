//! Reads `flows:` of the scenario and of its hosts.

use std::collections::{HashMap, HashSet};

use super::cables::Cables;
use super::hosts::{ALL, HostFlows};
use super::net::Net;
use super::timing::Timing;
use super::{control, dcqcn, load, marks, signals, transport};
use crate::config::SLOWEST_FLOW;
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item, Report};
use crate::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget};
use crate::sim::control::ControlSpec;
use crate::sim::spec::{FlowNode, FrameSizes, Load};
use crate::sim::transport::{Recovery, TransportSpec};
use crate::units::{BitRate, Nanos};

const KEYS: &[&str] = &[
    "from",
    "to",
    "kind",
    "rate",
    "queue_pairs",
    "frame",
    "dscp",
    "vlan",
    "pcp",
    "ecn",
    "start",
    "stop",
    "load",
    "dcqcn",
    "cc",
    "base_rtt",
    "transport",
];
/// The keys of a flow of a host: all but `from`.
const KEYS_AT_HOST: &[&str] = KEYS.split_at(1).1;
const EXAMPLE: &str = "`- {from: h1, to: h2}` for each flow";
const MOST: usize = 1 << 20;
const MOST_PAIRS: u64 = 1024;

const DEFAULT_START: Nanos = Nanos(10_000);
const SHORTEST_RTT: Nanos = Nanos(100);
const LATEST: Nanos = Nanos(10_000_000_000);

/// The flows read so far, and the data that they refer to.
struct Flows<'a, 'b> {
    net: &'b Net<'a>,
    cables: &'b Cables,
    timing: &'b Timing,
    flows: Vec<FlowNode>,
    names: HashSet<String>,
    /// Number of flows of each pair of hosts.
    numbers: HashMap<String, u32>,
    /// Whether ports and cables are valid, so that a missing connection is an error of the flow.
    is_whole: bool,
    /// Whether there are too many flows, which is reported once.
    is_full: bool,
}

/// Hosts at one end of flows, and whether they were written as a list or as `all`.
pub struct Hosts {
    pub hosts: Vec<usize>,
    pub is_list: bool,
}

/// Reads all flows: first those of hosts, in the order of hosts.
pub fn read(item: Option<Item<'_>>, net: &Net<'_>, cables: &Cables, timing: &Timing, report: &Report) -> Vec<FlowNode> {
    let is_whole = report.errors() == 0 && !net.has_unnamed;
    let (flows, names, numbers) = (Vec::new(), HashSet::new(), HashMap::new());
    let mut all = Flows { net, cables, timing, flows, names, numbers, is_whole, is_full: false };
    for (index, host) in net.hosts.iter().enumerate() {
        match &host.flows {
            HostFlows::Written(items) => items.iter().for_each(|item| all.read_at_host(item, index)),
            HostFlows::OfSwitch { first, specs } => all.take_of_switch(index, *first, specs),
        }
    }
    for item in item.and_then(|item| item.list(EXAMPLE)).unwrap_or_default() {
        all.read_here(&item);
    }
    all.flows
}

impl Flows<'_, '_> {
    fn read_here(&mut self, item: &Item<'_>) {
        let Some(fields) = item.fields_beside(KEYS, transport::NAME, transport::KEYS) else { return };
        let from = fields.required("from", "from: h1").and_then(|item| read_hosts(&item, self.net));
        self.read(&fields, from);
    }

    fn read_at_host(&mut self, item: &Item<'_>, host: usize) {
        let Some(fields) = item.fields_beside(KEYS_AT_HOST, transport::NAME, transport::KEYS) else { return };
        self.read(&fields, Some(Hosts { hosts: vec![host], is_list: false }));
    }

    fn read(&mut self, fields: &Fields<'_>, from: Option<Hosts>) {
        let to = fields.required("to", "to: h2").and_then(|item| read_hosts(&item, self.net));
        let (Some(from), Some(to)) = (from, to) else { return };
        let is_list = from.is_list || to.is_list;
        let between = signals::Between { from: &from.hosts, to: &to.hosts };
        let pairs = fields.get("queue_pairs").and_then(|item| item.number("a number of queue pairs", 1..=MOST_PAIRS));
        for &sender in &from.hosts {
            let Some(flow) = self.read_from(fields, sender) else { continue };
            if sender == from.hosts[0] {
                signals::check(fields, self.net, self.cables, between, &flow);
            }
            for &receiver in &to.hosts {
                if sender != receiver {
                    // Each is a flow of its own, with its own source port.
                    for _ in 0..pairs.unwrap_or(1) {
                        if !self.is_full {
                            self.add(fields.owner(), FlowNode { to: receiver, ..flow.clone() });
                        }
                    }
                } else if !is_list && let Some(item) = fields.get("to") {
                    item.fail("a host cannot send to itself; write another host");
                }
                if self.is_full {
                    return;
                }
            }
        }
    }

    /// Reads a flow except for its receiver.
    fn read_from(&self, fields: &Fields<'_>, from: usize) -> Option<FlowNode> {
        let flow = read_sender(fields, self.net, self.timing, from)?;
        let load = fields.get("load").and_then(|item| load::read(&item)).unwrap_or(Load::Steady);
        check_messages(fields, flow.transport, load);
        Some(FlowNode { load, ..flow })
    }

    /// Names the flow and adds it.
    fn add(&mut self, item: &Item<'_>, mut flow: FlowNode) {
        if self.flows.len() == MOST {
            self.is_full = true;
            return item.fail(format!("there are more than {MOST} flows; remove some"));
        }
        let [from, to] = [flow.from, flow.to].map(|host| &self.net.hosts[host]);
        let pair = format!("{}-{}", from.node.name, to.node.name);
        if let (true, Some(from_at), Some(to_at)) = (self.is_whole, from.at, to.at)
            && !self.cables.connect(from_at.switch, to_at.switch)
        {
            return item
                .fail(format!("no cable leads from {} to {}; write one under `links`", from.node.name, to.node.name));
        }
        flow.name = self.name(pair);
        self.flows.push(flow);
    }

    /// Returns `h1-h2`, then `h1-h2/2`: a unique name, independent of the names of hosts.
    fn name(&mut self, pair: String) -> String {
        let number = self.numbers.entry(pair.clone()).or_insert(0);
        loop {
            *number += 1;
            let name = if *number == 1 { pair.clone() } else { format!("{pair}/{number}") };
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Adds the flows that the configuration of a switch has for its host.
    fn take_of_switch(&mut self, from: usize, first: usize, specs: &[FlowSpec]) {
        if specs.is_empty() {
            return;
        }
        let items = self.net.hosts[from].item.child("flows").list(EXAMPLE).unwrap_or_default();
        for (spec, item) in specs.iter().zip(&items) {
            match spec.to {
                FlowTarget::Host(to) => {
                    if let Some(flow) = self.of_switch(from, first + to, spec) {
                        self.add(item, flow);
                    }
                }
                FlowTarget::Station { .. } => {
                    item.child("to").fail("a simulation has no stations outside it; write the name of a host");
                }
            }
            if self.is_full {
                return;
            }
        }
    }

    fn of_switch(&self, from: usize, to: usize, spec: &FlowSpec) -> Option<FlowNode> {
        let at = self.net.hosts[from].at?;
        let tag = spec.vlan.map(|vlan| (vlan, spec.pcp));
        let (class, priority, lossless) = marks::classify(self.net, at, spec.dscp, tag)?;
        Some(FlowNode {
            name: String::new(),
            from,
            to,
            kind: spec.kind,
            frames: FrameSizes::Fixed(spec.frame_len),
            dscp: spec.dscp,
            tag,
            class,
            priority,
            lossless,
            ecn: spec.ecn,
            rate: spec.rate,
            start: DEFAULT_START,
            stop: None,
            load: match spec.pattern {
                FlowPattern::Steady => Load::Steady,
                FlowPattern::OnOff { on, off } => Load::OnOff { on, off },
            },
            transport: None,
            control: None,
            base_rtt: None,
            entropy: None,
        })
    }
}

/// Reads one host, a list of hosts, or `all`.
pub fn read_hosts(item: &Item<'_>, net: &Net<'_>) -> Option<Hosts> {
    if item.is(ALL) {
        return Some(Hosts { hosts: (0..net.hosts.len()).collect(), is_list: true });
    }
    if !item.is_list() {
        return net.host(item).map(|host| Hosts { hosts: vec![host], is_list: false });
    }
    let (mut hosts, mut is_whole) = (Vec::new(), true);
    for item in item.list("e.g. [h1, h2]")? {
        match net.host(&item) {
            Some(host) if hosts.contains(&host) => {
                item.fail(format!("`{}` is listed twice; remove one", item.shown()));
            }
            Some(host) => hosts.push(host),
            None => is_whole = false,
        }
    }
    // A list without some of its hosts would cause errors that are none.
    is_whole.then_some(Hosts { hosts, is_list: true })
}

/// Reads the settings of the flows of host `from`, which always have data and no receiver yet.
pub fn read_sender(fields: &Fields<'_>, net: &Net<'_>, timing: &Timing, from: usize) -> Option<FlowNode> {
    let at = net.hosts[from].at?;
    let marks = marks::read(fields, net, at)?;
    let link = net.spec(at)?.rate;
    let control = read_control(fields, marks.ecn);
    let (start, stop) = read_times(fields, timing);
    Some(FlowNode {
        name: String::new(),
        from,
        to: from,
        kind: marks.kind,
        frames: marks.frames,
        dscp: marks.dscp,
        tag: marks.tag,
        class: marks.class,
        priority: marks.priority,
        lossless: marks.lossless,
        ecn: marks.ecn,
        rate: fields.get("rate").and_then(|item| read_rate(&item, link)).unwrap_or(link),
        start,
        stop,
        load: Load::Steady,
        transport: read_transport(fields, control, marks.kind),
        control,
        base_rtt: bounds::get(fields, "base_rtt", SHORTEST_RTT..=LATEST),
        entropy: None,
    })
}

fn read_times(fields: &Fields<'_>, timing: &Timing) -> (Nanos, Option<Nanos>) {
    let start = bounds::get(fields, "start", Nanos(0)..=LATEST).unwrap_or(DEFAULT_START);
    let stop = bounds::get(fields, "stop", Nanos(0)..=LATEST);
    let duration = timing.duration;
    if let (Some(item), Some(stop)) = (fields.get("stop"), stop)
        && stop <= start
    {
        item.fail(format!("`{}` is not after the start, {start}; write a later time", item.shown()));
    }
    if start >= duration {
        let item = fields.get("start").unwrap_or_else(|| fields.owner().clone());
        item.warn(format!(
            "the flow starts at {start}, after hosts stop sending: the duration is {duration}; write an earlier \
             time"
        ));
    }
    (start, stop)
}

/// Reads the congestion control of a flow, whose packets are ECN-capable or not.
fn read_control(fields: &Fields<'_>, is_ecn: bool) -> Option<ControlSpec> {
    let dcqcn = fields.get("dcqcn").and_then(|item| dcqcn::read(&item)).map(ControlSpec::Dcqcn);
    let control = fields.get("cc").and_then(|item| control::read(&item)).flatten();
    if let (Some(item), Some(_), Some(_)) = (fields.get("cc"), control, dcqcn) {
        item.fail("`dcqcn` is a congestion control too; keep one of the two");
    }
    let chosen = control.or(dcqcn)?;
    let item = fields.get(if control.is_some() { "cc" } else { "dcqcn" });
    if let Some(item) = item.filter(|_| chosen.needs().ecn && !is_ecn) {
        let name = chosen.name().to_uppercase();
        item.warn(format!(
            "no switch marks the packets of this flow, which are not ECN-capable, so {name} never slows it down; write \
             `ecn: true`"
        ));
    }
    Some(chosen)
}

/// Reads the transport of a flow of `kind`. Congestion control by ACKs has the default one.
fn read_transport(fields: &Fields<'_>, control: Option<ControlSpec>, kind: FlowKind) -> Option<TransportSpec> {
    let needed = control.filter(|control| control.needs().acks);
    let transport = match fields.get("transport") {
        None => needed.map(|_| TransportSpec::default()),
        Some(item) => {
            let transport = transport::read(&item)?;
            if let (None, Some(control)) = (transport, needed) {
                item.fail(format!("{} needs ACKs; write `go-back-n`, or leave `transport` out", control.name()));
            }
            transport
        }
    };
    if transport.is_some() && kind != FlowKind::Roce {
        let item = fields.get("transport").or(fields.get("cc")).unwrap_or_else(|| fields.owner().clone());
        item.fail("only RoCE packets have numbers and ACKs; write `kind: roce`");
    }
    transport
}

/// Reports an error if a flow without messages would have to begin its message again.
fn check_messages(fields: &Fields<'_>, transport: Option<TransportSpec>, load: Load) {
    let begins_again = transport.is_some_and(|transport| transport.recovery == Recovery::GoBack0);
    if begins_again && !matches!(load, Load::Messages { .. }) {
        let item = fields.get("transport").unwrap_or_else(|| fields.owner().clone());
        item.fail(
            "`go-back-0` begins a message again, and this flow has none; write e.g. `load: {message: 1MB, every: 1ms}`",
        );
    }
}

/// Reads a rate that does not exceed the rate `link` of the link.
pub fn read_rate(item: &Item<'_>, link: BitRate) -> Option<BitRate> {
    let rate = item.parse::<BitRate>()?;
    if (SLOWEST_FLOW..=link).contains(&rate) {
        return Some(rate);
    }
    item.refuse(format!("`{}` is out of range for a link of {link}; write from 1k to its speed", item.shown()))
}
