//! Tests the content of the target after a run. It is as compressible as described, measured by
//! zstd. It has the described share of duplicates, measured by comparing all blocks.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fathom_core::spec::{
    BackendKind, BlockSizes, Kind, Limit, Pacing, Pattern, Payload, Point, Region, Stream, Workers,
};
use fathom_core::{Bytes, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Nobody, run_point};

const UNIT: usize = 4096;

fn random(compressible: f64, dedup: f64) -> Payload {
    Payload::Random { compressible, dedup }
}

/// Writes to a file of zeros in blocks of this size, and returns its content.
fn written(size: u64, block: u64, change: impl FnOnce(&mut Stream)) -> Vec<u8> {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("target");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(size).unwrap();
    let target = OpenTarget {
        name: "target".to_owned(),
        file: file.into(),
        size: Bytes(size),
        alignment: Bytes(1),
        passthrough: None,
    };
    let region = Region { target: 0, offset: Bytes(0), length: Bytes(size) };
    let mut stream = Stream {
        ios: Kind {
            pattern: Pattern::SEQUENTIAL,
            block_sizes: BlockSizes::one(Bytes(block)),
            read_share: 0.0,
            ..Kind::default()
        }
        .into(),
        ..Stream::reading("writes", Vec::from([region]))
    };
    change(&mut stream);
    // The limit is a count, so that a busy machine writes as much as a quiet one. With random
    // blocks, six passes leave one in 400 unwritten.
    stream.pacing.limit = Some(Limit::Passes(6));
    let point = Point::of(Vec::from([stream]), Span::from_secs(100));
    let streams = &[Vec::from([target])];
    let devices = Devices::Real { streams, backend: BackendKind::Sync };
    let record = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody).unwrap();
    assert_eq!(record.errors(), 0);
    std::fs::read(&path).unwrap()
}

/// The chunks whose blocks were all written.
fn whole_chunks(content: &[u8], chunk: usize) -> Vec<u8> {
    let is_written = |unit: &[u8]| unit.iter().any(|byte| *byte != 0);
    let chunks = content.chunks_exact(chunk).filter(|chunk| chunk.chunks(UNIT).all(is_written));
    chunks.flatten().copied().collect()
}

/// The share that zstd saves at its default level, chunk by chunk.
fn saved(content: &[u8], chunk: usize, folder: &Path) -> f64 {
    let content = whole_chunks(content, chunk);
    assert!(content.len() >= 2 * chunk, "hardly anything was written: {}", content.len());
    let path = folder.join("content");
    std::fs::write(&path, &content).unwrap();
    let output = Command::new("zstd")
        .args(["-b3", "-i0", &format!("-B{chunk}")])
        .arg(&path)
        .output()
        .expect("it was found before");
    // "content : 8388608 -> 4213123 (x1.991), ...", repeatedly.
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let after = text.split("->").filter_map(|part| part.split('(').next()?.trim().parse().ok());
    let size: f64 = after.last().unwrap_or_else(|| panic!("no size in: {text}"));
    1.0 - size / content.len() as f64
}

/// The share of the written blocks that equal an earlier block.
fn duplicates(content: &[u8]) -> f64 {
    let content = whole_chunks(content, UNIT);
    let units = content.chunks(UNIT);
    assert!(units.len() >= 100, "hardly anything was written: {}", units.len());
    let count = units.len() as f64;
    1.0 - units.collect::<HashSet<_>>().len() as f64 / count
}

fn zstd_is_here() -> bool {
    let here = Command::new("zstd").arg("--version").output().is_ok();
    if !here {
        // Writes past the test harness, which hides the output of tests that pass.
        let _ = writeln!(io::stderr(), "SKIPPED: there is no zstd here to compare with");
    }
    here
}

