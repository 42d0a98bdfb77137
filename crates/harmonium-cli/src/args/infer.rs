//! What can be typed after `infer`.

use super::data::DataArgs;
use super::{AnnealingArgs, KnownValue};
use clap::Args;

/// Settings of `infer`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InferArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// auto is exact where that is affordable, else gibbs for probabilities and ais for ln Z; all runs
    /// every method and compares them
    #[arg(long, default_value = "auto", value_parser = ["auto", "all", "exact", "junction-tree", "bp", "trw", "tap", "mean-field", "gibbs", "ais"])]
    pub(crate) method: String,
    /// One row of which the observed cells are held: missing cells and cells that the mask marks 0 are free
    #[arg(long, value_name = "DATA")]
    pub(crate) given: Option<String>,
    /// 1 = observed; one row of as many columns as the data
    #[arg(long, value_name = "FILE", requires = "given")]
    pub(crate) mask: Option<String>,
    /// Hold the label at this class, for a model that learned labels
    #[arg(long, value_name = "NAME", conflicts_with = "given")]
    pub(crate) class: Option<String>,
    /// Hold a unit at a value; may be given more than once. A unit is visible[3], hidden[0], or a column
    #[arg(long = "where", value_name = "UNIT=VALUE")]
    pub(crate) wheres: Vec<KnownValue>,
    /// Hold what a UAI file of evidence says: variables by their numbers
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence: Option<String>,
    /// Write the probabilities of all free units: .csv, or .MAR as in the UAI competitions
    #[arg(long, value_name = "FILE")]
    pub(crate) marginals: Option<String>,
    /// Write the probabilities of all pairs of units that are coupled: .csv
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: Option<String>,
    /// Also find the most probable state of all free units together
    #[arg(long)]
    pub(crate) map: bool,
    /// How it is found; auto is exact where that is affordable, else the best of max-product, alternating
    /// maximisation and annealing
    #[arg(long, value_name = "METHOD", default_value = "auto", requires = "map", value_parser = ["auto", "exact", "max-product", "alternating", "annealing", "tempering"])]
    pub(crate) map_method: String,
    /// Write a result in the formats of the UAI competitions: .PR (log10 Z), .MAR or .MAP; may be given more
    /// than once
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Vec<String>,
    /// Bytes that the tables of a junction tree may take, as 500MB or 2GB [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) annealing: AnnealingArgs,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}
