# %% [markdown]
# # A deep Boltzmann machine of digits
#
# Two hidden layers, trained one after the other and then together; samples, half a digit completed, and the
# likelihood of digits that it has not seen, with its interval. With MNIST as IDX files the same lines take
# `X = "train-images-idx3-ubyte.gz"`.

# %%
import os

import numpy as np
from sklearn.datasets import load_digits

import harmonium

SMALL = bool(os.environ.get("HARMONIUM_SMALL"))
X = load_digits().images
train, test = X[:1500], X[1500:]

# %%
dbm = harmonium.DBM(
    [32, 16] if SMALL else [128, 64],
    epochs=5 if SMALL else 100,
    learning_rate=0.05,
    pretrain_epochs=2 if SMALL else 20,
    watch="none",
)
dbm.fit(train)
dbm  # in a notebook: its graph, curves and filters

# %% [markdown]
# The upper half is given, the lower half is filled with its probabilities.

# %%
observed = np.zeros((8, 8), dtype=bool)
observed[:4] = True
filled = dbm.complete(test[:10], mask=observed.ravel()[None, :], sweeps=200)
print(filled[0].reshape(8, 8).round(1))

# %%
annealing = {"betas": 100, "chains": 20} if SMALL else {}
bound = dbm.log_likelihood(test[: 20 if SMALL else 200], method="bound", **annealing)
print(bound, "independent pixels:", bound.baseline)
dbm.save("digits-dbm.safetensors", overwrite=True)
