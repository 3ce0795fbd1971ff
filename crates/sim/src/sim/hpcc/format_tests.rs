//! Every key and each of the three files with words too many, words that are missing, and a byte order mark.

use super::tests::{CONFIG, FLOWS, NO_RULES, TOPOLOGY, error, inputs};
use super::*;

/// A value of each key that has an effect.
const VALUES: &[(&str, &str)] = &[
    ("ENABLE_QCN", "1"),
    ("PACKET_PAYLOAD_SIZE", "1000"),
    ("TOPOLOGY_FILE", "t"),
    ("FLOW_FILE", "f"),
    ("FCT_OUTPUT_FILE", "o"),
    ("PFC_OUTPUT_FILE", "o"),
    ("QLEN_MON_FILE", "o"),
    ("QLEN_MON_START", "2000000000"),
    ("QLEN_MON_END", "2000000100"),
    ("SIMULATOR_STOP_TIME", "3"),
    ("CC_MODE", "3"),
    ("ALPHA_RESUME_INTERVAL", "1"),
    ("RATE_DECREASE_INTERVAL", "1"),
    ("CLAMP_TARGET_RATE", "0"),
    ("RP_TIMER", "1"),
    ("EWMA_GAIN", "0.5"),
    ("FAST_RECOVERY_TIMES", "1"),
    ("RATE_AI", "50Mb/s"),
    ("RATE_HAI", "50Mb/s"),
    ("DCTCP_RATE_AI", "1000Mb/s"),
    ("MIN_RATE", "50Mb/s"),
    ("ERROR_RATE_PER_LINK", "0.0"),
    ("L2_ACK_INTERVAL", "1"),
    ("L2_BACK_TO_ZERO", "0"),
    ("HAS_WIN", "1"),
    ("GLOBAL_T", "1"),
    ("VAR_WIN", "1"),
    ("U_TARGET", "0.95"),
    ("MI_THRESH", "0"),
    ("ACK_HIGH_PRIO", "0"),
    ("LINK_DOWN", "1 1 0"),
    ("KMIN_MAP", "1 100000000000 400"),
    ("KMAX_MAP", "2 100000000000 1600 400000000000 6400"),
    ("PMAX_MAP", "1 100000000000 0.2"),
    ("BUFFER_SIZE", "32"),
];

#[test]
fn each_key_refuses_words_beyond_its_own_and_words_that_are_missing() {
    let effective: Vec<&str> = VALUES.iter().map(|(key, _)| *key).collect();
    assert_eq!(effective, config::KEYS);
    let without_effect = config::IGNORED.iter().map(|(key, _)| (*key, "1"));
    let read = |line: &str| {
        let (before, after) = CONFIG.split_once("CC_MODE 3\n").unwrap();
        config::parse("c.txt", &format!("{line}\n{before}{after}"))
    };
    for (key, value) in VALUES.iter().copied().chain(without_effect) {
        let line = format!("{key} {value}");
        read(&line).unwrap_or_else(|errors| panic!("{line}: {errors}"));
        read(&format!("{line} {{explained}}")).unwrap();
        read(&format!("{line} # explained")).unwrap();
        for extra in ["1", "400000000000 6400"] {
            let word = extra.split(' ').next().unwrap();
            let expected = format!("c.txt:1:{}: `{word}` is one word too many for {key}", line.len() + 2);
            let message = read(&format!("{line} {extra}")).unwrap_err().to_string();
            assert!(message.starts_with(&expected), "{line} {extra}: {message}");
        }
        let words: Vec<&str> = line.split(' ').collect();
        for count in 1..words.len() {
            let message = read(&words[..count].join(" ")).unwrap_err().to_string();
            assert!(message.contains("c.txt:1:") && message.contains("is missing"), "{line}, {count}: {message}");
        }
    }
}

#[test]
fn key_that_is_written_twice_is_named_and_a_rate_is_refused() {
    let (_, warnings) = config::parse("c.txt", &format!("{CONFIG}CC_MODE 1\n")).unwrap();
    assert_eq!(warnings[0].to_string(), "c.txt:18:1: CC_MODE is written again; this line replaces the earlier one");
    let config = CONFIG.replace("KMAX_MAP 2 100000000000", "KMAX_MAP 2 400000000000");
    assert!(error(&config, TOPOLOGY, FLOWS).contains("`400000000000` is there twice"));
}

/// Each map lacks each rate in turn, whichever ports are the slowest.
#[test]
fn each_rate_of_the_topology_needs_an_entry_in_each_map() {
    for (map, all) in [("KMIN_MAP", ["400", "1600"]), ("KMAX_MAP", ["1600", "6400"]), ("PMAX_MAP", ["0.2", "0.2"])] {
        let rates = ["100000000000", "400000000000"];
        let whole = format!("{map} 2 {} {} {} {}", rates[0], all[0], rates[1], all[1]);
        assert!(CONFIG.contains(&whole));
        for missing in 0..2 {
            let config = CONFIG.replace(&whole, &format!("{map} 1 {} {}", rates[1 - missing], all[1 - missing]));
            let message = error(&config, TOPOLOGY, FLOWS);
            assert!(message.contains(&format!("there are ports of {} bit/s", rates[missing])), "{map}: {message}");
        }
    }
}

