"""What the tests share."""

from __future__ import annotations

import os
from pathlib import Path

# Before numpy is there: threads of its products that wait for each other on a busy machine take minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """The 8×8 digits as whole numbers from 0 to 16."""
    from sklearn.datasets import load_digits

    return load_digits().data


@pytest.fixture(scope="session")
def labels() -> np.ndarray:
    """Which digit each of them is."""
    from sklearn.datasets import load_digits

    return load_digits().target


@pytest.fixture(scope="session")
def stripes() -> np.ndarray:
    """Rows of 6 bits that are one of three patterns, with some noise."""
    rng = np.random.default_rng(0)
    patterns = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]], dtype=np.uint8)
    return patterns[rng.integers(3, size=300)] ^ (rng.random((300, 6)) < 0.05)


@pytest.fixture(scope="session")
def program() -> str:
    """The command line, which the package is compared with."""
    path = os.environ.get("HARMONIUM_PROGRAM", str(ROOT / "target" / "debug" / "harmonium"))
    if not Path(path).exists():
        if "HARMONIUM_PROGRAM" in os.environ:
            pytest.fail(f"there is no program at {path}")
        pytest.skip("the command line has not been built")
    return path
