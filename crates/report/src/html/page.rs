//! What the page says: everything but the charts, in plain HTML.

use fathom_core::Quantile;
use fathom_core::measure::{Direction, Flow};

use super::{
    anchor, chip, escape, experiment, no_charts, or_dash, put, time, title, verdict_class,
    with_half,
};
use crate::document::{Document, Ended, Finding, Target, Trial, Verdict};
use crate::figures::{self, Part, direction_name, plus_minus};
use crate::terminal;

/// Percentiles of the overview.
const QUANTILES: [Quantile; 3] = [Quantile(0.5), Quantile(0.99), Quantile(0.999)];

/// The most trials of an experiment that are drawn one by one: a browser is slow with hundreds.
const TRIALS_DRAWN: usize = 12;

/// How many errors are listed one by one.
const ERRORS_SHOWN: usize = 20;

/// A list of more trials than this is closed: below it stand the target and the host.
const LISTED: usize = 60;

/// The body of the page.
pub fn body(document: &Document) -> String {
    let mut out = String::new();
    head(&mut out, document);
    verdict(&mut out, document);
    experiment::section(&mut out, document);
    if document.trials.len() > 1 {
        overview(&mut out, document);
    }
    if !draws_trials(document) {
        put!(
            out,
            "<section><h2>Trial by trial</h2><p class=\"muted small\">There are too many to draw \
             what each of them did over time. For one of them, <code>fathom run</code> its point.\
             </p>\n"
        );
        if LISTED < document.trials.len() {
            let count = figures::count(document.trials.len() as u64);
            put!(out, "<details><summary>All {count} trials in full</summary>\n");
        }
    }
    for (place, trial) in document.trials.iter().enumerate() {
        match draws_trials(document) {
            true => section(&mut out, document, place + 1, trial),
            false => folded(&mut out, document, place + 1, trial),
        }
    }
    if !draws_trials(document) {
        let end = if LISTED < document.trials.len() { "</details>\n" } else { "" };
        put!(out, "{end}</section>\n");
    }
    unchecked(&mut out, &document.trials);
    tested(&mut out, document);
    repeat(&mut out, document);
    out
}

/// Whether there are few enough trials to draw what each of them did over time.
pub fn draws_trials(document: &Document) -> bool {
    !document.is_experiment() || document.trials.len() <= TRIALS_DRAWN
}

fn head(out: &mut String, document: &Document) {
    let header = &document.header;
    put!(out, "<header>\n<p class=\"brand\">fathom</p>\n<h1>{}</h1>\n", escape(&title(document)));
    let stacks: Vec<String> =
        header.targets.iter().take(4).map(|target| escape(&figures::stack(target))).collect();
    put!(out, "<p class=\"muted\">{}</p>\n", stacks.join("<br>"));
    let when = header.created.replacen('T', " ", 1);
    let when = when.split('.').next().unwrap_or(&when);
    let on = header.host.as_ref().map_or(String::new(), |host| {
        format!(
            " on {}, Linux {}, {} CPUs, {}",
            escape(&host.name),
            escape(&host.kernel),
            host.cpus,
            figures::memory(host.memory)
        )
    });
    put!(out, "<p class=\"muted small\">{} UTC{on}</p>\n</header>\n", escape(when));
}

