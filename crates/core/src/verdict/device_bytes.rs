//! Bytes at the devices compared with bytes requested: missing bytes came from a cache, additional
//! bytes came from other programs.
//!
//! The comparison is only made if each byte requested is a byte at the device. Through a partition,
//! a loop device or a device-mapper device over one device it is; through an array it depends on
//! the direction, because mirrors and parity multiply writes. So each target is compared as far
//! down as its bytes can be followed, and at its top if they can be followed nowhere below. Targets
//! that share a device are compared together.

use std::collections::BTreeSet;

use super::case::{Case, counted as counted_of, listed, stream_does};
use super::{Judgement, Obstacle, Severity};
use crate::facts::{DeviceCounters, Layer, LayerKind, Target, TargetKind};
use crate::figures::percent;
use crate::measure::Direction;
use crate::spec::Stream;
use crate::units::{Bytes, count};

/// If less than this share of the requested bytes reached the device, the rest came from a cache.
const REACHED_MIN: f64 = 0.9;
/// If more than this share of the device's bytes was not the load's, there is other I/O.
const FOREIGN_MAX: f64 = 0.02;
/// There is other I/O, even if it moved few bytes, if it was more than this share of the device's
/// I/Os and more than `FOREIGN_IOS_SLACK` I/Os.
const FOREIGN_IOS_MAX: f64 = 0.05;
/// The number of other I/Os that are always allowed.
const FOREIGN_IOS_SLACK: u64 = 200;
/// Bytes of a journal are written a second time, to their place: the file system's own writes are
/// up to this many times the journal's.
const JOURNAL_FACTOR: u64 = 2;
/// A page: the smallest piece of memory that a request consists of.
const PAGE: u64 = 4096;
/// The bytes that the file system's journal and the like may add.
const SLACK: u64 = Bytes::MIB;
/// The counters are read at most this long after the window's ends.
const EDGE_SECONDS: f64 = 0.02;
/// Counters that were read later than this share of the window say nothing about it.
const LATE_MAX: f64 = 0.05;

type Number = (u32, u32);

/// Devices whose bytes together are the bytes of some targets.
#[derive(Clone, Debug)]
struct Site {
    devices: BTreeSet<Number>,
    /// Bytes requested, by direction.
    asked: [u64; 2],
    /// Whether each byte requested is a byte at these devices, by direction.
    comparable: [bool; 2],
    /// The most requests that the kernel makes of the requested I/Os; none if that is not known.
    requests: Option<u64>,
    /// The additional writes that a file system may make, if there is one above.
    own_writes: Option<OwnWrites>,
}

/// The own writes of the file systems above some devices.
#[derive(Clone, Debug)]
struct OwnWrites {
    /// Their kinds, in words: "ext4".
    kind: String,
    /// The commits of their journals in the window, if they report them.
    commits: Option<u64>,
    /// The most bytes that they may have written for these.
    bytes: u64,
}

/// Bytes of one direction at the devices that serve it.
pub(super) struct Reached {
    /// The devices.
    pub(super) names: String,
    pub(super) asked: u64,
    pub(super) device: u64,
    slack: u64,
}

impl Reached {
    /// Whether many of the requested bytes never reached the devices.
    pub(super) fn is_cached(&self) -> bool {
        ((self.device + self.slack) as f64) < REACHED_MIN * self.asked as f64
    }
}

/// The bytes of one direction that reached the devices; none if they cannot be compared.
pub(super) fn reached(case: &Case, direction: Direction) -> Option<Reached> {
    let sites = sites(case);
    let worst = |reached: &Reached| reached.device as f64 / reached.asked.max(1) as f64;
    sites
        .bottom
        .iter()
        .chain(&sites.top)
        .filter_map(|site| site.reached(case, direction))
        .filter(|reached| reached.asked > 0)
        .min_by(|a, b| worst(a).total_cmp(&worst(b)))
}

/// The place where the bytes enter the devices, and how far down they can be followed.
struct Sites {
    top: Vec<Site>,
    bottom: Vec<Site>,
}

/// Why reads of ranges that the run itself has trimmed are not compared.
const TRIMMED: &str = "reads of what the run's own trims have emptied do not reach the device";

