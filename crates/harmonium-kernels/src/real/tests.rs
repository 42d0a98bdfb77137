use super::*;
use crate::arbitrary::{lines, real, small};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    lines::<_, 1>(n, seed, real).iter().map(|x| x.0[0]).collect()
}

/// A view with gaps, in either order.
fn view(rows: usize, columns: usize, gap: usize, transposed: bool) -> View {
    if transposed {
        View::strided(columns, rows, rows + gap).transposed()
    } else {
        View::strided(rows, columns, columns + gap)
    }
}

fn at(view: View, i: usize, j: usize) -> usize {
    i * view.row_stride + j * view.column_stride
}

#[test]
fn products_are_sums_of_products_in_every_layout() {
    let sizes: &[usize] =
        if small() { &[0, 1, 5, 17] } else { &[0, 1, 2, 3, 7, 8, 9, 16, 17, 33, 65] };
    for (turn, (&m, &n)) in sizes.iter().flat_map(|m| sizes.iter().map(move |n| (m, n))).enumerate()
    {
        for &k in sizes.iter().chain(&[130]) {
            let [c_view, a_view, b_view] = [(m, n, 1), (m, k, 2), (k, n, 4)]
                .map(|(rows, columns, bit)| view(rows, columns, turn % 3, turn & bit != 0));
            // No number more than the view needs.
            let (a, b) = (numbers(a_view.end(), 1), numbers(b_view.end(), 2));
            let before = numbers(c_view.end() + 3, 3);
            let mut c = before.clone();
            let scale = -0.7;
            multiply_add((&mut c, c_view), (&a, a_view), (&b, b_view), scale);
            let mut written = vec![false; c.len()];
            for i in 0..m {
                for j in 0..n {
                    let old = f64::from(before[at(c_view, i, j)]);
                    let (mut expected, mut size) = (old, old.abs());
                    for l in 0..k {
                        let factors = [a[at(a_view, i, l)], b[at(b_view, l, j)], scale];
                        let product: f64 = factors.map(f64::from).iter().product();
                        (expected, size) = (expected + product, size + product.abs());
                    }
                    let bound = (k + 2) as f64 / 16_777_216.0 * size;
                    let found = f64::from(c[at(c_view, i, j)]);
                    assert!((found - expected).abs() <= bound, "{m}x{k}x{n}: {found}, {expected}");
                    written[at(c_view, i, j)] = true;
                }
            }
            let gaps = written.iter().zip(c.iter().zip(&before)).filter(|(written, _)| !**written);
            gaps.for_each(|(_, (now, before))| assert_eq!(now, before, "gaps are left alone"));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |c_view: View, a_view: View, b_view: View, lengths: [usize; 3]| {
        let [mut c, a, b] = lengths.map(|n| vec![0.0; n]);
        let run = AssertUnwindSafe(|| {
            multiply_add((&mut c, c_view), (&a, a_view), (&b, b_view), 1.0);
        });
        catch_unwind(run).is_err()
    };
    let (c, a, b) = (View::rows(2, 3), View::rows(2, 4), View::rows(4, 3));
    assert!(!refused(c, a, b, [6, 8, 12]));
    for short in [[5, 8, 12], [6, 7, 12], [6, 8, 11]] {
        assert!(refused(c, a, b, short), "{short:?}");
    }
    for (c, a, b) in [(View::rows(3, 3), a, b), (c, View::rows(2, 5), b), (c, a, View::rows(4, 2))]
    {
        assert!(refused(c, a, b, [100; 3]), "shapes that do not fit");
    }
    assert!(refused(View::strided(2, 3, 2), a, b, [100; 3]), "rows that overlap");
    assert!(refused(View { column_stride: 2, ..c }, a, b, [100; 3]), "no unit stride");
}

/// A view whose last entry lies beyond the address space must not wrap around to a small place.
#[test]
fn a_view_beyond_all_memory_is_refused() {
    let huge = View { shape: (3, 1), row_stride: usize::MAX / 2 + 1, column_stride: 1 };
    assert_eq!(huge.end(), usize::MAX);
    let huge = View { shape: (2, 2), row_stride: usize::MAX, column_stride: 1 };
    assert_eq!(huge.end(), usize::MAX);
}
