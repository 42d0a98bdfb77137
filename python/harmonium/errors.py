"""Exceptions: the usual ones of Python, each with a way out in ``hint``.

Every exception that the library raises is a :class:`HarmoniumError` and the built-in exception that
a caller would expect: a missing file is a :class:`FileNotFoundError`, data that does not fit a
:class:`ValueError`.

>>> import harmonium
>>> try:
...     harmonium.load("no-such-model.safetensors")
... except FileNotFoundError as error:
...     print(error.hint)
check the spelling; the folder a file goes into must exist
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CancelledError",
    "DefectError",
    "DivergedError",
    "ExistsError",
    "FileError",
    "HarmoniumError",
    "InvalidError",
    "LockedError",
    "MixingWarning",
    "NotAllowedError",
    "NotFittedError",
    "NotFoundError",
    "OutOfRangeError",
    "SettingTypeError",
    "TooLargeError",
    "TrainingWarning",
]


class HarmoniumError(Exception):
    """Something could not be done.

    Parameters
    ----------
    message : str
        What happened, with the numbers in it.
    hint : str
        What to do about it.
    """

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        # Shown under the traceback from Python 3.11 on.
        if hint and hasattr(self, "add_note"):
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint)


class InvalidError(HarmoniumError, ValueError):
    """Data, a setting or a request that does not fit."""


class OutOfRangeError(InvalidError):
    """Values that should be probabilities and lie outside of their range."""


class SettingTypeError(HarmoniumError, TypeError):
    """A setting of the wrong type."""


class NotFittedError(HarmoniumError, ValueError, AttributeError):
    """The model has not been trained yet."""


class DivergedError(HarmoniumError, ArithmeticError):
    """A number became infinite or NaN; a model in training is then the last good one."""


class TooLargeError(HarmoniumError, MemoryError):
    """More memory would be needed than there is."""


class FileError(HarmoniumError, OSError):
    """The operating system refused to read or write something."""


class NotFoundError(HarmoniumError, FileNotFoundError):
    """There is no such file, folder or run."""


class ExistsError(HarmoniumError, FileExistsError):
    """Something is there already, and nothing is overwritten unasked."""


class NotAllowedError(HarmoniumError, PermissionError):
    """The file may not be read or written."""


class LockedError(HarmoniumError, BlockingIOError):
    """Another process writes the run."""


class CancelledError(HarmoniumError):
    """The work was asked to stop."""


class DefectError(HarmoniumError, RuntimeError):
    """A defect of the library itself."""


class TrainingWarning(UserWarning):
    """Something that should be known about a model or its training."""


class MixingWarning(UserWarning):
    """Samples or averages whose chains may not have mixed."""
