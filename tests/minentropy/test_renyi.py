"""Renyi scores and weights: known values, identities, 60-digit arithmetic, refusals."""

import numpy as np
import pytest
from oracles.renyi import score_and_weights
from refusals import refusals
from scipy.special import logsumexp, softmax

from maxent.minentropy import (
    rao_score,
    rao_weights,
    renyi_entropy,
    renyi_score,
    renyi_weights,
    tsallis_entropy,
)
from maxent.minentropy._ragged_rows import renyi_rows, tempered_rows

NEAR_ONE = [1 + s * e for e in (1e-15, 1e-9, 1e-4, 0.1) for s in (1, -1)]
ORDERS = [0, 0.05, 0.25, 0.5, *NEAR_ONE, 1, 1.5, 2, 8, 64, 1e3, 1e6, np.inf]


def scores(rng, n=40):
    """Rows of scores of many sizes and spreads."""
    spread = 10.0 ** rng.integers(-6, 4, size=(n, 1))
    shift = rng.choice([0.0, 1.0, -30.0], size=(n, 1))
    return spread * rng.standard_normal((n, rng.integers(1, 40))) + shift


@pytest.mark.parametrize("alpha", ORDERS)
def test_agrees_with_sixty_digits(alpha, rng):
    # a unit in the last place of max |s|; 1 / |alpha - 1| of one in the logs elsewhere
    for s in scores(rng):
        F, beta = score_and_weights(s, alpha)
        assert abs(renyi_score(s, alpha) - F) <= 1e-14 * max(1.0, np.abs(s).max())
        assert np.abs(renyi_weights(s, alpha) - beta).max() <= 1e-14


@pytest.mark.parametrize("alpha", ORDERS)
def test_identities(alpha, rng):
    S = scores(rng)
    size = np.maximum(1.0, np.abs(S).max(axis=1))
    F, beta = renyi_score(S, alpha), renyi_weights(S, alpha)
    close = 1e-13 * size
    assert (np.abs(renyi_score(S + 3.0, alpha) - F - 3.0) <= close + 1e-13).all()
    assert np.abs(beta.sum(axis=1) - 1.0).max() <= 1e-12
    assert (np.abs(renyi_score(np.repeat(S, 3, axis=1), alpha) - F) <= close).all()
    order = rng.permutation(S.shape[1])
    assert (np.abs(renyi_score(S[:, order], alpha) - F) <= close).all()
    mean = logsumexp(S, axis=1) - np.log(S.shape[1])
    assert (mean - close <= F).all() and (S.max(axis=1) + close >= F).all()
    if alpha < np.inf and alpha != 1:
        assert (np.abs(beta).sum(axis=1) <= (1 + alpha) / abs(alpha - 1) + 1e-12).all()
    np.testing.assert_allclose(renyi_score(np.full(5, 1.5), alpha), 1.5, rtol=1e-14)


def test_score_does_not_fall_with_the_order(rng):
    S = scores(rng)
    F = np.array([renyi_score(S, a) for a in sorted(ORDERS)])
    assert (np.diff(F, axis=0) >= -1e-13 * np.maximum(1, np.abs(S).max(axis=1))).all()


def test_one_hidden_value_is_its_score_and_two_at_one_are_a_sigmoid():
    assert renyi_score([0.7], 3.0) == 0.7
    t = 1.3
    np.testing.assert_allclose(renyi_score([0.0, t], 1.0), t / (1 + np.exp(-t)))


@pytest.mark.parametrize("alpha", [0, 0.25, 0.97, 1, 1.05, 2, 8])
def test_weights_are_the_gradient(alpha, rng):
    s, step = 2.0 * rng.standard_normal(7), 1e-5
    E = step * np.eye(7)
    slope = (renyi_score(s + E, alpha) - renyi_score(s - E, alpha)) / (2 * step)
    np.testing.assert_allclose(renyi_weights(s, alpha), slope, atol=1e-8)


