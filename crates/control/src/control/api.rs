//! The API of a running switch: its socket, its server and its event log.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

use super::RunError;
use crate::api::model::{Event, RunningConfig};
use crate::api::socket::{Access, Bound, to_serve};
use crate::api::{EventLog, History, Reloads, Roles, Served, Socket, server};
use crate::config::Config;
use crate::output::{self, Severity};
use crate::plan::LcoreControl;
use crate::router::RouterHandle;
use crate::stats::{Current, Notice};

/// Longest wait for the end of the server.
const END_TIME: Duration = Duration::from_secs(1);

/// The API before and while it is served. Dropping it removes the socket.
#[derive(Debug, Default)]
pub(super) struct Api {
    bound: Option<Bound>,
    roles: Option<Roles>,
    events: Arc<EventLog>,
    /// The last configurations.
    pub history: Arc<History>,
    config: Arc<RwLock<RunningConfig>>,
    task: Option<JoinHandle<io::Result<()>>>,
}

/// A warning of a directory that keeps readers and administrators from the socket.
fn closed(directory: &Path) -> String {
    let directory = directory.display();
    format!("other users cannot reach the API's socket: {directory} is closed to them; name another --socket PATH")
}

/// Parts of the switch that the API shows.
pub(super) struct Observed<'a> {
    pub current: &'a Arc<Current>,
    /// `None`: the switch only bridges.
    pub router: Option<RouterHandle>,
}

impl Api {
    /// Binds the socket that `config` names, before DPDK starts. If the default socket fails, the switch runs without
    /// an API and prints a note.
    pub fn listen(config: &Config, history: History) -> Result<Self, RunError> {
        let (api, history) = (&config.api, Arc::new(history));
        let access = match &api.group {
            Some(group) => Access::Group(group),
            None if api.has_roles() => Access::All,
            None => Access::User,
        };
        let bound = to_serve(&api.socket).and_then(|path| path.map(|path| Bound::new(&path, access)).transpose());
        let with_roles = |bound: Option<Bound>| {
            let roles = bound.as_ref().map(|_| Roles::new(api)).transpose()?.flatten();
            Ok((bound, roles))
        };
        if let Ok(Some(bound)) = &bound
            && access == Access::All
        {
            bound.closed_directory().iter().for_each(|directory| super::warn(&closed(directory)));
        }
        match bound.and_then(with_roles) {
            Ok((bound, roles)) => Ok(Self { bound, roles, history, ..Self::default() }),
            // A configured group or socket is required, so its failure is an error.
            Err(error) if api.socket != Socket::Usual || access != Access::User => Err(error.into()),
            Err(error) => {
                output::tell(Severity::Warning, &format!("note: the API is off: {error}"));
                Ok(Self { history, ..Self::default() })
            }
        }
    }

    /// Serves the API for as long as `runtime` runs.
    pub fn serve(
        &mut self,
        runtime: &Handle,
        config: &Config,
        observed: Observed<'_>,
        control: &Arc<LcoreControl>,
        hz: u64,
        reloads: Reloads,
    ) -> io::Result<()> {
        let Some(bound) = &self.bound else { return Ok(()) };
        let mut served = Served::new(observed.current.clone(), control.clone(), hz);
        self.goes_by(config);
        served.config = self.config.clone();
        served.reloads = Some(reloads);
        served.router = observed.router;
        served.events = self.events.clone();
        served.history = self.history.clone();
        served.writes = config.api.writes || config.api.has_roles();
        served.roles = self.roles.take();
        let _inside = runtime.enter();
        let listener = tokio::net::UnixListener::from_std(bound.listener()?)?;
        self.task = Some(runtime.spawn(server::serve(listener, Arc::new(served))));
        Ok(())
    }

    /// Closes all connections and removes the socket. Later clients find no listener, and do not wait for a switch that
    /// drains.
    pub fn end(self, runtime: &Runtime) {
        drop(self.bound);
        if let Some(task) = self.task {
            task.abort();
            // The servers' thread may hang, which must not keep the switch.
            let _ = runtime.block_on(async { tokio::time::timeout(END_TIME, task).await });
        }
    }

    /// Publishes `config` as the running configuration.
    pub fn goes_by(&self, config: &Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = RunningConfig {
            source: config.source.clone(),
            hash: String::new(),
            overrides: config.overrides.clone(),
            text: config.text.clone(),
        };
    }

    /// Adds `notice`, made at `at` since the switch began, to the event log. Returns the event.
    pub fn note(&self, at: Duration, notice: &Notice) -> Event {
        self.events.add(at, notice)
    }

    /// Notices of requests that changed the switch.
    pub fn take_notices(&self) -> Vec<Notice> {
        self.events.take_notices()
    }
}
