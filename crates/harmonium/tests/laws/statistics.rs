//! Tests of samples against exact probabilities.

/// Fails unless counts agree with probabilities: a χ² test at p > 1e-6.
///
/// States expected fewer than five times are pooled. The tail of χ² is taken from the cube-root
/// normal approximation (Wilson & Hilferty 1931), good to the third digit from three degrees of
/// freedom on.
pub(crate) fn assert_distributed(name: &str, counts: &[f64], p: &[f64]) {
    let n: f64 = counts.iter().sum();
    let (mut chi2, mut bins, mut rest) = (0.0, 0_u32, (0.0, 0.0));
    for (count, p) in counts.iter().zip(p) {
        let expected = n * p;
        if expected < 5.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            chi2 += (count - expected).powi(2) / expected;
            bins += 1;
        }
    }
    if rest.1 >= 1.0 {
        chi2 += (rest.0 - rest.1).powi(2) / rest.1;
        bins += 1;
    } else {
        assert!(rest.0 < 20.0, "{name}: {} draws where {} were expected", rest.0, rest.1);
    }
    assert!(bins > 1, "{name}: one bin cannot tell anything");
    let df = f64::from(bins - 1);
    let z = ((chi2 / df).cbrt() - (1.0 - 2.0 / (9.0 * df))) / (2.0 / (9.0 * df)).sqrt();
    // One-sided p = 1e-6.
    assert!(z < 4.753, "{name}: chi2 = {chi2:.1} with {df} degrees of freedom, z = {z:.2}");
}

/// Fails unless the mean of `values` is within five standard errors of `expected`.
pub(crate) fn assert_mean(name: &str, values: &[f64], expected: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    assert!(
        (mean - expected).abs() < 5.0 * error + 1e-12,
        "{name}: {mean} ± {error}, not {expected}"
    );
}

#[test]
fn a_wrong_distribution_is_noticed() {
    let p = [0.2, 0.3, 0.5];
    assert_distributed("right", &[2000.0, 3000.0, 5000.0], &p);
    let wrong = std::panic::catch_unwind(|| {
        assert_distributed("wrong", &[2300.0, 2900.0, 4800.0], &p);
    });
    assert!(wrong.is_err(), "a shift of seven standard deviations must fail");
}
