//! Roles of users: docs/configuration.md#api. Requests of other users need root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Output;

use crate::process::{mortal, wait_for};
use crate::rig::{HOLDFAST, PATIENCE, Switch};

/// Users of every Debian, each in a group with its own number.
const DAEMON: u32 = 1;
const BIN: u32 = 2;
const NOBODY: u32 = 65534;

/// Runs `holdfast` with `args` as `user` against `switch`.
fn holdfast_as(user: u32, switch: &Switch, args: &[&str]) -> Output {
    let socket = switch.socket();
    let directory = socket.parent().expect("a directory");
    // Only root may have access to the checkout and to a temporary directory.
    fs::set_permissions(directory, Permissions::from_mode(0o755)).expect("our own directory");
    let program = directory.join("holdfast");
    if !program.exists() {
        fs::copy(HOLDFAST, &program).expect("a copy of the program");
    }
    let mut command = mortal(program.to_str().expect("a path in UTF-8"));
    command.args(args).arg("--socket").arg(&socket).uid(user).gid(user).current_dir("/");
    command.output().expect("it can be started")
}

#[test]
fn groups_decide_who_reads_and_who_changes_and_events_name_the_user() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make requests as other users");
        return;
    }
    let config = include_str!("../../conf/incast.yaml");
    let switch = Switch::configured(&format!("api: {{readers: [\"{NOBODY}\"], admins: [daemon]}}\n{config}"));
    let code = |user: u32, args: &[&str]| {
        let output = holdfast_as(user, &switch, args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (user, args, wanted, said) in [
        (NOBODY, &["show", "ports"][..], 0, ""),
        (NOBODY, &["reload", "--dry-run"], 0, ""),
        (NOBODY, &["reload"], 1, "nobody may not change this switch"),
        (
            NOBODY,
            &["clear", "watermarks"],
            1,
            "nobody may not change this switch; add the user to a group of `api.admins`",
        ),
        (DAEMON, &["show", "ports"], 0, ""),
        (DAEMON, &["clear", "watermarks"], 0, ""),
        (BIN, &["show", "ports"], 1, "bin may not read this switch; add the user to a group of `api.readers`"),
        (0, &["clear", "fdb"], 0, ""),
    ] {
        let (code, stderr) = code(user, args);
        assert_eq!(code, Some(wanted), "{user} {args:?}: {stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    wait_for("events of both changes", PATIENCE, || {
        let events = switch.get("events")["events"].as_array().expect("events").clone();
        let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
        let is_of = |start: &str, user: &str| texts.iter().any(|text| text.contains(start) && text.ends_with(user));
        (is_of("clear: watermarks", ", by daemon") && is_of("clear: learned stations", ", by root")).then_some(())
    });
    switch.end();
}
