//! Sets up running ports from a configuration: memory, devices, pools, lcores.

use crate::config::Config;
use crate::config::model::{DeviceKind, HostsLcore, MemoryMode, PortDevice};
use crate::config::sections::vdev;
use crate::dpdk::{
    self, Eal, EalOptions, EthIo, EthPort, Memory, Mempool, PortConfig, PortQueues, PortSender, RingLink, RteFib,
};
use crate::faults::hold::SPARE_FRAMES;
use crate::faults::{HELD_FRAMES, HELD_PFC_FRAMES};
use crate::pfc::PfcMode;
use crate::plan::PortSpec;
use crate::plan::counters::Counter;
use crate::sets::{BURST, MAX_PORTS, PortSet};
use crate::stats::flow_control::settle;
use crate::stats::{BufferPool, PfcStanding};
use crate::wire::MacAddr;

use super::devices::{Opened, Slot, obeyed};
use super::flow_control::Asked;
use super::vhost::{self, VhostPort};
use super::{RunError, idle};

/// Buffers in the cache of an lcore.
const POOL_CACHE: u32 = 256;
/// PFC frames in flight per port: one is posted and sent before the next is due.
const CONTROL_BUFFERS_PER_PORT: u32 = 32;
/// Bytes around an IP packet of the MTU, as drivers count them: Ethernet header, two tags and frame check sequence.
const FRAME_EXTRA: u16 = 14 + 8 + 4;
/// Memory in MiB that DPDK needs beside the pools.
const SPARE_MIB: u32 = 64;

/// The started ports of a switch, and the resources that they need.
pub(super) struct Ports {
    pub eal: Eal,
    /// Switch ends of the ports, by port index.
    pub ports: Vec<Slot>,
    /// Ports that have got another device since the last look.
    pub replaced: PortSet,
    /// The packet buffers that there are.
    plan: PoolPlan,
    /// Their transmit queues.
    pub tx_queues: Vec<u8>,
    /// Host ends of the in-process links, by host index.
    pub hosts: Vec<EthPort>,
    pub data: Mempool,
    pub control: Mempool,
}

/// Sizes of the packet pools. The MMU must always be the limit, so a buffer exists for every frame that the cells
/// allow. More buffers exist for every descriptor, for both directions of every link, and for the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PoolPlan {
    pub data: u32,
    pub control: u32,
    pub data_room: u16,
    /// Memory in MiB of both forwarding tables.
    pub fibs_mib: u32,
}

/// Further buffers of a port whose device has queues for each priority.
fn of_classes(device: &PortDevice, port: &PortSpec) -> u32 {
    let [received, sent] = dpdk::buffers_by_class(device.rx_descriptors, device.tx_descriptors);
    if port.pfc == PfcMode::Nic { received + sent } else { 0 }
}

impl PoolPlan {
    /// The buffers of a switch that starts by `config`: ports without a device have those of any that they may get.
    pub fn new(config: &Config) -> Self {
        Self::with_room(config, true)
    }

