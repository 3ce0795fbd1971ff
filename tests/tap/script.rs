//! `conf/tap-tor.sh` as users run it.
//!
//! The commands of docs/install.md are run here.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::namespace::list;
use crate::process::{Ended, Process};
use crate::program::PATIENCE;
use crate::ready::machine_is_ready;
use crate::rig::{Rig, SCRIPT, TAP_TOR};

#[track_caller]
fn call(rig: &Rig, arguments: &[&str]) -> Ended {
    let mut command = rig.script(arguments);
    command.env("HOLDFAST_WAIT", "1");
    Process::spawn(command).wait(PATIENCE)
}

/// Asserts that the script refused with one sentence.
#[track_caller]
fn assert_refused(ended: &Ended, part: &str) {
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("error: ") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(part), "{}", ended.stderr);
}

#[test]
fn up_and_down_may_be_repeated() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::start(TAP_TOR, 4);
    let again = call(&rig, &["up"]);
    assert!(again.status.success() && again.stdout.contains("exec 0 ping"), "{again:?}");
    let ping = call(&rig, &["exec", "3", "ping", "-n", "-c", "1", "-W", "2", "10.48.0.1"]);
    assert!(ping.status.success(), "{ping:?}");

    for _ in 0..2 {
        let down = call(&rig, &["down"]);
        assert_eq!((down.status.code(), down.stdout.as_str(), down.stderr.as_str()), (Some(0), "", ""));
        assert!(!list().iter().any(|name| rig.owns_host(name)), "{:?}", list());
    }
    assert_refused(&call(&rig, &["exec", "0", "true"]), "tap-tor.sh up");
    // The taps exist again, and the same switch continues.
    rig.script_up();
    rig.hosts[0].reach(&rig.hosts[2].ipv6(), 2);
    rig.stop();
    assert!(call(&rig, &["down"]).status.success(), "without a switch too");
}

#[test]
fn up_without_a_switch_makes_nothing() {
    if !machine_is_ready() {
        return;
    }
    let rig = Rig::without_switch(4);
    assert_refused(&call(&rig, &["up"]), "there is no interface hf0; start the switch first");
    assert!(!list().iter().any(|name| rig.owns_host(name)), "{:?}", list());
    assert!(call(&rig, &["down"]).status.success());
}

#[test]
fn up_with_a_missing_tap_undoes_its_changes() {
    if !machine_is_ready() {
        return;
    }
    let rig = Rig::without_switch(2);
    let inside = |arguments: &[&str]| {
        let ended = Process::spawn(rig.inside_command("ip", arguments)).wait(PATIENCE);
        assert!(ended.status.success(), "{ended:?}");
    };
    inside(&["tuntap", "add", "dev", "hf0", "mode", "tap"]);
    // DPDK brings a tap up once it has its queues. Until then the script must not use it.
    assert_refused(&call(&rig, &["up"]), "there is no interface hf0");
    inside(&["link", "set", "dev", "hf0", "up"]);
    assert_refused(&call(&rig, &["up"]), "there is no interface hf1");
    assert!(!list().iter().any(|name| rig.owns_host(name)), "{:?}", list());
    let back = Process::spawn(rig.inside_command("ip", &["link", "show", "dev", "hf0"])).wait(PATIENCE);
    assert!(back.status.success(), "{back:?}");
}

#[test]
fn wrong_arguments_print_usage_and_non_root_is_refused() {
    if !machine_is_ready() {
        return;
    }
    let rig = Rig::without_switch(4);
    for wrong in [&[][..], &["sideways"], &["up", "twice"], &["exec"], &["exec", "0"]] {
        let ended = call(&rig, wrong);
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(ended.stderr.starts_with("usage: "), "{}", ended.stderr);
    }
    // A copy, because only root may have access to the checkout.
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("our own directory");
    let copy = directory.path().join("tap-tor.sh");
    fs::copy(SCRIPT, &copy).expect("a copy");
    let copy = copy.display().to_string();
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups", "--", &copy, "up"];
    let ended = Process::spawn(rig.inside_command("setpriv", &words)).wait(PATIENCE);
    assert_refused(&ended, "only root");
}
