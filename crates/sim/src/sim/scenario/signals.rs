//! Warns of switches on the path of a flow that do not give the signals of its congestion control: notes of telemetry,
//! or messages of QCN.

use std::collections::{BTreeSet, VecDeque};

use super::cables::Cables;
use super::marks;
use super::net::Net;
use crate::config::yaml::read::Fields;
use crate::plan::SwitchSpec;
use crate::sim::spec::{End, FlowNode, PortRef};
use crate::text::format::some_of;

/// Most switches that a warning names.
const MOST_NAMES: usize = 8;

/// A signal of a queue, and its key in `classes`.
struct Signal {
    key: &'static str,
    /// Words for a switch that does not give it.
    lack: &'static str,
    is_given: fn(&SwitchSpec, usize) -> bool,
}

const TELEMETRY: Signal = Signal {
    key: "telemetry: hpcc",
    lack: "without telemetry",
    is_given: |switch, queue| switch.telemetry_queues.contains(queue),
};
const QCN: Signal = Signal {
    key: "qcn: on",
    lack: "without congestion point",
    is_given: |switch, queue| switch.congestion_points[queue].is_some(),
};

/// The hosts from which flows go, and those to which.
#[derive(Clone, Copy)]
pub struct Between<'a> {
    pub from: &'a [usize],
    pub to: &'a [usize],
}

/// Warns if `flow`, which stands for the flows `between` hosts, passes switches without the signals
/// of its congestion control. Each shortest path counts: a routed network uses them all.
pub fn check(fields: &Fields<'_>, net: &Net<'_>, cables: &Cables, between: Between<'_>, flow: &FlowNode) {
    let (Some(control), Some(item)) = (flow.control, fields.get("cc")) else { return };
    let signal = match control.needs() {
        needs if needs.telemetry => TELEMETRY,
        needs if needs.congestion_points => QCN,
        _ => return,
    };
    let graph = Graph::new(net, cables);
    let homes =
        |hosts: &[usize]| -> BTreeSet<PortRef> { hosts.iter().filter_map(|&host| net.hosts[host].at).collect() };
    let lacking = Lacking::new(net, flow, &signal);
    let (mut silent, mut has_some) = (BTreeSet::new(), false);
    if lacking.class.iter().flatten().all(Option::is_none) {
        return;
    }
    let receivers: BTreeSet<usize> = homes(between.to).iter().map(|port| port.switch).collect();
    for home in homes(between.from) {
        let there = graph.distances(home.switch);
        for &receiver in &receivers {
            let back = graph.distances(receiver);
            let on_path = |switch: usize| {
                let length = there[switch].zip(back[switch]).map(|(there, back)| there + back);
                length.is_some() && length == there[receiver]
            };
            for switch in (0..net.switches.len()).filter(|&switch| on_path(switch)) {
                let before = graph.peers[switch]
                    .iter()
                    .filter(|(_, peer)| on_path(*peer) && there[*peer].map(|before| before + 1) == there[switch]);
                let entries = before.map(|(port, _)| *port).chain((switch == home.switch).then_some(home.port));
                match entries.filter_map(|port| lacking.class[switch][port]).next() {
                    Some(class) => drop(silent.insert((switch, class))),
                    None => has_some = true,
                }
            }
        }
    }
    let Some(&(_, class)) = silent.first() else { return };
    let names: Vec<&str> = silent.iter().filter_map(|(switch, _)| net.switches[*switch].name.as_deref()).collect();
    let (cc, names) = (control.name(), some_of(&names, MOST_NAMES));
    let effect = if has_some { "does not see their queues" } else { "never slows the flow down" };
    item.warn(format!(
        "switches {} on the path: {names}; {cc} {effect}; write `classes: {{{class}: {{{}}}}}` in their \
         configurations",
        signal.lack, signal.key
    ));
}

/// The switches without a signal.
struct Lacking {
    /// By switch and port, the class of the flow's frames that come in there, if its queue lacks the signal.
    class: Vec<Vec<Option<u8>>>,
}