    /// The buffers of a switch by `config`; with `has_room` also those of devices that its ports may get.
    fn with_room(config: &Config, has_room: bool) -> Self {
        let received = |device: &PortDevice| match device.kind {
            DeviceKind::Ring => u32::from(device.queues) * u32::from(device.rx_descriptors),
            // vmxnet3 fills two rings for each queue.
            DeviceKind::Absent if !has_room => 0,
            DeviceKind::Pci(_) | DeviceKind::Absent => 2 * u32::from(device.queues) * u32::from(device.rx_descriptors),
            // A vhost queue takes buffers for a burst only.
            _ => u32::from(device.rx_descriptors),
        };
        let sent = |device: &PortDevice| match device.kind {
            DeviceKind::Ring => u32::from(device.tx_queues) * u32::from(device.rx_descriptors),
            DeviceKind::Absent if !has_room => 0,
            _ => u32::from(device.tx_queues) * u32::from(device.tx_descriptors),
        };
        let received: u32 = config.devices.iter().map(received).sum();
        let sent: u32 = config.devices.iter().map(sent).sum();
        let by_class: u32 =
            config.devices.iter().zip(&config.switch.ports).map(|(device, port)| of_classes(device, port)).sum();
        let ports = config.devices.len() as u32;
        let devices_of_ports = config.devices.iter().zip(&config.switch.ports);
        let devices_of_ports = devices_of_ports.filter(|(_, port)| has_room || !port.is_absent);
        let mtu = devices_of_ports.clone().map(|(_, port)| port.mtu).max().unwrap_or(1500);
        let least = devices_of_ports.map(|(device, port)| match &device.kind {
            DeviceKind::Vdev(devargs) => vdev::least_buffer(devargs, port.mtu),
            // NICs know the size of a buffer in KiB, and their drivers round it down.
            DeviceKind::Pci(_) => (port.mtu + FRAME_EXTRA).next_multiple_of(1024),
            // The most that any device needs.
            DeviceKind::Absent => {
                (port.mtu + FRAME_EXTRA).next_multiple_of(1024).max(vdev::least_buffer("net_af_packet", port.mtu))
            }
            DeviceKind::Ring | DeviceKind::Vhost(_) => 0,
        });
        // At least the size that NIC drivers expect, so that a frame always fits one buffer.
        let room = least.max().unwrap_or(0).max(mtu + FRAME_EXTRA).max(2048);
        // Per lcore: the burst in the pipeline, the posted burst and the burst to free. Per port, two bursts of its
        // host.
        let lcores = u32::from(config.switch.lcores) + u32::from(hosts_apart(config));
        let bursts = (3 * lcores + 2 * ports) * BURST as u32;
        // Frames that faults hold are no longer, or not yet, in the buffer of the switch.
        let held = config.faults.as_ref().map_or(0, |_| HELD_FRAMES + config.devices.len() * SPARE_FRAMES) as u32;
        let held_pfc = config.faults.as_ref().map_or(0, |_| HELD_PFC_FRAMES) as u32;
        Self {
            data: config.switch.buffer.total.0
                + received
                + sent
                + by_class
                + bursts
                + lcores * held
                + (2 + lcores) * POOL_CACHE,
            // The driver of a NIC may keep sent buffers until its ring runs low on descriptors. A port that sends only
            // PFC has a ring full of them.
            control: sent + ports * CONTROL_BUFFERS_PER_PORT + lcores * (held_pfc + POOL_CACHE),
            data_room: dpdk::HEADROOM as u16 + room,
            fibs_mib: config.switch.routing.as_ref().map_or(0, |routing| 2 * RteFib::mib(routing.fib)),
        }
    }

    /// Whether the buffers suffice for a switch that needs those of `other`.
    fn covers(&self, other: &Self) -> bool {
        self.data >= other.data && self.control >= other.control && self.data_room >= other.data_room
    }

    /// Returns the memory in MiB of both pools, the forwarding tables and the rest, in hugepages if `huge`, else in
    /// ordinary pages.
    pub fn mib(&self, huge: bool) -> u32 {
        let pool = |count| Mempool::footprint(count, self.data_room, huge);
        ((pool(self.data) + pool(self.control)) >> 20) as u32 + 1 + SPARE_MIB + self.fibs_mib
    }
}

impl Ports {
    /// Starts DPDK and all ports.
    pub fn start(config: &Config, verbose: bool) -> Result<Self, RunError> {
        if config.devices.len() > MAX_PORTS {
            return Err(RunError::TooManyPorts { ports: config.devices.len() });
        }
        let plan = PoolPlan::new(config);
        let eal = Eal::init(&eal_options(config, &plan, verbose)?)?;
        idle::prove(config, &eal)?;
        let data = Mempool::create(&eal, "data", plan.data, plan.data_room, POOL_CACHE, None)?;
        let control = Mempool::create(&eal, "control", plan.control, plan.data_room, 32, None)?;
        let mut all = Self {
            eal,
            ports: Vec::new(),
            replaced: PortSet::EMPTY,
            plan,
            tx_queues: Vec::new(),
            hosts: Vec::new(),
            data,
            control,
        };
        let mut host_ends: Vec<Option<EthPort>> = Vec::new();
        for (index, (device, port)) in config.devices.iter().zip(&config.switch.ports).enumerate() {
            let (opened, host_end) = all.open(device, index, port)?;
            all.tx_queues.push(all.tx_queues_of(device) as u8);
            all.ports.push(Slot { device: opened, opened: Opened::of(config, index), ..Slot::default() });
            host_ends.push(host_end);
        }
        for host in &config.hosts {
            let end = host_ends.get_mut(host.port).and_then(Option::take);
            all.hosts.push(end.ok_or_else(|| RunError::NoLink { host: host.name.clone() })?);
        }
        for (port, spec) in all.ports.iter_mut().zip(&config.switch.ports) {
            if let Some(port) = &mut port.device {
                port.start().map_err(RunError::at_port(&spec.name))?;
            }
        }
        for port in &mut all.hosts {
            port.start()?;
        }
        Ok(all)
    }

