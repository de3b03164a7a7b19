//! The difference between two sides in words: its direction, its size and its interval. Every
//! comparison words it here.

use crate::figures::{percent, ratio, significant, time};
use crate::stats::Ratio;

/// From this ratio on, and down to its inverse, people think in multiples.
const MULTIPLE: f64 = 2.0;

/// Below this ratio they think in shares: "0.0015 times" says little.
const FRACTION: f64 = 0.1;

/// A figure for people: "IOPS", "p99", "CPU per I/O".
pub fn figure_in_words(name: &str) -> &str {
    match name {
        "iops" => "IOPS",
        "cpu" => "CPU per I/O",
        other => other,
    }
}

/// A value of a figure, with its unit: IOPS, bytes per second, or nanoseconds.
pub fn figure_text(name: &str, value: f64) -> String {
    match name {
        "iops" => significant(value),
        "bandwidth" => format!("{} MB/s", significant(value / 1e6)),
        _ => time(value),
    }
}

/// Of figures with the same answer, those that a sentence tells with their sizes: throughput, p99 and
/// CPU, or the first one; and the names of the others: "mean, p50 and p99.9".
pub fn told<'f, F>(figures: &[&'f F], name: impl Fn(&F) -> &str) -> (Vec<&'f F>, Option<String>) {
    const TOLD: [&str; 4] = ["iops", "bandwidth", "p99", "cpu"];
    let (mut told, mut others): (Vec<&F>, Vec<&F>) =
        figures.iter().partition(|one| TOLD.contains(&name(one)));
    if told.is_empty() && !others.is_empty() {
        told.push(others.remove(0));
    }
    let names: Vec<&str> = others.iter().map(|one| figure_in_words(name(one))).collect();
    let names = match names.as_slice() {
        [] => None,
        [only] => Some((*only).to_owned()),
        [rest @ .., last] => Some(format!("{} and {last}", rest.join(", "))),
    };
    (told, names)
}

/// A ratio whose interval may be unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInWords {
    /// The second side divided by the first.
    pub value: f64,
    /// The ratio with the ends of its interval.
    pub interval: Option<Ratio>,
}

impl From<Ratio> for RatioInWords {
    fn from(ratio: Ratio) -> Self {
        Self { value: ratio.value, interval: Some(ratio) }
    }
}

impl RatioInWords {
    /// As a change of this figure: "9 % lower (7 to 11 %)", "2.3 times as long (2.1 to 2.5)", "2 %
    /// shorter (5 % shorter to 1 % longer)", "1 % higher".
    pub fn of(self, figure: &str) -> String {
        let [less, more, multiple] = directions(figure);
        let side = |ratio: f64| if ratio < 1.0 { less } else { more };
        let share = |ratio: f64| percent((ratio - 1.0).abs());
        if self.value < FRACTION {
            return format!("{} of the other's{}", fraction(self.value), self.ends_of_fraction());
        }
        if self.is_multiple() {
            return format!("{} times as {multiple}{}", ratio(self.value), self.ends_of_times());
        }
        let interval = self.interval.map_or(String::new(), |it| {
            if (it.low < 1.0) == (it.high < 1.0) {
                let mut ends = [share(it.low), share(it.high)];
                if it.high < 1.0 {
                    ends.reverse();
                }
                if ends.iter().all(|end| *end == share(self.value)) {
                    return String::new();
                }
                let [from, to] = ends;
                return format!(" ({} to {to})", from.trim_end_matches(" %"));
            }
            format!(" ({} {less} to {} {more})", share(it.low), share(it.high))
        });
        // Without an interval nothing shows that it is unchanged.
        let is_exact = self.interval.is_none_or(|it| it.low == 1.0 && it.high == 1.0);
        match share(self.value).as_str() {
            "0 %" if is_exact => "the same".to_owned(),
            "0 %" => format!("unchanged{interval}"),
            share => format!("{share} {}{interval}", side(self.value)),
        }
    }

    /// For a narrow column: "-9 % (-11 to -7 %)", "2.3 times (2.1 to 2.5)".
    pub fn signed(self) -> String {
        if self.value < FRACTION {
            return format!("to {}{}", fraction(self.value), self.ends_of_fraction());
        }
        if self.is_multiple() {
            return format!("{} times{}", ratio(self.value), self.ends_of_times());
        }
        let interval = self.interval.map_or(String::new(), |it| {
            format!(" ({} to {})", signed(it.low).trim_end_matches(" %"), signed(it.high))
        });
        format!("{}{interval}", signed(self.value))
    }

    fn is_multiple(self) -> bool {
        !(1.0 / MULTIPLE..MULTIPLE).contains(&self.value)
    }

    fn ends_of_fraction(self) -> String {
        self.interval.map_or(String::new(), |it| ends([it.value, it.low, it.high].map(fraction)))
    }

    fn ends_of_times(self) -> String {
        self.interval.map_or(String::new(), ends_of_times)
    }
}

/// " (2.1 to 2.5)": the ends of a multiple, to stand behind the words for its value. Empty if all three
/// look alike.
pub fn ends_of_times(of: Ratio) -> String {
    ends([of.value, of.low, of.high].map(ratio))
}

/// " (15 to 28 %)": the ends of a share from 0 to 1, to stand behind the words for its value. Empty if
/// all three look alike.
pub fn ends_of_share(value: f64, [low, high]: [f64; 2]) -> String {
    ends([value, low, high].map(percent))
}

