"""What product_kernel refuses, before it computes anything."""

import numpy as np
import pytest
from models.sequence_cases import random_gaussian_hmm, random_hmm
from models.state_space_cases import random_lds
from refusals import refused

from maxent.families import (
    Categorical,
    DiagonalGaussian,
    Gamma,
    Gaussian,
    Multinomial,
    Poisson,
)
from maxent.kernels import (
    bayes_net_kernel,
    factorial_hmm_kernel,
    hellinger_distance,
    product_kernel,
    switching_lds_kernel,
)
from maxent.models import CategoricalHMM, MarkovChain, Mixture, SwitchingLDS

P = Poisson([1.0, 2.0])


@pytest.mark.parametrize(
    "rho, match",
    [
        (0.0, "rho=0 must be a finite number > 0"),
        (-1.0, "rho=-1 must be"),
        (np.inf, "rho=inf must be"),
        ([0.5, np.nan], "rho=nan must be"),
        ([[0.5]], r"rho has shape \(1, 1\)"),
        ([], r"rho has shape \(0,\)"),
        ("half", "rho"),
    ],
)
def test_powers(rho, match):
    refused(lambda: product_kernel(P, rho=rho), match)


def test_infinite_kernels_name_the_model_and_the_powers(rng):
    G = Gamma([2.0, 0.4], [1.0, 1.0])
    message = r"rho=1 makes the kernel of P\[1\] with itself infinite; between rho=0 "
    refused(lambda: product_kernel(G, rho=1.0), message + "and rho=0.8333")
    refused(lambda: product_kernel(G[:1], G, rho=[0.5, 1.0]), r"kernel of Q\[1\] with")
    M = [Mixture([1.0], G[:1]), Mixture([0.5, 0.5], G)]
    refused(lambda: product_kernel(M, rho=1.0), r"of component 1 of P\[1\] with itself")
    refused(
        lambda: product_kernel(Multinomial([[0.5, 0.5]], 5000), rho=1.0),
        "rho=1 with total=5000",
    )


def test_lists_and_batches():
    refused(lambda: product_kernel([]), r"P=\[\] has no model")
    refused(lambda: product_kernel(P, []), r"Q=\[\] has no model")
    refused(lambda: product_kernel(3), "P=3 must be a batch of a family or a list")
    refused(lambda: product_kernel(P[0]), r"P has batch shape \(\)")
    refused(lambda: product_kernel([P]), r"P\[0\]=.* is no single distribution")
    refused(lambda: product_kernel(Poisson(np.ones((2, 2, 2)))), "P has batch shape")
    refused(lambda: product_kernel(Poisson(np.ones((2, 2))), P), "same number of coord")
    refused(
        lambda: product_kernel(MarkovChain([1.0], [[0.5, 0.5]], 0), horizon=3),
        r"P is a single MarkovChain; pass a list of models: \[P\]",
    )
    refused(lambda: product_kernel([P[0], 3]), r"P\[1\]=3 is no single distribution")


def test_models_over_different_spaces(rng):
    refused(
        lambda: product_kernel(P, Gaussian([[0.0]], [[1.0]])), "both must be of one"
    )
    refused(
        lambda: product_kernel(Categorical([[0.5, 0.5]]), Categorical([[0.2] * 5])),
        "different spaces",
    )
    one, other = random_hmm(rng, 2, 3), random_hmm(rng, 2, 4)
    refused(
        lambda: product_kernel([one, other], horizon=2),
        r"P\[1\] has emissions over .*'n_categories': 4",
    )
    refused(lambda: product_kernel([one], [other], horizon=2), r"Q\[0\] has emissions")
    full, diagonal = (
        random_gaussian_hmm(rng, 2, 2, kind) for kind in ("full", "diagonal")
    )
    refused(
        lambda: product_kernel([full, diagonal], horizon=2),
        r"P\[1\] has DiagonalGaussian emissions, the first model Gaussian",
    )
    refused(lambda: product_kernel([one, full], horizon=2), r"P\[1\] is a GaussianHMM")
    table = [[0.5, 0.5]]
    letters = [CategoricalHMM([1.0], [[1.0]], table, a) for a in ("AB", "AC")]
    refused(
        lambda: product_kernel(letters, horizon=2),
        r"P\[1\] has alphabet='AC', the first model has 'AB'",
    )
    chains = [MarkovChain([1.0], table, 0, a) for a in ("AB", "AC")]
    refused(lambda: product_kernel(chains, horizon=2), r"P\[1\] has alphabet='AC'")
    refused(
        lambda: product_kernel(
            [chains[0], MarkovChain([1.0], [[0.2] * 5], 0)], horizon=2
        ),
        r"P\[1\] has n_symbols=5",
    )
    refused(
        lambda: product_kernel([chains[0], letters[0]], horizon=2), r"P\[1\]=.* is no"
    )
    M = Mixture([1.0], Gaussian([[0.0]], [[[1.0]]]))
    D = Mixture([1.0], DiagonalGaussian([[0.0]], [[1.0]]))
    refused(lambda: product_kernel([M, D]), r"P\[1\] has DiagonalGaussian components")
    refused(
        lambda: product_kernel([M, Mixture([1.0], P[:1])]), r"P\[1\] has event_shape"
    )


