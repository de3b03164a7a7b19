//! Opens the targets of a spec, each once for each access, and chooses the backend. Refuses targets
//! that must not be touched, and names other programs that have a target open.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fathom_core::calibration::Ceiling;
use fathom_core::experiment::Planned;
use fathom_core::facts::{Target, TargetKind};
use fathom_core::spec::{Access, BackendKind, RingMode, Stream};
use fathom_engine::calibrate;
use fathom_engine::target::{self, OpenTarget, Opening};
use fathom_engine::{Choice, Devices, Way, access, choose_for, sim};

use super::place::Place;
use crate::cli::values::Backend;
use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::journal;
use crate::resolve::Spec;
use crate::session::{Carried, CarriedHere, Carrier};
use crate::users::{self, Overwritten};
use crate::{hanging, room};

/// Open targets, and their backend.
#[derive(Debug)]
pub enum Opened {
    /// A simulated device.
    Simulated(Box<sim::Options>),
    /// Files and devices.
    Real {
        /// For each stream, an open target for each of its regions.
        streams: Vec<Vec<OpenTarget>>,
        /// The backend.
        choice: Choice,
        /// Whether io_uring is used in its default mode.
        usual: bool,
        /// Those that are written to.
        written: Overwritten,
        /// Whether none of them is a device.
        are_files: bool,
    },
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Self::Real { streams, written, are_files, .. } = self {
            hanging::let_go((std::mem::take(streams), std::mem::take(written)), *are_files);
        }
    }
}

impl Opened {
    /// The input of `run_point`.
    pub fn devices(&self) -> Devices<'_> {
        match self {
            Self::Simulated(options) => Devices::Simulated(options),
            Self::Real { streams, choice, .. } => Devices::Real { streams, backend: choice.kind },
        }
    }

    /// The same, with the facts that a session reports and checks before each trial.
    pub fn carried(&self) -> CarriedHere<'_> {
        let written = match self {
            Self::Simulated(_) => None,
            Self::Real { written, .. } => Some(written),
        };
        CarriedHere { devices: self.devices(), backend_reason: self.backend().1, written }
    }

    /// The load generator's ceiling with this backend; none if it is unknown. Measured right before
    /// the first I/O, when no other work of the process runs.
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.is_usual().then(|| calibrate::ceiling(self.backend().0)).flatten()
    }

    /// Whether it uses no real target.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Whether the backend works in its default mode: the ceiling of a ring that polls, has a
    /// submission thread, or sends commands to the device differs, and is not known.
    fn is_usual(&self) -> bool {
        match self {
            Self::Simulated(_) => false,
            Self::Real { streams, usual, .. } => {
                *usual && streams.iter().flatten().all(|one| one.passthrough.is_none())
            }
        }
    }

    /// The backend's name and the reason for it.
    pub fn backend(&self) -> (BackendKind, &str) {
        match self {
            Self::Simulated(_) => (BackendKind::Sim, "the target is simulated, in virtual time"),
            Self::Real { choice, .. } => (choice.kind, &choice.reason),
        }
    }
}

impl Carrier for &Opened {
    fn carry(&mut self, _: &Planned) -> Result<Carried<'_>, Error> {
        Ok(Carried::Here(self.carried()))
    }
}

/// Opens what a spec names.
///
/// # Errors
///
/// When a target must not or cannot be opened with this access, or no backend works.
pub fn open(place: &Place, spec: &Spec) -> Result<Opened, Error> {
    let Place::Real(facts) = place else { return open_here(place, spec) };
    // A file system or a device that hangs must not block the process.
    let name = facts.first().map_or_else(String::new, |target| target.name.clone());
    let (place, spec) = (place.clone(), spec.clone());
    hanging::waited_for(&name, "it was opened", move || open_here(&place, &spec))
}

fn open_here(place: &Place, spec: &Spec) -> Result<Opened, Error> {
    let facts = match place {
        Place::Simulated { options, .. } => return Ok(Opened::Simulated(options.clone())),
        Place::Real(facts) => facts,
    };
    let requested = match spec.backend {
        Backend::Auto => None,
        Backend::Named(kind) => Some(kind),
    };
    let room = |kind| spec.points.iter().try_for_each(|point| room::check(&point.streams, kind));
    room(requested.unwrap_or(BackendKind::Uring))?;
    let streams = open_each_way(facts, spec)?;
    let described = &spec.points[0].streams;
    let mut ways = Vec::with_capacity(described.len());
    for (stream, open) in described.iter().zip(&streams) {
        let facts = stream.regions.iter().map(|region| &facts[region.target as usize]);
        ways.push(Way { access: stream.access, targets: facts.zip(open).collect() });
    }
    let choice = choose_for(requested, &ways)?;
    let choice = with_trims(described, &ways, choice)?;
    room(choice.kind)?;
    let usual = described.iter().all(|stream| stream.access.ring == RingMode::USUAL);
    let written = Overwritten::of(facts, (described, &streams), spec.consent.clone());
    let are_files = facts.iter().all(|target| target.kind == TargetKind::File);
    Ok(Opened::Real { streams, choice, usual, written, are_files })
}

