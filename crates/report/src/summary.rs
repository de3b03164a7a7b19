//! The summary of a result, or of a watch: its answer and its figures, for programs.

use std::collections::BTreeMap;

use fathom_core::measure::{Direction, Flow};
use fathom_core::stats::{self, Estimate};
use fathom_core::verdict::concerns_result;
use fathom_core::{Quantile, Span};

use crate::comparison::RequirementOutcome;
use crate::document::{
    Document, Finding, HostTrial, ResultSummary, Role, SUMMARY_VERSION, Severity, SummaryCondition,
    SummaryFigures, SummaryHost, SummaryPromise, SummaryResult, Trial,
};
use crate::figures::{self, DiskFigures};
use crate::page;
use crate::promises::{Promise, promises};
use crate::results::{Results, Spot, chosen};
use crate::thresholds::{outcomes, outcomes_of_watch};
use crate::watched::{DiskSummary, WatchSummary, WatchedDisk, WatchedResult};

/// The summary of a result.
pub fn summary(document: &Document) -> ResultSummary {
    let results = results(document);
    let figures = match results.as_slice() {
        [only] => Some(only.figures.clone()),
        _ => chosen(document).map(|spot| of_figures(&spot)),
    };
    // A finding that the experiment is there to make is no doubt.
    let severity = |finding: &Finding| match concerns_result(&finding.code) {
        true => finding.severity,
        false => Severity::Note,
    };
    let codes = |wanted: &[Severity]| {
        let mut codes: Vec<String> = Vec::new();
        for doubt in figures::doubts(&document.trials) {
            let code = &doubt.finding.code;
            if wanted.contains(&severity(doubt.finding)) && !codes.contains(code) {
                codes.push(code.clone());
            }
        }
        codes
    };
    ResultSummary {
        summary_version: SUMMARY_VERSION,
        answer: page::answer(document).text,
        command: document.header.command,
        created: document.header.created.clone(),
        targets: figures::place_names(document).into_iter().map(ToOwned::to_owned).collect(),
        hosts: document.header.hosts.iter().map(|host| host.name.clone()).collect(),
        ended: document.conclusion.as_ref().map(|last| last.ended),
        verdict: document.verdict(),
        doubts: codes(&[Severity::Void, Severity::Suspect]),
        notes: codes(&[Severity::Note]),
        promises: promises(document).into_iter().map(promise).collect(),
        conditions: outcomes(document).into_iter().map(condition).collect(),
        figures,
        results,
    }
}

/// The summary of a watch.
pub fn summary_of_watch(result: &WatchedResult) -> WatchSummary {
    let names = result.header.disks.iter().map(|disk| disk.name.as_str());
    WatchSummary {
        summary_version: SUMMARY_VERSION,
        answer: page::answer_of_watch(result).text,
        created: result.header.created.clone(),
        length_ns: result.length().0,
        exit_code: result.end.as_ref().and_then(|end| end.exit_code),
        is_complete: result.end.is_some(),
        lost_events: result.lost_events,
        conditions: outcomes_of_watch(result).into_iter().map(condition).collect(),
        disks: names.zip(&result.disks).map(|(name, disk)| of_disk(name, disk)).collect(),
    }
}

fn of_disk(name: &str, disk: &WatchedDisk) -> DiskSummary {
    let of = |direction| DiskFigures::of(disk, direction);
    let both = of(None);
    let figures = |figures: Option<DiskFigures>| {
        let exact = |value: Option<f64>| value.map(|value| Estimate { value, half_width: None });
        let figures = figures.as_ref();
        let quantile = |at: f64| exact(figures.and_then(|one| one.quantile(Quantile(at))));
        SummaryFigures {
            iops: exact(figures.map(|one| one.iops)),
            bandwidth_bytes_per_second: exact(figures.map(|one| one.bandwidth)),
            mean_ns: exact(figures.and_then(|one| one.mean)),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            p99_9_ns: quantile(0.999),
        }
    };
    DiskSummary {
        name: name.to_owned(),
        busy: disk.counted.map(|counted| counted.utilization()),
        in_flight: disk.counted.map(|counted| counted.mean_queue()),
        seen: both.as_ref().and_then(DiskFigures::seen),
        figures: figures(both),
        reads: figures(of(Some(Direction::Read))),
        writes: figures(of(Some(Direction::Write))),
    }
}

fn promise(promise: Promise) -> SummaryPromise {
    SummaryPromise { text: promise.text, kept: promise.kept }
}

