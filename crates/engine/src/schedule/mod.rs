//! When I/Os start.
//!
//! An open loop's schedule is computed from the start of the run and never depends on completions,
//! so neither a stall nor a late wake-up can slow it down: I/Os that fell due meanwhile are still
//! due, with the same intended start.

mod any;
mod bounded;
mod choice;
mod growth;
mod rests;

use fathom_core::Instant;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) use any::Any;
pub(crate) use bounded::Bounded;
pub(crate) use choice::{WithSchedule, scheduled};
pub(crate) use growth::{Growth, Stages, Steady};
pub(crate) use rests::{Bursts, Gathered, ThinkTime};

use crate::pattern::Request;

/// Decides when the next I/O should start. A thread that takes over from a worker that hangs uses
/// it on another thread.
pub(crate) trait Schedule: Send {
    /// Whether intended starts mean anything: not in a closed loop.
    const OPEN: bool;
    /// Whether it needs to know of completions.
    const RESTS: bool = false;
    /// Whether it may be over before the run.
    const BOUNDED: bool = false;

    /// Takes the next I/O if it is due, and gives its intended start.
    fn take(&mut self, now: Instant) -> Option<Instant>;

    /// When the next I/O falls due.
    fn next_due(&self) -> Instant;

    /// How many untaken I/Os fall due before `end`.
    fn untaken(&mut self, end: Instant) -> u64;

    /// About how many untaken I/Os are due before `at`, without enumerating them: the average
    /// number after the first one.
    fn overdue(&self, at: Instant) -> u64;

    /// An I/O completed or failed. Called only for a schedule that rests.
    #[inline]
    fn came_back(&mut self, _at: Instant) {}

    /// How many of the I/Os that it gave may start, now that their requests are known; the others
    /// never will. Called only for a schedule with bounds.
    #[inline]
    fn grant(&mut self, requests: &[Request]) -> usize {
        requests.len()
    }

    /// Whether it is done after an amount, rather than at a time.
    fn is_limited(&self) -> bool {
        false
    }

    /// Whether it has given all of a limited amount.
    #[inline]
    fn is_done(&self) -> bool {
        false
    }
}

/// A completion starts the next I/O: one is always due, and a free slot is the only condition.
pub(crate) struct ClosedLoop;

impl Schedule for ClosedLoop {
    const OPEN: bool = false;

    #[inline]
    fn take(&mut self, now: Instant) -> Option<Instant> {
        Some(now)
    }

    #[inline]
    fn next_due(&self) -> Instant {
        Instant(u64::MAX)
    }

    fn untaken(&mut self, _end: Instant) -> u64 {
        0
    }

    fn overdue(&self, _at: Instant) -> u64 {
        0
    }
}

/// Gives the distances between intended starts, in nanoseconds from the start of the run.
pub(crate) trait Arrivals: Send {
    /// The next intended start; each call gives a later one.
    fn next_ns(&mut self) -> f64;

    /// How many starts lie between two instants on average.
    fn mean_between(&self, from_ns: f64, to_ns: f64) -> f64;

    /// How many more starts lie before `end_ns`, after the last one that was given. The rest of an
    /// overload may be billions, which must not be enumerated.
    fn count_before(&mut self, end_ns: f64) -> u64;
}

/// I/Os start when they are due, whether or not earlier ones have completed.
pub(crate) struct OpenLoop<A> {
    start: Instant,
    next: Instant,
    arrivals: A,
}

impl<A: Arrivals> OpenLoop<A> {
    /// A schedule that begins at `start`.
    pub(crate) fn new(start: Instant, arrivals: A) -> Self {
        let mut schedule = Self { start, next: start, arrivals };
        schedule.advance();
        schedule
    }

    #[inline]
    fn advance(&mut self) {
        // An I/O beyond the end of time never falls due.
        self.next = Instant(self.start.0.saturating_add(self.arrivals.next_ns() as u64));
    }
}

impl<A: Arrivals> Schedule for OpenLoop<A> {
    const OPEN: bool = true;

    #[inline]
    fn take(&mut self, now: Instant) -> Option<Instant> {
        if now < self.next {
            return None;
        }
        let due = self.next;
        self.advance();
        Some(due)
    }

