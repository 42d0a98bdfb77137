"""Rows of every sort give the same model, and those that do not fit are refused with a way out."""

from __future__ import annotations

import harmonium
import numpy as np
import pytest
import scipy.sparse as sp
from harmonium import RBM
from harmonium.errors import InvalidError


def trained(X, **more) -> bytes:
    return RBM(3, epochs=2, watch="none", **more).fit(X).to_bytes()


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


FORMS = {
    "bool": lambda X: X.astype(bool),
    "uint8": lambda X: X.astype(np.uint8),
    "int8": lambda X: X.astype(np.int8),
    "int32": lambda X: X.astype(np.int32),
    "int64": lambda X: X.astype(np.int64),
    "uint64": lambda X: X.astype(np.uint64),
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X.astype(np.float64),
    "big-endian": lambda X: X.astype(">f8"),
    "fortran": lambda X: np.asfortranarray(X.astype(np.float64)),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1][::-1],
    "read-only": read_only,
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "masked": lambda X: np.ma.masked_array(X.astype(float)),
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "coo_matrix": sp.coo_matrix,
    "csr_array": sp.csr_array,
    "lil_array": sp.lil_array,
    "float32 csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "bool csr": lambda X: sp.csr_array(X.astype(bool)),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_sort_are_the_same_rows(form, stripes):
    assert trained(FORMS[form](stripes)) == trained(stripes)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_grey_values_of_every_sort(dtype, digits):
    assert trained(digits[:100].astype(dtype)) == trained(digits[:100])
    dense = trained(digits[:100])
    assert trained(sp.csr_array(digits[:100])) == dense


def test_data_is_not_changed(stripes):
    X = stripes.astype(np.float64)
    before = X.copy()
    rbm = RBM(3, epochs=2).fit(X)
    rbm.score(X), rbm.features(X), rbm.complete(X)
    assert (X == before).all()


def test_pictures_have_their_shape(digits):
    images = digits[:100].reshape(-1, 8, 8)
    rbm = RBM(3, epochs=1, watch="none").fit(images)
    assert rbm.about["image"] == [8, 8]
    # Without the shape everything but its memory is the same.
    assert (rbm.weights == RBM(3, epochs=1, watch="none").fit(digits[:100]).weights).all()
    wide = RBM(3, epochs=1, watch="none", image=(4, 16)).fit(digits[:100])
    assert wide.about["image"] == [4, 16] and "<img" in wide._repr_html_()


def test_new_rows_are_read_as_those_of_the_training(digits):
    rbm = RBM(8, epochs=2, watch="none").fit(digits)
    assert rbm.about["reading"] == {"binarize": "sample", "full-scale": 16.0}
    dark = np.minimum(digits[:50], 3)
    # On its own the largest value would be taken for the full scale.
    assert rbm.score(dark) == rbm.score(np.vstack([dark, digits[50:51]])[:50])
    halves = RBM(8, epochs=2, watch="none", binarize=0.5).fit(digits)
    assert halves.score(digits[:20]) == pytest.approx(halves.score((digits[:20] >= 8).astype(np.uint8)))


def test_files_and_built_in_sets(tmp_path, digits):
    np.save(tmp_path / "digits.npy", digits)
    assert trained(tmp_path / "digits.npy") == trained(str(tmp_path / "digits.npy"))
    here = RBM(3, epochs=2, watch="none").fit(digits)
    there = RBM(3, epochs=2, watch="none").fit(tmp_path / "digits.npy")
    assert (here.weights == there.weights).all()
    assert here.score("digits") == here.score(digits)
    with pytest.raises(FileNotFoundError) as caught:
        RBM(3).fit("no-such-file.csv")
    assert caught.value.hint


