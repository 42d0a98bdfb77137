//! What can be typed.

pub(crate) mod data;
pub(crate) mod finetune;
pub(crate) mod infer;
mod named;
pub(crate) mod train;

use crate::failure::Failure;
use crate::render;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use data::DataArgs;
use finetune::FinetuneArgs;
use harmonium::engine::Arithmetic;
use infer::InferArgs;
use std::str::FromStr;
use train::TrainCommand;

/// Learn distributions with Boltzmann machines; sample, complete, score.
#[derive(Debug, Parser)]
#[command(name = "harmonium", version, about, arg_required_else_help = true)]
#[command(after_help = "Start here:\n  harmonium demo")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Settings of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Common {
    /// The root of all randomness: the same seed gives the same bits [default: 0]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads to use; the result does not depend on them [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Print the result as one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Numbers to sample and learn in: auto, f32, or i16 (quantised weights); likelihoods are f64
    #[arg(long, global = true, value_name = "NUMBERS", value_parser = ["auto", "f32", "i16"])]
    pub(crate) precision: Option<String>,
}

impl Common {
    /// The seed that was given, or 0.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The arithmetic that was asked for.
    pub(crate) fn arithmetic(&self) -> Option<Arithmetic> {
        match self.precision.as_deref() {
            Some("f32") => Some(Arithmetic::F32),
            Some("i16") => Some(Arithmetic::I16),
            _ => None,
        }
    }

    /// Does `work` in a pool of as many threads as were asked for, which the whole process uses.
    pub(crate) fn on_threads(
        &self,
        work: impl FnOnce() -> Result<(), Failure> + Send,
    ) -> Result<(), Failure> {
        let mut pool = rayon::ThreadPoolBuilder::new().stack_size(STACK);
        if let Some(n) = self.threads {
            if n == 0 || n > 4096 {
                return Err(Failure::new(
                    format!("`--threads {n}` is not possible: it goes from 1 to 4096"),
                    "leave `--threads` out to use all cores",
                ));
            }
            pool = pool.num_threads(n);
        }
        let many = self
            .threads
            .map_or_else(|| "a thread for each core".into(), |n| format!("{n} threads"));
        pool.build_global().map_err(|e| {
            Failure::new(format!("cannot start {many}: {e}"), "ask for fewer with `--threads N`")
        })?;
        // Inside the pool, so that a parallel part wakes one thread less.
        rayon::scope(|_| work())
    }
}

