//! I/Os that failed, and runs that ended prematurely.

use std::collections::BTreeMap;

use super::case::{Case, counted};
use super::{Judgement, Severity};
use crate::errno::meaning;
use crate::figures::time;
use crate::measure::{Direction, ErrorKind, IoError, Upkeep};
use crate::nvme;
use crate::units::{Span, count};

/// Failures are grouped by how they failed, where, and what kind of I/O they were.
type FailureKind = (ErrorKind, u32, Direction, Option<Upkeep>);

/// A finding for every kind of failure, for each target and direction.
pub(super) fn io_errors(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    let total = record.errors();
    if total == 0 && record.ledger().lost == 0 {
        return;
    }
    let mut kinds: BTreeMap<FailureKind, (u64, IoError)> = BTreeMap::new();
    let kept = record.workers.iter().flat_map(|worker| &worker.errors.first);
    for error in kept {
        let (count, first) = kinds
            .entry((class(error.kind), error.target, error.direction, error.upkeep))
            .or_insert((0, *error));
        *count += 1;
        if error.at_ns < first.at_ns {
            *first = *error;
        }
    }
    let in_detail: u64 = kinds.values().map(|(count, _)| count).sum();
    let whole = match total.saturating_sub(in_detail) {
        0 => String::new(),
        _ => format!(
            "{} failed; of the {} that were kept in detail, ",
            counted(total, "I/O"),
            count(in_detail)
        ),
    };
    for (count, first) in kinds.values() {
        describe(case, judgement, *count, first, &whole);
    }
    if kinds.is_empty() {
        judgement.find(
            "io-errors",
            Severity::Void,
            format!("{} failed, none of which was kept in detail.", counted(total, "I/O")),
            "Run again, and look at the kernel's log (dmesg) meanwhile.",
        );
    }
}

/// Short I/Os of any length are one kind; those that moved no bytes are another.
fn class(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::Short(1..) => ErrorKind::Short(1),
        _ => kind,
    }
}

fn describe(case: &Case, judgement: &mut Judgement, count: u64, first: &IoError, whole: &str) {
    let what = format!("{whole}{} of {}", counted(count, first.what()), case.name(first.target));
    let place = format!(
        "the first at offset {}, {} long, {}",
        first.offset.0,
        first.length,
        when(first.at_ns)
    );
    let (code, evidence, advice) = match first.kind {
        ErrorKind::Errno(errno) => {
            let meaning = meaning(errno);
            let evidence = format!(
                "{what} failed with {} ({errno}: {}), {place}.",
                meaning.name.unwrap_or("an errno without a name here"),
                meaning.words
            );
            ("io-errors", evidence, meaning.advice)
        }
        ErrorKind::Nvme(status) => {
            let meaning = nvme::meaning(status);
            let evidence = format!(
                "{what} failed with the NVMe status {} ({}), {place}.",
                meaning.name.unwrap_or("that has no name here"),
                nvme::numbers(status)
            );
            ("io-errors", evidence, meaning.advice)
        }
        ErrorKind::Short(0) => (
            "device-gone",
            format!(
                "{what} moved no bytes without an error, as an unplugged device does, {place}."
            ),
            "See that the device is attached and the file as long as it was, then run again.",
        ),
        ErrorKind::Short(bytes) => (
            "short-ios",
            format!("{what} moved fewer bytes than asked, {place}, of which {bytes} bytes moved."),
            "See that the region lies within the target and that its file system has space.",
        ),
        ErrorKind::Lost => (
            "lost-ios",
            format!(
                "{what} did not come back while they were waited for, {place}, where it started."
            ),
            "The device hangs: look at the kernel's log (dmesg) for time-outs and resets.",
        ),
    };
    judgement.find(code, Severity::Void, evidence, advice);
}

fn when(at_ns: i64) -> String {
    let after = time(at_ns.unsigned_abs() as f64);
    match at_ns < 0 {
        true => format!("{after} before the window"),
        false => format!("{after} into the window"),
    }
}

