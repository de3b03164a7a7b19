//! When I/Os start.
//!
//! An open loop's schedule is computed from the start of the run and never looks at completions, so
//! neither a stall nor a late wake-up can slow it down: what fell due meanwhile is still due, with
//! the intended start that it had.

use fathom_core::{Instant, Rate};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Decides when the next I/O should start.
pub(crate) trait Schedule {
    /// Whether intended starts mean anything: not in a closed loop.
    const OPEN: bool;

    /// Takes the next I/O if it is due, and gives its intended start.
    fn take(&mut self, now: Instant) -> Option<Instant>;

    /// When the next I/O falls due.
    fn next_due(&self) -> Instant;

    /// How many untaken I/Os fall due before `end`.
    fn untaken(&mut self, end: Instant) -> u64;
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
}

/// Gives the distances between intended starts, in nanoseconds from the start of the run.
pub(crate) trait Arrivals {
    /// The next intended start; each call gives a later one.
    fn next_ns(&mut self) -> f64;

    /// How many more starts lie before `end_ns`, after the one that was given last. What is left of
    /// an overload may be billions, which must not be gone through one by one.
    fn count_before(&mut self, end_ns: f64) -> u64;
}

/// I/Os start when they are due, whatever completes.
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
        // What lies beyond the end of time never falls due.
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
}

/// Equal distances. Computed as a multiple, so that no rounding adds up.
pub(crate) struct Uniform {
    period_ns: f64,
    phase_ns: f64,
    taken: u64,
}

impl Uniform {
    /// Arrivals at `rate`, the first one `phase` (0 to 1) of a period after the start, so that
    /// several workers take turns rather than start together.
    pub(crate) fn new(rate: Rate, phase: f64) -> Self {
        let period_ns = rate.period_ns();
        Self { period_ns, phase_ns: phase * period_ns, taken: 0 }
    }
}

impl Arrivals for Uniform {
    #[inline]
    fn next_ns(&mut self) -> f64 {
        let next = self.phase_ns + self.taken as f64 * self.period_ns;
        self.taken += 1;
        next
    }

    fn count_before(&mut self, end_ns: f64) -> u64 {
        // Starts are whole nanoseconds, cut off: the end itself is the first that is too late.
        let all = ((end_ns - self.phase_ns) / self.period_ns).ceil().max(0.0) as u64;
        all.saturating_sub(self.taken)
    }
}

/// Exponential distances, independent of each other. The sum is kept in floating point, which after
/// a day is still exact to 1/64 of a nanosecond, so that no distance is rounded to a whole one.
pub(crate) struct Poisson {
    period_ns: f64,
    at_ns: f64,
    random: Xoshiro256PlusPlus,
}

impl Poisson {
    /// Arrivals at a mean of `rate`.
    pub(crate) fn new(rate: Rate, seed: u64) -> Self {
        Self {
            period_ns: rate.period_ns(),
            at_ns: 0.0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x0061_7272_6976_616c),
        }
    }
}

impl Arrivals for Poisson {
    #[inline]
    fn next_ns(&mut self) -> f64 {
        // 53 random bits make a number above 0 and at most 1, whose logarithm is finite.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        self.at_ns -= uniform.ln() * self.period_ns;
        self.at_ns
    }

