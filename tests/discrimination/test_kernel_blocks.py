"""Blocks of kernel machines: integrals over theta, features, refusals."""

import contextlib
import io

import numpy as np
import pytest
from oracles.block_cases import agree
from oracles.conjugate import log_integral
from problems import rbf
from processes import run
from refusals import refused
from threadpoolctl import threadpool_limits

from maxent.discrimination import GaussianCentre, GaussianScores
from maxent.discrimination.kernel_blocks import KernelPosterior

GRID = np.linspace(-14.0, 14.0, 500)


# --------------------------------------------------------------------------- scores


def test_scores_are_an_average_over_weight_vectors(rng):
    """log E exp(sum a <theta, x>) over theta ~ N(0, I) in the plane, on a grid."""
    X, a = rng.normal(size=(6, 2)), 0.5 * rng.normal(size=6)
    pull = a @ X

    def log_joint(u, v):
        return -0.5 * (u**2 + v**2) - np.log(2.0 * np.pi) + pull[0] * u + pull[1] * v

    found = GaussianScores("linear").block(X).log_partition(a)
    agree(found, log_integral(log_joint, GRID, GRID), 1e-10, 1.0)


def test_scores_are_kernel_expansions(rng):
    X, new, a = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), rng.normal(size=9)
    both = rbf(np.concatenate([X, new]), 0.6)
    block = GaussianScores("rbf", gamma=0.6).block(X)
    agree(block.score(a, new), both[9:, :9] @ a, 1e-12, 1.0)
    assert block.log_partition(a) == pytest.approx(0.5 * a @ both[:9, :9] @ a)


# --------------------------------------------------------------------------- centre


def test_a_centre_is_an_integral_over_centres(rng):
    """Flat prior: log of int exp(-sum a |x - theta|^2 / 2), without its width."""
    x, a = rng.normal(size=5), np.array([0.9, 0.4, -0.3, 1.2, 0.0])
    total = a.sum()

    def log_joint(u):
        return -0.5 * ((x[:, None] - u) ** 2 * a[:, None]).sum(axis=0)

    want = log_integral(log_joint, np.linspace(-25, 25, 4000))
    want -= 0.5 * np.log(2.0 * np.pi / total)
    agree(GaussianCentre("linear").block(x[:, None]).log_partition(a), want, 1e-10, 1.0)


def test_scores_of_a_centre_are_squared_distances_to_the_weighted_mean(rng):
    X, new = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    a = rng.uniform(0.1, 1.0, size=8)
    centre = a @ X / a.sum()
    want = -0.5 * ((new - centre) ** 2).sum(axis=1)
    agree(GaussianCentre("linear").block(X).score(a, new), want, 1e-12, 1.0)


def test_the_partition_of_a_centre_is_of_the_first_degree(rng):
    X, a = rng.normal(size=(8, 3)), rng.uniform(0.1, 1.0, size=8)
    block = GaussianCentre("rbf", gamma=0.5).block(X)
    agree(block.log_partition(7.0 * a), 7.0 * block.log_partition(a), 1e-12)
    agree(block.mean(7.0 * a), block.mean(a), 1e-12)
    # Euler: a . grad = log Z
    agree(a @ block.mean(a), block.log_partition(a), 1e-12)


def test_a_centre_without_weights_is_the_mean_of_the_rows(rng):
    X, zero = rng.normal(size=(8, 3)), np.zeros(8)
    block = GaussianCentre("linear").block(X)
    want = -0.5 * ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    agree(block.mean(zero), want, 1e-12)
    agree(block.score(zero, X), want, 1e-12)
    assert block.log_partition(zero) == 0.0


