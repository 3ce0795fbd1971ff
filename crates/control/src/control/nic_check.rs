//! Opens two ports for [`crate::nic_check`], runs its checks, and compares the counters of the devices.

use std::time::{Duration, Instant};

use super::devices::PortAccess;
use super::flow_control::Asked;
use crate::config::sections::vdev;
use crate::dpdk::{self, Eal, EalOptions, EthIo, EthPort, Memory, Mempool, PortConfig, PortStats};
use crate::nic_check::{self, ByDevice, Cable, Direction};
use crate::sets::ClassSet;
use crate::stats::DeviceFlowControl;
use crate::stats::flow_control::{has_mac, judge, settle};
use crate::units::BitRate;
use crate::wire::MacAddr;

/// Buffers for both ports, also if they have the queues of DCB mode with few descriptors.
const BUFFERS: u32 = 16_383;
const FEW_DESCRIPTORS: u16 = 64;
const CACHE: u32 = 256;
/// Memory for DPDK in MiB.
const MEMORY_MIB: u32 = 256;
/// Longest wait for the links.
const LINK: Duration = Duration::from_secs(15);
/// Rate of a link whose driver does not report it.
const DEFAULT_RATE: BitRate = BitRate(10_000_000_000);

/// Settings of a check.
#[derive(Debug, Clone)]
pub struct NicCheck {
    /// The ports: PCI addresses or virtual devices.
    pub devices: [String; 2],
    /// Rate of the link; `None`: that of the driver.
    pub rate: Option<BitRate>,
    /// MTU of the ports.
    pub mtu: u16,
    /// Whether to write DPDK's log to standard error.
    pub verbose: bool,
}

/// Results for one port.
#[derive(Debug, Clone)]
pub struct CheckedPort {
    /// Its device.
    pub device: String,
    /// Its DPDK driver.
    pub driver: String,
    /// Its address.
    pub mac: MacAddr,
    /// Its own flow control, after it was turned off.
    pub flow_control: DeviceFlowControl,
    /// Results as the sender of data.
    pub direction: Direction,
    /// Counters of the device over the checks.
    pub counters: PortStats,
}

/// Results of a check.
#[derive(Debug, Clone)]
pub struct NicReport {
    /// Rate of the link, as far as it is known.
    pub rate: BitRate,
    /// Whether the rate was reported by a driver or given.
    pub is_rate_known: bool,
    /// The ports.
    pub ports: [CheckedPort; 2],
    /// Results with devices that obey PFC by themselves, or the reason why they were not tried.
    pub by_device: Result<[ByDevice; 2], String>,
}

impl NicReport {
    /// The word for `pfc:` that suits these ports; `None`: they are not lossless.
    #[must_use]
    pub fn pfc(&self) -> Option<&'static str> {
        let passes = |port: &CheckedPort| port.direction.passes_data() && port.counter_faults().is_empty();
        let is_by_device = |results: &[ByDevice; 2]| results.iter().all(|result| result.faults().is_empty());
        if self.ports.iter().all(|port| port.faults().is_empty()) {
            Some("software")
        } else if self.by_device.as_ref().is_ok_and(is_by_device) && self.ports.iter().all(passes) {
            Some("nic")
        } else {
            None
        }
    }
}

/// Priorities that devices obey by themselves in a check: PFC frames take the queue of priority 0.
const OBEYED: ClassSet = ClassSet::from_bits(0b1111_1110);

impl CheckedPort {
    /// The reasons why the port cannot be lossless; empty if it can.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.direction.faults();
        if self.flow_control == DeviceFlowControl::Pauses {
            faults.push("the device's own PAUSE cannot be turned off".to_owned());
        }
        faults.extend(self.counter_faults());
        faults
    }

    fn counter_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (count, what) in [
            (self.counters.imissed, "frames were lost in the receive ring"),
            (self.counters.rx_nombuf, "frames found no buffer"),
            (self.counters.ierrors, "frames were received with errors"),
            (self.counters.oerrors, "frames were taken and not sent"),
        ] {
            if count > 0 {
                faults.push(format!("{count} {what}, by the device's counters"));
            }
        }
        faults
    }
}

