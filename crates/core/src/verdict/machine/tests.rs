//! Invented trials on machines that did not let the load generator run.

use super::super::testing::Invented;
use super::*;
use crate::facts::{CpuTime, Pause, PauseKind};
use crate::measure::CpuWait;
use crate::spec::IoPriority;

/// Other programs use all CPUs but the first for `seconds` of the 60 s.
fn others(invented: &mut Invented, seconds: u64) {
    let busy = CpuTime {
        user: Span::from_secs(seconds),
        idle: Span::from_secs(60 - seconds),
        ..CpuTime::default()
    };
    let idle = CpuTime { idle: Span::from_secs(60), ..CpuTime::default() };
    invented.counters().cpus = (0..4).map(|n| (n, if n == 0 { idle } else { busy })).collect();
}

#[test]
fn a_worker_that_others_keep_off_its_cpu_is_suspect() {
    let mut invented = Invented::reads();
    others(&mut invented, 10);
    invented.set_cpu_wait(Span::from_ms(1700));
    invented.has_none_of(&["cpu-contention"]);
    invented.set_cpu_wait(Span::from_ms(2400));
    invented.counters().process_user = Span::from_secs(6);
    let finding = invented.has("cpu-contention", Severity::Suspect);
    let expected = "Others kept 1 of 1 worker waiting for a CPU for 2.4 s of 60 s, 39.99 us for each \
                    I/O: they used 10 % of the CPUs' time and fathom 2.5 %.";
    assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
    invented.worker().cpu_wait = None;
    invented.has_none_of(&["cpu-contention"]);
    invented.is_unchecked("cpu-contention");
    invented.set_cpu_wait(Span::from_secs(3));
    invented.counters().cpus.clear();
    invented.is_unchecked("cpu-contention");
}

#[test]
fn workers_that_wait_for_one_another_are_no_matter_of_others() {
    let mut invented = Invented::reads();
    others(&mut invented, 10);
    invented.set_cpu_wait(Span::from_secs(30));
    invented.counters().process_kernel = Span::from_secs(30);
    invented.has_none_of(&["cpu-contention"]);
    invented.counters().process_kernel = Span::from_secs(20);
    let finding = invented.has("cpu-contention", Severity::Suspect);
    assert!(finding.evidence.contains("for 10 s of 60 s"), "{}", finding.evidence);
    // Activity on CPUs that the workers do not use does not delay them.
    invented.stream().workplace.cpus = Vec::from([0]);
    invented.has_none_of(&["cpu-contention"]);
    invented.stream().workplace.cpus = Vec::from([1]);
    invented.counters().process_kernel = Span::from_ms(10);
    invented.has("cpu-contention", Severity::Suspect);
}

#[test]
fn a_load_of_few_ios_is_kept_by_a_small_part_of_the_window() {
    let mut invented = Invented::reads();
    others(&mut invented, 10);
    invented.set_times(600, 200_000);
    invented.set_cpu_wait(Span::from_ms(29));
    invented.has_none_of(&["cpu-contention"]);
    invented.set_cpu_wait(Span::from_ms(40));
    invented.has("cpu-contention", Severity::Suspect);
    // The delay from the wake-up to the CPU, however short the I/Os are.
    invented.set_times(6000, 20_000);
    invented.set_cpu_wait(Span::from_ms(270));
    invented.has_none_of(&["cpu-contention"]);
}

/// Each wake-up waits for some microseconds, even on a quiet machine.
#[test]
fn the_way_to_a_cpu_is_no_waiting_for_others() {
    let mut invented = Invented::reads();
    others(&mut invented, 20);
    invented.worker().cpu_wait = Some(CpuWait { time: Span::from_secs(6), runs: 1_200_000 });
    invented.has_none_of(&["cpu-contention"]);
    invented.worker().cpu_wait = Some(CpuWait { time: Span::from_secs(6), runs: 400_000 });
    let finding = invented.has("cpu-contention", Severity::Suspect);
    assert!(finding.evidence.contains("for 4 s of 60 s"), "{}", finding.evidence);
}