@pytest.mark.parametrize("model", [GaussianScores, GaussianCentre])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_posteriors_are_rebuilt_from_their_specifications(model, kernel, rng):
    X, new = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    a = np.where(np.arange(8) % 2, rng.uniform(0.1, 1.0, size=8), 0.0)
    made = model(kernel, gamma=0.05, degree=2, coef0=0.5)
    try:
        block = made.block(X)
    except ValueError as error:  # tanh is not always positive semidefinite
        assert kernel == "sigmoid" and "not positive semidefinite" in str(error)
        return
    posterior = block.posterior(a)
    assert len(posterior.X) == 4  # rows without weight are not kept
    spec = posterior.get_spec()
    spec["model"] = model(**spec["model"].get_spec())
    again = KernelPosterior(**spec)
    np.testing.assert_array_equal(
        again.expected_log_prob(new), posterior.expected_log_prob(new)
    )
    assert model.__name__ in repr(made)


def test_gamma_scale_is_that_of_the_rows(rng):
    X, new = 3.0 * rng.normal(size=(8, 3)), rng.normal(size=(2, 3))
    block = GaussianScores().block(X)
    gamma = 1.0 / (3 * X.var())
    want = rbf(np.concatenate([X, new]), gamma)[8:, :8] @ np.ones(8)
    agree(block.score(np.ones(8), new), want, 1e-12)


# ------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("model", [GaussianScores, GaussianCentre])
def test_wrong_parameters_and_rows_are_named(model, rng):
    for kernel in ("precomputed", lambda A, B: A @ B.T, "a", None):
        refused(lambda k=kernel: model(k), "kernel")
    for gamma in (-1.0, np.nan, "a"):
        refused(lambda g=gamma: model("rbf", gamma=g), "gamma")
    X = rng.normal(size=(5, 2))
    refused(lambda: model().block(X, np.ones(5)), "base_weight")
    for wrong in (X[0], np.empty((0, 2)), np.full((3, 2), 1e200), np.full((2, 2), 1j)):
        refused(lambda w=wrong: model("linear").block(w), r"\bX\b")
    block = model("linear").block(X)
    refused(lambda: block.score(np.ones(5), np.ones((2, 3))), r"\bX\b")
    for bad in (np.nan, np.inf):
        wrong = X.copy()
        wrong[1, 1] = bad
        refused(lambda w=wrong: model("linear").block(w), r"\bX\b")


def test_kernels_that_are_not_positive_semidefinite_are_refused(rng):
    X = rng.normal(size=(12, 2))
    refused(
        lambda: GaussianScores("sigmoid", gamma=2.0, coef0=-3.0).block(X),
        "kernel='sigmoid' is not positive semidefinite .*Use another kernel",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", None),
        ("X", np.ones(3)),
        ("X", np.full((3, 2), np.nan)),
        ("weight", np.ones(2)),
        ("weight", np.full(3, np.inf)),
        ("gamma", np.nan),
        ("scale", "a"),
        ("norm", None),
    ],
)
def test_parts_of_a_posterior_that_do_not_fit_are_named(name, value, rng):
    good = {
        "model": GaussianScores(),
        "X": rng.normal(size=(3, 2)),
        "weight": np.ones(3),
        "gamma": 0.5,
        "scale": 1.0,
        "norm": 0.0,
    }
    KernelPosterior(**good)
    refused(lambda: KernelPosterior(**{**good, name: value}), rf"\b{name}\b")


FITS = """
import hashlib
import numpy as np
from maxent import MEDOutlierDetector
from maxent.discrimination import GaussianCentre, GaussianScores

rng = np.random.default_rng(%d)
X, new, a = rng.normal(size=(400, 6)), rng.normal(size=(500, 6)), rng.random(400)
for model in (GaussianScores(), GaussianCentre(), GaussianCentre("linear")):
    block = model.block(X)
    detector = MEDOutlierDetector(model).fit(X)
    for values in (
        block.K, block.root, block.mean(a), block.log_partition(a),
        block.hessian_factor(a), block.score(a, new), detector.level_,
        detector.dual_coef_, detector.score_samples(new),
    ):
        values = np.ascontiguousarray(values)
        print(hashlib.sha256(values.tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_the_threads_of_blas(seed):
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    two = run("-c", FITS % seed, env=dict.fromkeys(names, "2")).split()
    with threadpool_limits(1, "blas"), contextlib.redirect_stdout(io.StringIO()) as one:
        exec(FITS % seed, {})
    assert len(two) == 27
    assert one.getvalue().split() == two
