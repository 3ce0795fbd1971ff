use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::sim::control::Loss;
use crate::sim::frame::Part;

const FRAME: u16 = 1000;

fn spec(recovery: Recovery) -> TransportSpec {
    TransportSpec {
        recovery,
        timeout: Some(Nanos(100)),
        nak_interval: Nanos(20),
        retries: 1000,
        ..TransportSpec::default()
    }
}

fn part(number: u64, end: Option<(u32, u64)>) -> Part {
    Part { number, asks: false, end }
}

/// A sender and its receiver, with the messages that the sender still has to send.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    /// Frames left of each message.
    messages: VecDeque<u32>,
    /// Number of the message in progress, and frames of it that were sent.
    message: u64,
    made: u32,
    delivered: Vec<Part>,
    completed: Vec<u64>,
    /// Frames received, by number.
    accepted: u64,
}

impl Pair {
    fn new(spec: &TransportSpec, messages: &[u32]) -> Self {
        Self {
            sender: Sender::new(spec, 0),
            receiver: Receiver::new(spec),
            messages: messages.iter().copied().collect(),
            message: 1,
            made: 0,
            delivered: Vec::new(),
            completed: Vec::new(),
            accepted: 0,
        }
    }

    /// The frame that the sender sends now.
    fn send(&mut self, now_ps: u64) -> Option<Frame> {
        if let Some(frame) = self.sender.repeat(now_ps) {
            return Some(frame);
        }
        let left = self.messages.front_mut()?;
        (*left, self.made) = (*left - 1, self.made + 1);
        let end = (*left == 0).then_some((self.made, self.message));
        let part = part(self.message, end);
        if end.is_some() {
            self.messages.pop_front();
            (self.message, self.made) = (self.message + 1, 0);
        }
        Some(Frame { number: self.sender.send(FRAME, part, now_ps), len: FRAME, part })
    }

    fn receive(&mut self, frame: Frame, now_ps: u64) -> (Receipt, Option<Reply>) {
        let delivered = &mut self.delivered;
        let arrived = Arrived { number: frame.number, part: frame.part, is_ce: false, born_ps: now_ps, now_ps };
        let result = self.receiver.receive(arrived, |part| match part {
            Some(part) => delivered.push(part),
            None => {
                let message = delivered.last().map(|part| part.number);
                delivered.retain(|part| Some(part.number) != message);
            }
        });
        self.accepted += u64::from(result.0 == Receipt::Accepted);
        result
    }

    fn reply(&mut self, reply: &Reply, now_ps: u64) -> Option<Loss> {
        let completed = &mut self.completed;
        self.sender.reply(reply, now_ps, |born| completed.push(born))
    }
}

/// Sends frames 0 to 5 of one message, of which 2 is lost. Returns the numbers that are sent again.
fn repeats_after_a_gap(recovery: Recovery) -> (Vec<u64>, Vec<Receipt>) {
    let mut pair = Pair::new(&spec(recovery), &[6]);
    let frames: Vec<Frame> = std::iter::from_fn(|| pair.send(0)).collect();
    let mut receipts = Vec::new();
    for frame in frames.into_iter().filter(|frame| frame.number != 2) {
        let (receipt, reply) = pair.receive(frame, 1);
        receipts.push(receipt);
        if let Some(reply) = reply {
            pair.reply(&reply, 1);
        }
    }
    let repeated: Vec<Frame> = std::iter::from_fn(|| pair.send(2)).collect();
    for &frame in &repeated {
        if let (_, Some(reply)) = pair.receive(frame, 2) {
            pair.reply(&reply, 2);
        }
    }
    assert_eq!((pair.delivered.len(), pair.completed, pair.sender.is_settled()), (6, vec![1], true));
    (repeated.iter().map(|frame| frame.number).collect(), receipts)
}

#[test]
fn each_recovery_mode_repeats_the_frames_that_it_must() {
    use Receipt::{Accepted, Discarded};
    let (repeated, receipts) = repeats_after_a_gap(Recovery::GoBackN);
    assert_eq!((repeated, receipts), (vec![2, 3, 4, 5], [vec![Accepted; 2], vec![Discarded; 3]].concat()));
    let (repeated, receipts) = repeats_after_a_gap(Recovery::SelectiveRepeat);
    assert_eq!((repeated, receipts), (vec![2], vec![Accepted; 5]));
    let (repeated, receipts) = repeats_after_a_gap(Recovery::GoBack0);
    assert_eq!((repeated, receipts), (vec![0, 1, 2, 3, 4, 5], [vec![Accepted; 2], vec![Discarded; 3]].concat()));
}

