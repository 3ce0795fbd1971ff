//! Refused command lines. clap's usage line would show an argument that it has just refused as if it were valid.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use holdfast::output;

use super::Failure;

/// Prints the error, and returns the exit code. `--help` and `--version` are such errors too, and end with 0.
pub fn refuse(error: &clap::Error) -> ExitCode {
    match conflict(error).or_else(|| version(error)) {
        Some(sentence) => Failure::Usage(sentence).report(),
        None if error.use_stderr() && output::is_journal() => {
            let text = error.to_string();
            Failure::usage(text.trim_start_matches("error: ")).report()
        }
        None => error.exit(),
    }
}

/// The sentence about arguments that exclude each other; `None`: the error is another one.
fn conflict(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let names = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    let (own, others) = (names(ContextKind::InvalidArg), names(ContextKind::PriorArg));
    let own = own.first()?;
    match &others[..] {
        [] => None,
        [other] if other == own => Some(format!("`{own}` is given more than once; keep one of them")),
        others => Some(format!("`{own}` cannot be used with `{}`; remove one or the other", others.join("` and `"))),
    }
}

/// The sentence about the command `version`, for which there are other words; `None`: the error is another one.
fn version(error: &clap::Error) -> Option<String> {
    let is_version = |value: &ContextValue| matches!(value, ContextValue::String(name) if name == "version");
    let is_meant = error.kind() == ErrorKind::InvalidSubcommand
        && error.get(ContextKind::InvalidSubcommand).is_some_and(is_version);
    is_meant.then(|| {
        "there is no command `version`; write `holdfast --version`, or `holdfast show version` for a running switch"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn command_version_is_refused_with_the_words_to_write() {
        let of = |line: &str| version(&Cli::try_parse_from(line.split(' ')).expect_err("it is refused"));
        assert!(of("holdfast version").is_some_and(|text| text.contains("write `holdfast --version`")));
        assert_eq!((of("holdfast versions"), of("holdfast --version")), (None, None));
    }

    #[test]
    fn arguments_that_exclude_each_other_are_named_without_usage_line() {
        let of = |line: &str| {
            conflict(&Cli::try_parse_from(line.split(' ')).expect_err("it is refused")).unwrap_or_default()
        };
        assert_eq!(
            of("holdfast sim --hpcc c.txt x.yaml"),
            "`--hpcc <CONFIG>` cannot be used with `[SCENARIO]`; remove one or the other"
        );
        assert_eq!(
            of("holdfast sim --random --threads 2"),
            "`--random` cannot be used with `--threads <N>`; remove one or the other"
        );
        assert_eq!(
            of("holdfast sim x.yaml --seed 1 --seed 2"),
            "`--seed <SEED>` is given more than once; keep one of them"
        );
        assert_eq!(of("holdfast sim --nothing"), "", "clap's own text is good");
    }
}
