//! `fathom prepare`: a file whose every byte is written, with unique data.
//!
//! A new file grows under a temporary name and gets its real one when it is complete, so that no
//! half-written file can be mistaken for a prepared one. An existing file is only written to with
//! consent, and then in place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_core::facts::{FileIdentity, Target, TargetKind};
use fathom_core::spec::{Access, Payload};
use fathom_core::{Bytes, Span};
use fathom_engine::target::{self, Opening, Overwrite};
use fathom_engine::{found, host, prefill};
use fathom_report::figures;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::place;
use super::{fill, leftovers, opened, this_machine};
use crate::cli::args::Prepare;
use crate::error::{Error, exit};
use crate::hanging::{Role, patiently};
use crate::live::Live;
use crate::{output, scratch, signals, users};

/// Direct writes begin and end on whole pages.
const PAGE: u64 = 4096;

/// Makes it, or finds that it exists.
///
/// # Errors
///
/// When the file must not or cannot be written.
pub fn perform(args: &Prepare) -> Result<u8, Error> {
    make(args, &Overwrite { allowed: args.overwrite, ..Overwrite::default() })?;
    Ok(exit::MEASURED)
}

/// The same, with consent from elsewhere than the command line. Returns the file that it made, if
/// it did not exist.
///
/// # Errors
///
/// When the file must not or cannot be written.
pub fn make(args: &Prepare, consent: &Overwrite) -> Result<Option<FileIdentity>, Error> {
    check(args)?;
    leftovers(args)?;
    let seed = args.seed.unwrap_or_else(this_machine::fresh_seed);
    let options = prefill::Prefilling {
        writers: args.writers,
        block: args.block_size,
        seed,
        compressible: args.compressible,
        dedup: args.dedup,
    };
    match patiently(&args.file, Role::Target, || args.file.symlink_metadata()) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => create(args, options).map(Some),
        // The examination of targets has better messages for everything else.
        _ => reuse(args, consent, options).map(|()| None),
    }
}

fn check(args: &Prepare) -> Result<(), Error> {
    if place::simulated(&args.file).is_some() {
        return Err(Error::target(
            args.file.display().to_string(),
            "a simulated device needs no data",
            "run it at once, as in `fathom run sim:ssd`",
        ));
    }
    if args.size == Bytes(0) {
        return Err(Error::option("--size 0", "an empty file is nothing to measure", "choose 1g"));
    }
    let block = args.block_size;
    if block == Bytes(0) || !block.0.is_multiple_of(PAGE) || block.0 > 64 * Bytes::MIB {
        return Err(Error::option(
            format!("--block-size {block}"),
            "writes are whole pages of 4 KiB, up to 64 MiB",
            "choose a size such as 1m",
        ));
    }
    Ok(())
}

/// A file that did not exist.
fn create(args: &Prepare, options: prefill::Prefilling) -> Result<FileIdentity, Error> {
    let name = args.file.display().to_string();
    let folder = match args.file.parent() {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => PathBuf::from("/"),
    };
    enough_space(&folder, args.size, Bytes(0), &name)?;
    let growing = growing_name(&args.file)?;
    signals::be_orderly();
    let make = || signals::create_doomed(&growing, OpenOptions::new().write(true));
    let file = patiently(&args.file, Role::Target, make)
        .map_err(|cause| not_created((&name, &growing), &folder, &cause))?;
    // Distinguishes a file that still grows from a leftover; without locks neither is touched.
    let _ = file.try_lock();
    let outcome = fill_all((&args.file, &file), args.size, options)
        .and_then(|()| still_ours(&file, &growing, &args.file))
        .and_then(|()| publish(&growing, &args.file));
    let made = patiently(&args.file, Role::Target, || found::identity(&file));
    signals::close(file);
    signals::remove(&growing);
    outcome.map_err(|error| interrupted(error, format!("{name} was not made")))?;
    let made = made.map_err(|cause| fill::failed(&args.file, &cause))?;
    output::say(&format!(
        "created {name}: {}, every byte written with {}, seed {}",
        args.size,
        data(options),
        options.seed
    ))?;
    Ok(made)
}

/// The content of the file.
fn data(options: prefill::Prefilling) -> String {
    let prefill::Prefilling { compressible, dedup, .. } = options;
    match figures::payload(&Payload::Random { compressible, dedup }) {
        Some(payload) => format!("random data, {payload}"),
        None => "unique data".to_owned(),
    }
}

/// The temporary name of a file: beside its real one, so that it is on the same file system.
fn growing_name(file: &Path) -> Result<PathBuf, Error> {
    let name = file.file_name().ok_or_else(|| {
        Error::target(file.display().to_string(), "it is a folder", "name a file in it")
    })?;
    let name = format!("{}{}", growing_prefix(&name.to_string_lossy()), std::process::id());
    Ok(file.with_file_name(name))
}

