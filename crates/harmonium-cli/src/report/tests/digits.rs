//! The report of a machine that learned the embedded digits.

use super::{FOLDER, check};
use crate::report::{Contents, Filters, html, mosaic};
use harmonium::evaluation::likelihood;
use harmonium::findings::{Evidence, Named, findings};
use harmonium::machine::{Batch, Engine, LayerId, Machine, Weights};
use harmonium::models::Rbm;
use harmonium::random::Stream;
use harmonium::run::{Ending, Epoch};
use harmonium::sampling::Chains;
use harmonium::training::{Every, Measurement, MetricName, On, Plan, View, train};
use harmonium_data::{Binarize, Dataset, Part, Split, Summary, digits};
use std::ops::ControlFlow;

const N_HIDDEN: usize = 16;

/// The probabilities of layer `to`, for each row of `given`, values of the other layer.
fn means(machine: &Machine, given: &[Vec<f64>], to: LayerId) -> Vec<Vec<f64>> {
    let from = if to == Rbm::VISIBLE { Rbm::HIDDEN } else { Rbm::VISIBLE };
    let mut x = harmonium::machine::State::zeros(machine, given.len()).unwrap();
    let layer = machine.layer(to);
    let mean = |(row, values): (usize, &Vec<f64>)| {
        x.set_row(from, row, values).unwrap();
        let mut theta = machine.theta(to, &x, row).unwrap();
        layer.units.mean_in_place(&mut theta, &layer.precision);
        theta
    };
    given.iter().enumerate().map(mean).collect()
}

fn column_means(rows: &[Vec<f64>]) -> Vec<f64> {
    let mean = |j: usize| rows.iter().map(|r| r[j]).sum::<f64>() / rows.len() as f64;
    (0..rows[0].len()).map(mean).collect()
}

fn rows(data: &Dataset) -> Vec<Vec<f64>> {
    let row = |i: usize| {
        let mut out = vec![0.0; data.n_columns()];
        data.means_into(i, &mut out);
        out
    };
    (0..data.n_rows()).map(row).collect()
}

fn free_energy(machine: &Machine, rows: &[Vec<f64>]) -> f64 {
    let rbm = Rbm::try_from(machine.clone()).unwrap();
    let batch = Batch::from_rows(machine, 64, &rows.concat()).unwrap();
    let energies = rbm.free_energy(&batch).unwrap();
    energies.iter().sum::<f64>() / energies.len() as f64
}

fn chain_rows(chains: &Chains, layer: LayerId) -> Vec<Vec<f64>> {
    (0..chains.state().n_rows()).map(|r| chains.state().row(layer, r).to_vec()).collect()
}

fn epoch(view: &View<'_, '_>, sets: [&Dataset; 2], chains: &mut Chains) -> Epoch {
    let machine = view.machine();
    let stream = Stream::new(7).fork(view.epoch);
    chains.advance(machine, &Engine::new(machine), 10, stream).unwrap();
    let [train, valid] = sets.map(|s| likelihood::exact(machine, s).unwrap().mean);
    let [f_train, f_valid] = sets.map(|s| free_energy(machine, &rows(s)));
    let activity = column_means(&means(machine, &rows(sets[0]), Rbm::HIDDEN));
    let asleep = |is: &dyn Fn(f64) -> bool| activity.iter().filter(|a| is(**a)).count() as f64;
    let values = [
        (MetricName::LogLikelihood(On::Train), train),
        (MetricName::LogLikelihood(On::Valid), valid),
        (MetricName::FreeEnergy(On::Train), f_train),
        (MetricName::ChainsFreeEnergy, free_energy(machine, &chain_rows(chains, Rbm::VISIBLE))),
        (MetricName::FreeEnergyGap, f_valid - f_train),
        (MetricName::DeadUnits, asleep(&|a| a < 0.005)),
        (MetricName::SaturatedUnits, asleep(&|a| a > 0.995)),
    ];
    let measurements = values.map(|(name, value)| Measurement { name, value, std_error: None });
    Epoch {
        measurements: measurements.to_vec().into(),
        ..Epoch::new(view.epoch, 0.12 * view.epoch as f64, &view.report)
    }
}

