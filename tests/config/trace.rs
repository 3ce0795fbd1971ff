//! `holdfast sim --trace`: the decisions of the simulated switch match those of `holdfast replay`.

use assert_cmd::Command;
use serde_json::Value;

use super::conf_dir;

fn holdfast(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn sum(report: &Value, field: &str) -> u64 {
    let ports = report["switches"][0]["ports"].as_array().unwrap().iter();
    let classes = ports.flat_map(|port| port["classes"].as_array().unwrap());
    classes.map(|class| class[field].as_u64().unwrap_or_else(|| panic!("{field}: {class}"))).sum()
}

#[test]
fn simulated_incast_trace_replays_with_equal_counts() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("incast.csv");
    let (scenario, config) = (conf_dir().join("sim/reality.yaml"), conf_dir().join("incast.yaml"));
    let trace = trace.to_str().unwrap();
    let args = ["sim", scenario.to_str().unwrap(), "--trace", trace, "--format", "json", "--quiet"];
    let (code, stdout, stderr) = holdfast(&args);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let (code, stdout, stderr) = holdfast(&["replay", "--config", config.to_str().unwrap(), trace, "--format", "csv"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let count = |what: &str| stdout.matches(what).count() as u64;
    assert_eq!(count(",released,"), sum(&report, "sent_frames"));
    assert_eq!(count(",drop,"), 0);
    assert_eq!(count("XOFF p"), sum(&report, "pauses_sent"));
    assert_eq!(count("XON p"), sum(&report, "pfc_sent_xon"));
}

fn refuse(yaml: &str, more: &[&str], expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (path, trace) = (dir.path().join("s.yaml"), dir.path().join("t.csv"));
    std::fs::write(&path, yaml).unwrap();
    let args = ["sim", path.to_str().unwrap(), "--quiet", "--trace", trace.to_str().unwrap()];
    let (code, stdout, stderr) = holdfast(&[&args[..], more].concat());
    assert_eq!((code, stdout.as_str(), stderr), (2, "", format!("error: {expected}\n")));
    assert!(!trace.exists());
}

/// Returns a scenario with `keys` at the top and a switch for each of `names`, with `of_switch` in its configuration.
fn scenario(keys: &str, names: &[&str], of_switch: &str) -> String {
    let mut yaml = format!("duration: 10us\n{keys}switches:\n");
    for name in names {
        yaml += &format!("  - name: {name}\n    config:\n      preset: roce\n{of_switch}");
        yaml += "      ports: [{name: p1, speed: 10G}, {name: p2, speed: 10G}]\n";
    }
    yaml
}

#[test]
fn sim_trace_that_replay_cannot_reproduce_is_refused() {
    let two = scenario("", &["one", "two"], "");
    refuse(&two, &[], "a trace records one switch; write `--trace-switch` with one of one, two");
    refuse(&two, &["--trace-switch", "three"], "there is no switch `three`; write one of one, two");
    let learning = scenario("learning: frames\n", &["tor"], "");
    let reason = "switches learn addresses from frames, which a trace does not record; write `learning: routes`";
    refuse(&learning, &[], &format!("tor cannot be recorded: {reason}"));
    let lcores = scenario("", &["tor"], "      lcores: {count: 2}\n");
    let reason = "it has several lcores, and a trace does not record their order; write `lcores: {count: 1}`";
    refuse(&lcores, &[], &format!("tor cannot be recorded: {reason}"));
}
