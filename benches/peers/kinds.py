"""Kinds of columns, one-hot groups and anomalies on real tables, by the program `harmonium` and, for anomalies, scikit-learn.

    kinds.py counts    doctor visits (statsmodels' `randhie`): counts against numbers and categories
    kinds.py levels    ratings (statsmodels' `fair`): ordered levels against numbers and categories
    kinds.py groups    bits against the categories they hold, one-hot
    kinds.py anomalies one digit against the others, benign against malignant: areas under the curve

`--harmonium PROGRAM` is the program (default `harmonium`), `--data DIR` the folder with `density/`, `--splits N` the number of
splits. A table is split into 70 and 30 of a hundred rows; scores are mean log-likelihoods of the 30 in nats, with the standard error
over the splits. A column of whole numbers that is learned as a number has uniform noise added to it, so that its density is one of
the unit interval above each value and, on average, a lower bound of its probability (Theis, van den Oord and Bethge 2016). Rows with
values that the 70 do not have are left out of all scores: as categories they have no probability.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def harmonium(program, *words):
    done = subprocess.run([program, *map(str, words), "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def statsmodels_table(name):
    import statsmodels.datasets

    path = Path(statsmodels.datasets.__file__).parent / name / f"{name}.csv"
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows, names):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows([[row[name] for name in names] for row in rows])


def split(rows, seed, whole):
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = round(0.7 * len(rows))
    train, test = [rows[i] for i in order[:cut]], [rows[i] for i in order[cut:]]
    known = {name: {row[name] for row in train} for name in whole}
    kept = [row for row in test if all(row[name] in known[name] for name in whole)]
    return train, kept, len(test) - len(kept)


def noisy(rows, whole, seed):
    rng = np.random.default_rng(seed)
    noise = rng.random((len(rows), len(whole)))
    return [
        {**row, **{name: repr(float(row[name]) + float(u)) for name, u in zip(whole, noise[i])}} for i, row in enumerate(rows)
    ]


def compare(asked, rows, names, whole, kinds, settings):
    """Held-out scores of a table by each way to see its whole numbers."""
    scores = {kind: [] for kind in kinds}
    for seed in range(asked.splits):
        train, test, dropped = split(rows, seed, whole)
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                folder = Path(folder)
                as_numbers = kind.startswith("gaussian")
                write(folder / "train.csv", noisy(train, whole, 2 * seed) if as_numbers else train, names)
                write(folder / "test.csv", noisy(test, whole, 2 * seed + 1) if as_numbers else test, names)
                said = [word for name in whole for word in ("--kind", f"{name}={kind}")]
                harmonium(
                    asked.harmonium, "train", "rbm", folder / "train.csv", "--out", folder / "run",
                    *said, *settings, "--seed", seed, "--watch", "none",
                )
                found = harmonium(asked.harmonium, "score", folder / "run", folder / "test.csv", "--method", "exact")
            scores[kind].append((found["log_likelihood"], found["baseline"]))
            print(f"  split {seed}, {kind}: {found['log_likelihood']:.4f}, columns alone {found['baseline']:.4f}", flush=True)
    print(f"{len(train)} rows learned, {len(test)} scored, {dropped} left out in the last split")
    print(f"{'whole numbers as':18} {'held-out nats':>20} {'columns alone':>20}")
    for kind, found in scores.items():
        mean, alone = np.mean(found, axis=0)
        error, alone_error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else (0, 0)
        print(f"{kind:18} {mean:11.4f} ± {error:.4f} {alone:11.4f} ± {alone_error:.4f}")


def counts(asked):
    rows = statsmodels_table("randhie")
    names = ["mdvis", "notmdvis", "totadm", "female", "child", "physlm", "hlthg", "hlthf", "hlthp", "xage", "disea", "linc"]
    rows = [row for row in rows if all(row[name] not in ("", "NA") for name in names)]
    # One year of each person, so that no person is on both sides.
    rows = [row for row in rows if row["year"] == "1"]
    settings = ["--hidden", 12, "--epochs", 60, "--batch", 50, "--learning-rate", 0.02]
    compare(asked, rows, names, ["mdvis", "notmdvis", "totadm"], ["counts", "gaussian", "gaussian:log", "categorical"], settings)


def levels(asked):
    rows = statsmodels_table("fair")
    whole = ["rate_marriage", "religious", "educ", "occupation", "occupation_husb", "children", "age", "yrs_married"]
    settings = ["--hidden", 12, "--epochs", 60, "--batch", 50, "--learning-rate", 0.02]
    compare(asked, rows, whole, whole, ["ordinal", "gaussian", "categorical"], settings)


def groups(asked):
    for name in asked.sets.split(","):
        parts = {part: Path(asked.data) / "density" / name / f"{name}.{part}.data" for part in ("train", "valid", "test")}
        seen = harmonium(asked.harmonium, "data", parts["train"])
        print(f"{name}: {len(seen['groups'])} groups in {seen['columns']} columns", flush=True)
        for way in ("none", "auto"):
            with tempfile.TemporaryDirectory() as folder:
                run = Path(folder) / "run"
                harmonium(
                    asked.harmonium, "train", "rbm", parts["train"], "--valid", parts["valid"], "--out", run, "--groups", way,
                    "--hidden", 100, "--epochs", 300, "--batch", 50, "--learning-rate", 0.02, "--l2", 0.0005, "--patience", 60,
                    "--watch", "likelihood", "--seed", 1,
                )
                found = harmonium(asked.harmonium, "score", run, parts["test"], "--seed", 1)
            print(
                f"  --groups {way}: {found['log_likelihood']:.3f} nats between {found['lower']:.3f} and {found['upper']:.3f} "
                f"({found['bracket']}), ± {found['data_std_error']:.3f} the data's, columns alone {found['baseline']:.3f}",
                flush=True,
            )


def area(scores, outlier):
    """The probability that an outlier scores below a normal row."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    for value in np.unique(scores):
        ranks[scores == value] = ranks[scores == value].mean()
    n, m = int((~outlier).sum()), int(outlier.sum())
    return (ranks[~outlier].sum() - n * (n + 1) / 2) / (n * m)


