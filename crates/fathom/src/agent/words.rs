//! The words of a load, read as those of `fathom run`.

use super::message::LoadInWords;
use crate::cli::args::{self, Args, Command, Run};
use crate::cli::options::Consent;
use crate::error::Error;
use crate::{shipped, workload};

/// A load as the resolver takes it.
///
/// # Errors
///
/// When the words are not those of a load, or the workload cannot be used.
pub fn asked(load: &LoadInWords) -> Result<workload::Asked, Error> {
    let mut asked = described(load)?;
    if load.host.is_some_and(|place| place.hosts <= place.number) {
        return Err(Error::option("host", "its number is none of these hosts", "count from 0"));
    }
    asked.described.host = load.host;
    Ok(asked)
}

fn described(load: &LoadInWords) -> Result<workload::Asked, Error> {
    let run = parsed(&load.words)?;
    let mut request = run.request;
    let allowed = &load.consent;
    request.consent = Consent {
        overwrite: allowed.overwrite,
        destroy: allowed.destroy.clone(),
        destroy_in_use: allowed.destroy_in_use.clone(),
    };
    if let Some(workload) = &load.workload {
        return workload::Asked::read_text(&request, &workload.name, &workload.text);
    }
    // A message about it would show a line of any file of this host.
    let first = request.targets.first().filter(|_| request.workload.is_none());
    let named = first.map(|path| path.to_string_lossy().into_owned());
    let file = request.workload.clone().or(named.filter(|name| name.ends_with(".toml")));
    match file.filter(|name| shipped::text(name).is_none()) {
        Some(name) => Err(Error::option(
            name,
            "an agent reads no workload file of its host",
            "send its text beside the words",
        )),
        None => workload::Asked::read(&request),
    }
}

/// The words, as `fathom run` reads them.
fn parsed(words: &[String]) -> Result<Run, Error> {
    let line = ["fathom", "run"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    let read = Args::reread(&line.collect::<Vec<_>>()).map_err(|cause| {
        Error::option("words", args::in_one_line(&cause), "see `fathom run --help`")
    })?;
    let Command::Run(run) = read.command else {
        return Err(Error::option(
            "words",
            "they are not those of a run",
            "see `fathom run --help`",
        ));
    };
    let results = &run.results;
    let other = [
        ("--watch", run.watch),
        ("--hosts", run.hosts.is_some()),
        ("--out", results.out.is_some() || results.results.is_some()),
        ("a report", results.written.paths().next().is_some()),
        ("--trace", results.trace.is_some()),
        ("--json", results.json),
        ("--fail-if", !results.fail_if.is_empty()),
        ("a consent", run.request.consent.first().is_some()),
    ];
    match other.into_iter().find(|(_, typed)| *typed) {
        Some((option, _)) => Err(Error::option(
            option,
            "it is not one of the words that describe a load",
            "leave it out: a consent has a field of its own, and the coordinator writes reports",
        )),
        None => Ok(run),
    }
}
