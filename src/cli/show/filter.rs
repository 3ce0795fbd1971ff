//! `--port` and `--class`: filters the rows of any resource.

use serde_json::Value;

/// Keys whose value is the number, from 0 to 7, of a row.
const NUMBERS: [&str; 4] = ["class", "priority", "group", "queue"];

/// Sources of routes that only `--all` shows, and the action of those that drop.
const SELDOM_SOURCES: [&str; 2] = ["local", "neighbour"];
const DROP: &str = "drop";

/// Selects the rows that are kept.
#[derive(Debug, Default, Clone)]
pub struct Filter {
    pub port: Option<String>,
    pub class: Option<u8>,
    /// The interfaces of `port`, where rows have interfaces instead of ports.
    pub interfaces: Option<Vec<String>>,
    /// Whether routes that an operator seldom looks for are left out.
    pub is_short: bool,
}

impl Filter {
    /// Removes the rows that do not match from the part `name` of `answer`.
    pub fn apply(&self, answer: &mut Value, name: &str) {
        if (self.port.is_some() || self.class.is_some() || self.is_short)
            && let Some(part) = answer.get_mut(name)
        {
            self.prune(part);
        }
    }

    fn prune(&self, value: &mut Value) {
        match value {
            Value::Array(rows) => {
                rows.retain_mut(|row| self.keeps(row));
                rows.iter_mut().for_each(|row| self.prune(row));
            }
            Value::Object(fields) => fields.values_mut().for_each(|field| self.prune(field)),
            _ => {}
        }
    }

    /// Whether `row` is kept; a route loses the next hops of other interfaces.
    fn keeps(&self, row: &mut Value) -> bool {
        if self.is_short && is_seldom(row) {
            return false;
        }
        if let Some(interfaces) = &self.interfaces
            && row.get("interface").is_some()
        {
            return is_of_interfaces(row, interfaces) && self.class.is_none_or(|class| is_class(row, class));
        }
        self.port.as_ref().is_none_or(|name| is_of_port(row, name))
            && self.class.is_none_or(|class| is_class(row, class))
    }
}

/// Whether `row` is a route that an operator seldom looks for.
fn is_seldom(row: &Value) -> bool {
    let is_one_of =
        |key: &str, values: &[&str]| row.get(key).is_some_and(|value| values.iter().any(|one| value == one));
    is_one_of("source", &SELDOM_SOURCES) || is_one_of("action", &[DROP])
}

/// Whether `row` belongs to one of `interfaces`: by itself, or by a next hop. Others of its next hops are removed.
fn is_of_interfaces(row: &mut Value, interfaces: &[String]) -> bool {
    let is_meant = |row: &Value| row.get("interface").is_some_and(|name| interfaces.iter().any(|one| name == one));
    match row.get_mut("next_hops").and_then(Value::as_array_mut) {
        Some(hops) if !hops.is_empty() => {
            hops.retain(is_meant);
            !hops.is_empty()
        }
        _ => is_meant(row),
    }
}

/// Whether `row` belongs to the port `name`: by its port, by a list of ports or by a member. Rows with none of these
/// are parts of such rows, and stay.
fn is_of_port(row: &Value, name: &str) -> bool {
    if let Some(port) = row.get("port") {
        return port == name;
    }
    let lists = ["ports", "untagged_ports", "tagged_ports", "members"].map(|key| row.get(key));
    if lists.iter().all(|list| list.is_none_or(Value::is_null)) {
        return true;
    }
    let is_it = |entry: &Value| entry == name || entry.get("port").is_some_and(|port| port == name);
    lists.into_iter().flatten().filter_map(Value::as_array).flatten().any(is_it)
}

