//! The state machines of one member (802.1AX-2014 clauses 6.4.12 to 6.4.16).

use serde::Serialize;

use crate::units::Nanos;
use crate::wire::lacp::{Lacpdu, Participant, PortState};

/// Times of clause 6.4.4.
const SECOND: u64 = 1_000_000_000;
const FAST_PERIODIC: u64 = SECOND;
const SLOW_PERIODIC: u64 = 30 * SECOND;
const SHORT_TIMEOUT: u64 = 3 * SECOND;
const LONG_TIMEOUT: u64 = 90 * SECOND;
/// Data units that may leave in each second (clause 6.4.16).
const MOST_A_SECOND: u8 = 3;

/// States that a partner may not contradict: a data unit that does is answered at once (clause 6.4.9, `update_NTT`).
const TOLD: PortState = PortState(
    PortState::ACTIVE.0 | PortState::SHORT_TIMEOUT.0 | PortState::SYNCHRONIZATION.0 | PortState::AGGREGATION.0,
);
/// The partner that a member with the state `actor` assumes while none speaks. A fast member assumes a fast one, so
/// that it asks for a partner each second.
fn default_partner(actor: PortState) -> Participant {
    let state = PortState::default().with(PortState::SHORT_TIMEOUT, actor.has(PortState::SHORT_TIMEOUT));
    Participant { state, ..Participant::default() }
}

/// Data units and markers of a member.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemberCounts {
    /// Data units received and sent.
    pub received: u64,
    /// See `received`.
    pub sent: u64,
    /// Markers that were answered.
    pub markers: u64,
    /// Frames of LACP or markers that are malformed.
    pub malformed: u64,
    /// Times at which the member became active, and stopped to be it.
    pub ups: u64,
    /// See `ups`.
    pub downs: u64,
}

/// State of the receive machine (clause 6.4.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Receive {
    /// No link.
    PortDisabled,
    /// The data unit of the partner is too old, or none has come yet.
    Expired,
    /// The partner does not speak.
    Defaulted,
    /// The data unit of the partner holds.
    Current,
}

/// State of the mux machine (clause 6.4.15) with independent control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mux {
    Detached,
    Attached,
    Collecting,
    Distributing,
}

/// The machines of a member.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub actor: Participant,
    pub partner: Participant,
    pub receive: Receive,
    pub mux: Mux,
    /// Whether the selection logic has chosen the member for its group.
    pub is_selected: bool,
    pub counts: MemberCounts,
    /// Instant at which the data unit of the partner is too old.
    expires: Nanos,
    /// Instant of the next periodic data unit; `None`: there is none.
    next: Option<Nanos>,
    /// Whether a data unit is due (NTT).
    is_due: bool,
    /// Begin of the present second, and data units sent in it.
    second: Nanos,
    sent: u8,
}

impl Member {
    /// A member without a link. `actor` has its names and whether it is active and fast.
    pub fn new(actor: Participant) -> Self {
        Self {
            actor,
            partner: default_partner(actor.state),
            receive: Receive::PortDisabled,
            mux: Mux::Detached,
            is_selected: false,
            counts: MemberCounts::default(),
            expires: Nanos(0),
            next: None,
            is_due: false,
            second: Nanos(0),
            sent: 0,
        }
    }

    /// Takes the state of the link.
    pub fn link(&mut self, is_up: bool, now: Nanos) {
        if is_up && self.receive == Receive::PortDisabled {
            self.expire(now);
            self.is_due = self.actor.state.has(PortState::ACTIVE);
        } else if !is_up {
            self.receive = Receive::PortDisabled;
            self.partner.state = self.partner.state.with(PortState::SYNCHRONIZATION, false);
            self.set_actor(PortState::EXPIRED, false);
            (self.is_selected, self.is_due, self.next) = (false, false, None);
        }
    }

    /// The state EXPIRED.
    fn expire(&mut self, now: Nanos) {
        self.receive = Receive::Expired;
        let state = self.partner.state.with(PortState::SYNCHRONIZATION, false);
        self.partner.state = state.with(PortState::SHORT_TIMEOUT, true);
        self.expires = Nanos(now.0 + SHORT_TIMEOUT);
        self.set_actor(PortState::EXPIRED, true);
    }

