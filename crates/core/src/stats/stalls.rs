//! Times in which no I/O completed, from the plain numbers of the intervals.
//!
//! A stall delays all I/Os in flight. When it is over, I/Os complete with a longest response time
//! as long as the stall. The total wait of all of them distinguishes a stall from a single slow
//! I/O, and even a stall that is much shorter than the interval shows.

use std::ops::Range;

use crate::measure::{Histogram, Interval};
use crate::units::{Quantile, Span};

/// A time without completions is not a stall if it is shorter than this.
pub const STALL_MIN: Span = Span::from_ms(50);
/// A time without completions is not a stall if it is shorter than this many medians of the
/// response time.
const MEDIANS: u64 = 10;
/// A time without completions is not a stall if it is shorter than this many times the usual
/// longest response time of an interval.
const USUAL_LONGEST: u64 = 5;

/// Within a time in which the device is slow, this many times its usual longest one.
const SLOW_LONGEST: u64 = 3;

/// Intervals with fewer I/Os than this on average may be empty by chance.
const IOS_MIN: f64 = 5.0;

/// With fewer stalls than this there is no period.
const PERIODIC_MIN: usize = 4;
/// How far a distance may be from the period, as a share of it; or one interval, if that is more.
const PERIOD_TOLERANCE: f64 = 0.1;
/// If no I/O completes for more than this share of the time, the device is slow: it does not stall.
const STALLED_MAX: f64 = 0.75;
/// Stalls at random times look periodic in at most this share of cases.
const CHANCE_MAX: f64 = 0.05;

/// A time in which no I/O completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From the start of the window to its beginning, to half an interval.
    pub start: Span,
    /// Its length: the longest response time of the I/Os that it delayed, or the time until the
    /// window ended.
    pub length: Span,
}

/// The stalls of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stalls {
    /// The stalls that can be told apart, in order of time.
    pub each: Vec<Stall>,
    /// The number of all stalls, including those that are too close to each other to be told apart.
    pub count: u64,
    /// The length of one stall: the median.
    pub length: Span,
    /// From the beginning of one to the beginning of the next, if the distances are even.
    pub period: Option<Span>,
    /// Whether the last one lasted until the window ended.
    pub to_the_end: bool,
    /// For each interval of the series, whether its counts are those of a stall or of the catch-up
    /// after it.
    pub touched: Vec<bool>,
}

impl Stalls {
    /// The share of the time that they took.
    pub fn total(&self) -> Span {
        Span(self.length.0.saturating_mul(self.count))
    }
}

/// The usual figures of a stream.
struct Usual {
    open: bool,
    /// The median of the response times.
    median: u64,
    /// The same of the intervals' longest ones.
    longest: u64,
    /// I/Os per second.
    rate: f64,
    /// I/Os in flight.
    depth: f64,
    /// From this length on it is a stall, nanoseconds.
    least: u64,
}

/// The median of some values.
fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// An interval, both directions together.
#[derive(Clone, Copy)]
struct Piece {
    start: u64,
    length: u64,
    ios: u64,
    longest: u64,
    sum: f64,
}

impl Piece {
    fn of(interval: &Interval) -> Self {
        let times = interval.times;
        Self {
            start: interval.start.0,
            length: interval.length.0,
            ios: interval.ios[0] + interval.ios[1],
            longest: times[0].max.max(times[1].max),
            sum: (times[0].sum + times[1].sum) as f64,
        }
    }

    /// How much longer than usual its I/Os took, all together: nanoseconds.
    fn extra(&self, median: u64) -> f64 {
        self.sum - self.ios as f64 * median as f64
    }
}

/// The stalls of a stream, from its intervals in the order of time and the distribution of its
/// response times. `open` says whether its loop is open.
pub fn stalls(series: &[Interval], times: &Histogram, open: bool) -> Stalls {
    let pieces: Vec<Piece> = series.iter().map(Piece::of).collect();
    let none = Stalls { touched: vec![false; series.len()], ..Stalls::default() };
    let Some(usual) = Usual::of(&pieces, times, open) else { return none };
    let found = told_apart(&pieces, &usual, none.clone());
    match found.each.is_empty() {
        true => in_most(&pieces, times, &usual).unwrap_or(none),
        false => found,
    }
}