/// Bytes of stack of a thread: as many as the first thread of a process usually has.
const STACK: usize = 8 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train on the embedded digits and look at what was learned
    #[command(
        after_help = "Examples:\n  harmonium demo\n  harmonium demo --seed 7 --out runs/demo"
    )]
    Demo(DemoArgs),
    /// Learn a distribution from data
    #[command(
        subcommand,
        after_help = "Example:\n  harmonium train rbm digits --hidden 64 --out runs/digits"
    )]
    Train(Box<TrainCommand>),
    /// Make a net of a model, or of random weights, and train it to tell classes
    #[command(after_help = "Examples:
  harmonium finetune runs/digits digits --out runs/net
  harmonium finetune runs/dbm train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz --dropout 0.5 --input-dropout 0.2 --max-norm 3 --out runs/net
  harmonium finetune none digits --hidden 200,200 --epochs 50 --out runs/plain")]
    Finetune(Box<FinetuneArgs>),
    /// Draw samples from a model
    #[command(after_help = "Examples:
  harmonium sample runs/digits --n 100 --out samples.png
  harmonium sample runs/digits --given digits --mask mask.npy --out filled.npy")]
    Sample(SampleArgs),
    /// Fill missing values with their probabilities
    #[command(after_help = "Examples:
  harmonium complete runs/survey answers.csv --out filled.csv
  harmonium complete runs/digits digits --mask mask.npy --out filled.png
  harmonium complete runs/digits digits --rows 0..10 --hide lower-half --alternatives 8 --out imagined.png")]
    Complete(CompleteArgs),
    /// The class of each row, by a fine-tuned net or a model that learned labels
    #[command(after_help = "Examples:
  harmonium classify runs/digits digits
  harmonium classify runs/mnist t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz --out classes.csv")]
    Classify(ClassifyArgs),
    /// The log-likelihood of data, in nats
    #[command(after_help = "Examples:
  harmonium score runs/digits digits
  harmonium score runs/mnist t10k-images-idx3-ubyte.gz --method exact --json")]
    Score(ScoreArgs),
    /// The logarithm of the partition function
    #[command(after_help = "Examples:
  harmonium logz runs/digits
  harmonium logz runs/mnist --method sandwich --width 0.5 --json
  harmonium logz ising:4,0.4")]
    Logz(LogzArgs),
    /// Probabilities of units, ln Z and the most probable state, by one method or all of them
    #[command(after_help = "Examples:
  harmonium infer Grids_11.uai --method all
  harmonium infer ising:4,0.4 --where visible[0]=1 --where visible[5]=-1
  harmonium infer Grids_11.uai --evidence Grids_11.uai.evid --marginals Grids_11.MAR
  harmonium infer runs/digits --given digits --rows 0..1 --mask mask.npy --map")]
    Infer(Box<InferArgs>),
    /// Means of the hidden units for each sample
    #[command(after_help = "Example:\n  harmonium features runs/digits digits --out features.npy")]
    Features(FeaturesArgs),
    /// Which rows of one modality belong to rows of another
    #[command(after_help = "Examples:
  harmonium retrieve runs/icons --query image=icons.npz --among tags=icons.npz --variable image=images --variable tags=tags --out found.csv
  harmonium retrieve runs/icons --query tags=tags.npy --among image=images.npy --by features --top 8 --out nearest.png")]
    Retrieve(RetrieveArgs),
    /// What is in a model
    #[command(after_help = "Examples:
  harmonium inspect runs/digits
  harmonium inspect runs/digits --diagnostics --data test.npy --train train.npy")]
    Inspect(InspectArgs),
    /// Write a page about a run: curves, filters, samples, findings
    #[command(after_help = "Example:\n  harmonium report runs/digits --out report.html")]
    Report(ReportArgs),
    /// Write a model or data in another format
    #[command(after_help = "Examples:
  harmonium convert runs/digits model.safetensors
  harmonium convert runs/digits parameters.json
  harmonium convert runs/net net.onnx
  harmonium convert Grids_11.uai grid.safetensors
  harmonium convert ising:16,0.4 torus.uai
  harmonium convert faces.mat faces.npy --transpose")]
    Convert(ConvertArgs),
    /// What is in a file, and how it would be learned
    #[command(after_help = "Example:\n  harmonium data train-images-idx3-ubyte.gz")]
    Data(DataCommandArgs),
    /// Completions for a shell
    #[command(
        after_help = "Example:\n  harmonium completions bash > ~/.local/share/bash-completion/completions/harmonium"
    )]
    Completions(CompletionsArgs),
}

/// Settings of `demo`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// Hidden units; up to 24 the score is exact
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) hidden: usize,
    /// Passes over the data
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub(crate) epochs: u64,
    /// Also keep the run and its report in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
    /// Replace a run that is there
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

/// Where a result goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// The file to write: .npy, .csv or .png
    #[arg(long, value_name = "FILE")]
    pub(crate) out: String,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Single values that are known.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KnownArgs {
    /// A value that is known in every row, by the name of its column or its number from 0; repeatable
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) known: Vec<KnownValue>,
}

impl KnownArgs {
    /// The columns and their values.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        self.known.iter().map(KnownValue::pair).collect()
    }
}

/// A column and its value, `COLUMN=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownValue {
    column: String,
    value: String,
}

impl KnownValue {
    /// The column and the value.
    pub(crate) fn pair(&self) -> (String, String) {
        (self.column.clone(), self.value.clone())
    }
}

impl FromStr for KnownValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (column, value) = text.split_once('=').ok_or("write `COLUMN=VALUE`")?;
        Ok(Self { column: column.trim().to_owned(), value: value.trim().to_owned() })
    }
}

