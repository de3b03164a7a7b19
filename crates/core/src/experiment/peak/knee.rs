//! The search for the lowest setting that saturates a target, over plain numbers: it decides which
//! setting to probe next, and gives the answer. It never sees a trial.
//!
//! It uses a ladder of settings, each twice the one before. It climbs two rungs at a time until
//! there is no more gain, then probes the rungs beside the best and steps down from it while the
//! throughput is still enough. Then it probes rungs again: first those that contradict themselves
//! or their neighbors, then those that the noise of the probes leaves open, and last those on which
//! the answer depends.
//!
//! Or it climbs the way people do by hand: in small steps from the lowest setting on, without
//! skipping any.

use super::probed::{self, ANOTHER_THING, CERTAIN, Probed, Scatter};
use crate::stats::Ratio;

/// The most probes of a search.
pub const PROBES_MAX: usize = 15;

/// The most probes of a climb by small steps.
const CLIMB_MAX: usize = 40;

/// The most probes of one setting.
pub const REPEATS_MAX: usize = 4;

/// This many steps in a row without a gain end the climb: a single one may be a local plateau.
const IDLE_STEPS: u32 = 2;

/// A setting is enough unless the odds are three to one that it is not: this many standard errors.
/// On curves that just touch the bar, a search that trusts every figure ends too high, because the
/// best of many noisy figures is too high.
const BENEFIT_OF_DOUBT: f64 = 0.674;

/// A setting seems to lie below its neighbors, and is probed again, if it is less by this many
/// standard errors and by the share `WORTH_SAYING`.
const BELOW: f64 = 3.0;

/// The least share by which such a setting is below its neighbors.
const WORTH_SAYING: f64 = 0.10;

/// The rungs on which the answer depends are probed this often: a disturbance during one probe will
/// not have affected the other.
const CONFIRMED: usize = 2;

/// The search for the lowest setting that saturates.
#[derive(Clone, Debug)]
pub struct Knee {
    /// The share of the best throughput that is enough, above 0 and below 1.
    enough: f64,
    /// The settings, rising, each at most twice the one before.
    rungs: Vec<u32>,
    /// The results at each of them.
    seen: Vec<Probed>,
    /// The times at which each of them was probed.
    turns: Vec<Vec<usize>>,
    /// How many rungs the climb goes up at once.
    stride: usize,
}

/// The knowledge of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct KneeAnswer {
    /// The lowest setting that saturates.
    pub choice: u32,
    /// The settings that could be the answer as well, as far as the probes can tell, including the
    /// answer, in rising order.
    pub equals: Vec<u32>,
    /// The setting with the highest throughput.
    pub best: u32,
    /// Whether the throughput still rose at the highest setting that is allowed.
    pub rises_at_the_end: bool,
}

/// A setting that gives less than lower ones and than higher ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dip {
    /// The setting.
    pub setting: u32,
    /// How much less than the lower of its two neighbors, as a share.
    pub less: f64,
    /// How often it was probed.
    pub probes: usize,
}

/// A setting with some probes that differ from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbed {
    /// The setting.
    pub setting: u32,
    /// Their results, as shares of the results of the others.
    pub shares: Vec<f64>,
    /// How many probes there were.
    pub probes: usize,
    /// Whether the difference is beyond chance.
    pub is_told: bool,
}

impl Knee {
    /// A search among the settings from `lowest` to `highest` for the lowest one whose throughput is
    /// at least the share `enough` of the best.
    ///
    /// # Panics
    ///
    /// When there is no setting, or `enough` is not between 0 and 1.
    pub fn new(lowest: u32, highest: u32, enough: f64) -> Self {
        assert!(0 < lowest && lowest <= highest, "no setting from {lowest} to {highest}");
        assert!(0.0 < enough && enough < 1.0, "{enough} is no share to be reached");
        let mut rungs = Vec::from([lowest]);
        while let Some(&last) = rungs.last().filter(|last| **last < highest) {
            rungs.push(last.saturating_mul(2).min(highest));
        }
        Self::on(rungs, enough, 2)
    }

    /// The same by small steps: 1, 2, 3, 4, 6, 8, 12 times the lowest setting and so on, each of them.
    ///
    /// # Panics
    ///
    /// As [`Knee::new`].
    pub fn climbing(lowest: u32, highest: u32, enough: f64) -> Self {
        assert!(0 < lowest && lowest <= highest, "no setting from {lowest} to {highest}");
        assert!(0.0 < enough && enough < 1.0, "{enough} is no share to be reached");
        let mut rungs = Vec::from([lowest]);
        let mut times: u32 = 1;
        while let Some(&last) = rungs.last().filter(|last| **last < highest) {
            times = match times {
                1 => 2,
                _ if times.is_power_of_two() => times.saturating_add(times / 2),
                _ => times.saturating_add(times / 3),
            };
            rungs.push(lowest.saturating_mul(times).clamp(last + 1, highest));
        }
        Self::on(rungs, enough, 1)
    }

