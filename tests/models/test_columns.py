"""Columns of data frames: in order for models of rows, by name for networks."""

import pickle

import numpy as np
import pytest
from refusals import refused

import maxent
from maxent.families import Gaussian, Poisson
from maxent.kernels import (
    FisherScores,
    ProductKernel,
    marginalized_features,
    product_kernel,
    shared_sample_features,
)
from maxent.models import (
    BayesNet,
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    MarkovRandomField,
    Mixture,
    SwitchingLDS,
)

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NODES = ("a", "b", "c")
PARENTS = {"a": [], "b": ["a"], "c": ["a", "b"]}
SCOPES = [("a", "b"), ("b", "c")]


def codes(rng):
    """Columns of different laws, not in the order of the nodes."""
    a = rng.integers(0, 3, 60)
    b = np.where(rng.random(60) < 0.7, a, 0)
    columns = {"c": (a + b) % 2, "a": a, "b": b}
    return pandas.DataFrame(columns, index=rng.permutation(60))


def numbers(rng):
    X = rng.normal(size=(60, 3)) @ np.triu(rng.normal(size=(3, 3)))
    return pandas.DataFrame(X + [0, 30, -5], columns=["c", "a", "b"])


def nets(rng):
    """Fits of networks with the data: (fit, frame)."""
    return [
        (lambda X, **o: BayesNet.fit(X, PARENTS, **o), codes(rng)),
        (lambda X, **o: MarkovRandomField.fit(X, SCOPES, **o), codes(rng)),
        (
            lambda X, **o: LinearGaussianNetwork.fit(X, NODES, PARENTS, **o),
            numbers(rng),
        ),
    ]


def test_networks_take_columns_by_the_names_of_their_nodes(rng):
    for fit, frame in nets(rng):
        rows = frame[list(NODES)].to_numpy()
        net, same = fit(frame), fit(rows)
        assert net == same
        assert net.feature_names == same.feature_names == list(NODES)
        assert pickle.loads(pickle.dumps(net)).feature_names == list(NODES)
        value = net.log_likelihood(rows)
        for order in (["c", "a", "b"], ["b", "c", "a"]):
            np.testing.assert_array_equal(net.log_likelihood(frame[order]), value)
            scores = FisherScores(net).transform(frame[order])
            np.testing.assert_array_equal(scores, FisherScores(net).transform(rows))
        # columns that are not named by strings stay in their places
        plain = pandas.DataFrame(rows)
        np.testing.assert_array_equal(net.log_likelihood(plain), value)


def test_posteriors_of_networks_take_columns_by_name(rng):
    frame = codes(rng)
    for net in (
        BayesNet.fit(frame, PARENTS),
        BayesNet.fit(
            frame[["b", "a"]],
            PARENTS,
            ["a", "b"],
            n_categories={"c": 2},
            random_state=0,
        ),
    ):
        own = list(net.observed)
        turned = frame[own[::-1]]
        left = net.posterior(turned, ["c"])["c"]
        right = net.posterior(frame[own].to_numpy(), ["c"])["c"]
        np.testing.assert_array_equal(left, right)
    net = LinearGaussianNetwork.fit(
        numbers(rng)[["b", "a"]], NODES, PARENTS, ["a", "b"], prior=1.0, random_state=0
    )
    X = numbers(rng)
    for left, right in zip(
        net.posterior(X[["b", "a"]]), net.posterior(X[["a", "b"]].to_numpy())
    ):
        np.testing.assert_array_equal(left, right)


def test_coordinates_of_vector_nodes_have_numbers(rng):
    frame = numbers(rng).rename(columns={"a": "v[0]", "b": "v[1]"})
    order, parents = [("v", 2), "c"], {"c": ["v"]}
    net = LinearGaussianNetwork.fit(frame, order, parents)
    assert net.feature_names == ["v[0]", "v[1]", "c"]
    rows = frame[net.feature_names].to_numpy()
    assert net == LinearGaussianNetwork.fit(rows, order, parents)


def test_other_columns_than_the_nodes_are_refused(rng):
    for fit, frame in nets(rng):
        net = fit(frame)
        odd = [
            (frame.rename(columns={"a": "z"}), "'z' is none of them"),
            (frame.assign(d=frame["a"]), "'d' is none of them"),
            (frame[["c", "a"]], "'b' is missing"),
            (frame[["c", "a", "b", "a"]], "'a' is there twice"),
        ]
        for X, match in odd:
            match = (
                rf"X has the columns .* observed nodes are \['a', 'b', 'c'\]: {match}"
            )
            refused(lambda X=X, net=net: net.log_likelihood(X), match)
            refused(lambda X=X, fit=fit: fit(X), match)


