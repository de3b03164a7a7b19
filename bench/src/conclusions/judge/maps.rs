//! The sentences of a latency map of a device with one exponential server, 2000 I/Os a second.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fathom_core::SplitMix64;

use super::{Heard, Judged, between};
use crate::conclusions::lab::Noise;

/// The I/Os that the device serves per second.
const SERVED: f64 = 2000.0;

/// The share of a load that may be left over if the load still counts as carried, as set in the
/// bench's maps.
const BEHIND: f64 = 0.03;

/// How much the number of arrivals by chance differs from one trial of 3 s to the next: twice the
/// relative standard deviation of the number of I/Os that the device serves in that time.
const ARRIVALS: f64 = 0.026;

/// The steps of the grid: a fifth of the writer's maximum, in bytes per second, and a fifth of the
/// readers' maximum.
const WRITE_STEP: f64 = 800.0 / 5.0;
const READ_STEP: f64 = 1900.0 / 5.0;

/// The response times of reads at p95 and p99, in nanoseconds.
#[derive(Clone, Copy)]
struct Slow {
    p95: f64,
    p99: f64,
}

/// How slow reads are beside the given rate of writes. The model is one server that takes I/Os in turn
/// and has exponential service times. Reads arrive by chance, and writes evenly. There is no closed
/// form for this, so the function simulates many reads.
fn slow(reads: f64, writes: f64, served: f64) -> Slow {
    static KNOWN: Mutex<BTreeMap<[u64; 3], Slow>> = Mutex::new(BTreeMap::new());
    if served <= reads + writes {
        return Slow { p95: f64::INFINITY, p99: f64::INFINITY };
    }
    let key = [reads, writes, served].map(f64::to_bits);
    let known = || KNOWN.lock().expect("nobody panics with it");
    if let Some(known) = known().get(&key) {
        return *known;
    }
    let drawn = draw(reads, writes, served);
    known().insert(key, drawn);
    drawn
}

/// Lindley's recursion over `READS` reads.
fn draw(reads: f64, writes: f64, served: f64) -> Slow {
    const READS: usize = 300_000;
    let mut chance = SplitMix64(1);
    let mut exponential = |rate: f64| -(1.0 - chance.share()).ln() / rate;
    let (mut next_read, mut next_write) = (0.0, if writes > 0.0 { 0.0 } else { f64::INFINITY });
    let mut free = 0.0;
    let mut times = Vec::with_capacity(READS);
    while times.len() < READS {
        let arrival = f64::min(next_read, next_write);
        free = f64::max(free, arrival) + exponential(served);
        if next_read <= next_write {
            times.push(free - arrival);
            next_read += exponential(reads);
        } else {
            next_write += 1.0 / writes;
        }
    }
    let mut at = |percent: usize| {
        let (_, at, _) = times.select_nth_unstable_by(READS * percent / 100, f64::total_cmp);
        *at * 1e9
    };
    Slow { p95: at(95), p99: at(99) }
}

/// Judges the sentences of a map.
pub fn map(heard: &Heard<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    let level = heard.noise.slowest() == 1.0;
    for sentence in &heard.session.sentences {
        if sentence.starts_with("The map goes up to ") {
            judged.extend(carried(heard, sentence));
        } else if sentence.starts_with("The target carries up to ") {
            // Where it ends is judged by the sentence that counts its cells.
            let reads = sentence
                .split_once("; reads keep ")
                .map(|(ends, reads)| format!("Reads keep {}", in_full(ends, reads)));
            judged.extend(reads.iter().flat_map(|reads| reach(heard, reads)));
        } else if sentence.starts_with("Reads keep ") {
            judged.extend(reach(heard, sentence));
        } else if sentence.starts_with("Not to be relied on: Cells that were measured again") {
            judged.push(Judged::holds("drift of the map", sentence, !level));
        } else if sentence.starts_with("Not to be relied on: Reads become faster") {
            // "Something other than this load decides about their response times."
            judged.push(Judged::holds("faster under load", sentence, heard.noise != Noise::None));
        } else if sentence.starts_with("Not to be relied on: The target did not carry") {
            // The limit changes as soon as trials differ.
            judged.push(Judged::holds("the limit changes", sentence, heard.noise != Noise::None));
        } else if sentence.starts_with("Not to be relied on: ") {
            judged.push(Judged::open("the map as a whole", sentence));
        } else if sentence.starts_with("Filling in was checked with ") {
            continue;
        } else {
            judged.push(Judged::unread(sentence));
        }
    }
    judged
}

