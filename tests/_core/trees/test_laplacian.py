"""Star-mesh and Cholesky kernels against enumeration and many digits."""

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import low_ends, symmetric, wide

from maxent._core.trees import laplacian
from maxent._support.threads import single_threaded_blas

STAR_MESH, CHOLESKY = 0, 1
OK, DISCONNECTED, ILL_CONDITIONED = 0, 1, 3
KINDS = ["uniform", "chain", "border", "parts", "two levels", "normal"]


def partition(log_weights, method=STAR_MESH, threads=1):
    batch = np.ascontiguousarray(log_weights).reshape(-1, *log_weights.shape[-2:])
    log_z, prob = np.full(len(batch), np.nan), np.full_like(batch, np.nan)
    status = np.full(len(batch), -1, dtype=np.intc)
    with single_threaded_blas():
        laplacian.partition(batch, method, threads, log_z, prob, status)
    return log_z, prob, status


def relative_error(prob, true):
    seen = true > 1e-300
    return np.abs(prob[seen] / true[seen] - 1).max()


@pytest.mark.parametrize("method", [STAR_MESH, CHOLESKY])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_sums_over_all_trees(method, n, rng):
    lw = symmetric(rng.normal(size=(n, n)))
    log_z, prob, status = partition(lw, method)
    true_z, true = oracle.marginals(lw)
    assert status[0] == OK
    assert log_z[0] == pytest.approx(true_z, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(prob[0], true, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [3, 8, 12])
def test_wide_weights_keep_their_digits(kind, n, rng):
    lw = wide(kind, n, rng)
    log_z, prob, status = partition(lw)
    true_z, true = oracle.exact_marginals(lw)
    assert status[0] == OK
    # log weights near 1000 hold their differences to 1e-13
    assert abs(log_z[0] - true_z) <= 1e-12 * np.abs(lw[np.isfinite(lw)]).sum()
    assert relative_error(prob[0], true) <= 1e-11


@pytest.mark.parametrize("n", [9, 14])
def test_inverting_fails_where_the_star_mesh_does_not(n, rng):
    lw = wide("chain", n, rng)
    _, true = oracle.exact_marginals(lw)
    _, prob, _ = partition(lw)
    assert relative_error(prob[0], true) <= 1e-11
    try:
        with np.errstate(all="ignore"):
            plain = oracle.plain_marginals(lw)
    except np.linalg.LinAlgError:
        plain = np.full_like(true, np.nan)
    assert not np.abs(plain - true).max() <= 0.1  # off by more than that, or NaN
    assert partition(lw, CHOLESKY)[2][0] == ILL_CONDITIONED


def test_cholesky_is_refused_before_it_is_wrong(seed):
    rng = np.random.default_rng(seed)
    accepted = refused = 0
    for spread in (1, 3, 6, 10, 15, 25, 40, 100) * 2:
        lw = symmetric(spread * rng.normal(size=(12, 12)))
        _, prob, status = partition(lw, CHOLESKY)
        if status[0] == OK:
            accepted += 1
            assert relative_error(prob[0], oracle.exact_marginals(lw)[1]) <= 1e-10
        else:
            refused += 1
            assert status[0] == ILL_CONDITIONED
    assert accepted >= 3
    assert refused >= 3


# around the sizes for plain loops, one panel, several, and blocks of Cholesky
@pytest.mark.parametrize(
    "n", [31, 39, 40, 41, 63, 64, 65, 66, 96, 97, 98, 129, 200, 1001, 1002, 1153]
)
def test_blocks_agree_with_the_inverse(n, rng):
    lw = symmetric(rng.normal(size=(n, n)))
    log_z, prob, status = partition(lw)
    other_z, other, other_status = partition(lw, CHOLESKY)
    assert status[0] == other_status[0] == OK
    np.testing.assert_allclose(prob, other, rtol=1e-10, atol=0)
    assert log_z[0] == pytest.approx(other_z[0], rel=1e-13)
    W = np.exp(lw)
    sign, truth = np.linalg.slogdet((np.diag(W.sum(axis=0)) - W)[1:, 1:])
    assert sign == 1
    assert log_z[0] == pytest.approx(truth, rel=1e-12)
    assert abs(prob[0].sum() / 2 - (n - 1)) <= 1e-10
    assert (prob >= 0).all()
    assert (prob <= 1).all()
    assert (prob[0] == prob[0].T).all()
    assert (np.diagonal(prob[0]) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [70, 300])
def test_order_of_the_nodes_does_not_matter(kind, n, rng):
    lw = wide(kind, n, rng)
    at = rng.permutation(n)
    log_z, prob, _ = partition(np.stack([lw, lw[at][:, at]]))
    np.testing.assert_allclose(prob[1], prob[0][at][:, at], rtol=1e-10, atol=1e-290)
    assert log_z[1] == pytest.approx(log_z[0], rel=1e-13, abs=1e-9)
    assert abs(prob[0].sum() / 2 - (n - 1)) <= 1e-10


def test_windows_agree_with_one_another(rng):
    # the same weights with a far away leaf need two windows instead of one
    lw = symmetric(5 * rng.normal(size=(30, 30)))
    far = np.full((31, 31), -np.inf)
    far[:30, :30] = lw
    far[30, 3] = far[3, 30] = -5000.0
    log_z, prob, _ = partition(lw)
    far_z, far_prob, _ = partition(far)
    assert far_z[0] == pytest.approx(log_z[0] - 5000.0, rel=1e-14)
    np.testing.assert_allclose(far_prob[0, :30, :30], prob[0], rtol=1e-12)
    assert far_prob[0, 30, 3] == pytest.approx(1, abs=1e-14)


def test_rare_edges_keep_their_digits():
    # W = e^0, e^-900, e^-1400: the last is beyond doubles next to the first
    lw = np.full((3, 3), -np.inf)
    lw[1, 0], lw[2, 1], lw[2, 0] = 0.0, -900.0, -1400.0
    log_z, prob, _ = partition(lw)
    assert log_z[0] == pytest.approx(-900.0, rel=1e-15)
    assert prob[0, 2, 0] == pytest.approx(np.exp(-500.0), rel=1e-12, abs=0)


def test_many_windows(rng):
    lw = low_ends(np.linspace(-3000, 3000, 8), rng)
    log_z, prob, _ = partition(lw)
    true_z, true = oracle.exact_marginals(lw)
    assert log_z[0] == pytest.approx(true_z, rel=1e-13)
    assert relative_error(prob[0], true) <= 1e-11
    lw = low_ends(np.repeat(np.linspace(-5000, 5000, 30), 5), rng)
    at = rng.permutation(150)
    log_z, prob, status = partition(np.stack([lw, lw[at][:, at]]))
    assert (status == OK).all()
    assert log_z[1] == pytest.approx(log_z[0], rel=1e-13)
    np.testing.assert_allclose(prob[1], prob[0][at][:, at], rtol=1e-10, atol=1e-290)
    assert abs(prob[0].sum() / 2 - 149) <= 1e-10


def test_tight_parts_act_as_single_nodes(rng):
    # parts that weights of e^800 hold together, and what is left of one another's trees
    size, low = 60, -800.0
    parts = [symmetric(rng.normal(size=(size, size))) for _ in range(3)]
    lw = symmetric(low + rng.normal(size=(3 * size, 3 * size)))
    small = np.full((3, 3), -np.inf)
    for a in range(3):
        own = slice(a * size, (a + 1) * size)
        lw[own, own] = parts[a]
        for b in range(a):
            other = slice(b * size, (b + 1) * size)
            small[a, b] = low + np.log(np.exp(lw[own, other] - low).sum())
            small[b, a] = small[a, b]
    at = rng.permutation(3 * size)
    back = np.argsort(at)
    far = np.full((len(at) + 1,) * 2, -np.inf)  # a leaf that asks for windows
    far[:-1, :-1] = lw[at][:, at]
    far[-1, 0] = far[0, -1] = -3000.0
    log_z, prob, _ = partition(far)
    part_z, part_prob, _ = partition(np.stack(parts))
    small_z, small_prob, _ = partition(small)
    assert log_z[0] == pytest.approx(part_z.sum() + small_z[0] - 3000.0, rel=1e-14)
    prob = prob[0, :-1, :-1][back][:, back]
    for a in range(3):
        own = slice(a * size, (a + 1) * size)
        np.testing.assert_allclose(prob[own, own], part_prob[a], rtol=1e-11)
        for b in range(a):
            other = slice(b * size, (b + 1) * size)
            share = small_prob[0, a, b] * np.exp(lw[own, other] - small[a, b])
            np.testing.assert_allclose(prob[own, other], share, rtol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_alone_are_those_with_probabilities(kind, rng):
    lw = wide(kind, 90, rng)
    log_z, status = np.zeros(1), np.full(1, -1, dtype=np.intc)
    with single_threaded_blas():
        laplacian.partition(lw[None], STAR_MESH, 1, log_z, None, status)
    assert status[0] == OK
    assert log_z[0] == partition(lw)[0][0]


def test_disconnected_graphs_are_reported_by_both(rng):
    lw = symmetric(rng.normal(size=(7, 7)))
    lw[:3, 3:] = lw[3:, :3] = -np.inf
    spread = np.where(np.isfinite(lw), 2000 * lw, lw)
    nothing = np.full((7, 7), -np.inf)
    batch = np.stack([lw, nothing, symmetric(np.zeros((7, 7))), spread])
    assert partition(batch)[2].tolist() == [
        DISCONNECTED,
        DISCONNECTED,
        OK,
        DISCONNECTED,
    ]
    assert partition(batch, CHOLESKY)[2][2] == OK
    assert (partition(batch, CHOLESKY)[2][[0, 1, 3]] != OK).all()


def test_same_bits_in_a_batch_and_for_any_number_of_threads(rng):
    batch = np.stack([wide(k, 40, rng) for k in ("uniform", "chain", "normal")] * 3)
    one = [partition(lw) for lw in batch]
    for threads in (1, 2, 3):
        log_z, prob, status = partition(batch, threads=threads)
        assert (status == OK).all()
        assert log_z.tobytes() == np.concatenate([z for z, _, _ in one]).tobytes()
        assert prob.tobytes() == np.concatenate([p for _, p, _ in one]).tobytes()


def test_upper_triangle_is_not_read(rng):
    lw = symmetric(rng.normal(size=(9, 9)))
    lower = np.where(np.tri(9, k=-1) > 0, lw, np.nan)
    for method in (STAR_MESH, CHOLESKY):
        assert (
            partition(lower, method)[1].tobytes() == partition(lw, method)[1].tobytes()
        )


def test_expected_steps_of_the_walk(rng):
    lw = symmetric(rng.normal(size=(8, 8)))
    steps = np.empty(8)
    assert laplacian.walk_steps(lw, steps) == OK
    W = np.exp(lw)
    Q = np.diag(W.sum(axis=0)) - W
    for root in range(8):
        keep = np.arange(8) != root
        G = np.linalg.inv(Q[keep][:, keep])
        assert steps[root] == pytest.approx(np.diag(Q)[keep] @ np.diag(G), rel=1e-12)
    assert laplacian.walk_steps(wide("uniform", 8, rng), steps) == OK
    assert np.isinf(steps).all()
