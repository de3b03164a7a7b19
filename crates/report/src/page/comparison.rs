//! The report of a comparison.

use fathom_core::differences::{distance, figure_in_words, figure_text};
use fathom_core::facts::Answer;
use fathom_core::figures::percent;

use super::{Block, Drawing, Entry, Fact, Head, Level, Page, Sentence, Table, Tone};
use crate::chart;
use crate::comparison::{
    Against, Compared, ComparedFigure, ComparedPoint, Comparison, DesignName, Side, Standing,
};
use crate::figures::{count, moment, or_unknown};

/// More points than this are not all shown on a short page: those with a difference come first.
const SHOWN: usize = 12;

/// More differences of the facts than this are counted on a short page.
const FACTS: usize = 12;

/// The report.
pub fn comparison(compared: &Compared<'_>, level: Level) -> Page {
    let of = &compared.comparison;
    let (mut blocks, mut folded) = (Vec::new(), Vec::new());
    for against in &of.against {
        let section = section(of, against, level);
        // All points of a map would stand between the answer and the charts.
        if is_long(against) && level == Level::Complete {
            let heading = match of.against.len() {
                1 => format!("All {} points", count(against.points.len() as u64)),
                _ => format!("All points of {}", title(of, against)),
            };
            folded.push(Block::folded(heading, points(of, against, Level::Full)));
        }
        match of.against.len() {
            1 => blocks.extend(section),
            _ => blocks.push(Block::section(title(of, against), section)),
        }
    }
    if level == Level::Complete {
        let charts = chart::comparison::charts(compared).into_iter().map(Drawing::Chart);
        let charts: Vec<Drawing> = charts.collect();
        if !charts.is_empty() {
            blocks.push(Block::section("Charts", Vec::from([Block::Charts(charts)])));
        }
    }
    blocks.append(&mut folded);
    blocks.extend(method(of).map(Block::quiet));
    Page {
        title: of_all(&of.sides),
        answer: Some(Sentence { tone: tone(of), text: of.answer.clone() }),
        figures: None,
        about: about(of),
        outcome: None,
        blocks,
    }
}

fn tone(of: &Comparison) -> Tone {
    let any = |wanted: Answer| of.requirements.iter().any(|one| one.holds == wanted);
    match (of.requirements.is_empty(), any(Answer::Yes), any(Answer::Unknown)) {
        (false, true, _) => Tone::Bad,
        (false, false, true) => Tone::Doubtful,
        (false, false, false) => Tone::Good,
        // The slowest of several sides is a finding, not a regression.
        _ if 1 < of.against.len() && [Standing::Slower, Standing::Mixed].contains(&of.outcome) => {
            Tone::Strong
        }
        _ => outcome_tone(of.outcome),
    }
}

fn outcome_tone(outcome: Standing) -> Tone {
    match outcome {
        Standing::Same | Standing::Faster => Tone::Good,
        Standing::Undecided | Standing::OneTrial | Standing::Mixed => Tone::Doubtful,
        Standing::Slower | Standing::NotComparable => Tone::Bad,
    }
}

fn title(of: &Comparison, against: &Against) -> String {
    format!("{} against {}", of.sides[against.side as usize].name, of.sides[0].name)
}

/// "comparison of before and after"; of more than two values of an axis "queue-depth: 1, 2, 4, 8".
fn of_all(sides: &[Side]) -> String {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let is_one_file = sides.iter().all(|side| side.file.is_none());
    let axis = names.first().and_then(|first| first.split_once(' ')).map(|(axis, _)| axis);
    let values = axis.filter(|_| is_one_file && 2 < names.len()).and_then(|axis| {
        let values = names.iter().map(|name| name.strip_prefix(axis)?.strip_prefix(' '));
        Some((axis, values.collect::<Option<Vec<&str>>>()?))
    });
    match (values, names.as_slice()) {
        (Some((axis, values)), _) => format!("{axis}: {}", values.join(", ")),
        (None, [rest @ .., before, last]) => {
            let rest: String = rest.iter().map(|name| format!("{name}, ")).collect();
            format!("comparison of {rest}{before} and {last}")
        }
        (None, few) => format!("comparison of {}", few.join(" and ")),
    }
}

