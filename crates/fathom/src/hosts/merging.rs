//! Makes one trial of the trials of all hosts.

use std::collections::BTreeSet;

use fathom_core::Quantile;
use fathom_core::experiment::Planned;
use fathom_core::findings::{Finding, Obstacle, Unchecked};
use fathom_core::hosts::{ClockOffset, HostStart, HostTrial, LostHost};
use fathom_core::measure::Record;
use fathom_core::plan::worker_count;
use fathom_core::spec::{Point, Region};
use fathom_core::stats;
use fathom_core::trial::Trial;
use fathom_core::verdict::known_code;
use fathom_report::document;

use crate::error::Error;

/// What came of a host.
pub struct Measured {
    /// Its name.
    pub name: String,
    /// When its load began, by its own clock, and how far that is from the one here.
    pub began: Option<(u64, ClockOffset)>,
    /// Its part of the regions; empty if hosts do not divide them.
    pub regions: Vec<Region>,
    /// Its trial.
    pub measured: Result<document::Trial, LostHost>,
}

/// Reads the trial of a host, with the checks of every result file. Its point has to be the planned one,
/// with as many workers as that has.
///
/// # Errors
///
/// When it cannot be used: why.
pub fn read(
    header: &str,
    trial: &str,
    is_planned: impl Fn(&Point) -> bool,
) -> Result<document::Trial, String> {
    let text = format!("{header}\n{trial}\n");
    let document = document::read(text.as_bytes()).map_err(|error| error.problem())?;
    let trial = document.trials.into_iter().next().ok_or("its trial is torn".to_owned())?;
    let regions = trial.point.streams.iter().flat_map(|stream| &stream.regions);
    let targets: BTreeSet<u32> = regions.map(|region| region.target).collect();
    let mut cells = trial.workers.iter().flat_map(|worker| &worker.cells);
    let workers: u32 = trial.point.streams.iter().map(worker_count).sum();
    let fits = trial.workers.len() == workers as usize
        && cells.all(|cell| targets.contains(&cell.target))
        && trial.window() <= trial.point.window;
    match fits && is_planned(&trial.point) {
        true => Ok(trial),
        false => Err("its trial is not that of the planned load".to_owned()),
    }
}

/// The trial of all hosts, whose common start was then by the clock here.
///
/// # Errors
///
/// When no host has a trial.
pub fn together(planned: Planned, at: u64, all: Vec<Measured>) -> Result<Trial, Error> {
    let mut hosts = Vec::with_capacity(all.len());
    let mut records = Vec::with_capacity(all.len());
    let mut carried = None;
    let mut opened: Option<u64> = None;
    for Measured { name, began, regions, measured } in all {
        let trial = match measured {
            Ok(trial) => trial,
            Err(lost) => {
                hosts.push(HostTrial { regions, ..HostTrial::lost(&name, lost) });
                continue;
            }
        };
        let start = |(began, offset): (u64, ClockOffset)| HostStart {
            after_ns: offset.here(began).wrapping_sub(at) as i64,
            bound: offset.bound,
        };
        let window = began.map(|(_, offset)| offset.here(trial.started_unix_ns));
        opened = opened.into_iter().chain(window).chain((window.is_none()).then_some(at)).min();
        let record = trial.record();
        let began = began.map(start);
        hosts.push(HostTrial { began, regions, ..of_host(name, &trial, &record) });
        carried.get_or_insert((trial.backend, trial.backend_reason));
        records.push(record);
    }
    let Some((backend, backend_reason)) = carried else {
        let why = hosts.iter().find_map(|host| host.lost.as_ref()).map(|lost| lost.why.clone());
        return Err(Error::target(
            hosts.iter().map(|host| host.host.as_str()).collect::<Vec<_>>().join(", "),
            format!("no host has a trial: {}", why.unwrap_or_default()),
            "look at the hosts: each has a result file of its own",
        ));
    };
    let record = Record::together(records);
    Ok(Trial {
        point: planned.point,
        place: planned.place,
        backend,
        backend_reason,
        started_unix_ns: opened.unwrap_or(at),
        record,
        counters: None,
        traced: None,
        breakdown: None,
        hosts,
        is_void: false,
        doubt: None,
    })
}

/// What a host did.
fn of_host(name: String, trial: &document::Trial, record: &Record) -> HostTrial {
    let quantile = |quantile: f64| stats::response_time(record, None, None, Quantile(quantile));
    HostTrial {
        host: name,
        workers: record.workers.len() as u32,
        began: None,
        iops: stats::iops(record, None, None),
        bandwidth: stats::bandwidth(record, None, None),
        mean: record.total(None).response_time().mean(),
        p50: quantile(0.5),
        p99: quantile(0.99),
        verdict: Some(trial.verdict),
        doubts: trial.findings.iter().map(|finding| finding.code.clone()).collect(),
        findings: trial.findings.iter().filter_map(finding).collect(),
        unchecked: trial.unchecked.iter().filter_map(unchecked).collect(),
        regions: Vec::new(),
        lost: None,
    }
}

/// A finding as the core has it. All hosts have the same version, so that each code is known here.
fn finding(told: &document::Finding) -> Option<Finding> {
    Some(Finding {
        code: known_code(&told.code)?,
        severity: told.severity,
        evidence: told.evidence.clone(),
        advice: told.advice.clone(),
    })
}

fn unchecked(told: &document::Unchecked) -> Option<Unchecked> {
    Some(Unchecked {
        code: known_code(&told.code)?,
        why: told.why.clone(),
        obstacle: if told.missing { Obstacle::Machine } else { Obstacle::Load },
    })
}
