//! The sum of records of one load that several hosts applied at the same time.

use super::{Buckets, Interval, Record, Stretch, Times};
use crate::units::Span;

impl Record {
    /// One record of loads that began together on several hosts. Its workers are those of all hosts,
    /// in the order of `parts`, so that every distribution is the sum of theirs to the last bit, as if
    /// one machine had had all workers. The series are added up interval by interval, where a host that
    /// could not tell several intervals apart has one long one for all hosts; the window is the longest
    /// one.
    pub fn together(parts: Vec<Self>) -> Self {
        let longest = parts.iter().map(|part| part.window).max().unwrap_or_default();
        let buckets = parts.iter().map(|part| part.buckets.clone()).reduce(|sum, one| {
            let (sum, one) = (sum?, one?);
            sum.plus(&one)
        });
        let mut sum = Self {
            window: longest,
            interrupted: parts.iter().any(|part| part.interrupted),
            ended_early: parts.iter().any(|part| part.ended_early),
            workers: Vec::new(),
            series: Vec::new(),
            stretches: Vec::new(),
            buckets: buckets.flatten(),
        };
        for part in parts {
            sum.workers.extend(part.workers);
            sum.series.extend(part.series);
            sum.stretches.extend(part.stretches);
        }
        sum.series = joined(sum.series);
        sum.stretches = joined(sum.stretches);
        sum
    }
}

/// A part of a stream's series that can be added to another one at the same time.
trait SeriesPart: Sized {
    fn place(&self) -> (u32, Span, Span);
    /// Adds another one, and then has the time of both.
    fn add(&mut self, other: &Self, start: Span, length: Span);
}

/// Adds up what is at the same time, by start and stream.
fn joined<T: SeriesPart>(mut slices: Vec<T>) -> Vec<T> {
    slices.sort_by_key(|one| {
        let (stream, start, length) = one.place();
        (stream, start, std::cmp::Reverse(length))
    });
    let mut sums: Vec<T> = Vec::new();
    for slice in slices {
        let (stream, start, length) = slice.place();
        let Some(last) = sums.last_mut() else {
            sums.push(slice);
            continue;
        };
        let (known, begin, long) = last.place();
        let end = begin + long;
        // Hosts begin some microseconds apart: less than half in common is another time.
        let shared = end.min(start + length) - start;
        if known == stream && (start == begin || length.min(long).0 < 2 * shared.0) {
            let length = end.max(start + length) - begin;
            last.add(&slice, begin, length);
        } else {
            sums.push(slice);
        }
    }
    sums.sort_by_key(|one| {
        let (stream, start, _) = one.place();
        (start, stream)
    });
    sums
}

impl SeriesPart for Interval {
    fn place(&self) -> (u32, Span, Span) {
        (self.stream, self.start, self.length)
    }

    fn add(&mut self, other: &Self, start: Span, length: Span) {
        (self.start, self.length) = (start, length);
        self.failed += other.failed;
        self.lag = self.lag.max(other.lag);
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

impl SeriesPart for Stretch {
    fn place(&self) -> (u32, Span, Span) {
        (self.stream, self.start, self.length)
    }

    fn add(&mut self, other: &Self, start: Span, length: Span) {
        (self.start, self.length) = (start, length);
        self.failed += other.failed;
        self.lag = self.lag.max(other.lag);
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
    fn an_interval_of_a_host_that_covers_several_of_another_takes_them_all() {
        let interval = |start: u64, length: u64, ios: u64| Interval {
            start: Span(start),
            length: Span(length),
            ios: [ios, 0],
            ..Interval::default()
        };
        let fine = [
            interval(0, 100, 1),
            interval(100, 100, 2),
            interval(200, 100, 3),
            interval(300, 100, 4),
        ];
        let coarse = [interval(2, 300, 60), interval(302, 100, 40)];
        for order in [[&fine[..], &coarse[..]], [&coarse[..], &fine[..]]] {
            let all = joined(order.concat());
            let seen: Vec<(u64, u64, u64)> =
                all.iter().map(|one| (one.start.0, one.length.0, one.ios[0])).collect();
            assert_eq!(seen, [(0, 302, 66), (300, 102, 44)]);
        }
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
