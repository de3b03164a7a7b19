//! An experiment for the terminal: what it found in words, then its figures in a table, then the
//! doubts. What each trial did is in the report in full.

use super::text::{Align, Table, Tint, push_line, wrap};
use super::{Style, heat, jobs, tail, verdict_tint};
use crate::chart;
use crate::chart::sustain::Watched;
use crate::document::{
    Document, Estimate, Found, PeakFound, Role, SteadyState, SustainFound, Verdict,
};
use crate::figures::{self, plus_minus};
use crate::results::{QUANTILES, Results, Spot};

/// The longest list of rounds that is shown whole.
const ROUNDS_SHOWN: usize = 30;

/// More results than this are told by their matrices alone, where there are any.
const ROWS: usize = 60;

/// More matrices than this are left to the report.
const MATRICES: usize = 24;

/// How wide the bars beside the rounds are.
const BAR: usize = 24;

/// The experiment of a document, without the details of its trials.
pub fn experiment(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    for target in &document.header.targets {
        wrap(&mut out, "", figures::place_name(target), Tint::Bold, style);
        wrap(&mut out, "", &figures::stack(target), Tint::Plain, style);
    }
    if let Some(source) = &document.header.imported {
        wrap(&mut out, "", &figures::place_names(document).join(", "), Tint::Bold, style);
        wrap(&mut out, "", &figures::source(source), Tint::Plain, style);
    }
    push_line(&mut out, "");
    tail(&mut out, document, style);
    if !out.ends_with("\n\n") {
        push_line(&mut out, "");
    }
    let found = document.conclusion.as_ref().and_then(|last| last.found.as_ref());
    match found {
        Some(Found::Sweep(found)) => {
            results(&mut out, &Results::of(document, &[Role::Result]), &[], style);
            for point in &found.cut_off {
                let text = format!("{} was cut off: it was clearly worse.", point.join(", "));
                wrap(&mut out, "", &text, Tint::Dim, style);
            }
            runs(&mut out, document, style);
        }
        Some(Found::Peak(found)) => peak(&mut out, found, style),
        Some(Found::Map(found)) => {
            heat::map(&mut out, (document, found), sentences(document), style)
        }
        Some(Found::Sustain(found)) => {
            rounds(&mut out, found, style);
            beside(&mut out, document, found, style);
        }
        Some(Found::Jobs(found)) => jobs::jobs(&mut out, found, style),
        None => results(&mut out, &chart::so_far(document), &[], style),
    }
    if !document.trials.is_empty() {
        wrap(&mut out, "", &legend(document), Tint::Dim, style);
        let doubted = matches!(found, Some(Found::Map(found)) if !found.doubts.is_empty());
        let none = document.trials.iter().all(|trial| trial.findings.is_empty());
        // Where the map itself is doubted, "no doubts" about its trials would mislead.
        if !(doubted && none) {
            push_line(&mut out, "");
            super::portrait::doubts(&mut out, &document.trials, style);
        }
    }
    out
}

/// What was concluded, in words.
fn sentences(document: &Document) -> &[String] {
    document.conclusion.as_ref().map_or(&[], |last| last.sentences.as_slice())
}

/// What each run did that was to move a fixed amount, in the order in which they were run.
fn runs(out: &mut String, document: &Document, style: &Style) {
    let runs = figures::runs(document);
    if runs.is_empty() {
        return;
    }
    push_line(out, &Tint::Bold.paint("Runs", style));
    for (place, line) in runs {
        wrap(out, "", &format!("{place}: {line}"), Tint::Plain, style);
    }
    push_line(out, "");
}

/// What the columns mean, and which loop it was.
fn legend(document: &Document) -> String {
    let open = document.trials.iter().filter(|trial| trial.is_open()).count();
    let loops = match open {
        0 => "service times; closed loop",
        n if n == document.trials.len() => "response times; open loop",
        _ => "response times, which in the closed loops equal the service times",
    };
    let trials = match document.trials.len() {
        1 => "1 trial".to_owned(),
        many => format!("{many} trials"),
    };
    format!(
        "Percentiles are of {loops}. ±: half of the 95 % interval. A dash: too few samples. \
         `fathom report --details` shows the {trials} in full."
    )
}

