//! The load of an open loop as people type it: a rate, or a course of rates over time, for the
//! whole stream or for each of its workers or targets; or a share of it, if several streams make up
//! one load.

use fathom_core::spec::{Course, Stage};
use fathom_core::{Bytes, Rate, Span};

use super::values;

/// An offered load as typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Offered {
    /// A constant rate.
    Steady(TypedRate),
    /// Stages, one after the other, at least one.
    Course(Vec<TypedStage>),
}

/// A rate as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypedRate {
    load: Load,
    per: Per,
}

/// The subject of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    Stream,
    Worker,
    Target,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// I/Os per second.
    Iops(f64),
    /// Bytes per second.
    Bandwidth(f64),
}

/// A stage of a course as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypedStage {
    /// The rate at its beginning; the rate at the end of the stage before if none.
    begins: Option<TypedRate>,
    ends: TypedRate,
    lasts: Span,
}

/// The facts that turn a rate of a worker, of a target or of bytes into the rate of a whole stream.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Workers of the stream.
    pub workers: u64,
    /// Targets of the stream.
    pub targets: u64,
    /// Mean bytes of one of its I/Os.
    pub block: f64,
}

impl Offered {
    /// This many I/Os per second of each worker, constantly.
    pub fn by_each_worker(iops: f64) -> Self {
        Self::Steady(TypedRate { load: Load::Iops(iops), per: Per::Worker })
    }

    /// This share of it.
    fn part(self, share: f64) -> Self {
        match self {
            Self::Steady(rate) => Self::Steady(rate.part(share)),
            Self::Course(stages) => {
                let part = |stage: TypedStage| TypedStage {
                    begins: stage.begins.map(|rate| rate.part(share)),
                    ends: stage.ends.part(share),
                    ..stage
                };
                Self::Course(stages.into_iter().map(part).collect())
            }
        }
    }

    /// The figure that was typed, in I/Os or bytes per second; none for a course.
    pub fn figure(&self) -> Option<f64> {
        match self {
            Self::Steady(TypedRate {
                load: Load::Iops(figure) | Load::Bandwidth(figure), ..
            }) => Some(*figure),
            Self::Course(_) => None,
        }
    }
}

impl TypedRate {
    fn part(self, share: f64) -> Self {
        let load = match self.load {
            Load::Iops(iops) => Load::Iops(iops * share),
            Load::Bandwidth(bytes) => Load::Bandwidth(bytes * share),
        };
        Self { load, ..self }
    }

    /// I/Os per second of the whole stream.
    fn of_stream(self, shares: Shares) -> Rate {
        let iops = match self.load {
            Load::Iops(iops) => iops,
            Load::Bandwidth(bytes) => bytes / shares.block,
        };
        Rate(match self.per {
            Per::Stream => iops,
            Per::Worker => iops * shares.workers as f64,
            Per::Target => iops * shares.targets as f64,
        })
    }
}

/// The load of a whole stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Offer {
    /// A constant rate.
    Steady(Rate),
    /// A rate that changes over time.
    Course(Course),
}

impl Offered {
    /// The load of the whole stream.
    pub fn of_stream(&self, shares: Shares) -> Offer {
        let stages = match self {
            Self::Steady(rate) => return Offer::Steady(rate.of_stream(shares)),
            Self::Course(stages) => stages,
        };
        let mut stands = Rate(0.0);
        let stages = stages.iter().map(|stage| {
            let begins = stage.begins.map_or(stands, |rate| rate.of_stream(shares));
            stands = stage.ends.of_stream(shares);
            Stage { lasts: stage.lasts, begins, ends: stands }
        });
        Offer::Course(Course::new(stages.collect()))
    }

    /// How long its stages last, if it is a course, and whether a rate is held after them.
    pub fn length(&self) -> Option<(Span, bool)> {
        match self {
            Self::Steady(_) => None,
            Self::Course(stages) => {
                let length = stages.iter().fold(Span(0), |sum, stage| sum + stage.lasts);
                Some((length, stages.last().is_some_and(|last| last.lasts == Span(0))))
            }
        }
    }
}

