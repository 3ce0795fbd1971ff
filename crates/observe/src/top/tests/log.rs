//! Tests of the log, and of the lines about the switch itself.

use super::*;
use crate::api::model::Event;
use crate::top::Key;

/// The text of the log view, one string per entry.
fn lines(app: &mut App) -> Vec<String> {
    app.key(Key::Char('5'));
    let screen = text(app, 200, 60);
    screen.lines().skip(4).take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}

/// An app that has received states of p1. Each look gives the time in seconds, the XOFF count of priority 3 and its
/// time paused in milliseconds.
fn pauses(looks: &[(u64, u64, u64)]) -> App {
    let (_, base) = second();
    let mut app = App::new(PLAIN, Duration::from_secs(1));
    for &(seconds, xoffs, held_ms) in looks {
        let mut now = base.clone();
        now.at_ns = seconds * 1_000_000_000;
        now.pfc[0].priorities[3].sent_xoff_frames = xoffs;
        now.pfc[0].priorities[3].sent_paused_ns = held_ms * 1_000_000;
        app.look(now, &[]);
    }
    app
}

#[test]
fn pauses_that_follow_each_other_are_one_entry_that_grows() {
    let mut app = pauses(&[(10, 0, 0), (11, 50, 500), (12, 120, 1_400)]);
    let first = "0:00:10.0 ▸ p1 pauses its peer, priority 3: 120 XOFF, 70% (1.40s of 2.00s)";
    let told_first = lines(&mut app);
    assert_eq!(told_first[0], first, "{told_first:?}");
    assert_eq!(told_first.len(), 2, "{told_first:?}");
}

#[test]
fn pause_entry_ends_after_quiet_and_the_next_pause_is_a_new_entry() {
    let looks = [(10, 0, 0), (11, 50, 500), (12, 50, 500), (13, 50, 500), (14, 50, 500), (15, 51, 600)];
    let mut app = pauses(&looks);
    let lines = lines(&mut app);
    assert_eq!(lines[0], "0:00:14.0 ▸ p1 pauses its peer, priority 3: 1 XOFF, 10% (100.00ms of 1.00s)");
    assert_eq!(lines[1], "0:00:10.0   p1 pauses its peer, priority 3: 50 XOFF, 50% (500.00ms of 1.00s)");
}

#[test]
fn losses_are_told_with_port_class_and_reason() {
    let (before, mut now) = second();
    now.drops.push(crate::api::model::Dropped {
        port: "p1".to_owned(),
        class: Some(3),
        lossless: true,
        reason: "headroom_full".to_owned(),
        meaning: String::new(),
        frames: 12_345,
    });
    now.ports[1].missed_frames += 7;
    let mut app = App::new(PLAIN, Duration::from_secs(1));
    app.look(before, &[]);
    app.look(now, &[]);
    let lines = lines(&mut app).join("\n");
    assert!(lines.contains("▸ p1 LOST 12,345 of lossless class 3: headroom_full"), "{lines}");
    assert!(lines.contains("▸ p1 dropped 12,345 of class 0: threshold"), "{lines}");
    assert!(lines.contains("▸ p2 LOST 7 in its receive ring"), "{lines}");
}

#[test]
fn events_come_once_in_their_place_and_without_their_time() {
    let event = |number, seconds: u64, text: &str| Event {
        number,
        at_ns: seconds * 1_000_000_000,
        text: text.to_owned(),
        ..Event::default()
    };
    let events = [event(0, 1, "t=1.0s watchdog: p2 class 3 restored"), event(1, 3, "warning: p1: too late")];
    let (before, now) = second();
    let mut app = App::new(PLAIN, Duration::from_secs(1));
    app.look(before, &events);
    app.look(now, &events);
    let lines = lines(&mut app);
    let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("restored"), count("too late")), (1, 1), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("0:00:01.0   watchdog: p2 class 3 restored"));
}

#[test]
fn lost_switch_is_reported_and_a_new_process_starts_a_new_log() {
    let mut app = busy(PLAIN);
    app.lose("no switch listens at /run/x.sock");
    let screen = text(&app, 80, 24);
    assert!(screen.contains("the switch does not answer. These are its last values."), "{screen}");
    assert!(screen.contains("p1") && screen.contains("q quit"), "the last look stays: {screen}");
    let (mut next, _) = second();
    next.version.pid = 4712;
    next.at_ns = 1_000_000;
    app.look(next, &[]);
    let lines = lines(&mut app);
    assert_eq!(lines, ["0:00:00.0   connected to holdfast 1.2.3, process 4712, /etc/holdfast/rack.yaml"]);
    assert!(!text(&app, 80, 24).contains("does not answer"));
}

#[test]
fn another_configuration_of_the_same_switch_is_told() {
    let mut app = busy(PLAIN);
    let (_, mut now) = second();
    now.at_ns += 1;
    now.version.config_hash = "fedcba".to_owned();
    app.look(now, &[]);
    assert!(lines(&mut app)[0].ends_with("the running configuration changed: fedcba"));
}

#[test]
fn verdict_line_adds_up_dropped_missed_and_no_buffer_frames() {
    let (before, mut now) = second();
    let mut app = App::new(PLAIN, Duration::from_secs(1));
    app.look(before, &[]);
    assert!(text(&app, 80, 24).contains("lossless: 0 lost"));
    now.ports[0].lossless_dropped_frames = 1_000;
    now.ports[1].missed_frames = 200;
    now.ports[1].no_buffer_frames = 34;
    app.look(now.clone(), &[]);
    assert!(text(&app, 80, 24).contains("lossless: 1,234 LOST"));
    now.ports[0].lossless = false;
    app.look(now, &[]);
    assert!(text(&app, 120, 24).contains("not lossless: 1 of 2 ports"));
}
