//! Whether headroom is enough, and what of it is ever used: the worst cases of a link, run through the pipeline itself.
//!
//! `adversary` has what may go wrong at once, `world` makes a scenario of it, `search` finds the worst and the
//! smallest eta that loses nothing; `terms` takes one
//! cause after the other away. docs/headroom-proof.md has the tables and what they say.

pub mod adversary;
pub mod link;
pub mod search;
pub mod terms;
mod world;

pub use adversary::{Adversary, Reverse, Sizes};
pub use link::{Link, Peer, links};
pub use search::{Proof, Run, prove, replay};
pub use terms::{Term, terms};
