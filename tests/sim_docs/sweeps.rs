//! docs/sweeps.md: shards of a sweep by `holdfast sim --shard`, `holdfast sim merge`, and the files of `conf/sweep`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::command::{STAR, scenario, sim};
use crate::outputs::{end, names, signal, start, until_it_listens};

/// Number of the signal that ends a run in an orderly way.
const TERMINATE: u32 = 15;
/// Attempts to kill a shard before it is done.
const ATTEMPTS: usize = 20;

/// Three variants; the second loses frames.
const VARIANTS: &str = "\
variants:
  - {name: a}
  - {name: \"b/c, d\", faults: [{at: 0us, lose: tor.p3, toward: h3}]}
  - {name: e, seed: 7}
";

/// Runs a shell script in which `holdfast` is this program.
fn shell(dir: &Path, script: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
    let script = format!("holdfast() {{ '{}' \"$@\"; }}\n{script}", env!("CARGO_BIN_EXE_holdfast"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(dir).stdin(Stdio::null());
    for name in ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Runs one shard and asserts that it wrote its result.
#[track_caller]
fn shard(dir: &Path, args: &[&str], shard: &str) {
    let (code, stdout, stderr) = sim(dir, &[args, &["-q", "--shard", shard, "--results", "out"]].concat());
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let (index, count) = shard.split_once('/').unwrap();
    let place = format!("; written to out/shard-{index}-of-{count}.json\n");
    assert!(stdout.starts_with(&format!("shard {shard}: ")) && stdout.ends_with(&place), "{stdout}");
}

#[test]
fn merged_random_fabrics_print_the_undivided_output_after_a_killed_shard_ran_again() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--random", "--seed", "3", "--count", "48"];
    for index in [3, 0, 1] {
        shard(dir.path(), &args, &format!("{index}/4"));
    }
    let all = [&args[..], &["-q", "--shard", "2/4", "--results", "out"]].concat();
    let result = dir.path().join("out/shard-2-of-4.json");
    let is_killed = (0..ATTEMPTS).any(|_| {
        let _ = fs::remove_file(&result);
        let mut child = start(dir.path(), &all);
        until_it_listens(&mut child, TERMINATE);
        sleep(Duration::from_millis(20));
        signal(&child, "KILL");
        end(child).status.code().is_none()
    });
    assert!(is_killed, "each attempt was too late");
    let there = ["shard-0-of-4.json", "shard-1-of-4.json", "shard-3-of-4.json"];
    assert_eq!(names(&dir.path().join("out")), there);

    let (code, stdout, stderr) = sim(dir.path(), &["merge", "out"]);
    let command = "holdfast sim --random --seed 3 --count 48 --shard 2/4 --results out";
    let expected = format!("error: 1 of 4 shards missing in out: 2; run each and merge again:\nerror: {command}\n");
    assert_eq!((code, stdout.as_str(), stderr), (2, "", expected));
    assert_eq!(shell(dir.path(), command, &[]).0, 0);
    let first = fs::read(&result).unwrap();
    assert_eq!(shell(dir.path(), command, &[]).0, 0);
    assert_eq!(fs::read(&result).unwrap(), first, "a shard that runs again writes equal bytes");

    let merged = sim(dir.path(), &["merge", "out"]);
    assert_eq!(merged, sim(dir.path(), &[&args[..], &["-q"]].concat()));
    assert!(merged.1.starts_with("48 random fabrics from seed 3 on: "), "{}", merged.1);
}

#[test]
fn terminated_shard_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--random", "--count", "1000000", "--shard", "1/2", "--results", "out"];
    let mut child = start(dir.path(), &args);
    until_it_listens(&mut child, TERMINATE);
    sleep(Duration::from_millis(100));
    signal(&child, "TERM");
    let output = end(child);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(143), 0), "{output:?}");
    assert!(names(&dir.path().join("out")).is_empty());
}