    fn on(rungs: Vec<u32>, enough: f64, stride: usize) -> Self {
        let seen = vec![Probed::default(); rungs.len()];
        let turns = vec![Vec::new(); rungs.len()];
        Self { enough, rungs, seen, turns, stride }
    }

    /// The largest possible number of probes.
    pub fn probes_at_most(&self) -> usize {
        if self.stride == 1 { CLIMB_MAX } else { PROBES_MAX }
    }

    /// The setting to probe next; none when the answer is final.
    pub fn next(&self) -> Option<u32> {
        if self.probes() >= self.probes_at_most() {
            return None;
        }
        let rung = self.unexplored().or_else(|| self.wanted())?;
        Some(self.rungs[rung])
    }

    /// Takes the result of a probe of a setting: its throughput in any unit and its standard error.
    /// A setting that was not asked for is ignored.
    pub fn observe(&mut self, setting: u32, throughput: f64, standard_error: f64) {
        if let Ok(rung) = self.rungs.binary_search(&setting) {
            self.seen[rung].add(throughput, standard_error);
            let turn = self.probes();
            self.turns[rung].push(turn);
        }
    }

    /// The number of probes.
    pub fn probes(&self) -> usize {
        self.seen.iter().map(Probed::count).sum()
    }

    /// The present knowledge; none before the first probe.
    pub fn answer(&self) -> Option<KneeAnswer> {
        let best = self.best()?;
        let choice = self.choice(best);
        let setting = |rung: usize| self.rungs[rung];
        Some(KneeAnswer {
            choice: setting(choice),
            equals: self.equals(choice, best, true).into_iter().map(setting).collect(),
            best: setting(best),
            rises_at_the_end: 0 < choice && choice + 1 == self.rungs.len(),
        })
    }

    /// The scatter between probes of one setting, as a share.
    pub fn noise(&self) -> f64 {
        probed::noise(self.seen.iter())
    }

    /// The scatter between probes of one setting, from the repeats.
    pub fn scatter(&self) -> Scatter {
        probed::scatter(self.seen.iter())
    }

    /// By how many standard errors each of this many comparisons may be off, all at once.
    pub fn certain(&self, comparisons: usize) -> f64 {
        self.scatter().certain(comparisons)
    }

    /// The number of settings that were probed.
    pub fn known(&self) -> usize {
        self.seen.iter().filter(|seen| 0 < seen.count()).count()
    }

    /// The settings that give less than both their neighbors, in each of their probes, in rising
    /// order.
    pub fn dips(&self) -> Vec<Dip> {
        let is_sure =
            |rung: usize| CONFIRMED <= self.seen[rung].count() && !self.seen[rung].is_disputed();
        let dip = |rung: usize| {
            let (less, beside) = self.dip(rung)?;
            let (setting, probes) = (self.rungs[rung], self.seen[rung].count());
            // Any of them may be the one, and its neighbors are the best on both sides.
            let pairs = self.known() * self.known().saturating_sub(1) / 2;
            let doubt = self.certain(pairs) * self.apart(rung, beside);
            let is_told = doubt < -(1.0 - less).ln();
            let is_sure = is_sure(rung) && is_sure(beside) && self.is_confirmed(rung, beside);
            (is_told && is_sure).then_some(Dip { setting, less, probes })
        };
        (0..self.rungs.len()).filter_map(dip).collect()
    }

    /// The settings with some probes that differ from the others.
    pub fn disturbed(&self) -> Vec<Disturbed> {
        let noise = self.scatter().noise();
        // Each of the probes could have been the one.
        let certain = self.certain(self.probes());
        let each = self.rungs.iter().zip(&self.seen).filter_map(|(setting, seen)| {
            let shares = seen.disturbed();
            let kept = seen.count() - shares.len();
            let limit = certain * noise * (1.0 + 1.0 / kept.max(1) as f64).sqrt();
            let is_told = shares.iter().all(|share| limit < share.ln().abs());
            let (setting, probes) = (*setting, seen.count());
            (!shares.is_empty()).then_some(Disturbed { setting, shares, probes, is_told })
        });
        each.collect()
    }

