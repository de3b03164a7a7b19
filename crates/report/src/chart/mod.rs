//! What the charts of an experiment show, in no renderer's terms: the page for the browser and the
//! images are drawn from the same figures, so they cannot say different things.

mod colors;
pub mod jobs;
pub mod map;
pub mod peak;
pub mod sustain;
mod sweep;

pub use colors::{SERIES, scale_color, scale_stops};

use crate::document::{Document, Found, Role, Verdict};
use crate::results::Results;

/// A chart: one plot, or several that are read together.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What files and elements are named by: "iops".
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is drawn, in which unit and from which loop.
    pub caption: String,
    /// Its plots. They have the same axes.
    pub panels: Vec<Panel>,
    /// Whether only one of its plots is looked at at a time, where one can choose.
    pub one_at_a_time: bool,
}

/// One plot of a chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What tells it from the others; empty for a single one.
    pub title: String,
    /// What is drawn.
    pub plot: Plot,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Lines, dots and bars on two axes.
    Lines(Lines),
    /// Cells in colors.
    Heat(Heat),
}

/// Lines, dots and bars.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// What stands out behind everything: a stretch of the axis to the right, with its meaning.
    pub band: Option<(f64, f64)>,
    /// What is drawn, the last on top.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with its unit.
    pub title: String,
    /// How its values lie.
    pub scale: Scale,
    /// Where it is labeled and with what; empty if round values will do.
    pub ticks: Vec<(f64, String)>,
    /// Its ends; as far as the values reach if there are none.
    pub range: Option<(f64, f64)>,
}

/// How the values of an axis lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From zero on, at distances that are their differences.
    FromZero,
    /// As far as the values reach, at distances that are their differences.
    Linear,
    /// At distances that are their ratios.
    Log,
}

/// Values that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend; empty if it has none.
    pub name: String,
    /// What it is painted in.
    pub paint: Paint,
    /// How it is drawn.
    pub form: Form,
    /// Its values.
    pub dots: Vec<Dot>,
}

/// What is painted in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The color of one of several series, from 0.
    Nth(usize),
    /// What matters most.
    Ink,
    /// What stands in the background.
    Muted,
    /// What is doubted.
    Suspect,
    /// What does not count.
    Void,
    /// What was found.
    Found,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line.
    Line {
        /// Whether it is broken.
        dashed: bool,
    },
    /// A line with a dot for each value.
    Dotted(Shape),
    /// Dots.
    Dots(Shape),
    /// Bars beside those of other series.
    Bars,
}

/// The shape of a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A filled circle.
    Circle,
    /// A filled square.
    Square,
    /// A filled diamond.
    Diamond,
    /// A filled triangle.
    Triangle,
    /// A small filled circle.
    Point,
    /// A wide ring around a value.
    Ring,
    /// A cross.
    Cross,
}

/// A value.
#[derive(Clone, Debug)]
pub struct Dot {
    /// To the right.
    pub x: f64,
    /// Upwards; none leaves a gap.
    pub y: Option<f64>,
    /// Half of its interval upwards.
    pub half: Option<f64>,
    /// What stands beside it; often nothing.
    pub label: String,
    /// All that is known about it, line by line.
    pub about: String,
}

/// Cells in colors on two axes of steps.
#[derive(Clone, Debug)]
pub struct Heat {
    /// What the steps to the right are, with its unit.
    pub x_title: String,
    /// Their labels, one for each.
    pub x: Vec<String>,
    /// What the steps upwards are, with its unit.
    pub y_title: String,
    /// Their labels, one for each.
    pub y: Vec<String>,
    /// The cells, in any order.
    pub cells: Vec<HeatCell>,
    /// What the colors show, with its unit.
    pub title: String,
    /// Whether the colors lie at ratios.
    pub log: bool,
    /// Whether the figures stand in the cells.
    pub written: bool,
    /// A value as it is written.
    pub write: fn(f64) -> String,
    /// What the marks of its cells mean, and what a cell without a value does.
    pub signs: Vec<(Option<Cover>, &'static str)>,
}

/// A cell.
#[derive(Clone, Debug)]
pub struct HeatCell {
    /// Its step to the right.
    pub x: usize,
    /// Its step upwards.
    pub y: usize,
    /// Its value; none if it is not known.
    pub value: Option<f64>,
    /// How it is known.
    pub cover: Cover,
    /// The value as it is written.
    pub text: String,
    /// All that is known about it, line by line.
    pub about: String,
}

/// How a cell is known, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Color alone.
    Plain,
    /// With a dot: it was measured.
    Dot,
    /// With a triangle: it was measured, and is not precise.
    Triangle,
    /// Hatched: it was measured, and the load was too much.
    Hatched,
    /// Gray: it was not measured, because the load is too much.
    Gray,
}