/// Checks the two ports of `settings`.
///
/// # Errors
/// Returns an error if DPDK or a port cannot start, or if the ports have no link.
pub fn nic_check(settings: &NicCheck) -> Result<NicReport, dpdk::Error> {
    // No virtual device has a colon in its name, since DPDK splits devargs at them.
    let is_pci = |device: &&String| device.split(',').next().is_some_and(|name| name.contains(':'));
    let pci: Vec<String> = settings.devices.iter().filter(is_pci).cloned().collect();
    let memory =
        if pci.is_empty() { Memory::NoHuge { mib: MEMORY_MIB } } else { Memory::Huge { mib: Some(MEMORY_MIB) } };
    let eal = Eal::init(&EalOptions { memory, pci, verbose: settings.verbose, ..EalOptions::default() })?;
    let least = settings.devices.iter().map(|device| vdev::least_buffer(device, settings.mtu)).max().unwrap_or(0);
    // NICs fill buffers in steps of a KiB.
    let data_room = dpdk::HEADROOM as u16 + (settings.mtu + 26).max(2048).max(least).next_multiple_of(1024);
    let data = Mempool::create(&eal, "data", BUFFERS, data_room, CACHE, None)?;
    let config = PortConfig { mtu: settings.mtu, ..PortConfig::default() };
    let open = |device: &String, config: &PortConfig| {
        let mut port = if is_pci(&device) {
            EthPort::open(&eal, device.split(',').next().unwrap_or_default(), config, &data)?
        } else {
            EthPort::plug(&eal, &vdev::complete(device, settings.mtu, 1), config, &data)?
        };
        port.start()?;
        Ok::<_, dpdk::Error>(port)
    };
    let open_both = |config: &PortConfig| {
        Ok::<_, dpdk::Error>([open(&settings.devices[0], config)?, open(&settings.devices[1], config)?])
    };
    let mut ports = open_both(&config)?;
    let flow_control = ports.each_ref().map(turn_off);
    wait_for_links(&ports)?;
    let speed = ports.iter().find_map(|port| port.link().ok()?.speed_mbps.filter(|_| port.is_physical()));
    let known = settings.rate.or(speed.map(|mbps| BitRate(u64::from(mbps) * 1_000_000)));
    let macs = [address(&ports[0], 0), address(&ports[1], 1)];
    let before = [ports[0].stats()?, ports[1].stats()?];

    let [first, second] = &mut ports;
    let queues = vec![Some(first.queues()?), Some(second.queues()?)];
    let io = EthIo::new(queues, data.clone(), data.clone());
    let rate = known.unwrap_or(DEFAULT_RATE);
    let reaction = nic_check::reaction(rate, settings.mtu, settings.devices.iter().all(|device| is_pci(&device)));
    let mut cable = Cable { io, clock: dpdk::now, hz: dpdk::hz(&eal), rate, macs, reaction };
    let directions = nic_check::check(&mut cable, usize::from(settings.mtu) + 14);
    drop(cable);
    let mut directions = directions.into_iter();
    let checked = |index: usize, direction: Direction| {
        let port = &ports[index];
        Ok::<_, dpdk::Error>(CheckedPort {
            device: settings.devices[index].clone(),
            driver: port.driver(),
            mac: macs[index],
            flow_control: flow_control[index],
            direction,
            counters: since(port.stats()?, before[index]),
        })
    };
    let mut next = |index| checked(index, directions.next().expect("one for each port"));
    let checked = [next(0)?, next(1)?];
    drop(ports);
    let descriptors = PortConfig { rx_descriptors: FEW_DESCRIPTORS, tx_descriptors: FEW_DESCRIPTORS, ..config };
    let by_device = open_both(&PortConfig { obeyed: OBEYED, ..descriptors }).and_then(|mut ports| {
        wait_for_links(&ports)?;
        let [first, second] = &mut ports;
        let io = EthIo::new(vec![Some(first.queues()?), Some(second.queues()?)], data.clone(), data.clone());
        let mut cable = Cable { io, clock: dpdk::now, hz: dpdk::hz(&eal), rate, macs, reaction };
        Ok(nic_check::check_by_device(&mut cable, OBEYED, usize::from(settings.mtu) + 14))
    });
    let by_device = by_device.map_err(|error| error.to_string());
    Ok(NicReport { rate, is_rate_known: known.is_some(), ports: checked, by_device })
}

fn turn_off(port: &EthPort) -> DeviceFlowControl {
    let driver = port.driver();
    let (accepted, reading) = settle(&mut Asked::new(Some(port)));
    judge(&driver, has_mac(&driver) || PortAccess::is_on_a_nic(port), accepted, reading)
}

/// The address of a port; ports without one get a local address.
fn address(port: &EthPort, index: u16) -> MacAddr {
    let mac = MacAddr(port.mac().unwrap_or_default());
    if mac.is_zero() || mac.is_group() { MacAddr::local(0, index) } else { mac }
}

fn wait_for_links(ports: &[EthPort; 2]) -> Result<(), dpdk::Error> {
    let end = Instant::now() + LINK;
    while let Some(down) = ports.iter().find(|port| !port.has_link()) {
        if Instant::now() > end {
            return Err(dpdk::Error::Invalid {
                what: format!("port `{}` without a link", down.name()),
                remedy: "connect both ports by a cable".to_owned(),
            });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Counters since `before`: not every driver can reset them.
fn since(now: PortStats, before: PortStats) -> PortStats {
    PortStats {
        ipackets: now.ipackets.saturating_sub(before.ipackets),
        ibytes: now.ibytes.saturating_sub(before.ibytes),
        imissed: now.imissed.saturating_sub(before.imissed),
        ierrors: now.ierrors.saturating_sub(before.ierrors),
        rx_nombuf: now.rx_nombuf.saturating_sub(before.rx_nombuf),
        opackets: now.opackets.saturating_sub(before.opackets),
        obytes: now.obytes.saturating_sub(before.obytes),
        oerrors: now.oerrors.saturating_sub(before.oerrors),
    }
}
