//! The differences between the targets of two results, down to their disks.

use fathom_core::Bytes;
use fathom_core::facts::AtomicWrites;
use fathom_core::figures::percent;

use super::FactWeight::{Decisive, Likely, Possible, Slight};
use super::{Differing, Identity, paired};
use crate::document::{
    Content, Disk, FileSystem, InUse, IoLimit, Layer, LayerKind, Queue, Reduction, Stripe, Target,
    rfc3339,
};
use crate::figures;

/// From this share on a property of the samples is one of the content.
const MOST: f64 = 0.5;

/// A target with its identity.
pub struct Known<'a>(&'a Target, Identity);

/// The targets of a header with their identities, which only some results have.
pub fn known<'a>(targets: &'a [Target], identities: &[String]) -> Vec<Known<'a>> {
    let identity = |nth: usize| identities.get(nth).map(|text| Identity::of(text));
    let with = targets.iter().enumerate();
    with.map(|(nth, target)| Known(target, identity(nth).unwrap_or_default())).collect()
}

/// Adds the differences between the targets of two results: each target is compared with that of
/// its name, and the others in their order.
pub fn compare_all(found: &mut Differing, before: &[Known<'_>], after: &[Known<'_>]) {
    if before.len() != after.len() {
        let counts = [before, after].map(|targets| targets.len().to_string());
        found.text(Decisive, "number of targets", &counts[0], &counts[1]);
    }
    let several = before.len() > 1;
    for (one, other) in paired(before, after, |known| figures::place_name(known.0)) {
        let outer = found.subject.clone();
        let name = figures::place_name(one.0);
        let subject = match (several, outer.is_empty()) {
            (false, _) => outer,
            (true, true) => name.to_owned(),
            (true, false) => format!("{name} on {outer}"),
        };
        found.about(&subject, |found| compare(found, one, other));
    }
}

/// Whether a target is a scratch file, which every run creates anew.
fn is_scratch(target: &Target) -> bool {
    figures::place_name(target) != target.name
}

fn compare(found: &mut Differing, before: &Known<'_>, after: &Known<'_>) {
    let (&Known(before, ref identity), &Known(after, ref other)) = (before, after);
    let Target {
        name: _,
        path,
        kind,
        identity: _,
        disk_sequence: _,
        size,
        direct_alignment,
        atomic_writes,
        file_system,
        // They differ with every write, and a doubt tells that a read met nothing that was written.
        extents: _,
        content,
        reduction,
        layers,
        in_use,
        namespace: _,
        limits,
    } = before;
    found.value(Decisive, "kind of the target", (kind, &after.kind), |kind| kind.name().to_owned());
    let names = [before, after].map(figures::place_name);
    found.text(Decisive, "target", names[0], names[1]);
    let whole = names[0] == names[1] && !is_scratch(before) && !is_scratch(after);
    if whole {
        found.text(Possible, "path of the target", path, &after.path);
    }
    if let Some((name, one, two)) = identity.differs(other) {
        found.add(Decisive, name, one, two);
    }
    if let Some((one, two)) = identity.born_ns.zip(other.born_ns).filter(|_| whole) {
        let moment = |ns: &u64| figures::moment(&rfc3339(*ns));
        found.value(Possible, "creation of the file", (&one, &two), moment);
    }
    found.value(Likely, "size of the target", (size, &after.size), exact);
    if let (Some(one), Some(two)) = (file_system, &after.file_system) {
        of_file_systems(found, one, two);
    }
    of_layers(found, layers, &after.layers);
    let limit = |one: &IoLimit| {
        let IoLimit { device, kind, value, file: _ } = one;
        format!("{} {value} for {device}", kind.name())
    };
    let words = |limits: &[IoLimit]| limits.iter().map(limit).collect::<Vec<_>>();
    found.lists(Likely, "limits of control groups", &words(limits), &words(&after.limits));
    let reductions = (reduction, &after.reduction);
    found.known(Likely, "data reduction", (&deeds(reductions.0), &deeds(reductions.1)), |text| {
        text.clone()
    });
    let contents = (content.map(about_content), after.content.map(about_content));
    found.known(Likely, "content", (&contents.0, &contents.1), String::clone);
    let alignments = (direct_alignment, &after.direct_alignment);
    found.known(Possible, "alignment of direct I/O", alignments, Bytes::to_string);
    let atomic = (atomic_writes, &after.atomic_writes);
    found.known(Slight, "atomic writes", atomic, |AtomicWrites { smallest, largest }| {
        format!("{smallest} to {largest}")
    });
    let uses = |target: &[InUse]| target.iter().filter_map(about_use).collect::<Vec<_>>();
    found.lists(Slight, "users of the target", &uses(in_use), &uses(&after.in_use));
}

