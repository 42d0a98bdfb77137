"""Several modalities in one machine: pictures and tags, numbers and words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core
from ._faces import Callback
from ._families import Trainable
from ._inputs import Rows, Seed, rows_of
from ._results import LogLikelihood
from .errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from ._settings import Settings

__all__ = ["MultimodalDBM"]

#: Rows of some modalities, by their names.
Modalities = Mapping[str, Rows]


class MultimodalDBM(Trainable):
    """A deep Boltzmann machine of several modalities, whose pathways meet in a joint layer.

    Rows of the modalities belong together by their order. A row of NaN is one that a modality lacks, in training and in use.

    Parameters
    ----------
    hidden : mapping of str to sequence of int
        Numbers of units of the hidden layers above each modality, from below; one that is not named meets the joint layer
        itself.
    joint : int
        Number of units of the layer in which the modalities meet.
    visible : mapping of str to str, optional
        Kind of the units of a modality: ``binary``, ``spin``, ``gaussian`` or ``categorical``; by default what its values
        look like.
    random_state : int, Generator or RandomState
        The root of all randomness.
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it.
    **settings
        What else can be set about the training: see :class:`harmonium.Settings`. ``pretrain_epochs`` is 20 unless given.

    Examples
    --------
    >>> import harmonium, numpy as np
    >>> cause = np.arange(200) % 2
    >>> picture, number = np.repeat(cause[:, None], 6, axis=1), np.where(cause, 1.5, -1.5)[:, None]
    >>> dbm = harmonium.MultimodalDBM({"picture": [4]}, 4, visible={"number": "gaussian"}, epochs=20)
    >>> dbm = dbm.fit({"picture": picture, "number": number})
    >>> dbm.complete({"number": [[1.5]]}, of="picture").shape
    (1, 6)
    """

    _family = "multimodal"
    _own = ("hidden", "joint", "visible")

    def __init__(
        self,
        hidden: Mapping[str, Sequence[int]] | None = None,
        joint: int = 100,
        *,
        visible: Mapping[str, str] | None = None,
        random_state: Seed = 0,
        verbose: bool | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.hidden, self.joint, self.visible = hidden, joint, visible
        self.random_state, self.verbose = random_state, verbose

    def _take_up(self, about: dict[str, Any]) -> None:
        hidden: dict[str, list[int]] = {}
        for layer in about["layers"]:
            name, point, _ = layer["name"].partition(".")
            if layer["role"] == "hidden" and point:
                hidden.setdefault(name, []).append(layer["n_units"])
            elif layer["role"] == "hidden":
                self.joint = layer["n_units"]
        self.hidden = []
        super()._take_up(about)
        self.hidden = hidden

    def _given(self, seed: int) -> dict[str, Any]:
        kept, self.hidden = self.hidden, None
        try:
            given = super()._given(seed)
        finally:
            self.hidden = kept
        words = [f"{name}={','.join(str(int(n)) for n in sizes)}" for name, sizes in (kept or {}).items()]
        return {**given, "pathway": words, "joint": int(self.joint)}

    def _joined(self, X: Modalities, model: _core.Model | None, fingerprint: bool = False) -> _core.Data:
        if isinstance(X, _core.Data):
            return X
        if not isinstance(X, Mapping) or not X:
            raise InvalidError("rows of several modalities are a dict", 'write {"image": X, "tags": T}')
        kinds = self.visible or {}
        parts = []
        for name, rows in X.items():
            if isinstance(rows, (str, os.PathLike)):
                raise InvalidError(
                    f"the rows of `{name}` are a file", "read it first; `harmonium train multimodal` reads files"
                )
            known = kinds.get(name)
            reading = {"binarize": "none"} if known in ("gaussian", "categorical", "spin") else {}
            parts.append((name, rows_of(rows, reading=reading, fingerprint=fingerprint), known))
        return _core.join(parts, model)

    def _rows(self, X: Any, y: ArrayLike | None = None, **more: Any) -> _core.Data:
        if more.get("mask") is not None:
            raise InvalidError("masks hold for one source", "set what is not observed to NaN")
        return self._joined(X, self._fitted())

    def fit(  # type: ignore[override]
        self,
        X: Modalities,
        y: None = None,
        *,
        valid: Modalities | None = None,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        callback: Callback | None = None,
    ) -> MultimodalDBM:
        """Learns from rows of several modalities.

        Parameters
        ----------
        X : mapping of str to array of shape (n_rows, n_columns)
            The rows of each modality; NaN is missing and is learned around.
        y : None
            Ignored: labels are a modality like any other.
        valid : mapping of str to array, optional
            Rows to watch the training with.
        out : str or path, optional
            A run directory to make.
        overwrite : bool
            Whether a run that is there is replaced.
        callback : callable, optional
            Called with every event of the training; if it returns something true, training ends.

        Returns
        -------
        self
        """
        data = self._joined(X, None, out is not None)
        held_out = None if valid is None else self._joined(valid, None)
        return self._train(data, held_out, None, out, overwrite, callback)

    @property
    def modalities(self) -> list[str]:
        """The names of the modalities, in their order."""
        return [name for name, *_ in _core.modalities(self._fitted())]

    def _entries(self, of: str) -> tuple[slice, list[str]]:
        for name, start, end, names, _image in _core.modalities(self._fitted()):
            if name == of:
                return slice(start, end), names
        raise InvalidError(f"there is no modality `{of}`", f"there are {', '.join(self.modalities)}")

    def split(self, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Rows of samples or completions as a dict of the modalities."""
        return {name: values[:, start:end] for name, start, end, *_ in _core.modalities(self._fitted())}

    def complete(self, X: Modalities, *, of: str | None = None, **how: Any) -> Any:
        """Fills what is missing with its means given the rest.

        Parameters
        ----------
        X : mapping of str to array
            The rows of those modalities that are known.
        of : str, optional
            The modality that is wanted; by default all of them.
        **how
            ``method``, ``sweeps`` and ``random_state``; see :meth:`Model.complete`.

        Returns
        -------
        ndarray of shape (n_rows, n_entries), or dict of them
        """
        values = self.given(X).complete(**how)
        return values[:, self._entries(of)[0]] if of else self.split(values)

    def top(self, X: Modalities, of: str, n: int = 10, **how: Any) -> list[list[tuple[str, float]]]:
        """The names of the ``n`` most probable columns of a modality for each row, with their probabilities."""
        names = self._entries(of)[1]
        values = self.complete(X, of=of, **how)
        order = np.argsort(-values, axis=1, kind="stable")[:, :n]
        name = (lambda c: names[c]) if names else str
        return [[(name(c), float(row[c])) for c in places] for row, places in zip(values, order)]

    def conditional_log_likelihood(  # type: ignore[override]
        self, X: Modalities, *, of: str, random_state: Seed = 0
    ) -> LogLikelihood:
        """How probable the rows of the modality ``of`` are given those of the others.

        Parameters
        ----------
        X : mapping of str to array
            The rows, those of ``of`` among them.
        of : str
            The modality that is asked about.
        random_state : int, Generator or RandomState
            The seed.

        Returns
        -------
        LogLikelihood
            The mean over the rows with its interval, beside what each cell reaches on its own.
        """
        data = self._rows(X)
        return self._conditional(data, _core.without_modality(self._fitted(), data, of), random_state)

    def retrieve(
        self, query: Modalities, among: Modalities, *, by: Literal["conditional", "features"] = "conditional"
    ) -> tuple[NDArray[np.float64], dict[str, float] | None]:
        """How near rows of one modality are to rows of others.

        Parameters
        ----------
        query : mapping of str to array
            The rows to ask with.
        among : mapping of one str to array
            The rows to look among.
        by : {"conditional", "features"}
            The conditional probability of a row against its own, or the cosine of the joint layer.

        Returns
        -------
        nearness : ndarray of shape (n_queries, n_among)
            The larger the nearer.
        found : dict or None
            How well rows of the same number are found, where there are as many on both sides: mean average precision,
            precision and recall at 10, median rank.
        """
        if len(among) != 1:
            raise InvalidError("one modality is looked among", 'write {"tags": T}')
        wanted = next(iter(among))
        with self._face() as face:
            nearness, told = _core.retrieve(
                self._fitted(), self._rows(query), wanted, self._rows(among), by, face
            )
        return nearness, json.loads(told)
