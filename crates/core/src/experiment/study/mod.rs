//! The classic studies: a sweep with a question, which its conclusion answers. The sweep decides
//! which points run.

mod access_mix;
mod best_practice;
mod drives;
mod multi_stream;
mod write_concurrency;

pub use best_practice::{BestPractice, Circumstances, tied};
pub use drives::Drives;
pub use write_concurrency::completed;

use super::sweep::{Sweep, words};
use super::{Conclusion, Experiment, Forecast, Foreseen, Step};
use crate::measure::Record;
use crate::trial::Trial;
use crate::units::Bytes;
use crate::verdict::Finding;

/// The question of a study.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// How many writers saturate a target, by block size, and whether zeros are faster.
    WriteConcurrency,
    /// How arrays scale with their disks with several sequential streams.
    MultiStream(Vec<Drives>),
    /// The cost of random access among sequential access on each drive.
    AccessMix(Vec<Drives>),
}

/// A sweep that answers a question.
#[derive(Clone, Debug)]
pub struct Study {
    sweep: Sweep,
    question: Question,
    /// The size of a full stripe of its target, if it is known.
    full_stripe: Option<Bytes>,
}

impl Study {
    /// A sweep that answers this question.
    pub fn new(sweep: Sweep, question: Question) -> Self {
        Self { sweep, question, full_stripe: None }
    }

    /// The same on a target with full stripes of this size, if it has any.
    #[must_use]
    pub fn over_stripes(self, full_stripe: Option<Bytes>) -> Self {
        Self { full_stripe, ..self }
    }

    fn answered(&self, conclusion: Conclusion) -> Conclusion {
        let sentences = match &self.question {
            Question::WriteConcurrency => {
                write_concurrency::sentences(&self.sweep, self.full_stripe)
            }
            Question::MultiStream(arrays) => multi_stream::sentences(&self.sweep, arrays),
            Question::AccessMix(drives) => access_mix::sentences(&self.sweep, drives),
        };
        // The axes may have been changed, so that the subject of the question is missing.
        let mut sentences = match sentences.is_empty() {
            true => return conclusion,
            false => sentences,
        };
        sentences.extend(words::unrepeated(&self.sweep));
        Conclusion { sentences, ..conclusion }
    }
}

impl Experiment for Study {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        match self.sweep.next(last) {
            Step::Done(conclusion) => Step::Done(self.answered(conclusion)),
            step => step,
        }
    }

    fn enough(&self, so_far: &Record) -> bool {
        self.sweep.enough(so_far)
    }

    fn foreseen(&self, most: usize) -> Vec<Foreseen> {
        self.sweep.foreseen(most)
    }

    fn doubts(&self, trial: &Trial) -> Vec<Finding> {
        self.sweep.doubts(trial)
    }

    fn meant_to_repeat(&self, trial: &Trial) -> Option<&'static str> {
        self.sweep.meant_to_repeat(trial)
    }

    fn forecast(&self) -> Forecast {
        self.sweep.forecast()
    }

    fn so_far(&self) -> Conclusion {
        self.answered(self.sweep.so_far())
    }
}
