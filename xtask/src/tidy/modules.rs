//! The modules of a crate, with what each defines, imports and names, so that a rule can find the
//! module that a path leads to. Tests are left out: they may use any module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The place of a module in its crate, from the root. It is empty for the root itself.
pub type ModulePath = Vec<String>;

/// One module, in a file or between braces.
#[derive(Default)]
pub struct Module {
    /// Its file.
    pub file: PathBuf,
    /// The names of the items that are defined here.
    pub items: BTreeSet<String>,
    /// The types among them, with their lines, including those within functions.
    pub types: Vec<(String, usize)>,
    /// The paths in it, as they are written.
    pub references: Vec<Reference>,
    /// Imported names, with the paths that they refer to.
    pub imports: BTreeMap<String, Vec<String>>,
    /// The paths of glob imports.
    pub globs: Vec<Vec<String>>,
}

/// A path as it is written in some module.
pub struct Reference {
    /// The line in the file.
    pub line: usize,
    /// Its segments.
    pub path: Vec<String>,
}

/// All modules of a crate.
#[derive(Default)]
pub struct Tree {
    /// By their paths.
    pub modules: BTreeMap<ModulePath, Module>,
}

/// The maximum length of a chain of imports. Chains in our crates are much shorter.
const IMPORTS_MAX: usize = 16;

impl Tree {
    /// The module that defines what a path names, if it is in this crate. A re-exported item counts
    /// at its origin, so a re-export hides nothing.
    pub fn defines(&self, from: &[String], path: &[String]) -> Option<ModulePath> {
        self.resolve(from, path, 0)
    }

    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        if depth > IMPORTS_MAX {
            return None;
        }
        let first = path.first()?;
        match first.as_str() {
            "crate" => self.walk(Vec::new(), &path[1..], depth),
            "self" => self.walk(from.to_vec(), &path[1..], depth),
            "super" => {
                let ups = path.iter().take_while(|segment| *segment == "super").count();
                let above = from.len().checked_sub(ups)?;
                self.walk(from[..above].to_vec(), &path[ups..], depth)
            }
            // An unknown name belongs to another crate or to the prelude.
            name if self.has(from, name, depth) => self.walk(from.to_vec(), path, depth),
            _ => None,
        }
    }

    /// Whether a name means something in a module.
    fn has(&self, module: &[String], name: &str, depth: usize) -> bool {
        let Some(found) = self.modules.get(module) else { return false };
        self.child(module, name).is_some()
            || found.items.contains(name)
            || found.imports.contains_key(name)
            || self.glob_with(module, name, depth).is_some()
    }

    fn child(&self, module: &[String], name: &str) -> Option<ModulePath> {
        let path = [module, &[name.to_owned()]].concat();
        self.modules.contains_key(&path).then_some(path)
    }

    /// The module whose glob import brings this name.
    fn glob_with(&self, module: &[String], name: &str, depth: usize) -> Option<ModulePath> {
        let globs = &self.modules.get(module)?.globs;
        globs.iter().find_map(|glob| {
            let target = self.resolve(module, glob, depth + 1)?;
            (target != module && self.has(&target, name, depth + 1)).then_some(target)
        })
    }

    /// Follows the rest of a path, starting at a module.
    fn walk(&self, start: ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let mut module = start;
        for (index, name) in path.iter().enumerate() {
            let rest = &path[index + 1..];
            if let Some(child) = self.child(&module, name) {
                module = child;
            } else if let Some(import) = self.modules.get(&module)?.imports.get(name) {
                let whole = [import.as_slice(), rest].concat();
                return self.resolve(&module, &whole, depth + 1).or(Some(module));
            } else if let Some(other) = self.glob_with(&module, name, depth) {
                return self.walk(other, &path[index..], depth + 1);
            } else {
                break;
            }
        }
        Some(module)
    }
}

/// The folder of the files of child modules: the folder of `mod.rs` or of the crate's root, or
/// otherwise the folder with the file's name.
pub fn folder_of_children(file: &Path) -> PathBuf {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match ["mod", "lib", "main"].contains(&stem) {
        true => file.parent().unwrap_or(Path::new("")).to_path_buf(),
        false => file.with_extension(""),
    }
}
