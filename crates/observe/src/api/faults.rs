//! Requests that change injected faults.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::answer::{Part, error, json};
use super::roles::{by, user_of};
use super::server::Served;
use crate::config;
use crate::faults::board::{FaultBoard, Refused};
use crate::stats::{Notice, NoticeKind};

/// Largest request in bytes. 64 faults with all their keys are shorter.
pub const MAX_BODY: usize = 64 << 10;
/// Longest wait for lcores to take the change before.
const TAKE_TIME: Duration = Duration::from_secs(2);
const LOOK_TIME: Duration = Duration::from_millis(1);

/// Faults that were added.
#[derive(Serialize, JsonSchema)]
pub(super) struct Added {
    /// Their numbers, in the order of the request.
    ids: Vec<u64>,
}

/// Adds the faults of the request, all or none.
pub(super) async fn add(served: &Served, request: Request) -> Response {
    let board = match board(served) {
        Ok(board) => board,
        Err(refusal) => return *refusal,
    };
    let by = by(user_of(&request));
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        let what = format!("the request did not arrive whole, or has more than {MAX_BODY} bytes");
        return error(StatusCode::PAYLOAD_TOO_LARGE, &what, "send fewer faults at a time");
    };
    let Ok(text) = String::from_utf8(body.into()) else {
        return error(StatusCode::BAD_REQUEST, "the request is not UTF-8", "send faults as JSON or YAML");
    };
    let switch_view = served.current.get();
    // Elsewhere, so that other requests are answered meanwhile. The thread ends only with the switch.
    let read = tokio::task::spawn_blocking(move || config::read_faults(&text, &switch_view.spec));
    let faults = match read.await {
        Ok(Ok(faults)) => faults,
        Ok(Err(errors)) => {
            return error(StatusCode::BAD_REQUEST, &errors.to_string(), "correct the request; no fault was added");
        }
        Err(_) => {
            return error(StatusCode::INTERNAL_SERVER_ERROR, "the request was not read", "report this as a bug");
        }
    };
    match when_idle(&board, |board| board.add(&faults)).await {
        Ok(ids) => {
            served.events.report(Notice::new(NoticeKind::FaultsAdded, format!("faults: {} added{by}", ids.len())));
            json(StatusCode::OK, &Part { at_ns: served.at_ns(), name: "added", part: Added { ids } })
        }
        Err(refused) => refuse(refused),
    }
}

/// Removes the fault with the number `id`, or all of them.
pub(super) async fn remove(served: &Served, request: Request, id: Option<&str>) -> Response {
    let by = by(user_of(&request));
    let board = match board(served) {
        Ok(board) => board,
        Err(refusal) => return *refusal,
    };
    let id = match id.map(str::parse::<u64>) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => {
            let remedy = "write the number of a fault; `holdfast show faults` or GET /v1/faults lists them";
            return error(StatusCode::BAD_REQUEST, "the path does not end with a number", remedy);
        }
    };
    match when_idle(&board, |board| board.remove(id)).await {
        Ok(count) => {
            served.events.report(Notice::new(NoticeKind::FaultsRemoved, format!("faults: {count} removed{by}")));
            json(StatusCode::OK, &Part { at_ns: served.at_ns(), name: "removed", part: count })
        }
        Err(refused) => refuse(refused),
    }
}

/// The faults of a switch that allows requests to change them, or the refusal.
fn board(served: &Served) -> Result<Arc<FaultBoard>, Box<Response>> {
    let Some(board) = served.current.get().faults.clone() else {
        let remedy = "write `faults: allowed` in the switch's configuration, and restart it";
        return Err(Box::new(error(StatusCode::FORBIDDEN, "this switch allows no faults", remedy)));
    };
    if !served.writes {
        let remedy = "write `api: {writes: true}` in the switch's configuration, and restart it";
        return Err(Box::new(error(StatusCode::FORBIDDEN, "this switch's API is read-only", remedy)));
    }
    Ok(board)
}

/// Applies `change` once all lcores have taken the change before. Another request may come first, so it tries again,
/// for a limited time.
async fn when_idle<T>(board: &FaultBoard, change: impl Fn(&FaultBoard) -> Result<T, Refused>) -> Result<T, Refused> {
    let end = Instant::now() + TAKE_TIME;
    loop {
        match change(board) {
            Err(Refused::Busy) if Instant::now() < end => tokio::time::sleep(LOOK_TIME).await,
            result => return result,
        }
    }
}

fn refuse(refused: Refused) -> Response {
    let status = match refused {
        Refused::TooMany { .. } => StatusCode::BAD_REQUEST,
        Refused::Unknown(_) => StatusCode::NOT_FOUND,
        Refused::Busy => StatusCode::SERVICE_UNAVAILABLE,
    };
    error(status, &refused.to_string(), refused.remedy())
}
