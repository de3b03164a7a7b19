//! Changes over the window of one stream: stalls, and levels between them.

use super::levels::{Noise, Plateau, SeriesPiece, plateaus, plateaus_beyond};
use super::stalls::{Stalls, stalls};
use super::{Slice, slices};
use crate::measure::{Histogram, Interval};

/// From level to level, response times differ by at least this, in logarithms: twice as long. They
/// change more than rates do, and much more close to the limit of a target.
const TIMES_LEVEL_MIN: f64 = std::f64::consts::LN_2;
/// They also wander this many times as much as a rate does.
const TIMES_NOISE: f64 = 3.0;

/// The changes over the window of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The times in which no I/O completed.
    pub stalls: Stalls,
    /// The series without the intervals that stalls touched.
    pub kept: Vec<Slice>,
    /// The levels of the IOPS without the stalls; only one if they did not change by steps.
    pub levels: Vec<Plateau>,
    /// The levels of the mean response time in nanoseconds, in an open loop whose IOPS have none:
    /// there the schedule sets the rate, and a slower target shows in the times. Empty otherwise.
    pub times: Vec<Plateau>,
}

impl Changes {
    /// The changes of a stream, from its intervals and the distribution of its response times. `open`
    /// says whether its loop is open.
    pub fn of<'a>(
        series: impl IntoIterator<Item = &'a Interval>,
        times: &Histogram,
        open: bool,
    ) -> Self {
        let mut series: Vec<Interval> = series.into_iter().copied().collect();
        series.sort_by_key(|interval| interval.start);
        let stalls = stalls(&series, times, open);
        let quiet = series.iter().zip(&stalls.touched).filter(|(_, touched)| !**touched);
        let quiet: Vec<Interval> = quiet.map(|(interval, _)| *interval).collect();
        let kept = slices(&quiet);
        let levels = plateaus(&kept.iter().map(SeriesPiece::ios).collect::<Vec<SeriesPiece>>());
        let times = match open && levels.len() < 2 {
            true => of_times(&quiet),
            false => Vec::new(),
        };
        Self { stalls, kept, levels, times }
    }

    /// The noise of the IOPS between the stalls.
    pub fn noise(&self) -> Noise {
        Noise::of(&self.kept.iter().map(SeriesPiece::ios).collect::<Vec<SeriesPiece>>())
    }

    /// The second of two levels, if the change looks like a credit that ran out: the rate falls
    /// once, by a third or more, and stays low.
    pub fn is_credit(&self) -> bool {
        match &self.levels[..] {
            [before, after] => after.mean * 1.5 <= before.mean,
            _ => false,
        }
    }
}

/// The levels of the mean response time.
fn of_times(series: &[Interval]) -> Vec<Plateau> {
    let with_ios = series.iter().filter(|one| one.ios[0] + one.ios[1] > 0);
    let mean = |one: &Interval| {
        let sum = (one.times[0].sum + one.times[1].sum) as f64;
        let amount = sum / (one.ios[0] + one.ios[1]) as f64 * one.length.as_secs_f64();
        SeriesPiece { start: one.start, length: one.length, amount }
    };
    let points: Vec<SeriesPiece> = with_ios.map(mean).collect();
    let noise = Noise { over_a_second: TIMES_NOISE * Noise::of(&points).over_a_second };
    let mut levels = plateaus_beyond(&points, noise, TIMES_LEVEL_MIN);
    for level in &mut levels {
        let own = series.iter().filter(|one| level.start <= one.start && one.start < level.end);
        let (sum, ios) = own.fold((0.0, 0.0), |(sum, ios), one| {
            let times = one.times[0].sum + one.times[1].sum;
            (sum + times as f64, ios + (one.ios[0] + one.ios[1]) as f64)
        });
        level.mean = sum / ios;
    }
    levels
}
