//! A switch in a guest, on three NICs of one model, and the far ends of their wires in this process.

use std::thread::sleep;
use std::time::{Duration, Instant};

use holdfast::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec, Hosts};
use holdfast::io::{Burst, Ports};
use holdfast::units::{BitRate, Ticks};
use holdfast::wire::MacAddr;
use serde_json::Value;

use crate::guest::{Guest, Machine, PATIENCE, mac};
use crate::nic::{Access, Nic};
use crate::wire::Wires;

/// NICs of the guest, each a port of the switch.
pub const PORTS: usize = 3;
/// VLAN of tagged flows.
pub const VLAN: u16 = 10;
/// Ticks per second of the virtual hosts' clock.
const HZ: u64 = 1_000_000_000;
/// Rate of each port. So slow that a pause of 65,535 quanta lasts for 3.4 s: longer than a guest is without a CPU.
const RATE: BitRate = BitRate(10_000_000);
/// Sleep between two looks at the wires.
const SLEEP: Duration = Duration::from_micros(500);
/// Time between two polls of the virtual hosts on their clock: a third of that of a frame of 1000 bytes.
const POLL: u64 = 250_000;
/// Time that the virtual hosts catch up with after a late look. Without it they would send less than their links carry.
const CATCH_UP: u64 = 20_000_000;

/// Longest time for virtual hosts to see something.
const LONGEST_WAIT: Duration = Duration::from_secs(40);

/// The switch and its surroundings.
pub struct Bench {
    /// The guest.
    pub guest: Guest,
    /// The wires of its NICs.
    pub wires: Wires,
    /// Their model.
    pub nic: Nic,
    access: Access,
    clock: Instant,
    /// Time of the virtual hosts' last poll.
    polled: u64,
}

impl Bench {
    /// Starts a guest with NICs of this model, and gives them to the driver.
    #[track_caller]
    pub fn start(nic: Nic, access: Access) -> Self {
        let words = "intel_iommu=on".to_owned();
        let machine = Machine { nic, nics: PORTS, iommu: access.needs_iommu(), words, more: Vec::new() };
        let mut guest = Guest::start(&machine);
        let wires = Wires::of(&guest, PORTS);
        guest.run("echo 220 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
        guest.run("modprobe vfio_iommu_type1; modprobe vfio_pci; modprobe uio_pci_generic");
        let configuration = configuration(nic);
        guest.run(&format!("cat > /etc/switch.yaml <<'END'\n{configuration}END\n"));
        let mut bench = Self { guest, wires, nic, access, clock: Instant::now(), polled: 0 };
        bench.bind(access.driver());
        bench
    }

    /// Gives all NICs to the kernel driver `driver`, as an operator would by sysfs.
    #[track_caller]
    pub fn bind(&mut self, driver: &str) {
        (0..PORTS).for_each(|number| self.bind_one(number, driver));
    }

    fn bind_one(&mut self, number: usize, driver: &str) {
        let address = self.nic.address(number);
        let device = format!("/sys/bus/pci/devices/{address}");
        self.guest.run(&format!(
            "set -e\n[ ! -e {device}/driver ] || echo {address} > {device}/driver/unbind\n\
             echo {driver} > {device}/driver_override\necho {address} > /sys/bus/pci/drivers_probe"
        ));
        let bound = self.guest.run(&format!("basename $(readlink {device}/driver)"));
        assert_eq!(bound.trim(), driver, "driver of {address}");
    }

    /// Lets the kernel's own driver have NIC `number`, and takes it back.
    #[track_caller]
    pub fn rebind_one(&mut self, number: usize) {
        self.guest.run(&format!("modprobe {}", self.nic.kernel_driver()));
        self.bind_one(number, self.nic.kernel_driver());
        self.bind_one(number, self.access.driver());
    }

    /// Lets the kernel's own driver have the NICs, and takes them back.
    #[track_caller]
    pub fn rebind(&mut self) {
        self.guest.run(&format!("modprobe {}", self.nic.kernel_driver()));
        self.bind(self.nic.kernel_driver());
        self.bind(self.access.driver());
    }

    /// Starts the switch, and waits for the links of all ports.
    #[track_caller]
    pub fn start_switch(&mut self) {
        self.guest.run("holdfast run /etc/switch.yaml --duration 0 --json >/tmp/report 2>/tmp/log &");
        let end = Instant::now() + PATIENCE;
        while self.guest.try_run("[ -S /run/holdfast/holdfast.sock ] && holdfast show version").0 != 0 {
            let log = self.guest.run("cat /tmp/log; pidof holdfast || echo 'the switch ended'");
            assert!(Instant::now() < end && !log.contains("the switch ended"), "no switch: {log}");
            sleep(Duration::from_millis(100));
        }
        self.wait_for_ports("links up", |port| port["link_up"] == true);
    }

    /// Reloads the configuration after the script `edit` of sed, which applies to the line of port `number`.
    #[track_caller]
    pub fn reload(&mut self, number: usize, edit: &str) {
        self.guest.run(&format!("sed -i '/name: p{number},/{edit}' /etc/switch.yaml"));
        let (status, said) = self.guest.try_run("holdfast reload");
        assert_eq!(status, 0, "{said} {}", self.log());
    }

    /// Kills the switch without notice.
    #[track_caller]
    pub fn kill_switch(&mut self) {
        self.guest.run("kill -9 $(pidof holdfast); while pidof holdfast >/dev/null; do sleep 0.05; done");
    }

    /// Ends the switch. Returns its report.
    #[track_caller]
    pub fn stop_switch(&mut self) -> Value {
        self.guest.run("kill -TERM $(pidof holdfast); while pidof holdfast >/dev/null; do sleep 0.05; done");
        let report = self.guest.run("cat /tmp/report");
        serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report} {}", self.log()))
    }

