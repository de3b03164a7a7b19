//! What to measure and what it means.
//!
//! Pure: performs no I/O and reads no clock, environment or random source. A fact about the host
//! enters as a value of [`facts`], time as an [`Instant`], chance as a seed. So everything here is
//! tested without a device, and always gives the same answer for the same input.

mod calendar;
pub mod calibration;
pub mod differences;
pub mod errno;
pub mod experiment;
pub mod facts;
pub mod figures;
pub mod findings;
pub mod hosts;
pub mod measure;
pub mod nvme;
pub mod plan;
mod refusal;
pub mod spec;
mod split_mix;
pub mod stats;
pub mod trial;
mod typed;
mod units;
pub mod verdict;
pub mod watch;

pub use calendar::Utc;
pub use refusal::{Refusal, RefusalKind};
pub use split_mix::SplitMix64;
pub use typed::{markup, printable, printable_lines, steers, typed_path, typed_size, typed_word};
pub use units::{Bytes, Instant, ParseUnitError, Quantile, Rate, Span, count};
