//! How an open loop's offered load changes over time: steps and ramps.
//!
//! Pure arithmetic, in closed form: what lies before an instant is the integral of the rate from the
//! course's beginning, so that neither a step nor a day of ramps can make a schedule drift.

use std::fmt;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{Rate, Span};

/// The offered load as it changes over time, stage by stage. After its last stage it stays as that
/// ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Course {
    #[serde(deserialize_with = "possible_stages")]
    stages: Vec<Stage>,
}

/// A part of a course in which the rate stays the same or changes in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// How long it lasts; a step to a rate that is then held lasts no time.
    #[serde(rename = "lasts_ns")]
    pub lasts: Span,
    /// The rate at its beginning, from 0 up.
    #[serde(rename = "begins_iops")]
    pub begins: Rate,
    /// The rate at its end, from 0 up.
    #[serde(rename = "ends_iops")]
    pub ends: Rate,
}

/// Reads the stages of a course, and refuses what [`Course::new`] would.
fn possible_stages<'de, D: Deserializer<'de>>(file: D) -> Result<Vec<Stage>, D::Error> {
    let stages = Vec::deserialize(file)?;
    match Course::can_be(&stages) {
        true => Ok(stages),
        false => Err(D::Error::custom("a course has stages, with rates from 0 up")),
    }
}

impl Stage {
    /// The same rate all the time.
    pub fn steady(rate: Rate, lasts: Span) -> Self {
        Self { lasts, begins: rate, ends: rate }
    }

    /// I/Os that fall due in this number of seconds from its beginning.
    fn ios(&self, seconds: f64) -> f64 {
        let lasts = self.lasts.as_secs_f64();
        let change = if lasts > 0.0 { (self.ends.0 - self.begins.0) / lasts } else { 0.0 };
        (self.begins.0 + change * seconds / 2.0) * seconds
    }
}

impl Course {
    /// Whether these are the stages of a course: at least one, with rates from 0 up.
    pub fn can_be(stages: &[Stage]) -> bool {
        let possible = |rate: Rate| rate.0.is_finite() && rate.0 >= 0.0;
        let each = stages.iter().all(|stage| possible(stage.begins) && possible(stage.ends));
        each && !stages.is_empty()
    }

    /// A course of these stages.
    ///
    /// # Panics
    ///
    /// Without a stage, or with a rate that is not a number from 0 up, which resolving a spec rules
    /// out.
    pub fn new(stages: Vec<Stage>) -> Self {
        assert!(Self::can_be(&stages));
        Self { stages }
    }

    /// Its stages, at least one.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The time until its last stage has ended.
    pub fn length(&self) -> Span {
        self.stages.iter().fold(Span(0), |sum, stage| sum + stage.lasts)
    }

    /// The rate that is held after the last stage.
    pub fn held(&self) -> Rate {
        self.stages.last().map_or(Rate(0.0), |stage| stage.ends)
    }

    /// The highest rate that it ever comes to.
    pub fn highest(&self) -> Rate {
        let rates = self.stages.iter().flat_map(|stage| [stage.begins.0, stage.ends.0]);
        Rate(rates.fold(0.0, f64::max))
    }

    /// I/Os that fall due before `end`, counted from the beginning, in fractions of one.
    pub fn ios_before(&self, end: Span) -> f64 {
        let mut ios = 0.0;
        let mut left = end;
        for stage in &self.stages {
            ios += stage.ios(left.min(stage.lasts).as_secs_f64());
            left = left - stage.lasts;
        }
        ios + self.held().0 * left.as_secs_f64()
    }

    /// The mean rate between two instants, the later one second; the rate there if they are one.
    pub fn mean(&self, from: Span, to: Span) -> Rate {
        match to - from {
            Span(0) => self.at(from),
            span => Rate((self.ios_before(to) - self.ios_before(from)) / span.as_secs_f64()),
        }
    }

    /// The rate at an instant; at a step that after it.
    fn at(&self, instant: Span) -> Rate {
        let mut left = instant;
        for stage in &self.stages {
            if left < stage.lasts {
                let share = left.0 as f64 / stage.lasts.0 as f64;
                return Rate(stage.begins.0 + (stage.ends.0 - stage.begins.0) * share);
            }
            left = left - stage.lasts;
        }
        self.held()
    }

