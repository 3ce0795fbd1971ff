//! Peers at XOFF, as a running switch has measured them.

use super::{Facts, Finding};
use crate::pfc::Observed;
use crate::text::format::{frames, grouped};

/// The answers of the peer of a port to XOFF of one priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The port of the running switch.
    pub port: String,
    /// The priority.
    pub priority: u8,
    /// The standing of the peer.
    pub observed: Observed,
    /// XOFFs at which it stopped in time.
    pub stops: u64,
    /// XOFFs after which frames came too late.
    pub late_xoffs: u64,
    /// These frames.
    pub late_frames: u64,
}

/// The answer of the peer of `port`: one priority that it disobeys counts.
pub(super) fn observed(facts: &Facts, port: &str) -> Observed {
    let rows = facts.peers.iter().filter(|peer| peer.port == port).map(|peer| peer.observed);
    rows.fold(Observed::Unseen, |all, one| match (all, one) {
        (Observed::Disobeys, _) | (_, Observed::Disobeys) => Observed::Disobeys,
        (Observed::Obeys, _) | (_, Observed::Obeys) => Observed::Obeys,
        _ => Observed::Unseen,
    })
}

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    facts.peers.iter().filter_map(finding).collect()
}

fn finding(peer: &Peer) -> Option<Finding> {
    let place = format!("port {}", peer.port);
    let priority = peer.priority;
    match peer.observed {
        Observed::Unseen => None,
        Observed::Obeys => {
            let what = format!("its peer has stopped {} times at XOFF of priority {priority}", grouped(peer.stops));
            Some(Finding::ok(place, what))
        }
        Observed::Disobeys => {
            let (late, xoffs) = (frames(peer.late_frames), grouped(peer.late_xoffs));
            Some(Finding::bad(
                place,
                format!(
                    "its peer does not stop at XOFF of priority {priority}: {late} came too late after {xoffs} XOFFs"
                ),
                format!(
                    "enable PFC for priority {priority} at the peer, and send the class in it; a slow peer needs \
                     `peer_response`"
                ),
            ))
        }
    }
}
