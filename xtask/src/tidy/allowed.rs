//! What the rules of the house do not hold for yet. These lists can only shrink: what is no longer
//! needed is a finding, too.

/// A circle of modules that is still there.
pub struct Circle {
    /// The crate, by its folder.
    pub krate: &'static str,
    /// The modules that lead to each other, each with its path from the crate's root.
    pub modules: &'static [&'static str],
}

impl Circle {
    /// Whether a module is one of them.
    pub fn has(&self, module: &str) -> bool {
        self.modules.contains(&module)
    }
}

/// A name that several types of a crate still have.
pub struct Twice {
    /// The crate, by its folder.
    pub krate: &'static str,
    /// The name.
    pub name: &'static str,
    /// How many types have it.
    pub times: usize,
}

/// The circles that are left.
pub const CIRCLES: &[Circle] = &[];

/// The names that are left.
pub const TWICE: &[Twice] = &[];
