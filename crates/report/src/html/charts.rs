//! The charts' figures for plotly. Colors are names of the page's own ("@read"), which the page's
//! script replaces, so that they follow light, dark and paper.

use fathom_core::Quantile;
use serde_json::{Value, json};

use super::plotly;
use crate::chart;
use crate::document::{Document, Trial};
use crate::figures;

/// Percentiles of the overview, with their colors.
const OVERVIEW: [(Quantile, &str); 3] =
    [(Quantile(0.5), "@low"), (Quantile(0.99), "@middle"), (Quantile(0.999), "@high")];

/// All figures of a document: each with the id of its element.
pub fn figures(document: &Document) -> Value {
    let mut all: Vec<Value> = chart::charts(document).iter().flat_map(plotly::figures).collect();
    if document.trials.len() > 1 && !document.is_experiment() {
        all.push(overview(&document.trials));
    }
    if !crate::page::draws_trials(document) {
        return Value::Array(all);
    }
    for (place, trial) in document.trials.iter().enumerate() {
        all.extend(chart::trial::charts(trial, place + 1).iter().flat_map(plotly::figures));
    }
    Value::Array(all)
}

/// For every step its IOPS as a bar, and its percentiles as dots.
fn overview(trials: &[Trial]) -> Value {
    let quantiles = OVERVIEW.map(|(quantile, _)| quantile);
    let summaries: Vec<_> =
        trials.iter().map(|trial| figures::summary(trial, None, &quantiles)).collect();
    let names: Vec<String> = trials
        .iter()
        .enumerate()
        .map(|(place, trial)| {
            let (what, pace) = figures::names(trial);
            format!("{} {}<br>{}", place + 1, plotly::plain(&what), plotly::plain(&pace))
        })
        .collect();
    let iops: Vec<Option<f64>> = summaries.iter().map(|s| s.iops.map(|e| e.value)).collect();
    // At most the value itself, as in the tables: a longer bar would only compress all others.
    let halves: Vec<Option<f64>> = summaries
        .iter()
        .map(|s| s.iops.and_then(|e| e.half_width.map(|half| half.min(e.value))))
        .collect();
    let mut data = vec![json!({
        "type": "bar", "orientation": "h", "x": iops, "y": names, "name": "IOPS",
        "marker": {"color": "@read"},
        "error_x": {"type": "data", "array": halves, "color": "@total", "thickness": 1.5},
        "hovertemplate": "%{x:,.0f} IOPS<extra></extra>", "showlegend": false,
    })];
    for (place, (quantile, color)) in OVERVIEW.into_iter().enumerate() {
        let ms: Vec<Option<f64>> =
            summaries.iter().map(|s| s.quantiles[place].map(|e| e.value / 1e6)).collect();
        data.push(json!({
            "type": "scatter", "mode": "markers", "x": ms, "y": names, "xaxis": "x2",
            "name": quantile.to_string(), "marker": {"color": color, "size": 11},
            "hovertemplate": format!("{quantile} %{{x:.3~g}} ms<extra></extra>"),
        }));
    }
    let height = 90 + 46 * trials.len();
    let shown = summaries.iter().flat_map(|s| s.quantiles.iter().flatten());
    let shown = shown.map(|estimate| estimate.value / 1e6);
    let mut times = plotly::log_axis("response time, ms (logarithmic)", shown);
    times["domain"] = json!([0.52, 1.0]);
    times["anchor"] = json!("y");
    json!({"id": "overview", "data": data, "layout": {
        "height": height,
        "yaxis": {"autorange": "reversed", "ticklabelstandoff": 6},
        "xaxis": {"domain": [0.0, 0.46], "title": {"text": "IOPS"}, "rangemode": "tozero"},
        "xaxis2": times,
        "legend": {"orientation": "h", "x": 0.52, "y": 1.02, "yanchor": "bottom"}, "bargap": 0.35,
    }})
}
