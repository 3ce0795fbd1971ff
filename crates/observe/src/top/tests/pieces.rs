//! Tests of bars, sparklines and tables on their own.

use ratatui::style::Color;
use ratatui::text::Span;

use super::*;
use crate::top::bar::{Bar, columns, sparkline};
use crate::top::history::Sample;
use crate::top::paint::{Part, Tick};
use crate::top::table::{Column, Table, text as cell};

const COLOUR: Paint = Paint { colour: true, unicode: true };
const ASCII: Paint = Paint { colour: false, unicode: false };

fn letters(spans: &[Span<'_>]) -> String {
    spans.iter().map(|span| span.content.as_ref()).collect()
}

fn group_bar() -> Bar {
    Bar {
        scale: 200,
        parts: vec![(20, Part::Reserve), (60, Part::Shared), (10, Part::Headroom)],
        room: Some((100, 140)),
        ticks: vec![(150, Tick::Highest), (140, Tick::Limit), (100, Tick::Threshold)],
    }
}

#[test]
fn a_bar_has_its_parts_and_lines_where_they_are() {
    assert_eq!(letters(&group_bar().spans(20, PLAIN)), "▒▒██████▚·│░░░┃╎····");
    assert_eq!(letters(&group_bar().spans(20, ASCII)), "rr######H.|:::]!....");
    assert_eq!(letters(&group_bar().spans(20, COLOUR)), "█████████·│░░░┃╎····");
    let colours: Vec<Color> = group_bar().spans(20, COLOUR).iter().filter_map(|span| span.style.fg).collect();
    assert_eq!(colours[..4], [Color::Blue, Color::Cyan, Color::Magenta, Color::Yellow]);
}

#[test]
fn bar_shows_small_values_and_clamps_large_ones() {
    let bar = |used| Bar { scale: 1_000, parts: vec![(used, Part::Shared)], ..Bar::default() };
    assert_eq!(letters(&bar(0).spans(4, PLAIN)), "····");
    assert_eq!(letters(&bar(1).spans(4, PLAIN)), "▏···");
    assert_eq!(letters(&bar(625).spans(4, PLAIN)), "██▌·");
    assert_eq!(letters(&bar(u64::MAX).spans(4, PLAIN)), "████");
    assert_eq!(letters(&Bar::default().spans(3, PLAIN)), "···");
    assert_eq!(letters(&group_bar().spans(0, PLAIN)), "");
    let out = Bar { ticks: vec![(u64::MAX, Tick::Limit)], ..bar(0) };
    assert_eq!(letters(&out.spans(4, PLAIN)), "···┃");
}

#[test]
fn sparkline_has_the_newest_sample_at_the_right_and_losses_in_red() {
    let sample = |tx: f64, held, lost| Sample { tx_bps: tx, held, lost, ..Sample::default() };
    let samples =
        [sample(10.0, false, false), sample(5.0, true, false), sample(0.01, false, false), sample(0.0, false, true)];
    let line = |width| sparkline(samples.iter(), |sample| sample.tx_bps, 10.0, width, COLOUR);
    assert_eq!(letters(&line(6)), "  █▄▁▁");
    assert_eq!(letters(&line(2)), "▁▁");
    let colours: Vec<Option<Color>> = line(4).iter().map(|span| span.style.fg).collect();
    assert_eq!(colours, [Some(Color::Green), Some(Color::Yellow), Some(Color::Green), Some(Color::Red)]);
    assert_eq!(letters(&sparkline(samples.iter(), |sample| sample.tx_bps, 10.0, 4, ASCII)), "#=..");
}

#[test]
fn one_in_a_million_shows_in_a_histogram() {
    assert_eq!(columns(&[0, 1_000_000, 1, 0], PLAIN), " █▁ ");
    assert_eq!(columns(&[], PLAIN), "");
}

#[test]
fn table_drops_columns_of_highest_rank_and_widens_growing_ones() {
    let column = |id, title, width, rank| Column { id, title, width, right: false, rank };
    let columns = [column(0, "name", 4, 0), column(1, "bar", 5, 1), column(2, "more", 4, 2)];
    let titles = |width, most| {
        let line = Table::fit(&columns, width, &[1], most).titles(None, PLAIN);
        (letters(&line.spans), line.width())
    };
    assert_eq!(titles(15, 99), ("name bar   more".to_owned(), 15));
    assert_eq!(titles(20, 99).0, "name bar        more");
    assert_eq!(titles(20, 6), ("name bar    more".to_owned(), 16));
    assert_eq!(titles(14, 99).0, "name bar      ");
    assert_eq!(titles(3, 99).0, "name");
    let row = Table::fit(&columns, 15, &[], 0).row(|id, _| cell(["too long", "x", "y"][id], Default::default()));
    assert_eq!(letters(&row.spans), "too  x     y   ");
}
