//! Passes the seeds and the finds of fuzzing (`tests/data/fuzz`, and other files of the project)
//! through the functions that are fuzzed. None panics, and none takes more memory or work than an
//! input of its length may. `docs/fuzzing.md` explains the rest.
//!
//! An allocator counts bytes and calls. The calls measure the work, because time depends on the
//! machine. This is a program with one test, because the allocator would count other tests too.

#![expect(unsafe_code, reason = "an allocator is unsafe by definition")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fathom::readers;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees hold for this call too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees hold for this call too.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes and calls that an input may take: those of the largest description or document
/// that a short input can request, plus an amount for each byte of the input.
const BYTES_MAX: usize = 256 << 20;
const CALLS_MAX: usize = 2_000_000;
const BYTES_PER_BYTE: usize = 1000;
const CALLS_PER_BYTE: usize = 100;

/// Other files of the project that are seeds of the fuzzer with this name.
fn seeds(name: &str) -> &'static [&'static str] {
    match name {
        "result" => &[
            "crates/report/tests/data",
            "crates/report/tests/data/packed",
            "crates/report/tests/data/version-1",
        ],
        "workload" => &["crates/fathom/workloads", "examples", "examples/studies"],
        "diskspd-profile" => &["crates/fathom/tests/data/diskspd"],
        "import" => &["tests/data/fio"],
        "latency-grid" => &["tests/data/latency-grids"],
        _ => &[],
    }
}

/// The files of a folder. Empty if the folder does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

#[test]
fn what_fuzzing_begins_with_and_what_it_found_is_read_within_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let targets = root.join("fuzz/fuzz_targets");
    let mut names: Vec<String> = files(&targets)
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    // A manifest that declares a target twice does not build, and `./test` does not build it.
    let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    for reader in readers::ALL {
        names.retain(|name| name != reader.name);
        assert!(targets.join(format!("{}.rs", reader.name)).exists(), "{}", reader.name);
        let declared = format!("path = \"fuzz_targets/{}.rs\"", reader.name);
        assert_eq!(manifest.matches(&declared).count(), 1, "{declared}");
        let own = files(&root.join("tests/data/fuzz").join(reader.name));
        let others = seeds(reader.name).iter().map(|folder| files(&root.join(folder)));
        assert!(others.clone().all(|files| !files.is_empty()), "{}", reader.name);
        let all: Vec<PathBuf> = own.into_iter().chain(others.flatten()).collect();
        assert!(!all.is_empty(), "{} has no input", reader.name);
        for path in all {
            let bytes = fs::read(&path).unwrap();
            let before = IN_USE.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            CALLS.store(0, Ordering::Relaxed);
            let outcome = catch_unwind(|| (reader.read)(&bytes));
            let (name, path) = (reader.name, path.display());
            assert!(outcome.is_ok(), "{name}: {path}");
            let (peak, calls) =
                (PEAK.load(Ordering::Relaxed) - before, CALLS.load(Ordering::Relaxed));
            println!("{name}: {path}: {peak} bytes, {calls} calls");
            assert!(peak <= BYTES_MAX + BYTES_PER_BYTE * bytes.len(), "{name}: {path}: {peak}");
            assert!(calls <= CALLS_MAX + CALLS_PER_BYTE * bytes.len(), "{name}: {path}: {calls}");
        }
    }
    assert!(names.is_empty(), "these targets have no reader: {names:?}");
}
