//! How throughput grows with the number of hosts, compared with the growth that nothing limits.

use fathom_core::stats::Estimate;

use super::{Dot, Form, Paint, Series};
use crate::results::{Results, Spot};

/// The axis of the number of hosts that apply the load together.
const HOSTS: &str = "hosts";

/// A line of this many pieces is round on an axis of ratios too.
const PIECES: usize = 24;

/// The axis of the number of hosts, if there is one with several numbers.
pub fn axis(results: &Results<'_>) -> Option<usize> {
    let axis = results.axes.iter().position(|axis| axis.name == HOSTS)?;
    (1 < results.axes[axis].labels.len() && results.is_numeric(axis)).then_some(axis)
}

/// What the fewest hosts do, for each combination of the other axes.
#[derive(Clone, Debug)]
pub struct FewestHosts {
    axis: usize,
    /// The steps on the other axes, the number of hosts, and their throughput.
    known: Vec<(Vec<usize>, f64, Estimate)>,
}

impl FewestHosts {
    /// What they do in this figure of the results.
    pub fn of(
        results: &Results<'_>,
        axis: usize,
        figure: impl Fn(&Spot<'_>) -> Option<Estimate>,
    ) -> Self {
        let mut known: Vec<(Vec<usize>, f64, Estimate)> = Vec::new();
        for spot in results.spots.iter().filter(|spot| !spot.is_void()) {
            let (others, hosts) = (others(axis, spot), results.position(axis, spot));
            let Some(estimate) = figure(spot).filter(|one| 0.0 < one.value && 0.0 < hosts) else {
                continue;
            };
            match known.iter_mut().find(|(own, ..)| *own == others) {
                Some(own) if hosts < own.1 => *own = (others, hosts, estimate),
                Some(_) => {}
                None => known.push((others, hosts, estimate)),
            }
        }
        Self { axis, known }
    }

    /// The smallest number of hosts of all.
    pub fn hosts(&self) -> Option<f64> {
        self.known.iter().map(|(_, hosts, _)| *hosts).reduce(f64::min)
    }

    /// What each host does there, in percent of what each of the fewest does. The interval is that of
    /// the quotient of two values that are known independently of each other.
    pub fn share(&self, spot: &Spot<'_>, estimate: Estimate) -> Option<Estimate> {
        let own = others(self.axis, spot);
        let (_, few, least) = self.known.iter().find(|(known, ..)| *known == own)?;
        let hosts = spot.coordinates[self.axis].value?;
        let value = 100.0 * (estimate.value / hosts) / (least.value / few);
        let share = |one: Estimate| one.half_width.map(|half| half / one.value);
        // The same digits on every machine, which `hypot` does not promise.
        let both = |(one, other): (f64, f64)| (one * one + other * other).sqrt();
        let half_width = match *few == hosts {
            // Compared with itself.
            true => None,
            false => share(estimate).zip(share(*least)).map(|shares| both(shares) * value),
        };
        value.is_finite().then_some(Estimate { value, half_width })
    }

    /// The lines of ideal growth from the fewest hosts of each of these results on, up to this many
    /// hosts and this value.
    pub fn ideal(&self, spots: &[&Spot<'_>], most: f64, highest: f64) -> Vec<Series> {
        let is_drawn = |known: &[usize]| spots.iter().any(|spot| others(self.axis, spot) == known);
        let own = self.known.iter().filter(|(known, few, _)| is_drawn(known) && *few < most);
        let line = |(nth, (_, few, least)): (usize, &(Vec<usize>, f64, Estimate))| {
            let each = least.value / few;
            let end = most.min(highest / each).max(*few);
            let dots = (0..=PIECES).map(|piece| {
                // By ratios, as the axis often is.
                let x = few * (end / few).powf(piece as f64 / PIECES as f64);
                Dot::plain(x, Some(each * x), "")
            });
            ideal(nth == 0, dots.collect())
        };
        own.enumerate().map(line).collect()
    }
}

/// All of what the fewest hosts do, at any number of hosts.
pub fn whole(range: (f64, f64)) -> Series {
    let dot = |x: f64| Dot::plain(x, Some(100.0), "");
    ideal(true, Vec::from([dot(range.0), dot(range.1)]))
}

/// One name in the legend is enough for all of them.
fn ideal(is_first: bool, dots: Vec<Dot>) -> Series {
    Series {
        name: if is_first { "ideal".to_owned() } else { String::new() },
        paint: Paint::Muted,
        form: Form::Line { dashed: true },
        dots,
    }
}

/// The steps on all axes but this one.
fn others(axis: usize, spot: &Spot<'_>) -> Vec<usize> {
    let steps = spot.steps.iter().enumerate().filter(|(other, _)| *other != axis);
    steps.map(|(_, step)| *step).collect()
}
