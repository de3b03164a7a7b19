//! A workload with everything that it extends, merged: the file nearer to the user wins, key by
//! key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_core::Bytes;
use fathom_core::{Refusal, RefusalKind};

use super::file::{Entry, Value, parse};
use super::keys::{self, Table, is_common};
use super::problem::{At, Problem, Source};
use super::{Setting, folder_of, option_of, refuse, setting_words, typed_aims};
use crate::cli::axes::AxisArg;
use crate::cli::described::{Aim, Described, ONLY, StreamArgs};
use crate::cli::options::Request;
use crate::cli::values::{self, nearest};
use crate::error::{Error, plain};
use crate::foreign::Foreign;
use crate::hanging::{Role, patiently};
use crate::resolve::Blame;
use crate::{shipped, spoken};

/// How many files may extend one another.
const DEPTH_MAX: usize = 16;
/// The largest file: far larger than any real one.
const SIZE_MAX: u64 = 1 << 20;
/// The content of a file besides the keys of streams.
const OWN_KEYS: [&str; 10] =
    ["about", "extends", "map", "name", "peak", "stream", "sustain", "sweep", "targets", "vars"];

/// A value and its place.
type ValueAt = (Value, At);

/// A stream's own part of a file.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    keys: BTreeMap<String, ValueAt>,
    targets: Option<ValueAt>,
}

/// The sweep in a file.
#[derive(Clone, Debug, Default)]
pub struct SweepTable {
    /// Its axes, in their order.
    pub axes: Vec<AxisArg>,
    /// Its other keys, as words of the command line.
    pub words: BTreeMap<String, Vec<String>>,
}

/// An option that varies.
struct Varied<'a> {
    /// The stream to which it belongs; all of them if none.
    stream: Option<&'a str>,
    key: String,
    words: Vec<String>,
}

/// A workload as it is written, merged.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Whether it comes as text from elsewhere, and may extend no file of this host.
    reads_no_files: bool,
    sources: Vec<Source>,
    name: Option<String>,
    vars: BTreeMap<String, (String, At)>,
    keys: BTreeMap<String, ValueAt>,
    targets: Option<ValueAt>,
    streams: Vec<Section>,
    sweep: Option<SweepTable>,
    /// Its other experiments, as words of the command line by their keys.
    tables: BTreeMap<Table, BTreeMap<String, Vec<String>>>,
    /// For each stream of the description, the places of its values.
    origins: Vec<BTreeMap<String, At>>,
}

impl Loaded {
    /// Reads a workload by its name or path, with all that it extends, and sets its variables.
    ///
    /// # Errors
    ///
    /// When it cannot be read or understood.
    pub fn read(reference: &str, set: &[String]) -> Result<Self, Error> {
        let mut loaded = Self::default();
        match loaded.add(reference, None, &mut Vec::new()).and_then(|()| loaded.set(set)) {
            Ok(()) => Ok(loaded),
            Err(problem) => Err(refuse(&problem, &loaded.sources)),
        }
    }

    /// Parses the text of a workload file of this name, with all that it extends.
    ///
    /// # Errors
    ///
    /// When it cannot be parsed.
    pub fn of_text(name: &str, text: &str) -> Result<Self, Error> {
        let mut loaded = Self { reads_no_files: true, ..Self::default() };
        match loaded.add_text((name.to_owned(), text.to_owned()), None, &mut Vec::new()) {
            Ok(()) => Ok(loaded),
            Err(problem) => Err(refuse(&problem, &loaded.sources)),
        }
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        self.sources.first().map_or("", |source| &source.name)
    }

    /// Adds the content of a file on top of the present content.
    fn add(
        &mut self,
        reference: &str,
        from: Option<&At>,
        chain: &mut Vec<String>,
    ) -> Result<(), Problem> {
        self.add_text(open(reference, from, chain)?, from, chain)
    }

