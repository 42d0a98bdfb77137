"""Models: what can be asked of them, and whether the answers are right."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import harmonium
import numpy as np
import pytest
from harmonium import BM, DBM, DBN, RBM
from harmonium.errors import InvalidError, MixingWarning, NotFittedError


@pytest.fixture(scope="module")
def rbm(stripes) -> RBM:
    return RBM(4, epochs=60, learning_rate=0.05, batch=20, k=5).fit(stripes)


def enumerated(rbm: RBM) -> tuple[np.ndarray, np.ndarray, float]:
    """All states, their log-probabilities and ln Z, by the definition of the energy."""
    p = rbm.parameters()
    w, b, c = p["couplings.visible.hidden.weights"], p["layers.visible.bias"], p["layers.hidden.bias"]
    mu, nu = p["layers.visible.offset"], p["layers.hidden.offset"]
    v = np.array(list(itertools.product([0, 1], repeat=len(b))), dtype=float)
    theta = c + (v - mu) @ w
    constant = json.loads(rbm._fitted().about()).get("constant", 0.0)
    log = v @ b + np.logaddexp(0, theta).sum(axis=1) - ((v - mu) @ w) @ nu - constant
    log_z = np.logaddexp.reduce(log)
    return v, log - log_z, log_z


def test_likelihoods_are_those_of_enumeration(rbm, stripes):
    v, log_p, log_z = enumerated(rbm)
    found = rbm.log_partition()
    assert found.method == "exact" and found.lower == found.upper
    place = stripes @ (2 ** np.arange(5, -1, -1))
    likelihood = rbm.log_likelihood(stripes)
    np.testing.assert_allclose(likelihood.rows, log_p[place], atol=1e-9)
    assert rbm.score(stripes) == pytest.approx(log_p[place].mean(), abs=1e-9)
    assert likelihood.value > likelihood.baseline
    np.testing.assert_allclose(rbm.score_samples(v.astype(np.uint8)), log_p, atol=1e-9)


def test_samples_follow_the_distribution(rbm):
    v, log_p, _ = enumerated(rbm)
    drawn = rbm.draw(4000, random_state=3)
    assert drawn.verdict == "exact" and drawn.values.shape == (4000, 6)
    counts = np.bincount((drawn.values @ (2 ** np.arange(5, -1, -1))).astype(int), minlength=64)
    expected = 4000 * np.exp(log_p)
    chi2 = ((counts - expected) ** 2 / expected).sum()
    # 63 degrees of freedom: mean 63, standard deviation 11.2.
    assert chi2 < 63 + 6 * 11.2


def test_completions_are_conditional_means(rbm):
    v, log_p, _ = enumerated(rbm)
    row = np.array([[1, np.nan, 0, np.nan, 0, 0]])
    fits = (v[:, [0, 2, 4, 5]] == [1, 0, 0, 0]).all(axis=1)
    means = (np.exp(log_p[fits])[:, None] * v[fits]).sum(axis=0) / np.exp(log_p[fits]).sum()
    np.testing.assert_allclose(rbm.complete(row)[0], means, atol=1e-9)
    masked = rbm.complete([[1, 0, 0, 1, 0, 0]], mask=[1, 0, 1, 0, 1, 1])
    np.testing.assert_allclose(masked[0], means, atol=1e-9)
    filled = rbm.given(row).fill(method="gibbs", random_state=1)
    assert np.abs(filled.values[0] - means).max() < 6 * filled.errors.max() + 1e-3
    held = rbm.given(row).sample(50)
    assert held.shape == (50, 6) and (held[:, 0] == 1).all() and (held[:, 2] == 0).all()


def test_features_are_means_of_hidden_units(rbm, stripes):
    p = rbm.parameters()
    w, c, mu = p["couplings.visible.hidden.weights"], p["layers.hidden.bias"], p["layers.visible.offset"]
    expected = 1 / (1 + np.exp(-(c + (stripes - mu) @ w)))
    np.testing.assert_allclose(rbm.features(stripes), expected, atol=1e-5)
    assert rbm.features(stripes, layer="hidden").shape == (300, 4)
    with pytest.raises(InvalidError, match="no hidden layer `top`"):
        rbm.features(stripes, layer="top")


def test_calls_without_a_seed_draw_other_samples(stripes):
    def twice():
        rbm = RBM(3, epochs=2, random_state=5).fit(stripes)
        return rbm.sample(20), rbm.sample(20)

    (a, b), (c, d) = twice(), twice()
    assert (a != b).any()
    assert (a == c).all() and (b == d).all()
    rbm = RBM(3, epochs=2).fit(stripes)
    assert (rbm.sample(20, random_state=1) == rbm.sample(20, random_state=1)).all()


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, lambda n: n])
def test_seeds_of_every_sort(make, stripes):
    a, b = (RBM(3, epochs=2, random_state=make(7)).fit(stripes) for _ in range(2))
    assert a.to_bytes() == b.to_bytes()
    assert a.to_bytes() != RBM(3, epochs=2, random_state=make(8)).fit(stripes).to_bytes()


def test_every_kind_answers(digits, labels):
    X = digits[:300]
    bits = (X > 7).astype(np.uint8)
    for model in (
        BM(6, lateral=["visible", "hidden"], epochs=2, watch="none").fit(bits),
        DBM([12, 6], epochs=2, pretrain_epochs=1, watch="none").fit(X),
        DBN([12, 6], epochs=2, watch="none").fit(X),
    ):
        assert model.stop == "finished"
        with pytest.warns(MixingWarning, match="too few"):
            assert model.sample(4, sweeps=2, method="gibbs").shape == (4, 64)
        hidden = np.atleast_1d(model.hidden).sum()
        assert model.features(bits if isinstance(model, BM) else X).shape == (300, hidden)
        assert "svg" in model._repr_html_()
        again = type(model).from_bytes(model.to_bytes())
        assert again.to_bytes() == model.to_bytes() and type(again) is type(model)
        assert list(np.atleast_1d(again.hidden)) == list(np.atleast_1d(model.hidden))


def test_gaussian_and_categorical_units(digits):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 5))
    X = (X - X.mean(0)) / X.std(0)
    rbm = RBM(8, epochs=30, visible="gaussian").fit(X)
    assert np.isfinite(rbm.score(X))
    codes = rng.integers(0, 4, size=(200, 3))
    potts = RBM(4, epochs=10, visible="categorical", categories=4).fit(codes)
    assert potts.sample(5).shape == (5, 12)
    assert potts.score(codes) < 0


def test_labels_are_learned_and_told(digits, labels):
    X, y = digits[:600], labels[:600]
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    rbm = RBM(64, epochs=150, learning_rate=0.1, batch=50, watch="none").fit(X, names[y])
    found = rbm.classify(X)
    assert found.probabilities.shape == (600, 10)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    assert (found.predicted == names[y]).mean() > 0.9
    with pytest.warns(MixingWarning, match="too few"):
        assert rbm.sample(2, label="three", sweeps=2, method="gibbs").shape == (2, 74)
    small = RBM(8, epochs=5, watch="none").fit(X, names[y])
    held_out = small.score(digits[600:700], names[labels[600:700]])
    assert np.isfinite(held_out) and held_out < small.score(digits[600:700])
    with pytest.raises(InvalidError, match="no class `ten`"):
        rbm.sample(1, label="ten")


def test_validation_keeps_the_best_model(digits):
    rbm = RBM(32, epochs=30, learning_rate=0.1, patience=5, random_state=1).fit(digits[:400])
    assert rbm.stop in ("finished", "stopped")
    assert rbm._report["best_epoch"] is not None
    rbm = RBM(8, epochs=4).fit(digits[:200], valid=digits[200:300])
    assert "log_likelihood.valid" in rbm.history


def test_holes_are_learned_around(stripes):
    rng = np.random.default_rng(2)
    X = stripes.astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    rbm = RBM(4, epochs=100, learning_rate=0.1, batch=20, watch="none").fit(X)
    whole = RBM(4, epochs=100, learning_rate=0.1, batch=20, watch="none").fit(stripes)
    assert rbm.score(stripes) > whole.score(stripes) - 0.3
    assert np.isfinite(rbm.score(X))


def test_weights_count(stripes):
    first = (stripes[:, 0] == 1) & (stripes[:, 1] == 1)
    rbm = RBM(4, epochs=60, learning_rate=0.1, batch=20, watch="none")
    only = rbm.fit(stripes, sample_weight=np.where(first, 1.0, 0.0)).sample(500).mean(axis=0)
    assert only[0] > 0.8 and only[2:].max() < 0.2


def test_callbacks_hear_of_every_epoch_and_end_it(stripes):
    heard = []

    def three(event):
        heard.append(event["event"])
        return event.get("epoch") == 3

    rbm = RBM(3, epochs=10).fit(stripes, callback=three)
    assert heard.count("epoch") == 3 and rbm.stop == "stopped"
    assert list(rbm.history["epoch"]) == [1, 2, 3]

    def fails(event):
        raise KeyError("mine")

    other = RBM(3, epochs=10)
    with pytest.raises(KeyError, match="mine"):
        other.fit(stripes, callback=fails)
    assert other.is_fitted


def test_a_training_that_diverges_leaves_the_last_good_model():
    X = np.random.default_rng(0).normal(size=(200, 5)) * 100
    rbm = RBM(5, epochs=20, visible="gaussian", learning_rate=1e300, watch="none")
    with pytest.raises(harmonium.errors.DivergedError) as caught:
        rbm.fit(X)
    assert isinstance(caught.value, ArithmeticError)
    assert "learning_rate" in caught.value.hint and "--" not in caught.value.hint
    assert rbm.stop == "diverged" and np.isfinite(rbm.weights).all()


def test_what_is_not_trained_says_so(stripes):
    rbm = RBM(3)
    assert "not trained" in rbm._repr_html_() and repr(rbm) == "RBM(3)"
    with pytest.raises(NotFittedError, match="RBM has not been trained") as caught:
        rbm.sample(3)
    assert caught.value.hint == "call `fit` first"


def test_bad_settings_are_named(stripes):
    with pytest.raises(TypeError, match="did you mean `learning_rate`"):
        RBM(3, learningrate=0.1)
    with pytest.raises(ValueError, match="`learning-rate` is -1") as caught:
        RBM(3, learning_rate=-1).fit(stripes)
    assert caught.value.hint
    with pytest.raises(TypeError, match="`epochs` has the wrong type"):
        RBM(3, epochs="many").fit(stripes)
    with pytest.raises(ValueError, match="hidden layers"):
        DBN([3]).fit(stripes)
    with pytest.raises(ValueError, match="cannot hold 5"):
        RBM(3, visible="spin").fit(stripes * 5)


def test_what_happens_in_training_is_told(stripes):
    with pytest.warns(harmonium.TrainingWarning, match="chains do not mix"):
        rbm = RBM(4, epochs=100, learning_rate=0.1, batch=20).fit(stripes)
    assert rbm.is_fitted and any(e["event"] == "warning" for e in rbm.events)


def test_warnings_say_where_chains_have_not_mixed():
    model = harmonium.load("curie-weiss:200,2")
    with pytest.warns(MixingWarning):
        model.sample(10, method="gibbs", sweeps=100)


def test_models_of_the_command_line(tmp_path, digits, program):
    """Trained here or there, the bytes of the model are the same."""
    data = tmp_path / "digits.npy"
    np.save(data, digits)
    asked = "--hidden 12 --epochs 4 --seed 3 --learning-rate 0.05".split()
    subprocess.run([program, "train", "rbm", str(data), *asked, "--out", str(tmp_path / "cli"), "--quiet"], check=True)
    rbm = RBM(12, epochs=4, random_state=3, learning_rate=0.05).fit(digits, out=tmp_path / "here")
    theirs = (tmp_path / "cli" / "model.safetensors").read_bytes()
    assert (tmp_path / "here" / "model.safetensors").read_bytes() == theirs
    assert rbm.to_bytes() == theirs
    read = harmonium.load(tmp_path / "cli")
    assert isinstance(read, RBM) and read.to_bytes() == theirs
    assert read.get_params()["learning_rate"] == 0.05 and read.random_state == 3
    # In memory nothing is fingerprinted; every number is the same.
    quick = RBM(12, epochs=4, random_state=3, learning_rate=0.05).fit(digits)
    for name, values in read.parameters().items():
        assert (quick.parameters()[name] == values).all(), name
    # The verbs agree, too.
    said = subprocess.run(
        [program, "score", str(tmp_path / "here"), str(data), "--json", "--quiet"], check=True, capture_output=True
    )
    assert json.loads(said.stdout)["log_likelihood"] == rbm.score(digits)
    with pytest.raises(FileExistsError) as caught:
        RBM(2, epochs=1).fit(digits, out=tmp_path / "here")
    assert "overwrite=True" in caught.value.hint


@pytest.mark.parametrize(
    "train, settings",
    [
        ("dbm --hidden 8,4 --pretrain-epochs 1", lambda **s: DBM([8, 4], pretrain_epochs=1, **s)),
        ("dbn --hidden 8,4 --refine-epochs 1", lambda **s: DBN([8, 4], refine_epochs=1, **s)),
        ("bm --hidden 4 --lateral visible --binarize 0.5", lambda **s: BM(4, binarize=0.5, **s)),
        ("rbm --hidden 6 --patience 1 --k auto --no-center", lambda **s: RBM(6, patience=1, k="auto", center=False, **s)),
        ("rbm --hidden 6 --visible gaussian --decay 1", lambda **s: RBM(6, visible="gaussian", decay=1, **s)),
        (
            "rbm --hidden 6 --visible gaussian --lateral none",
            lambda **s: RBM(6, visible="gaussian", lateral="none", **s),
        ),
    ],
)
def test_other_models_of_the_command_line(tmp_path, digits, program, train, settings):
    data = tmp_path / "digits.npy"
    np.save(data, digits[:300])
    kind, *flags = train.split()
    command = [program, "train", kind, str(data), *flags, "--epochs", "2", "--out", str(tmp_path / "cli"), "--quiet"]
    subprocess.run(command, check=True)
    made = settings(epochs=2).fit(digits[:300], out=tmp_path / "here")
    assert type(harmonium.load(tmp_path / "cli" / "model.safetensors")) is type(made)
    assert made.to_bytes() == (tmp_path / "cli" / "model.safetensors").read_bytes()


def test_a_search_chooses_what_is_not_given(tmp_path: Path) -> None:
    X = np.repeat(np.eye(8, dtype=np.uint8), 20, axis=0)
    rbm = harmonium.RBM(effort="quick", learning_rate=0.1).fit(X, out=tmp_path / "run")
    assert len(rbm.trials) >= 3
    assert rbm.hidden is None and rbm.about["config"]["learning-rate"] == 0.1
    best = max((t for t in rbm.trials if t["lower"] is not None), key=lambda t: t["lower"])
    assert rbm.about["config"]["hidden"] == best["hidden"]
    assert (tmp_path / "run" / "trials.jsonl").read_text().count("\n") == len(rbm.trials)
    # The settings that were found make the same model again.
    config = rbm.about["config"]
    again = harmonium.RBM(
        config["hidden"][0], epochs=best["epochs"], learning_rate=0.1, l2=config["l2"], k=config["k"],
        valid_share=config["valid-share"],
    ).fit(X)
    found = rbm.parameters()
    assert all(np.array_equal(values, found[name]) for name, values in again.parameters().items())


def test_a_search_says_what_does_not_go_with_it(tmp_path: Path) -> None:
    X = np.eye(8)
    with pytest.raises(ValueError, match="epochs"):
        harmonium.RBM(effort="quick", epochs=3).fit(X)
    with pytest.raises(ValueError, match="deep belief network"):
        harmonium.DBN(effort="quick").fit(X)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.toml").write_text("")
    with pytest.raises(FileExistsError):
        harmonium.RBM(effort="quick").fit(X, out=tmp_path / "run")


def test_defaults_without_a_search_are_fixed() -> None:
    assert "None" not in repr(harmonium.RBM()) and harmonium.RBM(epochs=1).fit(np.eye(4)).about["config"]["hidden"] == [100]
    assert harmonium.DBM(epochs=1).fit(np.eye(4)).about["config"]["hidden"] == [100, 50]
