//! The scenario that realises an adversary.
//!
//! Port 0 is the port whose headroom is examined; its host is the peer. The peer sends only to the host at port 1,
//! which pauses that class for ever. Hosts at the other ports send enough to the peer at once that port 0 posts as much
//! as its pacing allows.

use super::adversary::{Adversary, Reverse, Sizes, largest};
use super::link::{Link, Peer};
use super::search::{CLASS, up};
use crate::config::Overrides;
use crate::headroom::{LEFT_BEHIND, PACING_SLACK, bursts_per_poll, most_slack};
use crate::hosts::FlowKind;
use crate::mmu::Threshold;
use crate::sets::{ClassSet, LEAST_BURST};
use crate::sim::engine::run_prepared;
use crate::sim::load::PS;
use crate::sim::node::{Hurry, first_poll};
use crate::sim::outcome::Outcome;
use crate::sim::spec::{
    End, Fault, FaultKind, FlowNode, FrameSizes, HostNode, Learning, LinkNode, Load, MessageSize, PollSpec, PortRef,
    Scenario, SwitchNode,
};
use crate::units::{Bytes, Cells, Length, Nanos, WIRE_OVERHEAD};
use crate::wire::MacAddr;

/// Bytes on the wire around a frame.
const AROUND: u64 = WIRE_OVERHEAD as u64;
/// Bytes around a frame that precede its last bit: all but the interframe gap of 12 bytes.
const BEFORE_END: u64 = AROUND - 12;
const SHORTEST: u16 = 60;
/// Maximum number of hosts that send to the peer.
const MOST_SOURCES: u64 = 40;
/// Ring sizes of the simulated NIC, too large to overflow: headroom does not cover full rings (`rx_descriptors` does).
const DESCRIPTORS: usize = 1 << 16;

/// A prepared scenario, complete except for the headroom and the last frame.
pub struct World<'a> {
    link: &'a Link,
    adversary: &'a Adversary,
    scenario: Scenario,
    /// Cells that the threshold admits before headroom is used.
    limit: Cells,
    /// Start of the frames between the first and the last.
    middle: Nanos,
    /// A poll after which the next one comes earlier than a poll gap.
    hurry: Option<Hurry>,
}

impl<'a> World<'a> {
    /// Returns `None` if the events between two polls do not fit.
    pub fn new(link: &'a Link, adversary: &'a Adversary) -> Option<Self> {
        let sources =
            if matches!(adversary.reverse, Reverse::Once | Reverse::Lasting) { sources(link) } else { vec![] };
        let poll = judging_poll(link, adversary);
        let mut scenario = scenario(link, adversary.seed, sources.len() + usize::from(adversary.reverse.lasts()));
        let mut world = Forward { link, adversary, flows: vec![], limit: Cells(0) };
        let middle = world.flows(poll)?;
        let (flows, limit) = (world.flows, world.limit);
        scenario.flows = flows;
        for (number, source) in sources.iter().enumerate() {
            let wire = u64::from(source.len) + AROUND;
            let start = Nanos((poll - source.frames * link.time_ps(wire)) / PS - 2);
            let size = MessageSize::Fixed(Bytes(source.frames * u64::from(source.len)));
            scenario.flows.push(lossy(flow(link, 2 + number, source.len, start, message(size))));
        }
        let xoff = poll + link.poll_gap.0 * PS;
        let mut lasts = settling_ps(link);
        if adversary.reverse.lasts() {
            let start = match adversary.reverse {
                Reverse::After => up(xoff),
                Reverse::Always => Nanos(up(poll).0 - 2 * link.poll_gap.0 - 2 * PACING_SLACK.0),
                _ => up(poll),
            };
            let flow = flow(link, 2 + sources.len(), largest(link), start, Load::Steady);
            scenario.flows.push(lossy(flow));
            // Leftover frames in the ring matter until XOFF, but not for its refreshes.
            lasts += if adversary.left == 0 { 4 * link.half_life_ps() } else { 0 };
        }
        scenario.duration = up(poll + lasts);
        let hurry = adversary.reverse.lasts().then(|| before_refresh(link, xoff)).flatten();
        Some(Self { link, adversary, scenario, limit, middle, hurry })
    }

