//! Checks table.txt, the output of `holdfast headroom --prove`, and docs/headroom-proof.md. Each row of the table is
//! checked by its worst case, by the whole search, and by the slack of each term. The page has some of its rows. The
//! page's blocks are checked by the commands that they show.

use std::path::Path;

use assert_cmd::Command;
use holdfast::sim::headroom::adversary::all;
use holdfast::sim::headroom::{Adversary, Link, Peer, Proof, Reverse, Sizes, Term, links, prove, replay, terms};
use holdfast::units::{Cells, Nanos};

/// Output of `holdfast headroom --prove`.
const TABLE: &str = include_str!("table.txt");
/// The command of the page whose rows the table has too.
const OF_PAGE: &str = "headroom --prove --cable 5m --mtu 1500";

/// A row of the table.
struct Row {
    link: Link,
    eta: Cells,
    smallest: Cells,
    worst: String,
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/headroom-proof.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the output of `command` as the document shows it.
fn block(document: &str, command: &str) -> String {
    let start = format!("```\n$ {command}\n");
    let at = document.find(&start).unwrap_or_else(|| panic!("`{command}` is not in the document"));
    let block = &document[at + start.len()..];
    block[..block.find("```").unwrap()].to_owned()
}

fn rows() -> Vec<Row> {
    let lines: Vec<Vec<String>> = TABLE
        .lines()
        .skip(3)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect();
    let of_link = |link: Link| {
        let key = [link.rate.to_string(), link.cable.to_string(), link.mtu.to_string()];
        let line = lines.iter().find(|line| line[..3] == key).unwrap_or_else(|| panic!("no row for {key:?}"));
        let cells = |column: usize| Cells(line[column].parse().unwrap());
        Row { link, eta: cells(3), smallest: cells(4), worst: line.last().unwrap().clone() }
    };
    let rows: Vec<Row> = links().map(of_link).collect();
    assert_eq!((rows.len(), lines.len()), (50, 50));
    rows
}

#[test]
fn worst_case_is_lossless_with_eta_and_loses_below_the_smallest() {
    for Row { link, eta, smallest, worst } in rows() {
        assert_eq!(link.formula().cells, eta, "{link:?}");
        let adversaries = all(&link);
        let adversary = adversaries.iter().find(|adversary| adversary.to_string() == worst);
        let adversary = adversary.unwrap_or_else(|| panic!("{link:?}: there is no `{worst}`"));
        let run = |eta| replay(&link, adversary, eta).map(|run| (run.used, run.lost > 0));
        assert_eq!(run(eta), Some((smallest, false)), "{link:?}");
        assert_eq!(run(smallest), Some((smallest, false)), "{link:?}");
        assert!(run(Cells(smallest.0 - 1)).is_some_and(|(_, loses)| loses), "{link:?}");
    }
}

/// Runs the whole search at one speed. Each speed has its own test, so they run in parallel.
fn search(gigabits: u64) {
    let rows: Vec<Row> = rows().into_iter().filter(|row| row.link.rate.0 == gigabits * 1_000_000_000).collect();
    assert_eq!(rows.len(), 10);
    for Row { link, smallest, worst, .. } in rows {
        let proof = prove(&link);
        assert_eq!((proof.demand, proof.worst.to_string()), (smallest, worst), "{link:?}");
    }
}

#[test]
fn search_reproduces_the_proof_table_at_10g() {
    search(10);
}

#[test]
fn search_reproduces_the_proof_table_at_25g() {
    search(25);
}

#[test]
fn search_reproduces_the_proof_table_at_40g() {
    search(40);
}

#[test]
fn search_reproduces_the_proof_table_at_100g() {
    search(100);
}

#[test]
fn search_reproduces_the_proof_table_at_400g() {
    search(400);
}

/// Each refresh of a pause waits behind data, with exactly eta of headroom: all rows, for two pauses and their
/// refreshes.
#[test]
fn endless_reverse_traffic_expires_no_pause_and_loses_nothing() {
    for Row { link, eta, .. } in rows() {
        assert!(!link.pause_may_lapse(), "{link:?}");
        for adversary in all(&link).iter().filter(|adversary| adversary.reverse.lasts()) {
            let run = replay(&link, adversary, eta).unwrap();
            assert_eq!((run.lost, run.lapsed), (0, false), "{link:?}: {adversary}");
        }
    }
}

/// A peer within the bound receives each refresh in time. A peer far beyond it does not, and frames are lost even with
/// twice the eta of its link. So the cases detect a late refresh.
#[test]
fn a_pause_ends_early_beyond_the_bound_and_not_within_it() {
    for Row { link, .. } in rows().iter().filter(|row| row.link.rate.0 == 400_000_000_000) {
        let with = |nanos| Link { peer: Peer::Takes(Nanos(nanos)), ..*link };
        let longest = (0..100_000).take_while(|nanos| !with(*nanos).pause_may_lapse()).last().unwrap();
        let run = |nanos| {
            let adversary = Adversary { reverse: Reverse::After, ..Adversary::of(Sizes::Framed(60)) };
            let run = replay(&with(nanos), &adversary, Cells(2 * with(nanos).formula().cells.0)).unwrap();
            (run.lapsed, run.lost > 0)
        };
        assert_eq!([longest, 30_000].map(run), [(false, false), (true, true)], "{link:?}: {longest} ns");
    }
}

/// A peer that observes its limit of small packets needs at most eta. With a peer that exceeds the limit frames are
/// lost, and the proof gives the cells needed.
#[test]
fn eta_for_limited_small_packets_loses_if_peer_exceeds_the_limit() {
    let of_table = links().find(|link| link.rate.0 == 40_000_000_000 && link.cable.mm == 300_000 && link.mtu == 1500);
    let all = of_table.unwrap();
    let kept = Link { small_packets: "25%".parse().unwrap(), ..all };
    let proof = prove(&kept);
    assert!(proof.demand <= proof.formula && proof.formula < all.formula().cells, "{proof:?}");
    assert_eq!(proof.broken, Some(prove(&all).demand), "the demand without a promise");
    let run = replay(&all, &Adversary::of(Sizes::Framed(60)), proof.formula).unwrap();
    assert!(run.lost > 0, "{run:?}");
    assert_eq!(prove(&all).broken, None);
}

#[test]
fn a_link_at_which_a_pause_ends_early_is_refused() {
    for args in ["--speed 800G --cable 5m --mtu 1500", "--speed 400G --cable 5m --response 625000B"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        let output = command.args(["headroom", "--prove"]).args(args.split(' ')).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && stderr.contains("expires before, and no headroom is sufficient"),
            "{args}: {stderr}"
        );
    }
}

