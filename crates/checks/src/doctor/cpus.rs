//! Checks the CPUs of the dataplane and their sources of interruption.

use super::{Cpus, Facts, Finding, KERNEL_LINE, Needs, fix, ranges};

pub fn findings(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let cpus = &facts.cpus;
    let mut all = vec![count(cpus, needs)];
    all.extend(clock(cpus));
    match needs.map(|needs| dataplane(cpus, needs)) {
        None => all.push(isolated(cpus)),
        Some(lcores) => {
            for number in 0..lcores.len() {
                all.extend(lcore(facts, needs, number, &lcores));
            }
            all.extend(shared(cpus, needs, &lcores));
        }
    }
    all.extend(umwait(cpus, needs));
    all
}

/// The CPU of each lcore, as `holdfast run` chooses it: the configured one, or one of the last that the process may
/// use.
fn dataplane(cpus: &Cpus, needs: &Needs) -> Vec<u16> {
    let mut free = cpus.allowed.iter().rev().cycle();
    let chosen = needs.lcores.iter().map(|lcore| (free.next(), lcore.cpu));
    chosen.filter_map(|(free, written)| written.or(free.copied())).collect()
}

fn count(cpus: &Cpus, needs: Option<&Needs>) -> Finding {
    let lcores = needs.map_or(1, |needs| needs.lcores.len().max(1));
    let what = format!("{} of {} may be used: {}", cpus.allowed.len(), cpus.online.len(), ranges(&cpus.allowed));
    if cpus.allowed.len() > lcores {
        return Finding::ok("cpus", what);
    }
    let remedy = "give it more CPUs (taskset, cpuset, CPUAffinity=) or write fewer lcores; otherwise other processes \
                  and the control thread delay polls";
    Finding::warn("cpus", format!("{what}; too few for the dataplane lcores ({lcores}) and other work"), remedy)
}

/// Checks the TSC: all timers and rates are counted in its ticks.
fn clock(cpus: &Cpus) -> Vec<Finding> {
    let place = "clock";
    let missing: Vec<&str> = ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !has(cpus, flag)).collect();
    if cpus.flags.is_empty() {
        return Vec::new();
    }
    if !missing.is_empty() {
        let what = format!(
            "the TSC changes its rate or stops ({} missing): rates and pauses would be wrong",
            missing.join(", ")
        );
        return vec![Finding::warn(
            place,
            what,
            "fix the CPU's frequency and turn off deep idle states in the firmware",
        )];
    }
    let source = cpus.clocksource.as_deref().unwrap_or("not known");
    // Another clock source means that the kernel has found the TSC unreliable.
    if source != "tsc" && source != "kvm-clock" && source != "not known" {
        let what = format!("the TSC is invariant, but the kernel uses {source}");
        return vec![Finding::warn(place, what, "see why in `dmesg | grep -i tsc`")];
    }
    vec![Finding::ok(place, format!("the TSC is invariant, the kernel's clock is {source}"))]
}

fn has(cpus: &Cpus, flag: &str) -> bool {
    cpus.flags.iter().any(|have| have == flag)
}

fn isolated(cpus: &Cpus) -> Finding {
    if !cpus.isolated.is_empty() {
        return Finding::ok(
            "cpus",
            format!("isolated: {}, without tick: {}", ranges(&cpus.isolated), ranges(&cpus.nohz_full)),
        );
    }
    let last = cpus.allowed.last().copied().unwrap_or(1);
    let what = "no CPU is isolated: other processes delay polls, and headroom must cover the delay";
    mended_by_boot("cpus", what, cpus, &[last])
}

/// A finding that one kernel command line for all lcores mends. It includes the CPUs that are isolated already, because
/// a new command line replaces the old one.
fn mended_by_boot(place: &str, what: &str, cpus: &Cpus, lcores: &[u16]) -> Finding {
    let mut wanted = [lcores, &cpus.isolated].concat();
    wanted.sort_unstable();
    wanted.dedup();
    let list = ranges(&wanted);
    let arguments = format!("isolcpus={list} nohz_full={list} rcu_nocbs={list}");
    Finding::warn(place, what, format!("boot with `{arguments}` {KERNEL_LINE}")).fixed_by(fix::boot("cpus", &arguments))
}