    /// The highest setting that was probed, if it is above the answer and gives less than it and
    /// than the best, with its share of the best. The worst of all settings would not do: of
    /// several that are alike one is always worst by chance.
    pub fn cost(&self) -> Option<(u32, Ratio)> {
        let best = self.best()?;
        let choice = self.choice(best);
        let last =
            (choice + 1..self.rungs.len()).rev().find(|rung| self.seen[*rung].count() > 0)?;
        let level = self.level(last).filter(|level| Some(*level) < self.level(choice))?;
        let is_sure = self.is_confirmed(last, best);
        // The best was chosen from all of them.
        let half = self.certain(self.known()) * self.apart(last, best);
        let share = Ratio::of_logarithm(level - (self.bar(best) - self.enough.ln()), half);
        (is_sure && share.is_less()).then(|| (self.rungs[last], share))
    }

    /// Whether the throughput so far, known to this standard error, clearly rules out its setting
    /// as the best, and the setting above it need not be probed to confirm this.
    pub fn is_clearly_worse(&self, throughput: f64, standard_error: f64) -> bool {
        let Some(best) = self.best() else { return false };
        let mut running = Probed::default();
        running.add(throughput, standard_error);
        let noise = self.noise();
        let doubt = running.standard_error(noise).hypot(self.seen[best].standard_error(noise));
        let doubt = CERTAIN * doubt;
        // As far below the bar as the bar is below the best.
        let bar = self.bar(best) + self.enough.ln();
        running.level().is_some_and(|level| level + doubt < bar)
    }

    fn level(&self, rung: usize) -> Option<f64> {
        self.seen[rung].level()
    }

    /// The rung with the highest throughput, the lowest of several.
    fn best(&self) -> Option<usize> {
        let rungs = (0..self.rungs.len()).rev();
        let levels = rungs.filter_map(|rung| Some((rung, self.level(rung)?)));
        levels.max_by(|left, right| left.1.total_cmp(&right.1)).map(|(rung, _)| rung)
    }

    /// The bar, as a logarithm: relative to the mean of all rungs that cannot be told from the
    /// best, because the best figure of several that are alike is too high by chance.
    fn bar(&self, best: usize) -> f64 {
        let top = self.level(best).unwrap_or(f64::NEG_INFINITY);
        let (mut sum, mut weights) = (0.0, 0.0);
        let noise = self.noise();
        for (rung, seen) in self.seen.iter().enumerate() {
            let is_alike = |level: &f64| top - level < CERTAIN * self.together(rung, best);
            if let Some(level) = seen.level().filter(is_alike) {
                let weight = seen.standard_error(noise).powi(-2);
                (sum, weights) = (sum + weight * level, weights + weight);
            }
        }
        sum / weights + self.enough.ln()
    }

    /// The first rung that has to be probed and was not.
    fn unexplored(&self) -> Option<usize> {
        let last = self.rungs.len() - 1;
        let (mut rung, mut idle, mut highest) = (0, 0, f64::NEG_INFINITY);
        loop {
            let Some(level) = self.level(rung) else { return Some(rung) };
            idle = if level + self.enough.ln() <= highest { idle + 1 } else { 0 };
            highest = highest.max(level);
            if idle == IDLE_STEPS || rung == last {
                break;
            }
            rung = (rung + self.stride).min(last);
        }
        let best = self.best()?;
        let beside = [best.checked_sub(1), Some(best + 1).filter(|rung| *rung <= last)];
        let unseen = |rung: &usize| self.level(*rung).is_none();
        beside.into_iter().flatten().find(unseen).or_else(|| {
            let below = self.choice(best).checked_sub(1)?;
            unseen(&below).then_some(below)
        })
    }

    /// Steps down from the best while the rung below is known and enough.
    fn choice(&self, best: usize) -> usize {
        let bar = self.bar(best);
        let is_enough = |rung: &usize| {
            let error = |rung: usize| self.seen[rung].standard_error(0.0);
            let doubt = BENEFIT_OF_DOUBT * error(*rung).hypot(error(best));
            self.level(*rung).is_some_and(|level| bar <= level + doubt)
        };
        // A rung that lies below both sides says nothing about either.
        let rungs = (0..best).rev().filter(|rung| self.dip(*rung).is_none());
        rungs.take_while(is_enough).last().unwrap_or(best)
    }

    /// By how much a setting is below the best of all lower ones and the best of all higher ones,
    /// as a share, if that is beyond chance, and the lower one of these two.
    fn dip(&self, rung: usize) -> Option<(f64, usize)> {
        let level = self.level(rung)?;
        let highest = |rungs: std::ops::Range<usize>| {
            let known = rungs.filter_map(|rung| Some((self.level(rung)?, rung)));
            known.max_by(|one, other| one.0.total_cmp(&other.0))
        };
        let sides = [highest(0..rung)?, highest(rung + 1..self.rungs.len())?];
        let (side, beside) = if sides[0].0 < sides[1].0 { sides[0] } else { sides[1] };
        let less = 1.0 - (level - side).exp();
        let is_one = WORTH_SAYING <= less && BELOW * self.together(rung, beside) < side - level;
        is_one.then_some((less, beside))
    }

