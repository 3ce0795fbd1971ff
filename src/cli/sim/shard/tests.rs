use std::path::Path;

use holdfast::sim::outcome::Violation;
use holdfast::sim::random::Totals;
use proptest::prelude::*;

use super::found::Found;
use super::merge::{Merged, list, read, rows, totals};
use super::part::{self, File, VariantFailure};
use super::random::RandomFailure;
use super::rows::Rows;
use super::*;
use crate::cli::sim::Format;
use crate::cli::sim::claims::Claims;

/// A number of a shard from an environment with these variables.
fn from(text: &str, variables: &[(&str, &str)]) -> Result<Shard, String> {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let asked: Asked = text.parse()?;
    asked.shard(&find).map_err(|failure| match failure {
        Failure::Usage(message) => message,
        other => panic!("{other:?}"),
    })
}

proptest! {
    #[test]
    fn shards_cover_every_item_once_in_order_and_evenly(items: u64, count in 1..=MOST_SHARDS.min(300)) {
        let ranges: Vec<Range<u64>> = (0..count).map(|index| Shard { index, count }.range(items)).collect();
        prop_assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, items));
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        let lengths: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        prop_assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
    }
}

#[test]
fn number_of_a_shard_is_written_or_comes_from_either_engine() {
    assert_eq!(from("3/16", &[]), Ok(Shard { index: 3, count: 16 }));
    assert_eq!(from("0/1", &[("SLURM_ARRAY_TASK_ID", "7")]), Ok(Shard { index: 0, count: 1 }));
    assert_eq!(from("/16", &[("JOB_COMPLETION_INDEX", "0")]), Ok(Shard { index: 0, count: 16 }));
    assert_eq!(from("/16", &[("SLURM_ARRAY_TASK_ID", "15")]), Ok(Shard { index: 15, count: 16 }));
}

#[test]
fn wrong_shards_are_refused_with_place_and_remedy() {
    for text in ["3", "x/16", "3/x", "-1/16", "3/16/2", ""] {
        assert_eq!(from(text, &[]), Err(EXAMPLE.to_owned()), "{text}");
    }
    assert_eq!(from("0/0", &[]), Err("0 is not a number of shards; write 1 to 100000".to_owned()));
    assert_eq!(from("0/100001", &[]), Err("100001 is not a number of shards; write 1 to 100000".to_owned()));
    let beyond = "there is no shard 16 of 16: they count from 0; write 0/16 to 15/16";
    assert_eq!(from("16/16", &[]), Err(beyond.to_owned()));
    let slurm = ("SLURM_ARRAY_TASK_ID", "16");
    assert_eq!(from("/16", &[slurm]), Err(format!("--shard /16: SLURM_ARRAY_TASK_ID is 16: {beyond}")));
    assert_eq!(
        from("/16", &[("JOB_COMPLETION_INDEX", "a")]),
        Err("--shard /16: JOB_COMPLETION_INDEX is `a`, which is not a number".to_owned())
    );
    let none = from("/16", &[]).unwrap_err();
    assert!(
        none.starts_with("--shard /16: neither JOB_COMPLETION_INDEX nor SLURM_ARRAY_TASK_ID is set; write"),
        "{none}"
    );
    let both = from("/16", &[slurm, ("JOB_COMPLETION_INDEX", "3")]).unwrap_err();
    assert!(
        both.starts_with("--shard /16: both JOB_COMPLETION_INDEX and SLURM_ARRAY_TASK_ID are set; unset"),
        "{both}"
    );
}

fn fabrics(count: u64) -> Totals {
    Totals { fabrics: count, promised: count / 2, undrained: count / 3, events: 7 * count, frames: count, checks: 1 }
}

