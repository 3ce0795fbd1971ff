//! Linux as the router's host: a network namespace with a tap for each router interface.
//!
//! Frames for the switch itself go to the tap of their interface, and frames that Linux sends there leave by the
//! interface. Routes, addresses and neighbours of the namespace go to the router.

mod addresses;
mod follow;
mod limits;
mod setup;

use std::os::fd::AsFd;
use std::time::Duration;

use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use self::addresses::{AddressChange, AddressWriter};
use self::follow::Follower;
use crate::linux::{Tap, make_namespace};
use crate::netlink::{Batch, Limits, NetlinkError, Options, Watcher};
use crate::route::{Attachment, InjectTo, PuntFrame, RoutingSpec};
use crate::router::kernel::Shortage;
use crate::router::{LinuxView, Outgoing, Router};
use crate::sets::PortSet;
use crate::units::Nanos;

/// Frames of one tap in one look, so that the others have their turn.
const FRAMES: usize = 64;
/// Shortest Ethernet frame without its check sequence. Linux pads none.
const SHORTEST: usize = 60;
/// Differences of the mirror in one look, in batches.
const BATCHES: usize = 4;

/// An error of the namespace or its taps.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The namespace cannot be made or entered.
    #[error(
        "network namespace `{name}` of `routing.linux`: {error}; run as root or with CAP_NET_ADMIN and CAP_SYS_ADMIN, \
         and make sure that /run/netns is writable"
    )]
    Namespace {
        /// Its name.
        name: String,
        /// The cause.
        error: std::io::Error,
    },
    /// A name that no Linux interface can have.
    #[error(
        "interface `{name}` cannot have a tap: Linux names have at most 15 letters or digits, and no `/`, `:` or `%`; \
         rename the port"
    )]
    Name {
        /// The interface.
        name: String,
    },
    /// A tap cannot be made.
    #[error(
        "tap `{name}` in network namespace `{namespace}`: {error}; it needs /dev/net/tun and CAP_NET_ADMIN, and no other \
         interface there may have this name"
    )]
    Tap {
        /// Its name.
        name: String,
        /// The namespace.
        namespace: String,
        /// The cause.
        error: std::io::Error,
    },
    /// A setting of the namespace cannot be written.
    #[error(
        "{path} in network namespace `{namespace}` cannot be set to {value}: {error}; a container needs a writable \
         /proc/sys, or set it before the switch starts"
    )]
    Setting {
        /// Its file.
        path: String,
        /// The namespace.
        namespace: String,
        /// The wanted value.
        value: &'static str,
        /// The cause.
        error: std::io::Error,
    },
    /// An error of netlink.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// A tap with its interface.
#[derive(Debug)]
struct Link {
    tap: Tap,
    /// Index of the link in the namespace.
    index: u32,
    /// VLAN and ports of the router interface, and the way of its frames.
    vlan: u16,
    ports: PortSet,
    to: InjectTo,
    has_carrier: bool,
    /// Addresses that the switch has given the tap.
    addresses: Vec<IpNet>,
}

/// The namespace with its taps. Dropping the value removes the taps.
pub(super) struct Kernel {
    links: Vec<Link>,
    writer: AddressWriter,
    follower: Follower,
    batches: Receiver<Batch>,
    frame: Vec<u8>,
    _watcher: Watcher,
    /// The watcher's thread has ended, which only a panic causes.
    is_blind: bool,
}