/// "...; the target carries N of its M cells."
fn carried(heard: &Heard<'_>, sentence: &str) -> Option<Judged> {
    let said: f64 = between(sentence, "the target carries ", " of its ")?.parse().ok()?;
    let count = |limit: f64| {
        let cells = (0..6).flat_map(|write| (0..6).map(move |read| (write, read)));
        let load =
            |(write, read): (i32, i32)| f64::from(write) * WRITE_STEP + f64::from(read) * READ_STEP;
        cells.filter(|cell| load(*cell) <= limit).count() as f64
    };
    // A load counts as carried if at most `BEHIND` of it is left over. A cell exactly at the limit
    // may go either way. So may a cell that the device carries at some times and not at others.
    let limit = SERVED / (1.0 - BEHIND);
    let either = ARRIVALS + 1.5 * heard.noise.deviation();
    let low = count(SERVED * heard.noise.slowest() * (1.0 - either));
    let high = count(limit * (1.0 + either));
    Some(Judged::holds("cells carried", sentence, low <= said && said <= high))
}

/// With the bandwidth in place of "half of those writes", which are those of the ends, "... and up to W of
/// writes".
fn in_full(ends: &str, reads: &str) -> String {
    let most = ends.rsplit_once(" up to ").and_then(|(_, most)| most.strip_suffix(" of writes"));
    match most.and_then(bandwidth) {
        Some(most) => {
            reads.replace("half of those writes", &format!("{} B/s () of writes", most / 2.0))
        }
        None => reads.to_owned(),
    }
}

/// "Reads keep p95 <= 5 ms up to 1.52k reads/s without writes, up to 760 reads/s beside W of writes, not
/// even 380 reads/s beside W of writes."
fn reach(heard: &Heard<'_>, sentence: &str) -> Vec<Judged> {
    const KIND: &str = "how far reads are fast";
    let mut words = sentence.splitn(6, ' ').skip(2);
    let (Some(quantile), Some("<="), Some(value), Some(rest)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Vec::from([Judged::unread(sentence)]);
    };
    let (unit, rest) = rest.split_once(' ').unwrap_or_default();
    let Some(bound) = time(&format!("{value} {unit}")) else {
        return Vec::from([Judged::unread(sentence)]);
    };
    let slow = |reads, writes, served| match (quantile, slow(reads, writes, served)) {
        ("p99", Slow { p99, .. }) => p99,
        (_, Slow { p95, .. }) => p95,
    };
    let slowest = heard.noise.slowest();
    let clauses = rest.trim_end_matches('.').split("s, ");
    let clause = |text: &str| {
        let writes = match between(text, "beside ", " of write").and_then(bandwidth) {
            Some(bytes) => bytes / 4096.0,
            None => 0.0,
        };
        let reads = match between(text, "up to ", " reads/s") {
            Some(reads) if !text.trim_start().starts_with("perhaps") => scaled(reads)?,
            _ => 0.0,
        };
        let perhaps = between(text, "perhaps up to ", " reads/s").and_then(scaled).unwrap_or(reads);
        // The stated load is possible, and a load one step higher is not.
        let either = 1.0 + ARRIVALS + 1.5 * heard.noise.deviation();
        let possible = reads == 0.0 || slow(reads, writes, SERVED * either) <= bound;
        let no_more = 1.0 < (perhaps + READ_STEP) / 1900.0 + 1e-6
            || bound <= slow(perhaps + READ_STEP, writes, SERVED * slowest / either);
        let judged = Judged::holds(KIND, sentence, possible && no_more);
        Some(match perhaps - reads {
            more if READ_STEP * 1.5 < more => Judged::open(KIND, sentence),
            _ => judged,
        })
    };
    clauses.map(|text| clause(text).unwrap_or_else(|| Judged::unread(sentence))).collect()
}

fn time(text: &str) -> Option<f64> {
    let (value, unit) = text.trim().split_once(' ')?;
    let unit = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(value.parse::<f64>().ok()? * unit)
}

/// "1.52k"
fn scaled(text: &str) -> Option<f64> {
    match text.strip_suffix('k') {
        Some(thousands) => Some(thousands.parse::<f64>().ok()? * 1e3),
        None => text.parse().ok(),
    }
}

/// "1.25 MiB/s (1 MB/s)"
fn bandwidth(text: &str) -> Option<f64> {
    let (figure, _) = text.split_once(" (")?;
    super::rate(figure).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_alone_are_as_slow_as_the_formula_says() {
        for reads in [200.0, 1000.0, 1500.0] {
            let formula = 20f64.ln() / (SERVED - reads) * 1e9;
            assert!((slow(reads, 0.0, SERVED).p95 / formula - 1.0).abs() < 0.05, "{reads}");
        }
        // Even arrivals wait less than arrivals by chance.
        let formula = 20f64.ln() / (SERVED - 1000.0) * 1e9;
        assert!(slow(500.0, 500.0, SERVED).p95 < formula);
        assert_eq!(slow(1500.0, 500.0, SERVED).p99, f64::INFINITY);
    }
}
