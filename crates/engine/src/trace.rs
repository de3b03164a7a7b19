//! A trace: every single I/O and its outcome, for users who need more than distributions.
//!
//! The hot loop enters each I/O in a block of its own worker, which exists before the run begins. A
//! full block goes to the writer of the trace, and an empty one comes back, like tallies. When none
//! has come back yet, the I/O replaces the one before it, and counts how many were there: an I/O
//! may be missing, but is always counted.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use fathom_core::measure::{Direction, ErrorKind, Upkeep};
use fathom_core::plan::WorkerPlan;
use fathom_core::{Instant, Span};

use crate::backend::failure;
use crate::pattern::Request;

/// The capacity of all blocks together: two seconds of half a million I/Os per second, so that the
/// writer of the trace may be away for that long.
const IOS: usize = 1 << 20;
/// The capacity of a block: 64 KiB of memory.
const BLOCK: usize = 1 << 10;
/// The capacity of a block if the larger blocks of all workers would take gigabytes.
const SMALL_BLOCK: usize = 1 << 6;
/// The least number of blocks of a worker.
const BLOCKS_MIN: usize = 4;

/// Takes the I/Os of a run, one by one.
pub trait Tracer: Send {
    /// Takes I/Os of one worker, in the order of their completion. On real targets this is called
    /// on a separate thread, and no worker waits for it.
    fn take(&mut self, ios: &TracedIos<'_>);
}

/// I/Os of one worker.
#[derive(Clone, Copy, Debug)]
pub struct TracedIos<'a> {
    plan: &'a WorkerPlan,
    window_start: Instant,
    entries: &'a [TraceEntry],
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedIo {
    /// Its place among all I/Os that its worker started, from 0.
    pub number: u64,
    /// The target's place in the list of targets of the run.
    pub target: u32,
    /// Its direction.
    pub direction: Direction,
    /// The kind of upkeep, if it moved no data.
    pub upkeep: Option<Upkeep>,
    /// Its offset, in bytes from the target's start.
    pub offset: u64,
    /// Bytes requested.
    pub length: u32,
    /// When it should have started; in a closed loop, when it was submitted. Nanoseconds from the
    /// start of the window, negative before.
    pub start_ns: i64,
    /// From its intended start until it completed; none if it never came back.
    pub response_time: Option<Span>,
    /// From its submission until it completed; none if it never came back.
    pub service_time: Option<Span>,
    /// The phase in which it completed.
    pub phase: TracePhase,
    /// Its failure; none if all bytes moved.
    pub failure: Option<ErrorKind>,
    /// How many I/Os of its worker are missing from the trace between the one before it and this
    /// one.
    pub left_out: u64,
}

/// The part of a run in which an I/O completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePhase {
    /// Before the window.
    WarmUp,
    /// In the window: the I/Os in the distributions.
    Window,
    /// After the window, or never; it had started before the window's end.
    After,
    /// After the window, or never; it also started after it.
    CoolDown,
}

/// An I/O as the hot loop enters it: only data that the loop has anyway, nothing computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceEntry {
    pub(crate) number: u64,
    pub(crate) request: Request,
    pub(crate) intended: Instant,
    pub(crate) submitted: Instant,
    /// None if it never came back.
    pub(crate) completed: Option<(Instant, i32)>,
    pub(crate) phase: TracePhase,
    pub(crate) left_out: u64,
}

impl<'a> TracedIos<'a> {
    /// The stream's place in the point.
    pub fn stream(&self) -> u32 {
        self.plan.stream
    }

    /// The worker's place in its stream.
    pub fn worker(&self) -> u32 {
        self.plan.worker
    }

    /// When the window begins, by the clock of the load generator.
    pub fn window_start(&self) -> Instant {
        self.window_start
    }

    /// The I/Os themselves.
    pub fn iter(&self) -> impl Iterator<Item = TracedIo> + use<'a> {
        let (plan, window_start) = (self.plan, self.window_start);
        self.entries.iter().map(move |entry| entry.told(plan, window_start))
    }
}

