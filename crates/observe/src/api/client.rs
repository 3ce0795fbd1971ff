//! The client side of the API: one request on each connection.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

use super::configs::ReloadRequest;
use super::model::{PastText, Reload, State};
use super::socket::{MAX_PATH, Socket, to_ask};

/// Longest time for an answer, including the wait for a connection.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Time between two tries when a switch serves its maximum of clients.
const TRY_TIME: Duration = Duration::from_millis(50);

/// Tries to connect again after a switch hangs up; a switch with far too many clients briefly does so.
const HUNG_UP_TRIES: u32 = 20;

/// Longest answer in bytes: a forwarding database of the largest size needs less than half.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket is `off`.
    #[error("`off` is not a socket; give the switch's socket with --socket PATH")]
    Off,
    /// No switch listens at any of the paths.
    #[error("no switch listens at {}: start one with `holdfast run`, or give its socket with --socket PATH", paths(.0))]
    Nobody(Vec<PathBuf>),
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket; give the switch's socket with --socket PATH", .0.display())]
    NotASocket(PathBuf),
    /// The path does not fit a socket's address.
    #[error(
        "{} is longer than the {MAX_PATH} bytes allowed for a socket's path; give the switch's socket with --socket \
         PATH",
        .0.display()
    )]
    TooLong(PathBuf),
    /// The mode of the socket does not let this user connect.
    #[error(
        "this user has no access to {}; run the command as the user of the switch, or set `api.group` in its \
         configuration",
        .0.display()
    )]
    Forbidden(PathBuf),
    /// The connection or the answer failed.
    #[error("{}: {what}; check that it is a switch's socket and that the switch is running", .path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// The error.
        what: String,
    },
    /// The switch did not answer in time.
    #[error(
        "{} did not answer within {}s; check that it is a switch's socket, that the switch is not stopped (SIGSTOP), \
         and that its control thread has a CPU",
        .0.display(), ANSWER_TIME.as_secs()
    )]
    Slow(PathBuf),
    /// The switch closes the connection before it reads the request.
    #[error(
        "{} closed the connection before the request; check that it is a switch's socket and that the switch is \
         running",
        .0.display()
    )]
    HungUp(PathBuf),
    /// The switch serves its maximum of clients.
    #[error(
        "{} has served its maximum number of clients for {}s; close other clients of this switch",
        .0.display(), ANSWER_TIME.as_secs()
    )]
    Busy(PathBuf),
    /// The switch refused the request.
    #[error("{error}{}{remedy}", if error.contains('\n') { "\n" } else { "; " })]
    Refused {
        /// Its error.
        error: String,
        /// Its remedy.
        remedy: String,
        /// Whether the request is wrong; otherwise this switch does not do it now.
        is_input: bool,
    },
    /// The asynchronous runtime of this program did not start.
    #[error("this client cannot start: {}; raise the limit on open files (ulimit -n) if it is very low", .0)]
    Runtime(io::Error),
}

impl ClientError {
    /// Whether the command line or its input is wrong, whatever the state of the switch.
    #[must_use]
    pub fn is_of_input(&self) -> bool {
        matches!(self, Self::Off | Self::TooLong(_) | Self::Refused { is_input: true, .. })
    }
}

/// Lists `paths`, each with the reason why no switch listens there.
fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("{}{}", path.display(), what_is_at(path))).collect::<Vec<_>>().join(" or ")
}

fn what_is_at(path: &Path) -> String {
    if path.exists() {
        return " (a switch that has ended left its socket there)".to_owned();
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.is_dir());
    directory.map_or_else(String::new, |directory| format!(" (there is no directory {})", directory.display()))
}

/// The body of an error answer.
#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
    remedy: String,
}

/// The body of an answer of `/v1/reload`.
#[derive(Debug, Deserialize)]
struct ReloadAnswer {
    reload: Reload,
}

/// The body of an answer of `/v1/history/NUMBER`.
#[derive(Debug, Deserialize)]
struct PastAnswer {
    history: PastText,
}

/// The body of an answer to new faults.
#[derive(Debug, Deserialize)]
struct AddedAnswer {
    added: Added,
}

#[derive(Debug, Deserialize)]
struct Added {
    ids: Vec<u64>,
}

/// The body of an answer to a request to remove stations.
#[derive(Debug, Deserialize)]
struct ClearedAnswer {
    cleared: Cleared,
}

#[derive(Debug, Deserialize)]
struct Cleared {
    stations: u64,
}

/// The body of an answer to the removal of faults.
#[derive(Debug, Deserialize)]
struct RemovedAnswer {
    removed: u64,
}

/// A client of one switch.
#[derive(Debug)]
pub struct Client {
    paths: Vec<PathBuf>,
    runtime: Runtime,
}