def test_ties_of_the_maximum_share_equally():
    np.testing.assert_array_equal(
        renyi_weights([2.0, 0.0, 2.0], np.inf), [0.5, 0.0, 0.5]
    )


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 1.05, 3, np.inf])
def test_forbidden_values_are_absent(alpha, rng):
    S = rng.standard_normal((6, 9))
    mask = rng.random((6, 9)) < 0.6
    mask[:, 0] = True
    F, beta = renyi_score(S, alpha, mask=mask), renyi_weights(S, alpha, mask=mask)
    for s, m, f, b in zip(S, mask, F, beta, strict=True):
        np.testing.assert_allclose(renyi_score(s[m], alpha), f, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(renyi_weights(s[m], alpha), b[m], atol=1e-14)
        assert (b[~m] == 0).all()
    assert renyi_score([-np.inf, -np.inf], alpha) == -np.inf


def test_one_order_for_each_output_and_any_axis(rng):
    S = rng.standard_normal((3, 5, 4))
    orders = np.array([0.0, 1.0, 2.0, np.inf])
    F = renyi_score(S, orders, axis=1)
    beta = renyi_weights(S, orders, axis=1)
    assert F.shape == (3, 4) and beta.shape == S.shape
    for y, a in enumerate(orders):
        np.testing.assert_allclose(F[:, y], renyi_score(S[:, :, y], a), rtol=1e-14)


def test_ragged_rows_on_any_number_of_threads(rng):
    lengths = rng.integers(1, 50, size=2000)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    s = rng.standard_normal(offsets[-1])
    orders = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0, np.inf], size=2000)
    F, beta = renyi_rows(s, offsets, orders, n_threads=1)
    for threads in (2, 3):
        again = renyi_rows(s, offsets, orders, n_threads=threads)
        np.testing.assert_array_equal(again[0], F)
        np.testing.assert_array_equal(again[1], beta)
    for r in (0, 7, 1999):
        row = s[offsets[r] : offsets[r + 1]]
        np.testing.assert_array_equal(renyi_score(row, orders[r]), F[r])


@pytest.mark.parametrize("t", [0.25, 1.0, 4.0])
def test_tempered_rows(t, rng):
    S = rng.standard_normal((5, 6))
    offsets = np.arange(0, 31, 6, dtype=np.intp)
    L, p = tempered_rows(S.ravel(), offsets, t)
    np.testing.assert_allclose(L, logsumexp(t * S, axis=1), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(p.reshape(5, 6), softmax(t * S, axis=1), rtol=1e-13)
    L, p = tempered_rows(np.array([1.0, 3.0, 3.0]), np.array([0, 3]), np.inf)
    assert L[0] == 3.0 and p.tolist() == [0.0, 1.0, 0.0]


def test_temperature_is_the_type_of_the_entropy(rng):
    s = rng.standard_normal(6)
    for a, b in ((2.0, 0.5), (0.25, 3.0), (1.0, 2.0), (4.0, 1.0)):
        F = renyi_score(s, a, temperature=b)
        if a != 1:
            direct = logsumexp((a + b - 1) * s) - logsumexp(b * s)
            np.testing.assert_allclose(F, direct / (a - 1), rtol=1e-12)
        E = 1e-5 * np.eye(6)
        slope = (
            renyi_score(s + E, a, temperature=b) - renyi_score(s - E, a, temperature=b)
        ) / 2e-5
        np.testing.assert_allclose(renyi_weights(s, a, temperature=b), slope, atol=1e-8)


# -- identities of the theory ----------------------------------------------------------
@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.9, 1.1, 3.0, 8.0])
def test_score_is_the_mean_over_tempers(alpha, rng):
    # F_a is the average over t in [1, a] of E_t[s]
    s = 2.0 * rng.standard_normal(7)
    node, share = np.polynomial.legendre.leggauss(40)
    t = 1.0 + (alpha - 1.0) * 0.5 * (1.0 + node)
    means = softmax(t[:, None] * s, axis=1) @ s
    np.testing.assert_allclose(renyi_score(s, alpha), 0.5 * share @ means, rtol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_small_scores_have_an_expansion_in_uniform_moments(alpha, rng):
    s = rng.standard_normal(6)
    off = s - s.mean()
    second, third = (off**2).mean(), (off**3).mean()
    rest = []
    for e in (4e-2, 2e-2, 1e-2):
        F = e * s.mean() + (1 + alpha) / 2 * e**2 * second
        F += (1 + alpha + alpha**2) / 6 * e**3 * third
        rest.append(abs(renyi_score(e * s, alpha) - F))
    # of the fourth order: a sixteenth at half the size
    assert rest[1] <= rest[0] / 12 + 1e-14 and rest[2] <= rest[1] / 12 + 1e-14


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 2.0, 64.0])
def test_large_scores_go_to_the_maximum(alpha, rng):
    s = rng.standard_normal(8)
    for t in (1e2, 1e4, 1e6):
        short = s.max() - renyi_score(t * s, alpha) / t
        assert -1e-15 <= short <= 50.0 / t


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.99, 1.0, 1.01, 3.0])
def test_derivative_by_the_order(alpha, rng):
    # dF/da = (E_a[s] - F_a) / (a - 1), and half of the variance at 1
    S, step = 2.0 * rng.standard_normal((5, 6)), 1e-4
    low = max(alpha - step, 0.0)
    ends = renyi_score(S, alpha + step), renyi_score(S, low)
    slope = (ends[0] - ends[1]) / (alpha + step - low)
    p = softmax(alpha * S, axis=1)
    mean = (p * S).sum(axis=1)
    if alpha == 1:
        expected = 0.5 * ((p * S**2).sum(axis=1) - mean**2)
    else:
        expected = (mean - renyi_score(S, alpha)) / (alpha - 1.0)
    assert (expected >= 0).all()
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-6)


