//! `hosts:`, the virtual hosts on in-process ports.

use std::net::Ipv4Addr;

use super::draft::Port;
use super::system::port_by_name;
use crate::config::keys::Key;
use crate::config::model::DeviceKind;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item};
use crate::hosts::frame::{MAX_FLOWS, min_frame_len};
use crate::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec};
use crate::pfc::PfcMode;
use crate::qos::ClassMap;
use crate::units::{BitRate, Nanos};
use crate::wire::MacAddr;

pub const HOST_KEYS: &[Key] = &[
    Key::new("name", "required", "", "as for ports"),
    Key::new("port", "required", "", "a port with `device: ring`; each has exactly one host"),
    Key::new("mac", "`02:48:46:01:00:NN`", "", ""),
    Key::new("ip", "`10.0.0.N`, from 1", "", "IPv4"),
    Key::new("pfc", "`obey`", "", "`obey` or `ignore`"),
    Key::new("flows", "none", "", "traffic sent; 16384 flows in all"),
];
pub const FLOW_KEYS: &[Key] = &[
    Key::new("to", "required", "a host, or `{mac: ..., ip: ...}` of a station outside", ""),
    Key::new("kind", "`roce`", "`roce` `udp`", "`roce`: UDP to port 4791 with base transport header"),
    Key::new("rate", "the port's speed", "`1k` to the port's speed", "on the wire, with preamble and gap"),
    Key::new(
        "frame",
        "`1078`, or the most at a small MTU",
        "64 (`udp`) or 76 (`roce`) to MTU + 14; 4 more with a tag",
        "bytes without check sequence",
    ),
    Key::new("dscp", "26 for `roce`, 0 for `udp`", "0 to 63", ""),
    Key::new("pcp", "`0`", "0 to 7", "of the tag"),
    Key::new("vlan", "none", "1 to 4094", "sends tagged frames"),
    Key::new("ecn", "`true` for `roce`", "`true` `false`", "ECT(0), or Not-ECT"),
    Key::new("pattern", "`steady`", "`steady` or `{on: 1ms, off: 4ms}`, 1us to 1h each", ""),
];

/// Frame length for 1024 bytes of payload with the headers of IPv4 and RoCEv2.
pub const DEFAULT_FRAME: u16 = 1078;
/// The DSCP that RoCE packets have by convention.
pub const ROCE_DSCP: u8 = 26;
/// Lower bound of the rate of a flow.
pub const SLOWEST_FLOW: BitRate = BitRate(1_000);
const LONGEST_PHASE: Nanos = Nanos(3_600_000_000_000);

/// A host whose flows are not read yet, because they may go to hosts further down in the file.
struct Draft<'a> {
    spec: HostSpec,
    flows: Vec<Item<'a>>,
}

/// Reads `hosts:`. Every ring port must have one host, unless the switch is simulated.
pub fn read(
    item: Option<Item<'_>>,
    ports: &[Port<'_>],
    classes: &ClassMap,
    macs: &mut Unique,
    simulated: bool,
) -> Vec<HostSpec> {
    let items = item.and_then(|item| item.list("`- {name: h1, port: p1}` for each host")).unwrap_or_default();
    let mut names = Unique::new("name");
    let mut owners: Vec<Option<String>> = vec![None; ports.len()];
    let mut drafts = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(fields) = item.fields(HOST_KEYS) else { continue };
        drafts.extend(read_host(&fields, index, ports, &mut owners, &mut names, macs));
    }
    if !simulated {
        refuse_lonely_rings(ports, &owners);
    }
    let flows: usize = drafts.iter().map(|draft| draft.flows.len()).sum();
    if flows > MAX_FLOWS {
        items[0].fail(format!("{flows} flows are more than the {MAX_FLOWS} that can be distinguished; remove some"));
    }
    let names: Vec<String> = drafts.iter().map(|draft| draft.spec.name.clone()).collect();
    let finish = |(index, draft): (usize, Draft<'_>)| {
        let flows = Flows { host: index, port: &ports[draft.spec.port], classes, names: &names };
        let specs = draft.flows.iter().filter_map(|item| flows.read(item)).collect();
        HostSpec { flows: specs, ..draft.spec }
    };
    drafts.into_iter().enumerate().map(finish).collect()
}