    fn count_before(&mut self, end_ns: f64) -> u64 {
        let mut count = 0;
        // Of a million that are left, the rest of which varies by a tenth of a percent, the mean
        // says as much as drawing each of them would.
        let many = 1e6 * self.period_ns;
        while end_ns - self.at_ns <= many {
            if self.next_ns() >= end_ns {
                return count;
            }
            count += 1;
        }
        ((end_ns - self.at_ns) / self.period_ns).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_arrivals_do_not_drift() {
        // A third of a nanosecond a period would be 0.3 s after 10^9 arrivals if it were rounded.
        let mut schedule =
            OpenLoop::new(Instant(1000), Uniform { period_ns: 1e9 / 3.0, phase_ns: 0.0, taken: 0 });
        schedule.arrivals.taken = 3_000_000_000;
        schedule.advance();
        assert_eq!(schedule.next_due(), Instant(1_000_000_000_000_001_000));
    }

    #[test]
    fn a_late_look_finds_everything_that_fell_due() {
        let mut schedule = OpenLoop::new(Instant(0), Uniform::new(Rate(1000.0), 0.0));
        let late = Instant(10_000_000);
        let due: Vec<u64> = std::iter::from_fn(|| schedule.take(late)).map(|due| due.0).collect();
        assert_eq!(due, (0..=10).map(|k| k * 1_000_000).collect::<Vec<_>>());
        assert_eq!(schedule.untaken(Instant(20_000_000)), 9);
    }

    #[test]
    fn what_is_left_is_counted_as_if_it_were_taken_one_by_one() {
        for (rate, phase, end) in
            [(1000.0, 0.0, 20_000_000), (1000.0, 0.5, 20_000_001), (3.0, 0.9, 1), (7e5, 0.3, 999)]
        {
            let schedule = || OpenLoop::new(Instant(77), Uniform::new(Rate(rate), phase));
            let last = Instant(77 + end - 1);
            let mut one_by_one = schedule();
            let expected = std::iter::from_fn(|| one_by_one.take(last)).count() as u64;
            assert_eq!(schedule().untaken(Instant(77 + end)), expected, "{rate} {phase} {end}");
        }
    }

    #[test]
    fn billions_that_are_left_are_counted_at_once() {
        let (day, rate) = (Instant(86_400_000_000_000), Rate(1e9));
        let mut uniform = OpenLoop::new(Instant(0), Uniform::new(rate, 0.0));
        assert_eq!(uniform.untaken(day), 86_400_000_000_000);
        let mut poisson = OpenLoop::new(Instant(0), Poisson::new(rate, 1));
        assert!(poisson.untaken(day).abs_diff(86_400_000_000_000) < 10);
    }

    #[test]
    fn what_is_due_after_the_end_of_time_never_starts() {
        let mut schedule = OpenLoop::new(Instant(1 << 60), Poisson::new(Rate(1e-15), 1));
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
                let mut arrivals = Uniform::new(Rate(rate), phase);
                let last = (rate * 86_400.0) as u64;
                for k in [0, 1, 999, last / 1000, last / 3, last] {
                    arrivals.taken = k;
                    let exact = (k as f64 + phase) / rate * 1e9;
                    // What a day in nanoseconds can be told apart by is a 64th.
                    let error = (arrivals.next_ns() - exact).abs();
                    assert!(error <= 1.0 / 32.0, "{rate} {phase} {k}: {error}");
                }
                let mut schedule = OpenLoop::new(Instant(0), Uniform::new(Rate(rate), phase));
                let day = schedule.untaken(Instant(86_400_000_000_000));
                assert!((day as f64 - rate * 86_400.0).abs() <= 1.0, "{rate} {phase}: {day}");
            }
        }
    }

    /// The distance from the exponential distribution in units of the 1 % limit of Kolmogorov and
    /// Smirnov, of the gaps between so many arrivals.
    fn distance_from_exponential(rate: f64, seed: u64, n: u32) -> f64 {
        let mut arrivals = Poisson::new(Rate(rate), seed);
        let mut last = 0.0;
        let mut gaps: Vec<f64> = (0..n)
            .map(|_| {
                let next = arrivals.next_ns();
                (next - std::mem::replace(&mut last, next)) * rate / 1e9
            })
            .collect();
        gaps.sort_by(f64::total_cmp);
        let distances = gaps.iter().enumerate();
        let distances = distances
            .map(|(i, gap)| ((i as f64 + 0.5) / f64::from(n) - (1.0 - (-gap).exp())).abs());
        distances.fold(0.0, f64::max) / (1.63 / f64::from(n).sqrt())
    }

    #[test]
    fn poisson_distances_are_exponential_at_every_rate_and_seed() {
        for rate in RATES {
            let beyond =
                (0..50).filter(|&seed| distance_from_exponential(rate, seed, 10_000) > 1.0);
            // One of a hundred is beyond the limit by chance; more than 4 of 50 in 0.02 % of cases.
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
                let mut schedule = OpenLoop::new(Instant(0), Poisson::new(Rate(rate), seed));
                // Taken one by one, because an account of what is left may use the mean.
                let end = Instant(500_000_000);
                std::iter::from_fn(|| schedule.take(Instant(end.0 - 1))).count() as f64
            };
            let errors: Vec<f64> =
                (0..seeds).map(|seed| (count(seed) - expected) / expected.sqrt()).collect();
            // 0.27 % are beyond three standard errors by chance.
            let beyond = errors.iter().filter(|error| error.abs() > 3.0).count();
            assert!(beyond <= 4, "{rate}: {beyond}");
            let mean = errors.iter().sum::<f64>() / seeds as f64;
            let variance = errors.iter().map(|error| error * error).sum::<f64>() / seeds as f64;
            assert!(mean.abs() < 3.0 / (seeds as f64).sqrt(), "{rate}: {mean}");
            assert!((0.7..1.4).contains(&variance), "{rate}: {variance}");
        }
    }
}
