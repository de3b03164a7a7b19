//! The conditions of `--fail-if`.

use fathom_core::verdict::Verdict;
use fathom_report::comparison::Requirement;
use fathom_report::document::{Condition, Metric, Threshold};

use super::comparing::requirement;
use super::rates::{rated_bandwidth, rated_iops};
use super::values::{percentile_of, time_limit};

/// Reads a condition under which a result fails: `p99>2ms`, `iops<50k`, `bandwidth<1GB/s`, `suspect`;
/// and of two sides: `p99 worse than 5%`.
pub fn threshold(text: &str) -> Result<Threshold, String> {
    let usage =
        "write 'p99>2ms', 'mean>1ms', 'max>1s', 'iops<50k', 'bandwidth<1GB/s', suspect or void";
    let typed = text.trim().to_owned();
    let verdict = match typed.as_str() {
        "suspect" => Some(Verdict::Suspect),
        "void" => Some(Verdict::Void),
        _ => None,
    };
    if let Some(verdict) = verdict {
        return Ok(Threshold { typed, condition: Condition::Verdict(verdict) });
    }
    let words: Vec<&str> = typed.split_whitespace().collect();
    if words.iter().any(|word| word.eq_ignore_ascii_case("worse")) {
        let Requirement { typed, figure, bound } = requirement(&typed)?;
        return Ok(Threshold { typed, condition: Condition::Worse(figure, bound) });
    }
    let Some((name, bound)) = typed.split_once(['<', '>']) else {
        return Err(format!("'{typed}' compares nothing: {usage}"));
    };
    let bound = bound.strip_prefix('=').unwrap_or(bound).trim();
    let (metric, bound) = match name.trim().to_ascii_lowercase().as_str() {
        "iops" => (Metric::Iops, rated_iops(bound)?.0),
        "bandwidth" | "bw" => (Metric::Bandwidth, rated_bandwidth(bound)?.0 as f64),
        "mean" => (Metric::Mean, time_limit(bound)?.0 as f64),
        "max" => (Metric::Max, time_limit(bound)?.0 as f64),
        other => match percentile_of(other) {
            Ok(quantile) => (Metric::Quantile(quantile), time_limit(bound)?.0 as f64),
            Err(why) => return Err(format!("{why}: {usage}")),
        },
    };
    let condition = match typed.contains('>') {
        true => Condition::Above(metric, bound),
        false => Condition::Below(metric, bound),
    };
    Ok(Threshold { typed, condition })
}

/// Reads a condition under which a watch fails: on a figure, because a watch has no verdict and no sides.
pub fn watch_threshold(text: &str) -> Result<Threshold, String> {
    let threshold = threshold(text)?;
    match on_watch(&threshold) {
        Ok(()) => Ok(threshold),
        Err(why) => {
            Err(format!("{why}: write 'p99>2ms', 'mean>1ms', 'iops<50k' or 'bandwidth<1GB/s'"))
        }
    }
}

/// Whether it is a condition on a watch; if not, why.
pub fn on_watch(threshold: &Threshold) -> Result<(), &'static str> {
    match threshold.condition {
        Condition::Above(..) | Condition::Below(..) => Ok(()),
        Condition::Verdict(_) => Err("a watch has no verdict"),
        Condition::Worse(..) => Err("it compares two sides, and a watch has one"),
    }
}

/// Reads the name of a figure: `iops`, `bandwidth`, `mean`, `max`, `p99`.
pub fn metric(text: &str) -> Result<Metric, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "iops" => Ok(Metric::Iops),
        "bandwidth" | "bw" => Ok(Metric::Bandwidth),
        "mean" => Ok(Metric::Mean),
        "max" => Ok(Metric::Max),
        other => percentile_of(other)
            .map(Metric::Quantile)
            .map_err(|why| format!("{why}: write iops, bandwidth, mean, max or p99")),
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Quantile;
    use fathom_core::stats::Figure;

    use super::*;

    #[test]
    fn a_figure_is_named_as_in_a_threshold() {
        assert_eq!(metric("IOPS"), Ok(Metric::Iops));
        assert_eq!(metric("bw"), Ok(Metric::Bandwidth));
        assert_eq!(metric("p99.9"), Ok(Metric::Quantile(Quantile(0.999))));
        assert!(metric("p0").is_err() && metric("x").unwrap_err().contains("write iops"));
    }

    #[test]
    fn a_threshold_is_a_figure_and_a_bound_or_a_verdict() {
        let of = |text: &str| threshold(text).unwrap().condition;
        let p99 = Metric::Quantile(Quantile(0.99));
        assert_eq!(of("p99>2ms"), Condition::Above(p99, 2e6));
        assert_eq!(of(" P99 >= 2 ms "), Condition::Above(p99, 2e6));
        assert_eq!(of("iops<50k"), Condition::Below(Metric::Iops, 50e3));
        assert_eq!(of("bandwidth<1GB/s"), Condition::Below(Metric::Bandwidth, 1e9));
        assert_eq!(of("max>1s"), Condition::Above(Metric::Max, 1e9));
        assert_eq!(of("suspect"), Condition::Verdict(Verdict::Suspect));
        let p99 = Figure::Quantile(Quantile(0.99));
        assert_eq!(of("p99 worse  than 5%"), Condition::Worse(p99, 0.05));
        for text in ["", "p99", "p99>", "p99>2", "mean>1", "p1>1ms", "iops<1MB/s", "sound", "x>1ms"]
        {
            assert!(threshold(text).is_err(), "{text}");
        }
        assert!(threshold("p99>2").unwrap_err().contains("2ms or 2s"));
        assert_eq!(watch_threshold("max>1s"), threshold("max>1s"));
        assert!(
            watch_threshold("suspect").unwrap_err().starts_with("a watch has no verdict: write")
        );
        assert!(watch_threshold("p99 worse than 5%").unwrap_err().contains("a watch has one"));
    }
}
