"""Outliers: rows that a model finds improbable."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from .._families import RBM
from ..errors import InvalidError
from ._machine import Machine

__all__ = ["BoltzmannOutlier"]


class BoltzmannOutlier(OutlierMixin, Machine):
    """Finds rows that a restricted Boltzmann machine gives a low probability.

    The score of a row is its log-likelihood up to a constant, the negative free energy, which needs no partition
    function. Rows below the threshold are outliers; it is the quantile of the training rows that ``contamination``
    asks for, or of those that were held out.

    Parameters
    ----------
    contamination : float, default=0.1
        The share of the training rows that count as outliers, up to 0.5.
    held_out : float, default=None
        The share of the training rows that is not learned but kept beside the others, so that scores are those of rows the
        machine has not seen: the threshold and :meth:`p_values` are then calibrated. By default all rows are learned.
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
    offset_ : float
        The score of the threshold.
    normal_scores_ : ndarray of shape (n_held_out,)
        The scores of the rows that were held out, where some were.
    model_ : harmonium.RBM
        The trained model, of standardised values where they are real.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import BoltzmannOutlier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = BoltzmannOutlier(contamination=0.05, random_state=0).fit(X)
    >>> detector.predict([[0, 0], [8, -8]])
    array([ 1, -1])
    """

    _model_class = RBM
    _takes_nan = False
    _parameter_constraints: dict[str, Any] = {
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "held_out": [Interval(Real, 0, 1, closed="neither"), None],
    }

    def __init__(
        self,
        contamination: float = 0.1,
        *,
        held_out: float | None = None,
        hidden: int = 50,
        epochs: int | None = None,
        learning_rate: float | None = None,
        batch: int = 100,
        visible: str = "auto",
        settings: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.contamination = contamination
        self.held_out = held_out
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch = batch
        self.visible = visible
        self.settings = settings
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BoltzmannOutlier:
        """Learns the distribution of rows, and where the improbable ones begin.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Present for consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row.

        Returns
        -------
        self : BoltzmannOutlier
            The fitted detector.
        """
        X = self._validated(X, reset=True)
        if self.held_out is not None:
            return self._fit_beside(X, sample_weight, y)
        self._learn(X, sample_weight=sample_weight, y=y)
        scores = self._scores(X, "free-energy")
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            whole = bool((weights == np.floor(weights)).all())
            scores = np.repeat(scores, weights.astype(int)) if whole else scores[weights > 0]
        self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
        return self

    def _fit_beside(self, X: Any, sample_weight: Any, y: Any) -> BoltzmannOutlier:
        """Learns some rows, and calibrates on the others."""
        order = check_random_state(self.random_state).permutation(X.shape[0])
        n = min(round(self.held_out * X.shape[0]), X.shape[0] - 1)
        # The largest score at which the p-value is not above the contamination.
        place = int(np.floor(self.contamination * (n + 1))) - 1
        if place < 0:
            raise InvalidError(
                f"{n} rows that are held out cannot tell a share of {self.contamination} apart",
                "give more rows, hold out more of them, or raise `contamination`",
            )
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order[n:]]
        self._learn(X[order[n:]], sample_weight=weights, y=None if y is None else np.asarray(y)[order[n:]])
        self.normal_scores_ = np.sort(self._scores(X[order[:n]], "free-energy"))
        self.offset_ = float(self.normal_scores_[place])
        return self

    def p_values(self, X: Any, normal: Any = None) -> Any:
        """Computes how unusual each row is beside rows that are normal and were not learned.

        A normal row has a p-value of at most ``a`` with a probability of at most ``a``, whatever was learned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        normal : {array-like, sparse matrix} of shape (n_normal, n_features), default=None
            Normal rows; by default those that ``held_out`` kept.

        Returns
        -------
        p_values : ndarray of shape (n_samples,)
            From one over one more than the number of normal rows up to 1.
        """
        X = self._rows(X)
        if normal is not None:
            _, found, _ = self.model_._fitted().anomalies(self._data(X), self._data(self._rows(normal)), None)
            return found
        if not hasattr(self, "normal_scores_"):
            raise InvalidError(
                "no rows were held out that p-values could be calibrated on",
                "give `normal`, rows that were not learned, or a share `held_out` before `fit`",
            )
        below = np.searchsorted(self.normal_scores_, self._scores(X, "free-energy"), side="right")
        return (1 + below) / (1 + len(self.normal_scores_))

    def score_samples(self, X: Any) -> Any:
        """Computes the negative free energy of each row: the higher, the more probable.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The log-likelihoods, up to a constant.
        """
        return self._scores(self._rows(X), "free-energy")

    def decision_function(self, X: Any) -> Any:
        """Computes how far each row is from the threshold; negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            In nats.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """Finds outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        is_inlier : ndarray of shape (n_samples,)
            1 for inliers and -1 for outliers.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)
