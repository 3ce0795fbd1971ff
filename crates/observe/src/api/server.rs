//! The server of the API: resources are views on one snapshot of the switch.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::net::UnixListener;

use super::answer::{
    Part, Refusal, error, json, read_only, refuse_long_headers, refuse_parameters, text, unknown, wrong_method,
};
use super::events::EventLog;
use super::faults::MAX_BODY;
use super::fdb::{ClearRequest, FdbReader, Silent, Source};
use super::history::History;
use super::model::{Fdb, Look, RunningConfig, Version, Vlan};
use super::operations::{Method, OPERATIONS};
use super::reloads::Reloads;
use super::roles::{Roles, by, judge, user_of};
use crate::plan::LcoreControl;
use crate::router::RouterHandle;
use crate::stats::bounded::{Bounded, Peer, busy, hang_up_after};
use crate::stats::{Current, Notice, NoticeKind, Snapshot, SwitchView};

/// Most simultaneous connections. A person and a few programs need a handful.
pub const MAX_CONNECTIONS: usize = 32;

/// Longest duration of a connection: each client sends one request.
pub const CONNECTION_TIME: Duration = Duration::from_secs(5);

/// The state of a running switch that the API serves.
pub struct Served {
    /// The current switch: its counters and settings.
    pub current: Arc<Current>,
    /// The running configuration; its hash is taken from `current`.
    pub config: Arc<RwLock<RunningConfig>>,
    /// The channel for reloads; `None` if the configuration cannot be read again.
    pub reloads: Option<Reloads>,
    /// The last configurations.
    pub history: Arc<History>,
    /// The last events of the switch.
    pub events: Arc<EventLog>,
    /// Whether requests may change the switch.
    pub writes: bool,
    /// Roles of users; `None`: `writes` decides for all.
    pub roles: Option<Roles>,
    /// The router's thread; `None` if the switch does not route.
    pub router: Option<RouterHandle>,
    /// The orders and requests to its lcores.
    pub control: Arc<LcoreControl>,
    /// Ticks per second of the lcores' clock.
    pub hz: u64,
    /// Time of the start, by the monotonic clock and by the wall clock.
    pub began: (Instant, SystemTime),
    pub(super) fdb: FdbReader,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("writes", &self.writes).finish_non_exhaustive()
    }
}

impl Served {
    /// Returns the state of `current`, a switch that starts now on lcores that follow `orders` by a clock of `hz`.
    #[must_use]
    pub fn new(current: Arc<Current>, control: Arc<LcoreControl>, hz: u64) -> Self {
        Self {
            current,
            config: Arc::default(),
            reloads: None,
            history: Arc::default(),
            events: Arc::default(),
            writes: false,
            roles: None,
            router: None,
            control,
            hz,
            began: (Instant::now(), SystemTime::now()),
            fdb: FdbReader::default(),
        }
    }

    pub(super) fn version(&self) -> Version {
        Version {
            version: self.current.get().build.version.to_owned(),
            api: "v1".to_owned(),
            pid: std::process::id(),
            began_unix_ns: self.began_unix_ns(),
            config_source: self.config().source,
            config_hash: self.hash(),
            writes: self.writes,
        }
    }

