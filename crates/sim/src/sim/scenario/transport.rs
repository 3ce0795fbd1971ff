//! Reads `transport:` of a flow: how it repeats lost frames.

use crate::config::yaml::bounds;
use crate::config::yaml::read::Item;
use crate::sim::transport::{Recovery, TransportSpec};
use crate::units::{Bytes, Nanos};

/// Name of the mapping in a flow, and its keys.
pub const NAME: &str = "transport";
pub const KEYS: &[&str] =
    &["recovery", "ack_every", "window", "scale_window", "timeout", "retries", "nak_interval", "ack_dscp"];
const RECOVERIES: [(&str, Recovery); 3] = [
    ("go-back-n", Recovery::GoBackN),
    ("selective-repeat", Recovery::SelectiveRepeat),
    ("go-back-0", Recovery::GoBack0),
];
const SHORTEST: Nanos = Nanos(1_000);
const LONGEST: Nanos = Nanos(10_000_000_000);
const SMALLEST: Bytes = Bytes(64);
const LARGEST: Bytes = Bytes(1 << 30);
const MOST_UNACKED: u64 = 1024;

/// Reads the transport of a flow. `off` gives `None` inside.
pub fn read(item: &Item<'_>) -> Option<Option<TransportSpec>> {
    let default = TransportSpec::default();
    if item.is("off") || item.is("false") {
        return Some(None);
    }
    if let Some((_, recovery)) = RECOVERIES.iter().find(|(name, _)| item.is(name)) {
        return Some(Some(TransportSpec { recovery: *recovery, ..default }));
    }
    if !item.is_map() {
        return item.refuse(format!(
            "`{}` is not a transport; write `off`, `go-back-n`, `selective-repeat`, `go-back-0`, or e.g. `{{recovery: \
             go-back-n, window: 100kB}}`",
            item.shown()
        ));
    }
    let fields = item.fields(KEYS)?;
    let frames = fields.get("ack_every").and_then(|item| item.number("a count of frames", 1..=MOST_UNACKED));
    let window = fields.get("window").filter(|item| !item.is("off"));
    Some(Some(TransportSpec {
        recovery: fields.get("recovery").and_then(|item| item.choice(&RECOVERIES)).unwrap_or_default(),
        ack_every: frames.unwrap_or(default.ack_every),
        window: window.and_then(|item| bounds::within(&item, SMALLEST..=LARGEST)),
        scales_window: fields.get("scale_window").and_then(|item| item.flag()).unwrap_or(false),
        timeout: bounds::get(&fields, "timeout", SHORTEST..=LONGEST),
        retries: fields
            .get("retries")
            .and_then(|item| item.number("a count of timeouts", 0..=1000))
            .unwrap_or(default.retries),
        nak_interval: bounds::get(&fields, "nak_interval", SHORTEST..=LONGEST).unwrap_or(default.nak_interval),
        ack_dscp: fields.get("ack_dscp").and_then(|item| item.number("a DSCP", 0..=63)),
        uncounted: default.uncounted,
    }))
}
