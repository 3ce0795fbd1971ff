//! Ports that are out: shut and empty, so that they take settings that frames must not meet.

use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::replacement::Replacement;
use crate::io::Packet;

impl<P: Packet> Pipeline<P> {
    /// Whether own `port` is without frames: in its queues, and received by it and held anywhere.
    pub(crate) fn is_vacant(&self, port: usize) -> bool {
        let state = &self.ports[port];
        state.waiting.is_empty() && state.holding.is_empty() && !self.buffer.holding.contains(port)
    }

    /// Gives `port`, which is out, the state of `new`, and leaves the state before in it.
    #[cold]
    pub(super) fn replace(&mut self, port: usize, new: &mut Replacement) {
        assert!(self.links.shut.contains(port), "the port is shut before and after");
        assert!(!self.own.contains(port) || self.is_vacant(port), "the port is out");
        let state = &mut self.ports[port];
        (state.mac, state.mtu, state.bursts) = (new.mac, new.mtu, new.bursts);
        // How far ahead of the wires frames are posted depends on the lcore alone.
        new.shaper.set_slack(state.shaper.slack());
        new.pfc.go_on_from(&state.pfc);
        new.backlog.go_on_from(&state.backlog, self.now);
        std::mem::swap(&mut state.pfc, &mut new.pfc);
        std::mem::swap(&mut state.backlog, &mut new.backlog);
        std::mem::swap(&mut state.shaper, &mut new.shaper);
        if let Some(router) = &mut self.router {
            router.set_fitting(port, new.fitting);
        }
        if self.own.contains(port) {
            self.release_stuck(port);
            self.update_pfc(port);
            self.tell_pauses(port);
            let most_frames = self.own.iter().map(|port| self.ports[port].most_frames());
            self.shedder.set_least_frames(most_frames.min().unwrap_or(0));
        }
    }
}
