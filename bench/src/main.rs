//! Measures the cost of fathom itself, and how often its conclusions are wrong. docs/performance.md
//! has the tables and explains how to read them.
//!
//! Every bench runs at a smoke size in `cargo test`, which checks no times.

mod bare_loop;
mod compare;
mod conclusions;
mod engine;
mod hosts;
mod instructions;
mod map_bench;
mod memory;
mod open_loop;
mod payload;
mod peers;
mod publish;
mod start;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use publish::Bench;

const USAGE: &str = "\
usage: cargo run --release -p fathom-bench -- BENCH [--write]

  all           all of these but maps
  engine        nanoseconds for each I/O and each part of a report (also without a name)
  ring          the engine beside a loop that only submits and reaps
  payload       writes of a unique payload beside those of a constant one
  instructions  how many instructions of its own an I/O takes (needs valgrind)
  peers         fathom beside fio, with its goals (needs root; some minutes)
  open-loop     how exactly open loops keep their schedule, beside fio (two minutes)
  start         from the start to the first I/O, and between two points (five minutes)
  memory        how much memory a run of a day takes, and its report (a minute)
  hosts         what a load on up to 1,000 hosts costs its coordinator (a minute)
  compare       how often a comparison of two sides is wrong, on simulated devices with noise
                and on a real file, and how often it finds 5 %; --comparisons N for fewer than 500
  conclusions   how often what experiments conclude is wrong, on simulated devices with
                noise; --seeds N for fewer than 200, and a part of an experiment's name
  maps FOLDER   how well `fathom map` does on the stored latency maps of a folder (*.csv), such
                as tests/data/latency-grids: cells, speed-up, errors, and which goals are met

  --write       puts the tables into docs/performance.md
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [instructions::CHILD, load, window_ms] => instructions::child(load, window_ms),
        ["memory", part @ ..] if !part.is_empty() && part != ["--write"] => {
            memory::part(part).map(|peaks| print!("{peaks}"))
        }
        ["conclusions", "--seeds", seeds, part @ ..] => conclusions(seeds, part),
        ["compare", "--comparisons", count] => fewer(count),
        ["maps", folder] => map_bench::perform(Path::new(folder)).map(|table| print!("{table}")),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        arguments => bench(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
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

/// Every bench, in the order of docs/performance.md.
const BENCHES: [Bench; 11] = [
    Bench { name: "engine", run: || Ok(engine::table(&engine::all(engine::EngineSize::FULL)?)) },
    Bench { name: "ring", run: || Ok(bare_loop::all(bare_loop::RingSize::FULL)?.table()) },
    Bench { name: "payload", run: || payload::all(payload::PayloadSize::FULL) },
    Bench { name: "instructions", run: bench_instructions },
    Bench {
        name: "peers",
        run: || Ok(peers::all(peers::PeerSize::FULL, peers::Profile::Release)?.table()),
    },
    Bench {
        name: "open-loop",
        run: || Ok(open_loop::table(&open_loop::all(open_loop::OpenLoopSize::FULL)?)),
    },
    Bench {
        name: "start",
        run: || Ok(start::all(start::StartSize::FULL, peers::Profile::Release)?.table()),
    },
    Bench { name: "memory", run: memory::bench },
    Bench { name: "hosts", run: || hosts::all(hosts::HostsSize::FULL, peers::Profile::Release) },
    Bench { name: "compare", run: || compare::all(compare::CompareSize::FULL) },
    Bench { name: "conclusions", run: || conclusions::bench(conclusions::SEEDS, None) },
];

fn conclusions(seeds: &str, part: &[&str]) -> Result<(), String> {
    let seeds = seeds.parse().map_err(|_| format!("--seeds {seeds}: this is no number"))?;
    conclusions::bench(seeds, part.first().copied()).map(|table| println!("{table}"))
}

fn fewer(comparisons: &str) -> Result<(), String> {
    let count = comparisons
        .parse()
        .map_err(|_| format!("--comparisons {comparisons}: this is no number"))?;
    compare::all(compare::CompareSize::of(count)).map(|table| println!("{table}"))
}

fn bench(arguments: &[&str]) -> Result<(), String> {
    if cfg!(debug_assertions) {
        eprintln!("bench: not optimized: use cargo run --release -p fathom-bench -- ...");
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
    let outcome = instructions::all(instructions::InstructionSize::FULL, peers::Profile::Release)?;
    eprintln!("{}", outcome.hint());
    Ok(outcome.table())
}
