//! Tests of the keys.

use super::*;
use crate::top::{Action, INTERVALS, Key, View};

#[test]
fn tab_goes_round_the_views_and_back() {
    let mut app = busy(PLAIN);
    let mut names = Vec::new();
    for _ in View::ALL {
        names.extend(View::ALL.into_iter().find(|view| text(&app, 80, 24).contains(&format!("[{}]", view.name()))));
        app.key(Key::Tab);
    }
    assert_eq!(names, View::ALL);
    app.key(Key::BackTab);
    assert!(text(&app, 80, 24).contains("[log]"));
    app.key(Key::Char('3'));
    assert!(text(&app, 80, 24).contains("[queues]"));
}

#[test]
fn the_selected_port_is_the_one_in_detail_whatever_the_order() {
    let mut app = busy(PLAIN);
    let detail =
        |app: &App| text(app, 80, 24).lines().find(|line| line.starts_with("─ p")).unwrap_or_default().to_owned();
    assert!(detail(&app).starts_with("─ p1 "), "{}", detail(&app));
    app.key(Key::Down);
    assert!(detail(&app).starts_with("─ p2 "));
    app.key(Key::Down);
    assert!(detail(&app).starts_with("─ p2 "), "there is no third");
    // p2 sends and p1 does not.
    app.key(Key::Char('s'));
    let screen = text(&app, 80, 24);
    let (p1, p2) = (screen.find("\n  p1"), screen.find("\n▶ p2"));
    assert!(p2.is_some() && p2 < p1, "{screen}");
    app.key(Key::Up);
    assert!(detail(&app).starts_with("─ p2 "), "it is the first now");
    app.key(Key::End);
    assert!(detail(&app).starts_with("─ p1 "));
}

#[test]
fn paused_top_screen_stays_and_says_so() {
    let mut app = busy(PLAIN);
    app.key(Key::Char('p'));
    let before = text(&app, 80, 24);
    assert!(before.contains("PAUSED"));
    let (_, mut later) = second();
    later.at_ns += 1_000_000_000;
    later.ports[0].received_wire_bytes += 1_000_000_000;
    app.look(later.clone(), &[]);
    assert_eq!(text(&app, 80, 24), before);
    app.key(Key::Char('p'));
    app.look(later, &[]);
    let after = text(&app, 80, 24);
    assert!(after.contains("up 0:00:05") && after.contains(" 8.00 "), "{after}");
}

#[test]
fn interval_keys_step_between_100ms_and_10s() {
    let mut app = busy(PLAIN);
    assert_eq!(app.key(Key::Char('-')), Some(Action::Interval(Duration::from_millis(500))));
    for _ in INTERVALS {
        app.key(Key::Char('-'));
    }
    assert!(text(&app, 80, 24).contains("every 100ms"));
    for _ in INTERVALS {
        app.key(Key::Char('+'));
    }
    assert!(text(&app, 80, 24).contains("every 10s"));
    // An interval from the command line may lie between two steps.
    let mut app = App::new(PLAIN, Duration::from_millis(300));
    assert_eq!(app.key(Key::Char('+')), Some(Action::Interval(Duration::from_millis(500))));
}

#[test]
fn watermarks_are_cleared_only_where_that_is_allowed() {
    let mut app = busy(PLAIN);
    assert_eq!(app.key(Key::Char('c')), None);
    let last = |app: &App| text(app, 80, 24).lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&app), "read-only: set `api: {writes: true}`, or kill -USR1 4711");
    app.key(Key::Escape);
    assert!(last(&app).starts_with("q quit"));
    let (_, mut now) = second();
    now.version.writes = true;
    app.look(now, &[]);
    assert_eq!(app.key(Key::Char('c')), Some(Action::Clear));
    app.cleared(Ok(()));
    assert!(last(&app).starts_with("watermarks are"));
    app.cleared(Err("it said no".to_owned()));
    assert_eq!(last(&app), "it said no");
}

#[test]
fn q_quits_and_escape_closes_the_help() {
    let mut app = busy(PLAIN);
    app.key(Key::Char('?'));
    assert!(text(&app, 80, 24).contains("an entry grows"));
    app.key(Key::Escape);
    assert!(!text(&app, 80, 24).contains("an entry grows"));
    assert_eq!(app.key(Key::Char('q')), Some(Action::Quit));
}

#[test]
fn unused_rows_are_shown_after_key_a() {
    let mut app = busy(PLAIN);
    app.key(Key::Char('2'));
    let rows =
        |app: &App| text(app, 80, 60).lines().filter(|line| line.contains(" p1 ") || line.contains(" p2 ")).count();
    let some = rows(&app);
    app.key(Key::Char('a'));
    assert!(some < 16 && rows(&app) == 16, "{some}, then {}", rows(&app));
}
