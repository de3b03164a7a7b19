//! The rules for the structure of a crate: modules form no circle, the name of a type is defined
//! once, and a module with children is always written in the same kind of file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Finding;
use super::modules::Tree;
use super::parse;

/// Every violation of these rules in the crates among the repository's files.
pub fn check(root: &Path, files: &[PathBuf]) -> io::Result<Vec<Finding>> {
    let mut findings = beside_folders(files);
    for file in files.iter().filter(|file| is_root_of_crate(file)) {
        let tree = parse::crate_at(root, file)?;
        let circle = |found| Finding { path: file.clone(), line: 1, rule: in_words(&found) };
        findings.extend(circles_of(&tree).into_iter().map(circle));
        findings.extend(types_twice(&tree));
    }
    Ok(findings)
}

fn is_root_of_crate(file: &Path) -> bool {
    file.ends_with("src/lib.rs") || file.ends_with("src/main.rs")
}

/// Module files that lie beside the folder of their children. The file has to be `mod.rs` in that
/// folder, because modules that integration tests share can only be there.
fn beside_folders(files: &[PathBuf]) -> Vec<Finding> {
    let all: BTreeSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    let sources = files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "rs"));
    let folders: BTreeSet<&Path> = sources.filter_map(|file| file.parent()).collect();
    let beside = folders.iter().map(|folder| folder.with_extension("rs"));
    let rule = |path: PathBuf| {
        let rule = format!("move it to {}", path.with_extension("").join("mod.rs").display());
        Finding { path, line: 1, rule }
    };
    beside.filter(|file| all.contains(file.as_path())).map(rule).collect()
}

/// A name in one module that refers to another module of the same level: the place and the name.
struct Edge {
    to: String,
    file: PathBuf,
    line: usize,
    named: String,
}

/// Sibling modules that all lead to each other, with the references between them.
struct Found {
    members: BTreeSet<String>,
    edges: BTreeMap<String, Vec<Edge>>,
}

/// All circles of a crate, at every level of its modules. References in a module's children count
/// as its own.
fn circles_of(tree: &Tree) -> Vec<Found> {
    let mut levels: BTreeMap<&[String], BTreeMap<String, Vec<Edge>>> = BTreeMap::new();
    for (from, module) in &tree.modules {
        for reference in &module.references {
            let Some(to) = tree.defines(from, &reference.path) else { continue };
            let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            if from.len() == shared || to.len() == shared {
                continue;
            }
            let edge = Edge {
                to: full_name(&to[..=shared]),
                file: module.file.clone(),
                line: reference.line,
                named: reference.path.join("::"),
            };
            let level = levels.entry(&from[..shared]).or_default();
            let edges = level.entry(full_name(&from[..=shared])).or_default();
            edges.push(edge);
        }
    }
    levels.into_values().flat_map(circles_of_level).collect()
}

fn full_name(path: &[String]) -> String {
    path.join("::")
}

fn circles_of_level(edges: BTreeMap<String, Vec<Edge>>) -> Vec<Found> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|from| (from.as_str(), reached_from(from, &edges))).collect();
    let mut circles: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (from, all) in &reached {
        let returns = |to: &&&str| reached.get(**to).is_some_and(|back| back.contains(from));
        let members: BTreeSet<String> =
            all.iter().filter(returns).map(|&to| to.to_owned()).collect();
        if members.len() > 1 {
            circles.insert(members);
        }
    }
    let mut left = edges;
    circles.into_iter().map(|members| within(members, &mut left)).collect()
}

/// Every module that one leads to, directly or through others.
fn reached_from<'e>(from: &'e str, edges: &'e BTreeMap<String, Vec<Edge>>) -> BTreeSet<&'e str> {
    let mut reached = BTreeSet::new();
    let mut left = Vec::from([from]);
    while let Some(next) = left.pop() {
        for edge in edges.get(next).into_iter().flatten() {
            if reached.insert(edge.to.as_str()) {
                left.push(&edge.to);
            }
        }
    }
    reached
}

/// A circle with the edges between its members.
fn within(members: BTreeSet<String>, left: &mut BTreeMap<String, Vec<Edge>>) -> Found {
    let mut edges = BTreeMap::new();
    for member in &members {
        let mut of_member = left.remove(member).unwrap_or_default();
        of_member.retain(|edge| members.contains(&edge.to));
        edges.insert(member.clone(), of_member);
    }
    Found { members, edges }
}

/// A circle with the names that make it one. Each name appears once.
fn in_words(circle: &Found) -> String {
    let members: Vec<&str> = circle.members.iter().map(String::as_str).collect();
    let mut lines = Vec::from([format!("a circle of modules: {}", members.join(", "))]);
    for (from, edges) in &circle.edges {
        let mut told = BTreeSet::new();
        for edge in edges {
            if told.insert((&edge.to, edge.named.rsplit("::").next())) {
                let (file, line) = (edge.file.display(), edge.line);
                lines.push(format!("{from} -> {}: {} at {file}:{line}", edge.to, edge.named));
            }
        }
    }
    lines.join("\n    ")
}

