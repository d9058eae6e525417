"""Models as model files hold them: a specification of arrays, and back."""

import numpy as np
import pytest
from models.factor_cases import random_field, random_net
from models.sequence_cases import random_gaussian_hmm, random_hmm

from maxent._support.encoding import Decoder, Encoder
from maxent._support.registry import VALUES, rebuilt, resolve
from maxent.families import Gaussian, Poisson
from maxent.models import MarkovChain, Mixture

MAKERS = {
    "BayesNet": lambda rng: random_net(rng, dict.fromkeys("abcdefghij", 2), ["a", "c"]),
    "CategoricalHMM": lambda rng: random_hmm(rng, 3, 4),
    "GaussianHMM": lambda rng: random_gaussian_hmm(rng, 2, 2, "diagonal"),
    "MarkovChain": lambda rng: MarkovChain.fit(["ABBA"], 2, alphabet="AB"),
    "MarkovRandomField": lambda rng: random_field(rng, {"a": 2, "b": 3}, forbid=0.2),
    "Mixture": lambda rng: Mixture([0.5, 0.5], Poisson([1.0, 2.0])),
}


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_model_comes_back_as_it_was(name, rng):
    model = MAKERS[name](rng)
    encoder = Encoder(VALUES)
    data = encoder.value(
        [model, Mixture([1.0], Gaussian([[0.0]], [[[1.0]]]))], "models"
    )
    decoder = Decoder(
        encoder.arrays, lambda kind, spec: rebuilt(resolve(VALUES[kind]), spec)
    )
    back, _ = decoder.value(data)
    assert back == model and type(back) is type(model)


def test_a_family_that_does_not_exist_is_refused():
    spec = {"weights": np.ones(1), "family": "Block", "components": {}}
    with pytest.raises(ValueError, match="family='Block'"):
        Mixture.from_spec(spec)
