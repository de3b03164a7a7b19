//! What was measured, as it stands in the document: distributions as the buckets that hold
//! something, so that a reader merges them and chooses the percentile.

use fathom_core::facts::{self, Memory, Pause};
use fathom_core::measure::{self, Direction, Errors, Ledger, SparseHistogram, Waits};
use fathom_core::{Bytes, Span, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;

/// I/Os of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Bytes that completed in the window.
    pub bytes: u64,
    /// I/Os that completed in the window.
    pub ios: u64,
    /// Completed minus submitted.
    pub service_time: Distribution,
    /// Completed minus intended start; none in a closed loop, where it equals the service time.
    pub response_time: Option<Distribution>,
}

/// What one worker did to one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The target's place in the header's list.
    pub target: u32,
    /// The reads.
    pub read: Flow,
    /// The writes.
    pub write: Flow,
    /// The flushes, which are no part of any sum of I/Os; none where there were none to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flow>,
    /// The trims, of which the same is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Flow>,
    /// How unevenly its I/Os were spread over the intervals or buckets; none in results of versions that did
    /// not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// How unevenly I/Os were spread over the intervals of the window, or over its buckets if it has any:
/// what a standard deviation of the IOPS is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Intervals that there were.
    pub intervals: u64,
    /// The squares of the reads of each interval, added up.
    pub read_squares: f64,
    /// The same of the writes.
    pub write_squares: f64,
    /// The same of all I/Os.
    pub squares: f64,
}

/// I/Os that completed in each bucket of the window, all workers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Buckets {
    /// How long each is; the last one may be shorter.
    pub length_ns: u64,
    /// The reads of each, from the start of the window.
    pub reads: Vec<u64>,
    /// The writes of each.
    pub writes: Vec<u64>,
}

impl From<&measure::Buckets> for Buckets {
    fn from(buckets: &measure::Buckets) -> Self {
        Self {
            length_ns: buckets.length.0,
            reads: buckets.ios.iter().map(|ios| ios[0]).collect(),
            writes: buckets.ios.iter().map(|ios| ios[1]).collect(),
        }
    }
}

/// What one worker did in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// The stream's place in the point.
    pub stream: u32,
    /// The worker's place in its stream.
    pub worker: u32,
    /// One for each target that it served.
    pub cells: Vec<Cell>,
    /// Every I/O it had to do with.
    pub ledger: Ledger,
    /// Those that failed.
    pub errors: Errors,
    /// I/Os in flight, averaged over the window.
    pub queue_depth: f64,
    /// How late its I/Os started; none in a closed loop.
    pub start_delay: Option<StartDelay>,
    /// CPU time that the worker's own thread used in the window; none where it cannot be told.
    pub cpu_ns: Option<u64>,
    /// Time in the window in which that thread was ready to run and was not on a CPU, because others
    /// were; none where it cannot be told, and in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_wait_ns: Option<u64>,
    /// How often that thread was put on a CPU in the window; none as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_runs: Option<u64>,
    /// It stopped early because every one of a long row of I/Os failed.
    pub gave_up: bool,
    /// How it waited; none of a simulated target.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// How long the oldest I/O that was due and not started had been due at the window's end; none in
    /// a closed loop, and in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ns: Option<u64>,
    /// The CPU that it was tied to; none if it ran on any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_cpu: Option<u32>,
    /// What it did until it had started the last of a limited number of I/Os; none where its load went
    /// on until the window's end, and in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Whole>,
}

/// What a worker did while its load was whole, before the drain in which ever fewer are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Whole {
    /// How long that was, from the start of the window.
    pub length_ns: u64,
    /// Reads that completed in that time.
    pub reads: u64,
    /// Writes that completed in that time.
    pub writes: u64,
    /// What those reads read.
    pub read_bytes: u64,
    /// What those writes wrote.
    pub written_bytes: u64,
    /// I/Os in flight, averaged over that time.
    pub queue_depth: f64,
}

impl From<measure::Whole> for Whole {
    fn from(whole: measure::Whole) -> Self {
        Self {
            length_ns: whole.length.0,
            reads: whole.ios[0],
            writes: whole.ios[1],
            read_bytes: whole.bytes[0].0,
            written_bytes: whole.bytes[1].0,
            queue_depth: whole.queue_depth,
        }
    }
}

/// Submitted minus intended start, by whose fault it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartDelay {
    /// A slot was free when the I/O fell due: the generator was late.
    pub generator: Distribution,
    /// No slot was free: the target was behind.
    pub target: Distribution,
}

