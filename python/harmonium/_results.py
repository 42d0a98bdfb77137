"""Results: numbers with their intervals, samples with a verdict."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import MixingWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Classes", "Completion", "Drawn", "LogLikelihood", "LogPartition"]


def _interval(value: float, lower: float | None, upper: float | None, bracket: str) -> str:
    if lower is None:
        return f"{value:.4f}"
    if lower == upper:
        return f"{value:.4f}, exact"
    top = "?" if upper is None else f"{upper:.4f}"
    return f"{value:.4f} in [{lower:.4f}, {top}], {bracket}"


@dataclass(frozen=True)
class LogPartition:
    """The logarithm of the partition function, with its interval."""

    #: The estimate, in nats.
    value: float
    #: Its standard error.
    std_error: float
    #: The lower end of the interval.
    lower: float
    #: The upper end of the interval.
    upper: float
    #: What the interval is: ``bound``, ``heuristic`` or ``unsettled``.
    bracket: str
    #: How it was found: ``exact``, ``ais``, ``sandwich`` or ``bar``.
    method: str
    #: Everything else that is known.
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"LogPartition({_interval(self.value, self.lower, self.upper, self.bracket)}, method={self.method!r})"

    @classmethod
    def _of(cls, told: str) -> LogPartition:
        all_ = json.loads(told)
        return cls(
            all_["log_z"], all_["std_error"], all_["lower"], all_["upper"], all_["bracket"], all_["method"], all_
        )


@dataclass(frozen=True)
class LogLikelihood:
    """The score of rows, with its interval, beside what models without couplings reach."""

    #: The mean over the rows, in nats.
    value: float
    #: The lower end of its interval; none for scores that are no likelihoods.
    lower: float | None
    #: The upper end, where there is one.
    upper: float | None
    #: What the interval is: ``bound``, ``heuristic`` or ``unsettled``.
    bracket: str
    #: Standard error of what was estimated.
    std_error: float | None
    #: Standard error of the mean, from the spread over the rows.
    data_std_error: float | None
    #: How it was found.
    method: str
    #: What independent columns reach on the same rows, where that is known.
    baseline: float | None
    #: The score of each row.
    rows: NDArray[np.float64] = field(repr=False)
    #: Everything else that is known.
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        said = _interval(self.value, self.lower, self.upper, self.bracket)
        beside = "" if self.baseline is None else f", baseline={self.baseline:.4f}"
        return f"LogLikelihood({said}, method={self.method!r}, n={len(self.rows)}{beside})"

    @classmethod
    def _of(cls, rows: NDArray[np.float64], mean: float, told: str) -> LogLikelihood:
        all_ = json.loads(told)
        return cls(
            mean,
            all_.get("lower"),
            all_.get("upper"),
            all_.get("bracket", "none"),
            all_.get("std_error"),
            all_["data_std_error"],
            all_["method"],
            all_["baseline"],
            rows,
            all_,
        )


@dataclass(frozen=True)
class Drawn:
    """Samples, and whether they can be trusted."""

    #: The samples, a row each.
    values: Any = field(repr=False)
    #: How they were found: ``exact``, ``gibbs``, ``cluster`` or ``tempered``.
    method: str
    #: Whether they can be trusted: ``exact``, ``mixed``, ``not mixed`` or ``unknown``.
    verdict: str
    #: The largest R-hat of what was watched, where chains were.
    r_hat: float | None
    #: Independent samples that they are worth.
    effective_samples: float | None
    #: Everything else that is known.
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def _of(cls, values: Any, told: str) -> Drawn:
        all_ = json.loads(told)
        return cls(values, all_["method"], all_["verdict"], all_["r_hat"], all_["effective_samples"], all_)


@dataclass(frozen=True)
class Completion:
    """Rows with their missing values filled by their means given the rest."""

    #: The rows: observed values as they were, missing ones at their means.
    values: Any = field(repr=False)
    #: The standard error of each value: 0 for what was observed or is exact.
    errors: NDArray[np.float64] = field(repr=False)
    #: How the means were found.
    method: str
    #: Whether they can be trusted.
    verdict: str
    #: Units that were missing.
    n_missing: int
    #: Everything else that is known.
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def _of(cls, values: Any, errors: NDArray[np.float64], told: str) -> Completion:
        all_ = json.loads(told)
        return cls(values, errors, all_["method"], all_["verdict"], all_["missing"], all_)


@dataclass(frozen=True)
class Classes:
    """The probabilities of the classes of each row."""

    #: A row for each row of data, a column for each class.
    probabilities: NDArray[np.float64] = field(repr=False)
    #: The classes, in the order of the columns.
    classes: NDArray[Any]
    #: How the probabilities were found.
    method: str
    #: Everything else that is known.
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def predicted(self) -> NDArray[Any]:
        """The most probable class of each row."""
        predicted: NDArray[Any] = self.classes[self.probabilities.argmax(axis=1)]
        return predicted


def warn(text: str | None) -> None:
    """Says what should be known about numbers that depend on chains."""
    if text:
        warnings.warn(text, MixingWarning, stacklevel=4)
