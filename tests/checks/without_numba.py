"""What works without Numba, and what says that it needs it.

    python tests/checks/without_numba.py [modules that are kept out too]

Wheels for systems on which Numba has none are tested by this script alone: it needs
NumPy, SciPy, joblib and threadpoolctl, and looks at estimators where scikit-learn is.
"""

import importlib
import importlib.util
import sys

import numpy as np

for name in ("numba", *sys.argv[1:]):
    sys.modules[name] = None

import maxent  # noqa: E402
from maxent.discrimination import (  # noqa: E402
    CustomMargin,
    ExponentialMargin,
    solve_dual,
)
from maxent.families import Gaussian  # noqa: E402
from maxent.kernels import product_kernel  # noqa: E402
from maxent.latent import fit_maxent  # noqa: E402
from maxent.models import CategoricalHMM  # noqa: E402


def rows():
    """Rows of three columns, and their classes."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    return X, (X[:, 0] + 0.1 * X[:, 1] > 0).astype(int)


def refused(what, call):
    """Check that a call is refused in one sentence that names what it needs."""
    try:
        call()
    except ImportError as error:
        assert str(error).startswith(f"{what} needs Numba"), error
        assert "pip install numba" in str(error), error
    else:
        raise AssertionError(f"{what} ran without Numba")


def functions():
    """Functions and values, which scikit-learn is not needed for."""
    X, y = rows()
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    result = solve_dual(K, 2 * y - 1, ExponentialMargin(5.0))
    assert result.gap <= 1e-3 * (1 + abs(result.objective))
    assert np.isfinite(Gaussian.fit(X).log_prob(X)).all()
    hmm = CategoricalHMM([0.6, 0.4], [[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.3, 0.7]])
    assert hmm.log_likelihood([np.array([0, 1, 1])])[0] < 0
    assert product_kernel([hmm], horizon=3).shape == (1, 1)
    F, target = np.eye(4), [0.1, 0.2, 0.3, 0.4]
    assert np.allclose(fit_maxent(F, target).prob, target, atol=1e-6)
    refused(
        "Iterative scaling (the methods gis, iis and scgis)",
        lambda: fit_maxent(F, target, method="iis"),
    )
    refused(
        "CustomMargin, unlike the named margin priors,",
        lambda: CustomMargin(np.log1p, np.abs, np.abs),
    )


def estimators():
    """Estimators: every public name is there, and most fit."""
    from scipy.sparse import csr_array

    from maxent.latent import LMEBoltzmannMachine, MaxEntClassifier, TrigramTopicModel

    for package in maxent._SUBPACKAGES:
        module = importlib.import_module(f"maxent.{package}")
        assert [getattr(module, name) for name in module.__all__]
    X, y = rows()
    model = maxent.MEDClassifier(C=10).fit(X, y)
    assert model.converged_ and model.score(X, y) > 0.9
    assert MaxEntClassifier().fit(X, y).score(X, y) > 0.9
    refused(
        "MaxEntClassifier on sparse rows",
        lambda: MaxEntClassifier().fit(csr_array(X), y),
    )
    refused(
        "The exact sums of Boltzmann machines",
        lambda: LMEBoltzmannMachine(2, method="lbfgs", n_init=2, random_state=0).fit(
            X > 0
        ),
    )
    refused(
        "Gibbs sampling of Boltzmann machines",
        lambda: LMEBoltzmannMachine(2, n_init=2, moments="sampled", random_state=0).fit(
            X > 0
        ),
    )
    refused(
        "TrigramTopicModel",
        lambda: TrigramTopicModel(2, 1, random_state=0).fit([["a", "b", "a"]] * 4),
    )


if __name__ == "__main__":
    functions()
    kept_out = sys.argv[1:]
    if "sklearn" not in kept_out and importlib.util.find_spec("sklearn"):
        estimators()
        print("functions and estimators work without Numba")
    else:
        print("functions work without Numba and scikit-learn")
