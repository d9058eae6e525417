"""LatentMaxEnt: one pool for every choice, and the four gates."""

import numpy as np
import pytest
from oracles.latent import latent

import maxent
from maxent.latent import (
    FiniteLatentModel,
    LatentMaxEnt,
    LogLinearModel,
    NoAdmissibleCandidateError,
    _stationary_points,
)
from maxent.latent._pool import chosen, groups


def problem(seed, shape=(7, 3, 5)):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=shape)
    y = rng.choice(shape[0], size=80, p=rng.dirichlet(2 * np.ones(shape[0])))
    return f, y


def fitted(seed, **options):
    f, y = problem(seed)
    options = {"n_init": 8, "random_state": 0, "sigma2": 100.0} | options
    return LatentMaxEnt(f, **options).fit(y), f, y


def test_candidates_are_feasible_maxima_with_their_entropy(seed):
    model, f, y = fitted(seed)
    shares = np.bincount(y, minlength=len(f)) / len(y)
    table = model.candidates_
    for i in np.flatnonzero(table["reason"] == ""):
        lam = model.candidate_weights_[i]
        exact = latent(f, lam, shares)
        np.testing.assert_allclose(exact["eta"] - exact["mean"], lam / 100, atol=1e-5)
        assert table["entropy"][i] == pytest.approx(exact["H"], abs=1e-9)
        assert table["log_likelihood"][i] == pytest.approx(exact["L"], abs=1e-9)
        cost = np.sum(lam**2) / 200.0
        assert table["regularized_entropy"][i] == pytest.approx(exact["H"] - cost)
        assert table["curvature"][i] <= 1e-7
    assert model.score(y) == pytest.approx(model.log_likelihood_, abs=1e-9)
    np.testing.assert_allclose(model.joint_proba().sum(), 1.0)
    np.testing.assert_allclose(model.predict_proba(y).sum(axis=1), 1.0)


def test_each_choice_is_best_by_its_own_measure(seed):
    model, _, _ = fitted(seed)
    other = model.select("likelihood")
    assert other.objective_ >= model.objective_
    column = model.candidates_["regularized_entropy"]
    assert column[model.selected_] >= column[other.selected_]
    assert model.selection == "entropy" and other.selection == "likelihood"


def test_more_starts_extend_fewer(seed):
    few, many = fitted(seed, n_init=3)[0], fitted(seed, n_init=13, n_jobs=2)[0]
    np.testing.assert_allclose(
        few.candidate_weights_, many.candidate_weights_[:3], atol=1e-6
    )


def test_jobs_do_not_change_a_bit(seed):
    one, two = (fitted(seed, n_init=12, n_jobs=k)[0] for k in (1, 2))
    np.testing.assert_array_equal(one.candidate_weights_, two.candidate_weights_)


def test_the_independent_model_is_rejected():
    # features t(y) 1[z = k] started at equal components stay there
    t = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 5.0]])
    f = np.zeros((4, 2, 4))
    for z in range(2):
        f[:, z, 2 * z : 2 * z + 2] = t
    y = np.repeat(np.arange(4), [20, 5, 5, 20])
    start = np.tile([0.1, -0.2], 2)[None]
    options = {"init": start, "random_state": 0, "tol": 1e-6, "sigma2": 1e6}
    literal = LatentMaxEnt(f, 6, check_maximum=False, mi_tol=-1.0, **options).fit(y)
    gated = LatentMaxEnt(f, 6, check_maximum=False, **options).fit(y)
    assert literal.selected_ == 0  # it wins by entropy unless the gate stands
    assert gated.candidates_["reason"][0] == "independent"
    assert gated.entropy_ < literal.entropy_
    assert gated.rejected_["independent"] >= 1


def test_no_admissible_candidate_is_an_error_with_counts(seed):
    f, y = problem(seed)
    with pytest.raises(NoAdmissibleCandidateError, match=r"3 not_converged .*max_iter"):
        LatentMaxEnt(f, 3, em_iter=1, max_iter=1, tol=1e-13, random_state=0).fit(y)
    with pytest.raises(NoAdmissibleCandidateError, match="independent"):
        LatentMaxEnt(f, 3, mi_tol=1e3, random_state=0, sigma2=10.0).fit(y)


def coins():
    f = np.zeros((3, 2, 3))
    f[:, 0, 0] = 1.0
    f[:, 0, 1] = f[:, 1, 2] = np.arange(3.0)
    return f


@pytest.mark.parametrize(
    "scale, method", [(0.01, "newton"), (1.0, "lbfgs"), (100.0, "newton")]
)
def test_weights_that_grow_without_limit_are_rejected(scale, method):
    # each value belongs to one class: the likelihood has no maximum but at infinity
    y = [0] * 50 + [2] * 50
    options = {"n_init": 2, "random_state": 0, "method": method}
    with pytest.raises(NoAdmissibleCandidateError, match=r"2 unbounded.*sigma2 < inf"):
        LatentMaxEnt(scale * coins(), max_iter=500, **options).fit(y)
    penalised = LatentMaxEnt(scale * coins(), sigma2=100.0 / scale**2, **options)
    assert penalised.fit(y).rejected_["unbounded"] == 0
    assert LatentMaxEnt(coins(), bound=20.0, **options).fit(y).converged_


