//! Values that only the command line knows: each reads what people type, and refuses what could
//! mean two things.

use fathom_core::experiment::{Test, Watch};
use fathom_core::spec::{
    BackendKind, Hint, IoPriority, Limit, Objective, Payload, RestFrom, Rests, SubmissionThread,
    SyncMode, Workers, hex,
};
use fathom_core::{Bytes, ParseUnitError, Quantile, Span};

use crate::limits::{MOST, SHORTEST_INTERVAL};

/// A queue depth as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// For the whole stream.
    Stream(u32),
    /// For each worker.
    PerWorker(u32),
    /// For each target.
    PerTarget(u32),
    /// For each disk that a target is spread over.
    PerDisk(u32),
}

/// A block size as typed, or several with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(pub Vec<(Bytes, f64)>);

impl Sizes {
    /// The same for every I/O.
    pub fn one(size: Bytes) -> Self {
        Self(Vec::from([(size, 1.0)]))
    }
}

/// Reads "4k", or "4k/60,64k/40": sizes with weights, of which only the proportions matter; percent
/// have to make up 100.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let one = |part: &str| -> Result<(Bytes, f64, bool), String> {
        let Some((bytes, typed)) = part.split_once('/') else {
            return Err(format!("'{part}' has no weight: write 4k/60,64k/40"));
        };
        let (number, is_percent) = match typed.trim().strip_suffix('%') {
            Some(number) => (number, true),
            None => (typed.trim(), false),
        };
        match number.trim().parse::<f64>() {
            Ok(weight) if weight > 0.0 && weight.is_finite() => {
                let bytes = size(bytes).map_err(|error| error.to_string())?;
                Ok((bytes, weight, is_percent))
            }
            _ => Err(format!("'{typed}' is no weight: write a number above 0, as in 4k/60")),
        }
    };
    if !text.contains(['/', ',']) {
        let only = size(text).map_err(|error| error.to_string())?;
        return Ok(Sizes::one(only));
    }
    let parts: Vec<(Bytes, f64, bool)> = text.split(',').map(one).collect::<Result<_, _>>()?;
    let percents = parts.iter().filter(|(_, _, is_percent)| *is_percent).count();
    let sum: f64 = parts.iter().map(|(_, weight, _)| weight).sum();
    if percents > 0 && percents < parts.len() {
        return Err(
            "some weights have a % and some have none: write it with all or with none".into()
        );
    }
    if percents > 0 && (sum - 100.0).abs() > 1e-6 {
        return Err(format!("the shares add up to {sum} %, not 100 %"));
    }
    Ok(Sizes(parts.into_iter().map(|(bytes, weight, _)| (bytes, weight)).collect()))
}

/// The weights of targets as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(pub Vec<f64>);

/// Reads "70,30": numbers above 0, of which only the proportions matter.
pub fn weights(text: &str) -> Result<Weights, String> {
    let one = |part: &str| match part.trim().parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight.is_finite() => Ok(weight),
        _ => Err(format!("'{part}' is no weight: write a number above 0 for each target: 70,30")),
    };
    text.split(',').map(one).collect::<Result<_, _>>().map(Weights)
}

/// A backend as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The best one that works here.
    Auto,
    /// This one.
    Named(BackendKind),
}

/// Reads a number of workers or of I/Os in flight.
pub fn count(text: &str) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(n) if (1..=MOST).contains(&n) => Ok(n),
        _ => Err(format!("'{text}' is no number from 1 to {MOST}")),
    }
}

/// Reads whole numbers within these bounds.
pub fn whole<T: TryFrom<u32> + 'static>(
    least: u32,
    most: u32,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.trim().parse::<u32>().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match most {
            u32::MAX => format!("'{text}' is not possible; write a whole number from {least} on"),
            _ => format!("'{text}' is not possible; write a whole number from {least} to {most}"),
        })
    }
}

/// Splits "8/worker" into 8 and "worker".
fn split_suffix(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        // Something was meant to follow.
        Some((_, per)) if per.trim().is_empty() => (text, ""),
        Some(parts) => parts,
        None => (text, ""),
    }
}

