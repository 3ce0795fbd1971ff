//! The asking side: one request, one connection.

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

use super::model::{Reload, State};
use super::socket::{MAX_PATH, Socket};

/// How long an answer may take, the wait for a connection included.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Time between two tries where a switch has as many clients as it serves at once.
const TRY_TIME: Duration = Duration::from_millis(50);

/// Tries to ask one that hangs up: a switch with far too many clients does that for a moment.
const HUNG_UP_TRIES: u32 = 20;

/// Longest answer: a forwarding database of the largest size takes less than half of it.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// `--socket off`.
    #[error("`off` is no socket to ask; give the switch's with --socket PATH")]
    Off,
    /// Nobody there.
    #[error("no switch listens at {}: start one with `holdfast run`, or give its socket with --socket PATH", paths(.0))]
    Nobody(Vec<PathBuf>),
    /// Something else is there.
    #[error("{} is there and is no socket; give the switch's with --socket PATH", .0.display())]
    NotASocket(PathBuf),
    /// The path does not fit a socket's address.
    #[error("{} is longer than the {MAX_PATH} bytes that a socket's path may have; give the switch's with --socket PATH", .0.display())]
    TooLong(PathBuf),
    /// The socket's mode.
    #[error("{} is not for this user: ask as the user who runs the switch, or set `api.group` in its configuration", .0.display())]
    Forbidden(PathBuf),
    /// Something went wrong on the way.
    #[error("{}: {what}; is it a switch's socket, and has the switch ended?", .path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        what: String,
    },
    /// It did not answer.
    #[error("{} did not answer within {}s; is it a switch's socket, is the switch stopped (SIGSTOP), or its control thread without a CPU?", .0.display(), ANSWER_TIME.as_secs())]
    Slow(PathBuf),
    /// It does not even listen.
    #[error("{} hangs up before it is asked; is it a switch's socket, and has the switch ended?", .0.display())]
    HungUp(PathBuf),
    /// It has as many clients as it serves.
    #[error("{} serves as many others as it can and has had no place for {}s; who else asks it?", .0.display(), ANSWER_TIME.as_secs())]
    Busy(PathBuf),
    /// The switch said no.
    #[error("{error}; {remedy}")]
    Refused {
        /// Its error.
        error: String,
        /// Its remedy.
        remedy: String,
    },
    /// This program's own machinery.
    #[error("this client cannot start: {}; is a limit on open files (ulimit -n) very low?", .0.kind())]
    Runtime(io::Error),
}

/// Each of `paths` with what is there instead of a switch.
fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("{}{}", path.display(), what_is_at(path))).collect::<Vec<_>>().join(" or ")
}

fn what_is_at(path: &Path) -> String {
    if path.exists() {
        return " (what is there was left by one that has ended)".to_owned();
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.is_dir());
    directory.map_or_else(String::new, |directory| format!(" (there is no directory {})", directory.display()))
}

/// What a switch says when it says no.
#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
    remedy: String,
}

/// What `/v1/reload` answers.
#[derive(Debug, Deserialize)]
struct ReloadAnswer {
    reload: Reload,
}

/// A client of one switch.
#[derive(Debug)]
pub struct Client {
    paths: Vec<PathBuf>,
    runtime: Runtime,
}

