//! A workload in words: what a stream does, and how.

use fathom_core::Span;
use fathom_core::figures::{percent, significant};
use fathom_core::measure::Direction;
use fathom_core::spec::{Arrivals, Ios, Kind, Loop, Pattern, Payload, Turns, Workers, hex};

use super::short_rate;
use crate::document::{BackendKind, IoPriority, Stream, Trial};

/// "reads", "writes", "70 % reads, 30 % writes".
pub fn mix(read_share: f64) -> String {
    match read_share {
        share if share >= 1.0 => "reads".to_owned(),
        share if share <= 0.0 => "writes".to_owned(),
        share => format!("{} reads, {} writes", percent(share), percent(1.0 - share)),
    }
}

/// The loop in a window of this length: every output says it.
pub fn pacing(stream: &Stream, window: Span) -> String {
    let rests = stream.pacing.rests_in_words();
    match stream.pacing.pace {
        Loop::Closed { queue_depth, .. } => {
            format!("closed loop at queue depth {queue_depth}{rests}")
        }
        Loop::Open { arrivals, queue_depth_max, realtime, .. } => {
            let realtime = if realtime { ", real-time priority" } else { "" };
            let arrivals = match arrivals {
                Arrivals::Uniform => "uniform",
                Arrivals::Poisson => "Poisson",
            };
            let course = match stream.pacing.course() {
                Some(course) => format!(" on average ({course})"),
                None => String::new(),
            };
            format!(
                "open loop, {} IOPS offered{course}, {arrivals} arrivals, queue depth up to \
                 {queue_depth_max}{realtime}{rests}",
                significant(offered(stream, window))
            )
        }
    }
}

/// I/Os per second that an open loop offers in a window of this length, on average; 0 in a closed one.
fn offered(stream: &Stream, window: Span) -> f64 {
    stream.pacing.offered_load(window).map_or(0.0, |load| load.0)
}

/// "1 worker", "4 workers per target", "2 workers".
pub fn workers(stream: &Stream) -> String {
    let plural = |n: u32| counted_workers(u64::from(n));
    match stream.workers {
        Workers::PerTarget(n) if stream.regions.len() > 1 => format!("{} per target", plural(n)),
        Workers::PerTarget(n) | Workers::Total(n) => plural(n),
    }
}

/// "1 worker", "2 workers".
pub fn counted_workers(number: u64) -> String {
    if number == 1 { "1 worker".to_owned() } else { format!("{number} workers") }
}

/// The work of a stream, in one sentence without its pace.
pub fn load(stream: &Stream) -> String {
    let kinds = stream.ios.kinds().into_iter();
    let mut each: Vec<String> = kinds.map(|kind| shape(stream, kind)).collect();
    match &stream.ios {
        Ios::Alike(_) | Ios::ByRegion(_) => each.dedup(),
        Ios::Drawn(parts) => {
            let total: f64 = parts.iter().map(|part| part.weight).sum();
            for (shape, part) in each.iter_mut().zip(parts) {
                *shape = format!("{} %: {shape}", (part.weight * 1000.0 / total).round() / 10.0);
            }
        }
    }
    let load = format!("{}{}", each.join("; "), weights(&stream.turns));
    let load = match payload(&stream.payload) {
        Some(payload) if stream.does(Direction::Write) => format!("{load}, {payload}"),
        _ => load,
    };
    let load = match stream.trim_share > 0.0 && !stream.trims_alone() {
        true => format!("{load}, {} trims", percent(stream.trim_share)),
        false => load,
    };
    match flush(stream) {
        Some(flush) => format!("{load}, {flush}"),
        None => load,
    }
}

/// The pattern, the directions and the sizes of its I/Os of a kind.
fn shape(stream: &Stream, kind: &Kind) -> String {
    let align = kind.align.map(|align| format!(", aligned to {align}"));
    let zones = if stream.zones { ", in a zone for each worker" } else { "" };
    format!(
        "{} {} of {}{}{zones}",
        kind.pattern,
        if stream.trims_alone() { "trims".to_owned() } else { mix(kind.read_share) },
        kind.block_sizes,
        align.unwrap_or_default()
    )
}

