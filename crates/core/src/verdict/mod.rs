//! Whether the numbers can be trusted, with the evidence and what to do about it.
//!
//! A check that cannot be made here says so; it does not pass in silence. Each check is a small
//! function over the same `Case`; the table of their codes and bounds is in
//! docs/method/verdicts.md.

mod case;
mod change;
mod codes;
mod content;
mod device_bytes;
mod durability;
mod failures;
mod generator;
mod hosts;
mod io_wq;
mod layers;
mod level;
mod limits;
mod load;
mod machine;
mod others;
mod outside;
mod rated;
mod storage;
#[cfg(test)]
pub(crate) mod testing;

use crate::facts::{Host, Target};
pub use crate::findings::{Finding, Obstacle, Severity, Unchecked, Verdict};
use crate::measure::Record;
use crate::spec::{BackendKind, Point};
use crate::trial::{Place, Trial};

pub use codes::{code_in_words, is_code, known_code};
pub use content::{reduced, repeating_pool, repeats};
pub(crate) use load::backlog_grows;

use case::Case;

/// Findings that follow from a load that is too much for the targets: a backlog that grows, IOPS
/// that are those of the backlog, and every slot in use.
const OF_TOO_MUCH_LOAD: &[&str] = &[
    "credit-exhausted",
    "level-change",
    "not-steady",
    "overload",
    "queue-too-deep",
    "trend",
    "warm-up-too-short",
];

/// Findings about IOPS that change over the window. A stall is not among them: during a stall the
/// target serves no I/O of any load.
const OF_CHANGE: &[&str] =
    &["credit-exhausted", "level-change", "not-steady", "trend", "warm-up-too-short"];

/// All findings about a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// The checks that could not be made.
    pub unchecked: Vec<Unchecked>,
}

/// Findings that an experiment is there to make. They make a trial void, and not the result that
/// compares it with others.
const SOUGHT: &[&str] = &["repeating-data-faster"];

/// Whether a finding about a trial is also one about the result that the trial is part of.
pub fn concerns_result(code: &str) -> bool {
    !SOUGHT.contains(&code)
}

impl Judgement {
    /// The result of all findings.
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.severity).max().into()
    }

    /// The code of the gravest finding that makes the trial suspect or void.
    pub fn doubt(&self) -> Option<&'static str> {
        let gravest = self.findings.first()?;
        (gravest.severity != Severity::Note).then_some(gravest.code)
    }

    /// The same for the result that the trial is part of.
    pub fn verdict_on_result(&self) -> Verdict {
        let own = self.findings.iter().filter(|finding| concerns_result(finding.code));
        own.map(|finding| finding.severity).max().into()
    }
}

/// The findings that name what disturbed a trial from outside.
const DISTURBERS: [&str; 10] = [
    "process-stopped",
    "machine-paused",
    "cpu-steal",
    "cpu-throttled",
    "cpu-contention",
    "memory-pressure",
    "cgroup-limit",
    "foreign-io",
    "concurrent-fathom",
    "target-written-by-others",
];

impl Judgement {
    /// The judgment of a trial that a mistake in fathom kept from being judged: void.
    pub fn of_a_mistake() -> Self {
        let mut judgement = Self::default();
        judgement.find(
            "not-judged",
            Severity::Void,
            "A mistake in fathom ended the judgement, so that no doubt of this trial is known."
                .to_owned(),
            "Report the mistake with this result file, and measure with another version.",
        );
        judgement
    }

    /// Adds findings of callers that know more than the trial itself.
    pub fn add(&mut self, findings: Vec<Finding>) {
        debug_assert!(findings.iter().all(|finding| is_code(finding.code)));
        self.findings.extend(findings);
        self.rank();
    }

    /// Turns findings that follow from too much load into notes, if the load was intended, for this
    /// reason. Findings that may have other causes stay: errors, other load, a late generator.
    pub fn excuse_overload(&mut self, why: &str) {
        self.excuse(OF_TOO_MUCH_LOAD, why);
    }

    /// Turns findings about changes over the window into notes, if the trial was meant to show the
    /// changes, for this reason.
    pub fn excuse_change(&mut self, why: &str) {
        self.excuse(OF_CHANGE, why);
    }

    /// Turns the findings about data that repeats itself into notes, if the trial was meant to show
    /// its effect, for this reason: such data may be faster than any medium.
    pub fn excuse_repetition(&mut self, why: &str) {
        if self.findings.iter().all(|finding| finding.code != "repeating-payload") {
            return;
        }
        for finding in &mut self.findings {
            if finding.code == "faster-than-rated" {
                finding.severity = finding.severity.min(Severity::Suspect);
            }
        }
        self.excuse(&["faster-than-rated", "repeating-payload"], why);
    }

    fn excuse(&mut self, codes: &[&str], why: &str) {
        for finding in &mut self.findings {
            if codes.contains(&finding.code) && finding.severity == Severity::Suspect {
                finding.severity = Severity::Note;
                why.clone_into(&mut finding.advice);
            }
        }
        self.rank();
    }

