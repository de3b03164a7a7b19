//! Makes whole requests of events: which completion belongs to which start.
//!
//! An event does not name its request, only the disk, the operation and the first sector. Two
//! requests for the same sector may be in flight at once. The one that began last is then taken
//! first. Their sum, and so the mean, is exact in any order; a single time may be too short, and the
//! other one too long. The other order would be worse: the kernel can miss an event, and a request
//! whose end was missed would lend its start to the next one for the same sector, that one to the
//! next, and so on. Merges are followed, and after a told loss everything in flight is forgotten.

use std::collections::{HashMap, VecDeque};

use super::event::{BlockEvent, BlockStage, Operation};
use crate::units::{Instant, Span};

/// How many ends of recent requests a disk and an operation keep: a request that begins at one of
/// them continues a sequential stream. As many streams are told from random access.
const STREAMS: usize = 32;

/// A request whose completion has not been seen for so long is forgotten. Its events were lost, or
/// it became a part of another request.
const FORGOTTEN: Span = Span::from_secs(120);

/// A request that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// The disk.
    pub device: (u32, u32),
    /// What it did.
    pub operation: Operation,
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The program that made it, or that gave it to the driver if its start was not seen.
    pub program: u32,
    /// Whether it began where another one of the last few had ended.
    pub sequential: bool,
    /// Whether the device has failed it.
    pub failed: bool,
    /// When the block layer made it; none if that was not seen.
    pub queued: Option<Instant>,
    /// When the driver got it; none if that was not seen.
    pub issued: Option<Instant>,
    /// When it was complete.
    pub completed: Instant,
    /// The CPUs on which it began and was completed.
    pub cpus: (u32, u32),
}

impl BlockRequest {
    /// When it began: in the block layer, or with the driver if that was not seen.
    pub fn began(&self) -> Option<Instant> {
        self.queued.or(self.issued)
    }

    /// From its start in the block layer to its completion; from the driver on if the start was not
    /// seen.
    pub fn response_time(&self) -> Option<Span> {
        Some(self.completed.since(self.began()?))
    }

    /// The time before the driver got it.
    pub fn queue_time(&self) -> Option<Span> {
        Some(self.issued?.since(self.queued?))
    }

    /// The time with the driver and the device.
    pub fn device_time(&self) -> Option<Span> {
        Some(self.completed.since(self.issued?))
    }
}

type Key = ((u32, u32), Operation, u64);

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Flying {
    queued: Option<Instant>,
    issued: Option<Instant>,
    program: u32,
    sequential: bool,
    /// Sectors that earlier parts of it have completed.
    done: u32,
    /// Its sectors.
    sectors: u32,
    /// Where it began.
    first: u64,
    /// The CPU on which it began.
    cpu: u32,
}

impl Flying {
    fn began(&self) -> Option<Instant> {
        self.queued.or(self.issued)
    }
}

/// Requests in flight at one place of a disk: nearly always one.
#[derive(Debug, Default)]
struct Flight {
    one: Option<Flying>,
    /// Those that came after it.
    others: VecDeque<Flying>,
}

