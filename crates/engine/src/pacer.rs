//! How a worker waits until an I/O completes or falls due: it spins if sleeping would distort the
//! measurement, and sleeps if it makes no difference.
//!
//! - Before a deadline it sleeps until a margin before it and spins for the rest, because a sleeping
//!   thread wakes up late. The margin follows the wake-ups that are seen.
//! - With I/Os in flight a worker of an open loop spins, because a sleep would make the service
//!   time longer by a wake-up. It does so for a bounded time: an I/O that takes longer than that
//!   becomes longer by at most `SLEEP_SHARE` of itself.
//! - With real-time priority it rests often enough that the kernel never has to stop it.
//!
//! The rules are plain arithmetic on times that come in as arguments; only `Pacer` looks at a
//! clock.

use fathom_core::measure::Waits;
use fathom_core::{Instant, Span};
use rustix::thread::NanosleepRelativeResult;

use crate::clock::{self, Clock};
use crate::host::own_cpu;

/// How long before its due time an I/O is prepared while no I/O is in flight: after a sleep the
/// code and the data for it have to come from memory first, which takes some microseconds and would
/// make the I/O late. Nothing is missed in that time, because no I/O can complete.
pub(crate) const PREPARES_EARLY: Span = Span::from_us(4);

/// A worker spins with I/Os in flight for as long as this many wake-ups take: the next wake-up then
/// adds at most 1/50 = 2 % to an I/O that took longer.
const SLEEP_SHARE: u64 = 50;
/// It never spins longer than this: on a machine whose wake-ups take longer than 100 us no time is
/// exact, and other programs make better use of the CPU.
const LONGEST_SPIN: Span = Span::from_ms(5);
/// A sleep shorter than this costs more than it saves.
const SHORTEST_SLEEP: Span = Span::from_us(10);

/// The next step of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The deadline has passed.
    Over,
    /// Sleeping is not allowed now: check again at once.
    Spin,
    /// There is time for a sleep of this length.
    Sleep(Span),
}

/// The settings of a worker's waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// The median wake-up of this host; none if such lateness does no harm.
    pub wake_up: Option<Span>,
    /// Whether to spin while I/Os are in flight.
    pub spins_in_flight: bool,
    /// The share of each second, in thousandths, that the kernel leaves to real-time priority, if
    /// the worker has it.
    pub realtime: Option<u32>,
}

/// The waiting of one worker, on the worker's own thread.
#[derive(Debug)]
pub(crate) struct Pacer {
    clock: Clock,
    margin: Margin,
    /// How long a wait with I/Os in flight spins before it sleeps.
    spin_in_flight: Span,
    rests: Option<Rests>,
    /// When the current wait began; none until it first reads the clock.
    began: Option<Instant>,
    /// The planned end of the current sleep.
    asleep_until: Instant,
}

impl Pacer {
    /// The waiting of a worker without any history.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            margin: Margin::new(Margin::UNKNOWN),
            spin_in_flight: Span(0),
            rests: None,
            began: None,
            asleep_until: Instant(0),
        }
    }

    /// Waits like this from now on.
    pub(crate) fn set(&mut self, pace: Pace) {
        let twice = |wake_up: Span| Span(wake_up.0.saturating_mul(2));
        self.margin = Margin::new(pace.wake_up.map_or(Margin::UNKNOWN, twice));
        self.spin_in_flight = match pace.wake_up {
            Some(wake_up) if pace.spins_in_flight => longest_spin(wake_up),
            _ => Span(0),
        };
        self.rests = pace.realtime.map(|share| Rests::new(share, self.clock.now(), own_cpu()));
    }

    /// How it waits now.
    pub(crate) fn facts(&self) -> Waits {
        Waits { margin: self.margin.span(), spin_in_flight: self.spin_in_flight }
    }

    /// A wait begins: to be called once for each wait, even for those that neither sleep nor spin.
    /// Otherwise, with real-time priority, a target that answers at once would keep the CPU for
    /// itself.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.began = None;
        if self.rests.is_some() {
            self.rest_if_due();
        }
    }

    /// The next step that avoids being late for `deadline`.
    #[inline]
    pub(crate) fn step(&mut self, deadline: Instant, in_flight: bool) -> Wait {
        let now = self.clock.now();
        let began = *self.began.get_or_insert(now);
        let spin_until = match in_flight {
            true => began + self.spin_in_flight,
            false => Instant(0),
        };
        let wait = divide(now, deadline, spin_until, self.margin.span());
        if let Wait::Sleep(span) = wait {
            self.asleep_until = now + span;
        }
        wait
    }

    /// To be called when a sleep is over for any reason: learns from a sleep that took too long,
    /// and returns whether something ended it before its time.
    #[inline]
    pub(crate) fn woke(&mut self) -> bool {
        let now = self.clock.now();
        let early = now < self.asleep_until;
        if !early {
            self.margin.observe(now.since(self.asleep_until));
        }
        early
    }

    /// Sleeps and spins until `deadline`, with no I/O in flight. Returns earlier when a signal
    /// came.
    pub(crate) fn sleep_until(&mut self, deadline: Instant) {
        loop {
            match self.step(deadline, false) {
                Wait::Over => return,
                Wait::Spin => std::hint::spin_loop(),
                Wait::Sleep(span) => {
                    let result = rustix::thread::nanosleep(&clock::timespec(span));
                    self.woke();
                    if !matches!(result, NanosleepRelativeResult::Ok) {
                        return;
                    }
                }
            }
        }
    }

    /// Keeps off the CPU for a moment if real-time priority demands it.
    #[cold]
    fn rest_if_due(&mut self) {
        let now = self.clock.now();
        let Some(rests) = self.rests.as_mut().filter(|rests| rests.looks_at <= now) else { return };
        if let Some(span) = rests.due(now, own_cpu()) {
            // A rest that a signal ends early is made up for at the next check.
            let _ = rustix::thread::nanosleep(&clock::timespec(span));
        }
    }
}

