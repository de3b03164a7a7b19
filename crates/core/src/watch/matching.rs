//! Finds the requests of fathom's own I/Os, and so where the time of each went.
//!
//! Neither the kernel nor fathom gives an I/O a name that the other one knows. They meet at the
//! place on the disk and in time: the request was complete after the I/O was submitted, and before
//! fathom saw its completion. A file system or the block layer may split an I/O or merge several;
//! requests have to cover the whole of it, and the last of them to complete decides. The parts are
//! cut at the ends of the I/O, so that their sum is its service time.

use std::collections::{BTreeMap, VecDeque};

use super::breakdown::{
    Band, Breakdown, FlowBreakdown, HostThen, Neighbor, Parts, SLOWEST, SlowIo, SlowRequest,
};
use super::event::Operation;
use super::observed::Caused;
use super::pairing::BlockRequest;
use crate::measure::bucket_of;
use crate::units::{Bytes, Instant, Quantile, Span};

/// How far the clocks of both sides may be apart.
const CLOCKS_APART: Span = Span::from_us(10);

/// The most requests that wait for their I/Os: 60 MB.
const REQUESTS_MAX: usize = 1 << 19;

/// The most requests that are remembered for the neighbors of a slow I/O.
const RECENT_MAX: usize = 1 << 16;

/// The most looks at the host that are remembered: minutes.
const LOOKS_MAX: usize = 1 << 13;

/// The most programs that are named beside a slow I/O.
const NEIGHBORS_MAX: usize = 3;

/// The limits of the bands. One is left out if fewer than ten I/Os are above it.
const LIMITS: [Quantile; 4] = [Quantile(0.5), Quantile(0.9), Quantile(0.99), Quantile(0.999)];

/// A piece of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRange {
    /// The disk.
    pub device: (u32, u32),
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// The number of its sectors.
    pub sectors: u64,
}

/// An I/O of fathom's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnIo {
    /// What it did.
    pub operation: Operation,
    /// The target's place in the list of targets.
    pub target: u32,
    /// Its offset there.
    pub offset: Bytes,
    /// Its length.
    pub length: Bytes,
    /// When it was submitted, in nanoseconds from the beginning of the window.
    pub submitted_ns: i64,
    /// The same by the clock of the events.
    pub submitted: Instant,
    /// When fathom saw its completion, by the clock of the events.
    pub completed: Instant,
    /// The first piece of the disk that it touched; none if that is not known.
    pub piece: Option<DiskRange>,
    /// The other pieces, if it touched several.
    pub others: Vec<DiskRange>,
}

/// A look at the counters of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLook {
    /// When, by the clock of the events.
    pub at: Instant,
    /// CPU time that a hypervisor gave to others since the host started.
    pub stolen: Span,
    /// The time for which control groups kept this process from the CPU.
    pub throttled: Span,
    /// Data that is being written back.
    pub writeback: Bytes,
}

/// Disk, operation, first sector, completion.
type Arrival = ((u32, u32), Operation, u64, Instant);

/// A request that waits for its I/Os.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: BlockRequest,
    /// Its sectors that no I/O has claimed.
    left: u64,
}

impl Waiting {
    fn end(&self) -> u64 {
        self.request.sector + self.request.bytes / 512
    }
}

/// The sums of the I/Os in a bucket of the service time.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    ios: u64,
    parts: Parts,
}

/// The I/Os of an operation.
#[derive(Clone, Debug, Default)]
struct FlowSums {
    by_bucket: BTreeMap<u64, Sums>,
    without_request: u64,
}

/// A slow I/O with its neighbors by number.
#[derive(Clone, Debug)]
struct Slow {
    io: SlowIo,
    neighbors: Vec<(u32, Caused)>,
}

/// Finds the requests of I/Os. Requests come in the order of their completion, I/Os in any order.
#[derive(Debug, Default)]
pub struct Matching {
    waiting: BTreeMap<Arrival, Waiting>,
    /// The keys in the order in which they came.
    order: VecDeque<Arrival>,
    /// The sectors of the longest request so far.
    longest: u64,
    ios: Vec<OwnIo>,
    /// The last requests of all programs, and whether they were fathom's own.
    recent: VecDeque<(BlockRequest, bool)>,
    looks: VecDeque<HostLook>,
    flows: BTreeMap<Operation, FlowSums>,
    /// The slowest first.
    slowest: Vec<Slow>,
}