    /// The gravest first. Of equally grave ones those come first that name who disturbed the trial,
    /// because the others may follow from them: I/Os stall where other programs have the CPUs.
    fn rank(&mut self) {
        // Stable: beyond that the checks' own order stays.
        let is_effect = |finding: &Finding| !DISTURBERS.contains(&finding.code);
        self.findings
            .sort_by_key(|finding| (std::cmp::Reverse(finding.severity), is_effect(finding)));
    }

    fn find(
        &mut self,
        code: &'static str,
        severity: Severity,
        evidence: String,
        advice: impl Into<String>,
    ) {
        debug_assert!(is_code(code), "{code} is not in the table");
        self.findings.push(Finding { code, severity, evidence, advice: advice.into() });
    }

    /// A check that could have been made on another machine.
    fn cannot(&mut self, code: &'static str, why: impl Into<String>) {
        self.left_unchecked(code, why.into(), Obstacle::Machine);
    }

    /// A check that no machine could make for such a load.
    fn cannot_ever(&mut self, code: &'static str, why: impl Into<String>) {
        self.left_unchecked(code, why.into(), Obstacle::Load);
    }

    fn left_unchecked(&mut self, code: &'static str, why: String, obstacle: Obstacle) {
        debug_assert!(is_code(code), "{code} is not in the table");
        self.unchecked.push(Unchecked { code, why, obstacle });
    }
}

/// A check adds its finding to the judgement, or the reason why it could not be made.
type Check = fn(&Case, &mut Judgement);

/// The checks that need only the trial itself; they apply to simulated targets too.
const OF_EVERY_TRIAL: &[Check] = &[
    failures::io_errors,
    failures::gave_up,
    failures::interrupted,
    failures::nothing_completed,
    load::overload,
    load::depth_not_reached,
    change::changes,
    load::few_samples,
    load::window_too_short,
    rated::rated,
    content::repeating_payload,
    content::data_reduction,
    failures::trace_incomplete,
];

/// The checks of the host and the storage, which a simulated target does not have.
const OF_REAL_TARGETS: &[Check] = &[
    storage::unwritten,
    storage::trimmed_reads,
    others::at_the_targets,
    content::repeating_content,
    storage::memory_target,
    storage::page_cache,
    device_bytes::device_bytes,
    limits::limits,
    generator::generator_late,
    generator::worker_busy,
    machine::cpu_contention,
    machine::process_stopped,
    machine::machine_paused,
    machine::memory_pressure,
    outside::slow_outside_device,
    outside::one_after_the_other,
    io_wq::io_wq,
    generator::generator_ceiling,
    generator::cpu_steal,
    generator::cpu_throttled,
    generator::realtime_stopped,
    load::queue_too_deep,
    storage::compression,
    storage::copy_on_write,
    storage::volatile_write_cache,
    durability::few_flushes,
    durability::barriers_off,
    storage::alignment,
    layers::arrays,
    layers::loops,
    layers::top_of_stack,
    layers::overlay,
    layers::extents,
    layers::file_system_full,
    layers::begins_across,
    storage::small_footprint,
    generator::more_workers_than_cpus,
    generator::submission_threads_crowded,
    generator::numa_remote,
    generator::cpu_share,
    storage::io_priority,
    machine::low_priority,
];

/// Judges a trial by the facts about the host and the targets. A region's target is a place in
/// `targets`. A trial of several hosts is judged by what each of them found, and how they compare.
pub fn judge(trial: &Trial, host: &Host, targets: &[Target]) -> Judgement {
    let case = Case { trial, host, targets };
    if !trial.hosts.is_empty() {
        let mut judgement = hosts::judge(&trial.hosts, trial.record.window);
        rated::rated(&case, &mut judgement);
        judgement.rank();
        return judgement;
    }
    let mut judgement = Judgement::default();
    OF_EVERY_TRIAL.iter().for_each(|check| check(&case, &mut judgement));
    if !case.is_simulated() {
        OF_REAL_TARGETS.iter().for_each(|check| check(&case, &mut judgement));
    }
    judgement.rank();
    judgement
}

/// The checks that need no trial, only the point and the facts.
const FORESEEN: &[Check] = &[
    content::repeating_payload,
    content::data_reduction,
    storage::unwritten,
    storage::memory_target,
    storage::page_cache,
    limits::foreseen,
    storage::compression,
    storage::copy_on_write,
    storage::volatile_write_cache,
    durability::barriers_off,
    storage::alignment,
    layers::arrays,
    layers::loops,
    layers::top_of_stack,
    layers::overlay,
    layers::extents,
    layers::file_system_full,
    layers::begins_across,
    storage::small_footprint,
    generator::more_workers_than_cpus,
    generator::submission_threads_crowded,
    generator::numa_remote,
    storage::io_priority,
    machine::low_priority,
];

/// The findings about a point before it runs: the doubts that its trial will have in any case.
pub fn foresee(point: &Point, backend: BackendKind, host: &Host, targets: &[Target]) -> Judgement {
    let record = Record {
        window: point.window,
        interrupted: false,
        ended_early: false,
        workers: Vec::new(),
        series: Vec::new(),
        stretches: Vec::new(),
        buckets: None,
    };
    let trial = Trial {
        point: point.clone(),
        place: Place::default(),
        backend,
        backend_reason: String::new(),
        started_unix_ns: 0,
        record,
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    };
    let case = Case { trial: &trial, host, targets };
    let mut judgement = Judgement::default();
    if !case.is_simulated() {
        FORESEEN.iter().for_each(|check| check(&case, &mut judgement));
    }
    judgement.rank();
    judgement
}

