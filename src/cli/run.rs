//! `holdfast run`: runs the switch.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use holdfast::api::Socket;
use holdfast::api::reloads::Given;
use holdfast::api::socket::VARIABLE;
use holdfast::config::{self, Config, ConfigErrors, Overrides};
use holdfast::mmu::HeadroomPolicy;
use holdfast::output::{self, Severity};
use holdfast::pfc::PfcMode;
use holdfast::units::Nanos;

use clap::ValueEnum;

use super::Failure;

/// Run time of the embedded configuration.
const EMBEDDED_DURATION: Duration = Duration::from_secs(10);

/// Times between two status lines.
const SHORTEST_STATUS: Duration = Duration::from_millis(100);
const LONGEST_STATUS: Duration = Duration::from_secs(86_400);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration file [default: the embedded incast]
    file: Option<PathBuf>,
    /// Run time, e.g. 10s; 0 runs until Ctrl-C [default: 10s without a file, 0 with one]
    #[arg(long, value_name = "TIME")]
    duration: Option<RunTime>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// PFC of all ports, instead of the configuration's: on generates and obeys it for the lossless priorities (an
    /// asymmetric port stays so), asymmetric obeys it for all eight
    #[arg(long, value_enum)]
    pfc: Option<Pfc>,
    /// Headroom policy of all ports, instead of the configuration's
    #[arg(long, value_enum, value_name = "POLICY")]
    headroom: Option<Headroom>,
    /// Dataplane lcores, instead of the configuration's; the ports are assigned to them in turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(config::MAX_LCORES)))]
    lcores: Option<u8>,
    /// Address of the metrics server, or off, instead of the configuration's
    #[arg(long, value_name = "ADDRESS|off")]
    metrics: Option<Metrics>,
    /// Socket of the API, or off, instead of the configuration's [default: as configured, else
    /// $XDG_RUNTIME_DIR/holdfast.sock, or root's /run/holdfast/holdfast.sock]
    #[arg(long, value_name = "PATH|off", env = VARIABLE, hide_env_values = true)]
    socket: Option<Socket>,
    /// Wait at most this long until the interfaces of af_packet and af_xdp ports exist, e.g. 60s
    #[arg(long, value_name = "TIME")]
    wait_for_interfaces: Option<RunTime>,
    /// Directory in which the switch keeps the configurations by which it ran [default: in memory]
    #[arg(long, value_name = "DIRECTORY", env = "STATE_DIRECTORY", hide_env_values = true)]
    state: Option<PathBuf>,
    /// Print the status once in this time, or off [default: on a terminal a live picture, elsewhere off]
    #[arg(long, value_name = "TIME|off")]
    status: Option<Interval>,
    /// Form of events on standard error
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    events: Events,
    /// Print more, including the log of DPDK
    #[arg(long, short)]
    verbose: bool,
    /// Exit with 1 if a lossless class lost a frame or was starved
    #[arg(long)]
    fail_on_loss: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Pfc {
    Off,
    #[value(alias = "on")]
    Software,
    Asymmetric,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Headroom {
    Independent,
    SharedPool,
    Dynamic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Events {
    // A line for people.
    Text,
    // The record of `GET /v1/events` as JSON, one a line.
    Json,
}

/// The time between two status lines; `None`: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval(Option<Duration>);

impl FromStr for Interval {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let RunTime(time) = text.parse().map_err(|_| format!("`{text}` is not a time; write e.g. 10s, or off"))?;
        let is_usable = (SHORTEST_STATUS..=LONGEST_STATUS).contains(&time);
        let wrong = || format!("{text} is not between {SHORTEST_STATUS:?} and 1 day; write e.g. 10s, or off");
        is_usable.then_some(Self(Some(time))).ok_or_else(wrong)
    }
}

/// A time to run; zero means no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunTime(Duration);

impl FromStr for RunTime {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        // Users try a bare number first; it can only mean seconds.
        if let Ok(seconds) = text.parse::<u32>() {
            return Ok(Self(Duration::from_secs(seconds.into())));
        }
        text.parse::<Nanos>().map(|time| Self(Duration::from_nanos(time.0))).map_err(|error| error.to_string())
    }
}

/// The address of the metrics server, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Metrics(Option<SocketAddr>);

impl FromStr for Metrics {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let wrong = |_| format!("`{text}` is not an address with a port; write e.g. 127.0.0.1:9464 or off");
        text.parse().map(|address| Self(Some(address))).map_err(wrong)
    }
}

impl Args {
    fn overrides(&self) -> Overrides {
        Overrides {
            pfc: self.pfc.map(|pfc| match pfc {
                Pfc::Off => PfcMode::Off,
                Pfc::Software => PfcMode::Symmetric,
                Pfc::Asymmetric => PfcMode::Asymmetric,
            }),
            buffer: None,
            headroom: self.headroom.map(|headroom| match headroom {
                Headroom::Independent => HeadroomPolicy::Independent,
                Headroom::SharedPool => HeadroomPolicy::SharedPool,
                Headroom::Dynamic => HeadroomPolicy::Dynamic,
            }),
            lcores: self.lcores,
            simulated: false,
        }
    }

