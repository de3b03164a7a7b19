//! The keys of a workload file are the options of `fathom run`, under the same names: each has its
//! values, its default and its description from the option's one definition, so that a new option
//! is a new key at once. The content of a file becomes words of a command line, and these are
//! parsed like any others.

use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, CommandFactory, Parser};

use super::file::Value;
use crate::cli::args::{Map, SweepArgs};
use crate::cli::options::{AccessArgs, LoadArgs};
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

/// The options of a stream and of its run, alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// Every key, in the order of the help.
pub fn all() -> Vec<Arg> {
    Words::command().get_arguments().filter(|arg| arg.get_long().is_some()).cloned().collect()
}

/// The names of every key.
pub fn names() -> Vec<String> {
    all().iter().filter_map(|arg| arg.get_long().map(ToOwned::to_owned)).collect()
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
    Words::try_parse_from(&words).map_err(|error| reason(&error))?;
    Ok(words)
}

/// The options of a sweep, alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct SweepWords {
    #[command(flatten)]
    course: SweepArgs,
}

/// Every key of `[sweep]` but its axes.
pub fn sweep_keys() -> Vec<Arg> {
    SweepWords::command().get_arguments().filter(|arg| arg.get_long().is_some()).cloned().collect()
}

/// Their names.
pub fn sweep_names() -> Vec<String> {
    sweep_keys().iter().filter_map(|arg| arg.get_long().map(ToOwned::to_owned)).collect()
}

/// As [`words`], of a key of `[sweep]`.
///
/// # Errors
///
/// As [`words`].
pub fn sweep_words(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let words = words_of(&sweep_keys(), key, value)?;
    read_sweep(&words)?;
    Ok(words)
}

/// Reads the words of a sweep.
///
/// # Errors
///
/// When one cannot be.
pub fn read_sweep(words: &[String]) -> Result<SweepArgs, String> {
    SweepWords::try_parse_from(words).map(|read| read.course).map_err(|error| reason(&error))
}

/// A map, alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct MapWords {
    #[command(flatten)]
    map: Map,
}

/// The options of a search for a peak, alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct PeakWords {
    #[command(flatten)]
    search: PeakArgs,
}

/// The options of rounds until a steady state, alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct SustainWords {
    #[command(flatten)]
    course: SustainArgs,
}

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
        let command = match self {
            Self::Map => MapWords::command(),
            Self::Peak => PeakWords::command(),
            Self::Sustain => SustainWords::command(),
        };
        let all = command
            .get_arguments()
            .filter(|arg| arg.get_long().is_some_and(|name| !NEVER_IN_A_FILE.contains(&name)));
        all.cloned().collect()
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
            Self::Peak => read_peak(&words).map(|_| ()),
            Self::Sustain => read_sustain(&words).map(|_| ()),
        }?;
        Ok(words)
    }
}

/// Reads the words of a search for a peak.
///
/// # Errors
///
/// When one cannot be.
pub fn read_peak(words: &[String]) -> Result<PeakArgs, String> {
    PeakWords::try_parse_from(words).map(|read| read.search).map_err(|error| reason(&error))
}

/// Reads the words of rounds until a steady state.
///
/// # Errors
///
/// When one cannot be.
pub fn read_sustain(words: &[String]) -> Result<SustainArgs, String> {
    SustainWords::try_parse_from(words).map(|read| read.course).map_err(|error| reason(&error))
}

/// Reads the words of a map of a target.
///
/// # Errors
///
/// When one cannot be.
pub fn read_map(words: &[String], target: &Path) -> Result<Map, String> {
    let words = words.iter().map(OsString::from);
    let words = words.chain([OsString::from("--"), target.as_os_str().to_owned()]);
    MapWords::try_parse_from(words).map(|read| read.map).map_err(|error| reason(&error))
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
    match Words::try_parse_from(words) {
        Ok(read) => Ok((read.load, read.access)),
        Err(error) => Err(reason(&error)),
    }
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
                Some(near) => format!("it is one of {valid}, and its nearest is '{near}'"),
                None => format!("it is one of {valid}"),
            }
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
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
