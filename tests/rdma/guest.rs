//! A virtual machine with soft-RoCE whose network card is a port of the switch. docs/guests.md explains the options of
//! QEMU and of Linux.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::Agent;
use crate::boot::kernel_words;
use crate::image::Image;
use crate::process::{Process, mortal, wait_for};

/// Longest time for a guest to start, or for a command, on a busy machine without KVM.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Directory of the counters of soft-RoCE.
const COUNTERS: &str = "/sys/class/infiniband/rxe0/ports/1/hw_counters";

/// Offloads that Linux would use with software switches. Without them frames are as the guest's applications sent them.
const PLAIN: &str = "csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_ecn=off,\
                     host_tso4=off,host_tso6=off,host_ufo=off,host_ecn=off,mrg_rxbuf=off";

/// A running guest, which ends with this value.
pub struct Guest {
    number: usize,
    qemu: Process,
    agent: Agent,
    console: PathBuf,
    monitor: PathBuf,
}

/// A guest that starts.
pub struct Starting {
    number: usize,
    qemu: Process,
    directory: PathBuf,
}

impl Starting {
    /// Starts guest `number`, from 1, whose network card connects to the socket `vm<number>` in `directory`.
    #[track_caller]
    pub fn new(image: &Image, number: usize, directory: &Path) -> Self {
        Self::with_cards(image, number, directory, &[format!("vm{number}")])
    }

    /// Starts a guest with a network card for each of the `sockets` in `directory`.
    #[track_caller]
    pub fn with_cards(image: &Image, number: usize, directory: &Path, sockets: &[String]) -> Self {
        // The switch must forward what the guests send, also where two CPUs are all that there is.
        let mut command = mortal("nice");
        command.args(["-n", "3", "qemu-system-x86_64"]).args(arguments(image, number, directory, sockets));
        Self { number, qemu: Process::spawn(command), directory: directory.to_owned() }
    }

    /// Waits until the guest takes commands.
    #[track_caller]
    pub fn wait(mut self) -> Guest {
        let socket = self.directory.join(format!("agent{}", self.number));
        let stream = wait_for("socket of QEMU", PATIENCE, || {
            assert!(self.qemu.is_running(), "QEMU ended: {}", self.qemu.stderr());
            UnixStream::connect(&socket).ok()
        });
        let console = self.directory.join(format!("console{}", self.number));
        let agent = Agent::connect(stream, PATIENCE);
        let agent = agent.unwrap_or_else(|error| panic!("{error}: {} {}", self.qemu.stderr(), last_lines(&console)));
        let monitor = self.directory.join(format!("monitor{}", self.number));
        Guest { number: self.number, qemu: self.qemu, agent, console, monitor }
    }
}

impl Guest {
    /// Returns the guest's IPv4 address.
    pub fn ipv4(&self) -> String {
        format!("10.48.0.{}", self.number)
    }

    /// Takes the cable of network card `card` out, or puts it in again.
    #[track_caller]
    pub fn set_link(&mut self, card: usize, state: &str) {
        let mut monitor = UnixStream::connect(&self.monitor).expect("QEMU's monitor");
        monitor.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut said = String::new();
        let mut read_prompt = |monitor: &mut UnixStream| {
            let mut byte = [0];
            while !said.ends_with("(qemu) ") {
                monitor.read_exact(&mut byte).expect("the prompt of the monitor");
                said.push(byte[0].into());
            }
            said.clear();
        };
        read_prompt(&mut monitor);
        writeln!(monitor, "set_link n{card} {state}").expect("an order to the monitor");
        read_prompt(&mut monitor);
    }

    /// Runs a shell script that must succeed. Returns its output.
    #[track_caller]
    pub fn run(&mut self, script: &str) -> String {
        let (status, output) = self.try_run(script);
        assert_eq!(status, 0, "guest {}: {script}: {output} {}", self.number, last_lines(&self.console));
        output
    }

    /// Runs a shell script. Returns its status and its output.
    #[track_caller]
    pub fn try_run(&mut self, script: &str) -> (i32, String) {
        let answer = self.agent.run(script);
        let (number, console) = (self.number, &self.console);
        answer.unwrap_or_else(|error| panic!("guest {number}: {error}: {} {}", self.qemu.stderr(), last_lines(console)))
    }

    /// Starts a program that goes on while other commands run; `name` is for [`Guest::ended`].
    #[track_caller]
    pub fn start(&mut self, name: &str, program: &str) {
        let background =
            format!("rm -f /tmp/{name}.status\n({program}; echo $? >/tmp/{name}.status) >/tmp/{name} 2>&1 &");
        self.run(&background);
    }

