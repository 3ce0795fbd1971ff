//! The files that a run reads and writes: a written file must not be any other of them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::files::{dir_of, is_straight, part_of};
use crate::cli::Failure;

/// Identifies a file, whichever path leads to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    path: PathBuf,
    /// Device and inode, if the file exists.
    inode: Option<(u64, u64)>,
}

impl Identity {
    fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        let beside = || dir_of(path).canonicalize().ok().zip(path.file_name()).map(|(dir, name)| dir.join(name));
        let whole = path.canonicalize().ok().or_else(beside);
        Self {
            path: whole.unwrap_or_else(|| path.to_owned()),
            inode: metadata.map(|metadata| (metadata.dev(), metadata.ino())),
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.path == other.path || self.inode.is_some() && self.inode == other.inode
    }
}

/// The files of a run.
#[derive(Debug, Default)]
pub struct Claims {
    taken: Vec<(Identity, String)>,
}

impl Claims {
    /// Claims a file that is read; `what` describes it in messages.
    pub fn read(&mut self, path: &Path, what: &str) {
        self.taken.push((Identity::of(path), format!("{what} {}", path.display())));
    }

    /// Claims a file that the option `what` writes; an error if the run already uses that file.
    pub fn write(&mut self, path: &Path, what: &str) -> Result<(), Failure> {
        // Pipes and devices may have several writers.
        if is_straight(path) {
            return Ok(());
        }
        let named = format!("{what} {}", path.display());
        for name in [path.to_owned(), part_of(path)] {
            let identity = Identity::of(&name);
            if let Some((_, other)) = self.taken.iter().find(|(taken, _)| taken.is(&identity)) {
                return Err(Failure::usage(format!("`{named}` would overwrite {other}; name another file")));
            }
        }
        self.taken.push((Identity::of(path), format!("the output of `{named}`")));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_over_a_claimed_file_is_refused_under_any_path_alias() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("x.yaml"), "").unwrap();
        fs::write(at("s.csv"), "").unwrap();
        std::os::unix::fs::symlink("x.yaml", at("link")).unwrap();
        fs::hard_link(at("x.yaml"), at("hard")).unwrap();
        let mut claims = Claims::default();
        claims.read(&at("x.yaml"), "the scenario");
        for name in ["x.yaml", "sub/../x.yaml", "link", "hard"] {
            let Err(Failure::Usage(text)) = claims.write(&at(name), "--samples") else { panic!("{name}") };
            let (mine, other) = (at(name), at("x.yaml"));
            let expected =
                format!("`--samples {}` would overwrite the scenario {}; name", mine.display(), other.display());
            assert!(text.starts_with(&expected), "{text}");
        }
        claims.write(&at("new.csv"), "--samples").unwrap();
        claims.write(&at("s.csv"), "--samples").unwrap();
        for name in ["sub/../new.csv", "s.csv"] {
            let Err(Failure::Usage(text)) = claims.write(&at(name), "--trace") else { panic!("{name}") };
            assert!(text.contains("would overwrite the output of `--samples "), "{text}");
        }
        claims.write(&at("other.csv"), "--trace").unwrap();
        claims.read(&at("y.part"), "the configuration");
        assert!(claims.write(&at("y"), "--trace").is_err(), "its `.part` file is");
        for _ in 0..2 {
            claims.write(Path::new("/dev/null"), "--trace").unwrap();
        }
    }
}
