"""Candidates of one model from many starts: the four gates, and the choice.

A candidate is admitted only if all hold:

    converged       its relative gradient is within the tolerance
    bounded         its entropy is finite and no component vanishes
    dependent       I(Y; Z) is above a threshold: Z is not idle
    local maximum   no direction leads up in likelihood

Without these the choice by entropy is decided by which stationary points were reached:
the independent model is feasible and has the largest entropy of all, and a run that
stops early near a saddle wins over every maximum.

Source: Wang, Schuurmans & Zhao (2012), algorithm 2 and section 9.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from maxent._support import validation as v
from maxent._support.fitted import FittedState
from maxent._support.progress import CallbacksMixin, Progress
from maxent._support.results import Status

Array = NDArray[np.float64]

Selection = Literal["entropy", "likelihood"]
SELECTIONS = ("entropy", "likelihood")

# what every table has, beside the columns of its kind of model
_COLUMNS = (
    "log_likelihood",
    "objective",
    "entropy",
    "regularized_entropy",
    "residual",
    "n_iter",
)

# reason -> (what is wrong, what to do)
REASONS = {
    "not_converged": ("gradient above tol", "raise max_iter or tol"),
    "unbounded": (
        "a component vanishes or a weight grows without limit",
        "use fewer hidden values, or more data",
    ),
    "independent": (
        "hidden and observed variables are independent",
        "raise n_init, or use fewer hidden values",
    ),
    "not_local_maximum": (
        "a saddle or minimum of the likelihood",
        "raise n_init",
    ),
}
_ALIKE = 1e-2  # relative difference of equal parameters, where L and H agree to 1e-5
_SAME = 1e-5  # relative difference of L and H within which candidates are compared


class NoAdmissibleCandidateError(ValueError):
    """No candidate passed the gates; the message counts why.

    Parameters
    ----------
    message : str
        Counts per reason, each with its remedy.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def reasons(
    residual: Array,
    tol: float,
    bounded: NDArray[np.bool_],
    dependence: Array,
    mi_tol: float,
    maximum: NDArray[np.bool_],
) -> NDArray[np.str_]:
    """First gate that each candidate fails, "" if none."""
    out = np.full(len(residual), "", dtype="<U17")
    gates = [
        ("not_local_maximum", ~maximum),
        ("independent", dependence <= mi_tol),
        ("not_converged", ~(residual <= tol)),
        ("unbounded", ~bounded),
    ]
    for name, wrong in gates:
        out[wrong] = name
    return out


def groups(
    likelihood: Array,
    entropy: Array,
    signature: Callable[[int], Array | None] = lambda i: None,
    *,
    signed: bool = True,
) -> NDArray[np.intp]:
    """Number of the distinct solution that each candidate is.

    Candidates are compared where likelihood and entropy agree within 1e-5 relative;
    they are then equal if the rows of their signatures, one for each hidden value or
    unit, agree in some order, and without `signed` up to the sign of each row.
    """
    out = np.full(len(likelihood), -1, dtype=np.intp)
    known = functools.cache(signature)
    leaders: list[int] = []
    for i in np.argsort(-likelihood, kind="stable"):
        for g, j in enumerate(leaders):
            near = abs(likelihood[i] - likelihood[j]) <= _SAME * (
                1.0 + abs(likelihood[j])
            ) and abs(entropy[i] - entropy[j]) <= _SAME * (1.0 + abs(entropy[j]))
            if near and _matched(known(int(i)), known(j), signed):
                out[i] = g
                break
        else:
            out[i] = len(leaders)
            leaders.append(int(i))
    return out


def _matched(a: Array | None, b: Array | None, signed: bool) -> bool:
    """True if rows (K, P) are equal in some order; without any it is not known."""
    if a is None or b is None:
        return True
    scale = 1.0 + np.abs(b)
    cost = (np.abs(a[:, None] - b) / scale).max(axis=-1)
    if not signed:
        cost = np.minimum(cost, (np.abs(a[:, None] + b) / scale).max(axis=-1))
    at = linear_sum_assignment(np.minimum(cost, 1.0))
    return bool(cost[at].max() <= _ALIKE)


def chosen(table: dict[str, NDArray[Any]], selection: str) -> int:
    """The admitted candidate of largest entropy or likelihood (penalised if so)."""
    column = table["regularized_entropy" if selection == "entropy" else "objective"]
    admitted = np.flatnonzero(table["reason"] == "")
    if not len(admitted):  # no fit ends so
        raise ValueError(
            "the fitted model is inconsistent: candidates_ has no admitted candidate. "
            "Fit it again."
        )
    return int(admitted[np.argmax(column[admitted])])


