//! The conditions on a watch: they are about each disk over the whole watch, its reads and writes together.

use fathom_core::facts::{Answer, LayerKind};
use fathom_core::figures::percent;
use fathom_core::stats::Estimate;
use fathom_core::typed_word;

use crate::comparison::RequirementOutcome;
use crate::document::{Condition, Metric, Threshold};
use crate::figures::DiskFigures;
use crate::watched::{WatchedDisk, WatchedResult};

/// The least share of a disk's requests that events must have shown, so that their times stand for all.
/// Beside busy CPUs the kernel drops one or two of a hundred. If more are missing, they may differ from those
/// that were seen.
const SEEN: f64 = 0.9;
/// With less than this, the share is said.
const NEARLY_ALL: f64 = 0.99;

/// What became of a condition on one disk.
struct OnDisk {
    holds: Answer,
    /// The figure, if it is known.
    figure: Option<f64>,
    /// Before the name of the disk, and behind it.
    text: [String; 2],
}

/// What became of the conditions of a watch, in their order: with `yes` it fails. All are open for a watch
/// that was killed, or still goes on.
pub fn outcomes_of_watch(result: &WatchedResult) -> Vec<RequirementOutcome> {
    result.conditions.iter().map(|one| outcome(result, one)).collect()
}

fn outcome(result: &WatchedResult, threshold: &Threshold) -> RequirementOutcome {
    let option = format!("--fail-if {}", typed_word(&threshold.typed));
    let of = |holds: Answer, text: String| RequirementOutcome {
        typed: threshold.typed.clone(),
        holds,
        text: format!("{option}{text}"),
    };
    if result.end.is_none() {
        let why = ": unknown, because the watch was killed, or goes on";
        return of(Answer::Unknown, why.to_owned());
    }
    let disks = result.header.disks.iter().zip(&result.disks);
    let all: Vec<(&str, OnDisk)> = disks
        .filter(|(name, disk)| !is_told_below(result, name.kind, disk, threshold.condition))
        .map(|(name, disk)| (name.name.as_str(), judged(disk, threshold.condition)))
        .collect();
    for holds in [Answer::Yes, Answer::Unknown] {
        let mut those = all.iter().filter(|(_, one)| one.holds == holds);
        let Some((name, first)) = those.next() else { continue };
        let is = if holds == Answer::Yes { "fail" } else { "are undecided" };
        let more = match those.count() {
            0 => String::new(),
            more => format!(", and {more} more of {} disks {is}", all.len()),
        };
        return of(holds, format!(": {}{more}", first.on(name)));
    }
    let sign = if matches!(threshold.condition, Condition::Below(..)) { -1.0 } else { 1.0 };
    let rank = |one: &OnDisk| one.figure.map_or(f64::NEG_INFINITY, |figure| sign * figure);
    let nearest = all.iter().max_by(|one, other| rank(&one.1).total_cmp(&rank(&other.1)));
    let nearest = nearest.map_or(String::new(), |(name, one)| format!(": {}", one.on(name)));
    of(Answer::No, format!(" is not the case{nearest}"))
}

/// Whether this layer has no requests of its own, while those of the disks below tell their times. A watch
/// of an array or a volume always has its disks; nothing is below zram.
fn is_told_below(
    result: &WatchedResult,
    kind: LayerKind,
    disk: &WatchedDisk,
    condition: Condition,
) -> bool {
    let of_requests = |metric| matches!(metric, Metric::Max | Metric::Quantile(_));
    let needs_requests = match condition {
        Condition::Above(metric, _) | Condition::Below(metric, _) => of_requests(metric),
        Condition::Verdict(_) | Condition::Worse(..) => false,
    };
    needs_requests
        && matches!(kind, LayerKind::Md | LayerKind::DeviceMapper)
        && disk.observed.is_none()
        && result.disks.iter().any(|other| other.observed.is_some())
}

fn judged(disk: &WatchedDisk, condition: Condition) -> OnDisk {
    let unknown = |text: &str| OnDisk::new(Answer::Unknown, text.to_owned());
    let (metric, bound, is_above) = match condition {
        Condition::Above(metric, bound) => (metric, bound, true),
        Condition::Below(metric, bound) => (metric, bound, false),
        Condition::Verdict(_) => return unknown("there is no verdict"),
        Condition::Worse(..) => return unknown("there are no two sides"),
    };
    let Some(figures) = DiskFigures::of(disk, None) else { return unknown("nothing was counted") };
    let is_time = !matches!(metric, Metric::Iops | Metric::Bandwidth);
    if is_time && figures.ios == 0 {
        return OnDisk::new(Answer::No, "there were no reads or writes".to_owned());
    }
    let crosses = |figure: f64| if is_above { bound < figure } else { figure < bound };
    // Counters miss nothing.
    let seen = figures.seen().filter(|_| is_time).unwrap_or(1.0);
    let Some(figure) = metric.on_disk(&figures) else {
        return too_few(metric, &figures, &crosses, is_above, seen);
    };
    // A request that nobody saw can only make the longest time longer.
    let is_shown = SEEN <= seen || (metric == Metric::Max && is_above && crosses(figure));
    let holds = match crosses(figure) {
        _ if !is_shown => Answer::Unknown,
        true => Answer::Yes,
        false => Answer::No,
    };
    let text = [metric.in_words(&exact(figure)), of_those_seen(seen)];
    OnDisk { holds, figure: Some(figure), text }
}

