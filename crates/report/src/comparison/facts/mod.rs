//! What differs between two results besides their figures: the machine, the targets, the versions,
//! the options. A difference in speed may be due to any of it.
//!
//! Every type of facts is taken apart field by field, so that a new fact does not compile until
//! somebody decides here whether it can explain a difference. A fact that one of the two results
//! does not know is no difference. Facts that differ between any two results are left out: the free
//! space, the extents of a file, the seed.

mod host;
mod identity;
mod options;
mod target;

use std::collections::BTreeSet;

use fathom_core::figures::number;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::{Document, Experiment, Header, HostOfMany, Source};
use crate::figures;
pub(crate) use identity::Identity;

/// How likely it is that a difference of facts is the reason for a difference of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactWeight {
    /// The figures may mean different things: another way of measuring, another kind of target.
    Decisive,
    /// It often changes the figures: kernel, firmware, scheduler, CPU.
    Likely,
    /// It changes the figures of some workloads.
    Possible,
    /// It seldom changes the figures.
    Slight,
}

/// A fact that is different in two results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FactDifference {
    /// What it is, in a few words: "kernel", "scheduler of nvme0n1".
    pub name: String,
    /// Its value in the first result, in words.
    pub before: String,
    /// Its value in the second result, in words.
    pub after: String,
    /// How likely it explains a difference of figures.
    pub weight: FactWeight,
}

/// What differs between two results, the most likely reasons first; of the same weight in the order
/// in which the facts are in the result file. The last one is the time between them.
pub fn differences(before: &Document, after: &Document) -> Vec<FactDifference> {
    let mut found = of_headers(&before.header, &after.header);
    found.text(FactWeight::Likely, "backend", &backends(before), &backends(after));
    found.sorted()
}

/// What differs between two results, as far as their headers tell.
pub fn header_differences(before: &Header, after: &Header) -> Vec<FactDifference> {
    of_headers(before, after).sorted()
}

/// The backends that carried the I/Os; empty if nothing was measured.
fn backends(document: &Document) -> String {
    let names = document.trials.iter().map(|trial| trial.backend.name());
    names.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// The differences as they are found.
#[derive(Default)]
struct Differing {
    found: Vec<OneFact>,
    /// The device, target or host whose facts are compared now; empty if there is only one.
    subject: String,
}

/// A difference of one fact of one subject.
struct OneFact {
    name: &'static str,
    subject: String,
    before: String,
    after: String,
    weight: FactWeight,
}

impl Differing {
    fn add(&mut self, weight: FactWeight, name: &'static str, before: String, after: String) {
        let subject = self.subject.clone();
        self.found.push(OneFact { name, subject, before, after, weight });
    }

    /// A fact that both results know.
    fn value<T: PartialEq>(
        &mut self,
        weight: FactWeight,
        name: &'static str,
        pair: (&T, &T),
        words: impl Fn(&T) -> String,
    ) {
        if pair.0 != pair.1 {
            self.add(weight, name, words(pair.0), words(pair.1));
        }
    }

    /// A fact that is no difference if one of the results does not know it.
    fn known<T: PartialEq>(
        &mut self,
        weight: FactWeight,
        name: &'static str,
        pair: (&Option<T>, &Option<T>),
        words: impl Fn(&T) -> String,
    ) {
        if let (Some(before), Some(after)) = pair {
            self.value(weight, name, (before, after), words);
        }
    }

    /// A fact of which `None` says that there is no such thing.
    fn optional<T: PartialEq>(
        &mut self,
        weight: FactWeight,
        name: &'static str,
        pair: (&Option<T>, &Option<T>),
        words: impl Fn(&T) -> String,
    ) {
        let or_none = |one: &Option<T>| one.as_ref().map_or("none".to_owned(), &words);
        self.value(weight, name, pair, or_none);
    }

    /// A text that is no difference if one of the results does not have it.
    fn text(&mut self, weight: FactWeight, name: &'static str, before: &str, after: &str) {
        if before != after && !before.is_empty() && !after.is_empty() {
            self.add(weight, name, before.to_owned(), after.to_owned());
        }
    }

    /// Texts without a common order; what both lists have is left out.
    fn lists(
        &mut self,
        weight: FactWeight,
        name: &'static str,
        before: &[String],
        after: &[String],
    ) {
        let only = |one: &[String], other: &[String]| {
            let own: Vec<&str> =
                one.iter().filter(|text| !other.contains(text)).map(String::as_str).collect();
            if own.is_empty() { "none of these".to_owned() } else { own.join(", ") }
        };
        let (own, others) = (only(before, after), only(after, before));
        if own != others {
            self.add(weight, name, own, others);
        }
    }

    /// Compares with another name of the subject.
    fn about(&mut self, subject: &str, compare: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.subject, subject.to_owned());
        compare(self);
        self.subject = outer;
    }

    /// In the order for a reader. Subjects with the same difference share a line.
    fn sorted(self) -> Vec<FactDifference> {
        let mut lines: Vec<(OneFact, Vec<String>)> = Vec::new();
        for fact in self.found {
            let same = |line: &&mut (OneFact, Vec<String>)| {
                let one = &line.0;
                (one.name, &one.before, &one.after) == (fact.name, &fact.before, &fact.after)
            };
            match lines.iter_mut().find(same) {
                Some((_, subjects)) if subjects.contains(&fact.subject) => {}
                Some((_, subjects)) => subjects.push(fact.subject),
                None => {
                    let subjects = Vec::from([fact.subject.clone()]);
                    lines.push((fact, subjects));
                }
            }
        }
        // The sort keeps the order of equals.
        lines.sort_by_key(|(fact, _)| fact.weight);
        let line = |(fact, subjects): (OneFact, Vec<String>)| FactDifference {
            name: format!("{}{}", fact.name, of(&subjects)),
            before: fact.before,
            after: fact.after,
            weight: fact.weight,
        };
        lines.into_iter().map(line).collect()
    }
}