    #[inline]
    fn next_due(&self) -> Instant {
        self.next
    }

    fn untaken(&mut self, end: Instant) -> u64 {
        match self.next < end {
            true => 1 + self.arrivals.count_before(end.since(self.start).0 as f64),
            false => 0,
        }
    }

    fn overdue(&self, at: Instant) -> u64 {
        if at <= self.next {
            return 0;
        }
        let [from, to] = [self.next, at].map(|at| at.since(self.start).0 as f64);
        // The first one is due, however close; a whole number may be rounded to just above it.
        (self.arrivals.mean_between(from, to) - 1e-6).ceil().max(1.0) as u64
    }
}

/// One I/O whenever the number of I/Os that are due has grown by one: at a steady rate, equal
/// distances. Computed from the count, so that no rounding accumulates.
pub(crate) struct UniformArrivals<G> {
    growth: G,
    phase: f64,
    taken: u64,
}

impl<G: Growth> UniformArrivals<G> {
    /// Arrivals by `growth`, the first one when `phase` (0 to 1) of an I/O is due, so that several
    /// workers alternate rather than start together.
    pub(crate) fn new(growth: G, phase: f64) -> Self {
        Self { growth, phase, taken: 0 }
    }
}

impl<G: Growth> Arrivals for UniformArrivals<G> {
    #[inline]
    fn next_ns(&mut self) -> f64 {
        let ios = self.phase + self.taken as f64;
        self.taken += 1;
        self.growth.next_reached(ios)
    }

    fn mean_between(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.growth.by(to_ns) - self.growth.by(from_ns)
    }

    fn count_before(&mut self, end_ns: f64) -> u64 {
        // Starts are whole nanoseconds, cut off: the end itself is the first that is too late. The
        // count is within one of its closed form, whose rounding is then put right.
        let starts_before = |count: u64| self.growth.reached(self.phase + count as f64) < end_ns;
        let mut all = (self.growth.by(end_ns) - self.phase).ceil().max(0.0) as u64;
        while all > 0 && !starts_before(all - 1) {
            all -= 1;
        }
        while starts_before(all) {
            all += 1;
        }
        all.saturating_sub(self.taken)
    }
}

/// Draws from the exponential distribution with a mean of 1.
#[inline]
fn exponential(random: &mut Xoshiro256PlusPlus) -> f64 {
    // 53 random bits make a number above 0 and at most 1, whose logarithm is finite.
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}

/// Exponential distances, independent of each other, on a scale on which one I/O is due in each unit
/// of time; this scale is then stretched to the course of the load. The sum is kept in floating point
/// and is exact to far less than a nanosecond after a day, so that no distance is rounded to a whole
/// one.
pub(crate) struct PoissonArrivals<G> {
    growth: G,
    ios: f64,
    random: Xoshiro256PlusPlus,
}

impl<G: Growth> PoissonArrivals<G> {
    /// Arrivals whose mean number grows by `growth`.
    pub(crate) fn new(growth: G, seed: u64) -> Self {
        Self {
            growth,
            ios: 0.0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x0061_7272_6976_616c),
        }
    }
}

impl<G: Growth> Arrivals for PoissonArrivals<G> {
    #[inline]
    fn next_ns(&mut self) -> f64 {
        self.ios += exponential(&mut self.random);
        self.growth.next_reached(self.ios)
    }

    fn mean_between(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.growth.by(to_ns) - self.growth.by(from_ns)
    }

