//! The sides of a comparison: files, the values of an axis in one session, or targets under one load.

use fathom_core::stats::Design;

use super::matching::{Match, Matched, MeasuredPlace, Pair, matched, measured};
use super::model::{RefusedPoint, Side};
use crate::document::{Command, Document, Ended, Found};
use crate::figures;

/// The sides of a comparison, matched, before anything is computed.
#[derive(Debug)]
pub struct Sides<'a> {
    /// The sides, the one that the others are compared with first.
    pub sides: Vec<Side>,
    /// The document of each: the same one for all sides of one session.
    pub(super) documents: Vec<&'a Document>,
    /// Each other side against the first.
    pub(super) matched: Vec<Matched<'a>>,
    /// How trials belong together.
    pub(super) design: Design,
    /// The part of each trial that is meant.
    pub(super) part: SidePart,
    /// The share of such comparisons that may find a difference where there is none.
    pub(super) alpha: f64,
}

/// One of twenty.
const ALPHA: f64 = 0.05;

/// The part of its trials that a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SidePart {
    /// All of them.
    Whole,
    /// The I/Os of one target: the side's number is the target's place in the document.
    Target,
}

impl SidePart {
    /// The target of a side; none if all of a trial is meant.
    pub fn of(self, side: usize) -> Option<u32> {
        (self == Self::Target).then_some(side as u32)
    }
}

/// Results with their names and files, the one that the others are compared with first.
pub fn of_files<'a>(files: &[(String, String, &'a Document)], way: Match) -> Sides<'a> {
    let sides = files
        .iter()
        .map(|(name, file, document)| Side {
            file: Some(file.clone()),
            ..side(name.clone(), document)
        })
        .collect();
    let documents: Vec<&Document> = files.iter().map(|(_, _, document)| *document).collect();
    let of = |other: &&'a Document| {
        let first = documents[0];
        let all = matched(measured(first), measured(other), [first, other], way);
        if steps_differ([first, other], &all) { other_steps() } else { all }
    };
    let matched = documents[1..].iter().map(of).collect();
    Sides {
        sides,
        documents,
        matched,
        design: Design::Separate,
        part: SidePart::Whole,
        alpha: ALPHA,
    }
}

/// Whether two maps have steps of their own, so that next to none of their cells are at the same loads.
fn steps_differ(documents: [&Document; 2], all: &Matched<'_>) -> bool {
    let is_map = |document: &&Document| document.header.command == Command::Map;
    documents.iter().all(is_map) && all.pairs.len() < all.refused.len()
}

fn other_steps() -> Matched<'static> {
    let why = "their steps are not at the same loads, because each follows what its target carried: \
               measure both with the same --write-max and --read-max, or compare the first step with \
               the first by --match order";
    let refused = vec![RefusedPoint::of("the maps".to_owned(), why.to_owned())];
    Matched { pairs: Vec::new(), refused }
}

/// The axes of a result by which it can be compared, each with its values.
pub fn axes(document: &Document) -> Vec<(String, Vec<String>)> {
    let mut axes: Vec<(String, Vec<String>)> = Vec::new();
    for one in measured(document).iter().flat_map(|one| &one.coordinates) {
        let known = match axes.iter_mut().find(|(name, _)| *name == one.axis) {
            Some((_, labels)) => labels,
            None => {
                axes.push((one.axis.clone(), Vec::new()));
                &mut axes.last_mut().expect("an axis was just added").1
            }
        };
        if !known.contains(&one.label) {
            known.push(one.label.clone());
        }
    }
    axes.retain(|(_, labels)| 1 < labels.len());
    axes
}

