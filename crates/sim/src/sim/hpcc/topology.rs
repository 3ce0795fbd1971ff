//! The topology: `nodes switches links`, the numbers of the switches, then `src dst rate delay loss` for each link.

use crate::config::error::{ConfigError, ConfigErrors, Warning};
use crate::sim::tokens::Words;
use crate::units::{BitRate, Nanos};

/// A link between two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    pub ends: [usize; 2],
    pub rate: BitRate,
    pub delay_ns: f64,
    pub loss: f64,
}

/// The nodes and links.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// By node, whether it is a switch.
    pub is_switch: Vec<bool>,
    pub links: Vec<Link>,
}

/// Most nodes and links: a bound of memory.
const MOST: usize = 1 << 20;

impl Topology {
    /// Numbers of the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.is_switch.len()).filter(|&node| !self.is_switch[node])
    }
}

/// The first line of the format. Topologies of other tools have more words there: SimAI's has six.
const HEADER: &str = "nodes switches links";

/// Reads a topology. Words beyond the number of links are ignored, as by ns-3, with a warning.
pub fn parse(source: &str, text: &str) -> Result<(Topology, Option<Warning>), ConfigErrors> {
    let mut all = Words::new(source, text, 1);
    let mut words = all.record("the first line of a topology of HPCC's simulator", HEADER)?;
    let mut count = |what: &str| -> Result<usize, ConfigErrors> {
        let word = words.word(what)?;
        match word.text.parse() {
            Ok(count) if count <= MOST => Ok(count),
            _ => Err(words.error(word.place, format!("`{}` is not {what} up to {MOST}", word.text))),
        }
    };
    let (nodes, switches, links) =
        (count("a number of nodes")?, count("a number of switches")?, count("a number of links")?);
    let topology = links_of(&mut all, nodes, switches, links)
        .map_err(|errors| {
            let counts = format!("line 1 states {nodes} nodes, {switches} switches and {links} links");
            let explained =
                |error: &ConfigError| ConfigError { message: format!("{} ({counts})", error.message), ..error.clone() };
            ConfigErrors::new(errors.iter().map(explained).collect())
        })
        .and_then(|topology| check(source, &topology).map(|()| topology))?;
    let ignored = all.next().map(|word| {
        let message = format!("the first line states {links} links; this line and those after it have no effect");
        Warning::of_text(source, Some(word.place), message)
    });
    Ok((topology, ignored))
}

/// Reads switches and links, by their numbers in the first line.
fn links_of(words: &mut Words<'_>, nodes: usize, switches: usize, links: usize) -> Result<Topology, ConfigErrors> {
    let mut is_switch = vec![false; nodes];
    let node = |words: &mut Words<'_>| {
        let word = words.word("a node")?;
        let number = word.text.parse().ok().filter(|&number: &usize| number < nodes);
        number.ok_or_else(|| {
            words.error(
                word.place,
                format!("`{}` is not a node; write from 0 to {}", word.text, nodes.saturating_sub(1)),
            )
        })
    };
    for _ in 0..switches {
        let (place, number) = (words.place(), node(words)?);
        if std::mem::replace(&mut is_switch[number], true) {
            let message = format!("switch {number} is listed twice; list each switch once");
            return Err(words.error(place, message));
        }
    }
    let mut all = Vec::new();
    for _ in 0..links {
        let words = &mut words.record("a link", "src dst rate delay loss")?;
        let ends = [node(words)?, node(words)?];
        let rate = words.take("a rate, e.g. 100Gbps")?;
        all.push(Link { ends, rate, delay_ns: delay(words)?, loss: words.decimal("an error rate", 0.0..=1.0)? });
    }
    Ok(Topology { is_switch, links: all })
}

/// The remedy of a host with other links. Topologies of other tools have such hosts.
const ONE_LINK: &str = "in HPCC's format a host has one link, to a switch, and line 2 lists the switches";

/// Checks that each host has one link, which leads to a switch, or none.
fn check(source: &str, topology: &Topology) -> Result<(), ConfigErrors> {
    let mut links = vec![0; topology.is_switch.len()];
    let error = |message: String| Err(ConfigErrors::one(source, None, message));
    for link in &topology.links {
        let [a, b] = link.ends;
        if !topology.is_switch[a] && !topology.is_switch[b] {
            return error(format!("the link of {a} and {b} joins two hosts; {ONE_LINK}"));
        }
        if a == b {
            return error(format!("a link joins {a} to itself; remove it"));
        }
        for end in link.ends {
            links[end] += 1;
        }
    }
    match topology.hosts().find(|&host| links[host] > 1) {
        None => Ok(()),
        Some(host) => error(format!("host {host} has {} links; {ONE_LINK}", links[host])),
    }
}

/// Takes a delay like `0.001ms`, in nanoseconds.
fn delay(words: &mut Words<'_>) -> Result<f64, ConfigErrors> {
    let word = words.word("a delay")?;
    let units = [("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("s", 1e9)];
    let found = units.iter().find_map(|(unit, ns)| Some((word.text.strip_suffix(unit)?, ns)));
    let ns = found.and_then(|(number, ns)| number.parse::<f64>().ok().map(|number| number * ns));
    ns.filter(|ns| (0.0..=Nanos(1_000_000_000).0 as f64).contains(ns))
        .ok_or_else(|| words.error(word.place, format!("`{}` is not a delay up to 1s; write e.g. `1000ns`", word.text)))
}