    /// Adds the content of a text, after the content of the files that it extends.
    fn add_text(
        &mut self,
        (name, text): (String, String),
        from: Option<&At>,
        chain: &mut Vec<String>,
    ) -> Result<(), Problem> {
        if chain.contains(&name) || chain.len() >= DEPTH_MAX {
            let title = format!("{name} extends itself, or too many others");
            return Err(Problem::new(
                title,
                from.cloned(),
                format!("at most {DEPTH_MAX} in a row"),
            ));
        }
        let place = self.sources.len();
        self.sources.push(Source { name: name.clone(), text: text.clone() });
        let entries = parse(place, &text)?;
        if let Some(base) = entries.iter().find(|entry| entry.key == "extends") {
            let base_name = string(base)?;
            let base_name = match shipped::text(base_name) {
                Some(_) => base_name.to_owned(),
                // A message about one would show a line of any file.
                None if self.reads_no_files => {
                    let title =
                        format!("a workload that is sent to a host extends no file: {base_name}");
                    return Err(Problem::new(
                        title,
                        Some(base.at.clone()),
                        "put its text here".to_owned(),
                    ));
                }
                None => folder_of(Path::new(&name)).join(base_name).display().to_string(),
            };
            chain.push(name);
            self.add(&base_name, Some(&base.at), chain)?;
            chain.pop();
        }
        entries.into_iter().try_for_each(|entry| self.overlay(entry))
    }

    /// Takes a key of a file's top.
    fn overlay(&mut self, entry: Entry) -> Result<(), Problem> {
        match entry.key.as_str() {
            "about" => string(&entry).map(|_| ()),
            "extends" => Ok(()),
            "name" => {
                self.name = Some(string(&entry)?.to_owned());
                Ok(())
            }
            "targets" => {
                self.targets = Some((entry.value, entry.at));
                Ok(())
            }
            "vars" => {
                for var in table(entry)? {
                    let value = match var.value {
                        Value::Text(text) | Value::Number(text) => text,
                        Value::Flag(flag) => flag.to_string(),
                        _ => return Err(wrong(&var.at, "a variable is a string or a number")),
                    };
                    self.vars.insert(var.key, (value, var.at));
                }
                Ok(())
            }
            "stream" => {
                table(entry)?.into_iter().try_for_each(|stream| self.overlay_stream(stream))
            }
            "sweep" => table(entry)?.into_iter().try_for_each(|key| self.overlay_sweep(key)),
            name => match Table::ALL.into_iter().find(|table| table.name() == name) {
                Some(of) => table(entry)?.into_iter().try_for_each(|key| self.overlay_of(of, key)),
                None => {
                    known(&entry, &OWN_KEYS)?;
                    self.keys.insert(entry.key, (entry.value, entry.at));
                    Ok(())
                }
            },
        }
    }

    fn overlay_stream(&mut self, entry: Entry) -> Result<(), Problem> {
        let name = entry.key.clone();
        let place = match self.streams.iter().position(|section| section.name == name) {
            Some(place) => place,
            None => {
                self.streams.push(Section { name, keys: BTreeMap::new(), targets: None });
                self.streams.len() - 1
            }
        };
        for key in table(entry)? {
            let section = &mut self.streams[place];
            if key.key == "targets" {
                section.targets = Some((key.value, key.at));
                continue;
            }
            if is_common(&key.key) {
                let title = format!("{} is of the whole run, not of a stream", key.key);
                let problem = Problem::new(title, Some(key.key_at), "it stands in a stream");
                return Err(problem.help("put it above the first [stream....]"));
            }
            known(&key, &["targets"])?;
            section.keys.insert(key.key, (key.value, key.at));
        }
        Ok(())
    }

