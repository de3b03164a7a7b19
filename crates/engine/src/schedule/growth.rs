//! How the number of I/Os that are due grows over time: a schedule inverts it to find out when each
//! of them falls due. In closed form and from the start of the load, so that no error accumulates.

use fathom_core::Rate;
use fathom_core::spec::Course;

/// The number of I/Os that are due as a function of time, and its inverse. Both are continuous and
/// never fall; numbers of I/Os have fractions.
pub(crate) trait Growth: Send {
    /// The nanosecond, from the start of the load, at which this many I/Os are due; infinite if
    /// never.
    fn reached(&self, ios: f64) -> f64;

    /// The same for numbers that never fall from call to call, which an implementation may use.
    #[inline]
    fn next_reached(&mut self, ios: f64) -> f64 {
        self.reached(ios)
    }

    /// How many are due after this many nanoseconds.
    fn by(&self, ns: f64) -> f64;
}

/// A constant rate.
pub(crate) struct Steady {
    period_ns: f64,
}

impl Steady {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { period_ns: rate.period_ns() }
    }
}

impl Growth for Steady {
    #[inline]
    fn reached(&self, ios: f64) -> f64 {
        ios * self.period_ns
    }

    fn by(&self, ns: f64) -> f64 {
        ns / self.period_ns
    }
}

/// A part of a course in which the rate is a straight line.
#[derive(Clone, Copy, Debug)]
struct LinearPiece {
    /// Its beginning, in nanoseconds.
    from_ns: f64,
    /// Its length, in nanoseconds.
    lasts_ns: f64,
    /// The number of I/Os that are due before it.
    before: f64,
    /// The rate at its beginning, in I/Os per nanosecond.
    rate: f64,
    /// The change of the rate with each nanosecond.
    slope: f64,
}

impl LinearPiece {
    /// When this many are due, of which some are due in this piece: the root of `rate t + slope t^2
    /// / 2 = ios`, in the form in which no two large numbers are subtracted.
    #[inline]
    fn reached(&self, ios: f64) -> f64 {
        let ios = ios - self.before;
        let root = (self.rate * self.rate + 2.0 * self.slope * ios).max(0.0).sqrt();
        let divisor = self.rate + root;
        if divisor <= 0.0 {
            // The very beginning of a ramp from zero; otherwise the rate stays zero, and no more
            // I/Os fall due.
            return if self.slope > 0.0 { self.from_ns } else { f64::INFINITY };
        }
        self.from_ns + (2.0 * ios / divisor).min(self.lasts_ns)
    }

    fn ios(&self, ns: f64) -> f64 {
        (self.rate + self.slope * ns / 2.0) * ns
    }
}

/// A rate with steps and ramps.
pub(crate) struct Stages {
    /// In their order; the last one lasts forever.
    pieces: Box<[LinearPiece]>,
    /// The one that the last number fell into.
    current: usize,
}

impl Stages {
    pub(crate) fn new(course: &Course) -> Self {
        let (mut from_ns, mut before) = (0.0, 0.0);
        let mut pieces = Vec::with_capacity(course.stages().len() + 1);
        let mut add = |lasts_ns: f64, begins: Rate, ends: Rate| {
            let rate = begins.0 / 1e9;
            let slope = (ends.0 - begins.0) / 1e9 / lasts_ns;
            let piece = LinearPiece { from_ns, lasts_ns, before, rate, slope };
            (from_ns, before) = (from_ns + lasts_ns, before + piece.ios(lasts_ns));
            pieces.push(piece);
        };
        for stage in course.stages().iter().filter(|stage| stage.lasts.0 > 0) {
            add(stage.lasts.0 as f64, stage.begins, stage.ends);
        }
        add(f64::INFINITY, course.held(), course.held());
        Self { pieces: pieces.into(), current: 0 }
    }
}

impl Growth for Stages {
    fn reached(&self, ios: f64) -> f64 {
        // The first piece begins with nothing before it.
        let after = self.pieces.partition_point(|piece| piece.before <= ios);
        self.pieces[after.max(1) - 1].reached(ios)
    }

    #[inline]
    fn next_reached(&mut self, ios: f64) -> f64 {
        // A piece in which no I/O is due is skipped: the next one begins with the same number.
        while let Some(next) = self.pieces.get(self.current + 1)
            && next.before <= ios
        {
            self.current += 1;
        }
        self.pieces[self.current].reached(ios)
    }

    fn by(&self, ns: f64) -> f64 {
        let after = self.pieces.partition_point(|piece| piece.from_ns <= ns);
        let piece = &self.pieces[after.max(1) - 1];
        piece.before + piece.ios(ns - piece.from_ns)
    }
}

/// Stages of this many seconds with the rates at their beginnings and ends.
#[cfg(test)]
pub(super) fn course(stages: &[(u64, f64, f64)]) -> Course {
    let stage = |&(seconds, begins, ends): &(u64, f64, f64)| fathom_core::spec::Stage {
        lasts: fathom_core::Span::from_secs(seconds),
        begins: Rate(begins),
        ends: Rate(ends),
    };
    Course::new(stages.iter().map(stage).collect())
}

#[cfg(test)]
mod tests {
    use fathom_core::Span;

    use super::*;

    #[test]
    fn the_inverse_of_a_course_is_its_inverse() {
        let all = [
            course(&[(10, 1e3, 1e3), (60, 1e3, 5e4), (0, 5e4, 5e4)]),
            course(&[(1, 0.0, 1e6), (1, 1e6, 0.0), (5, 0.0, 0.0), (1, 3.0, 3.0)]),
            course(&[(43_200, 1e5, 1.0), (43_200, 1.0, 1e5)]),
        ];
        for course in all {
            let mut stages = Stages::new(&course);
            for step in 0..=1000 {
                let at = Span(course.length().0 / 800 * step);
                let ios = stages.by(at.0 as f64);
                let exact = course.ios_before(at);
                assert!((ios - exact).abs() <= 1e-12 * exact.max(1.0), "{course}: {ios} {exact}");
                // Where nothing falls due for a while, the count was reached before that time.
                let reached = stages.next_reached(ios);
                assert_eq!(reached.to_bits(), stages.reached(ios).to_bits());
                assert!((stages.by(reached) - ios).abs() <= 1e-9 * ios.max(1.0), "{course} {at}");
            }
        }
    }

    #[test]
    fn a_course_that_ends_at_nothing_reaches_no_more() {
        let mut stages = Stages::new(&course(&[(1, 10.0, 10.0), (1, 10.0, 0.0), (0, 0.0, 0.0)]));
        assert!((stages.next_reached(12.0) - 1.225_403_330_758_516_6e9).abs() < 1.0);
        assert_eq!(stages.next_reached(15.0), f64::INFINITY);
        assert_eq!(stages.reached(1e9), f64::INFINITY);
        assert!((stages.by(1e18) - 15.0).abs() < 1e-9);
    }
}
