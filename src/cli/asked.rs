//! The options by which a command finds the running switch.

use clap::ValueEnum;
use holdfast::api::client::ClientError;
use holdfast::api::model::{Lag, Port};
use holdfast::api::socket::VARIABLE;
use holdfast::api::{Client, Socket};
use holdfast::config::yaml::names::suggest;
use serde::Deserialize;

use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Asked {
    /// The switch's socket [default: $XDG_RUNTIME_DIR/holdfast.sock, then /run/holdfast/holdfast.sock]
    #[arg(long, value_name = "PATH", env = VARIABLE, hide_env_values = true)]
    socket: Option<Socket>,
}

impl Asked {
    /// Whether the user names the socket.
    pub fn is_named(&self) -> bool {
        self.socket.is_some()
    }

    /// Creates a client of the switch, without a request yet.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.socket.clone().unwrap_or_default())
    }
}

/// The answer of `/v1/ports`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ports {
    ports: Vec<Port>,
}

/// Checks that the switch has the port `name`, if one is given: a misspelt name must not look like an idle port.
pub fn check_port(client: &Client, name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else { return Ok(()) };
    let ports = client.get::<Ports>("ports")?.ports;
    let names: Vec<&str> = ports.iter().map(|port| port.port.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(Failure::usage(format!("there is no port `{name}`; {}", suggest(name, &names))))
}

/// The answer of `/v1/lags`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lags {
    lags: Vec<Lag>,
}

/// The name by which rows know the port `name`. Stations are behind link aggregation groups, so with `by_group` a
/// member means its group, and a group may be named too.
pub fn port_to_show(client: &Client, name: &str, by_group: bool) -> Result<String, Failure> {
    if by_group {
        let lags = client.get::<Lags>("lags")?.lags;
        let is_member = |lag: &Lag| lag.members.iter().any(|member| member.port == name);
        if let Some(lag) = lags.into_iter().find(|lag| lag.name == name || is_member(lag)) {
            return Ok(lag.name);
        }
    }
    check_port(client, Some(name))?;
    Ok(name.to_owned())
}

/// Parses a traffic class.
pub fn class(text: &str) -> Result<u8, String> {
    let class = text.parse().ok().filter(|class| *class < 8);
    class.ok_or_else(|| format!("`{text}` is not a traffic class; write a number from 0 to 7"))
}

/// The failure that `command` lacks its argument; it lists the possible values.
pub fn nothing_named<T: ValueEnum>(command: &str) -> Failure {
    let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    let example = names.first().map_or("", String::as_str);
    Failure::usage(format!(
        "`holdfast {command}` needs an argument; write one of {}, e.g. `holdfast {command} {example}`",
        names.join(", ")
    ))
}
