//! Writes LLDP data units.

use super::dcb::write_applications;
use super::{Aggregation, Lldpdu, ManagementAddress, kind, organisation};
use crate::wire::MacAddr;
use crate::wire::parse::ETHERTYPE_LLDP;

/// The longest frame, without the frame check sequence: an LLDP data unit fits any Ethernet link.
const MOST_FRAME: usize = 1514;
/// The shortest Ethernet frame without the frame check sequence.
const LEAST_FRAME: usize = 60;
/// The longest information string: its length has nine bits.
const MOST_INFORMATION: usize = 511;

/// A written frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// The frame, without the frame check sequence.
    pub frame: Vec<u8>,
    /// TLVs that found no room in it (lldpduLengthErrors, clause 9.2.7.2). A data unit of this switch has none.
    pub omitted: u32,
}

impl Emitted {
    fn tlv(&mut self, kind: u8, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        // The end of the data unit needs two bytes too.
        if length > MOST_INFORMATION || self.frame.len() + 2 + length + 2 > MOST_FRAME {
            self.omitted += 1;
            return;
        }
        self.frame.extend((u16::from(kind) << 9 | length as u16).to_be_bytes());
        parts.iter().for_each(|part| self.frame.extend_from_slice(part));
    }

    fn organisation(&mut self, oui: [u8; 3], subtype: u8, information: Option<impl AsRef<[u8]>>) {
        if let Some(information) = information {
            self.tlv(kind::ORGANISATION, &[&oui, &[subtype], information.as_ref()]);
        }
    }
}

impl Lldpdu {
    /// Returns the frame as a port with the address `source` sends it, to the nearest bridge. With TTL 0 it has the
    /// mandatory TLVs only (clause 9.1.2.2: a shutdown data unit).
    ///
    /// Names of VLANs, MAC/PHY and the DCBX of CEE are only read, not written.
    #[must_use]
    pub fn emit(&self, source: MacAddr) -> Emitted {
        let mut frame = Vec::with_capacity(512);
        frame.extend_from_slice(&MacAddr::LLDP.0);
        frame.extend_from_slice(&source.0);
        frame.extend(ETHERTYPE_LLDP.to_be_bytes());
        let mut emitted = Emitted { frame, omitted: 0 };
        emitted.tlv(kind::CHASSIS_ID, &[&[self.chassis.subtype], &self.chassis.id]);
        emitted.tlv(kind::PORT_ID, &[&[self.port.subtype], &self.port.id]);
        emitted.tlv(kind::TTL, &[&self.ttl.to_be_bytes()]);
        if self.ttl > 0 {
            self.emit_basic(&mut emitted);
            self.emit_dot1(&mut emitted);
            self.emit_dot3(&mut emitted);
            let instance = self.instance.map(u64::to_be_bytes);
            emitted.organisation(organisation::HOLDFAST, organisation::INSTANCE, instance);
        }
        emitted.frame.extend(u16::from(kind::END).to_be_bytes());
        let length = emitted.frame.len().max(LEAST_FRAME);
        emitted.frame.resize(length, 0);
        emitted
    }

    fn emit_basic(&self, emitted: &mut Emitted) {
        let texts = [
            (kind::PORT_DESCRIPTION, &self.port_description),
            (kind::SYSTEM_NAME, &self.system_name),
            (kind::SYSTEM_DESCRIPTION, &self.system_description),
        ];
        for (kind, text) in texts {
            if let Some(text) = text {
                emitted.tlv(kind, &[text.to_wire()]);
            }
        }
        if let Some(capabilities) = self.capabilities {
            let [supported, enabled] = [capabilities.supported, capabilities.enabled].map(u16::to_be_bytes);
            emitted.tlv(kind::CAPABILITIES, &[&supported, &enabled]);
        }
        self.management.iter().for_each(|address| emitted.tlv(kind::MANAGEMENT_ADDRESS, &[&management(address)]));
    }

    fn emit_dot1(&self, emitted: &mut Emitted) {
        let dot1 = &self.dot1;
        let mut put = |subtype, information: Option<Vec<u8>>| {
            emitted.organisation(organisation::DOT1, subtype, information);
        };
        put(organisation::PORT_VLAN, dot1.port_vlan.map(|vlan| vlan.to_be_bytes().to_vec()));
        put(organisation::AGGREGATION, dot1.aggregation.map(|aggregation| aggregation.write().to_vec()));
        put(organisation::CONGESTION, dot1.congestion.map(|congestion| congestion.write().to_vec()));
        put(organisation::ETS_CONFIGURATION, dot1.ets.map(|ets| ets.write().to_vec()));
        put(organisation::ETS_RECOMMENDATION, dot1.ets_recommendation.map(|ets| ets.write().to_vec()));
        put(organisation::PFC, dot1.pfc.map(|pfc| pfc.write().to_vec()));
        put(organisation::APPLICATION, dot1.applications.as_deref().map(write_applications));
    }

    fn emit_dot3(&self, emitted: &mut Emitted) {
        let dot3 = &self.dot3;
        emitted.organisation(
            organisation::DOT3,
            organisation::DOT3_AGGREGATION,
            dot3.aggregation.map(Aggregation::write),
        );
        emitted.organisation(organisation::DOT3, organisation::MAX_FRAME, dot3.max_frame.map(u16::to_be_bytes));
    }
}

impl Aggregation {
    fn write(self) -> [u8; 5] {
        let [a, b, c, d] = self.port.to_be_bytes();
        [u8::from(self.is_capable) | u8::from(self.is_enabled) << 1, a, b, c, d]
    }
}

fn management(address: &ManagementAddress) -> Vec<u8> {
    let mut value = vec![(1 + address.address.len()) as u8, address.family];
    value.extend_from_slice(&address.address);
    value.push(address.interface_subtype);
    value.extend(address.interface.to_be_bytes());
    value.push(address.oid.len() as u8);
    value.extend_from_slice(&address.oid);
    value
}
