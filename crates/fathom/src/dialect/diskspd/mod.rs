//! DiskSpd's front door: a command line or an XML profile of DiskSpd 2.2 becomes a [`Profile`],
//! with DiskSpd's defaults and refusals.
//!
//! Its traps are not copied: if DiskSpd would do something other than the user asked for, fathom
//! does what the user asked for, and a note reports the difference.

mod affinity;
mod distribution;
pub mod draft;
pub mod linux;
pub mod model;
mod numbers;
mod options;
pub mod point;
pub mod text;
pub mod xml;

#[cfg(test)]
mod tests;

use draft::{SpanDraft, Speech};
use model::{Precreate, Profile};
use options::{Common, Event, Options};

use crate::dialect::{Note, Notes};
use fathom_core::Refusal;

/// The content of a command line.
#[derive(Debug)]
pub struct Invocation {
    /// The profile.
    pub profile: Profile,
    /// `-Rp`: the profile is printed, and nothing runs.
    pub profile_only: bool,
    /// Named events of Windows.
    pub events: Vec<Event>,
    /// Facts that users should know before they compare with DiskSpd.
    pub notes: Vec<Note>,
    /// The names of settings.
    pub speech: Speech,
}

/// Reads a command line, without the program's name. `fresh_seed` is the seed of the offsets if the
/// line has none; `load` reads the file of `-X`, or returns the problem and the remedy.
///
/// # Errors
///
/// When DiskSpd refuses it, or it has no meaning.
pub fn read(
    words: &[String],
    fresh_seed: u32,
    load: &mut dyn FnMut(&str) -> Result<Vec<u8>, Refusal>,
) -> Result<Invocation, Refusal> {
    let mut notes = Notes::default();
    let options = options::read(words, fresh_seed, &mut notes)?;
    let (common, events, speech) =
        (options.common, options.events.clone(), options.span.speech.clone());
    let mut profile = match &options.profile {
        Some(path) => of_file(path, &options, fresh_seed, &mut notes, load)?,
        None => of_options(options, fresh_seed, &mut notes)?,
    };
    if let Some(format) = common.result_format {
        profile.result_format = format;
    }
    profile.verbose |= common.verbose;
    profile.verbose_stats |= common.verbose_stats;
    profile.experiment_flags = common.experiment_flags.unwrap_or(profile.experiment_flags);
    if !common.profile_only {
        no_templates(&profile)?;
    }
    Ok(Invocation {
        profile,
        profile_only: common.profile_only,
        events,
        notes: notes.into_vec(),
        speech,
    })
}

fn of_options(options: Options, fresh_seed: u32, notes: &mut Notes) -> Result<Profile, Refusal> {
    if options.targets.is_empty() {
        return Err(Refusal::usage(
            "fathom diskspd",
            "no target is named",
            "name a file, a disk or a volume behind the options",
        ));
    }
    let mut span = options.span;
    span.targets = options
        .targets
        .into_iter()
        .map(|path| draft::TargetDraft { path, ..options.target.clone() })
        .collect();
    Ok(Profile {
        progress: options.progress,
        experiment_flags: 0,
        result_format: model::ResultFormat::Text,
        verbose: false,
        verbose_stats: false,
        precreate: Precreate::None,
        etw: options.etw,
        time_spans: Vec::from([finish(span, &options.common, fresh_seed, notes)?]),
    })
}

fn of_file(
    path: &str,
    options: &Options,
    fresh_seed: u32,
    notes: &mut Notes,
    load: &mut dyn FnMut(&str) -> Result<Vec<u8>, Refusal>,
) -> Result<Profile, Refusal> {
    let draft = xml::read::profile(path, &load(path)?, &options.targets, notes)?;
    let mut time_spans = Vec::with_capacity(draft.spans.len());
    for span in draft.spans {
        time_spans.push(finish(span, &options.common, fresh_seed, notes)?);
    }
    Ok(Profile {
        progress: draft.progress,
        experiment_flags: draft.experiment_flags,
        result_format: draft.result_format,
        verbose: draft.verbose,
        verbose_stats: draft.verbose_stats,
        precreate: draft.precreate,
        etw: draft.etw,
        time_spans,
    })
}

/// A time span, overridden by the options that may be given with a profile.
fn finish(
    mut span: SpanDraft,
    common: &Common,
    fresh_seed: u32,
    notes: &mut Notes,
) -> Result<model::TimeSpan, Refusal> {
    span.duration_s = common.duration_s.or(span.duration_s);
    span.warm_up_s = common.warm_up_s.or(span.warm_up_s);
    span.cool_down_s = common.cool_down_s.or(span.cool_down_s);
    span.seed = common.seed.or(span.seed);
    span.finish(fresh_seed, notes)
}

/// A profile runs only if every target has a name.
fn no_templates(profile: &Profile) -> Result<(), Refusal> {
    let targets = profile.time_spans.iter().flat_map(|span| &span.targets);
    match targets.map(|target| &target.path).find(|path| path.starts_with('*')) {
        None => Ok(()),
        Some(path) => Err(Refusal::usage(
            path,
            "it stands for a target that the command line has to name",
            "name the targets behind the options, in the order of their numbers",
        )),
    }
}
