//! Where the bytes of a target are on its disk.

use std::fs::File;

use fathom_core::Bytes;
use fathom_core::facts::{Layer, LayerKind, Target, TargetKind};
use fathom_core::watch::DiskRange;

use crate::host::fiemap::{self, Extent};
use crate::host::mapped;

/// The most extents that are read: seconds of work, and 50 MB.
const EXTENTS_MAX: usize = 2_000_000;

/// Bytes of a target that are together on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Where they begin in the target.
    start: u64,
    length: u64,
    /// Where they begin on the disk.
    on_disk: u64,
}

/// The place of a target on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// The disk, by major and minor number.
    pub(super) device: (u32, u32),
    /// In their order in the target.
    runs: Vec<Run>,
}

impl Located {
    /// The place of an open target.
    ///
    /// # Errors
    ///
    /// The reason in words if it has none, or if nobody tells.
    pub(super) fn of(target: &Target, file: &File) -> Result<Self, String> {
        let top = target.layers.iter().find(|layer| layer.device.is_some());
        let Some(top) = top else { return Err("no disk is below it".to_owned()) };
        let (device, below) = on_disk(top, &target.layers)?;
        match target.kind {
            TargetKind::BlockDevice => Ok(Self { device, runs: below }),
            TargetKind::File => {
                let kind = target.file_system.as_ref().map_or("", |it| it.kind.as_str());
                // It has addresses of its own, which may lie on any of its devices.
                if kind == "btrfs" {
                    return Err("btrfs does not tell where on a disk a file is".to_owned());
                }
                let runs = runs(file).ok_or_else(|| {
                    format!("its file system ({kind}) does not tell where on the disk it is")
                })?;
                Ok(Self { device, runs: through(&runs, &below) })
            }
            _ => Err(format!("it is a {}", target.kind.name())),
        }
    }

    /// The pieces of the disk that hold a part of the target: the first one, and the others, if
    /// there are any. None if a piece is not known.
    pub(super) fn pieces(
        &self,
        offset: Bytes,
        length: Bytes,
    ) -> Option<(DiskRange, Vec<DiskRange>)> {
        let end = offset.0.checked_add(length.0)?;
        let mut place = self.runs.partition_point(|run| run.start <= offset.0).checked_sub(1)?;
        let mut at = offset.0;
        let mut first = None;
        let mut others = Vec::new();
        while at < end {
            let run = self.runs.get(place).filter(|run| run.start <= at)?;
            let to = end.min(run.start + run.length);
            if to <= at {
                return None;
            }
            let piece = DiskRange {
                device: self.device,
                sector: (run.on_disk + (at - run.start)) / 512,
                sectors: (to - at).div_ceil(512),
            };
            match first {
                None => first = Some(piece),
                Some(_) => others.push(piece),
            }
            (at, place) = (to, place + 1);
        }
        first.map(|first| (first, others))
    }
}

/// The disk whose requests hold the I/Os to a layer, and where the layer is on it.
///
/// # Errors
///
/// The reason in words if that is not known.
fn on_disk(layer: &Layer, layers: &[Layer]) -> Result<((u32, u32), Vec<Run>), String> {
    let unknown = |layer: &Layer| format!("the disk of {} is not known", layer.name);
    let number = layer.device.ok_or_else(|| unknown(layer))?;
    if layer.kind != LayerKind::DeviceMapper {
        let (disk, begins) = whole_disk(layer, layers).ok_or_else(|| unknown(layer))?;
        let whole = Run { start: 0, length: layer.size.0, on_disk: begins };
        return Ok((disk, Vec::from([whole])));
    }
    let told = |why: String| format!("{}: {why}", layer.name);
    let mut disk = None;
    let mut runs = Vec::new();
    for segment in mapped::segments(number).map_err(told)? {
        let below = layers.iter().find(|layer| layer.device == Some(segment.device));
        let below = below.ok_or_else(|| unknown(layer))?;
        if matches!(below.kind, LayerKind::DeviceMapper | LayerKind::Md) {
            return Err(told(format!(
                "it lies on {}, which has no requests of its own",
                below.name
            )));
        }
        let (number, begins) = whole_disk(below, layers).ok_or_else(|| unknown(below))?;
        if *disk.get_or_insert(number) != number {
            return Err(told("it lies on several disks".to_owned()));
        }
        runs.push(Run {
            start: segment.start.0,
            length: segment.length.0,
            on_disk: begins + segment.on_device.0,
        });
    }
    Ok((disk.ok_or_else(|| unknown(layer))?, runs))
}

