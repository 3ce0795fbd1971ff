//! Injected faults: their state, and the frames that they hit.

use holdfast::api::model::Faults;
use holdfast::text::table::Table;

use super::Looks;

pub fn faults(looks: &Looks<'_>) -> String {
    let faults: Faults = looks.part("faults").unwrap_or_default();
    if !faults.allowed {
        return "no faults are allowed\n".to_owned();
    }
    if faults.list.is_empty() {
        return "no fault is injected\n".to_owned();
    }
    let mut table = Table::new(">id | port | state | >frames | >lossless | >PFC | >passed | fault");
    for fault in &faults.list {
        table.row([
            fault.id.to_string(),
            fault.port.clone(),
            fault.state.clone(),
            fault.frames.to_string(),
            fault.lossless_frames.to_string(),
            fault.pfc_frames.to_string(),
            fault.passed_frames.to_string(),
            fault.text.clone(),
        ]);
    }
    let legend = "(frames: hit since the order; passed: not held or copied, for lack of room)\n";
    format!("{table}{legend}")
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::{Fault, State};
    use serde_json::json;

    use super::super::Seen;
    use super::*;

    fn shown(part: &Faults) -> String {
        faults(&Looks { before: None, now: &Seen { json: json!({ "faults": part }), state: State::default() } })
    }

    #[test]
    fn faults_are_rows_with_their_counts() {
        let fault = Fault {
            id: 3,
            port: "p1".to_owned(),
            state: "active".to_owned(),
            text: "{lose: p1, what: pfc, one_in: 10}".to_owned(),
            frames: 12,
            lossless_frames: 11,
            ..Fault::default()
        };
        let over = Fault { id: 12, state: "over".to_owned(), pfc_frames: 4, ..fault.clone() };
        let text = shown(&Faults { allowed: true, list: vec![fault, over], ..Faults::default() });
        insta::assert_snapshot!(text, @r"
        id  port  state   frames  lossless  PFC  passed  fault
         3  p1    active      12        11    0       0  {lose: p1, what: pfc, one_in: 10}
        12  p1    over        12        11    4       0  {lose: p1, what: pfc, one_in: 10}
        (frames: hit since the order; passed: not held or copied, for lack of room)
        ");
    }

    #[test]
    fn switch_without_faults_says_so() {
        assert_eq!(shown(&Faults::default()), "no faults are allowed\n");
        assert_eq!(shown(&Faults { allowed: true, ..Faults::default() }), "no fault is injected\n");
    }
}
