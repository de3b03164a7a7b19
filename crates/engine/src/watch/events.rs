//! The events of the block layer: every request of some disks, as the kernel's tracepoints tell it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use fathom_core::watch::{BlockEvent, BlockStage};
use fathom_core::{Instant, Span};

use super::buffer::EventBuffer;
use super::format::Layout;
use super::probe;
use super::programs::Programs;
use crate::clock::monotonic;
use crate::host::bpf;
use crate::host::counters::online_cpus;
use crate::host::perf::{self, EventAttributes};

/// The tracepoints of a request, in the order of its life. Each stage takes the first one that the
/// kernel has: `block_io_start` is there since Linux 6.5. Before that, a request that is given to
/// the driver at once has no time in the queue.
const TRACEPOINTS: [(BlockStage, &[&str]); 6] = [
    (BlockStage::Queued, &["block_io_start", "block_rq_insert"]),
    (BlockStage::Issued, &["block_rq_issue"]),
    (BlockStage::Requeued, &["block_rq_requeue"]),
    (BlockStage::Fronted, &["block_bio_frontmerge"]),
    (BlockStage::Merged, &["block_rq_merge"]),
    (BlockStage::Completed, &["block_rq_complete"]),
];

/// What a sample has: process and thread, time, the tracepoint's data.
const SAMPLE_KIND: u64 = 1 << 1 | 1 << 2 | 1 << 10;
/// The event begins disabled, wakes by the fill of the buffer, and has a clock of choice.
const FLAGS: u64 = 1 | 1 << 14 | 1 << 25;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// The buffer of a CPU. At 100,000 I/Os per second on one CPU it holds the events of 0.15 s.
const BUFFER: usize = 4 << 20;
/// The smallest one that is tried: without the right to lock memory, the kernel allows half a
/// megabyte for each CPU.
const BUFFER_MIN: usize = 128 << 10;

/// A sample is in its buffer this long after the time that it names.
pub(super) const SETTLED: Span = Span::from_ms(2);

/// Why the events cannot be seen.
#[derive(Debug)]
pub enum EventsMissing {
    /// Nobody asked for them.
    NotWanted,
    /// None of the disks has requests of its own.
    NoRequests,
    /// The description of the tracepoints cannot be read.
    Tracefs(io::Error),
    /// A tracepoint is not as it has to be.
    Tracepoint {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The kernel does not allow a program at the tracepoints, or has none.
    Program(io::Error),
    /// The kernel does not allow the events, or does not have them.
    Perf(io::Error),
    /// There is no memory for the buffers.
    Buffer(io::Error),
}

impl fmt::Display for EventsMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_forbidden =
            |cause: &io::Error| matches!(cause.raw_os_error(), Some(libc::EPERM | libc::EACCES));
        match self {
            Self::NotWanted => f.write_str("only counters were asked for"),
            Self::NoRequests => f.write_str("none of these devices has requests of its own"),
            Self::Tracefs(cause) if is_forbidden(cause) => f.write_str(
                "tracefs (/sys/kernel/tracing) may be read by root alone, in a container by a \
                     privileged one",
            ),
            Self::Tracefs(cause) => {
                write!(f, "tracefs (/sys/kernel/tracing) cannot be read ({})", crate::plain(cause))
            }
            Self::Tracepoint { name, problem } => {
                write!(f, "the kernel's tracepoint {name} cannot be used: {problem}")
            }
            Self::Program(cause) if is_forbidden(cause) => f.write_str(
                "the kernel allows programs at tracepoints (BPF) only to root and to processes \
                 with CAP_BPF and CAP_PERFMON",
            ),
            Self::Program(cause) => {
                write!(
                    f,
                    "the kernel refuses programs at tracepoints (BPF: {})",
                    crate::plain(cause)
                )
            }
            Self::Perf(cause) if is_forbidden(cause) => f.write_str(
                "the kernel allows perf events on tracepoints only to root and to processes with \
                 CAP_PERFMON",
            ),
            Self::Perf(cause) => {
                write!(f, "the kernel refuses perf events on tracepoints ({})", crate::plain(cause))
            }
            Self::Buffer(cause) => write!(
                f,
                "there is no memory for the buffers of the events ({})",
                crate::plain(cause)
            ),
        }
    }
}

