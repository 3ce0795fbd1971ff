//! Running a switch: from a configuration to frames, and back to an idle machine.
//!
//! The control thread sleeps most of the time. It talks to the lcore by [`Orders`] and reads counters; the packet path
//! waits for neither.

mod api;
mod error;
mod idle;
mod notify;
mod setup;

use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use error::RunError;

use self::api::Api;
use crate::config::Config;
use crate::dataplane::{Counters, Orders, Pipeline, Work, accompany};
use crate::dpdk::{self, EthIo, EthPort, Worker};
use crate::hosts::{Hosts, HostsOn};
use crate::stats::verdict::not_lossless_line;
use crate::stats::{DeviceStats, Live, Onlooker, Report, Snapshot, Style, Subject, http};

/// Time between two looks at links, device counters, and what an operator should know at once.
const DEVICE_PERIOD: Duration = Duration::from_millis(100);
/// Time in which a port has told its peer how things are, and a virtual host has heard it: whoever has not proven itself
/// by then is named.
const SELF_TEST_TIME: Duration = Duration::from_secs(1);
/// Time that a NIC is given to send what was posted to it last: a full ring of it lasts less at any rate from 10G up.
const FAREWELL_TIME: Duration = Duration::from_millis(2);
/// Seed of the WRED dice; one for all runs, since nothing hangs on its value.
const DICE_SEED: u32 = 0x5eed_d1ce;

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// For how long; `None`: until SIGINT or SIGTERM.
    pub duration: Option<Duration>,
    /// Print the report as JSON, and nothing else to standard output.
    pub json: bool,
    /// Broken losslessness is an error.
    pub fail_on_loss: bool,
    /// DPDK's log to standard error.
    pub verbose: bool,
}

/// What runs: the parts of the switch, and the hosts if they have an lcore of their own.
struct Running {
    switch: Vec<Worker<Work<EthIo, HostsOn<EthIo>>>>,
    hosts: Option<Worker<HostsOn<EthIo>>>,
}

impl Running {
    /// Whether anything has ended on its own, which only a panic makes it do.
    fn has_ended(&self) -> bool {
        self.switch.iter().any(Worker::is_finished) || self.hosts.iter().any(Worker::is_finished)
    }
}

/// MiB of memory that DPDK is given for `config`, in hugepages if `huge`.
#[must_use]
pub fn memory_mib(config: &Config, huge: bool) -> u32 {
    setup::PoolPlan::new(config).mib(huge)
}

/// Runs a switch by `config` until its time is over or a signal comes, and prints what it did.
///
/// # Errors
/// What keeps it from starting or stopping in order; with `fail_on_loss`, a loss in a lossless class.
pub fn run(mut config: Config, options: RunOptions) -> Result<(), RunError> {
    idle::check_cpu(&config)?;
    // Before DPDK starts: an address in use is found at once.
    let listener = config.metrics.map(listen).transpose()?;
    let api = Api::listen(&config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Runtime)?;
    let mut signals = Signals::listen(&runtime).map_err(RunError::Runtime)?;
    let notifier = notify::Notifier::from_environment()?.map(Arc::new);
    let mut ports = setup::Ports::start(&config, options.verbose)?;
    for (index, (port, device)) in config.switch.ports.iter_mut().zip(&config.devices).enumerate() {
        if !device.has_mac {
            port.mac = ports.own_address(index).unwrap_or(port.mac);
        }
    }
    let counters = Arc::new(Counters::new(config.switch.ports.len(), usize::from(config.switch.lcores)));
    let mut subject = Subject::new(config.switch.clone(), counters.clone());
    for index in 0..config.switch.ports.len() {
        (subject.pfc[index], subject.witnesses[index]) = setup::Ports::pfc_standing(&config, index);
        subject.blind[index] = ports.blind_driver(index);
    }
    for (link, device) in subject.links.iter_mut().zip(&config.devices) {
        link.cable = device.cable;
        link.peer_response = device.peer_response.map(|time| link.rate.bytes_in(time));
    }
    let mut orders = Orders::new(usize::from(config.switch.lcores));
    if setup::hosts_apart(&config) {
        orders = orders.with_companion_apart();
    }
    let orders = Arc::new(orders);
    let hz = dpdk::hz(&ports.eal);
    let delay = u128::from(config.lcores.poll_delay.0) * u128::from(hz) / 1_000_000_000;
    orders.set_delay(u64::try_from(delay).unwrap_or(u64::MAX));
    subject.rests =
        (0..usize::from(config.switch.lcores)).map(|lcore| config.idle_of(lcore).map(|idle| idle.longest)).collect();
    let hosts = hosts(&config, hz);
    subject.hosts = hosts.first().map(Hosts::counters);
    subject.pools = ports.pools().into();
    let subject = Arc::new(subject);
    if let Some(listener) = listener {
        serve(&runtime, listener, &subject).map_err(RunError::Runtime)?;
    }
    api.serve(&runtime, &config, &subject, &orders).map_err(RunError::Runtime)?;

    let workers = launch(&mut ports, &config, &counters, hosts, &orders, hz)?;
    if let Some(notifier) = &notifier {
        runtime.spawn(notifier.clone().tell(counters.clone()));
    }
    let start = Instant::now();
    let look_on = watch(&subject, &ports, &orders, &workers, &mut signals, &options, &api, start);
    let watched = runtime.block_on(look_on);
    let elapsed = start.elapsed();
    if let Some(notifier) = &notifier {
        notifier.stopping();
    }
    orders.stop();
    // All of them, before an error of one ends the program: a port must not be stopped under an lcore.
    let ended: Vec<_> = workers.switch.into_iter().map(Worker::join).collect();
    orders.dismiss();
    let hosts = workers.hosts.map(Worker::join).transpose();
    let works = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let hosts = hosts?;
    refresh_devices(&ports.ports, &subject);
    let report = Report::new(&subject, elapsed);
    let refused: u64 = works.iter().map(|work| work.io.refused()).sum();
    if refused > 0 {
        // Not eprintln, which panics where standard error cannot be written.
        let _ = writeln!(std::io::stderr(), "warning: {refused} frames came in several buffers and were not forwarded");
    }
    drop((works, hosts));
    watched?;
    finish(ports, &report, &options)
}

