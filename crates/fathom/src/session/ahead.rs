//! Points on simulated devices that run before their turn, on CPUs that would otherwise be idle.
//!
//! Such a trial depends neither on the machine nor on other trials: its record follows from the
//! point and the device. So the points that an experiment foresees run on separate threads, and a
//! record counts when its turn comes and the experiment asks for exactly this point. The guesses at
//! its looks are checked then, and after a wrong guess the point runs once more. So the results are
//! exactly those of one trial after the other, with any number of CPUs.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fathom_core::measure::Record;
use fathom_core::spec::Point;
use fathom_engine::{Devices, Observer, Progress, RunError, run_point, sim};

use crate::signals;

/// The most that run at once. Each holds the distributions of its workers.
const AT_ONCE_MAX: usize = 16;

/// How many are begun and not asked for yet, for each running one: some take longer than others.
const BEGUN: usize = 2;

/// The time between two checks for a request to stop.
const NAP: Duration = Duration::from_millis(50);

/// A point that will probably be asked for.
pub struct Task {
    /// The point.
    pub point: Point,
    /// Its device.
    pub device: sim::Options,
    /// The probable answers at its looks.
    pub enough: Box<dyn Fn(&Record) -> bool + Send>,
}

/// The messages of a runner, in the order of the events.
enum Told {
    Progress(Progress),
    /// The record at a look, and the guess.
    Look(Box<Record>, bool),
    Done(Result<Record, RunError>),
}

/// A point that runs before its turn, or has run. It is given up when it is dropped.
pub struct Runner {
    point: Point,
    device: sim::Options,
    told: Receiver<Told>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The points that run before their turn.
pub struct Ahead {
    at_once: usize,
    /// How many runners are at work.
    working: Arc<AtomicUsize>,
    /// In the order in which they will be asked for.
    runners: VecDeque<Runner>,
    /// The points after them.
    tasks: VecDeque<Task>,
}

impl Ahead {
    /// This many at once, including the thread that asks for them; with 1 none runs before its
    /// turn.
    pub fn new(at_once: usize) -> Self {
        Self {
            at_once: at_once.clamp(1, AT_ONCE_MAX),
            working: Arc::default(),
            runners: VecDeque::new(),
            tasks: VecDeque::new(),
        }
    }

    /// As many as this process has CPUs.
    pub fn on_all_cpus() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// How many points it wants to know after the one whose turn it is.
    pub fn most(&self) -> usize {
        match self.at_once {
            1 => 0,
            at_once => BEGUN * at_once,
        }
    }

    /// How many of them are begun.
    pub fn begun(&self) -> usize {
        self.runners.len()
    }

    /// Returns the runner of a point whose turn it is, if there is one. If it is not the first of
    /// them, the experiment took another way than was foreseen: then all are given up.
    pub fn take(&mut self, point: &Point, device: &sim::Options) -> Option<Runner> {
        let first = self.runners.pop_front()?;
        if first.point == *point && first.device == *device {
            return Some(first);
        }
        self.runners.clear();
        None
    }

    /// These come after those that are begun, and replace the earlier list.
    pub fn expect(&mut self, tasks: VecDeque<Task>) {
        self.tasks = tasks;
    }

    /// Runs a point whose turn it is, or waits for its runner.
    ///
    /// # Errors
    ///
    /// As [`run_point`].
    pub fn run(
        &mut self,
        runner: Option<Runner>,
        (point, device): (&Point, &sim::Options),
        observer: &mut dyn Observer,
    ) -> Result<Record, RunError> {
        if let Some(done) = runner.and_then(|runner| self.follow(runner, observer)) {
            return done;
        }
        // One of them is this thread.
        self.begin(self.at_once);
        run_point(point, Devices::Simulated(device), signals::stop(), observer)
    }