/// Why the devices' counters say nothing about the load, if they do not.
fn blind(case: &Case) -> Option<(Obstacle, String)> {
    let Some(counters) = &case.trial.counters else {
        let why = "the devices' counters in the window are not known".to_owned();
        return Some((Obstacle::Machine, why));
    };
    let (late, window) = (counters.late, case.trial.record.window);
    if late.as_secs_f64() > LATE_MAX * window.as_secs_f64() {
        let why = format!(
            "the devices' counters were read up to {late} beside the ends of the window of {window}, \
             because other programs had the CPUs: measure longer, or without them"
        );
        return Some((Obstacle::Machine, why));
    }
    let passes_by = case.used().any(|(_, target)| target.kind == TargetKind::NvmeGeneric);
    passes_by.then(|| {
        let why = "the kernel does not count NVMe commands that pass by its block layer";
        (Obstacle::Load, why.to_owned())
    })
}

/// Both checks that use the devices' counters.
pub(super) fn device_bytes(case: &Case, judgement: &mut Judgement) {
    if let Some((obstacle, why)) = blind(case) {
        for code in ["cached-below", "foreign-io"] {
            judgement.left_unchecked(code, why.clone(), obstacle);
        }
        return;
    }
    let silent = silent(case, judgement);
    let sites = sites(case);
    let mut compared = false;
    for direction in Direction::BOTH.into_iter().filter(|direction| case.does(*direction)) {
        match reached(case, direction) {
            Some(reached) => {
                compared = true;
                let trimmed = direction == Direction::Read && case.reads_what_it_trims();
                if trimmed {
                    judgement.cannot_ever("cached-below", TRIMMED);
                } else if case.is_direct() && reached.is_cached() {
                    cached_below(judgement, direction, &reached);
                }
            }
            None if silent.is_empty()
                && case.is_direct()
                && case.trial.record.total(Some(direction)).ios() > 0 =>
            {
                judgement.cannot("cached-below", why_not(case, direction));
            }
            None => {}
        }
    }
    for loop_device in unseen_loops(case) {
        judgement.cannot(
            "cached-below",
            format!(
                "{loop_device} may keep its file in the page cache of its host, which is not seen from \
                 here (losetup --direct-io=on prevents it)"
            ),
        );
    }
    let before = judgement.findings.len();
    if !case.is_direct() {
        judgement
            .cannot_ever("foreign-io", "buffered I/O reaches the device at other times than asked");
    } else if compared {
        sites.bottom.iter().for_each(|site| site.foreign(case, judgement));
    } else if let Some(array) = resyncing(case) {
        judgement.cannot("foreign-io", format!("{array}, and its disks count that too"));
    } else if silent.is_empty() {
        judgement.cannot("foreign-io", "no device's counters can be compared with what was asked");
    }
    if judgement.findings.len() > before {
        masked(judgement);
    }
}

/// Says for the checks with the same counters that other I/O hides what they would show.
fn masked(judgement: &mut Judgement) {
    let is_found = |code: &str| judgement.findings.iter().any(|finding| finding.code == code);
    if !is_found("cached-below") {
        judgement.cannot(
            "cached-below",
            "I/O that is not the load's is in the devices' counters too, and makes up for what a cache \
             may have answered",
        );
    }
}

/// An array below the targets that was resynchronizing or checking itself, in words.
fn resyncing(case: &Case) -> Option<String> {
    let arrays = case.trial.counters.iter().flat_map(|counters| &counters.arrays);
    let mut busy = arrays.filter_map(|array| Some((&array.name, array.action.as_ref()?)));
    busy.next().map(|(name, action)| format!("{name} was busy with a {action} of its own"))
}

/// The devices of the targets whose I/Os the kernel does not count. A count of zero means nothing
/// there, and the report says so.
fn silent(case: &Case, judgement: &mut Judgement) -> String {
    let silent = listed(case.used().flat_map(|(_, target)| {
        let silent = target.layers.iter().filter(|layer| !is_counted(target, layer));
        silent.map(|layer| layer.name.as_str())
    }));
    if !silent.is_empty() {
        for code in ["cached-below", "foreign-io"] {
            judgement.cannot(
                code,
                format!(
                    "the kernel does not count the I/Os of {silent} (its queue/iostats is 0, or it \
                     is a RAM disk)"
                ),
            );
        }
    }
    silent
}

/// Whether the kernel counts what a layer's device does; a partition is counted with its disk.
fn is_counted(target: &Target, layer: &Layer) -> bool {
    let whole = match (layer.kind, layer.members.first()) {
        (LayerKind::Partition, Some(&disk)) => target.layers.get(disk).unwrap_or(layer),
        _ => layer,
    };
    whole.queue.as_ref().and_then(|queue| queue.counts) != Some(false)
}

