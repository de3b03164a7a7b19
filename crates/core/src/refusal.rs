//! What fathom refuses, in the words that its user reads.
//!
//! Every refusal names the thing, the problem and the remedy. What only the authors can mend is no
//! refusal: it is an assertion.

use std::fmt;

/// What is wrong with something that a user can mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The thing, as the user named it: an option with its value, a target, a file.
    pub about: String,
    /// What is wrong with it: a clause that reads well after the thing and a colon.
    pub problem: String,
    /// What to do: an imperative.
    pub remedy: String,
    /// Which kind of thing it is, which decides the exit code.
    pub kind: RefusalKind,
}

/// Which kind of thing is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// What was asked for: an option, or a key of a file. Nothing was touched.
    Usage,
    /// A target, or what the load needs of this machine.
    Denied,
    /// A file that is read or written for the user: a result, a report.
    File,
}

impl Refusal {
    /// An option or a key that cannot be as it is.
    pub fn usage(
        about: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(RefusalKind::Usage, about.into(), problem.into(), remedy.into())
    }

    /// A target, or a part of this machine, that cannot be used.
    pub fn denied(
        about: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(RefusalKind::Denied, about.into(), problem.into(), remedy.into())
    }

    /// A file that cannot be read or written.
    pub fn file(
        about: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(RefusalKind::File, about.into(), problem.into(), remedy.into())
    }

    fn new(kind: RefusalKind, about: String, problem: String, remedy: String) -> Self {
        Self { about, problem, remedy, kind }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.about, self.problem, self.remedy)
    }
}

impl std::error::Error for Refusal {}
