//! Tests that no screen size and no answer of the API causes a panic.

use proptest::prelude::*;

use super::*;
use crate::api::model::*;
use crate::top::Key;

/// A xorshift generator of pseudo-random numbers.
struct XorShift(u64);

impl XorShift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number that is zero, small, large, the maximum or of any size.
    fn number(&mut self) -> u64 {
        match self.next() % 6 {
            0 => 0,
            1 => self.next() % 100,
            2 => u64::MAX,
            3 => self.next(),
            _ => self.next() % 100_000_000,
        }
    }

    fn flag(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn maybe(&mut self) -> Option<u64> {
        self.flag().then(|| self.number())
    }

    fn list<T>(&mut self, most: u64, of: impl Fn(&mut Self, usize) -> T) -> Vec<T> {
        (0..self.next() % (most + 1)).map(|index| of(self, index as usize)).collect()
    }
}

/// Port names: usual, empty, too long, wide, and with control characters.
fn name(index: usize) -> String {
    match index % 7 {
        0 => String::new(),
        1 => "uplink-to-the-spine-in-the-other-hall".to_owned(),
        2 => format!("港{index}"),
        3 => format!("a\u{7}b\n{index}"),
        _ => format!("p{index}"),
    }
}

fn port(rng: &mut XorShift, index: usize) -> Port {
    Port {
        port: name(index),
        device: "net_tap0,iface=tap0".to_owned(),
        rate_bps: rng.number(),
        cable_m: rng.number() as f64 / 7.0,
        link_up: rng.flag(),
        egress_stuck: rng.flag(),
        lossless: rng.flag(),
        received_wire_bytes: rng.number(),
        sent_wire_bytes: rng.number(),
        dropped_frames: rng.number(),
        lossless_dropped_frames: rng.number(),
        missed_frames: rng.number(),
        no_buffer_frames: rng.number(),
        ..Port::default()
    }
}

fn pfc(rng: &mut XorShift, index: usize) -> Pfc {
    let priorities = rng.list(9, |rng, priority| PfcPriority {
        priority: priority as u8,
        xoff: rng.flag(),
        paused: rng.flag(),
        sent_xoff_frames: rng.number(),
        received_xoff_frames: rng.number(),
        sent_paused_ns: rng.number(),
        received_paused_ns: rng.number(),
        ..PfcPriority::default()
    });
    Pfc { port: name(index), port_xoff: rng.flag(), sent_frames: rng.number(), priorities, ..Pfc::default() }
}

fn group(rng: &mut XorShift, index: usize) -> Group {
    Group {
        port: name(index / 8),
        group: (index % 8) as u8,
        classes: vec![0, 1, 2, 3, 4, 5, 6, 7],
        lossless: rng.flag(),
        xoff: rng.flag(),
        alpha: rng.flag().then(|| f64::from_bits(rng.next())),
        static_limit_bytes: rng.maybe(),
        reserve_bytes: rng.number(),
        limit_bytes: rng.number(),
        xoff_bytes: rng.maybe(),
        used_bytes: rng.number(),
        used_highest_bytes: rng.number(),
        headroom_size_bytes: rng.number(),
        headroom_bytes: rng.number(),
        headroom_highest_bytes: rng.number(),
        headroom_needed_bytes: rng.maybe(),
        ..Group::default()
    }
}

fn queue(rng: &mut XorShift, index: usize) -> Queue {
    Queue {
        port: name(index / 8),
        queue: (index % 8) as u8,
        paused: rng.flag(),
        reserve_bytes: rng.number(),
        limit_bytes: rng.maybe(),
        depth_bytes: rng.number(),
        depth_highest_bytes: rng.number(),
        sent_bytes: rng.number(),
        sent_frames: rng.number(),
        ecn_marked_frames: rng.number(),
        ..Queue::default()
    }
}

fn lcore(rng: &mut XorShift, index: usize) -> Lcore {
    Lcore {
        lcore: index as u8,
        ports: rng.list(64, |_, port| name(port)),
        polls: rng.number(),
        busy_polls: rng.number(),
        poll_gap_configured_ns: rng.number(),
        poll_gap_p99_ns: rng.maybe(),
        poll_gap_highest_ns: rng.number(),
        poll_gaps: rng.list(70, |rng, _| rng.number()),
        rest_longest_ns: rng.maybe(),
        rested_ns: rng.number(),
        ..Lcore::default()
    }
}

