//! The API of a switch that runs: where it listens, and what it may ask of the lcores.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Runtime;

use super::RunError;
use crate::api::model::RunningConfig;
use crate::api::socket::{Bound, SocketError};
use crate::api::{EventLog, Served, Socket, server};
use crate::config::Config;
use crate::dataplane::Orders;
use crate::stats::Current;

/// The API before and while it is served. Dropped, its socket is gone.
#[derive(Debug, Default)]
pub(super) struct Api {
    bound: Option<Bound>,
    events: Arc<EventLog>,
}

impl Api {
    /// Takes the socket that `config` names, before DPDK starts. Without the usual one a switch does its work as well, so
    /// that is only noted.
    pub fn listen(config: &Config) -> Result<Self, RunError> {
        let api = &config.api;
        let bound =
            api.socket.to_serve().and_then(|path| path.map(|path| Bound::new(&path, api.group.as_deref())).transpose());
        match bound {
            Ok(bound) => Ok(Self { bound, events: Arc::default() }),
            // A group is asked for by name too.
            Err(error) if api.socket != Socket::Usual || matches!(error, SocketError::NoGroup(_)) => Err(error.into()),
            Err(error) => {
                // Nobody is left to tell if this fails, and `eprintln!` would panic.
                let _ = writeln!(io::stderr(), "note: no API: {error}");
                Ok(Self::default())
            }
        }
    }

    /// Serves it for as long as `runtime` runs.
    pub fn serve(
        &self,
        runtime: &Runtime,
        config: &Config,
        current: &Arc<Current>,
        orders: &Arc<Orders>,
    ) -> io::Result<()> {
        let Some(bound) = &self.bound else { return Ok(()) };
        let orders = orders.clone();
        let served = Served {
            current: current.clone(),
            devices: config.devices.iter().map(|device| device.kind.to_string()).collect(),
            config: RunningConfig {
                source: config.source.clone(),
                hash: String::new(),
                overrides: config.overrides.clone(),
                text: config.text.clone(),
            },
            events: self.events.clone(),
            writes: config.api.writes,
            clear_watermarks: Box::new(move || orders.clear_watermarks()),
            began: (Instant::now(), SystemTime::now()),
        };
        let _inside = runtime.enter();
        let listener = tokio::net::UnixListener::from_std(bound.listener()?)?;
        runtime.spawn(server::serve(listener, Arc::new(served)));
        Ok(())
    }

    /// Keeps what was told at `at` since the switch began, for who asks later.
    pub fn note(&self, at: Duration, line: &str) {
        self.events.add(at, line);
    }
}