/// How much of a result stands in its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Everything.
    Full,
    /// Without the farthest percentile and without what can be told from another column.
    Usual,
    /// Without half-widths.
    Lean,
}

/// What the cells of a matrix are.
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

    fn text(self, spot: &Spot<'_>) -> Option<String> {
        Some(match self {
            Self::Iops => figures::short_rate(spot.summary.iops?.value),
            Self::Bandwidth => figures::rate(figures::mib(spot.summary.bandwidth?.value)),
            Self::Mean => figures::time(spot.mean_and_max?.0),
            Self::Max => figures::time(spot.mean_and_max?.1 as f64),
        })
    }
}

/// Results in a table, and in matrices of what is asked for: of the throughput where nothing is.
fn results(out: &mut String, results: &Results<'_>, cells: &[Cells], style: &Style) {
    if results.spots.is_empty() {
        return;
    }
    let throughput = if results.is_about_bytes() { [Cells::Bandwidth] } else { [Cells::Iops] };
    let cells = if cells.is_empty() { &throughput } else { cells };
    let each = cells.iter().map(|cells| matrices(results, *cells, style));
    let matrices = each.collect::<Option<Vec<String>>>().map(|all| all.concat());
    let tables = [Detail::Full, Detail::Usual, Detail::Lean].map(|detail| table(results, detail));
    let fitting = tables.iter().find(|table| table.width() <= style.width);
    if let (Some(_), true) = (&matrices, ROWS < results.spots.len()) {
        let text = format!(
            "All figures of the {} points are in the report (--html) and the table (--csv).",
            results.spots.len()
        );
        wrap(out, "", &text, Tint::Dim, style);
    } else if let Some(table) = fitting.or(tables.last()) {
        table.render(out, style);
    }
    let marks = results.spots.iter().any(|spot| spot.verdict != Verdict::Sound);
    if marks {
        let text = "?: a trial is suspect. !: a trial is void; the figures are those of the \
                    others, where there are any.";
        wrap(out, "", text, Tint::Dim, style);
    }
    push_line(out, "");
    out.push_str(&matrices.unwrap_or_default());
}

fn table(results: &Results<'_>, detail: Detail) -> Table {
    let halves = detail != Detail::Lean;
    let quantiles = if detail == Detail::Full { QUANTILES.len() } else { 2 };
    let mut columns = Vec::new();
    let mut heads = Vec::new();
    for (nth, axis) in results.axes.iter().enumerate() {
        columns.push((if nth == 0 { Align::Left } else { Align::Right }, usize::from(nth > 0) * 2));
        heads.push(axis.name.clone());
    }
    let mut figure = |head: &str, half: bool| {
        columns.push((Align::Right, 3));
        heads.push(head.to_owned());
        if half {
            columns.push((Align::Left, 1));
            heads.push(String::new());
        }
    };
    figure("IOPS", halves);
    figure("MiB/s", detail == Detail::Full);
    for quantile in &QUANTILES[..quantiles] {
        figure(&quantile.to_string(), halves);
    }
    columns.push((Align::Left, 1));
    let mut table = Table::new(&columns);
    table.row(Tint::Dim, heads);
    for spot in &results.spots {
        table.tinted(row(spot, detail, quantiles));
    }
    table
}

fn row(spot: &Spot<'_>, detail: Detail, quantiles: usize) -> Vec<(String, Tint)> {
    let plain = |text: String| (text, Tint::Plain);
    let mut cells: Vec<(String, Tint)> =
        spot.coordinates.iter().map(|one| plain(one.label.clone())).collect();
    let summary = &spot.summary;
    let dash = || "-".to_owned();
    let iops = summary.iops.map_or_else(dash, |one| figures::short_rate(one.value));
    cells.push(plain(iops));
    if detail != Detail::Lean {
        cells.push((plus_minus(summary.iops.as_ref()), Tint::Dim));
    }
    let mib = summary.bandwidth.map_or_else(dash, |one| figures::rate(figures::mib(one.value)));
    cells.push(plain(mib));
    if detail == Detail::Full {
        cells.push((plus_minus(summary.bandwidth.as_ref()), Tint::Dim));
    }
    for estimate in &summary.quantiles[..quantiles] {
        cells.push(plain(estimate.map_or_else(dash, |one| figures::time(one.value))));
        if detail != Detail::Lean {
            cells.push((plus_minus(estimate.as_ref()), Tint::Dim));
        }
    }
    let mark = match spot.verdict {
        Verdict::Sound => "",
        Verdict::Suspect => "?",
        Verdict::Void => "!",
    };
    cells.push((mark.to_owned(), verdict_tint(spot.verdict)));
    cells
}