@pytest.mark.parametrize("far", [1e2, 1e3, 1e4, 1e5])
def test_weights_are_endless_however_far_polishing_takes_them(far, monkeypatch):
    """The gradient that is left so far out is the rounding of the log-odds."""
    weights = np.array([far, -110.0, np.nextafter(far, np.inf)])  # of a span of one
    monkeypatch.setattr(_stationary_points, "polished", lambda *given: weights)
    options = {"method": "newton", "n_init": 5, "random_state": 0}
    model = LatentMaxEnt(coins(), check_maximum=False, **options)
    with pytest.raises(NoAdmissibleCandidateError, match="5 unbounded"):
        model.fit([0] * 50 + [2] * 50)


def test_the_choice_with_a_box_is_by_the_entropy(rng):
    """The gates know the corner: weights at zero are held."""
    f = rng.normal(size=(6, 3, 5))
    y = rng.choice(6, size=300, p=rng.dirichlet(np.ones(6)))
    shares = np.bincount(y, minlength=6) / len(y)
    width = np.array([0.01, 0.02, 0.05, 0.2, 0.4])
    model = LatentMaxEnt(
        f, 12, penalty="box", width=width, mi_tol=-1.0, random_state=0, max_iter=20_000
    ).fit(y)
    table, weights = model.candidates_, model.candidate_weights_
    good = np.flatnonzero(table["reason"] == "")
    assert len(good) >= 5 and model.rejected_["unbounded"] == 0
    for i in good:
        exact = latent(f, weights[i], shares)
        assert (np.abs(exact["mean"] - exact["eta"]) <= width + 1e-5).all()
        assert table["entropy"][i] == pytest.approx(exact["H"], abs=1e-4)
        assert table["regularized_entropy"][i] == table["entropy"][i]  # U is zero
        value = exact["L"] - width @ np.abs(weights[i])
        assert table["objective"][i] == pytest.approx(value, abs=1e-10)
        for _ in range(20):  # a local maximum, by brute force
            lam = weights[i] + 1e-3 * rng.normal(size=5)
            other = latent(f, lam, shares)["L"] - width @ np.abs(lam)
            assert other < value + 1e-6
    assert model.entropy_ == table["entropy"][good].max()
    assert (weights[good] == 0).any()
    fully = LatentMaxEnt(f, 3, penalty="box", width=9.0, mi_tol=-1.0, random_state=0)
    np.testing.assert_array_equal(fully.fit(y).lam_, 0.0)  # nothing must be met


def test_large_weights_of_a_finite_maximum_are_admitted():
    # a discretised Gaussian: the weight of y^2 times its range is above 200
    t = np.arange(41.0)[:, None, None] - 20.0
    f = np.concatenate([t, t**2], axis=2)
    p = np.exp(-0.5 * np.arange(-20, 21) ** 2.0)
    model = LatentMaxEnt(f, 3, mi_tol=-1, random_state=0)
    model.fit(np.arange(41), sample_weight=p)
    assert np.abs(model.lam_[1] * 400) > 100 and model.rejected_["unbounded"] == 0
    assert model.lam_[1] == pytest.approx(-0.5, abs=1e-3)


def test_a_value_that_the_prior_excludes_is_no_part_of_the_model(rng):
    q = np.zeros((4, 2))
    q[3] = -np.inf
    f = rng.normal(size=(4, 2, 3))
    options = {"n_init": 3, "sigma2": 10.0, "mi_tol": -1, "random_state": 0}
    model = LatentMaxEnt(FiniteLatentModel(f, q), **options).fit([0, 1, 2] * 10)
    smaller = LatentMaxEnt(FiniteLatentModel(f[:3]), **options).fit([0, 1, 2] * 10)
    assert model.log_likelihood_ == pytest.approx(smaller.log_likelihood_, abs=1e-9)
    np.testing.assert_allclose(
        model.candidates_["curvature"], smaller.candidates_["curvature"], atol=1e-5
    )
    assert model.score_samples([3])[0] == -np.inf
    np.testing.assert_allclose(model.predict_proba([0, 1]).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"X\[1\]=3 has probability zero"):
        model.predict_proba([0, 3])


def test_fits_of_a_finite_model_are_kept_in_files(rng, tmp_path):
    y = rng.integers(0, 3, size=50)
    finite = FiniteLatentModel(coins(), rng.normal(size=(3, 2)))
    for features in (coins(), finite):
        model = LatentMaxEnt(features, 2, sigma2=50.0, mi_tol=-1).fit(y)
        maxent.save(model, tmp_path / "model.npz")
        again = maxent.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict_proba(y), model.predict_proba(y))


class Plain(LogLinearModel):
    """A model of a user, with the least that is needed."""

    def __init__(self, f):
        self.inner = FiniteLatentModel(f)
        self.n_features = self.inner.n_features

    def observe(self, data, sample_weight=None):
        return self.inner.observe(data, sample_weight)

    def partition(self, lam):
        return self.inner.partition(lam)

    def posterior(self, lam, observed):
        return self.inner.posterior(lam, observed)


