//! Whether durable writes were durable: whether flushes reached the device, and whether nothing
//! that ensures durability was switched off.

use super::case::{Case, counted, listed, stream_does};
use super::{Judgement, Severity};
use crate::facts::{FileSystem, Layer, LayerKind, Target};
use crate::figures::percent;
use crate::measure::{Direction, Upkeep};
use crate::spec::Stream;

/// Fewer flushes than this share of the expected ones count as next to none.
const FLUSHES_MIN: f64 = 0.01;
/// From this many durable writes on, missing flushes are reported.
const DURABLE_MIN: u64 = 100;

fn is_durable(stream: &Stream) -> bool {
    stream_does(stream, Direction::Write) && (stream.access.is_durable() || stream.flush.is_some())
}

/// Durable writes after which next to no flushes reached a device that loses unflushed data.
pub(super) fn few_flushes(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "few-flushes";
    let asked: u64 = durable_operations(case);
    let Some(counters) = case.trial.counters.as_ref().filter(|_| DURABLE_MIN <= asked) else {
        return;
    };
    if !counts_flushes(&case.host.kernel) {
        return judgement.cannot(CODE, "kernels before 5.5 do not count flushes");
    }
    // Flushes that wait together become one: as many as are in flight, or as there are workers.
    let in_flight: f64 = case.trial.record.workers.iter().map(|one| one.queue_depth.max(1.0)).sum();
    let least = asked as f64 / in_flight.max(1.0) * FLUSHES_MIN;
    let written = |place: u32| case.regions().any(|(s, r)| r.target == place && is_durable(s));
    let by_flushes = case.streams().iter().any(|stream| stream.flush.is_some());
    for (_, target) in case.used().filter(|(place, _)| written(*place)) {
        for layer in target.layers.iter().filter(|layer| is_volatile(layer)) {
            let found = counters.devices.iter().find(|one| Some(one.device) == layer.device);
            let Some(found) = found.filter(|found| (found.flushes as f64) < least) else {
                continue;
            };
            let fua = layer.queue.as_ref().and_then(|queue| queue.fua) == Some(true);
            if fua && !by_flushes {
                let why = format!(
                    "{} takes writes that are durable by themselves (FUA), which no counter shows",
                    layer.name
                );
                judgement.cannot(CODE, why);
                continue;
            }
            judgement.find(
                CODE,
                Severity::Suspect,
                format!(
                    "{} were to be durable, and {} has a volatile write cache and was told to flush \
                     it {} ({} of them).",
                    counted(asked, "write"),
                    layer.name,
                    counted(found.flushes, "time"),
                    percent(found.flushes as f64 / asked as f64)
                ),
                "A power cut would lose such writes: see whether barriers are off, or something above \
                 the device answers fsync by itself.",
            );
        }
    }
}

/// Writes that are durable one by one, and flushes.
fn durable_operations(case: &Case) -> u64 {
    let of_stream = |(index, stream): (usize, &Stream)| match stream.flush {
        Some(_) => case.upkeep(Upkeep::Flush, |worker| worker.stream as usize == index),
        None if is_durable(stream) => {
            let cells = case.workers(index).flat_map(|worker| &worker.cells);
            let writes = cells.map(|cell| &cell.flows[Direction::Write as usize]);
            writes.map(|flow| flow.service_time.count()).sum()
        }
        None => 0,
    };
    case.streams().iter().enumerate().map(of_stream).sum()
}

/// Whether it has its own request queue that counts flushes, and a cache that needs them.
fn is_volatile(layer: &Layer) -> bool {
    matches!(layer.kind, LayerKind::Disk | LayerKind::Loop)
        && layer.queue.as_ref().and_then(|queue| queue.volatile_write_cache) == Some(true)
}

/// Whether a kernel of this release counts flushes (since 5.5).
fn counts_flushes(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (5, 5) <= (major, minor),
        _ => false,
    }
}

