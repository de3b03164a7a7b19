//! A controller's cache in front of an array: it acknowledges writes while it has room, and reads
//! of cached data never reach the disks. It keeps its content without power, so that acknowledged
//! writes are durable.
//!
//! ```text
//! a write    acknowledged after 20 us and its length at 4 GB/s, one I/O after the other, once what is
//!            not on the disks yet leaves room for it; one that is larger than the cache goes past it
//! to disk    32 pieces at once, in the order of arrival; what continues one of the last 16 pieces joins
//!            it, up to 8 MiB. Of an array with parity whole rows go at once, and what is no whole row
//!            when the cache is more than half full, or a write waits for room
//! a read     as fast as a write that finds room, if all of it is in the cache; otherwise from the disks
//! what is    lines of 4 KiB of what was read and written, each at its address modulo the size: the last
//! in it      of those that share a place
//!
//! most, writes, with w bytes per second of the disks, in t seconds:   w t + size
//! sequential writes of any size to raid5 and raid6:  w as of whole rows, (n - 1) b and (n - 2) b
//! random reads of a region r:  a share of min(1, size / r) is in it
//! ```

use std::collections::VecDeque;

use fathom_core::measure::Direction;
use fathom_core::{Bytes, Instant};

use super::Device;
use super::agenda::Agenda;
use super::array::Array;
use crate::backend::Io;

/// The unit that is kept or dropped.
const LINE: u64 = 4096;

/// The time that the link adds to an I/O, and the time for a byte on it, in nanoseconds.
const LINK: f64 = 20e3;
const LINK_BYTE: f64 = 1e9 / 4e9;

/// The number of pieces that are on their way to the disks at once.
const UNDER_WAY: usize = 32;

/// The number of the last pieces among which the predecessor of a write is searched.
const LAST: usize = 16;

/// The largest piece that goes to the disks at once.
const PIECE_MAX: u64 = 8 * Bytes::MIB;

/// The most pieces that are remembered: beyond that, a write waits until one of them is on the
/// disks.
const PIECES_MAX: u64 = 1 << 18;

/// A contiguous range, from one offset up to another.
#[derive(Clone, Copy, Debug)]
struct DirtyPiece {
    from: u64,
    to: u64,
}

/// Pieces in the order of their arrival.
#[derive(Debug)]
struct Pieces(VecDeque<DirtyPiece>);

impl Pieces {
    /// Joins a piece to one that ends where it begins, or appends it; returns its place.
    fn put(&mut self, piece: DirtyPiece) -> usize {
        let count = self.0.len();
        let last = (count.saturating_sub(LAST)..count).rev();
        let joins = |one: &DirtyPiece| one.to == piece.from && piece.to - one.from <= PIECE_MAX;
        match last.into_iter().find(|at| joins(&self.0[*at])) {
            Some(at) => {
                self.0[at].to = piece.to;
                at
            }
            None => {
                self.0.push_back(piece);
                count
            }
        }
    }
}

/// An array behind a cache.
#[derive(Debug)]
pub(super) struct Cached {
    array: Array,
    size: u64,
    /// By place: the number of the line there, plus one.
    lines: Box<[u64]>,
    /// When the link is free, in nanoseconds.
    link: f64,
    /// Bytes that are not yet on the disks.
    dirty: u64,
    /// Of these, the parts that are not yet whole rows, and the parts that may go to the disks.
    gathered: Pieces,
    ready: Pieces,
    /// The pieces under way, and whether old data is being read for each.
    under_way: [Option<(DirtyPiece, bool)>; UNDER_WAY],
    /// Writes that wait for room: the slot and the range.
    waiting: VecDeque<(u32, DirtyPiece)>,
    slots: u32,
}

impl Cached {
    pub fn new(array: Array, size: Bytes, slots: u32) -> Self {
        let pieces =
            || Pieces(VecDeque::with_capacity((size.0 / LINE).min(PIECES_MAX) as usize + 3));
        Self {
            array,
            size: size.0,
            lines: vec![0; (size.0 / LINE) as usize].into(),
            link: 0.0,
            dirty: 0,
            gathered: pieces(),
            ready: pieces(),
            under_way: [None; UNDER_WAY],
            waiting: VecDeque::with_capacity(slots as usize),
            slots,
        }
    }