    /// The rung to probe again: first those that contradict themselves or their neighbors and those
    /// that are open, then those on which the answer depends. The one with the fewest probes comes
    /// first, and of several the one whose last probe is longest ago: so another user of the target
    /// affects one probe of each rung, and not all probes of one.
    fn wanted(&self) -> Option<usize> {
        let mut open = self.contradictory();
        open.extend(self.doubtful());
        let mut hangs_on = self.unconfirmed();
        hangs_on.extend(self.underneath());
        let first = |all: Vec<usize>| {
            all.into_iter().min_by_key(|rung| (self.seen[*rung].count(), self.last_turn(*rung)))
        };
        first(open).or_else(|| first(hangs_on))
    }

    /// The settings whose probes contradict each other or their neighbors, and the settings that
    /// they are compared with.
    fn contradictory(&self) -> Vec<usize> {
        let is_disputed =
            |rung: &usize| self.seen[*rung].is_disputed() && self.seen[*rung].count() < REPEATS_MAX;
        let rungs = 0..self.rungs.len();
        let mut all: Vec<usize> = rungs.clone().filter(is_disputed).collect();
        let dips = rungs.filter_map(|rung| self.in_turns(rung, self.dip(rung)?.1));
        all.extend(dips);
        all
    }

    /// Which of two compared settings is to be probed next, in alternation; none when the
    /// comparison is confirmed, or the settings were probed often enough.
    fn in_turns(&self, rung: usize, beside: usize) -> Option<usize> {
        let next = if self.last_turn(beside) < self.last_turn(rung) { beside } else { rung };
        let is_open = !self.is_confirmed(rung, beside) && self.seen[next].count() < REPEATS_MAX;
        is_open.then_some(next)
    }

    /// Whether a setting was probed before and after one that it is compared with, and that one
    /// more than once: then another user of the target cannot have affected all probes of one and
    /// none of the other.
    fn is_confirmed(&self, rung: usize, beside: usize) -> bool {
        let own = &self.turns[rung];
        let first = own.first().copied().unwrap_or(usize::MAX);
        let is_between = |turn: &usize| (first..self.last_turn(rung)).contains(turn);
        CONFIRMED <= self.seen[beside].count() && self.turns[beside].iter().any(is_between)
    }

    /// The time at which a setting was probed last; 0 if it never was.
    fn last_turn(&self, rung: usize) -> usize {
        self.turns[rung].last().copied().unwrap_or(0)
    }

    /// The unconfirmed rungs on which the answer depends: the answer, the rung below it, and the
    /// end if it is less than the best.
    fn unconfirmed(&self) -> Vec<usize> {
        let Some(best) = self.best() else { return Vec::new() };
        let choice = self.choice(best);
        let last = (0..self.rungs.len()).rev().find(|rung| self.level(*rung).is_some());
        let is_less = |last: &usize| {
            let level = self.level(*last).unwrap_or_default();
            let top = self.bar(best) - self.enough.ln();
            choice < *last && level + CERTAIN * self.together(*last, best) < top
        };
        let is_seen = |rung: &usize| 0 < self.seen[*rung].count();
        let below = choice.checked_sub(1).filter(is_seen);
        let itself = Some(choice).filter(|rung| self.seen[*rung].count() < CONFIRMED);
        let hangs_on = [
            below.and_then(|below| self.in_turns(below, choice)),
            itself,
            last.filter(is_less).and_then(|last| self.in_turns(last, best)),
        ];
        hangs_on.into_iter().flatten().collect()
    }

    /// The standard error of the difference of two levels.
    fn together(&self, left: usize, right: usize) -> f64 {
        let noise = self.noise();
        self.seen[left].standard_error(noise).hypot(self.seen[right].standard_error(noise))
    }

    /// The same from the repeats alone.
    fn apart(&self, left: usize, right: usize) -> f64 {
        let noise = self.scatter().noise();
        self.seen[left].standard_error(noise).hypot(self.seen[right].standard_error(noise))
    }

