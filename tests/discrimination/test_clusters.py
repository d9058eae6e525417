"""Fits on a cluster of processes: the same bits, also where one of them ends."""

import contextlib
import functools
import os
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from maxent import LMEGaussianMixture, MEDClassifier, MEDOutlierDetector
from maxent.discrimination import LatentMixture
from maxent.families import Poisson
from maxent.kernels import product_kernel_tiles
from maxent.latent import TrigramTopicModel
from maxent.models import CategoricalHMM, Mixture

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


def test_tasks_of_joblib_go_to_the_workers(rng):
    """Tiles, restarts, one model per datum and grid searches: the results of here."""
    X = rng.normal(size=(200, 2)) + 4 * rng.integers(0, 2, size=(200, 1))
    y = (X[:, 0] > 2).astype(int)
    detector = MEDOutlierDetector(LatentMixture(random_state=0), n_jobs=2)
    batch, sequences = Poisson(np.arange(1.0, 31.0)), rng.integers(0, 3, size=(4, 30))
    search = GridSearchCV(MEDClassifier(), {"C": [0.1, 1.0]}, cv=2)
    fit = {"n_states": 2, "random_state": 0, "n_jobs": 2}

    def all_of_them():
        return (
            product_kernel_tiles(batch, tile=10),
            detector.fit(X).dual_coef_.copy(),
            [m.transition for m in CategoricalHMM.fit_many(list(sequences), **fit)],
            search.fit(X, y).cv_results_["mean_test_score"],
        )

    here = all_of_them()
    with cluster(2), joblib.parallel_config(backend="dask"):
        there = all_of_them()
    for own, other in zip(here, there):
        np.testing.assert_array_equal(other, own)


def test_documents_of_a_bag_stay_with_the_workers(rng):
    bag = pytest.importorskip("dask.bag")
    texts = [[f"w{k}" for k in rng.integers(0, 40, size=200)] for _ in range(40)]
    model = TrigramTopicModel(4, 2, max_iter=8, tol=1e-2, random_state=0)
    found = []
    for workers in (0, 1, 2):
        parts = bag.from_sequence(texts, npartitions=2)
        place = cluster(workers) if workers else contextlib.nullcontext()
        with place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(model.fit(parts).weights_.tobytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", [Mixture, LMEGaussianMixture])
@pytest.mark.parametrize("lost", ["a worker", "the cluster"])
def test_em_steps_outlive_a_worker_and_no_cluster(kind, lost, rng):
    X = rng.normal(size=(800, 3)) + 3.0 * rng.integers(0, 2, size=(800, 1))

    def fitted(blocks):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind is Mixture:
                model = Mixture.fit(blocks, random_state=0, max_iter=6, tol=1e-12)
                return model.components.cov
            model = LMEGaussianMixture(
                2, n_init=2, random_state=0, tol=1e-2, check_maximum=False
            )
            return model.fit(blocks).candidate_means_

    def cut(pause):
        blocks = da.from_array(X, chunks=(100, 3))
        return blocks.map_blocks(lambda b: time.sleep(pause) or b, dtype=float)

    here = fitted(cut(0.0))
    with cluster(2 if lost == "a worker" else 1) as client:
        end = client.cluster.close
        if lost == "a worker":
            pid = next(iter(client.run(os.getpid).values()))
            end = functools.partial(os.kill, pid, signal.SIGKILL)
        timer = threading.Timer(3.0, end)
        timer.start()
        if lost == "a worker":
            np.testing.assert_array_equal(fitted(cut(0.1)), here)
            assert timer.finished.is_set()  # it ended in mid-fit
        else:
            with pytest.raises(ConnectionError, match="cluster went away"):
                fitted(cut(0.3))
        timer.join()


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
            there = model.fit(slow_rows(X, 0.1), y).coef_.tobytes()
            assert timer.finished.is_set()  # it ended in mid-fit
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
