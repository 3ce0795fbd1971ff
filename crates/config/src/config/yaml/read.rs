//! Reads the tree by key: typed values, and a report of all errors and warnings.

use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{Node, Shape, hints, renamed};
use crate::config::error::{ConfigError, ConfigErrors, Subject, Warning};

/// Characters of a wrong value that an error repeats at most.
const SHOWN_CHARS: usize = 60;

/// Words that an error suggests at most.
const LISTED: usize = 12;

/// The errors and warnings found so far.
pub struct Report {
    source: String,
    errors: RefCell<Vec<ConfigError>>,
    warnings: RefCell<Vec<Warning>>,
}

impl Report {
    /// A report without errors, of the file `source`.
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), errors: RefCell::default(), warnings: RefCell::default() }
    }

    /// The file, or a name for a configuration that is not a file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Number of errors so far.
    pub fn errors(&self) -> usize {
        self.errors.borrow().len()
    }

    /// Adds the findings of another file.
    pub fn absorb(&self, other: Report) {
        self.errors.borrow_mut().extend(other.errors.into_inner());
        self.warnings.borrow_mut().extend(other.warnings.into_inner());
    }

    /// Adds the errors that prevented the reading of a file.
    pub fn fail(&self, errors: &ConfigErrors) {
        self.errors.borrow_mut().extend(errors.iter().cloned());
    }

    /// Returns the errors if there are any, otherwise the warnings.
    pub fn finish(self) -> Result<Vec<Warning>, ConfigErrors> {
        let errors = self.errors.into_inner();
        if !errors.is_empty() {
            return Err(ConfigErrors::new(errors));
        }
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by(|a, b| (&a.note.source, a.note.place).cmp(&(&b.note.source, b.note.place)));
        Ok(warnings)
    }
}

/// One value under a key.
#[derive(Clone)]
pub struct Item<'a> {
    node: &'a Node,
    path: String,
    report: &'a Report,
}

impl<'a> Item<'a> {
    /// The root of a file.
    pub fn root(node: &'a Node, report: &'a Report) -> Self {
        Self { node, path: String::new(), report }
    }

