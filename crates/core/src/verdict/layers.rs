//! The effects of the layers below a target on the numbers: arrays that are not idle, loop devices,
//! hidden layers, and the layout of a file on its file system.

use super::case::{Case, listed, stream_does};
use super::{Judgement, Severity};
use crate::facts::{ArrayState, Layer, LayerKind, OverlayLayer, Target, TargetKind};
use crate::figures::percent;
use crate::measure::Direction;
use crate::spec::Stream;
use crate::units::{Bytes, count};

/// A file with this many extents or more, of less than this size on average, is in many pieces.
const EXTENTS_MANY: u64 = 1000;
const EXTENT_SMALL: u64 = Bytes::MIB;
/// A file system with less than this share free is full.
const FREE_MIN: f64 = 0.05;

/// Arrays that lack a disk or that are resynchronizing or checking themselves.
pub(super) fn arrays(case: &Case, judgement: &mut Judgement) {
    let layers = case.used().flat_map(|(_, target)| &target.layers);
    let looked_at: Vec<&ArrayState> = layers.filter_map(|layer| layer.array.as_ref()).collect();
    let counted = case.trial.counters.iter().flat_map(|counters| &counters.arrays);
    let mut states: Vec<&ArrayState> =
        counted.filter(|state| looked_at.iter().any(|other| other.name == state.name)).collect();
    // Before the trial, and if they were not examined during it, the first observation counts.
    if states.is_empty() {
        states = looked_at;
    }
    let mut told: Vec<&str> = Vec::new();
    for state in states {
        if told.contains(&&*state.name) {
            continue;
        }
        told.push(&state.name);
        if 0 < state.missing {
            judgement.find(
                "array-degraded",
                Severity::Suspect,
                format!(
                    "{} lacks {} of its disks: what they held is computed from the others, or has one \
                     copy less.",
                    state.name, state.missing
                ),
                "Replace the disk, and measure when /proc/mdstat shows the array whole.",
            );
        }
        if let Some(action) = &state.action {
            judgement.find(
                "array-resync",
                Severity::Suspect,
                format!("{} was busy with a {action} of its own beside the load.", state.name),
                "Wait until /proc/mdstat shows it idle, or stop it with `echo idle` to the array's \
                 md/sync_action.",
            );
        }
    }
}

/// Loop devices that go through the page cache.
pub(super) fn loops(case: &Case, judgement: &mut Judgement) {
    for (place, target) in case.used() {
        let buffered = |layer: &&Layer| layer.direct == Some(false);
        for layer in target.layers.iter().filter(buffered) {
            let writes = |stream: &Stream| stream_does(stream, Direction::Write);
            let written = case.regions().any(|(s, region)| region.target == place && writes(s));
            // Reads are compared with the disk below, if it can be seen.
            let severity = match written || layer.members.is_empty() {
                true => Severity::Suspect,
                false => Severity::Note,
            };
            judgement.find(
                "loop-buffered",
                severity,
                format!(
                    "{} goes through the page cache to its file{}: its direct I/O is off.",
                    layer.name,
                    match &layer.detail {
                        Some(file) => format!(" {file}"),
                        None => String::new(),
                    }
                ),
                format!("Switch it on: `losetup --direct-io=on /dev/{}`.", layer.name),
            );
        }
    }
}

/// File systems whose data is on another machine, or in a program.
fn is_elsewhere(kind: &str) -> bool {
    const SERVED: [&str; 15] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "9p",
        "virtiofs",
        "ceph",
        "glusterfs",
        "lustre",
        "afs",
        "gfs2",
        "ocfs2",
        "orangefs",
        "vboxsf",
        "prl_fs",
    ];
    SERVED.contains(&kind) || is_fuse(kind)
}

/// Whether a program serves the file system.
pub(super) fn is_fuse(kind: &str) -> bool {
    kind == "fuse" || kind.starts_with("fuse.")
}

/// Stacks of which only the top can be seen from here.
pub(super) fn top_of_stack(case: &Case, judgement: &mut Judgement) {
    for (_, target) in case.used() {
        let Some(what) = hidden(target) else { continue };
        judgement.find(
            "top-of-stack",
            Severity::Note,
            format!("Only the top of the stack below {} is seen: {what}.", target.name),
            "Caches, limits and other load below it are not looked at: measure where the storage is to \
             have them checked.",
        );
    }
}

