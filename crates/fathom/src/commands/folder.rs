//! A folder as a target: the files in it that are measured, and written to. Consent for a folder
//! does not cover files outside, even if something in it leads there.

use std::collections::BTreeSet;
use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fathom_core::facts::{FileIdentity, Target};
use fathom_core::typed_path;
use fathom_engine::{found, host};
use rustix::fs::OFlags;

use super::place::{self, Place};
use crate::cli::described::Described;
use crate::error::{Error, plain};
use crate::hanging::{Role, patiently};
use crate::{journal, output};

/// The most files that a folder may have as a target.
const FILES_MAX: usize = 4096;

/// The paths of all targets, including those of a folder's files.
///
/// # Errors
///
/// When a folder cannot be listed, or a target is named twice.
pub fn locate(described: &mut Described) -> Result<Vec<PathBuf>, Error> {
    let across_mounts = described.across_mounts;
    described.locate(|path| files_in(path, across_mounts))
}

/// Refuses files that do not belong to their folder any more: consent for a folder does not cover
/// the destination of a link that has replaced one of its files, or a folder in it, nor file
/// systems that were mounted there since.
///
/// # Errors
///
/// When there is such a target.
pub fn stay_inside(described: &Described, place: &Place) -> Result<(), Error> {
    let refuse = |target: &Target, problem: String| {
        Err(Error::target(&target.name, problem, "see who changes the folder, and start again"))
    };
    for (_, target, folder) in of_folders(described, place) {
        let root = patiently(Path::new(folder), Role::Target, || fs::canonicalize(folder)).ok();
        let within = Path::new(&target.name).strip_prefix(folder).ok();
        let expected = root.as_ref().zip(within).map(|(root, within)| root.join(within));
        if expected.is_none_or(|expected| expected != Path::new(&target.path)) {
            let problem = format!("it has become a link out of {folder} since that was listed");
            return refuse(target, problem);
        }
        let mount = |path: &Path| patiently(path, Role::Target, || host::mount_id(path));
        let is_mounted = root.is_some_and(|root| mount(&root) != mount(Path::new(&target.path)));
        if is_mounted && !described.across_mounts {
            let problem = format!("something was mounted there since {folder} was listed");
            return refuse(target, problem);
        }
    }
    Ok(())
}

/// Refuses to write to a file of a folder that has another name outside it, for example a link from
/// a backup: the user has named the folder, and not the other file that would change.
///
/// # Errors
///
/// When there is such a file.
pub fn no_names_outside(
    described: &Described,
    place: &Place,
    written: &BTreeSet<u32>,
) -> Result<(), Error> {
    for (number, target, folder) in of_folders(described, place) {
        if !written.contains(&number) {
            continue;
        }
        let path = Path::new(&target.path);
        match patiently(path, Role::Target, || names_of(path, target.identity)) {
            Some(1) => {}
            Some(names) => {
                return Err(Error::target(
                    &target.name,
                    format!(
                        "it has {names} names (hard links), and not all of them are in {folder}"
                    ),
                    "name it itself, without its folder, to overwrite it under all its names",
                ));
            }
            None => {
                return Err(Error::target(
                    &target.name,
                    format!("it was replaced since {folder} was listed"),
                    "see who changes the folder, and start again",
                ));
            }
        }
    }
    Ok(())
}

/// The number of names of the file that was judged, if this is still one of them.
fn names_of(path: &Path, judged: Option<FileIdentity>) -> Option<u64> {
    let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let is_judged = found::identity(&file).ok() == judged;
    file.metadata().ok().filter(|_| is_judged).map(|facts| facts.nlink())
}

/// The targets that were found in folders, with their places, and these folders.
fn of_folders<'a>(
    described: &'a Described,
    place: &'a Place,
) -> impl Iterator<Item = (u32, &'a Target, &'a str)> {
    let targets: &[Target] = match place {
        Place::Real(targets) => targets,
        Place::Simulated { .. } => &[],
    };
    let found = |(target, number)| Some((number, target, described.folder_of(number)?));
    targets.iter().zip(0..).filter_map(found)
}

/// The content of a folder.
#[derive(Debug, Default)]
struct Found {
    files: Vec<PathBuf>,
    /// File systems that are mounted below, and left out.
    mounted: Vec<PathBuf>,
    /// Results of fathom, which are left out.
    results: Vec<PathBuf>,
}

