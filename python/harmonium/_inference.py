"""Inference on the units of a machine: what is not known, given what is, by one method or by all side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core
from ._inputs import Seed, seed_of
from ._results import warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._faces import Callback, Face

__all__ = ["Inference", "InferenceMethod", "Inferring", "MapMethod", "MostProbable"]

InferenceMethod = Literal[
    "auto", "all", "exact", "junction-tree", "bp", "trw", "tap", "mean-field", "gibbs", "ais"
]
MapMethod = Literal["auto", "exact", "max-product", "alternating", "annealing", "tempering"]


@dataclass(frozen=True)
class Inference:
    """What methods of inference say of a machine, given what is known."""

    #: The logarithm of the sum over the free units, of the method to trust; none if no value can be relied on.
    log_z: float | None
    #: Which method that is.
    method: str | None
    #: What the value is: ``exact``, ``lower``, ``upper`` or ``neither``.
    bound: str | None
    #: The largest value that is certainly not above ``log_z``, and the least that is not below it.
    lower_bound: float | None
    upper_bound: float | None
    #: The log-probability of what is given, where it is exact.
    log_evidence: float | None
    #: The probabilities of the states of each free unit, by its name, of the method to trust.
    marginals: dict[str, NDArray[np.float64]] = field(repr=False)
    #: The method that the probabilities are from; none if none can be relied on.
    marginals_method: str | None
    #: The value that each state stands for, by the name of the unit.
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    #: The probabilities of pairs of states of coupled units, where they were asked for.
    pairs: dict[tuple[str, str], NDArray[np.float64]] = field(repr=False)
    #: Every method that was asked: its ``log_z``, ``bound``, ``largest_error``, ``seconds``, whether it ``converged``.
    answers: list[dict[str, Any]] = field(repr=False)

    def __str__(self) -> str:
        rows = [("method", "ln Z", "bounds", "unit error", "seconds", "converged")]
        for answer in self.answers:
            log_z, error = answer["log_z"], answer["largest_error"]
            rows.append(
                (
                    answer["method"],
                    "-" if log_z is None else f"{log_z:.6f}",
                    "-" if log_z is None else answer["bound"],
                    "-" if error is None else f"{error:.6f}",
                    f"{answer['seconds']:.3f}",
                    answer.get("error") or ("yes" if answer["converged"] else "no"),
                )
            )
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        return "\n".join("  ".join([*(f"{c:<{w}}" for c, w in zip(row, widths)), row[5]]) for row in rows)

    @classmethod
    def _of(cls, told: str, pairs: list[tuple[int, int, NDArray[np.float64]]]) -> Inference:
        all_ = json.loads(told)
        names = all_["names"]
        units = all_.get("units", [])
        return cls(
            all_.get("log_z"),
            all_.get("method"),
            all_.get("bound"),
            all_["lower_bound"],
            all_["upper_bound"],
            all_.get("log_evidence"),
            {unit["unit"]: np.array(unit["probabilities"]) for unit in units},
            all_.get("marginals_method"),
            {name: np.array(values) for name, values in zip(names, all_["values"])},
            {(names[a], names[b]): table for a, b, table in pairs},
            all_["answers"],
        )


@dataclass(frozen=True)
class MostProbable:
    """The most probable state that was found, given what is known."""

    #: Its energy.
    energy: float
    #: Whether it is proved that no state is below it.
    proved: bool
    #: How it was found.
    method: str
    #: No state has less energy than this; none where nothing is known.
    least_energy: float | None
    #: The values of all units, by the name of their layer; those that were given among them.
    layers: dict[str, NDArray[np.float64]] = field(repr=False)
    #: The state of each variable by its number, as files of evidence number them; none for real units.
    states: list[int | None] = field(repr=False)
    #: How often the search was started, and how many of these found this state.
    starts: int
    hits: int


class Inferring:
    """What can be inferred of the units of a machine."""

    def _fitted(self) -> _core.Model:
        raise NotImplementedError

    def _face(self, callback: Callback | None = None) -> Face:
        raise NotImplementedError

    def infer(
        self,
        *,
        method: InferenceMethod = "auto",
        where: Mapping[str, Any] | None = None,
        evidence: Mapping[int, int] | None = None,
        label: Any = None,
        pairs: bool = False,
        memory: float | None = None,
        random_state: Seed = 0,
    ) -> Inference:
        """The probabilities of all free units and the logarithm of their sum, given what is known.

        Parameters
        ----------
        method : str
            ``auto`` is exact where that is affordable. ``all`` asks every method: ``exact``,
            ``junction-tree``, ``bp`` (belief propagation), ``trw`` (an upper bound), ``tap``, ``mean-field``
            (a lower bound), ``gibbs``, ``ais``.
        where : mapping, optional
            Values that are known, by the name of the column or of the unit (``"visible[3]"``).
        evidence : mapping of int to int, optional
            States that are known, by the numbers of variables and states.
        label : optional
            The class, for a model that learned labels.
        pairs : bool
            Whether the probabilities of pairs of coupled units are wanted, too.
        memory : float, optional
            The most memory that tables may take, in bytes.
        random_state : int, Generator or RandomState
            The seed of the methods that sample.

        Returns
        -------
        Inference

        Examples
        --------
        >>> import harmonium
        >>> grid = harmonium.load("ising:4,0.4")
        >>> found = grid.infer(where={"visible[0]": 1})
        >>> found.method, found.bound
        ('exact', 'exact')
        >>> print(f"{found.marginals['visible[1]'][1]:.3f}")
        0.845
        """
        return _infer(self, None, method, where, evidence, label, pairs, memory, random_state)

    def most_probable(
        self,
        *,
        method: MapMethod = "auto",
        where: Mapping[str, Any] | None = None,
        evidence: Mapping[int, int] | None = None,
        label: Any = None,
        memory: float | None = None,
        random_state: Seed = 0,
    ) -> MostProbable:
        """The most probable state of all free units together, given what is known (MAP).

        Parameters
        ----------
        method : {"auto", "exact", "max-product", "alternating", "annealing", "tempering"}
            ``auto`` proves its state where that is affordable, and takes the best of several searches else.
        where, evidence, label, memory, random_state
            As in :meth:`infer`.

        Returns
        -------
        MostProbable

        Examples
        --------
        >>> import harmonium
        >>> best = harmonium.load("ising:4,0.4").most_probable(where={"visible[0]": -1})
        >>> best.proved, int(best.layers["visible"].sum())
        (True, -16)
        """
        return _most_probable(self, None, method, where, evidence, label, memory, random_state)


def _asked(
    method: str,
    where: Mapping[str, Any] | None,
    evidence: Mapping[int, int] | None,
    label: Any,
    pairs: bool,
    memory: float | None,
    random_state: Seed,
) -> str:
    return json.dumps(
        {
            "method": method,
            "pairs": pairs,
            "memory": None if memory is None else float(memory),
            "class": None if label is None else str(label),
            "values": [(str(name), _word(value)) for name, value in (where or {}).items()],
            "variables": [(int(variable), int(state)) for variable, state in (evidence or {}).items()],
            "seed": seed_of(random_state),
        }
    )


def _word(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return str(int(value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _infer(
    model: Inferring,
    rows: _core.Data | None,
    method: str,
    where: Mapping[str, Any] | None,
    evidence: Mapping[int, int] | None,
    label: Any,
    pairs: bool,
    memory: float | None,
    random_state: Seed,
) -> Inference:
    asked = _asked(method, where, evidence, label, pairs, memory, random_state)
    with model._face() as face:
        told, found, warnings = model._fitted().infer(asked, rows, face)
    for text in warnings:
        warn(text)
    return Inference._of(told, found)


def _most_probable(
    model: Inferring,
    rows: _core.Data | None,
    method: str,
    where: Mapping[str, Any] | None,
    evidence: Mapping[int, int] | None,
    label: Any,
    memory: float | None,
    random_state: Seed,
) -> MostProbable:
    asked = _asked(method, where, evidence, label, False, memory, random_state)
    with model._face() as face:
        told, layers = model._fitted().most_probable(asked, rows, face)
    all_ = json.loads(told)
    return MostProbable(
        all_["energy"],
        all_["proved"],
        all_["method"],
        all_["least_energy"],
        dict(layers),
        all_["states"],
        all_["starts"],
        all_["hits"],
    )
