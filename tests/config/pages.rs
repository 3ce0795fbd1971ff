//! docs/api.md shows the operations of the API with the fields of their answers, docs/json.md the fields of reports, as
//! the code describes them. `UPDATE_DOCS=1` writes them again.

use holdfast::api::openapi;
use holdfast::api::operations::{Method, OPERATIONS, Operation, Parameter, STATUSES, Values};
use holdfast::output::Severity;
use holdfast::sim::report as sim;
use holdfast::stats::{NoticeKind, Report};
use serde_json::{Value, json};

use super::features::text;
use super::fields::{Schemas, hold, phrase, with_part};

fn parameter(parameter: &Parameter) -> String {
    let words = match parameter.values {
        Values::Words(words) => words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    };
    let words = if words.is_empty() { words } else { format!(": {words}") };
    format!("- `{}={}`: {}{words}\n", parameter.name, parameter.example, phrase(parameter.text))
}

/// The section of an operation. Answers of requests that change the switch are in its text.
fn section(operation: &Operation, document: &Value) -> String {
    let mut parts = vec![format!("### `{} {}`\n", operation.method.word(), operation.path)];
    if !operation.text.is_empty() {
        parts.push(format!("{}\n", operation.text));
    }
    let query = operation.parameters.iter().filter(|parameter| !operation.has_in_path(parameter.name));
    let query: String = query.map(parameter).collect();
    if !query.is_empty() {
        parts.push(format!("Parameters:\n\n{query}\nFields:\n"));
    }
    if let (Method::Get, Some(member)) = (operation.method, operation.answer.member) {
        let responses = &document["paths"][operation.path]["get"]["responses"];
        let answer = &responses["200"]["content"]["application/json"]["schema"]["properties"][member];
        let schemas = Schemas(document["components"]["schemas"].as_object().expect("schemas"));
        parts.push(schemas.lists(answer));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n") + "\n"
}

#[test]
fn api_page_shows_operations_fields_and_statuses_of_the_code() {
    let (document, page) = (openapi::document(), text("docs/api.md"));
    let operations: String = OPERATIONS.iter().map(|operation| section(operation, &document)).collect();
    let statuses = STATUSES.iter().map(|status| format!("- {}: {}\n", status.code, status.text));
    let fresh = with_part(&page, "operations", &format!("\n{operations}"));
    let fresh = with_part(&fresh, "statuses", &format!("\n{}\n", statuses.collect::<String>()));
    let fresh = with_part(&fresh, "events", &format!("\n{}\n", events()));
    hold("docs/api.md", &page, &fresh);
}

/// The kinds of events by severity.
fn events() -> String {
    let line = |(severity, word, _): (Severity, &str, u8)| {
        let own = NoticeKind::TABLE.iter().filter(|(_, _, of, _)| *of == severity);
        let names: Vec<String> = own.map(|(_, name, _, _)| format!("`{name}`")).collect();
        format!("- `{word}`: {}\n", names.join(", "))
    };
    Severity::TABLE.map(line).concat()
}

/// The lines of fields; those with one text share a line.
fn lines(fields: sim::Fields) -> String {
    let (mut lines, mut names) = (String::new(), Vec::new());
    for (name, text) in fields {
        names.push(format!("`{name}`"));
        if !text.is_empty() {
            lines += &format!("- {}: {text}\n", names.join(", "));
            names.clear();
        }
    }
    assert!(names.is_empty(), "{names:?} have no text");
    lines
}

#[test]
fn json_page_shows_fields_of_reports_of_the_code() {
    let page = text("docs/json.md");
    let mut generator = openapi::generator();
    let report = Value::from(generator.subschema_for::<Report>());
    let fresh =
        with_part(&page, "report", &format!("\n{}\n", Schemas(&generator.take_definitions(true)).lists(&report)));
    let sections = sim::SECTIONS.iter().map(|(title, fields)| format!("\n{title}\n\n{}", lines(fields)));
    let fresh = with_part(&fresh, "run", &format!("{}\n", sections.collect::<String>()));
    let measures = sim::measures().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let fresh = with_part(&fresh, "variants", &format!("\n{measures}\n\n"));
    hold("docs/json.md", &page, &fresh);
}

#[test]
fn each_operation_has_a_name_and_states_the_parameters_of_its_path() {
    let document = openapi::document();
    let mut names = Vec::new();
    for operation in OPERATIONS {
        let described = &document["paths"][operation.path][operation.method.word().to_lowercase()];
        names.push(described["operationId"].as_str().expect("a name").to_owned());
        let in_path = operation.path.split('{').skip(1).filter_map(|part| part.split('}').next());
        for name in in_path {
            assert!(operation.parameters.iter().any(|parameter| parameter.name == name), "{operation:?}");
        }
    }
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

/// The rules of OpenAPI 3.1 (sections 4.8.1 to 4.8.17) for the objects that the description uses.
fn rules() -> Value {
    let response = json!({"anyOf": [
        {"type": "object", "required": ["$ref"], "maxProperties": 1},
        {"type": "object", "required": ["description"], "properties": {"description": {"type": "string"}}},
    ]});
    let parameter = json!({
        "type": "object",
        "required": ["name", "in", "schema"],
        "properties": {"in": {"enum": ["path", "query"]}},
        "if": {"properties": {"in": {"const": "path"}}},
        "then": {"properties": {"required": {"const": true}}},
    });
    let operation = json!({
        "type": "object",
        "required": ["operationId", "responses"],
        "properties": {
            "parameters": {"type": "array", "items": parameter},
            "requestBody": {"type": "object", "required": ["content"]},
            "responses": {
                "type": "object", "minProperties": 1, "additionalProperties": false,
                "patternProperties": {"^[1-5][0-9]{2}$": response},
            },
        },
        "propertyNames": {"enum": ["operationId", "description", "parameters", "requestBody", "responses"]},
    });
    let methods = json!({"get": operation, "post": operation, "delete": operation});
    let path = json!({"type": "object", "minProperties": 1, "additionalProperties": false, "properties": methods});
    json!({
        "type": "object",
        "required": ["openapi", "info", "paths"],
        "propertyNames": {"enum": ["openapi", "info", "servers", "paths", "components"]},
        "properties": {
            "openapi": {"type": "string", "pattern": "^3\\.1\\.[0-9]+$"},
            "info": {"type": "object", "required": ["title", "version"]},
            "paths": {"type": "object", "additionalProperties": false, "patternProperties": {"^/": path}},
        },
    })
}

/// All references in `value`.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Schemas of answers obey that of JSON Schema 2020-12, which OpenAPI 3.1 uses.
#[test]
fn description_is_valid_openapi() {
    let judge = jsonschema::validator_for(&rules()).expect("a valid schema");
    let mut document = openapi::document();
    let errors: Vec<String> =
        judge.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}: {schema}");
    }
    for reference in references(&document) {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference} leads nowhere");
    }
    document["paths"]["/v1"]["get"]["responses"] = "none".into();
    assert!(!judge.is_valid(&document), "the rules find mistakes");
}
