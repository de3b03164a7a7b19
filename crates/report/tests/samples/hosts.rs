//! Invented loads on many hosts: one of them slow, one lost, each with its part of the region; and a
//! sweep over their number.

use fathom_core::hosts::{HostStart, HostTrial, LostHost};
use fathom_core::plan::zone;
use fathom_core::trial::{Coordinate, Role};
use fathom_core::{Quantile, stats};
use fathom_report::document::{Axis, Experiment, Found, HostOfMany, Scale, SweepFound};

use super::*;

/// A host's part of a trial, and what it is told by.
fn part(name: &str, trial: &Trial, nth: usize) -> HostTrial {
    let record = &trial.record;
    let quantile = |quantile: f64| stats::response_time(record, None, None, Quantile(quantile));
    HostTrial {
        workers: record.workers.len() as u32,
        began: Some(HostStart { after_ns: 900 * nth as i64 - 1200, bound: Span::from_us(40) }),
        iops: stats::iops(record, None, None),
        bandwidth: stats::bandwidth(record, None, None),
        mean: record.total(None).response_time().mean(),
        p50: quantile(0.5),
        p99: quantile(0.99),
        verdict: Some(document::Verdict::Sound),
        lost: None,
        ..HostTrial::lost(name, LostHost { why: String::new(), after: None })
    }
}

/// One trial of these hosts, each with its pace.
fn together(base: &Trial, paces: &[(&str, f64)], iops: f64) -> Trial {
    let depth = f64::from(base.point.streams[0].pacing.queue_depth());
    let (mut hosts, mut records) = (Vec::new(), Vec::new());
    for (nth, (name, pace)) in paces.iter().enumerate() {
        let own = Point { seed: base.point.seed + nth as u64, ..base.point.clone() };
        let service_ns = depth / (iops * pace) * 1e9;
        let speed = Speed { iops: iops * pace, service_ns, unrest: 0.06 };
        let one = trial(own, speed, 0);
        hosts.push(part(name, &one, nth));
        records.push(one.record);
    }
    Trial { record: Record::together(records), counters: None, hosts, ..base.clone() }
}

fn described(names: &[&str]) -> Vec<HostOfMany> {
    let described = |name: &&str| HostOfMany {
        name: (*name).to_owned(),
        host: host(),
        targets: Vec::from([file(&format!("/shared/{name}"))]),
        identities: Vec::from([String::new()]),
        result: format!("/var/tmp/{name}.jsonl"),
    };
    names.iter().map(described).collect()
}

fn header_of(command: Command, line: &[&str], names: &[&str], planned_points: u32) -> Header {
    let target = file(&format!("/shared/{}", names[0]));
    Header {
        host: None,
        hosts: described(names),
        ..header(command, line, &[target], planned_points)
    }
}