impl Kernel {
    /// Opens the namespace and the taps of `spec`, and leaves the answers of `router` to it; `None` if the router
    /// answers by itself.
    pub fn open(spec: &RoutingSpec, router: &mut Router) -> Result<Option<Self>, KernelError> {
        let Some(linux) = &spec.linux else { return Ok(None) };
        let name = &linux.namespace;
        for Shortage { key, state, remedy } in router.leave_answers_to_kernel(limits::read()) {
            super::warn(&format!("{key} {state}; {remedy}; docs/linux.md"));
        }
        let failed = |error| KernelError::Namespace { name: name.clone(), error };
        make_namespace(name).map_err(failed)?;
        let (namespace, writer, taps) = setup::open(name, spec)?;
        let links = taps.into_iter().zip(&spec.interfaces).map(|((tap, index), interface)| Link {
            tap,
            index,
            vlan: interface.vlan,
            ports: interface.ports,
            to: match interface.attachment {
                Attachment::Port(port) => InjectTo::Port(port),
                Attachment::Vlan => InjectTo::Vlan(interface.vlan),
            },
            has_carrier: false,
            addresses: interface.addresses.clone(),
        });
        let links: Vec<Link> = links.collect();
        let follower = Follower::new(links.iter().map(|link| link.index).collect());
        let (watcher, batches) = Watcher::start(&namespace, options(spec))?;
        let thread = |error| NetlinkError::Socket { namespace: name.clone(), action: "start a thread", error };
        let writer = AddressWriter::start(writer).map_err(thread)?;
        let longest = spec.interfaces.iter().map(|interface| usize::from(interface.mtu)).max().unwrap_or(1500) + 14;
        // A byte more, so that a longer frame is noticed.
        let frame = vec![0; longest.max(SHORTEST) + 1];
        Ok(Some(Self { links, writer, follower, batches, frame, _watcher: watcher, is_blind: false }))
    }

    /// Gives each tap the link state of its interface's ports: an interface has a link while one of its ports has.
    pub fn set_links(&mut self, up: PortSet) {
        for link in &mut self.links {
            let has_carrier = !(link.ports & up).is_empty();
            if link.has_carrier != has_carrier && link.tap.set_carrier(has_carrier).is_ok() {
                link.has_carrier = has_carrier;
            }
        }
    }

    /// Has the taps get the addresses of a new configuration, without waiting for the kernel, and the ports of their
    /// interfaces.
    pub fn configure(&mut self, router: &Router) {
        for (index, link) in self.links.iter_mut().enumerate() {
            link.ports = router.ports_of(index as u16);
            let wanted = router.configured_addresses(index as u16);
            if link.addresses == wanted {
                continue;
            }
            let change = |address: &IpNet, is_new| AddressChange { link: link.index, address: *address, is_new };
            let gone = link.addresses.iter().filter(|address| !wanted.contains(address));
            gone.for_each(|address| self.writer.send(change(address, false)));
            let new = wanted.iter().filter(|address| !link.addresses.contains(address));
            new.for_each(|address| self.writer.send(change(address, true)));
            link.addresses = wanted.to_vec();
        }
    }

    /// Gives Linux a punted frame.
    pub fn deliver(&mut self, punted: &PuntFrame, router: &mut Router) {
        let Some(index) = self.links.iter().position(|link| link.vlan == punted.vlan) else { return };
        let untagged = untag(punted, &mut self.frame);
        let is_taken = untagged.is_some_and(|frame| self.links[index].tap.write(frame).is_ok());
        let counts = &mut router.linux_mut().taps[index];
        *(if is_taken { &mut counts.to_linux } else { &mut counts.to_linux_drops }) += 1;
    }

    /// Takes the frames that Linux sends, and passes them to `inject`, which tells whether it took them.
    pub fn collect(&mut self, router: &mut Router, now: Nanos, mut inject: impl FnMut(&Outgoing) -> bool) -> usize {
        let mut taken = 0;
        for (index, link) in self.links.iter().enumerate() {
            for _ in 0..FRAMES {
                let Ok(Some(len)) = link.tap.read(&mut self.frame) else { break };
                let mut bytes = self.frame[..len].to_vec();
                bytes.resize(len.max(SHORTEST), 0);
                // A frame that fills the buffer may have been cut.
                let is_whole = len < self.frame.len();
                router.note_linux_frame(index as u16, &bytes, now);
                let is_taken = is_whole && inject(&Outgoing { bytes, to: link.to, vlan: link.vlan });
                let counts = &mut router.linux_mut().taps[index];
                *(if is_taken { &mut counts.from_linux } else { &mut counts.from_linux_drops }) += 1;
                taken += 1;
            }
        }
        taken
    }

