//! The data-reduction probe: the same writes with unique data, with data of which something can be
//! saved, and with zeros, in alternation, to see whether the target saves on the latter.
//!
//! Each pass writes each kind once, in random order; every second pass has the order of the one
//! before it, reversed, so that drift cancels out of the differences. Kinds are compared within
//! each pass. First everything is written once, because first writes may allocate; and once more at
//! the end, so that unique data is left there.

use super::sweep::order;
use super::{Conclusion, Experiment, Forecast, PassOrder, Planned, Step};
use crate::facts::{Layer, LayerKind, Reduction, Saving, Target};
use crate::measure::Direction;
use crate::spec::{
    Access, BlockSizes, Kind, Limit, Pacing, Pattern, Payload, Point, Region, Stream,
};
use crate::stats::{self, Ratio, bandwidth};
use crate::trial::{Place, Role, Trial};
use crate::units::{Bytes, Span};

/// How often each kind is written.
const PASSES: u32 = 6;
/// The size of one write. Systems that compress or deduplicate examine at most this much together,
/// with their defaults (btrfs and ZFS 128 KiB, VDO 4 KiB).
const BLOCK: Bytes = Bytes(128 * Bytes::KIB);
/// I/Os in flight: about as much memory as the buffers of random data use, so that no kind comes
/// from the processor's caches alone.
const QUEUE_DEPTH: u32 = 32;
/// The most bytes of one trial, and its longest time.
const EACH: Bytes = Bytes(128 * Bytes::MIB);
const WINDOW: Span = Span::from_ms(500);
/// The longest time of writing unique data at the ends.
const WHOLE: Span = Span::from_secs(30);
/// The share of each block that a compressor saves, for the kind that it can save on.
const COMPRESSIBLE: f64 = 0.75;
/// The comparisons: four ratios, each by speed and by the bytes at the top and at the bottom.
const LOOKS: usize = 12;
/// A share of the requested bytes below this counts as this: a ratio needs a number above zero.
const LEAST: f64 = 0.01;

/// The kinds of data, by their places.
const KINDS: [(&str, Payload); 4] = [
    ("unique data", Payload::UNIQUE),
    ("compressible data", Payload::Random { compressible: COMPRESSIBLE, dedup: 0.0 }),
    // Made by the same code as unique data, so that it costs as much to make.
    ("a few blocks over and over", Payload::Random { compressible: 0.0, dedup: 1.0 }),
    ("zeros", Payload::Zeros),
];
const UNIQUE: usize = 0;
const COMPRESSIBLE_ONES: usize = 1;
const REPEATED: usize = 2;
const ZEROS: usize = 3;

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProbeReading {
    /// Bytes per second.
    speed: f64,
    /// Bytes that reached the device that holds the target, and those at the bottom, of each that
    /// was written.
    reached: [Option<f64>; 2],
    /// Bytes that a compressing device holds afterwards, if all of the region was written.
    held: Option<f64>,
}

/// The probe at work, on one target.
#[derive(Clone, Debug, PartialEq)]
pub struct ReductionProbe {
    region: Region,
    access: Access,
    seed: u64,
    /// The device that holds the target, and those at the bottom, whose counters show the bytes
    /// that reached them; empty if there are no counters.
    devices: [Vec<(u32, u32)>; 2],
    /// The pass and the kind of each trial; no pass for the trials at the ends.
    turns: Vec<(Option<usize>, usize)>,
    done: usize,
    /// The results of each kind in each pass.
    passes: Vec<[Option<ProbeReading>; KINDS.len()]>,
}

