//! The key `routing.linux`.

use super::*;

#[test]
fn linux_takes_a_namespace_and_lets_interfaces_be_unnumbered() {
    let config =
        accept(&format!("{TOR}routing:\n  interfaces: [{{port: u1}}, {{port: u2}}]\n  linux: {{namespace: tor-1}}\n"));
    let routing = routing(&config);
    assert_eq!(routing.linux.as_ref().map(|linux| linux.namespace.as_str()), Some("tor-1"));
    assert!(routing.interfaces.iter().all(|interface| interface.addresses.is_empty()));
    assert_eq!(tor("").switch.routing.unwrap().linux, None);
}

#[test]
fn linux_refuses_names_that_linux_cannot_have() {
    refuse_after_interfaces(
        "  linux: {namespace: a/b}\n",
        "x.yaml:11:22: routing.linux.namespace: `a/b` is not a name of a network namespace; write letters, digits, `-`, `_` and `.`, \
         e.g. tor",
    );
    refuse_after_interfaces(
        "  linux: {}\n",
        "x.yaml:11:10: routing.linux: `namespace` is missing; write e.g. `namespace: tor`",
    );
}