fn cached_below(judgement: &mut Judgement, direction: Direction, reached: &Reached) {
    let (asked, device) = (reached.asked, reached.device);
    judgement.find(
        "cached-below",
        Severity::Void,
        format!(
            "{} {} were asked, and {} reached {} ({}): something above it answered the rest.",
            Bytes(asked),
            match direction {
                Direction::Read => "of direct reads",
                Direction::Write => "of direct writes",
            },
            Bytes(device),
            reached.names,
            percent(device as f64 / asked as f64)
        ),
        "Look for blocks that were never written, a file system that does not do direct I/O, or a loop \
         device without it (losetup --direct-io=on).",
    );
}

fn why_not(case: &Case, direction: Direction) -> String {
    let name = listed(case.used().map(|(_, target)| target.name.as_str()));
    match case.used().any(|(_, target)| target.layers.is_empty()) {
        true => format!("no block device is known below {name}"),
        false => format!(
            "a {} of {name} is not one of the same size at the devices below, or they do not count",
            direction.name()
        ),
    }
}

fn unseen_loops<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a str> {
    let bottom = case.disks().filter(|layer| layer.kind == LayerKind::Loop);
    bottom.map(|layer| layer.name.as_str())
}

fn sites(case: &Case) -> Sites {
    let mut sites = Sites { top: Vec::new(), bottom: Vec::new() };
    for (place, target) in case.used() {
        let asked = Direction::BOTH.map(|direction| case.bytes(place, direction));
        let levels = levels(case, target);
        let is_counted = |device: &Number| {
            let layer = target.layers.iter().find(|layer| layer.device == Some(*device));
            layer.is_some_and(|layer| is_counted(target, layer)) && counts(case, *device).is_some()
        };
        let counted: Vec<Site> = levels
            .into_iter()
            .filter(|(devices, _)| !devices.is_empty() && devices.iter().all(is_counted))
            .map(|(devices, comparable)| Site {
                devices,
                asked,
                comparable,
                requests: requests(case, place, target),
                own_writes: own_writes(case, place, target),
            })
            .collect();
        if let (Some(top), Some(bottom)) = (counted.first(), counted.last()) {
            join(&mut sites.top, top.clone());
            join(&mut sites.bottom, bottom.clone());
        }
    }
    sites
}

/// Adds a site to those with which it shares a device.
fn join(sites: &mut Vec<Site>, mut site: Site) {
    while let Some(place) = sites.iter().position(|other| !other.devices.is_disjoint(&site.devices))
    {
        let other = sites.swap_remove(place);
        site.devices.extend(other.devices);
        for direction in 0..2 {
            site.asked[direction] += other.asked[direction];
            site.comparable[direction] &= other.comparable[direction];
        }
        site.requests = site.requests.zip(other.requests).map(|(one, two)| one + two);
        site.own_writes = site.own_writes.or(other.own_writes);
    }
    sites.push(site);
}

/// The counters of a device in the window: bytes read and written.
fn counts<'a>(case: &Case<'a>, device: Number) -> Option<(&'a str, [u64; 2])> {
    let found = counted(case, device)?;
    Some((&found.name, [found.read_bytes.0, found.written_bytes.0]))
}

fn counted<'a>(case: &Case<'a>, device: Number) -> Option<&'a DeviceCounters> {
    let counters = case.trial.counters.as_ref()?;
    counters.devices.iter().find(|counted| counted.device == device)
}

/// The most requests that the kernel makes of the I/Os at a target. None through a loop device, an
/// array or device mapper, which split I/Os in unknown ways, and if the extents of a file are not
/// known.
fn requests(case: &Case, place: u32, target: &Target) -> Option<u64> {
    let is_plain = |layer: &Layer| matches!(layer.kind, LayerKind::Disk | LayerKind::Partition);
    if !target.layers.iter().all(is_plain) {
        return None;
    }
    let queue = target.disks().find_map(|disk| disk.queue.as_ref())?;
    let largest = queue.max_request?.0;
    // A buffer may consist of pages that are not adjacent.
    let pieces = queue.max_segments.map_or(u64::MAX, |most| u64::from(most) * PAGE);
    let largest = largest.min(pieces).max(1);
    let extent = match (target.kind, &target.extents) {
        (TargetKind::File, Some(extents)) => target.size.0 / extents.count.max(1),
        (TargetKind::File, None) => return None,
        _ => u64::MAX,
    };
    let streams = case.streams().iter();
    let at_most = |stream: &Stream| {
        let block = stream.block_sizes().largest().0;
        // An I/O that begins anywhere touches one piece more than it fills.
        block.div_ceil(largest)
            + block.div_ceil(extent.max(1)).saturating_sub(1)
            + u64::from(extent < u64::MAX && block > PAGE)
    };
    let each = streams.map(at_most).max()?;
    let ios = Direction::BOTH.map(|direction| case.ios(place, direction)).iter().sum::<u64>();
    Some(ios.saturating_mul(each))
}

