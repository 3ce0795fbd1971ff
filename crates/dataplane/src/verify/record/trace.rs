//! Converts a record to the arrivals and departures of a replay: determines each frame's class and egress ports.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{Happened, Seen, Tape, What};
use crate::forward::VlanTable;
use crate::plan::spec::SwitchSpec;
use crate::qos::{Rewrite, RoceMap, Trust};
use crate::sets::{ClassSet, PortSet};
use crate::units::Ticks;
use crate::verify::replay::{Ecn, Frame};
use crate::wire::{MacAddr, ecn};

/// First line of the trace.
pub const HEADER: &str = "time_ns,event,port,class,bytes,egress,ecn";
const ETHERNET_LEN: u16 = 14;
const TAG_LEN: u16 = 4;

/// The egress ports of frames: stations that do not move.
#[derive(Debug, Clone, Default)]
pub struct Stations {
    /// Port of each station. A lossless frame to any other station is dropped, and a lossy one is flooded.
    pub ports: HashMap<MacAddr, usize>,
    /// Ports that have a link throughout.
    pub up: PortSet,
}

/// A PFC frame that was sent to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentPfc {
    /// Port that sent the frame.
    pub port: usize,
    /// Priorities that the frame enables.
    pub named: ClassSet,
    /// Enabled priorities with XOFF.
    pub stopped: ClassSet,
}

/// A step of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A frame arrives. A flooded frame has one step for each of its egress ports.
    Arrive(Frame),
    /// A frame leaves, with the codepoint that it leaves with.
    Depart(Frame),
    /// A PFC frame leaves. A replay must have reached this state by then.
    Pfc(SentPfc),
    /// The driver refuses a frame, whose wire time stays charged.
    Refused {
        /// Egress port.
        port: usize,
        /// Bytes without the frame check sequence.
        bytes: u16,
    },
}

/// A step with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// Time of the step, on the recorder's clock.
    pub time_ns: u64,
    /// Beginning of its poll, by the clock of the pipeline.
    pub poll: Ticks,
    /// Index of the recorded event that the step belongs to, from zero.
    pub index: usize,
    /// The step.
    pub step: Step,
}

/// Returns the reason why the events at this switch cannot be written as a trace, or would give another one. A trace
/// requires that the departing frame shows its class, and that queues keep the order of arrival.
#[must_use]
pub fn why_not(spec: &SwitchSpec) -> Option<&'static str> {
    if !spec.hpcc.is_empty() {
        return Some("it decides as HPCC's simulator, and a replay does not; write `mmu: holdfast`");
    }
    if spec.reverie {
        return Some("it decides as Reverie, by filtered depths that a trace does not have; write `mmu: holdfast`");
    }
    if spec.abm.is_some() {
        return Some("ABM decides by drain rates, which a trace does not have; write `queue_policy: dt`");
    }
    if spec.lcores > 1 {
        return Some("it has several lcores, and a trace does not record their order; write `lcores: {count: 1}`");
    }
    if spec.has_congestion_points() {
        return Some("a class is a congestion point of QCN, whose messages a trace does not show; remove `qcn`");
    }
    if spec.ports.iter().any(|port| port.live.rewrite != Rewrite::default()) {
        return Some("a port rewrites DSCP or PCP, which show the class of departing frames; remove `rewrite`");
    }
    if spec.ports.iter().any(|port| port.live.marks.roce != RoceMap::default()) {
        return Some("a port classifies RoCE packets by their opcode, which a trace does not show; remove `maps.roce`");
    }
    if spec.ports.iter().any(|port| port.live.trust == Trust::Pcp) {
        return Some("a port trusts PCP, which departing frames may no longer have; write `trust: dscp`");
    }
    None
}

impl Tape {
    /// Returns the steps of a switch for which [`why_not`] returns no reason.
    pub fn steps<'a>(&'a self, spec: &'a SwitchSpec, stations: &'a Stations) -> impl Iterator<Item = Traced> + use<'a> {
        let mut reader = Reader {
            spec,
            stations,
            vlans: VlanTable::new(spec.ports.iter().map(|port| &port.vlan)),
            came: HashMap::new(),
        };
        self.happened().iter().enumerate().flat_map(move |(index, happened)| {
            let steps = reader.steps(happened);
            steps.into_iter().map(move |step| Traced { time_ns: happened.time_ns, poll: happened.poll, index, step })
        })
    }
}

struct Reader<'a> {
    spec: &'a SwitchSpec,
    stations: &'a Stations,
    vlans: VlanTable,
    /// The port by which frames from one station to another arrived.
    came: HashMap<(MacAddr, MacAddr), usize>,
}

