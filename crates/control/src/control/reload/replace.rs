//! Ports that are taken out and put in again for a change: with another device, address, MTU, rate or PFC mode.
//!
//! A port leaves like one that the operator shuts: its peer gets XON and the farewells, and frames that wait for it are
//! dropped. When no frame of it is left in the buffer, its device is exchanged, the lcores take its new settings, and
//! it is in use again when its parts of the buffer have their sizes. Other ports go on. If the port does not become
//! empty, or its new device cannot be opened, it goes on as before.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Change, Reloader, TAKE_TIME};
use crate::api::model::{Reload, ReloadOutcome};
use crate::config::model::DeviceKind;
use crate::config::{Config, settings};
use crate::dataplane::LiveConfig;
use crate::dpdk::{EthIo, PortQueues};
use crate::forward::StaticChange;
use crate::plan::mailbox::Sender;
use crate::sets::PortSet;

/// Longest time for a port to become empty. Frames that came by it may wait at ports whose peers pause.
pub(super) const LEAVE_TIME: Duration = Duration::from_secs(2);

/// Queues of ports for an lcore; `None`: the port has no device from now on. Afterwards it has the queues before.
pub struct DeviceExchange(Vec<(usize, Option<PortQueues>)>);

impl DeviceExchange {
    /// Exchanges the queues of `io` by these.
    pub fn apply(&mut self, io: &mut EthIo) {
        for (port, queues) in &mut self.0 {
            io.exchange(*port, queues);
        }
    }
}

/// `config` with `ports` shut.
fn shut(config: &Config, ports: PortSet) -> Config {
    let mut config = config.clone();
    for port in ports.iter() {
        config.switch.ports[port].live.is_enabled = false;
    }
    config
}

impl Reloader {
    /// Reasons for which `wanted`, with the differences `found`, needs a restart.
    pub(super) fn obstacles(&self, wanted: &Config, found: &[settings::Difference]) -> Vec<String> {
        let running = &self.running.switch;
        let fixed = found.iter().filter(|difference| !difference.is_live).map(|difference| {
            let ports = (0..running.ports.len()).filter(|_| difference.is_out);
            let mut named = ports.filter(|&port| difference.ports.contains(&running.ports[port].name));
            let obstacle = |port: usize| running.obstacle(port).or(wanted.switch.obstacle(port));
            let reason =
                named.next().map(|port| obstacle(port).unwrap_or("the virtual host of a `ring` stays as it is"));
            let of_classes = || running.obstacle_of_classes().or(wanted.switch.obstacle_of_classes());
            let reason = reason.or_else(|| of_classes().filter(|_| difference.is_kind_of_class()));
            let reason = reason.map_or(String::new(), |reason| format!(", because {reason}"));
            format!("{difference}: needs a restart{reason}")
        });
        let mut errors: Vec<String> = fixed.collect();
        if errors.is_empty() && running.with_live_of(&wanted.switch) != wanted.switch {
            errors.push(
                "settings that follow from these differ, such as the MTU of a router's interface: needs a restart"
                    .to_owned(),
            );
        }
        let rests = |config: &Config, lcore| config.idle_of(lcore).is_some();
        let is_changed = |lcore: &usize| rests(self.target(), *lcore) != rests(wanted, *lcore);
        for lcore in (0..usize::from(running.lcores)).filter(is_changed) {
            errors.push(format!("lcore {lcore} would rest without traffic, or would not any more: needs a restart"));
        }
        if errors.is_empty() {
            errors.extend(self.ports.borrow().check_room(wanted).err());
            errors.extend(self.places_after(&StaticChange::between(&running.fdb, &wanted.switch.fdb)).err());
        }
        errors
    }

    /// A warning that ports in use are among `out`.
    pub(super) fn outage(&self, out: PortSet, wanted: &Config) -> Option<String> {
        let in_use = out - self.running.switch.shut_ports();
        let names: Vec<&str> = in_use.iter().map(|port| wanted.switch.ports[port].name.as_str()).collect();
        let text = "taken out and put in again: frames that wait for it are dropped, and its link goes down if its device \
                    is opened anew";
        (!names.is_empty()).then(|| format!("{}: {text}", names.join(", ")))
    }

