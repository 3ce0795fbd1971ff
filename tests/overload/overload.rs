//! Loads that exceed the capacity of the core.

use crate::lab::{Lab, MS, US};

/// An overload: frame length, time of an lcore for each frame, configured poll gap, and length of a receive ring.
struct Load {
    frame: usize,
    frame_ns: u64,
    poll_gap: &'static str,
    ring: usize,
}

/// Four hosts together send a frame of 64 B every 17.6 ns. A poll receives a burst from each port, 128 frames in 7.7
/// us.
const SMALL: Load = Load { frame: 64, frame_ns: 60, poll_gap: "20us", ring: 1024 };
/// Four hosts together send a frame of 512 B every 107 ns. A poll receives 128 frames in 19 us, nearly the whole poll
/// gap.
const MIDDLE: Load = Load { frame: 512, frame_ns: 150, ..SMALL };
/// Four hosts together send a frame of 1500 B every 305 ns. A core that is too slow for frames of the MTU takes 1.8 ms
/// for 16 bursts of each port.
const LARGE: Load = Load { frame: 1500, frame_ns: 900, poll_gap: "2ms", ring: 4096 };

const LOADS: [(u8, Load); 4] = [(1, SMALL), (2, SMALL), (1, MIDDLE), (1, LARGE)];

impl Load {
    /// Creates four 10G hosts, each sending in class 3 to the next at line rate. Only the core is congested.
    fn lab(&self, lcores: u8, backlog_xoff: &str) -> Lab {
        self.lab_of(lcores, backlog_xoff, &[26])
    }

    /// Creates the same lab with a flow for each of these DSCPs.
    fn lab_of(&self, lcores: u8, backlog_xoff: &str, dscps: &[u8]) -> Lab {
        let Self { frame, frame_ns, poll_gap, ring } = self;
        let mut yaml = format!(
            "preset: roce\nbuffer: {{size: 128MiB}}\n\
             lcores: {{count: {lcores}, poll_gap: {poll_gap}, backlog_xoff: {backlog_xoff}}}\nports:\n"
        );
        (0..4).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 10G}}\n"));
        yaml += "hosts:\n";
        for n in 0..4 {
            yaml += &format!("  - name: h{n}\n    port: p{n}\n    flows:\n");
            for dscp in dscps {
                let flow = format!("to: h{}, kind: udp, dscp: {dscp}, ecn: true, frame: {frame}", (n + 1) % 4);
                yaml += &format!("      - {{{flow}}}\n");
            }
        }
        Lab::new(&yaml, *ring, *frame_ns)
    }

    /// Returns the frames that `lcores` can switch in `ns`.
    fn possible(&self, lcores: u8, ns: u64) -> u64 {
        u64::from(lcores) * ns / self.frame_ns
    }
}

fn losses(lab: &Lab) -> (u64, u64, u64) {
    (lab.missed(3), lab.lost(3), lab.all_drops(3))
}

#[test]
fn a_core_too_slow_for_its_load_loses_nothing_of_obedient_senders() {
    for (lcores, load) in LOADS {
        let mut lab = load.lab(lcores, "on");
        lab.run(4 * MS);
        let delivered: u64 = lab.delivered_in(10 * MS).iter().sum();
        let possible = load.possible(lcores, 10 * MS);
        lab.drain();
        let (ring, xoffs) = (lab.ring_highest(), lab.backlog_xoffs());
        println!(
            "rule on, {lcores} lcores, {} B: {delivered} delivered of {possible}, ring {ring}, XOFFs {xoffs}",
            load.frame
        );
        assert_eq!(losses(&lab), (0, 0, 0), "{lcores} lcores, {} B", load.frame);
        assert!(xoffs > 0);
        // Pacing catches up on 10 us. Ports that are polled later than that are mostly idle, and so is the core.
        let busy = if load.poll_gap == LARGE.poll_gap { 0 } else { possible * 8 / 10 };
        assert!(delivered > busy, "{delivered} of {possible}");
        lab.assert_empty();
    }
}

#[test]
fn overloaded_core_without_backlog_xoff_loses_frames() {
    for (lcores, load) in LOADS {
        let mut lab = load.lab(lcores, "off");
        lab.run(10 * MS);
        lab.drain();
        let sent: u64 = (0..4).map(|flow| lab.sent(flow)).sum();
        println!("rule off, {lcores} lcores, {} B: {} missed of {sent}", load.frame, lab.missed(3));
        assert!(lab.missed(3) > sent / 10);
        // A full ring behind a group at XOFF exceeds any headroom.
        assert_eq!(lab.lost(3), lab.missed(3) + lab.all_drops(3), "what hosts miss is what rings and buffer lost");
    }
}

#[test]
fn a_stall_that_the_rings_cover_loses_nothing() {
    let mut lab = Load { frame_ns: 10, ..SMALL }.lab(1, "on");
    lab.run(MS);
    for _ in 0..10 {
        // 568 frames of each host arrive during the stall, and more until the peer obeys XOFF.
        lab.stall(40 * US);
        lab.run(500 * US);
    }
    lab.drain();
    println!("stall of 40 us: ring {}", lab.ring_highest());
    assert_eq!(losses(&lab), (0, 0, 0));
    lab.assert_empty();
}

/// Returns the delivered frames of the lossless and the lossy flows in 10 ms. Each host sends 1 Gb/s of lossless frames
/// of 1078 B. With `is_flood` it also sends 8 Gb/s of lossy frames of 64 B.
fn beside_a_flood(is_flood: bool) -> ([u64; 2], Lab) {
    let mut yaml = "preset: roce\nbuffer: {size: 128MiB}\nlcores: {poll_gap: 20us}\nports:\n".to_owned();
    (0..4).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 10G}}\n"));
    yaml += "hosts:\n";
    for n in 0..4 {
        let to = (n + 1) % 4;
        yaml += &format!("  - name: h{n}\n    port: p{n}\n    flows:\n");
        yaml += &format!("      - {{to: h{to}, kind: udp, dscp: 26, ecn: true, frame: 1078, rate: 1G}}\n");
        if is_flood {
            yaml += &format!("      - {{to: h{to}, kind: udp, dscp: 0, frame: 64, rate: 8G}}\n");
        }
    }
    let mut lab = Lab::new(&yaml, 1024, 60);
    lab.run(4 * MS);
    let delivered = lab.delivered_in(10 * MS);
    let flows = if is_flood { 2 } else { 1 };
    let sum = |first: usize| delivered.iter().skip(first).step_by(flows).sum();
    ([sum(0), if is_flood { sum(1) } else { 0 }], lab)
}

/// Lossy senders do not stop. The switch sheds their frames, so lossless classes have the same throughput as without
/// the flood.
#[test]
fn a_lossy_flood_takes_nothing_from_lossless_classes() {
    let ([alone, _], _) = beside_a_flood(false);
    let ([beside, lossy], mut lab) = beside_a_flood(true);
    lab.drain();
    println!("lossless: {alone} frames alone, {beside} beside a flood, of which {lossy} frames pass");
    assert_eq!(losses(&lab), (0, 0, 0));
    assert!(beside * 10 >= alone * 9, "{beside} of {alone}");
    // Lossy frames get the remaining time.
    assert!(lossy > 10 * MS / 60 / 4, "{lossy} lossy frames");
    lab.assert_empty();
}
