//! Cases in a fabric of two leaves and a spine, joined by four links each.

use crate::report::Report;

/// Case 7.
#[test]
fn case_7_queue_pairs_spread_over_uplinks_and_each_keeps_its_own() {
    let used = |report: &Report| report.next_hops("leaf1").iter().filter(|&&frames| frames > 0).count();
    let one = Report::of(7, "one pair of ranks, 1 QP");
    assert_eq!(used(&one), 1, "{:?}", one.next_hops("leaf1"));
    for variant in ["one pair of ranks, 16 QPs", "four pairs of ranks, 16 QPs"] {
        let report = Report::of(7, variant);
        assert!(used(&report) > 1, "{variant}: {:?}", report.next_hops("leaf1"));
        // A queue pair that used several uplinks would have late frames.
        report.assert_lossless();
        assert_eq!(report.xoffs(3), 0, "{variant}");
    }
}

/// Case 9. All leave by one uplink. Class 3 has weight 4 and each of the three others weight 1.
#[test]
fn case_9_lossless_traffic_has_its_share_beside_best_effort_at_line_rate() {
    let alone = Report::of(9, "background alone");
    assert_eq!(alone.flow_sum(false, "sent_frames") > 0, alone.flow_sum(true, "sent_frames") == 0);
    for variant in ["1 QP", "16 QPs"] {
        let report = Report::of(9, variant);
        report.assert_lossless();
        for flow in ["rank0", "rank1", "rank2"] {
            assert!(report.sum_from(flow, "received_frames") > 1000, "{variant}: {flow} goes on");
        }
        let rate = report.flow_sum(true, "received_bits_per_second");
        // Four sevenths of 100G are 57 Gb/s. DCQCN leaves some of that.
        assert!(rate > 50_000_000_000, "{variant}: {rate}");
    }
}

/// Case 10. Frames that are queued for the link when it fails are lost, and their queue pairs repeat them.
#[test]
fn case_10_messages_survive_the_failure_and_return_of_an_uplink() {
    let report = Report::of(10, "");
    assert_eq!(report.incomplete(), 0);
    assert_eq!(report.flow_sum(true, "timeouts"), 0, "a NAK suffices");
    let (sent, lost) = (report.flow_sum(true, "sent_frames"), report.flow_sum(true, "lost_frames"));
    assert!(lost > 0 && lost * 100 < sent, "{lost} of {sent} frames lost");
    assert!(report.next_hops("leaf1").iter().all(|&frames| frames > 0), "{:?}", report.next_hops("leaf1"));
}