    /// The configuration that runs once the ports that are out are in again.
    pub(super) fn target(&self) -> &Config {
        self.entering.as_deref().unwrap_or(&self.running)
    }

    /// Ports that are out while `wanted` is applied: those that take settings or devices, and those that are out since
    /// an earlier reload.
    pub(super) fn out_for(&self, wanted: &Config) -> PortSet {
        let waiting = self.running.switch.shut_ports() - self.target().switch.shut_ports();
        self.running.switch.replaced_by(&wanted.switch) | self.changed_devices(wanted) | waiting
    }

    /// Ports whose device is not as `wanted` has it, or whose queues are under way.
    fn changed_devices(&self, wanted: &Config) -> PortSet {
        self.ports.borrow().other_than(wanted) | self.unsettled
    }

    /// Applies `wanted`, for which the ports `out` must be out.
    pub(super) async fn replace(&mut self, mut wanted: Config, out: PortSet, answer: &mut Reload) {
        let before = self.target().clone();
        self.entering = None;
        if let Err(error) = self.leave(&wanted, out).await {
            return self.go_on(before, out, error, answer).await;
        }
        let changed = self.changed_devices(&wanted);
        if let Err((before, error)) = self.exchange(before.clone(), changed, &wanted).await {
            return self.go_on(before, out, error, answer).await;
        }
        for port in changed.iter().filter(|&port| !wanted.devices[port].has_mac) {
            let address = self.kept_address(port).or(self.ports.borrow().own_address(port));
            let spec = &mut wanted.switch.ports[port];
            spec.mac = address.unwrap_or(spec.mac);
        }
        match self.settle(wanted, out).await {
            Ok(warning) => {
                answer.outcome = ReloadOutcome::Applied;
                answer.warnings.extend(warning);
            }
            Err(error) => {
                self.entering = Some(Box::new(before));
                answer.outcome = ReloadOutcome::Busy;
                answer.errors.push(error);
            }
        }
    }

    /// Goes on by `before` after `error`.
    async fn go_on(&mut self, before: Config, out: PortSet, error: String, answer: &mut Reload) {
        answer.outcome = ReloadOutcome::Busy;
        answer.errors.push(error);
        match self.settle(before.clone(), out).await {
            Ok(warning) => answer.warnings.extend(warning),
            Err(error) => {
                self.entering = Some(Box::new(before));
                answer.errors.push(error);
            }
        }
    }

    /// Applies `config`, while the ports `out` stay out, and puts them in as soon as their parts of the buffer have
    /// their sizes. Returns a warning if that lasts.
    async fn settle(&mut self, config: Config, out: PortSet) -> Result<Option<String>, String> {
        let taken = self.go_by(shut(&config, out), PortSet::EMPTY).await;
        taken.map_err(|error| format!("{error}; the ports that were taken out stay shut: reload again"))?;
        self.entering = Some(Box::new(config));
        if self.resizing.is_none() {
            return Ok(self.enter().await);
        }
        let waits = "the ports that were taken out are in again when other parts of the buffer have given up cells: \
                     `holdfast show buffers` says which are pending";
        Ok(Some(waits.to_owned()))
    }

    /// Puts the ports in that are out, once their parts of the buffer have their sizes. Returns a warning if an lcore
    /// does not take that.
    pub async fn enter(&mut self) -> Option<String> {
        let wanted = self.entering.take()?;
        let error = self.go_by((*wanted).clone(), PortSet::EMPTY).await.err()?;
        self.entering = Some(wanted);
        Some(format!("{error}; the ports that were taken out stay shut: reload again"))
    }

    /// Shuts the ports `out`, and waits until they are empty. Injected faults become those of `wanted`: they may be
    /// refused, and that must be known first.
    async fn leave(&mut self, wanted: &Config, out: PortSet) -> Result<(), String> {
        let left = shut(&Config { faults: wanted.faults.clone(), ..self.running.clone() }, out);
        self.go_by(left, out).await?;
        if self.are_empty(out) {
            return Ok(());
        }
        let full = out.iter().filter(|&port| !self.are_empty(PortSet::only(port)));
        let names: Vec<&str> = full.map(|port| self.running.switch.ports[port].name.as_str()).collect();
        Err(format!(
            "frames that came by {} wait at ports whose peers pause: `holdfast show queues` names them; shut these, or \
             reload later",
            names.join(", ")
        ))
    }