@pytest.mark.parametrize(
    "X, sentence",
    [
        (np.zeros(5), "1 dimensions"),
        (np.zeros((2, 2, 2, 2)), "4 dimensions"),
        (np.zeros((0, 4)), "0 rows"),
        (np.zeros((4, 0)), "0 columns"),
        ([["a", "b"]], "holds no numbers"),
        ([[1, "b"], [2, 3]], "not a number|holds no numbers"),
        (np.array([[1.0, np.inf]]), "infinite"),
        (np.array([[1e300, 0.0]]), "infinite or beyond"),
        (np.zeros((3, 4), dtype=complex), "holds no numbers"),
        (sp.csr_array((0, 4)), "0 rows"),
    ],
)
def test_what_does_not_fit_is_refused(X, sentence):
    with pytest.raises(InvalidError, match=sentence) as caught:
        RBM(2).fit(X)
    assert caught.value.hint and isinstance(caught.value, ValueError)


def test_shapes_that_do_not_fit_are_named(stripes):
    rbm = RBM(3, epochs=1).fit(stripes)
    with pytest.raises(InvalidError, match="5 columns, the visible layers take 6"):
        rbm.score(stripes[:, :5])
    with pytest.raises(InvalidError, match="weights for 300 rows"):
        RBM(3).fit(stripes, sample_weight=[1.0, 2.0])
    with pytest.raises(InvalidError, match="the labels have shape"):
        RBM(3).fit(stripes, [1, 2, 3])
    with pytest.raises(InvalidError, match="mask"):
        rbm.complete(stripes, mask=np.ones((3, 6)))
    with pytest.raises(InvalidError, match="learned no labels"):
        rbm.log_likelihood(stripes, np.zeros(300))
    with pytest.raises(TypeError, match="random_state"):
        RBM(3, random_state="seed").fit(stripes)
    with pytest.raises(ValueError, match="random_state"):
        RBM(3, random_state=-1).fit(stripes)


def test_hints_speak_python():
    from harmonium._core import spelt

    for said, expected in {
        "use `--binarize 0.5`, or `--visible gaussian`": 'use `binarize=0.5`, or `visible="gaussian"`',
        "lower `--learning-rate`": "lower `learning_rate`",
        "`--hidden 500,1000`": "`hidden=[500, 1000]`",
        "leave out `--no-center`": "leave out `center=False`",
        "`--visible binary|spin`": '`visible="binary"|"spin"`',
        "`--columns A..B`": "`columns=A..B`",
        "nothing `quoted` here": "nothing `quoted` here",
        "open `--end": "open `--end",
    }.items():
        assert spelt(said) == expected


def test_parameters_as_arrays(stripes):
    rbm = RBM(3, epochs=3).fit(stripes)
    numbers = rbm.parameters()
    assert numbers["couplings.visible.hidden.weights"].shape == (6, 3)
    again = rbm.with_parameters({name: values for name, values in numbers.items()})
    assert again.to_bytes() == rbm.to_bytes()
    doubled = rbm.with_parameters({"couplings.visible.hidden.weights": 2 * rbm.weights})
    assert (doubled.weights == 2 * rbm.weights).all() and (rbm.weights == numbers["couplings.visible.hidden.weights"]).all()
    with pytest.raises(InvalidError, match="no parameter `bias`"):
        rbm.with_parameters({"bias": [1.0]})
    plain = RBM.from_arrays([[1.0, 2.0], [0.0, -1.0]], [0.5, 0.5], [0.0, 1.0])
    assert plain.weights.tolist() == [[1, 2], [0, -1]]


def test_from_a_fitted_scikit_learn_machine(stripes):
    from sklearn.neural_network import BernoulliRBM

    theirs = BernoulliRBM(n_components=3, n_iter=5, random_state=0).fit(stripes)
    ours = RBM.from_sklearn(theirs)
    np.testing.assert_allclose(ours.features(stripes), theirs.transform(stripes.astype(float)), atol=1e-6)
    free = ours.log_likelihood(stripes, method="free-energy").rows
    np.testing.assert_allclose(np.abs(free), np.abs(theirs._free_energy(stripes.astype(float))), atol=1e-9)


def test_threads_are_set():
    before = harmonium.threads()
    harmonium.set_threads(1)
    assert harmonium.threads() == 1
    harmonium.set_threads(None)
    assert harmonium.threads() == before
    with pytest.raises(ValueError, match="4096"):
        harmonium.set_threads(100_000)
