//! The points of the measurement; each changes one setting.

/// Ports of every program.
pub const PORTS: usize = 4;
/// Rate of the receiver's link in an incast, in Mb/s: less than any of the programs can forward.
const DRAIN_MB: u32 = 2_000;

/// Links and load of a program, equal at all points. The links are faster than any core, so that pacing works but never
/// limits.
#[derive(Debug, Clone, Copy)]
pub struct Feed {
    pub speed_mb: u32,
    /// Frames per port and poll; 0 for no limit.
    pub load: u32,
}

/// The feed of every program but one; backlog must be ignored.
pub const ENDLESS: Feed = Feed { speed_mb: 400_000, load: 0 };
/// The feed of a switch with an operator's defaults: a burst and a half, so that polls empty the ring. The headroom of
/// twice the speed would not fit into the default buffer.
pub const BATCHES: Feed = Feed { speed_mb: 200_000, load: 48 };

/// One setting of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Point {
    pub name: &'static str,
    /// Title of the row in a table.
    pub title: &'static str,
    /// Bytes of a frame without the check sequence, or `imix`.
    pub size: &'static str,
    /// Stations behind each port.
    pub flows: u32,
    /// Descriptors posted ahead on each port.
    pub posted: u32,
    pub classes: &'static str,
    pub pattern: &'static str,
    /// Whether the generator obeys PFC.
    pub pfc: bool,
    /// Whether frames come by the clock, at a rate that the harness sets; otherwise there are always more.
    pub timed: bool,
    /// Whether the program routes: by 256 prefixes of 24 bits behind each port, 10.port.n.0.
    pub routed: bool,
}

const BASE: Point = Point {
    name: "base",
    title: "64 B, 1,024 flows a port",
    size: "64",
    flows: 1024,
    posted: 1024,
    classes: "both",
    pattern: "pairs",
    pfc: false,
    timed: false,
    routed: false,
};

/// Frames by the clock, half of them lossless, from senders that do not listen or that obey PFC.
pub const OFFERED: [Point; 2] = [
    Point { name: "offered", title: "64 B by the clock", timed: true, ..BASE },
    Point { name: "offered-pfc", title: "64 B by the clock, senders obey PFC", timed: true, pfc: true, ..BASE },
];

/// All points; the others differ from the first in one setting.
pub const POINTS: [Point; 13] = [
    BASE,
    Point { name: "size-512", title: "512 B", size: "512", ..BASE },
    Point { name: "size-1500", title: "1500 B", size: "1500", ..BASE },
    Point { name: "imix", title: "IMIX", size: "imix", ..BASE },
    Point { name: "flows-1", title: "1 flow a port", flows: 1, ..BASE },
    Point { name: "flows-16384", title: "16,384 flows a port", flows: 16_384, ..BASE },
    Point { name: "flows-65536", title: "65,536 flows a port", flows: 65_536, ..BASE },
    Point { name: "posted-16384", title: "16,384 posted ahead", posted: 16_384, ..BASE },
    Point { name: "lossy", title: "lossy class only", classes: "lossy", ..BASE },
    Point { name: "lossless", title: "lossless class only", classes: "lossless", ..BASE },
    Point { name: "routed", title: "64 B, routed by 1,024 prefixes", routed: true, ..BASE },
    Point { name: "incast", title: "incast, lossy", classes: "lossy", pattern: "incast", ..BASE },
    Point { name: "incast-pfc", title: "incast, lossless", classes: "lossless", pattern: "incast", pfc: true, ..BASE },
];

/// Prefixes behind each port of a router.
pub const PREFIXES: usize = 256;
/// Next hops behind each port of a router; prefix n has next hop n modulo this number.
pub const HOPS: usize = 4;

/// The address of a router's port, to which the generator sends.
pub fn router_mac(port: usize) -> String {
    format!("02:ff:00:00:00:{port:02x}")
}

/// The address of next hop `hop` behind `port`.
pub fn hop_mac(port: usize, hop: usize) -> String {
    format!("02:00:{port:02x}:00:00:{hop:02x}")
}

impl Point {
    /// Whether three ports send more than the fourth takes.
    pub fn is_congested(&self) -> bool {
        self.pattern == "incast"
    }

    /// Rate of the link of `port` in Mb/s, if that is less than its speed.
    pub fn drain_mb(&self, port: usize) -> Option<u32> {
        (self.is_congested() && port == PORTS - 1).then_some(DRAIN_MB)
    }
}