/// Reads `32`, `8/worker`, `8/target`, `8/disk`.
pub fn depth(text: &str) -> Result<Depth, String> {
    let (number, per) = split_suffix(text);
    let number =
        count(number).map_err(|why| format!("{why}: write 32, 8/worker, 8/target or 8/disk"))?;
    match per.trim() {
        "" | "total" => Ok(Depth::Stream(number)),
        "worker" => Ok(Depth::PerWorker(number)),
        "target" => Ok(Depth::PerTarget(number)),
        "disk" => Ok(Depth::PerDisk(number)),
        other => Err(format!("'/{other}' is unknown: write 32, 8/worker, 8/target or 8/disk")),
    }
}

/// Reads `4`, `4/target`, `4/total`.
pub fn workers(text: &str) -> Result<Workers, String> {
    let (number, per) = split_suffix(text);
    let number = count(number).map_err(|why| format!("{why}: write 4, 4/target or 4/total"))?;
    match per.trim() {
        "" | "target" => Ok(Workers::PerTarget(number)),
        "total" => Ok(Workers::Total(number)),
        other => Err(format!("'/{other}' is unknown: write 4, 4/target or 4/total")),
    }
}

/// Reads `70%` and `0.7`. A bare `70` may be meant as a share of reads or, as in DiskSpd, of
/// writes, and a bare `1` as 1 % or as everything: both are refused.
pub fn share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = |digits: &str| match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("this is not a share: write 70% or 0.7".to_owned()),
    };
    match text.strip_suffix('%') {
        Some(percent) => match number(percent)? {
            percent if percent <= 100.0 => Ok(percent / 100.0),
            _ => Err("a share cannot be above 100%: write 70% or 0.7".to_owned()),
        },
        None => match number(text)? {
            1.0 if !text.contains('.') => {
                Err("this could mean 1% or all: write 1% or 100%".to_owned())
            }
            part if part <= 1.0 => Ok(part),
            percent => Err(format!("the unit is missing: write {percent}% or {}", percent / 100.0)),
        },
    }
}

/// Reads a whole number of 64 bits.
pub fn seed(text: &str) -> Result<u64, String> {
    let usage = format!("write a whole number from 0 to {}", u64::MAX);
    text.trim().parse().map_err(|_| format!("this is no seed: {usage}"))
}

/// Reads `21x21`: steps of one load by steps of another, those of no load included.
pub fn grid(text: &str) -> Result<(u32, u32), String> {
    const STEPS: std::ops::RangeInclusive<u32> = 2..=101;
    let usage = format!("write 21x21, each from {} to {}", STEPS.start(), STEPS.end());
    let steps = |part: &str| part.trim().parse::<u32>().ok().filter(|n| STEPS.contains(n));
    match text.split_once(['x', 'X']) {
        Some((one, other)) => match (steps(one), steps(other)) {
            (Some(one), Some(other)) => Ok((one, other)),
            _ => Err(format!("these are no numbers of steps: {usage}")),
        },
        None => Err(format!("this is no grid: {usage}")),
    }
}

/// Reads `99.9` and `p99.9`.
pub fn percentile(text: &str) -> Result<Quantile, String> {
    let text = text.trim();
    match text.strip_prefix(['p', 'P']).unwrap_or(text).parse::<f64>() {
        // In steps of a billionth: 99.9 / 100 is not quite 0.999 in binary.
        Ok(percent) if 0.0 < percent && percent < 100.0 => {
            Ok(Quantile((percent * 1e9).round() / 1e11))
        }
        _ => {
            Err("this is no percentile: write numbers between 0 and 100, such as 50,95,99.9".into())
        }
    }
}

/// Reads the length of an interval.
pub fn watch_interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|cause: ParseUnitError| cause.to_string())?;
    match SHORTEST_INTERVAL <= span {
        true => Ok(span),
        false => Err(format!("{span} is too short: the shortest interval is {SHORTEST_INTERVAL}")),
    }
}

/// Reads how long a coordinator may be silent. It says something every second.
pub fn lease(text: &str) -> Result<Span, String> {
    const SHORTEST: Span = Span::from_secs(2);
    let span: Span = text.parse().map_err(|cause: ParseUnitError| cause.to_string())?;
    match SHORTEST <= span {
        true => Ok(span),
        false => Err(format!("{span} is too short: the shortest lease is {SHORTEST}")),
    }
}

