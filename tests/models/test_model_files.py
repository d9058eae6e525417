"""Models and families in files of their own, by `maxent.save` and `maxent.load`."""

import contextlib
import json

import numpy as np
import pytest
from _persistence.model_files import resign
from families.family_cases import MAKERS as FAMILIES
from models.factor_cases import random_field, random_net
from models.sequence_cases import random_chain, random_gaussian_hmm, random_hmm
from models.state_space_cases import covariance, random_lds

import maxent
from maxent._persistence.encoding import Decoder, Encoder
from maxent._persistence.persistence import ModelFileError, read_model
from maxent._support.registry import VALUES, rebuilt, resolve
from maxent.cli import main
from maxent.families import (
    DirichletCounts,
    FamilyPrior,
    Gamma,
    Gaussian,
    NormalInverseWishart,
    Poisson,
    ProductPrior,
)
from maxent.models import (
    CategoricalHMM,
    FactorialHMM,
    HiddenMarkovModel,
    LinearGaussianNetwork,
    MarkovChain,
    Mixture,
    Mixtures,
    SwitchingLDS,
)


def random_switching(rng):
    system = random_lds(rng, 2, 3)
    return SwitchingLDS(
        *random_chain(rng, 2),
        np.stack([system.transition, 0.5 * system.transition]),
        np.stack([covariance(rng, 2), covariance(rng, 2)]),
        system.observation,
        system.observation_cov,
        system.initial_mean,
        system.initial_cov,
    )


def random_factorial(rng):
    chains = [random_chain(rng, S) for S in (2, 3)]
    means = [rng.normal(size=(S, 2)) for S in (2, 3)]
    return FactorialHMM(*zip(*chains), means, covariance(rng, 2))


MODELS = {
    "BayesNet": lambda rng: random_net(rng, dict.fromkeys("abcdef", 2), ["a", "c"]),
    "CategoricalHMM": lambda rng: CategoricalHMM(
        *random_chain(rng, 3, True), rng.dirichlet(np.ones(4), size=3), "ACGT", "N"
    ),
    "FactorialHMM": random_factorial,
    "GaussianHMM": lambda rng: random_gaussian_hmm(rng, 2, 2, "spherical"),
    "HiddenMarkovModel": lambda rng: HiddenMarkovModel(
        *random_chain(rng, 2), Poisson([1.0, 9.0])
    ),
    "LinearDynamicalSystem": lambda rng: random_lds(rng, 2, 3, steps=4),
    "LinearGaussianNetwork": lambda rng: LinearGaussianNetwork.fit(
        rng.normal(size=(9, 3)), ["a", ("b", 2)], {"b": ["a"]}
    ),
    "MarkovChain": lambda rng: MarkovChain.fit(["ABBA"], 2, alphabet="AB"),
    "MarkovRandomField": lambda rng: random_field(rng, {"a": 2, "b": 3}, forbid=0.2),
    "Mixture": lambda rng: Mixture(
        [0.2, 0.8], Gaussian(rng.normal(size=(2, 3)), covariance(rng, 3, 2))
    ),
    "Mixtures": lambda rng: Mixtures(
        rng.dirichlet(np.ones(2), 3), Gaussian(rng.normal(size=(3, 2, 2)), np.eye(2))
    ),
    "SwitchingLDS": random_switching,
}
VALUE_MAKERS = {
    **MODELS,
    **{name: lambda r, f=f: f(r, (2, 3)) for name, f in FAMILIES.items()},
    "prior": lambda rng: NormalInverseWishart(
        np.zeros(2), 1.0, 4.0, covariance(rng, 2)
    ),
    "counts": lambda rng: DirichletCounts([1.0, 1.0, 2.0]),
    "prior of a family": lambda rng: FamilyPrior(Gamma(2.0, 1.5), [0.8, 3.0], 2.0),
    "prior of columns": lambda rng: ProductPrior(
        {(0, 2): DirichletCounts([1.0, 2.0]), 1: FamilyPrior(Poisson(1.0), [3.0], 2.0)}
    ),
}
PRIORS = "prior", "counts", "prior of a family", "prior of columns"


