//! The observed switch: each reload replaces the [`SwitchView`], which keeps its counters.

use std::sync::{Arc, PoisonError, RwLock};

use super::switch_view::SwitchView;
use crate::mirror::MirrorConfig;
use crate::plan::SwitchSpec;

/// The current [`SwitchView`]. Observers read it for each snapshot; only the control thread replaces it.
#[derive(Debug)]
pub struct Current(RwLock<Arc<SwitchView>>);

impl Current {
    /// Returns a holder of `switch_view`.
    #[must_use]
    pub fn new(switch_view: SwitchView) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(switch_view))))
    }

    /// The current switch view.
    #[must_use]
    pub fn get(&self) -> Arc<SwitchView> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the switch view by one with the settings of `spec` and the hash of its configuration.
    pub fn tuned(&self, spec: SwitchSpec, config_hash: u64) {
        let mirrors = self.get().mirror_config.clone();
        self.tuned_mirroring(spec, mirrors, config_hash);
    }

    /// Replaces the switch view as [`Current::tuned`] does, with the destinations of the mirrors of `spec`.
    pub fn tuned_mirroring(&self, spec: SwitchSpec, mirrors: MirrorConfig, config_hash: u64) {
        let tuned = self.get().tuned(spec, config_hash).mirroring(mirrors);
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
        spec.ports[0].live.port_class = 5;
        current.tuned(spec, before.config_hash + 1);
        let after = current.get();
        assert_ne!(before.config_hash, after.config_hash);
        before.counters.ports[0].rx_frames[3].add(7);
        assert_eq!(after.counters.ports[0].rx_frames[3].get(), 7);
        assert_eq!(after.spec.ports[0].live.port_class, 5);
    }
    #[test]
    fn destinations_of_mirrors_change_with_their_sessions_alone() {
        let current = Current::new(super::super::fixture::mirroring());
        let before = current.get();
        current.tuned(before.spec.clone(), 1);
        assert_eq!(current.get().mirror_config, before.mirror_config);
        current.tuned_mirroring(quiet().spec, MirrorConfig::default(), 2);
        let after = current.get();
        assert_eq!((after.mirror_config.targets.len(), after.spec.mirror.sessions.len()), (0, 0));
    }
}
