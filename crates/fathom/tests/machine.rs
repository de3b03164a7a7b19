//! Makes real machines that do not let the load generator run: a process that is stopped or frozen
//! while it measures, busy loops on its worker's CPU, and a low rank. The expected findings do not
//! depend on how busy the machine is.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use common::{Place, Running};
use fathom_core::facts::PauseKind;
use fathom_report::document::{Counters, Document, Severity};

/// The time for which it is kept from running: far less than the window.
const STOPPED: Duration = Duration::from_secs(3);
/// The minimum that must be reported. The watch may have slept for 50 ms before the stop, and waited for
/// a CPU.
const TOLD_NS: u64 = 1_400_000_000;

fn codes(document: &Document) -> Vec<(&str, Severity)> {
    let findings = &document.trials[0].findings;
    findings.iter().map(|finding| (finding.code.as_str(), finding.severity)).collect()
}

fn evidence(document: &Document, code: &str) -> String {
    let mut findings = document.trials[0].findings.iter();
    findings.find(|finding| finding.code == code).map_or(String::new(), |one| one.evidence.clone())
}

fn counters(document: &Document) -> &Counters {
    document.trials[0].counters.as_ref().unwrap()
}

/// A run whose window is open.
fn measuring(place: &Place) -> Running {
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let run = ["run", "data", "--buffered", "--backend", "sync", "--think-time", "1ms"];
    let rest = ["--warm-up", "0", "--duration", "12s", "--out", "r.jsonl"];
    let mut running = Running::start(&mut place.command(&[&run[..], &rest].concat()));
    let tasks = PathBuf::from(format!("/proc/{}/task", running.id()));
    let watches = |task: &Path| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "fathom-watch")
    };
    // The watch exists as long as the window is open.
    loop {
        let all = std::fs::read_dir(&tasks).unwrap().flatten();
        if all.map(|task| task.path()).any(|task| watches(&task)) {
            return running;
        }
        assert!(!running.has_ended(), "it ended before its window opened");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Checks that the run was stopped for its time, and that nothing else is reported.
#[track_caller]
fn was_stopped(place: &Place, running: Running) {
    let (_, said, told) = running.end();
    let document = common::read(&place.join("r.jsonl"));
    let found = codes(&document);
    assert!(found.contains(&("process-stopped", Severity::Suspect)), "{found:?}\n{said}{told}");
    let pauses = counters(&document).pauses.as_ref().unwrap();
    let stops = pauses.iter().filter(|pause| pause.kind == PauseKind::Process);
    let longest = stops.map(|pause| pause.length.0).max().unwrap();
    assert!((TOLD_NS..12_000_000_000).contains(&longest), "{pauses:?}");
    assert!(evidence(&document, "process-stopped").contains("s, "), "{found:?}");
}

#[test]
fn a_process_that_is_stopped_while_it_measures_is_told_with_when_and_how_long() {
    let place = Place::in_memory();
    let running = measuring(&place);
    running.signal("STOP");
    thread::sleep(STOPPED);
    running.signal("CONT");
    was_stopped(&place, running);
}

/// A freezer group. Dropping it removes it.
struct Freezer {
    group: PathBuf,
    /// The file that freezes it, and the values to write to it.
    state: PathBuf,
    words: [&'static str; 2],
}

impl Freezer {
    fn new() -> Option<Self> {
        let name = format!("fathom-test-{}", std::process::id());
        let of = |root: &str, state: &str, words| {
            let group = Path::new(root).join(&name);
            std::fs::create_dir(&group).ok()?;
            let freezer = Self { state: group.join(state), group, words };
            freezer.state.exists().then_some(freezer)
        };
        of("/sys/fs/cgroup/freezer", "freezer.state", ["FROZEN", "THAWED"])
            .or_else(|| of("/sys/fs/cgroup", "cgroup.freeze", ["1", "0"]))
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.state, self.words[1]);
        // The group is empty after the process in it has ended.
        let _ = std::fs::remove_dir(&self.group);
    }
}

#[test]
fn a_process_that_a_freezer_stops_is_told_too() {
    let Some(freezer) = Freezer::new() else {
        println!("skipped: this user may not make a group with a freezer");
        return;
    };
    let place = Place::in_memory();
    let running = measuring(&place);
    std::fs::write(freezer.group.join("cgroup.procs"), running.id().to_string()).unwrap();
    std::fs::write(&freezer.state, freezer.words[0]).unwrap();
    thread::sleep(STOPPED);
    std::fs::write(&freezer.state, freezer.words[1]).unwrap();
    was_stopped(&place, running);
}

/// A tracer can stop the threads of a process as it likes.
#[test]
fn a_process_that_is_traced_names_its_tracer() {
    let place = Place::in_memory();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=none", "-o", "/dev/null", env!("CARGO_BIN_EXE_fathom")]);
    let run = ["run", "data", "--buffered", "--backend", "sync", "--warm-up", "0", "-d", "1s"];
    command.args(run).args(["--out", "r.jsonl"]).current_dir(place.path());
    let Ok(output) = command.output() else {
        println!("skipped: there is no strace here");
        return;
    };
    let document = common::read(&place.join("r.jsonl"));
    let found = evidence(&document, "process-stopped");
    assert!(found.contains("strace ("), "{found} {output:?}");
    let tracer = counters(&document).tracer.as_ref().unwrap();
    assert!(tracer.starts_with("strace ("), "{tracer}");
}

/// Two programs that never sleep, on one CPU. Dropping them ends them.
struct Hogs([Child; 2]);

impl Hogs {
    fn on(cpu: &str) -> Self {
        let hog = || {
            let mut command = Command::new("taskset");
            command.args(["-c", cpu, "sh", "-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self([hog(), hog()])
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The first CPU that this process may run on.
fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let digits = |c: char| !c.is_ascii_digit();
    line.trim().split(digits).next().unwrap().to_owned()
}

/// The worker could use all of its CPU. Two other programs want the same, so it gets a third.
#[test]
fn a_worker_that_shares_its_cpu_with_hogs_is_told_of_them() {
    if std::fs::read_to_string("/proc/self/schedstat").is_ok_and(|text| text.starts_with("0 0 0")) {
        println!("skipped: this kernel does not count how long threads wait");
        return;
    }
    let place = Place::in_memory();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let cpu = first_cpu();
    let hogs = Hogs::on(&cpu);
    let run = ["run", "data", "--buffered", "--backend", "sync", "--warm-up", "0", "-d", "3s"];
    let rest = ["--cpus", &cpu, "--out", "r.jsonl"];
    let output = place.run(&[&run[..], &rest].concat());
    drop(hogs);
    let document = common::read(&place.join("r.jsonl"));
    let found = codes(&document);
    assert!(found.contains(&("cpu-contention", Severity::Suspect)), "{found:?}, {output:?}");
    assert!(found.contains(&("worker-busy", Severity::Suspect)), "{found:?}, {output:?}");
    let wait = document.trials[0].workers[0].cpu_wait_ns.unwrap();
    assert!(1_000_000_000 < wait, "{wait} of 3 s");
    assert!(evidence(&document, "cpu-contention").starts_with("Others kept 1 of 1 worker"));
}

#[test]
fn a_low_rank_is_told_before_and_after() {
    let place = Place::in_memory();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let ranked = |args: &[&str]| {
        let mut command = Command::new("ionice");
        command.args(["-c", "3", "nice", "-n", "5", env!("CARGO_BIN_EXE_fathom")]);
        command.args(args).current_dir(place.path()).output().unwrap()
    };
    let load = ["data", "--buffered", "--backend", "sync", "--warm-up", "0", "-d", "1s"];
    let plan = ranked(&[&["plan"][..], &load].concat());
    let said = common::stdout(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
    // The test itself may have been started with these values.
    common::assert_has(&said, &["its nice value is ", "the priority of its I/Os (ionice) is idle"]);
    ranked(&[&["run"][..], &load, &["--out", "r.jsonl"]].concat());
    let document = common::read(&place.join("r.jsonl"));
    assert!(codes(&document).iter().any(|(code, _)| *code == "low-priority"));
    let rank = &document.header.host.as_ref().unwrap().rank;
    assert!(5 <= rank.nice, "{rank:?}");
    assert_eq!(rank.io.map(|io| io.to_string()).as_deref(), Some("idle"));
}
