//! The content of a session's targets, from samples: taken before the first trial that reads them,
//! and again if a trial may have changed content that was doubtful; and the ranges that were never
//! written, as long as there are any. Decides nothing: the verdict does.

use std::path::PathBuf;

use fathom_core::Bytes;
use fathom_core::facts::{Content, Target, TargetKind};
use fathom_core::measure::Direction;
use fathom_core::spec::{Payload, Point, Stream};
use fathom_core::verdict::{Finding, repeating_pool};
use fathom_engine::host::{self, ByteRange};

use crate::error::Error;
use crate::hanging;

/// The targets with the facts about their content.
pub struct Contents {
    targets: Vec<Target>,
    /// By target: whether it was written to since it was sampled.
    stale: Vec<bool>,
    /// The source files of pools, and their samples, if they could be read.
    pools: Vec<(PathBuf, Option<Content>)>,
}

impl Contents {
    /// Of these targets, some of which were sampled before; none if nothing here can look at them.
    pub fn new(targets: &[Target]) -> Self {
        Self { targets: targets.to_vec(), stale: vec![false; targets.len()], pools: Vec::new() }
    }

    /// The known facts.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Samples the data that a point is about to read, if it is not known.
    ///
    /// # Errors
    ///
    /// When a target hangs.
    pub fn look(&mut self, point: &Point) -> Result<(), Error> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let ranges = ranges(&self.targets, std::iter::once(point), |_, place| Some(place));
        let is_known = |place: usize| self.targets[place].content.is_some() && !self.stale[place];
        if (0..self.targets.len()).all(|place| ranges[place].is_empty() || is_known(place)) {
            return Ok(());
        }
        let name = self.targets.first().map_or_else(String::new, |target| target.name.clone());
        let empty = Self { targets: Vec::new(), stale: Vec::new(), pools: Vec::new() };
        let (mut own, point) = (std::mem::replace(self, empty), point.clone());
        *self = hanging::waited_for(&name, "it was looked at", move || {
            own.look_here(&point);
            Ok(own)
        })?;
        Ok(())
    }

    fn look_here(&mut self, point: &Point) {
        let ranges = ranges(&self.targets, std::iter::once(point), |_, place| Some(place));
        let wanted: Vec<usize> = (0..self.targets.len())
            .filter(|&place| !ranges[place].is_empty())
            .filter(|&place| self.targets[place].content.is_none() || self.stale[place])
            .collect();
        let asked: Vec<(&Target, Vec<ByteRange>)> =
            wanted.iter().map(|&place| (&self.targets[place], ranges[place].clone())).collect();
        let found = host::contents(&asked, point.seed);
        for (place, content) in wanted.into_iter().zip(found) {
            self.targets[place].content = content;
            self.stale[place] = false;
        }
    }

    /// Records that a point has run. Fine content that received more incompressible data is still
    /// fine, so that hundreds of points of a mix need no samples between them.
    pub fn ran(&mut self, point: &Point) {
        if self.targets.is_empty() {
            return;
        }
        for stream in point.streams.iter().filter(|stream| stream.destroys()) {
            let harmless = stream.payload == Payload::UNIQUE && !stream.trims();
            for region in &stream.regions {
                let place = region.target as usize;
                let fine = self.targets[place].content.is_some_and(|known| known.repeating() == 0);
                self.stale[place] |= !(harmless && fine);
            }
        }
        for (place, target) in self.targets.iter_mut().enumerate() {
            let Some(extents) = &target.extents else { continue };
            let has_gaps = Bytes(0) < extents.unwritten.max(extents.holes);
            let changes = |stream: &&Stream| {
                let here = stream.regions.iter().any(|region| region.target as usize == place);
                here && stream.destroys() && (has_gaps || stream.trims())
            };
            // A target that hangs gives no more answers.
            if point.streams.iter().any(|stream| changes(&stream)) && !hanging::is_any() {
                let (name, own) = (target.name.clone(), target.clone());
                let look = move || Ok(host::extents_of(&own));
                target.extents =
                    hanging::waited_for(&name, "it was looked at", look).ok().flatten();
            }
        }
    }

    /// The doubts about the source files of a point's pools.
    pub fn of_pools(&mut self, point: &Point) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.targets.is_empty() {
            return found;
        }
        for stream in point.streams.iter().filter(|stream| stream.does(Direction::Write)) {
            let Payload::Pool { size, file: Some(path) } = &stream.payload else { continue };
            let known = self.pools.iter().find(|(other, _)| other == path).map(|(_, known)| *known);
            let content = known.unwrap_or_else(|| {
                let (own, size, seed) = (path.clone(), *size, point.seed);
                // Loading it reports the problem.
                let look = move || Ok(host::of_pool(&own, size, seed).ok());
                let name = path.display().to_string();
                let content = hanging::waited_for(&name, "it was looked at", look).ok().flatten();
                self.pools.push((path.clone(), content));
                content
            });
            let name = path.display().to_string();
            found.extend(content.and_then(|content| repeating_pool(stream, &name, &content)));
        }
        found
    }
}