/// The layer that hides the rest of a stack, if there is one.
fn hidden(target: &Target) -> Option<String> {
    if let Some(fs) = &target.file_system {
        if is_elsewhere(&fs.kind) {
            return Some(format!("{} is served by another program or machine", fs.kind));
        }
        if fs.kind == "overlay" && target.layers.is_empty() {
            return Some(
                "the folders of the overlay lie on no disk that shows from here".to_owned(),
            );
        }
    }
    target.layers.iter().find_map(|layer| hides(target, layer))
}

/// Whether a layer's device consists of something that is not in the list, in words.
fn hides(target: &Target, layer: &Layer) -> Option<String> {
    let numbered = |stem: &str| {
        let number = layer.name.strip_prefix(stem);
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let members = || layer.members.iter().filter_map(|member| target.layers.get(*member));
    match layer.kind {
        LayerKind::Loop if layer.members.is_empty() => {
            Some(format!("the file of {} lies in memory or is gone", layer.name))
        }
        LayerKind::DeviceMapper if is_thin(layer, members()) => Some(format!(
            "{} is a thin volume, whose blocks lie anywhere in its pool and may not be there at all",
            layer.name
        )),
        LayerKind::Disk if numbered("bcache") => {
            Some(format!("{} is a disk with a cache before it", layer.name))
        }
        LayerKind::Disk if ["nbd", "rbd", "drbd"].into_iter().any(numbered) => {
            Some(format!("{} is served by another program or machine", layer.name))
        }
        _ => None,
    }
}

/// Whether a device-mapper device is thin: it is larger than its members, or its member is a pool.
fn is_thin<'a>(layer: &Layer, members: impl Iterator<Item = &'a Layer>) -> bool {
    let members: Vec<&Layer> = members.collect();
    let below: u64 = members.iter().map(|member| member.size.0).sum();
    let is_pool = |member: &&Layer| {
        let detail = member.detail.as_deref().unwrap_or_default();
        member.kind == LayerKind::DeviceMapper && detail.ends_with("pool")
    };
    !members.is_empty() && (below < layer.size.0 || members.iter().any(is_pool))
}

/// A file of an overlay that is copied before it is written.
pub(super) fn overlay(case: &Case, judgement: &mut Judgement) {
    let writes = |stream: &Stream| stream.destroys();
    for (place, target) in case.used() {
        let lower =
            target.file_system.as_ref().is_some_and(|fs| fs.overlay == Some(OverlayLayer::Lower));
        if lower && case.regions().any(|(s, region)| region.target == place && writes(s)) {
            judgement.find(
                "copy-up",
                Severity::Suspect,
                format!(
                    "{} lies in the lower layer of an overlay: opening it for writing copied all of it \
                     to the upper one, which may be another disk than the one that is shown.",
                    target.name
                ),
                "Start again now that it was copied, or measure a file that was made in the overlay.",
            );
        }
    }
}

/// The extents of a file: their number and their sharing.
pub(super) fn extents(case: &Case, judgement: &mut Judgement) {
    for (place, target) in case.used() {
        let Some(extents) = &target.extents else { continue };
        let average = target.size.0 / extents.count.max(1);
        if EXTENTS_MANY <= extents.count && average < EXTENT_SMALL {
            judgement.find(
                "many-extents",
                Severity::Note,
                format!(
                    "{} is in {} pieces of {} on average: I/O that is sequential in it is not so on the \
                     device, and a block may be several I/Os there.",
                    target.name,
                    count(extents.count),
                    Bytes(average)
                ),
                "Write it anew in one go on a file system with room, if that is not what is to be \
                 measured.",
            );
        }
        let shared_of = |direction| {
            let ranges = case.ranges(place, |stream| stream_does(stream, direction));
            let all: u64 = ranges.iter().map(|(from, to)| to - from).sum();
            extents.shared_of(&ranges).unwrap_or(Bytes(extents.shared.0.min(all)))
        };
        let [read, written] = Direction::BOTH.map(shared_of);
        let (severity, what, shared) = match (written, read) {
            (Bytes(0), Bytes(0)) => continue,
            (Bytes(0), read) => (Severity::Note, "read", read),
            (written, _) => (Severity::Suspect, "written", written),
        };
        judgement.find(
            "shared-extents",
            severity,
            format!(
                "{shared} of what is {what} of {} is shared with other files, snapshots or places of \
                 the file: the first write to it goes elsewhere.",
                target.name
            ),
            "Measure a file that shares nothing: copy it with `cp --reflink=never`, or prepare a new one.",
        );
    }
}

