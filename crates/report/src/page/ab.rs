//! Two sides in figures: each figure of both, their ratio with its interval, and the answer.

use fathom_core::stats::Ratio;

use super::{Block, Entry, Head, Spare, Table, Tone};
use crate::document::{AbFound, ComparedFigure, SideAnswer};
use crate::figures::{self, or_unknown};

/// The figures of both sides in a table, and what its columns are.
pub fn figures(found: &AbFound) -> Vec<Block> {
    let heads = [
        Head::words(""),
        Head::figures("A"),
        Head::figures("B"),
        Head::figures("B/A"),
        Head::figures("interval").with(Spare::Column),
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
         all figures at once. Times are those of response, which in a closed loop are of service."
    );
    Vec::from([Block::Table(table), Block::quiet(text)])
}

/// A figure of both sides.
fn row(one: &ComparedFigure, margin: f64) -> [Entry; 6] {
    let value = |side: Option<f64>| Entry::figure(or_unknown(side.map(|it| written(one, it))));
    let Ratio { value: ratio, low, high } =
        one.ratio.unwrap_or(Ratio { value: f64::NAN, low: f64::NAN, high: f64::NAN });
    let known = |text: String| if ratio.is_nan() { or_unknown(None) } else { text };
    [
        Entry::words(match one.figure.as_str() {
            "bandwidth" => "bandwidth",
            "mean" => "mean",
            "cpu" => "CPU time of an I/O",
            _ => one.name(),
        }),
        value(one.a),
        value(one.b),
        Entry::figure(known(format!("{ratio:.3}"))),
        Entry::figure(known(format!("{low:.3} to {high:.3}"))),
        Entry::words(answer(one, margin)),
    ]
}

/// A value of a figure, with its unit.
fn written(one: &ComparedFigure, value: f64) -> String {
    match one.figure.as_str() {
        "iops" => figures::significant(value),
        "bandwidth" => format!("{} MB/s", figures::significant(value / 1e6)),
        _ => figures::time(value),
    }
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
        (SideAnswer::Undecided, Some(seen)) => {
            format!("undecided: could have seen {}", ComparedFigure::seen(seen))
        }
        (SideAnswer::Undecided, None) => "undecided".to_owned(),
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
