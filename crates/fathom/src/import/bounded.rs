//! Reads fio's output job by job, each within a limit: a file may come from anywhere, and a few
//! megabytes of JSON can be gigabytes of values.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The limit of a job, and of the values beside the jobs. All buckets of all distributions of fio,
/// of both directions and of trims, are a quarter of it.
const VALUES_MAX: usize = 1 << 16;
/// This many letters count as a value.
const LETTERS: usize = 16;

/// The rest of the limit.
#[derive(Debug)]
pub struct Limits {
    jobs: Cell<usize>,
    values: Cell<usize>,
    exceeded: Cell<Option<&'static str>>,
}

impl Limits {
    /// At most this many jobs.
    pub fn new(jobs: usize) -> Self {
        Self { jobs: Cell::new(jobs), values: Cell::new(VALUES_MAX), exceeded: Cell::new(None) }
    }

    /// The limit that was exceeded.
    pub fn exceeded(&self) -> Option<&'static str> {
        self.exceeded.get()
    }

    fn take<E: Error>(
        &self,
        from: &Cell<usize>,
        count: usize,
        what: &'static str,
    ) -> Result<(), E> {
        match from.get().checked_sub(count) {
            Some(left) => from.set(left),
            None => {
                self.exceeded.set(Some(what));
                return Err(E::custom(what));
            }
        }
        Ok(())
    }

    fn take_value<E: Error>(&self, letters: usize) -> Result<(), E> {
        self.take(&self.values, 1 + letters / LETTERS, "values in a job")
    }
}

/// The content of an output: the values beside its jobs, and the result of each job.
#[derive(Debug)]
pub struct Parts<J> {
    /// The requested values beside the jobs.
    pub beside: Map<String, Value>,
    /// The lists of jobs, by their names.
    pub jobs: Vec<(String, Vec<J>)>,
}

/// Reads an output: of the values beside the jobs only those with one of these names.
pub struct OutputSeed<'a, J> {
    /// The names of lists of jobs.
    pub lists: &'a [&'a str],
    /// The names of the values that are kept beside them.
    pub beside: &'a [&'a str],
    /// The conversion of a job.
    pub job: fn(&Value) -> J,
    /// The rest of the limits.
    pub limits: &'a Limits,
}

impl<'de, J> DeserializeSeed<'de> for OutputSeed<'_, J> {
    type Value = Parts<J>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Parts<J>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, J> Visitor<'de> for OutputSeed<'_, J> {
    type Value = Parts<J>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an output of fio")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts<J>, A::Error> {
        let mut parts = Parts { beside: Map::new(), jobs: Vec::new() };
        while let Some(name) = map.next_key::<String>()? {
            if self.lists.contains(&name.as_str()) {
                let jobs = map.next_value_seed(Jobs { job: self.job, limits: self.limits })?;
                parts.jobs.push((name, jobs));
            } else if self.beside.contains(&name.as_str()) {
                self.limits.values.set(VALUES_MAX);
                parts.beside.insert(name, map.next_value_seed(One(self.limits))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(parts)
    }
}

/// A list of jobs, of which no two are in memory completely.
struct Jobs<'a, J> {
    job: fn(&Value) -> J,
    limits: &'a Limits,
}

impl<'de, J> DeserializeSeed<'de> for Jobs<'_, J> {
    type Value = Vec<J>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<J>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, J> Visitor<'de> for Jobs<'_, J> {
    type Value = Vec<J>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<J>, A::Error> {
        let mut jobs = Vec::new();
        loop {
            self.limits.values.set(VALUES_MAX);
            let Some(job) = list.next_element_seed(One(self.limits))? else { return Ok(jobs) };
            self.limits.take(&self.limits.jobs, 1, "jobs")?;
            jobs.push((self.job)(&job));
        }
    }
}

/// A value of any kind.
struct One<'a>(&'a Limits);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.0.take_value(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.0.take_value(0).map(|()| Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.0.take_value(0).map(|()| Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).map_or(Value::Null, Value::Number);
        self.0.take_value(0).map(|()| number)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.take_value(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.0.take_value(0).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.0.take_value(0)?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(One(self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.0.take_value(0)?;
        let mut values = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.0.take_value(name.len())?;
            values.insert(name, map.next_value_seed(One(self.0))?);
        }
        Ok(Value::Object(values))
    }
}
