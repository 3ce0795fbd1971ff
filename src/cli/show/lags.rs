//! Link aggregation groups: members, their partners, and why members are not active.

use holdfast::api::model::{Lag, LagMember};
use holdfast::text::table::Table;

use super::Looks;
use super::cells::NONE;

pub fn lags(looks: &Looks<'_>) -> String {
    let groups: Vec<Lag> = looks.part("lags").unwrap_or_default();
    if groups.is_empty() {
        return "there are no link aggregation groups\n".to_owned();
    }
    let mut table =
        Table::new("group | LACP | state | port | member | partner | >key | >its port | >sent | >received | >lost");
    for group in &groups {
        let mut head = [group.name.clone(), lacp(group), if group.up { "up" } else { "DOWN" }.to_owned()];
        for member in &group.members {
            table.row(std::mem::take(&mut head).into_iter().chain(row(member)));
        }
    }
    let mut text = format!("{table}(lost: times at which a member stopped to be active)\n");
    for group in &groups {
        let active = group.members.iter().filter(|member| member.active).count();
        if !group.up {
            let least = group.min_links;
            text.push_str(&format!(
                "\n{}: carries no frames, has {active} active members and needs {least}\n",
                group.name
            ));
        }
        for member in &group.members {
            if let Some(advice) = &member.advice {
                text.push_str(&format!("\n{} {}: {advice}\n", group.name, member.port));
            }
        }
    }
    text
}

/// How a group negotiates.
fn lacp(group: &Lag) -> String {
    let rate = if group.fast { "fast" } else { "slow" };
    if group.lacp == "static" { "off".to_owned() } else { format!("{}, {rate}", group.lacp) }
}

fn row(member: &LagMember) -> [String; 8] {
    let state = match () {
        () if member.opening => "opening",
        () if member.active => "active",
        () => "IDLE",
    };
    let dash = || NONE.to_owned();
    let partner = member.partner.as_ref();
    [
        member.port.clone(),
        state.to_owned(),
        partner.map_or_else(dash, |partner| partner.system.clone()),
        partner.map_or_else(dash, |partner| partner.key.to_string()),
        partner.map_or_else(dash, |partner| partner.partner_port.to_string()),
        member.sent_frames.to_string(),
        member.received_frames.to_string(),
        member.downs.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::{LagPartner, State};
    use serde_json::json;

    use super::super::Seen;
    use super::*;

    fn shown(groups: &[Lag]) -> String {
        lags(&Looks { before: None, now: &Seen { json: json!({ "lags": groups }), state: State::default() } })
    }

    #[test]
    fn members_are_rows_and_idle_ones_have_their_reason() {
        let partner =
            LagPartner { system: "02:00:00:00:00:01".to_owned(), key: 9, partner_port: 2, ..LagPartner::default() };
        let active = LagMember {
            port: "a".to_owned(),
            active: true,
            partner: Some(partner),
            sent_frames: 12,
            received_frames: 11,
            ..LagMember::default()
        };
        let opening = LagMember { port: "b".to_owned(), opening: true, ..active.clone() };
        let advice = Some("it has no link".to_owned());
        let idle = LagMember { port: "c".to_owned(), advice, downs: 1, ..LagMember::default() };
        let bond = Lag {
            name: "bond0".to_owned(),
            lacp: "active".to_owned(),
            fast: true,
            min_links: 1,
            up: true,
            members: vec![active, opening, idle.clone()],
            ..Lag::default()
        };
        let fixed = Lag {
            name: "fixed".to_owned(),
            lacp: "static".to_owned(),
            min_links: 1,
            members: vec![LagMember { port: "d".to_owned(), ..idle }],
            ..Lag::default()
        };
        insta::assert_snapshot!(shown(&[bond, fixed]), @r"
        group  LACP          state  port  member   partner            key  its port  sent  received  lost
        bond0  active, fast  up     a     active   02:00:00:00:00:01    9         2    12        11     0
                                    b     opening  02:00:00:00:00:01    9         2    12        11     0
                                    c     IDLE     -                    -         -     0         0     1
        fixed  off           DOWN   d     IDLE     -                    -         -     0         0     1
        (lost: times at which a member stopped to be active)

        bond0 c: it has no link

        fixed: carries no frames, has 0 active members and needs 1

        fixed d: it has no link
        ");
        assert_eq!(shown(&[]), "there are no link aggregation groups\n");
    }
}
