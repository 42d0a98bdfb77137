# %% [markdown]
# # The Ising model: ln Z, samples, and the couplings learned back
#
# Built-in machines are models like any other. Small ones are summed exactly; every number comes with its interval.

# %%
import os

import numpy as np

import harmonium

SMALL = bool(os.environ.get("HARMONIUM_SMALL"))

# %%
coupling = 0.35
ising = harmonium.load(f"ising:4,{coupling}")
print(ising.log_partition())
spins = ising.sample(1000 if SMALL else 20000, random_state=0)
print("magnetisation:", np.abs(spins.mean(axis=1)).mean())

# %% [markdown]
# A fully visible machine learns the couplings from the samples, by exact gradients.

# %%
bm = harmonium.BM(0, lateral=["visible"], rule="exact", epochs=30 if SMALL else 200, learning_rate=0.1, batch=1000)
bm.fit(spins)
print("nats of the truth on these samples that it lacks:", ising.score(spins) - bm.score(spins))

# %% [markdown]
# Larger ones are annealed, from both sides.

# %%
larger = harmonium.load("ising:16,0.4")
print(larger.log_partition(width=1.0))
