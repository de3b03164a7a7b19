//! What the view knows: the last minutes of each disk, and what the user has chosen.

use std::collections::{BTreeMap, VecDeque};

use fathom_core::watch::{Caused, Counted};
use fathom_core::{Quantile, Span, Utc};
use fathom_engine::watch::WatchedSlice;

use crate::watch::{Flow, Seen};

/// The intervals that are kept: ten minutes of seconds.
const KEPT: usize = 600;
/// The programs' shares are those of this many intervals.
const RECENT: usize = 60;

/// A key, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKey {
    /// The row above.
    Up,
    /// The row below.
    Down,
    /// The next order of the rows.
    Sort,
    /// Stop and go on.
    Pause,
    /// Show the keys, or hide them.
    Help,
    /// Hide the keys; without them, end.
    Back,
    /// End.
    Quit,
    /// No meaning.
    Other,
}

/// An order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// As they were named.
    Name,
    /// The most IOPS first.
    Iops,
    /// The longest mean response time first.
    Time,
    /// The busiest first.
    Busy,
}

impl RowOrder {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Iops => "IOPS",
            Self::Time => "time",
            Self::Busy => "util",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Name => Self::Iops,
            Self::Iops => Self::Time,
            Self::Time => Self::Busy,
            Self::Busy => Self::Name,
        }
    }
}

/// The figures of one direction in an interval; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub iops: f64,
    pub bandwidth: f64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
}

/// A disk in an interval.
#[derive(Clone, Debug, Default)]
pub struct Point {
    pub reads: Figures,
    pub writes: Figures,
    pub queue: f64,
    pub busy: f64,
    /// Response times and how often each occurred, reads and writes together.
    pub times: Vec<(u64, u64)>,
    /// By program.
    pub programs: Vec<(String, Caused)>,
}

/// A disk.
#[derive(Clone, Debug)]
pub struct Disk {
    pub name: String,
    /// The latest last; none for an interval in which it was gone.
    pub points: VecDeque<Option<Point>>,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct State {
    pub disks: Vec<Disk>,
    /// The place of the chosen disk in `disks`.
    pub chosen: usize,
    pub order: RowOrder,
    /// The number of intervals that have passed since the pause began; none without a pause.
    pub paused: Option<usize>,
    pub helps: bool,
    pub note: Option<String>,
    pub color: bool,
    /// The end of the last interval, its length, and the CPU time of watching in it.
    pub at: Option<Utc>,
    pub interval: Span,
    pub own_cpu: Span,
    /// Events that were dropped so far.
    pub lost: u64,
}

impl State {
    /// Before the first interval.
    pub fn new(disks: &[String], note: Option<String>, color: bool) -> Self {
        let disk = |name: &String| Disk { name: name.clone(), points: VecDeque::new() };
        Self {
            disks: disks.iter().map(disk).collect(),
            chosen: 0,
            order: RowOrder::Name,
            paused: None,
            helps: false,
            note,
            color,
            at: None,
            interval: Span(0),
            own_cpu: Span(0),
            lost: 0,
        }
    }

    /// Takes an interval.
    pub fn take(&mut self, seen: &Seen<'_>) {
        for (disk, slice) in self.disks.iter_mut().zip(&seen.interval.disks) {
            if disk.points.len() == KEPT {
                disk.points.pop_front();
            }
            disk.points.push_back(point(slice, seen));
        }
        self.lost += seen.interval.lost;
        if let Some(passed) = &mut self.paused {
            *passed = (*passed + 1).min(KEPT - 1);
            return;
        }
        self.at = Some(Utc::from_unix(seen.at_unix_ns / 1_000_000_000));
        (self.interval, self.own_cpu) = (seen.interval.length, seen.interval.own_cpu);
    }

    /// Does what a key says. Returns whether it ends the view.
    pub fn press(&mut self, key: ViewKey) -> bool {
        match key {
            ViewKey::Quit => return true,
            ViewKey::Back if !self.helps => return true,
            ViewKey::Back => self.helps = false,
            ViewKey::Help => self.helps = !self.helps,
            ViewKey::Pause => self.paused = if self.paused.is_some() { None } else { Some(0) },
            ViewKey::Sort => self.order = self.order.next(),
            ViewKey::Up | ViewKey::Down => self.step(key == ViewKey::Down),
            ViewKey::Other => {}
        }
        false
    }

    fn step(&mut self, down: bool) {
        let rows = self.rows();
        let row = rows.iter().position(|place| *place == self.chosen).unwrap_or(0);
        let next = if down { (row + 1).min(rows.len() - 1) } else { row.saturating_sub(1) };
        self.chosen = rows[next];
    }

    /// The places of the disks in the order of the rows.
    pub fn rows(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.disks.len()).collect();
        let value = |place: &usize| {
            let Some(point) = self.last(*place) else { return -1.0 };
            let (reads, writes) = (point.reads, point.writes);
            match self.order {
                RowOrder::Name => 0.0,
                RowOrder::Iops => reads.iops + writes.iops,
                RowOrder::Time => reads.mean.unwrap_or(0.0).max(writes.mean.unwrap_or(0.0)),
                RowOrder::Busy => point.busy,
            }
        };
        if self.order != RowOrder::Name {
            rows.sort_by(|one, other| value(other).total_cmp(&value(one)));
        }
        rows
    }