/// File systems with next to no room.
pub(super) fn file_system_full(case: &Case, judgement: &mut Judgement) {
    for (place, target) in case.used().filter(|(_, target)| target.kind == TargetKind::File) {
        let Some(fs) = target.file_system.as_ref().filter(|fs| 0 < fs.size.0) else { continue };
        let free = fs.available.0 as f64 / fs.size.0 as f64;
        if FREE_MIN <= free {
            continue;
        }
        let ranges = case.ranges(place, |stream| stream_does(stream, Direction::Write));
        let never = target.extents.as_ref().and_then(|extents| extents.never_written_of(&ranges));
        let searches = !ranges.is_empty() && (fs.copy_on_write || Some(Bytes(0)) < never);
        let severity = if searches { Severity::Suspect } else { Severity::Note };
        judgement.find(
            "file-system-full",
            severity,
            format!(
                "{} of {} are free on {} ({}).",
                fs.available,
                fs.size,
                if fs.mount_point.is_empty() { &target.name } else { &fs.mount_point },
                percent(free)
            ),
            "A full file system finds its blocks late and scattered, and so does a full SSD: make room, \
             if that is not what is to be measured.",
        );
    }
}

/// Partitions and loop devices that begin in the middle of a unit below them.
pub(super) fn begins_across(case: &Case, judgement: &mut Judgement) {
    let mut told: Vec<String> = Vec::new();
    for (_, target) in case.used() {
        for layer in &target.layers {
            let Some(at) = layer.begins_at else { continue };
            let units = units_below(target, layer).into_iter();
            let across = units.filter(|(_, unit)| !at.0.is_multiple_of(unit.0));
            let Some((below, unit)) = across.max_by_key(|(_, unit)| *unit) else { continue };
            if told.contains(&layer.name) {
                continue;
            }
            told.push(layer.name.clone());
            let members = layer.members.iter().filter_map(|member| target.layers.get(*member));
            let members: Vec<&str> = members.map(|member| member.name.as_str()).collect();
            let there = match members.contains(&below.name.as_str()) {
                true => "there".to_owned(),
                false => format!("at {} below that", below.name),
            };
            judgement.find(
                "misaligned",
                Severity::Note,
                format!(
                    "{} begins at byte {} of {}, which is no multiple of the {unit} that are moved at \
                     once {there}: blocks that fit it straddle two.",
                    layer.name,
                    at.0,
                    listed(members.into_iter())
                ),
                "Let it begin at a multiple of 1 MiB (`parted`, `sfdisk`, `losetup --offset`).",
            );
        }
    }
}

