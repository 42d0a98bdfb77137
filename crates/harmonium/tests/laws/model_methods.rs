//! How samples are found: every method has the exact probabilities, and the verdict fires where chains
//! stick and nowhere else.

use crate::machines::{discrete, named};
use crate::model::{Holed, labelled_machines};
use crate::model_samples::{counts, visible_states};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::evaluation::verdict::Verdict;
use harmonium::machine::{Base, LayerId, Machine, State};
use harmonium::model::{Drawing, Drawn, Found, Sampling};
use harmonium::models::{curie_weiss, ising_torus};
use harmonium::progress::Silent;
use harmonium::random::Stream;
use harmonium::sampling::{Chains, Clamp};
use harmonium::{Error, Model, exact};
use ndarray::Axis;

fn drawn(model: &Model, drawing: &Drawing) -> Drawn {
    model.freely().draw(drawing, &mut Silent).unwrap()
}

/// Two states far apart, equally likely but for a small field.
fn magnet(n: usize, beta: f64) -> Model {
    Model::from(curie_weiss(n, beta).unwrap().into_machine())
}

/// The magnetisation of each sample.
fn magnetisations(drawn: &Drawn) -> Vec<f64> {
    drawn.values.rows().into_iter().map(|row| row.sum() / row.len() as f64).collect()
}

#[test]
fn exact_samples_are_the_default_where_they_are_affordable() {
    const N: usize = 1500;
    for (name, machine) in discrete() {
        let model = Model::from(machine.clone());
        let found = drawn(&model, &Drawing { n: N, seed: 3, ..Drawing::default() });
        assert_eq!((found.method, found.trust.verdict), (Found::Exact, Verdict::Exact), "{name}");
        assert_eq!((found.sweeps, found.trust.effective_samples), (0, Some(N as f64)), "{name}");
        let one = State::zeros(&machine, 1).unwrap();
        let (states, p) = visible_states(&machine, &Clamp::none(), &one);
        assert_distributed(&name, &counts(&machine, &states, &found.values), &p);
    }
    let large = ising_torus(64, 0.4).unwrap().into_machine();
    let asked = Drawing { method: Sampling::Exact, n: 1, ..Drawing::default() };
    let refused = Model::from(large).freely().draw(&asked, &mut Silent);
    assert!(matches!(refused, Err(Error::TooManyTerms { .. } | Error::Memory { .. })));
}

#[test]
fn exact_samples_given_rows_and_classes_have_the_conditional_probabilities() {
    const N: usize = 1500;
    for name in ["rbm of binary", "lateral of spin", "tree of categorical"] {
        let machine = named(name);
        let holed = Holed::new(&machine, 46);
        let model = Model::from(machine.clone());
        let given = model.given(&holed.data(&machine, 1), None).unwrap();
        for method in [Sampling::Auto, Sampling::Tempered] {
            // Tempered samples of one ladder are ten rounds apart.
            let sweeps = (method == Sampling::Tempered).then_some(2000);
            let drawing = Drawing { n: N, method, sweeps, seed: 8, ..Drawing::default() };
            let found = given.draw(&drawing, &mut Silent).unwrap();
            for row in 0..4 {
                let of_row = (row * N..(row + 1) * N).into();
                let of_row = found.values.slice_axis(Axis(0), of_row).to_owned();
                let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
                let (states, p) = visible_states(&machine, &clamp, &x);
                let counts = counts(&machine, &states, &of_row);
                if states.len() > 1 {
                    assert_distributed(&format!("{name}, {method:?}, row {row}"), &counts, &p);
                }
            }
        }
    }
    for (name, model) in labelled_machines() {
        let machine = model.top().unwrap().clone();
        let mut one = State::zeros(&machine, 1).unwrap();
        one.set_row(LayerId(1), 0, &[0.0, 1.0, 0.0]).unwrap();
        let (states, p) = visible_states(&machine, &Clamp::layers([LayerId(1)]), &one);
        for method in [Sampling::Auto, Sampling::Tempered] {
            let drawing = Drawing { n: N, method, seed: 9, ..Drawing::default() };
            let found = model.of_class("b").unwrap().draw(&drawing, &mut Silent).unwrap();
            assert_distributed(name, &counts(&machine, &states, &found.values), &p);
        }
    }
}