    fn count_before(&mut self, end_ns: f64) -> u64 {
        let mut count = 0;
        let due = self.growth.by(end_ns);
        // The rest of a million is known to a tenth of a percent from its mean, without drawing
        // each of them.
        while due - self.ios <= 1e6 {
            if self.next_ns() >= end_ns {
                return count;
            }
            count += 1;
        }
        (due - self.ios).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::Course;
    use fathom_core::{Rate, Span};

    use super::growth::course;
    use super::*;

    fn uniform(rate: f64, phase: f64) -> UniformArrivals<Steady> {
        UniformArrivals::new(Steady::new(Rate(rate)), phase)
    }

    fn poisson(rate: f64, seed: u64) -> PoissonArrivals<Steady> {
        PoissonArrivals::new(Steady::new(Rate(rate)), seed)
    }

    #[test]
    fn uniform_arrivals_do_not_drift() {
        // A rounding error of a third of a nanosecond per period would amount to 0.3 s after 10^9
        // arrivals.
        let mut schedule = OpenLoop::new(Instant(1000), uniform(3.0, 0.0));
        schedule.arrivals.taken = 3_000_000_000;
        schedule.advance();
        assert_eq!(schedule.next_due(), Instant(1_000_000_000_000_001_000));
    }

    #[test]
    fn a_late_look_finds_everything_that_fell_due() {
        let mut schedule = OpenLoop::new(Instant(0), uniform(1000.0, 0.0));
        let late = Instant(10_000_000);
        let due: Vec<u64> = std::iter::from_fn(|| schedule.take(late)).map(|due| due.0).collect();
        assert_eq!(due, (0..=10).map(|k| k * 1_000_000).collect::<Vec<_>>());
        let overdue = [11, 12, 20].map(|ms| schedule.overdue(Instant(ms * 1_000_000)));
        assert_eq!(overdue, [0, 1, 9]);
        assert_eq!(schedule.untaken(Instant(20_000_000)), 9);
    }

    #[test]
    fn what_is_left_is_counted_as_if_it_were_taken_one_by_one() {
        for (rate, phase, end) in
            [(1000.0, 0.0, 20_000_000), (1000.0, 0.5, 20_000_001), (3.0, 0.9, 1), (7e5, 0.3, 999)]
        {
            let schedule = || OpenLoop::new(Instant(77), uniform(rate, phase));
            let last = Instant(77 + end - 1);
            let mut one_by_one = schedule();
            let expected = std::iter::from_fn(|| one_by_one.take(last)).count() as u64;
            assert_eq!(schedule().untaken(Instant(77 + end)), expected, "{rate} {phase} {end}");
        }
    }

    #[test]
    fn billions_that_are_left_are_counted_at_once() {
        let (day, rate) = (Instant(86_400_000_000_000), 1e9);
        let mut uniform = OpenLoop::new(Instant(0), uniform(rate, 0.0));
        assert_eq!(uniform.untaken(day), 86_400_000_000_000);
        let mut poisson = OpenLoop::new(Instant(0), poisson(rate, 1));
        assert!(poisson.untaken(day).abs_diff(86_400_000_000_000) < 10);
    }

    #[test]
    fn what_is_due_after_the_end_of_time_never_starts() {
        let mut schedule = OpenLoop::new(Instant(1 << 60), poisson(1e-15, 1));
        assert_eq!(schedule.next_due(), Instant(u64::MAX));
        assert_eq!(schedule.take(Instant(1 << 61)), None);
    }

    /// I/Os per second at which the schedule has to be exact.
    const RATES: [f64; 4] = [1e3, 1e4, 5e4, 1.5e5];

    #[test]
    fn uniform_arrivals_lie_at_exact_fractions_of_a_nanosecond_after_a_day() {
        let odd = [3.0, 149_999.7, 1e9 / 7.0];
        for rate in RATES.into_iter().chain(odd) {
            for phase in [0.0, 0.25, 2.0 / 3.0] {
                let mut arrivals = uniform(rate, phase);
                let last = (rate * 86_400.0) as u64;
                for k in [0, 1, 999, last / 1000, last / 3, last] {
                    arrivals.taken = k;
                    let exact = (k as f64 + phase) / rate * 1e9;
                    // The precision of a day in nanoseconds is 1/64.
                    let error = (arrivals.next_ns() - exact).abs();
                    assert!(error <= 1.0 / 32.0, "{rate} {phase} {k}: {error}");
                }
                let mut schedule = OpenLoop::new(Instant(0), uniform(rate, phase));
                let day = schedule.untaken(Instant(86_400_000_000_000));
                assert!((day as f64 - rate * 86_400.0).abs() <= 1.0, "{rate} {phase}: {day}");
            }
        }
    }

    /// The distance of the gaps between `n` arrivals from the exponential distribution, in units of
    /// the 1 % limit of Kolmogorov and Smirnov.
    fn distance_from_exponential(rate: f64, seed: u64, n: u32) -> f64 {
        let mut arrivals = poisson(rate, seed);
        let mut last = 0.0;
        let gaps: Vec<f64> = (0..n)
            .map(|_| {
                let next = arrivals.next_ns();
                (next - std::mem::replace(&mut last, next)) * rate / 1e9
            })
            .collect();
        distance_of_gaps(gaps)
    }

    fn distance_of_gaps(mut gaps: Vec<f64>) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distances = gaps.iter().enumerate();
        let distances =
            distances.map(|(i, gap)| ((i as f64 + 0.5) / n - (1.0 - (-gap).exp())).abs());
        distances.fold(0.0, f64::max) / (1.63 / n.sqrt())
    }

