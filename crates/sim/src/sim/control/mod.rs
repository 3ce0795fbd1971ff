//! Congestion control of reliable flows: each algorithm sets the rate and the window of one flow.
//!
//! An algorithm implements [`CongestionControl`] and gets a variant of [`ControlSpec`]. Its file has the equations of
//! its paper beside the code. Arithmetic uses only the basic operations and square roots, which IEEE 754 defines to the
//! bit, so a run has one result on every machine.

pub mod dcqcn;
pub mod dcqcn_nic;
pub mod dctcp;
pub mod hpcc;
pub mod power;
pub mod qcn;
pub mod swift;
pub mod theta;
pub mod timely;

use std::fmt::Debug;

use self::dcqcn::DcqcnSpec;
use self::dcqcn_nic::DcqcnNicSpec;
use self::dctcp::DctcpSpec;
use self::hpcc::HpccSpec;
use self::power::PowerSpec;
use self::qcn::QcnSpec;
use self::swift::SwiftSpec;
use self::timely::TimelySpec;
use crate::units::{BitRate, Bytes};
use crate::wire::inband::{Hop, Hops};

/// The path of a flow, as its sender knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Rate of the sender's link.
    pub line: BitRate,
    /// Round-trip time of a full frame and its ACK without any queue, in picoseconds.
    pub base_rtt_ps: u64,
    /// Bytes of a full frame.
    pub frame: Bytes,
    /// Number of switches.
    pub switches: u32,
    /// Seed of the random numbers of congestion control, which differs between flows.
    pub seed: u64,
}

impl Path {
    /// The bandwidth-delay product: bytes that fill the path at the rate of the sender's link.
    #[must_use]
    pub fn bdp(&self) -> Bytes {
        let bits = u128::from(self.line.0) * u128::from(self.base_rtt_ps) / u128::from(super::HZ);
        Bytes((bits / 8) as u64)
    }

    /// The bandwidth-delay product, for arithmetic with fractions.
    fn bdp_bytes(&self) -> f64 {
        self.bdp().0.max(1) as f64
    }
}

/// An ACK or NAK at the sender.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// Time of arrival.
    pub now_ps: u64,
    /// Time since the acknowledged frame began to leave the sender.
    pub rtt_ps: u64,
    /// Number of the first frame that is not acknowledged: all before it have arrived.
    pub cumulative: u64,
    /// Number of the frame that the sender sends next.
    pub next: u64,
    /// Frames that the receiver counted since its last ACK.
    pub frames: u32,
    /// Frames of these that were marked CE.
    pub marked: u32,
    /// Bytes that this ACK acknowledges for the first time.
    pub bytes: u64,
    /// Notes of the switches that the frame passed; none without telemetry.
    pub hops: Hops,
}

/// Evidence of a lost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The receiver reported a gap.
    Nak,
    /// No ACK arrived in time.
    Timeout,
}

/// Signals that an algorithm needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The flow's packets must be ECN-capable.
    pub ecn: bool,
    /// The receiver must acknowledge frames.
    pub acks: bool,
    /// Switches must note their queues in frames, which ACKs carry back.
    pub telemetry: bool,
    /// Switches must be congestion points of QCN, which send messages to the sender.
    pub congestion_points: bool,
}

/// The congestion control of one flow at its sender.
///
/// The simulator calls [`CongestionControl::rate`] and [`CongestionControl::window`] before each frame. All times are
/// picoseconds of network time and never decrease.
pub trait CongestionControl: Debug {
    /// Rate at which the flow may send.
    fn rate(&self) -> BitRate;

    /// Most bytes in flight; `None`: only the transport limits them.
    fn window(&self) -> Option<Bytes> {
        None
    }

    /// Handles an ACK or NAK.
    fn acked(&mut self, ack: &Ack) {
        let _ = ack;
    }

    /// Handles a congestion notification packet.
    fn notified(&mut self, now_ps: u64) {
        let _ = now_ps;
    }

    /// Handles a congestion notification message of a switch, with its quantised feedback.
    fn congested(&mut self, feedback: u8, now_ps: u64) {
        let _ = (feedback, now_ps);
    }

    /// Counts a frame of `bytes` that left.
    fn sent(&mut self, bytes: u64, now_ps: u64) {
        let _ = (bytes, now_ps);
    }

    /// Handles a lost frame.
    fn lost(&mut self, loss: Loss, now_ps: u64) {
        let _ = (loss, now_ps);
    }

    /// Time at which [`CongestionControl::timer`] is due; `None`: no timer runs.
    fn next_timer(&self) -> Option<u64> {
        None
    }

    /// Runs the timers that are due.
    fn timer(&mut self, now_ps: u64) {
        let _ = now_ps;
    }
}

/// An algorithm with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ControlSpec {
    /// DCQCN as in its paper.
    Dcqcn(DcqcnSpec),
    /// DCQCN as in ConnectX NICs.
    DcqcnNic(DcqcnNicSpec),
    /// DCTCP.
    Dctcp(DctcpSpec),
    /// TIMELY.
    Timely(TimelySpec),
    /// Swift.
    Swift(SwiftSpec),
    /// Theta-PowerTCP.
    Theta(PowerSpec),
    /// HPCC.
    Hpcc(HpccSpec),
    /// PowerTCP.
    Power(PowerSpec),
    /// QCN.
    Qcn(QcnSpec),
}

