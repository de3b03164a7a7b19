//! The program: reads the command line, calls the command, and ends with a documented exit code.
//!
//! It is a library so that tests and fuzzing can reach the readers of foreign bytes, in
//! [`readers`]. It has no other use for other programs.

mod agent;
mod cli;
mod commands;
mod contents;
mod created;
mod dialect;
mod difference;
mod error;
mod foreign;
mod hanging;
mod hosts;
mod identity;
mod import;
mod journal;
mod limits;
mod live;
mod output;
pub mod readers;
mod resolve;
mod room;
mod scratch;
mod session;
mod shipped;
mod signals;
mod spoken;
mod trace;
mod users;
mod watch;
mod workload;

use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use cli::args::{Args, Command};
use error::{Error, exit};

/// Runs the process, from its command line to its exit code.
#[must_use]
pub fn main() -> ExitCode {
    panic::set_hook(Box::new(our_fault));
    if let Err(error) = room::check_program() {
        return ended(Err(error));
    }
    let args = Args::read();
    let begun = signals::listen().and_then(|()| hanging::supervise(move || run(&args.command)));
    begun.unwrap_or_else(|cause| {
        ended(Err(Error::target(
            "this process",
            format!("it can have neither signals nor threads ({})", error::plain(&cause)),
            "raise the limits of open files, processes and address space (ulimit -n, ulimit -u, \
             ulimit -v, pids.max of the control group)",
        )))
    })
}

/// The whole command, and its exit code.
fn run(command: &Command) -> ExitCode {
    // A panic of the command unwinds to here, so that every scratch file is removed on the way.
    match panic::catch_unwind(|| perform(command)) {
        Ok(result) => ended(result),
        Err(_) => {
            signals::remove_doomed();
            ExitCode::from(exit::INTERNAL)
        }
    }
}

/// Reports an error, and returns the exit code of the process.
fn ended(result: Result<u8, Error>) -> ExitCode {
    let code = result.unwrap_or_else(|error| {
        match &error {
            // It has its own lines, and says itself that it is an error.
            Error::Workload(text) => output::note_text(text),
            // The answer, which is the last line on the same terminal, says it.
            Error::Failed(_) | Error::Undecided(_) if output::answer_is_seen() => {}
            other => output::note_folded(&format!("error: {other}")),
        }
        error.exit_code()
    });
    hanging::end_if_any(code);
    ExitCode::from(code)
}

fn perform(command: &Command) -> Result<u8, Error> {
    match command {
        Command::Quick(args) => commands::quick::perform(args),
        Command::Run(args) => match &args.hosts {
            Some(socket) => commands::many_hosts::run(args, socket),
            None => commands::run::perform(args),
        },
        Command::Plan(args) => match &args.hosts {
            Some(socket) => commands::many_hosts::plan(args, socket),
            None => commands::plan::perform(args),
        },
        Command::Sweep(args) => match &args.hosts {
            Some(socket) => commands::many_hosts::sweep(args, socket),
            None => commands::sweep::perform(args),
        },
        Command::Ab(args) => commands::ab::perform(args),
        Command::Study(args) => commands::study::perform(args),
        Command::Resume(args) => commands::resume::perform(args),
        Command::Peak(args) => commands::peak::perform(args),
        Command::Sustain(args) => commands::sustain::perform(args),
        Command::Map(args) => commands::map::perform(args),
        Command::Workloads(args) => commands::workloads::perform(args),
        Command::Inspect(args) => commands::inspect::perform(args),
        Command::Agent(args) => commands::agent::perform(args),
        Command::Watch(args) => commands::watch::perform(args),
        Command::Prepare(args) => commands::prepare::perform(args),
        Command::Calibrate(args) => commands::calibrate::perform(args),
        Command::Report(args) => commands::report::perform(args),
        Command::Compare(args) => commands::compare::perform(args),
        Command::History(args) => commands::history::perform(args),
        Command::Export(args) => commands::export::perform(args),
        Command::Import(args) => commands::import::perform(args),
        Command::Completions(args) => commands::completions::perform(args),
        Command::Man(args) => commands::man::perform(args),
        Command::Diskspd(args) => commands::diskspd::perform(&args.words),
    }
}

/// A panic is a mistake of ours: says so, and asks for the information that would help us.
fn our_fault(info: &PanicHookInfo<'_>) {
    let text = info
        .payload()
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| info.payload().downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let place = info.location().map_or("an unknown place".to_owned(), ToString::to_string);
    output::note(&format!(
        "error: this is a mistake in fathom {}, not in what you did: {text} ({place}). Please \
         report it with the command line at {}/issues.",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_REPOSITORY"),
    ));
}
