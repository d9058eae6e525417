"""Model files of generative models: priors and posteriors as specifications."""

import numpy as np
import pytest
from _persistence.model_files import resign
from numba import njit

from maxent import (
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    load,
    save,
)
from maxent._persistence import persistence
from maxent._persistence.persistence import ModelFileError, read_model
from maxent._support.registry import resolve
from maxent.discrimination import (
    CustomMargin,
    GaussianCentre,
    GaussianScores,
    LaplaceMargin,
    LatentMixture,
)
from maxent.families import (
    DirichletCounts,
    DirichletProduct,
    NormalGamma,
    NormalInverseWishart,
)

# easy levels on purpose: what matters is that files hold what was fitted


def features(rng, n=24, d=2):
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.8 * y[:, None], y


def words(rng, n=24, d=3):
    y = np.arange(n) % 2
    X = np.where(rng.random((n, d)) < 0.3 + 0.4 * y[:, None], "x", "y")
    return X.astype(object), y


# ------------------------------------------------------------------------ round trips


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("prior", ["weak", "object"])
def test_a_loaded_gaussian_classifier_decides_to_the_bit(path, n_classes, prior, rng):
    X, _ = features(rng)
    y = np.arange(24) % n_classes
    if prior == "object":
        prior = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    model = MEDGaussianClassifier(prior=prior, level=3.0, tol=1e-3).fit(X, y)
    save(model, path)
    back = load(path)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.means_, model.means_)
    assert type(back.posteriors_[0]) is NormalInverseWishart
    assert back.fit(X, y).n_iter_ == model.n_iter_


@pytest.mark.parametrize("parents", [None, [(), (0,), (0, 1)]])
def test_a_loaded_bayes_net_decides_to_the_bit(path, parents, rng):
    X, y = words(rng)
    model = MEDBayesNetClassifier(parents, margin=LaplaceMargin(3.0, 2.0)).fit(X, y)
    save(model, path)
    back = load(path)
    assert back.margin == model.margin and back.parents == parents
    assert back.posteriors_[1].parents == model.posteriors_[1].parents
    X[0, 1] = "never seen"
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


MODELS = {
    "gaussian": lambda: "gaussian",
    "multinomial": lambda: "multinomial",
    "tree": lambda: "tree",
    "wishart": lambda: NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)),
    "normal-gamma": lambda: NormalGamma([0.0], [[1.0]], 2.0, 2.0),
    "categories": lambda: DirichletProduct(1.0, [2, 2, 2]),
    "counts": lambda: DirichletCounts([1.0, 1.0, 2.0]),
    "scores": lambda: GaussianScores("poly", degree=2, coef0=1.0),
    "mixture": lambda: LatentMixture("gaussian", 2, 2, 0),
    "centre": lambda: GaussianCentre("rbf", gamma=0.3),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_outlier_detector_scores_to_the_bit(path, name, rng):
    X, _ = features(rng)
    if name in ("categories", "counts"):
        X = rng.integers(0, 2, size=(24, 3))
    if name in ("multinomial", "tree"):
        X, _ = words(rng)
    model = MEDOutlierDetector(MODELS[name]()).fit(X)
    save(model, path)
    back = load(path)
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert type(back.posterior_) is type(model.posterior_)
    assert type(back.model) is type(model.model)
    if name in ("multinomial", "tree"):
        X[0, 1] = "never seen"
        np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))


