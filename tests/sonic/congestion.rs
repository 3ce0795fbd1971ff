//! Cases in which three ranks send to a fourth.

use crate::report::Report;

const RANKS: [&str; 4] = ["rank0", "rank1", "rank2", "rank3"];

/// Case 2.
#[test]
fn case_2_incast_of_not_ect_packets_is_held_by_pfc_alone() {
    let both = [3, 4].as_slice();
    for (variant, classes) in
        [("one lossless queue", [3].as_slice()), ("two lossless queues", both), ("messages of two sizes", both)]
    {
        let report = Report::of(2, variant);
        report.assert_lossless();
        report.assert_no_mark_and_no_cnp();
        report.assert_acks_in_class_6();
        report.assert_pfc_counters_match(&RANKS);
        for class in 0..8 {
            assert_eq!(report.xoffs(class) > 0, classes.contains(&class), "{variant}: XOFF of class {class}");
        }
        // Each sender is paused in its own class.
        assert!(report.class_at("p1", 3, "pfc_sent_xoff") > 0, "{variant}");
        assert!(report.class_at("p2", *classes.last().expect("a class"), "pfc_sent_xoff") > 0, "{variant}");
    }
}

/// Case 3.
#[test]
fn case_3_dcqcn_marks_and_slows_senders_before_pfc() {
    let hard = Report::of(3, "one lossless queue, PFC alone");
    hard.assert_lossless();
    assert!(hard.xoffs(3) > 100, "the load needs pauses without DCQCN: {}", hard.xoffs(3));
    for (variant, classes) in [("one lossless queue", [3].as_slice()), ("two lossless queues", &[3, 4])] {
        let report = Report::of(3, variant);
        report.assert_lossless();
        report.assert_acks_in_class_6();
        report.assert_pfc_counters_match(&RANKS);
        for &class in classes {
            assert!(report.class_sum(class, "marked_frames") > 0, "{variant}: no CE in class {class}");
            assert_eq!(report.xoffs(class), 0, "{variant}: DCQCN was late in class {class}");
        }
        // Receivers see all marks of the switch, and the switch carries all CNPs in their class.
        let marked: u64 = classes.iter().map(|&class| report.class_sum(class, "marked_frames")).sum();
        assert_eq!(report.flow_sum(true, "marked_frames"), marked, "{variant}");
        let cnps = report.flow_sum(true, "cnps");
        assert!(cnps > 0, "{variant}: no CNP");
        assert_eq!((report.class_sum(5, "received_frames"), report.class_sum(5, "sent_frames")), (cnps, cnps));
    }
}

/// Case 4.
#[test]
fn case_4_storage_incast_needs_pfc_without_dcqcn_and_none_with_it() {
    for (queues, classes) in [("one lossless queue", [3].as_slice()), ("two lossless queues", &[3, 4])] {
        let [off, on] = ["off", "on"].map(|state| Report::of(4, &format!("{queues}, DCQCN {state}")));
        for report in [&off, &on] {
            report.assert_lossless();
            report.assert_acks_in_class_6();
            report.assert_pfc_counters_match(&RANKS);
            for &class in classes {
                assert!(report.class_sum(class, "marked_frames") > 0, "{queues}: class {class}");
            }
        }
        for &class in classes {
            assert!(off.xoffs(class) > 100 && on.xoffs(class) == 0, "{queues}: {} XOFFs", off.xoffs(class));
        }
        assert!(on.flow_sum(true, "cnps") > 0, "{queues}");
    }
}

/// Case 6. The plan allows a deviation of 30 % between the senders. Two queue pairs alone share 40 ms by the luck of
/// their first marks, so the runs of five seeds count together.
#[test]
fn case_6_queue_pairs_share_fairly_under_dcqcn() {
    for (variant, seeds) in
        [("one lossless queue", 1..=5), ("two lossless queues", 1..=1), ("sixteen queue pairs", 1..=1)]
    {
        let mut received = [0.0, 0.0];
        for seed in seeds {
            let report = Report::of_seed(6, variant, seed);
            assert_eq!((report.flow_sum(true, "lost_frames"), report.flow_sum(true, "naks")), (0, 0), "{variant}");
            assert_eq!(report.xoffs(3) + report.xoffs(4), 0, "{variant}");
            assert!(report.flow_sum(true, "cnps") > 0, "{variant}");
            for (sum, rank) in received.iter_mut().zip(["rank0", "rank1"]) {
                *sum += report.sum_from(rank, "received_bytes") as f64;
            }
        }
        let [a, b] = received;
        let deviation = (a - b).abs() / ((a + b) / 2.0);
        assert!(deviation < 0.3, "{variant}: {a} and {b} bytes");
    }
}

/// Case 11. ACKs in a class of their own are never paused, so that no sender times out or goes back.
#[test]
fn case_11_acks_beside_incast_and_broadcast_cause_no_timeout() {
    for (variant, acks) in [("ACKs in queue 6", true), ("ACKs behind data", false), ("broadcast in queue 4", true)] {
        let report = Report::of(11, variant);
        report.assert_lossless();
        report.assert_no_mark_and_no_cnp();
        assert!(report.xoffs(3) > 0, "{variant}: the incast is paused");
        assert_eq!(report.xoffs(6), 0, "{variant}");
        assert_eq!(report.class_sum(6, "held_ps"), 0, "{variant}");
        match acks {
            true => report.assert_acks_in_class_6(),
            false => assert_eq!(report.class_sum(6, "received_frames"), 0, "{variant}"),
        }
    }
}
