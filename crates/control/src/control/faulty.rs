//! The ports of an lcore, with or without injected faults. A switch without `faults:` runs the plain ones: its packet
//! path has no instruction for faults.

use std::sync::Arc;

use super::idle;
use crate::config::Config;
use crate::dataplane::{Pipeline, Resting, Work};
use crate::dpdk::{self, EthIo, Mbuf};
use crate::faults::{FaultBoard, FaultTable, Faulty, LcoreFeed};
use crate::hosts::HostsOn;
use crate::io::Ports;
use crate::plan::mailbox::Receiver;
use crate::units::Ticks;

/// Ports with faults, on the clock of the lcores.
pub(super) type FaultyIo = Faulty<EthIo, fn() -> Ticks>;

/// Ports that a switch can run.
pub(super) trait LcorePorts: Ports<Pkt = Mbuf> + Send + Sized + 'static {
    /// Adapts the rests of an lcore with plain ports.
    fn resting(plain: Option<Resting<EthIo>>) -> Option<Resting<Self>>;
    /// The plain ports.
    fn plain_mut(&mut self) -> &mut EthIo;
    /// Returns the plain ports at the end.
    fn into_plain(self) -> EthIo;
}

impl LcorePorts for EthIo {
    fn resting(plain: Option<Resting<EthIo>>) -> Option<Resting<Self>> {
        plain
    }

    fn plain_mut(&mut self) -> &mut EthIo {
        self
    }

    fn into_plain(self) -> EthIo {
        self
    }
}

impl LcorePorts for FaultyIo {
    fn resting(plain: Option<Resting<EthIo>>) -> Option<Resting<Self>> {
        plain.map(|Resting { idle, mut rest }| Resting {
            idle,
            rest: Box::new(move |io: &Self, until| rest(io.plain(), until)),
        })
    }

    fn plain_mut(&mut self) -> &mut EthIo {
        Faulty::plain_mut(self)
    }

    fn into_plain(self) -> EthIo {
        self.end()
    }
}

/// The faults of a switch before its lcores run: the list, and the ends of the lcores.
pub(super) struct Prepared {
    pub board: Arc<FaultBoard>,
    receivers: Vec<Receiver<FaultTable>>,
}

/// Prepares the faults that `config` allows, on a clock of `hz` ticks a second. Those at the start begin now.
pub(super) fn prepare(config: &Config, hz: u64) -> Option<Prepared> {
    let faults = config.faults.as_ref()?;
    let (board, receivers) = FaultBoard::new(&config.switch, &faults.list, faults.seed, dpdk::now, hz);
    Some(Prepared { board, receivers })
}

impl Prepared {
    /// Puts the faults on the wires of each lcore's ports.
    pub fn wrap(self, io: Vec<EthIo>) -> Vec<FaultyIo> {
        let (table, seed) = (self.board.table(), self.board.seed);
        let parts = io.into_iter().zip(self.receivers).enumerate();
        let wrapped = parts.map(|(lcore, (io, tables))| {
            let clock: fn() -> Ticks = dpdk::now;
            let counters = self.board.counters().clone();
            Faulty::new(io, clock, LcoreFeed { table: &table, tables, counters, lcore, seed })
        });
        wrapped.collect()
    }
}

/// The parts of an lcore after its end, when its ports may be stopped.
pub(super) struct EndedLcore {
    pub io: EthIo,
    _pipeline: Pipeline<Mbuf>,
    _companion: Option<HostsOn<EthIo>>,
}

/// Runs `work` to its end.
pub(super) fn run<I: LcorePorts>(work: Work<I, HostsOn<EthIo>>) -> EndedLcore {
    let Work { pipeline, io, companion, .. } = work.run(dpdk::now);
    EndedLcore { io: io.into_plain(), _pipeline: pipeline, _companion: companion }
}

/// How lcore `lcore` rests, if it does.
pub(super) fn resting<I: LcorePorts>(
    config: &Config,
    lcore: usize,
    eal: &dpdk::Eal,
) -> Result<Option<Resting<I>>, super::RunError> {
    Ok(I::resting(idle::resting(config, lcore, eal)?))
}
