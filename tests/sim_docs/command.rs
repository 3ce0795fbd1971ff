//! `holdfast sim` as a user runs it: exit codes, formats, files, and error messages.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A scenario in which two hosts send to a third, with jitter, so that the seed has an effect.
pub const STAR: &str = "\
duration: 100us
switches:
  - name: tor
    config: {preset: roce, ports: [{name: p*, count: 3, speed: 10G}], buffer: {size: 4MiB}}
    poll: {jitter: 500ns}
hosts: [{name: h*, count: 3, at: tor.p*}]
flows: [{from: [h1, h2], to: h3}]
";
/// A fault: all frames to h3 are lost on its cable.
const LOSS: &str = "faults: [{at: 0us, lose: tor.p3, toward: h3}]\n";
pub const VARIANTS: &str = "variants: [{name: a}, {name: b/c d, seed: 7}]\n";

pub fn sim(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let output = command.arg("sim").args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Creates a directory with the scenario `x.yaml`.
pub fn scenario(text: impl AsRef<[u8]>) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.yaml"), text).unwrap();
    dir
}

/// Runs a scenario, asserts success, and returns its output.
#[track_caller]
fn fine(text: &str, args: &[&str]) -> String {
    let (code, stdout, stderr) = sim(scenario(text).path(), &[&["x.yaml", "-q"], args].concat());
    assert_eq!((code, stderr.as_str()), (0, ""));
    stdout
}

/// Asserts that a file is refused, with nothing on standard output.
#[track_caller]
fn refuse(text: impl AsRef<[u8]>, args: &[&str], expected: &str) {
    let (code, stdout, stderr) = sim(scenario(text).path(), &[&["x.yaml", "-q"], args].concat());
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains(expected), "{expected} is missing:\n{stderr}");
}

