"""How many threads work on one call."""

from __future__ import annotations

import os

from . import _core

__all__ = ["set_threads", "threads"]


def threads() -> int:
    """Threads that work on one call; results do not depend on their number.

    >>> import harmonium
    >>> harmonium.threads() >= 1
    True
    """
    return _core.threads() or int(os.environ.get("RAYON_NUM_THREADS", 0)) or os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Says how many threads may work on one call.

    Parameters
    ----------
    n : int or None
        The number; none is one for each core.
    """
    _core.set_threads(n or 0)
