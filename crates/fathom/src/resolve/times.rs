//! When a run and each of its streams begin and end, and the intervals of their series.

use fathom_core::Span;
use fathom_core::spec::{Active, Limit};

use crate::cli::described::Described;
use crate::cli::options::LoadArgs;
use crate::cli::rates::Offered;
use crate::error::Error;
use crate::limits::{LONGEST_UNTIL_DONE, MOST_INTERVALS, SHORTEST_INTERVAL};

/// The default length of the window: in all, or after the stages of a course whose last rate is
/// held.
const DEFAULT_WINDOW: Span = Span::from_secs(30);

/// The default load before the window, unless the run ends after an amount.
const DEFAULT_WARM_UP: Span = Span::from_secs(3);

/// From this window on an interval is a second by default.
const LONG_WINDOW: Span = Span::from_secs(60);

/// The times of a run, which all its streams share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) warm_up: Span,
    pub(super) window: Span,
    pub(super) cool_down: Span,
}

impl Times {
    pub(super) fn of(described: &Described) -> Self {
        let first = &described.streams[0].load;
        let limited = described.streams.iter().any(|stream| is_limited(&stream.load));
        Self {
            warm_up: first.warm_up.unwrap_or(match limited {
                true => Span(0),
                false => DEFAULT_WARM_UP,
            }),
            window: first.duration.unwrap_or_else(|| match limited {
                true => LONGEST_UNTIL_DONE,
                false => default_window(described),
            }),
            cool_down: first.cool_down.unwrap_or(Span(0)),
        }
    }
}

/// Until the last course and the last stream have ended, in whole intervals.
fn default_window(described: &Described) -> Span {
    let ends = described.streams.iter().filter_map(|stream| {
        let load = &stream.load;
        let stages = load.rate.as_ref().and_then(Offered::length);
        let lasts = match stages {
            Some((length, false)) => length,
            Some((length, true)) => length + DEFAULT_WINDOW,
            None => DEFAULT_WINDOW,
        };
        let says = stages.is_some() || load.start.is_some();
        load.end.or_else(|| says.then(|| load.start.unwrap_or(Span(0)) + lasts))
    });
    let Some(longest) = ends.max() else { return DEFAULT_WINDOW };
    let unit = described.streams[0].load.interval.unwrap_or(SHORTEST_INTERVAL);
    Span(longest.0.next_multiple_of(unit.0.max(1)))
}

/// Whether a stream may end after an amount.
fn is_limited(load: &LoadArgs) -> bool {
    load.stop_after.is_some() || load.passes.is_some()
}

/// The amount of the stream.
pub(super) fn limit(load: &LoadArgs) -> Result<Option<Limit>, Error> {
    match (load.stop_after, load.passes) {
        (Some(_), Some(_)) => Err(Error::option(
            "--passes",
            "--stop-after already says when the stream is done",
            "drop one of them",
        )),
        (Some(limit), None) => Ok(Some(limit)),
        (None, passes) => Ok(passes.map(Limit::Passes)),
    }
}

/// When the stream has load.
pub(super) fn active(load: &LoadArgs, times: Times) -> Result<Active, Error> {
    let active = Active { start: load.start, end: load.end };
    let typed = [("--start", active.start), ("--end", active.end)];
    for (option, time) in typed.into_iter().filter_map(|(option, time)| Some((option, time?))) {
        let late = if option == "--start" { times.window <= time } else { times.window < time };
        if late {
            return Err(Error::option(
                format!("{option} {time}"),
                format!("the window ends after {}", times.window),
                "choose an earlier time, or a longer --duration",
            ));
        }
    }
    match active.end {
        Some(end) if end <= active.begins() => Err(Error::option(
            format!("--end {end}"),
            format!("the load begins at {}, so there would be none", active.begins()),
            "choose a later time",
        )),
        _ => Ok(active),
    }
}

/// The interval of the series: the typed one, or one that suits the window.
///
/// # Errors
///
/// When the window is not a whole number of intervals.
pub fn interval(option: &str, window: Span, typed: Option<Span>) -> Result<Span, Error> {
    if window < SHORTEST_INTERVAL {
        return Err(Error::option(
            format!("{option} {window}"),
            "a window is at least 100 ms, which is one interval",
            "measure for longer, such as 10s",
        ));
    }
    let fits = |interval: Span| window.0.is_multiple_of(interval.0);
    let interval = match typed {
        Some(interval) => interval,
        None if window >= LONG_WINDOW && fits(Span::from_secs(1)) => Span::from_secs(1),
        None => SHORTEST_INTERVAL,
    };
    if interval < SHORTEST_INTERVAL {
        return Err(Error::option(
            format!("--interval {interval}"),
            "an interval is at least 100 ms",
            "choose 100ms or more",
        ));
    }
    if interval > window {
        return Err(Error::option(
            format!("--interval {interval}"),
            format!("it is longer than the window of {window}"),
            format!("choose a shorter one, or a longer {option}"),
        ));
    }
    if window.0 / interval.0 > MOST_INTERVALS {
        return Err(Error::option(
            format!("{option} {window}"),
            format!("it has more than {MOST_INTERVALS} intervals of {interval}"),
            "measure for less, or choose a longer --interval",
        ));
    }
    if !fits(interval) {
        let below = Span(window.0 - window.0 % interval.0);
        return Err(Error::option(
            format!("{option} {window}"),
            format!("it is no whole number of intervals of {interval}"),
            format!("measure for {below} or {}, or choose another --interval", below + interval),
        ));
    }
    Ok(interval)
}
