//! Comparisons: two or more sides, point by point, each figure with its ratio, its interval and an
//! answer in a word. The method is in docs/method/comparison.md; the statistics are core's.

mod facts;
mod junit;
mod matching;
mod model;
mod requirement;
mod sides;
mod weighing;
mod words;

pub(crate) use facts::Identity;
pub use facts::{FactDifference, FactWeight, differences, header_differences};
pub use junit::junit;
pub use matching::{Match, MeasuredPlace, Pair, ToldFigures};
pub use model::{
    Against, COMPARISON_VERSION, ComparedFigure, ComparedPoint, Comparison, DesignName, KnownRatio,
    RefusedPoint, RequirementOutcome, Side, Standing, comparison_schema,
};
pub use requirement::Requirement;
pub use sides::{Sides, axes, by_axis, by_target, of_files};
pub use weighing::ComparedPair;

use fathom_core::stats::{Criterion, Design, Difference, Figure, decide};

use weighing::Weighed;

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Question {
    /// The figures. Those of the requirements are among them.
    pub figures: Vec<Figure>,
    /// The difference, as a share above 0, that does not matter.
    pub margin: f64,
    /// The conditions that fail it.
    pub requirements: Vec<Requirement>,
}

/// A comparison with what it was made of, for charts.
#[derive(Debug)]
pub struct Compared<'a> {
    /// The comparison.
    pub comparison: Comparison,
    /// The matched points of each other side, in the order of `comparison.against`.
    pub pairs: Vec<Vec<ComparedPair<'a>>>,
}

/// Compares the sides.
pub fn compare<'a>(sides: Sides<'a>, question: &Question) -> Compared<'a> {
    let Sides { sides, documents, matched, design, part, alpha } = sides;
    let mut weighed: Vec<Vec<Weighed<'a>>> = Vec::new();
    let mut refused: Vec<Vec<RefusedPoint>> = Vec::new();
    for (nth, matched) in matched.into_iter().enumerate() {
        let parts = [part.of(0), part.of(nth + 1)];
        let weigh = |pair| Weighed::of(pair, parts, design, &question.figures);
        weighed.push(matched.pairs.into_iter().map(weigh).collect());
        refused.push(matched.refused);
    }
    let requirements = requirement::judge(question, &sides, &weighed, alpha);
    // All figures of all points are one family: each is a chance of a false alarm.
    let family: Vec<Option<Difference>> =
        weighed.iter().flatten().flat_map(Weighed::differences).collect();
    let criterion = Criterion { margin: question.margin, alpha };
    let mut decisions = decide(&family, criterion).into_iter();
    let mut against = Vec::new();
    for (side, (weighed, refused)) in (1..).zip(weighed.iter().zip(refused)) {
        let points: Vec<ComparedPoint> =
            weighed.iter().map(|one| one.point(&mut decisions)).collect();
        let names = [&*sides[0].name, &*sides[side].name];
        let differences = match documents[0].header == documents[side].header {
            true => Vec::new(),
            false => differences(documents[0], documents[side]),
        };
        against.push(Against {
            side: side as u32,
            answer: words::answer(&points, &refused, names, question.margin),
            outcome: words::together(points.iter().map(|point| point.outcome)),
            differences,
            points,
            refused,
        });
    }
    let outcome = against.iter().map(|one| one.outcome).max().unwrap_or(Standing::NotComparable);
    let answer = words::whole(&against, &sides, &requirements, question.margin);
    let design = match design {
        Design::Paired => DesignName::Paired,
        Design::Separate => DesignName::Separate,
    };
    let (margin, confidence) = (question.margin, 1.0 - alpha);
    let comparison_version = COMPARISON_VERSION;
    let comparison = Comparison {
        comparison_version,
        answer,
        outcome,
        margin,
        confidence,
        design,
        sides,
        against,
        requirements,
    };
    let pairs = weighed.into_iter().map(|all| all.into_iter().map(|one| one.compared).collect());
    Compared { comparison, pairs: pairs.collect() }
}
