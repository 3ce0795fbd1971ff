//! `holdfast why-dropped`: explains the drops and pauses of a running switch.

use holdfast::api::model::{Why, age};
use holdfast::text::format::{frames, grouped};
use serde::Deserialize;

use super::asked::{Asked, check_port, class};
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this port: where frames came in, or would have left if their queue refused them
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only this traffic class
    #[arg(long, value_name = "0-7", value_parser = class)]
    class: Option<u8>,
    /// Print the answer of the API as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: Asked,
}

/// The answer of `/v1/why`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    why: Vec<Why>,
}

pub fn why(args: &Args) -> Result<(), Failure> {
    let client = args.switch.client()?;
    check_port(&client, args.port.as_deref())?;
    let mut answers = client.get::<Answer>("why")?.why;
    answers.retain(|why| {
        args.port.as_ref().is_none_or(|port| *port == why.port) && (args.class.is_none() || args.class == why.class)
    });
    if args.json {
        return print_json(&serde_json::json!({ "why": answers }));
    }
    if answers.is_empty() {
        return print("no frames were dropped and no peers were paused\n");
    }
    print(&answers.iter().map(section).collect::<Vec<_>>().join("\n"))
}

/// The paragraph about one port and class.
fn section(why: &Why) -> String {
    let class = match why.class {
        Some(class) => format!("class {class} ({})", if why.lossless { "lossless" } else { "lossy" }),
        None => "frames without a class".to_owned(),
    };
    let xoffs = if why.xoffs == 0 { String::new() } else { format!(", its peer paused {} times", grouped(why.xoffs)) };
    let mut text = format!("{}, {class}{xoffs}\n", why.port);
    for reason in &why.reasons {
        text += &format!("  {} dropped, {}: {}\n", frames(reason.frames), reason.reason, reason.meaning);
        if !reason.remedy.is_empty() {
            text += &format!("    remedy: {}\n", reason.remedy);
        }
    }
    for decision in &why.decisions {
        text += &format!("  {}: {}\n", age(decision.age_ns), decision.text);
    }
    text
}
