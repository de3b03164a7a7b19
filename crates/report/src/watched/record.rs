//! Makes the lines of a watch, while it goes on.

use fathom_core::Span;
use fathom_core::watch::{Caused, Counted, Observed};

use super::{OTHERS, ObservedSlice, ProgramShare, WatchLine, WatchStretch};

/// The intervals of a stretch: a minute of seconds.
const INTERVALS: usize = 60;
/// Distributions are of one interval as long as a disk has fewer of them; then each is of twice as
/// many intervals, until there are as many again, and so on. A day of seconds has 5,000 of them.
const SLICES: u64 = 720;
/// The programs that a stretch names.
const PROGRAMS: usize = 20;

/// One disk.
#[derive(Debug, Default)]
struct DiskRecord {
    stretch: WatchStretch,
    /// What was observed since the last slice, and when it began.
    slice: Observed,
    slice_start: Option<Span>,
    /// The intervals in it, and the slices so far.
    in_slice: u64,
    slices: u64,
    programs: Vec<(String, Caused)>,
}

/// Makes the lines.
#[derive(Debug)]
pub struct Recorder {
    disks: Vec<DiskRecord>,
}

impl Recorder {
    /// For this many disks.
    pub fn new(disks: usize) -> Self {
        let disk = |place| DiskRecord {
            stretch: WatchStretch { disk: place, ..WatchStretch::default() },
            ..DiskRecord::default()
        };
        Self { disks: (0..disks as u32).map(disk).collect() }
    }

    /// Takes one disk in an interval. `name` tells the name of a program.
    pub fn take(
        &mut self,
        disk: usize,
        (start, end): (Span, Span),
        counted: Option<&Counted>,
        observed: Option<&Observed>,
        name: &dyn Fn(u32) -> String,
    ) {
        let disk = &mut self.disks[disk];
        if let Some(counted) = counted {
            disk.stretch.counted.push(start, counted);
        }
        if let Some(observed) = observed {
            disk.observe(start, end, observed);
            disk.count(observed, name);
        }
    }

    /// Adds what watching cost in an interval.
    pub fn cost(&mut self, lost_events: u64, own_cpu: Span) {
        if let Some(first) = self.disks.first_mut() {
            first.stretch.lost_events += lost_events;
            first.stretch.own_cpu_ns += own_cpu.0;
        }
    }

    /// The lines that are due after an interval; at the end all that are left.
    pub fn lines(&mut self, is_end: bool) -> Vec<WatchLine> {
        self.disks.iter_mut().filter_map(|disk| disk.line(is_end)).collect()
    }
}

impl DiskRecord {
    fn observe(&mut self, start: Span, end: Span, observed: &Observed) {
        self.slice_start.get_or_insert(start);
        for (flow, new) in [
            (&mut self.slice.reads, &observed.reads),
            (&mut self.slice.writes, &observed.writes),
            (&mut self.slice.discards, &observed.discards),
            (&mut self.slice.flushes, &observed.flushes),
        ] {
            flow.merge(new);
        }
        self.slice.without_data += observed.without_data;
        self.in_slice += 1;
        if 1 << (self.slices / SLICES).min(30) <= self.in_slice {
            self.end_slice(end);
        }
    }

    fn end_slice(&mut self, end: Span) {
        let observed = std::mem::take(&mut self.slice);
        if let Some(start) = self.slice_start.take() {
            self.stretch.observed.push(ObservedSlice::new(start, end, &observed));
            self.slices += 1;
        }
        self.in_slice = 0;
    }

    fn count(&mut self, observed: &Observed, name: &dyn Fn(u32) -> String) {
        for (program, caused) in &observed.programs {
            let name = name(*program);
            match self.programs.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => sum.add(caused),
                None => self.programs.push((name, *caused)),
            }
        }
    }

    fn line(&mut self, is_end: bool) -> Option<WatchLine> {
        let counted = &self.stretch.counted;
        if !is_end && counted.start_ns.len() < INTERVALS {
            return None;
        }
        if is_end {
            let end = counted.start_ns.last().zip(counted.length_ns.last());
            let end = end.map_or(Span(0), |(start, length)| Span(start + length));
            self.end_slice(self.slice_start.map_or(end, |start| end.max(start)));
        }
        let disk = self.stretch.disk;
        let next = WatchStretch { disk, ..WatchStretch::default() };
        let mut stretch = std::mem::replace(&mut self.stretch, next);
        stretch.programs = named(std::mem::take(&mut self.programs));
        let is_empty = stretch.counted.start_ns.is_empty() && stretch.observed.is_empty();
        (!is_empty).then(|| WatchLine::Stretch(Box::new(stretch)))
    }
}

