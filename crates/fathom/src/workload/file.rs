//! A TOML file as it was written: every key and value with its place, so that any later problem can
//! be shown there.

use toml::de::{DeTable, DeValue};

use super::problem::{At, Problem};

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A number, as it was written.
    Number(String),
    /// True or false.
    Flag(bool),
    /// An array.
    List(Vec<(Value, At)>),
    /// A table.
    Table(Vec<Entry>),
    /// A date, which no key accepts.
    Date,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is.
    pub key_at: At,
    /// The value.
    pub value: Value,
    /// Where the value is.
    pub at: At,
}

/// Reads a text as TOML: its keys in the order in which they are written.
///
/// # Errors
///
/// When it is not TOML: says where the error is.
pub fn parse(source: usize, text: &str) -> Result<Vec<Entry>, Problem> {
    match DeTable::parse(text) {
        Ok(table) => Ok(entries(source, table.get_ref())),
        Err(error) => {
            let at = error.span().map(|span| At { source, span });
            Err(Problem::new("this is no TOML", at, error.message().replace('\n', ", ")))
        }
    }
}

fn entries(source: usize, table: &DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_at: At { source, span: key.span() },
            value: read(source, value.get_ref()),
            at: At { source, span: value.span() },
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_at.span.start);
    entries
}

fn read(source: usize, value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let decimal = i128::from_str_radix(number.as_str(), number.radix());
            Value::Number(decimal.map_or(number.to_string(), |number| number.to_string()))
        }
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(list) => {
            let part = |value: &toml::Spanned<DeValue<'_>>| {
                (read(source, value.get_ref()), At { source, span: value.span() })
            };
            Value::List(list.iter().map(part).collect())
        }
        DeValue::Table(table) => Value::Table(entries(source, table)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_their_order_and_with_their_places() {
        let text = "queue-depth = 0x10\nname = 'x'\n[stream.b]\nbuffered = true\n[stream.a]\n";
        let entries = parse(3, text).unwrap();
        let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["queue-depth", "name", "stream"]);
        assert_eq!(entries[0].value, Value::Number("16".to_owned()));
        assert_eq!(&text[entries[1].at.span.clone()], "'x'");
        assert_eq!((entries[1].key_at.source, entries[1].key_at.span.clone()), (3, 19..23));
        let Value::Table(streams) = &entries[2].value else { panic!("{entries:?}") };
        assert_eq!(streams.iter().map(|s| s.key.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        let problem = parse(0, "block-size = 4k\n").unwrap_err();
        assert_eq!(problem.at.unwrap().span.start, 13);
    }
}
