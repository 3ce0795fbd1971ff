//! Reloads the configuration while the switch runs. The differences are applied completely or not at all.

mod apply;
mod history;
mod replace;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

pub(super) use self::replace::DeviceExchange;
use super::mirror::MirrorHandle;
use super::resize::Resizing;
use super::setup;
use crate::api::History;
use crate::api::model::{Difference, Reload, ReloadOutcome};
use crate::api::reloads::{Given, Order, Wanted};
use crate::config::settings;
use crate::config::{Config, ConfigErrors};
use crate::dataplane::LiveConfig;
use crate::dpdk;
use crate::forward::Fdb;
use crate::mmu::BufferPools;
use crate::plan::LcoreControl;
use crate::plan::mailbox::Sender;
use crate::router::RouterHandle;
use crate::sets::PortSet;
use crate::stats::Current;
use crate::wire::MacAddr;

/// Longest time for lcores to apply new settings. It takes one poll each, unless an lcore rests or stalls.
const TAKE_TIME: Duration = Duration::from_secs(2);
/// Longest time to read the configuration.
const READ_TIME: Duration = Duration::from_secs(2);
/// Interval between checks whether all lcores have applied the settings.
const LOOK_TIME: Duration = Duration::from_millis(1);

/// Time between two tries to go back to the configuration before.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// Reads the text, or the file of the switch without one, with the options of the command line.
pub type Again = Arc<dyn Fn(Option<Given>) -> Result<Config, ConfigErrors> + Send + Sync>;

/// A configuration, and what the lcores take of it.
struct Change {
    live_config: LiveConfig,
    wanted: Config,
    /// Ports that it shuts and that are to become empty.
    leaving: PortSet,
}

/// The senders to the lcores, one to each.
pub(super) struct LcoreSenders {
    pub settings: Vec<Sender<LiveConfig>>,
    pub exchanges: Vec<Sender<DeviceExchange>>,
}

/// Applies new configurations to a running switch.
pub(super) struct Reloader {
    running: Config,
    /// The file by which the switch starts.
    file: String,
    again: Again,
    /// Senders of settings, one to each lcore of the switch.
    senders: Vec<Sender<LiveConfig>>,
    hz: u64,
    current: Arc<Current>,
    /// The orders to the lcores.
    control: Arc<LcoreControl>,
    /// The router's thread, if the switch routes.
    router: Option<RouterHandle>,
    /// The thread of mirrors.
    mirror: Option<MirrorHandle>,
    history: Arc<History>,
    waiting: Option<Waiting>,
    /// The pools of the buffer, and a new division that has not ended.
    pools: BufferPools,
    resizing: Option<Resizing>,
    /// The ports, and the senders of their queues, one to each lcore.
    ports: Rc<RefCell<setup::Ports>>,
    exchanges: Vec<Sender<DeviceExchange>>,
    /// Ports whose queues an lcore has not taken or given back.
    unsettled: PortSet,
    /// The places of all static entries in the forwarding databases; `None`: those of the start.
    places: Option<Fdb>,
    /// A configuration whose ports are out until the buffer is divided; `None`: all are in.
    entering: Option<Box<Config>>,
    /// The last look at the links while an order waits.
    looked: Instant,
}

/// A configuration that runs, and waits for its confirmation.
struct Waiting {
    /// The configuration before, which comes back otherwise.
    before: Config,
    until: Instant,
    /// Differences to the one before.
    differences: Vec<String>,
}

impl Reloader {
    /// Creates a reloader for the switch that runs by `running`. Its lcores receive from `senders`.
    pub fn new(
        running: Config,
        again: Again,
        senders: LcoreSenders,
        ports: &Rc<RefCell<setup::Ports>>,
        current: &Arc<Current>,
        control: &Arc<LcoreControl>,
        pools: &BufferPools,
    ) -> Self {
        let file = running.source.clone();
        Self {
            running,
            file,
            again,
            senders: senders.settings,
            hz: dpdk::hz(&ports.borrow().eal),
            current: current.clone(),
            control: control.clone(),
            router: None,
            mirror: None,
            history: Arc::default(),
            waiting: None,
            pools: pools.clone(),
            resizing: None,
            ports: ports.clone(),
            exchanges: senders.exchanges,
            unsettled: PortSet::EMPTY,
            places: None,
            entering: None,
            looked: Instant::now(),
        }
    }