def test_the_same_model_gives_the_same_bytes(tmp_path, rng):
    model = MEDOutlierDetector().fit(features(rng)[0])
    save(model, tmp_path / "a")
    save(load(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_contents_can_be_read_without_making_the_values(path, monkeypatch, rng):
    model = MEDGaussianClassifier(level=3.0).fit(*features(rng))
    spec = model.posteriors_[0].get_spec()
    save(model, path)
    monkeypatch.setattr(NormalInverseWishart, "__init__", None)
    seen = read_model(path).fitted["posteriors_"][0]
    assert set(seen) == set(spec)
    np.testing.assert_array_equal(seen["scale"], spec["scale"])


def test_every_registered_value_is_the_class_it_names():
    for name in persistence.VALUES:
        cls = resolve(persistence.VALUES[name])
        assert f"{cls.__module__}:{cls.__qualname__}" == persistence.VALUES[name]
        assert cls.__name__ == name and hasattr(cls, "get_spec")


# ------------------------------------------------------------------ what is not saved


class Own(NormalInverseWishart):
    pass


def test_priors_of_other_modules_are_refused_by_name(path, rng):
    prior = Own(np.zeros(2), 1.0, 4.0, np.eye(2))
    model = MEDGaussianClassifier(prior=prior, level=3.0).fit(*features(rng))
    with pytest.raises(TypeError, match=r"of MEDGaussianClassifier is of type .*Own"):
        save(model, path)
    assert not path.exists()


def test_a_class_that_only_shares_the_name_is_refused(path, rng):
    other = type("NormalInverseWishart", (NormalInverseWishart,), {})
    model = MEDOutlierDetector(other(np.zeros(2), 1.0, 4.0, np.eye(2)))
    model.fit(features(rng)[0])
    with pytest.raises(TypeError, match="NormalInverseWishart, which a model"):
        save(model, path)


@njit
def _potential(u):
    return u - 0.5 * u * u


@njit
def _slope(u):
    return 1.0 - u


@njit
def _curvature(u):
    return 1.0


def test_a_prior_of_functions_is_refused_with_the_reason(path, rng):
    margin = CustomMargin(_potential, _slope, _curvature)
    model = MEDClassifier("linear", margin=margin).fit(*features(rng))
    with pytest.raises(
        TypeError, match=r"parameter margin of MEDClassifier: .*compiled functions"
    ):
        save(model, path)


# ---------------------------------------------------------------------- hostile files


def outlier_file(path, rng):
    save(MEDOutlierDetector().fit(features(rng)[0]), path)


def posterior(metadata):
    return metadata["fitted"]["posterior_"]["__value__"]


def set_parameter(metadata, name, value):
    for pair in posterior(metadata)[1]["__dict__"]:
        if pair[0] == name:
            pair[1] = value


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "MEDClassifier",
        "CustomMargin",
        "Gaussian",
        "__class__",
        "",
        "x" * 999,
    ]
    + ["maxent.families.priors.normal_wishart:NormalInverseWishart", 3, None, ["a"]],
)
def test_values_of_other_classes_are_refused(path, name, rng):
    outlier_file(path, rng)

    def rename(metadata, members):
        posterior(metadata)[0] = name

    resign(path, rename)
    with pytest.raises(ModelFileError, match=r"unknown class|damaged") as error:
        load(path)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "content",
    [
        [],
        ["NormalInverseWishart"],
        ["NormalInverseWishart", 3],
        ["NormalInverseWishart", [1, 2]],
        ["NormalInverseWishart", {"__dict__": []}],
        ["NormalInverseWishart", {"__dict__": [["mean", 0.0]]}],
        ["NormalInverseWishart", {"__dict__": [[3, 0.0]]}],
        ["ExponentialMargin", {"__dict__": [["rate", -1.0]]}],
        ["ExponentialMargin", {"__dict__": [["cls", 1.0]]}],
        ["LaplaceMargin", {"__dict__": [["rate", "1"]]}],
        ["GaussianScores", {"__dict__": [["kernel", "os"]]}],
        ["DirichletProduct", {"__dict__": [["pseudo_counts", [[1.0, -1.0]]]]}],
        ["DirichletCounts", {"__dict__": [["pseudo_counts", []]]}],
        "NormalInverseWishart",
        None,
        {"a": 1},
    ],
)
def test_specifications_that_do_not_fit_are_refused(path, content, rng):
    outlier_file(path, rng)
    resign(
        path, lambda m, members: m["fitted"].update(posterior_={"__value__": content})
    )
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("df", -1.0),
        ("df", {"__float__": "nan"}),
        ("mean_precision", {"__float__": "inf"}),
        ("mean_precision", "1.0"),
        ("mean", [0.0]),
        ("mean", [0.0, {"__float__": "nan"}]),
        ("scale", [[1.0, 2.0], [2.0, 1.0]]),
        ("scale", [[1.0, 0.5], [0.0, 1.0]]),
        ("scale", None),
    ],
)
def test_parameters_outside_their_domain_are_refused(path, name, value, rng):
    outlier_file(path, rng)
    resign(path, lambda m, members: set_parameter(m, name, value))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_an_improper_posterior_scores_nothing(path, rng):
    outlier_file(path, rng)
    resign(path, lambda m, members: set_parameter(m, "df", 0.5))
    with pytest.raises(ValueError, match="improper"):
        load(path).score_samples(features(rng)[0])


@pytest.mark.parametrize(
    "value",
    [3, None, "a", [1, 2], {"__value__": ["LaplaceMargin", {"__dict__": []}]}],
)
def test_posteriors_of_another_kind_score_nothing(path, value, rng):
    outlier_file(path, rng)
    resign(path, lambda m, members: m["fitted"].update(posterior_=value))
    with pytest.raises(ValueError, match=r"inconsistent: posterior_="):
        load(path).predict(features(rng)[0])


def test_posteriors_of_another_width_score_nothing(path, rng):
    X, _ = features(rng)
    # "gaussian" may have left the third feature out, as a constant one
    for model in (GaussianScores("linear"), GaussianCentre("linear")):
        # C so large that the mean margin is positive wherever the quantile is
        save(MEDOutlierDetector(model, C=100.0).fit(X), path)
        resign(path, lambda m, members: m["fitted"].update(n_features_in_=3))
        with pytest.raises(ValueError, match=r"\bX\b"):
            load(path).score_samples(np.ones((2, 3)))


@pytest.mark.parametrize("name", ["posteriors_", "intercept_", "classes_"])
def test_classifiers_of_parts_that_do_not_fit_decide_nothing(path, name, rng):
    X, y = features(rng)
    save(MEDGaussianClassifier(level=3.0).fit(X, y), path)
    raw = path.read_bytes()
    original = read_model(path).fitted[name]
    others = [None, 3, "a", [], [1, 2]]
    if name == "posteriors_":
        assert len(original) == 2
        others.append("one")
    for value in others:
        path.write_bytes(raw)

        def change(metadata, members, value=value):
            first = metadata["fitted"][name]
            metadata["fitted"][name] = first[:1] if value == "one" else value

        resign(path, change)
        with pytest.raises(ValueError, match=rf"inconsistent: {name}"):
            load(path).decision_function(X)


def test_nets_of_parts_that_do_not_fit_decide_nothing(path, rng):
    X, y = words(rng)
    save(MEDBayesNetClassifier(level=3.0).fit(X, y), path)
    raw = path.read_bytes()
    for value in ([], [[], [], []], [["x"]] * 4):
        path.write_bytes(raw)
        resign(path, lambda m, members, v=value: m["fitted"].update(categories_=v))
        with pytest.raises(ValueError, match="inconsistent: categories_"):
            load(path).predict(X)


def test_deeply_nested_values_are_refused(path, rng):
    outlier_file(path, rng)

    def nest(metadata, members):
        inner = None
        for _ in range(50):
            inner = ["GaussianScores", {"__dict__": [["kernel", {"__value__": inner}]]}]
        metadata["fitted"]["posterior_"] = {"__value__": inner}

    resign(path, nest)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)
