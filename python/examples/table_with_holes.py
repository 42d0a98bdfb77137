# %% [markdown]
# # A table with words, numbers and holes
#
# A frame goes in as it is. What each column holds is found out; holes are learned around and then filled with what
# the rest of their row says about them.

# %%
import os

import numpy as np
import pandas as pd

import harmonium
from harmonium.sklearn import BoltzmannImputer

SMALL = bool(os.environ.get("HARMONIUM_SMALL"))

# %%
rng = np.random.default_rng(0)
n = 300 if SMALL else 3000
kind = rng.choice(["cat", "dog", "owl"], size=n)
mass = pd.Series(kind).map({"cat": 4.0, "dog": 20.0, "owl": 1.0}) * np.exp(0.2 * rng.normal(size=n))
whole = pd.DataFrame({"kind": pd.Categorical(kind), "mass": mass, "flies": kind == "owl"})
frame = whole.astype({"flies": "boolean"})
for column in frame:
    frame.loc[rng.random(n) < 0.1, column] = None
frame.head()

# %%
imputer = BoltzmannImputer(hidden=10, epochs=100, learning_rate=0.02, random_state=0)
filled = imputer.fit_transform(frame)
holes = frame["kind"].isna()
print("kinds told rightly:", (filled["kind"][holes] == whole["kind"][holes]).mean())
print("by the most frequent one:", (whole["kind"][holes] == frame["kind"].mode()[0]).mean())

# %% [markdown]
# The model behind it can be asked, too: what it took the columns for, samples, a score of every row.

# %%
model = imputer.model_
print({name: column["kind"] for name, column in model.columns.items()})
print(model.sample(5))
print(model.log_likelihood(whole))
