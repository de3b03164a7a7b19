//! The pace of a stream's I/Os: how many are in flight, the rate at which they start, and how the
//! loop rests.

use fathom_core::plan::worker_count;
use fathom_core::spec::{
    Active, Arrivals, BlockSizes, Loop, OfferedLoad, Pacing, RestFrom, Rests, Stream, Workers,
};

use fathom_core::{Bytes, Rate, Span, count};

use super::times::{self, Times};
use super::workers::{too_deep, too_many_workers};
use crate::cli::described::StreamArgs;
use crate::cli::options::{ArrivalsArg, LoadArgs};
use crate::cli::rates::{Offer, Offered, Shares};
use crate::cli::values::Depth;
use crate::error::Error;
use crate::limits::{MOST, MOST_DUE, RATES};

/// The default queue depth of a closed loop.
const DEFAULT_DEPTH: u32 = 32;

/// The default for the most in flight in an open loop.
const DEFAULT_DEPTH_OPEN: u32 = 1024;

/// The largest memory for the buffers of this default.
const DEFAULT_BUFFERS: Bytes = Bytes(256 * Bytes::MIB);

/// The pace of a stream with this load, for the times in which it has load.
pub(super) fn pacing(
    args: &StreamArgs,
    spread: (u32, u64),
    sizes: &BlockSizes,
    (times, active): (Times, Active),
) -> Result<Pacing, Error> {
    let load = &args.load;
    let queue_depth = queue_depth(load, spread, sizes)?;
    let offered = offered_load(load, spread.0, sizes);
    if let Some(offered) = &offered {
        possible_rate(offered, sizes, times)?;
    }
    let pace = match (offered, rests(load)?) {
        (None, rests) => Loop::Closed { queue_depth, rests },
        (Some(offered), rests) => Loop::Open {
            load: match (offered, rests) {
                (OfferedLoad::Steady(rate), Rests::Bursts { ios, rest, .. }) => {
                    OfferedLoad::Bursts { rate, ios, rest }
                }
                (offered, _) => offered,
            },
            arrivals: load.arrivals.map_or(Arrivals::Poisson, Arrivals::from),
            queue_depth_max: queue_depth,
            realtime: load.realtime,
        },
    };
    Ok(Pacing { pace, active, limit: times::limit(load)? })
}

/// Threads that issue the load of a stream with this number of targets.
fn workers(load: &LoadArgs, targets: u32) -> u64 {
    match load.workers {
        Workers::PerTarget(n) => u64::from(n) * u64::from(targets),
        Workers::Total(n) => u64::from(n),
    }
}

/// The most in flight, of all workers together.
fn queue_depth(
    load: &LoadArgs,
    (targets, disks): (u32, u64),
    sizes: &BlockSizes,
) -> Result<u32, Error> {
    let workers = workers(load, targets);
    if workers > u64::from(MOST) {
        return Err(too_many_workers(workers));
    }
    let typed = load.queue_depth.map(|depth| match depth {
        Depth::Stream(n) => u64::from(n),
        Depth::PerWorker(n) => u64::from(n) * workers,
        Depth::PerTarget(n) => u64::from(n) * u64::from(targets),
        Depth::PerDisk(n) => u64::from(n) * disks,
    });
    let default = match load.rate {
        None => u64::from(DEFAULT_DEPTH),
        Some(_) => u64::from(DEFAULT_DEPTH_OPEN)
            .min(DEFAULT_BUFFERS.0 / sizes.largest().0)
            .max(u64::from(DEFAULT_DEPTH)),
    };
    let depth = typed.unwrap_or(default.max(workers));
    match u32::try_from(depth) {
        Ok(depth) if depth <= MOST => Ok(depth),
        _ => Err(too_deep(depth)),
    }
}

/// The offered load of an open loop, before any rests; none in a closed loop.
fn offered_load(load: &LoadArgs, targets: u32, sizes: &BlockSizes) -> Option<OfferedLoad> {
    let (workers, targets) = (workers(load, targets), u64::from(targets));
    let shares = Shares { workers, targets, block: sizes.mean(load.read_share) };
    Some(match load.rate.as_ref()?.of_stream(shares) {
        Offer::Steady(rate) => OfferedLoad::Steady(rate),
        Offer::Course(course) => OfferedLoad::Course(course),
    })
}

/// Refuses a rate at which more I/Os would fall due than can be counted.
///
/// # Errors
///
/// When there are more in this time.
pub fn countable(option: &str, rate: Rate, (due, time): (f64, Span)) -> Result<(), Error> {
    if due <= MOST_DUE {
        return Ok(());
    }
    Err(Error::option(
        option,
        format!("{rate} for {time} are more than {} I/Os", count(MOST_DUE as u64)),
        "choose a lower rate or a shorter time, as with --duration",
    ))
}

