//! What the devices behind the ports have counted, as control reads it from their drivers now and then.

use crate::dataplane::counters::Counter;

/// One reading of a port's device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct DeviceStats {
    /// Whether the link is up.
    pub link_up: bool,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Frames lost since the receive ring was full: loss before any admission.
    pub rx_missed: u64,
    /// Frames lost since there was no packet buffer.
    pub rx_no_buffer: u64,
    /// Frames received with errors.
    pub rx_errors: u64,
    /// Frames that the device took and could not send. A frame that it did not take is not among them.
    pub tx_errors: u64,
}

impl DeviceStats {
    /// Frames lost before the switch could see them.
    #[must_use]
    pub fn receive_loss(&self) -> u64 {
        self.rx_missed.saturating_add(self.rx_no_buffer)
    }
}

/// A pool of packet buffers: its size, and how many were out when control looked last.
#[derive(Debug)]
pub struct BufferPool {
    /// What it is for, as metrics name it.
    pub name: &'static str,
    /// Buffers in all.
    pub size: u32,
    /// Buffers that are out: in receive and transmit rings, in queues, between lcores. Written by the control thread.
    pub in_use: Counter,
}

/// The last reading of one port's device: written by the control thread, read by anyone. Before the first one the link
/// counts as up and nothing is counted.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    link_down: Counter,
    rx_frames: Counter,
    tx_frames: Counter,
    rx_missed: Counter,
    rx_no_buffer: Counter,
    rx_errors: Counter,
    tx_errors: Counter,
}

impl DeviceCounters {
    /// Publishes a reading. Only the control thread may.
    pub fn publish(&self, stats: &DeviceStats) {
        self.link_down.set(u64::from(!stats.link_up));
        self.rx_frames.set(stats.rx_frames);
        self.tx_frames.set(stats.tx_frames);
        self.rx_missed.set(stats.rx_missed);
        self.rx_no_buffer.set(stats.rx_no_buffer);
        self.rx_errors.set(stats.rx_errors);
        self.tx_errors.set(stats.tx_errors);
    }

    /// The last reading.
    #[must_use]
    pub fn read(&self) -> DeviceStats {
        DeviceStats {
            link_up: self.link_down.get() == 0,
            rx_frames: self.rx_frames.get(),
            tx_frames: self.tx_frames.get(),
            rx_missed: self.rx_missed.get(),
            rx_no_buffer: self.rx_no_buffer.get(),
            rx_errors: self.rx_errors.get(),
            tx_errors: self.tx_errors.get(),
        }
    }
}
