//! The observed switch: each reload replaces the [`Subject`], which keeps its counters.

use std::sync::{Arc, PoisonError, RwLock};

use super::subject::Subject;
use crate::dataplane::SwitchSpec;

/// The current [`Subject`]. Observers read it for each snapshot; only the control thread replaces it.
#[derive(Debug)]
pub struct Current(RwLock<Arc<Subject>>);

impl Current {
    /// Returns a holder of `subject`.
    #[must_use]
    pub fn new(subject: Subject) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(subject))))
    }

    /// The current subject.
    #[must_use]
    pub fn get(&self) -> Arc<Subject> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the subject by one with the settings of `spec` and the hash of its configuration.
    pub fn tuned(&self, spec: SwitchSpec, config_hash: u64) {
        let tuned = self.get().tuned(spec, config_hash);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tuned);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::quiet;
    use super::*;

    #[test]
    fn another_configuration_has_another_hash_and_the_same_counters() {
        let current = Current::new(quiet());
        let before = current.get();
        let mut spec = before.spec.clone();
        spec.ports[0].port_class = 5;
        current.tuned(spec, before.config_hash + 1);
        let after = current.get();
        assert_ne!(before.config_hash, after.config_hash);
        before.counters.ports[0].rx_frames[3].add(7);
        assert_eq!(after.counters.ports[0].rx_frames[3].get(), 7);
        assert_eq!(after.spec.ports[0].port_class, 5);
    }
}
