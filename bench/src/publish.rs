//! Prints the result of a bench with the machine that it ran on. Writes it into docs/performance.md
//! between the marks of that bench, so that no published figure is typed by hand.

use std::fs;
use std::path::Path;

use crate::peers::{load_average, output_of};

/// The page with the tables, relative to the root.
const PAGE: &str = "docs/performance.md";

/// A bench: its name in the command and in the marks, and the function that makes its table.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// The argument after `cargo run --release -p fathom-bench --`.
    pub name: &'static str,
    /// Returns its table in Markdown.
    pub run: fn() -> Result<String, String>,
}

/// Runs benches one after the other. The others still run if one cannot.
///
/// # Errors
///
/// When a bench cannot run, or the page has no marks for its table.
pub fn run(benches: &[Bench], root: &Path, write: bool) -> Result<(), String> {
    let mut failures = Vec::new();
    for bench in benches {
        let before = load_average();
        let outcome = (bench.run)().and_then(|table| {
            let text = format!("{}\n\n{}", setting(&before), table.trim_end());
            println!("{text}\n");
            match write {
                true => rewrite(&root.join(PAGE), bench.name, &text),
                false => Ok(()),
            }
        });
        if let Err(why) = outcome {
            failures.push(format!("bench {}: {why}", bench.name));
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// The date, the machine and its load.
fn setting(load_before: &str) -> String {
    let host = fathom_engine::host::host();
    let day = output_of("date", &["-u", "+%Y-%m-%d"]).unwrap_or_default();
    format!(
        "Measured on {}: {} ({} CPUs, {} of memory, {}), Linux {}; fathom {}; load average \
         {load_before} before and {} after.",
        day.trim(),
        host.cpu_model.as_deref().unwrap_or("unknown CPU"),
        host.cpus,
        host.memory,
        host.virtualization.as_deref().unwrap_or("no hypervisor"),
        host.kernel,
        env!("CARGO_PKG_VERSION"),
        load_average(),
    )
}

fn rewrite(page: &Path, name: &str, text: &str) -> Result<(), String> {
    let context = |error: std::io::Error| format!("{}: {error}", page.display());
    let old = fs::read_to_string(page).map_err(context)?;
    fs::write(page, put(&old, name, text)?).map_err(context)
}

/// The page with `text` in place of the old text between the marks of the bench `name`.
fn put(page: &str, name: &str, text: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- bench {name} -->\n"), format!("<!-- end of {name} -->"));
    let parts = page.split_once(&begin).and_then(|(ahead, rest)| {
        let (_, behind) = rest.split_once(&end)?;
        Some((ahead, behind))
    });
    match parts {
        Some((ahead, behind)) => Ok(format!("{ahead}{begin}{text}\n{end}{behind}")),
        None => Err(format!("{PAGE} has no place for it: it lacks {begin}{end}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_of_its_name_alone() {
        let page =
            "a\n<!-- bench x -->\nold\n<!-- end of x -->\nb\n<!-- bench y -->\n<!-- end of y -->\n";
        let new = put(page, "x", "new").expect("there is a place");
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(put(&new, "x", "new").as_ref(), Ok(&new));
        assert!(put(page, "z", "new").is_err());
    }

    #[test]
    fn the_page_has_a_place_for_every_bench() {
        let page = fs::read_to_string(crate::root().join(PAGE)).unwrap_or_default();
        for bench in crate::BENCHES {
            put(&page, bench.name, "").expect("there is a place");
        }
    }

    #[test]
    fn the_machine_is_named() {
        let text = setting("1.00");
        assert!(text.contains("Linux ") && text.contains("load average 1.00 before"), "{text}");
    }
}
