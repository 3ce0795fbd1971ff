//! VLANs of the switch.

use holdfast::api::model::Vlan;
use holdfast::text::table::Table;

use super::Looks;
use super::cells::{NONE, count};

pub fn vlans(looks: &Looks<'_>) -> String {
    let vlans: Vec<Vlan> = looks.part("vlans").unwrap_or_default();
    let mut table = Table::new(">vlan | untagged | tagged | >stations | interface");
    for vlan in &vlans {
        let interface = vlan.interface.clone().unwrap_or_else(|| NONE.to_owned());
        let ports = [&vlan.untagged_ports, &vlan.tagged_ports].map(|ports| list(ports));
        let cells = [vlan.vlan.to_string()].into_iter().chain(ports);
        table.row(cells.chain([count(vlan.stations), interface]));
    }
    format!("{table}({} {})\n", vlans.len(), if vlans.len() == 1 { "VLAN" } else { "VLANs" })
}

/// The names of ports, as many as fit a row, and the number of the others.
fn list(ports: &[String]) -> String {
    const WIDTH: usize = 40;
    let mut text = String::new();
    for (index, port) in ports.iter().enumerate() {
        if index > 0 && text.len() + port.len() > WIDTH {
            return format!("{text} +{}", ports.len() - index);
        }
        text += if index > 0 { "," } else { "" };
        text += port;
    }
    if text.is_empty() { NONE.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::State;
    use serde_json::json;

    use super::super::Seen;
    use super::*;

    #[test]
    fn vlan_names_its_ports_stations_and_interface() {
        let many = (1..=20).map(|port| format!("p{port}")).collect();
        let vlans = [
            Vlan { vlan: 1, untagged_ports: vec!["p1".into(), "p2".into()], stations: 1_234, ..Vlan::default() },
            Vlan { vlan: 10, tagged_ports: many, interface: Some("vlan10".into()), ..Vlan::default() },
        ];
        let text = vlans_of(json!({"vlans": vlans}));
        insta::assert_snapshot!(text, @r"
        vlan  untagged  tagged                                     stations  interface
           1  p1,p2     -                                             1,234  -
          10  -         p1,p2,p3,p4,p5,p6,p7,p8,p9,p10,p11,p12 +8         -  vlan10
        (2 VLANs)
        ");
    }

    fn vlans_of(json: serde_json::Value) -> String {
        vlans(&Looks { before: None, now: &Seen { json, state: State::default() } })
    }
}
