//! Runs a loom model over its interleavings.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;

/// Tries every interleaving of `model` with up to `preemptions` preemptions, and prints their number. A preemption is a
/// switch away from a thread that could have continued.
pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let tried = tried.load(Ordering::Relaxed);
    println!("{tried} executions with up to {preemptions} preemptions");
    // A model whose threads do not run concurrently would pass regardless of their operations.
    assert!(tried > 10, "loom found next to nothing to try");
}