impl Usual {
    /// None if too few I/Os complete to tell.
    fn of(pieces: &[Piece], times: &Histogram, open: bool) -> Option<Self> {
        let median = times.quantile(Quantile(0.5))?;
        let middle =
            |of: &dyn Fn(&Piece) -> f64| middle(pieces.iter().filter(|one| one.length > 0).map(of));
        if middle(&|one| one.ios as f64)? < IOS_MIN {
            return None;
        }
        let longest = middle(&|one| one.longest as f64)? as u64;
        let least = STALL_MIN.0.max(MEDIANS.saturating_mul(median));
        Some(Self {
            open,
            median,
            longest,
            rate: middle(&|one| one.ios as f64 * 1e9 / one.length as f64)?,
            depth: middle(&|one| one.sum / one.length as f64)?.max(1.0),
            least,
        })
    }

    /// The same of a time in which the device is slow, from its intervals that are not empty.
    fn of_slow(&self, pieces: &[Piece]) -> Option<Self> {
        let middle =
            |of: &dyn Fn(&Piece) -> f64| middle(pieces.iter().filter(|one| one.ios > 0).map(of));
        if middle(&|one| one.ios as f64)? < IOS_MIN {
            return None;
        }
        Some(Self {
            longest: middle(&|one| one.longest as f64)? as u64,
            rate: middle(&|one| one.ios as f64 * 1e9 / one.length as f64)?,
            ..*self
        })
    }

    /// The least total wait of the I/Os for a stall of that length, nanoseconds: half of the
    /// computed one. In a closed loop a stall delays all I/Os in flight; in an open one, all that
    /// fall due meanwhile, for half of its length on average.
    fn waited(&self, length: u64) -> f64 {
        let length = length as f64;
        match self.open {
            true => 0.25 * self.rate * length * length / 1e9,
            false => 0.5 * self.depth * length,
        }
    }
}

/// The stalls that stand out from the intervals around them.
fn told_apart(pieces: &[Piece], usual: &Usual, mut found: Stalls) -> Stalls {
    let least = usual.least.max(USUAL_LONGEST.saturating_mul(usual.longest));
    let mut add = |stall: Stall, run: Range<usize>| {
        found.each.push(stall);
        // It may have begun in the interval before.
        found.touched[run.start.saturating_sub(1)..run.end].fill(true);
    };
    let mut to_the_end = false;
    for run in runs(pieces, least) {
        let at_the_end = run.end == pieces.len();
        match one_of(&pieces[run.clone()], at_the_end, least, usual) {
            Some(stall) => {
                to_the_end = pieces[run.clone()].iter().all(|one| one.ios == 0);
                add(stall, run);
            }
            None => {
                for (stall, inner) in in_slow(&pieces[run.clone()], usual) {
                    to_the_end = false;
                    add(stall, run.start + inner.start..run.start + inner.end);
                }
            }
        }
    }
    found.to_the_end = to_the_end;
    let mut lengths: Vec<Span> = found.each.iter().map(|stall| stall.length).collect();
    lengths.sort_unstable();
    found.length = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    found.count = found.each.len() as u64;
    let interval = pieces.iter().map(|one| one.length).max().unwrap_or(0);
    found.period = period(&found.each, interval);
    found
}

/// The runs of intervals that stand out: no I/O completed in them, or one took this long.
fn runs(pieces: &[Piece], least: u64) -> Vec<Range<usize>> {
    let stands_out = |one: &Piece| one.longest >= least || one.ios == 0;
    let mut runs = Vec::new();
    let mut from = 0;
    while from < pieces.len() {
        let to = from + pieces[from..].iter().take_while(|one| stands_out(one)).count();
        runs.extend((from < to).then_some(from..to));
        from = to + 1;
    }
    runs
}

/// The stalls within a time in which the device is slow, with their places in it: they stand out from
/// the slow intervals. Slow I/Os that complete together leave intervals empty, too, so an empty one
/// alone is no stall.
fn in_slow(pieces: &[Piece], usual: &Usual) -> Vec<(Stall, Range<usize>)> {
    let Some(slow) = usual.of_slow(pieces) else { return Vec::new() };
    let least = usual.least.max(SLOW_LONGEST.saturating_mul(slow.longest));
    let is_empty = |run: &Range<usize>| pieces[run.clone()].iter().any(|one| one.ios == 0);
    let empty = runs(pieces, least).into_iter().filter(is_empty);
    empty
        .filter_map(|run| Some((one_of(&pieces[run.clone()], false, least, &slow)?, run)))
        .collect()
}

