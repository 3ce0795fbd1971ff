//! The agent of all groups: it gives frames, links and time to the machines of the members, and takes their frames.

use super::member::{Member, MemberCounts, Mux, Receive};
use super::select::{PartnerId, partner_of};
use super::view::{AgentView, GroupView, MemberView, Obstacle, PartnerView};
use crate::sets::PortSet;
use crate::units::Nanos;
use crate::wire::MacAddr;
use crate::wire::lacp::{FRAME, Participant, PortState, SlowFrame, answer_marker, parse};

/// Priority of systems and ports: the middle, as of most switches.
const PRIORITY: u16 = 0x8000;
/// Frames and events that wait for the caller, who takes them after each call. Further ones are dropped.
const MOST_OUTPUT: usize = 1024;

/// How a group negotiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiation {
    /// Whether its ports speak first.
    pub is_active: bool,
    /// Whether it wants a data unit each second, and gives a partner up after three.
    pub is_fast: bool,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    /// Name.
    pub name: String,
    /// Its ports.
    pub ports: PortSet,
    /// LACP; `None`: members are active while they have a link.
    pub negotiation: Option<Negotiation>,
    /// Fewest active members with which the group carries frames.
    pub min_links: u8,
}

/// The groups of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address of the switch as a system.
    pub system: MacAddr,
    /// Names and addresses of the ports, by index.
    pub names: Vec<String>,
    /// See `names`.
    pub macs: Vec<MacAddr>,
    /// Groups.
    pub groups: Vec<GroupSettings>,
}

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Port by which it leaves.
    pub port: usize,
    /// The frame.
    pub frame: [u8; FRAME],
}

/// Something that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time on the caller's clock.
    pub at: Nanos,
    /// Name of the group.
    pub group: String,
    /// Its content.
    pub kind: EventKind,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A member became active.
    MemberActive(String),
    /// A member is active no more, for this reason.
    MemberIdle(String, Obstacle),
    /// The group carries frames again.
    Up,
    /// The group carries no frames: it has so many active members, and needs that many.
    Down(usize, u8),
}

impl Event {
    /// The name of the event, and the part that it concerns: lines are paced by them.
    #[must_use]
    pub fn subject(&self) -> (&'static str, Option<&'static str>) {
        match &self.kind {
            EventKind::MemberActive(_) => ("active", None),
            EventKind::MemberIdle(_, why) => ("idle", Some(why.label())),
            EventKind::Up | EventKind::Down(..) => ("group", None),
        }
    }

    /// The group, and the member if the event is about one.
    #[must_use]
    pub fn who(&self) -> String {
        match &self.kind {
            EventKind::MemberActive(port) | EventKind::MemberIdle(port, _) => format!("{} {port}", self.group),
            EventKind::Up | EventKind::Down(..) => self.group.clone(),
        }
    }

    /// The event as a sentence that follows [`Event::who`].
    #[must_use]
    pub fn text(&self) -> String {
        match &self.kind {
            EventKind::MemberActive(_) => "is active".to_owned(),
            EventKind::MemberIdle(_, why) => format!("is not active: {why}"),
            EventKind::Up => "carries frames".to_owned(),
            EventKind::Down(active, least) => {
                format!("carries no frames: it has {active} active members and needs {least}")
            }
        }
    }
}

/// A group with the machines of its members.
#[derive(Debug)]
struct Group {
    settings: GroupSettings,
    /// Members by port.
    members: Vec<(usize, Member)>,
    partner: Option<PartnerId>,
    /// Members that were active at the last look, and whether the group carried frames.
    active: PortSet,
    is_up: bool,
}

/// The agent.
#[derive(Debug)]
pub struct Agent {
    system: MacAddr,
    names: Vec<String>,
    macs: Vec<MacAddr>,
    groups: Vec<Group>,
    /// Ports that have a link.
    up: PortSet,
    has_stopped: bool,
    frames: Vec<Outgoing>,
    events: Vec<Event>,
}

impl Group {
    fn new(settings: GroupSettings, key: u16, system: MacAddr) -> Self {
        let member = |port: usize| {
            let negotiation = settings.negotiation.unwrap_or(Negotiation { is_active: false, is_fast: false });
            let state = PortState::AGGREGATION
                .with(PortState::ACTIVE, negotiation.is_active)
                .with(PortState::SHORT_TIMEOUT, negotiation.is_fast)
                .with(PortState::DEFAULTED, true);
            let number = port as u16 + 1;
            let actor =
                Participant { system_priority: PRIORITY, system, key, port_priority: PRIORITY, port: number, state };
            (port, Member::new(actor))
        };
        let members = settings.ports.iter().map(member).collect();
        Self { settings, members, partner: None, active: PortSet::EMPTY, is_up: false }
    }

