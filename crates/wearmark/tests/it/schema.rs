//! The part of JSON Schema (2020-12) that `result.schema.json` uses: type, required, properties,
//! additionalProperties, items, enum.

use serde_json::Value;

/// Where `value` breaks `schema`, as paths with a cause.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, value, "$", &mut found);
    found
}

fn walk(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if !of_type(&schema["type"], value) {
        found.push(format!("{path}: {value} is not {}", schema["type"]));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        found.push(format!("{path}: {value} is none of {allowed:?}"));
    }
    if let Some(members) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !members.contains_key(name.as_str().expect("names are strings")) {
                found.push(format!("{path}: {name} is missing"));
            }
        }
        for (name, member) in members {
            let inner = match schema["properties"].get(name) {
                Some(inner) => inner,
                None if schema["additionalProperties"].is_object() => {
                    &schema["additionalProperties"]
                }
                None if schema["additionalProperties"] == Value::Bool(false) => {
                    found.push(format!("{path}: {name} is not in the schema"));
                    continue;
                }
                None => continue,
            };
            walk(inner, member, &format!("{path}.{name}"), found);
        }
    }
    if let Some(elements) = value.as_array().filter(|_| schema["items"].is_object()) {
        for (index, element) in elements.iter().enumerate() {
            walk(&schema["items"], element, &format!("{path}[{index}]"), found);
        }
    }
}

/// Whether the value has the type, or one of the types, that the schema names.
fn of_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the schema names an unknown type {other}"),
    };
    match wanted {
        Value::Null => true,
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().any(|name| is(name.as_str().expect("a type name"))),
        other => panic!("the schema has a malformed type {other}"),
    }
}

#[test]
fn the_checker_sees_what_is_wrong() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "array", "items": {"type": ["integer", "null"]}}},
    });
    let check = |value: Value, count: usize| {
        let found = faults(&schema, &value);
        assert_eq!(found.len(), count, "{value}: {found:?}");
    };
    check(serde_json::json!({"a": [1, null]}), 0);
    check(serde_json::json!({"a": [1.5, "x"]}), 2);
    check(serde_json::json!({"b": 1}), 2);
    check(serde_json::json!([]), 1);
}
