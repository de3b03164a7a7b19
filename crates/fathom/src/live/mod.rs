//! The live view on stderr: a few lines that redraw themselves on a terminal, plain lines elsewhere.
//! Never measures anything itself.

mod curve;
mod map;
mod minute;

use std::fmt::Debug;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use fathom_core::experiment::{Conclusion, Forecast, Planned, Throughput};
use fathom_core::figures::{number, time};
use fathom_core::trial::Trial;
use fathom_core::{Bytes, Span, printable};
use fathom_engine::{LastSecond, Progress};
use fathom_report::document::Experiment;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;
use curve::Curve;
use map::MapSoFar;
use minute::Minute;

/// Between two plain lines of one step: a log should not grow by more.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);

/// The view of a whole run.
#[derive(Debug)]
pub struct Live {
    steps: usize,
    step: usize,
    /// Whether the current step may end long before its time.
    pub open_ended: bool,
    /// The time of the steps after the current one.
    after: Span,
    /// For an experiment, which decides as it runs.
    curve: Option<Curve>,
    /// The alternative picture, once a latency map has a cell.
    map: Option<MapSoFar>,
    /// The last minute.
    minute: Minute,
    /// What stands behind the figures.
    beside: String,
    /// What is above and below the last minute: the curve or the map, and the step.
    picture: (String, String),
    /// The largest possible number of steps.
    at_most: usize,
    /// On simulated devices, which have a time of their own: when the steps began, and the time that
    /// those before the current one took there.
    virtual_time: Option<(Instant, Span)>,
    /// How long the current step takes.
    step_time: Span,
    kind: LiveForm,
}

#[derive(Debug)]
enum LiveForm {
    Terminal(ProgressBar),
    Plain {
        last: Instant,
    },
    /// Not shown.
    Silent,
    /// Told to another program.
    Told(Box<dyn Listener>),
}

/// Another program that follows a run. It must not keep the run waiting.
pub trait Listener: Debug {
    /// The load began then, in nanoseconds since 1970.
    fn began(&mut self, unix_ns: u64);

    /// The load goes on.
    fn progress(&mut self, progress: &Progress);
}

