//! The answers of a comparison in words.

use fathom_core::differences::{RatioInWords, distance, figure_in_words, told};
use fathom_core::facts::Answer;
use fathom_core::figures::percent;
use fathom_core::stats::Ratio;

use super::model::{
    Against, ComparedFigure, ComparedPoint, RefusedPoint, RequirementOutcome, Side, Standing,
};

/// "p99 12 % longer (9 to 15 %)".
fn of_figure(figure: &ComparedFigure) -> Option<String> {
    let ratio = figure.ratio?;
    Some(format!("{} {}", figure_in_words(&figure.figure), ratio.change().of(&figure.figure)))
}

/// The outcome of several.
pub fn together(outcomes: impl Iterator<Item = Standing>) -> Standing {
    let all: Vec<Standing> = outcomes.filter(|one| *one != Standing::NotComparable).collect();
    let any = |wanted: &[Standing]| all.iter().any(|one| wanted.contains(one));
    let slower = any(&[Standing::Slower, Standing::Mixed]);
    let faster = any(&[Standing::Faster, Standing::Mixed]);
    match (slower, faster) {
        _ if all.is_empty() => Standing::NotComparable,
        (true, true) => Standing::Mixed,
        (true, false) => Standing::Slower,
        (false, true) => Standing::Faster,
        _ if all.iter().all(|one| *one == Standing::OneTrial) => Standing::OneTrial,
        _ if any(&[Standing::Undecided, Standing::OneTrial]) => Standing::Undecided,
        _ => Standing::Same,
    }
}

/// The answer of a side, "after", against the first one, "before".
pub fn answer(
    points: &[ComparedPoint],
    refused: &[RefusedPoint],
    names: [&str; 2],
    margin: f64,
) -> String {
    let [before, after] = names;
    let not_compared = match refused {
        [] => String::new(),
        [one] => format!("; not compared: {}, because {}", one.name, one.why),
        [first, rest @ ..] => format!(
            "; {} points are not compared: {}, because {}, and {} more",
            refused.len(),
            first.name,
            first.why,
            rest.len()
        ),
    };
    match points {
        [] => match refused.first() {
            None => format!("{before} and {after} cannot be compared: they have no results"),
            Some(first) => {
                let more = match refused.len() {
                    1 => String::new(),
                    several => format!(" (and {} more)", several - 1),
                };
                format!(
                    "{before} and {after} cannot be compared: {}: {}{more}",
                    first.name, first.why
                )
            }
        },
        [only] => format!("{}{not_compared}", of_point(only, names, margin)),
        all => format!("{}{not_compared}", of_points(all, names, margin)),
    }
}

/// The answer of a single point.
fn of_point(point: &ComparedPoint, [before, after]: [&str; 2], margin: f64) -> String {
    let of = |wanted: Standing| point.figures.iter().filter(move |one| one.outcome == wanted);
    let list = |wanted: Standing| -> String {
        let all: Vec<&ComparedFigure> = of(wanted).collect();
        let (told, others) = told(&all, |one| &one.figure);
        let told = told.into_iter().filter_map(of_figure).collect::<Vec<_>>().join(", ");
        others.map_or(told.clone(), |others| format!("{told}; {others} too"))
    };
    let names = |wanted: Standing| -> Vec<String> {
        of(wanted).map(|one| figure_in_words(&one.figure).to_owned()).collect()
    };
    let (slower, faster) = (list(Standing::Slower), list(Standing::Faster));
    let (same, undecided) = (names(Standing::Same), names(Standing::Undecided));
    let within = Standing::Same.word(margin);
    let mut parts = Vec::new();
    match point.outcome {
        Standing::Slower => {
            parts.push(format!("{after} is slower than {before}: {slower}"));
        }
        Standing::Faster => {
            parts.push(format!("{after} is faster than {before}: {faster}"));
        }
        Standing::Mixed => parts.push(format!(
            "{after} is slower than {before} in some figures and faster in others: {slower}; \
             {faster}"
        )),
        Standing::OneTrial => {
            let all: Vec<&ComparedFigure> = of(Standing::OneTrial).collect();
            // The others may differ by more or less.
            let (told, _) = told(&all, |one| &one.figure);
            let told = told.into_iter().filter_map(of_figure).collect::<Vec<_>>().join(", ");
            return format!(
                "{after} against {before}: {told}; one trial on a side cannot decide: measure both with \
                 --repeats 10"
            );
        }
        Standing::Same => {
            return format!("{after} and {before}: {within} in {}", same.join(", "));
        }
        Standing::Undecided => {
            let all = list(Standing::Undecided);
            parts.push(format!("{after} against {before} is undecided: {all}{}", needed(point)));
        }
        Standing::NotComparable => {
            return format!("{after} and {before} have no figure in common");
        }
    }
    if !same.is_empty() {
        parts.push(format!("{within} in {}", same.join(", ")));
    }
    if point.outcome != Standing::Undecided && !undecided.is_empty() {
        parts.push(format!("undecided in {}", undecided.join(", ")));
    }
    parts.join("; ")
}

