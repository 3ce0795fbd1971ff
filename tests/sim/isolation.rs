//! Lossless flows beside lossy floods on a core that has no time to forward the floods, but has time to shed them:
//! docs/overload.md, "The law".

use holdfast::sim::outcome::Outcome;
use holdfast::sim::scenario::{self, Options};

/// Polls that do nothing but the most urgent must take less than this part of the time they should take, in percent.
/// Beyond that, a flood may not be shed.
const MOST_URGENT: u64 = 85;

/// A switch with a slow core, and the load of its ports. Times are nanoseconds, rates Mb/s.
#[derive(Debug, Clone)]
struct Mix {
    every: u64,
    frame: u64,
    shed: u64,
    poll_gap: u64,
    speed: u64,
    /// Frame lengths in bytes.
    lossless_frame: u64,
    lossy_frame: u64,
    /// Rates by port: of a lossless flow, and of the flood.
    lossless: Vec<u64>,
    lossy: Vec<u64>,
    /// Classes among which the flood of a port is divided.
    classes: u64,
    /// How the flood comes: `steady`, or on and off.
    load: &'static str,
}

/// Service of the lossless flows beside the flood.
#[derive(Debug)]
struct Service {
    /// Frames that arrive, in percent of those beside the same flood at an infinitely fast core. Without the flood more
    /// may arrive, because the hosts send both by one link.
    goodput: u64,
    /// Time for which the most paused host is held, in percent.
    held: u64,
    /// Longest time between polls, in percent of the poll gap.
    gap: u64,
    /// Lossy frames that pass, in percent of those for which polls have time.
    lossy: u64,
}

impl Service {
    fn is_good(&self) -> bool {
        self.goodput >= 90 && self.held <= 10 && self.gap <= 100 && self.lossy >= 90
    }
}

/// Frames a second at `rates` of frames of `len` bytes. A rate counts the check sequence, preamble and gap.
fn frames(rates: &[u64], len: u64) -> u64 {
    rates.iter().sum::<u64>() * 1_000_000 / 8 / (len + 24)
}

impl Mix {
    /// Nanoseconds that a poll should take.
    fn target(&self) -> u64 {
        (self.poll_gap / 2).max(self.every + self.poll_gap / 4)
    }

    /// Nanoseconds of a poll of that length in which each lossy frame takes `lossy`.
    fn work(&self, lossy: u64) -> u64 {
        let second = frames(&self.lossless, self.lossless_frame) * 2 * self.frame
            + frames(&self.lossy, self.lossy_frame) * lossy;
        self.every + second * self.target() / 1_000_000_000
    }

    /// Whether the core cannot forward the flood, but has time to shed it.
    fn can_be_shed(&self) -> bool {
        let target = self.target();
        // A gap must have time for three bursts of 32 frames, and an idle poll may take an eighth of it.
        self.every * 8 <= self.poll_gap
            && self.every + 192 * self.frame <= self.poll_gap
            && frames(&self.lossless, self.lossless_frame) > 0
            && self.work(self.shed) * 100 <= target * MOST_URGENT
            && self.work(2 * self.frame) > target
    }

    /// Lossy frames for which polls have time, in a second.
    fn room(&self) -> u64 {
        let left = self.target() - self.work(self.shed);
        let room = left * 1_000_000_000 / self.target() / (2 * self.frame - self.shed);
        room.min(frames(&self.lossy, self.lossy_frame))
    }

    fn run(&self, millis: u64, is_slow: bool) -> Outcome {
        let Self { every, poll_gap, speed, lossless_frame, lossy_frame, classes, load, .. } = self;
        let [frame, shed] = [self.frame, self.shed].map(|time| if is_slow { time } else { 0 });
        let ports = self.lossless.len();
        let mut text = format!(
            "duration: {millis}ms
switches:
  - name: tor
    poll: {{every: {every}ns, frame: {frame}ns, shed: {shed}ns}}
    config:
      preset: roce
      buffer: {{size: 128MiB}}
      lcores: {{poll_gap: {poll_gap}ns}}
      ports: [{{name: p*, count: {ports}, speed: {speed}G}}]
hosts: [{{name: h*, count: {ports}, at: tor.p*}}]
flows:\n"
        );
        for (port, (lossless, lossy)) in self.lossless.iter().zip(&self.lossy).enumerate() {
            let pair = format!("from: h{}, to: h{}", port + 1, (port ^ 1) + 1);
            if *lossless > 0 {
                text += &format!("  - {{{pair}, rate: {lossless}M, frame: {lossless_frame}}}\n");
            }
            for dscp in [0, 8, 16].iter().take(*classes as usize).filter(|_| *lossy > 0) {
                let rate = lossy / classes;
                text += &format!(
                    "  - {{{pair}, kind: udp, dscp: {dscp}, rate: {rate}M, frame: {lossy_frame}, load: {load}}}\n"
                );
            }
        }
        let scenarios = scenario::parse("isolation.yaml", &text, None, &Options::default());
        let scenario = scenarios.unwrap_or_else(|errors| panic!("{errors}\n{text}")).remove(0).1;
        let outcome = holdfast::sim::run(&scenario, &mut |_| {});
        assert_eq!(outcome.violation, None, "{text}");
        outcome
    }

