//! The conditions under which a comparison fails, such as a p99 that is worse by more than 5 %.

use fathom_core::differences::figure_in_words;
use fathom_core::facts::Answer;
use fathom_core::stats::{Difference, Figure};

use super::Question;
use super::model::{KnownRatio, RequirementOutcome, Side};
use super::weighing::Weighed;

/// A condition under which a comparison fails: a figure is worse by more than a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// As it was typed.
    pub typed: String,
    /// The figure.
    pub figure: Figure,
    /// The bound, as a share above 0: 0.05 is 5 % less of a rate, or 5 % more of a time.
    pub bound: f64,
}

/// Judges all conditions at all points together: the more there are, the wider each interval is
/// (Bonferroni's inequality). In a share `alpha` of comparisons any of them may be wrong. Each of `weighed`
/// belongs to a side after the first.
pub fn judge(
    question: &Question,
    sides: &[Side],
    weighed: &[Vec<Weighed<'_>>],
    alpha: f64,
) -> Vec<RequirementOutcome> {
    let all = &question.requirements;
    let mut points: Vec<(String, &Weighed<'_>)> = Vec::new();
    for (side, of_side) in sides.iter().skip(1).zip(weighed) {
        let place = |point: &Weighed<'_>| match weighed.len() {
            1 => point.compared.pair.name.clone(),
            _ => format!("{} in {}", point.compared.pair.name, side.name),
        };
        points.extend(of_side.iter().map(|point| (place(point), point)));
    }
    let known =
        all.iter().flat_map(|one| points.iter().filter_map(|it| it.1.difference(one.figure)));
    let alpha = alpha / known.count().max(1) as f64;
    all.iter().map(|one| one.judged(&points, alpha)).collect()
}

impl Requirement {
    /// At points with their places.
    fn judged(&self, points: &[(String, &Weighed<'_>)], alpha: f64) -> RequirementOutcome {
        let typed = &self.typed;
        if points.is_empty() {
            let text = format!("{typed}: there is nothing to compare");
            return RequirementOutcome { typed: typed.clone(), holds: Answer::Unknown, text };
        }
        let mut found: [Vec<String>; 2] = Default::default();
        for (name, point) in points {
            match point.difference(self.figure).map(|known| self.of(known, alpha)) {
                Some((Answer::Yes, words)) => found[0].push(format!("{words} at {name}")),
                Some((Answer::No, _)) => {}
                Some((Answer::Unknown, words)) => found[1].push(format!("{words} at {name}")),
                None => found[1].push(format!("the figure is unknown at {name}")),
            }
        }
        let [fails, open] = found;
        let (holds, clauses) = match (fails.is_empty(), open.is_empty()) {
            (false, _) => (Answer::Yes, fails),
            (true, false) => (Answer::Unknown, open),
            (true, true) => {
                let text = format!("{typed}: it is not");
                return RequirementOutcome { typed: typed.clone(), holds: Answer::No, text };
            }
        };
        let more = match clauses.len() {
            1 => String::new(),
            several => format!(" (and at {} more)", several - 1),
        };
        let text = format!("{typed}: {}{more}", clauses[0]);
        RequirementOutcome { typed: typed.clone(), holds, text }
    }

    /// Whether a difference shows that it holds, with the difference in words.
    fn of(&self, known: &Difference, alpha: f64) -> (Answer, String) {
        let name = self.figure.key();
        let ratio = known.interval(alpha);
        let finite = |end: f64| Some(end).filter(|end| end.is_finite() && 0.0 < *end);
        let shown =
            KnownRatio { value: ratio.value, low: finite(ratio.low), high: finite(ratio.high) };
        let words = format!("{} {}", figure_in_words(&name), shown.change().of(&name));
        let (beyond, within) = match self.figure.more_is_better() {
            true => (ratio.high < 1.0 - self.bound, 1.0 - self.bound <= ratio.low),
            false => (1.0 + self.bound < ratio.low, ratio.high <= 1.0 + self.bound),
        };
        let holds = match (beyond, within) {
            (true, _) => Answer::Yes,
            (_, true) => Answer::No,
            _ => Answer::Unknown,
        };
        (holds, words)
    }
}