    fn began_unix_ns(&self) -> u64 {
        let since = self.began.1.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Nanoseconds since the switch began.
    pub(super) fn at_ns(&self) -> u64 {
        u64::try_from(self.began.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn source<'a>(&'a self, switch_view: &'a SwitchView) -> Source<'a> {
        Source { switch_view, control: &self.control, hz: self.hz }
    }

    /// Formats the forwarding database with the time of now.
    fn fdb_writer(&self) -> impl FnOnce(&Fdb) -> Vec<u8> {
        let at_ns = self.at_ns();
        move |fdb| text(&Part { at_ns, name: "fdb", part: fdb })
    }

    pub(super) fn config(&self) -> RunningConfig {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        RunningConfig { hash: self.hash(), ..config }
    }

    fn hash(&self) -> String {
        format!("{:016x}", self.current.get().settings.fingerprint())
    }

    /// Takes a snapshot of the switch and answers with the part that `of` formats.
    pub(super) fn look(&self, of: impl FnOnce(&Look<'_>) -> Response) -> Response {
        let switch_view = self.current.get();
        let snapshot = Snapshot::take(&switch_view, self.began.0.elapsed());
        of(&Look { switch_view: &switch_view, snapshot: &snapshot })
    }
}

/// Serves `served` on `listener`. The future does not end by itself. To end it, drop it or the runtime on which it was
/// spawned; open connections are then cut.
///
/// # Errors
/// None is known for a running server; the result is that of the library.
pub async fn serve(listener: UnixListener, served: Arc<Served>) -> io::Result<()> {
    let told = format!("all {MAX_CONNECTIONS} connections are in use");
    let told = text(&Refusal { error: &told, remedy: "retry in a second" });
    let busy = busy("application/json", &String::from_utf8_lossy(&told));
    let app = router(served).into_make_service_with_connect_info::<Peer>();
    axum::serve(Bounded::new(listener, MAX_CONNECTIONS, CONNECTION_TIME, busy), app).await
}

/// The router for all requests.
pub fn router(served: Arc<Served>) -> Router {
    let mut router = Router::new();
    for operation in OPERATIONS {
        let answer = |Shared(served): Shared<Arc<Served>>, request: Request| (operation.handle)(served, request);
        router = router.route(operation.path, on(operation.method.filter(), answer));
    }
    router
        .fallback(|request: Request| std::future::ready(unknown(&request)))
        .method_not_allowed_fallback(|request: Request| std::future::ready(wrong_method(&request)))
        .layer(axum::middleware::from_fn_with_state(served.clone(), judge))
        .layer(axum::middleware::from_fn(refuse_parameters))
        .layer(axum::middleware::from_fn(refuse_long_headers))
        .layer(axum::middleware::map_response(hang_up_after))
        .with_state(served)
}

/// The list of resources.
#[derive(Serialize, JsonSchema)]
pub(super) struct Index {
    /// Paths that can be read.
    resources: Vec<&'static str>,
}

impl Index {
    pub fn new() -> Self {
        let read =
            OPERATIONS.iter().filter(|of| of.method == Method::Get && of.path != "/v1" && !of.path.contains('{'));
        Self { resources: read.map(|of| of.path).collect() }
    }
}

/// The whole state at one time.
pub(super) fn state(served: &Served) -> Response {
    served.look(|look| json(StatusCode::OK, &look.state(served.version())))
}

pub(super) async fn fdb(served: &Served) -> Response {
    let switch_view = served.current.get();
    // A repeated answer has the time of its first request.
    match served.fdb.text(&served.source(&switch_view), served.fdb_writer()).await {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(Silent) => silent(),
    }
}

pub(super) async fn vlans(served: &Served) -> Response {
    let switch_view = served.current.get();
    match served.fdb.stations(&served.source(&switch_view), served.fdb_writer()).await {
        Ok(stations) => {
            let vlans = Vlan::all(&switch_view.spec, &stations);
            json(StatusCode::OK, &Part { at_ns: served.at_ns(), name: "vlans", part: vlans })
        }
        Err(Silent) => silent(),
    }
}

/// The answer if an lcore did not do its part in time.
fn silent() -> Response {
    let remedy = "retry; check that the switch is not ending and that each lcore has a CPU";
    error(
        StatusCode::SERVICE_UNAVAILABLE,
        "an lcore of the switch did not answer about its forwarding database",
        remedy,
    )
}

/// The answer to a request that removed stations.
#[derive(Serialize, JsonSchema)]
pub(super) struct Cleared {
    /// Stations that were removed.
    stations: u64,
}

/// Removes the learned stations that the request names.
pub(super) async fn clear_fdb(served: &Served, request: Request) -> Response {
    if !served.writes {
        let remedy = "write `api: {writes: true}` in the switch's configuration, and restart it";
        return error(StatusCode::FORBIDDEN, "this switch's API is read-only", remedy);
    }
    let user = user_of(&request);
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        let what = format!("the request did not arrive whole, or has more than {MAX_BODY} bytes");
        return error(StatusCode::PAYLOAD_TOO_LARGE, &what, "send one JSON object");
    };
    let asked = ClearRequest::read(&body);
    let stations = asked.and_then(|asked| Ok((asked.stations(&served.current.get().spec)?, asked)));
    let (stations, asked) = match stations {
        Ok(stations) => stations,
        Err((what, remedy)) => return error(StatusCode::BAD_REQUEST, &what, &remedy),
    };
    let Ok(count) = served.fdb.clear(&served.control, stations).await else { return silent() };
    let notice =
        Notice::new(NoticeKind::FdbCleared, format!("clear: learned stations{}: {count}{}", asked.text(), by(user)));
    served.events.report(Notice { port: asked.port, ..notice });
    json(StatusCode::OK, &Part { at_ns: served.at_ns(), name: "cleared", part: Cleared { stations: count } })
}

/// The answer to a successful write.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// The effect.
    done: &'static str,
}

pub(super) fn clear(served: &Served, request: &Request) -> Response {
    if !served.writes {
        return read_only("kill -USR1");
    }
    let switch_view = served.current.get();
    switch_view.watermarks.remember(&Snapshot::take(&switch_view, served.began.0.elapsed()));
    served.control.clear_watermarks();
    served
        .events
        .report(Notice::new(NoticeKind::WatermarksCleared, format!("clear: watermarks{}", by(user_of(request)))));
    json(StatusCode::OK, &Done { done: "watermarks are set to the current values" })
}
