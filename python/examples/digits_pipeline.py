# %% [markdown]
# # Features for digits, in the place of scikit-learn's
#
# `harmonium.sklearn.BernoulliRBM` has the constructor, the attributes and the methods of
# `sklearn.neural_network.BernoulliRBM`: only the line that imports it changes.

# %%
import os

import numpy as np
from scipy.ndimage import convolve
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import minmax_scale

from harmonium.sklearn import BernoulliRBM  # was: from sklearn.neural_network import BernoulliRBM

SMALL = bool(os.environ.get("HARMONIUM_SMALL"))

# %% [markdown]
# The digits of scikit-learn, each also moved by one pixel up, left, right and down.

# %%
X, y = load_digits(return_X_y=True)
moves = [np.zeros((3, 3)) for _ in range(4)]
for move, place in zip(moves, [(0, 1), (1, 0), (1, 2), (2, 1)]):
    move[place] = 1
moved = [[convolve(x.reshape(8, 8), move, mode="constant").ravel() for x in X] for move in moves]
X, y = minmax_scale(np.vstack([X, *moved])), np.concatenate([y] * 5)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)

# %% [markdown]
# Features of an RBM under a logistic regression, beside the regression on pixels.

# %%
regression = LogisticRegression(solver="newton-cg", C=6000, tol=1e-4)
rbm = BernoulliRBM(n_components=100, learning_rate=0.06, n_iter=10, random_state=0)
model = make_pipeline(rbm, regression).fit(X_train, y_train)
plain = LogisticRegression(solver="newton-cg", C=500, tol=1e-4).fit(X_train, y_train)
print(f"features: {model.score(X_test, y_test):.3f}, pixels: {plain.score(X_test, y_test):.3f}")

# %% [markdown]
# A grid search, as with any estimator.

# %%
grid = {"bernoullirbm__n_components": [20, 40] if SMALL else [50, 100, 200]}
some = slice(0, 500 if SMALL else 3000)
search = GridSearchCV(make_pipeline(BernoulliRBM(random_state=0, n_iter=5), LogisticRegression(max_iter=2000)), grid, cv=3)
search.fit(X_train[some], y_train[some])
print(search.best_params_, f"{search.best_score_:.3f}")
