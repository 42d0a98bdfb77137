//! What `finetune` can be told, by flags and by a configuration file with the same words.

use super::data::DataArgs;
use clap::builder::StringValueParser;
use clap::builder::TypedValueParser;
use clap::error::{Error, ErrorKind};
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};

/// Flags of `finetune`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FinetuneArgs {
    /// A model file, a run directory, or `none` for random weights
    pub(crate) model: Option<String>,
    /// What to learn from: a file, a folder of pictures, or digits
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
    pub(crate) settings: FinetuneSettings,
    #[command(flatten)]
    pub(crate) labelled: LabelledData,
}

/// Everything that decides what is learned. Each field is a flag and a key of the same name.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct FinetuneSettings {
    /// The class of each row [default: the labels that the data holds]
    #[arg(long, value_name = "FILE", help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<String>,
    /// What is to be answered where that is not one class: a table with a row for each row of the data
    #[arg(long, value_name = "DATA", help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) targets: Option<String>,
    /// The variable of a .mat or .npz file that holds the targets
    #[arg(long, value_name = "NAME", requires = "targets", help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) targets_variable: Option<String>,
    /// Each row of the targets packs N bits into bytes
    #[arg(long, value_name = "N", requires = "targets", help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) targets_packed_bits: Option<usize>,
    /// What is learned: one class, any of several tags, real values, or the input itself [default: classes, with --targets tags or values]
    #[arg(long, value_parser = ["classes", "tags", "values", "input"], help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// Hidden layers of random weights, above those of the model [default: none, for `none` 800,800]
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hidden: Option<Vec<usize>>,
    /// The units of these layers [default: relu]
    #[arg(long, value_parser = ["relu", "logistic", "linear"], help_heading = "Net and data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) units: Option<String>,
    /// Learn from this many labelled rows, drawn evenly over the classes (`--labelled N`)
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labelled_rows: Option<usize>,
    /// Data to validate with; the result is the best net by it
    #[arg(long, value_name = "DATA", help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid: Option<String>,
    /// The class of each validation row
    #[arg(long, value_name = "FILE", requires = "valid", help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid_labels: Option<String>,
    /// Share of the rows that is set apart for validation where there is no `--valid` [default: 0.1 with --patience]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid_share: Option<f64>,
    /// Stop once the validation score has not improved for N epochs
    #[arg(long, value_name = "N", help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patience: Option<u64>,
    /// Seconds between checkpoints [default: 30]
    #[arg(long, value_name = "S", allow_negative_numbers = true, help_heading = "Watching")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint_seconds: Option<f64>,
    /// Passes over the data [default: 30]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epochs: Option<u64>,
    /// Rows of one step [default: 100]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<usize>,
    /// How gradients become updates [default: sgd]
    #[arg(long, value_parser = ["sgd", "adam"], help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) optimizer: Option<String>,
    /// The learning rate before decay [default: 0.5 for nets of machines and logistic units, 0.05 for others, with adam 0.001]
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
    /// What the rate of each layer is multiplied with, from the data upwards [default: 1 for each]
    #[arg(long, value_name = "X,…", value_delimiter = ',', help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) layer_rates: Option<Vec<f64>>,
    /// L2 penalty on weights [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) l2: Option<f64>,
    /// Largest norm of the weights into one unit
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_norm: Option<f64>,
    /// Share of the hidden units that is dropped in each step [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dropout: Option<f64>,
    /// Share of the input that is dropped in each step [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_dropout: Option<f64>,
    /// Do not center the input and the hidden units
    #[arg(long, help_heading = "Learning")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_center: bool,
    /// How much rows count: `even`, `balanced` over classes, or a factor for each class [default: even]
    #[arg(long, value_name = "even|balanced|X,…", help_heading = "Learning")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class_weights: Option<String>,
}

/// How the data is read; its flag `--labelled` may have a number behind it here.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelledData {
    pub(crate) reading: DataArgs,
    /// Labelled rows to learn from; all unless given.
    pub(crate) rows: Option<usize>,
}

const LABELLED: &str = "labelled";
const ALL: &str = "all";

impl Args for LabelledData {
    fn augment_args(command: Command) -> Command {
        let known = |text: String| -> Result<bool, String> {
            match text.as_str() {
                "false" => Ok(false),
                ALL => Ok(true),
                number => match number.parse::<usize>() {
                    Ok(n) if n > 0 => Ok(true),
                    _ => {
                        Err("it takes a number of labelled rows, or nothing for all of them".into())
                    }
                },
            }
        };
        DataArgs::augment_args(command).mut_arg(LABELLED, |arg| {
            arg.action(ArgAction::Set)
                .num_args(0..=1)
                .value_name("N")
                .default_value("false")
                .hide_default_value(true)
                .default_missing_value(ALL)
                .value_parser(StringValueParser::new().try_map(known))
                .help(
                    "Learn from N labelled rows, drawn evenly over the classes; without N from all",
                )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LabelledData {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let reading = DataArgs::from_arg_matches(matches)?;
        let raw = matches.get_raw(LABELLED).and_then(|mut values| values.next());
        let text = raw.and_then(|raw| raw.to_str()).filter(|text| !["false", ALL].contains(text));
        let rows = text.map(str::parse).transpose();
        let rows = rows.map_err(|_| Error::new(ErrorKind::InvalidValue))?;
        Ok(Self { reading, rows })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
