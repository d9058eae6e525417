"""Families as values: immutable, indexed, compared, printed, checked."""

import copy
import pickle

import numpy as np
import pytest
from families.family_cases import MAKERS, NAMES
from refusals import refusals, refused

import maxent.families as families
from maxent.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Exponential,
    ExponentialFamily,
    Gamma,
    Gaussian,
    Geometric,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    VonMisesFisher,
    Wishart,
)

every = pytest.mark.parametrize("name", NAMES)


def test_every_family_is_tested():
    classes = {type(make(np.random.default_rng(0), ())) for make in MAKERS.values()}
    exported = {getattr(families, name) for name in families.__all__}
    known = {c for c in exported if isinstance(c, type)} - {ExponentialFamily}
    assert {c for c in known if issubclass(c, ExponentialFamily)} == classes


# -- immutability ----------------------------------------------------------------------
@every
def test_a_family_cannot_be_changed(name, rng):
    P = MAKERS[name](rng, (3,))
    for key, value in P.parameters().items():
        with pytest.raises(AttributeError, match="is immutable"):
            setattr(P, key, value)
        with pytest.raises(AttributeError, match="is immutable"):
            delattr(P, key)
        if isinstance(value, np.ndarray):
            assert value.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0.5
            with pytest.raises(ValueError, match="WRITEABLE"):
                value.setflags(write=True)
    for derived in (P.natural_parameters, P.mean_parameters, P.cumulant()):
        with pytest.raises(ValueError, match="read-only"):
            derived[...] = 0.0


@every
def test_arrays_of_the_caller_stay_their_own(name, rng):
    P = MAKERS[name](rng, (3,))
    given = {
        k: np.array(v) if isinstance(v, np.ndarray) else v
        for k, v in P.parameters().items()
    }
    Q = type(P)(**given)
    for value in given.values():
        if isinstance(value, np.ndarray):
            assert value.flags.writeable
            value[...] = 0.1
    assert Q == P


# -- batches ---------------------------------------------------------------------------
@every
def test_indexing_is_that_of_arrays(name, rng):
    P = MAKERS[name](rng, (4, 3))
    X = P[0, 0].sample(2, rng)
    log_p = P.log_prob(X)
    mask = rng.random(4) < 0.5
    for index in [
        0,
        -1,
        (1, 2),
        slice(1, 3),
        (slice(None), 1),
        ...,
        [2, 0, 2],
        mask,
        (None, 0),
        slice(2, 2),
    ]:
        part = P[index]
        assert type(part) is type(P)
        expected = log_p[index]
        assert part.batch_shape == expected.shape[:-1]
        np.testing.assert_allclose(part.log_prob(X), expected, rtol=1e-12, atol=1e-13)
    assert len(P) == 4 and len(P[1]) == 3
    assert [len(part) for part in P] == [3] * 4
    with pytest.raises(IndexError):
        P[4]
    with pytest.raises(IndexError):
        P[0, 0, 0]
    with pytest.raises(TypeError, match=r"single distribution has no len\(\)"):
        len(P[0, 0])


def test_batch_axes_broadcast():
    P = Gaussian(np.zeros((5, 1, 2)), np.eye(2) * np.ones((3, 1, 1)))
    assert P.batch_shape == (5, 3) and P.cov.shape == (5, 3, 2, 2)
    assert P[2, 1] == Gaussian(np.zeros(2), np.eye(2))
    assert Gamma([1.0, 2.0], 3.0).scale.tolist() == [3.0, 3.0]
    refused(
        lambda: Gamma([1.0, 2.0], [1.0, 2.0, 3.0]),
        r"do not broadcast: shape \(2,\), scale \(3,\)",
    )


@every
def test_equality_hash_copies_and_pickles(name, rng):
    P = MAKERS[name](rng, (3,))
    again = type(P)(**P.parameters())
    assert again == P and hash(again) == hash(P)
    for other in (P[:2], P[::-1], P[0], 3, "text", None):
        assert other != P
    P.entropy()
    for other in (copy.copy(P), copy.deepcopy(P), pickle.loads(pickle.dumps(P))):
        assert other == P
        assert not any(array.flags.writeable for array in other._arrays())


def test_negative_zero_is_zero():
    P, Q = Gaussian([0.0], [[1.0]]), Gaussian([-0.0], [[1.0]])
    assert P == Q and hash(P) == hash(Q)


@pytest.mark.parametrize(
    "P, text",
    [
        (Poisson([1.0, 2.5]), "Poisson(rate=[1. , 2.5])"),
        (Poisson(3), "Poisson(rate=3.)"),
        (Multinomial([0.5, 0.5], 3), "Multinomial(prob=[0.5, 0.5], total=3)"),
        (Geometric(0.5), "Geometric(prob=0.5)"),
        (
            Gaussian(np.zeros((50, 3)), np.eye(3)),
            "Gaussian(mean=<array of shape (50, 3)>, cov=<array of shape (50, 3, 3)>)",
        ),
    ],
)
def test_repr(P, text):
    assert repr(P) == text


