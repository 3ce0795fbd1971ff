//! Runs a switch: from a configuration to frames, and back to an idle machine.
//!
//! The control thread sleeps most of the time. It controls the lcores by [`LcoreControl`] and reads their counters; the
//! packet path never waits for it.
//!
//! # Example
//!
//! ```
//! use holdfast_control::control::{self, RunOptions};
//!
//! let config = holdfast_config::config::embedded();
//! println!("{} MiB of packet memory", control::memory_mib(&config, false));
//! ```

mod api;
mod devices;
mod display;
mod error;
mod faulty;
mod flow_control;
mod idle;
mod interfaces;
mod kernel;
mod mirror;
pub mod nic_check;
mod notify;
mod plane;
mod protocol_lines;
mod reload;
mod resize;
mod setup;
mod signals;
mod start;
mod steering;
mod threads;
mod vhost;
mod watch;

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, Runtime};

pub use display::{EventFormat, Status};
pub use error::RunError;
pub use kernel::KernelError;
pub use reload::Again;

use self::api::Api;
use self::devices::Devices;
use self::faulty::{EndedLcore, LcorePorts};
use self::mirror::MirrorThread;
use self::plane::{LcoreEnd, PlaneThread};
use self::protocol_lines::Protocols;
use self::reload::{DeviceExchange, LcoreSenders, Reloader};
use self::signals::Signals;
use self::start::HeldHosts;
use self::threads::{Helpers, LateThreads};
use self::watch::Watch;
use crate::api::{History, Reloads};
use crate::config::{Config, settings};
use crate::dataplane::{Exchange, LiveConfig, Pipeline, Work};
use crate::dpdk::{self, EthIo, EthPort, Worker};
use crate::hosts::{Hosts, HostsOn};
use crate::mmu::BufferPools;
use crate::output::{self, Severity, Stream};
use crate::plan::exception::ExceptionPort;
use crate::plan::mailbox::{Receiver, mailbox};
use crate::plan::mirror::CopyFrame;
use crate::plan::{BuildFacts, Counters, LcoreControl, run_companion};
use crate::sets::PortSet;
use crate::stats::{Current, Report, SwitchView, http};
use crate::units::{Length, Nanos};

/// Time for a NIC to send the frames that were posted last. A full ring takes less at any rate from 10G up.
const FAREWELL_TIME: Duration = Duration::from_millis(2);
/// Random seeds of the forwarding database that are tried.
const FDB_SEEDS: u32 = 64;

/// Options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Duration of the run; `None` runs until SIGINT or SIGTERM.
    pub duration: Option<Duration>,
    /// Whether to print the report as JSON, and nothing else, to standard output.
    pub json: bool,
    /// Whether broken losslessness is an error.
    pub fail_on_loss: bool,
    /// Facts about the build, which metrics, LLDP and captures state.
    pub build: BuildFacts,
    /// Whether to print DPDK's log to standard error.
    pub verbose: bool,
    /// Directory in which the configurations by which the switch ran are kept; `None`: in memory.
    pub state: Option<PathBuf>,
    /// Longest time to wait until the kernel's interfaces of ports exist.
    pub interface_wait: Duration,
    /// How often to print the status.
    pub status: Status,
    /// The form of events on standard error.
    pub events: EventFormat,
}

/// The running workers: those of the switch, and that of the hosts if they have an lcore of their own.
struct Running {
    switch: Vec<Worker<EndedLcore>>,
    /// The pools of the buffer.
    pools: BufferPools,
    hosts: Option<Worker<HostsOn<EthIo>>>,
}

impl Running {
    /// Whether a worker has ended on its own, which only a panic causes.
    fn has_ended(&self) -> bool {
        self.switch.iter().any(Worker::is_finished) || self.hosts.iter().any(Worker::is_finished)
    }
}

/// Returns the memory in MiB that DPDK gets for `config`, in hugepages if `huge`.
#[must_use]
pub fn memory_mib(config: &Config, huge: bool) -> u32 {
    setup::PoolPlan::new(config).mib(huge)
}

