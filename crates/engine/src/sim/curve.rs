//! Throughput against concurrency, as a curve through measured or invented points.

use std::fmt;

use fathom_core::Bytes;

use super::shown::show_bytes;

/// Points of concurrency and bandwidth, by rising concurrency; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve(Vec<(u32, Bytes)>);

/// The text that was typed.
const FORM: &str = "write CONCURRENCY:SIZE/s for each point, with a + between two of them, such as \
                    1:500MB/s+8:900MB/s";
/// The largest concurrency of a point.
const MOST: u32 = 1 << 20;

impl Curve {
    /// A curve through these points.
    ///
    /// # Errors
    ///
    /// Without a point, or when concurrency does not rise from 1 or more, or a bandwidth is zero.
    pub fn new(points: Vec<(u32, Bytes)>) -> Result<Self, String> {
        if points.is_empty() || points[0].0 == 0 {
            return Err(format!("a curve begins at a concurrency of 1 or more; {FORM}"));
        }
        if !points.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(format!("the concurrency has to rise from point to point; {FORM}"));
        }
        match points.iter().find(|&&(concurrency, rate)| MOST < concurrency || rate.0 == 0) {
            Some((concurrency, rate)) => Err(format!(
                "{concurrency}:{} is outside its range: a concurrency is at most {MOST}, and a \
                 bandwidth at least 1 B/s; {FORM}",
                rate.0
            )),
            None => Ok(Self(points)),
        }
    }

    /// Reads `1:565MB/s+2:897MB/s`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let point = |text: &str| {
            let (concurrency, rate) =
                text.split_once(':').ok_or_else(|| format!("'{text}' is no point; {FORM}"))?;
            let concurrency = concurrency
                .trim()
                .parse()
                .map_err(|_| format!("'{concurrency}' is no concurrency; {FORM}"))?;
            let rate = rate.trim();
            let rate: Bytes =
                rate.strip_suffix("/s").unwrap_or(rate).parse().map_err(|e| format!("{e}"))?;
            Ok((concurrency, rate))
        };
        Self::new(text.split('+').map(point).collect::<Result<_, String>>()?)
    }

    /// Bytes per second with this many in flight, at least one: between two points linear in the
    /// logarithms of both; below the first as if each I/O took as long as there; above the last as
    /// at the last.
    pub fn bandwidth(&self, in_flight: u32) -> f64 {
        let at = f64::from(in_flight);
        let behind = self.0.partition_point(|&(concurrency, _)| concurrency <= in_flight);
        match (behind.checked_sub(1).map(|index| self.0[index]), self.0.get(behind)) {
            (None, Some(&(first, rate))) => rate.0 as f64 * at / f64::from(first),
            (Some((_, rate)), None) => rate.0 as f64,
            (Some((below, low)), Some(&(above, high))) => {
                let [at, below, above] = [at, f64::from(below), f64::from(above)].map(f64::ln);
                let [low, high] = [low, high].map(|rate| (rate.0 as f64).ln());
                (low + (high - low) * (at - below) / (above - below)).exp()
            }
            (None, None) => unreachable!("a curve has a point"),
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(place, (concurrency, rate))| {
            let plus = if place > 0 { "+" } else { "" };
            write!(f, "{plus}{concurrency}:{}/s", show_bytes(*rate))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_it_is_straight_in_logarithms() {
        let curve = Curve::read("2:100MB/s+8:400MB/s+32:200MB/s").unwrap();
        for (in_flight, expected) in
            [(1, 50e6), (2, 100e6), (4, 200e6), (8, 400e6), (16, 282.842_712e6), (500, 200e6)]
        {
            let bandwidth = curve.bandwidth(in_flight);
            assert!((bandwidth / expected - 1.0).abs() < 1e-6, "{in_flight}: {bandwidth}");
        }
        assert_eq!(curve.to_string(), "2:100MB/s+8:400MB/s+32:200MB/s");
    }

    #[test]
    fn what_is_no_curve_is_refused_with_the_form() {
        for text in ["", "1", "0:1MB/s", "2:1MB/s+2:3MB/s", "1:0MB/s", "x:1MB/s", "1:1XB/s"] {
            let why = Curve::read(text).unwrap_err();
            assert!(why.contains("CONCURRENCY") || why.contains("unit"), "{text}: {why}");
        }
    }
}
