"""Fitted attributes that are missing."""

import pytest
from sklearn.exceptions import NotFittedError

from maxent import MEDClassifier


def test_predictions_seek_no_name_that_is_near(monkeypatch, rng):
    """Names of columns are asked for in every prediction."""
    X = rng.normal(size=(30, 2))
    model = MEDClassifier().fit(X, X[:, 0] > 0)

    def sought(*args, **options):
        raise AssertionError("the names of all attributes were compared")

    monkeypatch.setattr("difflib.get_close_matches", sought)
    assert model.predict(X[:1]).shape == (1,)
    with pytest.raises(NotFittedError, match=r"feature_names_in_.*had no names"):
        _ = model.feature_names_in_
