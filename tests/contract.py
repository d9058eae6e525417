"""scikit-learn's checks of estimators, as parameters of a test."""

import pytest
import sklearn
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version

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


def _sound(check):
    since = parse_version(_MENDED.get(_name(check), "0"))
    return parse_version(sklearn.__version__) >= since


def _name(check):
    return getattr(check, "func", check).__name__


def contract(*estimators, left_out=lambda estimator: ()):
    """Decorate a test of ``estimator, check`` to run every check of scikit-learn.

    Parameters
    ----------
    *estimators : estimator
    left_out : callable(estimator) -> collection of str
        Names of the checks that an estimator is not asked for: those whose data or
        labels it does not take, and those of more digits than its tolerance promises,
        which pass on one processor and fail on another.
    """
    return pytest.mark.parametrize(
        ("estimator", "check"),
        [
            pytest.param(case, check, id=f"{estimator}-{_name(check)}")
            for estimator in estimators
            for case, check in estimator_checks_generator(estimator)
            if _name(check) not in left_out(estimator) and _sound(check)
        ],
    )
