//! How long a long simulated run will take, in real time: virtual time does not show it. A device
//! that simulates a second in a microsecond and one that takes a second for it look alike
//! beforehand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fathom_core::Span;
use fathom_core::spec::Point;
use fathom_engine::{Devices, Nobody, run_point, sim};

use super::place::Place;
use crate::live::clock;

/// A run that takes less virtual time is over before anybody wonders.
const LONG: Span = Span::from_secs(600);
/// The real time of the rehearsal.
const LOOK: Duration = Duration::from_millis(200);
/// On a busy machine a rehearsal may have no CPU for all of its time.
const TRIES: u32 = 5;

/// The real time of a run of this much virtual time that begins with this point, in a line; none if
/// it is short, or not simulated. The run itself repeats the rehearsed part.
pub fn forecast(place: &Place, point: &Point, all: Span) -> Option<String> {
    match place {
        Place::Simulated { options, .. } if LONG <= all => {
            let real = clock((0..TRIES).find_map(|_| real_time(options, point, all))?);
            let about = if real.starts_with("under") { "" } else { "about " };
            Some(format!(
                "real     {about}{real} for {} of virtual time, at the pace of its first moments on this \
                 machine, as busy as it is",
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
        // An error is reported when it is to run. Without a warm-up all of it is in the record.
        let point = Point { warm_up: Span(0), ..point.clone() };
        let record = run_point(&point, Devices::Simulated(device), &stop, &mut Nobody).ok()?;
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
        // Years, which this test would never reach.
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