def test_a_model_without_dependence_is_named_before_it_is_fitted():
    model, y = Plain(coins()), [0] * 40 + [1] * 30 + [2] * 30
    options = {"n_init": 2, "method": "lbfgs", "sigma2": 50.0, "random_state": 0}
    with pytest.raises(TypeError, match=r"Plain has no method dependence.*mi_tol=-1"):
        LatentMaxEnt(model, **options).fit(y)
    fitted = LatentMaxEnt(model, mi_tol=-1, **options).fit(y)
    assert fitted.converged_ and np.isnan(fitted.candidates_["dependence"]).all()


def test_the_history_is_the_best_objective_so_far():
    f, y = problem(0)
    model = LatentMaxEnt(f, 13, random_state=0, sigma2=100.0, em_iter=20).fit(y)
    assert 2 <= len(model.objective_history_) <= 22
    assert np.diff(model.objective_history_).min() >= -1e-12
    best = model.candidates_["objective"].max()
    assert model.objective_history_[-1] == pytest.approx(best, abs=1e-12)


def test_choices_and_groups():
    table = {
        "objective": np.array([3.0, 2.0, 5.0]),
        "regularized_entropy": np.array([1.0, 2.0, 9.0]),
        "reason": np.array(["", "", "independent"]),
    }
    assert chosen(table, "entropy") == 1 and chosen(table, "likelihood") == 0
    L, H = np.array([1.0, 1.0 + 1e-7, 2.0, 1.0]), np.array([3.0, 3.0, 3.0, 4.0])
    np.testing.assert_array_equal(groups(L, H), [1, 1, 0, 2])
    rows = np.array([[1.0, 2.0], [5.0, 0.0]])
    L, H = np.zeros(4), np.zeros(4)
    signatures = [rows, rows[::-1] + 1e-4, rows * [1.0, -1.0], rows * [[-1.0], [1.0]]]
    np.testing.assert_array_equal(groups(L, H, signatures.__getitem__), [0, 0, 1, 2])
    unsigned = groups(L, H, signatures.__getitem__, signed=False)
    np.testing.assert_array_equal(unsigned, [0, 0, 1, 0])


def test_solutions_of_equal_scores_are_told_apart():
    # two maxima that mirror each other in y have the same likelihood and entropy
    t = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    f = np.zeros((5, 2, 2))
    f[:, 1, 0], f[:, 1, 1] = 1.0, t
    y = np.repeat(np.arange(5), [20, 10, 2, 10, 20])
    model = LatentMaxEnt(f, 20, sigma2=1e3, random_state=0).fit(y)
    ok = model.candidates_["reason"] == ""
    signs = np.sign(model.candidate_weights_[ok, 1])
    found = model.candidates_["group"][ok]
    assert set(signs) == {-1.0, 1.0}
    for sign in (-1.0, 1.0):
        assert len(set(found[signs == sign])) == 1
    assert len(set(found)) == 2


def test_permuted_components_share_a_group(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 1)) + 6.0 * rng.integers(0, 2, size=(80, 1))
    mixture = maxent.LMEGaussianMixture(2, random_state=0).fit(X)
    means = mixture.candidate_means_[mixture.candidates_["reason"] == ""][:, :, 0]
    group = mixture.candidates_["group"][mixture.candidates_["reason"] == ""]
    swapped = means[:, 0] > means[:, 1]
    assert swapped.any() and not swapped.all() and len(set(group)) == 1


@pytest.mark.parametrize(
    "change, words",
    [
        ({"selection": "mdl"}, "selection='mdl' is not known"),
        ({"n_init": 0}, "n_init=0"),
        ({"inner": 0}, "inner=0"),
        ({"init": [[0.0]]}, "init has shape"),
        ({"features": np.zeros((2, 2))}, "features has shape"),
        ({"mi_tol": np.nan}, "mi_tol=nan"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_bad_parameters_are_named(change, words):
    f, y = problem(0)
    with pytest.raises(ValueError, match=words):
        LatentMaxEnt(**({"features": f} | change)).fit(y)


def test_choice_of_an_unknown_word_is_refused(seed):
    with pytest.raises(ValueError, match="selection='aic'"):
        fitted(seed)[0].select("aic")


@pytest.mark.parametrize("unit, origin", [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e8)])
def test_units_and_origins_leave_the_candidates(unit, origin, seed):
    plain, f, y = fitted(seed)
    options = {"n_init": 8, "random_state": 0, "sigma2": 100.0 / unit**2}
    model = LatentMaxEnt(origin + unit * f, **options).fit(y)
    assert model.rejected_ == plain.rejected_
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-6)
    assert model.entropy_ == pytest.approx(plain.entropy_, abs=1e-5)
    np.testing.assert_allclose(model.joint_proba(), plain.joint_proba(), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(y), plain.predict_proba(y), 1e-4)
    assert model.score(y) == pytest.approx(model.log_likelihood_, abs=1e-9)
