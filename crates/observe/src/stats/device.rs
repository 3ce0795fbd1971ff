//! Counters of the devices behind the ports, which the control thread reads regularly from the drivers.

use crate::plan::counters::Counter;

/// One reading of a port's device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct DeviceStats {
    /// Whether the link is up.
    pub link_up: bool,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Frames lost because the receive ring was full, before any admission.
    pub rx_missed: u64,
    /// Frames lost because there was no packet buffer.
    pub rx_no_buffer: u64,
    /// Frames received with errors.
    pub rx_errors: u64,
    /// Frames that the device accepted but could not send. Frames that it did not accept are not included.
    pub tx_errors: u64,
}

impl DeviceStats {
    /// Frames lost before the switch could see them.
    #[must_use]
    pub fn receive_loss(&self) -> u64 {
        self.rx_missed.saturating_add(self.rx_no_buffer)
    }
}

/// A pool of packet buffers: its size, and the use at the last reading.
#[derive(Debug)]
pub struct BufferPool {
    /// Its purpose, as metrics name it.
    pub name: &'static str,
    /// Number of all buffers.
    pub size: u32,
    /// Buffers in use: in receive and transmit rings, in queues, between lcores. Written by the control thread.
    pub in_use: Counter,
}

/// The last reading of one port's device, written by the control thread and read by any thread. Before the first
/// reading the link counts as up and all counters are zero.
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
    /// Publishes a reading. Only the control thread may call it.
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