/// With more subjects than this, not every one is named.
const SUBJECTS: usize = 3;

/// " of sda, sdb and 22 more"; nothing if there is only one subject of its kind.
fn of(subjects: &[String]) -> String {
    let named: Vec<&str> =
        subjects.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    match named.as_slice() {
        [] => String::new(),
        [one] => format!(" of {one}"),
        many if many.len() <= SUBJECTS => {
            let (last, others) = many.split_last().expect("there are several");
            format!(" of {} and {last}", others.join(", "))
        }
        many => format!(" of {}, {} and {} more", many[0], many[1], many.len() - 2),
    }
}

/// All differences of two headers. Both are taken apart in full.
fn of_headers(before: &Header, after: &Header) -> Differing {
    let Header {
        format: _,
        // Every version is read into the same types.
        format_version: _,
        measurement_version,
        fathom_version,
        command,
        command_line,
        created,
        created_unix_ns,
        // It is a new one in each run, and an option if it was chosen.
        seed: _,
        host,
        hosts,
        imported,
        targets,
        // It follows from the options.
        planned_points: _,
        experiment,
        working_directory: _,
        identities,
    } = before;
    let mut found = Differing::default();
    let versions = (measurement_version, &after.measurement_version);
    found.value(FactWeight::Decisive, "measurement version", versions, u32::to_string);
    let source = |one: &Option<Source>| {
        one.as_ref().map_or("fathom".to_owned(), |source| source.program.clone())
    };
    found.value(FactWeight::Decisive, "measured by", (imported, &after.imported), source);
    let versions = (fathom_version, &after.fathom_version);
    found.value(FactWeight::Possible, "fathom version", versions, String::clone);
    let commands = (command, &after.command);
    found.value(FactWeight::Likely, "command", commands, |one| one.name().to_owned());
    let both = (command_line.as_slice(), after.command_line.as_slice());
    options::compare(&mut found, both.0, both.1);
    if let (Some(one), Some(other)) = (experiment, &after.experiment) {
        of_experiments(&mut found, one, other);
    }
    if let (Some(one), Some(other)) = (host, &after.host) {
        host::compare(&mut found, one, other);
    }
    // Of many hosts, each has its own.
    if hosts.is_empty() || after.hosts.is_empty() {
        let known = target::known(&after.targets, &after.identities);
        target::compare_all(&mut found, &target::known(targets, identities), &known);
    }
    of_many_hosts(&mut found, before, after);
    if created_unix_ns != &after.created_unix_ns {
        let later = later(*created_unix_ns, after.created_unix_ns);
        let moment = format!("{}, {later}", figures::moment(&after.created));
        found.add(FactWeight::Slight, "time", figures::moment(created), moment);
    }
    found
}

fn of_experiments(found: &mut Differing, before: &Experiment, after: &Experiment) {
    // The points themselves are what is matched.
    let Experiment { name, base: _, axes: _, settings } = before;
    found.text(FactWeight::Likely, "experiment", name, &after.name);
    let words = |(name, value): (&String, &String)| format!("{name} {value}");
    let settings: Vec<String> = settings.iter().map(words).collect();
    let others: Vec<String> = after.settings.iter().map(words).collect();
    found.lists(FactWeight::Likely, "settings", &settings, &others);
}

