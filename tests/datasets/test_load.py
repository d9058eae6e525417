"""Bundled data: counts as published, scikit-learn's conventions, light import."""

import sys

import numpy as np
import pandas as pd
import pytest
from processes import run

from maxent.datasets import load_breast_cancer_wisconsin, load_crabs


def test_crabs_have_the_published_counts_and_measurements():
    crabs = load_crabs()
    assert crabs.data.shape == (200, 5) and crabs.data.dtype == np.float64
    assert crabs.feature_names == ["FL", "RW", "CL", "CW", "BD"]
    # Means of the five columns as printed for this data set in Ripley (1996).
    np.testing.assert_allclose(
        crabs.data.mean(axis=0), [15.583, 12.7385, 32.1055, 36.4145, 14.0305], rtol=1e-5
    )
    np.testing.assert_array_equal(crabs.data[0], [8.1, 6.7, 16.1, 19.0, 7.0])
    assert "Campbell" in crabs.DESCR and crabs.frame is None


@pytest.mark.parametrize("target", ["sex", "species"])
def test_crab_groups_are_balanced_over_the_other_label(target):
    crabs = load_crabs(target=target)
    for k in (0, 1):
        for group in np.unique(crabs.groups):
            assert np.sum((crabs.target == k) & (crabs.groups == group)) == 50


def test_crab_targets_are_each_others_groups():
    sex, species = load_crabs(target="sex"), load_crabs(target="species")
    np.testing.assert_array_equal(sex.target_names[sex.target], species.groups)
    np.testing.assert_array_equal(species.target_names[species.target], sex.groups)
    assert sex.target_names.tolist() == ["female", "male"]
    assert species.target_names.tolist() == ["blue", "orange"]
    # The file starts with the blue males and ends with the orange females.
    assert (sex.target[0], species.target[0]) == (1, 0)
    assert (sex.target[-1], species.target[-1]) == (0, 1)


def test_wisconsin_has_the_published_counts():
    full = load_breast_cancer_wisconsin(missing="nan")
    assert full.data.shape == (699, 9)
    assert np.bincount(full.target).tolist() == [458, 241]
    assert np.bincount(full.groups)[1:].tolist() == [367, 70, 31, 17, 48, 49, 31, 86]
    assert np.isnan(full.data).sum(axis=0).tolist() == [0, 0, 0, 0, 0, 16, 0, 0, 0]
    known = full.data[~np.isnan(full.data)]
    assert known.min() == 1 and known.max() == 10


def test_wisconsin_drops_exactly_the_incomplete_rows():
    full = load_breast_cancer_wisconsin(missing="nan")
    part = load_breast_cancer_wisconsin()
    complete = ~np.isnan(full.data).any(axis=1)
    np.testing.assert_array_equal(part.data, full.data[complete])
    np.testing.assert_array_equal(part.target, full.target[complete])
    np.testing.assert_array_equal(part.groups, full.groups[complete])
    assert np.bincount(part.target).tolist() == [444, 239]


@pytest.mark.parametrize("load", [load_crabs, load_breast_cancer_wisconsin])
def test_bunch_tuple_and_frame_hold_the_same_numbers(load):
    bunch, framed = load(), load(as_frame=True)
    X, y = load(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    assert list(framed.frame.columns) == [*bunch.feature_names, "target"]
    pd.testing.assert_frame_equal(framed.data, framed.frame[bunch.feature_names])
    np.testing.assert_array_equal(framed.data.to_numpy(), bunch.data)
    Xf, yf = load(return_X_y=True, as_frame=True)
    assert isinstance(Xf, pd.DataFrame) and isinstance(yf, pd.Series)
    np.testing.assert_array_equal(yf.to_numpy(), bunch.target)


def test_two_loads_do_not_share_memory():
    first = load_crabs()
    first.data[:] = 0
    assert load_crabs().data.min() > 0


def test_unknown_choices_are_named():
    with pytest.raises(ValueError, match="target='age' is not known; use 'sex' or"):
        load_crabs(target="age")
    with pytest.raises(ValueError, match="missing='mean' is not known; use 'drop'"):
        load_breast_cancer_wisconsin(missing="mean")


def test_a_missing_pandas_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas"):
        load_crabs(as_frame=True)
    assert load_crabs().data.shape == (200, 5)


def test_importing_and_reading_arrays_loads_neither_sklearn_nor_pandas():
    code = (
        "import sys, maxent.datasets as d\n"
        "d.load_crabs(return_X_y=True)\n"
        "print(sorted({'sklearn', 'pandas'} & set(sys.modules)))"
    )
    assert run("-c", code).strip() == "[]"