#[test]
fn the_rings_own_threads_are_kept_too() {
    let mut invented = Invented::reads();
    others(&mut invented, 20);
    let ring = |invented: &mut Invented, waits: &[u64]| {
        let waits = waits.iter().enumerate();
        let waits = waits.map(|(id, ms)| (id as u32, Span::from_ms(*ms))).collect();
        invented.counters().io_wq.as_mut().unwrap().waits = Some(waits);
    };
    ring(&mut invented, &[1000, 500]);
    invented.has_none_of(&["cpu-contention"]);
    ring(&mut invented, &[3000, 1500]);
    let finding = invented.has("cpu-contention", Severity::Suspect);
    let expected = "the rings' own threads waiting, all together, for 4.2 s of 60 s";
    assert!(finding.evidence.contains(expected), "{}", finding.evidence);
}

#[test]
fn a_late_generator_that_was_kept_off_the_cpus_has_no_service_time_to_trust() {
    let mut invented = Invented::open_reads(1000.0);
    invented.set_times(10_000, 1_000_000);
    let late = &mut invented.worker().start_delay.get_or_insert_default().generator;
    (0..10_000).for_each(|_| late.record(3_000_000));
    let advice = |invented: &Invented| invented.has("generator-late", Severity::Suspect).advice;
    assert!(advice(&invented).contains("trust the service time"));
    others(&mut invented, 30);
    invented.set_cpu_wait(Span::from_secs(12));
    assert!(advice(&invented).contains("service time is inflated too"));
}

fn pause(kind: PauseKind, after_ms: u64, length_ms: u64) -> Pause {
    Pause { kind, after: Span::from_ms(after_ms), length: Span::from_ms(length_ms) }
}

fn pauses(invented: &mut Invented) -> &mut Pauses {
    invented.counters().pauses.as_mut().unwrap()
}

#[test]
fn a_process_that_was_stopped_is_suspect_with_the_time_and_the_length() {
    let mut invented = Invented::reads();
    pauses(&mut invented).found.push(pause(PauseKind::Process, 2300, 1950));
    let finding = invented.has("process-stopped", Severity::Suspect);
    let expected = "fathom was stopped for at least 1.95 s, 2.30 s into the window";
    assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
    invented.has_none_of(&["machine-paused", "cpu-contention"]);
    pauses(&mut invented).found.push(pause(PauseKind::Process, 9000, 3000));
    invented.counters().tracer = Some("gdb (77)".to_owned());
    let finding = invented.has("process-stopped", Severity::Suspect);
    let expected =
        "2 times or more, 4.95 s in all, the longest time for at least 3.00 s, 9.00 s into";
    assert!(finding.evidence.contains(expected), "{}", finding.evidence);
    assert!(finding.evidence.contains("gdb (77) traces it"), "{}", finding.evidence);
    // Of those that were not kept, nobody knows which kind they were.
    pauses(&mut invented).others = Span::from_secs(10);
    let finding = invented.has("process-stopped", Severity::Suspect);
    let expected = "4.95 s or more in all, the longest known time for at least 3.00 s";
    assert!(finding.evidence.contains(expected), "{}", finding.evidence);
    invented.counters().pauses = None;
    invented.is_unchecked("process-stopped");
    invented.is_unchecked("machine-paused");
}

#[test]
fn a_process_that_is_traced_is_suspect_even_if_no_stop_was_long() {
    let mut invented = Invented::reads();
    invented.counters().tracer = Some("strace (4711)".to_owned());
    let finding = invented.has("process-stopped", Severity::Suspect);
    assert!(finding.evidence.starts_with("strace (4711) traces fathom"), "{}", finding.evidence);
}

#[test]
fn a_machine_that_stood_still_is_told_from_one_that_slept_and_from_a_throttled_process() {
    let mut invented = Invented::reads();
    pauses(&mut invented).found.push(pause(PauseKind::Machine, 500, 800));
    let finding = invented.has("machine-paused", Severity::Suspect);
    let expected = "The machine stood still for at least 800 ms, 500 ms into the window";
    assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
    invented.has_none_of(&["process-stopped"]);
    invented.counters().throttled = Some(Span::from_ms(1));
    invented.has_none_of(&["machine-paused"]);
    invented.is_unchecked("machine-paused");
    pauses(&mut invented).found[0].kind = PauseKind::Suspended;
    let finding = invented.has("machine-paused", Severity::Suspect);
    assert!(finding.evidence.starts_with("The machine slept for"), "{}", finding.evidence);
    pauses(&mut invented).found.clear();
    assert!(invented.judge().unchecked.is_empty());
    pauses(&mut invented).tells_waiting = false;
    invented.is_unchecked("machine-paused");
}

