//! Bytes at the devices against bytes asked: less than asked came from a cache, more than asked was
//! somebody else's.
//!
//! The comparison is only made where a byte asked is a byte at the device. Through a partition, a
//! loop device or a device-mapper device over one device it is; through an array it depends on the
//! direction, because mirrors and parity multiply writes. So each target is compared as far down as
//! its bytes can be followed, and at its top when they can be followed nowhere below. Targets that
//! share a device are compared together.

use std::collections::BTreeSet;

use super::case::{Case, listed, percent};
use super::{Judgement, Severity};
use crate::facts::{Layer, LayerKind, Target, TargetKind};
use crate::measure::Direction;
use crate::units::Bytes;

/// Less than this share of what was asked reached the device: the rest came from a cache.
const REACHED_MIN: f64 = 0.9;
/// More than this share of the device's bytes was not ours.
const FOREIGN_MAX: f64 = 0.02;
/// What the file system's journal and the like may add.
const SLACK: u64 = Bytes::MIB;
/// The counters are read this close to the window's ends, or closer.
const EDGE_SECONDS: f64 = 0.02;

type Number = (u32, u32);

/// Devices whose bytes together are the bytes of some targets.
#[derive(Clone, Debug)]
struct Site {
    devices: BTreeSet<Number>,
    /// Bytes that were asked, by direction.
    asked: [u64; 2],
    /// Whether a byte asked is a byte at these devices, by direction.
    comparable: [bool; 2],
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
    /// Whether much of what was asked never reached the devices.
    pub(super) fn is_cached(&self) -> bool {
        ((self.device + self.slack) as f64) < REACHED_MIN * self.asked as f64
    }
}

/// What reached the devices of one direction's bytes; none where they cannot be compared.
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

/// Where the bytes enter the devices, and how far down they can be followed.
struct Sites {
    top: Vec<Site>,
    bottom: Vec<Site>,
}

/// Why reads of what the run itself has trimmed are not compared.
const TRIMMED: &str = "reads of what the run's own trims have emptied do not reach the device";