impl Live {
    /// A view of this many steps that take this long together.
    pub fn new(steps: usize, time: Span) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let kind = if output::tells_only_warnings() {
            LiveForm::Silent
        } else if io::stderr().is_terminal() && !dumb {
            let bar =
                ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(
                ProgressStyle::with_template("{prefix}\n{bar:24} {msg}")
                    .expect("the template is right")
                    .progress_chars("█▉▊▋▌▍▎▏░"),
            );
            LiveForm::Terminal(bar)
        } else {
            LiveForm::Plain { last: Instant::now() }
        };
        Self {
            steps,
            step: 0,
            open_ended: false,
            after: time,
            curve: None,
            map: None,
            minute: Minute::default(),
            beside: String::new(),
            picture: Default::default(),
            at_most: steps,
            virtual_time: None,
            step_time: Span(0),
            kind,
        }
    }

    /// Shows nothing, and tells a listener instead.
    pub fn told_to(listener: Box<dyn Listener>) -> Self {
        let mut live = Self::new(0, Span(0));
        live.kind = LiveForm::Told(listener);
        live
    }

    /// A view of an experiment.
    pub fn of_experiment(described: &Experiment) -> Self {
        let mut live = Self::new(0, Span(0));
        live.curve = Some(Curve::new(described));
        live.map = map::is_one(described).then(MapSoFar::default);
        live
    }

    /// The targets are simulated: their time is not that of the user.
    pub fn simulated(&mut self) {
        self.virtual_time.get_or_insert_with(|| (Instant::now(), Span(0)));
    }

    /// This many steps were done before it was interrupted.
    pub fn resumed(&mut self, steps: usize) {
        self.step = steps;
    }

    /// This much is ahead, including the step that begins now. Only an experiment can change this.
    pub fn ahead(&mut self, forecast: &Forecast) {
        if self.curve.is_some() {
            self.steps = self.step + forecast.points as usize;
            self.at_most = self.step + forecast.points_at_most as usize;
            self.after = forecast.time;
        }
    }

    /// This is about to run, and these are the results so far, if they are to be drawn.
    pub fn about_to_run(&mut self, planned: &Planned, so_far: &dyn Fn() -> Conclusion) {
        if let (Some(map), LiveForm::Terminal(_)) = (&mut self.map, &self.kind) {
            map.take(planned, so_far());
        }
    }

    /// A trial has ended, and becomes a point of the curve.
    pub fn tried(&mut self, trial: &Trial) {
        // The probes of a map are not a curve: writes, then reads, each by itself.
        if let (Some(curve), None) = (&mut self.curve, &self.map) {
            curve.add(trial);
        }
    }

    /// There is work before the first step.
    pub fn preparation(&mut self, name: &str) {
        self.begin(name.to_owned());
    }

    /// A step begins, and will take this long.
    pub fn step(&mut self, name: &str, time: Span) {
        self.step += 1;
        if let Some((_, done)) = &mut self.virtual_time {
            *done += std::mem::replace(&mut self.step_time, time);
        }
        self.after = self.after - time;
        let most = match self.at_most == self.steps {
            true => String::new(),
            false => format!(" (at most {})", self.at_most),
        };
        let head = match (self.steps, &self.curve) {
            (1, _) => name.to_owned(),
            (steps, Some(_)) => format!("point {}/{steps}{most}: {name}", self.step),
            (steps, None) => format!("step {}/{steps}: {name}", self.step),
        };
        self.begin(head);
    }

    fn begin(&mut self, head: String) {
        self.minute.begin();
        let head = printable(&head);
        match &mut self.kind {
            LiveForm::Terminal(bar) => {
                bar.set_length(1);
                bar.set_position(0);
                bar.set_message("");
                let (width, height) = output::error_size();
                let map = self.map.as_ref().and_then(|map| map.draw(width, height));
                let curve = || self.curve.as_ref().map(|curve| curve.draw(width));
                self.picture = (map.or_else(curve).unwrap_or_default(), head.into_owned());
                bar.set_prefix(self.picture.0.clone() + &self.minute.draw(width) + &self.picture.1);
                bar.tick();
            }
            LiveForm::Plain { last } => {
                *last = Instant::now();
                output::note(&head);
            }
            LiveForm::Silent | LiveForm::Told(_) => {}
        }
    }

    /// The load began then, in nanoseconds since 1970. Never called for a simulated device.
    pub fn began(&mut self, unix_ns: u64) {
        if let LiveForm::Told(listener) = &mut self.kind {
            listener.began(unix_ns);
        }
    }

    /// What stands behind the figures from here on; nothing if it is empty.
    pub fn remark(&mut self, remark: String) {
        self.beside = remark;
    }

    /// The load goes on.
    pub fn progress(&mut self, progress: &Progress) {
        if let LiveForm::Told(listener) = &mut self.kind {
            listener.progress(progress);
            return;
        }
        let left = progress.total - progress.elapsed;
        let mut text = if progress.in_window { String::new() } else { "warm-up, ".to_owned() };
        text += &in_words(&progress.last_second);
        if progress.failed > 0 {
            text += &format!(", {} failed", number(progress.failed as f64));
        }
        if !self.beside.is_empty() {
            text += &format!(", {}", self.beside);
        }
        let left = (!self.open_ended).then(|| left + self.after);
        if self.open_ended {
            text += &format!(", for {}", clock(progress.elapsed));
        }
        if self.minute.take(progress.elapsed, progress.last_second.clone()) {
            self.draw_minute();
        }
        let left = left.map(|left| self.in_real_time(progress.elapsed, left));
        self.show(progress.elapsed.0, progress.total.0, &text, left);
    }

    fn draw_minute(&mut self) {
        if let LiveForm::Terminal(bar) = &self.kind {
            let (width, _) = output::error_size();
            bar.set_prefix(self.picture.0.clone() + &self.minute.draw(width) + &self.picture.1);
        }
    }

    /// The user's time that is left, where this much of the current step is done in the targets' time:
    /// simulated devices go on as they did so far.
    fn in_real_time(&self, elapsed: Span, left: Span) -> Span {
        let Some((begun, before)) = self.virtual_time else { return left };
        let done = (before + elapsed).as_secs_f64();
        if done == 0.0 {
            return left;
        }
        let slower = begun.elapsed().as_secs_f64() / done;
        Span((left.0 as f64 * slower) as u64)
    }

    /// The window is over, and the load goes on for a while, unrecorded.
    pub fn cool_down(&mut self, left: Span, whole: Span) {
        self.show((whole - left).0, whole.0, "cool-down", Some(left + self.after));
    }

    /// The targets rest for this much longer, of the whole rest, before a point that takes this
    /// long.
    pub fn rest(&mut self, left: Span, whole: Span, point: Span) {
        let all = left + point + self.after;
        self.show((whole - left).0, whole.0, "the targets rest", Some(all));
    }

    /// This much of the data is written.
    pub fn written(
        &mut self,
        written: Bytes,
        total: Bytes,
        bandwidth_now: f64,
        left: Option<Span>,
    ) {
        let text = format!("{written} of {total}, {}", bandwidth(bandwidth_now));
        self.show(written.0, total.0, &text, left.map(|left| left + self.after));
    }

    fn show(&mut self, position: u64, length: u64, text: &str, left: Option<Span>) {
        let left = left.map_or(String::new(), |left| format!(", {} left", clock(left)));
        match &mut self.kind {
            LiveForm::Terminal(bar) => {
                bar.set_length(length.max(1));
                bar.set_position(position.min(length));
                bar.set_message(format!("{text}{left}"));
            }
            LiveForm::Plain { last } => {
                if last.elapsed() >= PLAIN_PERIOD {
                    *last = Instant::now();
                    output::note(&format!("  {text}{left}"));
                }
            }
            LiveForm::Silent | LiveForm::Told(_) => {}
        }
    }

    /// The step is done; this is its result, in a few words.
    pub fn done(&mut self, outcome: &str) {
        match &mut self.kind {
            LiveForm::Terminal(bar) => {
                bar.set_position(bar.length().unwrap_or(1));
                bar.set_message(outcome.to_owned());
            }
            LiveForm::Plain { .. } => output::note(&format!("  {outcome}")),
            LiveForm::Silent | LiveForm::Told(_) => {}
        }
    }

    /// Everything is done: the lines go away.
    pub fn finish(&self) {
        if let LiveForm::Terminal(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.finish();
    }
}