/// The verdict on everything, with what was found.
fn verdict(out: &mut String, document: &Document) {
    if let Some(source) = &document.header.imported {
        put!(out, "<section class=\"verdict note\">\n<strong>Imported</strong>\n");
        put!(out, "<p>{}</p>\n", escape(&figures::source(source)));
        endings(out, document);
        out.push_str("</section>\n");
        return;
    }
    let worst = document.verdict();
    let class = worst.map_or("note", verdict_class);
    put!(out, "<section class=\"verdict {class}\">\n");
    let trials = document.trials.len();
    let points = if trials == 1 { "1 trial".to_owned() } else { format!("{trials} trials") };
    let says = match worst {
        None => "No trial was finished: there are no figures.".to_owned(),
        Some(Verdict::Sound) => format!("{points}, and nothing speaks against the numbers."),
        Some(Verdict::Suspect) => {
            format!("{points}; the numbers may mean something else than they seem to.")
        }
        Some(Verdict::Void) => format!("{points}; numbers do not measure what was asked."),
    };
    let name = worst.map_or("Empty", |verdict| match verdict {
        Verdict::Sound => "Sound",
        Verdict::Suspect => "Suspect",
        Verdict::Void => "Void",
    });
    let open = match worst {
        Some(Verdict::Sound) => figures::left_open(&document.trials),
        _ => String::new(),
    };
    put!(out, "<strong>{name}{open}</strong>\n<p>{says}</p>\n");
    endings(out, document);
    let doubts = figures::doubts(&document.trials);
    if !doubts.is_empty() {
        out.push_str("<ul>\n");
        for doubt in doubts {
            found(out, doubt.finding, &doubt.whose);
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}

/// How the run ended, where that is not as planned, and what it found.
fn endings(out: &mut String, document: &Document) {
    let planned = document.header.planned_points;
    let done = format!("{} of {planned} points were run", document.trials.len());
    let ended = match document.conclusion.as_ref().map(|conclusion| conclusion.ended) {
        Some(Ended::Completed) => None,
        Some(Ended::Interrupted) => Some("The run was interrupted"),
        Some(Ended::Failed) => Some("The run failed"),
        None => Some("The run was cut off, or still went on"),
    };
    if let Some(ended) = ended {
        put!(out, "<p>{ended}: {done}.</p>\n");
    }
    if document.torn {
        out.push_str("<p>The last line of the result file was torn, and was left out.</p>\n");
    }
    for sentence in document.conclusion.iter().flat_map(|conclusion| &conclusion.sentences) {
        put!(out, "<p>{}</p>\n", escape(sentence));
    }
}

fn found(out: &mut String, finding: &Finding, whose: &str) {
    put!(
        out,
        "<li>{}<div><p>{whose}{}</p><p class=\"advice\">{}</p></div></li>\n",
        chip(finding.severity.name()),
        escape(&finding.evidence),
        escape(&finding.advice)
    );
}

/// The table of all trials, and its chart.
fn overview(out: &mut String, document: &Document) {
    let all = document.is_experiment();
    let many = !draws_trials(document);
    let heading = match all {
        true => format!("All {} trials, in their order", document.trials.len()),
        false => "At a glance".to_owned(),
    };
    match many {
        true => put!(out, "<section>\n<details class=\"all\"><summary>{heading}</summary>\n"),
        false => put!(out, "<section>\n<h2>{heading}</h2>\n"),
    }
    out.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th></th>\
         <th>IOPS</th><th>MiB/s</th><th>p50</th><th>p99</th><th>p99.9</th><th>verdict</th></tr>\
         </thead>\n<tbody>\n",
    );
    for (place, trial) in document.trials.iter().enumerate() {
        let number = place + 1;
        let (what, pace) = figures::names(trial);
        put!(
            out,
            "<tr><td><a href=\"#{}\">{number}&ensp;{}</a><span class=\"pace\">{}</span></td>",
            anchor(number),
            escape(&what),
            escape(&format!("{} loop, {pace}", loop_name(trial)))
        );
        figures_row(out, Part::whole(trial), None, &QUANTILES);
        put!(out, "<td>{}</td></tr>\n", chip(trial.verdict.name()));
    }
    out.push_str("</tbody></table></div>\n<p class=\"muted small\">");
    out.push_str(
        "Percentiles are of the response time, from the intended start to the completion; in a \
         closed loop it equals the service time. ± is half of the 95 % confidence interval. A dash: \
         not enough samples.</p>\n",
    );
    if !all {
        out.push_str(
            "<div class=\"charts\"><div class=\"chart wide\"><div id=\"overview\"></div></div>\
             </div>\n",
        );
        no_charts(out);
    }
    out.push_str(if many { "</details>\n</section>\n" } else { "</section>\n" });
}

fn loop_name(trial: &Trial) -> &'static str {
    if trial.is_open() { "open" } else { "closed" }
}

