//! Whether the storage itself was measured, and the facts about it that a reader has to know.

use std::collections::BTreeSet;

use super::case::{Case, is_buffered, listed, stream_does};
use super::device_bytes::reached;
use super::{Judgement, Severity};
use crate::facts::{Extents, Layer, LayerKind, Target, TargetKind};
use crate::figures::percent;
use crate::measure::{Direction, Upkeep};
use crate::spec::Stream;
use crate::typed::{typed_path, typed_size};
use crate::units::Bytes;

/// From this share of blocks that were never written on, the reads are void; below it they are
/// suspect.
const UNWRITTEN_VOID: f64 = 0.01;
/// The least memory of a disk, as far as it can be known from outside: rotating disks have up to
/// this much, and SSDs without their own memory use as much from the host.
const CACHE_MIN: Bytes = Bytes(256_000_000);
/// The memory of an SSD as a share of its size: 1 GB per TB, 4 bytes for each block of 4 KiB.
const CACHE_SHARE: u64 = 1000;
/// The cache of an array's controllers: tens of GB.
const ARRAY_CACHE: Bytes = Bytes(64_000_000_000);
/// A footprint this many times as large has at most half of its data in a cache.
const CACHE_FACTOR: u64 = 2;
/// Data that would fit into memory twice is not measured through the page cache.
const MEMORY_FACTOR: u64 = 2;

/// Reads of blocks that were never written: they return zeros without reaching the medium.
pub(super) fn unwritten(case: &Case, judgement: &mut Judgement) {
    for (place, target) in case.used() {
        let is_storage = matches!(
            target.kind,
            TargetKind::File | TargetKind::BlockDevice | TargetKind::NvmeGeneric
        );
        if !is_storage {
            continue;
        }
        let reads = case.ranges(place, |stream| stream_does(stream, Direction::Read));
        let writes = case.ranges(place, |stream| stream_does(stream, Direction::Write));
        let size = |ranges: &[(u64, u64)]| Bytes(ranges.iter().map(|(from, to)| to - from).sum());
        let (read, written) = (size(&reads), size(&writes));
        let Some(extents) = &target.extents else {
            if read > Bytes(0) {
                match target.kind {
                    // No block device reports this.
                    TargetKind::File => {
                        judgement.cannot("unwritten-reads", unknown_extents(target))
                    }
                    _ => judgement.cannot_ever("unwritten-reads", unknown_extents(target)),
                }
            }
            continue;
        };
        let never = extents.unwritten.0 + extents.holes.0;
        if never == 0 {
            continue;
        }
        if read > Bytes(0) {
            never_written_is_read((target, extents), &reads, read, judgement);
        } else if written > Bytes(0) {
            let known = extents.never_written_of(&writes);
            if known == Some(Bytes(0)) {
                continue;
            }
            judgement.find(
                "allocating-writes",
                Severity::Note,
                format!(
                    "{} of {} was never written: the first write to each of them also measures the \
                     file system's allocation.",
                    known.unwrap_or(Bytes(never)),
                    target.name
                ),
                format!("For overwrites, write the file first{}.", by_command(target)),
            );
        }
    }
}

/// Says how much of the data that is read from a target was never written, for these ranges and
/// this many bytes.
fn never_written_is_read(
    (target, extents): (&Target, &Extents),
    reads: &[(u64, u64)],
    read: Bytes,
    judgement: &mut Judgement,
) {
    let never = extents.unwritten.0 + extents.holes.0;
    // If the places are not known, at least this much of the region was never written.
    let known = extents.never_written_of(reads);
    let at_least = read.0.saturating_sub(extents.written.0).min(never);
    let surely = known.map_or(at_least, |bytes| bytes.0);
    if known == Some(Bytes(0)) {
        return;
    }
    let at_least = if known.is_some() { "" } else { "at least " };
    let share = surely as f64 / read.0 as f64;
    let severity = if share < UNWRITTEN_VOID { Severity::Suspect } else { Severity::Void };
    judgement.find(
        "unwritten-reads",
        severity,
        format!(
            "{} of {} was never written ({} reserved, {} in holes); of the {read} that is \
             read, {at_least}{} ({}).",
            Bytes(never),
            target.name,
            extents.unwritten,
            extents.holes,
            Bytes(surely),
            percent(share)
        ),
        format!(
            "Such reads are answered with zeros and do not touch the medium: write the file \
             first{}.",
            by_command(target)
        ),
    );
}

