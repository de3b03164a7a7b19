//! The doubts of all trials, each of them once.

use fathom_core::count;
use fathom_core::experiment::ROUND;
use fathom_core::verdict::code_in_words;

use crate::document::{Coordinate, Finding, Trial};

/// A finding of one or several trials.
#[derive(Clone, Debug)]
pub struct Doubt<'a> {
    /// In the words of the first of them.
    pub finding: &'a Finding,
    /// What it is in a few words: "12 I/Os failed".
    pub words: String,
    /// Its trials, in words before the evidence; empty if there is only one trial.
    pub whose: String,
    /// Its trials alone: "steps 2 and 5"; empty if there is only one trial.
    pub trials: String,
}

/// The codes of the checks that this machine could not make and another one could, without
/// repetition.
pub fn missing_checks<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> Vec<&'t str> {
    let missing = |trial: &'t Trial| trial.unchecked.iter().filter(|one| one.missing);
    let mut codes: Vec<&str> =
        trials.into_iter().flat_map(missing).map(|one| one.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// "whether a cache answered": the question of a check; its code if this version does not know it.
pub fn question(code: &str) -> String {
    match code_in_words(code) {
        words if words == code => code.to_owned(),
        words => format!("whether {words}"),
    }
}

/// ", 4 checks not made": the checks that a verdict of sound leaves open because this machine could
/// not make them; empty if there are none. One check that is missing in several trials counts once.
pub fn left_open<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> String {
    match missing_checks(trials).len() {
        0 => String::new(),
        1 => ", 1 check not made".to_owned(),
        n => format!(", {n} checks not made"),
    }
}

/// Every finding once, with the trials that have it; the gravest first. A finding with a different
/// severity in some trials is reported separately for each severity: void is not the same as
/// suspect.
pub fn doubts<'t>(trials: &'t [Trial]) -> Vec<Doubt<'t>> {
    let mut groups: Vec<Vec<(usize, &'t Finding)>> = Vec::new();
    for (place, trial) in trials.iter().enumerate() {
        for one in &trial.findings {
            let same = |other: &Finding| (&other.code, other.severity) == (&one.code, one.severity);
            match groups.iter_mut().find(|group| same(group[0].1)) {
                Some(group) => group.push((place + 1, one)),
                None => groups.push(Vec::from([(place + 1, one)])),
            }
        }
    }
    let one = trial_word(trials);
    let words = |code: &str, steps: &[usize]| {
        let failed: u64 = steps.iter().map(|step| trials[step - 1].ledger().failed).sum();
        match (code, failed) {
            ("io-errors", 1) => "1 I/O failed".to_owned(),
            ("io-errors", 2..) => format!("{} I/Os failed", count(failed)),
            _ => code_in_words(code).to_owned(),
        }
    };
    let doubt = |group: Vec<(usize, &'t Finding)>| {
        let &(step, finding) = group.first()?;
        let alike = group.iter().all(|(_, one)| one.evidence == finding.evidence);
        let mut steps: Vec<usize> = group.iter().map(|(step, _)| *step).collect();
        steps.dedup();
        let trials = whose(one, &steps, trials);
        let whose = match alike {
            _ if trials.is_empty() => String::new(),
            true => format!("{trials}: "),
            false => format!("{trials}; in {one} {step}: "),
        };
        Some(Doubt { finding, words: words(&finding.code, &steps), whose, trials })
    };
    let mut doubts: Vec<Doubt<'_>> = groups.into_iter().filter_map(doubt).collect();
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.finding.severity));
    doubts
}

/// The name of one of several trials: an experiment's trials and repeats have their places, the steps
/// of others follow each other.
pub fn trial_word(trials: &[Trial]) -> &'static str {
    let placed = trials.iter().any(|trial| !trial.place.is_plain());
    if placed { "trial" } else { "step" }
}

/// More steps than this are not named one by one.
const NAMED: usize = 8;
/// More than this are named by their numbers alone, and so is one whose place takes more characters.
const PLACED: usize = 2;
const PLACE_LONG: usize = 40;

/// "step 2", "steps 1, 3 and 4", "trial 6 (queue-depth 4, rate 400k)", "trials 1, 2, 3, 5, 6, 7, 8 and 60
/// more", "every step".
fn whose(one: &str, steps: &[usize], all: &[Trial]) -> String {
    let of = |step: &usize| place(&all[step - 1]).filter(|_| steps.len() <= PLACED);
    let places: Vec<Option<String>> = steps.iter().map(of).collect();
    let name = |(at, step): (usize, &usize)| match &places[at] {
        // Repeats have one place, which their last one is told with.
        Some(place) if places.get(at + 1) != Some(&places[at]) => format!("{step} ({place})"),
        _ => step.to_string(),
    };
    let names: Vec<String> = steps.iter().enumerate().map(name).collect();
    match names.as_slice() {
        _ if all.len() == 1 => String::new(),
        _ if steps.len() == all.len() => format!("every {one}"),
        [only] => format!("{one} {only}"),
        [first @ .., _] if NAMED < names.len() => {
            let first = &first[..NAMED - 1];
            format!("{one}s {} and {} more", first.join(", "), names.len() - first.len())
        }
        [rest @ .., last] => format!("{one}s {} and {last}", rest.join(", ")),
        [] => String::new(),
    }
}

/// Where a table by axes has it: "queue-depth 4, rate 400k". None for the round of a repeated load, which is
/// its number.
fn place(trial: &Trial) -> Option<String> {
    let text = Coordinate::in_words(trial.place.coordinates.iter().filter(|at| at.axis != ROUND));
    (!text.is_empty() && text.chars().count() <= PLACE_LONG).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_was_not_made_is_a_question_in_words() {
        assert_eq!(question("cached-below"), "whether a cache answered");
        assert_eq!(question("unwritten-reads"), "whether blocks were read that were never written");
        assert_eq!(question("of-another-version"), "of-another-version");
    }
}
