//! Resuming equals never having stopped, byte for byte.

use crate::folder::Folder;
use harmonium::Error;
use harmonium::machine::Machine;
use harmonium::models::{Dbm, Rbm};
use harmonium::optim::Schedule;
use harmonium::run::{About, Event, Model, Overwrite, RunDirectory, RunWriter};
use harmonium::training::{Observer, OptimizerKind, Plan, Rule, Stop, Trainer, View, initialise};
use harmonium_data::{Binarize, Dataset, synthetic};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

/// Updates between two checkpoints: no divisor of the 4 updates of an epoch.
const EVERY: u64 = 3;

/// Writes an event per step and a checkpoint every few, and dies a step after one of them.
struct Scribe<'r> {
    run: &'r mut RunWriter,
    plan: &'r Plan,
    dies_after: Option<u64>,
}

impl Observer for Scribe<'_> {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let step = view.report.step;
        self.run.append(&Event::Other(json!({"event": "step", "report": view.report})))?;
        if step.is_multiple_of(EVERY) {
            let about = about(self.plan, step, view.epoch());
            let mut checkpoint = view.checkpoint();
            checkpoint.observers.insert("scribe".into(), json!({"saved": step}));
            self.run.save_checkpoint(checkpoint, about)?;
        }
        Ok(match self.dies_after {
            Some(last) if step > last => ControlFlow::Break("killed".into()),
            _ => ControlFlow::Continue(()),
        })
    }
}

fn about(plan: &Plan, step: u64, epoch: u64) -> About {
    let config = serde_json::to_value(plan).unwrap();
    About { seed: plan.seed, step, epoch, config, ..About::default() }
}

fn data() -> Dataset {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    Dataset::new(table, Binarize::None).unwrap()
}

/// Trains until the end or until it dies; says whether it is done.
fn go_on(
    mut trainer: Trainer<'_>,
    mut run: RunWriter,
    plan: &Plan,
    dies_after: Option<u64>,
) -> bool {
    let stop = trainer.run(&mut [&mut Scribe { run: &mut run, plan, dies_after }]).unwrap();
    if stop != Stop::Finished {
        return false;
    }
    let progress = trainer.progress();
    let about = about(plan, progress.step, progress.epoch);
    run.finish(&Model { body: trainer.machine().clone().into(), about }).unwrap();
    true
}

fn start(path: &Path, mut machine: Machine, plan: &Plan, dies_after: Option<u64>) -> bool {
    let data = data();
    let mut run = RunDirectory::create(path, Overwrite::No).unwrap();
    run.write_config("# the plan\n").unwrap();
    run.append(&Event::Other(json!({"event": "start"}))).unwrap();
    initialise(&mut machine, &data, plan).unwrap();
    let trainer = Trainer::new(machine, &data, plan).unwrap();
    run.save_checkpoint(trainer.checkpoint(), about(plan, 0, 0)).unwrap();
    go_on(trainer, run, plan, dies_after)
}

fn resume(path: &Path, plan: &Plan, dies_after: Option<u64>) -> bool {
    let data = data();
    let mut run = RunDirectory::resume(path).unwrap();
    let saved = run.directory().last_checkpoint().unwrap().unwrap();
    run.truncate_events(saved.events_length).unwrap();
    let trainer = Trainer::resume(&saved.checkpoint, &data, plan).unwrap();
    go_on(trainer, run, plan, dies_after)
}

/// What a process leaves that is killed in the middle of a line.
fn tear(path: &Path) {
    let mut file = fs::OpenOptions::new().append(true).open(path.join("events.jsonl")).unwrap();
    file.write_all(b"{\"event\":\"st").unwrap();
}

fn results(path: &Path) -> [Vec<u8>; 3] {
    ["model.safetensors", "events.jsonl", "checkpoints/last.safetensors"]
        .map(|name| fs::read(path.join(name)).unwrap())
}

fn plans() -> Vec<(&'static str, Machine, Plan)> {
    let rbm = || Rbm::binary(9, 5).unwrap().into_machine();
    let small = Plan { epochs: 4, batch: 5, chains: 7, replicas: 3, seed: 11, ..Plan::default() };
    let schedule = Schedule::Constant(2.0);
    vec![
        ("pcd", rbm(), small.clone()),
        (
            "cd, adam",
            rbm(),
            Plan { rule: Rule::Cd, optimizer: OptimizerKind::Adam, k: schedule, ..small.clone() },
        ),
        ("pt, sparse", rbm(), Plan { rule: Rule::Pt, sparsity_target: Some(0.1), ..small.clone() }),
        ("ptt", rbm(), Plan { rule: Rule::Ptt, learning_rate: 0.5, ..small.clone() }),
        ("dbm", Dbm::binary(9, &[4, 3]).unwrap().into_machine(), small),
    ]
}

#[test]
fn resuming_equals_never_having_stopped() {
    for (name, machine, plan) in plans() {
        let folder = Folder::new();
        let whole = folder.join("whole");
        assert!(start(&whole, machine.clone(), &plan, None));
        let n_steps = Model::load(&whole).unwrap().about.step;
        assert!(n_steps > 4 * EVERY, "{name}: {n_steps} steps");
        for dies_after in (0..n_steps).step_by(usize::try_from(EVERY).unwrap()) {
            let path = folder.join(&format!("stopped-{dies_after}"));
            if !start(&path, machine.clone(), &plan, Some(dies_after)) {
                tear(&path);
                assert!(resume(&path, &plan, None));
            }
            assert!(results(&path) == results(&whole), "{name}: stopped after step {dies_after}");
        }
    }
}

#[test]
fn a_run_killed_again_and_again_ends_the_same() {
    for (name, machine, plan) in plans() {
        let folder = Folder::new();
        let (whole, torn) = (folder.join("whole"), folder.join("torn"));
        assert!(start(&whole, machine.clone(), &plan, None));
        let mut dies_after = 0;
        let mut done = start(&torn, machine, &plan, Some(dies_after));
        while !done {
            tear(&torn);
            dies_after += EVERY;
            done = resume(&torn, &plan, Some(dies_after));
        }
        assert!(results(&torn) == results(&whole), "{name}");
    }
}
