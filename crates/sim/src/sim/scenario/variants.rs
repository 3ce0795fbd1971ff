//! `variants:`: the scenario once per variant, with some values replaced.
//!
//! The replacement works on the tree, so that a value keeps its place in the variant or in the scenario.

use super::read_name;
use crate::config::yaml::count::{remove, size};
use crate::config::yaml::names::Unique;
use crate::config::yaml::read::{Item, one_of};
use crate::config::yaml::{Node, Shape};

const KEY: &str = "variants";
const EXAMPLE: &str = "`- {name: ..., seed: 2}` for each variant, or a list of such lists";
const MOST: usize = 256;
/// Limit on the values in all variants together.
const MOST_VALUES: usize = 1 << 22;

/// A variant: its name, and the values that it replaces.
struct Variant<'a> {
    name: String,
    over: Item<'a>,
}

/// A scenario and its axes; a variant takes one entry of each axis.
pub struct Variants<'a> {
    base: Node,
    axes: Vec<Vec<Variant<'a>>>,
}

impl<'a> Variants<'a> {
    /// Reads the variants of a scenario. Invalid ones give an error and no variants.
    pub fn read(root: &Item<'a>) -> Self {
        let mut base = root.node().clone();
        let written = root.has(KEY).then(|| root.child(KEY));
        remove(&mut base, &[KEY]);
        let axes = written.and_then(|item| read_axes(&item, size(&base))).unwrap_or_default();
        Self { base, axes }
    }

    /// Returns the number of scenarios.
    pub fn len(&self) -> usize {
        self.axes.iter().map(Vec::len).product()
    }

    /// Returns each variant's name and tree; without variants, one tree with an empty name.
    pub fn iter(&self) -> impl Iterator<Item = (String, Node)> {
        (0..self.len()).map(|number| self.variant(number))
    }

    /// Returns the variant with this number; the last axis varies fastest.
    fn variant(&self, mut number: usize) -> (String, Node) {
        let mut chosen = Vec::new();
        for axis in self.axes.iter().rev() {
            chosen.push(&axis[number % axis.len()]);
            number /= axis.len();
        }
        chosen.reverse();
        let names: Vec<&str> = chosen.iter().map(|variant| variant.name.as_str()).collect();
        let tree = chosen.iter().fold(self.base.clone(), |tree, variant| merge(&tree, &variant.over, true));
        (names.join(", "), tree)
    }
}

fn read_axes<'a>(item: &Item<'a>, base: usize) -> Option<Vec<Vec<Variant<'a>>>> {
    let items = item.list(EXAMPLE)?;
    let axes: Vec<Vec<Item<'a>>> = if items.iter().any(Item::is_list) {
        items.iter().map(|item| item.list(EXAMPLE)).collect::<Option<_>>()?
    } else {
        vec![items]
    };
    if axes.iter().any(Vec::is_empty) {
        return item.refuse(format!("the list has no variant; write {EXAMPLE}"));
    }
    let count = axes.iter().map(Vec::len).fold(1, usize::saturating_mul);
    if count > MOST {
        return item.refuse(format!("{count} variants are too many; write at most {MOST}"));
    }
    if count.saturating_mul(base.saturating_add(size(item.node()))) > MOST_VALUES {
        return item.refuse(format!("{count} variants are too many for a scenario of this size; write fewer"));
    }
    // All axes are read, so that an invalid one does not hide another.
    let axes: Vec<Option<Vec<Variant<'a>>>> = axes.into_iter().map(read_axis).collect();
    axes.into_iter().collect()
}