    /// The value `node` in the place of this one, for errors in it.
    #[must_use]
    pub fn with_node<'b>(&self, node: &'b Node) -> Item<'b>
    where
        'a: 'b,
    {
        Item { node, path: self.path.clone(), report: self.report }
    }

    fn note(&self, message: impl fmt::Display) -> ConfigError {
        ConfigError {
            source: self.report.source.clone(),
            place: Some(self.node.place),
            path: self.path.clone(),
            message: message.to_string(),
        }
    }

    /// The tree below this value.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// The report that collects the errors about this value.
    pub fn report(&self) -> &'a Report {
        self.report
    }

    /// Reports an error about this value.
    pub fn fail(&self, message: impl fmt::Display) {
        self.report.errors.borrow_mut().push(self.note(message));
    }

    /// Reports a setting that works, but probably not as intended.
    pub fn warn(&self, message: impl fmt::Display) {
        self.warn_of(Subject::Other, message);
    }

    /// Reports such a setting with its subject.
    pub fn warn_of(&self, subject: Subject, message: impl fmt::Display) {
        self.report.warnings.borrow_mut().push(Warning { subject, ..self.note(message).into() });
    }

    /// Reports an error and returns `None`.
    pub fn refuse<T>(&self, message: impl fmt::Display) -> Option<T> {
        self.fail(message);
        None
    }

    /// The path of the mapping that holds this value: `ports[0]` for `ports[0].name`.
    pub fn owner_path(&self) -> String {
        self.path.rsplit_once('.').map_or(self.path.clone(), |(owner, _)| owner.to_owned())
    }

    /// The value under `key`; if there is none, this value under the path of `key`.
    pub fn child(&self, key: &str) -> Item<'a> {
        let path = self.child_path(key);
        let node = match &self.node.shape {
            Shape::Map(entries) => entries.iter().find(|(name, _)| self.is_named(name, key)),
            _ => None,
        };
        Item { node: node.map_or(self.node, |(_, value)| value), path, report: self.report }
    }

    /// Whether it is nothing.
    pub fn is_null(&self) -> bool {
        matches!(self.node.shape, Shape::Null)
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.node.shape, Shape::Map(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.shape, Shape::List(_))
    }

    /// Whether this is a mapping with a value other than null under `key`.
    pub fn has(&self, key: &str) -> bool {
        let is = |(name, value): &(Node, Node)| self.is_named(name, key) && !matches!(value.shape, Shape::Null);
        matches!(&self.node.shape, Shape::Map(entries) if entries.iter().any(is))
    }

    /// Whether `name`, a key of this mapping, is `key` or an old name of it.
    fn is_named(&self, name: &Node, key: &str) -> bool {
        matches!(&name.shape, Shape::Scalar(text) if renamed::name_now(&self.path, text) == key)
    }

    /// Whether both are the same place in the file.
    pub fn is_same(&self, other: &Item<'_>) -> bool {
        std::ptr::eq(self.node, other.node)
    }

    /// The value as errors show it.
    pub fn shown(&self) -> String {
        match &self.node.shape {
            Shape::Null => "null".to_owned(),
            Shape::Scalar(text) => shorten(text),
            Shape::List(_) => "[...]".to_owned(),
            Shape::Map(_) => "{...}".to_owned(),
        }
    }

    /// The whole text of a scalar; `what` names the expected value with its article and an example, for errors.
    pub fn text(&self, what: &str) -> Option<&'a str> {
        match &self.node.shape {
            Shape::Scalar(text) => Some(text),
            _ => self.refuse(format!("`{}` is not {what}", self.shown())),
        }
    }

    /// Whether the value is this word.
    pub fn is(&self, word: &str) -> bool {
        matches!(&self.node.shape, Shape::Scalar(text) if text == word)
    }

    /// Parses a value whose type checks its text and whose error names a valid value.
    ///
    /// The text is passed as errors show it: anything but a scalar, or longer than any valid value, does not parse.
    pub fn parse<T: FromStr<Err: fmt::Display>>(&self) -> Option<T> {
        let hint = || self.other_writing(|text| text.parse::<T>().is_ok());
        self.shown().parse().map_err(|error| self.fail(format!("{error}{}", hint()))).ok()
    }

    /// The end of an error about this value: the writing that is probably meant, if `accepts` takes one.
    fn other_writing(&self, accepts: impl Fn(&str) -> bool) -> String {
        match &self.node.shape {
            Shape::Scalar(text) => meant(hints::writing(text, accepts).as_deref()),
            Shape::List(nodes) => meant(single_text(nodes).filter(|text| accepts(text))),
            Shape::Map(_) | Shape::Null => String::new(),
        }
    }

    /// A list of plain values as it is written, such as `[10, 20]`; `None` if it is something else.
    pub fn written_list(&self) -> Option<String> {
        let Shape::List(nodes) = &self.node.shape else { return None };
        let texts = nodes.iter().map(|node| match &node.shape {
            Shape::Scalar(text) => Some(text.as_str()),
            _ => None,
        });
        let texts = texts.collect::<Option<Vec<_>>>()?;
        Some(shorten(&format!("[{}]", texts.join(", "))))
    }

    /// Reads a value by `read`, whose error names a valid value.
    pub fn read<T>(&self, read: fn(&str) -> Result<T, String>) -> Option<T> {
        let hint = || self.other_writing(|text| read(text).is_ok());
        read(&self.shown()).map_err(|error| self.fail(format!("{error}{}", hint()))).ok()
    }

    /// Reads a whole number within `range`; `what` names the kind of number with its article, for errors.
    pub fn number<T: TryFrom<u64> + fmt::Display>(&self, what: &str, range: RangeInclusive<u64>) -> Option<T> {
        let number = self.shown().parse().ok().filter(|number| range.contains(number));
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Some(number),
            None => {
                let hint = self.other_writing(|text| text.parse().is_ok_and(|number| range.contains(&number)));
                let (low, high) = (range.start(), range.end());
                let remedy = format!("write a whole number from {low} to {high}{hint}");
                self.refuse(format!("`{}` is not {what}; {remedy}", self.shown()))
            }
        }
    }

    /// Reads one of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.shown();
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Some(*value),
            None => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                let near = || nearest(&text, &words).filter(|_| words.len() > 1);
                let single = if let Shape::List(nodes) = &self.node.shape { single_text(nodes) } else { None };
                let hint = meant(hints::word(single.unwrap_or(&text), &words).or_else(near));
                self.refuse(format!("`{text}` is not one of the choices; write {}{hint}", one_of(&words)))
            }
        }
    }

    /// Reads `true` or `false`.
    pub fn flag(&self) -> Option<bool> {
        self.choice(&[("true", true), ("false", false)])
    }

    /// The items of a list; `example` shows one item in the error.
    pub fn list(&self, example: &str) -> Option<Vec<Item<'a>>> {
        let Shape::List(nodes) = &self.node.shape else {
            return self.refuse(format!("`{}` is not a list; write {example}", self.shown()));
        };
        let item = |(index, node)| Item { node, path: format!("{}[{index}]", self.path), report: self.report };
        Some(nodes.iter().enumerate().map(item).collect())
    }

    /// The entries of a mapping whose keys are values, such as class numbers; `example` shows one entry in the error.
    pub fn entries(&self, example: &str) -> Option<Vec<(Item<'a>, Item<'a>)>> {
        let Shape::Map(entries) = &self.node.shape else {
            return self.refuse(format!("`{}` is not a mapping; write {example}", self.shown()));
        };
        let entry = |(key, value): &'a (Node, Node)| {
            let key = Item { node: key, path: self.path.clone(), report: self.report };
            let value = Item { node: value, path: self.child_path(&key.shown()), report: self.report };
            (key, value)
        };
        Some(entries.iter().map(entry).collect())
    }

    /// The fields of a mapping; any key that is not in `keys` is an error.
    pub fn fields(&self, keys: &[impl AsRef<str>]) -> Option<Fields<'a>> {
        let names: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        self.fields_beside(&names, "", &[])
    }

    /// Reads fields like [`Item::fields`]. The error about a key of the mapping `inner`, one of `inner_keys`, names the
    /// place where it belongs.
    pub fn fields_beside(&self, keys: &[&str], inner: &str, inner_keys: &[&str]) -> Option<Fields<'a>> {
        let entries = self.entries(&format!("keys such as `{}:`", keys.first().copied().unwrap_or_default()))?;
        for (key, value) in &entries {
            let name = key.shown();
            if keys.contains(&name.as_str()) {
                continue;
            }
            if let Some(old) = renamed::find(&self.path, &name) {
                self.note_old_name(key, old, &entries);
                continue;
            }
            let near = nearest(&name, keys);
            key.fail(if inner_keys.contains(&name.as_str()) {
                format!("`{name}` is a key of `{inner}`; write `{inner}: {{{name}: {}}}`", value.shown())
            } else if let Some(near) = near {
                format!("unknown key `{name}`; did you mean `{near}`?")
            } else {
                format!("unknown key `{name}`; write {}", one_of(keys))
            });
        }
        Some(Fields { owner: self.clone(), entries })
    }

    /// Warns of a key with its old name, or refuses it beside the new one.
    fn note_old_name(&self, key: &Item<'a>, renamed: &renamed::Renamed, entries: &[(Item<'a>, Item<'a>)]) {
        let renamed::Renamed { old, new, until, .. } = renamed;
        if entries.iter().any(|(other, _)| other.shown() == *new) {
            key.fail(format!("`{old}` is the old name of `{new}`; keep one of them"));
        } else {
            key.warn(format!("`{old}` is called `{new}` now; write that, since version {until} refuses the old name"));
        }
    }

    fn child_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// The fields of a mapping.
