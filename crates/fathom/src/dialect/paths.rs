//! The local paths of the other system's paths: `--map 'G:=/mnt/g'`.
//!
//! Only names are looked at here, never files.

use std::path::PathBuf;

use fathom_core::Refusal;
use fathom_core::typed_word;

/// The values of `--map`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMap {
    /// The beginning of a path there, with backslashes; and its replacement here.
    maps: Vec<(String, String)>,
}

impl PathMap {
    /// Reads the values of `--map`.
    ///
    /// # Errors
    ///
    /// When one is not FROM=TO, or contradicts another one.
    pub fn new(values: &[String]) -> Result<Self, Refusal> {
        let mut maps: Vec<(String, String)> = Vec::new();
        for value in values {
            let refuse = |problem: &str| {
                let thing = format!("--map {}", typed_word(value));
                Refusal::usage(thing, problem, "name both sides, as in --map 'G:=/mnt/g'")
            };
            let (from, to) = value.split_once('=').ok_or_else(|| refuse("it has no ="))?;
            let from = from.replace('/', "\\");
            let from = from.strip_suffix('\\').filter(|rest| !rest.is_empty()).unwrap_or(&from);
            match (from.is_empty(), to.is_empty()) {
                (true, _) => return Err(refuse("nothing stands before the =")),
                (_, true) => return Err(refuse("nothing stands after the =")),
                (false, false) => {}
            }
            match maps.iter().find(|(known, _)| known.eq_ignore_ascii_case(from)) {
                Some((_, other)) if other != to => {
                    return Err(Refusal::usage(
                        format!("--map {}", typed_word(value)),
                        format!("{from} is mapped to {other} already"),
                        "drop one of the two",
                    ));
                }
                Some(_) => {}
                None => maps.push((from.to_owned(), to.to_owned())),
            }
        }
        // The longest one that fits applies.
        maps.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Ok(Self { maps })
    }

    /// The local path of a path of theirs. A path of this system does not change; the backslashes
    /// of a relative one become slashes.
    ///
    /// # Errors
    ///
    /// When it names a drive, a disk or a share that no `--map` has.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, Refusal> {
        let theirs = path.replace('/', "\\");
        for (from, to) in &self.maps {
            // The names of drives, disks and shares ignore case.
            let Some(head) = theirs.get(..from.len()) else { continue };
            let rest = &theirs[from.len()..];
            let ends_a_name =
                rest.is_empty() || rest.starts_with('\\') || from.ends_with([':', '\\']);
            if head.eq_ignore_ascii_case(from) && ends_a_name {
                let rest = rest.trim_start_matches('\\').replace('\\', "/");
                let place = match rest.is_empty() {
                    true => to.clone(),
                    false => format!("{}/{rest}", to.trim_end_matches('/')),
                };
                return Ok(PathBuf::from(place));
            }
        }
        match root(path) {
            None if path.starts_with('/') => Ok(PathBuf::from(path)),
            None => Ok(PathBuf::from(path.replace('\\', "/"))),
            Some((root, what, example)) => Err(Refusal::usage(
                path,
                format!("this is {what}, and nothing says where it is on this machine"),
                format!("say so with --map {}", typed_word(&format!("{root}={example}"))),
            )),
        }
    }
}