def curvature(s, alpha):
    E = 1e-5 * np.eye(len(s))
    return (renyi_weights(s + E, alpha) - renyi_weights(s - E, alpha)) / 2e-5


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.7, 1.0, 1.3, 2.0, 8.0])
def test_curvature_keeps_its_bounds(alpha, rng):
    for H in (2, 5, 20):
        for spread in (0.3, 1.0, 4.0):
            s = spread * rng.standard_normal(H)
            values = np.linalg.eigvalsh(curvature(s, alpha))
            low, high = values[0], values[-1]
            if alpha == 1:
                assert low >= -((1 + np.sqrt(H)) ** 2) / np.e
                p = softmax(s)
                cov = np.diag(p) - np.outer(p, p)
                off = s - p @ s
                third = np.diag(p * off) - np.outer(p * off, p) - np.outer(p, p * off)
                np.testing.assert_allclose(
                    curvature(s, 1.0), 2 * cov + third, atol=1e-8
                )
                continue
            convex, concave = alpha**2 / (2 * abs(alpha - 1)), 1 / (2 * abs(alpha - 1))
            if alpha < 1:
                convex, concave = concave, convex
            assert -concave - 1e-8 <= low and high <= convex + 1e-8
    # equal scores, two hidden values
    top = np.linalg.eigvalsh(curvature(np.zeros(2), alpha))[-1]
    np.testing.assert_allclose(top, (1 + alpha) / 2, rtol=1e-6)


@pytest.mark.parametrize("H, most", [(2, 1.20), (100, 2.69), (10_000, 4.8)])
def test_weights_near_one_grow_with_the_logarithm_of_their_number(H, most):
    # one spike above equal scores; (1 + a) / |a - 1| says nothing at 1
    for alpha in (0.999, 1.0, 1.001):
        worst = 0.0
        for height in np.linspace(0.0, 25.0, 501):
            s = np.zeros(H)
            s[0] = height
            worst = max(worst, np.abs(renyi_weights(s, alpha)).sum())
        assert worst == pytest.approx(most, abs=0.02)


# -- entropies -------------------------------------------------------------------------
def test_entropies_of_a_uniform_distribution(rng):
    Q = np.full(5, 0.2)
    for a in ORDERS:
        np.testing.assert_allclose(renyi_entropy(Q, a), np.log(5), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 2.0, 7.0])
