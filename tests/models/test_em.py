"""The one EM loop: which run is kept, and how a run that falls is told."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxent.models import Mixture
from maxent.models.em import ROUNDING, maximize_by_em, relative_change


def run(objectives, **options):
    """EM through points 0, 1, ... of these objectives."""
    options = {"tol": 1e-12, "max_iter": len(objectives) - 1, **options}
    return maximize_by_em(lambda k: (objectives[k], k + 1), [0], **options)


@pytest.mark.parametrize("size", [None, 1e9])
@pytest.mark.parametrize("level", [0.0, -5.0, 1e6])
def test_a_run_that_falls_by_more_than_rounding_has_stalled(level, size):
    fall = 2.0 * ROUNDING * (1.0 + abs(level))
    best, result = run([level - 2.0, level, level - fall, level + 1.0], size=size)
    if size is not None:  # the first gain is small for so many values
        best, result = run([level, level - fall, level + 1.0], size=size)
    assert result.status.value == "stalled" and not result.converged
    assert result.gain == pytest.approx(-fall, rel=1e-3)
    assert result.objective == level and best == (0 if size else 1)
    assert result.n_iter == len(result.trace) - 1 == best + 1


@pytest.mark.parametrize("level", [0.0, -5.0, 1e6])
def test_a_fall_that_is_rounding_is_convergence(level):
    fall = 0.5 * ROUNDING * (1.0 + abs(level))
    best, result = run([level - 2.0, level, level - fall, level + 1.0])
    assert result.converged and result.n_iter == 2
    assert result.objective == level and best == 1


def test_changes_are_measured_by_the_old_parameters():
    old, new = (np.array([1.0, 3.0]), (np.array(0.0),)), (np.ones(2), (np.array(0.4),))
    assert relative_change(old, new) == 2.0 / (1.0 + 3.0)
    assert relative_change(new, old) == 2.0 / (1.0 + 1.0)


def test_other_starts_go_on_after_one_that_stalls():
    tables = {"a": [0.0, 3.0, 1.0], "b": [1.0, 2.0, 2.0]}

    def step(point):
        name, k = point
        return tables[name][k], (name, k + 1)

    best, result = maximize_by_em(
        step, [("a", 0), ("b", 0)], tol=1e-9, max_iter=2, change=lambda a, b: 0.0
    )
    assert best == ("a", 1) and result.status.value == "stalled"
    assert result.objectives == [3.0, 2.0]


def test_a_stalled_fit_warns_of_the_fall(rng, monkeypatch):
    model = Mixture.fit(rng.normal(size=(20, 1)), random_state=0)
    _, result = run([0.0, 2.0, 1.5])
    with pytest.warns(ConvergenceWarning, match="'stalled' after 2.*fell by 5.0e-01"):
        model._with_result(result)._warned(1e-8, 100)


def test_objectives_that_are_not_finite_are_refused():
    with pytest.raises(FloatingPointError, match="objective=nan at EM iteration 1"):
        run([0.0, np.nan, 1.0])
    _, result = run([-np.inf, 1.0, 1.0])  # but for -inf at a start
    assert result.converged
