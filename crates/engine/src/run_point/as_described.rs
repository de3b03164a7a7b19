//! The engine issues exactly the I/Os that were described: all I/Os that the loop gave to a
//! simulated device, and samples of those that it gave to a file, compared with the closed form of
//! each pattern.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Direction, Tally, Waits};
use fathom_core::plan;
use fathom_core::spec::{
    BackendKind, BlockSizes, Distribution, Extent, HotRange, Ios, Kind, Order, Pacing, Part,
    Pattern, Point, Region, Sequence, Starts, Stream, Turns, Workers, check_pattern,
};
use fathom_core::{Bytes, Instant, Span};
use proptest::prelude::*;

use super::{Nobody, drive_plan, run_on};
use crate::backend::{Backend, Completion, Io, RealBackend, Shape};
use crate::open_target::OpenTarget;
use crate::pacer::Pace;
use crate::pattern::testing::assert_chi_squared;
use crate::pattern::{Pointers, Request, source};
use crate::sim::Sim;
use crate::sync::Sync;
use crate::timetable::Timetable;
use crate::worker::{Assignment, Sink};

const KIB: u64 = 1024;
const BLOCK: u64 = 4 * KIB;

/// Passes everything on, and records the pushed I/Os.
struct Spy<B> {
    backend: B,
    seen: Vec<Io>,
}

impl<B: Backend> Backend for Spy<B> {
    fn now(&mut self) -> Instant {
        self.backend.now()
    }

    fn refresh(&mut self, slot: u32, length: u32) {
        self.backend.refresh(slot, length);
    }

    fn push(&mut self, io: Io) {
        self.seen.push(io);
        self.backend.push(io);
    }

    fn wait(&mut self, deadline: Instant) {
        self.backend.wait(deadline);
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.backend.reap(take);
    }
}

/// Takes every interval, and keeps none.
struct Forget;

impl Sink for Forget {
    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        tally.clear();
        true
    }
}

/// A stream of one block size in one region of this many blocks that begins at 8 KiB.
fn stream(pattern: Pattern, blocks: u64) -> Stream {
    let region = Region { target: 0, offset: Bytes(2 * BLOCK), length: Bytes(blocks * BLOCK) };
    Stream {
        ios: Kind { pattern, ..Kind::default() }.into(),
        ..Stream::reading("test", Vec::from([region]))
    }
}

fn with_workers(workers: u32, stream: Stream) -> Stream {
    let pacing = Pacing::closed(8 * workers);
    Stream { workers: Workers::Total(workers), pacing, ..stream }
}

/// All I/Os that each worker gave to a simulated device, in order: this many or more. The workers
/// run side by side, each with its own device.
fn issued(stream: &Stream, ios: u64) -> Vec<Vec<Io>> {
    assert_eq!(check_pattern(stream), Ok(()));
    let workers = plan::worker_count(stream);
    let pacing = Pacing::closed(8 * workers);
    let stream = Stream { pacing, ..stream.clone() };
    // Eight servers do 80,000 I/Os in a second.
    let window = Span::from_ms(100 * (ios / u64::from(workers)).div_ceil(8000));
    let point = Point { seed: 11, ..Point::of(Vec::from([stream]), window) };
    let pointers = Pointers::new(&point);
    let plans = plan::divide(&point);
    let run = |plan| {
        let options = "queue,servers=8,service-time=100us".parse().expect("a device");
        let mut backend = Spy { backend: Sim::open(&options, 8), seen: Vec::new() };
        let job = Assignment {
            plan,
            writes: point.streams[0].read_share() < 1.0,
            timetable: Timetable::of(&point, Instant(0)),
            cpu: || None,
            ends_early: &|| false,
            stopped: &|| false,
            agree_on_end: &|now| now,
            done: &|_| {},
        };
        let outcome = drive_plan(&job, &point.streams[0], &pointers, &mut backend, &mut Forget);
        assert_eq!(outcome.ledger.due, backend.seen.len() as u64);
        backend.seen
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(move || run(plan))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no worker panics")).collect()
    })
}

/// The blocks of the region that one worker addressed, in order.
fn blocks(stream: &Stream, ios: u64) -> Vec<u64> {
    let issued = issued(stream, ios);
    issued[0].iter().map(|io| (io.offset - 2 * BLOCK) / BLOCK).collect()
}

/// How often each block of the region was addressed.
fn counts(stream: &Stream, of: u64, ios: u64) -> Vec<u64> {
    let mut counts = vec![0; of as usize];
    for io in issued(stream, ios).iter().flatten() {
        assert_eq!((io.offset % BLOCK, io.length), (0, BLOCK as u32));
        counts[((io.offset - 2 * BLOCK) / BLOCK) as usize] += 1;
    }
    counts
}

fn expected(counts: &[u64], probability: impl Fn(u64) -> f64) -> Vec<f64> {
    let all = counts.iter().sum::<u64>() as f64;
    (0..counts.len() as u64).map(|place| all * probability(place)).collect()
}

