//! The table that describes every parameter of a simulated device: one entry gives its name, its
//! meaning, its range and its place. Parsing, display, refusals and the help all read it.
//!
//! A default is only in the `Default` of the options that hold it.

use std::fmt;

use fathom_core::{Bytes, Span};

use super::curve::Curve;
use super::shown::{show_bytes, show_time};
use super::stored_map::StoredMap;

/// A parameter of the options `T`.
pub(super) struct Parameter<T> {
    /// The word before the equals sign.
    pub name: &'static str,
    /// Its meaning, as a phrase for the help.
    pub meaning: &'static str,
    /// Its place, with the allowed values.
    pub field: fn(&mut T) -> Field<'_>,
}

/// A parameter's place, with the smallest and the largest allowed value.
pub(super) enum Field<'a> {
    /// A whole number.
    Count(&'a mut u32, u32, u32),
    /// A seed: any whole number.
    Seed(&'a mut u64),
    /// A length of time.
    Time(&'a mut Span, Span, Span),
    /// An amount of data.
    Size(&'a mut Bytes, Bytes, Bytes),
    /// Bytes per second.
    Bandwidth(&'a mut Bytes, Bytes, Bytes),
    /// A share of one, from zero.
    Share(&'a mut f64, f64),
    /// One of several words.
    Word(&'a mut dyn WordPlace),
    /// Bandwidth against concurrency.
    Curve(&'a mut Curve),
    /// A latency map.
    Map(&'a mut StoredMap),
    /// One of this many I/Os, or never.
    Every(&'a mut Option<u64>),
    /// After this time, or never.
    After(&'a mut Option<Span>),
    /// In these times, or never.
    Stall(&'a mut Option<Stall>),
    /// By this much in this time, or never.
    Drift(&'a mut Option<Drift>),
}

/// How service times spread around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Every one equals the mean.
    Constant,
    /// Exponential: memoryless, with a standard deviation as large as the mean.
    Exponential,
}

impl Word for Distribution {
    const WHAT: &'static str = "distribution";
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Constant, "constant"), (Self::Exponential, "exponential")];
}

/// A value that is typed as one of several words.
pub(super) trait Word: Copy + PartialEq + 'static {
    /// The name of the value in an error about an unknown word.
    const WHAT: &'static str;
    /// All of them.
    const ALL: &'static [(Self, &'static str)];

    /// The word on the command line.
    fn word(self) -> &'static str {
        let own = Self::ALL.iter().find(|(one, _)| *one == self);
        own.map_or("", |(_, word)| word)
    }
}

/// The place of a [`Word`] of any type.
pub(super) trait WordPlace {
    /// Sets the value of that word.
    fn choose(&mut self, word: &str) -> Result<(), String>;

    /// The word of the value.
    fn chosen(&self) -> &'static str;

    /// All words.
    fn known(&self) -> Vec<&'static str>;
}

impl<T: Word> WordPlace for T {
    fn choose(&mut self, word: &str) -> Result<(), String> {
        let typed = T::ALL.iter().find(|(_, one)| *one == word);
        let (value, _) = typed.ok_or_else(|| unknown(T::WHAT, word, &self.known()))?;
        *self = *value;
        Ok(())
    }

    fn chosen(&self) -> &'static str {
        self.word()
    }

    fn known(&self) -> Vec<&'static str> {
        T::ALL.iter().map(|(_, word)| *word).collect()
    }
}

/// The times in which a device does not answer, in virtual time from its opening, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the first stall begins.
    pub start: Span,
    /// How long each lasts.
    pub length: Span,
    /// From the start of one to the start of the next; one stall only if absent.
    pub every: Option<Span>,
}

impl Stall {
    /// How much of the time until then it takes up, in nanoseconds.
    pub(super) fn until(self, at: u64) -> u64 {
        let Self { start, length, every } = self;
        let Some(since) = at.checked_sub(start.0) else { return 0 };
        let (begun, within) = match every {
            Some(Span(every)) => (since / every, since % every),
            None => (0, since),
        };
        begun * length.0 + within.min(length.0)
    }
}

/// By how much a device becomes faster or slower, and in what time: twice the time squares the
/// factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The change of the speed as a share of it, above -1.
    pub change: f64,
    /// The time in which it happens.
    pub over: Span,
}

/// The word for the missing value of an optional parameter.
const NEVER: &str = "never";

impl<T> Parameter<T> {
    /// Stores a value that was typed.
    pub fn set(&self, options: &mut T, text: &str) -> Result<(), String> {
        (self.field)(options).set(text).map_err(|why| format!("{}={text}: {why}", self.name))
    }

    /// The value as it is typed.
    pub fn get(&self, options: &T) -> String
    where
        T: Clone,
    {
        // The tables give writable places; a copy makes them readable as well.
        let mut copy = options.clone();
        (self.field)(&mut copy).to_string()
    }

    /// The line of the help.
    pub fn help(&self, options: &T) -> String
    where
        T: Clone,
    {
        let mut copy = options.clone();
        let field = (self.field)(&mut copy);
        let form = format!("{}={}", self.name, field.form());
        let (default, range) = (field.to_string(), field.range());
        format!("    {form:<34} {} (default {default}; {range})\n", self.meaning)
    }
}

impl Field<'_> {
    fn set(&mut self, text: &str) -> Result<(), String> {
        let range = self.range();
        let outside = |inside: bool| match inside {
            true => Ok(()),
            false => Err(format!("this is outside its range; write {range}")),
        };
        let whole = || format!("this is not a whole number; write {range}");
        match self {
            Self::Count(value, min, max) => {
                let typed: u64 = text.parse().map_err(|_| whole())?;
                outside((u64::from(*min)..=u64::from(*max)).contains(&typed))?;
                **value = u32::try_from(typed).expect("at most the largest count");
            }
            Self::Seed(value) => **value = text.parse().map_err(|_| whole())?,
            Self::Time(value, min, max) => {
                let typed = time(text)?;
                outside(*min <= typed && typed <= *max)?;
                **value = typed;
            }
            Self::Size(value, min, max) => {
                let typed: Bytes = text.parse().map_err(|e| format!("{e}"))?;
                outside(*min <= typed && typed <= *max)?;
                **value = typed;
            }
            Self::Bandwidth(value, min, max) => {
                let amount = text.strip_suffix("/s").unwrap_or(text);
                let typed: Bytes = amount.parse().map_err(|e| format!("{e}"))?;
                outside(*min <= typed && typed <= *max)?;
                **value = typed;
            }
            Self::Share(value, max) => {
                let typed =
                    share(text).ok_or_else(|| format!("this is no share; write {range}"))?;
                outside((0.0..=*max).contains(&typed))?;
                **value = typed;
            }
            Self::Word(value) => value.choose(text)?,
            Self::Curve(value) => **value = Curve::read(text)?,
            Self::Map(value) => **value = StoredMap::read(text)?,
            Self::Every(value) if text == NEVER => **value = None,
            Self::Every(value) => {
                let typed: u64 = text.parse().map_err(|_| whole())?;
                outside(typed > 0)?;
                **value = Some(typed);
            }
            Self::After(value) if text == NEVER => **value = None,
            Self::After(value) => **value = Some(time(text)?),
            Self::Stall(value) if text == NEVER => **value = None,
            Self::Stall(value) => **value = Some(stall(text)?),
            Self::Drift(value) if text == NEVER => **value = None,
            Self::Drift(value) => **value = Some(drift(text)?),
        }
        Ok(())
    }

    /// The placeholder for the value in the help.
    fn form(&self) -> &'static str {
        match self {
            Self::Count(..) | Self::Seed(_) | Self::Every(_) => "N",
            Self::Time(..) | Self::After(_) => "TIME",
            Self::Size(..) => "SIZE",
            Self::Bandwidth(..) => "SIZE/s",
            Self::Share(..) => "SHARE",
            Self::Word(_) => "WORD",
            Self::Curve(_) => "N:SIZE/s[+N:SIZE/s]...",
            Self::Map(_) => "PATH",
            Self::Stall(_) => "START+LENGTH[/EVERY]",
            Self::Drift(_) => "CHANGE/TIME",
        }
    }

    /// The allowed values, in words.
    fn range(&self) -> String {
        match self {
            Self::Count(_, min, max) => format!("{min} to {max}"),
            Self::Seed(_) => format!("0 to {}", u64::MAX),
            Self::Time(_, min, max) => format!("{} to {}", show_time(*min), show_time(*max)),
            Self::Size(_, min, max) => format!("{} to {}", show_bytes(*min), show_bytes(*max)),
            Self::Bandwidth(_, min, max) => {
                format!("{}/s to {}/s", show_bytes(*min), show_bytes(*max))
            }
            Self::Share(_, max) => format!("0 to {max}, or 0% to {}%", max * 100.0),
            Self::Word(value) => value.known().join(" or "),
            Self::Curve(_) => "N rises from 1 or more".to_owned(),
            Self::Map(_) => {
                "columns w_idx, r_idx, w_bw_target_Bps, r_iops_target, p50_ns, p95_ns, \
                             admissible"
                    .to_owned()
            }
            Self::Every(_) => format!("{NEVER}, or 1 and more"),
            Self::After(_) => format!("{NEVER}, or a time such as 30s"),
            Self::Stall(_) => format!("{NEVER}, or times such as 5s+1s or 5s+100ms/1s"),
            Self::Drift(_) => format!("{NEVER}, or a change and its time such as -10%/1h"),
        }
    }
}

