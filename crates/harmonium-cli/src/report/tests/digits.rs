//! The report of a machine that learned the embedded digits.

use super::{FOLDER, check};
use crate::report::{Contents, html, mosaic};
use harmonium::evaluation::monitor::Monitor;
use harmonium::findings::{Evidence, findings};
use harmonium::model::{Portrait, Training};
use harmonium::progress::Silent;
use harmonium::run::{Ending, Epoch};
use harmonium::training::{Metric, Observer, View};
use harmonium::{Binarize, Dataset, Error, Method, Plan, Rbm};
use harmonium_data::{Part, Split, Summary, digits};
use std::ops::ControlFlow;

const N_HIDDEN: usize = 16;

/// Measures after every epoch, as a recorded run does.
struct Kept<'d> {
    monitor: Monitor<'d>,
    epochs: Vec<Epoch>,
}

impl Observer for Kept<'_> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let epoch = view.epoch();
        self.epochs.push(Epoch {
            measurements: self.monitor.measure(view)?.into(),
            ..Epoch::new(epoch, 0.12 * epoch as f64, &view.report)
        });
        Ok(ControlFlow::Continue(()))
    }
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

fn digits_run(epochs: u64) -> Contents {
    let (table, _) = digits::digits().unwrap();
    let (image, summary) = (table.image(), Summary::of(&table));
    let (train_table, valid_table) = Split::last(Part::Count(360)).apply(&table).unwrap();
    let [data, valid] =
        [train_table, valid_table].map(|t| Dataset::new(t, Binarize::Threshold(0.5)).unwrap());
    let plan = Plan { epochs, learning_rate: 0.05, ..Plan::default() };
    let mut kept = Kept { monitor: Monitor::new(&data, Some(&valid), 0), epochs: Vec::new() };
    let training = Training::new(Rbm::binary(64, N_HIDDEN).unwrap(), &data, &plan);
    let model = training.run(&mut [&mut kept], &mut Silent).unwrap();
    let score = model.score(&valid, Method::Exact).unwrap();
    let score = format!("{:.2} ± {:.2} nats", score.mean, score.data_std_error.unwrap());
    let Portrait { filters, weights, activities, data_samples, model_samples, .. } =
        model.portrait(Some(&data), 0, None, &mut Silent).unwrap();
    let ending = Ending::Finished;
    let evidence = Evidence {
        plan,
        epochs: kept.epochs,
        ending,
        data_samples,
        model_samples,
        weights,
        activities,
        ..Evidence::default()
    };
    Contents {
        title: "digits, RBM with 16 hidden units".into(),
        description: format!(
            "A restricted Boltzmann machine: layer `visible` of 64 binary units, layer `hidden` of \
             {N_HIDDEN} binary units; {} parameters.",
            model.body.n_parameters()
        ),
        findings: findings(&evidence),
        evidence,
        notes: vec!["pixels are 1 where the grey level is at least half of 16".into()],
        scores: vec![("validation log-likelihood (exact)".into(), score)],
        mixing: Vec::new(),
        config: format!("learning-rate = 0.05\nepochs = {epochs}\nrule = \"pcd\"\nk = 1\n"),
        data: facts(&summary, [&data, &valid]),
        image,
        filters,
        mistakes: Vec::new(),
    }
}

#[test]
fn a_machine_that_learned_digits_has_a_report() {
    let looked_at = std::env::var_os(FOLDER).is_some();
    let contents = digits_run(if looked_at { 40 } else { 4 });
    let page = html(&contents).unwrap();
    check("digits.html", &page);
    assert_eq!(page.matches("<img ").count(), 3);
    assert!(!page.contains("Training diverged"), "four epochs of digits diverged");
    let image = contents.image.unwrap();
    let samples = &contents.evidence.model_samples;
    let columns = mosaic::square_columns(samples.len(), image);
    let picture = mosaic::png(samples, image, columns, mosaic::Scale::Unit, 4);
    assert!(picture.unwrap().starts_with(b"\x89PNG"));
}