/// The virtual hosts, in a part for each lcore that polls some; none if there are none.
fn hosts(config: &Config, hz: u64) -> Vec<Hosts> {
    if config.hosts.is_empty() {
        return Vec::new();
    }
    let parts = Hosts::spread(&config.hosts, hz, &setup::parts_of_hosts(config), setup::host_parts(config));
    let parts = parts.into_iter().map(|hosts| hosts.for_ageing(config.switch.fdb.ageing));
    if setup::hosts_apart(config) { parts.map(Hosts::on_wires).collect() } else { parts.collect() }
}

/// Starts every part of the switch on an lcore of its own, with its part of the hosts unless these have one too.
fn launch(
    ports: &mut setup::Ports,
    config: &Config,
    counters: &Arc<Counters>,
    hosts: Vec<Hosts>,
    orders: &Arc<Orders>,
    hz: u64,
) -> Result<Running, RunError> {
    let (io, host_io) = ports.queues(config)?;
    let mut companions = hosts.into_iter().zip(host_io).map(|(hosts, io)| HostsOn { hosts, io });
    let pipelines = Pipeline::fleet(&config.switch, counters, hz, DICE_SEED);
    let lcores = ports.eal.workers().to_vec();
    if lcores.len() < pipelines.len() + usize::from(setup::hosts_apart(config)) {
        return Err(RunError::NoCpu);
    }
    let rests = (0..pipelines.len()).map(|lcore| idle::resting(config, lcore, &ports.eal));
    let rests = rests.collect::<Result<Vec<_>, _>>()?;
    let mut running = Running { switch: Vec::new(), hosts: None };
    if setup::hosts_apart(config)
        && let (Some(companion), Some(lcore)) = (companions.next(), lcores.get(pipelines.len()))
    {
        let orders = orders.clone();
        running.hosts = Some(ports.eal.launch(*lcore, move || accompany(companion, &orders, dpdk::now))?);
    }
    let parts = pipelines.into_iter().zip(io).zip(rests).zip(lcores);
    for (((pipeline, io), resting), lcore) in parts {
        let companion = companions.next();
        let work = Work { pipeline, io, companion, orders: orders.clone(), hz, resting, inbox: None };
        match ports.eal.launch(lcore, move || work.run(dpdk::now)) {
            Ok(worker) => running.switch.push(worker),
            Err(error) => {
                // Those that run already end, or dropping their workers would wait for ever; of the others none will come.
                orders.stop();
                (running.switch.len()..usize::from(config.switch.lcores)).for_each(|number| orders.give_up(number));
                orders.dismiss();
                return Err(error.into());
            }
        }
    }
    Ok(running)
}

fn listen(address: SocketAddr) -> Result<TcpListener, RunError> {
    let listener = TcpListener::bind(address).map_err(|error| RunError::Listen { address, error })?;
    listener.set_nonblocking(true).map_err(|error| RunError::Listen { address, error })?;
    Ok(listener)
}

/// Serves metrics for as long as the runtime runs.
fn serve(runtime: &Runtime, listener: TcpListener, subject: &Arc<Subject>) -> std::io::Result<()> {
    let _inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    runtime.spawn(http::serve(listener, subject.clone()));
    Ok(())
}

/// What a signal wants.
enum Order {
    Stop,
    ClearWatermarks,
}

/// Signals that end a run in order, or clear watermarks. Listened to from before DPDK starts, so that one which comes while it does leaves
/// nothing behind either.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Watermarks are to be cleared.
    clear: Signal,
}

