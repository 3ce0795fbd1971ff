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
mod options;
mod pages;
mod ports;
mod resources;
mod routing;
mod vlans;
mod watch;

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use holdfast::api::Client;
use holdfast::api::client::ClientError;
use holdfast::api::model::{Interfaces, State};
use serde_json::Value;

use self::filter::Filter;
use self::watch::Screen;
use super::asked::{Asked, class, nothing_named, port_to_show};
use super::baseline::{self, Baseline};
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
    /// For routes: also local, neighbour and drop entries; an address or --source shows them too
    #[arg(long)]
    all: bool,
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
    /// The forwarding database (also `mac`)
    #[value(alias = "mac")]
    Fdb,
    /// VLANs: ports, stations, interface of the router
    #[value(alias = "vlan")]
    Vlans,
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
    /// Neighbours of the router: MAC addresses, states (also `arp`)
    #[value(alias = "arp")]
    Neighbours,
    /// Routes in use: next hops and their state (also `route`)
    #[value(alias = "route")]
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

    /// Whether its rows belong to interfaces, which have ports.
    fn has_interfaces(self) -> bool {
        matches!(self, Self::Neighbours | Self::Routes)
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

    /// The time from which the counters count, for a line below their table.
    fn since(&self) -> String {
        let at_ns = self.now.state.at_ns;
        match self.now.json.get(baseline::SINCE).and_then(Value::as_str) {
            Some(time) => format!("since {time}, {}", cells::duration(at_ns)),
            None => cells::since(at_ns),
        }
    }

    /// A part of the answer that the state does not contain.
    fn part<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.now.json.get(name)?.clone()).ok()
    }
}

pub fn show(args: &Args) -> Result<(), Failure> {
    let what = args.what.ok_or_else(|| nothing_named::<What>("show"))?;
    options::check(args, what)?;
    let query = query(args)?;
    let client = args.switch.client()?;
    let filter = filter(args, what, &client)?;
    let is_counted = Baseline::has(&what.name()) && !args.json;
    let baseline = if is_counted { Baseline::find(&client)? } else { None };
    let selection = Selection { what, query, limit: args.limit.unwrap_or(USUAL_ROUTES), filter, baseline };
    let look = || selection.look(&client);
    let render = |looks: &Looks<'_>| render(what, args.json, looks);
    let Some(period) = args.watch else {
        let seen = look()?;
        return print(&render(&Looks { before: None, now: &seen }));
    };
    let mut screen = Screen::new(std::io::stdout().is_terminal() && !args.json);
    let mut before: Option<Seen> = None;
    loop {
        let seen = match look().or_else(|error| if before.is_some() { look_again(look) } else { Err(error) }) {
            Ok(seen) => seen,
            // The switch that was watched has ended.
            Err(ClientError::Nobody(_)) if before.is_some() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let text = render(&Looks { before: before.as_ref(), now: &seen });
        if !screen.draw(&text)? {
            return Ok(());
        }
        before = Some(seen);
        std::thread::sleep(period);
    }
}

/// The rows that the options select.
fn filter(args: &Args, what: What, client: &Client) -> Result<Filter, Failure> {
    let port = args.port.as_deref().map(|name| port_to_show(client, name, what == What::Fdb)).transpose()?;
    let interfaces = match &port {
        Some(port) if what.has_interfaces() => Some(interfaces_of(client, port)?),
        _ => None,
    };
    let is_short = what == What::Routes && !args.all && args.source.is_none() && !is_address(args.route.as_deref());
    Ok(Filter { port, class: args.class, interfaces, is_short })
}

/// Whether the route to show is the one that covers an address.
fn is_address(route: Option<&str>) -> bool {
    route.is_some_and(|route| !route.contains('/'))
}

/// The interfaces of the router that `port` carries.
fn interfaces_of(client: &Client, port: &str) -> Result<Vec<String>, ClientError> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Answer {
        interfaces: Interfaces,
    }
    let interfaces = client.get::<Answer>("interfaces")?.interfaces.entries.into_iter();
    let carried = interfaces.filter(|interface| interface.ports.iter().any(|other| other == port));
    Ok(carried.map(|interface| interface.interface).collect())
}

/// The parameters of the request for routes, except their number.
fn query(args: &Args) -> Result<String, Failure> {
    let kind = |of: &str| if is_address(Some(of)) { "address" } else { "prefix" };
    let route = args.route.as_ref().map(|of| format!("{}={of}", kind(of)));
    let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
    let all = [route, named("source", &args.source), named("family", &args.family)];
    let all: Vec<String> = all.into_iter().flatten().collect();
    let is_plain = |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || "=.:/_-".contains(c));
    if let Some(wrong) = all.iter().find(|text| !is_plain(text)) {
        return Err(Failure::usage(format!("`{wrong}` selects no routes; write e.g. 10.1.2.3 or 10.1.0.0/16")));
    }
    Ok(all.join("&"))
}

/// Reads once more after a moment. A switch that ends first closes the connection; the second attempt then finds no
/// socket.
fn look_again(look: impl Fn() -> Result<Seen, ClientError>) -> Result<Seen, ClientError> {
    std::thread::sleep(MOMENT);
    look()
}

/// The part of the state to show.
struct Selection {
    what: What,
    /// Parameters of a request for routes, and their number.
    query: String,
    limit: u32,
    filter: Filter,
    /// The counters from which this user counts.
    baseline: Option<Baseline>,
}

impl Selection {
    fn look(&self, client: &Client) -> Result<Seen, ClientError> {
        let name = self.what.name();
        let get = |query: &str| {
            let mut answer = client.get_selected(&name, query)?;
            self.filter.apply(&mut answer, &name);
            Ok(answer)
        };
        let is_paged = self.what == What::Routes;
        let mut json = if is_paged { pages::collect(&self.query, self.limit, get)? } else { get(&self.query)? };
        if let Some(baseline) = &self.baseline {
            baseline.subtract(&name, &mut json);
        }
        // The answer of another version is shown as far as it can be parsed.
        let mut state: State = serde_json::from_value(json.clone()).unwrap_or_default();
        if self.what == What::Ports && self.filter.class.is_some() {
            state.ports.iter_mut().for_each(ports::take_classes);
        }
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
        What::Vlans => vlans::vlans(looks),
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
