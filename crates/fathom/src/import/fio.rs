//! The output of fio with `--output-format=json` or `json+`, of its versions 2 and 3.
//!
//! Times are in nanoseconds (`clat_ns`), and in microseconds (`clat`) before fio 3. fio prints
//! missing values as zeros: a direction without an I/O is left out, and so is a time without a
//! value.

use std::collections::BTreeMap;

use fathom_core::Refusal;
use fathom_core::measure::Direction;
use fathom_report::document::{self, JobFlow, JobTimes};
use serde::de::DeserializeSeed as _;
use serde_json::Value;

use super::bounded::{self, Limits};

/// The remedy for any other content.
const NAME_ONE: &str =
    "name a file that `fio --output-format=json` wrote, or a result of Diskplorer";

/// The most letters that the common options of all jobs may have together, over all jobs.
const GLOBAL_MAX: usize = 64 << 20;

/// An output of fio.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// "fio-3.33"; none if it is missing.
    pub version: Option<String>,
    /// The time of the run, in its own words.
    pub time: Option<String>,
    /// Options of all jobs.
    global: BTreeMap<String, String>,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// fathom's additional data, if fathom wrote it.
    pub told: Option<Value>,
}

/// A job in fio's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its own options.
    options: BTreeMap<String, String>,
    error: Option<i64>,
    /// Its I/Os, in each direction in which it did any.
    pub flows: Vec<JobFlow>,
    /// fathom's additional data, if fathom wrote it.
    pub told: Option<Value>,
}

impl Output {
    /// Reads the text of the file with this name, from its first brace on: fio may print warnings
    /// before. It may have at most this many jobs.
    ///
    /// # Errors
    ///
    /// When it is something else.
    pub fn read(name: &str, text: &str, most: usize) -> Result<Self, Refusal> {
        let refuse = |problem: String, remedy: &str| Refusal::file(name, problem, remedy);
        let other = || refuse("it is no result of fio".to_owned(), NAME_ONE);
        let begins = |line: &str| line.trim_start().starts_with('{');
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            if begins(line) {
                break;
            }
            start += line.len();
        }
        let json = text.get(start..).filter(|json| !json.is_empty()).ok_or_else(other)?;
        let limits = Limits::new(most);
        let seed = bounded::OutputSeed {
            // For a server, fio lists its clients.
            lists: &["jobs", "client_stats"],
            beside: &["fio version", "time", "global options", "fathom"],
            job: Job::of,
            limits: &limits,
        };
        let read = seed.deserialize(&mut serde_json::Deserializer::from_str(json));
        let mut parts = read.map_err(|why| match limits.exceeded() {
            Some(what) => refuse(format!("it has more {what} than fio can have"), NAME_ONE),
            None if why.is_eof() => {
                refuse(format!("it ends before it is complete ({why})"), "fetch it again")
            }
            None if why.is_data() => other(),
            None => refuse(format!("it is damaged ({why})"), "fetch it again"),
        })?;
        parts.jobs.sort_by_key(|(name, _)| name != "jobs");
        let jobs = parts.jobs.into_iter().next().ok_or_else(other)?.1;
        let text = |name: &str| parts.beside.get(name).and_then(Value::as_str).map(str::to_owned);
        let global = options(parts.beside.get("global options"));
        // Each job gets a copy of them.
        let length: usize = global.iter().map(|(name, value)| name.len() + value.len()).sum();
        if GLOBAL_MAX < length.saturating_mul(jobs.len()) {
            let problem = "its jobs have more options than fio can have".to_owned();
            return Err(refuse(problem, NAME_ONE));
        }
        Ok(Self {
            version: text("fio version"),
            time: text("time"),
            global,
            jobs,
            told: parts.beside.get("fathom").cloned(),
        })
    }

    /// The files and devices that the jobs name.
    pub fn targets(&self) -> Vec<String> {
        let all = std::iter::once(&self.global).chain(self.jobs.iter().map(|job| &job.options));
        let names = all.filter_map(|options| options.get("filename"));
        names.flat_map(|names| names.split(':')).filter(|n| !n.is_empty()).map(Into::into).collect()
    }

    /// The jobs for the document.
    pub fn described(&self) -> impl Iterator<Item = document::Job> + '_ {
        self.jobs.iter().map(|job| {
            let mut options = self.global.clone();
            options.extend(job.options.clone());
            let flows = job.flows.clone();
            document::Job { name: job.name.clone(), options, error: job.error, flows }
        })
    }
}

