//! A load of many hosts: what each of them did, and what differs between them.

use std::collections::BTreeMap;

use fathom_core::figures::number;
use fathom_core::hosts::{apart, bytes_in_words};
use fathom_core::spec::Region;
use fathom_core::stats::Estimate;

use super::{Block, Entry, Fact, Head, Level, Table, Tone};
use crate::document::{Document, Host, HostOfMany, HostTrial, Target, Trial, Verdict};
use crate::figures::{self, TrialPart, or_unknown, plus_minus};

/// Of more hosts than this a page that is short names only those with the fewest IOPS.
const SHOWN: usize = 16;

/// More names than this are counted.
const NAMED: usize = 12;

/// The hosts, and what differs between them; empty if one machine applied the load.
pub fn facts(document: &Document, level: Level) -> Vec<Fact> {
    let hosts = &document.header.hosts;
    if hosts.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = hosts.iter().map(|host| &*host.name).collect();
    let named = match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    };
    let mut facts = vec![Fact::new("hosts", format!("{}: {named}", names.len()))];
    facts.extend(differences(hosts).into_iter().map(|text| Fact::new("differ", text)));
    if Level::Full <= level {
        facts.extend(hosts.iter().map(|host| {
            let targets =
                host.targets.iter().map(|one| format!("{}: {}", one.path, figures::stack(one)));
            let targets: Vec<String> = targets.collect();
            let text = format!("{}; its own result is {}", targets.join("; "), host.result);
            Fact::new(format!("on {}", host.name), text)
        }));
    }
    facts
}

/// "kernel: 6.1.0 on c, 6.18.3 on 3 others": the facts that are not the same on all hosts.
fn differences(hosts: &[HostOfMany]) -> Vec<String> {
    let of_host = |name: &'static str, of: fn(&Host) -> String| {
        difference(name, hosts.iter().map(|host| (&*host.name, of(&host.host))))
    };
    let of_targets = |name: &'static str, of: &dyn Fn(&HostOfMany) -> Vec<String>| {
        difference(name, hosts.iter().map(|host| (&*host.name, of(host).join("; "))))
    };
    let unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let devices = |host: &HostOfMany| host.targets.iter().map(device).collect();
    [
        of_host("kernel", |host| host.kernel.clone()),
        of_host("system", |host| host.os.clone().unwrap_or_default()),
        of_host("CPUs", |host| host.cpus.to_string()),
        difference("CPU", hosts.iter().map(|host| (&*host.name, unknown(&host.host.cpu_model)))),
        of_host("memory", |host| host.memory.to_string()),
        of_targets("target", &devices),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a target is, without what is of one host alone.
fn device(target: &Target) -> String {
    let disks = target.layers.iter().filter_map(|layer| layer.disk.as_ref());
    let models: Vec<String> = disks.filter_map(|disk| disk.model.clone()).collect();
    let file_system =
        target.file_system.as_ref().map_or(String::new(), |fs| format!(" on {}", fs.kind));
    let models = if models.is_empty() { String::new() } else { format!(", {}", models.join(", ")) };
    format!("{} of {}{file_system}{models}", target.kind.name(), target.size)
}

fn difference<'h>(what: &str, values: impl Iterator<Item = (&'h str, String)>) -> Option<String> {
    let mut kinds: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (host, value) in values {
        kinds.entry(value).or_default().push(host);
    }
    if kinds.len() < 2 {
        return None;
    }
    let mut kinds: Vec<(String, Vec<&str>)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, hosts)| hosts.len());
    let on = |(value, hosts): &(String, Vec<&str>)| match hosts.as_slice() {
        few if few.len() <= 3 => format!("{value} on {}", few.join(", ")),
        many => format!("{value} on {} hosts", many.len()),
    };
    Some(format!("{what}: {}", kinds.iter().map(on).collect::<Vec<_>>().join("; ")))
}

