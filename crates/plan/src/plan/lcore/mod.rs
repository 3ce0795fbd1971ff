//! Requests to lcores, and their answers.

mod fdb_clear;
mod lags;
pub mod shutdown;

pub use fdb_clear::ClearedStations;
use fdb_clear::FdbClear;
pub use lags::DrainRequest;
use lags::LagControl;
use shutdown::Shutdown;

use super::fdb_view::FdbWindow;
use crate::forward::LagState;
use crate::sets::{MAX_PORTS, PortSet};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::units::Ticks;

/// Code that an lcore polls together with its switch, at the same instants: virtual hosts. A stall of the switch stalls
/// them too, so that a machine with few cores measures the switch and not its scheduler.
pub trait Companion {
    /// Receives frames, and sends those that are due at `now`.
    fn poll(&mut self, now: Ticks);
    /// Stops sending for good; it continues to receive.
    fn fall_silent(&mut self);
    /// Receives all frames that are left: the switch has ended and sends no more.
    fn finish(&mut self, now: Ticks) {
        self.poll(now);
    }
    /// Whether it neither sends nor measures time from `now`, the instant of its last poll, until `until`. The default
    /// prevents the lcore from resting.
    fn is_silent_until(&self, now: Ticks, until: Ticks) -> bool {
        let _ = (now, until);
        false
    }
}

/// Requests of the control thread to the lcores, which read them once a poll, and the state of their common shutdown.
#[derive(Debug)]
pub struct LcoreControl {
    stop: AtomicBool,
    /// Ports that have a link, as the bits of a [`PortSet`].
    links: AtomicU64,
    /// Ports that forward nothing because of a loop, and all ports of such loops.
    blocked: AtomicU64,
    looped: AtomicU64,
    /// Ports that are shut, and ports whose peers must learn that they will be.
    shut: AtomicU64,
    leaving: AtomicU64,
    /// Number of times that each port's link went down. Every lcore sees each of them, even if the link came up again
    /// meanwhile. Otherwise the forwarding databases would differ for a long time.
    flaps: Box<[AtomicU32]>,
    /// The members of link aggregation groups.
    lags: LagControl,
    /// Incremented when a link, a blocked port or a member of a group has changed.
    link_changes: AtomicU64,
    /// Incremented to request that watermarks are cleared.
    watermarks: AtomicU64,
    /// Windows into the lcores' forwarding databases.
    stations: Box<[FdbWindow]>,
    fdb_clear: FdbClear,
    /// Minimum duration of a poll in ticks; see [`LcoreControl::set_delay`].
    delay: AtomicU64,
    /// Whether a companion on its own lcore may still be sending, and whether there is such a companion at all.
    apart: AtomicBool,
    has_apart: bool,
    /// Set when all lcores of the switch have ended.
    dismissed: AtomicBool,
    shutdown: Shutdown,
}

impl LcoreControl {
    /// Creates the requests to `lcores` lcores: none yet.
    ///
    /// # Panics
    /// If `lcores` is zero or above 64, the width of the mask.
    #[must_use]
    pub fn new(lcores: usize) -> Self {
        Self {
            stop: AtomicBool::new(false),
            links: AtomicU64::new(PortSet::ALL.bits()),
            blocked: AtomicU64::new(0),
            looped: AtomicU64::new(0),
            shut: AtomicU64::new(0),
            leaving: AtomicU64::new(0),
            flaps: (0..MAX_PORTS).map(|_| AtomicU32::new(0)).collect(),
            lags: LagControl::new(lcores),
            link_changes: AtomicU64::new(0),
            watermarks: AtomicU64::new(0),
            stations: (0..lcores).map(|_| FdbWindow::default()).collect(),
            fdb_clear: FdbClear::new(lcores),
            delay: AtomicU64::new(0),
            apart: AtomicBool::new(false),
            has_apart: false,
            dismissed: AtomicBool::new(false),
            shutdown: Shutdown::new(lcores),
        }
    }

    /// Adds a companion on its own lcore ([`run_companion`]).
    #[must_use]
    pub fn with_companion_apart(mut self) -> Self {
        (self.has_apart, self.apart) = (true, AtomicBool::new(true));
        self
    }

    /// Signals that the switch has ended: a companion on its own lcore may end too.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }

    /// Stops the switch: virtual hosts stop sending, queues drain, every XOFF is followed by XON, and the loops end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sets the ports that have a link to `up`. Only one thread at a time may call this.
    pub fn set_links(&self, up: PortSet) {
        let before = PortSet::from_bits(self.links.load(Ordering::Relaxed));
        if before == up {
            return;
        }
        for port in (before - up).iter() {
            self.flaps[port].fetch_add(1, Ordering::Relaxed);
        }
        self.links.store(up.bits(), Ordering::Relaxed);
        self.link_changes.fetch_add(1, Ordering::Release);
    }

    /// Sets the ports that will be shut, or are: agents of the control plane tell their peers.
    pub fn set_leaving(&self, ports: PortSet) {
        self.leaving.store(ports.bits(), Ordering::Relaxed);
    }

    /// The ports that will be shut, or are.
    #[must_use]
    pub fn leaving(&self) -> PortSet {
        PortSet::from_bits(self.leaving.load(Ordering::Relaxed))
    }

    /// Sets the ports that are shut: to all but the lcores, which know them by their settings, they have no link.
    pub fn set_shut(&self, ports: PortSet) {
        self.shut.store(ports.bits(), Ordering::Relaxed);
    }

    /// Sets the ports that forward nothing because of a loop, and the ports `looped` of these loops. An lcore may see
    /// one change before the other; it forgets stations at each.
    pub fn set_blocked(&self, blocked: PortSet, looped: PortSet) {
        let is_new = |ports: &AtomicU64, new: PortSet| ports.swap(new.bits(), Ordering::Relaxed) != new.bits();
        if is_new(&self.looped, looped) | is_new(&self.blocked, blocked) {
            self.link_changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Sets the state of the members of link aggregation groups. Only one thread at a time may call this.
    pub fn set_lags(&self, state: LagState) {
        if self.lags.set(state) {
            self.link_changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Asks the lcores to note the frames that the members `ports` hold now. Returns the number of the request; `None`
    /// if an lcore has not taken the one before.
    pub fn request_drain(&self, ports: PortSet) -> Option<u64> {
        let number = self.lags.request_drain(ports);
        self.link_changes.fetch_add(1, Ordering::Release);
        number
    }

    /// Whether all frames have left `ports` that were noted for request `number`. A negative answer makes the lcores
    /// look again.
    pub fn is_drained(&self, number: u64, ports: PortSet) -> bool {
        let is_drained = self.lags.is_drained(number, ports);
        if !is_drained {
            self.link_changes.fetch_add(1, Ordering::Release);
        }
        is_drained
    }

    /// Says that lcore `lcore` has noted the frames of request `number`, and that some wait at the members `pending`.
    pub fn answer_drain(&self, lcore: usize, number: u64, pending: PortSet) {
        self.lags.answer(lcore, number, pending);
    }

    /// Number of times that the link of `port` went down.
    #[must_use]
    pub fn flaps(&self, port: usize) -> u32 {
        self.flaps[port].load(Ordering::Relaxed)
    }

    /// Ports that have a link and are not shut.
    #[must_use]
    pub fn links(&self) -> PortSet {
        self.device_links() - PortSet::from_bits(self.shut.load(Ordering::Relaxed))
    }

    /// Ports whose devices have a link.
    #[must_use]
    pub fn device_links(&self) -> PortSet {
        PortSet::from_bits(self.links.load(Ordering::Relaxed))
    }

    /// Ends the shutdown for lcore `number`, which will not start or has panicked: the others must not wait for it.
    pub fn give_up(&self, number: usize) {
        self.shutdown.give_up(number);
    }

    /// Sets a minimum duration for each poll, for lcores that start from now on, until they drain. It simulates a core
    /// that is too slow for its load.
    pub fn set_delay(&self, ticks: u64) {
        self.delay.store(ticks, Ordering::Relaxed);
    }

    /// Windows into the forwarding databases, by lcore.
    #[must_use]
    pub fn stations(&self) -> &[FdbWindow] {
        &self.stations
    }

    /// Asks the lcores to remove the learned stations `stations`. Returns the number of the request; `None` if an lcore
    /// has not carried out the one before. Only one thread at a time may call this.
    pub fn clear_stations(&self, stations: ClearedStations) -> Option<u64> {
        self.fdb_clear.request(stations)
    }

    /// Stations that request `number`, the last one, has removed; `None` until every lcore has carried it out.
    #[must_use]
    pub fn cleared_stations(&self, number: u64) -> Option<u64> {
        self.fdb_clear.removed(number)
    }

    /// Says that `lcore` has carried out request `number`, and removed so many stations behind its own ports.
    pub fn answer_station_clear(&self, lcore: usize, number: u64, removed: u64) {
        self.fdb_clear.answer(lcore, number, removed);
    }

    /// Requests that all watermarks are set to the present values.
    pub fn clear_watermarks(&self) {
        self.watermarks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads of the loop of an lcore, once a poll or when something has changed.
impl LcoreControl {
    /// Whether the switch stops.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Number of changes of links, blocked ports and members of groups.
    #[inline]
    #[must_use]
    pub fn link_changes(&self) -> u64 {
        self.link_changes.load(Ordering::Acquire)
    }

    /// Ports that forward nothing because of a loop.
    #[must_use]
    pub fn blocked(&self) -> PortSet {
        PortSet::from_bits(self.blocked.load(Ordering::Relaxed))
    }

    /// All ports of the loops for which ports are blocked.
    #[must_use]
    pub fn looped(&self) -> PortSet {
        PortSet::from_bits(self.looped.load(Ordering::Relaxed))
    }

    /// State of the members of link aggregation groups; `None`: there are none, or it was not set yet.
    #[must_use]
    pub fn lag_state(&self) -> Option<LagState> {
        self.lags.state()
    }

    /// The last request to note the frames of members.
    #[must_use]
    pub fn drain_request(&self) -> DrainRequest {
        self.lags.asked()
    }

    /// Number of requests to clear watermarks.
    #[inline]
    #[must_use]
    pub fn watermark_clears(&self) -> u64 {
        self.watermarks.load(Ordering::Relaxed)
    }

    /// Number of the last request to remove stations.
    #[inline]
    #[must_use]
    pub fn station_clears(&self) -> u64 {
        self.fdb_clear.asked()
    }

    /// The stations of that request.
    #[must_use]
    pub fn stations_to_clear(&self) -> ClearedStations {
        self.fdb_clear.stations()
    }

    /// Minimum duration of a poll, in ticks.
    #[must_use]
    pub fn delay_ticks(&self) -> u64 {
        self.delay.load(Ordering::Relaxed)
    }

    /// Whether there is a companion on its own lcore.
    #[must_use]
    pub fn has_companion_apart(&self) -> bool {
        self.has_apart
    }

    /// Whether a companion on its own lcore may still send.
    #[must_use]
    pub fn may_companion_send(&self) -> bool {
        self.apart.load(Ordering::Acquire)
    }

    /// The common shutdown of all lcores.
    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }
}

/// Polls `companion` on its own lcore until it is dismissed. After the order to stop it sends no more, and continues to
/// receive while the switch drains.
#[must_use]
pub fn run_companion<C: Companion>(mut companion: C, control: &LcoreControl, clock: impl Fn() -> Ticks) -> C {
    while !control.stop.load(Ordering::Relaxed) {
        companion.poll(clock());
    }
    companion.fall_silent();
    // Stored after the companion's last frame is in the link, so that an lcore that sees it and polls once more finds
    // the frame.
    control.apart.store(false, Ordering::Release);
    while !control.dismissed.load(Ordering::Relaxed) {
        companion.poll(clock());
    }
    companion.finish(clock());
    companion
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_to_clear_stations_waits_for_the_answers_to_the_one_before() {
        let control = LcoreControl::new(2);
        let stations = ClearedStations { ports: PortSet::only(3), vlan: Some(10) };
        assert_eq!((control.station_clears(), control.clear_stations(stations)), (0, Some(1)));
        assert_eq!((control.stations_to_clear(), control.cleared_stations(1)), (stations, None));
        control.answer_station_clear(0, 1, 5);
        assert_eq!((control.clear_stations(stations), control.stations_to_clear()), (None, stations));
        control.answer_station_clear(1, 1, 2);
        assert_eq!(control.cleared_stations(1), Some(7));
        let all = ClearedStations { ports: PortSet::ALL, vlan: None };
        assert_eq!((control.clear_stations(all), control.stations_to_clear()), (Some(2), all));
    }
}