fn condition(outcome: RequirementOutcome) -> SummaryCondition {
    SummaryCondition { typed: outcome.typed, text: outcome.text, applies: outcome.holds }
}

/// Every point with its repeats.
fn results(document: &Document) -> Vec<SummaryResult> {
    if document.is_experiment() {
        let mut results = Results::of(document, &[Role::Result]);
        if results.spots.is_empty() {
            // The official run of a search is the answer, and its figures are those of the whole.
            results = Results::of(document, &[Role::Probe]);
        }
        return results.spots.iter().map(|spot| of_spot(&results, spot)).collect();
    }
    let results = Results::of_points(document);
    results.spots.iter().map(|spot| of_spot(&results, spot)).collect()
}

fn of_spot(results: &Results<'_>, spot: &Spot<'_>) -> SummaryResult {
    let coordinates = results.axes.iter().zip(&spot.coordinates);
    SummaryResult {
        name: spot.first().point.name.clone(),
        coordinates: coordinates.map(|(axis, at)| (axis.name.clone(), at.label.clone())).collect(),
        trials: spot.counted,
        verdict: spot.verdict,
        figures: of_figures(spot),
        hosts: match spot.trials.as_slice() {
            [(_, only)] => hosts(only),
            _ => Vec::new(),
        },
    }
}

/// What each host did in a trial; empty if one machine applied the load.
fn hosts(trial: &Trial) -> Vec<SummaryHost> {
    let by_host = trial.by_host();
    let of_host = |host: &HostTrial| {
        let (_, own) = by_host.iter().find(|(one, _)| std::ptr::eq(*one, host))?;
        let mut flow = Flow::new(trial.is_open());
        for cell in trial.workers[own.clone()].iter().flat_map(|worker| &worker.cells) {
            Direction::BOTH.iter().for_each(|one| cell.flow(*one).add_to(&mut flow));
        }
        let tail = figures::carried(flow.response_time(), Quantile(0.999));
        let exact = |value: f64| Estimate { value, half_width: None };
        Some(SummaryFigures {
            iops: host.iops,
            bandwidth_bytes_per_second: host.bandwidth,
            mean_ns: host.mean.map(exact),
            p50_ns: host.p50,
            p99_ns: host.p99,
            p99_9_ns: tail.map(|ns| exact(ns as f64)),
        })
    };
    let summary = |host: &HostTrial| SummaryHost {
        host: host.host.clone(),
        lost: host.lost.as_ref().map(|lost| lost.why.clone()),
        verdict: host.verdict,
        doubts: host.doubts.clone(),
        figures: of_host(host),
    };
    trial.hosts.iter().map(summary).collect()
}

fn of_figures(spot: &Spot<'_>) -> SummaryFigures {
    let trials: Vec<&Trial> = spot.trials.iter().map(|(_, trial)| *trial).collect();
    of_summary(&spot.summary, mean(&trials))
}

fn of_summary(summary: &figures::Summary, mean_ns: Option<Estimate>) -> SummaryFigures {
    let at = |place: usize| summary.quantiles.get(place).copied().flatten();
    SummaryFigures {
        iops: summary.iops,
        bandwidth_bytes_per_second: summary.bandwidth,
        mean_ns,
        p50_ns: at(0),
        p99_ns: at(1),
        p99_9_ns: at(2),
    }
}

/// The mean response time of trials, with the half-width that its course over their windows gives.
fn mean(trials: &[&Trial]) -> Option<Estimate> {
    let mut flow = Flow::new(trials.iter().any(|trial| trial.is_open()));
    let mut course = Vec::new();
    for trial in trials {
        flow.merge(&trial.total(None));
        // All streams together: the sum of the times, and the number of I/Os.
        let mut slices: BTreeMap<Span, (f64, f64)> = BTreeMap::new();
        for interval in trial.intervals() {
            let (sum, ios) = slices.entry(interval.start).or_default();
            *sum += interval.times.iter().map(|times| times.sum as f64).sum::<f64>();
            *ios += interval.ios.iter().map(|ios| *ios as f64).sum::<f64>();
        }
        course.extend(slices.into_values().filter(|one| 0.0 < one.1).map(|(sum, ios)| sum / ios));
    }
    let half_width = stats::mean(&course).and_then(|mean| mean.half_width);
    Some(Estimate { value: flow.response_time().mean()?, half_width })
}
