//! A latency map in Diskplorer's format: the output of fio with `--output-format=json+`, a job for
//! each cell, which Diskplorer's chart script (latency-postprocess.py) reads.
//!
//! The script uses a job's name, its rates, and four percentiles of `clat_ns`. It leaves a cell out
//! if its rates are more than 3 % below those in its name, or if it has no percentiles. `clat_ns`
//! holds the map's figure: the response time. Every cell of the grid is included, because the
//! script takes the axes from the cells. It scales the colors of a chart by the values in it, and
//! fails with "Invalid vmin or vmax" if there is none, or a zero. So a percentile that is unknown
//! in all cells (with few I/Os, or in a map of other percentiles) gets in each cell the largest
//! known value at a lower percentile, which it is no less than. Facts that fio has no field for are
//! under "fathom", which other readers skip: how a cell is known, the exact steps of the axes, the
//! withheld percentiles, the doubts.

use fathom_core::measure::{Direction, Flow, Histogram};
use fathom_core::{Quantile, Span};
use serde_json::{Map, Value, json};

use crate::document::{CellKind, Document, Found, MapCell, MapFound, Role, Trial};

/// The percentiles that fio lists.
const LISTED: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Those that the script requires.
const NEEDED: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// Buckets of fio's distributions: 64 to each doubling.
const BITS: u32 = 6;

/// The latency map of a document; none if it has none.
pub fn diskplorer(document: &Document) -> Option<String> {
    let Some(Found::Map(found)) = document.found() else { return None };
    let header = &document.header;
    let nowhere = nowhere(document, found);
    let job = |cell| job((document, found), cell, &nowhere);
    let jobs: Vec<Value> = found.cells.iter().map(job).collect();
    let targets: Vec<&str> = header.targets.iter().map(|target| target.name.as_str()).collect();
    let output = json!({
        "fio version": format!("fathom {}", header.fathom_version),
        "timestamp": header.created_unix_ns / 1_000_000_000,
        "time": header.created,
        "global options": {"filename": targets.join(":")},
        "fathom": {"quantiles": found.quantiles, "doubts": found.doubts},
        "jobs": jobs,
    });
    Some(crate::document::harmless(format!("{output}\n")))
}

/// The percentiles that the script requires and that no cell has.
fn nowhere(document: &Document, found: &MapFound) -> Vec<f64> {
    let carried = |cell: &&MapCell| cell.counts();
    let known = |percent: f64, cell: &MapCell| {
        let step = |steps: &[f64], place: u32| steps.get(place as usize).copied();
        let loads =
            step(&found.write_bandwidths, cell.write).zip(step(&found.read_rates, cell.read));
        let trial = loads.and_then(|(write, read)| trial_of(document, write, read));
        let is_told = trial.is_some_and(|trial| sum(trial, Direction::Read).ios() > 0);
        is_told || known_at(found, cell).any(|(known, _)| same(known, percent))
    };
    let missing = |percent: &f64| {
        let mut cells = found.cells.iter().filter(carried);
        !cells.any(|cell| known(*percent, cell))
    };
    NEEDED.into_iter().filter(missing).collect()
}

