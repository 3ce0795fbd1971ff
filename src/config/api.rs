//! `api:`.

use super::model::ApiConfig;
use super::read::Item;
use crate::api::Socket;
use crate::api::socket::MAX_PATH;

/// Reads `api:`.
pub fn read(item: Option<Item<'_>>) -> ApiConfig {
    let Some(item) = item else { return ApiConfig::default() };
    if item.is("off") {
        return ApiConfig { socket: Socket::Off, ..ApiConfig::default() };
    }
    let fields = item.fields(&["socket", "group", "writes"]);
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    ApiConfig {
        socket: get("socket").and_then(|item| read_socket(&item)).unwrap_or_default(),
        group: get("group").and_then(|item| Some(item.text("a group; write e.g. holdfast, or 990")?.to_owned())),
        writes: get("writes").and_then(|item| item.flag()).unwrap_or(false),
    }
}

fn read_socket(item: &Item<'_>) -> Option<Socket> {
    if item.is("off") {
        return Some(Socket::Off);
    }
    let path = item.text("a path, or off; write e.g. /run/holdfast/holdfast.sock")?;
    if !path.starts_with('/') || path.ends_with('/') {
        return item.refuse(format!(
            "`{}` is not the whole path of a socket; write e.g. /run/holdfast/holdfast.sock, or off",
            item.shown()
        ));
    }
    if path.len() > MAX_PATH {
        return item
            .refuse(format!("{} bytes are more than a socket's path may have; write at most {MAX_PATH}", path.len()));
    }
    Some(Socket::At(path.into()))
}