/// Refuses a load that no clock can offer, or that cannot be counted, and a course that does not
/// fit the window.
fn possible_rate(load: &OfferedLoad, sizes: &BlockSizes, times: Times) -> Result<(), Error> {
    let refuse = |problem, remedy: &str| Err(Error::option("--rate", problem, remedy));
    let mean = load.mean(times.window);
    let (course, typed) = match load {
        OfferedLoad::Steady(rate) | OfferedLoad::Bursts { rate, .. } => (None, Vec::from([*rate])),
        OfferedLoad::Course(course) => {
            let stages = course.stages().iter().flat_map(|stage| [stage.begins, stage.ends]);
            // A stage may have no load, and the mean of a course may have any value.
            (Some(course), stages.filter(|rate| rate.0 > 0.0).collect())
        }
    };
    if let Some(rate) = typed.iter().find(|rate| !RATES.contains(&rate.0)) {
        return refuse(
            format!("it comes to {} I/Os of {sizes} per second, outside of 0.001 to 1000m", rate.0),
            "choose another rate or another --block-size",
        );
    }
    let time = times.warm_up + times.window + times.cool_down;
    let due = match course {
        Some(course) => course.after(times.warm_up).ios_before(time),
        None => mean.0 * time.as_secs_f64(),
    };
    countable("--rate", mean, (due, time))?;
    let Some(course) = course else { return Ok(()) };
    if course.length() > times.window {
        return refuse(
            format!(
                "its stages take {}, and the window ends after {}",
                course.length(),
                times.window
            ),
            "drop --duration, choose a longer one, or choose shorter stages",
        );
    }
    if mean.0 <= 0.0 {
        return refuse("the rate is 0 all the time".to_owned(), "give a stage a rate above 0");
    }
    Ok(())
}

/// The rests of a closed loop.
fn rests(load: &LoadArgs) -> Result<Rests, Error> {
    let typed = [("--think-time", load.think_time), ("--burst", load.burst)];
    let mut typed = typed.into_iter().filter_map(|(option, rests)| Some((option, rests?)));
    let Some((option, rests)) = typed.next() else { return Ok(Rests::None) };
    if typed.next().is_some() {
        return Err(Error::option(
            "--burst",
            "a loop rests after each I/O or after each burst, not both",
            "drop it, or drop --think-time",
        ));
    }
    match (load.rate.is_some(), rests) {
        (true, Rests::Bursts { .. }) => rests_between_bursts(load, rests),
        (true, _) => Err(Error::option(
            option,
            "a schedule starts the I/Os of an open loop, whatever completes",
            "drop it, or drop --rate; a pause in a course is a stage such as '0 for 5s'",
        )),
        (false, _) => Ok(rests),
    }
}

/// The rests of an open loop: by its schedule alone.
fn rests_between_bursts(load: &LoadArgs, rests: Rests) -> Result<Rests, Error> {
    let Rests::Bursts { ios, rest, from } = rests else { return Ok(rests) };
    let refuse = |problem: &str, remedy: String| Err(Error::option("--burst", problem, remedy));
    if from == RestFrom::LastCompletion {
        return refuse(
            "in an open loop no rest can begin with a completion",
            format!(
                "count it from the last start, as in --burst {ios}/start:{}, or drop --rate",
                rest.to_string().replace(' ', "")
            ),
        );
    }
    if load.arrivals != Some(ArrivalsArg::Uniform) {
        return refuse(
            "Poisson arrivals are independent of each other, and those of a burst are not",
            "add --arrivals uniform".to_owned(),
        );
    }
    match load.rate.as_ref().and_then(Offered::length) {
        None => Ok(rests),
        Some(_) => refuse(
            "a course has rests of its own, which this would shift",
            "drop it; a pause in a course is a stage such as '0 for 5s'".to_owned(),
        ),
    }
}

/// Refuses rests in which more I/Os fall due than a burst holds: the rate could not be kept.
pub(super) fn rests_fit(stream: &Stream) -> Result<(), Error> {
    let Loop::Open { load: OfferedLoad::Bursts { rate, ios, rest }, .. } = stream.pacing.pace
    else {
        return Ok(());
    };
    let each = rate.0 / f64::from(worker_count(stream));
    let takes = Span((f64::from(ios) / each * 1e9) as u64);
    // Rounding must not refuse a rest that is exactly as long.
    if rest.0 <= takes.0 + 1 {
        return Ok(());
    }
    Err(Error::option(
        "--burst",
        format!(
            "{ios} I/Os of a worker fall due in {takes}, so with rests of {rest} the rate cannot be \
             kept"
        ),
        "choose larger bursts, shorter rests or a lower --rate",
    ))
}
