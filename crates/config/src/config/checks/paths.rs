//! Checks for every two connected ports that a frame is lossless at both or at neither.
//!
//! The peer of a port is assumed to have the port's own maps and trust. A frame that enters at one port and leaves by
//! another is then classified twice: by the switch and by the peer. PFC works only if both classes are in the same
//! group.

use crate::config::sections::draft::{Class, Port};
use crate::config::sections::maps::Maps;
use crate::qos::Trust;
use crate::sets::CLASSES;

/// A problem on the path from one port to another.
enum Finding {
    /// PFC cannot work for some frames; the text names them.
    Fails(String),
    /// The class at the other port depends on a mark that this port does not read.
    Depends,
}

/// A VLAN that two ports share, and whether its frames are tagged at each.
struct Way {
    vlan: u16,
    tagged_in: bool,
    tagged_out: bool,
}

/// Checks every two ports with PFC that share a VLAN.
pub fn check(ports: &[Port<'_>], maps: &Maps<'_>, classes: &[Class<'_>; CLASSES]) {
    let lossless = |class: u8| classes[usize::from(class)].settings.lossless;
    if !(0..CLASSES as u8).any(lossless) {
        return;
    }
    let mut depends: Vec<(&Port<'_>, &Port<'_>, u16)> = Vec::new();
    let works = |port: &&Port<'_>| port.pfc.is_on() && port.live.trust != Trust::Port && !port.is_output;
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| works(port)) {
        for other in ports[..index].iter().filter(works) {
            let mut failed = false;
            for way in ways(other, port) {
                let back = Way { vlan: way.vlan, tagged_in: way.tagged_out, tagged_out: way.tagged_in };
                let findings =
                    [direction(other, port, &way, maps, &lossless), direction(port, other, &back, maps, &lossless)];
                for finding in findings.into_iter().flatten() {
                    match finding {
                        Finding::Fails(message) if !failed => {
                            port.item.fail(message);
                            failed = true;
                        }
                        Finding::Fails(_) => {}
                        Finding::Depends => {
                            if !depends
                                .last()
                                .is_some_and(|last| std::ptr::eq(last.0, other) && std::ptr::eq(last.1, port))
                            {
                                depends.push((other, port, way.vlan));
                            }
                        }
                    }
                }
            }
            if failed {
                // These maps will conflict with those of many other ports; one message is enough.
                break;
            }
        }
    }
    warn_of_mixed_trust(&depends);
}

fn warn_of_mixed_trust(depends: &[(&Port<'_>, &Port<'_>, u16)]) {
    let Some((first, second, vlan)) = depends.first() else { return };
    let (pcp, dscp) = if first.live.trust == Trust::Pcp { (first, second) } else { (second, first) };
    let more = match depends.len() - 1 {
        0 => String::new(),
        1 => " (and one more pair of ports)".to_owned(),
        more => format!(" (and {more} more pairs of ports)"),
    };
    second.item.warn(format!(
        "port {} trusts PCP, port {} trusts DSCP, and both carry VLAN {vlan}{more}: they can put one frame in \
         different classes, so PFC may not stop it; write the same `trust` at both, or `rewrite: pcp` at the first and \
         `rewrite: dscp` at the second with tables for all classes",
        pcp.name, dscp.name
    ));
}

/// One shared VLAN for each combination of tagged and untagged by which frames go between the two ports.
fn ways(from: &Port<'_>, to: &Port<'_>) -> Vec<Way> {
    let (tagged_in, tagged_out) = (from.vlan.tagged(), to.vlan.tagged());
    let (plain_in, plain_out) = (from.vlan.untagged(), to.vlan.untagged());
    let way = |tagged_in, tagged_out| move |vlan| Way { vlan, tagged_in, tagged_out };
    let both = tagged_in.iter().copied().find(|vlan| tagged_out.binary_search(vlan).is_ok());
    let neither = plain_in.filter(|_| plain_in == plain_out);
    let only_out = plain_in.filter(|vlan| tagged_out.binary_search(vlan).is_ok());
    let only_in = plain_out.filter(|vlan| tagged_in.binary_search(vlan).is_ok());
    [
        both.map(way(true, true)),
        neither.map(way(false, false)),
        only_out.map(way(false, true)),
        only_in.map(way(true, false)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Classes that frames may have at their ingress port.
fn classes_at(port: &Port<'_>, tagged: bool) -> Vec<u8> {
    let marks: &[u8] = match port.live.trust {
        Trust::Dscp => &port.live.marks.dscp_to_tc,
        Trust::Pcp if tagged => &port.live.marks.pcp_to_tc,
        Trust::Pcp | Trust::Port => &[],
    };
    (0..CLASSES as u8).filter(|class| *class == port.live.port_class || marks.contains(class)).collect()
}

/// Checks the classes of frames in one direction.
fn direction(
    from: &Port<'_>,
    to: &Port<'_>,
    way: &Way,
    maps: &Maps<'_>,
    lossless: &impl Fn(u8) -> bool,
) -> Option<Finding> {
    let fails = |here, there| maps.confuses(here, there, lossless);
    let classes = classes_at(from, way.tagged_in);
    match (from.live.trust, to.live.trust) {
        (Trust::Dscp, Trust::Dscp) => {
            let is_kept = |class: u8| to.live.rewrite.dscp[usize::from(class)].is_none();
            let breaks = |here, there| is_kept(here) && fails(here, there);
            let (here, there) = (&from.live.marks.dscp_to_tc, &to.live.marks.dscp_to_tc);
            MarkMaps { mark: "DSCP", key: "dscp", here, there }.check(from, to, way.vlan, breaks)
        }
        (Trust::Pcp, Trust::Dscp) => {
            let kept = classes.iter().any(|&class| to.live.rewrite.dscp[usize::from(class)].is_none());
            kept.then_some(Finding::Depends)
        }
        (_, Trust::Pcp) if !way.tagged_out => {
            let class = classes.into_iter().find(|&class| fails(class, to.live.port_class))?;
            let (from, to, vlan, there) = (&from.name, &to.name, way.vlan, to.live.port_class);
            Some(Finding::Fails(format!(
                "frames of class {class} from port {from} leave port {to} untagged in VLAN {vlan}: port {to} trusts \
                 PCP, so its peer puts them in class {there}, and PFC does not stop them; tag VLAN {vlan} at port \
                 {to}, or write `trust: dscp` there"
            )))
        }
        (Trust::Pcp, Trust::Pcp) if way.tagged_in => {
            let is_kept = |class: u8| to.live.rewrite.pcp[usize::from(class)].is_none();
            let breaks = |here, there| is_kept(here) && fails(here, there);
            let (here, there) = (&from.live.marks.pcp_to_tc, &to.live.marks.pcp_to_tc);
            MarkMaps { mark: "PCP", key: "pcp", here, there }.check(from, to, way.vlan, breaks)
        }
        (Trust::Dscp, Trust::Pcp) if way.tagged_in => {
            let kept = classes.iter().any(|&class| to.live.rewrite.pcp[usize::from(class)].is_none());
            kept.then_some(Finding::Depends)
        }
        (_, Trust::Pcp) => {
            // The frame gets a new tag, whose PCP is its class.
            let wrong = |class: &u8| {
                to.live.rewrite.pcp[usize::from(*class)].is_none()
                    && fails(*class, to.live.marks.pcp_to_tc[usize::from(*class)])
            };
            let class = classes.into_iter().find(wrong)?;
            let (there, vlan) = (to.live.marks.pcp_to_tc[usize::from(class)], way.vlan);
            let (from, to) = (&from.name, &to.name);
            Some(Finding::Fails(format!(
                "frames of class {class} from port {from} leave port {to} in VLAN {vlan} with a new tag of PCP \
                 {class}, which means class {there} to port {to} and its peer: PFC does not stop them; write `rewrite: \
                 pcp` at port {to}, and in `tc_to_pcp` a PCP that its maps put in that class"
            )))
        }
        _ => None,
    }
}

/// A mark that two ports read, and the classes that they give its values.
struct MarkMaps<'a> {
    mark: &'a str,
    /// Key of the map.
    key: &'a str,
    here: &'a [u8],
    there: &'a [u8],
}

impl MarkMaps<'_> {
    /// Reports the first value whose two classes break PFC.
    fn check(&self, from: &Port<'_>, to: &Port<'_>, vlan: u16, breaks: impl Fn(u8, u8) -> bool) -> Option<Finding> {
        let Self { mark, key, here, there } = *self;
        let mut classes = here.iter().zip(there).enumerate();
        let (number, (here, there)) = classes.find(|(_, (here, there))| breaks(**here, **there))?;
        let (from, to) = (&from.name, &to.name);
        Some(Finding::Fails(format!(
            "{mark} {number} is class {here} at port {from} and class {there} at port {to}, and both have PFC in VLAN \
             {vlan}: PFC for one class does not stop the other; write the same `{key}` map for both, or `rewrite: {key}` \
             at port {to}"
        )))
    }
}
