"""Missing values filled by what a model expects of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, _fit_context

from .._families import RBM
from ._machine import Machine

__all__ = ["BoltzmannImputer"]


class BoltzmannImputer(OneToOneFeatureMixin, TransformerMixin, Machine):
    """Fills missing values with their means given the rest of their row.

    A restricted Boltzmann machine learns from rows with holes, around them; what is missing in a row then has a
    distribution given what is there. Of a frame of pandas, polars or pyarrow with words, each column is learned in its
    own way, and a frame of the same kind comes back: numbers at their means, words the most probable ones.

    Parameters
    ----------
    hidden : int, default=50
        Number of hidden units.
    epochs : int, default=None
        Passes over the data; by default as many as make 3000 updates, at least 10.
    learning_rate : float, default=None
        The learning rate; by default 0.01, and 0.001 for real numbers.
    batch : int, default=100
        Rows of one update.
    visible : {"auto", "binary", "gaussian", "spin"}, default="auto"
        Kind of the visible units; by default binary for zeros and ones, else Gaussian.
    settings : dict, default=None
        What else can be set about the training: see :class:`harmonium.Settings`.
    random_state : int, RandomState instance or None, default=None
        The root of all randomness.
    verbose : bool, default=False
        Whether progress is shown.

    Attributes
    ----------
    model_ : harmonium.RBM
        The trained model, of standardised values where they are real.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import BoltzmannImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> X = np.column_stack([x, 2 * x + 0.1 * rng.normal(size=200)])
    >>> X[:3, 1] = np.nan
    >>> filled = BoltzmannImputer(random_state=0).fit_transform(X)
    >>> bool(np.abs(filled[:3, 1] - 2 * X[:3, 0]).max() < 1)
    True
    """

    _model_class = RBM
    _parameter_constraints: dict[str, Any] = {}

    def __init__(
        self,
        hidden: int = 50,
        *,
        epochs: int | None = None,
        learning_rate: float | None = None,
        batch: int = 100,
        visible: str = "auto",
        settings: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch = batch
        self.visible = visible
        self.settings = settings
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BoltzmannImputer:
        """Learns the distribution of rows with holes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; NaN is missing.
        y : Ignored
            Present for consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row.

        Returns
        -------
        self : BoltzmannImputer
            The fitted imputer.
        """
        X = self._validated(X, reset=True)
        self._learn(X, sample_weight=sample_weight, y=y)
        return self

    def transform(self, X: Any) -> Any:
        """Fills missing values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; NaN is missing.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
            Values that are there as they were, missing ones at their means: probabilities of zeros and ones.
        """
        X = self._rows(X)
        if self._kind == "table":
            return self.model_.complete(X)
        dense = X.toarray() if hasattr(X, "toarray") else X
        holes = np.isnan(dense)
        filled = np.array(dense, copy=True)
        rows = holes.any(axis=1)
        if rows.any():
            asked = json.dumps({"method": "auto", "sweeps": None, "seed": 0})
            data = self._data(dense[rows])
            values, _, _, _ = self.model_._fitted().complete(asked, data, None, None)
            filled[rows] = np.where(holes[rows], self._unscaled(values), dense[rows])
        return filled

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