/// The programs that caused most, and all others as one.
fn named(mut programs: Vec<(String, Caused)>) -> Vec<ProgramShare> {
    programs.sort_by_key(|(_, caused)| std::cmp::Reverse(caused.ios()));
    let others = programs.split_off(programs.len().min(PROGRAMS));
    let mut named: Vec<ProgramShare> =
        programs.iter().map(|(name, caused)| ProgramShare::new(name.clone(), caused)).collect();
    if !others.is_empty() {
        let mut sum = Caused::default();
        others.iter().for_each(|(_, caused)| sum.add(caused));
        named.push(ProgramShare::new(OTHERS, &sum));
    }
    named
}

#[cfg(test)]
pub mod tests {
    use fathom_core::watch::{BlockRequest, CountedFlow, Operation};
    use fathom_core::{Bytes, Instant};

    use super::*;

    fn at(interval: u64) -> (Span, Span) {
        (Span::from_secs(interval), Span::from_secs(interval + 1))
    }

    fn counted(ios: u64) -> Counted {
        let reads = CountedFlow {
            ios,
            bytes: Bytes(ios * 4096),
            time: Span::from_us(ios * 100),
            ..CountedFlow::default()
        };
        Counted {
            length: Span::from_secs(1),
            reads,
            busy: Span::from_ms(ios.min(1000)),
            weighted: Span::from_us(ios * 100),
            in_flight: 1,
            ..Counted::default()
        }
    }

    fn observed(ios: u64, program: u32) -> Observed {
        let mut observed = Observed::default();
        for number in 0..ios {
            observed.take(&BlockRequest {
                device: (8, 0),
                operation: Operation::Read,
                sector: number * 8,
                bytes: 4096,
                program,
                sequential: number > 0,
                failed: false,
                queued: Some(Instant(0)),
                issued: Some(Instant(10_000)),
                completed: Instant(100_000 + 500 * number),
                cpus: (0, 0),
            });
        }
        observed
    }

    /// The lines of a watch of this many seconds: 5 reads each, and 50 in each second of the third
    /// minute.
    pub fn lines_of(seconds: u64) -> Vec<WatchLine> {
        let mut recorder = Recorder::new(1);
        let mut lines = Vec::new();
        for second in 0..seconds {
            let ios = if (120..180).contains(&second) { 50 } else { 5 };
            let name = |program: u32| format!("program {program}");
            let program = (second % 30) as u32;
            let (counted, observed) = (counted(ios), observed(ios, program));
            recorder.take(0, at(second), Some(&counted), Some(&observed), &name);
            recorder.cost(u64::from(second == 7), Span::from_us(10));
            lines.extend(recorder.lines(false));
        }
        lines.extend(recorder.lines(true));
        lines
    }

    fn stretches(lines: &[WatchLine]) -> Vec<&WatchStretch> {
        let mut stretches = Vec::new();
        for line in lines {
            let WatchLine::Stretch(stretch) = line else { panic!("{line:?}") };
            stretches.push(&**stretch);
        }
        stretches
    }

    #[test]
    fn each_minute_is_a_line_and_the_end_is_not_lost() {
        let lines = lines_of(150);
        let stretches = stretches(&lines);
        let intervals: Vec<usize> =
            stretches.iter().map(|stretch| stretch.counted.start_ns.len()).collect();
        assert_eq!(intervals, [60, 60, 30]);
        let ios: u64 = stretches.iter().flat_map(|it| &it.observed).map(|it| it.reads.ios).sum();
        assert_eq!(ios, 120 * 5 + 30 * 50);
        let lost: Vec<u64> = stretches.iter().map(|stretch| stretch.lost_events).collect();
        assert_eq!(lost, [1, 0, 0]);
        // 20 programs have names, and 10 more are others.
        assert_eq!(stretches[0].programs.len(), 21);
        let programs: u64 = stretches[0].programs.iter().map(|program| program.reads).sum();
        assert_eq!(programs, 300);
    }

    #[test]
    fn distributions_become_longer_so_that_a_long_watch_has_few_of_them() {
        let lines = lines_of(4000);
        let stretches = stretches(&lines);
        let slices: Vec<_> = stretches.iter().flat_map(|it| &it.observed).collect();
        // 720 of a second, 720 of two seconds, the rest of four.
        assert_eq!(slices.len(), 720 + 720 + (4000 - 3 * 720) / 4);
        assert!(slices.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        assert_eq!(slices.last().unwrap().end_ns, Span::from_secs(4000).0);
    }

    #[test]
    fn a_disk_that_is_gone_leaves_no_empty_lines() {
        let mut recorder = Recorder::new(2);
        recorder.take(1, at(0), Some(&counted(1)), None, &|_| String::new());
        let lines = recorder.lines(true);
        assert_eq!(stretches(&lines).iter().map(|it| it.disk).collect::<Vec<_>>(), [1]);
        assert_eq!(recorder.lines(true), []);
    }
}
