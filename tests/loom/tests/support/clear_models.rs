//! Requests to remove stations, between the control thread and the lcores.

use loom::sync::Arc;
use loom::thread;

use crate::fdb_clear::{ClearedStations, FdbClear};
use crate::sets::PortSet;

/// Two requests in turn: an lcore never reads the ports of one and the VLAN of the other, and the count of removed
/// stations has the parts of both lcores.
pub fn request_to_clear_stations_is_read_whole_by_each_lcore() {
    let clear = Arc::new(FdbClear::new(2));
    let stations = |number: u16| ClearedStations { ports: PortSet::only(number.into()), vlan: Some(number) };
    let lcores = [0, 1].map(|lcore| {
        let clear = clear.clone();
        thread::spawn(move || {
            let mut done = 0;
            for _ in 0..2 {
                let asked = clear.asked();
                if asked != done {
                    assert_eq!(clear.stations(), stations(asked as u16), "a part of another request");
                    clear.answer(lcore, asked, asked);
                    done = asked;
                }
                thread::yield_now();
            }
        })
    });
    let mut made = 0;
    for _ in 0..2 {
        if clear.request(stations(made + 1)).is_some() {
            made += 1;
        }
        if let Some(removed) = clear.removed(made.into()) {
            assert_eq!(removed, 2 * u64::from(made), "the part of an lcore is missing");
        }
        thread::yield_now();
    }
    lcores.into_iter().for_each(|lcore| lcore.join().unwrap());
}
