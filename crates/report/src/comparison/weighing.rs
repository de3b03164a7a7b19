//! A matched point, weighed: its figures on both sides and what is known of their difference.

use fathom_core::Quantile;
use fathom_core::Span;
use fathom_core::measure::Flow;
use fathom_core::stats::Ratio;
use fathom_core::stats::{
    Decision, Design, Difference, Figure, Outcome as Decided, Sample, difference,
};

use super::matching::{MeasuredPlace, Pair, ToldFigures};
use super::model::{ComparedFigure, ComparedPoint, KnownRatio, Standing};
use super::words;
use crate::document::{Job, JobFlow, Trial, Verdict};

/// A matched point with the distributions of its sides.
#[derive(Debug)]
pub struct ComparedPair<'a> {
    /// The point.
    pub pair: Pair<'a>,
    /// All I/Os of the trials that count, of each side; none where another program measured.
    pub flows: [Option<Flow>; 2],
    /// The ratio of each pair of trials by the first figure, in their order; empty unless they are
    /// pairs of one session.
    pub pair_ratios: Vec<Option<f64>>,
}

/// A matched point with what is known of each of its figures.
#[derive(Debug)]
pub struct Weighed<'a> {
    /// The point.
    pub compared: ComparedPair<'a>,
    /// Its figures.
    figures: Vec<Weight>,
}

/// A figure on both sides, and what is known of their difference.
#[derive(Clone, Debug)]
struct Weight {
    figure: Figure,
    before: Option<f64>,
    after: Option<f64>,
    difference: Option<Difference>,
}

impl<'a> Weighed<'a> {
    /// Weighs a point by these figures. Each side is all of its trials, or the I/Os of one target.
    pub fn of(
        mut pair: Pair<'a>,
        parts: [Option<u32>; 2],
        design: Design,
        figures: &[Figure],
    ) -> Self {
        if design == Design::Paired {
            keep_pairs(&mut pair);
        }
        let samples =
            [samples(&pair.before.trials, parts[0]), samples(&pair.after.trials, parts[1])];
        let refs: [Vec<&Sample>; 2] = [samples[0].iter().collect(), samples[1].iter().collect()];
        let weigh = |&figure: &Figure| {
            let told = |one: &MeasuredPlace<'_>| told(one.told?, figure);
            let known = difference(figure, &refs[0], &refs[1], design);
            Weight {
                figure,
                before: known.a.or_else(|| told(&pair.before)),
                after: known.b.or_else(|| told(&pair.after)),
                difference: known.difference,
            }
        };
        let figures: Vec<Weight> = figures.iter().map(weigh).collect();
        let pair_ratios = match (design, figures.first()) {
            (Design::Paired, Some(first)) => ratios(&refs, first.figure),
            _ => Vec::new(),
        };
        let flows = refs.map(|all| together(&all));
        Self { compared: ComparedPair { pair, flows, pair_ratios }, figures }
    }

    /// What is known of each figure.
    pub fn differences(&self) -> impl Iterator<Item = Option<Difference>> {
        self.figures.iter().map(|one| one.difference.clone())
    }

    /// What is known of one figure.
    pub fn difference(&self, figure: Figure) -> Option<&Difference> {
        self.figures.iter().find(|one| one.figure == figure)?.difference.as_ref()
    }

    /// The point with a decision for each of its figures, which are the next ones.
    pub fn point(&self, decisions: &mut impl Iterator<Item = Option<Decision>>) -> ComparedPoint {
        let figures: Vec<ComparedFigure> = self
            .figures
            .iter()
            .zip(decisions)
            .map(|(one, decision)| one.decided(decision))
            .collect();
        let Pair { name, before, after, differs } = &self.compared.pair;
        let void = |one: &MeasuredPlace<'_>| one.void.iter().map(|number| *number as u32).collect();
        ComparedPoint {
            name: name.clone(),
            outcome: words::together(figures.iter().map(|one| one.outcome)),
            trials: [before.count() as u32, after.count() as u32],
            void: [void(before), void(after)],
            suspect: [suspect(before), suspect(after)],
            differs: differs.clone(),
            figures,
        }
    }
}

