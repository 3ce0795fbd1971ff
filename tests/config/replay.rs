//! `holdfast replay` as a user runs it: its output, and its refusals of bad traces, word for word.

use assert_cmd::Command;

use super::conf_dir;

const HEADER: &str = "time_ns,event,port,class,bytes,egress\n";

fn replay(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let output = command.arg("replay").args(args).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// One example for each headroom policy.
const EXAMPLES: [&str; 3] = ["replay-xoff", "replay-pool", "replay-dynamic"];

fn example(name: &str, format: &str) -> String {
    let file = |ending| conf_dir().join(format!("{name}.{ending}"));
    let (config, trace) = (file("yaml"), file("csv"));
    let args = ["--config", config.to_str().unwrap(), trace.to_str().unwrap(), "--format", format];
    let (code, stdout, stderr) = replay(&args, b"");
    assert_eq!((code, stderr.as_str()), (0, ""));
    stdout
}

/// Asserts that the trace is refused with `expected` after `<stdin>:`. The ports are p1 to p5 of the embedded
/// configuration.
#[track_caller]
fn refuse(trace: impl AsRef<[u8]>, expected: &str) -> String {
    let (code, stdout, stderr) = replay(&["-", "--format", "csv"], trace.as_ref());
    assert_eq!((code, stderr), (2, format!("error: <stdin>:{expected}\n")));
    stdout
}

#[track_caller]
fn refuse_event(event: &str, expected: &str) {
    refuse(format!("{HEADER}{event}\n"), expected);
}

#[test]
fn replay_of_xoff_example_prints_the_expected_decisions() {
    let expected = "\
time_ns,event,port,class,bytes,egress,ecn,result,reason,cells,reserve,port_reserve,shared,headroom,group,group_reserve,group_port_reserve,group_shared,threshold,xoff_level,group_headroom,group_xoff,port_reserve_used,port_shared,port_xoff_level,port_insurance,port_xoff,pool,pool_used,headroom_pool_used,queue,queue_cells,queue_limit,queue_bytes,marking,dropping,pause,posted_bytes
0,arrive,p1,3,1000,p2,ect0,reserve,,5,5,0,0,0,3,5,0,0,16,,0,false,0,,,,,lossless,0,,3,5,,1000,0.000000,,,0
1000,arrive,p1,3,1000,p2,ect0,reserve,,5,5,0,0,0,3,10,0,0,16,,0,false,0,,,,,lossless,0,,3,10,,2000,0.000000,,,0
2000,arrive,p1,3,1000,p2,ect0,shared,,5,0,0,5,0,3,10,0,5,16,,0,false,0,,,,,lossless,5,,3,15,,3000,0.033333,,,0
3000,arrive,p1,3,1000,p2,ect0,shared,,5,0,0,5,0,3,10,0,10,16,,0,false,0,,,,,lossless,10,,3,20,,4000,0.066666,,,0
4000,arrive,p1,3,1000,p2,ect0,shared,,5,0,0,5,0,3,10,0,15,16,,0,false,0,,,,,lossless,15,,3,25,,5000,0.099998,,,0
5000,arrive,p1,3,1000,p2,ect0,headroom,,5,0,0,0,5,3,10,0,15,16,,5,true,0,,,,,lossless,15,,3,30,,6000,0.133331,,XOFF p1:3,0
6000,arrive,p1,3,1000,p2,ect0,headroom,,5,0,0,0,5,3,10,0,15,16,,10,true,0,,,,,lossless,15,,3,35,,7000,0.166664,,,0
7000,arrive,p1,3,1000,p2,ect0,headroom,,5,0,0,0,5,3,10,0,15,16,,15,true,0,,,,,lossless,15,,3,40,,8000,1.000000,,,0
8000,arrive,p1,3,1000,p2,ect0,headroom,,5,0,0,0,5,3,10,0,15,16,,20,true,0,,,,,lossless,15,,3,45,,9000,1.000000,,,0
9000,arrive,p1,3,1000,p2,ect0,drop,headroom_full,5,0,0,0,0,3,10,0,15,16,,20,true,0,,,,,lossless,15,,3,45,,9000,1.000000,,,0
10000,arrive,p1,0,500,p2,ect0,shared,,3,0,0,3,0,0,0,0,3,456,,0,false,0,,,,,lossy,3,,0,3,54,500,,,,0
11000,depart,p1,3,1000,p2,ce,released,,5,0,0,0,5,3,10,0,15,16,,15,true,0,,,,,lossless,15,,3,40,,8000,1.000000,,,0
12000,depart,p1,3,1000,p2,ce,released,,5,0,0,0,5,3,10,0,15,16,,10,true,0,,,,,lossless,15,,3,35,,7000,1.000000,,,0
13000,depart,p1,3,1000,p2,ect0,released,,5,0,0,0,5,3,10,0,15,16,,5,true,0,,,,,lossless,15,,3,30,,6000,0.166664,,,0
14000,depart,p1,3,1000,p2,ect0,released,,5,0,0,0,5,3,10,0,15,16,,0,true,0,,,,,lossless,15,,3,25,,5000,0.133331,,,0
15000,depart,p1,3,1000,p2,ect0,released,,5,0,0,5,0,3,10,0,10,16,,0,true,0,,,,,lossless,10,,3,20,,4000,0.099998,,,0
16000,depart,p1,3,1000,p2,ect0,released,,5,0,0,5,0,3,10,0,5,16,,0,false,0,,,,,lossless,5,,3,15,,3000,0.066666,,XON p1:3,0
17000,depart,p1,3,1000,p2,ect0,released,,5,0,0,5,0,3,10,0,0,16,,0,false,0,,,,,lossless,0,,3,10,,2000,0.033333,,,0
18000,depart,p1,3,1000,p2,ect0,released,,5,5,0,0,0,3,5,0,0,16,,0,false,0,,,,,lossless,0,,3,5,,1000,0.000000,,,0
19000,depart,p1,3,1000,p2,ect0,released,,5,5,0,0,0,3,0,0,0,16,,0,false,0,,,,,lossless,0,,3,0,,0,0.000000,,,0
20000,depart,p1,0,500,p2,ect0,released,,3,0,0,3,0,0,0,0,0,456,,0,false,0,,,,,lossy,0,,0,0,57,0,,,,0
";
    assert_eq!(example("replay-xoff", "csv"), expected);
}

#[test]
fn rules_of_hpcc_are_named_and_documented() {
    let docs = include_str!("../../docs/mmu-rules.md");
    let file = |name: &str| conf_dir().join(name).to_str().unwrap().to_owned();
    let (config, trace) = (file("replay-hpcc.yaml"), file("replay-hpcc.csv"));
    let args = ["--config", &config, &trace, "--beside", "hpcc"];
    let (code, table, stderr) = replay(&args, b"");
    assert_eq!((code, stderr.as_str()), (0, ""));
    let shown =
        "$ holdfast replay --config conf/replay-hpcc.yaml --beside hpcc conf/replay-hpcc.csv\n".to_owned() + &table;
    let golden = std::fs::read_to_string(conf_dir().join("replay-hpcc.txt")).unwrap();
    assert!(golden == shown, "conf/replay-hpcc.txt has not what the program prints:\n{shown}");
    assert!(docs.contains("(../conf/replay-hpcc.txt)") && docs.contains("--beside hpcc conf/replay-hpcc.csv\n"));
    let rules =
        ["xoff-at-threshold", "xon-own-departure", "xon-empty-share", "shared-beside-headroom", "reserve-refused"];
    let (_, csv, _) = replay(&[&args[..], &["--format", "csv"]].concat(), b"");
    assert!(csv.lines().next().is_some_and(|head| head.ends_with(",posted_bytes,hpcc")), "{csv}");
    for rule in rules {
        assert!(docs.contains(&format!("\n| `{rule}` |")), "{rule}");
        assert!(csv.contains(&format!(",{rule}\n")), "{rule}: {csv}");
    }
    let (_, json, _) = replay(&[&args[..], &["--format", "json"]].concat(), b"");
    assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{json}");
    assert!(json.contains(r#""hpcc":["xoff-at-threshold"]"#), "{json}");
}

#[test]
fn comparison_with_hpcc_refuses_other_headroom_policies() {
    let file = |name: &str| conf_dir().join(name).to_str().unwrap().to_owned();
    let args = ["--config", &file("replay-dynamic.yaml"), &file("replay-dynamic.csv"), "--beside", "hpcc"];
    let (code, stdout, stderr) = replay(&args, b"");
    assert_eq!((code, stdout.as_str()), (2, ""));
    let expected = "error: `--beside hpcc` cannot compare this configuration: its groups have headroom of their own; write \
                    `buffer: {headroom: independent}`\n";
    assert_eq!(stderr, expected);
}

/// The outputs of the examples are golden files beside their traces, which the page links.
#[test]
fn replay_documentation_matches_printed_output() {
    let docs = include_str!("../../docs/replay.md");
    for name in EXAMPLES {
        let shown = format!("$ holdfast replay --config conf/{name}.yaml conf/{name}.csv\n{}", example(name, "table"));
        let golden = std::fs::read_to_string(conf_dir().join(format!("{name}.txt"))).unwrap_or_default();
        let is_linked = docs.contains(&format!("(../conf/{name}.txt)"));
        assert!(is_linked && golden == shown, "conf/{name}.txt has not what the program prints:\n{shown}");
    }
    let json = example("replay-dynamic", "json");
    let line = json.lines().find(|line| line.contains("\"port_xoff\":true")).unwrap();
    assert!(docs.contains(line), "docs/replay.md has not this line of JSON:\n{line}");
}

#[test]
fn the_documentation_names_every_column_in_order() {
    let docs = include_str!("../../docs/replay.md");
    let table = docs.split_once("| column |").unwrap().1.split_once("\n\n").unwrap().0;
    let first = table.lines().skip(2).flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    let printed = example("replay-xoff", "csv");
    assert_eq!(first.collect::<Vec<_>>().join(","), printed.lines().next().unwrap());
}

#[test]
fn json_lines_say_the_same_as_csv() {
    for name in EXAMPLES {
        let (csv, json) = (example(name, "csv"), example(name, "json"));
        let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert_eq!(json.lines().count(), csv.lines().count() - 1);
        for (row, object) in csv.lines().skip(1).zip(json.lines()) {
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            assert_eq!(object.as_object().unwrap().len(), names.len());
            for (name, cell) in names.iter().zip(row.split(',')) {
                assert_eq!(as_csv(name, &object[name]), cell, "{name} in {row}");
            }
        }
    }
}

fn as_csv(name: &str, value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(changes) => {
            let word = |change: &Value, key: &str| change[key].as_str().unwrap().to_owned();
            let said = |change| format!("{} {}:{}", word(change, "state"), word(change, "port"), change["group"]);
            changes.iter().map(said).collect::<Vec<_>>().join(" ")
        }
        value if ["marking", "dropping"].contains(&name) => format!("{:.6}", value.as_f64().unwrap()),
        value => value.to_string(),
    }
}

#[test]
fn json_lines_trace_gives_the_decisions_of_csv_trace() {
    let csv = format!("{HEADER}5,arrive,p1,3,1078,p5\r\n\n# a remark\n6,depart,p1,3,1078,p5\n");
    let json = "{\"time_ns\": 5, \"event\": \"arrive\", \"port\": \"p1\", \"class\": 3, \"bytes\": 1078, \"egress\": \"p5\"}\n\
                {\"time_ns\": 6, \"event\": \"depart\", \"egress\": \"p5\"}";
    let (by_csv, by_json) = (replay(&["-"], csv.as_bytes()), replay(&["-"], json.as_bytes()));
    assert_eq!(by_csv, by_json);
    assert!(by_csv.1.ends_with("\nwhole trace: 1 admitted, 0 dropped, 1 departed; 0 XOFF, 0 XON\n"), "{}", by_csv.1);
}

#[test]
fn trace_without_header_and_unreadable_trace_are_refused() {
    let expected = "1:1: the header is missing; write `time_ns,event,port,class,bytes,egress` first, optionally with \
                    `,ecn`, or one JSON object per line";
    assert_eq!(refuse("", expected), "");
    assert_eq!(refuse("1,arrive,p1,3,100,p2\n", expected), "");
    let (code, stdout, stderr) = replay(&["/nonexistent.csv"], b"");
    let expected =
        "error: /nonexistent.csv: cannot be read: No such file or directory; check the path and its permissions\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", expected));
    let directory = conf_dir();
    let (code, stdout, stderr) = replay(&[directory.to_str().unwrap()], b"");
    let expected = format!("error: {}:1:1: cannot be read: Is a directory; check the file\n", directory.display());
    assert_eq!((code, stdout.as_str(), stderr), (2, "", expected));
}

