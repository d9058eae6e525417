"""Fits on a cluster of processes: the same bits, also where one of them ends."""

import contextlib
import os
import signal
import threading
import time
import warnings

import pytest

from maxent import MEDClassifier

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    # those of a cluster that is taken apart
    pytest.mark.filterwarnings("ignore"),
]


@contextlib.contextmanager
def cluster(workers):
    """Client of a cluster of processes."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as found,
        distributed.Client(found) as client,
    ):
        yield client


@pytest.fixture
def data(rng):
    X = rng.normal(size=(8000, 10))
    y = (X @ rng.normal(size=10) + rng.normal(size=8000) > 0).astype(int)
    return X, y


def rows(X):
    return da.from_array(X, chunks=(1000, X.shape[1]))


def slow_rows(X, pause):
    """Blocks whose making takes a while, so that a fit can be met in the middle."""

    def waited(block):
        time.sleep(pause)
        return block

    return rows(X).map_blocks(waited, dtype=float)


@pytest.mark.parametrize("margin", ["exponential", "hinge"])
def test_bits_are_those_of_one_process(margin, data):
    X, y = data
    model = MEDClassifier("linear", margin=margin)
    here = model.fit(rows(X), y).coef_.tobytes(), model.duality_gap_
    for workers in (1, 2):
        with cluster(workers):
            there = model.fit(rows(X), y).coef_.tobytes(), model.duality_gap_
        assert there == here


@pytest.mark.parametrize("solver", ["auto", "coordinate"])
def test_a_worker_that_is_killed_costs_time_only(solver, data):
    X, y = data
    options = {"margin": "hinge", "solver": solver, "max_iter": 6}
    model = MEDClassifier("linear", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = model.fit(rows(X), y).coef_.tobytes()
        with cluster(2) as client:
            pids = list(client.run(os.getpid).values())
            timer = threading.Timer(4.0, os.kill, (pids[0], signal.SIGKILL))
            timer.start()
            begin = time.monotonic()
            there = model.fit(slow_rows(X, 0.1), y).coef_.tobytes()
            assert time.monotonic() - begin > 4.0  # it ended in mid-fit
            timer.join()
    assert there == here


def test_a_cluster_that_goes_away_is_one_error(data):
    X, y = data
    model = MEDClassifier("linear").fit(X, y)
    with cluster(1) as client:
        timer = threading.Timer(3.0, client.cluster.close)
        timer.start()
        with pytest.raises(ConnectionError, match="cluster went away"):
            model.fit(slow_rows(X, 0.5), y)
        timer.join()
    assert not hasattr(model, "coef_")  # nothing of two fits
