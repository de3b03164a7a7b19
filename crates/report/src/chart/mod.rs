//! The charts of an experiment, independent of any renderer: the page for the browser and the
//! images are drawn from the same figures, so they cannot differ.

mod ab;
pub mod breakdown;
mod colors;
pub mod comparison;
mod contours;
pub mod grid;
pub mod history;
pub mod hosts;
pub mod jobs;
mod looks;
pub mod map;
pub mod peak;
mod scaling;
pub mod sustain;
mod sweep;
pub mod trial;
pub mod watched;

pub use colors::{Palette, SERIES, scale_color, scale_stops};

use fathom_core::figures::number;

use crate::document::{Document, Found, Role, Verdict};
use crate::figures;
use crate::results::Results;

/// A chart: one plot, or several that belong together.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The name in files and elements: "iops".
    pub name: String,
    /// Its title.
    pub title: String,
    /// The figure, its unit and the loop.
    pub caption: String,
    /// Its plots. They have the same axes.
    pub panels: Vec<Panel>,
    /// Whether only one of its plots is shown at a time, if the reader can choose.
    pub one_at_a_time: bool,
}

impl Chart {
    /// A chart of one plot.
    fn of_one(
        name: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        plot: Plot,
    ) -> Self {
        let panels = Vec::from([Panel { title: String::new(), plot }]);
        let (name, title, caption) = (name.into(), title.into(), caption.into());
        Self { name, title, caption, panels, one_at_a_time: false }
    }
}

/// One plot of a chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What distinguishes it from the others; empty for a single one.
    pub title: String,
    /// Its content.
    pub plot: Plot,
}

/// The content of a plot.
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
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// A highlighted stretch of the horizontal axis behind everything, with its meaning.
    pub band: Option<(f64, f64)>,
    /// The series, the last on top.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its figure, with the unit.
    pub title: String,
    /// The spacing of its values.
    pub scale: Scale,
    /// The places of its labels, with their text; empty if round values suffice.
    pub ticks: Vec<(f64, String)>,
    /// Its ends; the range of the values if there are none.
    pub range: Option<(f64, f64)>,
}

/// The spacing of an axis's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From zero on, spaced by their differences.
    FromZero,
    /// Over the range of the values, spaced by their differences.
    Linear,
    /// Spaced by their ratios.
    Log,
}

/// Values that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend; empty if it has none.
    pub name: String,
    /// Its color.
    pub paint: Paint,
    /// Its style.
    pub form: Form,
    /// Its values.
    pub dots: Vec<Dot>,
}

/// The colors and their meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The color of one of several series, from 0.
    Nth(usize),
    /// One of many shades, from the lightest to the darkest.
    Shade {
        /// Which, from 0.
        nth: usize,
        /// Of how many.
        of: usize,
    },
    /// The most important series.
    Ink,
    /// The background.
    Muted,
    /// A doubtful value.
    Suspect,
    /// A value that does not count.
    Void,
    /// A result.
    Found,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes together.
    Total,
    /// A percentile that most I/Os exceed or come near.
    Low,
    /// A percentile in the tail.
    Middle,
    /// A percentile far in the tail.
    High,
}

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line.
    Line {
        /// Whether it is broken.
        dashed: bool,
    },
    /// A line with a dot for each value.
    Dotted(Shape),
    /// The same with a broken line.
    Dashed(Shape),
    /// Dots.
    Dots(Shape),
    /// Bars beside those of other series.
    Bars,
}

impl Form {
    /// A line over time; a dot for a single value, of which no line can be drawn.
    pub(crate) fn over_time(dots: &[Dot], dashed: bool) -> Self {
        if dots.len() == 1 { Self::Dots(Shape::Circle) } else { Self::Line { dashed } }
    }
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
    /// Its horizontal position.
    pub x: f64,
    /// Its vertical position; none leaves a gap.
    pub y: Option<f64>,
    /// Half of its interval upwards.
    pub half: Option<f64>,
    /// Its label; often empty.
    pub label: String,
    /// All facts about it, line by line.
    pub about: String,
}

impl Dot {
    /// A value without an interval and without a label.
    fn plain(x: f64, y: Option<f64>, about: impl Into<String>) -> Self {
        Self { x, y, half: None, label: String::new(), about: about.into() }
    }
}