/// Trains, watching every epoch; gives the machine, the epochs and the chains.
fn learn(sets: [&Dataset; 2], plan: &Plan) -> (Machine, Vec<Epoch>, Chains) {
    let machine = Rbm::binary(64, N_HIDDEN).unwrap().into_machine();
    let mut chains = Chains::new(&machine, 100, Stream::new(6)).unwrap();
    let mut epochs = Vec::new();
    let mut watch = Every::new(1, |view: &View<'_, '_>| {
        epochs.push(epoch(view, sets, &mut chains));
        ControlFlow::Continue(())
    });
    let outcome = train(machine, sets[0], plan, &mut [&mut watch]).unwrap();
    (outcome.machine, epochs, chains)
}

fn facts(summary: &Summary, sets: [&Dataset; 2]) -> Vec<(String, String)> {
    let [train, valid] = sets.map(Dataset::n_rows);
    vec![
        ("rows".into(), format!("{train} training, {valid} validation")),
        ("columns".into(), summary.n_columns.to_string()),
        ("values".into(), format!("{} to {}, {}", summary.min, summary.max, summary.why)),
        ("zeros".into(), format!("{:.0} %", 100.0 * summary.zeros)),
        ("constant columns".into(), summary.n_constant.to_string()),
    ]
}

fn filters(machine: &Machine, activity: &[f64]) -> Vec<Filters> {
    let Weights::Between(weights) = &machine.couplings()[0].weights else { panic!("an RBM") };
    let tile = |j: usize| (0..64).map(|i| weights.at(i, j)).collect();
    let tiles = (0..N_HIDDEN).map(tile).collect();
    vec![Filters { layer: "hidden".into(), tiles, activity: activity.to_vec() }]
}

fn digits_run(epochs: u64) -> Contents {
    let (table, _) = digits::digits().unwrap();
    let (image, summary) = (table.image(), Summary::of(&table));
    let (train_table, valid_table) = Split::last(Part::Count(360)).apply(&table).unwrap();
    let [data, valid] =
        [train_table, valid_table].map(|t| Dataset::new(t, Binarize::Threshold(0.5)).unwrap());
    let plan = Plan { epochs, learning_rate: 0.05, ..Plan::default() };
    let (machine, watched, chains) = learn([&data, &valid], &plan);
    let activity = column_means(&means(&machine, &rows(&data), Rbm::HIDDEN));
    let score = likelihood::exact(&machine, &valid).unwrap();
    let score = format!("{:.2} ± {:.2} nats", score.mean, score.data_std_error);
    let entries = machine.couplings()[0].weights.entries().to_vec();
    let evidence = Evidence {
        plan,
        epochs: watched,
        ending: Ending::Finished,
        data_samples: rows(&data)[..100].to_vec(),
        model_samples: means(&machine, &chain_rows(&chains, Rbm::HIDDEN), Rbm::VISIBLE),
        weights: vec![Named { name: "visible – hidden".into(), values: entries }],
        activities: vec![Named { name: "hidden".into(), values: activity.clone() }],
    };
    Contents {
        title: "digits, RBM with 16 hidden units".into(),
        description: format!(
            "A restricted Boltzmann machine: layer `visible` of 64 binary units, layer `hidden` of \
             {N_HIDDEN} binary units; {} parameters.",
            machine.n_parameters()
        ),
        findings: findings(&evidence),
        evidence,
        notes: vec!["pixels are 1 where the grey level is at least half of 16".into()],
        scores: vec![("validation log-likelihood (exact)".into(), score)],
        mixing: Vec::new(),
        config: format!("learning-rate = 0.05\nepochs = {epochs}\nrule = \"pcd\"\nk = 1\n"),
        data: facts(&summary, [&data, &valid]),
        image,
        filters: filters(&machine, &activity),
    }
}

#[test]
fn a_machine_that_learned_digits_has_a_report() {
    let looked_at = std::env::var_os(FOLDER).is_some();
    let contents = digits_run(if looked_at { 40 } else { 4 });
    let page = html(&contents).unwrap();
    check("digits.html", &page);
    assert_eq!(page.matches("<img ").count(), 3);
    assert!(!page.contains("Training diverged"), "four epochs of digits are no disaster");
    let image = contents.image.unwrap();
    let columns = mosaic::square_columns(100, image);
    let samples =
        mosaic::png(&contents.evidence.model_samples, image, columns, mosaic::Scale::Unit, 4);
    assert!(samples.unwrap().starts_with(b"\x89PNG"));
}
