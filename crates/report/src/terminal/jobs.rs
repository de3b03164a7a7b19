//! Another program's jobs for the terminal.

use super::Style;
use super::text::{Align, Table, Tint, push_line, wrap};
use crate::chart::jobs::QUANTILES;
use crate::document::{Job, JobFlow, JobsFound};
use crate::figures;

/// The names of jobs are cut after so many columns.
const NAME: usize = 32;

/// A row for each job and direction.
pub fn jobs(out: &mut String, found: &JobsFound, style: &Style) {
    let mut table = Table::new(&[
        (Align::Left, 0),
        (Align::Left, 2),
        (Align::Right, 2),
        (Align::Right, 2),
        (Align::Right, 2),
        (Align::Right, 2),
        (Align::Right, 2),
        (Align::Right, 2),
    ]);
    let heads = ["job", "", "IOPS", "MiB/s"].map(str::to_owned).into_iter();
    table.row(Tint::Dim, heads.chain(QUANTILES.map(|quantile| quantile.to_string())));
    for job in &found.jobs {
        for flow in &job.flows {
            table.row(Tint::Plain, row(job, flow));
        }
        if job.flows.is_empty() {
            table.row(Tint::Dim, [name(job), "nothing".to_owned()]);
        }
    }
    table.render(out, style);
    push_line(out, "");
    let text = "Percentiles are of service times. A dash: it was not told, or too few I/Os lie \
                beyond it.";
    wrap(out, "", text, Tint::Dim, style);
}

fn name(job: &Job) -> String {
    match job.name.chars().count() > NAME {
        true => job.name.chars().take(NAME - 3).chain("...".chars()).collect(),
        false => job.name.clone(),
    }
}

fn row(job: &Job, flow: &JobFlow) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mib = flow.bandwidth_bytes.map(figures::mib);
    let mut row = Vec::from([
        name(job),
        flow.direction_name().to_owned(),
        or_dash(flow.iops.map(figures::short_rate)),
        or_dash(mib.map(figures::rate)),
    ]);
    let times = QUANTILES.map(|quantile| flow.service_time.at(quantile).map(figures::time));
    row.extend(times.map(or_dash));
    row
}
