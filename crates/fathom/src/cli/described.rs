//! The requested settings, from the command line or a file, before their meaning here is known: one
//! description for both, so that both go through the same checks.

use std::path::PathBuf;

use fathom_core::spec::Kind;
use fathom_core::{Bytes, Span};

use serde::{Deserialize, Serialize};

use super::options::{AccessArgs, Consent, LoadArgs, Request};
use crate::error::Error;

/// A run as requested.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its name.
    pub name: Option<String>,
    /// The streams that run together, at least one.
    pub streams: Vec<StreamArgs>,
    /// The consent to writes.
    pub consent: Consent,
    /// Whether a folder includes the file systems that are mounted below it.
    pub across_mounts: bool,
    /// The folders among the names, and the targets that are in them.
    pub folders: Vec<Folder>,
    /// Which of several hosts this is; none if one machine applies the load.
    pub host: Option<HostPlace>,
    /// Intervals in which I/Os are counted besides those of the series, if they differ.
    pub buckets: Option<Span>,
}

/// One of several hosts that apply a load together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlace {
    /// Its number, from 0: below `hosts`.
    pub number: u32,
    /// How many they are.
    pub hosts: u32,
}

/// A stream as requested. Settings of the whole run, such as its duration, are the same in the
/// `load` of all its streams.
#[derive(Clone, Debug)]
pub struct StreamArgs {
    /// Its name.
    pub name: Option<String>,
    /// Its targets.
    pub aims: Vec<Aim>,
    /// The load.
    pub load: LoadArgs,
    /// The access to the targets.
    pub access: AccessArgs,
    /// The number of this copy of a stream, from 0, and the number of copies.
    pub copy: (u32, u32),
    /// The number of its first worker, which decides the CPUs of its workers; if none, it follows
    /// the workers of the streams before it that name the same CPUs.
    pub first_worker: Option<u32>,
}

/// The only copy of a stream.
pub const ONLY: (u32, u32) = (0, 1);

/// A target of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// Its name, as typed.
    pub path: PathBuf,
    /// Its place among the targets of the run.
    pub target: u32,
    /// The start of its own region; as in all of the stream's targets if none.
    pub offset: Option<Bytes>,
    /// The length of its own region; as in all of the stream's targets if none.
    pub size: Option<Bytes>,
    /// The latest end of its own region: earlier if the target, or the last whole block, ends
    /// before.
    pub end: Option<Bytes>,
    /// The I/Os to it, if they differ from those to the stream's other targets.
    pub kind: Option<Kind>,
}

impl Aim {
    /// The whole target, or the range that the stream addresses in each of its targets.
    pub fn at(path: PathBuf) -> Self {
        Self { path, target: 0, offset: None, size: None, end: None, kind: None }
    }
}

/// A folder whose files are targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its name, as typed.
    pub name: String,
    /// The places of its files among the targets of the run.
    pub targets: Vec<u32>,
}

impl Described {
    /// The typed options: one stream.
    pub fn typed(args: &Request) -> Self {
        Self {
            consent: args.consent.clone(),
            across_mounts: args.across_mounts,
            ..Self::one_stream(args.targets.clone(), args.load.clone(), args.access.clone())
        }
    }

    /// One stream without a name on these targets, without consent to write.
    pub fn one_stream(targets: Vec<PathBuf>, load: LoadArgs, access: AccessArgs) -> Self {
        let aims = (0..).zip(targets).map(|(target, path)| Aim { target, ..Aim::at(path) });
        let aims = aims.collect();
        Self::of(Vec::from([StreamArgs {
            name: None,
            aims,
            load,
            access,
            copy: ONLY,
            first_worker: None,
        }]))
    }

    /// Streams that run together on targets without consent to write.
    pub fn of(streams: Vec<StreamArgs>) -> Self {
        Self {
            name: None,
            streams,
            consent: Consent::default(),
            across_mounts: false,
            folders: Vec::new(),
            host: None,
            buckets: None,
        }
    }

    /// Makes this many copies of a stream run together, each a stream with its own results.
    pub fn copy(&mut self, place: usize, copies: u32) {
        if copies < 2 {
            return;
        }
        let stream = self.streams[place].clone();
        let name = stream.name.as_deref().unwrap_or("stream");
        let copy = |number: u32| StreamArgs {
            name: Some(format!("{name} {}", number + 1)),
            copy: (number, copies),
            ..stream.clone()
        };
        let mut all = (0..copies).map(copy);
        self.streams.splice(place..=place, all.next());
        self.streams.extend(all);
    }

