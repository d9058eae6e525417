"""Tables of several kinds of columns: closed forms of all priors, by hand."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy.special import betaln, gammaln, psi

from maxent import (
    MEDBayesNetClassifier,
    MEDGaussianClassifier,
    MEDGenerativeClassifier,
    load,
    save,
)
from maxent.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    DirichletProduct,
    Exponential,
    FamilyPrior,
    Gamma,
    Gaussian,
    NormalInverseWishart,
    Poisson,
    ProductPrior,
    VonMisesFisher,
)

KINDS = {"visits": Poisson, "size": Gaussian, "ward": Categorical}


def table(rng, n=60, m=2):
    """Counts, numbers and texts of m classes; some cells are missing."""
    y = rng.permutation(np.arange(n) % m)
    X = pd.DataFrame({"visits": rng.poisson(3.0 + y).astype(float)})
    X["size"] = rng.normal(1e3 + 0.5 * y, 1.0)
    X["ward"] = np.array(["east", "west", "north"])[
        np.minimum(rng.poisson(0.7 + 0.3 * y), 2)
    ]
    X.loc[rng.choice(n, 3, replace=False), "visits"] = np.nan
    X.loc[rng.choice(n, 2, replace=False), "ward"] = None
    return X, y


class ByHand:
    """Posterior of one class from the formulas of each prior, weights of any sign."""

    def __init__(self, X, weight, all_weight):
        x = X["visits"].to_numpy()
        seen = ~np.isnan(x)
        mean = np.average(x[seen], weights=all_weight[seen])
        self.a = mean + weight[seen] @ x[seen]
        self.b = 1.0 + weight[seen].sum()
        z = X["size"].to_numpy()
        m0 = np.average(z, weights=all_weight)
        v0 = np.average((z - m0) ** 2, weights=all_weight)
        # normal-gamma with the precision of one row, shape 3/2, rate v0 / 2
        total, self.k = weight.sum(), 1.0 + weight.sum()
        shift = weight @ (z - m0) / self.k
        self.m = m0 + shift
        self.shape = 0.5 * (3.0 + total)
        self.rate = 0.5 * (v0 + weight @ (z - m0) ** 2 - self.k * shift**2)
        wards = X["ward"].to_numpy()
        self.counts = {
            w: 1.0 / 3.0 + weight[wards == w].sum() for w in ("east", "north", "west")
        }

    def expected(self, X):
        x, z, wards = X["visits"].to_numpy(), X["size"].to_numpy(), X["ward"].to_numpy()
        rate = x * (psi(self.a) - np.log(self.b)) - self.a / self.b - gammaln(x + 1)
        own = psi(self.shape) - np.log(self.rate) - np.log(2 * np.pi) - 1.0 / self.k
        number = 0.5 * (own - self.shape / self.rate * (z - self.m) ** 2)
        level = psi(sum(self.counts.values()))
        texts = [psi(self.counts[w]) - level if w in self.counts else 0 for w in wards]
        return np.where(np.isnan(x), 0.0, rate) + number + texts

    def predictive(self, X):
        x, z, wards = X["visits"].to_numpy(), X["size"].to_numpy(), X["ward"].to_numpy()
        rate = gammaln(self.a + x) - gammaln(self.a) - gammaln(x + 1)
        rate = rate + self.a * np.log(self.b) - (self.a + x) * np.log(self.b + 1)
        s, spread = self.shape, 2.0 * self.rate * (1.0 + 1.0 / self.k)
        number = gammaln(s + 0.5) - gammaln(s) - 0.5 * np.log(np.pi * spread)
        number = number - (s + 0.5) * np.log1p((z - self.m) ** 2 / spread)
        level = np.log(sum(self.counts.values()))
        texts = [
            np.log(self.counts[w]) - level if w in self.counts else 0 for w in wards
        ]
        return np.where(np.isnan(x), 0.0, rate) + number + texts


def by_hand(model, X, y, weight):
    """Posteriors of the classes at the multipliers of a fit."""
    m = len(model.classes_)
    added = np.zeros((len(y), m))
    own = (
        model.dual_coef_ if m > 2 else np.vstack([-model.dual_coef_, model.dual_coef_])
    )
    added[model.support_] = own.T
    return added, [ByHand(X, weight * (y == k) + added[:, k], weight) for k in range(m)]


@pytest.mark.parametrize("bias", ["flat", None, 0.7, (1.5, 2.5)])
def test_two_classes_are_optimal_by_the_formulas_of_every_prior(bias, rng):
    """The dual is concave: its gradient by closed forms proves the optimum."""
    X, y = table(rng)
    weight = rng.integers(1, 4, size=len(y)).astype(float)
    model = MEDGenerativeClassifier(KINDS, level=2.0, C=2.0, bias=bias, tol=1e-11)
    model.fit(X, y, weight)
    assert model.converged_ and model.duality_gap_ < 1e-8
    new, _ = table(rng)
    added, (low, high) = by_hand(model, X, y, weight)
    b, sign = model.intercept_[0], np.where(y == 1, 1.0, -1.0)
    found = model.decision_function(new)
    np.testing.assert_allclose(
        found, high.expected(new) - low.expected(new) + b, rtol=1e-9, atol=1e-9
    )
    lam = sign * added[:, 1]
    margin = sign * (high.expected(X) - low.expected(X) + b)
    # exponential prior: a row with a multiplier lies at level - 1 / (C - lam / weight)
    on = lam > 1e-4
    assert on.any() and (lam >= 0).all()
    mean = 2.0 - 1.0 / (2.0 - lam / weight)
    np.testing.assert_allclose(margin[on], mean[on], atol=1e-5)
    assert (margin[~on] > 2.0 - 0.5 - 1e-3).all()
    total = added[:, 1].sum()
    if bias == "flat":
        assert abs(total) < 1e-7
    elif bias is None:
        assert b == 0.0
    elif isinstance(bias, float):
        assert b == pytest.approx(bias * total, rel=1e-6)
    else:  # log-odds of a Beta prior
        want = psi(bias[1] + total) - psi(bias[0] - total)
        assert b == pytest.approx(want, rel=1e-8)


def test_bayes_rule_has_the_predictives_of_every_prior(rng):
    X, y = table(rng, 90, 3)
    weight = np.ones(90)
    model = MEDGenerativeClassifier(KINDS, level=1.0, likelihood="predictive")
    model.fit(X, y)
    _, classes = by_hand(model, X, y, weight)
    new, _ = table(rng, 40)
    joint = np.stack([one.predictive(new) for one in classes], axis=1) + np.log(1 / 3)
    share = np.exp(joint - joint.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), share, rtol=1e-8, atol=1e-12)
    assert model.score(X, y) > 0.4


def test_shares_of_three_classes_have_a_dirichlet_prior(rng):
    X, y = table(rng, 90, 3)
    counts = np.array([1.0, 2.0, 3.0])
    model = MEDGenerativeClassifier(KINDS, bias=counts).fit(X, y)
    added, _ = by_hand(model, X, y, np.ones(90))
    total = counts + added.sum(axis=0)
    want = psi(total) - psi(total.sum())
    np.testing.assert_allclose(model.intercept_, want - want.mean(), rtol=1e-7)
    even = MEDGenerativeClassifier(KINDS, bias=1e9 * np.ones(3)).fit(X, y)
    none = MEDGenerativeClassifier(KINDS, bias=None).fit(X, y)
    np.testing.assert_allclose(
        even.decision_function(X), none.decision_function(X), atol=1e-5
    )


def test_numbers_alone_and_categories_alone_are_the_other_classifiers(rng):
    y = np.arange(50) % 2
    X = rng.normal(size=(50, 3)) + 0.7 * y[:, None]
    prior = NormalInverseWishart.weak(X)
    one = MEDGaussianClassifier(prior=prior, tol=1e-10).fit(X, y)
    other = MEDGenerativeClassifier({(0, 1, 2): Gaussian}, tol=1e-10).fit(X, y)
    third = MEDGenerativeClassifier({(0, 1, 2): prior}, tol=1e-10).fit(X, y)
    for machine in (other, third, MEDGenerativeClassifier(tol=1e-10).fit(X, y)):
        np.testing.assert_allclose(
            machine.decision_function(X), one.decision_function(X), atol=1e-6
        )
    codes = rng.integers(0, 3, size=(80, 3)).astype(str)
    y = (codes[:, 0] == codes[:, 1]).astype(int)
    options = {"level": 2.0, "tol": 1e-10}
    parents = [(), (0,), ()]
    net = MEDBayesNetClassifier(parents, 2.0, **options).fit(codes, y)
    kinds = {(0, 1, 2): (Categorical, {"parents": parents, "ess": 2.0})}
    own = MEDGenerativeClassifier(kinds, **options).fit(codes, y)
    np.testing.assert_allclose(
        own.decision_function(codes), net.decision_function(codes), atol=1e-6
    )
    frame = pd.DataFrame(codes, columns=list("abc"))
    kinds = {("b", "a", "c"): (Categorical, {"parents": {"b": ["a"]}, "ess": 2.0})}
    named = MEDGenerativeClassifier(kinds, **options).fit(frame, y)
    np.testing.assert_allclose(
        named.decision_function(frame), net.decision_function(codes), atol=1e-6
    )


def test_every_kind_of_column_has_its_prior(rng):
    n = 120
    y = np.arange(n) % 2
    angle = rng.vonmises(1.5 * y, 2.0)
    X = np.column_stack(
        [
            rng.beta(2.0 + y, 3.0, n),
            rng.gamma(2.0 + y, 3.0, n),
            rng.exponential(1.0 + y, n),
            angle,
            rng.random(n) < 0.3 + 0.4 * y,
            rng.normal(size=n) + y,
        ]
    ).astype(float)
    kinds = {0: Beta, 1: Gamma, 2: Exponential, 3: VonMisesFisher, 4: Bernoulli}
    model = MEDGenerativeClassifier({**kinds, 5: DiagonalGaussian}, tol=1e-9)
    model.fit(X, y)
    assert model.converged_ and model.score(X, y) > 0.8
    factors = model.posteriors_[1].factors
    assert [type(f).__name__ for f in factors] == ["FamilyPrior"] * 5 + [
        "NormalInverseWishart"
    ]
    # an angle and its unit vector, whatever turn it is on
    turned = X.copy()
    turned[:, 3] += 2 * np.pi * rng.integers(-2, 3, n)
    np.testing.assert_allclose(
        model.decision_function(turned), model.decision_function(X), atol=1e-9
    )
    wide = np.column_stack([X, np.cos(angle), np.sin(angle)])
    pair = {k: v for k, v in kinds.items() if k != 3} | {(6, 7): VonMisesFisher}
    other = MEDGenerativeClassifier({**pair, 5: DiagonalGaussian}, tol=1e-9)
    np.testing.assert_allclose(
        other.fit(wide, y).decision_function(wide),
        model.decision_function(X),
        atol=1e-5,
    )
    # a row whose cells are all missing has the bias for its score
    lost = model.decision_function(np.full((1, 6), np.nan))
    np.testing.assert_allclose(lost, model.intercept_, atol=1e-12)


def test_types_choose_the_priors_where_nothing_is_named(rng):
    X, y = table(rng, 80)
    X["two"] = rng.integers(0, 2, 80)
    X["more"] = rng.normal(size=80)
    X["same"] = 3.0
    X["flag"] = rng.random(80) < 0.5
    model = MEDGenerativeClassifier().fit(X, y)
    names = list(X.columns)
    found = {
        tuple(names[j] for j in own): type(prior).__name__
        for own, prior in zip(
            model.posteriors_[0].columns, model.posteriors_[0].factors
        )
    }
    gaussian, net = "NormalInverseWishart", "DirichletBayesNet"
    assert found == {
        ("size", "more"): gaussian,
        ("visits",): gaussian,  # which misses values
        ("ward",): net,
        ("two",): net,
        ("flag",): net,
    }
    objects = MEDGenerativeClassifier().fit(X.to_numpy(dtype=object), y)
    np.testing.assert_allclose(
        objects.decision_function(X.to_numpy(dtype=object)),
        model.decision_function(X),
        atol=1e-8,
    )


def test_constant_columns_are_left_out_with_a_warning(rng):
    X, y = table(rng)
    model = MEDGenerativeClassifier(KINDS).fit(X, y)
    more = X.assign(same=4.0, none=0.0)
    kinds = {"visits": Poisson, ("size", "same"): Gaussian, "ward": Categorical}
    with pytest.warns(UserWarning, match="constant in columns 'same', 'none'"):
        other = MEDGenerativeClassifier({**kinds, "none": Poisson}).fit(more, y)
    np.testing.assert_allclose(
        other.decision_function(more), model.decision_function(X), atol=1e-9
    )


def test_angles_that_are_all_equal_are_left_out_with_a_warning(rng):
    X, y = table(rng)
    model = MEDGenerativeClassifier(KINDS).fit(X, y)
    kinds = {**KINDS, "angle": VonMisesFisher}
    with pytest.warns(UserWarning, match="constant in column 'angle'"):
        other = MEDGenerativeClassifier(kinds).fit(X.assign(angle=0.3), y)
    found = other.decision_function(X.assign(angle=1.0))
    np.testing.assert_allclose(found, model.decision_function(X), atol=1e-9)


def test_columns_that_are_not_named_may_hold_anything(rng):
    X, y = table(rng)
    model = MEDGenerativeClassifier(KINDS).fit(X, y)
    more = X.assign(when=pd.date_range("2020-01-01", periods=len(X)), all=[{}] * len(X))
    other = MEDGenerativeClassifier(KINDS).fit(more, y)
    np.testing.assert_array_equal(
        other.decision_function(more), model.decision_function(X)
    )


def test_a_single_column_of_numbers_as_texts_is_read(rng):
    X, y = table(rng)
    one = MEDGenerativeClassifier({"size": Gaussian}).fit(X[["size"]], y)
    texts = X[["size"]].astype(str)
    two = MEDGenerativeClassifier({"size": Gaussian}).fit(texts, y)
    np.testing.assert_array_equal(
        two.decision_function(texts), one.decision_function(X[["size"]])
    )


def test_rows_that_a_family_cannot_show_are_refused_by_their_column(rng):
    X, y = table(rng)
    model = MEDGenerativeClassifier(KINDS).fit(X, y)
    refused(
        lambda: model.predict(X.assign(visits=-1.0)), "column 'visits': .*of Poisson"
    )


def test_texts_that_tell_rows_apart_are_left_out_with_a_warning(rng):
    X, y = table(rng)
    model = MEDGenerativeClassifier().fit(X, y)
    more = X.assign(name=[f"row {i}" for i in range(len(X))])
    with pytest.warns(UserWarning, match="text of their own in column 'name'"):
        other = MEDGenerativeClassifier().fit(more, y)
    np.testing.assert_allclose(
        other.decision_function(more), model.decision_function(X), atol=1e-9
    )
    X.loc[0, "size"] = np.inf
    refused(lambda: model.fit(X, y), r"X\[0, 1\].*inf")


def test_unknown_categories_are_missing_or_refused(rng):
    X, y = table(rng)
    model = MEDGenerativeClassifier(KINDS).fit(X, y)
    new, lost = X.iloc[:3].copy(), X.iloc[:3].copy()
    new["ward"], lost["ward"] = "south", None
    np.testing.assert_array_equal(
        model.decision_function(new), model.decision_function(lost)
    )
    model.set_params(handle_unknown="error")
    refused(lambda: model.predict(new), "'south' is a category unseen")


def test_classes_may_have_models_of_their_own(rng, tmp_path):
    n = 200
    y = np.array(["a", "b"])[np.arange(n) % 2]
    x = np.where(y == "a", rng.gamma(9.0, 1.0, n), rng.exponential(4.0, n))
    shared = MEDGenerativeClassifier({0: Gamma}).fit(x[:, None], y)
    own = MEDGenerativeClassifier({0: Gamma}, class_columns={"b": {0: Exponential}})
    own.fit(x[:, None], y)
    kinds = [type(p.factors[0].family).__name__ for p in own.posteriors_]
    assert kinds == ["Gamma", "Exponential"] and own.converged_
    assert abs(own.score(x[:, None], y) - shared.score(x[:, None], y)) < 0.1
    save(own, tmp_path / "a.npz")
    back = load(tmp_path / "a.npz")
    np.testing.assert_array_equal(
        back.decision_function(x[:, None]), own.decision_function(x[:, None])
    )


def test_priors_of_families_are_the_textbook_ones():
    """Beta-binomial and Gamma-Poisson normalisers, near zero and far from it too."""
    for a, b in ((0.2, 0.3), (3.0, 2.0), (4e4, 1e3), (2.0, 1e5)):
        counts = FamilyPrior(Poisson(1.0), [a / b], b)
        want = gammaln(a) - a * np.log(b)
        assert counts._log_normalizer() == pytest.approx(want, rel=1e-12, abs=1e-10)
        signs = FamilyPrior(Bernoulli(0.5), [a / (a + b)], a + b)
        assert signs._log_normalizer() == pytest.approx(
            betaln(a, b), rel=1e-12, abs=1e-10
        )


def test_wrong_columns_are_named(rng):
    X, y = table(rng)
    dates = pd.date_range("2020-01-01", periods=len(X))
    numbers = np.column_stack([X["size"], X["size"] + 1])

    def fit(columns, data=X, **options):
        return lambda: MEDGenerativeClassifier(columns, **options).fit(data, y)

    other = {"class_columns": {1: {"size": Gaussian}}}
    for call, message in [
        (fit({}), "must be a dict such as"),
        (fit({"age": Gaussian}), "columns has 'age', which is no column"),
        (fit({"age": Gaussian}, numbers), "X has none"),
        (fit({7: Gaussian}, numbers), "column 7, and X has 2"),
        (fit({"size": Gaussian, 1: Poisson}), "columns has 'size' twice"),
        (fit({"size": "gaussian"}), "must be a class of maxent.families"),
        (fit({"size": ProductPrior}), "must be a class of maxent.families"),
        (fit({"size": NormalInverseWishart}), "must be a class of maxent.families"),
        (fit({"ward": Gaussian}), "holds 'e?w?n?o?[a-z]+', which is no number"),
        (fit({"size": Poisson}), r"column 'size', Poisson: X\[0\]=.* outside the"),
        (fit({"size": (Gaussian, {"ess": 1})}), "option 'ess' is not known; prior is"),
        (fit({"size": (Gaussian, {"prior": "x"})}), "prior='x'"),
        (fit({"size": (Poisson, {"r": 1})}), "unexpected keyword argument 'r'"),
        (fit({"size": DirichletProduct(1.0, [3])}), "column 'size'"),
        (fit({(): Gaussian}), r"the key \(\), which names no column"),
        (fit({"when": Gaussian}, X.assign(when=dates)), "feature 'when' of X"),
        (fit(None, X["size"]), "pandas.Series"),
        (fit(KINDS, X.rename(columns={"size": 3})), "must convert them all"),
        (fit({"size": Gaussian, "visits": Gaussian}, **other), "of the columns of the"),
        (fit({"size": Gaussian}, class_columns={5: {}}), "class_columns has 5"),
        (fit({"size": Gaussian}, class_columns=3), "class_columns=3 must be a dict"),
        (fit({"size": Gaussian}, bias=(1.0, 2.0, 3.0)), "pseudo-count > 0 for each"),
        (fit({"size": Gaussian}, bias=(1.0, -2.0)), "pseudo-count > 0 for each"),
        (fit({"size": Gaussian}, bias="a"), "bias='a' must be"),
        (fit(None, np.ones((60, 2))), "every column of X is constant"),
    ]:
        refused(call, message)
