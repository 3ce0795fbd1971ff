//! Measures the forwarding table in DPDK: the time to fill and to change it, its memory, and the cycles of a look-up.
//!
//! Prefixes are a realistic mix. Destinations are random addresses of random prefixes, 64 in a burst. DPDK has ordinary
//! pages, or hugepages with `--huge`.
//!
//! `cargo bench --bench fib [-- --quick] [--huge]`.

#[path = "../crates/dpdk/src/dpdk/fib/tests/mix.rs"]
mod mix;

use std::collections::HashSet;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use holdfast::dpdk::{self, Eal, EalOptions, Memory, RteFib};
use holdfast::route::{Fib, FibSize, FibWriter, FoundGroup, GroupId};
use holdfast::sets::BURST;
use holdfast::sim::rng::Rng;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Tables that look-ups are measured in. The last one is also filled and changed with a clock.
const SIZES: [FibSize; 3] = [
    FibSize { ipv4: 1_000, ipv6: 1_000 },
    FibSize { ipv4: 10_000, ipv6: 10_000 },
    FibSize { ipv4: 1_000_000, ipv6: 200_000 },
];
/// Prefixes that are set anew in a full table.
const CHANGES: usize = 100_000;
/// Destinations of look-ups: more than the caches hold entries of.
const DESTINATIONS: usize = 1 << 18;
/// Rounds over all destinations.
const ROUNDS: usize = 21;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let sizes = if has("--quick") { &SIZES[..2] } else { &SIZES[..] };
    // A switch has two tables.
    let mib = sizes.iter().map(|&size| 2 * RteFib::mib(size) + 16).max().unwrap_or(0);
    let memory = if has("--huge") { Memory::Huge { mib: Some(mib) } } else { Memory::NoHuge { mib } };
    let eal = Eal::init(&EalOptions { memory, ..EalOptions::default() }).map_err(|error| error.to_string())?;
    println!("cycles of a look-up, {BURST} in a burst, {DESTINATIONS} random destinations; median and lowest round");
    println!("{:>10} {:>14} {:>10} {:>14}", "IPv4", "", "IPv6", "");
    let mut prefixes = Prefixes::default();
    for &size in sizes {
        prefixes = Prefixes::draw(size);
        let fib = RteFib::create(&eal, "one", size).map_err(|error| error.to_string())?;
        prefixes.set_all(&fib, GroupId(5))?;
        let ((usual4, best4), (usual6, best6)) = look_up(&fib, &prefixes);
        println!("{:>10} {usual4:>7.1} {best4:>6.1} {:>10} {usual6:>7.1} {best6:>6.1}", size.ipv4, size.ipv6);
    }
    let &size = sizes.last().ok_or("no size")?;
    let start = Instant::now();
    let create = |name| RteFib::create(&eal, name, size).map_err(|error| error.to_string());
    let tables = [create("one")?, create("two")?];
    println!("\nboth tables of a switch: {} MiB, created in {:.2?}", 2 * RteFib::mib(size), start.elapsed());
    for family in [&prefixes.v4, &prefixes.v6] {
        change(&tables, family)?;
    }
    Ok(())
}

/// Prefixes without repetition, by family.
#[derive(Default)]
struct Prefixes {
    v4: Vec<IpNet>,
    v6: Vec<IpNet>,
}

impl Prefixes {
    fn draw(size: FibSize) -> Self {
        let mut rng = Rng::new(1, 0);
        let mut below = |bound| rng.below(bound);
        let v4 = distinct(size.ipv4, || mix::v4(&mut below).into());
        let providers = u64::from(size.ipv6 / 8).max(1);
        let v6 = distinct(size.ipv6, || mix::v6(providers, &mut below).into());
        Self { v4, v6 }
    }

    fn set_all(&self, fib: &RteFib, group: GroupId) -> Result<(), String> {
        self.v4.iter().chain(&self.v6).try_for_each(|&prefix| set(fib, prefix, group))
    }
}

