//! The charts of an experiment in the terms of plotly.

use serde_json::{Value, json};

use crate::chart::{
    Axis, Chart, Contour, Cover, Dot, Form, Heat, HeatCell, Limit, Lines, NO_VALUES, Plot, Scale,
    Series, Shape, is_at_the_edge, labeled, log_ticks, scale_stops, tick_texts,
};

/// The color for missing values, on light and on dark alike.
const GRAY: &str = "rgba(128,128,128,0.28)";

/// The color of shaded areas.
const SHADE: &str = "rgba(0,158,115,0.13)";

/// Text for plotly, which interprets markup.
pub fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The ids of a chart's elements, one for each plot that is drawn by itself.
pub fn ids(chart: &Chart) -> Vec<String> {
    match chart.one_at_a_time || chart.panels.len() == 1 {
        true => Vec::from([format!("chart-{}", chart.name)]),
        false => {
            (1..=chart.panels.len()).map(|nth| format!("chart-{}-{nth}", chart.name)).collect()
        }
    }
}

/// The figures of a chart, in the order of its ids.
pub fn figures(chart: &Chart) -> Vec<Value> {
    let ids = ids(chart);
    if chart.one_at_a_time && chart.panels.len() > 1 {
        return Vec::from([choice(chart, &ids[0])]);
    }
    let figure = |(id, panel): (&String, &crate::chart::Panel)| {
        let (data, layout) = plot(&panel.plot);
        json!({"id": id, "data": data, "layout": layout})
    };
    ids.iter().zip(&chart.panels).map(figure).collect()
}

/// All plots in the place of one, of which the page's buttons show one, with their limits.
fn choice(chart: &Chart, id: &str) -> Value {
    let choice = |panel: &crate::chart::Panel| {
        let (data, layout) = plot(&panel.plot);
        let limits: &[Limit] = match &panel.plot {
            Plot::Heat(heat) => &heat.limits,
            Plot::Lines(_) => &[],
        };
        let limit =
            |one: &Limit| json!({"value": one.value, "text": one.text, "answer": one.answer});
        let limits: Vec<Value> = limits.iter().map(limit).collect();
        json!({"data": data, "layout": layout, "limits": limits})
    };
    let choices: Vec<Value> = chart.panels.iter().map(choice).collect();
    json!({"id": id, "choices": choices, "first": chart.first()})
}

fn plot(plot: &Plot) -> (Vec<Value>, Value) {
    match plot {
        Plot::Lines(lines) => {
            let traces = lines.series.iter().map(|one| series(one, lines));
            (traces.collect(), layout(lines))
        }
        Plot::Heat(heat) => (cells(heat), heat_layout(heat)),
    }
}

fn about(text: &str) -> String {
    plain(text).replace('\n', "<br>")
}

/// As many digits as a table has of the largest figures, and no exponent.
const DIGITS: &str = ",.6~r";

/// What a value says to a reader who points at it, if it has no words of its own.
fn hover(lines: &Lines) -> String {
    let unit = |axis: &Axis| plain(&axis.title.replace(" (logarithmic)", ""));
    match lines.x.ticks.is_empty() {
        true => format!("%{{y:{DIGITS}}} {} at %{{x:{DIGITS}}} {}", unit(&lines.y), unit(&lines.x)),
        // The place has a name that the axis shows.
        false => format!("%{{y:{DIGITS}}} {}", unit(&lines.y)),
    }
}

