//! Tests of variants.

use super::*;

fn names(variants: &[(String, Scenario)]) -> Vec<&str> {
    variants.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn variant_overrides_values_by_key_and_by_name() {
    let variants = variants_of(&format!(
        "{STAR}flows: [{{from: h1, to: h2}}]\nvariants:\n  \
         - {{name: plain}}\n  \
         - {{name: slow, seed: 5, hosts: [{{name: h2, receiver: {{rate: 1G, buffer: 9kB}}}}]}}\n  \
         - name: no pfc\n    switches: [{{name: tor, config: {{ports: [{{name: p*, pfc: off}}], buffer: {{size: 1MiB}}}}}}]\n  \
         - {{name: other flow, flows: [{{from: h3, to: h1}}]}}\n"
    ));
    assert_eq!(names(&variants), ["plain", "slow", "no pfc", "other flow"]);
    let [plain, slow, off, other] = &variants[..] else { panic!("four") };
    assert!(variants.iter().all(|(_, scenario)| scenario.name == "x" && scenario.hosts.len() == 3));
    assert_eq!((plain.1.seed, slow.1.seed), (1, 5));
    assert!(slow.1.hosts[1].receiver.is_some() && slow.1.hosts[0].receiver.is_none());
    assert!(off.1.switches[0].config.switch.ports.iter().all(|port| !port.pfc.is_on()));
    assert!(plain.1.switches[0].config.switch.ports.iter().all(|port| port.pfc.is_on()));
    assert_eq!((other.1.flows.len(), other.1.flows[0].name.as_str()), (1, "h3-h1"));
}

#[test]
fn lists_of_variants_are_combined_as_axes() {
    let variants = variants_of(&format!(
        "{STAR}variants:\n  - [{{name: a}}, {{name: b, seed: 2}}]\n  - [{{name: c}}, {{name: d, duration: 2ms}}]\n"
    ));
    assert_eq!(names(&variants), ["a, c", "a, d", "b, c", "b, d"]);
    let of = |index: usize| (variants[index].1.seed, variants[index].1.duration);
    assert_eq!([of(0), of(3)], [(1, Nanos(1_000_000)), (2, Nanos(2_000_000))]);
}

#[test]
fn variant_may_add_a_key_that_the_scenario_lacks() {
    let text = STAR.replace("duration: 1ms\n", "");
    let variants = variants_of(&format!("{text}variants: [{{name: t*, count: 3, duration: '*ms'}}]\n"));
    assert_eq!(names(&variants), ["t1", "t2", "t3"]);
    assert_eq!(variants[2].1.duration, Nanos(3_000_000));
}

#[test]
fn errors_in_a_variant_point_at_their_line_and_column() {
    let text = format!(
        "{STAR}variants:\n  - {{name: a}}\n  - {{name: b, hosts: [{{name: h1, pfc: sometimes}}], switches: [{{name: tor, config: {{ports: [{{name: p2, speed: 1Q}}]}}}}]}}\n"
    );
    insta::assert_snapshot!(errors_of(&text), @r"
    x.yaml:9:39: hosts[0].pfc: `sometimes` is not one of the choices; write `obey` or `ignore` (in variant `b`)
    x.yaml:9:110: switches[0].config.ports[1].speed: `1Q` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s (in variant `b`)
    ");
    let text = format!("{STAR}seed: no\nvariants: [{{name: a}}, {{name: b}}]\n");
    assert_eq!(
        errors_of(&text),
        "x.yaml:7:7: seed: `no` is not a seed; write a whole number from 0 to 18446744073709551615"
    );
}
