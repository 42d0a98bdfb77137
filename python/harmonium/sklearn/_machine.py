"""What the estimators share: from arrays of scikit-learn to a model and back."""

from __future__ import annotations

import json
import math
from typing import Any, Callable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .. import _core
from .._families import RBM, Trainable
from .._frames import backend_of, has_words, is_frame
from .._inputs import rows_of
from .._settings import check_names
from ..errors import InvalidError
from ._callbacks import CallbackSupportMixin, Epochs

__all__ = ["Machine"]

#: Updates of a training whose length was not given, and its fewest passes over the data.
_UPDATES, _FEWEST = 3000, 10


class Machine(CallbackSupportMixin, BaseEstimator):
    """An estimator over a model.

    Real numbers are standardised with the mean and the spread that they had in ``fit``; zeros and ones are
    taken as they are. The columns of a frame with words are learned each in its own way.
    """

    #: The class of the model.
    _model_class: Callable[..., Trainable] = RBM
    #: Whether rows with missing values are taken.
    _takes_nan = True
    #: Whether values between 0 and 1 are probabilities of bits.
    _takes_grey = False

    #: Where real numbers lie, and how far they spread.
    mean_: Any
    scale_: Any

    hidden: Any
    epochs: int | None
    learning_rate: float | None
    batch: int
    visible: str
    settings: dict[str, Any] | None
    random_state: Any
    verbose: bool | int

    # Rows in.

    def _validated(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        if self._is_table(X, reset):
            # Columns of words are no arrays: what they hold is looked at where they are learned.
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            if isinstance(y, str):
                return X
            check_consistent_length(X, y)
            return X, column_or_1d(y, warn=True)
        return validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan" if self._takes_nan else True,
        )

    def _is_table(self, X: Any, reset: bool) -> bool:
        """Whether rows are a frame whose columns are learned each in its own way."""
        if not is_frame(X):
            return False
        if not reset:
            return bool(self._kind == "table")
        return bool((self.settings or {}).get("kinds")) or has_words(X)

    def _learn_scale(self, X: Any, weights: Any) -> None:
        """Decides which units fit the columns, and where real numbers lie."""
        self.mean_, self.scale_ = None, None
        self._kind = "table" if is_frame(X) else self._kind_of(X)
        if self._kind != "gaussian":
            return
        dense = _dense(X).astype(np.float64)
        w = np.ones(len(dense)) if weights is None else weights
        seen = ~np.isnan(dense)
        count = np.maximum((seen * w[:, None]).sum(axis=0), np.finfo(float).tiny)
        filled = np.where(seen, dense, 0.0)
        # Rows are added in the order of their values, so that their own order does not matter.
        self.mean_ = _stable_sum(filled * w[:, None]) / count
        away = np.where(seen, dense - self.mean_, 0.0) ** 2
        spread = np.sqrt(_stable_sum(away * w[:, None]) / count)
        self.scale_ = np.where(spread > 1e-12 * np.maximum(np.abs(self.mean_), 1e-300), spread, 1.0)

    def _kind_of(self, X: Any) -> str:
        if self.visible != "auto":
            return str(self.visible)
        values = X.data if hasattr(X, "tocsr") else X
        with np.errstate(invalid="ignore"):
            if bool(((values == 0) | (values == 1) | np.isnan(values)).all()):
                return "binary"
            if self._takes_grey and bool((((values >= 0) & (values <= 1)) | np.isnan(values)).all()):
                return "grey"
        return "gaussian"

    def _reading(self) -> dict[str, Any]:
        if self._kind == "grey":
            return {"binarize": "sample", "full-scale": 1.0}
        return {"binarize": "none"}

    def _scaled(self, X: Any) -> Any:
        """Rows as the model takes them."""
        if self._kind == "gaussian":
            return (_dense(X).astype(np.float64) - self.mean_) / self.scale_
        if self._kind == "grey":
            return np.clip(_dense(X), 0, 1)
        return X

    def _data(self, X: Any, **more: Any) -> _core.Data:
        if self._kind == "table":
            return rows_of(X, model=self.model_._fitted(), reading=self._said(), **more)
        return rows_of(self._scaled(X), reading=self._reading(), **more)

    def _said(self) -> dict[str, Any]:
        """What was said of the columns of a table."""
        settings = self.settings or {}
        return {name: settings[name] for name in ("kinds", "unknown") if name in settings}

    def _unscaled(self, values: Any) -> Any:
        """Values of the model as the columns hold them."""
        if self._kind == "gaussian":
            return values * self.scale_ + self.mean_
        return values

    def _log_slope(self, seen: Any = None) -> Any:
        """What a density in the units of the columns has more than one of the scaled values."""
        if self._kind != "gaussian":
            return 0.0
        slopes = -np.log(self.scale_)
        return slopes.sum() if seen is None else seen @ slopes

    # Learning.

    def _learn(self, X: Any, labels: Any = None, sample_weight: Any = None, y: Any = None) -> None:
        """Trains the model on validated rows."""
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weights is not None and not (weights > 0).any():
            raise InvalidError("all sample weights are zero", "give some rows a positive weight")
        self._learn_scale(X, weights)
        beside = {"labels": labels, "sample_weight": weights, "canonical": True}
        table = self._kind == "table"
        data = rows_of(X, reading=self._said(), **beside) if table else self._data(X, **beside)
        settings = dict(self.settings or {})
        check_names(settings, type(self).__name__)
        steps = math.ceil(data.shape[0] / self.batch)
        epochs = self.epochs or max(_FEWEST, math.ceil(_UPDATES / steps))
        # The learning rate is one of plain steps, whatever the columns hold.
        plain = {"optimizer": "sgd"} if self._kind == "gaussian" and self.learning_rate is not None else {}
        given = {
            **plain,
            "watch": "none",
            "epochs": epochs,
            "learning_rate": self.learning_rate,
            "batch": self.batch,
            "visible": {"grey": "binary", "table": None}.get(self._kind, self._kind),
            **settings,
        }
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        model = self._model_class(self.hidden, random_state=seed, verbose=bool(self.verbose), **given)
        told = {} if sample_weight is None else {"sample_weight": weights}
        heard = Epochs(self, epochs, X, y, told)

        def callback(event: dict[str, Any]) -> bool:
            if event.get("event") != "epoch":
                return False
            ends = heard.end()
            if not ends and event["epoch"] < epochs:
                heard.begin()
            return ends

        heard.begin()
        model._train(data, None, callback=callback if heard.are_wanted else None)
        model.random_state, model.verbose, model._backend = seed, False, backend_of(X)
        self.model_ = model
        self.n_iter_ = int(model.about["epoch"])
        names = [name for name in vars(self) if name.endswith("_") or name == "_kind"]
        heard.close({name: getattr(self, name) for name in names})

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return self._validated(X, reset=False)

    # What is asked of the model.

    def _scores(self, X: Any, method: str) -> Any:
        """A score of each row, in the units of the columns."""
        asked = {
            "method": method, "betas": None, "chains": None, "width": None, "draws": 100, "stochastic": False,
            "seed": 0,
        }
        rows, _, _ = self.model_._fitted().score(json.dumps(asked), self._data(X), None)
        if method == "free-energy":
            rows = -rows
        if self._kind == "gaussian" and self._takes_nan:
            return rows + self._log_slope((~np.isnan(_dense(X))).astype(float))
        return rows + self._log_slope()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan
        return tags


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def _stable_sum(values: Any) -> Any:
    return np.sort(values, axis=0).sum(axis=0)