impl fmt::Display for Field<'_> {
    /// The value as it is typed, without loss.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value, ..) => write!(f, "{value}"),
            Self::Seed(value) => write!(f, "{value}"),
            Self::Time(value, ..) => f.write_str(&show_time(**value)),
            Self::Size(value, ..) => f.write_str(&show_bytes(**value)),
            Self::Bandwidth(value, ..) => write!(f, "{}/s", show_bytes(**value)),
            Self::Share(value, _) => write!(f, "{value}"),
            Self::Word(value) => f.write_str(value.chosen()),
            Self::Curve(value) => write!(f, "{value}"),
            Self::Map(value) => write!(f, "{value}"),
            Self::Every(Some(value)) => write!(f, "{value}"),
            Self::After(Some(value)) => f.write_str(&show_time(*value)),
            Self::Stall(Some(Stall { start, length, every })) => {
                write!(f, "{}+{}", show_time(*start), show_time(*length))?;
                match every {
                    Some(every) => write!(f, "/{}", show_time(*every)),
                    None => Ok(()),
                }
            }
            Self::Drift(Some(Drift { change, over })) => {
                write!(f, "{change}/{}", show_time(*over))
            }
            Self::Every(None) | Self::After(None) | Self::Stall(None) | Self::Drift(None) => {
                f.write_str(NEVER)
            }
        }
    }
}