    /// Runs the selection logic and the mux machines.
    fn settle(&mut self, system: MacAddr) {
        let of_member = |(_, member): &(usize, Member)| {
            // A cable between two own ports is no link to another system.
            let has_partner = member.is_current() && member.partner.system != system;
            has_partner.then(|| PartnerId::of(&member.partner))
        };
        let partners: Vec<Option<PartnerId>> = self.members.iter().map(of_member).collect();
        self.partner = partner_of(&partners, self.partner);
        for ((_, member), partner) in self.members.iter_mut().zip(partners) {
            // A member whose data unit is too old stays selected until the partner is given up.
            let is_waiting = member.receive == Receive::Expired && member.is_selected;
            member.is_selected = is_waiting || partner.is_some() && partner == self.partner;
        }
        // With too few links the group carries nothing. The partner must know, or it would send in vain. It may send as
        // soon as it hears SYNC, so that SYNC is not stated.
        let selected = self.members.iter().filter(|(_, member)| member.is_selected).count();
        let is_held = selected < usize::from(self.settings.min_links);
        self.members.iter_mut().for_each(|(_, member)| member.settle(is_held));
    }

    /// Members in a state from `least` on.
    fn members_from(&self, least: Mux, up: PortSet) -> PortSet {
        if self.settings.negotiation.is_none() {
            let links = self.settings.ports & up;
            return if links.len() < usize::from(self.settings.min_links) { PortSet::EMPTY } else { links };
        }
        let members = self.members.iter().filter(|(_, member)| member.mux >= least);
        members.map(|(port, _)| *port).collect::<PortSet>() & up
    }

    /// Why a member is not active.
    fn obstacle(&self, port: usize, member: &Member, up: PortSet, system: MacAddr) -> Option<Obstacle> {
        let partner = &member.partner.state;
        let passive = || self.settings.negotiation.is_some_and(|negotiation| !negotiation.is_active);
        match member.receive {
            _ if !up.contains(port) => Some(Obstacle::NoLink),
            _ if self.settings.negotiation.is_none() => {
                let links = self.settings.ports & up;
                (links.len() < usize::from(self.settings.min_links)).then_some(Obstacle::TooFew)
            }
            Receive::PortDisabled => Some(Obstacle::NoLink),
            Receive::Expired | Receive::Defaulted if passive() => Some(Obstacle::SilentToPassive),
            Receive::Expired | Receive::Defaulted => Some(Obstacle::Silent),
            Receive::Current if member.partner.system == system => Some(Obstacle::Own),
            Receive::Current if !member.is_selected => Some(Obstacle::OtherPartner),
            Receive::Current if member.mux == Mux::Detached => Some(Obstacle::TooFew),
            Receive::Current if !partner.has(PortState::SYNCHRONIZATION) => Some(Obstacle::NotSelectedByPartner),
            Receive::Current if member.mux < Mux::Distributing => Some(Obstacle::PartnerTakesNothing),
            Receive::Current => None,
        }
    }
}

