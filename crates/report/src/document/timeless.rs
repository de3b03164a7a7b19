//! A trial's line without what it did over time: nine tenths of a result file are skipped.

use fathom_core::hosts::HostTrial;
use serde::Deserialize;

use super::{
    BackendKind, Counters, Finding, Place, Point, Traced, Trial, Unchecked, Verdict, Worker, point,
};

/// The parts of a trial that have one value for the whole window, as in [`Trial`].
#[derive(Deserialize)]
pub struct Timeless {
    #[serde(deserialize_with = "point::of_either_version")]
    point: Point,
    #[serde(default)]
    place: Place,
    backend: BackendKind,
    backend_reason: String,
    started: String,
    started_unix_ns: u64,
    window_ns: u64,
    interrupted: bool,
    #[serde(default)]
    ended_early: bool,
    verdict: Verdict,
    findings: Vec<Finding>,
    unchecked: Vec<Unchecked>,
    workers: Vec<Worker>,
    counters: Option<Counters>,
    #[serde(default)]
    traced: Option<Traced>,
    #[serde(default)]
    hosts: Vec<HostTrial>,
}

impl From<Timeless> for Trial {
    fn from(timeless: Timeless) -> Self {
        Self {
            point: timeless.point,
            place: timeless.place,
            backend: timeless.backend,
            backend_reason: timeless.backend_reason,
            started: timeless.started,
            started_unix_ns: timeless.started_unix_ns,
            window_ns: timeless.window_ns,
            interrupted: timeless.interrupted,
            ended_early: timeless.ended_early,
            verdict: timeless.verdict,
            findings: timeless.findings,
            unchecked: timeless.unchecked,
            workers: timeless.workers,
            counters: timeless.counters,
            traced: timeless.traced,
            breakdown: None,
            hosts: timeless.hosts,
            buckets: None,
            series: Vec::new(),
            intervals: Vec::new(),
        }
    }
}
