# %% [markdown]
# # Many digits, few labels
#
# A deep belief network learns from digits without labels; then a net of its layers learns from the few that have one.

# %%
import os

from sklearn.datasets import load_digits

import harmonium

SMALL = bool(os.environ.get("HARMONIUM_SMALL"))
X, y = load_digits(return_X_y=True)
train, test, labelled = slice(0, 1300), slice(1300, None), slice(0, 200)

# %%
dbn = harmonium.DBN([100, 100], epochs=10 if SMALL else 60, learning_rate=0.05)
dbn.fit(X[train])

# %%
epochs = 20 if SMALL else 60
net = dbn.finetune(X[labelled], y[labelled], epochs=epochs, batch=10)
alone = harmonium.Network([100, 100], units="logistic", epochs=epochs, batch=10).fit(X[labelled], y[labelled])
print(f"from the network: {net.score(X[test], y[test]):.3f}, from random weights: {alone.score(X[test], y[test]):.3f}")

# %% [markdown]
# Its weights as PyTorch has them: `torch.nn.Sequential(Linear, Sigmoid, …)` loads them.

# %%
print({name: array.shape for name, array in net.state_dict().items()})
