//! Progress of long work, with the time left; silent when nobody watches.

use crate::args::Common;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over `n` pieces of work on stderr; hidden when quiet or not a terminal.
pub(crate) fn bar(n: u64, what: &str, common: &Common) -> ProgressBar {
    let target =
        if common.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(n), target);
    let template = "{prefix} {wide_bar} {pos}/{len}  {elapsed} gone, {eta} left  {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    bar
}
