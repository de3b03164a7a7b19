//! Measures the time around the measured windows: from the start of the program to its first I/O,
//! and between one point of an experiment and the next.
//!
//! A smoke size runs in `cargo test`. No test checks the times.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_core::facts::{Counters, Host, Target};
use fathom_core::spec::{Access, BackendKind, Point, Workers};
use fathom_core::trial::{Place, Trial};
use fathom_core::verdict::judge;
use fathom_core::{Bytes, Span};
use fathom_engine::host::{self, IoWqWatch};
use fathom_engine::target::{self, OpenTarget, Opening, Overwrite};
use fathom_engine::{Devices, Observer, Phase, run_point};
use fathom_report::document::{self, DistributionForm};

use crate::engine::random_reads;
use crate::peers::{Profile, Scratch, StandIn, build, folder, median, said, stops_on_signals};

/// From the start of the program to the first I/O, in milliseconds.
const START_GOAL: f64 = 50.0;
/// The share of the total time between points, in percent.
const BETWEEN_GOAL: f64 = 10.0;
/// The numbers of workers of the starts.
const WORKERS: [u32; 2] = [1, 64];

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct StartSize {
    /// Starts of the program for each row.
    starts: u32,
    /// The number of consecutive points, for each number of workers.
    points: [u32; WORKERS.len()],
    /// The number of portraits that `quick` makes.
    portraits: u32,
    /// The size of the file, in MiB.
    file_mib: u32,
}

impl StartSize {
    /// Long enough for reliable figures.
    pub const FULL: Self = Self { starts: 51, points: [500, 50], portraits: 40, file_mib: 64 };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { starts: 1, points: [2, 1], portraits: 1, file_mib: 16 };
}

/// The kernel's numbers for real-time policies in /proc/PID/stat.
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;

/// The window of each point: as short as a window can be.
const WINDOW: Span = Span::from_ms(100);

/// One line of a table.
#[derive(Debug)]
struct StartRow {
    what: String,
    stand_in: StandIn,
    workers: u32,
    /// Milliseconds of each start or each point.
    times: Vec<f64>,
}

/// Everything that was measured, and everything that could not be measured.
#[derive(Debug)]
pub struct StartTimes {
    starts: Vec<StartRow>,
    between: Vec<StartRow>,
    left_out: Vec<String>,
}

/// Runs every row that this machine allows.
pub fn all(size: StartSize, profile: Profile) -> Result<StartTimes, String> {
    let fathom = build("fathom", profile)?;
    let stopped = stops_on_signals()?;
    let scratch = Scratch::new(folder(), size.file_mib)?;
    let (mut starts, mut between, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for stand_in in [StandIn::Zero, StandIn::Ext4] {
        let made = match stand_in.make(&scratch) {
            Ok(made) => made,
            Err(why) => {
                left_out.push(format!("{}: {why}", stand_in.name()));
                continue;
            }
        };
        let result = scratch.folder().join("result.jsonl");
        let job =
            StartJob { fathom: &fathom, target: made.path(), result: &result, stopped: &stopped };
        for (workers, points) in WORKERS.into_iter().zip(size.points) {
            let what = "fathom run, to its first I/O".to_owned();
            let times = (0..size.starts).map(|_| job.start(workers)).collect::<Result<_, _>>()?;
            starts.push(StartRow { what, stand_in, workers, times });
            let what = format!("{points} points of 100 ms");
            let times = job.points(workers, points)?;
            between.push(StartRow { what, stand_in, workers, times });
        }
        if stand_in == StandIn::Ext4 {
            let times =
                (0..size.portraits).map(|_| job.portrait()).collect::<Result<Vec<_>, _>>()?;
            let what = format!("fathom quick, 6 steps of 100 ms, {} times", size.portraits);
            between.push(StartRow { what, stand_in, workers: 1, times: times.concat() });
        }
    }
    Ok(StartTimes { starts, between, left_out })
}

/// The inputs of every row.
struct StartJob<'a> {
    fathom: &'a Path,
    target: &'a Path,
    /// The path of a temporary result file.
    result: &'a Path,
    stopped: &'a AtomicBool,
}

