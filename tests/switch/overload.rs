//! More traffic than one core can switch, for real: hosts on an lcore of their own send into a switch whose core has most
//! of its time taken away, a millisecond at a time, by a thread of higher priority.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::launch::run;
use crate::process::{Process, wait_for};
use crate::program::{Config, PATIENCE, report};

/// Of each millisecond or so, what is left to the switch is little more than a twentieth.
const TAKEN: Duration = Duration::from_micros(900);
const LEFT: Duration = Duration::from_micros(20);

/// Frames that a receive ring holds, and how long these last at the rate of a host, 80 Mb/s of 88 B, with some to spare:
/// the kernel takes 50 ms of each second from threads of high priority.
const RING: u32 = 16_384;
const COVERED_NS: u64 = 100_000_000;

/// Takes time from whatever else is on a CPU.
struct Thief {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Thief {
    /// None where this user may not have such priority.
    fn on(cpu: usize) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (tell, told)) = (stop.clone(), std::sync::mpsc::channel());
        let thread = spawn(move || {
            let thread = std::fs::read_link("/proc/thread-self").expect("proc");
            let number = thread.file_name().expect("a thread's number").to_string_lossy().into_owned();
            let did = |program: &str, args: [&str; 3]| {
                Command::new(program).args(args).arg(&number).output().is_ok_and(|output| output.status.success())
            };
            let able = did("taskset", ["-c", "-p", &cpu.to_string()]) && did("chrt", ["-f", "-p", "2"]);
            tell.send(able).expect("somebody who waits");
            while able && !stopped.load(Ordering::Relaxed) {
                let start = Instant::now();
                while start.elapsed() < TAKEN {
                    std::hint::spin_loop();
                }
                sleep(LEFT);
            }
        });
        let thief = Self { stop, thread: Some(thread) };
        told.recv().expect("an answer").then_some(thief)
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Four hosts in a ring, each sending frames of 64 B in class 3 to the next.
fn round(switch: usize, hosts: usize, backlog_xoff: &str) -> Config {
    let lcores = format!("{{dataplane: {switch}, hosts: {hosts}, backlog_xoff: {backlog_xoff}}}");
    let mut yaml = format!("preset: roce\nbuffer: {{size: 64MiB}}\nlcores: {lcores}\nports:\n");
    (0..4).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 10G, rx_descriptors: {RING}}}\n"));
    yaml += "hosts:\n";
    for n in 0..4 {
        let flow = format!("{{to: h{}, kind: udp, dscp: 26, ecn: true, frame: 64, rate: 80M}}", (n + 1) % 4);
        yaml += &format!("  - {{name: h{n}, port: p{n}, flows: [{flow}]}}\n");
    }
    Config::new(&yaml)
}

fn overload(backlog_xoff: &str) -> Option<Value> {
    let cpus = cpus();
    let [hosts, .., switch] = cpus[..] else {
        eprintln!("skipped: hosts and switch need a CPU each");
        return None;
    };
    let Some(_thief) = Thief::on(switch) else {
        eprintln!("skipped: no right to take time from a CPU");
        return None;
    };
    let config = round(switch, hosts, backlog_xoff);
    let process = Process::spawn(run(&[&config.path(), "--duration", "4s", "--json", "--metrics", "off"]));
    prefer(process.pid(), switch);
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    let flows: Vec<_> =
        report["flows"].as_array()?.iter().map(|flow| [&flow["sent_frames"], &flow["lost_frames"]]).collect();
    eprintln!("rule {backlog_xoff}: sent and lost {flows:?}, longest poll gap {} ms", longest_gap(&report) / 1_000_000);
    Some(report)
}

/// Whatever else wants the CPU waits for the switch's lcore, which waits for the thief alone.
fn prefer(pid: u32, cpu: usize) {
    let tasks = format!("/proc/{pid}/task");
    let number = wait_for("lcore on its CPU", PATIENCE, || {
        let mut tasks = std::fs::read_dir(&tasks).ok()?.flatten();
        let task = tasks.find(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            status.contains(&format!("Cpus_allowed_list:\t{cpu}\n"))
        });
        task.map(|task| task.file_name().to_string_lossy().into_owned())
    });
    let preferred = Command::new("chrt").args(["-f", "-p", "1", &number]).status();
    assert!(preferred.is_ok_and(|status| status.success()), "who may be a thief may do that too");
}

/// CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list of CPUs");
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<usize>().expect("a CPU")..=last.parse().expect("a CPU")
    };
    list.trim().split(',').flat_map(range).collect()
}

fn missed(report: &Value) -> u64 {
    let ports = report["ports"].as_array().expect("ports").iter();
    ports.map(|port| port["receive_missed_frames"].as_u64().expect("a count")).sum()
}

fn longest_gap(report: &Value) -> u64 {
    let lcores = report["lcores"].as_array().expect("lcores").iter();
    lcores.map(|lcore| lcore["gap_highest_ns"].as_u64().expect("a time")).max().expect("an lcore")
}

/// A stall of the machine that is longer than the ring proves nothing, so it is tried again.
#[test]
fn a_core_with_more_than_it_can_switch_keeps_every_frame() {
    for _ in 0..3 {
        let Some(report) = overload("on") else { return };
        let xoffs = |port: &Value| port["backlog_xoffs"].as_u64().expect("a count");
        assert!(report["ports"].as_array().expect("ports").iter().map(xoffs).sum::<u64>() > 0);
        if longest_gap(&report) < COVERED_NS || missed(&report) == 0 {
            assert_eq!((missed(&report), &report["verdict"]["outcome"]), (0, &"kept".into()), "{}", report["verdict"]);
            return;
        }
    }
    eprintln!("skipped: this machine stalls its CPUs for longer than receive rings last");
}

#[test]
fn without_the_backlog_rule_it_loses_and_says_so() {
    let Some(report) = overload("off") else { return };
    assert!(missed(&report) > 0);
    assert_eq!(report["verdict"]["outcome"], "broken");
    let causes = report["verdict"]["causes"].as_array().expect("causes");
    assert!(causes.iter().any(|cause| cause["cause"] == "receive_ring"), "{causes:?}");
}