impl TraceEntry {
    /// The entry in the run's terms. A worker has its own list of targets; the plan has the run's.
    fn told(&self, plan: &WorkerPlan, window_start: Instant) -> TracedIo {
        let request = self.request;
        let result = self.completed.map(|(_, result)| result);
        let since = |start: Instant| self.completed.map(|(at, _)| at.since(start));
        TracedIo {
            number: self.number,
            target: plan.regions[request.region()].target,
            direction: request.direction(),
            upkeep: request.upkeep(),
            offset: request.offset,
            length: request.length(),
            start_ns: self.intended.0.wrapping_sub(window_start.0) as i64,
            response_time: since(self.intended),
            service_time: since(self.submitted),
            phase: self.phase,
            failure: match result {
                None => Some(ErrorKind::Lost),
                Some(result) if u32::try_from(result) == Ok(request.length()) => None,
                // The kernel reports only that a trim was completed.
                Some(0) if request.upkeep() == Some(Upkeep::Trim) => None,
                Some(result) => Some(failure(result)),
            },
            left_out: self.left_out,
        }
    }
}

/// Follows the I/Os of one worker. The hot loop is compiled for each kind of follower, so that the
/// one which does nothing costs nothing.
pub(crate) trait Follow {
    /// Whether it does follow them.
    const FOLLOWS: bool = true;

    /// An I/O of this slot starts.
    fn starts(&mut self, slot: u32);

    /// It ended: `entry` makes its data from its number.
    fn ends(&mut self, slot: u32, entry: impl FnOnce(u64) -> TraceEntry);

    /// Hands over the rest.
    fn finish(&mut self);
}

/// Follows none.
pub(crate) struct Unfollowed;

impl Follow for Unfollowed {
    const FOLLOWS: bool = false;

    #[inline(always)]
    fn starts(&mut self, _: u32) {}

    #[inline(always)]
    fn ends(&mut self, _: u32, _: impl FnOnce(u64) -> TraceEntry) {}

    fn finish(&mut self) {}
}

/// The receiver of full blocks.
pub(crate) trait Outlet {
    /// Takes a full block and leaves an empty one; or leaves it unchanged, if there is none.
    fn exchange(&mut self, worker: usize, block: &mut Vec<TraceEntry>) -> bool;

    /// Takes the last block.
    fn last(&mut self, worker: usize, block: Vec<TraceEntry>);
}

/// Follows all of a worker's I/Os.
pub(crate) struct Follower<O> {
    worker: usize,
    /// The I/O of each slot, by its place among all that were started.
    numbers: Box<[u64]>,
    started: u64,
    /// It never grows.
    block: Vec<TraceEntry>,
    outlet: O,
}

impl<O: Outlet> Follower<O> {
    /// A follower for a worker with this many slots.
    pub(crate) fn new(worker: usize, slots: u32, block: Vec<TraceEntry>, outlet: O) -> Self {
        assert!(block.is_empty() && 0 < block.capacity());
        let numbers = vec![0; slots as usize].into();
        Self { worker, numbers, started: 0, block, outlet }
    }
}

impl<O: Outlet> Follow for Follower<O> {
    #[inline]
    fn starts(&mut self, slot: u32) {
        self.numbers[slot as usize] = self.started;
        self.started += 1;
    }

    #[inline]
    fn ends(&mut self, slot: u32, entry: impl FnOnce(u64) -> TraceEntry) {
        let mut entry = entry(self.numbers[slot as usize]);
        let is_full = self.block.len() == self.block.capacity();
        if is_full && !self.outlet.exchange(self.worker, &mut self.block) {
            let before = self.block.pop().expect("a full block holds something");
            entry.left_out = before.left_out + 1;
        }
        self.block.push(entry);
    }

    fn finish(&mut self) {
        if !self.block.is_empty() {
            self.outlet.last(self.worker, std::mem::take(&mut self.block));
        }
    }
}

