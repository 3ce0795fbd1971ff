//! Virtual hosts: senders and receivers of RoCE-like traffic on in-process ports. Each obeys PFC unless configured
//! otherwise.
//!
//! A host behaves like a NIC and its driver: it paces its link and obeys pause frames with the same timers as the
//! switch. It checks each received frame, so that it detects loss, reordering, duplication and corruption end to end,
//! independently of the switch's counters.
//!
//! # Example
//!
//! ```
//! use holdfast_edges::hosts::Hosts;
//!
//! let config = holdfast_config::config::embedded();
//! let hosts = Hosts::new(&config.hosts, 1_000_000_000);
//! assert_eq!(hosts.counters().hosts.len(), config.hosts.len());
//! ```

pub mod counters;
mod flow;
pub mod frame;
mod host;
pub mod sequence;
pub mod spec;
#[cfg(test)]
mod tests;

pub use counters::{FlowInfo, FlowTally, HostCounters, HostTally};
pub use spec::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec};

use std::collections::BTreeSet;
use std::sync::Arc;

use flow::{Flow, Phases, to_ticks};
use frame::{Station, Template};
use host::Host;
use sequence::SequenceWindow;

use crate::io::Ports;
use crate::plan::Companion;
use crate::qos::Shaper;
use crate::sync::{AtomicUsize, Ordering};
use crate::units::{Nanos, Ticks};

/// Longest interval between announcements of a host. A quarter of the switch's ageing time replaces it if that is
/// shorter. The switch drops lossless frames to a station that it has forgotten.
pub const ANNOUNCE_PERIOD: Nanos = Nanos(60_000_000_000);

/// Flows start this long after the last host has announced itself, so that the switch has learned it.
pub const SETTLE: Nanos = Nanos(1_000_000);

/// Replaces [`SETTLE`] for hosts on their own thread: the switch may be kept from polling during this time.
const SETTLE_APART: Nanos = Nanos(100_000_000);
/// Maximum number of polls of each host at the end. They receive more than the largest ring holds.
const LAST_POLLS: usize = 64;

/// Prevents the flows of virtual hosts from starting until it is dropped.
#[derive(Debug)]
pub struct StartGate {
    unannounced: Arc<AtomicUsize>,
}

