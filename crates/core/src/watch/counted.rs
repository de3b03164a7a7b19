//! The kernel's counters of a disk: `/sys/block/DISK/stat`, and what they come to between two
//! readings (Documentation/block/stat.rst).

use super::observed::Observed;
use crate::units::{Bytes, Span};

/// Counters of one direction since the disk appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStat {
    /// Requests that are complete.
    pub ios: u64,
    /// I/Os that became a part of another request before it was issued.
    pub merged: u64,
    /// The bytes of the requests that are complete.
    pub bytes: u64,
    /// The sum of their times, from the making of the request to its completion. The kernel counts
    /// whole milliseconds of the sum.
    pub time: Span,
}

/// All counters of a disk at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStat {
    /// Reads.
    pub reads: FlowStat,
    /// Writes.
    pub writes: FlowStat,
    /// Discards; zero before Linux 4.18.
    pub discards: FlowStat,
    /// Flushes; zero before Linux 5.5.
    pub flushes: FlowStat,
    /// Requests in flight now.
    pub in_flight: u64,
    /// The time during which at least one request was in flight, as the kernel estimates it: it looks
    /// once in a tick of its timer.
    pub busy: Span,
    /// The sum of the times of all requests so far, those in flight included.
    pub weighted: Span,
}

impl DiskStat {
    /// Reads the line of the `stat` file; none if it has too few fields.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> =
            text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        if fields.len() < 11 {
            return None;
        }
        let flow = |first: usize| {
            let at = |place: usize| fields.get(first + place).copied().unwrap_or(0);
            FlowStat {
                ios: at(0),
                merged: at(1),
                bytes: at(2).wrapping_mul(512),
                time: Span(at(3).wrapping_mul(1_000_000)),
            }
        };
        let at = |place: usize| fields.get(place).copied().unwrap_or(0);
        Some(Self {
            reads: flow(0),
            writes: flow(4),
            discards: flow(11),
            flushes: FlowStat {
                ios: at(15),
                time: Span(at(16).wrapping_mul(1_000_000)),
                ..FlowStat::default()
            },
            in_flight: fields[8],
            busy: Span(at(9).wrapping_mul(1_000_000)),
            weighted: Span(at(10).wrapping_mul(1_000_000)),
        })
    }
}

/// What the counters of one direction say about a time between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedFlow {
    /// Requests that became complete.
    pub ios: u64,
    /// I/Os that were merged into others.
    pub merged: u64,
    /// Bytes.
    pub bytes: Bytes,
    /// The sum of the times of those requests.
    pub time: Span,
}

impl CountedFlow {
    fn between(before: &FlowStat, after: &FlowStat) -> Self {
        Self {
            ios: after.ios.wrapping_sub(before.ios),
            merged: after.merged.wrapping_sub(before.merged),
            bytes: Bytes(after.bytes.wrapping_sub(before.bytes)),
            time: Span(after.time.0.wrapping_sub(before.time.0)),
        }
    }

    /// The mean size of a request in bytes.
    pub fn mean_size(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.bytes.0 as f64 / self.ios as f64)
    }

    /// The mean time of a request in nanoseconds, from the making of the request to its completion.
    pub fn mean_time(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.time.0 as f64 / self.ios as f64)
    }

    /// The share of the I/Os that were merged into others.
    pub fn merged_share(&self) -> Option<f64> {
        let all = self.ios.saturating_add(self.merged);
        (all > 0).then(|| self.merged as f64 / all as f64)
    }

    /// Adds what another time has.
    pub fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.merged += other.merged;
        self.bytes.0 += other.bytes.0;
        self.time += other.time;
    }
}

/// What the counters of a disk say about a time between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The time between the readings.
    pub length: Span,
    /// Reads.
    pub reads: CountedFlow,
    /// Writes.
    pub writes: CountedFlow,
    /// Discards.
    pub discards: CountedFlow,
    /// Flushes.
    pub flushes: CountedFlow,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// The time during which at least one request was in flight: from the events where they are
    /// watched, because the counter is an estimate.
    pub busy: Span,
    /// The sum of the times that requests were in flight within it.
    pub weighted: Span,
}

impl Counted {
    /// What happened between two readings that are this far apart. None if a counter went back: the
    /// disk is another one.
    pub fn between(before: &DiskStat, after: &DiskStat, length: Span) -> Option<Self> {
        let flows = |stat: &DiskStat| [stat.reads, stat.writes, stat.discards, stat.flushes];
        let went_back = flows(before)
            .iter()
            .zip(flows(after))
            .any(|(before, after)| after.ios < before.ios || after.bytes < before.bytes);
        let span = |before: Span, after: Span| Span(after.0.wrapping_sub(before.0));
        (!went_back).then(|| Self {
            length,
            reads: CountedFlow::between(&before.reads, &after.reads),
            writes: CountedFlow::between(&before.writes, &after.writes),
            discards: CountedFlow::between(&before.discards, &after.discards),
            flushes: CountedFlow::between(&before.flushes, &after.flushes),
            in_flight: after.in_flight,
            busy: span(before.busy, after.busy),
            weighted: span(before.weighted, after.weighted),
        })
    }

    /// A number of something per second.
    pub fn per_second(&self, number: u64) -> f64 {
        match self.length.0 {
            0 => 0.0,
            length => number as f64 * 1e9 / length as f64,
        }
    }