/// Merges neighbors until each group has a large enough expected count for a chi-squared test.
fn grouped(counts: &[u64], expected: &[f64]) -> (Vec<u64>, Vec<f64>) {
    let mut groups = (Vec::new(), Vec::new());
    let (mut count, mut mean) = (0, 0.0);
    for (&n, &m) in counts.iter().zip(expected) {
        (count, mean) = (count + n, mean + m);
        if mean >= 20.0 {
            groups.0.push(std::mem::take(&mut count));
            groups.1.push(std::mem::take(&mut mean));
        }
    }
    if let (Some(last), Some(last_mean)) = (groups.0.last_mut(), groups.1.last_mut()) {
        (*last, *last_mean) = (*last + count, *last_mean + mean);
    }
    groups
}

fn random(distribution: Distribution) -> Pattern {
    Pattern::Random(distribution)
}

fn zipf(theta: f64, order: Order) -> Distribution {
    Distribution::Zipf { theta, order }
}

fn in_size(ranges: &[(f64, u64)]) -> Distribution {
    let range = |&(io_share, size)| HotRange { io_share, extent: Extent::Size(Bytes(size)) };
    Distribution::Hot(ranges.iter().map(range).collect())
}

fn in_share(ranges: &[(f64, f64)]) -> Distribution {
    let range = |&(io_share, part)| HotRange { io_share, extent: Extent::Share(part) };
    Distribution::Hot(ranges.iter().map(range).collect())
}

// One after the other.

fn sequence(stride: Option<u64>, starts: Starts, backward: bool) -> Pattern {
    Pattern::Sequential(Sequence { stride: stride.map(Bytes), starts, backward, visits: None })
}

