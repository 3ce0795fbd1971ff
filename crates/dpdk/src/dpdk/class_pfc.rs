//! PFC that a NIC obeys by itself: a transmit ring for each priority, which the device stops while the peer pauses it.
//!
//! Drivers do that in DCB mode only. The mode has eight traffic classes in both directions, here one for each priority.
//! Ethdev names flow control by the port's role: `RTE_ETH_FC_RX_PAUSE` obeys received pauses, `RTE_ETH_FC_TX_PAUSE`
//! generates them by the fill of the receive FIFO. The switch generates PFC by its buffer, so it sets only the first.

use dpdk_sys::{RTE_ETH_FC_NONE, RTE_ETH_FC_RX_PAUSE, rte_eth_conf, rte_eth_dcb_info, rte_eth_pfc_conf};

use super::device::{Device, UNUSED_DESCRIPTORS};
use super::{Error, version};
use crate::sets::{CLASSES, ClassSet};

/// The queue numbers of a device in this mode, by priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rings {
    pub rx: [u16; CLASSES],
    pub tx: [u16; CLASSES],
    /// The transmit queue for PFC frames, whose priority no pause stops.
    pub control: u16,
}

/// A driver whose source was read for this mode: ffi/VERSIONS.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Obedient {
    name: &'static str,
    /// The first version of DPDK whose driver obeys by class.
    since: (u32, u32),
    /// Receive and transmit queues up to those of the last traffic class.
    pub queues: [u16; 2],
    /// The high and the low watermark that the driver accepts. They have no effect without generation.
    water: [u32; 2],
    /// The queues of the traffic classes, if `rte_eth_dev_get_dcb_info` does not report them correctly.
    rings: Option<[[u16; CLASSES]; 2]>,
}

const READ: [Obedient; 2] = [
    Obedient {
        name: "net_ixgbe",
        since: (22, 11),
        queues: [113, 121],
        water: [2, 1],
        rings: Some([[0, 16, 32, 48, 64, 80, 96, 112], [0, 32, 64, 80, 96, 104, 112, 120]]),
    },
    Obedient { name: "net_ice", since: (25, 11), queues: [8, 8], water: [0, 0], rings: None },
];

/// Returns the driver called `name` if it obeys by class in DPDK `version`, which is like `DPDK 22.11.11`.
///
/// # Errors
///
/// The reason and the remedy.
pub(super) fn obedient(name: &str, version: &str) -> Result<Obedient, String> {
    let known = READ.iter().find(|driver| driver.name == name);
    let Some(&driver) = known else {
        let names: Vec<&str> = READ.iter().map(|driver| driver.name).collect();
        return Err(format!(
            "its driver {name} was not read for PFC in hardware, only {} were; write `pfc: software`",
            names.join(" and ")
        ));
    };
    let mut numbers = version.trim_start_matches("DPDK ").split(['.', '-']).map(|part| part.parse::<u32>());
    let here = (numbers.next().and_then(Result::ok), numbers.next().and_then(Result::ok));
    if matches!(here, (Some(year), Some(month)) if (year, month) >= driver.since) {
        return Ok(driver);
    }
    let (year, month) = driver.since;
    Err(format!("{name} obeys by class since DPDK {year}.{month:02}, and this is {version}; write `pfc: software`"))
}

/// Sets the traffic classes of `conf`: one for each priority, in both directions. Without those of reception drivers
/// ignore those of transmission.
pub(super) fn divide(conf: &mut rte_eth_conf) {
    let identity = std::array::from_fn(|priority| priority as u8);
    conf.rxmode.mq_mode = dpdk_sys::RTE_ETH_MQ_RX_DCB;
    conf.txmode.mq_mode = dpdk_sys::RTE_ETH_MQ_TX_DCB;
    conf.rx_adv_conf.dcb_rx_conf.nb_tcs = dpdk_sys::RTE_ETH_8_TCS;
    conf.rx_adv_conf.dcb_rx_conf.dcb_tc = identity;
    conf.tx_adv_conf.dcb_tx_conf = dpdk_sys::rte_eth_dcb_tx_conf { nb_tcs: dpdk_sys::RTE_ETH_8_TCS, dcb_tc: identity };
}

/// The functions of ethdev for flow control at one device; errors are negative error numbers of the driver.
pub(super) trait ClassPauses {
    /// Returns the mode of the port.
    fn mode(&mut self) -> Result<u32, i32>;
    /// Sets the mode of one priority.
    fn set(&mut self, priority: u8, mode: u32) -> Result<(), i32>;
}

/// The result of `obey`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassPfc {
    /// The device reads back that it obeys, and generates no PFC.
    Obeys,
    /// The driver has accepted the setting and reports none.
    Unconfirmed,
    /// The device reads back another setting.
    Differs,
}