    /// Gives every target its place, and lists them in that order. A folder becomes the files that
    /// `list` finds in it.
    ///
    /// # Errors
    ///
    /// When a stream names a target twice, or `list` fails.
    pub fn locate(
        &mut self,
        mut list: impl FnMut(&PathBuf) -> Result<Option<Vec<PathBuf>>, Error>,
    ) -> Result<Vec<PathBuf>, Error> {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        let mut place = |path: &PathBuf| {
            *places.entry(path.clone()).or_insert_with(|| {
                paths.push(path.clone());
                paths.len() as u32 - 1
            })
        };
        for stream in &mut self.streams {
            let mut aims: Vec<Aim> = Vec::with_capacity(stream.aims.len());
            for aim in stream.aims.drain(..) {
                let Some(files) = list(&aim.path)? else {
                    aims.push(Aim { target: place(&aim.path), ..aim });
                    continue;
                };
                let targets: Vec<u32> = files.iter().map(&mut place).collect();
                let each = files.into_iter().zip(&targets);
                aims.extend(each.map(|(path, &target)| Aim { path, target, ..aim.clone() }));
                let name = aim.path.display().to_string();
                if self.folders.iter().all(|folder| folder.name != name) {
                    self.folders.push(Folder { name, targets });
                }
            }
            let mut seen = std::collections::BTreeSet::new();
            if let Some(twice) = aims.iter().find(|aim| !seen.insert(aim.target)) {
                return Err(Error::option(
                    twice.path.display().to_string(),
                    "it is named twice",
                    "name every target once",
                ));
            }
            stream.aims = aims;
        }
        Ok(paths)
    }

    /// The folder in which a target was found.
    pub fn folder_of(&self, target: u32) -> Option<&str> {
        let folder = self.folders.iter().find(|folder| folder.targets.contains(&target))?;
        Some(&folder.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        request: Request,
    }

    fn described(streams: &[&[&str]]) -> Described {
        let request = Line::parse_from(["fathom", "x"]).request;
        let one = Described::typed(&request);
        let stream = |names: &&[&str]| StreamArgs {
            aims: names.iter().map(|name| Aim::at(name.into())).collect(),
            ..one.streams[0].clone()
        };
        Described { streams: streams.iter().map(stream).collect(), ..one }
    }

    fn places(described: &Described) -> Vec<Vec<u32>> {
        let of = |stream: &StreamArgs| stream.aims.iter().map(|aim| aim.target).collect();
        described.streams.iter().map(of).collect()
    }

    #[test]
    fn what_two_streams_name_is_one_target() {
        let mut two = described(&[&["a", "b"], &["b", "c"]]);
        let paths = two.locate(|_| Ok(None)).unwrap();
        assert_eq!(paths, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(places(&two), [[0, 1], [1, 2]]);
        let error = described(&[&["a", "a"]]).locate(|_| Ok(None)).unwrap_err();
        assert_eq!(error.to_string(), "a: it is named twice: name every target once");
    }

    #[test]
    fn a_copy_is_a_stream_by_itself() {
        let mut two = described(&[&["a"], &["b"]]);
        two.streams[1].name = Some("log".to_owned());
        two.copy(0, 1);
        assert_eq!(two.streams.len(), 2);
        two.copy(1, 3);
        let names: Vec<Option<&str>> =
            two.streams.iter().map(|stream| stream.name.as_deref()).collect();
        assert_eq!(names, [None, Some("log 1"), Some("log 2"), Some("log 3")]);
        two.locate(|_| Ok(None)).unwrap();
        assert_eq!(places(&two), [[0], [1], [1], [1]]);
        assert_eq!(two.streams[3].copy, (2, 3));
    }

    #[test]
    fn a_folder_becomes_its_files() {
        let mut one = described(&[&["folder", "a"]]);
        let list = |path: &PathBuf| {
            let is_folder = path.as_os_str() == "folder";
            Ok(is_folder.then(|| ["folder/x", "folder/y"].map(PathBuf::from).to_vec()))
        };
        assert_eq!(one.locate(list).unwrap(), ["folder/x", "folder/y", "a"].map(PathBuf::from));
        assert_eq!(places(&one), [[0, 1, 2]]);
        assert_eq!((one.folder_of(1), one.folder_of(2)), (Some("folder"), None));
    }
}