/// "41,200 IOPS, 161 MiB/s, mean 110 us, p99 253 us".
fn in_words(figures: &LastSecond) -> String {
    let mut parts = Vec::new();
    if 0.0 < figures.iops || figures.trims == 0.0 {
        parts.push(format!("{} IOPS", number(figures.iops)));
        parts.push(bandwidth(figures.bandwidth));
    }
    parts.extend(figures.mean.map(|mean| format!("mean {}", time(mean))));
    let p99 = figures.p99.map(|p99| format!("p99 {}", time(p99 as f64)));
    let longest = || figures.longest.map(|longest| format!("longest {}", time(longest as f64)));
    parts.extend(p99.or_else(longest));
    if 0.0 < figures.trims {
        parts.push(format!("{} trims/s", number(figures.trims)));
    }
    parts.join(", ")
}

/// Bytes per second for people, as in the answer.
pub fn bandwidth(bytes_per_second: f64) -> String {
    Throughput::Bandwidth.in_words(bytes_per_second.max(0.0))
}

/// A remaining time: "under 1 s", "5 s", "1:05 min", "2:00:00 h".
pub fn clock(left: Span) -> String {
    if left > Span(0) && left < Span::from_secs(1) {
        return "under 1 s".to_owned();
    }
    let seconds = left.0.div_ceil(1_000_000_000);
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes}:{rest:02} min"),
        _ => format!("{hours}:{minutes:02}:{rest:02} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (value, text) in
            [(0.0, "0"), (12.34, "12.3"), (999.6, "1,000"), (1_234_567.0, "1,234,567")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn the_time_left_is_read_like_a_clock() {
        assert_eq!(clock(Span(0)), "0 s");
        assert_eq!(clock(Span::from_ms(300)), "under 1 s");
        assert_eq!(clock(Span::from_ms(4100)), "5 s");
        assert_eq!(clock(Span::from_secs(65)), "1:05 min");
        assert_eq!(clock(Span::from_secs(7261)), "2:01:01 h");
    }
}
