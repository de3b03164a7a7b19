//! Runs experiments to their end on simulated devices, as a session does: point by point, with
//! looks, and with each trial at its time in the session.

use std::sync::atomic::AtomicBool;

use fathom_core::Span;
use fathom_core::experiment::{Experiment, Planned, Step};
use fathom_core::measure::Record;
use fathom_core::spec::BackendKind;
use fathom_core::trial::Trial;
use fathom_core::verdict::Severity;
use fathom_engine::{Devices, Observer, run_point, sim};

/// An axis that says on which device a point runs, by the device's index.
pub const TARGETS: &str = "targets";

/// The noise of a device: the changes of its speed that do not come from the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// No noise.
    None,
    /// 3 % between trials and 3 % within them.
    Little,
    /// 10 % between trials and 10 % within them.
    Much,
    /// As `Little`, and a fifth slower at the end of the session than at its start.
    Drift,
    /// As `Little`, and for a seventh of the session others take most of the device.
    Burst,
}

/// The length of a trial, which has 20 intervals.
pub const WINDOW: Span = Span::from_secs(2);

impl Noise {
    /// All noises, in the order of the table.
    pub const ALL: [Self; 5] = [Self::None, Self::Little, Self::Much, Self::Drift, Self::Burst];

    /// The heading of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Little => "3 %",
            Self::Much => "10 %",
            Self::Drift => "drift",
            Self::Burst => "burst",
        }
    }

    /// The lowest mean speed that this noise gives a device over a trial, without chance.
    pub fn slowest(self) -> f64 {
        match self {
            Self::None | Self::Little | Self::Much => 1.0,
            Self::Drift => 1.0 + DRIFT,
            Self::Burst => 1.0 - TAKEN,
        }
    }

    /// The standard deviation of the speed between trials, and within them.
    pub fn deviation(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Little | Self::Drift | Self::Burst => 0.03,
            Self::Much => 0.10,
        }
    }

    /// The device with this noise, in a session of this length.
    pub fn on(self, device: &sim::Options, session: Span, seed: u64) -> sim::Options {
        let deviation = self.deviation();
        let mut noise = sim::Noise {
            within: deviation,
            between: deviation,
            every: Span::from_ms(100),
            correlation: CORRELATION,
            ..device.noise.clone()
        };
        match self {
            Self::None | Self::Little | Self::Much => {}
            Self::Drift => noise.drift = Some(sim::Drift { change: DRIFT, over: session }),
            Self::Burst => {
                let (start, length) = burst(session, seed);
                noise.foreign = Some(sim::Stall { start, length, every: None });
                noise.foreign_share = TAKEN;
            }
        }
        sim::Options { noise, seed: seed.wrapping_mul(1_000_003) + 17, ..device.clone() }
    }
}

/// The correlation of neighboring tenths of a second: an event in a device lasts for about half a
/// second.
const CORRELATION: f64 = 0.7;

/// The relative change of the speed over the session that drift causes.
const DRIFT: f64 = -0.2;

/// The share of the speed that the foreign burst takes.
const TAKEN: f64 = 0.6;

/// The start and the length of the burst. The start may be anywhere in the session.
pub fn burst(session: Span, seed: u64) -> (Span, Span) {
    let place = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
    let length = session.0 / 7;
    (Span((place * (session.0 - length) as f64) as u64), Span(length))
}

/// The outcome of a session.
pub struct Session {
    /// The sentences of its conclusion.
    pub sentences: Vec<String>,
    /// The trials, in their order.
    pub trials: Vec<Seen>,
    /// The codes of the doubts that the experiment raised about its trials.
    pub doubts: Vec<&'static str>,
    /// The assumed length, on which drift and burst depend.
    pub length: Span,
    /// The actual length.
    pub lasted: Span,
}

/// The figures that are kept of a trial.
#[derive(Clone, Debug)]
pub struct Seen {
    /// "queue-depth 32, block-size 64k".
    pub name: String,
    /// The time in the session at which it began.
    pub began: Span,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

/// Runs an experiment to its end. Each device is one target. Drift and burst assume a session of
/// the given length.
pub fn run(
    experiment: &mut dyn Experiment,
    devices: &[sim::Options],
    (noise, length): (Noise, Span),
    seed: u64,
) -> Session {
    let devices: Vec<sim::Options> =
        devices.iter().map(|device| noise.on(device, length, seed)).collect();
    let mut loaded = Span(0);
    let (mut last, mut trials, mut doubts) = (None, Vec::new(), Vec::new());
    loop {
        let planned = match experiment.next(last.take().as_ref()) {
            Step::Run(planned) => *planned,
            Step::Done(conclusion) => {
                let sentences = conclusion.sentences;
                let lasted = loaded;
                return Session { sentences, trials, doubts, length, lasted };
            }
        };
        let place = planned.place.coordinates.iter().find(|one| one.axis == TARGETS);
        let place = place.and_then(|one| one.value).unwrap_or(0.0) as usize;
        let device = devices[place].at(loaded);
        let mut trial = trial(planned, &device, experiment);
        let held = experiment.doubts(&trial);
        trial.is_void = held.iter().any(|one| one.severity == Severity::Void);
        doubts.extend(held.iter().map(|one| one.code));
        trials.push(seen(&trial, loaded));
        loaded += trial.point.time();
        last = Some(trial);
    }
}

fn seen(trial: &Trial, began: Span) -> Seen {
    let seconds = trial.record.window.as_secs_f64().max(1e-9);
    let total = trial.record.total(None);
    let names = trial.place.coordinates.iter().map(|one| format!("{} {}", one.axis, one.label));
    Seen {
        name: names.collect::<Vec<_>>().join(", "),
        began,
        iops: total.ios() as f64 / seconds,
        bandwidth: total.bytes.0 as f64 / seconds,
    }
}

/// Runs one trial, which may end at a look, as in a session.
pub fn trial(planned: Planned, device: &sim::Options, experiment: &dyn Experiment) -> Trial {
    let never = AtomicBool::new(false);
    let devices = Devices::Simulated(device);
    let record = run_point(&planned.point, devices, &never, &mut Enough(experiment));
    Trial {
        place: planned.place,
        point: planned.point,
        backend: BackendKind::Sim,
        backend_reason: String::new(),
        started_unix_ns: 0,
        record: record.expect("a simulated device can always be opened"),
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    }
}

struct Enough<'a>(&'a dyn Experiment);

impl Observer for Enough<'_> {
    fn look(&mut self, so_far: &Record) -> bool {
        self.0.enough(so_far)
    }
}
