"""What is asked of a model with part of each row given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core
from ._frames import fill, is_frame
from ._inference import (
    Inference,
    InferenceMethod,
    MapMethod,
    MostProbable,
    _infer,
    _most_probable,
)
from ._inputs import Rows, Seed, seed_of
from ._results import Completion, Drawn, warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._models import Model

__all__ = ["Given"]

SampleMethod = Literal["auto", "exact", "gibbs", "tempered"]
FillMethod = Literal["auto", "exact", "gibbs", "mean-field"]


class Given:
    """A model with part of each row given; made by :meth:`Model.given`."""

    def __init__(self, model: Model, rows: _core.Data, source: Rows, mask: NDArray[np.bool_] | None) -> None:
        self._asked_of, self._rows, self._source, self._mask = model, rows, source, mask

    def sample(
        self,
        n: int = 1,
        *,
        method: SampleMethod = "auto",
        sweeps: int | None = None,
        means: bool = False,
        random_state: Seed = None,
    ) -> Any:
        """Draws ``n`` samples for each given row, with what is observed held; see :meth:`Model.sample`.

        Returns
        -------
        ndarray of shape (n_rows * n, n_columns)
            The samples of the first row, then those of the second, ….
        """
        return self.draw(n, method=method, sweeps=sweeps, means=means, random_state=random_state).values

    def draw(
        self,
        n: int = 1,
        *,
        method: SampleMethod = "auto",
        sweeps: int | None = None,
        means: bool = False,
        random_state: Seed = None,
    ) -> Drawn:
        """The same as :meth:`sample`, with the verdict on the samples."""
        model = self._asked_of
        return model._draw(n, method, sweeps, means, None, random_state, self._rows)

    def infer(
        self,
        *,
        method: InferenceMethod = "auto",
        where: Mapping[str, Any] | None = None,
        evidence: Mapping[int, int] | None = None,
        pairs: bool = False,
        memory: float | None = None,
        random_state: Seed = 0,
    ) -> Inference:
        """The probabilities of the free units given one row with holes; see :meth:`Model.infer`."""
        return _infer(
            self._asked_of, self._rows, method, where, evidence, None, pairs, memory, random_state
        )

    def most_probable(
        self,
        *,
        method: MapMethod = "auto",
        where: Mapping[str, Any] | None = None,
        evidence: Mapping[int, int] | None = None,
        memory: float | None = None,
        random_state: Seed = 0,
    ) -> MostProbable:
        """The most probable state given one row with holes; see :meth:`Model.most_probable`."""
        return _most_probable(
            self._asked_of, self._rows, method, where, evidence, None, memory, random_state
        )

    def complete(
        self, *, method: FillMethod = "auto", sweeps: int | None = None, random_state: Seed = 0
    ) -> Any:
        """The rows with their missing values at their means; see :meth:`Model.complete`."""
        return self.fill(method=method, sweeps=sweeps, random_state=random_state).values

    def fill(
        self, *, method: FillMethod = "auto", sweeps: int | None = None, random_state: Seed = 0
    ) -> Completion:
        """The same as :meth:`complete`, with the standard error of each value."""
        asked = {"method": method, "sweeps": sweeps, "seed": seed_of(random_state)}
        with self._asked_of._face() as face:
            values, errors, told, warning = self._asked_of._fitted().complete(
                json.dumps(asked), self._rows, None, face
            )
        warn(warning)
        decoded = _core.decoded(self._asked_of._fitted(), values) if is_frame(self._source) else None
        filled = values if decoded is None else fill(self._source, decoded, self._mask)
        return Completion._of(filled, errors, told)
