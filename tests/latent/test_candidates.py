"""LatentMaxEnt: one pool for every choice, and the four gates."""

import numpy as np
import pytest
from oracles.latent import latent

from maxent.latent import LatentMaxEnt, NoAdmissibleCandidateError
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


def test_choices_and_groups():
    table = {
        "objective": np.array([3.0, 2.0, 5.0]),
        "regularized_entropy": np.array([1.0, 2.0, 9.0]),
        "reason": np.array(["", "", "independent"]),
    }
    assert chosen(table, "entropy") == 1 and chosen(table, "likelihood") == 0
    L, H = np.array([1.0, 1.0 + 1e-7, 2.0, 1.0]), np.array([3.0, 3.0, 3.0, 4.0])
    np.testing.assert_array_equal(groups(L, H), [1, 1, 0, 2])


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