    /// Applies settings of routing and of mirrors to these threads too, and keeps configurations in `history`.
    pub fn with(self, router: Option<RouterHandle>, mirror: MirrorHandle, history: Arc<History>) -> Self {
        Self { router, mirror: Some(mirror), history, ..self }
    }

    /// Returns the running configuration.
    pub fn running(&self) -> &Config {
        &self.running
    }

    /// The time at which the configuration before comes back; `None`: no configuration waits for its confirmation.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|waiting| waiting.until)
    }

    /// Executes an order of `user`.
    pub async fn execute(&mut self, order: Order, user: &str) -> Reload {
        match order {
            Order::Compare(wanted) => self.reload(wanted, user, None, false).await,
            Order::Apply { wanted: Wanted::Before, .. } if self.waiting.is_some() => self.go_back().await,
            Order::Apply { .. } if self.waiting.is_some() => {
                let left = self.deadline().map_or(0, |until| (until - Instant::now()).as_secs());
                let error = format!(
                    "a configuration waits for its confirmation for {left} s; write `holdfast confirm` to stay with it, or \
                     `holdfast rollback` to go back"
                );
                self.refused(ReloadOutcome::Busy, vec![error])
            }
            Order::Apply { wanted, confirm_within } => self.reload(wanted, user, confirm_within, true).await,
            Order::Confirm => self.confirm(user).await,
        }
    }

    fn refused(&self, outcome: ReloadOutcome, errors: Vec<String>) -> Reload {
        Reload { outcome, source: self.running.source.clone(), errors, ..Reload::default() }
    }

    /// Reads the wanted configuration and returns the differences. With `apply`, applies them.
    async fn reload(&mut self, wanted: Wanted, user: &str, confirm_within: Option<Duration>, apply: bool) -> Reload {
        let cause = if matches!(wanted, Wanted::Past(_) | Wanted::Before) { "rollback" } else { "reload" };
        let is_file = wanted == Wanted::File;
        let wanted = match self.wanted(wanted).await {
            Ok(wanted) => wanted,
            Err(refused) => return *refused,
        };
        let before = confirm_within.map(|_| self.target().clone());
        let mut answer = self.run_by(wanted, apply).await;
        if answer.outcome != ReloadOutcome::Applied {
            return answer;
        }
        let differences = answer.differences.iter().map(|difference| difference.text.clone()).collect();
        if let (Some(before), Some(time)) = (before, confirm_within) {
            self.waiting = Some(Waiting { before, until: Instant::now() + time, differences });
            answer.confirm_within_ns = Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        } else {
            answer.warnings.extend(self.keep(cause, user.to_owned(), differences).await);
        }
        if !is_file {
            answer.warnings.extend(self.other_file().await);
        }
        answer
    }

    /// The configuration that an order wants, or the answer that there is none.
    async fn wanted(&self, wanted: Wanted) -> Result<Config, Box<Reload>> {
        let given = match wanted {
            Wanted::File => None,
            Wanted::Text(given) => Some(given),
            Wanted::Past(_) | Wanted::Before => {
                let number = match wanted {
                    Wanted::Past(number) => Some(number),
                    // The last one runs.
                    _ => self.history.all().iter().rev().nth(1).map(|past| past.number),
                };
                let Some(kept) = number.and_then(|number| self.history.get(number)) else {
                    let error = "the history has no such configuration; `holdfast history` lists them".to_owned();
                    return Err(Box::new(self.refused(ReloadOutcome::Invalid, vec![error])));
                };
                Some(Given { source: format!("history {}", kept.past.number), text: kept.text })
            }
        };
        let source = given.as_ref().map_or_else(|| self.file.clone(), |given| given.source.clone());
        let refused =
            |outcome, errors| Box::new(Reload { outcome, source: source.clone(), errors, ..Reload::default() });
        match self.read(given).await {
            Some(Ok(wanted)) => Ok(wanted),
            Some(Err(errors)) => {
                Err(refused(ReloadOutcome::Invalid, errors.to_string().lines().map(str::to_owned).collect()))
            }
            None => {
                let seconds = READ_TIME.as_secs();
                let error =
                    format!("{source} was not read within {seconds}s; check that it is a file on a disk that responds");
                Err(refused(ReloadOutcome::Busy, vec![error]))
            }
        }
    }

    /// Returns the differences to `wanted`. With `apply`, applies them.
    async fn run_by(&mut self, mut wanted: Config, apply: bool) -> Reload {
        self.take_choices(&mut wanted);
        let wanted_settings = Arc::new(settings::all(&wanted));
        let found = settings::differences(&settings::all(self.target()), &wanted_settings);
        let out = self.out_for(&wanted);
        let mut answer = Reload {
            source: wanted.source.clone(),
            warnings: wanted.warnings.clone(),
            differences: found.iter().map(Difference::from).collect(),
            ..Reload::default()
        };
        if found.is_empty() && out.is_empty() && self.running.switch == wanted.switch {
            if apply {
                // Comments may have changed.
                self.running = wanted;
            }
            return answer;
        }
        answer.errors = self.obstacles(&wanted, &found);
        if !answer.errors.is_empty() {
            answer.outcome = ReloadOutcome::NeedsRestart;
            return answer;
        }
        answer.warnings.extend(self.outage(out, &wanted));
        answer.outcome = ReloadOutcome::Applicable;
        if !apply {
            return answer;
        }
        match LiveConfig::between(&self.running.switch, &wanted.switch, self.hz).filter(|_| out.is_empty()) {
            Some(live_config) => {
                let change = Change { live_config, wanted, leaving: PortSet::EMPTY };
                self.apply(change, wanted_settings, &mut answer).await;
            }
            None => self.replace(wanted, out, &mut answer).await,
        }
        answer
    }

    /// Stays with the configuration that waits for its confirmation.
    async fn confirm(&mut self, user: &str) -> Reload {
        let Some(waiting) = self.waiting.take() else {
            let error = "no configuration waits for a confirmation".to_owned();
            return self.refused(ReloadOutcome::Unconfirmed, vec![error]);
        };
        let warnings = self.keep("confirm", user.to_owned(), waiting.differences).await.into_iter().collect();
        Reload { warnings, ..self.refused(ReloadOutcome::Confirmed, Vec::new()) }
    }

    /// Goes back to the configuration before the one that waits for its confirmation. If lcores do not take it, it
    /// still waits, for a shorter time.
    pub async fn go_back(&mut self) -> Reload {
        let Some(waiting) = self.waiting.take() else { return Reload::default() };
        let answer = self.run_by(waiting.before.clone(), true).await;
        if !answer.is_right() {
            self.waiting = Some(Waiting { until: Instant::now() + RETRY_TIME, ..waiting });
        }
        answer
    }

    /// Reads the configuration; `None` if it takes too long. A separate thread reads the file, which may be on a disk
    /// that hangs. The control thread must still handle signals and watchdog notifications.
    async fn read(&self, given: Option<Given>) -> Option<Result<Config, ConfigErrors>> {
        let (again, (answer, answered)) = (self.again.clone(), oneshot::channel());
        let reader = std::thread::Builder::new().name("reload".to_owned());
        // The receiver is gone if the answer is too late.
        reader.spawn(move || drop(answer.send(again(given)))).ok()?;
        tokio::time::timeout(READ_TIME, answered).await.ok()?.ok()
    }

    /// The address that port `index` keeps with another device, because the router or hashes of flows go by it; `None`:
    /// none, or one that is written.
    fn kept_address(&self, index: usize) -> Option<MacAddr> {
        let Config { switch, devices, .. } = &self.running;
        let leads = index == 0 && (switch.routing.is_some() || !switch.lags.groups.is_empty());
        let is_own = devices.get(index).is_some_and(|device| !device.has_mac);
        switch.ports.get(index).filter(|port| is_own && (leads || !port.bridges())).map(|port| port.mac)
    }

    /// Takes the address of a NIC for each port without a configured one, and the seeds that the start has chosen.
    fn take_choices(&self, wanted: &mut Config) {
        for (index, device) in wanted.devices.iter().enumerate() {
            let running = &self.running;
            if let (false, Some(port)) = (device.has_mac, wanted.switch.ports.get_mut(index)) {
                let own = self.ports.borrow().own_address(index);
                port.mac = self.kept_address(index).or(own).unwrap_or(port.mac);
            }
            // The number that the device has may be lower than that of the configuration.
            let has_same = running.devices.get(index).is_some_and(|running| running.tx_queues == device.tx_queues);
            if let (true, Some(port), Some(own)) =
                (has_same, wanted.switch.ports.get_mut(index), running.switch.ports.get(index))
            {
                port.tx_queues = own.tx_queues;
            }
        }
        wanted.switch.fdb.seed = self.running.switch.fdb.seed;
        wanted.follow_ports();
    }
}
