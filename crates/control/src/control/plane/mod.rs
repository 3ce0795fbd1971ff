//! The thread of the control plane: it takes punted frames from the lcores, and sends the frames of the router, of LLDP
//! and of LACP by them.

mod lacp;
mod lldp;
mod openings;
mod routing;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::lacp::LacpThread;
use self::lldp::LldpThread;
pub(super) use self::lldp::{settings as lldp_settings, system_name};
use self::routing::{Routing, TablesEnd};
use super::{RunError, setup};
use crate::config::Config;
use crate::forward::LagsSpec;
use crate::lldp::Board;
use crate::plan::exception::{ExceptionLink, ExceptionPort, exception_channel};
use crate::plan::own_probes::OwnProbes;
use crate::plan::spec::SwitchSpec;
use crate::plan::{Counters, LcoreControl};
use crate::pulse::Pulse;
use crate::route::{InjectTo, PuntFrame};
use crate::router::handle::RouterHandle;
use crate::sets::PortSet;
use crate::stats::SwitchView;
use crate::sync::{AtomicBool, Ordering};
use crate::units::Nanos;

/// Name of the thread.
const NAME: &str = "control-plane";
/// Sleep between two looks at the rings while frames come.
const BUSY: Duration = Duration::from_micros(200);
/// Sleep while no frames come, with a router and without one.
const IDLE_ROUTER: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(20);
/// Punted frames of one lcore in one look, so that timers and requests have their turn in a flood.
const FRAMES: usize = 64;
/// Longest time for the last frames to leave, and polls of each lcore that this takes: one enqueues and sends them.
const SHUTDOWN_TIME: Duration = Duration::from_millis(300);
const SHUTDOWN_POLLS: u64 = 3;
/// Longest wait for the end of the thread.
const END_TIME: Duration = Duration::from_secs(2);
/// Longest frame of a link: an LLDP data unit is no longer than the usual MTU.
const LINK_FRAME: usize = 1500 + 14 + 8;

/// The lcores' ends of the control plane.
pub(super) struct LcoreEnd {
    pub exceptions: ExceptionPort,
    /// The own probes of loops.
    pub probes: Arc<OwnProbes>,
    /// Tables of routes; `None`: the switch only bridges.
    pub tables: Option<TablesEnd>,
}

/// The control plane before its thread runs.
pub(super) struct Prepared {
    lcores: Lcores,
    routing: Option<Routing>,
    lldp: LldpThread,
    lacp: Option<LacpThread>,
    lags: LagsSpec,
}

/// The shutdown of the thread.
#[derive(Debug, Default)]
struct Shutdown {
    /// The peers are to be told that the switch ends.
    is_wanted: AtomicBool,
    /// The lcores have the frames that tell it.
    is_announced: AtomicBool,
    /// The thread is to end.
    stop: AtomicBool,
}

/// The running thread.
pub(super) struct PlaneThread {
    shutdown: Arc<Shutdown>,
    thread: JoinHandle<()>,
}

/// Creates the control plane of `config` and the lcores' ends of it; `None` if the switch does not route and no port
/// has a peer that the control plane could talk to.
pub(super) fn prepare(
    config: &Config,
    ports: &setup::Ports,
    program: &str,
) -> Result<Option<(Prepared, Vec<LcoreEnd>)>, RunError> {
    if !config.has_control_plane() {
        return Ok(None);
    }
    let (lcores, exceptions) = Lcores::new(&config.switch);
    let (routing, mut tables) = Routing::prepare(config, ports)?.unzip();
    let tables: &mut dyn Iterator<Item = _> = match &mut tables {
        Some(tables) => &mut tables.drain(..).map(Some),
        None => &mut std::iter::repeat_with(|| None),
    };
    let (lldp, lacp) = (LldpThread::new(config, program), LacpThread::new(config));
    let ends = exceptions.into_iter().zip(tables).map(|(exceptions, tables)| LcoreEnd {
        exceptions,
        probes: lldp.own_probes(),
        tables,
    });
    let ends = ends.collect();
    Ok(Some((Prepared { lcores, routing, lldp, lacp, lags: config.switch.lags.clone() }, ends)))
}

