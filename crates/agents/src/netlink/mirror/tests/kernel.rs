//! A model of the kernel's tables, with its messages and its silent effects.

use super::*;

/// The model.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    links: BTreeMap<u32, LinkState>,
    addresses: BTreeSet<(u32, IpNet)>,
    neighbours: BTreeMap<(u32, IpAddr), Neighbour>,
    objects: BTreeMap<u32, NextHopObject>,
    routes: BTreeMap<IpNet, Vec<KernelRoute>>,
}

/// A request to the kernel. Numbers select objects; a request that does not fit has no effect.
#[derive(Debug, Clone)]
pub enum Request {
    AddLink(u32),
    RemoveLink(u32),
    SetAdmin(u32, bool),
    SetCarrier(u32, bool),
    AddAddress(u32, IpNet),
    RemoveAddress(u32, IpNet),
    SetNeighbour(u32, IpAddr, u8),
    RemoveNeighbour(u32, IpAddr),
    SetObject(u32, NextHopObject),
    RemoveObject(u32),
    /// Mode [`RouteMode::Exclusive`] is a route that must not exist yet.
    AddRoute(KernelRoute, RouteMode),
    /// Removes a route of the prefix, by its place; of an IPv6 multipath route one next hop or all.
    RemoveRoute(IpNet, usize, Option<usize>),
}

type Events = Vec<KernelEvent>;

impl Kernel {
    /// Runs a request. Returns the messages that the kernel sends.
    pub fn run(&mut self, request: &Request) -> Events {
        match request.clone() {
            Request::AddLink(index) if !self.links.contains_key(&index) => {
                self.links.insert(index, link_state(index, false, false));
                vec![self.link_event(index)]
            }
            Request::RemoveLink(index) if self.links.contains_key(&index) => self.remove_link(index),
            Request::SetAdmin(index, is_up) => self.set_admin(index, is_up),
            Request::SetCarrier(index, has_carrier) => self.set_carrier(index, has_carrier),
            Request::AddAddress(index, address) => self.add_address(index, address),
            Request::RemoveAddress(index, address) => self.remove_address(index, address),
            Request::SetNeighbour(index, address, mac) if self.is_admin_up(index) => {
                let neighbour = Neighbour { index, address, mac: MacAddr([2, 0, 0, 0, 0, mac]), is_permanent: false };
                self.neighbours.insert((index, address), neighbour);
                vec![KernelEvent::Neighbour(neighbour)]
            }
            Request::RemoveNeighbour(index, address) => {
                let event = KernelEvent::NeighbourGone { index, address };
                self.neighbours.remove(&(index, address)).map(|_| event).into_iter().collect()
            }
            Request::SetObject(id, object) => self.set_object(id, object),
            Request::RemoveObject(id) if self.objects.contains_key(&id) => {
                let mut events = vec![KernelEvent::NextHopGone { id }];
                self.remove_objects(&[id], &mut events);
                events
            }
            Request::AddRoute(route, mode) => self.add_route(route, mode),
            Request::RemoveRoute(prefix, place, path) => self.remove_route(prefix, place, path),
            _ => Vec::new(),
        }
    }

    /// Entries of a table, as a dump names them.
    pub fn dump(&self, table: TableName) -> Events {
        let family = |prefix: &IpNet| table_of(*prefix) == table;
        match table {
            TableName::Links => self.links.keys().map(|index| self.link_event(*index)).collect(),
            TableName::Addresses => {
                let event = |(index, address): &(u32, IpNet)| plain(*index, *address);
                self.addresses.iter().map(event).map(KernelEvent::Address).collect()
            }
            TableName::Neighbours => self.neighbours.values().copied().map(KernelEvent::Neighbour).collect(),
            TableName::NextHops => {
                let event =
                    |(id, object): (&u32, &NextHopObject)| KernelEvent::NextHop { id: *id, object: object.clone() };
                self.objects.iter().map(event).collect()
            }
            TableName::RoutesV4 | TableName::RoutesV6 => {
                let lists = self.routes.iter().filter(|(prefix, _)| family(prefix));
                let event = |route: &KernelRoute| KernelEvent::Route { route: route.clone(), mode: RouteMode::Prepend };
                lists.flat_map(|(_, list)| list).map(event).collect()
            }
        }
    }

