//! The messages to the lcores while the buffer is divided anew.

use crate::dataplane::{Division, LiveConfig};
use crate::mmu::{BufferPlan, BufferPools, PendingBuffer};
use crate::plan::mailbox::Sender;
use crate::sets::PortSet;

/// A change of the division, whose first messages are under way.
pub(super) struct Resizing {
    division: Division,
    /// The message that each lcore has returned; `None`: it is under way.
    returned: Vec<Option<Box<LiveConfig>>>,
    /// Ports at which the change was pending when all lcores had returned a message; `None`: they have not yet.
    pending: Option<PortSet>,
}

impl Resizing {
    /// A change to `plan`, of which every lcore has been sent the first message.
    pub fn begin(plan: BufferPlan, lcores: usize) -> Self {
        Self { division: Division::new(plan), returned: (0..lcores).map(|_| None).collect(), pending: None }
    }

    /// Whether every lcore has returned its message.
    pub fn is_taken(&mut self, senders: &mut [Sender<LiveConfig>]) -> bool {
        for (returned, sender) in self.returned.iter_mut().zip(senders) {
            *returned = returned.take().or_else(|| sender.returned());
        }
        self.returned.iter().all(Option::is_some)
    }

    /// Whether `ports` are as the change wants them.
    pub fn is_done_at(&self, ports: PortSet) -> bool {
        self.pending.is_some_and(|pending| (pending & ports).is_empty())
    }

    /// Whether some lcore has returned its message before it made all changes of static entries.
    pub fn has_statics(&self) -> bool {
        self.returned.iter().flatten().any(|message| !message.has_all_statics())
    }

    /// Goes a step. Returns what is still to be given up; `None`: the buffer is divided as planned.
    pub fn step(&mut self, senders: &mut [Sender<LiveConfig>], pools: &BufferPools) -> Option<PendingBuffer> {
        let are_back = self.is_taken(senders);
        if are_back {
            let pending = self.returned.iter().flatten().map(|message| message.pending());
            self.pending = Some(pending.fold(PortSet::EMPTY, |all, ports| all | ports));
        }
        let pending = self.division.step(pools, &mut self.returned)?;
        if are_back {
            for (returned, sender) in self.returned.iter_mut().zip(senders) {
                let is_given = returned.take().is_none_or(|message| sender.send(message).is_ok());
                debug_assert!(is_given, "the lcore has returned the message before");
            }
        }
        Some(pending)
    }
}