    fn result(&self, millis: u64) -> Service {
        let [fast, beside] = [false, true].map(|is_slow| self.run(millis, is_slow));
        let received = |outcome: &Outcome, is_lossless: bool| -> u64 {
            let is_wanted = |flow: &usize| self.is_lossless(*flow) == is_lossless;
            (0..outcome.flows.len()).filter(is_wanted).map(|flow| outcome.flows[flow].received_frames).sum()
        };
        let held = beside.hosts.iter().map(|host| host.paused_ps[3]).max().unwrap_or(0);
        let room = self.room() * millis / 1000;
        let wanted = received(&fast, true);
        Service {
            goodput: received(&beside, true) * 100 / wanted.max(1),
            held: held * 100 / beside.sending_ps,
            gap: beside.switches[0].poll_gap_highest_ps / 10 / self.poll_gap,
            lossy: if self.load == "steady" { received(&beside, false) * 100 / room.max(1) } else { 100 },
        }
    }

    /// Whether flow number `wanted` of the run with the flood is a lossless one.
    fn is_lossless(&self, wanted: usize) -> bool {
        let mut flow = 0;
        for (lossless, lossy) in self.lossless.iter().zip(&self.lossy) {
            if *lossless > 0 {
                if flow == wanted {
                    return true;
                }
                flow += 1;
            }
            flow += if *lossy > 0 { self.classes as usize } else { 0 };
        }
        false
    }

    /// Draws a mix that can be shed.
    fn draw(random: &mut Random) -> Self {
        loop {
            let ports = random.of(&[2, 4, 4, 8]) as usize;
            let (frame, speed) = (random.of(&[20, 40, 60, 90, 120, 150, 200]), random.of(&[10, 25, 100]));
            let (lossless, lossy) =
                ([0, speed * 50, speed * 100, speed * 200], [0, speed * 250, speed * 500, speed * 750]);
            let mix = Self {
                every: random.of(&[200, 500, 1_000, 2_000]),
                frame,
                shed: frame.div_ceil(random.of(&[2, 3, 3, 6])),
                poll_gap: random.of(&[10_000, 20_000, 20_000, 40_000]),
                speed,
                lossless_frame: random.of(&[128, 512, 1_078, 1_500]),
                lossy_frame: random.of(&[64, 128, 256, 512, 1_024]),
                lossless: (0..ports).map(|_| random.of(&lossless)).collect(),
                lossy: (0..ports).map(|_| random.of(&lossy)).collect(),
                classes: random.of(&[1, 1, 2, 3]),
                load: ["steady", "{on: 200us, off: 100us}", "{on: 50us, off: 150us}"]
                    [random.of(&[0, 0, 1, 2]) as usize],
            };
            if mix.can_be_shed() {
                return mix;
            }
        }
    }
}

/// Random numbers of a seed (xorshift).
struct Random(u64);

impl Random {
    fn of(&mut self, values: &[u64]) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        values[(self.0 >> 20) as usize % values.len()]
    }
}

/// `HOLDFAST_MIXES` sets the number of mixes, `HOLDFAST_SEED` the first seed.
#[test]
fn floods_that_can_be_shed_take_nothing_from_lossless_flows() {
    let from = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (first, count) = (from("HOLDFAST_SEED", 1), from("HOLDFAST_MIXES", 24));
    let mut bad = Vec::new();
    for seed in first..first + count {
        let mix = Mix::draw(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let result = mix.result(20);
        println!("seed {seed}: {result:?} {}", mix.work(mix.shed) * 100 / mix.target());
        if !result.is_good() {
            bad.push(format!("seed {seed}: {result:?} {mix:?}"));
        }
    }
    assert!(bad.is_empty(), "{} of {count}:\n{}", bad.len(), bad.join("\n"));
}

/// Shedding needs 57 % of the core. Once, it alternated with pauses: lossless flows had 59 % of their frames.
#[test]
fn flood_of_four_ports_takes_nothing_from_lossless_flows() {
    let mix = Mix {
        every: 1_000,
        frame: 120,
        shed: 40,
        poll_gap: 20_000,
        speed: 10,
        lossless_frame: 1_078,
        lossy_frame: 256,
        lossless: vec![1_000, 0, 1_000, 0],
        lossy: vec![9_000; 4],
        classes: 1,
        load: "steady",
    };
    let result = mix.result(20);
    assert!(result.is_good(), "{result:?}");
}

/// A mix of 1,000 in which the core could almost forward the flood. Trials without shedding held senders for 15 %.
#[test]
fn flood_just_beyond_the_core_seldom_holds_senders() {
    let mix = Mix {
        every: 1_000,
        frame: 20,
        shed: 7,
        poll_gap: 20_000,
        speed: 10,
        lossless_frame: 512,
        lossy_frame: 128,
        lossless: vec![2_000, 2_000, 0, 500, 2_000, 1_000, 1_000, 2_000],
        lossy: vec![0, 5_000, 0, 2_500, 7_500, 0, 7_500, 2_500],
        classes: 3,
        load: "steady",
    };
    let result = mix.result(40);
    assert!(result.is_good(), "{result:?}");
}