#[test]
fn byte_order_mark_of_each_file_is_skipped() {
    let marked = |text: &str| format!("\u{feff}{text}");
    let read = |config: &str, topology: &str, flows: &str| {
        inputs(config, topology, flows).unwrap().prepare(None, NO_RULES).unwrap().scenario
    };
    let plain = read(CONFIG, TOPOLOGY, FLOWS);
    for (config, topology, flows) in [
        (marked(CONFIG), TOPOLOGY.to_owned(), FLOWS.to_owned()),
        (CONFIG.to_owned(), marked(TOPOLOGY), FLOWS.to_owned()),
        (CONFIG.to_owned(), TOPOLOGY.to_owned(), marked(FLOWS)),
    ] {
        let scenario = read(&config, &topology, &flows);
        assert_eq!((scenario.flows.len(), scenario.links.len()), (plain.flows.len(), plain.links.len()));
    }
}

#[test]
fn lines_of_lists_with_other_words_name_the_format() {
    let topologies = [
        (TOPOLOGY.replace("7 3 6", "7 8 0 3 6 A100"), "t.txt:1:1: ", "`nodes switches links`"),
        (TOPOLOGY.replace("7 3 6", "7 3"), "t.txt:1:1: ", "`nodes switches links`"),
        (TOPOLOGY.replace("0 4 6\n", "0 4 6 5\n"), "t.txt:2:7: ", "`src dst rate delay loss`"),
        (TOPOLOGY.replace("0 4 6\n", "0 4\n"), "t.txt:3:3: ", "`src dst rate delay loss`"),
        (TOPOLOGY.replace("0 4 6\n", "0 4 4\n"), "t.txt:2:5: ", "switch 4 is listed twice"),
        (TOPOLOGY.replace("1us 0\n6", "1us\n6"), "t.txt:7:1: ", "`src dst rate delay loss`"),
        (TOPOLOGY.replace("1us 0\n6", "1us 0 0\n6"), "t.txt:7:1: ", "`src dst rate delay loss`"),
    ];
    for (topology, place, format) in topologies {
        let message = error(CONFIG, &topology, FLOWS);
        assert!(message.starts_with(place) && message.contains(format), "{topology}: {message}");
    }
    for (flows, place) in [
        ("1 1\n1 3 3 100 5000 2\n", "f.txt:1:1: "),
        ("2\n1 3 3 100 5000\n2 5 3 101 2500 2\n", "f.txt:2:1: "),
        ("1\n1 3 3 100 5000 2 7\n", "f.txt:2:1: "),
    ] {
        let message = error(CONFIG, TOPOLOGY, flows);
        assert!(message.starts_with(place) && message.contains("; write `"), "{flows}: {message}");
    }
}

#[test]
fn links_beyond_their_number_are_named() {
    let (_, warning) = topology::parse("t.txt", &format!("{TOPOLOGY}2 6 100Gbps 1us 0\n")).unwrap();
    let expected = "t.txt:9:1: the first line states 6 links; this line and those after it have no effect";
    assert_eq!(warning.map(|warning| warning.to_string()).as_deref(), Some(expected));
}

#[test]
fn times_outside_of_the_run_are_named() {
    let warnings = |lines: &str| {
        let config = format!("{CONFIG}{lines}");
        let prepared = inputs(&config, TOPOLOGY, FLOWS).unwrap().prepare(None, NO_RULES).unwrap();
        prepared.scenario.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let window = |start: u64, end: u64| format!("QLEN_MON_FILE q\nQLEN_MON_START {start}\nQLEN_MON_END {end}\n");
    // The run lasts from 1.99999 s to 2.1 s.
    assert!(warnings(&window(5_000_000_000, 6_000_000_000)).contains("there are no samples"));
    assert!(warnings(&window(2_000_000_000, 6_000_000_000)).contains("samples end there"));
    assert!(warnings(&window(0, 1_000_000_000)).contains("all queues are empty"));
    assert!(!warnings(&window(2_000_000_000, 2_100_000_000)).contains("QLEN_MON"));
    assert!(warnings("LINK_DOWN 200000 1 0\n").contains("it has no effect"));
    assert!(!warnings("LINK_DOWN 10 1 0\n").contains("LINK_DOWN"));
    let error = |lines: &str| error(&format!("{CONFIG}{lines}"), TOPOLOGY, FLOWS);
    assert!(error(&window(2_000_000_001, 2_000_000_000)).contains("is after QLEN_MON_END"));
    assert!(error("LINK_DOWN 10 1 2\n").contains("which no link joins"));
}