impl StartJob<'_> {
    /// Milliseconds from before the program is started until its workers start.
    fn start(&self, workers: u32) -> Result<f64, String> {
        let workers = workers.to_string();
        let before = unix_ns()?;
        let read = self.run(&["run", "--workers", &workers])?;
        let [trial] = read.trials.as_slice() else { return Err("it has no trial".to_owned()) };
        Ok((trial.started_unix_ns as f64 - before as f64) / 1e6)
    }

    /// The milliseconds between the windows of the steps of a portrait.
    fn portrait(&self) -> Result<Vec<f64>, String> {
        let read = self.run(&["quick", "--overwrite"])?;
        let gap = |pair: &[document::Trial]| {
            let end = pair[0].started_unix_ns + pair[0].window_ns;
            (pair[1].started_unix_ns as f64 - end as f64) / 1e6
        };
        Ok(read.trials.windows(2).map(gap).collect())
    }

    /// Runs the program with a short window and no warm-up, and returns its document.
    fn run(&self, arguments: &[&str]) -> Result<document::Document, String> {
        let output = Command::new(self.fathom)
            .args(arguments)
            .args(["--warm-up", "0s", "--duration", "100ms", "--json", "--out"])
            .args([self.result, self.target])
            .output()
            .map_err(|error| format!("{}: {error}", self.fathom.display()))?;
        for name in [self.result.to_owned(), self.result.with_extension("html")] {
            let _ = fs::remove_file(name);
        }
        self.go_on()?;
        document::read(&output.stdout).map_err(|error| format!("{error}{}", said(&output)))
    }

    fn go_on(&self) -> Result<(), String> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err("interrupted; everything that was made is removed".to_owned()),
            false => Ok(()),
        }
    }

    /// Runs `count` points in one process, with all that a session does for each point. Returns the
    /// milliseconds that each took beyond its window.
    fn points(&self, workers: u32, count: u32) -> Result<Vec<f64>, String> {
        let access = Access::DIRECT;
        let facts = host::target(self.target).map_err(|error| error.to_string())?;
        let opening =
            Opening { access, writes: false, claimed: false, overwrite: Overwrite::default() };
        let open = target::open(&facts, &opening).map_err(|error| error.to_string())?;
        let choice = fathom_engine::choose(None, access).map_err(|error| error.to_string())?;
        let length = Bytes(facts.size.0.min(1 << 30));
        let mut point = random_reads(32.max(workers), length, WINDOW);
        point.streams[0].workers = Workers::Total(workers);
        let session = StartSession {
            host: host::host(),
            facts: [facts],
            open: [Vec::from([open])],
            backend: choice.kind,
            backend_reason: choice.reason,
        };
        let file = File::create_new(self.result);
        let mut file = file.map_err(|error| format!("{}: {error}", self.result.display()))?;
        let mut watch = (choice.kind == BackendKind::Uring).then(IoWqWatch::default);
        let mut last = None;
        let times = (0..count).map(|_| {
            self.go_on()?;
            let before = unix_ns()?;
            let trial = session.trial(point.clone(), watch.as_mut(), &mut file)?;
            let passed = unix_ns()?.saturating_sub(before + trial.record.window.0);
            // A session drops a trial at this moment: after its experiment has seen it.
            last.replace(trial);
            Ok(passed as f64 / 1e6)
        });
        let times = times.collect();
        let _ = fs::remove_file(self.result);
        times
    }
}

/// The state of a session.
struct StartSession {
    host: Host,
    facts: [Target; 1],
    open: [Vec<OpenTarget>; 1],
    backend: BackendKind,
    backend_reason: String,
}

impl StartSession {
    /// Runs a point, judges it, and writes it to disk.
    fn trial(
        &self,
        point: Point,
        io_wq: Option<&mut IoWqWatch>,
        file: &mut File,
    ) -> Result<Trial, String> {
        assert!(!point.streams[0].pacing.is_open());
        let devices = Devices::Real { streams: &self.open, backend: self.backend };
        let mut watcher = Watcher { facts: &self.facts, io_wq, opened: None, counted: None };
        let record = run_point(&point, devices, &AtomicBool::new(false), &mut watcher)
            .map_err(|error| error.to_string())?;
        let trial = Trial {
            point,
            place: Place::default(),
            backend: self.backend,
            backend_reason: self.backend_reason.clone(),
            started_unix_ns: 0,
            record,
            counters: watcher.counted,
            traced: None,
            breakdown: None,
            hosts: Vec::new(),
            is_void: false,
            doubt: None,
        };
        let judgement = judge(&trial, &self.host, &self.facts);
        let mut write = || -> io::Result<()> {
            let mut out = BufWriter::new(&mut *file);
            document::write_trial(&mut out, &trial, &judgement, DistributionForm::Pairs)?;
            out.flush()?;
            drop(out);
            file.sync_data()
        };
        write().map_err(|error| error.to_string())?;
        Ok(trial)
    }
}

/// Reads the host's counters at the times at which a session reads them.
struct Watcher<'a> {
    facts: &'a [Target],
    io_wq: Option<&'a mut IoWqWatch>,
    opened: Option<Counters>,
    counted: Option<Counters>,
}