fn violated(seed: u64) -> RandomFailure {
    let text = format!(r#"{{"seed":{seed},"violation":"idle is violated","smaller":{}}}"#, serde_json::json!(found()));
    serde_json::from_str(&text).unwrap()
}

fn found() -> Found {
    let violation = Violation { invariant: "idle", at_ps: 7_000, event: 12, what: "h1 was first".to_owned() };
    Found::new("duration: 1us\n".to_owned(), &violation, 3)
}

fn lines(range: Range<u64>) -> Rows {
    Rows::Csv { header: "n\n".to_owned(), lines: range.map(|number| format!("{number}\n")).collect() }
}

fn random(count: u64) -> Sweep {
    Sweep::Random(RandomSweep { seed: 5, count })
}

fn variants(runs: u64) -> Sweep {
    Sweep::Scenario(ScenarioSweep {
        scenario: "x.yaml".into(),
        content: "0".to_owned(),
        seed: None,
        variant: Vec::new(),
        runs,
        format: Format::Csv,
        all: false,
        fail_on_loss: false,
    })
}

/// Writes the result of each shard, the last first, and reads all again.
fn written(dir: &Path, sweep: &Sweep, count: u64, part: impl Fn(Shard) -> Part) -> Vec<(std::path::PathBuf, File)> {
    for index in (0..count).rev() {
        let shard = Shard { index, count };
        Writer::new(dir, shard, sweep.clone()).unwrap().write(part(shard)).unwrap();
    }
    read(dir, &mut Claims::default()).unwrap()
}

#[test]
fn results_are_merged_in_the_order_of_shards_whatever_the_order_of_files() {
    let dir = tempfile::tempdir().unwrap();
    // The name of shard 10 sorts before that of shard 2.
    let part = |shard: Shard| Part::Variants { rows: lines(shard.range(25)), failure: None };
    let Merged { parts, .. } = Merged::new(written(dir.path(), &variants(25), 12, part), dir.path()).unwrap();
    assert_eq!(rows(parts), (Some(lines(0..25)), None));

    let dir = tempfile::tempdir().unwrap();
    let part = |shard: Shard| Part::Totals(fabrics(shard.range(25).end - shard.range(25).start));
    let Merged { parts, sweep } = Merged::new(written(dir.path(), &random(25), 12, part), dir.path()).unwrap();
    let merged = totals(parts).unwrap();
    assert_eq!((sweep, merged.fabrics, merged.events, merged.checks), (random(25), 25, 175, 12));
}

#[test]
fn failure_of_the_lowest_shard_is_that_of_the_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let part =
        |shard: Shard| if shard.index > 1 { Part::Failure(violated(shard.index)) } else { Part::Totals(fabrics(2)) };
    let Merged { parts, .. } = Merged::new(written(dir.path(), &random(8), 4, part), dir.path()).unwrap();
    let failure = totals(parts).unwrap_err();
    assert_eq!(failure, violated(2));
    let path = dir.path().join("found.yaml");
    let Failure::Run(text) = failure.keep(Some(&path)) else { panic!() };
    assert!(text.starts_with("random fabric with seed 2: idle is violated\nshrunk in 3 runs; reproduce it"), "{text}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "duration: 1us\n");

    let dir = tempfile::tempdir().unwrap();
    let failure = |shard: Shard| {
        let sentence = format!("seed {}: violated", shard.index);
        (shard.index > 1).then(|| VariantFailure::Violated { seed: shard.index, sentence, smaller: Some(found()) })
    };
    let part = |shard: Shard| Part::Variants { rows: lines(shard.range(8)), failure: failure(shard) };
    let Merged { parts, .. } = Merged::new(written(dir.path(), &variants(8), 4, part), dir.path()).unwrap();
    assert_eq!(rows(parts), (Some(lines(0..8)), failure(Shard { index: 2, count: 4 })));
}

#[test]
fn missing_shards_are_listed_with_their_commands_and_a_failure_that_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let part = |shard: Shard| if shard.index == 4 { Part::Failure(violated(9)) } else { Part::Totals(fabrics(1)) };
    let mut files = written(dir.path(), &random(6), 6, part);
    files.retain(|(_, file)| ![1, 2, 5].contains(&file.shard));
    let error = Merged::new(files, Path::new("out")).err().unwrap();
    let place = dir.path().join("shard-4-of-6.json");
    let expected = format!(
        "{} has a failure: random fabric with seed 9: idle is violated\n\
         3 of 6 shards missing in out: 1-2,5; run each and merge again:\n\
         holdfast sim --random --seed 5 --count 6 --shard 1/6 --results out\n\
         holdfast sim --random --seed 5 --count 6 --shard 2/6 --results out\n\
         holdfast sim --random --seed 5 --count 6 --shard 5/6 --results out",
        place.display()
    );
    assert_eq!(error, expected);
    assert_eq!(list(&[0, 2, 3, 4, 9]), "0,2-4,9");
}

#[test]
fn long_list_of_missing_shards_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = written(dir.path(), &random(100), 100, |_| Part::Totals(fabrics(1)));
    files.truncate(10);
    let error = Merged::new(files, dir.path()).err().unwrap();
    assert_eq!(error.lines().count(), 22, "{error}");
    assert!(error.starts_with("90 of 100 shards missing") && error.ends_with("\n(and 70 more)"), "{error}");
}

#[test]
fn result_that_does_not_fit_its_share_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let shard = Shard { index: 1, count: 2 };
    let path = dir.path().join(part::name(shard));
    let parts: [(Sweep, Part); 4] = [
        (random(10), Part::Totals(fabrics(4))),
        (random(10), Part::Variants { rows: lines(0..5), failure: None }),
        (variants(10), Part::Variants { rows: lines(0..4), failure: None }),
        (variants(10), Part::Variants { rows: Rows::Json(vec![0.into(); 5]), failure: None }),
    ];
    for (sweep, part) in parts {
        Writer::new(dir.path(), shard, sweep).unwrap().write(part).unwrap();
        let error = part::read(&path).err().unwrap();
        assert_eq!(error, format!("{}: the result is not that of its share; run the shard again", path.display()));
    }
    Writer::new(dir.path(), shard, random(10)).unwrap().write(Part::Totals(fabrics(5))).unwrap();
    assert_eq!(part::read(&path).unwrap().shard, 1);
}
