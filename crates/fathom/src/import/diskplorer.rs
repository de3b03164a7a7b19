//! The cells of a latency map among the jobs of fio, as Diskplorer names them:
//! `job(r_idx=3,w_idx=2,write_bw=120943986,r_iops=40335)`. Its other jobs fill and probe the disk.
//!
//! A cell counts as carried by the rule of Diskplorer's chart script: both rates are no more than a
//! share below those in its name. An export of fathom itself says how each of its cells is known.

use std::collections::BTreeMap;

use fathom_core::Quantile;
use fathom_core::Refusal;
use fathom_core::experiment::map::sentences;
use fathom_core::experiment::{self as core, CellDoubt, CellKind, MapCell, MapFound};
use fathom_core::measure::Direction;
use fathom_core::stats::Estimate;
use fathom_core::verdict::is_code;
use fathom_report::document::Found;
use serde::Deserialize;
use serde_json::Value;

use super::fio::Job;

/// The percentiles of Diskplorer's charts.
const QUANTILES: [Quantile; 4] = [Quantile(0.5), Quantile(0.95), Quantile(0.99), Quantile(0.999)];

/// No map has more steps: a typing error must not take all memory.
const STEPS_MAX: u32 = 1000;

/// A cell's place and loads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CellName {
    read: u32,
    write: u32,
    /// Bytes written per second.
    bandwidth: f64,
    /// Reads per second.
    rate: f64,
}

impl CellName {
    /// The content of a job's name; none if it is not a cell's.
    fn of(job: &Job) -> Option<Self> {
        let mut rest = job.name.as_str();
        let mut next = |before: &str| -> Option<f64> {
            rest = rest.strip_prefix(before)?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            rest = after;
            digits.parse().ok()
        };
        let read = next("job(r_idx=")?;
        let write = next(",w_idx=")?;
        let bandwidth = next(",write_bw=")?;
        let rate = next(",r_iops=")?;
        let step = |step: f64| (step < f64::from(STEPS_MAX)).then_some(step as u32);
        let told = |name: &str| job.told.as_ref()?.get(name)?.as_f64();
        Some(Self {
            read: step(read)?,
            write: step(write)?,
            bandwidth: told("write_bandwidth_bytes").unwrap_or(bandwidth),
            rate: told("read_rate_iops").unwrap_or(rate),
        })
    }
}

/// The map whose cells the jobs are, and its description in words; none if no job is a cell.
///
/// # Errors
///
/// When cells contradict each other; about the file with this name.
pub fn map(
    name: &str,
    jobs: &[&Job],
    told: Option<&Value>,
    allowed_error: f64,
) -> Result<Option<(Found, Vec<String>)>, Refusal> {
    let mut cells: BTreeMap<(u32, u32), (CellName, &Job)> = BTreeMap::new();
    for job in jobs {
        let Some(named) = CellName::of(job) else { continue };
        if cells.insert((named.write, named.read), (named, job)).is_some() {
            let problem = format!(
                "the cell {} is in it twice, so each job tells a part of its I/Os and none all of \
                 them",
                job.name
            );
            let remedy = "measure with group_reporting, as Diskplorer does";
            return Err(Refusal::file(name, problem, remedy));
        }
    }
    if cells.is_empty() {
        return Ok(None);
    }
    let steps = |of: &dyn Fn(&CellName) -> (u32, f64), what: &str| {
        let steps: BTreeMap<u32, f64> = cells.values().map(|(named, _)| of(named)).collect();
        let whole = steps.keys().copied().eq(0..steps.len() as u32);
        let problem = format!("no cell has the {what} of one of its steps");
        let missing = || Refusal::file(name, problem, "name all its files");
        whole.then(|| steps.into_values().collect::<Vec<f64>>()).ok_or_else(missing)
    };
    let listed = |name: &str| told.and_then(|told| told.get(name)).and_then(Value::as_array);
    let quantiles: Vec<Quantile> = match listed("quantiles") {
        Some(list) => quantiles(name, list)?,
        None => QUANTILES.to_vec(),
    };
    let doubts = listed("doubts").into_iter().flatten().filter_map(Value::as_str);
    let found = MapFound {
        write_bandwidths: steps(&|named| (named.write, named.bandwidth), "write bandwidth")?,
        read_rates: steps(&|named| (named.read, named.rate), "read rate")?,
        cells: cells
            .values()
            .map(|(named, job)| cell(named, job, &quantiles, allowed_error))
            .collect(),
        quantiles,
        validation: Vec::new(),
        drift: None,
        doubts: doubts.map(str::to_owned).collect(),
    };
    let sentences = sentences(&found, &|_| None);
    Ok(Some((Found::from(&core::Found::Map(found)), sentences)))
}

/// The quantiles of which every cell has a response time.
fn quantiles(name: &str, list: &[Value]) -> Result<Vec<Quantile>, Refusal> {
    let quantile = |value: &Value| value.as_f64().filter(|one| 0.0 < *one && *one < 1.0);
    let quantiles: Option<Vec<Quantile>> =
        list.iter().map(|value| quantile(value).map(Quantile)).collect();
    quantiles.filter(|quantiles| !quantiles.is_empty()).ok_or_else(|| {
        let list = Value::from(list);
        let remedy = "name a result in which they are numbers between 0 and 1, at least one";
        Refusal::file(name, format!("its quantiles are {list}"), remedy)
    })
}

fn cell(named: &CellName, job: &Job, quantiles: &[Quantile], allowed_error: f64) -> MapCell {
    let reads = job.flow(Direction::Read);
    let writes = job.flow(Direction::Write);
    let told = job.told.as_ref();
    let kind =
        told.and_then(|told| CellKind::deserialize(told.get("kind")?).ok()).unwrap_or_else(|| {
            let rate = reads.and_then(|flow| flow.iops).unwrap_or(0.0);
            let bandwidth = writes.and_then(|flow| flow.bandwidth_bytes).unwrap_or(0.0);
            // By the comparison of the chart script.
            let least = 1.0 - allowed_error;
            match bandwidth.floor() < least * named.bandwidth || rate.floor() < least * named.rate {
                true => CellKind::Overloaded,
                false => CellKind::Measured,
            }
        });
    let withheld: Vec<f64> = told
        .and_then(|told| told.get("withheld")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    let time = |quantile: &Quantile| -> Option<Estimate> {
        let times = &reads?.service_time;
        let value = match told {
            // It has withheld quantiles with too few samples.
            Some(_) if withheld.contains(&quantile.0) => None,
            Some(_) => {
                let same = |told: &&(f64, f64)| (told.0 - quantile.0).abs() < 1e-9;
                times.quantiles.iter().find(same).map(|told| told.1)
            }
            None => times.at(*quantile),
        };
        Some(Estimate { value: value.filter(|value| *value > 0.0)?, half_width: None })
    };
    let carried = !matches!(kind, CellKind::Overloaded | CellKind::Beyond);
    let response_time_ns = quantiles.iter().map(|quantile| time(quantile).filter(|_| carried));
    MapCell {
        write: named.write,
        read: named.read,
        kind,
        response_time_ns: response_time_ns.collect(),
        doubt: told.and_then(|told| doubt(told.get("doubt")?)),
    }
}

/// The doubt about a cell, if it is one of this version.
fn doubt(told: &Value) -> Option<CellDoubt> {
    CellDoubt::deserialize(told).ok().filter(|doubt| is_code(&doubt.code))
}
