"""Three or more classes of a kernel machine: one machine, or one for every pair.

Which of the two, how they are fitted, and how pairs of classes decide.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._support.progress import progress_of
from maxent._support.typing import IntArray
from maxent.discrimination._class_rows import leave_one_out_bound
from maxent.discrimination._one_vs_one import (
    OneVsOneFit,
    PairDecisions,
    check_support_counts,
    lead_over_others,
    pair_leads,
)
from maxent.discrimination._probabilities import no_probabilities
from maxent.discrimination.duals.multiclass_dual import solve_multiclass


class SeveralClassesMixin:
    """What :class:`MEDClassifier` has for three or more classes alone."""

    multi_class_: str
    n_support_: IntArray

    # -- the choice ----------------------------------------------------------------
    def _multi_class(self, data):
        """The machine that the parameters ask for where there are many classes."""
        if self.multi_class != "auto":
            return self.multi_class
        one = self.approximation is not None or self._rate() is not None
        one = one or (self._has_kernel("linear") and sp.issparse(data))
        return "joint" if one else "ovo"

    def _check_pairs(self):
        if self.multi_class == "ovo" and len(self.classes_) > 2 and self.approximation:
            raise ValueError(
                f"approximation={self.approximation!r} is for one machine, and "
                f"multi_class='ovo' has one for every pair of {len(self.classes_)} "
                "classes; use multi_class='joint', or OneVsOneClassifier of "
                "scikit-learn around this classifier."
            )

    def _joint_solver(self):
        """Solver of three or more classes: interior point or coordinate ascent."""
        if self.solver in ("auto", "interior"):
            return self.solver
        if self.solver in ("smo", "coordinate") and (
            self.solver == "smo" or self.kernel == "linear"
        ):
            return "coordinate"
        raise ValueError(
            f"solver={self.solver!r} does not solve {len(self.classes_)} classes with "
            f"kernel={self.kernel!r}; use 'auto', 'interior' or 'smo', or for "
            "kernel='linear' also 'coordinate'."
        )

    # -- fits ----------------------------------------------------------------------
    def _fit_joint(self, X, keep, data, codes, margin, bias, weight, tol):
        """Fit one machine of several classes."""
        data, origin = self._near_zero(data, bias)

        def store(model, found):
            result, beta = found
            model._store(result, beta.T, result.bias, keep, X, origin)

        result, beta = found = solve_multiclass(
            self._kernel(data),
            codes,
            len(self.classes_),
            margin,
            bias,
            weight,
            tol=tol,
            max_iter=self.max_iter,
            solver=self._joint_solver(),
            cache_size=self.cache_size,
            callback=progress_of(self, store),
        )
        store(self, found)
        if self.approximation is not None:
            self._store_approximation(result, beta.T, data)
        self.loo_bound_ = leave_one_out_bound(result, codes, margin, bias, weight)
        return result

    def _fit_pairs(self, X, keep, data, codes, margin, bias, weight, tol):
        """Fit a machine for every pair of classes."""
        m = len(self.classes_)
        data, origin = self._near_zero(data, bias)
        machines = OneVsOneFit(self, data, codes, m, margin, bias, weight, tol)

        def store(model, result):
            machines.store(model, result, keep, X, origin)

        result = machines.solve(progress_of(self, store))
        store(self, result)
        self.loo_bound_ = machines.loo_bound
        return result

    # -- decisions -----------------------------------------------------------------
    def _by_pairs(self):
        # models saved by versions that did not choose lack the attribute
        saved = "ovo" if hasattr(self, "n_support_") else "joint"
        return getattr(self, "multi_class_", saved) == "ovo"

    def _pair_decisions(self, m):
        """The decisions of all pairs, fitted state checked."""
        self._check_fitted_arrays(m * (m - 1) // 2, m - 1)
        if not self._is_compact():
            check_support_counts(self, m)
        return PairDecisions(self, m)

    def _leads(self, X):
        """By how much each of several classes wins, (n, n_classes), for displays."""
        m = len(self.classes_)
        if not self._by_pairs():
            return lead_over_others(self.decision_function(X))
        X = self._validated(X, reset=False)
        scores = np.empty((X.shape[0], m * (m - 1) // 2))
        return pair_leads(scores, self._pair_decisions(m).votes(X, scores))

    def _probability_rate(self):
        if self.multi_class == "ovo" and len(vars(self).get("classes_", "ab")) > 2:
            remedy = "multi_class='joint'"
            raise no_probabilities(self, ["margin", "multi_class"], remedy)
        return super()._probability_rate()