fn lcore(facts: &Facts, needs: Option<&Needs>, number: usize, lcores: &[u16]) -> Vec<Finding> {
    let (cpus, cpu) = (&facts.cpus, lcores[number]);
    let place = format!("lcore {number}, CPU {cpu}");
    let mut all = Vec::new();
    if !cpus.allowed.contains(&cpu) {
        let what = format!("this process may not use this CPU, only {}", ranges(&cpus.allowed));
        return vec![Finding::bad(
            place,
            what,
            "write other CPUs in `lcores.dataplane`, or let the process use it (taskset, cpuset, CPUAffinity=)",
        )];
    }
    match (cpus.isolated.contains(&cpu), cpus.nohz_full.contains(&cpu)) {
        (true, true) => all.push(Finding::ok(&place, "isolated, and without tick")),
        (true, false) => {
            let what = "isolated, but the kernel's tick still delays polls";
            all.push(mended_by_boot(&place, what, cpus, lcores));
        }
        (false, _) => {
            let what = "not isolated: other processes delay polls, and headroom must cover the delay";
            all.push(mended_by_boot(&place, what, cpus, lcores));
        }
    }
    if let Some(governor) = cpus.governors.get(&cpu).filter(|governor| *governor != "performance") {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let what = format!("its frequency governor is {governor}: the CPU slows down at low load");
        let fix = fix::setting(&format!("cpu{cpu}"), &file, "performance");
        all.push(Finding::warn(&place, what, format!("`echo performance > {file}`, as root")).fixed_by(fix));
    }
    all.extend(far_nics(facts, needs, number, cpu));
    all
}

/// Warns of NICs of this lcore on another NUMA node.
fn far_nics(facts: &Facts, needs: Option<&Needs>, number: usize, cpu: u16) -> Vec<Finding> {
    let cpus = &facts.cpus;
    let Some(own) = cpus.nodes.get(&cpu) else { return Vec::new() };
    let devices = needs.into_iter().flat_map(|needs| &needs.devices).filter(|device| device.lcore == number);
    let far = devices.filter_map(|device| {
        let nic = facts.nics.iter().find(|nic| Some(&nic.address) == device.pci().as_ref())?;
        let node = nic.node.filter(|node| node != own)?;
        let near: Vec<u16> = cpus.allowed.iter().copied().filter(|cpu| cpus.nodes.get(cpu) == Some(&node)).collect();
        let what =
            format!("on node {node}, polled by lcore {number} on node {own}: each frame crosses between the nodes");
        let remedy = format!("choose its CPU in `lcores.dataplane` from {}", ranges(&near));
        Some(Finding::warn(format!("port {}", device.port), what, remedy))
    });
    far.collect()
}

/// Warns of lcores that share a CPU or a core, or a CPU with the control thread.
fn shared(cpus: &Cpus, needs: Option<&Needs>, lcores: &[u16]) -> Vec<Finding> {
    let mut all = Vec::new();
    for (number, cpu) in lcores.iter().enumerate() {
        let place = format!("lcore {number}, CPU {cpu}");
        if let Some(other) = lcores[..number].iter().position(|other| other == cpu) {
            let what = format!("lcore {other} has the same CPU: each waits milliseconds for the other");
            all.push(Finding::warn(place, what, "write fewer lcores, or another CPU"));
            continue;
        }
        let core = |cpu: &u16| cpus.cores.get(cpu).copied();
        if let Some(other) = lcores[..number].iter().position(|other| core(other).is_some() && core(other) == core(cpu))
        {
            let what = format!("shares its physical core with lcore {other}: both are slower");
            all.push(Finding::warn(place.clone(), what, "choose CPUs of different cores (`lscpu -e`)"));
        }
        if needs.and_then(|needs| needs.control) == Some(*cpu) {
            all.push(Finding::warn(place, "the control thread has the same CPU", "write another `lcores.control`"));
        }
    }
    all
}

fn umwait(cpus: &Cpus, needs: Option<&Needs>) -> Option<Finding> {
    let wanted = needs.is_some_and(|needs| needs.lcores.iter().any(|lcore| lcore.umwait));
    match (has(cpus, "waitpkg"), wanted) {
        (true, _) => Some(Finding::ok("umwait", "the CPU supports it (WAITPKG)")),
        (false, true) => {
            let what = "the CPU has no WAITPKG, but `lcores.idle` needs it";
            Some(Finding::bad("umwait", what, "write `wait: pause` or `wait: sleep`"))
        }
        (false, false) => None,
    }
}