fn read_axis(items: Vec<Item<'_>>) -> Option<Vec<Variant<'_>>> {
    let mut names = Unique::new("name");
    let mut variants = Vec::new();
    let mut is_right = true;
    for over in items {
        match read_one(&over, &mut names) {
            Some(name) => variants.push(Variant { name, over }),
            None => is_right = false,
        }
    }
    is_right.then_some(variants)
}

fn read_one(over: &Item<'_>, names: &mut Unique) -> Option<String> {
    if !over.is_map() {
        return over.refuse(format!("`{}` is not a variant; write e.g. `{{name: slow, seed: 2}}`", over.shown()));
    }
    if !over.has("name") {
        return over.refuse("`name` is missing; write e.g. `name: no pfc`");
    }
    let item = over.child("name");
    let name = read_name(&item)?;
    names.claim(&item, &name);
    Some(name)
}

/// Returns `base` with the values of `over` in place of its own. Mappings merge by key, lists of named items by name;
/// anything else is replaced as a whole. The name of a variant or an item is not a value to replace.
pub(super) fn merge(base: &Node, over: &Item<'_>, is_named: bool) -> Node {
    match (&base.shape, &over.node().shape) {
        (Shape::Map(entries), Shape::Map(_)) => {
            Node { place: base.place, shape: Shape::Map(merge_keys(entries, over, is_named)) }
        }
        (Shape::List(items), Shape::List(_)) => match (names(items), names(nodes(over))) {
            (Some(known), Some(named)) => {
                Node { place: base.place, shape: Shape::List(merge_items(items, &known, over, &named)) }
            }
            _ => over.node().clone(),
        },
        _ => over.node().clone(),
    }
}

fn merge_keys(entries: &[(Node, Node)], over: &Item<'_>, is_named: bool) -> Vec<(Node, Node)> {
    let mut merged = entries.to_vec();
    let (keys, values) = match &over.node().shape {
        Shape::Map(written) => (written, over.entries("").unwrap_or_default()),
        _ => return merged,
    };
    for ((key, _), (_, value)) in keys.iter().zip(&values) {
        let name = text(key);
        if is_named && name == Some("name") {
            continue;
        }
        match merged.iter_mut().find(|(known, _)| name.is_some() && text(known) == name) {
            Some((_, known)) => *known = merge(known, value, false),
            None => merged.push((key.clone(), value.node().clone())),
        }
    }
    merged
}

fn merge_items(items: &[Node], known: &[&str], over: &Item<'_>, named: &[&str]) -> Vec<Node> {
    let mut merged = items.to_vec();
    for (name, value) in named.iter().zip(over.list("").unwrap_or_default()) {
        let mut is_known = false;
        for (node, _) in merged.iter_mut().zip(known).filter(|(_, known)| is_meant(name, known)) {
            *node = merge(node, &value, true);
            is_known = true;
        }
        if !is_known {
            let place = value.child("name");
            place.fail(format!("the scenario has no `{}` here to override; write {}", place.shown(), one_of(known)));
        }
    }
    merged
}

/// Whether a name in a variant matches a name in the scenario: `*` matches anything.
fn is_meant(name: &str, known: &str) -> bool {
    match name.split_once('*') {
        Some((head, tail)) => {
            known.len() >= head.len() + tail.len() && known.starts_with(head) && known.ends_with(tail)
        }
        None => name == known,
    }
}

/// Returns the items of a list.
fn nodes<'a>(item: &Item<'a>) -> &'a [Node] {
    match &item.node().shape {
        Shape::List(nodes) => nodes,
        _ => &[],
    }
}

/// Returns the names of the items, if all have one.
fn names(items: &[Node]) -> Option<Vec<&str>> {
    let names: Vec<&str> = items.iter().map(name).collect::<Option<_>>()?;
    (!names.is_empty()).then_some(names)
}

fn name(node: &Node) -> Option<&str> {
    let Shape::Map(entries) = &node.shape else { return None };
    entries.iter().find(|(key, _)| text(key) == Some("name")).and_then(|(_, name)| text(name))
}

fn text(node: &Node) -> Option<&str> {
    match &node.shape {
        Shape::Scalar(text) => Some(text),
        _ => None,
    }
}
