//! Runs a profile of DiskSpd: creates its files, measures its time spans one after the other into
//! one result file, and prints the result in DiskSpd's format.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_core::Refusal;
use fathom_core::facts::{FileIdentity, Host, Target as Facts};
use fathom_core::{Bytes, Span};
use fathom_engine::target::Overwrite;
use fathom_report::document::{Command, Document, Severity};
use fathom_report::export::diskspd as export;

use super::Stderr;
use crate::cli::args::{DiskspdOwn, Prepare};
use crate::cli::options::Consent;
use crate::commands::outputs::{self, Outputs};
use crate::commands::place::Place;
use crate::commands::prepare;
use crate::commands::{measure, opened, read_result, settled, this_machine};
use crate::created;
use crate::dialect::diskspd::Invocation;
use crate::dialect::diskspd::draft::Speech;
use crate::dialect::diskspd::model::{Profile, ResultFormat, Target};
use crate::dialect::diskspd::point::{self, Here, Mapped};
use crate::dialect::paths::PathMap;
use crate::error::{Error, plain};
use crate::hanging::{Role, patiently};
use crate::live::Live;
use crate::resolve::{Machine, Spec};
use crate::{journal, output};

/// Runs it; `description` is the beginning of the result.
///
/// # Errors
///
/// When a target, the machine or the result file does not allow it.
pub(super) fn perform(
    request: &Invocation,
    description: &str,
    paths: &PathMap,
    (own, stderr): (&DiskspdOwn, Stderr),
    host: &Host,
) -> Result<u8, Error> {
    let machine = this_machine::machine(host);
    let (profile, speech) = (&request.profile, &request.speech);
    if own.results.json {
        return Err(Error::option(
            "--json",
            "stdout has DiskSpd's result",
            "drop it: the document is in the result file",
        ));
    }
    own.results.out.iter().try_for_each(|path| journal::is_a_file("--out", path))?;
    // A script that reads the result finds only the result there.
    output::leave_stdout_to_the_document();
    if !stderr.all {
        output::tell_only_warnings();
    }
    let files = files(profile, paths)?;
    may_write(&files, (own, speech))?;
    let made = create(&files, (own, speech), stderr)?;
    let places: Vec<PathBuf> = files.iter().map(|file| file.place.clone()).collect();
    let place = Place::find(&places)?;
    let Consent { destroy, destroy_in_use, .. } = own.consent.clone();
    let allowed = own.consent.overwrite;
    let consent = Overwrite {
        allowed,
        made: made.iter().copied().flatten().collect(),
        destroy,
        destroy_in_use,
    };
    let (specs, time_spans) = specs(request, (&files, paths), &place.facts(), (machine, &consent))?;
    let name = &specs[0].targets[0].name;
    opened::tell_users(specs.iter().map(|spec| (&place, spec)));
    let (mut outputs, mut journal) = Outputs::create("diskspd", name, &own.results, false)?;
    let time = specs.iter().fold(Span(0), |sum, spec| sum + spec.time());
    let mut live = Live::new(specs.len(), time);
    let into = (&mut journal, outputs.trace());
    let outcome = measure::measure_each(Command::Run, host, (&place, &specs), into, &mut live);
    for (file, made) in files.iter().zip(&made).filter(|(file, _)| file.written) {
        let remember = |made: &FileIdentity| created::remember(&file.place, *made);
        patiently(&file.place, Role::Target, || made.iter().for_each(remember));
    }
    match outcome {
        Ok(outcome) => {
            let as_asked = export::Profile { description: description.to_owned(), time_spans };
            let document = read_result::document(&mut journal)?;
            verdicts(&document, stderr);
            let printed = match profile.result_format {
                ResultFormat::Text => export::text(&document, &as_asked),
                ResultFormat::Xml => export::xml(&document, &as_asked),
            };
            let printed = output::print(printed.as_bytes());
            outputs.write(&mut journal, &document).and(printed)?;
            Ok(measure::exit_code(&outcome))
        }
        Err(error) => {
            live.finish();
            outputs::after_failure(journal);
            Err(error)
        }
    }
}

/// A target of the profile, once for all of its time spans.
#[derive(Debug)]
struct TargetFile {
    /// Its local path.
    place: PathBuf,
    /// The size that it needs, the largest that any time span asks for.
    create: Option<u64>,
    /// Whether any time span writes to it.
    written: bool,
    /// Whether it existed before.
    exists: bool,
    /// Its identity, if an earlier run created it with `-c`, and no other program has written to it
    /// since.
    ours: Option<FileIdentity>,
}

fn files(profile: &Profile, paths: &PathMap) -> Result<Vec<TargetFile>, Error> {
    let mut files: Vec<TargetFile> = Vec::new();
    for target in all_targets(profile) {
        let place = paths.resolve(&target.path)?;
        let written = target.write_percent > 0;
        match files.iter_mut().find(|file| file.place == place) {
            Some(file) => {
                file.create = file.create.max(target.create_size);
                file.written |= written;
            }
            None => files.push(TargetFile {
                // A link that leads nowhere also counts as existing.
                exists: patiently(&place, Role::Target, || place.symlink_metadata().is_ok()),
                ours: patiently(&place, Role::Target, || created::ours(&place)),
                place,
                create: target.create_size,
                written,
            }),
        }
    }
    Ok(files)
}