/// Lets the device obey the pauses of `priorities`. If it refuses one, it obeys none.
pub(super) fn obey(device: &mut impl ClassPauses, priorities: ClassSet) -> Result<ClassPfc, i32> {
    for priority in priorities.iter() {
        if let Err(status) = device.set(priority as u8, RTE_ETH_FC_RX_PAUSE) {
            release(device, priorities);
            return Err(status);
        }
    }
    Ok(read(device))
}

/// Reads whether the device obeys.
pub(super) fn read(device: &mut impl ClassPauses) -> ClassPfc {
    match device.mode() {
        Ok(RTE_ETH_FC_RX_PAUSE) => ClassPfc::Obeys,
        Ok(_) => ClassPfc::Differs,
        Err(_) => ClassPfc::Unconfirmed,
    }
}

/// Ends the obedience to `priorities`. A device that refuses is reset by its close.
pub(super) fn release(device: &mut impl ClassPauses, priorities: ClassSet) {
    for priority in priorities.iter() {
        let _ = device.set(priority as u8, RTE_ETH_FC_NONE);
    }
}

/// An open device, through ethdev.
pub(super) struct Ethdev<'a> {
    pub device: &'a Device,
    pub driver: Obedient,
}

impl ClassPauses for Ethdev<'_> {
    fn mode(&mut self) -> Result<u32, i32> {
        let mut settings = dpdk_sys::rte_eth_fc_conf::default();
        // SAFETY: the port is open, and the settings are written to a local value.
        match unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_get(self.device.id(), &mut settings) } {
            0.. => Ok(settings.mode),
            status => Err(status),
        }
    }

    fn set(&mut self, priority: u8, mode: u32) -> Result<(), i32> {
        let mut wanted = rte_eth_pfc_conf { priority, ..rte_eth_pfc_conf::default() };
        wanted.fc.mode = mode;
        // Drivers refuse zero, although a device that sends no pause has no use for it.
        wanted.fc.pause_time = u16::MAX;
        [wanted.fc.high_water, wanted.fc.low_water] = self.driver.water;
        // SAFETY: the port is open; the driver reads a local value.
        match unsafe { dpdk_sys::rte_eth_dev_priority_flow_ctrl_set(self.device.id(), &mut wanted) } {
            0.. => Ok(()),
            status => Err(status),
        }
    }
}

/// Buffers that the receive and the transmit queues of a device in this mode can hold, for any driver that was read.
#[must_use]
pub fn buffers_by_class(rx_descriptors: u16, tx_descriptors: u16) -> [u32; 2] {
    let most = |index: usize| READ.iter().map(|driver| u32::from(driver.queues[index])).max().unwrap_or(0);
    let of = |index, descriptors: u16| {
        CLASSES as u32 * u32::from(descriptors) + (most(index) - CLASSES as u32) * u32::from(UNUSED_DESCRIPTORS)
    };
    [of(0, rx_descriptors), of(1, tx_descriptors)]
}

impl Obedient {
    /// The driver of `device`, or the error that names the remedy.
    pub fn of(device: &Device) -> Result<Self, Error> {
        obedient(&device.driver_name(), &version())
            .map_err(|remedy| Error::Invalid { what: format!("port `{}` with `pfc: nic`", device.name()), remedy })
    }

    /// The queues of the priorities at the configured `device`. PFC frames have the queue of the lowest priority that
    /// is not in `obeyed`.
    pub fn rings(&self, device: &Device, obeyed: ClassSet) -> Result<Rings, Error> {
        let [rx, tx] = match self.rings {
            Some(rings) => rings,
            None => {
                let mut info = Box::<rte_eth_dcb_info>::default();
                device.attempt("report its traffic classes", || {
                    // SAFETY: the port is configured, and the result is written to an own value.
                    unsafe { dpdk_sys::rte_eth_dev_get_dcb_info(device.id(), &mut *info) }
                })?;
                let of = |class: usize| usize::from(info.prio_tc[class] % CLASSES as u8);
                let rx = std::array::from_fn(|class| info.tc_queue.tc_rxq[0][of(class)].base);
                [rx, std::array::from_fn(|class| info.tc_queue.tc_txq[0][of(class)].base)]
            }
        };
        let free = (!obeyed).iter().next().map(|class| tx[class]);
        let is_divided = |numbers: &[u16; CLASSES], most| {
            numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers[CLASSES - 1] < most
        };
        match free.filter(|_| is_divided(&rx, self.queues[0]) && is_divided(&tx, self.queues[1])) {
            Some(control) => Ok(Rings { rx, tx, control }),
            None => Err(Error::Invalid {
                what: format!("port `{}` without a transmit queue for each priority and one for PFC", device.name()),
                remedy: "write `pfc: software`".into(),
            }),
        }
    }
}

#[cfg(test)]
#[path = "class_pfc_tests.rs"]
mod tests;