#[test]
fn spreadsheet_csv_with_bom_and_spaces_is_accepted() {
    let trace = format!("\u{feff}{}\r\n1, arrive , p1 ,3,100,p2\r\n", HEADER.trim_end());
    let (code, stdout, stderr) = replay(&["-", "--format", "csv"], trace.as_bytes());
    assert_eq!((code, stdout.lines().count(), stderr.as_str()), (0, 2, ""));
}

#[test]
fn wrong_fields_have_line_column_and_remedy() {
    refuse_event("1,arrive,p9,3,100,p2", "2:10: there is no port `p9`; write one of p1, p2, p3, p4, p5");
    refuse_event("1,arrive,p1,8,100,p2", "2:13: `8` is not a class; write from 0 to 7");
    refuse_event("1,go,p1,3,100,p2", "2:3: `go` is not an event; write arrive or depart");
    refuse_event("1,arrive,p1,3,,p2", "2:15: `bytes` is blank; write a value");
    let numbers = "is not a number for time_ns; write a whole number up to 18446744073709551615";
    refuse_event("+1,arrive,p1,3,100,p2", &format!("2:1: `+1` {numbers}"));
    refuse_event("18446744073709551616,depart,,,,p2", &format!("2:1: `18446744073709551616` {numbers}"));
    refuse_event("1,arrive,,3,100,p2", "2:10: `port` is blank; write a value");
    refuse_event("1,arrive,p1,,100,p2", "2:13: `class` is blank; write a value");
    refuse_event("1,arrive,p1,3,100, ", "2:20: `egress` is blank; write a value");
    refuse_event("1,,p1,3,100,p2", "2:3: `event` is blank; write a value");
    refuse_event(",arrive,p1,3,100,p2", "2:1: `time_ns` is blank; write a value");
    refuse_event("1,depart,,3,,", "2:14: `egress` is blank; write a value");
    refuse_event("1,arrive,p1,-1,100,p2", "2:13: `-1` is not a class; write from 0 to 7");
    for bytes in ["65536", "1e3", "64.5", "-1"] {
        let numbers = "is not a number for bytes; write a whole number up to 65535";
        refuse_event(&format!("1,arrive,p1,3,{bytes},p2"), &format!("2:15: `{bytes}` {numbers}"));
    }
    let back = "2:19: p1 is also the ingress port, and frames never leave by it; write another port";
    refuse_event("1,arrive,p1,3,100,p1", back);
    refuse_event("\n# a remark\n1,go,p1,3,100,p2", "4:3: `go` is not an event; write arrive or depart");
    let zero = "2:15: a frame cannot have 0 bytes; write its length without the frame check sequence";
    refuse_event("1,arrive,p1,3,0,p2", zero);
    let long = "2:15: 1523 bytes are too many: p1 accepts 1522 (its mtu 1500 + 22); write from 1 to 1522";
    refuse_event("1,arrive,p1,3,1523,p2", long);
    let columns = "write `time_ns,event,port,class,bytes,egress`";
    refuse_event("1,arrive,p1,3,100", &format!("2:18: column `egress` is missing; {columns}"));
    refuse_event("1,arrive,p1,3,100,p2,x", &format!("2:22: more than 6 columns; {columns}"));
    refuse(b"time_ns,event,port,class,bytes,egress\n1,arrive,p\xff", "2:11: not UTF-8 text; save the file as UTF-8");
    let long = format!("{HEADER}{}", "1".repeat(5000));
    refuse(long, "2:4097: the line is longer than 4096 bytes; write one event per line");
}

