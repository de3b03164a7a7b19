//! `fathom agent`: one host of a test over many hosts.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use fathom_core::experiment::{Conclusion, PointSequence};
use fathom_core::facts::{Host, Target};
use fathom_core::spec::{Point, Region};
use fathom_report::document::{self, Ended, MEASUREMENT_VERSION};

use super::measure::exit_code;
use super::opened::{self, Opened};
use super::outputs::{self, Outputs};
use super::place::Place;
use super::{folder, preview, settled, this_machine};
use crate::agent::ears::{self, Heard};
use crate::agent::message::{
    AgentAnswer, AgentOrder, LoadInWords, PROTOCOL, PreparedHere, TargetHere,
};
use crate::agent::voice::{Narrator, say};
use crate::agent::words;
use crate::cli::args::Agent;
use crate::cli::described::{Described, HostPlace};
use crate::cli::options::{Consent, Results};
use crate::error::{Error, exit, plain};
use crate::journal::Journal;
use crate::live::Live;
use crate::resolve::{self, Spec};
use crate::session::{self, Course, Machines, Session, unix_ns};
use crate::{contents, identity, output, signals};

/// Before the load begins, the workers are made ready in this time.
const READY: Duration = Duration::from_millis(50);
/// How soon a wait for the start sees that it is over.
const NAP: Duration = Duration::from_millis(10);

/// How soon a signal is seen where nothing runs.
const LISTENING: Duration = Duration::from_millis(100);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs it.
///
/// # Errors
///
/// When the machine does not allow it. What a coordinator asks for in vain is told to it instead.
pub fn perform(args: &Agent) -> Result<u8, Error> {
    output::leave_stdout_to_the_document();
    let few = |cause: std::io::Error| {
        let problem = format!("it cannot have another thread ({})", plain(&cause));
        Error::target("this process", problem, "raise the limit of processes (ulimit -u)")
    };
    let inbox = ears::listen(args.lease).map_err(few)?;
    let narrator = Narrator::begin().map_err(few)?;
    let results = Results {
        out: args.out.clone(),
        results: args.results.clone(),
        json: true,
        ..Results::default()
    };
    let mut agent = Attendant {
        lease_ns: args.lease.0,
        results,
        points: 0,
        greeted: false,
        host: this_machine::this_host(),
        live: Live::told_to(Box::new(narrator)),
        prepared: None,
        result: None,
        course: Course::new(None),
        ended: (Ended::Completed, Conclusion::default()),
        is_concluded: false,
    };
    // From here on a signal, or a silent coordinator, ends a load and keeps what was measured.
    signals::be_orderly();
    let why = agent.attend(&inbox)?;
    agent.end(why)
}

/// Answers a coordinator.
struct Attendant {
    lease_ns: u64,
    results: Results,
    /// The number of planned loads, for the header of the result.
    points: u32,
    /// Whether a coordinator of this version has said hello.
    greeted: bool,
    host: Host,
    live: Live,
    prepared: Option<Ready>,
    /// The result file, from the first load that could be prepared on.
    result: Option<OwnResult>,
    course: Course<'static>,
    ended: (Ended, Conclusion),
    /// Whether the result file has its conclusion.
    is_concluded: bool,
}

/// A load that is ready to begin.
struct Ready {
    spec: Spec,
    opened: Opened,
    /// Its targets, with what samples of their content show.
    targets: Vec<Target>,
}

struct OwnResult {
    path: PathBuf,
    journal: Journal,
    /// The targets of its header; none before the first load has begun.
    targets: Option<Vec<String>>,
}

