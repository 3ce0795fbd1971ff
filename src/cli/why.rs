//! `holdfast why-dropped`.

use holdfast::api::model::{Why, age};
use holdfast::stats::format::{frames, grouped};
use serde::Deserialize;

use super::asked::{Asked, failed};
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this port: where frames came in, or would have left if their queue refused them
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only this traffic class
    #[arg(long, value_name = "0-7", value_parser = clap::value_parser!(u8).range(0..8))]
    class: Option<u8>,
    /// Print what the API answers
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: Asked,
}

/// What `/v1/why` answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    why: Vec<Why>,
}

/// What is asked of the ports, to tell a wrong name from one without drops.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ports {
    ports: Vec<holdfast::api::model::Port>,
}

pub fn why(args: &Args) -> Result<(), Failure> {
    let client = args.switch.client().map_err(failed)?;
    if let Some(name) = &args.port {
        let ports = client.get::<Ports>("ports").map_err(failed)?.ports;
        if !ports.iter().any(|port| port.port == *name) {
            let names: Vec<&str> = ports.iter().map(|port| port.port.as_str()).collect();
            return Err(Failure::usage(format!("there is no port `{name}`; the switch has {}", names.join(", "))));
        }
    }
    let mut told = client.get::<Answer>("why").map_err(failed)?.why;
    told.retain(|why| {
        args.port.as_ref().is_none_or(|port| *port == why.port) && (args.class.is_none() || args.class == why.class)
    });
    if args.json {
        return print_json(&serde_json::json!({ "why": told }));
    }
    if told.is_empty() {
        return print("nothing was dropped and nobody was stopped here\n");
    }
    print(&told.iter().map(section).collect::<Vec<_>>().join("\n"))
}

/// One port and class.
fn section(why: &Why) -> String {
    let class = match why.class {
        Some(class) => format!("class {class} ({})", if why.lossless { "lossless" } else { "lossy" }),
        None => "frames without a class".to_owned(),
    };
    let xoffs =
        if why.xoffs == 0 { String::new() } else { format!(", its peer told to stop {} times", grouped(why.xoffs)) };
    let mut text = format!("{}, {class}{xoffs}\n", why.port);
    for reason in &why.reasons {
        text += &format!("  {} dropped, {}: {}\n", frames(reason.frames), reason.reason, reason.meaning);
        if !reason.remedy.is_empty() {
            text += &format!("    remedy: {}\n", reason.remedy);
        }
    }
    for told in &why.decisions {
        text += &format!("  {}: {}\n", age(told.age_ns), told.text);
    }
    text
}
