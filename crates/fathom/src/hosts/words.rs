//! The load of each host, in words: the same one everywhere, but for what stands for the host.

use std::path::Path;

use fathom_core::spec::Point;
use fathom_core::trial::Coordinate;

use crate::agent::message::{Allowed, LoadInWords, WorkloadText};
use crate::cli::axes::HOSTS;
use crate::cli::described::HostPlace;
use crate::cli::options::{Consent, Request, Typed};
use crate::error::Error;
use crate::shipped;
use crate::workload::load;

/// In a target's name, this is the host's name.
const HOST: &str = "{host}";
/// And this is its number, from 0.
const NUMBER: &str = "{n}";

/// The distance of the seeds of neighboring hosts: those of an experiment's trials are neighbors.
const SEEDS_APART: u64 = 1_000_000;

/// Which load of a request is meant.
#[derive(Clone, Copy, Debug)]
pub enum Variant<'a> {
    /// The one of its words, with these settings in the place of options of these names.
    Words(&'a [Coordinate]),
    /// One that an experiment made of the one of its words.
    Made(&'a Point),
}

/// A load for many hosts.
#[derive(Clone, Debug)]
pub struct HostLoad {
    /// The targets, with what stands for the host.
    targets: Vec<String>,
    /// Every other word, but for the seed.
    typed: Vec<Typed>,
    others: Vec<String>,
    workload: Option<WorkloadText>,
    consent: Consent,
    /// Whether an experiment has several such loads.
    experiment: bool,
    /// The first host's; each other one has another, or all of them would do the same I/Os.
    seed: u64,
}

impl HostLoad {
    /// The load of a request.
    ///
    /// # Errors
    ///
    /// When its workload cannot be read, or a consent names no host.
    pub fn new(
        request: &Request,
        described_seed: Option<u64>,
        fresh_seed: u64,
    ) -> Result<Self, Error> {
        let mut targets: Vec<String> =
            request.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let mut others: Vec<String> =
            request.set.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]).collect();
        others.extend(request.across_mounts.then(|| "--across-mounts".to_owned()));
        let is_file = |name: &String| name.ends_with(".toml") && shipped::text(name).is_none();
        let workload = match &request.workload {
            Some(name) if shipped::text(name).is_none() => Some(text_of(name)?),
            Some(name) => {
                others.extend(["--workload".to_owned(), name.clone()]);
                None
            }
            None => match targets.first().filter(|first| is_file(first)).cloned() {
                Some(name) => {
                    targets.remove(0);
                    Some(text_of(&name)?)
                }
                None => None,
            },
        };
        let (seeds, typed): (Vec<Typed>, Vec<Typed>) =
            request.load_in_words().partition(|one| one.name == "seed");
        let seed = seeds.iter().filter_map(|one| one.value.as_deref()?.parse().ok()).next_back();
        let seed = seed.or(described_seed).unwrap_or(fresh_seed);
        for (option, name) in request.consent.named() {
            if !name.contains(':') || name.starts_with('/') {
                return Err(Error::option(
                    format!("{option} {name}"),
                    "it names no host, and a consent is for one host",
                    format!("type {option} HOST:{name} for each host"),
                ));
            }
        }
        let consent = request.consent.clone();
        Ok(Self { targets, typed, others, workload, consent, experiment: false, seed })
    }

    /// The same with these options, and as one of several loads of an experiment.
    #[must_use]
    pub fn of_experiment(mut self, options: &[(&str, &str)]) -> Self {
        self.others.extend(options.iter().map(|(name, value)| format!("--{name}={value}")));
        Self { experiment: true, ..self }
    }

    /// The name of a target on the host with this name and number.
    pub fn here(text: &str, name: &str, number: usize) -> String {
        text.replace(HOST, name).replace(NUMBER, &number.to_string())
    }

    /// The seed of the first host.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hosts that a consent names, with the option that does.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.consent.named().filter_map(|(option, name)| Some((option, name.split_once(':')?.0)))
    }

    /// The words for the host with this name and number, where this many hosts apply the load and
    /// the first one has this seed. If fewer apply it, the host has the place of one of them: what
    /// it would do is looked at, and does not begin.
    pub fn for_host(
        &self,
        (name, number): (&str, usize),
        hosts: usize,
        variant: Variant<'_>,
        seed: u64,
    ) -> LoadInWords {
        let here = |text: &String| Self::here(text, name, number);
        let seed = seed.wrapping_add(SEEDS_APART * number as u64);
        let (at, point) = match variant {
            Variant::Words(at) => (at, None),
            Variant::Made(point) => (&[][..], Some(Box::new(Point { seed, ..point.clone() }))),
        };
        let mut words: Vec<String> = self.others.clone();
        let replaced = |typed: &&Typed| at.iter().any(|one| one.axis == typed.name);
        words.extend(self.typed.iter().filter(|typed| !replaced(typed)).map(Typed::word));
        let options = at.iter().filter(|one| one.axis != HOSTS);
        words.extend(options.map(|one| format!("--{}={}", one.axis, one.label)));
        words.push(format!("--seed={seed}"));
        // A target may begin with a hyphen.
        words.push("--".to_owned());
        words.extend(self.targets.iter().map(here));
        let own = |names: &[String]| -> Vec<String> {
            let of = |typed: &String| {
                let (host, target) = typed.split_once(':')?;
                (host == name).then(|| target.to_owned())
            };
            names.iter().filter_map(of).collect()
        };
        LoadInWords {
            words,
            point,
            experiment: self.experiment,
            workload: self.workload.as_ref().map(|workload| WorkloadText {
                name: workload.name.clone(),
                text: here(&workload.text),
            }),
            consent: Allowed {
                overwrite: self.consent.overwrite,
                destroy: own(&self.consent.destroy),
                destroy_in_use: own(&self.consent.destroy_in_use),
            },
            host: Some(HostPlace { number: (number % hosts) as u32, hosts: hosts as u32 }),
        }
    }
}