/// IOPS, bandwidth and percentiles with their half-widths, as cells.
fn figures_row(
    out: &mut String,
    part: Part<'_>,
    direction: Option<Direction>,
    quantiles: &[Quantile],
) {
    let summary = part.summary(direction, quantiles);
    let iops = or_dash(summary.iops.map(|estimate| figures::rate(estimate.value)));
    out.push_str(&with_half(&iops, &plus_minus(summary.iops.as_ref())));
    let mib = summary.bandwidth.map(|estimate| figures::rate(figures::mib(estimate.value)));
    out.push_str(&with_half(&or_dash(mib), &plus_minus(summary.bandwidth.as_ref())));
    for estimate in &summary.quantiles {
        let value = time(estimate.map(|estimate| estimate.value));
        out.push_str(&with_half(&value, &plus_minus(estimate.as_ref())));
    }
}

/// One of many trials: shown by who wants to see it.
fn folded(out: &mut String, document: &Document, number: usize, trial: &Trial) {
    put!(
        out,
        "<details class=\"trial\"><summary id=\"{}\">{number}&ensp;{}{}</summary>\n",
        anchor(number),
        escape(&trial.point.name),
        chip(trial.verdict.name())
    );
    figures_of(out, document, number, trial);
    out.push_str("</details>\n");
}

/// One trial.
fn section(out: &mut String, document: &Document, number: usize, trial: &Trial) {
    let many = document.trials.len() > 1;
    let prefix = if many { format!("{number}&ensp;") } else { String::new() };
    put!(
        out,
        "<section class=\"trial\" id=\"{}\">\n<h2>{prefix}{}{}</h2>\n",
        anchor(number),
        escape(&trial.point.name),
        chip(trial.verdict.name())
    );
    figures_of(out, document, number, trial);
    out.push_str("</section>\n");
}

/// What a trial was and did, below its heading.
fn figures_of(out: &mut String, document: &Document, number: usize, trial: &Trial) {
    load(out, trial);
    cards(out, trial);
    streams(out, trial);
    if draws_trials(document) {
        trial_charts(out, number, trial);
        if document.trials.len() == 1 {
            no_charts(out);
        }
    }
    flows(out, document, trial);
    percentiles(out, trial);
    accounts(out, trial);
    processors(out, document, trial);
    errors(out, document, trial);
}

/// The places of a trial's charts.
fn trial_charts(out: &mut String, number: usize, trial: &Trial) {
    put!(
        out,
        "<div class=\"charts\">\n\
         <div class=\"chart\"><h3>IOPS over time</h3><div id=\"rates-{number}\"></div></div>\n\
         <div class=\"chart\"><h3>{time} over time</h3><div id=\"times-{number}\"></div></div>\n\
         <div class=\"chart wide\"><h3>Distribution: every nine has the same width</h3>\
         <div id=\"distribution-{number}\"></div></div>\n</div>\n",
        time = time_name(trial)
    );
}

fn time_name(trial: &Trial) -> &'static str {
    match trial.is_open() {
        true => "Response time",
        false => "Service time",
    }
}

fn load(out: &mut String, trial: &Trial) {
    let several = trial.point.streams.len() > 1;
    for stream in &trial.point.streams {
        let name = if several { format!("{}: ", stream.name) } else { String::new() };
        let sentence = format!("{name}{}", figures::stream_in_words(trial, stream));
        put!(out, "<p>{}</p>\n", escape(&sentence));
    }
    let asked = figures::asked(trial);
    let how = format!(
        "{}; window {}{asked}, {}; began {}",
        figures::way(trial),
        trial.window(),
        figures::before_and_after(trial),
        trial.started
    );
    put!(out, "<p class=\"muted small\">{}</p>\n", escape(&how));
}

