//! Network interfaces as `ip` shows them.

use serde_json::Value;

use crate::namespace::Namespace;

/// Returns the state of `interface` in a namespace as `ip` shows it, with its counters.
#[track_caller]
pub fn look(inside: &Namespace, interface: &str) -> Value {
    let text = inside.run(&["ip", "-s", "-j", "link", "show", "dev", interface]);
    let mut links: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    links[0].take()
}

/// Returns the frames that an interface lost or found damaged, by counter. `rx` is the direction towards its host.
#[track_caller]
pub fn losses(inside: &Namespace, interface: &str) -> Vec<(String, u64)> {
    let link = look(inside, interface);
    let mut losses = Vec::new();
    for side in ["rx", "tx"] {
        for (what, count) in link["stats64"][side].as_object().expect("counters") {
            if !["bytes", "packets", "multicast"].contains(&what.as_str()) {
                losses.push((format!("{interface} {side} {what}"), count.as_u64().expect("a count")));
            }
        }
    }
    losses
}