/// Runs a switch by `config` until its duration ends or a signal arrives, and prints the report. `again` rereads the
/// configuration when a reload is requested.
///
/// # Errors
/// Returns an error if the switch cannot start or stop in order. With `fail_on_loss`, also if a lossless class lost
/// frames or was starved.
pub fn run(mut config: Config, options: RunOptions, again: Again) -> Result<(), RunError> {
    idle::check_cpu(&config)?;
    let runtime = crate::linux::runtime().map_err(RunError::Runtime)?;
    // Before DPDK starts, so that an address in use is found at once.
    let listener = config.metrics.map(listen).transpose()?;
    let mut api = Api::listen(&config, open_history(options.state.as_deref()))?;
    let mut signals = Signals::listen(&runtime).map_err(RunError::Runtime)?;
    if !runtime.block_on(interfaces::wait(&config, options.interface_wait, &mut signals)) {
        return Ok(());
    }
    let notifier = notify::Notifier::from_environment()?;
    let mut ports = setup::Ports::start(&config, options.verbose)?;
    let helpers = Helpers::start(&ports.eal)?;
    follow_devices(&mut config, &ports);
    let (counters, hz) = (Arc::new(Counters::of(&config.switch)), dpdk::hz(&ports.eal));
    let control = Arc::new(control(&config, hz));
    let hosts = hosts(&config, hz);
    let (mut plane, ends) = plane::prepare(&config, &ports, options.build.program)?.unzip();
    let faults = faulty::prepare(&config, hz);
    let (mirror, copies) = mirror::prepare(&config, &plane::system_name(&config), options.build.program);
    let mut switch_view = describe(&config, &ports, &counters);
    switch_view.build = options.build;
    observe(&mut switch_view, plane.as_mut(), &mirror, &hosts, faults.as_ref());
    let (devices, up, warnings) = Devices::start(&ports.ports, &switch_view);
    warnings.iter().for_each(|line| warn(line));
    let gate = hosts.first().filter(|_| hosts_must_wait(&ports, &config, up)).map(Hosts::close_gate);
    let current = Current::new(switch_view);
    control.set_links(up);
    serve(helpers.servers(), listener, &current).map_err(RunError::Runtime)?;
    let (reloads, asked) = Reloads::new();
    let handle = plane.as_ref().and_then(plane::Prepared::router);
    let observed = api::Observed { current: &current, router: handle.clone() };
    api.serve(helpers.servers(), &config, observed, &control, hz, reloads).map_err(RunError::Runtime)?;

    let (senders, receivers) = mailboxes(config.switch.lcores);
    let ends = ends.unwrap_or_default();
    let parts = Parts { devices: &devices, counters: &counters, control: &control, hz, receivers, ends, copies };
    let workers = launch(&mut ports, &config, parts, hosts, faults)?;
    let threads = Threads::start(plane, mirror, &control, &counters, hz).map_err(RunError::Runtime)?;
    helpers.serve();
    let (start, notifier) = beat(&runtime, &current, notifier, &counters).map_err(RunError::Runtime)?;
    let ports = Rc::new(RefCell::new(ports));
    let reloader = Reloader::new(config, again, senders, &ports, &current, &control, &workers.pools).with(
        handle,
        threads.mirror.handle(),
        api.history.clone(),
    );
    let watch = Watch {
        current: &current,
        ports: &ports,
        control: &control,
        workers: &workers,
        options: &options,
        api: &api,
        reloader,
        asked,
        devices,
        held: HeldHosts::new(gate, start),
        protocols: Protocols::default(),
        late: LateThreads::default(),
        start,
    };
    runtime.block_on(watch.run(&mut signals));
    let elapsed = start.elapsed();
    notifier.into_iter().for_each(notify::NotifierThread::stop);
    api.end(&runtime);
    end(workers, threads, &control, &counters)?;
    finish(&mut ports.borrow_mut(), &current.get(), elapsed, &options)
}

/// Lets the main thread show that it runs, and watches all threads for readiness and for systemd. Returns the time.
fn beat(
    runtime: &Runtime,
    current: &Current,
    notifier: Option<notify::Notifier>,
    counters: &Arc<Counters>,
) -> std::io::Result<(Instant, Option<notify::NotifierThread>)> {
    runtime.spawn(threads::main_beats());
    current.get().health.watch_threads();
    let notifier = notifier.map(|notifier| notifier.start(counters.clone())).transpose()?;
    Ok((Instant::now(), notifier))
}

/// Whether virtual hosts must not send yet, when the ports `up` have a link. A switch at the far end sees its link up
/// one look later, and until then it drops frames for it.
fn hosts_must_wait(ports: &setup::Ports, config: &Config, up: PortSet) -> bool {
    let down = PortSet::first(ports.ports.len()) - config.switch.shut_ports() - up;
    !down.is_empty() || ports.devices().any(EthPort::has_far_end)
}

/// The configurations of earlier starts in `directory`. If it cannot be used, they are kept until the switch ends.
fn open_history(directory: Option<&Path>) -> History {
    let Some(directory) = directory else { return History::default() };
    match History::open(&directory.join("history")) {
        Ok((history, warnings)) => {
            warnings.iter().for_each(|line| warn(line));
            history
        }
        Err(error) => {
            let directory = directory.display();
            warn(&format!("the history is kept until this switch ends: {directory}: {error}; name another `--state`"));
            History::default()
        }
    }
}