    /// An I/O is answered from the cache.
    fn answers(&mut self, slot: u32, length: u64, now: Instant, agenda: &mut Agenda) {
        self.link = self.link.max(now.0 as f64) + length as f64 * LINK_BYTE;
        agenda.completes(slot, Instant((self.link + LINK).ceil() as u64));
    }

    /// Puts all lines of a piece into the cache, and returns whether they were there.
    fn touches(&mut self, piece: DirtyPiece) -> bool {
        let places = self.lines.len() as u64;
        let mut were_there = true;
        for line in piece.from / LINE..piece.to.div_ceil(LINE) {
            let place = &mut self.lines[(line % places) as usize];
            were_there &= *place == line + 1;
            *place = line + 1;
        }
        were_there
    }

    /// Accepts waiting writes, in their order, as long as there is room.
    fn admits(&mut self, now: Instant, agenda: &mut Agenda) {
        let most = (self.size / LINE).min(PIECES_MAX) as usize;
        while let Some(&(slot, piece)) = self.waiting.front() {
            let length = piece.to - piece.from;
            let pieces = self.gathered.0.len().max(self.ready.0.len());
            if self.size < self.dirty + length || most <= pieces {
                return;
            }
            self.waiting.pop_front();
            self.dirty += length;
            self.touches(piece);
            self.gathers(piece);
            self.answers(slot, length, now, agenda);
        }
    }

    /// Keeps a piece for the disks: whole rows may go at once.
    fn gathers(&mut self, piece: DirtyPiece) {
        let row = self.array.row();
        let at = self.gathered.put(piece);
        let DirtyPiece { from, to } = self.gathered.0[at];
        let (first, last) = (from.next_multiple_of(row), to / row * row);
        if first < last {
            self.gathered.0.swap_remove_back(at);
            self.ready.put(DirtyPiece { from: first, to: last });
            for part in [DirtyPiece { from, to: first }, DirtyPiece { from: last, to }] {
                if part.from < part.to {
                    self.gathered.0.push_back(part);
                }
            }
        }
    }

    /// Sends pieces to the disks that may go there, as long as not too many are under way.
    fn sends(&mut self, now: Instant, agenda: &mut Agenda) {
        for place in 0..UNDER_WAY {
            if self.under_way[place].is_some() {
                continue;
            }
            let is_tight = self.size / 2 < self.dirty || !self.waiting.is_empty();
            let next = self.ready.0.pop_front();
            let next = match next {
                None if is_tight => self.gathered.0.pop_front(),
                next => next,
            };
            let Some(piece) = next else { return };
            let DirtyPiece { from, to } = piece;
            let (end, reads_first) = self.array.begins_write(from, to - from, now.0 as f64);
            self.under_way[place] = Some((piece, reads_first));
            agenda.resumes(self.slots + place as u32, Instant(end.ceil() as u64));
        }
    }
}

impl Device for Cached {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let length = u64::from(io.length);
        let piece = DirtyPiece { from: io.offset, to: io.offset + length };
        match io.direction {
            Direction::Write if length <= self.size => {
                self.waiting.push_back((io.slot, piece));
                self.admits(now, agenda);
                self.sends(now, agenda);
            }
            Direction::Write => self.array.arrives(io, now, agenda),
            // The lines that are being read count as present a little early.
            Direction::Read => match self.touches(piece) {
                true => self.answers(io.slot, length, now, agenda),
                false => self.array.arrives(io, now, agenda),
            },
        }
    }

    fn own_events(&self) -> usize {
        // The end of each piece that is under way.
        UNDER_WAY
    }

    /// A write past the cache continues, or a piece that was under way is on the disks.
    fn resumes(&mut self, token: u32, now: Instant, agenda: &mut Agenda) {
        let Some(place) = token.checked_sub(self.slots) else {
            return self.array.resumes(token, now, agenda);
        };
        let under_way = &mut self.under_way[place as usize];
        let (piece, reads_first) = under_way.take().expect("only what is under way ends");
        if reads_first {
            *under_way = Some((piece, false));
            let end = self.array.ends_write(piece.from, piece.to - piece.from, now.0 as f64);
            return agenda.resumes(token, Instant(end.ceil() as u64));
        }
        self.dirty -= piece.to - piece.from;
        self.admits(now, agenda);
        self.sends(now, agenda);
    }
}