    /// Runs the scenario with `eta` cells of headroom. If the last frame differs from those before, it begins at
    /// `last`, in nanoseconds.
    pub fn run(&self, eta: Cells, last: Option<u64>) -> Outcome {
        let mut scenario = self.scenario.clone();
        if let Some(last) = last {
            let (Sizes::Framed(len) | Sizes::Last(len)) = self.adversary.sizes else {
                unreachable!("only these sizes have another last frame")
            };
            let middle = flow(self.link, 0, len, self.middle, Load::Steady);
            scenario.flows.push(FlowNode { stop: Some(Nanos(last)), ..middle });
            scenario.flows.push(flow(self.link, 0, largest(self.link), Nanos(last), Load::Steady));
        }
        let switch = &mut scenario.switches[0].config.switch;
        let group = &mut switch.ports[0].buffer.groups[CLASS];
        switch.buffer.headroom.0 += eta.0 - group.headroom.0;
        switch.buffer.total.0 += eta.0 - group.headroom.0;
        group.headroom = eta;
        group.threshold = Threshold::Static(self.limit);
        let late = self.adversary.sends_late.then(|| self.link.poll_gap.0 * PS - 1);
        let prepare = |engine: &mut crate::sim::engine::Engine<'_>| {
            engine.net.nodes[0].sends_after_ps = late;
            engine.net.nodes[0].hurry = self.hurry;
            for device in &mut engine.net.nodes[0].devices {
                (device.descriptors, device.tx_descriptors) = (DESCRIPTORS, DESCRIPTORS);
            }
        };
        run_prepared(&scenario, prepare, &mut |_| {})
    }
}

/// Makes a poll begin just before the refresh of the XOFF sent at `xoff` is due. That poll sends no refresh, so the
/// refresh comes one gap later: as late as possible.
fn before_refresh(link: &Link, xoff: u64) -> Option<Hurry> {
    let (gap, half_life) = (link.poll_gap.0 * PS, link.half_life_ps());
    // One nanosecond exceeds the generator's rounding error.
    let short = (half_life - PS) % gap;
    (short > PS).then(|| Hurry { from_ps: xoff + (half_life - PS) / gap * gap, gap_ps: short })
}

/// Moves `flow` to class 0, a lossy class.
fn lossy(flow: FlowNode) -> FlowNode {
    FlowNode { class: 0, priority: 0, lossless: false, dscp: 0, ..flow }
}

/// Returns the time of the last poll before the crossing frame is seen. There is time before it for all preparations.
fn judging_poll(link: &Link, adversary: &Adversary) -> u64 {
    let gap = link.poll_gap.0 * PS;
    let before = 3 * gap + 40_000 * PS + link.cable.mm * 5 + link.time_ps(64 * u64::from(largest(link)));
    first_poll(adversary.seed, 0, gap) + before.div_ceil(gap) * gap
}

/// Returns the time in which the peer stops and the frames in the receive ring are admitted. At worst, each poll gap
/// admits one poll's share.
fn settling_ps(link: &Link) -> u64 {
    let wire: u64 = link.input().rate.bytes_in(Nanos(link.poll_gap.0 + PACING_SLACK.0 + link.response_ps() / PS)).0
        + 2 * link.bytes_in_ps(link.cable.mm * 5)
        + 4 * u64::from(link.mtu);
    let polls = wire / (84 * per_poll(link)) + 8;
    link.time_ps(wire) + polls * link.poll_gap.0.max(1000) * PS
}

/// Returns the most frames that one poll receives (`Port::bursts`).
fn per_poll(link: &Link) -> u64 {
    u64::from(bursts_per_poll(link.rate, link.mtu, link.poll_gap)) * LEAST_BURST as u64
}

/// A host that sends to the peer.
struct Source {
    len: u16,
    frames: u64,
}

