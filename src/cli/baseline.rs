//! `holdfast clear counters`: the counters of a switch from which `holdfast show` counts for one user. The switch and
//! Prometheus count on, so nobody else sees a difference. A file in the user's state directory holds them; it belongs
//! to one start of one switch, so a restart makes it void.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use holdfast::api::Client;
use holdfast::api::model::State;
use holdfast::text::time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Failure;

/// Resources with counters that are counted from the baseline.
const RESOURCES: [&str; 6] = ["ports", "pfc", "queues", "drops", "ecn", "watchdog"];

/// Their counters; all other numbers are settings, present values or watermarks.
const COUNTERS: [&str; 33] = [
    "received_frames",
    "received_bytes",
    "received_wire_bytes",
    "sent_frames",
    "sent_bytes",
    "sent_wire_bytes",
    "dropped_frames",
    "lossless_dropped_frames",
    "missed_frames",
    "no_buffer_frames",
    "receive_errors",
    "send_errors",
    "egress_stucks",
    "backlog_xoffs",
    "backlog_held_ns",
    "roce_ack_frames",
    "roce_cnp_frames",
    "pause_received_frames",
    "sent_xoff_frames",
    "sent_xon_frames",
    "queue_stops",
    "received_xoff_frames",
    "received_xon_frames",
    "ignored_frames",
    "sent_paused_ns",
    "received_paused_ns",
    "ecn_marked_frames",
    "marked_frames",
    "max_rate_held_ns",
    "qcn_made_messages",
    "frames",
    "storms",
    "restores",
];

/// Keys that together tell which row it is.
const IDENTITY: [&str; 5] = ["port", "class", "priority", "queue", "reason"];

/// Baselines of a user at most: one for each start of a switch.
const MOST: usize = 8;
/// Largest file in bytes; that of 64 ports has a tenth.
const LARGEST: u64 = 16 << 20;

/// The counters of a switch at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Time of the wall clock.
    at_unix_ns: u64,
    /// Time since the start of the switch.
    at_ns: u64,
    /// The answers of the API.
    counters: Map<String, Value>,
}

impl Baseline {
    /// The baseline of this user for the running switch, if there is one.
    pub fn find(client: &Client) -> Result<Option<Self>, Failure> {
        let Some(directory) = directory().filter(|directory| directory.is_dir()) else { return Ok(None) };
        read(&file(&directory, began(client)?))
    }

    /// Whether rows of the resource `name` have counters that it changes.
    pub fn has(name: &str) -> bool {
        RESOURCES.contains(&name)
    }

    /// Subtracts the counters of the baseline from those of the resource `name` in `answer`, and notes its time.
    pub fn subtract(&self, name: &str, answer: &mut Value) {
        if let (Some(part), Some(before)) = (answer.get_mut(name), self.counters.get(name)) {
            subtract(part, before);
        }
        let at_ns = answer["at_ns"].as_u64().unwrap_or(0).saturating_sub(self.at_ns);
        answer["at_ns"] = at_ns.into();
        answer[SINCE] = utc(self.at_unix_ns).into();
    }
}

/// The member of an answer in memory that has the time of the baseline.
pub const SINCE: &str = "counted_since";

/// Makes the present counters of the switch the baseline of this user.
pub fn set(client: &Client) -> Result<String, Failure> {
    let directory = directory().ok_or_else(nowhere)?;
    let state: State = client.state()?;
    let mut answer = serde_json::to_value(&state).unwrap_or_default();
    let counters = RESOURCES.iter().filter_map(|name| Some(((*name).to_owned(), answer.get_mut(*name)?.take())));
    let began = state.version.began_unix_ns;
    let at_unix_ns = began.saturating_add(state.at_ns);
    let baseline = Baseline { at_unix_ns, at_ns: state.at_ns, counters: counters.collect() };
    let path = file(&directory, began);
    write(&path, &baseline).map_err(|error| unusable(&path, &error))?;
    forget_oldest(&directory, &path);
    Ok(format!("`holdfast show` counts from {} on for this user\n", utc(at_unix_ns)))
}

/// Removes the baseline of this user.
pub fn undo(client: &Client) -> Result<String, Failure> {
    let directory = directory().ok_or_else(nowhere)?;
    let path = file(&directory, began(client)?);
    match fs::remove_file(&path) {
        Ok(()) => Ok("`holdfast show` counts from the start of the switch again\n".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok("no counters of this switch are cleared\n".to_owned()),
        Err(error) => Err(unusable(&path, &error)),
    }
}

fn began(client: &Client) -> Result<u64, Failure> {
    Ok(client.get::<State>("version")?.version.began_unix_ns)
}

/// The directory of this user's baselines (XDG Base Directory); `None`: the user has no home.
fn directory() -> Option<PathBuf> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")))?;
    Some(state.join("holdfast"))
}

