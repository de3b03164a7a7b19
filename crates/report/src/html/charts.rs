//! The charts' figures for plotly. Colors are names of the page's own ("@read"), which the page's
//! script replaces, so that they follow light, dark and paper.

use fathom_core::stats::Estimate;
use serde_json::{Value, json};

use super::plotly;
use crate::document::Document;
use crate::figures::{self, Summary};
use crate::page::{Block, Drawing, Page, StepGroup, groups};
use crate::results::QUANTILES;

/// The colors of the percentiles of every result.
const OVERVIEW: [&str; 3] = ["@low", "@middle", "@high"];

/// The figures of the steps of a run, which a page only names: each with the id of its element.
pub fn of_steps(document: &Document) -> Vec<Value> {
    match document.is_experiment() {
        true => Vec::new(),
        false => groups(document).iter().flat_map(group).collect(),
    }
}

/// The figures of the charts in a page, `named` among them.
pub fn of_page(page: &Page, named: &[Value]) -> Value {
    let mut all = Vec::new();
    of_blocks(&page.blocks, named, &mut all);
    Value::Array(all)
}

fn of_blocks(blocks: &[Block], named: &[Value], all: &mut Vec<Value>) {
    for block in blocks {
        match block {
            Block::Section(section) => of_blocks(&section.blocks, named, all),
            Block::Charts(drawings) => all.extend(drawings.iter().flat_map(|one| match one {
                Drawing::Chart(chart) => plotly::figures(chart),
                Drawing::Named { id, .. } => {
                    named.iter().filter(|one| one["id"] == **id).cloned().collect()
                }
            })),
            _ => {}
        }
    }
}

/// The figures of steps that are compared in one unit: their throughput as bars, and their
/// percentiles as dots.
fn group(group: &StepGroup<'_>) -> [Value; 2] {
    let summaries: Vec<&Summary> = group.steps.iter().map(|(_, step)| &step.summary).collect();
    let names: Vec<String> = group
        .steps
        .iter()
        .map(|(number, step)| {
            let (what, pace) = figures::names(step.first());
            format!("{number} {}<br>{}", plotly::plain(&what), plotly::plain(&pace))
        })
        .collect();
    [throughput(group, &summaries, &names), times(group, &summaries, &names)]
}

fn figure(id: String, steps: usize, data: &[Value], x: Value) -> Value {
    json!({"id": id, "data": data, "layout": {
        // So high that a fifth of it is a legend of two rows.
        "height": 156 + 46 * steps,
        "yaxis": {"autorange": "reversed", "ticklabelstandoff": 6},
        "xaxis": x, "bargap": 0.35, "margin": {"l": 56, "r": 12, "t": 36, "b": 44},
    }})
}

fn throughput(group: &StepGroup<'_>, summaries: &[&Summary], names: &[String]) -> Value {
    let scale = if group.in_bytes { 1e-6 } else { 1.0 };
    let of = |summary: &Summary| if group.in_bytes { summary.bandwidth } else { summary.iops };
    let values: Vec<Option<f64>> =
        summaries.iter().map(|summary| of(summary).map(|one| one.value * scale)).collect();
    // At most the value itself, as in the tables: a longer bar would only compress all others.
    let half = |one: Estimate| one.half_width.map(|half| half.min(one.value) * scale);
    let halves: Vec<Option<f64>> =
        summaries.iter().map(|summary| of(summary).and_then(half)).collect();
    let shown: Vec<Option<String>> =
        values.iter().map(|value| value.map(figures::significant)).collect();
    let unit = group.unit();
    let bars = json!({
        "type": "bar", "orientation": "h", "x": values, "y": names, "name": unit,
        "marker": {"color": "@read"},
        "error_x": {"type": "data", "array": halves, "color": "@total", "thickness": 1.5},
        "hovertext": shown, "hovertemplate": format!("%{{hovertext}} {unit}<extra></extra>"),
        "showlegend": false,
    });
    let x = json!({"title": {"text": unit}, "rangemode": "tozero"});
    figure(group.ids()[0].clone(), names.len(), &[bars], x)
}

fn times(group: &StepGroup<'_>, summaries: &[&Summary], names: &[String]) -> Value {
    let mut data = Vec::new();
    for (place, (quantile, color)) in QUANTILES.into_iter().zip(OVERVIEW).enumerate() {
        let of = summaries.iter().map(|summary| summary.quantiles[place].map(|one| one.value));
        let ms: Vec<Option<f64>> = of.clone().map(|time| time.map(|ns| ns / 1e6)).collect();
        let shown: Vec<Option<String>> = of.map(|time| time.map(figures::time)).collect();
        data.push(json!({
            "type": "scatter", "mode": "markers", "x": ms, "y": names,
            "name": quantile.to_string(), "marker": {"color": color, "size": 11},
            "hovertext": shown, "hovertemplate": format!("{quantile} %{{hovertext}}<extra></extra>"),
        }));
    }
    let shown = summaries.iter().flat_map(|s| s.quantiles.iter().flatten());
    let shown = shown.map(|estimate| estimate.value / 1e6);
    let x = plotly::log_axis("response time, ms (logarithmic)", shown);
    figure(group.ids()[1].clone(), names.len(), &data, x)
}
