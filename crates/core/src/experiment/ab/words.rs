//! The conclusions of a comparison of two sides, in sentences: the answer with its figures, what
//! each side is, and what would decide what is undecided.

use crate::differences::{RatioInWords, figure_in_words, range, told};
use crate::experiment::{AbFound, ComparedFigure, SideAnswer};
use crate::figures::percent;

/// All conclusions, the answer first.
pub fn sentences(found: &AbFound) -> Vec<String> {
    let mut sentences = Vec::from([answer(found)]);
    if let [a, b] = found.sides.as_slice() {
        let differ = match found.differs.as_slice() {
            [] => String::new(),
            some => format!(" Their options differ: {}.", some.join("; ")),
        };
        sentences.push(format!("A is {a}, B is {b}.{differ}"));
    }
    sentences.push(pairs(found));
    sentences.extend(more(found));
    sentences
}

impl AbFound {
    /// Whether it came to no answer: no figure but the CPU time shows a difference, and some may
    /// have one.
    pub fn is_undecided(&self) -> bool {
        let differs = |one: &&ComparedFigure| {
            let decided = [SideAnswer::Worse, SideAnswer::Better].contains(&one.answer);
            decided && one.figure != "cpu"
        };
        !self.is_comparable()
            || (!self.figures.iter().any(|one| differs(&one))
                && self.figures.iter().any(ComparedFigure::is_open))
    }

    /// Whether a figure is known of both sides.
    fn is_comparable(&self) -> bool {
        self.figures.iter().any(ComparedFigure::is_known)
    }

    /// How many more pairs would decide every figure that both sides have; none if very many would not.
    fn pairs_needed(&self) -> Option<u32> {
        let open = self.figures.iter().filter(|one| one.is_open());
        let needed: Option<Vec<u32>> = open.map(|one| one.more_pairs).collect();
        needed?.into_iter().max()
    }
}

/// "B is slower than A: IOPS 9.1 % lower (8.7 to 9.5 %), p99 9.9 % longer (9.2 to 11 %); mean and p50
/// too." The other figures are in the table.
fn answer(found: &AbFound) -> String {
    if !found.is_comparable() {
        return "A and B cannot be compared: no pair of trials counts on both sides.".to_owned();
    }
    let of = |answer: SideAnswer| {
        let own = found.figures.iter().filter(move |one| one.answer == answer);
        own.collect::<Vec<&ComparedFigure>>()
    };
    let margin = percent(found.margin);
    let [worse, better, same, undecided] =
        [SideAnswer::Worse, SideAnswer::Better, SideAnswer::Same, SideAnswer::Undecided].map(of);
    let (open, unknown): (Vec<&ComparedFigure>, Vec<&ComparedFigure>) =
        undecided.into_iter().partition(|one| one.is_open());
    let is_slow = |figures: &[&ComparedFigure]| figures.iter().any(|one| one.figure != "cpu");
    let (slow, fast) = (is_slow(&worse), is_slow(&better));
    let is_alike = !slow && !fast && open.is_empty();
    let said = match (slow, fast) {
        (true, false) => format!("B is slower than A: {}", list(&worse)),
        (false, true) => format!("B is faster than A: {}", list(&better)),
        (true, true) => {
            format!("B is slower than A in some figures and faster in others: {}", list(&worse))
        }
        (false, false) if is_alike => {
            format!("There is no difference beyond {margin} between A and B: {}", list(&same))
        }
        (false, false) => in_doubt(found, &open),
    };
    let mut parts = Vec::from([said]);
    if !slow && !worse.is_empty() {
        parts.push(list(&worse));
    }
    if (slow || !fast) && !better.is_empty() {
        parts.push(list(&better));
    }
    if !is_alike && !same.is_empty() {
        parts.push(format!("no difference beyond {margin} in {}", names(&same)));
    }
    if (slow || fast) && !open.is_empty() {
        parts.push(format!("undecided in {}", names(&open)));
    }
    if !unknown.is_empty() {
        parts.push(format!("{} known of one side only", names(&unknown)));
    }
    format!("{}.", parts.join("; "))
}

fn names(figures: &[&ComparedFigure]) -> String {
    figures.iter().map(|one| figure_in_words(&one.figure)).collect::<Vec<_>>().join(", ")
}

