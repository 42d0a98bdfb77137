"""The package in a process: threads, forks, signals, pickles, what it imports."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import harmonium
import numpy as np
import pytest
from harmonium import DBN, RBM


def run(code: str, **more) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


def test_two_trainings_at_once_are_right(digits):
    """They are equal to those made one after the other, and the interpreter is free meanwhile."""
    settings = [{"hidden": 24, "epochs": 8, "random_state": seed} for seed in (1, 2)]
    alone = [RBM(**s).fit(digits).to_bytes() for s in settings]
    models = [RBM(**s) for s in settings]
    threads = [threading.Thread(target=m.fit, args=(digits,)) for m in models]
    ticks, start = 0, time.monotonic()
    [t.start() for t in threads]
    while any(t.is_alive() for t in threads):
        time.sleep(0.005)
        ticks += 1
    [t.join() for t in threads]
    assert [m.to_bytes() for m in models] == alone
    assert ticks > 0.2 * (time.monotonic() - start) / 0.01


def test_the_number_of_threads_does_not_matter(digits):
    code = """
        import harmonium, sys, hashlib, numpy as np
        harmonium.set_threads(int(sys.argv[1]))
        rbm = harmonium.RBM(40, epochs=3).fit("digits")
        print(hashlib.sha256(rbm.to_bytes()).hexdigest(), rbm.sample(5, random_state=1).sum())
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    said = {subprocess.check_output([*command, n]) for n in ("1", "3")}
    assert len(said) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_can_train(digits):
    done = run(
        """
        import harmonium, os, warnings
        warnings.simplefilter("ignore")
        rbm = harmonium.RBM(40, epochs=2).fit("digits")
        child = os.fork()
        again = harmonium.RBM(40, epochs=2).fit("digits").to_bytes() == rbm.to_bytes()
        if child == 0:
            os._exit(0 if again else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and again
        """
    )
    assert done.returncode == 0, done.stderr


def test_control_c_leaves_a_usable_model():
    code = """
        import harmonium, signal, threading, os, time
        rbm = harmonium.RBM(300, epochs=1_000_000, watch="none")
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        try:
            rbm.fit("digits")
        except KeyboardInterrupt:
            print("interrupted after", round(time.monotonic() - start - 1.5, 2))
        assert rbm.stop == "interrupted" and rbm.about["step"] > 10
        assert rbm.sample(3, sweeps=5, method="gibbs").shape == (3, 64)
        rbm.save("{path}")
        try:
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            rbm.log_partition(method="sandwich", betas=100_000_000)
        except KeyboardInterrupt:
            print("again")
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        done = run(code.replace("{path}", path))
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert second == "again" and float(first.split()[-1]) < 5
        assert np.isfinite(harmonium.load(path).weights).all()


def test_signals_of_other_sorts_are_heard():
    done = run(
        """
        import harmonium, signal
        def alarm(*_): raise TimeoutError("too long")
        signal.signal(signal.SIGALRM, alarm)
        signal.alarm(1)
        try:
            harmonium.RBM(300, epochs=1_000_000).fit("digits")
        except TimeoutError as error:
            print(error)
        """
    )
    assert done.stdout.strip() == "too long", done.stderr


def test_pickles_are_the_same_to_the_bit(digits, labels, tmp_path):
    import joblib

    for model in (
        RBM(8, epochs=2, learning_rate=0.05).fit(digits, labels),
        DBN([8, 4], epochs=1).fit(digits),
        RBM(3),
    ):
        joblib.dump(model, tmp_path / "model.joblib")
        for again in (
            pickle.loads(pickle.dumps(model)),
            copy.deepcopy(model),
            joblib.load(tmp_path / "model.joblib"),
        ):
            assert again.get_params() == model.get_params()
            assert again.events == model.events
            if model.is_fitted:
                assert again.to_bytes() == model.to_bytes()
                assert (again.sample(5) == copy.deepcopy(model).sample(5)).all()


def test_skops_keeps_models(digits):
    skops = pytest.importorskip("skops.io")
    rbm = RBM(8, epochs=2).fit(digits)
    file = skops.dumps(rbm)
    unknown = skops.get_untrusted_types(data=file)
    assert all(name.startswith("harmonium.") for name in unknown), unknown
    assert skops.loads(file, trusted=unknown).to_bytes() == rbm.to_bytes()


def test_exceptions_can_be_pickled():
    error = harmonium.errors.NotFoundError("gone", "look elsewhere")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.hint) == ("gone", "look elsewhere")
    assert isinstance(again, FileNotFoundError)


def test_only_numpy_is_imported():
    done = run(
        """
        import sys, harmonium
        rbm = harmonium.RBM(3, epochs=1).fit("digits")
        rbm._repr_html_(), rbm.get_params(), rbm.score("digits")
        heavy = {"sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "IPython"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_importing_takes_little_more_than_numpy():
    """Best of several, in seconds of the processor: what importing takes beyond numpy's own import."""
    code = """
        import time, numpy
        start = time.process_time(); import harmonium
        print(time.process_time() - start)
    """
    best = min(float(run(code).stdout) for _ in range(5))
    assert best < 0.05, best


def test_progress_is_shown_where_asked_for(stripes, capsys):
    RBM(3, epochs=3, verbose=True).fit(stripes)
    assert "training 3/3" in capsys.readouterr().err
    RBM(3, epochs=3).fit(stripes)
    assert capsys.readouterr().err == ""


def test_plots(digits):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from harmonium import plot

    rbm = RBM(8, epochs=3).fit(digits)
    assert plot.filters(rbm).get_title() == "filters of hidden"
    assert plot.samples(rbm.sample(4), model=rbm).images
    assert len(plot.history(rbm).lines) >= 1
    import matplotlib.pyplot as plt

    plt.close("all")
    with pytest.raises(ValueError, match="no pictures"):
        plot.samples(np.zeros((2, 7)))