    /// The same course with every rate multiplied: one worker's part of it, say.
    pub fn scaled(&self, factor: f64) -> Self {
        let scaled = |stage: &Stage| Stage {
            begins: Rate(stage.begins.0 * factor),
            ends: Rate(stage.ends.0 * factor),
            ..*stage
        };
        Self { stages: self.stages.iter().map(scaled).collect() }
    }

    /// The same course after a time in which the rate is already what it begins with.
    pub fn after(&self, lead: Span) -> Self {
        let before = Stage::steady(self.at(Span(0)), lead);
        Self { stages: std::iter::once(before).chain(self.stages.iter().copied()).collect() }
    }
}

impl fmt::Display for Course {
    /// "1000/s for 10 s, to 50000/s over 60 s, 2000/s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stands: Option<Rate> = None;
        for stage in &self.stages {
            if stands.is_some() {
                f.write_str(", ")?;
            }
            if stage.begins == stage.ends {
                write!(f, "{}", stage.ends)?;
            } else if stands == Some(stage.begins) {
                write!(f, "to {}", stage.ends)?;
            } else {
                write!(f, "{} to {}", stage.begins, stage.ends)?;
            }
            match (stage.lasts, stage.begins == stage.ends) {
                (Span(0), _) => {}
                (lasts, true) => write!(f, " for {lasts}")?,
                (lasts, false) => write!(f, " over {lasts}")?,
            }
            stands = Some(stage.ends);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000/s for 10 s, to 5000/s over 4 s, nothing for 2 s, 100/s.
    fn course() -> Course {
        let stage = |seconds, begins, ends| Stage {
            lasts: Span::from_secs(seconds),
            begins: Rate(begins),
            ends: Rate(ends),
        };
        Course::new(Vec::from([
            stage(10, 1000.0, 1000.0),
            stage(4, 1000.0, 5000.0),
            stage(2, 0.0, 0.0),
            stage(0, 100.0, 100.0),
        ]))
    }

    #[test]
    fn what_falls_due_is_the_integral_of_the_rate() {
        let course = course();
        for (ms, ios) in [
            (0, 0.0),
            (500, 500.0),
            (10_000, 10_000.0),
            // Half of the ramp: from 1000/s to 3000/s in 2 s.
            (12_000, 14_000.0),
            (14_000, 22_000.0),
            (16_000, 22_000.0),
            (26_000, 23_000.0),
        ] {
            assert!((course.ios_before(Span::from_ms(ms)) - ios).abs() < 1e-9, "{ms}");
        }
        assert_eq!(course.length(), Span::from_secs(16));
        assert_eq!((course.held(), course.highest()), (Rate(100.0), Rate(5000.0)));
        let mean = |from, to| course.mean(Span::from_secs(from), Span::from_secs(to)).0;
        assert!((mean(0, 16) - 22_000.0 / 16.0).abs() < 1e-9);
        assert!((mean(14, 16)).abs() < 1e-9);
        assert!((mean(12, 12) - 3000.0).abs() < 1e-9 && (mean(14, 14)).abs() < 1e-9);
        assert!((course.scaled(0.25).ios_before(Span::from_secs(14)) - 5500.0).abs() < 1e-9);
    }

    #[test]
    fn the_time_before_a_course_has_the_rate_that_it_begins_with() {
        let later = course().after(Span::from_secs(3));
        assert!((later.ios_before(Span::from_secs(3)) - 3000.0).abs() < 1e-9);
        assert!((later.ios_before(Span::from_secs(17)) - 25_000.0).abs() < 1e-9);
        assert_eq!(later.length(), Span::from_secs(19));
    }

    #[test]
    fn a_course_shows_itself_as_it_is_typed() {
        assert_eq!(course().to_string(), "1000/s for 10 s, to 5000/s over 4 s, 0/s for 2 s, 100/s");
        let ramp = Stage { lasts: Span::from_secs(60), begins: Rate(0.0), ends: Rate(50.0) };
        assert_eq!(Course::new(Vec::from([ramp])).to_string(), "0/s to 50/s over 60 s");
    }
}
