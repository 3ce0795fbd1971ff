//! Injected faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::faults::FaultStatus;
use crate::faults::counters::PFC_ROW;
use crate::sets::CLASSES;

/// Injected faults: whether they are allowed, and all of them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Faults {
    /// Whether the configuration allows faults.
    pub allowed: bool,
    /// Seed of their random numbers.
    pub seed: u64,
    /// Frames that they hold now.
    pub held_frames: u64,
    /// The faults, by number.
    pub list: Vec<Fault>,
}

/// An injected fault.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fault {
    /// Its number, never used again.
    pub id: u64,
    /// Its port.
    pub port: String,
    /// [Kind](faults.md#keys).
    pub fault: String,
    /// `switch` or `host`; null: both.
    pub toward: Option<String>,
    /// `waiting`, `active` or `over`.
    pub state: String,
    /// Whether it is of the configuration.
    pub configured: bool,
    /// The fault as the configuration writes it.
    pub text: String,
    /// Frames that it hit.
    pub frames: u64,
    /// Hit frames of lossless classes.
    pub lossless_frames: u64,
    /// Hit MAC control frames.
    pub pfc_frames: u64,
    /// Frames not held or copied, for lack of room.
    pub passed_frames: u64,
}

impl Faults {
    /// The faults of the switch.
    #[must_use]
    pub fn of(look: &Look<'_>) -> Self {
        let Some(board) = &look.switch_view.faults else { return Self::default() };
        Self {
            allowed: true,
            seed: board.seed,
            held_frames: board.counters().held(),
            list: board.faults().iter().map(|status| Fault::of(look, status)).collect(),
        }
    }
}

impl Fault {
    fn of(look: &Look<'_>, status: &FaultStatus) -> Self {
        let port = look.switch_view.port_name(status.fault.port);
        let lossless = (0..CLASSES).filter(|&class| look.switch_view.is_lossless(class));
        Self {
            id: status.id,
            port: port.to_owned(),
            fault: status.fault.kind.verb().word().to_owned(),
            toward: status.fault.toward.map(|toward| toward.word().to_owned()),
            state: status.state.word().to_owned(),
            configured: status.is_configured,
            text: status.fault.text(port),
            frames: status.hits.iter().sum(),
            lossless_frames: lossless.map(|class| status.hits[class]).sum(),
            pfc_frames: status.hits[PFC_ROW],
            passed_frames: status.passed,
        }
    }
}