impl Chart {
    /// The caption, and what the marks of its cells mean, whatever they are called where it is drawn.
    pub fn words(&self, name: fn(Option<Cover>) -> &'static str) -> String {
        let mut words = self.caption.clone();
        if let Some(Panel { plot: Plot::Heat(heat), .. }) = self.panels.first() {
            for (cover, meaning) in &heat.signs {
                words += &format!(" {}: {meaning}.", name(*cover));
            }
        }
        words
    }
}

/// What the marks of cells are called where they are drawn.
pub fn mark_name(cover: Option<Cover>) -> &'static str {
    match cover {
        Some(Cover::Dot) => "A dot",
        Some(Cover::Triangle) => "A triangle",
        Some(Cover::Plain) => "No mark",
        Some(Cover::Hatched) => "Hatched",
        Some(Cover::Gray) => "Gray",
        None => "Empty",
    }
}

/// The charts of a document's experiment, the most telling one first; none of a run.
pub fn charts(document: &Document) -> Vec<Chart> {
    let found = document.conclusion.as_ref().and_then(|last| last.found.as_ref());
    match found {
        Some(Found::Sweep(_)) => sweep::charts(document, &Results::of(document, &[Role::Result])),
        Some(Found::Peak(found)) => peak::charts(document, found),
        Some(Found::Map(found)) => map::charts(document, found),
        Some(Found::Sustain(found)) => sustain::charts(document, found),
        Some(Found::Jobs(found)) => jobs::charts(document, found),
        // It was cut off: what there is, by its place.
        None => sweep::charts(document, &so_far(document)),
    }
}

/// What there is of an experiment that has no conclusion.
pub fn so_far(document: &Document) -> Results<'_> {
    Results::of(document, &[Role::Result, Role::Probe, Role::Official])
}

/// Which loop the trials were, for the captions.
fn loops(document: &Document) -> &'static str {
    let open = document.trials.iter().filter(|trial| trial.is_open()).count();
    match open {
        0 => "closed loop",
        n if n == document.trials.len() => "open loop",
        _ => "closed and open loops",
    }
}

/// What the error bars are.
const BARS: &str = "Error bars are 95 % confidence intervals.";

/// A larger mark around each value whose trials are doubted, and a cross on those that do not count.
fn marks(dots: impl Iterator<Item = (Verdict, bool, Dot)>) -> Vec<Series> {
    let mut suspect = Vec::new();
    let mut void = Vec::new();
    for (verdict, is_void, dot) in dots {
        let dot = Dot { half: None, label: String::new(), ..dot };
        match verdict {
            _ if is_void => void.push(dot),
            Verdict::Sound => {}
            Verdict::Suspect | Verdict::Void => suspect.push(dot),
        }
    }
    let series = |name: &str, paint, shape, dots: Vec<Dot>| {
        let series = Series { name: name.to_owned(), paint, form: Form::Dots(shape), dots };
        (!series.dots.is_empty()).then_some(series)
    };
    let suspect = series("suspect", Paint::Suspect, Shape::Ring, suspect);
    let void = series("void", Paint::Void, Shape::Cross, void);
    suspect.into_iter().chain(void).collect()
}

impl Paint {
    /// Its name among the colors of a page, and its color on white paper.
    pub fn named(self) -> (String, &'static str) {
        match self {
            Self::Nth(nth) => (format!("s{}", nth % SERIES.len()), SERIES[nth % SERIES.len()]),
            Self::Ink => ("ink".to_owned(), "#1b2430"),
            Self::Muted => ("muted".to_owned(), "#5d6878"),
            Self::Suspect => ("suspect".to_owned(), "#8a5a00"),
            Self::Void => ("void".to_owned(), "#b3261e"),
            Self::Found => ("top".to_owned(), "#b8327a"),
        }
    }
}

impl Shape {
    /// The shape of one of several series, from 0.
    pub fn nth(nth: usize) -> Self {
        // Where the colors come again they come with other shapes.
        [Self::Circle, Self::Square, Self::Diamond, Self::Triangle][(nth + nth / SERIES.len()) % 4]
    }
}

impl Heat {
    /// The smallest and the largest value; none without one.
    pub fn range(&self) -> Option<(f64, f64)> {
        let shown = |value: &f64| value.is_finite() && (!self.log || *value > 0.0);
        let values = self.cells.iter().filter_map(|cell| cell.value).filter(shown);
        values.fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        })
    }

    /// Where a value lies between the smallest and the largest, from 0 to 1.
    pub fn share(&self, value: f64, range: (f64, f64)) -> f64 {
        let on = |value: f64| if self.log { value.ln() } else { value };
        match on(range.1) - on(range.0) {
            span if span > 0.0 => ((on(value) - on(range.0)) / span).clamp(0.0, 1.0),
            _ => 0.5,
        }
    }

    /// Round values for the scale of colors.
    pub fn ticks(&self) -> Vec<f64> {
        match self.range() {
            Some((low, high)) if self.log => log_ticks(low, high),
            Some((low, high)) => linear_ticks(low, high, 5),
            None => Vec::new(),
        }
    }
}

