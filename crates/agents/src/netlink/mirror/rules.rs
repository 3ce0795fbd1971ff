//! Effects of events, among them those that the kernel has without a message.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::routes::{Family, Target};
use super::table::Put;
use super::{Mirror, TableName};
use crate::netlink::model::{Address, LinkState, Neighbour, NextHopObject, RouteHops};

impl Mirror {
    /// Sets a link, and applies the effects of its going up or down.
    pub(super) fn put_link(&mut self, state: LinkState, is_dumped: bool) {
        let index = state.link.index;
        let put =
            if is_dumped { self.links.put_dumped(index, state.clone()) } else { self.links.put(index, state.clone()) };
        let old = match put {
            Put::Same => return,
            Put::Refused => return self.refuse(TableName::Links),
            Put::New => None,
            Put::Changed(old) => Some(old),
        };
        self.published_links.mark(index);
        // The first description of a link is no transition.
        let Some(old) = old else { return self.touch_link(index) };
        let is_disabled = old.link.is_admin_up && !state.link.is_admin_up;
        if is_disabled {
            self.routes.disable_link(index, |_| true);
        }
        if is_disabled || (old.has_carrier && !state.has_carrier) {
            self.flush_objects_on(index);
        }
        let is_enabled = !old.link.is_admin_up && state.link.is_admin_up;
        if is_enabled || (!old.link.is_up && state.link.is_up) {
            self.routes.revive_link(index, |_, hop| {
                hop.is_linkdown = false;
                hop.is_dead &= !is_enabled;
            });
        }
        if old.link.is_up != state.link.is_up {
            self.touch_link(index);
        }
        // A dump confirms the rules. It also finds the flushes of a flap that the kernel tells in one message.
        let transition = |state: &LinkState| (state.link.is_admin_up, state.link.is_up, state.carrier_changes);
        self.wants_dump |= transition(&old) != transition(&state);
    }

    /// Removes a link with everything on it.
    pub(super) fn remove_link(&mut self, index: u32) {
        if self.links.remove(index).is_none() {
            return;
        }
        self.wants_dump = true;
        self.published_links.mark(index);
        self.make_room(TableName::Links);
        self.routes.remove_link(index);
        self.flush_objects_on(index);
        let addresses: Vec<Address> = self.addresses.range(addresses_of(index)).map(|(address, ())| *address).collect();
        for address in addresses {
            self.drop_address(address);
        }
        let neighbours: Vec<IpAddr> =
            self.neighbours.range(neighbours_of(index)).map(|((_, address), _)| *address).collect();
        neighbours.into_iter().for_each(|address| self.remove_neighbour(index, address));
    }

    /// Sets an address. The kernel enables IPv4 on a link with its first IPv4 address: it revives next hops there.
    pub(super) fn put_address(&mut self, address: Address, is_dumped: bool) {
        let put = if is_dumped { self.addresses.put_dumped(address, ()) } else { self.addresses.put(address, ()) };
        match put {
            Put::Same => return,
            Put::Refused => return self.refuse(TableName::Addresses),
            Put::New | Put::Changed(_) => self.published_addresses.mark(address),
        }
        let Some(state) = self.links.get(&address.index).filter(|state| state.link.is_admin_up) else { return };
        if Family::of(address.address) == Family::V6 {
            return;
        }
        let has_carrier = state.has_carrier;
        self.routes.revive_link(address.index, |family, hop| {
            let is_concerned = family == Family::V4;
            hop.is_dead &= !is_concerned;
            hop.is_linkdown &= !(is_concerned && has_carrier);
        });
        // The kernel tells the address first: a dump may have read next hops that were not revived yet.
        self.wants_dump |= !is_dumped && self.addresses.range(ipv4_of(address.index)).nth(1).is_none();
    }

