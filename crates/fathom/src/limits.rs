//! What can be asked for at most and at least, the same for every front end: the options, workload
//! files, and other tools' descriptions of a load.

use std::ops::RangeInclusive;

use fathom_core::{Bytes, Span};

/// The most I/Os in flight of a stream, and the most workers of all streams.
pub const MOST: u32 = 1 << 16;
/// The most I/Os that one io_uring holds.
pub const RING: u32 = 1 << 15;
/// The largest block: the kernel cuts longer I/Os anyway.
pub const LARGEST_BLOCK: Bytes = Bytes(Bytes::GIB);
/// The rates that a load can be offered at, the same for I/Os and for bytes.
pub const RATES: RangeInclusive<f64> = 0.001..=1e9;
/// The most I/Os that may fall due in a run.
pub const MOST_DUE: f64 = 1e12;
/// The shortest interval, and so the shortest window.
pub const SHORTEST_INTERVAL: Span = Span::from_ms(100);
/// The most intervals that a run may have: what a reader of results takes for possible.
pub const MOST_INTERVALS: u64 = 1_000_000;
/// The longest window of a run that ends when something is done.
pub const LONGEST_UNTIL_DONE: Span = Span::from_secs(86_400);
/// The memory that the counts of DiskSpd's own intervals may take, of all threads together.
pub const MOST_BUCKET_BYTES: u64 = 256 << 20;