/// The sides, and the conditions.
fn about(of: &Comparison) -> Vec<Block> {
    let side = |nth: usize, side: &Side| {
        let mut text = format!(
            "{} on {}, {}",
            side.command.name(),
            side.targets.join(", "),
            moment(&side.created)
        );
        if let Some(file) = side.file.as_ref().filter(|file| **file != side.name) {
            text += &format!("; {file}");
        }
        for doubt in &side.doubts {
            text += &format!("; {doubt}");
        }
        let tone = if side.doubts.is_empty() { Tone::Plain } else { Tone::Doubtful };
        let role = if nth == 0 { "before" } else { "after" };
        Fact { name: role.to_owned(), text: format!("{}: {text}", side.name), tone }
    };
    let mut facts: Vec<Fact> =
        of.sides.iter().enumerate().map(|(nth, one)| side(nth, one)).collect();
    facts.extend(of.requirements.iter().map(|one| {
        let (name, tone) = match one.holds {
            Answer::Yes => ("fails", Tone::Bad),
            Answer::No => ("passes", Tone::Good),
            Answer::Unknown => ("undecided", Tone::Doubtful),
        };
        Fact { name: name.to_owned(), text: one.text.clone(), tone }
    }));
    vec![Block::Facts(facts)]
}

/// A side against the first: what differs, the figures, what was not compared.
fn section(of: &Comparison, against: &Against, level: Level) -> Vec<Block> {
    let mut blocks = Vec::new();
    if 1 < of.against.len() {
        let tone = outcome_tone(against.outcome);
        blocks.push(Block::Text(Sentence { tone, text: against.answer.clone() }));
    }
    blocks.extend(differences(against, level));
    blocks.extend(points(of, against, level));
    if !against.refused.is_empty() {
        let line = |(name, why): (&String, &String)| format!("{name}: {why}");
        let all = against.refused.iter().map(|one| line((&one.name, &one.why)));
        let most = if level <= Level::Trials { SHOWN } else { usize::MAX };
        let mut list: Vec<String> = all.take(most).collect();
        if list.len() < against.refused.len() {
            list.push(format!("{} more", against.refused.len() - list.len()));
        }
        blocks.push(Block::section("Not compared", vec![Block::List(list)]));
    }
    blocks
}