fn read_host<'a>(
    fields: &Fields<'a>,
    index: usize,
    ports: &[Port<'_>],
    owners: &mut [Option<String>],
    names: &mut Unique,
    macs: &mut Unique,
) -> Option<Draft<'a>> {
    let number = u8::try_from(index).unwrap_or(u8::MAX);
    let name = names::read(fields, "name: h1", names);
    let mac = names::read_mac(fields, macs, MacAddr::local(1, number.into()));
    let ip =
        fields.get("ip").and_then(|item| read_ip(&item)).unwrap_or(Ipv4Addr::new(10, 0, 0, number.saturating_add(1)));
    let pfc = fields.get("pfc").and_then(|item| item.choice(&[("obey", true), ("ignore", false)]));
    let flows = fields.get("flows").and_then(|item| item.list("e.g. `- {to: h2, kind: roce}`")).unwrap_or_default();

    let item = fields.required("port", "port: p1")?;
    let port = port_by_name(&item, ports)?;
    let name = name?;
    if ports[port].device.kind != DeviceKind::Ring {
        return item.refuse(format!(
            "port `{}` is not an in-process port; write a port with `device: ring`",
            ports[port].name
        ));
    }
    if let Some(owner) = &owners[port] {
        return item.refuse(format!("port `{}` has host {owner} already; write another port", ports[port].name));
    }
    owners[port] = Some(name.clone());
    let rate = ports[port].rate;
    let (queues, keeps_frames) = (ports[port].device.queues, ports[port].pfc == PfcMode::Queue);
    let spec =
        HostSpec { name, port, mac, ip, rate, obeys_pfc: pfc.unwrap_or(true), queues, keeps_frames, flows: Vec::new() };
    Some(Draft { spec, flows })
}

fn refuse_lonely_rings(ports: &[Port<'_>], owners: &[Option<String>]) {
    for (port, owner) in ports.iter().zip(owners) {
        if port.has_device && port.device.kind == DeviceKind::Ring && owner.is_none() {
            let name = &port.name;
            port.item.fail(format!(
                "`device: ring` needs a host at its other end; write `- {{name: ..., port: {name}}}` under `hosts`"
            ));
        }
    }
}

/// Reads an IPv4 address of a host.
pub fn read_ip(item: &Item<'_>) -> Option<Ipv4Addr> {
    let wrong = || item.refuse(format!("`{}` is not an IPv4 address; write e.g. 10.0.0.1", item.shown()));
    item.shown().parse().ok().or_else(wrong)
}

/// The context in which the flows of one host are read.
struct Flows<'a> {
    host: usize,
    port: &'a Port<'a>,
    classes: &'a ClassMap,
    names: &'a [String],
}