    /// The transmit queues of `device`: as many as are configured, or one if a NIC has too few. A NIC with too few at
    /// all for a written number is refused when it is opened.
    fn tx_queues_of(&self, device: &PortDevice) -> u16 {
        let wanted = u16::from(device.tx_queues);
        match &device.kind {
            DeviceKind::Pci(address) => {
                let most = |rx_queues| EthPort::most_tx_queues(&self.eal, address, rx_queues).unwrap_or(wanted);
                let is_refused = device.needs_tx_queues && most(u16::MAX) < wanted;
                if most(device.queues.into()) < wanted && !is_refused { 1 } else { wanted }
            }
            _ => wanted,
        }
    }

    fn open(
        &self,
        device: &PortDevice,
        index: usize,
        spec: &PortSpec,
    ) -> Result<(Option<EthPort>, Option<EthPort>), RunError> {
        let (eal, pool, name) = (&self.eal, &self.data, spec.name.as_str());
        let config = &PortConfig {
            rx_descriptors: device.rx_descriptors,
            tx_descriptors: device.tx_descriptors,
            rx_queues: device.queues.into(),
            tx_queues: self.tx_queues_of(device),
            mtu: spec.mtu,
            promiscuous: true,
            obeyed: obeyed(spec),
        };
        let opened = match &device.kind {
            DeviceKind::Pci(address) => EthPort::open(eal, address, config, pool),
            DeviceKind::Vdev(devargs) => EthPort::plug(
                eal,
                &vdev::complete(devargs, config.mtu, config.rx_queues.max(config.tx_queues)),
                config,
                pool,
            ),
            DeviceKind::Vhost(path) => {
                let port = VhostPort { index, name, path, access: &device.socket };
                return Ok((Some(vhost::open(eal, &port, config, pool)?), None));
            }
            DeviceKind::Ring => {
                let frames = config.rx_descriptors.into();
                let link = RingLink::new(eal, &format!("hf{index}"), frames, config, pool);
                let link = link.map_err(RunError::at_port(name))?;
                return Ok((Some(link.switch), Some(link.host)));
            }
            DeviceKind::Absent => return Ok((None, None)),
        };
        Ok((Some(opened.map_err(RunError::at_port(name))?), None))
    }

    /// An error if the packet buffers do not suffice for `config`.
    pub fn check_room(&self, config: &Config) -> Result<(), String> {
        let (plan, wanted) = (&self.plan, PoolPlan::with_room(config, false));
        if plan.covers(&wanted) {
            return Ok(());
        }
        Err(format!(
            "it takes {} packet buffers of {} B, and the switch made {} of {} B at its start: needs a restart; a port \
             with `device: none` and the same `mtu` and descriptors makes room for one",
            wanted.data, wanted.data_room, plan.data, plan.data_room
        ))
    }

    /// The devices of all ports that have one.
    pub fn devices(&self) -> impl Iterator<Item = &EthPort> {
        self.ports.iter().filter_map(|slot| slot.device.as_ref())
    }

    /// Ports whose devices were opened with other settings than those of `config`.
    pub fn other_than(&self, config: &Config) -> PortSet {
        let is_other = |port: &usize| self.ports[*port].opened != Opened::of(config, *port);
        (0..self.ports.len().min(config.devices.len())).filter(is_other).collect()
    }

