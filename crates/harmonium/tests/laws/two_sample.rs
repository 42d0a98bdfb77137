//! Generated samples against data: one distribution passes, and what differs is caught.

use harmonium::evaluation::two_sample::{Domain, Samples, compare};
use harmonium::random::{Site, Stream};

const COLUMNS: usize = 60;

/// Rows of bits in which 20 groups of three equal bits are flipped with probability 0.1 each;
/// `coupled` = false draws every bit independently with the same means.
fn rows(n: usize, coupled: bool, seed: u64) -> Vec<f64> {
    let stream = Stream::new(seed);
    let mut values = Vec::new();
    for row in 0..n {
        for c in 0..COLUMNS {
            let p = 0.2 + 0.6 * (c / 3) as f64 / 19.0;
            let source = if coupled { c / 3 } else { c };
            let on = stream.uniform(Site::new(row, 0, usize::from(coupled)), source) < p;
            let flip = stream.uniform(Site::new(row, 1, 0), c) < 0.1;
            values.push(f64::from(u8::from(on != flip)));
        }
    }
    values
}

fn bits(n: usize, seed: u64) -> Samples {
    Samples::from_rows(COLUMNS, &rows(n, true, seed)).unwrap()
}

/// The same as numbers: Gaussian noise upon the bits.
fn real(n: usize, seed: u64) -> Samples {
    let noise = |i: usize| 0.3 * Stream::new(seed).normal(Site::new(0, 7, 0), i);
    let values =
        rows(n, true, seed).iter().enumerate().map(|(i, x)| x + noise(i)).collect::<Vec<_>>();
    Samples::from_rows(COLUMNS, &values).unwrap()
}

#[test]
fn samples_of_one_distribution_pass() {
    for (name, draw) in [("bits", bits as fn(usize, u64) -> Samples), ("real", real)] {
        for seed in 0..4 {
            let [a, b, train] = [0, 1, 2].map(|k| draw(700, 10 * seed + k));
            let found = compare(&a, &b, Some(&train), Stream::new(seed)).unwrap();
            let aa = found.adversarial;
            // Leaving a row out leaves one candidate less on its own side: (n-1)/(2n-1).
            let expected = 699.0 / 1399.0;
            assert!((aa.std_error - 0.5 / 700_f64.sqrt()).abs() < 1e-12 && aa.n == 700);
            assert!((aa.accuracy - expected).abs() < 4.0 * aa.std_error, "{name}: {aa:?}");
            assert!(found.means.max_z < found.means.max_z_by_chance, "{name}: {:?}", found.means);
            // Mean squares of 60 z-scores in groups of three that are nearly one.
            let spread = 5.0 * (2.0 / 20_f64).sqrt();
            assert!((found.means.rms_z.powi(2) - 1.0).abs() < spread, "{name}: {:?}", found.means);
            let c = found.correlations.unwrap();
            assert_eq!(c.pairs, COLUMNS * (COLUMNS - 1) / 2);
            // 190 pairs of groups say something of their own, on either side of the ratio.
            let ratio = (c.rms_difference / c.rms_noise).powi(2);
            let spread = 5.0 * (2.0 * 2.0 / 190_f64).sqrt();
            assert!(ratio.ln().abs() < spread, "{name}: {c:?}");
            let m = found.memorisation.unwrap();
            assert!(!m.alarm && m.sentence().is_none(), "{name}: {m:?}");
            assert!(m.privacy_loss.abs() < 4.0 * 2_f64.sqrt() * aa.std_error, "{name}: {m:?}");
            assert!(
                (m.nearest_is_train - 0.5).abs() < 5.0 * 0.5 / (700.0 * m.generated_close).sqrt(),
                "{name}: {m:?}"
            );
            assert_eq!((m.n_train, m.copies), (700, 0.0));
        }
    }
}

#[test]
fn copies_of_the_training_rows_raise_the_alarm() {
    for (name, draw) in [("bits", bits as fn(usize, u64) -> Samples), ("real", real)] {
        let (train, test) = (draw(700, 1), draw(700, 2));
        let found = compare(&train, &test, Some(&train), Stream::new(3)).unwrap();
        let m = found.memorisation.unwrap();
        assert!(m.alarm && m.copies == 1.0 && m.nearest_is_train == 1.0, "{name}: {m:?}");
        assert!(m.privacy_loss > 0.4 && m.train.accuracy < 0.05, "{name}: {m:?}");
        assert!(m.sentence().unwrap().contains("100 % of the generated samples"), "{m:?}");
    }
    // One copy in five, among many training rows, of which the comparison takes a part.
    let (train, test) = (rows(6000, true, 4), bits(1000, 5));
    let mut some = rows(1000, true, 6);
    some[..200 * COLUMNS].copy_from_slice(&train[3000 * COLUMNS..3200 * COLUMNS]);
    let (some, train) =
        (Samples::from_rows(COLUMNS, &some).unwrap(), Samples::from_rows(COLUMNS, &train).unwrap());
    let m = compare(&some, &test, Some(&train), Stream::new(7)).unwrap().memorisation.unwrap();
    assert!(m.alarm && m.n_train == 6000 && (m.copies - 0.2).abs() < 1e-9, "{m:?}");
}

