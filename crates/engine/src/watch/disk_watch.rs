//! Watches disks interval by interval.

use fathom_core::watch::{BlockRequest, Busy, Counted, DiskStat, Observed, Pairing};
use fathom_core::{Instant, Span};

use super::disks::WatchedDisk;
use super::events::{BlockEvents, EventsMissing, SETTLED};
use crate::clock::monotonic;
use crate::host::counters::process_cpu;

/// How often the events have to be taken out of the kernel's buffers, at least.
pub const PUMP: Span = Span::from_ms(50);

/// One disk in an interval.
#[derive(Clone, Debug, Default)]
pub struct WatchedSlice {
    /// What the kernel's counters say; none if the disk is gone, or came only now.
    pub counted: Option<Counted>,
    /// What the events say; none if they are not watched, or the disk has none.
    pub observed: Option<Observed>,
}

/// All disks in an interval.
#[derive(Clone, Debug)]
pub struct WatchedInterval {
    /// Its length.
    pub length: Span,
    /// One for each disk, in their order.
    pub disks: Vec<WatchedSlice>,
    /// Events that the kernel had to drop in it.
    pub lost: u64,
    /// The CPU time of this process in it: what watching costs here. What it costs the programs
    /// that are watched is not in it.
    pub own_cpu: Span,
}

/// Watches some disks.
#[derive(Debug)]
pub struct DiskWatch {
    disks: Vec<WatchedDisk>,
    /// The last counters of each disk.
    stats: Vec<Option<DiskStat>>,
    events: Result<BlockEvents, EventsMissing>,
    pairing: Pairing,
    observed: Vec<Observed>,
    busy: Vec<Busy>,
    begun: Instant,
    lost: u64,
    cpu: Span,
}

impl DiskWatch {
    /// Begins to watch, with the events of single requests where the kernel allows them and
    /// `with_events` asks for them.
    pub fn begin(disks: Vec<WatchedDisk>, with_events: bool) -> Self {
        let seen: Vec<(u32, u32)> =
            disks.iter().filter(|disk| disk.has_requests).map(|disk| disk.number).collect();
        let events = match (with_events, seen.is_empty()) {
            (false, _) => Err(EventsMissing::NotWanted),
            (true, true) => Err(EventsMissing::NoRequests),
            (true, false) => BlockEvents::listen(&seen),
        };
        let stats = disks.iter().map(WatchedDisk::stat).collect();
        let begun = Instant(monotonic());
        Self {
            stats,
            observed: disks.iter().map(|_| Observed::default()).collect(),
            busy: disks.iter().map(|_| Busy::begin(begun)).collect(),
            disks,
            events,
            pairing: Pairing::default(),
            begun,
            lost: 0,
            cpu: process_cpu(),
        }
    }

    /// The disks.
    pub fn disks(&self) -> &[WatchedDisk] {
        &self.disks
    }

    /// Why there are no events; none if there are.
    pub fn missing(&self) -> Option<&EventsMissing> {
        self.events.as_ref().err()
    }

    /// The name of a program that an interval names by its number.
    pub fn program(&self, number: u32) -> &str {
        self.events.as_ref().map_or("?", |events| events.program(number))
    }

    /// Takes the events that are there, and shows each request that is complete. To be called every
    /// [`PUMP`] at least.
    pub fn pump(&mut self, each: &mut dyn FnMut(&BlockRequest)) {
        self.take(Instant(monotonic()), each);
    }

    /// Ends the interval now, and begins the next. Takes two milliseconds, until all events of the
    /// interval have come.
    pub fn cut(&mut self, each: &mut dyn FnMut(&BlockRequest)) -> WatchedInterval {
        let stats: Vec<Option<DiskStat>> = self.disks.iter().map(WatchedDisk::stat).collect();
        let now = Instant(monotonic());
        let length = now.since(self.begun);
        if self.events.is_ok() {
            std::thread::sleep(std::time::Duration::from_nanos(SETTLED.0 + 100_000));
            self.take(now, each);
            self.pairing.forget(now);
        }
        let lost = self.events.as_ref().map_or(0, BlockEvents::lost);
        let disks = (0..stats.len())
            .map(|place| {
                let readings = self.stats[place].zip(stats[place]);
                self.slice(place, readings, now, lost > self.lost)
            })
            .collect();
        let cpu = process_cpu();
        let interval = WatchedInterval {
            length,
            disks,
            lost: lost - self.lost,
            own_cpu: Span(cpu.0.saturating_sub(self.cpu.0)),
        };
        (self.stats, self.begun, self.lost, self.cpu) = (stats, now, lost, cpu);
        interval
    }

    /// One disk in the interval that ends now.
    fn slice(
        &mut self,
        place: usize,
        readings: Option<(DiskStat, DiskStat)>,
        now: Instant,
        lacks_events: bool,
    ) -> WatchedSlice {
        let disk = &self.disks[place];
        let mut counted = readings
            .and_then(|(before, after)| Counted::between(&before, &after, now.since(self.begun)));
        if self.events.is_err() || !disk.has_requests {
            return WatchedSlice { counted, observed: None };
        }
        let in_flight = counted.map_or(0, |counted| counted.in_flight);
        let since = self.pairing.in_flight_since(disk.number, in_flight);
        let busy = self.busy[place].cut(now, since);
        if let Some(counted) = counted.as_mut().filter(|_| !lacks_events) {
            counted.busy = busy;
        }
        WatchedSlice { counted, observed: Some(std::mem::take(&mut self.observed[place])) }
    }

    fn take(&mut self, until: Instant, each: &mut dyn FnMut(&BlockRequest)) {
        let Self { events: Ok(events), pairing, observed, busy, disks, .. } = self else { return };
        let before = events.lost();
        events.drain(until, |event| {
            let place = disks.iter().position(|disk| disk.number == event.device);
            if let Some(place) = place.filter(|_| event.ends_without_data()) {
                observed[place].without_data += 1;
            }
            let Some(request) = pairing.take(event) else { return };
            if let Some(place) = place {
                observed[place].take(&request);
                if let Some(began) = request.began() {
                    busy[place].add(began, request.completed);
                }
            }
            each(&request);
        });
        if before < events.lost() {
            pairing.restart();
        }
    }
}
