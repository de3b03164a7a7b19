//! The JSON Schema of workload files, for editors: made from the options' own definitions.

use clap::Arg;
use serde_json::{Map, Value, json};

use super::keys::{self, Table};

/// Its public address.
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
    for of in Table::ALL {
        top.insert(of.name().to_owned(), table_of(of));
    }
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

/// The descriptions of keys, by their names.
fn properties(keys: &[Arg]) -> Map<String, Value> {
    keys.iter().map(|arg| (arg.get_long().unwrap_or_default().to_owned(), key(arg))).collect()
}

/// The description of a sweep.
fn sweep() -> Value {
    let mut properties = properties(&keys::sweep_keys());
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
                a stream under its name (users.rate), variables, targets, streams (how many copies \
                run together), and random-share (sequential at 0%, random at 100%).",
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

/// The description of an experiment's table.
fn table_of(of: Table) -> Value {
    let about = match of {
        Table::Map => "The options of `fathom map`, for `fathom study latency-map`.",
        Table::Peak => "What `fathom peak` searches for.",
        Table::Sustain => "How `fathom sustain` goes about it.",
    };
    json!({
        "type": "object",
        "description": about,
        "properties": properties(&of.keys()),
        "additionalProperties": false,
    })
}

/// A target: its name, or a table with a region.
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

/// An option as a key.
fn key(arg: &Arg) -> Value {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut schema = json!({ "description": about });
    let names: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if keys::is_switch(arg) {
        schema["type"] = json!("boolean");
    } else if keys::may_be_true(arg) {
        schema["type"] = json!(["string", "number", "boolean"]);
    } else if keys::may_be_list(arg) {
        schema["type"] = json!(["string", "number", "array"]);
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
    use super::super::file::{self, Entry};
    use super::*;
    use crate::shipped;

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

    /// Whether a value matches the schema. The function knows exactly the keywords that this schema
    /// uses, so that none is ignored.
    fn fits(schema: &Value, value: &Value) -> bool {
        let root = super::schema();
        schema.as_object().unwrap().iter().all(|(word, says)| match word.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" | "default" => true,
            "$ref" => {
                fits(root.pointer(says.as_str().unwrap().trim_start_matches('#')).unwrap(), value)
            }
            "anyOf" => says.as_array().unwrap().iter().any(|one| fits(one, value)),
            "enum" => says.as_array().unwrap().contains(value),
            "type" => match says {
                Value::Array(names) => names.iter().any(|name| is(name, value)),
                name => is(name, value),
            },
            "pattern" => {
                assert_eq!(says, "\\$\\{");
                value.as_str().is_none_or(|text| text.contains("${"))
            }
            "minItems" => value.as_array().is_none_or(|it| says.as_u64() <= Some(it.len() as u64)),
            "items" => value.as_array().is_none_or(|it| it.iter().all(|one| fits(says, one))),
            "required" => value.as_object().is_none_or(|it| {
                says.as_array().unwrap().iter().all(|key| it.contains_key(key.as_str().unwrap()))
            }),
            "properties" => value.as_object().is_none_or(|it| {
                let fit =
                    |(key, one): (&String, &Value)| says.get(key).is_none_or(|s| fits(s, one));
                it.iter().all(fit)
            }),
            "additionalProperties" => value.as_object().is_none_or(|it| {
                let named = |key: &str| schema["properties"].get(key).is_some();
                it.iter().filter(|(key, _)| !named(key)).all(|(_, one)| match says {
                    Value::Bool(allowed) => *allowed,
                    says => fits(says, one),
                })
            }),
            other => panic!("{other} is no word that this test knows"),
        })
    }

    fn is(name: &Value, value: &Value) -> bool {
        match name.as_str().unwrap() {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other} is no type that this test knows"),
        }
    }

    /// A workload file as JSON.
    fn json(text: &str) -> Value {
        let entries = file::parse(0, text).unwrap_or_else(|problem| panic!("{problem:?}: {text}"));
        table(&entries)
    }

    fn table(entries: &[Entry]) -> Value {
        entries.iter().map(|entry| (entry.key.clone(), part(&entry.value))).collect()
    }

    fn part(value: &file::Value) -> Value {
        match value {
            file::Value::Text(text) => json!(text),
            file::Value::Number(text) => match text.parse::<i64>() {
                Ok(number) => json!(number),
                Err(_) => json!(text.parse::<f64>().unwrap()),
            },
            file::Value::Flag(flag) => json!(flag),
            file::Value::List(list) => list.iter().map(|(one, _)| part(one)).collect(),
            file::Value::Table(entries) => table(entries),
            file::Value::Date => Value::Null,
        }
    }

    #[test]
    fn all_that_ships_fits_the_schema() {
        let folders = ["examples", "examples/studies"];
        let folders = folders.map(|name| format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR")));
        let paths = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let paths = paths.map(|entry| entry.unwrap().path());
        let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
        let examples = paths.map(|path| std::fs::read_to_string(path).unwrap());
        let shipped = shipped::names().map(|name| shipped::text(name).unwrap().to_owned());
        let all: Vec<String> = examples.chain(shipped).collect();
        assert!(all.len() > 25);
        for text in all {
            assert!(fits(&schema(), &json(&text)), "{text}");
        }
    }

    #[test]
    fn an_editor_sees_what_is_wrong_by_the_schema() {
        let wrong = [
            "block_size = '4k'",
            "block-size = true",
            "buffered = 'yes'",
            "arrivals = 'sometimes'",
            "targets = 3",
            "targets = [{ offset = '1m' }]",
            "targets = [{ path = 'f', length = '1m' }]",
            "name = 7",
            "vars = { a = [1] }",
            "stream = 'log'",
            "[stream.a]\nduration = '1s'",
            "[stream.a]\nbufered = true",
            "[sweep]\nrepeat = 3",
            "[sweep.axes]\nqueue-depth = 4",
            "[sweep.axes]\nqueue-depth = []",
            "overwrite = true",
            "duration = 2026-11-22",
        ];
        for text in wrong {
            assert!(!fits(&schema(), &json(text)), "{text}");
        }
        // A variable may replace a word.
        for right in ["arrivals = '${how}'", "arrivals = 'poisson'", "sqpoll = true", "sqpoll = 3"]
        {
            assert!(fits(&schema(), &json(right)), "{right}");
        }
    }
}
