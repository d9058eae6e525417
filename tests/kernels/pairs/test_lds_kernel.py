"""Kernel between linear dynamical systems against dense joint Gaussians."""

import numpy as np
import pytest
from models.state_space_cases import random_lds
from oracles import state_space as dense
from refusals import refused

from maxent.kernels import lds_affinity_parts, lds_kernel
from maxent.kernels.pairs import _lds_pairs as pairs
from maxent.models import LinearDynamicalSystem

POWERS = [0.1, 0.25, 0.5, 1.0, 2.0]


def mixed(rng, d, steps=None):
    """Systems of many sizes; one with singular noise, one unstable."""
    return [
        random_lds(rng, 1, d),
        random_lds(rng, 2, d, singular=True),
        random_lds(rng, 2, d, radius=0.3, steps=steps),
        random_lds(rng, 3, d, radius=1.1),
        random_lds(rng, 4, d),
        random_lds(rng, 4, d, offsets=False, steps=steps),
    ]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("T", [0, 4, 12])
@pytest.mark.parametrize("steps", [None, 13])
def test_kernel_is_that_of_the_joint_gaussians(rng, d, T, steps):
    P = mixed(rng, d, steps)
    L = lds_kernel(P, rho=POWERS, horizon=T, log=True)
    for k, rho in enumerate(POWERS):
        for i, p in enumerate(P):
            for j, q in enumerate(P):
                expected = dense.lds_log_kernel(p, q, T, rho)
                # inverses of the oracle: condition numbers up to 1e6
                assert L[i, j, k] == pytest.approx(expected, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("n, d", [(2, 2), (4, 2), (5, 3), (6, 3), (6, 2), (7, 3)])
def test_pairs_of_one_size(rng, n, d):
    P = [random_lds(rng, n, d) for _ in range(3)]
    L = lds_kernel(P, horizon=9, log=True)
    for i, p in enumerate(P):
        for j, q in enumerate(P):
            expected = dense.lds_log_kernel(p, q, 9, 0.5)
            assert L[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-8)


def test_rectangular_grams_are_blocks_of_square_ones(rng):
    P = mixed(rng, 2)
    L = lds_kernel(P, horizon=6, log=True)
    np.testing.assert_allclose(
        lds_kernel(P[:2], P[2:], horizon=6, log=True), L[:2, 2:], atol=1e-11
    )
    K = lds_kernel(P, horizon=6, normalize=True)
    np.testing.assert_allclose(
        lds_kernel(P[4:], P[:3], horizon=6, normalize=True), K[4:, :3], rtol=1e-11
    )


def test_grids_of_powers_and_horizons_are_single_calls(rng):
    P = mixed(rng, 2)
    grid = lds_kernel(P, rho=POWERS, horizon=[0, 3, 7], log=True)
    assert grid.shape == (6, 6, 3, 5)
    for h, T in enumerate((0, 3, 7)):
        for k, rho in enumerate(POWERS):
            one = lds_kernel(P, rho=rho, horizon=T, log=True)
            np.testing.assert_allclose(grid[:, :, h, k], one, rtol=1e-13, atol=1e-12)


def test_square_grams_are_symmetric_definite_and_one_on_the_diagonal(rng):
    P = mixed(rng, 2) + mixed(rng, 2)
    for method in ("joint", "per_step"):
        for rho in (0.05, 0.5, 2.0):
            K = lds_kernel(P, rho=rho, horizon=8, normalize=True, method=method)
            np.testing.assert_array_equal(K, K.T)
            np.testing.assert_array_equal(np.diagonal(K), 1.0)
            assert np.linalg.eigvalsh(K)[0] > -1e-12 * len(K)
    L = lds_kernel(P, rho=0.5, horizon=8, log=True)
    np.testing.assert_allclose(np.diagonal(L), 0.0, atol=1e-12)


def test_a_change_of_coordinates_changes_nothing(rng):
    P = mixed(rng, 2)
    moved = []
    for p in P:
        n = p.n_states
        T = rng.normal(size=(n, n)) + 3 * np.eye(n)
        V = np.linalg.inv(T)
        cov, own = T @ p.transition_cov @ T.T, T @ p.initial_cov @ T.T
        moved.append(
            LinearDynamicalSystem(
                T @ p.transition @ V,
                0.5 * (cov + cov.T),
                p.observation @ V,
                p.observation_cov,
                T @ p.initial_mean,
                0.5 * (own + own.T),
                T @ p.transition_offset,
                p.observation_offset,
            )
        )
    L, M = (lds_kernel(X, rho=0.3, horizon=9, log=True) for X in (P, moved))
    np.testing.assert_allclose(L, M, atol=1e-9)


def test_a_shift_of_all_data_changes_nothing(rng):
    P = mixed(rng, 2)
    shifted = [
        LinearDynamicalSystem(
            **{**p.parameters(), "observation_offset": p.observation_offset + 1e6}
        )
        for p in P
    ]
    L, M = (lds_kernel(X, rho=1.0, horizon=9, log=True) for X in (P, shifted))
    np.testing.assert_allclose(L, M, atol=1e-7)  # ten digits of means are left


def test_per_step_kernel_is_the_product_over_steps(rng):
    P = mixed(rng, 2, 7)
    for rho in (0.3, 1.0):
        L = lds_kernel(P, rho=rho, horizon=[2, 6], log=True, method="per_step")
        for i, p in enumerate(P):
            for j, q in enumerate(P):
                for h, T in enumerate((2, 6)):
                    _, _, m, S, _ = dense.joint(p, T)
                    _, _, m2, S2, _ = dense.joint(q, T)
                    total = 0.0
                    for t in range(T + 1):
                        b = slice(2 * t, 2 * t + 2)
                        total += dense.log_affinity(m[b], S[b, b], m2[b], S2[b, b], rho)
                    assert L[i, j, h] == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_the_joint_kernel_sees_the_dynamics_that_single_steps_hide():
    P = [
        LinearDynamicalSystem([[a]], [[0.19]], [[1.0]], [[0.01]], [0.0], [[1.0]])
        for a in (0.9, -0.9)
    ]
    joint = lds_kernel(P, horizon=20, normalize=True)
    single = lds_kernel(P, horizon=20, normalize=True, method="per_step")
    assert single[0, 1] == pytest.approx(1.0, abs=1e-12)
    assert joint[0, 1] == pytest.approx(0.0024, abs=5e-5)


def test_pairs_with_small_noise_are_computed_without_cancellation(rng):
    """R from 1 to 1e-10 of the states' variance: against the dense law in 60 digits."""
    import mpmath

    def sharp(model, share):
        R = share * np.eye(2)
        return LinearDynamicalSystem(**{**model.parameters(), "observation_cov": R})

    P = [sharp(random_lds(rng, 3, 2), 10.0**-k) for k in (0, 5, 10)]
    parts = lds_affinity_parts(P, horizon=4)
    laws = [exact_law(p, 4) for p in P]
    with mpmath.workdps(60):
        for i in range(3):
            for j in range(i):
                S = laws[i][1] + laws[j][1]
                r = laws[i][0] - laws[j][0]
                log_det = mpmath.log(mpmath.det(S))
                far = (r.T * mpmath.lu_solve(S, r))[0]
                assert parts.log_det[i, j] == pytest.approx(float(log_det), abs=1e-8)
                assert parts.distance[i, j] == pytest.approx(float(far), rel=1e-6)


def exact_law(p, T):
    """Mean and covariance of the observations in mpmath."""
    import mpmath

    with mpmath.workdps(60):
        M = {
            k: mpmath.matrix(np.atleast_2d(x).tolist())
            for k, x in p.parameters().items()
        }
        d, n = p.n_features, p.n_states
        A, C = M["transition"], M["observation"]
        b, c = M["transition_offset"].T, M["observation_offset"].T
        mean, cov = M["initial_mean"].T, M["initial_cov"]
        states = [(mean, cov)]
        for _ in range(T):
            mean = A * mean + b
            cov = A * cov * A.T + M["transition_cov"]
            states.append((mean, cov))
        out, S = mpmath.zeros((T + 1) * d, 1), mpmath.zeros((T + 1) * d)
        for t, (mean, _) in enumerate(states):
            out[t * d : t * d + d, 0] = C * mean + c
            for u in range(t + 1):
                block = C * mpmath.matrix(A) ** (t - u) * states[u][1] * C.T
                if u == t:
                    block += M["observation_cov"]
                for i in range(d):
                    for j in range(d):
                        S[t * d + i, u * d + j] = block[i, j]
                        S[u * d + j, t * d + i] = block[i, j]
        assert n == cov.rows
        return out, S


def test_frozen_covariances_change_nothing(rng):
    P = [random_lds(rng, n, 2, radius=0.8) for n in (1, 2, 3, 3, 4)]
    systems = [p._compiled for p in P]
    horizons = np.array([100, 400])
    plain = pairs.pair_parts(systems, None, horizons, freeze=False)
    frozen = pairs.pair_parts(systems, None, horizons, freeze=True)
    np.testing.assert_allclose(plain.log_det, frozen.log_det, atol=1e-9)
    np.testing.assert_allclose(plain.distance, frozen.distance, rtol=1e-9)
    assert pairs._FREEZE_FROM <= 400
    default = pairs.pair_parts(systems, None, horizons)
    np.testing.assert_array_equal(default.log_det, frozen.log_det)


def test_threads_do_not_change_bits(rng):
    P = mixed(rng, 2) + mixed(rng, 2)
    one, three = (lds_kernel(P, horizon=9, log=True, n_jobs=k) for k in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_kernels_beyond_the_range_of_doubles_stay_finite_in_logs(rng):
    P = [random_lds(rng, 2, 2) for _ in range(3)]
    L = lds_kernel(P, rho=3.0, horizon=3000, log=True)
    assert np.isfinite(L).all()
    assert (np.abs(L) > 1000).any()
    K = lds_kernel(P, rho=3.0, horizon=3000, normalize=True)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)


# -- input -----------------------------------------------------------------------------
def test_what_has_no_kernel_is_refused(rng):
    P = [random_lds(rng, 2, 2) for _ in range(2)]
    refused(lambda: lds_kernel(P, rho=0.0, horizon=3), "rho=0 must be.*> 0")
    refused(lambda: lds_kernel(P, rho=[0.5, -1], horizon=3), "rho=-1 must be")
    refused(lambda: lds_kernel(P, horizon=-1), "horizon=-1 must be an integer >= 0")
    refused(lambda: lds_kernel(P, horizon=2.5), "horizon=2.5 must be an integer")
    refused(lambda: lds_kernel(P, horizon=[4, 2]), "must increase")
    refused(lambda: lds_kernel([], horizon=3), "has no model")
    refused(lambda: lds_kernel(P[0], horizon=3), "is a single Linear.*pass a list")
    refused(lambda: lds_kernel([P[0], 3], horizon=3), r"P\[1\]=3 is no Linear")
    refused(lambda: lds_kernel(P, horizon=3, method="exact"), "method")
    other = [random_lds(rng, 2, 3)]
    refused(lambda: lds_kernel(P + other, horizon=3), r"P\[2\] has n_features=3, the")
    refused(lambda: lds_kernel(P, other, horizon=3), r"Q\[0\] has n_features=3, the")
    short = random_lds(rng, 2, 2, steps=4)
    refused(lambda: lds_kernel([*P, short], horizon=4), "model 2 varies over n_steps=4")


def test_unstable_pairs_are_told(rng):
    P = [random_lds(rng, 2, 2, radius=1.3) for _ in range(2)]
    with pytest.warns(RuntimeWarning, match="spectral radius 1.3.*smaller horizon"):
        lds_kernel(P, horizon=60, log=True)
    lds_kernel([P[0], random_lds(rng, 2, 2)], horizon=30, log=True)  # no warning
    wild = [random_lds(rng, 2, 2, radius=1e3)] * 2  # s - s' is never seen
    with (
        pytest.warns(RuntimeWarning, match="spectral radius"),
        pytest.raises(FloatingPointError, match="cannot be factorised"),
    ):
        lds_kernel(wild, horizon=200, log=True)
