//! Shrinking of a scenario from a file.

use std::cell::OnceCell;

use super::cuts::{Cut, cuts, without};
use super::{BOUNDS, Shrinks, Smaller, Step, render, search};
use crate::config::error::Place;
use crate::config::yaml::{Node, Shape};
use crate::sim::outcome::{Outcome, Violation};
use crate::sim::scenario::{self, Options, Written};
use crate::sim::spec::Scenario;
use crate::units::Nanos;

/// A variant of a scenario, with the files that it refers to.
#[derive(Debug)]
struct Tree {
    root: Node,
    /// Possible cuts, computed at the first use. Each cut of the best tree so far is tried, and most are refused.
    cuts: OnceCell<Vec<Cut>>,
}

/// Returns the smallest scenario found within bounds that violates the same invariant as the variant `variant` of
/// `written`. It is one self-contained file; `None` if none is smaller. `progress` receives the number of runs at each
/// candidate.
#[must_use]
pub fn shrink(
    written: &Written,
    options: &Options,
    variant: &str,
    violation: &Violation,
    progress: &mut dyn FnMut(u32),
) -> Option<Smaller> {
    let mut tree = Tree::new(written.whole(variant)?);
    if let Some(seed) = options.seed {
        tree.set("seed", seed.to_string());
    }
    search(tree, violation, BOUNDS, progress)
}

impl Clone for Tree {
    /// Clones without the cuts: the clone will be changed, so its cuts will differ.
    fn clone(&self) -> Self {
        Self::new(self.root.clone())
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Shrinks for Tree {
    const STEPS: &'static [Step<Self>] = &[cut, end_there, shorter];

    fn settle(&mut self) -> Option<(String, Scenario)> {
        let yaml = render::yaml(&self.root);
        let (_, scenario) = scenario::parse("smaller.yaml", &yaml, None, &Options::default()).ok()?.pop()?;
        Some((yaml, scenario))
    }

    fn judge(_: &Scenario, outcome: &Outcome) -> Option<Violation> {
        outcome.violation.clone()
    }
}

impl Tree {
    fn new(root: Node) -> Self {
        Self { root, cuts: OnceCell::new() }
    }

    /// Returns the value of the top-level `key`.
    fn get(&self, key: &str) -> Option<&str> {
        let Shape::Map(entries) = &self.root.shape else { return None };
        entries.iter().find(|(name, _)| is(name, key)).and_then(|(_, value)| match &value.shape {
            Shape::Scalar(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn set(&mut self, key: &str, value: String) {
        let scalar = |text| Node { place: Place { line: 1, column: 1 }, shape: Shape::Scalar(text) };
        let Shape::Map(entries) = &mut self.root.shape else { return };
        match entries.iter_mut().find(|(name, _)| is(name, key)) {
            Some((_, known)) => *known = scalar(value),
            None => entries.insert(0, (scalar(key.to_owned()), scalar(value))),
        }
    }

    /// Returns the tree with a duration of at most `ns`, in whole microseconds.
    fn lasting(&self, ns: u64) -> Self {
        let mut tree = self.clone();
        let ns = (ns / 1000 * 1000).max(1000);
        if self.duration().is_some_and(|duration| ns < duration) {
            tree.set("duration", format!("{}us", ns / 1000));
        }
        tree
    }

    fn duration(&self) -> Option<u64> {
        self.get("duration")?.parse().ok().map(|Nanos(ns)| ns)
    }
}

fn is(name: &Node, key: &str) -> bool {
    matches!(&name.shape, Shape::Scalar(text) if text == key)
}

/// Ends the run just after the violation.
fn end_there(tree: &Tree, place: usize, at: u64) -> Option<Tree> {
    (place == 0).then(|| tree.lasting(at + 1000))
}

fn cut(tree: &Tree, place: usize, _: u64) -> Option<Tree> {
    let cuts = tree.cuts.get_or_init(|| cuts(&tree.root));
    cuts.get(place).map(|cut| Tree::new(without(&tree.root, cut)))
}

fn shorter(tree: &Tree, place: usize, _: u64) -> Option<Tree> {
    let of_four = [1, 2, 3].get(place)?;
    Some(tree.lasting(tree.duration()? * of_four / 4))
}
