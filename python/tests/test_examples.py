"""The examples run, and the notebooks are those of the scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

from to_notebook import NOTEBOOKS, notebook, scripts  # noqa: E402


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_an_example_runs_at_small_size(script, tmp_path):
    environment = {**os.environ, "HARMONIUM_SMALL": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:__main__", str(script)],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_notebooks_are_current(script):
    written = (NOTEBOOKS / f"{script.stem}.ipynb").read_text()
    assert written == notebook(script), "run python/examples/to_notebook.py"
