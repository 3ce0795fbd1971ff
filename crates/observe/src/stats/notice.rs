//! Notices: what the switch reports while it runs, each with a kind that programs can depend on.

use std::time::Duration;

use crate::output::Severity;

macro_rules! kinds {
    ($($variant:ident => $name:literal, $severity:ident, $meaning:literal;)+) => {
        /// A kind of notice. Its name is stable (docs/versions.md); the text of a notice is not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum NoticeKind { $(#[doc = $meaning] $variant),+ }

        impl NoticeKind {
            /// Every kind with its name in JSON, its severity and its meaning.
            pub const TABLE: &[(Self, &'static str, Severity, &'static str)] =
                &[$((Self::$variant, $name, Severity::$severity, $meaning)),+];
        }
    };
}

kinds! {
    LosslessDrop => "lossless_drop", Error, "a lossless class lost frames";
    TransmitLoss => "transmit_loss", Error, "a device lost frames that it had accepted";
    Stuck => "stuck", Error, "a device accepts no frames";
    StuckEnded => "stuck_ended", Notice, "a device accepts frames again";
    WatchdogStorm => "watchdog_storm", Warning, "the watchdog found a queue paused for too long";
    WatchdogRestored => "watchdog_restored", Notice, "the watchdog restored a queue";
    PeerDisobeys => "peer_disobeys", Error, "a peer does not stop at XOFF";
    PeerObeys => "peer_obeys", Notice, "a peer that did not stop at XOFF does, or has a new link";
    Backlog => "backlog", Warning, "frames wait in a receive ring, and lossless classes are paused for it";
    Shed => "shed", Warning, "an overloaded lcore dropped lossy frames";
    PortXoff => "port_xoff", Warning, "a port has no buffer left except its insurance";
    Flood => "flood", Warning, "a port received more frames of a kind than its limit";
    StationLimit => "station_limit", Warning, "stations of a port give way to others";
    SpanningTree => "spanning_tree", Warning, "a peer runs spanning tree";
    LinkDown => "link_down", Warning, "a port lost its link";
    LinkUp => "link_up", Notice, "a port has its link again";
    LinkKept => "link_kept", Warning, "the device of a shut port keeps its link";
    NeighbourLimit => "neighbour_limit", Warning, "neighbours of a port give way to others";
    LinuxWithheld => "linux_withheld", Warning, "Linux did not get frames of a port";
    FlowControl => "flow_control", Warning, "a device may pause, against the guarantee of PFC";
    NotLossless => "not_lossless", Warning, "ports without a guarantee, after the self-test";
    Advice => "advice", Warning, "a recommended change";
    FaultsAdded => "faults_added", Notice, "faults were added by a request";
    FaultsRemoved => "faults_removed", Notice, "faults were removed by a request";
    FaultBegins => "fault_begins", Notice, "an injected fault begins";
    FaultEnds => "fault_ends", Notice, "an injected fault ends";
    ThreadLate => "thread_late", Error, "a thread beside the lcores does not run";
    ThreadRuns => "thread_runs", Notice, "a thread that was late runs again";
    ReloadApplied => "reload_applied", Notice, "a reload was applied";
    ReloadUnchanged => "reload_unchanged", Info, "a reload found no difference";
    ReloadRefused => "reload_refused", Warning, "a reload was refused";
    ReloadChange => "reload_change", Info, "a setting that a reload changed";
    ReloadError => "reload_error", Error, "a reason why a reload was refused";
    ReloadWarning => "reload_warning", Warning, "a warning about the configuration that was read again";
    ReloadWaits => "reload_waits", Notice, "a configuration waits for its confirmation";
    ReloadConfirmed => "reload_confirmed", Notice, "a configuration was confirmed";
    ReloadReverted => "reload_reverted", Warning, "nobody confirmed a configuration: back to the one before";
    BufferDivided => "buffer_divided", Info, "the buffer is divided as a reload wanted";
    WatermarksCleared => "watermarks_cleared", Info, "watermarks were set to the current values";
    FdbCleared => "fdb_cleared", Notice, "learned stations were removed by an operator";
    LldpNew => "lldp_new", Info, "a neighbour of LLDP has appeared";
    LldpChanged => "lldp_changed", Info, "a neighbour has changed its statements";
    LldpAgedOut => "lldp_aged_out", Warning, "a neighbour is silent";
    LldpShutDown => "lldp_shut_down", Notice, "a neighbour has ended LLDP";
    LldpRemoved => "lldp_removed", Info, "a neighbour is forgotten";
    LldpTooMany => "lldp_too_many", Warning, "a neighbour is ignored: the port has too many";
    LldpDiffers => "lldp_differs", Warning, "a setting of a neighbour differs";
    LldpAgrees => "lldp_agrees", Notice, "a setting of a neighbour differs no more";
    LldpLoop => "lldp_loop", Error, "frames of an own port come back";
    LldpLoopEnded => "lldp_loop_ended", Notice, "frames of an own port come back no more";
    LagMemberActive => "lag_member_active", Notice, "a member of a link aggregation group is active";
    LagMemberIdle => "lag_member_idle", Warning, "a member of a link aggregation group is not active";
    LagUp => "lag_up", Notice, "a link aggregation group carries frames";
    LagDown => "lag_down", Error, "a link aggregation group carries no frames";
    MirrorFailed => "mirror_failed", Warning, "a destination of copies refuses them";
    MirrorRestored => "mirror_restored", Notice, "a destination takes copies again";
    EventsLost => "events_lost", Warning, "events were not reported because too many came at once";
}

impl NoticeKind {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// The severity of all notices of the kind.
    #[must_use]
    pub const fn severity(self) -> Severity {
        Self::TABLE[self as usize].2
    }
}

/// One notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its kind.
    pub kind: NoticeKind,
    /// The port that it concerns, if it is about one.
    pub port: Option<String>,
    /// The class that it concerns, if it is about one.
    pub class: Option<u8>,
    /// The line for people.
    pub text: String,
    /// Further events of its kind since the notice before, which have none of their own.
    pub more: u64,
}

impl Notice {
    /// Returns a notice that concerns no port.
    #[must_use]
    pub fn new(kind: NoticeKind, text: impl Into<String>) -> Self {
        Self { kind, port: None, class: None, text: text.into(), more: 0 }
    }

    /// The notice about `port`.
    #[must_use]
    pub fn at_port(self, port: &str) -> Self {
        Self { port: Some(port.to_owned()), ..self }
    }

    /// The notice about `class`, if there is one.
    #[must_use]
    pub fn of_class(self, class: Option<usize>) -> Self {
        Self { class: class.and_then(|class| u8::try_from(class).ok()), ..self }
    }

    /// The notice with `more` further events, and its text with them.
    #[must_use]
    pub fn and_more(self, more: u64) -> Self {
        let text = if more == 0 { self.text } else { format!("{} (and {more} more)", self.text) };
        Self { text, more, ..self }
    }

    /// The notice with its time since the start before its text.
    #[must_use]
    pub fn at(self, at: Duration) -> Self {
        Self { text: format!("t={:.1}s {}", at.as_secs_f64(), self.text), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_stand_at_their_variants() {
        for (kind, name, severity, _) in NoticeKind::TABLE {
            assert_eq!((kind.name(), kind.severity()), (*name, *severity));
            assert_eq!(NoticeKind::TABLE.iter().filter(|(_, other, ..)| other == name).count(), 1, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        }
    }
}