pub(super) fn gave_up(case: &Case, judgement: &mut Judgement) {
    let workers = &case.trial.record.workers;
    let gave_up = workers.iter().filter(|worker| worker.gave_up).count();
    if gave_up > 0 {
        judgement.find(
            "gave-up",
            Severity::Void,
            format!(
                "{} of {} gave up, because a long series of I/Os failed without a success.",
                count(gave_up as u64),
                counted(workers.len() as u64, "worker")
            ),
            "Fix the cause of the I/O errors, then run again.",
        );
    }
}

pub(super) fn interrupted(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    if record.interrupted {
        judgement.find(
            "interrupted",
            Severity::Suspect,
            format!(
                "The run ended early: {} of a window of {} were measured.",
                record.window, case.trial.point.window
            ),
            "Let it run to its end, or ask for a shorter window.",
        );
    }
}

pub(super) fn nothing_completed(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    let ledger = record.ledger();
    if ledger.completed == 0 {
        let limited = case.streams().iter().all(|stream| stream.pacing.limit.is_some());
        let cut_off = record.interrupted || record.workers.iter().any(|worker| worker.gave_up);
        let has_run = 0 < ledger.completed_in_warm_up && !cut_off;
        let advice = match limited && has_run && record.window == Span(0) {
            true => {
                "An amount counts from the first I/O, and the warm-up took all of it: drop the \
                 warm-up, or ask for more."
            }
            false => {
                "Choose a longer window or smaller blocks; see whether the target answers at all."
            }
        };
        judgement.find(
            "nothing-completed",
            Severity::Void,
            format!(
                "No I/O completed in the window of {}; {} due, {} failed, {} in flight at its end.",
                record.window, ledger.due, ledger.failed, ledger.in_flight
            ),
            advice,
        );
    }
}