/// Prints a warning.
fn warn(line: &str) {
    output::tell(Severity::Warning, &format!("warning: {line}"));
}

/// Takes from the devices, and from the system, the settings that the configuration leaves to them.
fn follow_devices(config: &mut Config, ports: &setup::Ports) {
    use_own_addresses(config, ports);
    use_tx_queues(config, ports);
    // Hosts must not know which addresses share buckets.
    let random = RandomState::new();
    config.switch.seed_fdb((0..FDB_SEEDS).map(|number| random.hash_one(number)));
}

/// Gives each port its device's address, where the configuration gives it none.
fn use_own_addresses(config: &mut Config, ports: &setup::Ports) {
    for (index, (port, device)) in config.switch.ports.iter_mut().zip(&config.devices).enumerate() {
        if !device.has_mac {
            port.mac = ports.own_address(index).unwrap_or(port.mac);
        }
    }
    config.follow_ports();
}

/// Gives each port the transmit queues that its device has.
fn use_tx_queues(config: &mut Config, ports: &setup::Ports) {
    for ((port, &queues), device) in config.switch.ports.iter_mut().zip(&ports.tx_queues).zip(&config.devices) {
        port.tx_queues = queues;
        if queues < device.tx_queues {
            let (name, lcores) = (&port.name, config.switch.lcores);
            warn(&format!(
                "port {name}: its device has fewer transmit queues than the {lcores} lcores, or it is a virtio one with \
                 fewer receive queues; frames for it cross to the lcore of the port; write `tx_queues: 1` to accept that"
            ));
        }
    }
}

/// The switch by `config` on `ports`, for its observers.
fn describe(config: &Config, ports: &setup::Ports, counters: &Arc<Counters>) -> SwitchView {
    let mut switch_view = SwitchView::new(config.switch.clone(), counters.clone());
    switch_view.settings = Arc::new(settings::all(config));
    switch_view.mirror_config = config.mirror.clone();
    let small_packets = config.summary.small_packets;
    switch_view.links.iter_mut().for_each(|link| link.small_packets = small_packets);
    let mut switch_view = with_ports(switch_view, config, ports);
    let lcores = 0..usize::from(config.switch.lcores);
    switch_view.rests = lcores.map(|lcore| config.idle_of(lcore).map(|idle| idle.longest)).collect();
    switch_view.pools = ports.pools().into();
    switch_view
}

/// `switch_view` with cables, PFC standing and drivers of its ports by `config`.
fn with_ports(switch_view: SwitchView, config: &Config, ports: &setup::Ports) -> SwitchView {
    let mut switch_view = switch_view.with_cables(cables(config));
    for index in 0..config.switch.ports.len() {
        (switch_view.pfc[index], switch_view.witnesses[index]) = setup::Ports::pfc_standing(config, index);
        switch_view.blind[index] = ports.blind_driver(index);
    }
    switch_view
}

/// Cables and peers of the ports, as the headroom formula takes them.
fn cables(config: &Config) -> impl Iterator<Item = (Length, Option<Nanos>)> + '_ {
    config.devices.iter().map(|device| (device.cable, device.peer_response))
}

/// Adds the states that parts of the switch publish themselves.
fn observe(
    switch_view: &mut SwitchView,
    plane: Option<&mut plane::Prepared>,
    mirror: &mirror::Prepared,
    hosts: &[Hosts],
    faults: Option<&faulty::Prepared>,
) {
    if let Some(plane) = plane {
        plane.observe(switch_view);
    }
    switch_view.mirror = Some(mirror.board());
    switch_view.hosts = hosts.first().map(Hosts::counters);
    switch_view.faults = faults.map(|faults| faults.board.clone());
}

/// The orders of the lcores that `config` has, on a clock of `hz` ticks a second.
fn control(config: &Config, hz: u64) -> LcoreControl {
    let mut control = LcoreControl::new(usize::from(config.switch.lcores));
    if setup::hosts_apart(config) {
        control = control.with_companion_apart();
    }
    let delay = u128::from(config.lcores.poll_delay.0) * u128::from(hz) / 1_000_000_000;
    control.set_delay(u64::try_from(delay).unwrap_or(u64::MAX));
    control.set_shut(config.switch.shut_ports());
    control
}

/// The threads beside the lcores.
struct Threads {
    plane: Option<PlaneThread>,
    mirror: MirrorThread,
}

