"""harmonium.sklearn.BernoulliRBM beside scikit-learn's, one thread each, in turns.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benches/peers/bernoulli_rbm.py [--rows 10000]

Each case is fitted by both in turns, so that both see the same machine; the time is the least of the turns, in seconds of
the processor: with one thread each that is what passes on a machine with nothing else to do.
MNIST is read from IDX files in `../shared/data/mnist` if they are there; otherwise random rows of its size are used.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harmonium  # noqa: E402
import numpy as np  # noqa: E402
import sklearn.neural_network as theirs  # noqa: E402
from harmonium import sklearn as ours  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402


def mnist(n: int) -> tuple[np.ndarray, str]:
    """Rows of 784 grey values from 0 to 1, and where they come from."""
    for name in ("train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"):
        path = Path("../shared/data/mnist") / name
        if path.exists():
            data = gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()
            return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 784)[:n] / 255.0, "MNIST"
    grey = np.random.default_rng(0).beta(0.1, 0.4, size=(n, 784))
    return grey, "random rows (MNIST is not there)"


def seconds(kind: type, X: np.ndarray, settings: dict[str, object]) -> float:
    """The time of one fit."""
    rbm = kind(random_state=0, **settings)
    start = time.process_time()
    rbm.fit(X)
    return time.process_time() - start


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    harmonium.set_threads(1)
    grey, source = mnist(asked.rows)
    bits, digits = (grey > 0.5).astype(np.float64), load_digits().data / 16
    usual = {"n_components": 256, "n_iter": 1}
    cases = [
        ("0/1 float64, batch 10", bits, usual),
        ("0/1 float64, batch 100", bits, {**usual, "batch_size": 100}),
        ("0/1 float32, batch 10", bits.astype(np.float32), usual),
        ("0/1 float32, batch 100", bits.astype(np.float32), {**usual, "batch_size": 100}),
        ("grey float64, batch 10", grey, usual),
        ("grey float64, batch 100", grey, {**usual, "batch_size": 100}),
        ("digits 1797x64, batch 10", digits, {"n_components": 100, "n_iter": 10, "learning_rate": 0.06}),
    ]
    print(f"{len(grey)} rows of {source}; 256 hidden units, one pass; least of {asked.turns} turns")
    print(f"{'case':26} {'theirs':>9} {'ours':>9} {'ratio':>7}")
    for name, X, settings in cases:
        times: dict[type, list[float]] = {theirs.BernoulliRBM: [], ours.BernoulliRBM: []}
        for _ in range(asked.turns):
            for kind, found in times.items():
                found.append(seconds(kind, X, settings))
        least = [min(found) for found in times.values()]
        print(f"{name:26} {least[0]:8.2f}s {least[1]:8.2f}s {least[0] / least[1]:6.1f}x", flush=True)


if __name__ == "__main__":
    main()
