//! The findings of an experiment: its charts, and its figures in tables.

use super::overview::{TOGETHER, figure_heads, figures_of, legend};
use super::{Block, Drawing, Entry, Head, Level, Spare, Spark, Table, Tone, ab, about, maps};
use crate::chart;
use crate::chart::sustain::Watched;
use crate::document::{
    Command, Document, Estimate, Found, Job, JobFlow, JobsFound, PeakFound, Role, Round,
    SteadyState, SustainFound,
};
use crate::figures::{self, or_unknown, plus_minus};
use crate::results::{Results, Spot};

/// The longest list of rounds that is shown completely if space is limited.
const ROUNDS_SHOWN: usize = 30;

/// With more results than this, only their matrices are shown if space is limited.
const ROWS: usize = 60;

/// More runs than this are not listed if space is limited.
const RUNS_SHOWN: usize = 12;

/// The axes of the load.
const LOADS: [&str; 2] = ["queue-depth", "workers"];

/// With more tables of the highest results than this, they would hide the charts.
const HIGHEST: usize = 4;

/// With more matrices than this, only the charts are shown.
const MATRICES: usize = 24;

/// The names of jobs are cut after this many letters if space is limited.
const NAME: usize = 32;

/// The charts and tables of an experiment; empty for a run.
pub fn section(document: &Document, level: Level) -> Option<Block> {
    if !document.is_experiment() {
        return None;
    }
    let found = document.found();
    let charts = || charts(document, level);
    let mut blocks = Vec::new();
    match found {
        Some(Found::Sweep(sweep)) => {
            let all = Results::of(document, &[Role::Result]);
            blocks.extend(highest(&all).into_iter().map(Block::Table));
            blocks.extend(charts());
            blocks.extend(results(&all, &[], level));
            blocks.extend(cut_off(&sweep.cut_off));
            blocks.extend(runs(document, level));
        }
        Some(Found::Peak(found)) => {
            blocks.extend(charts());
            blocks.extend(peak(document, found));
        }
        Some(Found::Map(found)) => blocks.extend(maps::map(document, found, level)),
        Some(Found::Sustain(found)) => {
            blocks.extend(charts());
            blocks.extend(rounds(found, level));
            blocks.extend(beside(document, found, level));
        }
        Some(Found::Ab(found)) => {
            blocks.extend(ab::figures(found));
            blocks.extend(charts());
            if Level::Full <= level {
                blocks.extend(results(&Results::of(document, &[Role::Result]), &[], level));
            }
        }
        Some(Found::Jobs(found)) => {
            blocks.extend(charts());
            blocks.extend(jobs(found, level));
        }
        None => {
            blocks.extend(charts());
            blocks.extend(results(&chart::so_far(document), &[], level));
        }
    }
    blocks.extend(more_was_found(document, level));
    if !document.trials.is_empty() {
        blocks.push(Block::quiet(legend(&document.trials)));
        let many = match document.trials.len() {
            1 => "the trial".to_owned(),
            many => format!("the {many} trials"),
        };
        if level == Level::Short {
            blocks.push(Block::quiet(format!(
                "`fathom report RESULT --details` shows {many} in full."
            )));
        }
    }
    Some(Block::section(heading(document), blocks))
}

/// The sentences of a long conclusion that do not stand below the answer.
fn more_was_found(document: &Document, level: Level) -> Option<Block> {
    let (_, more) = about::found(document);
    match (more.len(), level) {
        (0, _) => None,
        (many, Level::Short) => Some(Block::quiet(format!(
            "{many} more sentences are in `fathom report RESULT --details`."
        ))),
        _ => Some(Block::section("In words", Vec::from([Block::List(more.to_vec())]))),
    }
}

fn heading(document: &Document) -> String {
    let name = document.header.experiment.as_ref().map(|experiment| experiment.name.as_str());
    let imported = document.header.imported.as_ref().map(|source| source.program.as_str());
    let name = name.or(imported).unwrap_or("experiment");
    match document.header.command {
        Command::Sustain if name != "workload" => format!("SNIA test {name}"),
        Command::Study => format!("Study {name}"),
        Command::Ab => "A and B by turns".to_owned(),
        // A program has the name that it gives itself.
        Command::Import => name.to_owned(),
        _ => figures::capitalized(name),
    }
}