/// Names that several types of a crate have.
fn types_twice(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<(&Path, usize)>> = BTreeMap::new();
    for module in tree.modules.values() {
        for (name, line) in &module.types {
            places.entry(name).or_default().push((&module.file, *line));
        }
    }
    let several = places.into_iter().filter(|(_, places)| places.len() > 1);
    let finding = |(name, places): (&str, Vec<(&Path, usize)>)| {
        let (first, line) = places[0];
        let others = places[1..].iter().map(|(file, line)| format!("{}:{line}", file.display()));
        let others = others.collect::<Vec<_>>().join(", ");
        let rule = format!("`{name}` is defined at {others} as well: one name, one meaning");
        Finding { path: first.to_path_buf(), line, rule }
    };
    several.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::modules::ModulePath;

    /// A crate of these files, each with the path of its module.
    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            let segments = path.split("::").filter(|name| !name.is_empty()).map(str::to_owned);
            let path: ModulePath = segments.collect();
            parse::add_file(&mut tree, path, Path::new("x.rs"), text).expect("it is Rust");
        }
        tree
    }

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let found = circles_of(&tree(files));
        let members = |circle: &Found| circle.members.iter().cloned().collect::<Vec<_>>().join(" ");
        found.iter().map(members).collect()
    }

    #[test]
    fn modules_that_name_each_other_are_a_circle_at_their_level() {
        let one_way = [("", "mod a; mod b;"), ("a", "use crate::b::B;"), ("b", "struct B;")];
        assert_eq!(circles(&one_way), [""; 0]);
        let both =
            [("", "mod a; mod b;"), ("a", "use crate::b::B; struct A;"), ("b", "use super::a;")];
        assert_eq!(circles(&both), ["a b"]);
        let below = [
            ("a", ""),
            ("a::c", "fn c() { super::d::d(); }"),
            ("a::d", "pub fn d() { crate::a::c::c(); crate::b::b(); }"),
            ("b", "fn b() -> crate::a::c::C {}"),
        ];
        assert_eq!(circles(&below), ["a b", "a::c a::d"]);
        let three =
            [("a", "use crate::b;"), ("b", "use crate::c::{self};"), ("c", "use crate::a as x;")];
        assert_eq!(circles(&three), ["a b c"]);
    }

    #[test]
    fn parents_and_children_may_name_each_other() {
        let family =
            [("a", "use self::b::B; struct A; const X: B = b::X;"), ("a::b", "use super::A;")];
        assert_eq!(circles(&family), [""; 0]);
    }

    #[test]
    fn a_re_export_counts_where_the_thing_is_defined() {
        let by_parent = [
            ("s", "mod k; mod p; pub use k::Kind; pub use p::*;"),
            ("s::k", "use super::Pattern; pub struct Kind;"),
            ("s::p", "fn f(_: crate::s::Kind) {} pub struct Pattern;"),
        ];
        assert_eq!(circles(&by_parent), ["s::k s::p"]);
        let by_sibling =
            [("a", "pub use crate::b::B;"), ("b", "struct B;"), ("c", "use crate::a::B;")];
        assert_eq!(circles(&by_sibling), [""; 0]);
    }

    #[test]
    fn what_macros_are_given_counts_and_tests_do_not() {
        let of_macro = |text: &'static str| circles(&[("a", text), ("b", "use crate::a;")]);
        assert_eq!(of_macro("fn a() { print!(\"{}\", crate::b::X); }"), ["a b"]);
        assert_eq!(of_macro("use crate::b as other; fn a() { vec![1, (other::X)] }"), ["a b"]);
        assert_eq!(of_macro("fn a() { vec![crate, b] }"), [""; 0]);
        assert_eq!(of_macro("#[cfg(test)] mod tests { use crate::b; }"), [""; 0]);
        assert_eq!(of_macro("#[cfg(test)] use crate::b; #[cfg(test)] fn a() { b::x() }"), [""; 0]);
    }

    #[test]
    fn a_circle_is_told_with_the_names_that_make_it() {
        let found = circles_of(&tree(&[("a", "use crate::b;"), ("b", "use crate::a;")]));
        let text = in_words(&found[0]);
        assert!(text.contains("a -> b: crate::b at x.rs:1"), "{text}");
    }

    #[test]
    fn a_name_is_for_one_type() {
        let found = types_twice(&tree(&[
            ("a", "struct A; fn f() { enum B {} } #[cfg(test)] mod tests { struct A; }"),
            ("b", "mod c { trait A {} } type A = u8; impl Iterator for X { type Item = u8; }"),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].rule.starts_with("`A` is defined at x.rs:1, x.rs:1 as well"), "{found:?}");
    }

    #[test]
    fn a_module_with_children_is_called_mod() {
        let moved = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            beside_folders(&files).len()
        };
        assert_eq!(moved(&["src/a/mod.rs", "src/a/b.rs", "src/c.rs"]), 0);
        assert_eq!(moved(&["src/a.rs", "src/a/b.rs"]), 1);
        assert_eq!(moved(&["tests/a.rs", "tests/a/data.json"]), 0);
    }
}
