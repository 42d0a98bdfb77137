//! What `train` can be told, by flags and by a configuration file with the same words.

use super::data::DataArgs;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// Which model is trained.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TrainCommand {
    /// A restricted Boltzmann machine
    #[command(after_help = "Examples:
  harmonium train rbm digits --out runs/digits
  harmonium train rbm digits --hidden 64 --epochs 20 --out runs/digits
  harmonium train rbm train-images-idx3-ubyte.gz --hidden 500 --binarize 0.5 --epochs 50 --out runs/mnist
  harmonium train rbm --out runs/mnist --resume")]
    Rbm(TrainArgs),
    /// A general Boltzmann machine, with couplings inside its layers
    #[command(after_help = "Examples:
  harmonium train bm shifter --hidden 8 --lateral visible,hidden --epochs 20 --out runs/shifter
  harmonium train bm data.csv --hidden 0 --lateral visible --rule pseudo --epochs 20 --out runs/ising")]
    Bm(TrainArgs),
    /// A deep Boltzmann machine: a chain of hidden layers
    #[command(after_help = "Examples:
  harmonium train dbm digits --hidden 64,32 --epochs 20 --out runs/deep
  harmonium train dbm digits --hidden 64,32 --pretrain-epochs 20 --epochs 20 --out runs/pretrained")]
    Dbm(TrainArgs),
    /// A deep belief network: directed layers under an RBM, learned one after the other
    #[command(after_help = "Examples:
  harmonium train dbn digits --hidden 64,32 --out runs/belief
  harmonium train dbn digits --hidden 64,32 --labels labels.csv --refine-epochs 20 --out runs/belief")]
    Dbn(TrainArgs),
    /// A multimodal deep Boltzmann machine: pathways of several sources that meet in a joint layer
    #[command(after_help = "Examples:
  harmonium train multimodal --modality image=icons.npz --modality tags=icons.npz --variable image=images --variable tags=tags \\
      --packed-bits image=784 --packed-bits tags=449 --names tags=tags.txt --rows split.txt=0 \\
      --hidden image=500 --joint 500 --epochs 50 --out runs/icons
  harmonium train multimodal --modality picture=a.npy --modality words=b.csv --key id --joint 200 --epochs 20 --out runs/pairs")]
    Multimodal(TrainArgs),
}

impl TrainCommand {
    /// The model's name and its settings.
    pub(crate) fn parts(&self) -> (&'static str, &TrainArgs) {
        match self {
            Self::Rbm(args) => ("rbm", args),
            Self::Bm(args) => ("bm", args),
            Self::Dbm(args) => ("dbm", args),
            Self::Dbn(args) => ("dbn", args),
            Self::Multimodal(args) => ("multimodal", args),
        }
    }
}

