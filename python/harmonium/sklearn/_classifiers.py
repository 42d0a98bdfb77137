"""Classifiers: models that learn labels together with rows, p(y|v) from p(v, y)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets

from .._families import DBM, RBM
from ._machine import Machine

__all__ = ["DBMClassifier", "RBMClassifier"]


class _Classifier(ClassifierMixin, Machine):
    """A model with a layer of labels."""

    _takes_nan = False
    # What the learning rate is for, whatever the units are.
    _optimizer = "sgd"
    _parameter_constraints: dict[str, Any] = {}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learns the distribution of rows together with their classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows: zeros and ones, or real numbers.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 2 counts as two rows.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y = self._validated(X, reset=True, y=y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; the data contains only one class: "
                f"{self.classes_[0]!r}"
            )
        if sample_weight is not None:
            left = np.unique(codes[np.asarray(sample_weight).reshape(-1)[: len(codes)] > 0])
            if len(left) == 1:
                raise ValueError(
                    f"{type(self).__name__} needs rows of at least 2 classes; `sample_weight` leaves only one class"
                )
        labels = (codes.reshape(-1).astype(np.uint32), [str(k) for k in range(len(self.classes_))])
        self._learn(X, labels, sample_weight, y)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Computes the probabilities of the classes of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        X = self._rows(X)
        asked = json.dumps({"method": "auto", "draws": 100, "seed": 0})
        probabilities, _ = self.model_._fitted().classify(asked, self._data(X), None)
        return probabilities

    def predict(self, X: Any) -> Any:
        """Finds the most probable class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any) -> Any:
        """Computes the logarithms of the probabilities of the classes of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class RBMClassifier(_Classifier):
    """A restricted Boltzmann machine that learns classes together with rows.

    Parameters
    ----------
    hidden : int, default=100
        Number of hidden units.
    epochs : int, default=None
        Passes over the data; by default as many as make 3000 updates, at least 10.
    learning_rate : float, default=0.05
        The learning rate.
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
    classes_ : ndarray of shape (n_classes,)
        The classes.
    model_ : harmonium.RBM
        The trained model, of standardised values where they are real.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from harmonium.sklearn import RBMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RBMClassifier(hidden=100, random_state=0).fit(X[:1200] > 7, y[:1200])
    >>> model.score(X[1200:] > 7, y[1200:]) > 0.8
    True
    """

    _model_class = RBM

    def __init__(
        self,
        hidden: int = 100,
        *,
        epochs: int | None = None,
        learning_rate: float | None = 0.05,
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


class DBMClassifier(_Classifier):
    """A deep Boltzmann machine that learns classes together with rows, beside its top hidden layer.

    Parameters
    ----------
    hidden : sequence of int, default=(100, 50)
        Number of units of each hidden layer.
    epochs : int, default=None
        Passes over the data; by default as many as make 3000 updates, at least 10.
    learning_rate : float, default=0.05
        The learning rate.
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
    classes_ : ndarray of shape (n_classes,)
        The classes.
    model_ : harmonium.DBM
        The trained model, of standardised values where they are real.
    n_features_in_ : int
        Number of features seen during ``fit``.
    """

    _model_class = DBM

    def __init__(
        self,
        hidden: Sequence[int] = (100, 50),
        *,
        epochs: int | None = None,
        learning_rate: float | None = 0.05,
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
