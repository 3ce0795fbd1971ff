//! `holdfast doctor`: checks the machine and prints the findings.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use holdfast::api::client::ClientError;
use holdfast::api::model::{Pfc, PfcPriority};
use holdfast::build;
use holdfast::config;
use holdfast::doctor::{Finding, Level, Needs, Peer, findings, probe, script};
use holdfast::pfc::Observed;
use holdfast::text::table::Table;
use serde_json::{Value, json};

use super::asked::Asked;
use super::{Failure, print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration file to check the machine for [default: checks that apply to every switch]
    file: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Mend the findings, so that the machine stays mended after a reboot; needs --dry-run
    #[arg(long, requires = "dry_run")]
    fix: bool,
    /// Print the commands of --fix as a shell script, and change nothing
    #[arg(long, requires = "fix", conflicts_with = "json")]
    dry_run: bool,
    /// Read /sys, /proc and /dev below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    #[command(flatten)]
    switch: Asked,
}

/// The answer of `/v1/pfc`.
#[derive(Debug, serde::Deserialize)]
struct Answer {
    pfc: Vec<Pfc>,
}

pub fn doctor(args: &Args) -> Result<(), Failure> {
    let needs = args.file.as_ref().map(|path| config::load(path).map(|config| needs(&config))).transpose();
    let needs = needs.map_err(Failure::usage)?;
    let mut facts = probe(&args.root);
    facts.dpdk = dpdk_version();
    if args.root == Path::new("/") {
        let peer = ssh_peer().filter(|peer| !facts.reach.peers.contains(peer));
        facts.reach.peers.extend(peer);
    }
    let linked = build::drivers();
    if !linked.is_empty() {
        facts.drivers = linked.into_iter().map(str::to_owned).collect();
        facts.drivers_are_linked = true;
    }
    let mut unasked = None;
    match peers(args) {
        Ok(peers) => (facts.has_switch, facts.peers) = (peers.is_some(), peers.unwrap_or_default()),
        Err(finding) => unasked = finding,
    }
    let findings: Vec<Finding> = findings(&facts, needs.as_ref()).into_iter().chain(unasked).collect();
    if args.dry_run {
        return print(&script(&findings));
    }
    if args.json {
        print_json(&to_json(&findings))?
    } else {
        print(&to_text(&findings))?
    }
    if count(&findings, Level::Bad) == 0 { Ok(()) } else { Err(Failure::Reported(1)) }
}

/// Asks the running switch, if there is one, for its peers at XOFF.
///
/// # Errors
/// The finding that it did not answer; `None`: no switch runs.
fn peers(args: &Args) -> Result<Option<Vec<Peer>>, Option<Finding>> {
    let is_here = args.root == Path::new("/") || args.switch.is_named();
    let ask = || args.switch.client()?.get::<Answer>("pfc");
    let answer = if is_here { ask() } else { return Ok(None) };
    let answer = answer.map_err(|error| match error {
        ClientError::Off => None,
        ClientError::Nobody(_) if !args.switch.is_named() => None,
        error => Some(Finding {
            level: if matches!(error, ClientError::Nobody(_)) { Level::Ok } else { Level::Warn },
            place: "running switch".to_owned(),
            what: "its peers at XOFF are not known".to_owned(),
            remedy: Some(error.to_string()),
            fix: Vec::new(),
        }),
    })?;
    let peer = |port: &str, row: &PfcPriority| Peer {
        port: port.to_owned(),
        priority: row.priority,
        observed: Observed::from_label(&row.observed),
        stops: row.stops,
        late_xoffs: row.late_pauses,
        late_frames: row.late_frames,
    };
    Ok(Some(answer.pfc.iter().flat_map(|pfc| pfc.priorities.iter().map(|row| peer(&pfc.port, row))).collect()))
}

#[cfg(feature = "dpdk")]
fn needs(config: &config::Config) -> Needs {
    let needs = Needs::new(config, None);
    let memory_mib = Some(holdfast::control::memory_mib(config, needs.huge));
    Needs { memory_mib, ..needs }
}

#[cfg(not(feature = "dpdk"))]
fn needs(config: &config::Config) -> Needs {
    Needs::new(config, None)
}

#[cfg(feature = "dpdk")]
fn dpdk_version() -> Option<String> {
    Some(holdfast::dpdk::version())
}

#[cfg(not(feature = "dpdk"))]
fn dpdk_version() -> Option<String> {
    None
}

/// The other end of the session in which this runs; its port may be another than that of ssh.
fn ssh_peer() -> Option<IpAddr> {
    std::env::var("SSH_CONNECTION").ok()?.split(' ').next()?.parse().ok()
}

fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

fn to_text(findings: &[Finding]) -> String {
    let mut table = Table::new("level | where | finding");
    for finding in findings {
        table.row([finding.level.label().to_owned(), finding.place.clone(), finding.what.clone()]);
        if let Some(remedy) = &finding.remedy {
            table.row([String::new(), String::new(), format!("> {remedy}")]);
        }
    }
    let [bad, warn, ok] = [Level::Bad, Level::Warn, Level::Ok].map(|level| count(findings, level));
    let can_fix = findings.iter().any(|finding| finding.level != Level::Ok && !finding.fix.is_empty());
    let hint = "`--fix --dry-run` prints commands that last beyond a reboot\n";
    format!("{table}\n{bad} bad, {warn} to check, {ok} ok\n{}", if can_fix { hint } else { "" })
}

fn to_json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        json!({
            "level": finding.level.label(),
            "where": finding.place,
            "what": finding.what,
            "remedy": finding.remedy,
            "fix": finding.fix,
        })
    };
    json!({
        "format": 1,
        "bad": count(findings, Level::Bad),
        "warn": count(findings, Level::Warn),
        "findings": findings.iter().map(one).collect::<Vec<_>>(),
    })
}