/// Cells in colors on two axes of steps.
#[derive(Clone, Debug)]
pub struct Heat {
    /// The meaning of the horizontal steps, with the unit.
    pub x_title: String,
    /// Their labels, one for each.
    pub x: Vec<String>,
    /// The meaning of the vertical steps, with the unit.
    pub y_title: String,
    /// Their labels, one for each.
    pub y: Vec<String>,
    /// The cells, in any order.
    pub cells: Vec<HeatCell>,
    /// The figure of the colors, with its unit.
    pub title: String,
    /// Whether the colors are spaced by ratios.
    pub log: bool,
    /// Whether the cells show their figures.
    pub written: bool,
    /// Writes a value.
    pub write: fn(f64) -> String,
    /// The meaning of its cells' marks, and of a cell without a value.
    pub signs: Vec<(Option<Cover>, &'static str)>,
    /// The colors.
    pub palette: Palette,
    /// The largest value with a color of its own, as a multiple of the smallest; no limit if none.
    pub clip: Option<f64>,
    /// Lines along which the value is the same.
    pub contours: Vec<Contour>,
    /// What can be had within each of several limits, in rising order; empty if nobody asks.
    pub limits: Vec<Limit>,
}

/// A limit on the values of a surface, with what can be had within it.
#[derive(Clone, Debug)]
pub struct Limit {
    /// The limit.
    pub value: f64,
    /// The limit as text.
    pub text: String,
    /// What can be had, in a sentence.
    pub answer: String,
}

/// A line along which a value is the same.
#[derive(Clone, Debug)]
pub struct Contour {
    /// The value as text.
    pub label: String,
    /// Its pieces, in steps of both axes: a cell's middle is a whole number.
    pub pieces: Vec<[(f64, f64); 2]>,
    /// The place of its text.
    pub at: (f64, f64),
}

/// A cell.
#[derive(Clone, Debug)]
pub struct HeatCell {
    /// Its horizontal step.
    pub x: usize,
    /// Its vertical step.
    pub y: usize,
    /// Its value; none if it is not known.
    pub value: Option<f64>,
    /// How it is known.
    pub cover: Cover,
    /// The value as text.
    pub text: String,
    /// All facts about it, line by line.
    pub about: String,
}

/// How a cell is known, as a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Only color.
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
    /// The plot that is shown first, if only one is shown at a time: the tail is what people ask for.
    pub fn first(&self) -> usize {
        self.panels.iter().position(|panel| panel.title == "p99").unwrap_or(0)
    }

    /// The caption of a picture, with the meaning of its colors, lines and marks.
    pub fn words_of_picture(&self) -> String {
        let mut colors = String::new();
        if let Some(Panel { plot: Plot::Heat(heat), .. }) = self.panels.first() {
            if let Some(clip) = heat.clip {
                colors += &format!(" Times above {clip:.0} times the shortest have one color.");
            }
            if !heat.contours.is_empty() {
                colors += " Lines join loads with the same time.";
            }
        }
        format!("{}{colors}{}", self.caption, self.signs(mark_name))
    }

    /// The caption of cells in characters, with the meaning of the marks, which have these names.
    pub fn words_of_characters(&self, name: fn(Option<Cover>) -> &'static str) -> String {
        format!("{}{}", self.caption, self.signs(name))
    }

    /// The meaning of the cells' marks, each after a blank.
    fn signs(&self, name: fn(Option<Cover>) -> &'static str) -> String {
        let Some(Panel { plot: Plot::Heat(heat), .. }) = self.panels.first() else {
            return String::new();
        };
        let sign =
            |(cover, meaning): &(Option<Cover>, &str)| format!(" {}: {meaning}.", name(*cover));
        heat.signs.iter().map(sign).collect()
    }
}

impl Panel {
    /// The plot for a reader who does not see it: its axes, and the range of each series.
    pub fn in_words(&self) -> String {
        match &self.plot {
            Plot::Lines(lines) => lines.in_words(),
            Plot::Heat(heat) => {
                let axes = format!("{} by {} and {}", heat.title, heat.x_title, heat.y_title);
                match heat.range() {
                    Some((low, high)) => {
                        format!("{axes}; {} to {}.", (heat.write)(low), (heat.write)(high))
                    }
                    None => format!("{axes}; not known."),
                }
            }
        }
    }
}

