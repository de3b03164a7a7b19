//! Watches the disks below the targets of a run, and finds the request of each of its I/Os.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as Moment};

use fathom_core::facts::Target;
use fathom_core::measure::{Direction, Upkeep};
use fathom_core::watch::{BlockRequest, Breakdown, HostLook, Matching, Operation, OwnIo};
use fathom_core::{Bytes, Instant, Span};

use super::clocks::Clocks;
use super::disk_watch::{DiskWatch, PUMP};
use super::disks::WatchedDisk;
use super::events::SETTLED;
use super::located::Located;
use crate::clock::monotonic;
use crate::host::cgroup::Groups;
use crate::host::counters;
use crate::host::system::System;
use crate::trace::{TracePhase, TracedIo, TracedIos, Tracer};

/// How often the counters of the host are read.
const LOOK: Span = Span::from_ms(100);

/// How often requests whose end was not seen are forgotten.
const TIDY: Duration = Duration::from_secs(1);

/// A target of the run, and the open file of it.
#[derive(Clone, Debug)]
pub struct WatchedFile {
    /// What is known about it.
    pub target: Target,
    /// The file; none if the point does not use it.
    pub file: Option<Arc<File>>,
}

/// What both sides put together.
#[derive(Debug, Default)]
struct Meeting {
    matching: Matching,
    clocks: Clocks,
}

/// Watches until [`IoWatch::end`].
#[derive(Debug)]
pub struct IoWatch {
    located: Vec<Option<Located>>,
    disks: Vec<String>,
    meeting: Arc<Mutex<Meeting>>,
    stop: Arc<AtomicBool>,
    /// None when it has ended.
    pump: Option<JoinHandle<(DiskWatch, u64)>>,
    left_out: u64,
}

