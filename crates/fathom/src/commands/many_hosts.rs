//! `fathom run --hosts`: one load on many hosts at the same time.

use std::path::Path;

use fathom_core::experiment::PointSequence;
use fathom_core::facts::Target;
use fathom_core::figures::time;
use fathom_report::document::Command;

use super::measure;
use super::outputs::{self, Outputs};
use super::this_machine;
use crate::agent::message::PreparedHere;
use crate::cli::args::Run;
use crate::error::Error;
use crate::hosts::{Fleet, HostLoad, Router};
use crate::live::Live;
use crate::session::{self, Course, Machines, Session};
use crate::{output, signals};

/// Runs it.
///
/// # Errors
///
/// When the command line, a host, a target or the result file does not allow it.
pub fn perform(args: &Run, socket: &Path) -> Result<u8, Error> {
    refuse_what_is_local(args)?;
    if args.results.take_stdout() {
        output::leave_stdout_to_the_document();
    }
    let here = this_machine::this_host();
    let load = HostLoad::new(&args.request, this_machine::machine(&here).fresh_seed)?;
    let seed = load.seed();
    signals::be_orderly();
    let mut fleet = Fleet::gather(Router::connect(socket)?, load, 1)?;
    let prepared = fleet.prepare_first()?;
    announce(&fleet, &prepared)?;
    let targets: Vec<Target> =
        prepared[0].targets.iter().map(|target| target.facts.clone()).collect();
    let point = prepared[0].point.clone();
    let time = point.time();
    let (outputs, mut journal) = Outputs::create("run", &targets[0].name, &args.results, false)?;
    let mut live = Live::new(1, time);
    let hosts = fleet.described();
    let machines = Machines { host: None, hosts: &hosts, targets: &targets };
    session::begin(&mut journal, Command::Run, machines, seed, 1, None)?;
    let first = fleet.facts(0).clone();
    let mut session = Session { host: &first, targets: &targets, carrier: &mut fleet };
    let mut experiment = PointSequence::new(vec![point]);
    let outcome = session.run(&mut experiment, Course::new(None), &mut journal, &mut live);
    live.finish();
    match outcome {
        Ok(outcome) => {
            outputs.finish(&mut journal, |_| Ok(()))?;
            Ok(measure::exit_code(&outcome))
        }
        Err(error) => {
            outputs::after_failure(journal);
            Err(error)
        }
    }
}

/// Refuses what only one machine can do.
fn refuse_what_is_local(args: &Run) -> Result<(), Error> {
    let typed = [("--watch", args.watch), ("--trace", args.results.trace.is_some())];
    match typed.into_iter().find(|(_, typed)| *typed) {
        None => Ok(()),
        Some((option, _)) => {
            let problem = "it is for one machine, and --hosts is for several";
            Err(Error::option(option, problem, "leave it out"))
        }
    }
}

/// Says what all hosts are about to do.
fn announce(fleet: &Fleet, prepared: &[PreparedHere]) -> Result<(), Error> {
    let names = fleet.names();
    output::say_folded(&format!("{} hosts: {}", names.len(), names.join(", ")))?;
    for line in &prepared[0].plan {
        output::say_folded(line)?;
    }
    let bound = time(fleet.clock_bound().0 as f64);
    output::say_folded(&format!("begins on all hosts together; their clocks are known to {bound}"))
}
