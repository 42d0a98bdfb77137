"""The `learnergy` package, called as its users call it."""

import logging

import torch
import work as w
from learnergy.models.bernoulli import RBM
from torch.utils.data import TensorDataset

torch.set_num_threads(1)
torch.manual_seed(w.SEED)
logging.disable(logging.CRITICAL)


def empty_model():
    return RBM(n_visible=784, n_hidden=w.N_HIDDEN, steps=1, learning_rate=w.LEARNING_RATE, momentum=w.MOMENTUM)


def train(work):
    rows = torch.from_numpy(work.train_rows())
    data = TensorDataset(rows, torch.zeros(len(rows)))
    rbm = empty_model()
    seconds, _ = w.timed(lambda: rbm.fit(data, batch_size=work.batch, epochs=work.epochs))
    check = w.learned(rbm.W.detach(), rbm.a.detach(), rbm.b.detach(), work.test_rows())
    return seconds, check


def shared_model(work):
    rbm = empty_model()
    with torch.no_grad():
        for mine, shared in zip((rbm.W, rbm.a, rbm.b), work.model()):
            mine.copy_(torch.from_numpy(shared))
    return rbm


@torch.no_grad()
def sample(work):
    rbm = shared_model(work)
    start = (torch.rand(w.N_CHAINS_SAMPLED, 784) < 0.5).float()

    def sweeps():
        visible = start
        for _ in range(w.N_SWEEPS):
            _, hidden = rbm.hidden_sampling(visible)
            _, visible = rbm.visible_sampling(hidden)
        return visible

    seconds, visible = w.timed(sweeps)
    return seconds, {"mean_pixel": visible.double().mean().item()}


@torch.no_grad()
def features(work):
    rbm, rows = shared_model(work), torch.from_numpy(work.train_rows())
    seconds, hidden = w.timed(lambda: rbm(rows))
    return seconds, {"mean_feature": hidden.double().mean().item()}


@torch.no_grad()
def score(work):
    rbm, rows = shared_model(work), torch.from_numpy(work.test_rows())
    seconds, mean = w.timed(lambda: rbm.pseudo_likelihood(rows))
    return seconds, {"mean_score": mean.item()}
