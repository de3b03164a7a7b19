//! A watch of days in bounded memory: neighbors are added up when there are too many, and the
//! busiest minute and hour are found as they pass.

use std::collections::VecDeque;

use super::counted::Counted;
use super::observed::Observed;
use crate::units::Span;

/// Figures of a time, to which those of the time behind it can be added.
pub trait Additive {
    /// Adds the figures of the time behind this one.
    fn append(&mut self, next: &Self);
}

impl Additive for Counted {
    fn append(&mut self, next: &Self) {
        self.add(next);
    }
}

impl Additive for Observed {
    fn append(&mut self, next: &Self) {
        self.merge(next);
    }
}

/// A piece of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPart<T> {
    /// Its begin, from that of the watch on.
    pub start: Span,
    /// Its end.
    pub end: Span,
    /// The intervals that it holds.
    pub intervals: u64,
    /// Its figures.
    pub figures: T,
}

/// The pieces of a watch, of about equal lengths: at most `limit` of them, however long it takes.
#[derive(Clone, Debug)]
pub struct History<T> {
    pieces: Vec<HistoryPart<T>>,
    limit: usize,
    /// The intervals of a full piece.
    group: u64,
}

impl<T: Additive> History<T> {
    /// An empty one with this limit, an even number.
    pub fn new(limit: usize) -> Self {
        assert!(0 < limit && limit.is_multiple_of(2), "{limit}");
        Self { pieces: Vec::new(), limit, group: 1 }
    }

    /// Adds what happened between two times.
    pub fn push(&mut self, start: Span, end: Span, figures: T) {
        let new = HistoryPart { start, end, intervals: 1, figures };
        match self.pieces.last_mut().filter(|last| last.intervals < self.group) {
            Some(last) => last.append(&new),
            None => self.pieces.push(new),
        }
        let is_full = self.pieces.last().is_some_and(|last| last.intervals == self.group);
        if self.pieces.len() == self.limit && is_full {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.group *= 2;
        let mut halved = Vec::with_capacity(self.limit);
        let mut pieces = std::mem::take(&mut self.pieces).into_iter();
        while let Some(mut piece) = pieces.next() {
            if let Some(next) = pieces.next() {
                piece.append(&next);
            }
            halved.push(piece);
        }
        self.pieces = halved;
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[HistoryPart<T>] {
        &self.pieces
    }
}

impl<T: Additive> HistoryPart<T> {
    fn append(&mut self, next: &Self) {
        self.end = next.end;
        self.intervals += next.intervals;
        self.figures.append(&next.figures);
    }
}

/// The window of a length in which the most I/Os became complete, of all windows that begin with an
/// interval.
#[derive(Clone, Debug)]
pub struct Busiest {
    window: Span,
    recent: VecDeque<(Span, Span, Counted)>,
    /// The I/Os of the recent ones.
    ios: u64,
    best: Option<(Span, Counted)>,
}

impl Busiest {
    /// None has passed.
    pub fn new(window: Span) -> Self {
        Self { window, recent: VecDeque::new(), ios: 0, best: None }
    }

    /// Adds what happened between two times.
    pub fn push(&mut self, start: Span, end: Span, counted: Counted) {
        self.ios += counted.ios();
        self.recent.push_back((start, end, counted));
        // The shortest run of intervals up to this one that is as long as the window.
        while self.recent.get(1).is_some_and(|(second, ..)| self.window <= end - *second) {
            if let Some((_, _, first)) = self.recent.pop_front() {
                self.ios -= first.ios();
            }
        }
        let Some((first, ..)) = self.recent.front() else { return };
        let length = end - *first;
        let best = self.best.as_ref().map_or(0.0, |(_, best)| best.per_second(best.ios()));
        let rate = self.ios as f64 / length.as_secs_f64().max(f64::MIN_POSITIVE);
        if self.window <= length && best < rate {
            let mut sum = Counted::default();
            self.recent.iter().for_each(|(_, _, counted)| sum.add(counted));
            self.best = Some((*first, sum));
        }
    }

    /// Its begin and its figures; none before a window has passed, or if nothing happened.
    pub fn best(&self) -> Option<&(Span, Counted)> {
        self.best.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::counted::CountedFlow;
    use super::*;

    fn second(reads: u64) -> Counted {
        let reads = CountedFlow { ios: reads, ..CountedFlow::default() };
        Counted { length: Span::from_secs(1), reads, ..Counted::default() }
    }

    fn at(second: u64) -> (Span, Span) {
        (Span::from_secs(second), Span::from_secs(second + 1))
    }

    #[test]
    fn a_long_watch_keeps_few_pieces_and_loses_nothing() {
        for length in [1, 7, 8, 9, 100, 12_345] {
            let mut history = History::new(8);
            for number in 0..length {
                let (start, end) = at(number);
                history.push(start, end, second(number));
            }
            let pieces = history.pieces();
            assert!(pieces.len() <= 8, "{length}: {}", pieces.len());
            let sum: u64 = pieces.iter().map(|piece| piece.figures.reads.ios).sum();
            assert_eq!(sum, length * (length - 1) / 2);
            assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!(pieces[0].start, Span(0));
            assert_eq!(pieces.last().unwrap().end, Span::from_secs(length));
            // All but the last are of the same length.
            let first = pieces[0].intervals;
            let same = pieces.iter().rev().skip(1).all(|piece| piece.intervals == first);
            assert!(same || length < 8, "{pieces:?}");
        }
    }

    #[test]
    fn the_busiest_minute_is_found_wherever_it_begins() {
        let mut busiest = Busiest::new(Span::from_secs(60));
        for number in 0..59 {
            let (start, end) = at(number);
            busiest.push(start, end, second(10));
        }
        assert_eq!(busiest.best(), None);
        for number in 59..1000 {
            let (start, end) = at(number);
            busiest.push(start, end, second(if (437..497).contains(&number) { 500 } else { 10 }));
        }
        let (start, sum) = busiest.best().unwrap();
        assert_eq!(
            (*start, sum.ios(), sum.length),
            (Span::from_secs(437), 30_000, Span::from_secs(60))
        );
        assert!(busiest.recent.len() <= 60);
    }

    #[test]
    fn a_window_of_idle_time_is_not_the_busiest() {
        let mut busiest = Busiest::new(Span::from_secs(2));
        for number in 0..5 {
            let (start, end) = at(number);
            busiest.push(start, end, second(0));
        }
        assert_eq!(busiest.best(), None);
    }
}