/// A file system or a queue that is set not to flush.
pub(super) fn barriers_off(case: &Case, judgement: &mut Judgement) {
    let durable = case.streams().iter().any(is_durable);
    let severity = if durable { Severity::Suspect } else { Severity::Note };
    let written = |place: u32| {
        let mut regions = case.regions();
        regions.any(|(s, region)| region.target == place && stream_does(s, Direction::Write))
    };
    let targets = || case.used().filter(|(place, _)| written(*place)).map(|(_, target)| target);
    let without = |target: &Target| {
        let fs = target.file_system.as_ref()?;
        Some(format!("{} at {} ({})", fs.kind, fs.mount_point, no_barriers(fs)?))
    };
    let mounts: Vec<String> = targets().filter_map(without).collect();
    if !mounts.is_empty() {
        judgement.find(
            "barriers-off",
            severity,
            format!(
                "Barriers are off on {}: fsync and O_DSYNC do not flush the device's cache.",
                listed(mounts.iter().map(String::as_str))
            ),
            "Mount it with barriers to measure durable writes; without them a power cut loses what was \
             acknowledged.",
        );
    }
    let by_hand = |layer: &&Layer| {
        layer.queue.as_ref().is_some_and(|queue| {
            queue.volatile_write_cache == Some(false) && queue.write_cache_told == Some(true)
        })
    };
    let layers = targets().flat_map(|target| &target.layers).filter(by_hand);
    let names = listed(layers.map(|layer| layer.name.as_str()));
    if !names.is_empty() {
        judgement.find(
            "barriers-off",
            severity,
            format!(
                "The kernel was told that {names} has no volatile write cache (queue/write_cache is \
                 'write through'), and the device says that it has one: it is not flushed."
            ),
            "Undo it with `echo 'write back' > /sys/block/NAME/queue/write_cache`.",
        );
    }
}

/// The mount option that switches barriers off, if there is one.
fn no_barriers(fs: &FileSystem) -> Option<&str> {
    let is_off = |option: &&str| {
        matches!(*option, "nobarrier" | "barrier=0" | "barrier=none" | "fsync_mode=nobarrier")
    };
    fs.options.split(',').find(is_off)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::spec::{Cache, SyncMode};

    /// 60,000 durable writes to a disk with a volatile cache that was flushed `flushes` times.
    fn durable(flushes: u64) -> Invented {
        let mut invented = Invented::writes();
        invented.host.kernel = "6.1.0-13-amd64".to_owned();
        invented.stream().access.sync = SyncMode::Dsync;
        invented.disk().queue.as_mut().unwrap().volatile_write_cache = Some(true);
        invented.device().flushes = flushes;
        invented
    }

    #[test]
    fn durable_writes_without_flushes_are_suspect() {
        durable(60_000).has_none_of(&["few-flushes"]);
        durable(600).has_none_of(&["few-flushes"]);
        let finding = durable(5).has("few-flushes", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "60,000 writes were to be durable, and vda has a volatile write cache and was told to \
             flush it 5 times (0.01 % of them)."
        );
        // With many writes in flight, one flush serves many.
        let mut deep = durable(100);
        deep.has("few-flushes", Severity::Suspect);
        deep.worker().queue_depth = 32.0;
        deep.has_none_of(&["few-flushes"]);
        // No volatile cache, no durable writes, no counters.
        let mut safe = durable(0);
        safe.disk().queue.as_mut().unwrap().volatile_write_cache = Some(false);
        safe.has_none_of(&["few-flushes"]);
        let mut lazy = durable(0);
        lazy.stream().access.sync = SyncMode::None;
        lazy.stream().access.cache = Cache::Direct;
        lazy.has_none_of(&["few-flushes"]);
        let mut old = durable(0);
        old.host.kernel = "5.4.0-42-generic".to_owned();
        old.is_unchecked("few-flushes");
        let mut fua = durable(0);
        fua.disk().queue.as_mut().unwrap().fua = Some(true);
        fua.has_none_of(&["few-flushes"]);
        fua.is_unchecked("few-flushes");
    }

    #[test]
    fn barriers_that_are_off_are_suspect_where_durability_was_asked_for() {
        for option in ["rw,nobarrier", "rw,barrier=0,noatime", "fsync_mode=nobarrier"] {
            let mut invented = durable(60_000);
            invented.target().file_system.as_mut().unwrap().options = option.to_owned();
            let finding = invented.has("barriers-off", Severity::Suspect);
            assert!(finding.evidence.contains("barrier"), "{}", finding.evidence);
            invented.stream().access.sync = SyncMode::None;
            invented.has("barriers-off", Severity::Note);
            invented.stream().kind_mut().read_share = 1.0;
            invented.has_none_of(&["barriers-off"]);
        }
        let mut invented = durable(60_000);
        invented.target().file_system.as_mut().unwrap().options = "rw,barrier=1".to_owned();
        invented.has_none_of(&["barriers-off"]);
    }

    #[test]
    fn a_cache_that_was_switched_off_by_hand_is_found() {
        let mut invented = durable(0);
        let queue = invented.disk().queue.as_mut().unwrap();
        queue.volatile_write_cache = Some(false);
        invented.has_none_of(&["barriers-off"]);
        invented.disk().queue.as_mut().unwrap().write_cache_told = Some(true);
        let finding = invented.has("barriers-off", Severity::Suspect);
        assert!(finding.evidence.contains("told that vda has no"), "{}", finding.evidence);
    }
}
