//! The observed switch: each reload replaces the [`SwitchView`], which keeps its counters.

use std::sync::{Arc, PoisonError, RwLock};

use super::switch_view::SwitchView;
use crate::config::settings::Settings;
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

    /// Replaces the switch view by one with the plan `spec` and its settings.
    pub fn tuned(&self, spec: SwitchSpec, settings: Arc<Settings>) {
        self.change(|view| view.tuned(spec, settings));
    }

    /// Replaces the switch view by what `change` makes of it.
    pub fn change(&self, change: impl FnOnce(&SwitchView) -> SwitchView) {
        let changed = change(&self.get());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(changed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::quiet;
    use super::*;
    use crate::config::settings;
    use crate::mirror::MirrorConfig;

    #[test]
    fn another_configuration_has_another_hash_and_the_same_counters() {
        let current = Current::new(quiet());
        let before = current.get();
        let mut spec = before.spec.clone();
        spec.ports[0].live.port_class = 5;
        let settings = Arc::new(settings::all(&crate::config::embedded()));
        current.tuned(spec, settings);
        let after = current.get();
        assert_ne!(before.settings.fingerprint(), after.settings.fingerprint());
        before.counters.ports[0].rx_frames[3].add(7);
        assert_eq!(after.counters.ports[0].rx_frames[3].get(), 7);
        assert_eq!(after.spec.ports[0].live.port_class, 5);
    }

    #[test]
    fn destinations_of_mirrors_change_with_their_sessions_alone() {
        let current = Current::new(super::super::fixture::mirroring());
        let before = current.get();
        current.tuned(before.spec.clone(), Arc::default());
        assert_eq!(current.get().mirror_config, before.mirror_config);
        current.change(|view| view.tuned(quiet().spec, Arc::default()).mirroring(MirrorConfig::default()));
        let after = current.get();
        assert_eq!((after.mirror_config.targets.len(), after.spec.mirror.sessions.len()), (0, 0));
    }
}
