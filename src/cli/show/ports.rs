//! Ports and the stations behind them.

use holdfast::api::model::{Fdb, Port, PortClass, State};
use holdfast::text::table::Table;
use holdfast::units::{BitRate, WIRE_OVERHEAD};

use super::Looks;
use super::cells::{NONE, bytes, count, gigabits, grown};

/// Columns that are shown only if a value is not zero.
const SELDOM: [&str; 3] = ["missed", "no buffer", "errors"];
/// Column of the flow control that devices do themselves, shown only where a device could do it.
const FLOW_CONTROL: &str = "flow control";
/// Column of the operator's words, shown only where a port has some. They are cut, so that a row fits a screen;
/// `show settings` has them whole.
const DESCRIPTION: &str = "description";
const MOST_CHARACTERS: usize = 32;

pub fn ports(looks: &Looks<'_>) -> String {
    let state = looks.state();
    let (table, about) = match looks.before() {
        Some((before, seconds)) => (rates(state, before, seconds), format!("(rates over {seconds:.1}s)")),
        None => (totals(state), format!("({})", looks.since())),
    };
    format!("{}{about}\n", table.without_idle(&SELDOM, NONE).without_idle(&[FLOW_CONTROL, DESCRIPTION], NONE))
}

/// Gives `port` the counters of the classes that are left in it. Losses before the switch have no class.
pub fn take_classes(port: &mut Port) {
    let sum = |of: fn(&PortClass) -> u64| port.classes.iter().map(of).sum::<u64>();
    let overhead = |frames: u64| frames * u64::from(WIRE_OVERHEAD);
    let (received, sent) = (sum(|class| class.received_frames), sum(|class| class.sent_frames));
    let (received_bytes, sent_bytes) = (sum(|class| class.received_bytes), sum(|class| class.sent_bytes));
    let dropped_frames = sum(|class| class.dropped_frames);
    (port.received_frames, port.received_bytes) = (received, received_bytes);
    port.received_wire_bytes = received_bytes + overhead(received);
    (port.sent_frames, port.sent_bytes) = (sent, sent_bytes);
    port.sent_wire_bytes = sent_bytes + overhead(sent);
    port.dropped_frames = dropped_frames;
    (port.missed_frames, port.no_buffer_frames, port.receive_errors, port.send_errors) = (0, 0, 0, 0);
}

fn head(port: &Port) -> [String; 6] {
    let vlan = match (port.vlan_untagged, port.vlan_tagged.len()) {
        (Some(vlan), 0) => vlan.to_string(),
        (Some(vlan), tagged) => format!("{vlan}+{tagged}"),
        (None, tagged) => format!("+{tagged}"),
    };
    let state = match (port.state.as_str(), port.link_up, port.egress_stuck) {
        ("absent", ..) => "absent",
        ("shut", ..) => "SHUT",
        ("blocked", ..) => "BLOCKED",
        // An earlier version of the switch has no field `state`.
        (_, false, _) => "DOWN",
        (_, true, true) => "STUCK",
        (_, true, false) => "up",
    };
    let flow_control = match port.flow_control.as_str() {
        // An earlier version of the switch leaves the field empty.
        "" | "none" => NONE,
        state => state,
    };
    // The answer of the peer says more than the standing.
    let is_disobeyed = port.pfc_observed == "disobeys";
    let pfc = if is_disobeyed { "DISOBEYED".to_owned() } else { port.pfc_standing.clone() };
    let rate = BitRate(port.rate_bps).to_string();
    [port.port.clone(), state.to_owned(), rate, vlan, pfc, flow_control.to_owned()]
}

/// Frames and bytes in, frames and bytes out, drops; and the columns that are seldom shown.
type Counts = ([u64; 5], [u64; 3]);