impl Reader<'_> {
    fn steps(&mut self, happened: &Happened) -> Vec<Step> {
        let port = usize::from(happened.port);
        match happened.what {
            What::Arrived(seen) => {
                self.came.insert((seen.src, seen.dst), port);
                let class = self.class(port, &seen);
                let frame = Frame { port, class, bytes: 0, egress: 0, ecn: codepoint(&seen) };
                let ways = self.ways(port, class, &seen);
                ways.into_iter().map(|(egress, bytes)| Step::Arrive(Frame { egress, bytes, ..frame })).collect()
            }
            What::Left(seen) => {
                let Some(&came) = self.came.get(&(seen.src, seen.dst)) else { return Vec::new() };
                let (class, ecn) = (self.class(came, &seen), codepoint(&seen));
                vec![Step::Depart(Frame { port: came, class, bytes: seen.bytes, egress: port, ecn })]
            }
            What::Refused(bytes) => vec![Step::Refused { port, bytes }],
            What::Pfc { named, stopped } => vec![Step::Pfc(SentPfc { port, named, stopped })],
        }
    }

    fn class(&self, port: usize, seen: &Seen) -> u8 {
        let spec = &self.spec.ports[port];
        let dscp = seen.traffic_class.map(|class| class >> 2);
        spec.live.marks.class(spec.live.trust, spec.live.port_class, dscp, seen.tci.map(|tci| (tci >> 13) as u8))
    }

    /// Returns the egress ports of a frame, and its length at each. Empty if the frame does not reach the buffer.
    fn ways(&self, port: usize, class: u8, seen: &Seen) -> Vec<(usize, u16)> {
        let Some(vlan) = self.vlans.ingress(port, seen.tci.map(|tci| tci & 0xfff)) else { return Vec::new() };
        let (tag, plain) = match seen.tci {
            Some(_) => (TAG_LEN, seen.bytes.saturating_sub(TAG_LEN)),
            None => (0, seen.bytes),
        };
        if seen.src.is_group() || seen.src.is_zero() || seen.bytes > self.spec.ports[port].mtu + ETHERNET_LEN + tag {
            return Vec::new();
        }
        let egresses = self.egresses(port, class, vlan, seen.dst);
        let with_length = |egress: usize| {
            let tag = if self.vlans.leaves_tagged(egress, vlan) { TAG_LEN } else { 0 };
            (egress, plain + tag, plain <= self.spec.ports[egress].mtu + ETHERNET_LEN)
        };
        let ways = egresses.iter().map(with_length);
        ways.filter(|(_, _, fits)| *fits).map(|(egress, bytes, _)| (egress, bytes)).collect()
    }

    fn egresses(&self, port: usize, class: u8, vlan: u16, dst: MacAddr) -> PortSet {
        let members = self.vlans.members(vlan) & (self.stations.up - PortSet::only(port));
        if dst.is_link_local() {
            return PortSet::EMPTY;
        }
        if let Some(egress) = self.stations.ports.get(&dst).filter(|_| !dst.is_group()) {
            return members & PortSet::only(*egress);
        }
        let group = usize::from(self.spec.classes.tc_to_group[usize::from(class)]);
        let is_lossless = self.spec.ports[port].buffer.groups[group].lossless;
        if is_lossless && !self.spec.floods_lossless { PortSet::EMPTY } else { members }
    }
}

/// Returns the codepoint. A frame without IP is never marked, so a replay treats it as marked already.
fn codepoint(seen: &Seen) -> Ecn {
    match seen.traffic_class.map(|class| class & 3) {
        None | Some(ecn::CE) => Ecn::Ce,
        Some(ecn::NOT_ECT) => Ecn::NotEct,
        Some(1) => Ecn::Ect1,
        Some(_) => Ecn::Ect0,
    }
}

/// Writes the record in the format of `holdfast replay`.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_csv(out: &mut impl Write, tape: &Tape, spec: &SwitchSpec, stations: &Stations) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for Traced { time_ns, step, .. } in tape.steps(spec, stations) {
        let (event, frame, ecn) = match step {
            Step::Arrive(frame) => ("arrive", frame, frame.ecn.label()),
            // A departing frame with CE may have arrived with another codepoint. A replay checks departures by the
            // codepoint at arrival.
            Step::Depart(frame) => ("depart", frame, if frame.ecn == Ecn::Ce { "" } else { frame.ecn.label() }),
            Step::Pfc(_) | Step::Refused { .. } => continue,
        };
        let Frame { port, class, bytes, egress, .. } = frame;
        let (port, egress) = (&spec.ports[port].name, &spec.ports[egress].name);
        writeln!(out, "{time_ns},{event},{port},{class},{bytes},{egress},{ecn}")?;
    }
    Ok(())
}
