//! What the workers of a closed loop wait for besides completions, and when a stream has load at all.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Span;

/// How a closed loop rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rests {
    /// It does not: a completion starts the next I/O.
    #[default]
    None,
    /// Each slot rests between a completion and its next start, as a user thinks.
    Think {
        /// For how long, or on average.
        #[serde(rename = "time_ns")]
        time: Span,
        /// Whether each rest is drawn from the exponential distribution.
        exponential: bool,
    },
    /// Each worker starts a burst of I/Os and rests.
    Bursts {
        /// I/Os of a burst, at least 1.
        ios: u32,
        /// From the end of a burst to the first start of the next.
        #[serde(rename = "rest_ns")]
        rest: Span,
        /// When a burst has ended.
        from: RestFrom,
    },
}

/// When a burst has ended, so that the rest begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestFrom {
    /// When all of it has completed.
    LastCompletion,
    /// When the last of it has started.
    LastStart,
}

impl fmt::Display for Rests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no rests"),
            Self::Think { time, exponential: false } => write!(f, "think time {time}"),
            Self::Think { time, exponential: true } => {
                write!(f, "exponential think time, {time} on average")
            }
            Self::Bursts { ios, rest, from } => {
                write!(f, "bursts of {ios} I/Os by each worker with rests of {rest}")?;
                match from {
                    RestFrom::LastCompletion => Ok(()),
                    RestFrom::LastStart => f.write_str(" from the last start"),
                }
            }
        }
    }
}

/// When a stream has load. Both times are counted from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Active {
    /// When its load begins; with the warm-up if none.
    #[serde(rename = "start_ns", default, skip_serializing_if = "super::is_usual")]
    pub start: Option<Span>,
    /// When it ends; with the window if none.
    #[serde(rename = "end_ns", default, skip_serializing_if = "super::is_usual")]
    pub end: Option<Span>,
}

impl Active {
    /// All the time, from the warm-up to the window's end.
    pub const ALWAYS: Self = Self { start: None, end: None };

    /// When the load begins, in a window of this length.
    pub fn begins(&self) -> Span {
        self.start.unwrap_or(Span(0))
    }

    /// When it ends in a window of this length.
    pub fn ends(&self, window: Span) -> Span {
        self.end.unwrap_or(window).min(window)
    }

    /// The part of a piece of the window, from one time to another, that has load: its beginning and
    /// end, the end not before the beginning.
    pub fn part(&self, from: Span, to: Span) -> (Span, Span) {
        let begins = self.begins().max(from).min(to);
        (begins, self.ends(to).max(begins))
    }
}

impl fmt::Display for Active {
    /// "from 10 s to 20 s", "from 10 s", "until 20 s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.start, self.end) {
            (None, None) => f.write_str("all the time"),
            (Some(start), None) => write!(f, "from {start}"),
            (None, Some(end)) => write!(f, "until {end}"),
            (Some(start), Some(end)) => write!(f, "from {start} to {end}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_load_from_its_start_to_its_end_and_not_outside_of_the_window() {
        let s = Span::from_secs;
        let active = |start, end| Active { start, end };
        for (active, part) in [
            (Active::ALWAYS, (s(5), s(10))),
            (active(Some(s(7)), None), (s(7), s(10))),
            (active(None, Some(s(7))), (s(5), s(7))),
            (active(Some(s(12)), Some(s(20))), (s(10), s(10))),
            (active(Some(s(1)), Some(s(2))), (s(5), s(5))),
        ] {
            assert_eq!(active.part(s(5), s(10)), part, "{active}");
        }
        assert_eq!(active(Some(s(1)), Some(s(2))).to_string(), "from 1 s to 2 s");
    }
}
