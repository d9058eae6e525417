"""Fisher kernels: what is refused, and in which words."""

import numpy as np
import pytest
from kernels.scores.score_cases import MANY, _nothing, assert_kernels_agree, scores_of

from maxent.kernels import FisherFeatures, fisher_kernel

# ------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "n, center, accepted",
    [(4, False, False), (5, False, True), (5, True, False), (6, True, True)],
)
def test_empirical_information_needs_more_rows_than_parameters(
    n, center, accepted, rng
):
    U = rng.normal(size=(n, 4))
    options = {"center": center}
    if accepted:
        with pytest.warns(UserWarning, match="noisy"):
            fisher_kernel(U, **options)
        return
    with pytest.raises(ValueError, match=r"times the identity.*ridge"):
        fisher_kernel(U, **options)
    with pytest.raises(ValueError, match=f"n_samples = {n} "):
        FisherFeatures(**options).fit(U)
    with pytest.warns(UserWarning, match="noisy"):
        fisher_kernel(U, ridge=0.1, **options)
    fisher_kernel(U, information="diagonal", **options)
    fisher_kernel(U, information=np.eye(4), **options)


def test_few_rows_warn_below_five_a_parameter(rng):
    U = rng.normal(size=(20, 4))
    fisher_kernel(U)  # warnings are errors here
    with pytest.warns(UserWarning, match=r"19 rows for 4 effective.*at least 20 rows"):
        fisher_kernel(U[:19])
    # a ridge lowers the number of parameters that count: the trace of the kernel
    # of the reference with itself is n times that number
    for ridge in (0.5, 50.0):
        with pytest.warns(UserWarning) if ridge < 1 else _nothing():
            K = fisher_kernel(U[:8], ridge=ridge)
        assert (np.trace(K) / 8 > 8 / 5) == (ridge < 1)


def test_a_mean_score_that_is_not_zero_is_reported_unless_centred(rng):
    U = scores_of(rng)
    off = U + np.eye(4)[2] * U[:, 2].std()
    for information in ("empirical", "diagonal"):
        with pytest.warns(UserWarning, match="mean score of parameter 2.*center=True"):
            fisher_kernel(off, information=information)
        fisher_kernel(off, information=information, center=True)
    fisher_kernel(off, information="identity")
    fisher_kernel(off, information=np.eye(4))
    # constant scores that pseudo-counts leave are small beside the others
    constant = np.c_[U, np.full(MANY, -1e-4)]
    fisher_kernel(constant, ridge=0.01)
    fisher_kernel(constant, information="diagonal")
    # rows of the model itself, not those it was fitted on: chance, no warning
    fisher_kernel(rng.normal(size=(MANY, 4)))