    /// The tables that a consumer should have.
    pub fn view(&self) -> View {
        let routes = self.routes.keys().filter_map(|prefix| Some((*prefix, self.best(*prefix)?))).collect();
        View {
            links: self.links.iter().map(|(index, state)| (*index, state.link.clone())).collect(),
            addresses: self.addresses.iter().map(|(index, address)| plain(*index, *address)).collect(),
            neighbours: self.neighbours.clone(),
            routes,
        }
    }

    fn best(&self, prefix: IpNet) -> Option<Route> {
        for route in &self.routes[&prefix] {
            let hops: Vec<KernelNextHop> = match &route.hops {
                RouteHops::Direct(hops) => hops.clone(),
                RouteHops::Object(id) => match &self.objects[id] {
                    NextHopObject::Hop(hop) => vec![*hop],
                    NextHopObject::Group(members) => members.iter().map(|member| self.member(*member)).collect(),
                    _ => unreachable!("the requests have none"),
                },
            };
            let is_up = |hop: &&KernelNextHop| self.links[&hop.index].link.is_up && !hop.is_dead && !hop.is_linkdown;
            let next_hop = |hop: &KernelNextHop| NextHop { gateway: hop.gateway, index: hop.index, weight: hop.weight };
            let next_hops: Vec<NextHop> = hops.iter().filter(is_up).map(next_hop).collect();
            if route.kind != RouteKind::Unicast || !next_hops.is_empty() {
                let (metric, protocol, kind) = (route.metric, route.protocol, route.kind);
                return Some(Route { prefix, metric, protocol, kind, next_hops });
            }
        }
        None
    }

    fn member(&self, member: GroupMember) -> KernelNextHop {
        let NextHopObject::Hop(hop) = self.objects[&member.id] else { unreachable!("groups have no groups") };
        KernelNextHop { weight: member.weight, ..hop }
    }

    fn is_admin_up(&self, index: u32) -> bool {
        self.links.get(&index).is_some_and(|state| state.link.is_admin_up)
    }

    fn link_event(&self, index: u32) -> KernelEvent {
        KernelEvent::Link(self.links[&index].clone())
    }

    fn set_admin(&mut self, index: u32, is_admin_up: bool) -> Events {
        let Some(state) = self.links.get_mut(&index) else { return Vec::new() };
        if state.link.is_admin_up == is_admin_up {
            return Vec::new();
        }
        state.link.is_admin_up = is_admin_up;
        state.link.is_up = is_admin_up && state.has_carrier;
        let mut events = vec![self.link_event(index)];
        if is_admin_up {
            self.revive(index, |_| true);
        } else {
            self.disable(index, &mut events);
        }
        events
    }

    fn set_carrier(&mut self, index: u32, has_carrier: bool) -> Events {
        let Some(state) = self.links.get_mut(&index) else { return Vec::new() };
        if state.has_carrier == has_carrier {
            return Vec::new();
        }
        state.has_carrier = has_carrier;
        state.carrier_changes += 1;
        state.link.is_up = state.link.is_admin_up && has_carrier;
        let mut events = vec![self.link_event(index)];
        self.each_hop(index, |hop| hop.is_linkdown = !has_carrier);
        if !has_carrier {
            self.remove_objects_on(index, &mut events);
        }
        events
    }

    fn each_hop(&mut self, index: u32, change: impl Fn(&mut KernelNextHop)) {
        for route in self.routes.values_mut().flatten() {
            if let RouteHops::Direct(hops) = &mut route.hops {
                hops.iter_mut().filter(|hop| hop.index == index).for_each(&change);
            }
        }
    }