pub struct Fields<'a> {
    owner: Item<'a>,
    entries: Vec<(Item<'a>, Item<'a>)>,
}

impl<'a> Fields<'a> {
    /// The mapping itself, for errors about the whole mapping.
    pub fn owner(&self) -> &Item<'a> {
        &self.owner
    }

    /// The value of `key`. A key without a value counts as absent.
    pub fn get(&self, key: &str) -> Option<Item<'a>> {
        let (_, value) = self.entries.iter().find(|(name, _)| self.owner.is_named(name.node, key))?;
        (!value.is_null()).then(|| value.clone())
    }

    /// The value of a required `key`; the error shows `example`, a valid line.
    pub fn required(&self, key: &str, example: &str) -> Option<Item<'a>> {
        self.get(key).or_else(|| self.owner.refuse(format!("`{key}` is missing; write e.g. `{example}`")))
    }

    /// The parsed value of `key`; `None` if it is absent or invalid.
    pub fn parse<T: FromStr<Err: fmt::Display>>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse()
    }
}

/// Returns `text` on one line, cut to [`SHOWN_CHARS`] characters.
fn shorten(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Lists words as alternatives: `a`, `b` or `c`.
pub fn one_of(words: &[&str]) -> String {
    let mut quoted: Vec<String> = words.iter().take(LISTED).map(|word| format!("`{word}`")).collect();
    if words.len() > LISTED {
        quoted.push("another".to_owned());
    }
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The text of a list of one plain value.
fn single_text(nodes: &[Node]) -> Option<&str> {
    match nodes {
        [Node { shape: Shape::Scalar(text), .. }] => Some(text),
        _ => None,
    }
}

/// The end of an error, with the value that was probably meant.
fn meant(value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!("; did you mean `{value}`?"))
}

/// The candidate that was probably meant by `word`; `None` if two are equally near, or if it has another number. Upper
/// and lower case are one.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = &word.to_lowercase();
    let distance = |word: &str, candidate: &str| distance(word, &candidate.to_lowercase());
    let close = |candidate: &&str| distance(word, candidate) <= 1 + candidate.len() / 4;
    let near = candidates.iter().copied().filter(close).min_by_key(|candidate| distance(word, candidate))?;
    let same = |other: &&&str| distance(word, other) == distance(word, near);
    let lower = near.to_lowercase();
    let is_other_number = *word != lower && has_digits(word) && has_digits(near) && letters(word).eq(letters(&lower));
    (candidates.iter().filter(same).count() == 1 && !is_other_number).then_some(near)
}

fn has_digits(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit())
}

fn letters(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|c| !c.is_ascii_digit())
}

/// Levenshtein distance, calculated in a single row.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substitution = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_suggested_and_a_far_one_is_not() {
        let keys = ["speed", "cable", "device"];
        assert_eq!(nearest("sped", &keys), Some("speed"));
        assert_eq!(nearest("devices", &keys), Some("device"));
        assert_eq!((nearest("SPEED", &keys), nearest("p1", &["P1", "up"])), (Some("speed"), Some("P1")));
        assert_eq!(nearest("color", &keys), None);
        assert_eq!(nearest("q1", &["p1", "r1"]), None, "either is as likely");
        assert_eq!(nearest("p9", &["p1", "up"]), None, "another number is no misspelling");
        assert_eq!(nearest("leaf1.pp1", &["leaf1.p1"]), Some("leaf1.p1"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn one_of_joins_words_with_commas_and_or() {
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
