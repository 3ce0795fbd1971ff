//! Quality of service: which class a packet has, when its queue may send, when it is marked.

pub mod classify;
pub mod scheduler;
pub mod shaper;
pub mod wred;

pub use classify::{ClassMap, MarkMap, Rewrite, Trust, only_class};
pub use scheduler::{QueueDiscipline, Scheduler};
pub use shaper::Shaper;
pub use wred::{WredProfile, WredVerdict};

/// The classes (groups, queues, priorities) in `mask`, lowest first.
#[inline]
pub(crate) fn indices(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = mask.trailing_zeros() as usize;
        // Without its lowest bit; of none nothing is left.
        mask &= mask.wrapping_sub(1);
        (index < crate::sets::CLASSES).then_some(index)
    })
}