/// "; a difference of 8 % in p99 would have been seen, and about 12 more trials on each side would
/// decide", of the figure that could hide most.
fn needed(point: &ComparedPoint) -> String {
    let all = point.figures.iter();
    let seen = all
        .filter_map(|one| Some((one.could_have_seen?, figure_in_words(&one.figure))))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let more = point.figures.iter().filter_map(|one| one.more_trials).max();
    let seen = seen.map(|(share, figure)| {
        format!("a difference of {} in {figure} would have been seen", distance(share))
    });
    let more = more.map(|trials| match trials {
        1 => "one more trial on each side would probably decide".to_owned(),
        several => format!("about {several} more trials on each side would decide"),
    });
    let both: Vec<String> = seen.into_iter().chain(more).collect();
    if both.is_empty() { String::new() } else { format!("; {}", both.join(", and ")) }
}

/// The answer of several points.
fn of_points(points: &[ComparedPoint], [before, after]: [&str; 2], margin: f64) -> String {
    let count =
        |wanted: &[Standing]| points.iter().filter(|one| wanted.contains(&one.outcome)).count();
    let total = points.len();
    if count(&[Standing::OneTrial]) == total {
        return one_trial(points, [before, after]);
    }
    let mut parts = Vec::new();
    let slower = count(&[Standing::Slower, Standing::Mixed]);
    if 0 < slower {
        let most = most_at(points, Standing::Slower);
        parts.push(format!("slower than {before} at {slower} of {total} points{most}"));
    }
    let faster = count(&[Standing::Faster, Standing::Mixed]);
    if 0 < faster {
        let most = most_at(points, Standing::Faster);
        let than = if slower == 0 { format!("faster than {before}") } else { "faster".to_owned() };
        parts.push(format!("{than} at {faster} of {total}{most}"));
    }
    let mut is_first = parts.is_empty();
    let within = Standing::Same.word(margin);
    let rest = [
        (within.as_str(), count(&[Standing::Same])),
        ("undecided", count(&[Standing::Undecided])),
        ("one trial, which cannot decide,", count(&[Standing::OneTrial])),
        ("no figure in common", count(&[Standing::NotComparable])),
    ];
    for (words, number) in rest.into_iter().filter(|(_, number)| 0 < *number) {
        parts.push(match std::mem::take(&mut is_first) {
            true if number == total => format!("{words} at all {total} points"),
            true => format!("{words} at {number} of {total} points"),
            false => format!("{words} at {number}"),
        });
    }
    match slower + faster {
        0 => format!("{after} against {before}: {}", parts.join("; ")),
        _ => format!("{after} is {}", parts.join("; ")),
    }
}

/// The largest difference with one of these outcomes.
fn largest<'p>(
    points: &'p [ComparedPoint],
    wanted: &[Standing],
) -> Option<(&'p ComparedPoint, &'p ComparedFigure)> {
    let all = points.iter().flat_map(|point| point.figures.iter().map(move |one| (point, one)));
    let decided = all.filter(|(_, one)| wanted.contains(&one.outcome));
    decided.max_by(|one, other| size(one.1).total_cmp(&size(other.1)))
}

