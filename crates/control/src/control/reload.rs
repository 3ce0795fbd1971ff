//! Reloads the configuration while the switch runs. The differences are applied completely or not at all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::mirror::MirrorHandle;
use super::plane;
use crate::api::model::{Difference, Reload, ReloadOutcome};
use crate::config::settings::{self, Settings};
use crate::config::{Config, ConfigErrors};
use crate::dataplane::LiveConfig;
use crate::faults::board::Refused;
use crate::faults::{Fault, FaultBoard};
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

/// Rereads the configuration with the options of the command line.
pub type Again = Arc<dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync>;

/// A configuration, and what the lcores take of it.
struct Change {
    live_config: LiveConfig,
    wanted: Config,
}

/// Applies new configurations to a running switch.
pub(super) struct Reloader {
    running: Config,
    again: Again,
    /// Senders of settings, one to each lcore of the switch.
    senders: Vec<Sender<LiveConfig>>,
    hz: u64,
    current: Arc<Current>,
    /// The router's thread, if the switch routes.
    router: Option<RouterHandle>,
    /// The thread of mirrors.
    mirror: Option<MirrorHandle>,
}

impl Reloader {
    /// Creates a reloader for the switch that runs by `running`. Its lcores receive from `senders`.
    pub fn new(
        running: Config,
        again: Again,
        senders: Vec<Sender<LiveConfig>>,
        hz: u64,
        current: Arc<Current>,
    ) -> Self {
        Self { running, again, senders, hz, current, router: None, mirror: None }
    }

    /// Applies settings of routing and of mirrors to these threads too.
    pub fn with(mut self, router: Option<RouterHandle>, mirror: MirrorHandle) -> Self {
        (self.router, self.mirror) = (router, Some(mirror));
        self
    }

    /// Returns the running configuration.
    pub fn running(&self) -> &Config {
        &self.running
    }

    /// Rereads the file and returns the differences. With `apply`, applies them.
    pub async fn reload(&mut self, apply: bool, control: &LcoreControl) -> Reload {
        let source = self.running.source.clone();
        let refused = |outcome, errors| Reload { outcome, source: source.clone(), errors, ..Reload::default() };
        let mut wanted = match self.read().await {
            Some(Ok(wanted)) => wanted,
            Some(Err(errors)) => {
                return refused(ReloadOutcome::Invalid, errors.to_string().lines().map(str::to_owned).collect());
            }
            None => {
                let seconds = READ_TIME.as_secs();
                let error =
                    format!("{source} was not read within {seconds}s; check that it is a file on a disk that responds");
                return refused(ReloadOutcome::Busy, vec![error]);
            }
        };
        self.take_choices(&mut wanted);
        let wanted_settings = Arc::new(settings::all(&wanted));
        let found = settings::differences(&self.current.get().settings, &wanted_settings);
        let mut answer = Reload {
            source: source.clone(),
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
            self.apply(Change { live_config, wanted }, wanted_settings, control, &mut answer).await;
        }
        answer
    }

    /// Reads the configuration; `None` if it takes too long. A separate thread reads the file, which may be on a disk
    /// that hangs. The control thread must still handle signals and watchdog notifications.
    async fn read(&self) -> Option<Result<Config, ConfigErrors>> {
        let (again, (answer, answered)) = (self.again.clone(), oneshot::channel());
        let reader = std::thread::Builder::new().name("reload".to_owned());
        // The receiver is gone if the answer is too late.
        reader.spawn(move || drop(answer.send(again()))).ok()?;
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
    async fn apply(&mut self, change: Change, settings: Arc<Settings>, control: &LcoreControl, answer: &mut Reload) {
        let Change { live_config, wanted } = change;
        // Checked first, so that either all lcores receive the settings or none.
        if !self.senders.iter_mut().all(Sender::is_idle) {
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
        self.announce_shut(&wanted, control).await;
        for sender in &mut self.senders {
            let is_given = sender.send(Box::new(live_config.clone())).is_ok();
            debug_assert!(is_given, "the lcore has taken all earlier settings");
        }
        let end = Instant::now() + TAKE_TIME;
        while !self.senders.iter_mut().all(Sender::is_idle) && Instant::now() < end {
            tokio::time::sleep(LOOK_TIME).await;
        }
        if !self.senders.iter_mut().all(Sender::is_idle) {
            // It has the settings and will go on by them; until then ports differ.
            answer
                .warnings
                .push("an lcore has not polled since the reload; it applies the settings at its next poll".to_owned());
        }
        control.set_shut(wanted.switch.shut_ports());
        if let (Some(router), Some(routing)) = (&self.router, wanted.switch.routing.clone()) {
            router.tell(move |router, now| router.configure(&routing, now));
        }
        if let Some(board) = &self.current.get().lldp {
            board.configure(plane::lldp_settings(&wanted, self.current.get().build.program));
        }
        self.current.tuned_mirroring(wanted.switch.clone(), wanted.mirror.clone(), settings);
        self.running = wanted;
        answer.outcome = ReloadOutcome::Applied;
    }

    /// Lets LLDP and LACP tell the peers of ports that are about to be shut, before they can send no more.
    async fn announce_shut(&self, wanted: &Config, control: &LcoreControl) {
        let shut = wanted.switch.shut_ports();
        control.set_leaving(shut);
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
