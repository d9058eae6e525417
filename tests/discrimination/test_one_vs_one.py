"""One-against-one machines against scikit-learn's wrapper, pair by pair."""

import numpy as np
import pytest
import scipy.sparse as sp
from _support.recorders import Recorder, Watcher, check_nested, events
from maxent._core.machines.pair_votes import pair_votes
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC

from maxent import MEDClassifier, load, save
from maxent.discrimination._one_vs_one import pairs_of
from maxent.discrimination.duals import _signed_dual
from maxent.discrimination.grams.gram_store import ClassGrams, PartGram
from maxent.discrimination.grams.vector_kernels import VectorKernel

KERNELS = ["linear", "rbf", "poly"]


def several(rng, n=150, m=4, d=3):
    y = rng.integers(0, m, n)
    y[:m] = np.arange(m)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("margin", ["exponential", "hinge", "logistic"])
@pytest.mark.parametrize("bias", ["flat", 2.0, None])
def test_the_machines_are_those_of_every_pair(kernel, margin, bias, rng):
    X, y = several(rng)
    options = {"kernel": kernel, "margin": margin, "bias": bias, "gamma": 0.3}
    options |= {"C": 2.0, "tol": 1e-7}
    model = MEDClassifier(**options, multi_class="ovo").fit(X, y)
    other = OneVsOneClassifier(MEDClassifier(**options)).fit(X, y)
    assert model.converged_
    found, expected = model.decision_function(X), other.decision_function(X)
    if margin == "hinge" and bias == "flat":  # biases may be open
        assert (model.predict(X) != other.predict(X)).mean() <= 0.02
    else:
        np.testing.assert_allclose(found, expected, atol=1e-3)
    total = sum(one.objective_ for one in other.estimators_)
    assert model.objective_ == pytest.approx(total, rel=1e-5)
    assert 0 <= model.duality_gap_ <= 1e-7 * (6 + model.objective_)
    for k, one in enumerate(other.estimators_):
        assert model.intercept_[k] == pytest.approx(one.intercept_[0], abs=2e-2)
    if kernel == "linear":
        coef = np.concatenate([one.coef_ for one in other.estimators_])
        np.testing.assert_allclose(model.coef_, coef, atol=1e-3)


def test_coefficients_lie_as_those_of_svc(rng):
    X, y = several(rng)
    model = MEDClassifier(margin="hinge", C=3.0, gamma=0.5, multi_class="ovo", tol=1e-6)
    model.fit(X, y)
    svc = SVC(C=3.0, gamma=0.5, tol=1e-6).fit(X, y)
    m = len(svc.classes_)
    assert model.dual_coef_.shape == (m - 1, len(model.support_))
    assert model.n_support_.sum() == len(model.support_)
    assert (np.sort(y[model.support_]) == y[model.support_]).all()
    ours, theirs = np.zeros((m - 1, len(y))), np.zeros((m - 1, len(y)))
    ours[:, model.support_], theirs[:, svc.support_] = model.dual_coef_, svc.dual_coef_
    # scikit-learn has the earlier class of a pair on the positive side
    np.testing.assert_allclose(ours, -theirs, atol=5e-3)
    np.testing.assert_allclose(model.intercept_, -svc.intercept_, atol=5e-3)
    assert (model.predict(X) == svc.predict(X)).mean() > 0.98


def test_weights_and_names_of_classes(rng):
    X, y = several(rng)
    names = np.array(["b", "d", "a", "c"])[y]
    weight = rng.integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    options = {"gamma": 0.4, "multi_class": "ovo", "tol": 1e-8}
    one = MEDClassifier(**options).fit(X, names, sample_weight=weight)
    other = MEDClassifier(**options).fit(X[twice], names[twice])
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(X), atol=1e-3
    )
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-7)
    assert set(one.predict(X)) <= set(names)
    assert (weight[one.support_] > 0).all()


@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_solvers_agree(solver, rng):
    X, y = several(rng)
    options = {"gamma": 0.4, "multi_class": "ovo", "tol": 1e-8}
    one = MEDClassifier(**options).fit(X, y)
    other = MEDClassifier(**options, solver=solver).fit(X, y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-7)


