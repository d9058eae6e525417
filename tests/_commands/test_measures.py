"""Measures and their standard errors, against scikit-learn, pairs and resamples."""

import numpy as np
import pytest
from sklearn import metrics

from maxent._commands.measures import (
    Estimate,
    average_precision,
    calibration_table,
    log_loss,
    mean_roc_auc,
    regression_measures,
    roc_auc,
    share,
)


def scored(rng, n=200):
    """Labels and scores of two classes that overlap, with ties."""
    positive = rng.random(n) < 0.3
    return positive, (rng.normal(size=n) + 1.2 * positive).round(1)


def spread(rng, measure, *arrays, n_samples=800):
    """Standard deviation of a measure over resamples of the rows."""
    n = len(arrays[0])
    drawn = (rng.integers(0, n, n) for _ in range(n_samples))
    return np.std([measure(*(a[i] for a in arrays)).value for i in drawn])


def test_areas_are_those_of_all_pairs(rng):
    positive, score = scored(rng)
    gap = score[positive][:, None] - score[~positive]
    found = roc_auc(positive, score)
    assert found.value == pytest.approx(np.mean((gap > 0) + 0.5 * (gap == 0)))
    assert found.error == pytest.approx(spread(rng, roc_auc, positive, score), rel=0.2)


def test_the_mean_area_of_classes(rng):
    codes = rng.integers(0, 3, 300)
    scores = np.eye(3)[codes] + rng.normal(size=(300, 3))
    found = mean_roc_auc(codes, scores)
    each = [metrics.roc_auc_score(codes == k, scores[:, k]) for k in range(3)]
    assert found.value == pytest.approx(np.mean(each))
    resampled = spread(rng, mean_roc_auc, codes, scores)
    assert found.error == pytest.approx(resampled, rel=0.2)


def test_average_precision_is_that_of_scikit_learn(rng):
    positive, score = scored(rng)
    found = average_precision(positive, score)
    expected = metrics.average_precision_score(positive, score)
    assert found.value == pytest.approx(expected)
    resampled = spread(rng, average_precision, positive, score, n_samples=100)
    assert found.error == pytest.approx(resampled, rel=0.4)


def test_the_log_loss_is_that_of_scikit_learn(rng):
    proba = rng.dirichlet(np.ones(3), 100)
    proba[0] = [1.0, 0.0, 0.0]
    codes = rng.integers(0, 3, 100)
    codes[0] = 1
    found = log_loss(proba, codes).value
    assert np.isfinite(found) and found == pytest.approx(metrics.log_loss(codes, proba))


def test_measures_of_numbers_are_those_of_scikit_learn(rng):
    y = rng.normal(size=300)
    predicted = y + 0.5 * rng.standard_t(8, size=300)
    found = regression_measures(predicted, y)
    expected = {
        "RMSE": metrics.root_mean_squared_error,
        "MAE": metrics.mean_absolute_error,
        "R2": metrics.r2_score,
    }
    for name, score in expected.items():
        assert found[name].value == pytest.approx(score(y, predicted))
        resampled = spread(
            rng, lambda p, t, name=name: regression_measures(p, t)[name], predicted, y
        )
        assert found[name].error == pytest.approx(resampled, rel=0.25)


def test_bins_of_probabilities_hold_every_row_once(rng):
    proba = np.append(rng.random(500), [0.0, 1.0])
    hit = rng.random(502) < proba
    table = calibration_table(proba, hit)
    assert sum(b["rows"] for b in table) == 502
    assert sum(b["observed"].counts[0] for b in table) == hit.sum()
    for b in table:
        assert b["from"] <= b["mean"] <= b["to"]


def test_what_is_not_known_has_no_error():
    every = np.ones(5, dtype=bool)
    assert np.isnan(roc_auc(every, np.arange(5.0)).value)
    assert str(share(0, 7)) == "0 (0 of 7)" and share(7, 7).as_dict() == {
        "value": 1.0,
        "standard_error": None,
        "count": 7,
        "total": 7,
    }
    assert str(Estimate(0.98123, 0.0123)) == "0.981 ± 0.012"
    assert str(Estimate(1234.5, 120.0)) == "1234 ± 120"
    assert set(regression_measures(np.ones(3), np.ones(3))) == {"RMSE", "MAE"}
