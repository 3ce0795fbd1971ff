//! The effect of a neighbour advertisement on an entry: the table of RFC 4861 section 7.2.5.
//!
//! STALE, DELAY and PROBE are [`State::Probing`] here: a neighbour in doubt is asked at once. [`State::Failed`] is
//! INCOMPLETE: the router still wants to know the neighbour.

use super::State;

/// The link-layer address of an advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// The advertisement has none.
    Missing,
    /// It has the one of the entry.
    Same,
    /// It has another one.
    Other,
}

/// The flags of an advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// It answers a solicitation.
    pub is_solicited: bool,
    /// It may replace a known address.
    pub is_override: bool,
}

/// The effect of an advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// None.
    Ignored,
    /// Address and state stay.
    Kept,
    /// The address stays, and the neighbour is asked.
    Doubted,
    /// The address is taken, and the neighbour is asked.
    Taken,
    /// The address is taken or stays, and the neighbour is reachable.
    Confirmed,
}

/// The effect of an advertisement on an entry in `state`.
#[must_use]
pub fn outcome(state: State, address: Address, flags: Flags) -> Outcome {
    let is_other = address == Address::Other;
    match state {
        State::Static => Outcome::Ignored,
        State::Incomplete | State::Failed if address == Address::Missing => Outcome::Ignored,
        State::Incomplete | State::Failed if flags.is_solicited => Outcome::Confirmed,
        State::Incomplete | State::Failed => Outcome::Taken,
        State::Reachable if is_other && !flags.is_override => Outcome::Doubted,
        State::Probing if is_other && !flags.is_override => Outcome::Ignored,
        State::Reachable | State::Probing if flags.is_solicited => Outcome::Confirmed,
        State::Reachable | State::Probing if is_other => Outcome::Taken,
        State::Reachable | State::Probing => Outcome::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line for each row: states, addresses, Solicited, Override (`*`: any), and the effect.
    const TABLE: &str = "
        static     missing,same,other * * ignored
        incomplete missing            * * ignored
        incomplete same,other         1 * confirmed
        incomplete same,other         0 * taken
        failed     missing            * * ignored
        failed     same,other         1 * confirmed
        failed     same,other         0 * taken
        reachable  other              * 0 doubted
        probing    other              * 0 ignored
        reachable  other              1 1 confirmed
        probing    other              1 1 confirmed
        reachable  other              0 1 taken
        probing    other              0 1 taken
        reachable  missing,same       1 * confirmed
        probing    missing,same       1 * confirmed
        reachable  missing,same       0 * kept
        probing    missing,same       0 * kept";

    /// The effect that the one row for this advertisement has.
    fn row(state: &str, address: &str, flags: [bool; 2]) -> String {
        let is = |field: &str, flag: bool| field == "*" || field == if flag { "1" } else { "0" };
        let rows = TABLE.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let fits = |row: &Vec<&str>| {
            row.first() == Some(&state)
                && row[1].split(',').any(|one| one == address)
                && is(row[2], flags[0])
                && is(row[3], flags[1])
        };
        let found: Vec<_> = rows.filter(fits).collect();
        assert_eq!(found.len(), 1, "{state} {address} {flags:?}");
        found[0][4].to_owned()
    }

    #[test]
    fn advertisement_has_the_effect_of_each_row_of_rfc_4861_section_7_2_5() {
        let addresses = [(Address::Missing, "missing"), (Address::Same, "same"), (Address::Other, "other")];
        for (state, name) in State::TABLE {
            for (address, word) in addresses {
                for number in 0..4 {
                    let [is_solicited, is_override] = [number & 1 > 0, number & 2 > 0];
                    let found = outcome(state, address, Flags { is_solicited, is_override });
                    let expected = row(name, word, [is_solicited, is_override]);
                    assert_eq!(format!("{found:?}").to_lowercase(), expected, "{name} {word} {number:02b}");
                }
            }
        }
    }
}