impl Axis {
    /// How far an axis of ratios reaches for a value and its half-width. An interval that reaches to
    /// nothing would make it endless.
    fn ends_of_ratio(value: f64, half: f64) -> (f64, f64) {
        ((value - half).max(value / 5.0), value + half)
    }

    /// An axis of ratios for all these values and their intervals, with round ticks and some room.
    fn of_ratios(title: String, series: &[Series]) -> Self {
        let dots = series.iter().flat_map(|one| &one.dots);
        let ends =
            dots.filter_map(|dot| Some(Self::ends_of_ratio(dot.y?, dot.half.unwrap_or(0.0))));
        let ends = ends.filter(|(low, high)| *low > 0.0 && high.is_finite());
        let ends = ends.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)));
        let range = ends.map(|(low, high)| {
            let room = (high / low).powf(0.08).max(1.15);
            (low / room, high * room)
        });
        let ticks = range.map_or(Vec::new(), |(low, high)| labeled(log_ticks(low, high)));
        Self { title, scale: Scale::Log, ticks, range }
    }
}

/// In so much of an axis that begins at zero a label to the left would stand on the other axis.
const EDGE: f64 = 0.08;

/// Whether a label to the left of a value would stand on the axis, which begins at zero.
pub fn is_at_the_edge(dot: &Dot, series: &Series) -> bool {
    let most = series.dots.iter().map(|dot| dot.x).fold(0.0, f64::max);
    dot.x < EDGE * most
}

/// Round values as they are written, all in one unit.
pub fn tick_texts(ticks: &[f64]) -> Vec<String> {
    let largest = ticks.iter().copied().fold(0.0, f64::max);
    let (unit, name) = match largest {
        value if value >= 1e10 => (1e9, "G"),
        value if value >= 1e7 => (1e6, "M"),
        value if value >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = |tick: &f64| {
        let digits = format!("{:.4}", tick / unit);
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        if digits == "0" && *tick > 0.0 { format!("{tick:e}") } else { digits.to_owned() }
    };
    let named = |text: String| if text == "0" { text } else { format!("{text}{name}") };
    ticks.iter().map(text).map(named).collect()
}

/// Round values with what is written at them.
pub fn labeled(ticks: Vec<f64>) -> Vec<(f64, String)> {
    let texts = tick_texts(&ticks);
    ticks.into_iter().zip(texts).collect()
}

/// Round values between two, a handful of them: 1, 2 or 5 times a power of ten apart.
pub fn linear_ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return Vec::from([low]);
    }
    let rough = span / about.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|nth| nth as f64 * step).collect()
}

/// Powers of ten between two values, with 2 and 5 times them where they are few.
pub fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high >= low && high.is_finite()) {
        return Vec::new();
    }
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = |times: &[f64]| {
        let each =
            powers.clone().flat_map(|power| times.iter().map(move |t| t * 10f64.powi(power)));
        each.filter(|tick| (low * 0.999..=high * 1.001).contains(tick)).collect::<Vec<f64>>()
    };
    let fine = all(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]);
    let usual = all(&[1.0, 2.0, 5.0]);
    let coarse = all(&[1.0]);
    match (usual.len(), coarse.len()) {
        // Between neighbors of these the axis is as good as straight.
        (0..3, _) if fine.len() < 2 => linear_ticks(low, high, 4),
        (0..3, _) => fine,
        (3..9, _) => usual,
        (_, _) => coarse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_reaches_to_nothing_leaves_the_axis_readable() {
        assert_eq!(Axis::ends_of_ratio(10.0, 2.0), (8.0, 12.0));
        assert_eq!(Axis::ends_of_ratio(10.0, 10.0), (2.0, 20.0));
        assert_eq!(Axis::ends_of_ratio(10.0, 12.0), (2.0, 22.0));
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(linear_ticks(0.0, 4883.0, 5), [0.0, 1000.0, 2000.0, 3000.0, 4000.0]);
        assert_eq!(linear_ticks(0.0, 0.7, 5), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(linear_ticks(3.0, 3.0, 5), [3.0]);
        assert_eq!(log_ticks(0.09, 11.0), [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]);
        assert_eq!(log_ticks(1.4, 2.6), [1.5, 2.0]);
        assert_eq!(log_ticks(1.12, 1.38).len(), 2, "1.2 and 1.3");
        assert_eq!(log_ticks(1e-3, 1e3).len(), 7);
        assert!(log_ticks(0.0, 1.0).is_empty());
    }

    #[test]
    fn all_ticks_of_an_axis_are_in_one_unit() {
        assert_eq!(tick_texts(&[0.0, 5000.0, 10_000.0]), ["0", "5k", "10k"]);
        assert_eq!(tick_texts(&[0.0, 2.5e6, 1e7]), ["0", "2.5M", "10M"]);
        assert_eq!(tick_texts(&[0.2, 1.0, 5000.0]), ["0.2", "1", "5000"]);
        assert_eq!(tick_texts(&[1e-6, 1e-3]), ["1e-6", "0.001"]);
    }
}