    #[test]
    fn poisson_distances_are_exponential_at_every_rate_and_seed() {
        for rate in RATES {
            let beyond =
                (0..50).filter(|&seed| distance_from_exponential(rate, seed, 10_000) > 1.0);
            // By chance, one of a hundred is beyond the limit. More than 4 of 50 are beyond it in
            // 0.02 % of cases.
            assert!(beyond.count() <= 4, "{rate}");
            assert!(distance_from_exponential(rate, 1, 200_000) < 1.0, "{rate}");
        }
    }

    #[test]
    fn poisson_offers_its_rate_without_bias() {
        for rate in RATES {
            let seeds = 200;
            let expected = rate / 2.0;
            let count = |seed| {
                let mut schedule = OpenLoop::new(Instant(0), poisson(rate, seed));
                // Taken one by one, because a count of the rest may use the mean.
                let end = Instant(500_000_000);
                std::iter::from_fn(|| schedule.take(Instant(end.0 - 1))).count() as f64
            };
            let errors: Vec<f64> =
                (0..seeds).map(|seed| (count(seed) - expected) / expected.sqrt()).collect();
            // By chance, 0.27 % are beyond three standard errors.
            let beyond = errors.iter().filter(|error| error.abs() > 3.0).count();
            assert!(beyond <= 4, "{rate}: {beyond}");
            let mean = errors.iter().sum::<f64>() / seeds as f64;
            let variance = errors.iter().map(|error| error * error).sum::<f64>() / seeds as f64;
            assert!(mean.abs() < 3.0 / (seeds as f64).sqrt(), "{rate}: {mean}");
            assert!((0.7..1.4).contains(&variance), "{rate}: {variance}");
        }
    }

    /// Steps, ramps up and down, and a pause for 20 s; then a constant 2000/s.
    fn steps_and_ramps() -> Course {
        course(&[
            (5, 1e3, 1e3),
            (5, 1e3, 2e4),
            (2, 0.0, 0.0),
            (3, 5e4, 5e4),
            (5, 5e4, 0.0),
            (0, 2e3, 2e3),
        ])
    }

    #[test]
    fn uniform_arrivals_of_a_course_lie_where_its_integral_is_whole() {
        let course = steps_and_ramps();
        for workers in [1, 3] {
            let own = course.scaled(1.0 / f64::from(workers));
            let mut all: Vec<u64> = Vec::new();
            for worker in 0..workers {
                let phase = f64::from(worker) / f64::from(workers);
                let arrivals = UniformArrivals::new(Stages::new(&own), phase);
                let mut schedule = OpenLoop::new(Instant(0), arrivals);
                let last = Instant(30_000_000_000 - 1);
                all.extend(std::iter::from_fn(|| schedule.take(last)).map(|due| due.0));
            }
            all.sort_unstable();
            assert_eq!(all.len() as f64, course.ios_before(Span::from_secs(30)).ceil());
            for (count, &due) in all.iter().enumerate() {
                // Due times are truncated to whole nanoseconds.
                let [before, after] = [due, due + 1].map(|ns| course.ios_before(Span(ns)));
                let count = count as f64;
                assert!(before - 1e-6 <= count && count <= after + 1e-6, "{count} {due} {before}");
            }
        }
    }

