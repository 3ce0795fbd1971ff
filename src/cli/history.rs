//! `holdfast history`: the configurations by which a running switch ran.

use holdfast::api::model::Past;
use holdfast::text::table::Table;
use holdfast::text::time::utc;

use serde::Deserialize;

use super::asked::Asked;
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of a configuration, to print its text [default: list all]
    number: Option<u64>,
    /// Print the answer of the API as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: Asked,
}

/// The answer of `/v1/history`.
#[derive(Debug, Deserialize)]
struct Answer {
    history: Vec<Past>,
}

pub fn history(args: &Args) -> Result<(), Failure> {
    let client = args.switch.client()?;
    if let Some(number) = args.number {
        let past = client.past(number)?;
        return if args.json { print_json(&serde_json::to_value(past).unwrap_or_default()) } else { print(&past.text) };
    }
    if args.json {
        return print_json(&client.get_selected("history", "")?);
    }
    print(&table(&client.get::<Answer>("history")?.history))
}

/// The newest first. The settings that changed stand below each.
fn table(all: &[Past]) -> String {
    let mut table = Table::new(">number | since | by | cause | source | >changed");
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    for past in all.iter().rev() {
        table.row([
            past.number.to_string(),
            utc(past.began_unix_ns),
            or_dash(&past.user),
            past.cause.clone(),
            past.source.clone(),
            past.differences.len().to_string(),
        ]);
    }
    let mut text = table.to_string();
    for past in all.iter().rev().filter(|past| !past.differences.is_empty()) {
        text += &format!("\nnumber {}:\n", past.number);
        text.extend(past.differences.iter().map(|line| format!("  {line}\n")));
    }
    text
}