    /// Waits for a runner and lets others begin meanwhile. Returns none if the answer at a look
    /// differs from the guess.
    fn follow(
        &mut self,
        mut runner: Runner,
        observer: &mut dyn Observer,
    ) -> Option<Result<Record, RunError>> {
        loop {
            // One more than there are CPUs: none of them idles while this thread writes a trial down.
            self.begin(self.at_once + 1);
            if signals::came().is_some() {
                runner.stop.store(true, Ordering::Relaxed);
            }
            match runner.told.recv_timeout(NAP) {
                Ok(Told::Progress(progress)) => observer.progress(&progress),
                Ok(Told::Look(so_far, guess)) if observer.look(&so_far) == guess => {}
                Ok(Told::Look(..)) => return None,
                Ok(Told::Done(record)) => return Some(record),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => runner.fall(),
            }
        }
    }

    /// Begins expected points, until this many are at work.
    fn begin(&mut self, at_once: usize) {
        while self.runners.len() < self.most() && self.working.load(Ordering::Relaxed) < at_once {
            let Some(task) = self.tasks.pop_front() else { return };
            match Runner::start(task, Working::one_more(&self.working)) {
                Some(runner) => self.runners.push_back(runner),
                // A machine without a spare thread runs one after the other.
                None => self.at_once = 1,
            }
        }
    }
}

/// Counts a runner for as long as it is at work.
struct Working(Arc<AtomicUsize>);

impl Working {
    fn one_more(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Runner {
    /// Starts it; none if there is no thread for it.
    fn start(task: Task, working: Working) -> Option<Self> {
        let Task { point, device, enough } = task;
        let (tell, told) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (own_point, own_device, own_stop) = (point.clone(), device.clone(), Arc::clone(&stop));
        let run = move || {
            let mut teller = Teller { tell, enough };
            let devices = Devices::Simulated(&own_device);
            let record = run_point(&own_point, devices, &own_stop, &mut teller);
            drop(working);
            teller.tell(Told::Done(record));
        };
        let thread = thread::Builder::new().name("ahead".to_owned()).spawn(run).ok()?;
        Some(Self { point, device, told, stop, thread: Some(thread) })
    }

    /// It ended without a record: its error will occur here too.
    fn fall(&mut self) -> ! {
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Err(panic)) => resume_unwind(panic),
            _ => unreachable!("a runner tells its record before it ends"),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The messages of a runner that was given up are ignored.
            let _ = thread.join();
        }
    }
}

/// Sends a runner's events to the thread that will ask for it.
struct Teller {
    tell: Sender<Told>,
    enough: Box<dyn Fn(&Record) -> bool + Send>,
}

impl Teller {
    fn tell(&self, told: Told) {
        // There is no receiver for one that was given up.
        let _ = self.tell.send(told);
    }
}

impl Observer for Teller {
    fn progress(&mut self, progress: &Progress) {
        self.tell(Told::Progress(progress.clone()));
    }

    fn look(&mut self, so_far: &Record) -> bool {
        let guess = (self.enough)(so_far);
        self.tell(Told::Look(Box::new(so_far.clone()), guess));
        guess
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::{Pacing, Rated, Region, Stream};
    use fathom_core::{Bytes, Span};

    use super::*;

    /// Decides at each look whether `enough` I/Os are enough, and counts the calls.
    struct Watches {
        enough: u64,
        looks: u32,
        told: u32,
    }

    fn is_enough(so_far: &Record, enough: u64) -> bool {
        enough <= so_far.total(None).ios()
    }

    impl Observer for Watches {
        fn progress(&mut self, _: &Progress) {
            self.told += 1;
        }

        fn look(&mut self, so_far: &Record) -> bool {
            self.looks += 1;
            is_enough(so_far, self.enough)
        }
    }

    fn device() -> sim::Options {
        "queue,servers=8,service-time=100us,distribution=exponential,noise=10%".parse().unwrap()
    }

    fn point(seed: u64) -> Point {
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 30) };
        let stream = Stream {
            pacing: Pacing::closed(1 + seed as u32 % 8),
            ..Stream::reading("test", Vec::from([region]))
        };
        Point {
            name: format!("point {seed}"),
            streams: Vec::from([stream]),
            warm_up: Span::from_ms(100),
            window: Span::from_ms(800),
            cool_down: Span(0),
            interval: Span::from_ms(100),
            buckets: None,
            looks: Vec::from([Span::from_ms(200), Span::from_ms(500)]),
            seed,
            rated: Rated::default(),
        }
    }

