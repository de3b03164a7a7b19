//! Counts the I/Os of buckets of the window, which may be shorter than an interval of the series
//! and need not fit into one: for users who compare IOPS over times of any length.
//!
//! A bucket costs one number for each flow. So there may be a thousand in a second; as many slices
//! of the series, with their distributions, would cost more than the I/Os.

use fathom_core::Span;
use fathom_core::measure::Tally;

/// The buckets of one worker.
#[derive(Debug)]
pub(crate) struct Buckets {
    length: Span,
    /// I/Os of each flow, bucket after bucket.
    counts: Box<[u64]>,
    /// How many of the I/Os of each flow of the tally are counted already.
    seen: Box<[u64]>,
    /// The current bucket.
    current: usize,
}

impl Buckets {
    /// Empty ones for all of a window, whose last one may be shorter; for this many flows.
    pub(super) fn new(length: Span, window: Span, flows: usize) -> Self {
        let buckets = window.0.div_ceil(length.0) as usize;
        Self {
            length,
            counts: vec![0; buckets * flows].into(),
            seen: vec![0; flows].into(),
            current: 0,
        }
    }

    /// The end of the bucket that contains this time from the start of the window.
    pub(super) fn end_after(&self, at: Span) -> Span {
        Span((at.0 / self.length.0 + 1).saturating_mul(self.length.0))
    }

    /// Counts the tally's new I/Os since the last count, and goes on to the bucket of this time
    /// from the start of the window.
    pub(super) fn count(&mut self, tally: &Tally, at: Span) {
        let flows = self.seen.len();
        let counts = &mut self.counts[self.current * flows..][..flows];
        for ((count, seen), flow) in counts.iter_mut().zip(&mut self.seen).zip(&tally.flows) {
            let ios = flow.ios();
            *count += ios - *seen;
            *seen = ios;
        }
        let last = self.counts.len() / flows - 1;
        self.current = ((at.0 / self.length.0) as usize).min(last);
    }

    /// The tally was emptied.
    pub(super) fn begin_anew(&mut self) {
        self.seen.fill(0);
    }

    /// The reads and writes of each bucket, region after region, of a window with this actual end.
    pub(crate) fn of_regions(&self, window: Span) -> impl Iterator<Item = (usize, [u64; 2])> + '_ {
        let buckets = window.0.div_ceil(self.length.0) as usize;
        let flows = self.seen.len();
        let region = move |region: usize| {
            let bucket = move |all: &[u64]| (region, [all[2 * region], all[2 * region + 1]]);
            self.counts.chunks_exact(flows).take(buckets).map(bucket)
        };
        (0..flows / 2).flat_map(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(reads: u64, writes: u64) -> Tally {
        let mut tally = Tally::new(1, false, false);
        tally.flows[0].service_time.record_many(1000, reads);
        tally.flows[1].service_time.record_many(1000, writes);
        tally
    }

    #[test]
    fn every_io_is_in_the_bucket_in_which_it_was_counted() {
        let ms = Span::from_ms;
        let mut buckets = Buckets::new(ms(30), ms(100), 2);
        assert_eq!((buckets.end_after(ms(0)), buckets.end_after(ms(30))), (ms(30), ms(60)));
        buckets.count(&tally(3, 1), ms(30));
        // An interval of the series ends within the bucket, and its tally is handed over.
        buckets.count(&tally(5, 1), ms(50));
        buckets.begin_anew();
        buckets.count(&tally(4, 0), ms(60));
        // A tally that could not be handed over continues.
        buckets.count(&tally(4, 0), ms(90));
        buckets.count(&tally(11, 2), ms(100));
        let all: Vec<[u64; 2]> = buckets.of_regions(ms(100)).map(|(_, ios)| ios).collect();
        assert_eq!(all, [[3, 1], [6, 0], [0, 0], [7, 2]]);
        assert_eq!(buckets.of_regions(ms(61)).count(), 3);
    }
}
