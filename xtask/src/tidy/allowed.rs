//! The exceptions to the rules of the house. These lists can only shrink: an exception that is no
//! longer needed is a finding, too.

/// A circle of modules that still exists.
pub struct Circle {
    /// The crate, by its folder.
    pub krate: &'static str,
    /// The modules that lead to each other, each with its path from the crate's root.
    pub modules: &'static [&'static str],
}

impl Circle {
    /// Whether a module belongs to the circle.
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
    /// The number of types with this name.
    pub times: usize,
}

/// The remaining circles.
pub const CIRCLES: &[Circle] = &[];

/// The remaining names.
pub const TWICE: &[Twice] = &[];
