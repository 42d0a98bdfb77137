"""A drop-in for scikit-learn's ``BernoulliRBM``."""

from __future__ import annotations

import json
import time
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import _core
from .._inputs import rows_of
from ..errors import OutOfRangeError
from ._callbacks import CallbackSupportMixin, Epochs

__all__ = ["BernoulliRBM"]

#: Rows that the score of ``verbose`` is taken of, at most.
_SHOWN = 1000


class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator):
    """Bernoulli restricted Boltzmann machine, in the place of :class:`sklearn.neural_network.BernoulliRBM`.

    It learns as scikit-learn's does, by stochastic maximum likelihood with persistent chains (Tieleman 2008),
    from the same first weights. What is different:

    - The rows are shuffled in every epoch, and the result does not depend on the order they came in.
    - A batch with fewer rows counts them rightly.
    - ``score_samples`` looks at every unit of a row and not at a random one: it is the same in every call.
    - ``fit`` takes ``sample_weight``, and callbacks with scikit-learn 1.9.

    Parameters
    ----------
    n_components : int, default=256
        Number of binary hidden units.
    learning_rate : float, default=0.1
        The learning rate for weight updates.
    batch_size : int, default=10
        Number of rows of one update, and of chains.
    n_iter : int, default=10
        Number of passes over the data.
    verbose : int, default=0
        Whether the pseudo-likelihood is printed after each of them.
    random_state : int, RandomState instance or None, default=None
        Determines the first weights and everything that is drawn. Pass an int for reproducible results.

    Attributes
    ----------
    intercept_hidden_ : array of shape (n_components,)
        Biases of the hidden units.
    intercept_visible_ : array of shape (n_features,)
        Biases of the visible units.
    components_ : array of shape (n_components, n_features)
        Weight matrix.
    h_samples_ : array of shape (batch_size, n_components)
        Hidden units of the chains.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, where they are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import BernoulliRBM
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> model = BernoulliRBM(n_components=2)
    >>> model.fit(X)
    BernoulliRBM(n_components=2)
    """

    _parameter_constraints: dict[str, Any] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state

    def transform(self, X: Any) -> Any:
        """Computes the probabilities of the hidden units, P(h=1|v=X).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data to be transformed.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components)
            Latent representations of the data.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=(np.float64, np.float32))
        return self._mean_hiddens(X)

    def _mean_hiddens(self, v: Any) -> Any:
        p = safe_sparse_dot(v, self.components_.T)
        p += self.intercept_hidden_
        return expit(p, out=p)

    def _sample_hiddens(self, v: Any, rng: Any) -> Any:
        p = self._mean_hiddens(v)
        return rng.uniform(size=p.shape) < p

    def _sample_visibles(self, h: Any, rng: Any) -> Any:
        p = np.dot(h, self.components_)
        p += self.intercept_visible_
        expit(p, out=p)
        return rng.uniform(size=p.shape) < p

    def gibbs(self, v: Any) -> Any:
        """Performs one Gibbs sampling step.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_features)
            Values of the visible layer to start from.

        Returns
        -------
        v_new : ndarray of shape (n_samples, n_features)
            Values of the visible layer after one Gibbs step.
        """
        check_is_fitted(self)
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        h = self._sample_hiddens(v, self.random_state_)
        return self._sample_visibles(h, self.random_state_)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BernoulliRBM:
        """Fits the model to the data X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, between 0 and 1.
        y : Ignored
            Present for consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 2 counts as two rows.

        Returns
        -------
        self : BernoulliRBM
            The fitted model.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32))
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        rng = check_random_state(self.random_state)
        n_features, dtype = X.shape[1], X.dtype
        self.components_ = np.asarray(
            rng.normal(0, 0.01, (self.n_components, n_features)), order="F", dtype=dtype
        )
        self._n_features_out = self.n_components
        self.intercept_hidden_ = np.zeros(self.n_components, dtype=dtype)
        self.intercept_visible_ = np.zeros(n_features, dtype=dtype)
        self.h_samples_ = np.zeros((self.batch_size, self.n_components), dtype=dtype)
        face = _Face(self, X, y, {} if weights is None else {"sample_weight": weights})
        if self.n_iter > 0:
            data = _rows(X, weights)
            self._learn(data, {"epochs": self.n_iter, "batch": self.batch_size, "seed": _seed(rng)}, face)
        face.epochs.close(self._arrays())
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BernoulliRBM:
        """Makes one update with all rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, between 0 and 1.
        y : Ignored
            Present for consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row.

        Returns
        -------
        self : BernoulliRBM
            The fitted model.
        """
        first = not hasattr(self, "components_")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        if first:
            self.components_ = np.asarray(
                self.random_state_.normal(0, 0.01, (self.n_components, X.shape[1])), order="F"
            )
            self._n_features_out = self.components_.shape[0]
        if not hasattr(self, "intercept_hidden_"):
            self.intercept_hidden_ = np.zeros(self.n_components)
        if not hasattr(self, "intercept_visible_"):
            self.intercept_visible_ = np.zeros(X.shape[1])
        if not hasattr(self, "h_samples_"):
            self.h_samples_ = np.zeros((self.batch_size, self.n_components))
        data = _rows(X, weights)
        self._learn(data, {"epochs": 1, "batch": data.shape[0], "seed": _seed(self.random_state_)}, None)
        return self

    def _model(self) -> _core.Model:
        weights = np.ascontiguousarray(self.components_.T, dtype=np.float64)
        visible = np.asarray(self.intercept_visible_, dtype=np.float64)
        return _core.Model.rbm(weights, visible, np.asarray(self.intercept_hidden_, dtype=np.float64))

    def _arrays(self) -> dict[str, Any]:
        names = ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_")
        return {name: getattr(self, name) for name in names}

    def _take(self, model: _core.Model) -> dict[str, Any]:
        """The attributes of a model."""
        weights, visible, hidden = model.rbm_arrays()
        dtype = self.components_.dtype
        return {
            "components_": weights.T.astype(dtype, order="F", copy=False),
            "intercept_visible_": visible.astype(dtype, copy=False),
            "intercept_hidden_": hidden.astype(dtype, copy=False),
        }

    def _learn(self, data: _core.Data, asked: dict[str, Any], face: _Face | None) -> None:
        """Learns on from the attributes."""
        chains = np.zeros((len(self.h_samples_), self.components_.shape[1] + self.components_.shape[0]))
        chains[:, self.components_.shape[1] :] = self.h_samples_
        given = {**asked, "learning-rate": float(self.learning_rate), "chains": len(chains)}
        model, chains_after, ended = _core.learn_on(self._model(), json.dumps(given), data, chains, face)
        for name, value in self._take(model).items():
            setattr(self, name, value)
        if chains_after is not None:
            hidden = chains_after[:, self.components_.shape[1] :]
            self.h_samples_ = np.ascontiguousarray(hidden, dtype=self.components_.dtype)
        if ended is not None:
            raise ended

    def _free_energy(self, v: Any) -> Any:
        return -safe_sparse_dot(v, self.intercept_visible_) - np.logaddexp(
            0, safe_sparse_dot(v, self.components_.T) + self.intercept_hidden_
        ).sum(axis=1)

    def score_samples(self, X: Any) -> Any:
        """Computes the pseudo-likelihood of X: each value given all the others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Values of the visible layer, zeros and ones; those between are held against their complement.

        Returns
        -------
        pseudo_likelihood : ndarray of shape (n_samples,)
            Value of the pseudo-likelihood (proxy for likelihood).
        """
        check_is_fitted(self)
        v = validate_data(self, X, accept_sparse="csr", reset=False)
        return self._score(v, self._model())

    def _score(self, v: Any, model: _core.Model) -> Any:
        dense = v.toarray() if hasattr(v, "toarray") else v
        return model.against_complements(np.ascontiguousarray(dense, dtype=np.float64))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Face:
    """Hears of the epochs of a fit: what is printed, and callbacks."""

    def __init__(self, estimator: BernoulliRBM, X: Any, y: Any, metadata: dict[str, Any]) -> None:
        self.estimator, self._X = estimator, X
        self.epochs = Epochs(estimator, estimator.n_iter, X, y, metadata)
        self.hears = bool(estimator.verbose) or self.epochs.are_wanted
        self._begin = time.time()
        self.epochs.begin(estimator._arrays)

    def progress(self, *_: Any) -> None:
        """Nothing is shown."""

    def announce(self, text: str) -> None:
        """Nothing is shown."""

    def note(self, text: str) -> None:
        """Says what a person should know."""
        warnings.warn(text, stacklevel=3)

    def epoch(self, epoch: int, model: _core.Model) -> str | None:
        """An epoch has ended."""
        estimator = self.estimator
        if estimator.verbose:
            n = self._X.shape[0]
            some = self._X[np.linspace(0, n - 1, min(n, _SHOWN)).astype(int)]
            score, end = estimator._score(some, model).mean(), time.time()
            took, self._begin = end - self._begin, end
            name = type(estimator).__name__
            print(f"[{name}] Iteration {epoch}, pseudo-likelihood = {score:.2f}, time = {took:.2f}s")

        def attributes() -> dict[str, Any]:
            return {**estimator._arrays(), **estimator._take(model)}

        ends = self.epochs.end(attributes)
        if not ends and epoch < estimator.n_iter:
            self.epochs.begin(attributes)
        return "a callback asked for it" if ends else None


def _rows(X: Any, weights: Any) -> _core.Data:
    """Rows of values between 0 and 1, in an order of their own."""
    reading = {"binarize": "sample", "full-scale": 1.0}
    try:
        return rows_of(X, reading=reading, sample_weight=weights, canonical=True, means=True)
    except OutOfRangeError:
        warnings.warn(
            "values below 0 count as 0 and values above 1 as 1: scale the data, for example with MinMaxScaler",
            stacklevel=4,
        )
        if hasattr(X, "tocsr"):
            X = X.copy()
            np.clip(X.data, 0, 1, out=X.data)
        else:
            X = np.clip(X, 0, 1)
        return rows_of(X, reading=reading, sample_weight=weights, canonical=True, means=True)


def _seed(rng: Any) -> int:
    return int(rng.randint(np.iinfo(np.int32).max))
