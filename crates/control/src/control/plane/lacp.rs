//! LACP of the control plane: runs the agent of all groups, with frames and time, and tells the lcores which members
//! are active.

use std::sync::Arc;

use super::Lcores;
use super::openings::{LcoreAccess, Openings, Used};
use crate::config::{Config, LacpConfig};
use crate::forward::LagState;
use crate::lacp::{Agent, AgentView, Board, GroupSettings, Negotiation, Settings};
use crate::plan::{Counters, LcoreControl};
use crate::route::{InjectTo, PuntCause, PuntFrame};
use crate::sets::PortSet;
use crate::units::Nanos;

/// Time between two looks at the timers.
const TICK: Nanos = Nanos(20_000_000);
/// Time between two states for observers; an event causes one at once.
const PUBLISH: Nanos = Nanos(500_000_000);

/// The agent on its thread.
pub(super) struct LacpThread {
    agent: Agent,
    /// Ports that negotiate.
    ports: PortSet,
    /// Ports that have a link, as the agent knows it.
    up: PortSet,
    /// Ports that will be shut, or are.
    leaving: PortSet,
    /// Number of times that each member's link went down, as the lcores know it.
    flaps: Vec<u32>,
    board: Arc<Board>,
    openings: Openings,
    /// The state that the lcores were told last.
    told: LagState,
    ticked: Nanos,
    published: Nanos,
    has_stopped: bool,
}

/// The settings of the agent by `config`.
fn settings(config: &Config) -> Settings {
    let ports = &config.switch.ports;
    let group = |(group, lacp): (&crate::forward::LagSpec, &Option<LacpConfig>)| GroupSettings {
        name: group.name.clone(),
        ports: group.ports,
        negotiation: lacp.map(|lacp| Negotiation { is_active: lacp.is_active, is_fast: lacp.is_fast }),
        min_links: group.min_links,
    };
    Settings {
        system: ports.first().map(|port| port.mac).unwrap_or_default(),
        names: ports.iter().map(|port| port.name.clone()).collect(),
        macs: ports.iter().map(|port| port.mac).collect(),
        groups: config.switch.lags.groups.iter().zip(&config.lacp).map(group).collect(),
    }
}

impl LacpThread {
    /// Creates the agent of `config`; `None` if the switch has no groups. All links are down.
    pub fn new(config: &Config) -> Option<Self> {
        let lags = &config.switch.lags;
        if lags.groups.is_empty() {
            return None;
        }
        let agent = Agent::new(settings(config));
        let board = Arc::new(Board::default());
        board.publish(agent.view(PortSet::EMPTY), Vec::new());
        let negotiating = lags.groups.iter().filter(|group| group.is_negotiated);
        Some(Self {
            agent,
            ports: negotiating.fold(PortSet::EMPTY, |all, group| all | group.ports),
            up: PortSet::EMPTY,
            leaving: PortSet::EMPTY,
            board,
            flaps: vec![0; config.switch.ports.len()],
            openings: Openings::new(lags),
            told: LagState::initial(lags),
            ticked: Nanos(0),
            published: Nanos(0),
            has_stopped: false,
        })
    }

    /// The state for observers.
    pub fn board(&self) -> Arc<Board> {
        self.board.clone()
    }

    /// Takes the ports that have a link. A link that went down and came up between two looks was down for the lcores.
    pub fn set_links(&mut self, control: &LcoreControl, up: PortSet, now: Nanos) {
        for (port, seen) in self.flaps.iter_mut().enumerate() {
            let flaps = control.flaps(port);
            if std::mem::replace(seen, flaps) != flaps && (self.up & up).contains(port) {
                self.agent.link(port, false, now);
                self.openings.forget(port);
                self.agent.link(port, true, now);
            }
        }
        for port in ((up - self.up) | (self.up - up)).iter() {
            self.agent.link(port, up.contains(port), now);
        }
        self.up = up;
    }

    /// Has the ports `leaving` leave their groups, before they are shut.
    pub fn set_leaving(&mut self, leaving: PortSet, now: Nanos) {
        let before = std::mem::replace(&mut self.leaving, leaving);
        (leaving - before).iter().for_each(|port| self.agent.leave(port, now));
    }

    /// Takes a punted frame. Returns false if it is not for the agent.
    pub fn take(&mut self, frame: &PuntFrame, now: Nanos) -> bool {
        let is_ours = frame.cause == PuntCause::Lacp && self.ports.contains(frame.port.into());
        if is_ours {
            self.agent.received(frame.port.into(), &frame.bytes, now);
        }
        is_ours
    }

    /// Acts on the time, tells the lcores which members are active, and publishes the state.
    pub fn tick(&mut self, control: &LcoreControl, counters: &Counters, now: Nanos) {
        // After the stop the lcores go on as before: frames that are under way must leave.
        if !self.has_stopped {
            if now.0 - self.ticked.0 >= TICK.0 {
                self.ticked = now;
                self.agent.tick(now);
            }
            let lcores = LcoreAccess { control, counters };
            let Used { distributing, closed } = self.openings.look(self.agent.distributing(), lcores, now);
            self.told = LagState { collecting: self.agent.collecting(), distributing, closed };
            control.set_lags(self.told);
        }
        let closed = self.told.closed;
        let events = self.agent.take_events();
        if !events.is_empty() || now.0 - self.published.0 >= PUBLISH.0 {
            self.published = now;
            let early_openings = self.openings.early();
            self.board.publish(AgentView { early_openings, ..self.agent.view(closed) }, events);
        }
    }

    /// Whether a member waits to be opened: the next look should come soon.
    pub fn is_opening(&self) -> bool {
        self.openings.is_underway()
    }

    /// Members that send frames.
    pub fn active(&self) -> PortSet {
        self.told.distributing
    }

    /// Sends the frames of the agent. Returns their number.
    pub fn send(&mut self, lcores: &mut Lcores) -> usize {
        let frames = self.agent.take_frames();
        for frame in &frames {
            // A data unit that finds no buffer is repeated with the next period.
            let _ = lcores.inject(&frame.frame, InjectTo::Link(frame.port as u8), 0);
        }
        frames.len()
    }

    /// Leaves all groups: partners are told by the next frames.
    pub fn stop(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.has_stopped, true) {
            self.agent.stop(now);
        }
    }
}
