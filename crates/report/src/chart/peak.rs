//! The charts of a search for the peak: throughput against response time, and both by the load.

use fathom_core::{Bytes, Span};

use super::{
    ASIDE, Axis, BARS, Chart, Dot, Form, LETTER_WIDTH, Lines, PLOT_WIDTH, Paint, Plot, Scale,
    Series, Shape, loops, reaches_the_axis,
};
use crate::document::{Document, Estimate, PeakFound, Probe};
use crate::figures;
use crate::results::refuted;

/// The shortest distance between labels of an axis, as a share of it.
const TICKS_APART: f64 = 0.12;

/// All charts of a search.
pub fn charts(document: &Document, found: &PeakFound) -> Vec<Chart> {
    if found.probes.is_empty() {
        return Vec::new();
    }
    Vec::from([tradeoff(document, found), throughput(document, found)])
}

/// Throughput in the usual unit: I/Os per second, or MiB per second.
pub fn read(found: &PeakFound, value: f64) -> f64 {
    if found.measure == "bandwidth" { value / Bytes::MIB as f64 } else { value }
}

/// The unit of the throughput.
pub fn unit(found: &PeakFound) -> &'static str {
    if found.measure == "bandwidth" { "MiB/s" } else { "IOPS" }
}

/// The quantile of the probes' response times: "p50" without an objective.
pub fn quantile(found: &PeakFound) -> &str {
    let objective = found.objective.as_deref().unwrap_or_default();
    objective.split(['<', '=', ' ']).find(|word| word.starts_with('p')).unwrap_or("p50")
}

/// The bound of an objective such as "p99 <= 2 ms", if it can be read.
pub fn bound(found: &PeakFound) -> Option<f64> {
    let (_, bound) = found.objective.as_deref()?.split_once("<=")?;
    let bound: String = bound.split(',').next()?.split_whitespace().collect();
    bound.parse::<Span>().ok().map(|span| span.0 as f64)
}

/// What varies, in words; on several hosts it is that of each.
pub fn setting(document: &Document, found: &PeakFound) -> String {
    let name = match found.axis.as_str() {
        "queue-depth" => "queue depth",
        "rate" => "offered load",
        other => other,
    };
    let on = if document.header.hosts.is_empty() { "" } else { " on each host" };
    format!("{name}{on}")
}

/// The text of a value on the axis.
pub fn value(number: f64) -> String {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => figures::count(number as u64),
        false => figures::significant(number),
    }
}

/// The relation of a probe to the answer.
pub fn answer(document: &Document, found: &PeakFound, probe: &Probe) -> String {
    let refuted = refuted(document);
    let is = match probe.value {
        value if refuted == Some(value) => "its official run misses the objective",
        value if found.choice == Some(value) && refuted.is_some() => "the answer, by its probes",
        value if found.choice == Some(value) => "the answer",
        value if found.equals.contains(&value) => "could be it as well",
        _ => "",
    };
    match (is, probe.meets) {
        ("", Some(true)) => "meets the objective".to_owned(),
        ("", Some(false)) => "misses the objective".to_owned(),
        (is, _) => is.to_owned(),
    }
}

fn about(document: &Document, found: &PeakFound, probe: &Probe) -> String {
    let mut lines = Vec::from([format!("{} {}", setting(document, found), value(probe.value))]);
    let half = |estimate: &Estimate| figures::plus_minus(Some(estimate));
    let throughput = figures::significant(read(found, probe.throughput.value));
    lines.push(format!("{throughput} {} {}", unit(found), half(&probe.throughput)));
    if let Some(time) = &probe.response_time_ns {
        lines.push(format!("{} {} {}", quantile(found), figures::time(time.value), half(time)));
    }
    lines.extend(probe.meets.map(|meets| match meets {
        true => "meets the objective".to_owned(),
        false => "does not meet the objective".to_owned(),
    }));
    lines.push(match probe.trials {
        1 => "probed once".to_owned(),
        many => format!("probed {many} times"),
    });
    lines.join("\n")
}

