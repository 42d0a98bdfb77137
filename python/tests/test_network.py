"""Feed-forward nets: fine-tuning, random weights, PyTorch."""

from __future__ import annotations

import pickle

import harmonium
import numpy as np
import pytest
from harmonium import DBM, DBN, RBM, Network
from harmonium.errors import InvalidError


@pytest.fixture(scope="module")
def parts(digits, labels):
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    return digits[:1000], names[labels[:1000]], digits[1000:1400], names[labels[1000:1400]]


@pytest.mark.parametrize("model", [RBM(40), DBM([40, 20]), DBN([40, 20])], ids=lambda m: type(m).__name__)
def test_models_become_nets(model, parts, tmp_path):
    X, y, X_new, y_new = parts
    model.set_params(epochs=20, learning_rate=0.05, watch="none").fit(X)
    before = model.to_bytes()
    net = model.finetune(X, y, epochs=30, batch=10)
    assert isinstance(net, Network) and model.to_bytes() == before
    assert net.score(X_new, y_new) > 0.85
    assert set(net.predict(X_new)) <= set(net.classes)
    np.testing.assert_allclose(net.predict_proba(X_new).sum(axis=1), 1, atol=1e-5)
    assert net.about["kind"] == "network" and len(net.history["epoch"]) == 30
    assert "svg" in net._repr_html_()
    net.save(tmp_path / "net.safetensors")
    for again in (harmonium.load(tmp_path / "net.safetensors"), pickle.loads(pickle.dumps(net))):
        assert isinstance(again, Network)
        assert (again.predict_proba(X_new) == net.predict_proba(X_new)).all()
    further = net.finetune(X, y, epochs=2, batch=10)
    assert further.score(X_new, y_new) > 0.85
    with pytest.raises(InvalidError, match="distribution"):
        net.log_partition()


def test_nets_of_random_weights(parts):
    X, y, X_new, y_new = parts
    net = Network([60], epochs=20, random_state=1).fit(X, y, valid=(X_new, y_new))
    assert net.score(X_new, y_new) > 0.85
    assert (Network([60], epochs=20, random_state=1).fit(X, y, valid=(X_new, y_new)).to_bytes()) == net.to_bytes()
    adam = Network([60], epochs=30, batch=20, optimizer="adam", dropout=0.2, center=False).fit(X, y)
    assert adam.score(X_new, y_new) > 0.8
    with pytest.raises(TypeError, match="did you mean `dropout`"):
        Network([3], dropuot=0.5)


def test_tags_values_and_the_input(parts):
    X, y, _, _ = parts
    tags = np.stack([y == "zero", np.isin(y, ["one", "seven"])], axis=1).astype(int)
    net = Network([60], epochs=30).fit(X, tags)
    assert net.answer(X).shape == (1000, 2)
    assert ((net.answer(X) > 0.5) == tags).mean() > 0.95
    values = np.stack([X.mean(axis=1), X[:, :32].mean(axis=1)], axis=1) - 5
    net = Network([60], epochs=60).fit(X, values)
    assert np.abs(net.answer(X) - values).mean() < 0.5 * np.abs(values - values.mean(axis=0)).mean()
    net = Network([30], epochs=30).fit(X)
    assert net.answer(X).shape == X.shape


def test_callbacks_end_the_training(parts):
    X, y, _, _ = parts
    heard = []
    net = Network([10], epochs=50).fit(X, y, callback=lambda e: heard.append(e) or e.get("epoch", 0) >= 3)
    assert net.about["epoch"] == 3 and heard


def test_pytorch_state_dicts(parts):
    X, y, X_new, _ = parts
    net = Network([20, 10], epochs=5).fit((X > 7).astype(float), y)
    state = net.state_dict()
    value = (X_new > 7).astype(np.float32)
    for k in (0, 2, 4):
        value = value @ state[f"{k}.weight"].T + state[f"{k}.bias"]
        value = np.maximum(value, 0) if k < 4 else value
    expected = net.predict_proba((X_new > 7).astype(float))
    value = np.exp(value - value.max(axis=1, keepdims=True))
    np.testing.assert_allclose(value / value.sum(axis=1, keepdims=True), expected, atol=1e-5)
    again = Network.from_state_dict(state, visible="binary", classes=net.classes)
    np.testing.assert_allclose(again.predict_proba((X_new > 7).astype(float)), expected, atol=1e-6)
    real = Network.from_state_dict({"a.weight": np.ones((2, 3)), "b.weight": np.eye(2)})
    assert real.predict_proba(np.ones((4, 3)) / 3).shape == (4, 2)
