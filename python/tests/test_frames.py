"""Frames of pandas, polars and pyarrow: words, numbers and holes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from harmonium import RBM, load
from harmonium.errors import InvalidError
from harmonium.sklearn import BoltzmannImputer, BoltzmannOutlier, RBMClassifier, RBMTransformer
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

KINDS = {"cat": 4.0, "dog": 20.0, "owl": 1.0}


def animals(n: int = 600, seed: int = 0) -> dict[str, list[object]]:
    """Three kinds with their masses and whether they fly, and a column that numbers the rows."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(list(KINDS), size=n)
    mass = np.array([KINDS[k] for k in kind]) * np.exp(0.1 * rng.normal(size=n))
    return {
        "name": [f"animal {k}" for k in range(n)],
        "kind": kind.tolist(),
        "mass": mass.tolist(),
        "flies": [k == "owl" for k in kind],
    }


def with_holes(columns: dict[str, list[object]], seed: int = 1) -> dict[str, list[object]]:
    """The same with one hole in a fifth of the rows."""
    rng = np.random.default_rng(seed)
    names, holed = ["kind", "mass", "flies"], {name: list(cells) for name, cells in columns.items()}
    for row in range(len(columns["kind"])):
        if rng.random() < 0.2:
            holed[names[rng.integers(3)]][row] = None
    return holed


def pandas(columns):
    frame = pd.DataFrame(columns)
    frame["kind"] = frame["kind"].astype(pd.CategoricalDtype([*KINDS, "yak"]))
    frame["mass"] = frame["mass"].astype(float)
    return frame.astype({"flies": "boolean"})


def polars(columns):
    return pl.DataFrame(columns).with_columns(pl.col("kind").cast(pl.Enum([*KINDS, "yak"])))


def pyarrow(columns):
    return pa.table(columns)


def cells(frame, name):
    return (frame[name].to_pylist() if isinstance(frame, pa.Table) else frame[name].to_list())


SETTINGS = {"epochs": 150, "learning_rate": 0.02, "batch": 30, "watch": "none"}


@pytest.mark.parametrize("make", [pandas, polars, pyarrow])
def test_a_frame_goes_in_and_comes_back(make, tmp_path):
    whole, holed = animals(), with_holes(animals())
    frame = make(holed)
    rbm = RBM(8, **SETTINGS).fit(frame)
    assert {name: column["kind"] for name, column in rbm.columns.items()} == {
        "name": "ignore", "kind": "categorical", "mass": "gaussian", "flies": "binary",
    }
    filled = rbm.complete(frame)
    assert type(filled) is type(frame)
    assert cells(filled, "name") == whole["name"]
    wrong = {"kind": 0, "flies": 0}
    far, n_holes = [], 0
    for row in range(len(whole["kind"])):
        for name in ("kind", "mass", "flies"):
            was, now, hole = whole[name][row], cells(filled, name)[row], holed[name][row] is None
            if not hole:
                assert now == was, (row, name)
            elif name == "mass":
                far.append(abs(np.log(now / was)))
            else:
                wrong[name] += now != was
            n_holes += hole
    assert n_holes > 80
    # A mass tells the kind and the kind tells the mass, up to its own spread of 0.1.
    assert wrong["kind"] < 8 and wrong["flies"] < 8, wrong
    assert np.median(far) < 0.3
    if make is not pyarrow:
        assert filled["kind"].dtype == frame["kind"].dtype
    # What a mask hides is filled as a hole is.
    hidden = rbm.complete(frame, mask=[[True, False, True, True]])
    known = [k for k in range(600) if holed["mass"][k] is not None]
    told = [cells(hidden, "kind")[k] == whole["kind"][k] for k in known]
    assert cells(hidden, "name") == whole["name"] and np.mean(told) > 0.9
    half = rbm.given(frame[:2] if make is not pyarrow else frame.slice(0, 2)).sample(5)
    assert len(cells(half, "kind")) == 10
    drawn = rbm.sample(50)
    assert type(drawn) is type(frame) and set(cells(drawn, "kind")) <= set(KINDS)
    assert np.isfinite(rbm.score(frame))
    # The model is that of a file, and of a pickle.
    rbm.save(tmp_path / "animals.safetensors")
    for again in (load(tmp_path / "animals.safetensors"), pickle.loads(pickle.dumps(rbm))):
        assert isinstance(again, RBM) and cells(again.complete(frame), "kind") == cells(filled, "kind")