impl Threads {
    /// Starts the threads.
    fn start(
        plane: Option<plane::Prepared>,
        mirror: mirror::Prepared,
        control: &Arc<LcoreControl>,
        counters: &Arc<Counters>,
        hz: u64,
    ) -> std::io::Result<Self> {
        let plane = plane.map(|plane| plane.start(control, counters)).transpose()?;
        Ok(Self { plane, mirror: mirror.start(control, counters, dpdk::now, hz)? })
    }
}

/// Ends the lcores and the threads beside them. All of them end before an error of one is returned: a port must not be
/// stopped under an lcore.
fn end(workers: Running, threads: Threads, control: &LcoreControl, counters: &Counters) -> Result<(), RunError> {
    let Threads { plane, mirror } = threads;
    if let Some(plane) = &plane {
        plane.announce_shutdown(counters);
    }
    control.stop();
    let ended: Vec<_> = workers.switch.into_iter().map(Worker::join).collect();
    control.dismiss();
    let hosts_end = workers.hosts.map(Worker::join).transpose();
    // After the lcores: they may still read its tables.
    if let Some(plane) = plane {
        plane.end();
    }
    // It exports the copies of the drain.
    mirror.end();
    let works = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    hosts_end?;
    if let Some(name) = threads::panicked() {
        return Err(RunError::ThreadPanicked { name });
    }
    let refused: u64 = works.iter().map(|work| work.io.refused()).sum();
    if refused > 0 {
        warn(&format!("{refused} frames came in several buffers and were not forwarded"));
    }
    Ok(())
}

/// Creates the virtual hosts, one part for each lcore that polls some. Empty if no hosts are configured.
fn hosts(config: &Config, hz: u64) -> Vec<Hosts> {
    if config.hosts.is_empty() {
        return Vec::new();
    }
    let parts = Hosts::spread(&config.hosts, hz, &setup::parts_of_hosts(config), setup::host_parts(config));
    let parts = parts.into_iter().map(|hosts| hosts.for_ageing(config.switch.fdb.ageing));
    if setup::hosts_apart(config) { parts.map(Hosts::on_wires).collect() } else { parts.collect() }
}

/// Things that the lcores share with the control thread, and the ends of each.
struct Parts<'a> {
    devices: &'a Devices,
    counters: &'a Arc<Counters>,
    control: &'a Arc<LcoreControl>,
    hz: u64,
    receivers: Vec<LcoreReceivers>,
    ends: Vec<LcoreEnd>,
    copies: Vec<ExceptionPort<CopyFrame>>,
}

/// Starts every part of the switch on its own lcore. Parts of the hosts run beside it, unless they have their own lcore
/// too.
fn launch(
    ports: &mut setup::Ports,
    config: &Config,
    parts: Parts<'_>,
    hosts: Vec<Hosts>,
    faults: Option<faulty::Prepared>,
) -> Result<Running, RunError> {
    let (io, host_io) = ports.queues(config)?;
    let companions = hosts.into_iter().zip(host_io).map(|(hosts, io)| HostsOn { hosts, io }).collect();
    match faults {
        None => launch_on(ports, config, parts, companions, io),
        Some(faults) => launch_on(ports, config, parts, companions, faults.wrap(io)),
    }
}

