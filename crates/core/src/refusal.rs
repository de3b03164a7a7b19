//! What fathom refuses, in the words that its user reads.
//!
//! Every refusal names the thing, the problem and the remedy. A problem that only the authors can
//! fix is not a refusal: it is an assertion.

use std::fmt;

/// A problem that the user can fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The thing, as the user named it: an option with its value, a target, a file.
    pub about: String,
    /// The problem: a clause that reads well after the thing and a colon.
    pub problem: String,
    /// The remedy: an imperative.
    pub remedy: String,
    /// The kind of the thing, which decides the exit code.
    pub kind: RefusalKind,
}

/// The kind of thing that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request: an option, or a key of a file. No target was touched.
    Usage,
    /// A target, or a resource of this machine that the load needs.
    Denied,
    /// A file that is read or written for the user: a result, a report.
    File,
}

impl Refusal {
    /// An option or a key with a value that cannot be used.
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
