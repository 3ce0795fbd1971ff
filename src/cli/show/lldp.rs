//! LLDP: the neighbour of each port, its differences from the port, and the commands that mend them.

use holdfast::api::model::{LldpNeighbour, LldpPort};
use holdfast::text::table::Table;

use super::Looks;
use super::cells::{NONE, duration};

pub fn lldp(looks: &Looks<'_>) -> String {
    let ports: Vec<LldpPort> = looks.part("lldp").unwrap_or_default();
    if ports.iter().all(|port| !port.enabled && port.loop_with.is_none()) {
        return "no port speaks LLDP\n".to_owned();
    }
    let mut table = Table::new("port | neighbour | its port | PFC | >frame | >expires | differs");
    for port in &ports {
        let mut name = port.port.clone();
        for neighbour in &port.neighbours {
            table.row(row(std::mem::take(&mut name), neighbour));
        }
        if port.neighbours.is_empty() {
            let state = match &port.loop_with {
                Some(own) => format!("this switch, {own}"),
                None if port.enabled => "no neighbour yet".to_owned(),
                None => "off".to_owned(),
            };
            let nothing = std::iter::repeat_n(NONE.to_owned(), 5);
            table.row([name, state].into_iter().chain(nothing));
        }
    }
    let legend = "(PFC: its priorities with PFC; frame: its longest, in bytes)\n";
    let differences: String = ports.iter().flat_map(paragraphs).collect();
    let mut text = format!("{table}{legend}{differences}");
    for port in &ports {
        let state = if port.blocked { "BLOCKED" } else { "not blocked" };
        if let Some(own) = &port.loop_with {
            text.push_str(&format!("\n{}: a loop, frames of {own} come back here; {state}\n", port.port));
        }
    }
    for port in ports.iter().filter(|port| port.too_many) {
        text.push_str(&format!("\n{}: more than eight neighbours; the others are ignored\n", port.port));
    }
    text
}

fn row(port: String, neighbour: &LldpNeighbour) -> [String; 7] {
    let pfc = neighbour.pfc_priorities.as_ref().map(|all| {
        let names: Vec<String> = all.iter().map(u8::to_string).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(",") }
    });
    let differs: Vec<&str> = neighbour.differences.iter().map(|difference| difference.name.as_str()).collect();
    let dash = || NONE.to_owned();
    [
        port,
        name(neighbour).to_owned(),
        neighbour.neighbour_port.clone(),
        pfc.unwrap_or_else(dash),
        neighbour.max_frame_bytes.map_or_else(dash, |bytes| bytes.to_string()),
        duration(neighbour.expires_ns),
        if differs.is_empty() { dash() } else { differs.join(", ") },
    ]
}

/// The name of a neighbour, or its chassis if it has none.
fn name(neighbour: &LldpNeighbour) -> &str {
    neighbour.system_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&neighbour.chassis)
}

/// A paragraph for each difference and note of the neighbours of `port`.
fn paragraphs(port: &LldpPort) -> Vec<String> {
    let mut all = Vec::new();
    for neighbour in &port.neighbours {
        let place = format!("{}, {}", port.port, name(neighbour));
        for difference in &neighbour.differences {
            let mellanox = difference.mellanox_command.iter().map(|command| format!("      or: {command}\n"));
            let mellanox: String = mellanox.collect();
            let (text, command) = (&difference.text, &difference.command);
            all.push(format!("\n{place}: {text}\n  run there: {command}\n{mellanox}"));
        }
        all.extend(neighbour.notes.iter().map(|note| format!("\n{place}: {} (no difference)\n", note.text)));
    }
    all
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::{LldpDifference, LldpNote, State};
    use serde_json::json;

    use super::super::Seen;
    use super::*;

    fn shown(ports: &[LldpPort]) -> String {
        lldp(&Looks { before: None, now: &Seen { json: json!({ "lldp": ports }), state: State::default() } })
    }

    fn port(name: &str, neighbours: Vec<LldpNeighbour>) -> LldpPort {
        LldpPort { port: name.to_owned(), enabled: true, neighbours, ..LldpPort::default() }
    }

    #[test]
    fn neighbours_are_rows_and_their_differences_have_commands() {
        let difference = LldpDifference {
            name: "pfc_priorities".to_owned(),
            text: "the peer has PFC for priorities 4, this port for 3".to_owned(),
            command: "dcb pfc set dev eth0 prio-pfc all:off 3:on".to_owned(),
            mellanox_command: Some("mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0".to_owned()),
        };
        let h1 = LldpNeighbour {
            system_name: Some("h1".to_owned()),
            chassis: "02:00:00:00:00:01".to_owned(),
            neighbour_port: "eth0".to_owned(),
            pfc_priorities: Some(vec![4]),
            max_frame_bytes: Some(9022),
            expires_ns: 90_000_000_000,
            differences: vec![difference],
            notes: vec![LldpNote { name: "cee".to_owned(), text: "it speaks CEE".to_owned() }],
            ..LldpNeighbour::default()
        };
        let h2 = LldpNeighbour { chassis: "02:00:00:00:00:02".to_owned(), ..LldpNeighbour::default() };
        let off = LldpPort { enabled: false, ..port("p3", Vec::new()) };
        let looped = LldpPort { loop_with: Some("p2".to_owned()), blocked: true, ..port("p4", Vec::new()) };
        let many = LldpPort { too_many: true, ..port("p2", Vec::new()) };
        let text = shown(&[port("p1", vec![h1, h2]), many, off, looped]);
        insta::assert_snapshot!(text, @r"
        port  neighbour          its port  PFC  frame  expires  differs
        p1    h1                 eth0      4     9022   1m 30s  pfc_priorities
              02:00:00:00:00:02            -        -     0.0s  -
        p2    no neighbour yet   -         -        -        -  -
        p3    off                -         -        -        -  -
        p4    this switch, p2    -         -        -        -  -
        (PFC: its priorities with PFC; frame: its longest, in bytes)

        p1, h1: the peer has PFC for priorities 4, this port for 3
          run there: dcb pfc set dev eth0 prio-pfc all:off 3:on
              or: mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0

        p1, h1: it speaks CEE (no difference)

        p4: a loop, frames of p2 come back here; BLOCKED

        p2: more than eight neighbours; the others are ignored
        ");
    }

    #[test]
    fn switch_without_lldp_says_so() {
        assert_eq!(shown(&[]), "no port speaks LLDP\n");
        let off = LldpPort { enabled: false, ..port("p1", Vec::new()) };
        assert_eq!(shown(std::slice::from_ref(&off)), "no port speaks LLDP\n");
        // A probe has found the loop.
        let text = shown(&[LldpPort { loop_with: Some("p0".to_owned()), blocked: true, ..off }]);
        assert!(text.contains("p1: a loop, frames of p0 come back here; BLOCKED"), "{text}");
    }
}
