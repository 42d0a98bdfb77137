"""scikit-learn's `BernoulliRBM`, called as its users call it."""

import numpy as np
import work as w
from sklearn.neural_network import BernoulliRBM


def train(work):
    rows = work.train_rows()
    rbm = BernoulliRBM(
        n_components=w.N_HIDDEN,
        learning_rate=w.LEARNING_RATE,
        batch_size=work.batch,
        n_iter=work.epochs,
        random_state=w.SEED,
    )
    seconds, _ = w.timed(lambda: rbm.fit(rows))
    check = w.learned(rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_, work.test_rows())
    return seconds, check


def shared_model(work):
    """The model of all contenders, in the memory order that `fit` would leave."""
    weights, visible_bias, hidden_bias = work.model()
    rbm = BernoulliRBM(n_components=w.N_HIDDEN, random_state=w.SEED)
    rbm.components_ = np.asarray(weights.T, order="F")
    rbm.intercept_visible_, rbm.intercept_hidden_ = visible_bias, hidden_bias
    rbm.n_features_in_ = weights.shape[0]
    return rbm


def sample(work):
    rbm = shared_model(work)
    start = np.random.default_rng(w.SEED).random((w.N_CHAINS_SAMPLED, 784)) < 0.5

    def sweeps():
        visible = start.astype(work.dtype)
        for _ in range(w.N_SWEEPS):
            visible = rbm.gibbs(visible)
        return visible

    seconds, visible = w.timed(sweeps)
    return seconds, {"mean_pixel": float(visible.mean())}


def features(work):
    rbm, rows = shared_model(work), work.train_rows()
    seconds, hidden = w.timed(lambda: rbm.transform(rows))
    return seconds, {"mean_feature": float(hidden.mean(dtype=np.float64))}


def score(work):
    rbm, rows = shared_model(work), work.test_rows()
    seconds, scores = w.timed(lambda: rbm.score_samples(rows))
    return seconds, {"mean_score": float(scores.mean(dtype=np.float64))}