/// The unit that is moved at once below a layer, and its source: a chunk of an array directly
/// below, otherwise the physical sectors of the layer directly below and further down through loop
/// devices and partitions. These report the sectors that they present, not the sectors below them.
fn units_below<'t>(target: &'t Target, layer: &Layer) -> Vec<(&'t Layer, Bytes)> {
    let members = |layer: &Layer| -> Vec<&'t Layer> {
        layer.members.iter().filter_map(|member| target.layers.get(*member)).collect()
    };
    let mut level = members(layer);
    let chunk = |one: &&'t Layer| Some((*one, one.stripe?.chunk));
    let chunks: Vec<(&Layer, Bytes)> = level.iter().filter_map(chunk).collect();
    if !chunks.is_empty() {
        return chunks.into_iter().filter(|(_, unit)| 0 < unit.0).collect();
    }
    let mut units = Vec::new();
    // There are at most as many levels as layers, even if the facts are wrong.
    for _ in &target.layers {
        let sector = |one: &&'t Layer| Some((*one, one.queue.as_ref()?.physical_sector?));
        units.extend(level.iter().filter_map(sector).filter(|(_, unit)| 0 < unit.0));
        let goes_on = |one: &&&Layer| matches!(one.kind, LayerKind::Loop | LayerKind::Partition);
        level = level.iter().filter(goes_on).flat_map(|one| members(one)).collect();
    }
    units
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::facts::{Extents, Queue, Stripe};

    const GIB: u64 = 1 << 30;

    #[test]
    fn an_array_that_is_not_whole_and_at_rest_is_suspect() {
        let state = |missing, action: Option<&str>| ArrayState {
            name: "md0".to_owned(),
            missing,
            action: action.map(ToOwned::to_owned),
        };
        let mut invented = Invented::reads();
        let quiet = ["array-degraded", "array-resync"];
        invented.disk().array = Some(state(0, None));
        invented.has_none_of(&quiet);
        invented.disk().array = Some(state(1, Some("recover")));
        invented.has("array-degraded", Severity::Suspect);
        invented.has("array-resync", Severity::Suspect);
        // The state in the window counts.
        invented.counters().arrays = Vec::from([state(0, None)]);
        invented.has_none_of(&quiet);
        invented.disk().array = Some(state(0, None));
        invented.counters().arrays = Vec::from([state(2, None)]);
        let finding = invented.has("array-degraded", Severity::Suspect);
        assert!(finding.evidence.starts_with("md0 lacks 2 of its disks"), "{}", finding.evidence);
        // Nothing is reported for arrays that the point does not use.
        invented.disk().array = None;
        invented.has_none_of(&quiet);
    }

    #[test]
    fn a_loop_device_without_direct_io_is_called_that() {
        for (mut invented, severity) in
            [(Invented::reads(), Severity::Note), (Invented::writes(), Severity::Suspect)]
        {
            let layer = &mut invented.target().layers[0];
            layer.kind = LayerKind::Loop;
            layer.direct = Some(true);
            invented.has_none_of(&["loop-buffered"]);
            invented.target().layers[0].direct = Some(false);
            let finding = invented.has("loop-buffered", severity);
            assert!(finding.advice.contains("losetup --direct-io=on /dev/vda1"), "{finding:?}");
            invented.target().layers.truncate(1);
            invented.target().layers[0].members.clear();
            invented.has("loop-buffered", Severity::Suspect);
        }
    }

    #[test]
    fn a_stack_of_which_only_the_top_shows_is_called_that() {
        let code = "top-of-stack";
        Invented::reads().has_none_of(&[code]);
        for kind in ["fuse", "fuse.sshfs", "nfs4", "9p", "virtiofs", "cifs"] {
            let mut invented = Invented::reads();
            invented.target().file_system.as_mut().unwrap().kind = kind.to_owned();
            invented.has(code, Severity::Note);
        }
        // NTFS through FUSE has a block device, so it is checked.
        let mut invented = Invented::reads();
        invented.target().file_system.as_mut().unwrap().kind = "fuseblk".to_owned();
        invented.has_none_of(&[code]);
        invented.target().file_system.as_mut().unwrap().kind = "overlay".to_owned();
        invented.has_none_of(&[code]);
        invented.target().layers.clear();
        invented.has(code, Severity::Note);
        let changed = |change: &dyn Fn(&mut Target)| {
            let mut invented = Invented::reads();
            change(invented.target());
            invented.codes().contains(&code)
        };
        let dm = |size: u64, detail: &'static str| {
            changed(&move |target: &mut Target| {
                target.layers[0].kind = LayerKind::DeviceMapper;
                target.layers[0].size = Bytes(size);
                target.layers[1].kind = LayerKind::DeviceMapper;
                target.layers[1].detail = Some(detail.to_owned());
            })
        };
        assert!(dm(100 * GIB, "lvm vg-thin-tpool"));
        assert!(dm(200 * GIB, "data"), "larger than what it lies on");
        assert!(!dm(100 * GIB, "lvm vg-data"));
        assert!(changed(&|target| {
            target.layers.truncate(1);
            target.layers[0].kind = LayerKind::Loop;
            target.layers[0].members.clear();
        }));
        for (name, hides) in [("bcache0", true), ("nbd3", true), ("nbdx", false), ("rbd1", true)] {
            assert_eq!(changed(&|target| target.layers[1].name = name.to_owned()), hides, "{name}");
        }
    }

    #[test]
    fn writes_to_the_lower_layer_of_an_overlay_copy_first() {
        for (mut invented, copies) in [(Invented::reads(), false), (Invented::writes(), true)] {
            let fs = invented.target().file_system.as_mut().unwrap();
            fs.overlay = Some(OverlayLayer::Lower);
            assert_eq!(invented.codes().contains(&"copy-up"), copies);
            invented.target().file_system.as_mut().unwrap().overlay = Some(OverlayLayer::Upper);
            invented.has_none_of(&["copy-up"]);
        }
        let mut invented = Invented::writes();
        invented.target().file_system.as_mut().unwrap().overlay = Some(OverlayLayer::Lower);
        invented.has("copy-up", Severity::Suspect);
    }

    #[test]
    fn extents_that_are_many_or_shared_are_told() {
        let extents = |count, shared_at: Option<Vec<(u64, u64)>>| Extents {
            written: Bytes(100 * GIB),
            count,
            shared: Bytes(10 * GIB),
            shared_at,
            ..Extents::default()
        };
        for (mut invented, severity) in
            [(Invented::reads(), Severity::Note), (Invented::writes(), Severity::Suspect)]
        {
            invented.has_none_of(&["many-extents", "shared-extents"]);
            invented.target().extents = Some(extents(50, Some(Vec::from([(0, 10 * GIB)]))));
            let finding = invented.has("shared-extents", severity);
            assert!(finding.evidence.starts_with("10 GiB of what is"), "{}", finding.evidence);
            invented.set_region(10 * GIB, GIB);
            invented.has_none_of(&["shared-extents"]);
            invented.target().extents = Some(extents(50, None));
            let finding = invented.has("shared-extents", severity);
            assert!(finding.evidence.starts_with("1 GiB of what is"), "{}", finding.evidence);
        }
        let mut invented = Invented::reads();
        invented.target().extents = Some(Extents { shared: Bytes(0), ..extents(500_000, None) });
        let finding = invented.has("many-extents", Severity::Note);
        assert!(finding.evidence.contains("500,000 pieces"), "{}", finding.evidence);
        invented.has_none_of(&["shared-extents"]);
        invented.target().size = Bytes(1000 * GIB);
        invented.has_none_of(&["many-extents"]);
    }

    #[test]
    fn a_full_file_system_is_suspect_where_blocks_have_to_be_found() {
        let mut invented = Invented::writes();
        let fs = |invented: &mut Invented, available: u64| {
            let fs = invented.target().file_system.as_mut().unwrap();
            (fs.size, fs.available) = (Bytes(1000 * GIB), Bytes(available * GIB));
        };
        fs(&mut invented, 50);
        invented.has_none_of(&["file-system-full"]);
        fs(&mut invented, 40);
        let finding = invented.has("file-system-full", Severity::Note);
        assert!(finding.evidence.contains("(4 %)"), "{}", finding.evidence);
        invented.target().extents.as_mut().unwrap().never_written = Some(Vec::from([(0, GIB)]));
        invented.has("file-system-full", Severity::Suspect);
        invented.set_region(GIB, GIB);
        invented.has("file-system-full", Severity::Note);
        invented.target().file_system.as_mut().unwrap().copy_on_write = true;
        invented.has("file-system-full", Severity::Suspect);
    }

    #[test]
    fn what_begins_in_the_middle_of_a_sector_or_a_chunk_is_misaligned() {
        let mut invented = Invented::reads();
        invented.target().layers[0].begins_at = Some(Bytes(1 << 20));
        invented.has_none_of(&["misaligned"]);
        // The first partition of an old partition table.
        invented.target().layers[0].begins_at = Some(Bytes(63 * 512));
        let finding = invented.has("misaligned", Severity::Note);
        assert!(
            finding
                .evidence
                .starts_with("vda1 begins at byte 32256 of vda, which is no multiple of the 4 KiB"),
            "{}",
            finding.evidence
        );
        invented.target().layers[0].begins_at = Some(Bytes(1 << 20));
        let chunk = Stripe { chunk: Bytes(512 << 10), full: Bytes(1 << 20) };
        invented.disk().stripe = Some(chunk);
        invented.has_none_of(&["misaligned"]);
        invented.target().layers[0].begins_at = Some(Bytes((1 << 20) + 4096));
        invented.has("misaligned", Severity::Note);
    }

    #[test]
    fn a_partition_of_a_loop_device_is_held_against_the_disk_below_it() {
        let mut invented = Invented::reads();
        let sector =
            |bytes| Some(Queue { physical_sector: Some(Bytes(bytes)), ..Queue::default() });
        let partition =
            Layer { begins_at: Some(Bytes(63 * 512)), ..invented.targets[0].layers[0].clone() };
        let image = Layer {
            name: "loop0".to_owned(),
            kind: LayerKind::Loop,
            queue: sector(512),
            members: Vec::from([2]),
            begins_at: Some(Bytes(0)),
            ..Layer::default()
        };
        let disk = Layer { queue: sector(4096), ..invented.disk().clone() };
        invented.target().layers = Vec::from([partition, image, disk]);
        let finding = invented.has("misaligned", Severity::Note);
        let words =
            "of loop0, which is no multiple of the 4 KiB that are moved at once at vda below that";
        assert!(finding.evidence.contains(words), "{}", finding.evidence);
        // A mapped device may begin anywhere on the devices below it, and the place is unknown.
        invented.target().layers[1].kind = LayerKind::DeviceMapper;
        invented.has_none_of(&["misaligned"]);
        invented.target().layers[1].kind = LayerKind::Loop;
        invented.target().layers[0].begins_at = Some(Bytes(1 << 20));
        invented.has_none_of(&["misaligned"]);
    }
}
