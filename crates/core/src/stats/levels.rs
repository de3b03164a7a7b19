//! Levels of a rate over the window, with the instants at which it went from one to the next.
//!
//! A change is found if two parts of the window differ by more than noise explains for parts of
//! these lengths. Neighboring intervals resemble each other, so the noise is that of a first-order
//! autoregressive series, estimated from differences of neighbors, which a few steps hardly affect
//! (Chakar, Lebarbier, Levy-Leduc and Robin, "A robust approach for estimating change-points in the
//! mean of an AR(1) process", Bernoulli 23 (2), 2017). The places are those of circular binary
//! segmentation: the part of the series that differs most from the rest, wherever it begins and
//! ends, then the same within the parts (Olshen, Venkatraman, Lucito and Wigler, Biostatistics 5
//! (4), 2004). [`CHOSEN`] allows for the number of places to choose from.

use super::Slice;
use crate::units::Span;

/// Neighboring levels differ by at least this, in logarithms: 10 %.
pub const LEVEL_MIN: f64 = 0.1;

/// The least number of standard errors between two levels: the largest difference between all pairs
/// of places in a window reaches it by chance in less than one of a hundred windows.
const CHOSEN: f64 = 4.3;

/// The noise that is always assumed: the standard deviation of ln(rate) over a second. A short
/// window does not show how much a device's speed differs from second to second, and 10 % is
/// common. It also equals the noise of a series of tenths of a second with a standard deviation of
/// 10 % and a correlation of 0.8.
const NOISE_MIN: f64 = 0.1;

/// The most points in which a series is compared: beyond that, neighbors are merged.
const POINTS_MAX: usize = 400;

/// Neighbors are merged until a point has this many I/Os on average: the logarithm of fewer is no
/// longer symmetric.
const IOS_MIN: f64 = 10.0;

/// The least number of points in a level.
const POINTS_MIN: usize = 3;

/// A correlation above this counts as this.
const CORRELATION_MAX: f64 = 0.8;

/// With a hundred points the correlation is known to a few hundredths; with n points it is assumed
/// to be larger than estimated by this over sqrt(n).
const CORRELATION_MARGIN: f64 = 2.5;

/// The number of points that form a group.
const GROUP: usize = 10;
/// Points form groups if there are at least this many groups.
const GROUPS_MIN: usize = 20;

/// The share of the differences that count, the smallest ones: the others may be steps.
const COUNTED: f64 = 0.8;

/// The mean square of the smallest four fifths of standard normal values, without their signs:
/// (0.8 - 2 x 1.2816 x 0.17550) / 0.8.
const SQUARE_OF_COUNTED: f64 = 0.4377;

/// The share of a step that shows right next to its place, less the part that noise can hide there.
const AT_ONCE: f64 = 0.6;
/// Noise can hide at most this share of a step there. A slope shows a sixth of its change there.
const CHANCE_IN_STEP: f64 = 0.25;

/// A stretch of the window over which a rate stayed the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// From the start of the window to its beginning.
    pub start: Span,
    /// From the start of the window to its end.
    pub end: Span,
    /// The mean over it, in the unit of the points, per second.
    pub mean: f64,
}

/// A slice of a series: the amount in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPiece {
    /// From the start of the window to its beginning.
    pub start: Span,
    /// How long it is.
    pub length: Span,
    /// The amount.
    pub amount: f64,
}

impl SeriesPiece {
    /// The I/Os of a slice of the series.
    pub fn ios(slice: &Slice) -> Self {
        let amount = (slice.ios[0] + slice.ios[1]) as f64;
        Self { start: slice.start, length: slice.length, amount }
    }

    fn end(&self) -> Span {
        self.start + self.length
    }
}

/// How much the logarithm of a rate wanders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The standard deviation of the mean over a second; over t seconds it is that over sqrt(t).
    pub over_a_second: f64,
}

impl Noise {
    /// The noise of a series whose amounts are counts.
    pub fn of(points: &[SeriesPiece]) -> Self {
        let points = thinned(points);
        let mut variance = variance(&points);
        // An effect that is the same for several intervals does not show between neighbors.
        let groups = grouped(&points, GROUP);
        if groups.len() >= GROUPS_MIN {
            variance = variance.max(variance_of_groups(&groups));
        }
        Self { over_a_second: NOISE_MIN.max(variance.sqrt()) }
    }