    /// Returns the status and the output of a program that was started, if it has ended.
    #[track_caller]
    pub fn ended(&mut self, name: &str) -> Option<(i32, String)> {
        let (missing, output) = self.try_run(&format!("cat /tmp/{name}.status && cat /tmp/{name}"));
        let (status, output) = if missing == 0 { output.split_once('\n')? } else { return None };
        // The shell creates the file before it writes the status.
        Some((status.parse().ok()?, output.to_owned()))
    }

    /// Waits until the program that was started listens at a TCP port.
    #[track_caller]
    pub fn wait_for_listener(&mut self, port: u16) {
        let listens =
            format!("for i in $(seq 600); do netstat -ltn | grep -q ':{port} ' && exit 0; sleep 0.1; done; exit 1");
        self.run(&listens);
    }

    /// Gives each priority a transmit queue, and RDMA priority 3: soft-RoCE leaves the priority at 0.
    #[track_caller]
    pub fn queue_by_priority(&mut self) {
        let queues: Vec<String> = (0..8).map(|queue| format!("1@{queue}")).collect();
        let queues = queues.join(" ");
        self.run(&format!(
            "set -e
             ethtool -L eth0 combined 8
             /bin/tc qdisc replace dev eth0 root mqprio num_tc 8 map 0 1 2 3 4 5 6 7 queues {queues} hw 0
             /bin/tc qdisc add dev eth0 clsact
             /bin/tc filter add dev eth0 egress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff \
             action skbedit priority 3"
        ));
    }

    /// Returns the counters of soft-RoCE by name.
    #[track_caller]
    pub fn rdma_counters(&mut self) -> BTreeMap<String, u64> {
        let text = self.run(&format!("cd {COUNTERS} && grep . *"));
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
    }

    /// Returns the number of received packets that were marked CE (congestion experienced) on their way.
    #[track_caller]
    pub fn marked_packets(&mut self) -> u64 {
        let text = self.run("grep ^IpExt: /proc/net/netstat");
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let column = rows[0].iter().position(|name| *name == "InCEPkts").expect("a counter of CE");
        rows[1][column].parse().expect("a number")
    }
}

/// Returns the last lines of a file.
fn last_lines(path: &Path) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// Arguments of QEMU. The switch maps the guest's memory, so that it must be shared.
fn arguments(image: &Image, number: usize, directory: &Path, sockets: &[String]) -> Vec<String> {
    let at = |name: &str| directory.join(format!("{name}{number}")).display().to_string();
    // KVM that opens may still hang a guest (nested virtualisation), so that it is used on request only.
    let accelerator = std::env::var("HOLDFAST_GUEST_ACCEL").unwrap_or_else(|_| "tcg".to_owned());
    let pairs = [
        ("-machine", format!("pc,accel={accelerator}")),
        ("-cpu", "max".to_owned()),
        ("-m", "192".to_owned()),
        ("-display", "none".to_owned()),
        ("-object", "memory-backend-memfd,id=mem,size=192M,share=on".to_owned()),
        ("-numa", "node,memdev=mem".to_owned()),
        ("-kernel", image.kernel.display().to_string()),
        ("-initrd", image.files.display().to_string()),
        ("-append", format!("{} guest={number}", kernel_words())),
        ("-serial", format!("file:{}", at("console"))),
        ("-device", "virtio-serial-pci".to_owned()),
        ("-device", "virtserialport,chardev=agent".to_owned()),
        ("-chardev", format!("socket,id=agent,path={},server=on,wait=off", at("agent"))),
        ("-monitor", format!("unix:{},server=on,wait=off", at("monitor"))),
    ];
    let card = |(index, socket): (usize, &String)| {
        let socket = directory.join(socket);
        // LACP of a bond wants to know the speed.
        let options = format!("mq=on,vectors=0,romfile=,mac=02:00:00:00:0{index}:0{number},speed=10000,duplex=full");
        [
            ("-chardev", format!("socket,id=c{index},path={},reconnect=1", socket.display())),
            ("-netdev", format!("vhost-user,id=n{index},chardev=c{index},queues=8")),
            ("-device", format!("virtio-net-pci,netdev=n{index},{options},{PLAIN}")),
        ]
    };
    let pairs = pairs.into_iter().chain(sockets.iter().enumerate().flat_map(card));
    let alone = ["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned);
    alone.into_iter().chain(pairs.flat_map(|(name, value)| [name.to_owned(), value])).collect()
}
