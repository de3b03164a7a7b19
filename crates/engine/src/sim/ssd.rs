//! A solid-state drive: channels that each do one thing at a time, behind an interface, with a
//! write cache in front of the flash.
//!
//! The address space is striped over the channels in pages: page p lies on channel p mod channels.
//!
//! ```text
//! read   its pages, on their channels in parallel, each a read-time (none for the page that the
//!        channel read last); when all are there, length / read-bandwidth on the interface, one
//!        I/O after the other; then overhead.
//! write  length / write-bandwidth on the interface; then it waits until the cache holds less than
//!        its size, and is acknowledged after overhead. Full pages leave the cache to the channels
//!        in turn, a program-time each.
//! alone: read  = read-time + length / read-bandwidth + overhead     (up to one page a channel)
//!        write = length / write-bandwidth + overhead                (while the cache has room)
//! most:  read IOPS  = min(channels / read-time, read-bandwidth / length)    (random, up to a page)
//!        write rate = min(channels page / program-time x c, write-bandwidth)
//!        with c = 1 - collect-time / (time to write collect-every), the share that collecting leaves
//! ```
//!
//! A channel that is free serves, in this order: a collection; a program, if reads-per-program
//! reads went before it; a read; a program. It completes whatever it has begun, so a read that
//! meets a program waits for up to a program-time: that is how writes interfere with reads. Each
//! time collect-every has been written, every channel collects for collect-time: that is the stall
//! in the tail.

use std::collections::VecDeque;

use fathom_core::measure::Direction;
use fathom_core::{Bytes, Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Field, Parameter};
use crate::backend::Io;

/// The settings of a solid-state drive.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdOptions {
    /// Units that read or program at the same time.
    pub channels: u32,
    /// The amount that a channel reads or programs at once, and the width of the stripe.
    pub page: Bytes,
    /// Time to read a page.
    pub read_time: Span,
    /// Time to program a page.
    pub program_time: Span,
    /// How far read and program times spread around their mean, uniformly, as a share of it.
    pub jitter: f64,
    /// The time that the controller adds to each I/O.
    pub overhead: Span,
    /// Bytes per second to the host.
    pub read_bandwidth: Bytes,
    /// Bytes per second from the host.
    pub write_bandwidth: Bytes,
    /// Written data that waits for its program.
    pub cache: Bytes,
    /// Reads a channel serves while a program waits.
    pub reads_per_program: u32,
    /// Data written from one collection to the next.
    pub collect_every: Bytes,
    /// How long every channel collects; zero for a drive that never does.
    pub collect_time: Span,
}

impl Default for SsdOptions {
    fn default() -> Self {
        Self {
            channels: 64,
            page: Bytes(16 * Bytes::KIB),
            read_time: Span::from_us(78),
            program_time: Span::from_us(500),
            jitter: 0.05,
            overhead: Span::from_us(10),
            read_bandwidth: Bytes(3_000_000_000),
            write_bandwidth: Bytes(3_000_000_000),
            cache: Bytes(64 * Bytes::MIB),
            reads_per_program: 8,
            collect_every: Bytes(64 * Bytes::MIB),
            collect_time: Span::from_us(625),
        }
    }
}

/// The slowest and the fastest interface.
const BANDWIDTH: (Bytes, Bytes) = (Bytes(1_000), Bytes(1_000_000_000_000));

