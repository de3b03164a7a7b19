//! `fathom resume`: continues an experiment that was interrupted. The words of its command line are
//! resolved again and compared with the result file, and the trials so far are shown to it: the
//! same trials lead to the same steps.

use std::convert::Infallible;
use std::path::Path;

use fathom_core::experiment::Step;
use fathom_core::facts::Target;
use fathom_core::spec::Point;
use fathom_core::trial::{Place, Trial};
use fathom_core::typed_path;
use fathom_core::verdict::{Severity, Verdict, known_code};
use fathom_report::document::{
    self, Document, Ended, FORMAT_VERSION, Header, HostOfMany, MEASUREMENT_VERSION,
};
use serde_json::Value;

use super::before::BeforeTrials;
use super::experiment::{self, Prepared};
use super::outputs::Outputs;
use super::read_result;
use super::{ab, many_hosts, map, peak, study, sustain, sweep};
use crate::cli::args::{Args, Command, Resume};
use crate::cli::options::{Consent, Results};
use crate::difference::difference;
use crate::error::{Error, plain};
use crate::hanging::{Role, patiently};
use crate::identity;
use crate::journal::{self, Journal};
use crate::output::{self, is_stdout};
use crate::session::Course;

/// The remedy if it cannot continue.
const RUN_AGAIN: &str = "run it again";

/// Makes the error for a result file that cannot be continued, from the problem and the remedy.
type Refuse<'a> = &'a dyn Fn(String, &str) -> Error;

/// Continues it.
///
/// # Errors
///
/// When the result cannot be continued, or the target or the experiment differs.
pub fn perform(args: &Resume) -> Result<u8, Error> {
    let refuse = |problem: String, remedy: &str| Error::file(&args.result, problem, remedy);
    // A user who types names means the current folder, and not one from a file.
    let consent = match args.hosts {
        // These names begin on the hosts.
        Some(_) => args.consent.clone(),
        None => named_here(&args.consent)?,
    };
    let results = results(args)?;
    results.leave_stdout();
    let outputs = Outputs::resumed(&results);
    let found = patiently(&args.result, Role::Input, || args.result.canonicalize());
    let path = found.map_err(|cause| {
        refuse(format!("it cannot be found ({})", plain(&cause)), "name a result file")
    })?;
    let claimed = patiently(&path, Role::Input, || Journal::claim(&path))?;
    // Not by its name, which may lead to another file by now.
    let document = read_result::read_claimed(&path, &claimed)?;
    resumable(&document, args.hosts.is_some(), &refuse)?;
    if let Some(folder) = &document.header.working_directory {
        let enter = || std::env::set_current_dir(folder);
        patiently(Path::new(folder), Role::Target, enter).map_err(|cause| {
            refuse(
                format!("it was begun in {folder}, which cannot be entered ({})", plain(&cause)),
                "restore that folder: the experiment's paths begin there",
            )
        })?;
    }
    let hosts = args.hosts.as_deref();
    let (mut prepared, recorded) = settle(&document, (&consent, hosts, args), &refuse)?;
    same_targets(&document, &prepared, &refuse)?;
    let described = document.header.experiment.as_ref();
    if let Some(found) = difference(&json(described), &json(Some(&prepared.described))) {
        return Err(refuse(format!("the experiment is another one now: {found}"), RUN_AGAIN));
    }
    let done = document.trials.iter().take_while(|trial| trial.is_whole()).count();
    for (target, then) in prepared.targets.iter_mut().zip(&document.header.targets) {
        // Probed at its beginning, and not again.
        target.reduction = then.reduction;
    }
    say(&document, done)?;
    experiment::announce_all_writes(&prepared)?;
    let again = recorded.again(args);
    if prepared.refusal.is_some() && consent.first().is_none() {
        return Err(Error::target(
            args.result.display().to_string(),
            "it writes, and a result file consents to nothing",
            format!(
                "look at what it writes to, and if that may be lost, allow it once more with \
                 `{again}`"
            ),
        ));
    }
    recorded.say_what_ends(args, &again);
    known_again(&prepared, &consent)?;
    let outputs = outputs.failing_if(recorded.results.fail_if);
    let refuse_trial = |number: usize, problem: String| match journal::saved_from(&path) {
        Some(before) if number == 1 => refuse(
            format!("it lacks the trials before it was begun: {problem}"),
            &format!(
                "append all its lines except the first to the whole lines of a copy of {}, and \
                 resume that copy; or, if that file is lost, run it again",
                before.display()
            ),
        ),
        _ => refuse(problem, RUN_AGAIN),
    };
    let so_far = replay(&document, done, &mut prepared, &refuse_trial)?;
    // The header's line, and one for each trial.
    let journal = Journal::reopen(&path, claimed, 1 + done)?;
    drop(document);
    experiment::go_on(prepared, so_far, &outputs, journal)
}

