"""approximation="nystroem": the bound of its cost, its limits, its refusals."""

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import maxent
from maxent import MEDClassifier, MEDPartialLabelClassifier, MEDRegressor
from maxent.discrimination import _approximation
from maxent.discrimination._approximation import NystroemFeatures

OPTIONS = {"approximation": "nystroem", "random_state": 0}
KERNELS = {
    "rbf": lambda X, Z: rbf_kernel(X, Z, gamma=0.3),
    "poly": lambda X, Z: polynomial_kernel(X, Z, degree=3, gamma=0.3, coef0=1.0),
}
LOSSES = {  # of margins, with C = 2 and sharpness 10
    "exponential": lambda m: 0.2 * np.where(m < 0.9, psi(10 * (1 - m)), 0.0),
    "hinge": lambda m: 2.0 * np.maximum(1 - m, 0),
    "logistic": lambda m: 2.0 * np.logaddexp(0, -m),
    "gaussian": lambda m: np.maximum(1 - m, 0) ** 2,
}


def psi(x):
    x = np.maximum(x, 1.0)
    return x - 1 - np.log(x)


def rows(rng, n=240):
    X = rng.normal(size=(n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, score


def settings(kernel, **more):
    return {"kernel": kernel, "gamma": 0.3, "coef0": 1.0, "tol": 1e-8, **more}


@pytest.mark.parametrize("margin", list(LOSSES))
@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("bias", ["flat", None, 0.5])
def test_excess_over_the_exact_optimum_is_at_most_the_bound(margin, kernel, bias, rng):
    X, score = rows(rng)
    y = score > 0
    options = settings(kernel, C=2.0, margin=margin, bias=bias)
    exact = MEDClassifier(**options).fit(X, y)
    least, last = exact.objective_, np.inf
    for m in (5, 40, len(X)):
        model = MEDClassifier(n_components=m, **OPTIONS, **options).fit(X, y)
        a, b = model.dual_coef_[0], model.intercept_[0]
        f = KERNELS[kernel](X, X[model.support_]) @ a + b
        np.testing.assert_allclose(model.decision_function(X), f, atol=1e-8)
        penalty = a @ KERNELS[kernel](X[model.support_], X[model.support_]) @ a
        penalty += b**2 / bias if isinstance(bias, float) else 0.0
        primal = 0.5 * penalty + LOSSES[margin](np.where(y, f, -f)).sum()
        small = 1e-5 * (1 + least)
        np.testing.assert_allclose(primal, model.objective_, atol=small)
        assert -small <= primal - least <= model.approximation_gap_ + small
        assert model.approximation_gap_ <= last + small
        both = np.append(model.support_, exact.support_)
        difference = np.append(a, -exact.dual_coef_[0])
        distance = difference @ KERNELS[kernel](X[both], X[both]) @ difference
        assert distance <= 2 * (model.approximation_gap_ + small)
        last = model.approximation_gap_
    assert last <= small


def test_bound_says_something_and_grows_with_what_is_left_out(rng):
    X, score = rows(rng, 600)
    model = MEDClassifier(gamma=0.3, n_components=100, **OPTIONS).fit(X, score > 0)
    assert model.approximation_gap_ < 0.02 * model.objective_
    assert model.approximation_gap_estimate_[1] == 0
    estimate = model.approximation_gap_estimate_[0]
    assert estimate == pytest.approx(model.approximation_gap_, rel=1e-12)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_bound_of_several_classes_and_of_targets(kernel, rng):
    X, score = rows(rng)
    codes = np.digitize(score, [-0.5, 0.5])
    joint = partial(MEDClassifier, multi_class="joint")
    for cls, y in ((joint, codes), (MEDRegressor, 7 * score)):
        exact = cls(**settings(kernel)).fit(X, y)
        model = cls(n_components=25, **OPTIONS, **settings(kernel)).fit(X, y)
        excess = model.objective_ + model.duality_gap_ - exact.objective_
        small = 1e-5 * (1 + exact.objective_)
        assert -small <= excess <= model.approximation_gap_ + small
        whole = cls(n_components=999, **OPTIONS, **settings(kernel)).fit(X, y)
        new = rng.normal(size=(50, 3))
        both = [
            m.predict(new) if cls is MEDRegressor else m.decision_function(new)
            for m in (whole, exact)
        ]
        np.testing.assert_allclose(*both, atol=5e-3 * np.abs(both[1]).max())


def features_of(X, m=20, seed=0):
    return NystroemFeatures(
        X,
        SimpleNamespace(
            kernel="rbf",
            gamma_=0.3,
            degree=3,
            coef0=0.0,
            n_jobs=1,
            n_components=m,
            random_state=seed,
        ),
    )


def test_features_never_exceed_the_kernel(rng):
    X, _ = rows(rng)
    F = features_of(X).values.astype(float)
    R = KERNELS["rbf"](X, X) - F @ F.T
    assert np.linalg.eigvalsh(R).min() > -1e-5
    picked = features_of(X).rows
    np.testing.assert_allclose(R[picked], 0, atol=1e-5)


def test_copies_of_rows_leave_features_out(rng):
    X = np.repeat(rng.normal(size=(6, 3)), 20, axis=0)
    features = features_of(X, m=60)
    assert features.values.shape == (120, 6)
    F = features.values.astype(float)
    np.testing.assert_allclose(F @ F.T, KERNELS["rbf"](X, X), atol=1e-5)


def test_blocks_bound_the_norm_and_estimate_it_without_bias(rng, monkeypatch):
    monkeypatch.setattr(_approximation, "_PAIRS", 1.0)
    monkeypatch.setattr(_approximation, "_LEAST_BLOCK", 30)
    X, score = rows(rng)
    features = features_of(X)
    F = features.map.apply(X, features.map.landmarks, features.map.transform)
    a = np.vstack([np.sign(score), rng.normal(size=len(X))])
    a[:, ::5] = 0
    exact = float(np.einsum("ki,ij,kj->", a, KERNELS["rbf"](X, X) - F @ F.T, a))
    found = []
    for seed in range(200):
        features._seed = seed
        bound, estimate, error = features.lost_norm(a)
        assert bound >= exact > 0
        found.append((estimate, error))
    estimates, errors = np.array(found).T
    spread = estimates.std()
    assert abs(estimates.mean() - exact) < 4 * spread / np.sqrt(len(found))
    # as if blocks were independent: differences between rows cancel in truth
    assert 0.8 * spread < np.sqrt((errors**2).mean()) < 2.5 * spread
    monkeypatch.setattr(_approximation, "_LEAST_BLOCK", 1000)
    bound, estimate, error = features.lost_norm(a)
    np.testing.assert_allclose([bound, estimate], exact, rtol=1e-6)
    assert error == 0


def test_a_kernel_that_is_not_semidefinite_has_no_bound(rng):
    X, score = rows(rng)

    def kernel(A, B):
        return rbf_kernel(A, B, gamma=0.3) - 0.5 * rbf_kernel(A, B, gamma=3.0)

    model = MEDClassifier(kernel, n_components=20, **OPTIONS).fit(X, score > 0)
    assert np.isnan(model.approximation_gap_)
    assert np.isnan(model.approximation_gap_estimate_).all()


def test_callables_sparse_rows_and_single_precision_agree(rng):
    X, score = rows(rng)
    X[np.abs(X) < 0.4] = 0
    options = {"gamma": 0.3, "n_components": 30, **OPTIONS}
    plain = MEDClassifier(**options).fit(X, score > 0)
    others = [
        (MEDClassifier(KERNELS["rbf"], n_components=30, **OPTIONS), X),
        (MEDClassifier(**options), sp.csr_array(X)),
        (MEDClassifier(**options), X.astype(np.float32)),
        (MEDClassifier(**options, solver="interior"), X),
    ]
    expected = plain.decision_function(X)
    for model, rows_ in others:
        model.fit(rows_, score > 0)
        np.testing.assert_array_equal(model.support_, plain.support_)
        got = model.decision_function(rows_)
        np.testing.assert_allclose(got, expected, atol=5e-3)
        np.testing.assert_allclose(
            model.approximation_gap_, plain.approximation_gap_, rtol=5e-3
        )


def test_landmarks_have_weight_and_follow_the_seed(rng):
    X, score = rows(rng)
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.5)
    options = {"n_components": 30, "approximation": "nystroem"}
    models = [
        MEDClassifier(**options, random_state=s).fit(X, score > 0, weight)
        for s in (1, 1, 2)
    ]
    assert (weight[models[0].support_] > 0).all()
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert (models[0].support_ != models[2].support_).any()
    np.testing.assert_array_equal(models[0].support_vectors_, X[models[0].support_])


def test_same_bits_with_two_threads(rng):
    X, score = rows(rng, 3000)
    one, two = (
        MEDClassifier(n_components=50, n_jobs=j, **OPTIONS).fit(X, score > 0)
        for j in (1, 2)
    )
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert one.approximation_gap_ == two.approximation_gap_


def test_models_are_cloned_pickled_and_saved(rng, tmp_path):
    X, score = rows(rng)
    model = MEDClassifier(margin="logistic", n_components=30, **OPTIONS)
    model = clone(model).fit(X, score > 0)
    maxent.save(model, tmp_path / "model.npz")
    for other in (
        maxent.load(tmp_path / "model.npz"),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.approximation_gap_ == model.approximation_gap_


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"kernel": "linear"}, "approximation=None"),
        ({"kernel": "precomputed"}, "approximation=None"),
        ({"solver": "smo"}, "use 'auto'"),
        ({"approximation": "fourier"}, "'nystroem'"),
        ({"n_components": 0}, "n_components=0"),
        ({"random_state": "x"}, "random_state='x'"),
    ],
)
def test_refusals_name_the_remedy(options, remedy, rng):
    X, score = rows(rng, 40)
    if options.get("kernel") == "precomputed":
        X = X @ X.T
    with pytest.raises(ValueError, match=remedy):
        MEDClassifier(**{**OPTIONS, **options}).fit(X, score > 0)


def test_partial_labels_are_for_exact_kernels(rng):
    X, score = rows(rng, 40)
    model = MEDPartialLabelClassifier(MEDClassifier(**OPTIONS))
    with pytest.raises(ValueError, match="kernel_approximation"):
        model.fit(X, np.where(score > 0, 1, np.where(score < -1, -1, 0)))
