"""Progress and callbacks: what is seen while the library works."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any, Callable, TextIO

from .errors import TrainingWarning

__all__ = ["Callback", "Face"]

#: Hears of every event of a training; true ends it.
Callback = Callable[[dict[str, Any]], Any]

#: Seconds after which work is long enough to be shown.
_PATIENCE = 1.0
_WIDTH = 24


def in_notebook() -> bool:
    """Whether output goes to a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Face:
    """Shows how far work is, in a terminal or in a notebook, and passes events on.

    Parameters
    ----------
    verbose : bool, optional
        Whether progress is shown; by default where somebody can see it, once work takes longer than a
        second.
    callback : callable, optional
        Called with every event of a training.
    """

    def __init__(self, verbose: bool | None = None, callback: Callback | None = None) -> None:
        self.hears = callback is not None
        self._callback = callback
        self._what, self._began = "", time.monotonic()
        self._stream: TextIO = sys.stderr
        self._notebook = in_notebook()
        self._patience = 0.0 if verbose else _PATIENCE
        self._shown = False
        self._notes: list[str] = []
        self._handle: Any = None
        if verbose is None:
            verbose = self._notebook or bool(getattr(self._stream, "isatty", lambda: False)())
        self._verbose = verbose

    def progress(self, what: str, done: int, total: int, detail: str) -> None:
        """Shows how far the work is."""
        if what != self._what:
            self._what, self._began = what, time.monotonic()
        elapsed = time.monotonic() - self._began
        if not self._verbose or elapsed < self._patience:
            return
        share = min(1.0, done / total) if total else 0.0
        rest = elapsed / share - elapsed if share > 0 else float("nan")
        text = f"{what} {done}/{total}  {elapsed:.0f} s, {rest:.0f} s left  {detail}"
        self._shown = True
        if self._notebook:
            self._display(share, text)
            return
        bar = "█" * round(share * _WIDTH)
        self._stream.write(f"\r\x1b[2K{bar:░<{_WIDTH}} {text}")
        self._stream.flush()

    def note(self, text: str) -> None:
        """Takes up what a person should know: told as a warning once the work is done."""
        self._notes.append(text)

    def announce(self, text: str) -> None:
        """Tells what is about to be done, to somebody who wants to see it."""
        if self._verbose:
            start = "\r\x1b[2K" if self._shown and not self._notebook else ""
            self._stream.write(f"{start}{text}\n")
            self._stream.flush()

    def event(self, event: str) -> str | None:
        """Passes an event on; the reason to stop, if the callback asks for it."""
        if self._callback is None:
            return None
        return "the callback asked for it" if self._callback(json.loads(event)) else None

    def _display(self, share: float, text: str) -> None:
        from IPython.display import HTML, display

        page = HTML(f"<progress value='{share}' max='1'></progress> <code>{text}</code>")
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def __enter__(self) -> Face:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if self._shown and self._notebook:
            from IPython.display import HTML

            self._handle.update(HTML(""))
        elif self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
        for text in self._notes if failed is None else ():
            warnings.warn(text, TrainingWarning, stacklevel=3)
