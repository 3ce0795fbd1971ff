//! Removes learned stations from the forwarding database of an lcore on request: some buckets in each poll, so that no
//! poll becomes late.

use crate::forward::Fdb;
use crate::plan::LcoreControl;
use crate::plan::fdb_view::BUCKETS;
use crate::sets::PortSet;

/// The progress of an lcore with a request.
#[derive(Debug, Default)]
pub(super) struct Clearing {
    /// Number of the last request that was carried out.
    pub done: u64,
    /// Next bucket of the request in progress, and stations removed so far.
    bucket: usize,
    removed: u64,
}

impl Clearing {
    /// Continues with request `asked`: removes stations from `fdb`, and counts those behind the ports `own` of `lcore`.
    #[cold]
    pub fn proceed(&mut self, control: &LcoreControl, asked: u64, lcore: usize, fdb: &mut Fdb, own: PortSet) {
        let buckets = fdb.buckets();
        let meant = control.stations_to_clear();
        let is_in_vlan = |vlan| meant.vlan.is_none_or(|wanted| wanted == vlan);
        let mut forget = |bucket, ports: PortSet| {
            fdb.forget_in_bucket(bucket, |seen| ports.contains(seen.port & 63) && is_in_vlan(seen.station.vlan()))
        };
        let end = buckets.min(self.bucket.saturating_add(BUCKETS));
        for bucket in self.bucket..end {
            self.removed += u64::from(forget(bucket, meant.ports & own));
            forget(bucket, meant.ports - own);
        }
        self.bucket = end;
        if end == buckets {
            control.answer_station_clear(lcore, asked, self.removed);
            *self = Self { done: asked, ..Self::default() };
        }
    }
}
