//! A class of a switch port over time: its queue and marks, its group and headroom, and its pauses.

use super::axis::size_unit;
use super::figure::{Across, Figure, Layer, Panel, Points, Scale, Shape};
use super::subtitle;
use super::svg::{BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION};
use crate::mmu::HeadroomPolicy;
use crate::plan::{PortSpec, SwitchSpec};
use crate::sets::CLASSES;
use crate::sim::outcome::{ClassSeries, Outcome, PortSeries};
use crate::sim::spec::{End, PortRef, Scenario};
use crate::units::Bytes;

const HIGH: f64 = 170.0;
const LOW: f64 = 90.0;

/// Returns the figure of a class and its file name; `None` if there is nothing to show.
pub fn figure(
    scenario: &Scenario,
    outcome: &Outcome,
    port: &PortSeries,
    class: &ClassSeries,
) -> Option<(String, Figure)> {
    let switch = scenario.switches.get(port.port.switch)?;
    let spec = &switch.config.switch;
    let port_spec = spec.ports.get(port.port.port)?;
    let samples = Samples { every: outcome.samples.every_ps as f64, class };
    let panels: Vec<Panel> = [
        queue(&samples, spec),
        marks(&samples),
        group(&samples, spec, port_spec),
        headroom(&samples, spec, port_spec),
        pauses(scenario, outcome, port.port, class.class),
    ]
    .into_iter()
    .flatten()
    .collect();
    let name = format!("{}.{}-class{}", switch.name, port_spec.name, class.class);
    let title = format!("{} {}, class {}", switch.name, port_spec.name, class.class);
    let figure = Figure { title, subtitle: subtitle(scenario), across: Across::time(outcome.end_ps), panels };
    (!figure.panels.is_empty()).then_some((name, figure))
}

struct Samples<'a> {
    every: f64,
    class: &'a ClassSeries,
}

impl Samples<'_> {
    fn points(&self, values: impl Iterator<Item = f64>) -> Points {
        values.enumerate().map(|(index, value)| (index as f64 * self.every, value)).collect()
    }

    fn of(&self, values: &[u32], factor: f64) -> Points {
        self.points(values.iter().map(|&value| f64::from(value) * factor))
    }
}

fn highest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).fold(0.0, f64::max)
}

/// Returns an axis of bytes with some room above `most`.
fn sizes(what: &str, most: f64, height: f64) -> Scale {
    let most = most * 1.08;
    let unit = size_unit(most);
    Scale::Values { title: format!("{what} ({})", unit.1), unit, most, height }
}

fn layer(name: impl Into<String>, colour: &'static str, shape: Shape) -> Layer {
    Layer { name: name.into(), colour, shape }
}

/// Returns a layer for a limit. The legend names the limit even where it is above the visible range.
fn limit(name: &str, bytes: f64, most: f64, colour: &'static str) -> Layer {
    let above = if bytes > most * 1.08 { ", above" } else { "" };
    layer(format!("{name} {}{above}", Bytes(bytes as u64)), colour, Shape::Level(bytes))
}

fn queue(samples: &Samples<'_>, spec: &SwitchSpec) -> Option<Panel> {
    let depth = samples.of(&samples.class.queue_bytes, 1.0);
    let highest = highest(&depth);
    if highest == 0.0 {
        return None;
    }
    let wred = spec.queues.get(usize::from(samples.class.class)).and_then(|queue| queue.wred);
    let bounds = wred.map(|wred| [wred.kmin.0 as f64, wred.kmax.0 as f64]);
    // A limit is shown only if the data stays large enough to read beside it.
    let shown = bounds.iter().flatten().copied().filter(|&bound| bound <= highest * 3.0);
    let most = shown.fold(highest, f64::max);
    let mut layers = vec![layer("queue", BLUE, Shape::Area { high: depth, low: Vec::new() })];
    if let Some([kmin, kmax]) = bounds {
        layers.push(limit("ECN kmin", kmin, most, GREEN));
        layers.push(limit("ECN kmax", kmax, most, VERMILION));
    }
    Some(Panel { title: "egress queue".to_owned(), scale: sizes("depth", most, HIGH), layers })
}

fn marks(samples: &Samples<'_>) -> Option<Panel> {
    let marked = samples.of(&samples.class.marked, 1.0);
    let most = highest(&marked);
    let scale = Scale::Values { title: "frames".to_owned(), unit: (1.0, ""), most: most * 1.08, height: 60.0 };
    let layers = vec![layer("", PURPLE, Shape::Bars(marked))];
    (most > 0.0).then(|| Panel { title: "marked CE, each sample".to_owned(), scale, layers })
}

