//! The data-reduction probe, for the commands that have the consent to write.

use fathom_core::Bytes;
use fathom_core::experiment::ReductionProbe;
use fathom_core::facts::{Host, Reduction, Target};
use fathom_core::spec::{Access, Cache, Point, Region, Stream};
use fathom_engine::target::{Overwrite, check_command_size};

use super::place::Place;
use super::{opened, this_machine};
use crate::cli::values::Backend;
use crate::error::Error;
use crate::live::{Live, clock};
use crate::resolve::{self, Spec};
use crate::session::{Carrier, Session};
use crate::signals;

/// The text that is shown while it runs.
const DOING: &str = "probing whether the target compresses, deduplicates or skips zeros";

/// A probe of one target that may start once there is consent.
pub struct Probing {
    probe: ReductionProbe,
    place: Place,
    spec: Spec,
}

impl Probing {
    /// A probe of a region of one of the targets at a place.
    ///
    /// # Errors
    ///
    /// When the region is too small, direct I/O cannot begin where it does, or one NVMe command cannot
    /// move a block.
    pub fn new(region: Region, place: Place, backend: Backend, seed: u64) -> Result<Self, Error> {
        let targets = place.facts();
        let target = &targets[region.target as usize];
        let probe = ReductionProbe::new(region, target, Access::DIRECT, seed)
            .ok_or_else(|| too_small(target))?;
        resolve::direct_offset(probe.region().offset, target)?;
        let point = probe.point();
        check_command_size(target, point.streams[0].block_sizes().largest())?;
        let points = Vec::from([point]);
        let spec = Spec { points, targets, backend, consent: Overwrite::default() };
        Ok(Self { probe, place, spec })
    }

    /// The place of its target.
    pub fn target(&self) -> usize {
        self.probe.region().target as usize
    }

    /// The most that it writes.
    pub fn writes_at_most(&self) -> Bytes {
        self.probe.writes_at_most()
    }

    /// The amount and the place of its writes.
    pub fn announcement(&self) -> String {
        announcement(&self.probe)
    }

    /// Writes, and reports the result.
    ///
    /// # Errors
    ///
    /// When the target must not be written to, or does not accept its I/Os.
    pub fn perform(mut self, consent: Overwrite) -> Result<Reduction, Error> {
        self.spec.consent = consent;
        let opened = opened::open(&self.place, &self.spec)?;
        let mut live = Live::new(1, self.probe.takes_about());
        let (host, targets) = (this_machine::this_host(), &self.spec.targets);
        let found = perform(&mut self.probe, (&host, targets), &mut &opened, &mut live);
        live.finish();
        found
    }
}

/// The amount and the place of a probe's writes.
pub fn announcement(probe: &ReductionProbe) -> String {
    let Region { offset, length, .. } = probe.region();
    format!(
        "probe    whether it compresses, deduplicates or skips zeros: writes at most {} to {length} from \
         offset {offset} on, for about {}",
        probe.writes_at_most(),
        clock(probe.takes_about())
    )
}

/// With more targets than this, not every target is probed.
const PROBED_MAX: usize = 4;

/// The probes before a load: of the first targets that it writes to without the page cache, each in
/// the region that it writes. A region without room for a probe has none.
pub fn before(point: &Point, place: &Place, backend: Backend) -> Vec<Probing> {
    let new = |region| Probing::new(region, place.clone(), backend, !point.seed).ok();
    regions(point).into_iter().filter_map(new).collect()
}

fn regions(point: &Point) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let direct =
        |stream: &&Stream| stream.access.cache == Cache::Direct && stream.read_share() < 1.0;
    for region in point.streams.iter().filter(direct).flat_map(|stream| &stream.regions) {
        if regions.iter().all(|known| known.target != region.target) {
            regions.push(*region);
        }
    }
    regions.truncate(PROBED_MAX);
    regions
}

/// Runs a probe on open targets, and reports the result.
///
/// # Errors
///
/// When the target does not accept its I/Os, or the user stopped it.
pub fn perform(
    probe: &mut ReductionProbe,
    (host, targets): (&Host, &[Target]),
    carrier: &mut dyn Carrier,
    live: &mut Live,
) -> Result<Reduction, Error> {
    signals::be_orderly();
    live.preparation(DOING);
    Session { host, targets, carrier }.probe(probe, live)
}

fn too_small(target: &Target) -> Error {
    let block = Bytes(128 * Bytes::KIB);
    Error::target(
        &target.name,
        format!("there is no room for one block of {block} of the probe"),
        "choose a larger region",
    )
}
