//! The judgment of a trial of several hosts: what each of them found about its own part, and what only
//! their comparison shows.

use super::{Finding, Judgement, Severity, Unchecked};
use crate::differences::ends_of_times;
use crate::figures::{number, ratio, time};
use crate::hosts::{HostTrial, LostHost, Outlier, apart, outliers};
use crate::stats::{Estimate, Ratio};
use crate::units::Span;

/// Hosts that begin further apart than this share of the window did not measure the same time.
const APART_MAX: f64 = 0.01;

/// More outliers than this are counted, not named.
const NAMED: usize = 5;

/// Judges a trial of several hosts with this window.
pub(super) fn judge(hosts: &[HostTrial], window: Span) -> Judgement {
    let mut judgement = Judgement::default();
    lost(hosts, &mut judgement);
    not_together(hosts, window, &mut judgement);
    differing(hosts, &mut judgement);
    gathered(hosts, &mut judgement);
    judgement.rank();
    judgement
}

fn lost(hosts: &[HostTrial], judgement: &mut Judgement) {
    let lost: Vec<(&str, &LostHost)> =
        hosts.iter().filter_map(|one| Some((&*one.host, one.lost.as_ref()?))).collect();
    let Some((first, why)) = lost.first() else { return };
    let when = why.after.map_or(String::new(), |after| format!(" {after} after the start"));
    let names: Vec<&str> = lost.iter().map(|(host, _)| *host).collect();
    let which = match names.as_slice() {
        [one] => format!("{one} was lost{when}: {}.", why.why),
        all => format!("{} were lost; {first}{when}: {}.", listed(all), why.why),
    };
    let share = lost.len() as f64 / hosts.len() as f64 * 100.0;
    let measured = hosts.len() - lost.len();
    judgement.find(
        "host-lost",
        Severity::Suspect,
        format!(
            "{which} The figures are those of the other {measured}; {} % of the load is missing.",
            number(share)
        ),
        "Look at that host: what it measured is in its own result file, which the report names. Then \
         measure again.",
    );
}

fn not_together(hosts: &[HostTrial], window: Span, judgement: &mut Judgement) {
    let Some((between, bound)) = apart(hosts) else { return };
    // Only what the clocks are sure of.
    if ((between - bound).0 as f64) <= APART_MAX * window.0 as f64 {
        return;
    }
    let last = hosts.iter().filter(|one| one.began.is_some());
    let last = last.max_by_key(|one| one.began.map(|began| began.after_ns));
    judgement.find(
        "hosts-apart",
        Severity::Suspect,
        format!(
            "The hosts began {between} apart (known to within {bound}), {} last: their windows are \
             not the same time.",
            last.map_or("", |one| one.host.as_str())
        ),
        "Look at what kept that host, or make the window longer.",
    );
}

fn differing(hosts: &[HostTrial], judgement: &mut Judgement) {
    let present: Vec<&HostTrial> = hosts.iter().filter(|one| one.lost.is_none()).collect();
    let all = |of: &dyn Fn(&HostTrial) -> Option<Estimate>| {
        present.iter().map(|one| of(one)).collect::<Option<Vec<Estimate>>>().unwrap_or_default()
    };
    let (rates, tails) = (all(&|one| one.iops), all(&|one| one.p99));
    let rate = |one: &Outlier| format!("{} IOPS", number(rates[one.place].value));
    let tail = |one: &Outlier| format!("p99 {}", time(tails[one.place].value));
    let named = outliers(&tails).into_iter().map(|one| (one, tail(&one)));
    let named = named.chain(outliers(&rates).into_iter().map(|one| (one, rate(&one))));
    let all: Vec<String> = named
        .map(|(one, figure)| {
            let Outlier { place, ratio: value, interval: (low, high) } = one;
            let host = &present[place].host;
            let ends = ends_of_times(Ratio { value, low, high });
            format!("{host} ({figure}) {} times the others{ends}", ratio(value))
        })
        .collect();
    if all.is_empty() {
        return;
    }
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    judgement.find(
        "host-differs",
        Severity::Note,
        format!("{}{more}.", all[..all.len().min(NAMED)].join("; ")),
        "Compare that host with the others: its device, its network, other programs.",
    );
}

/// The findings of all hosts, each kind once with the gravest of them.
fn gathered(own: &[HostTrial], judgement: &mut Judgement) {
    let judged = own.iter().filter(|one| one.lost.is_none()).count();
    let all = own.iter().flat_map(|one| one.findings.iter().map(move |found| (&*one.host, found)));
    // A rating is that of all targets together.
    let all = all
        .filter(|(_, found)| !found.code.ends_with("-than-rated") && found.code != "below-rated");
    let mut kinds: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for (host, finding) in all {
        match kinds.iter_mut().find(|(known, _)| known.code == finding.code) {
            Some((gravest, hosts)) => {
                // Its example comes first.
                let place = if gravest.severity < finding.severity { 0 } else { hosts.len() };
                if place == 0 {
                    *gravest = finding;
                }
                if !hosts.contains(&host) {
                    hosts.insert(place, host);
                }
            }
            None => kinds.push((finding, vec![host])),
        }
    }
    for (finding, hosts) in kinds {
        let evidence = format!("{}: {}", on(&hosts, judged), finding.evidence);
        let mut found = Finding { evidence, ..finding.clone() };
        if found.code == "concurrent-fathom" && 1 < hosts.len() {
            found.severity = Severity::Note;
            "The hosts of this load use the same target, as was asked for."
                .clone_into(&mut found.advice);
        }
        judgement.findings.push(found);
    }
    let all = own.iter().flat_map(|one| one.unchecked.iter().map(move |left| (&*one.host, left)));
    let mut kinds: Vec<(&Unchecked, Vec<&str>)> = Vec::new();
    for (host, left) in all {
        match kinds.iter_mut().find(|(known, _)| known.code == left.code && known.why == left.why) {
            Some((_, hosts)) => hosts.push(host),
            None => kinds.push((left, vec![host])),
        }
    }
    for (left, hosts) in kinds {
        let why = match hosts.len() == judged {
            true => left.why.clone(),
            false => format!("{} ({})", left.why, on(&hosts, judged)),
        };
        judgement.unchecked.push(Unchecked { why, ..left.clone() });
    }
}

