//! Writes the results in the columns of HPCC's simulator.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Prepared;
use super::flows::FlowLine;
use crate::sim::load::PS;
use crate::sim::outcome::Outcome;
use crate::sim::spec::{End, LinkNode, PortRef};

/// Bytes of headers of a packet in ns-3, without telemetry: PPP, IPv4, UDP, sequence number, priority group.
const NS3_HEADERS: u64 = 14 + 20 + 8 + 6;
/// Source port of the first flow of a pair of hosts.
const FIRST_PORT: u64 = 10_000;

/// A completed flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completion {
    pub flow: FlowLine,
    pub src_port: u64,
    pub bytes: u64,
    /// Completion time, and the time on an empty path.
    pub fct_ns: u64,
    pub alone_ns: u64,
}

/// The output files of a run.
#[derive(Debug)]
pub struct Outputs<'a> {
    /// Path and content of the flow completion times.
    pub fct: (&'a Path, String),
    /// Path and content of the pauses.
    pub pfc: (&'a Path, String),
    /// Path and content of the queue lengths, if they were asked for.
    pub qlen: Option<(&'a Path, String)>,
}

impl Prepared {
    /// Paths of the output files.
    pub fn output_paths(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let paths = [&self.fct, &self.pfc].into_iter().chain(&self.qlen).map(PathBuf::as_path);
        ["FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE", "QLEN_MON_FILE"].into_iter().zip(paths)
    }

    /// Returns the output files of the run with this `outcome`.
    #[must_use]
    pub fn outputs(&self, outcome: &Outcome) -> Outputs<'_> {
        Outputs {
            fct: (&self.fct, self.fct_lines(outcome)),
            pfc: (&self.pfc, self.pfc_lines(outcome)),
            qlen: self.qlen.as_deref().map(|path| (path, self.qlen_lines(outcome))),
        }
    }

    /// Returns the completed flows, in the order of the inputs. A flow is complete when its sender has the last ACK.
    pub(super) fn completions<'a>(&'a self, outcome: &'a Outcome) -> impl Iterator<Item = Completion> + 'a {
        let mut ports: HashMap<(usize, usize), u64> = HashMap::new();
        self.flows.iter().zip(&outcome.flows).filter_map(move |(flow, done)| {
            let port = ports.entry((flow.src, flow.dst)).or_insert(FIRST_PORT);
            let src_port = *port & 0xffff;
            *port += 1;
            let base = self.times.of(flow.src, flow.dst).unwrap_or_default();
            let packets = flow.bytes.max(1).div_ceil(self.payload_bytes);
            let wire_bits = u128::from(flow.bytes + packets * NS3_HEADERS) * 8;
            (done.acknowledged.count > 0).then(|| Completion {
                flow: *flow,
                src_port,
                bytes: flow.bytes,
                fct_ns: done.acknowledged.least_ps / PS,
                alone_ns: base.rtt_ns + (wire_bits * 1_000_000_000 / u128::from(base.rate.max(1))) as u64,
            })
        })
    }

    /// `sip dip sport dport bytes start fct standalone_fct`, times in nanoseconds, in the order of completion.
    fn fct_lines(&self, outcome: &Outcome) -> String {
        let mut done: Vec<Completion> = self.completions(outcome).collect();
        done.sort_by_key(|done| done.flow.start_ns + done.fct_ns);
        let mut text = String::new();
        for Completion { flow, src_port, bytes, fct_ns, alone_ns } in done {
            let [src, dst] = [flow.src, flow.dst].map(address);
            let (dst_port, start) = (flow.dst_port, flow.start_ns);
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{src:08x} {dst:08x} {src_port} {dst_port} {bytes} {start} {fct_ns} {alone_ns}");
        }
        text
    }

    /// `time node type interface event`: at the held end of a link, type 1 for a switch, event 1 for a pause and 0 for
    /// its end.
    fn pfc_lines(&self, outcome: &Outcome) -> String {
        let mut events = Vec::new();
        for pause in &outcome.pauses {
            let Some(link) = self.scenario.links.get(pause.link) else { continue };
            let (node, kind, interface) = self.held_end(link, pause.holds_a);
            for (at_ps, event) in [(pause.from_ps, 1), (pause.to_ps, 0)] {
                events.push((self.epoch_ns + at_ps / PS, node, kind, interface, event));
            }
        }
        events.sort_unstable();
        let mut text = String::new();
        for (at, node, kind, interface, event) in events {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{at} {node} {kind} {interface} {event}");
        }
        text
    }

    /// Node, type and interface of one end of a link.
    fn held_end(&self, link: &LinkNode, is_a: bool) -> (usize, u8, usize) {
        match if is_a { link.a } else { link.b } {
            End::Host(host) => (self.hosts[host], 0, 1),
            End::Port(PortRef { switch, port }) => (self.switches[switch], 1, port + 1),
        }
    }
}

/// The address of a node.
fn address(node: usize) -> u32 {
    0x0b00_0001 + ((node / 256) as u32) * 0x1_0000 + ((node % 256) as u32) * 0x100
}
