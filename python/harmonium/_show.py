"""A model as a page for notebooks: its graph, its filters, its curves. Nothing but numpy is needed."""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ._models import Model

#: Filters of one layer that are shown.
_SHOWN = 36
#: Curves that are worth showing, the most telling first.
_CURVES = (
    "log_likelihood.valid",
    "log_likelihood.train",
    "bound.valid",
    "bound.train",
    "pseudo_likelihood.valid",
    "pseudo_likelihood.train",
    "gradient_norm",
)


def page(model: Model) -> str:
    """The page of a model."""
    head = f"<strong>{html.escape(repr(model))}</strong>"
    if not model.is_fitted:
        return f"<div>{head}<p>not trained yet: call <code>fit</code></p></div>"
    about = model.about
    words = f"{about['n_parameters']:,} parameters, epoch {about['epoch']}"
    if model.stop is not None:
        words += f", {model.stop}"
    parts = [head, f"<p>{html.escape(words)}</p>", graph(about), curves(model.history), pictures(model)]
    return f"<div style='font-family:sans-serif'>{''.join(parts)}</div>"


def graph(about: dict[str, Any]) -> str:
    """The layers as boxes, from the data upwards, and the couplings as lines between them."""
    layers = about["layers"]
    place = {layer["name"]: (10 + 170 * i, 10) for i, layer in enumerate(layers)}
    lines, boxes = [], []
    for a, b in about["couplings"]:
        (xa, ya), (xb, yb) = sorted([place[a], place[b]])
        if a == b:
            lines.append(f"<path d='M{xa + 50},{ya + 44} c0,24 40,24 40,0' fill='none' stroke='#888'/>")
        elif abs(xb - xa) > 170:
            top = f"M{xa + 70},{ya} C{xa + 70},{ya - 14} {xb + 70},{yb - 14} {xb + 70},{yb}"
            lines.append(f"<path d='{top}' fill='none' stroke='#888'/>")
        else:
            lines.append(f"<path d='M{xa + 140},{ya + 22} H{xb}' stroke='#888'/>")
    for layer in layers:
        x, y = place[layer["name"]]
        colour = "#dce9f5" if layer["role"] == "visible" else "#f5ead0"
        boxes.append(
            f"<rect x='{x}' y='{y}' width='140' height='44' rx='6' fill='{colour}' stroke='#666'/>"
            f"<text x='{x + 70}' y='{y + 19}' text-anchor='middle' font-size='13'>{html.escape(layer['name'])}</text>"
            f"<text x='{x + 70}' y='{y + 36}' text-anchor='middle' font-size='11' fill='#444'>"
            f"{layer['n_units']} {html.escape(layer['units'])}</text>"
        )
    width = 170 * len(layers) + 10
    return (
        f"<svg width='{width}' height='80' viewBox='0 0 {width} 80' role='img' aria-label='layers and couplings'>"
        f"{''.join(lines + boxes)}</svg>"
    )


def curves(history: dict[str, NDArray[np.float64]]) -> str:
    """The most telling numbers of the training, by epoch."""
    names = [name for name in _CURVES if name in history and np.isfinite(history[name]).sum() > 1][:2]
    if not names:
        return ""
    epoch = history["epoch"]
    drawn = "".join(_curve(epoch, history[name], name) for name in names)
    return f"<div>{drawn}</div>"


def _curve(epoch: NDArray[np.float64], values: NDArray[np.float64], name: str) -> str:
    seen = np.isfinite(values)
    x, y = epoch[seen], values[seen]
    low, high = float(y.min()), float(y.max())
    spread = (high - low) or 1.0
    across = 260 * (x - x[0]) / max(float(x[-1] - x[0]), 1.0) + 10
    up = 90 - 70 * (y - low) / spread
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up))
    return (
        f"<svg width='300' height='120' role='img' aria-label='{html.escape(name)} by epoch'>"
        f"<polyline points='{points}' fill='none' stroke='#2266aa' stroke-width='1.5'/>"
        f"<text x='10' y='12' font-size='11'>{html.escape(name)}: {y[-1]:.4g} at epoch {x[-1]:.0f}</text>"
        f"<text x='10' y='112' font-size='10' fill='#666'>from {low:.4g} to {high:.4g}</text></svg>"
    )


def pictures(model: Model) -> str:
    """What the units of each hidden layer look for, the strongest first, where rows are pictures."""
    parts = []
    for layer, filters in model.filters().items():
        shape = model._fitted().image(filters.shape[1])
        if shape is None or not len(filters):
            continue
        order = np.argsort(-(filters**2).sum(axis=1), kind="stable")[:_SHOWN]
        drawn = png(mosaic(filters[order], shape))
        caption = html.escape(f"{layer}: what its {len(filters)} units look for")
        parts.append(f"<figure style='margin:4px 0'>{drawn}<figcaption>{caption}</figcaption></figure>")
    return "".join(parts)


def mosaic(tiles: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Tiles side by side with a line between them, all on one scale: grey is zero."""
    height, width = shape
    n_columns = math.ceil(math.sqrt(len(tiles)))
    n_rows = math.ceil(len(tiles) / n_columns)
    scale = float(np.abs(tiles).max()) or 1.0
    out = np.full((n_rows * (height + 1) + 1, n_columns * (width + 1) + 1), 255, dtype=np.uint8)
    for k, tile in enumerate(tiles):
        row, column = 1 + (k // n_columns) * (height + 1), 1 + (k % n_columns) * (width + 1)
        grey = 127.5 * (1 + tile[: height * width].reshape(height, width) / scale)
        out[row : row + height, column : column + width] = np.clip(np.rint(grey), 0, 255)
    return out


def png(pixels: NDArray[np.uint8]) -> str:
    """A grey picture as a tag."""
    height, width = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.zeros((height, width + 1), dtype=np.uint8)
    rows[:, 1:] = pixels
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    file = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    shown = min(360, 3 * width)
    text = base64.b64encode(file).decode()
    return f"<img width='{shown}' style='image-rendering:pixelated' src='data:image/png;base64,{text}' alt=''/>"
