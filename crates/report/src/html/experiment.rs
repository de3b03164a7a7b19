//! What an experiment found, for the browser: its charts, and the same figures in a table.

use super::{anchor, chip, escape, no_charts, or_dash, plotly, put, time, with_half};
use crate::chart::map::Told;
use crate::chart::sustain::Watched;
use crate::chart::{self, Chart, Plot};
use crate::document::{
    CellKind, Command, Document, Estimate, Found, JobsFound, MapFound, PeakFound, Role,
    SustainFound, Verdict,
};
use crate::figures::{self, plus_minus};
use crate::results::{QUANTILES, Results, Spot};
use crate::terminal;

/// More repeats of a point than this are not linked one by one.
const LINKED: usize = 6;

/// Tables with so many columns are set smaller.
const MANY: usize = 11;

/// The charts and tables of an experiment; nothing of a run.
pub fn section(out: &mut String, document: &Document) {
    if !document.is_experiment() {
        return;
    }
    let name = document.header.experiment.as_ref().map(|experiment| experiment.name.as_str());
    let imported = document.header.imported.as_ref().map(|source| source.program.as_str());
    let name = name.or(imported).unwrap_or("experiment");
    let heading = match document.header.command {
        Command::Sustain if name != "workload" => format!("SNIA test {name}"),
        Command::Study => format!("Study {name}"),
        // A program is called what it calls itself.
        Command::Import => name.to_owned(),
        _ => figures::capitalized(name),
    };
    put!(out, "<section>\n<h2>{}</h2>\n", escape(&heading));
    let charts = chart::charts(document);
    places(out, &charts);
    if !charts.is_empty() {
        no_charts(out);
    }
    let found = document.conclusion.as_ref().and_then(|last| last.found.as_ref());
    match found {
        Some(Found::Sweep(sweep)) => {
            results(out, &Results::of(document, &[Role::Result]), false);
            cut_off(out, &sweep.cut_off);
            runs(out, document);
        }
        Some(Found::Peak(found)) => peak(out, found),
        Some(Found::Map(found)) => map(out, document, found),
        Some(Found::Sustain(found)) => {
            if let Some(others) = chart::sustain::beside(document, found) {
                let title = chart::sustain::beside_in_words(found);
                put!(out, "<h3>{}</h3>\n", escape(&title));
                let times = Watched::of(found) == Watched::Time;
                results(out, &others, times);
            }
            rounds(out, found);
        }
        Some(Found::Jobs(found)) => jobs(out, found),
        None => results(out, &chart::so_far(document), false),
    }
    out.push_str("</section>\n");
}

/// The elements that the charts are drawn into.
fn places(out: &mut String, charts: &[Chart]) {
    out.push_str("<div class=\"charts\">\n");
    let whole: Vec<bool> =
        charts.iter().map(|chart| plotly::ids(chart).len() > 1 || is_wide(chart)).collect();
    // Two stand side by side; one that would be alone in its row takes all of it.
    let mut left = true;
    for (nth, chart) in charts.iter().enumerate() {
        let ids = plotly::ids(chart);
        let alone = left && whole.get(nth + 1).is_none_or(|next| *next);
        let wide = whole[nth] || alone;
        left = wide || !left;
        let wide = if wide { " wide" } else { "" };
        let tall = if is_tall(chart) { "tall" } else { "drawn" };
        let name = escape(&chart.title);
        let caption = escape(&chart.caption);
        put!(out, "<div class=\"chart{wide}\"><h3>{name}</h3>");
        put!(out, "<p class=\"muted small\">{caption}</p>");
        if let [id] = ids.as_slice() {
            put!(out, "<div id=\"{id}\" class=\"{tall}\"></div>");
        }
        out.push_str("</div>\n");
        if ids.len() > 1 {
            for (id, panel) in ids.iter().zip(&chart.panels) {
                let title = escape(&panel.title);
                put!(
                    out,
                    "<div class=\"chart\"><h3>{title}</h3><div id=\"{id}\" class=\"{tall}\"></div></div>\n"
                );
            }
        }
    }
    out.push_str("</div>\n");
}

/// Rounds and cells need the whole width; so does what has many values to the right.
fn is_wide(chart: &Chart) -> bool {
    chart.panels.iter().any(|panel| match &panel.plot {
        Plot::Heat(heat) => heat.x.len() > if heat.written { 5 } else { 8 },
        // Many names need many rows where they have half of the width.
        Plot::Lines(lines) => lines.x.ticks.len() > 14 || lines.series.len() > 6,
    })
}

fn is_tall(chart: &Chart) -> bool {
    let tall = |plot: &Plot| matches!(plot, Plot::Heat(heat) if heat.y.len() > 12);
    chart.panels.iter().any(|panel| tall(&panel.plot))
}