/// What a probe found the target to do with data, if it decided that.
fn deeds(reduction: &Option<Reduction>) -> Option<String> {
    use crate::document::Answer::Unknown;
    reduction.filter(|one| one.reduces() != Unknown).map(|one| one.deeds())
}

/// Bytes in their unit; in full where the unit hides digits.
fn exact(bytes: &Bytes) -> String {
    let text = bytes.to_string();
    match text.parse::<Bytes>() {
        Ok(same) if same == *bytes => text,
        _ => format!("{text} ({} bytes)", figures::count(bytes.0)),
    }
}

/// What most samples are like: exact shares differ from sample to sample.
fn about_content(content: Content) -> String {
    let Content { samples, block: _, zeros, patterned: _, equal: _, compressible } = content;
    let most = |number: u32| f64::from(samples) * MOST < f64::from(number);
    match compressible {
        _ if most(zeros) => "mostly zeros".to_owned(),
        _ if most(content.repeating()) => "mostly repeated data".to_owned(),
        share if MOST < share => format!("mostly compressible, by {}", percent(MOST)),
        _ => "mostly unique data".to_owned(),
    }
}

/// A use that others than fathom make of the target; none for what does not load it.
fn about_use(in_use: &InUse) -> Option<String> {
    match in_use {
        InUse::Mounted { device, mount_point } => Some(format!("{device} at {mount_point}")),
        InUse::Swap { device } => Some(format!("swap on {device}")),
        InUse::Holder { device, holder } => Some(format!("{holder} on {device}")),
        InUse::Exclusive { device } => Some(format!("a program that has opened {device}")),
        InUse::Signature { .. } | InUse::Unknown { .. } => None,
    }
}

