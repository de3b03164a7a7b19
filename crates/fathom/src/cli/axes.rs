//! The axes of a sweep as they are typed: an option of `fathom run` with a list of values. Ranges
//! become lists here, with the values that a user could have typed.

use fathom_core::experiment::{Axis, Scale};
use fathom_core::{Bytes, typed_size};

use super::{rates, values};

/// The largest number of values of an axis.
const VALUES_MAX: usize = 4096;

/// The axis whose values are targets.
pub const TARGETS: &str = "targets";

/// The axis of the number of hosts that apply the load together.
pub const HOSTS: &str = "hosts";

/// As the last of its values, or the end of a range of them: all hosts.
pub const ALL_HOSTS: &str = "N";

/// The axis of the number of copies of a stream that run together.
pub const STREAMS: &str = "streams";

/// The axis of the share of random access, as in the sweeps of Iometer and of textbooks; its values
/// become patterns.
pub const RANDOM_SHARE: &str = "random-share";

/// The most copies of a stream.
const COPIES_MAX: u32 = 256;

/// An axis as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisArg {
    /// An option, one of a stream (`users.rate`), a variable of the workload, `targets` or
    /// `streams`.
    pub name: String,
    /// Its values as they are typed, at least one, without repetition.
    pub labels: Vec<String>,
}

impl AxisArg {
    /// An axis of these values, each of which may be a range.
    ///
    /// # Errors
    ///
    /// When a range is invalid, or a value occurs twice.
    pub fn new(name: &str, values: &[&str]) -> Result<Self, String> {
        let name = name.trim();
        let mut labels: Vec<String> = Vec::new();
        for value in values.iter().map(|value| value.trim()) {
            // How many there are is not known before they are gathered.
            let is_open = name == HOSTS && value.ends_with(ALL_HOSTS);
            match value.split_once("..").filter(|_| name != TARGETS && !is_open) {
                Some((from, to)) => labels.extend(range(from, to, &labels)?),
                None if value.is_empty() => return Err("a value is missing".to_owned()),
                None => labels.push(value.to_owned()),
            }
            if VALUES_MAX < labels.len() {
                return Err(format!("{name} has more than {VALUES_MAX} values"));
            }
        }
        let mut sorted: Vec<&String> = labels.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{name} has the value {} twice", twice[0]));
        }
        Ok(Self { name: name.to_owned(), labels })
    }

    /// The option of its values.
    pub fn key(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// The axis in the form of experiments and results.
    pub fn described(&self) -> Axis {
        let values: Option<Vec<f64>> =
            self.labels.iter().map(|label| number(self.key(), label)).collect();
        let scale = values.map_or(Scale::Categories, |values| scale(&values));
        Axis { name: self.name.clone(), scale, labels: self.labels.clone() }
    }
}

/// Reads `queue-depth=1,2,4..256`.
pub fn axis(text: &str) -> Result<AxisArg, String> {
    let usage = "write NAME=VALUES, such as queue-depth=1,2,4..256 or block-size=4k,64k";
    match text.split_once('=') {
        Some((name, values)) if !name.trim().is_empty() && !values.trim().is_empty() => {
            let values: Vec<&str> = values.split(',').collect();
            AxisArg::new(name, &values).map_err(|why| format!("{why}: {usage}"))
        }
        _ => Err(format!("there is no axis in it: {usage}")),
    }
}

/// Reads `payload=zeros`: an axis and one of its values.
pub fn value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write an axis and one of its values, such as payload=zeros".to_owned()),
    }
}

/// Whether an axis is the number of copies of a stream that run together: `streams`, or
/// `users.streams`.
pub fn counts_streams(axis: &str) -> bool {
    axis.rsplit('.').next() == Some(STREAMS)
}

