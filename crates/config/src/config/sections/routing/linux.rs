//! `routing.linux`: the network namespace that has the router's addresses and routing daemons.

use super::interfaces::Interfaces;
use crate::config::keys::Key;
use crate::config::yaml::read::Item;
use crate::linux::{LONGEST_NAME, Tap};
use crate::route::LinuxSpec;

pub const KEYS: &[Key] = &[Key::new(
    "namespace",
    "none",
    "letters, digits, `-`, `_`, `.`",
    "[network namespace](linux.md) that has the router's addresses and routing daemons",
)];

/// Longest name of a namespace: that of a file.
const LONGEST_NAMESPACE: usize = 255;

/// Reads the namespace, and checks that each interface can have a tap of its name.
pub fn read(item: &Item<'_>, interfaces: &Interfaces) -> Option<LinuxSpec> {
    let fields = item.fields(KEYS)?;
    let name = fields.required("namespace", "namespace: tor")?;
    let namespace = name.shown();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=LONGEST_NAMESPACE).contains(&namespace.len())
        || !namespace.bytes().all(is_plain)
        || namespace.starts_with('.')
    {
        return name.refuse(format!(
            "`{namespace}` is not a name of a network namespace; write letters, digits, `-`, `_` and `.`, e.g. tor"
        ));
    }
    for interface in interfaces.specs.iter().filter(|interface| !Tap::is_name(&interface.name)) {
        item.fail(format!(
            "interface `{}` cannot have a tap: Linux names have at most {LONGEST_NAME} letters or digits, and no `/`, \
             `:` or `%`; rename the port",
            interface.name
        ));
    }
    let mut names: Vec<&str> = interfaces.specs.iter().map(|interface| interface.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        item.fail(format!("two interfaces would have a tap `{}`; rename the port", twice[0]));
    }
    if names.contains(&"lo") {
        item.fail("port `lo` cannot have a tap, because Linux has an interface of this name; rename the port");
    }
    Some(LinuxSpec { namespace })
}
