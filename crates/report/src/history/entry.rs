//! What a history keeps of a result, and what makes two results comparable.

use std::collections::BTreeSet;

use fathom_core::{Quantile, Span};
use serde_json::{Value, json};

use super::NotUsed;
use crate::comparison::Identity;
use crate::document::Metric;
use crate::document::{
    Command, Document, Found, Header, Point, Role, Target, TargetKind, Trial, Verdict,
};
use crate::figures;
use crate::results::{Results, chosen};

/// What is asked of the results.
#[derive(Clone, Debug, Default)]
pub struct HistoryRequest {
    /// The figures; if there are none, those that can change: IOPS and p99 of a closed loop, and the
    /// mean and p99 of an open loop, whose schedule sets the IOPS.
    pub metrics: Vec<Metric>,
    /// Whether results of different hosts belong together even if only the host's name tells their
    /// targets apart.
    pub any_host: bool,
}

/// A result.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    /// Its file, relative to the folder.
    pub file: String,
    /// Its header.
    pub(super) header: Header,
    /// What is the same in results that belong together.
    pub(super) key: String,
    /// The workload in words.
    pub(super) workload: String,
    /// The target in words.
    pub(super) target: String,
    /// The backends that carried its I/Os.
    pub(super) backend: String,
    /// Its points with their figures.
    pub(super) points: Vec<EntryPoint>,
    /// The trials that do not count.
    pub(super) left_out: Vec<NotUsed>,
}

/// A point of a result.
#[derive(Clone, Debug)]
pub(super) struct EntryPoint {
    pub name: String,
    /// Each figure; none if it is not known.
    pub figures: Vec<(Metric, Option<f64>)>,
}

const P99: Metric = Metric::Quantile(Quantile(0.99));

impl HistoryEntry {
    /// What a history keeps of a result, whose trials need no series.
    ///
    /// # Errors
    ///
    /// A clause about the result, if it has no figures of trials.
    pub fn of(file: &str, document: Document, request: &HistoryRequest) -> Result<Self, String> {
        if document.header.imported.is_some() {
            return Err("another program measured it, and it has no trials".to_owned());
        }
        if document.trials.is_empty() {
            return Err("it has no finished trial".to_owned());
        }
        let mut left_out = Vec::new();
        let mut points = Vec::new();
        let of_points = points_of(&document);
        if of_points.is_empty() {
            return Err("it has no result: its search did not come to one".to_owned());
        }
        for (name, trials) in &of_points {
            let worth = |trial: &&&Trial| why_not(trial).is_none();
            let why = trials.iter().filter_map(|trial| why_not(trial));
            left_out.extend(why.map(|why| match of_points.len() {
                1 => why,
                _ => format!("{name}: {why}"),
            }));
            let trials: Vec<&Trial> = trials.iter().filter(worth).copied().collect();
            if let Some(first) = trials.first() {
                let figures = metrics(first, request).into_iter();
                let figures = figures.map(|one| (one, one.of(&trials).map(|known| known.value)));
                points.push(EntryPoint { name: name.clone(), figures: figures.collect() });
            }
        }
        if document.torn {
            left_out.push("its last line is torn: a trial may be missing".to_owned());
        }
        let backends: BTreeSet<&str> =
            document.trials.iter().map(|trial| trial.backend.name()).collect();
        let not_used = |why: String| NotUsed { file: file.to_owned(), why };
        let (key, workload) = workload(&document);
        let (target_key, target) = targets(&document.header, request.any_host);
        Ok(Self {
            file: file.to_owned(),
            key: format!("{key}\n{target_key}"),
            workload,
            target,
            backend: backends.into_iter().collect::<Vec<_>>().join(", "),
            points,
            left_out: left_out.into_iter().map(not_used).collect(),
            header: document.header,
        })
    }

    /// The order of time, which is the same whatever the order of the files.
    pub(super) fn order(&self) -> (u64, &str) {
        (self.header.created_unix_ns, &self.file)
    }

    /// Whether another file holds the same result.
    pub(super) fn is_copy(&self, other: &Self) -> bool {
        let of = |entry: &Self| (entry.header.created_unix_ns, entry.header.seed);
        let lines = (&self.header.command_line, &other.header.command_line);
        of(self) == of(other) && lines.0 == lines.1 && self.header.host == other.header.host
    }

    /// A figure of a point.
    pub(super) fn figure(&self, point: &str, figure: Metric) -> Option<f64> {
        let point = self.points.iter().find(|one| one.name == point)?;
        point.figures.iter().find(|one| one.0 == figure)?.1
    }
}

/// The figures that are asked of a point.
fn metrics(trial: &Trial, request: &HistoryRequest) -> Vec<Metric> {
    match (request.metrics.is_empty(), trial.is_open()) {
        (false, _) => request.metrics.clone(),
        (true, false) => Vec::from([Metric::Iops, P99]),
        (true, true) => Vec::from([Metric::Mean, P99]),
    }
}

/// Why a trial does not count: a clause about the result.
fn why_not(trial: &Trial) -> Option<String> {
    if trial.verdict == Verdict::Void {
        let void =
            |one: &&crate::document::Finding| one.severity == crate::document::Severity::Void;
        let codes: Vec<&str> =
            trial.findings.iter().filter(void).map(|one| one.code.as_str()).collect();
        return Some(format!("its trial is void ({})", codes.join(", ")));
    }
    trial.interrupted.then(|| "its trial was interrupted".to_owned())
}