fn series(series: &Series, lines: &Lines) -> Value {
    let of = |value: &dyn Fn(&Dot) -> Value| series.dots.iter().map(value).collect::<Vec<Value>>();
    let color = match series.paint.named() {
        (Some(name), _) => format!("@{name}"),
        (None, color) => color,
    };
    let mut trace = json!({
        "x": of(&|dot| json!(dot.x)),
        "y": of(&|dot| json!(dot.y)),
        "name": plain(&series.name),
        "showlegend": !series.name.is_empty(),
    });
    if series.dots.iter().any(|dot| dot.half.is_some()) {
        trace["error_y"] = json!({"type": "data", "array": of(&|dot| json!(dot.half)),
            "thickness": 1.3, "width": 3, "color": color, "visible": true});
    }
    match series.dots.iter().any(|dot| !dot.about.is_empty()) {
        true => {
            trace["hovertext"] = json!(of(&|dot| json!(about(&dot.about))));
            trace["hovertemplate"] = json!("%{hovertext}<extra></extra>");
        }
        false => trace["hovertemplate"] = json!(hover(lines)),
    }
    let set = |trace: &mut Value, more: Value| {
        let more = more.as_object().cloned().unwrap_or_default();
        more.into_iter().for_each(|(key, value)| trace[key] = value);
    };
    let labeled = series.dots.iter().any(|dot| !dot.label.is_empty());
    let mode = |base: &str| if labeled { format!("{base}+text") } else { base.to_owned() };
    match series.form {
        Form::Line { dashed } => set(
            &mut trace,
            json!({
                "type": "scatter", "mode": "lines",
                "line": {"color": color, "width": 1.6, "dash": if dashed { "dash" } else { "solid" }},
            }),
        ),
        Form::Dotted(shape) | Form::Dashed(shape) => {
            let dash = if series.form == Form::Dashed(shape) { "dash" } else { "solid" };
            set(
                &mut trace,
                json!({
                    "type": "scatter", "mode": mode("lines+markers"),
                    "line": {"color": color, "width": 2, "dash": dash},
                    "marker": marker(shape, &color),
                }),
            );
        }
        Form::Dots(shape) => set(
            &mut trace,
            json!({
                "type": "scatter", "mode": mode("markers"), "marker": marker(shape, &color),
            }),
        ),
        Form::Bars => {
            set(&mut trace, json!({"type": "bar", "marker": {"color": color}}));
            if trace.get("error_y").is_some() {
                trace["error_y"]["color"] = json!("@ink");
            }
        }
    }
    if labeled {
        trace["text"] = json!(of(&|dot| json!(plain(&dot.label))));
        trace["textposition"] = match series.form {
            Form::Bars => json!("outside"),
            _ => json!(of(&|dot| json!(beside(dot, series)))),
        };
        // A label at the edge is whole.
        trace["cliponaxis"] = json!(false);
    }
    trace
}

/// The shape of a dot in plotly's terms.
fn marker(shape: Shape, color: &str) -> Value {
    let (symbol, size) = match shape {
        Shape::Ring => {
            return json!({"symbol": "circle-open", "size": 17, "color": color,
                "line": {"width": 2.5, "color": color}});
        }
        Shape::Cross => ("x", 10),
        Shape::Point => ("circle", 4),
        Shape::Circle => ("circle", 7),
        Shape::Square => ("square", 8),
        Shape::Diamond => ("diamond", 9),
        Shape::Triangle => ("triangle-up", 9),
    };
    json!({"symbol": symbol, "size": size, "color": color})
}

/// The position of a label: away from a line that rises to the right, and not on the axis.
fn beside(dot: &Dot, series: &Series) -> &'static str {
    if is_at_the_edge(dot, series) { "top right" } else { "top left" }
}

/// A logarithmic axis over these values. Its labels are whole numbers: the library's own would be a 2
/// between 0.1 and 1.
pub fn log_axis(title: &str, values: impl Iterator<Item = f64>) -> Value {
    let mut value = json!({"title": {"text": title}, "type": "log"});
    let shown = values.filter(|value| value.is_finite() && 0.0 < *value);
    let ends = shown.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    if let Some((low, high)) = ends {
        // So wide that there are labels at both sides of values that are all alike.
        let (low, high) = (low * 0.8, high * 1.25);
        put_labels(&mut value, &labeled(log_ticks(low, high)));
        value["range"] = json!([low.log10(), high.log10()]);
    }
    value
}

fn put_labels(axis: &mut Value, labels: &[(f64, String)]) {
    let at: Vec<f64> = labels.iter().map(|(at, _)| *at).collect();
    let text: Vec<String> = labels.iter().map(|(_, text)| plain(text)).collect();
    axis["tickvals"] = json!(at);
    axis["ticktext"] = json!(text);
}

