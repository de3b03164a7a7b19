//! A target down its device stack.

use fathom_core::Bytes;

use super::{Block, Fact, Page, Sentence, Tone};
use crate::document::{Content, Extents, FileSystem, InUse, Layer, Queue, Target, TargetKind};
use crate::figures;

/// The kind of a target, its device stack, and the conclusions for a test.
pub fn target(target: &Target, advice: &[String]) -> Page {
    let mut about = stack(target);
    about.remove(0);
    let advice = (!advice.is_empty()).then(|| {
        Block::section("what follows for a test", Vec::from([Block::List(advice.to_vec())]))
    });
    let title = target.name.clone();
    Page {
        title,
        answer: None,
        figures: None,
        about,
        outcome: None,
        blocks: advice.into_iter().collect(),
    }
}

/// The target's name, the facts about it, and the layers below it.
pub fn stack(target: &Target) -> Vec<Block> {
    let name = Sentence { tone: Tone::Strong, text: target.name.clone() };
    let mut blocks = Vec::from([Block::Text(name), Block::Facts(facts(target))]);
    if !target.layers.is_empty() {
        let mut lines = Vec::new();
        roots(target).into_iter().for_each(|root| layer(&mut lines, target, root, 0));
        blocks.push(Block::section("device stack", Vec::from([Block::Tree(lines)])));
    }
    blocks
}

fn facts(target: &Target) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut line = |name: &str, text: String| facts.push(Fact::new(name, text));
    if target.path != target.name {
        line("path", target.path.clone());
    }
    match target.kind {
        // Its size is the free space, which is reported below.
        TargetKind::Folder => line("kind", target.kind.name().to_owned()),
        kind => line("kind", format!("{} of {}", kind.name(), target.size)),
    }
    if let Some(alignment) = target.direct_alignment {
        line("direct I/O", format!("in multiples of {alignment}"));
    }
    if let Some(file_system) = &target.file_system {
        line("file system", about_file_system(file_system));
        line("mounted", format!("at {} ({})", file_system.mount_point, file_system.options));
        let free = file_system.available;
        line("free space", format!("{free} of {}", file_system.size));
    }
    if let Some(extents) = &target.extents {
        line("extents", about_extents(extents));
    }
    if let Some(content) = &target.content {
        line("content", about_content(content));
    }
    if let Some(reduction) = &target.reduction {
        reduction.sentences().into_iter().for_each(|one| line("reduction", one));
    }
    target.in_use.iter().for_each(|in_use| line("in use", about_use(in_use)));
    facts
}

fn about_file_system(file_system: &FileSystem) -> String {
    let mut text = format!("{} on {}", file_system.kind, file_system.source);
    if file_system.read_only {
        text += ", read-only";
    }
    if file_system.copy_on_write {
        text += ", copy-on-write";
    }
    if let Some(compression) = &file_system.compression {
        text += &format!(", compression {compression}");
    }
    text
}

fn about_content(content: &Content) -> String {
    let Content { samples, block, zeros, patterned, equal, compressible } = *content;
    let mut text = format!("{samples} samples of {block}");
    for (number, what) in
        [(zeros, "zeros"), (patterned, "one short pattern over and over"), (equal, "equal others")]
    {
        if number > 0 {
            text += &format!(", {number} {what}");
        }
    }
    match (zeros + patterned + equal, compressible) {
        (0, 0.0) => text + ", all different; nothing to compress",
        (_, 0.0) => text,
        (_, share) => {
            let share = figures::percent(share);
            text + &format!("; {share} of the others can be compressed away")
        }
    }
}

fn about_extents(extents: &Extents) -> String {
    let mut text = format!("{}: {} written", extents.count, extents.written);
    if !extents.unwritten.is_zero() {
        text += &format!(", {} reserved and never written", extents.unwritten);
    }
    if !extents.holes.is_zero() {
        text += &format!(", {} in holes", extents.holes);
    }
    if !extents.shared.is_zero() {
        text += &format!(", {} shared with other files or snapshots", extents.shared);
    }
    text
}

