//! The conclusions of a latency map in words: the load that the target carries, and how fast its
//! reads stay.

use crate::experiment::throughput::bandwidth_in_words;
use crate::experiment::{CellKind, MapCell, MapFound, Validation};
use crate::figures::percent;
use crate::stats::Z_95;

/// "850 MB/s", as people type it.
pub fn bandwidth(bytes_per_second: f64) -> String {
    format!("{}B/s", scaled(bytes_per_second))
}

/// "40k".
pub fn rate(per_second: f64) -> String {
    scaled(per_second)
}

/// Three digits and the letter of a power of a thousand.
fn scaled(value: f64) -> String {
    let (mut value, mut letter) = (value, "");
    for next in ["k", "M", "G", "T"] {
        if value < 999.5 {
            break;
        }
        (value, letter) = (value / 1000.0, next);
    }
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{letter}")
}

/// "800 us", "1 ms".
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e6 => format!("{} us", ns / 1e3),
        ns if ns < 1e9 => format!("{} ms", ns / 1e6),
        ns => format!("{} s", ns / 1e9),
    }
}

/// The next number of the series 1, 2, 5, 10, 20, 50 ... that is no less.
fn round_up(ns: f64) -> f64 {
    let decade = 10_f64.powf(ns.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| ns <= step * (1.0 + 1e-9)).unwrap_or(10.0 * decade)
}

/// A bound on the response time that tells the behavior of a device that is not busy, in multiples of
/// the shortest one.
const QUIET: f64 = 1.5;

/// The least for a busy one.
const BUSY: f64 = 5.0;

/// The sentences of a map: the loads that the target carries, how it was measured, how far reads stay
/// fast beside writes, and the doubts. For a quantile's place, `scatter` gives the difference between two measurements of a
/// cell, as a standard deviation of their logarithms.
pub fn sentences(found: &MapFound, scatter: &dyn Fn(usize) -> Option<f64>) -> Vec<String> {
    let mut sentences = Vec::new();
    let carried = found.cells.iter().filter(|cell| cell.counts());
    let filled = carried.clone().filter(|cell| cell.kind == CellKind::Filled).count();
    let carried = carried.count();
    let void = found.cells.iter().filter(|cell| cell.is_void()).count();
    let (Some(writes), Some(reads)) = (found.write_bandwidths.last(), found.read_rates.last())
    else {
        return sentences;
    };
    let cells = format!(
        "The map goes up to {} of writes and {} reads/s; the target carries {carried} of its {} cells{}{}.",
        bandwidth_in_words(*writes),
        rate(*reads),
        found.cells.len(),
        match carried {
            0 => String::new(),
            all => format!(" ({} measured, {filled} filled in)", all - filled),
        },
        match void {
            0 => String::new(),
            1 => "; 1 cell is void and does not count".to_owned(),
            many => format!("; {many} cells are void and do not count"),
        },
    );
    let place = bounded_quantile(found);
    let bounds = bounds(found, place);
    let scatter = scatter(place).unwrap_or(0.0);
    let reach = |bound: f64| Reach { found, place, bound, scatter };
    let busy = bounds.last().map(|bound| reach(*bound).in_brief());
    sentences.extend(ends(found).map(|ends| format!("{ends}{}.", busy.unwrap_or_default())));
    sentences.push(cells);
    sentences.extend(bounds.into_iter().map(|bound| reach(bound).in_full()));
    sentences.extend(checks(&found.validation));
    sentences.extend(found.doubts.iter().map(|doubt| format!("Not to be relied on: {doubt}")));
    sentences
}

/// The place of the quantile that people set bounds on: p99, or p95 where a cell that the target carries
/// has too few I/Os for a p99.
fn bounded_quantile(found: &MapFound) -> usize {
    let reading = || found.cells.iter().filter(|cell| cell.read > 0 && cell.counts());
    let is_known = |place: usize| reading().all(|cell| cell.response_time_ns[place].is_some());
    let up_to = |most: f64| found.quantiles.iter().rposition(|one| one.0 <= most);
    up_to(0.99).filter(|&place| is_known(place)).or_else(|| up_to(0.95)).unwrap_or(0)
}