/// The beginning of temporary names; the process's number follows.
fn growing_prefix(name: &str) -> String {
    format!(".{name}.fathom-prepare-")
}

/// Names what a killed `prepare` of this file has left, and removes it if the user agrees.
fn leftovers(args: &Prepare) -> Result<(), Error> {
    let Some(name) = args.file.file_name() else { return Ok(()) };
    let folder = args.file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let prefix = growing_prefix(&name.to_string_lossy());
    let found = scratch::growing_leftovers(folder.unwrap_or(Path::new(".")), &prefix);
    leftovers::offer_to_remove(&found, args.remove_leftovers)
}

/// The meaning of an interruption for the file that was being written.
fn interrupted(error: Error, meaning: String) -> Error {
    match error {
        Error::Interrupted { signal, .. } => Error::Interrupted { signal, meaning },
        other => other,
    }
}

/// Refuses to give the real name to a file that has taken the place of the filled one.
fn still_ours(made: &File, growing: &Path, file: &Path) -> Result<(), Error> {
    let identity = |file: &File| found::identity(file).ok();
    // A pipe is not waited for, and a link to the file is not the file.
    let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(growing) {
        Ok(found) if identity(&found) == identity(made) => Ok(()),
        _ => Err(Error::target(
            file.display().to_string(),
            format!("{} was replaced or removed while it was filled", growing.display()),
            "see who changes the folder, and start again",
        )),
    }
}

/// Gives a complete file its name, unless another file took it in the meantime.
fn publish(growing: &Path, file: &Path) -> Result<(), Error> {
    match renameat_with(CWD, growing, CWD, file, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some file systems, such as NFS, do not know the flag, and old kernels not the call.
        Err(Errno::INVAL | Errno::NOSYS) => publish_as_link(growing, file),
        Err(cause) => Err(not_published(file, &cause.into())),
    }
}

/// Gives it its real name as a second one; the first is removed with the doomed files. A plain
/// rename would replace a file that is created at that moment, so without hard links there is no
/// way.
fn publish_as_link(growing: &Path, file: &Path) -> Result<(), Error> {
    std::fs::hard_link(growing, file).map_err(|cause| match cause.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Error::target(
            file.display().to_string(),
            "on its file system a file gets its name only by replacing what may have it",
            "name a file on another file system, or write this one by other means, as with `dd`",
        ),
        _ => not_published(file, &cause),
    })
}

fn not_published(file: &Path, cause: &io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::AlreadyExists => Error::target(
            file.display().to_string(),
            "somebody else created it meanwhile",
            "see what it is, and prepare again",
        ),
        _ => fill::failed(file, cause),
    }
}

fn fill_all(
    (path, file): (&Path, &File),
    size: Bytes,
    options: prefill::Prefilling,
) -> Result<(), Error> {
    let mut live = Live::new(1, Span(0));
    live.preparation(&format!("writing {} to {}", size, path.display()));
    fill::range((path, file), (Bytes(0), size), options, fill::Limit::None, &mut live)?;
    live.finish();
    Ok(())
}

/// An existing file: used again if it fits, written only with consent.
fn reuse(args: &Prepare, consent: &Overwrite, options: prefill::Prefilling) -> Result<(), Error> {
    let name = args.file.display().to_string();
    let facts = patiently(&args.file, Role::Target, || host::target(&args.file))?;
    if facts.kind != TargetKind::File {
        return Err(Error::target(
            name,
            format!("it is a {}, and only files are prepared", facts.kind.name()),
            "name a file",
        ));
    }
    let missing = what_is_missing(&facts, args.size);
    let Some(missing) = missing else {
        output::say(&format!(
            "{name} is used as it is: {} that were all written before, and {} are wanted{}",
            facts.size,
            args.size,
            match &facts.extents {
                Some(_) => "",
                None => " (its file system does not tell what of it was written)",
            }
        ))?;
        return Ok(());
    };
    if !consent.allows(&facts) {
        return Err(Error::target(
            name,
            format!("it exists and does not fit: {missing}"),
            "name another file, or allow writing all of it anew with --overwrite",
        ));
    }
    opened::no_result_at_work(&facts.path, &name)?;
    let folder = args.file.parent().map_or(PathBuf::from("/"), Path::to_owned);
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    let written = facts.extents.as_ref().map_or(facts.size, |extents| extents.written);
    enough_space(&folder, args.size.max(facts.size), written, &name)?;
    let opening = Opening {
        access: Access::BUFFERED,
        writes: true,
        claimed: false,
        overwrite: consent.clone(),
    };
    let size = args.size.max(facts.size);
    let file = open_for_writing(&facts, &opening)?;
    users::tell(&[&facts]);
    signals::be_orderly();
    let filled = fill_all((&args.file, &file), size, options);
    signals::close(file);
    filled.map_err(|error| {
        interrupted(error, format!("{name} is overwritten in part: prepare it once more"))
    })?;
    output::say(&format!(
        "overwrote {name}: {size}, every byte written with {}, seed {}",
        data(options),
        options.seed
    ))?;
    Ok(())
}

