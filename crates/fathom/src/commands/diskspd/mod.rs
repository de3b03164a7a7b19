//! `fathom diskspd`: shows what a command line or a profile of DiskSpd resolves to, or runs it and
//! ends with DiskSpd's result.

mod run;

use std::ffi::OsString;
use std::io::IsTerminal as _;

use clap::{CommandFactory as _, Parser as _};
use fathom_core::Refusal;
use fathom_core::{Bytes, printable, typed_word};

use super::this_machine;
use crate::cli::args::{DiskspdOwn, answer};
use crate::dialect::diskspd::model::{Profile, ResultFormat};
use crate::dialect::diskspd::{self, linux, point, text, xml};
use crate::dialect::paths::PathMap;
use crate::dialect::{Note, Notes};
use crate::error::{Error, exit};
use crate::foreign::Foreign;
use crate::output;
use crate::resolve::Machine;

/// Prints the profile with `-Rp`, and runs it without.
///
/// # Errors
///
/// When DiskSpd refuses the command line, when it cannot be read, and when it cannot run here.
pub fn perform(words: &[OsString]) -> Result<u8, Error> {
    let (own, theirs) = divide(words)?;
    let read = |words: &[OsString]| DiskspdOwn::try_parse_from(words);
    let own = match read(&own) {
        Ok(parsed) => parsed,
        Err(error) => answer(&error, &own, &|words| read(words).err()),
    };
    if theirs.is_empty() || ["-?", "/?"].iter().any(|help| theirs.contains(&(*help).to_owned())) {
        output::say_text(DiskspdOwn::command().render_long_help().to_string().trim_end())?;
        return Ok(if theirs.is_empty() { exit::USAGE } else { exit::MEASURED });
    }
    let paths = PathMap::new(&own.map)?;
    let request =
        diskspd::read(&theirs, this_machine::fresh_seed() as u32, &mut |path| load(path, &paths))?;
    let stderr = Stderr::of(&request.profile);
    let profile = &request.profile;
    if request.profile_only {
        let refusals = tell(&request, &paths, ANY_MACHINE, stderr);
        for refusal in &refusals {
            stderr.warn(&format!("it cannot run here: {refusal}"));
        }
        let indent = 0;
        output::print(described(profile, &theirs, indent).as_bytes())?;
        return Ok(exit::MEASURED);
    }
    let host = this_machine::this_host();
    let mut refusals = tell(&request, &paths, this_machine::machine(&host), stderr);
    if !refusals.is_empty() {
        let first = refusals.remove(0);
        for refusal in refusals.iter().rev() {
            output::note(&format!("also: {refusal}"));
        }
        return Err(first.into());
    }
    run::perform(&request, &described(profile, &theirs, 2), &paths, (&own, stderr), &host)
}

/// A machine with room for everything: a profile may be printed here to run elsewhere.
const ANY_MACHINE: Machine<'_> =
    Machine { memory: Bytes(u64::MAX), fresh_seed: 0, cpus: 0, cpu_places: &[] };

/// The content of stderr. Scripts often have both outputs in one file (`-Rxml > r.xml 2>&1`), so
/// that only warnings go there, unless it is a terminal or -v is given.
#[derive(Clone, Copy, Debug)]
struct Stderr {
    /// Notes, progress and the names of files go there too.
    all: bool,
    /// A warning has to be well-formed XML, because it may stand before the result.
    comments: bool,
}

impl Stderr {
    fn of(profile: &Profile) -> Self {
        let seen = std::io::stderr().is_terminal();
        let comments = !seen && profile.result_format == ResultFormat::Xml;
        Self { all: seen || profile.verbose, comments }
    }

    fn note(self, text: &str) {
        if self.all {
            self.tell(&format!("note: {text}"));
        }
    }

    fn warn(self, text: &str) {
        self.tell(&format!("warning: {text}"));
    }

    fn tell(self, text: &str) {
        let text = printable(text);
        output::note(&match self.comments {
            // Two hyphens end a comment.
            true => format!("<!-- {} -->", text.replace("--", "- -")),
            false => text.into_owned(),
        });
    }
}

/// Reports the differences from DiskSpd, and returns the settings that cannot run here.
fn tell(
    request: &diskspd::Invocation,
    paths: &PathMap,
    machine: Machine<'_>,
    stderr: Stderr,
) -> Vec<Refusal> {
    let judgement = linux::judge(request, paths);
    let mut refusals = judgement.refusals;
    let mut notes = Notes::default();
    request.notes.iter().chain(&judgement.notes).for_each(|Note(note)| notes.add(note));
    for span in &request.profile.time_spans {
        for gap in point::gaps(span, &request.speech, machine, &mut notes) {
            if !refusals.contains(&gap) {
                refusals.push(gap);
            }
        }
    }
    notes.into_vec().iter().for_each(|Note(note)| stderr.note(note));
    refusals
}

/// The beginning of a result, and all of the output of `-Rp`; XML is indented by this many spaces.
fn described(profile: &Profile, theirs: &[String], indent: usize) -> String {
    match profile.result_format {
        ResultFormat::Xml => xml::write::profile(profile, indent),
        ResultFormat::Text => {
            let words: Vec<String> = theirs.iter().map(|word| typed_word(word)).collect();
            text::profile(profile, &format!("fathom diskspd {}", words.join(" ")))
        }
    }
}

/// fathom's own options, which begin with two hyphens and may be anywhere, and DiskSpd's.
fn divide(words: &[OsString]) -> Result<(Vec<OsString>, Vec<String>), Error> {
    let (mut own, mut theirs) = (Vec::from([OsString::from("fathom diskspd")]), Vec::new());
    let command = DiskspdOwn::command();
    let takes_value = |name: &str| {
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        option.is_some_and(|option| option.get_action().takes_values())
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.to_str().ok_or_else(|| {
            Error::option(
                word.to_string_lossy(),
                "it is not Unicode, as what DiskSpd reads and writes is",
                "rename it, or reach it through a link",
            )
        })?;
        match text.strip_prefix("--") {
            None => theirs.push(text.to_owned()),
            Some(name) => {
                own.push(word.clone());
                if takes_value(name) {
                    own.extend(rest.next().cloned());
                }
            }
        }
    }
    Ok((own, theirs))
}

/// The bytes of a profile.
fn load(path: &str, paths: &PathMap) -> Result<Vec<u8>, Refusal> {
    let place = paths.resolve(path)?;
    let most = Bytes(xml::LARGEST as u64);
    Foreign::open(&place, most).and_then(Foreign::read_all).map_err(|why| {
        Refusal::usage(
            format!("-X{path}"),
            format!("{}: {why}", place.display()),
            "name an XML profile that is there, as `fathom diskspd -Rpxml` with options prints one",
        )
    })
}
