//! `api:` of the configuration: the socket of the API, its group and whether it accepts writes.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use crate::config::keys::Key;
use crate::config::model::ApiConfig;
use crate::config::yaml::read::Item;

pub const KEYS: &[Key] = &[
    Key::new(
        "socket",
        "`$XDG_RUNTIME_DIR/holdfast.sock`; for root without it `/run/holdfast/holdfast.sock`",
        "absolute path up to 107 bytes, or `off`",
        "overridden by `--socket`, else by `HOLDFAST_SOCKET`",
    ),
    Key::new("group", "none", "name in `/etc/group`, or number", "group that may also connect: mode 0660, not 0600"),
    Key::new(
        "writes",
        "false",
        "true, false",
        "allows `holdfast clear watermarks`, `holdfast reload` and, with [`faults`](#faults), `holdfast fault`",
    ),
    Key::new(
        "readers",
        "none",
        "list of up to 16 groups, as for `group`",
        "who may read. With `readers` or `admins` each request is judged by the groups of its user in `/etc/passwd` and `/etc/group`, and root and the \
         switch's own user may do all; in place of `group` and `writes`",
    ),
    Key::new("admins", "none", "list of up to 16 groups", "who may read and change"),
];

/// Longest path that fits a socket's address (unix(7): 108 bytes with the terminating zero).
pub const MAX_SOCKET_PATH: usize = 107;

/// Most groups of a role.
const MOST_GROUPS: usize = 16;

/// The socket at which the API is served.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Socket {
    /// `$XDG_RUNTIME_DIR/holdfast.sock`, or for root without such a directory `/run/holdfast/holdfast.sock`.
    #[default]
    Usual,
    /// No socket: the API is off.
    Off,
    /// The socket at this path.
    At(PathBuf),
}

impl FromStr for Socket {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        // An empty environment variable counts as an unset one.
        Ok(match text {
            "" => Self::Usual,
            "off" => Self::Off,
            path => Self::At(path.into()),
        })
    }
}

/// Reads `api:`.
pub fn read(item: Option<Item<'_>>) -> ApiConfig {
    let Some(item) = item else { return ApiConfig::default() };
    if item.is("off") {
        return ApiConfig { socket: Socket::Off, ..ApiConfig::default() };
    }
    let fields = item.fields(KEYS);
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let (readers, admins) = (read_groups(get("readers")), read_groups(get("admins")));
    if !readers.is_empty() || !admins.is_empty() {
        for given in ["group", "writes"].into_iter().filter_map(get) {
            given.fail("`readers` and `admins` say who may do what; remove it");
        }
    }
    ApiConfig {
        readers,
        admins,
        socket: get("socket").and_then(|item| read_socket(&item)).unwrap_or_default(),
        group: get("group").and_then(|item| Some(item.text("a group; write e.g. holdfast, or 990")?.to_owned())),
        writes: get("writes").and_then(|item| item.flag()).unwrap_or(false),
    }
}

fn read_groups(item: Option<Item<'_>>) -> Vec<String> {
    let Some(item) = item else { return Vec::new() };
    let groups = item.list("`[holdfast]`").unwrap_or_default();
    if !(1..=MOST_GROUPS).contains(&groups.len()) {
        item.fail(format!("{} groups are out of range; write from 1 to {MOST_GROUPS}", groups.len()));
    }
    let text = |item: &Item<'_>| Some(item.text("a group; write e.g. holdfast, or 990")?.to_owned());
    groups.iter().filter_map(text).collect()
}

fn read_socket(item: &Item<'_>) -> Option<Socket> {
    if item.is("off") {
        return Some(Socket::Off);
    }
    let path = item.text("a path, or off; write e.g. /run/holdfast/holdfast.sock")?;
    if !path.starts_with('/') || path.ends_with('/') {
        return item.refuse(format!(
            "`{}` is not an absolute path of a socket; write e.g. /run/holdfast/holdfast.sock, or off",
            item.shown()
        ));
    }
    if path.len() > MAX_SOCKET_PATH {
        return item.refuse(format!(
            "{} bytes are too many for the path of a socket; write at most {MAX_SOCKET_PATH}",
            path.len()
        ));
    }
    Some(Socket::At(path.into()))
}