/// Reads the number of copies.
///
/// # Errors
///
/// When it is not such a number.
pub fn copies(text: &str) -> Result<u32, String> {
    let count = values::count(text).ok().filter(|count| (1..=COPIES_MAX).contains(count));
    count.ok_or_else(|| format!("it is a whole number from 1 to {COPIES_MAX}"))
}

/// The pattern for a value of the axis `random-share`: `sequential`, `mixed:30%` or `random`.
///
/// # Errors
///
/// When it is not a share.
pub fn pattern_of(random_share: &str) -> Result<String, String> {
    Ok(match values::share(random_share)? {
        0.0 => "sequential".to_owned(),
        1.0 => "random".to_owned(),
        _ => format!("mixed:{random_share}"),
    })
}

/// The option behind a name from other tools or from everyday language.
pub fn otherwise_called(name: &str) -> Option<&'static str> {
    Some(match name {
        "depth" | "iodepth" | "outstanding" | "outstanding-ios" => "queue-depth",
        "threads" | "numjobs" | "jobs" => "workers",
        "load" | "offered-load" | "iops" => "rate",
        "bs" | "blocksize" | "size-of-block" => "block-size",
        "reads" | "rwmixread" => "read-share",
        "random" | "randomness" => RANDOM_SHARE,
        _ => return None,
    })
}

/// The step from one value of a range to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Plus(f64),
    Times(f64),
}

/// The values of `from..to`, `from..to/step` and `from..to*factor`. Without a step the series
/// continues like the values before it, or in steps of one if there are none.
fn range(from: &str, to: &str, before: &[String]) -> Result<Vec<String>, String> {
    let typed = format!("{from}..{to}");
    let (to, step) = split_step(to);
    let (first, last, unit) = ends(from, to).ok_or_else(|| {
        format!("'{typed}' is no range: its ends are numbers with the same unit, or sizes")
    })?;
    let read = |text: &str| match unit {
        Unit::Same(suffix) => text.strip_suffix(suffix).and_then(|text| text.trim().parse().ok()),
        Unit::Size => values::size(text).ok().map(|size| size.0 as f64),
    };
    let step = match step {
        Some(('*', text)) => text.trim().parse().ok().map(Step::Times),
        Some((_, text)) => read(text).or_else(|| text.trim().parse().ok()).map(Step::Plus),
        None => Some(continued(before.iter().map(|label| read(label)).collect(), first)),
    };
    let up = match step {
        Some(Step::Plus(by)) => by > 0.0,
        Some(Step::Times(by)) => by > 1.0 && first > 0.0,
        None => false,
    };
    let Some(step) = step.filter(|_| up && first < last) else {
        return Err(format!(
            "'{typed}' does not rise: write 1..8, 0%..100%/25% or 1..256*2, from the lower end"
        ));
    };
    let mut labels = Vec::new();
    let mut value = first;
    for number in 1.. {
        labels.push(unit.label(value));
        value = match step {
            Step::Plus(by) => first + by * f64::from(number),
            Step::Times(by) => first * by.powi(number),
        };
        // Rounding errors must not drop the last value.
        if value > last * (1.0 + 1e-9) || VALUES_MAX < labels.len() {
            break;
        }
    }
    Ok(labels)
}

/// The end of a range and its step: a '/' before a letter belongs to the unit, as in 8/worker.
fn split_step(to: &str) -> (&str, Option<(char, &str)>) {
    let bytes = to.as_bytes();
    let starts_step = |at: usize| match bytes[at] {
        b'*' => true,
        b'/' => bytes.get(at + 1).is_some_and(|next| next.is_ascii_digit() || *next == b'.'),
        _ => false,
    };
    match (0..bytes.len()).find(|at| starts_step(*at)) {
        Some(at) => (&to[..at], Some((char::from(bytes[at]), &to[at + 1..]))),
        None => (to, None),
    }
}

/// The unit of a range's values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit<'a> {
    /// The text after the number of both ends.
    Same(&'a str),
    /// Bytes: the ends have different units.
    Size,
}

