//! Scratch files that killed runs have left.

use crate::error::Error;
use crate::output;
use crate::scratch::{self, Leftover};

/// Names files that killed runs have left, and removes them if the user agrees.
///
/// # Errors
///
/// When one that was to be removed cannot be.
pub fn offer_to_remove(found: &[Leftover], remove: bool) -> Result<(), Error> {
    if found.is_empty() {
        if remove {
            output::note("no leftover was found");
        }
        return Ok(());
    }
    for leftover in found {
        output::note(&format!(
            "a run that was killed has left {} ({})",
            leftover.path.display(),
            leftover.size
        ));
    }
    if !remove && !agrees(found.len()) {
        output::note("it stays; --remove-leftovers removes it");
        return Ok(());
    }
    for leftover in found {
        match scratch::remove(leftover) {
            Ok(()) => output::note(&format!("removed {}", leftover.path.display())),
            Err(cause) => {
                return Err(Error::target(
                    leftover.path.display().to_string(),
                    format!("it cannot be removed ({})", crate::error::plain(&cause)),
                    "remove it by hand, or leave out --remove-leftovers",
                ));
            }
        }
    }
    Ok(())
}

/// Asks, if there is a user to ask.
fn agrees(count: usize) -> bool {
    let what = if count == 1 { "it" } else { "them" };
    output::ask(&format!("remove {what}?")).unwrap_or(false)
}