/// The events of some disks.
#[derive(Debug)]
pub struct BlockEvents {
    /// One for each CPU, with its number.
    buffers: Vec<(u32, EventBuffer)>,
    /// Held open: the events with the buffers, the programs, and what runs them.
    _held: Vec<File>,
    layouts: Vec<Layout>,
    programs: Programs,
    /// Those that were read, but not yet shown.
    read: Vec<BlockEvent>,
    lost: u64,
    /// From here on all tracepoints are heard. A request whose middle alone was heard has no times.
    begun: Instant,
}

impl BlockEvents {
    /// Begins to listen for the requests of these disks, by major and minor number.
    ///
    /// # Errors
    ///
    /// When the kernel does not let this process see them.
    pub fn listen(disks: &[(u32, u32)]) -> Result<Self, EventsMissing> {
        let layouts = layouts()?;
        let cpus = online_cpus();
        let last = cpus.iter().max().copied().unwrap_or(0);
        let table = bpf::table_of_buffers(last).map_err(EventsMissing::Program)?;
        let (mut buffers, mut outputs) = (Vec::new(), Vec::new());
        for cpu in cpus {
            let output = output_of(cpu).map_err(EventsMissing::Perf)?;
            buffers.push((cpu, buffer(&output).map_err(EventsMissing::Buffer)?));
            bpf::put(&table, cpu, &output).map_err(EventsMissing::Program)?;
            perf::enable(&output).map_err(EventsMissing::Perf)?;
            outputs.push(output);
        }
        let attached = attach(&layouts, disks, (&table, last))?;
        let held = outputs.into_iter().chain(attached).chain([table]).collect();
        let begun = Instant(monotonic());
        let (programs, read) = (Programs::default(), Vec::new());
        Ok(Self { buffers, _held: held, layouts, programs, read, lost: 0, begun })
    }

    /// Shows the events up to a time of the kernel's monotonic clock, in the order of their times.
    /// Must be called at least ten times a second, or the buffers overflow under load. Those of the
    /// last two milliseconds may still be on their way, and are shown later.
    pub fn drain(&mut self, until: Instant, mut each: impl FnMut(&BlockEvent)) {
        let Self { buffers, layouts, programs, read, lost, begun, .. } = self;
        let settled = Instant(monotonic().saturating_sub(SETTLED.0));
        for (cpu, buffer) in buffers {
            let here = |event| BlockEvent { cpu: *cpu, ..event };
            buffer.drain(|kind, content| match kind {
                RECORD_SAMPLE => read.extend(sample(content, layouts, programs).map(here)),
                RECORD_LOST => *lost += lost_in(content),
                _ => {}
            });
        }
        // Each CPU's are in order, and a stable sort merges runs.
        read.sort_by_key(|event| event.at);
        let until = until.min(settled);
        let end = read.partition_point(|event| event.at <= until);
        read.drain(..end).filter(|event| *begun <= event.at).for_each(|event| each(&event));
    }

    /// The events so far for which the buffers had no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The name of a program that an event names by its number.
    pub fn program(&self, number: u32) -> &str {
        self.programs.name(number)
    }
}

fn layouts() -> Result<Vec<Layout>, EventsMissing> {
    let mut layouts = Vec::new();
    for (stage, names) in TRACEPOINTS {
        let read = |name: &'static str| {
            let text = perf::tracefs_text(&format!("events/block/{name}/format"));
            text.map(|text| (name, text))
        };
        let mut found = read(names[0]);
        for name in &names[1..] {
            let is_missing = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
            if found.as_ref().is_err_and(is_missing) {
                found = read(name);
            }
        }
        let (name, text) = found.map_err(EventsMissing::Tracefs)?;
        let layout = Layout::parse(&text, stage);
        layouts.push(layout.map_err(|problem| EventsMissing::Tracepoint { name, problem })?);
    }
    Ok(layouts)
}