    /// `fib_sync_up` with `RTNH_F_DEAD`.
    fn revive(&mut self, index: u32, is_concerned: impl Fn(&IpNet) -> bool) {
        let is_linkdown = !self.links[&index].has_carrier;
        for (_, list) in self.routes.iter_mut().filter(|(prefix, _)| is_concerned(prefix)) {
            for route in list {
                if let RouteHops::Direct(hops) = &mut route.hops {
                    let here = hops.iter_mut().filter(|hop| hop.index == index);
                    here.for_each(|hop| (hop.is_dead, hop.is_linkdown) = (false, is_linkdown));
                }
            }
        }
    }

    /// Effects of a disabled link: IPv4 routes go silently, IPv6 routes, addresses and neighbours with messages.
    fn disable(&mut self, index: u32, events: &mut Events) {
        self.kill_hops(index, |_| true, events);
        self.remove_objects_on(index, events);
        let gone: Vec<_> = self.neighbours.keys().filter(|(link, _)| *link == index).copied().collect();
        for (index, address) in gone {
            self.neighbours.remove(&(index, address));
            events.push(KernelEvent::NeighbourGone { index, address });
        }
        let is_gone = |(link, address): &&(u32, IpNet)| *link == index && address.addr().is_ipv6();
        let gone: Vec<_> = self.addresses.iter().filter(is_gone).copied().collect();
        for (index, address) in gone {
            self.addresses.remove(&(index, address));
            events.push(KernelEvent::AddressGone(plain(index, address)));
        }
    }

    fn kill_hops(&mut self, index: u32, is_concerned: impl Fn(&IpNet) -> bool, events: &mut Events) {
        for (prefix, list) in self.routes.iter_mut().filter(|(prefix, _)| is_concerned(prefix)) {
            list.retain_mut(|route| {
                let RouteHops::Direct(hops) = &mut route.hops else { return true };
                if !hops.iter().any(|hop| hop.index == index) {
                    return true;
                }
                let here = hops.iter_mut().filter(|hop| hop.index == index);
                here.for_each(|hop| (hop.is_dead, hop.is_linkdown) = (true, true));
                let is_kept = hops.iter().any(|hop| !hop.is_dead);
                if !is_kept && prefix.addr().is_ipv6() {
                    events.extend(split(route).map(KernelEvent::RouteGone));
                }
                is_kept
            });
        }
        self.routes.retain(|_, list| !list.is_empty());
    }

    fn remove_link(&mut self, index: u32) -> Events {
        let mut events = self.set_admin(index, false);
        let gone: Vec<_> = self.addresses.iter().filter(|(link, _)| *link == index).copied().collect();
        for (index, address) in gone {
            self.addresses.remove(&(index, address));
            events.push(KernelEvent::AddressGone(plain(index, address)));
        }
        for (prefix, list) in &mut self.routes {
            list.retain_mut(|route| {
                let whole = route.clone();
                let RouteHops::Direct(hops) = &mut route.hops else { return true };
                let before = hops.len();
                hops.retain(|hop| hop.index != index);
                if before == hops.len() {
                    return true;
                }
                if prefix.addr().is_ipv6() {
                    let is_gone =
                        |route: &KernelRoute| matches!(&route.hops, RouteHops::Direct(hops) if hops[0].index == index);
                    events.extend(split(&whole).filter(is_gone).map(KernelEvent::RouteGone));
                }
                prefix.addr().is_ipv6() && !hops.is_empty()
            });
        }
        self.routes.retain(|_, list| !list.is_empty());
        self.remove_objects_on(index, &mut events);
        self.links.remove(&index);
        events.push(KernelEvent::LinkGone { index });
        events
    }

    fn add_address(&mut self, index: u32, address: IpNet) -> Events {
        if !self.links.contains_key(&index) || !self.addresses.insert((index, address)) {
            return Vec::new();
        }
        if address.addr().is_ipv4() && self.is_admin_up(index) {
            self.revive(index, |prefix| prefix.addr().is_ipv4());
        }
        vec![KernelEvent::Address(plain(index, address))]
    }