    /// Closes the device of `port`, whose queues are with no lcore any more.
    pub fn close(&mut self, port: usize) -> Result<(), RunError> {
        Ok(self.ports[port].close()?)
    }

    /// Opens and starts the device of `port`, which has none, by `config`. Returns its queues for the lcore of the
    /// port.
    pub fn reopen(&mut self, port: usize, config: &Config) -> Result<Option<PortQueues>, RunError> {
        let (device, spec) = (&config.devices[port], &config.switch.ports[port]);
        self.replaced.insert(port);
        if let DeviceKind::Pci(devargs) = &device.kind {
            EthPort::probe(&self.eal, devargs).map_err(RunError::at_port(&spec.name))?;
        }
        let Some(mut opened) = self.open(device, port, spec)?.0 else { return Ok(None) };
        opened.start().map_err(RunError::at_port(&spec.name))?;
        // Before the port is in use; what comes of it is published at the next look at the devices. One that obeys PFC
        // by itself does so since its start, and turning PAUSE off would end that.
        if opened.class_pfc().is_none() {
            let _ = settle(&mut Asked::new(Some(&opened)));
        }
        let queues = opened.queues().map_err(RunError::at_port(&spec.name))?;
        self.ports[port].device = Some(opened);
        self.ports[port].opened = Opened::of(config, port);
        Ok(Some(queues))
    }

    /// Returns the port queues of each switch lcore, and those of each part of the hosts.
    pub fn queues(&mut self, config: &Config) -> Result<(Vec<EthIo>, Vec<EthIo>), RunError> {
        let empty = |parts: usize, count: usize| (0..parts).map(|_| (0..count).map(|_| None).collect()).collect();
        let lcores = usize::from(config.switch.lcores);
        let mut switch: Vec<Vec<Option<PortQueues>>> = empty(lcores, self.ports.len());
        let mut senders: Vec<Vec<Option<PortSender>>> =
            (0..lcores).map(|_| self.ports.iter().map(|_| None).collect()).collect();
        let joint = config.switch.joint_ports();
        let mut hosts: Vec<Vec<Option<PortQueues>>> = empty(host_parts(config), self.hosts.len());
        for (index, (port, spec)) in self.ports.iter_mut().zip(&config.switch.ports).enumerate() {
            let Some(port) = &mut port.device else { continue };
            let owner = usize::from(spec.lcore);
            let (queues, others) = port.queues_for(if joint.contains(index) { lcores as u16 } else { 1 })?;
            switch[owner][index] = Some(queues);
            for (lcore, sender) in (0..lcores).filter(|lcore| *lcore != owner).zip(others) {
                senders[lcore][index] = Some(sender);
            }
        }
        for ((index, port), part) in self.hosts.iter_mut().enumerate().zip(parts_of_hosts(config)) {
            hosts[part][index] = Some(port.queues()?);
        }
        let io = |queues, control: &Mempool| EthIo::new(queues, self.data.clone(), control.clone());
        let switch = switch.into_iter().zip(senders);
        let switch = switch.map(|(queues, senders)| io(queues, &self.control).with_senders(senders));
        Ok((switch.collect(), hosts.into_iter().map(|queues| io(queues, &self.data)).collect()))
    }

    /// Returns the address of a NIC. The address of a tap belongs to the Linux interface, and so to the host behind it.
    pub fn own_address(&self, port: usize) -> Option<MacAddr> {
        let port = self.ports.get(port)?.device.as_ref().filter(|port| port.is_physical())?;
        let mac = MacAddr(port.mac().ok()?);
        (!mac.is_zero() && !mac.is_group()).then_some(mac)
    }

    /// Returns the PFC standing of this port before it runs, and the host that may prove it: one in this process that
    /// obeys. Taps pass PFC frames, but no Linux host obeys them. The counters of a partner behind a cable cannot be
    /// read, so only the operator can vouch for it (docs/nics.md).
    pub fn pfc_standing(config: &Config, port: usize) -> (PfcStanding, Option<usize>) {
        let obeys = |host: &crate::hosts::HostSpec| host.port == port && host.obeys_pfc;
        let is_trusted = config.devices.get(port).is_some_and(|device| device.pfc_proven);
        let known = match config.switch.ports.get(port) {
            Some(spec) if !spec.pfc.is_on() || spec.is_absent => PfcStanding::Off,
            Some(spec) if spec.pfc == PfcMode::Queue => PfcStanding::Proven,
            Some(_) if is_trusted => PfcStanding::Trusted,
            _ => PfcStanding::Unproven,
        };
        (known, config.hosts.iter().position(obeys))
    }

