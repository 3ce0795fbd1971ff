//! Lists of fields on pages, from the schemas of types: names, kinds, and the texts of doc comments.

use serde_json::{Map, Value};

/// Fields that are shown again rather than referred to.
const FEW: usize = 4;

/// The schemas of types by name, and the path before a name in references.
pub struct Schemas<'a>(pub &'a Map<String, Value>);

impl Schemas<'_> {
    /// The schema behind references, without `null`; and whether it may be null.
    fn resolve<'a>(&'a self, schema: &'a Value) -> (&'a Value, bool) {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return self.resolve(&self.0[name]);
        }
        let is_null = |schema: &Value| schema["type"] == "null";
        if let Some(ways) = schema["anyOf"].as_array().filter(|ways| ways.iter().any(is_null)) {
            let way = ways.iter().find(|way| !is_null(way)).expect("a schema beside null");
            return (self.resolve(way).0, true);
        }
        let may_be_null = schema["type"].as_array().is_some_and(|types| types.contains(&"null".into()));
        (schema, may_be_null)
    }

    /// The kind of a field as pages write it before its text.
    fn kind(&self, schema: &Value) -> String {
        let (resolved, may_be_null) = self.resolve(schema);
        let is = |kind: &str| resolved["type"] == kind || resolved["type"][0] == kind;
        let word = if is("array") {
            "list"
        } else if is("boolean") {
            "bool"
        } else if is("string") || resolved["oneOf"][0]["type"] == "string" {
            "string"
        } else if is("object") {
            "object"
        } else {
            ""
        };
        match (word, may_be_null) {
            ("", false) => String::new(),
            ("", true) => "? ".to_owned(),
            (word, false) => format!("{word}: "),
            (word, true) => format!("{word}? "),
        }
    }

    /// The object that a field holds, or of which it holds a list.
    fn object<'a>(&'a self, schema: &'a Value) -> Option<&'a Value> {
        let (resolved, _) = self.resolve(schema);
        if let Some(items) = resolved.get("items") {
            return self.object(items);
        }
        resolved.get("properties").map(|_| resolved)
    }

    /// A line for each kind of the tagged objects that a field holds, with the names of their fields.
    fn kinds(&self, schema: &Value) -> String {
        let (resolved, _) = self.resolve(schema);
        let (items, _) = self.resolve(resolved.get("items").unwrap_or(resolved));
        let kinds = items["oneOf"].as_array().into_iter().flatten().filter(|kind| kind["type"] == "object");
        let line = |kind: &Value| {
            let names = kind["required"].as_array().expect("fields").iter().filter_map(Value::as_str);
            let (tags, names): (Vec<&str>, Vec<&str>) =
                names.partition(|name| kind["properties"][name]["const"].is_string());
            let tag = kind["properties"][tags[0]]["const"].as_str().expect("a tag");
            let text = kind["description"].as_str().unwrap_or_else(|| panic!("`{tag}` has no text"));
            format!("- `{tag}` (`{}`): {}\n", names.join("`, `"), phrase(text))
        };
        kinds.map(line).collect()
    }

    /// A line for each field of the object in `schema`, and for those of the objects in it.
    pub fn lists<'a>(&'a self, schema: &'a Value) -> String {
        let Some(object) = self.object(schema) else { return self.kinds(schema) };
        // The order of `required` is that of the type; the map of properties is sorted.
        let names = object["required"].as_array().expect("answers have all their fields");
        let fields = names.iter().map(|name| name.as_str().expect("a name"));
        let fields: Vec<(&str, &Value)> = fields.map(|name| (name, &object["properties"][name])).collect();
        let own = fields.iter().map(|(name, field)| {
            let text = field["description"].as_str().unwrap_or_else(|| panic!("`{name}` has no text"));
            let text = if repeats(name, text) { String::new() } else { phrase(text) };
            (*name, format!("{}{text}", self.kind(field)))
        });
        let own = lines(own);
        let mut known: Vec<(&str, String)> = Vec::new();
        let inner = |(name, field): &(&'a str, &Value)| {
            let lists = self.lists(field);
            if lists.is_empty() {
                return lists;
            }
            // An object may have all fields of one before it.
            let is_long = |(_, lines): &&(&str, String)| lines.lines().count() > FEW;
            let shown = known.iter().filter(is_long).fold(lists.clone(), |shown, (other, lines)| {
                shown.replace(lines.as_str(), &format!("- the fields of `{other}`\n"))
            });
            known.push((*name, lists));
            format!("\nIn `{name}`:\n\n{shown}")
        };
        own + &fields.iter().map(inner).collect::<String>()
    }
}

/// Whether the text of a field has no word that its name has not.
fn repeats(name: &str, text: &str) -> bool {
    let text = text.trim_end_matches('.').to_lowercase();
    let said = ["a", "an", "at", "is", "it", "its", "number", "of", "the", "which", "whether"];
    text.split(' ').all(|word| said.contains(&word) || name.split('_').any(|part| part == word))
}

/// The lines of fields with their texts. Fields without a text share a line.
fn lines<'a>(fields: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (name, text) in fields {
        match lines.last_mut() {
            Some((names, last)) if last.is_empty() && text.is_empty() => *names += &format!(", `{name}`"),
            _ => lines.push((format!("`{name}`"), text)),
        }
    }
    let line = |(names, text): &(String, String)| match text.trim_end_matches([' ', ':']) {
        "" => format!("- {names}\n"),
        text => format!("- {names}: {text}\n"),
    };
    lines.iter().map(line).collect()
}

/// A sentence as the part of a line: without its capital and its full stop.
pub fn phrase(text: &str) -> String {
    let text = text.replace('\n', " ");
    let text = text.trim_end_matches('.');
    let (before, text) = text.split_at(usize::from(text.starts_with('[')));
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if first.is_uppercase() && !letters.clone().next().is_some_and(char::is_uppercase) => {
            format!("{before}{}{}", first.to_lowercase(), letters.as_str())
        }
        _ => format!("{before}{text}"),
    }
}

/// The page with `part` between the markers of `name`.
pub fn with_part(page: &str, name: &str, part: &str) -> String {
    let marker = format!("<!--begin:{name}-->\n");
    let (before, old) = page.split_once(&marker).unwrap_or_else(|| panic!("no {marker}"));
    let (_, after) = old.split_once("<!--end-->\n").unwrap_or_else(|| panic!("no end of {name}"));
    format!("{before}{marker}{part}<!--end-->\n{after}")
}

/// Compares the page `path` with its fresh text, or writes it with `UPDATE_DOCS=1`.
#[track_caller]
pub fn hold(path: &str, page: &str, fresh: &str) {
    if fresh == page {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "parts of {path} differ from the texts in the code; if those are right: \
         UPDATE_DOCS=1 cargo test --no-default-features --test config pages::"
    );
    std::fs::write(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path), fresh).expect("the page written");
}
