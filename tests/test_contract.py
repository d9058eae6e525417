"""scikit-learn's checks of estimators, for each of ours with several settings."""

import pytest
import sklearn
from oracles.missing_values import MISSING_IGNORED
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version

from maxent import (
    ChowLiuClassifier,
    FisherFeatures,
    LMEDirichletMixture,
    LMEGaussianMixture,
    M3EClassifier,
    MaxEntClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDClassifierCV,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDPartialLabelClassifier,
    MEDRegressionSelector,
    MEDRegressor,
    MEDRegressorCV,
    MEDTreeClassifier,
    MixtureDensity,
)
from maxent.discrimination import GaussianCentre, GaussianScores, LatentMixture

# Weights against copies of rows, to seven digits: more than a loose tolerance promises.
SAME_BY_WEIGHT = tuple(
    f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")
)

# Checks with errors of their own before these versions: one shuffles rows and then
# takes the class of the first for the negative one, the other subtracts means from
# integers.
_MENDED = {
    **dict.fromkeys(SAME_BY_WEIGHT, "1.7"),
    "check_positive_only_tag_during_fit": "1.7.2",
}
# Costs of 1000 for class 0 and 1e-4 for the others are to give 87 % of the rows to it.
# Its training rows then are right, but quadratic boundaries of three classes enclose
# them, and 16 to 20 % of the rows lie outside. A level of 3 asks for more room.
ENCLOSED = ("check_class_weight_classifiers",)
# Every value in the rows of these checks is met once: no category is rarer than others.
NO_CATEGORIES = ("check_outliers_train", "check_outliers_fit_predict")
# 16 rows on 4 points: a component vanishes, or both are equal
FEW_POINTS = ("check_sample_weights_shape", "check_sample_weights_not_overwritten")
# weights and copies of rows are compared to 1e-7 of the scores
EXACT = {"n_init": 1, "tol": 1e-10, "qp_tol": 1e-15}


class OfShares(LMEDirichletMixture):
    """The checks' rows, which are no proportions, as proportions."""

    def _proportions(self, X):
        if X.shape[1] > 1 and (X >= 0).all():
            X = (X + 1.0) / (X + 1.0).sum(axis=1, keepdims=True)
        return super()._proportions(X)


