"""Compiled passes over weighted rows against plain formulas in NumPy."""

import mpmath as mp
import numpy as np
import pytest
from maxent._core.tall_matrices import TallMatrix
from threadpoolctl import threadpool_limits

from maxent._core import normal_wishart as kernel
from maxent.families import NormalInverseWishart

# around the size of a chunk of rows
SIZES = [(0, 1), (1, 1), (3, 5), (7, 1), (40, 3), (256, 4), (257, 4), (700, 2)]
sizes = pytest.mark.parametrize(("n", "d"), SIZES)


class Case:
    """A proper prior, rows and weights of both signs well inside the domain."""

    def __init__(self, rng, n, d, far=0.0):
        A = rng.normal(size=(d, d))
        self.scale = A @ A.T + n * np.eye(d)
        self.mean = far + rng.normal(size=d)
        self.kappa, self.df = 2.0 + n, d + 1.5 + n
        self.X = far + rng.normal(size=(n, d))
        self.weight = rng.uniform(-0.1, 1.0, n)
        self.weight[n // 2 : n // 2 + 1] = 0.0

    def prior(self):
        return NormalInverseWishart(self.mean, self.kappa, self.df, self.scale)

    def updated(self):
        """(kappa, df, mean, scale): sums over the rows as they are."""
        w, X = self.weight, self.X
        kappa = self.kappa + w.sum()
        mean = (self.kappa * self.mean + w @ X) / kappa
        scale = self.scale.copy()
        for t, x in enumerate(X):
            scale += w[t] * np.outer(x - mean, x - mean)
        scale += self.kappa * np.outer(self.mean - mean, self.mean - mean)
        return kappa, self.df + w.sum(), mean, scale

    def run(self, weight=None, threads=1):
        """What `update` returns, and its outputs: mean, scale, lower, U, square."""
        n, d = self.X.shape
        rows = self.X - self.mean
        reach = np.abs(rows).max(axis=0, initial=0.0)
        out = [np.full(s, np.nan) for s in ((d,), (d, d), (d, d), (n, d), (n,))]
        weight = self.weight if weight is None else weight
        prior = (self.mean, self.kappa, self.df, self.scale)
        return kernel.update(rows, reach, weight, *prior, *out, threads), out


def whitened(rng, n, d):
    """Rows as `update` leaves them, of any size and sign."""
    return np.ascontiguousarray(rng.normal(size=(n, d)) * 3.0 / np.sqrt(max(n, 1)))


# ------------------------------------------------------------------------- update


@sizes
def test_the_update_adds_weighted_rows_of_any_sign(n, d, rng):
    case = Case(rng, n, d)
    (kappa, df, log_det), (mean, scale, lower, U, square) = case.run()
    true_kappa, true_df, true_mean, true_scale = case.updated()
    assert (kappa, df) == pytest.approx((true_kappa, true_df), rel=1e-13)
    np.testing.assert_allclose(mean, true_mean, atol=1e-13)
    # sums of n rounded terms
    error = 1e-15 * (n + 10) * np.abs(true_scale).max()
    np.testing.assert_allclose(scale, true_scale, atol=error)
    assert (scale == scale.T).all()
    assert (np.triu(lower, 1) == 0).all()
    np.testing.assert_allclose(lower @ lower.T, true_scale, atol=2 * error)
    assert log_det == pytest.approx(np.linalg.slogdet(true_scale)[1], rel=1e-12)
    R = case.X - true_mean
    np.testing.assert_allclose(U @ lower.T, R, atol=1e-12)
    distance = np.einsum("ij,ij->i", R, np.linalg.solve(true_scale, R.T).T)
    np.testing.assert_allclose(square, distance, rtol=1e-9, atol=1e-14)


def test_an_update_in_many_digits_for_means_far_from_the_origin(rng):
    case = Case(rng, 30, 2, far=1e7)
    with mp.workdps(50):
        w = [mp.mpf(x) for x in case.weight]
        kappa = mp.mpf(case.kappa) + mp.fsum(w)
        mean = [
            (
                case.kappa * mp.mpf(case.mean[j])
                + mp.fsum(a * mp.mpf(x) for a, x in zip(w, case.X[:, j]))
            )
            / kappa
            for j in range(2)
        ]
        R = [[mp.mpf(x) - m for x, m in zip(row, mean)] for row in case.X]
        own = [mp.mpf(x) - m for x, m in zip(case.mean, mean)]
        true = [
            [
                float(
                    mp.mpf(case.scale[i, j])
                    + case.kappa * own[i] * own[j]
                    + mp.fsum(a * r[i] * r[j] for a, r in zip(w, R))
                )
                for j in range(2)
            ]
            for i in range(2)
        ]
    _, (_, scale, _, _, _) = case.run()
    # differences to a mean of 1e7 have 1e-9 of their digits, and their errors cancel
    np.testing.assert_allclose(scale, true, rtol=1e-12)


@sizes
def test_rows_of_weight_zero_are_absent(n, d, rng):
    case = Case(rng, n, d)
    before = case.run()
    reach = case.X.max(initial=0.0)
    case.X = np.insert(case.X, n // 2, reach + rng.normal(size=(3, d)), axis=0)
    case.weight = np.insert(case.weight, n // 2, np.zeros(3))
    after = case.run()
    assert after[0] == pytest.approx(before[0], rel=1e-12)
    for found, wanted in zip(after[1][:3], before[1][:3]):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_totals_too_low_end_the_domain(rng):
    case = Case(rng, 6, 2)
    assert case.run()[0] is not None
    low = np.zeros(6)
    case.df, case.X[0] = 4.0, case.mean  # weight there takes nothing from the scatter
    low[0] = -(case.df - 1.0)  # df must stay above d - 1
    assert case.run(low)[0] is None
    low[0] = -0.999 * (case.df - 1.0)
    assert case.run(low)[0] is not None
    case.kappa = 0.5
    assert case.run(low)[0] is None


@pytest.mark.parametrize("n", [4, 300])
def test_scatter_that_is_singular_up_to_rounding_is_no_scatter(n, rng):
    case = Case(rng, n, 3)
    case.scale, case.kappa, case.df = np.zeros((3, 3)), 0.0, 0.0
    case.weight = rng.uniform(0.9, 1.0, n)
    assert case.run()[0] is not None
    case.X[:, 2] = case.X[:, 0] - case.X[:, 1] + 4.0
    assert case.run()[0] is None
    case.X[:, 2] += 1e-3 * rng.normal(size=n)
    assert case.run()[0] is not None
    case.X[:, 2] = 0.1  # constant, and its mean is rounded
    case.mean = np.zeros(3)
    assert case.run()[0] is None


def test_negative_weights_leave_where_the_scatter_is_no_longer_positive(rng):
    case = Case(rng, 5, 2)
    case.scale, case.kappa = np.eye(2), 1e9
    case.X[0] = case.mean + [2.0, 0.0]  # the scale there is 1 + 4 weight
    for weight, inside in ((-0.2499, True), (-0.2501, False)):
        low = np.array([weight, 0.0, 0.0, 0.0, 0.0])
        assert (case.run(low)[0] is not None) == inside


@pytest.mark.parametrize("where", ["X", "weight"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_numbers_out_of_range_are_outside(value, where, rng):
    case = Case(rng, 6, 2)
    assert case.run()[0] is not None
    getattr(case, where).flat[4] = value
    assert case.run()[0] is None


@pytest.mark.parametrize(("n", "d"), [(5000, 20), (40_000, 8), (40_000, 64)])
def test_parts_of_many_rows_are_added_up_with_the_same_bits(n, d, rng):
    case = Case(rng, n, d)
    kappa, df, mean, scale = case.updated()
    found, out = case.run()
    assert found[:2] == pytest.approx((kappa, df), rel=1e-12)
    np.testing.assert_allclose(out[1], scale, rtol=1e-9, atol=1e-8)
    white = np.linalg.solve(out[2], (case.X - mean).T).T
    np.testing.assert_allclose(out[3], white, rtol=1e-8, atol=1e-9)
    change = kernel.least_change(out[3], case.weight, 2.0)
    fresh = np.empty((n, d)), np.empty(n)
    for threads in (2, 3):
        again, there = case.run(threads=threads)
        assert again == found
        for one, two in zip(out, there, strict=True):
            np.testing.assert_array_equal(one, two)
        assert kernel.least_change(out[3], case.weight, 2.0, threads) == change
        kernel.whiten(case.X, out[0], out[2], *fresh, threads)
        np.testing.assert_allclose(fresh[0], white, rtol=1e-8, atol=1e-9)


# ------------------------------------------------------------- rows in other places


@sizes
def test_new_rows_are_whitened_as_the_old_ones(n, d, rng):
    case = Case(rng, n, d)
    _, (mean, _, lower, U, square) = case.run()
    found = np.full((n, d), np.nan), np.full(n, np.nan)
    kernel.whiten(case.X, mean, lower, *found)
    np.testing.assert_allclose(found[0], U, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found[1], square, rtol=1e-9, atol=1e-13)


@sizes
def test_columns_give_the_covariance_of_log_likelihoods(n, d, rng):
    U, kappa, df, rest = whitened(rng, n, d), 3.0, d + 2.5, 0.7
    source = kernel.CovarianceRows(U, np.square(U).sum(axis=1), kappa, df, rest)
    F = TallMatrix([source]).to_array()
    q = U @ U.T
    own = np.diag(q)
    want = 0.5 * df * q**2 - 0.5 * (own[:, None] + own) + df / kappa * q
    want += 0.5 * d / df + rest
    np.testing.assert_allclose(F @ F.T, want, rtol=1e-12, atol=1e-12 * (1 + d))


@sizes
def test_the_least_change_ends_the_domain_of_both_totals_and_scatter(n, d, rng):
    U, direction, kappa = whitened(rng, n, d), rng.normal(size=n), 2.3
    both = np.column_stack([U, np.full(n, 1.0 / np.sqrt(kappa))])
    want = np.linalg.eigvalsh((both.T * direction) @ both)[0]
    least, total = kernel.least_change(U, direction, kappa)
    size = np.abs(direction) @ (both**2).sum(axis=1)
    assert least == pytest.approx(want, abs=1e-13 * (1 + size))
    assert total == pytest.approx(direction.sum(), abs=1e-13 * (1 + n))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_direction_that_is_no_number_has_no_change(value, rng):
    direction = np.array([1.0, value, 0.0])
    assert np.isnan(kernel.least_change(whitened(rng, 3, 2), direction, 1.0)[0])


# ------------------------------------------------------------------ calls gone wrong


def refused(call, arguments, at, *wrong):
    for value in wrong:
        changed = list(arguments)
        changed[at] = value
        with pytest.raises((ValueError, TypeError)):
            call(*changed)


def test_arrays_that_do_not_fit_are_refused(rng):
    n, d = 6, 3
    case, z = Case(rng, n, d), np.zeros
    out = [z(d), z((d, d)), z((d, d)), z((n, d)), z(n)]
    update = [case.X, z(d), case.weight, case.mean, 1.0, 5.0, case.scale, *out]
    shapes = [np.shape(a) for a in update]
    kernel.update(*update)
    for at, shape in enumerate(shapes):
        if shape:
            larger, smaller = z([s + 1 for s in shape]), z([s - 1 for s in shape])
            single, strided = z(shape, dtype=np.float32), z([2 * s for s in shape])
            part = strided[tuple(slice(None, None, 2) for _ in shape)]
            refused(kernel.update, update, at, larger, smaller, single, part, None)
    refused(kernel.update, update, 0, z((0, 0)), z((n, 0)), z(n))
    whiten = [case.X, z(d), np.eye(d), z((n, d)), z(n)]
    kernel.whiten(*whiten)
    for at, array in enumerate(whiten):
        refused(kernel.whiten, whiten, at, z([s + 1 for s in array.shape]), None)
    change = [case.X, z(n), 1.0]
    kernel.least_change(*change)
    refused(kernel.least_change, change, 1, z(n + 1), z((n, 1)), None)
    refused(kernel.least_change, change, 0, z((n, 0)), z((0, d)))


def test_arrays_that_are_read_only_will_do(rng):
    case = Case(rng, 9, 2)
    wanted = case.run()
    for array in (case.X, case.weight, case.mean, case.scale):
        array.setflags(write=False)
    found = case.run()
    assert found[0] == wanted[0]
    mean, _, lower, U, square = found[1]
    lower.setflags(write=False)
    kernel.whiten(case.X, mean, lower, U, square)


@pytest.mark.parametrize(("n", "d"), [(5000, 7), (3000, 70)])
def test_any_number_of_threads_of_blas_gives_the_same_bits(n, d, rng):
    X, a = rng.normal(size=(n, d)), rng.uniform(-0.1, 0.5, n)
    x = rng.normal(size=n)
    bits = set()
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            block = NormalInverseWishart.improper(d).block(X, np.ones(n))
            found = [block.log_partition(a), block.max_step(a, x), *block.mean(a)]
            found.append(block.hessian_factor(a[:]).sum())
            bits.add(np.array(found).tobytes())
    assert len(bits) == 1


def test_posteriors_are_those_of_the_compiled_update(rng):
    case = Case(rng, 40, 3)
    posterior = case.prior().posterior(case.X, case.weight)
    kappa, df, mean, scale = case.updated()
    assert posterior.mean_precision == pytest.approx(kappa, rel=1e-13)
    assert posterior.df == pytest.approx(df, rel=1e-13)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-13)
    np.testing.assert_allclose(posterior.scale, scale, rtol=1e-11, atol=1e-12)
    for array in (posterior.mean, posterior.scale):
        assert not array.flags.writeable
