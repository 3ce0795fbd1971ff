//! Rules on joint ports: each lcore tells the others the truth.

use super::{Auditor, Check, ensure};
use crate::dataplane::egress::joint::told::Depth;
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::sets::{CLASSES, PortSet};

const TOLD: &str = "joint_state_told";

impl Auditor {
    /// Checks what lcores have told of joint ports: an owner its pauses and storms at once, every lcore the depths of
    /// its queues at the end of its poll.
    pub(crate) fn check_joint<P: Packet>(&self, fleet: &[Pipeline<P>]) -> Check {
        for part in fleet {
            for port in (part.joint.ports & part.own).iter() {
                self.check_pauses(part, port)?;
            }
            if self.lcores[part.lcore].has_polled {
                self.check_depths(part)?;
            }
        }
        Ok(())
    }

    fn check_pauses<P: Packet>(&self, part: &Pipeline<P>, port: usize) -> Check {
        let (told, pfc) = (part.joint.told(), &part.ports[port].pfc);
        let (dropping, drops) = (told.dropping(port), pfc.dropping());
        let (said, stopped) = (told.stopped(port), pfc.stopped_queues_at(part.now) | drops);
        ensure((said, dropping) == (stopped, drops), TOLD, || {
            let name = &self.ports[port].name;
            format!(
                "{name}: queues {stopped:?} are stopped and {drops:?} dropped, and {said:?} and {dropping:?} are told"
            )
        })
    }

    fn check_depths<P: Packet>(&self, part: &Pipeline<P>) -> Check {
        let (told, lcore) = (part.joint.told(), part.lcore);
        let mut standing = PortSet::EMPTY;
        for port in part.joint.ports.iter() {
            standing.set(port, part.ports[port].is_standing());
            for queue in 0..CLASSES {
                let held = &part.ports[port].queues[queue];
                let is_told = !part.ports[port].progress.is_stuck();
                let depth = Depth { cells: held.cells(), bytes: held.bytes() };
                let depth = if is_told { depth } else { Depth::default() };
                let said = told.depth(lcore, port, queue);
                ensure(depth == said, TOLD, || {
                    let name = &self.ports[port].name;
                    format!("{name} queue {queue}: lcore {lcore} holds {depth:?} and tells {said:?}")
                })?;
            }
        }
        let said = told.standing(lcore);
        ensure(standing == said, TOLD, || format!("lcore {lcore} holds frames for {standing:?} and tells {said:?}"))
    }
}