    /// The standard error of the difference between the means over this many seconds each.
    pub fn of_difference(&self, one: f64, other: f64) -> f64 {
        self.over_a_second * (1.0 / one + 1.0 / other).sqrt()
    }

    /// The standard error of the excursion of the best-fit line over five rounds of a window of
    /// this many seconds: slope x 4/5 of the window.
    pub fn of_excursion(&self, seconds: f64) -> f64 {
        self.over_a_second * 0.8 * (12.0 / seconds).sqrt()
    }

    /// The standard error of a fifth of this many seconds.
    pub fn of_round(&self, seconds: f64) -> f64 {
        self.over_a_second * (5.0 / seconds).sqrt()
    }
}

/// The variance of the mean of ln(rate) over a second, where neighbors are correlated.
fn variance(points: &[SeriesPiece]) -> f64 {
    let values: Vec<f64> = points.iter().map(logarithm).collect();
    let seconds: f64 = points.iter().map(|point| point.length.as_secs_f64()).sum();
    let ios: f64 = points.iter().map(|point| point.amount).sum();
    if ios <= 0.0 {
        return 0.0;
    }
    let each = seconds / points.len() as f64;
    // Random arrivals vary by the root of their count, even if the intervals look alike, and even if
    // there are too few of them to compare.
    let of_counts = points.len() as f64 / ios;
    let Some([one, two]) =
        differences(&values, 1).zip(differences(&values, 2)).map(<[f64; 2]>::from)
    else {
        return of_counts * each;
    };
    let seen = match one > 0.0 {
        true => two / one - 1.0,
        false => 0.0,
    };
    let margin = CORRELATION_MARGIN / (values.len() as f64).sqrt();
    let correlation = (seen.max(0.0) + margin).min(CORRELATION_MAX);
    // Differences of neighbors have the variance 2 v (1 - r), and the mean of many the variance
    // v (1 + r) / (1 - r) over their number.
    let long_run = one * (1.0 + correlation) / (2.0 * (1.0 - correlation).powi(2));
    long_run.max(of_counts) * each
}

/// The same for groups of points. Their correlation is taken to be a third, because a few groups
/// cannot show it.
fn variance_of_groups(groups: &[SeriesPiece]) -> f64 {
    let values: Vec<f64> = groups.iter().map(logarithm).collect();
    let seconds: f64 = groups.iter().map(|group| group.length.as_secs_f64()).sum();
    differences(&values, 1).map_or(0.0, |one| 1.5 * one * seconds / groups.len() as f64)
}

/// The mean square of the differences at that distance, estimated from the smaller ones.
fn differences(values: &[f64], distance: usize) -> Option<f64> {
    let mut squares: Vec<f64> =
        values.iter().zip(values.get(distance..)?).map(|(a, b)| (b - a).powi(2)).collect();
    squares.sort_unstable_by(f64::total_cmp);
    squares.truncate((squares.len() as f64 * COUNTED).round() as usize);
    match squares.len() {
        0..4 => None,
        count => Some(squares.iter().sum::<f64>() / count as f64 / SQUARE_OF_COUNTED),
    }
}

fn logarithm(point: &SeriesPiece) -> f64 {
    // Half of one, if the count is zero.
    (point.amount.max(0.5) / point.length.as_secs_f64()).ln()
}

/// Neighbors merged, this many into one.
fn grouped(points: &[SeriesPiece], count: usize) -> Vec<SeriesPiece> {
    let sum = |group: &[SeriesPiece]| SeriesPiece {
        start: group[0].start,
        length: group.iter().fold(Span(0), |sum, point| sum + point.length),
        amount: group.iter().map(|point| point.amount).sum(),
    };
    points.chunks(count).filter(|group| group.len() * 2 > count).map(sum).collect()
}

/// As few points as needed, each with enough I/Os.
fn thinned(points: &[SeriesPiece]) -> Vec<SeriesPiece> {
    let points: Vec<SeriesPiece> =
        points.iter().filter(|point| point.length > Span(0)).copied().collect();
    let amount: f64 = points.iter().map(|point| point.amount).sum();
    let wanted = (amount / IOS_MIN).clamp(1.0, POINTS_MAX as f64);
    let group = (points.len() as f64 / wanted).ceil().max(1.0) as usize;
    grouped(&points, group)
}

