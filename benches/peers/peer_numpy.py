"""A careful loop in numpy: float32, every buffer made once, one product for both phases."""

import numpy as np
import work as w

np.seterr(over="ignore")  # exp of a large number is infinite, and its reciprocal the right zero


def logistic_in_place(x):
    np.negative(x, out=x)
    np.exp(x, out=x)
    np.add(x, 1, out=x)
    np.reciprocal(x, out=x)


class Sampler:
    """Draws zeros and ones into a given buffer."""

    def __init__(self, shape):
        self.rng = np.random.Generator(np.random.SFC64(w.SEED))
        self.uniform = np.empty(shape, dtype=np.float32)

    def draw(self, means, out):
        self.rng.random(out=self.uniform, dtype=np.float32)
        np.less(self.uniform, means, out=out)


class Trainer:
    def __init__(self, work):
        rng = np.random.default_rng(w.SEED)
        n = work.batch
        self.n = n
        self.weights = w.first_weights(work, rng)
        self.visible_bias = work.base_bias()
        self.hidden_bias = np.zeros(w.N_HIDDEN, dtype=np.float32)
        self.speeds = [np.zeros_like(p) for p in (self.weights, self.visible_bias, self.hidden_bias)]
        self.gradient = np.empty_like(self.weights)
        self.visible = np.zeros((2 * n, 784), dtype=np.float32)  # data above, chains below
        self.hidden = np.empty((2 * n, w.N_HIDDEN), dtype=np.float32)
        self.chains = (rng.random((n, w.N_HIDDEN)) < 0.5).astype(np.float32)
        self.visible_means = np.empty((n, 784), dtype=np.float32)
        self.draw_visible = Sampler((n, 784)).draw
        self.draw_hidden = Sampler((n, w.N_HIDDEN)).draw

    def step(self, rows):
        n, visible, hidden = self.n, self.visible, self.hidden
        visible[:n] = rows
        np.matmul(self.chains, self.weights.T, out=self.visible_means)
        self.visible_means += self.visible_bias
        logistic_in_place(self.visible_means)
        self.draw_visible(self.visible_means, visible[n:])
        np.matmul(visible, self.weights, out=hidden)
        hidden += self.hidden_bias
        logistic_in_place(hidden)
        self.draw_hidden(hidden[n:], self.chains)
        np.negative(hidden[n:], out=hidden[n:])
        np.matmul(visible.T, hidden, out=self.gradient)
        self.ascend(0, self.weights, self.gradient)
        self.ascend(1, self.visible_bias, visible[:n].sum(axis=0) - visible[n:].sum(axis=0))
        self.ascend(2, self.hidden_bias, hidden.sum(axis=0))

    def ascend(self, which, parameter, gradient):
        speed = self.speeds[which]
        speed *= w.MOMENTUM
        gradient *= w.LEARNING_RATE / self.n
        speed += gradient
        parameter += speed


def train(work):
    rows = work.train_rows()
    trainer = Trainer(work)

    def epochs():
        for _ in range(work.epochs):
            for start in range(0, len(rows), work.batch):
                trainer.step(rows[start : start + work.batch])

    seconds, _ = w.timed(epochs)
    check = w.learned(trainer.weights, trainer.visible_bias, trainer.hidden_bias, work.test_rows())
    return seconds, check


def sample(work):
    weights, visible_bias, hidden_bias = work.model()
    n = w.N_CHAINS_SAMPLED
    visible = (np.random.default_rng(w.SEED).random((n, 784)) < 0.5).astype(np.float32)
    hidden = np.empty((n, w.N_HIDDEN), dtype=np.float32)
    hidden_means, visible_means = np.empty_like(hidden), np.empty_like(visible)
    draw_visible, draw_hidden = Sampler(visible.shape).draw, Sampler(hidden.shape).draw

    def sweeps():
        for _ in range(w.N_SWEEPS):
            np.matmul(visible, weights, out=hidden_means)
            np.add(hidden_means, hidden_bias, out=hidden_means)
            logistic_in_place(hidden_means)
            draw_hidden(hidden_means, hidden)
            np.matmul(hidden, weights.T, out=visible_means)
            np.add(visible_means, visible_bias, out=visible_means)
            logistic_in_place(visible_means)
            draw_visible(visible_means, visible)

    seconds, _ = w.timed(sweeps)
    return seconds, {"mean_pixel": float(visible.mean(dtype=np.float64))}


def features(work):
    rows = work.train_rows()
    weights, _, hidden_bias = work.model()
    hidden = np.zeros((len(rows), w.N_HIDDEN), dtype=np.float32)

    def transform():
        for start in range(0, len(rows), 500):  # the means of one piece stay in the cache
            piece = hidden[start : start + 500]
            np.matmul(rows[start : start + 500], weights, out=piece)
            np.add(piece, hidden_bias, out=piece)
            logistic_in_place(piece)

    seconds, _ = w.timed(transform)
    return seconds, {"mean_feature": float(hidden.mean(dtype=np.float64))}


def ais(work):
    """Annealed importance sampling from independent pixels; one product of v with W serves both weights and h."""
    weights, visible_bias, hidden_bias = work.model()
    base_bias = work.base_bias()
    bias_change = visible_bias - base_bias
    n, rng = w.N_CHAINS_AIS, np.random.default_rng(w.SEED)
    betas = np.linspace(0, 1, work.betas)
    visible = (rng.random((n, 784)) < w.logistic(base_bias)).astype(np.float32)
    theta = np.empty((n, w.N_HIDDEN), dtype=np.float32)
    scaled, hidden = np.empty_like(theta), np.empty_like(theta)
    visible_means = np.empty_like(visible)
    draw_visible, draw_hidden = Sampler(visible.shape).draw, Sampler(theta.shape).draw
    softplus_scratch = np.empty_like(theta)

    def softplus_sum(beta):
        """Sum over hidden units of ln(1 + exp(beta theta)), safe for large arguments."""
        np.multiply(theta, np.float32(beta), out=scaled)
        np.abs(scaled, out=softplus_scratch)
        np.negative(softplus_scratch, out=softplus_scratch)
        np.exp(softplus_scratch, out=softplus_scratch)
        np.log1p(softplus_scratch, out=softplus_scratch)
        np.maximum(scaled, 0, out=hidden)
        np.add(softplus_scratch, hidden, out=softplus_scratch)
        return softplus_scratch.sum(axis=1, dtype=np.float64)

    def anneal():
        log_weights = np.zeros(n)
        for before, beta in zip(betas[:-1], betas[1:]):
            np.matmul(visible, weights, out=theta)
            np.add(theta, hidden_bias, out=theta)
            log_weights += (beta - before) * (visible @ bias_change)
            log_weights -= softplus_sum(before)
            log_weights += softplus_sum(beta)
            logistic_in_place(scaled)
            draw_hidden(scaled, hidden)
            np.matmul(hidden, weights.T, out=visible_means)
            np.multiply(visible_means, np.float32(beta), out=visible_means)
            np.add(visible_means, np.float32(1 - beta) * base_bias + np.float32(beta) * visible_bias, out=visible_means)
            logistic_in_place(visible_means)
            draw_visible(visible_means, visible)
        return log_weights

    seconds, log_weights = w.timed(anneal)
    log_z_base = np.logaddexp(0, base_bias.astype(np.float64)).sum() + w.N_HIDDEN * np.log(2)
    log_z = log_z_base + np.logaddexp.reduce(log_weights) - np.log(n)
    return seconds, {"log_z": float(log_z)}