/// Refuses results that have nothing ahead, or cannot know it.
fn resumable(document: &Document, on_hosts: bool, refuse: Refuse<'_>) -> Result<(), Error> {
    let header = &document.header;
    let command = header.command.name();
    if header.imported.is_some() {
        let problem = "another program measured it, so there is nothing to go on with".to_owned();
        return Err(refuse(problem, "show it with `fathom report`"));
    }
    if header.experiment.is_none() {
        let problem = format!(
            "a {command} is no experiment that can go on: its numbers would come from two times"
        );
        return Err(refuse(problem, RUN_AGAIN));
    }
    if document.conclusion.as_ref().is_some_and(|end| end.ended == Ended::Completed) {
        return Err(refuse("it is finished".to_owned(), "show it with `fathom report`"));
    }
    same_machines(header, on_hosts, refuse)?;
    if header.format_version != FORMAT_VERSION {
        let problem = format!(
            "fathom {} began it in format version {}, and lines of version {FORMAT_VERSION} would \
             follow",
            header.fathom_version, header.format_version
        );
        return Err(refuse(problem, "go on with that one"));
    }
    if header.measurement_version != MEASUREMENT_VERSION {
        let problem = format!(
            "it was begun by fathom {}, which measures in another way",
            header.fathom_version
        );
        return Err(refuse(problem, "go on with that one"));
    }
    Ok(())
}

/// Refuses to go on here with what hosts began, and on hosts with what one machine began.
fn same_machines(header: &Header, on_hosts: bool, refuse: Refuse<'_>) -> Result<(), Error> {
    match (header.hosts.is_empty(), on_hosts) {
        (false, false) => {
            let names: Vec<&str> = header.hosts.iter().map(|host| host.name.as_str()).collect();
            let problem = format!("many hosts measured it ({})", names.join(", "));
            Err(refuse(problem, "go on with the same hosts, by `fathom-hosts resume`"))
        }
        (true, true) => {
            let problem = "one machine measured it".to_owned();
            Err(refuse(problem, "go on there, without --hosts"))
        }
        (false, true) | (true, false) => Ok(()),
    }
}

/// The files behind the names in the consent, from the folder in which they were typed.
fn named_here(typed: &Consent) -> Result<Consent, Error> {
    let resolved = |option: &str, name: &String| {
        let path = Path::new(name);
        let found = patiently(path, Role::Target, || path.canonicalize());
        let path = found.map_err(|cause| {
            Error::option(
                format!("{option} {name}"),
                format!("it leads to nothing from this folder ({})", plain(&cause)),
                "repeat the name that is shown behind OVERWRITES",
            )
        })?;
        Ok(path.display().to_string())
    };
    let all = |option: &str, names: &[String]| {
        names.iter().map(|name| resolved(option, name)).collect::<Result<_, Error>>()
    };
    Ok(Consent {
        overwrite: typed.overwrite,
        destroy: all("--destroy", &typed.destroy)?,
        destroy_in_use: all("--destroy-in-use", &typed.destroy_in_use)?,
    })
}

/// The destinations of reports, from this command line only: a result file could otherwise have
/// data written anywhere.
fn results(args: &Resume) -> Result<Results, Error> {
    let absolute = |path: &Path| {
        if is_stdout(path) {
            return Ok(Some(path.to_owned()));
        }
        std::path::absolute(path).map(Some).map_err(|cause| {
            let problem = format!("it cannot be found ({})", plain(&cause));
            Error::file(path, problem, "name another place")
        })
    };
    let written = args.written.each_as(absolute)?;
    written.check_open()?;
    Ok(Results { written, ..Results::default() })
}

/// The consent and the reports of the file's own command line: reported, and not followed.
struct Recorded {
    consent: Consent,
    results: Results,
    has_outputs: bool,
}

impl Recorded {
    /// Says which of the outputs on the file's command line this command does not write.
    fn say_what_ends(&self, args: &Resume, again: &str) {
        if self.has_outputs && args.written.paths().next().is_none() {
            output::note(&format!(
                "no report is written where its command line says: `{again}` does"
            ));
        }
        if let Some(trace) = &self.results.trace {
            output::note(&format!(
                "the trials from here on are in no trace: {} has those before",
                trace.display()
            ));
        }
    }

