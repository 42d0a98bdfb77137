"""Scripts with cells (``# %%``) as notebooks.

    python python/examples/to_notebook.py            # writes docs/notebooks/*.ipynb
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parents[1] / "docs" / "notebooks"


def cells_of(text: str) -> list[dict[str, Any]]:
    """The cells of a script."""
    cells = []
    for k, part in enumerate(text.split("# %%")[1:]):
        head, _, body = part.partition("\n")
        lines = body.strip("\n").split("\n")
        cell: dict[str, Any] = {"id": f"cell-{k}", "metadata": {}}
        if "[markdown]" in head:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
            cell["cell_type"] = "markdown"
        else:
            cell.update(cell_type="code", execution_count=None, outputs=[])
        cell["source"] = [line + "\n" for line in lines[:-1]] + lines[-1:]
        cells.append(cell)
    return cells


def notebook(script: Path) -> str:
    """The notebook of a script, as text."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    page = {"cells": cells_of(script.read_text()), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(page, indent=1, ensure_ascii=False) + "\n"


def scripts() -> list[Path]:
    """All scripts that have cells."""
    return [path for path in sorted(HERE.glob("*.py")) if path.read_text().startswith("# %%")]


if __name__ == "__main__":
    for script in scripts():
        (NOTEBOOKS / f"{script.stem}.ipynb").write_text(notebook(script))
