//! Reading the configuration again while the switch runs: what differs is applied whole, or not at all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::model::{Difference, Outcome, Reload};
use crate::config::{Config, ConfigErrors, settings};
use crate::dataplane::Tuning;
use crate::dataplane::mailbox::Sender;
use crate::stats::Current;

/// How long lcores may take to take new settings over: a poll each, unless one rests or stands still.
const TAKE_TIME: Duration = Duration::from_secs(2);
/// How long the configuration may take to be read.
const READ_TIME: Duration = Duration::from_secs(2);
/// Time between two looks whether they have.
const LOOK_TIME: Duration = Duration::from_millis(1);

/// Reads the configuration once more, with what the command line said.
pub type Again = Arc<dyn Fn() -> Result<Config, ConfigErrors> + Send + Sync>;

/// Applies configurations to a switch that runs.
pub(super) struct Reloader {
    running: Config,
    again: Again,
    /// To each lcore of the switch.
    senders: Vec<Sender<Tuning>>,
    hz: u64,
    current: Arc<Current>,
}

impl Reloader {
    /// Of the switch that `running` has become, whose lcores are at the other ends of `senders`.
    pub fn new(running: Config, again: Again, senders: Vec<Sender<Tuning>>, hz: u64, current: Arc<Current>) -> Self {
        Self { running, again, senders, hz, current }
    }

    /// The configuration that runs.
    pub fn running(&self) -> &Config {
        &self.running
    }

    /// Reads the file again, and says what it would change; with `apply` makes it so.
    pub async fn reload(&mut self, apply: bool) -> Reload {
        let source = self.running.source.clone();
        let refused = |outcome, errors| Reload { outcome, source: source.clone(), errors, ..Reload::default() };
        let mut wanted = match self.read().await {
            Some(Ok(wanted)) => wanted,
            Some(Err(errors)) => {
                return refused(Outcome::Invalid, errors.to_string().lines().map(str::to_owned).collect());
            }
            None => {
                let seconds = READ_TIME.as_secs();
                let error = format!("{source} is not read within {seconds}s; is it a file, on a disk that answers?");
                return refused(Outcome::Busy, vec![error]);
            }
        };
        self.take_addresses(&mut wanted);
        let found = settings::differences(&self.running, &wanted);
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
        let tuning = Tuning::between(&self.running.switch, &wanted.switch, self.hz);
        let fixed = found.iter().filter(|difference| !difference.is_live);
        answer.errors = fixed.map(|difference| format!("{difference}: needs a restart")).collect();
        let Some(tuning) = tuning.filter(|_| answer.errors.is_empty()) else {
            if answer.errors.is_empty() {
                answer.errors.push("the plans differ in more than what is named here: needs a restart".to_owned());
            }
            answer.outcome = Outcome::NeedsRestart;
            return answer;
        };
        answer.outcome = Outcome::Applicable;
        if apply {
            self.apply(tuning, wanted, &mut answer).await;
        }
        answer
    }

    /// The configuration as it is now; `None` if it does not come. Read on a thread of its own, since a file may be on a
    /// disk that hangs, and the control thread has signals to hear and a watchdog to calm.
    async fn read(&self) -> Option<Result<Config, ConfigErrors>> {
        let (again, (answer, answered)) = (self.again.clone(), oneshot::channel());
        let reader = std::thread::Builder::new().name("reload".to_owned());
        // Nobody waits for the answer any more if it comes too late.
        reader.spawn(move || drop(answer.send(again()))).ok()?;
        tokio::time::timeout(READ_TIME, answered).await.ok()?.ok()
    }

    /// A NIC's own address counts where the configuration gives none.
    fn take_addresses(&self, wanted: &mut Config) {
        for (index, device) in wanted.devices.iter().enumerate() {
            if let (false, Some(port), Some(own)) =
                (device.has_mac, wanted.switch.ports.get_mut(index), self.running.switch.ports.get(index))
            {
                port.mac = own.mac;
            }
        }
    }

    /// Gives every lcore the settings, and waits until all go on by them.
    async fn apply(&mut self, tuning: Tuning, wanted: Config, answer: &mut Reload) {
        // First, so that either all are given or none is.
        if !self.senders.iter_mut().all(Sender::is_idle) {
            answer.outcome = Outcome::Busy;
            answer
                .errors
                .push("an lcore has not taken the settings of the last reload; does it stand still?".to_owned());
            return;
        }
        for sender in &mut self.senders {
            let is_given = sender.send(Box::new(tuning.clone())).is_ok();
            debug_assert!(is_given, "it has taken all that it was given");
        }
        let end = Instant::now() + TAKE_TIME;
        while !self.senders.iter_mut().all(Sender::is_idle) && Instant::now() < end {
            tokio::time::sleep(LOOK_TIME).await;
        }
        if !self.senders.iter_mut().all(Sender::is_idle) {
            // It has the settings and will go on by them; until then ports differ.
            answer
                .warnings
                .push("an lcore has not polled since: it goes on by the new settings when it does".to_owned());
        }
        self.current.tuned(wanted.switch.clone(), settings::fingerprint(&wanted));
        self.running = wanted;
        answer.outcome = Outcome::Applied;
    }
}
