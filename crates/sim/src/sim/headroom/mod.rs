//! Proof of the headroom formula: the worst cases of a link, run through the pipeline itself. It shows whether headroom
//! is enough, and how much of it is ever used.
//!
//! `adversary` defines the worst-case conditions, and `world` makes a scenario of them. `search` finds the worst case
//! and the smallest eta that loses nothing; `terms` removes one cause after the other. The file docs/headroom-proof.md
//! has the tables and their explanation.

pub mod adversary;
pub mod link;
pub mod search;
pub mod terms;
mod world;

pub use adversary::{Adversary, Reverse, Sizes};
pub use link::{Link, Peer, links};
pub use search::{Proof, Run, prove, replay};
pub use terms::{Term, terms};
