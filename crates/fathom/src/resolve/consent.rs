//! The consent to writes: the options that a user has to give, and those without an effect.

use fathom_core::facts::{Target, TargetKind};
use fathom_core::typed_path;
use fathom_engine::target::Overwrite;

use super::{Spec, no_effect_in_simulation};
use crate::cli::described::Described;
use crate::cli::options::Consent;
use crate::error::Error;

/// Allows a spec to write to the targets that the user consents to.
///
/// # Errors
///
/// When it writes without consent, or the consent has no effect.
pub fn permit(spec: Spec, described: &Described) -> Result<Spec, Error> {
    let written: Vec<u32> = spec
        .streams()
        .filter(|stream| stream.destroys())
        .flat_map(|stream| stream.regions.iter().map(|region| region.target))
        .collect();
    let consent = permission(
        &described.consent,
        |target| written.contains(&target),
        |target| described.folder_of(target),
        &spec.targets,
    )?;
    Ok(Spec { consent, ..spec })
}

/// The same for a caller that first shows what needs consent: it gets the refusal as a value, and
/// nothing is allowed then.
pub fn permitted(spec: Spec, described: &Described) -> (Spec, Option<Error>) {
    match permit(spec.clone(), described) {
        Ok(spec) => (spec, None),
        Err(refusal) => (Spec { consent: Overwrite::default(), ..spec }, Some(refusal)),
    }
}

/// A simulated device has no data to overwrite.
pub(super) fn no_consent_in_simulation(described: &Described) -> Result<(), Error> {
    described.consent.first().map_or(Ok(()), |option| Err(no_effect_in_simulation(option)))
}

/// The consent, given which targets are written and which were found in a folder: there are many of
/// these, and the user has not seen their names, so that the folder's own name has to be repeated.
///
/// # Errors
///
/// When writes were requested without consent, or the consent has no effect.
pub fn permission<'a>(
    typed: &Consent,
    written: impl Fn(u32) -> bool,
    folder_of: impl Fn(u32) -> Option<&'a str>,
    targets: &[Target],
) -> Result<Overwrite, Error> {
    let simulated = targets.iter().any(|target| target.kind == TargetKind::Simulated);
    let places = || (0u32..).zip(targets);
    let writes = places().any(|(place, _)| written(place));
    if let (false, Some(option)) = (writes, typed.first()) {
        let typed = match typed.named().next().filter(|_| !typed.overwrite) {
            Some((option, name)) => format!("{option} {name}"),
            None => option.to_owned(),
        };
        return Err(Error::option(
            typed,
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    for (option, name) in typed.named() {
        let named = |(place, target): (u32, &Target)| {
            names(name, target) || folder_of(place).is_some_and(|folder| names_folder(name, folder))
        };
        if !places().any(named) {
            return Err(Error::option(
                format!("{option} {name}"),
                "it is not one of the targets",
                "repeat the target's name exactly as it was given, or where it lies",
            ));
        }
    }
    let destroys = |target: &Target| typed.named().any(|(_, name)| names(name, target));
    let destroys_all = |folder: &str| typed.named().any(|(_, name)| names_folder(name, folder));
    let allowed = |place, target: &Target| match folder_of(place) {
        Some(folder) => destroys_all(folder) || destroys(target),
        // For a device the engine's refusal names its content.
        None => typed.overwrite || is_device(target) || destroys(target),
    };
    let refused = places().find(|(place, one)| written(*place) && !allowed(*place, one));
    let of_folder = places().any(|(place, _)| folder_of(place).is_some_and(destroys_all));
    match refused.map(|(place, target)| (target, folder_of(place))) {
        Some((_, Some(folder))) => Err(Error::target(
            folder,
            "the load writes, and the data of all files in this folder would be lost",
            format!(
                "allow it by repeating its name in --destroy {}, or only read with \
                 --read-share 100%",
                typed_path(folder)
            ),
        )),
        Some((target, None)) if !simulated => Err(Error::target(
            &target.name,
            "the load writes to it, and its data would be lost",
            "allow it with --overwrite, or only read with --read-share 100%",
        )),
        _ => {
            let allowed = typed.overwrite || of_folder;
            let (destroy, destroy_in_use) = (typed.destroy.clone(), typed.destroy_in_use.clone());
            Ok(Overwrite { allowed, destroy, destroy_in_use, ..Overwrite::default() })
        }
    }
}

/// Whether it is a device of the machine, which is written to only if its own name is repeated.
pub fn is_device(target: &Target) -> bool {
    matches!(target.kind, TargetKind::BlockDevice | TargetKind::NvmeGeneric)
}

/// Whether a typed name is a target's, or its path.
fn names(typed: &str, target: &Target) -> bool {
    typed == target.name || typed == target.path
}

/// The same for a folder.
fn names_folder(typed: &str, folder: &str) -> bool {
    let lies = || std::fs::canonicalize(folder).is_ok_and(|path| path.as_os_str() == typed);
    typed == folder || lies()
}