/// Reads `4k`, `12.8MiB`, `1g`. A size that is no whole number of bytes, as 12.8 MiB is, cannot be
/// meant to the byte: it becomes a whole number of pages of 4 KiB, which every device can do.
pub fn size(text: &str) -> Result<Bytes, ParseUnitError> {
    const PAGE: u64 = 4096;
    let bytes: Bytes = text.parse()?;
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let exact = match number.split_once('.') {
        None => true,
        Some((_, decimals)) => {
            let unit: Bytes = format!("1{unit}").parse()?;
            let digits: u128 = number.replace('.', "").parse().unwrap_or(0);
            let parts = 10u128.checked_pow(decimals.len() as u32);
            let total = digits.checked_mul(u128::from(unit.0));
            matches!((total, parts), (Some(total), Some(parts)) if total.is_multiple_of(parts))
        }
    };
    if exact || bytes.0 < PAGE {
        return Ok(bytes);
    }
    Ok(Bytes((bytes.0 + PAGE / 2) / PAGE * PAGE))
}

/// Reads `1ms` and `exponential:1ms`: a think time.
pub fn think_time(text: &str) -> Result<Rests, String> {
    let (exponential, time) = match text.split_once(':') {
        Some((kind, time)) if kind.trim() == "exponential" => (true, time),
        Some((kind, _)) => {
            return Err(format!("'{kind}:' is unknown: write 1ms or exponential:1ms"));
        }
        None => (false, text),
    };
    Ok(Rests::Think { time: rest(time)?, exponential })
}

/// Reads `16/100ms` and `16/start:100ms`: a number of I/Os, and then a rest.
pub fn bursts(text: &str) -> Result<Rests, String> {
    let Some((ios, time)) = text.split_once('/') else {
        return Err(format!("'{text}' has no rest: write 16/100ms for 16 I/Os and then 100 ms"));
    };
    let (from, time) = match time.split_once(':') {
        Some((kind, time)) if kind.trim() == "start" => (RestFrom::LastStart, time),
        Some((kind, _)) => {
            return Err(format!("'{kind}:' is unknown: write 16/100ms or 16/start:100ms"));
        }
        None => (RestFrom::LastCompletion, time),
    };
    match ios.trim().parse::<u32>() {
        Ok(ios) if ios > 0 => Ok(Rests::Bursts { ios, rest: rest(time)?, from }),
        _ => Err(format!("'{ios}' is no number of I/Os: write 16/100ms")),
    }
}

/// Reads `10g` and `1m ios`: what is to be done.
pub fn stop_after(text: &str) -> Result<Limit, String> {
    let lower = text.trim().to_ascii_lowercase();
    let Some(number) = lower.strip_suffix("ios") else {
        return match size(text).map_err(|error| format!("{error}; or I/Os, such as 1m ios"))? {
            Bytes(0) => Err("nothing is done at once: write 10g or 1m ios".to_owned()),
            bytes => Ok(Limit::Bytes(bytes)),
        };
    };
    let number = number.trim_end();
    let (digits, factor) = match number.chars().last() {
        Some('k') => (&number[..number.len() - 1], 1e3),
        Some('m') => (&number[..number.len() - 1], 1e6),
        Some('g') => (&number[..number.len() - 1], 1e9),
        _ => (number, 1.0),
    };
    match digits.trim_end().parse::<f64>().map(|number| number * factor) {
        Ok(ios) if (1.0..=1e12).contains(&ios) && ios.fract() == 0.0 => Ok(Limit::Ios(ios as u64)),
        _ => Err(format!("'{text}' is no number of I/Os: write 1000ios or 1m ios")),
    }
}

/// A rest that is one.
fn rest(text: &str) -> Result<Span, String> {
    match text.parse::<Span>().map_err(|error| error.to_string())? {
        Span(0) => Err("a rest of no time is none: leave it out".to_owned()),
        span => Ok(span),
    }
}