#[test]
fn sequential_workers_go_around_from_their_starts() {
    let go = |pattern, workers: u32| -> Vec<Vec<u64>> {
        let issued = issued(&with_workers(workers, stream(pattern, 10)), 20);
        let block = |io: &Io| (io.offset - 2 * BLOCK) / BLOCK;
        issued.iter().map(|ios| ios.iter().take(12).map(block).collect()).collect()
    };
    let spread = Starts::Spread;
    let apart = Starts::Apart(Bytes(3 * BLOCK));
    let row = |blocks: &[u64]| blocks.iter().copied().cycle().take(12).collect::<Vec<u64>>();
    assert_eq!(go(Pattern::SEQUENTIAL, 2)[0], row(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    assert_eq!(go(Pattern::SEQUENTIAL, 2)[1], row(&[5, 6, 7, 8, 9, 0, 1, 2, 3, 4]));
    assert_eq!(go(sequence(None, apart, false), 3)[2], row(&[6, 7, 8, 9, 0, 1, 2, 3, 4, 5]));
    // A stride of three blocks reaches 0, 3, 6 and 9. It then starts again at a place that its
    // steps reach.
    assert_eq!(go(sequence(Some(3 * BLOCK), spread, false), 1)[0], row(&[0, 3, 6, 9]));
    assert_eq!(go(sequence(Some(3 * BLOCK), spread, false), 2)[1], row(&[6, 9, 0, 3]));
    let apart = Starts::Apart(Bytes(4 * BLOCK));
    let strided = go(sequence(Some(3 * BLOCK), apart, false), 2);
    assert_eq!(strided[1][..6], [4, 7, 1, 4, 7, 1]);
    // Each place three times.
    let thrice = Sequence { visits: Some(3), ..Sequence::default() };
    let thrice = go(Pattern::Sequential(thrice), 2);
    assert_eq!(thrice[1], [5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8]);
    // A stride below the block overlaps.
    let overlapping = issued(&stream(sequence(Some(BLOCK / 2), spread, false), 3), 20);
    let halves: Vec<u64> =
        overlapping[0].iter().take(7).map(|io| (io.offset - 2 * BLOCK) / (BLOCK / 2)).collect();
    assert_eq!(halves, [0, 1, 2, 3, 4, 0, 1]);
    // Backward: from the end of each worker's part.
    assert_eq!(go(sequence(None, spread, true), 1)[0], row(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]));
    assert_eq!(go(sequence(None, spread, true), 2)[0], row(&[4, 3, 2, 1, 0, 9, 8, 7, 6, 5]));
    assert_eq!(go(sequence(Some(3 * BLOCK), spread, true), 1)[0], row(&[9, 6, 3, 0]));
    let apart = Starts::Apart(Bytes(4 * BLOCK));
    assert_eq!(go(sequence(Some(3 * BLOCK), apart, true), 2)[1][..5], [4, 1, 7, 4, 1]);
}

#[test]
fn backward_ios_of_several_sizes_end_where_the_one_before_them_began() {
    let sizes = [(Bytes(BLOCK), 1.0), (Bytes(3 * BLOCK), 1.0)];
    let mut stream = stream(sequence(None, Starts::Spread, true), 10);
    stream.kind_mut().block_sizes = BlockSizes::weighted(&sizes, &sizes);
    let end = 12 * BLOCK;
    let mut before = end;
    for io in &issued(&stream, 1000)[0] {
        let length = u64::from(io.length);
        let fits = 2 * BLOCK + length <= before;
        assert_eq!(io.offset, if fits { before - length } else { end - length });
        before = io.offset;
    }
}

#[test]
fn interlocked_workers_together_leave_nothing_out_and_do_nothing_twice() {
    for (stride, pass) in [(None, 1009), (Some(3 * BLOCK), 337)] {
        let pattern = Pattern::Interlocked { stride: stride.map(Bytes) };
        let stream = with_workers(4, stream(pattern, 1009));
        let all = issued(&stream, 100_000);
        let step = stride.unwrap_or(BLOCK);
        let mut counts = vec![0; pass as usize];
        for io in all.iter().flatten() {
            assert!((io.offset - 2 * BLOCK).is_multiple_of(step));
            counts[((io.offset - 2 * BLOCK) / step) as usize] += 1;
        }
        // Whole passes, and the beginning of one.
        let ios: u64 = counts.iter().sum();
        let rest = ios % pass;
        for (place, count) in counts.iter().enumerate() {
            assert_eq!(*count, ios / pass + u64::from((place as u64) < rest), "{place}");
        }
        // Each worker covered its part, and continued except where the pointer began again.
        for ios in &all {
            let anew = ios.windows(2).filter(|pair| pair[1].offset <= pair[0].offset).count();
            assert!(ios.len() > 1000 && anew as u64 <= counts[0], "{anew}");
        }
    }
}

#[test]
fn zones_are_their_workers_alone_and_leave_nothing_out() {
    for pattern in [Pattern::SEQUENTIAL, Pattern::Shuffled, Pattern::RANDOM] {
        let stream = Stream { zones: true, ..with_workers(4, stream(pattern, 1002)) };
        let all = issued(&stream, 50_000);
        let mut seen = Vec::new();
        for ios in &all {
            let offsets: std::collections::BTreeSet<u64> = ios.iter().map(|io| io.offset).collect();
            seen.extend(offsets);
        }
        // The offsets are in the order of the workers, so no worker was in another one's zone.
        assert!(seen.iter().copied().eq((2..1004).map(|block| block * BLOCK)));
    }
}

#[test]
fn drawn_targets_get_their_shares_whatever_the_pattern() {
    const WEIGHTS: [f64; 4] = [50.0, 3.0, 27.0, 20.0];
    let region = |target| Region { target, offset: Bytes(0), length: Bytes(64 * BLOCK) };
    let mixed = Pattern::Mixed { random_share: 0.4, distribution: Distribution::Uniform };
    for pattern in [Pattern::SEQUENTIAL, Pattern::RANDOM, Pattern::Shuffled, mixed] {
        let stream = Stream {
            ios: Kind { pattern: pattern.clone(), ..Kind::default() }.into(),
            turns: Turns::Weighted(WEIGHTS.to_vec()),
            ..Stream::reading("drawn", (0..4).map(region).collect())
        };
        let ios = issued(&with_workers(2, stream), 100_000).concat();
        let mut counts = [0; 4];
        ios.iter().for_each(|io| counts[io.target as usize] += 1);
        let all = ios.len() as f64;
        assert_chi_squared(&counts, &WEIGHTS.map(|weight| all * weight / 100.0));
        // Which target comes next does not depend on the one before: pairs have the products.
        let mut pairs = [0; 16];
        let two = |ios: &[Io]| (4 * ios[0].target + ios[1].target) as usize;
        ios.chunks_exact(2).for_each(|ios| pairs[two(ios)] += 1);
        let product = |pair: usize| all / 2.0 * WEIGHTS[pair / 4] * WEIGHTS[pair % 4] / 1e4;
        let (pairs, expected) = grouped(&pairs, &std::array::from_fn::<f64, 16, _>(product));
        assert_chi_squared(&pairs, &expected);
        // In each target the pattern is the same as with one target.
        if pattern == Pattern::SEQUENTIAL {
            let first: Vec<u64> =
                ios.iter().filter(|io| io.target == 1).map(|io| io.offset / BLOCK).collect();
            assert!(first[..200].windows(2).all(|pair| pair[1] == (pair[0] + 1) % 64));
        }
    }
}

#[test]
fn regions_whose_ios_differ_get_what_each_would_get_alone() {
    let region = |target| Region { target, offset: Bytes(0), length: Bytes(640 * KIB) };
    let kind = |size: u64, read_share, pattern| Kind {
        pattern,
        align: None,
        block_sizes: BlockSizes::one(Bytes(size)),
        read_share,
    };
    let kinds = Vec::from([
        kind(8 * KIB, 0.7, Pattern::RANDOM),
        kind(64 * KIB, 0.0, Pattern::SEQUENTIAL),
        kind(4 * KIB, 1.0, Pattern::Interlocked { stride: None }),
    ]);
    let weights = [60.0, 10.0, 30.0];
    let stream = Stream {
        turns: Turns::Weighted(weights.to_vec()),
        ios: Ios::ByRegion(kinds),
        ..Stream::reading("kinds", (0..3).map(region).collect())
    };
    let stream = with_workers(1, stream);
    let ios = issued(&stream, 100_000).concat();
    let of = |target| ios.iter().filter(move |io| io.target == target);
    let counts = [0, 1, 2].map(|target| of(target).count() as u64);
    assert_chi_squared(&counts, &weights.map(|weight| ios.len() as f64 * weight / 100.0));
    // The data: random, 70 % reads of 8 KiB.
    let mut places = vec![0; 80];
    of(0).for_each(|io| places[(io.offset / (8 * KIB)) as usize] += 1);
    assert!(of(0).all(|io| u64::from(io.length) == 8 * KIB && io.offset % (8 * KIB) == 0));
    assert_chi_squared(&places, &[counts[0] as f64 / 80.0; 80]);
    let reads = of(0).filter(|io| io.direction == Direction::Read).count() as u64;
    let both = [reads, counts[0] - reads];
    assert_chi_squared(&both, &[0.7, 0.3].map(|share| share * counts[0] as f64));
    // The log: one write of 64 KiB after the other.
    assert!(of(1).all(|io| u64::from(io.length) == 64 * KIB && io.direction == Direction::Write));
    assert!(of(1).map(|io| io.offset / (64 * KIB)).eq((0..10).cycle().take(counts[1] as usize)));
    assert!(of(2).map(|io| io.offset / (4 * KIB)).eq((0..160).cycle().take(counts[2] as usize)));
    assert!(of(2).all(|io| io.direction == Direction::Read));
    // The offsets do not depend on the number that is drawn at once.
    assert_eq!(requests(&stream, &[100]), requests(&stream, &[1; 100]));
}

#[test]
fn parts_get_their_shares_and_each_is_what_it_would_be_alone() {
    let region = |target| Region { target, offset: Bytes(0), length: Bytes(640 * KIB) };
    let part = |weight, size: u64, read_share, pattern| Part {
        weight,
        kind: Kind { pattern, align: None, block_sizes: BlockSizes::one(Bytes(size)), read_share },
    };
    let parts = Vec::from([
        part(6.0, 8 * KIB, 0.7, Pattern::RANDOM),
        part(1.0, 64 * KIB, 0.0, Pattern::SEQUENTIAL),
        part(3.0, 4 * KIB, 1.0, Pattern::Interlocked { stride: None }),
    ]);
    let stream = Stream::reading("parts", (0..2).map(region).collect());
    let stream = with_workers(1, Stream { ios: Ios::Drawn(parts), ..stream });
    let ios = issued(&stream, 100_000).concat();
    let of = |size: u64| ios.iter().filter(move |io| u64::from(io.length) == size * KIB);
    let counts = [8, 64, 4].map(|size| of(size).count() as u64);
    assert_chi_squared(&counts, &[0.6, 0.1, 0.3].map(|share| share * ios.len() as f64));
    // Which part comes next does not depend on the one before: pairs have the products.
    let place =
        |io: &Io| [8 * KIB, 64 * KIB, 4 * KIB].iter().position(|s| *s == u64::from(io.length));
    let mut pairs = [0; 9];
    ios.chunks_exact(2).for_each(|two| {
        pairs[3 * place(&two[0]).unwrap() + place(&two[1]).unwrap()] += 1;
    });
    let share = [0.6, 0.1, 0.3];
    let product = |pair: usize| ios.len() as f64 / 2.0 * share[pair / 3] * share[pair % 3];
    assert_chi_squared(&pairs, &std::array::from_fn::<f64, 9, _>(product));
    // Each part takes the targets in turn.
    for size in [8, 64, 4] {
        assert!(of(size).map(|io| io.target).eq((0..2).cycle().take(of(size).count())));
    }
    let mut places = vec![0; 80];
    of(8).for_each(|io| places[(io.offset / (8 * KIB)) as usize] += 1);
    assert_chi_squared(&places, &[counts[0] as f64 / 80.0; 80]);
    let reads = of(8).filter(|io| io.direction == Direction::Read).count() as u64;
    let both = [reads, counts[0] - reads];
    assert_chi_squared(&both, &[0.7, 0.3].map(|share| share * counts[0] as f64));
    // A sequential part continues where it ended, even if other I/Os came between.
    for target in 0..2 {
        let places = |size: u64| {
            of(size).filter(move |io| io.target == target).map(move |io| io.offset / (size * KIB))
        };
        assert!(places(64).eq((0..10).cycle().take(places(64).count())));
        assert!(places(4).eq((0..160).cycle().take(places(4).count())));
    }
    assert!(of(64).all(|io| io.direction == Direction::Write));
    assert!(of(4).all(|io| io.direction == Direction::Read));
    // The offsets do not depend on the number that is drawn at once.
    assert_eq!(requests(&stream, &[100]), requests(&stream, &[1; 100]));
}

// By chance.

#[test]
fn uniform_ios_go_everywhere_as_often() {
    let counts = counts(&with_workers(3, stream(Pattern::RANDOM, 500)), 500, 200_000);
    assert_chi_squared(&counts, &expected(&counts, |_| 1.0 / 500.0));
}

#[test]
fn an_alignment_below_or_above_the_block_has_all_its_multiples() {
    for (align, starts) in [(512, 793), (BLOCK, 100), (12 * KIB, 34), (7 * KIB, 57)] {
        let mut stream = stream(Pattern::RANDOM, 100);
        stream.kind_mut().align = Some(Bytes(align));
        let mut counts = vec![0; starts];
        for io in &issued(&stream, 100_000)[0] {
            assert!((io.offset - 2 * BLOCK).is_multiple_of(align));
            counts[((io.offset - 2 * BLOCK) / align) as usize] += 1;
        }
        let expected = expected(&counts, |_| 1.0 / starts as f64);
        assert_chi_squared(&counts, &expected);
    }
}

#[test]
fn without_repetition_every_pass_is_whole_and_in_another_order() {
    const BLOCKS: u64 = 1000;
    let order = blocks(&stream(Pattern::Shuffled, BLOCKS), 20 * BLOCKS);
    let passes: Vec<&[u64]> = order.chunks_exact(BLOCKS as usize).collect();
    for pass in &passes {
        let mut sorted = pass.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..BLOCKS));
    }
    for pair in passes.windows(2) {
        let same = pair[0].iter().zip(pair[1]).filter(|(a, b)| a == b).count();
        assert!(same < 12, "{same} of 1000 blocks at the same place of two passes");
    }
    // The first ten blocks of a pass are anywhere.
    let mut tenths = [0; 10];
    let first = |pass: &&[u64]| pass[..10].to_vec();
    passes.iter().flat_map(first).for_each(|block| tenths[(block / 100) as usize] += 1);
    assert_chi_squared(&tenths, &[passes.len() as f64; 10]);
}

