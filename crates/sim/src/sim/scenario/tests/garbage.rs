//! Property test: no text makes the reader panic.

use proptest::prelude::*;

use super::*;

/// Fragments of scenarios, and some that no scenario contains.
const PIECES: &[&str] = &[
    "count: 3",
    "count: 99999999",
    "first: 2",
    "p*",
    "*",
    "h*",
    "all",
    "[h1, h2]",
    "variants:",
    "name: x",
    "{}",
    "[]",
    "null",
    "~",
    "-1",
    "0",
    "1",
    "99999999999999999999",
    "1e400",
    "imix",
    "websearch",
    "true",
    "off",
    "tor.p1",
    "h1",
    ".",
    "100%",
    "0ns",
    "1h",
    ": ",
    ":",
    "- ",
    "\n",
    "\n  ",
    "\n    ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "&a ",
    "*a",
    "<<: ",
    "|",
    "\"",
    "'",
    "#",
    "---\n",
    "%",
    "\t",
    "é",
    "\u{0}",
    "file: /",
    "file: x",
];

/// Returns the scenario with every key, with variants added.
fn whole() -> String {
    format!(
        "{EVERYTHING}variants:\n  - [{{name: one, seed: 3}}, {{name: two, switches: [{{name: a, poll: {{every: 3us}}}}]}}]\n  \
         - [{{name: x, hosts: [{{name: h*, response: 1us}}]}}, {{name: y, faults: []}}]\n"
    )
}

/// An edit at a place, given in 2^-16 of the text.
#[derive(Debug, Clone)]
enum Mistake {
    Insert(u16, &'static str),
    Cut(u16, u16),
    Double(u16, u16),
    Move(u16, u16, u16),
}

fn mistakes() -> impl Strategy<Value = Vec<Mistake>> {
    let one = prop_oneof![
        (any::<u16>(), prop::sample::select(PIECES)).prop_map(|(at, piece)| Mistake::Insert(at, piece)),
        (any::<u16>(), 1_u16..30).prop_map(|(at, len)| Mistake::Cut(at, len)),
        (any::<u16>(), 1_u16..60).prop_map(|(at, len)| Mistake::Double(at, len)),
        (any::<u16>(), 1_u16..12, any::<u16>()).prop_map(|(at, len, to)| Mistake::Move(at, len, to)),
    ];
    prop::collection::vec(one, 1..5)
}

fn make(text: &mut Vec<char>, mistake: &Mistake) {
    let index = |at: u16, text: &[char]| (usize::from(at) * (text.len() + 1)) >> 16;
    let part = |at: usize, len: u16, text: &[char]| at..(at + usize::from(len)).min(text.len());
    match *mistake {
        Mistake::Insert(at, piece) => {
            let at = index(at, text);
            text.splice(at..at, piece.chars());
        }
        Mistake::Cut(at, len) => drop(text.drain(part(index(at, text), len, text))),
        Mistake::Double(at, len) => {
            let at = index(at, text);
            let copy = text[part(at, len, text)].to_vec();
            text.splice(at..at, copy);
        }
        Mistake::Move(at, len, to) => {
            let moved: Vec<char> = text.drain(part(index(at, text), len, text)).collect();
            let to = index(to, text);
            text.splice(to..to, moved);
        }
    }
}

/// Asserts that a text is either valid, or gives errors with a place and a message on one line.
fn judge(text: &str) {
    match parse("x.yaml", text, None, &Options::default()) {
        Ok(variants) => variants.iter().for_each(|(_, scenario)| check(scenario)),
        Err(errors) => {
            assert!(errors.iter().count() > 0);
            for error in errors.iter() {
                assert!(error.place.is_some_and(|place| place.line >= 1 && place.column >= 1), "{error}");
                assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}");
            }
        }
    }
}

/// Checks the properties that the engine relies upon.
fn check(scenario: &Scenario) {
    let hosts = scenario.hosts.len();
    assert_eq!(scenario.links.iter().filter(|link| matches!(link.b, End::Host(_))).count(), hosts);
    for flow in &scenario.flows {
        assert!(flow.from < hosts && flow.to < hosts && flow.from != flow.to && flow.class < 8 && flow.priority < 8);
    }
    for link in &scenario.links {
        for end in [link.a, link.b] {
            match end {
                End::Port(port) => {
                    assert_eq!(scenario.switches[port.switch].config.switch.ports[port.port].rate, link.rate);
                }
                End::Host(host) => assert!(host < hosts),
            }
        }
    }
    let samples = (scenario.duration.0 + scenario.drain.0) / scenario.sample.0;
    assert!(samples <= 20_000 && scenario.duration.0 > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn mutated_scenario_does_not_make_the_reader_panic(mistakes in mistakes()) {
        let mut text: Vec<char> = whole().chars().collect();
        mistakes.iter().for_each(|mistake| make(&mut text, mistake));
        judge(&text.iter().collect::<String>());
    }

    #[test]
    fn random_text_does_not_make_the_reader_panic(text in "\\PC{0,200}") {
        judge(&text);
    }
}

#[test]
fn scenario_with_every_key_is_accepted() {
    assert_eq!(variants_of(&whole()).len(), 4);
    judge(&whole());
}

#[test]
fn scenario_expands_nested_counts_and_variants_within_bounds() {
    let nested = "a: [{name: a*, count: 1024, b: [{name: b*, count: 1024, c: [{name: c*, count: 1024}]}]}]\n";
    judge(&format!("{STAR}{nested}"));
    let mesh = "duration: 1ms\nswitches:\n  - {name: s*, count: 64, config: {ports: [{name: p*, count: 64, speed: 1G}]}}\n\
                hosts: [{name: h*, count: 1024, at: s1.p1}]\nflows: [{from: all, to: all}]\n";
    judge(mesh);
    let many = "duration: 1ms\nswitches:\n  - {name: s*, count: 2, config: {ports: [{name: p*, count: 64, speed: 1G}]}}\n\
                hosts: [{name: a*, count: 63, at: s1.p*}, {name: b*, count: 63, at: s2.p*}]\nlinks: [{a: s1.p64, b: s2.p64}]\n\
                flows: [{from: all, to: all}]\nvariants: [{name: v*, count: 256, seed: '*'}]\n";
    assert!(errors_of(many).starts_with("x.yaml:7:11: variants: the variants have too many ports and flows"));
    assert_eq!(variants_of(&many.replace("256", "2"))[1].1.flows.len(), 126 * 125);
    judge(&format!("{STAR}flows: [{{from: h1, to: h2, count: 1024, rate: '*k'}}]\n"));
}