/// The known values of a cell: percentiles with their response times in nanoseconds.
fn known_at<'f>(found: &'f MapFound, cell: &'f MapCell) -> impl Iterator<Item = (f64, f64)> + 'f {
    let times = found.quantiles.iter().zip(&cell.response_time_ns);
    times.filter_map(|(quantile, time)| Some((quantile.0 * 100.0, (*time)?.value)))
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// The cell in fio's format.
fn job((document, found): (&Document, &MapFound), cell: &MapCell, nowhere: &[f64]) -> Value {
    let step = |steps: &[f64], place: u32| steps.get(place as usize).copied().unwrap_or(0.0);
    let write = step(&found.write_bandwidths, cell.write);
    let read = step(&found.read_rates, cell.read);
    let trial = trial_of(document, write, read);
    let name = format!(
        "job(r_idx={},w_idx={},write_bw={},r_iops={})",
        cell.read,
        cell.write,
        write as u64,
        read.ceil() as u64
    );
    let told = ToldTimes::of(found, cell, trial, nowhere);
    let mut own = json!({
        "kind": cell.kind.name(),
        "write_bandwidth_bytes": write,
        "read_rate_iops": read,
        "withheld": told.withheld,
    });
    if let Some(doubt) = &cell.doubt {
        own["doubt"] = json!(doubt);
    }
    let [reads, writes] = match (cell.kind, trial) {
        (CellKind::Beyond, _) => [flow(None, (0.0, 0.0), None), flow(None, (0.0, 0.0), None)],
        (_, Some(trial)) => {
            let carried = told.percentile.is_some();
            let measured = |direction: Direction, offered: f64| {
                measured(trial, direction, carried.then_some(offered), &told)
            };
            [measured(Direction::Read, read), measured(Direction::Write, write)]
        }
        // It follows from its neighbors that the target carries what is offered.
        (_, None) => [flow(None, (read, 0.0), told.percentile), flow(None, (0.0, write), None)],
    };
    json!({"jobname": name, "error": 0, "read": reads, "write": writes, "fathom": own})
}

/// The trial of a cell; not the one that repeats it at the end.
fn trial_of(document: &Document, write: f64, read: f64) -> Option<&Trial> {
    document.trials.iter().find(|trial| {
        let value = |nth: usize| trial.place.coordinates.get(nth).and_then(|one| one.value);
        let is_cell = matches!(trial.place.role, Role::Result | Role::Validation);
        is_cell && value(0) == Some(write) && value(1) == Some(read)
    })
}

/// The response times of a cell in the output.
struct ToldTimes {
    /// By fio's names; none in a cell that the target does not carry.
    percentile: Option<Value>,
    /// Quantiles of the map that are not known, although there are values under their names.
    withheld: Vec<f64>,
}

impl ToldTimes {
    fn of(found: &MapFound, cell: &MapCell, trial: Option<&Trial>, nowhere: &[f64]) -> Self {
        let times = || found.quantiles.iter().zip(&cell.response_time_ns);
        let withheld = times().filter(|(_, time)| time.is_none()).map(|(quantile, _)| quantile.0);
        if !cell.counts() {
            return Self { percentile: None, withheld: withheld.collect() };
        }
        let all = trial.map(|trial| sum(trial, Direction::Read));
        let value = |percent: f64| -> Option<Value> {
            // A zero has no logarithm, and no I/O takes no time.
            let whole = |ns: f64| json!((ns.round() as u64).max(1));
            if let Some((_, ns)) = known_at(found, cell).find(|(known, _)| same(*known, percent)) {
                return Some(whole(ns));
            }
            // As in fio's output, even with few values beyond.
            let all = all
                .as_ref()
                .and_then(|all| all.response_time().quantile(Quantile(percent / 100.0)));
            match all {
                Some(ns) => Some(whole(ns as f64)),
                None if nowhere.contains(&percent) => {
                    let further_in = known_at(found, cell).filter(|(known, _)| *known < percent);
                    let largest = further_in.map(|(_, ns)| ns).max_by(f64::total_cmp);
                    Some(largest.map_or_else(|| json!("nan"), whole))
                }
                // Python reads it as NaN, and so leaves the cell white.
                None => NEEDED.contains(&percent).then(|| json!("nan")),
            }
        };
        let listed = LISTED.iter().filter_map(|&percent| Some((name(percent), value(percent)?)));
        Self {
            percentile: Some(Value::Object(listed.collect::<Map<String, Value>>())),
            withheld: withheld.collect(),
        }
    }
}

/// "99.900000".
fn name(percent: f64) -> String {
    format!("{percent:.6}")
}

/// The work of a trial in a direction: only the readers read, and only the writer writes.
fn sum(trial: &Trial, direction: Direction) -> Flow {
    trial.flow(Some(direction), |_, _| true)
}

/// The share of the I/Os that were due in a direction and were done. One I/O that has just begun is
/// not behind.
fn done(trial: &Trial, direction: Direction) -> f64 {
    let own = |stream: u32| {
        let stream = trial.point.streams.get(stream as usize);
        stream.is_some_and(|stream| stream.does(direction))
    };
    let ledgers = trial.workers.iter().filter(|one| own(one.stream)).map(|one| one.ledger);
    let (due, waiting, lost) = ledgers.fold((0, 0, 0), |sum, one| {
        (sum.0 + one.due, sum.1 + one.unstarted + one.in_flight, sum.2 + one.lost + one.failed)
    });
    let behind = (waiting.saturating_sub(1) + lost) as f64;
    if due > 0 { (1.0 - behind / due as f64).max(0.0) } else { 1.0 }
}

/// The work of a trial in a direction. For a cell that was carried the rate is the offered one, in
/// this unit, times the share that was done: Poisson arrivals of a slow rate differ from it by
/// chance, and the script would leave the cell out because of that.
fn measured(trial: &Trial, direction: Direction, offered: Option<f64>, told: &ToldTimes) -> Value {
    let sum = sum(trial, direction);
    let seconds = trial.window().as_secs_f64();
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let counted = (rate(sum.ios()), rate(sum.bytes.0));
    let rates = match (offered, direction) {
        (Some(offered), Direction::Read) => (offered * done(trial, direction), counted.1),
        (Some(offered), Direction::Write) => (counted.0, offered * done(trial, direction)),
        (None, _) => counted,
    };
    let percentile = match direction {
        Direction::Read => told.percentile.clone(),
        Direction::Write => None,
    };
    flow(Some((&sum, trial.window())), rates, percentile)
}

/// A direction of a job, with its I/Os and bytes per second.
fn flow(
    measured: Option<(&Flow, Span)>,
    (iops, bandwidth): (f64, f64),
    percentile: Option<Value>,
) -> Value {
    let (ios, bytes, window) =
        measured.map_or((0, 0, Span(0)), |(sum, window)| (sum.ios(), sum.bytes.0, window));
    let mut times = times(measured.map(|(sum, _)| sum.response_time()));
    if let Some(percentile) = percentile {
        times["percentile"] = percentile;
    }
    json!({
        "io_bytes": bytes,
        "bw_bytes": bandwidth.round() as u64,
        "bw": (bandwidth / 1024.0).round() as u64,
        "iops": iops,
        "runtime": window.0 / 1_000_000,
        "total_ios": ios,
        "clat_ns": times,
    })
}

fn times(histogram: Option<&Histogram>) -> Value {
    let Some(histogram) = histogram.filter(|histogram| histogram.count() > 0) else {
        return json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
    };
    let sparse = histogram.to_sparse();
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (low, count) in sparse.buckets() {
        let middle = middle(low);
        match bins.last_mut() {
            Some((last, sum)) if *last == middle => *sum += count,
            _ => bins.push((middle, count)),
        }
    }
    let bins: Map<String, Value> =
        bins.into_iter().map(|(middle, count)| (middle.to_string(), json!(count))).collect();
    json!({
        "min": sparse.min,
        "max": sparse.max,
        "mean": histogram.mean().unwrap_or_default(),
        "stddev": histogram.standard_deviation().unwrap_or_default(),
        "N": histogram.count(),
        "bins": bins,
    })
}

/// The middle of fio's bucket that contains a value.
fn middle(value: u64) -> u64 {
    match value.checked_ilog2() {
        Some(octave) if octave > BITS => {
            let width = 1 << (octave - BITS);
            value / width * width + width / 2
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_the_names_that_fio_gives_them() {
        // As in fio's results.
        for (value, bin) in [(66_000, 66_048), (131_071, 130_560), (131_072, 132_096)] {
            assert_eq!(middle(value), bin);
        }
        assert_eq!([0, 1, 63, 127].map(middle), [0, 1, 63, 127]);
        assert_eq!(middle(1000), 1004);
    }
}
