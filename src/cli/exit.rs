//! Exit codes of all commands, by one rule: 2 if the command line or its input is wrong, so that the same command fails
//! everywhere; 1 if it was refused or failed.

use std::fmt;
use std::process::ExitCode;

use holdfast::api::client::ClientError;
use holdfast::output::{self, Severity};

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A wrong command line, configuration or other input; one message per line.
    Usage(String),
    /// The command was refused, or failed.
    Run(String),
    /// A failure that needs no further message, with its exit code.
    Reported(u8),
}

impl Failure {
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure::Usage(message.to_string())
    }

    /// The failure with `message`, by whether the input is wrong.
    pub fn by_input(is_input: bool, message: impl fmt::Display) -> Self {
        if is_input { Failure::Usage(message.to_string()) } else { Failure::Run(message.to_string()) }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Run(_) => 1,
            Failure::Reported(code) => *code,
        }
    }

    /// Prints the message, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if let Failure::Usage(message) | Failure::Run(message) = self {
            let text: String = message.lines().map(|line| format!("error: {line}\n")).collect();
            // A failed write cannot be reported.
            let _ = output::tell_last(Severity::Error, &text);
        }
        ExitCode::from(self.code())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::by_input(error.is_of_input(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_input_ends_with_2_and_refusals_with_1() {
        let refused = |is_input| ClientError::Refused { error: "x".into(), remedy: "y".into(), is_input };
        assert_eq!([refused(true), refused(false)].map(|error| Failure::from(error).code()), [2, 1]);
        let errors = [ClientError::Off, ClientError::Nobody(Vec::new()), ClientError::Busy("s".into())];
        assert_eq!(errors.map(|error| Failure::from(error).code()), [2, 1, 1]);
        assert_eq!(Failure::Reported(130).code(), 130);
    }
}