/// "IOPS 9.1 % lower (8.7 to 9.5 %), p99 9.9 % longer (9.2 to 11 %); mean and p50 too".
fn list(figures: &[&ComparedFigure]) -> String {
    let (told, others) = told(figures, |one| &one.figure);
    let told = told.iter().map(|one| one.in_words()).collect::<Vec<_>>().join(", ");
    others.map_or(told.clone(), |others| format!("{told}; {others} too"))
}

/// "Undecided: B against A: IOPS 5.5 % lower (13 % lower to 2.5 % higher), p99 5.9 % longer (2 % shorter
/// to 15 % longer); about 26 more pairs would decide". The other figures are in the table.
fn in_doubt(found: &AbFound, open: &[&ComparedFigure]) -> String {
    let (told, _) = told(open, |one| &one.figure);
    let told = told.iter().map(|one| one.in_words()).collect::<Vec<_>>().join(", ");
    let more = match found.pairs_needed() {
        None => String::new(),
        Some(1) => "; about 1 more pair would decide".to_owned(),
        Some(n) => format!("; about {n} more pairs would decide"),
    };
    format!("Undecided: B against A: {told}{more}")
}

fn pairs(found: &AbFound) -> String {
    let counted = match found.pairs {
        1 => "1 pair of trials".to_owned(),
        n => format!("{n} pairs of trials"),
    };
    let void = match found.void_pairs {
        0 => String::new(),
        1 => "; 1 pair is left out, because a trial of it is void".to_owned(),
        n => format!("; {n} pairs are left out, because a trial of each is void"),
    };
    let known = match found.figures.iter().all(ComparedFigure::is_known) {
        true => "",
        false => " that both sides have",
    };
    match found.ended_early {
        true => format!(
            "It ended after {counted}, of {} at most, because every figure{known} was decided{void}.",
            found.pairs_at_most
        ),
        false => format!("These are the figures of {counted}{void}."),
    }
}

/// What would decide what is undecided.
fn more(found: &AbFound) -> Vec<String> {
    let is_undecided = |one: &&ComparedFigure| one.answer == SideAnswer::Undecided;
    let undecided: Vec<&ComparedFigure> = found.figures.iter().filter(is_undecided).collect();
    if undecided.is_empty() {
        return Vec::new();
    }
    if found.pairs < 2 {
        return Vec::from(["Two pairs at least have to count before anything can be told.".into()]);
    }
    // A percentile needs I/Os beyond it. How long trials are changes nothing else.
    let lacks_ios = |one: &&ComparedFigure| !one.is_known() && one.figure.starts_with('p');
    let longer = undecided
        .iter()
        .any(lacks_ios)
        .then(|| "Longer trials, with --duration, have the I/Os for more percentiles.".to_owned());
    let pairs = undecided.iter().any(|one| one.is_open()).then(|| more_pairs(found));
    pairs.into_iter().chain(longer).collect()
}

/// How many more pairs would decide every figure that both sides have.
fn more_pairs(found: &AbFound) -> String {
    match found.pairs_needed() {
        Some(more) => format!(
            "About {more} more {} would decide, if the trials scatter as they did: --repeats {}.",
            if more == 1 { "pair" } else { "pairs" },
            found.pairs + more
        ),
        None => "More pairs would hardly decide all of it: the trials scatter too much, or the \
                 difference is as large as the margin."
            .to_owned(),
    }
}

impl ComparedFigure {
    /// Whether both sides have it.
    pub fn is_known(&self) -> bool {
        self.a.is_some() && self.b.is_some()
    }

    /// Whether both sides have it, and it is not decided.
    fn is_open(&self) -> bool {
        self.answer == SideAnswer::Undecided && self.is_known()
    }

    /// "IOPS 9.1 % lower (8.7 to 9.5 %)", "p99 2 % longer (3 % shorter to 7 % longer)".
    pub fn in_words(&self) -> String {
        let name = figure_in_words(&self.figure);
        match (self.answer, self.ratio) {
            (SideAnswer::Same, Some(ratio)) => format!("{name} {}", range(ratio)),
            (_, Some(ratio)) => format!("{name} {}", RatioInWords::from(ratio).of(&self.figure)),
            (_, None) => format!("{name} (too few trials)"),
        }
    }
}