/// An empty block for one of this many workers, with its memory present.
fn empty_block(workers: usize) -> Vec<TraceEntry> {
    let size = if workers * BLOCKS_MIN * BLOCK <= IOS { BLOCK } else { SMALL_BLOCK };
    let nothing = TraceEntry {
        number: 0,
        request: Request::default(),
        intended: Instant(0),
        submitted: Instant(0),
        completed: None,
        phase: TracePhase::After,
        left_out: 0,
    };
    // Touches every page, so that no page fault occurs while I/Os are timed.
    let mut block = vec![nothing; size];
    block.clear();
    block
}

/// A full block with its worker's number; none when no more will come.
type Full = Option<(usize, Vec<TraceEntry>)>;

/// The channels for blocks from a worker to the thread that writes the trace, and back.
pub(crate) struct BlockLine {
    full: SyncSender<Full>,
    empty: Receiver<Vec<TraceEntry>>,
}

impl Outlet for BlockLine {
    fn exchange(&mut self, worker: usize, block: &mut Vec<TraceEntry>) -> bool {
        let Ok(empty) = self.empty.try_recv() else { return false };
        self.last(worker, std::mem::replace(block, empty));
        true
    }

    fn last(&mut self, worker: usize, block: Vec<TraceEntry>) {
        // There is room for every existing block, so this fails only when the writer is gone, and
        // the run with it.
        let _ = self.full.try_send(Some((worker, block)));
    }
}

/// Where the blocks of all workers arrive.
pub(crate) struct TraceBlocks {
    filled: Receiver<Full>,
    full: SyncSender<Full>,
    returns: Vec<SyncSender<Vec<TraceEntry>>>,
}

/// Followers of these workers, and where their blocks arrive.
pub(crate) fn lines(plans: &[WorkerPlan]) -> (Vec<Follower<BlockLine>>, TraceBlocks) {
    let workers = plans.len();
    let blocks = (IOS / empty_block(workers).capacity() / workers.max(1)).max(BLOCKS_MIN);
    // And one place for the end.
    let (full, filled) = sync_channel(workers * blocks + 1);
    let mut returns = Vec::with_capacity(workers);
    let mut followers = Vec::with_capacity(workers);
    for (worker, plan) in plans.iter().enumerate() {
        let (give_back, empty) = sync_channel(blocks);
        for _ in 1..blocks {
            give_back.try_send(empty_block(workers)).expect("the channel has room for all");
        }
        returns.push(give_back);
        let line = BlockLine { full: full.clone(), empty };
        let slots = plan.pace.queue_depth();
        followers.push(Follower::new(worker, slots, empty_block(workers), line));
    }
    (followers, TraceBlocks { filled, full, returns })
}

/// Ends the writing of a trace when it is dropped: a worker that hangs never reports that it is
/// done.
pub(crate) struct Ends(SyncSender<Full>);

impl Drop for Ends {
    fn drop(&mut self) {
        // It fails only when the writer is gone.
        let _ = self.0.try_send(None);
    }
}

impl TraceBlocks {
    /// Ends the trace when it is dropped, after everything has been handed over.
    pub(crate) fn ends(&self) -> Ends {
        Ends(self.full.clone())
    }

    /// Hands arriving blocks to the tracer until it is ended.
    pub(crate) fn write(
        self,
        tracer: &mut dyn Tracer,
        plans: &[WorkerPlan],
        window_start: Instant,
    ) {
        for (worker, mut block) in self.filled.iter().map_while(|full| full) {
            tracer.take(&TracedIos { plan: &plans[worker], window_start, entries: &block });
            block.clear();
            // A worker that has ended takes nothing back.
            let _ = self.returns[worker].try_send(block);
        }
    }
}

/// Hands the I/Os of simulated workers to a tracer at once: virtual time stands still meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct AtOnce<'a, 'b> {
    pub(crate) tracer: &'a RefCell<&'b mut dyn Tracer>,
    pub(crate) plans: &'a [WorkerPlan],
    pub(crate) window_start: Instant,
}

impl<'a, 'b> AtOnce<'a, 'b> {
    /// Follows a worker.
    pub(crate) fn follow(self, worker: usize) -> Follower<Self> {
        let slots = self.plans[worker].pace.queue_depth();
        Follower::new(worker, slots, empty_block(self.plans.len()), self)
    }
}