/// The same of several sides.
fn largest_of<'p>(
    against: &'p [Against],
    wanted: &[Standing],
) -> Option<(&'p Against, &'p ComparedPoint, &'p ComparedFigure)> {
    let all = against.iter().filter_map(|one| {
        let (point, figure) = largest(&one.points, wanted)?;
        Some((one, point, figure))
    });
    all.max_by(|one, other| size(one.2).total_cmp(&size(other.2)))
}

/// How large a difference is, as a logarithm.
fn size(figure: &ComparedFigure) -> f64 {
    figure.ratio.map_or(0.0, |it| it.value.ln().abs())
}

/// ", most at queue-depth 8: p99 12 % longer (9 to 15 %)": the largest difference with this outcome.
fn most_at(points: &[ComparedPoint], wanted: Standing) -> String {
    let words = largest(points, &[wanted])
        .and_then(|(point, figure)| Some(format!("{}: {}", point.name, of_figure(figure)?)));
    words.map_or(String::new(), |it| format!(", most at {it}"))
}

/// Many points of one trial each: how their ratios are spread, without a conclusion.
fn one_trial(points: &[ComparedPoint], [before, after]: [&str; 2]) -> String {
    let names = points.first().map(|point| &point.figures).into_iter().flatten();
    let spread = |name: &str| {
        let of = |point: &ComparedPoint| {
            let mut all = point.figures.iter();
            all.find(|one| one.figure == name).and_then(|one| Some(one.ratio?.value))
        };
        let mut all: Vec<f64> = points.iter().filter_map(of).collect();
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all.get(((all.len() as f64 - 1.0) * share).round() as usize).copied();
        let (value, low, high) = (at(0.5)?, at(0.25)?, at(0.75)?);
        let change = RatioInWords::from(Ratio { value, low, high });
        Some(format!("{} {}", figure_in_words(name), change.of(name)))
    };
    let spreads: Vec<String> = names.filter_map(|one| spread(&one.figure)).collect();
    format!(
        "one trial of each point on a side cannot decide: {after} against {before}, over {} points in \
         the median (and half of the points): {}; measure both with repeats",
        points.len(),
        spreads.join(", ")
    )
}

/// "against queue-depth 1, 3 of 6 sides are faster, 3 faster in some figures and slower in others; the
/// largest difference is that of queue-depth 64 at block-size 64k: IOPS 8.00 times as high".
fn of_sides(against: &[Against], sides: &[Side], margin: f64) -> String {
    let none = format!("without a difference beyond {}", percent(margin));
    let words = [
        (Standing::Slower, "slower"),
        (Standing::Mixed, "faster in some figures and slower in others"),
        (Standing::Faster, "faster"),
        (Standing::Undecided, "undecided"),
        (Standing::OneTrial, "undecided with one trial"),
        (Standing::Same, none.as_str()),
        (Standing::NotComparable, "not comparable"),
    ];
    let mut parts = Vec::new();
    for (wanted, word) in words {
        let count = against.iter().filter(|one| one.outcome == wanted).count();
        let verb = if count == 1 { "is" } else { "are" };
        match (count, parts.is_empty()) {
            (0, _) => {}
            (_, true) => parts.push(format!("{count} of {} sides {verb} {word}", against.len())),
            (_, false) => parts.push(format!("{count} {verb} {word}")),
        }
    }
    let most = largest_of(against, &[Standing::Slower, Standing::Faster]).map(|most| (most, ""));
    let most = most.or_else(|| {
        let open = largest_of(against, &[Standing::Undecided, Standing::OneTrial])?;
        Some((open, "measured "))
    });
    let most = most.and_then(|((one, point, figure), measured)| {
        let at = if 1 < one.points.len() { format!(" at {}", point.name) } else { String::new() };
        let name = &sides[one.side as usize].name;
        let words = of_figure(figure)?;
        Some(format!("; the largest {measured}difference is that of {name}{at}: {words}"))
    });
    let advice = match against.iter().all(|one| one.outcome == Standing::OneTrial) {
        true => "; measure all with --repeats 10",
        false => "",
    };
    let first = &sides[0].name;
    format!("against {first}, {}{}{advice}", parts.join(", "), most.unwrap_or_default())
}

