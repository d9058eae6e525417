"""Remedies of several messages.

The command line names its options in their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

SCALE_FEATURES = "scale the features"
SCALE_COLUMNS = "scale the columns of X, for instance by StandardScaler"
MAKE_BINS = "for instance by sklearn.preprocessing.KBinsDiscretizer(encode='ordinal')"
TAKE_REGRESSOR = "use a regressor such as MEDRegressor"
ONE_AGAINST_REST = "wrap it in sklearn.multiclass.OneVsRestClassifier"
_FAR = 1e3  # of scikit-learn's data sets wine and breast cancer are beyond


def scale_remedy(X: Any) -> str | None:
    """Advice to scale columns whose standard deviations differ by more than 1000.

    Parameters
    ----------
    X : ndarray or CSR (n, n_features)
        Rows of a machine that has not converged.

    Returns
    -------
    str or None
        The remedy, for a warning; None if the scales are not far apart.
    """
    if sp.issparse(X):
        from sklearn.utils.sparsefuncs import mean_variance_axis

        spread = np.sqrt(mean_variance_axis(X, axis=0)[1])
    else:
        spread = np.std(X, axis=0, dtype=np.float64)
    varied = np.flatnonzero(spread > 0)
    if not len(varied):
        return None
    low, high = varied[[spread[varied].argmin(), spread[varied].argmax()]]
    if spread[high] <= _FAR * spread[low]:
        return None
    return (
        f"{SCALE_COLUMNS}: their standard deviations differ, from "
        f"{spread[low]:.2g} of column {low} to {spread[high]:.2g} of column {high}"
    )