/// A state with random content, including content that no current switch returns.
fn anything(rng: &mut XorShift) -> State {
    let pools = rng.list(4, |rng, index| Pool {
        pool: ["lossless", "lossy", "headroom", "fourth"][index].to_owned(),
        size_bytes: rng.number(),
        used_bytes: rng.number(),
        used_highest_bytes: rng.maybe(),
        pending_bytes: rng.number(),
    });
    State {
        at_ns: rng.number(),
        ports: rng.list(64, port),
        pfc: rng.list(64, pfc),
        buffers: Buffers { pools, ..Buffers::default() },
        groups: rng.list(512, group),
        queues: rng.list(512, queue),
        lcores: rng.list(12, lcore),
        drops: rng.list(20, |rng, index| Dropped {
            port: name(index),
            class: rng.flag().then_some(3),
            lossless: rng.flag(),
            reason: "headroom_full".to_owned(),
            frames: rng.number(),
            ..Dropped::default()
        }),
        ecn: rng.list(64, |rng, index| Ecn {
            port: name(index),
            queue: 3,
            kmin_bytes: rng.number(),
            kmax_bytes: rng.number(),
            ..Ecn::default()
        }),
        flows: rng.list(20, |rng, index| Flow {
            from: name(index),
            received_frames: rng.number(),
            ce_frames: rng.number(),
            received_wire_bytes: rng.number(),
            missing_frames: rng.maybe(),
            latency_p99_ns: rng.maybe(),
            ..Flow::default()
        }),
        advice: rng.list(3, |_, index| Advice { text: "widen the headroom of p1 ".repeat(index), ..Advice::default() }),
        classes: vec![Class { class: 3, lossless: rng.flag(), ..Class::default() }],
        ..State::default()
    }
}

/// An app after random states and keys.
fn random(seed: u64) -> App {
    let rng = &mut XorShift(seed | 1);
    let paint = Paint { colour: rng.flag(), unicode: rng.flag() };
    let mut app = App::new(paint, Duration::from_millis(100));
    let mut last = State::default();
    for look in 0..rng.next() % 6 {
        let mut now = anything(rng);
        if look > 0 && rng.flag() {
            // The ports stay, as after another reading of one switch.
            now.ports = last.ports.clone();
            now.at_ns = u64::max(now.at_ns, last.at_ns);
        }
        last = now.clone();
        let events = rng.list(4, |rng, number| Event {
            number: number as u64,
            at_ns: rng.number(),
            text: name(number),
            ..Event::default()
        });
        app.look(now, &events);
        if rng.next().is_multiple_of(5) {
            app.lose("it has ended");
        }
        keys(rng, &mut app);
    }
    app
}

fn keys(rng: &mut XorShift, app: &mut App) {
    const LETTERS: &[u8] = b"?jkgGpsracp+-12345 x";
    const OTHERS: [Key; 9] =
        [Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Home, Key::End, Key::Tab, Key::BackTab, Key::Escape];
    for _ in 0..rng.next() % 12 {
        let key = match rng.flag() {
            true => Key::Char(char::from(LETTERS[rng.next() as usize % LETTERS.len()])),
            false => OTHERS[rng.next() as usize % OTHERS.len()],
        };
        app.key(key);
    }
}

#[test]
fn screen_of_any_size_is_drawn() {
    let apps: Vec<App> = (1..=23).map(|seed| random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))).collect();
    let mut buffer = Buffer::empty(Rect::default());
    let mut at = 0;
    for width in 1..=200 {
        for height in 1..=60 {
            // 23 and 60 have no common divisor: each app is drawn at each height.
            buffer.resize(Rect::new(0, 0, width, height));
            apps[at % apps.len()].draw(buffer.area, &mut buffer);
            at += 1;
        }
    }
    assert_eq!(at, 12_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_state_is_drawn_at_any_size_without_panic(seed: u64, width in 0_u16..300, height in 0_u16..100) {
        let app = random(seed);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        app.draw(Rect::new(0, 0, u16::MAX, u16::MAX), &mut buffer);
    }
}

/// Each of 64 ports with 8 groups each can be shown on the screen.
#[test]
fn every_port_group_and_queue_can_be_reached() {
    let rng = &mut XorShift(7);
    let mut state = State::default();
    for index in 0..64 {
        state.ports.push(Port { port: format!("port{index}"), ..Port::default() });
    }
    for index in 0..512 {
        let port = format!("port{}", index / 8);
        state.groups.push(Group { port: port.clone(), ..group(rng, index) });
        state.queues.push(Queue { port, ..queue(rng, index) });
    }
    for (view, rows) in [('1', 64), ('2', 512), ('3', 512)] {
        let mut app = App::new(PLAIN, Duration::from_secs(1));
        app.look(state.clone(), &[]);
        app.key(Key::Char('a'));
        app.key(Key::Char(view));
        for row in 0..rows {
            let screen = text(&app, 80, 24);
            let selected = screen.lines().find(|line| line.starts_with('▶')).unwrap_or_else(|| panic!("{screen}"));
            let port = row * 64 / rows;
            assert!(selected.starts_with(&format!("▶ port{port} ")), "view {view}, row {row}: {selected}");
            app.key(Key::Down);
        }
    }
}