    fn remove_address(&mut self, index: u32, address: IpNet) -> Events {
        if !self.addresses.remove(&(index, address)) {
            return Vec::new();
        }
        let mut events = vec![KernelEvent::AddressGone(plain(index, address))];
        let has_ipv4 = self.addresses.iter().any(|(link, other)| *link == index && other.addr().is_ipv4());
        if address.addr().is_ipv4() && !has_ipv4 {
            self.kill_hops(index, |prefix| prefix.addr().is_ipv4(), &mut events);
        }
        events
    }

    fn set_object(&mut self, id: u32, object: NextHopObject) -> Events {
        let is_hop = |id: &u32| matches!(self.objects.get(id), Some(NextHopObject::Hop(_)));
        let is_group = |object: &NextHopObject| matches!(object, NextHopObject::Group(_));
        let is_valid = match &object {
            NextHopObject::Hop(hop) => self.links.get(&hop.index).is_some_and(|state| state.link.is_up),
            NextHopObject::Group(members) => !members.is_empty() && members.iter().all(|member| is_hop(&member.id)),
            _ => false,
        };
        // A member cannot become a group.
        let changes_sort = self.objects.get(&id).is_some_and(|old| is_group(old) != is_group(&object));
        if !is_valid || changes_sort {
            return Vec::new();
        }
        self.objects.insert(id, object.clone());
        vec![KernelEvent::NextHop { id, object }]
    }

    fn remove_objects_on(&mut self, index: u32, events: &mut Events) {
        let is_there = |object: &NextHopObject| matches!(object, NextHopObject::Hop(hop) if hop.index == index);
        let ids: Vec<u32> = self.objects.iter().filter(|(_, object)| is_there(object)).map(|(id, _)| *id).collect();
        self.remove_objects(&ids, events);
    }

    /// Removes objects with their routes: IPv4 routes without a message, IPv6 routes with one.
    fn remove_objects(&mut self, ids: &[u32], events: &mut Events) {
        for id in ids {
            self.objects.remove(id);
            let mut emptied = Vec::new();
            for (group, object) in &mut self.objects {
                if let NextHopObject::Group(members) = object {
                    members.retain(|member| member.id != *id);
                    emptied.extend(members.is_empty().then_some(*group));
                }
            }
            for (prefix, list) in &mut self.routes {
                list.retain(|route| {
                    let is_kept = route.hops != RouteHops::Object(*id);
                    if !is_kept && prefix.addr().is_ipv6() {
                        events.push(KernelEvent::RouteGone(route.clone()));
                    }
                    is_kept
                });
            }
            self.routes.retain(|_, list| !list.is_empty());
            self.remove_objects(&emptied, events);
        }
    }

    fn add_route(&mut self, mut route: KernelRoute, mode: RouteMode) -> Events {
        let is_valid = match &mut route.hops {
            RouteHops::Object(id) => self.objects.contains_key(id),
            RouteHops::Direct(hops) => {
                for hop in hops.iter_mut() {
                    hop.is_linkdown = self.links.get(&hop.index).is_some_and(|state| !state.has_carrier);
                }
                hops.iter().all(|hop| self.links.get(&hop.index).is_some_and(|state| state.link.is_admin_up))
            }
        };
        if !is_valid {
            return Vec::new();
        }
        let is_ipv6 = route.prefix.addr().is_ipv6();
        let list = self.routes.entry(route.prefix).or_default();
        let event = if is_ipv6 { add_ipv6(list, route, mode) } else { add_ipv4(list, route, mode) };
        self.routes.retain(|_, list| !list.is_empty());
        event.into_iter().collect()
    }

    fn remove_route(&mut self, prefix: IpNet, place: usize, path: Option<usize>) -> Events {
        let Some(list) = self.routes.get_mut(&prefix) else { return Vec::new() };
        let place = place % list.len();
        let gone = match (&mut list[place].hops, path) {
            (RouteHops::Direct(hops), Some(path)) if prefix.addr().is_ipv6() && hops.len() > 1 => {
                let hop = hops.remove(path % hops.len());
                KernelRoute { hops: RouteHops::Direct(vec![hop]), ..list[place].clone() }
            }
            _ => list.remove(place),
        };
        self.routes.retain(|_, list| !list.is_empty());
        vec![KernelEvent::RouteGone(gone)]
    }
}