impl Flight {
    fn push(&mut self, flying: Flying) {
        match self.one {
            None => self.one = Some(flying),
            Some(_) => self.others.push_back(flying),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Flying> {
        self.one.iter().chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flying> {
        self.one.iter_mut().chain(&mut self.others)
    }

    /// Takes the last that is of this kind.
    fn take(&mut self, wanted: impl Fn(&Flying) -> bool) -> Option<Flying> {
        if let Some(place) = self.others.iter().rposition(&wanted) {
            return self.others.remove(place);
        }
        if !self.one.as_ref().is_some_and(wanted) {
            return None;
        }
        let taken = self.one.take();
        self.one = self.others.pop_front();
        taken
    }

    fn forget(&mut self, before: Instant) {
        let is_young = |flying: &Flying| flying.began() >= Some(before);
        self.others.retain(is_young);
        self.one = self.one.take().filter(is_young).or_else(|| self.others.pop_front());
    }
}

/// The ends of recent requests.
#[derive(Debug, Default)]
struct Recent {
    ends: VecDeque<u64>,
}

impl Recent {
    /// Whether a request continues one of them. Its own end takes the place of that one.
    fn continues(&mut self, sector: u64, sectors: u32) -> bool {
        let place = self.ends.iter().rposition(|end| *end == sector);
        match place {
            Some(place) => drop(self.ends.remove(place)),
            None if self.ends.len() == STREAMS => drop(self.ends.pop_front()),
            None => {}
        }
        self.ends.push_back(sector + u64::from(sectors));
        place.is_some()
    }
}

/// Pairs events that come in the order of their times.
#[derive(Debug, Default)]
pub struct Pairing {
    flights: HashMap<Key, Flight>,
    recent: HashMap<((u32, u32), Operation), Recent>,
    unpaired: u64,
}

impl Pairing {
    /// Takes the next event. Returns the request that is complete with it.
    pub fn take(&mut self, event: &BlockEvent) -> Option<BlockRequest> {
        // An fsync begins as a write without data, which the block layer turns into a flush.
        if event.sectors == 0 && event.operation != Operation::Flush {
            return None;
        }
        let key = (event.device, event.operation, event.sector);
        match event.stage {
            BlockStage::Queued => self.begin(key, event, Some(event.at), None),
            BlockStage::Issued => self.issue(key, event),
            BlockStage::Requeued => {
                let flight = self.flights.get_mut(&key)?;
                let issued = flight.iter_mut().filter(|flying| flying.issued.is_some()).last()?;
                issued.issued = None;
            }
            BlockStage::Fronted => self.move_front(key, event),
            BlockStage::Merged => drop(self.remove(key, |flying| flying.issued.is_none())),
            BlockStage::Completed => return self.complete(key, event),
        }
        None
    }

    /// The completions so far whose request was not seen before: it had begun before the first
    /// event, or its events were lost.
    pub fn unpaired(&self) -> u64 {
        self.unpaired
    }

    /// The start of the oldest of the requests that a disk has in flight now, if it has this many:
    /// the ones that began last. The ends of older ones were missed.
    pub fn in_flight_since(&self, device: (u32, u32), in_flight: u64) -> Option<Instant> {
        let of_device = self.flights.iter().filter(|((disk, ..), _)| *disk == device);
        let mut starts: Vec<Instant> =
            of_device.flat_map(|(_, flight)| flight.iter().filter_map(Flying::began)).collect();
        starts.sort_unstable();
        let older = starts.len().saturating_sub(usize::try_from(in_flight).ok()?);
        starts.get(older).copied()
    }

    /// Forgets everything in flight: after events were lost, nobody knows what is still there.
    pub fn restart(&mut self) {
        self.flights.clear();
    }

    /// Forgets requests that began long ago, so that lost events take no memory.
    pub fn forget(&mut self, now: Instant) {
        let before = Instant(now.0.saturating_sub(FORGOTTEN.0));
        self.flights.retain(|_, flight| {
            flight.forget(before);
            flight.one.is_some()
        });
    }

    fn begin(
        &mut self,
        key: Key,
        event: &BlockEvent,
        queued: Option<Instant>,
        issued: Option<Instant>,
    ) {
        let recent = self.recent.entry((event.device, event.operation)).or_default();
        let sequential = event.sectors > 0 && recent.continues(event.sector, event.sectors);
        self.flights.entry(key).or_default().push(Flying {
            queued,
            issued,
            program: event.program,
            sequential,
            done: 0,
            sectors: event.sectors,
            first: event.sector,
            cpu: event.cpu,
        });
    }

    fn issue(&mut self, key: Key, event: &BlockEvent) {
        // The last one, so that one whose end was missed stays behind.
        let waiting = self
            .flights
            .get_mut(&key)
            .and_then(|flight| flight.iter_mut().filter(|flying| flying.issued.is_none()).last());
        match waiting {
            Some(flying) => {
                flying.issued = Some(event.at);
                // Others may have been merged into it since it began.
                flying.sectors = event.sectors;
            }
            None => self.begin(key, event, None, Some(event.at)),
        }
    }

    /// An I/O was put in front of a request that waits: the request begins with it from here on.
    fn move_front(&mut self, key: Key, event: &BlockEvent) {
        let behind = (key.0, key.1, event.sector + u64::from(event.sectors));
        if let Some(mut flying) = self.remove(behind, |flying| flying.issued.is_none()) {
            flying.first = event.sector;
            self.flights.entry(key).or_default().push(flying);
        }
    }

    fn complete(&mut self, key: Key, event: &BlockEvent) -> Option<BlockRequest> {
        // One that the driver never got was failed before.
        let issued = self.remove(key, |flying| flying.issued.is_some());
        let Some(mut flying) = issued.or_else(|| self.remove(key, |_| true)) else {
            self.unpaired += 1;
            return None;
        };
        flying.done += event.sectors;
        if flying.done < flying.sectors && !event.failed {
            // A part of it is complete; the rest goes on as a request behind it.
            let rest = (key.0, key.1, event.sector + u64::from(event.sectors));
            self.flights.entry(rest).or_default().push(flying);
            return None;
        }
        Some(BlockRequest {
            device: event.device,
            operation: event.operation,
            sector: flying.first,
            bytes: u64::from(flying.sectors) * 512,
            program: flying.program,
            sequential: flying.sequential,
            failed: event.failed,
            queued: flying.queued,
            issued: flying.issued,
            completed: event.at,
            cpus: (flying.cpu, event.cpu),
        })
    }

    fn remove(&mut self, key: Key, wanted: impl Fn(&Flying) -> bool) -> Option<Flying> {
        let flight = self.flights.get_mut(&key)?;
        let taken = flight.take(wanted);
        if flight.one.is_none() {
            self.flights.remove(&key);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DISK: (u32, u32) = (254, 0);

    fn event(at: u64, stage: BlockStage, sector: u64, sectors: u32) -> BlockEvent {
        BlockEvent {
            at: Instant(at),
            device: DISK,
            operation: Operation::Read,
            stage,
            sector,
            sectors,
            failed: false,
            program: 7,
            cpu: 0,
        }
    }

    fn feed(pairing: &mut Pairing, events: &[BlockEvent]) -> Vec<BlockRequest> {
        events.iter().filter_map(|event| pairing.take(event)).collect()
    }

    #[test]
    fn the_time_in_the_queue_is_told_from_the_time_at_the_device() {
        let mut pairing = Pairing::default();
        let requests = feed(
            &mut pairing,
            &[
                event(10, BlockStage::Queued, 64, 8),
                event(25, BlockStage::Issued, 64, 8),
                event(125, BlockStage::Completed, 64, 8),
            ],
        );
        let [request] = requests[..] else { panic!("{requests:?}") };
        assert_eq!(request.queue_time(), Some(Span(15)));
        assert_eq!(request.device_time(), Some(Span(100)));
        assert_eq!(request.response_time(), Some(Span(115)));
        assert_eq!((request.bytes, request.program, request.sequential), (4096, 7, false));
        assert!(pairing.flights.is_empty());
    }

    #[test]
    fn a_request_whose_end_was_missed_does_not_count_as_in_flight() {
        let mut pairing = Pairing::default();
        feed(
            &mut pairing,
            &[
                event(10, BlockStage::Queued, 64, 8),
                event(20, BlockStage::Queued, 128, 8),
                event(30, BlockStage::Queued, 192, 8),
            ],
        );
        let since = |in_flight| pairing.in_flight_since(DISK, in_flight).map(|at| at.0);
        assert_eq!([since(0), since(1), since(2), since(9)], [None, Some(30), Some(20), Some(10)]);
        assert_eq!(pairing.in_flight_since((1, 1), 3), None);
    }

    #[test]
    fn two_requests_for_one_sector_do_not_lend_each_other_a_start() {
        let mut pairing = Pairing::default();
        let requests = feed(
            &mut pairing,
            &[
                event(0, BlockStage::Queued, 0, 8),
                event(1, BlockStage::Issued, 0, 8),
                event(50, BlockStage::Queued, 0, 8),
                event(51, BlockStage::Issued, 0, 8),
                event(100, BlockStage::Completed, 0, 8),
                event(200, BlockStage::Completed, 0, 8),
            ],
        );
        let times: Vec<_> = requests.iter().filter_map(BlockRequest::response_time).collect();
        // The order of the device is not known, but the sum is.
        assert_eq!(times, [Span(50), Span(200)]);
    }

    #[test]
    fn a_request_that_completes_in_parts_is_one_request() {
        let mut pairing = Pairing::default();
        let requests = feed(
            &mut pairing,
            &[
                event(0, BlockStage::Issued, 100, 16),
                event(10, BlockStage::Completed, 100, 8),
                event(30, BlockStage::Completed, 108, 8),
            ],
        );
        let [request] = requests[..] else { panic!("{requests:?}") };
        assert_eq!((request.sector, request.bytes), (100, 8192));
        assert_eq!(request.response_time(), Some(Span(30)));
        assert_eq!(request.queue_time(), None);
    }

    #[test]
    fn a_request_names_the_cpus_on_which_it_began_and_ended() {
        let mut pairing = Pairing::default();
        let on = |cpu, event: BlockEvent| BlockEvent { cpu, ..event };
        let requests = feed(
            &mut pairing,
            &[
                on(1, event(0, BlockStage::Queued, 0, 8)),
                on(3, event(3, BlockStage::Issued, 0, 8)),
                on(2, event(5, BlockStage::Completed, 0, 8)),
            ],
        );
        assert_eq!(requests.iter().map(|request| request.cpus).collect::<Vec<_>>(), [(1, 2)]);
    }

    #[test]
    fn a_request_that_grew_by_a_merge_counts_all_its_bytes() {
        let mut pairing = Pairing::default();
        let requests = feed(
            &mut pairing,
            &[
                event(0, BlockStage::Queued, 100, 8),
                event(2, BlockStage::Queued, 108, 8),
                event(3, BlockStage::Merged, 108, 8),
                event(4, BlockStage::Issued, 100, 16),
                event(9, BlockStage::Completed, 100, 16),
            ],
        );
        let [request] = requests[..] else { panic!("{requests:?}") };
        assert_eq!((request.bytes, request.queue_time()), (8192, Some(Span(4))));
        assert!(pairing.flights.is_empty());
    }

    #[test]
    fn a_request_that_grew_at_its_front_is_the_same_request() {
        let mut pairing = Pairing::default();
        let requests = feed(
            &mut pairing,
            &[
                event(0, BlockStage::Queued, 108, 8),
                event(3, BlockStage::Fronted, 100, 8),
                event(4, BlockStage::Issued, 100, 16),
                event(9, BlockStage::Completed, 100, 16),
            ],
        );
        let [request] = requests[..] else { panic!("{requests:?}") };
        assert_eq!((request.sector, request.bytes), (100, 8192));
        assert_eq!(request.queue_time(), Some(Span(4)));
        assert!(pairing.flights.is_empty());
    }

    #[test]
    fn a_missed_end_does_not_make_later_requests_long() {
        let mut pairing = Pairing::default();
        feed(&mut pairing, &[event(0, BlockStage::Queued, 8, 8)]);
        feed(&mut pairing, &[event(1, BlockStage::Issued, 8, 8)]);
        for round in 1..100 {
            let at = round * 1_000_000;
            let requests = feed(
                &mut pairing,
                &[
                    event(at, BlockStage::Queued, 8, 8),
                    event(at + 1, BlockStage::Issued, 8, 8),
                    event(at + 100, BlockStage::Completed, 8, 8),
                ],
            );
            assert_eq!(requests[0].response_time(), Some(Span(100)));
        }
        feed(&mut pairing, &[event(5, BlockStage::Issued, 8, 8)]);
        pairing.restart();
        assert_eq!(feed(&mut pairing, &[event(9, BlockStage::Completed, 8, 8)]), []);
    }

    #[test]
    fn a_request_that_the_driver_gave_back_waits_again() {
        let mut pairing = Pairing::default();
        let requests = feed(
            &mut pairing,
            &[
                event(0, BlockStage::Queued, 8, 8),
                event(1, BlockStage::Issued, 8, 8),
                event(2, BlockStage::Requeued, 8, 8),
                event(40, BlockStage::Issued, 8, 8),
                event(50, BlockStage::Completed, 8, 8),
            ],
        );
        assert_eq!(requests[0].queue_time(), Some(Span(40)));
        assert_eq!(requests[0].device_time(), Some(Span(10)));
    }

    #[test]
    fn a_completion_without_a_start_is_counted_and_no_time_is_invented() {
        let mut pairing = Pairing::default();
        assert_eq!(feed(&mut pairing, &[event(5, BlockStage::Completed, 0, 8)]), []);
        assert_eq!(pairing.unpaired(), 1);
    }

    #[test]
    fn what_was_lost_is_forgotten_in_the_end() {
        let mut pairing = Pairing::default();
        feed(&mut pairing, &[event(5, BlockStage::Issued, 0, 8)]);
        feed(&mut pairing, &[event(FORGOTTEN.0, BlockStage::Issued, 0, 8)]);
        pairing.forget(Instant(FORGOTTEN.0 + 6));
        let requests = feed(&mut pairing, &[event(FORGOTTEN.0 + 9, BlockStage::Completed, 0, 8)]);
        assert_eq!(requests[0].response_time(), Some(Span(9)));
        pairing.forget(Instant(u64::MAX));
        assert!(pairing.flights.is_empty());
    }

    #[test]
    fn interleaved_streams_are_sequential_and_random_access_is_not() {
        let mut pairing = Pairing::default();
        let mut sequential = 0;
        for step in 0..100 {
            for stream in 0..4 {
                let sector = stream * 1_000_000 + step * 8;
                let at = step * 100 + stream;
                feed(&mut pairing, &[event(at, BlockStage::Issued, sector, 8)]);
                let done = pairing.take(&event(at + 1, BlockStage::Completed, sector, 8)).unwrap();
                sequential += u32::from(done.sequential);
            }
        }
        assert_eq!(sequential, 4 * 99);
        let random = |at: u64| event(at, BlockStage::Issued, at * 7919 % 1_000_003 * 16, 8);
        for at in 0..500 {
            assert_eq!(pairing.take(&random(at)), None);
        }
        let kinds = pairing.flights.values().filter(|f| f.one.is_some_and(|f| f.sequential));
        assert_eq!(kinds.count(), 0);
    }

    proptest! {
        /// In any order of stages of any requests: each completes once, with its own bytes, and the
        /// sum of the times is that of the requests, also where several are for the same sector.
        #[test]
        fn no_request_is_lost_or_told_twice(
            starts in proptest::collection::vec((0u64..20, 0u64..1000, 0u64..100, 1u64..1000), 1..60)
        ) {
            let mut events = Vec::new();
            let mut sum = 0;
            for (place, queued, wait, takes) in starts.iter().copied() {
                let issued = queued + wait;
                events.push((queued, 0, event(queued, BlockStage::Queued, place * 8, 8)));
                events.push((issued, 1, event(issued, BlockStage::Issued, place * 8, 8)));
                let end = issued + takes;
                events.push((end, 2, event(end, BlockStage::Completed, place * 8, 8)));
                sum += wait + takes;
            }
            events.sort_by_key(|(at, stage, _)| (*at, *stage));
            let events: Vec<_> = events.into_iter().map(|(_, _, event)| event).collect();
            let mut pairing = Pairing::default();
            let requests = feed(&mut pairing, &events);
            prop_assert_eq!(requests.len(), starts.len());
            let times = requests.iter().filter_map(BlockRequest::response_time);
            prop_assert_eq!(times.map(|time| time.0).sum::<u64>(), sum);
            prop_assert_eq!(pairing.unpaired(), 0);
            prop_assert!(pairing.flights.is_empty());
        }
    }
}
