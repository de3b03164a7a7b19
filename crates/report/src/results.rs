//! The trials of an experiment by their places: those at one place are repeats of each other and
//! have common figures. Tables and charts of every kind use this arrangement.

use fathom_core::measure::{Flow, Stretch};
use fathom_core::stats::{self, Estimate, Level, Slice};
use fathom_core::{Bytes, Quantile, Span};

use crate::document::{
    Axis, Coordinate, Document, Found, PeakFound, Point, Role, Scale, Severity, Trial, Verdict,
};
use crate::figures::{self, Summary, TrialPart};

/// The percentiles of every result.
pub const QUANTILES: [Quantile; 3] = [Quantile(0.5), Quantile(0.99), Quantile(0.999)];

/// From this block size on people think in bytes.
const LARGE_BLOCK: Bytes = Bytes(65_536);

/// The results of an experiment, in the order of its axes.
#[derive(Debug)]
pub struct Results<'a> {
    /// Its axes, the first one varying slowest.
    pub axes: Vec<Axis>,
    /// Each place at which there is a trial, in the order of the axes.
    pub spots: Vec<Spot<'a>>,
}

/// Trials with their numbers, from 1.
pub type Numbered<'a> = Vec<(usize, &'a Trial)>;

/// All trials at one place.
#[derive(Debug)]
pub struct Spot<'a> {
    /// Its place, for each axis.
    pub coordinates: Vec<Coordinate>,
    /// The places of these labels on their axes.
    pub steps: Vec<usize>,
    /// The trials with their numbers, from 1.
    pub trials: Numbered<'a>,
    /// The figures of all trials that are not void; of the void ones if there are no others.
    pub summary: Summary,
    /// The mean and the largest response time of the same trials, in nanoseconds.
    pub mean_and_max: Option<(f64, u64)>,
    /// The gravest verdict.
    pub verdict: Verdict,
    /// The number of trials behind the figures.
    pub counted: usize,
    /// What is known of each figure, for comparisons with other points: those of [`Figure::ALL`].
    levels: [Option<Level>; Figure::ALL.len()],
}

impl<'a> Results<'a> {
    /// The trials of these roles; none if they have no coordinates.
    pub fn of(document: &'a Document, roles: &[Role]) -> Self {
        Self::of_those(document, |trial| roles.contains(&trial.place.role))
    }

