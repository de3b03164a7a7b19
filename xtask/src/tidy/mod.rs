//! The rules of STYLE.md that neither the compiler nor clippy can check. A rule that is not checked
//! is advice. This also runs as a test (`cargo test -p xtask`), so it cannot be forgotten.

mod english;
mod house;
mod modules;
mod pages;
mod parse;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::source::{code_only, words};
use english::unclear;
use pages::Pages;

/// A violation of a rule, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    path: PathBuf,
    line: usize,
    rule: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.rule)
    }
}

/// `fathom-core` is pure: the host, time and chance come in as arguments (invariant 1).
const BANNED_IN_CORE: [&str; 6] = ["time", "fs", "env", "net", "process", "thread"];

/// The files with system calls that no safe crate offers (invariant 2), and the tests that replace
/// the allocator to count. A path ending in `/` is a folder.
const UNSAFE_ALLOWED: [&str; 15] = [
    "crates/engine/src/uring",
    "crates/engine/src/aio",
    "crates/engine/src/sync",
    "crates/engine/src/buffers",
    "crates/engine/src/memory.rs",
    "crates/engine/src/watch/buffer.rs",
    "crates/engine/src/clock",
    "crates/engine/src/realtime",
    "crates/engine/src/workplace",
    "crates/engine/src/worker/estate",
    "crates/engine/src/found/generation",
    "crates/engine/src/host/",
    "crates/engine/tests/",
    "crates/fathom/tests/foreign_bytes.rs",
    "bench/src/bare_loop.rs",
];

/// The one place of the program through which all output passes. It removes everything that would
/// control a terminal.
const PRINTS: &str = "crates/fathom/src/output.rs";

/// Only the program and the tests write to the terminal. Everything else returns values.
const PRINTING_ALLOWED: [&str; 4] = ["crates/fathom/", "bench/", "xtask/", "tests/"];

/// Every violation of a rule below the repository's root, in the order of the paths.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    let mut files = Vec::new();
    list(root, Path::new(""), &mut files)?;
    files.sort();
    let pages = Pages::read(root, &files)?;
    let mut findings = Vec::new();
    for path in &files {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_manifest = path.file_name().is_some_and(|name| name == "Cargo.toml");
        if extension != Some("rs") && extension != Some("md") && !is_manifest {
            continue;
        }
        let text = fs::read_to_string(root.join(path))?;
        let rules = match extension {
            Some("rs") => {
                [rust_rules(path, &text), pages.unknown(&text), unclear(path, &text)].concat()
            }
            Some("md") => [pages.rules(path, &text), unclear(path, &text)].concat(),
            _ => unexplained_dependencies(&text),
        };
        findings.extend(rules.into_iter().map(|(line, rule)| Finding {
            path: path.clone(),
            line,
            rule,
        }));
    }
    findings.extend(house::check(root, &files)?);
    findings.extend(changelog(root)?);
    findings.extend(lies(root)?);
    Ok(findings)
}

