//! The description of the API for programs, in OpenAPI 3.1: operations, and the schemas of their answers.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::answer::{Refusal, text as line};
use super::operations::{OPERATIONS, Operation, Parameter, STATUSES, Status, Values};
use crate::config::keys::sections;
use crate::stats::links::without_links;

/// The path of components in a reference to one.
const COMPONENTS: &str = "#/components/schemas/";

/// A description in OpenAPI.
pub(super) struct OpenApi;

impl JsonSchema for OpenApi {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OpenApi".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "description": "A description in OpenAPI 3.1.", "required": ["openapi"]})
    }

    fn inline_schema() -> bool {
        true
    }
}

/// The description as text, made once.
pub(super) fn text() -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut document = document();
        remove_links(&mut document);
        line(&document)
    });
    &TEXT
}

/// The description. Texts have the links of the pages, relative to docs.
#[must_use]
pub fn document() -> Value {
    let mut generator = generator();
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[operation.method.word().to_lowercase()] = described(operation, &mut generator);
    }
    let error = generator.subschema_for::<Refusal<'_>>();
    let refused =
        |status: &Status| json!({"description": status.text, "content": {"application/json": {"schema": error}}});
    let responses: Map<String, Value> =
        STATUSES.iter().map(|status| (status.code.to_string(), refused(status))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": "v1",
            "summary": "State and counters of a running switch",
            "description": "HTTP/1.1 over a Unix socket. Suffixes are units. Counts and times only grow. \
                            Fields may be added.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        // The host is a word: clients connect to the socket.
        "servers": [{"url": "http://holdfast"}],
        "paths": paths,
        "components": {"responses": responses, "schemas": generator.take_definitions(true)},
    })
}

/// The generator of schemas as they are in answers, by the rules of JSON Schema 2020-12.
#[must_use]
pub fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = COMPONENTS.trim_start_matches('#').trim_end_matches('/').to_owned().into();
        settings.meta_schema = None;
    });
    // Clients take the defaults for absent fields of older switches. Answers have all fields.
    let without_default = |schema: &mut Schema| {
        schema.remove("default");
    };
    settings.with_transform(RecursiveTransform(without_default)).into_generator()
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let answer = answer(operation, generator);
    let done = |code: &u16| {
        let description = if *code == 200 { "The answer." } else { "The answer, with the reason in it." };
        let content = json!({"application/json": {"schema": answer}});
        (code.to_string(), json!({"description": description, "content": content}))
    };
    let mut responses: Map<String, Value> = operation.done.iter().map(done).collect();
    let is_refusal = |status: &&Status| status.is_common || operation.refused.contains(&status.code);
    for code in STATUSES.iter().filter(is_refusal).map(|status| status.code.to_string()) {
        let reference = json!({"$ref": format!("#/components/responses/{code}")});
        responses.insert(code, reference);
    }
    let words = operation.path.split('/').skip(2).filter(|word| !word.is_empty());
    let id = words.fold(operation.method.word().to_lowercase(), |id, word| {
        id + "_" + &word.replace(['{', '}'], "").replace('.', "_")
    });
    let mut described = json!({"operationId": id, "responses": responses});
    if !operation.text.is_empty() {
        described["description"] = operation.text.into();
    }
    if !operation.parameters.is_empty() {
        described["parameters"] = operation.parameters.iter().map(|of| parameter(operation, of)).collect();
    }
    if let Some(body) = operation.body {
        let content = json!({"schema": body(generator)});
        described["requestBody"] = json!({"required": true, "content": {"application/json": content}});
    }
    described
}

/// The schema of the whole answer.
fn answer(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let schema = (operation.answer.schema)(generator);
    let Some(member) = operation.answer.member else { return schema.into() };
    json!({
        "type": "object",
        "properties": {"at_ns": {"type": "integer", "description": "Time since the start of the switch."}, member: schema},
        "required": ["at_ns", member],
    })
}

fn parameter(operation: &Operation, parameter: &Parameter) -> Value {
    let schema = match parameter.values {
        Values::Text => json!({"type": "string"}),
        Values::Words(words) => json!({"type": "string", "enum": words()}),
        Values::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
    };
    let is_in_path = operation.has_in_path(parameter.name);
    json!({
        "name": parameter.name,
        "in": if is_in_path { "path" } else { "query" },
        "required": is_in_path,
        "description": parameter.text,
        "schema": schema,
        "example": parameter.example,
    })
}

/// The schema of faults in a request: one, or a list. The switch checks their values.
pub(super) fn faults(generator: &mut SchemaGenerator) -> Schema {
    let section = sections().into_iter().find(|section| section.path == "faults.list[]");
    let keys = section.iter().flat_map(|section| section.keys);
    let properties: Map<String, Value> =
        keys.map(|key| (key.name.to_owned(), json!({"description": key.meaning}))).collect();
    let fault = json!({
        "type": "object",
        "description": "A fault to inject, with the keys of the configuration.",
        "properties": properties,
        "additionalProperties": false,
    });
    generator.definitions_mut().insert("NewFault".to_owned(), fault);
    let reference = json!({"$ref": format!("{COMPONENTS}NewFault")});
    json_schema!({"anyOf": [reference, {"type": "array", "items": reference}]})
}

/// Replaces each link in texts of `value` by its words: links are relative to the pages.
fn remove_links(value: &mut Value) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
            Value::String(text) if name == "description" => *text = without_links(text),
            member => remove_links(member),
        }),
        Value::Array(items) => items.iter_mut().for_each(remove_links),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_state_all_their_fields_and_no_defaults() {
        let text = String::from_utf8(text().to_vec()).unwrap();
        assert!(!text.contains("\"default\"") && !text.contains("](") && text.len() < 1 << 18, "{}", text.len());
        let document: Value = serde_json::from_str(&text).unwrap();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let properties = schema["properties"].as_object().map_or(0, Map::len);
            let required = schema["required"].as_array().map_or(0, Vec::len);
            assert!(properties == required || name == "NewFault", "{name}: {schema}");
        }
    }
}