/// The targets with samples of all data that these points read from them; the path gives each
/// target's place among its own.
pub fn looked_at<'p>(
    targets: &[Target],
    specs: impl IntoIterator<Item = (&'p [Target], &'p [Point])>,
    seed: u64,
) -> Vec<Target> {
    let mut all: Vec<Vec<ByteRange>> = vec![Vec::new(); targets.len()];
    for (own, points) in specs {
        let place = |_: &Point, place: usize| {
            targets.iter().position(|target| target.path == own[place].path)
        };
        for (sum, more) in all.iter_mut().zip(ranges(targets, points, place)) {
            sum.extend(more);
            sum.sort_unstable();
            sum.dedup();
        }
    }
    let read = |place: &usize| !all[*place].is_empty();
    let wanted: Vec<usize> = (0..targets.len()).filter(read).collect();
    let asked: Vec<(&Target, Vec<ByteRange>)> =
        wanted.iter().map(|&place| (&targets[place], all[place].clone())).collect();
    let mut known = targets.to_vec();
    for (place, content) in wanted.iter().zip(host::contents(&asked, seed)) {
        known[*place].content = content;
    }
    known
}

/// For each target the ranges that these points read from it; none for a target without content.
fn ranges<'p>(
    targets: &[Target],
    points: impl IntoIterator<Item = &'p Point>,
    place: impl Fn(&Point, usize) -> Option<usize>,
) -> Vec<Vec<ByteRange>> {
    let mut ranges: Vec<Vec<ByteRange>> = vec![Vec::new(); targets.len()];
    for point in points {
        for stream in point.streams.iter().filter(|stream| stream.does(Direction::Read)) {
            for region in &stream.regions {
                let Some(place) = place(point, region.target as usize) else { continue };
                if targets[place].kind != TargetKind::Simulated {
                    let end = region.offset.0.saturating_add(region.length.0);
                    ranges[place].push((region.offset.0, end));
                }
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::spec::{Kind, Region, Stream};
    use fathom_core::{Bytes, Span};

    fn file(content: &[u8]) -> (tempfile::NamedTempFile, Target) {
        // A busy disk may not answer all reads in time. Files in memory have no holes to tell.
        let in_memory = (!content.is_empty())
            .then(|| tempfile::NamedTempFile::new_in("/dev/shm"))
            .and_then(Result::ok);
        let file = in_memory.unwrap_or_else(|| tempfile::NamedTempFile::new().unwrap());
        std::fs::write(file.path(), content).unwrap();
        let path = file.path().display().to_string();
        let target = Target {
            kind: TargetKind::File,
            path,
            ..Target::simulated("file", Bytes(content.len() as u64))
        };
        (file, target)
    }

    fn point(read_share: f64, payload: Payload) -> Point {
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(65_536) };
        let stream = Stream {
            ios: Kind { read_share, ..Kind::default() }.into(),
            payload,
            ..Stream::reading("main", Vec::from([region]))
        };
        Point::of(Vec::from([stream]), Span::from_secs(1))
    }

    #[test]
    fn a_target_is_looked_at_once_and_anew_after_it_was_written_to() {
        let (file, target) = file(&[0; 65_536]);
        let mut contents = Contents::new(&[target]);
        let reads = point(1.0, Payload::UNIQUE);
        let zeros = |contents: &Contents| contents.targets()[0].content.map(|known| known.zeros);
        contents.look(&point(0.0, Payload::UNIQUE)).unwrap();
        assert_eq!(zeros(&contents), None, "what is only written is not looked at");
        contents.look(&reads).unwrap();
        assert_eq!(zeros(&contents), Some(16));
        let unlike: Vec<u8> = (0..65_536u32).map(|at| (at * at / 251) as u8).collect();
        std::fs::write(file.path(), unlike).unwrap();
        contents.look(&reads).unwrap();
        assert_eq!(zeros(&contents), Some(16), "nobody said that it was written to");
        contents.ran(&point(0.0, Payload::UNIQUE));
        contents.look(&reads).unwrap();
        assert_eq!(zeros(&contents), Some(0));
        // Now the content is fine. Unique data leaves it so, and zeros do not.
        std::fs::write(file.path(), [0; 65_536]).unwrap();
        contents.ran(&point(0.5, Payload::UNIQUE));
        contents.look(&reads).unwrap();
        assert_eq!(zeros(&contents), Some(0));
        contents.ran(&point(0.5, Payload::Zeros));
        contents.look(&reads).unwrap();
        assert_eq!(zeros(&contents), Some(16));
    }

    #[test]
    fn what_was_written_meanwhile_was_not_never_written() {
        let (file, target) = file(&[]);
        file.as_file().set_len(65_536).unwrap();
        let target = Target { extents: host::extents_of(&target), ..target };
        // Some file systems cannot report holes. For those no statement is made.
        let Some(before) = target.extents.clone() else { return };
        assert_eq!(before.holes, Bytes(65_536));
        let mut contents = Contents::new(&[target]);
        std::fs::write(file.path(), [1; 65_536]).unwrap();
        file.as_file().sync_all().unwrap();
        contents.ran(&point(1.0, Payload::UNIQUE));
        assert_eq!(contents.targets()[0].extents, Some(before), "nobody said that it was written");
        contents.ran(&point(0.0, Payload::UNIQUE));
        let now = contents.targets()[0].extents.clone().unwrap();
        assert_eq!((now.holes, now.unwritten, now.written), (Bytes(0), Bytes(0), Bytes(65_536)));
    }

    #[test]
    fn what_several_points_read_is_looked_at_together() {
        let (_file, target) = file(&[0; 65_536]);
        let points = [point(1.0, Payload::UNIQUE), point(0.5, Payload::Zeros)];
        let targets = [target];
        let known = looked_at(&targets, [(&targets[..], &points[..])], 1);
        assert_eq!(known[0].content.unwrap().samples, 16);
        let known = looked_at(&targets, [(&targets[..], &[][..])], 1);
        assert_eq!(known[0].content, None);
    }

    #[test]
    fn a_pool_of_zeros_is_doubted() {
        let (file, target) = file(&[0; 65_536]);
        let mut contents = Contents::new(&[target]);
        let pool = |size| Payload::Pool { size, file: Some(file.path().to_owned()) };
        let writes = point(0.0, pool(Bytes(65_536)));
        assert_eq!(contents.of_pools(&writes)[0].code, "repeating-payload");
        assert_eq!(contents.of_pools(&point(1.0, pool(Bytes(65_536)))), []);
    }
}