    /// Takes a key of `[sweep]`.
    fn overlay_sweep(&mut self, entry: Entry) -> Result<(), Problem> {
        let sweep = self.sweep.get_or_insert_default();
        if entry.key == "axes" {
            return table(entry)?.into_iter().try_for_each(|axis| sweep.overlay(axis, ""));
        }
        let names = keys::sweep_names();
        if !names.contains(&entry.key) {
            let all: Vec<&str> = names.iter().map(String::as_str).chain(["axes"]).collect();
            return Err(unknown(&entry, &all));
        }
        let words = keys::sweep_words(&entry.key, &entry.value).map_err(|why| {
            Problem::new(format!("{} is refused", entry.key), Some(entry.at.clone()), why)
        })?;
        sweep.words.insert(entry.key, words);
        Ok(())
    }

    /// Takes a key of an experiment's table.
    fn overlay_of(&mut self, table: Table, entry: Entry) -> Result<(), Problem> {
        let keys = self.tables.entry(table).or_default();
        let known = table.keys();
        let all: Vec<&str> = known.iter().filter_map(|arg| arg.get_long()).collect();
        if !all.contains(&entry.key.as_str()) {
            return Err(unknown(&entry, &all));
        }
        let words = table.words(&entry.key, &entry.value).map_err(|why| {
            Problem::new(format!("{} is refused", entry.key), Some(entry.at.clone()), why)
        })?;
        keys.insert(entry.key, words);
        Ok(())
    }

    /// Its settings for an experiment, if it has any: words of the command line by their keys.
    pub fn table(&self, table: Table) -> Option<&BTreeMap<String, Vec<String>>> {
        self.tables.get(&table)
    }

    /// The sweep that it describes, if it does.
    pub fn sweep(&self) -> Option<&SweepTable> {
        self.sweep.as_ref()
    }

