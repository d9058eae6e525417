"""Pipelines with transformers of scikit-learn in model files."""

import numpy as np
import pytest
from _persistence.model_files import resign
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from maxent import MEDClassifier, load, save
from maxent._persistence.foreign_steps import FOREIGN
from maxent._persistence.persistence import ModelFileError, read_model

NUMBERS = [
    Binarizer(),
    FeatureUnion([("a", MissingIndicator(features="all")), ("b", SimpleImputer())]),
    FunctionTransformer(),
    KBinsDiscretizer(4, strategy="uniform"),
    KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
    MaxAbsScaler(),
    MinMaxScaler(),
    Normalizer(),
    PCA(2),
    PolynomialFeatures(2),
    PowerTransformer(),
    QuantileTransformer(n_quantiles=10),
    RobustScaler(),
    StandardScaler(),
    TruncatedSVD(2, random_state=0),
    VarianceThreshold(),
]
WORDS = [
    CountVectorizer(ngram_range=(1, 2)),
    TfidfVectorizer(),
    make_pipeline(CountVectorizer(), TfidfTransformer()),
]
MIXED = [
    ColumnTransformer([("n", SimpleImputer(), ["a"])], remainder="drop"),
    ColumnTransformer(
        [
            (
                "n",
                make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
                make_column_selector(dtype_include="number"),
            ),
            ("c", OneHotEncoder(handle_unknown="ignore", min_frequency=2), ["c", "d"]),
        ]
    ),
    ColumnTransformer(
        [
            (
                "o",
                OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                slice(2, 4),
            )
        ],
        remainder=SimpleImputer(),
    ),
    ColumnTransformer([("one", OneHotEncoder(), ["d"])], remainder="drop").set_output(
        transform="default"
    ),
]


def back(pipe, path):
    save(pipe, path)
    return load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def rows(rng):
    X = rng.standard_normal((60, 4))
    y = np.arange(60) % 2
    X[:, 0] += y
    X[3, 2] = np.nan
    return X, y


@pytest.mark.parametrize("step", NUMBERS, ids=lambda step: type(step).__name__)
def test_a_loaded_pipeline_decides_to_the_bit(step, path, rng):
    X, y = rows(rng)
    first = [] if isinstance(step, FeatureUnion) else [SimpleImputer()]
    pipe = make_pipeline(*first, clone(step), SimpleImputer(), MEDClassifier())
    again = back(pipe.fit(X, y), path)
    new = rng.standard_normal((20, 4))
    new[2, 1] = np.nan
    np.testing.assert_array_equal(
        again.decision_function(new), pipe.decision_function(new)
    )
    assert [name for name, _ in again.steps] == [name for name, _ in pipe.steps]
    for one, two in zip(pipe.steps, again.steps, strict=True):
        assert vars(one[1]).keys() == vars(two[1]).keys()
    clone(again).fit(X, y)  # parameters are whole


@pytest.mark.parametrize("step", WORDS, ids=lambda step: type(step).__name__)
def test_texts(step, path):
    X = ["a cat sat on the mat", "cats and mats", "dogs bark", "the dog barks at cats"]
    pipe = make_pipeline(clone(step), MEDClassifier("linear"))
    again = back(pipe.fit(X * 3, [0, 0, 1, 1] * 3), path)
    np.testing.assert_array_equal(again.decision_function(X), pipe.decision_function(X))


@pytest.mark.parametrize("step", MIXED)
def test_columns_of_frames(step, path, rng):
    pd = pytest.importorskip("pandas")
    X, y = rows(rng)
    frame = pd.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 2],
            "c": np.where(rng.random(60) < 0.5, "u", None),
            "d": rng.choice(["x", "y", "z"], 60),
        }
    )
    pipe = make_pipeline(clone(step), SimpleImputer(), MEDClassifier())
    again = back(pipe.fit(frame, y), path)
    frame.loc[0, "c"] = "v"  # a new category
    np.testing.assert_array_equal(
        again.decision_function(frame), pipe.decision_function(frame)
    )
    np.testing.assert_array_equal(
        again[0].get_feature_names_out(), pipe[0].get_feature_names_out()
    )


