//! The devices behind the ports, as their drivers report them.

use super::family::Families;
use crate::stats::device::DeviceStats;
use crate::stats::snapshot::Snapshot;
use crate::stats::switch_view::SwitchView;

type Row = (&'static str, &'static str, fn(&DeviceStats) -> u64);

const COUNTERS: [Row; 6] = [
    ("holdfast_device_received_frames_total", "Frames that the device received.", |device| device.rx_frames),
    ("holdfast_device_sent_frames_total", "Frames that the device sent.", |device| device.tx_frames),
    (
        "holdfast_device_receive_missed_frames_total",
        "Frames lost to a full receive ring; breaks losslessness.",
        |device| device.rx_missed,
    ),
    (
        "holdfast_device_receive_no_buffer_frames_total",
        "Frames lost for lack of a packet buffer; breaks losslessness.",
        |device| device.rx_no_buffer,
    ),
    ("holdfast_device_receive_errors_total", "Frames received with errors.", |device| device.rx_errors),
    (
        "holdfast_device_transmit_errors_total",
        "Frames taken, not sent ([nics.md](nics.md)); breaks losslessness.",
        |device| device.tx_errors,
    ),
];

/// Use of the packet buffer pools, which must never run empty.
pub(super) fn pools(families: &mut Families, switch_view: &SwitchView) {
    let help = "Buffers of the pool.";
    let family = families.gauge("holdfast_packet_buffers", help);
    for pool in switch_view.pools.iter() {
        family.add(&[("pool", pool.name)], u64::from(pool.size));
    }
    let help = "Buffers taken, also by free receive descriptors; sampled ten times a second.";
    let family = families.gauge("holdfast_packet_buffers_in_use", help);
    for pool in switch_view.pools.iter() {
        family.add(&[("pool", pool.name)], pool.in_use.get());
    }
}

/// Link state and device counters of each port, as the control thread last read them.
pub(super) fn devices(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let family = families.gauge("holdfast_port_link_up", "1 while the link is up.");
    for (index, port) in snapshot.ports.iter().enumerate() {
        family.add(&[("port", switch_view.port_name(index))], u64::from(port.device.link_up));
    }
    let help = "1 if the device [reports loss at a full ring](nics.md).";
    let family = families.gauge("holdfast_device_receive_loss_seen", help);
    for (index, driver) in switch_view.blind.iter().enumerate() {
        family.add(&[("port", switch_view.port_name(index))], u64::from(driver.is_none()));
    }
    for (name, help, of) in COUNTERS {
        let family = families.counter(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            family.add(&[("port", switch_view.port_name(index))], of(&port.device));
        }
    }
}