impl Watcher<'_> {
    fn counters(&self) -> Counters {
        let io_wq = self.io_wq.as_ref().map(|watch| watch.read());
        Counters { io_wq, ..host::counters(self.facts) }
    }
}

impl Observer for Watcher<'_> {
    fn phase(&mut self, phase: Phase, _: Span) {
        match phase {
            Phase::WarmUp => self.io_wq.iter_mut().for_each(|watch| watch.aim()),
            Phase::WindowOpens => self.opened = Some(self.counters()),
            Phase::WindowCloses => {
                let now = self.counters();
                self.counted = self.opened.take().map(|then| now.since(&then));
            }
        }
    }
}

fn unix_ns() -> Result<u64, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    Ok(since.as_nanos() as u64)
}

impl StartTimes {
    /// The outcome as two tables in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| what | target | workers | times | fastest | median | slowest | goal |\n\
             | --- | --- | --: | --: | --: | --: | --: | --- |\n",
        );
        for row in &self.starts {
            let goal = met(START_GOAL, median(row.times.clone()));
            let _ = writeln!(text, "| {} {START_GOAL} ms {goal} |", row.begin());
        }
        text.push_str(
            "\n| what | target | workers | points | beyond the window: fastest | median | slowest \
             | share of all time | of the median point | goal |\n\
             | --- | --- | --: | --: | --: | --: | --: | --: | --: | --- |\n",
        );
        for row in &self.between {
            let (all, middle) = row.shares();
            // Dozens of workers have to be started and ended on the few CPUs of the machine, so
            // they have no goal.
            let goal = match row.workers {
                1 => format!("{BETWEEN_GOAL} % {}", met(BETWEEN_GOAL, all)),
                _ => "-".to_owned(),
            };
            let begin = row.begin();
            let _ = writeln!(text, "| {begin} {all:.1} % | {middle:.1} % | {goal} |");
        }
        if has_realtime_priority() {
            text.push_str(
                "\nAll of it with real-time priority (`chrt`), so that the machine's other programs \
                 are not in it.\n",
            );
        }
        for why in &self.left_out {
            let _ = write!(text, "\nLeft out: {why}.\n");
        }
        text
    }
}

/// Whether this process, and so its children, has priority over all processes with a normal policy.
fn has_realtime_priority() -> bool {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The policy is field 41. Field 2 is the name in brackets, which may contain any characters.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let policy = fields.split_whitespace().nth(38).and_then(|policy| policy.parse::<u32>().ok());
    matches!(policy, Some(SCHED_FIFO | SCHED_RR))
}

fn met(goal: f64, value: f64) -> &'static str {
    if value < goal { "met" } else { "missed" }
}

impl StartRow {
    /// The first cells of every table.
    fn begin(&self) -> String {
        let Self { what, stand_in, workers, times } = self;
        let ends = times.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &time| {
            (least.min(time), most.max(time))
        });
        let (least, most) = ends;
        format!(
            "{what} | {} | {workers} | {} | {least:.1} ms | {:.1} ms | {most:.1} ms |",
            stand_in.name(),
            times.len(),
            median(times.clone())
        )
    }

    /// The time beyond the windows, in percent of all time, and for the median point in percent of
    /// that point's time.
    fn shares(&self) -> (f64, f64) {
        let window = WINDOW.0 as f64 / 1e6;
        let share = |beyond: f64| 100.0 * beyond / (beyond + window);
        let mean = self.times.iter().sum::<f64>() / self.times.len() as f64;
        (share(mean), share(median(self.times.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_and_every_point_is_timed_at_the_smoke_size() {
        let outcome = all(StartSize::SMOKE, Profile::Debug).expect("the program runs");
        for why in &outcome.left_out {
            eprintln!("skipped: {why}");
        }
        let made = 2 - outcome.left_out.len();
        assert_eq!(outcome.starts.len(), WORKERS.len() * made);
        for row in &outcome.between {
            let count = match row.what.starts_with("fathom quick") {
                true => 5 * StartSize::SMOKE.portraits,
                false => StartSize::SMOKE.points[usize::from(row.workers > 1)],
            };
            assert_eq!(row.times.len(), count as usize, "{row:?}");
        }
        let text = outcome.table();
        assert!(text.contains("fathom run, to its first I/O | /dev/zero"), "{text}");
    }

    #[test]
    fn shares_are_of_the_windows_and_what_is_beyond_them() {
        let times = Vec::from([10.0, 30.0, 25.0, 10.0, 50.0]);
        let row = StartRow { what: String::new(), stand_in: StandIn::Zero, workers: 1, times };
        assert_eq!(row.shares(), (20.0, 20.0));
    }
}