/// Reads `random`, `zeros`, `ramp`, `hex:DEADBEEF`, `pool:16m` and `pool:16m,FILE`.
pub fn payload(text: &str) -> Result<Payload, String> {
    let usage = "write random, zeros, ramp, hex:DEADBEEF, pool:16m or pool:16m,FILE";
    match text.split_once(':') {
        None => match text.trim() {
            "random" => Ok(Payload::UNIQUE),
            "zeros" => Ok(Payload::Zeros),
            "ramp" => Ok(Payload::ramp()),
            other => Err(format!(
                "{}: {usage}",
                unknown(other, &["random", "zeros", "ramp", "hex:DEADBEEF", "pool:16m"])
            )),
        },
        Some(("hex", digits)) => {
            match hex::bytes(digits.trim()).filter(|bytes| !bytes.is_empty()) {
                Some(bytes) => Ok(Payload::Pattern(bytes)),
                None => {
                    Err("bytes are pairs of the digits 0 to F, such as hex:DEADBEEF".to_owned())
                }
            }
        }
        Some(("pool", pool)) => {
            let (length, file) = match pool.split_once(',') {
                Some((_, "")) => return Err(format!("the file's name is missing: {usage}")),
                Some((length, file)) => (length, Some(file.into())),
                None => (pool, None),
            };
            let size = size(length).map_err(|error| error.to_string())?;
            Ok(Payload::Pool { size, file })
        }
        Some((kind, _)) => Err(format!("'{kind}:' is unknown: {usage}")),
    }
}

/// Reads `auto`, `uring`, `aio`, `sync`.
pub fn backend(text: &str) -> Result<Backend, String> {
    match text {
        "auto" => Ok(Backend::Auto),
        "uring" | "io_uring" => Ok(Backend::Named(BackendKind::Uring)),
        "aio" | "libaio" => Ok(Backend::Named(BackendKind::Aio)),
        "sync" => Ok(Backend::Named(BackendKind::Sync)),
        _ => Err(format!(
            "{}: the backends are auto, uring, aio and sync",
            unknown(text, &["auto", "uring", "aio", "sync"])
        )),
    }
}

/// Reads `dsync`: when a write is durable.
pub fn sync_mode(text: &str) -> Result<SyncMode, String> {
    let known = SyncMode::ALL.into_iter().find(|mode| mode.name() == text);
    known.ok_or_else(|| {
        let unknown = unknown(text, &SyncMode::ALL.map(SyncMode::name));
        format!("{unknown}: the modes are none, dsync, sync, rwf-dsync and rwf-sync")
    })
}

/// Reads `random`: how the page cache will be used.
pub fn hint(text: &str) -> Result<Hint, String> {
    match text {
        "willneed" => Err("the kernel reads about 1 MiB for it, whatever the target's size: read \
                           the target once before, such as with --pattern sequential"
            .to_owned()),
        _ => Hint::ALL.into_iter().find(|hint| hint.name() == text).ok_or_else(|| {
            let unknown = unknown(text, &Hint::ALL.map(Hint::name));
            format!("{unknown}: the hints are normal, sequential, random, noreuse and dontneed")
        }),
    }
}

/// The message about an unknown word: the one that was probably meant, if one resembles it.
fn unknown(typed: &str, known: &[&str]) -> String {
    match nearest(typed, known.iter().copied()) {
        Some(near) => format!("'{typed}' is unknown (did you mean '{near}'?)"),
        None => format!("'{typed}' is unknown"),
    }
}

/// The window of an official run; none if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Official(pub Option<Span>);

/// Reads `5m` and `none`.
pub fn official(text: &str) -> Result<Official, String> {
    match text.trim() {
        "none" => Ok(Official(None)),
        time => match time.parse() {
            Ok(Span(0)) => Err("nothing is measured in no time: write 5m, or none".to_owned()),
            Ok(span) => Ok(Official(Some(span))),
            Err(why) => Err(format!("{why}; or none")),
        },
    }
}

/// How often everything is written beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes(pub u32);

/// Reads `2` and `none`.
pub fn passes(text: &str) -> Result<Passes, String> {
    match (text.trim(), text.trim().parse()) {
        ("none", _) => Ok(Passes(0)),
        (_, Ok(times @ 0..=100)) => Ok(Passes(times)),
        _ => Err(format!("'{text}' is no number up to 100: write 2, or none")),
    }
}