/// The charts, if the renderer draws them.
pub fn charts(document: &Document, level: Level) -> Option<Block> {
    if level < Level::Complete {
        return None;
    }
    let charts: Vec<Drawing> = chart::charts(document).into_iter().map(Drawing::Chart).collect();
    (!charts.is_empty()).then_some(Block::Charts(charts))
}

/// The figure in the cells of a matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cells {
    Iops,
    Bandwidth,
    Mean,
    Max,
}

impl Cells {
    fn head(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Bandwidth => "MiB/s",
            Self::Mean => "Mean response time",
            Self::Max => "Maximum response time",
        }
    }

    /// The figure, for comparisons; 0 if it is unknown.
    fn value(self, spot: &Spot<'_>) -> f64 {
        let value = match self {
            Self::Iops => spot.summary.iops.map(|one| one.value),
            Self::Bandwidth => spot.summary.bandwidth.map(|one| one.value),
            Self::Mean => spot.mean_and_max.map(|(mean, _)| mean),
            Self::Max => spot.mean_and_max.map(|(_, max)| max as f64),
        };
        value.unwrap_or_default()
    }

    fn text(self, spot: &Spot<'_>) -> Option<String> {
        Some(match self {
            Self::Iops => figures::significant(spot.summary.iops?.value),
            Self::Bandwidth => figures::significant(figures::mib(spot.summary.bandwidth?.value)),
            Self::Mean => figures::time(spot.mean_and_max?.0),
            Self::Max => figures::time(spot.mean_and_max?.1 as f64),
        })
    }
}

/// Results in a table, and if no chart shows them also in matrices of the requested figure: of the
/// throughput if none was requested.
fn results(results: &Results<'_>, cells: &[Cells], level: Level) -> Vec<Block> {
    if results.spots.is_empty() {
        return Vec::new();
    }
    let throughput = if results.is_about_bytes() { [Cells::Bandwidth] } else { [Cells::Iops] };
    let of = if cells.is_empty() { &throughput } else { cells };
    let matrices: Vec<Block> = match level {
        Level::Complete => Vec::new(),
        Level::Short | Level::Trials | Level::Full => {
            of.iter().flat_map(|cells| matrices(results, *cells)).map(Block::Table).collect()
        }
    };
    let mut blocks = Vec::new();
    if level == Level::Short && !matrices.is_empty() && ROWS < results.spots.len() {
        blocks.push(Block::quiet(format!(
            "All figures of the {} points are in the report (--html) and the table (--csv).",
            results.spots.len()
        )));
    } else {
        blocks.push(Block::Table(table(results, cells.contains(&Cells::Mean), level)));
    }
    if results.spots.iter().any(|spot| spot.trials.len() > 1) {
        blocks.push(Block::quiet(TOGETHER));
    }
    blocks.extend(matrices);
    blocks
}

/// The highest throughput over all loads by the axes that are no load: the first of them down, the last to
/// the right, a table for each combination of the others. Empty if fewer than two of these axes vary, or
/// if the tables would be many.
fn highest(results: &Results<'_>) -> Vec<Table> {
    let varies = |axis: &usize| results.axes[*axis].labels.len() > 1;
    let is_load = |axis: &usize| LOADS.contains(&results.axes[*axis].name.as_str());
    let (loads, others): (Vec<usize>, Vec<usize>) =
        (0..results.axes.len()).filter(varies).partition(is_load);
    let [down, panels @ .., right] = others.as_slice() else { return Vec::new() };
    let key = |spot: &Spot<'_>| panels.iter().map(|axis| spot.steps[*axis]).collect::<Vec<_>>();
    let mut keys: Vec<Vec<usize>> = results.spots.iter().map(key).collect();
    keys.sort();
    keys.dedup();
    if loads.is_empty() || HIGHEST < keys.len() {
        return Vec::new();
    }
    let cells = if results.is_about_bytes() { Cells::Bandwidth } else { Cells::Iops };
    let over = loads.iter().map(|axis| results.axes[*axis].name.as_str());
    let head = format!(
        "{}, the highest over all steps of {}",
        cells.head(),
        over.collect::<Vec<_>>().join(" and ")
    );
    let table = |wanted: Vec<usize>| {
        let own = results.spots.iter().filter(|spot| key(spot) == wanted && !spot.is_void());
        let own: Vec<&Spot<'_>> = own.collect();
        let best = |place: (usize, usize)| {
            let there = own.iter().filter(|s| (s.steps[*down], s.steps[*right]) == place);
            there.copied().max_by(|one, other| cells.value(one).total_cmp(&cells.value(other)))
        };
        let names = panels.iter().zip(&wanted).map(|(axis, step)| step_name(results, *axis, *step));
        let caption = std::iter::once(head.clone()).chain(names).collect::<Vec<String>>();
        let table = by_two_axes(results, (*down, *right), &|place| cells.text(best(place)?));
        Table { caption: caption.join(", "), ..table }
    };
    keys.into_iter().map(table).collect()
}