/// Reads of ranges that the run itself trims.
pub(super) fn trimmed_reads(case: &Case, judgement: &mut Judgement) {
    if !case.reads_what_it_trims() {
        return;
    }
    let trims = case.trial.record.upkeep(Upkeep::Trim, |_, _| true);
    judgement.find(
        "trimmed-reads",
        Severity::Suspect,
        format!(
            "The run's own trims, {} of {} in all, emptied ranges that it reads too.",
            trims.ios(),
            trims.bytes
        ),
        "Reads of such ranges are answered with zeros and do not touch the medium: read another \
         region than the one that is trimmed, or only write and trim.",
    );
}

/// The command that writes every block of a file, as it can be typed; none writes a device.
fn by_command(target: &Target) -> String {
    match target.kind {
        TargetKind::File => format!(
            ", if what it holds may be lost (`fathom prepare {} --size {} --overwrite`)",
            typed_path(&target.name),
            typed_size(target.size)
        ),
        _ => String::new(),
    }
}

fn unknown_extents(target: &Target) -> String {
    match target.kind {
        TargetKind::BlockDevice | TargetKind::NvmeGeneric => format!(
            "a block device does not tell which blocks were ever written: if {} is new, thin or was \
             trimmed, write it fully before reading",
            target.name
        ),
        _ => format!("the file system of {} does not tell which blocks were written", target.name),
    }
}

/// Memory, or no storage at all.
pub(super) fn memory_target(case: &Case, judgement: &mut Judgement) {
    for (_, target) in case.used() {
        let memory = match (&target.file_system, target.kind) {
            (_, TargetKind::CharacterDevice) => Some("a character device".to_owned()),
            (Some(fs), _) if ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"].contains(&&*fs.kind) => {
                Some(format!("{}, which is memory", fs.kind))
            }
            _ => target.disks().find(|disk| is_memory(disk)).map(|disk| {
                let kind =
                    if disk.kind == LayerKind::Zram { "compressed memory" } else { "memory" };
                format!("{}, which is {kind}", disk.name)
            }),
        };
        if let Some(memory) = memory {
            judgement.find(
                "memory-target",
                Severity::Suspect,
                format!("{} is on {memory}.", target.name),
                "The numbers are those of memory and the load generator: choose a target on storage.",
            );
        }
    }
}

