//! `fathom watch`: what any program does to disks, second by second. Nothing is read from the disks
//! or written to them.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fathom_core::Span;
use fathom_core::facts::LayerKind;
use fathom_engine::host;
use fathom_engine::watch::{self, DiskWatch, EventsMissing, PUMP, WatchedDisk};
use fathom_report::page;
use fathom_report::watched::{WatchHeader, WatchedResult};

use super::outputs;
use crate::cli::args::Watch;
use crate::error::{Error, exit};
use crate::watch::Seen;
use crate::watch::lines::Lines;
use crate::watch::result::{ResultFile, header};
use crate::watch::screen::Screen;
use crate::watch::sum::Sum;
use crate::watch::table::{CsvTable, Form};
use crate::{hanging, output, session, signals};

/// Where what was seen goes.
struct WatchOutputs {
    view: View,
    table: Option<CsvTable>,
    result: Option<ResultFile>,
    header: WatchHeader,
    sum: Sum,
}

/// What the user sees while it goes on.
enum View {
    /// Lines on stdout.
    Lines(Lines),
    /// The full screen.
    Screen(Box<Screen>),
    /// Nothing: the terminal belongs to the command that is watched, or stdout to a file.
    Nothing,
}

/// Watches until the time is over, the command has ended, or somebody stops it.
///
/// # Errors
///
/// When there is no such disk, when a file cannot be written, or when the command cannot be started.
pub fn perform(args: &Watch) -> Result<u8, Error> {
    let disks = wanted(&args.targets)?;
    let names: Vec<String> = disks.iter().map(|disk| disk.name.clone()).collect();
    let mut watch = DiskWatch::begin(disks, !args.counters);
    let mut outputs = open(args, &watch, &names)?;
    signals::be_orderly();
    let mut child = start(&args.command)?;
    let begun = Instant::now();
    let outcome = watched(args, &mut watch, &names, &mut outputs, &mut child);
    let WatchOutputs { view, result, sum, header, .. } = outputs;
    let is_seen = !matches!(view, View::Nothing);
    // The terminal is given back before anything else is said.
    drop(view);
    let code = finish(args, &watch, &sum, begun.elapsed(), child, outcome)?;
    result.map_or(Ok(()), |file| file.end(child_code(args, code)))?;
    let conditions = args.fail_if.clone();
    let result = WatchedResult { conditions, ..sum.result(header, &watch) };
    answer(&result, is_seen)?;
    match code {
        exit::MEASURED => outputs::watch_holds(&result).map(|()| code),
        // The command's own failure says more.
        _ => Ok(code),
    }
}

/// Says the answer last of all: where the intervals were seen, and otherwise on stderr, because stdout
/// is the command's or the file's.
fn answer(result: &WatchedResult, is_seen: bool) -> Result<(), Error> {
    let answer = page::answer_of_watch(result);
    if is_seen {
        outputs::say_last(&answer)?;
        output::has_answered();
        return Ok(());
    }
    output::note("");
    output::note_folded(&answer.text);
    output::has_answered();
    Ok(())
}

fn child_code(args: &Watch, code: u8) -> Option<i32> {
    (!args.command.is_empty()).then_some(i32::from(code))
}

/// The outputs, before anything is watched.
fn open(args: &Watch, watch: &DiskWatch, names: &[String]) -> Result<WatchOutputs, Error> {
    let form = if args.typeperf_names { Form::Typeperf } else { Form::Own };
    let table = args.csv.as_ref().map(|path| {
        let host = host::host().name;
        CsvTable::create(path, form, names, &host)
    });
    let header = header(watch, args.interval);
    let result = args.out.as_ref().map(|path| ResultFile::create(path, &header));
    let (table, result) = (table.transpose()?, result.transpose()?);
    let of_file = [&args.csv, &args.out].into_iter().flatten().any(|path| output::is_stdout(path));
    let is_watched = io::stdin().is_terminal() && output::is_terminal() && !of_file;
    let is_able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    let view = if !args.command.is_empty() || of_file {
        tell(watch);
        View::Nothing
    } else if is_watched && is_able && !args.plain {
        let note = watch.missing().map(|missing| format!("no percentiles and programs: {missing}"));
        View::Screen(Box::new(Screen::open(names, note)?))
    } else {
        tell(watch);
        let longest = names.iter().map(|name| name.chars().count()).max();
        let width = output::is_terminal().then(output::width);
        View::Lines(Lines::new(width, longest.unwrap_or(0)))
    };
    Ok(WatchOutputs { view, table, result, header, sum: Sum::default() })
}