    /// Returns the pools of packet buffers for the statistics.
    pub fn pools(&self) -> Vec<BufferPool> {
        let pools = [("data", &self.data), ("control", &self.control)];
        pools.map(|(name, pool)| BufferPool { name, size: pool.count(), in_use: Counter::default() }).into()
    }

    /// Publishes the buffers in use of each pool. `pools` are those of [`Ports::pools`].
    pub fn count_buffers(&self, pools: &[BufferPool]) {
        for (pool, counted) in [&self.data, &self.control].into_iter().zip(pools) {
            counted.in_use.set(pool.in_use().into());
        }
    }

    /// Returns the driver of this port, if it does not report frames lost in front of it.
    pub fn blind_driver(&self, port: usize) -> Option<String> {
        self.ports.get(port)?.device.as_ref().filter(|port| !port.sees_receive_loss()).map(EthPort::driver)
    }
}

/// Whether hosts are configured, and have an lcore of their own.
pub(super) fn hosts_apart(config: &Config) -> bool {
    !config.hosts.is_empty() && config.lcores.hosts != HostsLcore::WithSwitch
}

/// Returns the number of threads that poll hosts.
pub(super) fn host_parts(config: &Config) -> usize {
    if hosts_apart(config) { 1 } else { config.switch.lcores.into() }
}

/// Returns the thread that polls each host. Beside the switch, it is the lcore that owns the host's port, so that a
/// stall stops both.
pub(super) fn parts_of_hosts(config: &Config) -> Vec<usize> {
    if hosts_apart(config) {
        return vec![0; config.hosts.len()];
    }
    let lcore = |port: usize| config.switch.ports.get(port).map_or(0, |port| usize::from(port.lcore));
    config.hosts.iter().map(|host| lcore(host.port)).collect()
}