def test_every_kind_of_data_gives_the_same_machine(rng):
    X, y = several(rng)
    X = X * (rng.random(X.shape) < 0.7)
    options = {"multi_class": "ovo", "tol": 1e-8}
    expected = MEDClassifier(gamma=0.4, **options).fit(X, y).decision_function(X)

    def rbf(A, B):
        return np.exp(-0.4 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    cases = [
        (MEDClassifier(gamma=0.4, **options), sp.csr_array(X)),
        (MEDClassifier(rbf, **options), X),
        (MEDClassifier("precomputed", **options), rbf(X, X)),
        (MEDClassifier(gamma=0.4, cache_size=1e-3, **options), X),
        (MEDClassifier(rbf, cache_size=1e-3, **options), X),
    ]
    for model, data in cases:
        found = model.fit(data, y).decision_function(data)
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_rows_without_a_multiplier_do_not_matter(rng):
    """A row that is right by its margin wins all its votes without being trained on."""
    X, y = several(rng, 60, 3)
    X += 2.0 * np.eye(3)[y]
    options = {"gamma": 0.3, "multi_class": "ovo", "tol": 1e-6}
    model = MEDClassifier(**options).fit(X, y)
    assert 0 < model.loo_bound_ < 1
    errors = 0
    for t in range(60):
        rest = np.arange(60) != t
        again = MEDClassifier(**options).fit(X[rest], y[rest])
        errors += again.predict(X[[t]])[0] != y[t]
    assert errors / 60 <= model.loo_bound_
    assert model.loo_bound_ == len(model.support_) / 60


def test_votes_count_and_confidence_decides_ties():
    scores = np.array([[1.0, -2.0, 3.0], [-1.0, -1.0, -1.0], [0.5, 0.5, 0.5]])
    found = np.empty((3, 3))  # pairs (0, 1), (0, 2), (1, 2)
    zeros = np.zeros(4, dtype=np.intp), None, np.zeros(3)
    assert pair_votes(scores, *zeros, found)
    assert pairs_of(3) == [(0, 1), (0, 2), (1, 2)]
    assert np.round(found).tolist() == [[1, 1, 1], [2, 1, 0], [0, 1, 2]]
    confidence = np.array([-1.0 + 2.0, 1.0 - 3.0, -2.0 + 3.0])
    share = confidence / (3 * (np.abs(confidence) + 1))
    np.testing.assert_allclose(found[0], 1 + share)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("kind", ["rbf", "linear", "sparse"])
def test_matrices_of_two_classes(kind, extra, rng):
    X = rng.normal(size=(90, 5))
    data = sp.csr_array(X) if kind == "sparse" else X
    kernel = VectorKernel(data, "rbf" if kind == "sparse" else kind, gamma=0.2)
    grams = ClassGrams(kernel, np.array([20, 21, 90]), 100.0, extra)
    for i, j in ((0, 1), (0, 2), (1, 2), (0, 2)):
        part, gram = grams.pair(i, j)
        ends = [0, 20, 21, 90]
        rows = np.r_[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
        n = len(rows)
        exact = kernel.block(rows, rows)
        held = gram.matrix[extra:, extra:][:n, :n]
        # single precision of the distances, a few units in the last place
        np.testing.assert_allclose(held, exact, atol=2e-6 * np.abs(exact).max())
        np.testing.assert_allclose(part.diagonal(), exact.diagonal())
        assert not extra or not gram.matrix[0, : n + 1].any()
        a = rng.normal(size=n) * (rng.random(n) < 0.5)
        np.testing.assert_allclose(gram.product(a), exact @ a, atol=1e-10)
        some = np.sort(rng.permutation(n)[: n // 2])
        small = gram.part(some)
        assert isinstance(small, PartGram)
        inside = small.matrix[extra:, extra:][: len(some), : len(some)]
        np.testing.assert_array_equal(inside, held[np.ix_(some, some)])


@pytest.mark.parametrize(("margin", "stop_after"), [("exponential", 2), ("hinge", 4)])
def test_a_callback_sees_the_pairs_and_may_stop_them(margin, stop_after, rng, tmp_path):
    pytest.importorskip("sklearn.callback")
    X, y = several(rng)
    model = MEDClassifier(multi_class="ovo", margin=margin)
    watcher = Watcher(tmp_path / "all")
    model.set_callbacks(watcher).fit(X, y)
    assert model.converged_
    check_nested(events(tmp_path / "all"))
    whole = [one for one in watcher.fitted if one is not None]
    assert whole[-2].intercept_.tolist() == model.intercept_.tolist()
    model.set_callbacks(Recorder(tmp_path / "some", stop_after=stop_after)).fit(X, y)
    assert not model.converged_
    assert (model.intercept_ == 0).any()
    assert model.predict(X).shape == (len(X),)


def test_a_fit_that_does_not_converge_says_so(rng):
    X, y = several(rng)
    model = MEDClassifier(multi_class="ovo", solver="smo", max_iter=3, C=100.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert not model.converged_
    assert np.isnan(model.loo_bound_)


def test_two_classes_are_one_machine_either_way(rng):
    X, y = several(rng, m=2)
    one = MEDClassifier(multi_class="ovo").fit(X, y)
    other = MEDClassifier().fit(X, y)
    assert one.decision_function(X).tobytes() == other.decision_function(X).tobytes()


def test_saving(rng, tmp_path):
    X, y = several(rng)
    model = MEDClassifier(multi_class="ovo").fit(X, y)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    model.n_support_ = model.n_support_ + 1
    with pytest.raises(ValueError, match="n_support_ adds up to"):
        model.predict(X)


def test_bad_input(rng):
    X, y = several(rng)
    with pytest.raises(ValueError, match="multi_class='ovr' is not known"):
        MEDClassifier(multi_class="ovr").fit(X, y)
    model = MEDClassifier(margin="logistic", multi_class="ovo").fit(X, y)
    with pytest.raises(AttributeError, match="multi_class='joint'"):
        model.predict_proba(X)


def test_pairs_of_approximated_kernels_are_refused(rng):
    X, y = several(rng)
    model = MEDClassifier(approximation="nystroem", n_components=9, multi_class="ovo")
    with pytest.raises(ValueError, match="multi_class='joint'"):
        model.fit(X, y)
    model.fit(X, y > 1)  # one machine
    assert model.dual_coef_.shape == (1, 9)


@pytest.mark.parametrize("extra", [0, 1])
def test_matrices_for_several_threads_have_memory_of_their_own(extra, rng):
    X = rng.normal(size=(60, 4))
    ends = np.array([20, 35, 60])
    kernel = VectorKernel(X, gamma=0.2, n_threads=2)
    grams = ClassGrams(kernel, ends, 100.0, extra, n_threads=2)
    assert grams.at_once == 2
    _, first = grams.pair(0, 1, 0)
    kept = first.matrix.copy()
    own, second = grams.pair(1, 2, 1)
    assert own.n_threads == 1 and first.matrix is not second.matrix
    np.testing.assert_array_equal(first.matrix, kept)
    # without room for two pairs at a time there is one; its kernel has all threads
    little = ClassGrams(kernel, ends, 0.05, extra, n_threads=2)
    assert little.at_once == 1 and little.pair(0, 1)[0].n_threads == 2


def test_pairs_side_by_side_are_those_one_by_one(rng):
    X, y = several(rng, n=600, m=6)
    one, two, heard = (
        MEDClassifier(multi_class="ovo", n_jobs=k, verbose=verbose).fit(X, y)
        for k, verbose in ((1, False), (2, False), (2, True))
    )
    for other in (two, heard):
        for name in ("dual_coef_", "intercept_", "objective_", "loo_bound_", "n_iter_"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_linear_machines_of_many_tiny_classes_need_no_interior_point(
    kind, rng, monkeypatch
):
    X, y = several(rng, 60, 20)
    slow = MEDClassifier("linear", solver="interior").fit(X, y)
    monkeypatch.setattr(_signed_dual, "solve_interior", None)
    fast = MEDClassifier("linear", multi_class="ovo").fit(kind(X), y)
    gaps = fast.duality_gap_ + slow.duality_gap_
    assert fast.converged_ and abs(fast.objective_ - slow.objective_) <= gaps
    assert (fast.predict(kind(X)) == slow.predict(X)).mean() >= 0.9
