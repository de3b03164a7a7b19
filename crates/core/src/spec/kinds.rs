//! Streams whose I/Os differ: from region to region, or by chance.

use super::{BlockSizes, Pattern, Stream, Turns};
use crate::measure::Direction;
use crate::units::Bytes;

/// What the I/Os to one region of a stream are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// How offsets follow each other.
    pub pattern: Pattern,
    /// What offsets by chance are multiples of; if none, the smallest block size.
    pub align: Option<Bytes>,
    /// Bytes moved by one I/O.
    pub block_sizes: BlockSizes,
    /// Share of reads, from 0 to 1.
    pub read_share: f64,
}

/// A part of a stream's I/Os, such as a line of an access specification of Iometer.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// How often an I/O is of this part, against the other parts: above 0.
    pub weight: f64,
    /// What its I/Os are like.
    pub kind: Kind,
}

impl Stream {
    /// The same with I/Os of these parts. What the stream says of its I/Os is then true of all of them
    /// together, but for the pattern, which is that of the first part.
    ///
    /// # Panics
    ///
    /// When there is none, or the stream has kinds.
    pub fn with_parts(self, parts: Vec<Part>) -> Self {
        assert!(!parts.is_empty() && self.kinds.is_empty());
        let weighted: Vec<(&Kind, f64)> =
            parts.iter().map(|part| (&part.kind, part.weight)).collect();
        let together = Together::of(&weighted);
        Self { parts, ..together.on(self) }
    }

    /// What it does in one of its parts, as a stream that does nothing else.
    pub fn of_part(&self, place: usize) -> Self {
        let own = Self { parts: Vec::new(), ..self.clone() };
        match self.parts.get(place).cloned() {
            None => own,
            Some(Part { kind, .. }) => own.of_kind(kind),
        }
    }

    fn of_kind(self, kind: Kind) -> Self {
        let Kind { pattern, align, block_sizes, read_share } = kind;
        Self { pattern, align, block_sizes, read_share, ..self }
    }

    /// The same with I/Os of these kinds, one for each region. What the stream says of its I/Os is then
    /// true of all of them together, but for the pattern, which is that of the first region.
    ///
    /// # Panics
    ///
    /// When there is not one for each region.
    pub fn with_kinds(self, kinds: Vec<Kind>) -> Self {
        assert!(kinds.len() == self.regions.len() && !kinds.is_empty());
        let weights: Vec<f64> = match &self.turns {
            Turns::InTurn => vec![1.0; kinds.len()],
            Turns::Weighted(weights) => weights.clone(),
        };
        let weighted: Vec<(&Kind, f64)> = kinds.iter().zip(weights).collect();
        let together = Together::of(&weighted);
        Self { kinds, ..together.on(self) }
    }

    /// What it does to one of its regions, as a stream that has no other.
    pub fn of_region(&self, place: usize) -> Self {
        let own = Self {
            regions: Vec::from([self.regions[place]]),
            turns: Turns::InTurn,
            kinds: Vec::new(),
            ..self.clone()
        };
        match self.kinds.get(place).cloned() {
            None => own,
            Some(kind) => own.of_kind(kind),
        }
    }
}

/// What is true of I/Os of several kinds together.
struct Together {
    pattern: Pattern,
    block_sizes: BlockSizes,
    read_share: f64,
}

impl Together {
    /// Of kinds with their weights, at least one.
    fn of(kinds: &[(&Kind, f64)]) -> Self {
        let shares = |direction: Direction| -> Vec<(Bytes, f64)> {
            let mut sizes: Vec<(Bytes, f64)> = Vec::new();
            for (kind, weight) in kinds {
                let share = match direction {
                    Direction::Read => kind.read_share,
                    Direction::Write => 1.0 - kind.read_share,
                };
                for one in kind.block_sizes.of(direction) {
                    let own = weight * share * one.share;
                    match sizes.iter_mut().find(|(size, _)| *size == one.size) {
                        Some((_, sum)) => *sum += own,
                        None => sizes.push((one.size, own)),
                    }
                }
            }
            sizes.retain(|(_, share)| *share > 0.0);
            sizes
        };
        let (reads, writes) = (shares(Direction::Read), shares(Direction::Write));
        // What there is none of has the sizes of what there is.
        let or = |one: &[(Bytes, f64)], other: &[(Bytes, f64)]| match one.is_empty() {
            true => other.to_vec(),
            false => one.to_vec(),
        };
        let total: f64 = kinds.iter().map(|(_, weight)| weight).sum();
        let read: f64 = kinds.iter().map(|(kind, weight)| kind.read_share * weight).sum();
        Self {
            pattern: kinds[0].0.pattern.clone(),
            block_sizes: BlockSizes::weighted(&or(&reads, &writes), &or(&writes, &reads)),
            // A sum of shares that are all 1 is 1.
            read_share: (read / total).min(1.0),
        }
    }