/// A time that is unknown. No percentile is above the longest one.
fn too_few(
    metric: Metric,
    figures: &DiskFigures,
    crosses: &dyn Fn(f64) -> bool,
    is_above: bool,
    seen: f64,
) -> OnDisk {
    let name = metric.name();
    let Some(longest) = figures.longest() else {
        let text = format!("without events of its requests, {name} is unknown");
        return OnDisk::new(Answer::Unknown, text);
    };
    if SEEN <= seen && crosses(longest) != is_above {
        let holds = if is_above { Answer::No } else { Answer::Yes };
        let text = [Metric::Max.in_words(&exact(longest)), of_those_seen(seen)];
        return OnDisk { holds, figure: None, text };
    }
    OnDisk::new(Answer::Unknown, format!("there are too few I/Os for {name}"))
}

/// ", of the 97 % of its requests that events showed".
fn of_those_seen(seen: f64) -> String {
    match seen < NEARLY_ALL {
        true => format!(", for the {} of its requests that events showed", percent(seen)),
        false => String::new(),
    }
}

impl OnDisk {
    fn new(holds: Answer, text: String) -> Self {
        Self { holds, figure: None, text: [text, String::new()] }
    }

    /// "p99 is 4.80 ms on sda".
    fn on(&self, name: &str) -> String {
        let [before, behind] = &self.text;
        format!("{before} on {name}{behind}")
    }
}

fn exact(value: f64) -> Estimate {
    Estimate { value, half_width: None }
}