    /// Whether it has a variable of this name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.vars.contains_key(name)
    }

    /// The place of the stream whose copies an axis counts: `streams` of the only one, or
    /// `users.streams`.
    ///
    /// # Errors
    ///
    /// When there is no such stream, or the axis does not say which.
    pub fn copied(&self, axis: &str) -> Result<usize, Error> {
        let refuse = |problem: String, remedy: &str| {
            Err(Error::option(format!("--axis {axis}"), problem, remedy))
        };
        match axis.rsplit_once('.') {
            None if self.streams.len() > 1 => refuse(
                format!("{} has several streams", self.name()),
                "say which of them is copied, as in users.streams",
            ),
            None => Ok(0),
            Some((name, _)) => match self.streams.iter().position(|one| one.name == name) {
                Some(place) => Ok(place),
                None => refuse(
                    format!("{} has no stream '{name}'", self.name()),
                    "name one of its streams, as in users.streams",
                ),
            },
        }
    }

    /// The name of the measured thing for people.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.name())
    }

    /// Gives variables the values of `--set NAME=VALUE`.
    fn set(&mut self, set: &[String]) -> Result<(), Problem> {
        for typed in set {
            let title = format!("--set {typed}");
            let Some((name, value)) = typed.split_once('=') else {
                let problem = Problem::new(format!("{title}: there is no value"), None, "");
                return Err(problem.help("write --set NAME=VALUE"));
            };
            let near = nearest(name, self.vars.keys().map(String::as_str)).map(ToOwned::to_owned);
            let Some(var) = self.vars.get_mut(name) else {
                let title = format!("{title}: {} has no variable '{name}'", self.name());
                let all: Vec<&str> = self.vars.keys().map(String::as_str).collect();
                let help = match (near, all.as_slice()) {
                    (Some(near), _) => format!("did you mean '{near}'?"),
                    (None, []) => "it has no variables: add [vars] to it".to_owned(),
                    (None, all) => format!("its variables are {}", all.join(", ")),
                };
                return Err(Problem::new(title, None, "").help(help));
            };
            var.0 = value.to_owned();
        }
        Ok(())
    }

    /// The description, with the typed options.
    ///
    /// # Errors
    ///
    /// When a value is invalid, when there are no targets, or when an option was typed that a
    /// workload has to set itself.
    pub fn describe(
        &mut self,
        args: &Request,
        targets: &[PathBuf],
        settings: &[Setting<'_>],
    ) -> Result<Described, Error> {
        let typed = self.typed(args)?;
        let varied = self.vary(settings, &typed)?;
        let mut named = typed.keys().chain(varied.iter().map(|one| &one.key));
        if named.any(|key| is_an_amount(key)) {
            self.leave_out_the_warm_up();
        }
        let sections = match self.streams.is_empty() {
            true => Vec::from([None]),
            false => self.streams.iter().cloned().map(Some).collect(),
        };
        let mut streams = Vec::with_capacity(sections.len());
        let mut used_typed = targets.is_empty();
        for section in &sections {
            let name = section.as_ref().map(|section| section.name.as_str());
            let mut set = typed.clone();
            let own = varied.iter().filter(|one| one.stream.is_none() || one.stream == name);
            set.extend(own.map(|one| (one.key.clone(), one.words.clone())));
            let (words, origin) = self.words(section.as_ref(), &set).map_err(|p| self.fail(&p))?;
            let (load, access) = keys::read(&words).map_err(|why| {
                self.fail(&Problem::new(format!("{}: {why}", self.name()), None, ""))
            })?;
            let own = section.as_ref().and_then(|section| section.targets.as_ref());
            let aims = match (own, &self.targets) {
                (Some(own), _) => self.aims(own).map_err(|p| self.fail(&p))?,
                (None, _) if !targets.is_empty() => {
                    used_typed = true;
                    typed_aims(targets)
                }
                (None, Some(shared)) => self.aims(shared).map_err(|p| self.fail(&p))?,
                (None, None) => Vec::new(),
            };
            if aims.is_empty() {
                return Err(self.without_targets(section.as_ref()));
            }
            let name = section.as_ref().map(|section| section.name.clone());
            self.origins.push(origin);
            streams.push(StreamArgs { name, aims, load, access, copy: ONLY, first_worker: None });
        }
        if !used_typed {
            return Err(Error::option(
                targets[0].display().to_string(),
                format!("every stream of {} names its own targets", self.name()),
                "drop it",
            ));
        }
        Ok(Described {
            name: self.point_name(),
            consent: args.consent.clone(),
            across_mounts: args.across_mounts,
            ..Described::of(streams)
        })
    }

    /// The name of the whole: empty if its one stream has all settings.
    fn point_name(&self) -> Option<String> {
        let streams: Vec<&str> = self.streams.iter().map(|stream| stream.name.as_str()).collect();
        match (&self.name, streams.as_slice()) {
            (Some(name), _) => Some(name.clone()),
            (None, [] | [_]) => None,
            (None, all) => Some(all.join(", ")),
        }
    }

    fn fail(&self, problem: &Problem) -> Error {
        refuse(problem, &self.sources)
    }

    fn without_targets(&self, section: Option<&Section>) -> Error {
        let whose = match section {
            Some(section) => format!("stream '{}' of {}", section.name, self.name()),
            None => self.name().to_owned(),
        };
        Error::option(
            whose,
            "it names no target",
            "name one after the workload, or in the file with targets = [\"...\"]",
        )
    }

    /// The typed options that override the file, as words: those of the whole run, and with a
    /// single stream all others too.
    fn typed(&self, args: &Request) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let names = keys::names();
        let mut words = BTreeMap::new();
        for typed in args.typed.iter().filter(|typed| names.contains(&typed.name)) {
            let refuse = |problem: String| {
                let remedy = "set it in the file, or let the file read a variable that --set gives";
                Err(Error::option(format!("--{}", typed.name), problem, remedy))
            };
            if !is_common(&typed.name) && self.streams.len() > 1 {
                return refuse(format!("{} sets it for each of its streams", self.name()));
            }
            // There are several of it, and they belong together.
            if typed.name == "part" {
                return refuse(format!("{} says what its I/Os are", self.name()));
            }
            words.insert(typed.name.clone(), Vec::from([typed.word()]));
        }
        Ok(words)
    }

    /// Drops the warm-up: an amount counts from the first I/O, so a warm-up that was written for a
    /// duration could take all of it. A file that names an amount itself means both, and a variable is
    /// there to be set.
    fn leave_out_the_warm_up(&mut self) {
        let streams = self.streams.iter().flat_map(|one| one.keys.keys());
        let axes = self.sweep.iter().flat_map(|sweep| &sweep.axes).map(|axis| &axis.name);
        let mut names = self.keys.keys().chain(streams).chain(axes);
        let is_free = match self.keys.get("warm-up") {
            Some((Value::Text(text), _)) => text.contains("${"),
            _ => false,
        };
        if !is_free && !names.any(|name| is_an_amount(name)) {
            self.keys.remove("warm-up");
        }
    }

    /// Sets the variables that vary, and returns the words of the options that do.
    fn vary<'s>(
        &mut self,
        settings: &[Setting<'s>],
        typed: &BTreeMap<String, Vec<String>>,
    ) -> Result<Vec<Varied<'s>>, Error> {
        let mut varied = Vec::new();
        for &(axis, label) in settings {
            if let Some(var) = self.vars.get_mut(axis) {
                // The file's author has named the variables.
                label.clone_into(&mut var.0);
                continue;
            }
            let (stream, key) = match axis.split_once('.') {
                Some((stream, key)) => (Some(stream), key),
                None => (None, axis),
            };
            let refuse = |problem: String, remedy: &str| {
                Err(Error::option(format!("--axis {axis}"), problem, remedy))
            };
            if let Some(name) = stream.filter(|n| self.streams.iter().all(|one| one.name != *n)) {
                let problem = format!("{} has no stream '{name}'", self.name());
                return refuse(problem, "name one of its streams, as in users.rate");
            }
            if stream.is_some() && is_common(key) {
                return refuse(format!("{key} is of the whole run"), "drop the stream's name");
            }
            if stream.is_none() && !is_common(key) && self.streams.len() > 1 {
                let problem = format!("{} has several streams", self.name());
                return refuse(problem, "say which of them varies, as in users.rate");
            }
            let option = option_of(key);
            if typed.contains_key(option) {
                return refuse(format!("--{option} was given as well"), "drop one of the two");
            }
            let words = setting_words(axis, key, label)?;
            varied.push(Varied { stream, key: option.to_owned(), words });
        }
        Ok(varied)
    }

    /// The words of a stream, and the place of each of its keys.
    fn words(
        &self,
        section: Option<&Section>,
        typed: &BTreeMap<String, Vec<String>>,
    ) -> Result<(Vec<String>, BTreeMap<String, At>), Problem> {
        let mut words: Vec<String> = typed.values().flatten().cloned().collect();
        let mut origin = BTreeMap::new();
        let own = section.map(|section| &section.keys);
        let of_all = self.keys.iter().filter(|(key, _)| {
            !typed.contains_key(*key) && own.is_none_or(|own| !own.contains_key(*key))
        });
        let own = own.into_iter().flatten().filter(|(key, _)| !typed.contains_key(*key));
        for (key, (value, at)) in of_all.chain(own) {
            let value = self.substitute(value, at)?;
            words.extend(keys::words(key, &value).map_err(|why| {
                let title = format!("{key} is refused");
                Problem::new(title, Some(at.clone()), why)
            })?);
            origin.insert(key.clone(), at.clone());
        }
        Ok((words, origin))
    }

    /// The value with every `${NAME}` replaced; `$${` stands for `${` itself.
    fn substitute(&self, value: &Value, at: &At) -> Result<Value, Problem> {
        match value {
            Value::Text(text) => self.expand(text, at).map(Value::Text),
            Value::List(list) => {
                let each = |(value, at): &ValueAt| Ok((self.substitute(value, at)?, at.clone()));
                list.iter().map(each).collect::<Result<_, _>>().map(Value::List)
            }
            other => Ok(other.clone()),
        }
    }

    fn expand(&self, text: &str, at: &At) -> Result<String, Problem> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            if rest[..start].ends_with('$') {
                out.push_str(&rest[..start - 1]);
                out.push_str("${");
                rest = &rest[start + 2..];
                continue;
            }
            let Some(end) = rest[start..].find('}') else {
                let problem = Problem::new("'${' without '}'", Some(at.clone()), "here");
                return Err(problem.help("write $${ for the two characters themselves"));
            };
            let name = &rest[start + 2..start + end];
            let Some((value, _)) = self.vars.get(name) else {
                let title = format!("there is no variable '{name}'");
                let problem = Problem::new(title, Some(at.clone()), "used here");
                return Err(match nearest(name, self.vars.keys().map(String::as_str)) {
                    Some(near) => problem.help(format!("did you mean '{near}'?")),
                    None => problem.help("give it a value in [vars]"),
                });
            };
            out.push_str(&rest[..start]);
            out.push_str(value);
            rest = &rest[start + end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The targets in a value: a string, a table with a region, or a list of these.
    fn aims(&self, (value, at): &ValueAt) -> Result<Vec<Aim>, Problem> {
        match value {
            Value::Text(text) => Ok(Vec::from([Aim::at(self.expand(text, at)?.into())])),
            Value::Table(entries) => self.aim(entries, at).map(|aim| Vec::from([aim])),
            Value::List(list) => {
                let each = list.iter().map(|one| match one.0 {
                    Value::Text(_) | Value::Table(_) => self.aims(one),
                    _ => Err(wrong(&one.1, TARGET)),
                });
                Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
            }
            _ => Err(wrong(at, TARGET)),
        }
    }

    /// A target with a region of its own.
    fn aim(&self, entries: &[Entry], at: &At) -> Result<Aim, Problem> {
        let (mut path, mut offset, mut size) = (None, None, None);
        for entry in entries {
            let text = match &entry.value {
                Value::Text(text) => self.expand(text, &entry.at)?,
                Value::Number(text) => text.clone(),
                _ => return Err(wrong(&entry.at, "it is a string")),
            };
            let bytes = || -> Result<Bytes, Problem> {
                let why = |error: fathom_core::ParseUnitError| wrong(&entry.at, &error.to_string());
                values::size(&text).map_err(why)
            };
            match entry.key.as_str() {
                "path" => path = Some(text),
                "offset" => offset = Some(bytes()?),
                "size" => size = Some(bytes()?),
                _ => return Err(unknown(entry, &["path", "offset", "size"])),
            }
        }
        match path {
            Some(path) => Ok(Aim { offset, size, ..Aim::at(path.into()) }),
            None => Err(wrong(at, "there is no path in it")),
        }
    }

    /// Where a target's own region has this offset or size.
    fn region_at<'a>(
        &'a self,
        whose: Option<&'a Section>,
        key: &str,
        value: &str,
    ) -> Option<&'a At> {
        let bytes: Bytes = value.parse().ok()?;
        let targets = whose.or(self.streams.first()).and_then(|section| section.targets.as_ref());
        let (targets, _) = targets.or(self.targets.as_ref())?;
        let list = match targets {
            Value::List(list) => list.iter().map(|(target, _)| target).collect(),
            one => Vec::from([one]),
        };
        let entries = list.into_iter().filter_map(|target| match target {
            Value::Table(entries) => Some(entries),
            _ => None,
        });
        let has = |entry: &&Entry| match &entry.value {
            Value::Text(text) => {
                let text = self.expand(text, &entry.at);
                entry.key == key && text.is_ok_and(|text| values::size(&text).ok() == Some(bytes))
            }
            Value::Number(text) => entry.key == key && values::size(text).ok() == Some(bytes),
            _ => false,
        };
        entries.flatten().find(has).map(|entry| &entry.at)
    }

    /// The error in terms of the file: about a value in a file with its place, and with keys in the
    /// place of options.
    pub fn explain(&self, blame: Blame) -> Error {
        let stream = blame.stream.and_then(|place| self.origins.get(place));
        let whose = blame.stream.and_then(|place| self.streams.get(place));
        let names = keys::names();
        let spoken = |text: &str| as_keys(text, &names);
        let Error::Refusal(refusal) = blame.error else { return blame.error };
        let Refusal { about: option, problem, remedy, kind } = refusal;
        let Some(rest) = option.strip_prefix("--").filter(|_| kind == RefusalKind::Usage) else {
            let (problem, remedy) = (spoken(&problem), spoken(&remedy));
            return Refusal { about: option, problem, remedy, kind }.into();
        };
        let key = rest.split([' ', '=']).next().unwrap_or(rest);
        if !names.iter().any(|name| name == key) {
            return Refusal::usage(option, problem, remedy).into();
        }
        let value = rest.strip_prefix(key).unwrap_or_default().trim();
        let origin = stream.or(self.origins.first()).and_then(|origin| origin.get(key));
        let at = self.region_at(whose, key, value).or(origin).cloned();
        let whose = match whose {
            Some(section) if at.is_none() => format!("stream '{}': ", section.name),
            _ => String::new(),
        };
        let title = format!("{whose}{}", spoken(&option));
        let problem = match at {
            Some(at) => Problem::new(format!("{title} is refused"), Some(at), spoken(&problem)),
            None => {
                let title = format!("{}: {title}: {}", self.name(), spoken(&problem));
                Problem::new(title, None, "")
            }
        };
        self.fail(&problem.help(spoken(&remedy)))
    }
}