impl Agent {
    /// Creates the agent of `settings`. All links are down.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let Settings { system, names, macs, groups } = settings;
        let groups = groups.into_iter().enumerate().map(|(key, group)| Group::new(group, key as u16 + 1, system));
        Self {
            system,
            names,
            macs,
            groups: groups.collect(),
            up: PortSet::EMPTY,
            has_stopped: false,
            frames: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Takes the link state of a port.
    pub fn link(&mut self, port: usize, is_up: bool, now: Nanos) {
        self.up.set(port, is_up);
        if let Some(group) = self.groups.iter_mut().find(|group| group.settings.ports.contains(port)) {
            let member = group.members.iter_mut().find(|(at, _)| *at == port);
            if let Some((_, member)) = member.filter(|_| group.settings.negotiation.is_some()) {
                member.link(is_up, now);
            }
        }
        self.act(now);
    }

    /// Takes a frame that `port` received.
    pub fn received(&mut self, port: usize, frame: &[u8], now: Nanos) {
        let Self { groups, system, macs, .. } = self;
        let members = groups.iter_mut().filter(|group| group.settings.negotiation.is_some());
        let Some((_, member)) = members.flat_map(|group| &mut group.members).find(|(at, _)| *at == port) else {
            return;
        };
        let mut answer = None;
        match parse(frame) {
            Ok(SlowFrame::Lacp(pdu)) => {
                member.counts.received += 1;
                member.take(&pdu, now);
            }
            Ok(SlowFrame::Marker) => {
                member.counts.markers += 1;
                answer = answer_marker(frame, macs.get(port).copied().unwrap_or(*system));
            }
            Ok(SlowFrame::MarkerResponse | SlowFrame::Other) => {}
            Err(_) => member.counts.malformed += 1,
        }
        if let Some(frame) = answer {
            self.send(Outgoing { port, frame });
        }
        self.act(now);
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Nanos) {
        for group in self.groups.iter_mut().filter(|group| group.settings.negotiation.is_some()) {
            group.members.iter_mut().for_each(|(_, member)| member.tick(now));
        }
        self.act(now);
    }

    /// Leaves all groups: partners are told by the next frames, and send by other ways before the links go down.
    pub fn stop(&mut self, now: Nanos) {
        self.has_stopped = true;
        for group in &mut self.groups {
            group.members.iter_mut().for_each(|(_, member)| member.leave());
        }
        self.collect_frames(now);
    }

    /// Has `port` leave its group: its partner is told by the next frame. Its link is to go down then.
    pub fn leave(&mut self, port: usize, now: Nanos) {
        let members = self.groups.iter_mut().flat_map(|group| &mut group.members);
        members.filter(|(at, _)| *at == port).for_each(|(_, member)| member.leave());
        self.collect_frames(now);
    }

    /// Runs what follows from a change, and collects frames and events.
    fn act(&mut self, now: Nanos) {
        if self.has_stopped {
            return;
        }
        let system = self.system;
        self.groups.iter_mut().for_each(|group| group.settle(system));
        self.tell_changes(now);
        self.collect_frames(now);
    }

    fn collect_frames(&mut self, now: Nanos) {
        let mut frames = Vec::new();
        for group in self.groups.iter_mut().filter(|group| group.settings.negotiation.is_some()) {
            for (port, member) in &mut group.members {
                let source = self.macs.get(*port).copied().unwrap_or(self.system);
                frames.extend(member.due(now).map(|pdu| Outgoing { port: *port, frame: pdu.emit(source) }));
            }
        }
        frames.into_iter().for_each(|frame| self.send(frame));
    }

    fn send(&mut self, frame: Outgoing) {
        if self.frames.len() < MOST_OUTPUT {
            self.frames.push(frame);
        }
    }

    /// Makes events of the members and groups that have changed.
    fn tell_changes(&mut self, at: Nanos) {
        let Self { groups, up, system, names, events, .. } = self;
        for group in groups {
            let (before, active) = (group.active, group.members_from(Mux::Distributing, *up));
            let is_up = active.len() >= usize::from(group.settings.min_links.max(1));
            let mut kinds = Vec::new();
            for index in 0..group.members.len() {
                let port = group.members[index].0;
                if before.contains(port) == active.contains(port) {
                    continue;
                }
                let name = names.get(port).cloned().unwrap_or_default();
                if active.contains(port) {
                    group.members[index].1.counts.ups += 1;
                    kinds.push(EventKind::MemberActive(name));
                } else {
                    group.members[index].1.counts.downs += 1;
                    let why = group.obstacle(port, &group.members[index].1, *up, *system);
                    kinds.push(EventKind::MemberIdle(name, why.unwrap_or(Obstacle::NoLink)));
                }
            }
            if is_up != group.is_up {
                let least = group.settings.min_links.max(1);
                kinds.push(if is_up { EventKind::Up } else { EventKind::Down(active.len(), least) });
            }
            (group.active, group.is_up) = (active, is_up);
            for kind in kinds {
                if events.len() < MOST_OUTPUT {
                    events.push(Event { at, group: group.settings.name.clone(), kind });
                }
            }
        }
    }

    /// Takes the frames to send.
    #[must_use]
    pub fn take_frames(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.frames)
    }

    /// Takes the events, oldest first.
    #[must_use]
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Members that take frames. These are all that state SYNC: a partner with coupled control, such as Linux, sends as
    /// soon as it hears that.
    #[must_use]
    pub fn collecting(&self) -> PortSet {
        self.all_from(Mux::Attached)
    }

    /// Members that send frames.
    #[must_use]
    pub fn distributing(&self) -> PortSet {
        self.all_from(Mux::Distributing)
    }

    fn all_from(&self, least: Mux) -> PortSet {
        self.groups.iter().fold(PortSet::EMPTY, |all, group| all | group.members_from(least, self.up))
    }

    /// The state for observers. `closed` are members that keep their frames for now.
    #[must_use]
    pub fn view(&self, closed: PortSet) -> AgentView {
        let groups = self.groups.iter().map(|group| self.view_group(group, closed)).collect();
        AgentView { system: self.system.to_string(), groups, ..AgentView::default() }
    }

    fn view_group(&self, group: &Group, closed: PortSet) -> GroupView {
        let negotiates = group.settings.negotiation.is_some();
        let active = group.members_from(Mux::Distributing, self.up);
        let member = |(port, member): &(usize, Member)| MemberView {
            port: *port,
            name: self.names.get(*port).cloned().unwrap_or_default(),
            is_active: active.contains(*port),
            is_opening: closed.contains(*port),
            obstacle: group.obstacle(*port, member, self.up, self.system),
            state: if negotiates { member.actor.state.words() } else { Vec::new() },
            partner: (negotiates && member.is_current()).then(|| PartnerView::of(&member.partner)),
            counts: member.counts,
        };
        GroupView {
            name: group.settings.name.clone(),
            mode: match group.settings.negotiation {
                None => "static",
                Some(Negotiation { is_active: true, .. }) => "active",
                Some(_) => "passive",
            },
            is_fast: group.settings.negotiation.is_some_and(|negotiation| negotiation.is_fast),
            min_links: group.settings.min_links,
            is_up: group.is_up,
            partner: group.partner.filter(|_| negotiates).map(|partner| (partner.system.1.to_string(), partner.key)),
            members: group.members.iter().map(member).collect(),
        }
    }

    /// Statistics of a member.
    #[must_use]
    pub fn counts(&self, port: usize) -> Option<MemberCounts> {
        let mut members = self.groups.iter().flat_map(|group| &group.members);
        members.find(|(at, _)| *at == port).map(|(_, member)| member.counts)
    }
}