def test_entropies_by_their_definition(alpha, rng):
    Q = 3.0 * rng.random((4, 6))
    ratio = (Q**alpha).sum(axis=1) / Q.sum(axis=1)
    np.testing.assert_allclose(renyi_entropy(Q, alpha), np.log(ratio) / (1 - alpha))
    np.testing.assert_allclose(tsallis_entropy(Q, alpha), (1 - ratio) / (alpha - 1))


def test_shannon_and_extreme_orders(rng):
    Q = rng.random(6)
    shannon = -(Q * np.log(Q)).sum() / Q.sum()
    np.testing.assert_allclose(renyi_entropy(Q, 1.0), shannon)
    np.testing.assert_allclose(tsallis_entropy(Q, 1.0), shannon)
    np.testing.assert_allclose(tsallis_entropy(Q, 1 + 1e-12), shannon, rtol=1e-9)
    np.testing.assert_allclose(renyi_entropy(Q, np.inf), -np.log(Q.max()))
    np.testing.assert_allclose(renyi_entropy([0.5, 0.5, 0.0], 0), np.log(2.0))


def test_output_of_least_entropy_has_the_largest_score(rng):
    # eq. (3): H_a(Q^y) = log Z - F_a(s_y)
    S = rng.standard_normal((3, 5))
    Q = np.exp(S - logsumexp(S))
    for a in (0.25, 1.0, 2.0, np.inf):
        H = renyi_entropy(Q, a)
        np.testing.assert_allclose(H, logsumexp(S) - renyi_score(S, a), rtol=1e-12)


def test_rao_scores(rng):
    S = 2.0 * rng.standard_normal((4, 6))
    np.testing.assert_allclose(rao_score(S, np.eye(6)), renyi_score(S, 2.0), rtol=1e-13)
    np.testing.assert_allclose(
        rao_score(S, np.ones((6, 6))), logsumexp(S, axis=1), rtol=1e-13
    )
    k = np.exp(-np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))))
    E = 1e-5 * np.eye(6)
    slope = (rao_score(S[0] + E, k) - rao_score(S[0] - E, k)) / 2e-5
    np.testing.assert_allclose(rao_weights(S[0], k), slope, atol=1e-8)
    np.testing.assert_allclose(rao_weights(S, k).sum(axis=1), 1.0)


# -- refusals --------------------------------------------------------------------------
@pytest.mark.parametrize("alpha", [-0.5, np.nan, -np.inf])
def test_orders_outside_the_domain_are_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha=.* must be an order from 0"):
        renyi_score([0.0, 1.0], alpha)


test_impossible_input_is_refused = refusals(
    [
        (lambda: renyi_score([0.0, np.nan], 1), r"S\[1\]=nan"),
        (lambda: renyi_score([[0.0, np.inf]], 1), r"S\[0, 1\]=inf"),
        (lambda: renyi_score(np.empty((3, 0)), 1), "no hidden value"),
        (lambda: renyi_score([0.0, 1.0], 1, axis=2), "axis=2"),
        (lambda: renyi_score([0.0, 1.0], [1, 2, 3]), "alpha has shape"),
        (lambda: renyi_score([0.0, 1.0], 1, mask=[1, 0]), "mask has dtype"),
        (lambda: renyi_score([0.0, 1.0], 0.1, temperature=0.5), "temperature=0.5"),
        (lambda: renyi_score(1.0, 1), "axis of hidden values"),
        (lambda: renyi_entropy([0.5, -0.5], 1), "entry -0.5"),
        (lambda: renyi_entropy([0.0, 0.0], 1), "without a positive weight"),
        (lambda: tsallis_entropy([0.5, 0.5], np.inf), "alpha=inf"),
        (lambda: rao_score([0.0, 1.0], np.eye(3)), r"\(2, 2\) is needed"),
        (lambda: rao_score([0.0, 1.0], 2 * np.eye(2)), "entry 2"),
        (lambda: rao_score([0.0, 1.0], np.zeros((2, 2))), "diagonal"),
    ]
)