impl SweepTable {
    /// Takes an axis: a list or a string of values, or the axes of a stream.
    fn overlay(&mut self, entry: Entry, stream: &str) -> Result<(), Problem> {
        let name = format!("{stream}{}", entry.key);
        let values: Vec<String> = match entry.value {
            Value::Table(axes) if stream.is_empty() => {
                let stream = format!("{name}.");
                return axes.into_iter().try_for_each(|axis| self.overlay(axis, &stream));
            }
            Value::List(list) => {
                let each = list.iter().map(|(value, at)| axis_value(value, at));
                each.collect::<Result<_, _>>()?
            }
            Value::Text(text) => text.split(',').map(ToOwned::to_owned).collect(),
            _ => return Err(wrong(&entry.at, AXIS)),
        };
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        if values.is_empty() {
            return Err(wrong(&entry.at, AXIS));
        }
        let axis = AxisArg::new(&name, &values).map_err(|why| wrong(&entry.at, &why))?;
        self.put(axis);
        Ok(())
    }

    /// Replaces the axis of its name, or appends an axis.
    pub fn put(&mut self, axis: AxisArg) {
        match self.axes.iter_mut().find(|known| known.name == axis.name) {
            Some(known) => *known = axis,
            None => self.axes.push(axis),
        }
    }
}