fn axis(axis: &Axis, values: impl Iterator<Item = f64>) -> Value {
    let title = plain(&axis.title);
    let mut value = match axis.scale {
        Scale::FromZero => {
            json!({"title": {"text": title}, "separatethousands": true, "rangemode": "tozero"})
        }
        Scale::Linear => json!({"title": {"text": title}, "separatethousands": true}),
        Scale::Log => {
            let ends = axis.range.map(|(low, high)| [low, high]);
            log_axis(&title, values.chain(ends.into_iter().flatten()))
        }
    };
    if !axis.ticks.is_empty() {
        put_labels(&mut value, &axis.ticks);
    }
    if let Some((low, high)) = axis.range {
        let on = |end: f64| if axis.scale == Scale::Log { end.log10() } else { end };
        value["range"] = json!([on(low), on(high)]);
    }
    value
}

fn layout(lines: &Lines) -> Value {
    let named = lines.series.iter().any(|series| !series.name.is_empty());
    let top = if named { 44 } else { 16 };
    let dots = || lines.series.iter().flat_map(|series| &series.dots);
    let x = axis(&lines.x, dots().map(|dot| dot.x));
    let ends = |dot: &Dot| dot.y.map(|y| [y, y + dot.half.unwrap_or(0.0)]);
    let y = axis(&lines.y, dots().filter_map(ends).flatten());
    let mut layout = json!({
        "xaxis": x, "yaxis": y, "barmode": "group", "bargap": 0.3,
        "margin": {"l": 56, "r": 16, "t": top, "b": 44},
    });
    if let Some((from, to)) = lines.band {
        layout["shapes"] = json!([{"type": "rect", "xref": "x", "yref": "paper", "x0": from,
            "x1": to, "y0": 0, "y1": 1, "fillcolor": SHADE, "line": {"width": 0},
            "layer": "below"}]);
    }
    if lines.is_empty() {
        layout["annotations"] = json!([{"text": NO_VALUES, "xref": "paper", "yref": "paper",
            "x": 0.5, "y": 0.5, "showarrow": false}]);
    }
    layout
}

/// A matrix of the cells' texts; empty if there are none.
fn matrix(heat: &Heat, of: impl Fn(&HeatCell) -> Value) -> Vec<Vec<Value>> {
    let mut rows = vec![vec![Value::Null; heat.x.len()]; heat.y.len()];
    for cell in &heat.cells {
        if let Some(place) = rows.get_mut(cell.y).and_then(|row| row.get_mut(cell.x)) {
            *place = of(cell);
        }
    }
    rows
}

fn cells(heat: &Heat) -> Vec<Value> {
    let on = |value: f64| if heat.log { value.log10() } else { value };
    let masked = |cell: &HeatCell| matches!(cell.cover, Cover::Hatched | Cover::Gray);
    let xs: Vec<usize> = (0..heat.x.len()).collect();
    let ys: Vec<usize> = (0..heat.y.len()).collect();
    let ticks = heat.ticks();
    let labels = tick_texts(&ticks);
    let hover = "%{hovertext}<extra></extra>";
    let mut traces = Vec::from([
        json!({
            "type": "heatmap", "x": xs, "y": ys, "xgap": 1, "ygap": 1, "showscale": false,
            "z": matrix(heat, |cell| if masked(cell) { json!(1) } else { Value::Null }),
            "hovertext": matrix(heat, |cell| json!(about(&cell.about))), "hovertemplate": hover,
            "colorscale": [[0, GRAY], [1, GRAY]], "zmin": 0, "zmax": 1,
        }),
        json!({
            "type": "heatmap", "x": xs, "y": ys, "xgap": 1, "ygap": 1,
            "z": matrix(heat, |cell| match cell.value {
                Some(value) if !masked(cell) => json!(on(value)),
                _ => Value::Null,
            }),
            "hovertext": matrix(heat, |cell| json!(about(&cell.about))), "hovertemplate": hover,
            "colorscale": scale_stops(heat.palette),
            "colorbar": {"title": {"text": plain(&heat.title), "side": "right"}, "thickness": 14,
                "outlinewidth": 0, "tickvals": ticks.iter().map(|tick| on(*tick)).collect::<Vec<_>>(),
                "ticktext": labels},
        }),
    ]);
    if let Some((low, high)) = heat.range() {
        traces[1]["zmin"] = json!(on(low));
        traces[1]["zmax"] = json!(on(high));
    }
    traces.extend(heat.contours.iter().map(contour));
    if heat.written {
        // A missing cell has an empty text; without a text it would show "null".
        let mut texts = vec![vec![String::new(); heat.x.len()]; heat.y.len()];
        for cell in &heat.cells {
            if let Some(text) = texts.get_mut(cell.y).and_then(|row| row.get_mut(cell.x)) {
                *text = plain(&cell.text);
            }
        }
        traces[1]["text"] = json!(texts);
        traces[1]["texttemplate"] = json!("%{text}");
    }
    traces.extend(marks(heat));
    traces
}