/// What stands in a plot in which nothing could be drawn.
pub const NO_VALUES: &str = "no values";

impl Lines {
    /// Whether no value is known.
    pub fn is_empty(&self) -> bool {
        self.series.iter().flat_map(|series| &series.dots).all(|dot| dot.y.is_none())
    }

    fn in_words(&self) -> String {
        let range = |series: &Series| {
            let values = series.dots.iter().filter_map(|dot| dot.y);
            let ends = values.map(|value| (value, value));
            let (low, high) = ends.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))?;
            let name = match series.name.as_str() {
                "" => String::new(),
                name => format!("{name} "),
            };
            let [low, high] = [low, high].map(figures::significant);
            Some(match low == high {
                true => format!("{name}{low}"),
                false => format!("{name}{low} to {high}"),
            })
        };
        let ranges: Vec<String> = self.series.iter().filter_map(range).collect();
        let ranges = if ranges.is_empty() { NO_VALUES.to_owned() } else { ranges.join(", ") };
        format!("{} by {}; {ranges}.", self.y.title, self.x.title)
    }
}

/// The renderer's names for the marks of cells.
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

/// The charts of a document's experiment, the most informative one first; none for a run.
pub fn charts(document: &Document) -> Vec<Chart> {
    match document.found() {
        Some(Found::Sweep(_)) => sweep::charts(document, &Results::of(document, &[Role::Result])),
        Some(Found::Peak(found)) => peak::charts(document, found),
        Some(Found::Map(found)) => map::charts(document, found),
        Some(Found::Sustain(found)) => sustain::charts(document, found),
        Some(Found::Ab(found)) => ab::charts(document, found),
        Some(Found::Jobs(found)) => jobs::charts(document, found),
        // It was cut off: the existing trials, by their place.
        None => sweep::charts(document, &so_far(document)),
    }
}

/// The existing trials of an experiment without a conclusion.
pub fn so_far(document: &Document) -> Results<'_> {
    Results::of(document, &[Role::Result, Role::Probe, Role::Official])
}

/// The loop of the trials, for the captions.
fn loops(document: &Document) -> &'static str {
    let open = document.trials.iter().filter(|trial| trial.is_open()).count();
    match open {
        0 => "closed loop",
        n if n == document.trials.len() => "open loop",
        _ => "closed and open loops",
    }
}

/// The meaning of the error bars.
const BARS: &str = "Error bars are 95 % confidence intervals.";

/// A larger mark around each value with doubtful trials, and a cross on those that do not count.
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

/// The ends of the scale whose shades can be seen on white and on black.
const SHADES: (f64, f64) = (0.3, 0.8);

impl Paint {
    /// Its name among the colors of a page, and its color on white paper. A shade has no name: it
    /// is the same on black.
    pub fn named(self) -> (Option<String>, String) {
        let (name, color) = match self {
            Self::Nth(nth) => {
                let nth = nth % SERIES.len();
                return (Some(format!("s{nth}")), SERIES[nth].to_owned());
            }
            Self::Shade { nth, of } => {
                let share = nth as f64 / of.saturating_sub(1).max(1) as f64;
                let share = SHADES.1 - (SHADES.1 - SHADES.0) * share;
                let [red, green, blue] = scale_color(Palette::Viridis, share);
                return (None, format!("#{red:02x}{green:02x}{blue:02x}"));
            }
            Self::Ink => ("ink", "#1b2430"),
            Self::Muted => ("muted", "#5d6878"),
            Self::Suspect => ("suspect", "#8a5a00"),
            Self::Void => ("void", "#b3261e"),
            Self::Found => ("top", "#b8327a"),
            Self::Read => ("read", "#1f6fb4"),
            Self::Write => ("write", "#c8641b"),
            Self::Total => ("total", "#4b5768"),
            Self::Low => ("low", "#59a4dd"),
            Self::Middle => ("middle", "#2b6cb0"),
            Self::High => ("high", "#7b3fa0"),
        };
        (Some(name.to_owned()), color.to_owned())
    }
}

impl Shape {
    /// The shape of one of several series, from 0.
    pub fn nth(nth: usize) -> Self {
        // When the colors repeat, the shapes differ.
        [Self::Circle, Self::Square, Self::Diamond, Self::Triangle][(nth + nth / SERIES.len()) % 4]
    }
}