impl Client {
    /// Returns a client of the switch at `socket`; it sends no request yet.
    ///
    /// # Errors
    /// If the socket is `off`, or the runtime does not start.
    pub fn new(socket: &Socket) -> Result<Self, ClientError> {
        let paths = to_ask(socket);
        if paths.is_empty() {
            return Err(ClientError::Off);
        }
        let runtime = crate::linux::runtime().map_err(ClientError::Runtime)?;
        Ok(Self { paths, runtime })
    }

    /// Requests the whole state.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn state(&self) -> Result<State, ClientError> {
        self.get("state")
    }

    /// Requests the resource `/v1/NAME` as a `T`; a part of the state may be read as a [`State`] whose other fields are
    /// empty.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, ClientError> {
        let (path, body) = self.ask(Method::GET, &format!("/v1/{name}"))?;
        let answer = part(&path, &body, if name == "state" { "version" } else { name })?;
        serde_json::from_value(answer).map_err(|error| wrong(&path, &error))
    }

    /// Requests the rows of `/v1/NAME` that the parameters `query` select, as JSON. An empty `query` selects all.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn get_selected(&self, name: &str, query: &str) -> Result<Value, ClientError> {
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let (path, body) = self.ask(Method::GET, &format!("/v1/{name}{query}"))?;
        part(&path, &body, name)
    }

    /// Resets all watermarks to the current use.
    ///
    /// # Errors
    /// The reason why they were not reset.
    pub fn clear_watermarks(&self) -> Result<(), ClientError> {
        let (path, body) = self.ask(Method::POST, "/v1/watermarks/clear")?;
        part(&path, &body, "done").map(drop)
    }

    /// Removes learned stations: those behind `port`, in `vlan`, or all. Returns their number.
    ///
    /// # Errors
    /// The reason why none was removed.
    pub fn clear_fdb(&self, port: Option<&str>, vlan: Option<u16>) -> Result<u64, ClientError> {
        let mut request = serde_json::Map::new();
        request.extend(port.map(|port| ("port".to_owned(), port.into())));
        request.extend(vlan.map(|vlan| ("vlan".to_owned(), vlan.into())));
        let (path, body) = self.send(Method::POST, "/v1/fdb/clear", &Value::Object(request).to_string())?;
        let answer: ClearedAnswer = serde_json::from_slice(&body).map_err(|error| wrong(&path, &error))?;
        Ok(answer.cleared.stations)
    }

    /// Compares the wanted configuration with the running one, or lets the switch run by it.
    ///
    /// # Errors
    /// The reason why there is no answer. A configuration that cannot be applied is an answer.
    pub fn reload(&self, request: &ReloadRequest) -> Result<Reload, ClientError> {
        if *request == (ReloadRequest { dry_run: true, ..ReloadRequest::default() }) {
            // Readers may ask for it too.
            return self.changed(Method::GET, "/v1/reload", "");
        }
        self.changed(Method::POST, "/v1/reload", &serde_json::to_string(request).unwrap_or_default())
    }

    /// Lets the switch stay with the configuration that waits for its confirmation.
    ///
    /// # Errors
    /// The reason why there is no answer. That none waits is an answer.
    pub fn confirm(&self) -> Result<Reload, ClientError> {
        self.changed(Method::POST, "/v1/reload/confirm", "")
    }

    fn changed(&self, method: Method, target: &str, body: &str) -> Result<Reload, ClientError> {
        let (path, body) = self.send(method, target, body)?;
        let answer: ReloadAnswer = serde_json::from_slice(&body).map_err(|error| wrong(&path, &error))?;
        Ok(answer.reload)
    }

    /// Requests the text of the configuration of the history with a number.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn past(&self, number: u64) -> Result<PastText, ClientError> {
        let (path, body) = self.ask(Method::GET, &format!("/v1/history/{number}"))?;
        let answer: PastAnswer = serde_json::from_slice(&body).map_err(|error| wrong(&path, &error))?;
        Ok(answer.history)
    }

    /// Orders the faults in `text`, a list as the configuration writes it. Returns their numbers.
    ///
    /// # Errors
    /// The reason why none was ordered.
    pub fn add_faults(&self, text: &str) -> Result<Vec<u64>, ClientError> {
        let (path, body) = self.send(Method::POST, "/v1/faults", text)?;
        let answer: AddedAnswer = serde_json::from_slice(&body).map_err(|error| wrong(&path, &error))?;
        Ok(answer.added.ids)
    }

    /// Removes the fault with the number `id`, or all. Returns the number of removed ones.
    ///
    /// # Errors
    /// The reason why none was removed.
    pub fn remove_faults(&self, id: Option<u64>) -> Result<u64, ClientError> {
        let target = id.map_or("/v1/faults".to_owned(), |id| format!("/v1/faults/{id}"));
        let (path, body) = self.ask(Method::DELETE, &target)?;
        let answer: RemovedAnswer = serde_json::from_slice(&body).map_err(|error| wrong(&path, &error))?;
        Ok(answer.removed)
    }

    /// Sends a request without a body to the first switch that listens; returns its socket and its answer.
    fn ask(&self, method: Method, target: &str) -> Result<(PathBuf, Vec<u8>), ClientError> {
        self.send(method, target, "")
    }

    /// Sends a request to the first switch that listens; returns its socket and its answer.
    fn send(&self, method: Method, target: &str, body: &str) -> Result<(PathBuf, Vec<u8>), ClientError> {
        let request = (method, target, body);
        self.runtime.block_on(async {
            for path in &self.paths {
                let mut is_busy = false;
                let answer = tokio::time::timeout(ANSWER_TIME, ask_until_served(path, &request, &mut is_busy)).await;
                let late = |_| Err(if is_busy { ClientError::Busy } else { ClientError::Slow }(path.clone()));
                match answer.unwrap_or_else(late) {
                    Err(ClientError::Nobody(_)) => {}
                    answer => return answer.map(|body| (path.clone(), body)),
                }
            }
            Err(ClientError::Nobody(self.paths.clone()))
        })
    }
}