fn begin(out: &mut String, heads: &[&str]) {
    // So many columns would push the last one out of the page.
    let many = if MANY <= heads.len() { " many" } else { "" };
    put!(out, "<div class=\"scroll figures{many}\"><table>\n<thead><tr>");
    heads.iter().for_each(|head| put!(out, "<th>{}</th>", escape(head)));
    out.push_str("</tr></thead>\n<tbody>\n");
}

fn end(out: &mut String) {
    out.push_str("</tbody></table></div>\n");
}

/// Results in a table; of a test of times with the mean and the maximum as well.
fn results(out: &mut String, results: &Results<'_>, times: bool) {
    if results.spots.is_empty() {
        return;
    }
    let mut heads: Vec<&str> = results.axes.iter().map(|axis| axis.name.as_str()).collect();
    heads.extend(["IOPS", "MiB/s", "p50", "p99", "p99.9"]);
    if times {
        heads.extend(["mean", "maximum"]);
    }
    heads.extend(["trials", "verdict"]);
    begin(out, &heads);
    for spot in &results.spots {
        out.push_str("<tr>");
        spot.coordinates.iter().for_each(|one| put!(out, "<td>{}</td>", escape(&one.label)));
        row(out, spot);
        if times {
            let (mean, max) = spot.mean_and_max.unzip();
            put!(out, "<td>{}</td><td>{}</td>", time(mean), time(max.map(|max| max as f64)));
        }
        let links = spot.trials.iter().map(|(number, trial)| {
            let mark = if trial.verdict == Verdict::Sound { "" } else { "?" };
            format!("<a href=\"#{}\">{number}</a>{mark}", anchor(*number))
        });
        let mut links: Vec<String> = links.collect();
        if LINKED < links.len() {
            // So many would push the verdict out of the page.
            let count = links.len();
            links.splice(LINKED / 2..count - 1, ["…".to_owned()]);
            links.push(format!("({count})"));
        }
        put!(out, "<td>{}</td>", links.join(" "));
        put!(out, "<td>{}</td></tr>\n", chip(spot.verdict.name()));
    }
    end(out);
    out.push_str(
        "<p class=\"muted small\">Repeats of a point are told together: rates over all their \
         windows, percentiles of all their I/Os; void trials are left out where there are others. \
         A question mark after a trial: it is not sound.</p>\n",
    );
}

fn row(out: &mut String, spot: &Spot<'_>) {
    let summary = &spot.summary;
    let iops = or_dash(summary.iops.map(|estimate| figures::rate(estimate.value)));
    out.push_str(&with_half(&iops, &plus_minus(summary.iops.as_ref())));
    let mib = summary.bandwidth.map(|estimate| figures::rate(figures::mib(estimate.value)));
    out.push_str(&with_half(&or_dash(mib), &plus_minus(summary.bandwidth.as_ref())));
    for (_, estimate) in QUANTILES.iter().zip(&summary.quantiles) {
        let value = time(estimate.map(|estimate| estimate.value));
        out.push_str(&with_half(&value, &plus_minus(estimate.as_ref())));
    }
}

fn cut_off(out: &mut String, points: &[Vec<String>]) {
    if points.is_empty() {
        return;
    }
    let names: Vec<String> = points.iter().map(|point| escape(&point.join(", "))).collect();
    put!(
        out,
        "<p class=\"muted small\">Cut off because they were clearly worse: {}.</p>\n",
        names.join("; ")
    );
}

/// What each run did that was to move a fixed amount, in the order in which they were run.
fn runs(out: &mut String, document: &Document) {
    let runs = figures::runs(document);
    if runs.is_empty() {
        return;
    }
    out.push_str("<details><summary>Runs</summary>\n<ul>\n");
    for (place, line) in runs {
        put!(out, "<li>{}: {}</li>\n", escape(&place), escape(&line));
    }
    out.push_str("</ul></details>\n");
}

fn half(estimate: &Estimate) -> String {
    plus_minus(Some(estimate))
}

fn peak(out: &mut String, found: &PeakFound) {
    let unit = chart::peak::unit(found);
    let mut heads = Vec::from([found.axis.as_str(), unit, chart::peak::quantile(found), "probes"]);
    heads.push("answer");
    begin(out, &heads);
    for probe in &found.probes {
        let answer = chart::peak::answer(found, probe);
        put!(out, "<tr><td>{}</td>", escape(&chart::peak::value(probe.value)));
        let throughput = figures::rate(chart::peak::read(found, probe.throughput.value));
        out.push_str(&with_half(&throughput, &half(&probe.throughput)));
        let response_time = probe.response_time_ns.as_ref();
        let value = time(response_time.map(|time| time.value));
        out.push_str(&with_half(&value, &response_time.map(half).unwrap_or_default()));
        put!(out, "<td>{}</td><td>{}</td></tr>\n", probe.trials, escape(&answer));
    }
    end(out);
}

