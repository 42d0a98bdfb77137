//! What can go wrong, with the numbers in it and a way out.

use std::io::ErrorKind;
use thiserror::Error;

/// Why something could not be done.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A machine without layers, or a layer without units.
    #[error("{what} is empty")]
    Empty {
        /// What has nothing in it.
        what: String,
    },
    /// A coupling names a layer the machine does not have.
    #[error("a coupling names layer {layer}, but the machine has {n_layers} layers")]
    UnknownLayer {
        /// The layer that was named.
        layer: usize,
        /// How many layers there are.
        n_layers: usize,
    },
    /// Two layers of one name, or two couplings of one pair.
    #[error("{what} occurs twice")]
    Duplicate {
        /// What is there more than once.
        what: String,
    },
    /// The weights of a coupling do not fit its layers.
    #[error("weights between `{first}` and `{second}` must be {}x{}, found {}x{}",
            expected.0, expected.1, found.0, found.1)]
    WeightShape {
        /// The layer of the rows.
        first: String,
        /// The layer of the columns.
        second: String,
        /// The shape the layers ask for.
        expected: (usize, usize),
        /// The shape that was given.
        found: (usize, usize),
    },
    /// A vector of parameters does not fit its layer.
    #[error("the {what} of layer `{layer}` must have {expected} entries, found {found}")]
    ParameterCount {
        /// The layer.
        layer: String,
        /// Which parameter.
        what: &'static str,
        /// Entries of the layer.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// A parameter that is not a finite number, or a precision that is not positive.
    #[error("the {what} of `{place}` holds {value} at entry {entry}")]
    ParameterValue {
        /// The layer or coupling.
        place: String,
        /// Which parameter.
        what: &'static str,
        /// Position in it.
        entry: usize,
        /// The value found.
        value: f64,
    },
    /// A lateral coupling that couples a unit with itself.
    #[error("the lateral weights of `{layer}` couple entries {} and {} of one unit", entry.0, entry.1)]
    InsideOneUnit {
        /// The layer coupled to itself.
        layer: String,
        /// The entries.
        entry: (usize, usize),
    },
    /// An edge that no sparse lateral coupling can have.
    #[error("edge ({}, {}) of a lateral coupling of {n} entries {reason}", pair.0, pair.1)]
    Edge {
        /// Entries of the layer.
        n: usize,
        /// The ends.
        pair: (usize, usize),
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A layer length that is not a multiple of the entries of one unit, or a unit with fewer than two values.
    #[error("layer `{layer}` has {len} entries, which is not a whole number of units of {group}")]
    UnitSize {
        /// The layer.
        layer: String,
        /// Its entries.
        len: usize,
        /// Entries per unit.
        group: usize,
    },
    /// The graph is not the one the model stands for.
    #[error("{model} needs {expected}; {found}")]
    Topology {
        /// The model.
        model: &'static str,
        /// What it needs, in words.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// More memory than there can be.
    #[error("{what} would need {bytes:.1e} bytes")]
    Memory {
        /// What would be stored.
        what: String,
        /// How much it would take.
        bytes: f64,
    },
    /// Less memory than tables take, however many of them are made again.
    #[error(
        "the tables of the junction tree may take {budget:.2e} bytes, and need at least {least:.2e}; {all:.2e} keep all of them"
    )]
    MemoryBudget {
        /// What they may take.
        budget: f64,
        /// The least that would do.
        least: f64,
        /// What all of them take.
        all: f64,
    },
    /// Data of the wrong width.
    #[error("the data has {found} columns, the visible layers take {expected}{detail}")]
    ColumnCount {
        /// Columns the machine takes.
        expected: usize,
        /// Columns there are.
        found: usize,
        /// How the number comes about.
        detail: String,
    },
    /// A mask of another shape than the data.
    #[error("the mask is {}x{}, the data {}x{}", found.0, found.1, expected.0, expected.1)]
    MaskShape {
        /// Rows and columns of the data.
        expected: (usize, usize),
        /// Rows and columns of the mask.
        found: (usize, usize),
    },
    /// Labels of more classes than the layer of labels has.
    #[error("the labels have {found} classes, layer `{layer}` takes {expected}")]
    Classes {
        /// The layer of labels.
        layer: String,
        /// Classes it has.
        expected: usize,
        /// Classes of the labels.
        found: usize,
    },
    /// Targets of another shape than the data and the outputs of a net.
    #[error("the targets are {}x{}, expected {} rows of {} values", found.0, found.1, expected.0, expected.1)]
    TargetShape {
        /// Rows of the data, and outputs of the net.
        expected: (usize, usize),
        /// Rows and columns of the targets.
        found: (usize, usize),
    },
    /// A value the units cannot take.
    #[error("{units} units of layer `{layer}` cannot hold {value} (row {row}, column {column})")]
    Value {
        /// The kind of units.
        units: &'static str,
        /// The layer.
        layer: String,
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A state, clamp or offset of another shape than the machine's.
    #[error("{what} has {found} where the machine has {expected}")]
    Shape {
        /// What does not fit.
        what: String,
        /// What the machine has.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A class that the model does not know.
    #[error("the model has no class `{name}`; its classes: {classes}")]
    NoClass {
        /// The class that was asked for.
        name: String,
        /// Those it has, or `none` if it has learned no labels.
        classes: String,
    },
    /// Classes of a model that has none.
    #[error("the model has learned no labels, so it cannot tell classes")]
    NoLabels,
    /// A question about the distribution of a feed-forward net.
    #[error(
        "this model is a feed-forward net: it tells classes and values, and has no distribution to sample or score"
    )]
    NoDistribution,
    /// Labels that are all alike.
    #[error("the labels are all of one class")]
    OneClass,
    /// A modality that the model does not have.
    #[error("there is no modality `{name}`; there are: {modalities}")]
    NoModality {
        /// The modality that was asked for.
        name: String,
        /// Those there are, or `none`.
        modalities: String,
    },
    /// Features of a hidden layer that is not there.
    #[error("the model has no hidden layer `{name}`; its hidden layers: {layers}")]
    NoHidden {
        /// The layer that was asked for; empty if none was named.
        name: String,
        /// Those there are.
        layers: String,
    },
    /// Data that suggests a kind of units that does not exist yet.
    #[error("the data looks like {kind}, and there are no such units yet: {why}")]
    NoSuchUnits {
        /// The kind of units.
        kind: String,
        /// What makes it look so.
        why: String,
    },
    /// A unit, variable or column that the model does not have.
    #[error("the model has no {what}; it has {known}")]
    NoUnit {
        /// What was named.
        what: String,
        /// What there is.
        known: String,
    },
    /// Real units where only those with finitely many states can be.
    #[error(
        "free units of layer `{layer}` are real, and the graph of units takes those with finitely many states"
    )]
    RealUnits {
        /// The layer.
        layer: String,
    },
    /// A state that a unit cannot be in.
    #[error("{unit} cannot be {state}: it takes {states}")]
    NoState {
        /// The unit.
        unit: String,
        /// What was given.
        state: String,
        /// What it takes.
        states: String,
    },
    /// Evidence that contradicts itself.
    #[error(
        "{unit} is given as {first} and as {second}: no state agrees with that, its probability is 0"
    )]
    Contradiction {
        /// The unit.
        unit: String,
        /// One value.
        first: String,
        /// The other.
        second: String,
    },
    /// A graph whose junction tree would be too large.
    #[error(
        "the junction tree of these {n_units} units would need a table of {}2^{log2_entries:.0} entries ({bytes:.1e} bytes), more than 2^{limit:.0}", if *at_least { "at least " } else { "" }
    )]
    TooWide {
        /// Units that are free.
        n_units: usize,
        /// Binary logarithm of the entries of the largest table.
        log2_entries: f64,
        /// Whether that is a bound: no order was found in time.
        at_least: bool,
        /// Bytes of that table.
        bytes: f64,
        /// Binary logarithm of what is allowed.
        limit: f64,
    },
    /// The numbers behind the name of a built-in machine make no sense.
    #[error("`{name}`: {reason}")]
    BuiltIn {
        /// The name.
        name: String,
        /// What is wrong.
        reason: String,
        /// How it is written.
        hint: &'static str,
    },
    /// The listener asked for the work to stop.
    #[error("stopped on request: {what}, {done} of {total} done")]
    Cancelled {
        /// What was being done.
        what: String,
        /// Pieces done.
        done: u64,
        /// Pieces in all.
        total: u64,
    },
    /// Enumeration would take too long.
    #[error("an exact sum would take 2^{log2_terms:.1} terms, more than 2^{limit:.0}")]
    TooManyTerms {
        /// Binary logarithm of the number of terms.
        log2_terms: f64,
        /// Binary logarithm of what is allowed.
        limit: f64,
    },
    /// An iteration that found no fixed point.
    #[error(
        "{method} does not converge on these {n_units} units: none of {starts} starts settled within {sweeps} sweeps (the least change was {change:.1e})"
    )]
    NotConverged {
        /// What was iterated.
        method: &'static str,
        /// How often it was started.
        starts: usize,
        /// Sweeps of the longest start.
        sweeps: usize,
        /// What still moved at the end, in the start where least did.
        change: f64,
        /// Units that are free.
        n_units: usize,
    },
    /// The energy is unbounded below, so no distribution exists.
    #[error(
        "log Z diverges: the coupled Gaussian units have no positive precision \
             (pivot {pivot:.3e} at unit {unit} of {n_units})"
    )]
    Diverges {
        /// The pivot of the Cholesky factorisation that failed.
        pivot: f64,
        /// Where.
        unit: usize,
        /// Gaussian units in the block.
        n_units: usize,
    },
    /// A sum of energies that no number can hold.
    #[error(
        "{what} is {value}: with parameters up to {largest:.3e} its terms are larger than any number can be (1.8e308)"
    )]
    Overflow {
        /// What was computed.
        what: String,
        /// What came out of it.
        value: f64,
        /// The largest parameter of the machine, without its sign.
        largest: f64,
    },
    /// Layers that should be summed out see each other.
    #[error("layers `{first}` and `{second}` are coupled, so they cannot be summed out together")]
    Coupled {
        /// One layer.
        first: String,
        /// The other, or the same when the coupling is lateral.
        second: String,
    },
    /// Learners that average their gradients lost each other.
    #[error("gradients could not be averaged with the other learners: {reason}")]
    Reduce {
        /// What happened.
        reason: String,
    },
    /// A setting outside its range.
    #[error("`{name}` is {value}; it must be {range}")]
    Setting {
        /// The setting, as it is spelt in configuration files.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed, in words.
        range: &'static str,
    },
    /// A setting of the wrong type.
    #[error("`{name}` has the wrong type: {reason}")]
    SettingType {
        /// The setting, as it is spelt in configuration files.
        name: String,
        /// What was given, and what was expected.
        reason: String,
    },
    /// Hidden layers that a model does not have.
    #[error("{model} needs {expected}, found {found:?}")]
    Hidden {
        /// The model.
        model: &'static str,
        /// What it needs.
        expected: &'static str,
        /// The numbers of units that were given.
        found: Vec<usize>,
    },
    /// Training produced a number that is not finite; the machine is the last good one.
    #[error(
        "training stopped at step {step} (epoch {epoch}): {what}; the model is the last good one"
    )]
    Diverged {
        /// The update after which it was noticed.
        step: u64,
        /// Its epoch, from 1.
        epoch: u64,
        /// What was not finite.
        what: String,
    },
    /// Data made from other data cannot be presented.
    #[error("the data for layer `{layer}` cannot be presented: {reason}")]
    Presentation {
        /// The layer that should learn from it.
        layer: String,
        /// What the data said.
        reason: String,
    },
    /// Saved state that does not belong to this machine or this configuration.
    #[error("the saved state has no fitting `{key}`: expected {expected} numbers, found {found}")]
    Snapshot {
        /// The entry.
        key: String,
        /// Numbers expected.
        expected: usize,
        /// Numbers found.
        found: usize,
    },
    /// Numbers that are not those of a model's parameters.
    #[error("the parameters do not fit the model: {reason}")]
    Parameters {
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused to read or write something.
    #[error("cannot {action} `{path}`: {reason}")]
    File {
        /// The file or folder, as it was named.
        path: String,
        /// What was tried: read, write, lock, …
        action: &'static str,
        /// What the system answered.
        reason: String,
        /// The sort of answer.
        kind: ErrorKind,
    },
    /// A file that is cut, altered, or of another sort.
    #[error("`{path}` cannot be used: {reason}")]
    Damaged {
        /// The file, as it was named.
        path: String,
        /// What is wrong, with what was expected and found.
        reason: String,
    },
    /// A file of another format that no machine can stand for, or the other way round.
    #[error("`{path}` does not fit: {reason}")]
    Foreign {
        /// The file, as it was named.
        path: String,
        /// What stands in the way.
        reason: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// A file of a later version of the format.
    #[error("`{path}` has format version {found}; this version reads up to {supported}")]
    NewerFormat {
        /// The file, as it was named.
        path: String,
        /// Its version.
        found: u64,
        /// The latest version that can be read.
        supported: u64,
    },
    /// A model file that holds something else than what is asked for.
    #[error("`{path}` holds a `{kind}`; only `{expected}` can be read here")]
    UnknownKind {
        /// The file, as it was named.
        path: String,
        /// What it holds.
        kind: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A column without a single value.
    #[error("column {column} has no value in any of {n_rows} rows (counting from 0)")]
    EmptyColumn {
        /// Which one, from 0.
        column: usize,
        /// Rows that were looked at.
        n_rows: usize,
    },
    /// A model that could be written but not read again.
    #[error("the model cannot be written: {reason}")]
    Unwritable {
        /// What stands in the way.
        reason: String,
    },
    /// Data that does not fit, as the crate of data says it.
    #[error("{message}")]
    Data {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// Something is there already.
    #[error("`{path}` exists: {what}")]
    Exists {
        /// Where.
        path: String,
        /// What is there.
        what: &'static str,
    },
    /// A folder that no training has written.
    #[error("`{path}` is not a run directory: {reason}")]
    NotARun {
        /// The folder, as it was named.
        path: String,
        /// What is missing.
        reason: String,
    },
    /// Another process writes the run.
    #[error("`{path}` is being written by {holder}")]
    Locked {
        /// The run.
        path: String,
        /// Who writes it.
        holder: String,
    },
}

/// What [`Error::Exists`] found where a run should go.
pub(crate) mod existing {
    pub(crate) const RUN: &str = "there is a run in it";
    pub(crate) const FOLDER: &str = "it is a folder with other files in it and without a run";
    pub(crate) const FILE: &str = "it is a file";
    pub(crate) const CONFIG: &str = "the run has its configuration already";
}

impl From<harmonium_data::Error> for Error {
    fn from(error: harmonium_data::Error) -> Self {
        Self::Data { message: error.to_string(), hint: error.hint().into_owned() }
    }
}

impl Error {
    /// The same error about a row of a part of the data that starts at row `first`.
    #[must_use]
    pub fn in_rows_from(mut self, first: usize) -> Self {
        if let Self::Value { row, .. } = &mut self {
            *row += first;
        }
        self
    }

    /// What to do about it.
    #[expect(clippy::too_many_lines, reason = "a table with a line for each error")]
    pub fn hint(&self) -> &str {
        match self {
            Self::Data { hint, .. } => hint,
            Self::Empty { .. } => {
                "give every machine a layer, every layer a unit and every data set a row"
            }
            Self::UnknownLayer { .. } => "layers are numbered from 0 in the order they were given",
            Self::Duplicate { .. } => "give each layer its own name and each pair one coupling",
            Self::WeightShape { .. } => {
                "rows belong to the first layer of the coupling, columns to the second"
            }
            Self::ParameterCount { .. } => "give one number per entry of the layer",
            Self::ParameterValue { .. } => {
                "parameters are finite, and precisions greater than zero"
            }
            Self::InsideOneUnit { .. } => {
                "the entries of one unit exclude each other: leave these weights zero"
            }
            Self::Edge { .. } => {
                "name each pair of different entries at most once; entries are numbered from 0"
            }
            Self::UnitSize { .. } => {
                "a categorical layer has q entries per unit, with q at least 2"
            }
            Self::Topology { .. } => {
                "use `Machine` itself for other graphs; every algorithm works on it"
            }
            Self::MemoryBudget { .. } => {
                "allow more with `--memory`, or use an approximate method: `bp`, `trw`, `gibbs` or `ais`"
            }
            Self::Memory { .. } => "use fewer units, chains, samples or temperatures",
            Self::ColumnCount { .. } => {
                "choose columns with `--columns A..B`, or say where the label is with `--label-column NAME|N`"
            }
            Self::MaskShape { .. } => {
                "a mask has a column per column of the data, and a row per row, or one row for all"
            }
            Self::Classes { .. } => {
                "number the classes from 0 as the model does, or train a model with all of them"
            }
            Self::TargetShape { .. } => {
                "targets have a row for each row of the data, and a column for each output"
            }
            Self::Value { units: "binary", .. } => {
                "use `--binarize 0.5` to threshold the data, `--binarize sample` for grey images, or `--visible gaussian`"
            }
            Self::Value { units: "spin", .. } => {
                "use `--visible binary` for data of zeros and ones, or `--visible gaussian`"
            }
            Self::Value { units: "categorical", .. } => {
                "categories are whole numbers from 0 to q-1, or one-hot groups"
            }
            Self::Value { value, .. } if value.is_nan() => {
                "this needs rows without missing values: fill them with `harmonium complete`, leave the rows out, or train an rbm, a bm, or a dbm without `--pretrain-epochs`, which learn around them"
            }
            Self::Value { .. } => "infinite values cannot be learned from: leave the rows out",
            Self::EmptyColumn { .. } => {
                "nothing can be learned about it: leave it out with `--columns A..B`"
            }
            Self::Shape { .. } => "build it from the same machine",
            Self::TooManyTerms { .. } => {
                "estimate instead: `--method ais` for log Z, or `--rule pcd` to train"
            }
            Self::NotConverged { method: "TAP", .. } => {
                "TAP is for many weak couplings; `--method junction-tree` is exact where the graph is narrow, `mean-field` and `trw` bound ln Z on any graph, `ais` samples it"
            }
            Self::NotConverged { .. } => {
                "`--method junction-tree` is exact where the graph is narrow, `mean-field` and `trw` bound ln Z on any graph, `ais` samples it"
            }
            Self::Diverges { .. } => {
                "weaken the couplings between Gaussian units, or raise their precision"
            }
            Self::Overflow { .. } => {
                "weaken couplings and biases: beyond a hundred they decide everything already"
            }
            Self::Coupled { .. } => {
                "sum out layers that do not see each other, and enumerate the rest"
            }
            Self::NoLabels => {
                "train it with `--labels FILE`, `--label-column NAME|N` or `--labelled`"
            }
            Self::NoDistribution => {
                "ask the machine it was made of, or use `harmonium classify` and `harmonium features`"
            }
            Self::OneClass => {
                "labels that never differ say nothing: give labels of several classes"
            }
            Self::NoClass { classes, .. } if classes == "none" => {
                "it has learned no labels: train it with `--labels FILE`, or leave `--class` out"
            }
            Self::NoClass { .. } => "`harmonium inspect MODEL --json` lists the classes of a model",
            Self::NoModality { modalities, .. } if modalities == "none" => {
                "the model was trained on one source: leave the name out, or train with `harmonium train multimodal`"
            }
            Self::NoModality { .. } => {
                "modalities are named as in training: `harmonium inspect MODEL` lists them"
            }
            Self::NoHidden { .. } => {
                "features are means of hidden units: name a hidden layer, or train with `--hidden`"
            }
            Self::NoSuchUnits { .. } => {
                "say what it is with `--visible binary|spin|gaussian|categorical`"
            }
            Self::NoUnit { .. } => {
                "name a unit by its layer and its number from 0, as `visible[3]`, or by the column it was learned from; `harmonium inspect MODEL` lists the layers"
            }
            Self::RealUnits { .. } => {
                "give their values with `--given`; `logz`, `sample`, `complete` and `score` take machines with real units"
            }
            Self::NoState { .. } => "states and categories are numbered from 0; spins are -1 and 1",
            Self::Contradiction { .. } => "give each unit one value",
            Self::TooWide { .. } => {
                "hold some units with `--given`, `--where` or `--evidence`; `--method mean-field` and `trw` bound ln Z on any graph, `ais` samples it"
            }
            Self::Cancelled { .. } => "run it again to start anew",
            Self::Reduce { .. } => {
                "every learner needs the same machine, plan and number of batches; resume all of them from their last checkpoint"
            }
            Self::Setting { name: "lateral", .. } => {
                "`--lateral visible`, `hidden`, or both with a comma between them; an rbm has none"
            }
            Self::Setting { .. } | Self::SettingType { .. } => {
                "`--help` of the command says what each setting does"
            }
            Self::Hidden { model: "a dbn", .. } => {
                "for example `--hidden 500,500,2000`; with one layer it is an rbm"
            }
            Self::Hidden { model: "a dbm", .. } => "for example `--hidden 500,1000`",
            Self::Hidden { .. } => "for example `--hidden 64`",
            Self::Diverged { .. } => {
                "lower `--learning-rate`, standardise real-valued data, or keep centering on"
            }
            Self::Presentation { .. } => "check the data and the weights of its samples",
            Self::Snapshot { .. } => "resume with the configuration the run was started with",
            Self::Parameters { .. } => {
                "names and shapes are those of the parameters of a model with the same layers"
            }
            Self::File { kind, .. } => file_hint(*kind),
            Self::Damaged { .. } => {
                "the file may be cut short, altered, or not a model of this library: write or copy it again"
            }
            Self::BuiltIn { hint, .. } | Self::Foreign { hint, .. } => hint,
            Self::UnknownKind { kind, .. } if kind == "dbn" => {
                "`sample`, `complete`, `features`, `score`, `inspect` and `report` take deep belief networks"
            }
            Self::NewerFormat { .. } | Self::UnknownKind { .. } => {
                "update harmonium, or write the file again with this version"
            }
            Self::Unwritable { .. } => {
                "keep the description of the model small: a configuration, a shape, some means"
            }
            Self::Exists { what: existing::RUN, .. } => {
                "continue it with `--resume`, replace it with `--force`, or choose another `--out`"
            }
            Self::Exists { what: existing::FOLDER, .. } => {
                "choose a new folder with `--out`; `--force` replaces runs and leaves other folders alone"
            }
            Self::Exists { .. } => "choose another name, or replace it with `--force`",
            Self::NotARun { .. } => {
                "give the folder that was `--out` of `harmonium train`, or a `.safetensors` file"
            }
            Self::Locked { .. } => "wait until it has finished, or choose another `--out`",
        }
    }
}

fn file_hint(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "check the spelling; the folder a file goes into must exist",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check who may read and write there, or choose another place with `--out`"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room, then continue with `--resume`; the files that were there before are unharmed"
        }
        ErrorKind::OutOfMemory => "the file does not fit into memory: use a larger machine",
        _ => "check the path and the disk, then try again",
    }
}
