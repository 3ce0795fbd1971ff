//! The server of the API: resources are views on one snapshot of the switch.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde::Serialize;
use tokio::net::UnixListener;

use super::answer::{
    Part, Refusal, WITH_PARAMETERS, error, json, part, read_only, refuse_long_headers, refuse_parameters, text,
    unknown, wrong_method,
};
use super::configs;
use super::events::EventLog;
use super::faults::{self, MAX_BODY};
use super::fdb::{ClearRequest, FdbReader, Silent, Source};
use super::history::History;
use super::model::{
    Advice, Buffers, Class, Dropped, Ecn, Faults, Fdb, Flow, Group, Host, Lag, Lcore, LldpPort, Look, Mirrors, Pfc,
    Port, Queue, RunningConfig, Setting, Version, Vlan, Watchdog, Why,
};
use super::reloads::Reloads;
use super::routing;
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
    /// The device behind each port, as the configuration names it.
    pub devices: Vec<String>,
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
            devices: Vec::new(),
            config: Arc::default(),
            reloads: None,
            history: Arc::default(),
            events: Arc::default(),
            writes: false,
            router: None,
            control,
            hz,
            began: (Instant::now(), SystemTime::now()),
            fdb: FdbReader::default(),
        }
    }

    fn version(&self) -> Version {
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

    fn config(&self) -> RunningConfig {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        RunningConfig { hash: self.hash(), ..config }
    }

    fn hash(&self) -> String {
        format!("{:016x}", self.current.get().settings.fingerprint())
    }

    /// Takes a snapshot of the switch and answers with the part that `of` formats.
    fn look(&self, of: impl FnOnce(&Look<'_>) -> Response) -> Response {
        let switch_view = self.current.get();
        let snapshot = Snapshot::take(&switch_view, self.began.0.elapsed());
        of(&Look { switch_view: &switch_view, snapshot: &snapshot, devices: &self.devices })
    }
}

/// A resource: a part of the state under its own name.
struct Resource {
    name: &'static str,
    of: fn(&Served, &Look<'_>) -> Response,
}

macro_rules! views {
    ($($name:literal => $of:expr;)+) => {
        &[$(Resource { name: $name, of: |served, look| part(look, $name, ($of)(served, look)) }),+]
    };
}

/// Every resource but the whole state.
const VIEWS: &[Resource] = views! {
    "version" => |served: &Served, _: &Look<'_>| served.version();
    "classes" => |_, look| Class::all(look);
    "ports" => |_, look| Port::all(look);
    "pfc" => |_, look| Pfc::all(look);
    "buffers" => |_, look| Buffers::of(look);
    "groups" => |_, look| Group::all(look);
    "queues" => |_, look| Queue::all(look);
    "drops" => |_, look| Dropped::all(look);
    "ecn" => |_, look| Ecn::all(look);
    "watchdog" => |_, look| Watchdog::all(look);
    "lcores" => |_, look| Lcore::all(look);
    "lags" => |_, look| Lag::all(look);
    "lldp" => |_, look| LldpPort::all(look);
    "faults" => |_, look| Faults::of(look);
    "mirrors" => |_, look| Mirrors::of(look);
    "hosts" => |_, look| Host::all(look);
    "flows" => |_, look| Flow::all(look);
    "why" => |_, look| Why::all(look);
    "advice" => |_, look| Advice::all(look);
    "events" => |served: &Served, _: &Look<'_>| served.events.all();
    "config" => |served: &Served, _: &Look<'_>| served.config();
    "settings" => |_, look| Setting::all(look);
    "history" => |served: &Served, _: &Look<'_>| served.history.all();
};

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
    let mut router =
        Router::new()
            .route("/v1", get(|| std::future::ready(json(StatusCode::OK, &Index { resources: paths() }))))
            .route("/v1/state", get(|Shared(served): Shared<Arc<Served>>| async move { state(&served) }))
            .route("/v1/fdb", get(|Shared(served): Shared<Arc<Served>>| async move { fdb(&served).await }))
            .route("/v1/vlans", get(|Shared(served): Shared<Arc<Served>>| async move { vlans(&served).await }))
            .route(
                "/v1/fdb/clear",
                post(|Shared(served): Shared<Arc<Served>>, request: Request| async move {
                    clear_fdb(&served, request).await
                }),
            )
            .route(
                "/v1/interfaces",
                get(|Shared(served): Shared<Arc<Served>>| async move { routing::interfaces(&served).await }),
            )
            .route(
                "/v1/neighbours",
                get(|Shared(served): Shared<Arc<Served>>| async move { routing::neighbours(&served).await }),
            )
            .route(
                WITH_PARAMETERS,
                get(|Shared(served): Shared<Arc<Served>>, uri: Uri| async move {
                    routing::routes(&served, uri.query()).await
                }),
            )
            .route(
                "/v1/reload",
                get(|Shared(served): Shared<Arc<Served>>| async move { configs::compare(&served).await }).post(
                    |Shared(served): Shared<Arc<Served>>, request: Request| async move {
                        configs::reload(&served, request).await
                    },
                ),
            )
            .route(
                "/v1/reload/confirm",
                post(|Shared(served): Shared<Arc<Served>>, request: Request| async move {
                    configs::confirm(&served, request).await
                }),
            )
            .route(
                "/v1/history/{number}",
                get(|Shared(served): Shared<Arc<Served>>, uri: Uri| async move { configs::past(&served, uri.path()) }),
            )
            .route(
                "/v1/faults",
                post(|Shared(served): Shared<Arc<Served>>, request: Request| async move {
                    faults::add(&served, request).await
                })
                .delete(|Shared(served): Shared<Arc<Served>>| async move { faults::remove(&served, None).await }),
            )
            .route(
                "/v1/faults/{id}",
                // `Path` would refuse names that are not UTF-8 without JSON.
                delete(|Shared(served): Shared<Arc<Served>>, uri: Uri| async move {
                    faults::remove(&served, uri.path().rsplit('/').next()).await
                }),
            )
            .route("/v1/watermarks/clear", post(|Shared(served): Shared<Arc<Served>>| async move { clear(&served) }));
    for resource in VIEWS {
        let answer =
            move |Shared(served): Shared<Arc<Served>>| async move { served.look(|look| (resource.of)(&served, look)) };
        router = router.route(&format!("/v1/{}", resource.name), get(answer));
    }
    router
        .fallback(|request: Request| std::future::ready(unknown(&request, &paths())))
        .method_not_allowed_fallback(|request: Request| std::future::ready(wrong_method(&request)))
        .layer(axum::middleware::from_fn(refuse_parameters))
        .layer(axum::middleware::from_fn(refuse_long_headers))
        .layer(axum::middleware::map_response(hang_up_after))
        .with_state(served)
}

#[derive(Serialize)]
struct Index {
    resources: Vec<String>,
}

/// Paths of all readable resources.
fn paths() -> Vec<String> {
    ["state"]
        .into_iter()
        .chain(VIEWS.iter().map(|resource| resource.name))
        .chain(["fdb", "vlans", "interfaces", "neighbours", "routes", "reload"])
        .map(|name| format!("/v1/{name}"))
        .collect()
}

fn state(served: &Served) -> Response {
    served.look(|look| json(StatusCode::OK, &look.state(served.version())))
}

async fn fdb(served: &Served) -> Response {
    let switch_view = served.current.get();
    // A repeated answer has the time of its first request.
    match served.fdb.text(&served.source(&switch_view), served.fdb_writer()).await {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(Silent) => silent(),
    }
}

async fn vlans(served: &Served) -> Response {
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
#[derive(Serialize)]
struct Cleared {
    stations: u64,
}

/// Removes the learned stations that the request names.
async fn clear_fdb(served: &Served, request: Request) -> Response {
    if !served.writes {
        let remedy = "write `api: {writes: true}` in the switch's configuration, and restart it";
        return error(StatusCode::FORBIDDEN, "this switch's API is read-only", remedy);
    }
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
    let notice = Notice::new(NoticeKind::FdbCleared, format!("clear: learned stations{}: {count}", asked.text()));
    served.events.report(Notice { port: asked.port, ..notice });
    json(StatusCode::OK, &Part { at_ns: served.at_ns(), name: "cleared", part: Cleared { stations: count } })
}

/// The answer to a successful write.
#[derive(Serialize)]
struct Done {
    done: &'static str,
}

fn clear(served: &Served) -> Response {
    if !served.writes {
        return read_only("kill -USR1");
    }
    let switch_view = served.current.get();
    switch_view.watermarks.remember(&Snapshot::take(&switch_view, served.began.0.elapsed()));
    served.control.clear_watermarks();
    served.events.report(Notice::new(NoticeKind::WatermarksCleared, "clear: watermarks, by a request"));
    json(StatusCode::OK, &Done { done: "watermarks are set to the current values" })
}
