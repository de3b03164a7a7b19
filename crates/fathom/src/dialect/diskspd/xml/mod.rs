//! DiskSpd's XML profiles, read and written.

pub mod read;
mod tree;
pub mod write;

pub use tree::LARGEST;