/// The own writes that the file system of a written target may make.
fn own_writes(case: &Case, place: u32, target: &Target) -> Option<OwnWrites> {
    let fs = target.file_system.as_ref()?;
    let writes = |stream: &Stream| stream_does(stream, Direction::Write) || stream.trims();
    if !case.regions().any(|(stream, region)| region.target == place && writes(stream)) {
        return None;
    }
    let top = target.layers.first()?;
    let journals = case.trial.counters.iter().flat_map(|counters| &counters.journals);
    let journal = journals.into_iter().find(|journal| journal.device == top.name);
    Some(OwnWrites {
        kind: fs.kind.clone(),
        commits: journal.map(|journal| journal.commits),
        bytes: journal.map_or(0, |journal| journal.bytes.0.saturating_mul(JOURNAL_FACTOR)),
    })
}

/// The devices of a target from the top to the bottom, level by level, each with whether each byte
/// requested is a byte there.
fn levels(case: &Case, target: &Target) -> Vec<(BTreeSet<Number>, [bool; 2])> {
    let members: BTreeSet<usize> =
        target.layers.iter().flat_map(|layer| layer.members.iter().copied()).collect();
    let mut level: BTreeSet<usize> =
        (0..target.layers.len()).filter(|place| !members.contains(place)).collect();
    let writes = case.does(Direction::Write);
    let mut comparable = match &target.file_system {
        Some(fs) => [fs.compression.is_none(), fs.compression.is_none() && !fs.copy_on_write],
        None => [true, true],
    };
    comparable[1] |= !writes;
    let mut levels = Vec::new();
    // There are at most as many levels as layers, even if the facts are wrong.
    for _ in 0..=target.layers.len() {
        let layers: Vec<&Layer> =
            level.iter().filter_map(|place| target.layers.get(*place)).collect();
        let devices: Option<BTreeSet<Number>> = layers.iter().map(|layer| layer.device).collect();
        levels.push((devices.unwrap_or_default(), comparable));
        if layers.iter().all(|layer| layer.members.is_empty()) {
            break;
        }
        for layer in layers.iter().filter(|layer| !layer.members.is_empty()) {
            let below = match is_resyncing(case, layer) {
                true => [false, false],
                false => passes_through(layer, writes),
            };
            comparable = [comparable[0] && below[0], comparable[1] && below[1]];
        }
        level = level
            .iter()
            .flat_map(|place| match target.layers.get(*place) {
                Some(layer) if !layer.members.is_empty() => layer.members.clone(),
                _ => Vec::from([*place]),
            })
            .collect();
    }
    levels
}

/// Whether an array moved data among its members in the window, or was about to when it was
/// examined.
fn is_resyncing(case: &Case, layer: &Layer) -> bool {
    let detail = layer.detail.as_deref().unwrap_or_default();
    let mut arrays = case.trial.counters.iter().flat_map(|counters| &counters.arrays);
    layer.kind == LayerKind::Md
        && (detail.contains("is going on")
            || arrays.any(|array| array.name == layer.name && array.action.is_some()))
}

/// Whether a byte read or written at a layer is one byte at its members together.
fn passes_through(layer: &Layer, writes: bool) -> [bool; 2] {
    let detail = layer.detail.as_deref().unwrap_or_default();
    match layer.kind {
        LayerKind::Disk | LayerKind::Partition | LayerKind::Loop => [true, true],
        // Over one device it is linear or encrypted; over several it may be anything.
        LayerKind::DeviceMapper => [layer.members.len() == 1; 2],
        LayerKind::Md if detail.starts_with("raid0") || detail.starts_with("linear") => {
            [true, true]
        }
        // Parity has to be read before part of a stripe is written, and a lost disk's data is
        // computed from all others; a mirror is read once and written often.
        LayerKind::Md | LayerKind::Btrfs => {
            let reads_once =
                detail.starts_with("raid1") || !(writes || detail.contains("degraded"));
            [reads_once, !writes]
        }
        LayerKind::Zram => [false, false],
    }
}

impl Site {
    fn names(&self, case: &Case) -> String {
        listed(self.devices.iter().filter_map(|device| Some(counts(case, *device)?.0)))
    }

    /// Bytes at the devices, of one direction.
    fn device(&self, case: &Case, direction: usize) -> u64 {
        self.devices.iter().filter_map(|device| Some(counts(case, *device)?.1[direction])).sum()
    }

