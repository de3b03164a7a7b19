//! What a person reads in the terminal. Every line fits the given width as far as its words do,
//! and text from the document cannot steer the terminal.

mod calibration;
mod details;
mod experiment;
mod heat;
mod jobs;
mod portrait;
mod target;
mod text;

pub use calibration::calibration;
pub use details::document;
pub use experiment::experiment;
pub(crate) use experiment::judged;
pub(crate) use heat::drift_in_words;
pub use heat::so_far as map_so_far;
pub use portrait::portrait;
pub use target::target;

use crate::document::{Document, Ended, Finding, Severity, Trial, Verdict};
use crate::figures;
use text::{Tint, push_line, wrap};

/// How the terminal wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether it shows color.
    pub color: bool,
    /// Whether every worker gets its rows, however many there are.
    pub all_workers: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, color: false, all_workers: false }
    }
}

fn verdict_tint(verdict: Verdict) -> Tint {
    match verdict {
        Verdict::Sound => Tint::Good,
        Verdict::Suspect => Tint::Doubtful,
        Verdict::Void => Tint::Bad,
    }
}

fn severity_tint(severity: Severity) -> Tint {
    match severity {
        Severity::Note => Tint::Plain,
        Severity::Suspect => Tint::Doubtful,
        Severity::Void => Tint::Bad,
    }
}

/// The command line, when, and on which host.
fn head(out: &mut String, document: &Document, style: &Style) {
    let header = &document.header;
    wrap(out, "", &figures::command_line(&header.command_line), Tint::Bold, style);
    if let Some(host) = &header.host {
        let mut facts = vec![format!("{}: Linux {}, {} CPUs", host.name, host.kernel, host.cpus)];
        facts.extend(host.cpu_model.clone());
        facts.push(figures::memory(host.memory));
        facts.extend(host.virtualization.clone());
        wrap(out, "host    ", &facts.join(", "), Tint::Plain, style);
    }
    if let Some(source) = &header.imported {
        wrap(out, "from    ", &figures::source(source), Tint::Plain, style);
    }
    for target in &header.targets {
        let line = format!("{}: {}", target.name, figures::stack(target));
        wrap(out, "target  ", &line, Tint::Plain, style);
    }
    let seed = header.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    let made = format!("{}{seed}, fathom {}", header.created, header.fathom_version);
    wrap(out, "made    ", &made, Tint::Dim, style);
}

/// How the run ended, where that is not as planned, and what it found.
fn tail(out: &mut String, document: &Document, style: &Style) {
    let (done, planned) = (document.trials.len(), document.header.planned_points as usize);
    let ended = document.conclusion.as_ref().map(|conclusion| conclusion.ended);
    let mut say = |tint, text: &str| wrap(out, "", text, tint, style);
    match ended {
        Some(Ended::Completed) => {}
        Some(Ended::Interrupted) => {
            let text = format!("The run was interrupted: {done} of {planned} points were run.");
            say(Tint::Doubtful, &text);
        }
        Some(Ended::Failed) => {
            say(Tint::Bad, &format!("The run failed: {done} of {planned} points were run."));
        }
        None => {
            let text = format!(
                "The run was cut off, or still goes on: {done} of {planned} points were run."
            );
            say(Tint::Doubtful, &text);
        }
    }
    if document.torn {
        say(Tint::Doubtful, "The last line of the result file was torn, and was left out.");
    }
    for sentence in document.conclusion.iter().flat_map(|conclusion| &conclusion.sentences) {
        say(Tint::Plain, sentence);
    }
}

/// Findings by themselves.
pub fn findings(findings: &[Finding], style: &Style) -> String {
    let mut out = String::new();
    findings.iter().for_each(|one| finding(&mut out, one, "", style));
    out
}

/// A finding: what was found, then what to do about it.
fn finding(out: &mut String, finding: &Finding, whose: &str, style: &Style) {
    let name = finding.severity.name();
    let lead = format!("  {name:<9}");
    let lead = lead.replacen(name, &severity_tint(finding.severity).paint(name, style), 1);
    let mut text = String::new();
    wrap(&mut text, "           ", &format!("{whose}{}", finding.evidence), Tint::Plain, style);
    out.push_str(&text.replacen("           ", &lead, 1));
    if !finding.advice.is_empty() {
        wrap(out, "           ", &finding.advice, Tint::Dim, style);
    }
}

/// Everything that could not be checked, said once for all trials.
fn unchecked(out: &mut String, trials: &[Trial], style: &Style) {
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
    push_line(out, "not checked");
    for (code, why) in seen {
        wrap(out, "  ", &format!("{code}: {why}"), Tint::Dim, style);
    }
}