/// Whether a key, with or without its stream, ends a stream after an amount.
fn is_an_amount(key: &str) -> bool {
    matches!(key.rsplit('.').next(), Some("stop-after" | "passes"))
}

/// One of an axis's values. Several targets in a nested list are measured together.
fn axis_value(value: &Value, at: &At) -> Result<String, Problem> {
    match value {
        Value::Text(text) | Value::Number(text) => Ok(text.clone()),
        Value::Flag(flag) => Ok(flag.to_string()),
        Value::List(list) => {
            let each = list.iter().map(|(value, at)| match value {
                Value::Text(text) => Ok(text.clone()),
                _ => Err(wrong(at, AXIS)),
            });
            Ok(each.collect::<Result<Vec<_>, _>>()?.join("+"))
        }
        _ => Err(wrong(at, AXIS)),
    }
}

/// The allowed values of an axis.
const AXIS: &str = "an axis is a list of values, or a string such as \"1,2,4..256\"";

/// The allowed forms of a target.
const TARGET: &str =
    "a target is a string, or a table such as { path = \"/dev/sdb\", size = \"1g\" }";

/// The options in a sentence replaced by the keys of a file.
fn as_keys(text: &str, names: &[String]) -> String {
    let key = |option: &str| match names.iter().any(|name| name == option) {
        true => option.to_owned(),
        false => format!("--{option}"),
    };
    spoken::renamed(text, &|option| Some(key(option))).unwrap_or_else(|| text.to_owned())
}

