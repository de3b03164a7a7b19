//! The sentences of a sweep, each compared with the true rates of its settings.

use super::{Heard, Judged, between, labels, percent, rate, span};
use crate::conclusions::lab::Noise;

/// Settings that differ by less than this count as alike: it is the error of a noiseless trial.
const ALIKE: f64 = 0.005;

/// Half of the last digit of a percentage as the sentences round it.
const ROUNDED: f64 = 0.0051;

/// The share of the best that is enough, as set in the sweeps of the bench.
const ENOUGH: f64 = 0.95;

/// A sweep on a device that treats all data alike.
pub fn sweep(heard: &Heard<'_>) -> Vec<Judged> {
    judged(heard, false)
}

/// A sweep on a device that compresses: zeros are much faster.
pub fn compressed_sweep(heard: &Heard<'_>) -> Vec<Judged> {
    judged(heard, true)
}

fn judged(heard: &Heard<'_>, compresses: bool) -> Vec<Judged> {
    let mut judged = Vec::new();
    let sentences = &heard.session.sentences;
    for (place, sentence) in sentences.iter().enumerate() {
        let next = sentences.get(place + 1).map_or("", String::as_str);
        let one = one(heard, (sentence, next), compresses);
        judged.extend(one.unwrap_or_else(|| Vec::from([Judged::unread(sentence)])));
    }
    judged.extend(saved(heard, compresses));
    judged
}

/// Whether a sentence says only how the trials were made, and nothing about the device.
pub fn is_about_the_run(sentence: &str) -> bool {
    sentence.starts_with("Each point was measured once.")
}

/// `None` for an unknown sentence.
fn one(heard: &Heard<'_>, (sentence, next): (&str, &str), compresses: bool) -> Option<Vec<Judged>> {
    /// These sentences are judged with the sentence before them, or say what was done and nothing
    /// about the device.
    const BESIDE: [&str; 4] = [
        "These cannot be told from the highest",
        "No other point",
        "Here, only points",
        "There are too few trials",
    ];
    let is_beside = BESIDE.iter().any(|start| sentence.starts_with(start));
    if is_beside || is_about_the_run(sentence) {
        return Some(Vec::new());
    }
    if sentence.starts_with("No point can be told from another: ") {
        return Some(Vec::from([Judged::open("the best", sentence)]));
    }
    if sentence.contains(" highest at ") {
        return best(heard, (sentence, next), compresses);
    }
    if let Some(judged) = payloads(sentence, compresses) {
        return Some(Vec::from([judged]));
    }
    if sentence.starts_with("Which axis matters most is unknown") {
        return Some(Vec::from([Judged::open("matters most", sentence)]));
    }
    if sentence.contains(" matters most: ") {
        return Some(Vec::from([matters(heard, sentence)]));
    }
    curve(heard, sentence)
}

/// Judges a sentence about data that repeats itself.
pub fn payloads(sentence: &str, compresses: bool) -> Option<Judged> {
    const KIND: &str = "zeros";
    let holds = |right| Some(Judged::holds(KIND, sentence, right));
    if sentence.starts_with("Not counted ") {
        return holds(compresses);
    }
    if sentence.starts_with("Whether zeros are written much faster") {
        return Some(Judged::open(KIND, sentence));
    }
    let said = sentence.strip_prefix("Zeros are ")?;
    if said.starts_with("not written much faster") {
        return holds(!compresses);
    }
    said.starts_with("written ").then(|| Judged::holds(KIND, sentence, compresses))
}

/// Judges the doubt about trials of data that repeats itself.
pub fn saved(heard: &Heard<'_>, compresses: bool) -> Option<Judged> {
    const CODE: &str = "repeating-data-faster";
    let is_said = heard.session.doubts.contains(&CODE);
    is_said.then(|| Judged::holds("zeros", CODE, compresses))
}

/// "Bandwidth is highest at X: V ± h (3 trials)...", with the settings that cannot be told from
/// it. Every setting that is not named there has to be lower.
fn best(
    heard: &Heard<'_>,
    (sentence, next): (&str, &str),
    compresses: bool,
) -> Option<Vec<Judged>> {
    const KIND: &str = "the best";
    let (_, said) = sentence.split_once(" highest at ")?;
    let (name, figure) = said.split_once(": ")?;
    let (figure, _) = figure.rsplit_once(" (")?;
    // Zeros count as a setting unless the device compresses and the session has reported this.
    let is_told = heard.session.sentences.iter().any(|one| one.starts_with("Not counted "));
    let settings = heard
        .truth
        .settings
        .iter()
        .filter(|(one, _)| !(compresses && is_told && one.contains("payload zeros")));
    let settings: Vec<(&str, f64)> =
        settings.map(|(name, (_, bandwidth))| (name.as_str(), *bandwidth)).collect();
    let (_, own) = *settings.iter().find(|(one, _)| *one == name)?;
    let equals: Vec<&str> = next
        .strip_prefix("These cannot be told from the highest: ")
        .map(|list| list.trim_end_matches('.').split("; ").collect())
        .unwrap_or_default();
    let whole = format!("{sentence} {next}");
    // The sentence does not name the others.
    let is_cut = equals.last().is_some_and(|last| last.starts_with("and "));
    let is_less = |(one, value): &(&str, f64)| {
        *one == name || equals.contains(one) || *value < (1.0 - ALIKE) * own
    };
    let right = is_cut || settings.iter().all(is_less);
    let mut judged = Vec::from([match right && !equals.is_empty() {
        true => Judged::open(KIND, &whole),
        false => Judged::holds(KIND, &whole, right),
    }]);
    judged.push(figure_of(heard, name, figure, sentence)?);
    Some(judged)
}