def anomalies(asked):
    from sklearn import datasets
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.preprocessing import StandardScaler

    sets = []
    cancer = datasets.load_breast_cancer()
    sets.append(("breast cancer, benign", cancer.data, cancer.target == 1, []))
    digits = datasets.load_digits()
    for digit in (3, 8):
        bits = (digits.data > 7.5).astype(float)
        sets.append((f"digit {digit}, bits", bits, digits.target == digit, ["--visible", "binary"]))
    print(f"{'normal rows':24} {'harmonium':>16} {'IsolationForest':>16} {'LocalOutlierFactor':>18} {'p <= 0.1 of normal':>19}")
    for name, x, normal, said in sets:
        found = []
        for seed in range(asked.splits):
            order = np.random.default_rng(seed).permutation(np.flatnonzero(normal))
            a, b = round(0.5 * len(order)), round(0.75 * len(order))
            learned, kept, fresh = order[:a], order[a:b], order[b:]
            tested = np.concatenate([fresh, np.flatnonzero(~normal)])
            outlier = np.arange(len(tested)) >= len(fresh)
            with tempfile.TemporaryDirectory() as folder:
                folder = Path(folder)
                for file, rows in (("train", learned), ("normal", kept), ("test", tested)):
                    np.save(folder / f"{file}.npy", x[rows])
                settings = ["--hidden", 30, "--epochs", 200, "--batch", 20, "--learning-rate", 0.02, "--l2", 0.001]
                harmonium(
                    asked.harmonium, "train", "rbm", folder / "train.npy", "--out", folder / "run", *said, *settings,
                    "--seed", seed, "--watch", "none",
                )
                harmonium(
                    asked.harmonium, "score", folder / "run", folder / "test.npy", "--anomaly", folder / "normal.npy",
                    "--out", folder / "p.npy",
                )
                scores, p = np.load(folder / "p.npy").T
            scale = StandardScaler().fit(x[learned])
            train, test = scale.transform(x[learned]), scale.transform(x[tested])
            forest = IsolationForest(random_state=seed).fit(train).score_samples(test)
            local = LocalOutlierFactor(novelty=True).fit(train).score_samples(test)
            areas = [area(s, outlier) for s in (scores, forest, local)]
            found.append([*areas, (p[~outlier] <= 0.1).mean()])
        mean = np.mean(found, axis=0)
        error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.zeros(4)
        shown = [f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error)]
        print(f"{name:24} {shown[0]:>16} {shown[1]:>16} {shown[2]:>18} {shown[3]:>19}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["counts", "levels", "groups", "anomalies"])
    parser.add_argument("--harmonium", default="harmonium")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", default="mushrooms")
    asked = parser.parse_args()
    {"counts": counts, "levels": levels, "groups": groups, "anomalies": anomalies}[asked.study](asked)


main()
