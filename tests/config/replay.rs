//! `holdfast replay` as a user meets it: what it prints, and how it refuses a bad trace, word for word.

use assert_cmd::Command;

use super::conf_dir;

const HEADER: &str = "time_ns,event,port,class,bytes,egress\n";

fn replay(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let output = command.arg("replay").args(args).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn example(format: &str) -> String {
    let (config, trace) = (conf_dir().join("replay-xoff.yaml"), conf_dir().join("replay-xoff.csv"));
    let args = ["--config", config.to_str().unwrap(), trace.to_str().unwrap(), "--format", format];
    let (code, stdout, stderr) = replay(&args, b"");
    assert_eq!((code, stderr.as_str()), (0, ""));
    stdout
}

/// Refused with `expected` after `<stdin>:`, by the ports p1 to p5 of the embedded configuration.
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
fn the_example_goes_through_reserve_shared_headroom_drop_and_back() {
    let expected = "\
time_ns,event,port,class,bytes,egress,result,reason,cells,threshold,group,group_used,group_headroom,pool,pool_used,queue_bytes,marking,pause
0,arrive,p1,3,1000,p2,reserve,,5,16,3,5,0,lossless,0,1000,0.000000,
1000,arrive,p1,3,1000,p2,reserve,,5,16,3,10,0,lossless,0,2000,0.000000,
2000,arrive,p1,3,1000,p2,shared,,5,16,3,15,0,lossless,5,3000,0.033333,
3000,arrive,p1,3,1000,p2,shared,,5,16,3,20,0,lossless,10,4000,0.066666,
4000,arrive,p1,3,1000,p2,shared,,5,16,3,25,0,lossless,15,5000,0.099998,
5000,arrive,p1,3,1000,p2,headroom,,5,16,3,25,5,lossless,15,6000,0.133331,XOFF p1:3
6000,arrive,p1,3,1000,p2,headroom,,5,16,3,25,10,lossless,15,7000,0.166664,
7000,arrive,p1,3,1000,p2,headroom,,5,16,3,25,15,lossless,15,8000,1.000000,
8000,arrive,p1,3,1000,p2,headroom,,5,16,3,25,20,lossless,15,9000,1.000000,
9000,arrive,p1,3,1000,p2,drop,headroom_full,5,16,3,25,20,lossless,15,9000,1.000000,
10000,arrive,p1,0,500,p2,shared,,3,456,0,3,0,lossy,3,500,,
11000,depart,p1,3,1000,p2,released,,5,16,3,25,15,lossless,15,8000,1.000000,
12000,depart,p1,3,1000,p2,released,,5,16,3,25,10,lossless,15,7000,1.000000,
13000,depart,p1,3,1000,p2,released,,5,16,3,25,5,lossless,15,6000,0.166664,
14000,depart,p1,3,1000,p2,released,,5,16,3,25,0,lossless,15,5000,0.133331,
15000,depart,p1,3,1000,p2,released,,5,16,3,20,0,lossless,10,4000,0.099998,
16000,depart,p1,3,1000,p2,released,,5,16,3,15,0,lossless,5,3000,0.066666,XON p1:3
17000,depart,p1,3,1000,p2,released,,5,16,3,10,0,lossless,0,2000,0.033333,
18000,depart,p1,3,1000,p2,released,,5,16,3,5,0,lossless,0,1000,0.000000,
19000,depart,p1,3,1000,p2,released,,5,16,3,0,0,lossless,0,0,0.000000,
20000,depart,p1,0,500,p2,released,,3,456,0,0,0,lossy,0,0,,
";
    assert_eq!(example("csv"), expected);
}

#[test]
fn the_documentation_shows_what_is_printed() {
    let docs = include_str!("../../docs/replay.md");
    assert!(docs.contains(&example("table")), "docs/replay.md is not what the program prints");
}

#[test]
fn json_lines_say_the_same_as_csv() {
    let (csv, json) = (example("csv"), example("json"));
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(json.lines().count(), csv.lines().count() - 1);
    for (row, object) in csv.lines().skip(1).zip(json.lines()) {
        let object: serde_json::Value = serde_json::from_str(object).unwrap();
        assert_eq!(object.as_object().unwrap().len(), names.len());
        for (name, cell) in names.iter().zip(row.split(',')) {
            let said = match &object[name] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Array(changes) => changes.iter().fold(String::new(), |text, change| {
                    let word = |key: &str| change[key].as_str().unwrap().to_owned();
                    format!("{text}{} {}:{}", word("state"), word("port"), change["group"])
                }),
                value if *name == "marking" => format!("{:.6}", value.as_f64().unwrap()),
                value => value.to_string(),
            };
            assert_eq!(said, cell, "{name} in {row}");
        }
    }
}