pub(super) const PARAMETERS: [Parameter<SsdOptions>; 12] = [
    Parameter {
        name: "channels",
        meaning: "units that read or program at the same time",
        field: |o| Field::Count(&mut o.channels, 1, 1024),
    },
    Parameter {
        name: "page",
        meaning: "the bytes that a channel reads or programs at once",
        field: |o| Field::Size(&mut o.page, Bytes(512), Bytes(Bytes::MIB)),
    },
    Parameter {
        name: "read-time",
        meaning: "mean time to read a page",
        field: |o| Field::Time(&mut o.read_time, Span(1), Span::from_secs(10)),
    },
    Parameter {
        name: "program-time",
        meaning: "mean time to program a page",
        field: |o| Field::Time(&mut o.program_time, Span(1), Span::from_secs(10)),
    },
    Parameter {
        name: "jitter",
        meaning: "the largest deviation of both times from their mean; they spread uniformly",
        field: |o| Field::Share(&mut o.jitter, 1.0),
    },
    Parameter {
        name: "overhead",
        meaning: "the controller's time for each I/O",
        field: |o| Field::Time(&mut o.overhead, Span(0), Span::from_secs(10)),
    },
    Parameter {
        name: "read-bandwidth",
        meaning: "limit of the interface for reads",
        field: |o| Field::Bandwidth(&mut o.read_bandwidth, BANDWIDTH.0, BANDWIDTH.1),
    },
    Parameter {
        name: "write-bandwidth",
        meaning: "limit of the interface for writes",
        field: |o| Field::Bandwidth(&mut o.write_bandwidth, BANDWIDTH.0, BANDWIDTH.1),
    },
    Parameter {
        name: "cache",
        meaning: "written data that may wait for its program; at least a page",
        field: |o| Field::Size(&mut o.cache, Bytes(512), Bytes(1 << 40)),
    },
    Parameter {
        name: "reads-per-program",
        meaning: "reads that a channel serves while a program waits",
        field: |o| Field::Count(&mut o.reads_per_program, 0, 1_000_000),
    },
    Parameter {
        name: "collect-every",
        meaning: "data written from one garbage collection to the next",
        field: |o| Field::Size(&mut o.collect_every, Bytes(Bytes::MIB), Bytes(1 << 50)),
    },
    Parameter {
        name: "collect-time",
        meaning: "the time that every channel then collects; 0ns for never",
        field: |o| Field::Time(&mut o.collect_time, Span(0), Span::from_secs(60)),
    },
];

impl SsdOptions {
    /// Whether they go together.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.cache < self.page {
            return Err(format!(
                "cache={} is smaller than page={}: no page would ever be full; make the cache at \
                 least a page",
                self.cache.0, self.page.0
            ));
        }
        Ok(())
    }
}

/// The end of a list of slots.
const NONE: u32 = 0;

/// The activity of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelWork {
    Nothing,
    Read(u32),
    Program,
    Collection,
}

/// One unit, with the I/Os that wait for it.
#[derive(Clone, Debug)]
struct Channel {
    work: ChannelWork,
    /// The list of I/Os that wait to read here, as slot + 1, oldest first.
    first: u32,
    last: u32,
    programs: u64,
    collections: u64,
    reads_in_row: u32,
    /// The page whose data is still in the channel's register.
    page: Option<u64>,
}

/// A read or write on its way.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    length: u32,
    /// Channels that still have to read for it.
    parts: u32,
    /// The first page that it touches.
    first: u64,
    /// The number of pages that it touches. It is computed once, because the division is most of
    /// the cost of a read here.
    pages: u64,
}

/// A divisor that is mostly a power of two.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u64,
    shift: Option<u32>,
}

impl Divisor {
    fn new(by: u64) -> Self {
        Self { by, shift: by.is_power_of_two().then(|| by.trailing_zeros()) }
    }

    #[inline]
    fn quotient(self, of: u64) -> u64 {
        match self.shift {
            Some(shift) => of >> shift,
            None => of / self.by,
        }
    }

    #[inline]
    fn rest(self, of: u64) -> u64 {
        match self.shift {
            Some(_) => of & (self.by - 1),
            None => of % self.by,
        }
    }
}

/// One direction of the interface: one I/O after the other.
#[derive(Debug)]
struct Interface {
    bandwidth: Bytes,
    free: Instant,
    /// The time of the last I/O, which is also that of the next one if it has the same length.
    last: (u32, Span),
}

impl Interface {
    fn new(bandwidth: Bytes) -> Self {
        Self { bandwidth, free: Instant(0), last: (0, Span(0)) }
    }

