//! The three or four figures that matter, to stand large beside the answer.

use std::cmp::Ordering;

use fathom_core::differences::{RatioInWords, figure_in_words, figure_text};
use fathom_core::experiment::LoadCost;
use fathom_core::stats::{Comparison, Estimate, Level};

use super::answer::is_step;
use super::{Entry, Head, Table, TableRow, Tone};
use crate::chart;
use crate::chart::sustain::{self, Watched};
use crate::document::{
    AbFound, CellKind, Command, ComparedFigure, Document, Found, MapCell, MapFound, PeakFound,
    Role, SustainFound,
};
use crate::figures::{self, Summary, plus_minus};
use crate::results::{Figure, QUANTILES, Results, Spot, chosen};

/// The percentile of the tail: its place among [`QUANTILES`].
const TAIL: usize = 1;

/// A figure with its name.
type Tile = (String, Entry);

/// The figures that matter, as a table of one row; none if there are none that stand for the whole.
pub fn key_figures(document: &Document) -> Option<Table> {
    let found = document.found();
    let tiles = match found {
        Some(Found::Peak(found)) => of_peak(document, found, &chosen(document)?),
        Some(Found::Sustain(found)) => of_rounds(found),
        Some(Found::Map(found)) => of_map(found),
        Some(Found::Sweep(found)) => {
            of_sweep(&Results::of(document, &[Role::Result]), found.all_alike)
        }
        None if document.is_experiment() => Vec::new(),
        None => match Results::of_points(document).spots.as_slice() {
            steps if document.header.command == Command::Quick => of_portrait(steps),
            [only] if only.is_overloaded() => of_overload(&only.summary),
            [only] => of_summary(&only.summary, ""),
            _ => Vec::new(),
        },
        Some(Found::Ab(found)) => of_sides(found),
        Some(Found::Jobs(_)) => Vec::new(),
    };
    if tiles.is_empty() {
        return None;
    }
    let (heads, cells): (Vec<Head>, Vec<Entry>) =
        tiles.into_iter().map(|(name, entry)| (Head::figures(&name), entry)).unzip();
    let rows = Vec::from([TableRow::Cells { tone: Tone::Plain, cells }]);
    Some(Table { caption: String::new(), heads, rows })
}

fn tile(
    name: impl Into<String>,
    estimate: Option<Estimate>,
    write: fn(f64) -> String,
) -> Option<Tile> {
    let estimate = estimate.filter(|one| 0.0 < one.value)?;
    let (text, half) = (write(estimate.value), plus_minus(Some(&estimate)));
    Some((name.into(), Entry::Figure { text, half }))
}

fn mb(bytes: f64) -> String {
    figures::significant(bytes / 1e6)
}

/// Throughput and response times of one load; `caveat` goes with the names of the times.
fn of_summary(summary: &Summary, caveat: &str) -> Vec<Tile> {
    // In the unit of the tables below it.
    let mib = |bytes| figures::significant(figures::mib(bytes));
    let rates =
        [tile("IOPS", summary.iops, figures::significant), tile("MiB/s", summary.bandwidth, mib)];
    let times = QUANTILES.iter().zip(&summary.quantiles).take(2);
    let times =
        times.map(|(quantile, time)| tile(format!("{quantile}{caveat}"), *time, figures::time));
    rates.into_iter().chain(times).flatten().collect()
}

/// The same of a load that was more than the target can do. Half-widths would describe response times
/// that depend on the length of the window.
fn of_overload(summary: &Summary) -> Vec<Tile> {
    let mut summary = summary.clone();
    summary.quantiles.iter_mut().flatten().for_each(|time| time.half_width = None);
    of_summary(&summary, ", grows with the length of the run")
}

