//! Whether the targets were faster than they are rated at, which storage is not by itself: a cache,
//! compression or a burst credit was measured.

use super::case::{Case, figure, percent};
use super::{Judgement, Severity};
use crate::experiment::{bandwidth, iops};
use crate::stats::Estimate;
use crate::units::Bytes;

/// Limits are kept over seconds rather than to the I/O, and clocks differ.
const TOLERANCE: f64 = 0.03;
/// So much more than the limit is not the medium, whatever else it is.
const IMPOSSIBLE: f64 = 0.25;

/// More than the user says that the targets can do.
pub(super) fn faster_than_rated(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    let rated = case.trial.point.rated;
    let one = |limit: Option<f64>, shown: Option<Estimate>, words: &dyn Fn(f64) -> String| {
        let (limit, shown) = (limit.filter(|limit| 0.0 < *limit)?, shown?);
        let lowest = shown.value - shown.half_width.unwrap_or(0.0);
        let more = shown.value / limit - 1.0;
        if lowest <= limit * (1.0 + TOLERANCE) {
            return None;
        }
        let evidence = format!(
            "{} is {} more than the {} that it is rated at.",
            words(shown.value),
            percent(more),
            words(limit)
        );
        Some((more, evidence))
    };
    let in_iops = |value: f64| format!("{} IOPS", figure(value));
    let in_bytes =
        |value: f64| format!("{}/s ({} MB/s)", Bytes(value as u64), figure((value / 1e6).round()));
    let found = [
        one(rated.iops.map(|rate| rate.0), iops(record, None, None), &in_iops),
        one(rated.bandwidth.map(|b| b.0 as f64), bandwidth(record, None, None), &in_bytes),
    ];
    for (more, evidence) in found.into_iter().flatten() {
        let severity = if IMPOSSIBLE < more { Severity::Void } else { Severity::Suspect };
        judgement.find(
            "faster-than-rated",
            severity,
            evidence,
            "A cache, compression or a burst credit answers instead of the medium, or the limit is \
             another one: write random data, over more than the caches hold and for longer, and \
             look the limit up.",
        );
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
        invented.trial.point.rated = Rated { iops: iops.map(Rate), bandwidth };
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
    fn a_simulated_target_has_its_limit_too() {
        let mut invented = Invented::writes();
        invented.simulate();
        invented.trial.point.rated.iops = Some(Rate(500.0));
        assert_eq!(invented.codes(), ["faster-than-rated"]);
    }
}