#[cfg(test)]
mod tests {
    use super::testing::Invented;
    use super::*;

    #[test]
    fn a_clean_trial_is_sound_and_fully_checked() {
        for invented in [Invented::reads(), Invented::writes(), Invented::open_reads(1000.0)] {
            assert_eq!(invented.judge(), Judgement::default());
            assert_eq!(invented.judge().verdict(), Verdict::Sound);
        }
    }

    #[test]
    fn what_needs_no_trial_is_foreseen() {
        let foreseen = |invented: &Invented| {
            let trial = &invented.trial;
            let found = foresee(&trial.point, trial.backend, &invented.host, &invented.targets);
            found.findings.iter().map(|finding| finding.code).collect::<Vec<_>>()
        };
        let mut invented = Invented::writes();
        assert_eq!(foreseen(&invented), [""; 0]);
        invented.set_region(0, 1 << 28);
        invented.disk().queue.as_mut().unwrap().volatile_write_cache = Some(true);
        assert_eq!(foreseen(&invented), ["volatile-write-cache", "small-footprint"]);
        invented.simulate();
        assert_eq!(foreseen(&invented), [""; 0]);
    }

    #[test]
    fn a_simulated_target_has_no_host_to_doubt() {
        let mut invented = Invented::reads();
        invented.simulate();
        invented.host = Host::default();
        assert_eq!(invented.judge(), Judgement::default());
    }

    #[test]
    fn the_gravest_finding_comes_first_and_decides() {
        let mut invented = Invented::reads();
        invented.set_region(0, 1 << 28);
        assert_eq!(invented.codes(), ["small-footprint"]);
        assert_eq!(invented.judge().verdict(), Verdict::Sound);
        invented.trial.record.interrupted = true;
        assert_eq!(invented.judge().verdict(), Verdict::Suspect);
        invented.worker().gave_up = true;
        assert_eq!(invented.codes(), ["gave-up", "interrupted", "small-footprint"]);
        assert_eq!(invented.judge().verdict(), Verdict::Void);
    }

    #[test]
    fn a_load_that_was_meant_to_be_too_much_is_excused_and_nothing_else() {
        let mut invented = Invented::open_reads(1000.0);
        let ledger = &mut invented.worker().ledger;
        ledger.unstarted = ledger.due / 2;
        let judged = |invented: &Invented| {
            let mut judgement = invented.judge();
            judgement.excuse_overload("It was meant.");
            judgement
        };
        assert_eq!(invented.judge().verdict(), Verdict::Suspect);
        let judgement = judged(&invented);
        assert_eq!(judgement.verdict(), Verdict::Sound);
        assert_eq!(judgement.findings.len(), invented.judge().findings.len());
        assert!(judgement.findings.iter().any(|one| one.advice == "It was meant."));
        let mut changed = invented.judge();
        changed.excuse_change("It was to be seen.");
        assert_eq!(changed.verdict(), Verdict::Suspect, "too much load is no change");
        invented.trial.record.interrupted = true;
        assert_eq!(judged(&invented).verdict(), Verdict::Suspect, "for another reason");
        invented.worker().gave_up = true;
        assert_eq!(judged(&invented).verdict(), Verdict::Void);
    }

    #[test]
    fn what_the_machine_does_not_tell_is_missing_and_what_no_machine_could_is_not() {
        let mut invented = Invented::reads();
        invented.counters().cpus.clear();
        invented.set_series([1000; 3]);
        let judgement = invented.judge();
        let of = |code: &str| {
            let mut all = judgement.unchecked.iter();
            all.find(|one| one.code == code).map(|one| one.obstacle)
        };
        assert_eq!(of("cpu-steal"), Some(Obstacle::Machine));
        assert_eq!(of("not-steady"), Some(Obstacle::Load), "a longer window is no other machine");
    }

    #[test]
    fn an_empty_trial_and_wrong_facts_do_not_panic() {
        let mut invented = Invented::reads();
        invented.trial.record.workers.clear();
        invented.trial.record.series.clear();
        invented.trial.record.window = crate::Span(0);
        assert_eq!(invented.codes(), ["nothing-completed"]);
        invented.targets[0].layers[1].members = Vec::from([0, 99]);
        invented.judge();
        invented.targets.clear();
        invented.judge();
    }

    #[test]
    fn every_code_stands_in_the_page_of_verdicts_and_no_other() {
        let page = include_str!("../../../../docs/method/verdicts.md");
        let listed: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(code, _)| code)
            .collect();
        assert_eq!(listed.iter().filter(|code| !is_code(code)).count(), 0, "{listed:?}");
        for (code, _) in codes::CODES {
            assert!(listed.contains(code), "{code} is missing in docs/method/verdicts.md");
        }
    }
}
