//! Linux: taps, named network namespaces, users and groups, open files.
//!
//! Unsafe code is that of two ioctls and of `unshare`. Crates that wrap them bring a second set of netlink crates.
//!
//! # Example
//!
//! ```no_run
//! use holdfast_edges::linux::{Tap, make_namespace};
//!
//! make_namespace("tor").expect("CAP_SYS_ADMIN");
//! let tap = Tap::create("p1").expect("CAP_NET_ADMIN");
//! tap.set_carrier(true).unwrap();
//! ```

mod accounts;
mod files;
#[cfg(target_os = "linux")]
mod namespace;
mod tap;

pub use accounts::{group_number, groups_of, user_name, user_number};
pub use files::runtime;
#[cfg(target_os = "linux")]
pub use namespace::{NAMED, make_namespace};
pub use tap::{LONGEST_NAME, Tap};
