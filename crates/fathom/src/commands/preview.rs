//! A run's plan, in words: `run` shows it before it starts, `plan` shows it alone.

use fathom_core::facts::{Host, Target};
use fathom_core::measure::Direction;
use fathom_core::plan::worker_count;
use fathom_core::spec::{BackendKind, Point, Region, Stream};
use fathom_core::verdict::{Finding, Severity, foresee};
use fathom_core::{Bytes, Span};
use fathom_report::{document, figures, terminal};

use super::opened::Opened;
use super::outputs;
use crate::cli::values::Backend;
use crate::error::Error;
use crate::live::clock;
use crate::output;
use crate::resolve::Spec;

/// The announcement before a run that measures its point this many times.
pub fn announcement(spec: &Spec, opened: &Opened, repeats: u32) -> Vec<String> {
    let point = &spec.points[0];
    let mut lines = Vec::new();
    match point.streams.as_slice() {
        [stream] => lines.push(format!("{} on {}", point.name, targets(spec, stream))),
        streams => {
            lines.push(format!("{}: {} streams", point.name, streams.len()));
            lines.extend(streams.iter().map(|stream| {
                format!(
                    "stream {}: {} on {}",
                    stream.name,
                    load(point, stream),
                    targets(spec, stream)
                )
            }));
        }
    }
    lines.push(format!(
        "{} {}",
        if opened.is_simulated() { "simulates" } else { "takes" },
        duration(point, repeats)
    ));
    if !opened.is_simulated() {
        lines.extend(overwritten(spec, repeats));
    }
    lines.push(backend(opened));
    lines
}

/// The findings that there will be in any case, each kind once.
pub fn foreseen(spec: &Spec, host: &Host) -> Vec<Finding> {
    let backend = match spec.backend {
        Backend::Auto => BackendKind::Uring,
        Backend::Named(kind) => kind,
    };
    let mut found: Vec<Finding> = Vec::new();
    for point in &spec.points {
        for finding in foresee(point, backend, host, &spec.targets).findings {
            if found.iter().all(|known| known.code != finding.code) {
                found.push(finding);
            }
        }
    }
    found
}

/// Shows findings that can be foreseen.
///
/// # Errors
///
/// When stdout does not take it.
pub fn say_foreseen(found: &[Finding]) -> Result<(), Error> {
    output::say("doubts that can be foreseen")?;
    let findings: Vec<document::Finding> = found.iter().map(document::Finding::from).collect();
    output::say_text(terminal::findings(&findings, &outputs::style()).trim_end_matches('\n'))
}

/// Tells before a run what will make its result void: nobody wants to wait for that.
///
/// # Errors
///
/// As [`say_foreseen`].
pub fn warn_of_void(spec: &Spec, host: &Host) -> Result<(), Error> {
    let mut found = foreseen(spec, host);
    found.retain(|finding| finding.severity == Severity::Void);
    if found.is_empty() { Ok(()) } else { say_foreseen(&found) }
}

/// "backend aio: io_uring is forbidden here by a seccomp filter, ...".
pub fn backend(opened: &Opened) -> String {
    let (backend, reason) = opened.backend();
    format!("backend {}: {reason}", backend.name())
}

/// "35 s: 3 s warm-up, 30 s window, 2 s cool-down; seed 7", and how often.
pub fn duration(point: &Point, repeats: u32) -> String {
    let warm_up = match point.warm_up {
        Span(0) => "no warm-up".to_owned(),
        warm_up => format!("{warm_up} warm-up"),
    };
    let time = clock(Span(point.time().0.saturating_mul(u64::from(repeats))));
    let limits = point.streams.iter().filter(|stream| stream.pacing.limit.is_some()).count();
    let time = match (limits, limits == point.streams.len()) {
        (0, _) => time,
        (_, true) => format!("until all is done, at most {time}"),
        (_, false) => format!("until the streams with a limit are done, at most {time}"),
    };
    let cool_down = match point.cool_down {
        Span(0) => String::new(),
        cool_down => format!(", {cool_down} cool-down"),
    };
    let each = match repeats {
        1 => String::new(),
        n => format!("{n} times "),
    };
    format!("{time}: {each}{warm_up}, {} window{cool_down}; seed {}", point.window, point.seed)
}

