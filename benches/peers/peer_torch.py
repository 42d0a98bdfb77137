"""A careful loop in PyTorch: float32, in place, without autograd, the update inside the gradient's product."""

import math

import torch
import work as w
from torch.nn.functional import softplus

torch.set_num_threads(1)
torch.set_grad_enabled(False)
torch.manual_seed(w.SEED)


def train(work):
    rows = torch.from_numpy(work.train_rows())
    n = work.batch
    weights = w.INITIAL_STD * torch.randn(784, w.N_HIDDEN)
    visible_bias, hidden_bias = torch.from_numpy(work.base_bias()), torch.zeros(w.N_HIDDEN)
    weight_speed, visible_speed, hidden_speed = map(torch.zeros_like, (weights, visible_bias, hidden_bias))
    visible = torch.zeros(2 * n, 784)  # data above, chains below
    hidden = torch.zeros(2 * n, w.N_HIDDEN)
    chains = (torch.rand(n, w.N_HIDDEN) < 0.5).float()
    visible_means = torch.zeros(n, 784)
    rate = w.LEARNING_RATE / n

    def step(batch):
        visible[:n] = batch
        torch.addmm(visible_bias, chains, weights.T, out=visible_means).sigmoid_()
        torch.bernoulli(visible_means, out=visible[n:])
        torch.addmm(hidden_bias, visible, weights, out=hidden).sigmoid_()
        torch.bernoulli(hidden[n:], out=chains)
        hidden[n:].neg_()
        weight_speed.addmm_(visible.T, hidden, beta=w.MOMENTUM, alpha=rate)
        weights.add_(weight_speed)
        visible_speed.mul_(w.MOMENTUM).add_(visible[:n].sum(0) - visible[n:].sum(0), alpha=rate)
        visible_bias.add_(visible_speed)
        hidden_speed.mul_(w.MOMENTUM).add_(hidden.sum(0), alpha=rate)
        hidden_bias.add_(hidden_speed)

    def epochs():
        for _ in range(work.epochs):
            for batch in rows.split(n):
                step(batch)

    seconds, _ = w.timed(epochs)
    return seconds, w.learned(weights, visible_bias, hidden_bias, work.test_rows())


def sample(work):
    weights, visible_bias, hidden_bias = map(torch.from_numpy, work.model())
    visible = (torch.rand(w.N_CHAINS_SAMPLED, 784) < 0.5).float()
    hidden = torch.zeros(w.N_CHAINS_SAMPLED, w.N_HIDDEN)
    hidden_means, visible_means = torch.zeros_like(hidden), torch.zeros_like(visible)

    def sweeps():
        for _ in range(w.N_SWEEPS):
            torch.addmm(hidden_bias, visible, weights, out=hidden_means).sigmoid_()
            torch.bernoulli(hidden_means, out=hidden)
            torch.addmm(visible_bias, hidden, weights.T, out=visible_means).sigmoid_()
            torch.bernoulli(visible_means, out=visible)

    seconds, _ = w.timed(sweeps)
    return seconds, {"mean_pixel": visible.double().mean().item()}


def features(work):
    rows = torch.from_numpy(work.train_rows())
    weights, _, hidden_bias = map(torch.from_numpy, work.model())
    hidden = torch.zeros(len(rows), w.N_HIDDEN)

    def transform():
        for piece, out in zip(rows.split(500), hidden.split(500)):
            torch.addmm(hidden_bias, piece, weights, out=out).sigmoid_()

    seconds, _ = w.timed(transform)
    return seconds, {"mean_feature": hidden.double().mean().item()}


def ais(work):
    """Annealed importance sampling from independent pixels; one product of v with W serves both weights and h."""
    weights, visible_bias, hidden_bias = map(torch.from_numpy, work.model())
    base_bias = torch.from_numpy(work.base_bias())
    bias_change = visible_bias - base_bias
    n = w.N_CHAINS_AIS
    betas = torch.linspace(0, 1, work.betas, dtype=torch.float64).tolist()
    visible = (torch.rand(n, 784) < torch.sigmoid(base_bias)).float()
    theta = torch.zeros(n, w.N_HIDDEN)
    hidden, visible_means = torch.zeros_like(theta), torch.zeros_like(visible)

    def anneal():
        log_weights = torch.zeros(n, dtype=torch.float64)
        for before, beta in zip(betas[:-1], betas[1:]):
            torch.addmm(hidden_bias, visible, weights, out=theta)
            log_weights.add_(torch.mv(visible, bias_change), alpha=beta - before)
            log_weights.sub_(softplus(theta * before).sum(1, dtype=torch.float64))
            theta.mul_(beta)
            log_weights.add_(softplus(theta).sum(1, dtype=torch.float64))
            torch.bernoulli(theta.sigmoid_(), out=hidden)
            bias = torch.lerp(base_bias, visible_bias, beta)
            torch.addmm(bias, hidden, weights.T, alpha=beta, out=visible_means).sigmoid_()
            torch.bernoulli(visible_means, out=visible)
        return log_weights

    seconds, log_weights = w.timed(anneal)
    log_z_base = softplus(base_bias.double()).sum() + w.N_HIDDEN * math.log(2)
    return seconds, {"log_z": (log_z_base + log_weights.logsumexp(0) - math.log(n)).item()}


