//! `harmonium logz`: the logarithm of the partition function.

use crate::args::{Common, LogzArgs};
use crate::failure::Failure;
use crate::{load, render};
use harmonium::exact;
use serde_json::json;

pub(crate) fn run(args: &LogzArgs, common: &Common) -> Result<(), Failure> {
    let (model, _) = load::model(&args.model)?;
    let log_z = exact::log_partition(&model.machine)?;
    if common.json {
        return render::json(&json!({
            "log_z": log_z,
            "std_error": 0.0,
            "lower": log_z,
            "upper": log_z,
            "bracket": "bound",
            "method": args.method,
        }));
    }
    render::result(&format!("ln Z = {log_z:.6} ({})", args.method))
}
