"""No step of a fit falls: of EM the likelihood, of variational EM its bound."""

import numpy as np
import pytest
from models import test_mixture
from models.chains import test_factorial, test_hmm
from models.networks import test_bayes_net, test_linear_gaussian, test_random_field
from models.systems import test_lds, test_switching


def seeded(module):
    """Worst relative step of problems that have a seed each."""
    return lambda seed, n: min(module.worst_step([seed, k]) for k in range(n))


def worst_of_chains(seed, n):
    fits = test_hmm.em_problems(np.random.default_rng(seed), n)
    return min(map(test_hmm.worst_step, fits))


def worst_of_mixtures(seed, n):
    return test_mixture.worst_step(
        test_mixture.problems(np.random.default_rng(seed), n)
    )


# Worst step of random problems, how many there are by default, and the rounding of sums
# of some hundred terms, for the switching systems of inverses as well. Two kinds have
# tests of a few fits of their own.
FITS = {
    "factorial chains": (seeded(test_factorial), 20, 1e-11),
    "hidden chains": (worst_of_chains, 30, 1e-12),
    "mixtures": (worst_of_mixtures, 40, 1e-12),
    "Bayes nets": (seeded(test_bayes_net), 0, 1e-12),
    "Gaussian networks": (seeded(test_linear_gaussian), 25, 1e-12),
    "random fields": (seeded(test_random_field), 0, 1e-12),
    "linear systems": (seeded(test_lds), 25, 1e-11),
    "switching systems": (seeded(test_switching), 20, 1e-10),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:LinearGaussianNetwork")
@pytest.mark.parametrize(
    "name, n",
    [
        *((name, n) for name, (_, n, _) in FITS.items() if n),
        *(pytest.param(name, 1000, marks=pytest.mark.slow) for name in FITS),
    ],
)
def test_no_step_falls(name, n, seed):
    worst_step, _, rounding = FITS[name]
    assert worst_step(seed, n) > -rounding