    /// Removes an address. IPv4 is disabled on a link without IPv4 addresses. The kernel also flushes the routes that
    /// prefer this source address, some versions without a message.
    pub(super) fn remove_address(&mut self, address: Address) {
        if !self.drop_address(address) || Family::of(address.address) == Family::V6 {
            return;
        }
        self.wants_dump = true;
        if self.addresses.range(ipv4_of(address.index)).next().is_none() {
            self.routes.disable_link(address.index, |family| family == Family::V4);
        }
    }

    /// Removes an address from the table only. Returns whether it was there.
    fn drop_address(&mut self, address: Address) -> bool {
        let is_known = self.addresses.remove(address).is_some();
        if is_known {
            self.published_addresses.mark(address);
            self.make_room(TableName::Addresses);
        }
        is_known
    }

    pub(super) fn put_neighbour(&mut self, neighbour: Neighbour, is_dumped: bool) {
        let key = (neighbour.index, neighbour.address);
        let put =
            if is_dumped { self.neighbours.put_dumped(key, neighbour) } else { self.neighbours.put(key, neighbour) };
        match put {
            Put::Same => {}
            Put::Refused => self.refuse(TableName::Neighbours),
            Put::New | Put::Changed(_) => self.published_neighbours.mark(key),
        }
    }

    pub(super) fn remove_neighbour(&mut self, index: u32, address: IpAddr) {
        if self.neighbours.remove((index, address)).is_some() {
            self.published_neighbours.mark((index, address));
            self.make_room(TableName::Neighbours);
        }
    }

    /// Sets a next-hop object. All routes with it change.
    pub(super) fn put_object(&mut self, id: u32, object: NextHopObject, is_dumped: bool) {
        match self.objects.put(id, object, is_dumped) {
            Put::Same => {}
            Put::Refused => self.refuse(TableName::NextHops),
            Put::New | Put::Changed(_) => self.touch_object(id),
        }
    }

    /// Removes a next-hop object, and groups that have no other member. Routes with them are flushed.
    pub(super) fn remove_object(&mut self, id: u32) {
        let (removed, left) = self.objects.remove(id);
        for id in removed {
            self.routes.flush_object(id);
            self.make_room(TableName::NextHops);
        }
        left.into_iter().for_each(|group| self.routes.touch(Target::Object(group)));
    }

    /// A route with an unknown object means that a message was lost, unless the object comes later in the dump.
    pub(super) fn want_object_of(&mut self, hops: &RouteHops) {
        if let RouteHops::Object(id) = hops {
            self.wants_dump |= !self.objects.contains(*id);
        }
    }

    fn flush_objects_on(&mut self, index: u32) {
        self.objects.on_link(index).into_iter().for_each(|id| self.remove_object(id));
    }

    /// Marks all routes with a next hop on the link as changed.
    fn touch_link(&mut self, index: u32) {
        self.routes.touch(Target::Link(index));
        self.objects.on_link(index).into_iter().for_each(|id| self.touch_object(id));
    }

    fn touch_object(&mut self, id: u32) {
        self.routes.touch(Target::Object(id));
        let groups: Vec<u32> = self.objects.groups(id).collect();
        groups.into_iter().for_each(|group| self.routes.touch(Target::Object(group)));
    }
}

/// Keys of the addresses of a link.
pub fn addresses_of(index: u32) -> RangeInclusive<Address> {
    let last = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from([0xff; 16]), 128));
    up_to(index, last)
}

/// Keys of the neighbours of a link.
pub fn neighbours_of(index: u32) -> RangeInclusive<(u32, IpAddr)> {
    (index, IpAddr::V4(Ipv4Addr::UNSPECIFIED))..=(index, IpAddr::V6(Ipv6Addr::from([0xff; 16])))
}

/// Keys of the IPv4 addresses of a link.
fn ipv4_of(index: u32) -> RangeInclusive<Address> {
    up_to(index, IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::BROADCAST, 32)))
}

/// Keys of the addresses of a link that are at most `last`, with any peer.
fn up_to(index: u32, last: IpNet) -> RangeInclusive<Address> {
    let first = Address { index, address: IpNet::default(), peer: None };
    first..=Address { index, address: last, peer: Some(last) }
}