/// The levels of a series whose amounts are counts, in order of time; only one if it did not change
/// by steps, and none for an empty series. A drifting series has no levels.
pub fn plateaus(points: &[SeriesPiece]) -> Vec<Plateau> {
    plateaus_beyond(points, Noise::of(points), LEVEL_MIN)
}

/// The levels of a series with that noise, which differ by at least this much in logarithms.
pub(super) fn plateaus_beyond(points: &[SeriesPiece], noise: Noise, least: f64) -> Vec<Plateau> {
    let points = thinned(points);
    if points.is_empty() {
        return Vec::new();
    }
    let series = Cumulated::new(&points, noise, least);
    let mut edges = Vec::from([0, points.len()]);
    series.split(0, points.len(), &mut edges);
    edges.sort_unstable();
    edges.dedup();
    series.merge(&mut edges);
    series.keep_steps(&mut edges);
    let level = |pair: &[usize]| {
        let own = &points[pair[0]..pair[1]];
        let seconds: f64 = own.iter().map(|point| point.length.as_secs_f64()).sum();
        let mean = own.iter().map(|point| point.amount).sum::<f64>() / seconds;
        Plateau { start: own[0].start, end: own[own.len() - 1].end(), mean }
    };
    edges.windows(2).map(level).collect()
}

/// Sums from the start of a series on, so that the mean of any part of it is two subtractions.
struct Cumulated {
    seconds: Vec<f64>,
    sums: Vec<f64>,
    noise: Noise,
    /// The smallest step.
    least: f64,
}

impl Cumulated {
    fn new(points: &[SeriesPiece], noise: Noise, least: f64) -> Self {
        let mut one = Self { seconds: Vec::from([0.0]), sums: Vec::from([0.0]), noise, least };
        let (mut seconds, mut sum) = (0.0, 0.0);
        for point in points {
            let length = point.length.as_secs_f64();
            seconds += length;
            sum += length * logarithm(point);
            one.seconds.push(seconds);
            one.sums.push(sum);
        }
        one
    }

    /// How long a part is, and the sum of its values over time.
    fn part(&self, from: usize, to: usize) -> (f64, f64) {
        (self.seconds[to] - self.seconds[from], self.sums[to] - self.sums[from])
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        let (seconds, sum) = self.part(from, to);
        sum / seconds
    }

    /// Adds the edges of the part that differs from the rest between two edges, and of the parts
    /// that differ within these parts.
    fn split(&self, from: usize, to: usize, edges: &mut Vec<usize>) {
        let (whole_seconds, whole_sum) = self.part(from, to);
        let mut best = (0.0, from, to);
        for start in from..to {
            for end in start + POINTS_MIN..=to {
                // The remainder at each end is a level, too.
                let left = [start - from, to - end];
                if left.iter().any(|&left| left > 0 && left < POINTS_MIN) || left == [0, 0] {
                    continue;
                }
                let (seconds, sum) = self.part(start, end);
                let others = whole_seconds - seconds;
                let difference = (sum / seconds - (whole_sum - sum) / others).abs();
                let errors = difference / self.noise.of_difference(seconds, others);
                if errors > best.0 && difference > self.least / 2.0 {
                    best = (errors, start, end);
                }
            }
        }
        let (errors, start, end) = best;
        if errors < CHOSEN {
            return;
        }
        edges.extend([start, end]);
        for (from, to) in [(from, start), (start, end), (end, to)] {
            if to - from >= 2 * POINTS_MIN {
                self.split(from, to, edges);
            }
        }
    }

    /// Removes edges until each level differs enough from the next one, the faintest first.
    fn merge(&self, edges: &mut Vec<usize>) {
        while edges.len() > 2 {
            let strength = |three: &[usize]| {
                let (left, right) = (self.part(three[0], three[1]), self.part(three[1], three[2]));
                let step = (right.1 / right.0 - left.1 / left.0).abs();
                let chance = CHOSEN * self.noise.of_difference(left.0, right.0);
                (step / self.least).min(step / chance)
            };
            let faintest = edges.windows(3).map(strength).enumerate();
            let Some((place, strength)) = faintest.min_by(|a, b| a.1.total_cmp(&b.1)) else {
                return;
            };
            if strength >= 1.0 {
                return;
            }
            edges.remove(place + 1);
        }
    }

