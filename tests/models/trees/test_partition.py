"""Log-partitions, edge probabilities and covariances through the public functions."""

import signal
import sys
import time

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import normal, symmetric, with_holes
from threadpoolctl import threadpool_limits

from maxent.discrimination import (
    chow_liu_tree,
    sample_spanning_trees,
    spanning_tree_covariance,
    spanning_tree_log_partition,
)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_log_partition_is_the_sum_over_all_trees(n, rng):
    for lw in (normal(n, rng), with_holes(n, rng), 10 * normal(n, rng)):
        true, _ = oracle.distribution(lw)
        assert spanning_tree_log_partition(lw) == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("method", ["auto", "star-mesh", "cholesky"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_marginals_and_means_are_those_of_all_trees(method, n, rng):
    for lw in (normal(n, rng), with_holes(n, rng)):
        true_z, true = oracle.marginals(lw)
        log_z, prob = spanning_tree_log_partition(lw, marginals=True, method=method)
        assert isinstance(log_z, float)
        assert log_z == pytest.approx(true_z, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(prob, true, rtol=1e-12, atol=1e-300)
        f = symmetric(rng.normal(size=(n, n)))
        np.fill_diagonal(f, 0.0)
        _, probability = oracle.distribution(lw)
        mean = probability @ oracle.tree_sums(f)
        assert (prob * f).sum() / 2 == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("n", [3, 5, 6])
def test_covariances_are_those_of_all_trees(n, rng):
    lw = np.stack([normal(n, rng), with_holes(n, rng)])
    f, g = normal(n, rng), normal(n, rng, 2)
    value = spanning_tree_covariance(lw, f, g)
    assert value.shape == (2,)
    for b in range(2):
        true = oracle.covariance(lw[b], f, g[b])
        assert value[b] == pytest.approx(true, abs=1e-12 * n)


@pytest.mark.parametrize("n", [6, 150])
def test_constants_have_no_covariance(n, rng):
    lw = normal(n, rng)
    f = normal(n, rng)
    np.fill_diagonal(f, np.nan)  # counts for nothing
    one = np.ones((n, n))
    assert abs(spanning_tree_covariance(lw, one, f)) <= 1e-12 * n
    assert spanning_tree_covariance(lw, f, f) > 0


def test_cayley_and_products(rng):
    for n in (2, 3, 10, 100, 1000):
        lw = symmetric(np.zeros((n, n)))
        log_z, prob = spanning_tree_log_partition(lw, marginals=True)
        assert log_z == pytest.approx((n - 2) * np.log(n), rel=1e-13, abs=1e-13)
        off = ~np.eye(n, dtype=bool)
        np.testing.assert_allclose(prob[off], 2 / n, rtol=1e-11)
    d = 3 * rng.normal(size=50)  # W_uv = d_u d_v has Z = prod d (sum d)^(n - 2)
    log_z = spanning_tree_log_partition(symmetric(d[:, None] + d[None, :]))
    true = d.sum() + 48 * (d.max() + np.log(np.exp(d - d.max()).sum()))
    assert log_z == pytest.approx(true, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("spread", [1.0, 200.0, 2000.0])
@pytest.mark.parametrize("n", [3, 30, 41, 120])
def test_product_weights_have_a_closed_form(n, spread, rng):
    # W_uv = d_u d_v: P(uv) = (d_u + d_v) / sum d, the resistance being 1/W_uv of that
    d = rng.uniform(0, spread, n)
    log_weights = symmetric(d[:, None] + d)
    log_z, prob = spanning_tree_log_partition(log_weights, marginals=True)
    log_sum = np.logaddexp.reduce(d)
    true = symmetric(np.logaddexp(d[:, None], d) - log_sum)
    # logarithms near 4000 hold their differences to 1e-12
    np.testing.assert_allclose(prob, np.exp(true), rtol=1e-12 + 1e-15 * n * spread)
    assert log_z == pytest.approx(d.sum() + (n - 2) * log_sum, rel=1e-12)


@pytest.mark.parametrize("shift", [-2000.0, 700.0, 1e6])
def test_a_common_factor_leaves_the_probabilities(shift, rng):
    lw = normal(20, rng).round(3)
    log_z, prob = spanning_tree_log_partition(lw, marginals=True)
    other_z, other = spanning_tree_log_partition(lw + shift, marginals=True)
    # log weights near 1e6 hold their differences to 1e-10
    np.testing.assert_allclose(other, prob, rtol=1e-13 + 1e-15 * abs(shift))
    assert other_z == pytest.approx(log_z + 19 * shift, rel=1e-12)


def test_gradient_of_the_log_partition_are_the_probabilities(rng):
    lw = normal(8, rng)
    _, prob = spanning_tree_log_partition(lw, marginals=True)
    h = 1e-5
    for u, v in ((1, 0), (7, 3), (5, 4)):
        step = np.zeros((8, 8))
        step[u, v] = step[v, u] = h
        up, down = (spanning_tree_log_partition(lw + s * step) for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(prob[u, v], abs=1e-8)


@pytest.mark.parametrize("spread", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("n", [2, 25, 100, 400, 1000])
def test_probabilities_add_up(spread, n, rng):
    lw = symmetric(rng.uniform(-spread, spread, (n, n)))
    _, prob = spanning_tree_log_partition(lw, marginals=True)
    assert abs(prob.sum() / 2 - (n - 1)) <= 1e-10
    assert prob.min() >= 0
    assert prob.max() <= 1
    assert (prob == prob.T).all()


def test_batches_by_leading_axes(rng):
    lw = normal(9, rng, 2, 3)
    log_z, prob = spanning_tree_log_partition(lw, marginals=True)
    assert log_z.shape == (2, 3)
    assert prob.shape == lw.shape
    for place in np.ndindex(2, 3):
        one_z, one = spanning_tree_log_partition(lw[place], marginals=True)
        assert log_z[place] == one_z
        assert (prob[place] == one).all()
    assert (spanning_tree_log_partition(lw) == log_z).all()
    nothing, none = spanning_tree_log_partition(lw[:0], marginals=True)
    assert nothing.shape == (0, 3)
    assert none.shape == (0, 3, 9, 9)


def test_any_kind_of_array(rng):
    lw = normal(7, rng).astype(np.float32)
    log_z, prob = spanning_tree_log_partition(lw.astype(float), marginals=True)
    frozen = lw.astype(float)
    frozen.setflags(write=False)
    for other in (lw, np.asfortranarray(lw), lw.tolist(), frozen, lw[::-1, ::-1]):
        found_z, found = spanning_tree_log_partition(other, marginals=True)
        assert found_z == pytest.approx(log_z, rel=1e-14)
        assert np.sort(found.ravel()) == pytest.approx(np.sort(prob.ravel()))
    assert (frozen == lw).all()


def test_same_bits_for_any_number_of_threads(rng):
    lw = normal(70, rng, 5)

    def everything():
        log_z, prob = spanning_tree_log_partition(lw, marginals=True)
        trees = sample_spanning_trees(lw[0], 500, random_state=3)
        X = (lw[0] > 0).astype(int)
        _, information = chow_liu_tree(X, return_information=True)
        return [a.tobytes() for a in (log_z, prob, trees, information)]

    with threadpool_limits(1):
        one = everything()
    with threadpool_limits(2):
        assert everything() == one


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGALRM")
@pytest.mark.timed
@pytest.mark.parametrize("spread", [1.0, 1000.0])
def test_an_interrupt_is_answered(spread, rng):
    lw = symmetric(rng.uniform(-spread, spread, (600, 600)))
    lw = np.broadcast_to(lw, (12, 600, 600)).copy()
    f = np.ones((600, 600))
    narrow = normal(1300, rng)

    class Interrupted(Exception):
        pass

    def handler(number, frame):
        raise Interrupted

    work = {
        "partition": lambda: spanning_tree_log_partition(lw, marginals=True),
        "cholesky": lambda: spanning_tree_log_partition(narrow, method="cholesky"),
        "covariance": lambda: spanning_tree_covariance(lw, f, f),
        "samples": lambda: sample_spanning_trees(lw[0], 20_000, random_state=0),
    }
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for call in work.values():
            begin = time.process_time()  # of ours: the machine may be busy
            with pytest.raises(Interrupted):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                while True:  # the alarm ends it, within a call or between two
                    call()
            assert time.process_time() - begin <= 2.0  # a call alone takes as long
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
