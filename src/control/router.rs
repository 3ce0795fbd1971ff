//! The thread of the router's control plane: it takes punted frames from the lcores, injects the router's frames, and
//! gives the lcores new tables.

use std::sync::Arc;
use std::sync::mpsc::Receiver as Requests;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::kernel::Kernel;
use super::{RunError, setup};
use crate::config::Config;
use crate::dataplane::handoff::exception::{ExceptionLink, ExceptionPort, exception_channel};
use crate::dataplane::handoff::mailbox::{Receiver, Sender, mailbox};
use crate::dataplane::spec::SwitchSpec;
use crate::dataplane::{Counters, LcoreControl};
use crate::dpdk::RteFib;
use crate::route::{FibWriter, InjectTo, RouteTable};
use crate::router::handle::{Request, RouterHandle};
use crate::router::{Outgoing, Published, Router};
use crate::stats::Current;
use crate::sync::{AtomicBool, Ordering};
use crate::units::Nanos;

/// Sleep between two looks at the rings while frames come, and while none come.
const BUSY: Duration = Duration::from_micros(200);
const IDLE: Duration = Duration::from_millis(1);
/// Time between two looks at the timers of neighbours, and between two states for observers.
const TICK: Duration = Duration::from_millis(100);
/// Shortest time between two updates of the tables: changes in between go together.
const UPDATE: Duration = Duration::from_millis(10);
/// Punted frames of one lcore in one look, so that timers and requests have their turn in a flood.
const FRAMES: usize = 64;
/// Time between two confirmations of neighbours that never expire in Linux. FRR gives a link's router such an entry
/// (169.254.0.1), which outlives the link, while the router forgets its neighbours with it.
const REFRESH: Duration = Duration::from_millis(200);
/// Requests in one look.
const REQUESTS: usize = 64;

/// The lcores' ends of the router.
pub(super) struct LcoreEnd {
    pub exceptions: ExceptionPort,
    pub tables: Receiver<Arc<RouteTable>>,
}

/// The router's ends towards the lcores, before the thread runs.
pub(super) struct RouterLinks {
    links: Vec<ExceptionLink>,
    tables: Vec<Sender<Arc<RouteTable>>>,
    /// The lcore that injects frames for each port.
    owners: Vec<u8>,
}

/// The running thread.
pub(super) struct RouterThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Creates the ends of the router of `spec` towards its lcores.
pub(super) fn links(spec: &SwitchSpec) -> (RouterLinks, Vec<LcoreEnd>) {
    let longest = spec.ports.iter().map(|port| usize::from(port.mtu)).max().unwrap_or(1500) + 14 + 8;
    let (mut links, mut tables, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..spec.lcores {
        let ((exceptions, link), (sender, receiver)) = (exception_channel(longest), mailbox());
        links.push(link);
        tables.push(sender);
        ends.push(LcoreEnd { exceptions, tables: receiver });
    }
    (RouterLinks { links, tables, owners: spec.ports.iter().map(|port| port.lcore).collect() }, ends)
}

/// The router before its thread runs.
pub(super) struct Prepared {
    router: Router,
    links: RouterLinks,
    handle: RouterHandle,
    requests: Requests<Request>,
    kernel: Option<Kernel>,
}

/// Creates the router of `config` and the lcores' ends of it; `None` if the switch only bridges.
pub(super) fn prepare(config: &Config, ports: &setup::Ports) -> Result<Option<(Prepared, Vec<LcoreEnd>)>, RunError> {
    let Some(routing) = &config.switch.routing else { return Ok(None) };
    let (links, ends) = links(&config.switch);
    let fib = |name| RteFib::create(&ports.eal, name, routing.fib);
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(fib("fib0")?), Arc::new(fib("fib1")?)];
    let (handle, requests) = RouterHandle::new();
    let mut router = Router::new(routing, fibs, Nanos(1));
    let kernel = Kernel::open(routing)?;
    if kernel.is_some() {
        router.leave_answers_to_kernel();
    }
    Ok(Some((Prepared { router, links, handle, requests, kernel }, ends)))
}

impl Prepared {
    /// Access to the router. Requests wait for the start of the thread.
    pub fn handle(&self) -> RouterHandle {
        self.handle.clone()
    }

    /// Starts the thread, which publishes the router's state for the observers of `current`.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(self, control: &Arc<LcoreControl>, current: &Current) -> std::io::Result<RouterThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let switch_view = current.get();
        let published = (switch_view.router.clone().unwrap_or_default(), switch_view.counters.clone());
        let worker = Worker::new(self, control.clone(), (stop.clone(), published));
        let thread = std::thread::Builder::new().name("router".to_owned()).spawn(move || worker.run())?;
        Ok(RouterThread { stop, thread })
    }
}

