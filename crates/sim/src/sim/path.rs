//! The path of a flow without congestion: its base round-trip time, from which congestion control begins.

use std::collections::HashMap;

use super::control::Path;
use super::load::PS;
use super::routes::Cables;
use super::spec::{End, FlowNode, FrameSizes, LinkNode, PortRef, Scenario};
use crate::units::{BitRate, Bytes, WIRE_OVERHEAD};
use crate::wire::inband;

use super::transport::ACK_LEN;
use super::wire::Wire;

/// Shortest frame without its frame check sequence.
const SHORTEST: u64 = 60;

/// The paths of a scenario.
#[derive(Debug)]
pub struct Paths<'a> {
    scenario: &'a Scenario,
    cables: Cables,
    /// Links by their ends, switch ports and hosts.
    ports: HashMap<PortRef, &'a LinkNode>,
    hosts: HashMap<usize, &'a LinkNode>,
    /// By host, the ports that lead to it.
    toward: HashMap<usize, Vec<Option<usize>>>,
}

impl<'a> Paths<'a> {
    /// Returns the paths of `scenario`.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let cables = Cables::new(scenario);
        let (mut ports, mut hosts) = (HashMap::new(), HashMap::new());
        for link in &scenario.links {
            for end in [link.a, link.b] {
                match end {
                    End::Port(port) => drop(ports.insert(port, link)),
                    End::Host(host) => drop(hosts.insert(host, link)),
                }
            }
        }
        Self { scenario, cables, ports, hosts, toward: HashMap::new() }
    }

    /// Returns the cables of the scenario.
    #[must_use]
    pub fn cables(&self) -> &Cables {
        &self.cables
    }

    /// Returns the path of `flow`. Its base round-trip time is that of a full frame and an ACK through empty switches,
    /// with the longest wait for a poll in each.
    pub fn of(&mut self, flow: &FlowNode) -> Path {
        let frame = match flow.frames {
            FrameSizes::Fixed(len) | FrameSizes::Uniform(_, len) => usize::from(len),
            FrameSizes::Imix => 1496,
        };
        let (there, switches) = self.one_way_ps(flow.from, flow.to, frame);
        let back = self.reply_ps(flow);
        let line = self.hosts.get(&flow.from).map_or(flow.rate, |link| link.rate);
        let base_rtt_ps = flow.base_rtt.map_or(there + back, |rtt| rtt.0 * PS);
        Path { line, base_rtt_ps, frame: Bytes(frame as u64), switches, seed: self.scenario.seed }
    }

    /// Returns the time that `flow` takes for `bytes` of frames on the empty path, until they are received or, if it is
    /// reliable, acknowledged. The last frame may be short: it follows all others at the slowest rate, and the one
    /// before it on each link.
    pub fn ideal_ps(&mut self, flow: &FlowNode, bytes: u64) -> u64 {
        let FrameSizes::Fixed(frame) = flow.frames else { return self.of(flow).base_rtt_ps };
        let before = bytes.saturating_sub(1) / u64::from(frame.max(1));
        let last = (bytes - before * u64::from(frame)).max(SHORTEST);
        let rate = u128::from(self.slowest(flow.from, flow.to).min(flow.rate).0.max(1));
        let sending = |frames: u64, len: u64| {
            let bits = u128::from(frames * (len + u64::from(WIRE_OVERHEAD)) * 8);
            (bits * 1_000_000_000_000 / rate) as u64
        };
        let alone = sending(before, frame.into()) + self.one_way_ps(flow.from, flow.to, last as usize).0;
        let behind = before.checked_sub(1).map_or(0, |full| {
            sending(full, frame.into()) + self.one_way_ps(flow.from, flow.to, frame.into()).0 + sending(1, last)
        });
        alone.max(behind) + if flow.transport.is_some() { self.reply_ps(flow) } else { 0 }
    }

    /// Returns the time of an ACK of `flow`, with the notes that it carries back.
    fn reply_ps(&mut self, flow: &FlowNode) -> u64 {
        let notes = flow.control.filter(|control| control.needs().telemetry).map_or(0, |_| inband::LEN);
        self.one_way_ps(flow.to, flow.from, usize::from(ACK_LEN) + notes).0
    }

    /// Returns the lowest rate of the links from one host to another.
    fn slowest(&mut self, from: usize, to: usize) -> BitRate {
        let cables = &self.cables;
        let toward = self.toward.entry(to).or_insert_with(|| cables.toward(to));
        let mut rate = self.hosts.get(&from).map_or(BitRate(u64::MAX), |link| link.rate);
        let (mut at, mut left) = (cables.port_of(from).map(|port| port.switch), toward.len());
        while let Some(port) =
            at.and_then(|switch| Some(PortRef { switch, port: toward[switch]? })).filter(|_| left > 0)
        {
            left -= 1;
            rate = self.ports.get(&port).map_or(rate, |link| link.rate.min(rate));
            at = match cables.peer(port) {
                Some(End::Port(next)) => Some(next.switch),
                _ => None,
            };
        }
        rate
    }

    /// Returns the time that a frame of `len` bytes takes, and the number of switches on its way.
    fn one_way_ps(&mut self, from: usize, to: usize, len: usize) -> (u64, u32) {
        let cables = &self.cables;
        let toward = self.toward.entry(to).or_insert_with(|| cables.toward(to));
        let (mut ps, mut switches) = (self.hosts.get(&from).map_or(0, |link| crossing_ps(link, len)), 0);
        let mut at = cables.port_of(from).map(|port| port.switch);
        while let Some(switch) = at.filter(|_| (switches as usize) < toward.len()) {
            switches += 1;
            ps += self.scenario.switches[switch].poll.every.0 * PS;
            let Some(port) = toward[switch].map(|port| PortRef { switch, port }) else { break };
            ps += self.ports.get(&port).map_or(0, |link| crossing_ps(link, len));
            at = match cables.peer(port) {
                Some(End::Port(next)) => Some(next.switch),
                _ => None,
            };
        }
        (ps, switches)
    }
}

/// Returns the time from the first bit of a frame of `len` bytes at one end of `link` to its last at the other.
fn crossing_ps(link: &LinkNode, len: usize) -> u64 {
    Wire::new(link.b, link.rate, link.length).crossing_ps(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::scenario::{Options, parse};
    use crate::units::BitRate;

    #[test]
    fn base_round_trip_sums_cables_frames_and_polls() {
        let text = "
duration: 100us
switches:
  - {name: a, config: {preset: roce, ports: [{name: p*, count: 2, speed: 100G, cable: 20m}]}, poll: {every: 200ns}}
  - {name: b, config: {preset: roce, ports: [{name: p*, count: 2, speed: 100G, cable: 20m}]}, poll: {every: 300ns}}
hosts: [{name: h1, at: a.p1}, {name: h2, at: b.p1}]
links: [{a: a.p2, b: b.p2, length: 40m}]
flows: [{from: h1, to: h2, frame: 1000}]
";
        let scenario = parse("path.yaml", text, None, &Options::default()).unwrap().remove(0).1;
        let path = Paths::new(&scenario).of(&scenario.flows[0]);
        // 80 ps a byte, with check sequence and preamble: 1012 B and 74 B on three cables; 80 m of 5 ns each way.
        let frames = 3 * 80 * (1012 + 62 + 12);
        assert_eq!(path.base_rtt_ps, frames + 2 * 400_000 + 2 * 500_000);
        assert_eq!((path.line, path.frame, path.switches), (BitRate(100_000_000_000), Bytes(1000), 2));
        assert_eq!(path.bdp(), Bytes(path.base_rtt_ps / 80));
    }
}