/// The figures of each host in a trial; empty if one machine applied the load.
pub fn of_trial(trial: &Trial, level: Level) -> Vec<Block> {
    if trial.hosts.is_empty() {
        return Vec::new();
    }
    let heads = ["IOPS", "MiB/s", "mean", "p50", "p99", "began", "verdict"];
    let heads = [Head::words("host")].into_iter().chain(heads.map(Head::figures));
    let times = figures::time_name(TrialPart::whole(trial));
    let mut table = Table::new(format!("each host (times are {times}s)"), heads);
    let mut hosts: Vec<&HostTrial> = trial.hosts.iter().collect();
    let hidden = match level {
        Level::Complete => 0,
        _ => hosts.len().saturating_sub(SHOWN),
    };
    if 0 < hidden {
        let rate = |host: &HostTrial| host.iops.map_or(0.0, |iops| iops.value);
        hosts.sort_by(|one, other| rate(one).total_cmp(&rate(other)));
    }
    for host in &hosts[..hosts.len() - hidden] {
        table.toned(tone(host), cells(host));
    }
    let mut blocks = vec![Block::Table(table)];
    if 0 < hidden {
        blocks.push(Block::quiet(format!("{hidden} more hosts, with more IOPS than these")));
    }
    if let Some((between, bound)) = apart(&trial.hosts) {
        blocks.push(Block::quiet(format!(
            "The first and the last host began {} apart; their clocks are known to within {}.",
            figures::time(between.0 as f64),
            figures::time(bound.0 as f64)
        )));
    }
    if Level::Full <= level {
        blocks.extend(divided(&trial.hosts));
    }
    blocks
}

/// Which bytes each host had, where they divided the regions.
fn divided(hosts: &[HostTrial]) -> Option<Block> {
    let regions: Vec<&[Region]> = hosts.iter().map(|host| host.regions.as_slice()).collect();
    if regions.iter().any(|own| own.is_empty()) {
        return None;
    }
    let in_words = |own: &[String]| match own {
        [only] => only.clone(),
        several => {
            let numbered = (1..).zip(several).filter(|(_, bytes)| !bytes.is_empty());
            let each = numbered.map(|(number, bytes)| format!("target {number}: {bytes}"));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    let bytes = bytes_in_words(&regions);
    let facts =
        hosts.iter().zip(bytes).map(|(host, own)| Fact::new(host.host.clone(), in_words(&own)));
    Some(Block::folded("The bytes of each host", Vec::from([Block::Facts(facts.collect())])))
}

fn tone(host: &HostTrial) -> Tone {
    match host.verdict {
        Some(Verdict::Sound) => Tone::Plain,
        Some(Verdict::Suspect) => Tone::Doubtful,
        Some(Verdict::Void) | None => Tone::Bad,
    }
}

fn cells(host: &HostTrial) -> Vec<Entry> {
    let entry = |estimate: Option<Estimate>, write: &dyn Fn(f64) -> String| Entry::Figure {
        text: or_unknown(estimate.map(|one| write(one.value))),
        half: plus_minus(estimate.as_ref()),
    };
    let began = host.began.map(|began| {
        let sign = if began.after_ns < 0 { "-" } else { "+" };
        format!("{sign}{}", figures::time(began.after_ns.unsigned_abs() as f64))
    });
    let verdict = match (&host.lost, host.verdict) {
        (Some(_), _) => "lost",
        (None, verdict) => verdict.map_or("unknown", Verdict::name),
    };
    Vec::from([
        Entry::words(&*host.host),
        entry(host.iops, &figures::significant),
        entry(host.bandwidth, &|bytes| figures::significant(figures::mib(bytes))),
        Entry::figure(or_unknown(host.mean.map(figures::time))),
        entry(host.p50, &figures::time),
        entry(host.p99, &figures::time),
        Entry::figure(or_unknown(began)),
        Entry::figure(verdict),
    ])
}

/// ", on each of 5 hosts"; empty if one machine applied the load.
pub fn on_each(trial: &Trial) -> String {
    match trial.hosts.len() {
        0 => String::new(),
        1 => format!(", on {}", trial.hosts[0].host),
        many if trial.machines() < many => format!(", on {} of {many} hosts", trial.machines()),
        many if trial.hosts.iter().all(|host| !host.regions.is_empty()) => {
            format!(", divided among {} hosts", number(many as f64))
        }
        many => format!(", on each of {} hosts", number(many as f64)),
    }
}

/// The hosts that are unlike the others, as they are found; none if there is none.
pub fn unlike(trial: &Trial) -> Option<String> {
    let found = trial.findings.iter().find(|finding| finding.code == "host-differs")?;
    let first = found.evidence.split(';').next().unwrap_or_default();
    Some(first.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_with_its_hosts_the_rarest_first() {
        let values = [("a", "6.18"), ("b", "6.18"), ("c", "6.1"), ("d", "6.18"), ("e", "6.18")];
        let values = || values.iter().map(|(host, value)| (*host, (*value).to_owned()));
        let text = difference("kernel", values()).unwrap();
        assert_eq!(text, "kernel: 6.1 on c; 6.18 on 4 hosts");
        assert_eq!(difference("kernel", values().take(2)), None);
    }
}
