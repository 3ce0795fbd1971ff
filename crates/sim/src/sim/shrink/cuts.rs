//! Possible cuts of a tree: keys of mappings, and items of lists one by one and by halves, quarters and so on.

use std::cmp::Reverse;
use std::ops::Range;

use crate::config::yaml::count::size;
use crate::config::yaml::{Node, Shape};

/// A range of entries of a mapping, or of items of a list. `path` leads there by index.
#[derive(Debug, PartialEq)]
pub struct Cut {
    path: Vec<usize>,
    range: Range<usize>,
}

/// Returns all cuts, the largest first; cuts of equal size are in the order of the tree.
pub fn cuts(root: &Node) -> Vec<Cut> {
    let mut cuts = Vec::new();
    collect(root, &mut Vec::new(), &mut cuts);
    cuts.sort_by_key(|(size, _)| Reverse(*size));
    cuts.into_iter().map(|(_, cut)| cut).collect()
}

fn collect(node: &Node, path: &mut Vec<usize>, cuts: &mut Vec<(usize, Cut)>) {
    let children: Vec<&Node> = match &node.shape {
        Shape::Null | Shape::Scalar(_) => return,
        Shape::List(items) => items.iter().collect(),
        Shape::Map(entries) => entries.iter().map(|(_, value)| value).collect(),
    };
    let sizes: Vec<usize> = children.iter().map(|child| size(child)).collect();
    let mut offer = |range: Range<usize>| {
        let removed = sizes[range.clone()].iter().sum();
        cuts.push((removed, Cut { path: path.clone(), range }));
    };
    let count = children.len();
    let mut part = if matches!(node.shape, Shape::List(_)) { (count / 2).max(1) } else { 1 };
    loop {
        (0..count).step_by(part).for_each(|from| offer(from..(from + part).min(count)));
        if part == 1 {
            break;
        }
        part /= 2;
    }
    for (number, child) in children.into_iter().enumerate() {
        path.push(number);
        collect(child, path, cuts);
        path.pop();
    }
}

/// Returns the tree without the part that `cut` removes.
pub fn without(root: &Node, cut: &Cut) -> Node {
    let mut root = root.clone();
    let mut node = &mut root;
    for &number in &cut.path {
        node = match &mut node.shape {
            Shape::List(items) => &mut items[number],
            Shape::Map(entries) => &mut entries[number].1,
            Shape::Null | Shape::Scalar(_) => unreachable!("a path leads through mappings and lists"),
        };
    }
    match &mut node.shape {
        Shape::List(items) => drop(items.drain(cut.range.clone())),
        Shape::Map(entries) => drop(entries.drain(cut.range.clone())),
        Shape::Null | Shape::Scalar(_) => unreachable!("a cut is of a mapping or list"),
    }
    root
}