/// An event for what programs put out on a CPU.
fn output_of(cpu: u32) -> io::Result<File> {
    let attributes = EventAttributes {
        period: 1,
        sample_kind: SAMPLE_KIND,
        flags: FLAGS,
        wakeup: (BUFFER / 2) as u32,
        clock: libc::CLOCK_MONOTONIC,
        ..EventAttributes::of_program_output()
    };
    perf::open(&attributes, cpu)
}

/// Has the kernel run a program at each tracepoint, on all CPUs. It does so as long as what is
/// returned is open.
fn attach(
    layouts: &[Layout],
    disks: &[(u32, u32)],
    (table, cpu): (&File, u32),
) -> Result<Vec<File>, EventsMissing> {
    let mut attached = Vec::new();
    for layout in layouts {
        let instructions = probe::program(layout, disks, table.as_raw_fd());
        let program = bpf::load(&instructions).map_err(EventsMissing::Program)?;
        let attributes = EventAttributes::of_tracepoint(u64::from(layout.number));
        // Whichever CPU it is: the program runs on all.
        let event = perf::open(&attributes, cpu).map_err(EventsMissing::Perf)?;
        perf::run_at(&event, &program).map_err(EventsMissing::Perf)?;
        attached.extend([program, event]);
    }
    Ok(attached)
}

/// The largest buffer that the kernel gives.
fn buffer(event: &File) -> io::Result<EventBuffer> {
    let mut size = BUFFER;
    loop {
        match EventBuffer::map(event, size) {
            Err(cause) if size <= BUFFER_MIN => return Err(cause),
            Err(_) => size /= 2,
            mapped => return mapped,
        }
    }
}

/// The event in a sample, whose parts are as `SAMPLE_KIND` says.
fn sample(content: &[u8], layouts: &[Layout], programs: &mut Programs) -> Option<BlockEvent> {
    let process = u32::from_ne_bytes(*content.first_chunk()?);
    let at = Instant(u64::from_ne_bytes(*content.get(8..)?.first_chunk()?));
    let length = u32::from_ne_bytes(*content.get(16..)?.first_chunk()?) as usize;
    let raw = content.get(20..20 + length)?;
    let number = u16::from_ne_bytes(*raw.first_chunk()?);
    let layout = layouts.iter().find(|layout| layout.number == number)?;
    let mut event = layout.event(at, raw)?;
    if matches!(event.stage, BlockStage::Queued | BlockStage::Issued)
        && let Some(thread) = layout.thread_name(raw)
    {
        event.program = programs.number(process, thread);
    }
    Some(event)
}

/// The number of events in a record of losses, behind the number of the event's source.
fn lost_in(content: &[u8]) -> u64 {
    let number = content.get(8..).and_then(|rest| rest.first_chunk());
    number.map_or(1, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_that_is_cut_off_is_no_event() {
        let mut programs = Programs::default();
        for length in 0..64 {
            assert_eq!(sample(&vec![0xff; length], &[], &mut programs), None);
        }
        assert_eq!(lost_in(&[0; 4]), 1);
        let record: Vec<u8> = [7u64, 42].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(lost_in(&record), 42);
    }

    #[test]
    fn what_is_missing_is_named() {
        let forbidden = || io::Error::from_raw_os_error(libc::EACCES);
        for (missing, words) in [
            (EventsMissing::Tracefs(forbidden()), "by root alone"),
            (EventsMissing::Program(forbidden()), "CAP_BPF and CAP_PERFMON"),
            (EventsMissing::Program(io::Error::from_raw_os_error(libc::ENOSYS)), "(BPF: "),
            (EventsMissing::Perf(forbidden()), "CAP_PERFMON"),
            (EventsMissing::Perf(io::Error::from_raw_os_error(libc::ENOSYS)), "refuses"),
            (
                EventsMissing::Tracepoint {
                    name: "block_rq_issue",
                    problem: "it has no field dev".to_owned(),
                },
                "block_rq_issue cannot be used: it has no field dev",
            ),
        ] {
            assert!(missing.to_string().contains(words), "{missing}");
        }
    }
}
