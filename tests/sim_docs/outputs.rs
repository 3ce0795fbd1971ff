//! Files that `holdfast sim` writes: complete or absent, and never over its own inputs.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command::{STAR, VARIANTS, scenario, sim};

const PATIENCE: Duration = Duration::from_secs(120);
/// Number of attempts in which a signal may come too late.
const ATTEMPTS: usize = 20;

/// Returns the names of the files in a directory.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// Starts the program with no signal ignored, because tests may run in the background of a script.
pub fn start(dir: &Path, args: &[&str]) -> Child {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_holdfast"), "sim"]).args(args).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn signal(child: &Child, name: &str) {
    // The program may have ended already.
    let _ = Command::new("kill").args(["-s", name, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
}

/// Waits until `child` handles the signal of this number or has ended. An unhandled signal would kill it without a
/// message.
pub fn until_it_listens(child: &mut Child, signal: u32) {
    let listens = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
        caught.is_some_and(|caught| u64::from_str_radix(caught, 16).unwrap() >> (signal - 1) & 1 == 1)
    };
    let path = format!("/proc/{}/status", child.id());
    let until = Instant::now() + PATIENCE;
    while !listens(&fs::read_to_string(&path).unwrap()) && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not listen");
        sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of `child` and returns its output. Kills it and panics after `PATIENCE`.
#[track_caller]
pub fn end(mut child: Child) -> Output {
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it goes on: {:?}", child.wait_with_output());
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn output_path_equal_to_an_input_is_refused() {
    let dir = scenario("");
    let text = STAR.replace(
        "    config: {preset: roce, ports: [{name: p*, count: 3, speed: 10G}], buffer: {size: 4MiB}}\n",
        "    file: tor.yaml\n",
    );
    let tor = "{preset: roce, ports: [{name: p*, count: 3, speed: 10G}], buffer: {size: 4MiB}}\n";
    fs::write(dir.path().join("x.yaml"), &text).unwrap();
    fs::write(dir.path().join("tor.yaml"), tor).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    for (option, name, other) in [
        ("--samples", "x.yaml", "the scenario x.yaml"),
        ("--samples", "sub/../x.yaml", "the scenario x.yaml"),
        ("--trace", "x.yaml", "the scenario x.yaml"),
        ("--out", "x.yaml", "the scenario x.yaml"),
        ("--trace", "tor.yaml", "the configuration tor.yaml"),
    ] {
        let (code, stdout, stderr) = sim(dir.path(), &["x.yaml", "-q", option, name]);
        let expected = format!("error: `{option} {name}` would overwrite {other}; name another file\n");
        assert_eq!((code, stdout, stderr), (2, String::new(), expected));
        assert_eq!(fs::read_to_string(dir.path().join("x.yaml")).unwrap(), text);
        assert_eq!(fs::read_to_string(dir.path().join("tor.yaml")).unwrap(), tor);
    }
}

#[test]
fn output_path_used_twice_is_refused() {
    let dir = scenario(STAR);
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "-q", "--samples", "a.csv", "--trace", "./a.csv"]);
    let expected = "error: `--trace ./a.csv` would overwrite the output of `--samples a.csv`; name another file\n";
    assert_eq!((code, stderr.as_str()), (2, expected));
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "-q", "--samples", "p/throughput.svg", "--plots", "p"]);
    let expected = "error: `--plots p/throughput.svg` would overwrite the output of `--samples p/throughput.svg`; name";
    assert!(code == 2 && stderr.starts_with(expected), "{stderr}");
    // The name of a variant may make two file names equal.
    fs::write(dir.path().join("x.yaml"), format!("{STAR}{VARIANTS}")).unwrap();
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "-q", "--samples", "s.csv", "--trace", "s.csv"]);
    assert!(code == 2 && stderr.starts_with("error: `--trace s-a.csv` would overwrite the output of "), "{stderr}");
}

