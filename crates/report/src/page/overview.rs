//! All trials in one table, and the meaning of its columns.

use fathom_core::Quantile;
use fathom_core::stats::Estimate;

use super::{Block, Drawing, Entry, Head, Level, Section, Spare, Table};
use crate::document::{BackendKind, Document, Trial};
use crate::figures::{self, Summary, TrialPart, plus_minus};
use crate::results::{Results, Spot};

/// The percentiles of every overview.
pub const QUANTILES: [Quantile; 3] = [Quantile(0.5), Quantile(0.99), Quantile(0.999)];

/// The most trials of an experiment with separate charts: a browser is slow with hundreds.
pub const TRIALS_DRAWN: usize = 12;

/// Whether there are few enough trials to draw each of them over time.
pub fn draws_trials(document: &Document) -> bool {
    let one_by_one = !document.is_experiment() && !document.is_repeated();
    one_by_one || document.trials.len() <= TRIALS_DRAWN
}

/// Points that are compared in one unit: in sequence in MB/s, all others in IOPS.
#[derive(Debug)]
pub struct StepGroup<'t> {
    /// Whether it is MB/s.
    pub in_bytes: bool,
    /// The points, with their numbers, from 1.
    pub steps: Vec<(usize, Spot<'t>)>,
}

/// The points in groups; those in sequence first. Bytes and I/Os on one axis would make one of them
/// too small to see. None if there is nothing to compare.
pub fn groups(document: &Document) -> Vec<StepGroup<'_>> {
    let points = Results::of_points(document).spots;
    if points.len() < 2 {
        return Vec::new();
    }
    let is_in_sequence = |step: &(usize, Spot<'_>)| figures::is_in_sequence(step.1.first());
    let (sequence, random) = (1..).zip(points).partition(is_in_sequence);
    let of = |(in_bytes, steps)| StepGroup { in_bytes, steps };
    let both = [(true, sequence), (false, random)].map(of).into_iter();
    both.filter(|group| !group.steps.is_empty()).collect()
}

impl StepGroup<'_> {
    /// Its unit.
    pub fn unit(&self) -> &'static str {
        if self.in_bytes { "MB/s" } else { "IOPS" }
    }

    /// The names of the places of its two charts.
    pub fn ids(&self) -> [String; 2] {
        let name = if self.in_bytes { "sequence" } else { "random" };
        ["rates", "times"].map(|what| format!("overview-{name}-{what}"))
    }

    /// The places of its charts, side by side.
    fn drawings(&self) -> [Drawing; 2] {
        let which = if self.in_bytes { "in sequence" } else { "at random" };
        let titles = [format!("{} {which}", self.unit()), format!("Response times {which}")];
        let [rates, times] = self.ids();
        let [of_rates, of_times] = titles;
        [(rates, of_rates), (times, of_times)].map(|(id, title)| Drawing::Named {
            id,
            title,
            wide: false,
        })
    }
}

/// The table of all trials, with its chart. An experiment's own table is more informative, so this
/// one is among the details.
pub fn section(document: &Document, level: Level) -> Option<Block> {
    let (trials, all) = (&document.trials, document.is_experiment());
    let alone = trials.len() == 1 && Level::Trials <= level;
    if trials.is_empty() || alone || (all && level < Level::Full) {
        return None;
    }
    let mut blocks = Vec::new();
    match document.is_repeated() {
        true => {
            blocks.push(Block::Table(points(document, level)));
            blocks.push(Block::quiet(TOGETHER));
        }
        false => blocks.push(Block::Table(table(trials))),
    }
    blocks.push(Block::quiet(legend(trials)));
    blocks.extend(ceiling(document).map(Block::quiet));
    if !all && level == Level::Complete {
        let charts: Vec<Drawing> = groups(document).iter().flat_map(StepGroup::drawings).collect();
        blocks.extend((!charts.is_empty()).then_some(Block::Charts(charts)));
    }
    if document.is_repeated() {
        let many = format!("All {} trials, in their order", trials.len());
        blocks.push(match level {
            Level::Short | Level::Trials => Block::quiet(format!(
                "`fathom report RESULT --details` shows the {} trials in full.",
                trials.len()
            )),
            Level::Full | Level::Complete => {
                Block::folded(many, Vec::from([Block::Table(table(trials))]))
            }
        });
    }
    let heading = match all {
        true => format!("All {} trials, in their order", trials.len()),
        false => "At a glance".to_owned(),
    };
    let folded = !draws_trials(document);
    Some(Block::Section(Section { heading, folded, blocks, ..Section::default() }))
}

/// The meaning of figures of several trials.
pub const TOGETHER: &str = "Repeats of a point are shown together: rates over all their windows, percentiles of all their \
     I/Os; void trials are left out where there are others.";

