//! How the machine is reached: its routes and the sessions of ssh. Both end with a NIC that leaves the kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Port of ssh, as the kernel writes it.
const SSH: &str = "0016";
/// State of an established connection of TCP.
const ESTABLISHED: &str = "01";
/// Flags of routes that lead to no other host: reject, local.
const NO_WAY: u32 = 0x8000_0200;

/// The ways to other hosts that are in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Routes.
    pub routes: Vec<Route>,
    /// Hosts at the other end of sessions of ssh.
    pub peers: Vec<IpAddr>,
}

/// A route of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its network.
    pub network: IpAddr,
    /// Length of the network's prefix.
    pub length: u32,
    /// Its interface.
    pub interface: String,
}

impl Reach {
    /// Reads files of `/proc/net` by their names.
    pub(super) fn read(file: impl Fn(&str) -> Option<String>) -> Self {
        let rows = |name: &str| -> Vec<Vec<String>> {
            let text = file(name).unwrap_or_default();
            text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
        };
        let mut routes: Vec<Route> = rows("route").iter().filter_map(|row| route_v4(row)).collect();
        routes.extend(rows("ipv6_route").iter().filter_map(|row| route_v6(row)));
        let mut peers: Vec<IpAddr> = ["tcp", "tcp6"].iter().flat_map(|name| rows(name)).filter_map(peer).collect();
        peers.sort_unstable();
        peers.dedup();
        Self { routes, peers }
    }

    /// The uses of the machine that end if these interfaces leave the kernel.
    pub(super) fn uses(&self, interfaces: &[String]) -> Vec<String> {
        let is_here = |route: &&Route| interfaces.contains(&route.interface);
        let is_default = self.routes.iter().filter(|route| route.length == 0).any(|route| is_here(&route));
        let mut uses: Vec<String> = is_default.then(|| "the default route".to_owned()).into_iter().collect();
        let peers = self.peers.iter().filter(|peer| self.towards(**peer).iter().any(is_here));
        uses.extend(peers.map(|peer| format!("the ssh session of {peer}")));
        uses
    }

    /// The most specific routes to an address.
    fn towards(&self, address: IpAddr) -> Vec<&Route> {
        let leading = self.routes.iter().filter(|route| route.contains(address));
        let longest = leading.clone().map(|route| route.length).max();
        leading.filter(|route| Some(route.length) == longest).collect()
    }
}

impl Route {
    fn contains(&self, address: IpAddr) -> bool {
        let differing = match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => (network.to_bits() ^ address.to_bits()).leading_zeros(),
            (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits() ^ address.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= self.length
    }
}

/// The kernel writes each word of an address as a number of this processor's byte order.
fn parse_address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    if hex.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let mut bytes = [0; 16];
    for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
        four.copy_from_slice(&word(at)?);
    }
    Some(Ipv6Addr::from(bytes).to_canonical())
}

/// A row of `/proc/net/route`: interface, destination, gateway, flags, three numbers, mask.
fn route_v4(row: &[String]) -> Option<Route> {
    let flags = u32::from_str_radix(row.get(3)?, 16).ok()?;
    let length = u32::from_str_radix(row.get(7)?, 16).ok()?.count_ones();
    (flags & NO_WAY == 0).then_some(Route { network: parse_address(&row[1])?, length, interface: row[0].clone() })
}

/// A row of `/proc/net/ipv6_route`: destination, its length, six columns, flags, interface.
fn route_v6(row: &[String]) -> Option<Route> {
    let network = Ipv6Addr::from(u128::from_str_radix(row.first()?, 16).ok()?);
    let length = u32::from_str_radix(row.get(1)?, 16).ok()?;
    let flags = u32::from_str_radix(row.get(8)?, 16).ok()?;
    (flags & NO_WAY == 0).then_some(Route { network: network.into(), length, interface: row.get(9)?.clone() })
}

/// The other end of a session of ssh, by a row of `/proc/net/tcp`: number, own address, other address, state.
fn peer(row: Vec<String>) -> Option<IpAddr> {
    let (_, port) = row.get(1)?.split_once(':')?;
    let (address, _) = row.get(2)?.split_once(':')?;
    let is_session = port == SSH && row.get(3)? == ESTABLISHED;
    parse_address(address).filter(|address| is_session && !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_this_kernel_writes_them() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = format!("{:04X}", socket.local_addr().expect("an address").port());
        let text = std::fs::read_to_string("/proc/net/tcp").expect("a table");
        let own = text.lines().filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'));
        let hex = own.filter(|(_, listed)| *listed == port).map(|(hex, _)| hex).next().expect("our socket");
        assert_eq!(parse_address(hex), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