    /// Bytes that may be requested on one side of the window's edge and counted on the other, and
    /// those that a file system adds.
    fn slack(&self, case: &Case) -> u64 {
        let seconds = case.trial.record.window.as_secs_f64();
        let asked = (self.asked[0] + self.asked[1]) as f64;
        let in_flight: u64 = case
            .streams()
            .iter()
            .map(|stream| {
                u64::from(stream.pacing.queue_depth())
                    .saturating_mul(stream.block_sizes().largest().0)
            })
            // A queue that is mostly empty, as in an open loop, moves less than one full of blocks.
            .fold(0, u64::saturating_add)
            .min((asked * FOREIGN_MAX) as u64);
        let late = case.trial.counters.as_ref().map_or(0.0, |counters| counters.late.as_secs_f64());
        let edge = if seconds > 0.0 { asked / seconds * EDGE_SECONDS.max(late) } else { 0.0 };
        SLACK + in_flight + edge as u64
    }

    fn reached(&self, case: &Case, direction: Direction) -> Option<Reached> {
        let index = direction as usize;
        self.comparable[index].then(|| Reached {
            names: self.names(case),
            asked: self.asked[index],
            device: self.device(case, index),
            slack: self.slack(case),
        })
    }

    /// More bytes at the devices than were requested.
    fn foreign(&self, case: &Case, judgement: &mut Judgement) {
        let comparable = || (0..2).filter(|direction| self.comparable[*direction]);
        let device: u64 = comparable().map(|direction| self.device(case, direction)).sum();
        let others: [u64; 2] = std::array::from_fn(|direction| match self.comparable[direction] {
            true => self.device(case, direction).saturating_sub(self.asked[direction]),
            false => 0,
        });
        let foreign = others[0] + others[1];
        if foreign <= self.slack(case) || foreign as f64 <= FOREIGN_MAX * device as f64 {
            self.foreign_ios(case, judgement);
            return;
        }
        let (severity, whose, advice) = self.whose(others);
        judgement.find(
            "foreign-io",
            severity,
            format!(
                "{} of the {} that {} moved in the window were not the load's ({} read, {} written): \
                 {}, where {} disturb.{whose}",
                Bytes(foreign),
                Bytes(device),
                self.names(case),
                Bytes(others[0]),
                Bytes(others[1]),
                percent(foreign as f64 / device as f64),
                percent(FOREIGN_MAX)
            ),
            advice,
        );
    }

    /// The severity of these additional bytes, their possible origin, and the remedy.
    fn whose(&self, [read, written]: [u64; 2]) -> (Severity, String, String) {
        const OTHERS: &str =
            "Find out who else uses the device (iotop, pidstat -d), stop it, and measure again.";
        let mostly_written = read <= SLACK;
        let Some(own) = self.own_writes.as_ref().filter(|_| mostly_written) else {
            return (Severity::Suspect, String::new(), OTHERS.to_owned());
        };
        match own.commits {
            Some(commits) if written <= own.bytes => (
                Severity::Note,
                format!(
                    " The journal of {} committed {}, which can account for {}.",
                    own.kind,
                    counted_of(commits, "transaction"),
                    Bytes(own.bytes)
                ),
                format!(
                    "The result is that of {} with its journal, which the load makes write; for the \
                     device alone, measure the device, or overwrite in place without flushes.",
                    own.kind
                ),
            ),
            Some(commits) => (
                Severity::Suspect,
                format!(
                    " The journal of {} committed {}, which can account for {} of it.",
                    own.kind,
                    counted_of(commits, "transaction"),
                    Bytes(own.bytes)
                ),
                format!("The rest is another program's. {OTHERS}"),
            ),
            None => (
                Severity::Suspect,
                format!(
                    " They are {}'s own, its journal and metadata, or other programs': it does not \
                     tell.",
                    own.kind
                ),
                format!(
                    "Measure the device, or overwrite in place without flushes, to tell them apart. \
                     {OTHERS}"
                ),
            ),
        }
    }

