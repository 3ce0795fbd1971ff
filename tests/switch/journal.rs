//! Lines of a switch that logs into systemd's journal: none without need, severities, and events as JSON.

use std::fs::File;
use std::io::{PipeReader, Read, pipe};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::launch::{finish, run, start};
use crate::process::wait_for;
use crate::program::{Config, PATIENCE};

const SHORT: [&str; 4] = ["--duration", "1500ms", "--metrics", "off"];

fn status_lines(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("t=") && line.contains(" lossless drops ")).count()
}

#[test]
fn log_has_status_lines_only_if_they_are_wanted() {
    let ended = finish(run(&SHORT));
    assert_eq!((status_lines(&ended.stdout), ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let ended = finish(run(&[&SHORT[..], &["--json"]].concat()));
    assert_eq!(ended.stderr, "");
    let wanted = ["--status", "200ms"];
    let ended = finish(run(&[&SHORT[..], &wanted].concat()));
    assert!(status_lines(&ended.stdout) > 0, "{}", ended.stdout);
    let ended = finish(run(&[&SHORT[..], &wanted, &["--json"]].concat()));
    assert!(status_lines(&ended.stderr) > 0, "{}", ended.stderr);
}

/// Returns what a switch with `args` writes to a standard error that leads to the journal if `is_journal`.
fn journal(args: &[&str], is_journal: bool) -> String {
    let (mut reader, writer): (PipeReader, _) = pipe().expect("a pipe");
    let metadata = File::from(writer.as_fd().try_clone_to_owned().expect("a descriptor")).metadata().expect("a pipe");
    let inode = if is_journal { metadata.ino() } else { metadata.ino() + 1 };
    let mut command = run(args);
    command.env("JOURNAL_STREAM", format!("{}:{inode}", metadata.dev()));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(writer)).spawn().expect("it starts");
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("lines");
    child.wait().expect("it is our child");
    text
}

#[test]
fn lines_in_the_journal_begin_with_their_severity() {
    let config = Config::new(
        "preset: roce\nports: [{name: p1, device: ring, speed: 10G, pfc: off}]\nhosts: [{name: h1, port: p1}]\n",
    );
    let path = config.path();
    let args = [&[path.as_str()][..], &SHORT].concat();
    let text = journal(&args, true);
    assert!(text.lines().all(|line| line.starts_with("<4>")) && text.starts_with("<4>warning: "), "{text}");
    let text = journal(&args, false);
    assert!(text.starts_with("warning: "), "standard error was redirected: {text}");
    for wrong in [&["/nonexistent.yaml"][..], &["--nothing"]] {
        let text = journal(wrong, true);
        assert!(text.starts_with("<3>error: ") && text.lines().all(|line| line.starts_with("<3>")), "{text}");
    }
}

#[test]
fn events_are_json_lines_with_stable_names() {
    let (process, _) = start(&["--duration", "0", "--events", "json"]);
    let event = |kind: &str| {
        wait_for(kind, PATIENCE, || {
            let text = process.stderr();
            let mut events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            events.find(|event| event["kind"] == kind)
        })
    };
    process.signal("USR1");
    let cleared = event("watermarks_cleared");
    assert_eq!((&cleared["severity"], &cleared["port"]), (&"info".into(), &Value::Null), "{cleared}");
    assert!(cleared["at_unix_ns"].as_u64() > Some(Duration::from_secs(1_600_000_000).as_nanos() as u64), "{cleared}");
    process.signal("HUP");
    let reload = event("reload_unchanged");
    assert!(reload["text"].as_str().is_some_and(|text| text.contains("reload: nothing differs")), "{reload}");
    process.signal("TERM");
    assert_eq!(process.wait(PATIENCE).status.code(), Some(0));
}
