//! The requested settings, resolved for the targets on this machine. Nothing is opened for writing.

use std::fs::File;

use fathom_core::facts::Host;
use fathom_core::spec::Payload;

use super::place::Place;
use super::{folder, opened, this_machine};
use crate::error::{Error, plain};
use crate::hanging::{Role, patiently};
use crate::resolve::{self, Spec};
use crate::workload::Asked;

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
