//! Tests that the generated I/Os are those that were described, as a user can check it: the
//! `--trace` of a run on a file is compared with the closed form of the request. The same seed
//! issues the same I/Os, on a file and on a simulated device.
//!
//! A run has a seed and ends after a number of I/Os, so each test sees the same I/Os each time,
//! whatever the machine does.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Place, Table, code, stderr};

const BLOCK: u64 = 4096;
/// The region begins at 8 KiB and has this number of blocks, a prime.
const BLOCKS: u64 = 1009;
/// The size of a sample.
const IOS: u64 = 40_000;

/// An I/O as it was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Issued {
    target: String,
    direction: String,
    offset: u64,
    length: u64,
}

impl Issued {
    /// Its place in the region, in blocks.
    fn block(&self) -> u64 {
        assert!((2 * BLOCK..=(1 + BLOCKS) * BLOCK).contains(&self.offset), "{self:?}");
        assert!(self.offset.is_multiple_of(BLOCK) && self.length == BLOCK, "{self:?}");
        self.offset / BLOCK - 2
    }
}

/// The I/Os of each worker of each stream, in the order of issue.
type Workers = BTreeMap<(u32, u32), Vec<Issued>>;

/// Runs fathom with a trace, and returns the content of the trace.
fn traced(place: &Place, args: &[&str]) -> Workers {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let names = [format!("{number}.csv"), format!("{number}.jsonl")];
    let files = ["--trace", &names[0], "--out", &names[1]];
    let output = place.run(&[&["run"], args, &files].concat());
    // Void is right too, for a file that was never written.
    assert!([0, 4].contains(&code(&output)), "{args:?}: {}", stderr(&output));
    let table = Table::read(&place.join(&names[0]));
    assert_eq!(table.sum("left_out_before"), 0);
    assert!(table.column("error").all(str::is_empty));
    let numbers = |name| table.column(name).map(|value| value.parse::<u64>().unwrap());
    let words = table.column("target").zip(table.column("direction"));
    let places = numbers("offset_bytes").zip(numbers("length_bytes"));
    let whose = numbers("stream").zip(numbers("worker")).zip(numbers("number"));
    let mut found: BTreeMap<(u32, u32), BTreeMap<u64, Issued>> = BTreeMap::new();
    for ((((stream, worker), number), (target, direction)), (offset, length)) in
        whose.zip(words).zip(places)
    {
        let (target, direction) = (target.to_owned(), direction.to_owned());
        let own = found.entry((stream as u32, worker as u32)).or_default();
        own.insert(number, Issued { target, direction, offset, length });
    }
    for ios in found.values() {
        assert!(ios.keys().copied().eq(0..ios.len() as u64), "an I/O is missing");
    }
    found.into_iter().map(|(worker, ios)| (worker, ios.into_values().collect())).collect()
}

/// A sample of the I/Os that the workers of one stream do in the region of a file, in blocks of 4
/// KiB.
fn on_file(workers: &str, more: &[&str]) -> Vec<Vec<Issued>> {
    let place = Place::in_memory();
    place.prepared("data", 8);
    let ios = traced(&place, &[&["data", "--buffered"], &one_stream(workers)[..], more].concat());
    assert_eq!(ios.values().map(Vec::len).sum::<usize>() as u64, IOS);
    ios.into_values().collect()
}

fn one_stream(workers: &str) -> [&str; 12] {
    let region = ["--offset", "8k", "--size", "4036k", "-q", "8"];
    let [a, b, c, d, e, f] = region;
    let [g, h, i, j] = ["--stop-after", "40000 ios", "--seed", "5"];
    [a, b, c, d, e, f, g, h, i, j, "--workers", workers]
}

/// Fails if the counts differ from the expected shares by more than chance explains, except once in
/// a million times: the cube of a normal quantile (E. Wilson and M. Hilferty, 1931).
#[track_caller]
fn assert_shares(counts: &[u64], shares: &[f64]) {
    assert_eq!(counts.len(), shares.len());
    let all = counts.iter().sum::<u64>() as f64;
    let (mut sum, mut groups, mut count, mut mean) = (0.0, -1.0, 0.0, 0.0);
    for (&n, &share) in counts.iter().zip(shares) {
        assert!(n == 0 || share > 0.0, "{n} where there is nothing");
        (count, mean) = (count + n as f64, mean + all * share);
        // Neighbors are combined until enough I/Os are expected. Few groups show small differences.
        if (all / 50.0).max(20.0) <= mean {
            sum += (count - mean) * (count - mean) / mean;
            (groups, count, mean) = (groups + 1.0, 0.0, 0.0);
        }
    }
    assert!(groups >= 1.0, "too few for a chi-squared test");
    let ninth = 2.0 / (9.0 * groups);
    let limit = groups * (1.0_f64 - ninth + 4.753 * f64::sqrt(ninth)).powi(3);
    assert!(sum < limit, "chi-squared {sum} over {groups}, which should be below {limit}");
    let total: f64 = shares.iter().sum();
    assert!((total - 1.0).abs() < 1e-6, "the shares come to {total}");
}