/// Cold ends of ladders, some rounds apart, over all graphs and kinds.
#[test]
fn tempered_samples_have_the_exact_probabilities() {
    const N: usize = 800;
    for (name, machine) in discrete() {
        let model = Model::from(machine.clone());
        let (method, sweeps) = (Sampling::Tempered, Some(1000));
        let found = drawn(&model, &Drawing { n: N, method, sweeps, seed: 5, ..Drawing::default() });
        assert_eq!((found.method, found.sweeps), (Found::Tempered, 1000));
        assert_eq!(found.trust.verdict, Verdict::Mixed, "{name}: {:?}", found.trust);
        assert!(found.round_trips.unwrap() > 100, "{name}: {:?}", found.round_trips);
        let one = State::zeros(&machine, 1).unwrap();
        let (states, p) = visible_states(&machine, &Clamp::none(), &one);
        assert_distributed(&name, &counts(&machine, &states, &found.values), &p);
    }
}

#[test]
fn tempered_samples_of_real_units_have_the_exact_moments() {
    for (name, machine) in crate::machines::gaussian().into_iter().take(3) {
        let model = Model::from(machine.clone());
        let (method, sweeps) = (Sampling::Tempered, Some(1200));
        let drawing = Drawing { n: 800, method, sweeps, seed: 6, ..Drawing::default() };
        let found = drawn(&model, &drawing).values;
        let one = State::zeros(&machine, 1).unwrap();
        let exact = exact::moments(&machine, &Clamp::none(), &one, &[1.0]).unwrap();
        let l = machine.visible_layers()[0];
        for i in 0..machine.layer(l).len() {
            let values = found.column(i).to_vec();
            assert_mean(&name, &values, exact.bias[l.0][i]);
            let squares: Vec<f64> = values.iter().map(|v| -0.5 * v * v).collect();
            if !machine.layer(l).units.is_finite() {
                assert_mean(&name, &squares, exact.own[l.0][i]);
            }
        }
    }
}

/// The verdict must fire: below its critical temperature a magnet keeps the side it fell to.
#[test]
fn chains_that_stick_are_said_to_have_not_mixed() {
    let model = magnet(60, 2.0);
    let drawing = Drawing { method: Sampling::Gibbs, ..Drawing::default() };
    let found = drawn(&model, &drawing);
    assert_eq!((found.trust.verdict, found.sweeps), (Verdict::NotMixed, 1000));
    assert!(found.trust.r_hat.unwrap() > 1.5, "{:?}", found.trust);
    assert!(found.trust.effective_samples.unwrap() < 50.0, "{:?}", found.trust);
    let text = found.warning().unwrap();
    assert!(text.contains("R-hat") && text.contains("1000 sweeps"), "{text}");
    // One chain alone cannot disagree with itself: companions watch with it.
    let one = drawn(&model, &Drawing { n: 1, ..drawing });
    assert_eq!((one.values.nrows(), one.trust.verdict), (1, Verdict::NotMixed));
    let few = drawn(&model, &Drawing { sweeps: Some(9), ..drawing });
    assert_eq!((few.trust.verdict, few.trust.r_hat), (Verdict::Unknown, None));
    assert!(few.warning().unwrap().contains("9 sweeps"));
}

/// And it must not: machines whose chains forget fast.
#[test]
fn chains_that_forget_are_said_to_have_mixed() {
    let mut models = vec![("magnet", magnet(60, 0.5))];
    let torus = ising_torus(12, 0.25).unwrap().into_machine();
    models.push(("torus", Model::from(torus)));
    models.extend(labelled_machines());
    for (name, model) in models {
        for seed in 0..4 {
            let method = Sampling::Gibbs;
            let found = drawn(&model, &Drawing { method, seed, n: 30, ..Drawing::default() });
            assert_eq!(found.trust.verdict, Verdict::Mixed, "{name}: {:?}", found.trust);
            assert_eq!((found.trust.effective_samples, found.warning()), (Some(30.0), None));
        }
    }
}

