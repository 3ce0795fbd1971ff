//! VLAN membership of ports (IEEE 802.1Q clauses 6.9, 8.6.2 and 8.8.2): access and trunk.

use crate::sets::{MAX_PORTS, PortSet};

/// Highest VLAN id. IEEE 802.1Q YANG (clause 9.6): "Values of 0 and 4095 are not permitted."
pub const MAX_VLAN: u16 = 4094;

/// VLANs that a port carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VlanMode {
    /// One VLAN, untagged on the wire.
    Access(u16),
    /// A routed port: its untagged frames are in an internal VLAN, which bridges nothing and no tag names.
    Routed(u16),
    /// Tagged VLANs, and optionally one untagged VLAN.
    Trunk {
        /// VLANs that are tagged on the wire.
        tagged: Vec<u16>,
        /// VLAN of untagged frames; `None`: untagged frames are dropped.
        native: Option<u16>,
    },
}

impl VlanMode {
    /// VLANs whose frames have a tag on the wire, in ascending order.
    #[must_use]
    pub fn tagged(&self) -> &[u16] {
        match self {
            VlanMode::Access(_) | VlanMode::Routed(_) => &[],
            VlanMode::Trunk { tagged, .. } => tagged,
        }
    }

    /// The VLAN whose frames have no tag on the wire.
    #[must_use]
    pub fn untagged(&self) -> Option<u16> {
        match self {
            VlanMode::Access(vlan) | VlanMode::Routed(vlan) => Some(*vlan),
            VlanMode::Trunk { native, .. } => *native,
        }
    }

    /// Whether frames with VLAN id `tag`, or untagged frames if `None`, belong to a VLAN of the port.
    #[must_use]
    pub fn carries(&self, tag: Option<u16>) -> bool {
        match (self, tag) {
            (VlanMode::Access(_) | VlanMode::Routed(_), None) => true,
            (VlanMode::Routed(_), Some(_)) => false,
            (VlanMode::Access(vlan), Some(tag)) => *vlan == tag,
            (VlanMode::Trunk { native, .. }, None) => native.is_some(),
            (VlanMode::Trunk { tagged, native }, Some(tag)) => tagged.contains(&tag) || *native == Some(tag),
        }
    }
}

/// The ports of one VLAN.
#[derive(Debug, Default, Clone, Copy)]
struct Vlan {
    /// Ports that carry the VLAN, except a routed port: only its untagged frames are in its internal VLAN.
    members: PortSet,
    /// The member ports at which frames of the VLAN leave untagged.
    untagged: PortSet,
}

/// VLAN membership of all ports, for constant-time checks on the packet path.
#[derive(Debug, Clone)]
pub struct VlanTable {
    vlans: Box<[Vlan; 4096]>,
    /// Per port, the VLAN of untagged frames in both directions; zero if there is none.
    untagged: [u16; MAX_PORTS],
    /// The modes of the ports, from which blocked ones come back.
    modes: Box<[VlanMode]>,
}