def test_every_class_of_the_list_is_tried():
    def names(steps):
        for step in steps:
            yield type(step).__name__
            inside = getattr(step, "transformers", getattr(step, "steps", []))
            inside = getattr(step, "transformer_list", inside)
            yield from names([part[1] for part in inside])

    tried = {*names([*NUMBERS, *WORDS, *MIXED]), "SimpleImputer"}
    assert set(FOREIGN) <= tried


@pytest.mark.parametrize(
    "step, match",
    [
        (SelectKBest(k=2), "step 'odd', SelectKBest, is of another .*skops"),
        (
            FeatureUnion([("a", StandardScaler()), ("b", SelectKBest(k=2))]),
            "step 'odd__b', SelectKBest",
        ),
        (
            ColumnTransformer([("t", make_pipeline(SelectKBest(k=1)), [0, 1])]),
            "step 'odd__t__selectkbest', SelectKBest",
        ),
        (FunctionTransformer(np.abs), "func of FunctionTransformer.*absolute.*skops"),
    ],
)
def test_what_no_file_holds_is_named(step, match, path, rng):
    X, y = rows(rng)
    pipe = Pipeline([("odd", step), ("m", MEDClassifier())]).fit(np.nan_to_num(X), y)
    with pytest.raises(TypeError, match=match):
        save(pipe, path)
    assert not path.exists()


def test_other_estimators_are_refused(path, rng):
    X, y = rows(rng)
    pipe = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="step 'logisticregression'"):
        save(pipe, path)
    with pytest.raises(TypeError, match="StandardScaler"):
        save(StandardScaler().fit(np.nan_to_num(X)), path)


def saved(path, rng):
    X, y = rows(rng)
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), MEDClassifier()).fit(X, y)
    save(pipe, path)
    return pipe, X


def test_the_version_of_scikit_learn_is_compared(path, rng):
    import sklearn

    pipe, X = saved(path, rng)
    assert read_model(path).sklearn_version == sklearn.__version__
    resign(path, lambda metadata, _: metadata.update(sklearn_version="0.24.1"))
    with pytest.warns(UserWarning, match="written with version 0.24.1, and "):
        again = load(path)
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))
    save(pipe[-1], path)  # nothing of scikit-learn in it
    assert read_model(path).sklearn_version is None


@pytest.mark.parametrize("name", ["transform", "__class__", "a b", "n_features_out"])
def test_attributes_that_hide_methods_are_refused(name, path, rng):
    saved(path, rng)

    def change(metadata, _):
        steps = metadata["params"]["steps"]
        scaler = steps[1]["__tuple__"][1]["__estimator__"]
        assert scaler[0] == "StandardScaler"
        scaler[2][name] = 1.0

    resign(path, change)
    if name == "n_features_out":  # a name that hides nothing
        load(path)
    else:
        with pytest.raises(ModelFileError, match="StandardScaler"):
            load(path)


def test_no_other_class_is_made(path, rng):
    saved(path, rng)

    def change(metadata, _):
        steps = metadata["params"]["steps"]
        steps[1]["__tuple__"][1]["__estimator__"][0] = "DecisionTreeClassifier"

    resign(path, change)
    with pytest.raises(ModelFileError, match="DecisionTreeClassifier"):
        load(path)


def test_skops_saves_the_others(path, rng):
    io = pytest.importorskip("skops.io")
    X, y = rows(rng)
    pipe = make_pipeline(SimpleImputer(), SelectKBest(k=2), MEDClassifier()).fit(X, y)
    io.dump(pipe, path)
    trusted = io.get_untrusted_types(file=path)
    assert any(name.endswith("MEDClassifier") for name in trusted)
    again = io.load(path, trusted=trusted)
    np.testing.assert_array_equal(again.decision_function(X), pipe.decision_function(X))
