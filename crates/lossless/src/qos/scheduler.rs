//! Schedules the queues of a port: strict ones first, the others by deficit round robin on bytes (Shreedhar & Varghese
//! 1995).
//!
//! A paused class is skipped and gathers no credit. Sets of queues fit a byte, so that a choice costs a few shifts.

use crate::sets::{CLASSES, ClassSet};

/// The scheduling discipline of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// Served before all queues that are not strict. Among strict queues, the higher number is first.
    Strict,
    /// Gets a share of the rate that strict queues leave, in proportion to the weight (1 to 100, the bandwidth of ETS).
    Dwrr {
        /// The proportion.
        weight: u8,
    },
}

/// Bytes per round for each unit of weight. At weight 1, a queue needs several rounds for a large frame, which costs a
/// few shifts. A larger quantum would make bursts of one class longer.
pub(super) const QUANTUM: u32 = 512;

/// A lone ready queue is lent the quanta of 2^32 rounds, each below 2^17 bytes. That is more than any burst has.
const LENT_SHIFT: u32 = 32;

/// Bytes that a queue may send in its turn.
#[derive(Debug, Clone, Copy)]
pub struct Credit {
    /// Bytes left.
    left: u64,
    /// Bytes of the initial credit that were lent from quanta of future rounds.
    lent: u64,
}