#[test]
fn several_workers_without_repetition_share_the_region_out() {
    const BLOCKS: u64 = 1003;
    let all = issued(&with_workers(4, stream(Pattern::Shuffled, BLOCKS)), 40_000);
    let mut owners = BTreeMap::new();
    for (worker, ios) in all.iter().enumerate() {
        let own = (BLOCKS as usize - worker).div_ceil(4);
        for pass in ios.chunks_exact(own) {
            let offsets: std::collections::BTreeSet<u64> =
                pass.iter().map(|io| io.offset).collect();
            assert_eq!(offsets.len(), own, "worker {worker} came to a block twice in a pass");
            for offset in offsets {
                assert_eq!(*owners.entry(offset).or_insert(worker), worker);
            }
        }
    }
    assert!(owners.into_keys().eq((2..2 + BLOCKS).map(|block| block * BLOCK)));
}

/// The probability of each rank, from 0.
fn zipf_probabilities(count: u64, theta: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-theta)).collect();
    let total: f64 = weights.iter().rev().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

#[test]
fn zipf_has_its_frequencies_over_the_whole_range_of_theta_and_of_counts() {
    for count in [1, 2, 3, 10, 1000, 30_000] {
        for theta in [0.0, 0.1, 0.5, 0.99, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.2, 2.0, 3.5, 10.0] {
            let pattern = random(zipf(theta, Order::Clustered));
            let counts = counts(&stream(pattern, count), count, 100_000);
            let probabilities = zipf_probabilities(count, theta);
            let expected = expected(&counts, |rank| probabilities[rank as usize]);
            let (counts, expected) = grouped(&counts, &expected);
            assert_chi_squared(&counts, &expected);
        }
    }
}

