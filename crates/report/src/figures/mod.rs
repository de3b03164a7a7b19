//! The figures that every renderer reads out of a document, and their formats: in one place, so
//! that the same number looks the same in the terminal, in the table and in the chart.

mod ceiling;
mod doubts;
mod places;
mod trial_part;
mod watched;
mod workload;

pub use fathom_core::count;
use fathom_core::errno::Meaning;
pub use fathom_core::figures::{percent, significant, time};
use fathom_core::measure::ErrorKind;
use fathom_core::stats::Estimate;
use fathom_core::{Bytes, Span, errno, nvme, typed_word};

pub use ceiling::{
    Ceiling, ceiling, ceiling_in_words, io_wq_cpu, is_contended, null_target, others_cpu,
    times_as_many,
};
pub use doubts::{Doubt, doubts, left_open, missing_checks, question, trial_word};
pub use places::{clock, host, place_name, place_names, runs, source, stack, target_name};
pub use trial_part::{
    OfferedLoad, Summary, TrialPart, carried, columns, completed, direction_name, directions,
    fixed_amount, iops_deviation, quantile_estimates, summary, time_name,
};
pub use watched::DiskFigures;
pub use workload::{
    asked, before_and_after, counted_workers, flush, is_in_sequence, is_random, load, mix, names,
    pacing, pattern_names, payload, queue_depth, same_access, stream_in_words, way, workers,
    workplace,
};

/// A text whose first letter is large.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// A rate as the label of an axis: zero is 0 and not 0.00.
pub fn axis_rate(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { short_rate(value) }
}

/// The text for a value that may be unknown.
pub fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// A point in time to the second: "2026-11-21 09:30:00 UTC".
pub fn moment(created: &str) -> String {
    let text = created.replacen('T', " ", 1);
    match text.split('.').next() {
        Some(seconds) if text.ends_with('Z') => format!("{} UTC", seconds.trim_end_matches('Z')),
        _ => text,
    }
}

/// A rate for a narrow column: 812, 12.3k, 1.23M.
pub fn short_rate(value: f64) -> String {
    match value {
        v if v >= 999.5e6 => format!("{}G", significant(v / 1e9)),
        v if v >= 999.5e3 => format!("{}M", significant(v / 1e6)),
        v if v >= 999.5 => format!("{}k", significant(v / 1e3)),
        v => significant(v),
    }
}

/// A half-width in percent of its value: "±3%"; empty if there is none.
pub fn plus_minus(estimate: Option<&Estimate>) -> String {
    let share = estimate.and_then(|e| Some(e.half_width? / e.value * 100.0));
    match share {
        Some(p) if !p.is_finite() => String::new(),
        Some(0.0) => "±0%".to_owned(),
        Some(p) if p < 0.05 => "±<0.1%".to_owned(),
        Some(p) if p < 0.95 => format!("±{p:.1}%"),
        Some(p) if p <= 100.0 => format!("±{p:.0}%"),
        // It means that the value is not known; the digits do not matter.
        Some(_) => "±>100%".to_owned(),
        None => String::new(),
    }
}

/// Events per second over a window, and none over an empty one.
pub fn per_second(amount: u64, window: Span) -> Option<f64> {
    (window.0 > 0).then(|| amount as f64 / window.as_secs_f64())
}

/// Bytes per second as MiB/s.
pub fn mib(bytes_per_second: f64) -> f64 {
    bytes_per_second / Bytes::MIB as f64
}

/// How an I/O failed, in words.
pub fn failure(failure: ErrorKind) -> String {
    match failure {
        ErrorKind::Errno(errno) => match errno::meaning(errno) {
            Meaning { name: Some(name), words, .. } => format!("{name} (errno {errno}): {words}"),
            Meaning { name: None, .. } => format!("errno {errno}"),
        },
        ErrorKind::Nvme(status) => {
            let name = nvme::meaning(status).name.unwrap_or("without a name here");
            format!("NVMe status {name} ({})", nvme::numbers(status))
        }
        ErrorKind::Short(0) => {
            "0 bytes moved: the end of the target, or it was unplugged".to_owned()
        }
        ErrorKind::Short(moved) => format!("short: only {} moved", Bytes(u64::from(moved))),
        ErrorKind::Lost => {
            "lost: it started then and did not come back while we waited for it".to_owned()
        }
    }
}

/// How much memory a host has.
pub fn memory(bytes: Bytes) -> String {
    match bytes {
        Bytes(0) => "an unknown amount of memory".to_owned(),
        bytes => format!("{bytes} of memory"),
    }
}

/// The command line in a form that can be typed again.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| typed_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_for_a_narrow_column_has_the_letter_of_its_magnitude() {
        assert_eq!(short_rate(812.34), "812");
        assert_eq!(short_rate(12_345.0), "12.3k");
        assert_eq!(short_rate(999_700.0), "1.00M");
    }

    #[test]
    fn a_ceiling_is_told_with_two_digits() {
        for (times, text) in [(0.94, "0.9"), (1.26, "1.3"), (41.7, "42"), (999.0, "1,000")] {
            assert_eq!(times_as_many(times), format!("{text} times as many"));
        }
        assert_eq!(times_as_many(12_345.0), "12,000 times as many");
    }

    #[test]
    fn half_widths_are_shown_in_percent_of_their_value() {
        let shown = |value, half_width| plus_minus(Some(&Estimate { value, half_width }));
        assert_eq!(shown(100.0, Some(3.2)), "±3%");
        assert_eq!(shown(100.0, Some(0.42)), "±0.4%");
        assert_eq!(shown(100.0, Some(0.0)), "±0%");
        assert_eq!(shown(100.0, Some(100.0)), "±100%");
        assert_eq!(shown(100.0, Some(100.1)), "±>100%");
        assert_eq!(shown(100.0, Some(1e6)), "±>100%");
        assert_eq!(shown(0.0, Some(0.0)), "");
        assert_eq!(shown(100.0, None), "");
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let words = ["fathom", "run", "/data/my file", "it's", ""].map(str::to_owned);
        assert_eq!(command_line(&words), r"fathom run '/data/my file' 'it'\''s' ''");
    }
}