#[test]
fn lost_tail_is_found_by_the_timeout() {
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat, Recovery::GoBack0] {
        let mut pair = Pair::new(&spec(recovery), &[2]);
        let [first, _lost] = [pair.send(0).unwrap(), pair.send(0).unwrap()];
        let reply = pair.receive(first, 10).1.expect("each frame is acknowledged");
        assert_eq!(pair.reply(&reply, 20), None);
        assert_eq!((pair.send(30), pair.sender.next_timer()), (None, Some(100_020)));
        assert_eq!((pair.sender.timer(100_019), pair.sender.timer(100_020)), (None, Some(Loss::Timeout)));
        let repeated: Vec<Frame> = std::iter::from_fn(|| pair.send(100_020)).collect();
        assert_eq!(repeated.last().map(|frame| frame.number), Some(1), "{recovery:?}");
        for frame in repeated {
            if let (_, Some(reply)) = pair.receive(frame, 100_030) {
                pair.reply(&reply, 100_040);
            }
        }
        assert!(pair.sender.is_settled() && pair.sender.next_timer().is_none(), "{recovery:?}");
    }
}

#[test]
fn flow_fails_after_its_retries_and_is_settled() {
    let mut pair = Pair::new(&TransportSpec { retries: 2, ..spec(Recovery::GoBackN) }, &[3]);
    while pair.send(0).is_some() {}
    for retry in 1..=2 {
        assert_eq!(pair.sender.timer(retry * 100_000), Some(Loss::Timeout));
        assert!(!pair.sender.has_failed() && pair.sender.repeats());
        while pair.send(retry * 100_000).is_some() {}
    }
    assert_eq!(pair.sender.timer(300_000), Some(Loss::Timeout));
    assert!(pair.sender.has_failed() && pair.sender.is_settled() && pair.sender.next_timer().is_none());
    let late = Reply { cumulative: 3, is_nak: false, cause: 2, frames: 3, marked: 0, born_ps: 0 };
    assert_eq!((pair.reply(&late, 300_000), pair.completed.len()), (None, 0));
}

#[test]
fn selective_repeat_sends_each_lost_frame_once() {
    let mut pair = Pair::new(&spec(Recovery::SelectiveRepeat), &[40]);
    let frames: Vec<Frame> = std::iter::from_fn(|| pair.send(0)).collect();
    let mut repeated = Vec::new();
    for frame in frames.into_iter().filter(|frame| !(5..15).contains(&frame.number) && frame.number != 20) {
        if let (_, Some(reply)) = pair.receive(frame, 1) {
            pair.reply(&reply, 1);
        }
        // A frame leaves for each that arrives.
        repeated.extend(pair.send(1));
    }
    repeated.extend(std::iter::from_fn(|| pair.send(2)));
    let numbers: Vec<u64> = repeated.iter().map(|frame| frame.number).collect();
    assert_eq!(numbers, [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 20]);
}

#[test]
fn timer_waits_while_frames_to_be_repeated_cannot_leave() {
    let mut pair = Pair::new(&TransportSpec { retries: 1, ..spec(Recovery::GoBackN) }, &[3]);
    while pair.send(0).is_some() {}
    assert_eq!(pair.sender.timer(100_000), Some(Loss::Timeout));
    // Pacing or a pause keeps the frames back.
    assert_eq!((pair.sender.next_timer(), pair.sender.timer(900_000), pair.sender.has_failed()), (None, None, false));
    assert!(pair.send(900_000).is_some());
    assert_eq!(pair.sender.next_timer(), Some(1_000_000));
}

#[test]
fn repeated_frames_that_fill_the_window_and_are_lost_time_out() {
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
        let mut pair = Pair::new(&TransportSpec { window: Some(Bytes(2000)), ..spec(recovery) }, &[4]);
        while pair.send(0).is_some() {}
        assert_eq!(pair.sender.timer(100_000), Some(Loss::Timeout));
        // Two of four leave again, fill the window, and are lost too.
        assert!(pair.send(100_000).is_some() && pair.send(100_000).is_some() && pair.sender.repeats());
        assert_eq!(pair.sender.timer(200_000), Some(Loss::Timeout), "{recovery:?}");
    }
}

#[test]
fn naks_without_progress_are_retries() {
    let mut pair = Pair::new(&TransportSpec { retries: 2, ..spec(Recovery::GoBackN) }, &[3]);
    while pair.send(0).is_some() {}
    let nak = Reply { cumulative: 0, is_nak: true, cause: u64::MAX, frames: 1, marked: 0, born_ps: 0 };
    for retry in 1..=3 {
        assert_eq!(pair.reply(&nak, retry), Some(Loss::Nak));
        assert_eq!(pair.sender.has_failed(), retry == 3);
        while pair.send(retry).is_some() {}
    }
}