#[test]
fn the_slope_of_zipf_is_theta_within_a_percent() {
    for theta in [0.6, 0.9, 1.0, 1.1, 1.5] {
        let pattern = random(zipf(theta, Order::Clustered));
        let counts = counts(&stream(pattern, 100_000), 100_000, 2_000_000);
        // Least squares over the logarithms. Each rank is weighted by its count, which is the
        // reciprocal of the variance of its logarithm.
        let often = counts.iter().enumerate().filter(|(_, n)| **n >= 100);
        let points: Vec<(f64, f64, f64)> =
            often.map(|(rank, &n)| ((rank as f64 + 1.0).ln(), (n as f64).ln(), n as f64)).collect();
        assert!(points.len() > 20, "{theta}: {} ranks", points.len());
        let weight: f64 = points.iter().map(|(.., w)| w).sum();
        let mean_x = points.iter().map(|(x, _, w)| x * w).sum::<f64>() / weight;
        let mean_y = points.iter().map(|(_, y, w)| y * w).sum::<f64>() / weight;
        let xy: f64 = points.iter().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
        let xx: f64 = points.iter().map(|(x, _, w)| w * (x - mean_x).powi(2)).sum();
        let slope = -xy / xx;
        assert!((slope / theta - 1.0).abs() < 0.01, "{theta}: a slope of {slope}");
    }
}