impl Prepared {
    /// Access to the router. Requests wait for the start of the thread.
    pub fn router(&self) -> Option<RouterHandle> {
        self.routing.as_ref().map(Routing::handle)
    }

    /// The state of LLDP.
    fn lldp(&self) -> Arc<Board> {
        self.lldp.board()
    }

    /// The state of LACP; `None` if there are no link aggregation groups.
    fn lacp(&self) -> Option<Arc<crate::lacp::Board>> {
        self.lacp.as_ref().map(LacpThread::board)
    }

    /// Publishes the state of the plane for the observers of `switch_view`.
    pub fn observe(&mut self, switch_view: &mut SwitchView) {
        switch_view.lldp = Some(self.lldp());
        switch_view.lacp = self.lacp();
        if let Some(routing) = &mut self.routing {
            routing.observe(switch_view);
        }
    }

    /// Starts the thread. The lcores write `counters`.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(self, control: &Arc<LcoreControl>, counters: &Arc<Counters>) -> std::io::Result<PlaneThread> {
        let shutdown = Arc::new(Shutdown::default());
        let Self { lcores, routing, lldp, lacp, lags } = self;
        let worker = Worker {
            pulse: Pulse::start(NAME),
            lcores,
            routing,
            lldp,
            lacp,
            lags,
            control: control.clone(),
            counters: counters.clone(),
            shutdown: shutdown.clone(),
            start: Instant::now(),
        };
        let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(move || worker.run())?;
        Ok(PlaneThread { shutdown, thread })
    }
}

impl PlaneThread {
    /// Has the peers told that the switch ends, by its lcores, which must still run.
    pub fn announce_shutdown(&self, counters: &Counters) {
        self.shutdown.is_wanted.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let end = Instant::now() + SHUTDOWN_TIME;
        wait_until(end, || self.shutdown.is_announced.load(Ordering::Relaxed));
        let lcores = &counters.lcores;
        let before: Vec<u64> = lcores.iter().map(|lcore| lcore.polls.get()).collect();
        wait_until(end, || lcores.iter().zip(&before).all(|(now, before)| now.polls.get() - before >= SHUTDOWN_POLLS));
    }

    /// Ends the thread. One that hangs is left, so that the switch ends.
    pub fn end(self) {
        self.shutdown.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // A panic of the thread has been printed, and the switch ends anyway.
        wait_until(Instant::now() + END_TIME, || self.thread.is_finished());
        if self.thread.is_finished() {
            let _ = self.thread.join();
        }
    }
}

