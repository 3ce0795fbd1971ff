//! In-process links: two ports, each of which receives the frames that the other sends.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use dpdk_sys::{HF_RING_EXACT, HF_RING_SC_DEQ, HF_RING_SP_ENQ, HF_SOCKET_ANY, rte_mbuf, rte_ring};

use super::device::{Device, Origin};
use super::eal::Shared;
use super::port::check_room_for;
use super::{Eal, Error, EthPort, Mempool, PortConfig, log};

/// Longest name of a link, so that the DPDK names derived from it fit.
const NAME_MAX: usize = 15;

/// A link inside the process whose two ends are ports.
///
/// No frame is copied: a buffer sent at one end **is** the buffer received at the other, and the receiver returns it to
/// the sender's pool. Both pools therefore need spare buffers for the frames in transit in both directions. Frames in
/// the link are freed when both ends are gone.
pub struct RingLink {
    /// The port of the switch.
    pub switch: EthPort,
    /// The port of the host.
    pub host: EthPort,
}

/// The rings of both directions, one for each queue.
pub(super) struct Rings {
    to_switch: Vec<Ring>,
    to_host: Vec<Ring>,
}

/// The end of a link that a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Switch,
    Host,
}

impl Rings {
    /// Returns the number of frames that wait in receive queue `queue` of the port at `end`.
    pub(super) fn waiting(&self, end: End, queue: usize) -> usize {
        let rings = if end == End::Switch { &self.to_switch[..] } else { &self.to_host[..] };
        let Some(ring) = rings.get(queue) else { return 0 };
        // SAFETY: the ring exists while this value does. Counting reads its indices, which both ends may move
        // meanwhile.
        unsafe { dpdk_sys::hf_ring_count(ring.raw.as_ptr()) as usize }
    }
}

/// One queue: a ring with one producer and one consumer, which owns the buffers in it.
struct Ring {
    raw: NonNull<rte_ring>,
    _eal: Arc<Shared>,
}

// SAFETY: only the two ports use the rings. This value, which they share, counts the frames in the rings and finally
// frees them.
unsafe impl Send for Ring {}
// SAFETY: as above. Through a shared reference only the indices are read, which any thread may do.
unsafe impl Sync for Ring {}

impl RingLink {
    /// Creates a link that holds up to `size` frames in each queue and direction, and opens both ends. The switch has
    /// the queues of `config`, and the host has as many in the other direction.
    ///
    /// The ports are called `net_ring_<name>s` and `net_ring_<name>h`. Their number of descriptors and their receive
    /// pools have no effect, but DPDK requires both for a port.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a bad name or size, [`Error::NoMemory`], [`Error::TooManyPorts`], and the errors of
    /// opening a port.
    pub fn new(eal: &Eal, name: &str, size: u32, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
        {
            return Err(Error::Invalid {
                what: format!("a link called {name:?}"),
                remedy: format!("use 1 to {NAME_MAX} letters and digits"),
            });
        }
        let queues = config.rx_queues;
        let to_switch = (0..queues).map(|queue| Ring::create(eal, &format!("{name}_s{queue}"), size));
        let to_switch = to_switch.collect::<Result<_, _>>()?;
        let to_host = (0..config.tx_queues).map(|queue| Ring::create(eal, &format!("{name}_h{queue}"), size));
        let to_host = to_host.collect::<Result<_, _>>()?;
        let rings = Arc::new(Rings { to_switch, to_host });
        let open =
            |name: String, end, config| EthPort::from_device(attach(eal, &name, &rings, end, pool)?, config, pool);
        let of_host = PortConfig { rx_queues: config.tx_queues, tx_queues: queues, ..*config };
        let switch = open(format!("{name}s"), End::Switch, config)?;
        let host = open(format!("{name}h"), End::Host, &of_host)?;
        Ok(Self { switch, host })
    }
}

/// Creates the port `net_ring_<name>` from the rings.
fn attach(eal: &Eal, name: &str, rings: &Arc<Rings>, end: End, pool: &Mempool) -> Result<Device, Error> {
    let (rx, tx) = match end {
        End::Switch => (&rings.to_switch[..], &rings.to_host[..]),
        End::Host => (&rings.to_host[..], &rings.to_switch[..]),
    };
    let raw = |rings: &[Ring]| rings.iter().map(|ring| ring.raw.as_ptr()).collect::<Vec<_>>();
    let (rx, tx) = (raw(rx), raw(tx));
    let device = format!("net_ring_{name}");
    let invalid =
        |_| Error::Invalid { what: format!("a link called {name:?}"), remedy: "leave out zero bytes".to_owned() };
    let c_name = CString::new(name).map_err(invalid)?;
    let guard = eal.shared().control.lock().unwrap_or_else(PoisonError::into_inner);
    check_room_for(&device)?;
    let mark = log::mark();
    // SAFETY: EAL runs. The name is a string with a zero at its end, and the arrays have as many rings as stated; DPDK
    // copies them. The rings outlive the port, which shares ownership of them below.
    let id = unsafe {
        let (rx_count, tx_count) = (rx.len() as u32, tx.len() as u32);
        dpdk_sys::rte_eth_from_rings(c_name.as_ptr(), rx.as_ptr(), rx_count, tx.as_ptr(), tx_count, 0)
    };
    drop(guard);
    let Ok(id) = u16::try_from(id) else {
        return Err(Error::DeviceRefused { devargs: device, log: log::since(mark, "is the name taken?") });
    };
    Device::claim(eal, id, &device, Origin::Rings(Arc::clone(rings), end), pool)
}

impl Ring {
    /// Creates a ring for exactly `size` frames.
    fn create(eal: &Eal, name: &str, size: u32) -> Result<Self, Error> {
        let what = || format!("ring `{name}` of {size} frames");
        let c_name = CString::new(name).ok().filter(|_| (1..=1 << 20).contains(&size));
        let Some(c_name) = c_name else {
            return Err(Error::Invalid { what: what(), remedy: "use a size from 1 to 1048576".to_owned() });
        };
        let flags = HF_RING_SP_ENQ | HF_RING_SC_DEQ | HF_RING_EXACT;
        // SAFETY: EAL runs, and the name is a string with a zero at its end, which DPDK copies.
        let raw = unsafe { dpdk_sys::rte_ring_create(c_name.as_ptr(), size, HF_SOCKET_ANY, flags) };
        if let Some(raw) = NonNull::new(raw) {
            return Ok(Self { raw, _eal: Arc::clone(eal.shared()) });
        }
        // SAFETY: reads a variable of the calling thread.
        Err(if unsafe { dpdk_sys::hf_errno() } == dpdk_sys::libc::EEXIST {
            Error::DeviceExists { device: name.to_owned() }
        } else {
            Error::NoMemory { what: what(), mib: (size as usize * 8).div_ceil(1 << 20) }
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        const BATCH: usize = 64;
        let mut left: [*mut rte_mbuf; BATCH] = [std::ptr::null_mut(); BATCH];
        loop {
            // SAFETY: both ports are gone, since they share the rings, so no other code uses this one. It holds only
            // mbufs that their senders gave away, whose pools exist while they are out.
            let count = unsafe {
                let count = dpdk_sys::hf_ring_dequeue(self.raw.as_ptr(), left.as_mut_ptr().cast(), BATCH as u32);
                dpdk_sys::rte_pktmbuf_free_bulk(left.as_mut_ptr(), count);
                count
            };
            if count == 0 {
                break;
            }
        }
        // SAFETY: created in `create`, freed nowhere else, and empty and unused as shown above.
        unsafe { dpdk_sys::rte_ring_free(self.raw.as_ptr()) };
    }
}