    /// Takes a data unit of the partner (the state CURRENT).
    pub fn take(&mut self, pdu: &Lacpdu, now: Nanos) {
        if self.receive == Receive::PortDisabled {
            return;
        }
        // update_NTT; update_Selected is part of the selection, which follows each data unit.
        let knows_us = is_same_port(&pdu.partner, &self.actor);
        if !knows_us || !pdu.partner.state.agrees(self.actor.state, TOLD) {
            self.is_due = true;
        }
        // recordPDU
        let pairs = knows_us && pdu.partner.state.agrees(self.actor.state, PortState::AGGREGATION);
        let is_individual = !pdu.actor.state.has(PortState::AGGREGATION);
        let is_kept = pdu.actor.state.has(PortState::ACTIVE)
            || self.actor.state.has(PortState::ACTIVE) && pdu.partner.state.has(PortState::ACTIVE);
        let is_in_sync = pdu.actor.state.has(PortState::SYNCHRONIZATION) && (pairs || is_individual) && is_kept;
        self.partner = pdu.actor;
        self.partner.state = pdu.actor.state.with(PortState::SYNCHRONIZATION, is_in_sync);
        self.set_actor(PortState::DEFAULTED, false);
        self.set_actor(PortState::EXPIRED, false);
        self.receive = Receive::Current;
        let is_short = self.actor.state.has(PortState::SHORT_TIMEOUT);
        self.expires = Nanos(now.0 + if is_short { SHORT_TIMEOUT } else { LONG_TIMEOUT });
    }

    /// Lets time pass: the receive machine, then the periodic one.
    pub fn tick(&mut self, now: Nanos) {
        match self.receive {
            Receive::Current if now >= self.expires => self.expire(now),
            Receive::Expired if now >= self.expires => {
                self.receive = Receive::Defaulted;
                self.is_selected = false;
                self.partner = default_partner(self.actor.state);
                self.set_actor(PortState::DEFAULTED, true);
                self.set_actor(PortState::EXPIRED, false);
            }
            _ => {}
        }
        let speaks = (self.actor.state.0 | self.partner.state.0) & PortState::ACTIVE.0 != 0;
        if !speaks || self.receive == Receive::PortDisabled {
            self.next = None;
            return;
        }
        let is_fast = self.partner.state.has(PortState::SHORT_TIMEOUT);
        let period = if is_fast { FAST_PERIODIC } else { SLOW_PERIODIC };
        // A partner that turns fast gets its first data unit within the shorter time.
        let next = self.next.map_or(Nanos(now.0 + period), |next| next.min(Nanos(now.0 + period)));
        self.next = Some(next);
        if now >= next {
            self.is_due = true;
            self.next = Some(Nanos(now.0 + period));
        }
    }

    /// Moves the mux machine as far as it goes. With `is_held` the member stays out of its group.
    pub fn settle(&mut self, is_held: bool) {
        let before = self.mux;
        let partner = self.partner.state;
        let wanted = match () {
            () if !self.is_selected || is_held => Mux::Detached,
            () if !partner.has(PortState::SYNCHRONIZATION) => Mux::Attached,
            () if !partner.has(PortState::COLLECTING) => Mux::Collecting,
            () => Mux::Distributing,
        };
        self.mux = wanted;
        if wanted == before {
            return;
        }
        self.set_actor(PortState::SYNCHRONIZATION, wanted >= Mux::Attached);
        self.set_actor(PortState::COLLECTING, wanted >= Mux::Collecting);
        self.set_actor(PortState::DISTRIBUTING, wanted >= Mux::Distributing);
        self.is_due = true;
    }

    /// The data unit that is due now, if any.
    pub fn due(&mut self, now: Nanos) -> Option<Lacpdu> {
        // A passive member answers and does not begin.
        let speaks = (self.actor.state.0 | self.partner.state.0) & PortState::ACTIVE.0 != 0;
        if !self.is_due || self.receive == Receive::PortDisabled || !speaks {
            return None;
        }
        if now.0 >= self.second.0 + SECOND {
            (self.second, self.sent) = (now, 0);
        }
        if self.sent >= MOST_A_SECOND {
            return None;
        }
        self.sent += 1;
        self.is_due = false;
        self.counts.sent += 1;
        Some(Lacpdu { actor: self.actor, partner: self.partner, collector_max_delay: 0 })
    }

    /// Whether the partner's data unit holds.
    pub fn is_current(&self) -> bool {
        self.receive == Receive::Current
    }

    /// Leaves the group for good: the partner is told by the next data unit, whatever was sent in this second.
    pub fn leave(&mut self) {
        self.is_selected = false;
        self.settle(true);
        (self.is_due, self.sent) = (true, 0);
    }

    fn set_actor(&mut self, bits: PortState, is_set: bool) {
        self.actor.state = self.actor.state.with(bits, is_set);
    }
}

/// Whether both name one port of one system with one key.
fn is_same_port(one: &Participant, other: &Participant) -> bool {
    Participant { state: PortState(0), ..*one } == Participant { state: PortState(0), ..*other }
}