@pytest.mark.parametrize("name", sorted(VALUE_MAKERS))
def test_a_value_comes_back_to_the_bit(name, tmp_path, rng):
    value = VALUE_MAKERS[name](rng)
    maxent.save(value, tmp_path / "a.npz")
    back = maxent.load(tmp_path / "a.npz")
    assert type(back) is type(value)
    maxent.save(back, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    if name not in PRIORS:
        assert back == value


def test_every_model_and_family_is_tried():
    held = {
        name
        for name, home in VALUES.items()
        if home.startswith(("maxent.models.", "maxent.families."))
    }
    priors = {"DirichletBayesNet", "DirichletProduct", "NormalGamma"}
    trees = {"DirichletTrees", "SpanningTrees"}
    makers = VALUE_MAKERS.values()
    tried = {type(make(np.random.default_rng(0))).__name__ for make in makers}
    assert held - priors - trees == tried


def test_a_loaded_model_has_no_fit_result_but_the_same_likelihood(tmp_path, rng):
    X = ["ABAB", "AABB", "BBBA"]
    model = CategoricalHMM.fit(X, 2, alphabet="AB", random_state=0)
    maxent.save(model, tmp_path / "m.npz", extra={"origin": "three strings"})
    back = maxent.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(back.log_likelihood(X), model.log_likelihood(X))
    assert back.fit_result is None
    seen = read_model(tmp_path / "m.npz")
    assert seen.class_name == "CategoricalHMM" and seen.fitted == {}
    assert seen.extra == {"origin": "three strings"}


def damaged(change):
    def apply(path, rng):
        maxent.save(random_hmm(rng, 2, 3), path)
        resign(path, change)

    return apply


def _rows(metadata, members):
    members[metadata["params"]["transition"]["__array__"]] *= 0.5


def _unknown(metadata, members):
    metadata["params"]["colour"] = "red"


def _fitted(metadata, members):
    metadata["fitted"]["coef_"] = 1.0


def _class(metadata, members):
    metadata["class"] = "Model"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_rows, "CategoricalHMM of it cannot be made.*transition"),
        (_unknown, "cannot be made.*colour"),
        (_fitted, "fitted attributes"),
        (_class, "class 'Model'"),
    ],
)
def test_a_file_that_says_something_wrong_is_refused(change, text, tmp_path, rng):
    damaged(change)(tmp_path / "m.npz", rng)
    with pytest.raises(ModelFileError, match=text):
        maxent.load(tmp_path / "m.npz")


def test_no_damaged_file_of_a_model_is_read_as_another(tmp_path, rng):
    path = tmp_path / "m.npz"
    model = Mixture([0.5, 0.5], Poisson(rng.uniform(1.0, 5.0, size=2)))
    maxent.save(model, path)
    raw = path.read_bytes()
    for where in range(0, len(raw), 3):
        changed = bytearray(raw)
        changed[where] ^= 1 << where % 8
        path.write_bytes(changed)
        with contextlib.suppress(ModelFileError):
            assert maxent.load(path) == model  # a stamp of the container


def test_values_inside_others_come_back(rng):
    inside = {"models": [random_hmm(rng, 2, 3), Mixture([1.0], Poisson([2.0]))]}
    encoder = Encoder(VALUES)
    data = encoder.value(inside, "models")
    decoder = Decoder(
        encoder.arrays, lambda kind, spec: rebuilt(resolve(VALUES[kind]), spec)
    )
    assert decoder.value(data) == inside


def test_a_family_that_does_not_exist_is_refused():
    spec = {"weights": np.ones(1), "family": "Block", "components": {}}
    with pytest.raises(ValueError, match="family='Block'"):
        Mixture.from_spec(spec)


def test_what_is_no_value_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"MEDClassifier.*models of maxent"):
        maxent.save({"start": 1.0}, tmp_path / "m.npz")
    with pytest.raises(TypeError, match="a class"):
        maxent.save(Poisson, tmp_path / "m.npz")


def test_the_command_line_prints_a_model_and_does_not_predict(tmp_path, rng, capsys):
    path = tmp_path / "m.npz"
    maxent.save(Mixture([0.5, 0.5], Poisson([1.0, 2.0])), path)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Mixture" in out and "rate: (2,) float64" in out
    (tmp_path / "x.csv").write_text("a\n1\n")
    assert main(["predict", str(path), str(tmp_path / "x.csv")]) == 2
    assert "does not predict" in capsys.readouterr().err


def test_classes_of_families_and_tuples_as_keys_come_back(tmp_path, rng):
    X, y = rng.poisson(3.0, size=(40, 3)).astype(float), np.arange(40) % 2
    columns = {(0, 1): Gaussian, 2: (Poisson, {"count": 2.0})}
    machine = maxent.MEDGenerativeClassifier(columns).fit(X, y)
    maxent.save(machine, tmp_path / "m.npz")
    back = maxent.load(tmp_path / "m.npz")
    assert back.columns == columns
    np.testing.assert_array_equal(
        back.decision_function(X), machine.decision_function(X)
    )

    def another_class(metadata, members):
        text = json.dumps(metadata).replace('"Poisson"', '"Path"')
        metadata |= json.loads(text)

    resign(tmp_path / "m.npz", another_class)
    with pytest.raises(ModelFileError, match="damaged"):
        maxent.load(tmp_path / "m.npz")
