use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const PLACES: usize = 24;
const PORTS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Event {
    Added { place: usize, port: usize },
    Removed(usize),
    SeenAgain(usize),
    Down(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..PLACES, 0..PORTS).prop_map(|(place, port)| Event::Added { place, port }),
        2 => (0..PLACES).prop_map(Event::Removed),
        2 => (0..PLACES).prop_map(Event::SeenAgain),
        1 => (0..PORTS).prop_map(Event::Down),
    ]
}

/// A reference by queues of places: one for each port, and the last for void places.
struct Naive([VecDeque<usize>; PORTS + 1]);

impl Naive {
    fn list_of(&self, place: usize) -> Option<usize> {
        self.0.iter().position(|list| list.contains(&place))
    }

    fn remove(&mut self, place: usize) {
        self.0.iter_mut().for_each(|list| list.retain(|&other| other != place));
    }
}

proptest! {
    #[test]
    fn shares_count_and_order_places_as_queues_do(events in prop::collection::vec(event(), 1..200)) {
        let (mut shares, mut naive) = (Shares::new(PLACES), Naive(Default::default()));
        for (at, event) in events.into_iter().enumerate() {
            match event {
                Event::Added { place, port } if naive.list_of(place).is_none() => {
                    shares.add(place, port, at as u32);
                    naive.0[port].push_back(place);
                }
                Event::Removed(place) => if let Some(list) = naive.list_of(place) {
                    shares.remove(place, (list < PORTS).then_some(list));
                    naive.remove(place);
                },
                Event::SeenAgain(place) => if let Some(port) = naive.list_of(place).filter(|&list| list < PORTS) {
                    shares.requeue(place, port, at as u32);
                    naive.remove(place);
                    naive.0[port].push_back(place);
                },
                Event::Down(port) => {
                    shares.forget(port);
                    let void = std::mem::take(&mut naive.0[port]);
                    naive.0[PORTS].extend(void);
                }
                Event::Added { .. } => {}
            }
            for port in 0..PORTS {
                prop_assert_eq!(shares.stations(port) as usize, naive.0[port].len());
                prop_assert_eq!(shares.oldest(port).map(|(place, _)| place), naive.0[port].front().copied());
            }
        }
    }
}

#[test]
fn port_has_its_looks_again_in_the_next_tick() {
    let mut shares = Shares::new(4);
    for tick in [7, 8] {
        let looks = (0..2 * LOOKS).filter(|_| shares.take_look(1, tick)).count();
        assert_eq!(looks, LOOKS as usize);
        assert!(shares.take_look(2, tick), "another port has its own");
    }
}
