//! Hosts and targets in words: their names, their disks and the layers below them.

use fathom_core::figures::time;

use super::{completed, memory};
use crate::document::{Clock, Coordinate, Document, Host, Layer, LayerKind, Source, Target, Trial};

/// A target's name by its place in the header.
pub fn target_name(document: &Document, target: u32) -> &str {
    document.header.targets.get(target as usize).map_or("?", |target| target.name.as_str())
}

/// The name of a target's place: its folder, if the target is a scratch file that is gone by the
/// time of reading. The folder has its whole path, because "." means nothing to a reader elsewhere.
pub fn place_name(target: &Target) -> &str {
    match target.path.rsplit_once('/') {
        Some((folder, file)) if file.starts_with(".fathom-scratch") => match folder {
            "" => "/",
            folder => folder,
        },
        _ => &target.name,
    }
}

/// The names of the targets, as in titles.
pub fn place_names(document: &Document) -> Vec<&str> {
    let header = &document.header;
    match &header.imported {
        None => header.targets.iter().map(place_name).collect(),
        Some(source) if source.targets.is_empty() => Vec::from(["an unknown target"]),
        Some(source) => source.targets.iter().map(String::as_str).collect(),
    }
}

/// The facts about results of another program, in a sentence.
pub fn source(source: &Source) -> String {
    let when = source.measured.as_ref().map_or(String::new(), |when| format!(", {when}"));
    format!(
        "Measured by {}{when}, and imported from {}. What its result does not tell is not known: \
         the machine, how the targets are made, half-widths and doubts.",
        source.program,
        source.files.join(", ")
    )
}

/// A target and what is below it, in one line.
pub fn stack(target: &Target) -> String {
    let mut parts = vec![format!("{} of {}", target.kind.name(), target.size)];
    if let Some(fs) = &target.file_system {
        let free = fs.available;
        parts.push(format!("{} on {} at {}, {free} free", fs.kind, fs.source, fs.mount_point));
    }
    let middle: Vec<String> = target
        .layers
        .iter()
        .filter(|layer| !layer.members.is_empty())
        .map(|layer| match geometry(layer).as_slice() {
            [] => format!("{} {}", layer.kind.name(), layer.name),
            parts => format!("{} {} ({})", layer.kind.name(), layer.name, parts.join(", ")),
        })
        .collect();
    parts.extend(middle);
    let disks: Vec<String> = target.disks().map(disk).collect();
    match disks.as_slice() {
        [first, second, .., last] => parts.push(format!(
            "{} disks: {first}; {second}{} {last}",
            disks.len(),
            if disks.len() > 3 { "; ...;" } else { ";" }
        )),
        few => parts.extend(few.iter().cloned()),
    }
    parts.join("; ")
}

/// How a layer spreads data: "raid5, 4 disks", "chunk 64 KiB", "full stripe 192 KiB".
fn geometry(layer: &Layer) -> Vec<String> {
    let mut parts: Vec<String> = layer.detail.iter().cloned().collect();
    // The detail of an md array counts its disks, and says whether one is missing.
    let is_counted = layer.detail.as_ref().is_some_and(|detail| detail.contains(" disks"));
    if !is_counted && (layer.kind == LayerKind::Md || layer.stripe.is_some()) {
        parts.push(format!("{} members", layer.members.len()));
    }
    if let Some(stripe) = &layer.stripe {
        parts.push(format!("chunk {}", stripe.chunk));
        parts.push(format!("full stripe {}", stripe.full));
    }
    parts
}

/// The lines of all trials with a fixed amount, in the order in which they ran, each with the
/// number of the trial and its place: "7: random, 256k, 1/worker, 8 workers".
pub fn runs(document: &Document) -> Vec<(String, String)> {
    let label = |one: &Coordinate| match (one.axis.as_str(), one.label.as_str()) {
        ("workers", "1") => "1 worker".to_owned(),
        ("workers", label) => format!("{label} workers"),
        (_, label) => label.to_owned(),
    };
    let line = |(nth, trial): (usize, &Trial)| {
        let labels = trial.place.coordinates.iter().map(label);
        let place = labels.collect::<Vec<_>>().join(", ");
        Some((format!("{}: {place}", nth + 1), completed(trial)?))
    };
    document.trials.iter().enumerate().filter_map(line).collect()
}

fn disk(layer: &Layer) -> String {
    let facts = layer.disk.as_ref();
    let model = facts.and_then(|disk| disk.model.as_deref()).map(|model| format!(" {model}"));
    let turns = match facts.and_then(|disk| disk.rotational) {
        Some(true) => ", rotational",
        Some(false) | None => "",
    };
    let transport = facts.and_then(|disk| disk.transport.as_deref());
    let transport = transport.map(|transport| format!(", {transport}")).unwrap_or_default();
    format!(
        "{} {}{}, {}{transport}{turns}",
        layer.kind.name(),
        layer.name,
        model.unwrap_or_default(),
        layer.size
    )
}

/// A host in a line.
pub fn host(host: &Host) -> String {
    let mut facts =
        Vec::from([format!("{}: Linux {}, {} CPUs", host.name, host.kernel, host.cpus)]);
    facts.extend(host.cpu_model.clone());
    facts.push(memory(host.memory));
    facts.extend(host.virtualization.clone());
    facts.join(", ")
}

/// The clock that stamped the I/Os, in a line.
pub fn clock(clock: &Clock) -> String {
    format!(
        "{}: a reading costs {}, its smallest step is {}",
        clock.source,
        time(clock.cost_ns),
        time(clock.resolution_ns)
    )
}
