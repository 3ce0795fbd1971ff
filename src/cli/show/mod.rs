//! `holdfast show`: prints tables of the state of a running switch.

mod buffer;
mod cells;
mod faults;
mod filter;
mod flow_control;
mod lags;
mod lcores;
mod lldp;
mod mirrors;
mod pages;
mod ports;
mod resources;
mod routing;
mod watch;

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use holdfast::api::Client;
use holdfast::api::client::ClientError;
use holdfast::api::model::State;
use serde_json::Value;

use self::filter::Filter;
use self::watch::Screen;
use super::asked::{Asked, check_port, class, failed, nothing_named};
use super::{Failure, print};

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast show [OPTIONS] <WHAT> [ROUTE]")]
pub struct Args {
    /// Part of the state to show
    #[arg(value_enum)]
    what: Option<What>,
    /// For routes: the address that the route covers, or the prefix that contains the routes
    route: Option<String>,
    /// For routes: only those of this source: local, neighbour, connected, static or kernel
    #[arg(long)]
    source: Option<String>,
    /// For routes: only ipv4 or ipv6
    #[arg(long)]
    family: Option<String>,
    /// For routes: at most so many [default: 1000]
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
    /// Only this port
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only this class with its group, priority and queue
    #[arg(long, value_name = "0-7", value_parser = class)]
    class: Option<u8>,
    /// Print the answer of the API as JSON
    #[arg(long)]
    json: bool,
    /// Repeat at this interval until Ctrl-C, with rates instead of counters
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = seconds)]
    watch: Option<Duration>,
    #[command(flatten)]
    switch: Asked,
}

/// Routes to show without `--limit`.
const USUAL_ROUTES: u32 = 1_000;

/// Minimum and maximum time between two readings, in seconds.
const SECONDS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// A switch that ends closes its connections first; its socket is gone after this time.
const MOMENT: Duration = Duration::from_millis(100);

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let seconds = seconds.filter(|seconds| SECONDS.contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is not an interval; write seconds from 0.1 to 86400, e.g. 2"))
}

/// The resources of the API that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Ports: links, received, sent and dropped frames
    Ports,
    /// Priority flow control: pauses sent and received, their number and time
    Pfc,
    /// The buffer: pools, and the shares of ports
    Buffers,
    /// Priority groups: use, limit, headroom
    Groups,
    /// Egress queues: depth, limit, scheduler
    Queues,
    /// Frames dropped, by reason
    Drops,
    /// ECN: thresholds and marked frames
    Ecn,
    /// The forwarding database
    Fdb,
    /// Link aggregation groups: members, partners, and why members are not active
    Lags,
    /// LLDP: neighbours, and settings of theirs that differ, with commands
    Lldp,
    /// Injected faults: state, frames hit
    Faults,
    /// Mirrors and sFlow: sessions, copied frames, errors of destinations
    Mirrors,
    /// Interfaces of the router: addresses, links
    Interfaces,
    /// Neighbours of the router: MAC addresses, states
    Neighbours,
    /// Routes in use: next hops and their state
    Routes,
    /// The PFC watchdog: storms
    Watchdog,
    /// Dataplane lcores: polls, gaps between them, rests
    Lcores,
    /// The running configuration, as it was written
    Config,
    /// Every setting that runs, written or by default, and whether a reload can change it
    Settings,
    /// Traffic classes: group, queue, lossless or not
    Classes,
    /// Virtual hosts
    Hosts,
    /// Flows of virtual hosts, end to end
    Flows,
    /// The last events
    Events,
    /// Recommended changes, from what the switch measured
    Advice,
    /// The version of the switch
    Version,
}

impl What {
    /// The name of the resource, on the command line and in the API.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether some of its rows belong to a class, group, priority or queue.
    fn has_classes(self) -> bool {
        match self {
            Self::Ports | Self::Pfc | Self::Groups | Self::Queues | Self::Drops | Self::Ecn | Self::Mirrors => true,
            Self::Watchdog | Self::Config | Self::Classes | Self::Flows => true,
            Self::Buffers | Self::Fdb | Self::Lags | Self::Lldp | Self::Faults | Self::Interfaces => false,
            Self::Neighbours | Self::Routes | Self::Lcores | Self::Hosts | Self::Events => false,
            Self::Advice | Self::Settings | Self::Version => false,
        }
    }
}

/// One reading: the filtered answer as JSON, and the state that it contains.
#[derive(Debug, Clone)]
struct Seen {
    json: Value,
    state: State,
}

/// The readings from which a table is made.
struct Looks<'a> {
    /// The reading before, if any. With it, counters are shown as rates.
    before: Option<&'a Seen>,
    now: &'a Seen,
}

impl Looks<'_> {
    fn state(&self) -> &State {
        &self.now.state
    }

    /// The state before, and the seconds since then.
    fn before(&self) -> Option<(&State, f64)> {
        let before = &self.before?.state;
        let ns = self.now.state.at_ns.saturating_sub(before.at_ns);
        (ns > 0).then_some((before, ns as f64 / 1e9))
    }

    /// A part of the answer that the state does not contain.
    fn part<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.now.json.get(name)?.clone()).ok()
    }
}