fn tell(watch: &DiskWatch) {
    tell_layers(watch);
    tell_missing(watch);
}

/// Takes interval by interval until the end. Returns how the command ended, if it did.
fn watched(
    args: &Watch,
    watch: &mut DiskWatch,
    names: &[String],
    outputs: &mut WatchOutputs,
    child: &mut Option<Child>,
) -> Result<Option<ExitStatus>, Error> {
    let begun = Instant::now();
    let end = args.duration.map(|duration| begun + nanoseconds(duration));
    for number in 1.. {
        let until = begun + nanoseconds(args.interval) * number;
        let until = end.map_or(until, |end| end.min(until));
        let stop = pumped(watch, until, &mut outputs.view, child)?;
        let interval = watch.cut(&mut |_| {});
        let at_unix_ns = session::unix_ns();
        outputs.take(&Seen { at_unix_ns, disks: names, watch, interval: &interval })?;
        let is_last = args.count.is_some_and(|count| count <= number)
            || end.is_some_and(|end| end <= Instant::now());
        match stop {
            Some(Stop::Ended(status)) => return Ok(Some(status)),
            Some(Stop::Asked) => break,
            None if is_last || outputs.are_gone() => break,
            None => {}
        }
    }
    Ok(None)
}

impl WatchOutputs {
    /// Whether nobody is left who reads what is seen, as after `| head`.
    fn are_gone(&self) -> bool {
        let writes_a_file =
            self.result.is_some() || self.table.as_ref().is_some_and(CsvTable::is_file);
        !writes_a_file && output::reader_is_gone()
    }

    fn take(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        self.sum.add(seen.interval);
        if let Some(table) = &mut self.table {
            table.take(seen)?;
        }
        if let Some(result) = &mut self.result {
            result.take(seen)?;
        }
        if seen.interval.lost > 0 && !matches!(self.view, View::Screen(_)) {
            output::note(&format!(
                "note: the kernel dropped {} events: counts and bytes are exact, times and programs \
                 lack these",
                seen.interval.lost
            ));
        }
        match &mut self.view {
            View::Lines(lines) => lines.interval(seen).iter().try_for_each(|it| output::say(it)),
            View::Screen(screen) => screen.take(seen),
            View::Nothing => Ok(()),
        }
    }
}