/// A slice of a stream's series, all its workers together, with its distributions: one interval, or
/// in a long run the sum of several contiguous ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The stream's place in the point.
    pub stream: u32,
    /// From the start of the window to the start of the slice.
    pub start_ns: u64,
    /// How long it is.
    pub length_ns: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// The reads; none if there was none.
    pub read: Option<IntervalFlow>,
    /// The writes; none if there was none.
    pub write: Option<IntervalFlow>,
    /// How long the oldest I/O that was due and not started had been due at its end, of the worker
    /// that was furthest behind; none in a closed loop, and in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ns: Option<u64>,
}

/// I/Os of one direction in one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalFlow {
    /// Bytes that completed.
    pub bytes: u64,
    /// Completed minus intended start; in a closed loop, completed minus submitted.
    pub response_time: Distribution,
}

/// What the host counted during the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// How far from the window's two ends they were read at most, both together; none in results of
    /// versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
    /// One for each CPU that was online.
    pub cpus: Vec<Cpu>,
    /// One for each device at the bottom of a target.
    pub devices: Vec<Device>,
    /// User CPU time of the process, all threads together.
    pub process_user_ns: u64,
    /// Kernel CPU time of the process.
    pub process_kernel_ns: u64,
    /// Time that the cgroup kept the process off the CPUs.
    pub throttled_ns: Option<u64>,
    /// What io_uring's own threads did; none where another backend carried the I/Os, and in results
    /// of versions that did not look.
    #[serde(default)]
    pub io_wq: Option<IoWq>,
    /// What memory cost; none in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Who traced the process, such as "gdb (4711)", if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
    /// When the process or the machine did not run; none where nobody watched, and in results of
    /// versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Vec<Pause>>,
}

/// What io_uring's own threads (io-wq) did for the process during the window. The kernel hands them
/// every I/O that it cannot start without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoWq {
    /// I/Os that they were handed; none where they could not be counted.
    pub handed_over: Option<u64>,
    /// Threads that there were at the window's end; none where the kernel does not show them.
    pub threads: Option<u32>,
    /// CPU time that these threads used; it is part of the process's.
    pub cpu_ns: Option<u64>,
}

/// How a CPU spent the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The CPU's number.
    pub cpu: u32,
    /// In programs.
    pub user_ns: u64,
    /// In the kernel, interrupts included.
    pub kernel_ns: u64,
    /// Idle, or waiting for I/O.
    pub idle_ns: u64,
    /// Taken by the hypervisor for somebody else.
    pub steal_ns: u64,
}

/// What the kernel counted for a device during the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// The kernel's name.
    pub name: String,
    /// Major and minor number.
    pub device: (u32, u32),
    /// Reads that completed.
    pub reads: u64,
    /// What they read.
    pub read_bytes: u64,
    /// Writes that completed.
    pub writes: u64,
    /// What they wrote.
    pub written_bytes: u64,
    /// For how long its reads were under way in the block layer, added up, in whole milliseconds;
    /// none in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_time_ns: Option<u64>,
    /// The same of its writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_time_ns: Option<u64>,
    /// Reads that the block layer joined to a neighbor, so that they are counted with it as one; none in
    /// results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_reads: Option<u64>,
    /// The same of its writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_writes: Option<u64>,
    /// Flushes that completed.
    pub flushes: u64,
}

impl Device {
    /// "1,000 reads (62.5 MiB; 3,000 more were merged into them), 0 writes (0 B), 0 flushes".
    pub fn in_words(&self) -> String {
        let merged = |number: Option<u64>| match number {
            None | Some(0) => String::new(),
            Some(number) => format!("; {} more were merged into them", count(number)),
        };
        format!(
            "{} reads ({}{}), {} writes ({}{}), {} flushes",
            count(self.reads),
            Bytes(self.read_bytes),
            merged(self.merged_reads),
            count(self.writes),
            Bytes(self.written_bytes),
            merged(self.merged_writes),
            count(self.flushes)
        )
    }
}

impl Worker {
    /// All its distributions, which are those of the whole window.
    pub(super) fn distributions(&mut self) -> impl Iterator<Item = &mut Distribution> {
        let delays = self.start_delay.iter_mut().flat_map(|it| [&mut it.generator, &mut it.target]);
        let cells = self.cells.iter_mut().flat_map(|cell| {
            let flows = [&mut cell.read, &mut cell.write].into_iter();
            flows.chain(&mut cell.flush).chain(&mut cell.trim)
        });
        let times = cells.flat_map(|flow| {
            std::iter::once(&mut flow.service_time).chain(&mut flow.response_time)
        });
        delays.chain(times)
    }
}

