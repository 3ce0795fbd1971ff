//! Turns a draft into a scenario that the reader accepts, with buffers large enough for the drawn settings.

use super::draft::{Draft, HeadroomDraft};
use super::render;
use crate::plan::SwitchSpec;
use crate::sim::scenario::{self, Options};
use crate::sim::spec::Scenario;

/// A buffer large enough for every draft, used to find out how much is needed.
const PLENTY: u64 = 8 << 30;
const SMALLEST: u64 = 64 << 10;
/// Lowest ratio of a shared pool, in tenths: each group has all of its headroom.
const LEAST_RATIO: u8 = 10;
/// Most attempts. Each doubles the shared pools of the switches that are refused. Eight switches may be refused one
/// after the other.
const TRIES: u32 = 160;
/// Bytes of the shortest frame on the wire.
const SHORTEST: u64 = 84;
/// Frames of a receive backlog that trigger XOFF.
const MARK: u64 = 32;

/// Sets the buffer sizes of `draft`. Returns its text, and the scenario read from that text.
///
/// # Errors
/// The reader's reason to refuse the draft.
pub fn settle(draft: &mut Draft) -> Result<(String, Scenario), String> {
    draft.switches.iter_mut().for_each(|switch| switch.size = PLENTY);
    let plenty = with_ratio(draft)?;
    let mut error = String::new();
    for _ in 0..TRIES {
        for (switch, node) in draft.switches.iter_mut().zip(&plenty.switches) {
            let plan = &node.config.switch.buffer;
            let cells = u64::from(plan.reserves.0) + u64::from(plan.headroom.0) + switch.spare.div_ceil(switch.cell);
            switch.size = (cells * switch.cell).max(SMALLEST);
        }
        let settled = with_rings(draft, &plenty);
        match read(&settled) {
            Ok(read) => {
                *draft = settled;
                return Ok(read);
            }
            Err(why) => error = why,
        }
        for (number, switch) in draft.switches.iter_mut().enumerate() {
            if error.contains(&format!("switches[{number}]")) {
                switch.spare *= 2;
            }
        }
    }
    Err(error)
}

/// Reads `draft`. If a shared headroom pool is too small for a single group's headroom, lowers the ratio of the pool.
fn with_ratio(draft: &mut Draft) -> Result<Scenario, String> {
    loop {
        let error = match read(draft) {
            Ok((_, scenario)) => return Ok(scenario),
            Err(error) => error,
        };
        let mut has_changed = false;
        for switch in &mut draft.switches {
            if let HeadroomDraft::SharedPool(ratio) = &mut switch.headroom
                && *ratio > LEAST_RATIO
            {
                (*ratio, has_changed) = ((*ratio * 2 / 3).max(LEAST_RATIO), true);
            }
        }
        if !has_changed {
            return Err(error);
        }
    }
}

/// Returns `draft` with receive rings that hold all frames which arrive until the peer stops, where no other size was
/// drawn.
fn with_rings(draft: &Draft, read: &Scenario) -> Draft {
    let mut draft = draft.clone();
    let specs: Vec<(usize, &SwitchSpec)> = draft
        .switches
        .iter()
        .map(|switch| switch.id)
        .zip(read.switches.iter().map(|node| &node.config.switch))
        .collect();
    let ring = |switch: usize, port: String| {
        let spec = specs.iter().find(|(id, _)| *id == switch).map(|(_, spec)| *spec);
        let port = spec.and_then(|spec| spec.ports.iter().find(|candidate| candidate.name == port));
        let eta = port.map_or(0, |port| port.buffer.groups.iter().map(|group| group.headroom.0).max().unwrap_or(0));
        let bytes = u64::from(eta) * spec.map_or(0, |spec| spec.buffer.cell.0);
        (bytes / SHORTEST + MARK + 1).next_power_of_two().clamp(64, 16_384) as u16
    };
    for host in draft.hosts.iter_mut().filter(|host| host.port.rx_descriptors == 0) {
        host.port.rx_descriptors = ring(host.switch, format!("p{}", host.id));
    }
    for link in draft.links.iter_mut().filter(|link| link.port.rx_descriptors == 0) {
        let rings = link.ends.map(|end| ring(end, format!("u{}", link.id)));
        link.port.rx_descriptors = rings[0].max(rings[1]);
    }
    draft
}

fn read(draft: &Draft) -> Result<(String, Scenario), String> {
    let yaml = render::yaml(draft);
    let scenarios = scenario::parse("random.yaml", &yaml, None, &Options::default());
    match scenarios {
        Ok(mut scenarios) => match scenarios.pop() {
            Some((_, scenario)) => Ok((yaml, scenario)),
            None => Err("no scenario was read".to_owned()),
        },
        Err(errors) => Err(errors.to_string()),
    }
}
