//! The project's own chores, in the language of the project, so that nothing has to be installed
//! for them: `cargo xtask tidy | golden | schema | bench`.

mod bare_loop;
mod bench;
mod conclusions;
mod instructions;
mod map_bench;
mod memory;
mod open_loop;
mod payload;
mod peers;
mod publish;
mod source;
mod start;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use publish::Bench;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy     check the rules that neither the compiler nor clippy knows (also a test)
  golden   rewrite the stored outputs that the golden tests compare with; read the difference
  schema   write docs/schema/*.json from the types of the documents
  bench    what fathom itself costs; all of them: cargo run --release -p xtask -- bench all
           engine        nanoseconds for each I/O and each part of a report (also without a name)
           ring          the engine beside a loop that only submits and reaps
           payload       writes of a unique payload beside those of a constant one
           instructions  how many instructions of its own an I/O takes (needs valgrind)
           peers         fathom beside fio, with its goals (needs root; some minutes)
           open-loop     how exactly open loops keep their schedule, beside fio (two minutes)
           start         from the start to the first I/O, and between two points (five minutes)
           memory        how much memory a run of a day takes, and its report (a minute)
           conclusions   how often what experiments conclude is wrong, on simulated devices with
                         noise; --seeds N for fewer than 200, and a part of an experiment's name
           --write       put the tables into docs/performance.md
  map-bench FOLDER
           how well `fathom map` does on the stored latency maps of a folder (*.csv), such as
           tests/data/latency-grids: cells, speed-up, errors, and which goals are met
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => run_tidy(),
        ["golden"] => golden(),
        ["schema"] => schema(),
        ["bench", instructions::CHILD, load, window_ms] => instructions::child(load, window_ms),
        ["bench", "memory", "--write"] => bench(&["memory", "--write"]),
        ["bench", "memory", part @ ..] if !part.is_empty() => {
            memory::part(part).map(|peaks| print!("{peaks}"))
        }
        ["bench", "conclusions", "--seeds", seeds, part @ ..] => conclusions(seeds, part),
        ["bench", arguments @ ..] => bench(arguments),
        ["map-bench", folder] => {
            map_bench::perform(Path::new(folder)).map(|table| print!("{table}"))
        }
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

/// The root of the repository, from where this file was compiled.
fn root() -> PathBuf {
    match Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
        Some(parent) => parent.to_path_buf(),
        None => PathBuf::from("."),
    }
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

/// The schemas: where each is kept, from the root, and what makes it.
const SCHEMAS: [(&str, Make); 2] = [
    ("docs/schema/result-1.json", fathom_report::document::schema),
    ("docs/schema/calibration-1.json", fathom_report::document::calibration_schema),
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
/// One of its tests compares.
fn workload_schema() -> Result<(), String> {
    let path = root().join("docs/schema/workload-1.json");
    let made = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--package", "fathom", "--", "workloads", "--schema"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    std::fs::write(&path, made.stdout).map_err(|error| format!("{}: {error}", path.display()))
}

/// Every bench, in the order of docs/performance.md.
const BENCHES: [Bench; 9] = [
    Bench { name: "engine", run: || Ok(bench::table(&bench::all(bench::Size::FULL)?)) },
    Bench { name: "ring", run: || Ok(bare_loop::all(bare_loop::Size::FULL)?.table()) },
    Bench { name: "payload", run: || payload::all(payload::Size::FULL) },
    Bench { name: "instructions", run: bench_instructions },
    Bench {
        name: "peers",
        run: || Ok(peers::all(peers::Size::FULL, peers::Profile::Release)?.table()),
    },
    Bench {
        name: "open-loop",
        run: || Ok(open_loop::table(&open_loop::all(open_loop::Size::FULL)?)),
    },
    Bench {
        name: "start",
        run: || Ok(start::all(start::Size::FULL, peers::Profile::Release)?.table()),
    },
    Bench { name: "memory", run: memory::bench },
    Bench { name: "conclusions", run: || conclusions::bench(conclusions::SEEDS, None) },
];

fn conclusions(seeds: &str, part: &[&str]) -> Result<(), String> {
    let seeds = seeds.parse().map_err(|_| format!("--seeds {seeds}: this is no number"))?;
    conclusions::bench(seeds, part.first().copied()).map(|table| println!("{table}"))
}

fn bench(arguments: &[&str]) -> Result<(), String> {
    if cfg!(debug_assertions) {
        eprintln!("xtask: not optimized: use cargo run --release -p xtask -- bench ...");
    }
    let (names, write) = match arguments {
        [names @ .., "--write"] => (names, true),
        names => (names, false),
    };
    let name = match names {
        [] => "engine",
        [name] => name,
        more => return Err(format!("one bench or all of them, not {:?}", more.join(" "))),
    };
    let chosen: Vec<Bench> =
        BENCHES.into_iter().filter(|bench| name == "all" || bench.name == name).collect();
    match chosen.is_empty() {
        true => Err(format!("there is no bench {name:?}\n\n{USAGE}")),
        false => publish::run(&chosen, &root(), write),
    }
}

fn bench_instructions() -> Result<String, String> {
    let outcome = instructions::all(instructions::Size::FULL, peers::Profile::Release)?;
    eprintln!("{}", outcome.hint());
    Ok(outcome.table())
}

fn golden() -> Result<(), String> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
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
