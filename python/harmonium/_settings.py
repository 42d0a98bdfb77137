"""The settings of a training, in the words of the command line."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

__all__ = ["Schedule", "Settings", "given_of", "reading_of"]

#: A number, or text for one that changes: ``"1:0.01"`` falls in a straight line over the run,
#: ``"0.5@0,0.9@5"`` changes at the epochs named.
Schedule = Union[float, str]


class Settings(TypedDict, total=False):
    """What can be set about a training. What is left out has the default of the library.

    The names are the flags of ``harmonium train`` with underscores, and mean the same.
    """

    #: Passes over the data, for a DBN with each layer (20).
    epochs: int | None
    #: Searches for what is not given (hidden units, learning rate, sweeps, weight decay, epochs) by the
    #: likelihood of validation rows, and trains the best once more (none).
    effort: Literal["quick", "normal", "thorough"] | None
    #: The learning rate before decay (0.01).
    learning_rate: float | None
    #: Rows of one step (100).
    batch: int | None
    #: The model side: persistent chains, chains from the data, tempered chains, chains that exchange with
    #: frozen earlier machines, exact sums, or pseudo-likelihood for fully visible machines (``pcd``).
    rule: Literal["pcd", "cd", "pt", "ptt", "exact", "pseudo"] | None
    #: The data side where it is not in closed form (``auto``).
    posterior: Literal["auto", "exact", "mean-field", "gibbs"] | None
    #: What is climbed where labels are learned: the likelihood of rows and labels, that of the labels given
    #: the rows, or both (``generative``); ``"hybrid:0.01"`` gives the first a share of 0.01.
    objective: Literal["generative", "discriminative"] | str | None
    #: Sweeps of the model side per step; ``"auto"`` raises them where chains fall behind (1).
    k: Schedule | None
    #: Chains of pcd, pt and ptt (100).
    chains: int | None
    #: Temperatures of each chain of pt (10).
    replicas: int | None
    #: Samples of each frozen machine of ptt (10 times the chains).
    reservoir: int | None
    #: Acceptance below which ptt freezes a machine (0.3).
    freeze_below: float | None
    #: Acceptance below which ptt goes back to the last frozen machine (0.1).
    rollback_below: float | None
    #: How gradients become updates (``sgd``).
    optimizer: Literal["sgd", "adam"] | None
    #: What the learning rate is multiplied with over the run (``"1:0.01"``).
    decay: Schedule | None
    #: Momentum (``"0.5@0,0.9@5"``).
    momentum: Schedule | None
    #: L1 penalty on weights (0).
    l1: float | None
    #: L2 penalty on weights (0.0002).
    l2: float | None
    #: Wanted mean activity of hidden units (none).
    sparsity_target: float | None
    #: How strongly activities are pulled there (0.001).
    sparsity_cost: float | None
    #: Largest norm of the weights into one unit (none).
    max_norm: float | None
    #: Largest norm of the gradient (none; 10 with Gaussian units).
    clip: float | None
    #: Whether units are centered (True).
    center: bool | None
    #: How fast offsets follow the data (0.01).
    offset_rate: float | None
    #: Standard deviation of the first weights (0.01).
    initial_std: float | None
    #: Sweeps of clamped Gibbs sampling on the data side (10).
    posterior_sweeps: int | None
    #: Most sweeps of mean field on the data side (30).
    mean_field_sweeps: int | None
    #: Change below which mean field stops (0.001).
    mean_field_tolerance: float | None
    #: Numbers to sample and learn in; likelihoods are always float64 (``auto``).
    precision: Literal["auto", "f64", "f32", "i16"] | None
    #: Kind of the visible units (what the data looks like).
    visible: Literal["binary", "spin", "gaussian", "categorical", "counts"] | None
    #: Values of a categorical unit, or of one that counts (the largest in the data plus one; counts have more room).
    categories: int | None
    #: Neighbouring columns of bits of which exactly one is 1 in every row: ``auto`` makes each such group one category
    #: (``none``).
    groups: Literal["auto", "none"] | None
    #: How grey values become bits: drawn anew at each presentation, cut at a threshold, or as they are
    #: (what the data looks like).
    binarize: Literal["sample", "none"] | float | None
    #: The largest value that the data can hold (255, or what the data shows).
    full_scale: float | None
    #: Whether dark and light are exchanged (False).
    invert: bool | None
    #: Height and width of the picture in each row (a square, where there is one).
    image: tuple[int, int] | None
    #: What columns of a frame hold, by their names: ``binary``, ``gaussian``, ``gaussian:log``, ``categorical``,
    #: ``ordinal``, ``counts``, ``binomial:N``, ``label`` or ``ignore``; the others are found out.
    kinds: dict[str, str] | None
    #: What is done about words and columns that the training frame did not have (``refuse``).
    unknown: Literal["refuse", "missing"] | None
    #: What is measured: nothing, cheap numbers, or these and the likelihood (``likelihood``).
    watch: Literal["none", "pseudo", "likelihood"] | None
    #: Stop once the validation score has not risen for so many epochs (never).
    patience: int | None
    #: Share of the rows that is set apart for validation (0.1 with ``patience`` and with ``effort``).
    valid_share: float | None
    #: Passes over the data for each layer of a DBM before all are trained together (0).
    pretrain_epochs: int | None
    #: The learning rate of these passes (0.05).
    pretrain_learning_rate: float | None
    #: Passes of wake-sleep learning over all layers of a DBN together, after them (0).
    refine_epochs: int | None
    #: The learning rate of those passes (0.001).
    refine_learning_rate: float | None
    #: Seconds between checkpoints, with ``out`` (30).
    checkpoint_seconds: float | None


#: The names of all settings.
NAMES = tuple(Settings.__annotations__)
#: Those that say how data is read.
_READING = ("binarize", "full_scale", "invert", "image", "kinds", "unknown")
#: Those that may change over a run.
_SCHEDULES = ("k", "decay", "momentum")


def check_names(settings: Any, what: str, names: tuple[str, ...] = NAMES) -> None:
    """Refuses names that are not those of settings."""
    for name in settings:
        if name not in names:
            import difflib

            near = difflib.get_close_matches(name, names, 1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise TypeError(f"{what}() has no setting `{name}`{meant}")


def reading_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Those of the settings that say how data is read, as the library spells them."""
    said = {name: settings[name] for name in _READING if settings.get(name) is not None}
    if "binarize" in said:
        said["binarize"] = _text(said["binarize"])
    if "image" in said and not isinstance(said["image"], str):
        height, width = said["image"]
        said["image"] = f"{int(height)}x{int(width)}"
    return {name.replace("_", "-"): value for name, value in said.items()}


def given_of(settings: dict[str, Any], hidden: Any, seed: int) -> dict[str, Any]:
    """The other settings that were given, as the library spells them."""
    given: dict[str, Any] = {"seed": seed}
    if hidden is not None:
        given["hidden"] = [int(n) for n in ([hidden] if _is_number(hidden) else hidden)]
    for name, value in settings.items():
        if value is None or name in _READING:
            continue
        if name in _SCHEDULES:
            value = _text(value)
        elif hasattr(value, "item"):
            value = value.item()
        if name == "center":
            if not value:
                given["no-center"] = True
            continue
        if name == "layer_rates":
            value = [float(rate) for rate in value]
        given[name.replace("_", "-")] = value
    return given


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else repr(float(value))
