//! Formats answers: parts of the state with their time, and errors with a remedy.

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::model::Look;
use super::operations::{Method, OPERATIONS};
use crate::stats::bounded::{HEADER_MAX, is_too_long};

/// One part of the state with the time of its snapshot.
pub(super) struct Part<T> {
    pub at_ns: u64,
    pub name: &'static str,
    pub part: T,
}

impl<T: Serialize> Serialize for Part<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("at_ns", &self.at_ns)?;
        map.serialize_entry(self.name, &self.part)?;
        map.end()
    }
}

/// The answer with `part`, one part of the state that `look` shows.
pub(super) fn part(look: &Look<'_>, name: &'static str, part: impl Serialize) -> Response {
    json(StatusCode::OK, &Part { at_ns: look.at_ns(), name, part })
}

/// The answer with `value` as JSON and a status.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text(value)).into_response()
}

/// `value` as JSON with a line end.
pub(super) fn text(value: &impl Serialize) -> Vec<u8> {
    // No value of the model can fail to serialize: the keys of its maps are strings.
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// An error and its remedy.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(super) struct Refusal<'a> {
    /// The mistake, or the reason why there is no answer.
    pub error: &'a str,
    /// The way to an answer.
    pub remedy: &'a str,
}

/// The answer to a request that cannot be served.
pub(super) fn error(status: StatusCode, error: &str, remedy: &str) -> Response {
    json(status, &Refusal { error, remedy })
}

/// Characters of a wrong path that an error repeats at most.
const SHOWN_CHARS: usize = 80;

fn shown(request: &Request) -> String {
    request.uri().path().chars().take(SHOWN_CHARS).collect()
}

/// The answer for an unknown path.
pub(super) fn unknown(request: &Request) -> Response {
    let of = |is_read: bool| {
        let operations = OPERATIONS.iter().filter(|of| (of.method == Method::Get) == is_read && !of.path.contains('{'));
        operations.filter(|of| of.method != Method::Delete && of.path != "/v1").map(|of| of.path).collect::<Vec<_>>()
    };
    let remedy = format!("GET one of {}, or POST to one of {}", of(true).join(", "), of(false).join(", "));
    error(StatusCode::NOT_FOUND, &format!("there is no {}", shown(request)), &remedy)
}

/// The answer for a path with the wrong method.
pub(super) fn wrong_method(request: &Request) -> Response {
    let path = request.uri().path();
    let right: Vec<&str> = OPERATIONS.iter().filter(|of| of.is_at(path)).map(|of| of.method.word()).collect();
    let right = right.join(", ");
    let what = format!("{} is not supported for {}", request.method(), shown(request));
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, &what, &format!("use {right}"));
    if let Ok(right) = header::HeaderValue::from_str(&right) {
        response.headers_mut().insert(header::ALLOW, right);
    }
    response
}

/// Refuses query parameters: a client would believe that an ignored parameter filters the answer. Operations that have
/// some check them.
pub(super) async fn refuse_parameters(request: Request, next: Next) -> Response {
    let has_parameters = |path: &str| {
        let mut operations = OPERATIONS.iter().filter(|of| of.is_at(path));
        operations.any(|of| of.parameters.iter().any(|parameter| !of.has_in_path(parameter.name)))
    };
    match request.uri().query() {
        Some(_) if !has_parameters(request.uri().path()) => error(
            StatusCode::BAD_REQUEST,
            "only /v1/routes accepts parameters",
            "send the request without `?`, and filter the answer",
        ),
        _ => next.run(request).await,
    }
}

/// Refuses long headers: they cost memory, and no client needs them.
pub(super) async fn refuse_long_headers(request: Request, next: Next) -> Response {
    if is_too_long(&request) {
        let what = format!("the header of the request is longer than {HEADER_MAX} bytes");
        return error(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &what, "send fewer and shorter header fields");
    }
    next.run(request).await
}

/// The answer to a write on a read-only API. `signal` is the command that has the same effect for users who may signal
/// the process.
pub(super) fn read_only(signal: &str) -> Response {
    let remedy =
        "write `api: {writes: true}` in the switch's configuration, or send a signal, which needs no permission:";
    let remedy = format!("{remedy} {signal} {}", std::process::id());
    error(StatusCode::FORBIDDEN, "this switch's API is read-only", &remedy)
}
