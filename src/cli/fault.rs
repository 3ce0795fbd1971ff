//! `holdfast fault`: orders faults on the ports of a running switch, and ends them.

use std::fmt::Write;

use holdfast::api::Client;
use holdfast::api::client::ClientError;
use holdfast::api::model::Faults;
use holdfast::config;

use super::asked::Asked;
use super::{Failure, print};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, clap::Subcommand)]
enum Order {
    /// Adds faults, all or none, and prints each with its number
    Add {
        /// Faults as the configuration writes them, such as '{lose: p1, one_in: 1000, for: 10s}'
        #[arg(required = true, value_name = "FAULT")]
        faults: Vec<String>,
        #[command(flatten)]
        switch: Asked,
    },
    /// Removes one fault
    Remove {
        /// Its number
        id: u64,
        #[command(flatten)]
        switch: Asked,
    },
    /// Removes all faults
    Clear {
        #[command(flatten)]
        switch: Asked,
    },
}

/// The answer that lists the faults.
#[derive(serde::Deserialize)]
struct Answer {
    faults: Faults,
}

pub fn fault(args: &Args) -> Result<(), Failure> {
    match &args.order {
        Order::Add { faults, switch } => {
            let request = request(faults)?;
            let client = switch.client()?;
            let ids = client.add_faults(&request).map_err(refused)?;
            print(&added(&client, &ids))
        }
        Order::Remove { id, switch } => removed(switch.client()?.remove_faults(Some(*id))),
        Order::Clear { switch } => removed(switch.client()?.remove_faults(None)),
    }
}

/// The request that orders `faults`. Each must be YAML by itself, so that errors do not concern the list around them.
fn request(faults: &[String]) -> Result<String, Failure> {
    if let [fault] = faults {
        config::check_fault_syntax("fault", fault).map_err(Failure::usage)?;
        return Ok(fault.clone());
    }
    for (index, fault) in faults.iter().enumerate() {
        config::check_fault_syntax(&format!("fault {}", index + 1), fault).map_err(Failure::usage)?;
    }
    // A comment at the end of a fault must not hide the comma.
    Ok(format!("[{}\n]", faults.join("\n,")))
}

/// The failure with which the switch has refused faults. Places of the request mean nothing to users of the command.
fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::Refused { error, remedy, is_input } => {
            let error = error.lines().map(without_place).collect::<Vec<_>>().join("\n");
            ClientError::Refused { error, remedy, is_input }.into()
        }
        other => other.into(),
    }
}

/// An error of the switch without its place in the request: `request:1:27: [1].mark: wrong` is `fault 2: mark: wrong`.
fn without_place(line: &str) -> String {
    let Some((place, remaining)) = line.strip_prefix("request:").and_then(|line| line.split_once(": ")) else {
        return line.to_owned();
    };
    if !place.chars().all(|c| c.is_ascii_digit() || c == ':') {
        return line.to_owned();
    }
    let indexed = remaining.strip_prefix('[').and_then(|remaining| remaining.split_once(']'));
    match indexed.and_then(|(index, remaining)| Some((index.parse::<usize>().ok()?, remaining))) {
        Some((index, remaining)) => {
            let remaining = remaining.strip_prefix('.').unwrap_or(remaining.trim_start_matches(": "));
            format!("fault {}: {remaining}", index + 1)
        }
        None => remaining.to_owned(),
    }
}

/// The faults `ids` with their texts, as far as the switch still has them.
fn added(client: &Client, ids: &[u64]) -> String {
    let listed = client.get::<Answer>("faults").map_or_else(|_| Vec::new(), |answer| answer.faults.list);
    let mut text = String::new();
    for id in ids {
        let fault = listed.iter().find(|fault| fault.id == *id);
        let order = fault.map_or_else(String::new, |fault| format!(": {}", fault.text));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "fault {id}{order}");
    }
    text
}

fn removed(count: Result<u64, ClientError>) -> Result<(), Failure> {
    match count? {
        1 => print("1 fault is removed\n"),
        count => print(&format!("{count} faults are removed\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_of(faults: &[&str]) -> Result<String, Failure> {
        request(&faults.iter().map(|fault| (*fault).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn broken_fault_is_refused_without_the_list_around_it() {
        assert_eq!(request_of(&["{lose: p1}"]).unwrap(), "{lose: p1}");
        assert_eq!(request_of(&["{lose: p1} # one", "{mark: p2}"]).unwrap(), "[{lose: p1} # one\n,{mark: p2}\n]");
        for (faults, name) in
            [(&["{lose: p1, one_in: 5"][..], "fault:1:"), (&["{mark: p1}", "{lose: p1"], "fault 2:1:")]
        {
            let Err(Failure::Usage(error)) = request_of(faults) else { panic!("{faults:?} are refused") };
            assert!(error.starts_with(name) && error.contains("not valid YAML"), "{error}");
            assert!(!error.contains("`]`") && !error.contains("']'"), "{error}");
        }
    }

    #[test]
    fn errors_of_the_switch_name_the_fault_and_no_place_of_the_request() {
        let of = |error: &str| {
            let remedy = "correct the request; no fault was added".to_owned();
            let refusal = ClientError::Refused { error: error.to_owned(), remedy, is_input: true };
            let Failure::Usage(text) = refused(refusal) else { panic!() };
            text
        };
        assert_eq!(
            of("request:1:8: lose: there is no port `p9`; write `p1`"),
            "lose: there is no port `p9`; write `p1`; correct the request; no fault was added"
        );
        assert_eq!(
            of("request:1:2: [0]: the fault has no kind\nrequest:2:9: [1].mark: there is no port `p9`\nand 2 more"),
            "fault 1: the fault has no kind\nfault 2: mark: there is no port `p9`\nand 2 more\ncorrect the request; no \
             fault was added"
        );
        assert_eq!(of("request: x"), "request: x; correct the request; no fault was added");
    }
}
