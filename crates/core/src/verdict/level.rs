//! How changes over the window are reported: as levels and the times at which they held, never as
//! the ends of a fitted line.

use super::{Judgement, Severity};
use crate::figures::{percent, significant};
use crate::stats::{Changes, Plateau, Stall, Stalls};
use crate::units::Span;

/// Stalls that take no more of the window than this do not show in the percentiles that most runs
/// report: the I/Os that fall due during them are this share of an open loop's I/Os.
const STALLED_MAX: f64 = 0.001;

/// No more levels or stalls than this are listed one by one.
const LISTED: usize = 4;

/// "3.1 s".
pub(super) fn at(instant: Span) -> String {
    format!("{} s", significant(instant.as_secs_f64()))
}

/// "from 3.1 s to 12.5 s".
fn during(start: Span, end: Span) -> String {
    format!("from {} to {}", at(start), at(end))
}

/// Times in which no I/O completed.
pub(super) fn stalls(stalls: &Stalls, of_stream: &str, window: Span, judgement: &mut Judgement) {
    if stalls.count == 0 {
        return;
    }
    let share = stalls.total().as_secs_f64() / window.as_secs_f64();
    let severity = if share > STALLED_MAX { Severity::Suspect } else { Severity::Note };
    match stalls.period {
        Some(period) => judgement.find(
            "periodic-stalls",
            severity,
            format!(
                "Nothing{of_stream} completed for {} each {}: {} such stalls took {} of the window.",
                stalls.length,
                period,
                stalls.count,
                percent(share),
            ),
            "Look for what runs at that interval (a journal's commit, write-back, a timer, garbage \
             collection, a limit that is settled at intervals), and judge by the percentiles of an \
             open loop: in a closed one a stall holds few I/Os.",
        ),
        None => judgement.find("stall", severity, single(stalls, of_stream, share), ADVICE_STALL),
    }
}

const ADVICE_STALL: &str = "Find out what held the target at that time (another program, an error \
     that was tried again, a reset, garbage collection), and measure again: the maximum is the \
     stall's, and in an open loop the upper percentiles are, too.";

fn single(stalls: &Stalls, of_stream: &str, share: f64) -> String {
    let end = if stalls.to_the_end { " The last one lasted until the window ended." } else { "" };
    match &stalls.each[..] {
        [one] if stalls.to_the_end => format!(
            "Nothing{of_stream} completed from {} of the window to its end, for {}.",
            at(one.start),
            one.length
        ),
        [one] => format!(
            "Nothing{of_stream} completed for {} from about {} of the window on, {} of it.",
            one.length,
            at(one.start),
            percent(share)
        ),
        many => {
            let told = |stall: &Stall| format!("{} at {}", stall.length, at(stall.start));
            let mut list: Vec<String> = many.iter().take(LISTED).map(told).collect();
            if many.len() > LISTED {
                list.push(format!("{} more", many.len() - LISTED));
            }
            format!(
                "Nothing{of_stream} completed in {} stalls, which took {} of the window: {}.{end}",
                many.len(),
                percent(share),
                list.join(", ")
            )
        }
    }
}

/// Steps of the IOPS, or of the response time of an open loop. Returns whether there are any.
pub(super) fn steps(changes: &Changes, of_stream: &str, judgement: &mut Judgement) -> bool {
    if let [before, after] = &changes.levels[..]
        && changes.is_credit()
    {
        judgement.find(
            "credit-exhausted",
            Severity::Suspect,
            format!(
                "IOPS{of_stream} were {} until {} of the window and {} from there to its end, {} \
                 less.",
                significant(before.mean),
                at(before.end),
                significant(after.mean),
                percent(1.0 - after.mean / before.mean)
            ),
            format!(
                "It looks like a burst credit or a fast cache that was used up, or like a limit that \
                 set in: take the lower level for what lasts, with a warm-up longer by {} s.",
                before.end.as_secs_f64().ceil()
            ),
        );
        return true;
    }
    if changes.levels.len() > 1 {
        level_change("IOPS", &changes.levels, significant, of_stream, judgement);
        return true;
    }
    if changes.times.len() > 1 {
        let time = |ns: f64| Span(ns as u64).to_string();
        level_change("Mean response times", &changes.times, time, of_stream, judgement);
        return true;
    }
    false
}

fn level_change(
    what: &str,
    levels: &[Plateau],
    shown: impl Fn(f64) -> String,
    of_stream: &str,
    judgement: &mut Judgement,
) {
    let by_mean = |a: &&Plateau, b: &&Plateau| a.mean.total_cmp(&b.mean);
    let (Some(lowest), Some(highest)) =
        (levels.iter().min_by(by_mean), levels.iter().max_by(by_mean))
    else {
        return;
    };
    let told = match levels {
        [before, after] => format!(
            "were {} until {} of the window and {} from there on",
            shown(before.mean),
            at(before.end),
            shown(after.mean)
        ),
        levels if levels.len() <= LISTED => {
            let each = |level: &Plateau| {
                format!("{} {}", shown(level.mean), during(level.start, level.end))
            };
            format!("were {}", levels.iter().map(each).collect::<Vec<_>>().join(", "))
        }
        levels => format!(
            "changed their level {} times: the lowest was {} {}, the highest {} {}",
            levels.len() - 1,
            shown(lowest.mean),
            during(lowest.start, lowest.end),
            shown(highest.mean),
            during(highest.start, highest.end)
        ),
    };
    judgement.find(
        "level-change",
        Severity::Suspect,
        format!(
            "{what}{of_stream} {told}; the lowest level is {} below the highest.",
            percent(1.0 - lowest.mean / highest.mean)
        ),
        "A mean over levels is the rate of none of them: find out what changed at that time (other \
         load, a limit, a cache, heat), and measure within one level.",
    );
}
