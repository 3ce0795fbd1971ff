//! Reads the header fields and lengths of a flow's frames, and classifies them as the first switch does.

use super::net::Net;
use crate::config::yaml::read::{Fields, Item};
use crate::config::{DEFAULT_FRAME, ROCE_DSCP};
use crate::hosts::FlowKind;
use crate::plan::PortSpec;
use crate::sim::spec::{FrameSizes, PortRef};

/// Bytes of the Ethernet header before the packet.
const ETHERNET: u16 = 14;
/// Bytes of a tag.
const TAG: u16 = 4;
/// Length of a minimum frame without its frame check sequence.
const SHORTEST: u16 = 60;
/// Length of the longest frame of IMIX without its frame check sequence.
const LONGEST_OF_IMIX: u16 = 1496;

/// Header fields and lengths of a flow's frames, and their class at the first switch.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    pub kind: FlowKind,
    pub frames: FrameSizes,
    pub dscp: u8,
    pub tag: Option<(u16, u8)>,
    pub ecn: bool,
    pub class: u8,
    pub priority: u8,
    pub lossless: bool,
}

/// Reads the header fields of frames that a host sends to this port.
pub fn read(fields: &Fields<'_>, net: &Net<'_>, at: PortRef) -> Option<Marks> {
    let port = net.spec(at)?;
    let choices = [("roce", FlowKind::Roce), ("udp", FlowKind::Udp)];
    let kind = fields.get("kind").and_then(|item| item.choice(&choices)).unwrap_or(FlowKind::Roce);
    let roce = kind == FlowKind::Roce;
    let number = |key, what, highest| fields.get(key).and_then(|item| item.number::<u8>(what, 0..=highest));
    let dscp = number("dscp", "a DSCP", 63).unwrap_or(if roce { ROCE_DSCP } else { 0 });
    let pcp = number("pcp", "a PCP", 7).unwrap_or(0);
    let vlan = fields.get("vlan").and_then(|item| item.number::<u16>("a VLAN", 1..=4094));
    if !port.vlan.carries(vlan) {
        let frames = vlan.map_or("untagged frames".to_owned(), |vlan| format!("frames of VLAN {vlan}"));
        fields.owner().warn(format!("port {} drops {frames}: it does not carry them", net.port_name(at)));
    }
    if let Some(item) = fields.get("pcp").filter(|_| vlan.is_none()) {
        item.warn("PCP is part of the VLAN tag, and these frames have no tag; write `vlan` too");
    }
    let tag = vlan.map(|vlan| (vlan, pcp));
    let ecn = fields.get("ecn").and_then(|item| item.flag()).unwrap_or(roce);
    let frames = read_frames(fields, port, &net.port_name(at), tag.is_some());
    let (class, priority, lossless) = classify(net, at, dscp, tag)?;
    Some(Marks { kind, frames, dscp, tag, ecn, class, priority, lossless })
}

/// Returns the class and the priority that the port's switch assigns, and whether the class is lossless there, to the
/// end of the run.
pub fn classify(net: &Net<'_>, at: PortRef, dscp: u8, tag: Option<(u16, u8)>) -> Option<(u8, u8, bool)> {
    let port = net.spec(at)?;
    let classes = &net.switches.get(at.switch)?.config.as_ref()?.switch.classes;
    let class = port.live.marks.class(port.live.trust, port.live.port_class, Some(dscp), tag.map(|(_, pcp)| pcp));
    let priority = classes.tc_to_group[usize::from(class & 7)];
    let is_changed = net.switches.iter().any(|switch| switch.changed_classes().contains(usize::from(class & 7)));
    Some((class, priority, !is_changed && port.lossless_groups().contains(usize::from(priority & 7))))
}

fn read_frames(fields: &Fields<'_>, port: &PortSpec, name: &str, tagged: bool) -> FrameSizes {
    let tag = if tagged { TAG } else { 0 };
    let room = Room { least: SHORTEST + tag, most: port.mtu.saturating_add(ETHERNET + tag), mtu: port.mtu, name };
    let default = FrameSizes::Fixed(DEFAULT_FRAME.min(room.most));
    fields.get("frame").and_then(|item| room.read(&item)).unwrap_or(default)
}

/// Frame lengths that a port accepts.
struct Room<'a> {
    least: u16,
    most: u16,
    mtu: u16,
    name: &'a str,
}

impl Room<'_> {
    fn read(&self, item: &Item<'_>) -> Option<FrameSizes> {
        if item.is("imix") {
            return self.imix(item);
        }
        if !item.is_map() {
            return self.length(item).map(FrameSizes::Fixed);
        }
        let fields = item.fields(&["from", "to"])?;
        let from = fields.required("from", "from: 64").and_then(|item| self.length(&item));
        let to = fields.required("to", "to: 1500").and_then(|item| self.length(&item));
        let (from, to) = (from?, to?);
        if from > to {
            return item.refuse(format!("from {from} to {to} is not a range; write the shorter length as `from`"));
        }
        Some(FrameSizes::Uniform(from, to))
    }

    fn length(&self, item: &Item<'_>) -> Option<u16> {
        let length = item.number::<u16>("a frame length", u64::from(self.least)..=9618)?;
        if length <= self.most {
            return Some(length);
        }
        let Self { least, most, mtu, name } = self;
        item.refuse(format!("`{length}` is more than port {name} takes (mtu {mtu}); write from {least} to {most}"))
    }

    fn imix(&self, item: &Item<'_>) -> Option<FrameSizes> {
        if LONGEST_OF_IMIX <= self.most {
            return Some(FrameSizes::Imix);
        }
        let Self { mtu, name, .. } = self;
        item.refuse(format!("`imix` has frames of 1500 B, more than port {name} takes (mtu {mtu}); write a length"))
    }
}
