//! The conclusions of a comparison of two sides, in sentences: the answer with its figures, what
//! each side is, and what would decide what is undecided.

use crate::experiment::{AbFound, ComparedFigure, SideAnswer};
use crate::figures::percent;
use crate::stats::Ratio;

/// From this ratio on, people say how many times it is.
const MANY: f64 = 2.0;

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
        let is_open = |one: &ComparedFigure| one.answer == SideAnswer::Undecided;
        !self.is_comparable()
            || (!self.figures.iter().any(|one| differs(&one)) && self.figures.iter().any(is_open))
    }

    /// Whether a figure is known of both sides.
    fn is_comparable(&self) -> bool {
        self.figures.iter().any(|one| one.a.is_some() && one.b.is_some())
    }

    /// How many more pairs would decide every figure; none if very many would not.
    fn pairs_needed(&self) -> Option<u32> {
        let open = self.figures.iter().filter(|one| one.answer == SideAnswer::Undecided);
        let needed: Option<Vec<u32>> = open.map(|one| one.more_pairs).collect();
        needed?.into_iter().max()
    }
}

/// "B is slower than A: IOPS 9.1 % lower (8.7 to 9.5 %), p99 9.9 % longer (9.2 to 11 %)."
fn answer(found: &AbFound) -> String {
    if !found.is_comparable() {
        return "A and B cannot be compared: no pair of trials counts on both sides.".to_owned();
    }
    let of = |answer: SideAnswer| {
        let own = found.figures.iter().filter(move |one| one.answer == answer);
        own.collect::<Vec<&ComparedFigure>>()
    };
    let names = |figures: &[&ComparedFigure]| {
        figures.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
    };
    let margin = percent(found.margin);
    let [worse, better, same, open] =
        [SideAnswer::Worse, SideAnswer::Better, SideAnswer::Same, SideAnswer::Undecided].map(of);
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
        (false, false) => undecided(found, &open),
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
    format!("{}.", parts.join("; "))
}

fn list(figures: &[&ComparedFigure]) -> String {
    figures.iter().map(|one| one.in_words()).collect::<Vec<_>>().join(", ")
}

/// "Undecided: B against A: IOPS 5.5 % lower (13 % lower to 2.5 % higher), p99 5.9 % longer (2 % shorter
/// to 15 % longer); about 26 more pairs would decide". The other figures are in the table.
fn undecided(found: &AbFound, open: &[&ComparedFigure]) -> String {
    const FIRST: [&str; 3] = ["iops", "bandwidth", "p99"];
    let mut told: Vec<&ComparedFigure> =
        open.iter().copied().filter(|one| FIRST.contains(&one.figure.as_str())).collect();
    if told.is_empty() {
        told.extend(open.first());
    }
    let more = match found.pairs_needed() {
        None => String::new(),
        Some(1) => "; about 1 more pair would decide".to_owned(),
        Some(n) => format!("; about {n} more pairs would decide"),
    };
    format!("Undecided: B against A: {}{more}", list(&told))
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
    match found.ended_early {
        true => format!(
            "It ended after {counted}, of {} at most, because every figure was decided{void}.",
            found.pairs_at_most
        ),
        false => format!("These are the figures of {counted}{void}."),
    }
}

/// How many more pairs would decide what is undecided.
fn more(found: &AbFound) -> Option<String> {
    found.figures.iter().find(|one| one.answer == SideAnswer::Undecided)?;
    if found.pairs < 2 {
        return Some("Two pairs at least have to count before anything can be told.".to_owned());
    }
    Some(match found.pairs_needed() {
        Some(more) => format!(
            "About {more} more {} would decide, if the trials scatter as they did: --repeats {}.",
            if more == 1 { "pair" } else { "pairs" },
            found.pairs + more
        ),
        None => "More pairs would hardly decide all of it: the trials scatter too much, or the \
                 difference is as large as the margin."
            .to_owned(),
    })
}

impl ComparedFigure {
    /// Its name for people: "IOPS", "the mean", "p99".
    pub fn name(&self) -> &str {
        match self.figure.as_str() {
            "iops" => "IOPS",
            "bandwidth" => "the bandwidth",
            "mean" => "the mean time",
            "cpu" => "the CPU time of an I/O",
            quantile => quantile,
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(&self) -> bool {
        matches!(self.figure.as_str(), "iops" | "bandwidth")
    }

    /// "IOPS 9.1 % lower (8.7 to 9.5 %)", "p99 2 % longer (3 % shorter to 7 % longer)".
    pub fn in_words(&self) -> String {
        let name = self.name();
        match (self.answer, self.ratio) {
            (SideAnswer::Same, Some(Ratio { low, high, .. })) => {
                format!("{name} {}", range(low, high))
            }
            (_, Some(ratio)) => format!("{name} {}", self.change(ratio)),
            (_, None) => format!("{name} (too few trials)"),
        }
    }

    /// A difference, as a share: "8 %", "a factor of 3.2".
    pub fn seen(share: f64) -> String {
        match 1.0 + share {
            times if times < MANY => percent(share),
            times => format!("a factor of {times:.1}"),
        }
    }

    /// "9.1 % lower (8.7 to 9.5 %)", "2 % longer (3 % shorter to 7 % longer)", "2.3 times that of A
    /// (2.2 to 2.4)".
    fn change(&self, ratio: Ratio) -> String {
        let (more, less) = match self.more_is_better() {
            true => ("higher", "lower"),
            false => ("longer", "shorter"),
        };
        let Ratio { value, low, high } = ratio;
        if MANY <= value {
            return format!("{value:.2} times that of A ({low:.2} to {high:.2})");
        }
        let share = |ratio: f64| percent((ratio - 1.0).abs());
        if low < 1.0 && 1.0 < high {
            let word = if value < 1.0 { less } else { more };
            let value =
                if value == 1.0 { "equal".to_owned() } else { format!("{} {word}", share(value)) };
            return format!("{value} ({} {less} to {} {more})", share(low), share(high));
        }
        let (word, [value, one, other]) = match value < 1.0 {
            true => (less, [1.0 - value, 1.0 - high, 1.0 - low]),
            false => (more, [value - 1.0, low - 1.0, high - 1.0]),
        };
        let [value, one, other] = [value, one, other].map(percent);
        match one == other && one == value {
            true => format!("{value} {word}"),
            false => {
                let one = one.trim_end_matches(" %");
                format!("{value} {word} ({one} to {other})")
            }
        }
    }
}

/// "-0.4 to +0.7 %": how far B may be from A.
fn range(low: f64, high: f64) -> String {
    let [low, high] = [low - 1.0, high - 1.0].map(|share| {
        let text = percent(share);
        if 0.0 < share { format!("+{text}") } else { text }
    });
    format!("{} to {high}", low.trim_end_matches(" %"))
}
