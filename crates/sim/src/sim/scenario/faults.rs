//! Reads `faults:`.

use super::cables::Cables;
use super::flows::read_rate;
use super::hosts::{LONGEST_RESPONSE, read_receiver};
use super::net::Net;
use super::timing::Timing;
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item, one_of};
use crate::config::yaml::share::Chance;
use crate::sets::ClassSet;
use crate::sim::spec::{End, Fault, FaultKind, Lost, Way};
use crate::units::Nanos;

const KEYS: &[&str] = &[
    "at",
    "for",
    "down",
    "shut",
    "lose",
    "storm",
    "dead",
    "late",
    "slow",
    "stall",
    "garbage",
    "what",
    "chance",
    "toward",
    "priorities",
    "response",
    "receiver",
    "lcore",
    "rate",
];
/// Each kind, with the keys that only this kind has.
const KINDS: &[(&str, &[&str])] = &[
    ("down", &[]),
    ("shut", &[]),
    ("lose", &["what", "chance", "toward"]),
    ("storm", &["priorities"]),
    ("dead", &[]),
    ("late", &["response"]),
    ("slow", &["receiver"]),
    ("stall", &["lcore"]),
    ("garbage", &["rate"]),
];
const EXAMPLE: &str = "`- {at: 1ms, for: 200us, down: tor.p1}` for each fault";
const MOST: usize = 4096;
pub(super) const LATEST: Nanos = Nanos(20_000_000_000);

/// The hosts, switches and cables that faults refer to.
struct Context<'a, 'b> {
    net: &'b Net<'a>,
    cables: &'b Cables,
}

/// Reads all faults.
pub fn read(item: Option<Item<'_>>, net: &Net<'_>, cables: &Cables, timing: &Timing) -> Vec<Fault> {
    let items = item.as_ref().and_then(|item| item.list(EXAMPLE)).unwrap_or_default();
    if let Some(item) = item.filter(|_| items.len() > MOST) {
        item.fail(format!("{} faults are too many; write at most {MOST}", items.len()));
        return Vec::new();
    }
    let context = Context { net, cables };
    items.iter().filter_map(|item| context.fault(&item.fields(KEYS)?, timing)).collect()
}

impl Context<'_, '_> {
    fn fault(&self, fields: &Fields<'_>, timing: &Timing) -> Option<Fault> {
        let at = bounds::required(fields, "at", "at: 1ms", Nanos(0)..=LATEST);
        let time = bounds::get(fields, "for", Nanos(1)..=LATEST);
        let end = timing.end();
        if let Some(item) = fields.get("at").filter(|_| at.is_some_and(|at| at >= end)) {
            item.warn(format!("the run ends before: duration and drain are {end}; write an earlier time"));
        }
        let kind = self.kind(fields);
        let at = at?;
        Some(Fault { at, until: time.map(|time| Nanos(at.0.saturating_add(time.0))), kind: kind? })
    }

    fn kind(&self, fields: &Fields<'_>) -> Option<FaultKind> {
        let mut written = KINDS.iter().filter_map(|(kind, keys)| Some((*kind, *keys, fields.get(kind)?)));
        let Some((kind, own, item)) = written.next() else {
            let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            return fields.owner().refuse(format!("the fault has no kind; write {}", one_of(&kinds)));
        };
        if let Some((_, _, other)) = written.next() {
            return other.refuse(format!("`{kind}` is given too; write one fault for each"));
        }
        for (owner, keys) in KINDS {
            for key in keys.iter().filter(|key| !own.contains(key)) {
                if let Some(item) = fields.get(key) {
                    item.fail(format!("`{key}` belongs to `{owner}`, and this is `{kind}`; remove it"));
                }
            }
        }
        match kind {
            "down" => Some(FaultKind::LinkDown { link: self.link(&item)? }),
            "shut" => match self.net.end(&item)? {
                End::Port(port) => Some(FaultKind::Shut { port }),
                End::Host(_) => item.refuse(format!("`{}` is a host; write a port of a switch", item.shown())),
            },
            "lose" => self.lose(fields, &item),
            "storm" => self.storm(fields, &item),
            "dead" => Some(FaultKind::Dead { host: self.net.host(&item)? }),
            "late" => late(fields, self.net.host(&item)),
            "slow" => slow(fields, self.net.host(&item)),
            "stall" => self.stall(fields, &item),
            _ => self.garbage(fields, self.net.host(&item)),
        }
    }