/// For each link the slacks of the terms add up to the slack of eta.
#[test]
fn slack_of_terms_sums_to_slack_of_eta() {
    let slack = TABLE.lines().skip_while(|line| !line.starts_with("slack by term")).skip(3);
    let slack: Vec<Vec<&str>> = slack.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(slack.len(), 50);
    for (Row { link, eta, smallest, worst }, line) in rows().iter().zip(slack) {
        assert_eq!(line[..3], [link.rate.to_string(), link.cable.to_string(), link.mtu.to_string()], "{link:?}");
        let adversary = *all(link).iter().find(|adversary| adversary.to_string() == *worst).unwrap();
        let proof = Proof { formula: *eta, demand: *smallest, worst: adversary, tried: 0, broken: None };
        let terms: Vec<i64> = terms(link, &proof).iter().map(Term::slack).collect();
        let total = terms.iter().sum();
        assert_eq!(total, i64::from(eta.0) - i64::from(smallest.0), "{link:?}");
        let shown: Vec<i64> = line[3..].iter().map(|cells| cells.parse().unwrap()).collect();
        assert_eq!(shown, [terms, vec![total]].concat(), "{link:?}");
    }
}

/// Column widths differ, so words are compared.
#[test]
fn proof_page_rows_are_those_of_the_table() {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let table: Vec<String> = TABLE.lines().map(words).collect();
    let shown = block(&document(), &format!("holdfast {OF_PAGE}"));
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("G ")).collect();
    assert_eq!(rows.len(), 10, "{shown}");
    for row in rows {
        assert!(table.contains(&words(row)), "{row} is not in table.txt");
    }
}

#[test]
fn proof_page_blocks_match_output_of_their_commands() {
    let document = document();
    let commands: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("$ holdfast ")).collect();
    assert!(!commands.is_empty());
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(command.split(' ')).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, block(&document, &format!("holdfast {command}")), "{command}");
    }
}