#[test]
fn merged_variants_print_the_undivided_output_in_every_format() {
    let dir = scenario(format!("{STAR}{VARIANTS}"));
    let formats: [&[&str]; 7] = [
        &[],
        &["--all"],
        &["--format", "json"],
        &["--format", "json", "--all"],
        &["--format", "csv", "--seed", "5"],
        &["--fail-on-loss"],
        &["--variant", "a", "--variant", "e"],
    ];
    for (options, count) in formats.into_iter().zip([2, 3, 4, 2, 3, 2, 2]) {
        let args = [&["x.yaml"], options].concat();
        let _ = fs::remove_dir_all(dir.path().join("out"));
        for index in (0..count).rev() {
            shard(dir.path(), &args, &format!("{index}/{count}"));
        }
        let whole = sim(dir.path(), &[&args[..], &["-q"]].concat());
        assert_eq!(whole.0, i32::from(options == ["--fail-on-loss"]));
        assert_eq!(sim(dir.path(), &["merge", "out"]), whole, "{options:?}");
    }
}

#[test]
fn variant_that_is_given_up_fails_the_merge_as_it_fails_the_undivided_run() {
    let text = STAR.replace("duration: 100us", "duration: 10ms\nevents: 20000");
    let dir = scenario(format!("{text}{VARIANTS}"));
    for index in 0..3 {
        shard(dir.path(), &["x.yaml"], &format!("{index}/3"));
    }
    let merged = sim(dir.path(), &["merge", "out"]);
    assert_eq!((merged.0, merged.2.as_str()), {
        (1, "error: a: given up after 20000 events; write a larger `events` or a shorter `duration`\n")
    });
    assert_eq!(merged, sim(dir.path(), &["x.yaml", "-q"]));
}

#[test]
fn results_of_two_sweeps_are_refused_with_their_difference() {
    let dir = tempfile::tempdir().unwrap();
    shard(dir.path(), &["--random", "--count", "4"], "0/2");
    let merge = |expected: &str| {
        let (code, stdout, stderr) = sim(dir.path(), &["merge", "out"]);
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", expected));
    };
    shard(dir.path(), &["--random", "--count", "6"], "1/2");
    merge(
        "error: out/shard-1-of-2.json: of another sweep than out/shard-0-of-2.json: its `count` is 6, not 4; remove one \
         of them\n",
    );
    shard(dir.path(), &["--random", "--count", "4"], "1/2");
    shard(dir.path(), &["--random", "--count", "4"], "1/3");
    merge(
        "error: out/shard-1-of-3.json: of another sweep than out/shard-0-of-2.json: it is one of 3 shards, not of 2; \
         remove one of them\n",
    );
    fs::remove_file(dir.path().join("out/shard-1-of-3.json")).unwrap();
    fs::write(dir.path().join("x.yaml"), format!("{STAR}{VARIANTS}")).unwrap();
    shard(dir.path(), &["x.yaml"], "1/2");
    merge(
        "error: out/shard-1-of-2.json: of another sweep than out/shard-0-of-2.json: one is of random fabrics, the other \
         of a scenario; remove one of them\n",
    );
    shard(dir.path(), &["x.yaml"], "0/2");
    fs::write(dir.path().join("x.yaml"), format!("# Another text.\n{STAR}{VARIANTS}")).unwrap();
    shard(dir.path(), &["x.yaml"], "1/2");
    let (_, _, stderr) = sim(dir.path(), &["merge", "out"]);
    assert!(stderr.contains("shard-0-of-2.json: its `content` is \""), "{stderr}");
}

#[test]
fn foreign_and_damaged_files_are_refused_with_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    for index in ["0/2", "1/2"] {
        shard(dir.path(), &["--random", "--count", "4"], index);
    }
    let path = dir.path().join("out/shard-1-of-2.json");
    let good = fs::read_to_string(&path).unwrap();
    let version = serde_json::from_str::<Value>(&good).unwrap()["version"].as_str().unwrap().to_owned();
    let refuse = |text: &str, expected: &str| {
        fs::write(&path, text).unwrap();
        let (code, stdout, stderr) = sim(dir.path(), &["merge", "out"]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with(&format!("error: out/shard-1-of-2.json:{expected}")), "{stderr}");
    };
    refuse(
        good.trim_end().trim_end_matches('}'),
        "21:0: not the result of a shard: EOF while parsing an object; remove",
    );
    refuse("", "1:0: not the result of a shard: EOF while parsing a value; remove the file, or run its shard again\n");
    refuse("{\"a\": 1}\n", "1:4: not the result of a shard: unknown field `a`, expected one of ");
    refuse(&good.replace("\"seed\": 1", "\"seed\": -1"), "7:16: not the result of a shard: invalid value: ");
    refuse(&good.replace(&version, "0.0.1"), " written by holdfast 0.0.1, and this is ");
    refuse(&good.replace("\"shard\": 1", "\"shard\": 0"), " the content is that of shard-0-of-2.json; rename");
    fs::write(&path, &good).unwrap();
    // Files of other types may be there.
    fs::write(dir.path().join("out/sweep.log"), "x").unwrap();
    fs::write(dir.path().join("out/shard-1-of-2.json.part"), "{").unwrap();
    assert_eq!(sim(dir.path(), &["merge", "out"]).0, 0);
    fs::write(dir.path().join("out/other.json"), "[]\n").unwrap();
    let (code, _, stderr) = sim(dir.path(), &["merge", "out"]);
    assert!(code == 2 && stderr.starts_with("error: out/other.json:1:"), "{stderr}");
}