fn all_targets(profile: &Profile) -> impl Iterator<Item = &Target> {
    profile.time_spans.iter().flat_map(|span| &span.targets)
}

/// Refuses to write to existing files without consent.
fn may_write(files: &[TargetFile], (own, speech): (&DiskspdOwn, &Speech)) -> Result<(), Error> {
    for file in files {
        let named = own.consent.named().any(|(_, name)| Path::new(name) == file.place);
        if !file.exists && file.create.is_none() {
            return Err(Error::target(
                file.place.display().to_string(),
                "it does not exist",
                "create it with -c, as in -c1G, or write it with `fathom prepare`",
            ));
        }
        let created_again = file.ours.is_some() && file.create.is_some();
        if file.exists && file.written && !own.consent.overwrite && !named && !created_again {
            return Err(Error::target(
                file.place.display().to_string(),
                format!(
                    "the load writes to it ({}), and its data would be lost",
                    speech.name("w", "WriteRatio")
                ),
                "allow it with --overwrite, or drop -w",
            ));
        }
    }
    Ok(())
}

/// Creates the files of `-c`, and their folders; existing files that fit are used unchanged.
/// Returns which of them fathom made, now or in an earlier run: these may be overwritten, and no
/// other file with their names.
fn create(
    files: &[TargetFile],
    (own, speech): (&DiskspdOwn, &Speech),
    stderr: Stderr,
) -> Result<Vec<Option<FileIdentity>>, Error> {
    let mut made = vec![None; files.len()];
    for (file, made) in files.iter().zip(&mut made) {
        let Some(size) = file.create else { continue };
        make_folder(&file.place, stderr)?;
        let consent = Overwrite {
            allowed: own.consent.overwrite,
            made: file.ours.into_iter().collect(),
            ..Overwrite::default()
        };
        let wanted = Prepare {
            compressible: 0.0,
            dedup: 0.0,
            file: file.place.clone(),
            size: Bytes(size),
            writers: 4,
            block_size: Bytes(Bytes::MIB),
            seed: None,
            overwrite: own.consent.overwrite,
            remove_leftovers: false,
        };
        let new = prepare::make(&wanted, &consent).map_err(|error| match error {
            Error::Refusal(refusal) if refusal.about.starts_with("--size") => {
                Refusal { about: speech.said("c", "FileSize", size), ..refusal }.into()
            }
            other => other,
        })?;
        *made = new.or(file.ours);
        made.iter().for_each(|made| created::remember(&file.place, *made));
    }
    Ok(made)
}

/// Like DiskSpd, makes the folders on the way to a new file.
fn make_folder(file: &Path, stderr: Stderr) -> Result<(), Error> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_missing =
        |folder: &&Path| patiently(folder, Role::Target, || folder.symlink_metadata().is_err());
    let Some(folder) = folder.filter(is_missing) else { return Ok(()) };
    patiently(folder, Role::Target, || fs::create_dir_all(folder)).map_err(|cause| {
        Error::target(
            folder.display().to_string(),
            format!("this folder cannot be made ({})", plain(&cause)),
            "make it yourself, or name a file in a folder that you may write to",
        )
    })?;
    stderr.note(&format!("the folder {} was made", folder.display()));
    Ok(())
}

/// The point of each time span for the core, and its description for the result.
fn specs(
    request: &Invocation,
    (files, paths): (&[TargetFile], &PathMap),
    targets: &[Facts],
    (machine, consent): (Machine<'_>, &Overwrite),
) -> Result<(Vec<Spec>, Vec<export::TimeSpan>), Error> {
    let (mut specs, mut results) = (Vec::new(), Vec::new());
    let (profile, speech) = (&request.profile, &request.speech);
    for (index, span) in profile.time_spans.iter().enumerate() {
        let place = |path: &str| {
            let here = paths.resolve(path).ok();
            let found = files.iter().position(|file| Some(&file.place) == here.as_ref());
            found.expect("every path was looked up before")
        };
        let file = |path: &str| paths.resolve(path).expect("every path was looked up before");
        let here = Here { targets, place: &place, file: &file, machine, speech };
        let Mapped { mut spec, result } = point::map(span, here)?;
        if 1 < profile.time_spans.len() {
            let point = &mut spec.points[0];
            point.name = format!("time span {}: {}", index + 1, point.name);
        }
        let spec = Spec { consent: consent.clone(), ..spec };
        settled::readable(&spec)?;
        specs.push(spec);
        results.push(result);
    }
    Ok((specs, results))
}

/// Doubts about the numbers, on stderr: DiskSpd's result has no place for them.
fn verdicts(document: &Document, stderr: Stderr) {
    for (index, trial) in document.trials.iter().enumerate() {
        let which = match document.trials.len() {
            1 => String::new(),
            _ => format!("time span {}: ", index + 1),
        };
        let verdict = format!("{which}{}", trial.verdict.name());
        let findings = trial.findings.iter().filter(|one| one.severity > Severity::Note);
        let told: Vec<String> = findings
            .map(|one| format!("{verdict}: {}: {} {}", one.code, one.evidence, one.advice))
            .collect();
        match told.is_empty() {
            true => stderr.note(&verdict),
            false => told.iter().for_each(|finding| stderr.warn(finding)),
        }
    }
}