def test_horizons_and_methods(rng):
    H = [random_hmm(rng, 2, 3)]
    refused(lambda: product_kernel(H), "horizon=None: these models are of sequences")
    refused(lambda: product_kernel(H, horizon=-1), "horizon=-1 must be an integer >= 0")
    refused(lambda: product_kernel(H, horizon=[3, 2]), "must increase")
    refused(lambda: product_kernel(P, horizon=3), "horizon=3 has no meaning")
    refused(lambda: hellinger_distance(H), "horizon=None")
    refused(
        lambda: product_kernel(H, horizon=2, method="exact"),
        "method='exact' has no closed form for CategoricalHMM",
    )
    refused(
        lambda: product_kernel(H, horizon=2, method="joint"),
        "method for CategoricalHMM='joint' is not known; use one of 'auto'",
    )
    refused(lambda: product_kernel(P, method="best"), "'best' is not known")
    S = random_lds(rng, 1, 1)
    switching = SwitchingLDS(
        [0.5, 0.5], [[0.5, 0.5]] * 2, np.stack([S.transition] * 2),
        np.stack([S.transition_cov] * 2), S.observation, S.observation_cov,
        S.initial_mean, S.initial_cov,
    )  # fmt: skip
    refused(
        lambda: product_kernel([switching], horizon=[1, 40], method="exact"), "paths"
    )
    for name in ("n_paths", "n_init", "n_samples"):
        refused(lambda name=name: product_kernel(P, **{name: 0}), f"{name}=0")


def test_laws_of_lengths(rng):
    H = [random_hmm(rng, 2, 3)]
    law = "length_law"
    refused(lambda: product_kernel(H, horizon=3, length_law="normal"), law)
    refused(lambda: product_kernel(H, length_law=[0.0]), law + " has shape")
    refused(lambda: product_kernel(H, length_law=[1.0, -1.0]), r"length_law\[1\]=-1 mu")
    refused(lambda: product_kernel(H, length_law="poisson"), "horizon=None")
    refused(
        lambda: product_kernel(H, horizon=0, length_law="poisson"),
        "horizon as its mean, so horizon=0 must be > 0",
    )
    refused(
        lambda: product_kernel(H, horizon=[1, 2], length_law="poisson"), "one number"
    )
    refused(
        lambda: product_kernel(H, rho=0.05, horizon=30, length_law="geometric"),
        r"the sum for P\[0\] has not ended .* Use a larger rho",
    )
    refused(lambda: product_kernel(P, length_law="poisson"), "Poisson has no length")
    mixture = [Mixture([1.0], P[:1])]
    refused(lambda: product_kernel(mixture, length_law="poisson"), "models of sequence")
    refused(
        lambda: product_kernel(
            Multinomial([[0.25] * 4], 9), rho=0.25, length_law="geometric"
        ),
        r"kernel of P\[0\] with itself infinite",
    )


def test_kernels_of_one_power_name_the_one_of_several():
    several, match = [0.5, 1.0], "product_kernel takes several"
    refused(lambda: bayes_net_kernel([], rho=several), match)
    refused(lambda: switching_lds_kernel([], rho=several, horizon=1), match)
    refused(lambda: factorial_hmm_kernel([], rho=several, horizon=1), match)
