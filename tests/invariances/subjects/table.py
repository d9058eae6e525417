"""Everything public that learns or compares: how to make it, and what it answers.

A subject is fitted to small data and asked about a query. An answer is named by its
role, which says how a transformation of the data changes it (see ``Data.restored``).
``tolerance`` follows from where the fit stops, in units of the answers: a duality gap
of 1e-10 leaves decision values free by the root of twice of it; EM that stops at rises
below 1e-11 leaves log-densities free by about their root; what is a formula is exact
to rounding.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from invariances import data as kinds
from sklearn.base import clone

FORMULA, CONVEX, EM = 1e-8, 2e-4, 2e-4

# groups of transformations that data of a kind have
ARRAYS = "numbers memory nested"
TABLES = "numbers memory nested frames whole names"
REAL = f"unit units origin rows columns truths {TABLES} sparse dask"
CODED = f"rows columns naturals categories {TABLES} sparse dask"
KINDS: dict[Callable[..., kinds.Data], str] = {
    kinds.table: REAL,
    kinds.two_groups: REAL.replace(" truths", ""),  # they would tell the group alone
    kinds.signs: REAL,
    kinds.labelled: REAL + " labels two",
    kinds.three: REAL + " labels",
    kinds.partly_three: REAL.replace(" truths", ""),
    kinds.partly: REAL.replace(" truths", ""),  # few have a label
    kinds.targets: REAL + " targets",
    kinds.gram: f"rows {ARRAYS}",
    kinds.codes: CODED + " labels two",
    kinds.coded_signs: CODED,
    kinds.bits: f"rows columns naturals bits {TABLES} sparse dask",
    kinds.counts: f"rows columns naturals {TABLES} sparse dask",
    kinds.truths: f"rows naturals bits {ARRAYS}",
    kinds.totals: f"rows columns naturals {TABLES} sparse dask",
    kinds.regressors: f"rows {ARRAYS}",
    kinds.latent_features: f"unit units origin rows columns {ARRAYS}",
    kinds.score_rows: f"origin rows columns {ARRAYS}",
    kinds.constraints: f"rows columns {ARRAYS}",
    kinds.images: f"unit origin rows {ARRAYS}",
    kinds.edges: "rows reals memory nested",
    kinds.whole: f"rows naturals {ARRAYS}",
    kinds.positive: f"unit rows naturals {ARRAYS}",
    kinds.shares: "rows columns reals memory nested frames names sparse dask",
    kinds.unit_interval: "rows reals memory nested",
    kinds.directions: "rows columns reals memory nested frames names sparse",
    kinds.matrices: f"unit units rows {ARRAYS}",
    kinds.series: f"unit units origin rows columns {TABLES} lists",
    kinds.one_series: "unit units origin columns numbers frames whole",
    kinds.one_series_with_holes: "memory holes",
    kinds.bags: f"unit units origin rows entries columns {TABLES}",
    kinds.table_with_holes: "unit units origin rows columns memory nested holes names",
    kinds.series_with_holes: "unit units origin rows columns memory nested holes names",
    kinds.rows_with_holes: "rows columns memory nested holes names",
    kinds.codes_with_holes: "rows columns memory nested holes names labels two",
    kinds.coded_bags: f"rows entries columns naturals {TABLES}",
    kinds.symbols: "rows symbols lists",
    kinds.letters: "rows letters naturals memory nested labels two",
    kinds.documents: "rows words lists",
    kinds.instances: "unit units origin rows numbers truths memory nested labels two",
    kinds.steps: "unit units rows numbers memory nested labels two",
    kinds.joint_features: f"unit rows {ARRAYS}",
    kinds.grids: "unit origin rows numbers truths memory nested labels two",
}


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    kind: Callable[..., kinds.Data]
    fit: Callable[..., Any]
    answers: Callable[[Any, Any], dict[str, Any]]
    tolerance: float
    groups: frozenset[str]
    covers: tuple[str, ...]


SUBJECTS: list[Subject] = []


def subject(name, kind, fit, answers, tolerance, more="", covers=()):
    groups = set(KINDS[kind].split() + more.split())
    groups |= {"weighing"} if "weights" in groups else set()
    covers = (name.split(",")[0].split()[0], *covers)
    SUBJECTS.append(
        Subject(name, kind, fit, answers, tolerance, frozenset(groups), covers)
    )


# -- estimators ------------------------------------------------------------------------
def answers_of(estimator, query):
    """Decision values, probabilities, labels or targets; densities of mixtures."""
    out = {}
    if hasattr(estimator, "classes_"):
        if hasattr(estimator, "decision_function"):
            f = estimator.decision_function(query)
            f = f if np.ndim(f) == 2 else np.stack([-f, f], axis=1)
            out["classes decision"] = f
        if hasattr(estimator, "predict_proba"):
            out["classes proba"] = estimator.predict_proba(query)
        out["labels"] = estimator.predict(query)
    elif hasattr(estimator, "decision_function"):
        out["scores"] = estimator.decision_function(query)
    elif hasattr(estimator, "score_samples"):
        out["log_density"] = estimator.score_samples(query)
    elif hasattr(estimator, "predict"):
        out["targets"] = estimator.predict(query)
    else:
        out["scores"] = estimator.transform(query)
    if hasattr(estimator, "inclusion_proba_"):
        out["columns"] = estimator.inclusion_proba_
    return out


def estimator(
    name, kind, machine, tolerance=CONVEX, more="", answers=answers_of, covers=()
):
    def fit(data, n_jobs=None):
        fresh = clone(machine)
        if n_jobs is not None:
            fresh.set_params(n_jobs=n_jobs)
        weight = {} if data.weight is None else {"sample_weight": data.weight}
        return fresh.fit(data.X, data.y, **weight)

    if "n_jobs" in machine.get_params(deep=False):
        more += " jobs"
    if "sample_weight" in inspect.signature(machine.fit).parameters:
        more += " weights"
    covers = (type(machine).__name__, *covers)
    subject(name, kind, fit, answers, tolerance, more, covers)


def function(name, kind, run):
    """A function of each row: of "level" if it moves with its argument."""
    subject(name, kind, lambda data: data.X, lambda X, query: run(X), FORMULA)


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def alphabet(X):
    return {"alphabet": "abc"} if isinstance(X[0], str) else {"n_symbols": 3}
