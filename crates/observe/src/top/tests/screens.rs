//! Snapshots of whole screens.

use super::*;
use crate::stats::DeviceFlowControl;
use crate::top::Key;

#[test]
fn screen_of_80_by_24_shows_all_parts() {
    insta::assert_snapshot!(text(&busy(PLAIN), 80, 24));
}

#[test]
fn wide_screen_shows_more_columns() {
    insta::assert_snapshot!(text(&busy(PLAIN), 160, 45));
}

#[test]
fn screen_without_unicode_is_ascii() {
    let screen = text(&busy(Paint { colour: false, unicode: false }), 80, 24);
    assert!(screen.is_ascii(), "{screen}");
    insta::assert_snapshot!(screen);
}

#[test]
fn each_view_at_80_by_24() {
    for view in ["buffer", "queues", "lcores", "log"] {
        let mut app = busy(PLAIN);
        while !text(&app, 80, 24).contains(&format!("[{view}]")) {
            app.key(Key::Tab);
        }
        insta::assert_snapshot!(format!("view_{view}"), text(&app, 80, 24));
    }
}

#[test]
fn screen_names_losses_and_storms_of_a_troubled_switch() {
    let switch_view = fixture::trouble();
    let now = state(&switch_view, &Snapshot::take(&switch_view, Duration::from_secs(10)));
    let mut before = now.clone();
    before.at_ns -= 1_000_000_000;
    before.drops.clear();
    before.ports[0].lossless_dropped_frames = 0;
    let mut app = App::new(PLAIN, Duration::from_secs(1));
    app.look(before, &[]);
    app.look(now, &[]);
    insta::assert_snapshot!(text(&app, 100, 30));
}

#[test]
fn screens_of_an_absent_switch_and_of_help_match_snapshots() {
    let mut app = App::new(PLAIN, Duration::from_secs(1));
    app.lose("no switch listens at /run/x.sock: start one with `holdfast run`, or give its socket with --socket PATH");
    insta::assert_snapshot!("nobody", text(&app, 80, 10));
    app.key(Key::Char('?'));
    insta::assert_snapshot!("help", text(&app, 80, 24));
}

#[test]
fn flow_control_of_a_device_is_named_beside_the_standing_of_its_port() {
    let about = |flow_control: DeviceFlowControl| {
        let (switch_view, before, after) = fixture::second();
        switch_view.flow_control.set(0, flow_control);
        let mut app = App::new(PLAIN, Duration::from_secs(1));
        app.look(state(&switch_view, &before), &[]);
        app.look(state(&switch_view, &after), &[]);
        let text = text(&app, 160, 45);
        text.lines().find(|line| line.contains("PFC software")).map(str::to_owned).expect("the selected port")
    };
    let pauses = about(DeviceFlowControl::Pauses);
    assert!(pauses.contains("PFC software, unproven, flow control pauses"), "{pauses}");
    assert!(!about(DeviceFlowControl::Off).contains("flow control"));
}
