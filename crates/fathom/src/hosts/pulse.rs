//! Signs of life: every host is asked for its time each second. The questions renew its lease, the
//! answers show that it is there, and how far its clock is from the one here.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fathom_core::hosts::{ClockOffset, Exchange, best};

/// The number of answers that are kept: clocks that drift are measured anew.
const KEPT: usize = 16;

/// The signs of life of a host.
#[derive(Debug)]
pub struct Pulse {
    heard: Instant,
    /// The questions that are open, with the time of each.
    open: VecDeque<(u64, u64)>,
    exchanges: VecDeque<Exchange>,
}

impl Pulse {
    /// A host that was heard of now.
    pub fn new() -> Self {
        Self { heard: Instant::now(), open: VecDeque::new(), exchanges: VecDeque::new() }
    }

    /// It is asked now for its time.
    pub fn asks(&mut self, id: u64, unix_ns: u64) {
        self.open.push_back((id, unix_ns));
        if KEPT < self.open.len() {
            self.open.pop_front();
        }
    }

    /// It said something.
    pub fn hears(&mut self) {
        self.heard = Instant::now();
    }

    /// It said its time, which came here at that time.
    pub fn answers(&mut self, id: u64, told: u64, answered: u64) {
        let Some(place) = self.open.iter().position(|(open, _)| *open == id) else { return };
        let Some((_, asked)) = self.open.remove(place) else { return };
        // A clock here that was set back meanwhile would make the worst answer the best one.
        if answered < asked {
            return;
        }
        self.exchanges.push_back(Exchange { asked, told, answered });
        if KEPT < self.exchanges.len() {
            self.exchanges.pop_front();
        }
    }

    /// How many answers came.
    pub fn answered(&self) -> usize {
        self.exchanges.len()
    }

    /// For how long it has been silent.
    pub fn silent(&self) -> Duration {
        self.heard.elapsed()
    }

    /// How far its clock is from the one here; none before its first answer.
    pub fn offset(&self) -> Option<ClockOffset> {
        best(self.exchanges.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_its_question() {
        let mut pulse = Pulse::new();
        pulse.asks(1, 1000);
        pulse.asks(2, 2000);
        pulse.answers(2, 7050, 2100);
        pulse.answers(9, 1, 1);
        assert_eq!((pulse.answered(), pulse.offset().unwrap().ns), (1, 5000));
        pulse.answers(1, 6000, 3000);
        assert_eq!((pulse.answered(), pulse.offset().unwrap().ns), (2, 5000));
        for id in 10..100 {
            pulse.asks(id, 0);
        }
        assert!(pulse.open.len() <= KEPT);
    }
}