/// A figure by the last two axes that vary, a matrix for each combination of the others; nothing if
/// there are none, or they do not fit.
fn matrices(results: &Results<'_>, cells: Cells, style: &Style) -> Option<String> {
    let several = |axis: &usize| results.axes[*axis].labels.len() > 1;
    let wide: Vec<usize> = (0..results.axes.len()).filter(several).collect();
    let [panels @ .., down, right] = wide.as_slice() else { return None };
    // The longer one goes down: there is more room.
    let longer = results.axes[*right].labels.len() <= results.axes[*down].labels.len();
    let (down, right) = if longer { (*down, *right) } else { (*right, *down) };
    let key = |spot: &Spot<'_>| panels.iter().map(|axis| spot.steps[*axis]).collect::<Vec<_>>();
    let mut keys: Vec<Vec<usize>> = results.spots.iter().map(key).collect();
    keys.sort();
    keys.dedup();
    if MATRICES < keys.len() {
        return None;
    }
    let mut out = String::new();
    for wanted in keys {
        let spots: Vec<&Spot<'_>> = results.spots.iter().filter(|s| key(s) == wanted).collect();
        let names = panels.iter().zip(&wanted).map(|(axis, step)| {
            let axis = &results.axes[*axis];
            format!("{} {}", axis.name, axis.labels[*step])
        });
        let names: Vec<String> = std::iter::once(cells.head().to_owned()).chain(names).collect();
        wrap(&mut out, "", &names.join(", "), Tint::Bold, style);
        let table = matrix(results, &spots, (down, right), cells);
        if style.width < table.width() {
            return None;
        }
        table.render(&mut out, style);
        push_line(&mut out, "");
    }
    Some(out)
}

