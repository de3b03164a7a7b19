//! Two sides in figures: each figure of both, their ratio with its interval, and the answer.

use fathom_core::differences::{RatioInWords, distance, figure_in_words, figure_text};

use super::{Block, Entry, Head, Table, Tone};
use crate::document::{AbFound, ComparedFigure, SideAnswer};
use crate::figures::{self, or_unknown};

/// The figures of both sides in a table, and what its columns are.
pub fn figures(found: &AbFound) -> Vec<Block> {
    let heads = [
        Head::words(""),
        Head::figures("A"),
        Head::figures("B"),
        Head::words("B against A"),
        Head::words("answer"),
    ];
    let mut table = Table::new("", heads);
    for one in &found.figures {
        table.toned(tone(one.answer), row(one, found.margin));
    }
    let pairs = match found.pairs {
        1 => "1 pair of trials".to_owned(),
        n => format!("{n} pairs of trials"),
    };
    let text = format!(
        "Figures are of all trials of a side together; intervals are those of {pairs}, and hold for \
         all figures at once. Times are response times; in a closed loop these are service times."
    );
    Vec::from([Block::Table(table), Block::quiet(text)])
}

/// A figure of both sides.
fn row(one: &ComparedFigure, margin: f64) -> [Entry; 5] {
    let value =
        |side: Option<f64>| Entry::figure(or_unknown(side.map(|it| figure_text(&one.figure, it))));
    let change = or_unknown(one.ratio.map(|ratio| RatioInWords::from(ratio).signed()));
    [
        Entry::words(figure_in_words(&one.figure)),
        value(one.a),
        value(one.b),
        Entry::words(change),
        Entry::words(answer(one, margin)),
    ]
}

/// "slower", "no difference beyond 5 %", "undecided: could have seen 8 %".
fn answer(one: &ComparedFigure, margin: f64) -> String {
    let is_cpu = one.figure == "cpu";
    match (one.answer, one.could_have_seen) {
        (SideAnswer::Worse, _) if is_cpu => "more".to_owned(),
        (SideAnswer::Better, _) if is_cpu => "less".to_owned(),
        (SideAnswer::Worse, _) => "slower".to_owned(),
        (SideAnswer::Better, _) => "faster".to_owned(),
        (SideAnswer::Same, _) => format!("no difference beyond {}", figures::percent(margin)),
        (SideAnswer::Undecided, _) if !one.is_known() => "known of one side only".to_owned(),
        (SideAnswer::Undecided, Some(seen)) => {
            format!("undecided: could have seen {}", distance(seen))
        }
        (SideAnswer::Undecided, None) => "undecided".to_owned(),
    }
}

/// The tone of its answer. More or less CPU time alone does not make a side slower or faster.
pub fn answer_tone(found: &AbFound) -> Tone {
    let any = |answer: SideAnswer| {
        found.figures.iter().any(|one| one.answer == answer && one.figure != "cpu")
    };
    match (any(SideAnswer::Worse), any(SideAnswer::Better)) {
        (false, false) if found.is_undecided() => Tone::Doubtful,
        (true, true) => Tone::Doubtful,
        (true, false) => Tone::Bad,
        (false, _) => Tone::Good,
    }
}

fn tone(answer: SideAnswer) -> Tone {
    match answer {
        SideAnswer::Worse => Tone::Bad,
        SideAnswer::Better => Tone::Good,
        SideAnswer::Same => Tone::Plain,
        SideAnswer::Undecided => Tone::Doubtful,
    }
}