/// Flags of `train`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TrainArgs {
    /// What to learn from: a file, a folder of pictures, or digits, bars-and-stripes:N, shifter
    pub(crate) data: Option<String>,
    /// The run directory to make
    #[arg(long, value_name = "RUN")]
    pub(crate) out: String,
    /// A TOML file with these flags as keys; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Continue a run; all other flags must be those that it was started with
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace a run that is there
    #[arg(long, conflicts_with = "resume")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) settings: TrainSettings,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Everything that decides what is learned. Each field is a flag and a key of the same name.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct TrainSettings {
    /// multimodal: a source that is learned together with others; repeatable. Reading flags may carry its name, as
    /// `--variable NAME=images`, `--kind NAME=gaussian`; so may `--hidden NAME=N,…`, the layers above it alone
    #[arg(long, value_name = "NAME=DATA", help_heading = "Several modalities")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) modality: Vec<String>,
    /// What `--hidden NAME=N,…` becomes
    #[arg(long, value_name = "NAME=N,…", hide = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pathway: Vec<String>,
    /// multimodal: units of the layer in which the modalities meet
    #[arg(long, value_name = "N", help_heading = "Several modalities")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) joint: Option<usize>,
    /// multimodal: the column by which rows of the sources belong together [default: their order]
    #[arg(long, value_name = "COLUMN", help_heading = "Several modalities")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Data to watch the training with; for multimodal other rows of the same sources, as `--rows` names them
    #[arg(long, value_name = "DATA", help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid: Option<String>,
    /// The class of each validation row; without labels they are summed out
    #[arg(long, value_name = "FILE", help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid_labels: Option<String>,
    /// The class of each row, learned together with the data as one more visible layer
    #[arg(long, value_name = "FILE", help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<String>,
    /// Hidden units, for a DBM or a DBN one number per layer
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hidden: Option<Vec<usize>>,
    /// Kind of the visible units [default: what the data looks like]
    #[arg(long, value_parser = ["binary", "spin", "gaussian", "categorical", "counts"], help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) visible: Option<String>,
    /// Values of a categorical unit, or of one that counts [default: the largest in the data plus one; counts have more
    /// room]
    #[arg(long, value_name = "Q", help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) categories: Option<usize>,
    /// Neighbouring columns of bits of which exactly one is 1 in every row: auto makes each such group one category, none
    /// leaves them bits [default: none]
    #[arg(long, value_parser = ["auto", "none"], help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<String>,
    /// Couplings inside layers, for `bm`; an `rbm` couples up to 256 real columns unless it is `none`
    #[arg(long, value_delimiter = ',', value_parser = ["visible", "hidden", "none"], help_heading = "Model and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lateral: Option<Vec<String>>,
    /// Passes over the data, for a DBN with each layer [default: 20 for a DBN, else what the autopilot chooses]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epochs: Option<u64>,
    /// Passes of wake–sleep learning over all layers of a DBN together, after them [default: 0]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refine_epochs: Option<u64>,
    /// The learning rate of those passes, before decay [default: 0.001]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refine_learning_rate: Option<f64>,
    /// Passes over the data for each layer of a DBM before all are trained together [default: 0]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pretrain_epochs: Option<u64>,
    /// The learning rate of these passes before decay [default: 0.05]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pretrain_learning_rate: Option<f64>,
    /// What is climbed where there are labels: p(data, label), p(label | data), or W of the first and 1 - W of the second [default: generative]
    #[arg(long, value_name = "generative|discriminative|hybrid:W", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) objective: Option<String>,
    /// Samples of one step [default: 100]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<usize>,
    /// The model side: persistent chains, chains from the data, tempered chains, chains that exchange with frozen earlier machines, exact sums, or, without hidden units, pseudo-likelihood [default: pcd]
    #[arg(long, value_parser = ["pcd", "cd", "pt", "ptt", "exact", "pseudo"], help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// The data side, where it is not in closed form [default: auto]
    #[arg(long, value_parser = ["auto", "exact", "mean-field", "gibbs"], help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) posterior: Option<String>,
    /// Sweeps per step; `auto` raises them, and lowers the rate, where chains fall behind [default: 1]
    #[arg(long, value_name = "SCHEDULE", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) k: Option<String>,
    /// Chains of pcd, pt and ptt [default: 100]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chains: Option<usize>,
    /// Temperatures of each chain of pt [default: 10]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<usize>,
    /// Samples of each frozen machine of ptt [default: 10 times the chains]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reservoir: Option<usize>,
    /// Acceptance of exchanges below which ptt freezes a machine [default: 0.3]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) freeze_below: Option<f64>,
    /// Acceptance below which ptt goes back to the last frozen machine, at half the rate [default: 0.1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rollback_below: Option<f64>,
    /// How gradients become updates [default: sgd]
    #[arg(long, value_parser = ["sgd", "adam"], help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) optimizer: Option<String>,
    /// The learning rate before decay [default: 0.01, 0.001 with Gaussian units]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) learning_rate: Option<f64>,
    /// What the rate is multiplied with: `1`, a line `1:0.01`, steps by epoch `1@0,0.1@10` [default: 1:0.01]
    #[arg(long, value_name = "SCHEDULE", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decay: Option<String>,
    /// Momentum [default: 0.5@0,0.9@5]
    #[arg(long, value_name = "SCHEDULE", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) momentum: Option<String>,
    /// L1 penalty on weights [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) l1: Option<f64>,
    /// L2 penalty on weights [default: 0.0002]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) l2: Option<f64>,
    /// Wanted mean activity of hidden units
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sparsity_target: Option<f64>,
    /// How strongly activities are pulled there [default: 0.001]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sparsity_cost: Option<f64>,
    /// Largest norm of the weights into one unit
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_norm: Option<f64>,
    /// Largest norm of the gradient
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clip: Option<f64>,
    /// Do not center the units
    #[arg(long, help_heading = "Learning")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_center: bool,
    /// How fast offsets follow the data [default: 0.01]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset_rate: Option<f64>,
    /// Standard deviation of the first weights [default: 0.01]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initial_std: Option<f64>,
    /// Sweeps of clamped Gibbs sampling on the data side [default: 10]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) posterior_sweeps: Option<usize>,
    /// Most sweeps of mean field on the data side [default: 30]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean_field_sweeps: Option<usize>,
    /// Change below which mean field stops [default: 0.001]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean_field_tolerance: Option<f64>,
    /// What is measured: nothing, cheap numbers, or these and the likelihood, for a fifth of the work at most, or half a second [default: likelihood]
    #[arg(long, value_parser = ["none", "pseudo", "likelihood"], help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<String>,
    /// How long the autopilot may search for settings, without `--epochs` [default: normal]
    #[arg(long, value_parser = ["quick", "normal", "thorough"], conflicts_with = "epochs", help_heading = "Autopilot")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<String>,
    /// Share of the rows that is set apart for validation where there is no `--valid` [default: 0.1 with --patience and on autopilot]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid_share: Option<f64>,
    /// Stop once the validation score has not risen for N epochs
    #[arg(long, value_name = "N", help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patience: Option<u64>,
    /// Seconds between checkpoints [default: 30]
    #[arg(long, value_name = "S", allow_negative_numbers = true, help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint_seconds: Option<f64>,
}
