//! What follows from the facts for a test: the conclusions of `inspect`.

use fathom_core::facts::{Host, Target};

/// What somebody who wants to measure this target should know, most important first.
pub fn advice(_host: &Host, _target: &Target) -> Vec<String> {
    Vec::new()
}
