//! The procedure of DiskSpd's guide: a search for the peak by small steps with as many threads as
//! there are CPUs, the official run, and whether everything is as the guide asks.

use std::collections::BTreeSet;

use crate::experiment::{Conclusion, Experiment, Forecast, Peak, Step};
use crate::facts::{Content, Counters};
use crate::measure::Record;
use crate::plan::worker_count;
use crate::spec::{Payload, Point};
use crate::trial::{Role, Trial};
use crate::units::{Bytes, Span};
use crate::verdict::{Finding, repeats};

/// The least footprint by the guide, besides twice the memory.
const FOOTPRINT: Bytes = Bytes(40_000_000_000);
/// The largest share of all CPUs for a test that stands for an application.
const CPU_SHARE: f64 = 0.25;
/// The shortest official run.
const DURATION: Span = Span::from_secs(300);

/// The machine on which the procedure runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circumstances {
    /// CPUs that may be used.
    pub cpus: u32,
    /// Memory; none if the target is simulated, because no memory can hold its data.
    pub memory: Option<Bytes>,
    /// What samples of all data that is read look like, together; none if no data could be sampled.
    pub content: Option<Content>,
    /// The window of the official run, if there is to be one.
    pub official: Option<Span>,
}

/// A search for the peak that is checked against the guide.
#[derive(Clone, Debug)]
pub struct BestPractice {
    peak: Peak,
    base: Point,
    circumstances: Circumstances,
    /// For the official run: the share of all CPUs that was used, if it is known.
    busy: Option<f64>,
}

impl BestPractice {
    /// A search that begins with this point.
    pub fn new(peak: Peak, base: Point, circumstances: Circumstances) -> Self {
        Self { peak, base, circumstances, busy: None }
    }

    fn checked(&self, conclusion: Conclusion) -> Conclusion {
        let checks = self.checks();
        let all = |passed: bool| {
            let of = checks.iter().filter(|(ok, _)| *ok == passed).map(|(_, text)| text.as_str());
            of.collect::<Vec<&str>>().join("; ")
        };
        let mut sentences = conclusion.sentences;
        if sentences.is_empty() {
            return Conclusion { sentences, ..conclusion };
        }
        for (passed, head) in
            [(true, "As DiskSpd's guide asks"), (false, "NOT as DiskSpd's guide asks")]
        {
            let list = all(passed);
            if !list.is_empty() {
                sentences.push(format!("{head}: {list}."));
            }
        }
        Conclusion { sentences, ..conclusion }
    }

    /// The guide's requirements, whether each is met, and the words for it.
    fn checks(&self) -> Vec<(bool, String)> {
        let Circumstances { cpus, memory, content, official } = self.circumstances;
        let threads: u32 = self.base.streams.iter().map(worker_count).sum();
        let mut checks = Vec::from([match tied(&self.base) {
            0 => {
                let words = format!("{} for {}", counted(threads, "thread"), counted(cpus, "CPU"));
                (threads == cpus, words)
            }
            tied => {
                let words = counted(threads, "thread");
                (threads == tied, format!("{words} tied to {tied} of {}", counted(cpus, "CPU")))
            }
        }]);
        let addressed = footprint(&self.base);
        let needed = Bytes(memory.map_or(0, |memory| memory.0.saturating_mul(2)).max(FOOTPRINT.0));
        let is_large = needed <= addressed;
        let relation = if is_large { "at least" } else { "less than" };
        let why = if FOOTPRINT < needed { "twice the memory" } else { "40 GB" };
        checks.push((is_large, format!("{addressed} addressed, {relation} {why}")));
        let written = || self.base.streams.iter().filter(|stream| stream.read_share() < 1.0);
        if written().next().is_some() {
            let unique = written().all(|stream| stream.payload == Payload::UNIQUE);
            let words = if unique { "unique data" } else { "data that repeats or compresses" };
            checks.push((unique, words.to_owned()));
        }
        checks.extend(content.map(|content| {
            let Content { samples, block, .. } = content;
            let repeat = match content.repeating() {
                0 => "none repeats".to_owned(),
                1 => "1 repeats".to_owned(),
                n => format!("{n} repeat"),
            };
            let words = format!("of {samples} blocks of {block} of what is read {repeat}");
            (!repeats(&content), words)
        }));
        checks.push(match official {
            Some(window) => (DURATION <= window, format!("an official run of {window}")),
            None => (false, "no official run".to_owned()),
        });
        checks.extend(self.busy.map(|busy| {
            let percent = (busy * 100.0).round();
            (busy <= CPU_SHARE, format!("{percent} % of the CPUs used (25 % at most)"))
        }));
        checks
    }
}

impl Experiment for BestPractice {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last.filter(|trial| trial.place.role == Role::Official) {
            self.busy = trial.counters.as_ref().and_then(busy);
        }
        match self.peak.next(last) {
            Step::Done(conclusion) => Step::Done(self.checked(conclusion)),
            step => step,
        }
    }

    fn enough(&self, so_far: &Record) -> bool {
        self.peak.enough(so_far)
    }

    fn doubts(&self, trial: &Trial) -> Vec<Finding> {
        self.peak.doubts(trial)
    }

    fn forecast(&self) -> Forecast {
        self.peak.forecast()
    }

    fn so_far(&self) -> Conclusion {
        self.checked(self.peak.so_far())
    }
}

/// How many CPUs the workers of a point are tied to; 0 if they may run on any.
pub fn tied(point: &Point) -> u32 {
    let cpus = point.streams.iter().flat_map(|stream| &stream.workplace.cpus);
    cpus.collect::<BTreeSet<_>>().len() as u32
}

/// The share of all CPUs' time that was used; none if it was not counted.
fn busy(counters: &Counters) -> Option<f64> {
    let (used, all) = counters.cpus.iter().fold((0, 0), |(used, all), (_, cpu)| {
        (used + cpu.user.0 + cpu.kernel.0, all + cpu.total().0)
    });
    (0 < all).then(|| used as f64 / all as f64)
}

/// The bytes that a point addresses; a range that several streams address counts once.
fn footprint(point: &Point) -> Bytes {
    let regions = point.streams.iter().flat_map(|stream| &stream.regions);
    let mut regions: Vec<_> =
        regions.map(|region| (region.target, region.offset.0, region.length.0)).collect();
    regions.sort_unstable();
    regions.dedup();
    Bytes(regions.iter().map(|(_, _, length)| length).sum())
}

fn counted(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