fn time(text: &str) -> Result<Span, String> {
    text.parse().map_err(|e| format!("{e}"))
}

/// Reads `0.01` and `1%`.
fn share(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    // Zero may be typed as -0, which would not be shown as zero.
    value.is_finite().then_some(value + 0.0)
}

/// Reads `5s+1s` and `5s+100ms/1s`.
fn stall(text: &str) -> Result<Stall, String> {
    let form = "write START+LENGTH such as 5s+1s, or START+LENGTH/EVERY such as 5s+100ms/1s";
    let (start, rest) = text.split_once('+').ok_or_else(|| form.to_owned())?;
    let (length, every) = match rest.split_once('/') {
        Some((length, every)) => (length, Some(time(every)?)),
        None => (rest, None),
    };
    let stall = Stall { start: time(start)?, length: time(length)?, every };
    if stall.length == Span(0) {
        return Err(format!("a stall of no length does nothing; {form}"));
    }
    match stall.every {
        Some(every) if every <= stall.length => Err(format!(
            "a stall of {} each {} would never end; make EVERY longer than LENGTH",
            show_time(stall.length),
            show_time(every)
        )),
        _ => Ok(stall),
    }
}

/// Reads `-10%/1h`.
fn drift(text: &str) -> Result<Drift, String> {
    let form = "write CHANGE/TIME such as -10%/1h, the change from -99% to 1000%";
    let (change, over) = text.split_once('/').ok_or_else(|| form.to_owned())?;
    let change = share(change).filter(|change| (-0.99..=10.0).contains(change));
    let drift = Drift { change: change.ok_or_else(|| form.to_owned())?, over: time(over)? };
    match drift.over {
        Span(0) => Err(format!("a change in no time has no speed; {form}")),
        _ => Ok(drift),
    }
}

/// The message about an unknown word: the nearest known word, and all of them.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|one| (distance(word, one), one)).min();
    let remedy = match nearest {
        Some((edits, one)) if edits <= one.len().div_ceil(2) => {
            format!("did you mean '{one}'? Choose")
        }
        _ => "choose".to_owned(),
    };
    format!("'{word}' is no {what}; {remedy} one of {}", known.join(", "))
}

/// The least number of letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_show_without_loss() {
        for (bytes, text) in [
            (4_000_000_000_000, "4TB"),
            (1 << 40, "1t"),
            (3_200_000_000, "3200MB"),
            (16 << 10, "16k"),
            (4097, "4097"),
            (0, "0"),
        ] {
            assert_eq!(show_bytes(Bytes(bytes)), text);
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
        for (ns, text) in [
            (100_000, "100us"),
            (90_000_000_000, "90s"),
            (120_000_000_000, "2min"),
            (1, "1ns"),
            (1_500, "1500ns"),
        ] {
            assert_eq!(show_time(Span(ns)), text);
            assert_eq!(text.parse(), Ok(Span(ns)));
        }
    }

    #[test]
    fn a_far_word_gets_no_suggestion() {
        assert!(unknown("device", "sdd", &["queue", "ssd"]).contains("did you mean 'ssd'?"));
        assert!(!unknown("device", "xylophone", &["queue", "ssd"]).contains("did you mean"));
    }
}