/// Each point with the figures of all its trials.
fn points(document: &Document, level: Level) -> Table {
    let heads = [Head::words("")].into_iter().chain(figure_heads());
    let heads = heads.chain([Head::figures("trials"), Head::words("verdict")]);
    let mut table = Table::new("", heads);
    for point in Results::of_points(document).spots {
        let (text, below) = figures::names(point.first());
        let name = Entry::Name { text, below, trial: point.trials[0].0 };
        let trials = match level {
            Level::Complete => Entry::trials(&point.trials),
            Level::Short | Level::Trials | Level::Full => {
                Entry::figure(point.trials.len().to_string())
            }
        };
        let ends = [trials, Entry::Verdict(point.verdict)];
        table.row([name].into_iter().chain(figures_of(&point.summary)).chain(ends));
    }
    table
}

fn table(trials: &[Trial]) -> Table {
    let heads = [Head::words("")].into_iter().chain(figure_heads()).chain([Head::words("verdict")]);
    let mut table = Table::new("", heads);
    let digits = trials.len().to_string().len();
    for (trial, number) in trials.iter().zip(1..) {
        let (name, below) = figures::names(trial);
        let text = format!("{number:>digits$} {name}");
        let name = Entry::Name { text, below, trial: number };
        let figures = figures_of(&figures::summary(trial, None, &QUANTILES));
        table.row([name].into_iter().chain(figures).chain([Entry::Verdict(trial.verdict)]));
    }
    table
}

/// The heads of what [`figures_of`] gives.
pub fn figure_heads() -> [Head; 5] {
    let [p50, p99, p999] = QUANTILES.map(|quantile| Head::figures(&quantile.to_string()));
    [
        Head::figures("IOPS"),
        Head::figures("MiB/s").with(Spare::Halves),
        p50,
        p99,
        p999.with(Spare::Column),
    ]
}

/// Throughput and percentiles with their half-widths.
pub fn figures_of(summary: &Summary) -> Vec<Entry> {
    let entry = |estimate: &Option<Estimate>, write: &dyn Fn(f64) -> String| Entry::Figure {
        text: figures::or_unknown(estimate.map(|one| write(one.value))),
        half: plus_minus(estimate.as_ref()),
    };
    let mut entries = Vec::from([
        entry(&summary.iops, &figures::significant),
        entry(&summary.bandwidth, &|bytes| figures::significant(figures::mib(bytes))),
    ]);
    entries.extend(summary.quantiles.iter().map(|one| entry(one, &figures::time)));
    entries
}

/// The meaning of the columns, the loop, and the access of the I/Os.
pub fn legend(trials: &[Trial]) -> String {
    let open = trials.iter().filter(|trial| trial.is_open()).count();
    let loops = match open {
        0 => "service times; closed loop",
        n if n == trials.len() => "response times; open loop",
        _ => "response times, which in the closed loops equal the service times",
    };
    let how = way(trials).map_or(String::new(), |how| format!("; {how}"));
    format!(
        "Percentiles are of {loops}{how}. ±: half of the 95 % interval. A dash: not enough samples."
    )
}

/// The access of the I/Os of all trials to their targets, if it is the same.
fn way(trials: &[Trial]) -> Option<String> {
    let first = trials.first()?;
    if trials.iter().any(|trial| trial.backend != first.backend) {
        return None;
    }
    if first.backend == BackendKind::Sim {
        return Some("virtual time".to_owned());
    }
    let access = figures::same_access(first)?;
    let alike = |trial: &Trial| figures::same_access(trial).as_ref() == Some(&access);
    let carried = match first.backend {
        BackendKind::Uring => first.backend.name().to_owned(),
        // Another one was asked for, or io_uring does not work there.
        other => format!("{} ({})", other.name(), first.backend_reason),
    };
    trials.iter().all(alike).then(|| format!("{access} through {carried}"))
}

/// How far the load generator was from its ceiling, in the trial that came nearest to it. None
/// if a trial did not have its CPUs to itself, because the sentence is about all of them.
fn ceiling(document: &Document) -> Option<String> {
    if document.trials.iter().any(figures::is_contended) {
        return None;
    }
    let known = document.trials.iter().zip(1..).filter_map(|(trial, number)| {
        let ceiling = figures::ceiling(document, trial)?;
        Some((number, ceiling.times?, ceiling.target))
    });
    let (number, times, target) = known.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let many = document.trials.len() > 1;
    let least = if many { "at least " } else { "" };
    let one = figures::trial_word(&document.trials);
    let nearest = if many { format!(" ({one} {number} is the nearest)") } else { String::new() };
    Some(format!(
        "The load generator could have done {least}{}{nearest}: on {} instead of the target.",
        figures::times_as_many(times),
        figures::null_target(target),
    ))
}

/// The most important figures of one trial or stream.
pub fn figures_of_part(part: TrialPart<'_>) -> Table {
    let caption = format!("Percentiles are of the {}.", figures::time_name(part));
    let mut table = Table::new(caption, figure_heads());
    table.row(figures_of(&part.summary(None, &QUANTILES)));
    table
}