#[test]
fn spread_ranks_lie_anywhere_and_all_workers_agree_on_them() {
    let stream = with_workers(3, stream(random(zipf(1.1, Order::Spread)), 10_000));
    let hottest = |ios: &Vec<Io>| -> Vec<u64> {
        let mut counts = BTreeMap::new();
        ios.iter().for_each(|io| *counts.entry(io.offset / BLOCK).or_insert(0_u64) += 1);
        let mut ranked: Vec<(u64, u64)> = counts.into_iter().map(|(b, n)| (n, b)).collect();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        ranked.into_iter().take(5).map(|(_, block)| block).collect()
    };
    let all = issued(&stream, 600_000);
    let [first, second, third] = [0, 1, 2].map(|worker| hottest(&all[worker]));
    assert!(first == second && second == third, "{first:?} {second:?} {third:?}");
    assert!(first.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 10), "{first:?}");
    // The frequencies are those of the ranks, independent of their places.
    let mut counts = vec![0_u64; 10_000];
    all.iter().flatten().for_each(|io| counts[(io.offset / BLOCK - 2) as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let probabilities = zipf_probabilities(10_000, 1.1);
    let expected = expected(&counts, |rank| probabilities[rank as usize]);
    // Sorting does not disturb ranks as far apart as these.
    assert_chi_squared(&counts[..8], &expected[..8]);
}

#[test]
fn pareto_has_its_shares_within_shares() {
    for h in [0.1_f64, 0.2, 0.5, 0.8] {
        let pattern = random(Distribution::Pareto { h, order: Order::Clustered });
        let counts = counts(&stream(pattern, 1000), 1000, 200_000);
        let power = (1.0 - h).ln() / h.ln();
        let below = |place: u64| (place as f64 / 1000.0).powf(power);
        let expected = expected(&counts, |place| below(place + 1) - below(place));
        let all = counts.iter().sum::<u64>() as f64;
        let hot = counts[..(1000.0 * h) as usize].iter().sum::<u64>() as f64;
        assert!((hot / all - (1.0 - h)).abs() < 0.006, "{h}: {hot} of {all}");
        let (counts, expected) = grouped(&counts, &expected);
        assert_chi_squared(&counts, &expected);
    }
}

#[test]
fn normal_is_a_bell_without_what_lies_outside() {
    for (deviation, center) in [(0.1, 0.5), (0.02, 0.25), (0.3, 0.0), (0.5, 1.0), (1.0, 0.7)] {
        let pattern = random(Distribution::Normal { deviation, center });
        let counts = counts(&stream(pattern, 1000), 1000, 200_000);
        let density = |x: f64| (-0.5 * ((x - center) / deviation).powi(2)).exp();
        // Simpson's rule over each block.
        let weight = |place: u64| {
            let x = place as f64 / 1000.0;
            density(x) + 4.0 * density(x + 0.0005) + density(x + 0.001)
        };
        let total: f64 = (0..1000).map(weight).sum();
        let expected = expected(&counts, |place| weight(place) / total);
        let (counts, expected) = grouped(&counts, &expected);
        assert_chi_squared(&counts, &expected);
    }
}

#[test]
fn hot_ranges_get_their_shares_and_holes_nothing() {
    // (ranges, for each block range its end and its share)
    let tail = [(100, 0.9), (500, 0.0), (1000, 0.1)];
    let whole = [(200, 0.5), (300, 0.2), (1000, 0.3)];
    // A start belongs to the range that it lies in: block 7 begins before 30,000.
    let cut = [(7, 0.6), (1000, 0.4)];
    let beyond = [(500, 1.0 / 3.0), (1000, 2.0 / 3.0)];
    let tiny = [(1, 0.5), (1000, 0.5)];
    for (distribution, ranges) in [
        (in_share(&[(0.9, 0.1), (0.0, 0.4)]), &tail[..]),
        (in_share(&[(0.5, 0.2), (0.2, 0.1), (0.3, 0.7)]), &whole),
        (in_size(&[(0.9, 100 * BLOCK), (0.0, 400 * BLOCK)]), &tail),
        (in_size(&[(0.6, 30_000)]), &cut),
        // Ranges beyond the region leave their I/Os to the others.
        (in_size(&[(0.2, 500 * BLOCK), (0.4, 2000 * BLOCK), (0.4, 1)]), &beyond),
        // A range without a start of its own.
        (in_share(&[(0.5, 0.0001)]), &tiny),
    ] {
        let counts = counts(&stream(random(distribution.clone()), 1000), 1000, 200_000);
        let mut first = 0;
        let (mut of_range, mut shares) = (Vec::new(), Vec::new());
        let all = counts.iter().sum::<u64>() as f64;
        for &(end, share) in ranges {
            let part = &counts[first..end];
            let sum: u64 = part.iter().sum();
            if share == 0.0 {
                assert_eq!(sum, 0, "{distribution:?}: a hole");
            } else {
                of_range.push(sum);
                shares.push(all * share);
                if distribution != in_share(&[(0.5, 0.0001)]) {
                    let mean = sum as f64 / part.len() as f64;
                    assert_chi_squared(part, &vec![mean; part.len()]);
                }
            }
            first = end;
        }
        assert_chi_squared(&of_range, &shares);
    }
}

// Mixed.

#[test]
fn sequential_runs_between_random_ios_are_geometric_and_of_one_direction() {
    for share in [0.05, 0.2, 0.8] {
        let pattern = Pattern::Mixed { random_share: share, distribution: Distribution::Uniform };
        // So large that a random I/O hardly ever continues a run.
        let mut stream = stream(pattern, 1 << 34);
        stream.kind_mut().read_share = 0.7;
        let ios = &issued(&stream, 500_000)[0];
        let mut lengths = vec![0_u64; 400];
        let mut length = 0;
        let (mut runs, mut reads) = (0.0, 0.0);
        for pair in ios.windows(2) {
            length += 1;
            if pair[1].offset == pair[0].offset + BLOCK {
                assert_eq!(pair[1].direction, pair[0].direction);
            } else {
                lengths[length.min(400) - 1] += 1;
                length = 0;
                runs += 1.0;
                reads += f64::from(u8::from(pair[1].direction == Direction::Read));
            }
        }
        let expected = expected(&lengths, |more| match more {
            399 => (1.0 - share).powi(399),
            more => share * (1.0 - share).powi(more as i32),
        });
        let (lengths, expected) = grouped(&lengths, &expected);
        assert_chi_squared(&lengths, &expected);
        // Five standard deviations.
        let ios = ios.len() as f64;
        assert!((runs / ios - share).abs() < 5.0 * (share * (1.0 - share) / ios).sqrt());
        assert!((reads / runs - 0.7).abs() < 5.0 * (0.21 / runs).sqrt());
    }
}

#[test]
fn mixed_random_ios_follow_their_distribution() {
    let distribution = in_share(&[(0.9, 0.1)]);
    let pattern = Pattern::Mixed { random_share: 0.5, distribution };
    let stream = stream(pattern, 1 << 30);
    let ios = &issued(&stream, 100_000)[0];
    let jumps = ios.windows(2).filter(|pair| pair[1].offset != pair[0].offset + BLOCK);
    let mut counts = [0_u64; 2];
    jumps.for_each(|pair| {
        counts[usize::from(pair[1].offset - 2 * BLOCK >= (BLOCK << 30) / 10)] += 1;
    });
    let all = (counts[0] + counts[1]) as f64;
    assert_chi_squared(&counts, &[0.9 * all, 0.1 * all]);
}

// Everything.

fn any_distribution() -> impl Strategy<Value = Distribution> {
    let order = prop_oneof![Just(Order::Spread), Just(Order::Clustered)];
    prop_oneof![
        Just(Distribution::Uniform),
        (0.0..=10.0, order.clone()).prop_map(|(theta, order)| zipf(theta, order)),
        (0.01..0.99, order).prop_map(|(h, order)| Distribution::Pareto { h, order }),
        (0.01..=1.0, 0.0..=1.0)
            .prop_map(|(deviation, center)| Distribution::Normal { deviation, center }),
        (0.0..=1.0, 0.01..0.99).prop_map(|(ios, part)| in_share(&[(ios, part)])),
        (0.0..=1.0, 1..1_u64 << 20).prop_map(|(ios, size)| in_size(&[(ios, size)])),
    ]
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    let stride = prop::option::of((1..1_u64 << 18).prop_map(Bytes));
    let starts =
        prop_oneof![Just(Starts::Spread), (1..1_u64 << 12).prop_map(Bytes).prop_map(Starts::Apart)];
    prop_oneof![
        (stride.clone(), starts, any::<bool>()).prop_map(|(stride, starts, backward)| {
            Pattern::Sequential(Sequence { stride, starts, backward, visits: None })
        }),
        stride.prop_map(|stride| Pattern::Interlocked { stride }),
        Just(Pattern::Shuffled),
        any_distribution().prop_map(Pattern::Random),
        (0.01..0.99, any_distribution())
            .prop_map(|(random_share, distribution)| Pattern::Mixed { random_share, distribution }),
    ]
}

prop_compose! {
    /// A stream of any pattern. The lengths of its regions need not be multiples of anything.
    fn any_stream()(
        pattern in any_pattern(),
        sizes in prop::collection::vec((1..40_000_u64, 0.1..10.0), 1..4),
        align in prop::option::of(1..100_000_u64),
        zones in any::<bool>(),
        workers in 1..5_u32,
        read_share in prop_oneof![Just(1.0), 0.0..1.0],
        regions in prop::collection::vec((0..1_u64 << 40, 0..1_u64 << 22), 1..4),
        weights in prop::option::of(prop::collection::vec(0.001..1000.0, 3)),
    ) -> Stream {
        let sizes: Vec<(Bytes, f64)> =
            sizes.into_iter().map(|(size, weight)| (Bytes(size), weight)).collect();
        let block_sizes = BlockSizes::weighted(&sizes, &sizes[..1]);
        let largest = block_sizes.largest().0;
        let region = |(offset, more)| {
            Region { target: 0, offset: Bytes(offset), length: Bytes(largest + more) }
        };
        let align = align.filter(|_| pattern.is_aligned()).map(Bytes);
        Stream { ios: Kind { pattern, block_sizes, align, read_share }.into(), zones, turns: weights.map_or(Turns::InTurn, |mut weights: Vec<f64>| {
                weights.truncate(regions.len());
                Turns::Weighted(weights)
            }), workers: Workers::Total(workers), pacing: Pacing::closed(workers), ..Stream::reading("any", regions.into_iter().map(region).collect()) }
    }
}

/// The first requests of each worker, this many drawn at once.
fn requests(stream: &Stream, pieces: &[usize]) -> Vec<Vec<Request>> {
    let point = Point::of(Vec::from([stream.clone()]), Span::from_secs(1));
    let pointers = Pointers::new(&point);
    let drawn = |plan| {
        let mut source = source(&point.streams[0], plan, &pointers);
        let mut drawn = Vec::new();
        for &count in pieces {
            let mut piece = vec![Request::default(); count];
            source.draw(&mut piece);
            drawn.extend(piece);
        }
        drawn
    };
    plan::divide(&point).iter().map(drawn).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_io_leaves_its_region_and_every_random_one_is_aligned(stream in any_stream()) {
        prop_assume!(check_pattern(&stream).is_ok());
        let point = Point::of(Vec::from([stream.clone()]), Span::from_secs(1));
        let plans = plan::divide(&point);
        let all = requests(&stream, &[64, 1, 35]);
        for (plan, requests) in plans.iter().zip(&all) {
            for request in requests {
                let region = plan.regions[request.region()];
                let from = request.offset.checked_sub(region.offset.0).expect("it is not before");
                prop_assert!(from + u64::from(request.length()) <= region.length.0);
                let always = matches!(stream.pattern(), Pattern::Random(_) | Pattern::Shuffled);
                if always || stream.align().is_some() && from > 0 {
                    prop_assert!(from.is_multiple_of(stream.alignment().0), "{request:?}");
                }
            }
        }
        // The same seed gives the same I/O, with any number drawn at once.
        prop_assert_eq!(&requests(&stream, &[100]), &all);
        prop_assert_eq!(&requests(&stream, &[1; 100]), &all);
    }
}

// On a file.

/// The I/Os that the workers of a run gave to a file.
static SEEN: Mutex<Vec<Vec<Io>>> = Mutex::new(Vec::new());

impl RealBackend for Spy<Sync> {
    const KIND: BackendKind = BackendKind::Sync;

    fn open(targets: &[OpenTarget], shape: &Shape) -> std::io::Result<Self> {
        Ok(Self { backend: Sync::open(targets, shape)?, seen: Vec::new() })
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.backend.write_buffer(slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.backend.read_buffer(slot)
    }

    fn pace(&mut self, pace: Pace) {
        self.backend.pace(pace);
    }

    fn waits(&self) -> Waits {
        // The run asks for the waits once, at its end.
        let seen = self.seen.clone();
        SEEN.lock().expect("no worker panics").push(seen);
        self.backend.waits()
    }
}

/// The I/Os that each worker of the stream gave to a file in a tenth of a second. The workers are
/// in no order.
fn issued_to_a_file(stream: &Stream) -> Vec<Vec<Io>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("target");
    let size = stream.regions[0].offset.0 + stream.regions[0].length.0;
    std::fs::write(&path, vec![7; size as usize]).expect("a temporary folder has room");
    let file = std::fs::File::open(&path).expect("it was just written");
    let (name, alignment) = ("target".to_owned(), Bytes(1));
    let target =
        OpenTarget { name, file: file.into(), size: Bytes(size), alignment, passthrough: None };
    let point = Point { seed: 3, ..Point::of(Vec::from([stream.clone()]), Span::from_ms(100)) };
    let never = AtomicBool::new(false);
    // On a busy machine a window this short may have no I/O.
    let completed = (0..100).any(|_| {
        SEEN.lock().expect("no worker panics").clear();
        let targets = std::slice::from_ref(&target);
        let record = run_on::<Spy<Sync>>(&point, targets, &never, &mut Nobody).expect("it runs");
        assert_eq!(record.ledger().failed, 0);
        record.ledger().completed > 0
    });
    assert!(completed, "one of a hundred windows has an I/O");
    std::mem::take(&mut *SEEN.lock().expect("no worker panics"))
}

#[test]
fn what_a_file_is_given_is_what_was_described() {
    const BLOCKS: u64 = 61;
    let place = |io: &Io| (io.offset - 2 * BLOCK) / BLOCK;
    let on_file =
        |pattern, workers| issued_to_a_file(&with_workers(workers, stream(pattern, BLOCKS)));
    // One after the other, from any of the workers.
    let all = on_file(Pattern::Interlocked { stride: None }, 3);
    let mut counts = vec![0; BLOCKS as usize];
    all.iter().flatten().for_each(|io| counts[place(io) as usize] += 1);
    let ios: u64 = counts.iter().sum();
    for (block, count) in counts.into_iter().enumerate() {
        assert_eq!(count, ios / BLOCKS + u64::from((block as u64) < ios % BLOCKS));
    }
    for ios in on_file(Pattern::SEQUENTIAL, 2) {
        assert!(ios.windows(2).all(|pair| place(&pair[1]) == (place(&pair[0]) + 1) % BLOCKS));
    }
    let all = on_file(Pattern::Shuffled, 1);
    for pass in all[0].chunks_exact(BLOCKS as usize) {
        let blocks: std::collections::BTreeSet<u64> = pass.iter().map(place).collect();
        assert_eq!(blocks.len(), BLOCKS as usize);
    }
    // The same as in the simulator, as far as both went.
    for pattern in [Pattern::RANDOM, random(zipf(1.1, Order::Spread)), Pattern::Shuffled] {
        let stream = stream(pattern, BLOCKS);
        let once = issued_to_a_file(&stream);
        let again = issued_to_a_file(&stream);
        let both = once[0].len().min(again[0].len());
        let offset = |io: &Io| (io.offset, io.length, io.direction);
        assert!(once[0][..both].iter().map(offset).eq(again[0][..both].iter().map(offset)));
    }
}
