//! A host that ignores PFC beside one that obeys it.

use crate::launch::{finish, run};
use crate::program::{Config, report};

#[test]
fn host_that_ignores_pfc_is_named_in_verdict_and_advice_and_its_neighbour_is_not() {
    let text = "preset: roce\nwatchdog: off\nports:\n\
                - {name: a, device: ring, speed: 10G}\n- {name: b, device: ring, speed: 10G}\n\
                - {name: out, device: ring, speed: 1G}\n\
                hosts:\n\
                - {name: ha, port: a, pfc: ignore, flows: [{to: hout, kind: roce, rate: 1G}]}\n\
                - {name: hb, port: b, flows: [{to: hout, kind: roce, rate: 1G}]}\n\
                - {name: hout, port: out}\n";
    let config = Config::new(text);
    let ended = finish(run(&[&config.path(), "--duration", "2s", "--json", "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    let exposed = report["verdict"]["not_lossless"].as_array().expect("ports");
    let accused: Vec<_> = exposed.iter().filter(|port| port["late_frames"].as_u64() > Some(0)).collect();
    assert!(matches!(accused[..], [port] if port["port"] == "a"), "{exposed:?}");
    let advice = report["advice"].as_array().expect("advice");
    let texts = advice.iter().filter(|advice| advice["topic"] == "peer_disobeys").map(|advice| &advice["text"]);
    let texts: Vec<_> = texts.filter_map(|text| text.as_str()).collect();
    assert!(matches!(texts[..], [text] if text.starts_with("a class 3: the peer does not stop at XOFF")), "{texts:?}");
    assert!(ended.stderr.contains("peer: a class 3: the peer does not stop at XOFF"), "{}", ended.stderr);
}
