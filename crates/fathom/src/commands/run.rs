//! `fathom run`: one workload on the targets that were named.

use fathom_core::experiment::Sequence;
use fathom_core::spec::{Pacing, Point, Stream};
use fathom_core::{Bytes, Span};
use fathom_engine::sim;
use fathom_report::document::{Command, Document};
use fathom_report::terminal;

use super::shared::{self, Opened, Outputs, Place, Work};
use crate::cli::args::Run;
use crate::cli::resolve::{self, Spec};
use crate::error::{Error, exit};
use crate::live::{Live, clock};
use crate::output;

/// Runs it.
///
/// # Errors
///
/// When the command line, a target or the result file does not allow it.
pub fn perform(args: &Run) -> Result<u8, Error> {
    if args.targets.iter().any(|path| shared::asks_for_help(path)) {
        output::say(sim::help().trim_end())?;
        return Ok(exit::MEASURED);
    }
    if args.results.json {
        output::leave_stdout_to_the_document();
    }
    let place = Place::find(&args.targets)?;
    let host = shared::this_host();
    let spec = resolve::run(args, place.facts(), shared::machine(&host))?;
    let opened = shared::open(&place, &spec)?;
    let (outputs, mut journal) =
        Outputs::create("run", &spec.targets[0].name, &args.results, false)?;
    for line in announcement(&spec, &opened) {
        output::say(&output::printable(&line))?;
    }
    let mut live = Live::new(spec.points.len(), spec.time());
    let work = Work {
        command: Command::Run,
        host: &host,
        spec: &spec,
        opened: &opened,
        experiment: &mut Sequence::new(spec.points.clone()),
        seed: spec.points[0].seed,
    };
    match shared::measure(work, &mut journal, &mut live) {
        Ok(outcome) => {
            outputs.finish(&journal, &render)?;
            Ok(shared::exit_code(&outcome))
        }
        Err(error) => {
            shared::after_failure(journal);
            Err(error)
        }
    }
}

fn render(document: &Document) -> String {
    terminal::document(document, &shared::style())
}

/// What will happen, before it does.
fn announcement(spec: &Spec, opened: &Opened) -> Vec<String> {
    let point = &spec.points[0];
    let stream = &point.streams[0];
    let names: Vec<&str> = spec.targets.iter().map(|target| target.name.as_str()).collect();
    let warm_up = match point.warm_up {
        Span(0) => "no warm-up".to_owned(),
        warm_up => format!("{warm_up} warm-up"),
    };
    let mut lines = Vec::from([
        format!("{} on {}", point.name, names.join(", ")),
        format!(
            "{} {}: {}, {} window; seed {}",
            if opened.is_simulated() { "simulates" } else { "takes" },
            clock(spec.time()),
            warm_up,
            point.window,
            point.seed
        ),
    ]);
    if spec.writes() && !opened.is_simulated() {
        lines.push(overwritten(spec, point, stream));
    }
    let (backend, reason) = opened.backend();
    lines.push(format!("backend {}: {reason}", backend.name()));
    lines
}

/// What is written to, and up to how much.
fn overwritten(spec: &Spec, point: &Point, stream: &Stream) -> String {
    let region: u64 = stream.regions.iter().map(|region| region.length.0).sum();
    let names: Vec<&str> = spec.targets.iter().map(|target| target.name.as_str()).collect();
    let amount = match stream.pacing {
        Pacing::Closed { .. } => "as much as it takes in that time".to_owned(),
        Pacing::Open { offered_load, .. } => {
            let seconds = (point.warm_up + point.window).as_secs_f64();
            let writes = offered_load.0 * seconds * (1.0 - stream.read_share);
            format!("up to {}", Bytes((writes * stream.block_size.0 as f64) as u64))
        }
    };
    format!(
        "OVERWRITES {}: {amount}, anywhere in {} from offset {}",
        names.join(", "),
        Bytes(region),
        stream.regions[0].offset
    )
}