/// A route for each next hop.
fn split(route: &KernelRoute) -> impl Iterator<Item = KernelRoute> {
    let RouteHops::Direct(hops) = route.hops.clone() else { unreachable!("it has next hops of its own") };
    let route = route.clone();
    hops.into_iter().map(move |hop| KernelRoute { hops: RouteHops::Direct(vec![hop]), ..route.clone() })
}

/// Compares two routes without the state of their next hops.
fn equals(a: &KernelRoute, b: &KernelRoute) -> bool {
    let plain = |route: &KernelRoute| {
        let mut route = route.clone();
        if let RouteHops::Direct(hops) = &mut route.hops {
            hops.iter_mut().for_each(|hop| (hop.is_dead, hop.is_linkdown) = (false, false));
        }
        route
    };
    plain(a) == plain(b)
}

/// `fib_table_insert`.
fn add_ipv4(list: &mut Vec<KernelRoute>, route: KernelRoute, mode: RouteMode) -> Option<KernelEvent> {
    let first = list.iter().position(|other| other.metric >= route.metric).unwrap_or(list.len());
    let count = list.iter().filter(|other| other.metric == route.metric).count();
    let has_twin = list.iter().any(|other| equals(other, &route));
    if has_twin || (count > 0 && mode == RouteMode::Exclusive) {
        return None;
    }
    let mode = if count == 0 { RouteMode::Exclusive } else { mode };
    match mode {
        RouteMode::Replace => list[first] = route.clone(),
        RouteMode::Append => list.insert(first + count, route.clone()),
        _ => list.insert(first, route.clone()),
    }
    Some(KernelEvent::Route { route, mode })
}

/// `fib6_add_rt2node`, with the next hops of a multipath route as one entry.
fn add_ipv6(list: &mut Vec<KernelRoute>, route: KernelRoute, mode: RouteMode) -> Option<KernelEvent> {
    let paths = |route: &KernelRoute| match &route.hops {
        RouteHops::Direct(hops) => hops.clone(),
        RouteHops::Object(_) => Vec::new(),
    };
    let joins = |route: &KernelRoute| !paths(route).is_empty() && paths(route).iter().all(|hop| hop.gateway.is_some());
    let same: Vec<usize> = (0..list.len()).filter(|place| list[*place].metric == route.metric).collect();
    let end = list.iter().position(|other| other.metric > route.metric).unwrap_or(list.len());
    let is_single = paths(&route).len() < 2;
    let class = same.iter().find(|place| joins(&list[**place]) == joins(&route));
    match mode {
        RouteMode::Exclusive if !same.is_empty() => return None,
        RouteMode::Replace if !same.is_empty() => {
            let place = *class.unwrap_or(&same[0]);
            let is_elsewhere = |other: &usize| *other != place && equals(&list[*other], &route);
            if same.iter().any(is_elsewhere) {
                return None;
            }
            list[place] = route.clone();
            return Some(KernelEvent::Route { route, mode });
        }
        _ => {}
    }
    if same.is_empty() {
        let mode = if is_single { RouteMode::Exclusive } else { RouteMode::Prepend };
        list.insert(end, route.clone());
        return Some(KernelEvent::Route { route, mode });
    }
    if joins(&route) && class.is_some() {
        let place = *class?;
        let RouteHops::Direct(hops) = &mut list[place].hops else { return None };
        for hop in paths(&route) {
            if !hops.iter().any(|other| other.is_same_path(&hop)) {
                hops.push(hop);
            }
        }
        return Some(KernelEvent::Route { route: list[place].clone(), mode: RouteMode::Append });
    }
    if list.iter().any(|other| equals(other, &route)) {
        return None;
    }
    list.insert(end, route.clone());
    Some(KernelEvent::Route { route, mode: RouteMode::Append })
}

fn plain(index: u32, address: IpNet) -> Address {
    Address { index, address, peer: None }
}