/// Dull samples, all near the middle of the data, lie close to everything. That is a fault, and
/// neighbours see it, but no copying.
#[test]
fn dull_samples_are_not_taken_for_copies() {
    let shrunk = |x: Samples, seed: u64| {
        let noise = |i: usize| 0.02 * Stream::new(seed).normal(Site::default(), i);
        let n = x.n_rows() * COLUMNS;
        Samples::from_rows(COLUMNS, &(0..n).map(|i| 0.5 + noise(i)).collect::<Vec<_>>()).unwrap()
    };
    // Both ways round, since most are nearest to the one row in the middle, whichever set it is of.
    for (train, test) in [(1, 2), (2, 1)] {
        let (train, test) = (real(700, train), real(700, test));
        let dull = shrunk(real(700, 3), 4);
        let found = compare(&dull, &test, Some(&train), Stream::new(5)).unwrap();
        assert!(found.adversarial.accuracy > 0.6, "{found:?}");
        let m = found.memorisation.unwrap();
        assert!(m.generated_close > 0.9 && m.copies == 0.0, "{m:?}");
        assert!(!m.alarm, "{m:?}");
    }
}

#[test]
fn independent_bits_with_the_right_means_are_caught_by_the_correlations() {
    let free = Samples::from_rows(COLUMNS, &rows(1000, false, 8)).unwrap();
    let found = compare(&free, &bits(1000, 9), None, Stream::new(10)).unwrap();
    assert!(found.means.max_z < found.means.max_z_by_chance, "{:?}", found.means);
    let c = found.correlations.unwrap();
    assert!(c.rms_difference > 2.0 * c.rms_noise, "{c:?}");
    // Two of a group agree but for their own flips: a correlation of at least 0.8^2 m, where m is
    // what the variance of the source is of that of the bit.
    assert!(c.max_difference > 0.4 && c.max_difference > 3.0 * c.max_noise, "{c:?}");
    assert_eq!(c.columns.0 / 3, c.columns.1 / 3, "{c:?}");
    assert!(found.adversarial.accuracy > 0.5 + 4.0 * found.adversarial.std_error);
    assert!(found.memorisation.is_none());
}

/// Packed or not, distances and moments are the same.
#[test]
fn packing_changes_nothing() {
    let unpacked = |n: usize, seed: u64| {
        let mut samples = Samples::new(COLUMNS, Domain::Numbers);
        rows(n, true, seed).chunks(COLUMNS).for_each(|r| samples.push(r).unwrap());
        samples
    };
    let seed = Stream::new(1);
    let packed = compare(&bits(80, 1), &bits(90, 2), Some(&bits(70, 3)), seed).unwrap();
    let mixed = compare(&bits(80, 1), &unpacked(90, 2), Some(&bits(70, 3)), seed).unwrap();
    let numbers =
        compare(&unpacked(80, 1), &unpacked(90, 2), Some(&unpacked(70, 3)), seed).unwrap();
    assert_eq!(mixed, numbers);
    let (p, q) = (packed.memorisation.clone().unwrap(), numbers.memorisation.clone().unwrap());
    assert!((p.close.sqrt() - q.close).abs() < 1e-12, "{p:?} {q:?}");
    let mut numbers = numbers;
    numbers.memorisation.as_mut().unwrap().close = p.close;
    assert_eq!(packed, numbers);
}

#[test]
fn wrong_means_are_caught_where_they_are() {
    let mut values = rows(500, true, 11);
    values.iter_mut().skip(17).step_by(COLUMNS).for_each(|x| *x = 1.0);
    let wrong = Samples::from_rows(COLUMNS, &values).unwrap();
    let found = compare(&wrong, &bits(500, 12), None, Stream::new(13)).unwrap();
    assert!(found.means.max_z > found.means.max_z_by_chance, "{:?}", found.means);
    assert_eq!(found.means.column, 17);
}

#[test]
fn the_work_is_bounded_and_bad_samples_are_refused() {
    let (a, b) = (bits(2500, 1), bits(3000, 2));
    let found = compare(&a, &b, None, Stream::new(1)).unwrap();
    assert_eq!((found.n_generated, found.n_held_out, found.adversarial.n), (2000, 2000, 2000));
    assert_eq!(found, compare(&a, &b, None, Stream::new(1)).unwrap());
    assert!(Samples::from_rows(0, &[]).is_err());
    assert!(Samples::from_rows(3, &[0.0; 31]).is_err());
    assert!(Samples::new(2, Domain::Spins).push(&[1.0, 0.0]).is_err());
    assert!(Samples::new(2, Domain::Bits).push(&[1.0]).is_err());
    let few = Samples::from_rows(COLUMNS, &rows(9, true, 1)).unwrap();
    assert!(compare(&few, &b, None, Stream::new(1)).is_err());
    assert!(Samples::from_rows(1, &[f64::INFINITY; 27]).is_err());
    let narrow = Samples::from_rows(3, &[0.0; 30]).unwrap();
    assert!(compare(&narrow, &b, None, Stream::new(1)).is_err());
    // Constant columns have neither z-scores nor correlations.
    let found = compare(&narrow, &narrow, Some(&narrow), Stream::new(1)).unwrap();
    assert_eq!((found.means.max_z, found.correlations), (0.0, None));
    assert_eq!(found.adversarial.accuracy, 0.5);
    assert!(!found.memorisation.unwrap().alarm);
}
