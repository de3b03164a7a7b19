//! One load over several hosts: what each of them did in a trial, how far apart their clocks are, and
//! which of them differs from the others.

mod clock;
mod division;
mod outliers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::findings::{Finding, Unchecked, Verdict};
use crate::spec::Region;
use crate::stats::Estimate;
use crate::units::Span;

pub use clock::{ClockOffset, Exchange, best};
pub use division::bytes_in_words;
pub use outliers::{HOSTS_MIN, Outlier, outliers};

/// What one host did in a trial of several. Its workers are those after the workers of the hosts
/// before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostTrial {
    /// Its name.
    pub host: String,
    /// How many of the trial's workers are its own.
    pub workers: u32,
    /// When its load began; none for simulated targets, whose time is their own, and for a host that
    /// was lost before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<HostStart>,
    /// I/Os per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Estimate>,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Estimate>,
    /// The mean response time in nanoseconds.
    #[serde(default, rename = "mean_ns", skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The median of the response time in nanoseconds.
    #[serde(default, rename = "p50_ns", skip_serializing_if = "Option::is_none")]
    pub p50: Option<Estimate>,
    /// The 99th percentile of the response time in nanoseconds; none if too few I/Os carry it.
    #[serde(default, rename = "p99_ns", skip_serializing_if = "Option::is_none")]
    pub p99: Option<Estimate>,
    /// The verdict of its own trial; none if it was lost before its end.
    pub verdict: Option<Verdict>,
    /// The codes of the findings about its own trial, the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The same findings in full, for the judgment of the whole.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// The checks that it could not make.
    #[serde(skip)]
    pub unchecked: Vec<Unchecked>,
    /// Its part of the regions, of all streams in their order, where hosts divide them; empty if each
    /// host has all of them. The point has them whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Region>,
    /// Why its trial is missing; none if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostHost>,
}

/// When the load of a host began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostStart {
    /// After the common start, by the coordinator's clock; below zero if before it. Nanoseconds.
    pub after_ns: i64,
    /// How far that may be wrong: half of the shortest round trip of a question for the time.
    #[serde(rename = "bound_ns")]
    pub bound: Span,
}

/// A host whose trial is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostHost {
    /// Why, as a clause.
    pub why: String,
    /// The time of the load at which it was last heard of; none if its load had not begun.
    #[serde(default, rename = "after_ns", skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
}

impl HostTrial {
    /// A host whose trial is missing.
    pub fn lost(host: &str, lost: LostHost) -> Self {
        Self {
            host: host.to_owned(),
            workers: 0,
            began: None,
            iops: None,
            bandwidth: None,
            mean: None,
            p50: None,
            p99: None,
            verdict: None,
            doubts: Vec::new(),
            findings: Vec::new(),
            unchecked: Vec::new(),
            regions: Vec::new(),
            lost: Some(lost),
        }
    }
}

/// The time between the first start of a host and the last one, and how far that may be wrong; none
/// with fewer than two that are known.
pub fn apart(hosts: &[HostTrial]) -> Option<(Span, Span)> {
    let starts: Vec<HostStart> = hosts.iter().filter_map(|host| host.began).collect();
    let first = starts.iter().min_by_key(|start| start.after_ns)?;
    let last = starts.iter().max_by_key(|start| start.after_ns)?;
    if starts.len() < 2 {
        return None;
    }
    let most = |than: &HostStart| {
        let others = starts.iter().filter(|other| !std::ptr::eq(*other, than));
        others.map(|other| other.bound).max().unwrap_or_default()
    };
    let bound = starts.iter().map(|start| start.bound + most(start)).max().unwrap_or_default();
    Some((Span(last.after_ns.abs_diff(first.after_ns)), bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn began(after_ns: i64, bound: u64) -> HostTrial {
        let lost = LostHost { why: String::new(), after: None };
        let began = Some(HostStart { after_ns, bound: Span(bound) });
        HostTrial { began, lost: None, ..HostTrial::lost("a", lost) }
    }

    #[test]
    fn hosts_begin_as_far_apart_as_the_first_and_the_last() {
        let all = [began(-200, 30), began(500, 10), began(100, 50)];
        assert_eq!(apart(&all), Some((Span(700), Span(80))));
        assert_eq!(apart(&all[..1]), None);
        assert_eq!(apart(&[]), None);
    }
}
