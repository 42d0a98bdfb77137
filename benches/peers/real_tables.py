"""One split of one table of real numbers: two files for harmonium, and the scores of what it is held against.

`real_tables.py SET SPLIT FOLDER [PENGUINS]` writes `train.csv` and `test.csv` (70 and 30 of a hundred rows) and prints
one JSON object: mean log-likelihoods of the test rows in the units of the data, by one Gaussian with a full
covariance and by the Gaussian mixture whose components and form of covariance a fifth of the training rows chose.
`train-standard.csv` and `test-standard.csv` are the same standardised by the training rows; adding `jacobian` takes
their log-likelihoods back to the units of the data.
"""

import csv
import json
import sys

import numpy as np
from sklearn import datasets
from sklearn.mixture import GaussianMixture

COMPONENTS = [1, 2, 3, 4, 5, 6, 8, 10]
COVARIANCES = ["full", "tied", "diag", "spherical"]


def penguins(path):
    wanted = ["Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)"]
    with open(path, newline="") as file:
        rows = [[row[name] for name in wanted] for row in csv.DictReader(file)]
    numbers = [[float(x) for x in row] for row in rows if all(x.replace(".", "", 1).isdigit() for x in row)]
    return np.array(numbers), wanted


def table(name, path):
    if name == "penguins":
        return penguins(path)
    load = {
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "breast-cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
    }[name]
    loaded = load()
    x, names = loaded.data, [str(n) for n in loaded.feature_names]
    if name == "digits":
        # Whole numbers have no density: spread over the unit interval above them.
        kept = x.std(axis=0) > 0
        x, names = x[:, kept], [n for n, k in zip(names, kept) if k]
        x = x + np.random.default_rng(0).random(x.shape)
    return x, names


def write(path, x, names):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows([[repr(float(v)) for v in row] for row in x])


def mixture(x, kind, n):
    return GaussianMixture(n, covariance_type=kind, n_init=3, random_state=0).fit(x)


def main():
    name, split, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    x, names = table(name, sys.argv[4] if len(sys.argv) > 4 else None)
    order = np.random.default_rng(1000 + split).permutation(len(x))
    n = round(0.7 * len(x))
    train, test = x[order[:n]], x[order[n:]]
    write(f"{folder}/train.csv", train, names)
    write(f"{folder}/test.csv", test, names)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    jacobian = -np.log(deviation).sum()
    a, b = (train - mean) / deviation, (test - mean) / deviation
    write(f"{folder}/train-standard.csv", a, names)
    write(f"{folder}/test-standard.csv", b, names)
    held = round(0.2 * n)
    tried = []
    for kind in COVARIANCES:
        for k in COMPONENTS:
            tried.append((mixture(a[held:], kind, k).score(a[:held]), kind, k))
    _, kind, k = max(tried)
    print(
        json.dumps(
            {
                "rows": len(x),
                "columns": x.shape[1],
                "jacobian": jacobian,
                "gaussian": mixture(a, "full", 1).score(b) + jacobian,
                "mixture": mixture(a, kind, k).score(b) + jacobian,
                "chosen": f"{k} {kind}",
            }
        )
    )


main()
