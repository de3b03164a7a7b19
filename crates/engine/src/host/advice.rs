//! The conclusions of `inspect`: what the facts mean for a test. Each is a sentence with the fact
//! and the remedy, and says nothing that the facts do not show.

use fathom_core::facts::{FileSystem, Host, Layer, LayerKind, OverlayLayer, Target, TargetKind};
use fathom_core::{Bytes, typed_path, typed_size};

use crate::target_error::Described;

/// The advice for a user who wants to measure this target, most important first.
pub fn advice(host: &Host, target: &Target) -> Vec<String> {
    let mut found = Vec::new();
    match target.kind {
        // Nothing below, and no possible remedy.
        TargetKind::Simulated | TargetKind::CharacterDevice => return found,
        TargetKind::File
        | TargetKind::BlockDevice
        | TargetKind::NvmeGeneric
        | TargetKind::Folder => {}
    }
    writing(target, &mut found);
    data(target, &mut found);
    if let Some(file_system) = &target.file_system {
        about_file_system(target, file_system, &mut found);
    }
    page_cache(host, target, &mut found);
    sizes(target, &mut found);
    layers(target, &mut found);
    disks(host, target, &mut found);
    generator(host, target, &mut found);
    found
}

/// The memory that can cache: the machine's, or the cgroup's limit.
fn memory(host: &Host) -> Bytes {
    host.memory_limit.unwrap_or(host.memory)
}

/// Whether the target is memory itself, so that advice about disks and caches does not apply.
fn is_memory(target: &Target) -> bool {
    let kind = target.file_system.as_ref().map(|found| found.kind.as_str());
    matches!(kind, Some("tmpfs" | "ramfs"))
}

fn writing(target: &Target, found: &mut Vec<String>) {
    if let Some(usage) = target.in_use.first() {
        let reason = Described(usage);
        found.push(format!("Only read from it: {reason}. fathom refuses to write to it."));
    }
}

fn data(target: &Target, found: &mut Vec<String>) {
    if target.size.0 == 0 && target.kind != TargetKind::Folder {
        found.push("It has no data, so there is nothing to measure.".to_owned());
    }
    let Some(extents) = &target.extents else { return };
    let never = Bytes(extents.unwritten.0 + extents.holes.0);
    if 0 < never.0 {
        found.push(format!(
            "{never} of {} were never written: reading them gives zeros without asking the device, \
             and the first write to them is slower than the next. Write them first, if \
             what the file holds may be lost: `fathom prepare {} --size {} --overwrite`.",
            target.size,
            typed_path(&target.name),
            typed_size(target.size)
        ));
    }
    // Below a few MiB each, sequential I/O in the file is random I/O on a disk.
    let average = target.size.0 / extents.count.max(1);
    if 16 < extents.count && average < Bytes::MIB {
        found.push(format!(
            "The file is in {} pieces of {} on average: sequential I/O in it is not sequential on the \
             device.",
            extents.count,
            Bytes(average)
        ));
    }
}

fn about_file_system(target: &Target, file_system: &FileSystem, found: &mut Vec<String>) {
    let kind = file_system.kind.as_str();
    if file_system.read_only {
        found.push(format!(
            "{} is mounted read-only: only reads can be measured.",
            file_system.mount_point
        ));
    }
    match kind {
        "tmpfs" | "ramfs" => found.push(format!(
            "{kind} is memory: this measures the memory and the kernel, not storage."
        )),
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "glusterfs" | "lustre" | "afs" => {
            found.push(format!(
                "{kind} is on a server: direct I/O goes past this machine's cache and not past the \
                 server's, so use a region larger than the server's memory to measure its disks."
            ));
        }
        "overlay" if file_system.overlay != Some(OverlayLayer::Upper) => found.push(
            "An overlay copies a file of a lower layer when it is first written to: measure on a \
             volume, or on a file that was created here."
                .to_owned(),
        ),
        "virtiofs" => found.push(
            "virtiofs is a folder of the machine around this one, whose page cache takes part."
                .to_owned(),
        ),
        kind if kind == "fuse" || kind.starts_with("fuse.") || kind == "fuseblk" => found.push(
            "A FUSE file system is a program: it takes part in every figure, and may cache."
                .to_owned(),
        ),
        _ => {}
    }
    if file_system.copy_on_write {
        found.push(format!(
            "{kind} writes each overwrite to another place: random writes scatter the file, so later \
             sequential reads get slower; measure reads before random writes."
        ));
    }
    if let Some(algorithm) = &file_system.compression {
        found.push(format!(
            "Compression is on ({algorithm}): data that compresses is faster than the device. \
             `fathom prepare` writes data that does not."
        ));
    }
    let (available, size) = (file_system.available.0, file_system.size.0);
    if 0 < size
        && available < size / 10
        && target.kind != TargetKind::BlockDevice
        && !is_memory(target)
    {
        found.push(format!(
            "Only {} of {} are free: full file systems and full SSDs are slower than the same ones \
             with room.",
            file_system.available, file_system.size
        ));
    }
}

