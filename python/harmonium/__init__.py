"""Boltzmann machines of every shape, from one energy.

>>> import harmonium
>>> rbm = harmonium.RBM(16, epochs=20).fit("digits")
>>> rbm
RBM(16, epochs=20)

:class:`RBM`, :class:`BM`, :class:`DBM`, :class:`DBN`, :class:`MultimodalDBM` and :class:`Network` are trained with ``fit``; :func:`load` reads the
models of the command line. ``harmonium.sklearn`` has estimators for scikit-learn.
"""

from __future__ import annotations

from . import errors
from ._core import version as _version
from ._families import BM, DBM, DBN, RBM
from ._inference import Inference, MostProbable
from ._inputs import Rows, Seed
from ._models import Given, Model, load
from ._multimodal import MultimodalDBM
from ._network import Network, NetworkSettings
from ._results import Classes, Completion, Drawn, LogLikelihood, LogPartition
from ._settings import Schedule, Settings
from ._threads import set_threads, threads
from .errors import HarmoniumError, MixingWarning, TrainingWarning

__all__ = [
    "BM",
    "DBM",
    "DBN",
    "RBM",
    "Classes",
    "Completion",
    "Drawn",
    "Given",
    "HarmoniumError",
    "Inference",
    "LogLikelihood",
    "LogPartition",
    "MixingWarning",
    "Model",
    "MostProbable",
    "MultimodalDBM",
    "Network",
    "NetworkSettings",
    "Rows",
    "Schedule",
    "Seed",
    "Settings",
    "TrainingWarning",
    "errors",
    "load",
    "set_threads",
    "threads",
]

__version__ = _version()