fn cards(out: &mut String, trial: &Trial) {
    let summary = figures::summary(trial, None, &QUANTILES);
    out.push_str("<div class=\"cards\">");
    let mut card = |value: String, half: String, what: &str| {
        put!(
            out,
            "<div class=\"card\"><b>{}<small>{}</small></b><span>{}</span></div>",
            escape(&value),
            escape(&half),
            escape(what)
        );
    };
    card(
        or_dash(summary.iops.map(|estimate| figures::rate(estimate.value))),
        plus_minus(summary.iops.as_ref()),
        "IOPS",
    );
    let mib = summary.bandwidth.map(|estimate| figures::rate(figures::mib(estimate.value)));
    card(or_dash(mib), plus_minus(summary.bandwidth.as_ref()), "MiB/s");
    for (quantile, estimate) in QUANTILES.iter().zip(&summary.quantiles) {
        let value = time(estimate.map(|estimate| estimate.value));
        let what = format!("{quantile} {}", time_name(trial).to_lowercase());
        card(value, plus_minus(estimate.as_ref()), &what);
    }
    out.push_str("</div>\n");
}

/// What each stream did, where there are several.
fn streams(out: &mut String, trial: &Trial) {
    if trial.point.streams.len() < 2 {
        return;
    }
    out.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th></th><th>IOPS</th><th>MiB/s</th><th>p50</th>\
         <th>p99</th><th>p99.9</th></tr></thead>\n<tbody>\n",
    );
    for part in Part::streams(trial) {
        let time = if part.is_open() { "response time" } else { "service time" };
        put!(out, "<tr><td>{}<span class=\"pace\">{time}</span></td>", escape(part.name()));
        figures_row(out, part, None, &QUANTILES);
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Bytes, I/Os and rates by direction, by target and by stream where there are several.
fn flows(out: &mut String, document: &Document, trial: &Trial) {
    out.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th></th><th>bytes</th><th>I/Os</th>\
         <th>MiB/s</th><th>IOPS</th><th>mean service time</th><th>std dev</th></tr></thead>\n\
         <tbody>\n",
    );
    let group = |out: &mut String, name: &str| {
        put!(out, "<tr class=\"group\"><td colspan=\"7\">{}</td></tr>\n", escape(name));
    };
    for part in Part::streams(trial) {
        group(out, &format!("stream {}", part.name()));
        for direction in part.columns() {
            flow_row(out, trial, direction_name(direction), &part.flow(direction));
        }
        upkeep_rows(out, part);
    }
    let targets = document.header.targets.len();
    if targets > 1 {
        for target in 0..targets as u32 {
            group(out, figures::target_name(document, target));
            for direction in figures::columns(trial) {
                let flow = trial.flow(direction, |_, cell| cell.target == target);
                flow_row(out, trial, direction_name(direction), &flow);
            }
        }
    }
    match (targets > 1, trial.point.streams.len() > 1) {
        (false, false) => {}
        (true, false) => group(out, "all targets"),
        (_, true) => group(out, "all streams"),
    }
    for direction in figures::columns(trial) {
        flow_row(out, trial, direction_name(direction), &trial.total(direction));
    }
    upkeep_rows(out, Part::whole(trial));
    out.push_str("</tbody></table></div>\n");
}

/// What moves no data, after the sums that it is no part of.
fn upkeep_rows(out: &mut String, part: Part<'_>) {
    for (what, flow) in part.upkeep() {
        flow_row(out, part.trial, what.name(), &flow);
    }
}

fn flow_row(out: &mut String, trial: &Trial, name: &str, flow: &Flow) {
    let rate = |amount| figures::per_second(amount, trial.window());
    let cells = [
        flow.bytes.to_string(),
        figures::count(flow.ios()),
        or_dash(rate(flow.bytes.0).map(|bytes| figures::rate(figures::mib(bytes)))),
        or_dash(rate(flow.ios()).map(figures::rate)),
        time(flow.service_time.mean()),
        time(flow.service_time.standard_deviation()),
    ];
    put!(out, "<tr><td>{name}</td><td>{}</td></tr>\n", { cells.join("</td><td>") });
}