impl RouterThread {
    /// Ends the thread.
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the thread has been printed, and the switch ends anyway.
        let _ = self.thread.join();
    }
}

/// The ways of frames from and to the lcores.
struct Injector {
    links: Vec<ExceptionLink>,
    owners: Vec<u8>,
}

impl Injector {
    /// Sends a frame by the lcore that owns its port, or by the first for all ports of a VLAN. Returns false if every
    /// buffer is in use, as while the lcore stands still.
    fn inject(&mut self, frame: &Outgoing) -> bool {
        let lcore = match frame.to {
            InjectTo::Port(port) => self.owners.get(usize::from(port)).copied().unwrap_or(0),
            InjectTo::Vlan(_) => self.owners.first().copied().unwrap_or(0),
        };
        let link = self.links.get_mut(usize::from(lcore));
        link.is_some_and(|link| link.inject(&frame.bytes, frame.to, frame.vlan))
    }
}

struct Worker {
    router: Router,
    /// Linux, if it answers for the router.
    kernel: Option<Kernel>,
    lcores: Injector,
    tables: Vec<Sender<Arc<RouteTable>>>,
    requests: Requests<Request>,
    control: Arc<LcoreControl>,
    stop: Arc<AtomicBool>,
    start: Instant,
    /// The tables that the lcores route by, or are about to. Kept, so that no lcore frees them.
    current: Option<Arc<RouteTable>>,
    /// The tables before, while some lcore may still have them.
    previous: Option<Arc<RouteTable>>,
    is_underway: bool,
    updated: Instant,
    ticked: Instant,
    /// The state for observers, and the counters of adjacencies.
    published: (Arc<Published>, Arc<Counters>),
    refreshed: Instant,
}

impl Worker {
    fn new(
        Prepared { router, links, requests, kernel, .. }: Prepared,
        control: Arc<LcoreControl>,
        (stop, published): (Arc<AtomicBool>, (Arc<Published>, Arc<Counters>)),
    ) -> Self {
        let RouterLinks { links, tables, owners } = links;
        let now = Instant::now();
        Self {
            router,
            kernel,
            lcores: Injector { links, owners },
            tables,
            requests,
            control,
            stop,
            start: now,
            current: None,
            previous: None,
            is_underway: false,
            updated: now,
            ticked: now,
            published,
            refreshed: now,
        }
    }

    fn run(mut self) {
        while !self.stop.load(Ordering::Relaxed) {
            let moved = self.look();
            match &self.kernel {
                Some(kernel) if moved == 0 => kernel.wait(IDLE),
                _ => std::thread::sleep(if moved > 0 { BUSY } else { IDLE }),
            }
        }
    }

    /// Time on the router's clock. It begins above zero, which stands for never.
    fn now(&self) -> Nanos {
        Nanos(1 + self.start.elapsed().as_nanos().min(u128::from(u64::MAX) - 1) as u64)
    }

    /// Looks at everything once. Returns the number of frames and requests.
    fn look(&mut self) -> usize {
        let now = self.now();
        let up = self.control.links();
        self.router.set_links(up, now);
        if let Some(kernel) = &mut self.kernel {
            kernel.set_links(up);
        }
        let mut moved = self.serve_requests(now);
        moved += self.take_punted(now) + self.exchange_with_kernel(now);
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            self.router.tick(now);
            let (published, counters) = &self.published;
            published.publish(&self.router, |adjacency| counters.adjacency_frames(adjacency));
        }
        for frame in self.router.take_output() {
            // Each frame is an answer or a question that will be repeated.
            let _ = self.lcores.inject(&frame);
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

    fn take_punted(&mut self, now: Nanos) -> usize {
        let mut taken = 0;
        for link in &mut self.lcores.links {
            for _ in 0..FRAMES {
                let Some(frame) = link.receive() else { break };
                self.router.receive(&frame, now);
                if let Some(kernel) = &mut self.kernel {
                    kernel.deliver(&frame, &mut self.router);
                }
                link.give_back(frame);
                taken += 1;
            }
        }
        taken
    }

    /// Sends the frames of Linux, and takes its routes, addresses and neighbours.
    fn exchange_with_kernel(&mut self, now: Nanos) -> usize {
        let Some(kernel) = &mut self.kernel else { return 0 };
        let (router, lcores) = (&mut self.router, &mut self.lcores);
        if self.refreshed.elapsed() >= REFRESH {
            self.refreshed = Instant::now();
            kernel.refresh(router, now);
        }
        kernel.follow(router, now) + kernel.collect(router, |frame| lcores.inject(frame))
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
