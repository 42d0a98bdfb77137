"""Features of models: RBM, DBM, DBN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context

from .. import _core
from .._families import DBM, DBN, RBM
from .._frames import make
from .._results import LogLikelihood
from ._machine import Machine

__all__ = ["DBMTransformer", "DBNTransformer", "RBMTransformer"]


class _Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine):
    """Features, samples and likelihoods of a model."""

    _takes_grey = True
    # Parameters are checked where they are used, with a hint.
    _parameter_constraints: dict[str, Any] = {}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learns the distribution of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows: zeros and ones, values between them, or real numbers.
        y : Ignored
            Present for consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 2 counts as two rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._validated(X, reset=True)
        self._learn(X, sample_weight=sample_weight, y=y)
        self._n_features_out = int(np.atleast_1d(self.hidden).sum())
        return self

    def transform(self, X: Any) -> Any:
        """Computes the means of all hidden units for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features_out)
            The hidden layers side by side.
        """
        X = self._rows(X)
        values, _ = self.model_._fitted().features(self._data(X), None, None)
        return values if self._kind == "table" else values.astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Computes the means of the visible units for rows of features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            Means or values of the hidden units.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            What the model expects of the rows.
        """
        features = np.ascontiguousarray(X, dtype=np.float64)
        values = self.model_._fitted().reconstruct(features)
        decoded = _core.decoded(self.model_._fitted(), values)
        return self._unscaled(values) if decoded is None else make(decoded, self.model_._backend)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or Generator, default=None
            The seed; by default each call draws other rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        return self._unscaled(self.model_.sample(n_samples, random_state=random_state))

    def score_samples(self, X: Any) -> Any:
        """Computes the log-likelihood of each row, in nats.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            For real numbers that of a density.
        """
        return self._scores(self._rows(X), "auto")

    def score(self, X: Any, y: Any = None) -> float:
        """Computes the mean log-likelihood of rows, in nats.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Present for consistency.

        Returns
        -------
        log_likelihood : float
            The mean over the rows.
        """
        return float(self.score_samples(X).mean())

    def log_likelihood(self, X: Any, **settings: Any) -> LogLikelihood:
        """Computes the log-likelihood of rows with its interval, of standardised values where they are real.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        **settings
            As :meth:`harmonium.Model.log_likelihood`.

        Returns
        -------
        LogLikelihood
            The mean, its interval, and the score of each row.
        """
        return self.model_.log_likelihood(self._data(self._rows(X)), **settings)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RBMTransformer(_Transformer):
    """Features of a restricted Boltzmann machine.

    Parameters
    ----------
    hidden : int, default=100
        Number of hidden units.
    epochs : int, default=None
        Passes over the data; by default as many as make 3000 updates, at least 10.
    learning_rate : float, default=None
        The learning rate; by default 0.01, and 0.001 for real numbers.
    batch : int, default=100
        Rows of one update.
    visible : {"auto", "binary", "gaussian", "spin"}, default="auto"
        Kind of the visible units; by default binary for values between 0 and 1, else Gaussian.
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
    mean_, scale_ : ndarray of shape (n_features,) or None
        Where real numbers lie.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from harmonium.sklearn import RBMTransformer
    >>> X = load_digits().data / 16
    >>> RBMTransformer(hidden=20, epochs=5, random_state=0).fit_transform(X).shape
    (1797, 20)
    """

    _model_class = RBM

    def __init__(
        self,
        hidden: int = 100,
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


class DBMTransformer(_Transformer):
    """Features of a deep Boltzmann machine, all its hidden layers side by side.

    Parameters
    ----------
    hidden : sequence of int, default=(100, 50)
        Number of units of each hidden layer.
    epochs : int, default=None
        Passes over the data; by default as many as make 3000 updates, at least 10.
    learning_rate : float, default=None
        The learning rate; by default 0.01, and 0.001 for real numbers.
    batch : int, default=100
        Rows of one update.
    visible : {"auto", "binary", "gaussian", "spin"}, default="auto"
        Kind of the visible units; by default binary for values between 0 and 1, else Gaussian.
    settings : dict, default=None
        What else can be set about the training: see :class:`harmonium.Settings`.
    random_state : int, RandomState instance or None, default=None
        The root of all randomness.
    verbose : bool, default=False
        Whether progress is shown.

    Attributes
    ----------
    model_ : harmonium.DBM
        The trained model, of standardised values where they are real.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from harmonium.sklearn import DBMTransformer
    >>> X = load_digits().data / 16
    >>> DBMTransformer(hidden=(20, 10), epochs=2, random_state=0).fit_transform(X).shape
    (1797, 30)
    """

    _model_class = DBM

    def __init__(
        self,
        hidden: Sequence[int] = (100, 50),
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


class DBNTransformer(_Transformer):
    """Features of a deep belief network, all its hidden layers side by side.

    Parameters
    ----------
    hidden : sequence of int, default=(100, 50)
        Number of units of each hidden layer, at least two.
    epochs : int, default=None
        Passes over the data with each layer; by default as many as make 3000 updates, at least 10.
    learning_rate : float, default=None
        The learning rate; by default 0.01, and 0.001 for real numbers.
    batch : int, default=100
        Rows of one update.
    visible : {"auto", "binary", "gaussian", "spin"}, default="auto"
        Kind of the visible units; by default binary for values between 0 and 1, else Gaussian.
    settings : dict, default=None
        What else can be set about the training: see :class:`harmonium.Settings`.
    random_state : int, RandomState instance or None, default=None
        The root of all randomness.
    verbose : bool, default=False
        Whether progress is shown.

    Attributes
    ----------
    model_ : harmonium.DBN
        The trained model, of standardised values where they are real.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from harmonium.sklearn import DBNTransformer
    >>> X = load_digits().data / 16
    >>> DBNTransformer(hidden=(20, 10), epochs=2, random_state=0).fit_transform(X).shape
    (1797, 30)
    """

    _model_class = DBN
    _takes_nan = False

    def __init__(
        self,
        hidden: Sequence[int] = (100, 50),
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
