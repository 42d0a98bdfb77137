//! Nets in run directories: stopped by a listener and resumed, with the best validated net as the result.

use crate::folder::Folder;
use harmonium::evaluation::tracking::Watch;
use harmonium::machine::{Layer, Role};
use harmonium::model::{Finetuning, Looked};
use harmonium::network::{NetworkPlan, Shape, random};
use harmonium::progress::{Listener, Silent, Work};
use harmonium::run::{
    About, Overwrite, Recorded, Recording, RunDirectory, RunWriter, SavedCheckpoint,
};
use harmonium::training::{Guarding, MetricName, On, OptimizerKind};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, digits};
use std::fs;
use std::path::Path;

fn data() -> (Dataset, Dataset) {
    let (table, labels) = digits::digits().unwrap();
    let labels = Labels::from_values(labels.into_iter().map(u32::from).collect());
    let data = Dataset::new(table, Binarize::Sample).unwrap().with_labels(labels).unwrap();
    let part = |rows: std::ops::Range<usize>| data.select_rows(&rows.collect::<Vec<_>>()).unwrap();
    (part(0..200), part(200..300))
}

/// Stops the training once it has heard of so many epochs.
struct Stops(u64);

impl Listener for Stops {
    fn at(&mut self, work: Work<'_>) {
        if work.what == "training" && work.done >= self.0 {
            self.0 = 0;
        }
    }

    fn cancelled(&mut self) -> bool {
        self.0 == 0
    }
}

fn record(
    finetuning: &Finetuning<'_>,
    looked: &Looked,
    writer: &mut RunWriter,
    from: Option<&SavedCheckpoint>,
    listener: &mut dyn Listener,
) -> Recorded {
    let mut learner = match from {
        None => finetuning.learner(&mut Silent).unwrap(),
        Some(saved) => finetuning.resumed(&saved.checkpoint, &mut Silent).unwrap(),
    };
    let recording = Recording {
        about: About { seed: 1, data: finetuning.memory().unwrap(), ..About::default() },
        train: finetuning.data,
        valid: finetuning.valid.map(|valid| valid.0),
        patience: Some(20),
        checkpoint_seconds: 1e9,
        watch: Watch::None,
        guarding: Guarding::Warn,
        metrics: vec![Box::new(finetuning.monitor(looked, &mut Silent).unwrap())],
    };
    writer.record(&mut learner, recording, from, listener).unwrap()
}

/// The times of events are all that may differ.
fn events(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path.join("events.jsonl")).unwrap();
    let timeless = |line: &str| {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        event.as_object_mut().unwrap().retain(|key, _| !key.contains("seconds"));
        event.to_string()
    };
    text.lines().map(timeless).collect()
}

#[test]
fn a_stopped_run_goes_on_as_if_it_never_was() {
    let (train, valid) = data();
    for optimizer in [OptimizerKind::Sgd, OptimizerKind::Adam] {
        let input = Layer::new("visible", Role::Visible, Units::Binary, 64).unwrap();
        let shape = Shape { hidden: vec![20], ..Shape::classes(10, 1) };
        let plan = NetworkPlan {
            epochs: 12,
            batch: 30,
            optimizer,
            learning_rate: if optimizer == OptimizerKind::Sgd { 0.2 } else { 0.01 },
            dropout: 0.4,
            input_dropout: 0.2,
            ..NetworkPlan::default()
        };
        let network = random(&[input], &shape).unwrap();
        let finetuning =
            Finetuning::of_network(network, None, &train, &plan).unwrap().validated_by(&valid);
        let looked = finetuning.looked().unwrap();
        let folder = Folder::new();
        let [whole, parts] = ["whole", "parts"].map(|name| folder.join(name));
        let mut writer = RunDirectory::create(&whole, Overwrite::No).unwrap();
        writer.write_config("# a net\n").unwrap();
        let never = record(&finetuning, &looked, &mut writer, None, &mut Silent);
        drop(writer);
        let mut writer = RunDirectory::create(&parts, Overwrite::No).unwrap();
        writer.write_config("# a net\n").unwrap();
        let part = record(&finetuning, &looked, &mut writer, None, &mut Stops(5));
        assert_eq!((part.stop.word(), part.epochs), ("interrupted", 5));
        drop(writer);
        let mut writer = RunDirectory::resume(&parts).unwrap();
        let saved = writer.directory().last_checkpoint().unwrap().unwrap();
        writer.truncate_events(saved.events_length).unwrap();
        let rest = record(&finetuning, &looked, &mut writer, Some(&saved), &mut Silent);
        drop(writer);
        assert_eq!((rest.stop.word(), rest.epochs), ("finished", 12));
        assert_eq!(rest.best, never.best);
        let best = rest.best.unwrap();
        assert_eq!(best.name, MetricName::ErrorRate(On::Valid));
        assert!(best.value > 0.0 && best.value < 0.5, "a rate, not its negative: {}", best.value);
        assert_eq!(rest.model.about.epoch, best.epoch);
        let bytes = |run: &Path| fs::read(run.join("model.safetensors")).unwrap();
        assert!(bytes(&whole) == bytes(&parts), "{optimizer:?}");
        assert_eq!(events(&whole), events(&parts));
        let errors = rest.model.classify(&valid).unwrap().errors.unwrap();
        assert!((errors.rate - best.value).abs() < 1e-12);
    }
}
