//! How a figure is written, in messages, sentences, tables and charts alike: the same number has the
//! same digits everywhere.

use crate::units::count;

/// Three significant digits, and every digit before the point, with separated thousands: "0.57",
/// "12.3", "41,200".
pub fn significant(value: f64) -> String {
    match value.abs() {
        // Without the sign that is left of a small negative value.
        magnitude if magnitude < 0.005 => "0.00".to_owned(),
        magnitude if magnitude < 9.995 => format!("{value:.2}"),
        magnitude if magnitude < 99.95 => format!("{value:.1}"),
        magnitude if magnitude < 999.5 => format!("{value:.0}"),
        // The way Rust rounds a number without decimals.
        magnitude => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(magnitude.round_ties_even() as u64))
        }
    }
}

/// A ratio, in which a small one keeps two digits: "1,496", "2.30", "0.25", "0.00067".
pub fn ratio(value: f64) -> String {
    if value.is_normal() && value.abs() < 0.0995 {
        let zeros = -value.abs().log10().floor() as usize;
        return format!("{value:.*}", zeros + 1);
    }
    significant(value)
}

/// A number from 0 up with separated thousands, "41,200"; with a decimal below 100 unless it is whole.
pub fn number(value: f64) -> String {
    if value < 100.0 {
        let text = format!("{value:.1}");
        return text.strip_suffix(".0").map(ToOwned::to_owned).unwrap_or(text);
    }
    count(value.round_ties_even() as u64)
}

/// A share, from 0 to 1, in percent: "0.14 %", "2.4 %", "58 %". A share close to 0 is not written as 0,
/// and a share close to 1 not as 100.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = match percent.abs() {
        0.0 => return "0 %".to_owned(),
        100.0 => format!("{percent:.0}."),
        p if p < 0.005 => return "under 0.01 %".to_owned(),
        p if p < 0.995 => format!("{percent:.2}"),
        p if p < 9.95 => format!("{percent:.1}"),
        p if (99.0..100.0).contains(&p) => format!("{:.1}", percent.clamp(-99.9, 99.9)),
        _ => format!("{percent:.0}."),
    };
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A time in nanoseconds with three significant digits, in the unit of its magnitude: "12.0 us".
pub fn time(ns: f64) -> String {
    // The limits are where rounding to three digits would reach the next unit.
    match ns {
        n if n < 999.5 && n.fract() == 0.0 => format!("{n:.0} ns"),
        n if n < 999.5 => format!("{} ns", significant(n)),
        n if n < 999.5e3 => format!("{} us", significant(n / 1e3)),
        n if n < 999.5e6 => format!("{} ms", significant(n / 1e6)),
        n if n < 120e9 => format!("{} s", significant(n / 1e9)),
        n if n < 7200e9 => format!("{} min", significant(n / 60e9)),
        n => format!("{} h", significant(n / 3600e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_significant_and_none_before_the_point_is_lost() {
        for (value, text) in [
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (0.567, "0.57"),
            (9.996, "10.0"),
            (99.96, "100"),
            (812.34, "812"),
            (999.5, "1,000"),
            (41_200.4, "41,200"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn a_small_ratio_keeps_two_digits() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.000_668, "0.00067"),
            (0.0998, "0.10"),
            (0.02, "0.020"),
            (2.3, "2.30"),
            (1495.98, "1,496"),
        ] {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn a_share_is_not_written_as_0_or_100_percent_unless_it_is_that() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_01, "under 0.01 %"),
            (0.001_4, "0.14 %"),
            (0.005, "0.5 %"),
            (0.02, "2 %"),
            (0.024, "2.4 %"),
            (0.099_6, "10 %"),
            (0.58, "58 %"),
            (0.9, "90 %"),
            (0.991, "99.1 %"),
            (0.999_99, "99.9 %"),
            (1.0, "100 %"),
            (12.0, "1200 %"),
            (-0.021, "-2.1 %"),
            (-0.5, "-50 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn a_number_has_a_decimal_only_where_it_is_small() {
        for (value, text) in [(0.0, "0"), (12.0, "12"), (12.34, "12.3"), (41_200.4, "41,200")] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_time_has_three_digits_in_the_unit_of_its_magnitude() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (250.0, "250 ns"),
            (1.5, "1.50 ns"),
            (999.7, "1.00 us"),
            (81_200.0, "81.2 us"),
            (812_345.0, "812 us"),
            (999_600.0, "1.00 ms"),
            (99_960_000.0, "100 ms"),
            (2_500_000_000.0, "2.50 s"),
            (180e9, "3.00 min"),
            (10_800_000_000_000.0, "3.00 h"),
        ] {
            assert_eq!(time(ns), text);
        }
    }
}