/// A run on seven hosts: one of them is slow, and one was lost.
pub fn run_on_hosts() -> Document {
    let names = ["node1", "node2", "node3", "node4", "node5", "node6", "=node7"];
    let load = stream(Pattern::RANDOM, 4096, 0.7, closed(4));
    let base = trial(
        point("random 70/30 read/write 4 KiB, queue depth 4", load, 4),
        Speed { iops: 0.0, service_ns: 1e6, unrest: 0.0 },
        0,
    );
    let paces = [("node1", 1.0), ("node2", 1.02), ("node3", 0.98), ("node5", 0.4), ("node6", 1.01)];
    let mut trial = together(&base, &[&paces[..], &[("=node7", 0.99)]].concat(), 900.0);
    let lost = LostHost { why: "its agent ended".to_owned(), after: Some(Span::from_secs(3)) };
    trial.hosts.insert(3, HostTrial::lost("node4", lost));
    let (region, all) = (trial.point.streams[0].regions[0], trial.hosts.len() as u32);
    for (nth, host) in (0..).zip(&mut trial.hosts) {
        host.regions.push(zone(&region, Bytes(4096), nth, all));
    }
    let slow = &mut trial.hosts[4];
    slow.verdict = Some(document::Verdict::Suspect);
    slow.doubts = Vec::from(["other-load".to_owned()]);
    let judgement = Judgement {
        findings: Vec::from([
            finding(
                "host-lost",
                Severity::Suspect,
                "node4 was lost 3 s after the start: its agent ended. The figures are those of the \
                 other 6; 14.3 % of the load is missing.",
                "Look at that host.",
            ),
            finding(
                "host-differs",
                Severity::Note,
                "node5 (p99 29.4 ms) 2.51 times the others (2.40 to 2.62); node5 (350 IOPS) 0.40 \
                 times the others (0.39 to 0.41).",
                "Compare that host with the others: its device, its network, other programs.",
            ),
        ]),
        unchecked: Vec::new(),
    };
    let line = ["fathom", "run", "/shared/{host}", "-q", "4", "--hosts", "router"];
    Document {
        header: header_of(Command::Run, &line, &names, 1),
        trials: Vec::from([document::Trial::new(&trial, &judgement)]),
        conclusion: Some(Conclusion {
            ended: Ended::Completed,
            sentences: Vec::new(),
            found: None,
        }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// A sweep over the number of hosts and the queue depth, with two repeats. The storage saturates.
pub fn scaling() -> Document {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let counts = ["1", "2", "4", "8"];
    let depths = [("1", 300.0, 4000.0), ("8", 900.0, 2800.0)];
    let axis = |name: &str, labels: &[&str]| Axis {
        name: name.to_owned(),
        scale: Scale::Log2,
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
    };
    let axes = Vec::from([axis("hosts", &counts), axis("queue-depth", &["1", "8"])]);
    let at = |axis: &str, label: &str| Coordinate {
        axis: axis.to_owned(),
        label: label.to_owned(),
        value: Some(label.parse().unwrap()),
    };
    let mut trials = Vec::new();
    let mut first = None;
    for repeat in 0..2u32 {
        for count in counts {
            for (depth, alone, most) in depths {
                let load = stream(Pattern::RANDOM, 4096, 1.0, closed(depth.parse().unwrap()));
                let name = format!("hosts {count}, queue depth {depth}");
                let seed = 42 + trials.len() as u64;
                let own = Point { seed, interval: Span::from_ms(250), ..point(&name, load, 2) };
                first.get_or_insert(own.clone());
                let idle = Speed { iops: 0.0, service_ns: 1e6, unrest: 0.0 };
                let mut base = trial(own, idle, trials.len() as u64);
                base.place = Place {
                    role: Role::Result,
                    coordinates: Vec::from([at("hosts", count), at("queue-depth", depth)]),
                    repeat,
                };
                let many: f64 = count.parse().unwrap();
                // All together come near what the storage can do at most.
                let each = 1.0 / (1.0 / alone + (many - 1.0) / most);
                let paces: Vec<(&str, f64)> =
                    names[..many as usize].iter().map(|name| (*name, 1.0)).collect();
                let trial = together(&base, &paces, each);
                trials.push(document::Trial::new(&trial, &Judgement::default()));
            }
        }
    }
    let line = ["fathom", "sweep", "/shared/{host}", "--axis", "hosts=1,2,4..N"];
    let mut header = header_of(Command::Sweep, &line, &names, 16);
    header.experiment = Some(Experiment {
        name: "sweep".to_owned(),
        base: first.unwrap(),
        axes: axes.clone(),
        settings: [("repeats".to_owned(), "2".to_owned())].into_iter().collect(),
    });
    let found =
        Found::Sweep(SweepFound { axes, cut_off: Vec::new(), saved: Vec::new(), all_alike: false });
    Document {
        header,
        trials,
        conclusion: Some(Conclusion {
            ended: Ended::Completed,
            sentences: Vec::from(["From 1 to 8 hosts throughput rises.".to_owned()]),
            found: Some(found),
        }),
        torn: false,
        conditions: Vec::new(),
    }
}