#[test]
fn wrong_codepoints_have_line_column_and_remedy() {
    let header = "time_ns,event,port,class,bytes,egress,ecn";
    let refuse = |event: &str, expected: &str| refuse(format!("{header}\n{event}\n"), expected);
    let remedy = "is not an ECN codepoint; write ect0, ect1, ce or not-ect, or leave it blank";
    refuse("1,arrive,p1,3,100,p2,ECT", &format!("2:22: `ECT` {remedy}"));
    refuse("1,arrive,p1,3,100,p2", &format!("2:21: column `ecn` is missing; write `{header}`"));
    refuse("1,arrive,p1,3,100,p2,ce,x", &format!("2:25: more than 7 columns; write `{header}`"));
    let other = "the next frame to leave p2 has ecn ect0, not ce; write ect0 or leave it blank";
    refuse("1,arrive,p1,3,100,p2,ect\n2,depart,,,,p2,ce", &format!("3:16: {other}"));
}

#[test]
fn wrong_json_has_line_column_and_remedy() {
    let example = "write e.g. {\"time_ns\": 0, \"event\": \"depart\", \"class\": 3, \"egress\": \"p2\"}";
    refuse("{\"time_ns\":1,\n", &format!("1:13: not an event: EOF while parsing a value; {example}"));
    let keys = "`time_ns`, `event`, `port`, `class`, `bytes`, `egress`, `ecn`";
    let unknown = format!("1:18: not an event: unknown field `tme`, expected one of {keys}; {example}");
    refuse("{\"time_ns\":1,\"tme\":2}", &unknown);
    refuse("{\"time_ns\":1,\"time_ns\":2}", &format!("1:22: not an event: duplicate field `time_ns`; {example}"));
    refuse("{\"time_ns\":1}", "1:1: `event` is blank; write a value");
    let fraction = "1:2: `1.5` is not a number for time_ns; write a whole number up to 18446744073709551615";
    refuse("{\"time_ns\":1.5,\"event\":\"depart\",\"egress\":\"p2\"}", fraction);
    refuse("{\"time_ns\":1} {}", &format!("1:15: not an event: trailing characters; {example}"));
    let list = "{\"time_ns\":1,\"event\":\"depart\",\"egress\":[]}";
    refuse(list, "1:31: `egress` is neither a text nor a number; write one of the two");
    let port = "{\"time_ns\":1,\"event\":\"depart\",\"egress\":\"p\\n\\u001b\"}";
    refuse(port, "1:31: there is no port `p\\n\\u{1b}`; write one of p1, p2, p3, p4, p5");
}

