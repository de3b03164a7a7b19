//! Rules for the documents: their links lead to a file or a heading of the repository, the files
//! that they name exist, every page is in the list of all pages, and the pages that comments name
//! exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Broken;

/// The page that lists all pages below its folder.
const LIST: &str = "docs/README.md";

/// The beginnings of the repository's paths that a page names as code.
const ROOMS: [&str; 7] = ["bench/", "crates/", "docs/", "examples/", "fuzz/", "tests/", "xtask/"];

/// All files of the repository, and the headings of the Markdown files.
pub(super) struct Pages {
    all: BTreeSet<PathBuf>,
    headings: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl Pages {
    /// Reads the headings of every page.
    pub(super) fn read(root: &Path, files: &[PathBuf]) -> io::Result<Self> {
        let mut headings = BTreeMap::new();
        for path in files.iter().filter(|path| is_page(path)) {
            headings.insert(path.clone(), anchors(&fs::read_to_string(root.join(path))?));
        }
        Ok(Self { all: files.iter().cloned().collect(), headings })
    }

    /// Links of a page that lead nowhere, and pages that are missing in the list of all pages.
    pub(super) fn rules(&self, path: &Path, text: &str) -> Broken {
        let mut broken = self.broken_links(path, text);
        broken.extend(without_consent(text));
        if !tells_of_the_past(path) {
            broken.extend(self.gone(text));
        }
        if path == Path::new(LIST) {
            broken.extend(self.unlisted(text));
        }
        broken
    }

    fn broken_links(&self, path: &Path, text: &str) -> Broken {
        let mut broken = Vec::new();
        for (line, link) in links(text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = target_of(path, file);
            let exists = self.all.contains(&target)
                || target.as_os_str().is_empty()
                || self.all.iter().any(|known| known.starts_with(&target));
            let headings = self.headings.get(&target);
            if !exists {
                broken.push((line, format!("the link to {link} leads nowhere")));
            } else if !heading.is_empty() && !headings.is_some_and(|all| all.contains(heading)) {
                broken.push((line, format!("the link to {link} names no heading there")));
            }
        }
        broken
    }

    /// Files and folders of the repository that a page names as code and that do not exist.
    fn gone(&self, text: &str) -> Broken {
        let mut broken = Vec::new();
        for (line, prose) in prose(text) {
            // Every second piece between backquotes is code.
            for span in prose.split('`').skip(1).step_by(2) {
                let is_name = |c: char| c.is_ascii_alphanumeric() || "/-_.{},".contains(c);
                let is_path = ROOMS.iter().any(|room| span.starts_with(room))
                    && span.chars().all(is_name)
                    && !span.contains("NAME");
                let missing = alternatives(span).into_iter().find(|one| !self.holds(one));
                if let Some(missing) = missing.filter(|_| is_path) {
                    broken.push((line, format!("{missing} does not exist")));
                }
            }
        }
        broken
    }

    /// Whether this file exists, or a folder with a file in it.
    fn holds(&self, path: &str) -> bool {
        self.all.iter().any(|known| known.starts_with(path))
    }

    /// Pages below the list's folder that are not linked in it.
    fn unlisted(&self, text: &str) -> Broken {
        let list = Path::new(LIST);
        let listed: BTreeSet<PathBuf> =
            links(text).iter().map(|(_, link)| target_of(list, link)).collect();
        let below = |path: &&PathBuf| path.starts_with("docs") && path.as_path() != list;
        self.headings
            .keys()
            .filter(below)
            .filter(|path| !listed.contains(*path))
            .map(|path| (1, format!("{} is missing in the list of all pages", path.display())))
            .collect()
    }

    /// Pages below `docs` that comments name and that do not exist.
    pub(super) fn unknown(&self, code: &str) -> Broken {
        let mut broken = Vec::new();
        let is_comment = |(_, line): &(usize, &str)| line.trim_start().starts_with("//");
        for (index, line) in code.lines().enumerate().filter(is_comment) {
            for (at, _) in line.match_indices("docs/") {
                let is_name = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
                let rest = &line[at..];
                let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
                let Some((page, _)) = name.split_once(".md") else { continue };
                let page = format!("{page}.md");
                if !self.all.contains(Path::new(&page)) {
                    broken.push((index + 1, format!("{page} does not exist")));
                }
            }
        }
        broken
    }
}

/// Commands that would write to a device with the consent for a file, and would be refused.
fn without_consent(text: &str) -> Broken {
    let is_refused = |line: &str| {
        line.starts_with("fathom ") && line.contains(" /dev/") && line.contains(" --overwrite")
    };
    let lines = text.lines().zip(1..).filter(|(line, _)| is_refused(line));
    lines.map(|(_, line)| (line, "a device is written to with --destroy NAME".into())).collect()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Whether a page describes decisions or changes of the past, with the names of that time.
fn tells_of_the_past(page: &Path) -> bool {
    page.starts_with("docs/adr") || page == Path::new("CHANGELOG.md")
}

/// The paths that `a/{b,c}.rs` stands for.
fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (choice, after))) => {
            choice.split(',').map(|one| format!("{before}{one}{after}")).collect()
        }
        None => Vec::from([path.to_owned()]),
    }
}