/// "read-share 100%".
fn step_name(results: &Results<'_>, axis: usize, step: usize) -> String {
    let axis = &results.axes[axis];
    format!("{} {}", axis.name, axis.labels[step])
}

/// The places of the axes that tell the rows of a table apart: those that vary, or all if none does.
fn telling(results: &Results<'_>) -> Vec<usize> {
    let all = 0..results.axes.len();
    let varying: Vec<usize> = all.clone().filter(|at| 1 < results.axes[*at].labels.len()).collect();
    if varying.is_empty() { all.collect() } else { varying }
}

/// Results; for a test of times with the mean and the maximum as well.
fn table(results: &Results<'_>, times: bool, level: Level) -> Table {
    let axes = telling(results);
    let axis = |(nth, at): (usize, &usize)| match nth {
        0 => Head::words(&results.axes[*at].name),
        _ => Head::figures(&results.axes[*at].name),
    };
    let mut heads: Vec<Head> = axes.iter().enumerate().map(axis).collect();
    heads.extend(figure_heads());
    if times {
        heads.extend(["mean", "maximum"].map(Head::figures));
    }
    if level == Level::Complete {
        heads.push(Head::figures("trials"));
    }
    heads.push(Head::words("verdict"));
    let mut table = Table::new("", heads);
    for spot in &results.spots {
        let place = axes.iter().map(|at| Entry::words(&spot.coordinates[*at].label));
        let mut cells: Vec<Entry> = place.chain(figures_of(&spot.summary)).collect();
        if times {
            let (mean, max) = spot.mean_and_max.unzip();
            let max = max.map(|max| max as f64);
            cells.extend([mean, max].map(|ns| Entry::figure(or_unknown(ns.map(figures::time)))));
        }
        if level == Level::Complete {
            cells.push(Entry::trials(&spot.trials));
        }
        cells.push(Entry::Verdict(spot.verdict));
        table.row(cells);
    }
    table
}

/// A figure by the last two axes that vary, a matrix for each combination of the others; empty if
/// there are too few or too many.
fn matrices(results: &Results<'_>, cells: Cells) -> Vec<Table> {
    let several = |axis: &usize| results.axes[*axis].labels.len() > 1;
    let wide: Vec<usize> = (0..results.axes.len()).filter(several).collect();
    let [panels @ .., down, right] = wide.as_slice() else { return Vec::new() };
    // The longer one goes down: there is more room.
    let longer = results.axes[*right].labels.len() <= results.axes[*down].labels.len();
    let (down, right) = if longer { (*down, *right) } else { (*right, *down) };
    let key = |spot: &Spot<'_>| panels.iter().map(|axis| spot.steps[*axis]).collect::<Vec<_>>();
    let mut keys: Vec<Vec<usize>> = results.spots.iter().map(key).collect();
    keys.sort();
    keys.dedup();
    if MATRICES < keys.len() {
        return Vec::new();
    }
    let matrix = |wanted: Vec<usize>| {
        let spots: Vec<&Spot<'_>> = results.spots.iter().filter(|s| key(s) == wanted).collect();
        let names = panels.iter().zip(&wanted).map(|(axis, step)| step_name(results, *axis, *step));
        let names: Vec<String> = std::iter::once(cells.head().to_owned()).chain(names).collect();
        let text = |(row, column)| {
            let mut there =
                spots.iter().filter(|s| (s.steps[down], s.steps[right]) == (row, column));
            cells.text(there.next()?)
        };
        let table = by_two_axes(results, (down, right), &text);
        Table { caption: names.join(", "), ..table }
    };
    keys.into_iter().map(matrix).collect()
}