impl Weight {
    fn decided(&self, decision: Option<Decision>) -> ComparedFigure {
        let ratio = match (self.before, self.after) {
            (Some(before), Some(after)) if 0.0 < before && after.is_finite() => {
                Some(after / before)
            }
            _ => None,
        };
        let (could_have_seen, more_trials) = match decision.map(|it| it.outcome) {
            Some(Decided::Undecided { could_have_seen, more_trials }) => {
                (could_have_seen, more_trials)
            }
            _ => (None, None),
        };
        let more_is_better = self.figure.more_is_better();
        let outcome = match decision.map(|it| it.outcome) {
            _ if ratio.is_none() => Standing::NotComparable,
            // Another program's figures are those of one trial.
            None => Standing::OneTrial,
            Some(Decided::Less) if more_is_better => Standing::Slower,
            Some(Decided::More) if more_is_better => Standing::Faster,
            Some(Decided::Less) => Standing::Faster,
            Some(Decided::More) => Standing::Slower,
            Some(Decided::Same) => Standing::Same,
            Some(Decided::Undecided { .. }) => Standing::Undecided,
            Some(Decided::OneTrial) => Standing::OneTrial,
        };
        let end = |of: fn(Ratio) -> f64| {
            decision.map(|it| of(it.ratio)).filter(|end| end.is_finite() && 0.0 < *end)
        };
        let known = |value| KnownRatio { value, low: end(|it| it.low), high: end(|it| it.high) };
        ComparedFigure {
            figure: self.figure.key(),
            before: self.before,
            after: self.after,
            ratio: ratio.map(known),
            outcome,
            could_have_seen,
            more_trials,
        }
    }
}

fn suspect(one: &MeasuredPlace<'_>) -> u32 {
    let of = |trial: &Trial| trial.verdict_on_result() == Verdict::Suspect;
    one.trials.iter().filter(|(_, trial)| of(trial)).count() as u32
}

/// Leaves the trials that have a partner: the one of the same pass on the other side.
fn keep_pairs(pair: &mut Pair<'_>) {
    let repeats = |trials: &[(usize, &Trial)]| -> Vec<u32> {
        trials.iter().map(|(_, trial)| trial.place.repeat).collect()
    };
    let (own, others) = (repeats(&pair.before.trials), repeats(&pair.after.trials));
    pair.before.trials.retain(|(_, trial)| others.contains(&trial.place.repeat));
    pair.after.trials.retain(|(_, trial)| own.contains(&trial.place.repeat));
    pair.before.trials.sort_by_key(|(_, trial)| trial.place.repeat);
    pair.after.trials.sort_by_key(|(_, trial)| trial.place.repeat);
}

fn samples(trials: &[(usize, &Trial)], target: Option<u32>) -> Vec<Sample> {
    trials.iter().map(|(_, trial)| sample(trial, target)).collect()
}

/// What a comparison keeps of a trial, or of one target in it. CPU time is known of all targets together
/// alone.
fn sample(trial: &Trial, target: Option<u32>) -> Sample {
    let flow = trial.flow(None, |_, cell| target.is_none_or(|wanted| cell.target == wanted));
    let cpu = trial.counters.as_ref().filter(|_| target.is_none()).map(|counters| {
        let own = counters.process_user_ns + counters.process_kernel_ns;
        let kernels = counters.io_wq.and_then(|threads| threads.cpu_ns).unwrap_or(0);
        Span(own + kernels)
    });
    Sample { flow, window: trial.window(), cpu }
}

fn together(samples: &[&Sample]) -> Option<Flow> {
    let first = samples.first()?;
    let mut sum = first.flow.clone();
    samples[1..].iter().for_each(|one| sum.merge(&one.flow));
    Some(sum)
}

/// The ratio of each pair of trials.
fn ratios(samples: &[Vec<&Sample>; 2], figure: Figure) -> Vec<Option<f64>> {
    let both = samples[0].iter().zip(&samples[1]);
    let ratio = |(before, after): (&&Sample, &&Sample)| {
        let (before, after) = (figure.of(&[*before])?, figure.of(&[*after])?);
        (0.0 < before).then(|| after / before)
    };
    both.map(ratio).collect()
}

/// A figure that another program told.
fn told(told: ToldFigures<'_>, figure: Figure) -> Option<f64> {
    match (told, figure) {
        (ToldFigures::Cell(cell, quantiles), Figure::Quantile(wanted)) => {
            let place = quantiles.iter().position(|one| is_same(*one, wanted))?;
            cell.response_time_ns.get(place).copied().flatten().map(|one| one.value)
        }
        (ToldFigures::Cell(..), _) => None,
        (ToldFigures::Job(job), figure) => of_job(job, figure),
    }
}

fn is_same(one: Quantile, other: Quantile) -> bool {
    (one.0 - other.0).abs() < 1e-9
}

/// A figure of a job: rates of both directions together, and times of its only direction. Times of two
/// directions cannot be put together, because their distributions are not known.
fn of_job(job: &Job, figure: Figure) -> Option<f64> {
    let sum = |of: fn(&JobFlow) -> Option<f64>| -> Option<f64> {
        let each: Option<Vec<f64>> = job.flows.iter().map(of).collect();
        each.filter(|each| !each.is_empty()).map(|each| each.iter().sum())
    };
    let only = || match job.flows.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    match figure {
        Figure::Iops => sum(|flow| flow.iops),
        Figure::Bandwidth => sum(|flow| flow.bandwidth_bytes),
        Figure::Mean => only()?.service_time.mean_ns,
        Figure::Quantile(quantile) => only()?.service_time.at(quantile),
        Figure::CpuPerIo => None,
    }
}
