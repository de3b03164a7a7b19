//! The largest and smallest values that a user can ask for, the same for every front end: the
//! options, workload files, and other tools' descriptions of a load.

use std::ops::RangeInclusive;

use fathom_core::{Bytes, Span};

/// The most I/Os in flight of a stream, and the most workers of all streams.
pub const MOST: u32 = 1 << 16;
/// The most I/Os that one io_uring holds.
pub const RING: u32 = 1 << 15;
/// The largest block: the kernel cuts longer I/Os anyway.
pub const LARGEST_BLOCK: Bytes = Bytes(Bytes::GIB);
/// The possible rates of a load, the same for I/Os and for bytes.
pub const RATES: RangeInclusive<f64> = 0.001..=1e9;
/// The most I/Os that may fall due in a run.
pub const MOST_DUE: f64 = 1e12;
/// The shortest interval, and so the shortest window.
pub const SHORTEST_INTERVAL: Span = Span::from_ms(100);
/// The most intervals of a run: the limit that readers of results accept.
pub const MOST_INTERVALS: u64 = 1_000_000;
/// The longest window of a run that ends after an amount.
pub const LONGEST_UNTIL_DONE: Span = Span::from_secs(86_400);
/// The memory that the counts of DiskSpd's own intervals may take, of all threads together.
pub const MOST_BUCKET_BYTES: u64 = 256 << 20;
