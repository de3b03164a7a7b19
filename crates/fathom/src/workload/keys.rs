//! The keys of a workload file are the options of `fathom run`, under the same names: each has its
//! values, its default and its description from the option's one definition, so that a new option
//! is a new key at once. The content of a file becomes words of a command line, and these are
//! parsed like any others.

use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args as ClapArgs};

use super::file::Value;
use crate::cli::args::{self, Map, SweepArgs};
use crate::cli::options::{AccessArgs, LoadArgs, alone};
use crate::cli::searches::{PeakArgs, SustainArgs};
use crate::cli::values::nearest;

/// Options of a whole run, not of each of its streams.
pub const COMMON: [&str; 9] = [
    "warm-up",
    "duration",
    "cool-down",
    "interval",
    "seed",
    "backend",
    "rated-iops",
    "rated-bandwidth",
    "promised-latency",
];

/// Options that are only valid on the command line: consent, how it begins, and the destinations of
/// results.
const NEVER_IN_A_FILE: [&str; 18] = [
    "overwrite",
    "destroy",
    "destroy-in-use",
    "yes",
    "plan",
    "out",
    "results",
    "html",
    "open",
    "markdown",
    "csv",
    "csv-series",
    "svg",
    "png",
    "trace",
    "json",
    "details",
    "fail-if",
];

/// The options of a stream and of its run.
#[derive(Debug, ClapArgs)]
struct Words {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// These options as keys, in the order of the help.
fn keys_of<T: ClapArgs>() -> Vec<Arg> {
    let is_key = |arg: &&Arg| arg.get_long().is_some_and(|name| !NEVER_IN_A_FILE.contains(&name));
    alone::<T>().get_arguments().filter(is_key).cloned().collect()
}

fn names_of(keys: &[Arg]) -> Vec<String> {
    keys.iter().filter_map(|arg| arg.get_long().map(ToOwned::to_owned)).collect()
}

/// Reads the words of these options.
///
/// # Errors
///
/// When one cannot be read, or they contradict each other: gives the reason, for the user.
pub fn read_as<T: ClapArgs>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<T, String> {
    let matches = alone::<T>().try_get_matches_from(words);
    matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| reason(&error))
}

/// Every key of a stream and of its run.
pub fn all() -> Vec<Arg> {
    keys_of::<Words>()
}

/// Their names.
pub fn names() -> Vec<String> {
    names_of(&all())
}

/// Whether the key belongs to the whole run.
pub fn is_common(key: &str) -> bool {
    COMMON.contains(&key)
}

/// Whether the key is true or false and nothing else.
pub fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Whether the key may be `true` instead of a value.
pub fn may_be_true(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|values| values.min_values() == 0)
}

/// Whether the key may have several values.
pub fn may_be_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// The command-line words of a key with a value; empty for `false`.
///
/// # Errors
///
/// When it takes no such value: gives the reason, for the user.
pub fn words(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let words = words_of(&all(), key, value)?;
    read(&words)?;
    Ok(words)
}

/// Every key of `[sweep]` but its axes.
pub fn sweep_keys() -> Vec<Arg> {
    keys_of::<SweepArgs>()
}

/// Their names.
pub fn sweep_names() -> Vec<String> {
    names_of(&sweep_keys())
}

/// As [`words`], of a key of `[sweep]`.
///
/// # Errors
///
/// As [`words`].
pub fn sweep_words(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let words = words_of(&sweep_keys(), key, value)?;
    read_as::<SweepArgs>(&words)?;
    Ok(words)
}

/// A table of a workload file whose keys are the options of an experiment. The table of a sweep has
/// axes as well and is not one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// `[map]`.
    Map,
    /// `[peak]`.
    Peak,
    /// `[sustain]`.
    Sustain,
}

impl Table {
    /// All, in the order of their names.
    pub const ALL: [Self; 3] = [Self::Map, Self::Peak, Self::Sustain];

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Peak => "peak",
            Self::Sustain => "sustain",
        }
    }

    /// Every key.
    pub fn keys(self) -> Vec<Arg> {
        match self {
            Self::Map => keys_of::<Map>(),
            Self::Peak => keys_of::<PeakArgs>(),
            Self::Sustain => keys_of::<SustainArgs>(),
        }
    }

    /// As [`words`], of one of its keys.
    ///
    /// # Errors
    ///
    /// As [`words`].
    pub fn words(self, key: &str, value: &Value) -> Result<Vec<String>, String> {
        let words = words_of(&self.keys(), key, value)?;
        match self {
            Self::Map => read_map(&words, Path::new("target")).map(|_| ()),
            Self::Peak => read_as::<PeakArgs>(&words).map(|_| ()),
            Self::Sustain => read_as::<SustainArgs>(&words).map(|_| ()),
        }?;
        Ok(words)
    }
}