    /// Removes the edges without a jump, the smallest first: the levels on both sides become one.
    /// In a drifting series none remains. So a window that begins with no completions does not hide
    /// the step after them.
    fn keep_steps(&self, edges: &mut Vec<usize>) {
        loop {
            let size = |three: &[usize]| {
                (self.mean(three[1], three[2]) - self.mean(three[0], three[1])).abs()
            };
            let slopes = edges.windows(3).enumerate().filter(|(_, three)| !self.is_step(three));
            let least = slopes.min_by(|a, b| size(a.1).total_cmp(&size(b.1)));
            let Some((place, _)) = least else { return };
            edges.remove(place + 1);
        }
    }

    /// Whether the series jumps there from one level to the other, rather than drifting: a step
    /// shows at once, right next to its place.
    fn is_step(&self, three: &[usize]) -> bool {
        let [from, place, to] = *three else { return true };
        let step = self.mean(place, to) - self.mean(from, place);
        let shorter = (place - from).min(to - place);
        let near = (shorter / 6).max(2).min(shorter);
        let jump = self.mean(place, place + near) - self.mean(place - near, place);
        let seconds = self.part(place, place + near).0;
        let chance = self.noise.of_difference(seconds, seconds).min(CHANCE_IN_STEP * step.abs());
        jump * step.signum() >= AT_ONCE * step.abs() - chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    fn points(values: impl IntoIterator<Item = f64>, length: Span) -> Vec<SeriesPiece> {
        let point = |(place, value): (usize, f64)| SeriesPiece {
            start: Span(length.0 * place as u64),
            length,
            amount: value * length.as_secs_f64(),
        };
        values.into_iter().enumerate().map(point).collect()
    }

    /// A first-order autoregressive series around 10,000, with that relative standard deviation.
    fn noisy(seed: u64, count: usize, correlation: f64, deviation: f64) -> Vec<f64> {
        let mut chance = SplitMix64(seed * 7919 + 3);
        let mut state = chance.normal();
        let innovation = (1.0 - correlation * correlation).sqrt();
        let next = |_| {
            state = correlation * state + innovation * chance.normal();
            10_000.0 * (1.0 + deviation * state)
        };
        (0..count).map(next).collect()
    }

    const TENTH: Span = Span::from_ms(100);
    const SECOND: Span = Span::from_secs(1);

    fn found(values: Vec<f64>, length: Span) -> usize {
        plateaus(&points(values, length)).len() - 1
    }

    #[test]
    fn noise_has_no_levels() {
        const RUNS: u64 = 60;
        for (length, count) in
            [(TENTH, 20), (TENTH, 50), (TENTH, 300), (TENTH, 590), (SECOND, 60), (SECOND, 600)]
        {
            for correlation in [0.0, 0.5, 0.8] {
                for deviation in [0.03, 0.1] {
                    let false_ones = (0..RUNS)
                        .filter(|&seed| {
                            found(noisy(seed, count, correlation, deviation), length) > 0
                        })
                        .count() as u64;
                    let what = format!("{count} of {length}, {correlation}, {deviation}");
                    assert!(false_ones * 50 <= RUNS, "{what}: {false_ones} of {RUNS}");
                }
            }
        }
    }

    /// So few that fathom merges them into less than a handful of points.
    #[test]
    fn a_few_random_arrivals_have_no_levels() {
        for (per_second, seconds) in [(8.0, 5), (10.0, 5), (12.0, 6), (20.0, 4), (30.0, 2)] {
            let false_ones = (0..300).filter(|&seed| {
                let mut chance = SplitMix64(seed * 104_729 + 11);
                let mut at = 0.0;
                let mut counts = vec![0.0; seconds * 10];
                loop {
                    at -= (1.0 - chance.uniform()).ln() / per_second;
                    match counts.get_mut((at * 10.0) as usize) {
                        Some(count) => *count += 10.0,
                        None => break,
                    }
                }
                found(counts, TENTH) > 0
            });
            let false_ones = false_ones.count();
            assert!(false_ones <= 6, "{per_second}/s for {seconds} s: {false_ones} of 300");
        }
    }

    #[test]
    fn a_speed_that_differs_from_second_to_second_has_no_levels() {
        for seconds in [2, 5, 10, 30, 59] {
            let false_ones = (0..150).filter(|&seed| {
                let each = noisy(seed, seconds, 0.0, 0.1);
                found((0..seconds * 10).map(|k| each[k / 10]).collect(), TENTH) > 0
            });
            assert!(false_ones.count() <= 3, "{seconds} s");
        }
    }

    #[test]
    fn steps_are_found_where_they_are() {
        const RUNS: u64 = 60;
        // The interval, the number of intervals, the place of the step, its level relative to the
        // level before, and the noise.
        for (length, count, at, to, deviation) in [
            (TENTH, 20, 0.5, 0.3, 0.05),
            (TENTH, 50, 0.5, 0.5, 0.05),
            (TENTH, 50, 0.3, 0.1667, 0.1),
            (TENTH, 100, 0.5, 0.7, 0.05),
            (TENTH, 100, 0.8, 1.7, 0.05),
            (TENTH, 300, 0.3, 0.6, 0.05),
            (SECOND, 60, 0.5, 0.7, 0.03),
            (SECOND, 60, 0.8, 0.5, 0.05),
            (SECOND, 600, 0.3, 0.8, 0.03),
        ] {
            let step = (at * count as f64).round() as usize;
            let hits = (0..RUNS).filter(|&seed| {
                let mut values = noisy(seed, count, 0.0, deviation);
                values[step..].iter_mut().for_each(|value| *value *= to);
                let levels = plateaus(&points(values, length));
                let near = |level: &Plateau, mean: f64| (level.mean / mean - 1.0).abs() < 0.1;
                let two = || Some((levels.first()?, levels.get(1)?));
                two().is_some_and(|(before, after)| {
                    let off = before.end.0.abs_diff(step as u64 * length.0);
                    levels.len() == 2
                        && off <= 3 * length.0
                        && near(before, 10_000.0)
                        && near(after, 10_000.0 * to)
                })
            });
            let hits = hits.count() as u64;
            assert!(hits * 20 >= RUNS * 19, "{count} of {length} to {to}: {hits} of {RUNS}");
        }
    }

    #[test]
    fn a_step_is_found_behind_an_interval_in_which_nothing_completed() {
        // A closed loop of 16 slow I/Os completes all of them together, the first ones after one
        // interval.
        let slow = std::iter::once(0.0).chain(std::iter::repeat_n(160.0, 11));
        for seed in 0..20 {
            let fast = noisy(seed, 33, 0.3, 0.08).into_iter().map(|one| one * 0.3);
            let levels = plateaus(&points(slow.clone().chain(fast), TENTH));
            let starts: Vec<u64> = levels.iter().map(|level| level.start.0 / TENTH.0).collect();
            assert_eq!(starts, [0, 12], "{levels:?}");
        }
    }

    #[test]
    fn a_dip_has_three_levels_and_a_slope_none() {
        let dip = (0..100).map(|k| if (40..60).contains(&k) { 5000.0 } else { 10_000.0 });
        let levels = plateaus(&points(dip, TENTH));
        let shown: Vec<(u64, f64)> =
            levels.iter().map(|level| (level.start.0 / TENTH.0, level.mean.round())).collect();
        assert_eq!(shown, [(0, 10_000.0), (40, 5000.0), (60, 10_000.0)]);
        for slope in [-70.0, -40.0, 60.0, 300.0] {
            for seed in 0..10 {
                let noise = noisy(seed, 100, 0.0, 0.03);
                let ramp = noise.iter().enumerate().map(|(k, value)| value + slope * k as f64);
                assert_eq!(found(ramp.collect(), TENTH), 0, "{slope}");
            }
        }
        assert_eq!(super::plateaus(&[]), []);
        assert_eq!(found(vec![0.0; 50], TENTH), 0);
        assert_eq!(found(vec![7.0], TENTH), 0);
    }
}