fn eal_options(config: &Config, plan: &PoolPlan, verbose: bool) -> Result<EalOptions, RunError> {
    let pci: Vec<String> = config
        .devices
        .iter()
        .filter_map(|device| match &device.kind {
            DeviceKind::Pci(address) => Some(address.clone()),
            _ => None,
        })
        .collect();
    let huge = Memory::Huge { mib: Some(plan.mib(true)) };
    let memory = match config.eal.memory {
        MemoryMode::Huge => huge,
        MemoryMode::Auto if !pci.is_empty() => huge,
        MemoryMode::NoHuge if !pci.is_empty() => return Err(RunError::PciWithoutHugepages),
        _ => Memory::NoHuge { mib: plan.mib(false) },
    };
    let allowed = dpdk::allowed_cpus();
    let cpu = |wanted: Option<u16>, default: Option<&usize>, key: &'static str| match wanted {
        None => default.copied().ok_or(RunError::NoCpu),
        Some(cpu) if allowed.contains(&usize::from(cpu)) => Ok(usize::from(cpu)),
        Some(cpu) => {
            let allowed = allowed.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            Err(RunError::CpuNotAllowed { key, cpu, allowed })
        }
    };
    // Takes the last CPUs first, because other work of the machine tends to run on the first ones. CPUs are shared if
    // there are too few.
    let lcores = usize::from(config.switch.lcores);
    let mut chosen = allowed.iter().rev().cycle();
    let wanted = (0..).map(|index| config.lcores.dataplane.get(index).copied());
    let workers = chosen.by_ref().zip(wanted).take(lcores);
    let workers = workers.map(|(chosen, wanted)| cpu(wanted, Some(chosen), "lcores.dataplane"));
    let mut worker_cpus: Vec<usize> = workers.collect::<Result<_, _>>()?;
    if worker_cpus.len() != lcores {
        return Err(RunError::NoCpu);
    }
    if let (true, HostsLcore::Own(wanted)) = (hosts_apart(config), config.lcores.hosts) {
        let free = allowed.iter().rev().find(|cpu| !worker_cpus.contains(cpu));
        worker_cpus.push(cpu(wanted, free.or(chosen.next()), "lcores.hosts")?);
    }
    Ok(EalOptions {
        memory,
        main_cpu: cpu(config.lcores.control, allowed.first(), "lcores.control")?,
        worker_cpus,
        pci,
        extra: config.eal.args.clone(),
        verbose,
        ..EalOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    /// Every frame that the MMU or a ring may hold has a buffer, so that the MMU is the limit and never the pool.
    #[test]
    fn there_is_a_buffer_for_every_frame_that_the_cells_allow() {
        let config = config::embedded();
        let plan = PoolPlan::new(&config);
        let in_links = 2 * 1024 * config.devices.len() as u32;
        assert!(plan.data > config.switch.buffer.total.0 + in_links, "{plan:?}");
        assert!(plan.control > in_links / 2, "{plan:?}");
    }

    #[test]
    fn each_receive_queue_of_a_nic_has_buffers_for_its_ring() {
        let mut config = config::embedded();
        config.devices[0].kind = DeviceKind::Pci("0000:3b:00.0".to_owned());
        let one = PoolPlan::new(&config);
        config.devices[0].queues = 4;
        let more = 3 * 2 * u32::from(config.devices[0].rx_descriptors);
        assert_eq!(PoolPlan::new(&config).data, one.data + more);
    }

    #[test]
    fn a_buffer_holds_the_largest_frame_of_any_port() {
        let mut config = config::embedded();
        assert_eq!(usize::from(PoolPlan::new(&config).data_room), dpdk::HEADROOM + 2048);
        config.switch.ports[1].mtu = 9000;
        assert_eq!(usize::from(PoolPlan::new(&config).data_room), dpdk::HEADROOM + 9026);
        config.devices[1].kind = DeviceKind::Vdev("net_af_packet0,iface=eth0".to_owned());
        assert_eq!(usize::from(PoolPlan::new(&config).data_room), dpdk::HEADROOM + 9184);
        config.devices[1].kind = DeviceKind::Pci("0000:3b:00.0".to_owned());
        assert_eq!(usize::from(PoolPlan::new(&config).data_room), dpdk::HEADROOM + 9216);
    }

    /// A port without a device has room for any device, and needs none itself.
    #[test]
    fn room_for_a_port_to_come_covers_each_device_of_its_mtu() {
        let mut config = config::embedded();
        (config.devices[1].kind, config.switch.ports[1].is_absent) = (DeviceKind::Absent, true);
        config.switch.ports[1].mtu = 9000;
        let room = PoolPlan::new(&config);
        for device in ["net_af_packet0,iface=eth0", "net_tap0,iface=hf0"] {
            config.devices[1].kind = DeviceKind::Vdev(device.to_owned());
            config.switch.ports[1].is_absent = false;
            assert!(room.covers(&PoolPlan::with_room(&config, false)), "{device}");
        }
        config.devices[1].kind = DeviceKind::Pci("0000:3b:00.0".to_owned());
        let nic = PoolPlan::new(&config);
        assert!(room.covers(&nic));
        (config.devices[1].kind, config.switch.ports[1].is_absent) = (DeviceKind::Absent, true);
        assert!(nic.covers(&PoolPlan::with_room(&config, false)));
    }

    #[test]
    fn only_a_host_that_obeys_may_prove_a_port() {
        let mut config = config::embedded();
        let witness = config.hosts.iter().position(|host| host.port == 1);
        assert_eq!(Ports::pfc_standing(&config, 1), (PfcStanding::Unproven, witness));
        config.hosts.iter_mut().for_each(|host| host.obeys_pfc = false);
        assert_eq!(Ports::pfc_standing(&config, 1), (PfcStanding::Unproven, None));
        config.devices[1].pfc_proven = true;
        assert_eq!(Ports::pfc_standing(&config, 1), (PfcStanding::Trusted, None));
        config.switch.ports[1].pfc = crate::pfc::PfcMode::Off;
        assert_eq!(Ports::pfc_standing(&config, 1).0, PfcStanding::Off);
    }
}