    /// The command line to type. The file's names begin in its own folder, and the user who types
    /// this may be in another one.
    fn again(&self, args: &Resume) -> String {
        let result = typed_path(&args.result.display().to_string());
        let absolute = |path: &Path| {
            let absolute = std::path::absolute(path).ok().filter(|_| !is_stdout(path));
            Ok::<_, Infallible>(Some(absolute.unwrap_or(path.to_owned())))
        };
        let written = self.results.written.each_as(absolute).unwrap_or_default();
        // If a name leads nowhere, it is shown unchanged.
        let consent = named_here(&self.consent).unwrap_or(self.consent.clone());
        let commands = [("A", &args.before_a), ("B", &args.before_b)];
        let commands = commands.map(|(side, command)| Some((side, command.as_deref()?)));
        let before = BeforeTrials::new(commands.into_iter().flatten()).in_words();
        format!("fathom resume {result}{}{before}{}", consent.in_words(), written.in_words())
    }
}

/// The present meaning of the command line's words, with the consent that is given now.
fn settle(
    document: &Document,
    (consent, hosts, typed): (&Consent, Option<&Path>, &Resume),
    refuse: Refuse<'_>,
) -> Result<(Prepared, Recorded), Error> {
    let header = &document.header;
    let mut args = Args::reread(&header.command_line).map_err(|_| {
        refuse(
            "this fathom does not understand its command line".to_owned(),
            &format!("go on with fathom {}", header.fathom_version),
        )
    })?;
    let none = || refuse("its command line is that of no experiment".to_owned(), RUN_AGAIN);
    let (allowed, results) = args.of_experiment().ok_or_else(none)?;
    let consent = std::mem::replace(allowed, consent.clone());
    let results = std::mem::take(results);
    let has_outputs = results.written.paths().next().is_some();
    let prepared = match args.command {
        Command::Sweep(args) => match hosts {
            Some(socket) => many_hosts::prepare_sweep(&args, socket, header.seed),
            None => sweep::prepare(&args, header.seed),
        },
        Command::Peak(args) => peak::prepare(&args, hosts, header.seed),
        Command::Sustain(args) => sustain::prepare(&args, hosts, header.seed),
        _ if hosts.is_some() => return Err(none()),
        Command::Ab(args) => {
            let commands = [typed.before_a.as_deref(), typed.before_b.as_deref()];
            ab::same_commands(&args, commands).and_then(|()| ab::prepare(&args, header.seed))
        }
        Command::Study(args) => study::prepare(&args, header.seed).map(|prepared| prepared.0),
        Command::Map(args) => map::prepare(&args, header.seed),
        _ => return Err(none()),
    };
    let prepared = prepared.map_err(|error| match error {
        // The result may be anybody's and name any file, of which this would show a line.
        Error::Workload(_) => refuse(
            "the workload that its command line names is no longer valid".to_owned(),
            "restore that file: `fathom plan` shows what is wrong with it",
        ),
        other => other,
    })?;
    Ok((prepared, Recorded { consent, results, has_outputs }))
}

fn same_targets(document: &Document, prepared: &Prepared, refuse: Refuse<'_>) -> Result<(), Error> {
    if let Some(fleet) = &prepared.fleet {
        return same_hosts(&document.header.hosts, &fleet.described(), refuse);
    }
    let then = &document.header.targets;
    if then.len() != prepared.targets.len() {
        let now = prepared.targets.len();
        let problem = format!("it was begun on {} targets, and there are {now} now", then.len());
        return Err(refuse(problem, RUN_AGAIN));
    }
    let identities = &document.header.identities;
    if identities.len() != then.len() {
        // The author of a file could leave them out, so that another target is taken for its own.
        let problem = "it does not tell what makes each target itself".to_owned();
        return Err(refuse(problem, RUN_AGAIN));
    }
    for (place, (old, target)) in then.iter().zip(&prepared.targets).enumerate() {
        let name = &old.name;
        let differs = |what: &str, old: &str, new: &str| {
            let problem =
                format!("{name} is another target now: its {what} was {old}, and is {new}");
            Err(refuse(problem, "bring back the one that was measured, or run it again"))
        };
        if old.kind != target.kind {
            return differs("kind", old.kind.name(), target.kind.name());
        }
        if old.size != target.size {
            let [old, new] = [old.size, target.size].map(|size| format!("{} bytes", size.0));
            return differs("size", &old, &new);
        }
        let identity = identity::of(target);
        if let Some(known) = identities.get(place).filter(|known| **known != identity) {
            return differs("identity", known, &identity);
        }
    }
    Ok(())
}

