//! Options of DiskSpd that have no meaning on Linux: an option that cannot change the measurement
//! is skipped with a note, everything else is refused.

use super::Invocation;
use super::draft::Speech;
use super::model::{Affinity, Cache, Flush, Mapping, Payload, Target, TimeSpan};
use super::options::Event;
use crate::dialect::paths::PathMap;
use crate::dialect::{Note, Notes};
use fathom_core::Refusal;

/// The result of checking a request on this machine.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Options that are skipped, or done in another way.
    pub notes: Vec<Note>,
    /// Why it cannot run; empty if it can.
    pub refusals: Vec<Refusal>,
}

/// Checks a request; `paths` maps Windows' drives.
pub fn judge(request: &Invocation, paths: &PathMap) -> Judgement {
    let speech = &request.speech;
    let mut judge = Judge { paths, speech, notes: Notes::default(), refusals: Vec::new() };
    if request.profile.etw.is_some() {
        judge.notes.add("event tracing (-e, <ETW>) is skipped: Linux has none");
    }
    if request.profile.experiment_flags > 0 {
        judge.notes.add("the experiments of -: are skipped: rates are kept exactly without them");
    }
    if request.profile.verbose_stats {
        judge.notes.add(
            "-vs is skipped: a thread waits here in one way only, so there is nothing to count",
        );
    }
    if request.profile.progress > 0 {
        judge.notes.add("-P prints no dots: what is done so far is shown on stderr");
    }
    for event in &request.events {
        judge.event(event);
    }
    for span in &request.profile.time_spans {
        judge.span(span);
    }
    Judgement { notes: judge.notes.into_vec(), refusals: judge.refusals }
}

struct Judge<'a> {
    paths: &'a PathMap,
    speech: &'a Speech,
    notes: Notes,
    refusals: Vec<Refusal>,
}

impl Judge<'_> {
    fn refuse(&mut self, thing: &str, problem: &str, remedy: &str) {
        let refusal = Refusal::usage(thing, problem, remedy);
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Told(name) => self.notes.add(format!(
                "the event `{name}` is not set (-ys, -yf): Linux has no named events"
            )),
            Event::Awaited(name) => self.refuse(
                &format!("the event `{name}` (-yr, -yp)"),
                "Linux has no named events that could begin or end a run",
                "start and stop fathom from the script that sets it",
            ),
            Event::Set(name) => self.refuse(
                &format!("the event `{name}` (-ye)"),
                "Linux has no named events, so that there is nothing to set",
                "drop the call",
            ),
        }
    }

    fn span(&mut self, span: &TimeSpan) {
        if span.completion_routines {
            self.notes.add(
                "completion routines (-x, <CompletionRoutines>) are skipped: Linux completes I/O \
                 in one way only",
            );
        }
        if let Affinity::Explicit(cpus) = &span.affinity
            && let Some(cpu) = cpus.iter().find(|cpu| cpu.group > 0)
        {
            self.refuse(
                &format!("CPU {} of processor group {}", cpu.number, cpu.group),
                "Linux has no processor groups and numbers its CPUs through",
                "list the numbers of lscpu without groups, as in -a64,65",
            );
        }
        for target in &span.targets {
            self.target(target);
        }
    }

    fn target(&mut self, target: &Target) {
        if target.cache == Cache::LocalOff {
            self.notes.add(format!(
                "{}: -Sr (<DisableLocalCache>) is direct I/O here, which leaves a remote file \
                 system's own cache on",
                target.path
            ));
        }
        // With write-through no data could stay in memory.
        let at_once = target.cache == Cache::Off || target.write_through;
        match (target.hints.temporary, at_once || target.write_percent == 0) {
            (false, _) => {}
            (true, true) => self.notes.add(format!(
                "{}: -ft (<TemporaryFile>) is skipped: Linux has no such hint",
                target.path
            )),
            (true, false) => self.refuse(
                &format!("{}: {}", target.path, self.speech.name("f", "TemporaryFile")),
                "Linux has no hint that keeps written data in memory",
                "drop it, or put the file on tmpfs",
            ),
        }
        let mapping = target.mapping;
        if matches!(
            mapping,
            Mapping::On(Flush::NonVolatileMemory | Flush::NonVolatileMemoryNoDrain)
        ) {
            self.refuse(
                &format!("{}: {}", target.path, self.speech.name("N", "FlushType")),
                "RtlFlushNonVolatileMemory exists on Windows only",
                "say -Nv: the mapped file is flushed by msync",
            );
        }
        self.path(&target.path);
        if let Payload::Pool { file: Some(file), .. } = &target.payload {
            self.path(file);
        }
    }

    fn path(&mut self, path: &str) {
        // A template has no place yet.
        if path.starts_with('*') {
            return;
        }
        match self.paths.resolve(path) {
            Ok(place) if place.to_str() == Some(path) => {}
            Ok(place) => self.notes.add(format!("{path} is {} here", place.display())),
            Err(refusal) => {
                if !self.refusals.contains(&refusal) {
                    self.refusals.push(refusal);
                }
            }
        }
    }
}