/// I/Os that are missing in the trace: the figures still include them.
pub(super) fn trace_incomplete(case: &Case, judgement: &mut Judgement) {
    let Some(traced) = case.trial.traced.as_ref().filter(|traced| traced.left_out > 0) else {
        return;
    };
    let all = traced.ios + traced.left_out;
    judgement.find(
        "trace-incomplete",
        Severity::Note,
        format!(
            "{} of {} are not in the trace {}, because it could not be written as fast as they \
             came, or at all; the figures count them.",
            traced.left_out,
            counted(all, "I/O"),
            traced.file,
        ),
        "Write the trace to a faster device with more room, or offer less load.",
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::spec::Limit;
    use crate::trial::Traced;
    use crate::units::Bytes;

    fn error(kind: ErrorKind) -> IoError {
        IoError {
            target: 0,
            upkeep: None,
            direction: Direction::Read,
            offset: Bytes(8192),
            length: Bytes(4096),
            kind,
            at_ns: 1_500_000_000,
        }
    }

    fn with(errors: &[IoError]) -> Invented {
        let mut invented = Invented::reads();
        errors.iter().for_each(|error| invented.worker().errors.add(*error));
        invented
    }

    #[test]
    fn each_kind_of_failure_is_told_apart() {
        with(&[]).has_none_of(&["io-errors", "short-ios", "device-gone", "lost-ios"]);
        let invented = with(&[
            error(ErrorKind::Errno(5)),
            error(ErrorKind::Errno(5)),
            error(ErrorKind::Errno(28)),
            error(ErrorKind::Nvme(0x4281)),
            error(ErrorKind::Short(512)),
            error(ErrorKind::Short(1024)),
            error(ErrorKind::Short(0)),
            error(ErrorKind::Lost),
        ]);
        for code in ["io-errors", "short-ios", "device-gone", "lost-ios"] {
            invented.has(code, Severity::Void);
        }
        let findings = invented.judge().findings;
        let evidence: Vec<&str> = findings.iter().map(|f| f.evidence.as_str()).collect();
        assert_eq!(
            evidence[0],
            "2 reads of data.bin failed with EIO (5: the device or what lies below it could not do \
             the I/O), the first at offset 8192, 4 KiB long, 1.50 s into the window."
        );
        assert!(evidence[1].starts_with("1 read of data.bin failed with ENOSPC (28"));
        assert!(evidence[2].starts_with(
            "1 read of data.bin failed with the NVMe status Unrecovered Read Error (status code type \
             2h, status code 81h), the first"
        ));
        assert!(evidence[3].starts_with("1 read of data.bin moved no bytes"));
        assert!(evidence[4].starts_with("2 reads of data.bin moved fewer bytes than asked"));
    }

    #[test]
    fn failures_that_were_not_kept_are_counted() {
        let many: Vec<IoError> = (0..100).map(|_| error(ErrorKind::Errno(5))).collect();
        let findings = with(&many).judge().findings;
        assert!(
            findings[0]
                .evidence
                .contains("100 I/Os failed; of the 64 that were kept in detail, 64 reads of")
        );
        let mut unkept = with(&[]);
        unkept.worker().errors.count = 3;
        unkept.has("io-errors", Severity::Void);
    }

    #[test]
    fn a_failure_in_the_warm_up_says_so() {
        let early = IoError { at_ns: -2_000_000_000, ..error(ErrorKind::Errno(5)) };
        let findings = with(&[early]).judge().findings;
        assert!(findings[0].evidence.ends_with("2.00 s before the window."), "{findings:?}");
    }

    #[test]
    fn a_simulated_target_can_fail_too() {
        let mut invented = with(&[error(ErrorKind::Errno(5))]);
        invented.simulate();
        invented.has("io-errors", Severity::Void);
    }

    #[test]
    fn a_worker_that_gave_up_is_void() {
        let mut invented = Invented::reads();
        invented.has_none_of(&["gave-up"]);
        invented.worker().gave_up = true;
        invented.has("gave-up", Severity::Void);
    }

    #[test]
    fn an_interrupted_run_is_suspect() {
        let mut invented = Invented::reads();
        invented.has_none_of(&["interrupted"]);
        invented.trial.record.interrupted = true;
        invented.has("interrupted", Severity::Suspect);
    }

    #[test]
    fn a_window_without_an_io_is_void() {
        let mut invented = Invented::reads();
        invented.worker().ledger.completed = 1;
        invented.has_none_of(&["nothing-completed"]);
        invented.worker().ledger.completed = 0;
        let finding = invented.has("nothing-completed", Severity::Void);
        assert!(finding.advice.starts_with("Choose a longer window"), "{}", finding.advice);
        // The amount of the only stream was done in the warm-up.
        invented.trial.point.streams[0].pacing.limit = Some(Limit::Ios(100));
        invented.trial.record.window = Span(0);
        invented.worker().ledger.completed_in_warm_up = 100;
        let finding = invented.has("nothing-completed", Severity::Void);
        assert!(finding.advice.contains("the warm-up took all of it"), "{}", finding.advice);
        // Or the target failed before the window.
        invented.worker().gave_up = true;
        let finding = invented.has("nothing-completed", Severity::Void);
        assert!(finding.advice.starts_with("Choose a longer window"), "{}", finding.advice);
    }

    #[test]
    fn a_trace_with_gaps_is_worth_a_note() {
        let mut invented = Invented::reads();
        let file = "trace.csv".to_owned();
        invented.trial.traced = Some(Traced { file: file.clone(), ios: 7, left_out: 0 });
        assert_eq!(invented.codes(), [""; 0]);
        invented.trial.traced = Some(Traced { file, ios: 7, left_out: 2 });
        let finding = invented.has("trace-incomplete", Severity::Note);
        assert!(finding.evidence.starts_with("2 of 9 I/Os"), "{}", finding.evidence);
    }
}
