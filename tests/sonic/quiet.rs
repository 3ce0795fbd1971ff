//! Cases without congestion in the switch.

use crate::report::Report;

/// Case 1.
#[test]
fn case_1_uncongested_traffic_has_no_loss_no_mark_no_cnp_and_no_pfc() {
    for (variant, class) in [("queue 3", 3), ("queue 4", 4), ("queue 3, ECN-capable", 3)] {
        let report = Report::of(1, variant);
        report.assert_lossless();
        report.assert_no_mark_and_no_cnp();
        assert_eq!(report.flow_sum(false, "lost_frames"), 0, "{variant}");
        assert!(report.class_sum(class, "received_frames") > 1000, "{variant}");
        for priority in 0..8 {
            assert_eq!(report.xoffs(priority), 0, "{variant}, priority {priority}");
        }
        report.assert_acks_in_class_6();
        report.assert_pfc_counters_match(&["rank0", "rank1", "rank2", "rank3"]);
    }
}

/// Case 5.
#[test]
fn case_5_pfc_of_a_receiver_propagates_to_its_sender_alone() {
    let calm = Report::of(5, "no pauses");
    calm.assert_lossless();
    assert_eq!((calm.xoffs(3), calm.class_sum(3, "pfc_received_xoff")), (0, 0));

    let paused = Report::of(5, "receiver pauses");
    paused.assert_lossless();
    assert!(paused.class_at("p3", 3, "pfc_received_xoff") > 0, "the receiver pauses the switch");
    assert!(paused.class_at("p1", 3, "pfc_sent_xoff") > 0, "the switch pauses the sender");
    assert_eq!(paused.class_at("p2", 3, "pfc_sent_xoff"), 0, "the other sender is not concerned");
    paused.assert_pfc_counters_match(&["rank0", "rank1", "rank2", "rank3"]);
    // Lossy traffic between the other ports loses nothing and is as fast as before.
    for key in ["lost_frames", "repeated_frames"] {
        assert_eq!(paused.flow_sum(false, key), 0, "{key}");
    }
    let rate = |report: &Report| report.flow_sum(false, "received_bits_per_second");
    assert!(rate(&paused) * 100 > rate(&calm) * 99, "{} after {}", rate(&paused), rate(&calm));
}
