//! Keys that have another name now. A file with the old name works as before, with a warning that names the new one.
//! docs/versions.md says for how long.

/// A key with its old and its new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renamed {
    /// The mapping that holds the key: `ports[]`, or empty for the top.
    pub section: &'static str,
    /// The name that works as an alias.
    pub old: &'static str,
    /// The name now.
    pub new: &'static str,
    /// The first version that refuses the old name.
    pub until: &'static str,
}

/// All renamed keys. A new entry needs one in docs/versions.md. Tests have one of their own.
const RENAMED: &[Renamed] = if cfg!(test) {
    &[Renamed { section: "lcores", old: "test_poll_interval", new: "poll_gap", until: "9.0" }]
} else {
    &[]
};

/// The path of a switch's configuration in a scenario of the simulator.
const IN_SCENARIO: &str = "switches[].config";

/// Returns the entry for the key `name` of the mapping at `path`, such as `ports[3]`, if that is an old name.
pub fn find(path: &str, name: &str) -> Option<&'static Renamed> {
    let of_name = |entry: &&Renamed| entry.old == name && entry.section == section(path);
    RENAMED.iter().find(of_name)
}

/// Returns the name now of the key `name` at `path`.
pub fn name_now<'a>(path: &str, name: &'a str) -> &'a str {
    find(path, name).map_or(name, |entry| entry.new)
}

/// Removes the indices of a path: `ports[]` for `ports[3]`.
fn section(path: &str) -> String {
    let mut parts = path.split('[');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str("[]");
        plain.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    match plain.strip_prefix(IN_SCENARIO) {
        Some(inside) if inside.is_empty() || inside.starts_with('.') => inside.trim_start_matches('.').to_owned(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const PORTS: &str = "ports: [{name: p1, device: net_null0, speed: 10G}]";

    #[test]
    fn sections_are_paths_without_indices() {
        assert_eq!(section("ports[3]"), "ports[]");
        assert_eq!(section("switches[0].config.ports[12].maps"), "ports[].maps");
        assert_eq!(section("switches[1].config"), "");
        assert_eq!((section(""), section("lcores")), (String::new(), "lcores".to_owned()));
    }

    #[test]
    fn old_key_works_as_the_new_one_and_warns() {
        let parse = |key: &str| config::parse("x.yaml", &format!("{PORTS}\nlcores: {{{key}: 70us}}")).expect("valid");
        let (old, new) = (parse("test_poll_interval"), parse("poll_gap"));
        assert_eq!(old.switch, new.switch);
        assert_eq!(new.warnings, [""; 0]);
        let [warning] = old.warnings.as_slice() else { panic!("{:?}", old.warnings) };
        assert!(warning.contains("x.yaml:2:10: lcores: `test_poll_interval` is called `poll_gap` now"), "{warning}");
        assert!(warning.contains("9.0"), "{warning}");
    }

    #[test]
    fn old_key_beside_the_new_one_is_refused() {
        let text = format!("{PORTS}\nlcores: {{test_poll_interval: 70us, poll_gap: 70us}}");
        let errors = config::parse("x.yaml", &text).expect_err("which of both?").to_string();
        assert!(errors.contains("`test_poll_interval` is the old name of `poll_gap`; keep one of them"), "{errors}");
    }

    #[test]
    fn renamed_key_in_another_section_is_unknown() {
        let errors = config::parse("x.yaml", &format!("{PORTS}\ntest_poll_interval: 70us")).expect_err("not here");
        assert!(errors.to_string().contains("unknown key"), "{errors}");
    }
}
