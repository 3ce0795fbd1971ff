//! Linux: taps and named network namespaces.
//!
//! Unsafe code is that of two ioctls and of `unshare`. Crates that wrap them bring a second set of netlink crates.
//!
//! # Example
//!
//! ```no_run
//! use holdfast::linux::{Tap, make_namespace};
//!
//! make_namespace("tor").expect("CAP_SYS_ADMIN");
//! let tap = Tap::create("p1").expect("CAP_NET_ADMIN");
//! tap.set_carrier(true).unwrap();
//! ```

mod namespace;
mod tap;

pub use namespace::{NAMED, make_namespace};
pub use tap::{LONGEST_NAME, Tap};
