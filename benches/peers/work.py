"""What all peers share: the data, the parameters to start from, the clock, and the checks."""

import gzip
import json
import pathlib
import time

import numpy as np

N_HIDDEN = 500
LEARNING_RATE = 0.01
MOMENTUM = 0.5
INITIAL_STD = 0.01
N_CHAINS_SAMPLED = 1000
N_SWEEPS = 100
N_CHAINS_AIS = 100
N_HIDDEN_DBM = (500, 1000)
N_MEAN_FIELD = 10
N_SWEEPS_DBM = 5
OFFSET_RATE = 0.01
SEED = 0


class Work:
    """A piece of work: sizes, and data and parameters in the precision of the peer."""

    def __init__(self, args, dtype):
        self.data = pathlib.Path(args.data)
        self.model_file = pathlib.Path(args.model)
        self.made = args.made
        self.batch, self.epochs, self.betas = args.batch, args.epochs, args.betas
        self.dtype = np.dtype(dtype)

    def train_rows(self):
        return self._rows("train-images-idx3-ubyte.gz")

    def test_rows(self):
        return self._rows("t10k-images-idx3-ubyte.gz")

    def model(self):
        """Weights (visible x hidden), visible bias and hidden bias of the model all contenders share."""
        return tuple(p.astype(self.dtype) for p in parameters(self.model_file))

    def base_bias(self):
        """Log-odds of the pixels: the visible bias training starts from, and the base of AIS."""
        means = np.clip(self.train_rows().mean(axis=0, dtype=np.float64), 1e-3, 1 - 1e-3)
        return np.log(means / (1 - means)).astype(self.dtype)

    def _rows(self, name):
        with gzip.open(self.data / name) as file:
            count, height, width = np.frombuffer(file.read(16), dtype=">i4")[1:]
            pixels = np.frombuffer(file.read(), dtype=np.uint8).reshape(count, height * width)
        return (pixels >= 127.5).astype(self.dtype)


def parameters(path, layers=("visible", "hidden")):
    """Reads a harmonium model: weights between neighbours, then biases, into which offsets are folded."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])

    def tensor(name):
        about = header[name]
        assert about["dtype"] == "F64", f"{name} is {about['dtype']}"
        begin, end = about["data_offsets"]
        return np.frombuffer(raw[start + begin : start + end], dtype="<f8").reshape(about["shape"])

    weights = [tensor(f"couplings.{below}.{above}.weights") for below, above in zip(layers, layers[1:])]
    biases = [tensor(f"layers.{layer}.bias").copy() for layer in layers]
    names = [f"layers.{layer}.offset" for layer in layers]
    offsets = [tensor(name) if name in header else np.zeros_like(b) for name, b in zip(names, biases)]
    for k, between in enumerate(weights):
        biases[k] -= between @ offsets[k + 1]
        biases[k + 1] -= offsets[k] @ between
    return tuple(weights + biases)


def write_dbm(like, path, weights, biases):
    """Writes a harmonium model of the shape of another, with these parameters and no offsets."""
    raw = bytearray(like.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    layers = ("visible", "hidden1", "hidden2")
    tensors = {f"couplings.{a}.{b}.weights": x for a, b, x in zip(layers, layers[1:], weights)}
    tensors |= {f"layers.{layer}.bias": x for layer, x in zip(layers, biases)}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        values = np.asarray(tensors.get(name, np.zeros(about["shape"])), dtype="<f8")
        assert list(values.shape) == about["shape"], f"{name} has another shape"
        begin, end = about["data_offsets"]
        raw[start + begin : start + end] = values.tobytes()
    with open(path, "wb") as file:
        file.write(raw)


def timed(do):
    """Seconds that `do` takes, and its result."""
    start = time.perf_counter()
    result = do()
    return time.perf_counter() - start, result


def learned(weights, visible_bias, hidden_bias, rows):
    """What training did: reconstruction error (squared, per row) and mean |W|."""
    weights, visible_bias, hidden_bias = (
        np.asarray(p, dtype=np.float64) for p in (weights, visible_bias, hidden_bias)
    )
    rows = np.asarray(rows[:5000], dtype=np.float64)
    hidden = logistic(rows @ weights + hidden_bias)
    visible = logistic(hidden @ weights.T + visible_bias)
    return {
        "reconstruction": float(((rows - visible) ** 2).sum(axis=1).mean()),
        "mean_abs_weight": float(np.abs(weights).mean()),
    }


def learned_dbm(weights, biases, rows):
    """What training did: mean |W| of both layers and the reconstruction error from mean field."""
    (w1, w2), (b0, b1, b2) = ([np.asarray(p, dtype=np.float64) for p in ps] for ps in (weights, biases))
    rows = np.asarray(rows[:2000], dtype=np.float64)
    drive = rows @ w1 + b1
    mu1 = logistic(drive)
    for _ in range(N_MEAN_FIELD):
        mu1 = logistic(drive + logistic(mu1 @ w2 + b2) @ w2.T)
    visible = logistic(mu1 @ w1.T + b0)
    return {
        "reconstruction": float(((rows - visible) ** 2).sum(axis=1).mean()),
        "mean_abs_weight_1": float(np.abs(w1).mean()),
        "mean_abs_weight_2": float(np.abs(w2).mean()),
    }


def logistic(x):
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def first_weights(work, rng):
    return (INITIAL_STD * rng.standard_normal((784, N_HIDDEN))).astype(work.dtype)