    /// The options that change the configuration, as the user typed them.
    fn words(&self) -> Vec<String> {
        let word = |choice: Option<clap::builder::PossibleValue>| choice.map(|value| value.get_name().to_owned());
        let words = [
            ("--pfc", word(self.pfc.and_then(|pfc| pfc.to_possible_value()))),
            ("--headroom", word(self.headroom.and_then(|policy| policy.to_possible_value()))),
            ("--lcores", self.lcores.map(|lcores| lcores.to_string())),
        ];
        words.into_iter().filter_map(|(option, value)| Some(format!("{option} {}", value?))).collect()
    }

    /// The configuration of the file, or of a text in its place, with the changes of the options.
    fn read(&self, given: Option<&Given>) -> Result<Config, ConfigErrors> {
        let overrides = self.overrides();
        let mut config = match (given, &self.file) {
            (Some(given), _) => overrides.parse(&given.source, &given.text)?,
            (None, Some(path)) => overrides.load(path)?,
            (None, None) => overrides.embedded()?,
        };
        config.overrides = self.words();
        if let Some(Metrics(address)) = self.metrics {
            config.metrics = address;
        }
        if let Some(socket) = &self.socket {
            config.api.socket = socket.clone();
        }
        Ok(config)
    }

    /// Time to run; `None` runs until Ctrl-C.
    fn duration(&self) -> Option<Duration> {
        let default = if self.file.is_some() { Duration::ZERO } else { EMBEDDED_DURATION };
        Some(self.duration.map_or(default, |time| time.0)).filter(|time| !time.is_zero())
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    // Before DPDK starts, which has its messages redirected for a while.
    let _ = output::is_journal();
    let config = args.read(None).map_err(Failure::usage)?;
    for warning in &config.warnings {
        output::tell(Severity::Warning, &format!("warning: {warning}"));
    }
    start(config, args)
}

#[cfg(feature = "dpdk")]
fn start(config: Config, args: Args) -> Result<(), Failure> {
    use holdfast::control::{EventFormat, RunOptions, Status};

    let options = RunOptions {
        duration: args.duration(),
        json: args.json,
        fail_on_loss: args.fail_on_loss,
        build: holdfast::build::FACTS,
        verbose: args.verbose,
        state: args.state.clone(),
        interface_wait: args.wait_for_interfaces.map_or(Duration::ZERO, |time| time.0),
        status: args.status.map_or(Status::Usual, |interval| interval.0.map_or(Status::Off, Status::Every)),
        events: match args.events {
            Events::Text => EventFormat::Text,
            Events::Json => EventFormat::Json,
        },
    };
    let again = std::sync::Arc::new(move |given: Option<Given>| args.read(given.as_ref()));
    holdfast::control::run(config, options, again)
        .map_err(|error| Failure::by_input(error.is_of_input(), format!("{error:#}")))
}

#[cfg(not(feature = "dpdk"))]
fn start(_: Config, args: Args) -> Result<(), Failure> {
    let _ = (args.duration(), args.json, args.fail_on_loss, args.verbose, &args.state, args.wait_for_interfaces);
    let _ = (args.status.map(|interval| interval.0), args.events);
    Err(Failure::usage(
        "this holdfast was built without DPDK and cannot run; build it with `cargo build --release`, which needs \
         libdpdk-dev, and without `--no-default-features`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn args(text: &str) -> Args {
        Only::try_parse_from(std::iter::once("run").chain(text.split_whitespace())).unwrap().args
    }

    #[test]
    fn run_with_file_is_unlimited_and_default_config_runs_ten_seconds() {
        assert_eq!(args("").duration(), Some(Duration::from_secs(10)));
        assert_eq!(args("x.yaml").duration(), None);
        assert_eq!(args("x.yaml --duration 200ms").duration(), Some(Duration::from_millis(200)));
        assert_eq!(args("--duration 0").duration(), None);
        assert_eq!(args("--duration 5").duration(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn status_is_a_time_from_a_tenth_of_a_second_to_a_day_or_off() {
        let status = |text: &str| text.parse::<Interval>().map(|interval| interval.0);
        assert_eq!(status("off"), Ok(None));
        assert_eq!((status("1min"), status("10")), (Ok(Some(60 * SECOND)), Ok(Some(10 * SECOND))));
        for wrong in ["0", "50ms", "2d", "90000s", "never", ""] {
            assert!(status(wrong).is_err_and(|text| text.ends_with("write e.g. 10s, or off")), "{wrong}");
        }
    }

    #[test]
    fn options_override_the_configuration() {
        let config = args("--pfc off --metrics off").read(None).unwrap();
        assert!(config.switch.ports.iter().all(|port| !port.pfc.is_on()));
        assert_eq!(config.metrics, None);
        let config = args("--metrics 0.0.0.0:9000").read(None).unwrap();
        assert_eq!(config.metrics, Some(SocketAddr::from(([0, 0, 0, 0], 9000))));

        let config = args("--pfc asymmetric --headroom dynamic --lcores 2").read(None).unwrap();
        assert!(config.switch.ports.iter().all(|port| port.pfc == PfcMode::Asymmetric));
        assert_eq!(config.switch.buffer.policy, HeadroomPolicy::Dynamic);
        assert_eq!(config.switch.lcores, 2);
        assert_eq!(config.switch.ports.iter().map(|port| port.lcore).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
        assert!(Only::try_parse_from(["run", "--lcores", "17"]).is_err());
    }
}
