use super::*;
use crate::arbitrary::{FEW, lines, real, sizes};

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    lines::<_, 1>(n, seed, real).iter().map(|x| x.0[0]).collect()
}

const ALL: [Activation; 3] = [Activation::Logistic, Activation::Relu, Activation::Linear];

fn reference(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Logistic => 1.0 / (1.0 + (-x).exp()),
        Activation::Relu => x.max(0.0),
        Activation::Linear => x,
    }
}

fn dropout(keep: u32) -> Dropout {
    Dropout { stream: Stream::new(5), lane: 2, keep }
}

/// Units of a kind, with offsets or without.
fn units(activation: Activation, offset: &[f32], dropout: Option<Dropout>) -> Units<'_> {
    Units { activation, offset, dropout, first: 0 }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn values_are_those_of_the_formulas() {
    for n in sizes() {
        for units_ in FEW {
            let rows = Rows { n, stride: n + 3 };
            let before = numbers(units_ * rows.stride, 1);
            let bias = numbers(units_, 2);
            let offsets = numbers(units_, 9);
            for (activation, offset) in ALL.iter().flat_map(|&a| [(a, &[][..]), (a, &offsets[..])])
            {
                let of = units(activation, offset, None);
                let mut x = before.clone();
                activate(&mut x, rows, &bias, of);
                let mut twin = before.clone();
                activate_portable(&mut twin, rows, &bias, of);
                assert_eq!(bits(&x), bits(&twin));
                let mut slopes = before.clone();
                multiply_slopes(&mut slopes, &x, rows, of);
                for u in 0..units_ {
                    let o = offset.get(u).map_or(0.0, |o| f64::from(*o));
                    for r in 0..rows.stride {
                        let at = u * rows.stride + r;
                        if r >= n {
                            assert_eq!(x[at].to_bits(), before[at].to_bits(), "beyond the rows");
                            assert_eq!(slopes[at].to_bits(), before[at].to_bits());
                            continue;
                        }
                        let input = f64::from(before[at] + bias[u]);
                        let expected = reference(activation, input) - o;
                        assert!((f64::from(x[at]) - expected).abs() < 1e-6 * (2.0 + input.abs()));
                        let y = f64::from(x[at]) + o;
                        let slope = match activation {
                            Activation::Logistic => y * (1.0 - y),
                            Activation::Relu => f64::from(u8::from(input > 0.0)),
                            Activation::Linear => 1.0,
                        };
                        let expected = f64::from(before[at]) * slope;
                        assert!(
                            (f64::from(slopes[at]) - expected).abs()
                                < 1e-6 * (1.0 + expected.abs())
                        );
                    }
                }
            }
        }
    }
}

/// Units are dropped as often as they should be, alike in whatever pieces, and their slope is 0.
#[test]
fn dropout_keeps_its_share() {
    let (n_units, n) = (500, 100);
    let rows = Rows { n, stride: 112 };
    for keep in [KEEP_ALL / 2, 52429, 1, KEEP_ALL] {
        let mut x = vec![1.0; n_units * rows.stride];
        drop_units(&mut x, rows, dropout(keep), 0);
        let kept: usize = x.chunks(112).map(|x| x[..n].iter().filter(|x| **x == 1.0).count()).sum();
        let (p, total) = (f64::from(keep) / 65536.0, (n_units * n) as f64);
        let sd = (p * (1.0 - p) * total).sqrt();
        assert!((kept as f64 - p * total).abs() <= 5.0 * sd + 1e-9, "{keep}: {kept}");
        let mut pieces = vec![1.0; n_units * rows.stride];
        for (first, piece) in (0..).step_by(7).zip(pieces.chunks_mut(7 * rows.stride)) {
            drop_units(piece, rows, dropout(keep), first);
        }
        assert_eq!(x, pieces);
        let offsets = vec![0.25; n_units];
        for (activation, offset) in ALL.iter().flat_map(|&a| [(a, &[][..]), (a, &offsets[..])]) {
            let (bias, input) = (vec![0.5; n_units], vec![1.0; n_units * rows.stride]);
            let of = units(activation, offset, Some(dropout(keep)));
            let mut y = input.clone();
            activate(&mut y, rows, &bias, of);
            let mut slopes = input.clone();
            multiply_slopes(&mut slopes, &y, rows, of);
            for (at, x) in x.iter().enumerate().filter(|(at, _)| at % rows.stride < n) {
                assert_eq!(*x == 0.0, y[at] == 0.0);
                assert_eq!(*x == 0.0, slopes[at] == 0.0);
            }
        }
    }
}

