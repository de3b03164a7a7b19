//! From a spec whose targets are open to an outcome, and to the exit code.

use fathom_core::experiment::{Conclusion, Experiment, PointSequence};
use fathom_core::facts::Host;
use fathom_core::verdict::Verdict;
use fathom_report::document::{self, Ended};

use super::opened::{self, Opened};
use super::outputs::{self, Outputs};
use super::place::Place;
use crate::error::{Error, exit};
use crate::journal::Journal;
use crate::live::Live;
use crate::resolve::Spec;
use crate::session::{self, Course, Machines, Outcome, Session};
use crate::trace::TraceFile;
use crate::{contents, signals};

/// The inputs of a session.
pub struct Work<'a> {
    /// The command, for the document.
    pub command: document::Command,
    /// The machine.
    pub host: &'a Host,
    /// The spec.
    pub spec: &'a Spec,
    /// The open targets.
    pub opened: &'a Opened,
    /// The order of the points.
    pub experiment: &'a mut dyn Experiment,
    /// Repeats it.
    pub seed: u64,
    /// The trace, if one was requested.
    pub trace: Option<&'a mut TraceFile>,
    /// Whether the requests of its I/Os are watched.
    pub watches: bool,
}

/// Measures: from the header to the conclusion.
///
/// # Errors
///
/// When the machine or the result file does not allow it.
pub fn measure(work: Work<'_>, journal: &mut Journal, live: &mut Live) -> Result<Outcome, Error> {
    let Work { command, host, spec, mut opened, experiment, seed, trace, watches } = work;
    signals::be_orderly();
    let host = Host { ceiling: opened.ceiling(), ..host.clone() };
    let points = experiment.forecast().points;
    let targets = contents::looked_at(&spec.targets, [(&*spec.targets, &*spec.points)], seed);
    session::begin(journal, command, Machines::one(&host, &targets), seed, points, None)?;
    let mut session = Session { host: &host, targets: &targets, carrier: &mut opened };
    let course = Course::of_experiment(trace, points).watching(watches);
    let outcome = session.run(experiment, course, journal, live);
    live.finish();
    outcome
}

/// Ends a run: shows and writes its result, and something beside it, and decides the exit code. After a
/// failure it says where the figures from before are.
///
/// # Errors
///
/// That of the run, or when the result or a report cannot be written.
pub fn finish(
    outcome: Result<Outcome, Error>,
    outputs: &Outputs,
    mut journal: Journal,
    also: impl FnOnce(&Journal) -> Result<(), Error>,
) -> Result<u8, Error> {
    match outcome {
        Ok(outcome) => {
            outputs.finish(&mut journal, also)?;
            Ok(exit_code(&outcome))
        }
        Err(error) => {
            outputs::after_failure(journal);
            Err(error)
        }
    }
}

/// Measures one spec after the other into one result, each on targets that are opened for it.
///
/// # Errors
///
/// When the machine or the result file does not allow it.
pub fn measure_each(
    command: document::Command,
    host: &Host,
    (place, specs): (&Place, &[Spec]),
    (journal, trace): (&mut Journal, Option<&mut TraceFile>),
    live: &mut Live,
) -> Result<Outcome, Error> {
    signals::be_orderly();
    let mut course = Course::new(trace);
    let mut ended = (Ended::Completed, Conclusion::default());
    for (index, spec) in specs.iter().enumerate() {
        let opened = match opened::open(place, spec) {
            Ok(opened) => opened,
            Err(error) if index == 0 => return Err(error),
            Err(error) => {
                let sentences = Vec::from([error.to_string()]);
                let concluded = Conclusion { sentences, found: None };
                session::conclude(journal, Ended::Failed, &concluded)?;
                return Err(error);
            }
        };
        let seed = spec.points[0].seed;
        let targets = contents::looked_at(&spec.targets, [(&*spec.targets, &*spec.points)], seed);
        if index == 0 {
            let host = Host { ceiling: opened.ceiling(), ..host.clone() };
            let points = specs.len() as u32;
            session::begin(journal, command, Machines::one(&host, &targets), seed, points, None)?;
        }
        let mut carrier = &opened;
        let mut session = Session { host, targets: &targets, carrier: &mut carrier };
        let mut experiment = PointSequence::new(spec.points.clone());
        ended = session.trials(&mut experiment, None, &mut course, journal, live)?;
        if ended.0 != Ended::Completed {
            break;
        }
    }
    live.finish();
    let (ended, concluded) = ended;
    course.conclude(ended, &concluded, journal)
}

/// The exit of a process that has measured.
pub fn exit_code(outcome: &Outcome) -> u8 {
    match (outcome.signal, outcome.verdict) {
        (Some(signal), _) => exit::SIGNAL + signal as u8,
        (None, Verdict::Void) => exit::VOID,
        (None, Verdict::Suspect | Verdict::Sound) => exit::MEASURED,
    }
}