    /// Applies `config`, which needs no other device, and waits for a limited time until the ports `leaving` are empty.
    async fn go_by(&mut self, config: Config, leaving: PortSet) -> Result<(), String> {
        let live_config = LiveConfig::between(&self.running.switch, &config.switch, self.hz);
        let live_config = live_config.ok_or("a setting of the ports cannot change while they are out")?;
        let (settings, mut step) = (Arc::new(settings::all(&config)), Reload::default());
        let change = Change { live_config: live_config.leaving(leaving), wanted: config, leaving };
        self.apply(change, settings, &mut step).await;
        if step.outcome == ReloadOutcome::Applied { Ok(()) } else { Err(step.errors.join("; ")) }
    }

    /// Exchanges the devices of the ports `changed` by those of `wanted`. On error the former ones are open again, but
    /// those that cannot be: the configuration that is returned has none at these ports.
    async fn exchange(
        &mut self,
        mut before: Config,
        changed: PortSet,
        wanted: &Config,
    ) -> Result<(), (Config, String)> {
        if changed.is_empty() {
            return Ok(());
        }
        // The lcores give their queues back first.
        if let Err(error) = self.give(changed.iter().map(|port| (port, None)).collect()).await {
            return Err((before, error));
        }
        let error = match self.open(changed, wanted) {
            Ok(queues) => return self.give(queues).await.map_err(|error| (before, error)),
            Err(error) => error,
        };
        let (mut again, mut errors) = (Vec::new(), vec![error]);
        for port in changed.iter() {
            match self.open(PortSet::only(port), &before) {
                Ok(queues) => again.extend(queues),
                Err(error) => {
                    before.devices[port].kind = DeviceKind::Absent;
                    before.switch.ports[port].is_absent = true;
                    errors.push(format!("its former device is lost too, and the port stays without one: {error}"));
                }
            }
        }
        errors.extend(self.give(again).await.err());
        Err((before, errors.join("; ")))
    }

    /// Closes the devices of `ports`, and opens those of `config`. On error none of them is open.
    fn open(&self, ports: PortSet, config: &Config) -> Result<Vec<(usize, Option<PortQueues>)>, String> {
        let mut all = self.ports.borrow_mut();
        ports.iter().try_for_each(|port| all.close(port)).map_err(|error| error.to_string())?;
        let opened = ports.iter().map(|port| Ok((port, all.reopen(port, config)?)));
        let opened: Result<Vec<_>, crate::control::RunError> = opened.collect();
        opened.map_err(|error| {
            // Their queues are dropped.
            ports.iter().for_each(|port| drop(all.close(port)));
            error.to_string()
        })
    }

    /// Gives lcores the queues of their ports, takes those before, and drops them.
    async fn give(&mut self, mut queues: Vec<(usize, Option<PortQueues>)>) -> Result<(), String> {
        let given: PortSet = queues.iter().map(|(port, _)| *port).collect();
        self.unsettled |= given;
        self.be_taken().await?;
        for (lcore, sender) in self.exchanges.iter_mut().enumerate() {
            let ports = &self.running.switch.ports;
            let own = queues.extract_if(.., |(port, _)| usize::from(ports[*port].lcore) == lcore).collect();
            let is_given = sender.send(Box::new(DeviceExchange(own))).is_ok();
            debug_assert!(is_given, "the lcore has returned the exchange before");
        }
        // An lcore looks for queues when settings come.
        let spec = &self.running.switch;
        let nothing = LiveConfig::between(spec, spec, self.hz).ok_or("the plan equals itself")?;
        for sender in &mut self.senders {
            let is_given = sender.send(Box::new(nothing.clone())).is_ok();
            debug_assert!(is_given, "the lcore has taken all earlier settings");
        }
        self.be_taken().await?;
        self.unsettled -= given;
        Ok(())
    }

    /// Waits until the lcores have taken all that they were sent.
    async fn be_taken(&mut self) -> Result<(), String> {
        let end = Instant::now() + TAKE_TIME;
        loop {
            let are_taken = self.exchanges.iter_mut().all(Sender::is_idle);
            if self.is_idle() && are_taken {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err("an lcore has not polled: check whether it hangs".to_owned());
            }
            self.wait().await;
        }
    }
}