def test_a_frame_is_what_the_file_is(program, tmp_path):
    """A frame and the same table as a file give the same model."""
    import subprocess

    frame = pd.DataFrame(with_holes(animals(200))).drop(columns="name")
    frame["flies"] = frame["flies"].map({True: "yes", False: "no"}).astype(object)
    frame["mass"] = frame["mass"].astype(float).round(3)
    path = tmp_path / "animals.csv"
    frame.to_csv(path, index=False)
    command = [program, "train", "rbm", str(path), "--hidden", "4", "--epochs", "3", "--out", str(tmp_path / "run")]
    subprocess.run([*command, "--watch", "none", "--seed", "5"], check=True, capture_output=True)
    told = load(tmp_path / "run")
    rbm = RBM(4, epochs=3, watch="none", random_state=5).fit(frame)
    ours, theirs = rbm.parameters(), told.parameters()
    assert ours.keys() == theirs.keys()
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_numbers_of_several_sorts_are_columns_of_their_own():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=100), "y": rng.integers(2, size=100)})
    rbm = RBM(3, epochs=2).fit(frame)
    assert rbm.columns["y"]["kind"] == "binary"
    assert RBM(3, epochs=2).fit(frame[["x"]]).columns is None
    said = RBM(3, epochs=2, kinds={"y": "ignore"}).fit(frame)
    assert list(said.sample(4).columns) == ["x"]


def test_what_is_unknown_is_said():
    frame = pandas(animals(100))
    rbm = RBM(3, epochs=2).fit(frame)
    other = frame.assign(kind="yak")
    with pytest.raises(InvalidError, match="yak"):
        rbm.score(other)
    with pytest.raises(InvalidError, match="column"):
        rbm.score(frame.rename(columns={"kind": "sort"}))


@pytest.mark.parametrize("make", [pandas, polars])
def test_an_imputer_in_a_pipeline(make):
    columns, holed = animals(400), with_holes(animals(400))
    rng = np.random.default_rng(2)
    heavy = (np.array(columns["mass"]) + 3 * rng.normal(size=400)) > 3
    frame, y = make(holed), heavy.astype(int)
    encode = make_column_transformer((OneHotEncoder(), ["kind", "flies"]), (StandardScaler(), ["mass"]))
    imputer = BoltzmannImputer(hidden=8, epochs=100, learning_rate=0.02, random_state=0)
    model = make_pipeline(imputer, encode, LogisticRegression())
    model.fit(frame[:300], y[:300])
    whole = make_pipeline(encode, LogisticRegression()).fit(make(columns)[:300], y[:300])
    holes, none = model.score(frame[300:], y[300:]), whole.score(make(columns)[300:], y[300:])
    # One hundred rows: the difference of two shares near 0.8 has a standard error of about 0.05.
    assert holes > none - 0.1, (holes, none)
    filled = imputer.fit(frame).transform(frame)
    assert type(filled) is type(frame) and list(filled.columns) == list(frame.columns)
    assert list(imputer.get_feature_names_out()) == list(frame.columns)
    assert not any(cell is None or cell != cell for cell in filled["mass"].to_list())


def test_other_estimators_take_tables():
    frame = pandas(animals(300)).drop(columns="name")
    features = RBMTransformer(hidden=5, epochs=20, random_state=0).fit(frame)
    assert features.transform(frame).shape == (300, 5)
    assert list(features.inverse_transform(features.transform(frame)).columns) == ["kind", "mass", "flies"]
    assert list(features.sample(3).columns) == ["kind", "mass", "flies"]
    told = RBMClassifier(hidden=8, epochs=100, random_state=0).fit(frame.drop(columns="kind"), frame["kind"].to_list())
    assert told.score(frame.drop(columns="kind"), frame["kind"].to_list()) > 0.8
    outliers = BoltzmannOutlier(hidden=8, epochs=100, learning_rate=0.02, random_state=0).fit(frame)
    odd = frame[:1].assign(kind="owl", mass=20.0, flies=False).astype(frame.dtypes.to_dict())
    assert outliers.predict(odd)[0] == -1