impl Outlet for AtOnce<'_, '_> {
    fn exchange(&mut self, worker: usize, block: &mut Vec<TraceEntry>) -> bool {
        let (plan, window_start) = (&self.plans[worker], self.window_start);
        self.tracer.borrow_mut().take(&TracedIos { plan, window_start, entries: block });
        block.clear();
        true
    }

    fn last(&mut self, worker: usize, mut block: Vec<TraceEntry>) {
        self.exchange(worker, &mut block);
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Bytes;
    use fathom_core::plan::divide;
    use fathom_core::spec::{Pacing, Point, Region, Stream, Workers};

    use super::*;

    /// Takes blocks only when it has credit.
    struct Moody<'a> {
        credit: &'a mut [bool],
        taken: &'a mut Vec<TraceEntry>,
    }

    impl Outlet for Moody<'_> {
        fn exchange(&mut self, worker: usize, block: &mut Vec<TraceEntry>) -> bool {
            let (now, later) = std::mem::take(&mut self.credit).split_first_mut().unwrap();
            self.credit = later;
            if *now {
                let empty = Vec::with_capacity(block.capacity());
                self.last(worker, std::mem::replace(block, empty));
            }
            *now
        }

        fn last(&mut self, _: usize, block: Vec<TraceEntry>) {
            self.taken.extend(block);
        }
    }

    fn entry(number: u64) -> TraceEntry {
        TraceEntry {
            number,
            request: Request::default(),
            intended: Instant(0),
            submitted: Instant(0),
            completed: None,
            phase: TracePhase::Window,
            left_out: 0,
        }
    }

    fn follow(mut follower: Follower<impl Outlet>, ios: u64) {
        for _ in 0..ios {
            follower.starts(0);
            follower.ends(0, entry);
        }
        follower.finish();
    }

    /// The number of each entry that arrived, and the number of entries that it reports missing
    /// before it.
    fn through(credit: &mut [bool], ios: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        let outlet = Moody { credit, taken: &mut taken };
        follow(Follower::new(0, 1, Vec::with_capacity(4), outlet), ios);
        taken.iter().map(|entry| (entry.number, entry.left_out)).collect()
    }

    #[test]
    fn what_finds_no_room_is_left_out_and_counted_where_it_was() {
        assert_eq!(through(&mut [], 3), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(through(&mut [true], 6), [0, 1, 2, 3, 4, 5].map(|number| (number, 0)));
        // Two I/Os come while there is no free block. The last entry of the full block is always
        // the latest I/O.
        assert_eq!(
            through(&mut [false, false, true], 9),
            [(0, 0), (1, 0), (2, 0), (5, 2), (6, 0), (7, 0), (8, 0)]
        );
        // No block ever becomes free again: the trace ends with the last I/O.
        assert_eq!(through(&mut [false; 96], 100), [(0, 0), (1, 0), (2, 0), (99, 96)]);
    }

    #[test]
    fn more_than_all_blocks_hold_is_counted_to_the_last() {
        struct Count([u64; 2]);
        impl Tracer for Count {
            fn take(&mut self, ios: &TracedIos<'_>) {
                ios.iter().for_each(|io| self.0 = [self.0[0] + 1, self.0[1] + io.left_out]);
            }
        }
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
        let stream = Stream {
            workers: Workers::Total(2),
            pacing: Pacing::closed(2),
            ..Stream::reading("test", Vec::from([region]))
        };
        let plans = divide(&Point::of(Vec::from([stream]), Span::from_secs(1)));
        let (followers, arrivals) = lines(&plans);
        // No entries are taken meanwhile.
        let ios = IOS as u64 * 3 / 4;
        followers.into_iter().for_each(|follower| follow(follower, ios));
        let mut count = Count([0, 0]);
        drop(arrivals.ends());
        arrivals.write(&mut count, &plans, Instant(0));
        assert_eq!(count.0, [IOS as u64, IOS as u64 / 2]);
    }
}
