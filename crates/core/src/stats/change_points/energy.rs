//! The place where a series most likely changes: E-divisive's estimate of it.

/// A place that divides a series, and how much the values before it and after it differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// The number of values before the change.
    pub at: usize,
    /// The statistic Q: zero on average if nothing changes.
    pub q: f64,
}

/// Memory that searches of series use again.
#[derive(Debug, Default)]
pub struct Room {
    /// For each place, the distances between the values before it and those after it so far.
    between: Vec<f64>,
    /// For each place, the distances among the values before it.
    within: Vec<f64>,
    /// The same for each of the values, on average: divided by their number less one.
    own: Vec<f64>,
    /// One divided by a number of values less one.
    parts: Vec<f64>,
}

/// The best place for a change in a series, with at least `smallest` values on either side; none if
/// the series is too short.
///
/// For every place `t` and every end `k` after it, Q compares the values before `t` with those from
/// `t` to `k`: `2/k (sum |x - y| - (k-t)/(t-1) sum |x - x'| - t/(k-t-1) sum |y - y'|)`, which is
/// `mn/(m+n)` times the sample energy distance with the exponent 1 (Matteson and James, "A
/// Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", Journal of the
/// American Statistical Association 109, 2014, equations 5 to 7). The end `k` varies, so that a change
/// that is taken back later is found as well. The sums of one end follow from those of the end
/// before, in `O(n)` each.
pub fn best(series: &[f64], smallest: usize, room: &mut Room) -> Option<Division> {
    let count = series.len();
    let smallest = smallest.max(1);
    if count < 2 * smallest {
        return None;
    }
    let Room { between, within, own, parts } = room;
    // A single value has no distances, so that its divisor does not matter.
    let part = |values: usize| 1.0 / (values as f64 - 1.0).max(1.0);
    parts.extend((parts.len()..=count).map(part));
    between.clear();
    between.resize(count + 1, 0.0);
    within.clear();
    within.extend([0.0, 0.0]);
    own.clear();
    own.extend([0.0, 0.0]);
    let mut best = Division { at: 0, q: f64::NEG_INFINITY };
    for newest in 1..count {
        let mut sum = 0.0;
        for (value, between) in series[..newest].iter().zip(&mut between[1..]) {
            sum += (value - series[newest]).abs();
            *between += sum;
        }
        let end = newest + 1;
        let all = within[newest] + sum;
        within.push(all);
        own.push(all * parts[end]);
        let Some(last) = end.checked_sub(smallest).filter(|last| smallest <= *last) else {
            continue;
        };
        let (mut at, mut highest) = (0, f64::NEG_INFINITY);
        for place in smallest..=last {
            let after = end - place;
            let left = own[place] * after as f64;
            let right = (all - within[place] - between[place]) * place as f64 * parts[after];
            let q = between[place] - left - right;
            if highest < q {
                (at, highest) = (place, q);
            }
        }
        let q = 2.0 / end as f64 * highest;
        if best.q < q {
            best = Division { at, q };
        }
    }
    Some(best)
}
