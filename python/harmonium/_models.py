"""Models: what can be asked of any of them, trained or loaded."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from . import _core
from ._faces import Callback, Face
from ._frames import make
from ._given import FillMethod, Given, SampleMethod
from ._inference import Inferring
from ._inputs import Rows, Seed, labels_of, mask_of, rows_of, seed_of
from ._results import Classes, Drawn, LogLikelihood, LogPartition, warn
from .errors import InvalidError, NotFittedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from ._network import Network, NetworkSettings

__all__ = ["Given", "Model", "load"]

M = TypeVar("M", bound="Model")

ScoreMethod = Literal["auto", "exact", "ais", "bound", "importance", "pseudo", "free-energy"]
LogPartitionMethod = Literal["auto", "exact", "ais", "sandwich", "bar"]
ClassMethod = Literal["auto", "exact", "mean-field", "ais", "recognition"]


class Model(Inferring):
    """A model of any kind: a Boltzmann machine, or a deep belief network.

    Made by :func:`load`, or by training a :class:`harmonium.RBM`, :class:`harmonium.BM`,
    :class:`harmonium.DBM` or :class:`harmonium.DBN`.
    """

    #: The parameters and where they come from; nothing before training.
    _model: _core.Model | None
    #: What is told of the training.
    _report: dict[str, Any]
    #: The classes of the labels, as they were given.
    _classes: NDArray[Any] | None
    #: Whether progress is shown.
    verbose: bool | None
    #: The root of all randomness.
    random_state: Seed
    #: How often samples were drawn without a seed of their own.
    _draws: int

    def __init__(self) -> None:
        self._model, self._report, self._classes = None, {}, None
        self.verbose, self.random_state, self._draws = None, 0, 0
        self._backend: str | None = None

    # Where it comes from, and where it goes.

    @classmethod
    def _from_core(cls: type[M], model: _core.Model) -> M:
        made = cls()
        made._model = model
        names = json.loads(model.about())["classes"]
        made._classes = _as_given(names) if names else None
        return made

    @classmethod
    def load(cls: type[M], path: str | os.PathLike[str]) -> M:
        """Reads a model file, or the model of a run directory.

        Parameters
        ----------
        path : str or path
            A ``.safetensors`` file or a run directory, of the command line or of :meth:`save`; or the name
            of a built-in machine such as ``ising:16,0.4``.

        Returns
        -------
        Model
            A model of this class.
        """
        found = load(path)
        if not isinstance(found, cls):
            raise InvalidError(
                f"`{os.fspath(path)}` holds a {type(found).__name__}, not a {cls.__name__}",
                "`harmonium.load` takes models of every kind",
            )
        return found

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the model file that the command line reads, too.

        Parameters
        ----------
        path : str or path
            The file; its name usually ends in ``.safetensors``.
        overwrite : bool
            Whether a file that is there is replaced.
        """
        self._fitted().write(path, overwrite)

    def to_bytes(self) -> bytes:
        """The bytes of the model file; equal models have equal bytes."""
        return self._fitted().to_bytes()

    @classmethod
    def from_bytes(cls: type[M], bytes: bytes) -> M:
        """Reads the bytes of a model file."""
        found = _of_family(_core.Model.from_bytes(bytes))
        if not isinstance(found, cls):
            raise InvalidError(
                f"the bytes hold a {type(found).__name__}, not a {cls.__name__}",
                "`harmonium.Model.from_bytes` takes models of every kind",
            )
        return found

    def parameters(self) -> dict[str, NDArray[np.float64]]:
        """All parameters by name, as in the model file.

        Returns
        -------
        dict of arrays
            ``layers.visible.bias``, ``couplings.visible.hidden.weights``, ….
        """
        return self._fitted().parameters()

    def with_parameters(self: M, parameters: dict[str, ArrayLike]) -> M:
        """A copy with other numbers for some of its parameters."""
        numbers = {name: np.asarray(values, dtype=np.float64) for name, values in parameters.items()}
        made = self._copied()
        made._model = self._fitted().with_parameters(numbers)
        return made

    def _copied(self: M) -> M:
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._model is not None:
            state["_model"] = self._model.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        bytes = state.get("_model")
        self._model = None if bytes is None else _core.Model.from_bytes(bytes)

    def _fitted(self) -> _core.Model:
        if self._model is None:
            raise NotFittedError(f"this {type(self).__name__} has not been trained yet", "call `fit` first")
        return self._model

    @property
    def is_fitted(self) -> bool:
        """Whether there is something to ask."""
        return self._model is not None

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    @property
    def about(self) -> dict[str, Any]:
        """What is in the model: layers, couplings, settings, where it comes from."""
        about: dict[str, Any] = json.loads(self._fitted().about())
        return about

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes of the labels, if labels were learned."""
        return self._classes

    @property
    def columns(self) -> dict[str, dict[str, Any]] | None:
        """What each column of a table was taken for, its words and why; nothing where rows were an array."""
        found = _core.columns(self._fitted())
        if found is None:
            return None
        return {name: {"kind": kind, "words": words, "why": why} for name, kind, words, why in found}

    # What happened in training.

    @property
    def stop(self) -> str | None:
        """How training ended: ``finished``, ``stopped``, ``interrupted`` or ``diverged``."""
        return self._report.get("stop")

    @property
    def events(self) -> list[dict[str, Any]]:
        """Everything that happened in training, as in ``events.jsonl``."""
        return list(self._report.get("events", []))

    @property
    def trials(self) -> list[dict[str, Any]]:
        """What a search for settings tried, in order, as in ``trials.jsonl``; empty without one."""
        return list(self._report.get("trials", []))

    @property
    def history(self) -> dict[str, NDArray[np.float64]]:
        """What was measured, by name: a number for each epoch, NaN where there is none.

        >>> import harmonium, numpy as np
        >>> rbm = harmonium.RBM(4, epochs=3).fit(np.eye(6))
        >>> rbm.history["epoch"]
        array([1., 2., 3.])
        """
        epochs = [e for e in self.events if e.get("event") == "epoch"]
        number = (int, float)
        names = dict.fromkeys(k for e in epochs for k, v in e.items() if isinstance(v, number))
        return {name: np.array([_number(e.get(name)) for e in epochs]) for name in names}

    # What can be asked.

    def _rows(self, X: Rows, y: ArrayLike | None = None, **more: Any) -> _core.Data:
        """Rows for this model: what is not said of their reading is as its own data was read."""
        model = self._fitted()
        data = rows_of(X, model=model, labels=self._labels(X, y), **more)
        return data

    def _labels(self, X: Rows, y: ArrayLike | None) -> tuple[NDArray[np.uint32], list[str]] | None:
        if y is None:
            return None
        if self._classes is None:
            raise InvalidError("the model has learned no labels", "leave `y` out, or train it with labels")
        labels, classes = labels_of(y, _n_rows(X))
        known = {str(name): place for place, name in enumerate(self._classes)}
        unknown = [str(name) for name in classes if str(name) not in known]
        if unknown:
            raise InvalidError(
                f"the model has no class `{unknown[0]}`", f"its classes are {', '.join(known)}"
            )
        places = np.array([known[str(name)] for name in classes], dtype=np.uint32)
        return places[labels], list(known)

    def _face(self, callback: Callback | None = None) -> Face:
        return Face(self.verbose, callback)

    def _seed_of_draw(self, random_state: Seed) -> int:
        """A seed of its own for every draw, the same in every run of a program."""
        if random_state is not None:
            return seed_of(random_state)
        own = self.random_state
        if isinstance(own, (np.random.Generator, np.random.RandomState)):
            return seed_of(own)
        self._draws += 1
        sequence = np.random.SeedSequence([seed_of(own), self._draws])
        return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))

    def sample(
        self,
        n: int = 100,
        *,
        method: SampleMethod = "auto",
        sweeps: int | None = None,
        means: bool = False,
        label: Any = None,
        random_state: Seed = None,
    ) -> Any:
        """Draws samples.

        Exactly where that is affordable, else by chains that have mixed, else by parallel tempering. A
        :class:`harmonium.errors.MixingWarning` says where the samples cannot be trusted.

        Parameters
        ----------
        n : int
            Number of samples.
        method : {"auto", "exact", "gibbs", "tempered"}
            How they are found; ``gibbs`` is plain chains.
        sweeps : int, optional
            Sweeps of plain chains before each sample, or rounds of tempering; by default as many as it takes.
        means : bool
            Whether the means of the visible units are returned instead of drawn values: smoother pictures.
        label : optional
            The class of the samples, for a model that learned labels.
        random_state : int, Generator or RandomState, optional
            The seed; by default each call draws other samples, the same ones in every run of a program.

        Returns
        -------
        ndarray of shape (n, n_columns)
            The visible units, a row for each sample; of a model of a table a frame of its columns.
        """
        drawn = self.draw(
            n, method=method, sweeps=sweeps, means=means, label=label, random_state=random_state
        )
        return drawn.values

    def draw(
        self,
        n: int = 100,
        *,
        method: SampleMethod = "auto",
        sweeps: int | None = None,
        means: bool = False,
        label: Any = None,
        random_state: Seed = None,
    ) -> Drawn:
        """The same as :meth:`sample`, with the verdict on the samples.

        Returns
        -------
        Drawn
            The samples, how they were found, and whether they can be trusted.
        """
        return self._draw(n, method, sweeps, means, label, random_state, None)

    def _draw(
        self,
        n: int,
        method: str,
        sweeps: int | None,
        means: bool,
        label: Any,
        random_state: Seed,
        given: _core.Data | None,
    ) -> Drawn:
        asked = {
            "n": n,
            "method": method,
            "sweeps": sweeps,
            "seed": self._seed_of_draw(random_state),
            "means": means,
            "class": None if label is None else str(label),
        }
        with self._face() as face:
            values, told, warning = self._fitted().sample(json.dumps(asked), given, None, face)
        warn(warning)
        if means:
            return Drawn._of(self._fitted().in_units(values), told)
        decoded = _core.decoded(self._fitted(), values)
        return Drawn._of(values if decoded is None else make(decoded, self._backend), told)

    def given(
        self,
        X: Rows,
        *,
        mask: ArrayLike | None = None,
        hide: str | None = None,
        y: ArrayLike | None = None,
    ) -> Given:
        """Holds what is observed, while the rest is sampled or completed.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows; NaN is missing.
        mask : array of bool, optional
            Which cells are observed (true); one row holds for all.
        hide : str, optional
            The part of every picture that is not observed: ``"lower-half"``, ``"upper-half"``, ``"left-half"``,
            ``"right-half"`` or ``"rectangle:TOP,LEFT,HEIGHT,WIDTH"``.
        y : array of shape (n_rows,), optional
            The class of each row, for a model that learned labels.

        Returns
        -------
        Given
            What can then be sampled or completed.

        Examples
        --------
        >>> import harmonium, numpy as np
        >>> X = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
        >>> rbm = harmonium.RBM(2, epochs=200, learning_rate=0.1).fit(X)
        >>> half = rbm.given([[1, 1, np.nan, np.nan]]).sample(5)
        >>> half.shape
        (5, 4)
        """
        seen = self._seen(X, hide) if hide is not None else mask
        return Given(self, self._rows(X, y, mask=seen), X, mask_of(seen))

    def _seen(self, X: Rows, hide: str) -> NDArray[np.bool_]:
        """What is left to be seen of pictures of which a part is hidden."""
        data = self._rows(X)
        image = data.image or self._fitted().image(data.shape[1])
        if image is None:
            raise InvalidError(
                f"rows of {data.shape[1]} values are not known to be pictures", "say their shape with `image`"
            )
        return _core.observed_part(hide, *image)

    def conditional_log_likelihood(
        self,
        X: Rows,
        *,
        mask: ArrayLike | None = None,
        hide: str | None = None,
        random_state: Seed = 0,
    ) -> LogLikelihood:
        """How probable the cells of rows that are not observed are, given those that are.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows, with the values that are asked about; NaN is summed out.
        mask : array of bool, optional
            Which cells are observed (true); one row holds for all.
        hide : str, optional
            The part of every picture that is asked about; see :meth:`given`.
        random_state : int, Generator or RandomState
            The seed.

        Returns
        -------
        LogLikelihood
            The mean over the rows with its interval, beside what each cell reaches on its own; ``details`` has both for each
            cell.
        """
        seen = self._seen(X, hide) if hide is not None else mask
        if seen is None:
            raise InvalidError("nothing is asked about", "say with `mask` or `hide` which cells are not observed")
        return self._conditional(self._rows(X), self._rows(X, mask=seen), random_state)

    def _conditional(self, data: _core.Data, known: _core.Data, random_state: Seed) -> LogLikelihood:
        with self._face() as face:
            found = LogLikelihood._of(
                *_core.score_given(self._fitted(), data, known, seed_of(random_state), face)
            )
        if found.bracket == "unsettled":
            warn("the interval of the conditional log-likelihood has not settled")
        return found

    def complete(
        self,
        X: Rows,
        *,
        mask: ArrayLike | None = None,
        hide: str | None = None,
        y: ArrayLike | None = None,
        method: FillMethod = "auto",
        sweeps: int | None = None,
        random_state: Seed = 0,
    ) -> Any:
        """Fills missing cells with their means given the rest of their row.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows; NaN is missing.
        mask : array of bool, optional
            Which cells are observed (true); one row holds for all.
        hide : str, optional
            The part of every picture that is imagined anew; see :meth:`given`.
        y : array of shape (n_rows,), optional
            The class of each row, for a model that learned labels.
        method : {"auto", "exact", "gibbs", "mean-field"}
            How the means are found; by default exactly where that is affordable. ``mean-field`` is fast, and its error
            is not known.
        sweeps : int, optional
            Sweeps of Gibbs sampling to average over; by default as many as an error of 0.01 takes.
        random_state : int, Generator or RandomState
            The seed.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Observed values as they were, missing ones at their means; of a frame the same frame, with the most
            probable words.
        """
        return self.given(X, mask=mask, hide=hide, y=y).fill(method=method, sweeps=sweeps, random_state=random_state).values

    def score(self, X: Rows, y: ArrayLike | None = None) -> float:
        """The mean log-likelihood of rows, in nats.

        Exact where that is affordable, else by annealing; :meth:`log_likelihood` has its interval.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows; missing cells (NaN) are summed out.
        y : array of shape (n_rows,), optional
            The class of each row; ignored by a model that learned no labels, summed out if left out.

        Returns
        -------
        float
            The mean over the rows.
        """
        return self.log_likelihood(X, y if self._classes is not None else None).value

    def score_samples(self, X: Rows, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The log-likelihood of each row, in nats."""
        return self.log_likelihood(X, y).rows

    def log_likelihood(
        self,
        X: Rows,
        y: ArrayLike | None = None,
        *,
        method: ScoreMethod = "auto",
        betas: int | None = None,
        chains: int | None = None,
        width: float | None = None,
        draws: int = 100,
        random_state: Seed = 0,
    ) -> LogLikelihood:
        """The log-likelihood of rows with its interval, beside what independent columns reach.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows; missing cells (NaN) are summed out.
        y : array of shape (n_rows,), optional
            The class of each row, for a model that learned labels; summed out if left out.
        method : {"auto", "exact", "ais", "bound", "importance", "pseudo", "free-energy"}
            How it is found. ``pseudo`` and ``free-energy`` are scores of their own, not likelihoods.
        betas, chains : int, optional
            Temperatures and chains of the annealing.
        width : float, optional
            Double the work until the interval is this narrow.
        draws : int
            Draws of the recognition distribution for each row of a DBN.
        random_state : int, Generator or RandomState
            The seed.

        Returns
        -------
        LogLikelihood
            The mean, its interval, and the score of each row.
        """
        asked = {
            "method": method,
            "betas": betas,
            "chains": chains,
            "width": width,
            "draws": draws,
            "stochastic": False,
            "seed": seed_of(random_state),
        }
        data = self._rows(X, y)
        with self._face() as face:
            found = LogLikelihood._of(*self._fitted().score(json.dumps(asked), data, face))
        if found.bracket == "unsettled":
            warn(f"the interval is unsettled, and may miss: {_doubts(found.details)}")
        return found

    def p_values(self, X: Rows, normal: Rows) -> NDArray[np.float64]:
        """How unusual rows are: the p-value of each beside rows that are normal and were not trained on.

        A row that is normal as well has a p-value of at most ``a`` with a probability of at most ``a``, whatever the model has
        learned.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows.
        normal : array of shape (n_normal, n_columns)
            Normal rows that the model was not trained on: the smallest p-value is one over one more than their number.

        Returns
        -------
        array of shape (n_rows,)
            The share of normal rows, with the row itself, that are as improbable.
        """
        data, beside = self._rows(X, None), self._rows(normal, None)
        with self._face() as face:
            _, found, _ = self._fitted().anomalies(data, beside, face)
        return found

    def log_partition(
        self,
        *,
        method: LogPartitionMethod = "auto",
        betas: int | None = None,
        chains: int | None = None,
        width: float | None = None,
        random_state: Seed = 0,
    ) -> LogPartition:
        """The logarithm of the partition function, with its interval; of a DBN, that of its top RBM.

        Parameters
        ----------
        method : {"auto", "exact", "ais", "sandwich", "bar"}
            How it is found; by default exactly where that is affordable, else from both sides.
        betas, chains : int, optional
            Temperatures and chains of the annealing.
        width : float, optional
            Double the work until the interval is this narrow.
        random_state : int, Generator or RandomState
            The seed.

        Returns
        -------
        LogPartition
            The estimate and its interval.

        Examples
        --------
        >>> import harmonium
        >>> harmonium.load("ising:4,0.4").log_partition()
        LogPartition(14.5611, exact, method='exact')
        """
        asked = {
            "method": None if method == "auto" else method,
            "betas": betas,
            "chains": chains,
            "width": width,
            "seed": seed_of(random_state),
        }
        with self._face() as face:
            found = LogPartition._of(self._fitted().log_partition(json.dumps(asked), face))
        if found.bracket == "unsettled":
            warn(f"ln Z is unsettled, and its interval may miss: {_doubts(found.details)}")
        return found

    def features(self, X: Rows, *, layer: str | None = None) -> NDArray[np.float64]:
        """The means of the hidden units for each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows.
        layer : str, optional
            The hidden layer; by default all of them, side by side.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Probabilities of the hidden units.
        """
        data = self._rows(X)
        with self._face() as face:
            values, unconverged = self._fitted().features(data, layer, face)
        if unconverged:
            warn(f"mean field had not converged for {unconverged} rows")
        return values

    def classify(
        self, X: Rows, *, method: ClassMethod = "auto", draws: int = 100, random_state: Seed = 0
    ) -> Classes:
        """The probabilities of the classes of each row, by a model that learned labels.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows.
        method : {"auto", "exact", "mean-field", "ais", "recognition"}
            How they are found; by default exactly where that is affordable, else by mean field.
        draws : int
            Draws of the recognition distribution for each row of a DBN.
        random_state : int, Generator or RandomState
            The seed.

        Returns
        -------
        Classes
            The probabilities, and the most probable class of each row as ``predicted``.
        """
        asked = {"method": method, "draws": draws, "seed": seed_of(random_state)}
        data = self._rows(X)
        with self._face() as face:
            probabilities, told = self._fitted().classify(json.dumps(asked), data, face)
        details = json.loads(told)
        classes = self._classes if self._classes is not None else np.asarray(details["classes"])
        return Classes(probabilities, classes, details["method"], details)

    def finetune(
        self,
        X: Rows,
        y: ArrayLike | None = None,
        *,
        hidden: Sequence[int] | None = None,
        units: Literal["relu", "logistic", "linear"] = "relu",
        target: Literal["classes", "tags", "values", "input"] | None = None,
        valid: tuple[Rows, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        callback: Callback | None = None,
        random_state: Seed = 0,
        **settings: Unpack[NetworkSettings],
    ) -> Network:
        """Makes a feed-forward net of the model and trains it; a net goes on from where it is.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows.
        y : array of shape (n_rows,) or (n_rows, n_outputs), optional
            The class of each row, or several targets; without it the net learns to give its input back.
        hidden : sequence of int, optional
            Further hidden layers over those of the model.
        units : {"relu", "logistic", "linear"}
            What their units make of their input.
        target : {"classes", "tags", "values", "input"}, optional
            What is learned, where ``y`` does not say it.
        valid : tuple of rows and classes, optional
            Rows to validate with. The result is then the net that was best on them.
        sample_weight : array of shape (n_rows,), optional
            The weight of each row.
        callback : callable, optional
            Called with every event of the training; if it returns something true, training ends.
        random_state : int, Generator or RandomState
            The seed.
        **settings
            What else can be set: see :class:`harmonium.NetworkSettings`.

        Returns
        -------
        Network
            The trained net; this model stays as it is.

        Examples
        --------
        >>> import harmonium
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> rbm = harmonium.RBM(64, epochs=30, learning_rate=0.05, watch="none").fit(X[:1200])
        >>> net = rbm.finetune(X[:1200], y[:1200], epochs=20)
        >>> net.score(X[1200:], y[1200:]) > 0.9
        True
        """
        from ._network import finetune

        return finetune(
            self, X, y, hidden, units, target, valid, sample_weight, callback, random_state, dict(settings)
        )

    def filters(self) -> dict[str, NDArray[np.float64]]:
        """What the units of each hidden layer look for: a row for each unit, by the names of the layers."""
        return dict(self._fitted().filters())

    def __repr__(self) -> str:
        if self._model is None:
            return f"{type(self).__name__}()"
        layers = ", ".join(f"{layer['name']}={layer['n_units']}" for layer in self.about["layers"])
        return f"{type(self).__name__}({layers})"

    def _repr_html_(self) -> str:
        from ._show import page

        return page(self)


def load(path: str | os.PathLike[str]) -> Model:
    """Reads a model of any kind.

    Parameters
    ----------
    path : str or path
        A ``.safetensors`` file or a run directory, a UAI file, or the name of a built-in machine such as
        ``ising:16,0.4``.

    Returns
    -------
    Model
        An :class:`harmonium.RBM`, :class:`harmonium.BM`, :class:`harmonium.DBM` or :class:`harmonium.DBN`
        where it is one.
    """
    with Face() as face:
        return _of_family(_core.Model.open(os.fspath(path), face))


def _of_family(model: _core.Model) -> Model:
    """A model of the class that its graph is of."""
    from . import _families

    return _families.class_of(json.loads(model.about()))._from_core(model)


def _as_given(names: list[str]) -> NDArray[Any]:
    """Classes by their names: whole numbers where all of them are."""
    try:
        return np.array([int(name) for name in names])
    except ValueError:
        return np.array(names)


def _n_rows(X: Rows) -> int:
    if isinstance(X, _core.Data):
        return X.shape[0]
    if isinstance(X, (str, os.PathLike)):
        raise InvalidError(
            f"labels were given beside the file `{os.fspath(X)}`", "give its rows as an array, or leave `y` out"
        )
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(X)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _doubts(details: dict[str, Any]) -> str:
    return "; ".join(str(doubt) for doubt in details.get("doubts", []))
