//! A comparison of two sides that alternate: A B, B A, A B. The trials of a pair run next to each
//! other, and their order changes from pair to pair, so that a drift of the targets is in both.
//!
//! It ends when every figure is decided, or when all pairs have run. The statistics are those of
//! every comparison; the conclusions are in `words`.

mod words;

use super::throughput::Throughput;
use super::{
    AbFound, ComparedFigure, Conclusion, Experiment, Forecast, Foreseen, Found, Planned,
    SideAnswer, Step,
};
use crate::spec::Point;
use crate::stats::{
    Criterion, Decision, Design, Figure, Looks, Outcome, Ratio, Sample, SideBySide, decide,
    difference,
};
use crate::trial::{Coordinate, Place, Role, Trial};
use crate::units::{Quantile, Span};

/// The axis of the two sides.
pub const SIDE: &str = "side";

/// The labels on it.
pub const SIDES: [&str; 2] = ["A", "B"];

/// The first look at the answer: after fewer pairs nearly nothing can be decided at the small level
/// of an early look.
const FIRST_LOOK: u32 = 3;

/// The percentiles that are compared.
const QUANTILES: [Quantile; 3] = [Quantile(0.5), Quantile(0.99), Quantile(0.999)];

/// One of the two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct AbSide {
    /// What people call it: its target, or the words that are its own.
    pub name: String,
    /// Its point. Its seed is that of the experiment: each trial gets its own seed from it.
    pub point: Point,
}

/// The settings of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbSettings {
    /// The largest number of pairs, at least 2.
    pub repeats: u32,
    /// The largest share by which figures may differ and still count as the same: above 0.
    pub margin: f64,
}

/// What is kept of a trial.
#[derive(Clone, Debug)]
struct SideTrial {
    sample: Sample,
    is_void: bool,
}

/// Two sides, and the trials so far.
#[derive(Clone, Debug)]
pub struct Ab {
    sides: [AbSide; 2],
    settings: AbSettings,
    /// What differs between the sides' options, in words; empty if nothing does.
    differs: Vec<String>,
    figures: Vec<Figure>,
    /// The trials of each pair, by side.
    pairs: Vec<[Option<SideTrial>; 2]>,
    done: u32,
    /// Whether a look before the last decided every figure.
    is_clear: bool,
}

/// The decisions in all figures, from the pairs of which both trials count.
struct Decided {
    pairs: u32,
    void: u32,
    level: f64,
    figures: Vec<(Figure, SideBySide, Option<Decision>)>,
}

impl Ab {
    /// A comparison of these sides, between which these options differ.
    ///
    /// # Panics
    ///
    /// With fewer than two pairs or without a margin, which resolving a comparison rules out.
    pub fn new(sides: [AbSide; 2], differs: Vec<String>, settings: AbSettings) -> Self {
        assert!(2 <= settings.repeats && 0.0 < settings.margin, "there is something to compare");
        let throughput = match Throughput::of(sides.iter().map(|side| &side.point)) {
            Throughput::Iops => Figure::Iops,
            Throughput::Bandwidth => Figure::Bandwidth,
        };
        let figures = [throughput, Figure::Mean].into_iter();
        let figures = figures.chain(QUANTILES.map(Figure::Quantile)).chain([Figure::CpuPerIo]);
        Self {
            figures: figures.collect(),
            sides,
            settings,
            differs,
            pairs: Vec::new(),
            done: 0,
            is_clear: false,
        }
    }

    /// The pair and the side at a place of the order: A B, B A, A B and so on.
    fn at(&self, turn: u32) -> Option<(u32, usize)> {
        let (pair, second) = (turn / 2, turn % 2);
        (pair < self.settings.repeats).then_some((pair, ((pair + second) % 2) as usize))
    }

    fn planned(&self, (pair, side): (u32, usize)) -> Planned {
        // Another seed for each trial: the same data could be deduplicated, and the same offsets
        // could be cached.
        let number = u64::from(pair) * 2 + side as u64;
        let AbSide { point, .. } = &self.sides[side];
        let point = Point { seed: point.seed.wrapping_add(number), ..point.clone() };
        let at = Coordinate { axis: SIDE.to_owned(), label: SIDES[side].to_owned(), value: None };
        let place = Place { role: Role::Result, coordinates: Vec::from([at]), repeat: pair };
        Planned { point, place, rest: Span(0) }
    }

    fn take(&mut self, trial: &Trial) {
        let Some((pair, side)) = self.at(self.done) else { return };
        self.pairs.resize_with(pair as usize + 1, || [None, None]);
        let kept = SideTrial { sample: sample(trial), is_void: trial.is_void };
        self.pairs[pair as usize][side] = Some(kept);
        self.done += 1;
        let whole_pair = self.done.is_multiple_of(2);
        if whole_pair && FIRST_LOOK <= self.done / 2 && self.done / 2 < self.settings.repeats {
            self.is_clear = self.decided(self.looks().early()).is_clear();
        }
    }

    /// All looks: from the first one on after each pair.
    fn looks(&self) -> Looks {
        let before = self.settings.repeats.saturating_sub(FIRST_LOOK);
        Looks::new(Criterion::default().alpha, before + 1)
    }