/// The percentile tables, of each stream where there are several, and of all.
fn percentiles(out: &mut String, trial: &Trial) {
    for part in Part::streams(trial).chain([Part::whole(trial)]) {
        percentiles_of(out, part);
    }
}

/// A percentile table: in an open loop response and service time side by side.
fn percentiles_of(out: &mut String, part: Part<'_>) {
    let series = part.stretches();
    let upkeep = part.upkeep().into_iter().map(|(what, flow)| (what.name(), flow, None));
    let columns: Vec<(&str, Flow, Option<Option<Direction>>)> = part
        .columns()
        .into_iter()
        .map(|direction| (direction_name(direction), part.flow(direction), Some(direction)))
        .chain(upkeep)
        .collect();
    let open = part.is_open();
    let most = columns.iter().map(|(_, flow, _)| flow.ios()).max().unwrap_or(0);
    let whose = match part.trial.point.streams.len() {
        1 => String::new(),
        _ => format!(": {}", escape(part.name())),
    };
    put!(out, "<details><summary>Percentiles of {} I/Os{whose}</summary>\n", figures::count(most));
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th></th>");
    for (name, ..) in &columns {
        match open {
            true => put!(out, "<th>{name}, response time</th><th>{name}, service time</th>"),
            false => put!(out, "<th>{name}, service time</th>"),
        }
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let mut row = |name: String,
                   of: &dyn Fn(usize, &fathom_core::measure::Histogram) -> String,
                   halves: &dyn Fn(usize) -> String| {
        put!(out, "<tr><td>{name}</td>");
        for (place, (_, flow, _)) in columns.iter().enumerate() {
            out.push_str(&with_half(&of(place, flow.response_time()), &halves(place)));
            if open {
                out.push_str(&with_half(&of(place, &flow.service_time), ""));
            }
        }
        out.push_str("</tr>\n");
    };
    let none = |_: usize| String::new();
    row("min".to_owned(), &|_, times| time(times.min().map(|ns| ns as f64)), &none);
    for quantile in Quantile::REPORTED {
        let carried = |times: &_| figures::carried(times, quantile);
        let any = columns.iter().any(|(_, flow, _)| carried(flow.response_time()).is_some());
        if quantile.0 > 0.5 && !any {
            break;
        }
        let halves = |place: usize| {
            let (_, flow, direction) = &columns[place];
            // The series tells of reads and writes alone.
            let Some(direction) = *direction else { return String::new() };
            let all = figures::quantile_estimates(flow, &series, direction, &[quantile]);
            plus_minus(all.first().and_then(Option::as_ref))
        };
        let value = |_: usize, times: &_| time(carried(times).map(|ns| ns as f64));
        row(quantile.to_string(), &value, &halves);
    }
    row("max".to_owned(), &|_, times| time(times.max().map(|ns| ns as f64)), &none);
    out.push_str("</tbody></table></div>\n<p class=\"muted small\">Higher percentiles have not enough samples: ");
    put!(out, "at least {} have to lie beyond.</p>\n", fathom_core::stats::TAIL_SAMPLES);
    start_delay(out, part);
    out.push_str("</details>\n");
}

fn start_delay(out: &mut String, part: Part<'_>) {
    let Some(delay) = part.start_delay() else { return };
    out.push_str("<dl>\n");
    for (name, times) in [
        ("Started late, target behind", &delay.target),
        ("Started late, generator", &delay.generator),
    ] {
        let at = |quantile| time(figures::carried(times, Quantile(quantile)).map(|ns| ns as f64));
        let text = format!(
            "{} I/Os; start delay p50 {}, p99 {}, max {}",
            figures::count(times.count()),
            at(0.5),
            at(0.99),
            time(times.max().map(|ns| ns as f64))
        );
        put!(out, "<dt>{name}</dt><dd>{}</dd>\n", escape(&text));
    }
    out.push_str("</dl>\n");
}

/// Where every I/O went.
fn accounts(out: &mut String, trial: &Trial) {
    let l = trial.ledger();
    let depth: u32 = trial.point.streams.iter().map(|s| s.pacing.queue_depth()).sum();
    out.push_str("<details><summary>Where every I/O went</summary>\n<div class=\"scroll\"><table>\n<tbody>\n");
    let rows = [
        ("due", l.due),
        ("completed in the warm-up", l.completed_in_warm_up),
        ("completed in the window", l.completed),
        ("failed", l.failed),
        ("in flight at the window's end", l.in_flight),
        ("lost", l.lost),
        ("never started", l.unstarted),
    ];
    for (name, n) in rows {
        put!(out, "<tr><td>{name}</td><td>{}</td></tr>\n", figures::count(n));
    }
    let adds_up =
        if l.balances() { "It adds up." } else { "IT DOES NOT ADD UP: please report it." };
    put!(
        out,
        "</tbody></table></div>\n<p class=\"muted small\">{adds_up} On average {} I/Os were in \
         flight, of at most {depth}.</p>\n</details>\n",
        figures::significant(trial.queue_depth())
    );
}

/// What the load generator could have done.
fn ceiling(out: &mut String, document: &Document, trial: &Trial) {
    let Some(ceiling) = figures::ceiling(document, trial) else { return };
    let text = format!(
        "The load generator could have done {}.",
        figures::ceiling_in_words(&ceiling, trial)
    );
    put!(out, "<p>{}</p>\n", escape(&text));
}

/// CPUs and devices.
fn processors(out: &mut String, document: &Document, trial: &Trial) {
    let Some(counters) = &trial.counters else { return };
    out.push_str("<details><summary>CPUs and devices during the window</summary>\n");
    ceiling(out, document, trial);
    let used = counters.process_user_ns as f64 + counters.process_kernel_ns as f64;
    let ios = trial.total(None).ios();
    let per_io = (ios > 0).then(|| used / ios as f64);
    let io_wq = figures::io_wq_cpu(counters)
        .map_or(String::new(), |cpu| format!("; {cpu} of it in io_uring's own threads"));
    let others = figures::others_cpu(counters, &trial.workers)
        .map_or(String::new(), |others| format!("; {others}"));
    put!(
        out,
        "<p>fathom used {} user and {} kernel time: {} for each I/O{io_wq}{others}.</p>\n",
        figures::time(counters.process_user_ns as f64),
        figures::time(counters.process_kernel_ns as f64),
        time(per_io)
    );
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>core</th><th>user</th><th>kernel</th><th>idle</th><th>steal</th></tr></thead>\n<tbody>\n");
    for core in &counters.cpus {
        let parts = [core.user_ns, core.kernel_ns, core.idle_ns, core.steal_ns].map(|ns| ns as f64);
        let total: f64 = parts.iter().sum();
        put!(out, "<tr><td>{}</td>", core.cpu);
        for part in parts {
            let share = (total > 0.0).then(|| figures::percent(part / total));
            put!(out, "<td>{}</td>", or_dash(share));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    for device in &counters.devices {
        let text = format!("{}: the kernel counted {}.", device.name, device.in_words());
        put!(out, "<p>{}</p>\n", escape(&text));
    }
    out.push_str("</details>\n");
}

fn errors(out: &mut String, document: &Document, trial: &Trial) {
    let count = trial.errors();
    if count == 0 {
        return;
    }
    let mut first: Vec<_> = trial.workers.iter().flat_map(|worker| &worker.errors.first).collect();
    first.sort_by_key(|error| error.at_ns);
    put!(
        out,
        "<h3>{} I/Os failed; the first of them</h3>\n<div class=\"scroll\"><table>\n<thead><tr>\
         <th>failure</th><th>target</th><th>direction</th><th>offset</th><th>bytes</th><th>at</th>\
         </tr></thead>\n<tbody>\n",
        figures::count(count)
    );
    for error in first.into_iter().take(ERRORS_SHOWN) {
        let sign = if error.at_ns < 0 { "-" } else { "" };
        put!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{sign}{}</td></tr>\n",
            escape(&figures::failure(error.failure)),
            escape(figures::target_name(document, error.target)),
            error.what(),
            error.offset_bytes,
            error.length_bytes,
            figures::time(error.at_ns.unsigned_abs() as f64)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

/// What could not be checked, each thing once.
fn unchecked(out: &mut String, trials: &[Trial]) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for unchecked in trials.iter().flat_map(|trial| &trial.unchecked) {
        let pair = (unchecked.code.as_str(), unchecked.why.as_str());
        if !seen.contains(&pair) {
            seen.push(pair);
        }
    }
    if seen.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Not checked</h2>\n<dl>\n");
    for (code, why) in seen {
        put!(out, "<dt>{}</dt><dd>{}</dd>\n", escape(code), escape(why));
    }
    out.push_str("</dl>\n</section>\n");
}

/// The targets and the host.
fn tested(out: &mut String, document: &Document) {
    let Some(host) = &document.header.host else { return };
    out.push_str("<section>\n<h2>What was tested, and from where</h2>\n");
    for target in &document.header.targets {
        stack(out, target);
    }
    let unknown = || "unknown".to_owned();
    let facts = [
        ("Host", host.name.clone()),
        ("System", format!("Linux {}, {}", host.kernel, host.os.clone().unwrap_or_else(unknown))),
        ("CPUs", { format!("{}, {}", host.cpus, host.cpu_model.clone().unwrap_or_else(unknown)) }),
        ("NUMA nodes", host.numa_nodes.to_string()),
        ("Memory", {
            let limit = host.memory_limit.map(|b| format!(", limited to {b}"));
            let known = (!host.memory.is_zero()).then(|| host.memory.to_string());
            format!("{}{}", known.unwrap_or_else(unknown), limit.unwrap_or_default())
        }),
        (
            "Runs in",
            host.virtualization
                .clone()
                .unwrap_or_else(|| "no virtual machine or container that it shows".to_owned()),
        ),
        ("Clock", {
            let clock = &host.clock;
            format!(
                "{}, resolution {} ns, {} ns for one reading",
                clock.source,
                figures::significant(clock.resolution_ns),
                figures::significant(clock.cost_ns)
            )
        }),
    ];
    out.push_str("<dl>\n");
    for (name, value) in facts {
        put!(out, "<dt>{name}</dt><dd>{}</dd>\n", escape(&value));
    }
    out.push_str("</dl>\n</section>\n");
}

/// A target as `inspect` shows it.
fn stack(out: &mut String, target: &Target) {
    let style = terminal::Style { width: 100, ..terminal::Style::default() };
    put!(out, "<pre>{}</pre>\n", escape(terminal::target(target, &[], &style).trim_end()));
}

/// How to do it again.
fn repeat(out: &mut String, document: &Document) {
    let header = &document.header;
    if let Some(seed) = header.seed {
        put!(
            out,
            "<section>\n<h2>To repeat it</h2>\n<pre>{}</pre>\n<p class=\"muted small\">The seed was \
             {seed}: give it with <code>--seed {seed}</code> for the same offsets and arrivals.</p>\n\
             </section>\n",
            escape(&figures::command_line(&header.command_line)),
        );
    }
    put!(
        out,
        "<footer>fathom {}, measurement version {}, format version {}. This file is \
         complete: it loads nothing. The charts are drawn by plotly.js (MIT licence, inside).\
         </footer>\n",
        escape(&header.fathom_version),
        header.measurement_version,
        header.format_version
    );
}