fn is_memory(disk: &Layer) -> bool {
    let numbered = |stem: &str| {
        let number = disk.name.strip_prefix(stem);
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    disk.kind == LayerKind::Zram || numbered("ram") || numbered("nullb")
}

/// Buffered access to data that fits into memory.
pub(super) fn page_cache(case: &Case, judgement: &mut Judgement) {
    if case.is_direct() {
        return;
    }
    let limit = case.host.memory_limit.unwrap_or(Bytes(u64::MAX));
    let memory = case.host.memory.min(limit);
    if memory == Bytes(0) {
        judgement.cannot("page-cache", "the size of the memory is not known");
        return;
    }
    let footprint: u64 = case.used().map(|(place, _)| case.footprint(place, is_buffered).0).sum();
    let enough = memory.0.saturating_mul(MEMORY_FACTOR);
    // Other I/O would be counted as read from the device too.
    let reached = case.is_buffered().then(|| reached(case, Direction::Read)).flatten();
    let cached = reached.as_ref().is_some_and(|reached| reached.is_cached());
    if footprint >= enough && !cached {
        return;
    }
    let at_device = match reached {
        Some(reached) => format!(
            " {} of the {} that were read came from {}.",
            Bytes(reached.device),
            Bytes(reached.asked),
            reached.names
        ),
        None => String::new(),
    };
    judgement.find(
        "page-cache",
        Severity::Suspect,
        format!(
            "Buffered access to {} with {memory} of memory: the page cache serves what it holds \
             (below {} it can hold most).{at_device}",
            Bytes(footprint),
            Bytes(enough)
        ),
        match footprint < enough {
            true => format!(
                "Use direct access to measure the storage, or at least {} to measure both.",
                Bytes(enough)
            ),
            false => "Use direct access to measure the storage.".to_owned(),
        },
    );
}

/// A footprint that the caches of the disks may hold.
pub(super) fn small_footprint(case: &Case, judgement: &mut Judgement) {
    for (place, target) in case.used() {
        let footprint = case.footprint(place, |_| true);
        let caches: Option<u64> = target.disks().map(cache).sum();
        let Some(cache) = caches.filter(|cache| 0 < *cache) else { continue };
        let enough = Bytes(cache.saturating_mul(CACHE_FACTOR));
        if Bytes(0) < footprint && footprint < enough {
            judgement.find(
                "small-footprint",
                Severity::Note,
                format!(
                    "The load addressed {footprint} of {}, less than {enough}: caches in the disks \
                     below, of {} or so, may hold much of it.",
                    target.name,
                    Bytes(cache)
                ),
                "For the medium itself, use a larger file or region; the numbers hold for data of \
                 this size.",
            );
        }
    }
}

/// The memory that a disk may have, in bytes; none if its hardware is unknown.
fn cache(disk: &Layer) -> Option<u64> {
    if disk.kind != LayerKind::Disk || disk.is_virtual() || is_memory(disk) {
        return None;
    }
    let facts = disk.disk.as_ref();
    let model = facts.and_then(|facts| facts.model.as_deref()).unwrap_or_default();
    let transport = facts.and_then(|facts| facts.transport.as_deref());
    // The names that disks of RAID controllers and storage arrays report.
    let arrays = [
        "PERC",
        "MR9",
        "MegaRAID",
        "LOGICAL VOLUME",
        "ServeRAID",
        "NETAPP",
        "COMPELNT",
        "PURE",
        "3PAR",
        "DGC",
        "SYMMETRIX",
        "OPEN-V",
        "MSA",
        "Nimble",
        "LUN",
    ];
    let is_array =
        matches!(transport, Some("fc" | "iscsi")) || arrays.iter().any(|name| model.contains(name));
    let own = (disk.size.0 / CACHE_SHARE).max(CACHE_MIN.0);
    Some(if is_array { own.max(ARRAY_CACHE.0) } else { own })
}

/// Blocks that do not match the sectors or the stripes.
pub(super) fn alignment(case: &Case, judgement: &mut Judgement) {
    for (place, target) in case.used() {
        let sector = target
            .layers
            .iter()
            .filter_map(|layer| layer.queue.as_ref()?.physical_sector)
            .max()
            .filter(|sector| *sector > Bytes(0));
        let stripes = target.layers.iter().find(|layer| layer.stripe.is_some());
        let mut streams: Vec<&Stream> = Vec::new();
        for (stream, region) in case.regions().filter(|(_, region)| region.target == place) {
            if streams.iter().any(|seen| std::ptr::eq(*seen, stream)) {
                continue;
            }
            streams.push(stream);
            if let Some(sector) = sector {
                sectors(case, judgement, stream, region.offset, sector, target);
            }
            if let Some(layer) = stripes {
                stripe(case, judgement, stream, region.offset, layer, target);
            }
        }
    }
}

fn is_multiple(bytes: Bytes, of: Bytes) -> bool {
    of.0 == 0 || bytes.0.is_multiple_of(of.0)
}

fn sectors(
    case: &Case,
    judgement: &mut Judgement,
    stream: &Stream,
    offset: Bytes,
    sector: Bytes,
    target: &Target,
) {
    let fits = stream.block_sizes().all().all(|size| is_multiple(size, sector));
    if fits && is_multiple(offset, sector) {
        return;
    }
    judgement.find(
        "misaligned",
        Severity::Note,
        format!(
            "Blocks of {} from offset {}{} are no multiples of the physical sector of {} below {}.",
            stream.block_sizes(),
            offset.0,
            case.of_stream(stream),
            sector,
            target.name
        ),
        "The device moves whole sectors: use multiples of the physical sector.",
    );
}

fn stripe(
    case: &Case,
    judgement: &mut Judgement,
    stream: &Stream,
    offset: Bytes,
    layer: &Layer,
    target: &Target,
) {
    let Some(geometry) = layer.stripe else { return };
    let (blocks, chunk, full) = (stream.block_sizes(), geometry.chunk, geometry.full);
    let all_are = |direction, of| blocks.of(direction).iter().all(|one| is_multiple(one.size, of));
    let detail = layer.detail.as_deref().unwrap_or_default().to_ascii_lowercase();
    let parity = ["raid4", "raid5", "raid6"].iter().any(|level| detail.contains(level));
    let shape =
        format!("{} below {} has chunks of {chunk}, {full} a stripe", layer.name, target.name);
    if parity && stream_does(stream, Direction::Write) && !all_are(Direction::Write, full) {
        judgement.find(
            "partial-stripes",
            Severity::Note,
            format!(
                "{shape}: writes of {blocks}{} cover part of a stripe, and the array reads the rest or \
                 the parity first.",
                case.of_stream(stream)
            ),
            format!("For the array's full write bandwidth, write multiples of {full}."),
        );
    }
    let fits = blocks.all().all(|block| {
        (is_multiple(chunk, block) || is_multiple(block, chunk))
            && is_multiple(offset, block.min(chunk))
    });
    if !fits {
        judgement.find(
            "misaligned",
            Severity::Note,
            format!(
                "{shape}: blocks of {blocks} from offset {}{} straddle its chunks, and some I/Os go to \
                 one disk more.",
                offset.0,
                case.of_stream(stream)
            ),
            format!("Use a block size that divides {chunk} or is a multiple of it."),
        );
    }
}

/// Writes that a power cut would lose.
pub(super) fn volatile_write_cache(case: &Case, judgement: &mut Judgement) {
    let fragile = |stream: &Stream| {
        stream_does(stream, Direction::Write)
            && !stream.access.is_durable()
            && stream.flush.is_none()
    };
    if !case.streams().iter().any(fragile) {
        return;
    }
    let volatile = |disk: &Layer| disk.queue.as_ref().and_then(|q| q.volatile_write_cache);
    let written = |place| case.regions().any(|(s, region)| region.target == place && fragile(s));
    let disks = || case.used().filter(|(place, _)| written(*place)).flat_map(|(_, t)| t.disks());
    let caching =
        listed(disks().filter(|disk| volatile(disk) == Some(true)).map(|disk| disk.name.as_str()));
    if !caching.is_empty() {
        judgement.find(
            "volatile-write-cache",
            Severity::Note,
            format!(
                "{caching} has a volatile write cache, and writes completed without being flushed."
            ),
            "For durable writes, as a database does them, measure with --sync dsync.",
        );
    } else if disks().all(|disk| volatile(disk).is_none()) {
        judgement.cannot(
            "volatile-write-cache",
            "no disk below tells whether it has a volatile write cache",
        );
    }
}

/// A file system that puts each overwrite in another place.
pub(super) fn copy_on_write(case: &Case, judgement: &mut Judgement) {
    if !case.does(Direction::Write) {
        return;
    }
    for (_, target) in case.used() {
        let Some(fs) = target.file_system.as_ref().filter(|fs| fs.copy_on_write) else { continue };
        judgement.find(
            "copy-on-write",
            Severity::Note,
            format!(
                "{} is on {}, which writes each block anew elsewhere: overwriting scatters the file \
                 and writes metadata beside it.",
                target.name, fs.kind
            ),
            "The numbers are those of the file system with its device; for the device, use a device.",
        );
    }
}

/// A file system that compresses.
pub(super) fn compression(case: &Case, judgement: &mut Judgement) {
    for (_, target) in case.used() {
        let Some(fs) = &target.file_system else { continue };
        let Some(compression) = &fs.compression else { continue };
        judgement.find(
            "compression",
            Severity::Suspect,
            format!(
                "{} is on {} with compression ({compression}): what moves to and from the device is \
                 not what was asked.",
                target.name, fs.kind
            ),
            "Switch compression off for the file before it is written (chattr +m), and write it anew.",
        );
    }
}

/// An I/O priority that the schedulers of the disks ignore, or use only in part.
pub(super) fn io_priority(case: &Case, judgement: &mut Judgement) {
    let asked = case.streams().iter().find_map(|stream| stream.workplace.io_priority);
    let Some(priority) = asked else { return };
    let schedulers = case.disks().filter_map(|disk| disk.queue.as_ref()?.scheduler.as_deref());
    let others: BTreeSet<&str> = schedulers.filter(|name| *name != "bfq").collect();
    if others.is_empty() {
        return;
    }
    let told = match others.contains("mq-deadline") {
        true => "mq-deadline looks at the class alone, the others not even at that",
        false => "only bfq, and in part mq-deadline, look at it",
    };
    judgement.find(
        "io-priority-ignored",
        Severity::Note,
        format!(
            "the I/O priority {priority} was asked for, and the scheduler of the disks is {}: {told}.",
            listed(others.into_iter())
        ),
        "Choose the scheduler with `echo bfq > /sys/block/NAME/queue/scheduler`, or take the priority \
         as not given.",
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::facts::{Extents, Stripe};
    use crate::spec::{Cache, SyncMode};

    const GIB: u64 = 1 << 30;

    fn extents(written: u64, unwritten: u64, holes: u64) -> Option<Extents> {
        let [written, unwritten, holes] = [written, unwritten, holes].map(|gib| Bytes(gib * GIB));
        Some(Extents { written, unwritten, holes, count: 3, ..Extents::default() })
    }

    #[test]
    fn trims_are_a_doubt_of_the_ranges_that_they_empty() {
        let mut invented = Invented::reads();
        invented.set_region(0, 40 * GIB);
        let mut trims = invented.stream().clone();
        trims.trim_share = 1.0;
        trims.regions[0].offset = Bytes(40 * GIB);
        invented.trial.point.streams.push(trims);
        invented.has_none_of(&["trimmed-reads"]);
        // A block that lies in both.
        invented.set_region(0, 40 * GIB + 4096);
        invented.has("trimmed-reads", Severity::Suspect);
        // A stream that only trims reads nothing.
        invented.trial.point.streams.remove(0);
        invented.has_none_of(&["trimmed-reads"]);
    }

    #[test]
    fn a_hole_beside_the_region_is_none_in_it() {
        let mut invented = Invented::reads();
        let mut with_holes = extents(90, 0, 10).unwrap();
        with_holes.never_written = Some(Vec::from([(90 * GIB, 100 * GIB)]));
        invented.target().extents = Some(with_holes.clone());
        let finding = invented.has("unwritten-reads", Severity::Void);
        assert!(finding.evidence.ends_with("that is read, 10 GiB (10 %)."), "{}", finding.evidence);
        invented.set_region(0, 90 * GIB);
        invented.has_none_of(&["unwritten-reads"]);
        // A hole of half a percent of the region that is read.
        invented.set_region(0, 90 * GIB + GIB / 2);
        invented.has("unwritten-reads", Severity::Suspect);
        invented.set_region(85 * GIB, 10 * GIB);
        invented.has("unwritten-reads", Severity::Void);
        let mut writes = Invented::writes();
        writes.target().extents = Some(with_holes);
        writes.has("allocating-writes", Severity::Note);
        writes.set_region(0, 90 * GIB);
        writes.has_none_of(&["allocating-writes"]);
    }

    #[test]
    fn reads_of_what_was_never_written_are_void() {
        let mut invented = Invented::reads();
        invented.has_none_of(&["unwritten-reads"]);
        invented.target().extents = extents(60, 30, 10);
        let finding = invented.has("unwritten-reads", Severity::Void);
        assert_eq!(
            finding.evidence,
            "40 GiB of data.bin was never written (30 GiB reserved, 10 GiB in holes); of the 100 GiB \
             that is read, at least 40 GiB (40 %)."
        );
        invented.target().name = "my data".to_owned();
        let finding = invented.has("unwritten-reads", Severity::Void);
        let command = "`fathom prepare 'my data' --size 100g --overwrite`";
        assert!(finding.advice.contains(command), "{}", finding.advice);
        // The written part could hold the region. Where the holes are is unknown.
        invented.set_region(0, 50 * GIB);
        invented.has("unwritten-reads", Severity::Suspect);
        invented.set_region(0, 70 * GIB);
        invented.has("unwritten-reads", Severity::Void);
        invented.target().extents = None;
        invented.has_none_of(&["unwritten-reads"]);
        invented.is_unchecked("unwritten-reads");
    }

    #[test]
    fn writes_to_what_was_never_written_allocate() {
        let mut invented = Invented::writes();
        invented.has_none_of(&["allocating-writes"]);
        invented.target().extents = extents(60, 40, 0);
        invented.has("allocating-writes", Severity::Note);
        invented.has_none_of(&["unwritten-reads"]);
    }

    #[test]
    fn memory_is_no_storage() {
        let mut invented = Invented::reads();
        invented.target().file_system.as_mut().unwrap().kind = "tmpfs".to_owned();
        invented.has("memory-target", Severity::Suspect);
        for (name, is_memory) in [("ram0", true), ("nullb1", true), ("ramses", false)] {
            let mut invented = Invented::reads();
            invented.disk().name = name.to_owned();
            assert_eq!(invented.codes().contains(&"memory-target"), is_memory, "{name}");
        }
        let mut zero = Invented::reads();
        zero.target().kind = TargetKind::CharacterDevice;
        zero.has("memory-target", Severity::Suspect);
        Invented::reads().has_none_of(&["memory-target"]);
    }

    #[test]
    fn buffered_access_to_less_than_twice_the_memory_is_the_page_cache() {
        let mut invented = Invented::reads();
        invented.stream().access.cache = Cache::Buffered;
        // 100 GiB against 2 x 16 GiB.
        invented.has_none_of(&["page-cache"]);
        invented.set_region(0, 31 * GIB);
        invented.has("page-cache", Severity::Suspect);
        // A cgroup's limit bounds the page cache too.
        invented.host.memory_limit = Some(Bytes(4 * GIB));
        invented.has_none_of(&["page-cache"]);
        // Reads that did not come from the device came from a cache, however large the region is.
        invented.device().read_bytes.0 /= 2;
        let finding = invented.has("page-cache", Severity::Suspect);
        assert!(finding.evidence.contains("came from vda"), "{}", finding.evidence);
        invented.host.memory = Bytes(0);
        invented.is_unchecked("page-cache");
    }

    #[test]
    fn a_footprint_that_the_disks_caches_may_hold_is_a_note() {
        let mut invented = Invented::reads();
        // For a disk of 107 GB, the assumed cache is 256 MB.
        invented.set_region(0, 512_000_000);
        invented.has_none_of(&["small-footprint"]);
        invented.set_region(0, 511_995_904);
        let finding = invented.has("small-footprint", Severity::Note);
        assert!(finding.evidence.contains("of data.bin, less than 488.28 MiB"), "{finding:?}");
        // A disk of 4 TB has a cache of 4 GB, and an array has more.
        invented.disk().size = Bytes(4_000_000_000_000);
        invented.set_region(0, 8_000_000_000);
        invented.has_none_of(&["small-footprint"]);
        invented.set_region(0, 7_999_995_904);
        invented.has("small-footprint", Severity::Note);
        invented.set_region(0, 100_000_000_000);
        invented.has_none_of(&["small-footprint"]);
        invented.disk().disk.as_mut().unwrap().model = Some("DELL PERC H740P".to_owned());
        invented.has("small-footprint", Severity::Note);
        // What is behind a virtual disk is unknown. The finding would appear in every run.
        invented.disk().disk.as_mut().unwrap().model = Some("QEMU HARDDISK".to_owned());
        invented.has_none_of(&["small-footprint"]);
    }

    #[test]
    fn what_two_streams_share_is_counted_once() {
        let mut invented = Invented::reads();
        invented.set_region(0, 400_000_000);
        let mut other = invented.stream().clone();
        other.regions[0].offset = Bytes(200_000_000);
        invented.trial.point.streams.push(other.clone());
        // 600 MB together, because the other region begins in the middle.
        invented.has_none_of(&["small-footprint"]);
        invented.trial.point.streams[1].regions[0].offset = Bytes(50_000_000);
        invented.has("small-footprint", Severity::Note);
    }

    #[test]
    fn blocks_that_are_no_multiple_of_the_physical_sector_are_misaligned() {
        let mut invented = Invented::reads();
        invented.has_none_of(&["misaligned"]);
        invented.set_block_size(512);
        invented.has("misaligned", Severity::Note);
        invented.set_block_size(4096);
        invented.set_region(512, 50 * GIB);
        let finding = invented.has("misaligned", Severity::Note);
        assert!(finding.evidence.contains("from offset 512"), "{}", finding.evidence);
    }

    #[test]
    fn stripes_show_their_geometry() {
        let mut invented = Invented::writes();
        let layer = invented.disk();
        layer.stripe = Some(Stripe { chunk: Bytes(64 << 10), full: Bytes(192 << 10) });
        layer.detail = Some("raid5, 4 disks".to_owned());
        let finding = invented.has("partial-stripes", Severity::Note);
        assert!(finding.evidence.contains("chunks of 64 KiB, 192 KiB a stripe"));
        invented.has_none_of(&["misaligned"]);
        invented.set_block_size(192 << 10);
        invented.has_none_of(&["partial-stripes", "misaligned"]);
        invented.set_block_size(96 << 10);
        invented.has("misaligned", Severity::Note);
        // Without parity, writing a part of a stripe costs nothing extra.
        invented.disk().detail = Some("raid0, 4 disks".to_owned());
        invented.set_block_size(4096);
        invented.has_none_of(&["partial-stripes", "misaligned"]);
    }

    #[test]
    fn writes_to_a_volatile_cache_are_noted() {
        let mut invented = Invented::writes();
        invented.has_none_of(&["volatile-write-cache"]);
        invented.disk().queue.as_mut().unwrap().volatile_write_cache = Some(true);
        invented.has("volatile-write-cache", Severity::Note);
        invented.stream().access.sync = SyncMode::Dsync;
        invented.has_none_of(&["volatile-write-cache"]);
        invented.stream().access.sync = SyncMode::None;
        invented.disk().queue.as_mut().unwrap().volatile_write_cache = None;
        invented.is_unchecked("volatile-write-cache");
        let mut reads = Invented::reads();
        reads.disk().queue.as_mut().unwrap().volatile_write_cache = Some(true);
        reads.has_none_of(&["volatile-write-cache"]);
    }

    #[test]
    fn file_systems_that_do_more_than_asked_are_named() {
        let mut invented = Invented::reads();
        let fs = invented.target().file_system.as_mut().unwrap();
        fs.copy_on_write = true;
        invented.has_none_of(&["copy-on-write", "compression"]);
        let fs = invented.target().file_system.as_mut().unwrap();
        fs.compression = Some("zstd:3".to_owned());
        invented.has("compression", Severity::Suspect);
        let mut writes = Invented::writes();
        writes.has_none_of(&["copy-on-write", "compression"]);
        writes.target().file_system.as_mut().unwrap().copy_on_write = true;
        writes.has("copy-on-write", Severity::Note);
    }

    #[test]
    fn a_priority_that_nobody_looks_at_is_a_note() {
        let mut invented = Invented::reads();
        invented.has_none_of(&["io-priority-ignored"]);
        invented.stream().workplace.io_priority = Some(crate::spec::IoPriority::RealTime(3));
        let finding = invented.has("io-priority-ignored", Severity::Note);
        assert!(finding.evidence.contains("realtime:3"), "{}", finding.evidence);
        assert!(finding.evidence.contains("is none: only bfq"), "{}", finding.evidence);
        let set = |invented: &mut Invented, name: &str| {
            invented.disk().queue.as_mut().unwrap().scheduler = Some(name.to_owned());
        };
        set(&mut invented, "mq-deadline");
        assert!(
            invented.has("io-priority-ignored", Severity::Note).evidence.contains("class alone")
        );
        set(&mut invented, "bfq");
        invented.has_none_of(&["io-priority-ignored"]);
    }
}