impl Matching {
    /// Takes a request of fathom's own.
    pub fn own(&mut self, request: &BlockRequest) {
        self.remember(request, true);
        let sectors = request.bytes / 512;
        if sectors == 0 || request.failed {
            return;
        }
        self.longest = self.longest.max(sectors);
        let key = (request.device, request.operation, request.sector, request.completed);
        self.waiting.insert(key, Waiting { request: *request, left: sectors });
        self.order.push_back(key);
        // Those that were claimed are gone already, unless an older one waits.
        while let Some(oldest) = self.order.front()
            && (REQUESTS_MAX < self.order.len() || !self.waiting.contains_key(oldest))
        {
            self.waiting.remove(oldest);
            self.order.pop_front();
        }
    }

    /// Takes a request of another program.
    pub fn others(&mut self, request: &BlockRequest) {
        self.remember(request, false);
    }

    fn remember(&mut self, request: &BlockRequest, is_own: bool) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((*request, is_own));
    }

    /// Takes a look at the host.
    pub fn host(&mut self, look: HostLook) {
        if self.looks.len() == LOOKS_MAX {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
    }

    /// Takes an I/O of the window that moved all its bytes.
    pub fn io(&mut self, io: OwnIo) {
        self.ios.push(io);
    }

    /// Finds the requests of all I/Os that were complete by `until`. All requests that were complete
    /// by then have to be here.
    pub fn settle(&mut self, until: Instant) {
        let mut ios = std::mem::take(&mut self.ios);
        for io in ios.extract_if(.., |io| io.completed + CLOCKS_APART <= until) {
            self.found(&io);
        }
        self.ios = ios;
    }

    fn found(&mut self, io: &OwnIo) {
        let request = self.request_of(io);
        let service_time = io.completed.since(io.submitted);
        let flow = self.flows.entry(io.operation).or_default();
        let parts = request.as_ref().map(|request| parts(io, request));
        match &parts {
            None => flow.without_request += 1,
            Some(parts) => {
                let sums = flow.by_bucket.entry(bucket_of(service_time.0)).or_default();
                sums.ios += 1;
                sums.parts.add(parts);
            }
        }
        let is_slow = self.slowest.len() < SLOWEST
            || self.slowest.last().is_some_and(|last| last.io.service_time < service_time);
        if !is_slow {
            return;
        }
        let request = request.zip(parts).map(|(request, parts)| SlowRequest {
            parts,
            in_flight: self.in_flight(&request),
            began_on_cpu: request.cpus.0,
            completed_on_cpu: request.cpus.1,
        });
        let neighbors = self.neighbors(io);
        let host = self.host_then(io);
        let slow = SlowIo {
            submitted_ns: io.submitted_ns,
            operation: io.operation,
            target: io.target,
            offset: io.offset,
            length: io.length,
            service_time,
            request,
            neighbors: Vec::new(),
            host,
        };
        let place = self.slowest.partition_point(|it| service_time <= it.io.service_time);
        self.slowest.insert(place, Slow { io: slow, neighbors });
        self.slowest.truncate(SLOWEST);
    }

    /// The request that completed last of those that cover the I/O.
    fn request_of(&mut self, io: &OwnIo) -> Option<BlockRequest> {
        let mut claims = Vec::new();
        for piece in io.piece.iter().chain(&io.others) {
            match self.exact(io, piece) {
                Some(key) => claims.push((key, piece.sectors)),
                None => self.covering(io, piece, &mut claims)?,
            }
        }
        let mut last: Option<BlockRequest> = None;
        for (key, sectors) in claims {
            let Some(waiting) = self.waiting.get_mut(&key) else { continue };
            let request = waiting.request;
            waiting.left = waiting.left.saturating_sub(sectors);
            if waiting.left == 0 {
                self.waiting.remove(&key);
            }
            if last.is_none_or(|last| last.completed < request.completed) {
                last = Some(request);
            }
        }
        last
    }

    /// A request for just this piece: the usual case.
    fn exact(&self, io: &OwnIo, piece: &DiskRange) -> Option<Arrival> {
        let key = |at| (piece.device, io.operation, piece.sector, at);
        let from = Instant(io.submitted.0.saturating_sub(CLOCKS_APART.0));
        let range = key(from)..=key(io.completed + CLOCKS_APART);
        let is_it = |waiting: &Waiting| {
            waiting.request.bytes / 512 == piece.sectors && waiting.left == piece.sectors
        };
        self.waiting.range(range).find(|(_, waiting)| is_it(waiting)).map(|(key, _)| *key)
    }

    /// Adds the requests that cover a piece together, with the sectors that each has of it; none if
    /// they do not cover it.
    fn covering(
        &self,
        io: &OwnIo,
        piece: &DiskRange,
        claims: &mut Vec<(Arrival, u64)>,
    ) -> Option<()> {
        let end = piece.sector + piece.sectors;
        let first = piece.sector.saturating_sub(self.longest);
        let key = |sector| (piece.device, io.operation, sector, Instant(0));
        let mut covered = piece.sector;
        for (key, waiting) in self.waiting.range(key(first)..key(end)) {
            let request = &waiting.request;
            let is_of_it = io.submitted <= request.completed + CLOCKS_APART
                && request.completed <= io.completed + CLOCKS_APART;
            if is_of_it && request.sector <= covered && covered < waiting.end() {
                let to = waiting.end().min(end);
                claims.push((*key, to - covered));
                covered = to;
            }
        }
        (covered == end).then_some(())
    }

    /// The requests of a disk that were in flight when one of them began, with itself.
    fn in_flight(&self, one: &BlockRequest) -> u32 {
        let Some(began) = one.queued.or(one.issued) else { return 1 };
        // They are in the order of their completion.
        let later = self.recent.iter().rev().take_while(|(it, _)| began < it.completed);
        let was_there = |it: &BlockRequest| {
            it.device == one.device && it.queued.or(it.issued).is_some_and(|at| at <= began)
        };
        later.filter(|(it, _)| was_there(it)).count() as u32
    }

    fn neighbors(&self, io: &OwnIo) -> Vec<(u32, Caused)> {
        let Some(piece) = io.piece else { return Vec::new() };
        let mut programs: BTreeMap<u32, Caused> = BTreeMap::new();
        let later = self.recent.iter().rev().take_while(|(it, _)| io.submitted <= it.completed);
        for (request, is_own) in later {
            if !is_own && request.device == piece.device && request.completed <= io.completed {
                programs.entry(request.program).or_default().add(&Caused::of(request));
            }
        }
        let mut programs: Vec<(u32, Caused)> = programs.into_iter().collect();
        programs.retain(|(_, caused)| caused.ios() > 0);
        programs.sort_by_key(|(_, caused)| std::cmp::Reverse(caused.ios()));
        programs.truncate(NEIGHBORS_MAX);
        programs
    }

    fn host_then(&self, io: &OwnIo) -> Option<HostThen> {
        let behind = self.looks.partition_point(|look| look.at <= io.submitted);
        let before = self.looks.get(behind.checked_sub(1)?)?;
        let place = self.looks.partition_point(|look| look.at < io.completed);
        let after = self.looks.get(place)?;
        let between = self.looks.range(behind - 1..=place);
        Some(HostThen {
            over: after.at.since(before.at),
            stolen: Span(after.stolen.0.saturating_sub(before.stolen.0)),
            throttled: Span(after.throttled.0.saturating_sub(before.throttled.0)),
            writeback_bytes: between.map(|look| look.writeback).max().unwrap_or_default(),
        })
    }

    /// Ends it. `name` gives a program's name by its number.
    pub fn end(mut self, name: impl Fn(u32) -> String) -> Breakdown {
        self.settle(Instant(u64::MAX));
        let slowest = self.slowest.into_iter().map(|Slow { io, neighbors }| {
            let neighbor = |(number, caused): &(u32, Caused)| Neighbor {
                program: name(*number),
                ios: caused.ios(),
                bytes: Bytes(caused.read_bytes.0 + caused.written_bytes.0),
            };
            SlowIo { neighbors: neighbors.iter().map(neighbor).collect(), ..io }
        });
        Breakdown {
            flows: self.flows.into_iter().map(|(operation, sums)| sums.flow(operation)).collect(),
            slowest: slowest.collect(),
            ..Breakdown::default()
        }
    }
}