#[test]
fn decisions_before_a_trace_error_are_printed_without_summary() {
    let before = format!("{HEADER}7,arrive,p1,3,100,p2\n");
    let stdout =
        refuse(format!("{before}6,depart,,,,p2\n"), "3:1: time goes back from 7 to 6; sort the trace by time_ns");
    assert_eq!(stdout.lines().count(), 2);
    let nothing = "no frame waits to leave p3 in class 3; write at most one departure for each admitted arrival";
    refuse(format!("{before}7,depart,,3,,p3\n"), &format!("3:14: {nothing}"));
    let other = "the next frame to leave p2 has port p1, not p4; write p1 or leave it blank";
    refuse(format!("{before}7,depart,p4,3,,p2\n"), &format!("3:10: {other}"));
    let other = "the next frame to leave p2 has bytes 100, not 99; write 100 or leave it blank";
    refuse(format!("{before}7,depart,,,99,p2\n"), &format!("3:12: {other}"));
    let (code, stdout, _) = replay(&["-"], format!("{before}7,go").as_bytes());
    assert!(code == 2 && stdout.lines().count() == 2 && !stdout.contains("whole trace"), "{stdout}");
}

#[test]
fn replay_exits_cleanly_when_reader_closes_pipe() {
    crate::commands::close_the_pipe(&["replay", conf_dir().join("replay-xoff.csv").to_str().unwrap()]);
}