/// Divides the time until a deadline: spinning until `spin_until` and within the margin, sleeping
/// between.
#[inline]
fn divide(now: Instant, deadline: Instant, spin_until: Instant, margin: Span) -> Wait {
    let remaining = deadline.since(now);
    if remaining == Span(0) {
        return Wait::Over;
    }
    if now < spin_until || remaining < margin + SHORTEST_SLEEP {
        return Wait::Spin;
    }
    Wait::Sleep(remaining - margin)
}

/// How long to spin with I/Os in flight if a wake-up takes this long.
fn longest_spin(wake_up: Span) -> Span {
    Span(wake_up.0.saturating_mul(SLEEP_SHARE)).min(LONGEST_SPIN)
}

/// How long before a deadline a wait stops sleeping: all but one of a hundred sleeps end late by
/// less than this, as far as has been observed, but it is at most four times their median.
///
/// A sleep that ends later than the margin raises it by a fifth; any other sleep lowers it by a
/// 99th part of that: the two are in balance if one of a hundred is too late. One sleep can only
/// change it by this step, even if it was very late, so that a machine that is taken away for some
/// milliseconds does not make the worker spin for that long ever after.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Margin {
    ns: f64,
    /// The median wake-up, found in the same way.
    median_ns: f64,
}

impl Margin {
    /// More than the default timer slack of 50 us and a wake-up together.
    const UNKNOWN: Span = Span::from_us(100);
    const LEAST: Span = Span::from_us(2);
    /// A quarter of the time between two I/Os at 1000 per second: spinning costs a CPU.
    const MOST: Span = Span::from_us(250);
    const RAISE: f64 = 1.2;
    /// 99 of these undo one of the others.
    const LOWER: f64 = 0.998_160;
    const MEDIAN_STEP: f64 = 1.05;
    /// It is at most this many times the median: if one sleep of a hundred ends later than that,
    /// other programs have the CPU, and a worker that spins more gets it even less.
    const MOST_MEDIANS: f64 = 4.0;

    fn new(start: Span) -> Self {
        let ns = start.max(Self::LEAST).min(Self::MOST).0 as f64;
        Self { ns, median_ns: ns / 2.0 }
    }

    #[inline]
    fn span(self) -> Span {
        Span(self.ns as u64)
    }

    /// Learns from a sleep that ended this late.
    #[inline]
    fn observe(&mut self, oversleep: Span) {
        let late = oversleep.0 as f64;
        let (least, most) = (Self::LEAST.0 as f64, Self::MOST.0 as f64);
        let step = Self::MEDIAN_STEP;
        let change = if self.median_ns < late { step } else { step.recip() };
        self.median_ns = (self.median_ns * change).clamp(least / 2.0, most);
        let change = if self.ns < late { Self::RAISE } else { Self::LOWER };
        let most = most.min(Self::MOST_MEDIANS * self.median_ns);
        self.ns = (self.ns * change).clamp(least, most.max(least));
    }
}

/// Keeps a worker with real-time priority from being stopped by the kernel, which takes the CPU away
/// for tens of milliseconds from one that uses more than its share of a second. Many short rests
/// harm less.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rests {
    /// The share of the time, in thousandths, that the worker may be on the CPU.
    share: u64,
    /// CPU time that it may still use, in thousandths of a nanosecond.
    credit: i64,
    looked_at: Instant,
    /// The time of the next check.
    looks_at: Instant,
    cpu: Span,
}