    /// Standard error of the switch so far.
    pub fn log(&mut self) -> String {
        self.guest.run("cat /tmp/log")
    }

    /// Output of `holdfast show` about a subject. A running switch may answer late, when its control thread has no CPU.
    #[track_caller]
    fn show(&mut self, subject: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let (status, shown) = self.guest.try_run(&format!("holdfast show {subject} --json"));
            if status == 0 {
                return serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
            }
            if self.guest.try_run("pidof holdfast").0 != 0 || Instant::now() > end {
                let kernel = self.guest.run("pidof holdfast || echo 'the switch ended'; dmesg | tail -n 20");
                panic!("{shown}\n{}\n{kernel}", self.log());
            }
            eprintln!("holdfast show {subject}: {shown}");
        }
    }

    /// The state of the ports, as the switch shows it.
    #[track_caller]
    pub fn ports(&mut self) -> Vec<Value> {
        let shown = self.show("ports");
        shown["ports"].as_array().expect("ports").clone()
    }

    /// Waits until each port is as wanted.
    #[track_caller]
    pub fn wait_for_ports(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let ports = self.ports();
            if ports.iter().all(&wanted) {
                return;
            }
            assert!(Instant::now() < end, "no {what} within {PATIENCE:?}: {ports:?} {}", self.log());
            sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the switch has learned `stations` addresses, while `hosts` announce themselves.
    #[track_caller]
    fn wait_for_stations(&mut self, hosts: &mut Hosts, stations: usize) {
        let end = Instant::now() + PATIENCE;
        loop {
            let soon = Instant::now() + Duration::from_millis(200);
            self.drive("announcements", hosts, |_, _| Instant::now() > soon);
            let shown = self.show("fdb").to_string();
            let known = shown.matches("\"mac\":\"02:00:00:00:02:").count();
            if known >= stations {
                return;
            }
            assert!(Instant::now() < end, "{known} of {stations} stations are known: {shown} {}", self.log());
        }
    }

    /// Virtual hosts that know each other and whose flows begin now. Host n is behind NIC n.
    #[track_caller]
    pub fn hosts(&mut self, flows: &[(usize, FlowSpec)], obeys_pfc: bool) -> Hosts {
        let host = |number| HostSpec {
            name: format!("h{number}"),
            port: number,
            mac: host_mac(number),
            ip: host_ip(number),
            rate: RATE,
            obeys_pfc,
            queues: 1,
            keeps_frames: false,
            flows: flows.iter().filter(|(from, _)| *from == number).map(|(_, flow)| flow.clone()).collect(),
        };
        let specs: Vec<_> = (0..PORTS).map(host).collect();
        let mut hosts = Hosts::new(&specs, HZ);
        let gate = hosts.close_gate();
        self.wires.forget();
        self.wait_for_stations(&mut hosts, PORTS);
        drop(gate);
        hosts
    }

    /// Polls `hosts` until `done`, or panics.
    #[track_caller]
    pub fn drive(&mut self, what: &str, hosts: &mut Hosts, mut done: impl FnMut(&Hosts, &Wires) -> bool) {
        let end = Instant::now() + LONGEST_WAIT;
        while !done(hosts, &self.wires) {
            let now = u64::try_from(self.clock.elapsed().as_nanos()).expect("a time");
            self.polled = self.polled.max(now.saturating_sub(CATCH_UP));
            while self.polled + POLL <= now {
                self.polled += POLL;
                hosts.poll(&mut self.wires, Ticks(self.polled));
            }
            if Instant::now() > end {
                let ports = self.guest.run("holdfast show ports; holdfast show drops");
                panic!("no {what} within {LONGEST_WAIT:?}: {}\n{}\n{ports}", state(hosts), self.log());
            }
            sleep(SLEEP);
        }
    }

    /// Stops the flows of `hosts`, and checks that each frame has arrived once, intact and in order.
    #[track_caller]
    pub fn finish(&mut self, hosts: &mut Hosts) {
        hosts.stop_sending();
        let counters = hosts.counters();
        let mut arrived = (Instant::now(), u64::MAX);
        self.drive("end of the flows", hosts, |_, _| {
            if counters.missing() != arrived.1 {
                arrived = (Instant::now(), counters.missing());
            }
            arrived.1 == 0 || arrived.0.elapsed() > PATIENCE / 4
        });
        for (number, flow) in counters.flows.iter().enumerate() {
            let wrong = [&flow.late_frames, &flow.duplicate_frames, &flow.corrupt_frames].map(|count| count.get());
            let (sent, missing) = (flow.sent_frames.get(), flow.missing());
            assert!(
                missing == Some(0) && wrong == [0; 3],
                "flow {number}: of {sent} frames {missing:?} are lost, and late, \
                    duplicate and corrupt are {wrong:?}; {:?} {}",
                self.ports(),
                self.log()
            );
        }
    }

    /// Sends a frame into NIC `port` as soon as the wire takes it.
    #[track_caller]
    pub fn send(&mut self, port: usize, frame: &[u8]) {
        let end = Instant::now() + PATIENCE;
        while !self.wires.send(port, frame) {
            assert!(Instant::now() < end, "wire {port} is full for {PATIENCE:?}: {}", self.log());
            sleep(SLEEP);
        }
    }

    /// Receives without virtual hosts until `done`. Returns false if that took too long.
    pub fn listen(&mut self, limit: Duration, mut done: impl FnMut(&Wires) -> bool) -> bool {
        let end = Instant::now() + limit;
        while !done(&self.wires) {
            for port in 0..PORTS {
                let mut burst = Burst::new();
                self.wires.rx(port, burst.capacity(), &mut burst);
            }
            if Instant::now() > end {
                return false;
            }
            sleep(SLEEP);
        }
        true
    }
}