/// How the cells are known, as marks on them.
fn marks(heat: &Heat) -> Vec<Value> {
    let mut traces = Vec::new();
    let covers = [
        (
            Cover::Dot,
            "measured",
            json!({"symbol": "circle", "size": 5, "color": "#ffffff",
            "line": {"color": "#000000", "width": 1}}),
        ),
        (
            Cover::Triangle,
            "not precise",
            json!({"symbol": "triangle-up", "size": 8,
            "color": "#ffffff", "line": {"color": "#000000", "width": 1}}),
        ),
        (
            Cover::Hatched,
            if heat.written { "void" } else { "overloaded" },
            json!({"symbol": "line-ne", "size": 11, "color": "@muted",
            "line": {"color": "@muted", "width": 1.5}}),
        ),
    ];
    for (cover, name, marker) in covers {
        let own: Vec<&HeatCell> = heat.cells.iter().filter(|cell| cell.cover == cover).collect();
        if !own.is_empty() {
            traces.push(json!({
                "type": "scatter", "mode": "markers", "name": name, "marker": marker,
                "x": own.iter().map(|cell| cell.x).collect::<Vec<_>>(),
                "y": own.iter().map(|cell| cell.y).collect::<Vec<_>>(),
                "hoverinfo": "skip", "showlegend": true,
            }));
        }
    }
    traces
}

/// A line of equal values. Its ends are gaps, so that one trace has all of its pieces.
fn contour(contour: &Contour) -> Value {
    let ends = contour.pieces.iter().flat_map(|[from, to]| [Some(*from), Some(*to), None]);
    let (x, y): (Vec<Option<f64>>, Vec<Option<f64>>) =
        ends.map(|end| (end.map(|(x, _)| x), end.map(|(_, y)| y))).unzip();
    json!({
        "type": "scatter", "mode": "lines", "x": x, "y": y, "name": plain(&contour.label),
        "line": {"color": "#000000", "width": 1.4}, "hoverinfo": "skip", "showlegend": false,
    })
}

/// The values of lines, each on its line.
fn contour_labels(heat: &Heat) -> Vec<Value> {
    let label = |contour: &Contour| {
        let (x, y) = contour.at;
        json!({"x": x, "y": y, "text": plain(&contour.label), "showarrow": false,
            "bgcolor": "#ffffff", "borderpad": 1, "font": {"color": "#000000", "size": 11}})
    };
    heat.contours.iter().map(label).collect()
}

fn heat_layout(heat: &Heat) -> Value {
    let steps = |title: &str, labels: &[String], most: usize| {
        let each = labels.len().div_ceil(most).max(1);
        let shown = || (0..labels.len()).step_by(each);
        json!({
            "title": {"text": plain(title), "standoff": 10}, "showgrid": false, "zeroline": false,
            "tickvals": shown().collect::<Vec<usize>>(),
            "ticktext": shown().map(|nth| plain(&labels[nth])).collect::<Vec<String>>(),
            "range": [-0.5, labels.len() as f64 - 0.5],
        })
    };
    json!({
        "xaxis": steps(&heat.x_title, &heat.x, 11), "yaxis": steps(&heat.y_title, &heat.y, 21),
        "margin": {"l": 64, "r": 12, "t": 40, "b": 48}, "annotations": contour_labels(heat),
    })
}