    /// The requested trials; none if they have no coordinates.
    pub fn of_those(document: &'a Document, wanted: impl Fn(&Trial) -> bool) -> Self {
        let wanted = document
            .trials
            .iter()
            .enumerate()
            .filter(|(_, trial)| wanted(trial) && !trial.place.coordinates.is_empty());
        let trials: Numbered<'_> = wanted.map(|(nth, trial)| (nth + 1, trial)).collect();
        let mut axes = known_axes(document).unwrap_or_default();
        if axes.is_empty() {
            axes = axes_of(&trials);
        }
        let mut spots: Vec<(Vec<Coordinate>, Numbered<'_>)> = Vec::new();
        for (number, trial) in trials {
            let Some(coordinates) = place_on(&axes, trial) else { continue };
            let same = |other: &[Coordinate]| {
                other.iter().zip(&coordinates).all(|(one, two)| one.label == two.label)
            };
            match spots.iter_mut().find(|(other, _)| same(other)) {
                Some((_, all)) => all.push((number, trial)),
                None => spots.push((coordinates, Vec::from([(number, trial)]))),
            }
        }
        // A label that the axis does not name goes to its end.
        for (coordinates, _) in &spots {
            for (axis, coordinate) in axes.iter_mut().zip(coordinates) {
                if !axis.labels.contains(&coordinate.label) {
                    axis.labels.push(coordinate.label.clone());
                }
            }
        }
        let mut spots: Vec<Spot<'_>> =
            spots.into_iter().map(|(place, trials)| Spot::new(&axes, place, trials)).collect();
        if is_sweep(document) {
            know_together(&mut spots);
        }
        spots.sort_by(|one, other| one.steps.cmp(&other.steps));
        Self { axes, spots }
    }

    /// The points of a document that is of no experiment, in their order: each with all of its
    /// trials. Those of one pass are points by themselves, even if they are alike.
    pub fn of_points(document: &'a Document) -> Self {
        let mut points: Vec<(Point, Numbered<'_>)> = Vec::new();
        for (trial, number) in document.trials.iter().zip(1..) {
            // Each repeat has a seed of its own.
            let point = Point { seed: 0, ..trial.point.clone() };
            let lacks = |others: &Numbered<'_>| {
                others.iter().all(|(_, other)| other.place.repeat != trial.place.repeat)
            };
            match points.iter_mut().find(|(other, known)| *other == point && lacks(known)) {
                Some((_, known)) => known.push((number, trial)),
                None => points.push((point, Vec::from([(number, trial)]))),
            }
        }
        let spots = points.into_iter().map(|(_, trials)| Spot::new(&[], Vec::new(), trials));
        let mut spots: Vec<Spot<'_>> = spots.collect();
        if spots.iter().any(|spot| 1 < spot.trials.len()) {
            know_together(&mut spots);
        }
        Self { axes: Vec::new(), spots }
    }

    /// The position of a value on an axis: itself if all values are numbers that the scale can
    /// show, otherwise its place.
    pub fn position(&self, axis: usize, spot: &Spot<'_>) -> f64 {
        match (self.is_numeric(axis), spot.coordinates[axis].value) {
            (true, Some(value)) => value,
            _ => spot.steps[axis] as f64,
        }
    }

    /// Whether an axis can be drawn by the values on it.
    pub fn is_numeric(&self, axis: usize) -> bool {
        let shown = |value: f64| match self.axes[axis].scale {
            Scale::Linear => value.is_finite(),
            Scale::Log2 => value.is_finite() && value > 0.0,
            Scale::Categories => false,
        };
        self.spots.iter().all(|spot| spot.coordinates[axis].value.is_some_and(shown))
    }

    /// The position of each label of an axis that has a result.
    pub fn ticks(&self, axis: usize) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for spot in &self.spots {
            let tick = (self.position(axis, spot), spot.coordinates[axis].label.clone());
            if !ticks.iter().any(|(position, _)| *position == tick.0) {
                ticks.push(tick);
            }
        }
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        ticks
    }

    /// Whether the results have blocks of different sizes, so that IOPS do not determine their
    /// bandwidth.
    pub fn blocks_differ(&self) -> bool {
        let mut all = self.blocks();
        let first = all.next();
        all.any(|size| Some(size) != first)
    }

    /// Whether people think of these blocks in bytes: they differ, or are large.
    pub fn is_about_bytes(&self) -> bool {
        self.blocks_differ() || self.blocks().all(|size| LARGE_BLOCK <= size)
    }

    fn blocks(&self) -> impl Iterator<Item = Bytes> {
        let trials = self.spots.iter().flat_map(|spot| &spot.trials);
        let streams = trials.flat_map(|(_, trial)| &trial.point.streams);
        streams.map(|stream| stream.block_sizes().largest())
    }
}

/// The point that a search for a peak chose: by its official run if there was one, otherwise by its
/// probes. None in any other document, or if no point was chosen.
pub fn chosen(document: &Document) -> Option<Spot<'_>> {
    let found = document.conclusion.as_ref()?.found.as_ref()?;
    let Found::Peak(PeakFound { choice: Some(choice), .. }) = found else { return None };
    let is_chosen = |spot: &Spot<'_>| spot.coordinates.iter().any(|at| at.value == Some(*choice));
    let of = |roles: &[Role]| Results::of(document, roles).spots.into_iter().find(is_chosen);
    of(&[Role::Official]).or_else(|| of(&[Role::Result, Role::Probe]))
}