    /// The decisions from the trials so far, at this level. A void trial takes its partner with it,
    /// because what drifted in between would be in one side alone.
    fn decided(&self, level: f64) -> Decided {
        let whole = self.pairs.iter().filter_map(|[a, b]| Some([a.as_ref()?, b.as_ref()?]));
        let (void, counted): (Vec<_>, Vec<_>) =
            whole.partition(|pair| pair.iter().any(|trial| trial.is_void));
        let [a, b]: [Vec<&Sample>; 2] =
            [0, 1].map(|side| counted.iter().map(|pair| &pair[side].sample).collect());
        let sides = self.figures.iter().map(|one| difference(*one, &a, &b, Design::Paired));
        let sides: Vec<SideBySide> = sides.collect();
        let differences: Vec<_> = sides.iter().map(|one| one.difference.clone()).collect();
        let criterion = Criterion { margin: self.settings.margin, alpha: level };
        let decisions = decide(&differences, criterion);
        let figures = self.figures.iter().zip(sides).zip(decisions);
        Decided {
            pairs: counted.len() as u32,
            void: void.len() as u32,
            level,
            figures: figures.map(|((figure, sides), one)| (*figure, sides, one)).collect(),
        }
    }

    /// The decisions that stand: those of the look that ended it, or of the last one.
    fn standing(&self) -> Decided {
        let looks = self.looks();
        self.decided(if self.is_clear { looks.early() } else { looks.last() })
    }

    fn conclusion(&self) -> Conclusion {
        let decided = self.standing();
        let figures = decided.figures.iter().filter_map(compared).collect();
        let found = AbFound {
            sides: self.sides.iter().map(|side| side.name.clone()).collect(),
            differs: self.differs.clone(),
            pairs: decided.pairs,
            void_pairs: decided.void,
            pairs_at_most: self.settings.repeats,
            ended_early: self.is_clear,
            margin: self.settings.margin,
            level: decided.level,
            figures,
        };
        Conclusion { sentences: words::sentences(&found), found: Some(Found::Ab(found)) }
    }
}

impl Decided {
    /// Whether every figure that is known is decided.
    fn is_clear(&self) -> bool {
        let open =
            |outcome: Outcome| matches!(outcome, Outcome::Undecided { .. } | Outcome::OneTrial);
        let mut known = self.figures.iter().filter_map(|(.., one)| *one).peekable();
        known.peek().is_some() && known.all(|one| !open(one.outcome))
    }
}

/// What a comparison keeps of a trial: all streams and both directions.
fn sample(trial: &Trial) -> Sample {
    let record = &trial.record;
    let cpu = record.workers.iter().map(|worker| worker.cpu);
    let cpu: Option<Vec<Span>> = cpu.collect();
    let cpu = cpu.map(|each| each.into_iter().fold(Span(0), |sum, one| sum + one));
    Sample { flow: record.total(None), window: record.window, cpu }
}

/// A figure for the document; none if neither side has it.
fn compared(
    (figure, sides, decision): &(Figure, SideBySide, Option<Decision>),
) -> Option<ComparedFigure> {
    sides.a.or(sides.b)?;
    let outcome = decision.map(|one| one.outcome);
    let (could_have_seen, more_pairs) = match outcome {
        Some(Outcome::Undecided { could_have_seen, more_trials }) => (could_have_seen, more_trials),
        _ => (None, None),
    };
    let better = |more: bool| match more == figure.more_is_better() {
        true => SideAnswer::Better,
        false => SideAnswer::Worse,
    };
    let is_known = |ratio: &Ratio| 0.0 < ratio.low && ratio.high.is_finite();
    Some(ComparedFigure {
        figure: figure.key(),
        a: sides.a,
        b: sides.b,
        ratio: decision.map(|one| one.ratio).filter(is_known),
        answer: match outcome {
            Some(Outcome::More) => better(true),
            Some(Outcome::Less) => better(false),
            Some(Outcome::Same) => SideAnswer::Same,
            Some(Outcome::Undecided { .. } | Outcome::OneTrial) | None => SideAnswer::Undecided,
        },
        could_have_seen,
        more_pairs,
    })
}

impl Experiment for Ab {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            self.take(trial);
        }
        match self.at(self.done) {
            Some(at) if !self.is_clear => Step::Run(Box::new(self.planned(at))),
            _ => Step::Done(self.conclusion()),
        }
    }

    fn foreseen(&self, most: usize) -> Vec<Foreseen> {
        // It may end at each look, and what ran beyond it was for nothing.
        let turns = (self.done + 1..).map_while(|turn| self.at(turn)).take(most);
        let foreseen = |at| Foreseen { planned: self.planned(at), enough: Box::new(|_| false) };
        turns.map(foreseen).collect()
    }

    fn forecast(&self) -> Forecast {
        if self.is_clear {
            return Forecast::default();
        }
        let turns = (self.done..).map_while(|turn| self.at(turn));
        let (points, time) = turns.fold((0, Span(0)), |(points, time), (_, side)| {
            (points + 1, time + self.sides[side].point.time())
        });
        Forecast { points, points_at_most: points, time, time_at_most: time }
    }

    fn so_far(&self) -> Conclusion {
        match self.pairs.is_empty() {
            true => Conclusion::default(),
            false => self.conclusion(),
        }
    }
}

#[cfg(test)]
mod tests;
