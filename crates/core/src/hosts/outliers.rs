//! Which hosts differ from the others in a figure that all of them have.

use crate::stats::{self, Estimate, Z_95};

/// Fewer hosts than this do not show what is usual among them.
pub const HOSTS_MIN: usize = 4;

/// Less than this share is no difference that anybody acts on.
const SHARE_MIN: f64 = 0.1;

/// What makes the median absolute deviation of normal values their standard deviation.
const OF_NORMAL: f64 = 1.4826;

/// A host whose figure is unlike the others'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Its place in the list.
    pub place: usize,
    /// Its figure as a multiple of the median of the others'.
    pub ratio: f64,
    /// Its 95 % confidence interval.
    pub interval: (f64, f64),
}

/// The hosts that differ from the others: their distance from the median, on a logarithmic scale, is
/// beyond what the median absolute deviation allows for (Iglewicz and Hoaglin, "How to Detect and
/// Handle Outliers", 1993), and 10 % at least. The bound is such that in at most 5 % of fleets that are
/// all alike any host is named, in two such figures together; it was found by simulation with normal values, for few hosts much
/// wider, because so few deviations tell little. None below [`HOSTS_MIN`] hosts, or where a figure is
/// not above zero. The gravest first.
pub fn outliers(figures: &[Estimate]) -> Vec<Outlier> {
    let hosts = figures.len();
    if hosts < HOSTS_MIN || figures.iter().any(|one| !(one.value.is_finite() && 0.0 < one.value)) {
        return Vec::new();
    }
    let logs: Vec<f64> = figures.iter().map(|one| one.value.ln()).collect();
    let own: Vec<f64> =
        figures.iter().map(|one| one.half_width.unwrap_or(0.0) / one.value).collect();
    let median = |mut values: Vec<f64>| stats::median(&mut values).unwrap_or(0.0);
    let center = median(logs.clone());
    let deviation = median(logs.iter().map(|log| (log - center).abs()).collect());
    // Hosts may agree by chance more closely than each of them is known.
    let scale = (OF_NORMAL * deviation).max(median(own.clone()) / Z_95);
    let bound = (scale * (4.4 + 180.0 / (hosts * hosts) as f64)).max(SHARE_MIN.ln_1p());
    let others = |place: usize| {
        let rest = logs.iter().enumerate().filter(|(other, _)| *other != place);
        median(rest.map(|(_, log)| *log).collect())
    };
    let mut found: Vec<Outlier> = (0..hosts)
        .filter_map(|place| {
            let distance = logs[place] - others(place);
            // The median of n values is known to about 1.25 standard deviations over the root of n.
            let usual = 1.25 * Z_95 * scale / ((hosts - 1) as f64).sqrt();
            let half = own[place].hypot(usual);
            let interval = ((distance - half).exp(), (distance + half).exp());
            let differs = bound < (logs[place] - center).abs() && half < distance.abs();
            differs.then_some(Outlier { place, ratio: distance.exp(), interval })
        })
        .collect();
    let size = |one: &Outlier| one.ratio.ln().abs();
    found.sort_by(|one, other| size(other).total_cmp(&size(one)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    fn of(values: &[f64]) -> Vec<Estimate> {
        values.iter().map(|&value| Estimate { value, half_width: Some(value * 0.01) }).collect()
    }

    #[test]
    fn a_slow_host_is_named_with_its_ratio() {
        let found = outliers(&of(&[100.0, 103.0, 98.0, 410.0, 101.0, 100.0]));
        assert_eq!(found.len(), 1);
        let Outlier { place, ratio, interval } = found[0];
        assert_eq!(place, 3);
        assert!((ratio - 4.1).abs() < 0.01, "{ratio}");
        assert!(interval.0 < 4.1 && 4.1 < interval.1 && 3.5 < interval.0, "{interval:?}");
    }

    #[test]
    fn a_small_difference_and_few_hosts_name_nobody() {
        assert_eq!(outliers(&of(&[100.0, 100.0, 100.0, 108.0, 100.0])), []);
        assert_eq!(outliers(&of(&[100.0, 100.0, 400.0])), []);
        assert_eq!(outliers(&of(&[100.0, 100.0, 0.0, 100.0])), []);
        // What is not known itself differs from nothing.
        let mut vague = of(&[100.0, 100.0, 100.0, 150.0, 100.0]);
        vague[3].half_width = Some(100.0);
        assert_eq!(outliers(&vague), []);
    }

    #[test]
    fn of_fleets_that_are_alike_at_most_one_in_forty_names_a_host() {
        let mut random = SplitMix64(11);
        for hosts in [4, 5, 6, 8, 12, 20, 50, 200] {
            let mut named = 0;
            let fleets = 1000;
            for _ in 0..fleets {
                // They scatter by 30 %, so that the smallest difference that counts is no protection.
                let values: Vec<f64> = (0..hosts).map(|_| (0.3 * random.normal()).exp()).collect();
                named += usize::from(!outliers(&of(&values)).is_empty());
            }
            // Three standard deviations of chance.
            assert!(named <= 25 + 15, "{hosts} hosts: {named} of {fleets}");
        }
    }
}
