//! Watches what any program does to a disk: the kernel's counters, and the events of the block
//! layer. Nothing on the disk is opened, read or changed.

mod buffer;
mod clocks;
mod disk_watch;
mod disks;
mod events;
mod format;
mod io_watch;
mod located;
mod probe;
mod programs;

pub use disk_watch::{DiskWatch, PUMP, WatchedInterval, WatchedSlice};
pub use disks::{WatchedDisk, disks, disks_below};
pub use events::EventsMissing;
pub use io_watch::{IoWatch, WatchedFile};
