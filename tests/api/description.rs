//! Compares answers with the OpenAPI description of the API.

use std::sync::LazyLock;

use holdfast::api::openapi;
use holdfast::api::operations::{OPERATIONS, Operation};
use serde_json::{Value, json};

/// The description, whose objects have no further fields: an answer with a field that it lacks is wrong here, although
/// clients must take it.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let mut description = openapi::document();
    close(&mut description);
    description
});

fn close(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("type") == Some(&json!("object")) && members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// The operation that answers `METHOD TARGET`; `None`: there is no such path or method.
fn operation(request: &str) -> Option<&'static Operation> {
    let (method, target) = request.split_once(' ')?;
    let path = target.split('?').next()?;
    OPERATIONS.iter().find(|operation| operation.method.word() == method && operation.is_at(path))
}

/// Asserts that the answer with `status` and `body` to `METHOD TARGET` is what the description says.
#[track_caller]
pub fn check(request: &str, status: u16, body: &str) {
    // A connection that gave way to others ends within its answer.
    let Ok(answer) = serde_json::from_str::<Value>(body) else { return };
    let place = match operation(request) {
        Some(operation) => {
            let (path, method) = (operation.path.replace('/', "~1"), operation.method.word().to_lowercase());
            let place = format!("/paths/{path}/{method}/responses/{status}");
            let stated = DESCRIPTION.pointer(&place);
            let stated = stated.unwrap_or_else(|| panic!("{request}: status {status} is not described: {body}"));
            stated["$ref"].as_str().map_or(place, |reference| reference.trim_start_matches('#').to_owned())
        }
        None => format!("/components/responses/{status}"),
    };
    let mut schema = DESCRIPTION.pointer(&(place + "/content/application~1json/schema")).expect("a schema").clone();
    // References lead to the components.
    schema["components"] = DESCRIPTION["components"].clone();
    let judge = jsonschema::validator_for(&schema).expect("a valid schema");
    let errors: Vec<String> =
        judge.iter_errors(&answer).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{request}: {status}: {errors:#?}\n{body}");
}
