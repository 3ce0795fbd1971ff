//! What the devices behind the ports say of themselves.

use crate::dpdk::EthPort;
use crate::stats::{DeviceStats, Subject};

/// Reads every device; the mask of links that are up.
pub(super) fn refresh(ports: &[EthPort], subject: &Subject) -> u64 {
    let mut up = 0;
    for (index, (port, counters)) in ports.iter().zip(subject.devices.iter()).enumerate() {
        let link_up = port.has_link();
        up |= u64::from(link_up) << index;
        if let Ok(stats) = port.stats() {
            counters.publish(&DeviceStats {
                link_up,
                rx_frames: stats.ipackets,
                tx_frames: stats.opackets,
                rx_missed: stats.imissed + lost_on_wire(subject, index),
                rx_no_buffer: stats.rx_nombuf,
                rx_errors: stats.ierrors,
                tx_errors: stats.oerrors,
            });
        }
    }
    up
}

/// What the host at `port` sent into a full receive ring, which an in-process port does not know of.
fn lost_on_wire(subject: &Subject, port: usize) -> u64 {
    let hosts = subject.hosts.iter().flat_map(|hosts| &hosts.hosts).filter(|host| host.port == port);
    hosts.map(|host| host.lost_frames.get()).sum()
}