fn group(samples: &Samples<'_>, spec: &SwitchSpec, port: &PortSpec) -> Option<Panel> {
    let class = samples.class;
    let cell = spec.buffer.cell.0 as f64;
    let shared = samples.of(&class.shared_cells, cell);
    let headroom = samples.of(&class.headroom_cells, cell);
    let all = samples.points(shared.iter().zip(&headroom).map(|(shared, headroom)| shared.1 + headroom.1));
    let highest = highest(&all);
    if highest == 0.0 {
        return None;
    }
    let threshold = samples.of(&class.threshold_cells, cell);
    // The threshold T of an empty switch is far above all relevant values.
    let most = self::highest(&threshold).min(highest * 1.8).max(highest);
    let mut layers = vec![layer("shared pool", SKY, Shape::Area { high: shared.clone(), low: Vec::new() })];
    if self::highest(&headroom) > 0.0 {
        layers.push(layer("headroom on top", VERMILION, Shape::Area { high: all, low: shared }));
    }
    layers.push(layer("threshold T", BLACK, Shape::Line { points: threshold, dashed: false }));
    let kind = if is_lossless(port, class.class) { "lossless" } else { "lossy" };
    Some(Panel { title: format!("{kind} priority group"), scale: sizes("buffer", most, HIGH), layers })
}

fn is_lossless(port: &PortSpec, class: u8) -> bool {
    port.buffer.groups.get(usize::from(class)).is_some_and(|group| group.lossless)
}

fn headroom(samples: &Samples<'_>, spec: &SwitchSpec, port: &PortSpec) -> Option<Panel> {
    let cell = spec.buffer.cell.0 as f64;
    let used = samples.of(&samples.class.headroom_cells, cell);
    let highest = highest(&used);
    if highest == 0.0 {
        return None;
    }
    // With the dynamic policy, a group has no headroom of its own; its port has the insurance.
    let size = match port.buffer.policy {
        HeadroomPolicy::Dynamic => port.buffer.insurance,
        _ => port.buffer.groups[usize::from(samples.class.class) % CLASSES].headroom,
    };
    let size = f64::from(size.0) * cell;
    let most = highest.max(size);
    let mut layers = vec![layer("in use", VERMILION, Shape::Area { high: used, low: Vec::new() })];
    if size > 0.0 {
        layers.push(limit("limit", size, most, BLACK));
    }
    Some(Panel { title: "headroom".to_owned(), scale: sizes("headroom", most, LOW), layers })
}

/// Returns the panel of pauses: those of the peer by this port, and those of this port by its peer.
fn pauses(scenario: &Scenario, outcome: &Outcome, port: PortRef, class: u8) -> Option<Panel> {
    let here = End::Port(port);
    let index = scenario.links.iter().position(|link| link.a == here || link.b == here)?;
    let link = &scenario.links[index];
    let is_a = link.a == here;
    let peer = name(scenario, if is_a { link.b } else { link.a });
    let (mut peer_held, mut held) = (Vec::new(), Vec::new());
    for pause in outcome.pauses.iter().filter(|pause| pause.link == index && pause.priority == class) {
        let spans = if pause.holds_a == is_a { &mut held } else { &mut peer_held };
        spans.push((pause.from_ps as f64, pause.to_ps as f64));
    }
    let here = name(scenario, here);
    let by = [format!("{peer} by {here}"), format!("{here} by {peer}")];
    let kinds = [(peer, ORANGE, peer_held), (here, PURPLE, held)];
    let (mut rows, mut layers) = (Vec::new(), Vec::new());
    for ((who, colour, spans), by) in kinds.into_iter().zip(by).filter(|((_, _, spans), _)| !spans.is_empty()) {
        layers.push(layer(by, colour, Shape::Spans { row: rows.len(), spans }));
        rows.push(who);
    }
    let more = match outcome.pauses_left_out {
        0 => String::new(),
        left_out => format!(" (the last {left_out} of the run are not shown)"),
    };
    (!rows.is_empty()).then(|| Panel { title: format!("held by XOFF{more}"), scale: Scale::Rows(rows), layers })
}

fn name(scenario: &Scenario, end: End) -> String {
    match end {
        End::Host(host) => scenario.hosts.get(host).map_or_else(String::new, |host| host.name.clone()),
        End::Port(port) => scenario.switches.get(port.switch).map_or_else(String::new, |switch| {
            let port = switch.config.switch.ports.get(port.port).map_or("", |port| &port.name);
            format!("{} {port}", switch.name)
        }),
    }
}
