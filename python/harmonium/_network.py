"""Feed-forward nets: of a model that goes on learning with its labels, or of random weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import numpy as np

from . import _core
from ._faces import Callback, Face
from ._inputs import Rows, Seed, labels_of, rows_of, seed_of
from ._models import Model, _n_rows
from ._settings import Schedule, check_names, given_of
from .errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

__all__ = ["Network", "NetworkSettings"]

N = TypeVar("N", bound="Network")

Units = Literal["relu", "logistic", "linear"]
Target = Literal["classes", "tags", "values", "input"]


class NetworkSettings(TypedDict, total=False):
    """What can be set about the training of a net. What is left out has the default of the library.

    The names are the flags of ``harmonium finetune`` with underscores, and mean the same.
    """

    #: Passes over the data (30).
    epochs: int | None
    #: Rows of one step (100).
    batch: int | None
    #: How gradients become updates (``sgd``).
    optimizer: Literal["sgd", "adam"] | None
    #: The learning rate before decay (0.05; 0.5 for logistic units, 0.001 with Adam).
    learning_rate: float | None
    #: What the learning rate is multiplied with over the run (``"1:0.01"``).
    decay: Schedule | None
    #: Momentum (``"0.5@0,0.9@5"``).
    momentum: Schedule | None
    #: What the rate of each layer is multiplied with, from the data upwards (1).
    layer_rates: Sequence[float] | None
    #: L2 penalty on weights (0).
    l2: float | None
    #: Largest norm of the weights into one unit (none).
    max_norm: float | None
    #: Share of hidden units that is dropped in each step (0).
    dropout: float | None
    #: Share of the input that is dropped in each step (0).
    input_dropout: float | None
    #: How much the rows of each class count: ``even``, ``balanced`` or factors (``even``).
    class_weights: str | None
    #: Whether the input and the hidden units are centered (True).
    center: bool | None
    #: Stop once the validation score has not improved for so many epochs (never).
    patience: int | None
    #: Share of the rows that is set apart for validation (0.1 with ``patience``).
    valid_share: float | None


#: The names of all settings.
NAMES = tuple(NetworkSettings.__annotations__)


class Network(Model):
    """A feed-forward net: made by :meth:`harmonium.Model.finetune`, or trained from random weights.

    Parameters
    ----------
    hidden : sequence of int
        Number of units of each hidden layer.
    units : {"relu", "logistic", "linear"}
        What hidden units make of their input.
    random_state : int, Generator or RandomState
        The root of all randomness.
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it.
    **settings
        What else can be set about the training: see :class:`harmonium.NetworkSettings`.

    Examples
    --------
    >>> import harmonium
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> net = harmonium.Network([50], epochs=60).fit(X[:1200], y[:1200])
    >>> net.score(X[1200:], y[1200:]) > 0.9
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (800, 800),
        *,
        units: Units = "relu",
        random_state: Seed = 0,
        verbose: bool | None = None,
        **settings: Unpack[NetworkSettings],
    ) -> None:
        super().__init__()
        check_names(settings, type(self).__name__, NAMES)
        self.hidden, self.units = hidden, units
        self._settings: dict[str, Any] = dict(settings)
        self.random_state, self.verbose = random_state, verbose

    @classmethod
    def _from_core(cls: type[N], model: _core.Model) -> N:
        made = super()._from_core(model)
        layers = made.about["layers"]
        made.hidden = [layer["n_units"] for layer in layers if layer["role"] == "hidden"]
        return made

    def fit(
        self: N,
        X: Rows,
        y: ArrayLike | None = None,
        *,
        target: Target | None = None,
        valid: tuple[Rows, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> N:
        """Learns what is to be said of rows; a net that has been trained goes on from where it is with :meth:`finetune`.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows, as :meth:`harmonium.RBM.fit` takes them.
        y : array of shape (n_rows,) or (n_rows, n_outputs), optional
            The class of each row; or several zeros and ones, which are tags, or several numbers, which are values.
            Without it the net learns to give its input back.
        target : {"classes", "tags", "values", "input"}, optional
            What is learned, where ``y`` does not say it.
        valid : tuple of rows and classes, optional
            Rows to validate with. The result is then the net that was best on them.
        sample_weight : array of shape (n_rows,), optional
            The weight of each row.
        callback : callable, optional
            Called with every event of the training; if it returns something true, training ends.

        Returns
        -------
        self
        """
        shape = {"hidden": [int(n) for n in self.hidden], "units": self.units}
        asked = {**_given(self._settings, self.random_state), **shape}
        return self._learn(None, asked, X, y, target, valid, sample_weight, callback)

    def _learn(
        self: N,
        start: _core.Model | None,
        asked: dict[str, Any],
        X: Rows,
        y: ArrayLike | None,
        target: Target | None,
        valid: tuple[Rows, ArrayLike] | None,
        sample_weight: ArrayLike | None,
        callback: Callback | None,
    ) -> N:
        labels, classes, targets = _asked(X, y, target)
        target = target or ("classes" if labels else "input" if targets is None else _kind(targets))
        data = rows_of(X, model=start, labels=labels, sample_weight=sample_weight)
        held_out = None
        if valid is not None:
            if classes is None:
                raise InvalidError("only classes can be validated with rows of their own", "leave `valid` out")
            codes, found = labels_of(valid[1], _n_rows(valid[0]))
            named = (codes, [str(name) for name in found])
            held_out = rows_of(valid[0], model=start, reading=json.loads(data.reading), labels=named)
            held_out = held_out.labelled_as([str(name) for name in classes])
        of_targets = None if targets is None else rows_of(targets, reading={"binarize": "none"})
        given = json.dumps({**asked, "target": target})
        with Face(self.verbose, callback) as face:
            model, told, ended = _core.finetune(start, given, data, of_targets, held_out, face)
            self._model, self._report, self._classes = model, json.loads(told), classes
        if ended is not None:
            raise ended
        return self

    def predict_proba(self, X: Rows) -> NDArray[np.float64]:
        """The probabilities of the classes of each row, in the order of ``classes``."""
        return self.classify(X).probabilities

    def predict(self, X: Rows) -> NDArray[Any]:
        """The most probable class of each row; of a net of tags or values what it says of them."""
        if self._classes is None:
            return self.answer(X)
        return np.asarray(self.classify(X).predicted)

    def answer(self, X: Rows) -> NDArray[np.float64]:
        """What comes out of the net for each row: probabilities of classes or tags, values, or the input."""
        data = self._rows(X)
        with self._face() as face:
            return _core.answer(self._fitted(), data, face)

    def score(self, X: Rows, y: ArrayLike | None = None) -> float:
        """The share of rows whose class is told rightly."""
        if y is None or self._classes is None:
            raise InvalidError("the score of a net is that of classes", "give the class of each row as `y`")
        return float((self.predict(X) == np.asarray(y)).mean())

    # To and from PyTorch.

    def state_dict(self) -> dict[str, NDArray[np.float32]]:
        """The weights as those of a ``torch.nn.Sequential`` of linear layers with activations between them.

        Returns
        -------
        dict of arrays
            ``0.weight`` of shape (n_units, n_inputs), ``0.bias``, ``2.weight``, …; made tensors by
            ``torch.from_numpy``.

        Examples
        --------
        >>> import harmonium, numpy as np
        >>> net = harmonium.Network([3], epochs=1).fit(np.eye(4), [0, 1, 0, 1])
        >>> {name: array.shape for name, array in net.state_dict().items()}
        {'0.weight': (3, 4), '0.bias': (3,), '2.weight': (2, 3), '2.bias': (2,)}
        """
        if self.about["is_deep_input"]:
            raise InvalidError(
                "a net of a deep machine takes what the machine infers beside the data",
                "a `Sequential` cannot do that: export it by `harmonium export`",
            )
        parameters, state = self.parameters(), {}
        for place, name in enumerate(self._dense()):
            state[f"{2 * place}.weight"] = np.ascontiguousarray(parameters[f"{name}.weights"].T, dtype=np.float32)
            state[f"{2 * place}.bias"] = parameters[f"{name}.bias"].astype(np.float32)
        return state

    def _dense(self) -> list[str]:
        """The names of the layers in the file, from the data upwards."""
        layers = [layer["name"] for layer in self.about["layers"] if layer["role"] in ("hidden", "output")]
        return [f"network.{name}" for name in layers]

    @classmethod
    def from_state_dict(
        cls,
        state: Mapping[str, Any],
        *,
        units: Units = "relu",
        visible: Literal["binary", "gaussian"] = "gaussian",
        classes: Sequence[Any] | None = None,
    ) -> Network:
        """The net of a ``torch.nn.Sequential`` of linear layers that tells classes.

        Parameters
        ----------
        state : dict
            Weights and biases by name, as ``state_dict()`` of PyTorch gives them.
        units : {"relu", "logistic", "linear"}
            The activations between the layers.
        visible : {"binary", "gaussian"}
            What the data holds: zeros and ones, or numbers.
        classes : sequence, optional
            What the classes are called; by default they are numbered from 0.
        """
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in state.items()}
        stems = [name.removesuffix("weight") for name in arrays if name.endswith("weight")]
        weights = [arrays[f"{stem}weight"] for stem in stems]
        if not weights or any(w.ndim != 2 for w in weights):
            raise InvalidError("the state dict is not one of linear layers", "a `Sequential` of `Linear` is needed")
        n_classes, n_inputs = len(weights[-1]), weights[0].shape[1]
        # Rows that say nothing but which units and classes there are.
        rows = np.zeros((max(n_classes, 2), n_inputs))
        rows[0, :] = 1.0 if visible == "binary" else 0.5
        named = np.arange(len(rows)) % n_classes
        net = cls([len(w) for w in weights[:-1]], units=units, epochs=0)
        net.fit(rows, named)
        numbers: dict[str, Any] = {}
        for name, stem, matrix in zip(net._dense(), stems, weights):
            numbers[f"{name}.weights"] = np.ascontiguousarray(matrix.T)
            numbers[f"{name}.bias"] = arrays.get(f"{stem}bias", np.zeros(len(matrix)))
        made = net.with_parameters(numbers)
        made._classes = np.arange(n_classes) if classes is None else np.asarray(classes)
        return made

    def __repr__(self) -> str:
        given = {name: value for name, value in self._settings.items() if value is not None}
        parts = [repr(list(self.hidden)), *(f"{k}={v!r}" for k, v in given.items())]
        return f"{type(self).__name__}({', '.join(parts)})"


def _asked(X: Rows, y: Any, target: Target | None) -> tuple[Any, Any, Any]:
    """Labels and their classes, or targets."""
    if y is None:
        return None, None, None
    array = np.asarray(y)
    if target in ("tags", "values") or (array.ndim == 2 and array.shape[1] > 1):
        return None, None, array.reshape(len(array), -1)
    codes, classes = labels_of(array, _n_rows(X))
    return (codes, [str(name) for name in classes]), classes, None


def _kind(targets: Any) -> Target:
    return "tags" if bool(((targets == 0) | (targets == 1)).all()) else "values"


def _given(settings: dict[str, Any], random_state: Seed) -> dict[str, Any]:
    given = given_of(settings, None, seed_of(random_state))
    if given.pop("no-center", False):
        given["center"] = False
    return given


def finetune(
    model: Model,
    X: Rows,
    y: ArrayLike | None,
    hidden: Sequence[int] | None,
    units: Units,
    target: Target | None,
    valid: tuple[Rows, ArrayLike] | None,
    sample_weight: ArrayLike | None,
    callback: Callback | None,
    random_state: Seed,
    settings: dict[str, Any],
) -> Network:
    """The net of a model, trained."""
    check_names(settings, "finetune", NAMES)
    net = Network([], units=units, random_state=random_state, verbose=model.verbose, **settings)
    asked = _given(settings, random_state)
    if hidden is not None:
        asked["hidden"] = [int(n) for n in hidden]
    asked["units"] = units
    net._learn(model._fitted(), asked, X, y, target, valid, sample_weight, callback)
    net.hidden = [layer["n_units"] for layer in net.about["layers"] if layer["role"] == "hidden"]
    return net