/// Reads a rating of targets: `80k` I/Os per second.
pub fn rated_iops(text: &str) -> Result<Rate, String> {
    match offered(text)? {
        Offered::Steady(TypedRate { load: Load::Iops(iops), per: Per::Stream }) => Ok(Rate(iops)),
        _ => Err(format!("'{text}' is no number of I/Os per second: write 80k")),
    }
}

/// Reads a rating of targets: `800MB/s`.
pub fn rated_bandwidth(text: &str) -> Result<Bytes, String> {
    match offered(text)? {
        Offered::Steady(TypedRate { load: Load::Bandwidth(bytes), per: Per::Stream }) => {
            Ok(Bytes(bytes.round() as u64))
        }
        _ => Err(format!("'{text}' is no number of bytes per second: write 800MB/s")),
    }
}

/// More stages than anybody types.
const STAGES_MAX: usize = 1000;

/// Reads `10k`, `100MiB/s/worker`, or `1k for 10s, to 50k over 60s, 50k`; or a share of one of these,
/// `30% of 10k`.
pub fn offered(text: &str) -> Result<Offered, String> {
    let Some((share, whole)) = text.split_once(" of ") else { return undivided(text) };
    match values::share(share.trim()) {
        Ok(0.0) => Err(format!("'{text}' is nothing: give it a share above 0%")),
        Ok(share) => Ok(undivided(whole.trim())?.part(share)),
        Err(why) => Err(format!("'{share}': {why}, as in '30% of 10k'")),
    }
}

fn undivided(text: &str) -> Result<Offered, String> {
    let parts: Vec<&str> = text.split(',').collect();
    if let [one] = *parts
        && !one.trim().contains(char::is_whitespace)
    {
        let rate = rate(one.trim(), false)?;
        return Ok(Offered::Steady(rate));
    }
    if parts.len() > STAGES_MAX {
        return Err(format!("a course has at most {STAGES_MAX} stages"));
    }
    let mut stages: Vec<TypedStage> = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        stages.push(stage(part.trim(), place == 0, place + 1 == parts.len())?);
    }
    if stages.iter().all(|stage| stage.lasts == Span(0)) {
        return Err(format!("'{text}' has no stage that lasts: write '1k for 10s, 50k'"));
    }
    Ok(Offered::Course(stages))
}

/// Reads one stage: `1k for 10s`, `to 50k over 60s`, `1k to 50k over 60s`, or the last, `50k`.
fn stage(text: &str, is_first: bool, is_last: bool) -> Result<TypedStage, String> {
    let usage = "write '1k for 10s', 'to 50k over 60s', or a last '50k'";
    let words: Vec<&str> = text.split_whitespace().collect();
    let time = |words: &[&str]| match words.concat().parse::<Span>() {
        Ok(Span(0)) => Err(format!("'{text}' lasts no time: {usage}")),
        Ok(span) => Ok(span),
        Err(why) => Err(format!("'{text}' has no time ({why}): {usage}")),
    };
    match words.as_slice() {
        [begins, "to", ends, "over", lasts @ ..] => Ok(TypedStage {
            begins: Some(rate(begins, true)?),
            ends: rate(ends, true)?,
            lasts: time(lasts)?,
        }),
        ["to", ..] if is_first => {
            Err(format!("'{text}' has nothing to begin at: write '1k to 50k over 60s'"))
        }
        ["to", ends, "over", lasts @ ..] => {
            Ok(TypedStage { begins: None, ends: rate(ends, true)?, lasts: time(lasts)? })
        }
        [held, "for", lasts @ ..] => {
            let held = rate(held, true)?;
            Ok(TypedStage { begins: Some(held), ends: held, lasts: time(lasts)? })
        }
        [held] if is_last => {
            let held = rate(held, true)?;
            Ok(TypedStage { begins: Some(held), ends: held, lasts: Span(0) })
        }
        [_] => Err(format!("'{text}' is not the last stage and says no time: {usage}")),
        _ => Err(format!("'{text}' is no stage of a course: {usage}")),
    }
}