/// The bounds on the response time that deserve a sentence, each the next round one: a little above the
/// shortest time, and one that a busy device keeps, at half of both loads if it carries them.
fn bounds(found: &MapFound, place: usize) -> Vec<f64> {
    let time = |cell: &MapCell| cell.response_time_ns[place].map(|one| one.value);
    let times = found.cells.iter().filter(|cell| cell.read > 0).filter_map(time);
    let Some(shortest) = times.min_by(f64::total_cmp) else { return Vec::new() };
    let half = |steps: &[f64]| (steps.len() - 1) as u32 / 2;
    let half = (half(&found.write_bandwidths), half(&found.read_rates));
    let at_half = found.cells.iter().find(|cell| (cell.write, cell.read) == half);
    let busy = at_half.filter(|cell| cell.counts() && cell.read > 0).and_then(time);
    let times = [QUIET * shortest, busy.unwrap_or(0.0).max(BUSY * shortest)];
    let mut bounds = times.map(round_up).to_vec();
    bounds.dedup();
    bounds
}

/// "The target carries up to 243k reads/s without writes, and up to 926 MiB/s (971 MB/s) of writes": the
/// ends of both loads; none if it carries no cell.
fn ends(found: &MapFound) -> Option<String> {
    let alone = found.cells.iter().filter(|cell| cell.write == 0);
    let reads = MapCell::with_most(alone, |cell| cell.read)?;
    let writes = MapCell::with_most(&found.cells, |cell| cell.write)?;
    Some(format!(
        "The target carries up to {} reads/s without writes{}, and up to {} of writes{}",
        rate(found.read_rates[reads.read as usize]),
        reads.caveat(),
        bandwidth_in_words(found.write_bandwidths[writes.write as usize]),
        writes.caveat(),
    ))
}

/// How well the filled-in cells agree with measurements.
fn checks(validation: &[Validation]) -> Option<String> {
    let cells = validation.iter().map(|one| one.cells).max().filter(|cells| 0 < *cells)?;
    let each = validation.iter().map(|one| {
        // At a high quantile some of them have too few samples.
        let fewer =
            if one.cells < cells { format!(" ({} cells)", one.cells) } else { String::new() };
        format!(
            "{} by {} and {}{fewer}",
            one.quantile,
            percent(one.median_error),
            percent(one.largest_error)
        )
    });
    Some(format!(
        "Filling in was checked with {cells} of the measured cells: in the median and at most they are \
         off at {}.",
        each.collect::<Vec<_>>().join(", at ")
    ))
}

/// How far reads keep within a bound at a quantile's place.
struct Reach<'a> {
    found: &'a MapFound,
    place: usize,
    bound: f64,
    scatter: f64,
}

impl Reach<'_> {
    /// "Reads keep p95 <= 1 ms up to 120k reads/s without writes, up to 40k reads/s (perhaps up to 60k
    /// reads/s) beside 500 MB/s of writes, not even 10k reads/s beside 1 GB/s of writes."
    fn in_full(&self) -> String {
        let last = self.found.write_bandwidths.len() - 1;
        let beside = |write| self.writes(write);
        format!("Reads keep {} {}.", self.name(), self.parts(&[0, last / 2, last], &beside))
    }

    /// "; reads keep p95 <= 1 ms up to 120k reads/s without writes, up to 40k reads/s beside half of
    /// those writes": alone and at half of the writes.
    fn in_brief(&self) -> String {
        let bandwidths = &self.found.write_bandwidths;
        let last = bandwidths.len() - 1;
        let most = MapCell::with_most(&self.found.cells, |cell| cell.write);
        let half = most.map(|cell| bandwidths[cell.write as usize] / 2.0);
        let is_half = half.is_some_and(|half| (bandwidths[last / 2] / half - 1.0).abs() < 0.01);
        let beside = |write| match is_half {
            true => "half of those writes".to_owned(),
            false => self.writes(write),
        };
        format!("; reads keep {} {}", self.name(), self.parts(&[0, last / 2], &beside))
    }

    fn writes(&self, write: usize) -> String {
        format!("{} of writes", bandwidth_in_words(self.found.write_bandwidths[write]))
    }

    fn name(&self) -> String {
        format!("{} <= {}", self.found.quantiles[self.place], time(self.bound))
    }

    /// The end of each of these columns, given by their places; `beside` names their writes.
    fn parts(&self, columns: &[usize], beside: &dyn Fn(usize) -> String) -> String {
        let mut columns = columns.to_vec();
        columns.dedup();
        let part = |write| match write {
            0 => self.part(write, "without writes"),
            _ => self.part(write, &format!("beside {}", beside(write))),
        };
        columns.into_iter().map(part).collect::<Vec<String>>().join(", ")
    }

    /// Whether the lowest cell of a column is void: then nobody knows whether it keeps the bound.
    fn begins_void(&self, write: usize) -> bool {
        let mut cells = self.found.cells.iter();
        let lowest = cells.find(|cell| cell.write as usize == write && cell.read > 0);
        lowest.is_some_and(MapCell::is_void)
    }

    fn part(&self, write: usize, beside: &str) -> String {
        let found = self.found;
        let up_to = |side| highest(found, (write, self.place), self.bound, (side, self.scatter));
        let reads =
            |cell: &MapCell| format!("{} reads/s", rate(found.read_rates[cell.read as usize]));
        match (up_to(Side::Unfavorable), up_to(Side::Favorable)) {
            (Some(sure), Some(perhaps)) if sure.read < perhaps.read => {
                let doubt = perhaps.doubt_in_words().map(|words| format!("; that cell is {words}"));
                let (up_to, perhaps) = (reads(sure), reads(perhaps) + &doubt.unwrap_or_default());
                format!("up to {up_to}{} (perhaps up to {perhaps}) {beside}", sure.caveat())
            }
            (Some(sure), _) => format!("up to {}{} {beside}", reads(sure), sure.caveat()),
            (None, Some(perhaps)) => {
                format!("perhaps up to {}{} {beside}", reads(perhaps), perhaps.caveat())
            }
            (None, None) if self.begins_void(write) => {
                format!("perhaps {beside} (the cells with few reads there are void)")
            }
            (None, None) => format!("not even {} reads/s {beside}", rate(found.read_rates[1])),
        }
    }
}