/// What differs between the two sides besides their figures.
fn differences(against: &Against, level: Level) -> Option<Block> {
    let heads = ["what differs", "before", "after"].map(Head::words);
    let mut table = Table::new(String::new(), heads);
    let most = if level <= Level::Trials { FACTS } else { usize::MAX };
    for one in against.differences.iter().take(most) {
        table.row([&one.name, &one.before, &one.after].map(Entry::words));
    }
    let hidden = against.differences.len().saturating_sub(most);
    if 0 < hidden {
        table.row([Entry::words(format!("{hidden} more"))]);
    }
    // What differs in the loads is that of their points.
    let mut loads: Vec<&String> = against.points.iter().flat_map(|one| &one.differs).collect();
    loads.sort();
    loads.dedup();
    for text in loads {
        let (name, values) = text.split_once(": ").unwrap_or(("load", text));
        let (before, after) = values.split_once(", against ").unwrap_or((values, ""));
        table.row([name, before, after].map(Entry::words));
    }
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// The figures of the points.
fn points(of: &Comparison, against: &Against, level: Level) -> Vec<Block> {
    let all = &against.points;
    if all.is_empty() {
        return Vec::new();
    }
    let heads = ["before", "after"].map(Head::figures);
    let heads = [Head::words("figure")].into_iter().chain(heads);
    let words = ["difference", "answer"].map(Head::words);
    let mut table = Table::new(String::new(), heads.chain(words));
    let mut shown: Vec<&ComparedPoint> = all.iter().collect();
    if level != Level::Full && is_long(against) {
        // Those with a difference, then the others, the largest first.
        shown.sort_by(|one, other| {
            rank(other.outcome).cmp(&rank(one.outcome)).then(size(other).total_cmp(&size(one)))
        });
        shown.truncate(SHOWN);
    }
    for point in &shown {
        if 1 < all.len() {
            table.group(format!("{}: {}", point.name, point.outcome.word(of.margin)));
        }
        point.figures.iter().for_each(|one| row(&mut table, one));
    }
    let mut blocks = vec![Block::Table(table)];
    let hidden = all.len() - shown.len();
    if 0 < hidden {
        let place = if level == Level::Complete { "all are below" } else { "--details shows them" };
        let more = count(hidden as u64);
        blocks
            .push(Block::quiet(format!("{more} more points without a larger difference; {place}")));
    }
    blocks.extend(trials(all).map(Block::quiet));
    blocks
}

/// The largest difference of a point, as a logarithm.
fn size(point: &ComparedPoint) -> f64 {
    let ratios = point.figures.iter().filter_map(|one| one.ratio);
    ratios.map(|ratio| ratio.value.ln().abs()).fold(0.0, f64::max)
}

fn is_long(against: &Against) -> bool {
    SHOWN < against.points.len()
}

fn rank(outcome: Standing) -> u8 {
    match outcome {
        Standing::Slower | Standing::Mixed => 3,
        Standing::Faster => 2,
        Standing::Undecided | Standing::OneTrial => 1,
        Standing::Same | Standing::NotComparable => 0,
    }
}

fn row(table: &mut Table, one: &ComparedFigure) {
    let text = |value: Option<f64>| or_unknown(value.map(|value| figure_text(&one.figure, value)));
    let ratio = or_unknown(one.ratio.map(|ratio| ratio.change().signed()));
    let word = match (one.outcome, one.could_have_seen) {
        // The margin is below the table, once.
        (Standing::Same, _) => "no difference".to_owned(),
        (Standing::Undecided, Some(seen)) => {
            format!("undecided: could have seen {}", distance(seen))
        }
        (outcome, _) => outcome.word(0.0),
    };
    let tone = match one.outcome {
        Standing::Slower => Tone::Bad,
        Standing::Faster => Tone::Good,
        _ => Tone::Plain,
    };
    table.toned(
        tone,
        [
            Entry::words(figure_in_words(&one.figure)),
            Entry::figure(text(one.before)),
            Entry::figure(text(one.after)),
            Entry::words(ratio),
            Entry::words(word),
        ],
    );
}

/// How many trials are behind the figures, and which do not count.
fn trials(points: &[ComparedPoint]) -> Option<String> {
    let range = |side: usize| {
        let all = points.iter().map(|point| point.trials[side]);
        let (least, most) = (all.clone().min()?, all.max()?);
        Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
    };
    let (before, after) = (range(0)?, range(1)?);
    let mut text = format!("trials of each point: {before} before, {after} after");
    let void: u32 = points.iter().flat_map(|one| &one.void).map(|all| all.len() as u32).sum();
    let suspect: u32 = points.iter().flat_map(|one| one.suspect).sum();
    if 0 < void {
        text += &format!("; {void} void trials do not count");
    }
    if 0 < suspect {
        text += &format!("; {suspect} of those that count are suspect");
    }
    Some(text)
}

/// What the intervals mean; none if there is none.
fn method(of: &Comparison) -> Option<String> {
    let points = || of.against.iter().flat_map(|one| &one.points);
    if points().all(|one| [Standing::OneTrial, Standing::NotComparable].contains(&one.outcome)) {
        let why = "There are no intervals: with one trial on a side nothing shows how much trials differ.";
        return points().next().map(|_| why.to_owned());
    }
    let figures: usize = points().map(|one| one.figures.len()).sum();
    let margin = percent(of.margin);
    let confidence = percent(of.confidence);
    let design = match of.design {
        DesignName::Paired => {
            "Each trial is compared with its partner of the same pass, so that a drift of the target \
             is in both."
        }
        DesignName::Separate => {
            "The sides were measured separately: what changed between them is part of the difference."
        }
    };
    let intervals = match figures {
        1 => "The interval counts the scatter between trials, and holds".to_owned(),
        _ => format!(
            "The intervals count the scatter between trials, and hold for all {figures} figures together"
        ),
    };
    Some(format!(
        "{design} {intervals} in {confidence} of comparisons. No difference: the interval lies within \
         {margin}. Slower or faster: it lies on one side of zero, and not within {margin}. Undecided: \
         neither; could see is the difference that 9 of 10 such comparisons would find."
    ))
}
