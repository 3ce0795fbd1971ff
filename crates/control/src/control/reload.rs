//! Reloads the configuration while the switch runs. The differences are applied completely or not at all.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::mirror::MirrorHandle;
use super::plane;
use super::resize::Resizing;
use crate::api::History;
use crate::api::model::{Difference, Past, Reload, ReloadOutcome};
use crate::api::reloads::{Given, Order, Wanted};
use crate::config::settings::{self, Settings};
use crate::config::{Config, ConfigErrors};
use crate::dataplane::LiveConfig;
use crate::faults::board::Refused;
use crate::faults::{Fault, FaultBoard};
use crate::mmu::BufferPools;
use crate::plan::mailbox::Sender;
use crate::plan::{LcoreControl, SwitchSpec};
use crate::router::RouterHandle;
use crate::stats::Current;

/// Longest time for lcores to apply new settings. It takes one poll each, unless an lcore rests or stalls.
const TAKE_TIME: Duration = Duration::from_secs(2);
/// Longest time to read the configuration.
const READ_TIME: Duration = Duration::from_secs(2);
/// Time for agents to tell peers that a port will be shut: each looks at its settings within 50 ms.
const FAREWELL_TIME: Duration = Duration::from_millis(150);
/// Interval between checks whether all lcores have applied the settings.
const LOOK_TIME: Duration = Duration::from_millis(1);

/// Interval between steps of a new division of the buffer, and the time for which an answer waits for its end.
const STEP_TIME: Duration = Duration::from_millis(1);
const DIVIDE_TIME: Duration = Duration::from_millis(200);

/// Time between two tries to go back to the configuration before.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// Reads the text, or the file of the switch without one, with the options of the command line.
pub type Again = Arc<dyn Fn(Option<Given>) -> Result<Config, ConfigErrors> + Send + Sync>;