/// Waits until `is_done`, but not beyond `end`.
fn wait_until(end: Instant, is_done: impl Fn() -> bool) {
    while !is_done() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The rings of frames from and to the lcores.
struct Lcores {
    links: Vec<ExceptionLink>,
    /// The lcore that injects frames for each port.
    owners: Vec<u8>,
}

impl Lcores {
    /// Creates the rings to the lcores of `spec`, and their ends.
    fn new(spec: &SwitchSpec) -> (Self, Vec<ExceptionPort>) {
        let mtus = spec.ports.iter().filter(|_| spec.routing.is_some()).map(|port| usize::from(port.mtu) + 14 + 8);
        let longest = mtus.max().unwrap_or_default().max(LINK_FRAME);
        let (ends, links) = (0..spec.lcores).map(|_| exception_channel(longest)).unzip();
        (Self { links, owners: spec.ports.iter().map(|port| port.lcore).collect() }, ends)
    }

    /// Sends a frame by the lcore that owns its port, or by the first for all ports of a VLAN. Returns false if every
    /// buffer is in use, as while the lcore stands still.
    fn inject(&mut self, bytes: &[u8], to: InjectTo, vlan: u16) -> bool {
        let lcore = match to {
            InjectTo::Port(port) | InjectTo::Link(port) => self.owners.get(usize::from(port)).copied().unwrap_or(0),
            InjectTo::Vlan(_) => self.owners.first().copied().unwrap_or(0),
        };
        let link = self.links.get_mut(usize::from(lcore));
        link.is_some_and(|link| link.inject(bytes, to, vlan))
    }

    /// Passes punted frames to `take`. Returns their number.
    fn punted(&mut self, mut take: impl FnMut(&PuntFrame)) -> usize {
        let mut taken = 0;
        for link in &mut self.links {
            for _ in 0..FRAMES {
                let Some(frame) = link.receive() else { break };
                take(&frame);
                link.give_back(frame);
                taken += 1;
            }
        }
        taken
    }
}

struct Worker {
    pulse: Pulse,
    lcores: Lcores,
    routing: Option<Routing>,
    lldp: LldpThread,
    lacp: Option<LacpThread>,
    lags: LagsSpec,
    control: Arc<LcoreControl>,
    counters: Arc<Counters>,
    shutdown: Arc<Shutdown>,
    start: Instant,
}

impl Worker {
    fn run(mut self) {
        while !self.shutdown.stop.load(Ordering::Relaxed) {
            self.pulse.beat();
            let moved = self.look();
            match &self.routing {
                _ if moved > 0 || self.lacp.as_ref().is_some_and(LacpThread::is_opening) => std::thread::sleep(BUSY),
                Some(routing) => routing.wait(IDLE_ROUTER),
                None => std::thread::park_timeout(IDLE),
            }
        }
    }

    /// Time on the clock of the thread. It begins above zero, which stands for never.
    fn now(&self) -> Nanos {
        Nanos(1 + self.start.elapsed().as_nanos().min(u128::from(u64::MAX) - 1) as u64)
    }

    /// Passes the links to LACP, or has it leave its groups. Returns the active members.
    fn follow_members(&mut self, up: PortSet, is_last: bool, now: Nanos) -> PortSet {
        let Some(lacp) = &mut self.lacp else { return PortSet::EMPTY };
        lacp.set_links(&self.control, up, now);
        lacp.set_leaving(self.control.leaving(), now);
        if is_last {
            lacp.stop(now);
        }
        self.lldp.set_aggregated(lacp.active(), now);
        lacp.active()
    }

    /// Looks at everything once. Returns the number of frames and requests.
    fn look(&mut self) -> usize {
        let (now, up) = (self.now(), self.control.links());
        self.lldp.set_links(up, now);
        let is_last = self.shutdown.is_wanted.load(Ordering::Relaxed);
        if is_last {
            self.lldp.stop(now);
        }
        let active = self.follow_members(up, is_last, now);
        // A group is one port to the router.
        let bridge_ports = self.lags.bridge_ports_up(up, active);
        self.lldp.set_bridge_ports(&self.lags, bridge_ports, up & active);
        let mut moved = self.routing.as_mut().map_or(0, |routing| routing.begin(bridge_ports, now));
        let Self { lcores, routing, lldp, lacp, .. } = self;
        moved += lcores.punted(|frame| {
            let is_taken = lldp.take(frame, now) || lacp.as_mut().is_some_and(|lacp| lacp.take(frame, now));
            if let Some(routing) = routing.as_mut().filter(|_| !is_taken) {
                routing.take(frame, now);
            }
        });
        if let Some(routing) = routing {
            moved += routing.act(lcores, lldp.ports(), now);
        }
        lldp.tick(now);
        self.control.set_blocked(lldp.blocked(), lldp.looped());
        moved += lldp.send(lcores);
        if let Some(lacp) = lacp {
            lacp.tick(&self.control, &self.counters, now);
            moved += lacp.send(lcores);
        }
        self.shutdown.is_announced.store(is_last, Ordering::Relaxed);
        moved
    }
}
