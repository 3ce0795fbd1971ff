//! `count:` in an item of a list: many items that differ in a number.
//!
//! `- {name: p*, count: 32, speed: 100G}` is 32 items, in whose values `*` is 1 to 32. Items are expanded in the tree
//! before any key is read, so no reader of a list handles `count`. Each copy keeps the file position of the original.

use super::read::Item;
use super::{Node, Shape};

/// Most items that one item may be expanded to.
const MOST_ITEMS: u64 = 1024;
/// Largest value of `first`; no name has a number with more digits.
const LARGEST_FIRST: u64 = 65_535;
/// Most values in the expanded tree, including copies of copies.
const MOST_VALUES: usize = 1 << 20;

/// The number of values that may still be added before [`MOST_VALUES`] is reached.
struct Room(usize);

/// Returns the tree of `root` with every counted item expanded. Errors in a `count` are reported.
pub fn expand(root: &Item<'_>) -> Node {
    value(root, &mut Room(MOST_VALUES))
}

fn value(item: &Item<'_>, room: &mut Room) -> Node {
    let node = item.node();
    let shape = match &node.shape {
        Shape::Null => Shape::Null,
        Shape::Scalar(text) => Shape::Scalar(text.clone()),
        Shape::List(_) => {
            let items = item.list("").unwrap_or_default();
            Shape::List(items.iter().flat_map(|item| items_of(item, room)).collect())
        }
        Shape::Map(entries) => {
            let values = item.entries("").unwrap_or_default();
            let entry =
                |((key, _), (_, item)): (&(Node, Node), &(Item<'_>, Item<'_>))| (key.clone(), value(item, room));
            Shape::Map(entries.iter().zip(&values).map(entry).collect())
        }
    };
    Node { place: node.place, shape }
}

/// Expands one item of a list; an item without `count` is returned alone. A list inside it is expanded first, so `*`
/// there is the number of the innermost count.
fn items_of(item: &Item<'_>, room: &mut Room) -> Vec<Node> {
    let mut one = value(item, room);
    if !item.is_map() || !item.has("count") {
        if item.has("first") {
            item.child("first").fail("`first` needs a `count`; write e.g. `count: 2`");
        }
        return vec![one];
    }
    remove(&mut one, &["count", "first"]);
    let count = item.child("count");
    let Some((first, last)) = numbers(item) else { return vec![one] };
    if !has_star(&one, item) {
        let (whose, example) = if item.has("name") { ("its `name`", "name: p*") } else { ("its values", "to: h*") };
        count.fail(format!("there is no `*` in {whose} for the number; write e.g. `{example}`"));
        return vec![one];
    }
    let copies = last - first + 1;
    let needed = size(&one).saturating_mul(usize::try_from(copies).unwrap_or(usize::MAX));
    if needed > room.0 {
        count.fail(format!(
            "{copies} copies of this item are too many; write fewer, at most {MOST_VALUES} values in all"
        ));
        return vec![one];
    }
    room.0 -= needed;
    (first..=last).map(|number| numbered(&one, &number.to_string())).collect()
}

/// First and last number; `None`, and an error, if `count` or `first` is invalid.
fn numbers(item: &Item<'_>) -> Option<(u64, u64)> {
    let count = item.child("count").number::<u64>("a count of items", 1..=MOST_ITEMS);
    let first = if item.has("first") {
        item.child("first").number::<u64>("a first number", 0..=LARGEST_FIRST)
    } else {
        Some(1)
    };
    let (count, first) = (count?, first?);
    Some((first, first + count - 1))
}

/// Removes these keys of a mapping.
pub fn remove(node: &mut Node, keys: &[&str]) {
    if let Shape::Map(entries) = &mut node.shape {
        entries.retain(|(key, _)| !matches!(&key.shape, Shape::Scalar(text) if keys.contains(&text.as_str())));
    }
}

/// Whether the copies will differ: in their names if they have names, otherwise in any value.
fn has_star(node: &Node, item: &Item<'_>) -> bool {
    if item.has("name") { any_star(item.child("name").node()) } else { any_star(node) }
}

fn any_star(node: &Node) -> bool {
    match &node.shape {
        Shape::Null => false,
        Shape::Scalar(text) => text.contains('*'),
        Shape::List(items) => items.iter().any(any_star),
        Shape::Map(entries) => entries.iter().any(|(_, value)| any_star(value)),
    }
}

/// The number of values in a tree.
pub fn size(node: &Node) -> usize {
    match &node.shape {
        Shape::Null => 1,
        // A long text counts as one more value per 64 bytes.
        Shape::Scalar(text) => 1 + text.len() / 64,
        Shape::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Shape::Map(entries) => 1 + entries.iter().map(|(key, value)| size(key) + size(value)).sum::<usize>(),
    }
}

/// Returns a copy in which `number` replaces each `*`.
fn numbered(node: &Node, number: &str) -> Node {
    let shape = match &node.shape {
        Shape::Null => Shape::Null,
        Shape::Scalar(text) => Shape::Scalar(text.replace('*', number)),
        Shape::List(items) => Shape::List(items.iter().map(|item| numbered(item, number)).collect()),
        Shape::Map(entries) => {
            Shape::Map(entries.iter().map(|(key, value)| (key.clone(), numbered(value, number))).collect())
        }
    };
    Node { place: node.place, shape }
}
