//! Whether the likelihood that a run tracked can be believed: a look before the first step, what the guard says on the
//! way, and a second look at the end at the models that may become its result.

use super::{Recorder, Recording};
use crate::error::Error;
use crate::evaluation::baseline;
use crate::evaluation::monitor::Confirmed;
use crate::evaluation::tracking::Watch;
use crate::models::Body;
use crate::run::event::Event;
use crate::run::model_file::Model;
use crate::run::validated::BestScore;
use crate::training::{Advice, Learner, Measurements, Steering, View};

/// How the reason begins why a run ended whose chains failed it.
pub(super) const DO_NOT_MIX: &str = "chains do not mix";
/// Nats by which a tracked likelihood may be wrong before the run has failed.
const WRONG: f64 = 1.0;

impl Recorder<'_, '_> {
    /// Looks at the likelihood before the first step: a training that only makes it worse should not
    /// result in a worse model than it began with.
    pub(super) fn look_at_start(&mut self, learner: &dyn Learner) -> Result<(), Error> {
        let Recording { watch, valid, .. } = &self.recording;
        let wanted = *watch == Watch::Likelihood && valid.is_some() && learner.stage().is_none();
        let Some(watched) = learner.watched().filter(|_| wanted) else { return Ok(()) };
        if watched.data.is_some() {
            return Ok(());
        }
        let found: Measurements = self.monitor.measure_likelihood(&watched, 0, 1)?.into();
        self.guard.look(&found);
        if self.validated.is_best(&found, 0) {
            let model = Model { body: learner.body(), about: self.about(learner) };
            self.validated.keep(self.writer.save_best(&model)?);
        }
        Ok(())
    }

    /// What the guard says about an epoch, written down; the reason to stop if the training has failed to its
    /// end, so that the result is not its last model.
    pub(super) fn ask_guard(
        &mut self,
        view: &View<'_>,
        found: &Measurements,
    ) -> Result<Option<String>, Error> {
        let epoch = view.before().0 + view.epoch();
        if let Some(Advice { note, steering }) = self.guard.look(found) {
            let what = note.clone();
            self.writer.append(&match steering {
                None => Event::Warning { epoch, what },
                Some(Steering { sweeps, rate, tempered }) => {
                    Event::Steered { epoch, what, sweeps, rate, tempered }
                }
            })?;
            (self.note, self.steering) = (Some(note), steering);
        }
        let ends = view.epoch() >= view.epochs();
        let failing = self.guard.failing().filter(|_| ends);
        Ok(failing.zip(self.validated.best()).map(|(reason, best)| {
            format!("{DO_NOT_MIX}: {reason}; the result is the model of epoch {}", best.epoch)
        }))
    }

    /// Looks at the last model, and at the best one if that is another, once more, and makes the better of them the
    /// result. The reason why the run has failed, if neither is what was tracked.
    pub(super) fn confirm(&mut self, learner: &dyn Learner) -> Result<Option<String>, Error> {
        let Some(watched) = learner.watched().filter(|_| learner.stage().is_none()) else {
            return Ok(None);
        };
        if !self.monitor.has_tracked() {
            return Ok(None);
        }
        let (epochs, machine) = (learner.progress().epoch, watched.sampler.machine());
        let last = self.monitor.look_again(machine, epochs)?;
        self.confirmation = self.monitor.compared(&last);
        let (failed, result) = match self.validated.best() {
            Some(best) if self.recording.valid.is_some() => {
                let failed = self.choose(learner, &best, last)?;
                (failed, self.validated.best().map(|best| best.epoch))
            }
            _ => (None, None),
        };
        if let Some(found) = self.confirmation {
            self.writer.append(&Event::Confirmed {
                log_partition: found.tracked.0,
                std_error: found.tracked.1,
                lower: found.fresh.0,
                upper: found.fresh.1,
                agrees: found.agrees(),
                result,
            })?;
        }
        Ok(failed)
    }

    /// Chooses between the best model so far and the last one, both looked at once more.
    fn choose(
        &mut self,
        learner: &dyn Learner,
        best: &BestScore,
        last: Confirmed,
    ) -> Result<Option<String>, Error> {
        let about = self.about(learner);
        let mut chosen = last;
        if best.epoch != about.epoch {
            let before = match self.writer.read_best()? {
                Some((Model { body: Body::Machine(machine), .. }, _)) => {
                    Some(self.monitor.look_again(&machine, learner.progress().epoch)?)
                }
                _ => None,
            };
            match before {
                Some(before) if before.likelihood().0 >= chosen.likelihood().0 => chosen = before,
                _ => {
                    self.validated.replace(chosen.likelihood().0, about.epoch);
                    let model = Model { body: learner.body(), about };
                    self.validated.keep(self.writer.save_best(&model)?);
                }
            }
        }
        let (lower, upper) = chosen.likelihood();
        let found = format!("the result has between {lower:.3} and {upper:.3}");
        if upper < best.value - WRONG {
            return Ok(Some(format!(
                "{} was tracked as {:.3}, and {found}",
                best.name, best.value
            )));
        }
        let Body::Machine(machine) = learner.body() else { return Ok(None) };
        let (train, Some(valid)) = (self.recording.train, self.recording.valid) else {
            return Ok(None);
        };
        let alone = baseline::independent(&machine, train, valid)?.0;
        Ok((upper < alone).then(|| format!("{found}, independent columns have {alone:.3}")))
    }
}
