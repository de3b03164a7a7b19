//! The latency map: response times of reads under every combination of read and write load, of
//! which only some are measured.

mod cells;
mod doubts;
mod frontier;
mod grid;
mod search;
mod surface;
mod words;

pub use cells::{Map, READS, Settings, Trims, WRITES};
pub use doubts::doubts;
pub use grid::{Reading, Shape, Spot};
pub use search::{Ask, CellSearch, Options as SearchOptions, Surface, cells_at_most};
pub use words::sentences;