/// The names of its patterns: one, or one for each region or part if they differ.
pub fn pattern_names(stream: &Stream) -> String {
    let kinds = stream.ios.kinds().into_iter();
    let mut names: Vec<String> = kinds.map(|kind| kind.pattern.to_string()).collect();
    names.dedup();
    names.join(" + ")
}

/// Whether offsets follow each other by chance.
pub fn is_random(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Random(_) | Pattern::Shuffled => true,
        Pattern::Sequential(_) | Pattern::Interlocked { .. } | Pattern::Mixed { .. } => false,
    }
}

/// Whether a trial has no I/O at random.
pub fn is_in_sequence(trial: &Trial) -> bool {
    let kinds = trial.point.streams.iter().flat_map(|stream| stream.ios.kinds());
    kinds.into_iter().all(|kind| !is_random(&kind.pattern))
}

/// The I/Os that a trial keeps in flight at most, all streams together.
pub fn queue_depth(trial: &Trial) -> u32 {
    trial.point.streams.iter().map(|stream| stream.pacing.queue_depth()).sum()
}

/// ", targets drawn 70 % / 30 %"; empty if they alternate.
fn weights(turns: &Turns) -> String {
    /// A longer sentence would not be read.
    const SHOWN: usize = 8;
    let Turns::Weighted(weights) = turns else { return String::new() };
    let total: f64 = weights.iter().sum();
    let share = |weight: &f64| format!("{} %", (weight * 1000.0 / total).round() / 10.0);
    match weights.len() {
        ..=SHOWN => {
            let shares: Vec<String> = weights.iter().map(share).collect();
            format!(", targets drawn {}", shares.join(" / "))
        }
        _ => ", targets drawn by weight".to_owned(),
    }
}

/// "50 % compressible, 30 % duplicates", "zeros", "the bytes 00ff"; empty for the default, which is
/// unique random bytes.
pub fn payload(payload: &Payload) -> Option<String> {
    let percent = |share: f64| (share * 1e4).round() / 1e2;
    let compressible = |share| format!("{} % compressible", percent(share));
    let duplicates = |share| format!("{} % duplicates", percent(share));
    Some(match payload {
        Payload::Random { compressible: 0.0, dedup: 0.0 } => return None,
        Payload::Random { compressible: share, dedup: 0.0 } => compressible(*share),
        Payload::Random { compressible: 0.0, dedup } => duplicates(*dedup),
        Payload::Random { compressible: share, dedup } => {
            format!("{}, {}", compressible(*share), duplicates(*dedup))
        }
        Payload::Zeros => "zeros".to_owned(),
        Payload::Pattern(bytes) if bytes.len() <= 16 => format!("the bytes {}", hex::digits(bytes)),
        Payload::Pattern(bytes) => format!("a pattern of {} bytes", bytes.len()),
        Payload::Pool { size, file: None } => format!("a random pool of {size}"),
        Payload::Pool { size, file: Some(file) } => {
            format!("a pool of {size} from {}", file.display())
        }
    })
}

/// "fdatasync after 4 writes"; none if there were no flushes.
pub fn flush(stream: &Stream) -> Option<String> {
    let flush = stream.flush?;
    let call = if flush.data_only { "fdatasync" } else { "fsync" };
    let after = match flush.every {
        1 => "each write".to_owned(),
        many => format!("{many} writes"),
    };
    let barrier = if flush.barrier { "" } else { " without a barrier" };
    Some(format!("{call} after {after}{barrier}"))
}

