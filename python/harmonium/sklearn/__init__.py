"""Estimators for scikit-learn 1.6 to 1.9.

:class:`BernoulliRBM` takes the place of :class:`sklearn.neural_network.BernoulliRBM`: the same constructor,
attributes and methods, many times as fast.

>>> from sklearn.datasets import load_digits
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.pipeline import make_pipeline
>>> from harmonium.sklearn import BernoulliRBM
>>> X, y = load_digits(return_X_y=True)
>>> model = make_pipeline(
...     BernoulliRBM(n_components=100, learning_rate=0.06, n_iter=30, random_state=0),
...     LogisticRegression(C=100, max_iter=2000),
... )
>>> model.fit(X[:1000] / 16, y[:1000]).score(X[1000:] / 16, y[1000:]) > 0.85
True
"""

from __future__ import annotations

from ._bernoulli import BernoulliRBM
from ._classifiers import DBMClassifier, RBMClassifier
from ._imputer import BoltzmannImputer
from ._outlier import BoltzmannOutlier
from ._transformers import DBMTransformer, DBNTransformer, RBMTransformer

__all__ = [
    "BernoulliRBM",
    "BoltzmannImputer",
    "BoltzmannOutlier",
    "DBMClassifier",
    "DBMTransformer",
    "DBNTransformer",
    "RBMClassifier",
    "RBMTransformer",
]