/// The whole disk of a layer, and where the layer begins on it.
fn whole_disk(layer: &Layer, layers: &[Layer]) -> Option<((u32, u32), u64)> {
    if layer.kind != LayerKind::Partition {
        return Some((layer.device?, 0));
    }
    let disk = layers.get(*layer.members.first()?)?;
    Some((disk.device?, layer.begins_at?.0))
}

/// Runs on a layer, as they are on the disk below it. What the layer does not have is left out.
fn through(runs: &[Run], below: &[Run]) -> Vec<Run> {
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        let end = run.on_disk + run.length;
        let first = below.partition_point(|one| one.start + one.length <= run.on_disk);
        for one in below[first..].iter().take_while(|one| one.start < end) {
            let from = run.on_disk.max(one.start);
            all.push(Run {
                start: run.start + (from - run.on_disk),
                length: end.min(one.start + one.length) - from,
                on_disk: one.on_disk + (from - one.start),
            });
        }
    }
    all
}

/// The runs of a file; none if the file system does not tell, or if they are too many.
fn runs(file: &File) -> Option<Vec<Run>> {
    let mut runs = Vec::new();
    let mut at = 0;
    loop {
        let batch = fiemap::extents(file, at).ok()?;
        batch.iter().for_each(|extent| append(&mut runs, extent));
        let last = batch.last().map(|extent| (extent.last, extent.start + extent.length));
        match last {
            Some((false, end)) if at < end && runs.len() <= EXTENTS_MAX => at = end,
            Some((false, _)) => return None,
            Some((true, _)) | None => break,
        }
    }
    (!runs.is_empty()).then_some(runs)
}

/// Adds an extent, to the run before it if it continues that one on the disk.
fn append(runs: &mut Vec<Run>, extent: &Extent) {
    let on_disk = extent.physical;
    match runs.last_mut() {
        Some(last)
            if last.start + last.length == extent.start
                && last.on_disk + last.length == on_disk =>
        {
            last.length += extent.length;
        }
        // A batch may begin with an extent that the batch before had.
        Some(last) if extent.start < last.start + last.length => {}
        _ => runs.push(Run { start: extent.start, length: extent.length, on_disk }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: (u32, u32) = (8, 0);

    fn piece(sector: u64, sectors: u64) -> DiskRange {
        DiskRange { device: DISK, sector, sectors }
    }

    fn extent(start: u64, length: u64, physical: u64) -> Extent {
        Extent { start, length, physical, written: true, shared: false, last: false }
    }

    #[test]
    fn an_io_has_a_piece_for_each_extent_that_it_touches() {
        let mut runs = Vec::new();
        for one in [
            extent(0, 8192, 40960),
            extent(8192, 4096, 49152),
            extent(8192, 4096, 49152),
            extent(12288, 4096, 4096),
            extent(65536, 4096, 8192),
        ] {
            append(&mut runs, &one);
        }
        assert_eq!(runs.len(), 3, "{runs:?}");
        let runs = through(&runs, &[Run { start: 0, length: 1 << 20, on_disk: 1 << 20 }]);
        let located = Located { device: DISK, runs };
        let pieces = |offset, length| located.pieces(Bytes(offset), Bytes(length));
        let sector = |byte: u64| ((1 << 20) + byte) / 512;
        assert_eq!(pieces(4096, 4096), Some((piece(sector(45056), 8), Vec::new())));
        assert_eq!(
            pieces(4096, 12288),
            Some((piece(sector(45056), 16), Vec::from([piece(sector(4096), 8)])))
        );
        assert_eq!(pieces(512, 512), Some((piece(sector(41472), 1), Vec::new())));
        // A hole has no place.
        assert_eq!(pieces(16384, 4096), None);
        assert_eq!(pieces(12288, 8192), None);
        assert_eq!(pieces(69632, 512), None);
        assert_eq!(pieces(u64::MAX, 512), None);
    }
    #[test]
    fn a_run_may_cross_the_segments_of_a_volume() {
        let run = |start, length, on_disk| Run { start, length, on_disk };
        let below = [run(0, 100, 1000), run(100, 50, 500), run(200, 50, 0)];
        assert_eq!(through(&[run(0, 100, 0)], &below), [run(0, 100, 1000)]);
        assert_eq!(through(&[run(7, 40, 80)], &below), [run(7, 20, 1080), run(27, 20, 500)]);
        // Between 150 and 200 the volume has nothing.
        assert_eq!(
            through(&[run(0, 100, 140), run(900, 10, 245)], &below),
            [run(0, 10, 540), run(60, 40, 0), run(900, 5, 45)]
        );
    }
}