/// Refuses other hosts than those that began it, and other targets there.
fn same_hosts(then: &[HostOfMany], now: &[HostOfMany], refuse: Refuse<'_>) -> Result<(), Error> {
    let names = |hosts: &[HostOfMany]| {
        hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if names(then) != names(now) {
        let problem = format!("its hosts were {}, and are {}", names(then), names(now));
        return Err(refuse(problem, "go on with the same hosts in the same order"));
    }
    for (old, new) in then.iter().zip(now) {
        let of = |host: &HostOfMany| {
            let sizes = host.targets.iter().map(|target| (target.path.clone(), target.size));
            (sizes.collect::<Vec<_>>(), host.identities.clone())
        };
        if of(old) != of(new) {
            let problem = format!("on {} there are other targets now than then", old.name);
            return Err(refuse(problem, "bring back those that were measured, or run it again"));
        }
    }
    Ok(())
}

/// Refuses to write to a file of which only the inode's number is known, which may be reused once a
/// file is removed, unless the user has repeated its name.
fn known_again(prepared: &Prepared, consent: &Consent) -> Result<(), Error> {
    let written = experiment::written(prepared, |target| &target.path);
    let is_unsure = |target: &&Target| {
        let numbered = target.identity.is_some_and(|identity| identity.birth().is_none());
        let named = |name: &String| Path::new(&target.path).starts_with(name);
        let named = consent.named().any(|(_, name)| named(name));
        numbered && written.contains(&target.path.as_str()) && !named
    };
    match prepared.targets.iter().find(is_unsure) {
        None => Ok(()),
        Some(target) => Err(Error::target(
            &target.path,
            "its file system tells neither when it was made nor its generation, so that it may be \
             another file of its name and number",
            format!("look at it, and allow it with --destroy {}", typed_path(&target.path)),
        )),
    }
}

/// Reports where it continues.
fn say(document: &Document, done: usize) -> Result<(), Error> {
    let name = document.header.experiment.as_ref().map_or("", |one| one.name.as_str());
    let points = document.header.planned_points;
    let are = if done == 1 { "is" } else { "are" };
    output::say_folded(&format!("resumes {name}: {done} of {points} points {are} measured"))?;
    if let Some(again) = document.trials.get(done) {
        output::say_folded(&format!(
            "{} was interrupted, and is measured again",
            again.point.name
        ))?;
    }
    Ok(())
}

/// Shows the experiment its trials, all but the last, which it sees when it continues.
fn replay(
    document: &Document,
    done: usize,
    prepared: &mut Prepared,
    refuse: &dyn Fn(usize, String) -> Error,
) -> Result<(Option<Trial>, Course<'static>), Error> {
    let mut course = Course::of_experiment(None, document.header.planned_points);
    let mut last: Option<Trial> = None;
    for (place, trial) in document.trials[..done].iter().enumerate() {
        let number = place + 1;
        let planned = match prepared.experiment.next(last.as_ref()) {
            Step::Run(planned) => *planned,
            Step::Done(_) => {
                let problem = format!("it would end now before trial {number}, and it did not");
                return Err(refuse(number, problem));
            }
        };
        let then = (&trial.point, &trial.place);
        let now = (&planned.point, &planned.place);
        if let Some(found) = (then != now).then(|| changed(then, now)).flatten() {
            let problem = format!("trial {number} would be another one now: {found}");
            return Err(refuse(number, problem));
        }
        course.take(trial.verdict_on_result(), planned.point.time());
        last = Some(Trial {
            point: planned.point,
            place: planned.place,
            backend: trial.backend,
            backend_reason: trial.backend_reason.clone(),
            started_unix_ns: trial.started_unix_ns,
            record: trial.record(),
            // They decide nothing, and not all of them are in the file.
            counters: None,
            traced: None,
            breakdown: None,
            hosts: Vec::new(),
            is_void: trial.verdict == Verdict::Void,
            doubt: doubt(trial),
        });
    }
    Ok((last, course))
}

/// The code of the gravest finding that makes a trial suspect or void.
fn doubt(trial: &document::Trial) -> Option<&'static str> {
    let gravest = trial.findings.first().filter(|one| one.severity != Severity::Note)?;
    known_code(&gravest.code)
}

/// What differs between a trial of the file and what is planned, as far as a file can tell.
fn changed(then: (&Point, &Place), now: (&Point, &Place)) -> Option<String> {
    let line = |(point, place)| serde_json::json!({ "point": point, "place": place });
    difference(&line(then), &line(now))
}

fn json(experiment: Option<&document::Experiment>) -> Value {
    serde_json::to_value(experiment).expect("these types have string keys and no failing parts")
}
