"""Several modalities in one machine."""

from __future__ import annotations

from pathlib import Path

import harmonium
import numpy as np
import pytest
from harmonium import MultimodalDBM

#: Bars in pictures of 4x4; which row is on is the tag.
BARS = {"picture": np.repeat(np.eye(4, dtype=np.uint8), 4, axis=1), "tags": np.eye(4, dtype=np.uint8)}


def noisy(n: int) -> dict[str, np.ndarray]:
    """Bars of which a tenth of the pixels and a twentieth of the tags are flipped."""
    rng = np.random.default_rng(0)
    flipped = {"picture": 0.1, "tags": 0.05}
    made = {}
    for name, clean in BARS.items():
        rows = clean[np.arange(n) % 4]
        made[name] = rows ^ (rng.random(rows.shape) < flipped[name]).astype(np.uint8)
    return made


def trained(rows: dict[str, np.ndarray]) -> MultimodalDBM:
    made = MultimodalDBM(
        {"picture": [8]}, 8, epochs=100, pretrain_epochs=20, batch=10, learning_rate=0.02, watch="none"
    )
    return made.fit(rows)


@pytest.fixture(scope="module")
def dbm() -> MultimodalDBM:
    return trained(noisy(400))


def find_each_other(dbm: MultimodalDBM) -> None:
    tags = dbm.complete({"picture": BARS["picture"]}, of="tags")
    assert tags.argmax(1).tolist() == [0, 1, 2, 3]
    pictures = dbm.complete({"tags": BARS["tags"]}, of="picture")
    assert pictures.reshape(4, 4, 4).sum(2).argmax(1).tolist() == [0, 1, 2, 3]


def test_each_modality_is_found_from_the_other(dbm: MultimodalDBM) -> None:
    assert dbm.modalities == ["picture", "tags"]
    find_each_other(dbm)


def test_rows_may_lack_a_modality_in_training() -> None:
    rows = noisy(400)
    tags = rows["tags"].astype(np.float32)
    tags[np.random.default_rng(1).random(400) < 0.5] = np.nan
    find_each_other(trained({"picture": rows["picture"], "tags": tags}))


def test_conditionals_and_retrieval(dbm: MultimodalDBM) -> None:
    rows = noisy(400)
    for of in ("tags", "picture"):
        score = dbm.conditional_log_likelihood(rows, of=of)
        assert score.value > score.baseline + 1.0
    nearness, found = dbm.retrieve({"picture": BARS["picture"]}, {"tags": BARS["tags"]})
    assert nearness.argmax(1).tolist() == [0, 1, 2, 3] and found["median_rank"] == 1.0


def test_a_model_is_the_same_after_its_file(dbm: MultimodalDBM, tmp_path: Path) -> None:
    dbm.save(tmp_path / "m.safetensors")
    again = harmonium.load(tmp_path / "m.safetensors")
    assert isinstance(again, MultimodalDBM) and again.modalities == dbm.modalities
    given = {"picture": BARS["picture"]}
    assert np.array_equal(again.complete(given, of="tags"), dbm.complete(given, of="tags"))