fn counts(all: &[Vec<Issued>]) -> Vec<u64> {
    let mut counts = vec![0; BLOCKS as usize];
    all.iter().flatten().for_each(|io| counts[io.block() as usize] += 1);
    counts
}

#[test]
fn sequential_workers_go_on_from_where_they_start() {
    // The distance between places in blocks, the index of the place where each of three workers
    // starts, and the direction.
    let even = |places: u64| [0, places / 3, places * 2 / 3];
    for (words, step, starts, forward) in [
        (&["--pattern", "sequential"][..], 1, even(BLOCKS), true),
        (&["--pattern", "sequential", "--start-distance", "40k"], 1, [0, 10, 20], true),
        (&["--pattern", "strided:16k"], 4, even(253), true),
        (&["--pattern", "backward"], 1, [335, 671, 1008], false),
        (&["--pattern", "backward:16k"], 4, [83, 167, 252], false),
    ] {
        let places = (BLOCKS - 1) / step + 1;
        let all = on_file("3", words);
        for (ios, start) in all.iter().zip(starts) {
            let mut expected = start;
            for io in ios {
                assert_eq!(io.block(), expected * step, "{words:?}");
                let next = if forward { expected + 1 } else { expected + places - 1 };
                expected = next % places;
            }
        }
    }
}

#[test]
fn interlocked_workers_together_leave_nothing_out_and_do_nothing_twice() {
    for (pattern, step) in [("interlocked", 1), ("interlocked:16k", 4)] {
        let all = on_file("3", &["--pattern", pattern]);
        let places = (BLOCKS - 1) / step + 1;
        let expected = |block: u64| match block.is_multiple_of(step) {
            true => IOS / places + u64::from(block / step < IOS % places),
            false => 0,
        };
        assert!(counts(&all).into_iter().eq((0..BLOCKS).map(expected)), "{pattern}");
    }
}

#[test]
fn without_repetition_no_block_comes_again_before_all_had_their_turn() {
    for workers in ["1", "3"] {
        let all = on_file(workers, &["--no-repeat"]);
        let mut owned: BTreeSet<u64> = BTreeSet::new();
        for (worker, ios) in all.iter().enumerate() {
            let own = (BLOCKS as usize - worker).div_ceil(all.len());
            let passes: Vec<Vec<u64>> =
                ios.chunks(own).map(|pass| pass.iter().map(Issued::block).collect()).collect();
            for pass in &passes {
                assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), pass.len());
            }
            assert!(passes[0] != passes[1], "in another order");
            owned.extend(&passes[0]);
        }
        assert!(owned.into_iter().eq(0..BLOCKS), "all workers together come to each");
    }
}

#[test]
fn zones_are_their_workers_alone() {
    for pattern in ["sequential", "random"] {
        let all = on_file("4", &["--zones", "--pattern", pattern]);
        let zones: Vec<BTreeSet<u64>> =
            all.iter().map(|ios| ios.iter().map(Issued::block).collect()).collect();
        assert!(zones.into_iter().flatten().eq(0..BLOCKS), "{pattern}");
    }
}