#[test]
fn a_run_ends_with_0_and_a_table() {
    let dir = scenario(STAR);
    let (code, stdout, stderr) = sim(dir.path(), &["x.yaml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("x, seed 1: ") && stdout.contains("\nlossless: KEPT - 0 of "), "{stdout}");
    assert!(stderr.ends_with(" million per second\n") && stderr.lines().count() == 1, "how fast it was: {stderr}");
}

#[test]
fn loss_ends_with_1_only_with_fail_on_loss() {
    let text = format!("{STAR}{LOSS}");
    let stdout = fine(&text, &[]);
    assert!(stdout.contains("lossless: BROKEN - "), "{stdout}");
    let (code, with, stderr) = sim(scenario(&text).path(), &["x.yaml", "-q", "--fail-on-loss"]);
    assert_eq!((code, stderr.as_str(), with), (1, "", stdout));
}

#[test]
fn starved_run_ends_with_1_only_with_fail_on_loss() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/sim/isolation.yaml")).unwrap();
    let text = text.replace("frame: 60ns", "frame: 60ns, shed: 60ns").replace("duration: 5ms", "duration: 3ms");
    let stdout = fine(&text, &[]);
    assert!(stdout.contains("lossless: STARVED - 0 of "), "{stdout}");
    let (code, with, stderr) = sim(scenario(&text).path(), &["x.yaml", "-q", "--fail-on-loss"]);
    assert_eq!((code, stderr.as_str(), with), (1, "", stdout));
}

#[test]
fn a_run_that_takes_too_many_events_ends_soon_with_1() {
    let text = STAR.replace("duration: 100us", "duration: 10s\nsample: 1s\nevents: 20000");
    let began = Instant::now();
    let (code, stdout, stderr) = sim(scenario(text).path(), &["x.yaml", "-q"]);
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    let remedy = "given up after 20000 events; write a larger `events` or a shorter `duration`";
    assert_eq!((code, stderr), (1, format!("error: {remedy}\n")));
    assert!(stdout.contains("\nending: given up after 20,0"), "{stdout}");
}

#[test]
fn a_wrong_scenario_ends_with_2_place_and_remedy() {
    refuse(
        STAR.replace("speed: 10G", "speed: 10Q"),
        &[],
        "error: x.yaml:4:64: switches[0].config.ports[0].speed: `10Q` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s\n",
    );
    refuse(
        STAR.replace("to: h3", "to: h4"),
        &[],
        "error: x.yaml:7:30: flows[0].to: there is no host `h4`; write `h1`, `h2` or `h3`\n",
    );
    refuse(format!("{STAR}flow: []\n"), &[], "error: x.yaml:8:1: unknown key `flow`; did you mean `flows`?\n");
    refuse("", &[], "error: x.yaml:1:1: the scenario is empty; write at least `duration: 1ms`");
    refuse("a: [\n", &[], "error: x.yaml:");
}

#[test]
fn switch_configuration_as_scenario_is_refused_with_one_error() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/sim/tor-400g.yaml")).unwrap();
    let expected = "error: x.yaml:2:1: this is the configuration of a switch, not a scenario; write a scenario beside \
                    it, with `duration: 5ms` and `switches: [{name: tor, file: x.yaml}]`\n";
    let (code, stdout, stderr) = sim(scenario(&text).path(), &["x.yaml", "-q"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(expected.split_once("1: ").unwrap().1), "{stderr}");
}

#[test]
fn warnings_of_a_kind_are_one_line() {
    let text = STAR.replace(", at: tor.p*}", ", at: tor.p*, length: 300m}");
    let told = |args: &[&str]| {
        let (code, _, stderr) = sim(scenario(&text).path(), &[&["x.yaml", "-q"], args].concat());
        assert_eq!(code, 0, "{stderr}");
        stderr
    };
    let stderr = told(&[]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.ends_with("write `cable: 300m` there (and 2 more of this kind; --all shows each)\n"), "{stderr}");
    let all = told(&["--all"]);
    assert!(all.lines().count() == 3 && all.contains("hosts[2].length: "), "{all}");
}

#[test]
fn unreadable_or_oversized_scenario_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = sim(dir.path(), &["none.yaml"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: none.yaml: cannot be read: No such file or directory"), "{stderr}");
    let (code, _, stderr) = sim(dir.path(), &["."]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: .: cannot be read: Is a directory"), "{stderr}");
    let garbage: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    refuse(garbage, &[], "error: x.yaml:1:2: not UTF-8 text; save the file as UTF-8\n");
    let large = format!("{STAR}# {}\n", "x".repeat(2 << 20));
    refuse(large, &[], "bytes are too many for a configuration; write at most 1MiB");
}

#[test]
fn a_configuration_file_that_is_wrong_is_named_with_its_place() {
    let dir = scenario("duration: 1ms\nswitches: [{name: tor, file: tor.yaml}]\n");
    let (code, _, stderr) = sim(dir.path(), &["x.yaml"]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: x.yaml:2:30: switches[0].file: `tor.yaml` cannot be read: "), "{stderr}");
    fs::write(dir.path().join("tor.yaml"), "preset: roce\nports: [{name: p1, speed: 10G, mtu: 1}]\n").unwrap();
    let (code, _, stderr) = sim(dir.path(), &["x.yaml"]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: tor.yaml:2:37: ports[0].mtu: `1` is not an MTU"), "{stderr}");
}

#[test]
fn unknown_variant_is_refused_with_known_variants() {
    let text = format!("{STAR}{VARIANTS}");
    refuse(&text, &["--variant", "z"], "error: there is no variant `z`; write `a`, `b/c d`\n");
    refuse(STAR, &["--variant", "a"], "error: there is no variant `a`; the scenario has no variants\n");
    assert!(fine(&text, &["--variant", "b/c d"]).starts_with("x: b/c d, seed 7: "));
}

#[test]
fn output_is_identical_for_equal_seed_and_differs_for_another() {
    for format in ["table", "json", "csv"] {
        let args = ["--format", format];
        let one = fine(STAR, &args);
        assert_eq!(one, fine(STAR, &args));
        assert_eq!(one, fine(STAR, &[&args[..], &["--seed", "1"]].concat()));
        assert_ne!(one, fine(STAR, &[&args[..], &["--seed", "2"]].concat()), "{format}");
    }
}

#[test]
fn json_output_is_valid_json() {
    let run: Value = serde_json::from_str(&fine(STAR, &["--format", "json"])).unwrap();
    assert_eq!((&run["seed"], &run["verdict"]["kept"]), (&1.into(), &true.into()), "{run}");
    let all: Value = serde_json::from_str(&fine(STAR, &["--format", "json", "--all"])).unwrap();
    assert!(all.to_string().len() > run.to_string().len());
    let rows: Value = serde_json::from_str(&fine(&format!("{STAR}{VARIANTS}"), &["--format", "json"])).unwrap();
    assert_eq!((&rows[0]["variant"], &rows[1]["seed"]), (&"a".into(), &7.into()));
}

#[test]
fn the_documentation_names_every_field_of_the_json() {
    let docs = include_str!("../../docs/json.md").split_once("# The JSON of `holdfast sim`").unwrap().1;
    let workload = format!("{STAR}workloads: [{{sizes: 1kB, load: 20%}}]\n");
    let runs = [
        fine(STAR, &["--format", "json", "--all"]),
        fine(&workload, &["--format", "json"]),
        fine(&format!("{STAR}{VARIANTS}"), &["--format", "json"]),
    ];
    for run in runs {
        let mut names = Vec::new();
        collect(&serde_json::from_str(&run).unwrap(), &mut names);
        assert!(names.len() > 15);
        for name in names {
            let is_there = [format!("`{name}`"), format!("`{name}[]"), format!(".{name}[]`")]
                .iter()
                .any(|text| docs.contains(text));
            assert!(is_there, "docs/json.md has no `{name}`");
        }
    }
}

/// Collects the names of all fields, except those below `drops`, which are reasons.
fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            names.extend(fields.keys().cloned());
            fields.iter().filter(|(name, _)| !name.ends_with("drops")).for_each(|(_, value)| collect(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

#[test]
fn csv_has_a_header_and_as_many_values_in_each_line() {
    for (text, first) in [(STAR.to_owned(), "flow,from,to,class,"), (format!("{STAR}{VARIANTS}"), "variant,seed,")] {
        let csv = fine(&text, &["--format", "csv"]);
        assert!(csv.starts_with(first), "{csv}");
        let widths: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert!(widths.len() == 3 && widths.iter().all(|&width| width == widths[0]), "{csv}");
    }
}

/// These columns are measured in samples, which other tables do without.
#[test]
fn columns_of_the_second_half_and_of_a_class_are_measured() {
    let text = STAR.replace("to: h3}", "to: h3, load: {message: 20kB, every: 20us}}");
    let stdout = fine(&format!("{text}columns: [late Gb/s, late queue p99, class 3 max]\n{VARIANTS}"), &[]);
    let (head, remaining) = stdout.split_once('\n').unwrap();
    assert_eq!(head.split_whitespace().last(), Some("ending"), "{head}");
    let row: Vec<&str> = remaining.lines().next().unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
    assert!(row.len() == 5 && !row.iter().any(|cell| cell.trim() == "-"), "{row:?}");
    refuse(format!("{text}columns: [class 8 max]\n"), &[], "there is no column `class 8 max`");
}

/// Each file has the columns that docs/workloads.md lists, and a value for each in every line.
#[test]
fn tables_of_workloads_are_written_as_csv_and_plots() {
    let docs = include_str!("../../docs/workloads.md");
    let text = format!("{STAR}workloads: [{{name: web, sizes: 2kB, load: 20%}}]\n");
    let dir = scenario(format!("{text}{VARIANTS}"));
    let args = ["x.yaml", "-q", "--csv", "tables", "--plots", "plots"];
    let (code, _, stderr) = sim(dir.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    for file in ["flows.csv", "slowdown.csv", "pfc.csv", "queues.csv"] {
        let table = fs::read_to_string(dir.path().join("tables/a").join(file)).unwrap();
        let header: Vec<&str> = table.lines().next().unwrap().split(',').collect();
        let row = docs.lines().find(|line| line.starts_with(&format!("| `{file}` |"))).unwrap();
        let named: Vec<&str> = row.split('`').skip(3).step_by(2).collect();
        assert_eq!(header, named, "{file}");
        assert!(
            table.lines().count() > 1 && table.lines().all(|line| line.split(',').count() == header.len()),
            "{table}"
        );
    }
    for plot in ["slowdown-web.svg", "pfc.svg", "queues.svg"] {
        let svg = fs::read_to_string(dir.path().join("plots/b-c-d").join(plot)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("seed 7"), "{plot}");
    }
}

#[test]
fn tables_of_workloads_are_refused_for_a_scenario_without_workloads() {
    let (code, _, stderr) = sim(scenario(STAR).path(), &["x.yaml", "-q", "--csv", "tables"]);
    let expected = "--csv: the scenario has no workloads, whose flows it writes; write `workloads`, or use --samples or \
                    --format csv";
    assert!(code == 2 && stderr.contains(expected), "{stderr}");
}

#[test]
fn plots_and_samples_are_written_to_the_given_paths() {
    let dir = scenario(STAR);
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "-q", "--plots", "new/dir", "--samples", "s.csv"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let svg = fs::read_to_string(dir.path().join("new/dir/throughput.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    let samples = fs::read_to_string(dir.path().join("s.csv")).unwrap();
    assert!(samples.starts_with("time_ns,switch,port,class,queue_bytes,") && samples.lines().count() > 100);

    fs::write(dir.path().join("x.yaml"), format!("{STAR}{VARIANTS}")).unwrap();
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "-q", "--plots", "plots", "--samples", "s.csv"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    for file in ["plots/a/throughput.svg", "plots/b-c-d/throughput.svg", "s-a.csv", "s-b-c-d.csv"] {
        assert!(dir.path().join(file).is_file(), "{file} is missing");
    }
}

#[test]
fn plots_of_similar_names_get_distinct_files() {
    let text = STAR
        .replace(
            "{name: p*, count: 3, speed: 10G}",
            "{name: p/1, speed: 10G}, {name: p_1, speed: 10G}, {name: p3, speed: 10G}",
        )
        .replace(
            "{name: h*, count: 3, at: tor.p*}",
            "{name: h/1, at: tor.p/1}, {name: h_1, at: tor.p_1}, {name: h3, at: tor.p3}",
        )
        .replace("[h1, h2]", "[h/1, h_1]");
    let dir = scenario(format!("{text}watch: [tor.p/1, tor.p_1]\ncolumns: [h/1-h3, h_1-h3]\n{VARIANTS}"));
    let (code, stdout, stderr) = sim(dir.path(), &["x.yaml", "-q", "--plots", "plots"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("h/1-h3"), "{stdout}");
    let files =
        ["variants-h-1-h3-Gb-s.svg", "variants-h-1-h3-Gb-s-2.svg", "a/tor.p_1-class3.svg", "a/tor.p_1-class3-2.svg"];
    for file in files {
        assert!(dir.path().join("plots").join(file).is_file(), "{file} is missing");
    }
}

/// The failure appears after all runs have ended.
#[test]
fn plot_write_failure_still_prints_the_table() {
    let dir = scenario(format!("{STAR}columns: [fairness]\n{VARIANTS}"));
    fs::create_dir_all(dir.path().join("plots/variants-fairness.svg")).unwrap();
    let (code, stdout, stderr) = sim(dir.path(), &["x.yaml", "-q", "--plots", "plots"]);
    assert_eq!(code, 1);
    assert_eq!(stderr, "error: file plots/variants-fairness.svg cannot be written: Is a directory\n");
    assert!(stdout.contains("fairness"), "{stdout}");
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let dir = scenario(STAR);
    let (code, stdout, stderr) = sim(dir.path(), &["x.yaml", "-q", "--plots", "x.yaml"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert_eq!(stderr, "error: directory x.yaml cannot be written: File exists\n");
    let reasons = [
        ("/dev/full", "No space left on device"),
        ("none/s.csv", "No such file or directory"),
        (".", "Is a directory"),
    ];
    for (path, reason) in reasons {
        let (code, _, stderr) = sim(dir.path(), &["x.yaml", "-q", "--samples", path]);
        assert_eq!((code, stderr), (1, format!("error: file {path} cannot be written: {reason}\n")));
    }
}

/// The reader closes the pipe early, as `| head -1` does.
#[test]
fn sim_exits_cleanly_when_reader_closes_pipe() {
    let dir = scenario(STAR);
    for format in ["table", "json", "csv"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        let command = command.args(["sim", "x.yaml", "-q", "--format", format]).current_dir(dir.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.stderr.is_empty() && output.status.success(), "{format}: {output:?}");
    }
}

#[test]
fn stdout_on_full_disk_ends_with_1() {
    let dir = scenario(STAR);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let output = command.args(["sim", "x.yaml", "-q"]).current_dir(dir.path()).stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("No space left on device"), "{stderr}");
}

#[test]
fn shortest_inputs_of_the_page_about_hpcc_run() {
    let page = include_str!("../../docs/hpcc.md");
    let (_, remaining) = page.split_once("```sh\ncat >topology.txt").expect("the block of docs/hpcc.md");
    let (block, _) = remaining.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_holdfast")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-ec", &format!("cat >topology.txt{block}")]).env("PATH", path).current_dir(dir.path());
    let output = shell.output().unwrap();
    let (shown, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && shown.contains("of 1,000 lossless frames lost"), "{shown}{stderr}");
    // 1 MB in 1000 packets of 1124 bytes on a wire of 100 Gbit/s take 89.9 us, and HPCC leaves 5 % free.
    let fct = fs::read_to_string(dir.path().join("fct.txt")).unwrap();
    let micros = fct.split_whitespace().nth(6).and_then(|ns| ns.parse::<f64>().ok()).unwrap() / 1000.0;
    assert!((89.9..120.0).contains(&micros), "{fct}");
}

/// Inputs of HPCC's simulator: three hosts send 1 MB each to a fourth.
fn inputs_of_hpcc() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    let links: String = (1..5).map(|host| format!("{host} 0 100Gbps 1000ns 0\n")).collect();
    write("t.txt", &format!("5 1 4\n0\n{links}"));
    let flows: String = (1..4).map(|host| format!("{host} 4 3 100 1000000 2\n")).collect();
    write("f.txt", &format!("3\n{flows}"));
    let files = "TOPOLOGY_FILE t.txt\nFLOW_FILE f.txt\nFCT_OUTPUT_FILE fct.txt\nPFC_OUTPUT_FILE pfc.txt\n";
    let control = "CC_MODE 7\nRATE_AI 50Mb/s\nHAS_WIN 0\nENABLE_QCN 0\nPACKET_PAYLOAD_SIZE 1000\n";
    write("c.txt", &format!("{files}{control}SIMULATOR_STOP_TIME 2.1\nBUFFER_SIZE 4\n"));
    dir
}

#[test]
fn mmu_gives_inputs_of_hpcc_its_rules_and_sizes() {
    let dir = inputs_of_hpcc();
    let run = |mmu: &[&str]| sim(dir.path(), &[&["--hpcc", "c.txt", "-q"], mmu].concat());
    let (code, own, stderr) = run(&["--mmu", "holdfast"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(!own.contains("decides as"), "{own}");
    let (code, all, stderr) = run(&[]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(run(&["--mmu", "hpcc"]).1, all, "the default");
    assert!(all.contains("not promised: s0 decides as HPCC's simulator (all rules); not checked: "), "{all}");
    assert!(all.contains("of 3,000 lossless frames lost") && all.contains("  36.56KiB"), "{all}");
    // Without its sizes the headroom is the one of a run without rules.
    let (code, rules_only, stderr) = run(&["--mmu-sizes", "holdfast"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(rules_only.contains("(all rules)") && !rules_only.contains("  36.56KiB"), "{rules_only}");
    let (_, one, _) = run(&["--mmu", "xon-own-departure"]);
    assert!(one.contains("not promised: s0 decides as HPCC's simulator (xon-own-departure)\n"), "{one}");
}

#[test]
fn mmu_without_inputs_of_hpcc_or_with_an_unknown_rule_is_refused() {
    let dir = scenario(STAR);
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "--mmu", "hpcc"]);
    assert!(
        code == 2 && stderr.starts_with("error: --mmu goes with --hpcc; ") && !stderr.contains("Usage"),
        "{stderr}"
    );
    let (code, _, stderr) = sim(dir.path(), &["x.yaml", "--mmu-sizes", "holdfast"]);
    assert!(code == 2 && stderr.starts_with("error: --mmu-sizes goes with --hpcc; "), "{stderr}");
    let (code, _, stderr) = sim(dir.path(), &["--hpcc", "c.txt", "--mmu", "holdfast", "--mmu-sizes", "hpcc"]);
    assert!(
        code == 2 && stderr.starts_with("error: --mmu-sizes hpcc goes with rules of HPCC's simulator; "),
        "{stderr}"
    );
    let (code, _, stderr) = sim(dir.path(), &["--hpcc", "c.txt", "x.yaml"]);
    let expected = "error: `--hpcc <CONFIG>` cannot be used with `[SCENARIO]`; remove one or the other\n";
    assert_eq!((code, stderr.as_str()), (2, expected));
    let (code, _, stderr) = sim(dir.path(), &["--hpcc", "c.txt", "--mmu", "xon"]);
    assert!(code == 2 && stderr.contains("`xon` is not a rule of HPCC's simulator"), "{stderr}");
}

#[test]
fn table_of_a_run_names_mechanisms_in_force_and_shows_the_pool_of_reverie_once() {
    let text = STAR.replace("preset: roce,", "preset: roce, classes: {3: {telemetry: hpcc, qcn: on}},");
    let plain = fine(STAR, &[]);
    assert!(!plain.contains("in force") && !plain.contains("same pool"), "{plain}");
    let table = fine(&text.replace("    poll:", "    mmu: reverie\n    poll:"), &[]);
    for line in [
        "\nin force at tor: mmu reverie: filtered limits, and one pool for lossless and lossy classes\n",
        "\nin force at tor: telemetry hpcc: notes in marked RoCE packets of queue 3\n",
        "\nin force at tor: QCN in queue 3: set point 25.39KiB, weight 2, sample 146.48KiB\n",
    ] {
        assert!(table.contains(line), "{line} is missing:\n{table}");
    }
    let row = table.lines().find(|line| line.starts_with("tor ")).unwrap_or_default();
    assert!(row.contains("  same pool   -  "), "{table}");
}