/// The figures of the chosen point, and its setting.
fn of_peak(document: &Document, found: &PeakFound, spot: &Spot<'_>) -> Vec<Tile> {
    let name = chart::peak::setting(document, found);
    let setting = found.choice.map(|choice| (name, Entry::figure(chart::peak::value(choice))));
    let mut tiles = of_summary(&spot.summary, "");
    if let [_, _, p50, _] = tiles.as_slice() {
        // Four are enough, and the tail is worth more than the middle.
        let name = p50.0.clone();
        tiles.retain(|(other, _)| *other != name);
    }
    tiles.into_iter().chain(setting).collect()
}

/// The level of the last rounds.
fn of_rounds(found: &SustainFound) -> Vec<Tile> {
    let Some(steady) = &found.steadiness else { return Vec::new() };
    let watched = Watched::of(found);
    let level = (found.watched.clone(), Entry::figure(watched.text(steady.mean)));
    let range = figures::percent(steady.range / steady.mean);
    let range = ("lowest to highest of the last rounds".to_owned(), Entry::figure(range));
    let (name, from) = match sustain::level_from(found) {
        Some(1) => ("steady", "throughout".to_owned()),
        Some(round) => ("steady from round", round.to_string()),
        None => ("rounds, no steady state found", found.rounds.len().to_string()),
    };
    let from = (name.to_owned(), Entry::figure(from));
    Vec::from([level, range, from])
}

/// How B compares with A in the figures that most people look at.
fn of_sides(found: &AbFound) -> Vec<Tile> {
    let known = found.figures.iter().filter(|one| one.figure != "mean");
    let tile = |one: &ComparedFigure| {
        let change = RatioInWords { value: one.ratio?.value, interval: None };
        let [a, b] = [one.a?, one.b?].map(|value| figure_text(&one.figure, value));
        let name = format!("{}, B against A ({b} against {a})", figure_in_words(&one.figure));
        Some((name, Entry::figure(change.signed())))
    };
    known.filter_map(tile).take(3).collect()
}

/// The ends of what the target carries.
fn of_map(found: &MapFound) -> Vec<Tile> {
    let most = |name: &str, steps: &[f64], of: &dyn Fn(&MapCell) -> u32, write| {
        let cell = MapCell::with_most(&found.cells, of)?;
        let value = *steps.get(of(cell) as usize)?;
        let estimate = Some(Estimate { value, half_width: None });
        tile(format!("{name}{}", cell.caveat()), estimate, write)
    };
    let (rates, bandwidths) = (&found.read_rates, &found.write_bandwidths);
    let place = found.quantiles.iter().position(|quantile| *quantile == QUANTILES[1]).unwrap_or(0);
    // A cell that is not precise is carried, but its response time is not known.
    let known = found.cells.iter().filter(|cell| cell.counts() && cell.kind != CellKind::Imprecise);
    let mut times =
        known.filter_map(|cell| Some((cell, cell.response_time_ns.get(place).copied()??)));
    let least = times.clone().min_by(|one, two| one.1.value.total_cmp(&two.1.value));
    let half = ((found.write_bandwidths.len() - 1) / 2, (found.read_rates.len() - 1) / 2);
    let is_half = |cell: &MapCell| (cell.write as usize, cell.read as usize) == half;
    let at_half = times.find(|(cell, _)| is_half(cell));
    let quantile = found.quantiles.get(place).map(ToString::to_string).unwrap_or_default();
    let timed = |name: String, known: Option<(&MapCell, Estimate)>| {
        let (cell, time) = known?;
        tile(format!("{name}{}", cell.caveat()), Some(time), figures::time)
    };
    let tiles = [
        most("most reads carried, IOPS", rates, &|cell| cell.read, figures::significant),
        most("most writes carried, MB/s", bandwidths, &|cell| cell.write, mb),
        timed(format!("shortest {quantile}"), least),
        timed(format!("{quantile} at half of both loads"), at_half),
    ];
    tiles.into_iter().flatten().collect()
}

