//! Requests that read and change the configuration.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Part, error, json, read_only};
use super::history::MAX_TEXT;
use super::model::{PastText, Reload, ReloadOutcome};
use super::reloads::{Given, Order, Wanted};
use super::roles::{may_change, refuse_change, user_of};
use super::server::Served;
use crate::linux::user_name;

/// Longest wait for a confirmation: a day.
pub const LONGEST_CONFIRM: Duration = Duration::from_secs(86_400);

/// Most bytes of a request: a text, in which JSON writes a character with six at most.
const MAX_BODY: usize = 6 * MAX_TEXT + 1024;

/// The body of a request to change the configuration. An empty one means the file of the switch.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReloadRequest {
    /// The configuration; null: that of the switch's file, or of `number`.
    pub text: Option<String>,
    /// The file of `text` in errors and in the history.
    pub source: Option<String>,
    /// The number of a configuration of the history; null: `text`, or the switch's file.
    pub number: Option<u64>,
    /// Whether the configuration before the running one is wanted.
    pub before: bool,
    /// Whether differences are only listed.
    pub dry_run: bool,
    /// Time for a confirmation, after which the configuration before comes back; null: none is needed.
    pub confirm_within_ns: Option<u64>,
}

impl ReloadRequest {
    fn order(self) -> Result<Order, &'static str> {
        let wanted = match (self.text, self.number) {
            (None, None) if self.before => Wanted::Before,
            _ if self.before => return Err("`before` excludes `text` and `number`"),
            (None, None) => Wanted::File,
            (None, Some(number)) => Wanted::Past(number),
            (Some(text), None) if text.len() <= MAX_TEXT => {
                Wanted::Text(Given { source: self.source.unwrap_or_else(|| "request".to_owned()), text: text.into() })
            }
            (Some(_), None) => return Err("`text` has more than 1 MiB"),
            (Some(_), Some(_)) => return Err("`text` and `number` exclude each other"),
        };
        match self.confirm_within_ns.map(Duration::from_nanos) {
            _ if self.dry_run => Ok(Order::Compare(wanted)),
            Some(time) if !(Duration::from_secs(1)..=LONGEST_CONFIRM).contains(&time) => {
                Err("`confirm_within_ns` is not between a second and a day")
            }
            confirm_within => Ok(Order::Apply { wanted, confirm_within }),
        }
    }
}

/// The name of the user behind a request; empty if unknown.
fn user(request: &Request) -> String {
    user_of(request).map(user_name).unwrap_or_default()
}

/// Compares the file of the switch with the running configuration.
pub(super) async fn compare(served: &Served) -> Response {
    ask(served, Order::Compare(Wanted::File), String::new()).await
}

/// Changes the configuration, or compares it with the wanted one, by the body of `request`.
pub(super) async fn reload(served: &Served, request: Request) -> Response {
    let (number, may_change, user) = (user_of(&request), may_change(&request), user(&request));
    let remedy = "send nothing, or JSON such as {\"text\": \"ports: ...\", \"confirm_within_ns\": 60000000000}";
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        let what = format!("the request did not arrive whole, or has more than {MAX_BODY} bytes");
        return error(StatusCode::PAYLOAD_TOO_LARGE, &what, remedy);
    };
    let read = if body.is_empty() { Ok(ReloadRequest::default()) } else { serde_json::from_slice(&body) };
    let order = match read.map(ReloadRequest::order) {
        Ok(Ok(order)) => order,
        Ok(Err(wrong)) => return error(StatusCode::BAD_REQUEST, wrong, remedy),
        Err(wrong) => return error(StatusCode::BAD_REQUEST, &format!("the request is wrong: {wrong}"), remedy),
    };
    if !may_change && !matches!(order, Order::Compare(_)) {
        return refuse_change(number);
    }
    ask(served, order, user).await
}

/// Stays with the configuration that waits for its confirmation.
pub(super) async fn confirm(served: &Served, request: Request) -> Response {
    ask(served, Order::Confirm, user(&request)).await
}

async fn ask(served: &Served, order: Order, user: String) -> Response {
    if !matches!(order, Order::Compare(_)) && !served.writes {
        return read_only("kill -HUP");
    }
    let answer = match &served.reloads {
        Some(reloads) => reloads.ask(order, user).await,
        None => None,
    };
    let Some(answer) = answer else {
        let remedy = "restart the switch with the new configuration";
        return error(
            StatusCode::SERVICE_UNAVAILABLE,
            "this switch cannot read its configuration again, or is about to end",
            remedy,
        );
    };
    json(status(&answer), &Part { at_ns: served.at_ns(), name: "reload", part: answer })
}

fn status(answer: &Reload) -> StatusCode {
    match answer.outcome {
        ReloadOutcome::Unchanged | ReloadOutcome::Applicable | ReloadOutcome::Applied | ReloadOutcome::Confirmed => {
            StatusCode::OK
        }
        ReloadOutcome::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        ReloadOutcome::NeedsRestart | ReloadOutcome::Busy | ReloadOutcome::Unconfirmed => StatusCode::CONFLICT,
    }
}

/// The text of the configuration of the history whose number ends `path`.
pub(super) fn past(served: &Served, path: &str) -> Response {
    let number = path.rsplit('/').next().and_then(|number| number.parse().ok());
    match number.and_then(|number| served.history.get(number)) {
        Some(kept) => {
            let part = PastText { number: kept.past.number, text: kept.text.to_string() };
            json(StatusCode::OK, &Part { at_ns: served.at_ns(), name: "history", part })
        }
        None => {
            let remedy = "write a number of `holdfast history` or GET /v1/history";
            error(StatusCode::NOT_FOUND, "the history has no such configuration", remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(json: &str) -> Result<Order, &'static str> {
        serde_json::from_str::<ReloadRequest>(json).expect("it is right").order()
    }

    #[test]
    fn request_names_one_configuration_and_a_time_within_bounds() {
        let apply = |wanted, seconds: Option<u64>| {
            Ok(Order::Apply { wanted, confirm_within: seconds.map(Duration::from_secs) })
        };
        assert_eq!(order("{}"), apply(Wanted::File, None));
        assert_eq!(order("{\"dry_run\": true, \"number\": 3}"), Ok(Order::Compare(Wanted::Past(3))));
        assert_eq!(order("{\"confirm_within_ns\": 60000000000}"), apply(Wanted::File, Some(60)));
        let text = Wanted::Text(Given { source: "a.yaml".to_owned(), text: "ports:".into() });
        assert_eq!(order("{\"before\": true}"), apply(Wanted::Before, None));
        assert!(order("{\"before\": true, \"number\": 3}").is_err());
        assert_eq!(order("{\"text\": \"ports:\", \"source\": \"a.yaml\"}"), apply(text, None));
        assert!(order("{\"text\": \"\", \"number\": 3}").is_err());
        assert!(order("{\"confirm_within_ns\": 999999999}").is_err());
        assert!(order("{\"confirm_within_ns\": 86400000000001}").is_err());
        assert!(serde_json::from_str::<ReloadRequest>("{\"dryrun\": true}").is_err());
    }
}
