//! `--port` and `--class`: filters the rows of any resource.

use serde_json::Value;

/// Keys whose value is the number, from 0 to 7, of a row.
const NUMBERS: [&str; 4] = ["class", "priority", "group", "queue"];

/// Selects the rows that are kept.
#[derive(Debug, Default, Clone)]
pub struct Filter {
    pub port: Option<String>,
    pub class: Option<u8>,
}

impl Filter {
    /// Removes the rows that do not match from the part `name` of `answer`.
    pub fn apply(&self, answer: &mut Value, name: &str) {
        if (self.port.is_some() || self.class.is_some())
            && let Some(part) = answer.get_mut(name)
        {
            self.prune(part);
        }
    }

    fn prune(&self, value: &mut Value) {
        match value {
            Value::Array(rows) => {
                rows.retain(|row| self.keeps(row));
                rows.iter_mut().for_each(|row| self.prune(row));
            }
            Value::Object(fields) => fields.values_mut().for_each(|field| self.prune(field)),
            _ => {}
        }
    }

    fn keeps(&self, row: &Value) -> bool {
        let is_port = |name: &String| row.get("port").is_none_or(|port| port == name.as_str());
        self.port.as_ref().is_none_or(is_port) && self.class.is_none_or(|class| is_class(row, class))
    }
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
        Filter { port: port.map(str::to_owned), class }.apply(&mut answer, "x");
        answer["x"].take()
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