/// Returns enough sources to make the port post as much as pacing allows: frames that fill the slack exactly, then one
/// largest frame.
fn sources(link: &Link) -> Vec<Source> {
    let wire: u64 = if largest(link) >= 6226 { 6250 } else { 1250.min(u64::from(largest(link)) + AROUND) };
    let mut left = link.rate.bytes_in(most_slack(link.poll_gap)).0 / wire;
    let share = (link.bytes_in_ps(link.poll_gap.0 * PS * 9 / 10) / wire).max(1).min(per_poll(link));
    let mut sources = Vec::new();
    while left > 0 && (sources.len() as u64) < MOST_SOURCES {
        let frames = share.min(left);
        sources.push(Source { len: (wire - AROUND) as u16, frames });
        left -= frames;
    }
    sources.push(Source { len: largest(link), frames: 1 });
    sources
}

/// Builder of the flows that the peer sends.
struct Forward<'a> {
    link: &'a Link,
    adversary: &'a Adversary,
    flows: Vec<FlowNode>,
    limit: Cells,
}

impl Forward<'_> {
    /// Adds the flows up to the crossing frame, whose last bit arrives just after `poll`. If the frame length is
    /// constant, they include all frames. Returns when the frames after the crossing one begin.
    fn flows(&mut self, poll: u64) -> Option<Nanos> {
        let (link, largest) = (self.link, largest(self.link));
        let crossing = match self.adversary.sizes {
            Sizes::All(len) | Sizes::Last(len) => len,
            Sizes::Framed(_) | Sizes::Drawn | Sizes::Imix => largest,
        };
        let before = link.time_ps(u64::from(crossing) + BEFORE_END) + link.cable.mm * 5;
        let start = up(poll + self.adversary.offset_ps - before);
        if self.adversary.left > 0 {
            self.leave_behind(poll, start.0 * PS)?;
        }
        let mut add = |len: FrameSizes, start, load| {
            let flow = flow(link, 0, crossing, start, load);
            self.flows.push(FlowNode { frames: len, ..flow });
        };
        let next = up(start.0 * PS + link.time_ps(u64::from(crossing) + AROUND));
        match self.adversary.sizes {
            Sizes::All(len) => add(FrameSizes::Fixed(len), start, Load::Steady),
            Sizes::Last(_) => return Some(start),
            sizes => {
                add(FrameSizes::Fixed(largest), start, message(MessageSize::Fixed(Bytes(largest.into()))));
                match sizes {
                    Sizes::Drawn => add(FrameSizes::Uniform(SHORTEST, largest), next, Load::Steady),
                    Sizes::Imix => add(FrameSizes::Imix, next, Load::Steady),
                    _ => {}
                }
            }
        }
        Some(next)
    }

    /// Adds as many shortest frames as a poll receives, which the threshold admits, then the frames that the poll
    /// leaves behind.
    fn leave_behind(&mut self, poll: u64, crossing: u64) -> Option<()> {
        let (link, left) = (self.link, self.adversary.left);
        let taken = per_poll(link);
        let taken_ps = taken * link.time_ps(u64::from(SHORTEST) + AROUND);
        let frame_ps = link.time_ps(u64::from(left) + AROUND);
        // All of these frames arrive after the previous poll.
        let earliest = poll - link.poll_gap.0 * PS - link.cable.mm * 5 + 4 * PS;
        let room = crossing.checked_sub(earliest)?.checked_sub(taken_ps + 4 * PS)?;
        let frames = (room / frame_ps).min(LEFT_BEHIND.into());
        if frames == 0 {
            return None;
        }
        let second = (crossing - frames * frame_ps) / PS - 1;
        let first = second - taken_ps.div_ceil(PS) - 1;
        let size = |frames: u64, len: u16| message(MessageSize::Fixed(Bytes(frames * u64::from(len))));
        self.flows.push(flow(link, 0, SHORTEST, Nanos(first), size(taken, SHORTEST)));
        self.flows.push(flow(link, 0, left, Nanos(second), size(frames, left)));
        self.limit = Cells(taken as u32 * u32::from(SHORTEST).div_ceil(link.cell.0 as u32));
        Some(())
    }
}

