//! What crosses from lcore to lcore: frames on their way to a queue, and news of stations.
//!
//! A frame is admitted by the lcore that owns the port it came in by, and queued, scheduled and released by the one that
//! owns the port it leaves by. Each pair of lcores has a ring each way that holds as many frames as the buffer has cells,
//! so that what was admitted always finds room.

use super::handoff::{Consumer, Producer, ring};
use super::meta::Meta;
use super::pipeline::Pipeline;
use super::tag::Tag;
use crate::forward::fdb::{Learned, Station};
use crate::packet::{Packet, Ports};
use crate::sets::BURST;

/// News of stations that a ring holds. What finds no room is told with the station's next frame.
const NEWS: usize = 1024;

/// Frames that a poll takes over from one lcore: as many as it receives from a port at most.
const TAKEN: usize = 16 * BURST;

/// An admitted frame on its way to its queue.
#[derive(Debug)]
pub(super) struct Handed<P> {
    pub packet: P,
    pub tag: Tag,
    /// Port it leaves by.
    pub egress: u8,
    /// Its queue must not refuse it: it is lossless, or its group had it guaranteed.
    pub kept: bool,
    /// An IP packet that cannot be marked, which WRED drops in its place.
    pub droppable: bool,
}

impl<P> Handed<P> {
    /// A frame for a queue of `egress`, which must not refuse it if it is `kept`.
    #[inline]
    pub fn new(packet: P, meta: &Meta, egress: u8, kept: bool) -> Self {
        Self { packet, tag: meta.tag, egress, kept, droppable: meta.is_droppable() }
    }
}

/// A station seen by another lcore.
#[derive(Debug, Clone, Copy)]
pub(super) struct News {
    pub station: Station,
    pub port: u8,
}

/// This lcore's ends of the rings to and from another.
pub(super) struct Neighbour<P> {
    pub frames_out: Producer<Handed<P>>,
    pub frames_in: Consumer<Handed<P>>,
    news_out: Producer<News>,
    news_in: Consumer<News>,
}

impl<P> std::fmt::Debug for Neighbour<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Neighbour").finish_non_exhaustive()
    }
}

/// Those of one lcore, by number; itself left out.
pub(super) type Neighbours<P> = Vec<Option<Box<Neighbour<P>>>>;

/// The rings among `lcores` lcores, each for `frames` frames, by lcore.
pub(super) fn neighbours<P: Send>(lcores: usize, frames: usize) -> Vec<Neighbours<P>> {
    let mut all: Vec<Neighbours<P>> = (0..lcores).map(|_| (0..lcores).map(|_| None).collect()).collect();
    let pairs = (0..lcores).flat_map(|one| (one + 1..lcores).map(move |other| (one, other)));
    for (one, other) in pairs {
        let (one_end, other_end) = link(frames);
        all[one][other] = Some(Box::new(one_end));
        all[other][one] = Some(Box::new(other_end));
    }
    all
}

/// The rings each way between two lcores, by their ends.
fn link<P: Send>(frames: usize) -> (Neighbour<P>, Neighbour<P>) {
    let (frames_there, frames_from_one) = ring(frames + BURST);
    let (frames_back, frames_from_other) = ring(frames + BURST);
    let (news_there, news_from_one) = ring(NEWS);
    let (news_back, news_from_other) = ring(NEWS);
    let one = Neighbour {
        frames_out: frames_there,
        frames_in: frames_from_other,
        news_out: news_there,
        news_in: news_from_other,
    };
    let other =
        Neighbour { frames_out: frames_back, frames_in: frames_from_one, news_out: news_back, news_in: news_from_one };
    (one, other)
}

impl<P: Packet> Pipeline<P> {
    /// Takes what other lcores have handed over to its queues. Returns how many frames there were.
    #[inline]
    pub(super) fn take_handed<I: Ports<Pkt = P>>(&mut self, io: &mut I) -> usize {
        let mut taken = 0;
        for lcore in 0..self.neighbours.len() {
            // Out of self, so that frames may go from it to the rest.
            let Some(mut neighbour) = self.neighbours[lcore].take() else { continue };
            let ready = neighbour.frames_in.refresh();
            if ready > 0 {
                self.counters.lcores[self.lcore].handoff_highest_frames.raise(ready as u64);
            }
            let mut left = ready.min(TAKEN);
            taken += left;
            while left > 0 {
                let frames = left.min(BURST);
                self.enqueue_handed(io, &mut neighbour.frames_in, frames);
                // The ring has room for a burst beyond what the buffer has cells.
                neighbour.frames_in.release();
                left -= frames;
            }
            self.neighbours[lcore] = Some(neighbour);
        }
        taken
    }

    /// Makes what this lcore has handed to others visible to them: once a burst.
    #[inline]
    pub(super) fn publish_handed(&mut self) {
        for neighbour in self.neighbours.iter_mut().flatten() {
            let frames = neighbour.frames_out.publish();
            if frames > 0 {
                self.counters.lcores[self.lcore].handed_off_frames.add(frames as u64);
            }
        }
    }

    /// Learns the stations that other lcores have seen.
    #[inline]
    pub(super) fn take_news(&mut self) {
        for neighbour in self.neighbours.iter_mut().flatten() {
            if neighbour.news_in.refresh() == 0 {
                continue;
            }
            while let Some(News { station, port }) = neighbour.news_in.pop() {
                // Whether its link is up is asked when a frame is to go there.
                if self.fdb.hear(station, usize::from(port)) == Learned::Full {
                    self.counters.lcores[self.lcore].fdb_full.add(1);
                }
            }
            neighbour.news_in.release();
        }
    }

    /// Learns that `station` is at `port`, and tells the other lcores of what they cannot know.
    pub(super) fn learn_source(&mut self, station: Station, port: usize) -> Learned {
        debug_assert!(!station.mac().is_group() && !station.mac().is_zero(), "no station has such an address");
        let learned = self.fdb.learn(station, port);
        if matches!(learned, Learned::New | Learned::Refreshed) && self.neighbours.len() > 1 {
            self.tell(News { station, port: port as u8 });
        }
        learned
    }

    #[cold]
    fn tell(&mut self, news: News) {
        let mut told = true;
        for neighbour in self.neighbours.iter_mut().flatten() {
            told &= neighbour.news_out.push(news).is_ok();
            neighbour.news_out.publish();
        }
        if !told {
            self.fdb.tell_again(news.station);
        }
    }
}
