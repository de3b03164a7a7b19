//! Compares each sentence of a conclusion with the truth about its device.
//!
//! A sentence that the bench cannot read is an error of the bench. It does not pass. If you reword
//! a conclusion, teach the bench to read it.

mod maps;
mod searches;
mod studies;
mod sweeps;

use std::collections::BTreeMap;

use fathom_core::Span;

use super::lab::{Noise, Session};

pub use maps::map;
pub use searches::{
    peak_at_1, peak_at_4, peak_at_8, peak_load, peak_rising, sustain_level, sustain_step,
};
pub use studies::{access_mix, multi_stream, write_concurrency, write_concurrency_compressed};
pub use sweeps::{compressed_sweep, sweep};

/// Judges which sentences of a session are right.
pub type Judge = fn(&Heard<'_>) -> Vec<Judged>;

/// The session to judge.
pub struct Heard<'a> {
    /// The outcome of the session.
    pub session: &'a Session,
    /// The outcome of the same experiment without noise.
    pub truth: &'a Truth,
    /// Its noise.
    pub noise: Noise,
    /// Its seed.
    pub seed: u64,
}

/// The rates of each setting without noise.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// I/Os and bytes per second, by the name of the setting.
    pub settings: BTreeMap<String, (f64, f64)>,
    /// The length of a session.
    pub lasted: Span,
}

impl Truth {
    /// The truth from sessions without noise.
    pub fn of(sessions: &[Session]) -> Self {
        let mut sums: BTreeMap<String, (f64, f64, f64)> = BTreeMap::new();
        for seen in sessions.iter().flat_map(|session| &session.trials) {
            let sum = sums.entry(seen.name.clone()).or_default();
            *sum = (sum.0 + seen.iops, sum.1 + seen.bandwidth, sum.2 + 1.0);
        }
        let mean = |(name, (iops, bandwidth, n))| (name, (iops / n, bandwidth / n));
        let lasted = sessions.iter().map(|session| session.lasted).max().unwrap_or_default();
        Self { settings: sums.into_iter().map(mean).collect(), lasted }
    }
}

/// The judgment on a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// The sentence is true.
    Right,
    /// The sentence is false.
    Wrong,
    /// The sentence says that it does not know.
    CannotTell,
    /// The bench does not understand the sentence.
    Unread,
}

/// A sentence with its judgment.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The kind of sentence, as the table names it.
    pub kind: &'static str,
    /// The judgment.
    pub worth: Worth,
    /// The sentence.
    pub sentence: String,
}

impl Judged {
    /// A sentence that is right if `right` is true.
    pub fn holds(kind: &'static str, sentence: &str, right: bool) -> Self {
        let worth = if right { Worth::Right } else { Worth::Wrong };
        Self { kind, worth, sentence: sentence.to_owned() }
    }

    /// A sentence that says that it does not know.
    pub fn open(kind: &'static str, sentence: &str) -> Self {
        Self { kind, worth: Worth::CannotTell, sentence: sentence.to_owned() }
    }

    /// A sentence that the bench does not know.
    pub fn unread(sentence: &str) -> Self {
        Self { kind: "not understood", worth: Worth::Unread, sentence: sentence.to_owned() }
    }
}

/// A number as people write it: "41,200".
pub fn number(text: &str) -> Option<f64> {
    text.trim().replace(',', "").parse().ok()
}

/// "10 %", "under 0.1 %": a share.
pub fn percent(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches("under ");
    number(text.strip_suffix('%')?).map(|percent| percent / 100.0)
}

/// "856.5 MiB/s", "41,200 IOPS": the figure, and whether it is in bytes.
pub fn rate(text: &str) -> Option<(f64, bool)> {
    let (value, unit) = text.trim().split_once(' ')?;
    let factor = match unit.trim() {
        "IOPS" => return Some((number(value)?, false)),
        "B/s" | "bytes/s" => 1.0,
        "KiB/s" => 1024.0,
        "MiB/s" => 1_048_576.0,
        "GiB/s" => 1_073_741_824.0,
        _ => return None,
    };
    Some((number(value)? * factor, true))
}

/// "1, 2 and 4": each of them.
pub fn labels(text: &str) -> Vec<&str> {
    text.split(", ").flat_map(|part| part.split(" and ")).map(str::trim).collect()
}

/// "10 % (7 to 13 %)", "10 %": the ends of the stated interval, as shares.
pub fn span(text: &str) -> Option<(f64, f64)> {
    let Some((_, ends)) = text.split_once('(') else {
        return percent(text).map(|value| (value, value));
    };
    let (least, most) = ends.split_once(')')?.0.split_once(" to ")?;
    let most = percent(most)?;
    let least = percent(least).or_else(|| number(least).map(|percent| percent / 100.0))?;
    Some((least, most))
}

/// The text between two words.
pub fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_are_written() {
        assert_eq!(rate("41,200 IOPS"), Some((41_200.0, false)));
        assert_eq!(rate("1.5 KiB/s"), Some((1536.0, true)));
        assert_eq!(percent("under 0.1 %"), Some(0.001));
        assert_eq!(between("a (b; c)", "(", ";"), Some("b"));
        assert_eq!(labels("1, 2 and 4"), ["1", "2", "4"]);
        assert_eq!(span("10 % (7 to 13 %)"), Some((0.07, 0.13)));
        assert_eq!(span("10 %"), Some((0.1, 0.1)));
    }
}