impl Unit<'_> {
    fn label(self, value: f64) -> String {
        match self {
            // To nine digits, so that 0.1 + 0.2 is 0.3.
            Self::Same(suffix) => {
                let digits = format!("{value:.9}");
                let digits = digits.trim_end_matches('0').trim_end_matches('.');
                format!("{digits}{suffix}")
            }
            Self::Size => typed_size(Bytes(value.round() as u64)),
        }
    }
}

/// The ends of a range as numbers, and their unit.
fn ends<'a>(from: &'a str, to: &str) -> Option<(f64, f64, Unit<'a>)> {
    let split = |text: &str| {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        Some((text[..end].parse::<f64>().ok()?, end))
    };
    let (from, to) = (from.trim(), to.trim());
    let ((first, one), (last, other)) = (split(from)?, split(to)?);
    match from[one..] == to[other..] {
        true => Some((first, last, Unit::Same(&from[one..]))),
        false => {
            let size = |text: &str| values::size(text).ok().map(|size| size.0 as f64);
            Some((size(from)?, size(to)?, Unit::Size))
        }
    }
}

/// How a list continues: by the ratio of its last values if that is the same twice, otherwise by
/// their difference.
fn continued(before: Vec<Option<f64>>, first: f64) -> Step {
    let before: Vec<f64> = before.into_iter().rev().map_while(|value| value).take(2).collect();
    match before.as_slice() {
        [last, other] if (first / last - last / other).abs() < 1e-9 && first > *last => {
            Step::Times(first / last)
        }
        [last, ..] => Step::Plus(first - last),
        [] => Step::Plus(1.0),
    }
}