    /// Moves an I/O that is there now, and returns when it has crossed.
    #[inline]
    fn moves(&mut self, length: u32, now: Instant) -> Instant {
        if self.last.0 != length {
            // Never zero, or a closed loop whose pages are in the channels' registers would stop
            // the time.
            let span = (u64::from(length) * 1_000_000_000).div_ceil(self.bandwidth.0);
            self.last = (length, Span(span));
        }
        self.free = self.free.max(now) + self.last.1;
        self.free
    }
}

/// The drive at work.
#[derive(Debug)]
pub(super) struct Ssd {
    options: SsdOptions,
    channels: Vec<Channel>,
    /// By slot and channel: the I/O that waits behind this slot there.
    next: Vec<u32>,
    transfers: Vec<Transfer>,
    page: Divisor,
    count: Divisor,
    reads: Interface,
    writes: Interface,
    /// Writes that wait for room in the cache.
    held: VecDeque<u32>,
    /// The bytes in the cache.
    cached: u64,
    /// The bytes of a page in it that is not full.
    remainder: u64,
    /// The channel that programs next.
    turn: usize,
    written: u64,
    chance: Chance,
}

impl Ssd {
    pub fn new(options: &SsdOptions, slots: u32, seed: u64) -> Self {
        let channel = Channel {
            work: ChannelWork::Nothing,
            first: NONE,
            last: NONE,
            programs: 0,
            collections: 0,
            reads_in_row: 0,
            page: None,
        };
        let slots = slots as usize;
        Self {
            channels: vec![channel; options.channels as usize],
            next: vec![NONE; slots * options.channels as usize],
            transfers: vec![Transfer { length: 0, parts: 0, first: 0, pages: 0 }; slots],
            page: Divisor::new(options.page.0),
            count: Divisor::new(u64::from(options.channels)),
            reads: Interface::new(options.read_bandwidth),
            writes: Interface::new(options.write_bandwidth),
            held: VecDeque::with_capacity(slots),
            cached: 0,
            remainder: 0,
            turn: 0,
            written: 0,
            options: options.clone(),
            chance: Chance::new(seed, 3),
        }
    }

