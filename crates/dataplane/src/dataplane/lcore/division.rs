//! A new division of the buffer on its way: parts that shrink give up their cells, then the others grow.
//!
//! At no moment is the sum of all parts above the buffer. Each message to an lcore is a step for what belongs to its
//! ports; the thread that sends them resizes the pools. Another change may come between any two steps: it begins with
//! what shrinks, from the sizes that there are then.

use std::borrow::BorrowMut;

use super::live_config::LiveConfig;
use crate::mmu::{BufferPlan, BufferPools, PendingBuffer};
use crate::sets::PortSet;
use crate::units::Cells;

/// A change of the division, from its first message to each lcore on.
#[derive(Debug)]
pub struct Division {
    plan: BufferPlan,
    /// Whether all parts that shrink have given up their cells.
    grows: bool,
}

impl Division {
    /// A change to `plan`, with which every lcore gets a [`LiveConfig`].
    #[must_use]
    pub fn new(plan: BufferPlan) -> Self {
        Self { plan, grows: false }
    }

    /// Goes a step. `returned` has the message of each lcore that it has applied. If all have, each of them is the next
    /// message afterwards. Returns what is pending; `None`: the buffer is divided as planned, and no message follows.
    pub fn step<M: BorrowMut<LiveConfig>>(
        &mut self,
        pools: &BufferPools,
        returned: &mut [Option<M>],
    ) -> Option<PendingBuffer> {
        // Static entries, which need no buffer, come first.
        let has_all = |message: &M| message.borrow().has_all_statics();
        if returned.iter().all(Option::is_some) && !returned.iter().flatten().all(has_all) {
            returned.iter_mut().flatten().for_each(|message| message.borrow_mut().again(self.grows));
            return Some(PendingBuffer { pools: [Cells(0); 3], ports: PortSet::EMPTY });
        }
        let pending = |all: PortSet, message: &M| all | message.borrow().pending();
        let ports = returned.iter().flatten().fold(PortSet::EMPTY, pending);
        let are_back = returned.iter().all(Option::is_some);
        let left =
            if self.grows { [Cells(0); 3] } else { pools.shrink_towards(&self.plan, are_back && ports.is_empty()) };
        if !are_back {
            return Some(PendingBuffer { pools: left, ports });
        }
        if ports.is_empty() && left == [Cells(0); 3] {
            if self.grows {
                return None;
            }
            pools.grow_to(&self.plan);
            self.grows = true;
        }
        returned.iter_mut().flatten().for_each(|message| message.borrow_mut().again(self.grows));
        Some(PendingBuffer { pools: left, ports })
    }
}
