//! The answers about routing, with a router that serves requests on a thread.

use std::sync::Arc;

use http_body_util::BodyExt;
use serde_json::Value;

use super::*;
use crate::api::operations::{OPERATIONS, Values};
use crate::plan::LcoreControl;
use crate::router::RouterHandle;
use crate::stats::{Current, fixture};

/// The answers of a switch to `GET` of each path: status and body. It routes if `routes` is true.
fn answers<const N: usize>(routes: bool, paths: [&str; N]) -> [(StatusCode, Value); N] {
    let (switch_view, mut router) = fixture::routing();
    let view = if routes { switch_view } else { fixture::quiet() };
    view.counters.lcores[0].adjacency_frames.iter().take(1).for_each(|counter| counter.add(42));
    let mut served = Served::new(Current::new(view), Arc::new(LcoreControl::new(1)), 1_000_000_000);
    let (handle, requests) = RouterHandle::new();
    served.router = routes.then_some(handle);
    let thread = std::thread::spawn(move || requests.iter().for_each(|run| run(&mut router, Nanos(3_000_000_000))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = paths.map(|path| {
        let (status, body) = runtime.block_on(async {
            let response = match path.split_once('?').map_or((path, None), |(name, query)| (name, Some(query))) {
                ("/v1/interfaces", _) => interfaces(&served).await,
                ("/v1/neighbours", _) => neighbours(&served).await,
                (_, query) => super::routes(&served, query).await,
            };
            (response.status(), response.into_body().collect().await.unwrap().to_bytes())
        });
        (status, serde_json::from_slice(&body).unwrap())
    });
    drop(served);
    thread.join().unwrap();
    found
}

fn prefixes(answer: &Value) -> Vec<&str> {
    answer["routes"]["entries"].as_array().unwrap().iter().map(|row| row["prefix"].as_str().unwrap()).collect()
}

#[test]
fn interfaces_and_neighbours_are_answered_with_names() {
    let [(_, interfaces), (_, neighbours)] = answers(true, ["/v1/interfaces", "/v1/neighbours"]);
    let expected = serde_json::json!({
        "interface": "p1", "kind": "port", "vlan": null, "ports": ["p1"], "up": true, "shut": false,
        "mac": "02:48:46:00:00:00", "mtu_bytes": 1500, "addresses": ["10.0.0.1/24", "2001:db8::1/64", "fe80::48:46ff:fe00:0/64"],
    });
    assert_eq!(interfaces["interfaces"]["entries"][0], expected);
    let expected = serde_json::json!([
        {"interface": "p1", "address": "10.0.0.2", "mac": "02:00:00:00:00:09", "state": "reachable",
         "age_ns": 2_000_000_000_u64, "groups": 1, "routed_frames": 42},
        {"interface": "p2", "address": "10.0.1.2", "mac": null, "state": "incomplete", "age_ns": null, "groups": 1,
         "routed_frames": 0},
    ]);
    assert_eq!(neighbours["neighbours"]["entries"], expected);
}

#[test]
fn routes_are_filtered_and_limited() {
    let [longest, part, fixed, six, few] = answers(
        true,
        [
            "/v1/routes?address=10.9.1.1",
            "/v1/routes?prefix=10.0.0.0/16&source=connected",
            "/v1/routes?source=static",
            "/v1/routes?family=ipv6&prefix=2001%3Adb8::%2F32",
            "/v1/routes?limit=2",
        ],
    )
    .map(|(_, answer)| answer);
    let expected = serde_json::json!([{
        "prefix": "10.9.0.0/16", "source": "static", "action": "forward", "interface": null, "usable": true,
        "next_hops": [{"address": "10.0.0.2", "interface": "p1", "weight": 1, "usable": true},
                      {"address": "10.0.1.2", "interface": "p2", "weight": 3, "usable": false}],
    }]);
    assert_eq!(longest["routes"]["entries"], expected);
    assert!(prefixes(&part).contains(&"10.0.1.0/24") && !prefixes(&part).contains(&"10.9.0.0/16"), "{part}");
    assert_eq!(prefixes(&fixed), ["10.8.0.0/16", "10.9.0.0/16"]);
    assert_eq!(fixed["routes"]["entries"][0]["action"], "drop");
    assert_eq!(prefixes(&six).len(), 6, "{six}");
    assert_eq!(prefixes(&few).len(), 2, "{few}");
    assert_eq!(few["routes"]["next"], prefixes(&few)[1]);
}

#[test]
fn pages_have_all_routes_in_order() {
    let [all] = answers(true, ["/v1/routes"]).map(|(_, answer)| answer);
    assert_eq!(all["routes"]["next"], Value::Null);
    let (mut found, mut after) = (Vec::new(), "0.0.0.0/0".to_owned());
    loop {
        let path = format!("/v1/routes?limit=3&after={after}");
        let [page] = answers(true, [&path]).map(|(_, answer)| answer);
        assert!(prefixes(&page).len() <= 3);
        found.extend(prefixes(&page).into_iter().map(str::to_owned));
        match page["routes"]["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, prefixes(&all));
    let [part] = answers(true, ["/v1/routes?prefix=10.0.0.0/8&after=10.8.0.0/16"]).map(|(_, answer)| answer);
    assert_eq!((prefixes(&part), &part["routes"]["next"]), (vec!["10.9.0.0/16"], &Value::Null));
}

#[test]
fn walk_ends_at_its_bound_without_a_selected_route() {
    let (_, router) = fixture::routing();
    let mut range = RouteRange { after: None, within: None, is_ipv6: Some(false), most: 10, most_walked: 4 };
    let (mut found, mut walks) = (Vec::new(), 0);
    loop {
        let (views, next) = router.routes_view(&range, Some(Source::Static));
        found.extend(views.iter().map(|view| view.prefix.to_string()));
        walks += 1;
        range.after = next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(found, ["10.8.0.0/16", "10.9.0.0/16"]);
    assert!(walks > 3, "{walks}");
}

#[test]
fn wrong_parameter_is_refused_with_remedy() {
    for (query, error, remedy) in [
        ("adress=10.1.1.1", "no parameter `adress`", "use address, prefix"),
        ("address=10.1.1", "`address=10.1.1` is not valid", "write an address"),
        ("prefix=10.1.1.1", "`prefix=10.1.1.1` is not valid", "write a prefix"),
        ("source=bgp", "`source=bgp` is not valid", "local, neighbour, connected, static, kernel"),
        ("family=ip", "`family=ip` is not valid", "family=ipv4 or family=ipv6"),
        ("limit=1000000", "`limit=1000000` is not valid", "from 1 to 10000"),
        ("after=10.1", "`after=10.1` is not valid", "write the `next`"),
        ("address=10.1.1.1&source=static", "no further filter", "alone"),
        ("address=10.1.1.1&after=10.0.0.0/8", "no further filter", "alone"),
    ] {
        let (what, how) = Selection::read(query).unwrap_err();
        assert!(what.contains(error) && how.contains(remedy), "{query}: {what}; {how}");
    }
    assert_eq!(Selection::read(""), Ok(Selection::default()));
    let [(status, answer)] = answers(true, ["/v1/routes?x=1"]);
    assert_eq!((status, &answer["error"]), (StatusCode::BAD_REQUEST, &"routes have no parameter `x`".into()));
}

#[test]
fn switch_that_bridges_answers_empty_lists() {
    for (status, answer) in answers(false, ["/v1/interfaces", "/v1/neighbours", "/v1/routes"]) {
        assert_eq!(status, StatusCode::OK);
        let part = answer.as_object().unwrap().values().find_map(Value::as_object).unwrap();
        assert_eq!((&part["routing"], &part["entries"]), (&Value::Bool(false), &serde_json::json!([])), "{answer}");
    }
}

#[test]
fn every_described_parameter_is_read_and_named_in_the_refusal_of_another() {
    let operation = OPERATIONS.iter().find(|operation| operation.path == "/v1/routes").unwrap();
    let (_, remedy) = Selection::read("x=1").unwrap_err();
    for parameter in operation.parameters {
        let words = if let Values::Words(words) = parameter.values { words() } else { vec![parameter.example] };
        for word in words {
            let query = format!("{}={word}", parameter.name);
            assert!(Selection::read(&query).is_ok(), "{query}");
        }
        assert!(remedy.contains(parameter.name), "{remedy}");
    }
}