#[test]
fn shares_sum_to_one() {
    for n in sizes().into_iter().step_by(3) {
        for units in [1, 2, 10] {
            let rows = Rows { n, stride: n + 1 };
            let before = numbers(units * rows.stride, 3);
            let mut x = before.clone();
            softmax(&mut x, rows);
            for r in 0..n {
                let of = |x: &[f32], u: usize| f64::from(x[u * rows.stride + r]);
                let total: f64 = (0..units).map(|u| of(&before, u).exp()).sum();
                for u in 0..units {
                    assert!((of(&x, u) - of(&before, u).exp() / total).abs() < 1e-6);
                }
            }
        }
    }
}

#[test]
fn sums_are_sums() {
    for n in sizes() {
        let rows = Rows { n, stride: n + 2 };
        let x = numbers(3 * rows.stride, 4);
        let mut sums = [0.0; 3];
        sum_units(&x, rows, &mut sums);
        for (sum, x) in sums.iter().zip(x.chunks(rows.stride)) {
            let expected: f64 = x[..n].iter().map(|x| f64::from(*x)).sum();
            assert!((f64::from(*sum) - expected).abs() < 1e-5 * (1.0 + n as f64));
        }
    }
}

/// Both ways down are those of the formulas, in double precision, and the same bits on every machine.
#[test]
fn steps_descend() {
    let step = Descent { rate: 0.1, momentum: 0.9, decay: 0.01 };
    for n in sizes() {
        let (w0, v0, g) = (numbers(n, 5), numbers(n, 6), numbers(n, 7));
        let (mut w, mut v) = (w0.clone(), v0.clone());
        let squares = descend_by_momentum(&mut w, &mut v, &g, step);
        let (mut w2, mut v2) = (w0.clone(), v0.clone());
        assert_eq!(squares, momentum_portable(&mut w2, &mut v2, &g, step));
        assert_eq!((bits(&w), bits(&v)), (bits(&w2), bits(&v2)));
        let mut expected = [0.0_f64; 3];
        for i in 0..n {
            let slope = f64::from(g[i]) + 0.01 * f64::from(w0[i]);
            let update = 0.9 * f64::from(v0[i]) - 0.1 * slope;
            assert!((f64::from(v[i]) - update).abs() < 1e-6);
            assert!((f64::from(w[i]) - f64::from(w0[i]) - update).abs() < 1e-6);
            for (sum, x) in expected.iter_mut().zip([f64::from(w[i]), update, slope]) {
                *sum += x * x;
            }
        }
        let found = [squares.parameters, squares.update, squares.gradient];
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5 * (1.0 + expected));
        }
        let correction = Correction { first: 0.1, second: 0.001 };
        let (mut w, mut m, mut s) = (w0.clone(), v0.clone(), vec![0.5; n]);
        let squares = descend_by_adam(&mut w, &mut m, &mut s, &g, step, correction);
        let (mut w2, mut m2, mut s2) = (w0.clone(), v0.clone(), vec![0.5; n]);
        assert_eq!(squares, adam_portable(&mut w2, &mut m2, &mut s2, &g, step, correction));
        assert_eq!((bits(&w), bits(&m), bits(&s)), (bits(&w2), bits(&m2), bits(&s2)));
        for i in 0..n {
            let slope = f64::from(g[i]) + 0.01 * f64::from(w0[i]);
            let first = 0.9 * f64::from(v0[i]) + 0.1 * slope;
            let second = 0.999 * 0.5 + 0.001 * slope * slope;
            let update = -0.1 * (first / 0.1) / ((second / 0.001).sqrt() + 1e-8);
            assert!((f64::from(w[i]) - f64::from(w0[i]) - update).abs() < 2e-6);
        }
    }
}

#[test]
fn numbers_are_subtracted() {
    let (before, y) = (numbers(37, 8), numbers(37, 9));
    let mut x = before.clone();
    subtract(&mut x, &y);
    assert!((0..37).all(|i| x[i].to_bits() == (before[i] - y[i]).to_bits()));
}

#[test]
fn numbers_are_scaled() {
    let before = numbers(37, 8);
    let mut x = before.clone();
    scale(&mut x, 0.25);
    assert!(x.iter().zip(&before).all(|(x, b)| x.to_bits() == (b * 0.25).to_bits()));
}