/// Starts the parts on the ports `io`.
fn launch_on<I: LcorePorts>(
    ports: &setup::Ports,
    config: &Config,
    parts: Parts<'_>,
    companions: Vec<HostsOn<EthIo>>,
    io: Vec<I>,
) -> Result<Running, RunError> {
    let Parts { devices, counters, control, hz, receivers, ends, copies } = parts;
    let mut companions = companions.into_iter();
    // A host must not know which frames are sampled.
    let seed = RandomState::new().hash_one("samples") as u32;
    let mut pipelines = Pipeline::fleet(&config.switch, counters, hz, seed);
    for pipeline in &mut pipelines {
        for port in 0..config.switch.ports.len() {
            if let Some(steered) = devices.steered(port) {
                pipeline.steer(port, steered.queues, steered.is_complete);
            }
        }
    }
    let lcores = ports.eal.workers().to_vec();
    // `Eal::init` fails if DPDK starts fewer lcores than it was asked for.
    assert!(lcores.len() >= pipelines.len() + usize::from(setup::hosts_apart(config)), "too few lcores");
    let rests = (0..pipelines.len()).map(|lcore| faulty::resting(config, lcore, &ports.eal));
    let rests = rests.collect::<Result<Vec<_>, _>>()?;
    let mut running = Running { switch: Vec::new(), pools: pipelines[0].pools(), hosts: None };
    if setup::hosts_apart(config)
        && let (Some(companion), Some(lcore)) = (companions.next(), lcores.get(pipelines.len()))
    {
        let control = control.clone();
        running.hosts = Some(ports.eal.launch(*lcore, move || run_companion(companion, &control, dpdk::now))?);
    }
    let parts = pipelines.into_iter().zip(io).zip(rests).zip(receivers).zip(lcores);
    let (mut ends, mut copies) = (ends.into_iter(), copies.into_iter());
    for ((((mut pipeline, io), resting), receiver), lcore) in parts {
        let companion = companions.next();
        let route_tables = ends.next().and_then(|end| {
            pipeline.attach_exceptions(end.exceptions);
            pipeline.recognize_probes(end.probes);
            end.tables
        });
        copies.next().into_iter().for_each(|channel| pipeline.attach_mirror(channel));
        let work = Work {
            pipeline,
            scratch: Box::default(),
            io,
            companion,
            control: control.clone(),
            hz,
            resting,
            live_config: Some(receiver.settings),
            exchange: Some(exchange(receiver.exchanged)),
            route_tables,
        };
        match ports.eal.launch(lcore, move || faulty::run(work)) {
            Ok(worker) => running.switch.push(worker),
            Err(error) => {
                // The running workers are stopped, because dropping them would wait forever. The lcores that were not
                // started are given up.
                control.stop();
                (running.switch.len()..usize::from(config.switch.lcores)).for_each(|number| control.give_up(number));
                control.dismiss();
                return Err(error.into());
            }
        }
    }
    Ok(running)
}

/// The receivers of one lcore.
struct LcoreReceivers {
    settings: Receiver<LiveConfig>,
    exchanged: Receiver<DeviceExchange>,
}

/// The mailboxes of `lcores` lcores.
fn mailboxes(lcores: u8) -> (LcoreSenders, Vec<LcoreReceivers>) {
    let mut senders = LcoreSenders { settings: Vec::new(), exchanges: Vec::new() };
    let receivers = (0..lcores).map(|_| {
        let ((sender, settings), (exchange, exchanged)) = (mailbox(), mailbox());
        senders.settings.push(sender);
        senders.exchanges.push(exchange);
        LcoreReceivers { settings, exchanged }
    });
    let receivers = receivers.collect();
    (senders, receivers)
}

/// Exchanges the queues of ports of an lcore by those that come.
fn exchange<I: LcorePorts>(mut exchanged: Receiver<DeviceExchange>) -> Exchange<I> {
    Box::new(move |io: &mut I| exchanged.receive(|exchange| exchange.apply(io.plain_mut())))
}

fn listen(address: SocketAddr) -> Result<TcpListener, RunError> {
    let listener = TcpListener::bind(address).map_err(|error| RunError::Listen { address, error })?;
    let failed = |error| RunError::Listen { address, error };
    listener.set_nonblocking(true).map_err(failed)?;
    if address.port() == 0 {
        let address = listener.local_addr().map_err(failed)?;
        output::tell(Severity::Info, &format!("note: metrics at http://{address}/metrics"));
    }
    Ok(listener)
}

/// Serves metrics, if they are wanted, for as long as the runtime runs.
fn serve(runtime: &Handle, listener: Option<TcpListener>, current: &Arc<Current>) -> std::io::Result<()> {
    let Some(listener) = listener else { return Ok(()) };
    let _inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    runtime.spawn(http::serve(listener, current.clone()));
    Ok(())
}

/// Stops the ports and prints the report.
fn finish(
    ports: &mut setup::Ports,
    switch_view: &SwitchView,
    elapsed: Duration,
    options: &RunOptions,
) -> Result<(), RunError> {
    devices::refresh(&ports.ports, switch_view);
    let report = &Report::new(switch_view, elapsed);
    if ports.devices().any(EthPort::is_physical) {
        // Stopping a port resets the transmit ring of its NIC, which may hold the last XON.
        std::thread::sleep(FAREWELL_TIME);
    }
    for port in ports.ports.iter_mut().filter_map(|slot| slot.device.as_mut()).chain(&mut ports.hosts) {
        port.stop()?;
    }
    let text = if options.json { report.to_json() } else { report.to_string() };
    match output::write_last(Stream::Out, &text) {
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            warn("the report is cut because standard output is not read; let its reader run, or write to a file");
            return Err(RunError::Output(error));
        }
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(RunError::Output(error)),
        _ => {}
    }
    if options.fail_on_loss && !report.is_lossless() {
        return Err(RunError::Lost);
    }
    Ok(())
}
