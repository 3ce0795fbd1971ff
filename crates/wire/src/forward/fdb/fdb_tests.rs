use super::*;

impl Fdb {
    fn learn_at(&mut self, vlan: u16, mac: MacAddr, port: usize) -> Learned {
        self.learn(Station::new(vlan, mac.to_number()), port)
    }

    fn port_of(&self, vlan: u16, mac: MacAddr) -> Option<usize> {
        self.lookup(Station::new(vlan, mac.to_number()))
    }
}

const HZ: u64 = 1_000_000_000;

#[test]
fn a_station_is_refreshed_four_times_before_it_could_age() {
    let mut fdb = fdb(64, 300, vec![]);
    let refreshed = (0..1200_u64).filter(|quarter| {
        fdb.set_time(Ticks(quarter * HZ / 4));
        fdb.learn_at(1, mac(1), 3) == Learned::Refreshed
    });
    // The refresh period is a power of two of coarse ticks, at most a quarter and more than an eighth of the ageing
    // time.
    assert!((4..=8).contains(&refreshed.count()));
}

#[test]
fn readvertised_station_stays_known_and_is_refreshed_by_its_next_frame() {
    for ageing in [300, 0] {
        let mut fdb = fdb(64, ageing, vec![]);
        fdb.set_time(Ticks(1000 * HZ));
        assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::New);
        fdb.readvertise(Station::new(1, mac(1).to_number()));
        assert_eq!(fdb.port_of(1, mac(1)), Some(3));
        assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::Refreshed);
        assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::Known);
    }
}

#[test]
fn stations_are_refreshed_at_different_times() {
    let mut fdb = fdb(4096, 300, vec![]);
    let mut most = 0;
    for eighth in 0..2400_u64 {
        fdb.set_time(Ticks(eighth * HZ / 8));
        let refreshed = (0..1000).filter(|&n| fdb.learn_at(1, mac(n), 1) == Learned::Refreshed).count();
        most = most.max(refreshed);
    }
    assert!((1..100).contains(&most), "{most} of 1000 at once");
}

#[test]
fn remotely_learned_station_ages_a_quarter_later() {
    let mut fdb = fdb(64, 300, vec![]);
    fdb.learn_remote(Station::new(1, mac(1).to_number()), 3);
    assert_eq!(fdb.learn_at(1, mac(2), 3), Learned::New);
    fdb.set_time(Ticks(370 * HZ));
    assert_eq!((fdb.port_of(1, mac(1)), fdb.port_of(1, mac(2))), (Some(3), None));
    fdb.set_time(Ticks(380 * HZ));
    assert_eq!(fdb.port_of(1, mac(1)), None);
}

fn fdb(capacity: u32, ageing_s: u64, entries: Vec<StaticEntry>) -> Fdb {
    Fdb::new(&FdbSpec { capacity, ageing: Nanos(ageing_s * 1_000_000_000), entries, seed: 0 }, HZ)
}

fn mac(number: u16) -> MacAddr {
    MacAddr::local(9, number)
}

#[test]
fn fdb_learns_moves_and_separates_vlans() {
    let mut fdb = fdb(1024, 300, vec![]);
    assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::New);
    assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::Known);
    assert_eq!(fdb.port_of(1, mac(1)), Some(3));
    assert_eq!(fdb.port_of(2, mac(1)), None);
    assert_eq!(fdb.learn_at(1, mac(1), 4), Learned::New);
    assert_eq!(fdb.port_of(1, mac(1)), Some(4));
    assert_eq!(fdb.len(), 1);
}

#[test]
fn station_ages_out_after_its_time_and_not_before() {
    let mut fdb = fdb(1024, 10, vec![]);
    fdb.learn_at(1, mac(1), 3);
    fdb.set_time(Ticks(10 * HZ));
    assert_eq!(fdb.port_of(1, mac(1)), Some(3));
    fdb.set_time(Ticks(10 * HZ + HZ / 2));
    assert_eq!(fdb.port_of(1, mac(1)), None);
    for _ in 0..fdb.buckets.len() {
        fdb.sweep(|_, _| true);
    }
    assert!(fdb.is_empty());
    assert_eq!(fdb.learn_at(1, mac(1), 5), Learned::New);
}

#[test]
fn static_entries_neither_age_nor_move() {
    let entry = StaticEntry { vlan: 1, mac: mac(1), port: 7 };
    let mut fdb = fdb(1024, 10, vec![entry]);
    fdb.set_time(Ticks(1000 * HZ));
    fdb.forget_port(7);
    assert_eq!(fdb.learn_at(1, mac(1), 2), Learned::Known);
    assert_eq!(fdb.port_of(1, mac(1)), Some(7));
}

#[test]
fn a_port_that_goes_down_is_forgotten() {
    let mut fdb = fdb(1024, 300, vec![]);
    fdb.learn_at(1, mac(1), 3);
    fdb.learn_at(1, mac(2), 4);
    fdb.forget_port(3);
    assert_eq!(fdb.port_of(1, mac(1)), None);
    assert_eq!(fdb.port_of(1, mac(2)), Some(4));
    assert_eq!(fdb.learn_at(1, mac(1), 3), Learned::New);
    assert_eq!(fdb.port_of(1, mac(1)), Some(3));
}

#[test]
fn fdb_fills_to_nine_tenths_and_evicts_no_live_station() {
    let mut fdb = fdb(65_536, 300, vec![]);
    let learned = (0..=u16::MAX).filter(|&n| fdb.learn_at(1, mac(n), usize::from(n % 32)) == Learned::New).count();
    assert!(learned > 58_000, "two choices of four ways fill nine tenths, got {learned}");
    let found = (0..=u16::MAX).filter(|&n| fdb.port_of(1, mac(n)) == Some(usize::from(n % 32))).count();
    assert_eq!(found, learned);
    assert_eq!(fdb.len(), learned);
}

#[test]
fn learned_stations_are_removed_on_request_and_static_ones_stay() {
    let fixed = StaticEntry { vlan: 1, mac: mac(9), port: 3 };
    let mut fdb = fdb(64, 300, vec![fixed]);
    for (vlan, number, port) in [(1, 1, 3), (2, 2, 3), (1, 3, 4)] {
        assert_eq!(fdb.learn_at(vlan, mac(number), port), Learned::New);
    }
    fdb.learn_remote(Station::new(1, mac(4).to_number()), 3);
    let (version, stations) = (fdb.version(), fdb.shares.stations(3));
    let clear = |fdb: &mut Fdb, port: usize, vlan: Option<u16>| -> u32 {
        let is_meant = |seen: &Sighting| seen.port == port && vlan.is_none_or(|vlan| seen.station.vlan() == vlan);
        (0..fdb.buckets()).map(|bucket| fdb.forget_in_bucket(bucket, is_meant)).sum()
    };
    assert_eq!(clear(&mut fdb, 5, None), 0);
    assert_eq!(fdb.version(), version, "nothing has changed");
    assert_eq!(clear(&mut fdb, 3, Some(1)), 2, "also one that another lcore has seen");
    assert_ne!(fdb.version(), version, "cached answers are void");
    assert_eq!((fdb.port_of(1, mac(1)), fdb.port_of(1, mac(4)), fdb.shares.stations(3)), (None, None, stations - 2));
    assert_eq!((fdb.port_of(2, mac(2)), fdb.port_of(1, mac(3)), fdb.port_of(1, mac(9))), (Some(3), Some(4), Some(3)));
    assert_eq!((clear(&mut fdb, 3, None), fdb.port_of(1, mac(9)), fdb.len()), (1, Some(3), 2));
}