/// Every file below a folder that could be ours, without those of Git and cargo.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = folder.join(&name);
        // A module may be called target.
        let is_built = name == "target" && !folder.ends_with("src");
        let hidden_or_built = is_built || name == ".git" || name == "node_modules";
        if entry.file_type()?.is_dir() {
            if !hidden_or_built {
                list(root, &path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

type Broken = Vec<(usize, String)>;

fn under(path: &Path, prefixes: &[&str]) -> bool {
    let text = path.to_string_lossy();
    prefixes.iter().any(|prefix| text.starts_with(prefix))
}

fn rust_rules(path: &Path, text: &str) -> Broken {
    let code = code_only(text);
    let mut broken = Vec::new();
    if !text.starts_with("//!") {
        broken.push((1, "a file begins with `//!` and says why it exists".to_owned()));
    }
    for (line, word) in words(&code) {
        if word.to_lowercase().contains("latency") {
            broken.push((line, format!("`{word}`: say service time or response time")));
        }
        if word == "unsafe" && !under(path, &UNSAFE_ALLOWED) {
            broken.push((line, "`unsafe` belongs into the real backends only".to_owned()));
        }
    }
    let mut in_tests = path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs");
    for (index, line) in code.lines().enumerate() {
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        // Tests are at the end of a file.
        in_tests |= compact == "#[cfg(test)]";
        for rule in line_rules(path, &compact, in_tests) {
            broken.push((index + 1, rule));
        }
    }
    if under(path, &["crates/core/src/"]) {
        broken.extend(impure(&code));
    }
    broken
}

/// The violations in one line of code without spaces.
fn line_rules(path: &Path, line: &str, in_tests: bool) -> Vec<String> {
    let mut rules = Vec::new();
    let prints = ["print!(", "println!(", "eprint!(", "eprintln!("];
    let may_print = in_tests || under(path, &PRINTING_ALLOWED);
    if !may_print && prints.iter().any(|macro_| line.contains(macro_)) {
        rules.push("only the program prints: return a value instead".to_owned());
    }
    let ways = ["print!(", "println!(", "stdout().", "stderr().lock", "write!(io::std"];
    let elsewhere = under(path, &["crates/fathom/src/"]) && !path.ends_with(PRINTS);
    let harmless = line.contains(".is_terminal()");
    if elsewhere && !in_tests && !harmless && ways.iter().any(|way| line.contains(way)) {
        rules.push("`output` prints: what steers a terminal does not pass it".to_owned());
    }
    for attribute in ["untagged", "flatten"] {
        if line.starts_with("#[serde(") && line.contains(attribute) {
            rules.push(format!("no serde({attribute}): its errors name nothing"));
        }
    }
    if line.contains("vec![]") {
        rules.push("`Vec::new()` rather than an empty `vec!`".to_owned());
    }
    rules
}

/// Every use of the host in the crate that must not know it, including `use std::{fs, io}`.
fn impure(code: &str) -> Broken {
    let mut broken = Vec::new();
    for (at, _) in code.match_indices("std::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + "std::".len()..];
        let used = match rest.strip_prefix('{') {
            Some(group) => group.split_once("};").map_or(group, |(group, _)| group),
            None => rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(""),
        };
        for item in used.split(',') {
            let name = item.trim().split("::").next().unwrap_or("").trim();
            if BANNED_IN_CORE.contains(&name) {
                broken.push((line, format!("`std::{name}` in core: hand it in as a value")));
            }
        }
    }
    broken
}

/// Dependencies without a comment above them that says what they save us. Our own crates need none,
/// and neither do those that the workspace's manifest explains.
fn unexplained_dependencies(text: &str) -> Broken {
    let mut broken = Vec::new();
    let (mut in_dependencies, mut above) = (false, "");
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            in_dependencies = section.trim_end_matches(']').ends_with("dependencies");
        } else if in_dependencies && line.contains('=') && !line.starts_with('#') {
            let ours = line.contains("workspace = true") || line.contains("path =");
            let name = line.split(['=', '.', ' ']).next().unwrap_or("");
            let explained = above.starts_with('#') && above.len() > "# a sentence".len();
            if !ours && !explained {
                let rule = format!("{name}: a sentence above it says what it saves us");
                broken.push((index + 1, rule));
            }
        }
        above = line;
    }
    broken
}

/// The current version has an entry in the changelog, with the section on whether numbers are
/// comparable.
fn changelog(root: &Path) -> io::Result<Option<Finding>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let version = manifest
        .split_once("[workspace.package]")
        .and_then(|(_, package)| package.split_once("version = \""))
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("", |(version, _)| version);
    let path = PathBuf::from("CHANGELOG.md");
    let text = match fs::read_to_string(root.join(&path)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let entry = text.split("\n## ").find(|entry| entry.contains(version) && entry.len() > 40);
    let rule = match entry {
        None => format!("version {version} has no entry"),
        Some(entry) if !entry.contains("### Measurement") => {
            format!("version {version} has no section Measurement: are its numbers comparable?")
        }
        Some(_) => return Ok(None),
    };
    Ok(Some(Finding { path, line: 1, rule }))
}

/// The page of the lies has exactly the rows of their table. The section that tries the lies writes
/// the page.
fn lies(root: &Path) -> io::Result<Vec<Finding>> {
    let paths = ["tests/lies/tables.sh", "docs/lies.md"];
    let mut texts = Vec::new();
    for path in paths {
        texts.push(match fs::read_to_string(root.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        });
    }
    let broken = untold(&texts[0], &texts[1]);
    let findings = paths.iter().zip(broken).flat_map(|(path, broken)| {
        let finding = move |(line, rule)| Finding { path: PathBuf::from(path), line, rule };
        broken.into_iter().map(finding)
    });
    Ok(findings.collect())
}

/// Rows of the table that the page lacks, and rows of the page that the table lacks.
fn untold(table: &str, page: &str) -> [Broken; 2] {
    let tried = rows(table, |line| {
        let (word, rest) = line.split_once(' ')?;
        let (name, truth) = rest.split_once(" \"")?;
        let is_row = ["lie", "truth", "from_guest"].contains(&word);
        is_row.then(|| (name, truth.split('"').next().unwrap_or_default()))
    });
    let told = rows(page, |line| {
        let (name, truth) = line.strip_prefix("| ")?.split_once(" | ")?;
        let is_row = !["lie", "run", "---"].contains(&name);
        is_row.then(|| (name, truth.split(" |").next().unwrap_or_default()))
    });
    let missing = |of: &Rows, there: &Rows, place: &str| {
        let missing = of.iter().filter(|(row, _)| !there.contains_key(*row));
        let rule = |((name, truth), line): (&(String, String), &usize)| {
            (
                *line,
                format!("`{name}` ({truth}) is not in {place}: FATHOM_LIES_WRITE=1 ./test lies"),
            )
        };
        missing.map(rule).collect()
    };
    [missing(&tried, &told, "docs/lies.md"), missing(&told, &tried, "tests/lies/tables.sh")]
}

/// Names with their descriptions, and their lines.
type Rows = BTreeMap<(String, String), usize>;

/// The lines that are rows.
fn rows<'t>(text: &'t str, row: impl Fn(&'t str) -> Option<(&'t str, &'t str)>) -> Rows {
    let rows = text.lines().zip(1..).filter_map(|(line, number)| Some((row(line)?, number)));
    rows.map(|((name, said), number)| ((name.to_owned(), said.to_owned()), number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lie_that_the_page_does_not_tell_is_found_and_one_that_nobody_tries() {
        let table = "lie one \"It lies\" \\\n  must=x\nlie two \"It lies too\"\n";
        let page = "| lie | what |\n| --- | --- |\n| one | It lies | `x` |\n| old | Gone | `x` |\n";
        let [tried, told] = untold(table, page);
        assert_eq!((tried.len(), tried[0].0, told.len(), told[0].0), (1, 3, 1, 4));
        assert!(tried[0].1.starts_with("`two` (It lies too) is not in docs/lies.md"), "{tried:?}");
        assert!(told[0].1.starts_with("`old` (Gone) is not in tests/lies/tables.sh"), "{told:?}");
        assert_eq!(untold("", ""), [Vec::new(), Vec::new()]);
    }

    fn rules(path: &str, text: &str) -> Vec<String> {
        rust_rules(Path::new(path), text)
            .into_iter()
            .map(|(line, rule)| format!("{line}: {rule}"))
            .collect()
    }

    #[test]
    fn the_repository_is_tidy() {
        let findings = check(&crate::root()).expect("the repository is readable");
        let text: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(text.is_empty(), "\n{}", text.join("\n"));
    }

    #[test]
    fn a_source_file_needs_a_header_and_good_words() {
        let path = "crates/engine/src/x.rs";
        assert!(rules(path, "//! Why.\nfn service_time() {}\n").is_empty());
        assert_eq!(rules(path, "fn f() {}").len(), 1);
        assert_eq!(rules(path, "//! Why.\nfn read_latency() {}").len(), 1);
        assert!(rules(path, "//! Why.\n// The latency.\nfn f() {}").is_empty());
        assert_eq!(rules(path, "//! Why.\nlet a: Vec<u8> = vec![ ];").len(), 1);
        assert_eq!(rules(path, "//! Why.\n#[serde(default, flatten)]").len(), 1);
    }

    #[test]
    fn only_the_program_prints_and_only_backends_are_unsafe() {
        let text = "//! Why.\nfn f() { println!(); }\nunsafe fn g() {}";
        assert_eq!(rules("crates/report/src/x.rs", text).len(), 2);
        assert_eq!(rules("crates/fathom/src/x.rs", text).len(), 2);
        assert_eq!(rules("crates/fathom/src/output.rs", text).len(), 1);
        assert_eq!(rules("crates/fathom/build.rs", text).len(), 1);
        let write = "//! Why.\nfn f() { write!(io::stderr(), \"\") }";
        assert_eq!(rules("crates/fathom/src/x.rs", write).len(), 1);
        assert_eq!(rules("crates/engine/src/uring.rs", text).len(), 1);
        let test = "//! Why.\n#[cfg(test)]\nmod tests { fn f() { println!(); } }";
        assert!(rules("crates/report/src/x.rs", test).is_empty());
    }

    #[test]
    fn core_is_pure() {
        let path = "crates/core/src/x.rs";
        assert!(rules(path, "//! Why.\nuse std::{fmt, ops::Add};\nuse std::iter;").is_empty());
        assert_eq!(rules(path, "//! Why.\nuse std::time::Instant;").len(), 1);
        assert_eq!(rules(path, "//! Why.\nuse std::{\n    fmt,\n    fs::File,\n};").len(), 1);
        assert!(rules("crates/engine/src/x.rs", "//! Why.\nuse std::fs;").is_empty());
    }

    #[test]
    fn dependencies_are_explained() {
        let explained = "[dependencies]\n# Saves us a parser of command lines.\nclap = \"4\"\n";
        assert!(unexplained_dependencies(explained).is_empty());
        assert!(unexplained_dependencies("[dependencies]\na.workspace = true\n").is_empty());
        assert_eq!(unexplained_dependencies("[dev-dependencies]\nclap = \"4\"\n").len(), 1);
        assert!(unexplained_dependencies("[profile.dev]\nopt-level = 1\n").is_empty());
    }
}