/// A table of one figure: a row for each step of one axis, a column for each of another.
fn by_two_axes(
    results: &Results<'_>,
    (down, right): (usize, usize),
    text: &dyn Fn((usize, usize)) -> Option<String>,
) -> Table {
    let corner = format!("{} \\ {}", results.axes[down].name, results.axes[right].name);
    let heads = results.axes[right].labels.iter().map(|label| Head::figures(label));
    let mut table = Table::new("", [Head::words(&corner)].into_iter().chain(heads));
    for (step, label) in results.axes[down].labels.iter().enumerate() {
        let cell = |other: usize| Entry::figure(or_unknown(text((step, other))));
        let row = (0..results.axes[right].labels.len()).map(cell);
        table.row([Entry::words(label)].into_iter().chain(row));
    }
    table
}

fn cut_off(points: &[Vec<String>]) -> Option<Block> {
    let names: Vec<String> = points.iter().map(|point| point.join(", ")).collect();
    let text = format!("Cut off because they were clearly worse: {}.", names.join("; "));
    (!names.is_empty()).then(|| Block::quiet(text))
}

/// The result of each run with a fixed amount, in the order in which they ran. If space is limited, many
/// of them would hide the answer.
fn runs(document: &Document, level: Level) -> Option<Block> {
    let runs = figures::runs(document).into_iter();
    let lines: Vec<String> = runs.map(|(place, line)| format!("{place}: {line}")).collect();
    match lines.len() {
        0 => None,
        many if level == Level::Short && RUNS_SHOWN < many => Some(Block::quiet(format!(
            "`fathom report RESULT --details` lists the {many} runs with their bytes and times."
        ))),
        _ => Some(Block::folded("Runs", Vec::from([Block::List(lines)]))),
    }
}

fn half(estimate: &Estimate) -> String {
    plus_minus(Some(estimate))
}

fn peak(document: &Document, found: &PeakFound) -> Vec<Block> {
    let setting = chart::peak::setting(document, found);
    let heads = [&*setting, chart::peak::unit(found), chart::peak::quantile(found), "probes"];
    let heads = heads.map(Head::figures).into_iter().chain([Head::words("answer")]);
    let mut table = Table::new("", heads);
    for probe in &found.probes {
        let tone = if found.choice == Some(probe.value) { Tone::Strong } else { Tone::Plain };
        let throughput = figures::significant(chart::peak::read(found, probe.throughput.value));
        let time = probe.response_time_ns.as_ref();
        table.toned(
            tone,
            [
                Entry::figure(chart::peak::value(probe.value)),
                Entry::Figure { text: throughput, half: half(&probe.throughput) },
                Entry::Figure {
                    text: or_unknown(time.map(|time| figures::time(time.value))),
                    half: time.map(half).unwrap_or_default(),
                },
                Entry::figure(probe.trials.to_string()),
                Entry::words(chart::peak::answer(document, found, probe)),
            ],
        );
    }
    let objective = found.objective.as_ref();
    let objective = objective.map(|objective| format!("Objective: {objective}. "));
    let text = format!(
        "{}Figures are those of the probes, all of one setting together.",
        objective.unwrap_or_default()
    );
    Vec::from([Block::Table(table), Block::quiet(text)])
}

/// The rounds of a test. If there is no room for all, the first and the last ones.
fn rounds(found: &SustainFound, level: Level) -> Vec<Block> {
    let highest = found.rounds.iter().map(|round| round.value.value).fold(0.0, f64::max);
    if highest <= 0.0 {
        return Vec::new();
    }
    let (watched, all) = (Watched::of(found), found.rounds.len());
    let title = format!("{}, round by round", figures::capitalized(&found.watched));
    let caption = if level < Level::Complete { "" } else { title.as_str() };
    let heads = [Head::figures("round"), Head::figures(watched.head()), Head::words("")];
    let mut table = Table::new(caption, heads);
    let level_from = chart::sustain::level_from(found);
    let row = |round: &Round| {
        let steady = level_from.is_some_and(|from| from <= round.number);
        let word = if steady { "steady" } else { "" }.to_owned();
        let value = watched.text(round.value.value);
        [
            Entry::figure(round.number.to_string()),
            Entry::Figure { text: value, half: half(&round.value) },
            Entry::Bar { share: round.value.value / highest, word },
        ]
    };
    let cut = level < Level::Complete && ROUNDS_SHOWN < all;
    let hidden = if cut { 5..all - (ROUNDS_SHOWN - 5) } else { 0..0 };
    for (nth, round) in found.rounds.iter().enumerate() {
        match hidden.contains(&nth) {
            true if nth == hidden.start => table.row([Entry::words("...")]),
            true => {}
            false => table.row(row(round)),
        }
    }
    let mut blocks = Vec::new();
    if level < Level::Complete {
        let mark = level_from.map(|from| {
            let before = found.rounds.iter().take_while(|round| round.number < from).count();
            match before {
                0 => (0, "steady throughout".to_owned()),
                _ => (before, format!("steady from round {from} on")),
            }
        });
        let values = found.rounds.iter().map(|round| round.value.value).collect();
        blocks.push(Block::Spark(Spark { title, values, mark }));
    }
    blocks.push(Block::Table(table));
    blocks
        .extend(found.steadiness.as_ref().map(|steadiness| Block::text(judged(found, steadiness))));
    blocks
}