    /// Takes differences of the namespace into the router. Returns their number.
    pub fn follow(&mut self, router: &mut Router, now: Nanos) -> usize {
        let mut taken = 0;
        for _ in 0..BATCHES {
            let batch = match self.batches.try_recv() {
                Ok(batch) => batch,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    router.linux_mut().is_synced = false;
                    if !std::mem::replace(&mut self.is_blind, true) {
                        super::warn("routes of the kernel are no longer followed; restart the switch");
                    }
                    break;
                }
            };
            if let Some(failure) = &batch.failure {
                super::warn(&format!("the kernel's tables could not be read: {failure}"));
            }
            for change in &batch.changes {
                self.follower.apply(change, router, now);
            }
            note(&batch, self.follower.has_all(), router.linux_mut());
            taken += batch.changes.len();
        }
        self.follower.expire(router, now);
        self.follower.finish(router, now);
        self.renew_addresses(router);
        taken
    }

    /// Gives open taps the addresses of the configuration that they have lost.
    fn renew_addresses(&mut self, router: &Router) {
        let links = &self.links;
        let lost = self.follower.take_lost(router, |index, lost| links[usize::from(index)].addresses.contains(lost));
        for (index, address) in lost {
            self.writer.send(AddressChange { link: links[usize::from(index)].index, address, is_new: true });
        }
    }

    /// Confirms the neighbours that never expire in Linux. Call it a few times a second.
    pub fn refresh(&self, router: &mut Router, now: Nanos) {
        self.follower.refresh(router, now);
    }

    /// Waits until Linux sends a frame, for at most `longest`.
    pub fn wait(&self, longest: Duration) {
        let mut taps: Vec<PollFd<'_>> =
            self.links.iter().map(|link| PollFd::from_borrowed_fd(link.tap.as_fd(), PollFlags::IN)).collect();
        let longest = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        let _ = poll(&mut taps, Some(&longest));
        // A tap that was removed is always ready.
        if taps.iter().any(|tap| tap.revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The settings of the mirror. It has room for the routes that the forwarding table has room for, and for as many that
/// are not the best of their prefix.
fn options(spec: &RoutingSpec) -> Options {
    let (all, limits) = (spec.fib.ipv4 as usize + spec.fib.ipv6 as usize, Limits::default());
    Options { limits: Limits { routes: limits.routes.max(2 * all), ..limits }, ..Options::default() }
}

/// Copies the state of the mirror for observers; `has_all` tells whether the router has all of it.
fn note(batch: &Batch, has_all: bool, linux: &mut LinuxView) {
    linux.is_synced = batch.is_synced && has_all;
    let counters = &batch.counters;
    (linux.dumps, linux.overruns) = (counters.dumps, counters.overruns);
    (linux.malformed, linux.refused) = (counters.malformed, counters.refused);
}

/// The frame without its VLAN tag: addresses, and the type directly before the network header.
fn untag<'a>(punted: &'a PuntFrame, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let kept = usize::from(punted.l3_offset).checked_sub(2)?;
    if kept == 12 {
        return Some(&punted.bytes);
    }
    let (addresses, remaining) = (punted.bytes.get(..12)?, punted.bytes.get(kept..)?);
    let untagged = buffer.get_mut(..12 + remaining.len())?;
    untagged[..12].copy_from_slice(addresses);
    untagged[12..].copy_from_slice(remaining);
    Some(untagged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::PuntCause;

    fn punted(bytes: Vec<u8>, l3_offset: u8) -> PuntFrame {
        PuntFrame { bytes, port: 0, vlan: 10, l3_offset, cause: PuntCause::Arp, may_wait: false }
    }

    #[test]
    fn vlan_tag_is_removed_and_an_untagged_frame_stays() {
        let (addresses, remaining) = ([7; 12], [8, 6, 0, 1, 2, 3]);
        let plain = [&addresses[..], &remaining].concat();
        let tagged = [&addresses[..], &[0x81, 0, 0, 10], &remaining].concat();
        let mut buffer = [0; 64];
        assert_eq!(untag(&punted(plain.clone(), 14), &mut buffer), Some(&plain[..]));
        assert_eq!(untag(&punted(tagged, 18), &mut buffer), Some(&plain[..]));
        assert_eq!(untag(&punted(plain, 0), &mut buffer), None);
        assert_eq!(untag(&punted(vec![0; 5], 18), &mut buffer), None);
        assert_eq!(untag(&punted(vec![0; 90], 18), &mut buffer), None, "longer than the buffer");
    }
}
