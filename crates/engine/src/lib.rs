//! Applies a point to targets and records the outcome of every I/O.
//!
//! The hot loop in `worker` is generic over [`backend::Backend`] and its schedule; the backend owns
//! the clock. So the loop that tests run through hours of virtual time in seconds is the loop that
//! drives io_uring. The engine does not know why a point runs.
//!
//! `unsafe` occurs only in the real backends, in `realtime` and `workplace`, in `buffers` and `memory`,
//! in a worker's `estate`, in `found::generation`, in `watch::buffer`, and where `host` says so.

pub mod access;
pub mod aio;
pub mod backend;
#[doc(hidden)]
pub mod bench;
mod buffers;
pub mod calibrate;
mod choice;
pub mod clock;
mod collector;
pub mod found;
pub mod host;
mod memory;
mod open_target;
pub mod pacer;
mod pattern;
mod payload;
pub mod prefill;
mod realtime;
mod recent;
mod replay;
mod run_error;
mod run_point;
mod schedule;
pub mod sim;
pub mod sync;
pub mod target;
mod target_error;
mod timetable;
pub mod trace;
pub mod uring;
pub mod watch;
mod worker;
mod workplace;

pub use choice::{Choice, Way, choose, choose_for};
pub use collector::Progress;
pub use recent::LastSecond;
pub use replay::replay;
pub use run_error::RunError;
pub use run_point::{
    Devices, Nobody, Observer, Phase, leaves_ios, left_behind, run_point, run_traced,
};
pub use target_error::plain;