/// The stall that consecutive intervals form which stand out, if they form one.
fn one_of(pieces: &[Piece], at_the_end: bool, least: u64, usual: &Usual) -> Option<Stall> {
    let (first, last) = (pieces.first()?, pieces.last()?);
    let span = last.start + last.length - first.start;
    let longest = pieces.iter().map(|one| one.longest).max()?;
    if longest == 0 {
        let is_stall = at_the_end && span >= least;
        return is_stall.then_some(Stall { start: Span(first.start), length: Span(span) });
    }
    let back = pieces.iter().find(|one| one.longest == longest)?;
    let intervals = 2 * pieces.iter().map(|one| one.length).max()?;
    // The delayed I/Os complete at once; a device that stays slow does not stall.
    let is_abrupt = back.start - first.start <= longest + intervals;
    let is_short = usual.open || span <= longest + intervals;
    let waited: f64 = pieces.iter().map(|one| one.extra(usual.median)).sum();
    let enough = !usual.open || usual.rate * longest as f64 / 1e9 >= 4.0;
    if longest < least || !is_abrupt || !is_short || !enough || waited < usual.waited(longest) {
        return None;
    }
    let end = back.start + back.length / 2;
    Some(Stall { start: Span(end.saturating_sub(longest)), length: Span(longest) })
}

/// Stalls that most intervals have, so that none stands out. Then almost no I/O takes a time
/// between the usual one and that of a stall, while many do if times merely vary; and between two
/// stalls the device answers as usual. Slow I/Os of a closed loop can complete all at once, again
/// and again; they are still slow I/Os and not stalls.
fn in_most(pieces: &[Piece], times: &Histogram, usual: &Usual) -> Option<Stalls> {
    let length = usual.longest;
    let alike = |one: &Piece| one.longest >= length / 3 * 2 && one.longest / 3 * 2 <= length;
    let with: Vec<&Piece> = pieces.iter().filter(|one| alike(one)).collect();
    if length < usual.least || with.len() * 5 < pieces.len() * 3 {
        return None;
    }
    let between = |low: u64, high: u64| {
        let sparse = times.to_sparse();
        let inside = sparse.buckets().filter(|(value, _)| (low..high).contains(value));
        inside.map(|(_, count)| count).sum::<u64>()
    };
    let held = between(length / 2, u64::MAX) as f64;
    let waited: f64 = pieces.iter().map(|one| one.extra(usual.median)).sum();
    let each = match usual.open {
        true => usual.rate * length as f64 / 2e9,
        false => usual.depth.round(),
    };
    let count = (held / each).round();
    let is_apart = between(length / 8, length / 2) as f64 <= held;
    let time = with.iter().map(|one| one.length).sum::<u64>() as f64;
    let is_slow = count * length as f64 > STALLED_MAX * time;
    if !is_apart
        || is_slow
        || count < PERIODIC_MIN as f64
        || waited < count * usual.waited(length) / 2.0
    {
        return None;
    }
    let window: u64 = pieces.iter().map(|one| one.length).sum();
    Some(Stalls {
        count: count as u64,
        length: Span(length),
        period: Some(Span((window as f64 / count) as u64)),
        touched: vec![false; pieces.len()],
        ..Stalls::default()
    })
}

