"""Arrays of several series of equal length mean the same everywhere."""

import pickle

import numpy as np
import pytest
from refusals import refused

from maxent.kernels import FisherScores, ProductKernel, product_kernel
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


@pytest.mark.parametrize("cls, options", VECTORS)
def test_models_remember_the_columns_of_data_frames(cls, options, rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.normal(size=(12, 2)), columns=["a", "b"])
    turned = frame[["b", "a"]]
    model = cls.fit(frame, random_state=0, **options)
    assert model.feature_names == ["a", "b"]
    assert pickle.loads(pickle.dumps(model)).feature_names == ["a", "b"]
    value = model.log_likelihood(frame)
    np.testing.assert_array_equal(model.log_likelihood(frame.to_numpy()), value)
    match = r"sequences has the columns \['b', 'a'\].*also in their order. Pass"
    refused(lambda: model.log_likelihood(turned), match)
    refused(lambda: model.log_likelihood([frame, turned]), r"sequences\[1\] has the")
    refused(lambda: cls.fit([frame, turned], **options), "another data frame had")
    other = frame.rename(columns={"a": "c"})
    refused(lambda: model.log_likelihood(other), r"should match. Rename")
    refused(lambda: cls.fit(turned, init=model), r"\['b', 'a'\], but the fit had")
    refused(lambda: cls.fit_many([turned], init=model), r"data\[0\].*but the fit had")
    back = cls.fit(turned, random_state=0, **options)
    match = r"Q\[0\] was fitted to the columns \['b', 'a'\], another model to"
    refused(lambda: product_kernel([model], [back], horizon=2), match)
    many = cls.fit_many([frame, frame], random_state=0, **options)
    assert many[1].feature_names == ["a", "b"]
    assert cls.fit(frame.to_numpy(), random_state=0, **options).feature_names is None


@pytest.mark.parametrize(
    "cls, options",
    [
        (CategoricalHMM, {"n_states": 2, "max_iter": 3, "random_state": 0}),
        (MarkovChain, {}),
    ],
)
def test_rows_of_integers_are_sequences_of_symbols(cls, options, rng):
    X = rng.integers(0, 3, size=(5, 9))
    model = cls.fit(X, **options)
    assert model == cls.fit(list(X), **options)
    assert model.log_likelihood(X).shape == (5,)


@pytest.mark.parametrize(
    "cls, size, name",
    [
        (CategoricalHMM, 2, "n_states"),
        (GaussianHMM, 2, "n_states"),
        (LinearDynamicalSystem, 1, "n_states"),
        (MarkovChain, 2, "order"),
        (FactorialHMM, [2], "n_states"),
    ],
)
def test_fit_many_takes_the_number_by_its_place(cls, size, name, rng):
    X = list(rng.integers(0, 3, size=(2, 20)))
    options = {} if cls is MarkovChain else {"max_iter": 2, "random_state": 0}
    assert cls.fit_many(X, size, **options) == cls.fit_many(
        X, **{name: size}, **options
    )
    refused(lambda: cls.fit_many(X, size, **{name: size}), name)
    refused(lambda: cls.fit_many(X, size, None, None, None), "fit_many")