#[test]
fn a_generator_that_was_stopped_has_no_service_time_to_trust() {
    let mut invented = Invented::open_reads(1000.0);
    let late = &mut invented.worker().start_delay.get_or_insert_default().generator;
    (0..10_000).for_each(|_| late.record(30_000_000));
    pauses(&mut invented).found.push(pause(PauseKind::Process, 10, 900));
    let advice = invented.has("generator-late", Severity::Suspect).advice;
    assert!(advice.contains("service time is inflated too"), "{advice}");
}

#[test]
fn memory_that_is_short_is_suspect_from_its_bounds_on() {
    let mut invented = Invented::reads();
    let mut codes = |change: &dyn Fn(&mut crate::facts::Memory)| {
        let memory = &mut invented.counters().memory;
        *memory = crate::facts::Memory { major_faults: Some(0), ..Default::default() };
        change(memory);
        invented.codes()
    };
    let none = [""; 0];
    assert_eq!(codes(&|m| m.major_faults = Some(60)), none);
    assert_eq!(codes(&|m| m.major_faults = Some(61)), ["memory-pressure"]);
    assert_eq!(codes(&|m| m.swapped_in = Some(Bytes(60 << 20))), none);
    assert_eq!(codes(&|m| m.swapped_in = Some(Bytes(61 << 20))), ["memory-pressure"]);
    assert_eq!(codes(&|m| m.swapped_out = Some(Bytes(61 << 20))), ["memory-pressure"]);
    assert_eq!(codes(&|m| m.stalled = Some(Span::from_ms(1190))), none);
    assert_eq!(codes(&|m| m.stalled = Some(Span::from_ms(1250))), ["memory-pressure"]);
    let finding = invented.has("memory-pressure", Severity::Suspect);
    assert!(finding.evidence.contains("waited for memory for 1.25 s"), "{}", finding.evidence);
    // Buffered I/O waits for memory by nature.
    invented.stream().access.cache = crate::spec::Cache::Buffered;
    invented.has_none_of(&["memory-pressure"]);
    invented.counters().memory = crate::facts::Memory::default();
    invented.is_unchecked("memory-pressure");
}

#[test]
fn a_few_pages_of_a_short_run_are_no_pressure() {
    let mut invented = Invented::reads();
    invented.trial.record.window = Span::from_secs(1);
    invented.counters().memory.major_faults = Some(19);
    invented.has_none_of(&["memory-pressure"]);
}

#[test]
fn a_low_rank_is_a_note_and_suspect_where_others_had_the_cpus() {
    let mut invented = Invented::reads();
    invented.host.rank.cpu_weight = Some(0.5);
    invented.host.rank.io = Some(IoPriority::BestEffort(4));
    invented.has_none_of(&["low-priority"]);
    invented.host.rank.nice = 10;
    invented.host.rank.session_nice = Some(5);
    invented.host.rank.cpu_weight = Some(0.01);
    invented.host.rank.policy = Some("batch".to_owned());
    invented.host.rank.io = Some(IoPriority::Idle);
    let finding = invented.has("low-priority", Severity::Note);
    assert_eq!(
        finding.evidence,
        "fathom gives way to others: its nice value is 10, its scheduling policy is batch, the nice \
         value of its session (autogroup) is 5, its cgroup's weight for CPU time is 1 % of the \
         default, the priority of its I/Os (ionice) is idle."
    );
    others(&mut invented, 20);
    invented.set_cpu_wait(Span::from_secs(9));
    invented.has("low-priority", Severity::Suspect);
    // A user who sets the priority of the I/Os wants it. It is not a priority of the CPUs.
    invented.host.rank = Rank { io: Some(IoPriority::BestEffort(7)), ..Rank::default() };
    invented.has("low-priority", Severity::Note);
    invented.stream().workplace.io_priority = Some(IoPriority::BestEffort(7));
    invented.has_none_of(&["low-priority"]);
}
