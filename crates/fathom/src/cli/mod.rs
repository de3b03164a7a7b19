//! The command line: what was typed, as values of their types. What that means here is the business
//! of [`resolve`](crate::resolve).

pub mod args;
pub mod axes;
pub mod comparing;
pub mod described;
mod habits;
pub mod help;
pub mod options;
pub mod parts;
pub mod patterns;
pub mod rates;
pub mod searches;
pub mod thresholds;
pub mod values;
