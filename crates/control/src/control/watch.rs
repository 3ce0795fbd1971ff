//! The control thread while the lcores run: monitors the switch, displays its state, and executes signals and reloads.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::api::Api;
use super::devices::Devices;
use super::display::Display;
use super::protocol_lines::{ProtocolEvent, Protocols};
use super::reload::Reloader;
use super::signals::{Order, Signals};
use super::start::HeldHosts;
use super::threads::{self, LateThreads};
use super::{RunOptions, Running, setup};
use crate::api::model::{Reload, ReloadOutcome};
use crate::api::reloads::{self, Ask, Wanted};
use crate::plan::LcoreControl;
use crate::sets::PortSet;
use crate::stats::verdict::not_lossless_line;
use crate::stats::{Current, Monitor, Notice, NoticeKind, Snapshot, SwitchView};
use crate::units::Nanos;
use crate::{lacp, lldp, mirror};

/// Interval between checks of links, device counters and events for the operator.
pub(super) const DEVICE_PERIOD: Duration = Duration::from_millis(100);
/// Time for each port to send its PFC state to its peer, and for a virtual host to receive it. Ports whose PFC is
/// unproven by then are reported.
const SELF_TEST_TIME: Duration = Duration::from_secs(1);

/// The state of the control thread while the lcores run.
pub(super) struct Watch<'a> {
    pub current: &'a Arc<Current>,
    pub ports: &'a RefCell<setup::Ports>,
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
        let mut display = Display::new(self.current.clone(), self.options);
        let mut monitor = Monitor::new(self.current.clone());
        let mut is_tested = false;
        let end = self.options.duration.map(|duration| self.start + duration);
        let mut devices = threads::every(DEVICE_PERIOD);
        for line in self.reloader.begin().await {
            self.note(&mut display, Notice::new(NoticeKind::ReloadWarning, line));
        }
        let mut picture = display.period().map(threads::every);
        if let Some(picture) = &mut picture {
            picture.tick().await;
        }
        loop {
            let next_picture = async {
                match &mut picture {
                    Some(picture) => drop(picture.tick().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = at(end.map(Into::into)) => return,
                order = signals.next() => match order {
                    Order::Stop => return,
                    Order::ClearWatermarks => self.clear_watermarks(&mut display),
                    Order::Reload => {
                        let order = reloads::Order::Apply { wanted: Wanted::File, confirm_within: None };
                        self.reload(&mut display, order, "").await;
                    }
                },
                Some(ask) = self.asked.recv() => {
                    let answer = self.reload(&mut display, ask.order, &ask.user).await;
                    // An error is ignored: the requester may be gone.
                    let _ = ask.answer.send(answer);
                }
                () = at(self.reloader.next_step()) => {
                    if self.reloader.step() {
                        let text = "buffer: divided as configured: what shrank has given up its cells";
                        self.note(&mut display, Notice::new(NoticeKind::BufferDivided, text));
                        if let Some(line) = self.reloader.enter().await {
                            self.note(&mut display, Notice::new(NoticeKind::ReloadWarning, line));
                        }
                    }
                }
                () = at(self.reloader.deadline()) => self.go_back(&mut display).await,
                _ = devices.tick() => {
                    self.look(&mut monitor, &mut display);
                    if !is_tested && self.start.elapsed() >= SELF_TEST_TIME {
                        is_tested = true;
                        self.name_the_unproven(&mut display);
                    }
                    if self.workers.has_ended() || threads::panicked().is_some() {
                        return;
                    }
                }
                () = next_picture => display.show(self.snapshot()),
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.current.get(), self.start.elapsed())
    }

    fn clear_watermarks(&self, display: &mut Display) {
        self.current.get().watermarks.remember(&self.snapshot());
        self.control.clear_watermarks();
        self.note(display, Notice::new(NoticeKind::WatermarksCleared, "clear: watermarks, by a signal"));
    }

    /// Checks links, devices and buffers, and reports events since the last check.
    fn look(&mut self, monitor: &mut Monitor, display: &mut Display) {
        let switch_view = self.current.get();
        let mut ports = self.ports.borrow_mut();
        let replaced = std::mem::take(&mut ports.replaced);
        let replaced = self.devices.replace(&ports.ports, replaced, &switch_view);
        let (up, notices) = self.devices.look(&ports.ports, &switch_view);
        self.control.set_links(up);
        let awaited = PortSet::first(switch_view.spec.ports.len()) - switch_view.spec.shut_ports();
        self.held.look((awaited - up).is_empty(), Instant::now());
        for notice in replaced.into_iter().chain(notices).chain(self.late.look()).chain(self.api.take_notices()) {
            self.note(display, notice);
        }
        ports.count_buffers(&switch_view.pools);
        drop(ports);
        switch_view.health.look(&switch_view.counters, Instant::now());
        self.report_events(&switch_view, display);
        for event in switch_view.faults.iter().flat_map(|board| board.take_events()) {
            let kind = if event.begins { NoticeKind::FaultBegins } else { NoticeKind::FaultEnds };
            self.note(display, Notice::new(kind, event.text).at_port(switch_view.port_name(event.port)));
        }
        for notice in monitor.look(self.snapshot()) {
            self.tell(display, &notice);
        }
    }

    /// Reports the events of LLDP, LACP and mirrors.
    fn report_events(&mut self, switch_view: &SwitchView, display: &mut Display) {
        let now = self.start.elapsed();
        let mut notices = Vec::new();
        if let Some(board) = &switch_view.lldp {
            let (events, dropped) = board.take_events();
            let event = |event: &lldp::Event| lldp_event(event, switch_view.port_name(event.port));
            notices.extend(self.protocols.lldp.next(events.iter().map(event), dropped, now));
        }
        if let Some(board) = &switch_view.lacp {
            let (events, dropped) = board.take_events();
            notices.extend(self.protocols.lacp.next(events.iter().map(lacp_event), dropped, now));
        }
        if let Some(board) = &switch_view.mirror {
            let (events, dropped) = board.take_events();
            notices.extend(self.protocols.mirror.next(events.iter().map(mirror_event), dropped, now));
        }
        for notice in notices {
            self.note(display, notice);
        }
    }

    /// Ends the self-test, and reports the ports whose PFC is unproven by now.
    fn name_the_unproven(&self, display: &mut Display) {
        let switch_view = self.current.get();
        switch_view.health.set_tested();
        if let Some(line) = not_lossless_line(&switch_view) {
            self.note(display, Notice::new(NoticeKind::NotLossless, line));
        }
    }

    /// Executes an order of `user`. If it was to change the switch, reports the result.
    async fn reload(&mut self, display: &mut Display, order: reloads::Order, user: &str) -> Reload {
        let is_change = !matches!(order, reloads::Order::Compare(_));
        let answer = self.reloader.execute(order, user).await;
        if is_change {
            self.api.goes_by(self.reloader.running());
            self.tell_reload(display, &answer, user);
        }
        answer
    }

    /// Goes back to the configuration before, because nobody has confirmed the running one.
    async fn go_back(&mut self, display: &mut Display) {
        let text = "reload: nobody has confirmed it: back to the configuration before";
        self.note(display, Notice::new(NoticeKind::ReloadReverted, text));
        let answer = self.reloader.go_back().await;
        self.api.goes_by(self.reloader.running());
        self.tell_reload(display, &answer, "");
    }

    /// Reports the result of a reload, setting by setting.
    fn tell_reload(&self, display: &mut Display, answer: &Reload, user: &str) {
        let (kind, head) = match answer.outcome {
            ReloadOutcome::Applied => (NoticeKind::ReloadApplied, "reload: applied"),
            ReloadOutcome::Unchanged => (NoticeKind::ReloadUnchanged, "reload: nothing differs"),
            ReloadOutcome::Applicable => (NoticeKind::ReloadUnchanged, "reload: could be applied"),
            ReloadOutcome::NeedsRestart => (NoticeKind::ReloadRefused, "reload: refused, nothing was applied"),
            ReloadOutcome::Invalid => {
                (NoticeKind::ReloadRefused, "reload: the configuration is invalid, nothing was applied")
            }
            ReloadOutcome::Busy => (NoticeKind::ReloadRefused, "reload: nothing was applied"),
            ReloadOutcome::Confirmed => (NoticeKind::ReloadConfirmed, "reload: confirmed"),
            ReloadOutcome::Unconfirmed => (NoticeKind::ReloadRefused, "reload: nothing to confirm"),
        };
        let by = if user.is_empty() { String::new() } else { format!(", by {user}") };
        let waits = answer
            .confirm_within_ns
            .map(|time| (NoticeKind::ReloadWaits, format!("reload: waits for its confirmation for {}", Nanos(time))));
        let errors = answer.errors.iter().map(|error| (NoticeKind::ReloadError, format!("reload: error: {error}")));
        let warnings = answer.warnings.iter();
        let warnings = warnings.map(|warning| (NoticeKind::ReloadWarning, format!("reload: warning: {warning}")));
        let changes = answer.differences.iter().filter(|_| answer.outcome == ReloadOutcome::Applied);
        let changes = changes.map(|difference| (NoticeKind::ReloadChange, format!("reload: {}", difference.text)));
        let head = std::iter::once((kind, format!("{head}{by}")));
        for (kind, text) in head.chain(waits).chain(changes).chain(errors).chain(warnings) {
            self.note(display, Notice::new(kind, text));
        }
    }

    /// Reports `notice` with the time since the start before its text.
    fn note(&self, display: &mut Display, notice: Notice) {
        self.tell(display, &notice.at(self.start.elapsed()));
    }

    /// Reports `notice`: to clients of the API, and on standard error.
    fn tell(&self, display: &mut Display, notice: &Notice) {
        let event = self.api.note(self.start.elapsed(), notice);
        display.announce(&event, notice.kind.severity());
    }
}

/// Waits until `time`; without one, for ever.
async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn lldp_event(event: &lldp::Event, port: &str) -> ProtocolEvent {
    let subject = (port.to_owned(), event.kind.subject());
    let kind = match event.kind {
        lldp::EventKind::New => NoticeKind::LldpNew,
        lldp::EventKind::Changed => NoticeKind::LldpChanged,
        lldp::EventKind::AgedOut => NoticeKind::LldpAgedOut,
        lldp::EventKind::ShutDown => NoticeKind::LldpShutDown,
        lldp::EventKind::Removed => NoticeKind::LldpRemoved,
        lldp::EventKind::TooMany => NoticeKind::LldpTooMany,
        lldp::EventKind::Differs(..) => NoticeKind::LldpDiffers,
        lldp::EventKind::Agrees(_) => NoticeKind::LldpAgrees,
        lldp::EventKind::Loop { .. } => NoticeKind::LldpLoop,
        lldp::EventKind::LoopEnded { .. } => NoticeKind::LldpLoopEnded,
    };
    ProtocolEvent { subject, kind, port: Some(port.to_owned()), text: event.text() }
}

fn lacp_event(event: &lacp::Event) -> ProtocolEvent {
    let (kind, port) = match &event.kind {
        lacp::EventKind::MemberActive(port) => (NoticeKind::LagMemberActive, Some(port.clone())),
        lacp::EventKind::MemberIdle(port, _) => (NoticeKind::LagMemberIdle, Some(port.clone())),
        lacp::EventKind::Up => (NoticeKind::LagUp, None),
        lacp::EventKind::Down(..) => (NoticeKind::LagDown, None),
    };
    ProtocolEvent { subject: (event.who(), event.subject()), kind, port, text: event.text() }
}

fn mirror_event(event: &mirror::Event) -> ProtocolEvent {
    let kind = if event.error.is_some() { NoticeKind::MirrorFailed } else { NoticeKind::MirrorRestored };
    let subject = (event.session.clone(), ("destination", None));
    ProtocolEvent { subject, kind, port: None, text: event.text().to_owned() }
}
