//! Own addresses that Linux has: those of interfaces beside the configured ones, and those of no interface, such as a
//! loopback's.

use std::net::IpAddr;

use ipnet::IpNet;

use super::Router;
use super::interface::{Attached, Interface};
use super::rib::Source;
use super::view::LinuxView;
use crate::route::GroupId;
use crate::sets::PortSet;
use crate::units::Nanos;

impl Router {
    /// Sets the addresses and networks that Linux has for an interface. Configured ones stay, and reloads keep both.
    pub fn set_learned(&mut self, index: u16, attached: Attached, now: Nanos) {
        let Some(learned) = self.learned.get_mut(usize::from(index)) else { return };
        *learned = attached;
        let wanted = self.with_learned(index, self.configured_addresses(index));
        self.attach(index, wanted, now);
    }

    /// Configured addresses of an interface.
    #[must_use]
    pub fn configured_addresses(&self, index: u16) -> &[IpNet] {
        self.spec.interfaces.get(usize::from(index)).map_or(&[], |interface| &interface.addresses)
    }

    /// Ports that can carry the frames of an interface.
    #[must_use]
    pub fn ports_of(&self, index: u16) -> PortSet {
        self.interfaces.get(usize::from(index)).map_or(PortSet::EMPTY, |interface| interface.ports)
    }

    /// Configured addresses and networks of an interface, and those that Linux has beside them.
    pub(super) fn with_learned(&self, index: u16, configured: &[IpNet]) -> Attached {
        let derived = IpAddr::from(self.link_local(index));
        let mut all = Attached::configured(configured);
        let Some(learned) = self.learned.get(usize::from(index)) else { return all };
        // The interface has its link-local address anyway.
        for address in learned.addresses.iter().filter(|address| address.addr() != derived) {
            if !all.addresses.contains(address) {
                all.addresses.push(*address);
            }
        }
        all.networks.extend(&learned.networks);
        all.networks.sort_unstable();
        all.networks.dedup();
        all
    }

    /// Sets the own addresses that belong to no interface. Packets to them are for the switch by any interface.
    pub fn set_loopbacks(&mut self, addresses: Vec<IpAddr>) {
        if self.loopbacks == addresses {
            return;
        }
        let before = std::mem::replace(&mut self.loopbacks, addresses);
        for address in before {
            if !self.is_own_address(address) {
                self.drop_group(Source::Local, IpNet::from(address));
            }
        }
        for address in self.loopbacks.clone() {
            self.set_group(Source::Local, IpNet::from(address), GroupId::LOCAL);
        }
        self.update_own();
    }

    fn is_own_address(&self, address: IpAddr) -> bool {
        self.loopbacks.contains(&address) || self.interfaces.iter().any(|one| one.own().any(|own| own == address))
    }

    /// Gives the packet path all own addresses, which no packet may have as its source.
    pub(super) fn update_own(&mut self) {
        let anycasts = self.interfaces.iter().flat_map(Interface::anycasts).map(IpAddr::from);
        let own = self.interfaces.iter().flat_map(Interface::own).chain(anycasts);
        let broadcasts = self.interfaces.iter().flat_map(Interface::broadcasts);
        self.tables.set_own(own.chain(self.loopbacks.iter().copied()), broadcasts);
    }

    /// The link-local address of an interface that follows from its MAC address; unspecified if there is no such
    /// interface.
    #[must_use]
    pub fn link_local(&self, index: u16) -> std::net::Ipv6Addr {
        self.interfaces.get(usize::from(index)).map_or(std::net::Ipv6Addr::UNSPECIFIED, |one| one.link_local)
    }

    /// The exchange with Linux, for the caller to update.
    pub fn linux_mut(&mut self) -> &mut LinuxView {
        &mut self.linux
    }
}