impl Heat {
    /// The smallest and the largest value that have colors of their own; none without a value.
    pub fn range(&self) -> Option<(f64, f64)> {
        let shown = |value: &f64| value.is_finite() && (!self.log || *value > 0.0);
        let values = self.cells.iter().filter_map(|cell| cell.value).filter(shown);
        let range = values.fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        });
        let (low, high) = range?;
        let most = self.clip.map_or(high, |times| low * times);
        Some((low, high.min(most)))
    }

    /// The color of a share of the range.
    pub fn color(&self, share: f64) -> [u8; 3] {
        scale_color(self.palette, share)
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
    /// An axis whose ticks and ends follow from the values.
    fn plain(title: impl Into<String>, scale: Scale) -> Self {
        Self { title: title.into(), scale, ticks: Vec::new(), range: None }
    }

    /// The end of an axis of ratios for a value and its half-width. An interval that reaches to
    /// zero would make it endless.
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

/// The width of a plot on a phone, of a letter of a label, and between a label and its dot, in dots of the
/// screen. A plot is narrower there than half of a page.
const PLOT_WIDTH: f64 = 280.0;
const LETTER_WIDTH: f64 = 7.0;
const ASIDE: f64 = 8.0;

/// Whether a label to the left of a value would overlap the axis, which begins at zero.
pub fn is_at_the_edge(dot: &Dot, series: &Series) -> bool {
    reaches_the_axis(dot, series.dots.iter().map(|dot| dot.x).fold(0.0, f64::max))
}

/// The same on an axis from zero to `most`.
fn reaches_the_axis(dot: &Dot, most: f64) -> bool {
    dot.x * PLOT_WIDTH < most * (dot.label.chars().count() as f64 * LETTER_WIDTH + ASIDE)
}

/// An axis that reaches over more than this has a unit for each of its ticks.
const ONE_UNIT: f64 = 1e5;

/// Round values as text, all in one unit unless the axis reaches too far.
pub fn tick_texts(ticks: &[f64]) -> Vec<String> {
    let largest = ticks.iter().copied().fold(0.0, f64::max);
    let smallest = ticks.iter().copied().filter(|tick| 0.0 < *tick).fold(f64::INFINITY, f64::min);
    if ONE_UNIT * smallest <= largest {
        return ticks.iter().flat_map(|tick| tick_texts(&[*tick])).collect();
    }
    let (unit, name) = match largest {
        value if value >= 1e10 => (1e9, "G"),
        value if value >= 1e7 => (1e6, "M"),
        value if value >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = |tick: &f64| {
        if 1e3 <= tick / unit {
            return number(tick / unit);
        }
        let digits = format!("{:.4}", tick / unit);
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        if digits == "0" && *tick > 0.0 { format!("{tick:e}") } else { digits.to_owned() }
    };
    let named = |text: String| if text == "0" { text } else { format!("{text}{name}") };
    ticks.iter().map(text).map(named).collect()
}

/// Round values with their text.
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
        // Between neighbors of these the axis is nearly linear.
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
    fn a_plot_without_a_value_says_so() {
        let axis = |title: &str| Axis {
            title: title.to_owned(),
            scale: Scale::Linear,
            ticks: Vec::new(),
            range: None,
        };
        let dot = |y| Dot::plain(1.0, y, "");
        let of = |y| Lines {
            x: axis("s"),
            y: axis("p99"),
            band: None,
            series: Vec::from([Series {
                name: String::new(),
                paint: Paint::Ink,
                form: Form::Bars,
                dots: Vec::from([dot(y)]),
            }]),
        };
        assert!(of(None).is_empty() && !of(Some(0.0)).is_empty());
        assert_eq!(of(None).in_words(), "p99 by s; no values.");
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
        assert_eq!(tick_texts(&[0.2, 1.0, 5000.0]), ["0.2", "1", "5,000"]);
        assert_eq!(tick_texts(&[1e-6, 1e-3]), ["1e-6", "0.001"]);
        let wide = ["0", "0.001", "1", "1,000", "100k"];
        assert_eq!(tick_texts(&[0.0, 1e-3, 1.0, 1e3, 1e5]), wide);
    }
}