/// The points of a result, each with its trials: every distinct point of a run, every place of a
/// sweep, and what a search chose.
fn points_of(document: &Document) -> Vec<(String, Vec<&Trial>)> {
    let of = |trials: Vec<(usize, _)>| trials.into_iter().map(|(_, trial)| trial).collect();
    if document.is_experiment() {
        let found = document.found();
        if matches!(found, Some(Found::Peak(_))) {
            let chosen = chosen(document).map(|spot| ("the load that was chosen".to_owned(), spot));
            return chosen.map(|(name, spot)| (name, of(spot.trials))).into_iter().collect();
        }
        let spots = Results::of(document, &[Role::Result]).spots.into_iter();
        return spots.map(|spot| (spot.name(), of(spot.trials))).collect();
    }
    let mut points: Vec<(Value, String, Vec<&Trial>)> = Vec::new();
    for trial in &document.trials {
        let key = point_key(&trial.point, true);
        match points.iter_mut().find(|one| one.0 == key) {
            Some(one) => one.2.push(trial),
            None => {
                let same = points.iter().filter(|one| one.1 == trial.point.name).count();
                let name = match same {
                    0 => trial.point.name.clone(),
                    n => format!("{} ({})", trial.point.name, n + 1),
                };
                points.push((key, name, Vec::from([trial])));
            }
        }
    }
    points.into_iter().map(|(_, name, trials)| (name, trials)).collect()
}

/// A point without what does not change its figures: its name, its seed, and how finely its series is
/// cut. Without the regions of a scratch file, whose size follows from the free space.
fn point_key(point: &Point, regions: bool) -> Value {
    let plain = Point {
        name: String::new(),
        seed: 0,
        interval: Span(0),
        buckets: None,
        looks: Vec::new(),
        ..point.clone()
    };
    let mut key = json!(plain);
    if !regions {
        let streams = key["streams"].as_array_mut().into_iter().flatten();
        streams.for_each(|stream| stream["regions"] = Value::Null);
    }
    key
}

/// What makes a workload the same, and the workload in words.
fn workload(document: &Document) -> (String, String) {
    let header = &document.header;
    let command = header.command.name();
    if let Some(experiment) = &header.experiment {
        let key = json!([
            command,
            experiment.name,
            point_key(&experiment.base, true),
            experiment.axes,
            experiment.settings
        ]);
        let axes: Vec<String> = experiment
            .axes
            .iter()
            .map(|axis| match axis.labels.as_slice() {
                // A search finds its values as it goes.
                [] => axis.name.clone(),
                labels => format!("{}={}", axis.name, labels.join(",")),
            })
            .collect();
        let name = match experiment.name == command {
            true => command.to_owned(),
            false => format!("{command} {}", experiment.name),
        };
        let load = experiment.base.streams.iter().map(figures::load).collect::<Vec<_>>();
        let parts = [name, load.join("; "), axes.join(", ")];
        let words: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return (key.to_string(), words.join(": "));
    }
    let regions = header.command != Command::Quick;
    let mut keys: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for trial in &document.trials {
        let key = point_key(&trial.point, regions).to_string();
        if !keys.contains(&key) {
            keys.push(key);
            let streams = &trial.point.streams;
            let streams = streams.iter().map(|stream| figures::stream_in_words(trial, stream));
            words.push(format!(
                "{}; {}",
                streams.collect::<Vec<_>>().join(" + "),
                trial.point.window
            ));
        }
    }
    // A run that was cut off has fewer points, and the others are the same.
    let name = match header.command {
        Command::Quick => (command.to_owned(), "quick: the portrait of a storage".to_owned()),
        _ => (keys.join("\n"), format!("{command}: {}", words.join("; "))),
    };
    (format!("{command} {}", name.0), name.1)
}

/// What makes the targets the same, and the targets in words.
fn targets(header: &Header, any_host: bool) -> (String, String) {
    let host = match &header.host {
        Some(host) => host.name.clone(),
        None => header.hosts.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    let mut keys = Vec::new();
    let mut words = Vec::new();
    let mut is_hosts = false;
    for (nth, target) in header.targets.iter().enumerate() {
        let serial = serial(header, nth, target);
        let model = target.layers.first().and_then(|layer| layer.disk.as_ref()?.model.clone());
        let model = model.unwrap_or_default();
        match serial {
            _ if target.kind == TargetKind::Simulated => keys.push(target.name.clone()),
            Some(serial) => keys.push(format!("{model} {serial}")),
            None => {
                is_hosts = true;
                keys.push(format!("{} {}", target.kind.name(), whole_place(target)));
            }
        }
        let about = match model.as_str() {
            "" => String::new(),
            model if target.kind == TargetKind::File => format!(" on {model}"),
            model => format!(" ({model})"),
        };
        words.push(format!("{}{about}", figures::place_name(target)));
    }
    let many = header.hosts.len();
    let on = match (is_hosts && !any_host, many) {
        (false, _) => String::new(),
        (true, 0 | 1) => format!(" on {host}"),
        (true, many) => format!(" on {many} hosts"),
    };
    if is_hosts && !any_host {
        keys.push(host);
    }
    (keys.join("\n"), format!("{}{on}", words.join(", ")))
}

/// What tells a device apart from all others; none for a file, which its path tells apart.
fn serial(header: &Header, nth: usize, target: &Target) -> Option<String> {
    let is_device = matches!(target.kind, TargetKind::BlockDevice | TargetKind::NvmeGeneric);
    let identity = header.identities.get(nth).filter(|_| is_device)?;
    Identity::of(identity).device()
}

/// The whole path of a target, or of its folder if it is a scratch file.
fn whole_place(target: &Target) -> &str {
    match figures::place_name(target) {
        place if place == target.name => &target.path,
        folder => folder,
    }
}