    #[test]
    fn what_is_left_of_a_course_is_counted_as_if_it_were_taken_one_by_one() {
        let course = steps_and_ramps();
        for phase in [0.0, 0.5, 0.999] {
            for ms in (0..25_000).step_by(37).chain([5_000, 10_000, 12_000, 15_000, 20_000]) {
                let schedule =
                    || OpenLoop::new(Instant(7), UniformArrivals::new(Stages::new(&course), phase));
                let end = Instant(7 + ms * 1_000_000);
                let mut one_by_one = schedule();
                let taken =
                    std::iter::from_fn(|| one_by_one.take(Instant(end.0.max(1) - 1))).count();
                assert_eq!(schedule().untaken(end), taken as u64, "{phase} {ms}");
            }
        }
    }

    #[test]
    fn a_course_does_not_drift_in_a_day_of_ramps() {
        // Up and down every hour: 86,400 I/Os per second on average.
        let hours = [(1800, 0.0, 172_800.0), (1800, 172_800.0, 0.0)];
        let day = course(&hours.repeat(24));
        let mut uniform = UniformArrivals::new(Stages::new(&day), 0.0);
        let half_hour = 86_400.0 * 1800.0;
        for k in 0..48 {
            // The middle of each slope, up or down.
            let quarter = if k % 2 == 0 { 0.25 } else { 0.75 };
            uniform.taken = ((f64::from(k) + quarter) * half_hour) as u64;
            let exact = (f64::from(k) + 0.5) * 1.8e12;
            assert!((uniform.next_ns() - exact).abs() < 1.0 / 16.0, "{k}");
        }
        let mut schedule = OpenLoop::new(Instant(0), UniformArrivals::new(Stages::new(&day), 0.0));
        assert_eq!(schedule.untaken(Instant(86_400_000_000_000)), 86_400 * 86_400);
    }

    #[test]
    fn poisson_arrivals_of_a_course_are_exponential_on_the_scale_of_its_integral() {
        let course = steps_and_ramps();
        let beyond = (0..50).filter(|&seed| {
            let mut arrivals = PoissonArrivals::new(Stages::new(&course), seed);
            let mut last = 0.0;
            let gaps = (0..20_000).map(|_| {
                let due = course.ios_before(Span(arrivals.next_ns() as u64));
                due - std::mem::replace(&mut last, due)
            });
            distance_of_gaps(gaps.collect()) > 1.0
        });
        assert!(beyond.count() <= 4);
    }

    #[test]
    fn poisson_offers_every_stage_of_a_course_without_bias() {
        let course = steps_and_ramps();
        let stages = [(0, 5), (5, 10), (10, 12), (12, 15), (15, 20), (20, 25)];
        let (seeds, mut errors) = (30, stages.map(|_| Vec::new()));
        for seed in 0..seeds {
            let mut schedule =
                OpenLoop::new(Instant(0), PoissonArrivals::new(Stages::new(&course), seed));
            for ((from, to), errors) in stages.into_iter().zip(&mut errors) {
                let [from, to] = [from, to].map(Span::from_secs);
                let last = Instant(to.0 - 1);
                let count = std::iter::from_fn(|| schedule.take(last)).count() as f64;
                let expected = course.ios_before(to) - course.ios_before(from);
                match expected > 0.0 {
                    true => errors.push((count - expected) / expected.sqrt()),
                    false => assert!(count == 0.0, "nothing falls due in a pause"),
                }
            }
        }
        for (errors, stage) in errors.iter().zip(stages).filter(|(errors, _)| !errors.is_empty()) {
            let beyond = errors.iter().filter(|error| error.abs() > 3.0).count();
            assert!(beyond <= 2, "{stage:?}: {beyond}");
            let mean = errors.iter().sum::<f64>() / seeds as f64;
            assert!(mean.abs() < 3.0 / (seeds as f64).sqrt(), "{stage:?}: {mean}");
        }
    }

    #[test]
    fn the_rest_of_an_overloaded_course_is_counted_at_once() {
        let day = course(&[(43_200, 0.0, 1e9), (43_200, 1e9, 0.0)]);
        let mut poisson = OpenLoop::new(Instant(0), PoissonArrivals::new(Stages::new(&day), 1));
        let due = poisson.untaken(Instant(86_400_000_000_000));
        assert!(due.abs_diff(43_200_000_000_000) < 10, "{due}");
    }
}