    fn read_arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let (slot, count) = (io.slot, self.channels.len());
        let first = self.page.quotient(io.offset);
        let end = self.page.quotient(io.offset + u64::from(io.length) + self.page.by - 1);
        let pages = (end - first).max(1);
        let parts = pages.min(count as u64);
        self.transfers[slot as usize] =
            Transfer { length: io.length, parts: parts as u32, first, pages };
        for page in first..first + parts {
            let index = self.count.rest(page) as usize;
            let channel = &mut self.channels[index];
            match channel.last {
                NONE => channel.first = slot + 1,
                last => self.next[(last - 1) as usize * count + index] = slot + 1,
            }
            channel.last = slot + 1;
            self.next[slot as usize * count + index] = NONE;
            self.go_on(index, now, agenda);
        }
    }

    /// Lets a channel begin its next activity, if the last one has ended.
    fn go_on(&mut self, index: usize, now: Instant, agenda: &mut Agenda) {
        let channel = &mut self.channels[index];
        if channel.work != ChannelWork::Nothing {
            return;
        }
        let reads_wait = channel.first != NONE;
        let patient = channel.reads_in_row < self.options.reads_per_program;
        let time = if channel.collections > 0 {
            channel.collections -= 1;
            channel.work = ChannelWork::Collection;
            channel.page = None;
            self.options.collect_time
        } else if channel.programs > 0 && !(reads_wait && patient) {
            channel.programs -= 1;
            channel.reads_in_row = 0;
            channel.work = ChannelWork::Program;
            channel.page = None;
            self.chance.around(self.options.program_time, self.options.jitter)
        } else if reads_wait {
            self.begin_read(index)
        } else {
            return;
        };
        agenda.resumes(index as u32, now + time);
    }

    /// Takes the oldest read of a channel, and returns its time.
    fn begin_read(&mut self, index: usize) -> Span {
        let count = self.channels.len();
        let slot = self.channels[index].first - 1;
        let Transfer { first, pages, .. } = self.transfers[slot as usize];
        // Of the I/O's pages, those on this channel: every count-th from its first one here.
        let skipped = self.count.rest(index as u64 + count as u64 - self.count.rest(first));
        let here = self.count.quotient(pages - skipped + count as u64 - 1);
        let channel = &mut self.channels[index];
        channel.first = self.next[slot as usize * count + index];
        if channel.first == NONE {
            channel.last = NONE;
        }
        channel.reads_in_row = match channel.programs {
            0 => 0,
            _ => channel.reads_in_row + 1,
        };
        channel.work = ChannelWork::Read(slot);
        let begins_with = first + skipped;
        let known = u64::from(channel.page == Some(begins_with));
        channel.page = Some(begins_with + (here - 1) * count as u64);
        let mean = Span(self.options.read_time.0 * (here - known));
        self.chance.around(mean, self.options.jitter)
    }

    /// A channel has ended its activity.
    fn ended(&mut self, index: usize, now: Instant, agenda: &mut Agenda) {
        match std::mem::replace(&mut self.channels[index].work, ChannelWork::Nothing) {
            ChannelWork::Read(slot) => {
                let transfer = &mut self.transfers[slot as usize];
                transfer.parts -= 1;
                if transfer.parts == 0 {
                    let across = self.reads.moves(transfer.length, now);
                    agenda.completes(slot, across + self.options.overhead);
                }
            }
            ChannelWork::Program => {
                self.cached -= self.options.page.0;
                self.admit(now, agenda);
            }
            ChannelWork::Collection => {}
            ChannelWork::Nothing => unreachable!("channel {index} ended nothing"),
        }
        self.go_on(index, now, agenda);
    }

    /// Accepts waiting writes into the cache, as long as it has room.
    fn admit(&mut self, now: Instant, agenda: &mut Agenda) {
        while self.cached < self.options.cache.0 {
            let Some(slot) = self.held.pop_front() else { return };
            agenda.completes(slot, now + self.options.overhead);
            let length = u64::from(self.transfers[slot as usize].length);
            self.cached += length;
            self.written += length;
            self.collect_if_due(now, agenda);
            self.program(length, now, agenda);
        }
    }

    /// Hands full pages to the channels, one after the other.
    fn program(&mut self, length: u64, now: Instant, agenda: &mut Agenda) {
        let pages = (self.remainder + length) / self.options.page.0;
        self.remainder = (self.remainder + length) % self.options.page.0;
        let count = self.channels.len();
        for extra in 0..pages.min(count as u64) {
            let index = (self.turn + extra as usize) % count;
            self.channels[index].programs += (pages - extra).div_ceil(count as u64);
            self.go_on(index, now, agenda);
        }
        self.turn = (self.turn + (pages % count as u64) as usize) % count;
    }

    fn collect_if_due(&mut self, now: Instant, agenda: &mut Agenda) {
        let due = self.written / self.options.collect_every.0;
        if due == 0 {
            return;
        }
        self.written %= self.options.collect_every.0;
        if self.options.collect_time == Span(0) {
            return;
        }
        for index in 0..self.channels.len() {
            self.channels[index].collections += due;
            self.go_on(index, now, agenda);
        }
    }
}

impl Device for Ssd {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        match io.direction {
            Direction::Read => self.read_arrives(io, now, agenda),
            Direction::Write => {
                self.transfers[io.slot as usize].length = io.length;
                let across = self.writes.moves(io.length, now);
                agenda.resumes(self.options.channels + io.slot, across);
            }
        }
    }

    fn own_events(&self) -> usize {
        // The end of each channel's activity.
        self.channels.len()
    }

    fn resumes(&mut self, token: u32, now: Instant, agenda: &mut Agenda) {
        match token.checked_sub(self.options.channels) {
            None => self.ended(token as usize, now, agenda),
            // The data of a write has crossed the interface.
            Some(slot) => {
                self.held.push_back(slot);
                self.admit(now, agenda);
            }
        }
    }
}