/// The load whose official run misses the objective of a search for the peak, so that it is not the
/// answer although its probes met the objective; none if there is no such load.
pub fn refuted(document: &Document) -> Option<f64> {
    let Some(Found::Peak(found)) = document.conclusion.as_ref()?.found.as_ref() else {
        return None;
    };
    let trials = document.trials.iter().filter(|trial| trial.place.role == Role::Official);
    let mut values = trials.flat_map(|trial| &trial.place.coordinates).filter_map(|at| at.value);
    values.next_back().filter(|value| found.objective.is_some() && found.choice != Some(*value))
}

impl<'a> Spot<'a> {
    fn new(axes: &[Axis], coordinates: Vec<Coordinate>, trials: Numbered<'a>) -> Self {
        let steps = axes.iter().zip(&coordinates).map(|(axis, coordinate)| {
            axis.labels.iter().position(|label| *label == coordinate.label).unwrap_or(0)
        });
        let all: Vec<&Trial> = trials.iter().map(|(_, trial)| *trial).collect();
        let counted = counted(&all);
        let verdicts = all.iter().map(|trial| trial.verdict);
        Self {
            steps: steps.collect(),
            coordinates,
            summary: pooled(&counted, &QUANTILES),
            mean_and_max: mean_and_max(&counted),
            verdict: verdicts.max().unwrap_or(Verdict::Sound),
            counted: counted.len(),
            levels: [None; Figure::ALL.len()],
            trials,
        }
    }

    /// Whether none of its trials measured what was asked for.
    pub fn is_void(&self) -> bool {
        self.trials.iter().all(|(_, trial)| trial.verdict == Verdict::Void)
    }

    /// Whether the load was more than the target can do, so that its response times tell more about the
    /// length of the window than about the target.
    pub fn is_overloaded(&self) -> bool {
        let mut findings = self.trials.iter().flat_map(|(_, trial)| &trial.findings);
        findings.any(|one| one.code == "overload" && one.severity == Severity::Suspect)
    }

    /// What is known of a figure, for comparisons with the other points of a sweep or of repeated
    /// points; otherwise none.
    pub fn level(&self, figure: Figure) -> Option<Level> {
        self.levels[figure.place()]
    }

    /// The first of its trials: the load of all of them.
    pub fn first(&self) -> &'a Trial {
        self.trials[0].1
    }

    /// The trials that its figures are of.
    pub fn counted_trials(&self) -> Vec<&'a Trial> {
        let all: Vec<&Trial> = self.trials.iter().map(|(_, trial)| *trial).collect();
        counted(&all)
    }

    /// "5 trials", "4 of 5 trials, because the others are void"; none for a single trial.
    pub fn trials_in_words(&self) -> Option<String> {
        match (self.counted, self.trials.len()) {
            (_, 1) => None,
            (counted, all) if counted == all => Some(format!("{all} trials")),
            (counted, all) => {
                Some(format!("{counted} of {all} trials, because the others are void"))
            }
        }
    }

    /// Whether its data repeats itself, so that its figures may not be those of the medium.
    pub fn repeats_data(&self) -> bool {
        let repeats = |code: &str| code == "repeating-payload";
        let findings = |trial: &Trial| trial.findings.iter().any(|one| repeats(&one.code));
        self.trials.iter().all(|(_, trial)| findings(trial))
    }

    /// "queue-depth 8, block-size 4k".
    pub fn name(&self) -> String {
        let one = |one: &Coordinate| format!("{} {}", one.axis, one.label);
        self.coordinates.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The trials that are not void; the void ones if there are no others.
pub(crate) fn counted<'a>(trials: &[&'a Trial]) -> Vec<&'a Trial> {
    let worth = trials.iter().copied().filter(|trial| trial.verdict != Verdict::Void);
    let worth: Vec<&Trial> = worth.collect();
    if worth.is_empty() { trials.to_vec() } else { worth }
}

