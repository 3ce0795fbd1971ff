//! The forwarding database on request. The lcores publish theirs part by part. An answer is repeated for a second, so
//! that frequent requests do not keep the lcores busy.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::Mutex;

use super::model::{Fdb, FdbEntry};
use crate::forward::fdb::Sighting;
use crate::plan::LcoreControl;
use crate::plan::fdb_view::{FdbWindow, Part};
use crate::stats::SwitchView;

/// Longest time for which an answer is repeated.
const KEPT: Duration = Duration::from_secs(1);

/// Time between two checks whether an lcore has published the requested part.
const LOOK: Duration = Duration::from_millis(1);

/// Longest time that an lcore may take for a part; it always polls, so it normally needs far less.
const PATIENCE: Duration = Duration::from_secs(2);

/// The error that an lcore did not publish its forwarding database in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silent;

/// The cache of the last answer.
#[derive(Debug, Default)]
pub(super) struct FdbReader {
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl FdbReader {
    /// The database as `write` formats it, now or up to a second ago. One request at a time reads the lcores; others
    /// wait for its answer.
    pub async fn read(&self, of: &Source<'_>, write: impl FnOnce(&Fdb) -> Vec<u8>) -> Result<Bytes, Silent> {
        let mut last = self.last.lock().await;
        if let Some((at, text)) = &*last
            && at.elapsed() < KEPT
        {
            return Ok(text.clone());
        }
        let text = Bytes::from(write(&of.fdb().await?));
        *last = Some((Instant::now(), text.clone()));
        Ok(text)
    }
}

/// The switch whose forwarding database is read.
pub(super) struct Source<'a> {
    pub switch_view: &'a SwitchView,
    pub control: &'a LcoreControl,
    /// Ticks per second of the lcores' clock.
    pub hz: u64,
}

impl Source<'_> {
    async fn fdb(&self) -> Result<Fdb, Silent> {
        let mut entries = Vec::new();
        for window in self.control.stations() {
            let mut from = Some(0);
            while let Some(bucket) = from {
                let part = part(window, bucket).await?;
                entries.extend(part.entries.iter().map(|seen| self.entry(seen)));
                from = part.next;
            }
        }
        entries.sort_unstable();
        let spec = &self.switch_view.spec.fdb;
        Ok(Fdb { capacity: spec.capacity, ageing_ns: spec.ageing.0, entries })
    }

    /// The name of a port, or of the link aggregation group that it stands for.
    fn place(&self, port: usize) -> &str {
        let group = self.switch_view.spec.lags.group_of(port);
        group.map_or_else(|| self.switch_view.port_name(port), |group| &group.name)
    }

    fn entry(&self, seen: &Sighting) -> FdbEntry {
        let ns = |ticks: u64| u128::from(ticks) * 1_000_000_000 / u128::from(self.hz.max(1));
        FdbEntry {
            vlan: seen.station.vlan(),
            mac: seen.station.mac().to_string(),
            port: self.place(seen.port).to_owned(),
            origin: if seen.age.is_some() { "learned" } else { "static" }.to_owned(),
            age_ns: seen.age.map(|ticks| u64::try_from(ns(ticks)).unwrap_or(u64::MAX)),
        }
    }
}

async fn part(window: &FdbWindow, from: usize) -> Result<Part, Silent> {
    window.ask(from);
    let shown = async {
        loop {
            if let Some(part) = window.answer() {
                return part;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, shown).await.map_err(|_| Silent)
}