/// Reads a rate; a stage of a course may have a rate of zero.
fn rate(text: &str, or_nothing: bool) -> Result<TypedRate, String> {
    let (number, per) = match text.rsplit_once('/') {
        Some((number, "worker")) => (number, Per::Worker),
        Some((number, "target")) => (number, Per::Target),
        Some((number, "total")) => (number, Per::Stream),
        Some((_, other)) if other != "s" && !other.is_empty() => {
            return Err(format!("'/{other}' is unknown: write 10k, 10k/worker or 10k/target"));
        }
        _ => (text, Per::Stream),
    };
    let nothing = or_nothing && number == "0";
    let load = if nothing { Load::Iops(0.0) } else { load(number)? };
    Ok(TypedRate { load, per })
}

/// The value in bytes of a rate in bits, in a form that can be typed; none if it is not in bits. A
/// small `b` means bits wherever a unit is written with care (IEC 80000-13), as do `bit` and `bps`:
/// treating it as bytes would silently be wrong by a factor of 8.
fn meant_in_bits(text: &str) -> Option<String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim();
    let prefix = ["bits/s", "bit/s", "bps", "b/s"].iter().find_map(|end| {
        let prefix = unit.strip_suffix(end).or_else(|| {
            // In any spelling, except for the small b itself.
            let at = unit.len().checked_sub(end.len()).filter(|_| *end != "b/s")?;
            unit.get(at..)?.eq_ignore_ascii_case(end).then(|| &unit[..at])
        })?;
        ["", "k", "m", "g", "t", "ki", "mi", "gi", "ti"]
            .contains(&&*prefix.to_ascii_lowercase())
            .then_some(prefix)
    })?;
    let bytes = number.parse::<f64>().ok()? / 8.0;
    let prefix = match prefix.to_ascii_lowercase().as_str() {
        "k" => "k".to_owned(),
        lower => {
            lower.replace(['m', 'g', 't', 'k'], &prefix.get(..1).unwrap_or("").to_ascii_uppercase())
        }
    };
    Some(format!("{bytes}{prefix}B/s"))
}

