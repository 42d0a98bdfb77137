"""Pictures by matplotlib, where it is installed.

>>> import harmonium
>>> rbm = harmonium.RBM(16, epochs=5).fit("digits")
>>> from harmonium import plot
>>> axes = plot.filters(rbm)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._models import Model
from ._show import _CURVES, mosaic
from .errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["filters", "history", "samples"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def filters(model: Model, *, layer: str | None = None, n: int = 100, ax: Any = None) -> Any:
    """Draws what the hidden units look for, the strongest first.

    Parameters
    ----------
    model : Model
        A model whose rows are pictures.
    layer : str, optional
        The hidden layer; by default the first.
    n : int
        Most units that are drawn.
    ax : matplotlib axes, optional
        Where; by default a new figure.

    Returns
    -------
    matplotlib axes
    """
    found = model.filters()
    if not found:
        raise InvalidError("the model has no hidden units", "there is nothing to draw")
    name = next(iter(found)) if layer is None else layer
    if name not in found:
        raise InvalidError(f"the model has no hidden layer `{name}`", f"there are {', '.join(found)}")
    order = np.argsort(-(found[name] ** 2).sum(axis=1), kind="stable")[:n]
    ax = samples(found[name][order], model=model, ax=ax, signed=True)
    ax.set_title(f"filters of {name}")
    return ax


def samples(values: ArrayLike, *, model: Model | None = None, ax: Any = None, signed: bool = False) -> Any:
    """Draws rows as pictures side by side.

    Parameters
    ----------
    values : array of shape (n, n_columns)
        The rows.
    model : Model, optional
        The model that knows the shape of the pictures; by default they are square.
    ax : matplotlib axes, optional
        Where; by default a new figure.
    signed : bool
        Whether zero is grey, as for filters, instead of black.

    Returns
    -------
    matplotlib axes
    """
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    n_columns = rows.shape[1]
    shape = None if model is None else model._fitted().image(n_columns)
    side = int(np.sqrt(n_columns))
    shape = shape or ((side, side) if side * side == n_columns else None)
    if shape is None:
        raise InvalidError(f"rows of {n_columns} values are no pictures", "train with `image=(height, width)`")
    ax = _axes(ax)
    shown = rows if signed else 2 * rows / (np.abs(rows).max() or 1.0) - 1
    ax.imshow(mosaic(shown, shape), cmap="gray", vmin=0, vmax=255)
    ax.set_axis_off()
    return ax


def history(model: Model, *, names: list[str] | None = None, ax: Any = None) -> Any:
    """Draws what was measured in training, by epoch.

    Parameters
    ----------
    model : Model
        A model that was trained here.
    names : list of str, optional
        What is drawn; by default likelihoods.
    ax : matplotlib axes, optional
        Where; by default a new figure.

    Returns
    -------
    matplotlib axes
    """
    found = model.history
    names = names or [name for name in _CURVES if name in found][:2]
    ax = _axes(ax)
    for name in names:
        seen = np.isfinite(found[name])
        ax.plot(found["epoch"][seen], found[name][seen], label=name)
    ax.set_xlabel("epoch")
    ax.legend()
    return ax