impl Rests {
    /// How often the account is settled: often enough that a rest is short, and seldom enough that
    /// reading the CPU time costs nothing.
    const LOOK: Span = Span::from_ms(1);
    /// The worker uses this part of the kernel's share, in thousandths.
    const OF_ALLOWED: u64 = 975;
    /// The most that may be saved up: 5 ms of CPU.
    const MOST_CREDIT: i64 = 5_000_000 * 1000;
    /// No rest is shorter: a sleep has its own cost.
    const SHORTEST: Span = Span::from_us(50);

    fn new(allowed: u32, now: Instant, cpu: Span) -> Self {
        let share = u64::from(allowed) * Self::OF_ALLOWED / 1000;
        Self { share, credit: 0, looked_at: now, looks_at: now + Self::LOOK, cpu }
    }

    /// Settles the account, and says how long to rest.
    fn due(&mut self, now: Instant, cpu: Span) -> Option<Span> {
        let passed = now.since(self.looked_at).0.min(1_000_000_000);
        let used = (cpu - self.cpu).0.min(1_000_000_000);
        let earned = (passed * self.share) as i64;
        self.credit = (self.credit + earned - (used * 1000) as i64).min(Self::MOST_CREDIT);
        (self.looked_at, self.cpu) = (now, cpu);
        if self.credit >= 0 {
            self.looks_at = now + Self::LOOK;
            return None;
        }
        // While it rests, the share of the time that passes is earned.
        let rest = Span(self.credit.unsigned_abs() / self.share.max(1)).max(Self::SHORTEST);
        self.looks_at = now + rest + Self::LOOK;
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Span = Span::from_us(40);

    fn at(us: u64) -> Instant {
        Instant(us * 1000)
    }

    #[test]
    fn an_idle_wait_sleeps_until_the_margin_then_spins_then_ends() {
        let step = |now| divide(at(now), at(1000), at(0), MARGIN);
        assert_eq!(step(0), Wait::Sleep(Span::from_us(960)));
        assert_eq!(step(900), Wait::Sleep(Span::from_us(60)));
        // The remaining sleep is too short to be worth it.
        assert_eq!(step(951), Wait::Spin);
        assert_eq!(step(999), Wait::Spin);
        assert_eq!(step(1000), Wait::Over);
        assert_eq!(step(5000), Wait::Over);
    }

    #[test]
    fn beside_ios_in_flight_a_wait_spins_first_and_sleeps_only_when_it_gets_long() {
        let step = |now| divide(at(now), at(10_000), at(2_000), MARGIN);
        assert_eq!(step(0), Wait::Spin);
        assert_eq!(step(1_999), Wait::Spin);
        assert_eq!(step(2_000), Wait::Sleep(Span::from_us(7_960)));
        assert_eq!(step(9_970), Wait::Spin);
        assert_eq!(step(10_000), Wait::Over);
    }

    #[test]
    fn what_is_slept_through_is_at_least_fifty_wake_ups_long() {
        assert_eq!(longest_spin(Span::from_us(30)), Span::from_us(1_500));
        assert_eq!(longest_spin(Span::from_us(3)), Span::from_us(150));
        assert_eq!(longest_spin(Span::from_ms(3)), Span::from_ms(5));
        let mut pacer = Pacer::new(Clock::default());
        let pace = |wake_up, spins_in_flight| Pace { wake_up, spins_in_flight, realtime: None };
        for (set, spins, margin) in [
            (pace(Some(Span::from_us(20)), true), Span::from_ms(1), Span::from_us(40)),
            (pace(Some(Span::from_us(20)), false), Span(0), Span::from_us(40)),
            (pace(None, true), Span(0), Margin::UNKNOWN),
        ] {
            pacer.set(set);
            assert_eq!(pacer.facts(), Waits { spin_in_flight: spins, margin });
        }
    }

    /// Numbers from 0 to 1 that look independent.
    fn chances() -> impl Iterator<Item = f64> {
        let mut state: u64 = 1;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        })
    }

    /// The share of sleeps that end later than the margin, after the margin had time to settle.
    fn too_late(oversleep: impl Fn(f64) -> f64) -> (f64, Margin) {
        let mut margin = Margin::new(Margin::UNKNOWN);
        let mut late = 0;
        for (index, chance) in chances().take(110_000).enumerate() {
            let span = Span((oversleep(chance) * 1000.0) as u64);
            late += u32::from(index >= 10_000 && margin.span() < span);
            margin.observe(span);
        }
        (f64::from(late) / 100_000.0, margin)
    }

    #[test]
    fn the_margin_settles_where_one_sleep_of_a_hundred_is_too_late() {
        // From 20 to 60 us, uniformly distributed: the p99 is 59.6 us.
        let (late, margin) = too_late(|chance| 20.0 + 40.0 * chance);
        assert!((0.005..0.02).contains(&late), "{late} {margin:?}");
        assert!((48_000.0..75_000.0).contains(&margin.ns), "{margin:?}");
        // 10 us plus an exponential time with a mean of 10 us: the p99 is 56 us.
        let (late, margin) = too_late(|chance| 10.0 - 10.0 * (1.0 - chance).ln());
        assert!((0.005..0.02).contains(&late), "{late} {margin:?}");
        assert!((40_000.0..75_000.0).contains(&margin.ns), "{margin:?}");
    }

    #[test]
    fn where_other_programs_have_the_cpu_the_margin_follows_the_median() {
        // One of ten sleeps ends milliseconds late.
        let (_, margin) = too_late(|chance| if chance < 0.9 { 20.0 + 10.0 * chance } else { 4e3 });
        assert!((70_000.0..120_000.0).contains(&margin.ns), "{margin:?}");
    }

    #[test]
    fn the_margin_has_bounds_and_a_stall_moves_it_little() {
        let mut margin = Margin::new(Span::from_us(50));
        margin.observe(Span::from_ms(30));
        assert_eq!(margin.span(), Span::from_us(60));
        margin.observe(Span::from_us(20));
        assert!(Span::from_us(59) < margin.span() && margin.span() < Span::from_us(60));
        (0..1000).for_each(|_| margin.observe(Span::from_ms(30)));
        assert_eq!(margin.span(), Margin::MOST);
        (0..10_000).for_each(|_| margin.observe(Span(0)));
        assert_eq!(margin.span(), Margin::LEAST);
        assert_eq!(Margin::new(Span(0)).span(), Margin::LEAST);
        assert_eq!(Margin::new(Span::from_secs(1)).span(), Margin::MOST);
        // 99 sleeps in time compensate for one that was late.
        assert!((Margin::RAISE * Margin::LOWER.powi(99) - 1.0).abs() < 1e-3);
    }

    /// Runs through `seconds` of a worker that would always be on the CPU. Returns the most CPU
    /// time that it used in any second, and the longest rest.
    fn always_busy(allowed: u32, overslept: Span) -> (Span, Span) {
        let (mut now, mut cpu) = (Instant(0), Span(0));
        let mut rests = Rests::new(allowed, now, cpu);
        let mut longest = Span(0);
        let mut at_second = Vec::from([cpu]);
        for second in 1..=10u64 {
            while now < Instant(second * 1_000_000_000) {
                let busy = rests.looks_at.since(now).max(Span(1));
                (now, cpu) = (now + busy, cpu + busy);
                if let Some(rest) = rests.due(now, cpu) {
                    longest = longest.max(rest);
                    now = now + rest + overslept;
                }
            }
            at_second.push(cpu);
        }
        let most = at_second.windows(2).map(|pair| pair[1] - pair[0]).max();
        (most.unwrap_or_default(), longest)
    }

    #[test]
    fn a_busy_worker_rests_before_the_kernel_would_stop_it() {
        // The kernel's default: 950 of 1000.
        for overslept in [Span(0), Span::from_us(60), Span::from_ms(4)] {
            let (used, longest) = always_busy(950, overslept);
            assert!(used < Span::from_ms(932), "{used}");
            assert!(longest <= Span::from_us(200), "{longest}");
        }
        // It does not rest more than necessary.
        assert!(Span::from_ms(920) < always_busy(950, Span(0)).0);
        let (used, _) = always_busy(300, Span(0));
        assert!(used < Span::from_ms(298), "{used}");
    }

    #[test]
    fn a_worker_that_sleeps_by_itself_never_rests() {
        let (mut now, mut cpu) = (Instant(0), Span(0));
        let mut rests = Rests::new(950, now, cpu);
        for _ in 0..1000 {
            (now, cpu) = (now + Span::from_us(1500), cpu + Span::from_us(1200));
            assert_eq!(rests.due(now, cpu), None);
        }
        // Its savings are limited to some milliseconds.
        (now, cpu) = (now + Span::from_ms(200), cpu + Span::from_ms(200));
        assert!(rests.due(now, cpu).is_some());
    }

    #[test]
    fn a_deadline_is_not_missed_by_returning_early() {
        let mut pacer = Pacer::new(Clock::default());
        let wake_up = Some(Span::from_us(5));
        pacer.set(Pace { wake_up, spins_in_flight: true, realtime: None });
        let deadline = pacer.clock.now() + Span::from_ms(3);
        pacer.sleep_until(deadline);
        assert!(deadline <= pacer.clock.now());
    }
}
