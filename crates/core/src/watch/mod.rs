//! What any program does to a disk, seen from the block layer: the kernel's counters, and the events
//! of single requests.
//!
//! Counters are exact and cost nothing, but know means only. Events give distributions, the time in
//! the queue apart from the time at the device, and the programs. Whatever the counters have is
//! taken from them, because the kernel can drop events when there are too many.

mod breakdown;
mod busy;
mod counted;
mod event;
mod history;
mod matching;
mod observed;
mod pairing;

pub use breakdown::{
    Band, Breakdown, FlowBreakdown, HostThen, Neighbor, Parts, SLOWEST, SlowIo, SlowRequest,
};
pub use busy::Busy;
pub use counted::{Counted, CountedFlow, DiskStat, FlowStat};
pub use event::{BlockEvent, BlockStage, Operation};
pub use history::{Additive, Busiest, History, HistoryPart};
pub use matching::{DiskRange, HostLook, Matching, OwnIo};
pub use observed::{Caused, Observed, ObservedFlow};
pub use pairing::{BlockRequest, Pairing};