/// The distance between stalls, if it is even. A missed stall, or one extra in five, does not hide
/// it.
fn period(each: &[Stall], interval: u64) -> Option<Span> {
    if each.len() < PERIODIC_MIN {
        return None;
    }
    let gaps: Vec<f64> =
        each.windows(2).map(|pair| (pair[1].start.0 - pair[0].start.0) as f64).collect();
    let mut sorted = gaps.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let period = sorted[sorted.len() / 2];
    let tolerance = (PERIOD_TOLERANCE * period).max(interval as f64);
    let even: Vec<(f64, f64)> = gaps
        .iter()
        .map(|gap| (*gap, (gap / period).round().max(1.0)))
        .filter(|(gap, times)| (gap - times * period).abs() <= tolerance)
        .collect();
    // The gap that is the median agrees in any case.
    let chance = (2.0 * tolerance / period).min(1.0).powi(even.len() as i32 - 1);
    if even.len() * 5 < gaps.len() * 4 || chance > CHANCE_MAX {
        return None;
    }
    let (sum, times) =
        even.iter().fold((0.0, 0.0), |(sum, all), (gap, times)| (sum + gap, all + times));
    Some(Span((sum / times).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Times;
    use crate::units::Bytes;

    const TENTH: u64 = 100_000_000;
    const USUAL: u64 = 1_000_000;

    /// A device that serves each I/O in a millisecond, and holds all of them at some times: (from,
    /// for) in milliseconds. The load is a closed loop of depth `load`, or an open one of `load`
    /// I/Os per second.
    fn simulate(
        seconds: u64,
        interval: u64,
        load: u64,
        open: bool,
        held: &[(u64, u64)],
    ) -> (Vec<Interval>, Histogram) {
        let mut series: Vec<Interval> = (0..seconds * 1_000_000_000 / interval)
            .map(|k| Interval {
                start: Span(k * interval),
                length: Span(interval),
                ..Interval::default()
            })
            .collect();
        let mut times = Histogram::default();
        let mut record = |end: u64, took: u64| {
            let Some(one) = series.get_mut((end / interval) as usize) else { return };
            one.ios[0] += 1;
            one.bytes[0] = Bytes(one.bytes[0].0 + 4096);
            one.times[0] = Times {
                min: if one.ios[0] == 1 { took } else { one.times[0].min.min(took) },
                max: one.times[0].max.max(took),
                sum: one.times[0].sum + u128::from(took),
            };
            times.record(took);
        };
        let ends = |start: u64| {
            let end = start + USUAL;
            let stall = held.iter().map(|(from, length)| (from * 1_000_000, length * 1_000_000));
            stall.fold(end, |end, (from, length)| {
                if start < from + length && from < end { from + length + USUAL } else { end }
            })
        };
        match open {
            true => (0..seconds * load).for_each(|k| {
                let start = k * 1_000_000_000 / load;
                record(ends(start), ends(start) - start);
            }),
            false => (0..load).for_each(|slot| {
                let mut at = slot * USUAL / load;
                while at < seconds * 1_000_000_000 {
                    record(ends(at), ends(at) - at);
                    at = ends(at);
                }
            }),
        }
        (series, times)
    }

    fn found(seconds: u64, interval: u64, load: u64, open: bool, held: &[(u64, u64)]) -> Stalls {
        let (series, times) = simulate(seconds, interval, load, open, held);
        stalls(&series, &times, open)
    }

    #[test]
    fn a_stall_is_found_where_and_as_long_as_it_was() {
        for (load, open) in [(1, false), (32, false), (1000, true)] {
            for length in [60, 250, 1300] {
                let stalls = found(10, TENTH, load, open, &[(3140, length)]);
                assert_eq!(stalls.each.len(), 1, "{load} {open} {length}");
                let stall = stalls.each[0];
                assert!(stall.start.0.abs_diff(3_140_000_000) <= TENTH, "{stall:?}");
                assert!(stall.length.0.abs_diff(length * 1_000_000) <= 3 * USUAL, "{stall:?}");
                assert_eq!((stalls.period, stalls.to_the_end), (None, false));
                // The intervals of the stall are marked, and few others.
                let touched = stalls.touched.iter().filter(|one| **one).count() as u64;
                assert!((1..=length / 100 + 4).contains(&touched), "{touched}");
            }
        }
    }

    #[test]
    fn no_stall_is_found_where_there_was_none() {
        for (load, open) in [(1, false), (32, false), (1000, true)] {
            for held in [&[][..], &[(3000, 20)]] {
                assert_eq!(found(10, TENTH, load, open, held).count, 0, "{load} {open}");
            }
        }
        // A single slow I/O of 32 holds no other I/O.
        let (mut series, mut times) = simulate(10, TENTH, 32, false, &[]);
        series[50].times[0].max = 400_000_000;
        series[50].times[0].sum += 400_000_000;
        times.record(400_000_000);
        assert_eq!(stalls(&series, &times, false).count, 0);
        // A device that becomes slow has no stall either.
        for one in &mut series[60..] {
            one.ios[0] = 32;
            one.times[0] = Times { min: 90_000_000, max: 110_000_000, sum: 32 * 100_000_000 };
        }
        assert_eq!(stalls(&series, &times, false).count, 0);
        assert_eq!(stalls(&[], &Histogram::default(), false), Stalls::default());
    }

    /// After two of five seconds, each I/O takes the given milliseconds and all I/Os in flight
    /// complete at once. The test simulates this by holding the device again and again without a
    /// pause.
    #[test]
    fn slow_ios_that_complete_together_are_no_stalls() {
        for took in [55, 80, 104, 130] {
            let held: Vec<(u64, u64)> =
                (0..).map(|k| (2000 + k * took, took - 1)).take(60).collect();
            for load in [4, 16] {
                let stalls = found(5, TENTH, load, false, &held);
                assert_eq!((stalls.count, stalls.period), (0, None), "{took} {load}");
            }
        }
    }

    /// A device that was held for 68 ms, and later for 200 ms within a second in which its I/Os took 60
    /// ms. Only the shorter one was found: the slow I/Os around the longer one hid it.
    #[test]
    fn a_stall_within_a_slow_time_is_found_as_well() {
        for load in [8, 16, 32] {
            for (slow_before, slow_after) in [(0, 16), (16, 0), (8, 8)] {
                let begin = 3000 + slow_before * 60;
                let slow = |from: u64, count: u64| (0..count).map(move |k| (from + k * 60, 59));
                let mut held = Vec::from([(1040, 68)]);
                held.extend(slow(3000, slow_before));
                held.push((begin, 200));
                held.extend(slow(begin + 201, slow_after));
                let stalls = found(8, TENTH, load, false, &held);
                let lengths: Vec<u64> =
                    stalls.each.iter().map(|one| one.length.0 / 1_000_000).collect();
                assert!(
                    matches!(lengths[..], [68..72, 200..204]),
                    "{load} {slow_before} {slow_after}: {lengths:?}"
                );
                assert!(stalls.each[1].start.0.abs_diff(begin * 1_000_000) <= TENTH, "{stalls:?}");
            }
        }
    }

    #[test]
    fn a_stall_that_lasts_to_the_end_is_one() {
        let stalls = found(10, TENTH, 4, false, &[(8050, 5000)]);
        assert!(stalls.to_the_end);
        assert_eq!(stalls.each[0].length, Span::from_ms(1900));
    }

    #[test]
    fn stalls_at_even_distances_have_a_period() {
        for (load, open) in [(1, false), (16, false), (1000, true)] {
            let each: Vec<(u64, u64)> = (0..10).map(|k| (400 + k * 1000, 100)).collect();
            let stalls = found(10, TENTH, load, open, &each);
            assert_eq!(stalls.count, 10);
            assert!(stalls.period.unwrap().0.abs_diff(1_000_000_000) < TENTH / 2, "{stalls:?}");
            // One stall is missing, and there is an additional one.
            let mut odd = each.clone();
            odd.remove(4);
            assert!(found(10, TENTH, load, open, &odd).period.is_some());
            let by_chance = [(300, 100), (700, 100), (3800, 100), (4900, 100), (8600, 100)];
            let stalls = found(10, TENTH, load, open, &by_chance);
            assert_eq!((stalls.count, stalls.period), (5, None));
        }
    }

    #[test]
    fn stalls_in_each_interval_of_a_long_window_are_counted() {
        for (load, open) in [(1, false), (16, false), (1000, true)] {
            let each: Vec<(u64, u64)> = (0..60).map(|k| (400 + k * 1000, 100)).collect();
            let stalls = found(60, 1_000_000_000, load, open, &each);
            assert!(stalls.count.abs_diff(60) <= 6, "{load} {open}: {}", stalls.count);
            let period = stalls.period.unwrap();
            assert!(period.0.abs_diff(1_000_000_000) <= TENTH, "{period}");
            // Stalls 5 s apart stand out again.
            let each: Vec<(u64, u64)> = (0..12).map(|k| (2400 + k * 5000, 100)).collect();
            let stalls = found(60, 1_000_000_000, load, open, &each);
            assert_eq!(stalls.count, 12);
            let period = stalls.period.unwrap();
            assert!(period.0.abs_diff(5_000_000_000) <= TENTH, "{period}");
        }
    }
}