    fn on(self, stream: Stream) -> Stream {
        let Self { pattern, block_sizes, read_share } = self;
        Stream { pattern, align: None, block_sizes, read_share, ..stream }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Region;

    #[test]
    fn what_a_stream_says_is_true_of_all_of_its_kinds() {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(1 << 20) };
        let kind = |size, read_share, pattern| Kind {
            pattern,
            align: None,
            block_sizes: BlockSizes::one(Bytes(size)),
            read_share,
        };
        let stream = Stream {
            turns: Turns::Weighted(Vec::from([6.0, 2.0, 2.0])),
            ..Stream::reading("kinds", (0..3).map(region).collect())
        };
        let kinds = Vec::from([
            kind(8192, 0.5, Pattern::RANDOM),
            kind(65_536, 0.0, Pattern::SEQUENTIAL),
            kind(8192, 1.0, Pattern::RANDOM),
        ]);
        let stream = stream.with_kinds(kinds);
        assert!((stream.read_share - 0.5).abs() < 1e-12);
        let sizes = |direction| -> Vec<(u64, u64)> {
            let all = stream.block_sizes.of(direction).iter();
            all.map(|one| (one.size.0, (one.share * 1000.0).round() as u64)).collect()
        };
        assert_eq!(sizes(Direction::Read), [(8192, 1000)]);
        assert_eq!(sizes(Direction::Write), [(8192, 600), (65_536, 400)]);
        let log = stream.of_region(1);
        assert_eq!((log.regions[0].target, log.read_share), (1, 0.0));
        assert_eq!(
            (log.pattern, log.block_sizes.only()),
            (Pattern::SEQUENTIAL, Some(Bytes(65_536)))
        );
        assert_eq!(
            stream.load_in_words(),
            "random 50/50 read/write 8 KiB, sequential write 64 KiB and random read 8 KiB"
        );
        // Without kinds all regions have the same.
        let alike = Stream::reading("alike", (0..2).map(region).collect());
        assert_eq!(alike.of_region(1).load_in_words(), alike.load_in_words());
        let reads = alike.with_kinds(vec![kind(4096, 1.0, Pattern::RANDOM); 2]);
        assert_eq!((reads.read_share, reads.only_direction()), (1.0, Some(Direction::Read)));
    }

    #[test]
    fn what_a_stream_says_is_true_of_all_of_its_parts() {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(1 << 20) };
        let part = |weight, size, read_share, pattern| Part {
            weight,
            kind: Kind {
                pattern,
                align: None,
                block_sizes: BlockSizes::one(Bytes(size)),
                read_share,
            },
        };
        let stream = Stream::reading("parts", (0..2).map(region).collect());
        let stream = stream.with_parts(Vec::from([
            part(3.0, 8192, 1.0, Pattern::RANDOM),
            part(1.0, 65_536, 0.0, Pattern::SEQUENTIAL),
        ]));
        assert_eq!((stream.read_share, stream.regions.len()), (0.75, 2));
        assert_eq!(stream.block_sizes.largest(), Bytes(65_536));
        assert_eq!(stream.load_in_words(), "75 % random read 8 KiB, 25 % sequential write 64 KiB");
        let log = stream.of_part(1);
        assert_eq!((log.read_share, log.regions.len(), log.parts.len()), (0.0, 2, 0));
        assert_eq!(log.pattern, Pattern::SEQUENTIAL);
        assert_eq!(log.of_part(0), log, "one without parts is all of it");
    }
}
