//! One lcore's side of a joint port.

use std::sync::Arc;

use super::told::{Depth, Told};
use crate::qos::joint_pacer::JointPacer;
use crate::sets::{CLASSES, ClassSet};

/// An lcore's side of one joint port.
#[derive(Debug)]
pub(crate) struct JointSide {
    pub(super) pacer: JointPacer,
    pub(super) told: Arc<Told>,
    pub(super) number: usize,
    pub(super) is_owner: bool,
    /// Frames that other lcores hold, by queue, as of their last polls.
    pub(super) elsewhere: [Depth; CLASSES],
    /// Queues with such frames.
    pub(super) queues: ClassSet,
    /// Queues whose frames the owner's watchdog drops.
    pub(super) dropping: ClassSet,
}

impl JointSide {
    /// Creates the side of an lcore at port `number`: no lcore holds frames, and nothing is paused.
    pub fn new(pacer: JointPacer, told: Arc<Told>, number: usize, is_owner: bool) -> Self {
        let (elsewhere, queues, dropping) = ([Depth::default(); CLASSES], ClassSet::EMPTY, ClassSet::EMPTY);
        Self { pacer, told, number, is_owner, elsewhere, queues, dropping }
    }

    /// Whether this lcore owns the port.
    pub fn is_owner(&self) -> bool {
        self.is_owner
    }
}