fn page_cache(host: &Host, target: &Target, found: &mut Vec<String>) {
    let memory = memory(host);
    // The size of the future file in a folder is not known.
    let sized = target.kind != TargetKind::Folder && 0 < target.size.0;
    if is_memory(target) || memory.0 == 0 || !sized {
        return;
    }
    let twice = Bytes(memory.0.saturating_mul(2));
    if target.size < twice {
        found.push(format!(
            "With --buffered, the page cache can hold much of it: {memory} of memory. Use direct I/O, \
             or a region of at least {twice}."
        ));
    }
}

fn sizes(target: &Target, found: &mut Vec<String>) {
    if is_memory(target) {
        return;
    }
    let queues = || target.layers.iter().filter_map(|layer| layer.queue.as_ref());
    let physical = queues().filter_map(|queue| queue.physical_sector).max();
    let needed = target.direct_alignment;
    match (needed, physical) {
        (Some(needed), Some(physical)) if needed < physical => found.push(format!(
            "Use block sizes and offsets that are multiples of {physical}, the physical sector: \
             direct I/O takes multiples of {needed}, but writing less than a sector reads it first."
        )),
        (Some(needed), _) if 1 < needed.0 => {
            found.push(format!(
                "Direct I/O takes block sizes and offsets that are multiples of {needed}."
            ));
        }
        _ => {}
    }
    let largest = queues().filter_map(|queue| queue.max_request).min();
    // Below the block sizes of bandwidth tests, the split affects the result.
    if let Some(largest) = largest.filter(|size| 0 < size.0 && size.0 < 4 * Bytes::MIB) {
        found.push(format!(
            "The kernel splits blocks larger than {largest} into several requests, which then count \
             several times in the device's queue."
        ));
    }
}

fn layers(target: &Target, found: &mut Vec<String>) {
    for layer in &target.layers {
        let detail = layer.detail.as_deref().unwrap_or_default();
        if let Some(stripe) = layer.stripe {
            let parity = ["raid4", "raid5", "raid6"].iter().any(|level| detail.starts_with(level));
            let reason = if parity {
                "less has to read before it can write the parity"
            } else {
                "less leaves members without work at queue depth 1"
            };
            found.push(format!(
                "Write sequentially in multiples of {} ({} of {} each): a full stripe of {}; {reason}.",
                stripe.full,
                stripe.full.0 / stripe.chunk.0.max(1),
                stripe.chunk,
                layer.name
            ));
        }
        let is_busy = detail.contains("degraded") || detail.contains("is going on");
        if layer.kind == LayerKind::Md && is_busy {
            found.push(format!(
                "{} is not at rest ({detail}): wait until /proc/mdstat shows it whole and idle.",
                layer.name
            ));
        }
        match layer.kind {
            LayerKind::Loop if layer.direct != Some(true) => found.push(format!(
                "{} presents a file as a disk: that file's cache takes part{} with `losetup \
                 --direct-io=on`.",
                layer.name,
                match layer.direct {
                    Some(_) => ", because its direct I/O is off; switch it on",
                    None => " unless it was made",
                }
            )),
            LayerKind::Zram => found.push(format!(
                "{} is compressed memory: its speed is the CPU's, and depends on the data.",
                layer.name
            )),
            LayerKind::DeviceMapper if detail.starts_with("crypt ") => found.push(format!(
                "{} encrypts: CPU time of the kernel is a part of every figure.",
                layer.name
            )),
            _ => {}
        }
    }
}