/// The regular files in a folder and all folders below it that hold any data and are not results of
/// fathom, in the order of their names; none if it is not a folder. Links are not followed, so that
/// no file outside is measured, or written to, by mistake; nor are file systems that are mounted
/// below it included, unless the user asks for that.
///
/// # Errors
///
/// When the folder cannot be listed, or holds nothing to measure or too much.
fn files_in(folder: &Path, across_mounts: bool) -> Result<Option<Vec<PathBuf>>, Error> {
    if place::simulated(folder).is_some() || !patiently(folder, Role::Target, || folder.is_dir()) {
        return Ok(None);
    }
    let refuse = |problem: String, remedy: &str| {
        Err(Error::target(folder.display().to_string(), problem, remedy))
    };
    // The folder may be named by a link, which may lie on another mount.
    let root = patiently(folder, Role::Target, || folder.canonicalize());
    let mount = root.ok().and_then(|root| host::mount_id(&root)).filter(|_| !across_mounts);
    let mut found = Found::default();
    let mut folders = Vec::from([folder.to_owned()]);
    while let Some(next) = folders.pop() {
        if let Err(cause) = list(&next, mount, &mut folders, &mut found) {
            let problem = format!("{} cannot be listed ({})", next.display(), plain(&cause));
            return refuse(problem, "change its permissions, or name the files");
        }
        if FILES_MAX < found.files.len() {
            let problem = format!("there are more than {FILES_MAX} files in this folder");
            return refuse(problem, "name a folder with fewer, or one large file");
        }
    }
    say_what_is_left_out(&found);
    if found.files.is_empty() {
        let [file, place] = [folder.join("test.dat"), folder.to_owned()]
            .map(|path| typed_path(&path.display().to_string()));
        let remedy = format!(
            "create one with `fathom prepare {file} --size 10g`, or measure the place with \
             `fathom quick {place}`"
        );
        return refuse("there is no file with data in this folder".to_owned(), &remedy);
    }
    found.files.sort();
    Ok(Some(found.files))
}

/// Lists one folder: its files, and the folders in it.
fn list(
    folder: &Path,
    mount: Option<u64>,
    folders: &mut Vec<PathBuf>,
    found: &mut Found,
) -> io::Result<()> {
    let mut entries = patiently(folder, Role::Target, || fs::read_dir(folder))?;
    while let Some(entry) = patiently(folder, Role::Target, || entries.next()) {
        let path = entry?.path();
        let look = || -> io::Result<(Metadata, Option<u64>)> {
            Ok((path.symlink_metadata()?, mount.and_then(|_| host::mount_id(&path))))
        };
        // Files that vanish while the folder is listed are not reported.
        let Ok((metadata, own)) = patiently(&path, Role::Target, look) else { continue };
        if !metadata.is_dir() && !metadata.is_file() {
            continue;
        }
        if own != mount {
            found.mounted.push(path);
        } else if metadata.is_dir() {
            folders.push(path);
        } else if metadata.len() > 0 {
            match patiently(&path, Role::Target, || journal::is_result(&path)) {
                true => found.results.push(path),
                false => found.files.push(path),
            }
        }
        if FILES_MAX < found.files.len() {
            break;
        }
    }
    Ok(())
}

fn say_what_is_left_out(found: &Found) {
    for path in &found.mounted {
        output::note(&format!(
            "{} is left out: something is mounted there; --across-mounts takes it in",
            path.display()
        ));
    }
    for path in &found.results {
        output::note(&format!("{} is left out: it is a result of fathom's", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Args, Command};

    #[test]
    fn names_are_those_of_the_file_that_was_judged() {
        let root = tempfile::tempdir_in("/var/tmp").unwrap();
        let [file, other, outside] =
            ["file", "other", "outside"].map(|name| root.path().join(name));
        std::fs::write(&file, "ours").unwrap();
        std::fs::write(&other, "theirs").unwrap();
        std::fs::hard_link(&other, &outside).unwrap();
        let identity = |path: &Path| found::identity(&std::fs::File::open(path).unwrap()).ok();
        let theirs = identity(&other);
        assert_eq!(names_of(&file, identity(&file)), Some(1));
        assert_eq!(names_of(&other, theirs), Some(2));
        // The judged file no longer exists, and the file in its place has only one name.
        assert_eq!(names_of(&file, theirs), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(names_of(&file, theirs), None);
    }

    #[test]
    fn what_leads_out_of_a_folder_since_it_was_listed_is_refused() {
        let root = tempfile::tempdir_in("/var/tmp").unwrap();
        let folder = root.path().join("folder");
        let file = |path: &Path| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, [1; 4096]).unwrap();
        };
        file(&root.path().join("victim"));
        file(&folder.join("below/victim"));
        file(&folder.join("a"));
        let listed = || {
            let words = ["fathom", "plan", folder.to_str().unwrap()].map(str::to_owned);
            let Command::Plan(plan) = Args::reread(&words).unwrap().command else { panic!() };
            let request = plan.request;
            let mut described = Described::typed(&request);
            let paths = locate(&mut described).unwrap();
            (described, paths)
        };
        let judged = |(described, paths): &(Described, Vec<PathBuf>)| {
            stay_inside(described, &Place::find(paths).unwrap()).map_err(|error| error.to_string())
        };
        let before = listed();
        assert_eq!(before.1.len(), 2);
        assert_eq!(judged(&before), Ok(()));
        std::fs::remove_file(folder.join("a")).unwrap();
        std::os::unix::fs::symlink("../victim", folder.join("a")).unwrap();
        assert!(judged(&before).unwrap_err().contains("has become a link out of"));
        std::fs::remove_file(folder.join("a")).unwrap();
        file(&folder.join("a"));
        // The same for a folder on the path.
        std::fs::remove_dir_all(folder.join("below")).unwrap();
        std::os::unix::fs::symlink("..", folder.join("below")).unwrap();
        assert!(judged(&before).unwrap_err().contains("has become a link out of"));
        assert_eq!(listed().1, [folder.join("a")], "links are not followed");
    }
}
