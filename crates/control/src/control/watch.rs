//! The control thread while the lcores run: monitors the switch, displays its state, and executes signals and reloads.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::api::Api;
use super::devices::Devices;
use super::protocol_lines::{ProtocolEvent, Protocols};
use super::reload::Reloader;
use super::signals::{Order, Signals};
use super::start::HeldHosts;
use super::threads::{self, LateThreads};
use super::{RunOptions, Running, setup};
use crate::api::model::{Reload, ReloadOutcome};
use crate::api::reloads::{self, Ask, Wanted};
use crate::output::{self, Stream};
use crate::plan::LcoreControl;
use crate::sets::PortSet;
use crate::stats::verdict::not_lossless_line;
use crate::stats::{Current, Live, Monitor, Snapshot, Style, SwitchView};
use crate::units::Nanos;
use crate::{lacp, lldp, mirror};

/// Interval between checks of links, device counters and events for the operator.
const DEVICE_PERIOD: Duration = Duration::from_millis(100);
/// Time for each port to send its PFC state to its peer, and for a virtual host to receive it. Ports whose PFC is
/// unproven by then are reported.
const SELF_TEST_TIME: Duration = Duration::from_secs(1);

/// The state of the control thread while the lcores run.
pub(super) struct Watch<'a> {
    pub current: &'a Arc<Current>,
    pub ports: &'a setup::Ports,
    pub control: &'a LcoreControl,
    pub workers: &'a Running,
    pub options: &'a RunOptions,
    pub api: &'a Api,
    pub reloader: Reloader,
    /// Requests to reload that arrive over the API.
    pub asked: mpsc::Receiver<Ask>,
    /// The devices of the ports.
    pub devices: Devices,
    /// The virtual hosts, held until they may send.
    pub held: HeldHosts,
    /// Lines about events of protocols.
    pub protocols: Protocols,
    /// Threads that were late at the last look.
    pub late: LateThreads,
    /// The time at which the lcores began.
    pub start: Instant,
}