impl VlanTable {
    /// Builds the table from each port's mode, by port index.
    ///
    /// # Panics
    /// On more than [`MAX_PORTS`] ports or a VLAN id beyond [`MAX_VLAN`]: the configuration refuses both.
    #[must_use]
    pub fn new<'a>(modes: impl IntoIterator<Item = &'a VlanMode>) -> Self {
        let modes: Box<[VlanMode]> = modes.into_iter().cloned().collect();
        let (vlans, untagged) = (Box::new([Vlan::default(); 4096]), [0; MAX_PORTS]);
        let mut table = Self { vlans, untagged, modes: Box::default() };
        for (port, mode) in modes.iter().enumerate() {
            assert!(port < MAX_PORTS, "more ports than a port mask holds");
            let untagged = mode.untagged();
            for &vlan in mode.tagged().iter().chain(untagged.as_ref()) {
                assert!((1..=MAX_VLAN).contains(&vlan), "VLAN id out of range");
                let is_member = !matches!(mode, VlanMode::Routed(_));
                table.vlans[usize::from(vlan)].members |= PortSet::only_if(is_member, port);
            }
            if let Some(vlan) = untagged {
                table.untagged[port] = vlan;
                table.vlans[usize::from(vlan)].untagged |= PortSet::only(port);
            }
        }
        Self { modes, ..table }
    }

    /// Sets whether `port` is a member of its VLANs. A port in no VLAN forwards nothing.
    pub fn set_member(&mut self, port: usize, is_member: bool) {
        let Some(mode) = self.modes.get(port) else { return };
        let untagged = mode.untagged();
        for &vlan in mode.tagged().iter().chain(untagged.as_ref()) {
            let is_bridge = !matches!(mode, VlanMode::Routed(_));
            self.vlans[usize::from(vlan & 0xfff)].members.set(port, is_member && is_bridge);
        }
        self.untagged[port] = untagged.filter(|_| is_member).unwrap_or(0);
    }

    /// Whether a station in `vlan` can be behind `port`.
    #[must_use]
    pub fn reaches(&self, port: usize, vlan: u16) -> bool {
        let Vlan { members, untagged } = self.vlans[usize::from(vlan & 0xfff)];
        (members | untagged).contains(port)
    }

    /// Makes `port` a member of `vlan` without a place on a wire: the router, which is the host of the switch itself.
    pub fn add_router(&mut self, vlan: u16, port: usize) {
        self.vlans[usize::from(vlan & 0xfff)].members.insert(port);
    }

    /// VLAN of a frame received on `port` with this tag, if any; `None` if the port does not carry it. A priority tag
    /// (VLAN id zero) counts as untagged.
    ///
    /// IEEE 802.1Q YANG (clause 8.6.2): "A frame received on a Port that is not in the member set (8.8.10) associated
    /// with the frames VID shall be discarded if this parameter is set." The parameter is always set here. Clause 6.9,
    /// in substance: untagged and priority-tagged frames get the VID of the port.
    #[inline]
    #[must_use]
    pub fn ingress(&self, port: usize, tag: Option<u16>) -> Option<u16> {
        match tag {
            Some(vlan) if vlan != 0 => {
                let vlan = vlan & 0xfff;
                self.vlans[usize::from(vlan)].members.contains(port).then_some(vlan)
            }
            // Zero is no VLAN: the port has none for untagged frames.
            _ => Some(self.untagged[port]).filter(|&vlan| vlan != 0),
        }
    }

    /// Ports that bridge `vlan`. A routed port is not a member of its internal VLAN, so no frame is bridged to it.
    #[inline]
    #[must_use]
    pub fn members(&self, vlan: u16) -> PortSet {
        self.vlans[usize::from(vlan & 0xfff)].members
    }

    /// Whether frames of `vlan` leave `port` with a tag.
    ///
    /// IEEE 802.1Q YANG (clause 8.8.2): "Whether frames are to be VLAN-tagged or untagged when transmitted."
    #[inline]
    #[must_use]
    pub fn leaves_tagged(&self, port: usize, vlan: u16) -> bool {
        self.untagged[port] != vlan
    }

    /// Ports at which frames of `vlan` leave untagged; at all other ports they leave tagged.
    #[inline]
    #[must_use]
    pub fn untagged_at(&self, vlan: u16) -> PortSet {
        self.vlans[usize::from(vlan & 0xfff)].untagged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> VlanTable {
        VlanTable::new(&[
            VlanMode::Access(10),
            VlanMode::Trunk { tagged: vec![10, 20], native: Some(30) },
            VlanMode::Trunk { tagged: vec![20], native: None },
            VlanMode::Routed(4094),
        ])
    }

    #[test]
    fn vlan_ingress_accepts_only_members() {
        let table = table();
        assert_eq!(table.ingress(0, None), Some(10));
        assert_eq!(table.ingress(0, Some(0)), Some(10), "a priority tag is no VLAN");
        assert_eq!(table.ingress(0, Some(10)), Some(10));
        assert_eq!(table.ingress(0, Some(20)), None);
        assert_eq!(table.ingress(1, None), Some(30));
        assert_eq!(table.ingress(1, Some(20)), Some(20));
        assert_eq!(table.ingress(2, None), None, "a trunk without a native VLAN takes only tagged frames");
        assert_eq!(table.ingress(2, Some(4095)), None);
    }

    #[test]
    fn routed_port_accepts_untagged_frames_only() {
        let table = table();
        assert_eq!(
            [None, Some(0), Some(4094), Some(10)].map(|tag| table.ingress(3, tag)),
            [Some(4094), Some(4094), None, None]
        );
        assert_eq!(table.ingress(1, Some(4094)), None);
        assert_eq!((table.members(4094).bits(), table.untagged_at(4094).bits()), (0, 0b1000));
        let mode = VlanMode::Routed(4094);
        assert_eq!([None, Some(4094), Some(1)].map(|tag| mode.carries(tag)), [true, false, false]);
        assert_eq!((mode.tagged(), mode.untagged()), (&[][..], Some(4094)));
    }

    #[test]
    fn egress_tags_all_but_the_untagged_vlan() {
        let table = table();
        let reached = |vlan| (0..4).filter(|&port| table.reaches(port, vlan)).collect::<Vec<usize>>();
        assert_eq!([10, 20, 30, 4094].map(reached), [vec![0, 1], vec![1, 2], vec![1], vec![3]]);
        assert_eq!(table.members(10).bits(), 0b011);
        assert_eq!(table.members(20).bits(), 0b110);
        assert!(!table.leaves_tagged(0, 10));
        assert!(table.leaves_tagged(1, 10));
        assert!(!table.leaves_tagged(1, 30));
        assert_eq!([10, 20, 30, 40].map(|vlan| table.untagged_at(vlan).bits()), [0b001, 0, 0b010, 0]);
    }
}
