//! The metrics of the switch at one moment, in the units of these configurations: frames and cells.

use std::ops::RangeInclusive;

use crate::frame::CELL;
use crate::metrics::Exposition;

/// One scrape of the metrics.
pub struct Seen(pub Exposition);

impl Seen {
    /// Returns the sum of a family's samples with these labels. Panics if it is no whole number.
    #[track_caller]
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let sum = self.0.sum(&format!("holdfast_{name}"), labels);
        assert!(sum >= 0.0 && sum.fract() == 0.0, "{name} {labels:?} is {sum}");
        sum as u64
    }

    /// Returns `count` for a port and a second label whose value is a number.
    #[track_caller]
    fn of(&self, name: &str, port: &str, label: &str, number: u8) -> u64 {
        self.count(name, &[("port", port), (label, &number.to_string())])
    }

    #[track_caller]
    fn cells(&self, name: &str, port: &str, label: &str, number: u8) -> u64 {
        whole_cells(self.of(name, port, label, number))
    }

    /// Returns the cells that a group has now: in reserve and shared pool, and in headroom.
    #[track_caller]
    pub fn group(&self, port: &str, group: u8) -> (u64, u64) {
        let [used, headroom] =
            ["group_used_bytes", "group_headroom_bytes"].map(|name| self.cells(name, port, "priority", group));
        (used, headroom)
    }

    /// Returns the watermarks of a group in cells: in reserve and shared pool, and in headroom.
    #[track_caller]
    pub fn group_highest(&self, port: &str, group: u8) -> (u64, u64) {
        let [used, headroom] = ["group_used_highest_bytes", "group_headroom_highest_bytes"]
            .map(|name| self.cells(name, port, "priority", group));
        (used, headroom)
    }

    /// Returns the depth of an egress queue in cells: the present value and the watermark.
    #[track_caller]
    pub fn queue(&self, port: &str, queue: u8) -> (u64, u64) {
        let [now, highest] = ["queue_bytes", "queue_highest_bytes"].map(|name| self.cells(name, port, "queue", queue));
        (now, highest)
    }

    /// Returns the cells of a pool in use: the present value and the watermark.
    #[track_caller]
    pub fn pool(&self, pool: &str) -> (u64, u64) {
        let [now, highest] =
            ["pool_used_bytes", "pool_used_highest_bytes"].map(|name| whole_cells(self.count(name, &[("pool", pool)])));
        (now, highest)
    }

    /// Returns the used cells of the headroom that all groups share: the present value and the watermark.
    #[track_caller]
    pub fn headroom_pool(&self) -> (u64, u64) {
        let [now, highest] = ["headroom_pool_used_bytes", "headroom_pool_used_highest_bytes"]
            .map(|name| whole_cells(self.count(name, &[])));
        (now, highest)
    }

    /// Returns the used cells of a port's own reserve for groups of this kind.
    #[track_caller]
    pub fn port_reserve(&self, port: &str, pool: &str) -> u64 {
        whole_cells(self.count("port_reserve_used_bytes", &[("port", port), ("pool", pool)]))
    }

    /// Whether the whole port holds its peer at XOFF.
    #[track_caller]
    pub fn is_port_xoff(&self, port: &str) -> bool {
        self.count("port_xoff", &[("port", port)]) == 1
    }

    /// Returns the ports that hold their peer at XOFF as a whole.
    pub fn port_offs(&self) -> Vec<String> {
        self.0.labels_of_nonzero("holdfast_port_xoff", "port")
    }

    /// Returns the data frames received in a class.
    #[track_caller]
    pub fn received(&self, port: &str, class: u8) -> u64 {
        self.of("port_received_frames_total", port, "tc", class)
    }

    /// Returns the data frames sent from a queue.
    #[track_caller]
    pub fn sent(&self, port: &str, queue: u8) -> u64 {
        self.of("port_sent_frames_total", port, "queue", queue)
    }

    /// Returns the frames that were marked at dequeue from a queue.
    #[track_caller]
    pub fn marked(&self, port: &str, queue: u8) -> u64 {
        self.of("ecn_marked_frames_total", port, "queue", queue)
    }

    /// Returns the XOFF and XON sent to the peer, including refreshes, without the XON that announces each new link. A
    /// tap gets a second link when it moves into the namespace of its host, if the switch saw it down meanwhile.
    #[track_caller]
    pub fn told(&self, port: &str, priority: u8) -> (u64, u64) {
        let announced = self.count("port_link_ups_total", &[("port", port)]);
        let [xoff, xon] =
            ["pfc_sent_xoff_total", "pfc_sent_xon_total"].map(|name| self.of(name, port, "priority", priority));
        (xoff, xon.saturating_sub(announced))
    }

    /// Whether the port holds its peer at XOFF.
    #[track_caller]
    pub fn is_xoff(&self, port: &str, priority: u8) -> bool {
        self.of("pfc_xoff", port, "priority", priority) == 1
    }

    /// Whether the peer holds the port at XOFF.
    #[track_caller]
    pub fn is_paused(&self, port: &str, priority: u8) -> bool {
        self.of("pfc_paused", port, "priority", priority) == 1
    }

    /// Returns the XOFF that all ports have sent in PFC frames.
    #[track_caller]
    pub fn pfc_frames(&self) -> u64 {
        self.count("pfc_sent_xoff_total", &[])
    }

    /// Returns the drops of `class` at `port` for `reason`.
    #[track_caller]
    pub fn dropped(&self, port: &str, class: u8, reason: &str) -> u64 {
        let class = class.to_string();
        self.count("port_dropped_frames_total", &[("port", port), ("tc", &class), ("reason", reason)])
    }

    /// Returns the drops of `class` at any port, for any reason.
    #[track_caller]
    pub fn dropped_anywhere(&self, class: u8) -> u64 {
        self.count("port_dropped_frames_total", &[("tc", &class.to_string())])
    }

    /// Returns the drops for `reason`, of any class at any port.
    #[track_caller]
    pub fn dropped_for(&self, reason: &str) -> u64 {
        self.count("port_dropped_frames_total", &[("reason", reason)])
    }

    /// Returns the storms of a queue that the watchdog found, and those whose end it found.
    #[track_caller]
    pub fn storms(&self, port: &str, queue: u8) -> (u64, u64) {
        let [storms, restores] =
            ["watchdog_storms_total", "watchdog_restores_total"].map(|name| self.of(name, port, "queue", queue));
        (storms, restores)
    }

    /// Returns the received PFC frames of a priority that the port ignored because of the watchdog.
    #[track_caller]
    pub fn ignored(&self, port: &str, priority: u8) -> u64 {
        self.of("pfc_received_ignored_total", port, "priority", priority)
    }

    /// Returns the seconds for which the peer has paused the port, and the port its peer.
    #[track_caller]
    pub fn paused_seconds(&self, port: &str, priority: u8) -> (f64, f64) {
        let [received, sent] = ["received", "sent"].map(|side| {
            let labels = [("port", port), ("priority", &*priority.to_string())];
            self.0.sum(&format!("holdfast_pfc_{side}_paused_seconds_total"), &labels)
        });
        (received, sent)
    }

    /// Returns the seconds for which a queue waited for its maximum rate.
    #[track_caller]
    pub fn held_seconds(&self, port: &str, queue: u8) -> f64 {
        let labels = [("port", port), ("queue", &*queue.to_string())];
        self.0.sum("holdfast_queue_max_rate_held_seconds_total", &labels)
    }

    /// Returns the longest time between two polls, in seconds. With several lcores it is the sum of theirs, an upper
    /// bound.
    #[track_caller]
    pub fn longest_gap(&self) -> f64 {
        self.0.sum("holdfast_poll_gap_highest_seconds", &[])
    }

    /// Asserts that `found` is in the range: one value with one lcore, several with more lcores.
    #[track_caller]
    pub fn assert_in(&self, found: u64, wanted: RangeInclusive<u64>, what: &str) {
        assert!(wanted.contains(&found), "{what}: {found}, and not {wanted:?}; dropped: {:?}", self.all_drops());
    }

    /// Returns the drops by port, class and reason, for messages.
    pub fn all_drops(&self) -> Vec<String> {
        self.0.nonzero("holdfast_port_dropped_frames_total")
    }

    /// Returns the drops of any class, at any port, for any reason.
    #[track_caller]
    pub fn drops(&self) -> u64 {
        self.count("port_dropped_frames_total", &[])
    }
}

#[track_caller]
fn whole_cells(bytes: u64) -> u64 {
    assert_eq!(bytes % CELL as u64, 0, "{bytes} bytes are no whole cells");
    bytes / CELL as u64
}