impl Client {
    /// A client of the switch at `socket`; nothing is asked yet.
    ///
    /// # Errors
    /// If there is none to ask, or no runtime.
    pub fn new(socket: &Socket) -> Result<Self, ClientError> {
        let paths = socket.to_ask();
        if paths.is_empty() {
            return Err(ClientError::Off);
        }
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClientError::Runtime)?;
        Ok(Self { paths, runtime })
    }

    /// The whole state.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn state(&self) -> Result<State, ClientError> {
        self.get("state")
    }

    /// The resource `/v1/NAME`, as what it is; a part of the state is a [`State`] in which all else is empty.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, ClientError> {
        let (path, body) = self.ask(Method::GET, &format!("/v1/{name}"))?;
        let answer = part(&path, &body, if name == "state" { "version" } else { name })?;
        serde_json::from_value(answer).map_err(|error| wrong(&path, &error))
    }

    /// The same as it came.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn get_json(&self, name: &str) -> Result<Value, ClientError> {
        self.get(name)
    }

    /// Makes watermarks what is held now.
    ///
    /// # Errors
    /// Why they are not.
    pub fn clear_watermarks(&self) -> Result<(), ClientError> {
        let (path, body) = self.ask(Method::POST, "/v1/watermarks/clear")?;
        part(&path, &body, "done").map(drop)
    }

    /// What the configuration says now beside what runs; with `apply` the switch is to go on by it.
    ///
    /// # Errors
    /// Why there is no answer. A configuration that cannot be applied is one.
    pub fn reload(&self, apply: bool) -> Result<Reload, ClientError> {
        let (path, body) = self.ask(if apply { Method::POST } else { Method::GET }, "/v1/reload")?;
        let answer: ReloadAnswer = serde_json::from_slice(&body).map_err(|error| wrong(&path, &error))?;
        Ok(answer.reload)
    }

    /// Asks the first switch there is; its socket and its answer.
    fn ask(&self, method: Method, target: &str) -> Result<(PathBuf, Vec<u8>), ClientError> {
        self.runtime.block_on(async {
            for path in &self.paths {
                let mut is_busy = false;
                let answer =
                    tokio::time::timeout(ANSWER_TIME, ask_until_served(path, method.clone(), target, &mut is_busy))
                        .await;
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

/// `body` as JSON in which there is a `name`: others answer with JSON too, and fields that are not there are empty ones.
fn part(path: &Path, body: &[u8], name: &str) -> Result<Value, ClientError> {
    let answer: Value = serde_json::from_slice(body).map_err(|error| wrong(path, &error))?;
    match answer.get(name) {
        Some(_) => Ok(answer),
        None => Err(wrong(path, &format!("there is no `{name}` in it"))),
    }
}

fn wrong(path: &Path, error: &dyn fmt::Display) -> ClientError {
    ClientError::Broken { path: path.to_owned(), what: format!("an answer that is wrong: {error}") }
}

/// Asks again for as long as the switch has no place for one more, which `is_busy` says.
async fn ask_until_served(
    path: &Path,
    method: Method,
    target: &str,
    is_busy: &mut bool,
) -> Result<Vec<u8>, ClientError> {
    let mut tries = 0;
    loop {
        match ask(path, method.clone(), target).await {
            Err(ClientError::Busy(_)) => *is_busy = true,
            Err(ClientError::HungUp(_)) if tries < HUNG_UP_TRIES => tries += 1,
            answer => return answer,
        }
        tokio::time::sleep(TRY_TIME).await;
    }
}

async fn ask(path: &Path, method: Method, target: &str) -> Result<Vec<u8>, ClientError> {
    let broken = |error: &dyn std::fmt::Display| ClientError::Broken { path: path.to_owned(), what: error.to_string() };
    let stream = connect(path).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let connection = tokio::spawn(connection);
    let request = Request::builder().method(method).uri(target).header(header::HOST, "holdfast").body(Body::empty());
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
    // The two others are answers to a reload that is not to be.
    let is_answer = [StatusCode::OK, StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY].contains(&status);
    if is_answer {
        return Ok(body.into());
    }
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(Refusal { error, remedy }) => Err(ClientError::Refused { error, remedy }),
        Err(_) => Err(broken(&format!("it answers {status}"))),
    }
}

/// Connects; waits for as long as the queue of those who want to is full.
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
            // A file that is no socket refuses as a dead socket does.
            ErrorKind::ConnectionRefused if !is_socket(path) => return Err(ClientError::NotASocket(path.to_owned())),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::ConnectionRefused => {
                return Err(ClientError::Nobody(vec![path.to_owned()]));
            }
            ErrorKind::PermissionDenied => return Err(ClientError::Forbidden(path.to_owned())),
            _ => return Err(ClientError::Broken { path: path.to_owned(), what: error.kind().to_string() }),
        }
    }
}

/// Whether the other side had hung up before it was asked.
fn is_broken_pipe(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

/// Whether `path` is a socket, or was one a moment ago.
fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |file| file.file_type().is_socket())
}
