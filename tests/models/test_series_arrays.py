"""Arrays of several series of equal length mean the same everywhere."""

import pytest

from maxent.kernels import FisherScores, ProductKernel
from maxent.models import (
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    MarkovChain,
    SwitchingLDS,
)

VECTORS = [
    (GaussianHMM, {"n_states": 2, "max_iter": 3}),
    (LinearDynamicalSystem, {"n_states": 2, "max_iter": 3}),
    (SwitchingLDS, {"n_regimes": 1, "n_states": 1, "max_iter": 3}),
    (FactorialHMM, {"n_states": [2], "max_iter": 3}),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("cls, options", VECTORS)
def test_three_axes_are_series_of_vectors(cls, options, rng):
    X = rng.normal(size=(3, 12, 2))
    one = cls.fit(X, random_state=0, **options)
    assert one == cls.fit(list(X), random_state=0, **options)
    assert one.log_likelihood(X).shape == (3,)
    many = cls.fit_many(X, random_state=0, **options)
    assert many == cls.fit_many(list(X), random_state=0, **options)
    if cls in (GaussianHMM, LinearDynamicalSystem):
        assert len(FisherScores(one).fit_transform(X)) == 3
    if cls is not FactorialHMM:
        K = ProductKernel(cls, horizon=3, model_params=options).fit_transform(X)
        assert K.shape == (3, 3)


@pytest.mark.parametrize("cls, options", VECTORS)
@pytest.mark.parametrize("frame", [False, True])
def test_two_axes_are_a_series_in_each_row_for_many_fits(cls, options, frame, rng):
    X = rng.normal(size=(3, 12))
    given = pytest.importorskip("pandas").DataFrame(X) if frame else X
    many = cls.fit_many(given, random_state=0, **options)
    assert [m.n_features for m in many] == [1, 1, 1]
    assert many == cls.fit_many(list(X), random_state=0, **options)
    cut = cls.fit_many(X.T, lengths=[7, 5], random_state=0, **options)
    assert [m.n_features for m in cut] == [3, 3]


@pytest.mark.parametrize(
    "cls, options", [(CategoricalHMM, {"n_states": 2}), (MarkovChain, {})]
)
def test_rows_of_codes_are_a_sequence_each_for_many_fits(cls, options, rng):
    X = rng.integers(0, 3, (4, 9))
    options = {**options, "n_symbols": 3, "smoothing": 0.1}
    random = {} if cls is MarkovChain else {"random_state": 0}
    many = cls.fit_many(X, **random, **options)
    assert many == cls.fit_many(list(X), **random, **options)
