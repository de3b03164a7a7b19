//! Whether the ring's own threads, rather than the ring, carried the I/Os. The kernel hands them
//! (io-wq) every I/O that it cannot start without waiting. Such an I/O works, but its service time
//! contains the way to another thread and back, and a worker's CPU time does not include that
//! thread's.

use super::case::{Case, counted};
use super::{Judgement, Severity};
use crate::facts::{Counters, IoWq, TargetKind};
use crate::figures::percent;
use crate::measure::Upkeep;
use crate::spec::BackendKind;
use crate::units::{Span, count};

/// Below this share nothing is reported: a file that is touched for the first time has a few.
const SHARE_NOTED: f64 = 0.001;
/// From this share on even the p90 may be that of the hand-over.
const SHARE_MAX: f64 = 0.1;
/// The same of the process's CPU time, if the I/Os cannot be counted. If all I/Os were handed over
/// to a slow device, the threads used at least 14 % of it.
const CPU_SHARE_MAX: f64 = 0.05;

const ADVICE: &str = "Take the service time for that of io_uring with its threads, or measure \
     with --backend sync (or aio, if the access is direct), which has none.";

pub(super) fn io_wq(case: &Case, judgement: &mut Judgement) {
    if case.trial.backend != BackendKind::Uring {
        return;
    }
    let counters = case.trial.counters.as_ref();
    let Some((counters, io_wq)) = counters.and_then(|all| Some((all, all.io_wq.as_ref()?))) else {
        judgement.cannot("io-wq", "what io_uring's own threads did in the window is not known");
        return;
    };
    match (io_wq.handed_over, io_wq.cpu()) {
        (Some(handed_over), _) => by_count(case, handed_over, io_wq, judgement),
        (None, Some(cpu)) => by_cpu_time(cpu, counters, judgement),
        (None, None) => judgement.cannot(
            "io-wq",
            "the I/Os that went to io_uring's own threads can be counted by root alone, and this \
             kernel does not show those threads",
        ),
    }
}

fn by_count(case: &Case, handed_over: u64, io_wq: &IoWq, judgement: &mut Judgement) {
    let completed = case.trial.record.total(None).ios();
    // The kernel has no other way for a flush and for a hole in a file, which is not a fault of the
    // reads and writes.
    let flushes = case.upkeep(Upkeep::Flush, |_| true);
    let is_file =
        |target| case.used().any(|(place, one)| place == target && one.kind == TargetKind::File);
    let trims = case.trial.record.upkeep(Upkeep::Trim, |_, cell| is_file(cell.target)).ios();
    let handed_over = handed_over.saturating_sub(flushes + trims);
    // I/Os that were handed over in the window may complete after it.
    let handed_over = handed_over.min(completed);
    let share = handed_over as f64 / completed.max(1) as f64;
    if share <= SHARE_NOTED {
        return;
    }
    let cpu = match io_wq.cpu() {
        Some(cpu) if cpu > Span(0) => format!(", which used {cpu} of CPU time"),
        _ => String::new(),
    };
    judgement.find(
        "io-wq",
        if SHARE_MAX < share { Severity::Suspect } else { Severity::Note },
        format!(
            "{} of {} ({}) went through io_uring's own threads \
             (io-wq){cpu}: the kernel could not start them without waiting, and their service time \
             contains the way to another thread and back.",
            count(handed_over),
            counted(completed, "I/O"),
            percent(share)
        ),
        ADVICE,
    );
}

fn by_cpu_time(cpu: Span, counters: &Counters, judgement: &mut Judgement) {
    let process = counters.process_user + counters.process_kernel;
    let share = cpu.0 as f64 / process.0.max(cpu.0).max(1) as f64;
    if share <= SHARE_NOTED {
        return;
    }
    judgement.find(
        "io-wq",
        if CPU_SHARE_MAX < share { Severity::Suspect } else { Severity::Note },
        format!(
            "io_uring's own threads (io-wq) used {cpu} of CPU time, {} of the process's: I/Os that \
             the kernel could not start without waiting went through them (only root can count \
             how many), and their service time contains the way to another thread and back.",
            percent(share)
        ),
        ADVICE,
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;

    /// 60,000 reads. `handed_over` of them were handed over.
    fn counted(handed_over: u64) -> Invented {
        let mut invented = Invented::reads();
        let threads = Some(Vec::from([(31, Span::from_ms(1200)), (32, Span::from_ms(300))]));
        invented.counters().io_wq =
            Some(IoWq { handed_over: Some(handed_over), threads, waits: None });
        invented
    }

    /// The process used 10 s of CPU time. `cpu` of it was in those threads.
    fn uncounted(cpu: Span) -> Invented {
        let mut invented = Invented::reads();
        invented.counters().process_user = Span::from_secs(2);
        invented.counters().process_kernel = Span::from_secs(8);
        let threads = Some(Vec::from([(31, cpu)]));
        invented.counters().io_wq = Some(IoWq { handed_over: None, threads, waits: None });
        invented
    }

    #[test]
    fn ios_that_were_handed_over_are_counted() {
        counted(0).has_none_of(&["io-wq"]);
        counted(60).has_none_of(&["io-wq"]);
        counted(61).has("io-wq", Severity::Note);
        counted(6000).has("io-wq", Severity::Note);
        let finding = counted(6001).has("io-wq", Severity::Suspect);
        assert!(
            finding.evidence.starts_with(
                "6,001 of 60,000 I/Os (10 %) went through io_uring's own threads (io-wq), which used \
                 1.5 s of CPU time: "
            ),
            "{}",
            finding.evidence
        );
        // Some were still in flight when the window ended.
        let finding = counted(60_031).has("io-wq", Severity::Suspect);
        assert!(finding.evidence.starts_with("60,000 of 60,000 I/Os (100 %)"), "{finding:?}");
    }

    #[test]
    fn where_they_cannot_be_counted_the_threads_cpu_time_tells() {
        uncounted(Span(0)).has_none_of(&["io-wq"]);
        assert!(uncounted(Span(0)).judge().unchecked.is_empty());
        uncounted(Span::from_ms(10)).has_none_of(&["io-wq"]);
        uncounted(Span::from_ms(11)).has("io-wq", Severity::Note);
        uncounted(Span::from_ms(500)).has("io-wq", Severity::Note);
        let finding = uncounted(Span::from_ms(510)).has("io-wq", Severity::Suspect);
        assert!(finding.evidence.contains("used 510 ms of CPU time, 5.1 %"), "{finding:?}");
        // The clocks of threads and process are read one after the other.
        let mut invented = uncounted(Span::from_secs(3));
        invented.counters().process_user = Span(0);
        invented.counters().process_kernel = Span::from_ms(2900);
        let finding = invented.has("io-wq", Severity::Suspect);
        assert!(finding.evidence.contains(", 100 % of"), "{finding:?}");
    }

    #[test]
    fn without_a_witness_it_is_unchecked_and_without_io_uring_there_is_nothing_to_check() {
        let mut invented = counted(60_000);
        invented.counters().io_wq = Some(IoWq::default());
        invented.is_unchecked("io-wq");
        invented.counters().io_wq = None;
        invented.is_unchecked("io-wq");
        invented.trial.counters = None;
        invented.is_unchecked("io-wq");
        for backend in [BackendKind::Aio, BackendKind::Sync] {
            let mut invented = counted(60_000);
            invented.trial.backend = backend;
            invented.has_none_of(&["io-wq"]);
            invented.counters().io_wq = None;
            assert!(invented.judge().unchecked.iter().all(|one| one.code != "io-wq"));
        }
    }
}