fn of_file_systems(found: &mut Differing, before: &FileSystem, after: &FileSystem) {
    let FileSystem {
        kind,
        source,
        mount_point,
        options,
        size,
        available: _,
        // One of the options.
        read_only: _,
        copy_on_write,
        compression,
        overlay: _,
    } = before;
    found.text(Likely, "file system", kind, &after.kind);
    let words = |options: &str| -> Vec<String> {
        options.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    found.lists(Likely, "mount options", &words(options), &words(&after.options));
    let compressions = (compression, &after.compression);
    found.optional(Likely, "compression of the file system", compressions, String::clone);
    if kind == &after.kind {
        let words = |on: &bool| if *on { "on" } else { "off" }.to_owned();
        found.value(Likely, "copy-on-write", (copy_on_write, &after.copy_on_write), words);
    }
    found.text(Possible, "source of the file system", source, &after.source);
    found.value(Possible, "size of the file system", (size, &after.size), exact);
    found.text(Slight, "mount point", mount_point, &after.mount_point);
}

/// Layers that lie on each other in the same way are compared in their order, others by name.
fn of_layers(found: &mut Differing, before: &[Layer], after: &[Layer]) {
    let shape = |layers: &[Layer]| -> Vec<(LayerKind, Vec<usize>)> {
        layers.iter().map(|layer| (layer.kind, layer.members.clone())).collect()
    };
    let names = |layers: &[Layer]| {
        let one = |layer: &Layer| format!("{} {}", layer.kind.name(), layer.name);
        match layers {
            [] => "none".to_owned(),
            few => few.iter().map(one).collect::<Vec<_>>().join(", "),
        }
    };
    let pairs = if shape(before) == shape(after) {
        found.value(Slight, "names of the devices", (&names(before), &names(after)), String::clone);
        before.iter().zip(after).collect()
    } else {
        found.add(Likely, "layers", names(before), names(after));
        let mut pairs = paired(before, after, |layer| &layer.name);
        pairs.retain(|(one, other)| one.name == other.name);
        pairs
    };
    for (one, other) in pairs {
        let name = match one.name == other.name {
            true => one.name.clone(),
            false => format!("{} and {}", one.name, other.name),
        };
        found.about(&name, |found| of_layer(found, one, other));
    }
}

fn of_layer(found: &mut Differing, before: &Layer, after: &Layer) {
    let Layer {
        name: _,
        // The numbers that the kernel gives in the order in which it finds devices.
        device: _,
        kind: _,
        size,
        members: _,
        stripe,
        detail,
        begins_at,
        direct,
        array: _,
        queue,
        disk,
    } = before;
    if let (Some(one), Some(other)) = (disk, &after.disk) {
        of_disks(found, one, other);
    }
    found.value(Likely, "size", (size, &after.size), exact);
    found.known(Likely, "detail", (detail, &after.detail), String::clone);
    found.optional(Likely, "stripe", (stripe, &after.stripe), |Stripe { chunk, full }| {
        format!("chunk {chunk}, full stripe {full}")
    });
    found.known(Likely, "beginning", (begins_at, &after.begins_at), exact);
    let direct = (direct, &after.direct);
    found.known(Likely, "direct I/O", direct, |on| if *on { "on" } else { "off" }.to_owned());
    if let (Some(one), Some(other)) = (queue, &after.queue) {
        of_queues(found, one, other);
    }
}

fn of_disks(found: &mut Differing, before: &Disk, after: &Disk) {
    let Disk { model, firmware, rotational, numa_node, transport, device_queue_depth } = before;
    found.known(Likely, "model", (model, &after.model), String::clone);
    found.known(Likely, "firmware", (firmware, &after.firmware), String::clone);
    found.known(Likely, "rotational", (rotational, &after.rotational), yes_or_no);
    found.known(Likely, "transport", (transport, &after.transport), String::clone);
    found.known(Possible, "NUMA node", (numa_node, &after.numa_node), u32::to_string);
    let depths = (device_queue_depth, &after.device_queue_depth);
    found.known(Possible, "queue depth", depths, u32::to_string);
}

fn of_queues(found: &mut Differing, before: &Queue, after: &Queue) {
    let Queue {
        scheduler,
        nr_requests,
        hardware_queues,
        logical_sector,
        physical_sector,
        minimum_io,
        optimal_io,
        max_request,
        max_segments: _,
        volatile_write_cache,
        write_cache_told,
        fua,
        discard_max,
        polling,
        counts,
    } = before;
    found.known(Likely, "scheduler", (scheduler, &after.scheduler), String::clone);
    let caches = (volatile_write_cache, &after.volatile_write_cache);
    found.known(Likely, "volatile write cache", caches, yes_or_no);
    let told = (write_cache_told, &after.write_cache_told);
    found.known(Likely, "write cache by the device's word", told, yes_or_no);
    let sizes = (max_request, &after.max_request);
    found.known(Likely, "largest request", sizes, Bytes::to_string);
    let requests = (nr_requests, &after.nr_requests);
    found.known(Possible, "requests of a hardware queue", requests, u32::to_string);
    let queues = (hardware_queues, &after.hardware_queues);
    found.known(Possible, "hardware queues", queues, u32::to_string);
    let sectors = (logical_sector, &after.logical_sector);
    found.known(Possible, "logical sector", sectors, Bytes::to_string);
    let sectors = (physical_sector, &after.physical_sector);
    found.known(Possible, "physical sector", sectors, Bytes::to_string);
    found.known(Possible, "durable writes (FUA)", (fua, &after.fua), yes_or_no);
    found.known(Possible, "polling", (polling, &after.polling), yes_or_no);
    found.known(Slight, "minimum I/O", (minimum_io, &after.minimum_io), Bytes::to_string);
    found.known(Slight, "optimal I/O", (optimal_io, &after.optimal_io), Bytes::to_string);
    found.known(Slight, "largest discard", (discard_max, &after.discard_max), Bytes::to_string);
    found.known(Slight, "counters of the kernel", (counts, &after.counts), yes_or_no);
}

fn yes_or_no(yes: &bool) -> String {
    if *yes { "yes" } else { "no" }.to_owned()
}
