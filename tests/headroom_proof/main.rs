//! docs/headroom-proof.md is what the switch does: every row of its table by the worst case that it names, a part of it by
//! the whole search, and the other blocks by the commands that they show.

use std::path::Path;

use assert_cmd::Command;
use holdfast::sim::headroom::adversary::all;
use holdfast::sim::headroom::{Link, links, prove, replay};
use holdfast::units::Cells;

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

/// What the document says that `command` prints.
fn block(document: &str, command: &str) -> String {
    let start = format!("```\n$ {command}\n");
    let at = document.find(&start).unwrap_or_else(|| panic!("`{command}` is not in the document"));
    let block = &document[at + start.len()..];
    block[..block.find("```").unwrap()].to_owned()
}

fn rows() -> Vec<Row> {
    let table = block(&document(), "holdfast headroom --prove");
    let lines: Vec<Vec<String>> =
        table.lines().skip(3).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
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
fn every_row_keeps_all_with_eta_and_with_the_smallest_and_loses_with_a_cell_less() {
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

#[test]
fn the_search_finds_the_same_at_10g_and_25g() {
    let slow = |row: &Row| row.link.rate.0 <= 25_000_000_000;
    for Row { link, smallest, worst, .. } in rows().into_iter().filter(slow) {
        let proof = prove(&link);
        assert_eq!((proof.demand, proof.worst.to_string()), (smallest, worst), "{link:?}");
    }
}

#[test]
fn the_other_blocks_are_what_their_commands_print() {
    let document = document();
    let commands = document.lines().filter_map(|line| line.strip_prefix("$ holdfast "));
    let commands: Vec<&str> = commands.filter(|command| *command != "headroom --prove").collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(command.split(' ')).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, block(&document, &format!("holdfast {command}")), "{command}");
    }
}
