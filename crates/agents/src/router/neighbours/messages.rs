//! The effect of messages on the entry of the neighbour that they are about: the tables of RFC 4861 sections 7.2.3
//! (solicitations) and 7.2.5 (advertisements), and ARP.
//!
//! [`State::Failed`] is INCOMPLETE: the router still wants to know the neighbour. [`State::Stale`] is STALE and DELAY:
//! packets may use the neighbour, and it is asked after [`super::DELAY`] even if none does. Its answer keeps its entry
//! in the forwarding database alive.

use super::State;

/// The link-layer address of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// The message has none.
    Missing,
    /// It has the one of the entry.
    Same,
    /// It has another one, or there is no entry.
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

/// The effect of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// None.
    Ignored,
    /// Address and state stay. The neighbour is at the port of the message.
    Located,
    /// The address stays, and the neighbour is stale.
    Doubted,
    /// The address is taken, and the neighbour is stale.
    Taken,
    /// The address is taken or stays, and the neighbour is reachable.
    Confirmed,
}

/// The effect of an advertisement on an entry in the state `entry`; `None`: there is no entry.
#[must_use]
pub fn advertisement(entry: Option<State>, address: Address, flags: Flags) -> Outcome {
    let is_other = address == Address::Other;
    match entry {
        None => Outcome::Ignored,
        Some(State::Static | State::Silent) => of_static(address),
        Some(State::Incomplete | State::Failed) => match address {
            Address::Missing => Outcome::Ignored,
            _ if flags.is_solicited => Outcome::Confirmed,
            _ => Outcome::Taken,
        },
        Some(State::Reachable) if is_other && !flags.is_override => Outcome::Doubted,
        Some(State::Stale | State::Probing) if is_other && !flags.is_override => Outcome::Ignored,
        Some(State::Reachable | State::Stale | State::Probing) => match flags {
            Flags { is_solicited: true, .. } => Outcome::Confirmed,
            _ if is_other => Outcome::Taken,
            Flags { is_override: true, .. } => Outcome::Located,
            _ => Outcome::Ignored,
        },
    }
}

/// The effect of a solicitation for an own address on the entry of its sender. It shows that the sender reaches the
/// router, not that the router reaches the sender, so it makes no neighbour reachable.
#[must_use]
pub fn solicitation(entry: Option<State>, address: Address) -> Outcome {
    match (entry, address) {
        (_, Address::Missing) => Outcome::Ignored,
        (Some(State::Static | State::Silent), _) => of_static(address),
        (Some(State::Reachable | State::Stale | State::Probing), Address::Same) => Outcome::Located,
        _ => Outcome::Taken,
    }
}

/// The effect of an ARP request or reply on the entry of its sender.
///
/// RFC 826 takes the address of any packet of a sender. RFC 1122 section 2.3.2.1, on the timeout of an entry: it
/// "should be restarted when the cache entry is 'refreshed' (by observing the source fields, regardless of target
/// address, of an ARP broadcast from the system in question)". So a request confirms as a reply does.
#[must_use]
pub fn arp(entry: Option<State>, address: Address) -> Outcome {
    match entry {
        Some(State::Static | State::Silent) => of_static(address),
        _ => Outcome::Confirmed,
    }
}

/// The effect of any message on a static neighbour, which has the configured address.
fn of_static(address: Address) -> Outcome {
    if address == Address::Other { Outcome::Ignored } else { Outcome::Located }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line for each row: states, addresses, Solicited, Override (`*`: any), and the effect.
    const ADVERTISEMENTS: &str = "
        none                  missing,same,other * * ignored
        static,silent         other              * * ignored
        static,silent         missing,same       * * located
        incomplete,failed     missing            * * ignored
        incomplete,failed     same,other         1 * confirmed
        incomplete,failed     same,other         0 * taken
        reachable             other              * 0 doubted
        stale,probing         other              * 0 ignored
        reachable,stale,probing other            1 1 confirmed
        reachable,stale,probing other            0 1 taken
        reachable,stale,probing missing,same     1 * confirmed
        reachable,stale,probing missing,same     0 0 ignored
        reachable,stale,probing missing,same     0 1 located";

    /// One line for each row: states, addresses, and the effect.
    const SOLICITATIONS: &str = "
        none,static,silent,incomplete,failed,reachable,stale,probing missing ignored
        none,incomplete,failed  same,other * * taken
        static,silent           other      * * ignored
        static,silent           same       * * located
        reachable,stale,probing same       * * located
        reachable,stale,probing other      * * taken";

    /// The effect that the one row of `table` for this message has.
    fn row(table: &str, state: &str, address: &str, flags: Flags) -> String {
        let is = |field: &str, flag: bool| field == "*" || field == if flag { "1" } else { "0" };
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let fits = |row: &Vec<&str>| {
            let has = |at: usize, word: &str| row.get(at).is_some_and(|words| words.split(',').any(|one| one == word));
            let has_flags = row.len() < 5 || is(row[2], flags.is_solicited) && is(row[3], flags.is_override);
            has(0, state) && has(1, address) && has_flags
        };
        let found: Vec<_> = rows.filter(fits).collect();
        assert_eq!(found.len(), 1, "{state} {address} {flags:?}");
        found[0].last().unwrap().to_string()
    }

    /// Every state of an entry, and none, with every kind of address.
    fn cases() -> impl Iterator<Item = (Option<State>, &'static str, Address, &'static str)> {
        let states = State::TABLE.into_iter().map(|(state, name)| (Some(state), name)).chain([(None, "none")]);
        let addresses = [(Address::Missing, "missing"), (Address::Same, "same"), (Address::Other, "other")];
        states.flat_map(move |(state, name)| addresses.map(|(address, word)| (state, name, address, word)))
    }

    #[test]
    fn advertisement_has_the_effect_of_each_row_of_rfc_4861_section_7_2_5() {
        for (state, name, address, word) in cases() {
            for number in 0..4 {
                let flags = Flags { is_solicited: number & 1 > 0, is_override: number & 2 > 0 };
                let found = format!("{:?}", advertisement(state, address, flags)).to_lowercase();
                assert_eq!(found, row(ADVERTISEMENTS, name, word, flags), "{name} {word} {flags:?}");
            }
        }
    }

    #[test]
    fn solicitation_has_the_effect_of_each_row_of_rfc_4861_section_7_2_3() {
        for (state, name, address, word) in cases() {
            let any = Flags { is_solicited: false, is_override: false };
            let found = format!("{:?}", solicitation(state, address)).to_lowercase();
            assert_eq!(found, row(SOLICITATIONS, name, word, any), "{name} {word}");
        }
    }

    #[test]
    fn arp_confirms_every_neighbour_that_is_not_static() {
        for (state, name, address, word) in cases() {
            let expected = match (name, word) {
                ("static" | "silent", "other") => Outcome::Ignored,
                ("static" | "silent", _) => Outcome::Located,
                _ => Outcome::Confirmed,
            };
            assert_eq!(arp(state, address), expected, "{name} {word}");
        }
    }
}