pub fn show(args: &Args) -> Result<(), Failure> {
    let what = args.what.ok_or_else(|| nothing_named::<What>("show"))?;
    check_class(args, what)?;
    let client = args.switch.client().map_err(failed)?;
    check_port(&client, args.port.as_deref())?;
    let query = query(args, what)?;
    let filter = Filter { port: args.port.clone(), class: args.class };
    let request = Request { what, query: &query, limit: args.limit.unwrap_or(USUAL_ROUTES) };
    let look = || request.send(&client, &filter);
    let render = |looks: &Looks<'_>| render(what, args.json, looks);
    let Some(period) = args.watch else {
        let seen = look().map_err(failed)?;
        return print(&render(&Looks { before: None, now: &seen }));
    };
    let mut screen = Screen::new(std::io::stdout().is_terminal() && !args.json);
    let mut before: Option<Seen> = None;
    loop {
        let seen = match look().or_else(|error| if before.is_some() { look_again(look) } else { Err(error) }) {
            Ok(seen) => seen,
            // The switch that was watched has ended.
            Err(ClientError::Nobody(_)) if before.is_some() => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let text = render(&Looks { before: before.as_ref(), now: &seen });
        if !screen.draw(&text)? {
            return Ok(());
        }
        before = Some(seen);
        std::thread::sleep(period);
    }
}

/// Refuses `--class` where no row has a class: the unfiltered rows would look like those of the class.
fn check_class(args: &Args, what: What) -> Result<(), Failure> {
    if args.class.is_none() || what.has_classes() {
        return Ok(());
    }
    let what = what.name();
    Err(Failure::usage(format!("`show {what}` has no rows of a class; remove --class")))
}

/// The parameters of the request for routes, except their number.
fn query(args: &Args, what: What) -> Result<String, Failure> {
    let kind = |of: &str| if of.contains('/') { "prefix" } else { "address" };
    let route = args.route.as_ref().map(|of| format!("{}={of}", kind(of)));
    let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
    let all = [route, named("source", &args.source), named("family", &args.family)];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if what == What::Routes || (all.is_empty() && args.limit.is_none()) {
        let is_plain = |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || "=.:/_-".contains(c));
        if let Some(wrong) = all.iter().find(|text| !is_plain(text)) {
            return Err(Failure::usage(format!("`{wrong}` selects no routes; write e.g. 10.1.2.3 or 10.1.0.0/16")));
        }
        return Ok(all.join("&"));
    }
    let what = what.name();
    Err(Failure::usage(format!("`show {what}` has no address, --source, --family or --limit; only `show routes` has")))
}

/// Reads once more after a moment. A switch that ends first closes the connection; the second attempt then finds no
/// socket.
fn look_again(look: impl Fn() -> Result<Seen, ClientError>) -> Result<Seen, ClientError> {
    std::thread::sleep(MOMENT);
    look()
}

/// A request to the socket of a switch.
struct Request<'a> {
    what: What,
    query: &'a str,
    /// Most routes of the answer.
    limit: u32,
}

impl Request<'_> {
    fn send(&self, client: &Client, filter: &Filter) -> Result<Seen, ClientError> {
        let &Self { what, query, limit } = self;
        let get = |query: &str| client.get_selected(&what.name(), query);
        let mut json = if what == What::Routes { pages::collect(query, limit, get)? } else { get(query)? };
        filter.apply(&mut json, &what.name());
        // The answer of another version is shown as far as it can be parsed.
        let state = serde_json::from_value(json.clone()).unwrap_or_default();
        Ok(Seen { json, state })
    }
}

fn render(what: What, json: bool, looks: &Looks<'_>) -> String {
    if json {
        return format!("{:#}\n", looks.now.json);
    }
    match what {
        What::Ports => ports::ports(looks),
        What::Pfc => flow_control::pfc(looks),
        What::Buffers => buffer::buffers(looks),
        What::Groups => buffer::groups(looks),
        What::Queues => buffer::queues(looks),
        What::Drops => flow_control::drops(looks),
        What::Ecn => flow_control::ecn(looks),
        What::Fdb => ports::fdb(looks),
        What::Lags => lags::lags(looks),
        What::Lldp => lldp::lldp(looks),
        What::Faults => faults::faults(looks),
        What::Mirrors => mirrors::mirrors(looks),
        What::Interfaces => routing::interfaces(looks),
        What::Neighbours => routing::neighbours(looks),
        What::Routes => routing::routes(looks),
        What::Watchdog => flow_control::watchdog(looks),
        What::Lcores => lcores::lcores(looks),
        What::Config => resources::config(looks),
        What::Settings => resources::settings(looks),
        What::Classes => resources::classes(looks),
        What::Hosts => resources::hosts(looks),
        What::Flows => resources::flows(looks),
        What::Events => resources::events(looks),
        What::Advice => resources::advice(looks),
        What::Version => resources::version(looks),
    }
}