/// The beginnings of Windows paths that exist only there, their kind, and a possible replacement
/// here.
fn root(path: &str) -> Option<(String, &'static str, &'static str)> {
    let mut letters = path.chars();
    let first = letters.next();
    if let Some(number) = path.strip_prefix('#')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some((path.to_owned(), "a physical disk of Windows", "/dev/sdX"));
    }
    if first.is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(':') {
        let drive = path[..2].to_uppercase();
        return Some(match path.len() {
            2 => (drive, "a volume of Windows", "/dev/sdX1"),
            _ => (drive, "a path on a drive of Windows", "/mnt/DRIVE"),
        });
    }
    if let Some(share) = path.strip_prefix("\\\\") {
        let names: Vec<&str> = share.splitn(3, '\\').take(2).collect();
        let root = format!("\\\\{}", names.join("\\"));
        return Some(match names.first() {
            Some(&"." | &"?") => (root, "a device of Windows", "/dev/sdX"),
            _ => (root, "a share of Windows", "/mnt/SHARE"),
        });
    }
    let rooted = path.starts_with('\\');
    rooted.then(|| ("\\".to_owned(), "a path on the current drive of Windows", "/mnt/DRIVE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: &[&str]) -> PathMap {
        PathMap::new(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn here(map: &PathMap, path: &str) -> String {
        match map.resolve(path) {
            Ok(place) => place.to_str().unwrap().to_owned(),
            Err(refusal) => refusal.to_string(),
        }
    }

    #[test]
    fn a_path_of_a_mapped_drive_is_found() {
        let map = map(&["G:=/mnt/g", r"g:\db=/data", "#1=/dev/sdb", r"\\srv\iso=/mnt/iso/"]);
        for (theirs, ours) in [
            (r"G:\test\io.dat", "/mnt/g/test/io.dat"),
            (r"g:\io.dat", "/mnt/g/io.dat"),
            ("G:/io.dat", "/mnt/g/io.dat"),
            ("G:io.dat", "/mnt/g/io.dat"),
            ("G:", "/mnt/g"),
            (r"G:\db\io.dat", "/data/io.dat"),
            (r"G:\dbase\io.dat", "/mnt/g/dbase/io.dat"),
            ("#1", "/dev/sdb"),
            (r"\\SRV\iso\a.dat", "/mnt/iso/a.dat"),
        ] {
            assert_eq!(here(&map, theirs), ours);
        }
        for theirs in ["#10", r"H:\io.dat", r"\\srv\isolde\a.dat"] {
            assert!(here(&map, theirs).contains("--map"), "{}", here(&map, theirs));
        }
    }

    #[test]
    fn a_path_that_exists_only_there_needs_a_map() {
        let none = PathMap::default();
        for (theirs, answer) in [
            (r"C:\io.dat", "say so with --map C:=/mnt/DRIVE"),
            ("X:", "this is a volume of Windows"),
            ("#2", "say so with --map '#2=/dev/sdX'"),
            (r"\\srv\share\io.dat", r"say so with --map '\\srv\share=/mnt/SHARE'"),
            (r"\\.\PhysicalDrive1", r"a device of Windows"),
            (r"\io.dat", r"say so with --map '\=/mnt/DRIVE'"),
        ] {
            assert!(here(&none, theirs).contains(answer), "{}", here(&none, theirs));
        }
    }

    #[test]
    fn a_path_of_this_system_stays_as_it_is() {
        let none = PathMap::default();
        for (typed, ours) in [
            ("testfile.dat", "testfile.dat"),
            (r".\dir\io.dat", "./dir/io.dat"),
            ("/mnt/g/io.dat", "/mnt/g/io.dat"),
            (r"/mnt/a\b", r"/mnt/a\b"),
            ("#a", "#a"),
            ("日:x", "日:x"),
            ("", ""),
        ] {
            assert_eq!(here(&none, typed), ours);
        }
        assert_eq!(here(&map(&[r"\=/mnt/c"]), r"\io.dat"), "/mnt/c/io.dat");
    }

    #[test]
    fn a_map_that_says_nothing_is_refused() {
        for (values, answer) in [
            (&["G:"][..], "--map G:: it has no ="),
            (&["=/mnt"], "nothing stands before the ="),
            (&["G:="], "nothing stands after the ="),
            (&["G:=/a", "g:=/b"], "g: is mapped to /a already"),
            (&["G:=/a", r"G:\=/b"], "G: is mapped to /a already"),
        ] {
            let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
            let refusal = PathMap::new(&values).unwrap_err().to_string();
            assert!(refusal.contains(answer), "{refusal}");
        }
    }
}