def rejections(table: dict[str, NDArray[Any]]) -> dict[str, int]:
    """Numbers of candidates that the gates rejected."""
    return {name: int((table["reason"] == name).sum()) for name in REASONS}


def check_admitted(
    name: str, table: dict[str, NDArray[Any]], own: dict[str, str]
) -> None:
    """Raise with the counts per reason if no candidate is admitted.

    own : what to do about some reasons that depends on the estimator.
    """
    if (table["reason"] == "").any():
        return
    remedies = {k: remedy for k, (_, remedy) in REASONS.items()} | own
    parts = [
        f"{count} {reason} ({REASONS[reason][0]}: {remedies[reason]})"
        for reason, count in rejections(table).items()
        if count
    ]
    raise NoAdmissibleCandidateError(
        f"{name}: none of {len(table['reason'])} candidates is admissible: "
        + "; ".join(parts)
        + "."
    )


class CandidatePool(CallbacksMixin, FittedState, ABC):
    """Base of estimators with candidates: the table, the gates, the choice.

    A subclass sets `candidates_` and `_keep(i)`, which makes candidate i the model.
    """

    selection: str
    tol: float
    n_iter_: int
    _progress: Progress
    candidates_: dict[str, NDArray[Any]]
    _solver = "EM"
    _more = REASONS["not_converged"][1]  # what makes a fit converge
    _bound = REASONS["unbounded"][1]  # what makes its likelihood bounded

    def _settle(self, table: dict[str, NDArray[Any]], stopped: bool = False) -> None:
        """Store the table and the choice asked for; say how the fit ended."""
        own = {"not_converged": self._more, "unbounded": self._bound}
        check_admitted(type(self).__name__, table, own)
        self.candidates_, self.rejected_ = table, rejections(table)
        self._choose(self.selection)
        n = len(table["reason"])
        self._progress.closing(
            Status.STOPPED if stopped else Status.CONVERGED,
            self._solver,
            self.n_iter_,
            f"{(table['reason'] == '').sum()} of {n} candidates admitted, objective "
            f"{self.objective_:.6g}, relative gradient {self.residual_:.1e}",
        )

    def _choose(self, selection: str) -> None:
        table, i = self.candidates_, self._best(selection)
        self.selected_ = i
        self.log_likelihood_ = float(table["log_likelihood"][i])
        self.entropy_ = float(table["entropy"][i])
        self.objective_ = float(table["objective"][i])
        self.residual_ = float(table["residual"][i])
        self.converged_ = bool(
            self.residual_ <= self._tolerance
        )  # a gate, unless stopped
        self._keep(i)

    def _best(self, selection: str) -> int:
        """Number of the candidate that a selection takes."""
        return chosen(self.candidates_, selection)

    @property
    def _tolerance(self) -> float:
        """The residual of an admitted candidate."""
        return self.tol

    @abstractmethod
    def _keep(self, i: int) -> None:
        """Take candidate i as the fitted model."""

    def _of_candidates(self) -> dict[str, Any]:
        """Arrays kept of every candidate beside the table, by name."""
        return {k: x for k, x in vars(self).items() if k.startswith("candidate_")}

    def _check_candidates(self) -> None:
        """Refuse a table or parameters that are not of the same candidates."""
        table = self.candidates_
        reason = table.get("reason") if isinstance(table, dict) else None
        n = len(reason) if isinstance(reason, np.ndarray) and reason.ndim else 0
        columns = dict.fromkeys(_COLUMNS) | (table if n else {"reason": reason})
        for name, column in (columns | self._of_candidates()).items():
            kind = {"n_iter": "iu", "reason": "OU"}.get(name, "fiub")
            length = -1
            if isinstance(column, np.ndarray) and column.ndim:
                length = len(column) if column.dtype.kind in kind else -1
            elif isinstance(column, list) and name not in columns:
                length = len(column)
            if not n or length != n:
                raise ValueError(
                    f"the fitted model is inconsistent: {name}={v.shown(column)} is "
                    f"not of {n} candidates. Fit it again."
                )

    def select(self, selection: Selection) -> Self:
        """Same fit with another choice among its candidates.

        Parameters
        ----------
        selection : {"entropy", "likelihood"}
            "entropy": latent maximum entropy; "likelihood": maximum likelihood. With a
            penalty or prior the regularised entropy and the penalised likelihood.

        Returns
        -------
        estimator
            A fitted copy; nothing is fitted again.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        v.check_choice("selection", selection, SELECTIONS)
        self._check_candidates()
        other = copy.copy(self)
        other.selection = selection
        other._choose(selection)
        return other