/// The best of several points, each with its place. Which of those that cannot be told apart is named
/// is decided as in the conclusion of the sweep.
fn of_sweep(results: &Results<'_>, all_alike: bool) -> Vec<Tile> {
    // Zeros that are as fast as random data by chance are not the best.
    let all_repeat = results.spots.iter().all(Spot::repeats_data);
    let counts = |spot: &&Spot<'_>| !spot.is_void() && (all_repeat || !spot.repeats_data());
    let spots: Vec<&Spot<'_>> = results.spots.iter().filter(counts).collect();
    let in_bytes = results.is_about_bytes();
    let throughput = |spot: &Spot<'_>| {
        let figure = if in_bytes { spot.summary.bandwidth } else { spot.summary.iops };
        figure.map_or(0.0, |one| one.value)
    };
    let cost = |spot: &Spot<'_>| {
        let p99 = spot.summary.quantiles[TAIL].map(|time| time.value);
        LoadCost::of(&spot.first().point, p99)
    };
    let by_cost = |one: &Spot<'_>, other: &Spot<'_>| cost(one).compare(&cost(other));
    let highest = |name: &str, figure, of: &dyn Fn(&Summary) -> Option<Estimate>, write| {
        let known = spots.iter().filter_map(|spot| Some((*spot, spot.level(figure)?)));
        let (spot, others) = named(known.collect(), &by_cost)?;
        tile(format!("{name}: {}{others}", spot.name()), of(&spot.summary), write)
    };
    let bytes = highest("highest MB/s", Figure::Bandwidth, &|one| one.bandwidth, mb);
    let iops = highest("highest IOPS", Figure::Iops, &|one| one.iops, figures::significant);
    // Of equally short times, the one with the most throughput.
    let by_throughput = |one: &Spot<'_>, other: &Spot<'_>| {
        throughput(other).total_cmp(&throughput(one)).then_with(|| by_cost(one, other))
    };
    let time = || {
        let level = |spot: &Spot<'_>| Some(spot.level(Figure::Quantile(TAIL))?.inverse());
        let known = spots.iter().filter_map(|spot| Some((*spot, level(spot)?)));
        let (spot, others) = named(known.collect(), &by_throughput)?;
        let name = format!("lowest {}: {}{others}", QUANTILES[TAIL], spot.name());
        tile(name, spot.summary.quantiles[TAIL], figures::time)
    };
    let iops = iops.filter(|_| results.blocks_differ() || !in_bytes);
    // Where no point can be told from another, none is the highest.
    let rates = [bytes.filter(|_| in_bytes), iops].into_iter().filter(|_| !all_alike);
    rates.chain([time()]).flatten().collect()
}

/// The highest of these, the first one by this order if several may be it; and "; 3 more cannot be told
/// from it".
fn named<'s, 'd>(
    known: Vec<(&'s Spot<'d>, Level)>,
    order: &dyn Fn(&Spot<'_>, &Spot<'_>) -> Ordering,
) -> Option<(&'s Spot<'d>, String)> {
    let compared = Comparison::new(known.iter().map(|(_, level)| *level));
    let found = compared.highest(|one, other| order(known[one].0, known[other].0))?;
    let others = match found.equals.len() {
        0 => String::new(),
        n => format!("; {n} more cannot be told from it"),
    };
    Some((known[found.place].0, others))
}

/// In sequence in MB/s, at random in IOPS.
fn of_portrait(steps: &[Spot<'_>]) -> Vec<Tile> {
    let of = |name: &str, share: f64, random: bool| {
        let own = steps.iter().filter(move |step| is_step(step.first(), share, random));
        let summaries = own.filter(|step| !step.is_void()).map(|step| &step.summary);
        let values = summaries.filter_map(|one| if random { one.iops } else { one.bandwidth });
        let most = values.reduce(|one, two| if two.value > one.value { two } else { one });
        tile(name, most, if random { figures::significant } else { mb })
    };
    let tiles = [
        of("sequential reads, MB/s", 1.0, false),
        of("sequential writes, MB/s", 0.0, false),
        of("random reads, IOPS", 1.0, true),
        of("random writes, IOPS", 0.0, true),
    ];
    tiles.into_iter().flatten().collect()
}