def dbm(work):
    """Variational EM of a centered deep Boltzmann machine: v W1 once per batch, then mean field; persistent chains on the other side.

    Biases are those without offsets, b - W o, which do not change when an offset moves.
    """
    rows = torch.from_numpy(work.train_rows())
    n, (n1, n2) = work.batch, w.N_HIDDEN_DBM
    w1, w2 = w.INITIAL_STD * torch.randn(784, n1), w.INITIAL_STD * torch.randn(n1, n2)
    o0, o1, o2 = rows.mean(0), torch.full((n1,), 0.5), torch.full((n2,), 0.5)
    b0 = torch.from_numpy(work.base_bias()) - w1 @ o1
    b1, b2 = -(o0 @ w1) - w2 @ o2, -(o1 @ w2)
    speeds = tuple(map(torch.zeros_like, (w1, w2, b0, b1, b2)))
    v, h1, h2 = torch.zeros(n, 784), torch.zeros(n, n1), torch.zeros(n, n2)
    h1.bernoulli_(0.5)
    drive, mu1, mu2 = torch.zeros(n, n1), torch.zeros(n, n1), torch.zeros(n, n2)
    v_means, h1_means, h2_means = map(torch.zeros_like, (v, h1, h2))
    rate = w.LEARNING_RATE / n

    def mean_field(batch):
        torch.addmm(b1, batch, w1, out=drive)
        torch.sigmoid(drive, out=mu1)
        for _ in range(w.N_MEAN_FIELD):
            torch.addmm(b2, mu1, w2, out=mu2).sigmoid_()
            torch.addmm(drive, mu2, w2.T, out=mu1).sigmoid_()

    def sweep():
        torch.addmm(b0, h1, w1.T, out=v_means).sigmoid_()
        torch.bernoulli(v_means, out=v)
        torch.addmm(b2, h1, w2, out=h2_means).sigmoid_()
        torch.bernoulli(h2_means, out=h2)
        torch.addmm(b1, v, w1, out=h1_means).addmm_(h2, w2.T).sigmoid_()
        torch.bernoulli(h1_means, out=h1)

    def step(batch):
        mean_field(batch)
        for _ in range(w.N_SWEEPS_DBM):
            sweep()
        s1, s2, t0, t1, t2 = speeds
        d0, d1, d2 = batch.sum(0) - v.sum(0), mu1.sum(0) - h1_means.sum(0), mu2.sum(0) - h2.sum(0)
        s1.addmm_(batch.T, mu1, beta=w.MOMENTUM, alpha=rate).addmm_(v.T, h1_means, alpha=-rate)
        s1.addr_(d0, o1, alpha=-rate).addr_(o0, d1, alpha=-rate)
        s2.addmm_(mu1.T, mu2, beta=w.MOMENTUM, alpha=rate).addmm_(h1_means.T, h2, alpha=-rate)
        s2.addr_(d1, o2, alpha=-rate).addr_(o1, d2, alpha=-rate)
        for speed, difference in ((t0, d0), (t1, d1), (t2, d2)):
            speed.mul_(w.MOMENTUM).add_(difference, alpha=rate)
        w1.add_(s1)
        w2.add_(s2)
        b0.add_(t0).sub_(s1 @ o1)
        b1.add_(t1).sub_(o0 @ s1).sub_(s2 @ o2)
        b2.add_(t2).sub_(o1 @ s2)
        o1.lerp_(mu1.mean(0), w.OFFSET_RATE)
        o2.lerp_(mu2.mean(0), w.OFFSET_RATE)

    def epochs():
        for _ in range(work.epochs):
            for batch in rows.split(n):
                step(batch)

    seconds, _ = w.timed(epochs)
    w.write_dbm(work.model_file, work.made, (w1, w2), (b0, b1, b2))
    return seconds, w.learned_dbm((w1, w2), (b0, b1, b2), work.test_rows())
