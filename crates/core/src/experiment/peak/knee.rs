//! The search for the lowest setting that saturates a target, over plain numbers: which setting to
//! probe next, and what the answer is. It never sees a trial.
//!
//! It looks at a ladder of settings, each twice the one before. It climbs two rungs at a time until
//! there is nothing more to gain, then looks at the rungs beside the best and steps down from it
//! while the throughput is still enough. What the noise of the probes leaves open is probed again.
//!
//! Or it climbs as people do by hand: by small steps from the lowest setting on, leaving none out.

use super::probed::{CERTAIN, Probed};

/// The most probes of a search.
pub const PROBES_MAX: usize = 15;

/// The most probes of a climb by small steps.
const CLIMB_MAX: usize = 40;

/// The most probes of one setting.
pub const REPEATS_MAX: usize = 4;

/// So many steps in a row without a gain end the climb: one alone may be a landing of the stairs.
const IDLE_STEPS: u32 = 2;

/// A setting is enough unless the odds are three to one that it is not: so many standard errors.
/// On curves that just touch the bar a search that takes every figure at its word ends too high,
/// because the best of many noisy figures is too good.
const BENEFIT_OF_DOUBT: f64 = 0.674;

/// The search for the lowest setting that saturates.
#[derive(Clone, Debug)]
pub struct Knee {
    /// The share of the best throughput that is enough, above 0 and below 1.
    enough: f64,
    /// The settings, rising, each at most twice the one before.
    rungs: Vec<u32>,
    /// What was seen at each of them.
    seen: Vec<Probed>,
    /// How many rungs the climb goes up at once.
    stride: usize,
}