/// Given rows have distributions of their own: that they differ says nothing against their chains.
#[test]
fn given_rows_are_judged_one_by_one() {
    let machine = named("chain of spin");
    let holed = Holed::new(&machine, 47);
    let model = Model::from(machine.clone());
    let given = model.given(&holed.data(&machine, 1), None).unwrap();
    let drawing = Drawing { n: 1, method: Sampling::Gibbs, ..Drawing::default() };
    let found = given.draw(&drawing, &mut Silent).unwrap();
    assert_eq!(found.trust.verdict, Verdict::Mixed, "{:?}", found.trust);
    assert_eq!(found.values.nrows(), 4);
    // With one spin held a magnet stays on its side; with none it does not know where to go.
    let stuck = magnet(60, 2.0);
    let mut row = ndarray::Array2::from_elem((1, 60), f64::NAN);
    let judge = |row: &ndarray::Array2<f64>| {
        let data = harmonium::Dataset::from_array(row.view()).unwrap();
        stuck.given(&data, None).unwrap().draw(&drawing, &mut Silent).unwrap().trust.verdict
    };
    assert_eq!(judge(&row), Verdict::NotMixed);
    (0..20).for_each(|i| row[[0, i]] = 1.0);
    assert_eq!(judge(&row), Verdict::Mixed);
}

/// Tempering and cluster moves find both sides of a magnet, and say so.
#[test]
fn a_magnet_that_sticks_is_turned_by_tempering_and_by_clusters() {
    let model = magnet(60, 1.6);
    for method in [Sampling::Tempered, Sampling::Auto] {
        let found = drawn(&model, &Drawing { method, n: 200, seed: 1, ..Drawing::default() });
        let way = if method == Sampling::Auto { Found::Cluster } else { Found::Tempered };
        assert_eq!((found.method, found.trust.verdict), (way, Verdict::Mixed), "{:?}", found.trust);
        let (m, n) = (magnetisations(&found), found.trust.effective_samples.unwrap());
        let up = m.iter().filter(|m| **m > 0.0).count() as f64 / m.len() as f64;
        assert!((up - 0.5).abs() < 4.0 * (0.25 / n).sqrt(), "{method:?}: {up} of {n} are up");
    }
}

/// Onsager: $|m| = (1 - \sinh^{-4} 2K)^{1/8}$ on the infinite lattice; a torus of side 32 differs by
/// less than the statistics far below the critical temperature.
#[test]
fn a_cold_torus_has_onsagers_magnetisation() {
    for (k, n) in [(0.6_f64, 60), (1.0, 30)] {
        let model = Model::from(ising_torus(32, k).unwrap().into_machine());
        let found = drawn(&model, &Drawing { n, seed: 2, ..Drawing::default() });
        assert_eq!((found.method, found.trust.verdict), (Found::Cluster, Verdict::Mixed));
        let sizes: Vec<f64> = magnetisations(&found).iter().map(|m| m.abs()).collect();
        let onsager = (1.0 - (2.0 * k).sinh().powi(-4)).powf(0.125);
        assert_mean(&format!("K = {k}"), &sizes, onsager);
        assert!(magnetisations(&found).iter().any(|m| *m > 0.0));
        assert!(magnetisations(&found).iter().any(|m| *m < 0.0));
    }
}

/// The samples do not depend on how many others are drawn beside them, nor on the number of threads.
#[test]
fn samples_of_every_method_are_determined_by_the_seed() {
    let model = magnet(40, 1.4);
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    for method in [Sampling::Gibbs, Sampling::Tempered, Sampling::Auto] {
        let drawing = Drawing { method, n: 20, seed: 4, ..Drawing::default() };
        let on = |n: usize| pool(n).install(|| drawn(&model, &drawing));
        assert_eq!(on(1), on(3), "{method:?}");
    }
}

/// Chains with part held stay stationary at every temperature of their ladder.
#[test]
fn ladders_with_units_held_keep_them() {
    let machine: Machine = named("lateral of spin");
    let held = vec![true, false];
    let clamp = Clamp::none().with_units(LayerId(0), held);
    let start = Chains::new(&machine, 5, Stream::new(1)).unwrap();
    let betas = [0.0, 0.5, 1.0];
    let mut ladders = harmonium::sampling::Tempering::holding(
        &machine,
        (start.state(), &clamp),
        &betas,
        Base::of_biases(&machine),
        Stream::new(2),
    )
    .unwrap();
    let sampler =
        harmonium::sampling::Sampler::new(machine.clone(), harmonium::engine::Arithmetic::F64);
    ladders.advance(&sampler, 50, Stream::new(3)).unwrap();
    for row in 0..15 {
        let (now, then) = (ladders.replicas().row(LayerId(0), row)[0], row / 3);
        assert_eq!(now, start.state().row(LayerId(0), then)[0], "row {row}");
    }
}