/// Settings of `sample`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SampleArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// Number of samples
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) n: usize,
    /// auto is exact where that is affordable, else chains that have mixed, else tempered; gibbs is
    /// plain chains, tempered parallel tempering
    #[arg(long, default_value = "auto", value_parser = ["auto", "exact", "gibbs", "tempered"])]
    pub(crate) method: String,
    /// Sweeps of plain chains before each sample, or rounds of tempering [default: as many as it
    /// takes, from 1000 to 16000]
    #[arg(long, value_name = "N")]
    pub(crate) sweeps: Option<usize>,
    /// Rows to hold: missing cells and cells that the mask marks 0 are drawn; one sample for each row. NAME=DATA, repeatable,
    /// are the rows of one modality
    #[arg(long, value_name = "[NAME=]DATA")]
    pub(crate) given: Vec<String>,
    /// The modality to write [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// With --of: write the names of the N columns that are most often on, and how often
    #[arg(long, value_name = "N", requires = "of")]
    pub(crate) top: Option<usize>,
    /// 1 = observed; as many columns as the data, and as many rows or one
    #[arg(long, value_name = "FILE", requires = "given")]
    pub(crate) mask: Option<String>,
    /// Draw samples of this class, from a model that learned labels
    #[arg(long, value_name = "NAME", conflicts_with_all = ["given", "known"])]
    pub(crate) class: Option<String>,
    #[command(flatten)]
    pub(crate) known: KnownArgs,
    /// Write the probabilities of the visible units instead of drawn values; in a picture, grey levels
    #[arg(long)]
    pub(crate) means: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `complete`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompleteArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// The samples; empty cells, `?` and NaN are missing
    #[arg(required_unless_present_any = ["given", "known"])]
    pub(crate) data: Option<String>,
    /// The same as the samples; NAME=DATA, repeatable, are the rows of one modality
    #[arg(long, value_name = "[NAME=]DATA", conflicts_with = "data")]
    pub(crate) given: Vec<String>,
    #[command(flatten)]
    pub(crate) known: KnownArgs,
    /// 1 = observed; as many columns as the data, and as many rows or one
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<String>,
    /// The modality to write [default: all of them]
    #[arg(long, value_name = "NAME", conflicts_with = "hide")]
    pub(crate) of: Option<String>,
    /// With --of: write the names of the N most probable columns with their probabilities
    #[arg(long, value_name = "N", requires = "of")]
    pub(crate) top: Option<usize>,
    /// Hide a part of every picture and imagine it: lower-half, upper-half, left-half, right-half,
    /// rectangle:TOP,LEFT,HEIGHT,WIDTH, or a mask in which 0 is hidden. A .png then shows original, hidden, completed and
    /// alternatives side by side, and the log-likelihood of what was hidden is told
    #[arg(long, value_name = "PART|FILE", conflicts_with_all = ["mask", "known"])]
    pub(crate) hide: Option<String>,
    /// With --hide: leave the log-likelihood of what was hidden out
    #[arg(long, requires = "hide")]
    pub(crate) no_score: bool,
    /// auto is exact where that is affordable, else gibbs, which averages chains; mean-field is fast, and its error is not known
    #[arg(long, default_value = "auto", value_parser = ["auto", "exact", "gibbs", "mean-field"])]
    pub(crate) method: String,
    /// Sweeps of Gibbs sampling to average over, after as many to settle [default: as many as a
    /// standard error of 0.01 takes, from 128 to 8192]
    #[arg(long, value_name = "N")]
    pub(crate) sweeps: Option<usize>,
    /// Also write the standard error of each value: .npy, .csv or .png; of a table, as .csv, the probabilities of words and
    /// the 95 % intervals of numbers for every cell that was filled
    #[arg(long, value_name = "FILE")]
    pub(crate) errors: Option<String>,
    /// Write N samples of what is missing instead of what is most probable: each row N times, one after the other
    #[arg(long, value_name = "N")]
    pub(crate) alternatives: Option<usize>,
    /// The class of each row, held while the rest is filled, for models that learned labels; without it
    /// classes are filled, too
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `classify`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// A model file or a run directory
    pub(crate) model: String,
    /// The samples
    pub(crate) data: String,
    /// The class of each row, to compare with [default: the labels of the data, where it has any]
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<String>,
    /// What is to be answered, to compare with, for nets that learned tags or values
    #[arg(long, value_name = "DATA")]
    pub(crate) targets: Option<String>,
    /// The variable of a .mat or .npz file that holds the targets
    #[arg(long, value_name = "NAME", requires = "targets")]
    pub(crate) targets_variable: Option<String>,
    /// Each row of the targets packs N bits into bytes
    #[arg(long, value_name = "N", requires = "targets")]
    pub(crate) targets_packed_bits: Option<usize>,
    /// auto is exact where that is affordable, else mean-field, for a DBN recognition, for a net the net; ais has error bars
    #[arg(long, default_value = "auto", value_parser = ["auto", "exact", "mean-field", "ais", "recognition", "network"])]
    pub(crate) method: String,
    /// Draws of the recognition distribution for each row of a DBN
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) draws: usize,
    /// Also write the predicted class and the probabilities of each row: .csv, or .npy for the
    /// probabilities alone
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `score`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScoreArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// The samples
    #[arg(required_unless_present_any = ["given", "known"])]
    pub(crate) data: Option<String>,
    /// The same as the samples; NAME=DATA, repeatable, are the rows of one modality
    #[arg(long, value_name = "[NAME=]DATA", conflicts_with = "data")]
    pub(crate) given: Vec<String>,
    #[command(flatten)]
    pub(crate) known: KnownArgs,
    /// Score one modality given the others: ln p(NAME | rest)
    #[arg(long, value_name = "NAME", requires = "given")]
    pub(crate) of: Option<String>,
    /// The class of each row, for models that learned labels; without it they are summed out
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<String>,
    /// auto is exact where that is affordable, else ais, for a DBN importance; bound is variational
    #[arg(long, default_value = "auto", value_parser = ["auto", "exact", "ais", "bound", "importance", "pseudo", "free-energy"])]
    pub(crate) method: String,
    /// pseudo: visit one random unit of each row and count it as all
    #[arg(long)]
    pub(crate) stochastic: bool,
    /// Draws of the recognition distribution for each row of a DBN: bound and importance
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) draws: usize,
    /// How unusual each row is instead: p-values beside these rows, which are normal and were not trained on
    #[arg(long, value_name = "NORMAL")]
    pub(crate) anomaly: Option<String>,
    /// Also write the score of each row: .npy or .csv
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) annealing: AnnealingArgs,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `logz`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LogzArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// How it is found; auto is exact where that is affordable, else the sandwich
    #[arg(long, default_value = "auto", value_parser = ["auto", "exact", "ais", "sandwich", "bar"])]
    pub(crate) method: String,
    #[command(flatten)]
    pub(crate) annealing: AnnealingArgs,
}