# (estimator, names of the checks that it is not asked for): those whose data or labels
# it does not take or which do not determine a fit, and those of more digits than its
# tolerance promises, which pass on one processor and fail on another; with the warnings
# that are right for such data
CASES = {
    (): [
        (MaxEntClassifier(), SAME_BY_WEIGHT),
        (MaxEntClassifier(tol=1e-10), ()),
        (M3EClassifier(1.0, **EXACT), ()),
        (M3EClassifier(**EXACT), ()),
        # rows of one component have a singular covariance
        (LMEGaussianMixture(), SAME_BY_WEIGHT),
        # of 20 drawn starts all may collapse
        (LMEGaussianMixture(2, random_state=0), (*SAME_BY_WEIGHT, *FEW_POINTS)),
        # 15 rows of general position in 30 columns are as far from one another as any
        # in the pooled metric: maxima tie to eight digits, and starts decide
        (LMEGaussianMixture(2, prior="weak"), SAME_BY_WEIGHT),
        (LMEGaussianMixture(covariance_type="diag"), ()),
        (LMEGaussianMixture(covariance_type="spherical"), ()),
        (LMEGaussianMixture(prior="weak"), ()),
        (OfShares(), ()),
        # 15 rows in 30 columns have no covariance
        (MixtureDensity(1), SAME_BY_WEIGHT),
        (MixtureDensity(random_state=0), SAME_BY_WEIGHT),
        (MixtureDensity(1, "DiagonalGaussian"), ()),
    ],
    ("ignore::sklearn.exceptions.SkipTestWarning",): [
        # working sets end within tol, Newton steps far below it
        (MEDClassifier(), SAME_BY_WEIGHT),
        (MEDClassifier(margin="hinge"), SAME_BY_WEIGHT),
        (MEDClassifier(kernel="linear", tol=1e-8), ()),
        (MEDClassifier(margin="logistic", bias=1.0, tol=1e-8), ()),
        (MEDClassifierCV(Cs=2, gammas=1, cv=3), SAME_BY_WEIGHT),
        (MEDRegressorCV(Cs=2, gammas=1, cv=3), SAME_BY_WEIGHT),
        (MEDClassifier(tol=1e-10), ()),
        (MEDRegressor(), ()),
        (MEDRegressor("linear", margin="gaussian"), ()),
        (MEDRegressor(margin="hinge", bias=1.0), ()),
        (MEDOutlierDetector(), ()),
        (MEDOutlierDetector(GaussianScores(gamma=0.5), quantile=0.2), ()),
        # a level that some centre meets at no cost leaves the centre undetermined
        (MEDOutlierDetector(GaussianCentre("linear"), level=-0.01), ()),
        (MEDOutlierDetector(margin="gaussian", likelihood="predictive"), ()),
        (MEDOutlierDetector(LatentMixture(n_init=1, random_state=0)), ()),
    ],
    (
        "ignore::sklearn.exceptions.SkipTestWarning",
        "ignore:No features were selected",
    ): [
        (MEDFeatureSelector(), ()),
        (MEDFeatureSelector(0.5, bias=1.0), ()),
        (MEDRegressionSelector(), ()),
        (MEDRegressionSelector(0.5, margin="hinge", bias=1.0), ()),
    ],
    (
        "ignore::sklearn.exceptions.SkipTestWarning",
        "ignore:an empirical information:UserWarning",
        "ignore:the mean score:UserWarning",
    ): [
        (FisherFeatures(), ()),
        (FisherFeatures(ridge=0.1, center=True), ()),
        (FisherFeatures("diagonal"), ()),
        (FisherFeatures("identity"), ()),
    ],
    (
        "ignore::sklearn.exceptions.SkipTestWarning",
        "ignore::sklearn.exceptions.ConvergenceWarning",
    ): [
        # of labels -1 and 1, where -1 is a row without a label
        (MEDPartialLabelClassifier(machine), ("check_classifiers_classes",))
        for machine in (None, MEDClassifier("linear"))
    ],
    (
        "ignore::sklearn.exceptions.SkipTestWarning",
        "ignore:.*Here prior='weak' was used",
        "ignore:.*KBinsDiscretizer:UserWarning",
    ): [
        (MEDGaussianClassifier(), ENCLOSED),
        (MEDGaussianClassifier(prior="weak", bias="flat", level=3.0), ()),
        (MEDGaussianClassifier(tempering=0.5, margin="laplace"), ENCLOSED),
        (MEDBayesNetClassifier(), MISSING_IGNORED),
        (MEDBayesNetClassifier(ess=5.0, margin="gaussian", level=2.0), MISSING_IGNORED),
        (MEDBayesNetClassifier(missing="category"), ()),
    ],
    (
        "ignore::sklearn.exceptions.SkipTestWarning",
        "ignore:.*KBinsDiscretizer:UserWarning",
    ): [
        (MEDTreeClassifier(), MISSING_IGNORED),
        (MEDTreeClassifier("dirichlet", level=4.0, bias=None), MISSING_IGNORED),
        (
            MEDTreeClassifier(margin="laplace", bias=2.0, likelihood="predictive"),
            MISSING_IGNORED,
        ),
        (ChowLiuClassifier(), MISSING_IGNORED),
        (ChowLiuClassifier(0.5, class_prior="uniform"), MISSING_IGNORED),
        (MEDTreeClassifier(missing="category"), ()),
        (ChowLiuClassifier(missing="category"), ()),
        (MEDOutlierDetector("multinomial"), (*NO_CATEGORIES, *MISSING_IGNORED)),
        (MEDOutlierDetector("multinomial", missing="category"), NO_CATEGORIES),
        # quasi-Newton steps end at a gap of 1e-8, which is fewer digits of the scores
        *(
            (
                MEDOutlierDetector("tree", margin=margin),
                (*NO_CATEGORIES, *MISSING_IGNORED, *SAME_BY_WEIGHT),
            )
            for margin in (MEDOutlierDetector().margin, "logistic")
        ),
    ],
}

# Checks whose outcome depends on what was fitted, and so on every setting. All others
# are of parameters, of the kinds of input and of attributes: settings of one class that
# take the same input share that code, and the first of them answers for it, unless
# --run-slow asks each.
OF_THE_FIT = {
    "check_class_weight_classifiers",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_non_transformer_estimators_n_iter",
    "check_outlier_contamination",
    "check_outliers_fit_predict",
    "check_outliers_train",
    "check_regressors_int",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_transformer_general",
    "check_transformer_n_iter",
    "check_transformer_preserve_dtypes",
}
_INPUT = ("model", "estimator", "kernel", "information", "missing")


def _takes(estimator):
    """A class and the settings by which it reads its input."""
    return type(estimator), *(str(getattr(estimator, name, "")) for name in _INPUT)


_ASKED = {  # for all checks: the first setting of every kind
    _takes(estimator): estimator
    for cases in reversed(CASES.values())
    for estimator, _ in reversed(cases)
}


def _marks(estimator, check, ignored):
    yield from (pytest.mark.filterwarnings(one) for one in ignored)
    if _name(check) not in OF_THE_FIT and _ASKED[_takes(estimator)] is not estimator:
        yield pytest.mark.slow


def _name(check):
    return getattr(check, "func", check).__name__


def _sound(check):
    since = parse_version(_MENDED.get(_name(check), "0"))
    return parse_version(sklearn.__version__) >= since


@pytest.mark.parametrize(
    "estimator, check",
    [
        pytest.param(
            case,
            check,
            id=f"{name}-{_name(check)}",
            marks=[*_marks(estimator, check, ignored)],
        )
        for ignored, cases in CASES.items()
        for estimator, left_out in cases
        for name in [str(estimator)]
        for case, check in estimator_checks_generator(estimator)
        if _name(check) not in left_out and _sound(check)
    ],
)
def test_contract(estimator, check):
    check(estimator)