    /// The intervals of a disk up to the one that is shown, the latest last.
    pub fn shown(&self, place: usize) -> impl DoubleEndedIterator<Item = Option<&Point>> {
        let points = &self.disks[place].points;
        let end = points.len().saturating_sub(self.paused.unwrap_or(0));
        points.iter().take(end).map(Option::as_ref)
    }

    /// The interval of a disk that is shown; none before the first one, and if the disk is gone.
    pub fn last(&self, place: usize) -> Option<&Point> {
        self.shown(place).next_back().flatten()
    }

    /// The programs of the chosen disk with their share of the I/Os, the largest first.
    pub fn programs(&self) -> Vec<(&str, f64)> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for point in self.shown(self.chosen).rev().take(RECENT).flatten() {
            for (name, caused) in &point.programs {
                *sums.entry(name).or_default() += caused.ios();
            }
        }
        let all: u64 = sums.values().sum();
        let share = |(name, ios)| (name, ios as f64 / all.max(1) as f64);
        let mut shares: Vec<(&str, f64)> = sums.into_iter().map(share).collect();
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
    }
}

fn point(slice: &WatchedSlice, seen: &Seen<'_>) -> Option<Point> {
    let counted: Counted = slice.counted?;
    let figures = |flow: Flow<'_>| Figures {
        iops: flow.iops(),
        bandwidth: flow.bandwidth(),
        mean: flow.mean(),
        p50: flow.percentile(Quantile(0.5)).map(|ns| ns as f64),
        p99: flow.percentile(Quantile(0.99)).map(|ns| ns as f64),
    };
    let mut times = Vec::new();
    let mut programs = Vec::new();
    if let Some(observed) = &slice.observed {
        let mut all = observed.reads.response_time.clone();
        all.merge(&observed.writes.response_time);
        times = all.to_sparse().buckets().collect();
        programs = observed
            .programs
            .iter()
            .map(|(program, caused)| (seen.watch.program(*program).to_owned(), *caused))
            .collect();
    }
    Some(Point {
        reads: figures(Flow::reads(slice)?),
        writes: figures(Flow::writes(slice)?),
        queue: counted.mean_queue(),
        busy: counted.utilization(),
        times,
        programs,
    })
}

#[cfg(test)]
pub mod tests {
    use fathom_engine::watch::{DiskWatch, WatchedInterval};

    use super::*;
    use crate::watch::made;

    /// A state with three disks: the first idle, the second busy, the third gone, for this many
    /// seconds.
    pub fn state(seconds: u64, color: bool) -> State {
        let names = ["sda", "nvme0n1", "sdb"].map(str::to_owned);
        let mut state = State::new(&names, None, color);
        let watch = DiskWatch::begin(Vec::new(), false);
        for second in 0..seconds {
            let interval = interval();
            let at_unix_ns = (43_200 + second) * 1_000_000_000;
            state.take(&Seen { at_unix_ns, disks: &names, watch: &watch, interval: &interval });
        }
        state
    }

    fn interval() -> WatchedInterval {
        let busy = made::busy();
        let idle = Counted { length: Span::from_secs(1), ..Counted::default() };
        let idle = WatchedSlice { counted: Some(idle), observed: Some(Default::default()) };
        let disks = Vec::from([idle, busy.disks[0].clone(), WatchedSlice::default()]);
        WatchedInterval { disks, ..busy }
    }

    #[test]
    fn the_user_chooses_a_disk_in_the_order_of_the_rows() {
        let mut state = state(3, true);
        assert_eq!((state.rows(), state.chosen), (Vec::from([0, 1, 2]), 0));
        assert!(!state.press(ViewKey::Sort));
        assert_eq!((state.order, state.rows()), (RowOrder::Iops, Vec::from([1, 0, 2])));
        state.press(ViewKey::Up);
        assert_eq!(state.chosen, 1);
        state.press(ViewKey::Up);
        assert_eq!(state.chosen, 1);
        for _ in 0..5 {
            state.press(ViewKey::Down);
        }
        assert_eq!(state.chosen, 2);
        assert!(state.last(2).is_none());
        assert!(state.press(ViewKey::Quit));
    }

    #[test]
    fn a_pause_shows_what_was_there_and_loses_nothing() {
        let mut state = state(5, true);
        state.press(ViewKey::Pause);
        let at = state.at;
        let names = ["sda", "nvme0n1", "sdb"].map(str::to_owned);
        let watch = DiskWatch::begin(Vec::new(), false);
        for _ in 0..2000 {
            let interval = interval();
            state.take(&Seen { at_unix_ns: 9, disks: &names, watch: &watch, interval: &interval });
        }
        assert_eq!(state.at, at);
        assert_eq!(state.disks[1].points.len(), KEPT);
        state.press(ViewKey::Pause);
        assert_eq!(state.shown(1).count(), KEPT);
    }

    #[test]
    fn help_is_left_before_the_view_is() {
        let mut state = state(1, true);
        state.press(ViewKey::Help);
        assert!(!state.press(ViewKey::Back));
        assert!(state.press(ViewKey::Back));
    }

    #[test]
    fn programs_have_their_share() {
        let mut state = state(3, true);
        state.chosen = 1;
        assert_eq!(state.programs(), [("?", 1.0)]);
    }
}