    /// The mean number of requests in flight.
    pub fn mean_queue(&self) -> f64 {
        match self.length.0 {
            0 => 0.0,
            length => self.weighted.0 as f64 / length as f64,
        }
    }

    /// The share of the time during which at least one request was in flight: 1 at most. A disk
    /// that works on several requests at once is not full at 1.
    pub fn utilization(&self) -> f64 {
        match self.length.0 {
            0 => 0.0,
            length => (self.busy.0 as f64 / length as f64).min(1.0),
        }
    }

    /// Reads and writes that are complete.
    pub fn ios(&self) -> u64 {
        self.reads.ios + self.writes.ios
    }

    /// The share of its reads, writes and discards that events have seen; none without any. At the
    /// ends of a time the two sources differ by the requests of some microseconds.
    pub fn seen_by(&self, observed: &Observed) -> Option<f64> {
        let all = self.ios() + self.discards.ios;
        let seen = observed.ios() + observed.without_data;
        (all > 0).then(|| (seen as f64 / all as f64).min(1.0))
    }

    /// Adds a time that follows this one.
    pub fn add(&mut self, next: &Self) {
        self.length += next.length;
        self.reads.add(&next.reads);
        self.writes.add(&next.writes);
        self.discards.add(&next.discards);
        self.flushes.add(&next.flushes);
        self.in_flight = next.in_flight;
        self.busy += next.busy;
        self.weighted += next.weighted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Of Linux 6.18, of 4.4 and of 5.4.
    const NEW: &str = "  100 5 8000 250  40 60 3200 80  3 200 330  7 1 700 9  11 22";
    const OLD: &str = "100 5 8000 250 40 60 3200 80 3 200 330";

    #[test]
    fn the_kernels_line_is_read_as_its_manual_says() {
        let stat = DiskStat::parse(NEW).unwrap();
        assert_eq!(
            stat.reads,
            FlowStat { ios: 100, merged: 5, bytes: 4_096_000, time: Span::from_ms(250) }
        );
        assert_eq!((stat.writes.ios, stat.writes.merged), (40, 60));
        assert_eq!((stat.in_flight, stat.busy), (3, Span::from_ms(200)));
        assert_eq!(stat.weighted, Span::from_ms(330));
        assert_eq!((stat.discards.ios, stat.discards.bytes), (7, 358_400));
        assert_eq!((stat.flushes.ios, stat.flushes.time), (11, Span::from_ms(22)));
        let old = DiskStat::parse(OLD).unwrap();
        assert_eq!((old.reads, old.discards), (stat.reads, FlowStat::default()));
        assert_eq!(DiskStat::parse("1 2 3"), None);
        assert_eq!(DiskStat::parse("-1 x"), None);
    }

    #[test]
    fn two_readings_give_the_figures_of_the_time_between_them() {
        let before = DiskStat::parse(NEW).unwrap();
        let mut after = before;
        after.reads.ios += 500;
        after.reads.bytes += 500 * 8192;
        after.reads.time += Span::from_ms(2000);
        after.writes.merged += 30;
        after.writes.ios += 10;
        after.busy += Span::from_ms(600);
        after.weighted += Span::from_ms(3000);
        after.in_flight = 9;
        let counted = Counted::between(&before, &after, Span::from_secs(2)).unwrap();
        assert_eq!(counted.per_second(counted.reads.ios), 250.0);
        assert_eq!(counted.reads.mean_size(), Some(8192.0));
        assert_eq!(counted.reads.mean_time(), Some(4e6));
        assert_eq!(counted.writes.merged_share(), Some(0.75));
        assert_eq!(counted.discards.mean_time(), None);
        assert_eq!((counted.mean_queue(), counted.utilization()), (1.5, 0.3));
        assert_eq!(counted.in_flight, 9);
        assert_eq!(Counted::between(&after, &before, Span::from_secs(2)), None);
    }

    #[test]
    fn what_events_have_not_seen_is_known() {
        let stat = DiskStat::parse(NEW).unwrap();
        let counted = Counted::between(&DiskStat::default(), &stat, Span::from_secs(1)).unwrap();
        let mut observed = Observed::default();
        assert_eq!(counted.seen_by(&observed), Some(0.0));
        (observed.reads.ios, observed.writes.ios, observed.discards.ios) = (100, 40, 6);
        assert_eq!(counted.seen_by(&observed), Some(146.0 / 147.0));
        observed.without_data = 1;
        assert_eq!(counted.seen_by(&observed), Some(1.0));
        observed.reads.ios = 200;
        assert_eq!(counted.seen_by(&observed), Some(1.0));
        assert_eq!(Counted::default().seen_by(&observed), None);
    }

    #[test]
    fn times_that_follow_each_other_add_up() {
        let before = DiskStat::default();
        let middle = DiskStat::parse(OLD).unwrap();
        let after = DiskStat::parse("300 5 16000 900 41 60 3210 81 0 900 1200").unwrap();
        let second = Span::from_secs(1);
        let mut sum = Counted::between(&before, &middle, second).unwrap();
        sum.add(&Counted::between(&middle, &after, second).unwrap());
        assert_eq!(sum, Counted::between(&before, &after, Span::from_secs(2)).unwrap());
    }
}