fn about_use(in_use: &InUse) -> String {
    match in_use {
        InUse::Mounted { device, mount_point } => format!("{device} is mounted at {mount_point}"),
        InUse::Swap { device } => format!("{device} is active swap"),
        InUse::Holder { device, holder } => format!("{device} is part of {holder}"),
        InUse::Signature { device, kind } => format!("{device} carries the mark of {kind}"),
        InUse::Exclusive { device } => format!("{device} is open for somebody else alone"),
        InUse::Unknown { device, why } => {
            format!("it cannot be seen whether {device} holds data or is used ({why})")
        }
    }
}

/// The layers that are not members of another one.
fn roots(target: &Target) -> Vec<usize> {
    let member = |place: &usize| target.layers.iter().any(|layer| layer.members.contains(place));
    (0..target.layers.len()).filter(|place| !member(place)).collect()
}

/// No real stack is deeper, and a document may come from anywhere.
const DEPTH_SHOWN: usize = 16;

fn layer(lines: &mut Vec<(usize, Sentence)>, target: &Target, place: usize, depth: usize) {
    let Some(this) = target.layers.get(place) else { return };
    let mut head = format!("{}, {}, {}", this.name, this.kind.name(), this.size);
    if let Some(detail) = &this.detail {
        head += &format!(", {detail}");
    }
    if let Some((major, minor)) = this.device {
        head += &format!(" ({major}:{minor})");
    }
    lines.push((depth, Sentence::plain(head)));
    let quiet = |text| (depth + 1, Sentence { tone: Tone::Quiet, text });
    lines.extend(about_layer(this).into_iter().map(quiet));
    if depth < DEPTH_SHOWN {
        this.members.iter().for_each(|&member| layer(lines, target, member, depth + 1));
    }
}

/// The sentences on a layer, each a line.
fn about_layer(layer: &Layer) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(stripe) = &layer.stripe {
        let (chunk, full) = (stripe.chunk, stripe.full);
        lines.push(format!("chunk {chunk}, full stripe {full}"));
    }
    if let Some(offset) = layer.begins_at.filter(|offset| !offset.is_zero()) {
        lines.push(format!("begins at {offset} ({} bytes)", offset.0));
    }
    lines.extend(layer.direct.map(|direct| {
        if direct { "direct I/O to its file" } else { "through the page cache to its file" }
            .to_owned()
    }));
    if let Some(disk) = &layer.disk {
        let mut parts = Vec::new();
        parts.extend(disk.model.clone());
        parts.extend(disk.firmware.as_ref().map(|firmware| format!("firmware {firmware}")));
        parts.extend(disk.transport.as_ref().map(|transport| format!("attached by {transport}")));
        parts.extend(disk.rotational.map(|turns| {
            if turns { "rotational".to_owned() } else { "not rotational".to_owned() }
        }));
        parts.extend(disk.numa_node.map(|node| format!("NUMA node {node}")));
        parts.extend(disk.device_queue_depth.map(|depth| format!("holds {depth} commands")));
        lines.push(parts.join(", "));
    }
    lines.extend(layer.queue.as_ref().map(about_queue));
    lines.retain(|line| !line.is_empty());
    lines
}

fn about_queue(queue: &Queue) -> String {
    let size = |name: &str, bytes: Option<Bytes>| {
        bytes.filter(|bytes| !bytes.is_zero()).map(|bytes| format!("{name} {bytes}"))
    };
    let mut parts = Vec::new();
    parts.extend(queue.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")));
    parts.extend(queue.nr_requests.map(|n| format!("{n} requests")));
    parts.extend(queue.hardware_queues.map(|n| match n {
        1 => "1 hardware queue".to_owned(),
        n => format!("{n} hardware queues"),
    }));
    parts.extend(size("logical sector", queue.logical_sector));
    parts.extend(size("physical sector", queue.physical_sector));
    parts.extend(size("minimum I/O", queue.minimum_io));
    parts.extend(size("optimal I/O", queue.optimal_io));
    parts.extend(size("largest request", queue.max_request));
    parts.extend(queue.volatile_write_cache.map(|cache| {
        if cache { "volatile write cache".to_owned() } else { "no volatile write cache".to_owned() }
    }));
    parts.extend(queue.discard_max.map(|bytes| match bytes {
        Bytes(0) => "no discard".to_owned(),
        bytes => format!("discards up to {bytes}"),
    }));
    parts.extend(queue.polling.filter(|&polling| polling).map(|_| "can be polled".to_owned()));
    parts.join(", ")
}