    /// More I/Os at the devices than the requested ones can explain, even if they moved few bytes.
    fn foreign_ios(&self, case: &Case, judgement: &mut Judgement) {
        let Some(requests) = self.requests.filter(|_| self.comparable == [true, true]) else {
            return;
        };
        let counted = self.devices.iter().filter_map(|device| counted(case, *device));
        let device: u64 = counted.map(|device| device.reads + device.writes).sum();
        // If a file system does not report its own writes, they cannot be told from other programs'
        // I/Os.
        let own = match &self.own_writes {
            Some(OwnWrites { commits: None, .. }) => return,
            Some(own) => own.bytes / PAGE,
            None => 0,
        };
        let foreign = device.saturating_sub(requests).saturating_sub(own);
        if foreign <= FOREIGN_IOS_SLACK || foreign as f64 <= FOREIGN_IOS_MAX * device as f64 {
            return;
        }
        judgement.find(
            "foreign-io",
            Severity::Suspect,
            format!(
                "{} of the {} that {} did in the window were not the load's: {}, in few bytes, where \
                 {} disturb.",
                count(foreign),
                counted_of(device, "I/O"),
                self.names(case),
                percent(foreign as f64 / device as f64),
                percent(FOREIGN_IOS_MAX)
            ),
            "Find out who else uses the device (iotop, pidstat -d), stop it, and measure again.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::facts::{ArrayState, Disk, Journal};
    use crate::spec::Cache;
    use crate::units::Span;

    /// 60,000 reads of 4 KiB. The device counted the given thousandths of them.
    fn at_device(mut invented: Invented, thousandths: u64) -> Invented {
        let device = invented.device();
        device.read_bytes = Bytes(device.read_bytes.0 / 1000 * thousandths);
        device.written_bytes = Bytes(device.written_bytes.0 / 1000 * thousandths);
        invented
    }

    #[test]
    fn commands_past_the_block_layer_are_not_counted_there() {
        let mut invented = at_device(Invented::reads(), 0);
        invented.has("cached-below", Severity::Void);
        invented.target().kind = TargetKind::NvmeGeneric;
        invented.has_none_of(&["cached-below", "foreign-io"]);
        invented.is_unchecked("cached-below");
        invented.is_unchecked("foreign-io");
    }

    #[test]
    fn counters_that_were_read_late_are_allowed_for_and_then_not_compared() {
        let mut invented = at_device(Invented::reads(), 870);
        invented.has("cached-below", Severity::Void);
        let window = invented.trial.record.window;
        // The device's count may lack the I/Os of 4 % of the window.
        invented.counters().late = Span(window.0 / 25);
        invented.has_none_of(&["cached-below"]);
        // It may lack no more than that.
        let mut half = at_device(Invented::reads(), 500);
        half.counters().late = Span(window.0 / 25);
        half.has("cached-below", Severity::Void);
        half.counters().late = Span(window.0 / 10);
        half.has_none_of(&["cached-below", "foreign-io"]);
        half.is_unchecked("cached-below");
        half.is_unchecked("foreign-io");
    }

    #[test]
    fn a_device_that_does_not_count_proves_nothing() {
        let mut invented = at_device(Invented::reads(), 0);
        invented.has("cached-below", Severity::Void);
        invented.disk().queue.as_mut().unwrap().counts = Some(true);
        invented.has("cached-below", Severity::Void);
        invented.disk().queue.as_mut().unwrap().counts = Some(false);
        invented.has_none_of(&["cached-below", "foreign-io"]);
        let unchecked = invented.judge().unchecked;
        let codes: Vec<&str> = unchecked.iter().map(|one| one.code).collect();
        assert_eq!(codes, ["cached-below", "foreign-io"]);
        assert!(unchecked[0].why.contains("the I/Os of vda1, vda (its queue/iostats is 0"));
    }

    #[test]
    fn less_at_the_device_than_asked_is_a_cache() {
        at_device(Invented::reads(), 1000).has_none_of(&["cached-below", "foreign-io"]);
        at_device(Invented::reads(), 900).has_none_of(&["cached-below", "foreign-io"]);
        let finding = at_device(Invented::reads(), 500).has("cached-below", Severity::Void);
        assert!(finding.evidence.contains("of direct reads were asked"), "{}", finding.evidence);
        at_device(Invented::writes(), 500).has("cached-below", Severity::Void);
    }

    #[test]
    fn more_at_the_device_than_asked_is_somebody_else_s() {
        at_device(Invented::reads(), 1018).has_none_of(&["foreign-io"]);
        at_device(Invented::reads(), 1030).has("foreign-io", Severity::Suspect);
        // Our reads, and writes of other programs.
        let mut invented = Invented::reads();
        invented.device().written_bytes = Bytes(10 << 20);
        let finding = invented.has("foreign-io", Severity::Suspect);
        assert!(finding.evidence.contains("(0 B read, 10 MiB written)"), "{}", finding.evidence);
    }

    #[test]
    fn other_io_hides_what_a_cache_answered() {
        let invented = at_device(Invented::reads(), 1030);
        invented.has("foreign-io", Severity::Suspect);
        invented.is_unchecked("cached-below");
        assert!(at_device(Invented::reads(), 1000).judge().unchecked.is_empty());
        // A finding in spite of the missing count leaves no question open.
        let mut both = at_device(Invented::reads(), 500);
        both.device().written_bytes = Bytes(100 << 20);
        both.has("cached-below", Severity::Void);
        assert!(both.judge().unchecked.is_empty(), "{:?}", both.judge());
    }

    #[test]
    fn a_file_system_s_own_writes_are_told_from_those_of_others_as_far_as_it_tells() {
        let journal = |commits, kib: u64| Journal {
            file_system: "ext4".to_owned(),
            device: "vda1".to_owned(),
            commits,
            bytes: Bytes(kib << 10),
        };
        let mut invented = Invented::writes();
        let asked = invented.device().written_bytes;
        invented.device().written_bytes = Bytes(asked.0 + (40 << 20));
        let finding = invented.has("foreign-io", Severity::Suspect);
        assert!(
            finding.evidence.contains("ext4's own, its journal and metadata, or other programs'")
        );
        invented.counters().journals = Vec::from([journal(2000, 30 << 10)]);
        let finding = invented.has("foreign-io", Severity::Note);
        assert!(
            finding.evidence.contains("committed 2,000 transactions, which can account for 60 MiB")
        );
        invented.is_unchecked("cached-below");
        invented.counters().journals = Vec::from([journal(12, 100)]);
        let finding = invented.has("foreign-io", Severity::Suspect);
        assert!(finding.advice.starts_with("The rest is another program's."), "{finding:?}");
        // A journal cannot explain writes if the load does not write.
        let mut reads = Invented::reads();
        reads.device().written_bytes = Bytes(40 << 20);
        reads.counters().journals = Vec::from([journal(2000, 30 << 10)]);
        let finding = reads.has("foreign-io", Severity::Suspect);
        assert!(!finding.evidence.contains("journal"), "{}", finding.evidence);
    }

    #[test]
    fn many_small_ios_of_others_count_however_few_bytes_they_move() {
        let mut invented = Invented::reads();
        let ios = 60_000;
        let in_all = |invented: &mut Invented, reads: u64| invented.device().reads = reads;
        in_all(&mut invented, ios + 3000);
        invented.has_none_of(&["foreign-io"]);
        in_all(&mut invented, ios + 20_000);
        let finding = invented.has("foreign-io", Severity::Suspect);
        assert!(finding.evidence.contains("20,000 of the 80,000 I/Os that vda did"), "{finding:?}");
        assert!(finding.evidence.contains("25 %"), "{}", finding.evidence);
        invented.is_unchecked("cached-below");
        // The kernel splits large blocks, and extents lie apart. Both are the load's own I/Os.
        invented.set_block_size(256 << 10);
        in_all(&mut invented, 2 * ios);
        invented.disk().queue.as_mut().unwrap().max_segments = Some(32);
        invented.has_none_of(&["foreign-io"]);
        invented.disk().queue.as_mut().unwrap().max_segments = None;
        invented.target().extents.as_mut().unwrap().count = 1_000_000;
        invented.has_none_of(&["foreign-io"]);
        // If it is unknown how a file is split into extents, I/Os are not counted.
        invented.target().extents = None;
        in_all(&mut invented, 20 * ios);
        invented.has_none_of(&["foreign-io"]);
    }

    #[test]
    fn a_resync_is_no_other_program() {
        let mut invented = array(Invented::reads(), LayerKind::Md, "raid1, 2 disks", [2, 1]);
        for device in &mut invented.counters().devices {
            device.written_bytes = Bytes(500 << 20);
        }
        invented.has("foreign-io", Severity::Suspect);
        invented.counters().arrays = Vec::from([ArrayState {
            name: "array".to_owned(),
            missing: 0,
            action: Some("resync".to_owned()),
        }]);
        invented.has_none_of(&["foreign-io"]);
        let unchecked = invented.judge().unchecked;
        let foreign = unchecked.iter().find(|one| one.code == "foreign-io").unwrap();
        assert!(foreign.why.starts_with("array was busy with a resync"), "{foreign:?}");
    }

    #[test]
    fn buffered_access_is_not_compared_with_the_device() {
        let mut invented = at_device(Invented::writes(), 1500);
        invented.stream().access.cache = Cache::Buffered;
        invented.has_none_of(&["cached-below", "foreign-io"]);
        invented.is_unchecked("foreign-io");
    }

    #[test]
    fn without_a_device_below_nothing_is_compared() {
        let mut invented = Invented::reads();
        invented.target().layers.clear();
        invented.has_none_of(&["cached-below", "foreign-io"]);
        invented.is_unchecked("cached-below");
        invented.is_unchecked("foreign-io");
    }

    /// Replaces the target's disk by an array of two disks that count these multiples in all.
    fn array(mut invented: Invented, kind: LayerKind, detail: &str, factor: [u64; 2]) -> Invented {
        let own = invented.device().clone();
        let partition = invented.target().layers[0].clone();
        let disk = invented.disk().clone();
        let member = |name: &str, minor| Layer {
            name: name.to_owned(),
            device: Some((8, minor)),
            disk: Some(Disk::default()),
            ..disk.clone()
        };
        let array = Layer {
            name: "array".to_owned(),
            kind,
            device: (kind != LayerKind::Btrfs).then_some((9, 0)),
            members: Vec::from([2, 3]),
            detail: Some(detail.to_owned()),
            disk: None,
            ..disk.clone()
        };
        invented.target().layers =
            Vec::from([partition, array, member("sda", 0), member("sdb", 16)]);
        invented.counters().devices = [("sda", 0), ("sdb", 16)]
            .map(|(name, minor)| DeviceCounters {
                name: name.to_owned(),
                device: (8, minor),
                read_bytes: Bytes(own.read_bytes.0 * factor[0] / 2),
                written_bytes: Bytes(own.written_bytes.0 * factor[1] / 2),
                ..DeviceCounters::default()
            })
            .to_vec();
        invented
    }

    #[test]
    fn arrays_are_compared_where_their_bytes_are_ours() {
        let quiet = ["cached-below", "foreign-io"];
        let md = LayerKind::Md;
        array(Invented::writes(), md, "raid0, 2 disks", [1, 1]).has_none_of(&quiet);
        array(Invented::writes(), md, "raid0, 2 disks", [1, 2])
            .has("foreign-io", Severity::Suspect);
        array(Invented::reads(), md, "raid1, 2 disks", [1, 1]).has_none_of(&quiet);
        array(Invented::reads(), md, "raid1, 2 disks", [2, 1]).has("foreign-io", Severity::Suspect);
        array(Invented::reads(), md, "raid6, 4 disks", [0, 0]).has("cached-below", Severity::Void);
        // Mirrors and parity multiply writes. There is no finding, and the checks are named as not
        // made.
        for (kind, detail) in
            [(md, "raid1, 2 disks"), (md, "raid6, 4 disks"), (LayerKind::Btrfs, "raid1, 2 devices")]
        {
            let invented = array(Invented::writes(), kind, detail, [1, 2]);
            invented.has_none_of(&quiet);
            invented.is_unchecked("foreign-io");
            invented.is_unchecked("cached-below");
        }
        // A device mapper over several devices may do anything, but its own device counts.
        let mut mapped = array(Invented::writes(), LayerKind::DeviceMapper, "lvm data", [1, 2]);
        mapped.has_none_of(&quiet);
        mapped.is_unchecked("cached-below");
        mapped.target().layers.remove(0);
        mapped.target().layers[0].members = Vec::from([1, 2]);
        let asked = Invented::writes().device().written_bytes;
        let own = DeviceCounters {
            name: "dm-0".to_owned(),
            device: (9, 0),
            written_bytes: Bytes(asked.0 / 2),
            ..DeviceCounters::default()
        };
        mapped.counters().devices.push(own);
        mapped.has("cached-below", Severity::Void);
    }

    #[test]
    fn a_loop_device_over_the_page_cache_is_found_below_it() {
        let mut invented = Invented::reads();
        let own = invented.device().clone();
        invented.target().layers[0].kind = LayerKind::Loop;
        invented.target().layers[0].device = Some((7, 0));
        let top = DeviceCounters { name: "loop0".to_owned(), device: (7, 0), ..own };
        invented.counters().devices.push(top);
        invented.has_none_of(&["cached-below"]);
        invented.device().read_bytes = Bytes(0);
        let finding = invented.has("cached-below", Severity::Void);
        assert!(finding.evidence.contains("0 B reached vda"), "{}", finding.evidence);
        // The disk of its file is not visible. The loop device counts every byte, which proves
        // little.
        invented.target().layers.truncate(1);
        invented.target().layers[0].members.clear();
        invented.has_none_of(&["cached-below"]);
        invented.is_unchecked("cached-below");
    }

    #[test]
    fn targets_on_one_disk_are_compared_together() {
        let mut invented = Invented::reads();
        let other = invented.target().clone();
        invented.targets.push(other);
        let mut region = invented.stream().regions[0];
        region.target = 1;
        invented.stream().regions.push(region);
        let mut cell = invented.worker().cells[0].clone();
        cell.target = 1;
        invented.worker().cells.push(cell);
        // Each of two workers asked for all the bytes that the device moved: together twice as
        // many.
        invented.has("cached-below", Severity::Void);
        invented.device().read_bytes.0 *= 2;
        invented.has_none_of(&["cached-below", "foreign-io"]);
    }
}