/// What a search knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The lowest setting that saturates.
    pub choice: u32,
    /// The settings that could be it as well, as far as the probes can tell, itself included,
    /// rising.
    pub equals: Vec<u32>,
    /// The setting with the highest throughput.
    pub best: u32,
    /// Whether the throughput still rose at the highest setting that is allowed.
    pub rises_at_the_end: bool,
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
        Self { enough, rungs, seen, stride }
    }

    /// The most probes that there can be.
    pub fn probes_at_most(&self) -> usize {
        if self.stride == 1 { CLIMB_MAX } else { PROBES_MAX }
    }

    /// The setting to probe next; none when the answer stands.
    pub fn next(&self) -> Option<u32> {
        if self.probes() >= self.probes_at_most() {
            return None;
        }
        let rung = self.unexplored().or_else(|| self.doubtful())?;
        Some(self.rungs[rung])
    }

    /// Takes what a probe of a setting showed: its throughput in any unit and the standard error of
    /// it. A setting that was not asked for is not looked at.
    pub fn observe(&mut self, setting: u32, throughput: f64, standard_error: f64) {
        if let Ok(rung) = self.rungs.binary_search(&setting) {
            self.seen[rung].add(throughput, standard_error);
        }
    }

    /// How many probes there were.
    pub fn probes(&self) -> usize {
        self.seen.iter().map(Probed::count).sum()
    }

    /// What is known so far; none before the first probe.
    pub fn answer(&self) -> Option<Answer> {
        let best = self.best()?;
        let choice = self.choice(best);
        let setting = |rung: usize| self.rungs[rung];
        Some(Answer {
            choice: setting(choice),
            equals: self.equals(choice, best).into_iter().map(setting).collect(),
            best: setting(best),
            rises_at_the_end: 0 < choice && choice + 1 == self.rungs.len(),
        })
    }

    /// The highest setting that was seen, if it is above the answer and clearly worse than it and
    /// than the best, with the share of the best that it costs. The worst of all settings would not
    /// do: of several that are alike one is always worst by chance.
    pub fn cost(&self) -> Option<(u32, f64)> {
        let best = self.best()?;
        let choice = self.choice(best);
        let last =
            (choice + 1..self.rungs.len()).rev().find(|rung| self.seen[*rung].count() > 0)?;
        let top = self.bar(best) - self.enough.ln();
        let level = self.level(last).filter(|level| Some(*level) < self.level(choice))?;
        let is_sure = CERTAIN * together(&self.seen[last], &self.seen[best]) < top - level;
        is_sure.then(|| (self.rungs[last], 1.0 - (level - top).exp()))
    }

    /// Whether a throughput that was seen so far, known to this standard error, is clearly too little
    /// for its setting to be the best, and the setting above it need not be looked at for its sake.
    pub fn is_clearly_worse(&self, throughput: f64, standard_error: f64) -> bool {
        let Some(best) = self.best() else { return false };
        let mut running = Probed::default();
        running.add(throughput, standard_error);
        let doubt = CERTAIN * together(&running, &self.seen[best]);
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

    /// What is enough, as a logarithm: measured against the mean of all that cannot be told from the
    /// best, because the best figure of several that are alike is too good by chance.
    fn bar(&self, best: usize) -> f64 {
        let top = self.level(best).unwrap_or(f64::NEG_INFINITY);
        let (mut sum, mut weights) = (0.0, 0.0);
        for seen in &self.seen {
            let is_alike = |level: &f64| top - level < CERTAIN * together(seen, &self.seen[best]);
            if let Some(level) = seen.level().filter(is_alike) {
                let weight = seen.standard_error().powi(-2);
                (sum, weights) = (sum + weight * level, weights + weight);
            }
        }
        sum / weights + self.enough.ln()
    }

    /// The first rung that has to be seen and was not.
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

    /// Steps down from the best while what is below is known and enough.
    fn choice(&self, best: usize) -> usize {
        let bar = self.bar(best);
        let is_enough = |rung: &usize| {
            let doubt = BENEFIT_OF_DOUBT * together(&self.seen[*rung], &self.seen[best]);
            self.level(*rung).is_some_and(|level| bar <= level + doubt)
        };
        (0..best).rev().take_while(is_enough).last().unwrap_or(best)
    }

    /// A rung whose further probe may change the answer: of those from the one below the choice up,
    /// where it is open on which side of the bar they are, and of the best, which the bar hangs on,
    /// the one that is known least.
    fn doubtful(&self) -> Option<usize> {
        let best = self.best()?;
        let bar = self.bar(best);
        let is_open = |rung: &usize| {
            let doubt = CERTAIN * together(&self.seen[*rung], &self.seen[best]);
            self.level(*rung).is_some_and(|level| (level - bar).abs() < doubt)
        };
        let lowest = self.choice(best).saturating_sub(1);
        let mut open: Vec<usize> = (lowest..best).filter(is_open).collect();
        if open.is_empty() {
            return None;
        }
        open.push(best);
        open.sort_by_key(|rung| self.seen[*rung].count());
        open.into_iter().find(|rung| self.seen[*rung].count() < REPEATS_MAX)
    }

    fn equals(&self, choice: usize, best: usize) -> Vec<usize> {
        let bar = self.bar(best);
        let doubt = |rung: usize| match rung == best {
            true => 0.0,
            false => CERTAIN * together(&self.seen[rung], &self.seen[best]),
        };
        let may_be_enough =
            |rung: &usize| self.level(*rung).is_some_and(|level| bar < level + doubt(*rung));
        let may_be_too_little =
            |rung: &usize| self.level(*rung).is_some_and(|level| level - doubt(*rung) < bar);
        let below = (0..choice).rev().take_while(may_be_enough).last().unwrap_or(choice);
        // If this one is too little, it is the next one that is the answer.
        let passed = (choice..best).take_while(may_be_too_little).count();
        (below..=choice + passed).filter(|rung| self.level(*rung).is_some()).collect()
    }
}

/// The standard error of the difference of two levels.
fn together(left: &Probed, right: &Probed) -> f64 {
    left.standard_error().hypot(right.standard_error())
}