/// Reads `p99<=2ms`: a percentile of the response time and its bound.
pub fn objective(text: &str) -> Result<Objective, String> {
    let usage = "write a percentile and its bound, such as 'p99<=2ms'";
    let split = ["<=", "\u{2264}", "<"].iter().find_map(|sign| text.split_once(sign));
    let Some((percentile, bound)) = split else {
        return Err(format!("there is no <= in it: {usage}"));
    };
    let bound = time_limit(bound)?;
    if bound == Span(0) {
        return Err(format!("nothing takes no time: {usage}"));
    }
    Ok(Objective { quantile: percentile_of(percentile)?, bound })
}

/// Reads a time with its unit. A bare number means seconds elsewhere, and milliseconds to most people
/// who type a limit of response times.
pub fn time_limit(text: &str) -> Result<Span, String> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return Err(format!("'{text}' has no unit: write {text}ms or {text}s"));
    }
    text.parse().map_err(|why| format!("{why}"))
}

/// Reads `p99.9`: from p50 to p99.999.
pub fn percentile_of(text: &str) -> Result<Quantile, String> {
    let text = text.trim();
    if ["mean", "avg", "average"].contains(&text.to_ascii_lowercase().as_str()) {
        return Err("a mean hides what people wait for: name a percentile such as p99".to_owned());
    }
    let number = text.strip_prefix(['p', 'P']).and_then(|digits| digits.parse::<f64>().ok());
    match number {
        // Rounded, so that 99.9 is the 0.999 of the reports.
        Some(percent) if (50.0..=99.999).contains(&percent) => {
            Ok(Quantile((percent * 1e7).round() / 1e9))
        }
        _ => Err(format!("'{text}' is no percentile from p50 to p99.999")),
    }
}

/// Reads the name of a test of `fathom sustain`.
pub fn test(text: &str) -> Result<Test, String> {
    Test::ALL.into_iter().find(|test| test.name() == text).ok_or_else(|| {
        let names: Vec<&str> = Test::ALL.iter().map(|test| test.name()).collect();
        format!("the tests are {}", names.join(", "))
    })
}

/// Reads `iops`, `bandwidth`, `mean`, `p99`.
pub fn watch(text: &str) -> Result<Watch, String> {
    match text.trim() {
        "iops" => Ok(Watch::Iops),
        "bandwidth" => Ok(Watch::Bandwidth),
        "mean" => Ok(Watch::MeanTime),
        other => percentile_of(other)
            .map(Watch::Time)
            .map_err(|why| format!("{why}; or write iops, bandwidth or mean")),
    }
}

/// Reads `any` and `3`: the CPU of a submission thread.
pub fn submission_thread(text: &str) -> Result<SubmissionThread, String> {
    match text.trim() {
        "any" => Ok(SubmissionThread { cpu: None }),
        number => match number.parse() {
            Ok(cpu) => Ok(SubmissionThread { cpu: Some(cpu) }),
            Err(_) => Err(format!("'{text}' is no CPU: write its number, such as --sqpoll=3")),
        },
    }
}

/// The CPUs of a stream's workers as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// These, one after the other.
    List(Vec<u32>),
    /// Those of a NUMA node.
    Node(u32),
    /// One of each NUMA node, one node after the other.
    Nodes,
    /// One of each core first.
    Cores,
    /// Those of the NUMA node to which the device is attached.
    Device,
}

/// The largest number of CPUs that can be listed.
const CPUS: usize = 4096;

/// Reads "0-3,8", "node:0", "nodes", "cores" and "device".
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let wrong = || {
        format!(
            "'{text}' is no list of CPUs: write numbers such as 0-3,8, or node:0, nodes, cores, \
             device"
        )
    };
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
    match text.trim() {
        "nodes" => return Ok(Cpus::Nodes),
        "cores" => return Ok(Cpus::Cores),
        "device" => return Ok(Cpus::Device),
        typed => {
            if let Some(node) = typed.strip_prefix("node:") {
                return Ok(Cpus::Node(number(node)?));
            }
        }
    }
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first || CPUS <= list.len() + (last - first) as usize {
            return Err(wrong());
        }
        list.extend(first..=last);
    }
    Ok(Cpus::List(list))
}

/// Reads "realtime:0", "best-effort:7" and "idle".
pub fn io_priority(text: &str) -> Result<IoPriority, String> {
    text.parse()
}