/// A value and the ends of its interval; a unit stands behind the last one alone.
fn ends([value, low, high]: [String; 3]) -> String {
    match low == value && high == value {
        true => String::new(),
        false => format!(" ({} to {high})", low.trim_end_matches(" %")),
    }
}

/// A small share, with two digits: "0.067 %".
fn fraction(share: f64) -> String {
    match share < 0.01 {
        true => format!("{} %", ratio(100.0 * share)),
        false => percent(share),
    }
}

/// How far the second side may be from the first: "-0.4 to +0.7 %".
pub fn range(interval: Ratio) -> String {
    let [low, high] = [interval.low, interval.high].map(signed);
    format!("{} to {high}", low.trim_end_matches(" %"))
}

/// A difference without a direction, as a share: "8 %", "a factor of 3.2".
pub fn distance(share: f64) -> String {
    match 1.0 + share {
        times if times < MULTIPLE => percent(share),
        times => format!("a factor of {}", ratio(times)),
    }
}

/// The directions of a difference: the words for less and for more, and what a multiple is of.
fn directions(figure: &str) -> [&'static str; 3] {
    match figure {
        "iops" | "bandwidth" => ["lower", "higher", "high"],
        "cpu" => ["less", "more", "much"],
        _ => ["shorter", "longer", "long"],
    }
}

/// The distance of a ratio from 1: "-9 %".
fn signed(ratio: f64) -> String {
    let text = percent((ratio - 1.0).abs());
    let sign = match text.as_str() {
        text if text == "0 %" || text.starts_with("under") => "",
        _ if ratio < 1.0 => "-",
        _ => "+",
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_look_like_the_value_are_left_out() {
        assert_eq!(ends_of_share(0.21, [0.15, 0.28]), " (15 to 28 %)");
        assert_eq!(ends_of_share(0.024, [0.019, 0.03]), " (1.9 to 3 %)");
        assert_eq!(ends_of_share(0.21, [0.209, 0.211]), "");
        assert_eq!(ends_of_times(Ratio { value: 2.3, low: 2.1, high: 12.34 }), " (2.10 to 12.3)");
        assert_eq!(ends_of_times(Ratio { value: 2.3, low: 2.299, high: 2.301 }), "");
    }

    fn change(value: f64, low: f64, high: f64) -> RatioInWords {
        Ratio { value, low, high }.into()
    }

    #[test]
    fn a_difference_has_its_direction_its_size_and_its_interval() {
        for (figure, change, words, signed) in [
            ("iops", change(0.91, 0.89, 0.93), "9 % lower (7 to 11 %)", "-9 % (-11 to -7 %)"),
            ("p99", change(1.12, 1.09, 1.15), "12 % longer (9 to 15 %)", "+12 % (+9 to +15 %)"),
            (
                "mean",
                change(0.98, 0.95, 1.01),
                "2 % shorter (5 % shorter to 1 % longer)",
                "-2 % (-5 to +1 %)",
            ),
            (
                "cpu",
                change(1.0, 0.9, 1.1),
                "unchanged (10 % less to 10 % more)",
                "0 % (-10 to +10 %)",
            ),
            (
                "p99.9",
                change(2.3, 2.1, 2.5),
                "2.30 times as long (2.10 to 2.50)",
                "2.30 times (2.10 to 2.50)",
            ),
            (
                "iops",
                change(0.25, 0.2, 0.3),
                "0.25 times as high (0.20 to 0.30)",
                "0.25 times (0.20 to 0.30)",
            ),
            (
                "iops",
                change(0.000_668, 0.000_61, 0.000_731),
                "0.067 % of the other's (0.061 to 0.073 %)",
                "to 0.067 % (0.061 to 0.073 %)",
            ),
            ("mean", change(1.0, 1.0, 1.0), "the same", "0 % (0 to 0 %)"),
            ("p99", change(0.7, 0.7, 0.7), "30 % shorter", "-30 % (-30 to -30 %)"),
        ] {
            assert_eq!((change.of(figure).as_str(), change.signed().as_str()), (words, signed));
        }
        let alone = |value| RatioInWords { value, interval: None };
        assert_eq!(alone(1.0).of("iops"), "the same");
        assert_eq!(
            (alone(0.5).of("iops"), alone(0.5).signed()),
            ("50 % lower".to_owned(), "-50 %".to_owned())
        );
        let [near, far] = [0.08, 4.6].map(distance);
        assert_eq!((near.as_str(), far.as_str()), ("8 %", "a factor of 5.60"));
        assert_eq!(range(Ratio { value: 1.0, low: 0.996, high: 1.012 }), "-0.4 to +1.2 %");
    }

    #[test]
    fn a_sentence_tells_the_size_of_the_figures_that_matter_most() {
        let of = |names: &[&'static str]| {
            let figures: Vec<&&str> = names.iter().collect();
            let (told, others) = told(&figures, |one| one);
            (told.into_iter().copied().collect::<Vec<_>>().join(" "), others)
        };
        let all = ["iops", "mean", "p50", "p99", "p99.9"];
        assert_eq!(of(&all), ("iops p99".to_owned(), Some("mean, p50 and p99.9".to_owned())));
        assert_eq!(of(&["mean", "p50"]), ("mean".to_owned(), Some("p50".to_owned())));
        assert_eq!(of(&["iops"]), ("iops".to_owned(), None));
        assert_eq!(of(&[]), (String::new(), None));
    }
}