impl Lacking {
    fn new(net: &Net<'_>, flow: &FlowNode, signal: &Signal) -> Self {
        let of_port = |at: PortRef, switch: &SwitchSpec| {
            let (class, ..) = marks::classify(net, at, flow.dscp, flow.tag)?;
            let queue = usize::from(switch.classes.tc_to_queue[usize::from(class & 7)] & 7);
            (!(signal.is_given)(switch, queue)).then_some(class)
        };
        let of_switch = |(number, node): (usize, &super::switches::Switch<'_>)| {
            let Some(config) = &node.config else { return Vec::new() };
            let ports = 0..config.switch.ports.len();
            ports.map(|port| of_port(PortRef { switch: number, port }, &config.switch)).collect()
        };
        Self { class: net.switches.iter().enumerate().map(of_switch).collect() }
    }
}

/// The links between switches.
struct Graph {
    /// By switch, its ports with links to switches, and these.
    peers: Vec<Vec<(usize, usize)>>,
}

impl Graph {
    fn new(net: &Net<'_>, cables: &Cables) -> Self {
        let mut peers = vec![Vec::new(); net.switches.len()];
        for link in &cables.links {
            if let (End::Port(a), End::Port(b)) = (link.a, link.b) {
                peers[a.switch].push((a.port, b.switch));
                peers[b.switch].push((b.port, a.switch));
            }
        }
        Self { peers }
    }

    /// Returns the number of links from a switch to each; `None`: there is no path.
    fn distances(&self, from: usize) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.peers.len()];
        distances[from] = Some(0);
        let mut queue = VecDeque::from([from]);
        while let Some(switch) = queue.pop_front() {
            for &(_, peer) in &self.peers[switch] {
                if distances[peer].is_none() {
                    distances[peer] = distances[switch].map(|distance| distance + 1);
                    queue.push_back(peer);
                }
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use crate::sim::scenario::{Options, parse};

    /// Warnings about `cc` from h1 to h2, two switches away by way of each of `spines`. `first` is a class of the first
    /// switch.
    fn warnings(first: &str, spines: usize, cc: &str) -> String {
        let switch = |name: &str, class: &str| {
            let ports = "ports: [{name: p*, count: 12, speed: 10G}]";
            format!("  - {{name: {name}, config: {{preset: roce, {ports}, classes: {{3: {{{class}}}}}}}}}\n")
        };
        let mut text = "duration: 100us\nforwarding: routed\nswitches:\n".to_owned();
        text += &(switch("a", first) + &switch("b", ""));
        let mut links = "links:\n".to_owned();
        for spine in 1..=spines {
            text += &switch(&format!("s{spine}"), "");
            links += &format!("  - {{a: a.p{0}, b: s{spine}.p1}}\n  - {{a: s{spine}.p2, b: b.p{0}}}\n", spine + 1);
        }
        text += "hosts: [{name: h1, at: a.p1}, {name: h2, at: b.p1}]\n";
        text += &format!("{links}flows: [{{from: h1, to: h2, cc: {cc}}}]\n");
        let text = if cc == "qcn" { text.replace("forwarding: routed\n", "") } else { text };
        let scenarios = parse("x.yaml", &text, None, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
        let warnings = scenarios[0].1.warnings.iter().map(ToString::to_string);
        let warnings: Vec<String> = warnings.filter_map(|of| Some(of.split_once("].cc: ")?.1.to_owned())).collect();
        warnings.join("\n")
    }

    #[test]
    fn switches_without_telemetry_on_any_path_are_named_up_to_a_bound() {
        insta::assert_snapshot!(warnings("", 1, "hpcc"), @"switches without telemetry on the path: a, b, s1; hpcc never slows the flow down; write `classes: {3: {telemetry: hpcc}}` in their configurations");
        insta::assert_snapshot!(warnings("telemetry: hpcc", 10, "powertcp"), @"switches without telemetry on the path: b, s1, s2, s3, s4, s5, s6, s7 and 3 more; powertcp does not see their queues; write `classes: {3: {telemetry: hpcc}}` in their configurations");
        insta::assert_snapshot!(warnings("qcn: on", 1, "qcn"), @"switches without congestion point on the path: b, s1; qcn does not see their queues; write `classes: {3: {qcn: on}}` in their configurations");
        assert_eq!(warnings("", 2, "dctcp"), "");
    }
}
