//! Writes a tree as YAML that is read as the same tree.

use std::fmt::Write;

use crate::config::yaml::{Node, Shape};

/// Maximum number of characters in a line.
const WIDTH: usize = 110;

/// Returns the text of a document whose root is a mapping.
pub fn yaml(root: &Node) -> String {
    let mut out = String::new();
    block(&mut out, root, 0);
    out
}

/// Writes a mapping or list, with at least one line per entry, each indented by `indent` spaces.
fn block(out: &mut String, node: &Node, indent: usize) {
    match &node.shape {
        Shape::Map(entries) => {
            for (key, value) in entries {
                let _ = write!(out, "{:indent$}{}:", "", flow(key));
                behind(out, value, indent);
            }
        }
        Shape::List(items) => {
            for item in items {
                let line = flow(item);
                if indent + 2 + line.len() <= WIDTH || !is_block(item) {
                    let _ = writeln!(out, "{:indent$}- {line}", "");
                } else {
                    let mut inner = String::new();
                    block(&mut inner, item, indent + 2);
                    // The dash takes the place of the first line's indentation.
                    let _ = write!(out, "{:indent$}- {}", "", inner.trim_start());
                }
            }
        }
        Shape::Null | Shape::Scalar(_) => {
            let _ = writeln!(out, "{:indent$}{}", "", flow(node));
        }
    }
}

/// Writes the value after a key: on the same line if it fits. Lists of mappings at the top level have a line per item.
fn behind(out: &mut String, value: &Node, indent: usize) {
    let line = flow(value);
    let is_table = indent == 0 && matches!(&value.shape, Shape::List(items) if items.iter().any(is_block));
    if is_block(value) && (is_table || indent + line.len() > WIDTH) {
        out.push('\n');
        block(out, value, indent + 2);
    } else {
        let _ = writeln!(out, " {line}");
    }
}

/// Whether a node can be written in several lines.
fn is_block(node: &Node) -> bool {
    match &node.shape {
        Shape::Null | Shape::Scalar(_) => false,
        Shape::List(items) => !items.is_empty(),
        Shape::Map(entries) => !entries.is_empty(),
    }
}

/// Returns the node on one line.
fn flow(node: &Node) -> String {
    match &node.shape {
        Shape::Null => "null".to_owned(),
        Shape::Scalar(text) if is_plain(text) => text.clone(),
        // YAML reads strings quoted as in JSON.
        Shape::Scalar(text) => serde_json::Value::from(text.as_str()).to_string(),
        Shape::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Shape::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", flow(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Whether a text can be written without quotes.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./%".contains(c))
        && !text.eq_ignore_ascii_case("null")
}