/// Parses `body` as JSON with the field `name`. Other servers answer with JSON too, and absent fields would become
/// defaults.
fn part(path: &Path, body: &[u8], name: &str) -> Result<Value, ClientError> {
    let answer: Value = serde_json::from_slice(body).map_err(|error| wrong(path, &error))?;
    match answer.get(name) {
        Some(_) => Ok(answer),
        None => Err(wrong(path, &format!("it has no `{name}`"))),
    }
}

fn wrong(path: &Path, error: &dyn fmt::Display) -> ClientError {
    ClientError::Broken { path: path.to_owned(), what: format!("the answer is invalid: {error}") }
}

/// Repeats the request while the switch serves its maximum of clients; sets `is_busy` if that happened.
async fn ask_until_served(
    path: &Path,
    request: &(Method, &str, &str),
    is_busy: &mut bool,
) -> Result<Vec<u8>, ClientError> {
    let mut tries = 0;
    loop {
        match ask(path, request).await {
            Err(ClientError::Busy(_)) => *is_busy = true,
            Err(ClientError::HungUp(_)) if tries < HUNG_UP_TRIES => tries += 1,
            answer => return answer,
        }
        tokio::time::sleep(TRY_TIME).await;
    }
}

async fn ask(path: &Path, (method, target, body): &(Method, &str, &str)) -> Result<Vec<u8>, ClientError> {
    let broken = |error: &dyn std::fmt::Display| ClientError::Broken { path: path.to_owned(), what: error.to_string() };
    let stream = connect(path).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let connection = tokio::spawn(connection);
    let request = Request::builder().method(method).uri(*target).header(header::HOST, "holdfast");
    let request = request.body(Body::from((*body).to_owned()));
    let request = request.map_err(|error| broken(&error))?;
    let response = match sender.send_request(request).await {
        Ok(response) => response,
        Err(error) if error.is_canceled() || is_broken_pipe(&error) => {
            return Err(ClientError::HungUp(path.to_owned()));
        }
        Err(error) => return Err(broken(&error)),
    };
    let status = response.status();
    if status == StatusCode::SERVICE_UNAVAILABLE && response.headers().contains_key(header::RETRY_AFTER) {
        return Err(ClientError::Busy(path.to_owned()));
    }
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
    let body = body.map_err(|error| broken(&error))?.to_bytes();
    connection.abort();
    // The other two statuses are answers to a reload that cannot be applied.
    let is_answer = [StatusCode::OK, StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY].contains(&status);
    if is_answer {
        return Ok(body.into());
    }
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(Refusal { error, remedy }) => {
            // The removal of something that does not exist; other paths an older switch may lack.
            let is_absent = status == StatusCode::NOT_FOUND && *method == Method::DELETE;
            let is_input = is_absent || [StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE].contains(&status);
            Err(ClientError::Refused { error, remedy, is_input })
        }
        Err(_) => Err(broken(&format!("the answer has status {status}"))),
    }
}

/// Connects; waits while the queue of pending connections is full.
async fn connect(path: &Path) -> Result<UnixStream, ClientError> {
    if path.as_os_str().len() > MAX_PATH {
        return Err(ClientError::TooLong(path.to_owned()));
    }
    loop {
        let error = match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::WouldBlock => tokio::time::sleep(TRY_TIME).await,
            // Connecting to a file that is not a socket gives the same error as a dead socket.
            ErrorKind::ConnectionRefused if !is_socket(path) => return Err(ClientError::NotASocket(path.to_owned())),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::ConnectionRefused => {
                return Err(ClientError::Nobody(vec![path.to_owned()]));
            }
            ErrorKind::PermissionDenied => return Err(ClientError::Forbidden(path.to_owned())),
            _ => return Err(ClientError::Broken { path: path.to_owned(), what: error.kind().to_string() }),
        }
    }
}

/// Whether the server closed the connection before it received the request.
fn is_broken_pipe(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

/// Whether `path` is a socket, or no longer exists.
fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |file| file.file_type().is_socket())
}
