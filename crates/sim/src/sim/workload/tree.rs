//! The tree all-reduce: hosts send their sums up a binary tree, and the root's result goes down.

use super::all_reduce::Step;

/// A round in a tree in which host n has the children 2n + 1 and 2n + 2.
#[derive(Debug)]
pub(super) struct Tree {
    bytes: u64,
    /// By host, the children whose sums are missing.
    missing: Vec<u8>,
}

impl Tree {
    /// Returns a round of `hosts` hosts that sums a vector of `bytes`.
    pub fn new(hosts: usize, bytes: u64) -> Self {
        let missing = (0..hosts).map(|host| children(host, hosts).count() as u8).collect();
        Self { bytes, missing }
    }

    /// Number of flows in a round: each edge is used in both directions.
    pub fn flows(&self) -> u64 {
        2 * (self.missing.len() as u64 - 1)
    }

    /// Flows that depend on no other: those of the leaves.
    pub fn first(&self) -> Vec<Step> {
        let leaves = (1..self.missing.len()).filter(|host| self.missing[*host] == 0);
        leaves.map(|host| self.up(host)).collect()
    }

    /// Adds the flows that the receiver of the flow with `tag` starts.
    pub fn completed(&mut self, tag: u64, out: &mut Vec<Step>) {
        let hosts = self.missing.len();
        let tag = tag as usize;
        if tag >= hosts {
            return self.down(tag - hosts, out);
        }
        let parent = (tag - 1) / 2;
        self.missing[parent] -= 1;
        if self.missing[parent] == 0 {
            if parent == 0 { self.down(0, out) } else { out.push(self.up(parent)) }
        }
    }

    /// Returns the flow of `host` to its parent. Its tag is the number of the host.
    fn up(&self, host: usize) -> Step {
        Step { from: host, to: (host - 1) / 2, bytes: self.bytes, tag: host as u64 }
    }

    /// Adds the flows of `host` to its children. Their tags are the numbers of the children behind those of all hosts.
    fn down(&self, host: usize, out: &mut Vec<Step>) {
        let hosts = self.missing.len();
        let step = |child| Step { from: host, to: child, bytes: self.bytes, tag: (hosts + child) as u64 };
        out.extend(children(host, hosts).map(step));
    }
}

fn children(host: usize, hosts: usize) -> impl Iterator<Item = usize> {
    (2 * host + 1..=2 * host + 2).filter(move |child| *child < hosts)
}
