"""Partial labels on a thousand random problems: descent, and the joint optimum.

Slow; with ``pytest -s`` they print the figures of the user guide.
"""

import warnings

import numpy as np
import pytest

from maxent import MEDClassifier, MEDGaussianClassifier, MEDPartialLabelClassifier

pytestmark = pytest.mark.slow

KERNELS = ("linear", "rbf", "poly")
MARGINS = ("exponential", "laplace", "gaussian", "logistic", "hinge", "erlang")
BIASES = ("flat", None, 1.0)


def quiet(model, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args)


def problem(rng, n):
    """Rows, labels of which some are missing, label priors, weights."""
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + rng.uniform(0.0, 2.0) * (2 * y[:, None] - 1)
    part = np.where(rng.random(n) < 0.7, -1, y)
    part[:8] = y[:8]
    prior = np.where(rng.random(n) < 0.3, rng.random(n), np.nan)
    prior[:8] = np.nan
    return X, part, prior, rng.uniform(0.2, 3.0, n)


def machine_of(rng):
    return MEDClassifier(
        KERNELS[rng.integers(3)],
        C=10 ** rng.uniform(-1, 2),
        margin=MARGINS[rng.integers(6)],
        bias=BIASES[rng.integers(3)],
    )


def worst_rise(model, data):
    """Largest rise of D from one half of a round to the next, relative to 1 + |D|."""
    D = quiet(model, *data).objective_history_
    return float(np.diff(D).max(initial=-np.inf) / (1.0 + abs(D[0])))


@pytest.mark.parametrize(
    "kind, problems", [("kernel machines", 1000), ("Gaussians", 150)]
)
def test_no_half_of_a_round_increases_the_objective(kind, problems):
    rng, worst = np.random.default_rng(3), -np.inf
    for _ in range(problems):
        data = problem(rng, int(rng.integers(10, 40)))
        if kind == "Gaussians":
            machine = MEDGaussianClassifier(prior="weak", level=2.0)
        else:
            machine = machine_of(rng)
        step = 1.0 if rng.random() < 0.5 else rng.uniform(0.05, 1.95)
        model = MEDPartialLabelClassifier(machine, step=step, max_rounds=15)
        worst = max(worst, worst_rise(model, data))
    print(f"\n{kind}: {problems} problems, largest relative rise {worst:.1e}")
    assert worst <= 1e-12


def test_the_joint_optimum_is_never_above_the_factorised_one():
    rng, worst, problems = np.random.default_rng(4), -np.inf, 120
    y = np.array([0, 1, 0, 1, -1, -1, -1, -1])
    for k in range(problems):
        X, prior = rng.normal(size=(8, 2)), np.full(8, np.nan)
        prior[4] = rng.random()
        machine = MEDClassifier(
            C=10 ** rng.uniform(-0.5, 1),
            gamma=0.5,
            bias=(None, 1.0)[k % 2],
            margin=("exponential", "logistic", "gaussian")[k % 3],
        )
        joint, apart = (
            quiet(MEDPartialLabelClassifier(machine, **options), X, y, prior)
            for options in ({"method": "exact", "tol": 1e-7}, {"tol": 1e-3})
        )
        above = (joint.objective_ - apart.objective_) / (1.0 + abs(apart.objective_))
        worst = max(worst, above)
    print(f"\n{problems} problems, joint less factorised optimum {worst:.1e} at most")
    assert worst <= 1e-7