impl Signals {
    fn listen(runtime: &Runtime) -> std::io::Result<Self> {
        let _inside = runtime.enter();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            clear: signal(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.interrupt.recv() => Order::Stop,
            _ = self.terminate.recv() => Order::Stop,
            _ = self.clear.recv() => Order::ClearWatermarks,
        }
    }
}

/// Shows what happens until the time is over, a signal comes or the lcore has ended on its own, which only a panic
/// makes it do.
async fn watch(
    subject: &Arc<Subject>,
    ports: &setup::Ports,
    orders: &Orders,
    workers: &Running,
    signals: &mut Signals,
    options: &RunOptions,
    api: &Api,
    start: Instant,
) -> Result<(), RunError> {
    let style = if options.json { Style::Plain } else { Style::detect(std::io::stdout().is_terminal()) };
    let mut live = Live::new(subject.clone(), style);
    let mut onlooker = Onlooker::new(subject.clone());
    let mut is_tested = false;
    let end = options.duration.map(|duration| start + duration);
    let mut devices = tokio::time::interval(DEVICE_PERIOD);
    let mut picture = tokio::time::interval(live.period());
    picture.tick().await;
    loop {
        let over = async {
            match end {
                Some(end) => tokio::time::sleep_until(end.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => return Ok(()),
            order = signals.next() => match order {
                Order::Stop => return Ok(()),
                Order::ClearWatermarks => {
                    subject.watermarks.remember(&Snapshot::take(subject, start.elapsed()));
                    orders.clear_watermarks();
                }
            },
            _ = devices.tick() => {
                orders.set_links(refresh_devices(&ports.ports, subject));
                ports.count_buffers(&subject.pools);
                subject.health.look(&subject.counters, Instant::now());
                for line in onlooker.look(Snapshot::take(subject, start.elapsed())) {
                    api.note(start.elapsed(), &line);
                    tell(&mut live, &line);
                }
                if !is_tested && start.elapsed() >= SELF_TEST_TIME {
                    is_tested = true;
                    subject.health.set_tested();
                    if let Some(line) = not_lossless_line(subject) {
                        tell(&mut live, &format!("t={:.1}s {line}", start.elapsed().as_secs_f64()));
                    }
                }
                if workers.has_ended() {
                    return Ok(());
                }
            }
            _ = picture.tick() => show(&mut live, Snapshot::take(subject, start.elapsed()), options.json),
        }
    }
}

/// Draws the next picture; with `--json` standard output is the report's alone.
fn show(live: &mut Live, snapshot: Snapshot, json: bool) {
    let text = live.next(snapshot);
    // A reader that went away is no reason to stop a switch.
    if json {
        let _ = std::io::stderr().write_all(text.as_bytes());
    } else {
        let _ = std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush());
    }
}

/// Tells what has just happened: on standard error, or below the picture where that is on the same terminal.
fn tell(live: &mut Live, line: &str) {
    let is_shown = live.notice(line);
    if !is_shown || !std::io::stderr().is_terminal() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Reads every device; the mask of links that are up. A device that does not tell counts as up, and so does a virtual
/// one: a tap says down for ever once its interface was moved to another namespace, while frames pass.
fn refresh_devices(ports: &[EthPort], subject: &Subject) -> u64 {
    let mut up = 0;
    for (index, (port, counters)) in ports.iter().zip(subject.devices.iter()).enumerate() {
        let link_up = !port.is_physical() || port.link().map_or(true, |link| link.up);
        up |= u64::from(link_up) << index;
        if let Ok(stats) = port.stats() {
            counters.publish(&DeviceStats {
                link_up,
                rx_frames: stats.ipackets,
                tx_frames: stats.opackets,
                rx_missed: stats.imissed + lost_on_wire(subject, index),
                rx_no_buffer: stats.rx_nombuf,
                rx_errors: stats.ierrors,
                tx_errors: stats.oerrors,
            });
        }
    }
    up
}

/// What the host at `port` sent into a full receive ring, which an in-process port does not know of.
fn lost_on_wire(subject: &Subject, port: usize) -> u64 {
    let hosts = subject.hosts.iter().flat_map(|hosts| &hosts.hosts).filter(|host| host.port == port);
    hosts.map(|host| host.lost_frames.get()).sum()
}

/// Stops the ports and prints the report.
fn finish(mut ports: setup::Ports, report: &Report, options: &RunOptions) -> Result<(), RunError> {
    if ports.ports.iter().any(EthPort::is_physical) {
        // Stopping resets a NIC's transmit ring, with the last XON in it.
        std::thread::sleep(FAREWELL_TIME);
    }
    for port in ports.ports.iter_mut().chain(&mut ports.hosts) {
        port.stop()?;
    }
    let text = if options.json { report.to_json() } else { report.to_string() };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(RunError::Output(error)),
        _ => {}
    }
    if options.fail_on_loss && !report.is_lossless() {
        return Err(RunError::Lost);
    }
    Ok(())
}