def test_mixtures_remember_the_columns_of_data_frames(rng):
    frame = numbers(rng)
    turned = frame[["b", "c", "a"]]
    model = Mixture.fit(frame, random_state=0)
    assert model.feature_names == ["c", "a", "b"]
    assert pickle.loads(pickle.dumps(model)).feature_names == ["c", "a", "b"]
    assert Mixture.fit(frame.to_numpy(), random_state=0).feature_names is None
    value = model.log_prob(frame)
    np.testing.assert_array_equal(model.log_prob(frame.to_numpy()), value)
    match = r"X has the columns \['b', 'c', 'a'\], but the fit had .* in their order"
    for run in (model.log_prob, model.log_likelihood, model.posterior):
        refused(lambda run=run: run(turned), match)
    refused(lambda: model.log_prob(frame.rename(columns={"a": "z"})), "Rename them")
    refused(lambda: Mixture.fit(turned, init=model), match)
    refused(lambda: marginalized_features(turned, model), match)
    many = Mixture.fit_many([frame, frame], random_state=0)
    assert [m.feature_names for m in many] == [["c", "a", "b"]] * 2
    refused(lambda: Mixture.fit_many([frame, turned]), r"data\[1\] has the columns")
    back = Mixture.fit(turned, random_state=0)
    refused(lambda: product_kernel([model, back]), r"P\[1\] was fitted to the columns")
    one = Mixture.fit(pandas.Series([1, 2, 9, 9]), family=Poisson, random_state=0)
    assert one.feature_names is None


FITS = {
    "mixture": lambda X: Mixture.fit(X, random_state=0),
    "hmm": lambda X: GaussianHMM.fit(X, 2, random_state=0),
    "lds": lambda X: LinearDynamicalSystem.fit(X, 1, max_iter=5),
    "switching": lambda X: SwitchingLDS.fit(X, 2, 1, max_iter=3, random_state=0),
    "factorial": lambda X: FactorialHMM.fit(X, [2, 2], max_iter=3, random_state=0),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_files_and_specifications_keep_the_columns_of_models(fit, tmp_path, rng):
    frame = numbers(rng)
    model, plain = fit(frame), fit(frame.to_numpy())
    maxent.save(model, tmp_path / "model")
    for same in (
        maxent.load(tmp_path / "model"),
        type(model).from_spec(model.get_spec()),
    ):
        assert same == model == plain and hash(same) == hash(plain)
        assert same.feature_names == model.feature_names == ["c", "a", "b"]
        few = frame[:8]  # all paths of regimes are summed
        value = model.log_likelihood(few)
        np.testing.assert_array_equal(same.log_likelihood(few), value)
        refused(
            lambda same=same, few=few: same.log_likelihood(few[["b", "c", "a"]]),
            "the fit had .* in their order",
        )
    # without names: a fit to an array, and files that were written without them
    assert "feature_names" not in plain.get_spec()
    maxent.save(plain, tmp_path / "plain")
    assert maxent.load(tmp_path / "plain").feature_names is None
    for odd in ("cab", [], [1, 2, 3]):
        refused(
            lambda odd=odd: type(model).from_spec(
                {**plain.get_spec(), "feature_names": odd}
            ),
            "feature_names=.* must be a list of names",
        )


def test_names_of_columns_change_no_draws_of_kernels(rng):
    frame = numbers(rng)
    models = [[FITS["mixture"](X)] for X in (frame, frame.to_numpy())]
    left, right = (
        product_kernel(m, rho=0.7, method="pair_sample", random_state=3) for m in models
    )
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("model", [Gaussian, Mixture])
def test_kernels_of_bags_remember_the_columns_of_data_frames(model, rng):
    frame = numbers(rng)
    turned = frame[["b", "c", "a"]]
    params = {"random_state": 0} if model is Mixture else {}
    kernel = ProductKernel(model, **params).fit([frame, frame + 1.0])
    assert list(kernel.feature_names_in_) == ["c", "a", "b"]
    value = kernel.transform([frame])
    np.testing.assert_array_equal(kernel.transform([frame.to_numpy()]), value)
    refused(
        lambda: kernel.transform([turned]), r"X\[0\] has the columns .* the fit had"
    )
    refused(lambda: kernel.fit([frame, turned]), "another data frame had")
    kernel.fit([frame.to_numpy(), frame.to_numpy() + 1.0])
    assert not hasattr(kernel, "feature_names_in_")
    kernel.transform([turned])


def test_scores_of_families_remember_the_columns_of_a_data_frame(rng):
    frame = numbers(rng)
    scores = FisherScores(Gaussian).fit(frame)
    assert list(scores.feature_names_in_) == ["c", "a", "b"]
    np.testing.assert_array_equal(
        scores.transform(frame), scores.transform(frame.to_numpy())
    )
    with pytest.raises(ValueError, match="feature names should match"):
        scores.transform(frame[["b", "c", "a"]])


def test_draws_of_networks_with_columns_in_another_order_are_refused():
    tables = [("a", [0.9, 0.1]), (("a", "b"), [[0.8, 0.2], [0.3, 0.7]])]
    slope, means = {("b", "a"): 2.0}, {"a": 1.0, "b": -3.0}
    for make in (
        lambda observed: BayesNet(tables, observed),
        lambda observed: LinearGaussianNetwork(
            ["a", "b"], slope, means, observed=observed
        ),
    ):
        p, q = make(["a", "b"]), make(["b", "a"])
        assert product_kernel([p], [q], rho=0.5) == pytest.approx(
            product_kernel([p], rho=0.5), rel=1e-12
        )
        match = r"\[\d\] has the columns \[.*must have one order"
        for method in ("shared_sample", "pair_sample"):
            refused(
                lambda method=method, p=p, q=q: product_kernel([p], [q], method=method),
                match,
            )
        refused(lambda p=p, q=q: shared_sample_features([p, q]), match)