fn nanoseconds(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

/// The disks that were asked for, each once.
fn wanted(targets: &[PathBuf]) -> Result<Vec<WatchedDisk>, Error> {
    if targets.is_empty() {
        let disks = watch::disks();
        return match disks.is_empty() {
            true => Err(Error::target("this machine", "it has no block devices", "name a file")),
            false => Ok(disks),
        };
    }
    let mut disks: Vec<WatchedDisk> = Vec::new();
    for target in targets {
        let path = named(target);
        if target.components().count() == 1 && !path.exists() {
            return Err(Error::target(
                path_text(target),
                "no disk and no file has this name",
                "list the disks of this machine with `lsblk -d`",
            ));
        }
        let below = {
            let path = path.clone();
            let look = move || Ok(watch::disks_below(&path)?);
            hanging::waited_for(&path_text(target), "it was looked at", look)?
        };
        if below.is_empty() {
            return Err(Error::target(
                path_text(target),
                "no disk is below it",
                "name a block device, or a file on one",
            ));
        }
        for disk in below {
            if !disks.iter().any(|known| known.number == disk.number) {
                disks.push(disk);
            }
        }
    }
    Ok(disks)
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// The path of a target: a disk may be called by its kernel's name alone, as iostat does.
fn named(target: &Path) -> PathBuf {
    let device = Path::new("/dev").join(target);
    let is_name = target.components().count() == 1 && !target.exists() && device.exists();
    if is_name { device } else { target.to_owned() }
}

/// Says of which layers the figures are, if there are several.
fn tell_layers(watch: &DiskWatch) {
    for disk in watch.disks().iter().filter(|disk| disk.kind != LayerKind::Disk) {
        let kind = match disk.kind {
            LayerKind::Md => "a software RAID array",
            LayerKind::DeviceMapper => "a volume of the device mapper",
            LayerKind::Loop => "a file as a device",
            LayerKind::Zram => "compressed memory",
            _ => continue,
        };
        let means = match disk.has_requests {
            true => "its figures hold what is above it",
            false => {
                "only its counters are known; its I/Os can be seen one by one on the disks below"
            }
        };
        output::note(&format!("{} is {kind}: {means}", disk.name));
    }
}

/// Says what is missing without the events, and why.
fn tell_missing(watch: &DiskWatch) {
    match watch.missing() {
        None | Some(EventsMissing::NotWanted) => {}
        Some(missing) => output::note(&format!(
            "note: {missing}; there are no percentiles, queue times, sequential shares and programs, \
             and a mean time comes from counters of whole milliseconds"
        )),
    }
}

fn start(command: &[std::ffi::OsString]) -> Result<Option<Child>, Error> {
    let Some((program, words)) = command.split_first() else { return Ok(None) };
    let child = std::process::Command::new(program).args(words).spawn();
    child.map(Some).map_err(|cause| {
        Error::target(
            Path::new(program).display().to_string(),
            format!("it cannot be started ({})", crate::error::plain(&cause)),
            "name a program that is there, with its arguments, behind --",
        )
    })
}

/// Why a watch ends before its time.
enum Stop {
    /// The command has ended.
    Ended(ExitStatus),
    /// Somebody wants it to end.
    Asked,
}

/// Takes events until this time, or until the watch ends.
fn pumped(
    watch: &mut DiskWatch,
    until: Instant,
    view: &mut View,
    child: &mut Option<Child>,
) -> Result<Option<Stop>, Error> {
    loop {
        watch.pump(&mut |_| {});
        if let Some(child) = child
            && let Some(status) = child.try_wait().map_err(lost_child)?
        {
            return Ok(Some(Stop::Ended(status)));
        }
        // The command hears Ctrl-C itself, and decides what it means.
        if child.is_none() && signals::stop().load(Ordering::SeqCst) {
            return Ok(Some(Stop::Asked));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let pause = left.min(nanoseconds(PUMP));
        match view {
            View::Screen(screen) => {
                if screen.wait(pause)? {
                    return Ok(Some(Stop::Asked));
                }
            }
            View::Lines(_) | View::Nothing => thread::sleep(pause),
        }
    }
}

fn lost_child(cause: std::io::Error) -> Error {
    let problem = format!("its end cannot be seen ({})", crate::error::plain(&cause));
    Error::target("the command", problem, "run it again")
}

/// Shows what the command did to the disks, and returns the exit code: that of the command, if there
/// was one.
fn finish(
    args: &Watch,
    watch: &DiskWatch,
    sum: &Sum,
    elapsed: Duration,
    child: Option<Child>,
    outcome: Result<Option<ExitStatus>, Error>,
) -> Result<u8, Error> {
    let Some(mut child) = child else { return outcome.map(|_| exit::MEASURED) };
    // The command goes on to its own end, whatever became of the watch.
    let status = match &outcome {
        Ok(Some(status)) => *status,
        Ok(None) | Err(_) => child.wait().map_err(lost_child)?,
    };
    outcome?;
    let command = Path::new(&args.command[0]).display();
    output::note("");
    output::note(&format!("{command} ran for {:.2} s", elapsed.as_secs_f64()));
    sum.lines(watch).iter().for_each(|line| output::note_folded(line));
    let code = status.code().or_else(|| Some(i32::from(exit::SIGNAL) + status.signal()?));
    Ok(u8::try_from(code.unwrap_or(1)).unwrap_or(u8::MAX))
}
