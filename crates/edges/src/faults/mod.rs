//! Injected faults on real ports: loss, delay, duplicates, reordering, corruption, CE marks and PFC faults.
//!
//! A fault acts on the wire between a port and the switch: on received frames before the pipeline, on sent frames after
//! it. So ledger, headroom and watchdog see the effects of a bad cable or peer.
//!
//! [`spec`] is the data of a fault, and [`rule`] decides which frames it hits. [`hold`] keeps delayed frames, and
//! [`ports`] is the wrapper of an lcore's ports. [`board`] is the list of the control thread, which sends each change
//! to the lcores as a [`table::FaultTable`]. A switch whose configuration has no `faults:` runs without the wrapper.
//!
//! # Example
//!
//! ```
//! use holdfast_edges::faults::{Fault, FaultBoard, FaultKind, Faulty, LcoreFeed};
//! use holdfast_base::io::memory::MemPorts;
//! use holdfast_base::io::{Burst, Ports};
//! use holdfast_base::units::Ticks;
//!
//! // Port 0 loses all frames that it receives.
//! let switch = holdfast_config::config::embedded().switch;
//! let lose = Fault::new(0, FaultKind::Lose);
//! let (board, mut receivers) = FaultBoard::new(&switch, &[lose], 1, || Ticks(1), 1_000_000_000);
//! let (table, counters) = (board.table(), board.counters().clone());
//! let faults = LcoreFeed { table: &table, tables: receivers.remove(0), counters, lcore: 0, seed: 1 };
//! let mut wire = MemPorts::new(switch.ports.len());
//! wire.inject(0, &[0xff; 60]);
//! wire.inject(1, &[0xff; 60]);
//! let mut ports = Faulty::new(wire, || Ticks(1), faults);
//! let (mut lost, mut whole) = (Burst::new(), Burst::new());
//! ports.rx(0, 32, &mut lost);
//! ports.rx(1, 32, &mut whole);
//! assert_eq!((lost.len(), whole.len()), (0, 1));
//! assert_eq!(board.faults()[0].hits.iter().sum::<u64>(), 1);
//! # ports.free(&mut whole);
//! ```

pub mod board;
pub mod counters;
pub mod hold;
mod lcore;
pub mod ports;
mod reorder;
pub mod rule;
pub mod spec;
pub mod storm;
pub mod table;
mod view;

pub use board::{FaultBoard, FaultEvent, FaultState, FaultStatus};
pub use counters::FaultCounters;
pub use ports::{Faulty, LcoreFeed};
pub use spec::{Fault, FaultKind, FaultVerb, Flow, Share, Toward, What};
pub use table::FaultTable;

/// Most faults at one time.
pub const MOST_FAULTS: usize = 64;
/// Most data frames that an lcore holds for delays. Further frames pass at once.
pub const HELD_FRAMES: usize = 4096;
/// Most PFC frames that an lcore holds for late PFC. Further frames pass at once.
pub const HELD_PFC_FRAMES: usize = 256;
