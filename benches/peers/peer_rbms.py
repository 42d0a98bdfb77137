"""The `rbms` package: its own step and optimiser, without the file it writes to at every update."""

import torch
import work as w
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.partition_function.ais import compute_partition_function_ais
from rbms.training.pcd import fit_batch_pcd

torch.set_num_threads(1)
torch.set_grad_enabled(False)
torch.manual_seed(w.SEED)


def train(work):
    """Times the package as it is; what it learned is taken from a second run that does not normalise gradients.

    With every gradient divided by its norm, weights grow at a pace of their own and compare with nobody's. Without
    that one line the algorithm is everybody's, and so must be the result.
    """
    rows = torch.from_numpy(work.train_rows())
    seconds, _ = w.timed(lambda: epochs(first_model(work), rows, work))
    rbm = first_model(work)
    rbm.normalize_grad = lambda: None
    epochs(rbm, rows, work)
    return seconds, w.learned(rbm.weight_matrix, rbm.vbias, rbm.hbias, work.test_rows())


def first_model(work):
    rbm = BBRBM(
        weight_matrix=w.INITIAL_STD * torch.randn(784, w.N_HIDDEN),
        vbias=torch.from_numpy(work.base_bias()),
        hbias=torch.zeros(w.N_HIDDEN),
    )
    rbm.init_grad()
    return rbm


def epochs(rbm, rows, work):
    one_each = torch.ones(work.batch)
    optimizer = torch.optim.SGD(rbm.parameters(), lr=w.LEARNING_RATE, momentum=w.MOMENTUM, maximize=True)
    chains = rbm.init_chains(work.batch)
    for _ in range(work.epochs):
        for batch in rows.split(work.batch):
            optimizer.zero_grad(set_to_none=False)
            chains, _ = fit_batch_pcd((batch, one_each), chains, rbm, 1, 1.0, centered=False)
            optimizer.step()


def shared_model(work):
    weights, visible_bias, hidden_bias = map(torch.from_numpy, work.model())
    return BBRBM(weight_matrix=weights, vbias=visible_bias, hbias=hidden_bias)


def sample(work):
    rbm = shared_model(work)
    chains = rbm.init_chains(w.N_CHAINS_SAMPLED)
    seconds, chains = w.timed(lambda: rbm.sample_state(chains, n_steps=w.N_SWEEPS))
    return seconds, {"mean_pixel": chains["visible"].double().mean().item()}


def features(work):
    rbm, rows = shared_model(work), torch.from_numpy(work.train_rows())
    seconds, chains = w.timed(lambda: rbm.sample_hiddens({"visible": rows}))
    return seconds, {"mean_feature": chains["hidden_mag"].double().mean().item()}


def ais(work):
    rbm = shared_model(work)
    seconds, log_z = w.timed(lambda: compute_partition_function_ais(w.N_CHAINS_AIS, work.betas, rbm))
    return seconds, {"log_z": log_z}