impl From<&measure::Flow> for Flow {
    fn from(flow: &measure::Flow) -> Self {
        Self {
            bytes: flow.bytes.0,
            ios: flow.ios(),
            service_time: Distribution::from(&flow.service_time),
            response_time: flow.response_time.as_ref().map(Distribution::from),
        }
    }
}

impl Flow {
    /// Adds it to a sum, with response times where the sum has them.
    pub fn add_to(&self, sum: &mut measure::Flow) {
        sum.bytes.0 += self.bytes;
        sum.service_time.merge_sparse(&self.service_time.to_sparse());
        if let Some(response_time) = &mut sum.response_time {
            let times = self.response_time.as_ref().unwrap_or(&self.service_time);
            response_time.merge_sparse(&times.to_sparse());
        }
    }
}

impl Cell {
    /// The flow of a direction.
    pub fn flow(&self, direction: Direction) -> &Flow {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    /// What it did of a kind of upkeep.
    pub fn upkeep(&self, what: measure::Upkeep) -> Option<&Flow> {
        match what {
            measure::Upkeep::Flush => self.flush.as_ref(),
            measure::Upkeep::Trim => self.trim.as_ref(),
        }
    }
}

impl Spread {
    /// As the document has it; none where nothing was counted.
    fn of(spread: &measure::Spread) -> Option<Self> {
        let [read_squares, write_squares, squares] = spread.squares;
        let intervals = spread.intervals;
        (intervals > 0).then_some(Self { intervals, read_squares, write_squares, squares })
    }

    /// The standard deviation, over the intervals, of the I/Os of an interval, of one direction or
    /// of both. `ios` is their number in all intervals together.
    pub fn deviation(&self, direction: Option<Direction>, ios: u64) -> f64 {
        let squares = match direction {
            Some(Direction::Read) => self.read_squares,
            Some(Direction::Write) => self.write_squares,
            None => self.squares,
        };
        let intervals = self.intervals as f64;
        let mean = ios as f64 / intervals;
        // Where all are alike, rounding may leave less than nothing.
        (squares / intervals - mean * mean).max(0.0).sqrt()
    }
}

impl Worker {
    /// As the document has it.
    pub fn new(worker: &measure::WorkerRecord) -> Self {
        let upkeep = |cell: &measure::Cell, what: measure::Upkeep| {
            let flow = cell.upkeep.as_ref().map(|flows| &flows[what as usize]);
            flow.filter(|flow| flow.ios() > 0).map(Flow::from)
        };
        let cell = |cell: &measure::Cell| Cell {
            target: cell.target,
            read: Flow::from(&cell.flows[Direction::Read as usize]),
            write: Flow::from(&cell.flows[Direction::Write as usize]),
            flush: upkeep(cell, measure::Upkeep::Flush),
            trim: upkeep(cell, measure::Upkeep::Trim),
            spread: Spread::of(&cell.spread),
        };
        Self {
            stream: worker.stream,
            worker: worker.worker,
            cells: worker.cells.iter().map(cell).collect(),
            ledger: worker.ledger,
            errors: worker.errors.clone(),
            queue_depth: worker.queue_depth,
            start_delay: worker.start_delay.as_ref().map(|delay| StartDelay {
                generator: Distribution::from(&delay.generator),
                target: Distribution::from(&delay.target),
            }),
            cpu_ns: worker.cpu.map(|cpu| cpu.0),
            cpu_wait_ns: worker.cpu_wait.map(|wait| wait.time.0),
            cpu_runs: worker.cpu_wait.map(|wait| wait.runs),
            gave_up: worker.gave_up,
            pinned_cpu: None,
            waits: worker.waits,
            lag_ns: worker.lag.map(|lag| lag.0),
            whole: worker.whole.map(Whole::from),
        }
    }
}

impl From<&measure::Stretch> for Interval {
    fn from(stretch: &measure::Stretch) -> Self {
        let flow = |direction: Direction| {
            let sparse = &stretch.response_time[direction as usize];
            let any = !sparse.is_empty();
            any.then(|| IntervalFlow {
                bytes: stretch.bytes[direction as usize].0,
                response_time: Distribution::from(sparse).coded(),
            })
        };
        Self {
            stream: stretch.stream,
            start_ns: stretch.start.0,
            length_ns: stretch.length.0,
            failed: stretch.failed,
            read: flow(Direction::Read),
            write: flow(Direction::Write),
            lag_ns: stretch.lag.map(|lag| lag.0),
        }
    }
}

impl Interval {
    /// As the core has it.
    pub fn to_core(&self) -> measure::Stretch {
        let times = |flow: &Option<IntervalFlow>| {
            flow.as_ref().map_or_else(SparseHistogram::default, |f| f.response_time.to_sparse())
        };
        measure::Stretch {
            stream: self.stream,
            start: Span(self.start_ns),
            length: Span(self.length_ns),
            failed: self.failed,
            bytes: [&self.read, &self.write]
                .map(|flow| Bytes(flow.as_ref().map_or(0, |f| f.bytes))),
            response_time: [times(&self.read), times(&self.write)],
            lag: self.lag_ns.map(Span),
        }
    }