/// How much work goes into ln Z.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sampling ln Z")]
pub(crate) struct AnnealingArgs {
    /// Temperatures between the base and the model [default: 4000, small models more]; for bar,
    /// rungs of a ladder
    #[arg(long, value_name = "N")]
    pub(crate) betas: Option<usize>,
    /// Chains [default: 100, small models more]; for bar, independent ladders [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) chains: Option<usize>,
    /// Double the work until the interval is this narrow. Without --betas and --chains an
    /// interval that has not settled is sought again with four times the work, at most twice
    #[arg(long, value_name = "NATS")]
    pub(crate) width: Option<f64>,
}

/// Settings of `features`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FeaturesArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// The samples
    #[arg(required_unless_present_any = ["given", "known"])]
    pub(crate) data: Option<String>,
    /// The same as the samples; NAME=DATA, repeatable, are the rows of one modality
    #[arg(long, value_name = "[NAME=]DATA", conflicts_with = "data")]
    pub(crate) given: Vec<String>,
    #[command(flatten)]
    pub(crate) known: KnownArgs,
    /// The hidden layer to write [default: all of them, side by side]
    #[arg(long, value_name = "NAME")]
    pub(crate) layer: Option<String>,
    /// The hidden layers above one modality alone; `joint` is the layer in which they meet
    #[arg(long, value_name = "NAME", conflicts_with = "layer")]
    pub(crate) of: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `retrieve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RetrieveArgs {
    /// A model file or a run directory of several modalities
    pub(crate) model: String,
    /// The rows to ask with; repeatable for several modalities
    #[arg(long, value_name = "NAME=DATA", required = true)]
    pub(crate) query: Vec<String>,
    /// The rows to look among, of another modality
    #[arg(long, value_name = "NAME=DATA")]
    pub(crate) among: String,
    /// conditional is p(row | query) against p(row), by the means of each cell; features is the cosine of the top hidden layer
    #[arg(long, default_value = "conditional", value_parser = ["conditional", "features"])]
    pub(crate) by: String,
    /// The class of each row of both sides: rows of one class belong together [default: those with the same number do]
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<String>,
    /// Rows to list for each query
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) top: usize,
    /// Where the nearest rows go: .csv or .npy their numbers, .png the pictures themselves
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `inspect`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InspectArgs {
    /// A model file, a run directory, a UAI or .fg file, or ising:L,K, ising:4x4x4,K,h, potts:LxL,q,K, curie-weiss:N,BETA
    pub(crate) model: String,
    /// Also sample: do chains mix, do samples look like data, are training rows repeated
    #[arg(long)]
    pub(crate) diagnostics: bool,
    /// Held-out rows to compare samples with
    #[arg(long, value_name = "DATA", requires = "diagnostics")]
    pub(crate) data: Option<String>,
    /// The training rows, to see whether samples repeat them
    #[arg(long, value_name = "DATA", requires = "data")]
    pub(crate) train: Option<String>,
    /// Chains to watch [default: 50]
    #[arg(long, value_name = "N", requires = "diagnostics")]
    pub(crate) chains: Option<usize>,
    /// Sweeps to watch them for, after as many to settle [default: 1000]
    #[arg(long, value_name = "N", requires = "diagnostics")]
    pub(crate) sweeps: Option<usize>,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `report`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory
    pub(crate) run: String,
    /// The page to write [default: report.html in the run, which is made anew each time]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Settings of `convert`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A model (file, run directory, UAI file, built-in machine), or data
    pub(crate) input: String,
    /// A model as .safetensors, .json or .uai, a net as .onnx; data as .npy or .csv
    pub(crate) output: String,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `data`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataCommandArgs {
    /// A file, a folder of pictures, or digits, bars-and-stripes:N, shifter
    pub(crate) data: String,
    #[command(flatten)]
    pub(crate) reading: DataArgs,
}

/// Settings of `completions`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// The script that completes our flags in a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "harmonium", &mut script);
    script
}

/// Reads the command line; `None` when help or the version was printed.
pub(crate) fn parse() -> Result<Option<Cli>, Failure> {
    match Cli::try_parse_from(named::rewritten(std::env::args_os())) {
        Ok(cli) => Ok(Some(cli)),
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            render::clear_the_way()?;
            error.print()?;
            Ok(None)
        }
        Err(error) => Err(usage(&error)),
    }
}

/// Clap's message in our form: one `error:` and one `hint:`.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::new("no command was given", "try `harmonium demo`, or `harmonium --help`");
    }
    let message = text.trim_start_matches("error: ");
    let mut lines = message.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut first = lines.next().unwrap_or("the command line cannot be read").to_owned();
    let mut hint = String::new();
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            tip.clone_into(&mut hint);
        } else if line.starts_with('<') || line.starts_with("--") || line.starts_with('[') {
            first = format!("{first} {line}");
        }
    }
    if hint.is_empty() {
        hint = "`harmonium --help` lists the commands, `harmonium COMMAND --help` its flags".into();
    }
    Failure::new(first, hint)
}