def test_two_sets_need_the_rows_of_the_information(rng):
    U = scores_of(rng)
    for options in ({}, {"information": "diagonal"}, {"information": np.eye(4)}):
        options["center"] = "information" in options and not isinstance(
            options["information"], str
        )
        with pytest.raises(ValueError, match=r"reference=.*training"):
            fisher_kernel(U[:5], U, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(bad, rng):
    U = scores_of(rng)
    wrong = U.copy()
    wrong[17, 2] = bad
    with pytest.raises(ValueError, match=r"scores\[17, 2\]=.*smooth the model"):
        fisher_kernel(wrong)
    with pytest.raises(ValueError, match=r"other\[17, 2\]"):
        fisher_kernel(U, wrong, reference=U)
    with pytest.raises(ValueError, match=r"reference\[17, 2\]"):
        fisher_kernel(U, reference=wrong)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        FisherFeatures().fit(wrong)


def test_strings_are_no_scores():
    with pytest.raises(ValueError, match=r"X\[0\]='ACG' .*put FisherScores\(model\)"):
        FisherFeatures().fit(["ACG", "CCC"])


def test_shapes_are_checked(rng):
    U = scores_of(rng)
    with pytest.raises(ValueError, match="other has 3 columns, but scores has 4"):
        fisher_kernel(U, U[:, :3], reference=U)
    with pytest.raises(ValueError, match="reference has 3 columns"):
        fisher_kernel(U, reference=U[:, :3])
    with pytest.raises(ValueError, match="2D array"):
        fisher_kernel(U[0])
    with pytest.raises(ValueError, match="minimum of 1"):
        fisher_kernel(U[:0])
    with pytest.raises(ValueError, match="minimum of 1"):
        fisher_kernel(U[:, :0])
    for shape in ((3, 3), (4, 3), (3,), (4, 4, 1), ()):
        with pytest.raises(ValueError, match=r"expected \(4, 4\), or \(4,\)"):
            fisher_kernel(U, information=np.ones(shape))


@pytest.mark.parametrize(
    "information, words",
    [
        (np.diag([1.0, 2.0, 0.0, 1.0]), "parameter 2 has no information.*ridge"),
        (np.diag([1.0, -2.0, 1.0, 1.0]), "parameter 1 has information -2, which is no"),
        (np.array([1.0, 1.0, 1.0, 0.0]), "parameter 3 has no information.*ridge"),
        (np.array([1.0, 1.0, -1e-9, 1.0]), "parameter 2 has information -1e-09"),
        (np.ones((4, 4)), "ends at parameter 1.*redundant.*ridge"),
        (
            np.eye(4) + np.diag([2.0, 0, 0], 1) + np.diag([2.0, 0, 0], -1),
            "ends at parameter 1",
        ),
        (np.eye(4) + np.diag([1e-3, 0, 0], 1), r"not symmetric: \[0, 1\] is 0.001"),
        (np.diag([1.0, np.nan, 1.0, 1.0]), r"information\[1, 1\]=nan is not finite"),
        ("analytic", "information='analytic' is not known"),
        (None, "information=None is not known; use one of 'empirical'"),
    ],
)
def test_information_that_is_not_positive_definite_is_refused(information, words, rng):
    with pytest.raises(ValueError, match=words):
        fisher_kernel(scores_of(rng), information=information)


@pytest.mark.parametrize("n", [40, 2000])
def test_redundant_parameters_are_refused_and_a_ridge_helps(n, rng):
    # softmax scores: the four gradients of every row sum to zero
    x = np.r_[np.arange(4), rng.integers(4, size=n - 4)]
    U = np.eye(4)[x] - np.bincount(x) / n
    with pytest.raises(ValueError, match=r"combination of the ones before.*ridge"):
        fisher_kernel(U)
    fewer = fisher_kernel(U[:, :3])
    # a small ridge leaves the kernel of the three free parameters
    np.testing.assert_allclose(fisher_kernel(U, ridge=1e-9), fewer, rtol=0, atol=1e-5)


def test_parameters_of_very_different_sizes_are_not_singular(rng):
    U = scores_of(rng)
    sizes = 10.0 ** np.array([-60.0, 60.0, 0.0, 20.0])
    K = fisher_kernel(U * sizes)
    assert_kernels_agree(K, fisher_kernel(U), rel=1e-9)


def test_constant_scores_have_no_information_once_centred(rng):
    U = scores_of(rng)
    U[:, 1] = 0.1
    for information in ("empirical", "diagonal"):
        with pytest.raises(ValueError, match="parameter 1 has no information"):
            fisher_kernel(U, information=information, center=True)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_overflow_is_an_error_that_says_so(size, center, rng):
    U = scores_of(rng)
    U[:, 0] = size * np.abs(U[:, 0] / np.abs(U[:, 0]).max())
    for information in ("empirical", "diagonal"):
        with pytest.raises(ValueError, match=r"overflows.*Rescale"):
            fisher_kernel(U, information=information, ridge=0.1, center=center)
    for information in (np.full(4, 1e-300), np.eye(4) * 1e-300):
        with pytest.raises(ValueError, match=r"overflow.*Rescale"):
            fisher_kernel(U, information=information, center=center)
    with pytest.raises(ValueError, match=r"overflows.*Rescale"):
        fisher_kernel(U, information=np.full(4, 1e308), ridge=1.0)
    with pytest.raises(ValueError, match=r"kernel values overflow.*Rescale"):
        fisher_kernel(U, information="identity")
    with pytest.raises(ValueError, match=r"kernel values overflow.*Rescale"):
        fisher_kernel(U[:, 1:], U[:, :3], reference=U[:, 1:], information="identity")


@pytest.mark.parametrize("n_jobs", [0, "a", 1.5, True, 2**31, 2**40, 10**30])
def test_number_of_threads_is_checked_first(n_jobs):
    with pytest.raises(ValueError, match="n_jobs="):
        fisher_kernel("no scores at all", n_jobs=n_jobs)


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf, "small"])
def test_ridge_is_checked(ridge, rng):
    with pytest.raises(ValueError, match=r"ridge=.*must be a finite number >= 0"):
        fisher_kernel(scores_of(rng), ridge=ridge)


def test_center_is_checked(rng):
    with pytest.raises(ValueError, match="center='yes' must be True or False"):
        fisher_kernel(scores_of(rng), center="yes")