/// The end of an interval to use.
#[derive(Clone, Copy)]
enum Side {
    Favorable,
    Unfavorable,
}

/// The highest cell of a column up to which no cell that counts is slower than the bound, at one end
/// of its interval. The interval contains the cell's own half-width, the scatter of measurements of a
/// cell and, if the cell was filled in, the error of other filled-in cells.
fn highest(
    found: &MapFound,
    (write, place): (usize, usize),
    bound: f64,
    (side, scatter): (Side, f64),
) -> Option<&MapCell> {
    let column = found.cells.iter().filter(|cell| cell.write as usize == write && cell.read > 0);
    // Above a void cell there may be others that are known.
    let column = column.filter(|cell| !cell.is_void());
    let quantile = found.quantiles[place];
    let checks = found.validation.iter().find(|one| one.quantile == quantile);
    // The median of a normal error is two thirds of its standard deviation.
    let filled = checks.map_or(0.0, |checks| checks.median_error / 0.674);
    let end = |cell: &MapCell| {
        let time = cell.response_time_ns[place]?;
        let own = time.half_width.unwrap_or(0.0) / time.value;
        let error = match cell.kind {
            CellKind::Filled => filled.max(scatter),
            _ => scatter,
        };
        let margin = own.hypot(Z_95 * error);
        Some(match side {
            Side::Favorable => time.value * (-margin).exp(),
            Side::Unfavorable => time.value * margin.exp(),
        })
    };
    column.take_while(|cell| end(cell).is_some_and(|time| time <= bound)).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::CellDoubt;
    use crate::findings::Verdict;
    use crate::stats::Estimate;
    use crate::units::Quantile;

    #[test]
    fn loads_are_said_as_they_are_typed() {
        let said = [0.0, 12.0, 999.7, 1000.0, 40_500.0, 1.02e9].map(rate);
        assert_eq!(said, ["0", "12", "1k", "1k", "40.5k", "1.02G"]);
        assert_eq!(bandwidth(5e8), "500MB/s");
    }

    #[test]
    fn bounds_are_round() {
        assert_eq!([130.0, 200.0, 200.1, 9.9e5].map(round_up), [200.0, 200.0, 500.0, 1e6]);
        assert_eq!([5e5, 1e6, 2e9].map(time), ["500 us", "1 ms", "2 s"]);
    }

    #[test]
    fn answers_rest_on_no_void_cell_and_name_the_doubt_about_a_suspect_one() {
        let cell = |(write, read): (u32, u32), doubt: Option<(Verdict, &str)>| MapCell {
            write,
            read,
            kind: CellKind::Measured,
            response_time_ns: Vec::from([doubt
                .is_none_or(|(verdict, _)| verdict == Verdict::Suspect)
                .then_some(Estimate { value: 1e5, half_width: None })]),
            doubt: doubt.map(|(verdict, code)| CellDoubt { verdict, code: code.to_owned() }),
        };
        let suspect = Some((Verdict::Suspect, "foreign-io"));
        let void = Some((Verdict::Void, "process-stopped"));
        let cells = [
            cell((0, 0), None),
            cell((0, 1), void),
            cell((0, 2), suspect),
            cell((0, 3), void),
            cell((1, 0), suspect),
            cell((1, 1), None),
            cell((1, 2), None),
            cell((1, 3), void),
        ];
        let found = MapFound {
            quantiles: Vec::from([Quantile(0.95)]),
            write_bandwidths: Vec::from([0.0, 5e8]),
            read_rates: Vec::from([0.0, 1e4, 2e4, 3e4]),
            cells: cells.to_vec(),
            validation: Vec::new(),
            drift: None,
            doubts: Vec::new(),
        };
        let said = sentences(&found, &|_| None);
        let other = "(that cell is suspect: other programs used the disk)";
        // At the most writes there is a cell without a doubt.
        let ends = format!(
            "The target carries up to 20k reads/s without writes {other}, and up to 477 MiB/s (500 \
             MB/s) of writes; reads keep p95 <= 500 us up to 20k reads/s {other} without \
             writes."
        );
        assert_eq!(said[0], ends);
        assert!(
            said[1].contains(" 5 of its 8 cells (5 measured, 0 filled in); 3 cells are void"),
            "{}",
            said[1]
        );
        let full = format!(
            "Reads keep p95 <= 200 us up to 20k reads/s {other} without writes, up to 20k \
             reads/s beside 477 MiB/s (500 MB/s) of writes."
        );
        assert_eq!(said[2], full);
        let mut found = found;
        for cell in found.cells.iter_mut().filter(|cell| cell.write == 1) {
            cell.response_time_ns = Vec::from([None]);
            cell.doubt = cells[3].doubt.clone();
        }
        let said = sentences(&found, &|_| None);
        let perhaps = "perhaps beside 477 MiB/s (500 MB/s) of writes (the cells with few reads there \
                       are void).";
        assert!(said[2].ends_with(perhaps), "{}", said[2]);
    }

    #[test]
    fn the_reach_of_fast_reads_ends_where_a_cell_is_slower_or_not_carried() {
        let cell = |write: u32, read: u32, ns: Option<f64>| MapCell {
            write,
            read,
            kind: if ns.is_some() { CellKind::Measured } else { CellKind::Overloaded },
            response_time_ns: Vec::from([ns.map(|value| Estimate { value, half_width: None })]),
            doubt: None,
        };
        let times = [
            [Some(3e5), Some(1e5), Some(2e5), Some(4e5)],
            [Some(3e5), Some(2e5), Some(4e5), None],
            [Some(3e5), None, None, None],
        ];
        let cells = times.iter().enumerate().flat_map(|(write, column)| {
            let column = column.iter().enumerate();
            column.map(move |(read, ns)| cell(write as u32, read as u32, *ns))
        });
        let found = MapFound {
            quantiles: Vec::from([Quantile(0.95)]),
            write_bandwidths: Vec::from([0.0, 5e8, 1e9]),
            read_rates: Vec::from([0.0, 1e4, 2e4, 3e4]),
            cells: cells.collect(),
            validation: Vec::new(),
            drift: None,
            doubts: Vec::from(["it drifts.".to_owned()]),
        };
        // The spread between measurements of a cell leaves values near the bound open.
        let doubtful = sentences(&found, &|_| Some(0.1));
        assert!(
            doubtful[2].ends_with(
                " up to 10k reads/s (perhaps up to 20k reads/s) without writes, perhaps up to 10k \
                 reads/s beside 477 MiB/s (500 MB/s) of writes, not even 10k reads/s beside 954 MiB/s \
                 (1,000 MB/s) of writes."
            ),
            "{doubtful:?}"
        );
        assert_eq!(
            sentences(&found, &|_| None),
            [
                "The target carries up to 30k reads/s without writes, and up to 954 MiB/s (1,000 MB/s) \
                 of writes; reads keep p95 <= 500 us up to 30k reads/s without writes, up to 20k \
                 reads/s beside half of those writes.",
                "The map goes up to 954 MiB/s (1,000 MB/s) of writes and 30k reads/s; the target \
                 carries 8 of its 12 cells (8 measured, 0 filled in).",
                "Reads keep p95 <= 200 us up to 20k reads/s without writes, up to 10k \
                 reads/s beside 477 MiB/s (500 MB/s) of writes, not even 10k reads/s beside 954 MiB/s \
                 (1,000 MB/s) of writes.",
                "Reads keep p95 <= 500 us up to 30k reads/s without writes, up to 20k \
                 reads/s beside 477 MiB/s (500 MB/s) of writes, not even 10k reads/s beside 954 MiB/s \
                 (1,000 MB/s) of writes.",
                "Not to be relied on: it drifts.",
            ]
        );
    }
}
