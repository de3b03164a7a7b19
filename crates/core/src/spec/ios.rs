//! What the I/Os of a stream are like: all alike, or different from region to region or by chance.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BlockSizes, Pattern, Stream, Turns};
use crate::measure::Direction;
use crate::units::Bytes;

// What is true of all of them together is asked of the stream: `Stream::read_share`,
// `Stream::block_sizes`.
/// What the I/Os of a stream are like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ios {
    /// All of them are of one kind.
    Alike(Kind),
    /// Those to each region are of a kind of their own: one for each region, in their order.
    ByRegion(Vec<Kind>),
    /// Each is of a part, whatever its region: the part of each I/O is drawn by the weights of the
    /// parts. There is at least one.
    Drawn(Vec<Part>),
}

/// What I/Os are like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// How offsets follow each other.
    pub pattern: Pattern,
    /// Offsets by chance are multiples of this, counted from the region's start; if none, of the
    /// smallest block size.
    #[serde(rename = "align_bytes", default, skip_serializing_if = "super::is_usual")]
    pub align: Option<Bytes>,
    /// Bytes moved by one I/O.
    pub block_sizes: BlockSizes,
    /// Share of reads, from 0 to 1, of the I/Os that are no trims.
    pub read_share: f64,
}

/// A part of a stream's I/Os, such as a line of an access specification of Iometer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// How often an I/O is of this part, against the other parts: above 0.
    pub weight: f64,
    /// What its I/Os are like.
    pub kind: Kind,
}

impl Default for Kind {
    /// Random reads of 4 KiB.
    fn default() -> Self {
        Self {
            pattern: Pattern::RANDOM,
            align: None,
            block_sizes: BlockSizes::one(Bytes(4096)),
            read_share: 1.0,
        }
    }
}

impl From<Kind> for Ios {
    fn from(kind: Kind) -> Self {
        Self::Alike(kind)
    }
}

impl Ios {
    /// The kinds that there are, at least one.
    pub fn kinds(&self) -> Vec<&Kind> {
        match self {
            Self::Alike(kind) => Vec::from([kind]),
            Self::ByRegion(kinds) => kinds.iter().collect(),
            Self::Drawn(parts) => parts.iter().map(|part| &part.kind).collect(),
        }
    }

    /// The kind of the first region or part; of all I/Os where they are alike.
    ///
    /// # Panics
    ///
    /// When there is none, which resolving a spec rules out.
    pub fn first(&self) -> &Kind {
        match self {
            Self::Alike(kind) => kind,
            Self::ByRegion(kinds) => &kinds[0],
            Self::Drawn(parts) => &parts[0].kind,
        }
    }
}

impl Stream {
    /// The kind of all its I/Os, to be changed.
    ///
    /// # Panics
    ///
    /// When they are not alike.
    pub fn kind_mut(&mut self) -> &mut Kind {
        match &mut self.ios {
            Ios::Alike(kind) => kind,
            Ios::ByRegion(_) | Ios::Drawn(_) => panic!("its I/Os are not alike"),
        }
    }

    /// How its offsets follow each other, to the first region or in the first part where they are not
    /// alike.
    pub fn pattern(&self) -> &Pattern {
        &self.ios.first().pattern
    }

    /// What offsets by chance are multiples of where all its I/Os are alike and it was given.
    pub fn align(&self) -> Option<Bytes> {
        match &self.ios {
            Ios::Alike(kind) => kind.align,
            Ios::ByRegion(_) | Ios::Drawn(_) => None,
        }
    }

    /// What offsets by chance are multiples of, counted from the region's start.
    pub fn alignment(&self) -> Bytes {
        self.align().unwrap_or_else(|| self.block_sizes().smallest())
    }

    /// Share of reads, from 0 to 1, of all its I/Os that are no trims.
    pub fn read_share(&self) -> f64 {
        if let Ios::Alike(kind) = &self.ios {
            return kind.read_share;
        }
        let kinds = self.weighted();
        let total: f64 = kinds.iter().map(|(_, weight)| weight).sum();
        let read: f64 = kinds.iter().map(|(kind, weight)| kind.read_share * weight).sum();
        // A sum of shares that are all 1 is 1.
        (read / total).min(1.0)
    }