#[test]
fn failed_write_leaves_no_partial_file() {
    for option in ["--samples", "--trace"] {
        let dir = scenario(STAR);
        fs::write(dir.path().join("old.csv"), "old\n").unwrap();
        for name in ["new.csv", "old.csv"] {
            // A file size limit of 512 bytes stands for a full disk.
            let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" sim x.yaml -q \"$@\"";
            let mut command = Command::new("sh");
            command.args(["-c", script, env!("CARGO_BIN_EXE_holdfast"), option, name]).current_dir(dir.path());
            let output = command.stdin(Stdio::null()).output().unwrap();
            let expected = format!("error: file {name} cannot be written: File too large\n");
            assert_eq!((output.status.code(), stderr(&output)), (Some(1), expected));
            assert_eq!(names(dir.path()), ["old.csv", "x.yaml"]);
            assert_eq!(fs::read_to_string(dir.path().join("old.csv")).unwrap(), "old\n");
        }
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let dir = scenario(STAR.replace("duration: 100us", "duration: 10s"));
        let mut child = start(dir.path(), &["x.yaml", "--samples", "s.csv", "--trace", "t.csv"]);
        until_it_listens(&mut child, code - 128);
        // The run is probably under way, but need not be.
        sleep(Duration::from_millis(100));
        signal(&child, name);
        let output = end(child);
        let expected = (Some(code.cast_signed()), "error: interrupted\n".to_owned());
        assert_eq!((output.status.code(), stderr(&output)), expected);
        assert_eq!((output.stdout.len(), names(dir.path())), (0, vec!["x.yaml".to_owned()]));
    }
}

#[test]
fn interrupted_write_leaves_no_partial_file() {
    let text = STAR.replace("duration: 100us", "duration: 2ms").replace("to: h3}", "to: h3, frame: 100}");
    let dir = scenario(&text);
    let (part, whole) = (dir.path().join("t.csv.part"), dir.path().join("t.csv"));
    for _ in 0..ATTEMPTS {
        let mut child = start(dir.path(), &["x.yaml", "-q", "--trace", "t.csv"]);
        while !part.exists() && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_micros(200));
        }
        signal(&child, "TERM");
        let output = end(child);
        assert!(!part.exists(), "{output:?}");
        if output.status.code() == Some(143) && !whole.exists() {
            return;
        }
        // The file was complete before the signal.
        assert!(fs::read_to_string(&whole).unwrap().ends_with('\n'), "{output:?}");
        fs::remove_file(&whole).unwrap();
    }
    panic!("no signal came while it was written");
}

#[test]
fn pipes_and_devices_are_written_directly() {
    let dir = scenario(STAR);
    let (code, stdout, stderr) = sim(dir.path(), &["x.yaml", "-q", "--format", "csv", "--samples", "/dev/stdout"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("time_ns,switch,") && stdout.contains("\nflow,from,to,"), "{stdout}");
    assert!(Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    let child = start(dir.path(), &["x.yaml", "-q", "--trace", "pipe", "--samples", "/dev/null"]);
    let mut trace = String::new();
    fs::File::open(dir.path().join("pipe")).unwrap().read_to_string(&mut trace).unwrap();
    assert_eq!(end(child).status.code(), Some(0));
    assert!(trace.lines().count() > 100, "{trace}");
    assert_eq!(names(dir.path()), ["pipe", "x.yaml"]);
}

#[test]
fn interrupted_random_run_reports_its_progress_and_continuation() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = start(dir.path(), &["--random", "--seed", "5", "--count", "1000000"]);
        until_it_listens(&mut child, code - 128);
        // Some fabrics have probably been checked by now, but none need be.
        sleep(Duration::from_secs(1));
        signal(&child, name);
        let output = end(child);
        assert_eq!((output.status.code(), stderr(&output)), (Some(code.cast_signed()), String::new()));
        let stdout = String::from_utf8(output.stdout).unwrap();
        let done: u64 = stdout.split_once(" random fabric").unwrap().0.replace(',', "").parse().unwrap();
        let (next, left) = (5 + done, 1_000_000 - done);
        let last = format!("interrupted; continue with: holdfast sim --random --seed {next} --count {left}\n");
        assert!(stdout.contains(" from seed 5 on: ") && stdout.ends_with(&last), "{stdout}");
    }
}
