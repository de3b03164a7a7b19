//! The measurement: full distributions that merge by addition, over workers, intervals and trials.
//! No percentile is ever averaged.

mod histogram;
pub mod leb128;
mod merge;
mod record;
mod series;
mod sparse;

pub use histogram::{Histogram, bucket_of, bucket_start};
pub use record::{
    Buckets, Cell, CpuWait, Direction, ErrorKind, Errors, Flow, IoError, LastStart, Ledger, Record,
    Spread, StartDelay, Tally, Upkeep, Waits, Whole, WorkerRecord,
};
pub use series::{Interval, STRETCHES_MAX, Series, Stretch, Times};
pub use sparse::SparseHistogram;