fn distinct(count: u32, mut draw: impl FnMut() -> IpNet) -> Vec<IpNet> {
    let mut seen = HashSet::new();
    let mut drawn = Vec::new();
    while drawn.len() < count as usize {
        let prefix = draw();
        if seen.insert(prefix) {
            drawn.push(prefix);
        }
    }
    drawn
}

fn set(fib: &RteFib, prefix: IpNet, group: GroupId) -> Result<(), String> {
    fib.set(prefix, group).map_err(|error| error.to_string())
}

/// Fills both tables with the prefixes of a family, changes some, and prints the times.
fn change(tables: &[RteFib; 2], prefixes: &[IpNet]) -> Result<(), String> {
    let is_v4 = matches!(prefixes.first(), Some(IpNet::V4(_)));
    let default: IpNet = if is_v4 { Ipv4Net::default().into() } else { Ipv6Net::default().into() };
    println!("{} prefixes, {} of them in both tables", if is_v4 { "IPv4" } else { "IPv6" }, prefixes.len());
    let report = |what: &str, count: usize, time: Duration| {
        let each = time.as_secs_f64() * 1e6 / count as f64;
        println!("  {what:<34} {:>8.3} s {each:>12.2} us each", time.as_secs_f64());
    };
    let start = Instant::now();
    tables.iter().try_for_each(|fib| prefixes.iter().try_for_each(|&prefix| set(fib, prefix, GroupId(5))))?;
    report("fill both", 2 * prefixes.len(), start.elapsed());
    let changed = &prefixes[..CHANGES.min(prefixes.len())];
    let start = Instant::now();
    changed.iter().try_for_each(|&prefix| set(&tables[0], prefix, GroupId(6)))?;
    report("another group, in a full table", changed.len(), start.elapsed());
    // The table is full without the default route.
    tables[0].remove(prefixes[0]);
    for (what, group) in [("set the default route", 7), ("change the default route", 8)] {
        let start = Instant::now();
        set(&tables[0], default, GroupId(group))?;
        report(what, 1, start.elapsed());
    }
    let start = Instant::now();
    tables[0].remove(default);
    report("remove the default route", 1, start.elapsed());
    let start = Instant::now();
    prefixes.iter().for_each(|&prefix| tables[0].remove(prefix));
    report("remove all", prefixes.len(), start.elapsed());
    Ok(())
}

/// Returns the cycles of an IPv4 and of an IPv6 look-up, each as median and lowest of the rounds.
fn look_up(fib: &dyn Fib, prefixes: &Prefixes) -> ((f64, f64), (f64, f64)) {
    let mut rng = Rng::new(2, 0);
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for _ in 0..DESTINATIONS {
        if let IpNet::V4(prefix) = rng.pick(&prefixes.v4) {
            v4.push(prefix.network().to_bits() | (rng.next() as u32 & prefix.hostmask().to_bits()));
        }
        if let IpNet::V6(prefix) = rng.pick(&prefixes.v6) {
            let host = u128::from(rng.next()) << 64 | u128::from(rng.next());
            v6.push((prefix.network().to_bits() | (host & prefix.hostmask().to_bits())).to_be_bytes());
        }
    }
    let v4 = cycles(&v4, |burst, groups| fib.lookup_v4(burst, groups));
    let v6 = cycles(&v6, |burst, groups| fib.lookup_v6(burst, groups));
    (v4, v6)
}

fn cycles<T>(addresses: &[T], look_up: impl Fn(&[T], &mut [FoundGroup])) -> (f64, f64) {
    let mut groups = [FoundGroup::default(); BURST];
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = dpdk::now();
            for burst in addresses.chunks(BURST) {
                look_up(burst, &mut groups);
                black_box(&groups);
            }
            dpdk::now().since(start) as f64 / addresses.len() as f64
        })
        .collect();
    rounds.sort_unstable_by(f64::total_cmp);
    (rounds[ROUNDS / 2], rounds[0])
}