    /// The same in plain numbers.
    pub fn plain(&self) -> measure::Interval {
        let flows = [&self.read, &self.write].map(Option::as_ref);
        let times = |flow: Option<&IntervalFlow>| {
            flow.map_or_else(measure::Times::default, |flow| measure::Times {
                min: flow.response_time.min_ns.unwrap_or(0),
                max: flow.response_time.max_ns.unwrap_or(0),
                sum: flow.response_time.sum_ns,
            })
        };
        measure::Interval {
            stream: self.stream,
            start: Span(self.start_ns),
            length: Span(self.length_ns),
            failed: self.failed,
            ios: flows.map(|flow| flow.map_or(0, |flow| flow.response_time.count())),
            bytes: flows.map(|flow| Bytes(flow.map_or(0, |flow| flow.bytes))),
            times: flows.map(times),
            lag: self.lag_ns.map(Span),
        }
    }
}

impl From<&facts::Counters> for Counters {
    fn from(counters: &facts::Counters) -> Self {
        let cpu = |&(cpu, time): &(u32, facts::CpuTime)| Cpu {
            cpu,
            user_ns: time.user.0,
            kernel_ns: time.kernel.0,
            idle_ns: time.idle.0,
            steal_ns: time.steal.0,
        };
        let device = |device: &facts::DeviceCounters| Device {
            name: device.name.clone(),
            device: device.device,
            reads: device.reads,
            read_bytes: device.read_bytes.0,
            writes: device.writes,
            written_bytes: device.written_bytes.0,
            read_time_ns: device.under_way.map(|times| times[0].0),
            write_time_ns: device.under_way.map(|times| times[1].0),
            merged_reads: device.merged.map(|merged| merged[0]),
            merged_writes: device.merged.map(|merged| merged[1]),
            flushes: device.flushes,
        };
        Self {
            late_ns: Some(counters.late.0),
            cpus: counters.cpus.iter().map(cpu).collect(),
            devices: counters.devices.iter().map(device).collect(),
            process_user_ns: counters.process_user.0,
            process_kernel_ns: counters.process_kernel.0,
            throttled_ns: counters.throttled.map(|throttled| throttled.0),
            memory: Some(counters.memory),
            tracer: counters.tracer.clone(),
            pauses: counters.pauses.as_ref().map(|pauses| pauses.found.clone()),
            io_wq: counters.io_wq.as_ref().map(|io_wq| IoWq {
                handed_over: io_wq.handed_over,
                threads: io_wq.threads.as_ref().map(|threads| threads.len() as u32),
                cpu_ns: io_wq.cpu().map(|cpu| cpu.0),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_tells_what_the_block_layer_merged_where_it_was_looked() {
        let counted = |merged| facts::DeviceCounters {
            name: "sda".to_owned(),
            reads: 500,
            read_bytes: Bytes(2000 << 16),
            merged,
            ..facts::DeviceCounters::default()
        };
        let in_words = |merged| {
            let counters = facts::Counters {
                devices: Vec::from([counted(merged)]),
                ..facts::Counters::default()
            };
            Counters::from(&counters).devices[0].in_words()
        };
        let merged =
            "500 reads (125 MiB; 1,500 more were merged into them), 0 writes (0 B), 0 flushes";
        assert_eq!(in_words(Some([1500, 0])), merged);
        for nothing in [None, Some([0, 0])] {
            assert_eq!(in_words(nothing), "500 reads (125 MiB), 0 writes (0 B), 0 flushes");
        }
    }
}