#[test]
fn zstd_saves_the_share_that_was_asked_for_in_blocks_of_every_size() {
    if !zstd_is_here() {
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    for block in [4096, 16_384, 131_072] {
        for share in [0.0, 0.1, 0.5, 0.9, 1.0] {
            for pattern in [Pattern::SEQUENTIAL, Pattern::RANDOM] {
                let content = written(4 << 20, block, |stream| {
                    stream.payload = random(share, 0.0);
                    stream.kind_mut().pattern = pattern.clone();
                    stream.pacing = Pacing::closed(4);
                });
                for chunk in [4096, 16_384, 131_072] {
                    let saved = saved(&content, chunk, folder.path());
                    let text = format!("{share} in {pattern:?} {block}: {saved} of {chunk}");
                    assert!((saved - share).abs() < 0.02, "{text}");
                }
            }
        }
    }
}

#[test]
fn duplicates_hardly_add_to_what_zstd_saves() {
    if !zstd_is_here() {
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let content = written(16 << 20, 4096, |stream| stream.payload = random(0.5, 0.3));
    for chunk in [4096, 16_384, 131_072] {
        let saved = saved(&content, chunk, folder.path());
        assert!((saved - 0.5).abs() < 0.02, "{saved} of {chunk}");
    }
}

#[test]
fn as_many_blocks_are_duplicates_as_was_asked_for() {
    for (size, block) in [(1 << 20, 4096), (16 << 20, 4096), (16 << 20, 131_072)] {
        for share in [0.0, 0.3, 0.7] {
            for (workers, queue_depth) in [(1, 1), (1, 16), (4, 8)] {
                for pattern in [Pattern::SEQUENTIAL, Pattern::RANDOM] {
                    let content = written(size, block, |stream| {
                        stream.payload = random(0.0, share);
                        stream.kind_mut().pattern = pattern.clone();
                        stream.pacing = Pacing::closed(queue_depth);
                        stream.workers = Workers::Total(workers);
                    });
                    let found = duplicates(&content);
                    let text = format!("{share} {size} {block} {workers} {pattern:?}: {found}");
                    let units = (whole_chunks(&content, UNIT).len() / UNIT) as f64;
                    // If few blocks are left, some blocks of each worker matter: the time ends
                    // anywhere in a pass, and duplicates behind that place have lost those that they
                    // repeat.
                    let few = 4.0 * f64::from(workers) / units;
                    // Which blocks random writes leave unwritten is chance: four standard errors of
                    // that.
                    let chance = match pattern {
                        Pattern::Sequential(_) => 0.0,
                        _ => 4.0 * (share * (1.0 - share) / units).sqrt(),
                    };
                    assert!((found - share).abs() < 0.02 + few + chance, "{text}");
                }
            }
        }
    }
}

#[test]
fn zeros_patterns_and_pools_are_written_as_they_are() {
    let content = written(1 << 20, 4096, |stream| stream.payload = Payload::ramp());
    let ramp = |unit: &[u8]| unit.iter().enumerate().all(|(at, byte)| *byte == at as u8);
    assert!(whole_chunks(&content, UNIT).chunks(UNIT).all(ramp));
    assert!(content[..UNIT].iter().any(|byte| *byte != 0));

    let content = written(1 << 20, 4096, |stream| stream.payload = Payload::Zeros);
    assert!(content.iter().all(|byte| *byte == 0));

    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("source");
    // Every place has different content.
    let source: Vec<u8> = (1..=5000u32).flat_map(u32::to_be_bytes).collect();
    std::fs::write(&file, &source).unwrap();
    let pool = Payload::Pool { size: Bytes(32_768), file: Some(file) };
    let content = written(1 << 20, 4096, |stream| stream.payload = pool);
    let pool: Vec<u8> = source.iter().copied().cycle().take(32_768).collect();
    let taken = |unit: &[u8]| pool.windows(UNIT).step_by(512).position(|window| window == unit);
    let content = whole_chunks(&content, UNIT);
    let places: HashSet<_> = content.chunks(UNIT).map(|unit| taken(unit).unwrap()).collect();
    assert!(places.len() > 10, "{places:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = Some(folder.path().join("missing"));
    let region = Region { target: 0, offset: Bytes(0), length: Bytes(4096) };
    let stream = Stream {
        ios: Kind { read_share: 0.0, ..Kind::default() }.into(),
        payload: Payload::Pool { size: Bytes(4096), file },
        ..Stream::reading("writes", Vec::from([region]))
    };
    let point = Point::of(Vec::from([stream]), Span::from_ms(100));
    let devices = Devices::Real { streams: &[Vec::new()], backend: BackendKind::Sync };
    let error = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}