impl IoWatch {
    /// Begins to watch the disks of these targets, in the order of the run's list. May wait for a
    /// file system to tell where a file is.
    ///
    /// # Errors
    ///
    /// The reason in words, if no disk of theirs can be watched.
    pub fn begin(files: &[WatchedFile]) -> Result<Self, String> {
        let mut why = None;
        let mut located = Vec::new();
        for WatchedFile { target, file } in files {
            let place = file.as_ref().map(|file| Located::of(target, file));
            located.push(match place {
                None => None,
                Some(Ok(place)) => Some(place),
                Some(Err(problem)) => {
                    why = why.or(Some(format!("{}: {problem}", target.name)));
                    None
                }
            });
        }
        let disks = disks(&located);
        if disks.is_empty() {
            return Err(why.unwrap_or_else(|| "no target is on a disk".to_owned()));
        }
        let names = disks.iter().map(|disk| disk.name.clone()).collect();
        let watch = DiskWatch::begin(disks, true);
        if let Some(missing) = watch.missing() {
            return Err(missing.to_string());
        }
        let meeting = Arc::new(Mutex::new(Meeting::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let looked = look(&meeting);
        let pump = thread::Builder::new().name("watch".to_owned()).spawn({
            let (meeting, stop) = (Arc::clone(&meeting), Arc::clone(&stop));
            move || pump((watch, looked), &meeting, &stop)
        });
        let pump = pump.map_err(|cause| format!("no thread for it ({})", crate::plain(&cause)))?;
        Ok(Self { located, disks: names, meeting, stop, pump: Some(pump), left_out: 0 })
    }

    /// Ends it. Takes some milliseconds, until the last events have come.
    pub fn end(mut self) -> Breakdown {
        self.stop.store(true, Ordering::Release);
        let pump = self.pump.take().expect("it ends once");
        let (watch, lost_events) = match pump.join() {
            Ok(ended) => ended,
            Err(mistake) => std::panic::resume_unwind(mistake),
        };
        let matching = std::mem::take(&mut lock(&self.meeting).matching);
        let breakdown = matching.end(|number| watch.program(number).to_owned());
        let disks = std::mem::take(&mut self.disks);
        Breakdown { disks, lost_events, left_out: self.left_out, ..breakdown }
    }
}

impl Drop for IoWatch {
    /// After an error nobody waits for its thread.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

impl Tracer for IoWatch {
    fn take(&mut self, ios: &TracedIos<'_>) {
        let Self { located, meeting, left_out, .. } = self;
        let mut meeting = lock(meeting);
        let Meeting { matching, clocks } = &mut *meeting;
        for io in ios.iter() {
            *left_out += io.left_out;
            let is_measured = io.phase == TracePhase::Window && io.failure.is_none();
            if let Some(own) = own(&io, ios.window_start(), clocks).filter(|_| is_measured) {
                let place = located[io.target as usize].as_ref();
                let pieces = place.and_then(|place| place.pieces(own.offset, own.length));
                let (piece, others) = pieces.map_or((None, Vec::new()), |(p, o)| (Some(p), o));
                matching.io(OwnIo { piece, others, ..own });
            }
        }
    }
}

fn lock(meeting: &Mutex<Meeting>) -> std::sync::MutexGuard<'_, Meeting> {
    meeting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An I/O in the terms of the block layer, but for its place; none if it moves no data, or never
/// came back.
fn own(io: &TracedIo, window_start: Instant, clocks: &Clocks) -> Option<OwnIo> {
    let operation = match (io.upkeep, io.direction) {
        (None, Direction::Read) => Operation::Read,
        (None, Direction::Write) => Operation::Write,
        (Some(Upkeep::Trim), _) => Operation::Discard,
        (Some(_), _) => return None,
    };
    let waited = io.response_time?.0 - io.service_time?.0;
    let submitted_ns = io.start_ns + waited as i64;
    let submitted = Instant(window_start.0.wrapping_add_signed(submitted_ns));
    let submitted = clocks.by_kernel(submitted);
    Some(OwnIo {
        operation,
        target: io.target,
        offset: Bytes(io.offset),
        length: Bytes(u64::from(io.length)),
        submitted_ns,
        submitted,
        // Its length is that of the distributions, whatever the other clock says.
        completed: submitted + io.service_time?,
        piece: None,
        others: Vec::new(),
    })
}

/// The disks of these places, each once, with requests or without.
fn disks(located: &[Option<Located>]) -> Vec<WatchedDisk> {
    let mut numbers: Vec<(u32, u32)> = located.iter().flatten().map(|it| it.device).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(WatchedDisk::numbered).collect()
}

/// Takes requests out of the kernel's buffers until it is stopped. Returns the watch, and the number
/// of events that were lost.
fn pump(
    (mut watch, mut looked): (DiskWatch, Instant),
    meeting: &Mutex<Meeting>,
    stop: &AtomicBool,
) -> (DiskWatch, u64) {
    let own = System::real().text("proc/self/comm").unwrap_or_default();
    let mut lost = 0;
    let mut requests = Vec::new();
    let mut tidied = Moment::now();
    loop {
        let is_last = stop.load(Ordering::Acquire);
        if is_last || LOOK <= Instant(monotonic()).since(looked) {
            looked = look(meeting);
        }
        lock(meeting).clocks.read();
        // A slow I/O wants a look at the host behind it, too.
        let settled = Instant(monotonic().saturating_sub(2 * SETTLED.0)).min(looked);
        let mut take = |request: &BlockRequest| requests.push(*request);
        if is_last || TIDY <= tidied.elapsed() {
            tidied = Moment::now();
            lost += watch.cut(&mut take).lost;
        } else {
            watch.pump(&mut take);
        }
        let mut meeting = lock(meeting);
        for request in requests.drain(..) {
            match watch.program(request.program) == own {
                true => meeting.matching.own(&request),
                false => meeting.matching.others(&request),
            }
        }
        meeting.matching.settle(settled);
        drop(meeting);
        if is_last {
            return (watch, lost);
        }
        // Twice as often as the buffers need it: a reading of the clocks is as good as it is near.
        thread::sleep(Duration::from_nanos(PUMP.0 / 2));
    }
}

/// Reads what the host did. Returns when that was.
fn look(meeting: &Mutex<Meeting>) -> Instant {
    let system = System::real();
    let stolen = counters::cpus(&system).iter().map(|(_, time)| time.steal.0).sum();
    let at = Instant(monotonic());
    let look = HostLook {
        at,
        stolen: Span(stolen),
        throttled: Groups::read(&system).throttled().unwrap_or_default(),
        writeback: counters::writeback(&system),
    };
    lock(meeting).matching.host(look);
    at
}