/// The mark of a probe: the answer, a value that cannot be told from it, or another one.
fn families(found: &PeakFound, dots: &[(f64, Dot)]) -> Vec<Series> {
    let of = |keep: &dyn Fn(f64) -> bool| -> Vec<Dot> {
        dots.iter().filter(|(value, _)| keep(*value)).map(|(_, dot)| dot.clone()).collect()
    };
    let series = |name: &str, paint, form, dots: Vec<Dot>| {
        (!dots.is_empty()).then(|| Series { name: name.to_owned(), paint, form, dots })
    };
    let plain = |dots: Vec<Dot>| {
        let bare = |dot: Dot| Dot { half: None, label: String::new(), ..dot };
        dots.into_iter().map(bare).collect::<Vec<Dot>>()
    };
    let curve = Form::Dotted(Shape::Circle);
    let equal = |value: f64| found.equals.contains(&value) && found.choice != Some(value);
    [
        series("probed", Paint::Nth(0), curve, of(&|_| true)),
        series("could be it as well", Paint::Nth(1), Form::Dots(Shape::Square), plain(of(&equal))),
        series(
            "the answer",
            Paint::Found,
            Form::Dots(Shape::Ring),
            plain(of(&|value| found.choice == Some(value))),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A straight line at a height, from one end of the dots to the other; none without dots.
fn rule(name: String, paint: Paint, height: f64, dots: &[(f64, Dot)]) -> Option<Series> {
    let ends = dots.iter().map(|(_, dot)| (dot.x, dot.x));
    let (low, high) = ends.reduce(|one, next| (one.0.min(next.0), one.1.max(next.1)))?;
    let dot = |x| Dot::plain(x, Some(height), name.clone());
    let dots = Vec::from([dot(low), dot(high)]);
    Some(Series { name, paint, form: Form::Line { dashed: true }, dots })
}

fn tradeoff(document: &Document, found: &PeakFound) -> Chart {
    let mut dots: Vec<(f64, Dot)> = found
        .probes
        .iter()
        .map(|probe| {
            let time = probe.response_time_ns.as_ref();
            let dot = Dot {
                x: read(found, probe.throughput.value),
                y: time.map(|time| time.value / 1e6),
                half: time.and_then(|t| t.half_width.map(|half| half.min(t.value * 0.99) / 1e6)),
                label: value(probe.value),
                about: about(document, found, probe),
            };
            (probe.value, dot)
        })
        .filter(|(_, dot)| dot.y.is_some())
        .collect();
    let numbers = match thin_out(found, &mut dots) {
        true => "the numbers, where there is room, are values",
        false => "the numbers are the values",
    };
    let mut series = families(found, &dots);
    if let (Some(bound), Some(words)) = (bound(found), &found.objective) {
        let rule = rule(format!("objective {words}"), Paint::Suspect, bound / 1e6, &dots);
        series.splice(0..0, rule);
    }
    let time = quantile(found);
    Chart::of_one(
        "tradeoff",
        "Response time against throughput",
        format!(
            "{time} of the response time in ms against {}, {}; {numbers} of {}. \
             {BARS}",
            unit(found),
            loops(document),
            setting(document, found)
        ),
        Plot::Lines(Lines {
            x: Axis::plain(unit(found).to_owned(), Scale::FromZero),
            y: Axis::of_ratios(format!("{time}, ms (logarithmic)"), &series),
            band: None,
            series,
        }),
    )
}

/// The size of the plot into which labels have to fit, in dots of the screen.
const PLOT: (f64, f64) = (PLOT_WIDTH, 190.0);
/// The width of a letter of a label, and the height of a line.
const LETTER: (f64, f64) = (LETTER_WIDTH, 14.0);

/// Removes labels that would overlap others: the answer's label has priority, then those of the
/// highest probes, which matter most for a search. Returns whether any was removed; the reader can
/// still see the value by pointing at a dot.
fn thin_out(found: &PeakFound, dots: &mut [(f64, Dot)]) -> bool {
    let most = dots.iter().map(|(_, dot)| dot.x).fold(f64::MIN_POSITIVE, f64::max);
    let heights = || {
        let halves = dots.iter().filter_map(|(_, dot)| Some((dot.y?, dot.half.unwrap_or(0.0))));
        halves.flat_map(|(y, half)| [(y - half).max(y / 5.0), y + half])
    };
    let (low, high) = (heights().fold(f64::MAX, f64::min), heights().fold(0.0, f64::max));
    let span = (high / low).ln().max(0.1);
    let left_and_top = |dot: &Dot| {
        let width = dot.label.chars().count() as f64 * LETTER.0;
        let (x, y) =
            (dot.x / most * PLOT.0, dot.y.map_or(0.0, |y| (high / y).ln() / span * PLOT.1));
        // At the positions that the renderers use.
        let left = if reaches_the_axis(dot, most) { x + ASIDE } else { x - ASIDE - width };
        (left, left + width, y)
    };
    let mut order: Vec<usize> = (0..dots.len()).collect();
    order.sort_by(|one, other| {
        let is_answer = |nth: &usize| found.choice == Some(dots[*nth].0);
        let by_value = dots[*other].0.total_cmp(&dots[*one].0);
        is_answer(other).cmp(&is_answer(one)).then(by_value)
    });
    let (mut kept, mut any) = (Vec::new(), false);
    for nth in order {
        let (left, right, top) = left_and_top(&dots[nth].1);
        let clear = |(from, to, at): &(f64, f64, f64)| {
            right + ASIDE / 2.0 <= *from
                || *to + ASIDE / 2.0 <= left
                || LETTER.1 <= (at - top).abs()
        };
        if kept.iter().all(clear) {
            kept.push((left, right, top));
        } else {
            dots[nth].1.label.clear();
            any = true;
        }
    }
    any
}

fn throughput(document: &Document, found: &PeakFound) -> Chart {
    let positive = found.probes.iter().all(|probe| probe.value > 0.0);
    let dots: Vec<(f64, Dot)> = found
        .probes
        .iter()
        .map(|probe| {
            let estimate = &probe.throughput;
            let dot = Dot {
                x: probe.value,
                y: Some(read(found, estimate.value)),
                half: estimate.half_width.map(|half| read(found, half.min(estimate.value))),
                label: String::new(),
                about: about(document, found, probe),
            };
            (probe.value, dot)
        })
        .collect();
    let mut series = families(found, &dots);
    let mut meaning = String::new();
    if let (Some(enough), Some(best)) = (found.enough, &found.best) {
        let name = format!("{} of the best", figures::percent(enough));
        meaning = format!(
            " The broken line is {name}. A setting counts as enough unless the odds are three to one \
             that it is below."
        );
        let rule = rule(name, Paint::Muted, read(found, best.value) * enough, &dots);
        series.splice(0..0, rule);
    }
    Chart::of_one(
        "throughput",
        format!("{} by {}", unit(found), setting(document, found)),
        format!("{}, {}. {BARS}{meaning}", unit(found), loops(document)),
        Plot::Lines(Lines {
            x: Axis {
                title: match positive {
                    true => format!("{} (logarithmic)", setting(document, found)),
                    false => setting(document, found),
                },
                scale: if positive { Scale::Log } else { Scale::Linear },
                ticks: ticks(found),
                range: None,
            },
            y: Axis::plain(unit(found).to_owned(), Scale::FromZero),
            band: None,
            series,
        }),
    )
}

/// A label at each value that was probed, as far as they do not overlap: the answer's has priority.
fn ticks(found: &PeakFound) -> Vec<(f64, String)> {
    let values = || found.probes.iter().map(|probe| probe.value);
    let ends = values().fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let apart = (ends.1 / ends.0).ln() * TICKS_APART;
    let mut kept: Vec<f64> = found.choice.into_iter().collect();
    for value in values() {
        if !kept.iter().any(|known| (known / value).ln().abs() <= apart) {
            kept.push(value);
        }
    }
    kept.sort_by(f64::total_cmp);
    kept.into_iter().map(|number| (number, value(number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(values: &[(f64, f64, f64)], choice: f64) -> (PeakFound, Vec<(f64, Dot)>) {
        let found = PeakFound {
            axis: "rate".to_owned(),
            measure: "iops".to_owned(),
            enough: None,
            objective: None,
            probes: Vec::new(),
            choice: Some(choice),
            equals: Vec::new(),
            best: None,
            official_is_open: false,
        };
        let dot = |&(rate, x, y): &(f64, f64, f64)| {
            (rate, Dot { x, y: Some(y), half: None, label: value(rate), about: String::new() })
        };
        (found, values.iter().map(dot).collect())
    }

    #[test]
    fn labels_that_would_lie_on_others_are_left_out() {
        // The probes of a search for an open loop: four times the load each, until it fails.
        let probed = [
            (1e3, 1e3, 0.093),
            (4e3, 4e3, 0.093),
            (16e3, 16e3, 0.127),
            (64e3, 64e3, 0.16),
            (256e3, 256e3, 0.24),
            (722e3, 722e3, 1.55),
            (754e3, 732e3, 67.0),
            (1020e3, 732e3, 648.0),
        ];
        let (found, mut dots) = search(&probed, 722e3);
        assert!(thin_out(&found, &mut dots));
        let labels: Vec<&str> = dots.iter().map(|(_, dot)| dot.label.as_str()).collect();
        assert_eq!(labels, ["", "4,000", "", "", "256,000", "722,000", "754,000", "1,020,000"]);
    }

    #[test]
    fn labels_with_room_stay() {
        let probed = [(1.0, 11e3, 0.089), (8.0, 90e3, 0.09), (64.0, 460e3, 0.107)];
        let (found, mut dots) = search(&probed, 64.0);
        assert!(!thin_out(&found, &mut dots));
        assert!(dots.iter().all(|(_, dot)| !dot.label.is_empty()));
    }
}