/// Where the time of an I/O went, by its last request. A request that began before the I/O had been
/// made for another one, into which this one was merged.
fn parts(io: &OwnIo, request: &BlockRequest) -> Parts {
    let (from, to) = (io.submitted, io.completed);
    let completed = request.completed.max(from).min(to);
    let issued = request.issued.unwrap_or(completed).max(from).min(completed);
    let queued = request.queued.unwrap_or(issued).max(from).min(issued);
    Parts {
        submission: queued.since(from),
        queue: issued.since(queued),
        device: completed.since(issued),
        completion: to.since(completed),
    }
}

impl FlowSums {
    /// The I/Os between quantiles. A bucket belongs to the band that the middle one of its I/Os is
    /// in.
    fn flow(self, operation: Operation) -> FlowBreakdown {
        let ios: u64 = self.by_bucket.values().map(|sums| sums.ios).sum();
        let carried = |limit: &Quantile| ios as f64 * (1.0 - limit.0) >= 10.0;
        let mut bands = Vec::new();
        let mut from = Quantile(0.0);
        for to in LIMITS.into_iter().filter(carried).chain([Quantile(1.0)]) {
            bands.push(Band { from, to, ios: 0, sum: Parts::default() });
            from = to;
        }
        let mut before = 0;
        for sums in self.by_bucket.values() {
            let middle = (before + sums.ios.div_ceil(2)) as f64;
            let is_in = |band: &&mut Band| middle <= band.to.0 * ios as f64;
            let band = bands.iter_mut().find(is_in).expect("the last band ends with the last I/O");
            band.ios += sums.ios;
            band.sum.add(&sums.parts);
            before += sums.ios;
        }
        bands.retain(|band| band.ios > 0);
        FlowBreakdown { operation, ios, without_request: self.without_request, bands }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DISK: (u32, u32) = (254, 0);

    fn request(
        sector: u64,
        sectors: u64,
        (queued, issued, completed): (u64, u64, u64),
    ) -> BlockRequest {
        BlockRequest {
            device: DISK,
            operation: Operation::Read,
            sector,
            bytes: sectors * 512,
            program: 0,
            sequential: false,
            failed: false,
            queued: Some(Instant(queued)),
            issued: Some(Instant(issued)),
            completed: Instant(completed),
            cpus: (1, 2),
        }
    }

    fn io(sector: u64, sectors: u64, submitted: u64, completed: u64) -> OwnIo {
        OwnIo {
            operation: Operation::Read,
            target: 0,
            offset: Bytes(sector * 512),
            length: Bytes(sectors * 512),
            submitted_ns: submitted as i64,
            submitted: Instant(submitted),
            completed: Instant(completed),
            piece: Some(DiskRange { device: DISK, sector, sectors }),
            others: Vec::new(),
        }
    }

    fn met(requests: &[BlockRequest], ios: &[OwnIo]) -> Breakdown {
        let mut matching = Matching::default();
        requests.iter().for_each(|request| matching.own(request));
        ios.iter().for_each(|io| matching.io(io.clone()));
        matching.end(|number| format!("program {number}"))
    }

    fn parts_of(breakdown: &Breakdown, place: usize) -> [u64; 4] {
        let parts = breakdown.slowest[place].request.expect("its request was seen").parts;
        parts.named().map(|(_, part)| part.0)
    }

    #[test]
    fn the_parts_of_an_io_are_those_of_its_request() {
        let times = (120_000, 130_000, 630_000);
        let breakdown = met(&[request(64, 8, times)], &[io(64, 8, 100_000, 650_000)]);
        assert_eq!(parts_of(&breakdown, 0), [20_000, 10_000, 500_000, 20_000]);
        let [flow] = &breakdown.flows[..] else { panic!("{breakdown:?}") };
        assert_eq!((flow.ios, flow.without_request, flow.bands.len()), (1, 0, 1));
        assert_eq!(flow.whole().sum.service_time(), Span(550_000));
        let slow = breakdown.slowest[0].request.unwrap();
        assert_eq!((slow.in_flight, slow.began_on_cpu, slow.completed_on_cpu), (1, 1, 2));
    }

    #[test]
    fn an_io_without_its_request_is_told() {
        let other_place = request(72, 8, (120_000, 130_000, 630_000));
        let too_early = request(64, 8, (10_000, 20_000, 50_000));
        let too_late = request(64, 8, (700_000, 710_000, 720_000));
        let half = request(64, 4, (120_000, 130_000, 630_000));
        let failed = BlockRequest { failed: true, ..request(64, 8, (120_000, 130_000, 630_000)) };
        let unknown = OwnIo { piece: None, ..io(64, 8, 100_000, 650_000) };
        for (requests, io) in [
            (
                Vec::from([other_place, too_early, too_late, half, failed]),
                io(64, 8, 100_000, 650_000),
            ),
            (Vec::from([request(64, 8, (120_000, 130_000, 630_000))]), unknown),
        ] {
            let breakdown = met(&requests, &[io]);
            assert_eq!((breakdown.flows[0].ios, breakdown.flows[0].without_request), (0, 1));
            assert_eq!(breakdown.slowest[0].request, None);
            assert_eq!(breakdown.slowest[0].service_time, Span(550_000));
        }
    }

    #[test]
    fn an_io_that_was_split_ends_with_its_last_request() {
        let requests = [
            request(64, 8, (120_000, 130_000, 630_000)),
            request(72, 8, (125_000, 135_000, 500_000)),
            // Behind a hole in the file's place on the disk.
            request(1000, 4, (126_000, 300_000, 700_000)),
        ];
        let far = DiskRange { device: DISK, sector: 1000, sectors: 4 };
        let whole = OwnIo { others: Vec::from([far]), ..io(64, 16, 100_000, 705_000) };
        let breakdown = met(&requests, &[whole]);
        assert_eq!(parts_of(&breakdown, 0), [26_000, 174_000, 400_000, 5_000]);
    }

    #[test]
    fn ios_that_were_merged_share_a_request() {
        let requests = [request(64, 24, (120_000, 150_000, 600_000))];
        let ios = [
            io(64, 8, 100_000, 650_000),
            io(72, 8, 130_000, 660_000),
            // It came when the request was on its way already, which cannot be; nothing is negative.
            io(80, 8, 160_000, 590_000),
        ];
        let breakdown = met(&requests, &ios);
        assert_eq!(breakdown.flows[0].ios, 3);
        assert_eq!(parts_of(&breakdown, 0), [20_000, 30_000, 450_000, 50_000]);
        assert_eq!(parts_of(&breakdown, 1), [0, 20_000, 450_000, 60_000]);
        assert_eq!(parts_of(&breakdown, 2), [0, 0, 430_000, 0]);
    }

    #[test]
    fn the_host_and_other_programs_are_told_of_the_time_of_a_slow_io() {
        let mut matching = Matching::default();
        let look = |at, stolen, throttled, writeback| HostLook {
            at: Instant(at),
            stolen: Span(stolen),
            throttled: Span(throttled),
            writeback: Bytes(writeback),
        };
        for looked in
            [look(0, 5, 1, 0), look(90, 10, 1, 0), look(400, 10, 3, 7), look(700, 30, 4, 2)]
        {
            let at = Instant(looked.at.0 * 1000);
            matching.host(HostLook { at, ..looked });
        }
        let other = |program, operation, completed| BlockRequest {
            program,
            operation,
            ..request(0, 8, (0, 0, completed))
        };
        for others in [
            other(1, Operation::Write, 90_000),
            other(1, Operation::Write, 110_000),
            other(2, Operation::Read, 200_000),
            other(2, Operation::Write, 300_000),
            other(3, Operation::Flush, 300_000),
        ] {
            matching.others(&others);
        }
        matching.own(&request(64, 8, (120_000, 130_000, 630_000)));
        matching.others(&other(2, Operation::Write, 651_000));
        matching.io(io(64, 8, 100_000, 650_000));
        // Not all of its time has been heard of.
        matching.settle(Instant(650_000));
        assert!(matching.flows.is_empty());
        matching.settle(Instant(700_000));
        let slow = &matching.end(|number| format!("program {number}")).slowest[0];
        let neighbors: Vec<_> =
            slow.neighbors.iter().map(|it| (it.program.as_str(), it.ios, it.bytes.0)).collect();
        assert_eq!(neighbors, [("program 2", 2, 8192), ("program 1", 1, 4096)]);
        let host = slow.host.unwrap();
        assert_eq!((host.over, host.stolen, host.throttled), (Span(610_000), Span(20), Span(3)));
        assert_eq!(host.writeback_bytes, Bytes(7));
        // Four of the others end after it began, and it counts itself.
        assert_eq!(slow.request.unwrap().in_flight, 5);
    }

    #[test]
    fn a_band_of_quantiles_has_its_ios_alone() {
        let ios = 2000;
        let time = |number: u64| 100_000 + number * 5000;
        let requests: Vec<_> =
            (0..ios).map(|number| request(number * 8, 8, (0, 10, time(number)))).collect();
        let own: Vec<_> =
            (0..ios).map(|number| io(number * 8, 8, 0, time(number) + 1000)).collect();
        let breakdown = met(&requests, &own);
        let flow = &breakdown.flows[0];
        // Two I/Os are above the 99.9th percentile: too few for a band.
        let bands: Vec<_> = flow.bands.iter().map(|band| (band.from.0, band.to.0)).collect();
        assert_eq!(bands, [(0.0, 0.5), (0.5, 0.9), (0.9, 0.99), (0.99, 1.0)]);
        assert_eq!(flow.bands.iter().map(|band| band.ios).sum::<u64>(), ios);
        // A bucket is a percent wide at most.
        for (band, part) in flow.bands.iter().zip([0.5, 0.4, 0.09, 0.01]) {
            let share = band.ios as f64 / ios as f64;
            assert!((share - part).abs() < 0.006, "{band:?}");
        }
        let device = |band: &Band| band.means().unwrap()[2];
        assert!(flow.bands.windows(2).all(|two| device(&two[0]) < device(&two[1])));
        assert_eq!(breakdown.slowest.len(), SLOWEST);
        let slowest: Vec<u64> = breakdown.slowest.iter().map(|it| it.service_time.0).collect();
        let expected: Vec<u64> =
            (0..ios).rev().take(SLOWEST).map(|number| time(number) + 1000).collect();
        assert_eq!(slowest, expected);
    }

    #[test]
    fn requests_that_no_io_claims_take_a_bounded_room() {
        let mut matching = Matching::default();
        for number in 0..REQUESTS_MAX as u64 + 100 {
            matching.own(&request(number * 8, 8, (0, 1, number + 10)));
            matching.others(&request(number * 8, 8, (0, 1, number + 10)));
        }
        assert_eq!(matching.waiting.len(), REQUESTS_MAX);
        assert_eq!(matching.order.len(), REQUESTS_MAX);
        assert_eq!(matching.recent.len(), RECENT_MAX);
    }

    proptest! {
        /// However a file system splits and the block layer merges: each I/O finds its requests, and
        /// its parts are its service time.
        #[test]
        fn the_sum_of_the_parts_is_the_service_time(
            ios in proptest::collection::vec((1u64..64, 0u64..1000, 1u64..1000), 1..40),
            cuts in proptest::collection::vec(1u64..100, 1..400),
        ) {
            let mut sector = 5;
            let mut own = Vec::new();
            for (sectors, start, length) in &ios {
                let (from, to) = (20_000 + start, 60_000 + start + length);
                own.push(io(sector, *sectors, from, to));
                sector += sectors;
            }
            let mut requests = Vec::new();
            let mut at = 5;
            for cut in cuts.iter().cycle() {
                let sectors = (*cut).min(sector - at);
                requests.push(request(at, sectors, (30_000, 30_000 + cut, 40_000 + cut)));
                at += sectors;
                if at == sector {
                    break;
                }
            }
            requests.sort_by_key(|request| request.completed);
            let service: u64 = own.iter().map(|io| io.completed.since(io.submitted).0).sum();
            let mut matching = Matching::default();
            requests.iter().for_each(|request| matching.own(request));
            own.iter().for_each(|io| matching.io(io.clone()));
            matching.settle(Instant(1_000_000));
            prop_assert!(matching.waiting.is_empty(), "{:?}", matching.waiting);
            let breakdown = matching.end(|_| String::new());
            prop_assert_eq!(breakdown.flows[0].ios, ios.len() as u64);
            prop_assert_eq!(breakdown.flows[0].whole().sum.service_time(), Span(service));
        }
    }
}
