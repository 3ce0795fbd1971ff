//! Frames on the wire ahead of a PFC frame, at a port that is never idle.

use crate::harness::*;

/// PFC frames are not paced, but occupy the wire. Data must give up their time, or the backlog ahead of a PFC frame
/// would grow with each.
#[test]
fn pfc_wire_time_is_charged_to_data_pacing() {
    let mut spec = spec(4);
    spec.ports.iter_mut().for_each(|port| port.buffer.groups[LOSSLESS].headroom.0 = 200);
    spec.buffer.headroom.0 = 800;
    let mut bed = Bed::learned(&spec);
    // In tenths of nanoseconds, because a byte takes 0.8 ns at 10 Gb/s.
    let (mut wire, mut ahead, mut pfcs) = (bed.now * 10, 0, 0);
    let (mut off, mut credit) = ([false; 4], [0_i64; 4]);
    for _ in 0..20_000 {
        bed.now += 1000;
        // Port 3 keeps the queue of port 1 full, and the peer of port 1 never pauses it.
        credit[3] = if bed.counters.sum(1, |port| &port.queue_cells[0]) < 2000 { credit[3] + 1250 } else { 0 };
        while credit[3] > 0 {
            bed.io.inject(3, &frame(3, 1, 0, 1476));
            credit[3] -= 1400;
        }
        // Ports 1 and 2 have obedient senders to port 0, which stop and resume all the time. So port 1 must also send
        // PFC frames.
        for port in [1, 2] {
            credit[port] = if off[port] { 0 } else { credit[port] + 1250 };
            while credit[port] > 0 {
                bed.io.inject(port, &frame(port, 0, LOSSLESS_DSCP, 1000));
                credit[port] -= 1024;
            }
        }
        bed.poll();
        for port in [1, 2] {
            for sent in bed.io.sent_all(port) {
                if let Some(pfc) = pfc_of(&sent) {
                    off[port] = pfc.quanta[LOSSLESS].0 > 0;
                    pfcs += u64::from(port == 1);
                }
                if port == 1 {
                    wire = wire.max(bed.now * 10) + (sent.len().max(60) as u64 + 24) * 8;
                }
            }
        }
        bed.io.sent_all(0);
        bed.io.sent_all(3);
        ahead = ahead.max(wire.saturating_sub(bed.now * 10) / 10);
    }
    assert!(pfcs > 1000, "{pfcs} PFC frames");
    // 10 us of slack, a poll of a microsecond, a data frame, and a PFC frame whose transmission had begun.
    assert!(ahead < 12_400, "{ahead} ns after {pfcs} PFC frames");
}