/// The figures that decide the steadiness, with their limits.
fn judged(found: &SustainFound, steadiness: &SteadyState) -> String {
    let share = |value: f64| figures::percent(value / steadiness.mean);
    format!(
        "The mean of the last rounds is {}. The highest and the lowest are {} of it apart (at most \
         20 % if they are steady), and the best-fit line through them rises or falls by {} of it (at \
         most 10 %).",
        Watched::of(found).text(steadiness.mean),
        share(steadiness.range),
        share(steadiness.excursion)
    )
}

/// The results of a test beside the rounds of the watched figure.
fn beside(document: &Document, found: &SustainFound, level: Level) -> Option<Block> {
    let others = chart::sustain::beside(document, found)?;
    // The watched figure of the rounds is the subject of the test.
    let cells: &[Cells] = match Watched::of(found) {
        _ if found.rounds.is_empty() => &[],
        Watched::Iops => &[Cells::Iops],
        Watched::Bandwidth => &[Cells::Bandwidth],
        Watched::Time => &[Cells::Mean, Cells::Max],
    };
    let blocks = results(&others, cells, level);
    Some(Block::section(chart::sustain::beside_in_words(found), blocks))
}

/// Another program's jobs: a row for each of them and direction, with the options that it was given
/// where there is room.
fn jobs(found: &JobsFound, level: Level) -> Vec<Block> {
    let quantiles = chart::jobs::QUANTILES;
    let mut heads = Vec::from([Head::words("job"), Head::words("")]);
    heads.extend(["IOPS", "MiB/s"].map(Head::figures));
    let last = quantiles.len() - 1;
    heads.extend(quantiles.iter().enumerate().map(|(nth, quantile)| {
        let spare = if nth == last { Spare::Column } else { Spare::Nothing };
        Head::figures(&quantile.to_string()).with(spare)
    }));
    if level == Level::Complete {
        heads.push(Head::words("options"));
    }
    let mut table = Table::new("", heads);
    for job in &found.jobs {
        for flow in &job.flows {
            table.row(job_row(job, flow, level));
        }
        if job.flows.is_empty() {
            table
                .toned(Tone::Quiet, [job_name(job, level), "nothing".to_owned()].map(Entry::words));
        }
    }
    let text = "Percentiles are of service times. A dash: it was not told, or too few I/Os lie \
                beyond it.";
    Vec::from([Block::Table(table), Block::quiet(text)])
}

fn job_name(job: &Job, level: Level) -> String {
    match level < Level::Complete && NAME < job.name.chars().count() {
        true => job.name.chars().take(NAME - 3).chain("...".chars()).collect(),
        false => job.name.clone(),
    }
}

fn job_row(job: &Job, flow: &JobFlow, level: Level) -> Vec<Entry> {
    let mib = flow.bandwidth_bytes.map(figures::mib);
    let mut row = Vec::from([
        Entry::words(job_name(job, level)),
        Entry::words(flow.direction.name()),
        Entry::figure(or_unknown(flow.iops.map(figures::significant))),
        Entry::figure(or_unknown(mib.map(figures::significant))),
    ]);
    let times = chart::jobs::QUANTILES.map(|at| flow.service_time.at(at).map(figures::time));
    row.extend(times.map(|time| Entry::figure(or_unknown(time))));
    if level == Level::Complete {
        let options = job.options.iter().map(|(name, value)| format!("{name}={value}"));
        row.push(Entry::words(options.collect::<Vec<_>>().join(" ")));
    }
    row
}
