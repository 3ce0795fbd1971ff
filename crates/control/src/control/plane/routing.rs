//! The router of the control plane: it takes punted frames, injects the router's frames, and gives the lcores new
//! tables.

use std::sync::Arc;
use std::sync::mpsc::Receiver as Requests;
use std::time::{Duration, Instant};

use super::Lcores;
use crate::config::Config;
use crate::control::kernel::Kernel;
use crate::control::{RunError, setup};
use crate::dpdk::RteFib;
use crate::plan::Counters;
use crate::plan::mailbox::{Receiver, Sender, mailbox};
use crate::route::{Attachment, FibWriter, InjectTo, PuntCause, PuntFrame, RouteTable};
use crate::router::handle::{Request, RouterHandle};
use crate::router::{Outgoing, Published, Router};
use crate::sets::PortSet;
use crate::stats::SwitchView;
use crate::units::Nanos;
use crate::wire::MacAddr;

/// Time between two looks at the timers of neighbours, and between two states for observers.
const TICK: Duration = Duration::from_millis(100);
/// Shortest time between two updates of the tables: changes in between go together.
const UPDATE: Duration = Duration::from_millis(10);
/// Time between two confirmations of neighbours that never expire in Linux. FRR gives a link's router such an entry
/// (169.254.0.1), which outlives the link, while the router forgets its neighbours with it.
const REFRESH: Duration = Duration::from_millis(200);
/// Requests in one look.
const REQUESTS: usize = 64;

/// The end of an lcore that receives tables.
pub(super) type TablesEnd = Receiver<Arc<RouteTable>>;

/// The router with its surroundings.
pub(super) struct Routing {
    router: Router,
    /// Linux, if it answers for the router.
    kernel: Option<Kernel>,
    /// Ports that bridge nothing.
    routed: PortSet,
    tables: Vec<Sender<Arc<RouteTable>>>,
    handle: RouterHandle,
    requests: Requests<Request>,
    /// The tables that the lcores route by, or are about to. Kept, so that no lcore frees them.
    current: Option<Arc<RouteTable>>,
    /// The tables before, while some lcore may still have them.
    previous: Option<Arc<RouteTable>>,
    is_underway: bool,
    updated: Instant,
    ticked: Instant,
    /// The state for observers, and the counters of adjacencies.
    published: Option<(Arc<Published>, Arc<Counters>)>,
    refreshed: Instant,
}