/// Whether `row` belongs to `class`: by its list of classes, or by its own number.
fn is_class(row: &Value, class: u8) -> bool {
    let Value::Object(fields) = row else { return true };
    if let Some(classes) = fields.get("classes").and_then(Value::as_array)
        && classes.iter().all(Value::is_u64)
    {
        return classes.iter().any(|one| *one == class);
    }
    NUMBERS.iter().find_map(|key| fields.get(*key)).is_none_or(|number| *number == class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn only(port: Option<&str>, class: Option<u8>, part: Value) -> Value {
        let mut answer = json!({"at_ns": 5, "x": part});
        Filter { port: port.map(str::to_owned), class, ..Filter::default() }.apply(&mut answer, "x");
        answer["x"].take()
    }

    #[test]
    fn rows_with_lists_of_ports_or_members_are_kept_by_port() {
        let rows = json!([
            {"lcore": 0, "ports": ["p1", "p3"]}, {"lcore": 1, "ports": ["p2"]},
            {"vlan": 10, "untagged_ports": ["p2"], "tagged_ports": ["p1"]}, {"vlan": 20, "tagged_ports": []},
            {"name": "bond0", "members": [{"port": "p1"}, {"port": "p2"}]}, {"name": "any", "ports": null},
            {"name": "bond1", "members": [{"port": "p3"}]}, {"key": "size", "port": null},
        ]);
        let kept = json!([
            {"lcore": 0, "ports": ["p1", "p3"]}, {"vlan": 10, "untagged_ports": ["p2"], "tagged_ports": ["p1"]},
            {"name": "bond0", "members": [{"port": "p1"}]}, {"name": "any", "ports": null},
        ]);
        assert_eq!(only(Some("p1"), None, rows), kept);
    }

    #[test]
    fn route_keeps_the_next_hops_of_the_interfaces_of_a_port() {
        let hop = |interface: &str| json!({"address": "10.0.0.1", "interface": interface});
        let route = |hops: &[Value]| json!({"prefix": "10.9.0.0/16", "interface": null, "next_hops": hops});
        let connected = |name: &str| json!({"prefix": "10.0.0.0/24", "interface": name, "next_hops": []});
        let mut answer = json!({"routes": {"routing": true, "entries": [
            route(&[hop("p1"), hop("p2")]), route(&[hop("p2")]), connected("p1"), connected("p2"),
        ]}});
        let filter = Filter { port: Some("p1".into()), interfaces: Some(vec!["p1".into()]), ..Filter::default() };
        filter.apply(&mut answer, "routes");
        assert_eq!(answer["routes"]["entries"], json!([route(&[hop("p1")]), connected("p1")]));
    }

    #[test]
    fn short_list_of_routes_has_no_local_neighbour_and_drop_entries() {
        let route = |source: &str, action: &str| json!({"source": source, "action": action});
        let rows = [("local", "local"), ("neighbour", "forward"), ("static", "drop"), ("static", "forward")];
        let rows: Vec<Value> = rows.into_iter().map(|(source, action)| route(source, action)).collect();
        let mut answer = json!({"routes": {"routing": true, "entries": rows}});
        Filter { is_short: true, ..Filter::default() }.apply(&mut answer, "routes");
        assert_eq!(answer["routes"]["entries"], json!([route("static", "forward")]));
    }

    #[test]
    fn rows_are_kept_by_port_and_class() {
        let rows = json!([
            {"port": "p1", "class": 3, "n": 1}, {"port": "p2", "class": 3, "n": 2}, {"port": "p2", "class": null, "n": 3}
        ]);
        assert_eq!(only(Some("p1"), None, rows.clone()), json!([{"port": "p1", "class": 3, "n": 1}]));
        assert_eq!(only(None, Some(3), rows.clone()).as_array().unwrap().len(), 2);
        assert_eq!(only(Some("p2"), Some(0), rows.clone()), json!([]));
        assert_eq!(only(None, None, rows.clone()), rows);
    }

    #[test]
    fn class_filter_matches_group_members_and_nested_rows() {
        let groups = json!([{"port": "p1", "group": 3, "classes": [3, 4]}, {"port": "p1", "group": 4, "classes": []}]);
        assert_eq!(only(None, Some(4), groups), json!([{"port": "p1", "group": 3, "classes": [3, 4]}]));
        let pfc = json!([{"port": "p1", "priorities": [{"priority": 3}, {"priority": 4}]}]);
        assert_eq!(only(None, Some(4), pfc), json!([{"port": "p1", "priorities": [{"priority": 4}]}]));
        let buffers = json!({"size_bytes": 5, "ports": [{"port": "p1"}, {"port": "p2"}]});
        assert_eq!(only(Some("p2"), None, buffers), json!({"size_bytes": 5, "ports": [{"port": "p2"}]}));
        let ports = json!([{"port": "p1", "vlan_tagged": [10, 20], "classes": [{"class": 0}, {"class": 3}]}]);
        let kept = json!([{"port": "p1", "vlan_tagged": [10, 20], "classes": [{"class": 3}]}]);
        assert_eq!(only(Some("p1"), Some(3), ports), kept);
    }
}