/// The values of an axis of one result against its first value. None if it does not have the axis, or
/// only one value of it.
pub fn by_axis<'a>(document: &'a Document, axis: &str) -> Option<Sides<'a>> {
    let (_, labels) = axes(document).into_iter().find(|(name, _)| name == axis)?;
    let of_label = |label: &str| -> Vec<MeasuredPlace<'a>> {
        let mut all = measured(document);
        all.retain(|one| one.coordinates.iter().any(|at| at.axis == axis && at.label == label));
        for one in &mut all {
            one.coordinates.retain(|at| at.axis != axis);
            one.name = match one.coordinates.is_empty() {
                true => format!("{axis} {label}"),
                false => one.place_name(),
            };
        }
        all
    };
    let against = |label: &String| {
        let mut others = of_label(label);
        let mut all = Matched::default();
        for before in of_label(&labels[0]) {
            let same = |other: &MeasuredPlace<'_>| before.is_at_the_place_of(other);
            match others.iter().position(same) {
                Some(place) => all.add_as_is(before, others.remove(place)),
                None => {
                    let why = format!("it was not measured at {axis} {label}");
                    all.refused.push(RefusedPoint::of(before.name, why));
                }
            }
        }
        let first = &labels[0];
        let why = || format!("it was not measured at {axis} {first}");
        let only = |other: MeasuredPlace<'_>| RefusedPoint {
            is_expected: false,
            ..RefusedPoint::of(other.name, why())
        };
        all.refused.extend(others.into_iter().map(only));
        all
    };
    let matched = labels[1..].iter().map(against).collect();
    let sides = labels.iter().map(|label| side(format!("{axis} {label}"), document)).collect();
    let documents = vec![document; labels.len()];
    let found = document.found();
    // A comparison that could have ended at several looks keeps the level of its last one.
    let alpha = match found {
        Some(Found::Ab(found)) => found.level,
        _ => ALPHA,
    };
    Some(Sides { sides, documents, matched, design: Design::Paired, part: SidePart::Whole, alpha })
}

/// The targets of one result, which had their load at the same time, against the first. None if there
/// is only one.
pub fn by_target(document: &Document) -> Option<Sides<'_>> {
    let targets = &document.header.targets;
    if targets.len() < 2 {
        return None;
    }
    let with_itself = || {
        let mut all = Matched::default();
        for before in measured(document) {
            let after = before.clone();
            all.add_as_is(before, after);
        }
        all
    };
    let matched = targets[1..].iter().map(|_| with_itself()).collect();
    let sides = (0..targets.len())
        .map(|place| Side {
            targets: vec![targets[place].path.clone()],
            ..side(figures::place_name(&targets[place]).to_owned(), document)
        })
        .collect();
    let documents = vec![document; targets.len()];
    Some(Sides {
        sides,
        documents,
        matched,
        design: Design::Paired,
        part: SidePart::Target,
        alpha: ALPHA,
    })
}

fn side(name: String, document: &Document) -> Side {
    let mut doubts = Vec::new();
    if document.torn {
        doubts.push("its last line is torn and was left out".to_owned());
    }
    match document.conclusion.as_ref().map(|last| last.ended) {
        Some(Ended::Completed) => {}
        Some(Ended::Interrupted) => doubts.push("it was interrupted".to_owned()),
        Some(Ended::Failed) => doubts.push("it failed before its end".to_owned()),
        None => doubts.push("it was cut off, or still goes on".to_owned()),
    }
    let found = document.found();
    if matches!(found, Some(Found::Sustain(found)) if found.steady_from.is_none()) {
        doubts.push("it has no steady state: all its rounds count".to_owned());
    }
    Side {
        name,
        file: None,
        command: document.header.command,
        created: document.header.created.clone(),
        targets: figures::place_names(document).into_iter().map(ToOwned::to_owned).collect(),
        doubts,
    }
}

impl<'a> Matched<'a> {
    /// Adds two places of one session, whose difference is the question.
    fn add_as_is(&mut self, before: MeasuredPlace<'a>, after: MeasuredPlace<'a>) {
        let name = after.name.clone();
        if before.count() == 0 || after.count() == 0 {
            let why = "all its trials of a side are void".to_owned();
            self.refused.push(RefusedPoint::of(name, why));
            return;
        }
        self.pairs.push(Pair { name, before, after, differs: Vec::new() });
    }
}