    /// Returns the cable at a port or host.
    fn link(&self, item: &Item<'_>) -> Option<usize> {
        let end = self.net.end(item)?;
        let link = self.cables.at(end);
        // For a host without a cable, an error was reported before.
        if link.is_none() && matches!(end, End::Port(_)) && !self.net.has_unnamed {
            item.fail(format!("there is no cable at `{}`; write a port with a host or a link", item.shown()));
        }
        link
    }

    fn lose(&self, fields: &Fields<'_>, item: &Item<'_>) -> Option<FaultKind> {
        let choices = [("data", Lost::Data), ("pfc", Lost::Pfc), ("any", Lost::Any)];
        let what = fields.get("what").map_or(Some(Lost::Any), |item| item.choice(&choices));
        let chance = fields.get("chance").map_or(Some(Chance::ALL), |item| item.parse::<Chance>());
        let link = self.link(item);
        let toward = match fields.get("toward") {
            Some(toward) => Some(self.way(&toward, link?)?),
            None => None,
        };
        Some(FaultKind::Lose { link: link?, toward, what: what?, per_million: chance?.0 })
    }

    /// Returns the direction that ends at `item`.
    fn way(&self, item: &Item<'_>, link: usize) -> Option<Way> {
        let end = self.net.end(item)?;
        let link = self.cables.links.get(link)?;
        match end {
            end if end == link.a => Some(Way::A),
            end if end == link.b => Some(Way::B),
            _ => item.refuse(format!(
                "`{}` is not an end of the cable {}; write one of the two ends",
                item.shown(),
                link.name
            )),
        }
    }

    fn storm(&self, fields: &Fields<'_>, item: &Item<'_>) -> Option<FaultKind> {
        let host = self.net.host(item);
        let Some(list) = fields.get("priorities") else {
            let host = host?;
            let port = self.net.spec(self.net.hosts[host].at?)?;
            let priorities = port.lossless_groups();
            if priorities.is_empty() {
                return fields
                    .owner()
                    .refuse("the port of this host has no lossless class; write e.g. `priorities: [3]`");
            }
            return Some(FaultKind::Storm { host, priorities });
        };
        let numbers = list.list("e.g. [3]")?;
        if numbers.is_empty() {
            return list.refuse("the list is empty; write e.g. `[3]`");
        }
        let numbers: Vec<Option<usize>> = numbers.iter().map(|item| item.number("a priority", 0..=7)).collect();
        let priorities = numbers.into_iter().collect::<Option<ClassSet>>();
        Some(FaultKind::Storm { host: host?, priorities: priorities? })
    }

    fn garbage(&self, fields: &Fields<'_>, host: Option<usize>) -> Option<FaultKind> {
        let rate = fields.required("rate", "rate: 1G");
        let host = host?;
        let link = self.net.spec(self.net.hosts[host].at?)?.rate;
        Some(FaultKind::Garbage { host, rate: read_rate(&rate?, link)? })
    }

    fn stall(&self, fields: &Fields<'_>, item: &Item<'_>) -> Option<FaultKind> {
        let switch = self.net.switch(item)?;
        let Some(item) = fields.get("lcore") else { return Some(FaultKind::Stall { switch, lcore: None }) };
        let lcores = self.net.switches[switch].config.as_ref()?.switch.lcores;
        let lcore = item.number::<usize>("an lcore of the switch", 0..=u64::from(lcores.saturating_sub(1)))?;
        Some(FaultKind::Stall { switch, lcore: Some(lcore) })
    }
}

fn late(fields: &Fields<'_>, host: Option<usize>) -> Option<FaultKind> {
    let response = bounds::required(fields, "response", "response: 10us", Nanos(0)..=LONGEST_RESPONSE);
    Some(FaultKind::Late { host: host?, response: response? })
}

fn slow(fields: &Fields<'_>, host: Option<usize>) -> Option<FaultKind> {
    let receiver = fields.required("receiver", "receiver: {rate: 1G, buffer: 100kB}");
    let receiver = receiver.and_then(|item| read_receiver(&item));
    Some(FaultKind::Slow { host: host?, receiver: receiver? })
}