fn matrix(
    results: &Results<'_>,
    spots: &[&Spot<'_>],
    (down, right): (usize, usize),
    cells: Cells,
) -> Table {
    let mut columns = Vec::from([(Align::Left, 0)]);
    columns.extend(results.axes[right].labels.iter().map(|_| (Align::Right, 3)));
    let mut table = Table::new(&columns);
    let corner = format!("{} \\ {}", results.axes[down].name, results.axes[right].name);
    table.row(Tint::Dim, std::iter::once(corner).chain(results.axes[right].labels.clone()));
    for (step, label) in results.axes[down].labels.iter().enumerate() {
        let cell = |other: usize| {
            let spot = spots.iter().find(|s| s.steps[down] == step && s.steps[right] == other);
            spot.and_then(|spot| cells.text(spot)).unwrap_or("-".to_owned())
        };
        let row = (0..results.axes[right].labels.len()).map(cell);
        table.row(Tint::Plain, std::iter::once(label.clone()).chain(row));
    }
    table
}

fn half(estimate: &Estimate) -> String {
    plus_minus(Some(estimate))
}

fn peak(out: &mut String, found: &PeakFound, style: &Style) {
    let mut table = Table::new(&[
        (Align::Right, 0),
        (Align::Right, 3),
        (Align::Left, 1),
        (Align::Right, 3),
        (Align::Left, 1),
        (Align::Right, 3),
        (Align::Left, 3),
    ]);
    let heads =
        [&found.axis, chart::peak::unit(found), "", chart::peak::quantile(found), "", "probes", ""];
    table.row(Tint::Dim, heads.map(str::to_owned));
    for probe in &found.probes {
        let tint = if found.choice == Some(probe.value) { Tint::Bold } else { Tint::Plain };
        let time = probe.response_time_ns.as_ref();
        table.tinted([
            (chart::peak::value(probe.value), tint),
            (figures::rate(chart::peak::read(found, probe.throughput.value)), tint),
            (half(&probe.throughput), Tint::Dim),
            (time.map_or("-".to_owned(), |time| figures::time(time.value)), tint),
            (time.map(half).unwrap_or_default(), Tint::Dim),
            (probe.trials.to_string(), Tint::Plain),
            (chart::peak::answer(found, probe), tint),
        ]);
    }
    table.render(out, style);
    if let Some(objective) = &found.objective {
        wrap(out, "", &format!("Objective: {objective}."), Tint::Dim, style);
    }
    push_line(out, "");
}

/// The heights of a sparkline.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn rounds(out: &mut String, found: &SustainFound, style: &Style) {
    let highest = found.rounds.iter().map(|round| round.value.value).fold(0.0, f64::max);
    if highest <= 0.0 {
        return;
    }
    wrap(out, "", &format!("{}, round by round", found.watched), Tint::Bold, style);
    let spark = |value: f64| SPARKS[((value / highest * 8.0).ceil() as usize).clamp(1, 8) - 1];
    let line: String = found.rounds.iter().map(|round| spark(round.value.value)).collect();
    // The last rounds are those that count.
    let hidden = found.rounds.len().saturating_sub(style.width);
    let hidden = if hidden == 0 { 0 } else { hidden + 1 };
    let cut = if hidden == 0 { "" } else { "…" };
    push_line(out, &format!("{cut}{}", line.chars().skip(hidden).collect::<String>()));
    if let Some(from) = found.steady_from {
        let before = found.rounds.iter().take_while(|round| round.number < from).count();
        let place = before.saturating_sub(hidden) + usize::from(0 < hidden);
        let words = format!("steady from round {from} on");
        let text = match place + 2 + words.len() <= style.width {
            true => format!("{}└ {words}", " ".repeat(place)),
            false => format!("{}{words} ┘", " ".repeat((place - 1).saturating_sub(words.len()))),
        };
        push_line(out, &text);
    }
    push_line(out, "");
    let mut table =
        Table::new(&[(Align::Right, 0), (Align::Right, 3), (Align::Left, 1), (Align::Left, 3)]);
    let watched = Watched::of(found);
    table.row(Tint::Dim, ["round", watched.head()].map(str::to_owned));
    let (all, mut skipped) = (found.rounds.len(), false);
    for (nth, round) in found.rounds.iter().enumerate() {
        let hidden = all > ROUNDS_SHOWN && (5..all - (ROUNDS_SHOWN - 5)).contains(&nth);
        if hidden {
            if !skipped {
                table.row(Tint::Dim, ["...".to_owned()]);
            }
            skipped = true;
            continue;
        }
        let steady = found.steady_from.is_some_and(|from| from <= round.number);
        let length = (round.value.value / highest * BAR as f64).round() as usize;
        let mark = if steady { " steady" } else { "" };
        table.tinted([
            (round.number.to_string(), Tint::Plain),
            (watched.text(round.value.value), Tint::Plain),
            (half(&round.value), Tint::Dim),
            (format!("{}{mark}", "#".repeat(length)), Tint::Plain),
        ]);
    }
    table.render(out, style);
    if let Some(steadiness) = &found.steadiness {
        let text = format!("{} Steady means at most 20 % and 10 %.", judged(found, steadiness));
        wrap(out, "", &text, Tint::Plain, style);
    }
    push_line(out, "");
}

/// What a test shows beside the rounds of what was watched.
fn beside(out: &mut String, document: &Document, found: &SustainFound, style: &Style) {
    let Some(others) = chart::sustain::beside(document, found) else { return };
    let title = chart::sustain::beside_in_words(found);
    wrap(out, "", &title, Tint::Bold, style);
    // What the rounds were watched by is what the test is about.
    let cells: &[Cells] = match Watched::of(found) {
        _ if found.rounds.is_empty() => &[],
        Watched::Iops => &[Cells::Iops],
        Watched::Bandwidth => &[Cells::Bandwidth],
        Watched::Time => &[Cells::Mean, Cells::Max],
    };
    results(out, &others, cells, style);
}

/// What the steadiness was judged by, in a sentence.
pub fn judged(found: &SustainFound, steadiness: &SteadyState) -> String {
    let share = |value: f64| figures::percent(value / steadiness.mean);
    format!(
        "Of the last rounds the mean is {}, they differ by {} of it, and their best-fit line rises \
         or falls by {} of it.",
        Watched::of(found).text(steadiness.mean),
        share(steadiness.range),
        share(steadiness.excursion)
    )
}