/// The answer of the whole comparison: of several sides it has their number for each answer.
pub fn whole(
    against: &[Against],
    sides: &[Side],
    requirements: &[RequirementOutcome],
    margin: f64,
) -> String {
    let of = |wanted: Answer| requirements.iter().filter(move |one| one.holds == wanted);
    let failed = of(Answer::Yes).map(|one| format!("fails {}", one.text));
    let open = of(Answer::Unknown).map(|one| format!("undecided: {}", one.text));
    let passed = match requirements {
        [_, ..] if requirements.iter().all(|one| one.holds == Answer::No) => {
            Some("passes all conditions".to_owned())
        }
        _ => None,
    };
    let said = match against {
        [only] => only.answer.clone(),
        several => of_sides(several, sides, margin),
    };
    failed.chain(open).chain(passed).chain([said]).collect::<Vec<_>>().join("; ")
}

/// A point in words: its answer in a word, and its figures.
pub fn point_in_words(point: &ComparedPoint, margin: f64) -> String {
    let figures: Vec<String> = point.figures.iter().filter_map(of_figure).collect();
    format!("{}: {}", point.outcome.word(margin), figures.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::KnownRatio;

    #[test]
    fn several_sides_have_one_sentence_with_their_numbers_and_the_largest_difference() {
        let point = |name: &str, outcome, value: f64| ComparedPoint {
            name: name.to_owned(),
            outcome,
            trials: [3, 3],
            void: [Vec::new(), Vec::new()],
            suspect: [0, 0],
            differs: Vec::new(),
            figures: Vec::from([ComparedFigure {
                figure: "p99".to_owned(),
                before: None,
                after: None,
                ratio: Some(KnownRatio { value, low: Some(value), high: Some(value) }),
                outcome,
                could_have_seen: None,
                more_trials: None,
            }]),
        };
        let side = |nth: u32| Side {
            name: format!("queue-depth {}", 1 << nth),
            file: None,
            command: crate::document::Command::Sweep,
            created: String::new(),
            targets: Vec::new(),
            doubts: Vec::new(),
        };
        let sides: Vec<Side> = (0..5).map(side).collect();
        let against = |nth: u32, outcome, slower: f64| Against {
            side: nth,
            answer: String::new(),
            outcome,
            differences: Vec::new(),
            points: Vec::from([point("4k", outcome, 1.0), point("64k", outcome, slower)]),
            refused: Vec::new(),
        };
        let all = [
            against(1, Standing::Same, 1.0),
            against(2, Standing::Slower, 2.0),
            against(3, Standing::Slower, 4.0),
            against(4, Standing::Undecided, 9.0),
        ];
        assert_eq!(
            whole(&all, &sides, &[], 0.05),
            "against queue-depth 1, 2 of 4 sides are slower, 1 is undecided, 1 is without a difference \
             beyond 5 %; the largest difference is that of queue-depth 8 at 64k: p99 4.00 times as long"
        );
        let all = [1, 2].map(|nth| against(nth, Standing::OneTrial, 2.0));
        assert_eq!(
            whole(&all, &sides, &[], 0.05),
            "against queue-depth 1, 2 of 2 sides are undecided with one trial; the largest measured \
             difference is that of queue-depth 4 at 64k: p99 2.00 times as long; measure all with \
             --repeats 10"
        );
    }

    #[test]
    fn one_outcome_of_several_says_no_more_than_each_of_them() {
        use Standing::*;
        for (all, expected) in [
            (&[][..], NotComparable),
            (&[NotComparable, NotComparable], NotComparable),
            (&[Same, NotComparable, Same], Same),
            (&[Same, Undecided], Undecided),
            (&[Same, OneTrial], Undecided),
            (&[OneTrial, OneTrial], OneTrial),
            (&[Same, Slower, Undecided], Slower),
            (&[Faster, Undecided], Faster),
            (&[Faster, Slower], Mixed),
            (&[Mixed, Same], Mixed),
        ] {
            assert_eq!(together(all.iter().copied()), expected, "{all:?}");
        }
    }
}