/// The table of ports with these counts, and with their sums.
fn table(
    state: &State,
    titles: [&'static str; 5],
    counts: impl Fn(&Port) -> Counts,
    cells: impl Fn([u64; 5]) -> [String; 5],
) -> Table {
    let columns = ["port", "state", ">speed", "vlan", "pfc", FLOW_CONTROL].map(str::to_owned).into_iter();
    let numbers = titles.into_iter().chain(SELDOM).map(|title| format!(">{title}"));
    let mut table = Table::of(columns.chain(numbers).chain([DESCRIPTION.to_owned()]));
    let rows: Vec<Counts> = state.ports.iter().map(counts).collect();
    for (port, (usual, seldom)) in state.ports.iter().zip(&rows) {
        table.row(head(port).into_iter().chain(cells(*usual)).chain(seldom.map(count)).chain([description(port)]));
    }
    if rows.len() > 1 {
        let (usual, seldom) = (sum(rows.iter().map(|row| row.0)), sum(rows.iter().map(|row| row.1)));
        let head = ["all", "", "", "", "", ""].map(str::to_owned).into_iter();
        table.row(head.chain(cells(usual)).chain(seldom.map(count)));
    }
    table
}

fn description(port: &Port) -> String {
    match port.description.char_indices().nth(MOST_CHARACTERS) {
        _ if port.description.is_empty() => NONE.to_owned(),
        Some((end, _)) => format!("{}...", &port.description[..end]),
        None => port.description.clone(),
    }
}

fn totals(state: &State) -> Table {
    let counts = |port: &Port| {
        let usual = [port.received_frames, port.received_bytes, port.sent_frames, port.sent_bytes, port.dropped_frames];
        (usual, [port.missed_frames, port.no_buffer_frames, port.receive_errors + port.send_errors])
    };
    table(
        state,
        ["received", "bytes in", "sent", "bytes out", "dropped"],
        counts,
        |[rx, rx_bytes, tx, tx_bytes, dropped]| {
            [count(rx), bytes(rx_bytes), count(tx), bytes(tx_bytes), count(dropped)]
        },
    )
}

fn rates(state: &State, before: &State, seconds: f64) -> Table {
    let counts = |port: &Port| {
        let before = before.ports.iter().find(|other| other.port == port.port);
        let by = |of: fn(&Port) -> u64| grown(of(port), before.map(of));
        let usual = [
            by(|port| port.received_frames),
            by(|port| port.received_wire_bytes),
            by(|port| port.sent_frames),
            by(|port| port.sent_wire_bytes),
            by(|port| port.dropped_frames),
        ];
        let seldom = [
            by(|port| port.missed_frames),
            by(|port| port.no_buffer_frames),
            by(|port| port.receive_errors + port.send_errors),
        ];
        (usual, seldom)
    };
    let rate = |number: u64| count((number as f64 / seconds).ceil() as u64);
    let titles = ["frames/s in", "Gb/s in", "frames/s out", "Gb/s out", "drops/s"];
    table(state, titles, counts, |[rx, rx_bytes, tx, tx_bytes, dropped]| {
        [rate(rx), gigabits(rx_bytes, seconds), rate(tx), gigabits(tx_bytes, seconds), rate(dropped)]
    })
}

fn sum<const N: usize>(rows: impl Iterator<Item = [u64; N]>) -> [u64; N] {
    rows.fold([0; N], |sum, row| std::array::from_fn(|column| sum[column] + row[column]))
}

pub fn fdb(looks: &Looks<'_>) -> String {
    let fdb: Fdb = looks.part("fdb").unwrap_or_default();
    let mut table = Table::new(">vlan | address | port | type | >seen");
    for entry in &fdb.entries {
        let seen = entry.age_ns.map_or_else(|| NONE.to_owned(), |ns| format!("{:.1}s ago", ns as f64 / 1e9));
        table.row([entry.vlan.to_string(), entry.mac.clone(), entry.port.clone(), entry.origin.clone(), seen]);
    }
    let ageing = match fdb.ageing_ns {
        0 => "entries do not age".to_owned(),
        ns => format!("an entry is removed after {} without a frame", super::cells::duration(ns)),
    };
    format!("{table}({} of {} entries; {ageing})\n", fdb.entries.len(), fdb.capacity)
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::State;

    use super::super::Seen;
    use super::*;

    fn shown(flow_control: [&str; 2]) -> String {
        let port = |(name, flow_control): (&str, &str)| Port {
            port: name.to_owned(),
            link_up: true,
            rate_bps: 10_000_000_000,
            vlan_untagged: Some(1),
            pfc_standing: "unproven".to_owned(),
            flow_control: flow_control.to_owned(),
            ..Port::default()
        };
        let ports = ["p1", "p2"].into_iter().zip(flow_control).map(port).collect();
        let state = State { ports, at_ns: 1_000_000_000, ..State::default() };
        ports_of(&Seen { json: serde_json::Value::Null, state })
    }

    fn ports_of(now: &Seen) -> String {
        ports(&Looks { before: None, now })
    }

    #[test]
    fn device_that_pauses_has_its_column() {
        let text = shown(["pauses", "none"]);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0][..7], ["port", "state", "speed", "vlan", "pfc", "flow", "control"], "{text}");
        assert_eq!(rows[1][..6], ["p1", "up", "10G", "1", "unproven", "pauses"], "{text}");
        assert_eq!(rows[2][..6], ["p2", "up", "10G", "1", "unproven", "-"], "{text}");
    }

    #[test]
    fn port_whose_peer_disobeys_says_so_in_place_of_its_standing() {
        let port = Port { pfc_standing: "trusted".to_owned(), pfc_observed: "disobeys".to_owned(), ..Port::default() };
        assert_eq!(head(&port)[4], "DISOBEYED");
        assert_eq!(head(&Port { pfc_observed: "obeys".to_owned(), ..port })[4], "trusted");
    }

    #[test]
    fn port_of_one_class_has_the_counters_of_the_class() {
        let class =
            PortClass { class: 3, received_frames: 5, received_bytes: 500, sent_frames: 2, ..Default::default() };
        let mut port = Port { received_frames: 70, sent_frames: 60, missed_frames: 9, ..Default::default() };
        port.classes = vec![class];
        take_classes(&mut port);
        assert_eq!((port.received_frames, port.received_bytes, port.sent_frames), (5, 500, 2));
        assert_eq!((port.received_wire_bytes, port.missed_frames), (500 + 5 * u64::from(WIRE_OVERHEAD), 0));
    }

    #[test]
    fn descriptions_have_a_column_if_a_port_has_one() {
        let port = |name: &str, description: &str| Port {
            port: name.to_owned(),
            description: description.to_owned(),
            ..Port::default()
        };
        let show = |description| {
            let ports = vec![port("p1", ""), port("p2", description)];
            ports_of(&Seen { json: serde_json::Value::Null, state: State { ports, at_ns: 1, ..State::default() } })
        };
        assert!(
            show("rack 7").lines().any(|line| line.starts_with("p2") && line.contains("rack 7")),
            "{}",
            show("rack 7")
        );
        assert!(!show("").contains("description"));
        let long = show(&"\u{e9}".repeat(40));
        assert!(long.lines().any(|line| line.ends_with(&format!("{}...", "\u{e9}".repeat(32)))), "{long}");
    }

    #[test]
    fn state_of_a_port_is_its_first_value() {
        let port = |state: &str, link_up: bool| Port { state: state.to_owned(), link_up, ..Port::default() };
        let ports = vec![
            port("absent", false),
            port("shut", true),
            port("blocked", true),
            port("down", false),
            port("", false),
            port("up", true),
        ];
        let text =
            ports_of(&Seen { json: serde_json::Value::Null, state: State { ports, at_ns: 1, ..State::default() } });
        let states = text.lines().skip(1).take(6).filter_map(|line| line.split_whitespace().next());
        assert_eq!(states.collect::<Vec<_>>(), ["absent", "SHUT", "BLOCKED", "DOWN", "DOWN", "up"], "{text}");
    }

    #[test]
    fn column_of_flow_control_is_hidden_where_no_device_has_any() {
        assert!(!shown(["none", ""]).contains("flow control"));
    }
}