impl Drop for StartGate {
    fn drop(&mut self) {
        self.unannounced.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The virtual hosts as one thread polls them.
#[derive(Debug)]
pub struct Hosts {
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    counters: Arc<HostCounters>,
    announce_period: u64,
    settle: u64,
    /// Whether this thread polls each host, by host number.
    mine: Vec<bool>,
    /// Number of threads whose hosts have not all announced themselves yet, plus the number of closed gates.
    unannounced: Arc<AtomicUsize>,
    has_announced: bool,
    /// Start time of the flows; `None` until the hosts of all threads have announced themselves.
    start: Option<Ticks>,
    stopped: bool,
}

impl Hosts {
    /// Creates hosts on a clock of `hz` ticks per second. Host n uses port n of the [`Ports`] it is polled with.
    ///
    /// # Panics
    /// If a flow has a target host that does not exist or a class above 7, or if there are more than
    /// [`frame::MAX_FLOWS`] flows. The configuration refuses all three.
    #[must_use]
    pub fn new(specs: &[HostSpec], hz: u64) -> Self {
        Self::spread(specs, hz, &vec![0; specs.len()], 1).remove(0)
    }

    /// Creates hosts that are spread over `threads`: thread `thread_of[n]` polls host n. Each part knows all flows,
    /// because another thread may poll their receivers. All parts share the same counters.
    ///
    /// # Panics
    /// In the cases of [`Hosts::new`], and if a host is not assigned to one of the threads.
    #[must_use]
    pub fn spread(specs: &[HostSpec], hz: u64, thread_of: &[usize], threads: usize) -> Vec<Self> {
        assert!(
            thread_of.len() == specs.len() && thread_of.iter().all(|&thread| thread < threads),
            "each host needs one of the threads"
        );
        let counters = Arc::new(new_counters(specs, hz));
        let unannounced = Arc::new(AtomicUsize::new(threads));
        let part = |thread| {
            let mine = thread_of.iter().map(|&of| of == thread).collect();
            Self::part(specs, hz, mine, counters.clone(), unannounced.clone())
        };
        (0..threads).map(part).collect()
    }

    fn part(
        specs: &[HostSpec],
        hz: u64,
        mine: Vec<bool>,
        counters: Arc<HostCounters>,
        unannounced: Arc<AtomicUsize>,
    ) -> Self {
        let (mut hosts, mut flows) = (Vec::new(), Vec::new());
        for (index, spec) in specs.iter().enumerate() {
            let first = flows.len();
            flows.extend((first..).zip(&spec.flows).map(|(number, flow)| new_flow(number, flow, spec, specs, hz)));
            hosts.push(Host::new(index, spec, first..flows.len(), &vlans_of(index, specs), hz));
        }
        assert!(flows.len() <= frame::MAX_FLOWS, "more flows than UDP source ports");
        Self {
            hosts,
            flows,
            counters,
            announce_period: to_ticks(ANNOUNCE_PERIOD, hz),
            settle: to_ticks(SETTLE, hz),
            mine,
            unannounced,
            has_announced: false,
            start: None,
            stopped: false,
        }
    }

    /// Sets the announcement interval for a switch that forgets a station after `ageing`; zero means never.
    #[must_use]
    pub fn for_ageing(mut self, ageing: Nanos) -> Self {
        if ageing.0 > 0 {
            let period = Nanos((ageing.0 / 4).min(ANNOUNCE_PERIOD.0));
            self.announce_period = to_ticks(period, self.counters.hz).max(1);
        }
        self
    }

    /// Puts the hosts on links that lose a frame if the ring is full, like a wire, unless their queues keep frames.
    /// This suits hosts on their own thread, which run independently of the switch. Hosts polled beside the switch
    /// would lose frames whenever the machine stalls the switch, so they wait instead.
    #[must_use]
    pub fn on_wires(mut self) -> Self {
        self.hosts.iter_mut().for_each(Host::connect_wire);
        self.settle = to_ticks(SETTLE_APART, self.counters.hz);
        self
    }

    /// Closes a gate: no flow of any thread starts until it is dropped.
    #[must_use]
    pub fn close_gate(&self) -> StartGate {
        self.unannounced.fetch_add(1, Ordering::Relaxed);
        StartGate { unannounced: self.unannounced.clone() }
    }

    /// Returns the counters of the hosts, which any thread may read.
    #[must_use]
    pub fn counters(&self) -> Arc<HostCounters> {
        self.counters.clone()
    }

    /// Receives all arrived frames at each host, then sends the frames that are due at `now`.
    pub fn poll<P: Ports>(&mut self, io: &mut P, now: Ticks) {
        let started = !self.stopped && self.start.is_some_and(|start| start <= now);
        let mut announced = true;
        let hosts = self.hosts.iter_mut().zip(&self.counters.hosts).zip(&self.mine);
        for ((host, tally), _) in hosts.filter(|(_, mine)| **mine) {
            host.receive(io, &mut self.flows, &self.counters, now);
            let paused = host.paused(tally, now);
            if self.stopped {
                continue;
            }
            announced &= host.announce(io, tally, self.announce_period, now);
            if started {
                host.send(io, &mut self.flows, &self.counters, paused, now);
            }
        }
        if self.start.is_none() && announced {
            self.begin(now);
        }
    }

    /// Records that the hosts of this thread have announced themselves. If those of all other threads have too, sets
    /// the start of the flows.
    #[cold]
    fn begin(&mut self, now: Ticks) {
        if !std::mem::replace(&mut self.has_announced, true) {
            self.unannounced.fetch_sub(1, Ordering::Relaxed);
        }
        if self.unannounced.load(Ordering::Relaxed) == 0 {
            self.start = Some(Ticks(now.0.saturating_add(self.settle)));
        }
    }

    /// Whether the hosts of this thread, polled at `now`, neither send nor count paused time until `until`.
    #[must_use]
    pub fn is_silent_until(&self, now: Ticks, until: Ticks) -> bool {
        // The start of the flows is unknown until all hosts have announced themselves.
        let Some(start) = self.start else { return false };
        let mut hosts = self.hosts.iter().zip(&self.mine).filter(|(_, mine)| **mine);
        hosts.all(|(host, _)| host.is_silent_until(&self.flows, start, now, until))
    }

    /// Stops sending: from now on polls only receive, so that the switch can drain.
    pub fn stop_sending(&mut self) {
        self.stopped = true;
    }

    /// Receives all arrived frames: hosts that had no CPU for a while have full rings. The number of polls is bounded,
    /// because a peer in another process may continue to send.
    pub fn receive_arrived<P: Ports>(&mut self, io: &mut P, now: Ticks) {
        let hosts = self.hosts.iter_mut().zip(&self.mine).filter(|(_, mine)| **mine);
        for (host, _) in hosts {
            let mut more = (0..LAST_POLLS).map(|_| host.receive(io, &mut self.flows, &self.counters, now));
            more.find(|more| !more);
        }
    }
}

/// Virtual hosts with their ends of the links, polled beside the switch.
pub struct HostsOn<P: Ports> {
    /// The hosts.
    pub hosts: Hosts,
    /// Their ports, in the order of the hosts.
    pub io: P,
}

impl<P: Ports> Companion for HostsOn<P> {
    #[inline]
    fn poll(&mut self, now: Ticks) {
        self.hosts.poll(&mut self.io, now);
    }

    fn fall_silent(&mut self) {
        self.hosts.stop_sending();
    }

    fn finish(&mut self, now: Ticks) {
        self.hosts.receive_arrived(&mut self.io, now);
    }

    fn is_silent_until(&self, now: Ticks, until: Ticks) -> bool {
        self.hosts.is_silent_until(now, until)
    }
}

/// Returns the VLANs in which host `index` sends or receives, where a switch must learn it. Untagged if it has no
/// flows.
fn vlans_of(index: usize, specs: &[HostSpec]) -> BTreeSet<Option<u16>> {
    let own = specs[index].flows.iter();
    let others = specs.iter().flat_map(|spec| &spec.flows).filter(|flow| flow.to == FlowTarget::Host(index));
    let vlans: BTreeSet<_> = own.chain(others).map(|flow| flow.vlan).collect();
    if vlans.is_empty() { [None].into() } else { vlans }
}

fn new_flow(number: usize, spec: &FlowSpec, from: &HostSpec, hosts: &[HostSpec], hz: u64) -> Flow {
    assert!(spec.class < 8 && spec.priority < 8, "a class above 7");
    let (to, station) = match spec.to {
        FlowTarget::Host(to) => (Some(to), Station { mac: hosts[to].mac, ip: hosts[to].ip }),
        FlowTarget::Station { mac, ip } => (None, Station { mac, ip }),
    };
    let template = Template::new(number as u16, spec, Station { mac: from.mac, ip: from.ip }, station);
    Flow {
        class: usize::from(spec.class),
        priority: usize::from(spec.priority),
        to,
        sequence: 0,
        // A flow makes up for as much time as its link: the flow's own rate must not allow a longer burst.
        pacer: Shaper::new(spec.rate, hz, host::slack(u64::from(template.frame_len()), spec.rate.0)),
        phases: Phases::new(spec.pattern, hz),
        window: SequenceWindow::new(),
        template,
    }
}

fn new_counters(specs: &[HostSpec], hz: u64) -> HostCounters {
    let host = |spec: &HostSpec| HostTally { name: spec.name.clone(), port: spec.port, ..HostTally::default() };
    let flow = |from: usize, spec: &FlowSpec| FlowInfo {
        from,
        to: if let FlowTarget::Host(to) = spec.to { Some(to) } else { None },
        kind: spec.kind,
        class: spec.class,
        frame_len: u32::from(spec.frame_len.max(frame::min_frame_len(spec.kind, spec.vlan.is_some()))),
        rate: spec.rate,
        pattern: spec.pattern,
    };
    let flows = specs.iter().enumerate().flat_map(|(from, spec)| spec.flows.iter().map(move |f| flow(from, f)));
    HostCounters { hz, hosts: specs.iter().map(host).collect(), flows: flows.map(FlowTally::new).collect() }
}