/// Checks that the backend can trim, if a stream does.
fn with_trims(streams: &[Stream], ways: &[Way<'_>], choice: Choice) -> Result<Choice, Error> {
    let trimming = || streams.iter().zip(ways).filter(|(stream, _)| stream.trims());
    if trimming().next().is_none() {
        return Ok(choice);
    }
    let choice = match choice.kind {
        BackendKind::Aio => Choice {
            kind: BackendKind::Sync,
            reason: format!("{}, but it has no trims: using calls", choice.reason),
        },
        _ => choice,
    };
    for (_, open) in trimming().flat_map(|(_, way)| &way.targets) {
        target::probe_trim(open, choice.kind).map_err(|(cause, remedy)| {
            let problem = format!("it does not work with {}: {cause}", open.name);
            Error::target("--trim-share", problem, remedy)
        })?;
    }
    Ok(choice)
}

/// A combination of a target's place and its access.
#[derive(Clone, Copy)]
struct Key {
    target: u32,
    access: Access,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target && access::opens_alike(self.access, other.access)
    }
}

fn key(target: u32, access: Access) -> Key {
    Key { target, access }
}

/// The accesses with which written targets are opened.
fn written(spec: &Spec) -> Vec<Key> {
    let writing = spec.streams().filter(|stream| stream.destroys());
    writing.flat_map(|stream| stream.regions.iter().map(|r| key(r.target, stream.access))).collect()
}

/// The places of the targets that are written to.
pub fn written_targets(spec: &Spec) -> BTreeSet<u32> {
    written(spec).into_iter().map(|key| key.target).collect()
}

/// Refuses to overwrite a result that a fathom process is writing at this moment: consent to
/// overwrite a file is for its earlier content.
///
/// # Errors
///
/// When there is such a file.
pub fn no_result_at_work(path: &str, name: &str) -> Result<(), Error> {
    let path = Path::new(path);
    match patiently(path, Role::Target, || journal::is_being_written(path)) {
        true => Err(Error::target(
            name,
            "it is a result that a fathom is writing",
            "wait for its end, or name another file",
        )),
        false => Ok(()),
    }
}

fn no_results_at_work(facts: &[Target], written: &[Key]) -> Result<(), Error> {
    written.iter().map(|key| &facts[key.target as usize]).try_for_each(|target| match target.kind {
        TargetKind::File => no_result_at_work(&target.path, &target.name),
        _ => Ok(()),
    })
}

/// Refuses, from the facts and without opening anything, targets that must not be touched.
///
/// # Errors
///
/// When a target must not be touched, or cannot be opened with the access of a stream.
pub fn judge(place: &Place, spec: &Spec) -> Result<(), Error> {
    let Place::Real(facts) = place else { return Ok(()) };
    let written = written(spec);
    no_results_at_work(facts, &written)?;
    for stream in spec.streams() {
        for region in &stream.regions {
            let opening = Opening {
                access: stream.access,
                writes: written.contains(&key(region.target, stream.access)),
                claimed: false,
                overwrite: spec.consent.clone(),
            };
            target::judge(&facts[region.target as usize], &opening)?;
        }
    }
    Ok(())
}

/// Opens every target once for each access: for each stream, an open target for each of its
/// regions. All points have the same streams on the same targets.
fn open_each_way(facts: &[Target], spec: &Spec) -> Result<Vec<Vec<OpenTarget>>, Error> {
    let written = written(spec);
    no_results_at_work(facts, &written)?;
    let mut open: Vec<(Key, OpenTarget)> = Vec::new();
    let mut get = |target: u32, access: Access| -> Result<OpenTarget, Error> {
        let key = key(target, access);
        if let Some((_, known)) = open.iter().find(|(known, _)| *known == key) {
            return Ok(known.clone());
        }
        let opening = Opening {
            access,
            writes: written.contains(&key),
            claimed: open
                .iter()
                .any(|(other, _)| other.target == target && written.contains(other)),
            overwrite: spec.consent.clone(),
        };
        let new = target::open(&facts[target as usize], &opening)?;
        hanging::come_through();
        open.push((key, new.clone()));
        Ok(new)
    };
    let each =
        |stream: &Stream| stream.regions.iter().map(|r| get(r.target, stream.access)).collect();
    spec.points[0].streams.iter().map(each).collect()
}

/// Names the other programs that have a target open or locked which is to be written to.
pub fn tell_users<'a>(works: impl IntoIterator<Item = (&'a Place, &'a Spec)>) {
    let mut written: BTreeMap<&str, &Target> = BTreeMap::new();
    for (place, spec) in works {
        let Place::Real(facts) = place else { continue };
        let targets = written_targets(spec).into_iter().map(|at| &facts[at as usize]);
        written.extend(targets.map(|target| (target.path.as_str(), target)));
    }
    users::tell(&written.into_values().collect::<Vec<_>>());
}