impl ReductionProbe {
    /// A probe of the beginning of a region of a target, with this access; none if there is no room
    /// for a block.
    pub fn new(region: Region, target: &Target, access: Access, seed: u64) -> Option<Self> {
        let length = region.length.0.min(EACH.0);
        let region = Region { length: Bytes(length - length % BLOCK.0), ..region };
        let numbers = |layers: Vec<&Layer>| match layers.iter().all(|layer| is_counted(layer)) {
            true => layers.iter().filter_map(|layer| layer.device).collect(),
            false => Vec::new(),
        };
        // A file system saves above the first device; a layer between saves above the last one.
        let devices =
            [target.layers.first().into_iter().collect(), target.disks().collect()].map(numbers);
        let mut turns = Vec::from([(None, UNIQUE)]);
        let mut order = Vec::new();
        for pass in 0..PASSES {
            match pass % 2 {
                0 => order = order::order(KINDS.len(), pass, (PassOrder::Shuffled, seed)),
                _ => order.reverse(),
            }
            turns.extend(order.iter().map(|&kind| (Some(pass as usize), kind)));
        }
        turns.push((None, UNIQUE));
        (region.length > Bytes(0)).then(|| Self {
            region,
            access,
            seed,
            devices,
            turns,
            done: 0,
            passes: vec![Default::default(); PASSES as usize],
        })
    }

    /// The target that it writes to.
    pub fn region(&self) -> Region {
        self.region
    }

    /// The most bytes that it writes.
    pub fn writes_at_most(&self) -> Bytes {
        Bytes(self.region.length.0 * self.turns.len() as u64)
    }

    /// Its longest time if the target keeps up: the ends are written in any case.
    pub fn takes_about(&self) -> Span {
        Span(WINDOW.0 * self.turns.len() as u64)
    }

    /// A point of it, with which its target can be opened.
    pub fn point(&self) -> Point {
        self.planned(0)
    }

    fn planned(&self, turn: usize) -> Point {
        let (pass, kind) = self.turns[turn];
        let (name, payload) = KINDS[kind].clone();
        let stream = Stream {
            ios: Kind {
                pattern: Pattern::SEQUENTIAL,
                block_sizes: BlockSizes::one(BLOCK),
                read_share: 0.0,
                ..Kind::default()
            }
            .into(),
            payload,
            pacing: Pacing { limit: Some(Limit::Passes(1)), ..Pacing::closed(QUEUE_DEPTH) },
            access: self.access,
            ..Stream::reading(format!("probe: {name}"), Vec::from([self.region]))
        };
        let window = if pass.is_some() { WINDOW } else { WHOLE };
        Point {
            interval: Span::from_ms(50),
            // Unique over all passes: the data of one pass must not be a copy for the next one.
            seed: self.seed.wrapping_add(turn as u64),
            ..Point::of(Vec::from([stream]), window)
        }
    }

    fn read(&self, trial: &Trial) -> Option<ProbeReading> {
        let record = &trial.record;
        let asked = record.total(Some(Direction::Write)).bytes.0 as f64;
        let speed = bandwidth(record, None, Some(Direction::Write))?.value;
        if record.errors() > 0 || asked <= 0.0 || speed <= 0.0 {
            return None;
        }
        let counted = || trial.counters.iter().flat_map(|counters| &counters.devices);
        let reached = |wanted: &Vec<(u32, u32)>| -> Option<f64> {
            let own = counted().filter(|device| wanted.contains(&device.device));
            let written: Vec<u64> = own.map(|device| device.written_bytes.0).collect();
            let is_known = !wanted.is_empty() && written.len() == wanted.len();
            is_known.then(|| written.iter().sum::<u64>() as f64 / asked)
        };
        let is_whole = self.region.length.0 as f64 <= asked;
        let held = counted().find_map(|device| device.held).filter(|_| is_whole);
        Some(ProbeReading {
            speed,
            reached: [reached(&self.devices[0]), reached(&self.devices[1])],
            held: held.map(|held| held.0 as f64),
        })
    }

    /// One kind against another, over all passes.
    fn compared(&self, kind: usize, other: usize) -> Saving {
        let pairs = || self.passes.iter().filter_map(|pass| Some((pass[kind]?, pass[other]?)));
        let ratio = |of: &dyn Fn(&ProbeReading, &ProbeReading) -> Option<f64>| -> Option<Ratio> {
            let logarithms: Vec<f64> =
                pairs().filter_map(|(one, other)| of(&one, &other)).map(f64::ln).collect();
            stats::of_pairs(&logarithms, LOOKS)
        };
        let length = self.region.length.0 as f64;
        // Of all bytes written, the held bytes in relation to those of the other kind.
        let held = ratio(&|one, other| Some((1.0 - (other.held? - one.held?) / length).max(LEAST)));
        if held.is_some() {
            return Saving { speed: None, reached: held };
        }
        let reached = [0, 1].map(|at| {
            ratio(&|one, other| Some(one.reached[at]?.max(LEAST) / other.reached[at]?.max(LEAST)))
        });
        // All intervals hold at once, so that the most informative one may be chosen.
        let reached = reached.into_iter().flatten().min_by(|a, b| a.high.total_cmp(&b.high));
        Saving { speed: ratio(&|one, other| Some(one.speed / other.speed)), reached }
    }