impl Watch<'_> {
    /// Monitors the switch until its duration ends, a signal arrives or an lcore or another thread has ended on its
    /// own, which only a panic causes.
    pub async fn run(mut self, signals: &mut Signals) {
        let style = if self.options.json { Style::Plain } else { Style::detect(std::io::stdout().is_terminal()) };
        let mut live = Live::new(self.current.clone(), style);
        let mut monitor = Monitor::new(self.current.clone());
        let mut is_tested = false;
        let end = self.options.duration.map(|duration| self.start + duration);
        let mut devices = tokio::time::interval(DEVICE_PERIOD);
        for line in self.reloader.begin().await {
            self.note(&mut live, &line);
        }
        let mut picture = tokio::time::interval(live.period());
        picture.tick().await;
        loop {
            tokio::select! {
                () = at(end.map(Into::into)) => return,
                order = signals.next() => match order {
                    Order::Stop => return,
                    Order::ClearWatermarks => self.clear_watermarks(),
                    Order::Reload => {
                        let order = reloads::Order::Apply { wanted: Wanted::File, confirm_within: None };
                        self.reload(&mut live, order, "").await;
                    }
                },
                Some(ask) = self.asked.recv() => {
                    let answer = self.reload(&mut live, ask.order, &ask.user).await;
                    // An error is ignored: the requester may be gone.
                    let _ = ask.answer.send(answer);
                }
                () = at(self.reloader.deadline()) => self.go_back(&mut live).await,
                _ = devices.tick() => {
                    self.look(&mut monitor, &mut live);
                    if !is_tested && self.start.elapsed() >= SELF_TEST_TIME {
                        is_tested = true;
                        self.name_the_unproven(&mut live);
                    }
                    if self.workers.has_ended() || threads::panicked().is_some() {
                        return;
                    }
                }
                _ = picture.tick() => show(&mut live, self.snapshot(), self.options.json),
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.current.get(), self.start.elapsed())
    }

    fn clear_watermarks(&self) {
        self.current.get().watermarks.remember(&self.snapshot());
        self.control.clear_watermarks();
    }

    /// Checks links, devices and buffers, and reports events since the last check.
    fn look(&mut self, monitor: &mut Monitor, live: &mut Live) {
        let switch_view = self.current.get();
        let (up, lines) = self.devices.look(&self.ports.ports, &switch_view);
        self.control.set_links(up);
        let awaited = PortSet::first(switch_view.spec.ports.len()) - switch_view.spec.shut_ports();
        self.held.look((awaited - up).is_empty(), Instant::now());
        for line in lines {
            self.note(live, &line);
        }
        for line in self.late.look() {
            self.note(live, &line);
        }
        self.ports.count_buffers(&switch_view.pools);
        switch_view.health.look(&switch_view.counters, Instant::now());
        self.report_events(&switch_view, live);
        for line in switch_view.faults.iter().flat_map(|board| board.take_lines()) {
            self.note(live, &line);
        }
        for line in monitor.look(self.snapshot()) {
            self.api.note(self.start.elapsed(), &line);
            announce(live, &line);
        }
    }

    /// Reports the events of LLDP, LACP and mirrors.
    fn report_events(&mut self, switch_view: &SwitchView, live: &mut Live) {
        let now = self.start.elapsed();
        if let Some(board) = &switch_view.lldp {
            let (events, dropped) = board.take_events();
            let line = |event: &lldp::Event| ProtocolEvent {
                subject: (switch_view.port_name(event.port).to_owned(), event.kind.subject()),
                text: event.text(),
            };
            for line in self.protocols.lldp.next(events.iter().map(line), dropped, now) {
                self.note(live, &line);
            }
        }
        if let Some(board) = &switch_view.lacp {
            let (events, dropped) = board.take_events();
            let line =
                |event: &lacp::Event| ProtocolEvent { subject: (event.who(), event.subject()), text: event.text() };
            for line in self.protocols.lacp.next(events.iter().map(line), dropped, now) {
                self.note(live, &line);
            }
        }
        if let Some(board) = &switch_view.mirror {
            let (events, dropped) = board.take_events();
            let line = |event: &mirror::Event| ProtocolEvent {
                subject: (event.session.clone(), ("destination", None)),
                text: event.text().to_owned(),
            };
            for line in self.protocols.mirror.next(events.iter().map(line), dropped, now) {
                self.note(live, &line);
            }
        }
    }

    /// Ends the self-test, and reports the ports whose PFC is unproven by now.
    fn name_the_unproven(&self, live: &mut Live) {
        let switch_view = self.current.get();
        switch_view.health.set_tested();
        if let Some(line) = not_lossless_line(&switch_view) {
            self.note(live, &line);
        }
    }

    /// Executes an order of `user`. If it was to change the switch, reports the result.
    async fn reload(&mut self, live: &mut Live, order: reloads::Order, user: &str) -> Reload {
        let is_change = !matches!(order, reloads::Order::Compare(_));
        let answer = self.reloader.execute(order, user).await;
        if is_change {
            self.api.goes_by(self.reloader.running());
            self.tell_reload(live, &answer, user);
        }
        answer
    }

    /// Goes back to the configuration before, because nobody has confirmed the running one.
    async fn go_back(&mut self, live: &mut Live) {
        self.note(live, "reload: nobody has confirmed it: back to the configuration before");
        let answer = self.reloader.go_back().await;
        self.api.goes_by(self.reloader.running());
        self.tell_reload(live, &answer, "");
    }

    /// Reports the result of a reload, setting by setting.
    fn tell_reload(&self, live: &mut Live, answer: &Reload, user: &str) {
        let head = match answer.outcome {
            ReloadOutcome::Applied => "reload: applied",
            ReloadOutcome::Unchanged => "reload: nothing differs",
            ReloadOutcome::Applicable => "reload: could be applied",
            ReloadOutcome::NeedsRestart => "reload: refused, nothing was applied",
            ReloadOutcome::Invalid => "reload: the configuration is invalid, nothing was applied",
            ReloadOutcome::Busy => "reload: nothing was applied",
            ReloadOutcome::Confirmed => "reload: confirmed",
            ReloadOutcome::Unconfirmed => "reload: nothing to confirm",
        };
        let by = if user.is_empty() { String::new() } else { format!(", by {user}") };
        let waits =
            answer.confirm_within_ns.map(|time| format!("reload: waits for its confirmation for {}", Nanos(time)));
        let errors = answer.errors.iter().map(|error| format!("reload: error: {error}"));
        let warnings = answer.warnings.iter().map(|warning| format!("reload: warning: {warning}"));
        let changes = answer.differences.iter().filter(|_| answer.outcome == ReloadOutcome::Applied);
        let changes = changes.map(|difference| format!("reload: {}", difference.text));
        for line in std::iter::once(format!("{head}{by}")).chain(waits).chain(changes).chain(errors).chain(warnings) {
            self.note(live, &line);
        }
    }

    /// Reports `line` with the time since the start: to the API's subscribers, and on standard error.
    fn note(&self, live: &mut Live, line: &str) {
        let line = self.at(line);
        self.api.note(self.start.elapsed(), &line);
        announce(live, &line);
    }

    /// Prefixes `line` with the time since the start.
    fn at(&self, line: &str) -> String {
        format!("t={:.1}s {line}", self.start.elapsed().as_secs_f64())
    }
}

/// Waits until `time`; without one, for ever.
async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Draws the next picture. With `--json`, the picture goes to standard error, and standard output has only the report.
fn show(live: &mut Live, snapshot: Snapshot, json: bool) {
    let text = live.next(snapshot);
    output::write(if json { Stream::Err } else { Stream::Out }, text.as_bytes());
}

/// Prints an event to standard error, or below the picture if both are on the same terminal.
fn announce(live: &mut Live, line: &str) {
    let is_shown = live.notice(line);
    if !is_shown || !std::io::stderr().is_terminal() {
        output::line(Stream::Err, line);
    }
}