impl Job {
    fn of(job: &Value) -> Self {
        let flow = |(name, direction): (&str, Direction)| flow(job.get(name)?, direction);
        let both = [("read", Direction::Read), ("write", Direction::Write)];
        Self {
            name: job.get("jobname").and_then(Value::as_str).unwrap_or("unnamed").to_owned(),
            options: options(job.get("job options")),
            error: job.get("error").and_then(Value::as_i64),
            flows: both.into_iter().filter_map(flow).collect(),
            told: job.get("fathom").cloned(),
        }
    }

    /// Its I/Os in a direction.
    pub fn flow(&self, direction: Direction) -> Option<&JobFlow> {
        self.flows.iter().find(|flow| flow.direction == direction)
    }
}

fn options(value: Option<&Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// A number, in any notation.
fn number(value: Option<&Value>) -> Option<f64> {
    let number = match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

fn whole(value: Option<&Value>) -> Option<u64> {
    number(value).map(|number| number.round() as u64)
}

/// The I/Os in a direction; none if there were none.
fn flow(value: &Value, direction: Direction) -> Option<JobFlow> {
    let get = |name: &str| value.get(name);
    let milliseconds = number(get("runtime")).filter(|ms| *ms > 0.0);
    // Before fio 3 there were only KiB.
    let kib = || number(get("bw")).map(|kib| kib * 1024.0);
    let (nanoseconds, microseconds) = (get("clat_ns"), get("clat"));
    let times = match (nanoseconds, microseconds) {
        (Some(clat), _) => times(clat, 1.0),
        (None, Some(clat)) => times(clat, 1000.0),
        (None, None) => JobTimes::default(),
    };
    let flow = JobFlow {
        direction,
        window_ns: milliseconds.map(|ms| (ms * 1e6) as u64),
        ios: whole(get("total_ios")),
        iops: number(get("iops")),
        bandwidth_bytes: number(get("bw_bytes")).or_else(kib),
        service_time: times,
    };
    let did = [flow.ios.map(|ios| ios as f64), flow.iops, flow.bandwidth_bytes];
    let did_any = did.into_iter().flatten().any(|number| number > 0.0);
    (did_any || !flow.service_time.quantiles.is_empty()).then_some(flow)
}

/// A time with its unit in nanoseconds. A missing value is left out.
fn times(value: &Value, unit: f64) -> JobTimes {
    let get = |name: &str| value.get(name);
    let time = |name: &str| number(get(name)).map(|time| time * unit);
    let list = |name: &str| -> Vec<(f64, f64)> {
        let pairs = get(name).and_then(Value::as_object).into_iter().flatten();
        let pair = |(name, value): (&String, &Value)| {
            Some((name.parse::<f64>().ok()?, number(Some(value))?))
        };
        let mut pairs: Vec<(f64, f64)> = pairs.filter_map(pair).collect();
        pairs.retain(|(key, _)| key.is_finite());
        pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
        pairs
    };
    // Versions before 3 fill the list up with the percentile 0.
    let percentiles = list("percentile").into_iter().filter(|(p, _)| *p > 0.0 && *p <= 100.0);
    let quantiles = percentiles.map(|(percent, time)| (percent / 100.0, time * unit)).collect();
    let buckets = list("bins").into_iter().filter(|(_, held)| *held > 0.0);
    let buckets: Vec<(u64, u64)> =
        buckets.map(|(middle, held)| ((middle * unit) as u64, held as u64)).collect();
    let sum = || buckets.iter().fold(0, |sum: u64, one| sum.saturating_add(one.1));
    let counted = (!buckets.is_empty()).then(sum);
    let count = whole(get("N")).or(counted);
    match count {
        Some(0) => JobTimes { quantiles, ..JobTimes::default() },
        count => JobTimes {
            count,
            min_ns: time("min"),
            max_ns: time("max"),
            mean_ns: time("mean"),
            deviation_ns: time("stddev"),
            quantiles,
            buckets,
        },
    }
}