/// Whether it is of a sweep, whose conclusion compares the results with each other.
fn is_sweep(document: &Document) -> bool {
    matches!(document.found(), Some(Found::Sweep(_)))
}

/// Gives each figure the half-width that the conclusions use: the scatter of repeats comes from all
/// results together, because few repeats of one say little about it, and the intervals hold for all
/// of them at once. So a percentile is known no better than its repeats agree.
fn know_together(spots: &mut [Spot<'_>]) {
    // As in the conclusions: void trials count only if all are void.
    let all_are = spots.iter().all(Spot::is_void);
    let summaries: Vec<Vec<Summary>> = spots
        .iter()
        .map(|spot| {
            let all = if all_are || !spot.is_void() { spot.counted_trials() } else { Vec::new() };
            all.into_iter().map(|trial| figures::summary(trial, None, &QUANTILES)).collect()
        })
        .collect();
    for figure in Figure::ALL {
        let known = summaries.iter().map(|trials| {
            trials.iter().filter_map(|summary| *figure.of(&mut summary.clone())).collect()
        });
        let levels = stats::levels(&known.collect::<Vec<Vec<Estimate>>>());
        for (spot, level) in spots.iter_mut().zip(levels) {
            spot.levels[figure.place()] = level;
            if let (Some(shown), Some(level)) = (figure.of(&mut spot.summary), level) {
                let half = level.estimate.half_width;
                shown.half_width = half.map(|half| half / level.estimate.value * shown.value);
            }
        }
    }
}

/// A figure of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// A percentile: its place among [`QUANTILES`].
    Quantile(usize),
}

impl Figure {
    /// All of them.
    const ALL: [Self; 5] =
        [Self::Iops, Self::Bandwidth, Self::Quantile(0), Self::Quantile(1), Self::Quantile(2)];

    /// Its place among all of them.
    fn place(self) -> usize {
        match self {
            Self::Iops => 0,
            Self::Bandwidth => 1,
            Self::Quantile(place) => 2 + place,
        }
    }

    fn of(self, summary: &mut Summary) -> &mut Option<Estimate> {
        match self {
            Self::Iops => &mut summary.iops,
            Self::Bandwidth => &mut summary.bandwidth,
            Self::Quantile(place) => &mut summary.quantiles[place],
        }
    }
}

/// The figures of several trials of one point: rates over all their windows, percentiles of their
/// distributions together. A percentile is never averaged.
pub fn pooled(trials: &[&Trial], quantiles: &[Quantile]) -> Summary {
    if let [only] = trials {
        return figures::summary(only, None, quantiles);
    }
    let totals: Vec<Flow> = trials.iter().map(|trial| trial.total(None)).collect();
    let mut flow = Flow::new(trials.iter().any(|trial| trial.is_open()));
    let mut slices: Vec<Slice> = Vec::new();
    let mut stretches = Vec::new();
    let mut window = Span(0);
    for (trial, total) in trials.iter().zip(&totals) {
        flow.merge(total);
        slices.extend(stats::slices(trial.intervals()));
        // One trial after the other: what begins at the same time counts as one slice of time.
        let own = TrialPart::whole(trial).stretches().into_iter();
        stretches.extend(own.map(|one| Stretch { start: window + one.start, ..one }));
        window += trial.window();
    }
    // The scatter of repeats counts if it is larger than the scatter within each of them. Fewer than
    // four repeats say nothing about it.
    let with_scatter = |estimate: Estimate, of_trials: Vec<f64>| {
        let apart = stats::mean(&of_trials).and_then(|mean| mean.half_width);
        Estimate { half_width: wider(estimate.half_width, apart), ..estimate }
    };
    let rate = |total: u64, series: Vec<f64>, of: &dyn Fn(&Flow) -> u64| {
        let seconds = |trial: &Trial| trial.window().as_secs_f64().max(f64::MIN_POSITIVE);
        let each = trials.iter().zip(&totals);
        let each = each.map(|(trial, total)| of(total) as f64 / seconds(trial)).collect();
        Some(with_scatter(stats::rate(total, window, &series)?, each))
    };
    let estimates = figures::quantile_estimates(&flow, &stretches, None, quantiles);
    let quantile = |(estimate, at): (Option<Estimate>, &Quantile)| {
        let times = totals.iter().map(Flow::response_time).filter(|own| stats::carries(own, *at));
        let each = times.filter_map(|own| own.quantile(*at));
        Some(with_scatter(estimate?, each.map(|value| value as f64).collect()))
    };
    Summary {
        iops: rate(flow.ios(), stats::iops_series(&slices, None), &Flow::ios),
        bandwidth: rate(flow.bytes.0, stats::bandwidth_series(&slices, None), &|flow| flow.bytes.0),
        quantiles: estimates.into_iter().zip(quantiles).map(quantile).collect(),
    }
}