fn open_for_writing(facts: &Target, opening: &Opening) -> Result<Arc<File>, Error> {
    let open = || target::open(facts, opening);
    patiently(Path::new(&facts.name), Role::Target, open).map(|open| open.file).map_err(|error| {
        let mut refusal = error.refusal();
        // Destroying a target in use is not part of preparing a file: there is no such option.
        let end = refusal.remedy.find(", or repeat its name in --destroy-in-use");
        refusal.remedy.truncate(end.unwrap_or(refusal.remedy.len()));
        refusal.into()
    })
}

/// Why a file does not fit, if it does not.
fn what_is_missing(facts: &Target, wanted: Bytes) -> Option<String> {
    if facts.size < wanted {
        return Some(format!("it has {}, and {wanted} are wanted", facts.size));
    }
    let extents = facts.extents.as_ref()?;
    let never = Bytes(extents.unwritten.0 + extents.holes.0);
    (never > Bytes(0)).then(|| format!("{never} of its {} were never written", facts.size))
}

fn enough_space(folder: &Path, size: Bytes, held: Bytes, name: &str) -> Result<(), Error> {
    let facts = patiently(folder, Role::Target, || host::folder(folder))?;
    let Some(available) = facts.file_system.map(|system| system.available) else { return Ok(()) };
    let needed = Bytes(size.0.saturating_sub(held.0));
    if needed <= available {
        return Ok(());
    }
    Err(Error::option(
        format!("--size {size}"),
        format!("{name} would need {needed} more, and its file system has {available} free"),
        "choose a smaller size, free some space, or name a file on another file system",
    ))
}

fn not_created((name, growing): (&str, &Path), folder: &Path, cause: &io::Error) -> Error {
    let folder = folder.display();
    match cause.kind() {
        io::ErrorKind::AlreadyExists => Error::target(
            name,
            format!("{} is there, under which it would grow", growing.display()),
            "wait for the fathom that writes it, or remove it if none does",
        ),
        io::ErrorKind::PermissionDenied => Error::target(
            name,
            format!("no file can be created in {folder} (permission denied)"),
            "name a folder that you may write to",
        ),
        io::ErrorKind::ReadOnlyFilesystem => Error::target(
            name,
            format!("no file can be created in {folder} (the file system is read-only)"),
            "name another folder",
        ),
        _ => fill::failed(Path::new(name), cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_filled_gets_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let [growing, file] = [".growing", "file"].map(|name| folder.path().join(name));
        let made = File::create_new(&growing).unwrap();
        still_ours(&made, &growing, &file).unwrap();
        std::fs::remove_file(&growing).unwrap();
        still_ours(&made, &growing, &file).unwrap_err();
        // A pipe without a writer does not block it.
        rustix::fs::mkfifoat(CWD, &growing, rustix::fs::Mode::RWXU).unwrap();
        still_ours(&made, &growing, &file).unwrap_err();
        std::fs::remove_file(&growing).unwrap();
        let again = File::create_new(folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &growing).unwrap();
        still_ours(&again, &growing, &file).unwrap_err();
        std::fs::remove_file(&growing).unwrap();
        std::fs::write(&growing, "somebody's").unwrap();
        let text = still_ours(&made, &growing, &file).unwrap_err().to_string();
        assert!(text.contains(".growing was replaced or removed"), "{text}");
    }

    #[test]
    fn a_whole_file_gets_its_name_and_never_replaces_another() {
        for give in [publish, publish_as_link] {
            let folder = tempfile::tempdir().unwrap();
            let (growing, file) = (folder.path().join(".growing"), folder.path().join("file"));
            std::fs::write(&growing, "prepared").unwrap();
            give(&growing, &file).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "prepared");

            std::fs::write(&file, "the only copy").unwrap();
            let again = folder.path().join(".again");
            std::fs::write(&again, "prepared").unwrap();
            let text = give(&again, &file).unwrap_err().to_string();
            assert!(text.contains("somebody else created it meanwhile"), "{text}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "the only copy");

            // A dangling link may belong to another user too.
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("nowhere", &link).unwrap();
            give(&again, &link).unwrap_err();
            assert!(link.symlink_metadata().unwrap().is_symlink());
        }
    }
}
