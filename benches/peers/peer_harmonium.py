"""Reads what harmonium made, so that one function checks everybody. Measures nothing."""

import json

import numpy as np
import work as w


def train(work):
    return None, w.learned(*w.parameters(work.model_file), work.test_rows())


def sample(work):
    return None, {"mean_pixel": float(np.load(work.made).mean(dtype=np.float64))}


def features(work):
    return None, {"mean_feature": float(np.load(work.made, mmap_mode="r").mean(dtype=np.float64))}


def score(work):
    return None, {"mean_score": json.loads(work.made)["pseudo_log_likelihood"]}


def ais(work):
    return None, {"log_z": json.loads(work.made)["log_z"]}


def dbm(work):
    w1, w2, *biases = w.parameters(work.model_file, ("visible", "hidden1", "hidden2"))
    return None, w.learned_dbm((w1, w2), biases, work.test_rows())