/// The mean and the largest response time of several trials together.
pub fn mean_and_max(trials: &[&Trial]) -> Option<(f64, u64)> {
    let mut flow = Flow::new(trials.iter().any(|trial| trial.is_open()));
    trials.iter().for_each(|trial| flow.merge(&trial.total(None)));
    let times = flow.response_time();
    Some((times.mean()?, times.max()?))
}

/// The larger of two half-widths.
fn wider(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

/// The axes that the document names.
fn known_axes(document: &Document) -> Option<Vec<Axis>> {
    match document.found() {
        Some(Found::Sweep(found)) => Some(found.axes.clone()),
        _ => Some(document.header.experiment.as_ref()?.axes.clone()),
    }
}

/// The axes of the trials, if they are not named elsewhere.
fn axes_of(trials: &[(usize, &Trial)]) -> Vec<Axis> {
    let mut axes: Vec<(Axis, Vec<Option<f64>>)> = Vec::new();
    for coordinate in trials.iter().flat_map(|(_, trial)| &trial.place.coordinates) {
        let place = match axes.iter().position(|(axis, _)| axis.name == coordinate.axis) {
            Some(place) => place,
            None => {
                let name = coordinate.axis.clone();
                axes.push((Axis { name, scale: Scale::Linear, labels: Vec::new() }, Vec::new()));
                axes.len() - 1
            }
        };
        let (axis, values) = &mut axes[place];
        if !axis.labels.contains(&coordinate.label) {
            axis.labels.push(coordinate.label.clone());
            values.push(coordinate.value);
        }
    }
    let finished = axes.into_iter().map(|(mut axis, values)| {
        let numbers: Option<Vec<f64>> = values.into_iter().collect();
        axis.scale = match numbers {
            None => Scale::Categories,
            Some(numbers) => {
                // In the order of their values, independent of the order of the search.
                let mut both: Vec<(f64, String)> =
                    numbers.iter().copied().zip(axis.labels.drain(..)).collect();
                both.sort_by(|one, other| one.0.total_cmp(&other.0));
                axis.labels = both.into_iter().map(|(_, label)| label).collect();
                scale_of(&numbers)
            }
        };
        axis
    });
    finished.collect()
}

/// Octaves apart, or steps: decided from the numbers themselves.
fn scale_of(numbers: &[f64]) -> Scale {
    let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = numbers.iter().copied().fold(0.0, f64::max);
    match smallest > 0.0 && largest / smallest >= 8.0 {
        true => Scale::Log2,
        false => Scale::Linear,
    }
}

/// A trial's coordinates in the order of the axes; none if one is missing.
fn place_on(axes: &[Axis], trial: &Trial) -> Option<Vec<Coordinate>> {
    let of = |axis: &Axis| trial.place.coordinates.iter().find(|one| one.axis == axis.name);
    axes.iter().map(|axis| of(axis).cloned()).collect()
}