/// The share of each block.
fn shares(weight: impl Fn(u64) -> f64) -> Vec<f64> {
    let weights: Vec<f64> = (0..BLOCKS).map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

#[test]
fn random_ios_go_where_their_distribution_says() {
    let n = BLOCKS as f64;
    let zipf = |theta: f64| shares(|block| (block as f64 + 1.0).powf(-theta));
    let power = 0.8_f64.ln() / 0.2_f64.ln();
    let pareto = shares(|at| ((at as f64 + 1.0) / n).powf(power) - (at as f64 / n).powf(power));
    let density = |x: f64| (-0.5 * ((x / n - 0.3) / 0.1).powi(2)).exp();
    let normal = shares(|at| {
        let x = at as f64;
        density(x) + 4.0 * density(x + 0.5) + density(x + 1.0)
    });
    // 900 KiB are 225 blocks. The next 1800 KiB are a hole.
    let hot = shares(|block| match block {
        0..225 => 0.6 / 225.0,
        225..675 => 0.0,
        _ => 0.4 / (n - 675.0),
    });
    for (pattern, shares) in [
        ("random", shares(|_| 1.0)),
        ("zipf:0.8,clustered", zipf(0.8)),
        ("zipf:1.2,clustered", zipf(1.2)),
        ("pareto:0.2,clustered", pareto),
        ("normal:10%,30%", normal),
        ("hot:60%/900k,0%/1800k", hot),
    ] {
        assert_shares(&counts(&on_file("3", &["--pattern", pattern])), &shares);
    }
}

#[test]
fn random_offsets_are_multiples_of_the_alignment_and_stay_in_the_region() {
    for (align, starts) in [(512, (BLOCKS - 1) * 8 + 1), (12_288, 337)] {
        let mut counts = vec![0; starts as usize];
        for io in on_file("2", &["--align", &align.to_string()]).iter().flatten() {
            let from = io.offset - 2 * BLOCK;
            assert!(from.is_multiple_of(align) && io.length == BLOCK, "{io:?}");
            counts[(from / align) as usize] += 1;
        }
        assert_shares(&counts, &vec![1.0 / starts as f64; starts as usize]);
    }
}

#[test]
fn sequential_runs_between_random_ios_are_geometric() {
    let place = Place::in_memory();
    // The file is so large that a random I/O hardly ever begins where the one before it ended.
    let file = std::fs::File::create(place.join("data")).unwrap();
    file.set_len(64 << 30).unwrap();
    let run = ["data", "--buffered", "--stop-after", "40000 ios", "--seed", "5", "--overwrite"];
    let mix = ["--pattern", "mixed:20%", "--read-share", "62.5%", "-b", "512"];
    let ios = traced(&place, &[&run[..], &mix].concat()).into_values().next().unwrap();
    let mut runs: Vec<&[Issued]> = Vec::new();
    let goes_on = |one: &Issued, next: &Issued| next.offset == one.offset + one.length;
    runs.extend(ios.chunk_by(goes_on));
    // The last run was cut off.
    runs.pop();
    let one_direction = |run: &&[Issued]| run.iter().all(|io| io.direction == run[0].direction);
    assert!(runs.iter().all(one_direction));
    let mut lengths = vec![0; 60];
    runs.iter().for_each(|run| lengths[run.len().min(60) - 1] += 1);
    let share = |more: i32| 0.8_f64.powi(more) * if more < 59 { 0.2 } else { 1.0 };
    assert_shares(&lengths, &(0..60).map(share).collect::<Vec<_>>());
    let reads = runs.iter().filter(|run| run[0].direction == "read").count() as u64;
    assert_shares(&[reads, runs.len() as u64 - reads], &[0.625, 0.375]);
}

#[test]
fn directions_and_sizes_have_their_shares() {
    let mix = ["--read-share", "33.3%", "--trim-share", "12.5%", "--overwrite"];
    let sizes = ["-b", "4k/60,8k/40", "--write-block-size", "4k/1,12k/2,16k/1"];
    let all = on_file("2", &[&mix[..], &sizes].concat());
    let mut counts: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for io in all.iter().flatten() {
        assert!(io.offset.is_multiple_of(BLOCK), "{io:?}");
        assert!((2 * BLOCK..=(2 + BLOCKS) * BLOCK - io.length).contains(&io.offset), "{io:?}");
        *counts.entry((&io.direction, io.length)).or_default() += 1;
    }
    let (reads, writes) = (0.875 * 0.333, 0.875 * 0.667);
    let expected = [
        (("read", 4096), reads * 0.6),
        (("read", 8192), reads * 0.4),
        (("write", 4096), writes * 0.25),
        (("write", 12_288), writes * 0.5),
        (("write", 16_384), writes * 0.25),
    ];
    let of = |key: &(&str, u64)| counts.get(key).copied().unwrap_or(0);
    let trims = counts.iter().filter(|((direction, _), _)| *direction == "trim");
    let counted: Vec<u64> =
        expected.iter().map(|(key, _)| of(key)).chain([trims.map(|(_, n)| n).sum()]).collect();
    assert_eq!(counted.iter().sum::<u64>(), IOS, "{counts:?}");
    let shares: Vec<f64> = expected.iter().map(|(_, share)| *share).chain([0.125]).collect();
    assert_shares(&counted, &shares);
}

#[test]
fn a_file_and_a_simulated_device_are_given_the_same() {
    let place = Place::in_memory();
    place.prepared("data", 8);
    let fields = |all: Workers| -> Vec<Vec<(String, u64, u64)>> {
        let io = |io: Issued| (io.direction, io.offset, io.length);
        all.into_values().map(|ios| ios.into_iter().map(io).collect()).collect()
    };
    for pattern in [
        &["--pattern", "random", "-b", "4k/3,16k/1"][..],
        &["--no-repeat"],
        &["--pattern", "zipf:1.1"],
        &["--pattern", "pareto:0.1"],
        &["--pattern", "normal:20%"],
        &["--pattern", "hot:90%/10%,0%/40%", "--zones"],
        &["--pattern", "mixed:30%,zipf:0.9"],
        &["--pattern", "backward", "-b", "4k/3,16k/1"],
    ] {
        let more = [&one_stream("3")[..], pattern, &["--read-share", "70%"]].concat();
        let real = traced(&place, &[&["data", "--buffered", "--overwrite"], &more[..]].concat());
        let simulated = traced(&place, &[&["sim:queue,servers=3,size=8m"], &more[..]].concat());
        let (real, simulated) = (fields(real), fields(simulated));
        assert!(real.len() == 3 && real == simulated, "{pattern:?}");
    }
}

/// Three streams, with everything that chance decides in them.
const SEVERAL: &str = "\
[stream.table]
targets = ['a', 'b']
pattern = 'zipf:1.05'
read-share = '55.5%'
block-size = '8k/70,64k/30'
workers = 2
compressible = '40%'
dedup = '20%'
stop-after = '3000 ios'
[stream.temporary]
targets = 'a'
no-repeat = true
trim-share = '10%'
read-share = '20%'
workers = 3
stop-after = '2000 ios'
[stream.log]
targets = { path = 'c', offset = '64k', size = '1m' }
pattern = 'sequential'
read-share = '0%'
fdatasync = 4
queue-depth = 4
stop-after = '400 ios'
";

#[test]
fn the_same_seed_issues_the_same_in_all_streams_and_another_one_does_not() {
    let place = Place::in_memory();
    for name in ["a", "b", "c"] {
        place.prepared(name, 8);
    }
    std::fs::write(place.join("w.toml"), SEVERAL).unwrap();
    let run = |seed| traced(&place, &["w.toml", "--overwrite", "--seed", seed]);
    let one = run("7");
    let of_stream = |all: &Workers, stream| -> usize {
        all.iter().filter(|((own, _), _)| *own == stream).map(|(_, ios)| ios.len()).sum()
    };
    assert_eq!(one.len(), 4 + 3 + 1);
    // The flushes of the log come in addition.
    assert_eq!([0, 1, 2].map(|stream| of_stream(&one, stream)), [3000, 2000, 500]);
    let without_flushes = |all: &Workers| -> Workers {
        let of = |ios: &Vec<Issued>| {
            ios.iter().filter(|io| io.direction != "fdatasync").cloned().collect()
        };
        all.iter().map(|(whose, ios)| (*whose, of(ios))).collect()
    };
    let again = without_flushes(&run("7"));
    assert!(without_flushes(&one) == again);
    let other = without_flushes(&run("8"));
    let differs = |((one, other), stream): ((&Vec<Issued>, &Vec<Issued>), u32)| {
        assert_eq!(one != other, stream != 2, "stream {stream}");
    };
    let streams = again.keys().map(|(stream, _)| *stream);
    again.values().zip(other.values()).zip(streams).for_each(differs);
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let place = Place::in_memory();
    let written = |name: &str, seed| {
        place.prepared(name, 4);
        let load = ["-b", "16k", "--pattern", "sequential", "--read-share", "0%", "--zones"];
        let data = ["--compressible", "30%", "--dedup", "25%", "-w", "2", "-q", "8"];
        let run = [name, "--passes", "1", "--overwrite", "--seed", seed];
        traced(&place, &[&run[..], &load, &data].concat());
        std::fs::read(place.join(name)).unwrap()
    };
    let one = written("a", "7");
    assert!(one == written("b", "7"));
    let other = written("c", "8");
    let same = one.chunks(4096).zip(other.chunks(4096)).filter(|(one, other)| one == other);
    assert_eq!(same.count(), 0);
}