# -- parameters that are refused -------------------------------------------------------
test_parameters_outside_their_domain_are_refused = refusals(
    [
        (lambda: Gaussian([0, 0], [[1, 2], [2, 1]]), r"cov is not positive .* is -1\."),
        (
            lambda: Gaussian([0, 0], [np.eye(2), -np.eye(2)]),
            r"cov\[1\] is not positive .* smallest eigenvalue is -1\. .*ridge",
        ),
        (lambda: Gaussian([0, 0], [[1, 0.5], [0, 1]]), "cov is not symmetric"),
        (lambda: Gaussian([0, 0], np.ones((2, 3))), r"shape \(2, 3\); .* square"),
        (lambda: Gaussian([0, 0, 0], np.eye(2)), r"mean has shape \(3,\) but cov"),
        (lambda: Gaussian([0, 0], 1.0), r"cov has shape \(\); .* needs 2 axes"),
        (lambda: Gaussian(0.0, np.eye(1)), r"mean has shape \(\); .* needs 1 axis"),
        (lambda: Gaussian([], np.eye(1)), "has no dimension"),
        (lambda: Gaussian([0, np.nan], np.eye(2)), r"mean\[1\]=nan must be a finite"),
        (lambda: Gaussian([0, 1j], np.eye(2)), "mean is complex"),
        (lambda: Gaussian(["a"], [[1.0]]), "mean=.* cannot be converted"),
        (lambda: DiagonalGaussian([0, 0], [1, 0]), r"var\[1\]=0 must be > 0"),
        (lambda: DiagonalGaussian([0, 0], [1.0]), r"mean has shape \(2,\) but var"),
        (lambda: SphericalGaussian([0, 0], -1.0), "var=-1 must be > 0"),
        (lambda: Bernoulli([0.2, 1.2]), r"prob\[1\]=1\.2 must be in \[0, 1\]"),
        (lambda: Categorical([[0.5, 0.5], [0.5, 0.49]]), r"prob\[1\] sums to 0\.99; "),
        (lambda: Categorical([0.5, 0.5 + 2e-8]), r"prob sums to 1\.00000002; "),
        (lambda: Categorical([1.5, -0.5]), r"prob\[0\]=1\.5 must be in"),
        (lambda: Categorical(0.5), "needs 1 axis"),
        (lambda: Multinomial([0.5, 0.5], 0), "total=0 must be an integer >= 1"),
        (lambda: Multinomial([0.5, 0.5], 2.5), r"total=2\.5 must be an integer"),
        (lambda: Multinomial([0.5, 0.5], [2, 3]), r"total=\[2, 3\] must be an integer"),
        (lambda: Poisson([1.0, -1.0]), r"rate\[1\]=-1 must be >= 0"),
        (lambda: Poisson(np.inf), "rate=inf must be a finite number"),
        (lambda: Geometric(0.0), "prob=0 must be > 0"),
        (lambda: Geometric(1.1), r"prob=1\.1 must be in \[0, 1\]"),
        (lambda: NegativeBinomial(0.5, 0.0), r"r=0\.0 must be a finite number > 0"),
        (lambda: NegativeBinomial(0.5, [1, 2]), r"r=\[1, 2\] must be a finite number"),
        (lambda: Exponential(0.0), "scale=0 must be > 0"),
        (lambda: Gamma(0.0, 1.0), "shape=0 must be > 0"),
        (lambda: Gamma(1.0, -2.0), "scale=-2 must be > 0"),
        (lambda: Beta(1.0, 0.0), "b=0 must be > 0"),
        (lambda: Dirichlet([1.0, 0.0]), r"alpha\[1\]=0 must be > 0"),
        (lambda: Dirichlet([1.0]), "at least two proportions"),
        (lambda: Wishart(1.0, np.eye(2)), r"df=1 must be > p - 1 = 1, for 2 x 2"),
        (lambda: Wishart([3.0, 0.5], np.eye(2)), r"df\[1\]=0\.5 must be > p - 1"),
        (
            lambda: InverseWishart(3.0, np.zeros((2, 2))),
            "scale is not positive definite",
        ),
        (lambda: VonMisesFisher([1.0, 1.0], 1.0), r"mean_direction has length 1\.414"),
        (lambda: VonMisesFisher([1.0], 1.0), "at least two coordinates"),
        (lambda: VonMisesFisher([1.0, 0.0], -1.0), r"concentration=-1 must be >= 0"),
    ]
)


def test_probabilities_are_not_renormalised():
    prob = [0.25, 0.75 + 5e-9]
    assert Categorical(prob).prob.tolist() == prob
    assert Multinomial(prob, 3).prob.tolist() == prob


@every
def test_rows_of_another_shape_are_refused(name, rng):
    P = MAKERS[name](rng, (2,))
    X = P[0].sample(3, rng)
    refused(
        lambda: P.log_prob(X[..., None]) if P.event_shape else P.log_prob(1.0),
        "X has shape",
    )
    bad = np.array(X, dtype=float)
    bad.flat[0] = np.nan
    refused(lambda: P.log_prob(bad), r"^X\[0.*\]=nan must be a finite number")
    bad.flat[0] = np.inf
    refused(lambda: P.sufficient_statistics(bad), r"^X\[0.*\]=inf must be a finite")
    refused(lambda: P.cumulant([1.0] * 99), r"natural_parameters has shape \(99,\)")
