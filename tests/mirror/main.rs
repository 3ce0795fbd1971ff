//! Files and datagrams of mirrors in foreign readers: tshark, sflowtool, and sfcapd with nfdump.
//!
//! A reader that is not installed is named and skipped. With `CI=true` the missing tshark, sfcapd or nfdump fails.
//! sflowtool has no package; `HOLDFAST_SFLOWTOOL` is its path, unless it is on `PATH`.

mod files;
mod rig;
mod sflow;