/// Both checks that rest on the devices' counters.
pub(super) fn device_bytes(case: &Case, judgement: &mut Judgement) {
    if case.trial.counters.is_none() {
        for code in ["cached-below", "foreign-io"] {
            judgement.cannot(code, "the devices' counters in the window are not known");
        }
        return;
    }
    if case.used().any(|(_, target)| target.kind == TargetKind::NvmeGeneric) {
        for code in ["cached-below", "foreign-io"] {
            judgement.cannot(
                code,
                "the kernel does not count NVMe commands that pass by its block layer",
            );
        }
        return;
    }
    let sites = sites(case);
    let mut compared = false;
    for direction in Direction::BOTH.into_iter().filter(|direction| case.does(*direction)) {
        match reached(case, direction) {
            Some(reached) => {
                compared = true;
                let trimmed = direction == Direction::Read && case.reads_what_it_trims();
                if trimmed {
                    judgement.cannot("cached-below", TRIMMED);
                } else if case.is_direct() && reached.is_cached() {
                    cached_below(judgement, direction, &reached);
                }
            }
            None if case.is_direct() && case.trial.record.total(Some(direction)).ios() > 0 => {
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
    if !case.is_direct() {
        judgement.cannot("foreign-io", "buffered I/O reaches the device at other times than asked");
    } else if compared {
        sites.bottom.iter().for_each(|site| site.foreign(case, judgement));
    } else {
        judgement.cannot("foreign-io", "no device's counters can be compared with what was asked");
    }
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
        let counted: Vec<Site> = levels
            .into_iter()
            .filter(|(devices, _)| {
                !devices.is_empty() && devices.iter().all(|device| counts(case, *device).is_some())
            })
            .map(|(devices, comparable)| Site { devices, asked, comparable })
            .collect();
        if let (Some(top), Some(bottom)) = (counted.first(), counted.last()) {
            join(&mut sites.top, top.clone());
            join(&mut sites.bottom, bottom.clone());
        }
    }
    sites
}

/// Adds a site to those that it shares a device with.
fn join(sites: &mut Vec<Site>, mut site: Site) {
    while let Some(place) = sites.iter().position(|other| !other.devices.is_disjoint(&site.devices))
    {
        let other = sites.swap_remove(place);
        site.devices.extend(other.devices);
        for direction in 0..2 {
            site.asked[direction] += other.asked[direction];
            site.comparable[direction] &= other.comparable[direction];
        }
    }
    sites.push(site);
}

/// The counters of a device in the window: bytes read and written.
fn counts<'a>(case: &Case<'a>, device: Number) -> Option<(&'a str, [u64; 2])> {
    let counters = case.trial.counters.as_ref()?;
    let found = counters.devices.iter().find(|counted| counted.device == device)?;
    Some((&found.name, [found.read_bytes.0, found.written_bytes.0]))
}

/// The devices of a target from the top to the bottom, level by level, each with whether a byte
/// asked is a byte there.
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
    // A level for each layer is the most there can be, even if the facts are wrong.
    for _ in 0..=target.layers.len() {
        let layers: Vec<&Layer> =
            level.iter().filter_map(|place| target.layers.get(*place)).collect();
        let devices: Option<BTreeSet<Number>> = layers.iter().map(|layer| layer.device).collect();
        levels.push((devices.unwrap_or_default(), comparable));
        if layers.iter().all(|layer| layer.members.is_empty()) {
            break;
        }
        for layer in layers.iter().filter(|layer| !layer.members.is_empty()) {
            let below = passes_through(layer, writes);
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
            [reads_once && !detail.contains("is going on"), !writes]
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

    /// What may be asked on one side of the window's edge and counted on the other, and what a file
    /// system adds.
    fn slack(&self, case: &Case) -> u64 {
        let seconds = case.trial.record.window.as_secs_f64();
        let asked = (self.asked[0] + self.asked[1]) as f64;
        let in_flight: u64 = case
            .streams()
            .iter()
            .map(|stream| {
                u64::from(stream.pacing.queue_depth())
                    .saturating_mul(stream.block_sizes.largest().0)
            })
            // A queue that is mostly empty, as an open loop's, moves less than one full of blocks.
            .fold(0, u64::saturating_add)
            .min((asked * FOREIGN_MAX) as u64);
        let edge = if seconds > 0.0 { asked / seconds * EDGE_SECONDS } else { 0.0 };
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

    /// More bytes at the devices than were asked.
    fn foreign(&self, case: &Case, judgement: &mut Judgement) {
        let comparable = || (0..2).filter(|direction| self.comparable[*direction]);
        let device: u64 = comparable().map(|direction| self.device(case, direction)).sum();
        let others: [u64; 2] = std::array::from_fn(|direction| match self.comparable[direction] {
            true => self.device(case, direction).saturating_sub(self.asked[direction]),
            false => 0,
        });
        let foreign = others[0] + others[1];
        if foreign <= self.slack(case) || foreign as f64 <= FOREIGN_MAX * device as f64 {
            return;
        }
        judgement.find(
            "foreign-io",
            Severity::Suspect,
            format!(
                "{} of the {} that {} moved in the window were not ours ({} read, {} written): {}, \
                 where {} disturb.",
                Bytes(foreign),
                Bytes(device),
                self.names(case),
                Bytes(others[0]),
                Bytes(others[1]),
                percent(foreign as f64 / device as f64),
                percent(FOREIGN_MAX)
            ),
            "Find who else uses the device (iotop, pidstat -d), stop it, and measure again.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::facts::{DeviceCounters, Disk};
    use crate::spec::Cache;

    /// Over 60000 reads of 4 KiB, so many thousandths of them at the device.
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
        // Reads of ours, writes of others.
        let mut invented = Invented::reads();
        invented.device().written_bytes = Bytes(10 << 20);
        let finding = invented.has("foreign-io", Severity::Suspect);
        assert!(finding.evidence.contains("(0 B read, 10 MiB written)"), "{}", finding.evidence);
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

    /// The target's disk becomes an array of two disks that count this much in all.
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
        // Mirrors and parity multiply writes: nothing is said, and that is said.
        for (kind, detail) in
            [(md, "raid1, 2 disks"), (md, "raid6, 4 disks"), (LayerKind::Btrfs, "raid1, 2 devices")]
        {
            let invented = array(Invented::writes(), kind, detail, [1, 2]);
            invented.has_none_of(&quiet);
            invented.is_unchecked("foreign-io");
            invented.is_unchecked("cached-below");
        }
        // Device mapper over several devices may be anything, but counts at its own top.
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
        // Its file's disk is out of sight: the loop device counts every byte, and that proves little.
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
        // Each asked for all that the device moved: together twice that.
        invented.has("cached-below", Severity::Void);
        invented.device().read_bytes.0 *= 2;
        invented.has_none_of(&["cached-below", "foreign-io"]);
    }
}
