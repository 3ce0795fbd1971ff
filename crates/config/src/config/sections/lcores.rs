//! `lcores:` of the configuration, the assignment of ports to lcores, and the receive backlog at which a port sends
//! XOFF.

use super::draft::{Backlog, Common, Lcores, Port};
use super::idle;
use crate::config::checks::bounds::{self, LONGEST_POLL_GAP, MOST_DESCRIPTORS};
use crate::config::keys::Key;
use crate::config::model::{DeviceKind, HostsLcore, LcoreConfig};
use crate::config::overrides::Overrides;
use crate::config::yaml::read::Item;
use crate::headroom::{LEFT_ROW, SHORTEST_FRAME, headroom};
use crate::sets::LEAST_BURST;
use crate::units::{Nanos, WIRE_OVERHEAD};

pub const KEYS: &[Key] = &[
    Key::new("control", "first allowed CPU", "0 to 1023", "CPU of the control thread, which sleeps"),
    Key::new("dataplane", "chosen", "0 to 1023, or a list of 1 to 16", "CPU of each dataplane lcore"),
    Key::new(
        "count",
        "1",
        "1 to 16",
        "lcores on chosen CPUs, instead of `dataplane`. `--lcores N` overrides it and each port's `lcore`; it takes \
         the first N CPUs of `dataplane` if there are enough",
    ),
    Key::new(
        "hosts",
        "`with-switch`",
        "`with-switch`, `own`, 0 to 1023",
        "virtual hosts: on their port's lcore, which they cannot overrun; or on a chosen or given CPU, where full \
         links lose frames",
    ),
    Key::new(
        "poll_gap",
        "`20us`",
        "`1ns` to `10ms`",
        "longest time between polls that headroom covers; below `1us` it does not bound \
         [bursts](decisions.md#large-bursts-on-quick-lcores)",
    ),
    Key::new("poll_delay", "`0us`", "up to `10ms`", "least duration of a poll, to [slow the switch](overload.md)"),
    Key::new(
        "backlog_xoff",
        "`on`",
        "`on` `off`",
        "`backlog_mark` of ports without their own; `off` also ends [shedding](overload.md#shedding)",
    ),
    Key::new(
        "idle",
        "`poll`",
        "`poll` `pause` `umwait` `sleep`, or a mapping",
        "how idle lcores [rest](idle.md); not in `holdfast sim`",
    ),
];

const DEFAULT_POLL_GAP: Nanos = Nanos(20_000);

/// Most dataplane lcores.
pub const MAX_LCORES: u8 = 16;

/// Reads `lcores:`.
pub fn read<'a>(item: Option<Item<'a>>, overrides: &Overrides) -> Lcores<'a> {
    let fields = item.as_ref().and_then(|item| item.fields(KEYS));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let control = get("control").and_then(|item| read_cpu(&item));
    let mut dataplane = get("dataplane").map(|item| read_cpus(&item)).unwrap_or_default();
    if let Some(item) = get("control").filter(|_| control.is_some_and(|cpu| dataplane.contains(&cpu))) {
        item.warn("the control thread takes time from a dataplane lcore on the same CPU; write another CPU");
    }
    let count = get("count").and_then(|item| {
        if get("dataplane").is_some() {
            item.fail("`count` and `dataplane` exclude each other; keep one of the two");
        }
        item.number::<u8>("a count of lcores", 1..=MAX_LCORES.into())
    });
    let wanted = overrides.lcores.map(|count| count.clamp(1, MAX_LCORES));
    let count = wanted.or(count).unwrap_or(dataplane.len().clamp(1, MAX_LCORES.into()) as u8);
    if overrides.lcores.is_some() {
        let enough = dataplane.len() >= usize::from(count);
        dataplane.truncate(if enough { count.into() } else { 0 });
    }
    let poll_gap = get("poll_gap").and_then(|item| item.read(bounds::poll_gap));
    let poll_delay = get("poll_delay").and_then(|item| {
        let delay = item.parse::<Nanos>()?;
        if delay > LONGEST_POLL_GAP {
            return item.refuse(format!("`{}` is too long; write at most {LONGEST_POLL_GAP}", item.shown()));
        }
        item.warn("the delay slows every poll down; remove it where losses matter");
        Some(delay)
    });
    let hosts = get("hosts").and_then(|item| read_hosts(&item, &dataplane)).unwrap_or(HostsLcore::WithSwitch);
    let backlog = get("backlog_xoff").and_then(|item| item.choice(&[("on", true), ("off", false)]));
    Lcores {
        config: LcoreConfig {
            control,
            dataplane,
            poll_gap: poll_gap.unwrap_or(DEFAULT_POLL_GAP),
            poll_delay: poll_delay.unwrap_or(Nanos(0)),
            hosts,
            idle: get("idle").and_then(|item| idle::read(&item)),
        },
        count,
        respread: overrides.lcores.is_some(),
        backlog_xoff: backlog.unwrap_or(true),
        item,
    }
}

fn read_cpu(item: &Item<'_>) -> Option<u16> {
    item.number("a CPU", 0..=1023)
}

/// Reads `lcores.hosts`: the lcore on which virtual hosts run.
fn read_hosts(item: &Item<'_>, dataplane: &[u16]) -> Option<HostsLcore> {
    match item.shown().as_str() {
        "with-switch" => Some(HostsLcore::WithSwitch),
        "own" => Some(HostsLcore::Own(None)),
        _ => {
            let cpu = item.number("`with-switch`, `own` or a CPU", 0..=1023)?;
            if dataplane.contains(&cpu) {
                item.warn(format!("hosts and a dataplane lcore share CPU {cpu}, so polls are late; write another CPU"));
            }
            Some(HostsLcore::Own(Some(cpu)))
        }
    }
}

