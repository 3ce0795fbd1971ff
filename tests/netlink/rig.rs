//! A namespace with links, and a watcher of it.

use std::process::Command;
use std::time::{Duration, Instant};

use holdfast::netlink::{Batch, Counters, Namespace as Watched, Options, Watcher};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use crate::kernel_view::View;
use crate::namespace::{Namespace, unique_prefix};

/// Longest time in which the mirror must agree with the kernel.
const PATIENCE: Duration = Duration::from_secs(20);

/// Dumps only at the start: the mirror has to follow by events and rules.
pub const NO_DUMPS: Duration = Duration::from_secs(3600);

/// Whether namespaces can be made here. If not, prints the reason; with `CI=true` it panics.
pub fn machine_is_ready() -> bool {
    let works = |program: &str, words: &[&str]| {
        Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
    };
    let missing = if !works("unshare", &["--net", "true"]) {
        "network namespaces need root, CAP_SYS_ADMIN and util-linux"
    } else if !works("ip", &["-V"]) {
        "there is no `ip`; install iproute2"
    } else if !works("nsenter", &["--version"]) {
        "there is no `nsenter`; install util-linux"
    } else {
        return true;
    };
    let ci = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
    assert!(!ci, "a test of netlink cannot run here: {missing}");
    eprintln!("SKIPPED: a test of netlink cannot run here: {missing}");
    false
}

/// A namespace with the pairs v1-p1, v2-p2 and so on, and its watcher.
pub struct Rig {
    _watcher: Watcher,
    pub receiver: Receiver<Batch>,
    pub view: View,
    pub counters: Counters,
    /// Differences that the watcher has sent.
    pub changes: usize,
    pub is_synced: bool,
    /// Reasons of failed dumps. They are mistakes, except beside a full receive buffer.
    pub failures: Vec<String>,
    pub inside: Namespace,
    /// Name below /run/netns.
    pub name: String,
}

impl Rig {
    /// Starts with `pairs` pairs of links, all up, whose first ends have an IPv4 address: 10.0.N.1/24.
    #[track_caller]
    pub fn new(pairs: u32, options: Options) -> Self {
        let name = unique_prefix();
        let inside = Namespace::new(name.clone());
        for pair in 1..=pairs {
            let (first, second) = (format!("v{pair}"), format!("p{pair}"));
            inside.run(&["ip", "link", "add", &first, "type", "veth", "peer", "name", &second]);
            inside.run(&["ip", "link", "set", &first, "up"]);
            inside.run(&["ip", "link", "set", &second, "up"]);
            inside.run(&["ip", "address", "add", &format!("10.0.{pair}.1/24"), "dev", &first]);
        }
        let namespace = Watched::open(&name).expect("the namespace was just made");
        let (watcher, receiver) = Watcher::start(&namespace, options).expect("a watcher");
        let (view, counters) = (View::default(), Counters::default());
        let mut rig = Self {
            _watcher: watcher,
            receiver,
            view,
            counters,
            changes: 0,
            is_synced: false,
            failures: Vec::new(),
            inside,
            name,
        };
        rig.agree();
        assert!(rig.is_synced);
        rig
    }

    /// Runs `ip` with these words. Panics if it fails.
    #[track_caller]
    pub fn ip(&self, words: &str) {
        self.try_ip(words).unwrap_or_else(|error| panic!("ip {words}: {error}"));
    }

    /// Runs `ip` with these words.
    pub fn try_ip(&self, words: &str) -> Result<String, String> {
        let words: Vec<&str> = std::iter::once("ip").chain(words.split_whitespace()).collect();
        self.inside.try_run(&words)
    }

    /// Whether the kernel has next-hop objects. If not, prints that.
    pub fn has_objects(&self) -> bool {
        let has_objects = self.try_ip("nexthop show").is_ok();
        if !has_objects {
            eprintln!("SKIPPED: this kernel has no next-hop objects");
        }
        has_objects
    }

    /// Applies the batches that have arrived.
    pub fn receive(&mut self) {
        loop {
            match self.receiver.try_recv() {
                Ok(batch) => {
                    self.failures.extend(batch.failure);
                    self.changes += batch.changes.len();
                    self.view.apply(batch.changes);
                    (self.counters, self.is_synced) = (batch.counters, batch.is_synced);
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => panic!("the watcher has ended"),
            }
        }
    }

    /// Waits until the mirror has the kernel's tables.
    #[track_caller]
    pub fn agree(&mut self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let kernel = View::read(&self.inside);
            self.receive();
            if self.view == kernel {
                return;
            }
            assert!(Instant::now() < end, "- mirror, + kernel:\n{}", self.view.difference(&kernel));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the mirror satisfies a condition.
    #[track_caller]
    pub fn wait(&mut self, what: &str, is_met: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        self.receive();
        while !is_met(self) {
            assert!(Instant::now() < end, "no {what}: {:#?} {:?}", self.view, self.counters);
            std::thread::sleep(Duration::from_millis(1));
            self.receive();
        }
    }

    /// Next hops of a prefix as `gateway%name*weight`; none if there is no route.
    pub fn hops(&self, prefix: &str) -> Option<String> {
        let (kind, hops) = self.view.routes.get(&prefix.parse().expect("a prefix"))?;
        let hops: Vec<String> = hops
            .iter()
            .map(|hop| {
                let gateway = hop.gateway.map_or("on-link".to_owned(), |gateway| gateway.to_string());
                format!("{gateway}%{}*{}", self.view.links[&hop.index].name, hop.weight)
            })
            .collect();
        Some(if hops.is_empty() { format!("{kind:?}") } else { hops.join(" ") })
    }

    /// Waits until the next hops of a prefix are these; none: until there is no route.
    #[track_caller]
    pub fn expect_hops(&mut self, prefix: &str, hops: Option<&str>) {
        self.wait(&format!("{hops:?} for {prefix}"), |rig| rig.hops(prefix).as_deref() == hops);
    }
}
