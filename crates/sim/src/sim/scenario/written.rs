//! The text of a scenario, kept so that a violation can be shrunk from it.

use std::path::{Path, PathBuf};

use super::variants::Variants;
use super::{Options, parse, switches};
use crate::config::error::ConfigErrors;
use crate::config::overrides::read_text;
use crate::config::yaml::read::{Item, Report};
use crate::config::yaml::{Node, Shape};
use crate::config::{self};
use crate::sim::spec::Scenario;

/// The content of a file, and its location.
#[derive(Debug, Clone)]
pub struct Written {
    source: String,
    text: String,
    /// Directory of files that the text names; `None`: it may name none.
    dir: Option<PathBuf>,
}

impl Written {
    /// Reads a file, exactly once: it may be a pipe.
    ///
    /// # Errors
    /// The reason for which the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ConfigErrors> {
        let text = read_text(path)?;
        Ok(Self { source: path.display().to_string(), text, dir: path.parent().map(Path::to_owned) })
    }

    /// Returns the content of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the scenarios in the text, like [`super::load()`].
    ///
    /// # Errors
    /// Everything that is wrong with the text.
    pub fn parse(&self, options: &Options) -> Result<Vec<(String, Scenario)>, ConfigErrors> {
        parse(&self.source, &self.text, self.dir.as_deref(), options)
    }

    /// Returns the tree of a variant, with counted items written out and files replaced by their content.
    pub(in crate::sim) fn whole(&self, variant: &str) -> Option<Node> {
        let root = config::tree(&self.source, &self.text).ok()?;
        let report = Report::new(&self.source);
        let variants = Variants::read(&Item::root(&root, &report));
        let (_, mut tree) = variants.iter().find(|(name, _)| name == variant)?;
        for switch in entry(&mut tree, "switches").map(items).unwrap_or_default() {
            inline(switch, self.dir.as_deref())?;
        }
        for workload in entry(&mut tree, "workloads").map(items).unwrap_or_default() {
            if let Some(sizes) = entry(workload, "sizes") {
                inline_table(sizes, self.dir.as_deref())?;
            }
        }
        Some(tree)
    }
}

/// Replaces `file:` by `config:` with the content of the file.
fn inline(switch: &mut Node, dir: Option<&Path>) -> Option<()> {
    let Shape::Map(entries) = &mut switch.shape else { return None };
    for (key, value) in entries {
        if let (Shape::Scalar(name), Shape::Scalar(path)) = (&mut key.shape, &value.shape)
            && name == "file"
        {
            let (_, root) = switches::read_file(&dir?.join(path)).ok()?;
            (*name, *value) = ("config".to_owned(), root);
        }
    }
    Some(())
}

/// Replaces `file:` by `table:` with the content of the file.
fn inline_table(sizes: &mut Node, dir: Option<&Path>) -> Option<()> {
    let Shape::Map(entries) = &mut sizes.shape else { return Some(()) };
    for (key, value) in entries {
        if let (Shape::Scalar(name), Shape::Scalar(path)) = (&mut key.shape, &mut value.shape)
            && name == "file"
        {
            let text = read_text(&dir?.join(&*path)).ok()?;
            let words: Vec<&str> = text.split_whitespace().collect();
            (*name, *path) = ("table".to_owned(), words.join(" "));
        }
    }
    Some(())
}

fn entry<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Shape::Map(entries) = &mut node.shape else { return None };
    let is = |name: &Node| matches!(&name.shape, Shape::Scalar(text) if text == key);
    entries.iter_mut().find(|(name, _)| is(name)).map(|(_, value)| value)
}

fn items(node: &mut Node) -> Vec<&mut Node> {
    match &mut node.shape {
        Shape::List(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    }
}
