//! The result document and its renderers: pure functions from a document to bytes.
//!
//! Nothing here performs I/O or reads a clock. A renderer sees only the document, so an old result
//! is rendered without its device, and on any machine.

pub mod chart;
pub mod comparison;
pub mod csv;
pub mod document;
pub mod export;
pub mod figures;
pub mod history;
pub mod html;
pub mod image;
pub mod markdown;
pub mod page;
pub mod promises;
pub mod results;
pub mod summary;
pub mod terminal;
pub mod thresholds;
pub mod watched;