/// "On b", "On a and c", "On a and 4 others", "On all 5 hosts, first of them a".
fn on(hosts: &[&str], of: usize) -> String {
    match hosts {
        [one] => format!("On {one}"),
        [one, ..] if hosts.len() == of => format!("On all {of} hosts; on {one}"),
        [one, other] => format!("On {one} and {other}; on {one}"),
        [one, ..] => format!("On {one} and {} others; on {one}", hosts.len() - 1),
        [] => String::new(),
    }
}

fn listed(names: &[&str]) -> String {
    match names {
        [all @ .., last] if names.len() <= NAMED => format!("{} and {last}", all.join(", ")),
        _ => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::HostStart;
    use crate::verdict::Verdict;

    fn host(name: &str, iops: f64, after_ns: i64) -> HostTrial {
        let estimate = |value: f64| Some(Estimate { value, half_width: Some(value * 0.01) });
        let lost = LostHost { why: String::new(), after: None };
        HostTrial {
            workers: 1,
            began: Some(HostStart { after_ns, bound: Span(20_000) }),
            iops: estimate(iops),
            p99: estimate(1e9 / iops),
            verdict: Some(Verdict::Sound),
            lost: None,
            ..HostTrial::lost(name, lost)
        }
    }

    fn finding(code: &'static str, severity: Severity, evidence: &str) -> Finding {
        Finding { code, severity, evidence: evidence.to_owned(), advice: "Do it.".to_owned() }
    }

    fn evidence(judgement: &Judgement, code: &str) -> String {
        let found = judgement.findings.iter().find(|one| one.code == code);
        found.map_or(String::new(), |one| one.evidence.clone())
    }

    const WINDOW: Span = Span::from_secs(10);

    #[test]
    fn hosts_that_are_alike_and_begin_together_raise_no_doubt() {
        let hosts = ["a", "b", "c", "d"].map(|name| host(name, 1000.0, 5_000));
        assert_eq!(judge(&hosts, WINDOW).verdict(), Verdict::Sound);
        assert!(judge(&hosts, WINDOW).findings.is_empty());
    }

    #[test]
    fn a_lost_host_a_late_one_and_a_slow_one_are_named() {
        let mut hosts =
            ["a", "b", "c", "d", "e", "f"].map(|name| host(name, 1000.0, 5_000)).to_vec();
        hosts[2] = host("c", 240.0, 5_000);
        hosts[3] = host("d", 1000.0, 300_000_000);
        let after = Some(Span::from_secs(4));
        hosts[5] =
            HostTrial::lost("f", LostHost { why: "it was silent for 5 s".to_owned(), after });
        let judgement = judge(&hosts, WINDOW);
        assert_eq!(
            evidence(&judgement, "host-lost"),
            "f was lost 4 s after the start: it was silent for 5 s. The figures are those of the other \
             5; 16.7 % of the load is missing."
        );
        let apart = evidence(&judgement, "hosts-apart");
        assert!(apart.contains("300 ms apart (known to within 40 us), d last"), "{apart}");
        let differs = evidence(&judgement, "host-differs");
        assert!(differs.starts_with("c (p99 4.17 ms) 4.17 times the others"), "{differs}");
        assert!(differs.contains("c (240 IOPS) 0.24 times the others"), "{differs}");
    }

    #[test]
    fn the_same_finding_of_several_hosts_is_told_once_with_the_gravest_example() {
        let own =
            |name: &str, findings: Vec<Finding>| HostTrial { findings, ..host(name, 1000.0, 0) };
        let told = [
            own("a", vec![finding("stall", Severity::Note, "short")]),
            own(
                "b",
                vec![
                    finding("stall", Severity::Suspect, "long"),
                    finding("trend", Severity::Note, "up"),
                ],
            ),
            own("c", vec![finding("stall", Severity::Note, "short")]),
        ];
        let judgement = judge(&told, WINDOW);
        assert_eq!(judgement.verdict(), Verdict::Suspect);
        assert_eq!(evidence(&judgement, "stall"), "On all 3 hosts; on b: long");
        assert_eq!(evidence(&judgement, "trend"), "On b: up");
    }

    #[test]
    fn hosts_that_see_each_other_at_their_target_raise_no_doubt() {
        let seen = || finding("concurrent-fathom", Severity::Suspect, "it was there");
        let with = |name, findings| HostTrial { findings, ..host(name, 1000.0, 0) };
        let all = [with("a", vec![seen()]), with("b", vec![seen()])];
        assert_eq!(judge(&all, WINDOW).verdict(), Verdict::Sound);
        // One alone sees somebody else.
        let one = [with("a", vec![seen()]), with("b", Vec::new())];
        assert_eq!(judge(&one, WINDOW).verdict(), Verdict::Suspect);
    }
}
