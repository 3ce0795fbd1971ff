//! `holdfast check`: checks a configuration and prints the plan or its errors.

use std::path::PathBuf;

use holdfast::config::{self, Config, ConfigErrors, EcnOrder};
use serde_json::{Value, json};

use super::plan::describe;
use super::routing;
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration file [default: the embedded incast]
    file: Option<PathBuf>,
    /// Print errors and warnings as JSON
    #[arg(long)]
    json: bool,
}

pub fn check(args: &Args) -> Result<(), Failure> {
    let outcome = args.file.as_ref().map_or_else(|| Ok(config::embedded()), |path| config::load(path));
    match (outcome, args.json) {
        (Ok(config), false) => print(&describe(&config)),
        (Ok(config), true) => print_json(&json!({
            "ok": true,
            "errors": [],
            "warnings": config.warnings,
            "outlook": summary(&config),
        })),
        (Err(errors), false) => Err(Failure::usage(errors)),
        (Err(errors), true) => {
            print_json(&json!({"ok": false, "errors": to_json(&errors), "warnings": []}))?;
            Err(Failure::Reported(2))
        }
    }
}

/// Consequences of the division of the buffer.
fn summary(config: &Config) -> Value {
    let order = |order: &EcnOrder| {
        json!({
            "class": order.class,
            "kmin_bytes": order.kmin.0,
            "xoff_bytes": order.xoff.0,
            "ecn_before_xoff": order.is_before(),
        })
    };
    json!({
        "headroom_policy": config.switch.buffer.policy.label(),
        "headroom_bytes": config.switch.buffer.headroom.to_bytes(config.switch.buffer.cell).0,
        "lossless_groups": config.switch.lossless_groups().len(),
        "lossless_fit": config.summary.lossless_fit,
        "small_packets_percent": config.summary.small_packets.percent(),
        "small_packets_cost_bytes": config.summary.small_packets_cost.map(|cost| cost.0),
        "ecn": config.summary.ecn.iter().map(order).collect::<Vec<_>>(),
        "routing": routing::to_json(config),
    })
}

fn to_json(errors: &ConfigErrors) -> Vec<Value> {
    let one = |error: &config::ConfigError| {
        json!({
            "file": error.source,
            "line": error.place.map(|place| place.line),
            "column": error.place.map(|place| place.column),
            "key": error.path,
            "message": error.message,
        })
    };
    errors.iter().map(one).collect()
}
