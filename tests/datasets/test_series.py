"""Synthetic time series."""

import numpy as np
from refusals import refused

from maxent.datasets import make_switching_series


def test_series_have_the_sizes_that_are_asked_for(seed):
    series, y, groups = make_switching_series(4, 3, 7, n_features=3, random_state=seed)
    assert [x.shape for x in series] == [(7, 3)] * 12
    np.testing.assert_array_equal(groups, np.repeat(np.arange(4), 3))
    np.testing.assert_array_equal(y, groups >= 2)
    again, *_ = make_switching_series(4, 3, 7, n_features=3, random_state=seed)
    for x, z in zip(series, again):
        np.testing.assert_array_equal(x, z)
    one, *_ = make_switching_series(2, 1, 4, n_regimes=1, random_state=seed)
    assert np.isfinite(one).all()


def test_input_that_makes_no_series_is_refused():
    refused(lambda: make_switching_series(1), "n_exemplars=1 must be 2 or more")
    refused(lambda: make_switching_series(stay=1.5), "stay=1.5 must be a probability")
    refused(lambda: make_switching_series(noise=0), "noise=0 must be")
    refused(lambda: make_switching_series(length=0), "length=0 must be")
