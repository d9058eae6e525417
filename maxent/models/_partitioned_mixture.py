"""Mixtures fitted to rows in blocks: EM whose E step visits every block."""

from __future__ import annotations

import math

import numpy as np

from maxent._partitions.partition_checks import (
    read_partitions,
    results_of,
    rows_of_weight,
    sample_of,
)
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import Categorical, _checks
from maxent.models._chain_input import log_of_pseudo_counts, with_pseudo_counts
from maxent.models._family_choice import check_family
from maxent.models._mixture_em import (
    MixtureProblem,
    check_rows,
    mixture_change,
    posterior_shares,
)
from maxent.models.em import maximize_by_em

_SAMPLE = 1 << 14  # rows of the start, at most


class PartitionedMixture:
    """One EM step over partitions, for `maximize_by_em`.

    The starts are runs of EM on a sample of the rows.

    Parameters
    ----------
    X, weights : Dask array or RowBlocks, and the weights of the rows or None
    family : class
        Whose fits are functions of sums over the rows.
    smoothing : float
    options : dict or None
        Further arguments of the family's `fit`.
    starts : tuple
        `init`, a Mixture or None, and n_components, n_init, random_state for None.
    """

    def __init__(self, X, weights, family, smoothing, options, starts):
        self.family, self.options = family, check_family(family, options)
        check_rows(family, X)
        self.starts = self._checked_starts(*starts, X)
        self.smoothing = v.check_nonnegative("smoothing", smoothing)
        if "smoothing" in self.options:
            raise ValueError(
                "family_options has smoothing, which fits to rows in blocks do not "
                "take; use the argument smoothing of the mixture."
            )
        if not family._sums_suffice(**self.options):
            raise ValueError(
                f"family={family.__name__} has fits that are no functions of sums "
                "over the rows, so blocks cannot be fitted; pass X.compute(), "
                "or a sample."
            )
        options = {"weight_name": "weights", "sparse": False, "matrix": False}
        self.parts, summary = read_partitions(
            X, None, weights, "none", v.LARGEST_ENTRY, **options
        )
        if family is Categorical and self.options.get("n_categories") is None:
            self.options["n_categories"] = int(max(self.parts.map(_largest))) + 1
        self.sample = sample_of(self.parts, summary.lengths, _SAMPLE)

    @staticmethod
    def _checked_starts(init, n_components, n_init, random_state, X):
        """The starts, refused before a pass over the rows."""
        if init is None:
            k = v.check_count("n_components", n_components)
            n_init = v.check_count("n_init", n_init)
            return None, k, n_init, as_generator(random_state)
        if not hasattr(init, "components"):
            raise TypeError(
                f"init={v.shown(init)} must be a Mixture or None where X comes in "
                "blocks."
            )
        wanted, shape = init.components.event_shape, tuple(X.shape[1:])
        if shape != wanted:
            raise ValueError(
                f"init is a mixture over {math.prod(wanted)} columns, and X has shape "
                f"{X.shape}; give a start for the columns of X."
            )
        return init, None, None, None

    def fit(self, cls, tol, max_iter, callback):
        """The mixture, from a start that is its own fit to the sample."""
        init, n_components, n_init, random_state = self.starts
        if init is not None:
            self._check_rows(init.components)
        X, _, weights = self.sample
        problem = MixtureProblem(X, weights, self.family, self.smoothing, self.options)
        options = {"tol": tol, "max_iter": max_iter, "callback": callback}
        options["change"] = mixture_change
        if init is None:
            starts = problem.random_starts(n_components, n_init, random_state)
            start, _ = maximize_by_em(problem.step, starts, **options)
            self._check_rows(start[1])
        else:
            start = problem.start_of_mixture(init.weights, init.components)
        self.prior = problem.components.prior
        best, result = maximize_by_em(self.step, [start], **options)
        return cls(*best)._with_result(result)

    def _check_rows(self, components):
        """Refuse rows that no component can have."""
        results_of(self.parts, _check_support, components)

    def step(self, point):
        """Objective at a point, and the point after one EM step."""
        weights, components = point
        c = self.smoothing
        objective, total, *sums = self.parts.total(_e_step, point)
        if c:
            objective += log_of_pseudo_counts(c, weights)
            objective += float(self.prior.log_density(components).sum())
        used = self.prior.decides(total)
        fitted = self.prior.of_members(used).refitted(
            components[used], total[used], *(s[used] for s in sums)
        )
        weights = with_pseudo_counts(total, c, weights)
        return objective, (weights, components._replaced(used, fitted))


# -- functions of one partition (X, None, weights) -------------------------------------
def _e_step(X, _, own, point):
    """(log-likelihood, sums of the family) of the rows; the first sums are counts."""
    X, own = _rows(X, own)
    weights, components = point
    objective, shares = posterior_shares(components.log_prob(X), weights, own)
    return objective, *components._part_sums(X, shares * own)


def _check_support(X, _, own, components):
    X = _checks.rows(_rows(X, own)[0], components.event_shape)
    components._check_support(X, **components._fixed())


def _largest(X, _, own):
    return float(np.max(_rows(X, own)[0], initial=0.0))


def _rows(X, own):
    """Rows of positive weight as doubles, and their weights."""
    X, _, own = rows_of_weight(X, None, own)
    return np.asarray(X, dtype=np.float64), own
