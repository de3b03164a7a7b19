//! The last minute, drawn in the terminal while a load runs: throughput and response time, a bar for
//! each second.

use std::collections::VecDeque;

use fathom_core::Span;
use fathom_core::figures::{number, time};
use fathom_engine::LastSecond;

use super::curve::BARS;

/// How far back it reaches, in seconds.
const SECONDS: usize = 60;

/// The columns beside the bars: the name before them, and the scale behind.
const BESIDE: usize = 40;

/// The content of the picture.
#[derive(Debug, Default)]
pub struct Minute {
    /// What each second did, the latest last.
    seconds: VecDeque<LastSecond>,
    /// The second of the current step that was drawn last.
    drawn: u64,
}

impl Minute {
    /// Another step begins, whose time begins at zero.
    pub fn begin(&mut self) {
        self.drawn = 0;
    }

    /// Takes the figures after this time of the step. Returns whether they are those of another
    /// second.
    pub fn take(&mut self, elapsed: Span, figures: LastSecond) -> bool {
        let second = elapsed.0 / 1_000_000_000;
        if second <= self.drawn {
            return false;
        }
        self.drawn = second;
        self.seconds.push_back(figures);
        if SECONDS < self.seconds.len() {
            self.seconds.pop_front();
        }
        true
    }

    /// Two rows, each ending with a newline, in this many columns; empty before there are two
    /// seconds to compare, and for a load without reads and writes.
    pub fn draw(&self, width: usize) -> String {
        let room = width.saturating_sub(BESIDE).max(1);
        let hidden = self.seconds.len().saturating_sub(room);
        let shown: Vec<&LastSecond> = self.seconds.iter().skip(hidden).collect();
        let rates: Vec<f64> = shown.iter().map(|second| second.iops).collect();
        // Where a second is too short for a percentile, the longest time of each is comparable.
        let carried = shown.iter().all(|second| second.p99.is_some() || second.iops == 0.0);
        let tail = |second: &&LastSecond| if carried { second.p99 } else { second.longest };
        let times: Vec<f64> = shown.iter().map(|one| tail(one).unwrap_or(0) as f64).collect();
        if shown.len() < 2 || rates.iter().all(|rate| *rate <= 0.0) {
            return String::new();
        }
        let name = if carried { "p99" } else { "longest" };
        let rows = [("IOPS", rates, number as fn(f64) -> String), (name, times, time)];
        let rows = rows.map(|(name, values, words)| row(name, &values, words));
        rows.concat()
    }
}

/// "IOPS    ▇▇▆▇ 0 to 41,200, last 4 s".
fn row(name: &str, values: &[f64], words: fn(f64) -> String) -> String {
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: &f64| match *value {
        value if value <= 0.0 => BARS[0],
        value => BARS[((value / most * 8.0).round() as usize).clamp(1, 8)],
    };
    let bars: String = values.iter().map(bar).collect();
    format!("{name:<8}{bars} 0 to {}, last {} s\n", words(most), values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(iops: f64, p99: Option<u64>, longest: u64) -> LastSecond {
        LastSecond { iops, p99, longest: Some(longest), ..LastSecond::default() }
    }

    #[test]
    fn each_second_of_the_last_minute_is_a_bar() {
        let mut minute = Minute::default();
        assert_eq!(minute.draw(80), "");
        let tenth = |k: u64| Span::from_ms(100 * k);
        for k in 1..=30 {
            let figures = second(1000.0 * k as f64, Some(k * 100_000), 9_000_000);
            assert_eq!(minute.take(tenth(k), figures), k % 10 == 0, "{k}");
        }
        let expected = "\
IOPS    ▃▅█ 0 to 30,000, last 3 s
p99     ▃▅█ 0 to 3.00 ms, last 3 s
";
        assert_eq!(minute.draw(80), expected);
        // The next step goes on beside it, and a second that carries no percentile has a longest time.
        minute.begin();
        assert!(minute.take(tenth(10), second(20.0, None, 18_000_000)));
        let expected = "\
IOPS    ▃▅█▁ 0 to 30,000, last 4 s
longest ▄▄▄█ 0 to 18.0 ms, last 4 s
";
        assert_eq!(minute.draw(80), expected);
        for k in 2..200 {
            minute.take(Span::from_secs(k), second(5.0, None, 1));
        }
        assert_eq!(minute.draw(140).lines().next().unwrap().matches('█').count(), SECONDS);
        assert!(minute.draw(60).lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn a_load_without_reads_and_writes_has_no_bars() {
        let mut minute = Minute::default();
        for k in 1..5 {
            minute.take(Span::from_secs(k), LastSecond::default());
        }
        assert_eq!(minute.draw(80), "");
    }
}
