//! The command line: what was typed ([`args`], [`values`], [`rates`],
//! [`patterns`]) becomes what it means here
//! ([`resolve`]). After that there is no `Option` that stands for a default.

mod access;
pub mod args;
pub mod axes;
pub mod described;
pub mod parts;
pub mod patterns;
pub mod places;
pub mod portrait;
pub mod rates;
pub mod resolve;
pub mod searches;
pub mod values;

#[cfg(test)]
mod tests;