#[test]
fn shards_that_cannot_be_run_are_refused() {
    let dir = scenario(STAR);
    let refuse = |args: &[&str], expected: &str| {
        let (code, stdout, stderr) = sim(dir.path(), args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    let one =
        "error: --shard: one run cannot be divided; write `variants`, e.g. of `seed`, or run it without --shard\n";
    refuse(&["x.yaml", "--shard", "0/2", "--results", "out"], one);
    refuse(
        &["--random", "--shard", "2/2", "--results", "out"],
        "there is no shard 2 of 2: they count from 0; write 0/2",
    );
    refuse(&["--random", "--shard", "0/2"], "write `--results DIR` too");
    refuse(&["--random", "--results", "out"], "write `--shard I/N` too");
    for option in [&["--for", "1s"][..], &["--out", "x"]] {
        refuse(&[&["--random", "--shard", "0/2", "--results", "out"], option].concat(), "cannot be used with");
    }
    for option in ["--plots", "--samples", "--trace"] {
        refuse(&["x.yaml", "--shard", "0/2", "--results", "out", option, "y"], "cannot be used with");
    }
    refuse(
        &["merge", "."],
        "error: . has no results of shards; write some with: holdfast sim ... --shard I/N --results .",
    );
    refuse(&["merge", "none"], "error: none: cannot be read: No such file or directory\n");
    let (code, _, stderr) = sim(dir.path(), &["--random", "--shard", "0/2", "--results", "x.yaml"]);
    assert_eq!((code, stderr.as_str()), (1, "error: directory x.yaml cannot be written: File exists\n"));
}

/// The files of `conf/sweep`, with fewer fabrics, give what the undivided run prints.
#[test]
fn shipped_jobs_run_the_shards_of_their_sweep() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let job = fs::read_to_string(root.join("conf/sweep/kubernetes.yaml")).unwrap();
    let args = job.lines().find_map(|line| line.trim().strip_prefix("args: [")).unwrap().trim_end_matches(']');
    let args = args.replace(", ", " ").replace("\"100000\"", "32").replace("/results/random", "kubernetes");
    assert!(job.contains("completionMode: Indexed\n") && job.contains("completions: 16\n"), "{job}");
    let script = root.join("conf/sweep/slurm.sh");
    assert!(fs::read_to_string(&script).unwrap().contains("#SBATCH --array=0-15\n"));
    // The script replaces its shell by the program, which a function cannot be.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_holdfast"), dir.path().join("holdfast")).unwrap();
    let task = format!("PATH=$PWD:$PATH COUNT=32 RESULTS=slurm sh {}", script.display());
    for index in (0..16).map(|index| index.to_string()) {
        let (code, _, stderr) =
            shell(dir.path(), &format!("holdfast {args}"), &[("JOB_COMPLETION_INDEX", index.as_str())]);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let (code, _, stderr) = shell(dir.path(), &task, &[("SLURM_ARRAY_TASK_ID", index.as_str())]);
        assert_eq!((code, stderr.as_str()), (0, ""));
    }
    let whole = sim(dir.path(), &["--random", "--count", "32", "-q"]);
    assert_eq!(whole.0, 0);
    for results in ["kubernetes", "slurm"] {
        assert_eq!(sim(dir.path(), &["merge", results]), whole, "{results}");
    }
}