impl ControlSpec {
    /// Begins the algorithm for a flow of at most `rate` on `path`.
    #[must_use]
    pub fn begin(&self, rate: BitRate, path: &Path, now_ps: u64) -> Box<dyn CongestionControl> {
        match self {
            Self::Dcqcn(spec) => Box::new(dcqcn::Sender::new(spec, rate, now_ps)),
            Self::DcqcnNic(spec) => Box::new(dcqcn_nic::DcqcnNic::new(spec, rate)),
            Self::Dctcp(spec) => Box::new(dctcp::Dctcp::new(spec, rate, path)),
            Self::Timely(spec) => Box::new(timely::Timely::new(spec, rate)),
            Self::Swift(spec) => Box::new(swift::Swift::new(spec, rate, path)),
            Self::Theta(spec) => Box::new(theta::Theta::new(spec, rate, path)),
            Self::Hpcc(spec) => Box::new(hpcc::Hpcc::new(spec, rate, path)),
            Self::Power(spec) => Box::new(power::Power::new(spec, rate, path)),
            Self::Qcn(spec) => Box::new(qcn::Qcn::new(spec, rate, path.seed)),
        }
    }

    /// Signals that the algorithm needs.
    #[must_use]
    pub fn needs(&self) -> Needs {
        match self {
            Self::Dcqcn(_) | Self::DcqcnNic(_) => Needs { ecn: true, ..Needs::default() },
            Self::Dctcp(_) => Needs { ecn: true, acks: true, ..Needs::default() },
            Self::Timely(_) | Self::Swift(_) | Self::Theta(_) => Needs { acks: true, ..Needs::default() },
            Self::Hpcc(_) | Self::Power(_) => Needs { acks: true, telemetry: true, ..Needs::default() },
            Self::Qcn(_) => Needs { congestion_points: true, ..Needs::default() },
        }
    }

    /// Shortest time between two CNPs of the receiver; `None`: the algorithm uses none.
    #[must_use]
    pub fn cnp_interval_ps(&self) -> Option<u64> {
        let nanos = match self {
            Self::Dcqcn(spec) => spec.cnp_interval,
            Self::DcqcnNic(spec) => spec.cnp_interval,
            _ => return None,
        };
        Some(nanos.0.saturating_mul(super::HZ / 1_000_000_000))
    }

    /// Name in tables and scenarios.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dcqcn(_) => "dcqcn",
            Self::DcqcnNic(_) => "dcqcn-nic",
            Self::Dctcp(_) => "dctcp",
            Self::Timely(_) => "timely",
            Self::Swift(_) => "swift",
            Self::Theta(_) => "theta-powertcp",
            Self::Hpcc(_) => "hpcc",
            Self::Power(_) => "powertcp",
            Self::Qcn(_) => "qcn",
        }
    }
}

/// A rate within `least` and `most`, in bit/s.
fn bounded(rate: f64, least: u64, most: u64) -> f64 {
    rate.max(least.min(most) as f64).min(most as f64)
}

/// The rate that sends `window` bytes in `rtt_ps`, in bit/s.
fn rate_of(window: f64, rtt_ps: u64) -> f64 {
    window * 8.0 * super::HZ as f64 / rtt_ps.max(1) as f64
}

/// The notes of an ACK, each with the note of that hop in the last ACK. Without an ACK before, or if the number of hops
/// has changed, there are none.
fn with_last<'a>(hops: &'a Hops, last: &'a Hops) -> impl Iterator<Item = (Hop, Hop)> + 'a {
    let (hops, last) = (hops.as_slice(), last.as_slice());
    let is_known = hops.len() == last.len();
    hops.iter().copied().zip(last.iter().copied()).filter(move |_| is_known)
}

#[cfg(test)]
mod fixture {
    use super::*;
    use crate::wire::inband;

    /// A path of 100 Gbit/s with a base round-trip time of 10 us: 125,000 bytes.
    pub const PATH: Path =
        Path { line: BitRate(100_000_000_000), base_rtt_ps: 10_000_000, frame: Bytes(1000), switches: 3, seed: 1 };

    /// An ACK of one frame at `now_ps`.
    pub fn ack(now_ps: u64, rtt_ps: u64, cumulative: u64, next: u64) -> Ack {
        Ack { now_ps, rtt_ps, cumulative, next, frames: 1, marked: 0, bytes: 1000, hops: Hops::default() }
    }

    /// This ACK with the note of one port of 100 Gbit/s.
    pub fn noted(ack: Ack, time_ns: u64, sent_bytes: u64, queue_bytes: u64) -> Ack {
        let mut field = [0; inband::LEN];
        inband::push(&mut field, Hop::new(inband::rate_code(PATH.line), time_ns, sent_bytes, queue_bytes));
        Ack { hops: Hops::read(&field), ..ack }
    }
}