/// Hosts that applied the load together: each with the one of its name, and the others in order.
fn of_many_hosts(found: &mut Differing, before: &Header, after: &Header) {
    let names = |header: &Header| -> Vec<String> {
        match header.hosts.is_empty() {
            true => header.host.iter().map(|host| host.name.clone()).collect(),
            false => header.hosts.iter().map(|one| one.name.clone()).collect(),
        }
    };
    if before.hosts.is_empty() && after.hosts.is_empty() {
        return;
    }
    let (one, other) = (names(before), names(after));
    if one.len() != other.len() {
        let count = |names: &[String]| names.len().to_string();
        found.add(FactWeight::Decisive, "number of hosts", count(&one), count(&other));
    }
    found.lists(FactWeight::Likely, "hosts", &one, &other);
    for (one, other) in paired(&before.hosts, &after.hosts, |one| &one.name) {
        let HostOfMany { name: _, host, targets, identities, result: _ } = one;
        found.about(&one.name, |found| {
            host::compare(found, host, &other.host);
            let known = target::known(&other.targets, &other.identities);
            target::compare_all(found, &target::known(targets, identities), &known);
        });
    }
}

/// Pairs of two lists: those with the same name, then the others in their order.
fn paired<'a, T>(
    before: &'a [T],
    after: &'a [T],
    name: impl Fn(&T) -> &str,
) -> Vec<(&'a T, &'a T)> {
    let of = |list: &'a [T], wanted: &str| list.iter().find(|one| name(one) == wanted);
    let same = before.iter().filter_map(|one| Some((one, of(after, name(one))?)));
    let left = |list: &'a [T], others: &'a [T]| -> Vec<&'a T> {
        list.iter().filter(|one| of(others, name(one)).is_none()).collect()
    };
    same.chain(left(before, after).into_iter().zip(left(after, before))).collect()
}

