//! The sum of records of one load that several hosts applied at the same time.

use std::collections::BTreeMap;

use super::{Buckets, Interval, Record, Stretch, Times};
use crate::units::Span;

impl Record {
    /// One record of loads that began together on several hosts. Its workers are those of all hosts,
    /// in the order of `parts`, so that every distribution is the sum of theirs to the last bit, as if
    /// one machine had had all workers. The series are added up interval by interval; the window is
    /// the longest one.
    pub fn together(parts: Vec<Self>) -> Self {
        let mut series: BTreeMap<(Span, u32), Interval> = BTreeMap::new();
        let mut stretches: BTreeMap<(Span, u32), Stretch> = BTreeMap::new();
        let mut sum = Self {
            window: parts.iter().map(|part| part.window).max().unwrap_or_default(),
            interrupted: parts.iter().any(|part| part.interrupted),
            ended_early: parts.iter().any(|part| part.ended_early),
            workers: Vec::new(),
            series: Vec::new(),
            stretches: Vec::new(),
            buckets: None,
        };
        for part in parts {
            for interval in part.series {
                let (stream, start) = (interval.stream, interval.start);
                let before = series.range_mut(..=(start, stream)).rev();
                let mut own = before.map(|(_, one)| one).filter(|one| one.stream == stream).take(1);
                match own.next().filter(|one| holds((one.start, one.length), start)) {
                    Some(one) => one.add_beside(&interval),
                    None => drop(series.insert((start, stream), interval)),
                }
            }
            for stretch in part.stretches {
                let (stream, start) = (stretch.stream, stretch.start);
                let before = stretches.range_mut(..=(start, stream)).rev();
                let mut own = before.map(|(_, one)| one).filter(|one| one.stream == stream).take(1);
                match own.next().filter(|one| holds((one.start, one.length), start)) {
                    Some(one) => one.add_beside(&stretch),
                    None => drop(stretches.insert((start, stream), stretch)),
                }
            }
            sum.workers.extend(part.workers);
            sum.buckets = match (sum.buckets.take(), part.buckets) {
                (Some(one), Some(other)) => one.plus(&other),
                (one, other) => one.or(other),
            };
        }
        sum.series = series.into_values().collect();
        sum.stretches = stretches.into_values().collect();
        sum
    }
}

/// Whether a time lies in an interval.
fn holds((start, length): (Span, Span), time: Span) -> bool {
    start == time || (start < time && time < start + length)
}

/// The larger of two lags.
fn later(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    one.max(other)
}

impl Interval {
    /// Adds an interval of another host at the same time.
    fn add_beside(&mut self, other: &Self) {
        self.failed += other.failed;
        self.lag = later(self.lag, other.lag);
        for index in 0..2 {
            self.times[index] = match (self.ios[index], other.ios[index]) {
                (_, 0) => self.times[index],
                (0, _) => other.times[index],
                _ => self.times[index].and(other.times[index]),
            };
            self.ios[index] += other.ios[index];
            self.bytes[index].0 += other.bytes[index].0;
        }
    }
}

impl Times {
    fn and(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            sum: self.sum + other.sum,
        }
    }
}

impl Stretch {
    /// Adds a stretch of another host at the same time.
    fn add_beside(&mut self, other: &Self) {
        self.failed += other.failed;
        self.lag = later(self.lag, other.lag);
        for index in 0..2 {
            self.bytes[index].0 += other.bytes[index].0;
            self.response_time[index].merge(&other.response_time[index]);
        }
    }
}

impl Buckets {
    /// The sum, if their buckets are equally long.
    fn plus(self, other: &Self) -> Option<Self> {
        if self.length != other.length {
            return None;
        }
        let buckets = self.ios.len().max(other.ios.len());
        let at = |ios: &[[u64; 2]], place: usize| ios.get(place).copied().unwrap_or_default();
        let both = |place: usize| {
            let (one, other) = (at(&self.ios, place), at(&other.ios, place));
            [0, 1].map(|index| one[index] + other[index])
        };
        Some(Self { length: self.length, ios: (0..buckets).map(both).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::Invented;

    #[test]
    fn a_record_of_several_hosts_holds_what_each_of_them_has() {
        let one = Invented::reads().trial.record;
        let mut other = one.clone();
        other.window = Span(one.window.0 + 5);
        for interval in &mut other.series {
            interval.start.0 += 3;
        }
        let all = Record::together(vec![one.clone(), other.clone(), one.clone()]);
        assert_eq!(all.window, other.window);
        assert_eq!(all.workers.len(), 3 * one.workers.len());
        let mut times = one.total(None).service_time;
        times.merge(&other.total(None).service_time);
        times.merge(&one.total(None).service_time);
        assert_eq!(all.total(None).service_time, times);
        // An interval that begins a little later is still the same one.
        assert_eq!(all.series.len(), one.series.len());
        let ios = |record: &Record| record.series.iter().map(|one| one.ios[0]).sum::<u64>();
        assert_eq!(ios(&all), 3 * ios(&one));
        let sparse = |record: &Record| {
            record.stretches.iter().map(|one| one.response_time[0].count()).sum::<u64>()
        };
        assert_eq!(sparse(&all), 3 * sparse(&one));
        let longest = |record: &Record| record.series.iter().map(|one| one.times[0].max).max();
        assert_eq!(longest(&all), longest(&one));
    }

    #[test]
    fn buckets_are_added_up_if_they_are_equally_long() {
        let buckets =
            |length: u64, ios: &[[u64; 2]]| Buckets { length: Span(length), ios: ios.to_vec() };
        let sum = buckets(5, &[[1, 2], [3, 4]]).plus(&buckets(5, &[[10, 20], [30, 40], [5, 6]]));
        assert_eq!(sum, Some(buckets(5, &[[11, 22], [33, 44], [5, 6]])));
        assert_eq!(buckets(5, &[[1, 1]]).plus(&buckets(6, &[[1, 1]])), None);
    }
}