impl Routing {
    /// Creates the router of `config`, and the lcores' ends of its tables; `None` if the switch only bridges.
    pub fn prepare(config: &Config, ports: &setup::Ports) -> Result<Option<(Self, Vec<TablesEnd>)>, RunError> {
        let Some(routing) = &config.switch.routing else { return Ok(None) };
        let fib = |name| RteFib::create(&ports.eal, name, routing.fib);
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(fib("fib0")?), Arc::new(fib("fib1")?)];
        let (handle, requests) = RouterHandle::new();
        let mut router = Router::new(routing, fibs, Nanos(1));
        router.set_bridge_ports(|port| config.switch.lags.bridge_port(port));
        let kernel = Kernel::open(routing, &mut router)?;
        let (tables, receivers) = (0..config.switch.lcores).map(|_| mailbox()).unzip();
        let ports = routing.interfaces.iter().filter_map(|interface| match interface.attachment {
            Attachment::Port(port) => Some(usize::from(port)),
            Attachment::Vlan => None,
        });
        let lags = &config.switch.lags;
        let members = |port: usize| lags.group_of(port).map_or(PortSet::only(port), |group| group.ports);
        let routed = ports.fold(PortSet::EMPTY, |all, port| all | members(port));
        let now = Instant::now();
        let routing = Self {
            router,
            kernel,
            routed,
            tables,
            handle,
            requests,
            current: None,
            previous: None,
            is_underway: false,
            updated: now,
            ticked: now,
            published: None,
            refreshed: now,
        };
        Ok(Some((routing, receivers)))
    }

    /// Access to the router.
    pub fn handle(&self) -> RouterHandle {
        self.handle.clone()
    }

    /// Publishes the router's state for the observers of `switch_view`, at once and from now on.
    pub fn observe(&mut self, switch_view: &SwitchView) {
        self.published = Some((switch_view.router.clone().unwrap_or_default(), switch_view.counters.clone()));
        self.publish();
    }

    fn publish(&self) {
        if let Some((published, counters)) = &self.published {
            published.publish(&self.router, |adjacency| counters.adjacency_frames(adjacency));
        }
    }

    /// Waits for a frame of Linux, for at most `longest`.
    pub fn wait(&self, longest: Duration) {
        match &self.kernel {
            Some(kernel) => kernel.wait(longest),
            None => std::thread::sleep(longest),
        }
    }

    /// Takes the links that are up, and serves requests. Returns the number of requests.
    pub fn begin(&mut self, up: PortSet, now: Nanos) -> usize {
        self.router.set_links(up, now);
        if let Some(kernel) = &mut self.kernel {
            kernel.set_links(up);
        }
        self.serve_requests(now)
    }

    /// Takes a punted frame. LLDP belongs to a link, so that only a routed port has a tap for it.
    pub fn take(&mut self, frame: &PuntFrame, now: Nanos) {
        if frame.cause == PuntCause::Lldp && !self.routed.contains(frame.port.into()) {
            return;
        }
        let is_for_linux = self.router.receive(frame, now);
        if let Some(kernel) = self.kernel.as_mut().filter(|_| is_for_linux) {
            kernel.deliver(frame, &mut self.router);
        }
    }

    /// Exchanges frames and tables with Linux, acts on the time, sends frames, and updates the tables of the lcores.
    /// Returns the number of frames. Ports `own_lldp` take no LLDP of Linux.
    pub fn act(&mut self, lcores: &mut Lcores, own_lldp: PortSet, now: Nanos) -> usize {
        let mut moved = self.exchange_with_kernel(lcores, own_lldp, now);
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            self.router.tick(now);
            if let Some((_, counters)) = &self.published {
                self.router.note_traffic(now, |adjacency| counters.adjacency_frames(adjacency));
            }
            self.publish();
        }
        for frame in self.router.take_output() {
            // Each frame is an answer or a question that will be repeated.
            let _ = lcores.inject(&frame.bytes, frame.to, frame.vlan);
            moved += 1;
        }
        self.update();
        moved
    }

    fn serve_requests(&mut self, now: Nanos) -> usize {
        let mut served = 0;
        while served < REQUESTS
            && let Ok(request) = self.requests.try_recv()
        {
            request(&mut self.router, now);
            served += 1;
        }
        if served > 0
            && let Some(kernel) = &mut self.kernel
        {
            kernel.configure(&self.router);
        }
        served
    }

    /// Sends the frames of Linux, and takes its routes, addresses and neighbours.
    fn exchange_with_kernel(&mut self, lcores: &mut Lcores, own_lldp: PortSet, now: Nanos) -> usize {
        let Some(kernel) = &mut self.kernel else { return 0 };
        let router = &mut self.router;
        if self.refreshed.elapsed() >= REFRESH {
            self.refreshed = Instant::now();
            kernel.refresh(router, now);
        }
        let inject =
            |frame: &Outgoing| !is_other_lldp(frame, own_lldp) && lcores.inject(&frame.bytes, frame.to, frame.vlan);
        kernel.follow(router, now) + kernel.collect(router, now, inject)
    }

    /// Gives the lcores new tables, once they have all taken the last ones.
    fn update(&mut self) {
        if self.is_underway && self.tables.iter_mut().all(Sender::is_idle) {
            self.is_underway = false;
            self.previous = None;
            self.router.settle();
        }
        if self.is_underway || self.updated.elapsed() < UPDATE {
            return;
        }
        let Some(table) = self.router.update() else { return };
        self.updated = Instant::now();
        for sender in &mut self.tables {
            let is_sent = sender.send(Box::new(table.clone())).is_ok();
            debug_assert!(is_sent, "the lcore has taken the tables before");
        }
        self.previous = self.current.replace(table);
        self.is_underway = true;
    }
}

/// Whether a frame of Linux is LLDP for a link that has an agent, or for a VLAN, which has no link.
fn is_other_lldp(frame: &Outgoing, own_lldp: PortSet) -> bool {
    let has_agent = match frame.to {
        InjectTo::Port(port) | InjectTo::Link(port) => own_lldp.contains(port.into()),
        InjectTo::Vlan(_) => true,
    };
    has_agent && frame.bytes.starts_with(&MacAddr::LLDP.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lldp_of_linux_leaves_only_by_a_routed_port_without_an_agent() {
        let frame = |to, dst: MacAddr| Outgoing { bytes: dst.0.to_vec(), to, vlan: 7 };
        let own = PortSet::only(1);
        assert!(!is_other_lldp(&frame(InjectTo::Port(0), MacAddr::LLDP), own));
        assert!(is_other_lldp(&frame(InjectTo::Port(1), MacAddr::LLDP), own));
        assert!(is_other_lldp(&frame(InjectTo::Vlan(7), MacAddr::LLDP), own));
        assert!(!is_other_lldp(&frame(InjectTo::Vlan(7), MacAddr::BROADCAST), own));
    }
}
