//! Random changes of a namespace: the mirror follows the kernel by events and rules alone.

use std::fmt::Write;

use crate::rig::{Rig, machine_is_ready};
use crate::rules::without_dumps;

/// Changes of a run. `HOLDFAST_NETLINK_CHANGES` sets another number.
const CHANGES: u32 = 100;

/// The generator xorshift64.
struct Rng(u64);

impl Rng {
    /// A number from 1 to `last`.
    fn pick(&mut self, last: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % last + 1
    }
}

/// Words for `ip`. Some do not fit the state of the namespace, and the kernel refuses them.
fn words(rng: &mut Rng) -> String {
    let (link, id) = (rng.pick(3), rng.pick(4));
    let state = if rng.pick(4) == 1 { "down" } else { "up" };
    match rng.pick(20) {
        1 | 2 => format!("link set v{link} {state}"),
        3 | 4 => format!("link set p{link} {state}"),
        5 => format!("address replace 10.0.{link}.1/24 dev v{link}"),
        6 => format!("address del 10.0.{link}.1/24 dev v{link}"),
        7 => format!("address add 2001:db8:{link}::1/64 dev v{link} nodad"),
        8 => format!("nexthop replace id {id} via 10.0.{link}.{} dev v{link} onlink", rng.pick(3) + 1),
        9 => format!("nexthop replace id 1{link} group {id}/{},{}", rng.pick(4) % 4 + 1, rng.pick(2)),
        10 => format!("nexthop del id {id}"),
        11 => format!("neighbour replace 10.0.{link}.{} lladdr 02:00:00:00:00:0{id} dev v{link}", rng.pick(3) + 1),
        12..=17 => add_route(rng),
        18 => format!("route del 10.{id}.0.0/16"),
        19 => format!("-6 route del 2001:db8:{id}00::/48 via fe80::2 dev v{link}"),
        _ => format!("-6 route del 2001:db8:{id}00::/48"),
    }
}

fn add_route(rng: &mut Rng) -> String {
    let mode = ["add", "append", "prepend", "replace"][usize::try_from(rng.pick(4) - 1).expect("below 4")];
    let (id, metric) = (rng.pick(4), rng.pick(2));
    let is_ipv6 = rng.pick(2) == 1;
    let mut words = if is_ipv6 {
        format!("-6 route {mode} 2001:db8:{id}00::/48 metric {metric}")
    } else {
        format!("route {mode} 10.{id}.0.0/16 metric {metric}")
    };
    let hops = rng.pick(4);
    if hops == 4 {
        let object = if rng.pick(2) == 1 { rng.pick(4) } else { 10 + rng.pick(3) };
        write!(words, " nhid {object}").expect("a string takes it");
        return words;
    }
    for _ in 0..hops {
        let link = rng.pick(3);
        let via = match is_ipv6 || rng.pick(4) == 1 {
            true if is_ipv6 => "via fe80::2".to_owned(),
            true => "via inet6 fe80::2".to_owned(),
            false => format!("via 10.0.{link}.{}", rng.pick(3) + 1),
        };
        let nexthop = if hops > 1 { "nexthop " } else { "" };
        write!(words, " {nexthop}{via} dev v{link} onlink").expect("a string takes it");
    }
    words
}

#[test]
fn mirror_follows_random_changes_without_dumps() {
    if !machine_is_ready() {
        return;
    }
    let changes = std::env::var("HOLDFAST_NETLINK_CHANGES").map_or(CHANGES, |text| text.parse().expect("a number"));
    let seed = std::env::var("HOLDFAST_NETLINK_SEED").map_or(0x5eed, |text| text.parse().expect("a number"));
    let mut rig = Rig::new(3, without_dumps());
    let (mut rng, mut done) = (Rng(seed), Vec::new());
    for _ in 0..changes {
        let words = words(&mut rng);
        let is_done = rig.try_ip(&words).is_ok();
        done.push(format!("{}ip {words}", if is_done { "" } else { "refused: " }));
        let agreed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rig.agree()));
        if let Err(panic) = agreed {
            eprintln!("after\n{}", done.join("\n"));
            std::panic::resume_unwind(panic);
        }
    }
    let refused = done.iter().filter(|line| line.starts_with("refused")).count();
    assert!(refused < done.len() * 2 / 3, "{refused} refused:\n{}", done.join("\n"));
    assert_eq!((rig.counters.dumps, rig.counters.malformed, rig.counters.overruns), (1, 0, 0));
}
