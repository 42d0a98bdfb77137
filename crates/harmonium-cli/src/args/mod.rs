//! What can be typed.

use crate::failure::Failure;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

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
    /// The root of all randomness: the same seed gives the same bits
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
    /// Threads to use; the result does not depend on them [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Print the result as one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
}

impl Common {
    /// Sets the number of threads of the whole process.
    pub(crate) fn start_threads(&self) -> Result<(), Failure> {
        let Some(n) = self.threads else { return Ok(()) };
        if n == 0 || n > 4096 {
            return Err(Failure::new(
                format!("`--threads {n}` is not possible: it goes from 1 to 4096"),
                "leave `--threads` out to use all cores",
            ));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build_global();
        pool.map_err(|e| Failure::new(format!("cannot start {n} threads: {e}"), "ask for fewer"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train on the embedded digits and look at what was learned
    #[command(after_help = "Example:\n  harmonium demo --seed 7")]
    Demo(DemoArgs),
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
}

/// Reads the command line; `None` when help or the version was printed.
pub(crate) fn parse() -> Result<Option<Cli>, Failure> {
    match Cli::try_parse() {
        Ok(cli) => Ok(Some(cli)),
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
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