fn wrong(at: &At, why: &str) -> Problem {
    Problem::new("this is refused", Some(at.clone()), why)
}

fn string(entry: &Entry) -> Result<&str, Problem> {
    match &entry.value {
        Value::Text(text) => Ok(text),
        _ => Err(wrong(&entry.at, &format!("{} is a string", entry.key))),
    }
}

fn table(entry: Entry) -> Result<Vec<Entry>, Problem> {
    match entry.value {
        Value::Table(entries) => Ok(entries),
        _ if entry.key == "stream" => {
            Err(wrong(&entry.at, "streams are tables with names of their own: [stream.log]"))
        }
        _ => Err(wrong(&entry.at, &format!("{} is a table", entry.key))),
    }
}

/// Refuses an unknown key.
fn known(entry: &Entry, own: &[&str]) -> Result<(), Problem> {
    let names = keys::names();
    if names.contains(&entry.key) {
        return Ok(());
    }
    let all: Vec<&str> = names.iter().map(String::as_str).chain(own.iter().copied()).collect();
    Err(unknown(entry, &all))
}

fn unknown(entry: &Entry, known: &[&str]) -> Problem {
    let title = format!("there is no key '{}'", entry.key);
    let problem = Problem::new(title, Some(entry.key_at.clone()), "nothing reads it");
    match (entry.key.as_str(), nearest(&entry.key, known.iter().copied())) {
        ("overwrite" | "destroy" | "destroy-in-use", _) => problem
            .help(format!("consent is given on the command line alone, with --{}", entry.key)),
        (_, Some(near)) => problem.help(format!("did you mean '{near}'?")),
        (_, None) => problem.help(format!("the keys here are {}", known.join(", "))),
    }
}

