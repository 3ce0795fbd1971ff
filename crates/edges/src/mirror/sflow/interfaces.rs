//! Counter samples of the ports.

use super::reasons::Side;
use super::samples::{IF_INDEX, if_index};
use super::xdr::Xdr;
use crate::mirror::facts::PortFacts;
use crate::plan::counters::{Counter, Counters, PerClass, PortCounters};
use crate::plan::drops::DropReason;

/// Format of the sample, and of its records: sFlow version 5, sFlow Port Name, sFlow Priority Flow Control Structures.
const COUNTERS_SAMPLE: u32 = 2;
const IF_COUNTERS: u32 = 1;
const PFC_COUNTERS: u32 = 11;
const PORT_NAME: u32 = 1005;

/// The type of an interface in the IF-MIB: ethernetCsmacd.
const ETHERNET: u32 = 6;
const FULL_DUPLEX: u32 = 1;
/// Bits of the state of an interface.
const ADMIN_UP: u32 = 1;
const OPER_UP: u32 = 2;
/// A counter that the agent does not have.
const UNKNOWN: u32 = u32::MAX;
/// Bytes of the frame check sequence, which the IF-MIB counts.
const FCS: u64 = 4;

/// Appends the counters of `port`.
pub fn sample(into: &mut Vec<u8>, sequence: u32, port: usize, facts: &PortFacts, counters: &Counters, is_up: bool) {
    Xdr(into).record(COUNTERS_SAMPLE, |sample| {
        sample.u32(sequence).u32(IF_INDEX << 24 | if_index(port)).u32(2 + u32::from(facts.has_pfc));
        sample.record(IF_COUNTERS, |record| interface(record, port, facts, counters, is_up));
        if facts.has_pfc {
            sample.record(PFC_COUNTERS, |record| flow_control(record, port, counters));
        }
        sample.record(PORT_NAME, |record| {
            record.opaque(facts.name.as_bytes());
        });
    });
}

/// The sum over the classes and lcores.
fn total(counters: &Counters, port: usize, of: impl Fn(&PortCounters) -> &PerClass) -> u64 {
    counters.of_port(port).flat_map(|counters| of(counters).iter()).map(Counter::get).sum()
}

/// Dropped frames that count on `side` of the port.
fn dropped(counters: &Counters, port: usize, side: Side) -> u64 {
    let reasons = DropReason::TABLE.iter().map(|row| row.0).filter(|reason| Side::from(*reason) == side);
    let of = |reason: DropReason| {
        let rows = counters.of_port(port).flat_map(|counters| counters.drops.iter());
        rows.map(|row| row[reason as usize].get()).sum::<u64>()
    };
    reasons.map(of).sum()
}

/// Writes the counters of the IF-MIB. The switch does not count unicast and multicast frames apart.
fn interface(record: &mut Xdr<'_>, port: usize, facts: &PortFacts, counters: &Counters, is_up: bool) {
    let (received, sent) = (total(counters, port, |c| &c.rx_frames), total(counters, port, |c| &c.tx_frames));
    let octets = [total(counters, port, |c| &c.rx_bytes), total(counters, port, |c| &c.tx_bytes)];
    let dropped = |side| dropped(counters, port, side);
    record.u32(if_index(port)).u32(ETHERNET).u64(facts.rate.0).u32(FULL_DUPLEX);
    record.u32(ADMIN_UP | if is_up { OPER_UP } else { 0 });
    record.u64(octets[0] + FCS * received).count(received).u32(UNKNOWN).u32(UNKNOWN);
    record.count(dropped(Side::InDiscards)).count(dropped(Side::InErrors)).u32(UNKNOWN);
    record.u64(octets[1] + FCS * sent).count(sent).u32(UNKNOWN).u32(UNKNOWN);
    // Devices of the switch take all frames that they receive.
    record.count(dropped(Side::OutDiscards)).u32(0).u32(1);
}

/// Writes the counters of PFC: frames sent and received, the time for which the peer has paused the port, and storms
/// with their ends.
fn flow_control(record: &mut Xdr<'_>, port: usize, counters: &Counters) {
    let paused = total(counters, port, |c| &c.pfc_rx_paused_ns);
    record.count(counters.sum(port, |c| &c.pfc_tx_frames)).count(counters.sum(port, |c| &c.pfc_rx_frames));
    record.count(paused / 1000);
    record.count(total(counters, port, |c| &c.watchdog_storms)).count(total(counters, port, |c| &c.watchdog_restores));
}