/// A configuration, and what the lcores take of it.
struct Change {
    live_config: LiveConfig,
    wanted: Config,
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
        senders: Vec<Sender<LiveConfig>>,
        hz: u64,
        current: &Arc<Current>,
        control: &Arc<LcoreControl>,
        pools: &BufferPools,
    ) -> Self {
        let file = running.source.clone();
        Self {
            running,
            file,
            again,
            senders,
            hz,
            current: current.clone(),
            control: control.clone(),
            router: None,
            mirror: None,
            history: Arc::default(),
            waiting: None,
            pools: pools.clone(),
            resizing: None,
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

    /// Begins the history of this start. Returns lines about what differs from the configuration that ran last.
    pub async fn begin(&mut self) -> Vec<String> {
        let last = self.history.last();
        if last.as_ref().is_some_and(|last| *last.text == *self.running.text) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut differences = Vec::new();
        if let Some(last) = last {
            let (number, source) = (last.past.number, &last.past.source);
            let name = format!("the configuration that ran last (number {number}, {source})");
            match self.read(Some(Given { source: source.clone(), text: last.text })).await {
                Some(Ok(mut config)) => {
                    self.take_choices(&mut config);
                    let found = settings::differences(&settings::all(&config), &self.current.get().settings);
                    differences = found.iter().map(ToString::to_string).collect();
                    let (count, file) = (found.len(), &self.file);
                    if count > 0 {
                        lines.push(format!(
                            "reload: warning: {name} differs from {file} in {count} settings; `holdfast history \
                             {number}` prints it, `holdfast rollback {number}` applies it"
                        ));
                    }
                }
                Some(Err(_)) => lines.push(format!("reload: warning: {name} is not valid any more")),
                None => {}
            }
        }
        lines.extend(self.keep("start", String::new(), differences).await);
        lines
    }

    /// The time of the next step of a new division of the buffer; `None`: it is divided as configured.
    pub fn next_step(&self) -> Option<Instant> {
        self.resizing.as_ref().map(|_| Instant::now() + STEP_TIME)
    }

    /// Goes a step of the new division of the buffer. Returns true if that ends it.
    pub fn step(&mut self) -> bool {
        let Some(resizing) = &mut self.resizing else { return false };
        let pending = resizing.step(&mut self.senders, &self.pools);
        self.current.get().pending.set(pending);
        if pending.is_none() {
            self.resizing = None;
        }
        pending.is_none()
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
        let before = confirm_within.map(|_| self.running.clone());
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
        let found = settings::differences(&self.current.get().settings, &wanted_settings);
        let mut answer = Reload {
            source: wanted.source.clone(),
            warnings: wanted.warnings.clone(),
            differences: found.iter().map(Difference::from).collect(),
            ..Reload::default()
        };
        if found.is_empty() && self.running.switch == wanted.switch {
            if apply {
                // Comments may have changed.
                self.running = wanted;
            }
            return answer;
        }
        let live_config = LiveConfig::between(&self.running.switch, &wanted.switch, self.hz);
        let fixed = found.iter().filter(|difference| !difference.is_live);
        answer.errors = fixed.map(|difference| format!("{difference}: needs a restart")).collect();
        let Some(live_config) = live_config.filter(|_| answer.errors.is_empty()) else {
            if answer.errors.is_empty() {
                answer.errors.push(
                    "settings that follow from these differ, such as the MTU of a router's interface: needs a restart"
                        .to_owned(),
                );
            }
            answer.outcome = ReloadOutcome::NeedsRestart;
            return answer;
        };
        answer.outcome = ReloadOutcome::Applicable;
        if apply {
            self.apply(Change { live_config, wanted }, wanted_settings, &mut answer).await;
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

    /// Adds the running configuration to the history. Returns a warning if its file cannot be written. A separate
    /// thread writes it: the disk may hang.
    async fn keep(&self, cause: &str, user: String, differences: Vec<String>) -> Option<String> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let past = Past {
            began_unix_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            user,
            cause: cause.to_owned(),
            source: self.running.source.clone(),
            differences,
            ..Past::default()
        };
        let (history, text) = (self.history.clone(), self.running.text.as_str().into());
        let (answer, answered) = oneshot::channel();
        let writer = std::thread::Builder::new().name("history".to_owned());
        // The receiver is gone if the answer is too late.
        let started = writer.spawn(move || drop(answer.send(history.add(past, text))));
        let error = match started {
            Ok(_) => match tokio::time::timeout(READ_TIME, answered).await {
                Ok(Ok(Ok(()))) => return None,
                Ok(Ok(Err(error))) => error.to_string(),
                _ => format!("it takes more than {} s", READ_TIME.as_secs()),
            },
            Err(error) => error.to_string(),
        };
        Some(format!("this configuration is not kept on the disk: {error}; make room, or name another `--state`"))
    }

    /// A warning if the switch would start by another text than it runs by.
    async fn other_file(&self) -> Option<String> {
        let same = self.read(None).await.is_some_and(|file| file.is_ok_and(|file| file.text == self.running.text));
        let file = &self.file;
        (!same).then(|| {
            format!("{file} has another text, and a restart goes by it; write this configuration there to keep it")
        })
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

    /// Copies what the start has chosen: the address of a NIC for each port without a configured one, and seeds.
    fn take_choices(&self, wanted: &mut Config) {
        for (index, device) in wanted.devices.iter().enumerate() {
            if let (false, Some(port), Some(own)) =
                (device.has_mac, wanted.switch.ports.get_mut(index), self.running.switch.ports.get(index))
            {
                port.mac = own.mac;
            }
            // The number that the device has may be lower than that of the configuration.
            let running = &self.running;
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

    /// Sends the settings to every lcore, and waits until all have applied them.
    async fn apply(&mut self, change: Change, settings: Arc<Settings>, answer: &mut Reload) {
        let Change { live_config, wanted } = change;
        // A division that has not ended gives way to this one. Its messages are under way for a poll at most.
        let end = Instant::now() + STEP_TIME * 20;
        while !self.is_idle() && Instant::now() < end {
            tokio::time::sleep(LOOK_TIME).await;
        }
        // Checked first, so that either all lcores receive the settings or none.
        if !self.is_idle() {
            answer.outcome = ReloadOutcome::Busy;
            answer
                .errors
                .push("an lcore has not taken the settings of the last reload; check whether it hangs".to_owned());
            return;
        }
        let faults = wanted.faults.as_ref().filter(|faults| Some(*faults) != self.running.faults.as_ref());
        if let Some(board) = self.current.get().faults.clone()
            && let Err(refused) = reconfigure(&board, &wanted.switch, faults.map(|faults| &faults.list[..])).await
        {
            answer.outcome = match refused {
                Refused::Busy => ReloadOutcome::Busy,
                Refused::TooMany { .. } | Refused::Unknown(_) => ReloadOutcome::Invalid,
            };
            answer.errors.push(format!("faults: {refused}; {}", refused.remedy()));
            return;
        }
        // Before the lcores, whose copies name their sessions.
        if let Some(mirror) = &self.mirror {
            mirror.configure(&plane::system_name(&wanted), &wanted.mirror, &wanted.switch.mirror);
        }
        self.announce_shut(&wanted).await;
        for sender in &mut self.senders {
            let is_given = sender.send(Box::new(live_config.clone())).is_ok();
            debug_assert!(is_given, "the lcore has taken all earlier settings");
        }
        let mut resizing = Resizing::begin(wanted.switch.buffer, self.senders.len());
        let end = Instant::now() + TAKE_TIME;
        while !resizing.is_taken(&mut self.senders) && Instant::now() < end {
            tokio::time::sleep(LOOK_TIME).await;
        }
        if !resizing.is_taken(&mut self.senders) {
            // It has the settings and will go on by them; until then ports differ.
            answer
                .warnings
                .push("an lcore has not polled since the reload; it applies the settings at its next poll".to_owned());
        }
        self.control.set_shut(wanted.switch.shut_ports());
        if let (Some(router), Some(routing)) = (&self.router, wanted.switch.routing.clone()) {
            router.tell(move |router, now| router.configure(&routing, now));
        }
        if let Some(board) = &self.current.get().lldp {
            board.configure(plane::lldp_settings(&wanted, self.current.get().build.program));
        }
        self.current.change(|view| {
            let view = view.tuned(wanted.switch.clone(), settings).mirroring(wanted.mirror.clone());
            view.with_cables(super::cables(&wanted))
        });
        let profiles = |config: &Config| config.switch.ports.iter().map(|port| port.buffer).collect::<Vec<_>>();
        let is_divided =
            self.running.switch.buffer == wanted.switch.buffer && profiles(&self.running) == profiles(&wanted);
        self.running = wanted;
        answer.outcome = ReloadOutcome::Applied;
        if self.resizing.is_some() || !is_divided {
            self.resizing = Some(resizing);
            self.divide(answer).await;
        }
    }

    /// Whether every lcore has taken all that it was sent. A division keeps the messages that have come back: it goes
    /// on if this change is refused.
    fn is_idle(&mut self) -> bool {
        match &mut self.resizing {
            Some(resizing) => resizing.is_taken(&mut self.senders),
            None => self.senders.iter_mut().all(Sender::is_idle),
        }
    }

    /// Waits for a limited time until the buffer is divided as configured.
    async fn divide(&mut self, answer: &mut Reload) {
        let end = Instant::now() + DIVIDE_TIME;
        while !self.step() {
            if Instant::now() >= end {
                let pending = "parts of the buffer still hold frames and grow or shrink when these have left: \
                               `holdfast show buffers` says which";
                answer.warnings.push(pending.to_owned());
                return;
            }
            tokio::time::sleep(STEP_TIME).await;
        }
    }

    /// Lets LLDP and LACP tell the peers of ports that are about to be shut, before they can send no more.
    async fn announce_shut(&self, wanted: &Config) {
        let shut = wanted.switch.shut_ports();
        self.control.set_leaving(shut);
        if (shut - self.running.switch.shut_ports()).is_empty() {
            return;
        }
        if let Some(board) = &self.current.get().lldp {
            board.configure(plane::lldp_settings(wanted, self.current.get().build.program));
        }
        tokio::time::sleep(FAREWELL_TIME).await;
    }
}

/// Replaces the faults of the configuration. A request of the API may have changed faults just before, so it tries
/// again for a limited time.
async fn reconfigure(board: &FaultBoard, switch: &SwitchSpec, faults: Option<&[Fault]>) -> Result<(), Refused> {
    let end = Instant::now() + TAKE_TIME;
    loop {
        match board.reconfigure(switch, faults) {
            Err(Refused::Busy) if Instant::now() < end => tokio::time::sleep(LOOK_TIME).await,
            result => return result,
        }
    }
}