fn rounds(out: &mut String, found: &SustainFound) {
    if found.rounds.is_empty() {
        return;
    }
    let watched = Watched::of(found);
    out.push_str("<h3>The rounds</h3>\n");
    if let Some(steadiness) = &found.steadiness {
        let judged = terminal::judged(found, steadiness);
        put!(out, "<p>{} Steady means at most 20 % and 10 %.</p>\n", escape(&judged));
    }
    begin(out, &["round", &found.watched, "steady"]);
    for round in &found.rounds {
        let steady = found.steady_from.is_some_and(|from| from <= round.number);
        put!(out, "<tr><td>{}</td>", round.number);
        out.push_str(&with_half(&watched.text(round.value.value), &half(&round.value)));
        put!(out, "<td>{}</td></tr>\n", if steady { "yes" } else { "" });
    }
    end(out);
}

/// Another program's jobs, with the options that it was given.
fn jobs(out: &mut String, found: &JobsFound) {
    let quantiles = chart::jobs::QUANTILES.map(|quantile| quantile.to_string());
    let mut heads = Vec::from(["job", "", "IOPS", "MiB/s"]);
    heads.extend(quantiles.iter().map(String::as_str));
    heads.push("options");
    begin(out, &heads);
    for job in &found.jobs {
        let options = job.options.iter().map(|(name, value)| format!("{name}={value}"));
        let options = options.collect::<Vec<_>>().join(" ");
        for flow in &job.flows {
            put!(out, "<tr><td>{}</td><td>{}</td>", escape(&job.name), flow.direction_name());
            put!(out, "<td>{}</td>", or_dash(flow.iops.map(figures::rate)));
            let mib = flow.bandwidth_bytes.map(figures::mib);
            put!(out, "<td>{}</td>", or_dash(mib.map(figures::rate)));
            for quantile in chart::jobs::QUANTILES {
                put!(out, "<td>{}</td>", time(flow.service_time.at(quantile)));
            }
            put!(out, "<td class=\"options\">{}</td></tr>\n", escape(&options));
        }
    }
    end(out);
    out.push_str(
        "<p class=\"muted small\">Percentiles are of service times. A dash: it was not told, or \
         too few I/Os lie beyond it.</p>\n",
    );
}

fn map(out: &mut String, document: &Document, found: &MapFound) {
    if !found.doubts.is_empty() {
        out.push_str("<ul>\n");
        found.doubts.iter().for_each(|doubt| put!(out, "<li>{}</li>\n", escape(doubt)));
        out.push_str("</ul>\n");
    }
    if !found.validation.is_empty() {
        begin(out, &["filled-in cells against measurements", "cells", "median error", "largest"]);
        for one in &found.validation {
            put!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                one.quantile,
                one.cells,
                figures::percent(one.median_error),
                figures::percent(one.largest_error)
            );
        }
        end(out);
    }
    if let Some(drift) = found.drift {
        put!(out, "<p>{}</p>\n", terminal::drift_in_words(drift));
    }
    for (nth, quantile) in found.quantiles.iter().enumerate() {
        let time = Told::of(document).time;
        put!(out, "<details><summary>{} of the {time} in every cell</summary>\n", *quantile);
        surface(out, found, nth);
        out.push_str("</details>\n");
    }
}

/// A quantile of every cell: the bandwidth of the writes downwards, the rate of the reads to the
/// right.
fn surface(out: &mut String, found: &MapFound, nth: usize) {
    out.push_str(
        "<p class=\"muted small\">Writes in MiB/s downwards, reads in IOPS to the right. •: \
         measured; ?: measured, not precise; ×: overloaded; –: beyond.</p>\n\
         <div class=\"scroll\"><table class=\"cells\">\n<thead><tr><th></th>",
    );
    found.read_rates.iter().for_each(|rate| put!(out, "<th>{}</th>", figures::short_rate(*rate)));
    out.push_str("</tr></thead>\n<tbody>\n");
    for (write, bandwidth) in found.write_bandwidths.iter().enumerate() {
        put!(out, "<tr><th>{}</th>", figures::short_rate(figures::mib(*bandwidth)));
        for read in 0..found.read_rates.len() {
            let cell = found
                .cells
                .iter()
                .find(|cell| cell.write as usize == write && cell.read as usize == read);
            let Some(cell) = cell else {
                out.push_str("<td></td>");
                continue;
            };
            let value = cell.response_time_ns.get(nth).copied().flatten();
            let value = value.map(|value| figures::time(value.value));
            match cell.kind {
                CellKind::Overloaded => out.push_str("<td class=\"no\">×</td>"),
                CellKind::Beyond => out.push_str("<td class=\"no\">–</td>"),
                CellKind::Measured => put!(out, "<td>{} •</td>", or_dash(value)),
                CellKind::Imprecise => put!(out, "<td>{} ?</td>", or_dash(value)),
                CellKind::Filled => put!(out, "<td>{}</td>", or_dash(value)),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}
