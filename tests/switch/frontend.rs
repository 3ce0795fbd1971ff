//! A vhost-user front end (the side of a virtual machine), written by hand so that it can misbehave.
//!
//! Messages: QEMU's docs/interop/vhost-user.rst. Rings: virtio 1.1, 2.6 "Split Virtqueues" and 5.1.6 (network headers).

use std::fs::File;
use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Requests of the protocol.
const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_OWNER: u32 = 3;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const SET_VRING_KICK: u32 = 12;
const SET_VRING_CALL: u32 = 13;

/// The device follows version 1 of virtio: its network header has 12 bytes.
const VERSION_1: u64 = 1 << 32;
const HEADER: usize = 12;

/// Memory of the guest, and where it is by the guest's own addresses and by those of its front end.
pub const MEMORY: u64 = 1 << 20;
const GUEST: u64 = 0x10_0000;
const FRONT: u64 = 0x7000_0000_0000;

/// Entries of a ring, and offsets of its parts in memory. Ring 0 receives, ring 1 transmits.
const ENTRIES: u16 = 64;
const RING: u64 = 0x4000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
/// Offset of the frames.
const FRAMES: u64 = 0x1_0000;

/// A connection to a socket, with its memory.
pub struct FrontEnd {
    stream: UnixStream,
    memory: File,
    events: Vec<OwnedFd>,
    sent: u16,
}

fn ring(index: u64) -> u64 {
    index * RING
}

impl FrontEnd {
    /// Connects to `path` and starts both rings.
    pub fn connect(path: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC)?);
        memory.set_len(MEMORY)?;
        let mut guest = Self { stream, memory, events: Vec::new(), sent: 0 };
        guest.tell(SET_OWNER, &[])?;
        guest.tell(GET_FEATURES, &[])?;
        guest.answer()?;
        guest.tell(SET_FEATURES, &VERSION_1.to_le_bytes())?;
        guest.share_memory(MEMORY)?;
        for index in 0..2_u64 {
            let numbers = |number: u32| [(index as u32).to_le_bytes(), number.to_le_bytes()].concat();
            guest.tell(SET_VRING_NUM, &numbers(ENTRIES.into()))?;
            guest.tell(SET_VRING_BASE, &numbers(0))?;
            let at = FRONT + ring(index);
            guest.place_ring(index as u32, at, at + USED, at + AVAILABLE)?;
            for request in [SET_VRING_CALL, SET_VRING_KICK] {
                let event = eventfd(0, EventfdFlags::CLOEXEC)?;
                guest.tell_with(request, &index.to_le_bytes(), Some(event.as_fd()))?;
                guest.events.push(event);
            }
        }
        Ok(guest)
    }

    /// Shares the memory, and claims that it has `size` bytes.
    pub fn share_memory(&mut self, size: u64) -> std::io::Result<()> {
        let region = [1, GUEST, size, FRONT, 0].map(u64::to_le_bytes).concat();
        let memory = self.memory.try_clone()?;
        self.tell_with(SET_MEM_TABLE, &region, Some(memory.as_fd()))
    }

    /// Gives the addresses of a ring's parts.
    pub fn place_ring(&mut self, index: u32, table: u64, used: u64, available: u64) -> std::io::Result<()> {
        let words = [table, used, available, 0].map(u64::to_le_bytes).concat();
        self.tell(SET_VRING_ADDR, &[&index.to_le_bytes()[..], &[0; 4], &words].concat())
    }

    fn tell(&mut self, request: u32, payload: &[u8]) -> std::io::Result<()> {
        self.tell_with(request, payload, None)
    }

    /// Sends a message with a descriptor.
    pub fn tell_with(
        &mut self,
        request: u32,
        payload: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> std::io::Result<()> {
        let header = [request, 1, payload.len() as u32].map(u32::to_le_bytes).concat();
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)), "room for one descriptor");
        }
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        sendmsg(&self.stream, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Reads an answer with one number.
    fn answer(&mut self) -> std::io::Result<u64> {
        let mut message = [0; 20];
        self.stream.read_exact(&mut message)?;
        Ok(u64::from_le_bytes(message[12..].try_into().expect("eight bytes")))
    }

    /// Writes to memory at this offset.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, offset).expect("memory takes it");
    }

    /// Writes entry `index` of the table of the transmit ring. `address` is the guest's.
    pub fn describe(&self, index: u16, address: u64, len: u32, flags: u16, next: u16) {
        let entry =
            [&address.to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()].concat();
        self.write(ring(1) + 16 * u64::from(index), &entry);
    }

    /// Makes `heads` available to the switch, each the first entry of a chain in the transmit ring.
    pub fn offer(&mut self, heads: &[u16]) {
        for head in heads {
            self.write(ring(1) + AVAILABLE + 4 + 2 * u64::from(self.sent % ENTRIES), &head.to_le_bytes());
            self.sent = self.sent.wrapping_add(1);
        }
        self.claim(self.sent);
    }

    /// Sets the count of available chains.
    pub fn claim(&self, count: u16) {
        self.write(ring(1) + AVAILABLE + 2, &count.to_le_bytes());
    }

    /// Sends a frame as a proper guest does.
    pub fn send(&mut self, frame: &[u8]) {
        let slot = self.sent % ENTRIES;
        let at = FRAMES + 2048 * u64::from(slot % 32);
        self.write(at, &[&[0; HEADER][..], frame].concat());
        self.describe(slot, GUEST + at, (HEADER + frame.len()) as u32, 0, 0);
        self.offer(&[slot]);
    }

    /// The guest's address of an offset in memory.
    pub fn address(offset: u64) -> u64 {
        GUEST + offset
    }
}