/// The file that a link of a page leads to, or the page itself if the link names no file.
fn target_of(page: &Path, link: &str) -> PathBuf {
    let file = link.split('#').next().unwrap_or("");
    if file.is_empty() {
        return page.to_path_buf();
    }
    normal(page.parent().unwrap_or(Path::new("")), file)
}

/// The relative links outside of code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, prose) in prose(text) {
        // Every second piece between backquotes is code.
        let prose: String = prose.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        for (at, _) in prose.match_indices("](") {
            let target = prose[at + 2..].split([')', ' ']).next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                links.push((line, target.to_owned()));
            }
        }
    }
    links
}

/// The lines outside of fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((number, line))
    })
}

/// The anchors of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// `folder/link` without `.` and `..`. A link out of the repository keeps its `..` and is not
/// found.
fn normal(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_path_buf();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if !path.pop() {
                    path.push("..");
                }
            }
            part => path.push(part),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(of: &[(&str, &str)]) -> Pages {
        let all = of.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let headings = of.iter().map(|(path, text)| (PathBuf::from(path), anchors(text))).collect();
        Pages { all, headings }
    }

    #[test]
    fn links_lead_somewhere() {
        let page = "# What it is\n[a](#what-it-is) [b](#nothing)";
        let pages = pages(&[("README.md", page), ("docs/adr/1.md", "# One\n```\n# two\n```")]);
        let broken = |path: &str, text: &str| pages.rules(Path::new(path), text).len();
        assert_eq!(broken("README.md", "[a](docs/adr/1.md) [b](https://x.y/z) [c](docs/)"), 0);
        assert_eq!(broken("docs/adr/1.md", "[a](../../README.md#what-it-is)"), 0);
        assert_eq!(broken("docs/adr/1.md", "[a](../../README.md#what)"), 1);
        assert_eq!(broken("README.md", "[a](docs/adr/1.md#one) [b](docs/adr/1.md#two)"), 1);
        assert_eq!(broken("README.md", "[a](docs/adr/2.md)"), 1);
        assert_eq!(broken("README.md", "`[a](no.md)`\n```\n[a](no.md)\n```"), 0);
        assert_eq!(broken("README.md", page), 1);
        assert_eq!(broken("README.md", "[a](../outside.md)"), 1);
    }

    #[test]
    fn commands_consent_to_writing_to_a_device() {
        assert_eq!(without_consent("fathom run oltp /dev/sdb --destroy /dev/sdb\n--overwrite"), []);
        assert_eq!(without_consent("fathom run oltp test.dat --overwrite"), []);
        assert_eq!(without_consent("x\nfathom run oltp /dev/sdb --overwrite").len(), 1);
    }

    #[test]
    fn every_page_is_listed() {
        let pages = pages(&[("README.md", ""), (LIST, ""), ("docs/a.md", ""), ("docs/b/c.md", "")]);
        let missing = |text: &str| pages.rules(Path::new(LIST), text).len();
        assert_eq!(missing("[a](a.md)\n[c](b/c.md#x)"), 1);
        assert_eq!(missing("[a](a.md)\n[c](b/c.md)"), 0);
        assert_eq!(missing("[a](a.md)"), 1);
        assert_eq!(missing("nothing"), 2);
        assert_eq!(pages.rules(Path::new("README.md"), "nothing").len(), 0);
    }

    #[test]
    fn pages_name_files_that_exist() {
        let pages = pages(&[("crates/a/src/b.rs", ""), ("crates/a/src/c/mod.rs", "")]);
        let broken = |page: &str, text: &str| pages.rules(Path::new(page), text).len();
        assert_eq!(broken("README.md", "`crates/a/src/b.rs`, `crates/a/src/c/` and `crates/a`"), 0);
        assert_eq!(broken("README.md", "| `crates/a/src/{b,d}.rs` |"), 1);
        assert_eq!(
            broken("README.md", "`crates/a/src/NAME.rs`, `crates/no such`, `no/path.rs`"),
            0
        );
        assert_eq!(broken("README.md", "`crates/a/src/d.rs`"), 1);
        assert_eq!(broken("docs/adr/1.md", "`crates/a/src/d.rs`"), 0);
    }

    #[test]
    fn comments_name_pages_that_exist() {
        let pages = pages(&[("docs/a.md", "")]);
        assert_eq!(pages.unknown("//! docs/a.md.\n// (docs/a.md, docs/schema/x.json)"), []);
        assert_eq!(
            pages.unknown("//! x\n// docs/no.md"),
            [(2, "docs/no.md does not exist".into())]
        );
    }
}
