use harmonium_kernels::{
    bits::BitMatrix, index::*, line::*, random::*, response::*, tables::*, update::*,
};
use std::time::Instant;
fn time(name: &str, mut f: impl FnMut()) {
    if let Some(a) = std::env::args().nth(1) {
        if !name.starts_with(&a) {
            f();
            return;
        }
    }
    let mut v: Vec<f64> = (0..300)
        .map(|_| {
            let t = Instant::now();
            f();
            t.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    v.sort_by(f64::total_cmp);
    println!("{name:30} min {:.1} med {:.1} us", v[0], v[150]);
}
fn main() {
    let (n, m, b) = (784, 500, 100);
    let mut k = 0u32;
    let mut u = || {
        k += 1;
        Stream::new(3).words(Site::default(), k)[0]
    };
    let mut v = BitMatrix::zeros(0, n);
    for _ in 0..2 * b {
        v.push_row(|_| u() % 100 < 19);
    }
    let mut h = BitMatrix::zeros(0, m);
    for _ in 0..b {
        h.push_row(|_| u() % 100 < 30);
    }
    let panels = m.div_ceil(64);
    let vpanels = n.div_ceil(32);
    let mut w: Vec<Vec<Row>> = (0..panels)
        .map(|_| {
            (0..n)
                .map(|_| Line(std::array::from_fn(|_| (u() % 1000) as f32 * 1e-4 - 0.05)))
                .collect()
        })
        .collect();
    let mut vel = w.clone();
    let mut copies = vec![Copies::new(n); panels];
    let mut unit = vec![vec![Wide::ZERO; 6]; panels];
    let mut piecef = vec![vec![Single::ZERO; n.div_ceil(16) * 64]; panels];
    let scales = vec![1024.0f32; n + 64];
    let (mut t16, mut tf, mut tu) =
        (Tables::<i16, 32>::default(), Tables::<f32, 16>::default(), Tables::<u16, 32>::default());
    let mut theta = vec![Wide::ZERO; 2 * b];
    let mut sums = vec![Quantum::ZERO; 2 * b];
    let (mut sv, mut sh) = (Words::default(), Words::default());
    let mut lists = Samples::default();
    time("extract", || {
        sv.fill_rows(&[&v]);
        sh.fill_rows(&[&h]);
    });
    let mut vd = BitMatrix::zeros(0, n);
    for r in 0..b {
        vd.push_row(|c| v.get(r, c));
    }
    let (mut c1, mut c2) = (Words::default(), Words::default());
    time("columns x2", || {
        c1.fill_columns(&vd, FIELD_CHUNK);
        c2.fill_columns(&vd, FIELD_CHUNK);
    });
    time("quantise", || {
        for p in 0..panels {
            copies[p].quantise(&w[p])
        }
    });
    time("quantise_backward", || {
        for p in 0..panels {
            for t in 0..vpanels {
                copies[p].quantise_backward(&w[p], t, &scales)
            }
        }
    });
    time("transpose_single", || {
        for p in 0..panels {
            for t in 0..n / 16 {
                transpose_single(&w[p], 16 * t, &mut piecef[p][64 * t..])
            }
        }
    });
    time("v->h i16", || {
        for p in 0..panels {
            for t in 0..2 {
                let qq = &copies[p].forward[t * n..(t + 1) * n];
                add_quantised(
                    sv.as_slice(),
                    n,
                    |i| &qq[i].0,
                    &unit[p][3 * t..3 * t + 3],
                    &mut theta,
                    &mut sums,
                    &mut t16,
                )
            }
        }
    });
    time("v->h f32", || {
        for p in 0..panels {
            for t in 0..4 {
                let ww = &w[p];
                add_single(sv.as_slice(), n, |i| ww[i].part(t), 1.0, t % 2, &mut theta, &mut tf)
            }
        }
    });
    time("h->v i16", || {
        for t in 0..vpanels {
            add_quantised(
                sh.as_slice(),
                m,
                |j| &copies[j / 64].backward[64 * t + j % 64].0,
                &unit[0],
                &mut theta[..b],
                &mut sums,
                &mut t16,
            )
        }
    });
    time("h->v f32", || {
        for t in 0..n / 16 {
            add_single(
                sh.as_slice(),
                m,
                |j| &piecef[j / 64][64 * t + j % 64].0,
                1.0,
                t % 2,
                &mut theta[..b],
                &mut tf,
            )
        }
    });
    lists.fill(&[&v]);
    println!("{}", matches!(lists.form(), Form::Lists(_)));
    let mut li = Lists::default();
    li.fill((0..2 * b).map(|r| v.row(r)), n);
    time("fill lists", || li.fill((0..2 * b).map(|r| v.row(r)), n));
    time("v->h listed i16", || {
        for p in 0..panels {
            for t in 0..2 {
                let qq = &copies[p].forward[t * n..(t + 1) * n];
                add_quantised_listed(&li, n, |i| &qq[i].0, &unit[p][3 * t..3 * t + 3], &mut theta)
            }
        }
    });
    theta
        .iter_mut()
        .enumerate()
        .for_each(|(r, t)| t.0 = std::array::from_fn(|l| ((r * 3 + l) as f32).sin()));
    let mut out = vec![0u32; 2 * b];
    time("sample v", || {
        for t in 0..vpanels {
            sample(
                &theta[..b],
                Stream::new(1),
                Site::default(),
                t as u32,
                Resolution::Coarse,
                &mut out,
            )
        }
    });
    time("probabilities", || {
        for _ in 0..16 {
            probabilities(&mut theta)
        }
    });
    time("sample_means h", || {
        for t in 0..16 {
            sample_means(
                &theta[..b],
                Stream::new(1),
                Site::default(),
                t as u32,
                Resolution::Coarse,
                &mut out,
            )
        }
    });
    time("sum rows", || {
        for _ in 0..16 {
            std::hint::black_box(sum_rows(&theta));
        }
    });
    let mut f = vec![Fields::ZERO; 2 * b];
    time("fields", || {
        for _ in 0..8 {
            to_fields(&theta, &[7; 32], Byte::Low, &mut f);
            to_fields(&theta, &[7; 32], Byte::High, &mut f);
        }
    });
    let mut g = vec![Sums::ZERO; n];
    time("gradient", || {
        for _ in 0..8 {
            sum_fields(c1.as_slice(), &f[..b], Sign::Start, &mut g, &mut tu);
            sum_fields(c2.as_slice(), &f[b..], Sign::Minus, &mut g, &mut tu);
            finish_fields(&mut g);
        }
    });
    let half: Vec<Single> = theta.iter().map(|t| Line(std::array::from_fn(|l| t.0[l]))).collect();
    let mut gf = vec![Row::ZERO; n];
    let mut ca = Words::default();
    ca.fill_columns(&v, CHUNK);
    time("gradient f32", || {
        for _ in 0..8 {
            for t in 0..4 {
                let th = &half;
                sum_single(ca.as_slice(), 2 * b, |r| &th[r].0, t, &mut gf, &mut tf)
            }
        }
    });
    let rows = vec![[0.01f32, 0.02]; n];
    let cols = [Line([0.01; 64]); 2];
    let step = Step { rate: 1e-5, momentum: 0.5, l1: 0.0, l2: 1e-4 };
    let gr = FieldSums::new(&g, 1e-3);
    let terms = RankOne { rows: &rows, columns: &cols };
    time("update", || {
        for p in 0..panels {
            update(&gr, terms, step, &mut w[p], &mut vel[p]);
        }
    });
    time("update quantised", || {
        for p in 0..panels {
            update_quantised(&gr, terms, step, &mut w[p], &mut vel[p], &mut copies[p], &scales);
        }
    });
    time("update one panel x8", || {
        for _ in 0..panels {
            update(&gr, terms, step, &mut w[0], &mut vel[0]);
        }
    });
    time("update quantised one panel x8", || {
        for _ in 0..panels {
            update_quantised(&gr, terms, step, &mut w[0], &mut vel[0], &mut copies[0], &scales);
        }
    });
    time("rescale", || {
        for p in 0..panels {
            copies[p].rescale(&w[p]);
        }
    });
    time("slope squared", || {
        for p in 0..panels {
            std::hint::black_box(slope_squared(&gr, terms, step, &w[p]));
        }
    });
}
