//! The forwarding database on request. The lcores publish theirs part by part. An answer is repeated for a second, so
//! that frequent requests do not keep the lcores busy. Learned stations are removed on request too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::model::{Fdb, FdbEntry};
use crate::config::yaml::names::suggest;
use crate::forward::fdb::Sighting;
use crate::forward::vlan::MAX_VLAN;
use crate::plan::fdb_view::{FdbWindow, Part};
use crate::plan::{ClearedStations, LcoreControl, SwitchSpec};
use crate::sets::PortSet;
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

/// An answer that is repeated for a while.
#[derive(Debug)]
struct Answer {
    at: Instant,
    text: Bytes,
    /// Number of stations, by VLAN.
    stations: BTreeMap<u16, u64>,
}

/// The cache of the last answer.
#[derive(Debug, Default)]
pub(super) struct FdbReader {
    last: Mutex<Option<Answer>>,
}

/// The stations that a request removes: all learned ones without a member.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClearRequest {
    /// Those behind this port or [group](lag.md).
    pub port: Option<String>,
    /// Those in this VLAN.
    pub vlan: Option<u16>,
}

impl FdbReader {
    /// The database as text, now or up to a second ago.
    pub async fn text(&self, of: &Source<'_>, write: impl FnOnce(&Fdb) -> Vec<u8>) -> Result<Bytes, Silent> {
        self.read(of, write, |answer| answer.text.clone()).await
    }

    /// Number of stations by VLAN, now or up to a second ago.
    pub async fn stations(
        &self,
        of: &Source<'_>,
        write: impl FnOnce(&Fdb) -> Vec<u8>,
    ) -> Result<BTreeMap<u16, u64>, Silent> {
        self.read(of, write, |answer| answer.stations.clone()).await
    }

    /// A part of the answer. One request at a time reads the lcores; others wait for its answer.
    async fn read<T>(
        &self,
        of: &Source<'_>,
        write: impl FnOnce(&Fdb) -> Vec<u8>,
        part: impl Fn(&Answer) -> T,
    ) -> Result<T, Silent> {
        let mut last = self.last.lock().await;
        if let Some(answer) = last.as_ref().filter(|answer| answer.at.elapsed() < KEPT) {
            return Ok(part(answer));
        }
        let fdb = of.fdb().await?;
        let mut stations = BTreeMap::new();
        fdb.entries.iter().for_each(|entry| *stations.entry(entry.vlan).or_default() += 1);
        let answer = Answer { at: Instant::now(), text: Bytes::from(write(&fdb)), stations };
        Ok(part(last.insert(answer)))
    }

    /// Removes learned stations from the databases of all lcores. Returns their number.
    pub async fn clear(&self, control: &LcoreControl, stations: ClearedStations) -> Result<u64, Silent> {
        let mut last = self.last.lock().await;
        *last = None;
        let removed = clear_once(control, stations).await?;
        if control.stations().len() > 1 {
            // Updates that were on their way between lcores have brought stations back.
            clear_once(control, stations).await?;
        }
        Ok(removed)
    }
}

async fn clear_once(control: &LcoreControl, stations: ClearedStations) -> Result<u64, Silent> {
    let number = wait_for(|| control.clear_stations(stations)).await?;
    wait_for(|| control.cleared_stations(number)).await
}

impl ClearRequest {
    /// Reads the body of a request; an empty one means all learned stations.
    ///
    /// # Errors
    /// The mistake and its remedy.
    pub fn read(body: &[u8]) -> Result<Self, (String, String)> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let remedy = r#"send JSON, e.g. {"port": "p1", "vlan": 10}; each member may be left out"#;
        // A list would be read as the members in their order.
        let object = serde_json::from_slice(body).map(Value::Object);
        let request = object.and_then(serde_json::from_value);
        request.map_err(|error| (format!("the request is invalid: {error}"), remedy.to_owned()))
    }

    /// The stations in the switch `spec`.
    ///
    /// # Errors
    /// The mistake and its remedy.
    pub fn stations(&self, spec: &SwitchSpec) -> Result<ClearedStations, (String, String)> {
        if let Some(vlan) = self.vlan.filter(|vlan| !(1..=MAX_VLAN).contains(vlan)) {
            return Err((format!("{vlan} is not a VLAN"), format!("send a number from 1 to {MAX_VLAN}")));
        }
        let ports = match &self.port {
            Some(name) => PortSet::only(place(spec, name)?),
            None => PortSet::ALL,
        };
        Ok(ClearedStations { ports, vlan: self.vlan })
    }

    /// The stations in words.
    pub fn text(&self) -> String {
        let port = self.port.iter().map(|port| format!(" of {port}"));
        let vlan = self.vlan.iter().map(|vlan| format!(" in VLAN {vlan}"));
        port.chain(vlan).collect()
    }
}

/// The port that stands for the port or group `name` in the database.
fn place(spec: &SwitchSpec, name: &str) -> Result<usize, (String, String)> {
    if let Some(group) = spec.lags.groups.iter().find(|group| group.name == name) {
        return Ok(group.head());
    }
    let Some(port) = spec.ports.iter().position(|port| port.name == name) else {
        let names: Vec<&str> = spec.ports.iter().map(|port| port.name.as_str()).collect();
        return Err((format!("there is no port `{name}`"), suggest(name, &names)));
    };
    match spec.lags.group_of(port) {
        None => Ok(port),
        Some(group) => Err((format!("{name} is a member of {}", group.name), format!("send {}", group.name))),
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
    wait_for(|| window.answer()).await
}

/// Waits until the lcores have done something.
async fn wait_for<T>(mut done: impl FnMut() -> Option<T>) -> Result<T, Silent> {
    let waiting = async {
        loop {
            if let Some(result) = done() {
                return result;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| Silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::LagSpec;

    #[test]
    fn request_to_clear_names_a_port_a_group_or_a_vlan() {
        let mut spec = crate::stats::fixture::quiet().spec;
        let stations = |spec: &SwitchSpec, body: &str| ClearRequest::read(body.as_bytes())?.stations(spec);
        let all = ClearedStations { ports: PortSet::ALL, vlan: None };
        assert_eq!((stations(&spec, ""), stations(&spec, " {}\n")), (Ok(all), Ok(all)));
        let some = ClearedStations { ports: PortSet::only(1), vlan: Some(10) };
        assert_eq!(stations(&spec, r#"{"port": "p2", "vlan": 10}"#), Ok(some));
        for (body, what) in [
            (r#"{"port": "p9"}"#, "there is no port `p9`"),
            (r#"{"vlan": 0}"#, "0 is not a VLAN"),
            (r#"{"vlan": 4095}"#, "4095 is not a VLAN"),
        ] {
            assert_eq!(stations(&spec, body).map_err(|(what, _)| what), Err(what.to_owned()));
        }
        for body in [r#"{"ports": "p1"}"#, "[]", r#"{"vlan": "10"}"#, "x"] {
            assert!(stations(&spec, body).is_err_and(|(what, _)| what.starts_with("the request is invalid")), "{body}");
        }
        let ports = PortSet::only(0) | PortSet::only(1);
        spec.lags.groups.push(LagSpec { name: "bond0".to_owned(), ports, min_links: 1, is_negotiated: false });
        assert_eq!(
            stations(&spec, r#"{"port": "bond0"}"#),
            Ok(ClearedStations { ports: PortSet::only(0), vlan: None })
        );
        assert_eq!(stations(&spec, r#"{"port": "p2"}"#), Err(("p2 is a member of bond0".into(), "send bond0".into())));
    }
}
