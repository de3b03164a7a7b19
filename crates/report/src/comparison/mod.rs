//! The comparison of results: what differs between them.

mod facts;

pub use facts::{FactDifference, FactWeight, differences, header_differences};