/// Reads one CPU or a list of CPUs.
fn read_cpus(item: &Item<'_>) -> Vec<u16> {
    if !item.is_list() {
        return read_cpu(item).into_iter().collect();
    }
    let items = item.list("e.g. [1, 2]").unwrap_or_default();
    if items.is_empty() || items.len() > usize::from(MAX_LCORES) {
        item.fail(format!("{} dataplane CPUs are out of range; write from 1 to {MAX_LCORES}", items.len()));
    }
    let mut cpus = Vec::new();
    for item in items {
        let Some(cpu) = read_cpu(&item) else { continue };
        if cpus.contains(&cpu) {
            item.warn(format!("two lcores share CPU {cpu}, so polls are late; write another CPU"));
        }
        cpus.push(cpu);
    }
    cpus
}

impl Lcores<'_> {
    /// The lcore of the port with this index: the configured one, otherwise by round-robin.
    pub fn of_port(&self, index: usize, own: Option<Item<'_>>) -> u8 {
        let turn = (index % usize::from(self.count)) as u8;
        let Some(item) = own else { return turn };
        let Some(lcore) = item.number::<u8>("an lcore", 0..=u64::from(MAX_LCORES) - 1) else { return turn };
        if self.respread {
            return turn;
        }
        if lcore >= self.count {
            let lcores = if self.count == 1 { "is one lcore".to_owned() } else { format!("are {} lcores", self.count) };
            item.fail(format!(
                "there {lcores}, numbered from 0; write a number below {}, or `lcores: {{count: {}}}`",
                self.count,
                lcore + 1
            ));
            return turn;
        }
        lcore
    }

    /// Warns of lcores that would poll no port.
    pub fn warn_of_idle(&self, ports: &[Port<'_>], root: &Item<'_>) {
        let idle: Vec<String> = (0..self.count)
            .filter(|lcore| ports.iter().all(|port| port.lcore != *lcore))
            .map(|lcore| lcore.to_string())
            .collect();
        if !idle.is_empty() && !ports.is_empty() {
            let lcores = match &idle[..] {
                [one] => format!("lcore {one} has no port and polls nothing"),
                more => format!("lcores {} have no port and poll nothing", more.join(", ")),
            };
            let item = self.item.clone().unwrap_or_else(|| root.child("lcores"));
            item.warn(format!("{lcores}; write fewer lcores, or assign ports with `lcore`"));
        }
    }

    /// The number of frames in the receive ring from which a port's lossless groups go XOFF. Warns if the ring has no
    /// room for the frames that still arrive after that.
    pub fn backlog_mark(&self, port: &Port<'_>, lossless: bool, common: &Common) -> Option<u32> {
        let written = port.item.child("backlog_mark");
        let is_written = port.item.has("backlog_mark");
        let mark = match port.backlog {
            // With `pfc: queue` frames that are not received stay with their sender.
            _ if !port.pfc.sends_frames() || !lossless => return None,
            Backlog::Never => return None,
            Backlog::Default if !self.backlog_xoff => return None,
            Backlog::Default => LEAST_BURST as u16,
            Backlog::From(mark) => mark,
        };
        let ring = port.device.rx_descriptors;
        if is_written && mark >= ring {
            written.fail(format!(
                "`{mark}` is not below the {ring} frames of the receive ring, so it has no effect; write e.g. {LEAST_BURST}"
            ));
            return None;
        }
        if !matches!(port.device.kind, DeviceKind::Ring | DeviceKind::Absent) {
            self.check_ring(port, mark, common);
        }
        Some(mark.into())
    }

    /// Warns if the receive ring cannot hold the mark and all frames that arrive until the peer stops. In the worst
    /// case a poll leaves just less than the mark. Frames then arrive unseen for a poll gap, the next poll sends XOFF,
    /// and frames arrive until the peer has stopped.
    ///
    /// Eta counts exactly those bytes, so the sum takes its rows on the wire. It leaves out the frames left in the
    /// ring, because the mark stands for them. It assumes the shortest frames, which a core cannot keep up with, and
    /// that none are taken out meanwhile.
    fn check_ring(&self, port: &Port<'_>, mark: u16, common: &Common) {
        let rows = headroom(&port.headroom_input(common)).rows;
        let wire = rows
            .iter()
            .filter(|row| !["whole cells", LEFT_ROW].contains(&row.name))
            .map(|row| row.value.0)
            .fold(0, u64::saturating_add);
        let arrivals = wire.div_ceil(SHORTEST_FRAME + u64::from(WIRE_OVERHEAD));
        let needed = arrivals.saturating_add(mark.into());
        let ring = port.device.rx_descriptors;
        if needed <= u64::from(ring) {
            return;
        }
        let remedy = match needed.checked_next_power_of_two() {
            Some(enough) if enough <= u64::from(MOST_DESCRIPTORS) => {
                format!("write `rx_descriptors: {enough}`, or lower `lcores.poll_gap`")
            }
            _ => "lower `lcores.poll_gap`, because no ring can be that long".to_owned(),
        };
        port.item.child("rx_descriptors").warn(format!(
            "when the backlog of port {} reaches {mark} frames, its peer gets XOFF, and up to {arrivals} of 64 B \
             arrive until it stops ({}, cable {}, mtu {}, poll gap {}): a receive ring of {ring} can overflow; \
             {remedy}",
            port.name, port.rate, port.device.cable, port.mtu, self.config.poll_gap
        ));
    }
}
