//! `fathom run`: a workload on the named targets.

use fathom_core::experiment::{Experiment, Forecast, PointSequence};
use fathom_engine::sim;
use fathom_report::document::Command;

use super::measure::{self, Work};
use super::outputs::Outputs;
use super::place;
use super::{opened, settled};
use super::{preview, rehearsal};
use crate::cli::args::Run;
use crate::error::{Error, exit};
use crate::live::Live;
use crate::output;
use crate::resolve;
use crate::workload::Asked;

/// Runs it.
///
/// # Errors
///
/// When the command line, a target or the result file does not allow it.
pub fn perform(args: &Run) -> Result<u8, Error> {
    if args.request.targets.iter().any(|path| place::asks_for_help(path)) {
        output::say_text(sim::help().trim_end())?;
        return Ok(exit::MEASURED);
    }
    args.results.leave_stdout();
    let mut asked = Asked::read(&args.request)?;
    let (place, host, spec) = settled::settle(&mut asked)?;
    let spec =
        resolve::consent::permit(spec, &asked.described).map_err(|e| asked.explain_whole(e))?;
    opened::tell_users([(&place, &spec)]);
    if args.watch && matches!(place, place::Place::Simulated { .. }) {
        let problem = "a simulated device has no requests of the kernel that could be watched";
        return Err(Error::option("--watch", problem, "leave it out, or name a file or a device"));
    }
    let opened = opened::open(&place, &spec)?;
    let (mut outputs, mut journal) =
        Outputs::create("run", &spec.targets[0].name, &args.results, false)?;
    let repeats = args.repeated.repeats;
    for line in preview::announcement(&spec, &opened, repeats) {
        output::say_folded(&line)?;
    }
    let mut experiment = PointSequence::new(spec.points.clone()).repeated(repeats);
    let Forecast { points, time, .. } = experiment.forecast();
    if let Some(line) = rehearsal::forecast(&place, &spec.points[0], time) {
        output::say_folded(&line)?;
    }
    preview::warn_of_void(&spec, &host)?;
    let mut live = Live::new(points as usize, time);
    let work = Work {
        command: Command::Run,
        host: &host,
        spec: &spec,
        opened: &opened,
        experiment: &mut experiment,
        seed: spec.points[0].seed,
        trace: outputs.trace(),
        watches: args.watch,
    };
    let outcome = measure::measure(work, &mut journal, &mut live);
    measure::finish(outcome, &outputs, journal, |_| Ok(()))
}
