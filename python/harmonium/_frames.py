"""Frames of pandas, polars and pyarrow, by way of narwhals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InvalidError

__all__ = ["backend_of", "columns_of", "fill", "is_frame", "make"]

#: Columns of a frame as the compiled half takes them: numbers with NaN for holes, or words with None for them.
Columns = list[Any]


def is_frame(X: Any) -> bool:
    """Whether something is a frame with named columns."""
    if isinstance(X, np.ndarray):
        return False
    root = type(X).__module__.split(".")[0]
    if root == "pyarrow":
        return type(X).__name__ == "Table"
    known = root in ("pandas", "polars", "modin", "cudf", "narwhals")
    return (known and type(X).__name__ == "DataFrame") or hasattr(X, "__narwhals_dataframe__")


def _narwhals() -> Any:
    try:
        import narwhals
    except ImportError:
        raise InvalidError(
            "frames with words need the package narwhals", "`pip install harmonium[frames]`"
        ) from None
    return narwhals


def backend_of(X: Any) -> str | None:
    """Which library a frame is of."""
    return type(X).__module__.split(".")[0] if is_frame(X) else None


def has_words(X: Any) -> bool:
    """Whether a frame holds anything but numbers."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is not None and type(X).__module__.startswith("pandas"):
        return any(getattr(dtype, "kind", "O") not in "fiub" for dtype in dtypes)
    nw = _narwhals()
    frame = nw.from_native(X, eager_only=True)
    return any(not dtype.is_numeric() and dtype != nw.Boolean for dtype in frame.schema.values())


def columns_of(X: Any) -> tuple[list[str], Columns]:
    """The names and the cells of the columns of a frame."""
    nw = _narwhals()
    frame = nw.from_native(X, eager_only=True)
    columns: Columns = []
    for name in frame.columns:
        series = frame[name]
        if series.dtype.is_numeric():
            columns.append(_numbers(nw, series))
        else:
            holes = series.is_null().to_list()
            columns.append([None if hole else str(cell) for cell, hole in zip(series.to_list(), holes)])
    return [str(name) for name in frame.columns], columns


def _numbers(nw: Any, series: Any) -> Any:
    values = series.cast(nw.Float64).to_numpy()
    if values.dtype == object:
        values = np.array([np.nan if hole else x for x, hole in zip(values, series.is_null().to_list())])
    # A copy: what belongs to a frame may not be written.
    return np.array(values, dtype=np.float64, order="C")


def fill(X: Any, decoded: list[tuple[str, Any]], mask: Any = None) -> Any:
    """The frame with its holes filled; columns that it does not have come last.

    Parameters
    ----------
    X : frame
        The rows.
    decoded : list of tuple
        The columns that a model learned: their names, and what it expects of every row.
    mask : array of bool, optional
        Which cells count as observed; one row holds for all.
    """
    nw = _narwhals()
    frame = nw.from_native(X, eager_only=True)
    names = {str(name): name for name in frame.columns}
    columns = []
    for name, expected in decoded:
        if name not in names:
            columns.append(nw.new_series(name, typed(expected), backend=frame.implementation))
            continue
        series = frame[names[name]]
        holes = _holes(nw, series)
        if mask is not None:
            holes = holes | ~mask[:, frame.columns.index(names[name])]
        if holes.any():
            columns.append(_filled(nw, series, holes, expected, frame.implementation))
    return frame.with_columns(*columns).to_native() if columns else X


def _holes(nw: Any, series: Any) -> Any:
    if series.dtype.is_numeric():
        return np.isnan(_numbers(nw, series))
    return np.array(series.is_null().to_list(), dtype=bool)


def _filled(nw: Any, series: Any, holes: Any, expected: Any, backend: Any) -> Any:
    """A column with its holes filled, of its own type where that can hold what it is filled with."""
    numeric = series.dtype.is_numeric()
    if numeric:
        filled = _numbers(nw, series)
        filled[holes] = np.asarray(expected, dtype=np.float64)[holes]
        made = nw.new_series(series.name, filled, backend=backend)
        return made.cast(series.dtype) if series.dtype.is_integer() and _whole(filled) else made
    cells = [cell if not hole else word for cell, hole, word in zip(series.to_list(), holes, expected)]
    if series.dtype == nw.Boolean:
        return nw.new_series(series.name, [str(cell) == "True" for cell in cells], backend=backend)
    native = series.to_native()
    if type(native).__module__.startswith("pandas"):
        filled_native = native.copy()
        filled_native[holes] = [word for word, hole in zip(expected, holes) if hole]
        return nw.from_native(filled_native, series_only=True)
    made = nw.new_series(series.name, [str(cell) for cell in cells], nw.String, backend=backend)
    return made if series.dtype == nw.String else made.cast(series.dtype)


def _whole(values: Any) -> bool:
    return bool((values == np.floor(values)).all())


def make(decoded: list[tuple[str, Any]], backend: str | None) -> Any:
    """A frame of the columns that a model learned: of the library that was named, else of one that is there."""
    nw = _narwhals()
    columns = {name: typed(cells) for name, cells in decoded}
    for library in (backend,) if backend else ("pandas", "polars", "pyarrow"):
        try:
            return nw.from_dict(columns, backend=library).to_native()
        except ImportError:
            continue
    raise InvalidError("a table needs a library of frames", "install pandas, polars or pyarrow")


def typed(cells: Any) -> Any:
    """Words as what they stand for: numbers, truth values, or words."""
    if isinstance(cells, np.ndarray):
        return cells
    words = set(cells)
    if words <= {"True", "False"}:
        return [word == "True" for word in cells]
    try:
        numbers = np.array([float(word) for word in cells])
    except (TypeError, ValueError):
        return list(cells)
    return numbers.astype(np.int64) if _whole(numbers) else numbers
