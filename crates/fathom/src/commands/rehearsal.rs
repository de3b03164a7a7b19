//! How long a long simulated run will take, in real time: virtual time says nothing of that. A device
//! of which a second is done in a microsecond and one of which it takes a second look alike before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fathom_core::Span;
use fathom_core::spec::Point;
use fathom_engine::{Devices, Observer, Phase, Progress, run_point, sim};

use super::place::Place;
use crate::live::clock;

/// What takes less in virtual time is over before anybody wonders.
const LONG: Span = Span::from_secs(600);
/// How long is looked, in real time.
const LOOK: Duration = Duration::from_millis(200);

/// Nobody watches.
struct Unwatched;

impl Observer for Unwatched {
    fn phase(&mut self, _: Phase, _: Span) {}

    fn progress(&mut self, _: &Progress) {}
}

/// What a run of so much virtual time that begins with this point will take, in a line; none where it is
/// short, or not simulated. What is looked at is done anew in the run itself.
pub fn forecast(place: &Place, point: &Point, all: Span) -> Option<String> {
    match place {
        Place::Simulated { options, .. } if LONG <= all => {
            let real = real_time(options, point, all)?;
            Some(format!(
                "real     about {} for {} of virtual time, at the pace of its first moments on this \
                 machine, as busy as it is",
                clock(real),
                clock(all)
            ))
        }
        _ => None,
    }
}

fn real_time(device: &sim::Options, point: &Point, all: Span) -> Option<Span> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Not at the end of an interval, which may last for days.
        let ender = || {
            std::thread::sleep(LOOK);
            stop.store(true, Ordering::SeqCst);
        };
        let builder = std::thread::Builder::new().name("look".to_owned());
        builder.spawn_scoped(scope, ender).ok()?;
        let begun = Instant::now();
        // What cannot run says so when it is to run. Without a warm-up all of it is in the record.
        let point = Point { warm_up: Span(0), ..point.clone() };
        let record = run_point(&point, Devices::Simulated(device), &stop, &mut Unwatched).ok()?;
        let spent = begun.elapsed().as_nanos() as f64;
        let reached = Some(record.window).filter(|reached| *reached > Span(0))?;
        Some(Span((spent * all.0 as f64 / reached.0 as f64) as u64))
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use fathom_core::Bytes;
    use fathom_core::spec::{Region, Stream};

    use super::*;

    #[test]
    fn what_is_long_is_looked_at_and_not_run_to_its_end() {
        let place = Place::find(&[PathBuf::from("sim:queue,service-time=100us")]).unwrap();
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 30) };
        let stream = Stream::reading("test", Vec::from([region]));
        // Years: this test would never end.
        let years = Span::from_secs(100_000_000);
        let point = |window| Point {
            interval: Span::from_secs(1),
            ..Point::of(Vec::from([stream.clone()]), window)
        };
        let told = forecast(&place, &point(years), years).unwrap();
        assert!(told.starts_with("real     about ") && told.contains("27777:46:40 h"), "{told}");
        assert!(!told.contains("under 1 s"), "{told}");
        let short = Span::from_secs(60);
        assert_eq!(forecast(&place, &point(short), short), None);
    }
}