/// The name among `known` that was probably meant.
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Like clap for options.
    const ALIKE: f64 = 0.7;
    let scored = known.map(|name| (strsim::jaro(typed, name), name));
    let best = scored.filter(|(score, _)| *score > ALIKE);
    best.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_or_described() {
        assert_eq!(cpus("0-3,8"), Ok(Cpus::List(Vec::from([0, 1, 2, 3, 8]))));
        assert_eq!(cpus("5, 1"), Ok(Cpus::List(Vec::from([5, 1]))));
        assert_eq!(cpus("node:1"), Ok(Cpus::Node(1)));
        assert_eq!(cpus("nodes"), Ok(Cpus::Nodes));
        assert_eq!(cpus("cores"), Ok(Cpus::Cores));
        assert_eq!(cpus("device"), Ok(Cpus::Device));
        for text in ["", "x", "3-1", "1,", "-1", "node:", "0-4294967295", "core"] {
            assert!(cpus(text).unwrap_err().contains("node:0"), "{text}");
        }
    }

    #[test]
    fn io_priorities_have_a_class_and_a_level() {
        assert_eq!(io_priority("realtime:0"), Ok(IoPriority::RealTime(0)));
        assert_eq!(io_priority("best-effort:7"), Ok(IoPriority::BestEffort(7)));
        assert_eq!(io_priority("idle"), Ok(IoPriority::Idle));
        for text in ["", "realtime", "realtime:8", "idle:1", "best-effort:-1", "low"] {
            assert!(io_priority(text).unwrap_err().contains("best-effort:7"), "{text}");
        }
    }

    #[test]
    fn a_share_needs_a_unit_unless_it_is_a_fraction() {
        for (text, value) in
            [("70%", 0.7), ("0.7", 0.7), ("0", 0.0), ("100%", 1.0), ("1.0", 1.0), ("0.5 %", 0.005)]
        {
            assert!((share(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        assert_eq!(share("70").unwrap_err(), "the unit is missing: write 70% or 0.7");
        for text in ["1", "101%", "-1%", "x", "", "%", "nan", "inf", "1.5"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_that_is_no_whole_number_of_bytes_becomes_whole_pages() {
        for (text, bytes) in [
            ("12.8MiB", 3277 * 4096),
            ("12.8MB", 12_800_000),
            ("1.5k", 1536),
            ("0.1g", 26_214 * 4096),
            ("4097", 4097),
            ("13421773", 13_421_773),
        ] {
            assert_eq!(size(text), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "4x", "1.2.3k", "0.3", "0.0000000000000000000000000000000000000001k"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depths_and_workers_say_what_they_are_per() {
        assert_eq!(depth("32"), Ok(Depth::Stream(32)));
        assert_eq!(depth("8/worker"), Ok(Depth::PerWorker(8)));
        assert_eq!(depth("8/target"), Ok(Depth::PerTarget(8)));
        assert_eq!(depth("8/disk"), Ok(Depth::PerDisk(8)));
        assert_eq!(workers("4"), Ok(Workers::PerTarget(4)));
        assert_eq!(workers("4/target"), Ok(Workers::PerTarget(4)));
        assert_eq!(workers("4/total"), Ok(Workers::Total(4)));
        for text in ["0", "-1", "x", "8/thread", "70000", "", "1.5", "8/", "/"] {
            assert!(depth(text).is_err() && workers(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_payload_is_one_of_five() {
        assert_eq!(payload("random"), Ok(Payload::UNIQUE));
        assert_eq!(payload("zeros"), Ok(Payload::Zeros));
        assert_eq!(payload("hex:00fF"), Ok(Payload::Pattern(Box::from([0, 255]))));
        let Ok(Payload::Pattern(ramp)) = payload("ramp") else { panic!("a ramp is a pattern") };
        assert_eq!((ramp.len(), ramp[0], ramp[255]), (256, 0, 255));
        let pool = |size, file: Option<&str>| Payload::Pool {
            size: Bytes(size),
            file: file.map(std::path::PathBuf::from),
        };
        assert_eq!(payload("pool:1m"), Ok(pool(1 << 20, None)));
        assert_eq!(payload("pool:4k,a,b:c"), Ok(pool(4096, Some("a,b:c"))));
        for text in
            ["", "one", "hex:", "hex:0", "hex:0g", "hex:é0", "pool:", "pool:x", "pool:4k,", "zip:1"]
        {
            assert!(payload(text).is_err(), "{text}");
        }
    }

    #[test]
    fn weights_are_numbers_above_nothing() {
        assert_eq!(weights("70, 30"), Ok(Weights(Vec::from([70.0, 30.0]))));
        assert_eq!(weights("0.5"), Ok(Weights(Vec::from([0.5]))));
        for text in ["", "1,", "0,1", "-1", "1/2", "70%,30%", "inf", "nan"] {
            assert!(weights(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rests_are_think_times_or_follow_bursts() {
        let think = |us, exponential| Ok(Rests::Think { time: Span::from_us(us), exponential });
        assert_eq!(think_time("1ms"), think(1000, false));
        assert_eq!(think_time("exponential:250us"), think(250, true));
        let burst = |from| Ok(Rests::Bursts { ios: 16, rest: Span::from_ms(100), from });
        assert_eq!(bursts("16/100ms"), burst(RestFrom::LastCompletion));
        assert_eq!(bursts("16/start:100ms"), burst(RestFrom::LastStart));
        assert!(bursts("16/end:100ms").unwrap_err().contains("16/start:100ms"));
        for text in ["", "0s", "1", "-1ms", "poisson:1ms", "exponential:", "exponential:0s"] {
            // A number without a unit means seconds, as for every time.
            assert_eq!(think_time(text).is_ok(), text == "1", "{text}");
        }
        for text in ["16", "0/1ms", "16/", "16/0s", "/1ms", "x/1ms", "1.5/1ms"] {
            assert!(bursts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_amount_is_bytes_or_ios() {
        for (text, limit) in [
            ("10g", Limit::Bytes(Bytes(10 << 30))),
            ("500MB", Limit::Bytes(Bytes(500_000_000))),
            ("1m ios", Limit::Ios(1_000_000)),
            ("1.5kIOs", Limit::Ios(1500)),
            ("7ios", Limit::Ios(7)),
        ] {
            assert_eq!(stop_after(text), Ok(limit), "{text}");
        }
        for text in ["", "0", "0ios", "1.5ios", "-1ios", "ios", "10x", "1e30ios", "nanios"] {
            assert!(stop_after(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_objective_is_a_percentile_and_a_bound() {
        let of = |quantile, bound| Ok(Objective { quantile: Quantile(quantile), bound });
        assert_eq!(objective("p99<=2ms"), of(0.99, Span::from_ms(2)));
        assert_eq!(objective(" p99.9 < 500us "), of(0.999, Span::from_us(500)));
        assert_eq!(objective("p99.999\u{2264}1s"), of(0.99999, Span::from_secs(1)));
        for text in
            ["", "p99", "p99<=", "p49<=1ms", "p99.9999<=1ms", "99<=1ms", "p99>=1ms", "p99<=0"]
        {
            assert!(objective(text).is_err(), "{text}");
        }
        assert!(objective("mean<=2ms").unwrap_err().contains("a mean hides"));
        assert!(objective("p99<=2").unwrap_err().contains("'2' has no unit: write 2ms or 2s"));
    }

    #[test]
    fn what_may_be_left_out_is_none() {
        assert_eq!(official("5m"), Ok(Official(Some(Span::from_secs(300)))));
        assert_eq!((official("none"), passes("none")), (Ok(Official(None)), Ok(Passes(0))));
        assert_eq!(passes("2"), Ok(Passes(2)));
        assert!(official("0").is_err() && official("x").is_err() && passes("-1").is_err());
        assert_eq!(watch("p99.9"), Ok(Watch::Time(Quantile(0.999))));
        assert!(watch("p1").is_err() && test("snia").is_err());
        assert_eq!(test("write-saturation"), Ok(Test::WriteSaturation));
    }

    #[test]
    fn a_backend_is_one_of_four() {
        assert_eq!(backend("auto"), Ok(Backend::Auto));
        assert_eq!(backend("aio"), Ok(Backend::Named(BackendKind::Aio)));
        assert!(backend("sim").is_err() && backend("mmap").is_err());
    }
}
