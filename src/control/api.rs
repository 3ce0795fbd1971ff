//! The API of a switch that runs: where it listens, and what it may ask of the lcores.

use std::io::{self, Write};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::RunError;
use crate::api::model::RunningConfig;
use crate::api::socket::Bound;
use crate::api::{EventLog, Reloads, Served, Socket, server};
use crate::config::Config;
use crate::dataplane::Orders;
use crate::stats::Current;

/// The API before and while it is served. Dropped, its socket is gone.
#[derive(Debug, Default)]
pub(super) struct Api {
    bound: Option<Bound>,
    events: Arc<EventLog>,
    config: Arc<RwLock<RunningConfig>>,
    task: Option<JoinHandle<io::Result<()>>>,
}

impl Api {
    /// Takes the socket that `config` names, before DPDK starts. Without the usual one a switch does its work as well, so
    /// that is only noted.
    pub fn listen(config: &Config) -> Result<Self, RunError> {
        let api = &config.api;
        let bound =
            api.socket.to_serve().and_then(|path| path.map(|path| Bound::new(&path, api.group.as_deref())).transpose());
        match bound {
            Ok(bound) => Ok(Self { bound, ..Self::default() }),
            // Whoever names a group or a socket wants it.
            Err(error) if api.socket != Socket::Usual || api.group.is_some() => Err(error.into()),
            Err(error) => {
                // Nobody is left to tell if this fails, and `eprintln!` would panic.
                let _ = writeln!(io::stderr(), "note: no API: {error}");
                Ok(Self::default())
            }
        }
    }

    /// Serves it for as long as `runtime` runs.
    pub fn serve(
        &mut self,
        runtime: &Runtime,
        config: &Config,
        current: &Arc<Current>,
        orders: &Arc<Orders>,
        hz: u64,
        reloads: Reloads,
    ) -> io::Result<()> {
        let Some(bound) = &self.bound else { return Ok(()) };
        let mut served = Served::new(current.clone(), orders.clone(), hz);
        served.devices = config.devices.iter().map(|device| device.kind.to_string()).collect();
        self.goes_by(config);
        served.config = self.config.clone();
        served.reloads = Some(reloads);
        served.events = self.events.clone();
        served.writes = config.api.writes;
        let _inside = runtime.enter();
        let listener = tokio::net::UnixListener::from_std(bound.listener()?)?;
        self.task = Some(runtime.spawn(server::serve(listener, Arc::new(served))));
        Ok(())
    }

    /// Hangs up, and removes the socket: whoever asks from now on is told that no switch listens, and does not wait for one
    /// that drains.
    pub fn end(self, runtime: &Runtime) {
        drop(self.bound);
        if let Some(task) = self.task {
            task.abort();
            let _ = runtime.block_on(task);
        }
    }

    /// The switch goes by `config` from now on.
    pub fn goes_by(&self, config: &Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = RunningConfig {
            source: config.source.clone(),
            hash: String::new(),
            overrides: config.overrides.clone(),
            text: config.text.clone(),
        };
    }

    /// Keeps what was told at `at` since the switch began, for who asks later.
    pub fn note(&self, at: Duration, line: &str) {
        self.events.add(at, line);
    }
}
