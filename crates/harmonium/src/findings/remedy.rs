//! What to do about a finding, without the words of any one program.

use serde::Serialize;

/// A change of the next run that may mend what was found. Values are taken from the settings of
/// the run that was judged.
///
/// A program spells a remedy in its own way: the command line as a flag, a page as a field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// Learn more slowly, with this learning rate.
    LowerLearningRate(f64),
    /// Learn faster, with this learning rate.
    RaiseLearningRate(f64),
    /// Train for this many epochs.
    MoreEpochs(u64),
    /// Stop near this epoch.
    StopNear(u64),
    /// Let a run that has not ended go on.
    LetItRun,
    /// Go on with a run that was interrupted.
    Resume,
    /// Keep this many chains.
    MoreChains(usize),
    /// Make this many sweeps of the model side for each update.
    MoreSweeps(usize),
    /// Keep this many temperatures for each chain.
    MoreReplicas(usize),
    /// Learn by parallel tempering.
    Tempering,
    /// Use fewer hidden units.
    FewerHidden,
    /// Pull the mean activity of hidden units towards this value.
    SparsityTarget(f64),
    /// Penalise large weights more: this L2 penalty.
    RaiseL2(f64),
    /// Limit the norm of the weights into a unit.
    MaxNorm(f64),
    /// Allow mean field this many sweeps.
    MeanFieldSweeps(usize),
    /// Sample the hidden units of the data side by Gibbs sampling instead of mean field.
    ClampedGibbs,
    /// Let the offsets follow the means of the data.
    KeepCentering,
    /// Give real-valued data mean 0 and variance 1.
    Standardise,
    /// Learn from more data.
    MoreData,
    /// Measure the likelihood of the model.
    MeasureLikelihood,
}
