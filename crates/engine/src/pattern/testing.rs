//! Shared code for the tests of patterns.

/// The value that a chi-squared sum with this many degrees of freedom exceeds by chance one time in
/// a million: the cube of a normal quantile (E. Wilson and M. Hilferty, 1931). Seeds are fixed, so
/// a test that passes once always passes.
fn limit(degrees: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + 4.753 * ninth.sqrt()).powi(3)
}

/// Checks that the counts differ from the expected ones by no more than chance explains.
#[track_caller]
pub(crate) fn assert_chi_squared(counts: &[u64], expected: &[f64]) {
    assert_eq!(counts.len(), expected.len());
    assert!(expected.iter().all(|&mean| mean >= 5.0), "too few for a chi-squared test");
    let sum: f64 =
        counts.iter().zip(expected).map(|(&n, mean)| (n as f64 - mean).powi(2) / mean).sum();
    let limit = limit((counts.len() - 1).max(1) as f64);
    assert!(sum < limit, "chi-squared {sum}, which should be below {limit}");
}
