//! Files that a run leaves.

use std::collections::HashSet;
use std::path::Path;

use crate::cli::Failure;

/// A directory, and those above it.
pub fn make_dir(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| failed("directory", path, &error))
}

/// A file with this content; one that is there is replaced.
pub fn write(path: &Path, content: &str) -> Result<(), Failure> {
    std::fs::write(path, content).map_err(|error| failed("file", path, &error))
}

/// A file to write to; one that is there is emptied.
pub fn create(path: &Path) -> Result<std::fs::File, Failure> {
    std::fs::File::create(path).map_err(|error| failed("file", path, &error))
}

/// `name` as part of a path: letters, digits and dashes.
pub fn plain(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// The names in their order as parts of paths, none twice.
pub fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut name = |(number, name): (usize, &str)| {
        let own = plain(name);
        let own = if own.chars().any(|c| c.is_ascii_alphanumeric()) { own } else { (number + 1).to_string() };
        let others = (2..).map(|more| format!("{own}-{more}"));
        let mut candidates = std::iter::once(own.clone()).chain(others);
        candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or(own)
    };
    names.enumerate().map(&mut name).collect()
}

/// Why `path` could not be written.
pub fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    let text = error.to_string();
    let reason = text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason);
    Failure::Run(format!("{what} {} cannot be written: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_plain() {
        assert_eq!(plain("alpha 1/8, no pfc"), "alpha-1-8-no-pfc");
        assert_eq!(plain("../x"), "..-x");
    }

    #[test]
    fn no_two_variants_write_the_same_file() {
        let names = unique(["x 1/8", "x-1-8", "\u{3b1}", "\u{3b2}", "..", "x-1-8-2"].into_iter());
        assert_eq!(names, ["x-1-8", "x-1-8-2", "3", "4", "5", "x-1-8-2-2"]);
    }
}
