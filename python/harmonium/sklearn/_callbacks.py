"""The callbacks of scikit-learn 1.9; without it, nothing."""

from __future__ import annotations

from typing import Any, Callable

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Callbacks came with scikit-learn 1.9."""


__all__ = ["CallbackSupportMixin", "Epochs"]


class Epochs:
    """Tells the callbacks of an estimator of every epoch.

    Parameters
    ----------
    estimator : estimator
        Whose ``fit`` it is.
    n_epochs : int
        Most epochs there will be.
    X, y, metadata
        What is learned from.
    """

    def __init__(self, estimator: Any, n_epochs: int, X: Any, y: Any, metadata: dict[str, Any]) -> None:
        self._estimator = estimator
        self._told: dict[str, Any] = {"X": X, "y": y, "metadata": metadata}
        self._context = None
        self._epoch: Any = None
        init = getattr(estimator, "_init_callback_context", None)
        if init is not None:
            self._context = init(max_subtasks=n_epochs)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._told)
        self.are_wanted = bool(getattr(estimator, "_skl_callbacks", None))

    def begin(self, attributes: Callable[[], dict[str, Any]] | None = None) -> None:
        """An epoch begins; ``attributes`` are those of the estimator then, where they are known."""
        if self.are_wanted and self._context is not None:
            self._epoch = self._context.subcontext(task_name="epoch")
            self._epoch.call_on_fit_task_begin(estimator=self._estimator, **_as_fitted(attributes), **self._told)

    def end(self, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """An epoch has ended; whether training should end, too."""
        if self._epoch is None:
            return False
        epoch, self._epoch = self._epoch, None
        return bool(
            epoch.call_on_fit_task_end(estimator=self._estimator, **_as_fitted(attributes), **self._told)
        )

    def close(self, attributes: dict[str, Any]) -> None:
        """Training has ended."""
        if self._epoch is not None:
            self._epoch.call_on_fit_task_end(estimator=self._estimator)
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._told
            )


def _as_fitted(attributes: Callable[[], dict[str, Any]] | None) -> dict[str, Any]:
    return {} if attributes is None else {"reconstruction_attributes": attributes()}
