//! Where two descriptions differ.

use serde_json::Value;

/// The first field in which two things differ, as "base.window_ns was 1, and is 2".
pub fn difference(then: &Value, now: &Value) -> Option<String> {
    let (path, then, now) = first_of(then, now)?;
    Some(format!("{path} was {then}, and is {now}"))
}

/// The first field in which two things differ, with both values.
pub fn first_of<'v>(one: &'v Value, other: &'v Value) -> Option<(String, &'v Value, &'v Value)> {
    let mut path = String::new();
    let (one, other) = first_difference(one, other, &mut path)?;
    Some((path.trim_start_matches('.').to_owned(), one, other))
}

fn first_difference<'v>(
    then: &'v Value,
    now: &'v Value,
    path: &mut String,
) -> Option<(&'v Value, &'v Value)> {
    const NOTHING: &Value = &Value::Null;
    let mut within = |name: &str, then: &'v Value, now: &'v Value| {
        let length = path.len();
        path.push('.');
        path.push_str(name);
        let found = first_difference(then, now, path);
        if found.is_none() {
            path.truncate(length);
        }
        found
    };
    match (then, now) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            let get = |map: &'v serde_json::Map<String, Value>, name: &str| {
                map.get(name).unwrap_or(NOTHING)
            };
            names.into_iter().find_map(|name| within(name, get(one, name), get(other, name)))
        }
        (Value::Array(one), Value::Array(other)) => {
            (0..one.len().max(other.len())).find_map(|at| {
                let get = |list: &'v [Value]| list.get(at).unwrap_or(NOTHING);
                within(&at.to_string(), get(one), get(other))
            })
        }
        _ => (then != now).then_some((then, now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named() {
        let then = json!({ "a": 1, "b": { "c": [1, { "d": "x" }] } });
        assert_eq!(difference(&then, &then), None);
        for (now, said) in [
            (json!({ "a": 2, "b": 3 }), "a was 1, and is 2"),
            (json!({ "a": 1, "b": { "c": [1, { "d": "y" }] } }), "b.c.1.d was \"x\", and is \"y\""),
            (json!({ "a": 1, "b": { "c": [1] } }), "b.c.1 was {\"d\":\"x\"}, and is null"),
            (
                json!({ "a": 1, "b": { "c": [1, { "d": "x" }] }, "e": true }),
                "e was null, and is true",
            ),
        ] {
            assert_eq!(difference(&then, &now).unwrap(), said);
        }
    }
}
