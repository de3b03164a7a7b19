//! Whether the targets were faster than their rating, which storage is not by itself: then a cache,
//! compression or a burst credit was measured. And whether they were so far below it that the
//! rating itself may be wrong, for example in another unit.

use super::case::Case;
use super::{Judgement, Severity};
use crate::figures::{percent, significant};
use crate::stats::Estimate;
use crate::stats::{bandwidth, iops};
use crate::trial::Role;
use crate::units::Bytes;

/// Limits hold over seconds rather than for each I/O, and clocks differ.
const TOLERANCE: f64 = 0.03;
/// If the result exceeds the limit by this much, the medium cannot be the cause.
const IMPOSSIBLE: f64 = 0.25;
/// Below this share of the limit the trial says next to nothing about it, and the limit may be
/// wrong.
const FAR_BELOW: f64 = 0.5;
/// A factor this close to a factor between two units may be one.
const NEAR: f64 = 0.1;

/// A result above the rating that the user gave, or far below it.
pub(super) fn rated(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    let rated = case.trial.point.rated;
    let in_iops = |value: f64| format!("{} IOPS", significant(value));
    let in_bytes = |value: f64| {
        format!("{}/s ({} MB/s)", Bytes(value as u64), significant((value / 1e6).round()))
    };
    // A search begins with little load, and goes through every share of the rating on its way.
    let may_be_low = case.trial.place.role == Role::Probe;
    let mut compare = |limit, shown, words| compare(limit, shown, words, may_be_low, judgement);
    compare(rated.iops.map(|rate| rate.0), iops(record, None, None), &in_iops);
    let limit = rated.bandwidth.map(|bandwidth| bandwidth.0 as f64);
    compare(limit, bandwidth(record, None, None), &in_bytes);
}

fn compare(
    limit: Option<f64>,
    shown: Option<Estimate>,
    words: &dyn Fn(f64) -> String,
    may_be_low: bool,
    judgement: &mut Judgement,
) {
    let Some((limit, shown)) = limit.filter(|limit| 0.0 < *limit).zip(shown) else { return };
    let half_width = shown.half_width.unwrap_or(0.0);
    let (lowest, highest) = (shown.value - half_width, shown.value + half_width);
    let unit = |factor: f64| unit_mistake(factor).map_or(String::new(), |hint| format!(" {hint}"));
    if limit * (1.0 + TOLERANCE) < lowest {
        let more = shown.value / limit - 1.0;
        let severity = if IMPOSSIBLE < more { Severity::Void } else { Severity::Suspect };
        judgement.find(
            "faster-than-rated",
            severity,
            format!(
                "{} is {} more than the {} that it is rated at.{}",
                words(shown.value),
                percent(more),
                words(limit),
                unit(shown.value / limit)
            ),
            "A cache, compression or a burst credit answers instead of the medium, or the limit is \
             another one: write random data, over more than the caches hold and for longer, and \
             look the limit up.",
        );
        return;
    }
    if 0.0 < shown.value && highest < limit * FAR_BELOW && !may_be_low {
        judgement.find(
            "below-rated",
            Severity::Note,
            format!(
                "{} is {} of the {} that it is rated at.{}",
                words(shown.value),
                percent(shown.value / limit),
                words(limit),
                unit(limit / shown.value),
            ),
            "That nothing was faster than rated says little here: look up the rating and its unit, \
             or find with `fathom peak` what the target can do.",
        );
    }
}

/// What a factor between a rating and a result suggests, if it is one between two units.
fn unit_mistake(factor: f64) -> Option<&'static str> {
    let near = |unit: f64| (unit * (1.0 - NEAR)..=unit * (1.0 + NEAR)).contains(&factor);
    if near(8.0) {
        Some("The factor is about 8, as between bits and bytes.")
    } else if near(1000.0) || near(1024.0) {
        Some("The factor is about 1000, as between two units such as kB and MB.")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Rated;
    use crate::units::Rate;
    use crate::verdict::Verdict;
    use crate::verdict::testing::Invented;

    /// 1000 IOPS of 4 KiB.
    fn rated(iops: Option<f64>, bandwidth: Option<u64>) -> (Verdict, String) {
        let mut invented = Invented::writes();
        let bandwidth = bandwidth.map(Bytes);
        invented.trial.point.rated = Rated { iops: iops.map(Rate), bandwidth, response_time: None };
        let judgement = invented.judge();
        let evidence = judgement.findings.iter().map(|one| one.evidence.as_str());
        (judgement.verdict(), evidence.collect())
    }

    #[test]
    fn what_is_within_its_limit_is_not_doubted() {
        for (iops, bandwidth) in
            [(None, None), (Some(1000.0), Some(4_096_000)), (Some(975.0), None)]
        {
            assert_eq!(rated(iops, bandwidth), (Verdict::Sound, String::new()));
        }
    }

    #[test]
    fn faster_is_suspect_and_much_faster_is_void() {
        let (verdict, evidence) = rated(Some(900.0), None);
        assert_eq!(verdict, Verdict::Suspect);
        assert_eq!(evidence, "1,000 IOPS is 11 % more than the 900 IOPS that it is rated at.");
        let (verdict, evidence) = rated(None, Some(2_000_000));
        assert_eq!(verdict, Verdict::Void);
        assert!(evidence.contains("(4.00 MB/s) is 105 % more than the"), "{evidence}");
    }

    #[test]
    fn far_below_is_a_note_and_names_a_mistake_of_units() {
        for (iops, hint) in [
            (2100.0, None),
            (5000.0, None),
            (8000.0, Some("bits and bytes")),
            (1e6, Some("kB and MB")),
            (1.03e6, Some("kB and MB")),
            (1.2e6, None),
        ] {
            let (verdict, evidence) = rated(Some(iops), None);
            assert_eq!(verdict, Verdict::Sound);
            assert!(evidence.starts_with("1,000 IOPS is "), "{iops}: {evidence}");
            assert_eq!(evidence.contains("The factor is"), hint.is_some(), "{iops}: {evidence}");
            assert!(evidence.contains(hint.unwrap_or("")), "{iops}: {evidence}");
        }
        // 4.096 MB/s, given as 4.096 Mb/s.
        let (verdict, evidence) = rated(None, Some(4_096_000 / 8));
        assert_eq!(verdict, Verdict::Void);
        assert!(evidence.contains("bits and bytes"), "{evidence}");
    }

    #[test]
    fn a_probe_with_little_load_is_not_told_that_it_is_far_below() {
        let mut invented = Invented::writes();
        invented.trial.point.rated.iops = Some(Rate(5000.0));
        assert_eq!(invented.codes(), ["below-rated"]);
        invented.trial.place.role = Role::Probe;
        assert_eq!(invented.codes(), [""; 0]);
        // An eighth is not a mistake of units, if the load was an eighth.
        invented.trial.point.rated.iops = Some(Rate(8000.0));
        assert_eq!(invented.codes(), [""; 0]);
    }

    #[test]
    fn a_simulated_target_has_its_limit_too() {
        let mut invented = Invented::writes();
        invented.simulate();
        invented.trial.point.rated.iops = Some(Rate(500.0));
        assert_eq!(invented.codes(), ["faster-than-rated"]);
    }
}
