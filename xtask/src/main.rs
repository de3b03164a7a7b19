//! The project's own tasks, in the project's language, so that they need no other programs: `cargo
//! xtask tidy | golden | schema | dist`.

mod dist;
mod source;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy     check the rules that neither the compiler nor clippy knows (also a test)
  golden   rewrite the stored outputs that the golden tests compare with; read the difference
  schema   write docs/schema/*.json from the types of the documents
  dist     build a static program into target/dist, or a FOLDER that is named after it, with
           manual pages, completions and checksums
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => run_tidy(),
        ["golden"] => golden(),
        ["schema"] => schema(),
        ["dist"] => dist::make(&root(), None),
        ["dist", folder] => dist::make(&root(), Some(Path::new(folder))),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(format!("no such command: {:?}\n\n{USAGE}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository from which this file was compiled.
fn root() -> PathBuf {
    match Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
        Some(parent) => parent.to_path_buf(),
        None => PathBuf::from("."),
    }
}

/// The cargo that runs this.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn run_tidy() -> Result<(), String> {
    let findings = tidy::check(&root()).map_err(|error| error.to_string())?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("{count} findings")),
    }
}

/// Makes a schema from the types that it describes.
type Make = fn() -> String;

/// The schemas: the path of each, relative to the root, and the function that makes it.
const SCHEMAS: [(&str, Make); 6] = [
    ("docs/schema/result-2.json", fathom_report::document::schema),
    ("docs/schema/calibration-1.json", fathom_report::document::calibration_schema),
    ("docs/schema/watch-1.json", fathom_report::watched::watch_schema),
    ("docs/schema/watch-summary-1.json", fathom_report::watched::watch_summary_schema),
    ("docs/schema/comparison-1.json", fathom_report::comparison::comparison_schema),
    ("docs/schema/history-1.json", fathom_report::history::history_schema),
];

fn schema() -> Result<(), String> {
    SCHEMAS.iter().try_for_each(|(name, make)| {
        let path = root().join(name);
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            std::fs::write(&path, make())
        };
        write().map_err(|error| format!("{}: {error}", path.display()))
    })?;
    workload_schema()
}

/// The schema of workload files is made from the command line's options, which only the binary has.
/// One of the binary's tests compares it.
fn workload_schema() -> Result<(), String> {
    let path = root().join("docs/schema/workload-1.json");
    let made = cargo()
        .args(["run", "--quiet", "--package", "fathom", "--", "workloads", "--schema"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    std::fs::write(&path, made.stdout).map_err(|error| format!("{}: {error}", path.display()))
}

fn golden() -> Result<(), String> {
    let status = cargo()
        .args(["test", "--package", "fathom-report", "--package", "fathom-core"])
        .env("UPDATE_GOLDEN", "1")
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err("the golden tests failed".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_in_the_repository_are_those_of_the_types() {
        for (name, make) in SCHEMAS {
            let stored = std::fs::read_to_string(root().join(name)).unwrap_or_default();
            assert!(stored == make(), "{name} is out of date: run `cargo xtask schema`");
        }
    }
}
