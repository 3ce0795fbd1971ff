//! The settings to change first when headroom does not fit the buffer.

use crate::config::sections::buffer::Buffer;
use crate::config::sections::draft::{ClassSettings, Common, Port};
use crate::config::sections::policy::{Pool, Ratio, headroom_sum};
use crate::headroom::{HeadroomInput, SmallPackets, headroom};
use crate::mmu::HeadroomPolicy;
use crate::units::{Bytes, Cells, Length, Nanos};

/// A setting is named only if it saves at least one part in this many of the headroom.
const LEAST_PART: u64 = 20;

/// The headroom of a whole switch, to be recalculated with other terms.
pub struct Levers<'a> {
    pub buffer: &'a Buffer<'a>,
    pub ports: &'a [Port<'a>],
    /// The lossless groups of each port.
    pub groups: Vec<&'a ClassSettings>,
    pub common: Common,
}

/// A change of one setting.
struct Change {
    /// The setting and its value.
    name: String,
    /// Cells that it saves.
    saved: u64,
    /// The saving in words: `up to 3MiB less`.
    how: String,
}

impl Levers<'_> {
    /// Cells of all headroom with this policy, after `change` has modified the terms.
    fn sum(&self, policy: HeadroomPolicy, pool: Pool, change: impl Fn(&mut HeadroomInput)) -> u64 {
        let etas: Vec<Vec<Cells>> = self.ports.iter().map(|port| self.etas(port, &change)).collect();
        headroom_sum(policy, pool, &etas, self.common.cell)
    }

    fn etas(&self, port: &Port<'_>, change: impl Fn(&mut HeadroomInput)) -> Vec<Cells> {
        let mut input = port.headroom_input(&self.common);
        change(&mut input);
        let auto = headroom(&input).cells;
        let given = |class: &&ClassSettings| class.headroom.map(|bytes| bytes.to_cells_ceil(self.common.cell));
        self.groups.iter().map(|class| given(class).unwrap_or(auto)).collect()
    }

    fn bytes(&self, cells: u64) -> Bytes {
        Bytes(cells.saturating_mul(self.common.cell.0))
    }

    /// Cells of headroom that `change` saves.
    fn saved(&self, change: impl Fn(&mut HeadroomInput)) -> u64 {
        let (policy, pool) = (self.buffer.policy.policy, self.buffer.policy.pool);
        self.sum(policy, pool, |_| {}).saturating_sub(self.sum(policy, pool, change))
    }

    /// Bytes of headroom that would be saved without any small packets; `None` if headroom is given and no share
    /// changes it.
    pub fn cost_of_small_packets(&self) -> Option<Bytes> {
        let (policy, pool) = (self.buffer.policy.policy, self.buffer.policy.pool);
        let of = |share| self.sum(policy, pool, |input| input.small_packets = share);
        let cost = self.saved(|input| input.small_packets = SmallPackets::NONE);
        (of(SmallPackets::ALL) > of(SmallPackets::NONE)).then(|| self.bytes(cost))
    }

    fn changes(&self) -> Vec<Change> {
        let Common { poll_gap, small_packets, .. } = self.common;
        let without = |name: String, change: &dyn Fn(&mut HeadroomInput)| {
            let saved = self.saved(change);
            Change { name, saved, how: format!("saves up to {}", self.bytes(saved)) }
        };
        let mut changes = vec![
            without(format!("`lcores.poll_gap` of {poll_gap}"), &|input| input.poll_gap = Nanos(1)),
            without(format!("`buffer.small_packets` of {small_packets}"), &|input| {
                input.small_packets = SmallPackets::NONE;
            }),
        ];
        if let Some(cable) = self.ports.iter().map(|port| port.device.cable).max() {
            changes.push(without(format!("`cable` of {cable}"), &|input| input.cable = Length { mm: 0 }));
        }
        if let Some(response) = self.ports.iter().filter_map(|port| port.device.peer_response).max() {
            changes
                .push(without(format!("`peer_response` of {response}"), &|input| input.peer_response = Some(Bytes(0))));
        }
        changes.extend(self.other_policy());
        changes
    }

    /// The alternative policy (dynamic or shared-pool) that needs the least headroom; `None` if the policy is dynamic
    /// already.
    fn other_policy(&self) -> Option<Change> {
        let (now, pool) = (self.buffer.policy.policy, self.buffer.policy.pool);
        let others = [HeadroomPolicy::Dynamic, HeadroomPolicy::SharedPool]
            .into_iter()
            .filter(|policy| *policy != now && now != HeadroomPolicy::Dynamic);
        let sums = others.map(|policy| (self.sum(policy, Pool::Ratio(Ratio::DEFAULT), |_| {}), policy));
        let (least, policy) = sums.min_by_key(|(sum, _)| *sum)?;
        let saved = self.sum(now, pool, |_| {}).saturating_sub(least);
        Some(Change {
            name: format!("`buffer.headroom` of {}", now.label()),
            saved,
            how: format!("saves {} with `{}`", self.bytes(saved), policy.label()),
        })
    }

    /// Lists the settings by the headroom that they save, as the end of an error message; empty if there is no
    /// headroom.
    pub fn change_first(&self) -> String {
        let all = self.sum(self.buffer.policy.policy, self.buffer.policy.pool, |_| {});
        let mut changes = self.changes();
        changes.retain(|change| change.saved > 0 && change.saved.saturating_mul(LEAST_PART) >= all);
        // The sort is stable: of two equal savings the one listed earlier in `changes` comes first.
        changes.sort_by_key(|change| std::cmp::Reverse(change.saved));
        let texts: Vec<String> = changes.iter().map(|change| format!("{} ({})", change.name, change.how)).collect();
        match texts.split_first() {
            None => String::new(),
            Some((first, [])) => format!("; to reduce headroom, first change {first}"),
            Some((first, rest)) => format!("; to reduce headroom, first change {first}, then {}", rest.join(", ")),
        }
    }
}