fn file(directory: &Path, began_unix_ns: u64) -> PathBuf {
    directory.join(format!("counters-{began_unix_ns}.json"))
}

fn read(path: &Path) -> Result<Option<Baseline>, Failure> {
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
    match read {
        Ok(_) => serde_json::from_slice(&text).map(Some).map_err(|error| unusable(path, &error.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, &error)),
    }
}

/// Writes the whole file or nothing.
fn write(path: &Path, baseline: &Baseline) -> io::Result<()> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(&new, serde_json::to_vec(baseline)?)?;
    fs::rename(&new, path).inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Removes the oldest baselines beyond [`MOST`], but not `own`.
fn forget_oldest(directory: &Path, own: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let is_baseline = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("counters-"))
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| is_baseline(path) && path != own);
    let mut aged: Vec<_> = paths.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path))).collect();
    aged.sort();
    let surplus = (aged.len() + 1).saturating_sub(MOST);
    // One that cannot be removed only takes its place.
    aged.iter().take(surplus).for_each(|(_, path)| drop(fs::remove_file(path)));
}

fn nowhere() -> Failure {
    Failure::Run("this user has no state directory for cleared counters; set XDG_STATE_HOME or HOME".to_owned())
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let remedy = "`holdfast clear counters --undo` removes it";
    Failure::Run(format!("the cleared counters in {} cannot be used: {error}; {remedy}", path.display()))
}

/// Subtracts counters row by row. A row without one before keeps its own.
fn subtract(now: &mut Value, before: &Value) {
    match (now, before) {
        (Value::Array(rows), Value::Array(earlier)) => {
            for row in rows {
                let is_same = |other: &&Value| IDENTITY.iter().all(|key| other.get(*key) == row.get(*key));
                if let Some(other) = earlier.iter().find(is_same) {
                    subtract(row, other);
                }
            }
        }
        (Value::Object(fields), Value::Object(earlier)) => {
            for (key, value) in fields {
                let Some(other) = earlier.get(key) else { continue };
                match (COUNTERS.contains(&key.as_str()), value.as_u64(), other.as_u64()) {
                    (true, Some(number), Some(other)) => *value = number.saturating_sub(other).into(),
                    _ => subtract(value, other),
                }
            }
        }
        _ => {}
    }
}

/// A time of the wall clock for people, such as `2026-11-30 12:03:07 UTC`.
fn utc(unix_ns: u64) -> String {
    time::utc(unix_ns).replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn baseline(counters: Value) -> Baseline {
        let Value::Object(counters) = counters else { panic!("{counters}") };
        Baseline { at_unix_ns: 1_000_000_000, at_ns: 40, counters }
    }

    #[test]
    fn counters_are_subtracted_row_by_row_and_gauges_stay() {
        let row = |port: &str, frames: u64, depth: u64| json!({"port": port, "queue": 3, "sent_frames": frames, "depth_bytes": depth});
        let before = baseline(json!({"queues": [row("p2", 7, 900), row("p1", 5, 800)]}));
        let mut answer = json!({"at_ns": 100, "queues": [row("p1", 25, 100), row("p2", 3, 0), row("p3", 9, 1)]});
        before.subtract("queues", &mut answer);
        assert_eq!(answer["queues"], json!([row("p1", 20, 100), row("p2", 0, 0), row("p3", 9, 1)]));
        assert_eq!((&answer["at_ns"], &answer[SINCE]), (&json!(60), &json!("1970-01-01 00:00:01 UTC")));
        let nested = |xoffs: u64| json!([{"port": "p1", "priorities": [{"priority": 3, "sent_xoff_frames": xoffs}]}]);
        let mut answer = json!({"at_ns": 100, "pfc": nested(9)});
        baseline(json!({"pfc": nested(4)})).subtract("pfc", &mut answer);
        assert_eq!(answer["pfc"], nested(5));
    }

    #[test]
    fn baselines_of_a_user_are_bounded_and_a_broken_one_is_refused_with_its_remedy() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..2 * MOST as u64 {
            let path = file(directory.path(), number);
            write(&path, &baseline(json!({}))).unwrap();
            forget_oldest(directory.path(), &path);
            assert_eq!(read(&path).unwrap(), Some(baseline(json!({}))));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MOST);
        assert_eq!(read(&file(directory.path(), 999)).unwrap(), None, "another start of the switch");
        let path = file(directory.path(), 1);
        fs::write(&path, "{").unwrap();
        let Failure::Run(text) = read(&path).unwrap_err() else { panic!() };
        assert!(text.contains("clear counters --undo"), "{text}");
    }

    #[test]
    fn wall_clock_is_shown_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_796_040_187, "2026-11-30 12:03:07 UTC"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
    }
}