/// How much later the second moment is: "3.0 h later".
fn later(before_ns: u64, after_ns: u64) -> String {
    const HOUR: f64 = 3600e9;
    let apart = before_ns.abs_diff(after_ns) as f64;
    let amount = match apart {
        ns if ns < 2.0 * HOUR => figures::time(ns),
        ns if ns < 48.0 * HOUR => format!("{} hours", number(ns / HOUR)),
        ns => format!("{} days", number(ns / HOUR / 24.0)),
    };
    let way = if before_ns <= after_ns { "later" } else { "earlier" };
    format!("{amount} {way}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Layer, read};
    use fathom_core::Bytes;

    fn stored(name: &str) -> Document {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
        read(&std::fs::read(format!("{folder}/{name}.jsonl")).unwrap()).unwrap()
    }

    /// Each difference as "name: before -> after".
    fn words(before: &Document, after: &Document) -> Vec<String> {
        let line = |one: FactDifference| format!("{}: {} -> {}", one.name, one.before, one.after);
        differences(before, after).into_iter().map(line).collect()
    }

    /// What differs if the stored document of `quick` is changed in this way.
    fn changed(change: impl FnOnce(&mut Header)) -> Vec<String> {
        let before = stored("quick");
        let mut after = before.clone();
        change(&mut after.header);
        words(&before, &after)
    }

    #[test]
    fn a_result_does_not_differ_from_itself() {
        for name in ["quick", "open", "map", "peak", "void", "restless", "version-1/interrupted"] {
            let one = stored(name);
            assert!(differences(&one, &one).is_empty(), "{name}");
        }
    }

    #[test]
    fn what_explains_most_comes_first_and_the_time_last() {
        let found = changed(|header| {
            header.created_unix_ns += 3 * 3600 * 1_000_000_000;
            header.created = "2026-11-21T12:30:00.000Z".to_owned();
            header.fathom_version = "0.2.0".to_owned();
            header.measurement_version += 1;
            header.seed = Some(7);
            let host = header.host.as_mut().unwrap();
            host.kernel = "6.19.1".to_owned();
            host.memory = Bytes(host.memory.0 + (64 << 20));
            host.memory_limit = Some(Bytes(1 << 30));
            host.clock.cost_ns *= 1.3;
            let target = &mut header.targets[0];
            let file_system = target.file_system.as_mut().unwrap();
            file_system.available = Bytes(1);
            file_system.options = "rw,noatime,discard".to_owned();
            let disk = target.layers.last_mut().unwrap();
            disk.device = Some((259, 7));
            disk.queue.as_mut().unwrap().scheduler = Some("mq-deadline".to_owned());
            disk.queue.as_mut().unwrap().fua = Some(true);
        });
        assert_eq!(
            found,
            [
                "measurement version: 1 -> 2",
                "kernel: 6.18.44 -> 6.19.1",
                "mount options: relatime -> noatime, discard",
                "scheduler of nvme0n1: none -> mq-deadline",
                "fathom version: 0.1.0 -> 0.2.0",
                "memory limit: none -> 1 GiB",
                "time: 2026-11-21 09:30:00 UTC -> 2026-11-21 12:30:00 UTC, 3 hours later",
            ]
        );
    }

    #[test]
    fn disks_with_the_same_difference_share_a_line() {
        let array = |firmware: &str| {
            let mut document = stored("quick");
            let layers = &mut document.header.targets[0].layers;
            let disk = layers.pop().unwrap();
            let disks = (0..24).map(|nth| {
                let mut hardware = disk.disk.clone().unwrap();
                hardware.firmware = Some(if nth == 7 { "X" } else { firmware }.to_owned());
                Layer { name: format!("nvme{nth}n1"), disk: Some(hardware), ..disk.clone() }
            });
            layers.extend(disks);
            document
        };
        let found = words(&array("A"), &array("B"));
        assert_eq!(found, ["firmware of nvme0n1, nvme1n1 and 21 more: A -> B"]);
    }

    #[test]
    fn another_disk_and_another_stack_are_told() {
        let found = changed(|header| {
            header.targets[0].layers.remove(0);
        });
        let layers = "layers: partition nvme0n1p2, disk nvme0n1 -> disk nvme0n1";
        assert_eq!(found, [layers]);
        let found = changed(|header| {
            let disk = header.targets[0].layers.last_mut().unwrap();
            disk.name = "nvme1n1".to_owned();
            disk.size = Bytes(disk.size.0 + 4096);
            disk.disk.as_mut().unwrap().model = Some("Other".to_owned());
        });
        assert_eq!(
            found,
            [
                "model of nvme0n1 and nvme1n1: SAMSUNG MZQL2960HCJR-00A07 -> Other",
                "size of nvme0n1 and nvme1n1: 894.25 GiB (960,197,124,096 bytes) -> 894.25 GiB \
                 (960,197,128,192 bytes)",
                "names of the devices: partition nvme0n1p2, disk nvme0n1 -> partition nvme0n1p2, \
                 disk nvme1n1",
            ]
        );
    }

    #[test]
    fn different_results_differ_in_command_targets_and_options() {
        let found = words(&stored("quick"), &stored("open"));
        for expected in [
            "number of targets: 1 -> 2",
            "command: quick -> run",
            "options: none of these -> --rate 5k, --mix 70",
        ] {
            assert!(found.iter().any(|line| line == expected), "{expected}: {found:#?}");
        }
        // Every fact has one line.
        let names: BTreeSet<&str> =
            found.iter().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(names.len(), found.len(), "{found:#?}");
    }

    #[test]
    fn hosts_of_many_are_compared_by_their_names() {
        let many = |kernels: &[(&str, &str)]| {
            let mut document = stored("quick");
            let header = &mut document.header;
            let host = header.host.take().unwrap();
            let one = |&(name, kernel): &(&str, &str)| HostOfMany {
                name: name.to_owned(),
                host: crate::document::Host {
                    name: name.to_owned(),
                    kernel: kernel.to_owned(),
                    ..host.clone()
                },
                targets: header.targets.clone(),
                identities: Vec::new(),
                result: String::new(),
            };
            header.hosts = kernels.iter().map(one).collect();
            document
        };
        let before = many(&[("a", "6.1"), ("b", "6.1"), ("c", "6.1")]);
        let after = many(&[("c", "6.6"), ("b", "6.1"), ("a", "6.6")]);
        assert_eq!(words(&before, &after), ["kernel of a and c: 6.1 -> 6.6"]);
        let fewer = many(&[("a", "6.1"), ("b", "6.1")]);
        assert_eq!(
            words(&before, &fewer),
            ["number of hosts: 3 -> 2", "hosts: c -> none of these"]
        );
    }

    #[test]
    fn a_time_between_two_results_is_told_in_its_unit() {
        const HOUR: u64 = 3_600_000_000_000;
        for (before, after, text) in [
            (0, HOUR / 60, "60.0 s later"),
            (HOUR, 0, "60.0 min earlier"),
            (0, 3 * HOUR, "3 hours later"),
            (0, 60 * HOUR, "2.5 days later"),
        ] {
            assert_eq!(later(before, after), text);
        }
    }
}