    /// The block sizes of all its I/Os, and how often they occur.
    pub fn block_sizes(&self) -> Cow<'_, BlockSizes> {
        if let Ios::Alike(kind) = &self.ios {
            return Cow::Borrowed(&kind.block_sizes);
        }
        let kinds = self.weighted();
        let (reads, writes) = (sizes(&kinds, Direction::Read), sizes(&kinds, Direction::Write));
        // What there is none of has the sizes of what there is.
        let or = |one: &[(Bytes, f64)], other: &[(Bytes, f64)]| {
            if one.is_empty() { other.to_vec() } else { one.to_vec() }
        };
        Cow::Owned(BlockSizes::weighted(&or(&reads, &writes), &or(&writes, &reads)))
    }

    /// Its kinds, and how often an I/O is of each.
    fn weighted(&self) -> Vec<(&Kind, f64)> {
        match (&self.ios, &self.turns) {
            (Ios::Alike(kind), _) => Vec::from([(kind, 1.0)]),
            (Ios::ByRegion(kinds), Turns::InTurn) => kinds.iter().map(|kind| (kind, 1.0)).collect(),
            (Ios::ByRegion(kinds), Turns::Weighted(weights)) => {
                kinds.iter().zip(weights.iter().copied()).collect()
            }
            (Ios::Drawn(parts), _) => parts.iter().map(|part| (&part.kind, part.weight)).collect(),
        }
    }

    /// Itself as streams whose I/Os are alike: one for each region or part that has a kind of its own.
    pub fn each_kind(&self) -> Vec<Self> {
        match &self.ios {
            Ios::Alike(_) => Vec::from([self.clone()]),
            Ios::ByRegion(kinds) => (0..kinds.len()).map(|place| self.of_region(place)).collect(),
            Ios::Drawn(parts) => parts.iter().map(|part| self.of_kind(&part.kind)).collect(),
        }
    }

    /// What it does to one of its regions, as a stream that has no other.
    pub fn of_region(&self, place: usize) -> Self {
        let own = match &self.ios {
            Ios::ByRegion(kinds) => self.of_kind(&kinds[place]),
            Ios::Alike(_) | Ios::Drawn(_) => self.clone(),
        };
        Self { regions: Vec::from([self.regions[place]]), turns: Turns::InTurn, ..own }
    }

    fn of_kind(&self, kind: &Kind) -> Self {
        Self { ios: Ios::Alike(kind.clone()), ..self.clone() }
    }
}

/// The sizes of one direction, and how often they occur among I/Os of these kinds.
fn sizes(kinds: &[(&Kind, f64)], direction: Direction) -> Vec<(Bytes, f64)> {
    let mut sizes: Vec<(Bytes, f64)> = Vec::new();
    // A file may have any number of them.
    let mut places = BTreeMap::new();
    for (kind, weight) in kinds {
        let share = match direction {
            Direction::Read => kind.read_share,
            Direction::Write => 1.0 - kind.read_share,
        };
        for one in kind.block_sizes.of(direction) {
            let place = *places.entry(one.size).or_insert(sizes.len());
            if place == sizes.len() {
                sizes.push((one.size, 0.0));
            }
            sizes[place].1 += weight * share * one.share;
        }
    }
    sizes.retain(|(_, share)| *share > 0.0);
    sizes
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
        let stream = Stream { ios: Ios::ByRegion(kinds), ..stream };
        assert!((stream.read_share() - 0.5).abs() < 1e-12);
        let sizes = |direction| -> Vec<(u64, u64)> {
            let sizes = stream.block_sizes();
            let all = sizes.of(direction).iter();
            all.map(|one| (one.size.0, (one.share * 1000.0).round() as u64)).collect()
        };
        assert_eq!(sizes(Direction::Read), [(8192, 1000)]);
        assert_eq!(sizes(Direction::Write), [(8192, 600), (65_536, 400)]);
        let log = stream.of_region(1);
        assert_eq!((log.regions[0].target, log.read_share()), (1, 0.0));
        assert_eq!(
            (log.pattern(), log.block_sizes().only()),
            (&Pattern::SEQUENTIAL, Some(Bytes(65_536)))
        );
        assert_eq!(
            stream.load_in_words(),
            "random 50/50 read/write 8 KiB, sequential write 64 KiB and random read 8 KiB"
        );
        // Without kinds all regions have the same load.
        let alike = Stream::reading("alike", (0..2).map(region).collect());
        assert_eq!(alike.of_region(1).load_in_words(), alike.load_in_words());
        let ios = Ios::ByRegion(vec![kind(4096, 1.0, Pattern::RANDOM); 2]);
        let reads = Stream { ios, ..alike };
        assert_eq!((reads.read_share(), reads.only_direction()), (1.0, Some(Direction::Read)));
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
        let ios = Ios::Drawn(Vec::from([
            part(3.0, 8192, 1.0, Pattern::RANDOM),
            part(1.0, 65_536, 0.0, Pattern::SEQUENTIAL),
        ]));
        let stream = Stream { ios, ..stream };
        assert_eq!((stream.read_share(), stream.regions.len()), (0.75, 2));
        assert_eq!(stream.block_sizes().largest(), Bytes(65_536));
        assert_eq!(stream.load_in_words(), "75 % random read 8 KiB, 25 % sequential write 64 KiB");
        let log = &stream.each_kind()[1];
        assert_eq!((log.read_share(), log.regions.len()), (0.0, 2));
        assert_eq!(log.pattern(), &Pattern::SEQUENTIAL);
        assert_eq!(&log.each_kind()[0], log, "one whose I/Os are alike is all of it");
    }
}
