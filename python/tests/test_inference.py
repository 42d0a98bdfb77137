"""Inference: every method against sums over all states."""

from __future__ import annotations

import itertools

import harmonium
import numpy as np
import pytest


@pytest.fixture(scope="module")
def rbm() -> harmonium.RBM:
    rng = np.random.default_rng(3)
    return harmonium.RBM.from_arrays(rng.normal(0, 0.8, (4, 3)), rng.normal(0, 0.5, 4), rng.normal(0, 0.5, 3))


def weights_of(rbm: harmonium.RBM) -> tuple[np.ndarray, np.ndarray]:
    """All states, and minus the energy of each."""
    p = rbm.parameters()
    states = np.array(list(itertools.product([0, 1], repeat=7)), dtype=float)
    v, h = states[:, :4], states[:, 4:]
    coupled = np.einsum("ni,ij,nj->n", v, p["couplings.visible.hidden.weights"], h)
    return states, coupled + v @ p["layers.visible.bias"] + h @ p["layers.hidden.bias"]


def test_exact_answers_are_those_of_listing(rbm: harmonium.RBM) -> None:
    states, logs = weights_of(rbm)
    found = rbm.infer(pairs=True)
    assert found.bound == "exact" and found.log_z == pytest.approx(np.logaddexp.reduce(logs), abs=1e-10)
    p = np.exp(logs - found.log_z)
    names = [f"visible[{i}]" for i in range(4)] + [f"hidden[{j}]" for j in range(3)]
    assert list(found.marginals) == names
    for k, name in enumerate(names):
        assert found.marginals[name][1] == pytest.approx(p @ states[:, k], abs=1e-10)
        assert found.values[name].tolist() == [0, 1]
    both = p @ (states[:, 1] * states[:, 6])
    assert found.pairs["visible[1]", "hidden[2]"][1, 1] == pytest.approx(both, abs=1e-10)


def test_what_is_given_is_held(rbm: harmonium.RBM) -> None:
    states, logs = weights_of(rbm)
    held = (states[:, 0] == 1) & (states[:, 5] == 0)
    p = np.exp(logs - np.logaddexp.reduce(logs[held])) * held
    log_evidence = np.logaddexp.reduce(logs[held]) - np.logaddexp.reduce(logs)
    for found in (
        rbm.infer(where={"visible[0]": 1, "hidden[1]": 0.0}),
        rbm.infer(evidence={0: 1, 5: 0}),
        rbm.given([[1, np.nan, np.nan, np.nan]]).infer(where={"hidden[1]": 0}),
    ):
        assert found.log_evidence == pytest.approx(log_evidence, abs=1e-10)
        assert found.marginals["visible[2]"][1] == pytest.approx(p @ states[:, 2], abs=1e-10)
        assert "visible[0]" not in found.marginals


def test_all_methods_stand_side_by_side(rbm: harmonium.RBM) -> None:
    _, logs = weights_of(rbm)
    truth = np.logaddexp.reduce(logs)
    found = rbm.infer(method="all")
    by = {answer["method"]: answer for answer in found.answers}
    assert by["mean-field"]["log_z"] <= truth <= by["trw"]["log_z"]
    assert found.lower_bound <= truth + 1e-9 and truth - 1e-9 <= found.upper_bound
    text = str(found)
    assert text.count("\n") == len(found.answers) and "junction-tree" in text


@pytest.mark.parametrize("method", ["auto", "exact", "alternating", "annealing", "tempering"])
def test_the_most_probable_state(rbm: harmonium.RBM, method) -> None:
    states, logs = weights_of(rbm)
    held = states[:, 3] == 1
    best = rbm.most_probable(method=method, where={"visible[3]": 1})
    at = np.flatnonzero(held)[np.argmax(logs[held])]
    assert best.energy == pytest.approx(-logs[at], abs=1e-10)
    assert np.concatenate([best.layers["visible"], best.layers["hidden"]]).tolist() == states[at].tolist()
    assert best.states == states[at].astype(int).tolist()
    again = rbm.given([[np.nan, np.nan, np.nan, 1]]).most_probable(method=method)
    assert again.energy == best.energy


def test_bad_questions_are_answered_with_a_sentence(rbm: harmonium.RBM) -> None:
    with pytest.raises(ValueError, match="visible\\[9\\]"):
        rbm.infer(where={"visible[9]": 1})
    with pytest.raises(ValueError, match="variable 7"):
        rbm.infer(evidence={7: 0})
    with pytest.raises(ValueError, match="one of auto"):
        rbm.infer(method="guess")
    with pytest.raises(ValueError, match="2"):
        rbm.given(np.full((2, 4), np.nan)).infer()
