"""From what callers hold to rows of data: arrays, sparse matrices, files, seeds."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _core
from ._frames import columns_of, has_words, is_frame
from .errors import InvalidError, SettingTypeError, TrainingWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Rows", "Seed", "mask_of", "rows_of", "seed_of"]

#: What may be given as rows: an array, a sparse matrix, a frame, the name of a file or of a set.
Rows = Any
#: What may be given as ``random_state``.
Seed = Union[int, np.integer[Any], np.random.RandomState, np.random.Generator, None]

#: The types of arrays that are taken as they are.
_TAKEN = tuple(np.dtype(name) for name in ("uint8", "float64", "float32", "int64", "int32", "int16", "uint16", "int8"))


def seed_of(random_state: Seed, default: int = 0) -> int:
    """The seed that a ``random_state`` stands for; a generator is advanced by it.

    >>> seed_of(7), seed_of(None)
    (7, 0)
    """
    if random_state is None:
        return default
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, (bool, np.bool_)):
        seed = int(random_state)
        if not 0 <= seed < 2**63:
            raise InvalidError(f"`random_state` is {seed}; it must be from 0 to 2^63 - 1", "choose another seed")
        return seed
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        high, low = (int(part) for part in random_state.randint(2**31 - 1, size=2, dtype=np.int64))
        return (high << 31) | low
    raise SettingTypeError(
        f"`random_state` is of type {type(random_state).__name__}",
        "give a whole number, a numpy.random.Generator or a numpy.random.RandomState",
    )


def labels_of(y: ArrayLike, n_rows: int) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """The class of each row as a number, and the classes in their order."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n_rows:
        raise InvalidError(
            f"the labels have shape {labels.shape}, the data {n_rows} rows", "give one label for each row"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidError("a label is NaN or infinite", "leave rows without a label out")
    classes, codes = np.unique(labels, return_inverse=True)
    return codes.reshape(-1).astype(np.uint32), classes


def mask_of(mask: ArrayLike | None) -> NDArray[np.bool_] | None:
    """A mask of cells, true where one is observed."""
    if mask is None:
        return None
    observed = np.atleast_2d(np.asarray(mask))
    if observed.ndim == 3:
        observed = observed.reshape(len(observed), -1)
    return np.ascontiguousarray(observed, dtype=np.bool_)


def dense(X: Any) -> tuple[NDArray[Any], dict[str, Any]]:
    """An array of two dimensions of a type that is taken, and what its shape says."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    array = np.asarray(X)
    said: dict[str, Any] = {}
    if array.ndim == 3:
        n, height, width = array.shape
        said["image"] = f"{height}x{width}"
        array = array.reshape(n, height * width)
    if array.ndim != 2:
        raise InvalidError(
            f"the data has {array.ndim} dimensions: rows and columns are needed",
            "a single row is `X[None, :]`, a single column `X[:, None]`",
        )
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    elif array.dtype not in _TAKEN or not array.dtype.isnative:
        if array.dtype.kind not in "fiubO":
            raise InvalidError(
                f"the data is of type {array.dtype}, which holds no numbers",
                "give an array of numbers; words are categories of a frame",
            )
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidError(
                f"the data holds something that is not a number: {error}",
                "give an array of numbers; words are categories of a frame",
            ) from None
    return array, said


def rows_of(
    X: Rows,
    *,
    reading: dict[str, Any] | None = None,
    model: _core.Model | None = None,
    labels: tuple[NDArray[np.uint32], list[str]] | None = None,
    sample_weight: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    fingerprint: bool = False,
    canonical: bool = False,
    means: bool = False,
) -> _core.Data:
    """Rows of data as a model will see them.

    Parameters
    ----------
    X : array, sparse matrix, str or path
        The rows.
    reading : dict, optional
        How they are read; what is not said is as the model's own data was read, or as they look.
    model : Model, optional
        The model that they are for.
    labels : tuple, optional
        The class of each row, and what the classes are called.
    sample_weight : array of shape (n_rows,), optional
        The weight of each row.
    mask : array of bool, optional
        Which cells are observed; one row holds for all.
    fingerprint : bool
        Whether the values are fingerprinted, as those of a file are.
    canonical : bool
        Whether the rows are put in the order of what they hold, so that it does not matter in which order they
        came, and a row of weight 2 is two rows.
    means : bool
        Whether grey values are shown as they are instead of bits that are drawn with them.
    """
    said = dict(reading or {})
    if isinstance(X, _core.Data):
        return X
    if isinstance(X, (str, os.PathLike)):
        remembered = json.loads(model.about())["reading"] if model is not None else {}
        data, _notes = _core.Data.open(os.fspath(X), json.dumps({**remembered, **said}))
        return data
    names = column_names(X)
    weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    beside: _core._Beside = {
        "reading": "",
        "names": names,
        "labels": labels,
        "weights": weights,
        "mask": mask_of(mask),
        "fingerprint": fingerprint,
        "canonical": canonical,
        "means": means,
    }
    if is_frame(X) and (table := _table(X, said, model, beside)) is not None:
        return table
    if hasattr(X, "tocsr"):
        matrix = X.tocsr()
        beside["reading"] = json.dumps(said)
        values = np.ascontiguousarray(matrix.data)
        if values.dtype not in _TAKEN[:5]:
            values = values.astype(np.float64)
        return _core.Data.from_csr(
            int(matrix.shape[1]),
            np.ascontiguousarray(matrix.indptr, dtype=np.int64),
            np.ascontiguousarray(matrix.indices, dtype=np.int64),
            values,
            beside,
            model,
        )
    array, shaped = dense(X)
    beside["reading"] = json.dumps({**shaped, **said})
    data = _core.Data.from_array(array, beside, model)
    if model is None and names is not None and _is_open(said) and data.is_of_several_sorts:
        # As a file with a header is read: columns of several sorts have units of their own.
        return _encoded(X, said, None, beside)
    return data


def _is_open(said: dict[str, Any]) -> bool:
    """Whether nothing was said that speaks of arrays."""
    return not (said.keys() - {"kinds", "unknown"})


def _table(X: Any, said: dict[str, Any], model: _core.Model | None, beside: _core._Beside) -> _core.Data | None:
    """A frame as a table of columns, each of its own kind; nothing where it is one of numbers."""
    if model is not None:
        return _encoded(X, said, model, beside) if json.loads(model.about())["is_table"] else None
    if said.get("kinds") or (_is_open(said) and has_words(X)):
        return _encoded(X, said, None, beside)
    return None


def _encoded(X: Any, said: dict[str, Any], model: _core.Model | None, beside: _core._Beside) -> _core.Data:
    names, columns = columns_of(X)
    reading = json.dumps({name: said[name] for name in ("kinds", "unknown") if said.get(name)})
    data, notes = _core.Data.from_frame(names, columns, {**beside, "reading": reading}, model)
    for note in notes:
        warnings.warn(note, TrainingWarning, stacklevel=5)
    return data


def column_names(X: Any) -> list[str] | None:
    """What the columns of a frame are called."""
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, np.ndarray):
        return None
    return [str(name) for name in columns]
