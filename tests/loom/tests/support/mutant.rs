//! Atomic types that violate one guarantee on purpose, which a model must detect.
//!
//! A thread of the model selects the violation with [`break_promise`]. So each ordering is violated alone, in an
//! execution that keeps all others.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::Ordering;

/// The guarantee that the atomic types violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// No violation.
    Nothing,
    /// Loads are Relaxed.
    Loads,
    /// Stores are Relaxed.
    Stores,
    /// Swaps and other read-modify-write operations are Relaxed.
    Exchanges,
    /// A compare-and-exchange is a load and a store, and so is a subtraction.
    Atomicity,
}

loom::thread_local! {
    static BROKEN: Cell<Broken> = Cell::new(Broken::Nothing);
}

/// Violates the guarantee `what` in this thread of the model from here on.
pub fn break_promise(what: Broken) {
    BROKEN.with(|broken| broken.set(what));
}

fn breaks(what: Broken) -> bool {
    BROKEN.with(|broken| broken.get() == what)
}

fn weakened(what: Broken, ordering: Ordering) -> Ordering {
    if breaks(what) { Ordering::Relaxed } else { ordering }
}

/// Fails unless loom finds an execution of `model` that panics with one of `messages`.
pub fn assert_found(messages: &[&str], model: impl Fn() + Sync + Send + 'static) {
    let found = catch_unwind(AssertUnwindSafe(|| crate::check::check(3, model)));
    let panic = found.expect_err("the mutant passed: the model does not see what it is there for");
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let text = text.expect("a panic with a text");
    assert!(messages.iter().any(|message| text.contains(message)), "found something else: {text}");
}

macro_rules! breakable {
    ($($name:ident($int:ty)),+) => {$(
        /// loom's atomic type, whose guarantees can be violated.
        #[derive(Debug, Default)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            pub fn new(value: $int) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            pub fn load(&self, ordering: Ordering) -> $int {
                self.0.load(weakened(Broken::Loads, ordering))
            }

            pub fn store(&self, value: $int, ordering: Ordering) {
                self.0.store(value, weakened(Broken::Stores, ordering));
            }

            pub fn swap(&self, value: $int, ordering: Ordering) -> $int {
                self.0.swap(value, weakened(Broken::Exchanges, ordering))
            }

            pub fn fetch_max(&self, value: $int, ordering: Ordering) -> $int {
                self.0.fetch_max(value, weakened(Broken::Exchanges, ordering))
            }

            pub fn fetch_add(&self, value: $int, ordering: Ordering) -> $int {
                self.0.fetch_add(value, weakened(Broken::Exchanges, ordering))
            }

            pub fn fetch_or(&self, value: $int, ordering: Ordering) -> $int {
                self.0.fetch_or(value, weakened(Broken::Exchanges, ordering))
            }

            pub fn fetch_and(&self, value: $int, ordering: Ordering) -> $int {
                self.0.fetch_and(value, weakened(Broken::Exchanges, ordering))
            }

            pub fn fetch_sub(&self, value: $int, ordering: Ordering) -> $int {
                if !breaks(Broken::Atomicity) {
                    return self.0.fetch_sub(value, ordering);
                }
                let now = self.0.load(ordering);
                self.0.store(now.wrapping_sub(value), ordering);
                now
            }

            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange(current, new, weakened(Broken::Exchanges, success), failure)
            }

            pub fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                if !breaks(Broken::Atomicity) {
                    return self.0.compare_exchange_weak(current, new, success, failure);
                }
                let now = self.0.load(failure);
                if now != current {
                    return Err(now);
                }
                self.0.store(new, success);
                Ok(now)
            }
        }
    )+};
}

breakable!(AtomicU32(u32), AtomicU64(u64), AtomicUsize(usize));