#[test]
fn a_trace_of_json_lines_is_decided_as_one_of_csv() {
    let csv = format!("{HEADER}5,arrive,p1,3,1078,p5\r\n\n# a remark\n6,depart,p1,3,1078,p5\n");
    let json = "{\"time_ns\": 5, \"event\": \"arrive\", \"port\": \"p1\", \"class\": 3, \"bytes\": 1078, \"egress\": \"p5\"}\n\
                {\"time_ns\": 6, \"event\": \"depart\", \"egress\": \"p5\"}";
    let (by_csv, by_json) = (replay(&["-"], csv.as_bytes()), replay(&["-"], json.as_bytes()));
    assert_eq!(by_csv, by_json);
    assert!(by_csv.1.ends_with("\nwhole trace: 1 admitted, 0 dropped, 1 departed; 0 XOFF, 0 XON\n"), "{}", by_csv.1);
}

#[test]
fn a_trace_without_a_right_beginning() {
    let expected =
        "1:1: the header is missing; write `time_ns,event,port,class,bytes,egress` first, or one JSON object a line";
    assert_eq!(refuse("", expected), "");
    assert_eq!(refuse("1,arrive,p1,3,100,p2\n", expected), "");
    let (code, stdout, stderr) = replay(&["/nonexistent.csv"], b"");
    let expected =
        "error: /nonexistent.csv: cannot be read: No such file or directory; check the path and its permissions\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", expected));
}

#[test]
fn wrong_fields_have_line_column_and_remedy() {
    refuse_event("1,arrive,p9,3,100,p2", "2:10: there is no port `p9`; write one of p1, p2, p3, p4, p5");
    refuse_event("1,arrive,p1,8,100,p2", "2:13: `8` is not a class; write from 0 to 7");
    refuse_event("1,go,p1,3,100,p2", "2:3: `go` is no event; write arrive or depart");
    refuse_event("1,arrive,p1,3,,p2", "2:15: `bytes` is blank; write it");
    let numbers = "is not a number for time_ns; write a whole number up to 18446744073709551615";
    refuse_event("+1,arrive,p1,3,100,p2", &format!("2:1: `+1` {numbers}"));
    refuse_event("18446744073709551616,depart,,,,p2", &format!("2:1: `18446744073709551616` {numbers}"));
    let zero = "2:15: a frame of 0 bytes; write its length without the check sequence";
    refuse_event("1,arrive,p1,3,0,p2", zero);
    let long = "2:15: 1523 bytes are too many: p1 takes 1522 (its mtu 1500 + 22); write from 1 to 1522";
    refuse_event("1,arrive,p1,3,1523,p2", long);
    let columns = "write `time_ns,event,port,class,bytes,egress`";
    refuse_event("1,arrive,p1,3,100", &format!("2:18: column `egress` is missing; {columns}"));
    refuse_event("1,arrive,p1,3,100,p2,x", &format!("2:22: more than 6 columns; {columns}"));
    refuse(b"time_ns,event,port,class,bytes,egress\n1,arrive,p\xff", "2:11: not UTF-8 text; save the file as UTF-8");
    let long = format!("{HEADER}{}", "1".repeat(5000));
    refuse(long, "2:4097: a line of more than 4096 bytes; write one event a line");
}

#[test]
fn wrong_json_has_line_column_and_remedy() {
    let example = "write e.g. {\"time_ns\": 0, \"event\": \"depart\", \"class\": 3, \"egress\": \"p2\"}";
    refuse("{\"time_ns\":1,\n", &format!("1:13: not an event: EOF while parsing a value; {example}"));
    let list = "{\"time_ns\":1,\"event\":\"depart\",\"egress\":[]}";
    refuse(list, "1:31: `egress` is neither a text nor a number; write one of the two");
    let port = "{\"time_ns\":1,\"event\":\"depart\",\"egress\":\"p\\n\\u001b\"}";
    refuse(port, "1:31: there is no port `p\\n\\u{1b}`; write one of p1, p2, p3, p4, p5");
}

#[test]
fn what_was_decided_before_a_fault_is_printed_and_not_called_whole() {
    let before = format!("{HEADER}7,arrive,p1,3,100,p2\n");
    let stdout =
        refuse(format!("{before}6,depart,,,,p2\n"), "3:1: time goes back from 7 to 6; sort the trace by time_ns");
    assert_eq!(stdout.lines().count(), 2);
    let nothing = "nothing waits to leave p3 in class 3; write a departure for each admitted arrival at most";
    refuse(format!("{before}7,depart,,3,,p3\n"), &format!("3:14: {nothing}"));
    let other = "the next frame to leave p2 has port p1, not p4; write p1 or leave it blank";
    refuse(format!("{before}7,depart,p4,3,,p2\n"), &format!("3:10: {other}"));
    let other = "the next frame to leave p2 has bytes 100, not 99; write 100 or leave it blank";
    refuse(format!("{before}7,depart,,,99,p2\n"), &format!("3:12: {other}"));
    let (code, stdout, _) = replay(&["-"], format!("{before}7,go").as_bytes());
    assert!(code == 2 && stdout.lines().count() == 2 && !stdout.contains("whole trace"), "{stdout}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    crate::commands::close_the_pipe(&["replay", conf_dir().join("replay-xoff.csv").to_str().unwrap()]);
}