    /// The results so far.
    pub fn found(&self) -> Reduction {
        Reduction {
            passes: PASSES,
            compressible: self.compared(COMPRESSIBLE_ONES, UNIQUE),
            repeated: self.compared(REPEATED, UNIQUE),
            zeros: self.compared(ZEROS, UNIQUE),
            zeros_to_repeated: self.compared(ZEROS, REPEATED),
        }
    }
}

/// Whether the kernel counts the bytes below a layer's users. Zram counts the bytes requested; the
/// bytes that it holds are reported separately.
fn is_counted(layer: &Layer) -> bool {
    let counts = layer.queue.as_ref().and_then(|queue| queue.counts);
    counts != Some(false) && layer.kind != LayerKind::Zram
}

impl Experiment for ReductionProbe {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            if let (Some(pass), kind) = self.turns[self.done] {
                self.passes[pass][kind] = self.read(trial);
            }
            self.done += 1;
        }
        if self.done == self.turns.len() {
            return Step::Done(self.so_far());
        }
        let place = Place { role: Role::Probe, ..Place::default() };
        let point = self.planned(self.done);
        Step::Run(Box::new(Planned { point, place, rest: Span(0) }))
    }

    fn forecast(&self) -> Forecast {
        let left = (self.done..self.turns.len()).map(|turn| self.planned(turn).time());
        let points = left.len() as u32;
        let time = Span(WINDOW.0 * u64::from(points));
        let time_at_most = left.fold(Span(0), |sum, time| sum + time);
        Forecast { points, points_at_most: points, time, time_at_most }
    }

    fn so_far(&self) -> Conclusion {
        Conclusion { sentences: self.found().sentences(), found: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;
    use crate::facts::Answer;
    use crate::verdict::testing::Invented;

    /// A device that moves these shares of each kind of data at 1000 MB/s, with this noise between
    /// trials.
    struct Invention {
        moves: [f64; 4],
        noise: f64,
        drift: f64,
        /// Whether its counters show the moved bytes, and its speed shows nothing.
        by_bytes: bool,
    }

    const ALIKE: Invention = Invention { moves: [1.0; 4], noise: 0.0, drift: 0.0, by_bytes: false };

    fn probe(seed: u64, target: &Target) -> ReductionProbe {
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(Bytes::GIB) };
        ReductionProbe::new(region, target, Access::DIRECT, seed).unwrap()
    }

    /// Gives invented probe trials to the probe, and returns what it found.
    fn run(
        probe: &mut ReductionProbe,
        mut invented: Invented,
        mut make: impl FnMut(usize, &mut Invented),
    ) -> Reduction {
        let mut has_run = false;
        while let Step::Run(planned) = probe.next(has_run.then_some(&invented.trial)) {
            let payload = &planned.point.streams[0].payload;
            let kind = KINDS.iter().position(|(_, one)| one == payload).unwrap();
            invented.trial.point = planned.point;
            make(kind, &mut invented);
            has_run = true;
        }
        probe.found()
    }

    fn found(invention: &Invention, seed: u64) -> Reduction {
        let invented = Invented::writes();
        let asked = invented.trial.record.total(Some(Direction::Write)).bytes.0 as f64;
        let (mut chance, mut turn) = (SplitMix64(seed), 0.0);
        run(&mut probe(seed, &invented.targets[0].clone()), invented, |kind, invented| {
            let moved = invention.moves[kind];
            let speed = if invention.by_bytes { 1.0 } else { 1.0 / moved };
            let noise = (invention.noise * chance.normal()).exp();
            let relative = speed * noise * (1.0 - invention.drift * turn / 26.0);
            invented.trial.record.window = Span((60e9 / relative) as u64);
            let reached = if invention.by_bytes { asked * moved } else { asked };
            invented.device().written_bytes = Bytes(reached as u64);
            turn += 1.0;
        })
    }

    #[test]
    fn what_each_kind_of_device_does_is_found() {
        for (moves, deeds) in [
            ([1.0; 4], "saves on none of them"),
            ([1.0, 0.3, 1.0, 0.1], "compresses"),
            ([1.0, 1.0, 0.1, 0.1], "deduplicates"),
            ([1.0, 1.0, 1.0, 0.1], "skips zeros"),
            ([1.0, 0.3, 0.1, 0.05], "compresses and deduplicates"),
        ] {
            let device = Invention { moves, noise: 0.03, ..ALIKE };
            assert_eq!(found(&device, 1).deeds(), deeds);
        }
        let by_bytes =
            Invention { moves: [1.0, 0.3, 1.0, 0.0], noise: 0.3, by_bytes: true, ..ALIKE };
        assert_eq!(found(&by_bytes, 1).deeds(), "compresses");
    }

    #[test]
    fn devices_that_save_nothing_are_said_to_in_one_of_twenty_probes_at_most() {
        for (noise, drift) in [(0.03, 0.0), (0.1, 0.0), (0.03, 0.5), (0.3, 0.2)] {
            let device = Invention { noise, drift, ..ALIKE };
            let all: Vec<Reduction> = (0..200).map(|seed| found(&device, seed)).collect();
            let wrong = all.iter().filter(|one| one.reduces() == Answer::Yes).count();
            // At 1 of 20, more than 21 of 200 are wrong once in a thousand times.
            assert!(wrong <= 21, "{noise} {drift}: {wrong}");
            let told = all.iter().filter(|one| one.reduces() == Answer::No).count();
            assert!(noise > 0.05 || drift > 0.0 || told > 180, "{noise} {drift}: {told}");
        }
    }

    #[test]
    fn it_stays_in_its_region_and_leaves_unique_data() {
        let target = &Invented::writes().targets[0];
        let mut probe = probe(7, target);
        assert_eq!(probe.writes_at_most(), Bytes(26 * 128 * Bytes::MIB));
        let mut seen: Vec<Point> = Vec::new();
        run(&mut probe, Invented::writes(), |_, invented| seen.push(invented.trial.point.clone()));
        let within = |point: &Point| {
            let stream = &point.streams[0];
            let region = stream.regions[0];
            (region.offset, region.length, stream.pacing.limit)
                == (Bytes(0), EACH, Some(Limit::Passes(1)))
        };
        assert!(seen.len() == 26 && seen.iter().all(within));
        let payload = |place: usize| &seen[place].streams[0].payload;
        assert_eq!((payload(0), payload(25)), (&Payload::UNIQUE, &Payload::UNIQUE));
        for pair in 0..3 {
            let there: Vec<_> = (1 + 8 * pair..5 + 8 * pair).map(payload).collect();
            let back: Vec<_> = (5 + 8 * pair..9 + 8 * pair).rev().map(payload).collect();
            assert_eq!(there, back, "a drift is in both of them");
            assert!(KINDS.iter().all(|(_, kind)| there.contains(&kind)));
        }
        let no_room = Region { target: 0, offset: Bytes(0), length: Bytes(65_536) };
        assert!(ReductionProbe::new(no_room, target, Access::DIRECT, 1).is_none());
    }

    #[test]
    fn what_compressed_memory_holds_tells_what_it_compresses() {
        let mut invented = Invented::writes();
        invented.disk().kind = LayerKind::Zram;
        let mut probe = probe(1, &invented.targets[0].clone());
        let found = run(&mut probe, invented, |kind, invented| {
            // The device also holds other data, all the time.
            let held = 5e9 + [1.0, 0.25, 1.0, 0.0][kind] * EACH.0 as f64;
            invented.device().held = Some(Bytes(held as u64));
        });
        assert_eq!(found.compresses(), Answer::Yes);
        assert_eq!(found.deduplicates(), Answer::No);
        assert!((found.compressible.reached.unwrap().value - 0.25).abs() < 0.01, "{found:?}");
    }
}
