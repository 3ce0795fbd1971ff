//! A change on its way to lcores, threads and observers, and the new division of the buffer after it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::replace::LEAVE_TIME;
use super::{Change, LOOK_TIME, Reloader, TAKE_TIME};
use crate::api::model::{Reload, ReloadOutcome};
use crate::config::Config;
use crate::config::settings::Settings;
use crate::control::resize::Resizing;
use crate::control::watch::DEVICE_PERIOD;
use crate::control::{devices, plane, with_ports};
use crate::faults::board::Refused;
use crate::faults::{Fault, FaultBoard};
use crate::forward::{Fdb, StaticChange};
use crate::plan::SwitchSpec;
use crate::plan::mailbox::Sender;
use crate::sets::PortSet;

/// Time for agents to tell peers that a port will be shut: each looks at its settings within 50 ms.
const FAREWELL_TIME: Duration = Duration::from_millis(150);
/// Interval between steps of a new division of the buffer, and the time for which an answer waits for its end.
const STEP_TIME: Duration = Duration::from_millis(1);
const DIVIDE_TIME: Duration = Duration::from_millis(200);

impl Reloader {
    /// Sends the settings to every lcore, and waits until all have applied them.
    pub(super) async fn apply(&mut self, change: Change, settings: Arc<Settings>, answer: &mut Reload) {
        let Change { live_config, wanted, leaving } = change;
        let has_statics = !live_config.statics().is_empty();
        // Checked first, so that either all lcores receive the settings or none.
        if !self.is_ready().await {
            answer.outcome = ReloadOutcome::Busy;
            answer
                .errors
                .push("an lcore has not taken all of the last reload; try again, or check whether it hangs".to_owned());
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
            mirror.configure(&plane::system_name(&wanted), &wanted.mirror, &wanted.switch);
        }
        self.announce_shut(&wanted).await;
        // A class that becomes lossy promises nothing from now on.
        let kept = wanted.switch.lossless_classes();
        self.current.change(|view| view.with_lossless(view.lossless & kept));
        for sender in &mut self.senders {
            let is_given = sender.send(Box::new(live_config.clone())).is_ok();
            debug_assert!(is_given, "the lcore has taken all earlier settings");
        }
        let mut resizing = Resizing::begin(wanted.switch.buffer, self.senders.len());
        let end = Instant::now() + TAKE_TIME;
        while !resizing.is_taken(&mut self.senders) && Instant::now() < end {
            self.wait().await;
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
            with_ports(view, &wanted, &self.ports.borrow())
        });
        let profiles = |config: &Config| config.switch.ports.iter().map(|port| port.buffer).collect::<Vec<_>>();
        let is_divided =
            self.running.switch.buffer == wanted.switch.buffer && profiles(&self.running) == profiles(&wanted);
        if let Ok(places) = self.places_after(live_config.statics()) {
            self.places = places;
        }
        self.running = wanted;
        answer.outcome = ReloadOutcome::Applied;
        if self.resizing.is_some() || !is_divided || has_statics || !leaving.is_empty() {
            self.resizing = Some(resizing);
            self.divide(leaving, answer).await;
        }
    }

    /// Waits for a limited time until the lcores can take other settings. A division that has not ended gives way: its
    /// messages are under way for a poll at most. Static entries change to the end.
    async fn is_ready(&mut self) -> bool {
        let end = Instant::now() + STEP_TIME * 20;
        while !self.is_idle() && Instant::now() < end {
            if self.resizing.as_ref().is_some_and(Resizing::has_statics) {
                self.step();
            }
            self.wait().await;
        }
        self.is_idle()
    }

    /// Waits for a moment. Links are looked at meanwhile: an order may take seconds, and frames to a port without a
    /// link must not wait for it.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(LOOK_TIME).await;
        if self.looked.elapsed() >= DEVICE_PERIOD {
            self.looked = Instant::now();
            self.control.set_links(devices::refresh(&self.ports.borrow().ports, &self.current.get()));
        }
    }

    /// Whether every lcore has taken all that it was sent. A division keeps the messages that have come back: it goes
    /// on if this change is refused.
    pub(super) fn is_idle(&mut self) -> bool {
        match &mut self.resizing {
            Some(resizing) => resizing.is_taken(&mut self.senders) && !resizing.has_statics(),
            None => self.senders.iter_mut().all(Sender::is_idle),
        }
    }

    /// Waits for a limited time until the buffer is divided as configured, or if ports are `leaving`, until these are
    /// empty.
    async fn divide(&mut self, leaving: PortSet, answer: &mut Reload) {
        let end = Instant::now() + if leaving.is_empty() { DIVIDE_TIME } else { LEAVE_TIME };
        while !self.step() {
            if !leaving.is_empty() && self.are_empty(leaving) {
                return;
            }
            if Instant::now() >= end {
                let pending = if self.resizing.as_ref().is_some_and(Resizing::has_statics) {
                    "static entries are still being written; the next reload may have to wait for them"
                } else {
                    "parts of the buffer still hold frames and grow or shrink when these have left: \
                     `holdfast show buffers` says which"
                };
                answer.warnings.push(pending.to_owned());
                return;
            }
            self.wait().await;
        }
    }

    /// The places of the static entries after `changes`, which all forwarding databases will make alike.
    ///
    /// # Errors
    /// An entry finds no place.
    pub(super) fn places_after(&self, changes: &[StaticChange]) -> Result<Option<Fdb>, String> {
        if changes.is_empty() {
            return Ok(self.places.clone());
        }
        let mut places = self.places.clone().unwrap_or_else(|| Fdb::new(&self.running.switch.whole_fdb(), self.hz));
        match changes.iter().find(|change| !places.set_static(**change)) {
            None => Ok(Some(places)),
            Some(change) => Err(format!(
                "fdb.static: the places of {} are taken by other static entries; raise `fdb.capacity`: needs a restart",
                change.station.mac()
            )),
        }
    }

    /// Whether `ports`, which the last change was to empty, are.
    pub(super) fn are_empty(&self, ports: PortSet) -> bool {
        self.resizing.as_ref().is_none_or(|resizing| resizing.is_done_at(ports))
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

    /// Goes a step of the new division of the buffer. Returns true if that ends it.
    pub fn step(&mut self) -> bool {
        let Some(resizing) = &mut self.resizing else { return false };
        let pending = resizing.step(&mut self.senders, &self.pools);
        self.current.get().pending.set(pending);
        if pending.is_none() {
            self.resizing = None;
            // Classes that have become lossless have their headroom at all ports.
            let lossless = self.running.switch.lossless_classes();
            self.current.change(|view| view.with_lossless(lossless));
        }
        pending.is_none()
    }

    /// The time of the next step of a new division of the buffer; `None`: it is divided as configured.
    pub fn next_step(&self) -> Option<Instant> {
        self.resizing.as_ref().map(|_| Instant::now() + STEP_TIME)
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
