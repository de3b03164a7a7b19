//! The JSON Schema of workload files, for editors: made from the options' own definitions.

use clap::Arg;
use serde_json::{Map, Value, json};

use super::keys;

/// Where it can be had from.
const ID: &str = "https://github.com/fathom-storage/fathom/blob/main/docs/schema/workload-1.json";

/// The schema, as it is kept in `docs/schema`.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("a schema is plain JSON");
    text.push('\n');
    text
}

fn schema() -> Value {
    let all = keys::all();
    let properties = |arg_of: &dyn Fn(&str) -> bool| -> Map<String, Value> {
        let args = all.iter().filter(|arg| arg.get_long().is_some_and(arg_of));
        args.map(|arg| (arg.get_long().unwrap_or_default().to_owned(), key(arg))).collect()
    };
    let targets = json!({
        "description": "Files, folders (all files in them) and devices. A relative path begins in \
            the folder that fathom runs in. Targets that follow the workload on the command line \
            take the place of those of the whole file.",
        "anyOf": [{ "$ref": "#/$defs/target" }, { "type": "array", "items": { "$ref": "#/$defs/target" } }],
    });
    let mut stream = properties(&|name| !keys::is_common(name));
    stream.insert("targets".to_owned(), targets.clone());
    let mut top = properties(&|_| true);
    top.insert("targets".to_owned(), targets);
    let text = |about: &str| json!({ "type": "string", "description": about });
    top.insert("name".to_owned(), text("What the run is called in its results."));
    top.insert("about".to_owned(), text("What the workload is for, in a line."));
    top.insert(
        "extends".to_owned(),
        text(
            "Another file, from this one's folder, or a workload that comes with fathom: what this \
             file says is put on top of it, key by key.",
        ),
    );
    top.insert(
        "vars".to_owned(),
        json!({
            "type": "object",
            "description": "Variables for \"${NAME}\" in any string; --set NAME=VALUE gives them \
                another value.",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
    );
    top.insert(
        "stream".to_owned(),
        json!({
            "type": "object",
            "description": "What runs together, each under its name. Keys above the first stream \
                are defaults for all of them.",
            "additionalProperties": {
                "type": "object",
                "properties": stream,
                "additionalProperties": false,
            },
        }),
    );
    top.insert("sweep".to_owned(), sweep());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "A workload of fathom",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
        "$defs": { "target": target() },
    })
}

/// What `fathom sweep` does with the workload.
fn sweep() -> Value {
    let keys = keys::sweep_keys();
    let mut properties: Map<String, Value> =
        keys.iter().map(|arg| (arg.get_long().unwrap_or_default().to_owned(), key(arg))).collect();
    let part = json!({ "type": ["string", "number", "boolean", "array"] });
    let values = json!({
        "description": "A list of values, or a string such as \"1,2,4..256\".",
        "anyOf": [{ "type": "string" }, { "type": "array", "items": part, "minItems": 1 }],
    });
    properties.insert(
        "axes".to_owned(),
        json!({
            "type": "object",
            "description": "What varies, the first axis slowest: options of `fathom run`, those of \
                a stream under its name (users.rate), variables, and targets.",
            "additionalProperties": {
                "anyOf": [values, { "type": "object", "additionalProperties": values }],
            },
        }),
    );
    json!({
        "type": "object",
        "description": "What `fathom sweep` varies, and how it goes about it.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A target: its name, or with a region of its own.
fn target() -> Value {
    json!({
        "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "description": "A target with a region of its own.",
                "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": ["string", "integer"], "description": "Where the region starts." },
                    "size": { "type": ["string", "integer"], "description": "How long it is." },
                },
                "required": ["path"],
                "additionalProperties": false,
            },
        ],
    })
}

/// What an option is as a key.
fn key(arg: &Arg) -> Value {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut schema = json!({ "description": about });
    let names: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if keys::is_switch(arg) {
        schema["type"] = json!("boolean");
    } else if keys::may_be_true(arg) {
        schema["type"] = json!(["string", "number", "boolean"]);
    } else if names.is_empty() {
        schema["type"] = json!(["string", "number"]);
    } else {
        // A variable may stand for any of them.
        schema["anyOf"] = json!([{ "enum": names }, { "type": "string", "pattern": "\\$\\{" }]);
    }
    if let (false, [default]) = (keys::is_switch(arg), arg.get_default_values()) {
        schema["default"] = json!(default.to_string_lossy());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_repository_is_that_of_the_options() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/workload-1.json");
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(stored == text(), "{path} is out of date: run `cargo xtask schema`");
    }

    #[test]
    fn every_key_has_a_description() {
        let schema = schema();
        let keys = schema["properties"].as_object().unwrap();
        assert!(keys.len() > 15);
        let described = |key: &Value| key["description"].as_str().is_some_and(|it| !it.is_empty());
        assert!(keys.values().all(described), "{schema:#}");
        assert!(
            schema["properties"]["stream"]["additionalProperties"]["properties"]["duration"]
                .is_null()
        );
    }
}
