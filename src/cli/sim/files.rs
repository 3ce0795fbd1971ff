//! Files that a run leaves.

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
}