/// "856 MiB/s ± 3 %": whether the true figure lies within.
fn figure_of(heard: &Heard<'_>, name: &str, figure: &str, sentence: &str) -> Option<Judged> {
    const KIND: &str = "the best's figure";
    let Some((value, half)) = figure.split_once(" ± ") else {
        return Some(Judged::open(KIND, sentence));
    };
    let ((value, in_bytes), half) = (rate(value)?, percent(half)?);
    let (iops, bandwidth) = *heard.truth.settings.get(name)?;
    let truth = if in_bytes { bandwidth } else { iops };
    let (low, high) = (truth * heard.noise.slowest(), truth);
    let right = value * (1.0 - half - ROUNDED) <= high && low <= value * (1.0 + half + ROUNDED);
    Some(Judged::holds(KIND, sentence, right))
}

/// The settings along one axis, with the other axes fixed.
pub struct Curve {
    /// Their labels and the true share of the best that each gives, by rising load.
    shares: Vec<(String, f64)>,
    /// The share that is enough.
    enough: f64,
}

impl Curve {
    /// The settings whose names have all the common parts and one part of this axis.
    pub fn of(heard: &Heard<'_>, axis: &str, common: &[&str], enough: f64) -> Self {
        let start = format!("{axis} ");
        let all = heard.truth.settings.iter().filter_map(|(name, (_, value))| {
            let parts: Vec<&str> = name.split(", ").collect();
            let is_here = common.iter().all(|one| parts.contains(one));
            let own = parts.iter().find_map(|part| part.strip_prefix(start.as_str()));
            own.filter(|_| is_here && parts.len() == common.len() + 1)
                .map(|label| (label.to_owned(), *value))
        });
        let mut shares: Vec<(String, f64)> = all.collect();
        let most = shares.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        shares.iter_mut().for_each(|(_, value)| *value /= most);
        let load = |label: &str| label.parse::<f64>().unwrap_or(0.0);
        shares.sort_by(|one, other| load(&one.0).total_cmp(&load(&other.0)));
        Self { shares, enough }
    }

    fn share(&self, label: &str) -> Option<f64> {
        self.shares.iter().find(|(one, _)| one == label).map(|(_, share)| *share)
    }

    /// "LABEL ... (96 % of the best, at least 93 %: V)[; for 1 and 2 that is unknown][; 64 costs
    /// ...]": whether the label is enough, lower labels that are not named are not enough, and the
    /// shares are true.
    pub fn enough(&self, sentence: &str, label: &str) -> Option<Vec<Judged>> {
        let unsure = between(sentence, "; for ", " that is unknown");
        let unsure = unsure.map(labels).unwrap_or_default();
        let own = self.share(label)?;
        let below = self.shares.iter().take_while(|(one, _)| one != label);
        let mut below = below.filter(|(one, _)| !unsure.contains(&one.as_str()));
        let is_enough = self.enough * (1.0 - ALIKE) <= own;
        let right = is_enough && below.all(|(_, share)| *share < self.enough);
        let mut judged = Vec::from([match right && !unsure.is_empty() {
            true => Judged::open("enough", sentence),
            false => Judged::holds("enough", sentence, right),
        }]);
        let said = between(sentence, "(", ": ")?;
        let (value, least) = said.split_once(" of the best")?;
        let least = percent(least.strip_prefix(", at least ").unwrap_or(value))?;
        judged.push(Judged::holds("the share of it", sentence, least <= own + ROUNDED));
        judged.extend(self.cost(sentence)?);
        Some(judged)
    }

    /// "... is unknown: 1 and 2 are not; 4 and 8 may be[; 64 costs ...]."
    pub fn undecided(&self, sentence: &str) -> Option<Vec<Judged>> {
        let (_, said) = sentence.split_once("is unknown: ")?;
        let not = said.split("; ").find_map(|part| {
            let ends = [" are not", " is not", " do not", " does not"];
            ends.iter().find_map(|end| part.strip_suffix(end))
        });
        let not = not.map(labels).unwrap_or_default();
        let right = not.iter().all(|one| self.share(one).is_some_and(|share| share < self.enough));
        let mut judged = Vec::from([match right {
            true => Judged::open("enough", sentence),
            false => Judged::holds("enough", sentence, false),
        }]);
        judged.extend(self.cost(sentence)?);
        Some(judged)
    }