impl Flows<'_> {
    fn read(&self, item: &Item<'_>) -> Option<FlowSpec> {
        let fields = item.fields(FLOW_KEYS)?;
        let choices = [("roce", FlowKind::Roce), ("udp", FlowKind::Udp)];
        let kind = fields.get("kind").and_then(|item| item.choice(&choices)).unwrap_or(FlowKind::Roce);
        let roce = kind == FlowKind::Roce;
        let number = |key, what, highest| fields.get(key).and_then(|item| item.number::<u8>(what, 0..=highest));
        let vlan = fields.get("vlan").and_then(|item| item.number::<u16>("a VLAN", 1..=4094));
        let dscp = number("dscp", "a DSCP", 63).unwrap_or(if roce { ROCE_DSCP } else { 0 });
        let pcp = number("pcp", "a PCP", 7).unwrap_or(0);
        if self.port.is_output {
            item.warn(format!(
                "port {} sends copies only (`mirrors`), and drops all frames of its host; remove the flow",
                self.port.name
            ));
        } else if !self.port.carries(vlan) {
            let frames = vlan.map_or("untagged frames".to_owned(), |vlan| format!("frames of VLAN {vlan}"));
            item.warn(format!(
                "port {} drops {frames}, because it does not carry them; write a `vlan` that it carries",
                self.port.name
            ));
        }
        let class =
            self.port.live.marks.class(self.port.live.trust, self.port.live.port_class, Some(dscp), vlan.map(|_| pcp));
        Some(FlowSpec {
            to: self.read_target(&fields.required("to", "to: h2")?)?,
            kind,
            rate: fields.get("rate").and_then(|item| self.read_rate(&item)).unwrap_or(self.port.rate),
            frame_len: self.read_frame(&fields, kind, vlan),
            dscp,
            pcp,
            vlan,
            class,
            priority: self.classes.tc_to_group[usize::from(class & 7)],
            ecn: fields.get("ecn").and_then(|item| item.flag()).unwrap_or(roce),
            pattern: fields.get("pattern").and_then(|item| read_pattern(&item)).unwrap_or(FlowPattern::Steady),
        })
    }

    fn read_target(&self, item: &Item<'_>) -> Option<FlowTarget> {
        if item.is_map() {
            let fields = item.fields(&["mac", "ip"])?;
            let mac = names::station(&fields.required("mac", "mac: 02:00:00:00:00:01")?)?;
            let ip = read_ip(&fields.required("ip", "ip: 10.0.0.9")?)?;
            return Some(FlowTarget::Station { mac, ip });
        }
        let name = item.shown();
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        match known.iter().position(|known| *known == name) {
            Some(host) if host == self.host => item.refuse("a host cannot send to itself; write another host"),
            Some(host) => Some(FlowTarget::Host(host)),
            None => item.refuse(format!(
                "there is no host `{name}`; {}, or `{{mac: ..., ip: ...}}` for a station outside the switch",
                names::suggest(&name, &known)
            )),
        }
    }

    fn read_rate(&self, item: &Item<'_>) -> Option<BitRate> {
        let rate = item.parse::<BitRate>()?;
        let link = self.port.rate;
        if (SLOWEST_FLOW..=link).contains(&rate) {
            return Some(rate);
        }
        item.refuse(format!("`{}` is out of range for a link of {link}; write from 1k to its speed", item.shown()))
    }

    fn read_frame(&self, fields: &Fields<'_>, kind: FlowKind, vlan: Option<u16>) -> u16 {
        let least = min_frame_len(kind, vlan.is_some());
        let tag = if vlan.is_some() { 4 } else { 0 };
        let most = self.port.mtu.saturating_add(14 + tag);
        let frame = fields.get("frame").and_then(|item| {
            let frame = item.number::<u16>("a frame length", u64::from(least)..=9618)?;
            if frame <= most {
                return Some(frame);
            }
            let (name, mtu) = (&self.port.name, self.port.mtu);
            item.refuse(format!("`{frame}` is too long for port {name} (mtu {mtu}); write from {least} to {most}"))
        });
        frame.unwrap_or(DEFAULT_FRAME.min(most))
    }
}

fn read_pattern(item: &Item<'_>) -> Option<FlowPattern> {
    if item.is("steady") {
        return Some(FlowPattern::Steady);
    }
    if !item.is_map() {
        let shown = item.shown();
        return item.refuse(format!("`{shown}` is not a pattern; write `steady` or `{{on: 1ms, off: 4ms}}`"));
    }
    let fields = item.fields(&["on", "off"])?;
    let on = read_phase(&fields.required("on", "on: 1ms")?)?;
    let off = read_phase(&fields.required("off", "off: 4ms")?)?;
    Some(FlowPattern::OnOff { on, off })
}

fn read_phase(item: &Item<'_>) -> Option<Nanos> {
    let time = item.parse::<Nanos>()?;
    if (Nanos(1_000)..=LONGEST_PHASE).contains(&time) {
        return Some(time);
    }
    item.refuse(format!("`{}` is out of range; write from 1us to 1h", item.shown()))
}