fn message(size: MessageSize) -> Load {
    Load::Messages { size, every: Nanos(1_000_000_000), poisson: false, count: Some(1) }
}

/// Returns a flow in the lossless class from host `from`: the first one sends to the second, all others to the first.
fn flow(link: &Link, from: usize, len: u16, start: Nanos, load: Load) -> FlowNode {
    let to = usize::from(from == 0);
    FlowNode {
        name: format!("h{from}-h{to}"),
        from,
        to,
        kind: FlowKind::Udp,
        frames: FrameSizes::Fixed(len),
        dscp: 8 * CLASS as u8,
        tag: None,
        class: CLASS as u8,
        priority: CLASS as u8,
        lossless: true,
        ecn: false,
        rate: link.rate,
        start,
        stop: None,
        load,
        transport: None,
        control: None,
        base_rtt: None,
        entropy: None,
    }
}

/// Returns a scenario with the switch and its hosts, but without flows.
fn scenario(link: &Link, seed: u64, sources: usize) -> Scenario {
    let ports = 2 + sources;
    let yaml = config(link, ports);
    let simulated = Overrides { simulated: true, ..Overrides::default() };
    let config = simulated.parse("headroom", &yaml).unwrap_or_else(|errors| unreachable!("{errors}"));
    let host = |number: usize| HostNode {
        name: format!("h{number}"),
        mac: MacAddr::local(1, number as u16),
        ip: [10, 0, 0, number as u8 + 1].into(),
        obeys_pfc: true,
        response: match link.peer {
            Peer::Takes(time) if number == 0 => Some(time),
            _ => None,
        },
        receiver: None,
        known: true,
    };
    let cable = |number: usize| LinkNode {
        name: format!("s.p{number}-h{number}"),
        a: End::Port(PortRef { switch: 0, port: number }),
        b: End::Host(number),
        rate: link.rate,
        length: if number == 0 { link.cable } else { Length { mm: 0 } },
    };
    Scenario {
        source: "headroom".into(),
        files: Vec::new(),
        name: "headroom".into(),
        variant: String::new(),
        seed,
        duration: Nanos(0),
        drain: Nanos(0),
        sample: Nanos(1_000_000_000),
        queues: Nanos(0),
        monitor: None,
        most_events: 1 << 40,
        learning: Learning::Routes,
        routed: None,
        switches: vec![SwitchNode {
            name: "s".into(),
            config,
            poll: PollSpec { every: link.poll_gap, frame: Nanos(0), shed: Nanos(0), jitter: Nanos(0) },
            floods_lossless: false,
            reloads: Vec::new(),
        }],
        hosts: (0..ports).map(host).collect(),
        links: (0..ports).map(cable).collect(),
        flows: vec![],
        workloads: Vec::new(),
        faults: vec![Fault {
            at: Nanos(0),
            until: None,
            kind: FaultKind::Storm { host: 1, priorities: ClassSet::only(CLASS) },
        }],
        watch: vec![],
        columns: vec![],
        warnings: vec![],
    }
}

/// Returns the smallest configuration that holds the traffic. The headroom is added later, when it is known.
fn config(link: &Link, ports: usize) -> String {
    let frame = u64::from(link.mtu) + 22;
    let lossy = 2 * link.rate.bytes_in(PACING_SLACK).0 + 64 * frame;
    let shared = 1024 * link.cell.0 + frame;
    let size = lossy + shared + ports as u64 * (frame + link.cell.0) + (64 << 10);
    let mut yaml = format!(
        "lcores: {{poll_gap: {}ns}}\n\
         buffer: {{size: {size}B, cell: {}B, lossy: {lossy}B, shared: {shared}B}}\n\
         classes:\n  0: {{limit: {lossy}B, queue_limit: {lossy}B}}\n  \
         {CLASS}: {{lossless: true, reserve: 0B, limit: 0B, headroom: {frame}B}}\nports:\n",
        link.poll_gap.0, link.cell.0
    );
    for port in 0..ports {
        yaml += &format!("  - {{name: p{port}, speed: {}, mtu: {}}}\n", link.rate, link.mtu);
    }
    yaml
}