    /// The rungs that may change the answer if they are probed again: those from the one below the
    /// choice up, if their side of the bar is open, and the best, which determines the bar.
    fn doubtful(&self) -> Vec<usize> {
        let Some(best) = self.best() else { return Vec::new() };
        let bar = self.bar(best);
        let is_open = |rung: &usize| {
            let doubt = CERTAIN * self.together(*rung, best);
            self.level(*rung).is_some_and(|level| (level - bar).abs() < doubt)
        };
        let lowest = self.choice(best).saturating_sub(1);
        let mut open: Vec<usize> = (lowest..best).filter(is_open).collect();
        if !open.is_empty() {
            open.push(best);
        }
        open.retain(|rung| self.seen[*rung].count() < REPEATS_MAX);
        open
    }

    /// The settings below the answer that gave far too little in a single probe each: a search that ran
    /// out of probes may have had a disturbed one. Each with its share of the best.
    pub fn unproven(&self) -> Vec<(u32, f64)> {
        let Some(best) = self.best() else { return Vec::new() };
        let top = self.bar(best) - self.enough.ln();
        let share = |rung: usize| Some((self.rungs[rung], (self.level(rung)? - top).exp()));
        let (_, unproven) = self.below(self.choice(best), best, true);
        unproven.into_iter().filter_map(share).collect()
    }

    /// The rungs that could be the answer: each that is not certainly too little, down to the first
    /// that is, and up to the first that is certainly enough.
    fn equals(&self, choice: usize, best: usize, sure: bool) -> Vec<usize> {
        let bar = self.bar(best);
        let may_be_too_little = |rung: &usize| match *rung < best {
            true => self.level(*rung).is_some_and(|level| level - self.doubt(*rung, best) < bar),
            false => self.may_gain_above(*rung),
        };
        let known = |rung: &usize| self.level(*rung).is_some();
        // If this one is too little, the next one is the answer.
        let last = (0..self.rungs.len()).rev().find(known).unwrap_or(best);
        let passed = (choice..last).filter(known).take_while(may_be_too_little).count();
        let above = (choice + 1..=last).filter(known).take(passed);
        let (below, _) = self.below(choice, best, sure);
        below.into_iter().chain([choice]).chain(above).collect()
    }

    /// The rungs below the answer that could be it, and those of which nothing is proven. If the result
    /// has to be `sure`, a single probe proves nothing: a search that ran out of probes may have had a
    /// disturbed one. If it is below the bar by the factor of probes that did not measure the same thing,
    /// it is not taken for the answer either.
    fn below(&self, choice: usize, best: usize, sure: bool) -> (Vec<usize>, Vec<usize>) {
        let bar = self.bar(best);
        let is_single = |rung: usize| sure && self.seen[rung].count() < CONFIRMED;
        let is_far_below =
            |rung: usize| self.level(rung).is_some_and(|level| level + ANOTHER_THING.ln() <= bar);
        let may_be_enough = |rung: &usize| {
            let limit = |level: f64| bar < level + self.doubt(*rung, best);
            is_single(*rung) || self.level(*rung).is_some_and(limit)
        };
        let mut down: Vec<usize> = (0..choice).rev().take_while(may_be_enough).collect();
        down.reverse();
        down.retain(|rung| self.level(*rung).is_some());
        down.into_iter().partition(|rung| !(is_single(*rung) && is_far_below(*rung)))
    }

    /// By how much a rung may differ from the best by chance. The best was chosen from all of them.
    fn doubt(&self, rung: usize, best: usize) -> f64 {
        match rung == best {
            true => 0.0,
            false => self.certain(self.known()) * self.apart(rung, best),
        }
    }

    /// Whether all rungs above a rung together may give so much more that the rung is not enough:
    /// one comparison, no matter which rung has the highest figure by chance.
    fn may_gain_above(&self, rung: usize) -> bool {
        let noise = self.scatter().noise();
        let weight = |rung: usize| self.seen[rung].standard_error(noise).powi(-2);
        let (mut sum, mut weights) = (0.0, 0.0);
        for above in rung + 1..self.rungs.len() {
            if let Some(level) = self.level(above) {
                sum += weight(above) * level;
                weights += weight(above);
            }
        }
        let Some(level) = self.level(rung).filter(|_| 0.0 < weights) else { return false };
        let error = (1.0 / weight(rung) + 1.0 / weights).sqrt();
        level - sum / weights - self.scatter().certain_one_sided() * error < self.enough.ln()
    }

    /// The rung below all that could be the answer: it has to be probed more than once before the
    /// search says that it is too little.
    fn underneath(&self) -> Option<usize> {
        self.scatter().degrees?;
        let best = self.best()?;
        let lowest = *self.equals(self.choice(best), best, false).first()?;
        lowest.checked_sub(1).filter(|rung| self.seen[*rung].count() < CONFIRMED)
    }
}