/// Where a stream's workers ran: "workers tied to CPUs 0-3, 8, I/O priority idle, large pages";
/// empty if nothing was set.
pub fn workplace(stream: &Stream) -> Option<String> {
    let place = &stream.workplace;
    let workers = match stream.workers {
        Workers::PerTarget(each) => each as usize * stream.regions.len(),
        Workers::Total(all) => all as usize,
    };
    // Fewer workers than CPUs have the first of them.
    let used = &place.cpus[..place.cpus.len().min(workers)];
    let cpus = |cpus: &[u32]| match cpus {
        [] => None,
        [one] => Some(format!("workers tied to CPU {one}")),
        several => Some(format!("workers tied to CPUs {}", in_a_row(several))),
    };
    let priority = place.io_priority.map(|priority| match priority {
        IoPriority::RealTime(level) => format!("I/O priority realtime:{level}"),
        IoPriority::BestEffort(level) => format!("I/O priority best-effort:{level}"),
        IoPriority::Idle => "I/O priority idle".to_owned(),
    });
    let pages = place.large_pages.then(|| "large pages".to_owned());
    let parts: Vec<String> = [cpus(used), priority, pages].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Numbers in their order, consecutive ones as a range: "0-3, 8, 10".
fn in_a_row(numbers: &[u32]) -> String {
    let rows = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let shown = |row: &[u32]| match row {
        [first, .., last] if 2 < row.len() => format!("{first}-{last}"),
        few => few.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    rows.map(shown).collect::<Vec<_>>().join(", ")
}

/// The text after the window's length if it is not the requested one: " of 30 s, interrupted", " of
/// at most 30 s".
pub fn asked(trial: &Trial) -> String {
    let asked = trial.point.window;
    match (trial.interrupted, trial.ended_early) {
        (true, _) => format!(" of {asked}, interrupted"),
        (false, true) => format!(" of at most {asked}"),
        (false, false) if trial.window() < asked => ", until all was done".to_owned(),
        (false, false) => String::new(),
    }
}

/// "after a warm-up of 5 s", "without a warm-up", "after a warm-up of 5 s and before a cool-down of
/// 2 s".
pub fn before_and_after(trial: &Trial) -> String {
    let before = match trial.point.warm_up {
        Span(0) => "without a warm-up".to_owned(),
        time => format!("after a warm-up of {time}"),
    };
    match trial.point.cool_down {
        Span(0) => before,
        time => format!("{before} and before a cool-down of {time}"),
    }
}

/// The access of the I/Os to the target, and their backend.
pub fn way(trial: &Trial) -> String {
    match trial.backend {
        BackendKind::Sim => trial.backend_reason.clone(),
        backend => {
            let way = match same_access(trial) {
                Some(way) => format!("{way} "),
                // Then each of them has it.
                None => String::new(),
            };
            format!("{way}through {} ({})", backend.name(), trial.backend_reason)
        }
    }
}

/// The access of the I/Os of all streams to their targets, if it is the same.
pub fn same_access(trial: &Trial) -> Option<String> {
    let streams = &trial.point.streams;
    let first = streams.first()?.access;
    streams.iter().all(|stream| stream.access == first).then(|| first.to_string())
}

/// The work of a stream and its access, in a sentence; the access only if it differs from the
/// others'.
pub fn stream_in_words(trial: &Trial, stream: &Stream) -> String {
    let access = match same_access(trial) {
        Some(_) => String::new(),
        None => format!("; {}", stream.access),
    };
    let place = workplace(stream).map(|place| format!("; {place}")).unwrap_or_default();
    let pacing = pacing(stream, trial.point.window);
    format!("{}; {pacing}; {}{access}{place}", load(stream), workers(stream))
}

/// The work of a step, and its queue depth.
pub fn names(trial: &Trial) -> (String, String) {
    match trial.point.streams.as_slice() {
        [stream] => {
            let pattern = pattern_names(stream);
            let mix = match stream.read_share() {
                _ if stream.trims_alone() => "trim".to_owned(),
                share if share >= 1.0 => "read".to_owned(),
                share if share <= 0.0 => "write".to_owned(),
                share => format!("{:.0}/{:.0}", share * 100.0, (1.0 - share) * 100.0),
            };
            let block = stream.block_sizes();
            let depth = match stream.pacing.offered_load(trial.point.window) {
                None => format!("queue depth {}", stream.pacing.queue_depth()),
                Some(load) => format!("{} IOPS offered", short_rate(load.0)),
            };
            (format!("{pattern} {mix} {block}"), depth)
        }
        streams => (trial.point.name.clone(), format!("{} streams", streams.len())),
    }
}