fn disks(host: &Host, target: &Target, found: &mut Vec<String>) {
    let disks: Vec<&Layer> = target.disks().filter(|layer| layer.kind == LayerKind::Disk).collect();
    let names = |wanted: &dyn Fn(&Layer) -> bool| {
        let names: Vec<&str> =
            disks.iter().filter(|layer| wanted(layer)).map(|layer| layer.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let cached = |layer: &Layer| {
        layer.queue.as_ref().is_some_and(|queue| queue.volatile_write_cache == Some(true))
    };
    if let Some(names) = names(&cached) {
        found.push(format!(
            "A volatile write cache acknowledges writes on {names} before they are durable: add \
             --write-through to measure durable writes."
        ));
    }
    if let Some(names) = names(&Layer::is_virtual) {
        let around =
            host.virtualization.as_deref().map_or(String::new(), |kind| format!(" ({kind})"));
        found.push(format!(
            "{names}: a virtual disk{around}. Caches, limits and burst credits below it cannot be seen \
             from here: measure for longer than a burst can last, and repeat."
        ));
    }
    if let Some(names) = names(&|layer: &Layer| layer.turns() == Some(true)) {
        found.push(format!(
            "{names}: a rotating disk. Its beginning is about twice as fast as its end, and random \
             I/O is faster in a smaller region: compare only equal regions."
        ));
    }
    if let Some(names) = names(&|layer: &Layer| layer.turns() == Some(false)) {
        found.push(format!(
            "{names}: flash writes fast until its cache and its free blocks are used up. Measure writes \
             until they are steady."
        ));
    }
    queue_depth(&disks, found);
}

fn queue_depth(disks: &[&Layer], found: &mut Vec<String>) {
    let depth = |layer: &&Layer| {
        let queue = layer.queue.as_ref()?;
        let requests = queue.nr_requests?.saturating_mul(queue.hardware_queues?);
        // A disk that accepts fewer commands than the kernel has requests is the limit.
        let own = layer.disk.as_ref().and_then(|disk| disk.device_queue_depth);
        Some(own.map_or(requests, |own| own.min(requests)))
    };
    let depths: Option<Vec<u32>> = disks.iter().map(depth).collect();
    let total: u32 = match depths.filter(|depths| !depths.is_empty()) {
        Some(depths) => depths.into_iter().fold(0, u32::saturating_add),
        None => return,
    };
    let holders = match disks {
        [disk] => format!("{} takes", disk.name),
        _ => "the disks together take".to_owned(),
    };
    found.push(format!(
        "A queue depth above {total} does nothing but wait in the kernel: {holders} no more at once."
    ));
}

fn generator(host: &Host, target: &Target, found: &mut Vec<String>) {
    if let Some(limit) = host.cpu_limit {
        found.push(format!(
            "A control group allows {limit:.2} CPUs: above what they can issue, fathom measures that \
             limit."
        ));
    }
    let node = target.disks().find_map(|layer| layer.disk.as_ref()?.numa_node);
    if let (Some(node), true) = (node, 1 < host.numa_nodes) {
        found.push(format!(
            "The disk is attached to NUMA node {node}: start fathom with `numactl --cpunodebind={node}` \
             to keep the other nodes out of the figures."
        ));
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::facts::{Disk, Extents, InUse, Queue, Stripe};

    use super::*;

    const GIB: u64 = Bytes::GIB;

    fn host() -> Host {
        Host { memory: Bytes(16 * GIB), cpus: 8, numa_nodes: 1, ..Host::default() }
    }

    fn disk() -> Layer {
        Layer {
            name: "sda".to_owned(),
            queue: Some(Queue {
                nr_requests: Some(64),
                hardware_queues: Some(1),
                physical_sector: Some(Bytes(4096)),
                max_request: Some(Bytes(1280 << 10)),
                volatile_write_cache: Some(true),
                ..Queue::default()
            }),
            disk: Some(Disk {
                rotational: Some(true),
                device_queue_depth: Some(32),
                ..Disk::default()
            }),
            ..Layer::default()
        }
    }

    fn file() -> Target {
        Target {
            kind: TargetKind::File,
            direct_alignment: Some(Bytes(512)),
            file_system: Some(FileSystem {
                kind: "ext4".to_owned(),
                size: Bytes(100 * GIB),
                available: Bytes(50 * GIB),
                ..FileSystem::default()
            }),
            extents: Some(Extents { written: Bytes(GIB), count: 3, ..Extents::default() }),
            layers: Vec::from([disk()]),
            ..Target::simulated("data", Bytes(GIB))
        }
    }

    fn says(host: &Host, target: &Target, part: &str) -> bool {
        advice(host, target).iter().any(|sentence| sentence.contains(part))
    }

    #[test]
    fn a_file_on_a_disk_that_turns_has_these_conclusions() {
        let found = advice(&host(), &file());
        let beginnings: Vec<&str> =
            found.iter().map(|text| text.split([':', ',']).next().unwrap()).collect();
        assert_eq!(
            beginnings,
            [
                "With --buffered",
                "Use block sizes and offsets that are multiples of 4 KiB",
                "The kernel splits blocks larger than 1.25 MiB into several requests",
                "A volatile write cache acknowledges writes on sda before they are durable",
                "sda",
                "A queue depth above 32 does nothing but wait in the kernel",
            ]
        );
        assert!(found[0].contains("at least 32 GiB"), "{}", found[0]);
    }

    #[test]
    fn each_fact_has_its_conclusion_and_only_then() {
        let changed = |change: &dyn Fn(&mut Target)| {
            let mut target = file();
            change(&mut target);
            target
        };
        let extents = |unwritten: u64, holes: u64, count: u64| {
            let (unwritten, holes) = (Bytes(unwritten), Bytes(holes));
            changed(&|target| {
                target.extents = Some(Extents { unwritten, holes, count, ..Extents::default() });
            })
        };
        let on = |kind: &str, change: &dyn Fn(&mut FileSystem)| {
            changed(&|target| {
                let file_system = target.file_system.as_mut().unwrap();
                file_system.kind = kind.to_owned();
                change(file_system);
            })
        };
        let layer = |change: &dyn Fn(&mut Layer)| changed(&|target| change(&mut target.layers[0]));
        let stripe = |detail: &'static str| {
            layer(&|layer| {
                layer.kind = LayerKind::Md;
                layer.detail = Some(detail.to_owned());
                layer.stripe = Some(Stripe { chunk: Bytes(64 << 10), full: Bytes(192 << 10) });
            })
        };
        let cases: Vec<(Target, &str)> = Vec::from([
            (extents(GIB / 2, GIB / 4, 3), "768 MiB of 1 GiB were never written"),
            (extents(0, 0, 5000), "in 5000 pieces"),
            (on("ext4", &|fs| fs.read_only = true), "mounted read-only"),
            (on("tmpfs", &|_| {}), "tmpfs is memory"),
            (on("nfs4", &|_| {}), "nfs4 is on a server"),
            (on("overlay", &|_| {}), "An overlay copies"),
            (on("fuse.sshfs", &|_| {}), "A FUSE file system"),
            (on("btrfs", &|fs| fs.copy_on_write = true), "to another place"),
            (on("btrfs", &|fs| fs.compression = Some("zstd:3".to_owned())), "(zstd:3)"),
            (on("ext4", &|fs| fs.available = Bytes(GIB)), "Only 1 GiB of 100 GiB are free"),
            (
                stripe("raid5, 4 disks"),
                "multiples of 192 KiB (3 of 64 KiB each): a full stripe of sda; less has to read",
            ),
            (stripe("raid0, 3 disks"), "less leaves members without work"),
            (stripe("raid5, 4 disks, degraded: 1 missing"), "not at rest"),
            (layer(&|layer| layer.kind = LayerKind::Loop), "presents a file as a disk"),
            (layer(&|layer| layer.kind = LayerKind::Zram), "compressed memory"),
            (
                layer(&|layer| {
                    layer.kind = LayerKind::DeviceMapper;
                    layer.detail = Some("crypt home".to_owned());
                }),
                "encrypts",
            ),
            (
                layer(&|layer| layer.disk.as_mut().unwrap().rotational = Some(false)),
                "flash writes fast",
            ),
            (
                layer(&|layer| layer.disk.as_mut().unwrap().transport = Some("virtio".to_owned())),
                "a virtual disk",
            ),
            (changed(&|target| target.layers.push(disk())), "above 64 does nothing"),
        ]);
        let image = "/images/degraded.img".to_owned();
        let named_so =
            layer(&|layer| (layer.kind, layer.detail) = (LayerKind::Loop, Some(image.clone())));
        assert!(!says(&host(), &named_so, "not at rest"));
        for (target, part) in &cases {
            assert!(says(&host(), target, part), "{part}: {:#?}", advice(&host(), target));
            assert!(!says(&host(), &file(), part), "{part} is said of every file");
        }
    }

    #[test]
    fn a_target_that_somebody_uses_is_only_to_be_read() {
        let in_use = Vec::from([InUse::Swap { device: "/dev/sda1".to_owned() }]);
        let found = advice(&host(), &Target { in_use, ..file() });
        assert!(found[0].starts_with("Only read from it: /dev/sda1 is swap."), "{found:?}");
    }

    #[test]
    fn the_host_has_its_part() {
        let limited = Host { memory_limit: Some(Bytes(GIB / 4)), ..host() };
        assert!(!says(&limited, &file(), "--buffered"), "what the cgroup allows is what can cache");
        let limited = Host { cpu_limit: Some(0.5), ..host() };
        assert!(says(&limited, &file(), "allows 0.50 CPUs"));
        let mut far = file();
        far.layers[0].disk.as_mut().unwrap().numa_node = Some(1);
        assert!(!says(&host(), &far, "NUMA"));
        assert!(says(&Host { numa_nodes: 2, ..host() }, &far, "NUMA node 1"));
    }

    #[test]
    fn nothing_is_said_of_what_is_not_storage() {
        assert_eq!(
            advice(&host(), &Target::simulated("sim:ssd", Bytes(GIB))),
            Vec::<String>::new()
        );
        let found = advice(
            &Host::default(),
            &Target { kind: TargetKind::File, ..Target::simulated("x", Bytes(GIB)) },
        );
        assert_eq!(found, Vec::<String>::new(), "nothing is known");
    }
}