    /// Runs points with these seeds. Each is forecast to follow the one before it if it is in
    /// `foreseen`, with this guess at all looks. Returns the records and how many points ran before
    /// their turn.
    fn run(
        seeds: &[u64],
        foreseen: &[u64],
        at_once: usize,
        guess: fn(&Record) -> bool,
    ) -> (Vec<Record>, usize) {
        let mut ahead = Ahead::new(at_once);
        let (mut records, mut before) = (Vec::new(), 0);
        for (place, &seed) in seeds.iter().enumerate() {
            let (point_here, device) = (point(seed), device());
            let runner = ahead.take(&point_here, &device);
            before += usize::from(runner.is_some());
            let task = |&seed: &u64| Task {
                point: point(seed),
                device: device.clone(),
                enough: Box::new(guess),
            };
            let after = foreseen.iter().skip(place + 1).take(ahead.most()).skip(ahead.begun());
            ahead.expect(after.map(task).collect());
            let mut watches = Watches { enough: 12_000, looks: 0, told: 0 };
            let record = ahead.run(runner, (&point_here, &device), &mut watches).unwrap();
            assert!(watches.looks > 0 && watches.told > 0);
            records.push(record);
        }
        (records, before)
    }

    const SEEDS: [u64; 9] = [3, 1, 4, 15, 9, 2, 6, 5, 35];

    #[test]
    fn what_ran_before_its_turn_is_what_runs_in_it() {
        let right = |so_far: &Record| is_enough(so_far, 12_000);
        let (expected, before) = run(&SEEDS, &SEEDS, 1, right);
        assert_eq!(before, 0);
        // Some ended at the first look, some at the second, and some ran to their end.
        let windows = [200, 500, 800]
            .map(|ms| expected.iter().filter(|record| record.window == Span::from_ms(ms)).count());
        assert!(windows.iter().all(|&count| 0 < count), "{windows:?}");
        for at_once in [2, 3, 40] {
            let (records, before) = run(&SEEDS, &SEEDS, at_once, right);
            assert!(records == expected, "{at_once}");
            assert_eq!(before, SEEDS.len() - 1);
        }
    }

    #[test]
    fn a_wrong_guess_changes_nothing() {
        let (expected, _) = run(&SEEDS, &SEEDS, 1, |_| false);
        let guesses: [fn(&Record) -> bool; 2] = [|_| false, |_| true];
        for wrong in guesses {
            assert!(run(&SEEDS, &SEEDS, 3, wrong).0 == expected);
        }
        // The experiment departs from the forecast at its fourth point, and twice more after that.
        let others = [3, 1, 4, 16, 17, 18, 6, 5, 36];
        let (records, before) = run(&SEEDS, &others, 3, |_| false);
        assert!(records == expected);
        assert!((2..8).contains(&before), "{before}");
    }

    #[test]
    fn what_was_begun_and_is_not_asked_for_ends() {
        let mut ahead = Ahead::new(4);
        let long = |seed| Point { window: Span::from_secs(3_600_000), ..point(seed) };
        let task = |seed| Task { point: long(seed), device: device(), enough: Box::new(|_| false) };
        ahead.expect((1..20).map(task).collect());
        ahead.begin(4);
        assert_eq!((ahead.begun(), ahead.working.load(Ordering::Relaxed)), (4, 4));
        assert!(ahead.take(&long(77), &device()).is_none());
        assert_eq!((ahead.begun(), ahead.working.load(Ordering::Relaxed)), (0, 0));
    }
}