/// Reads the words of a map of a target.
///
/// # Errors
///
/// When one cannot be.
pub fn read_map(words: &[String], target: &Path) -> Result<Map, String> {
    let words = words.iter().map(OsString::from);
    read_as(words.chain([OsString::from("--"), target.as_os_str().to_owned()]))
}

fn words_of(known: &[Arg], key: &str, value: &Value) -> Result<Vec<String>, String> {
    let arg = known.iter().find(|arg| arg.get_long() == Some(key));
    let arg = arg.expect("only keys that exist are asked for");
    let words = match value {
        Value::Text(text) | Value::Number(text) if !is_switch(arg) => {
            Vec::from([format!("--{key}={text}")])
        }
        Value::Text(text) if text == "true" => Vec::from([format!("--{key}")]),
        Value::Text(text) if text == "false" => Vec::new(),
        Value::Flag(true) if is_switch(arg) || may_be_true(arg) => Vec::from([format!("--{key}")]),
        Value::Flag(false) if is_switch(arg) || may_be_true(arg) => Vec::new(),
        Value::List(list) if may_be_list(arg) => {
            let each = list.iter().map(|(value, _)| match value {
                Value::Text(text) | Value::Number(text) => Ok(format!("--{key}={text}")),
                _ => Err("its parts are strings or numbers".to_owned()),
            });
            each.collect::<Result<_, _>>()?
        }
        _ if is_switch(arg) => return Err("it is true or false".to_owned()),
        _ => return Err("it is one string or number".to_owned()),
    };
    Ok(words)
}

/// Reads the words of one stream, its run's among them.
///
/// # Errors
///
/// When they contradict each other.
pub fn read(words: &[String]) -> Result<(LoadArgs, AccessArgs), String> {
    read_as::<Words>(words).map(|read| (read.load, read.access))
}

/// The reason of clap's refusal, without the command line, which nobody has typed.
fn reason(error: &clap::Error) -> String {
    if let Some(source) = error.source() {
        return source.to_string();
    }
    let strings = |kind| match error.get(kind) {
        Some(ContextValue::Strings(values)) => values.join(", "),
        Some(ContextValue::String(value)) => value.clone(),
        _ => String::new(),
    };
    match strings(ContextKind::ValidValue) {
        valid if !valid.is_empty() => {
            let typed = strings(ContextKind::InvalidValue);
            match nearest(&typed, valid.split(", ")) {
                Some(near) => format!("it is one of {valid} (did you mean '{near}'?)"),
                None => format!("it is one of {valid}"),
            }
        }
        _ => args::in_one_line(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn values_become_the_words_of_their_options() {
        let one = |key, value| words(key, &value).unwrap().join(" ");
        assert_eq!(one("block-size", text("8k")), "--block-size=8k");
        assert_eq!(one("queue-depth", Value::Number("4".to_owned())), "--queue-depth=4");
        assert_eq!(one("buffered", Value::Flag(true)), "--buffered");
        assert_eq!(one("buffered", Value::Flag(false)), "");
        assert_eq!(one("buffered", text("true")), "--buffered");
        assert_eq!(one("sqpoll", Value::Flag(true)), "--sqpoll");
        assert_eq!(one("sqpoll", Value::Number("3".to_owned())), "--sqpoll=3");
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_the_options_own_words() {
        let refused = |key, value| words(key, &value).unwrap_err();
        assert!(refused("block-size", text("4x")).contains("4k"));
        assert!(refused("read-share", text("70")).contains("70% or 0.7"));
        assert!(refused("pattern", text("zigzag")).contains("random, sequential"));
        assert_eq!(refused("buffered", text("perhaps")), "it is true or false");
        assert_eq!(refused("block-size", Value::Flag(true)), "it is one string or number");
    }

    #[test]
    fn a_slip_of_the_pen_is_known() {
        let known = names();
        let near = |typed| nearest(typed, known.iter().map(String::as_str));
        assert_eq!(near("blocksize"), Some("block-size"));
        assert_eq!(near("queue_depth"), Some("queue-depth"));
        assert_eq!(near("xyzzy"), None);
    }

    #[test]
    fn what_is_said_once_for_a_run_are_options() {
        let names = names();
        assert!(COMMON.iter().all(|key| names.iter().any(|name| name == key)));
    }
}
