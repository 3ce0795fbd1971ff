//! Parses YAML to a tree in which every node has its line and column.
//!
//! The target is a tree, not derived structs: a derived parser stops at the first error and names its own types. From
//! the tree all errors are found, each with its key and in the words of the configuration.

pub mod bounds;
pub mod count;
mod hints;
pub mod names;
pub(super) mod range;
pub mod read;
pub(super) mod renamed;
pub mod share;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Error, Location, Spanned};

use super::error::{ConfigErrors, Place};

const TOO_DEEP: &str = "lists and mappings are nested too deeply; close every bracket, and nest less";
const TOO_MUCH: &str = "too many values for a configuration, including those of aliases; write fewer aliases \
                        (`*name`), and `count:` for similar items";

/// The work that a text may cause, also a short one.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Most values that are written.
    values: usize,
    /// Most values and ends of lists and mappings that aliases repeat.
    repeated: usize,
}

impl Bound {
    /// Files of the operator. A rack of 64 ports with long aliases for each has a hundredth of it.
    pub const FILE: Self = Self { values: 250_000, repeated: 500_000 };
    /// Requests of clients. 64 faults with all their keys have a fifth of it.
    pub const REQUEST: Self = Self { values: 4_000, repeated: 4_000 };
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Place in the file.
    pub place: Place,
    /// Its kind and content.
    pub shape: Shape,
}

/// The shape of a value. Scalars stay as they are written: whether `10` is a rate or a VLAN depends on the key.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Nothing, or `~`.
    Null,
    /// A scalar as it is written.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// A map with its keys in order.
    Map(Vec<(Node, Node)>),
}

/// Parses one document of an operator's file.
pub fn parse(source: &str, text: &str) -> Result<Node, ConfigErrors> {
    parse_within(source, text, Bound::FILE)
}

/// Parses one document within `bound`.
pub fn parse_within(source: &str, text: &str, bound: Bound) -> Result<Node, ConfigErrors> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: bound.values,
            max_events: 4 * bound.values,
            max_recorded_anchor_events: 4 * bound.values,
            max_total_scalar_bytes: 256 * bound.values,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: bound.repeated },
        with_snippet: false,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    };
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options) {
        Ok(raw) => Ok(raw_to_node(raw, text)),
        Err(error) => {
            let place = error.location().and_then(place).unwrap_or(Place { line: 1, column: 1 });
            Err(ConfigErrors::one(source, Some(place), describe(&error)))
        }
    }
}

/// The error itself, without the wrapper of an alias or snippet.
fn bare(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => bare(error),
        bare => bare,
    }
}

/// The parser's error, reworded if it is a likely mistake.
fn describe(error: &Error) -> String {
    match bare(error) {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` is written twice in the same mapping; keep one of the two")
        }
        Error::DuplicateMappingKey { key: None, .. } => {
            "a key is written twice in the same mapping; keep one of the two".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; a file holds one configuration, so remove the `---`".to_owned()
        }
        Error::UnknownAnchor { .. } => "this alias has no anchor; write `&name` before the value it means".to_owned(),
        other if other.to_string().contains("tabs disallowed") => {
            "not valid YAML: a tab in the indentation; write spaces".to_owned()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => TOO_DEEP.to_owned(),
        // This limit is not a budget of the parser but a bound of its own.
        other if other.to_string().contains("recursion limit exceeded") => TOO_DEEP.to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => TOO_MUCH.to_owned(),
        other => {
            let text = other.to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.rsplit_once(" at line ").map_or(text, |(message, _)| message);
            format!("not valid YAML: {text}; check indentation, colons, quotes and brackets here and just before")
        }
    }
}

fn place(location: Location) -> Option<Place> {
    (location.line() > 0).then(|| Place { line: location.line(), column: location.column() })
}

/// The values that serde delivers. It has already turned plain scalars into numbers; [`raw_to_node`] reverses that.
enum Raw {
    Null,
    Typed(String),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

fn raw_to_node(raw: Spanned<Raw>, text: &str) -> Node {
    let place = place(raw.referenced).unwrap_or(Place { line: 1, column: 1 });
    let shape = match raw.value {
        Raw::Null => Shape::Null,
        Raw::Typed(value) => Shape::Scalar(written(raw.defined, text).map_or(value, str::to_owned)),
        Raw::Text(value) => Shape::Scalar(value),
        Raw::List(items) => Shape::List(items.into_iter().map(|item| raw_to_node(item, text)).collect()),
        Raw::Map(entries) => Shape::Map(
            entries.into_iter().map(|(key, value)| (raw_to_node(key, text), raw_to_node(value, text))).collect(),
        ),
    };
    Node { place, shape }
}

/// The source text of a plain scalar: `1.50` and not 1.5, so that errors show the text as written.
fn written(location: Location, text: &str) -> Option<&str> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let len = usize::try_from(span.byte_len()?).ok()?;
    text.get(start..start.checked_add(len)?).filter(|written| !written.is_empty())
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[cfg(test)]
        tests::VALUES.with(|values| values.set(values.get() + 1));
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

/// Defines the visits of scalars that YAML gives a type.
macro_rules! visit_typed {
    ($($visit:ident: $type:ty),+ $(,)?) => {$(
        fn $visit<E>(self, value: $type) -> Result<Raw, E> {
            Ok(Raw::Typed(value.to_string()))
        }
    )+};
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    visit_typed! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64,
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests;