impl Attendant {
    /// Does what is asked for, until no more comes: returns why.
    fn attend(&mut self, inbox: &Receiver<Heard>) -> Result<String, Error> {
        loop {
            let heard = match inbox.recv_timeout(LISTENING) {
                Err(RecvTimeoutError::Timeout) if signals::came().is_none() => continue,
                Ok(heard) => heard,
                Err(_) => Heard::Gone(reason(inbox)),
            };
            let asked = match heard {
                Heard::Gone(why) => return Ok(why),
                Heard::Nonsense(why) => {
                    refuse(why, exit::USAGE);
                    continue;
                }
                Heard::Message(asked) => *asked,
            };
            match self.answer(asked, inbox) {
                Ok(None) => {}
                Ok(Some(why)) => return Ok(why),
                // The next load may be possible.
                Err(error) if self.result.as_ref().is_none_or(|it| it.journal.is_saved()) => {
                    refuse(error.to_string(), error.exit_code());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Answers a message; says why no other one is to be heard, if that is so.
    fn answer(
        &mut self,
        asked: AgentOrder,
        inbox: &Receiver<Heard>,
    ) -> Result<Option<String>, Error> {
        match asked {
            AgentOrder::Hello { protocol, fathom_version, points } => {
                self.hello(protocol, &fathom_version)?;
                self.points = points;
            }
            _ if !self.greeted => {
                let problem = "the first message has to be hello";
                return Err(Error::option("message", problem, "say hello"));
            }
            AgentOrder::Prepare(load) => self.prepare(&load)?,
            AgentOrder::Start { at_unix_ns } => return self.start(at_unix_ns, inbox),
            // The ears answer these.
            AgentOrder::Clock { .. } | AgentOrder::Renew {} | AgentOrder::Stop {} => {}
        }
        Ok(None)
    }

    fn hello(&mut self, protocol: u32, version: &str) -> Result<(), Error> {
        if protocol != PROTOCOL || version != VERSION {
            return Err(Error::target(
                "fathom agent",
                format!(
                    "this host has fathom {VERSION} with protocol {PROTOCOL}, and the coordinator has \
                     fathom {version} with protocol {protocol}"
                ),
                "install the same version on all hosts",
            ));
        }
        self.greeted = true;
        say(&AgentAnswer::Hello {
            protocol: PROTOCOL,
            fathom_version: VERSION.to_owned(),
            measurement_version: MEASUREMENT_VERSION,
            lease_ns: self.lease_ns,
            host: Box::new(self.host.clone()),
        });
        Ok(())
    }

    /// Makes a load ready, or refuses it.
    fn prepare(&mut self, load: &LoadInWords) -> Result<(), Error> {
        // What was ready before is not wanted any more.
        self.prepared = None;
        let mut asked = words::asked(load)?;
        if load.point.is_some() {
            // A coordinator refuses it, too; but what is written here is for this end to decide.
            resolve::by_host::refuse_with_points(&asked.described)
                .map_err(|blame| asked.explain(blame))?;
        }
        let (place, host, spec) = settled::settle(&mut asked)?;
        let spec = match &load.point {
            None => spec,
            Some(point) => {
                let point = Point::clone(point);
                let spec = resolve::derived::derived(spec, point, this_machine::machine(&host))?;
                let written = opened::written_targets(&spec);
                folder::no_names_outside(&asked.described, &place, &written)?;
                spec
            }
        };
        if load.experiment && !spec.writes() {
            // It is for another load of the experiment, and this one needs none.
            asked.described.consent = Consent::default();
        }
        let spec =
            resolve::consent::permit(spec, &asked.described).map_err(|e| asked.explain_whole(e))?;
        let undivided = undivided(&asked.described, &place, &host)?;
        self.same_targets(&spec)?;
        opened::tell_users([(&place, &spec)]);
        let opened = opened::open(&place, &spec)?;
        self.host = Host { ceiling: opened.ceiling(), ..host };
        let result = match &mut self.result {
            Some(result) => result,
            none => {
                let first = &spec.targets[0].name;
                let (outputs, journal) = Outputs::create("agent", first, &self.results, false)?;
                drop(outputs);
                let path = journal.path().to_owned();
                none.insert(OwnResult { path, journal, targets: None })
            }
        };
        // Now, so that nothing keeps the start waiting.
        let seed = spec.points[0].seed;
        let targets = contents::looked_at(&spec.targets, [(&*spec.targets, &*spec.points)], seed);
        let written = opened::written_targets(&spec);
        let target = |(place, target): (u32, &Target)| TargetHere {
            facts: target.clone(),
            identity: identity::of(target),
            is_overwritten: written.contains(&place),
        };
        say(&AgentAnswer::Prepared(Box::new(PreparedHere {
            plan: preview::announcement(&spec, &opened, 1),
            targets: (0..).zip(&spec.targets).map(target).collect(),
            point: spec.points[0].clone(),
            undivided,
            takes_ns: spec.time().0,
            result: std::path::absolute(&result.path).unwrap_or(result.path.clone()),
        })));
        self.prepared = Some(Ready { spec, opened, targets });
        Ok(())
    }

    /// Refuses another target than those of the loads before: a result file has the same ones
    /// throughout.
    fn same_targets(&self, spec: &Spec) -> Result<(), Error> {
        let known = self.result.as_ref().and_then(|result| result.targets.as_ref());
        let paths = || spec.targets.iter().map(|target| &target.path);
        match known.filter(|known| !paths().eq(known.iter())) {
            None => Ok(()),
            Some(known) => Err(Error::target(
                paths().map(String::as_str).collect::<Vec<_>>().join(", "),
                format!("the loads before were on {}", known.join(", ")),
                "start another agent for other targets",
            )),
        }
    }

    /// Applies the load that is ready; says why no other one is to be heard, if that is so.
    fn start(&mut self, at_unix_ns: u64, inbox: &Receiver<Heard>) -> Result<Option<String>, Error> {
        let (Some(Ready { spec, opened, targets }), Some(result)) =
            (self.prepared.take(), &mut self.result)
        else {
            return Err(Error::option("start", "no load is ready", "prepare one first"));
        };
        let seed = spec.points[0].seed;
        if result.targets.is_none() {
            let (journal, points) = (&mut result.journal, self.points.max(1));
            session::begin(
                journal,
                document::Command::Run,
                Machines::one(&self.host, &targets),
                seed,
                points,
                None,
            )?;
            result.targets = Some(targets.iter().map(|target| target.path.clone()).collect());
        }
        wait_until(at_unix_ns);
        self.course.begins_unix_ns = Some(at_unix_ns);
        let mut carrier = &opened;
        let mut session = Session { host: &self.host, targets: &targets, carrier: &mut carrier };
        let mut experiment = PointSequence::new(spec.points.clone());
        let (course, journal) = (&mut self.course, &mut result.journal);
        match session.trials(&mut experiment, None, course, journal, &mut self.live) {
            Ok(ended) => self.ended = ended,
            Err(error) => {
                // The result file has its end already.
                self.is_concluded = true;
                refuse(error.to_string(), error.exit_code());
                return Ok(Some(error.to_string()));
            }
        }
        say(&AgentAnswer::Ended { completed: self.ended.0 == Ended::Completed });
        match self.ended.0 {
            Ended::Completed => Ok(None),
            Ended::Failed => Ok(Some("The load failed.".to_owned())),
            Ended::Interrupted => Ok(Some(reason(inbox))),
        }
    }

    /// Ends the result file, and decides the exit code.
    fn end(self, why: String) -> Result<u8, Error> {
        output::note(&format!("fathom agent ends: {why}"));
        let (ended, mut concluded) = self.ended;
        let Some(OwnResult { mut journal, targets, .. }) = self.result else {
            return Ok(exit::MEASURED);
        };
        if targets.is_none() || !journal.holds_results() {
            journal.discard();
            return Ok(exit::MEASURED);
        }
        if self.is_concluded {
            outputs::after_failure(journal);
            return Ok(exit::REFUSED);
        }
        // All loads ran, and no other one is wanted: there is nothing to explain.
        let is_normal = ended == Ended::Completed && why == ears::STOPPED;
        concluded.sentences.extend((!is_normal).then_some(why));
        let outcome = self.course.conclude(ended, &concluded, &mut journal)?;
        Ok(exit_code(&outcome))
    }
}

/// The regions of all streams as one host alone would have them; empty if hosts do not divide them.
fn undivided(described: &Described, place: &Place, host: &Host) -> Result<Vec<Region>, Error> {
    if described.streams.iter().all(|stream| stream.access.by_host.is_none()) {
        return Ok(Vec::new());
    }
    let alone = Described { host: Some(HostPlace { number: 0, hosts: 1 }), ..described.clone() };
    let spec = resolve::settle(&alone, place.facts(), this_machine::machine(host));
    let spec = spec.map_err(|blame| blame.error)?;
    Ok(spec.streams().flat_map(|stream| stream.regions.clone()).collect())
}

/// Why a load was interrupted: that came behind the messages before it.
fn reason(inbox: &Receiver<Heard>) -> String {
    let gone = inbox.try_iter().find_map(|heard| match heard {
        Heard::Gone(why) => Some(why),
        Heard::Message(_) | Heard::Nonsense(_) => None,
    });
    gone.unwrap_or("A signal ended it.".to_owned())
}

/// Tells the coordinator that something does not happen.
fn refuse(why: String, exit_code: u8) {
    say(&AgentAnswer::Refused { why, exit_code });
}

/// Waits until shortly before an instant, or until there is a reason not to begin.
fn wait_until(at_unix_ns: u64) {
    while signals::came().is_none() {
        let left = Duration::from_nanos(at_unix_ns.saturating_sub(unix_ns()));
        if left <= READY {
            return;
        }
        std::thread::sleep((left - READY).min(NAP));
    }
}