/// The name and the text of a workload.
fn open(reference: &str, from: Option<&At>, chain: &[String]) -> Result<(String, String), Problem> {
    if let Some(text) = shipped::text(reference) {
        return Ok((reference.to_owned(), text.to_owned()));
    }
    let failed = |why: String| {
        let title = format!("{reference}: {why}");
        let label = if from.is_some() { "extended here" } else { "" };
        let problem = Problem::new(title, from.cloned(), label);
        let is_path = reference.ends_with(".toml") || !chain.is_empty();
        // An extended file is searched for beside the file that extends it.
        let name = Path::new(reference).file_name().and_then(|name| name.to_str());
        match nearest(name.unwrap_or(reference), shipped::names()) {
            Some(near) if !reference.ends_with(".toml") => {
                problem.help(format!("the nearest workload is '{near}'"))
            }
            _ if is_path => problem.help("`fathom workloads` lists those that come with fathom"),
            _ => {
                problem.help("name a file that ends in .toml, or one that `fathom workloads` lists")
            }
        }
    };
    text_of(Path::new(reference)).map(|text| (reference.to_owned(), text)).map_err(failed)
}

/// The text of a workload file, or the reason why it is not available.
pub fn text_of(path: &Path) -> Result<String, String> {
    let metadata = patiently(path, Role::Input, || std::fs::metadata(path));
    let metadata = metadata.map_err(|cause| format!("it cannot be read ({})", plain(&cause)))?;
    if !metadata.is_file() || metadata.len() > SIZE_MAX {
        return Err("it is no file of at most 1 MiB".to_owned());
    }
    let bytes = Foreign::open(path, Bytes(SIZE_MAX)).and_then(Foreign::read_all)?;
    String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())
}