#[test]
fn default_timeout_follows_long_paths() {
    let timer = |base_rtt_ps| {
        let mut sender = Sender::new(&TransportSpec::default(), base_rtt_ps);
        sender.send(FRAME, part(1, None), 0);
        sender.next_timer()
    };
    assert_eq!((timer(10_000_000), timer(2_000_000_000)), (Some(1_000_000_000), Some(8_000_000_000)));
}

#[test]
fn window_counts_bytes_in_flight() {
    let mut pair = Pair::new(&TransportSpec { window: Some(Bytes(2500)), ..spec(Recovery::GoBackN) }, &[9]);
    let first = pair.send(0).unwrap();
    assert!(pair.sender.has_room(None) && pair.sender.has_room(Some(1001)) && !pair.sender.has_room(Some(1000)));
    pair.send(0);
    pair.send(0);
    assert!(!pair.sender.has_room(None) && !pair.sender.has_room(Some(u64::MAX)));
    let reply = pair.receive(first, 1).1.unwrap();
    pair.reply(&reply, 1);
    assert!(pair.sender.has_room(None));
    assert_eq!(pair.sender.acked_bytes(), 1000);
}

#[test]
fn acks_come_every_n_frames_and_at_the_end_of_a_message() {
    let mut pair = Pair::new(&TransportSpec { ack_every: 4, ..spec(Recovery::GoBackN) }, &[6, 1]);
    let frames: Vec<Frame> = std::iter::from_fn(|| pair.send(0)).collect();
    let acks = frames.into_iter().filter_map(|frame| pair.receive(frame, 0).1);
    let counts: Vec<(u64, u16)> = acks.map(|ack| (ack.cumulative, ack.frames)).collect();
    assert_eq!(counts, [(4, 4), (6, 2), (7, 1)]);
}

#[test]
fn gap_is_reported_once_per_interval() {
    let mut pair = Pair::new(&spec(Recovery::GoBackN), &[9]);
    let frames: Vec<Frame> = std::iter::from_fn(|| pair.send(0)).collect();
    let naks: Vec<bool> = [(1, 0), (2, 19_999), (3, 20_000), (4, 20_001)]
        .map(|(frame, now)| pair.receive(frames[frame], now).1.is_some())
        .to_vec();
    assert_eq!(naks, [true, false, true, false]);
}

fn recovery() -> impl Strategy<Value = Recovery> {
    prop::sample::select(vec![Recovery::GoBackN, Recovery::SelectiveRepeat, Recovery::GoBack0])
}

proptest! {
    /// Over a channel that loses frames and replies, every message arrives whole, in order and once.
    #[test]
    fn every_message_arrives_once_and_in_order(
        recovery in recovery(),
        messages in prop::collection::vec(1_u32..20, 1..8),
        losses in prop::collection::vec(prop::bool::weighted(0.15), 600),
        ack_every in 1_u32..5,
        window in 1_u64..12_000,
    ) {
        let spec = TransportSpec { ack_every, window: Some(Bytes(window)), ..spec(recovery) };
        let mut pair = Pair::new(&spec, &messages);
        // The first 600 transmissions, data and replies, may be lost.
        let mut losses = losses.into_iter();
        let mut is_lost = || losses.next().unwrap_or(false);
        let (mut data, mut replies) = (VecDeque::new(), VecDeque::new());
        for step in 0..40_000_u64 {
            let now = step * 1000;
            pair.sender.timer(now);
            if (pair.sender.has_room(None) || data.is_empty() && replies.is_empty())
                && let Some(frame) = pair.send(now).filter(|_| !is_lost())
            {
                data.push_back((step + 5, frame));
            }
            if data.front().is_some_and(|(at, _)| *at <= step) {
                let (_, frame) = data.pop_front().unwrap();
                if let (_, Some(reply)) = pair.receive(frame, now)
                    && !is_lost()
                {
                    replies.push_back((step + 5, reply));
                }
            }
            if replies.front().is_some_and(|(at, _)| *at <= step) {
                let (_, reply) = replies.pop_front().unwrap();
                pair.reply(&reply, now);
            }
            if pair.messages.is_empty() && pair.sender.is_settled() && data.is_empty() && replies.is_empty() {
                break;
            }
        }
        let expected: Vec<(u64, bool)> = messages.iter().enumerate().flat_map(|(message, &frames)| {
            (1..=frames).map(move |frame| (message as u64 + 1, frame == frames))
        }).collect();
        let delivered: Vec<(u64, bool)> = pair.delivered.iter().map(|part| (part.number, part.end.is_some())).collect();
        prop_assert_eq!(delivered, expected);
        prop_assert_eq!(pair.completed, (1..=messages.len() as u64).collect::<Vec<_>>());
        prop_assert!(pair.sender.next_timer().is_none() && pair.sender.has_room(Some(1)));
        if recovery != Recovery::GoBack0 {
            prop_assert_eq!(pair.accepted, u64::from(messages.iter().sum::<u32>()));
        }
    }
}