impl Credit {
    /// Subtracts a packet of `len` bytes. Returns false, and changes nothing, if less credit is left.
    #[inline]
    #[must_use]
    pub fn spend(&mut self, len: u32) -> bool {
        let left = self.left.checked_sub(u64::from(len));
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The scheduler of one port: strict priority, then DWRR.
///
/// IEEE 802.1Q, note on queues: "The transmission selection algorithm (8.6.8) determines which traffic class, among
/// those classes with frames available for transmission, provides the next frame for transmission."
#[derive(Debug, Clone)]
pub struct Scheduler {
    strict: ClassSet,
    quantum: [u32; CLASSES],
    deficit: [u32; CLASSES],
    /// The DWRR queue that has the turn.
    turn: u8,
}

impl Scheduler {
    /// Creates a scheduler in which no queue has credit yet.
    #[must_use]
    pub fn new(disciplines: [QueueDiscipline; CLASSES]) -> Self {
        let strict = ClassSet::EMPTY;
        let mut scheduler = Self { strict, quantum: [0; CLASSES], deficit: [0; CLASSES], turn: 0 };
        scheduler.set_disciplines(disciplines);
        scheduler
    }

    /// Sets `disciplines`, which hold from the next choice on. DWRR queues keep their credit; strict queues lose it.
    pub fn set_disciplines(&mut self, disciplines: [QueueDiscipline; CLASSES]) {
        (self.strict, self.quantum) = (ClassSet::EMPTY, [0; CLASSES]);
        for (queue, discipline) in disciplines.iter().enumerate() {
            match discipline {
                QueueDiscipline::Strict => {
                    self.strict.insert(queue);
                    self.deficit[queue] = 0;
                }
                QueueDiscipline::Dwrr { weight } => self.quantum[queue] = u32::from((*weight).max(1)) * QUANTUM,
            }
        }
    }

    /// Chooses the queue to send from among `ready` (queues that have packets and are not paused), and charges its
    /// first packet. `head_len` returns the length of a queue's first packet. Returns `None` if no queue is ready.
    #[inline]
    pub fn choose(&mut self, ready: ClassSet, head_len: impl Fn(usize) -> u32) -> Option<usize> {
        if ready.is_empty() {
            return None;
        }
        if let Some(queue) = (ready & self.strict).highest() {
            return Some(queue);
        }
        Some(self.choose_dwrr(ready, head_len))
    }

    /// Returns the bytes that `queue` may send before another queue's turn, with its first packet of `head_len` bytes
    /// included. `queue` must be the last choice among `ready`. If no other queue is ready, its consecutive turns count
    /// as one.
    #[inline]
    #[must_use]
    pub fn credit(&self, queue: usize, head_len: u32, ready: ClassSet) -> Credit {
        let queue = queue & 7;
        if self.strict.contains(queue) {
            return Credit { left: u64::MAX, lent: 0 };
        }
        let lent = if ready == ClassSet::only(queue) { u64::from(self.quantum[queue]) << LENT_SHIFT } else { 0 };
        Credit { left: u64::from(self.deficit[queue]) + u64::from(head_len) + lent, lent }
    }

    /// Stores the unused `credit` of `queue` as its deficit, so that its turn can continue.
    #[inline]
    pub fn keep_credit(&mut self, queue: usize, credit: Credit) {
        let queue = queue & 7;
        self.deficit[queue] = if self.strict.contains(queue) {
            0
        } else if credit.left >= credit.lent {
            (credit.left - credit.lent) as u32
        } else {
            // The queue spent quanta of future rounds, and in each of them the turn passed over all other queues. One
            // division per burst replaces a loop over these turns, which costs a branch misprediction each.
            self.deficit = [0; CLASSES];
            (credit.left % u64::from(self.quantum[queue])) as u32
        };
    }

    /// The share of the wire, in parts of 2^16, that an lcore gets while others hold frames of the same port. `ready`
    /// are its queues that may send, `others` those of the others. `bytes` returns for a queue the bytes of this lcore
    /// and of the others. Strict queues exclude all others, and the frames of one queue share its time by their bytes.
    #[cold]
    #[must_use]
    pub fn share(&self, ready: ClassSet, others: ClassSet, bytes: impl Fn(usize) -> (u64, u64)) -> u32 {
        let all = ready | others;
        let part = |queue: usize, weight: u64| {
            let (own, other) = bytes(queue);
            let other = if others.contains(queue) { other } else { 0 };
            if ready.contains(queue) {
                ((u128::from(weight) * u128::from(own)) << 16) / u128::from((own + other).max(1))
            } else {
                0
            }
        };
        if let Some(queue) = (all & self.strict).highest() {
            return part(queue, 1) as u32;
        }
        let weights = all.iter().map(|queue| u64::from(self.quantum[queue & 7])).sum::<u64>();
        let parts = ready.iter().map(|queue| part(queue, self.quantum[queue & 7].into())).sum::<u128>();
        (parts / u128::from(weights.max(1))) as u32
    }

    #[inline]
    fn choose_dwrr(&mut self, ready: ClassSet, head_len: impl Fn(usize) -> u32) -> usize {
        loop {
            let turn = usize::from(self.turn & 7);
            if ready.contains(turn) {
                let len = head_len(turn);
                if self.deficit[turn] >= len {
                    self.deficit[turn] -= len;
                    return turn;
                }
            } else {
                // The queue is empty or paused and forfeits its credit.
                self.deficit[turn] = 0;
            }
            // The turn passes to the next ready queue, which may be the same one, and adds its quantum.
            let circle = u32::from(ready.bits().rotate_right(turn as u32 + 1)).trailing_zeros();
            let next = (turn + 1 + circle as usize) & 7;
            self.forfeit_between(turn, next, ready);
            self.turn = next as u8;
            self.deficit[next] += self.quantum[next];
        }
    }

    /// Removes the credit of the queues between `turn` and `next`, which are not ready.
    #[inline]
    fn forfeit_between(&mut self, turn: usize, next: usize, ready: ClassSet) {
        let mut queue = (turn + 1) & 7;
        while queue != next {
            debug_assert!(!ready.contains(queue));
            self.deficit[queue] = 0;
            queue = (queue + 1) & 7;
        }
    }

    /// The next queue of `left`, if each queue sends all that it has: strict ones first, and the highest number before
    /// the others. `None` after the last one.
    ///
    /// A port whose frames all fit one burst sends them in this order, without turns: any order gives each queue all
    /// that it has.
    #[inline]
    #[must_use]
    pub fn next_of_all(&self, left: ClassSet) -> Option<usize> {
        (left & self.strict).highest().or_else(|| left.highest())
    }

    /// Removes the credit of `queue`, which has become empty, as deficit round robin requires.
    #[inline]
    pub fn emptied(&mut self, queue: usize) {
        self.deficit[queue & 7] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn dwrr(weight: u8) -> QueueDiscipline {
        QueueDiscipline::Dwrr { weight }
    }

    fn set(bits: u8) -> ClassSet {
        ClassSet::from_bits(bits)
    }

    /// Returns the bytes that each queue sends when the queues in `ready` always have packets of the given lengths.
    fn shares(scheduler: &mut Scheduler, ready: ClassSet, lens: [u32; 8], frames: usize) -> [u64; 8] {
        let mut sent = [0; 8];
        for _ in 0..frames {
            let queue = scheduler.choose(ready, |queue| lens[queue]).unwrap();
            sent[queue] += u64::from(lens[queue]);
        }
        sent
    }

    #[test]
    fn strict_queues_go_first_and_the_highest_number_before_others() {
        let mut disciplines = [dwrr(1); 8];
        disciplines[5] = QueueDiscipline::Strict;
        disciplines[6] = QueueDiscipline::Strict;
        let mut scheduler = Scheduler::new(disciplines);
        assert_eq!(scheduler.choose(ClassSet::ALL, |_| 100), Some(6));
        assert_eq!(scheduler.choose(set(0b0010_1000), |_| 100), Some(5));
        assert_eq!(scheduler.choose(set(0b1000), |_| 100), Some(3));
        assert_eq!(scheduler.choose(ClassSet::EMPTY, |_| 100), None);
    }

    #[test]
    fn all_are_sent_strict_ones_first_and_the_highest_number_before_others() {
        let mut disciplines = [dwrr(1); 8];
        (disciplines[2], disciplines[4]) = (QueueDiscipline::Strict, QueueDiscipline::Strict);
        let scheduler = Scheduler::new(disciplines);
        let mut left = set(0b1011_0110);
        let order = std::iter::from_fn(|| {
            let queue = scheduler.next_of_all(left)?;
            left.remove(queue);
            Some(queue)
        });
        assert_eq!(order.collect::<Vec<_>>(), [4, 2, 7, 5, 1]);
    }

    #[test]
    fn lcores_share_a_wire_by_weight_and_bytes() {
        let mut disciplines = [dwrr(1); 8];
        (disciplines[3], disciplines[6]) = (dwrr(3), QueueDiscipline::Strict);
        let scheduler = Scheduler::new(disciplines);
        let whole = 1 << 16;
        let share = |own: u8, others: u8, bytes: (u64, u64)| scheduler.share(set(own), set(others), |_| bytes);
        assert_eq!(share(0b1, 0b1, (300, 100)), whole * 3 / 4, "by the bytes in one queue");
        assert_eq!(share(0b1, 0b1000, (100, 100)), whole / 4, "by weight between queues");
        assert_eq!(share(0b1001, 0b1000, (100, 100)), whole / 4 + whole * 3 / 8);
        assert_eq!(share(0b1000, 0b100_0000, (1000, 1)), 0, "a strict queue of others is first");
        assert_eq!(share(0b100_1000, 0b1001, (1, 1000)), whole, "and an own one");
    }

    proptest! {
        /// Two lcores that see the same bytes share the whole wire, and no more.
        #[test]
        fn shares_of_two_lcores_sum_to_the_whole_wire(strict: u8, one: u8, other: u8, bytes in prop::array::uniform8((1_u64..1 << 40, 1_u64..1 << 40))) {
            let discipline = |queue| if set(strict).contains(queue) { QueueDiscipline::Strict } else { dwrr(1 + queue as u8) };
            let scheduler = Scheduler::new(std::array::from_fn(discipline));
            // A queue without frames of an lcore has none of its bytes.
            let held = |queue: usize| {
                let (a, b) = bytes[queue];
                (if set(one).contains(queue) { a } else { 0 }, if set(other).contains(queue) { b } else { 0 })
            };
            let shares = [scheduler.share(set(one), set(other), held), scheduler.share(set(other), set(one), |queue| (held(queue).1, held(queue).0))];
            let sum = shares[0] + shares[1];
            let whole = if one | other == 0 { 0 } else { 1 << 16 };
            prop_assert!(sum <= whole && sum + 16 >= whole, "{shares:?}");
        }
    }

    proptest! {
        #[test]
        fn queue_with_credit_is_chosen_again(
            strict in any::<u8>(),
            choices in prop::collection::vec((1_u8.., any::<bool>(), prop::array::uniform8(60_u32..=9216), 0_usize..40), 1..100),
        ) {
            let discipline = |queue| if set(strict).contains(queue) { QueueDiscipline::Strict } else { dwrr(1 + queue as u8) };
            let (mut one, mut other) = (Scheduler::new(std::array::from_fn(discipline)), Scheduler::new(std::array::from_fn(discipline)));
            for (ready, alone, lens, most) in choices {
                let ready = set(ready);
                let ready = if alone { ClassSet::only(ready.lowest().unwrap()) } else { ready };
                let queue = one.choose(ready, |queue| lens[queue]).unwrap();
                prop_assert_eq!(other.choose(ready, |queue| lens[queue]), Some(queue));
                let len = lens[queue];
                let mut credit = one.credit(queue, len, ready);
                prop_assert!(credit.spend(len));
                let mut sent = 0;
                while sent < most && credit.spend(len) {
                    prop_assert_eq!(other.choose(ready, |queue| lens[queue]), Some(queue));
                    sent += 1;
                }
                prop_assert!(sent == most || ready.len() > 1, "a queue that is alone may send all");
                one.keep_credit(queue, credit);
                prop_assert_eq!((one.deficit, one.turn), (other.deficit, other.turn));
            }
        }
    }

    #[test]
    fn paused_queue_earns_no_credit() {
        let mut scheduler = Scheduler::new([dwrr(1); 8]);
        let lens = [1000; 8];
        shares(&mut scheduler, set(0b11), lens, 1000);
        shares(&mut scheduler, set(0b01), lens, 100_000);
        let after = shares(&mut scheduler, set(0b11), lens, 100);
        assert!(after[0].abs_diff(after[1]) <= 2000, "{after:?}");
    }

    proptest! {
        #[test]
        fn bytes_follow_weights_whatever_the_lengths(
            weights in prop::array::uniform8(1_u8..=50),
            lens in prop::array::uniform8(60_u32..=9216),
            ready in 1_u8..,
        ) {
            let mut scheduler = Scheduler::new(weights.map(dwrr));
            let ready = set(ready);
            let sent = shares(&mut scheduler, ready, lens, 200_000);
            let total: u64 = sent.iter().sum();
            let weight: u64 = ready.iter().map(|q| u64::from(weights[q])).sum();
            for queue in 0..8 {
                let due = if ready.contains(queue) { total * u64::from(weights[queue]) / weight } else { 0 };
                // The error of DWRR is at most a round: each queue's quantum and its largest packet.
                let slack = 2 * (u64::from(weights[queue]) * u64::from(QUANTUM) + 9216) + total / 100;
                prop_assert!(sent[queue].abs_diff(due) <= slack, "queue {queue}: {} of {due}", sent[queue]);
            }
        }
    }
}