/// The load that several streams offer together: "20000/s, 195 MiB/s, by 3 streams with a
/// schedule".
pub fn offered_together(point: &Point) -> Option<String> {
    let seconds = point.window.as_secs_f64();
    let offered = point.streams.iter().filter_map(|stream| {
        let iops = stream.pacing.offered(Span(0), point.window)? / seconds;
        let moved = stream.block_sizes().mean(stream.read_share()) * (1.0 - stream.trim_share);
        Some((iops, iops * moved))
    });
    let offered: Vec<(f64, f64)> = offered.collect();
    if offered.len() < 2 {
        return None;
    }
    let iops = offered.iter().map(|(iops, _)| iops).sum();
    let bytes: f64 = offered.iter().map(|(_, bytes)| bytes).sum();
    Some(format!(
        "{} IOPS and {} MiB/s on average over the window, {} streams together",
        figures::significant(iops),
        figures::significant(figures::mib(bytes)),
        offered.len()
    ))
}

/// The work of a stream: "random 70/30 read/write 8 KiB, queue depth 32".
pub fn load(point: &Point, stream: &Stream) -> String {
    stream.description(point.window)
}

/// The names of a stream's targets, the first few of them.
pub fn targets(spec: &Spec, stream: &Stream) -> String {
    let name = |region: &Region| spec.targets[region.target as usize].name.clone();
    let names: Vec<String> = stream.regions.iter().take(3).map(name).collect();
    match stream.regions.len().saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// "2 workers", "1 worker".
pub fn workers(stream: &Stream) -> String {
    match worker_count(stream) {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

/// For each stream that writes, its targets, and the largest amount in this many trials.
pub fn overwritten(spec: &Spec, repeats: u32) -> Vec<String> {
    let point = &spec.points[0];
    let writing = point.streams.iter().filter(|stream| stream.destroys());
    let line = |stream: &Stream| {
        let length: u64 = stream.regions.iter().map(|region| region.length.0).sum();
        let first = stream.regions[0].offset;
        let place = match stream.regions.iter().all(|region| region.offset == first) {
            true => format!("from offset {first}"),
            false => "from several offsets".to_owned(),
        };
        let payload = figures::payload(&stream.payload);
        let amount = match stream.trims_alone() {
            true => "nothing".to_owned(),
            false => amount(point, stream, repeats),
        };
        format!(
            "OVERWRITES {}: {amount}, anywhere in {} {place}{}{}",
            targets(spec, stream),
            Bytes(length),
            payload
                .filter(|_| stream.does(Direction::Write))
                .map(|payload| format!("; writes {payload}"))
                .unwrap_or_default(),
            if stream.trims() { "; its trims empty parts of it" } else { "" }
        )
    };
    writing.map(line).collect()
}

/// How much a stream writes in this many trials: "up to 3 GiB".
pub fn amount(point: &Point, stream: &Stream, repeats: u32) -> String {
    match scheduled(point, stream) {
        None => "as much as can be written in that time".to_owned(),
        Some(bytes) => format!("up to {}", Bytes((bytes * f64::from(repeats)) as u64)),
    }
}

/// The most bytes that a stream writes by its limit or its schedule; none in a closed loop without
/// a limit, which has neither.
pub fn scheduled(point: &Point, stream: &Stream) -> Option<f64> {
    if let Some(limit) = stream.pacing.limit {
        return Some(limit.bytes(stream).0 as f64 * written_share(stream));
    }
    let window = stream.pacing.offered(Span(0), point.window + point.cool_down)?;
    let begins = stream.pacing.begins_with()?.0 * point.warm_up.as_secs_f64();
    let warm_up = if stream.pacing.active.start.is_some() { 0.0 } else { begins };
    let writes = (warm_up + window) * (1.0 - stream.trim_share) * (1.0 - stream.read_share());
    Some(writes * stream.block_sizes().mean(0.0))
}

/// The share of a stream's bytes that is written.
fn written_share(stream: &Stream) -> f64 {
    let writes = 1.0 - stream.read_share();
    writes * stream.block_sizes().mean(0.0) / stream.block_sizes().mean(stream.read_share())
}

/// A region of a target: "all 10 GiB", "1 GiB from offset 4 GiB of 10 GiB".
pub fn region(target: &Target, region: &Region) -> String {
    // The remainder at the end is less than a block.
    match region.offset == Bytes(0) && target.size.0 - region.length.0 < Bytes::MIB {
        true => format!("all {}", region.length),
        false => format!("{} from offset {} of {}", region.length, region.offset, target.size),
    }
}