impl Metric {
    /// What it is of a disk; none where it is unknown.
    fn on_disk(self, figures: &DiskFigures) -> Option<f64> {
        match self {
            Self::Iops => Some(figures.iops),
            Self::Bandwidth => Some(figures.bandwidth),
            Self::Mean => figures.mean,
            Self::Max => figures.longest(),
            Self::Quantile(quantile) => figures.quantile(quantile),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::facts::Host;
    use fathom_core::watch::{Counted, CountedFlow, Observed, ObservedFlow};
    use fathom_core::{Bytes, Quantile, Span};

    use super::*;
    use crate::watched::{WATCH_FORMAT, WATCH_FORMAT_VERSION, WatchEnd, WatchHeader, WatchedName};

    /// A disk that completed these reads in 10 s, of which events showed those with times.
    fn disk(counted: u64, times_us: impl IntoIterator<Item = u64>) -> WatchedDisk {
        let mut reads = ObservedFlow::default();
        for time in times_us {
            reads.ios += 1;
            reads.response_time.record(time * 1000);
        }
        let flow = CountedFlow {
            ios: counted,
            bytes: Bytes(4096 * counted),
            time: Span::from_ms(counted),
            ..CountedFlow::default()
        };
        WatchedDisk {
            counted: Some(Counted {
                length: Span::from_secs(10),
                reads: flow,
                ..Counted::default()
            }),
            observed: Some(Observed { reads, ..Observed::default() }),
            ..WatchedDisk::default()
        }
    }

    fn p99_above(bound_us: f64) -> Condition {
        Condition::Above(Metric::Quantile(Quantile(0.99)), bound_us * 1e3)
    }

    /// A watch of these disks with a condition.
    fn watch(disks: Vec<WatchedDisk>, typed: &str, condition: Condition) -> WatchedResult {
        let name = |place: usize| WatchedName { name: format!("sd{place}"), kind: LayerKind::Disk };
        WatchedResult {
            header: WatchHeader {
                format: WATCH_FORMAT.to_owned(),
                format_version: WATCH_FORMAT_VERSION,
                fathom_version: String::new(),
                command_line: Vec::new(),
                created: String::new(),
                created_unix_ns: 0,
                interval_ns: 1_000_000_000,
                host: Host::default(),
                disks: (0..disks.len()).map(name).collect(),
                without_events: None,
            },
            disks,
            end: Some(WatchEnd::default()),
            lost_events: 0,
            own_cpu: Span(0),
            conditions: Vec::from([Threshold { typed: typed.to_owned(), condition }]),
        }
    }

    fn said(result: &WatchedResult) -> (Answer, String) {
        let one = outcomes_of_watch(result).remove(0);
        (one.holds, one.text)
    }

    #[test]
    fn every_disk_is_judged_and_the_nearest_is_named() {
        let disks = || {
            let times = [100, 4000, 200];
            times.map(|time| disk(2000, std::iter::repeat_n(time, 2000))).to_vec()
        };
        let of = |bound_us| said(&watch(disks(), "p99>x", p99_above(bound_us)));
        let text = |text: &str| format!("--fail-if 'p99>x'{text}");
        assert_eq!(of(5000.0), (Answer::No, text(" is not the case: p99 is 4.00 ms on sd1")));
        assert_eq!(of(1000.0), (Answer::Yes, text(": p99 is 4.00 ms on sd1")));
        let more = ": p99 is 4.00 ms on sd1, and 1 more of 3 disks fail";
        assert_eq!(of(150.0), (Answer::Yes, text(more)));
        let killed = WatchedResult { end: None, ..watch(disks(), "p99>x", p99_above(1e3)) };
        assert_eq!(said(&killed).0, Answer::Unknown);
    }

    #[test]
    fn a_layer_without_requests_leaves_times_to_the_disk_below() {
        let below = disk(2000, std::iter::repeat_n(100, 2000));
        let volume = WatchedDisk { observed: None, ..below.clone() };
        let mut both = watch(Vec::from([volume.clone(), below]), "p99>x", p99_above(1000.0));
        let mut of = |kind| {
            both.header.disks[0].kind = kind;
            said(&both).0
        };
        assert_eq!(of(LayerKind::DeviceMapper), Answer::No);
        // No disk is below compressed memory: the other one says nothing of it.
        assert_eq!(of(LayerKind::Zram), Answer::Unknown);
        let alone = watch(Vec::from([volume]), "p99>x", p99_above(1000.0));
        let why = "--fail-if 'p99>x': without events of its requests, p99 is unknown on sd0";
        assert_eq!(said(&alone), (Answer::Unknown, why.to_owned()));
    }

    fn holds(disk: &WatchedDisk, condition: Condition) -> Answer {
        judged(disk, condition).holds
    }

    #[test]
    fn a_percentile_is_that_of_reads_and_writes_together() {
        let mut both = disk(2000, std::iter::repeat_n(100, 2000));
        let writes = disk(2000, std::iter::repeat_n(5000, 2000));
        let (counted, observed) = (both.counted.as_mut(), both.observed.as_mut());
        counted.unwrap().writes = writes.counted.unwrap().reads;
        observed.unwrap().writes = writes.observed.unwrap().reads;
        assert_eq!(holds(&both, p99_above(4000.0)), Answer::Yes);
        assert_eq!(holds(&both, p99_above(6000.0)), Answer::No);
        let fewer = |bound| Condition::Below(Metric::Iops, bound);
        assert_eq!(
            (holds(&both, fewer(401.0)), holds(&both, fewer(400.0))),
            (Answer::Yes, Answer::No)
        );
    }

    #[test]
    fn the_longest_decides_where_there_are_too_few_for_a_percentile() {
        let few = disk(20, std::iter::repeat_n(100, 20));
        assert_eq!(holds(&few, p99_above(200.0)), Answer::No);
        assert_eq!(holds(&few, p99_above(50.0)), Answer::Unknown);
        let p99_below = |us: f64| Condition::Below(Metric::Quantile(Quantile(0.99)), us * 1e3);
        assert_eq!(holds(&few, p99_below(200.0)), Answer::Yes);
        assert_eq!(holds(&few, p99_below(50.0)), Answer::Unknown);
        let idle = disk(0, []);
        assert_eq!(holds(&idle, p99_above(50.0)), Answer::No);
        assert_eq!(holds(&idle, Condition::Below(Metric::Iops, 1.0)), Answer::Yes);
    }

    #[test]
    fn requests_that_events_did_not_show_leave_a_time_open() {
        let most = disk(2000, std::iter::repeat_n(100, 1950));
        let judged_most = judged(&most, p99_above(200.0));
        assert_eq!(judged_most.holds, Answer::No);
        assert_eq!(
            judged_most.on("sda"),
            "p99 is 100 us on sda, for the 98 % of its requests that events showed"
        );
        let half = disk(2000, std::iter::repeat_n(100, 1000));
        assert_eq!(holds(&half, p99_above(200.0)), Answer::Unknown);
        assert_eq!(holds(&half, p99_above(50.0)), Answer::Unknown);
        assert_eq!(holds(&half, Condition::Above(Metric::Max, 5e4)), Answer::Yes);
        assert_eq!(holds(&half, Condition::Above(Metric::Max, 2e5)), Answer::Unknown);
        let without = WatchedDisk { observed: None, ..half };
        assert_eq!(holds(&without, p99_above(200.0)), Answer::Unknown);
        // The counters' mean is 1 ms.
        assert_eq!(holds(&without, Condition::Above(Metric::Mean, 9e5)), Answer::Yes);
        assert_eq!(holds(&without, Condition::Above(Metric::Mean, 1.1e6)), Answer::No);
    }
}
