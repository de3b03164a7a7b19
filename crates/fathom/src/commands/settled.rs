//! The requested settings, resolved for the targets on this machine, or for those of many hosts.
//! Nothing is opened for writing.

use std::fs::File;

use fathom_core::facts::Host;
use fathom_core::spec::{Payload, Point};

use super::place::Place;
use super::{folder, opened, this_machine};
use crate::error::{Error, plain};
use crate::hanging::{Role, patiently};
use crate::hosts::Fleet;
use crate::resolve::{self, Spec};
use crate::workload::Asked;

/// What an experiment makes its points of, and where they run.
pub struct Basis {
    /// The machine, or the first of several hosts.
    pub host: Host,
    /// The load, for the targets of that.
    pub spec: Spec,
    /// The targets as they were found here; none if hosts have them.
    pub place: Option<Place>,
    /// The hosts, if there are several.
    pub fleet: Option<Fleet>,
}

impl Basis {
    /// The load on this machine.
    ///
    /// # Errors
    ///
    /// As [`settle`].
    pub fn here(asked: &mut Asked) -> Result<Self, Error> {
        let (place, host, spec) = settle(asked)?;
        Ok(Self { host, spec, place: Some(place), fleet: None })
    }

    /// How many hosts apply each point.
    pub fn hosts(&self) -> u32 {
        self.fleet.as_ref().map_or(1, |fleet| fleet.names().len() as u32)
    }

    /// Refuses a point that the machine, or one of the hosts, cannot hold.
    ///
    /// # Errors
    ///
    /// When it has too much in flight, or too many workers.
    pub fn fits(&self, point: &Point) -> Result<(), Error> {
        let fits = |host| resolve::fits(point, self.spec.backend, this_machine::machine(host));
        match &self.fleet {
            None => fits(&self.host),
            Some(fleet) => (0..fleet.names().len()).try_for_each(|host| fits(fleet.facts(host))),
        }
    }
}

/// Examines the targets, and resolves the settings for them. Consent comes later.
///
/// # Errors
///
/// When a target does not exist, or the settings do not fit.
pub fn settle(asked: &mut Asked) -> Result<(Place, Host, Spec), Error> {
    let paths = folder::locate(&mut asked.described)?;
    let place = Place::find(&paths)?;
    folder::stay_inside(&asked.described, &place)?;
    let host = this_machine::this_host();
    let spec = resolve::settle(&asked.described, place.facts(), this_machine::machine(&host));
    let spec = spec.map_err(|blame| asked.explain(blame))?;
    folder::no_names_outside(&asked.described, &place, &opened::written_targets(&spec))?;
    readable(&spec)?;
    Ok((place, host, spec))
}

/// Refuses a payload file that cannot be read, before anything begins.
///
/// # Errors
///
/// When there is one.
pub fn readable(spec: &Spec) -> Result<(), Error> {
    for stream in spec.streams() {
        let Payload::Pool { file: Some(path), .. } = &stream.payload else { continue };
        let refuse = |problem: String| {
            let option = format!("--payload pool:...,{}", path.display());
            Err(Error::option(option, problem, "name a file with content that you may read"))
        };
        // Opening a pipe would wait for a writer.
        match patiently(path, Role::Input, || path.metadata()) {
            Ok(facts) if !facts.is_file() => return refuse("it is no file".to_owned()),
            Ok(facts) if facts.len() == 0 => return refuse("it is empty".to_owned()),
            Ok(_) => {}
            Err(cause) => return refuse(plain(&cause)),
        }
        if let Err(cause) = patiently(path, Role::Input, || File::open(path)) {
            return refuse(plain(&cause));
        }
    }
    Ok(())
}
