//! Other tools' ways to describe a load, so that scripts for them keep working.
//!
//! Each dialect reads the typed words into a model in its own terms, with its own defaults and its
//! own refusals, and prints that model again. Their common part is here: notes about the
//! differences, refusals of descriptions, and the other system's paths. A dialect opens no target,
//! and knows neither the engine nor the clock: it gets facts from them as arguments.

pub mod diskspd;
pub mod paths;

use std::fmt;

/// Something that users should know before they compare with the other tool: a difference, an
/// option without effect, a probable mistake. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(pub String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Notes, without repetition: a note that applies to every target appears once.
#[derive(Debug, Default)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// Adds a note unless it exists.
    pub fn add(&mut self, text: impl Into<String>) {
        let note = Note(text.into());
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// All of them, in the order in which they were added.
    pub fn into_vec(self) -> Vec<Note> {
        self.0
    }
}