/// The counters of the hosts that explain a failure.
fn state(hosts: &Hosts) -> String {
    let counters = hosts.counters();
    let flow = |(number, flow): (usize, &holdfast::hosts::FlowTally)| {
        format!("flow {number}: {} sent, {} received; ", flow.sent_frames.get(), flow.received_frames.get())
    };
    let host = |host: &holdfast::hosts::HostTally| {
        let paused = host.paused_ticks[3].get() / 1_000_000;
        format!("{}: {} PFC frames, paused for {paused} ms; ", host.name, host.pfc_rx_frames.get())
    };
    counters.flows.iter().enumerate().map(flow).chain(counters.hosts.iter().map(host)).collect()
}

/// Address of virtual host `number`.
pub fn host_mac(number: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 2, number as u8])
}

/// IPv4 address of virtual host `number`.
pub fn host_ip(number: usize) -> std::net::Ipv4Addr {
    [10, 48, 3, number as u8 + 1].into()
}

/// A lossless flow at the rate of its link.
pub fn lossless(to: usize, frame_len: u16, vlan: Option<u16>) -> FlowSpec {
    FlowSpec {
        to: FlowTarget::Host(to),
        kind: FlowKind::Roce,
        rate: RATE,
        frame_len,
        dscp: 26,
        pcp: 3,
        vlan,
        class: 3,
        priority: 3,
        ecn: false,
        pattern: FlowPattern::Steady,
    }
}

/// The switch's configuration. A frame of any flow but the jumbo one is a cell, so that headroom is easy to count: it
/// holds the receive ring and what the wire keeps.
fn configuration(nic: Nic) -> String {
    let port = |number: usize| {
        format!(
            "  - {{name: p{number}, device: \"{}\", speed: 10M, mtu: {}, queues: {}, rx_descriptors: {}, \
             tx_descriptors: 256, vlan: {{tagged: [{VLAN}], native: 1}}}}\n",
            nic.address(number),
            nic.mtu(),
            nic.queues(),
            nic.rx_descriptors(),
        )
    };
    let ports: String = (0..PORTS).map(port).collect();
    format!(
        "preset: roce\nports:\n{ports}buffer: {{size: 16MiB, cell: 2KiB}}\n\
         classes:\n  3: {{limit: 256KiB, xon_offset: 128KiB, headroom: 4MiB}}\n\
         watchdog: {{detection: 10s}}\nlcores: {{control: 0, dataplane: {:?}}}\napi: {{writes: true}}\n",
        nic.lcores()
    )
}

/// The address of the switch's port `number`: that of the NIC.
pub fn port_mac(number: usize) -> MacAddr {
    mac(number).parse().expect("an address")
}
