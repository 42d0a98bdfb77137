//! The row of support vectors, by scikit-learn in an environment of its own.

use super::Places;
use super::rows::Row;
use crate::Outcome;
use crate::peers::last_line;
use serde_json::Value;
use std::process::Command;

/// The cost and the width were chosen on 5,000 training pictures among C = 2, 5, 10 and gamma = 0.02, 0.025, 0.03.
const SCRIPT: &str = r#"
import gzip, json, sys, time
import numpy as np
from sklearn.svm import SVC
folder = sys.argv[1]
def images(name):
    with gzip.open(f"{folder}/{name}-images-idx3-ubyte.gz") as f:
        return np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
def labels(name):
    with gzip.open(f"{folder}/{name}-labels-idx1-ubyte.gz") as f:
        return np.frombuffer(f.read(), np.uint8, offset=8).astype(np.int64)
start = time.time()
model = SVC(C=5.0, gamma=0.025, cache_size=2000).fit(images("train"), labels("train"))
wrong = model.predict(images("t10k")) != labels("t10k")
p, n, z2 = float(wrong.mean()), len(wrong), 1.959964 ** 2
half = 1.959964 * (p * (1 - p) / n + z2 / (4 * n * n)) ** 0.5
ends = [(p + z2 / (2 * n) + s * half) / (1 + z2 / n) for s in (-1, 1)]
print(json.dumps({"row": "svm", "error_rate": p, "lower": ends[0], "upper": ends[1], "n": n,
                  "seconds": time.time() - start}))
"#;

pub(super) fn run(row: &Row, places: &Places) -> Outcome {
    if places.result(row).is_some() {
        return Ok(());
    }
    let venv = places.work.join("venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.is_file() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("there is no python3 that makes environments: the row `svm` is left out");
            return Ok(());
        }
    }
    let pip = ["-m", "pip", "install", "--quiet", "numpy==2.4.6", "scikit-learn==1.9.1"];
    let installed = Command::new(&python).args(pip).output()?;
    if !installed.status.success() {
        eprintln!(
            "scikit-learn is absent: the row `svm` is left out ({})",
            last_line(&installed.stderr)
        );
        return Ok(());
    }
    eprintln!("scikit-learn, SVC(C=5, gamma=0.025) on 60,000 pictures");
    let output = Command::new(&python).args(["-c", SCRIPT]).arg(&places.data).output()?;
    if !output.status.success() {
        return Err(format!("scikit-learn failed: {}", last_line(&output.stderr)).into());
    }
    let result: Value = serde_json::from_slice(&output.stdout)?;
    places.keep(row, &result)
}
