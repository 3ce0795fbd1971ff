//! `holdfast run` without a file: an incast that PFC makes lossless, and the same incast without PFC.
//!
//! The commands of README.md, docs/quickstart.md and docs/json.md are run here.

use crate::launch::{finish, run};
use crate::program::{report, sum};

#[test]
fn the_embedded_incast_loses_nothing_in_its_lossless_class() {
    let ended = finish(run(&["--duration", "2s", "--json", "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    assert_eq!(report["verdict"]["not_lossless"], serde_json::json!([]));
    assert_eq!(sum(&report, "dropped_frames", true), 0);
    assert!(sum(&report, "pfc_sent_xoff", true) > 0 && sum(&report, "pfc_sent_xon", true) > 0);
    assert!(sum(&report, "ecn_marked_frames", true) > 0);
    assert_eq!((&report["held"]["cells"], &report["held"]["frames"]), (&0.into(), &0.into()));

    let flows = report["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 5);
    for flow in flows {
        assert!(flow["received_frames"].as_u64() > Some(0), "{flow}");
        assert_eq!((&flow["corrupt_frames"], &flow["duplicate_frames"]), (&0.into(), &0.into()), "{flow}");
        if flow["class"] == 3 {
            assert_eq!((&flow["lost_frames"], &flow["late_frames"]), (&0.into(), &0.into()), "{flow}");
            assert_eq!(flow["sent_frames"], flow["received_frames"]);
        }
    }
    for port in report["ports"].as_array().expect("ports") {
        let lost = (&port["receive_missed_frames"], &port["receive_no_buffer_frames"]);
        assert_eq!(lost, (&0.into(), &0.into()), "{port}");
    }
}

#[test]
fn incast_without_pfc_loses_frames_and_reports_them() {
    let ended = finish(run(&["--duration", "2s", "--json", "--metrics", "off", "--pfc", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    assert_eq!(report["verdict"]["outcome"], "broken");
    assert!(sum(&report, "dropped_frames", true) > 0);
    assert_eq!(sum(&report, "pfc_sent_xoff", false) + sum(&report, "pfc_sent_xon", false), 0);
    assert_eq!(report["held"]["cells"], 0);
    let causes = report["verdict"]["causes"].as_array().expect("causes");
    assert!(causes.iter().any(|cause| cause["reason"] == "headroom_full"), "{causes:?}");
    assert_eq!(report["verdict"]["not_lossless"].as_array().map(Vec::len), Some(5));
    // The frames that hosts miss equal the drops that the switch reports.
    let flows = report["flows"].as_array().expect("flows");
    let missing: u64 = flows.iter().map(|flow| flow["lost_frames"].as_u64().expect("a count")).sum();
    assert_eq!(missing, sum(&report, "dropped_frames", false));
}

#[test]
fn fail_on_loss_ends_with_1_after_loss_and_with_0_without() {
    let args = ["--duration", "1s", "--metrics", "off", "--fail-on-loss"];
    let ended = finish(run(&[&args[..], &["--pfc", "off"]].concat()));
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stdout.contains("lossless: BROKEN: "), "{}", ended.stdout);
    let said: Vec<_> = ended.stderr.lines().filter(|line| !line.starts_with("t=")).collect();
    assert_eq!(said, ["error: a lossless class lost frames or was starved; see the report"]);

    let ended = finish(run(&args));
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("\nlossless: KEPT\n"), "{}", ended.stdout);
}