/// Reads `10k`, `2500`, `10kIOPS` (powers of ten) and `100MiB/s`, `1GB/s`.
fn load(text: &str) -> Result<Load, String> {
    let usage = "write 10k for I/Os per second, or 100MiB/s";
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if let Some(bytes) = meant_in_bits(text) {
        return Err(format!(
            "'{text}' is in bits per second, which storage is not measured in: write {bytes} if \
             bits were meant, or MB/s or MiB/s with a capital B for bytes"
        ));
    }
    if let Some(size) = lower.strip_suffix("/s") {
        if !size.ends_with('b') {
            return Err(format!(
                "'{text}' could mean I/Os or bytes per second: write 10k or 10KiB/s"
            ));
        }
        return match size.parse::<Bytes>() {
            Ok(Bytes(0)) | Err(_) => Err(format!("'{text}' is no bandwidth: {usage}")),
            Ok(bytes) => Ok(Load::Bandwidth(bytes.0 as f64)),
        };
    }
    let digits = lower.strip_suffix("iops").unwrap_or(&lower).trim_end();
    let (digits, factor) = match digits.chars().last() {
        Some('k') => (&digits[..digits.len() - 1], 1e3),
        Some('m') => (&digits[..digits.len() - 1], 1e6),
        Some('b') => return Err(format!("a bandwidth needs its '/s': write {text}/s")),
        _ => (digits, 1.0),
    };
    match digits.trim_end().parse::<f64>() {
        Ok(number) if number.is_finite() && number * factor >= 0.001 && number * factor <= 1e9 => {
            Ok(Load::Iops(number * factor))
        }
        _ => Err(format!("'{text}' is no rate from 0.001 to 1000m: {usage}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: Shares = Shares { workers: 6, targets: 3, block: 4096.0 };

    fn steady(text: &str) -> Option<f64> {
        match offered(text).unwrap().of_stream(SHARES) {
            Offer::Steady(rate) => Some(rate.0),
            Offer::Course(_) => None,
        }
    }

    #[test]
    fn a_rate_is_of_ios_unless_it_says_bytes() {
        for (text, expected) in [
            ("10k", 10_000.0),
            ("2500", 2500.0),
            ("1.5k", 1500.0),
            ("10kIOPS", 10_000.0),
            ("0.5", 0.5),
            ("100MiB/s", 25_600.0),
            ("1GB/s", 1e9 / 4096.0),
        ] {
            assert_eq!(steady(text), Some(expected), "{text}");
        }
        for text in ["10k/s", "100MiB", "0", "-5", "", "k", "0B/s", "fast", "1e300", "nan"] {
            assert!(offered(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bits_are_not_taken_for_bytes() {
        for (text, bytes) in [
            ("1Mb/s", "0.125MB/s"),
            ("8Kb/s", "1kB/s"),
            ("8kb/s", "1kB/s"),
            ("10Gbit/s", "1.25GB/s"),
            ("10gbits/s", "1.25GB/s"),
            ("100Mbps", "12.5MB/s"),
            ("800MBPS", "100MB/s"),
            ("16Mib/s", "2MiB/s"),
            ("8000b/s", "1000B/s"),
            ("4mb/s/worker", "0.5MB/s"),
            ("1Mb/s for 10s, 2MB/s", "0.125MB/s"),
        ] {
            let refusal = offered(text).unwrap_err();
            assert!(refusal.contains(&format!("write {bytes} ")), "{text}: {refusal}");
        }
        assert!(rated_bandwidth("800Mb/s").unwrap_err().contains("write 100MB/s"));
        for text in ["1MB/s", "1mB/s", "1MiB/s", "1mib/s", "1kB/s", "512B/s"] {
            assert!(offered(text).is_err() == (text == "1mib/s"), "{text}");
        }
    }

    #[test]
    fn a_rate_says_what_it_is_of() {
        assert_eq!(steady("10k/worker"), Some(60_000.0));
        assert_eq!(steady("10k/target"), Some(30_000.0));
        assert_eq!(steady("10k/total"), Some(10_000.0));
        assert_eq!(steady("4MiB/s/worker"), Some(6144.0));
        for text in ["10k/thread", "10k/", "10k/worker/worker", "/worker", "4MiB/worker"] {
            assert!(offered(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_of_a_load_is_a_load() {
        assert_eq!(steady("30% of 10k"), Some(3000.0));
        assert_eq!(steady("0.125 of 4MiB/s/worker"), Some(768.0));
        assert_eq!(steady("100% of 7"), Some(7.0));
        let Offer::Course(course) =
            offered("25% of 1k for 10s, to 4k over 1m, 2k").unwrap().of_stream(SHARES)
        else {
            panic!("a course")
        };
        assert_eq!(course.to_string(), "250/s for 10 s, to 1000/s over 60 s, 500/s");
        for (text, why) in [
            ("30 of 10k", "as in '30% of 10k'"),
            ("0% of 10k", "is nothing"),
            ("30% of", "no stage"),
            ("30% of 20% of 10k", "no stage"),
            ("30% of fast", "no rate"),
        ] {
            let refused = offered(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_course_is_a_list_of_stages() {
        for (text, shown) in [
            ("1k for 10s, to 50k over 60s, 50k", "1000/s for 10 s, to 50000/s over 60 s, 50000/s"),
            ("0 to 1k over 1 min", "0/s to 1000/s over 60 s"),
            ("5 for 1s,0 for 500ms, 5", "5/s for 1 s, 0/s for 500 ms, 5/s"),
            ("2/worker for 1s, to 4MiB/s over 1s", "12/s for 1 s, to 1024/s over 1 s"),
        ] {
            let Offer::Course(course) = offered(text).unwrap().of_stream(SHARES) else {
                panic!("{text} is a course");
            };
            assert_eq!(course.to_string(), shown, "{text}");
        }
        assert_eq!(offered("1k for 1m, 5k").unwrap().length(), Some((Span::from_secs(60), true)));
        assert_eq!(offered("1k").unwrap().length(), None);
        for (text, why) in [
            ("1k, 2k", "not the last stage"),
            ("to 1k over 5s", "nothing to begin at"),
            ("1k for 0s, 2k", "lasts no time"),
            ("1k for, 2k", "has no time"),
            ("1k from 5s, 2k", "no stage of a course"),
            ("1k for 5 parsecs", "has no time"),
            ("1k for 5s,", "no stage"),
            ("x for 5s", "no rate"),
        ] {
            let refused = offered(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
