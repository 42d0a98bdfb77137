"""The models that can be trained: RBM, BM, DBM, DBN."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from . import _core
from ._faces import Callback
from ._frames import backend_of
from ._inputs import Rows, Seed, labels_of, rows_of, seed_of
from ._models import Model, _n_rows
from ._settings import NAMES, Settings, check_names, given_of, reading_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

__all__ = ["BM", "DBM", "DBN", "RBM"]

T = TypeVar("T", bound="Trainable")


class Trainable(Model):
    """A model that can be trained."""

    #: Its name on the command line.
    _family = ""
    #: The parameters besides the settings.
    _own: tuple[str, ...] = ("hidden",)
    #: The hidden units where nobody asks for others, or for a search.
    _usual: Any = 100
    hidden: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        check_names(settings, type(self).__name__)
        self._settings: dict[str, Any] = dict(settings)

    @classmethod
    def _from_core(cls: type[T], model: _core.Model) -> T:
        about = json.loads(model.about())
        made = super()._from_core(model)
        made._take_up(about)
        return made

    def _take_up(self, about: dict[str, Any]) -> None:
        """Takes up what a model says of itself."""
        hidden = [layer["n_units"] for layer in about["layers"] if layer["role"] == "hidden"]
        self.hidden = hidden if isinstance(self._usual, tuple) else (hidden[0] if hidden else 0)
        config = about["config"] or {}
        known = {key.replace("-", "_"): value for key, value in config.items()}
        self._settings = {name: known[name] for name in NAMES if name in known}
        if config.get("no-center"):
            self._settings["center"] = False
        if isinstance(self._settings.get("binarize"), str):
            self._settings["binarize"] = _number_or_word(self._settings["binarize"])
        if isinstance(self._settings.get("image"), str):
            height, width = self._settings["image"].split(":")[0].split("x")
            self._settings["image"] = (int(height), int(width))
        self.random_state = about["seed"]

    # What scikit-learn asks of an estimator.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters of the constructor, by name.

        Parameters
        ----------
        deep : bool
            Ignored; for compatibility with scikit-learn.
        """
        own = {name: getattr(self, name) for name in self._own}
        settings = {name: self._settings.get(name) for name in NAMES}
        return {**own, **settings, "random_state": self.random_state, "verbose": self.verbose}

    def set_params(self: T, **parameters: Any) -> T:
        """Changes parameters of the constructor.

        Returns
        -------
        self
        """
        for name, value in parameters.items():
            if name in (*self._own, "random_state", "verbose"):
                setattr(self, name, value)
            else:
                check_names([name], type(self).__name__)
                self._settings[name] = value
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="density_estimator",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, allow_nan=True),
        )

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("_settings", {})
        if name in NAMES:
            return settings.get(name)
        raise AttributeError(f"{type(self).__name__} has no attribute `{name}`")

    def _given(self, seed: int) -> dict[str, Any]:
        """The settings that were given."""
        searched = self.hidden is None and self._settings.get("effort") is not None
        hidden = self._usual if self.hidden is None and not searched else self.hidden
        return given_of(self._settings, hidden, seed)

    def fit(
        self: T,
        X: Rows,
        y: ArrayLike | None = None,
        *,
        valid: Rows | tuple[Rows, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        callback: Callback | None = None,
    ) -> T:
        """Learns from rows.

        Ctrl-C ends the training with :class:`KeyboardInterrupt`; the model is then the one that was learned
        so far. A training that diverges raises :class:`harmonium.errors.DivergedError` and leaves the last
        good model.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows: numbers, booleans, a sparse matrix, pictures of shape (n, height, width), a frame of
            pandas, polars or pyarrow, or the name of a file or of a built-in set such as ``"digits"``. NaN is
            missing and is learned around. The columns of a frame with words, or with numbers of several sorts, are
            learned each in its own way.
        y : array of shape (n_rows,), optional
            The class of each row, learned together with it as one more visible layer.
        valid : array, or tuple of rows and classes, optional
            Rows to watch the training with. The result is then the model that was best on them.
        sample_weight : array of shape (n_rows,), optional
            The weight of each row.
        mask : array of bool, optional
            Which cells are observed (true); one row holds for all.
        out : str or path, optional
            A run directory to make, as ``harmonium train --out`` does: events, checkpoints, the model.
        overwrite : bool
            Whether a run that is there is replaced.
        callback : callable, optional
            Called with every event of the training, a dict as in ``events.jsonl``, after each epoch; if it
            returns something true, training ends.

        Returns
        -------
        self
        """
        seed = seed_of(self.random_state)
        reading = reading_of(self._settings)
        labels, classes = None, None
        if y is not None:
            codes, classes = labels_of(y, _n_rows(X))
            labels = (codes, [str(name) for name in classes])
        hashed = out is not None
        data = rows_of(
            X, reading=_fitted(reading, self._settings), labels=labels, sample_weight=sample_weight, mask=mask,
            fingerprint=hashed,
        )
        held_out = None if valid is None else self._validation(valid, data, classes, hashed)
        if classes is None and data.labels is not None:
            classes = np.asarray(data.labels[1])
        self._backend = backend_of(X)
        return self._train(data, held_out, classes, out, overwrite, callback, seed)

    def _train(
        self: T,
        data: _core.Data,
        valid: _core.Data | None,
        classes: NDArray[Any] | None = None,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        callback: Callback | None = None,
        seed: int | None = None,
    ) -> T:
        """Learns from rows that were taken up."""
        given = json.dumps(self._given(seed_of(self.random_state) if seed is None else seed))
        with self._face(callback) as face:
            model, told, ended = _core.train(json.dumps(self._family), given, data, valid, out, overwrite, face)
            self._model, self._report, self._classes = model, json.loads(told), classes
        if ended is not None:
            raise ended
        return self

    def _validation(
        self, valid: Any, data: _core.Data, classes: NDArray[Any] | None, hashed: bool
    ) -> _core.Data:
        """Rows to watch the training with, read as the others were."""
        rows, y = valid if isinstance(valid, tuple) else (valid, None)
        labels = None
        if y is not None and classes is not None:
            codes, found = labels_of(y, _n_rows(rows))
            labels = (codes, [str(name) for name in found])
        read = rows_of(rows, reading=json.loads(data.reading), labels=labels, fingerprint=hashed)
        return read.labelled_as([str(name) for name in classes]) if labels and classes is not None else read

    def __repr__(self) -> str:
        first, *others = self._own
        given = {name: getattr(self, name) for name in others}
        given = {name: value for name, value in {**given, **self._settings}.items() if value is not None}
        if self.random_state != 0:
            given["random_state"] = self.random_state
        own = getattr(self, first)
        words = [] if own is None else [repr(own)]
        words += [f"{name}={value!r}" for name, value in given.items()]
        return f"{type(self).__name__}({', '.join(words)})"


class RBM(Trainable):
    """A restricted Boltzmann machine: one visible and one hidden layer.

    Parameters
    ----------
    hidden : int, optional
        Number of hidden units; by default 100, or with ``effort`` as many as turn out to be best.
    lateral : {"visible", "none"}, optional
        Whether real columns are coupled with each other, from a start as one Gaussian; by default up to 256 of
        them are.
    random_state : int, Generator or RandomState
        The root of all randomness: the same seed gives the same model, on any number of threads, and the one
        that ``harmonium train rbm --seed`` gives.
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it.
    **settings
        What else can be set about the training: see :class:`harmonium.Settings`.

    Examples
    --------
    >>> import harmonium
    >>> rbm = harmonium.RBM(20, epochs=50, learning_rate=0.05).fit("digits")
    >>> rbm.sample(5).shape
    (5, 64)
    >>> print(f"{rbm.score('digits'):.1f}")
    -23.7
    """

    _family = "rbm"
    _own = ("hidden", "lateral")

    def __init__(
        self,
        hidden: int | None = None,
        *,
        lateral: Literal["visible", "none"] | None = None,
        random_state: Seed = 0,
        verbose: bool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.hidden, self.lateral = hidden, lateral
        self.random_state, self.verbose = random_state, verbose

    def _given(self, seed: int) -> dict[str, Any]:
        given = super()._given(seed)
        return given if self.lateral is None else {**given, "lateral": [self.lateral]}

    def _take_up(self, about: dict[str, Any]) -> None:
        super()._take_up(about)
        config = about.get("config") or {}
        self.lateral = next(iter(config.get("lateral") or []), None)

    @classmethod
    def from_arrays(
        cls,
        weights: ArrayLike,
        visible_bias: ArrayLike,
        hidden_bias: ArrayLike,
        *,
        visible: Literal["binary", "spin", "gaussian"] = "binary",
    ) -> RBM:
        """A machine with these parameters, without training.

        Parameters
        ----------
        weights : array of shape (n_visible, n_hidden)
            The weights.
        visible_bias : array of shape (n_visible,)
            The biases of the visible units.
        hidden_bias : array of shape (n_hidden,)
            The biases of the hidden units.
        visible : {"binary", "spin", "gaussian"}
            Kind of the visible units.

        Examples
        --------
        >>> import harmonium, numpy as np
        >>> rbm = harmonium.RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
        >>> print(f"{float(rbm.log_partition()) / np.log(2):.3f}")
        5.000
        """
        matrix = np.asarray(weights, dtype=np.float64)
        n_visible, n_hidden = matrix.shape
        given = json.dumps({"hidden": [n_hidden], "visible": visible})
        blank = _core.Model.blank(json.dumps("rbm"), given, n_visible)
        numbers = {
            "couplings.visible.hidden.weights": np.ascontiguousarray(matrix),
            "layers.visible.bias": np.asarray(visible_bias, dtype=np.float64),
            "layers.hidden.bias": np.asarray(hidden_bias, dtype=np.float64),
        }
        return cls._from_core(blank.with_parameters(numbers))

    @classmethod
    def from_sklearn(cls, rbm: Any) -> RBM:
        """The machine of a fitted :class:`sklearn.neural_network.BernoulliRBM`.

        Parameters
        ----------
        rbm : BernoulliRBM
            It has ``components_``, ``intercept_visible_`` and ``intercept_hidden_``.
        """
        weights = np.asarray(rbm.components_, dtype=np.float64).T
        return cls.from_arrays(weights, rbm.intercept_visible_, rbm.intercept_hidden_)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights, of shape (n_visible, n_hidden)."""
        return self.parameters()["couplings.visible.hidden.weights"]


class BM(Trainable):
    """A general Boltzmann machine, with couplings inside its layers.

    Parameters
    ----------
    hidden : int, optional
        Number of hidden units; 0 is a fully visible machine; by default 20, or with ``effort`` as many as turn out
        to be best.
    lateral : sequence of {"visible", "hidden"}
        Which layers are coupled inside.
    random_state : int, Generator or RandomState
        The root of all randomness.
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it.
    **settings
        What else can be set about the training: see :class:`harmonium.Settings`.

    Examples
    --------
    >>> import harmonium
    >>> ising = harmonium.load("ising:3,0.3")
    >>> spins = ising.sample(500)
    >>> bm = harmonium.BM(0, lateral=["visible"], rule="exact", epochs=20).fit(spins)
    >>> bm.score(spins) > -9 * 0.6931
    True
    """

    _family = "bm"
    _own = ("hidden", "lateral")
    _usual = 20

    def __init__(
        self,
        hidden: int | None = None,
        *,
        lateral: Sequence[Literal["visible", "hidden"]] = ("visible",),
        random_state: Seed = 0,
        verbose: bool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.hidden, self.lateral = hidden, lateral
        self.random_state, self.verbose = random_state, verbose

    def _given(self, seed: int) -> dict[str, Any]:
        lateral = [self.lateral] if isinstance(self.lateral, str) else list(self.lateral)
        return {**super()._given(seed), "lateral": lateral}

    def _take_up(self, about: dict[str, Any]) -> None:
        super()._take_up(about)
        inside = {a for a, b in about["couplings"] if a == b}
        self.lateral = [layer["role"] for layer in about["layers"] if layer["name"] in inside]


class DBM(Trainable):
    """A deep Boltzmann machine: a chain of hidden layers.

    Parameters
    ----------
    hidden : sequence of int, optional
        Number of units of each hidden layer; by default 100 and 50, or with ``effort`` as many as turn out to be
        best.
    random_state : int, Generator or RandomState
        The root of all randomness.
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it.
    **settings
        What else can be set about the training: see :class:`harmonium.Settings`.

    Examples
    --------
    >>> import harmonium
    >>> dbm = harmonium.DBM([16, 8], epochs=2).fit("digits")
    >>> dbm.features("digits", layer="hidden2").shape
    (1797, 8)
    """

    _family = "dbm"
    _usual = (100, 50)

    def __init__(
        self,
        hidden: Sequence[int] | None = None,
        *,
        random_state: Seed = 0,
        verbose: bool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.hidden = hidden
        self.random_state, self.verbose = random_state, verbose


class DBN(Trainable):
    """A deep belief network: directed layers under an RBM, learned one after the other.

    Parameters
    ----------
    hidden : sequence of int, optional
        Number of units of each hidden layer, at least two; by default 100 and 50.
    random_state : int, Generator or RandomState
        The root of all randomness.
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it.
    **settings
        What else can be set about the training: see :class:`harmonium.Settings`.

    Examples
    --------
    >>> import harmonium
    >>> dbn = harmonium.DBN([16, 8], epochs=2).fit("digits")
    >>> dbn.sample(3).shape
    (3, 64)
    """

    _family = "dbn"
    _usual = (100, 50)

    def __init__(
        self,
        hidden: Sequence[int] | None = None,
        *,
        random_state: Seed = 0,
        verbose: bool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.hidden = hidden
        self.random_state, self.verbose = random_state, verbose


def class_of(about: dict[str, Any]) -> type[Model]:
    """The class of models with such a graph."""
    if about["kind"] == "dbn":
        return DBN
    if about["kind"] == "network":
        from ._network import Network

        return Network
    if about["modalities"]:
        from ._multimodal import MultimodalDBM

        return MultimodalDBM
    role = {layer["name"]: layer["role"] for layer in about["layers"] if layer["name"] != "labels"}
    n_visible = sum(r == "visible" for r in role.values())
    # The columns of a table stand in a layer for each kind.
    if n_visible != 1 and not about["is_table"]:
        return Model
    # Real columns of an RBM may be coupled with each other.
    if any(a == b for a, b in about["couplings"]) and (about["config"] or {}).get("model") != "rbm":
        return BM
    return {1: RBM}.get(len(role) - n_visible, DBM)


def _fitted(reading: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """How data is read where only the kind of its units was said: grey values stay what they are."""
    if settings.get("visible") in ("gaussian", "categorical", "spin", "counts"):
        return {"binarize": "none", **reading}
    return reading


def _number_or_word(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
