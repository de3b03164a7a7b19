//! Other tools' ways to describe a load, so that scripts written for them go on working.
//!
//! Each dialect reads what was typed into a model in its own terms, with its own defaults and its
//! own refusals, and prints that model again. What they share is here: what is told about the
//! differences, how a description is refused, and where the other system's paths are on this one.
//! A dialect opens no target, and knows neither the engine nor the clock: what it needs of them
//! comes in as arguments.

pub mod diskspd;
pub mod paths;

use std::fmt;

/// Something that users should know before they compare with the other tool: what is done
/// otherwise than there, what has no effect, what is probably not what was meant. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(pub String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Notes, each of them once: what holds for every target need not be said for each of them.
#[derive(Debug, Default)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// Adds a note that is not there yet.
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