fn text_of(name: &str) -> Result<WorkloadText, Error> {
    let path = Path::new(name);
    let text = load::text_of(path).map_err(|problem| {
        Error::file(path, problem, "name a workload file, or one that `fathom workloads` lists")
    })?;
    Ok(WorkloadText { name: name.to_owned(), text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Args, Command};

    fn load(words: &[&str]) -> Result<HostLoad, Error> {
        let line: Vec<String> =
            ["fathom", "run"].iter().chain(words).map(|w| (*w).to_owned()).collect();
        let Command::Run(run) = Args::reread(&line).unwrap().command else { panic!("a run") };
        HostLoad::new(&run.request, None, 100)
    }

    #[test]
    fn each_host_has_its_own_target_seed_and_consent() {
        let load = load(&[
            "/data/{host}-{n}",
            "-q",
            "4",
            "-b",
            "8k",
            "--destroy",
            "b:/dev/x",
            "--overwrite",
        ])
        .unwrap();
        let words = load.for_host(("b", 1), 2, Variant::Words(&[]), 100);
        assert_eq!(words.words[words.words.len() - 2..], ["--", "/data/b-1"]);
        assert!(words.words.contains(&"--queue-depth=4".to_owned()), "{words:?}");
        assert!(words.words.contains(&"--seed=1000100".to_owned()), "{words:?}");
        assert_eq!(
            (words.consent.overwrite, words.consent.destroy),
            (true, vec!["/dev/x".to_owned()])
        );
        assert!(load.for_host(("a", 0), 2, Variant::Words(&[]), 100).consent.destroy.is_empty());
    }

    #[test]
    fn a_coordinate_takes_the_place_of_an_option_and_a_seed_is_kept() {
        let load = load(&["sim:ssd", "-q", "4", "--seed", "7"]).unwrap();
        let at =
            [Coordinate { axis: "queue-depth".to_owned(), label: "16".to_owned(), value: None }];
        let words = load.for_host(("a", 0), 1, Variant::Words(&at), load.seed()).words;
        assert_eq!(words, ["--queue-depth=16", "--seed=7", "--", "sim:ssd"]);
    }

    #[test]
    fn a_consent_without_a_host_is_refused() {
        let why = load(&["/dev/x", "--destroy", "/dev/x"]).unwrap_err().to_string();
        assert!(why.contains("--destroy HOST:/dev/x"), "{why}");
    }
}