    /// Whether the last setting is the best and no other is enough.
    pub fn rises(&self, sentence: &str) -> Option<Vec<Judged>> {
        let (last, below) = self.shares.split_last()?;
        let right = self.enough <= last.1 && below.iter().all(|(_, share)| *share < self.enough);
        Some(Vec::from([Judged::holds("enough", sentence, right)]))
    }

    /// "; 64 costs 10 % (7 to 13 %)", if the sentence says so; `None` if it cannot be read.
    fn cost(&self, sentence: &str) -> Option<Vec<Judged>> {
        let part = sentence.split("; ").find_map(|part| {
            let said = [" costs ", " cost "].iter().find_map(|verb| part.split_once(verb));
            said.filter(|(label, _)| self.share(label).is_some())
        });
        let Some((label, said)) = part else { return Some(Vec::new()) };
        let (least, most) = span(said.trim_end_matches('.'))?;
        let truth = 1.0 - self.share(label)?;
        let right = least - ROUNDED <= truth && truth <= most + ROUNDED;
        Some(Vec::from([Judged::holds("what the end costs", sentence, right)]))
    }
}

/// Sentences about settings that do not fit into their curve. In truth all settings fit.
pub fn odd(heard: &Heard<'_>, rest: &str, sentence: &str) -> Option<Vec<Judged>> {
    if rest.starts_with("the curve is not monotonic: ") {
        return Some(Vec::from([Judged::holds("not monotonic", sentence, false)]));
    }
    if rest.starts_with("the trials of ") && rest.contains(" differ by more than those of") {
        let right = heard.noise == Noise::Burst;
        return Some(Vec::from([Judged::holds("restless", sentence, right)]));
    }
    // This sentence says what was done.
    rest.contains(" did not fit the curve and was measured again: ").then(Vec::new)
}

/// `[OTHERS: ]AXIS X is enough (...)...`, `[OTHERS: ]AXIS X is the best of them (V), and more may
/// gain.` or `[OTHERS: ]which AXIS is enough (95 % of the best) is unknown: ...`.
fn curve(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    const AXIS: &str = "queue-depth";
    let is_known = |part: &str| {
        let mut names = heard.truth.settings.keys();
        names.any(|name| name.split(", ").any(|one| one == part))
    };
    let (common, rest) = match sentence.split_once(": ") {
        Some((others, rest)) if others.split(", ").all(is_known) => {
            (others.split(", ").collect(), rest)
        }
        _ => (Vec::new(), sentence),
    };
    if let Some(judged) = odd(heard, rest, sentence) {
        return Some(judged);
    }
    let curve = Curve::of(heard, AXIS, &common, ENOUGH);
    if rest.starts_with("which queue-depth is enough (95 % of the best) is unknown: ") {
        return curve.undecided(rest);
    }
    let (label, said) = rest.strip_prefix("queue-depth ")?.split_once(" is ")?;
    if said.starts_with("the best of them (") {
        return curve.rises(sentence);
    }
    said.starts_with("enough (").then(|| curve.enough(rest, label))?
}

/// "AXIS matters most: ...": whether the means differ most along this axis.
fn matters(heard: &Heard<'_>, sentence: &str) -> Judged {
    // The labels of each axis, with the sum of the logarithms and the number of values.
    type Labels<'a> = Vec<(&'a str, f64, f64)>;
    let mut levels: Vec<(&str, Labels<'_>)> = Vec::new();
    for (name, (_, bandwidth)) in &heard.truth.settings {
        for part in name.split(", ") {
            let (axis, label) = part.split_once(' ').unwrap_or((part, ""));
            let place = levels.iter().position(|(known, _)| *known == axis).unwrap_or_else(|| {
                levels.push((axis, Vec::new()));
                levels.len() - 1
            });
            match levels[place].1.iter_mut().find(|(known, ..)| *known == label) {
                Some((_, sum, n)) => (*sum, *n) = (*sum + bandwidth.ln(), *n + 1.0),
                None => levels[place].1.push((label, bandwidth.ln(), 1.0)),
            }
        }
    }
    let factor = |labels: &[(&str, f64, f64)]| {
        let means = labels.iter().map(|(_, sum, n)| sum / n);
        means.clone().fold(f64::NEG_INFINITY, f64::max) - means.fold(f64::INFINITY, f64::min)
    };
    let most = levels.iter().max_by(|a, b| factor(&a.1).total_cmp(&factor(&b.1)));
    let right = most.is_some_and(|(axis, labels)| {
        ALIKE < factor(labels) && sentence.starts_with(&format!("{axis} matters most"))
    });
    Judged::holds("matters most", sentence, right)
}