/// The value of an option as a number, if it is one: bytes, I/Os per second, seconds, a share.
pub fn number(key: &str, label: &str) -> Option<f64> {
    let leading = || {
        let end = label.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(label.len());
        label[..end].parse::<f64>().ok()
    };
    match key {
        "block-size" | "write-block-size" | "align" | "size" | "offset" | "start-distance" => {
            values::size(label).ok().map(|size| size.0 as f64)
        }
        "read-share" | "compressible" | "dedup" | RANDOM_SHARE => values::share(label).ok(),
        "rate" => rates::offered(label).ok()?.figure(),
        "warm-up" | "duration" | "cool-down" | "interval" => {
            label.parse::<fathom_core::Span>().ok().map(|span| span.as_secs_f64())
        }
        "queue-depth" | "workers" => leading(),
        // A variable may be anything; a number counts as one.
        _ => label.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

/// Whether values are spaced more evenly by their ratios or by their differences.
fn scale(values: &[f64]) -> Scale {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else {
        return Scale::Linear;
    };
    if first <= 0.0 || last < 2.0 * first {
        return Scale::Linear;
    }
    // The spread of the steps between neighbors, by their largest and smallest.
    let spread = |of: &dyn Fn(f64) -> f64| {
        let steps = sorted.windows(2).map(|pair| of(pair[1]) - of(pair[0]));
        let (low, high) =
            steps.fold((f64::INFINITY, 0.0), |(low, high), step| (step.min(low), step.max(high)));
        high / low.max(1e-12)
    };
    match spread(&f64::ln) <= spread(&|value| value) {
        true => Scale::Log2,
        false => Scale::Linear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> String {
        axis(text).map_or_else(|why| why, |axis| axis.labels.join(" "))
    }

    #[test]
    fn values_are_listed_counted_multiplied_or_go_on_as_they_begin() {
        for (typed, expected) in [
            ("queue-depth=1,2,4..256", "1 2 4 8 16 32 64 128 256"),
            ("queue-depth=1..4", "1 2 3 4"),
            ("queue-depth=1..256*4", "1 4 16 64 256"),
            ("queue-depth=1..200*4", "1 4 16 64"),
            ("queue-depth=0,10,20..50", "0 10 20 30 40 50"),
            ("queue-depth=8..32/8", "8 16 24 32"),
            ("queue-depth=1/worker..8/worker*2", "1/worker 2/worker 4/worker 8/worker"),
            ("read-share=0%..100%/25%", "0% 25% 50% 75% 100%"),
            ("read-share=0.1..0.3/0.1", "0.1 0.2 0.3"),
            ("block-size=4k,64k", "4k 64k"),
            ("block-size=4k..1m*4", "4k 16k 64k 256k 1m"),
            ("block-size=512..4k*2", "512 1k 2k 4k"),
            ("rate=100MiB/s..300MiB/s/100MiB/s", "100MiB/s 200MiB/s 300MiB/s"),
            ("users.rate=1k..4k*2", "1k 2k 4k"),
            ("targets=/dev/sda,/dev/sdb,/dev/sda+/dev/sdb", "/dev/sda /dev/sdb /dev/sda+/dev/sdb"),
            ("pattern=random,sequential", "random sequential"),
        ] {
            assert_eq!(labels(typed), expected, "{typed}");
        }
        assert_eq!(axis("users.rate=1k,2k").unwrap().key(), "rate");
    }

    #[test]
    fn copies_of_a_stream_are_counted() {
        assert!(counts_streams("streams") && counts_streams("users.streams"));
        assert!(!counts_streams("streams.rate") && !counts_streams("mystreams"));
        assert_eq!(["1", "256"].map(copies), [Ok(1), Ok(256)]);
        for wrong in ["0", "257", "-1", "1.5", "many"] {
            assert_eq!(copies(wrong).unwrap_err(), "it is a whole number from 1 to 256", "{wrong}");
        }
    }

    #[test]
    fn what_is_no_axis_says_what_one_looks_like() {
        for (typed, expected) in [
            ("queue-depth", "there is no axis in it"),
            ("=1", "there is no axis in it"),
            ("queue-depth=", "there is no axis in it"),
            ("queue-depth=1,,2", "a value is missing"),
            ("queue-depth=4..1", "'4..1' does not rise"),
            ("queue-depth=1..8*1", "'1..8*1' does not rise"),
            ("queue-depth=0..8*2", "'0..8*2' does not rise"),
            ("queue-depth=1..8/0", "'1..8/0' does not rise"),
            ("queue-depth=1..8*x", "'1..8*x' does not rise"),
            ("pattern=random..zipf", "'random..zipf' is no range"),
            ("block-size=4k..8parsecs", "'4k..8parsecs' is no range"),
            ("queue-depth=1..4,2", "queue-depth has the value 2 twice"),
            ("queue-depth=1..1000000", "queue-depth has more than 4096 values"),
        ] {
            let said = labels(typed);
            assert!(
                said.starts_with(expected) && said.contains("queue-depth=1,2,4..256"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_scale_follows_from_the_values() {
        for (typed, expected) in [
            ("queue-depth=1,2,4..256", Scale::Log2),
            ("queue-depth=1..8", Scale::Linear),
            ("read-share=0%..100%/25%", Scale::Linear),
            ("block-size=4k,64k", Scale::Log2),
            ("block-size=4k..1m*4", Scale::Log2),
            ("pattern=random,sequential", Scale::Categories),
            ("targets=/dev/sda,/dev/sdb", Scale::Categories),
            ("backend=uring,aio", Scale::Categories),
            ("rate=1k,2k,3k,4k", Scale::Linear),
            ("streams=1,2,4..16", Scale::Log2),
            ("users.streams=1..4", Scale::Linear),
        ] {
            assert_eq!(axis(typed).unwrap().described().scale, expected, "{typed}");
        }
        assert_eq!(number("block-size", "4k"), Some(4096.0));
        assert_eq!(number("rate", "4k"), Some(4000.0));
        assert_eq!(number("read-share", "70%"), Some(0.7));
        assert_eq!(number("duration", "500ms"), Some(0.5));
    }
}
