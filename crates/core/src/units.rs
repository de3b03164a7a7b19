//! Quantities are types, so that a bandwidth cannot be mistaken for a rate or a time for a size.
//!
//! Each reads what people type and shows itself the way people read it. Powers of two are written
//! KiB, MiB, powers of ten kB, MB; a bare `k` or `m` is a power of two, as in every storage tool.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The problem of a quantity that was typed, with a correct example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError(String);

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseUnitError {}

/// An amount of data in bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A point in time, in nanoseconds from an origin that the clock chose. Only differences have a
/// meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A length of time in nanoseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Events per second: above zero, and from zero up where a load changes over time.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(pub f64);

/// A quantile, from 0 to 1. People see it as a percentile: 0.999 is p99.9.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Quantile(pub f64);

/// A whole number with its thousands set apart: "41,200".
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Bytes {
    /// 1024 bytes.
    pub const KIB: u64 = 1 << 10;
    /// 1024 KiB.
    pub const MIB: u64 = 1 << 20;
    /// 1024 MiB.
    pub const GIB: u64 = 1 << 30;

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Instant {
    /// The time from `earlier` to this, and zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// A span of whole microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Rate {
    /// The mean time between two events, in nanoseconds.
    pub fn period_ns(self) -> f64 {
        1e9 / self.0
    }
}

impl Quantile {
    /// The percentiles of every report: 25th to 99th, then three to nine nines.
    pub const REPORTED: [Self; 13] = [
        Self(0.25),
        Self(0.5),
        Self(0.75),
        Self(0.9),
        Self(0.95),
        Self(0.99),
        Self(0.999),
        Self(0.9999),
        Self(0.99999),
        Self(0.999999),
        Self(0.9999999),
        Self(0.99999999),
        Self(0.999999999),
    ];
}

impl fmt::Display for Bytes {
    /// The largest power-of-two unit that leaves at least 1, with at most two decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut unit = 0;
        while unit + 1 < UNITS.len() && self.0 >> (10 * (unit + 1)) > 0 {
            unit += 1;
        }
        let value = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        write!(f, "{} {}", trimmed(value), UNITS[unit])
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Nobody gives a time of zero in nanoseconds.
            0 => f.write_str("0 s"),
            1..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{} us", trimmed(self.0 as f64 / 1e3)),
            1_000_000..1_000_000_000 => write!(f, "{} ms", trimmed(self.0 as f64 / 1e6)),
            1_000_000_000..120_000_000_000 => write!(f, "{} s", trimmed(self.0 as f64 / 1e9)),
            120_000_000_000..7_200_000_000_000 => {
                write!(f, "{} min", trimmed(self.0 as f64 / 6e10))
            }
            _ => write!(f, "{} h", trimmed(self.0 as f64 / 3.6e12)),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", trimmed(self.0))
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to the ninth decimal of the fraction, so that 0.999 is p99.9 and not p99.90000000000001.
        write!(f, "p{}", (self.0 * 1e11).round() / 1e9)
    }
}

/// A number with at most two decimals and no trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Splits "12.8 MiB" into 12.8 and "mib", the unit in lower case.
fn split_number(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim().to_ascii_lowercase()))
}

fn bytes_per_unit(unit: &str) -> Option<f64> {
    let factor = match unit {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024f64.powi(2),
        "g" | "gib" => 1024f64.powi(3),
        "t" | "tib" => 1024f64.powi(4),
        "p" | "pib" => 1024f64.powi(5),
        "e" | "eib" => 1024f64.powi(6),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "pb" => 1e15,
        "eb" => 1e18,
        _ => return None,
    };
    Some(factor)
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Reads `4096`, `4k`, `12.8MiB`, `1g` (powers of two) and `10MB` (powers of ten). A size that
    /// is no whole number of bytes is refused rather than rounded.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let bad = |why: &str| {
            ParseUnitError(format!("{why}: write a size such as 4k, 12.8MiB, 1g or 500MB"))
        };
        let (number, unit) = split_number(text).ok_or_else(|| bad("this is not a size"))?;
        let factor =
            bytes_per_unit(&unit).ok_or_else(|| bad(&format!("'{unit}' is not a unit of size")))?;
        let bytes = number * factor;
        if bytes > 2f64.powi(63) {
            return Err(bad("more than 8 EiB is beyond what a file can hold"));
        }
        // 12.8 MiB is 13421772.8 bytes; what people mean by it is the whole number next to it.
        if bytes.fract() != 0.0 && bytes < 1024.0 {
            return Err(bad("this is not a whole number of bytes"));
        }
        Ok(Self(bytes.round() as u64))
    }
}

impl FromStr for Span {
    type Err = ParseUnitError;

    /// Reads `500ms`, `10s`, `1.5m`, `2h`, `1d`, `100us`, `50ns`; a bare number is seconds.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let bad =
            |why: &str| ParseUnitError(format!("{why}: write a time such as 500ms, 30s, 5m or 2h"));
        let (number, unit) = split_number(text).ok_or_else(|| bad("this is not a time"))?;
        let factor = match unit.as_str() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "" | "s" | "sec" => 1e9,
            "m" | "min" => 6e10,
            "h" => 3.6e12,
            "d" => 8.64e13,
            _ => return Err(bad(&format!("'{unit}' is not a unit of time"))),
        };
        let ns = number * factor;
        if ns > 3.2e18 {
            return Err(bad("more than 100 years is too long"));
        }
        Ok(Self(ns.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_set_apart() {
        for (value, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")]
        {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn sizes_read_as_people_type_them() {
        for (text, bytes) in [
            ("4k", 4096),
            ("4096", 4096),
            ("4 KiB", 4096),
            ("1g", 1 << 30),
            ("12.8MB", 12_800_000),
            ("12.8MiB", 13_421_773),
            ("0.5k", 512),
            ("10GB", 10_000_000_000),
            ("7.5 EiB", 15 << 59),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "k", "4x", "-1k", "0.3", "1e9g", "nan", "9000000t", "4 4k"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_read_as_people_type_them() {
        for (text, ns) in [
            ("500ms", 500_000_000),
            ("10", 10_000_000_000),
            ("5m", 300_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("100us", 100_000),
        ] {
            assert_eq!(text.parse(), Ok(Span(ns)), "{text}");
        }
        for text in ["", "s", "5 parsecs", "-1s", "200000d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_show_as_people_read_them() {
        assert_eq!(Bytes(4096).to_string(), "4 KiB");
        assert_eq!(Bytes(1536 * 1024).to_string(), "1.5 MiB");
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Span(0).to_string(), "0 s");
        assert_eq!(Span(1).to_string(), "1 ns");
        assert_eq!(Span::from_us(1500).to_string(), "1.5 ms");
        assert_eq!(Span::from_secs(300).to_string(), "5 min");
        assert_eq!(Quantile(0.999).to_string(), "p99.9");
        assert_eq!(Quantile(0.999999999).to_string(), "p99.9999999");
    }
}
